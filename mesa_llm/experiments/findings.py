"""The record of findings that every experiment returns: a table, comparisons of arms, a chart, a page, JSON.

found = experiments.sweep(GiftModel, llm=["gpt-4o", "rule"], seeds=10, out="runs/gifts")
found.compare("gini")     # one row per pair of arms, paired by seed
found.chart("gini")       # drawn in a notebook
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import TYPE_CHECKING, Any, cast

import jinja2
from markupsafe import Markup

from mesa_llm.charts.panels import data_url
from mesa_llm.errors import ConfigError
from mesa_llm.statistics import Comparison, Estimate, compare, correct
from mesa_llm.text import figure_text, suggestion, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from mesa_llm.charts import Drawn

MIN_RUNS = 4
"""Minimum number of runs, or of pairs of runs, of which an interval is given."""

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
        """Return the table as lines of text: its title, then its rows."""
        return [self.title, *table(self.head, self.cells())]


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

    def parts(self) -> Sequence[Table]:
        """Return its tables, the main one first."""
        raise NotImplementedError

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
            95 % interval, `low` and `high`, missing below `MIN_RUNS` pairs; `effect` in standard deviations;
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
            cells |= {} if n >= MIN_RUNS else {"low": None, "high": None}
            rows.append({"first": first, "second": second, **cells, "n": n, "unit": "pairs of runs"})
        columns = ["first", "second", "difference", "low", "high", "effect", "p", "adjusted p", "n", "unit"]
        return pd.DataFrame(rows, columns=columns)

    def chart(self, measure: str) -> Figure:
        """Draw a measure of each arm: its runs, and their mean with a 95 % interval from `MIN_RUNS` runs on.

        Args:
            measure: Name of the measure.

        Raises:
            ConfigError: If there is no such measure.
        """
        from mesa_llm.experiments.charts import chart_of_arms  # Matplotlib takes a second to import

        return chart_of_arms(measure, self.arms(measure), MIN_RUNS)

    def summary(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {one.title: [finite(row) for row in one.rows] for one in self.parts()}

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return self.summary()

    def text(self) -> str:
        """Return the findings as text for a terminal."""
        blocks = ["\n".join([self.title, *self.lead]), *("\n".join(one.lines()) for one in self.parts())]
        return "\n\n".join(filter(None, blocks))

    def charts(self) -> Sequence[Drawn]:
        """Return the charts of its page."""
        return []

    def fragment(self) -> str:
        """Return the findings as a fragment of an HTML page."""
        return rendered("findings.html", findings=self, plots=[data_url(chart) for chart in self.charts()])

    def page(self) -> str:
        """Return a self-contained HTML page."""
        return framed(self.name, self.fragment())

    def __str__(self) -> str:
        """Return the findings as text."""
        return self.text()

    def _repr_html_(self) -> str:
        """Return the findings for a notebook."""
        return self.fragment()


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


def framed(title: str, body: str) -> str:
    """Wrap a fragment, in which every value is already escaped, in its own page."""
    return rendered("frame.html", title=title, body=Markup(body))


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
