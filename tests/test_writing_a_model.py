"""The walkthrough `docs/writing_a_model.md` works as it stands, and is as short as it says."""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "writing_a_model.md").read_text(encoding="utf-8")
FILES = re.findall(r'```\w+ title="([\w/.]+)"\n(.*?\n)```', TEXT, re.DOTALL)
SNIPPETS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [
    line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines() if line.strip()
]


def contents() -> dict[str, str]:
    """Return the files of the walkthrough; a file goes on where its name comes again."""
    files: dict[str, str] = {}
    for name, text in FILES:
        files[name] = files[name] + ("\n" if text.startswith("    ") else "\n\n") + text if name in files else text
    return files


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Iterator[Path]:
    """Write the files of the walkthrough, install them by their entry point, and work in their folder."""
    folder = tmp_path_factory.mktemp("walkthrough")
    (folder / "berries" / "prompts").mkdir(parents=True)
    (folder / "berries" / "__init__.py").touch()
    for name, text in contents().items():
        (folder / name).write_text(text, encoding="utf-8")
    points = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["entry-points"]["mesa_llm.models"]
    info = folder / "berries-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: berries\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[mesa_llm.models]", *lines]))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        yield folder
    for name in ("berries", "berries.model", "berries.app", "berries.task", "trust"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_walkthrough_runs(command, folder) -> None:
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    assert "BROKEN" not in done.stdout
    if command == "mesa-llm list":
        assert "berries" in done.stdout


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda text: text.splitlines()[0])
def test_a_snippet_of_the_walkthrough_runs(snippet, folder, capsys) -> None:
    exec(snippet, {})
    assert capsys.readouterr().out


def test_the_model_has_four_files_and_at_most_350_lines_the_questionnaire_200() -> None:
    lengths = {name: len(text.splitlines()) for name, text in contents().items()}
    assert lengths.pop("trust.py") <= 200
    assert lengths.pop("pyproject.toml") == 2
    assert lengths.pop("berries/task.py") <= 15
    assert (len(lengths), sum(lengths.values()) <= 350) == (4, True)


def test_the_files_of_the_walkthrough_are_written_as_the_project_is(folder) -> None:
    config = f"--config={ROOT / 'pyproject.toml'}"
    for command in (["check", "--ignore=I001,T20"], ["format", "--check"]):
        words = [sys.executable, "-m", "ruff", *command, config, "berries", "trust.py"]
        done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
        assert done.returncode == 0, done.stdout
