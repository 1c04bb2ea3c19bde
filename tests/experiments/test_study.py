"""Studies: what packages declare, how they are found, and what their findings are."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import Field
from typer.testing import CliRunner

from mesa_llm import ConfigError
from mesa_llm.cli.app import app
from mesa_llm.experiments.findings import Table
from mesa_llm.experiments.runs.arms import Arms
from mesa_llm.experiments.runs.study import Study, StudyFindings, StudySetup, find_studies, find_study
from tests.pot import PotModel

COST = {"runs": 0, "decisions": 0, "failures": 0, "calls": 0, "tokens": 0, "dollars": 0.0}


def study_pots(setup: StudySetup, *, size: Annotated[int, Field(ge=1)] = 3) -> StudyFindings:
    """Look into pots.

    Args:
        setup: Settings of the runs.
        size: Number of coins
            of a pot.
    """
    return StudyFindings("pots", "How full?", {"seeds": setup.seeds}, COST, [Table("Pots", [{"size": float(size)}])])


def test_the_options_of_a_study_are_the_keyword_parameters_of_its_function() -> None:
    (size,) = Study("pots", "How full?", PotModel, study_pots).options
    assert (size.name, size.default, size.range, size.meaning) == ("size", 3, "≥ 1", "Number of coins of a pot.")
    with pytest.raises(ConfigError, match="size: input should be greater"):
        size.check(0)


def test_studies_of_all_packages_are_found_with_documented_options() -> None:
    found, broken = find_studies()
    assert broken == {}
    assert {"classics", "discussion", "oasis", "shachi"} == set(found)
    for study in (study for studies in found.values() for study in studies.values()):
        assert study.question.endswith(("?", ")"))
        assert all(option.meaning for option in study.options)
    assert find_study("classics", "prisoners-dilemma").name == "prisoners_dilemma"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["oasiss"], "'oasiss' has no studies; classics, discussion, oasis, shachi have some"),
        (["market"], "'market' has no studies"),
    ],
)
def test_a_package_without_studies_is_one_line(words: list[str], text: str) -> None:
    done = CliRunner().invoke(app, ["study", *words])
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert text in done.stderr


def test_all_studies_are_listed_and_those_of_a_package_with_their_options() -> None:
    lines = CliRunner().invoke(app, ["study"]).stdout.splitlines()
    assert ["oasis", "herd", "Do people follow the votes they see on comments?"] in [
        line.split(maxsplit=2) for line in lines
    ]
    assert "--set people=…  Number of agents" in CliRunner().invoke(app, ["study", "shachi"]).stdout


def test_findings_summary_is_finite_json_and_page_may_have_no_figure() -> None:
    table = Table("Pots", [{"mean": math.inf, "name": "first"}])
    findings = StudyFindings("pots", "How full?", {"seeds": [1, 2, 3]}, COST, [table])
    assert json.loads(json.dumps(findings.to_json(), allow_nan=False))["tables"]["Pots"] == [
        {"mean": None, "name": "first"}
    ]
    assert "seeds: 1 to 3" in findings.text()
    assert "<img" not in findings.page()


def coins(arms: Mapping[str, Any]) -> dict[str, float]:
    """Return the difference of the steps of both arms."""
    return {"steps": float(arms["one"]["steps"] - arms["other"]["steps"])}


class CountingPot(PotModel):
    """A pot that says how many steps it made."""

    def results(self) -> dict[str, Any]:
        return {"steps": int(self.time)}


POTS = Arms("pots", "How full?", CountingPot, {"one": {}, "other": {"n_agents": 2}}, 2, (), coins)


@pytest.mark.parametrize("workers", [1, 2])
def test_each_arm_runs_with_each_seed_and_is_resumed_from_its_log(tmp_path, workers: int) -> None:
    setup = StudySetup([1, 2], tmp_path, llm="random", workers=workers)
    first, again = POTS.run(setup), POTS.run(replace(setup, workers=1))
    assert first.outcomes["steps"].value == 0
    assert first.cost["runs"] == len(list(tmp_path.glob("pots-*.sqlite"))) == 4
    assert first.cost["decisions"] == again.cost["decisions"] > 0
    assert first.compare("steps").loc[0, ["first", "second", "n"]].tolist() == ["one", "other", 2]


def test_a_run_that_raises_ends_the_study_wherever_it_is_made(tmp_path) -> None:
    for workers in (1, 2):
        with pytest.raises(ConfigError, match="no-such-model"):
            POTS.run(StudySetup([1, 2], tmp_path, llm="no-such-model", workers=workers))
