"""The El Farol problem: everybody wants to go out when few others do, and expects what it can from past evenings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import fmean, linear_regression, pvariance
from typing import Annotated, Any, Literal, NamedTuple, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    LazyObservation,
    LLMAgent,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Observation,
    Slider,
    Structure,
    ToolCall,
    action,
)
from mesa_llm_models.classics.el_farol.text import STAYED, WENT, observation_text

Kind = Literal["same as", "mirror of", "mean of", "trend of"]
"""How a predictor looks back."""


class FarolScenario(LLMScenario):
    """Parameters of the town and its bar."""

    n_agents: Annotated[int, Field(ge=2, le=1000), Slider(5, 200, label="People"), Structure(30, 200)] = 100
    """Number of people."""

    threshold: Annotated[float, Field(gt=0, lt=1), Slider(0.1, 0.9, 0.05)] = 0.6
    """Share of people from which on the bar is crowded."""

    predictors: Annotated[int, Field(ge=1), Slider(1, 20)] = 6
    """Number of predictors of each rule twin, drawn from all (at most as many as there are)."""

    weeks: Annotated[int, Field(ge=2, le=52), Slider(2, 20), Structure(4, dimension="context")] = 8
    """Number of past weeks whose attendance people know."""

    fading: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.9
    """Weight of the past in the error of a predictor; the latest week has the rest."""

    memory: str = "none"
    """Memory of the people, besides the past weeks, which they read in any case."""


class Predictor(NamedTuple):
    """A way to forecast the attendance of this week from those of the past weeks."""

    kind: Kind
    """The attendance of one week ago or earlier, or its mirror image around half of all people; or the mean, or the
    continued straight line, of the last weeks."""

    weeks: int
    """Number of weeks that it looks back."""

    def forecast(self, attendances: Sequence[int], n_agents: int) -> float:
        """Return the attendance that it expects.

        Args:
            attendances: Those of the past weeks, oldest first.
            n_agents: Number of people, beyond which no forecast goes.
        """
        past = attendances[-self.weeks :]
        match self.kind:
            case "same as":
                return past[0]
            case "mirror of":
                return n_agents - past[0]
            case "mean of":
                return fmean(past)
            case "trend of":
                slope, start = linear_regression(range(len(past)), past)
                return min(max(start + slope * len(past), 0), n_agents)


def all_predictors(weeks: int) -> list[Predictor]:
    """Return all predictors that look back at most so many weeks; means and trends need two."""
    kinds: dict[Kind, int] = {"same as": 1, "mirror of": 1, "mean of": 2, "trend of": 2}
    return [Predictor(kind, n) for kind, least in kinds.items() for n in range(least, weeks + 1)]


class Patron(LLMAgent):
    """Goes to the bar or stays at home.

    Attributes:
        errors: Predictor → its error so far, in people; recent weeks weigh more.
        went: Whether it went last week; None: before the first step.
        is_out: Whether it goes in this step.
    """

    def __init__(self, model: FarolModel, **components: Any) -> None:
        """Draw predictors; `components` are `config`, `memory`, `llm`, `tools`."""
        super().__init__(model, **components)
        k = min(model.scenario.predictors, len(model.predictors))
        self.errors = dict.fromkeys(self.random.sample(model.predictors, k), 0.0)
        self.went: bool | None = None
        self.is_out = False

    @property
    def forecast(self) -> float:
        """Attendance that its best predictor expects; the first of several that are as good."""
        return self.model.forecasts[min(self.errors, key=lambda predictor: self.errors[predictor])]

    def observe(self) -> Observation:
        """Return the attendances of the past weeks."""
        model = self.model
        past = tuple(model.attendances[-model.scenario.weeks :])
        facts = {"last": past[-1], "mean": fmean(past), "crowded": model.crowded, "forecast": self.forecast}
        return LazyObservation(partial(observation_text, past, model.crowded, self.went), facts=facts)

    def rule(self, seen: Observation) -> ToolCall:
        """Go if the best predictor expects that the bar is not crowded."""
        return ToolCall("go" if seen.facts["forecast"] < self.model.limit else "stay_home")

    @action
    def go(self) -> str:
        """Go to the bar tonight."""
        self.is_out = True
        return WENT

    @action
    def stay_home(self) -> str:
        """Stay at home tonight."""
        return STAYED

    def learn(self) -> None:
        """Compare what its predictors expected with the attendance."""
        fading, attendance = self.model.scenario.fading, self.model.attendance
        for predictor, error in self.errors.items():
            latest = abs(self.model.forecasts[predictor] - attendance)
            self.errors[predictor] = fading * error + (1 - fading) * latest
        self.went = self.is_out


class FarolModel(LLMModel):
    """Everybody decides at once whether to go to the bar, which is good only if few others do.

    Attributes:
        predictors: All predictors from which people draw theirs.
        attendances: Number of people who came in each week so far, the oldest first; those before the first step are
            drawn.
        forecasts: Predictor → attendance that it expects in this step.
        n_crowded: Number of evenings so far on which the bar was crowded.
    """

    scenario_class = FarolScenario
    scenario: FarolScenario
    changeable = ("threshold", "fading")

    def __init__(self, scenario: FarolScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        fields = self.scenario
        self.predictors = all_predictors(fields.weeks)
        self.attendances = [self.random.randint(0, fields.n_agents) for _ in range(fields.weeks)]
        self._expect()
        Patron.create_agents(self, fields.n_agents, memory=fields.memory)
        self.datacollector = DataCollector({name: name for name in ("attendance", "variance", "satisfied")})
        self.datacollector.collect(self)

    @property
    def limit(self) -> float:
        """Number of people below which an evening at the bar is good."""
        return round(self.scenario.threshold * self.scenario.n_agents, 9)

    @property
    def crowded(self) -> int:
        """The first whole number of people that is too many."""
        return math.ceil(self.limit)

    def _expect(self) -> None:
        past = self.attendances[-self.scenario.weeks :]
        self.forecasts = {one: one.forecast(past, self.scenario.n_agents) for one in self.predictors}

    def start_step(self) -> None:
        """Send everybody home; who does not decide stays there."""
        for patron in self.agents:
            patron.is_out = False

    def end_step(self) -> None:
        """Count who came, and let everybody learn from it."""
        self.attendances.append(sum(patron.is_out for patron in self.agents))
        for patron in self.agents:
            patron.learn()
        self._expect()

    @property
    def attendance(self) -> int:
        """Number of people who came in the last step; before the first, in the last of the weeks that are drawn."""
        return self.attendances[-1]

    @property
    def variance(self) -> float:
        """Variance of the attendances of all steps so far, in people²; 0 before the first."""
        return pvariance(self.attendances[self.scenario.weeks :] or [0])

    @property
    def satisfied(self) -> float | None:
        """Share of people who went to a bar that was not crowded, or stayed away from one that was; None before the
        first step."""
        is_good = self.attendance < self.crowded
        went = [patron.went for patron in self.agents]
        return None if None in went else fmean(one == is_good for one in went)
