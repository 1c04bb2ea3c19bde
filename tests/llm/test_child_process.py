"""A file in the working directory is not executed because a process is started there."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mesa_llm.llm import child_process
from tests.faulty_server import FaultyServer

MARK = "import os, sys\nopen(os.environ['MARKS'], 'a').write(f'{__name__} {sys.orig_argv}\\n')\nos._exit(7)\n"
STANDARD = {name for name in sys.stdlib_module_names if not name.startswith("__")}
APP = ("-m", "mesa_llm.cli.app")
OWN = """from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel


class Own(WealthModel):
    pass
"""
TRIED = """
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel
from mesa_llm.viz.session.trial import require_buildable
WealthModel(n_agents=1000, size=40, log="big.sqlite").close()
require_buildable("big.sqlite", {"n_agents": 1000.5}, None)
"""
FETCHED = """
from mesa_llm import ConfigError
from mesa_llm.llm.local.weights import model_file
try:
    model_file()
except ConfigError as error:
    assert "could not be downloaded" in str(error), error
"""
SCRIPT = """
from neighbour import Own
from mesa_llm.experiments.runs.sweep import sweep

if __name__ == "__main__":
    sweep(Own, folder="runs", seeds=2, steps=1, workers=2)
    print("done")
"""
SERVER = f"""#!{sys.executable}
import multiprocessing, os
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=os.getpid)
    child.start()
    child.join()
    assert child.exitcode == 0
"""
COMMANDS = {
    "workers": (*APP, "sweep", "own:Own", "--workers", "2", "--seeds", "2", "--steps", "1"),
    "clients": (*APP, "run", "boltzmann_wealth", "--steps", "1", "--clients", "2", "--llm", "tiny", "--api-base"),
    "players": (*APP, "tournament", "players", "--rounds", "1", "--repeats", "1"),
    "servers": (*APP, "serve", "tiny"),
    "trial of a run log": ("-c", TRIED),
    "download": ("-c", FETCHED),
}


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Give a folder with a file under the name of every module there is, which writes a mark when it is executed."""
    folder = tmp_path / "folder"
    (folder / "players").mkdir(parents=True)
    installed = {name for name in importlib.metadata.packages_distributions() if name.isidentifier()}
    for name in STANDARD | installed:
        (folder / f"{name}.py").write_text(MARK)
    (folder / "own.py").write_text(OWN)
    for name in ("kind", "cruel"):
        (folder / "players" / f"{name}.py").write_text(f"def move(own, other):\n    return {name == 'kind'}\n")
    (tmp_path / "vllm").write_text(SERVER)
    (tmp_path / "vllm").chmod(0o755)
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_no_child_process_executes_what_lies_in_the_working_directory(name: str, planted: Path) -> None:
    marks, home = planted.parent / "marks", str(planted.parent)
    place = {**os.environ, "MARKS": str(marks), "MESA_LLM_CACHE": home, "HOME": home, "PIP_NO_INDEX": "1"}
    place["PATH"] = os.pathsep.join((home, os.environ["PATH"]))
    with FaultyServer() as server:
        command = [*COMMANDS[name], *([server.url] if name == "clients" else [])]
        done = subprocess.run(
            [sys.executable, "-P", *command], cwd=planted, env=place, capture_output=True, text=True, timeout=250
        )
    assert not marks.exists(), marks.read_text()
    assert done.returncode == (2 if name == "servers" else 0), done.stderr
    assert name != "servers" or "ended" in done.stderr


def test_workers_give_what_they_start_the_environment_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    before = child_process.own_variables()
    with child_process.spawning():
        assert os.environ[child_process.SAFE_PATH] == "1"
    assert child_process.own_variables() == before == {child_process.SAFE_PATH: None, "PYTHONPATH": "/somewhere"}


@pytest.mark.parametrize("here", ["", "."])
def test_a_child_is_told_of_the_working_directory_apart_from_the_other_paths(
    here: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [here, "/lib"])
    assert (child_process.import_paths(), child_process.own_paths()) == (["/lib"], [str(tmp_path)])
    monkeypatch.setattr(sys, "path", ["/lib"])
    assert (child_process.import_paths(), child_process.own_paths()) == (["/lib"], [])


def test_a_script_in_the_working_directory_may_have_workers(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text(OWN)
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=250)
    assert done.stdout == "done\n", done.stderr
