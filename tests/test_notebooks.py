"""Notebooks, lessons and their solutions run from top to bottom, are stored without outputs, and show their plots."""

import re
from pathlib import Path

import nbformat
import pytest
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from nbclient import NotebookClient

from tests.processes import Python, run

PLOTS = re.compile(r"_figure\(\w+\)\s*$|plt\.show\(\)|subplots\(|\.plot\(|plots\.draw_")
"""What stands in a cell that draws."""

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LESSONS = sorted((ROOT / "notebooks" / "lessons").glob("*.ipynb"))
SOLUTIONS = sorted((ROOT / "notebooks" / "lessons" / "solutions").glob("*.ipynb"))


@pytest.fixture
def _forked(monkeypatch) -> None:
    """Run each kernel, a fresh one, in a process that need not import first."""

    async def launch(self, cmd, **kwargs):
        environment = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", **kwargs["env"]}  # as a kernel does
        self.process = Python(*cmd[1:], env=environment, cwd=kwargs["cwd"])
        return self.connection_info

    monkeypatch.setattr(LocalProvisioner, "launch_kernel", launch)


@pytest.mark.slow
@pytest.mark.usefixtures("_forked")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_as_it_stands(path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in code)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(ROOT)}}).execute()
    assert any(cell.outputs for cell in code)
    drawing = [cell for cell in code if PLOTS.search(cell.source)]
    without = [cell.source for cell in drawing if not any("image/png" in out.get("data", ()) for out in cell.outputs)]
    assert without == []


@pytest.mark.slow
@pytest.mark.parametrize("path", [*LESSONS, *SOLUTIONS], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_lesson_runs_as_it_stands(path, tmp_path) -> None:
    done = run("-m", "tests.cells", path, cwd=ROOT)
    assert done.returncode == 0, done.out + done.err
    assert "Traceback" not in done.err
    assert int(done.out.rpartition("figures: ")[2]) > 0


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_asks_lets_predict_and_has_exercises_with_solutions(path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert text.startswith("# Lesson ")
    assert text.index("**Question.**") < text.index("## What do you expect?") < text.index("## Exercises")
    assert any("guess" in cell.source and " = None" in cell.source for cell in cells if cell.cell_type == "code")
    assert not any(cell.get("outputs") for cell in cells)
    assert [solution.name for solution in SOLUTIONS].count(path.name) == 1
