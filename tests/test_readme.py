"""The README points at what is there, and its two commands do what they say; tests/test_docs.py runs the others."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines() if line]
COMMANDS = [shlex.split(line, comments=True) for line in LINES]


def test_the_two_commands_are_those_of_dev_py() -> None:
    names = [command[2] for command in COMMANDS if command[:2] == ["python3", "dev.py"]]
    process = subprocess.run([sys.executable, ROOT / "dev.py"], capture_output=True, text=True)
    assert names == ["demo", "test"]
    assert all(
        f"dev.py {name}" in process.stdout
        for name in ("demo", "app", "test", "test-mesa4", "bench", "docs", "evidence")
    )


@pytest.mark.slow
def test_the_demo_lives_on_a_real_language_model(tmp_path) -> None:
    few = ["--steps", "1", "--set", "n_agents=2", "--log", tmp_path / "demo.sqlite"]  # all of the demo takes minutes
    done = subprocess.run([sys.executable, ROOT / "dev.py", "demo", *few], capture_output=True, text=True, timeout=290)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "What happened" in done.stdout
    assert "2 decisions" in done.stdout
    assert "demo.sqlite" in done.stdout


def test_everything_the_readme_points_at_is_there() -> None:
    for path in re.findall(r"`((?:mesa_llm|models|notebooks|benchmarks|tests)/[\w./]*)`|\]\((\w[\w/.]+)\)", README):
        assert (ROOT / next(filter(None, path))).exists()
