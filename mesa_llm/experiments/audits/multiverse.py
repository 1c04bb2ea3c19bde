"""What an audit found of changes that are made together: pairs that interact, and the multiverse of all combinations.

Source:
    Simonsohn, Simmons and Nelson (2020), Specification curve analysis, Nature Human Behaviour 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mesa_llm.charts.chart import Chart, ChartSeries
from mesa_llm.charts.palette import COLOURS, GREY
from mesa_llm.charts.panels import Panels
from mesa_llm.experiments.audits.claim import AuditClaim
from mesa_llm.experiments.findings import Section, Table, estimate_cells, finite
from mesa_llm.statistics import Comparison, Estimate, with_interval
from mesa_llm.text import counted

MULTIVERSE = "multiverse of "
"""Beginning of the name of the chart of a claim's multiverse; the name of the claim follows."""


@dataclass(frozen=True)
class PairRow:
    """Two changes that were tested together."""

    first: str
    """The one."""

    second: str
    """The other."""

    both: Estimate
    """Mean effect of the claim under both, with its 95 % interval over seeds."""

    beyond: Comparison
    """The change that both make, less the sum of those that each makes alone, over seeds; corrected for all pairs."""


@dataclass(frozen=True)
class MultiverseRow:
    """A combination of changes that was run."""

    changes: tuple[str, ...]
    """The changes; empty: the model as it is."""

    effect: Estimate
    """Mean effect of the claim, with its 95 % interval over seeds."""


@dataclass(frozen=True)
class Interactions:
    """Interactions of the changes of an audit in one claim."""

    claim: AuditClaim
    """The claim."""

    pairs: Sequence[PairRow]
    """The pairs that were tested, the largest first."""

    n_pairs: int
    """Number of pairs of changes that go together."""

    n_covered: int
    """Number of them that stood in some combination, or were tested."""

    multiverse: Sequence[MultiverseRow]
    """All combinations that were run, sorted by effect."""

    n_screened: int
    """Number of seeds of a screening; 0: all pairs were tested."""

    @property
    def shown(self) -> list[PairRow]:
        """The pairs whose interaction is shown."""
        return [row for row in self.pairs if row.beyond.verdict == "shown"]

    @property
    def text(self) -> str:
        """What was run and found, in sentences."""
        n_several = sum(len(row.changes) > 2 for row in self.multiverse)
        screened = (
            f"{self.n_covered} stood together in at least one of {counted(n_several, 'combination')} of several "
            f"changes, run with {counted(self.n_screened, 'seed')}; the {len(self.pairs)} pairs that these point to "
            "were then run alone and tested, with other seeds"
            if self.n_screened
            else "all were run and tested"
        )
        n_seeds = max((row.beyond.difference.n for row in self.pairs), default=0)
        shown = [
            f"{row.first} with {row.second}: {with_interval(row.beyond.difference)} beyond the sum of both"
            for row in self.shown
        ]
        n = {verdict: sum(row.beyond.verdict == verdict for row in self.pairs) for verdict in ("absent", "cannot tell")}
        return (
            f"Interactions: of {counted(self.n_pairs, 'pair')} of changes that go together, {screened} (paired t-test "
            f"over {counted(n_seeds, 'seed')} of the effect of both minus the sum of the single ones, corrected by "
            f"Holm). Shown: {'; '.join(shown) or 'none'}. Absent, smaller than the smallest effect: {n['absent']}. "
            f"Cannot tell: {n['cannot tell']}. {self.region_text}"
        )

    @property
    def region_text(self) -> str:
        """In how many combinations the mean effect is what the claim expects."""
        low, high = self.region
        n = sum(low <= row.effect.value <= high for row in self.multiverse)
        what = "as the claim expects" if self.claim.expectation.text else "within the smallest effect of the baseline’s"
        return f"The mean effect is {what} in {n} of {counted(len(self.multiverse), 'combination')} that were run."

    @property
    def region(self) -> tuple[float, float]:
        """Lowest and highest mean effect with which the claim holds."""
        expected, smallest = self.claim.expectation, self.claim.smallest_effect
        if not expected.text:
            own = next((row.effect.value for row in self.multiverse if not row.changes), math.nan)
            return own - smallest, own + smallest
        if expected.is_equivalence:
            return expected.low, expected.high
        return (smallest, math.inf) if expected.high > 0 else (-math.inf, -smallest)

    def chart(self) -> Panels:
        """Draw the multiverse: the effect in each combination, sorted, and beneath it which changes each makes."""
        rows = [row for row in self.multiverse if math.isfinite(row.effect.value)]
        ends = [end for row in rows for end in (row.effect.value, row.effect.low, row.effect.high) if end is not None]
        room = 0.05 * (max(ends, default=1.0) - min(ends, default=0.0)) or 0.1
        low, high = min([0.0, *ends]) - room, max([0.0, *ends]) + room
        region = [min(max(end, low), high) for end in self.region]
        names = list(dict.fromkeys(change for row in rows for change in row.changes))
        own = [index for index, row in enumerate(rows) if not row.changes]
        other = [index for index, row in enumerate(rows) if row.changes]

        def points(places: Sequence[int], **look: Any) -> ChartSeries:
            labels = [" + ".join(rows[place].changes) or "the model as it is" for place in places]
            effects = [rows[place].effect for place in places]
            return ChartSeries.of(effects, at=list(map(float, places)), kind="point", labels=labels, **look)

        held = "the claim holds" if self.claim.expectation.text else "within the smallest effect"
        across: dict[str, Any] = {"start": -1.0, "end": float(len(rows))}
        curve = Chart(
            title=f"{self.claim.quantity} in {counted(len(rows), 'combination')} of changes",
            series=[
                ChartSeries(name=held, kind="level", colour=GREY, values=[region[0]], low=region[:1], high=region[1:]),
                points(other, name="with changes", colour=COLOURS[0]),
                points(own, name="the model as it is", colour=COLOURS[1], shape="D"),
            ],
            x="combination, sorted by effect",
            y="mean effect, 95 % interval",
            low=low,
            high=high,
            **across,
        )
        on = [(float(names.index(one)), float(at)) for at, row in enumerate(rows) for one in row.changes]
        beneath = Chart(
            title="Changes that are made",
            series=[
                ChartSeries(values=[at for _, at in on], at=[row for row, _ in on], kind="point", colour=COLOURS[0])
            ],
            names=names,
            is_horizontal=True,
            x="change",
            y="combination, sorted by effect",
            low=-1.0,
            high=float(len(rows)),
        )
        return Panels(title=f"Multiverse of {self.claim.name}", charts=[curve, beneath], columns=1)

    def tables(self) -> list[Table]:
        """Return the tables of the tested pairs, and of the multiverse."""
        pairs = [
            {
                "change": row.first,
                "with": row.second,
                **estimate_cells(row.both, "effect"),
                "beyond the sum": row.beyond.difference.value,
                "beyond low": row.beyond.difference.low,
                "beyond high": row.beyond.difference.high,
                "adjusted p": row.beyond.adjusted_p,
                "verdict": row.beyond.verdict,
                "n": row.beyond.difference.n,
            }
            for row in self.pairs
        ]
        multiverse = [
            {
                "changes": " + ".join(row.changes) or "the model as it is",
                **estimate_cells(row.effect, "effect"),
                "n": row.effect.n,
            }
            for row in self.multiverse
        ]
        note = "Effect of both less the sum of the single effects, seed by seed, with its 95 % interval; p by Holm."
        folded = Table(f"{self.claim.name}: multiverse", multiverse, "Sorted by effect.", is_folded=True, max_lines=0)
        return [Table(f"{self.claim.name}: interactions", pairs, note), folded] if pairs else [folded]

    def section(self) -> Section:
        """Return what was found, with the multiverse."""
        return Section(f"Interactions: {self.claim.name}", [self.text], [self.chart()], self.tables())

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-serialisable types."""
        return {
            "claim": self.claim.name,
            "text": self.text,
            "pairs of changes": self.n_pairs,
            "pairs covered": self.n_covered,
            "tested": [{**finite(asdict(row)), "verdict": row.beyond.verdict} for row in self.pairs],
            "multiverse": [finite(asdict(row)) for row in self.multiverse],
        }
