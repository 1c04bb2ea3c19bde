"""External validity: an exchange under a news shock, with and without memory and tools, against a real price series.

Source:
    The later version of Shachi (2025, arXiv 2509.21862) compares the exchange's reaction to news of U.S. tariffs with
    the real event. It publishes no numbers for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product
from pathlib import Path
from statistics import correlation
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from mesa_llm import AgentDesign, Bridge, ConfigError, Event, Hidden, Label, LLMOptions, Observation, ToolCall
from mesa_llm.charts import COLOURS, GREY, INK, Chart, ChartSeries, Panels
from mesa_llm.experiments.findings import Table, Value, comparison_cells
from mesa_llm.experiments.runs.study import StudyFindings, StudySetup
from mesa_llm.memory import MemoryEntry
from mesa_llm.memory.entry import EntryMemory
from mesa_llm.statistics import compare, correct, mean_estimate
from mesa_llm.tables import folded, read_table, whole_rows
from mesa_llm.text import one_line, tone
from mesa_llm_models.shachi.rows import lack_of_seeds, runs_with
from mesa_llm_models.shachi.traders import PairedTrader, order_near
from mesa_llm_models.stock_agent.model import StockAgentModel, StockAgentScenario
from mesa_llm_models.stock_agent.world import STOCKS, Stock

FloatArray = NDArray[np.float64]

QUESTION = "Does an exchange of such traders react to news as a real one did?"
"""Question of the study."""

NEWS = (
    "The government puts a heavy tariff on nearly all imports from next week on. Trading partners threaten to answer "
    "in kind, and analysts warn of losses, a bad recession and a crisis of confidence."
)
"""Default news of the shock."""

MEMORY = "chat:4000:6"
"""Memory of traders that have one: the last six exchanges, including observations."""

COMPONENTS = {
    "memory and tools": AgentDesign(memory=MEMORY),
    "memory": AgentDesign(memory=MEMORY, world_tools=False),
    "tools": AgentDesign(memory="none"),
    "neither": AgentDesign(memory="none", world_tools=False),
}
"""Name of a design → components of the traders."""

MARGIN = 0.03
"""Distance from the latest price a rule twin accepts on the news, as a fraction of it."""


class ShockScenario(StockAgentScenario):
    """Parameters of an exchange under a shock."""

    news: Annotated[str, Field(min_length=1, max_length=500), Label("News of the shock")] = NEWS
    """Text of the news."""

    shock_day: Annotated[int, Field(ge=0), Label("Day of the news (0: none)")] = 3
    """Day of the news, from its first session; 0 for never."""

    news_tone: Annotated[Annotated[float, Field(ge=-1, le=1)] | None, Hidden()] = None
    """Tone of the news for rule twins, from -1 to 1; None for VADER's score of the text."""

    reaction: Annotated[float, Field(ge=0, le=1), Label("Rule twins act upon the news")] = 0.6
    """Probability that a rule twin acts on known news, if the tone is -1 or 1."""


class ShockTrader(PairedTrader):
    """A trader who may hear the news.

    Its rule twin knows the news in that session. Later it knows it only by memory, or from a mention on the forum if it
    may read that. It then buys or sells, and posts about it.
    """

    def act_by_rule(self, seen: Observation) -> ToolCall | None:
        """Trade by the strategy or on the news, and post about known news."""
        usual = super().act_by_rule(seen)
        stage = self.model.world.now.stage
        mood = self.model.mood
        acts = self.random.random() < abs(mood) * self.model.scenario.reaction
        if stage not in ("trade", "post") or not acts or not self._knows():
            return usual
        if stage == "post":
            return ToolCall("post_message", {"text": self.model.news})
        return order_near(self.facts, "buy" if mood > 0 else "sell", self.random.choice(STOCKS), MARGIN) or usual

    def _knows(self) -> bool:
        news = self.model.news
        heard = self.model.bridge.heard([self.model.world.name], self.unique_id)
        if any(event.kind == "news" for event in heard) or news in remembered_text(self.memory):
            return True
        return self.config.world_tools and any(news in post.text for post in self.facts.posts)


def remembered_text(memory: Any) -> str:
    """Return the entries of a memory as one text; empty for a memory without entries.

    Args:
        memory: The memory.
    """
    entries: Iterable[MemoryEntry] = memory.entries if isinstance(memory, EntryMemory) else ()
    return "\n".join(entry.text for entry in entries)


class ShockModel(StockAgentModel):
    """An exchange where all traders hear one piece of news in the first session of a day.

    Attributes:
        news: The news, on one line.
        mood: Tone of the news for rule twins, from -1 to 1.
    """

    scenario_class = ShockScenario
    scenario: ShockScenario
    trader_class = ShockTrader

    def __init__(self, scenario: ShockScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Put the news on the schedule."""
        super().__init__(scenario, **options)
        chosen = self.scenario
        if chosen.shock_day > chosen.days:
            raise ConfigError(f"the shock is on day {chosen.shock_day}, and the exchange closes after {chosen.days}")
        self.news = one_line(chosen.news)
        self.mood = tone(chosen.news) if chosen.news_tone is None else chosen.news_tone
        if chosen.shock_day and options.get("bridge") is None:
            step = (chosen.shock_day - 1) * (chosen.sessions + 3) + 2  # a day is the loans, the sessions, and two more
            self.bridge = Bridge([Event("outside", "news", {"text": self.news}, self.news, step)])
            self.bridge.connect("bankruptcy", self._remove_trader)

    def results(self) -> dict[str, Any]:
        """Return the scores of the exchange, and the closing prices of both stocks for each day."""
        paths, n = self.world.market.paths, self.scenario.sessions
        return super().results() | {"closes": {stock: [path[0], *path[n::n]] for stock, path in paths.items()}}


# -- the real series


PRICES = ("close", "price", "adj_close")
"""Names of the price column, likeliest first, folded."""


@dataclass(frozen=True)
class RealSeries:
    """Daily closing prices of a real share or index."""

    days: tuple[date, ...]
    """The days, oldest first."""

    prices: tuple[float, ...]
    """Price of each day."""

    @classmethod
    def read(cls, path: str | Path) -> RealSeries:
        """Read a table with a column `date` (2025-04-03) and a column `close` or `price`.

        Raises:
            ConfigError: If it cannot be read, lacks a column, or has an invalid row.
        """
        placed = read_table(path, {"date", *PRICES})
        rows = whole_rows(path, placed)
        names = {folded(column): column for row in rows for column in row}
        price = next((names[name] for name in PRICES if name in names), None)
        if "date" not in names or price is None:
            columns = ", ".join(names.values()) or "none"
            raise ConfigError(f"{str(path)!r} needs the columns date, and close or price; it has: {columns}")
        found_rows: list[tuple[date, float]] = []
        for (line, _), row in zip(placed, rows, strict=True):
            cells = [str(row.get(column, "")).strip() for column in (names["date"], price)]
            try:
                day, value = date.fromisoformat(cells[0][:10]), float(cells[1])
            except ValueError as error:
                raise ConfigError(f"{str(path)!r}, line {line}: {error}") from None
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(f"{str(path)!r}, line {line}: a price must be above 0, found {cells[1]!r}")
            found_rows.append((day, value))
        if len(found_rows) < 3:
            raise ConfigError(f"{str(path)!r} has {len(found_rows)} rows; a series needs at least three days")
        found_rows.sort()
        return cls(*zip(*found_rows, strict=True))

    def around(self, event: date, before: int, after: int) -> dict[int, float]:
        """Return the price change around an event, in percent of the last price before it.

        Args:
            event: First day of the news. If it has no price, the next day with one counts.
            before: Maximum number of days before the reference day.
            after: Maximum number of days from the event.

        Returns:
            Day → change in percent: 0 is the last day before, 1 the event's.

        Raises:
            ConfigError: If the series has no day before the event, or none from it.
        """
        first = next((index for index, day in enumerate(self.days) if day >= event), len(self.days))
        if not 0 < first < len(self.days):
            ends = f"{self.days[0]} to {self.days[-1]}"
            raise ConfigError(f"the event {event} needs a day before it and one from it on; the series has {ends}")
        base = self.prices[first - 1]
        indices = range(max(first - 1 - before, 0), min(first + after, len(self.days)))
        return {index - first + 1: 100 * (self.prices[index] / base - 1) for index in indices}


# -- the study

CAVEAT = (
    "A price that moves like the real one in a few days proves little: compare it with the rows `no news` and "
    "`no change`, and with other news. By rule, traders react to the tone of the words with the strength that was "
    "written into them."
)
"""Limits of the figures."""


@dataclass(frozen=True)
class Reactions:
    """Simulated and real price changes in event time."""

    runs: pd.DataFrame
    """One row per run: design, shock_day, seed, closes."""

    shock_day: int
    """Day of the news."""

    stocks: tuple[Stock, ...]
    """Stocks over which the change is averaged."""

    real: Mapping[int, float]
    """Day → real change in percent, with day 0 the last before the event; empty without a series."""

    def changes(self, design: str, *, has_news: bool) -> FloatArray:
        """Return the change in percent since the last close before the news, shape `(seeds, days)`, from day 0.

        Args:
            design: Name of the design.
            has_news: Whether to take the runs with or without the news.
        """
        day = self.shock_day if has_news else 0
        chosen = runs_with(self.runs, design=design, shock_day=day)
        rows = [
            np.mean([relative(closes[stock][self.shock_day - 1 :]) for stock in self.stocks], axis=0)
            for closes in chosen["closes"]
        ]
        length = min(map(len, rows))
        return np.array([row[:length] for row in rows])

    def comparable_days(self, design: str) -> list[int]:
        """Return the days since the event that are in both the runs and the real series."""
        n_days = self.changes(design, has_news=True).shape[1]
        return [day for day in range(1, n_days) if day in self.real]


def relative(prices: Sequence[float]) -> FloatArray:
    """Return prices as changes in percent from the first."""
    path = np.asarray(prices, dtype=np.float64)
    return 100 * (path / path[0] - 1)


def study_validity(
    setup: StudySetup,
    *,
    real: Path | None = None,
    event: date | None = None,
    stock: Literal["A", "B", "both"] = "both",
) -> StudyFindings:
    """Run the exchange with and without the news for four trader designs, and compare with a real series.

    Args:
        setup: Settings of the runs; by default a run ends when the exchange closes.
        real: CSV file of a real price series, with the columns date and close; None for no comparison.
        event: First day of the real news, such as 2025-04-03.
        stock: Stock to compare; `both` for the mean of both changes.

    Raises:
        ConfigError: If only one of `real` and `event` is given, the news has no day, or the runs end before it.
    """
    if (real is None) != (event is None):
        raise ConfigError("real and event belong together; give both or neither")
    day = int(setup.parameters.get("shock_day", ShockScenario.shock_day))
    days = int(setup.parameters.get("days", ShockScenario.days))
    if not 1 <= day <= days:
        raise ConfigError(f"shock_day must be a day of the exchange in this study, from 1 to {days}; got {day}")
    sessions = int(setup.parameters.get("sessions", ShockScenario.sessions))
    needed = day * (sessions + 3) - 2
    if setup.steps is not None and setup.steps < needed:
        raise ConfigError(
            f"{setup.steps} steps end before the exchange closes on the day of the news; take {needed} or more"
        )
    around = {} if real is None or event is None else RealSeries.read(real).around(event, day - 1, days - day + 1)
    own = {name: value for name, value in setup.parameters.items() if name != "shock_day"}
    runs = setup.experiment()
    try:
        rows = runs.sweep(
            "validity", ShockModel, {"shock_day": [0, day]}, fixed=own, steps=setup.steps, designs=COMPONENTS
        ).table
    finally:
        runs.close()
    reactions = Reactions(rows, day, STOCKS if stock == "both" else (stock,), around)
    tables = [effect_table(reactions), component_table(reactions)]
    if around:
        tables.insert(0, real_table(reactions))
    setting = {"seeds": list(setup.seeds), "language model": setup.llm_text, "day of the news": day, **own}
    return StudyFindings(
        "validity",
        QUESTION,
        setting,
        runs.cost(),
        tables,
        lambda: validity_chart(reactions),
        " ".join(filter(None, (lack_of_seeds(len(setup.seeds)), CAVEAT))),
    )


def effect_table(reactions: Reactions) -> Table:
    """Compare price changes with and without the news, by design, on its day and at the end."""
    keys = [(design, name) for design in COMPONENTS for name in ("day of the news", "last day")]
    compared = []
    for design, name in keys:
        index = 1 if name == "day of the news" else -1
        paths = [reactions.changes(design, has_news=has_news)[:, index].tolist() for has_news in (True, False)]
        compared.append(compare(*paths))
    rows = [
        {"traders have": design, "until": name, **comparison_cells(one)}
        for (design, name), one in zip(keys, correct(compared), strict=True)
    ]
    return Table(
        "Effect of the news on the price, in percentage points",
        rows,
        "Change since the last close before the news, with the news less without, paired by seed; p by the paired "
        "t-test, adjusted for all rows (Benjamini–Hochberg).",
    )


def component_table(reactions: Reactions) -> Table:
    """Compare the effect of the news with and without memory, and with and without tools."""
    effects = {
        design: (reactions.changes(design, has_news=True) - reactions.changes(design, has_news=False))[:, -1]
        for design in COMPONENTS
    }
    pairs = {
        "memory": (effects["memory and tools"] + effects["memory"], effects["tools"] + effects["neither"]),
        "tools": (effects["memory and tools"] + effects["tools"], effects["memory"] + effects["neither"]),
    }
    compared = correct([compare((first / 2).tolist(), (second / 2).tolist()) for first, second in pairs.values()])
    rows = [{"component": name, **comparison_cells(one)} for name, one in zip(pairs, compared, strict=True)]
    return Table(
        "What memory and tools add to the effect of the news until the last day, in percentage points",
        rows,
        "Mean effect of the two designs that have the component less that of the two that lack it, paired by seed.",
    )


def real_table(reactions: Reactions) -> Table:
    """Compare simulated price changes with the real ones, day by day from the event on."""
    rows: list[dict[str, Value]] = []
    for design, has_news in product(COMPONENTS, (True, False)):
        days = reactions.comparable_days(design)
        paths = reactions.changes(design, has_news=has_news)[:, days]
        rows.append(
            {"traders have": design, "news": "yes" if has_news else "no news", **likeness(paths, _real(reactions))}
        )
    days = reactions.comparable_days(next(iter(COMPONENTS)))
    rows.append({"traders have": "no change", "news": "", **likeness(np.zeros((1, len(days))), _real(reactions))})
    return Table(
        f"Beside the real series, over {len(days)} days from the event on",
        rows,
        "Root mean square distance, in percentage points, and correlation of the mean path and the real one; share of "
        "the seeds in which the change until the last day has the sign of the real one.",
    )


def _real(reactions: Reactions) -> FloatArray:
    return np.array([reactions.real[day] for day in reactions.comparable_days(next(iter(COMPONENTS)))])


def likeness(paths: FloatArray, real: FloatArray) -> dict[str, Value]:
    """Compare simulated paths with a real one.

    Args:
        paths: Changes in percent, shape `(seeds, days)`.
        real: Real changes, shape `(days,)`.

    Returns:
        Distance of the mean path, its correlation (None if undefined), and the share of runs that end with the real
        path's sign.
    """
    mean = paths.mean(axis=0)
    is_flat = len(real) < 3 or np.ptp(mean) == 0 or np.ptp(real) == 0
    return {
        "change at the end %": float(mean[-1]),
        "real %": float(real[-1]),
        "distance": float(np.sqrt(np.mean((mean - real) ** 2))),
        "correlation": None if is_flat else correlation(mean.tolist(), real.tolist()),
        "same sign": float(np.mean(np.sign(paths[:, -1]) == np.sign(real[-1]))),
    }


def validity_chart(reactions: Reactions) -> Panels:
    """Return price changes with and without the news, by design, and the real ones."""
    charts: list[Chart] = []
    for design in COMPONENTS:
        series: list[ChartSeries] = []
        for has_news, colour, name in ((True, COLOURS[0], "news"), (False, GREY, "no news")):
            means = map(mean_estimate, reactions.changes(design, has_news=has_news).T.tolist())
            series.append(ChartSeries.of(means, name=name, colour=colour))
        if reactions.real:
            real: dict[str, Any] = {"name": "real", "colour": INK, "is_dashed": True}
            series.append(ChartSeries(values=list(reactions.real.values()), at=list(reactions.real), **real))
        charts.append(Chart(title=design, series=series, x="days from the last close before the news"))
    return Panels(title="Change of the price, %", charts=charts, columns=4, has_one_scale=True)
