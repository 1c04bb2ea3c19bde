"""What an audit found: verdicts in words, tables, a page, and a paragraph for the methods section."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesa_llm.charts.chart import Chart
from mesa_llm.charts.panels import Panels
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.audits.claim import setting_text
from mesa_llm.experiments.audits.claim_findings import ClaimFindings, claim_json, listed
from mesa_llm.experiments.audits.deciders import Deciders
from mesa_llm.experiments.audits.dimensions import (
    DIMENSIONS,
    LANGUAGE_MODEL,
    NotRun,
    Setting,
    not_run_texts,
)
from mesa_llm.experiments.audits.looks import AuditLook, looks_text
from mesa_llm.experiments.audits.methods import methods_text
from mesa_llm.experiments.audits.multiverse import MULTIVERSE, Interactions
from mesa_llm.experiments.audits.probes import AwarenessRate
from mesa_llm.experiments.audits.seal import SealCheck
from mesa_llm.experiments.findings import Findings, Section, Table, finite, require_measure
from mesa_llm.experiments.people.comparison import PeopleComparison
from mesa_llm.model.quality import Quality, quality_texts
from mesa_llm.statistics import MIN_RUNS
from mesa_llm.text import counted

if TYPE_CHECKING:
    import pandas as pd

PAGE, FINDINGS, METHODS = "audit.html", "audit.json", "methods.txt"
"""Names of the files of a report."""


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

    not_run: Sequence[NotRun]
    """Perturbations and controls that were not run, and why."""

    awareness: AwarenessRate | None
    """Agents that named the experiment when asked aside; None if nobody was asked."""

    people: PeopleComparison | None
    """The measures beside those of people; None without any."""

    quality: Quality
    """What did not come as asked, over all runs."""

    cost: Mapping[str, Any]
    """Runs, decisions, calls, tokens, dollars and seconds."""

    deciders: Deciders | None = None
    """What decided in the baseline and under other language models; None: not read."""

    looks: tuple[AuditLook, ...] = ()
    """Looks that were fixed beforehand; empty in a fixed design."""

    seal: SealCheck | None = None
    """Whether the claims were sealed before the first run; None where it was not checked."""

    interactions: Sequence[Interactions] = ()
    """Interactions of the changes in each claim; empty unless they were asked for."""

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
        return [part for one in (*self.claims, *self.interactions) for part in one.tables()]

    @property
    def lead(self) -> list[str]:
        """What was run."""
        return [self.setting_text]

    def sections(self) -> list[Section]:
        """Return each claim with its verdict, people, coverage, and the paragraph for a methods section."""
        people = () if self.people is None else self.people.sections()
        return [
            *(one.section() for one in self.claims),
            *(one.section() for one in self.interactions),
            *(replace(one, title="Beside people") for one in people),
            Section("Coverage", self.notes),
            Section("For the methods section", [self.methods]),
        ]

    def compare(self, measure: str) -> pd.DataFrame:
        """Return how the claims about a measure differ from the baseline, seed by seed, under each perturbation.

        Args:
            measure: Name of the measure, or of a claim.

        Returns:
            One row per claim and perturbation: `claim`, `dimension`, `perturbation`, the number of pairs of runs `n`
            with its `unit`, the `effect` with its 95 % interval, whether the claim is `shown`, the `difference` with
            the interval on which its judgement rests, the p corrected by Holm over all claims and perturbations, and
            the verdict on its `size`.

        Raises:
            ConfigError: If no claim is about it.
        """
        import pandas as pd

        claims = self._about(measure)
        frames = [one.tables()[0].frame().assign(claim=one.claim.name) for one in claims]
        return pd.concat(frames, ignore_index=True).assign(unit="pairs of runs")

    def chart(self, measure: str) -> Chart | Panels:
        """Draw how the first claim about a measure differs from the baseline under each perturbation.

        Args:
            measure: Name of the measure, or of a claim; `multiverse of CLAIM` for all combinations of changes that were
                run, sorted by effect.

        Raises:
            ConfigError: If no claim is about it, or no interactions were audited.
        """
        if measure.startswith(MULTIVERSE):
            names = [f"{MULTIVERSE}{one.claim.name}" for one in self.interactions]
            require_measure(self.name, measure, names)
            return self.interactions[names.index(measure)].chart()
        return self._about(measure)[0].chart()

    def _about(self, measure: str) -> list[ClaimFindings]:
        names = {one.claim.name: {one.claim.name, one.claim.measure, one.claim.quantity} for one in self.claims}
        if not any(measure in own for own in names.values()):
            require_measure(self.name, measure, list(dict.fromkeys(one.claim.measure for one in self.claims)))
        return [one for one in self.claims if measure in names[one.claim.name]]

    @property
    def audited(self) -> list[str]:
        """Dimensions in which a perturbation was run, of all in `DIMENSIONS`."""
        return [name for name in DIMENSIONS if any(name in one.dimensions for one in self.claims)]

    @property
    def coverage(self) -> str:
        """Which dimensions were audited, and which were not."""
        audited = self.audited
        missing = [name for name in DIMENSIONS if name not in audited]
        is_sampled = any(
            row.perturbation.dimension == LANGUAGE_MODEL for one in self.claims for row in one.perturbations
        )
        if missing[:1] == [LANGUAGE_MODEL] and is_sampled:
            missing[0] = f"{LANGUAGE_MODEL} (only its temperature was varied)"
        text = f"{len(audited)} of {len(DIMENSIONS)} dimensions audited: {', '.join(audited) or 'none'}."
        return f"{text} Not audited: {', '.join(missing)}." if missing else text

    @property
    def awareness_text(self) -> str:
        """How many agents named the experiment; empty if nobody was asked."""
        return "" if self.awareness is None else self.awareness.text

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
    def quality_text(self) -> str:
        """What did not come as asked; empty if everything did."""
        texts = quality_texts(self.quality)
        return f"Over all runs: {'; '.join(texts)}." if texts else ""

    @property
    def methods(self) -> str:
        """A paragraph for the methods section of a paper."""
        cost, n = self.cost, len(self.claims)
        text = (
            f"Robustness of {counted(n, 'claim')} about {self.model} was audited with mesa_llm and "
            f"{listed([self.llm, *self.others])} in {cost['runs']} runs ({cost['decisions']} decisions)."
        )
        steps = "until the model ended" if self.steps is None else f"for {counted(self.steps, 'step')}"
        design = f"Each condition was run with {counted(len(self.seeds), 'seed')}, {steps}; tests are at the 5 % level."
        if self.looks:
            n_seeds = counted(len(self.seeds), "seed")
            design = f"Each condition was run with up to {n_seeds}, {steps}. {looks_text(self.looks)}"
        deciders = "" if self.deciders is None else self.deciders.text
        scoring = str(self.setting.options.get("scoring") or "replies")
        notes = [*(one.text for one in self.interactions), *self.notes]
        return methods_text(f"{text} {deciders}".strip(), design, self.claims, notes, scoring)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-serialisable types."""
        return {
            "model": self.model,
            "llm": self.llm,
            "other language models": list(self.others),
            "seeds": list(self.seeds),
            "steps": self.steps,
            "setting": setting_text(self.setting),
            "claims": [claim_json(one) for one in self.claims],
            "audited": self.audited,
            "not audited": [name for name in DIMENSIONS if name not in self.audited],
            "not run": [
                {"dimension": one.perturbation.dimension, "perturbation": one.perturbation.name, "reason": one.text}
                for one in self.not_run
            ],
            "awareness": finite(self.awareness),
            "people": None if self.people is None else self.people.to_json(),
            "deciders": finite(self.deciders),
            "quality": {name: list(rate) for name, rate in self.quality.items()},
            "seal": None if self.seal is None else self.seal.to_json(),
            "interactions": [one.to_json() for one in self.interactions],
            "methods": self.methods,
            "description": self.setting_text,
            "notes": self.notes,
            **self.cost,
        }

    @property
    def notes(self) -> list[str]:
        """What a reader has to know beside the verdicts: seeds, coverage, awareness, failures."""
        not_run = not_run_texts(self.not_run)
        texts = [self.seal_text, self.power_text, self.coverage, *not_run, self.awareness_text, self.quality_text]
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
