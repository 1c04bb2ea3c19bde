"""Agreeing to a file of endpoints that wants keys, on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from tests.faulty_server import FaultyServer

TABLE = '[endpoints.judge]\nmodel = "m"\napi_base = "{url}"\nkey_env = "JUDGE_KEY"\n'


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("JUDGE_KEY", "judges-secret")
    monkeypatch.delenv("MESA_LLM_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)


def typed(*words: str) -> tuple[int, str]:
    """Run a command; return its exit code and what it printed."""
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


RUN = ("run", "boltzmann_wealth", "--llm", "judge", "--steps", "1", "--set", "n_agents=20", "--rng", "1")


def test_a_key_is_sent_once_its_file_was_agreed_to() -> None:
    with FaultyServer() as server:
        Path("mesa-llm.toml").write_text(TABLE.format(url=server.url))
        code, output = typed(*RUN)
        assert (code, server.count) == (2, 0)
        assert f"JUDGE_KEY of your environment sent to {server.url}" in output
        code, output = typed("trust", "--yes")
        assert (code, "judges-secret" in output) == (0, False)
        assert f"judge: sends the variable JUDGE_KEY of your environment to {server.url}" in output
        assert typed(*RUN)[0] == 0
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer judges-secret"}


def test_agreeing_needs_a_terminal_or_yes() -> None:
    Path("mesa-llm.toml").write_text(TABLE.format(url="http://stranger.example/v1"))
    code, output = typed("trust")
    assert code == 2
    assert "add --yes if you agree" in output


def test_a_file_without_keys_or_no_file_needs_no_agreement() -> None:
    assert typed("trust")[0] == 2
    Path("mesa-llm.toml").write_text('[endpoints.judge]\nmodel = "m"\n')
    assert "uses no key" in typed("trust")[1]


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"\n", 1)])
def test_in_a_terminal_it_is_asked(answer: bytes, code: int) -> None:
    Path("mesa-llm.toml").write_text(TABLE.format(url="http://stranger.example/v1"))
    ours, its = pytest.importorskip("pty").openpty()
    os.write(ours, answer)
    command = [sys.executable, "-m", "mesa_llm.cli.app", "trust"]
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its) as asked:
        assert asked.wait(60) == code
    assert b"Agree, until the file changes?" in os.read(ours, 10_000)
    os.close(ours)
    os.close(its)
