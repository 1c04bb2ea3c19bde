"""Every command of a study that the documentation shows runs by rule, at a small size, and gives its tables."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from mesa_llm.experiments.runs.study import find_studies
from tests.faulty_server import FaultyServer

DOCS = Path(__file__).parents[1] / "docs"

COMMAND = re.compile(r"(?:^|`)(mesa-llm study \w+ \w+[^`\n]*)", re.MULTILINE)
"""A command of a study, on a line of its own or between backticks."""

ORIGINALS = ("shachi", "oasis", "discussion")
"""Packages with studies of the originals."""

NEEDS_FILES = {"oasis fit"}  # of OASIS's data; tests/models/test_oasis_studies.py

SMALL = {
    "shachi prices": "--set n_agents=4 --set days=1",
    "shachi priorities": "--set n_lots=3",
    "shachi swap": "--steps 2 --set n_agents=2",
    "shachi memory": "--steps 1 --set people=2 --set months=1 --set n_agents=1",
    "shachi worlds": "--set n_agents=2 --set days=1 --set sessions=1",
    "shachi validity": "--set n_agents=2 --set days=1 --set sessions=1 --set shock_day=1",
    "oasis scale": "--steps 3 --set sizes=30,60",
    "oasis groups": "--steps 3 --set sizes=30,60",
    "oasis rumours": "--steps 2 --set n_agents=50",
    "discussion debate": "--steps 20 --set rooms=1",
    "discussion trolley": "--steps 20 --set rooms=1",
    "classics schelling": "--steps 2",
    "classics persona_form": "--set rounds=2",
}
"""Study → options that make it small; the others have thirty users and three steps."""


def study_of(command: str) -> str:
    """Return the package and the name of the study in a command."""
    return " ".join(shlex.split(command, comments=True)[2:4])


def commands() -> dict[str, str]:
    """Return all commands that differ at a small size, each with the pages that show it."""
    found: dict[str, str] = {}
    for page in sorted(DOCS.glob("*.md")):
        for text in COMMAND.findall(page.read_text(encoding="utf-8")):
            words = shlex.join(shlex.split(re.sub(r"--llm [\w,/.:-]+", "", text), comments=True))
            found[words] = page.stem
    return found


def test_the_page_of_benchmarks_shows_every_study_of_the_originals() -> None:
    page = (DOCS / "benchmarking.md").read_text(encoding="utf-8")
    written = {study_of(command) for command in COMMAND.findall(page)}
    studies = {f"{package} {name}" for package in ORIGINALS for name in find_studies(package)[0][package]}
    assert studies - written == NEEDS_FILES


@pytest.mark.parametrize(("command", "page"), commands().items(), ids=lambda text: text.removeprefix("mesa-llm study "))
def test_a_study_that_a_page_shows_gives_its_tables(command, page, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = SMALL.get(study_of(command), "--steps 3 --set n_agents=30")
    words = [*shlex.split(command)[1:], "--llm", "rule", "--seeds", "1", *small.split()]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, (page, done.output)
    found = json.loads(done.stdout.splitlines()[-1])
    assert all(found["tables"].values())
    assert (found["decisions"] > 0, found["failures"]) == (True, 0)


@pytest.mark.parametrize("name", [f"{package} {name}" for package, one in find_studies()[0].items() for name in one])
def test_a_dry_run_of_a_study_asks_nobody(name) -> None:
    small = SMALL.get(name, "" if "classics" in name else "--steps 2 --set n_agents=10").split()
    if name in NEEDS_FILES:
        return
    with FaultyServer() as server:
        words = ["--llm", f"gpt-4o@{server.url}", "--seeds", "1", *small, "--dry-run"]
        done = CliRunner().invoke(app, ["study", *name.split(), *words])
        assert done.exit_code == 0, done.output
        assert not server.requests
