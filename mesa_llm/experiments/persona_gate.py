"""The gate of personas: contrasts in words on which no prompt was tuned, in two halves.

    gate = load_gate("A")
    rows = run_contrasts("local:1.5b", gate.contrasts())
    print(*gate_lines(gate_result(gate, rows)), sep="\n")

A contrast that repeats its persona's words in its question measures those words. Here, the statements of a trait share
no content word with its personas, each persona stands in four wordings, and the choices are those of models that the
prompts were not tuned on. One half may be looked at while prompts are changed; the other half is only asked at the end.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.persona import Contrast, ContrastRow, decimal_text, range_text
from mesa_llm.questionnaire import Instrument, read_instruments
from mesa_llm.statistics import Estimate, mean_estimate, with_interval
from mesa_llm.text import NOT_KNOWN, counted, suggestion

HALVES = {"A": "persona_gate_a.toml", "B": "persona_gate_b.toml"}
"""Half of the gate → its file beside this module: A may be looked at, B only decides."""

MIN_WORDINGS = 4
"""Minimum number of wordings of each persona."""

GOAL = 0.7
"""Mean difference of the traits of a half, in points of a scale from 1 to 5, at which it is passed."""

QUESTIONNAIRE: Mapping[str, Any] = {"per_request": 1, "history": False, "order": "published", "administrations": 1}
"""Parameters of `psychobench` for the statements of a trait."""


class _Personas(BaseModel):
    """The two personas of a contrast, in all wordings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    high: tuple[str, ...]
    low: tuple[str, ...]


class _Choice(_Personas):
    """A choice, as its file has it; see `Contrast`."""

    model: str
    measure: str
    range: tuple[float, float] = (0, 1)
    parameters: tuple[dict[str, Any], ...] = ({},)
    questions: tuple[str, ...] = ()
    choices: tuple[Any, ...] = ()


class _GateFile(BaseModel):
    """A half of the gate, as its file has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    half: str
    items: str
    wordings: Annotated[tuple[str, ...], Field(min_length=MIN_WORDINGS)]
    trait: Annotated[tuple[_Personas, ...], Field(min_length=1)]
    choice: tuple[_Choice, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Gate:
    """One half of the gate."""

    half: str
    """Its name."""

    wordings: tuple[str, ...]
    """Names of the wordings, in their order."""

    traits: tuple[Contrast, ...]
    """Contrasts of traits, in points of the scale of their statements."""

    choices: tuple[Contrast, ...]
    """Contrasts of choices, in probability."""

    def contrasts(self, names: Iterable[str] | None = None) -> list[Contrast]:
        """Return the traits and choices of these names.

        Args:
            names: The names; None: all.

        Raises:
            ConfigError: If there is none of a name.
        """
        by_name = {one.name: one for one in (*self.traits, *self.choices)}
        wanted = list(by_name) if names is None else list(names)
        if unknown := [name for name in wanted if name not in by_name]:
            hint = suggestion(unknown[0], by_name)
            raise ConfigError(f"half {self.half} has no contrast {unknown[0]!r}; there are: {', '.join(by_name)}{hint}")
        return [by_name[name] for name in wanted]


def load_gate(half: str | Path) -> Gate:
    """Load a half of the gate, and check that it is one.

    Args:
        half: `A`, `B`, or the path of a file of their form, with a table of statements beside it.

    Raises:
        ConfigError: If the file cannot be read, personas lack a wording, or a statement shares a content word with a
            persona of its trait. The message names it.
    """
    file = HALVES.get(str(half))
    path = Path(half) if file is None else Path(__file__).parent / file
    try:
        written = _GateFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise ConfigError(f"{path} is no half of the gate (A, B, or a file of their form): {error}") from error
    items = path.parent / written.items
    instruments = read_instruments(items)
    for personas in (*written.trait, *written.choice):
        _require_wordings(path, personas, written.wordings)
    for trait in written.trait:
        _require_other_words(path, trait, _statements(instruments, trait.name))
    return Gate(
        half=written.half,
        wordings=written.wordings,
        traits=tuple(_trait(one, items, instruments, written.wordings) for one in written.trait),
        choices=tuple(Contrast(**one.model_dump(), wordings=written.wordings) for one in written.choice),
    )


def _trait(personas: _Personas, items: Path, instruments: Sequence[Instrument], wordings: tuple[str, ...]) -> Contrast:
    scale = next(one.scale for one in instruments if _has(one, personas.name))
    return Contrast(
        **personas.model_dump(),
        model="psychobench",
        measure="answer",
        range=(scale.low, scale.high),
        parameters=({**QUESTIONNAIRE, "items": str(items), "subscales": [personas.name.capitalize()]},),
        wordings=wordings,
    )


def _has(instrument: Instrument, trait: str) -> bool:
    return any(one.name.casefold() == trait.casefold() for one in instrument.subscales)


def _statements(instruments: Sequence[Instrument], trait: str) -> list[str]:
    """Return the statements of a trait."""
    return [
        instrument.items[number]
        for instrument in instruments
        for one in instrument.subscales
        if one.name.casefold() == trait.casefold()
        for number in one.items
    ]


def _require_wordings(path: Path, personas: _Personas, wordings: Sequence[str]) -> None:
    """Check that both personas are there in all wordings."""
    if not len(personas.high) == len(personas.low) == len(wordings):
        raise ConfigError(
            f"{path}: {personas.name} has {len(personas.high)} high and {len(personas.low)} low personas; expected one "
            f"of each for {', '.join(wordings)}"
        )


def _require_other_words(path: Path, trait: _Personas, statements: Sequence[str]) -> None:
    """Check that there are statements, and that none uses a content word of a persona."""
    if not statements:
        raise ConfigError(f"{path}: there is no statement of {trait.name}; name it in the column 'scale'")
    for persona in (*trait.high, *trait.low):
        for statement in statements:
            if shared := stems(persona) & stems(statement):
                words = ", ".join(sorted(shared))
                raise ConfigError(f"{path}: {statement!r} and the persona {persona!r} of {trait.name} share {words}")


# -- words

_FUNCTION_WORDS = (
    "a about after again all also always am among an and another any anyone are around as at away back be been before "
    "behind below between both but by can could did do does done down each else every everybody everyone everything "
    "few fewer first for from had has have he her here herself him himself his how i if in into is it its itself last "
    "least less like made make makes many may me mine more most much must my myself never no nobody nor not nothing "
    "of off often on once one only or other others our out over own same she should so some somebody someone "
    "something such than that the their them then there they thing things this those through to too two under until "
    "up upon us very was we were what whatever when where whether which while who whom whose why will with without "
    "would you your yours yourself hardly ever even rather quite"
)
"""Words that say nothing about a person by themselves."""

_ENDINGS = re.compile(r"(?:ness|fulness|ments?|ions?|ings?|edly|ies|ied|ily|ful|less|able|ers?|est|ed|es|ly|s|y|e)$")


def stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text, as far as cutting off endings finds them.

    Args:
        text: The text.
    """
    ignored = _FUNCTION_WORDS.split()
    words = re.findall(r"[a-z]+", text.casefold().replace("’s", "").replace("'s", ""))
    return frozenset(_stem(word) for word in words if word not in ignored and len(word) > 1)


def _stem(word: str) -> str:
    """Cut endings off a word as long as four letters remain, and a doubled consonant at its end."""
    while (found := _ENDINGS.search(word)) and found.start() >= 4:
        word = word[: found.start()]
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word


# -- results


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """What came of one half of the gate."""

    half: str
    """Its name."""

    wordings: tuple[str, ...]
    """Names of the wordings."""

    traits: tuple[ContrastRow, ...]
    """Differences of the traits, in points of their scale."""

    choices: tuple[ContrastRow, ...]
    """Differences of the choices, in probability."""

    @property
    def mean(self) -> Estimate | None:
        """Mean difference of the traits, with its interval over pairs of personas (trait by wording)."""
        pairs = [one for row in self.traits for one in row.by_wording if one is not None]
        return mean_estimate(pairs, "pairs of personas")

    @property
    def by_wording(self) -> tuple[float | None, ...]:
        """Mean difference of the traits under each wording."""
        return _columns(self.traits, len(self.wordings))

    @property
    def n_right(self) -> int:
        """Number of choices whose probability is higher under the persona that should make it more probable."""
        return sum(row.difference is not None and row.difference.value > 0 for row in self.choices)

    @property
    def is_passed(self) -> bool:
        """Whether the mean reaches `GOAL` and every choice moves the right way."""
        return self.mean is not None and self.mean.value >= GOAL and self.n_right == len(self.choices)

    @property
    def written(self) -> dict[str, Any]:
        """The result as plain values."""
        rows = {name: [row.written for row in getattr(self, name)] for name in ("traits", "choices")}
        means = {"mean": None if self.mean is None else vars(self.mean), "by_wording": list(self.by_wording)}
        return {"half": self.half, "wordings": list(self.wordings), **rows, **means, "is_passed": self.is_passed}


def gate_result(gate: Gate, rows: Sequence[ContrastRow]) -> GateResult:
    """Put the rows of a half of the gate together.

    Args:
        gate: The half.
        rows: Rows of its contrasts, or of some of them.
    """
    of_traits = {one.name for one in gate.traits}
    return GateResult(
        half=gate.half,
        wordings=gate.wordings,
        traits=tuple(row for row in rows if row.name in of_traits),
        choices=tuple(row for row in rows if row.name not in of_traits),
    )


def _columns(rows: Iterable[ContrastRow], n_wordings: int) -> tuple[float | None, ...]:
    """Average the differences of some rows under each wording."""
    columns = [[row.by_wording[index] for row in rows] for index in range(n_wordings)]
    known = [[one for one in column if one is not None] for column in columns]
    return tuple(fmean(column) if column else None for column in known)


def gate_lines(result: GateResult) -> list[str]:
    """Write a half of the gate as a table: contrast by wording, with the mean and the range by wording.

    Args:
        result: The result.
    """
    lines = [f"Half {result.half}", _line("", result.wordings, "mean", "n", "range of wordings")]
    lines += [_row(row) for row in result.traits]
    if result.traits:
        lines.append(_line("mean of traits", map(_figure, result.by_wording), _value(result.mean), "", ""))
    lines += [_row(row) for row in result.choices]
    if result.mean is not None:
        lines.append(
            f"Traits, in points of the scale: {with_interval(result.mean)}, {range_text(result.by_wording)}, over "
            f"{counted(result.mean.n, 'pair of personas', 'pairs of personas')}."
        )
    if result.choices:
        lines.append(f"Choices, in probability: {result.n_right} of {len(result.choices)} move the right way.")
    return lines


def _row(row: ContrastRow) -> str:
    n = 0 if row.difference is None else row.difference.n
    return _line(row.name, map(_figure, row.by_wording), _value(row.difference), str(n), row.wording_range)


def _value(estimate: Estimate | None) -> str:
    return _figure(None if estimate is None else estimate.value)


def _figure(value: float | None) -> str:
    return NOT_KNOWN if value is None else decimal_text(value)


def _line(name: str, cells: Iterable[str], mean: str, n: str, spread: str) -> str:
    return f"{name:<26} {''.join(f'{cell:>15}' for cell in cells)}{mean:>8}{n:>5}  {spread}".rstrip()
