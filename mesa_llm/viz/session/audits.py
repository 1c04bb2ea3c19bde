"""Finished audits in a folder: how they are found, read and downloaded.

A report may come from anybody. Its JSON is bounded and validated before a page shows it, as text; its HTML is never
shown, only offered as the file that it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, Field, ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.audits.claim_findings import SHOWN_WORDS
from mesa_llm.experiments.audits.findings import FINDINGS, METHODS, PAGE
from mesa_llm.experiments.audits.verdict import Change, Shown
from mesa_llm.statistics import Estimate
from mesa_llm.statistics import with_interval as interval_text
from mesa_llm.text import NOT_KNOWN, counted, figure_text
from mesa_llm.viz.render.downloads import Download, file_name

AUDITS = "audits"
"""Folder of a page's audits, in the folder of its runs."""

PLACES = (f"*/{FINDINGS}", f"{AUDITS}/*/{FINDINGS}", f"{AUDITS}/*/*/{FINDINGS}")
"""Where reports are looked for: those of the command line, and those of pages."""

MAX_BYTES = 4_000_000
"""Maximum size of a report, in bytes."""

MAX_FILES = 500
"""Maximum number of reports that are looked at in each place."""

MAX_LISTED = 20
"""Maximum number of audits that a page lists."""

Name = Annotated[str, Field(max_length=500)]
"""A name or a sentence."""

Text = Annotated[str, Field(max_length=20_000)]
"""A paragraph."""

Number = Annotated[float, Field(ge=-1e100, le=1e100, allow_inf_nan=False)] | None
"""A number that can be drawn; None: unknown."""

Count = Annotated[int, Field(ge=0, le=10**12)]
"""A number of things."""


class _Saved(BaseModel, frozen=True, extra="ignore", populate_by_name=True):
    """A part of a report; unknown fields are ignored."""


class SavedEstimate(_Saved, frozen=True):
    """A mean with its interval."""

    value: Number = None
    """The mean."""

    low: Number = None
    """Lower end of its 95 % interval."""

    high: Number = None
    """Upper end."""

    n: Count = 0
    """Number of units."""

    @property
    def text(self) -> str:
        """The mean with its interval."""
        return NOT_KNOWN if self.value is None else interval_text(Estimate(self.value, self.low, self.high, 0))


class SavedChange(_Saved, frozen=True):
    """What one perturbation did to a claim."""

    dimension: Name
    """Its dimension."""

    perturbation: Name
    """What was changed."""

    effect: SavedEstimate
    """Mean effect under it."""

    shown: Shown | None = None
    """What its runs say of the claim; None if nothing is claimed."""

    difference: SavedEstimate
    """Difference from the baseline."""

    low: Annotated[Number, Field(validation_alias=AliasChoices("low", "low_90"))] = None
    """Lower end of the interval of the difference on which the judgement rests."""

    high: Annotated[Number, Field(validation_alias=AliasChoices("high", "high_90"))] = None
    """Upper end."""

    coverage: Annotated[float, Field(ge=0, le=1)] = 0.9
    """Coverage of that interval."""

    adjusted_p: Number = None
    """p, corrected for all perturbations."""

    change: Change
    """Whether the claim is stable under it."""

    is_reversed: bool = False
    """Whether it turns round."""

    changed: tuple[Count, Count] | None = None
    """Decisions that differ from the baseline, of all."""


class SavedControl(_Saved, frozen=True):
    """Result of runs beside the perturbations."""

    run: Name
    """What was run."""

    effect: SavedEstimate
    """Mean effect."""

    difference: SavedEstimate
    """Difference from the baseline."""

    shown: Annotated[Shown | None, Field(validation_alias=AliasChoices("shown", "claim"))] = None
    """What these runs say of the claim; None if nothing is claimed."""

    changed: tuple[Count, Count] | None = None
    """Decisions that differ from the baseline, of all."""


class SavedClaim(_Saved, frozen=True):
    """One claim of a report."""

    name: Name
    """Its name."""

    claim: Text
    """The claim as a sentence."""

    measure: Name = ""
    """Name of its measure."""

    smallest_effect: Annotated[float, Field(alias="smallest effect", gt=0, le=1e100)]
    """Smallest effect of interest."""

    verdict: Text
    """The verdict in words."""

    baseline: SavedEstimate
    """Effect of the model as it is."""

    perturbations: Annotated[list[SavedChange], Field(max_length=300)]
    """All perturbations."""

    controls: Annotated[list[SavedControl], Field(max_length=50)] = []
    """Runs beside them."""

    variance: Annotated[dict[Name, Number], Field(max_length=20)] = {}
    """Source → its share of the variance."""

    warnings: Annotated[list[Text], Field(max_length=300)] = []
    """What a reader of the verdict has to know."""

    def counts(self) -> str:
        """Return how many perturbations are stable, sensitive and undecided."""
        states = [one.change for one in self.perturbations]
        found = [f"{n} {state}" for state in ("stable", "sensitive", "undecided") if (n := states.count(state))]
        return f"{counted(len(states), 'change')}: {', '.join(found)}" if found else "no changes"


class SavedAudit(_Saved, frozen=True):
    """A report as a page shows it."""

    model: Name
    """Name of the model's class."""

    llm: Name
    """Language model of the baseline."""

    seeds: Annotated[list[int], Field(max_length=100_000)]
    """Seeds of all runs."""

    claims: Annotated[list[SavedClaim], Field(min_length=1, max_length=30)]
    """The claims."""

    methods: Text = ""
    """Paragraph for a methods section."""

    description: Text = ""
    """What was run."""

    notes: Annotated[list[Text], Field(max_length=20)] = []
    """Seeds, coverage, awareness, failures."""


@dataclass(frozen=True)
class KeptAudit:
    """A finished audit in a folder."""

    folder: Path
    """Folder of its report."""

    saved: SavedAudit
    """The report."""

    written: float
    """When it was written, in seconds since 1970."""

    @classmethod
    def read(cls, folder: Path) -> KeptAudit:
        """Read a report.

        Args:
            folder: Its folder.

        Raises:
            ConfigError: If it cannot be read, is too large, or is not the report of an audit.
        """
        file = folder / FINDINGS
        try:
            text = content_of(file)
            saved = SavedAudit.model_validate_json(text)
            return cls(folder, saved, file.stat().st_mtime)
        except (OSError, ValidationError) as error:
            reason = f"{error.error_count()} faulty fields" if isinstance(error, ValidationError) else error
            raise ConfigError(f"{file} is not the report of an audit: {reason}") from error

    @property
    def description(self) -> str:
        """Its date, language model, number of seeds, claims and verdict."""
        date = datetime.fromtimestamp(self.written).strftime("%d %b %Y, %H:%M")
        first, *more = self.saved.claims
        others = f" (and {counted(len(more), 'further claim')})" if more else ""
        parts = [date, self.saved.llm, counted(len(self.saved.seeds), "seed"), f"{first.name}: {first.verdict}{others}"]
        return " · ".join(part if len(part) < 200 else f"{part[:199]}…" for part in parts)

    def downloads(self) -> list[Download]:
        """Return the files of its report."""
        labels = {PAGE: "HTML", FINDINGS: "JSON", METHODS: "Methods paragraph"}
        return [
            Download(
                label,
                file_name(self.saved.model, "audit", self.saved.claims[0].name, suffix=name.rpartition(".")[2]),
                partial(content_of, self.folder / name),
            )
            for name, label in labels.items()
            if (self.folder / name).is_file()
        ]


def content_of(file: Path) -> bytes:
    """Return the content of a file of a report.

    Args:
        file: The file.

    Raises:
        ConfigError: If it is too large.
        OSError: If it cannot be read.
    """
    with file.open("rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{file} is larger than {MAX_BYTES:,} bytes; open it from its folder")
    return content


def kept_audits(folder: Path, model: str) -> list[KeptAudit]:
    """List the finished audits of a model, newest first.

    Args:
        folder: Folder of a page's runs.
        model: Name of the model's class.
    """
    found: list[KeptAudit] = []
    for place in PLACES:
        for file in islice(folder.glob(place), MAX_FILES):
            with suppress(ConfigError):
                one = KeptAudit.read(file.parent)
                found += [one] if one.saved.model == model else []
    return sorted(found, key=lambda one: one.written, reverse=True)[:MAX_LISTED]


def change_cells(claim: SavedClaim) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Return the columns and rows of the table of a claim's perturbations.

    Args:
        claim: The claim.
    """
    columns = ("Dimension", "Change", "n", "Effect [95 %]", "Shown", "Difference [90 %]", "Adjusted p", "Size")
    rows = [
        (
            one.dimension,
            one.perturbation,
            str(one.difference.n),
            one.effect.text,
            _shown_text(one.shown),
            SavedEstimate(value=one.difference.value, low=one.low, high=one.high).text,
            figure_text(one.adjusted_p),
            one.change,
            _share(one.changed),
        )
        for one in claim.perturbations
    ]
    return (*columns, "Changed decisions"), rows


def control_cells(claim: SavedClaim) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Return the columns and rows of the table of the runs beside a claim's perturbations.

    Args:
        claim: The claim.
    """
    columns = ("Control", "n", "Effect [95 %]", "Shown", "Difference [95 %]", "Changed decisions")
    rows = [
        (
            one.run,
            str(one.difference.n),
            one.effect.text,
            _shown_text(one.shown),
            one.difference.text,
            _share(one.changed),
        )
        for one in claim.controls
    ]
    return columns, rows


def _shown_text(shown: Shown | None) -> str:
    return NOT_KNOWN if shown is None else SHOWN_WORDS[shown]


def _share(changed: Any) -> str:
    return NOT_KNOWN if changed is None or not changed[1] else f"{changed[0] / changed[1]:.0%}"
