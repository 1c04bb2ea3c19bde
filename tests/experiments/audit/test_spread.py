"""Claims about agents, subgroups and spread: what cancels in a mean is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from mesa import DataCollector
from pydantic import Field

from mesa_llm import ConfigError, LLMAgent, LLMModel, LLMScenario, Observation
from mesa_llm.experiments.audits import audit, claim_from
from mesa_llm.experiments.audits.claim import AuditClaim
from mesa_llm.experiments.audits.verdict import stability
from mesa_llm.experiments.runs.agent_statistic import STATISTICS, AgentStatistic
from mesa_llm.records import Request
from tests.experiments.audit.test_audit import planted
from tests.faulty_server import FaultyServer


class CampScenario(LLMScenario):
    """Parameters of two camps."""

    n_agents: Annotated[int, Field(ge=2)] = 8
    """Number of voters."""


class Voter(LLMAgent):
    """Belongs to a camp, and says yes or no."""

    def __init__(self, model: Any, side: str, age: int) -> None:
        super().__init__(model)
        self.side, self.age, self.opinion = side, age, 0.0

    def observe(self) -> Observation:
        """See the question."""
        return Observation(f"Side: {self.side}\nDo you agree?", answer=Literal["yes", "no"])

    def rule(self, seen: Observation) -> str:
        """Agree."""
        return "yes"

    def receive(self, answer: str, label: str, world: str) -> str:
        """Take the opinion."""
        self.opinion = float(answer == "yes")
        return f"You said {answer}."


class CampModel(LLMModel):
    """Voters of two sides answer one question."""

    scenario_class = CampScenario

    def __init__(self, scenario: CampScenario | None = None, **options: Any) -> None:
        super().__init__(scenario, **options)
        for index in range(self.scenario.n_agents):
            Voter(self, "left" if index % 2 else "right", 20 + 10 * index)
        self.datacollector = DataCollector({"yes": lambda model: model.agents.agg("opinion", sum)}, {"view": "opinion"})
        self.datacollector.collect(self)

    def end_step(self) -> None:
        """End at once."""
        self.running = False


def opposite(prompt: str, request: Request) -> Any:
    """Answer by side; a table exchanges the answers, which leaves the mean as it is."""
    is_left, is_table = "left" in prompt, "| Side |" in prompt or "|---" in prompt
    return {"answer": "yes" if is_left != is_table else "no"}


def claim(**fields: Any) -> AuditClaim:
    """Return a claim about opinions."""
    return claim_from("one", {"measure": "opinion", "smallest_effect": 0.2, **fields}, CampModel)


def changes(folder: Path, claims: list[AuditClaim], answer: Callable[[str, Request], Any]) -> list[dict[str, str]]:
    """Return the change of each claim under each perturbation of the format."""
    found = planted(
        folder,
        answer,
        model=CampModel,
        claims=claims,
        parameters={},
        design={},
        dimensions=["format"],
        awareness=False,
        seeds=16,
    )
    return [{row.perturbation.name: row.result.change for row in one.perturbations} for one in found.claims]


def test_opposite_reactions_of_subgroups_that_cancel_in_the_mean_are_found(tmp_path: Path) -> None:
    left, right = {"side": "left"}, {"side": "right"}
    claims = [claim(over_agents="mean"), claim(subgroup=left), claim(subgroup=left, against=right)]
    whole, of_left, apart = (one["what is seen as a table"] for one in changes(tmp_path, claims, opposite))
    assert (whole, of_left, apart) == ("stable", "sensitive", "sensitive")


def test_a_spread_between_runs_that_changes_is_found_where_the_mean_stays() -> None:
    rng = np.random.default_rng(1)
    common = rng.standard_normal(30)
    columns = [0.1 * (common + rng.standard_normal(30)), 0.3 * (common + rng.standard_normal(30))]
    same = 0.1 * (common + rng.standard_normal(30))
    found = {}
    for statistic in ("mean", "spread"):
        own = claim_from(
            "one", {"measure": "yes", "statistic": statistic, "smallest_effect": 0.06, "expects": ""}, CampModel
        )
        base, apart, alike = (own.effects([column.tolist()]) for column in (*columns, same))
        found[statistic] = [one.change for one in stability(base, [apart, alike], own.expectation, 0.06)]
    assert found["spread"] == ["sensitive", "stable"]
    assert found["mean"][0] != "sensitive"


@pytest.mark.parametrize("n", [10, 11, 40, 80])
def test_the_spread_of_normal_runs_does_not_depend_on_their_number(n: int) -> None:
    """The mean absolute deviation of a normal variable is √(2/π) of its standard deviation."""
    runs = np.random.default_rng(n).standard_normal((4_000, n))
    own = claim_from("one", {"measure": "yes", "statistic": "spread", "smallest_effect": 0.1}, CampModel)
    mean = np.mean([own.effects([one.tolist()]) for one in runs])
    assert mean == pytest.approx(np.sqrt(2 / np.pi), rel=0.03)


def test_spreads_of_two_settings_are_compared_seed_by_seed_and_missing_runs_are_left_out() -> None:
    own = claim_from(
        "one",
        {"measure": "yes", "statistic": "spread", "smallest_effect": 1, "between": [{"n_agents": 2}, {"n_agents": 4}]},
        CampModel,
    )
    effects = own.effects([[1.0, 2.0, 3.0, float("nan")], [2.0, 2.0, 2.0, 9.0]])
    assert effects[1] == 0
    assert effects[0] == pytest.approx(1.5**0.5)
    assert np.isnan(effects[3])
    assert own.text.startswith("spread between runs of yes, n_agents=2 (first) against n_agents=4 (second)")


AGES = [20.0, 30.0, 40.0, 50.0]


@pytest.mark.parametrize(
    ("statistic", "value"),
    [
        *[("mean", 35), ("median", 35), ("sum", 140), ("min", 20), ("max", 50), ("sd", 12.909944)],
        *[("iqr", 15), ("gini", 0.178571), ("quantile 0.5", 35), ("quantile .9", 47), ("quantile 1", 50)],
    ],
)
def test_statistics_over_agents(statistic: str, value: float) -> None:
    assert AgentStatistic("age", statistic).of(AGES) == pytest.approx(value, abs=1e-6)
    assert set(STATISTICS) >= {statistic} or statistic.startswith("quantile")


@pytest.mark.parametrize(
    ("subgroup", "value"),
    [
        ({}, 35),
        ({"side": "left"}, 40),
        ({"age": {">=": 30, "<": 50}}, 35),
        ({"age": {"in": [20, 50]}}, 35),
        ({"age": {"!=": 50}, "side": "left"}, 30),
        ({"class": "Voter"}, 35),
        ({"side": {">": 3}}, None),
    ],
)
def test_a_subgroup_is_chosen_by_traits(subgroup: dict[str, Any], value: float | None) -> None:
    model = CampModel(n_agents=4, llm="random", rng=1)
    assert AgentStatistic("age", "mean", subgroup).begin(model).value(model) == value


def test_members_of_a_subgroup_are_those_of_the_start_and_agents_that_enter_later_join_by_what_they_are() -> None:
    model = CampModel(n_agents=4, llm="random", rng=1)
    rich = AgentStatistic("age", "sum", {"age": {">": 30}}).begin(model)
    for agent in model.agents:
        agent.age += 100
    Voter(model, "left", 5)
    assert rich.value(model) == 140 + 150
    Voter(model, "left", 50)
    assert rich.value(model) == 140 + 150 + 50


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"over_agents": "spred"}, "no statistic over agents is called 'spred'; there are: mean, .*quantile Q"),
        ({"subgroup": {"age": {"=>": 3}}}, "age: there is no comparison '=>'; there are: =, !=, <"),
        ({"subgroup": {"age": {"in": 3}}}, "age: 'in' takes a list"),
        ({"expects": "first is greater"}, "needs two settings to compare, .* or two subgroups"),
        ({"statistic": "variance"}, "statistic"),
    ],
)
def test_a_faulty_claim_about_agents_says_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        claim(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"over_agents": "mean", "measure": "opinon"}, r"no agent of CampModel has 'opinon'; .*did you mean opinion\?"),
        (
            {"subgroup": {"sied": "left"}},
            r"no agent of CampModel has 'sied'; they have: view, unique_id, side, age, opinion, class",
        ),
    ],
)
def test_what_no_agent_has_is_noticed_before_the_first_run(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        changes(tmp_path, [claim(**fields)], opposite)
    assert not list(tmp_path.rglob("*.sqlite"))


def test_a_claim_about_agents_is_judged_of_runs_made_before_and_nothing_is_asked(tmp_path: Path) -> None:
    options: dict[str, Any] = {"llm": "tiny", "seeds": 2, "dimensions": ["format"], "awareness": False}
    with FaultyServer() as server:
        audit(CampModel, [claim(over_agents="sum")], folder=tmp_path, api_base=server.url, **options)
        n_sent = server.count
        audit(CampModel, [claim(subgroup={"side": "left"})], folder=tmp_path, api_base=server.url, **options)
        assert server.count == n_sent > 0
    assert "mean of opinion (side=left)" in (tmp_path / "runs.csv").read_text(encoding="utf-8")
