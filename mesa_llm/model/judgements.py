"""Judgements of language models in a run, and how far they agree with people's labels of the same texts.

A judge is whoever is consulted for one of a model's `judge_purposes`. A labels file is a table with the columns:

- `unit`: which text; `mesa-llm agreement --template` writes it.
- `measure`: what is judged, such as `judge` or `judge.goal.score`; it may be left out if there is only one.
- one column per person with that person's labels, under any name; or `coder` and `label`, with one row per label.
- `text` is for people to read, and is ignored.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError
from mesa_llm.records import ChatMessage, Decision, Failure
from mesa_llm.tables import MISSING, TableSource, folded, number_in, read_table, whole_rows
from mesa_llm.text import counted

if TYPE_CHECKING:
    from mesa_llm.statistics import Estimate, Level

RELIABLE, TENTATIVE = 0.8, 0.667
"""Alpha from which labels are reliable, and from which they allow tentative conclusions (Krippendorff 2004)."""

UNIT, MEASURE, CODER, LABEL, TEXT = "unit", "measure", "coder", "label", "text"
"""Columns of a labels file."""

MAX_LABEL = 40
"""Maximum number of characters of a label; longer texts in a judgement are reasons, which nobody compares."""

REASONS = frozenset({"reason", "reasoning", "thought"})
"""Parts of a judgement that explain the others, and are no labels."""

YES_OR_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
"""How people may write yes and no."""

Verdict = Literal["reliable", "tentative", "not to be used", "not checked"]
"""What Krippendorff's bounds say of a judge; see `JudgeAgreement.verdict`."""

Value = str | float | bool
"""One label, or one part of a judgement."""

Judged = Mapping[str, Mapping[str, Sequence[Value]]]
"""Measure → unit → what was judged, once or more often."""


@dataclass(frozen=True)
class HumanLabels:
    """People's labels of texts that a language model judges."""

    by_measure: Mapping[str, Mapping[str, Mapping[str, Any]]]
    """Measure → unit → person → label; the measure is empty if the file does not name any."""

    source: str = "the labels"
    """Where they come from, for errors."""

    def of(self, measure: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the labels of a measure by unit; those of no named measure belong to all."""
        return self.by_measure.get(measure, self.by_measure.get("", {}))


@dataclass(frozen=True, kw_only=True)
class JudgeAgreement:
    """How far a judge agrees with people on one measure."""

    measure: str
    """What is judged."""

    level: Level
    """Level of measurement at which labels are compared."""

    judge: Estimate | None
    """Krippendorff's alpha between the judge and one person per unit; None where nothing can be compared."""

    people: Estimate | None
    """Krippendorff's alpha of people among themselves; None with fewer than two per unit."""

    n_people: int
    """Number of people who labelled units that were judged."""

    n_labelled: int
    """Number of units that are both labelled and judged."""

    n_judged: int
    """Number of units that were judged."""

    @property
    def verdict(self) -> Verdict:
        """What the conventional bounds say of the judge.

        Source:
            Krippendorff (2004), Content Analysis, 2nd edition, section 11.4.
        """
        if self.judge is None:
            return "not checked"
        if self.judge.value >= RELIABLE:
            return "reliable"
        return "tentative" if self.judge.value >= TENTATIVE else "not to be used"

    @property
    def written(self) -> dict[str, Any]:
        """The agreement as plain values, with its verdict."""
        return {**asdict(self), "verdict": self.verdict}

    @property
    def text(self) -> str:
        """The agreement as a sentence."""
        if self.judge is None:
            return f"{self.measure}: nothing to compare ({counted(self.n_labelled, 'labelled unit')})"
        from mesa_llm.statistics import with_interval  # SciPy takes a while to import

        people = "" if self.people is None else f"; people among themselves {with_interval(self.people)}"
        return (
            f"{self.measure}: judge and people agree with alpha {with_interval(self.judge)}{people} ({self.level}, "
            f"{counted(self.judge.n, 'unit')}, {counted(self.n_people, 'person', 'people')}): {self.verdict}"
        )


@dataclass
class Judgements:
    """What the judges of a run have said so far: counted, and kept where people labelled the same texts."""

    labels: HumanLabels | None = None
    """Labels to compare with; None: none."""

    keeps_all: bool = False
    """Whether to keep every judgement with its text, for a template of labels."""

    n: Counter[str] = field(default_factory=Counter[str])
    """Purpose → number of judgements."""

    n_by_rule: Counter[str] = field(default_factory=Counter[str])
    """Purpose → number of judgements that a rule made."""

    judged: dict[str, dict[str, list[Value]]] = field(default_factory=dict[str, dict[str, list[Value]]])
    """Measure → unit → what was judged."""

    units: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """Measure → units, where labels are compared or all is kept."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    """Unit → its text, if everything is kept."""

    def add(
        self, purpose: str, prompts: Iterable[str | Sequence[ChatMessage]], results: Iterable[Decision | Failure]
    ) -> None:
        """Count judgements, and keep those to compare.

        Args:
            purpose: Purpose of the consultation.
            prompts: The prompts.
            results: What came of each.
        """
        for prompt, result in zip(prompts, results, strict=True):
            if isinstance(result, Failure):
                continue
            self.n[purpose] += 1
            self.n_by_rule[purpose] += result.by == "rule"
            if self.labels is not None or self.keeps_all:
                self._keep(purpose, prompt if isinstance(prompt, str) else prompt[-1].content, result.answer)

    def _keep(self, purpose: str, text: str, answer: Any) -> None:
        name = unit_of(text)
        if self.keeps_all:
            self.texts[name] = text
        for measure, unit, value in judged_values(purpose, name, answer):
            self.units.setdefault(measure, set()).add(unit)
            if self.keeps_all or (self.labels is not None and unit in self.labels.of(measure)):
                self.judged.setdefault(measure, {}).setdefault(unit, []).append(value)

    def agreements(self, level: Level | None = None) -> list[JudgeAgreement]:
        """Compare the judgements with the labels, by measure; empty without labels.

        Args:
            level: Level of measurement; None: `interval` where all labels are numbers, otherwise `nominal`.

        Raises:
            ConfigError: If the file names no measure, and several are judged; or a label cannot be compared.
        """
        if self.labels is None:
            return []
        n_judged = {measure: len(units) for measure, units in self.units.items()}
        return agreements_of(self.labels, self.judged, level, n_judged)

    def rates(self) -> dict[str, tuple[int, int]]:
        """Count judgements by what is known of their judge: kind of data quality → how many, and of how many."""
        total = self.n.total()
        if not total:
            return {}
        verdicts: dict[str, list[str]] = {}
        for one in self.agreements():
            verdicts.setdefault(one.measure.partition(".")[0], []).append(one.verdict)
        counts: Counter[str] = Counter()
        for purpose, n in self.n.items():
            found = verdicts.get(purpose, [])
            kind = next((kind for verdict, kind in QUALITY.items() if verdict in found), None)
            if kind is None:
                counts["judge_unchecked"] += n - self.n_by_rule[purpose]
                counts["judged_by_rule"] += self.n_by_rule[purpose]
            else:
                counts[kind] += n
        return {kind: (n, total) for kind, n in counts.items() if n}


QUALITY: Mapping[str, str] = {
    "not to be used": "judge_unreliable",
    "tentative": "judge_tentative",
    "reliable": "judge_reliable",
}
"""Verdict → kind of data quality, the worst first; a judge with several measures is as good as its worst."""


def unit_of(text: str) -> str:
    """Return the name of a text in a labels file, the same in every run and for every judge."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def judged_values(purpose: str, unit: str, answer: Any) -> Iterator[tuple[str, str, Value]]:
    """Take a judgement apart.

    A name that ends in a number, such as `agent_1`, belongs to the unit and not to the measure, so that both people of
    a meeting are units of one measure.

    Args:
        purpose: Purpose of the consultation.
        unit: Name of the judged text.
        answer: The judgement: a value, a pydantic model, or nested dictionaries.

    Yields:
        Measure, unit and value of each part that may be labelled; reasons are left out.
    """
    parts = answer.model_dump() if isinstance(answer, BaseModel) else answer
    if isinstance(parts, Mapping):
        for name, part in cast("Mapping[str, Any]", parts).items():
            if name in REASONS:
                continue
            if re.search(r"\d$", name):
                yield from judged_values(purpose, f"{unit}/{name}", part)
            else:
                yield from judged_values(f"{purpose}.{name}", unit, part)
    elif isinstance(parts, str):
        if len(parts) <= MAX_LABEL:
            yield purpose, unit, parts
    elif isinstance(parts, int | float) and math.isfinite(parts):
        yield purpose, unit, parts


def read_labels(source: TableSource, *, missing: Collection[str] = MISSING, encoding: str | None = None) -> HumanLabels:
    """Read people's labels from a table, or from its file (CSV, or any other that populations are read from).

    Args:
        source: A file or table with the columns named at the top of this module.
        missing, encoding: As for `mesa_llm.tables.read_table`.

    Raises:
        ConfigError: If the file cannot be read, has no column `unit`, no labels, or two of one person for a unit.
    """
    place = str(source) if isinstance(source, str | Path) else "the labels"
    placed = read_table(source, (UNIT, MEASURE, CODER, LABEL), missing=missing, encoding=encoding)
    rows = [row for row in whole_rows(source, placed) if row]
    rows = [{folded(name): cell for name, cell in row.items()} for row in rows]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if UNIT not in columns:
        raise ConfigError(
            f"{place} has the columns {', '.join(columns)}; wanted {UNIT!r}, which says which text a label is of; "
            "`mesa-llm agreement FILE RUN --template` writes a file to fill in"
        )
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        unit, measure = str(row.get(UNIT, "")).strip(), str(row.get(MEASURE, "")).strip()
        labels = found.setdefault(measure, {}).setdefault(unit, {})
        for coder, label in _labels_in(row, columns):
            if coder in labels:
                raise ConfigError(f"{place}: {coder} labels {measure} {unit!r} twice; keep one of the labels")
            labels[coder] = label
    if not any(labels for units in found.values() for labels in units.values()):
        raise ConfigError(f"{place} holds no labels yet; fill in a column for each person, under any name")
    return HumanLabels(found, place)


def _labels_in(row: Mapping[str, Any], columns: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield each person's label in a row."""
    if CODER in columns and LABEL in columns:
        if CODER in row and LABEL in row:
            yield str(row[CODER]).strip(), row[LABEL]
        return
    for name, cell in row.items():
        if name not in (UNIT, MEASURE, TEXT):
            yield name, cell


def agreements_of(
    labels: HumanLabels, judged: Judged, level: Level | None = None, n_judged: Mapping[str, int] | None = None
) -> list[JudgeAgreement]:
    """Compare judgements with people's labels, by measure.

    Args:
        labels: The labels.
        judged: Measure → unit → what was judged.
        level: Level of measurement; None: `interval` where all labels are numbers, otherwise `nominal`.
        n_judged: Measure → number of units that were judged; None: those in `judged`.

    Returns:
        One row for each measure that is labelled.

    Raises:
        ConfigError: If the labels name no measure, and several are judged; or a label cannot be compared.
    """
    counts = n_judged or {measure: len(units) for measure, units in judged.items()}
    if "" in labels.by_measure and len(counts) > 1:
        raise ConfigError(f"{labels.source} needs the column {MEASURE!r}, as several are judged: {', '.join(counts)}")
    measures = [measure for measure in counts if labels.of(measure)]
    return [_agreement(labels, measure, judged.get(measure, {}), level, counts[measure]) for measure in measures]


def _agreement(
    labels: HumanLabels, measure: str, judged: Mapping[str, Sequence[Value]], level: Level | None, n_judged: int
) -> JudgeAgreement:
    own = labels.of(measure)
    units = [unit for unit in judged if own.get(unit)]
    by_judge = [list(judged[unit]) for unit in units]
    by_people = [list(own[unit].values()) for unit in units]
    if any(isinstance(value, bool) for values in by_judge for value in values):
        by_people = [[_yes_or_no(label, labels.source) for label in row] for row in by_people]
        first, second, chosen = by_judge, by_people, "nominal"
    else:
        numbers = [[[number_in(label) for label in row] for row in rows] for rows in (by_judge, by_people)]
        are_numbers = all(one is not None for rows in numbers for row in rows for one in row)
        chosen = level or ("interval" if are_numbers else "nominal")
        if chosen != "nominal" and not are_numbers:
            raise ConfigError(f"{labels.source}: labels of {measure} are no numbers; compare them as nominal ones")
        texts = [[[_name(label) for label in row] for row in rows] for rows in (by_judge, by_people)]
        first, second = numbers if are_numbers else texts
    from mesa_llm.statistics import alpha_between, krippendorff_alpha  # SciPy takes a while to import

    compared: Level = chosen
    return JudgeAgreement(
        measure=measure,
        level=compared,
        judge=alpha_between(first, second, compared),
        people=krippendorff_alpha(second, compared),
        n_people=len({coder for unit in units for coder in own[unit]}),
        n_labelled=len(units),
        n_judged=n_judged,
    )


def _yes_or_no(label: Any, source: str) -> bool:
    text = _name(label)
    if text not in YES_OR_NO:
        raise ConfigError(f"{source}: {label!r:.60} is neither yes nor no, which is what the judge says")
    return YES_OR_NO[text]


def _name(label: Any) -> str:
    """Return a label as a name; case and spaces do not count."""
    text = label if isinstance(label, str) else canonical_json(label)
    return " ".join(text.casefold().split())
