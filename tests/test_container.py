"""The Dockerfile copies files that exist, holds no key, and starts a classroom."""

import json
import re
from pathlib import Path

import pytest

from tests.test_docs import serve

ROOT = Path(__file__).parents[1]
LINES = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8")).splitlines()


def instructions(name: str) -> list[str]:
    """Return the arguments of each instruction of a kind, in order."""
    return [line.removeprefix(name).strip() for line in LINES if line.startswith(name + " ")]


def test_everything_copied_exists_and_reaches_the_build() -> None:
    copied = [source for line in instructions("COPY") for source in line.split()[:-1]]
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(copied) == sorted(allowed)
    assert all((ROOT / source).exists() for source in copied)


def test_it_runs_as_an_ordinary_user_and_holds_no_key() -> None:
    assert instructions("USER")[-1] not in ("root", "0")
    assert instructions("ENV") == instructions("ARG") == []


@pytest.mark.slow
def test_its_command_serves_a_classroom(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MESA_LLM_APP_TOKEN", "a-long-secret-of-yours")
    program, *words = json.loads(instructions("ENTRYPOINT")[0]) + json.loads(instructions("CMD")[0])
    assert program == "mesa-llm"
    serve(words)
