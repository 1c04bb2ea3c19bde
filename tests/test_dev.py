"""The script that sets the project up keeps what it finds."""

import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

import dev
from mesa_llm.cli.app import app


def test_a_demo_of_an_older_version_is_told_from_one_to_go_on_with(tmp_path) -> None:
    log = tmp_path / dev.DEMO_LOG
    begin = [sys.executable, "-m", "mesa_llm.cli.app", "run", "social", "--log", str(log), "--set"]
    assert CliRunner().invoke(app, [*begin[3:], "n_agents=3", "--steps", "1"]).exit_code == 0
    assert not dev.is_refused([*begin, "n_agents=3"])
    assert dev.is_refused([*begin, "n_agents=4"])


def test_a_run_log_is_put_aside_whole_under_the_first_free_name(tmp_path) -> None:
    for name in ("demo.sqlite", "demo.sqlite-wal", "demo-1.sqlite"):
        (tmp_path / name).write_text(name)
    assert dev.put_aside(tmp_path / "demo.sqlite") == tmp_path / "demo-2.sqlite"
    kept = {file.name: file.read_text() for file in Path(tmp_path).iterdir()}
    assert kept == {
        "demo-1.sqlite": "demo-1.sqlite",
        "demo-2.sqlite": "demo.sqlite",
        "demo-2.sqlite-wal": "demo.sqlite-wal",
    }


def test_what_python_compiles_is_kept_and_never_beside_the_sources(monkeypatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    asked = [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode, sys.pycache_prefix)"]
    done = subprocess.run(asked, env=dev.surroundings(), capture_output=True, text=True)
    assert done.stdout.split() == ["False", str(dev.ROOT / ".venv" / "bytecode")]


def test_an_environment_that_is_active_is_not_taken_for_the_projects_own(monkeypatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/elsewhere")
    assert "VIRTUAL_ENV" not in dev.surroundings()
