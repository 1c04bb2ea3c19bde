"""What an audit found about one claim: its verdict in words, its tables, and the chart of its perturbations."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from mesa_llm.charts.chart import Chart, ChartSeries
from mesa_llm.charts.palette import COLOURS, GREY
from mesa_llm.experiments.audits.claim import DIMENSIONS_NEEDED, MODELS_NEEDED, AuditClaim
from mesa_llm.experiments.audits.dimensions import Perturbation, audited_dimensions
from mesa_llm.experiments.audits.verdict import Change, Shown, Stability, VarianceShare
from mesa_llm.experiments.findings import Section, Table, Value, estimate_cells, finite
from mesa_llm.model.quality import Quality, Rate
from mesa_llm.statistics import Estimate, is_absent, with_interval
from mesa_llm.text import counted, figure_text

_WITHOUT_LLM = {
    "random in place of the language model": "Random choices show the claim too: it is the world’s doing.",
    "rule in place of the language model": "The rule twin shows the claim too: it needs no language model.",
}
"""Control → what it means if it shows the claim."""

CHANGE_COLOURS: Mapping[Change, str] = {"stable": COLOURS[2], "sensitive": COLOURS[1], "undecided": GREY}
"""State of a perturbation → its colour."""

SHOWN_WORDS: Mapping[Shown, str] = {
    "reversed": "reversed",
    "shown": "shown",
    "absent": "absent",
    "not shown": "undecided",
    "no claim": "no claim",
}
"""What runs say of a claim → the word for it in sentences and tables."""


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


class Shift(Protocol):
    """What a perturbation did to an effect: as judged, or as read from a report."""

    @property
    def change(self) -> Change:
        """Whether the claim is stable under it."""
        ...

    @property
    def difference(self) -> Any:
        """The difference from the baseline, with its `value`."""
        ...

    @property
    def low(self) -> float | None:
        """Lower end of the interval on which the judgement rests."""
        ...

    @property
    def high(self) -> float | None:
        """Upper end."""
        ...


@dataclass(frozen=True)
class PerturbationRow:
    """What one perturbation did to a claim."""

    perturbation: Perturbation
    """The perturbation."""

    result: Stability
    """Its judgement."""

    rates: Quality
    """What did not come as asked in its runs."""

    changed: Rate | None
    """Decisions that differ from those of the baseline; None if they were not recorded."""

    per_agent: Estimate | None = None
    """Difference from the baseline of the effect divided by `Perturbation.scale`; None where the number of agents is
    the baseline's."""


@dataclass(frozen=True)
class ControlRow:
    """Result of runs beside the perturbations."""

    name: str
    """What was run."""

    effect: Estimate
    """Mean effect, with its 95 % interval over seeds."""

    difference: Estimate
    """Mean of the effect minus that of the baseline."""

    shown: Shown
    """What these runs say of the claim."""

    changed: Rate | None
    """Decisions that differ from those of the baseline."""


@dataclass(frozen=True)
class ClaimFindings:
    """One claim, and what the audit found about it."""

    claim: AuditClaim
    """The claim."""

    baseline: Estimate
    """Effect of the model as it is, with its 95 % interval over seeds."""

    shown: Shown
    """What the model as it is says of the claim."""

    rates: Quality
    """What did not come as asked in the runs of the baseline."""

    perturbations: Sequence[PerturbationRow]
    """All perturbations, by dimension."""

    controls: Sequence[ControlRow]
    """Runs beside them."""

    shares: Sequence[VarianceShare]
    """What the variance of the effect is due to; empty if it could not be divided."""

    n_llms: int
    """Number of language models."""

    def in_state(self, change: str) -> list[PerturbationRow]:
        """Return the perturbations under which the size of the effect is stable, sensitive or undecided."""
        return [row for row in self.perturbations if row.result.change == change]

    def showing(self, *shown: Shown) -> list[PerturbationRow]:
        """Return the perturbations whose own runs say one of these of the claim."""
        return [row for row in self.perturbations if row.result.shown in shown]

    @property
    def is_claim(self) -> bool:
        """Whether anything is expected of the effect, so that it can be shown."""
        return bool(self.claim.expectation.text)

    @property
    def verdict(self) -> str:
        """The verdict in two sentences: in which runs the claim is shown, and where the size of its effect changes.

        A third says what a claim of this kind lacks for a verdict, if it lacks anything.
        """
        return " ".join(filter(None, [self.claim_text, self.size_text, self.too_little]))

    @property
    def claim_text(self) -> str:
        """In which changes the claim is shown, reversed, absent or undecided, as a sentence."""
        if not self.is_claim:
            what = "level" if len(self.claim.between) == 1 else "difference"
            return f"No direction or range of this {what} is claimed, so nothing is shown or refuted."
        own, n = SHOWN_WORDS[self.shown], len(self.perturbations)
        text = f"The claim is {own} by the model as it is"
        if self.shown != "shown":
            text = f"The claim is {own} in the model as it is{self._meaning(self.shown)}"
        by_word = {word: self.showing(shown) for shown, word in SHOWN_WORDS.items()}
        largest = max(by_word, key=lambda word: (word != "reversed", len(by_word[word])))
        parts = [
            f"{word} under {len(rows)}" + (f" ({_names(rows)})" if word != largest else "")
            for word, rows in by_word.items()
            if rows
        ]
        text = f"{text}; of {counted(n, 'change')}, it is {listed(parts)}." if n else f"{text}."
        if self.shown == "reversed":
            return f"REVERSED in the model as it is: {text}"
        return f"REVERSED under {_names(by_word['reversed'])}: {text}" if by_word["reversed"] else text

    def _meaning(self, shown: Shown) -> str:
        """Return what it means that a claim is absent or reversed, in brackets."""
        if shown == "absent":
            smallest = figure_text(self.claim.smallest_effect)
            is_range = self.claim.expectation.is_equivalence
            return " (outside of what is expected)" if is_range else f" (smaller than {smallest})"
        return " (the opposite is shown)" if shown == "reversed" else ""

    @property
    def size_text(self) -> str:
        """In which changes the size of the effect changes, and by how much, as a sentence."""
        if not self.perturbations:
            return ""
        sensitive, stable, undecided = (self.in_state(state) for state in ("sensitive", "stable", "undecided"))
        own, smallest = figure_text(self.baseline.value), figure_text(self.claim.smallest_effect)
        to = ", ".join(f"to {figure_text(row.result.effect.value)} under {row.perturbation.name}" for row in sensitive)
        parts = [
            f"changes under {len(sensitive)} ({to})" if sensitive else "",
            f"stays within ±{smallest} under {len(stable)}" if stable else "",
            f"is undecided under {len(undecided)} ({_names(undecided)})" if undecided else "",
        ]
        what = "Its size" if self.is_claim else "Its value"
        return f"{what}, {own} in the model as it is, {listed(list(filter(None, parts)))}."

    @property
    def dimensions(self) -> list[str]:
        """Dimensions in which perturbations were run for this claim."""
        return audited_dimensions(row.perturbation for row in self.perturbations if row.result.difference.n)

    @property
    def too_little(self) -> str:
        """What a claim of this kind lacks for a verdict, as a sentence; empty if nothing."""
        kind, n_dimensions = self.claim.kind, len(self.dimensions)
        lacking: list[str] = []
        if n_dimensions < DIMENSIONS_NEEDED[kind]:
            lacking.append(f"{n_dimensions} of {DIMENSIONS_NEEDED[kind]} dimensions")
        if self.n_llms < MODELS_NEEDED[kind]:
            lacking.append(f"{self.n_llms} of {MODELS_NEEDED[kind]} language models")
        return f"Too little for a claim of kind {kind}: {listed(lacking)} audited." if lacking else ""

    @property
    def warnings(self) -> list[str]:
        """What a reader of the verdict has to know: what chance shows too, what instructions do, and failures."""
        notes: list[str] = []
        for row in self.controls:
            if self.is_claim and row.shown == "shown" and row.name in _WITHOUT_LLM:
                notes.append(_WITHOUT_LLM[row.name])
            is_lost = self.is_claim and self.shown == "shown" and row.shown != "shown"
            if row.name == "no instructions of the model" and is_lost:
                word = SHOWN_WORDS[row.shown]
                notes.append(f"Without the model’s instructions the claim is {word}: they may bring it about.")
        notes += [note for row in self.perturbations if (note := self._total_note(row))]
        rates = [(row.perturbation.name, row.rates.get("failed")) for row in self.perturbations]
        own = self.rates.get("failed", Rate(0, 0)).share
        for name, rate in rates:
            if rate is not None and rate.share > own + 0.05:
                notes.append(f"Under “{name}”, {rate.share:.0%} of the decisions failed ({own:.0%} in the baseline).")
        return notes

    def _total_note(self, row: PerturbationRow) -> str:
        """Return that an effect changes by arithmetic, as that on a total does; empty if it does not."""
        apart, scale = row.per_agent, row.perturbation.scale
        if apart is None or row.result.change == "stable" or not is_absent(apart, self.claim.smallest_effect):
            return ""
        return (
            f"Under “{row.perturbation.name}” there are {figure_text(scale)} times as many agents, and so large is the "
            f"effect: divided by that, it differs from the baseline by {with_interval(apart)}. {self.claim.measure} "
            "seems to be a total, which changes so by arithmetic; claim a mean per agent in its place."
        )

    def chart(self) -> Chart:
        """Draw the difference from the baseline under each perturbation; see `forest_chart`."""
        rows = [(row.perturbation.name, row.result) for row in self.perturbations]
        return forest_chart(self.claim.quantity, self.claim.smallest_effect, rows)

    def draw(self) -> Chart:
        """Draw what `chart` draws, by its earlier name."""
        warnings.warn("ClaimFindings.draw() is chart()", DeprecationWarning, stacklevel=2)
        return self.chart()

    def section(self) -> Section:
        """Return the claim, its verdict and what it rests on."""
        claim = self.claim
        sentences = [
            f"{claim.text}; smallest effect of interest {claim.smallest_effect}.",
            f"Verdict: {self.verdict}",
            f"The model as it is: {with_interval(self.baseline)}.",
        ]
        return Section(claim.name, [*sentences, *self.warnings], [self.chart()], self.tables())

    def tables(self) -> list[Table]:
        """Return the tables of a claim: perturbations, controls, shares of the variance."""
        rows = [
            {
                "dimension": row.perturbation.dimension,
                "perturbation": row.perturbation.name,
                "n": float(row.result.difference.n),
                **estimate_cells(row.result.effect, "effect"),
                **self._shown_cells(row.result.shown),
                "difference": row.result.difference.value,
                "difference low": row.result.low,
                "difference high": row.result.high,
                "adjusted p": row.result.adjusted_p,
                "size": row.result.change,
                "changed decisions": None if row.changed is None else row.changed.share,
                "failed decisions": row.rates.get("failed", Rate(0, 0)).share,
            }
            for row in self.perturbations
        ]
        controls = [
            {
                "control": row.name,
                "n": float(row.difference.n),
                **estimate_cells(row.effect, "effect"),
                **self._shown_cells(row.shown),
                "difference": row.difference.value,
                "difference low": row.difference.low,
                "difference high": row.difference.high,
                "changed decisions": None if row.changed is None else row.changed.share,
            }
            for row in self.controls
        ]
        shares: list[dict[str, Value]] = [{"due to": one.source, "share": one.share} for one in self.shares]
        shown = "shown: what these runs say of the claim. " if self.is_claim else ""
        coverage = listed(list(dict.fromkeys(f"{100 * row.result.coverage:.3g} %" for row in self.perturbations)))
        note = (
            "n: pairs of runs with equal seeds. Effect with its 95 % interval, and its difference from the baseline "
            f"with its {coverage} interval. {shown}size: stable if that interval lies within "
            f"±{figure_text(self.claim.smallest_effect)}. p of the paired t-test, corrected by Holm over "
            "all claims and perturbations of the audit."
        )
        found = [Table(f"{self.claim.name}: perturbations", rows, note)]
        if controls:
            of_controls = (
                f"Effect and difference from the baseline with their 95 % intervals over n pairs of runs. {shown}"
            )
            note = f"{of_controls}Under a control the claim need not hold."
            found.append(Table(f"{self.claim.name}: controls", controls, note))
        if shares:
            note = (
                "Mixed model over all runs of baseline and perturbations; estimates without an interval. A factor of "
                "two levels has no share of its own: one contrast is no variance."
            )
            found.append(Table(f"{self.claim.name}: variance of the effect", shares, note))
        return found

    def _shown_cells(self, shown: Shown) -> dict[str, Value]:
        return {"shown": SHOWN_WORDS[shown]} if self.is_claim else {}


def _names(rows: Sequence[PerturbationRow]) -> str:
    return ", ".join(row.perturbation.name for row in rows)


def forest_chart(measure: str, smallest_effect: float, rows: Sequence[tuple[str, Shift]]) -> Chart:
    """Draw changes of an effect with their 90 % intervals, and a band of the smallest effect.

    Args:
        measure: What the effect is on.
        smallest_effect: Smallest effect of interest.
        rows: Name of each perturbation, and what it did.
    """
    band: dict[str, Any] = {"values": [0.0], "low": [-smallest_effect], "high": [smallest_effect]}
    series = [ChartSeries(name="within the smallest effect", kind="level", colour=GREY, **band)]
    for change, colour in CHANGE_COLOURS.items():
        own = [(float(at), one) for at, (_, one) in enumerate(rows) if one.change == change]
        if own:
            ends: dict[str, Any] = {"low": [one.low for _, one in own], "high": [one.high for _, one in own]}
            look: dict[str, Any] = {"shape": "D" if change == "sensitive" else "o", "colour": colour}
            values = [one.difference.value for _, one in own]
            at = [place for place, _ in own]
            series.append(ChartSeries(name=change, values=values, at=at, kind="point", **ends, **look))
    look = {"names": [name for name, _ in rows], "is_horizontal": True, "y": f"change of {measure}, 90 % interval"}
    return Chart(title=f"Changes of {measure}", series=series, **look)


def claim_json(one: ClaimFindings) -> dict[str, Any]:
    rows = [
        {
            "dimension": row.perturbation.dimension,
            "perturbation": row.perturbation.name,
            **finite(asdict(row.result)),
            "shown": row.result.shown,
            "changed": None if row.changed is None else list(row.changed),
            "rates": {name: list(rate) for name, rate in row.rates.items()},
        }
        for row in one.perturbations
    ]
    controls = [
        {
            "run": row.name,
            **finite({"effect": asdict(row.effect), "difference": asdict(row.difference)}),
            "shown": row.shown,
            "changed": None if row.changed is None else list(row.changed),
        }
        for row in one.controls
    ]
    return {
        "name": one.claim.name,
        "claim": one.claim.text,
        "measure": one.claim.measure,
        "smallest effect": one.claim.smallest_effect,
        "kind": one.claim.kind,
        "verdict": one.verdict,
        "shown": one.shown,
        "baseline": finite(asdict(one.baseline)),
        "perturbations": rows,
        "controls": controls,
        "variance": {share.source: share.share for share in one.shares},
        "warnings": one.warnings,
    }
