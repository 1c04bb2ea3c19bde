"""Placebos of the studies: the same language model, and requests that lack the cause and nothing else."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mesa_llm.experiments.runs.study import StudySetup, find_study
from mesa_llm.runlog.log import RunLog
from tests.faulty_server import FaultyServer
from tests.honest_reply import completion, honest

SCORES = r" \(score -?\d+\)|(?<=  )score -?\d+, "

STUDIES: dict[str, tuple[dict[str, Any], str, str]] = {
    "oasis herd": ({"n_agents": 3, "active_share": 1.0, "posts_per_step": 2}, SCORES, ""),
    "oasis counterfactual": ({"n_agents": 4, "active_share": 1.0}, SCORES, ""),
}
"""Study with a placebo → parameters of a small run, and what its treated arms and its placebos have of their own."""


def stolid(body: dict[str, Any], number: int) -> dict[str, Any]:
    """Reply whatever the messages say: pass where possible, else by the form that is wanted."""
    tools = [tool["function"] for tool in body.get("tools", ())]
    for tool in tools:
        if tool["name"] == "do_nothing":
            return completion(calls=[("do_nothing", "{}")], body=body)
    return honest({**body, "messages": [], "seed": 0})


def requests_in(log: Path) -> list[str]:
    """Return the prompts of a run, in the order of agents and steps."""
    with closing(RunLog(log, "read")) as source:
        calls = source.calls().sort_values(["time", "agent", "purpose", "call"])
        return [str(prompt) for prompt in calls["prompt"]]


def requests_of(folder: Path, study: str, arm: str) -> list[str]:
    """Return the prompts of all runs in an arm."""
    words = "-".join([study, *arm.replace(",", "").split()])
    return [prompt for log in sorted(folder.glob(f"{words}*-1.sqlite")) for prompt in requests_in(log)]


@pytest.mark.parametrize("name", STUDIES)
def test_the_requests_of_a_placebo_lack_the_cause_and_nothing_else(name, tmp_path) -> None:
    parameters, cause, filler = STUDIES[name]
    study = find_study(*name.split())
    with FaultyServer(stolid) as server:
        setup = StudySetup([1], tmp_path, "stub", parameters=parameters, access={"api_base": server.url}, steps=2)
        design = study.run(setup).design
    assert {arm.llm for arm in design if arm.kind != "reference"} == {"stub"}
    assert {arm.llm for arm in design if arm.kind == "reference"} == {"rule"}
    for placebo in (arm for arm in design if arm.kind == "placebo"):
        treated, control = (requests_of(tmp_path, study.name, one) for one in (placebo.placebo_of, placebo.name))
        assert treated != control
        assert [re.sub(cause, "", one) for one in treated] == [re.sub(filler or "$^", "", one) for one in control]


@pytest.mark.parametrize("name", STUDIES)
def test_rule_twins_run_with_the_placebo_and_without_a_second_twin(name) -> None:
    study = find_study(*name.split())
    design = study.run(StudySetup([1], parameters=STUDIES[name][0], steps=2)).design
    assert {arm.kind for arm in design} == {"treated", "placebo"}
    assert {arm.llm for arm in design} == {"rule"}
