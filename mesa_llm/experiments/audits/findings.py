"""What an audit found: verdicts in words, tables, a page, and a paragraph for the methods section."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mesa_llm.charts.chart import Chart, ChartSeries
from mesa_llm.charts.palette import COLOURS, GREY
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.audits.claim import DIMENSIONS_NEEDED, MODELS_NEEDED, AuditClaim, setting_text
from mesa_llm.experiments.audits.dimensions import DIMENSIONS, Perturbation, Setting
from mesa_llm.experiments.audits.seal import SealCheck
from mesa_llm.experiments.audits.verdict import Change, Shown, Stability, VarianceShare
from mesa_llm.experiments.findings import Findings, Section, Table, Value, estimate_cells, finite, require_measure
from mesa_llm.experiments.people.comparison import PeopleComparison
from mesa_llm.model.quality import Quality, Rate, quality_texts
from mesa_llm.statistics import MIN_RUNS, Estimate, share_interval, with_interval
from mesa_llm.text import counted, figure_text

if TYPE_CHECKING:
    import pandas as pd

_WITHOUT_LLM = {
    "random in place of the language model": "Random choices show the claim too: it is the world’s doing.",
    "rule in place of the language model": "The rule twin shows the claim too: it needs no language model.",
}
"""Control → what it means if it shows the claim."""

CHANGE_COLOURS: Mapping[Change, str] = {"stable": COLOURS[2], "sensitive": COLOURS[1], "undecided": GREY}
"""State of a perturbation → its colour."""

PAGE, FINDINGS, METHODS = "audit.html", "audit.json", "methods.txt"
"""Names of the files of a report."""


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


@dataclass(frozen=True)
class ControlRow:
    """What came of runs beside the perturbations."""

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

    n_dimensions: int
    """Number of dimensions with a perturbation."""

    n_llms: int
    """Number of language models."""

    def in_state(self, change: str) -> list[PerturbationRow]:
        """Return the perturbations that are stable, sensitive or undecided."""
        return [row for row in self.perturbations if row.result.change == change]

    @property
    def verdict(self) -> str:
        """The verdict on the claim in one sentence, without the coverage."""
        claim, sensitive, undecided = self.claim, self.in_state("sensitive"), self.in_state("undecided")
        is_claim = bool(claim.expectation.text)
        if is_claim and self.shown == "reversed":
            return "reversed: the model as it is shows the opposite"
        if is_claim and self.shown != "shown":
            absent = "; it is shown to be smaller than the smallest effect" if self.shown == "absent" else ""
            return f"not shown by the model as it is{absent}"
        reverses = [row.perturbation.name for row in sensitive if row.result.is_reversed]
        if reverses:
            return f"reversed under {listed(reverses)}"
        if sensitive:
            text = f"holds except under {listed([row.perturbation.name for row in sensitive])}"
            return f"{text}; {len(undecided)} undecided" if undecided else text
        if undecided:
            return f"undecided under {counted(len(undecided), 'perturbation')}"
        if too_little := self.too_little:
            return f"stable under all that was audited, which is too little for a verdict: {too_little}"
        return "holds in all audited dimensions"

    @property
    def too_little(self) -> str:
        """What a claim of this kind lacks for a verdict; empty if nothing."""
        kind = self.claim.kind
        lacking: list[str] = []
        if self.n_dimensions < DIMENSIONS_NEEDED[kind]:
            lacking.append(
                f"{self.n_dimensions} of the {DIMENSIONS_NEEDED[kind]} dimensions that a claim of kind {kind} needs"
            )
        if self.n_llms < MODELS_NEEDED[kind]:
            lacking.append(f"{counted(self.n_llms, 'language model')} of {MODELS_NEEDED[kind]}")
        return "; ".join(lacking)

    @property
    def warnings(self) -> list[str]:
        """What a reader of the verdict has to know: what chance shows too, what instructions do, and failures."""
        notes: list[str] = []
        for row in self.controls:
            if self.claim.expectation.text and row.shown == "shown" and row.name in _WITHOUT_LLM:
                notes.append(_WITHOUT_LLM[row.name])
            if row.name == "no instructions of the model" and self.shown == "shown" and row.shown != "shown":
                notes.append("Without the model's instructions the claim is not shown: they may bring it about.")
        rates = [(row.perturbation.name, row.rates.get("failed")) for row in self.perturbations]
        own = self.rates.get("failed", Rate(0, 0)).share
        for name, rate in rates:
            if rate is not None and rate.share > own + 0.05:
                notes.append(f"Under “{name}”, {rate.share:.0%} of the decisions failed ({own:.0%} in the baseline).")
        return notes

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
            f"Verdict: {self.verdict}.",
            f"The model as it is: {with_interval(self.baseline)}.",
        ]
        return Section(claim.name, [*sentences, *self.warnings], [self.chart()], self.tables())

    def tables(self) -> list[Table]:
        """Return the tables of a claim: perturbations, controls, shares of the variance."""
        rows = [
            {
                "dimension": row.perturbation.dimension,
                "perturbation": row.perturbation.name,
                **estimate_cells(row.result.effect, "effect"),
                "difference": row.result.difference.value,
                "low 90": row.result.low,
                "high 90": row.result.high,
                "adjusted p": row.result.adjusted_p,
                "verdict": _change_text(row.result),
                "changed": None if row.changed is None else row.changed.share,
                "failed": row.rates.get("failed", Rate(0, 0)).share,
            }
            for row in self.perturbations
        ]
        controls = [
            {
                "run": row.name,
                **estimate_cells(row.effect, "effect"),
                "difference": row.difference.value,
                "claim": row.shown,
                "changed": None if row.changed is None else row.changed.share,
            }
            for row in self.controls
        ]
        shares: list[dict[str, Value]] = [{"due to": one.source, "share": one.share} for one in self.shares]
        note = (
            f"Difference from the baseline, seed by seed, with its 90 % interval; stable: within "
            f"±{figure_text(self.claim.smallest_effect)}. p of the paired t-test, corrected by Holm."
        )
        found = [Table(f"{self.claim.name}: perturbations", rows, note)]
        if controls:
            found.append(Table(f"{self.claim.name}: beside it", controls, "Runs under which the claim need not hold."))
        if shares:
            found.append(Table(f"{self.claim.name}: variance of the effect", shares, "Mixed model over all runs."))
        return found


@dataclass(frozen=True)
class Audit(Findings):
    """Findings of an audit."""

    model: str
    """Name of the model's class."""

    llm: str
    """Language model of the baseline."""

    others: tuple[str, ...]
    """Further language models."""

    seeds: tuple[int, ...]
    """Seeds of all runs."""

    steps: int | None
    """Number of steps of a run; None: until the model ended."""

    setting: Setting
    """Parameters, design and options of all runs."""

    claims: Sequence[ClaimFindings]
    """The claims."""

    audited: Sequence[str]
    """Dimensions with a perturbation, of all in `DIMENSIONS`."""

    without_effect: Sequence[str]
    """Perturbations that change nothing that this model's agents read."""

    awareness: Rate | None
    """Agents that named the experiment when asked aside; None if nobody was asked."""

    people: PeopleComparison | None
    """The measures beside those of people; None without any."""

    quality: Quality
    """What did not come as asked, over all runs."""

    cost: Mapping[str, Any]
    """Runs, decisions, calls, tokens, dollars and seconds."""

    seal: SealCheck | None = None
    """Whether the claims were sealed before the first run; None where it was not checked."""

    @property
    def seal_text(self) -> str:
        """Whether the claims were sealed before the first run; empty where it was not checked."""
        return "" if self.seal is None else self.seal.text

    @property
    def name(self) -> str:
        """Name of the audit."""
        return f"Audit of {self.model}"

    def parts(self) -> list[Table]:
        """Return the tables of all claims."""
        return [part for one in self.claims for part in one.tables()]

    @property
    def lead(self) -> list[str]:
        """What was run."""
        return [self.setting_text]

    def sections(self) -> list[Section]:
        """Return each claim with its verdict, people, coverage, and the paragraph for a methods section."""
        people = () if self.people is None else self.people.sections()
        return [
            *(one.section() for one in self.claims),
            *(replace(one, title="Beside people") for one in people),
            Section("Coverage", self.notes),
            Section("For the methods section", [self.methods]),
        ]

    def compare(self, measure: str) -> pd.DataFrame:
        """Return how the claims about a measure differ from the baseline, seed by seed, under each perturbation.

        Args:
            measure: Name of the measure, or of a claim.

        Returns:
            One row per claim and perturbation: `claim`, `dimension`, `perturbation`, the effect with its 95 % interval,
            the difference with its 90 % interval, the p corrected by Holm, the verdict, and the number of seeds.

        Raises:
            ConfigError: If no claim is about it.
        """
        import pandas as pd

        claims = self._about(measure)
        frames = [one.tables()[0].frame().assign(claim=one.claim.name, n=len(self.seeds)) for one in claims]
        return pd.concat(frames, ignore_index=True).assign(unit="pairs of runs")

    def chart(self, measure: str) -> Chart:
        """Draw how the first claim about a measure differs from the baseline under each perturbation.

        Args:
            measure: Name of the measure, or of a claim.

        Raises:
            ConfigError: If no claim is about it.
        """
        return self._about(measure)[0].chart()

    def _about(self, measure: str) -> list[ClaimFindings]:
        names = {one.claim.name: {one.claim.name, one.claim.measure, one.claim.quantity} for one in self.claims}
        if not any(measure in own for own in names.values()):
            require_measure(self.name, measure, list(dict.fromkeys(one.claim.measure for one in self.claims)))
        return [one for one in self.claims if measure in names[one.claim.name]]

    @property
    def coverage(self) -> str:
        """Which dimensions were audited, and which were not."""
        missing = [name for name in DIMENSIONS if name not in self.audited]
        text = f"{len(self.audited)} of {len(DIMENSIONS)} dimensions audited: {', '.join(self.audited) or 'none'}."
        return f"{text} Not audited: {', '.join(missing)}." if missing else text

    @property
    def awareness_text(self) -> str:
        """How many agents named the experiment; empty if nobody was asked."""
        if self.awareness is None:
            return ""
        n, of = self.awareness
        low, high = share_interval(n, of)
        share = f"{n / of:.0%}, 95 % interval {low:.0%} to {high:.0%}"
        return f"{n} of {of} agents asked aside named what is studied ({share})."

    @property
    def setting_text(self) -> str:
        """What was run, on one line."""
        cost, llms = self.cost, ", ".join([self.llm, *self.others])
        steps = "to its end" if self.steps is None else counted(self.steps, "step")
        return (
            f"{self.model} with {llms}; {counted(len(self.seeds), 'seed')}, {steps}; {cost['runs']} runs, "
            f"{cost['decisions']} decisions, {cost['calls']} calls, {cost['tokens']} tokens, ${cost['dollars']:.4f}."
        )

    @property
    def power_text(self) -> str:
        """What so few seeds cannot show; empty if they can."""
        if len(self.seeds) >= MIN_RUNS:
            return ""
        return f"With {len(self.seeds)} seeds, nothing can be judged; that takes at least {MIN_RUNS}."

    @property
    def effectless_text(self) -> str:
        """Which perturbations change nothing here; empty if each does."""
        if not self.without_effect:
            return ""
        return f"Not run, as they change nothing that these agents read: {', '.join(self.without_effect)}."

    @property
    def quality_text(self) -> str:
        """What did not come as asked; empty if everything did."""
        texts = quality_texts(self.quality)
        return f"Over all runs: {'; '.join(texts)}." if texts else ""

    @property
    def methods(self) -> str:
        """A paragraph for the methods section of a paper."""
        llms = listed([self.llm, *self.others])
        parts = [
            f"Robustness was audited with mesa_llm on {self.model} with {llms}, {counted(len(self.seeds), 'seed')} per "
            f"condition ({self.cost['runs']} runs). Each perturbation was run with the seeds of the baseline and "
            "compared with it seed by seed: it counts as stable if the 90 % interval of the difference lies within the "
            "smallest effect of interest (two one-sided tests), and as sensitive if that interval lies beyond it and "
            "the p of the paired t-test, corrected by Holm over all perturbations, is at most 0.05.",
        ]
        for one in self.claims:
            n = {state: len(one.in_state(state)) for state in ("stable", "sensitive", "undecided")}
            parts.append(
                f"Claim “{one.claim.name}” ({one.claim.text}; smallest effect "
                f"{figure_text(one.claim.smallest_effect)}): effect {with_interval(one.baseline)}; of "
                f"{len(one.perturbations)} perturbations {n['stable']} stable, {n['sensitive']} sensitive, "
                f"{n['undecided']} undecided; {one.verdict}."
            )
        parts += filter(None, [self.seal_text, self.power_text, self.coverage, self.awareness_text, self.quality_text])
        return " ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-serialisable types."""
        return {
            "model": self.model,
            "llm": self.llm,
            "other language models": list(self.others),
            "seeds": list(self.seeds),
            "steps": self.steps,
            "setting": setting_text(self.setting),
            "claims": [_claim_json(one) for one in self.claims],
            "audited": list(self.audited),
            "not audited": [name for name in DIMENSIONS if name not in self.audited],
            "without effect": list(self.without_effect),
            "awareness": None if self.awareness is None else {"n": self.awareness.n, "of": self.awareness.of},
            "people": None if self.people is None else self.people.to_json(),
            "quality": {name: list(rate) for name, rate in self.quality.items()},
            "seal": None if self.seal is None else self.seal.to_json(),
            "methods": self.methods,
            "description": self.setting_text,
            "notes": self.notes,
            **self.cost,
        }

    @property
    def notes(self) -> list[str]:
        """What a reader has to know beside the verdicts: seeds, coverage, awareness, failures."""
        texts = [
            self.seal_text,
            self.power_text,
            self.coverage,
            self.effectless_text,
            self.awareness_text,
            self.quality_text,
        ]
        return list(filter(None, texts))

    def write(self, folder: Path) -> None:
        """Write the report: a page, the findings as JSON, and the paragraph for the methods section.

        Args:
            folder: The folder, which is made if there is none.

        Raises:
            ConfigError: If it cannot be written.
        """
        findings = json.dumps(self.to_json(), indent=1, default=str)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / PAGE).write_text(self.page(), encoding="utf-8")
            (folder / METHODS).write_text(self.methods + "\n", encoding="utf-8")
            (folder / FINDINGS).write_text(findings + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{error.filename}: the report cannot be written: {error.strerror}") from error


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


def _change_text(result: Stability) -> str:
    if result.is_reversed:
        return "sensitive: reversed"
    return result.change


def _claim_json(one: ClaimFindings) -> dict[str, Any]:
    rows = [
        {
            "dimension": row.perturbation.dimension,
            "perturbation": row.perturbation.name,
            **finite(asdict(row.result)),
            "changed": None if row.changed is None else list(row.changed),
            "rates": {name: list(rate) for name, rate in row.rates.items()},
        }
        for row in one.perturbations
    ]
    controls = [
        {
            "run": row.name,
            **finite({"effect": asdict(row.effect), "difference": asdict(row.difference)}),
            "claim": row.shown,
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
