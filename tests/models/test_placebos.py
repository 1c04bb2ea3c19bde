"""Placebos of the studies: the same language model, and requests that lack the cause and nothing else."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.runs.study import StudySetup, find_studies, find_study, power_of, study
from mesa_llm.runlog.log import RunLog
from mesa_llm_models.oasis.herd import GROUPS
from tests.faulty_server import FaultyServer
from tests.honest_reply import completion, honest

SCORES = r"() \(score -?\d+\)|(?<=  )score -?\d+, "
COMMENTS = r"(Comment \d+ by [^:]+): “[^”]+”"
POSTS = r"(Post \d+ by [^:]+): “[^”]+”"
LINES = r"(Ines|Walter|Grace|Milan): “[^”]+”"
TIMES = r"()The conversation was opened at \[[\d:]+\]\.\\n|It is now \[[\d:]+\]\. [^.]+ left\.\\n|\[[\d:]+\] "

STUDIES: dict[str, tuple[dict[str, Any], str, str]] = {
    "oasis herd": ({"n_agents": 3, "active_share": 1.0, "posts_per_step": 2}, SCORES, ""),
    "oasis counterfactual": ({"n_agents": 4, "active_share": 1.0}, SCORES, ""),
    "oasis polarisation": ({"n_agents": 4, "active_share": 1.0}, COMMENTS, COMMENTS),
    "oasis rumours": ({"n_agents": 10, "activity": 1.0, "core_activity": 1.0, "feed": "newest"}, POSTS, POSTS),
    "discussion debate": ({"rooms": 1}, LINES, LINES),
    "discussion trolley": ({"rooms": 1}, TIMES, ""),
}
"""Study with a placebo → parameters of a small run, and what its treated arms and its placebos have of their own."""


WITH_PLACEBOS = {"classics persona_form", "shachi memory", "shachi worlds", "shachi validity"}
"""Studies whose control arms are sweeps of their own; tests/models/test_shachi_acceptance.py."""


def stolid(body: dict[str, Any], number: int) -> dict[str, Any]:
    """Reply whatever the messages say: by a comment on the first post, by nothing, or by the form that is wanted.

    What is said depends on how many lines have been said, as nobody may say the same twice.
    """
    names = {tool["function"]["name"] for tool in body.get("tools", ())}
    if {"create_comment", "repost"} <= names:
        comment = {"post_id": 1, "content": "You should be careful."}
        return completion(calls=[("create_comment", json.dumps(comment))], body=body)
    if "do_nothing" in names:
        return completion(calls=[("do_nothing", "{}")], body=body)
    return honest({**body, "messages": [], "seed": str(body["messages"]).count("“")})


def requests_in(log: Path) -> list[str]:
    """Return the prompts of a run, in the order of agents and steps."""
    with closing(RunLog(log, "read")) as source:
        calls = source.calls().sort_values(["time", "agent", "purpose", "call"])
        return [str(prompt) for prompt in calls["prompt"]]


def requests_of(folder: Path, arm: str) -> list[str]:
    """Return the prompts of all runs in an arm."""
    words = "-".join(arm.replace(",", "").split())
    names = [words, *(f"{words}-{group}" for group in GROUPS)]
    return [prompt for name in names for log in folder.rglob(f"*-{name}-1.sqlite") for prompt in requests_in(log)]


def findings(name: str, **how: Any) -> Any:
    """Run a study at its small size, two steps long."""
    study = find_study(*name.split())
    given, options = dict(STUDIES[name][0]), {one.name for one in study.options}
    own = {one: given.pop(one) for one in options & set(given)}
    return study.run(StudySetup([1], parameters=given, steps=2, **how), **own)


@pytest.mark.parametrize("name", STUDIES)
def test_the_requests_of_a_placebo_lack_the_cause_and_nothing_else(name, tmp_path) -> None:
    _, cause, filler = STUDIES[name]
    with FaultyServer(stolid) as server:
        design = findings(name, folder=tmp_path, llm="stub", access={"api_base": server.url}).design
    assert {arm.llm for arm in design if arm.kind != "reference"} == {"stub"}
    assert {arm.llm for arm in design if arm.kind == "reference"} == {"rule"}
    for placebo in (arm for arm in design if arm.kind == "placebo"):
        treated, control = (requests_of(tmp_path, one) for one in (placebo.placebo_of, placebo.name))
        assert treated != control
        assert [re.sub(cause, r"\1", one) for one in treated] == [
            re.sub(filler or "()$^", r"\1", one) for one in control
        ]


@pytest.mark.parametrize("name", STUDIES)
def test_rule_twins_run_with_the_placebo_and_without_a_second_twin(name) -> None:
    design = findings(name).design
    assert {arm.kind for arm in design} == {"treated", "placebo"}
    assert {arm.llm for arm in design} == {"rule"}


@pytest.mark.parametrize("name", [f"{package} {name}" for package, one in find_studies()[0].items() for name in one])
def test_each_study_says_its_placebo_or_why_it_has_none(name) -> None:
    study = find_study(*name.split())
    assert study.placebo.startswith("none, as ") is (name not in {*STUDIES, *WITH_PLACEBOS})


@pytest.mark.parametrize(
    ("name", "n_seeds", "text"),
    [
        ("oasis herd", 30, "30 pairs of runs find a difference of 0.53 standard deviations"),
        ("discussion debate", 1, "10 pairs of rooms find a difference of 1.00 standard deviations"),
        ("classics schelling", 1, "1 pair of runs can show nothing"),
    ],
)
def test_a_study_says_beforehand_what_its_seeds_can_find(name, n_seeds, text) -> None:
    assert text in power_of(find_study(*name.split()), StudySetup(range(n_seeds)))


@pytest.mark.parametrize(("smallest", "verdict"), [(None, "cannot tell"), (5.0, "absent")])
def test_a_study_calls_a_difference_absent_only_within_a_smallest_effect(smallest, verdict) -> None:
    small = {"n_agents": 20, "posts_per_step": 2}
    found = study("oasis", "herd", seeds=5, steps=2, parameters=small, smallest_effect=smallest)
    (table,) = (part for part in found.parts() if part.title == "Against the placebo: votes hidden")
    assert {row["verdict"] for row in table.rows} == {verdict}


def test_a_smallest_effect_is_above_0() -> None:
    with pytest.raises(ConfigError, match=r"smallest_effect=-1: wanted a number above 0"):
        study("oasis", "herd", seeds=1, smallest_effect=-1)
