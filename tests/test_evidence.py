"""The evidence page says what was measured, what was measured is what the code computes, and its commands are there."""

import importlib
import itertools
import json
import re
import shlex
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import dev
from mesa_llm.cli.app import app
from mesa_llm.model.scenario import parameters_of
from mesa_llm.registry import find_model

ROOT = Path(__file__).parents[1]
COMMANDS: Any = get_command(app)
LOCAL = ROOT / "benchmarks" / "evidence_local.json"


@pytest.fixture
def evidence(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("evidence")


def test_the_page_and_its_tables_are_written_from_the_readings(evidence) -> None:
    for file, text in evidence.written(evidence.load()).items():
        assert file.read_text(encoding="utf-8") == text, f"write {file.name} again: python3 dev.py evidence --page"


def test_the_page_can_be_read_in_a_quarter_of_an_hour(evidence) -> None:
    assert len(evidence.PAGE.read_text(encoding="utf-8").split()) <= 3_000


MEASURED = [(llm, name) for llm, found in json.loads(LOCAL.read_text(encoding="utf-8")).items() for name in found]


@pytest.mark.parametrize(("llm", "name"), MEASURED)
def test_what_is_said_of_a_local_language_model_follows_from_the_runs_that_are_kept(
    llm, name, evidence, tmp_path
) -> None:
    local = evidence.evidence_local
    stored, measurement = local.load()[llm][name], local.MEASUREMENTS[name]
    if changed := measurement.changed_since(stored["version"]):
        assert f"({stored['version']}, {stored['date']}; prompts changed in {changed})" in evidence.page(
            evidence.load()
        )
        assert not measurement.ships_logs or local.archive_of(llm, name).is_file()
        return
    assert local.replayed(llm, name, tmp_path) == stored["rows"]


def test_each_published_value_is_named_once_and_has_a_reading(evidence) -> None:
    for study in evidence.STUDIES:
        quantities = [claim.quantity for claim in study.claims]
        assert len(quantities) == len(set(quantities))
        assert set(quantities) == set(evidence.load()[study.name])


@pytest.mark.parametrize("name", ["emotionbench", "sotopia", "emergent_analogies", "psychobench"])
def test_readings_of_stored_data_are_what_the_code_computes(name, evidence) -> None:
    study = evidence.study_of(name)
    if not evidence.is_measurable(study):
        pytest.skip("needs MESA_LLM_DATA, the folder of the original files")
    for quantity, reading in study.measure(1).items():
        assert reading.mean == pytest.approx(evidence.load()[name][quantity].mean, rel=1e-5)


def test_the_first_auction_of_each_setting_is_the_one_that_was_measured(evidence) -> None:
    stored = evidence.load()["auction_arena"]
    for quantity, reading in evidence.study_of("auction_arena").measure(1).items():
        assert reading.first == pytest.approx(stored[quantity].first, rel=1e-5)


@pytest.mark.parametrize(
    ("n", "mean", "sd", "verdict"),
    [
        (1, 10.4, None, "the same"),
        (1, 10.6, None, "differs by +1"),
        (400, 10.3, 2.0, "agrees"),  # a difference that is shown may be within the margin
        (25, 12.5, 2.0, "differs by +2"),
        (4, 10.0, 2.0, "cannot tell"),  # no difference is seen, and one of half the value is possible
        (4, 12.0, 2.0, "cannot tell"),
    ],
)
def test_ours_agrees_only_within_a_margin(n, mean, sd, verdict, evidence) -> None:
    claim = importlib.import_module("evidence_record").Claim("profit", 10.0, "paper", "mesa-llm list", 0, n=400)
    assert evidence.Reading(n, mean, sd).verdict(claim) == verdict


def test_what_cannot_be_told_is_not_counted_as_agreement(evidence) -> None:
    verdicts = evidence.verdicts(evidence.load()).values()
    assert f"{sum(verdict == 'agrees' for verdict in verdicts)} agree within" in evidence.page(evidence.load())


def test_every_command_of_evidence_and_peers_is_one(evidence) -> None:
    peers = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    commands = {*evidence.commands(), *re.findall(r"`((?:mesa-llm|python3? )[^`]*)`", peers)}
    assert len(commands) > 100
    for command in commands:
        check_command(
            shlex.split(command.removeprefix("MESA_LLM_DATA=FOLDER ").removeprefix("MESA_LLM_GOLDEN=FOLDER "))
        )


def check_command(words: list[str]) -> None:
    """Check that a command is there, with its options, parameters and files; it is not run."""
    match words:
        case ["mesa-llm", name, *rest]:
            COMMANDS.get_command(None, name).make_context(name, list(rest))
            if "--set" in rest and name in ("run", "sweep"):
                chosen = {after.partition("=")[0] for word, after in itertools.pairwise(rest) if word == "--set"}
                assert chosen <= parameters(rest[0])
        case ["python3", "dev.py", name, *rest]:
            assert name in dev.COMMANDS
            assert all((ROOT / word).exists() for word in rest if name == "test")
        case ["python", "-m", module, *_]:
            assert find_spec(module)
        case _:
            pytest.fail(f"what is this? {words}")


@cache
def parameters(model: str) -> set[str]:
    """Return the names of a model's parameters."""
    return {parameter.name for parameter in parameters_of(find_model(model).load())}
