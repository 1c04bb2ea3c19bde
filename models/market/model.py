"""A prediction market whose traders know a little each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import resources
from typing import Literal, Unpack

import pandas as pd
from mesa.datacollection import DataCollector
from mesa.experimental.scenarios import Scenario

from mesa_llm import LLMModel, Settings
from mesa_llm.llm.base import LLM
from mesa_llm.options import ModelOptions, within
from mesa_llm.population import invented
from mesa_llm.worlds.market import (
    Forecast,
    ForecastScore,
    MakerName,
    PredictionMarkets,
    Question,
    TradeLimits,
    score_forecasts,
)
from models.market.agents import Trader
from models.market.questions import asked, fates, hint
from models.market.story import tell

RULES = resources.files("models.market").joinpath("prompts", "rules.md").read_text(encoding="utf-8").strip()
"""What every trader is told."""


class MarketScenario(Scenario):
    """Parameters of a prediction market."""

    n_agents: int = 12
    n_questions: int = 4
    maker: MakerName | None = None
    rules: Literal["corrected", "original"] = "corrected"
    horizon: int = 10
    noise: float = 1.0
    cash: float = 1000.0
    liquidity: float = 500.0
    fee: float = 0.0


class MarketModel(LLMModel):
    """Traders with hints of the answers bet on questions, which are answered one after the other.

    Attributes:
        world: The markets.
        fates: What becomes of each question, in the order asked; no trader sees it.
        rules: What every trader is told first.
        horizon: Step in which the last question is answered.
    """

    def __init__(
        self,
        n_agents: int = 12,
        n_questions: int = 4,
        questions: Sequence[str] | None = None,
        chances: Sequence[float] | None = None,
        maker: MakerName | None = None,
        rules: Literal["corrected", "original"] = "corrected",
        horizon: int = 10,
        noise: float = 1.0,
        cash: float = 1000.0,
        liquidity: float = 500.0,
        fee: float = 0.0,
        most_dollars: float | None = None,
        most_move: float | None = None,
        memory: str = "window:6",
        llm: str | LLM = "rule",
        rng: int | str | None = None,
        scenario: MarketScenario | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        """Open the markets, and let each trader find something out.

        Args:
            n_agents: Traders.
            n_questions: Invented questions, where `questions` asks nothing else.
            questions: What is asked.
            chances: Probability of yes of each question; 1 and 0 for known answers. None: drawn.
            maker: Who trades with everyone; None: `fixed_product`, or `constant_product_legacy` under original rules.
            rules: `original` is SimSwarm's market: traders see no cash, and no question is ever paid out.
            horizon: Step in which the last question is answered; the others are answered before, evenly spread.
            noise: Standard deviation of the log-odds of what traders find out, around the truth.
            cash: Dollars each trader starts with.
            liquidity: Depth of the makers.
            fee: Share of every trade that the house keeps.
            most_dollars: Most dollars of one trade; None: no limit.
            most_move: Most by which one trade may move a price, as a difference of probabilities; None: no limit.
            memory: What traders remember with.
            llm: What traders think with.
            rng: Seed.
            scenario: The parameters as a Mesa scenario; goes before the single ones.
            **options: As of `LLMModel`.
        """
        if scenario is not None:
            n_agents, n_questions = scenario.n_agents, scenario.n_questions
            maker, rules = scenario.maker, scenario.rules
            horizon, noise, cash = scenario.horizon, scenario.noise, scenario.cash
            liquidity, fee = scenario.liquidity, scenario.fee
        super().__init__(llm=llm, rng=rng, scenario=scenario, **options)
        self.rules, self.horizon = RULES, horizon
        self.fates = fates(questions or asked(within("n_questions", n_questions, 1)), chances, horizon, self.random)
        self.world = PredictionMarkets(
            [Question(fate.text, due=fate.due) for fate in self.fates],
            maker=maker,
            cash=cash,
            liquidity=liquidity,
            fee=fee,
            limits=TradeLimits(most_dollars, most_move),
            rules=rules,
        )
        self.worlds = (self.world,)
        self._gather(n_agents, noise, memory)
        self.datacollector = DataCollector(
            model_reporters={name: name for name in ("dollars_traded", "price_error", "brier", "gini")}
            | {"traders": "traders_cash", "makers": "makers_cash", "fees": "fees", "refused": "n_refused"},
            agent_reporters={"cash": "cash", "wealth": "wealth"},
        )
        self.datacollector.collect(self)

    def _gather(self, n_agents: int, noise: float, memory: str) -> None:
        """Let the traders come, each with hints of its own."""
        within("noise", noise, 0)
        for persona in invented(within("n_agents", n_agents, 1), self.random):
            hints = {
                market_id: hint(fate.chance, noise, self.random)
                for market_id, fate in zip(self.world.ledger.markets, self.fates, strict=True)
            }
            Trader(self, hints, config=persona.config(settings=Settings(max_tokens=2000)), memory=memory)
        self.world.names = {trader.unique_id: trader.config.name for trader in self.agents}

    def end_step(self) -> None:
        """Answer the questions that are due, and end after the last; under the original rules nothing is paid."""
        if not self.world.is_original:
            for market_id, fate in zip(self.world.ledger.markets, self.fates, strict=True):
                if fate.due == self.now:
                    self.world.resolve(market_id, "yes" if fate.is_yes else "no")
        self.running = self.now < self.horizon

    # -- measures

    def wealth_of(self, trader: int) -> float:
        """Give a trader's cash, and its shares at the shown prices, in dollars."""
        portfolio = self.world.ledger.portfolio(trader)
        held = (
            shares * self.world.ledger.markets[market_id].maker.price(outcome)
            for market_id, sides in portfolio.shares.items()
            for outcome, shares in sides.items()
        )
        return portfolio.cash + math.fsum(held)

    @property
    def traders_cash(self) -> float:
        """Cash of all traders together, in dollars."""
        return math.fsum(trader.cash for trader in self.agents)

    @property
    def makers_cash(self) -> float:
        """Cash of all makers together, in dollars: what backs the shares."""
        return math.fsum(market.maker_cash for market in self.world.ledger.markets.values())

    @property
    def fees(self) -> float:
        """Fees collected so far, in dollars."""
        return math.fsum(market.fees for market in self.world.ledger.markets.values())

    @property
    def money(self) -> float:
        """All cash there is, in dollars; it never changes."""
        return self.traders_cash + self.makers_cash + self.fees

    @property
    def dollars_traded(self) -> float:
        """Dollars that changed hands so far."""
        return math.fsum(trade.dollars for trade in self.world.ledger.trades)

    @property
    def n_refused(self) -> int:
        """Actions of the last step that were refused."""
        return sum(not outcome.ok for outcomes in self.last_outcomes.values() for outcome in outcomes)

    @property
    def price_error(self) -> float:
        """Mean distance of price and chance over all questions, 0 to 1, as each last stood."""
        markets = self.world.ledger.markets.values()
        errors = [
            abs((market.prices_yes[-1] if market.answer else market.maker.price("yes")) - fate.chance)
            for market, fate in zip(markets, self.fates, strict=True)
        ]
        return math.fsum(errors) / len(errors)

    @property
    def brier(self) -> float | None:
        """Brier score of the prices at which questions were answered so far; None before the first."""
        forecasts = self.forecasts()
        return score_forecasts(forecasts).brier if forecasts else None

    @property
    def gini(self) -> float:
        """Inequality of the traders' wealth, 0 to 1."""
        wealth = sorted(trader.wealth for trader in self.agents)
        total, n = math.fsum(wealth), len(wealth)
        ranked = math.fsum((2 * rank - n - 1) * owned for rank, owned in enumerate(wealth, start=1))
        return ranked / (n * total) if total > 0 else 0.0

    def forecasts(self) -> tuple[Forecast, ...]:
        """Give what the prices said of the questions that are due by now, and what came true."""
        if not self.world.is_original:
            return self.world.forecasts()
        markets = self.world.ledger.markets.values()
        return tuple(
            Forecast(market.market_id, paid[fate.due], math.fsum(paid[: fate.due]) / fate.due, fate.is_yes)
            for market, fate in zip(markets, self.fates, strict=True)
            if len(paid := market.prices_yes) > fate.due
        )

    def scores(self) -> ForecastScore:
        """Score the prices against the answers: Brier score, logarithmic score, calibration.

        Raises:
            ValueError: Before the first question is answered.
        """
        return score_forecasts(self.forecasts())

    def hint_scores(self) -> ForecastScore:
        """Score what single traders found out, all of them taken together, on the same questions."""
        answered = {forecast.market_id: forecast.is_yes for forecast in self.forecasts()}
        return score_forecasts(
            [
                Forecast(market_id, trader.hints[market_id], trader.hints[market_id], is_yes)
                for trader in self.agents
                for market_id, is_yes in answered.items()
            ]
        )

    def price_table(self) -> pd.DataFrame:
        """Give the price of YES by step (from 0) and market; NaN after a question was answered."""
        return pd.DataFrame({key: pd.Series(market.prices_yes) for key, market in self.world.ledger.markets.items()})

    def story(self) -> str:
        """Say in words what happened: prices, answers, winners and losers, and how well the prices foretold."""
        return tell(self)
