"""Every command and snippet of the README does what it says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from tests.faulty_server import FaultyServer
from tests.processes import run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
LINES = [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines() if line]
COMMANDS = [shlex.split(line, comments=True) for line in LINES]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda text: text.splitlines()[0])
def test_a_snippet_runs(snippet, tmp_path) -> None:
    done = run("-c", snippet, cwd=tmp_path)
    assert done.returncode == 0, done.err
    assert done.out


def test_the_commands_of_the_command_line_run(tmp_path, request) -> None:
    import os

    kept, environment = os.getcwd(), dict(os.environ)
    request.addfinalizer(lambda: (os.chdir(kept), os.environ.clear(), os.environ.update(environment)))
    os.chdir(tmp_path)
    (tmp_path / "news.txt").write_text("Mayor Lund wants a hall. The Grocers fear it. Will it be built?")
    with FaultyServer() as server:
        os.environ |= {"OLLAMA_API_BASE": server.url, "OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "none"}
        for command in COMMANDS:
            if command[0] == "mesa-llm":
                words = [server.url if word.startswith("http://") else word for word in command[1:]]
                done = CliRunner().invoke(app, words)
                assert done.exit_code == 0, (command, done.output)
    assert server.count > 40


def test_the_two_commands_are_those_of_dev_py() -> None:
    names = [command[2] for command in COMMANDS if command[:2] == ["python3", "dev.py"]]
    process = subprocess.run([sys.executable, ROOT / "dev.py"], capture_output=True, text=True)
    assert names == ["demo", "test"]
    assert all(name in process.stdout + process.stderr for name in [*names, "app", "bench", "test-mesa4"])


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
