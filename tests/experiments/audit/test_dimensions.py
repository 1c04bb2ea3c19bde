"""Perturbations of a model: what is run, and why the rest is not."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest

from mesa_llm import LLMAgent, LLMModel, LLMScenario, Observation, Structure
from mesa_llm.experiments.audits import claim_from, plan_for
from mesa_llm.experiments.audits.claim import compared
from mesa_llm.experiments.audits.dimensions import (
    Perturbation,
    Setting,
    audited_dimensions,
    not_run_texts,
    perturbation,
    presentation,
)
from mesa_llm.experiments.runs.agent_statistic import AgentStatistic


class HarbourScenario(LLMScenario):
    """Parameters of the harbour."""

    n_agents: int = 2
    """Number of boats."""

    storm: Annotated[int, Structure(9, 88, 99)] = 0
    """Step of the storm."""

    depth: Annotated[int, Structure(2)] = 5
    """Depth of the harbour."""

    price: Annotated[int, Structure(7)] = 1
    """Price of fish, which no boat is told."""

    paint: Annotated[int, Structure(3)] = 1
    """Coats of paint, which nobody is told and no result holds."""


class Boat(LLMAgent):
    """Goes out, or stays."""

    @property
    def coats(self) -> int:
        """Coats of paint."""
        return self.model.scenario.paint

    def observe(self) -> Observation:
        """See the sky."""
        sky = "A storm is coming." if self.model.now == self.model.scenario.storm else "Fair weather."
        return Observation(sky, answer=Literal["go", "stay"])

    def receive(self, answer: str, label: str, world: str) -> str:
        """Catch a fish."""
        self.model.fish += answer == "go"
        return "Done."


class HarbourModel(LLMModel):
    """Boats that go out."""

    scenario_class = HarbourScenario

    def __init__(self, scenario: HarbourScenario | None = None, **options: Any) -> None:
        super().__init__(scenario, **options)
        if self.scenario.depth < 3:
            raise ValueError("no boat floats; dig deeper")
        self.fish = 0
        for _ in range(self.scenario.n_agents):
            Boat(self)

    def end_step(self) -> None:
        """End after twelve steps."""
        self.running = self.now < 12

    def results(self) -> dict[str, Any]:
        """Return the earnings of all boats."""
        return {"earned": self.fish * self.scenario.price}


PLAN = plan_for(HarbourModel, Setting(), llms=["rule"], fixed=["options.activation"])
REASONS = {one.perturbation.name: (one.reason, one.detail) for one in PLAN.not_run}


@pytest.mark.parametrize(
    "name",
    [
        "a plan first",  # a second request before each decision
        "storm 9",  # shows in step 9 alone
        "price 7",  # changes what comes of it, and nothing that is read
        "no memory",
        "twice as many agents",
    ],
)
def test_what_changes_requests_or_results_anywhere_in_a_run_is_run(name: str) -> None:
    assert name in [one.name for one in PLAN.perturbations]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("persona as a table", ("no effect", "")),  # nobody has one
        ("storm 99", ("no effect", "")),  # after the last step
        ("depth 2", ("refused", "ValueError: no boat floats")),
        ("all decide at once", ("compared", "")),
        ("language model rule", ("duplicate", "a language model that is run already")),
        ("no persona", ("no effect", "")),
    ],
)
def test_what_is_not_run_says_why(name: str, reason: tuple[str, str]) -> None:
    assert REASONS[name] == reason


def test_a_perturbation_that_is_the_same_as_another_one_says_which() -> None:
    plan = plan_for(HarbourModel, Setting({"storm": 5}), dimensions=["environment structure"])
    same = {one.perturbation.name: one.detail for one in plan.not_run if one.reason == "duplicate"}
    assert same == {"storm 99": "“storm 88”"}  # two storms after the last step
    twice = plan_for(HarbourModel, Setting(), dimensions=["language model"], llms=["tiny", "tiny"])
    assert [one.reason for one in twice.not_run if one.perturbation.llm] == ["duplicate"]


def test_what_changes_only_the_second_setting_of_a_claim_is_run() -> None:
    kind = Setting(design={"persona": "You are kind."})
    names = [one.name for one in plan_for(HarbourModel, Setting(), others=[kind]).perturbations]
    assert "persona as a table" in names


def test_what_changes_only_a_statistic_over_agents_is_run() -> None:
    own: Any = {"dimensions": ["environment structure"], "over_agents": [AgentStatistic("coats", "mean", {}, {})]}
    assert REASONS["paint 3"] == ("no effect", "")
    assert "paint 3" in [one.name for one in plan_for(HarbourModel, Setting(), **own).perturbations]


def test_language_models_that_a_claim_compares_are_no_perturbations() -> None:
    claim = claim_from(
        "own", {"measure": "earned", "between": [{"llm": "a"}, {"llm": "b"}], "smallest_effect": 1}, HarbourModel
    )
    plan = plan_for(HarbourModel, Setting(), llms=["c"], dimensions=["language model"], fixed=compared([claim]))
    assert "language model c" in [one.perturbation.name for one in plan.not_run if one.reason == "compared"]


def test_a_run_that_is_too_long_to_be_tried_to_its_end_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mesa_llm.experiments.audits.dimensions.MAX_REQUESTS", 10)
    names = [one.name for one in plan_for(HarbourModel, Setting(), dimensions=["environment structure"]).perturbations]
    assert "storm 99" in names


def test_sentences_name_what_was_not_run_by_reason() -> None:
    texts = not_run_texts(PLAN.not_run)
    assert "Not run (refused by the model: ValueError: no boat floats): depth 2." in texts
    assert (
        "Not run (set by the claims themselves): all decide at once, in order of creation, one after another." in texts
    )


@pytest.mark.parametrize(
    ("perturbations", "dimensions"),
    [
        ([perturbation("language model", "temperature 0", settings={"temperature": 0.0})], []),
        ([perturbation("language model", "language model b", llm="b")], ["language model"]),
        ([presentation("format", "list", observation_form="list")] * 2, ["format"]),
        ([], []),
    ],
)
def test_another_temperature_is_no_other_language_model(
    perturbations: list[Perturbation], dimensions: list[str]
) -> None:
    assert audited_dimensions(perturbations) == dimensions


def test_the_number_of_agents_is_known_of_each_perturbation() -> None:
    scales = {one.name: one.scale for one in PLAN.perturbations}
    assert (scales["twice as many agents"], scales["half as many agents"], scales["price 7"]) == (2, 0.5, 1)
