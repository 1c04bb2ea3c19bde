"""The El Farol problem: everybody wants to go out when few others do, and expects what it can from past evenings."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from functools import partial
from operator import mul
from statistics import fmean, linear_regression, pvariance
from typing import Annotated, Any, Literal, NamedTuple, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    Label,
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
from mesa_llm_models.classics.el_farol.text import STAYED, TRAITS, WENT, Past, observation_text
from mesa_llm_models.classics.people import People, configs_of

Kind = Literal["same as", "mirror of", "mean of", "trend of"]
"""How a predictor looks back."""

Pool = Literal["arthur", "linear"]
"""Where predictors come from: the kinds that Arthur names, shared by all; or linear strategies with random weights, of
each person's own, as in NetLogo's version."""


class FarolScenario(LLMScenario):
    """Parameters of the town and its bar."""

    n_agents: Annotated[int, Field(ge=2, le=1000), Slider(5, 200, label="People"), Structure(30, 200)] = 100
    """Number of people."""

    threshold: Annotated[float, Field(gt=0, lt=1), Slider(0.1, 0.9, 0.05)] = 0.6
    """Share of people from which on the bar is crowded."""

    pool: Pool = "arthur"
    """Where the predictors of rule twins come from: the kinds that Arthur names, or random linear strategies."""

    predictors: Annotated[int, Field(ge=1), Slider(1, 20)] = 6
    """Number of predictors of each rule twin, drawn from the pool (of Arthur's, at most as many as there are)."""

    weeks: Annotated[int, Field(ge=2, le=52), Slider(2, 20), Structure(4, dimension="context")] = 8
    """Number of past weeks whose attendance people know."""

    fading: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.9
    """Weight of the past in the error of a predictor of Arthur's kinds; the latest week has the rest."""

    people: Annotated[People, Label("Persons")] = "drawn"
    """Whether agents are people with names and traits, drawn with the seed, or all alike."""

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


class LinearStrategy(NamedTuple):
    """A forecast that is a constant plus a weighted sum of the attendances of the past weeks.

    Source:
        Rand and Wilensky (2007), NetLogo El Farol model; Fogel, Chellapilla and Angeline (1999), Inductive Reasoning
        and Bounded Rationality Reconsidered, IEEE Transactions on Evolutionary Computation 3(2).
    """

    constant: float
    """Share of all people that it expects in any case."""

    weights: tuple[float, ...]
    """Weight of the attendance of one week ago, of two weeks ago, and so on."""

    def forecast(self, attendances: Sequence[int], n_agents: int) -> float:
        """Return the attendance that it expects, which may be negative or above the number of people.

        Args:
            attendances: Those of the past weeks, oldest first; at least as many as there are weights.
            n_agents: Number of people.
        """
        latest = attendances[: -len(self.weights) - 1 : -1]
        return self.constant * n_agents + sum(map(mul, self.weights, latest))

    def error(self, attendances: Sequence[int], n_agents: int) -> float:
        """Return the sum of its absolute errors, in people, had it forecast each of the latest weeks.

        Args:
            attendances: Those of the past weeks, oldest first; at least twice as many as there are weights.
            n_agents: Number of people.
        """
        n_weeks = len(self.weights)
        return sum(
            abs(self.forecast(attendances[:week], n_agents) - attendances[week])
            for week in range(len(attendances) - n_weeks, len(attendances))
        )


def all_predictors(weeks: int) -> list[Predictor]:
    """Return all predictors that look back at most so many weeks; means and trends need two."""
    kinds: dict[Kind, int] = {"same as": 1, "mirror of": 1, "mean of": 2, "trend of": 2}
    return [Predictor(kind, n) for kind, least in kinds.items() for n in range(least, weeks + 1)]


class Patron(LLMAgent):
    """Goes to the bar or stays at home.

    Attributes:
        errors: Predictor → its error so far, in people: of Arthur's kinds, a mean in which recent weeks weigh more; of
            a linear strategy, the sum over the last `weeks` weeks.
        went: Whether it went last week; None: before the first step.
        evenings: Whether it went in each of the last weeks, oldest first.
        is_out: Whether it goes in this step.
    """

    def __init__(self, model: FarolModel, **components: Any) -> None:
        """Draw predictors; `components` are `config`, `memory`, `llm`, `tools`."""
        super().__init__(model, **components)
        fields = model.scenario
        self.errors: dict[Predictor | LinearStrategy, float]
        if fields.pool == "linear":
            weights = [[self.random.uniform(-1, 1) for _ in range(fields.weeks + 1)] for _ in range(fields.predictors)]
            drawn = [LinearStrategy(constant, tuple(others)) for constant, *others in weights]
            self.errors = {strategy: strategy.error(model.attendances, fields.n_agents) for strategy in drawn}
        else:
            k = min(fields.predictors, len(model.predictors))
            self.errors = dict.fromkeys(self.random.sample(model.predictors, k), 0.0)
        self.went: bool | None = None
        self.evenings: deque[bool] = deque(maxlen=fields.weeks)
        self.is_out = False

    @property
    def forecast(self) -> float:
        """Attendance that its best predictor expects; the first of several that are as good."""
        best = min(self.errors, key=lambda predictor: self.errors[predictor])
        if isinstance(best, LinearStrategy):
            return best.forecast(self.model.attendances, self.model.scenario.n_agents)
        return self.model.forecasts[best]

    def observe(self) -> Observation:
        """Return the attendances of the past weeks."""
        model = self.model
        past = tuple(model.attendances[-model.scenario.weeks :])
        seen = Past(past, model.crowded, model.scenario.n_agents, tuple(self.evenings))
        facts = {"last": past[-1], "mean": fmean(past), "crowded": model.crowded, "forecast": self.forecast}
        return LazyObservation(partial(observation_text, seen), facts=facts)

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
        for predictor in self.errors:
            self.errors[predictor] = self._error_of(predictor)
        self.went = self.is_out
        self.evenings.append(self.is_out)

    def _error_of(self, predictor: Predictor | LinearStrategy) -> float:
        model, fields = self.model, self.model.scenario
        if isinstance(predictor, LinearStrategy):
            return predictor.error(model.attendances[-2 * fields.weeks :], fields.n_agents)
        latest = abs(model.forecasts[predictor] - model.attendance)
        return fields.fading * self.errors[predictor] + (1 - fields.fading) * latest


class FarolModel(LLMModel):
    """Everybody decides at once whether to go to the bar, which is good only if few others do.

    Attributes:
        predictors: All predictors of Arthur's kinds, from which people draw theirs; not used with linear strategies.
        attendances: Number of people who came in each week so far, the oldest first.
        n_drawn: Number of those weeks that lie before the first step, whose attendances are drawn: `weeks`; with linear
            strategies twice as many, so that each can be tried on the last `weeks`.
        forecasts: Predictor of Arthur's kinds → attendance that it expects in this step.
        n_crowded: Number of evenings so far on which the bar was crowded.
    """

    scenario_class = FarolScenario
    scenario: FarolScenario
    changeable = ("threshold", "fading")

    def __init__(self, scenario: FarolScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        fields = self.scenario
        self.predictors = all_predictors(fields.weeks)
        self.n_drawn = fields.weeks * (2 if fields.pool == "linear" else 1)
        self.attendances = [self.random.randint(0, fields.n_agents) for _ in range(self.n_drawn)]
        self._expect()
        configs = configs_of(self, TRAITS, fields.n_agents)
        Patron.create_agents(self, fields.n_agents, memory=fields.memory, config=configs)
        self.datacollector = DataCollector({name: name for name in ("attendance", "variance", "satisfied")})
        self.datacollector.collect(self)

    @property
    def moment(self) -> str:
        """The week, as people remember it."""
        return f"In week {self.now}"

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
        return pvariance(self.attendances[self.n_drawn :] or [0])

    @property
    def satisfied(self) -> float | None:
        """Share of people who went to a bar that was not crowded, or stayed away from one that was; None before the
        first step."""
        is_good = self.attendance < self.crowded
        went = [patron.went for patron in self.agents]
        return None if None in went else fmean(one == is_good for one in went)
