"""The record of findings that every experiment returns: a table, comparisons of arms, a chart, a page, JSON.

found = experiments.sweep(GiftModel, llm=["gpt-4o", "rule"], seeds=10, out="runs/gifts")
found.compare("gini")     # one row per pair of arms, paired by seed
found.chart("gini")       # drawn in a notebook
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import jinja2
from markupsafe import Markup

from mesa_llm.charts.chart import Chart, ChartSeries, limits_of
from mesa_llm.charts.palette import COLOURS
from mesa_llm.charts.panels import data_url
from mesa_llm.errors import ConfigError
from mesa_llm.statistics import Comparison, Estimate, compare, correct, mean_estimate
from mesa_llm.text import figure_text, suggestion, table

if TYPE_CHECKING:
    import pandas as pd

    from mesa_llm.charts import Drawn

NO_PICKS: Mapping[str, int] = MappingProxyType({})
"""Runs that a click opens on a saved page: none."""

type Value = str | float | None
"""A cell of a table."""

type Arms = Mapping[str, Mapping[int, float | None]]
"""Name of an arm → seed → value of a measure."""


@dataclass(frozen=True)
class Table:
    """A table of findings."""

    title: str
    """Its title."""

    rows: Sequence[Mapping[str, Value]]
    """Its rows, all with the same columns."""

    note: str = ""
    """Meaning of its columns."""

    is_folded: bool = False
    """Whether pages show it only when it is opened."""

    max_lines: int | None = None
    """Maximum number of rows in texts; None: all, 0: only pages have the table."""

    @property
    def head(self) -> list[str]:
        """Names of the columns."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def cells(self) -> list[list[str]]:
        """Return the rows as texts."""
        return [[cell_text(row.get(name)) for name in self.head] for row in self.rows]

    def frame(self) -> pd.DataFrame:
        """Return the table for a notebook."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=self.head)

    def lines(self) -> list[str]:
        """Return the table as lines of text: its title, its rows, and what they mean."""
        if self.max_lines == 0:
            return []
        cells = self.cells()
        shown = cells[: self.max_lines]
        more = f"and {len(cells) - len(shown)} more: see the page, or --json" if len(shown) < len(cells) else ""
        rows = table(self.head, shown) if cells else ["nothing"]
        return list(filter(None, [self.title, *rows, more, self.note]))


@dataclass(frozen=True)
class Section:
    """A part of findings."""

    title: str = ""
    """Its title; empty: its tables have theirs."""

    sentences: Sequence[str] = ()
    """What it says, before charts and tables."""

    charts: Sequence[Drawn] = ()
    """Its charts."""

    tables: Sequence[Table] = ()
    """Its tables."""

    notes: Sequence[str] = ()
    """What has to be said of them."""

    def text(self) -> str:
        """Return it as text for a terminal."""
        head = [*filter(None, [self.title]), *self.sentences]
        tables = [[line for line in one.lines() if line != self.title] for one in self.tables]
        blocks = [head, *tables, list(self.notes)]
        return "\n\n".join("\n".join(lines) for lines in blocks if lines)


class Findings:
    """What an experiment has found. A notebook shows it as tables, `print` as text.

    Each kind of experiment names its `parts`, and adds what only it knows.
    """

    @property
    def name(self) -> str:
        """Name of the experiment, in a word or two."""
        return type(self).__name__

    @property
    def title(self) -> str:
        """Heading of its page."""
        return self.name

    @property
    def lead(self) -> list[str]:
        """What a reader has to know before the tables: setting, cost, data quality."""
        return []

    @property
    def faults(self) -> list[str]:
        """What went wrong, one per line."""
        return []

    def parts(self) -> Sequence[Table]:
        """Return its tables, the main one first."""
        raise NotImplementedError

    def charts(self) -> Sequence[Drawn]:
        """Return its charts."""
        return []

    def sections(self) -> Sequence[Section]:
        """Return all that a page and a text have below the lead."""
        return [Section(charts=self.charts(), tables=self.parts())]

    @property
    def table(self) -> pd.DataFrame:
        """Its main table."""
        return self.parts()[0].frame()

    def arms(self, measure: str) -> Arms:
        """Return the runs that a comparison pairs.

        Args:
            measure: Name of a measure.

        Raises:
            ConfigError: If there is no such measure.
        """
        raise _unknown(self.name, measure, ())

    def compare(self, measure: str) -> pd.DataFrame:
        """Compare each pair of arms in a measure, run by run with the same seed.

        Args:
            measure: Name of the measure.

        Returns:
            One row per pair of arms: `first`, `second`; mean `difference` (first minus second) with the bounds of its
            95 % interval, `low` and `high`, missing below four pairs; `effect` in standard deviations;
            `p` of the paired t-test, and `adjusted p` over all rows (Benjamini–Hochberg); `n` and its `unit`.

        Raises:
            ConfigError: If there is no such measure.
        """
        import pandas as pd

        arms = self.arms(measure)
        pairs = list(itertools.combinations(arms, 2))
        rows: list[dict[str, Any]] = []
        for (first, second), one in zip(pairs, correct([_paired(arms[a], arms[b]) for a, b in pairs]), strict=True):
            cells = comparison_cells(one)
            n = int(cast("float", cells.pop("pairs")))
            rows.append({"first": first, "second": second, **cells, "n": n, "unit": "pairs of runs"})
        columns = ["first", "second", "difference", "low", "high", "effect", "p", "adjusted p", "n", "unit"]
        return pd.DataFrame(rows, columns=columns)

    def chart(self, measure: str) -> Drawn:
        """Draw a measure of each arm: its runs, and their mean with a 95 % interval from four runs on.

        Args:
            measure: Name of the measure.

        Raises:
            ConfigError: If there is no such measure.
        """
        arms = self.arms(measure)
        runs = [(float(row), value) for row, values in enumerate(arms.values()) for value in values.values()]
        means = [mean_estimate(list(values.values())) for values in arms.values()]
        each = ChartSeries(
            at=[row for row, _ in runs], values=[value for _, value in runs], kind="point", is_faint=True
        )
        names = [f"{arm} (n = {len(values)})" for arm, values in arms.items()]
        return estimates_chart(f"{measure}: runs, and their mean with its 95 % interval", names, means, each)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {one.title: [finite(row) for row in one.rows] for one in self.parts()}

    def summary(self) -> dict[str, Any]:
        """Return everything as JSON values, under the name that `to_json` had before."""
        return self.to_json()

    def text(self) -> str:
        """Return the findings as text for a terminal."""
        blocks = ["\n".join([self.title, *self.lead]), *(one.text() for one in self.sections()), *self.faults]
        return "\n\n".join(filter(None, blocks))

    def fragment(self, picks: Mapping[str, int] = NO_PICKS) -> str:
        """Return the findings as a fragment of an HTML page.

        Args:
            picks: Text of a cell → number of the run that a click on it opens.
        """
        return rendered("findings.html", findings=self, picks=picks, data_url=data_url)

    def page(self) -> str:
        """Return a self-contained HTML page."""
        return rendered("frame.html", title=self.name, body=Markup(self.fragment()))

    def __str__(self) -> str:
        """Return the findings as text."""
        return self.text()

    def _repr_html_(self) -> str:
        """Return the findings for a notebook."""
        return self.fragment()


def estimates_chart(
    title: str, names: Sequence[str], estimates: Sequence[Estimate | None], *ground: ChartSeries
) -> Chart:
    """Draw a row for each estimate, with its interval if it has one.

    Args:
        title: What is estimated.
        names: Names of the rows.
        estimates: The estimates; None where there is none.
        *ground: What is drawn behind them.
    """
    series = [*(replace(one, colour=COLOURS[0]) for one in ground)]
    series.append(ChartSeries.of(estimates, kind="point", shape="D", colour=COLOURS[0]))
    return Chart(title=title, series=series, names=names, is_horizontal=True, x="", **limits_of(series))


def _paired(first: Mapping[int, float | None], second: Mapping[int, float | None]) -> Comparison | None:
    seeds = [seed for seed in first if seed in second]
    return compare([first[seed] for seed in seeds], [second[seed] for seed in seeds])


def require_measure(name: str, measure: str, known: Sequence[str]) -> str:
    """Return the name of a measure.

    Args:
        name: What has been measured.
        measure: Name of the measure.
        known: Names of all measures.

    Raises:
        ConfigError: If it is none of them.
    """
    if measure not in known:
        raise _unknown(name, measure, known)
    return measure


def _unknown(name: str, measure: str, known: Sequence[str]) -> ConfigError:
    if not known:
        return ConfigError(f"{name} has no measure to compare arms by, got {measure!r}; its tables hold what it found")
    hint = suggestion(measure, known)
    return ConfigError(f"{name} has no measure {measure!r}; its measures are {', '.join(known)}{hint}")


# -- cells


def cell_text(value: Value) -> str:
    """Format a cell, with three significant digits for numbers."""
    return value if isinstance(value, str) else figure_text(value)


def finite(value: Any) -> Any:
    """Return JSON values with None in place of numbers that JSON cannot hold, and records as dictionaries."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {name: finite(item) for name, item in cast("Mapping[str, Any]", value).items()}
        case list() | tuple():
            return [finite(item) for item in cast("Sequence[Any]", value)]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return finite(asdict(value))
        case _:
            return value


def estimate_cells(estimate: Estimate | None, name: str = "mean") -> dict[str, Value]:
    """Return a figure and the bounds of its interval as cells.

    Args:
        estimate: The figure, if there is one.
        name: Name of its column.
    """
    if estimate is None:
        return {name: None, "low": None, "high": None}
    return {name: estimate.value, "low": estimate.low, "high": estimate.high}


def comparison_cells(one: Comparison | None) -> dict[str, Value]:
    """Return a comparison as cells: difference, interval, effect size, p and corrected p.

    Args:
        one: The comparison; None without a pair.
    """
    cells = estimate_cells(None if one is None else one.difference, "difference")
    if one is None:
        return cells | {"effect": None, "p": None, "adjusted p": None, "pairs": 0.0}
    return cells | {"effect": one.effect, "p": one.p, "adjusted p": one.adjusted_p, "pairs": float(one.difference.n)}


# -- pages


def rendered(template: str, **values: Any) -> str:
    """Render a template of this package.

    Args:
        template: Path of the template in the package.
        **values: Variables of the template.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mesa_llm.experiments", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template(template).render(**values)
