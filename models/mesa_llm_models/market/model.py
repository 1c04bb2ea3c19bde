"""A prediction market whose traders each know a little."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import pandas as pd
from mesa.datacollection import DataCollector
from pydantic import Field, TypeAdapter, ValidationError
from scipy.special import expit, logit

from mesa_llm import AgentConfig, Label, LLMModel, LLMOptions, LLMScenario, Settings, Slider, Structure
from mesa_llm.errors import ConfigError
from mesa_llm.model.measures import gini
from mesa_llm.model.text_extraction import Bet, checked_bets
from mesa_llm.population import drawn_personas, invented
from mesa_llm.tables import read_text
from mesa_llm.text import counted, quoted
from mesa_llm.tools.tool import describe
from mesa_llm.world import Rules
from mesa_llm_models.market.agents import MarketTrader
from mesa_llm_models.market.text import BETTING
from mesa_llm_models.market.world import (
    Forecast,
    ForecastScore,
    MakerName,
    MarketQuestion,
    PredictionMarkets,
    TradeLimits,
    score_forecasts,
)

QUESTIONS = tuple(
    resources.files("mesa_llm_models.market").joinpath("data", "questions.txt").read_text(encoding="utf-8").splitlines()
)
"""Invented questions about a small town."""

CHANCES, HINTS = (0.02, 0.98), (0.001, 0.999)
"""Bounds of the chances that hints are drawn around, and of the hints."""

STORY_LINES = 8
"""Maximum number of trades, and of remarks, in the story of a run."""


class MarketScenario(LLMScenario):
    """Parameters of a prediction market."""

    n_agents: Annotated[int, Field(ge=1), Slider(1, 50, label="Traders")] = 12
    """Number of traders."""

    n_questions: Annotated[int, Field(ge=1), Slider(1, 20, label="Questions"), Structure(2, 8)] = 4
    """Number of invented questions; without effect where `questions` are given."""

    questions: str | Annotated[Sequence[str], Field(min_length=1)] | None = None
    """Questions to bet on, or a JSON file of them with `question` and `price`, as `mesa-llm extract --markets`
    writes it; None: invented ones."""

    chances: Sequence[Annotated[float, Field(ge=0, le=1)]] | None = None
    """Probability of yes of each question; 1 and 0 for known answers. None: drawn, uniform from 0.05 to 0.95."""

    maker: Annotated[MakerName | None, Label("Market maker"), Structure("lmsr")] = None
    """Market maker; None: `fixed_product`, or `constant_product_legacy` under the original rules."""

    rules: Rules = "corrected"
    """`original` is SimSwarm's market: traders see no cash, and no question is ever paid out."""

    horizon: Annotated[int, Field(ge=1), Slider(1, 50, label="Last answer in step")] = 10
    """Step in which the last question is answered; the others are answered before, evenly spread."""

    noise: Annotated[float, Field(ge=0), Slider(0, 4, 0.1, label="Error of private hints")] = 1.0
    """Standard deviation of the error of traders' hints, in units of log-odds."""

    cash: Annotated[float, Field(ge=0), Slider(0, 5000, 100, label="Cash at the start, $")] = 1000.0
    """Dollars each trader starts with."""

    liquidity: Annotated[
        float, Field(gt=0), Slider(20, 2000, 20, label="Depth of the market, $"), Structure(250.0, 1000.0)
    ] = 500.0
    """Depth of the market makers, in dollars: prices move less where it is larger."""

    fee: Annotated[float, Field(ge=0, lt=1), Slider(0, 0.1, 0.005, label="Fee, share of a trade")] = 0.0
    """Share of the dollars of every trade that is kept as a fee."""

    max_trade_dollars: Annotated[
        Annotated[float, Field(gt=0)] | None, Label("Maximum of one trade, $ (empty: none)")
    ] = None
    """Maximum number of dollars of one trade; None: no limit."""

    max_trade_move: Annotated[
        Annotated[float, Field(gt=0)] | None, Label("Maximum price change of one trade, $ (empty: none)")
    ] = None
    """Maximum change of a price by one trade, as a difference of probabilities; None: no limit."""

    people: Annotated[Literal["drawn", "alike"], Label("Who the traders are")] = "drawn"
    """Who the traders are: people with a name, a life and a way of betting, or with a name only."""

    memory: str = "window:6"
    """Memory of the traders."""

    def check(self) -> None:
        """Check that there is a chance for each question.

        Raises:
            ConfigError: If there is not.
        """
        n = self.n_questions if self.questions is None else len(bets_of(self))
        if self.chances is not None and len(self.chances) != n:
            raise ConfigError(f"chances are one number from 0 to 1 for each of {n} questions, got {len(self.chances)}")


@dataclass(frozen=True, slots=True)
class Fate:
    """The future of one question, which no trader sees."""

    text: str
    """The question."""

    chance: float
    """Probability of yes, 0 to 1; traders have hints of it."""

    is_yes: bool
    """The answer."""

    due: int
    """Step in which it is answered."""


class MarketModel(LLMModel):
    """Traders with hints of the answers bet on questions, which are answered one after the other.

    Attributes:
        world: The markets.
        fates: The future of each question, in the order of the questions; no trader sees it.
    """

    scenario_class = MarketScenario
    changeable = ("horizon",)
    scenario: MarketScenario

    def __init__(self, scenario: MarketScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        parameters = self.scenario
        bets = bets_of(parameters)
        questions = [bet.question for bet in bets]
        self.fates = draw_fates(questions, parameters.chances, parameters.horizon, self.random)
        self.world = PredictionMarkets(
            [MarketQuestion(fate.text, bet.price, fate.due) for fate, bet in zip(self.fates, bets, strict=True)],
            maker=parameters.maker,
            cash=parameters.cash,
            liquidity=parameters.liquidity,
            fee=parameters.fee,
            limits=TradeLimits(parameters.max_trade_dollars, parameters.max_trade_move),
            shows_results=parameters.memory == "none",
            rules=parameters.rules,
        )
        self.worlds = (self.world,)
        for config in self._configs():
            MarketTrader(self, self._draw_hints(), config=config, memory=parameters.memory)
        self.world.names = {trader.unique_id: trader.config.name for trader in self.agents}
        self.datacollector = DataCollector(
            model_reporters={name: name for name in ("dollars_traded", "price_error", "brier", "gini")}
            | {"traders": "traders_cash", "makers": "makers_cash", "fees": "fees", "refused": "n_refused"},
            agent_reporters={"cash": "cash", "wealth": "wealth"},
        )
        self.datacollector.collect(self)

    def _configs(self) -> list[AgentConfig]:
        """Return who the traders are; how they bet is drawn from a stream of its own."""
        people, settings = invented(self.scenario.n_agents, self.random), Settings(max_tokens=2000)
        if self.scenario.people == "alike":
            return [AgentConfig(name=person.name, settings=settings) for person in people]
        ways = drawn_personas(len(people), random.Random(f"people {self.run_seed}"), BETTING)
        return [
            person.config(persona=f"{person.persona} {way.persona}", settings=settings)
            for person, way in zip(people, ways, strict=True)
        ]

    def _draw_hints(self) -> dict[str, float]:
        """Draw one trader's hint about each market."""
        noise = self.scenario.noise
        return {
            market_id: draw_hint(fate.chance, noise, self.random)
            for market_id, fate in zip(self.world.ledger.markets, self.fates, strict=True)
        }

    def end_step(self) -> None:
        """Answer the questions that are due, and end after the last; under the original rules nothing is paid."""
        if not self.world.is_original:
            for market_id, fate in zip(self.world.ledger.markets, self.fates, strict=True):
                if fate.due == self.now:
                    self.world.resolve(market_id, "yes" if fate.is_yes else "no")
        self.running = self.now < self.scenario.horizon

    # -- measures

    def wealth_of(self, trader_id: int) -> float:
        """Compute a trader's cash, and its shares at the current prices, in dollars."""
        portfolio = self.world.ledger.portfolio(trader_id)
        markets = self.world.ledger.markets
        values = (
            shares * markets[market_id].maker.price(outcome)
            for market_id, sides in portfolio.shares.items()
            for outcome, shares in sides.items()
        )
        return portfolio.cash + math.fsum(values)

    @property
    def traders_cash(self) -> float:
        """Cash of all traders, in dollars."""
        return math.fsum(trader.cash for trader in self.agents)

    @property
    def makers_cash(self) -> float:
        """Cash of all market makers, in dollars: it backs the shares."""
        return math.fsum(market.maker_cash for market in self.world.ledger.markets.values())

    @property
    def fees(self) -> float:
        """Fees collected so far, in dollars."""
        return math.fsum(market.fees for market in self.world.ledger.markets.values())

    @property
    def money(self) -> float:
        """All cash, in dollars; it never changes."""
        return self.traders_cash + self.makers_cash + self.fees

    @property
    def dollars_traded(self) -> float:
        """Dollars that changed hands so far."""
        return math.fsum(trade.dollars for trade in self.world.ledger.trades)

    @property
    def price_error(self) -> float:
        """Mean distance of the last price of a question from its chance, 0 to 1."""
        markets = self.world.ledger.markets.values()
        errors = [
            abs((market.prices_yes[-1] if market.answer else market.maker.price("yes")) - fate.chance)
            for market, fate in zip(markets, self.fates, strict=True)
        ]
        return math.fsum(errors) / len(errors)

    @property
    def brier(self) -> float | None:
        """Brier score of the last prices of the questions answered so far; None before the first answer."""
        forecasts = self.forecasts()
        return score_forecasts(forecasts).brier if forecasts else None

    @property
    def gini(self) -> float:
        """Inequality of the traders' wealth, 0 to 1."""
        return gini(trader.wealth for trader in self.agents)

    def forecasts(self) -> tuple[Forecast, ...]:
        """Return the prices of the questions that are due by now, and their answers."""
        if not self.world.is_original:
            return self.world.forecasts()
        markets = self.world.ledger.markets.values()
        return tuple(
            Forecast(market.market_id, path[fate.due], math.fsum(path[: fate.due]) / fate.due, fate.is_yes)
            for market, fate in zip(markets, self.fates, strict=True)
            if len(path := market.prices_yes) > fate.due
        )

    def scores(self) -> ForecastScore:
        """Score the prices against the answers: Brier score, logarithmic score, calibration.

        Raises:
            ValueError: Before the first question is answered.
        """
        return score_forecasts(self.forecasts())

    def hint_scores(self) -> ForecastScore:
        """Score the hints of all traders on the questions answered so far.

        Raises:
            ValueError: Before the first question is answered.
        """
        answers = {forecast.market_id: forecast.is_yes for forecast in self.forecasts()}
        return score_forecasts(
            [
                Forecast(market_id, trader.hints[market_id], trader.hints[market_id], is_yes)
                for trader in self.agents
                for market_id, is_yes in answers.items()
            ]
        )

    def results(self) -> dict[str, Any]:
        """Return the measures of the last step, and the scores of the prices and of single traders' hints by name."""
        if not self.forecasts():
            return super().results()
        prices, hints = self.scores(), self.hint_scores()
        scores = {"answered": prices.count, "log_score": prices.log_score, "hint_brier": hints.brier}
        return super().results() | scores | {"calibration_error": prices.calibration_error}

    def price_table(self) -> pd.DataFrame:
        """Return the price of YES by step (from 0) and market; NaN after a question was answered."""
        return pd.DataFrame({key: pd.Series(market.prices_yes) for key, market in self.world.ledger.markets.items()})

    def story(self) -> str:
        """Summarise the last trades and remarks, the moves of prices, the gains, and the accuracy of prices."""
        lines = [*_trade_lines(self), *_price_lines(self)]
        ranked = sorted(self.agents, key=lambda trader: -trader.wealth)
        best, worst = ranked[0], ranked[-1]
        lines.append(
            f"{best.config.name} stands best with ${best.wealth:,.2f}, "
            f"{worst.config.name} worst with ${worst.wealth:,.2f}."
        )
        if forecasts := self.forecasts():
            lines.append(
                f"Brier score of the prices on {counted(len(forecasts), 'question')}: {self.scores().brier:.3f}; of "
                f"single traders' own research: {self.hint_scores().brier:.3f} (0 is best, 0.25 is a coin)."
            )
        return "\n".join(["What happened:", *lines])


def _trade_lines(model: MarketModel) -> list[str]:
    """Describe the last trades and remarks."""
    ledger, names = model.world.ledger, model.world.names
    verbs = {"buy": "buys", "sell": "sells"}
    remarks = [comment for comments in ledger.comments.values() for comment in comments]
    return [
        *(
            f"Step {trade.step}: {names[trade.agent_id]} {verbs[trade.side]} {trade.shares:.1f} "
            f"{trade.outcome.upper()} of [{trade.market_id}] for ${trade.dollars:.2f}; YES is at "
            f"${trade.price_yes:.2f}."
            for trade in ledger.trades[-STORY_LINES:]
        ),
        *(
            f"Step {remark.step}: {names[remark.agent_id]} on [{remark.market_id}]: {quoted(remark.text, 110)}"
            for remark in remarks[-STORY_LINES:]
        ),
    ]


def _price_lines(model: MarketModel) -> list[str]:
    """Describe the change of each question's price, and its answer."""
    lines: list[str] = []
    for market, fate in zip(model.world.ledger.markets.values(), model.fates, strict=True):
        path = market.prices_yes
        answer = f"Answer: {market.answer}. (Its chance was {fate.chance:.0%}.)" if market.answer else ""
        lines.append(
            f"{market.question.text} YES went from ${path[0]:.2f} to ${path[-1]:.2f}. {answer or 'Not answered yet.'}"
        )
    return lines


# -- what becomes of questions


def bets_of(scenario: MarketScenario) -> list[Bet]:
    """Return the questions to bet on, with their initial prices.

    Raises:
        ConfigError: If their file cannot be read, or is of another form.
    """
    chosen = scenario.questions
    if not isinstance(chosen, str):
        return [Bet(question=text) for text in chosen or invented_questions(scenario.n_questions)]
    try:
        bets = TypeAdapter(list[Bet]).validate_json(read_text(chosen))
    except ConfigError as error:
        raise ConfigError(f"questions: {chosen!r} cannot be read: {error}") from error
    except ValidationError as error:
        raise ConfigError(f"questions: {chosen!r} holds no list of questions: {describe(error)}") from None
    if not bets:
        raise ConfigError(f"questions: {chosen!r} holds no question")
    return checked_bets(bets)


def invented_questions(n: int) -> list[str]:
    """Return invented questions; after all of them they repeat, for a later year.

    Args:
        n: Number of questions.
    """
    years = ("", *(f" (year {year})" for year in range(2, n // len(QUESTIONS) + 2)))
    return [f"{text}{year}" for year in years for text in QUESTIONS][:n]


def draw_fates(texts: Sequence[str], chances: Sequence[float] | None, horizon: int, rng: random.Random) -> list[Fate]:
    """Draw the future of questions.

    Args:
        texts: The questions.
        chances: Probability of yes of each; None: drawn, uniform from 0.05 to 0.95.
        horizon: Step in which the last question is answered; the others are answered before, evenly spread.
        rng: Source of random draws.
    """
    probabilities = [rng.uniform(0.05, 0.95) for _ in texts] if chances is None else chances
    return [
        Fate(text, probability, rng.random() < probability, math.ceil(horizon * rank / len(texts)))
        for rank, (text, probability) in enumerate(zip(texts, probabilities, strict=True), start=1)
    ]


def draw_hint(probability: float, noise: float, rng: random.Random) -> float:
    """Draw one trader's hint: the chance, with a normal error of its log-odds.

    Args:
        probability: Probability of yes, 0 to 1.
        noise: Standard deviation of the error, in units of log-odds.
        rng: Source of random draws.

    Returns:
        A probability within `HINTS`.
    """
    log_odds = logit(np.clip(probability, *CHANCES)) + rng.gauss(0.0, noise)
    return float(np.clip(expit(log_odds), *HINTS))
