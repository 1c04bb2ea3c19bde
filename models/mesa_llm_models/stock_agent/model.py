"""A small stock exchange: traders, two stocks, a bank and a forum."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import takewhile
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Unpack

import pandas as pd
from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    AgentConfig,
    ChatMemory,
    ConfigError,
    Event,
    Failure,
    Hidden,
    Label,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Settings,
    Slider,
    Structure,
    quoted,
)
from mesa_llm.engine.activation import Stage, llm_agents
from mesa_llm.population import drawn_personas
from mesa_llm.text import counted
from mesa_llm.world import Rules
from mesa_llm_models.stock_agent.agents import STYLE, StockTrader, Twin, strategies
from mesa_llm_models.stock_agent.scores import (
    TurnCounts,
    changes_error,
    forecasts_table,
    gemini_paths,
    orders_table,
    sessions_table,
    spread_of,
    styles_table,
    total_change,
    turn_counts_of,
    turns_table,
)
from mesa_llm_models.stock_agent.text import LIVES
from mesa_llm_models.stock_agent.world import (
    STOCKS,
    Calendar,
    Cancellation,
    Close,
    Endowment,
    Exchange,
    Fees,
    Moment,
    Screen,
    Stock,
    Submission,
    TradingRules,
    draw_endowments,
)

Row = TypeVar("Row", Submission, Cancellation)

SETTINGS = Settings(temperature=1.0, max_tokens=2000)
"""Sampling settings of traders; the temperature is that of both studies."""

DAY = "day"
"""Name of the memory with one day's conversation, which is cleared overnight."""

DAY_TOKENS = 12_000
"""Maximum number of tokens of one day's conversation."""

ORIGINAL_DAY_TOKENS = 500_000
"""The same with `fidelity="original"`: room for every order, and for a full-length post by each of 200 traders."""

MAX_TRACED = 500
"""Maximum number of traders whose individual cash and shares are collected in every step."""

MAX_LINES = 12
"""Maximum number of sessions, and of other events, in the story."""

MEASURES = {
    "day": "day",
    "session": "session",
    "stage": "stage",
    "price_A": "price_a",
    "price_B": "price_b",
    "volume_A": "volume_a",
    "volume_B": "volume_b",
    "trades": "n_trades",
    "orders": "n_orders",
    "borrowed": "borrowed",
    "traders": "n_traders",
    "abstention_share": "abstention_share",
    "refused": "n_refused",
    "cancellations": "n_cancellations",
    "fill_ratio": "fill_ratio",
    "spread_A": "spread_a",
    "spread_B": "spread_b",
}
"""Measures of the exchange collected in every step."""

TRADER_MEASURES = {"cash": "cash", "shares_A": "shares_a", "shares_B": "shares_b", "profit": "profit"}
"""Measures of each trader collected in every step."""


class StockAgentScenario(LLMScenario):
    """Parameters of an exchange. Shachi's study has 50 traders and 10 days."""

    n_agents: Annotated[int, Field(ge=1), Slider(1, 100, label="Traders")] = 10
    """Number of traders; 50 in both studies."""

    days: Annotated[int, Field(ge=1), Slider(1, 264, label="Days")] = 10
    """Number of days until the exchange closes: 10 in Shachi's study, 264 in the original program."""

    sessions: Annotated[int, Field(ge=1), Slider(1, 6, label="Sessions a day"), Structure(2, 5)] = 3
    """Number of trading sessions per day."""

    twin: Annotated[Twin, Label("Rule of the traders")] = "mixed"
    """Rule by which rule twins trade."""

    rules: Annotated[Rules, Label("Trading rules")] = "corrected"
    """Trading rules: `original` keeps the defect of the published program, and only equal prices trade."""

    settlement: Annotated[Literal["strict", "one_sided"], Label("Settlement, if corrected")] = "strict"
    """Settlement of fills under the corrected rules: both sides or none, in whole cents (`strict`), or each side
    separately, at equal prices only, as in the original (`one_sided`).
    """

    cross: Annotated[bool | None, Hidden()] = None
    """Whether a bid above an offer trades, rather than only equal prices; needs `strict`. None: yes if `strict`."""

    fees: bool = False
    """Whether to charge the fees that the paper describes but its program omits; needs `strict`."""

    shows_forum: Annotated[bool, Label("Show everyone the forum")] = False
    """Whether to show the forum before every loan decision, as in the original; otherwise traders have a tool to read
    it, as in Shachi's study.
    """

    people: Annotated[Literal["drawn", "alike"], Label("Who the traders are")] = "drawn"
    """Who the traders are: people with a life besides their style of investing, drawn from the seed, or with a style
    only, as always with `fidelity="original"`."""

    memory: Annotated[str | None, Label("Memory")] = None
    """Memory of the traders; `day` for the day's conversation, as in the original. None for `window:3`, or `day` with
    `fidelity="original"`.
    """

    fidelity: Annotated[Literal["corrected", "original"], Label("What traders see and remember")] = "corrected"
    """What traders see and remember: our choice, or what the paper shows (`original`), including the forum before every
    loan decision. `rules` chooses the trading rules.
    """

    def check(self) -> None:
        """Check that the trading rules are consistent.

        Raises:
            ConfigError: If `settlement`, `cross` or `fees` contradicts `rules` or each other.
        """
        if self.rules == "original" and self.settlement != "strict":
            raise ConfigError(f"settlement={self.settlement!r} belongs to the corrected rules; leave it out, or rules=")
        self.trading_rules()

    def trading_rules(self) -> TradingRules:
        """Return the detailed trading rules."""
        fees = Fees() if self.fees else None
        return TradingRules("original" if self.rules == "original" else self.settlement, self.cross, fees)


def by_turn(model: StockAgentModel) -> list[Stage]:
    """Return the traders to act now. Sessions are sequential, so each trader sees the previous orders."""
    traders = {trader.unique_id: trader for trader in llm_agents(model)}
    agents = [traders[agent_id] for agent_id in model.world.turn_order if agent_id in traders]
    return [[trader] for trader in agents] if model.world.takes_turns else [agents]


class StockAgentModel(LLMModel):
    """Traders borrow, trade two stocks through order books, forecast and post, day by day.

    One Mesa step is one stage of the day: the loans, each trading session, the forecasts, the posts. With three
    sessions, a day has six steps.

    Attributes:
        world: The exchange.
        last_moment: Day, stage and session of the last step; None before the first.
        turn_counts: Use of the traders' turns in each session so far.
        trader_class: Class of its traders.
    """

    scenario_class = StockAgentScenario
    trader_class: ClassVar[type[StockTrader]] = StockTrader
    scenario: StockAgentScenario
    changeable = ("days", "shows_forum")

    def __init__(self, scenario: StockAgentScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        options.setdefault("activation", by_turn)
        super().__init__(scenario, **options)
        parameters, is_original = self.scenario, self.scenario.fidelity == "original"
        endowments = draw_endowments(range(1, parameters.n_agents + 1), self.random)
        self.world = Exchange(
            endowments,
            self.random,
            parameters.rules,
            parameters.trading_rules(),
            Calendar(parameters.days, parameters.sessions),
            screen=Screen(shows_posts=parameters.shows_forum or is_original),
        )
        self.worlds = (self.world,)
        if is_original:
            self.instructions = ""
        memory = parameters.memory or (DAY if is_original else "window:3")
        self._forgets = memory == DAY
        self._day_tokens = ORIGINAL_DAY_TOKENS if is_original else DAY_TOKENS
        lives = [""] * len(endowments)
        if parameters.people == "drawn":
            rng = random.Random(f"people {self.run_seed}")
            lives = [person.persona for person in drawn_personas(len(endowments), rng, LIVES)]
        for endowment, strategy, life in zip(
            endowments, strategies(parameters.twin, parameters.n_agents, self.random), lives, strict=True
        ):
            config = (
                AgentConfig(role={STYLE: endowment.style}, settings=SETTINGS)
                if is_original
                else self._config_of(endowment, life)
            )
            own_memory = f"chat:{self._day_tokens}" if self._forgets else memory
            self.trader_class(self, strategy, config=config, memory=own_memory)
        self.last_moment: Moment | None = None
        self.turn_counts: list[TurnCounts] = []
        self.bridge.connect("bankruptcy", self._remove_trader)
        agent_reporters = TRADER_MEASURES if parameters.n_agents <= MAX_TRACED else {}
        self.datacollector = DataCollector(model_reporters=MEASURES, agent_reporters=agent_reporters)
        self.datacollector.collect(self)

    def _config_of(self, endowment: Endowment, life: str) -> AgentConfig:
        """Return the profile of a trader: its number, its style of investing, and its life if it has one."""
        return AgentConfig(
            name=f"Trader {endowment.trader}",
            persona=" ".join(filter(None, (self.prompt(f"{endowment.style.lower()}.md"), life))),
            traits={STYLE: endowment.style},
            settings=SETTINGS,
        )

    def scenario_changed(self) -> None:
        """Pass changes of the last day and of the forum's display on to the exchange."""
        fields = self.scenario
        self.world.set_days(fields.days)
        self.world.screen = Screen(shows_posts=fields.shows_forum or fields.fidelity == "original")

    # -- the day

    def end_step(self) -> None:
        """Store the finished stage. After the day's last stage, clear its conversation; after the last day, stop."""
        self.last_moment = self.world.now
        if self.last_moment.stage == "trade":
            traders = self.world.turn_order
            failed = {trader for trader in traders if isinstance(self.last_decisions.get(trader), Failure)}
            self.turn_counts.append(turn_counts_of(self.last_moment, traders, self.last_outcomes, failed))
        if self._forgets and self.last_moment.stage == "post":
            for trader in llm_agents(self):
                if isinstance(trader.memory, ChatMemory):
                    trader.memory = ChatMemory(self._day_tokens)
        if self.world.calendar.after(self.last_moment).stage == "closed":
            self.running = False

    def _remove_trader(self, event: Event) -> None:
        """Remove an insolvent trader before the next step."""
        if event.source == self.world.name:
            for trader in [agent for agent in llm_agents(self) if agent.unique_id == event.facts["trader"]]:
                trader.remove()

    # -- measures

    def sessions(self) -> pd.DataFrame:
        """Return one row per session: prices, changes, trades, shares, orders and best prices of both stocks."""
        return sessions_table(self.world.history.closes)

    def replies(self) -> pd.DataFrame:
        """Return one row per session: number of traders with an order, a refusal, no order, or a failed decision."""
        return turns_table(self.turn_counts)

    def orders(self) -> pd.DataFrame:
        """Return one row for each trader, stock and side: orders, shares ordered and traded, cancellations."""
        return orders_table(self.world.history, self.world.market.accounts)

    def forecasts(self) -> pd.DataFrame:
        """Compare the traders' forecasts for the next day with their actions."""
        is_traded = self.stage in ("estimate", "post") or (self.session == self.world.calendar.sessions)
        return forecasts_table(self.world.history, self.day if is_traded else self.day - 1)

    def styles(self) -> pd.DataFrame:
        """Return results by investing style: property, profit, orders, loans, departures."""
        market = self.world.market
        holdings = [(market.holding(account), account.has_left) for account in market.accounts.values()]
        return styles_table(holdings, self.world.history)

    def results(self) -> dict[str, Any]:
        """Return the scores of the run by name.

        `change_A` and `change_B` are percent of the price before the first session. `volatility` is the mean of both
        changes from the first session to the last, in percent (Shachi, Table 2). `gemini_error` is the distance to the
        session changes of the authors' run with Gemini-Pro, in percentage points (as in Table 1); None where its three
        sessions per day and 43 days are not comparable.
        """
        paths, history = self.world.market.paths, self.world.history
        reference = gemini_paths()
        has_reference = self.scenario.sessions == 3 and 1 < len(paths["A"]) <= len(reference["A"])
        later = [total_change(path[1:]) for path in paths.values() if len(path) > 1]
        ordered = sum(order.quantity for order in history.orders)
        return {
            **{f"change_{stock}": total_change(path) for stock, path in paths.items()},
            "volatility": sum(later) / len(later) if later else None,
            "gemini_error": changes_error([paths], reference) if has_reference else None,
            "trades": len(history.trades),
            "shares_traded": sum(trade.quantity for trade in history.trades),
            "orders": len(history.orders),
            "fill_ratio": sum(trade.quantity for trade in history.trades) / ordered if ordered else None,
            "borrowed": sum(loan.principal for loan in history.loans),
            "traders": self.n_traders,
            "refused": self.n_refused,
        }

    @property
    def day(self) -> int:
        """Day of the last step; 0 before the first."""
        return self.last_moment.day if self.last_moment else 0

    @property
    def session(self) -> int:
        """Trading session of the last step; 0 before the day's first, and after the last session its number."""
        return self.last_moment.session if self.last_moment else 0

    @property
    def stage(self) -> str:
        """Stage of the day in the last step; empty before the first."""
        return self.last_moment.stage if self.last_moment else ""

    @property
    def price_a(self) -> float:
        """Latest session price of A."""
        return self.world.market.prices["A"]

    @property
    def price_b(self) -> float:
        """Latest session price of B."""
        return self.world.market.prices["B"]

    @property
    def volume_a(self) -> float:
        """Shares of A traded in the last step."""
        return sum(close.volume for close in self._closes("A"))

    @property
    def volume_b(self) -> float:
        """Shares of B traded in the last step."""
        return sum(close.volume for close in self._closes("B"))

    @property
    def n_trades(self) -> int:
        """Number of trades in the last step."""
        return sum(close.fills for close in self._closes("A", "B"))

    @property
    def n_orders(self) -> int:
        """Number of orders in the last step."""
        return sum(close.buys + close.sells for close in self._closes("A", "B"))

    @property
    def borrowed(self) -> float:
        """Money lent in the last step."""
        loans = self.world.history.loans if self.stage == "loan" else []
        return sum(loan.principal for loan in loans if loan.day == self.day)

    @property
    def abstention_share(self) -> float | None:
        """Share of traders who chose no order in the last step; None outside sessions."""
        counts = self.turn_counts[-1] if self.stage == "trade" else None
        return counts.abstentions / counts.traders if counts and counts.traders else None

    @property
    def n_cancellations(self) -> int:
        """Number of orders cancelled in the last step: not honoured, or matched with the same trader's."""
        return len(self._recent(self.world.history.cancellations)) if self.stage == "trade" else 0

    @property
    def fill_ratio(self) -> float | None:
        """Share of the shares ordered in the last step that traded at once; None without orders."""
        orders = self._recent(self.world.history.orders) if self.stage == "trade" else []
        return sum(order.filled for order in orders) / sum(order.quantity for order in orders) if orders else None

    @property
    def spread_a(self) -> float | None:
        """Best ask less best bid of A after the last step; None outside sessions or if a side is empty."""
        return next(map(spread_of, self._closes("A")), None)

    @property
    def spread_b(self) -> float | None:
        """Best ask less best bid of B after the last step; None outside sessions or if a side is empty."""
        return next(map(spread_of, self._closes("B")), None)

    def _recent(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of the last step's session."""
        return list(takewhile(lambda row: (row.day, row.session) == (self.day, self.session), reversed(rows)))

    @property
    def n_traders(self) -> int:
        """Number of remaining traders."""
        return len(self.world.market.active_accounts)

    def _closes(self, *stocks: Stock) -> list[Close]:
        """Return the closes of some stocks in the last step; empty outside sessions."""
        closes = self.world.history.closes[-2:] if self.stage == "trade" else []
        return [close for close in closes if close.stock in stocks]

    def story(self) -> str:
        """Describe sessions, loans, forced sales, the largest gains and losses, and the forum."""
        world = self.world
        lines = [*_session_lines(world)[-MAX_LINES:], *_money_lines(world)[-MAX_LINES:]]
        ranked = sorted(world.market.portfolios(), key=lambda holding: holding.profit)
        if ranked and world.history.closes:
            best, worst = ranked[-1], ranked[0]
            lines.append(
                f"Best of all stands trader {best.trader} ({best.style}) with a profit of {round(best.profit):,}, "
                f"worst trader {worst.trader} ({worst.style}) with {round(worst.profit):,}."
            )
        posts = [post for post in world.facts(min(world.market.accounts)).posts if post.author > 0]
        lines += [f"On the forum, trader {post.author}: {quoted(post.text, 110)}" for post in posts[:3]]
        return "\n".join(["What happened:", *(lines or ["Nobody has traded yet."])])


def _session_lines(world: Exchange) -> list[str]:
    """Describe each session, one per line."""
    closes = world.history.closes
    lines: list[str] = []
    for index in range(0, len(closes), len(STOCKS)):
        both = closes[index : index + len(STOCKS)]
        text = ", ".join(
            f"{c.stock} {c.before:g} → {c.price:g} ({counted(c.fills, 'trade')}, {c.volume:,.0f} shares)" for c in both
        )
        lines.append(f"Day {both[0].day}, session {both[0].session}: {text}")
    return lines


def _money_lines(world: Exchange) -> list[str]:
    """Describe each day's loans, each forced sale and each departure, one per line."""
    principals: dict[int, list[float]] = {}
    for loan in world.history.loans:
        principals.setdefault(loan.day, []).append(loan.principal)
    lines_by_day = [
        (day, f"Day {day}: {counted(len(sums), 'loan')} of {sum(sums):,.0f} in all") for day, sums in principals.items()
    ]
    lines_by_day += [
        (
            liquidation.day,
            f"Day {liquidation.day}: trader {liquidation.trader} "
            + ("is insolvent and leaves" if liquidation.has_left else "has to sell"),
        )
        for liquidation in world.history.liquidations
    ]
    return [line for _, line in sorted(lines_by_day, key=lambda pair: pair[0])]
