"""Runs are the same on every processor: no digest and no prompt depends on what numpy and BLAS choose for it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__  # pyright: ignore[reportMissingImports]

from mesa_llm import AgentDesign
from mesa_llm.model.recording import Recording
from mesa_llm.registry import find_model
from mesa_llm.testing import honest

RUNS: dict[str, dict[str, Any]] = {
    "market": {},
    "econ_agent": {},
    "social": {},
    "opinion": {"design": AgentDesign(memory="stream")},
}
"""Model → options of its run; that of opinion recalls memories by their meaning."""

STEPS = 8

KERNELS = ("Nehalem", "Prescott")
"""Kernels of OpenBLAS that every x86 processor can run; elsewhere, the name has no effect."""

REPLAY = """
import sys
from mesa_llm.model.recording import Recording
for file in sys.argv[1:]:
    print(Recording.read(file).replayed().runlog.digest)
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the logs of runs under the kernel that suits this processor best."""
    folder = tmp_path_factory.mktemp("logs")
    for name, options in RUNS.items():
        with closing(find_model(name).load()(llm=honest(), rng=1, log=folder / f"{name}.sqlite", **options)) as model:
            model.run_for(STEPS)
    return sorted(folder.glob("*.sqlite"))


@pytest.mark.parametrize("kernel", KERNELS)
def test_replay_has_the_same_requests_and_digest_on_another_processor(kernel: str, logs: list[Path]) -> None:
    features = " ".join(__cpu_dispatch__) if kernel == KERNELS[0] else ""
    other = {**os.environ, "OPENBLAS_CORETYPE": kernel, "NPY_DISABLE_CPU_FEATURES": features}
    done = subprocess.run([sys.executable, "-c", REPLAY, *logs], env=other, capture_output=True, text=True, check=True)
    recorded = [Recording.read(log) for log in logs]
    assert done.stdout.split() == [each.digests[each.last_step] for each in recorded]


PRODUCTS = frozenset({"dot", "matmul", "vdot", "inner", "tensordot", "corrcoef", "cov", "polyfit", "lstsq", "solve"})
"""Functions of numpy that BLAS or LAPACK computes."""

MENDED = {
    "minilm.py": "vectors are rounded",
    "personal.py": "candidates are compared again, one by one",
    "calibration.py": "runs that are over are analysed",
    "posterior.py": "runs that are over are analysed",
    "verdict.py": "runs that are over are analysed",
    "interactions.py": "pairs that are as strong but for rounding are chosen alike",
    "fitting.py": "what is fitted is written to a file, by whose numbers all processors decide alike",
}
"""File → why the products in it change nothing."""


def test_nothing_is_computed_by_blas() -> None:
    root = Path(__file__).parents[2]
    files = [file for part in ("mesa_llm", "models") for file in sorted((root / part).rglob("*.py"))]
    found = [
        f"{file.relative_to(root)}:{node.lineno}"
        for file in files
        if file.name not in MENDED
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        or (
            isinstance(node, ast.Attribute) and node.attr in PRODUCTS and ast.unparse(node.value) in ("np", "np.linalg")
        )
    ]
    assert found == []
