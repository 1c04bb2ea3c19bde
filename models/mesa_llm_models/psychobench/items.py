"""The thirteen instruments: their published keys, statements of our own, and the loader of the original file."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from mesa_llm.errors import ConfigError
from mesa_llm.questionnaire import (
    Instrument,
    Mode,
    Original,
    Scale,
    Subscale,
    WrittenInstrument,
    describe_scale,
    read_instruments,
    read_json_instruments,
)
from mesa_llm.questionnaire.files import COLUMNS
from mesa_llm.tables import decoded, kind_of, read_bytes, read_text

logger = logging.getLogger(__name__)

OWN = "own"
"""Kind of instruments that people bring."""

QUESTIONNAIRES = Original(
    "psychobench",
    "questionnaires.json",
    "https://raw.githubusercontent.com/CUHK-ARISE/PsychoBench/d514fb0810f4c79571b4e13e588ffe7f5daaa24f/"
    "questionnaires.json",
    "eb5d531edd8f9815eb4495fa3de1ff1a783e2f1b5c8a90a8a527967873906826",
    "GPL-3.0, for research alone; the instruments are third parties'",
)
"""The original file; norms are compared with this very file alone."""

CORRECTED_NAMES: Mapping[tuple[str, str], str] = {
    ("EPQ-R", "Pschoticism"): "Psychoticism",
    ("DTDD", "Neuroticism"): "Narcissism",
    ("CABIN", "Business Iniatives"): "Business Initiatives",
    ("ECR-R", "Attachment-related Anxiety"): "Attachment Anxiety",
    ("ECR-R", "Attachment-related Avoidance"): "Attachment Avoidance",
    ("LMS", "Factor rich"): "Rich",
    ("LMS", "Factor motivator"): "Motivator",
    ("LMS", "Factor important"): "Important",
}
"""Instrument and label in the original file → name of the subscale, as the papers have it."""

INTERESTS = (
    "Mechanics/Electronics",
    "Construction/WoodWork",
    "Transportation/Machine Operation",
    "Physical/Manual Labor",
    "Protective Service",
    "Agriculture",
    "Nature/Outdoors",
    "Animal Service",
    "Athletics",
    "Engineering",
    "Physical Science",
    "Life Science",
    "Medical Science",
    "Social Science",
    "Humanities",
    "Mathematics/Statistics",
    "Information Technology",
    "Visual Arts",
    "Applied Arts and Design",
    "Performing Arts",
    "Music",
    "Writing",
    "Media",
    "Culinary Art",
    "Teaching/Education",
    "Social Service",
    "Health Care Service",
    "Religious Activities",
    "Personal Service",
    "Professional Advising",
    "Business Initiatives",
    "Sales",
    "Marketing/Advertising",
    "Finance",
    "Accounting",
    "Human Resources",
    "Office Work",
    "Management/Administration",
    "Public Speaking",
    "Politics",
    "Law",
)
"""The subscales of CABIN, four items each."""

Group = Literal["personality", "interpersonal", "motivation", "emotional"]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split())


def _span(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1))


@dataclass(frozen=True)
class Form:
    """Published key of an instrument: all but its items."""

    group: Group
    """Kind of instrument."""

    n_items: int
    """Number of items."""

    low: int
    """Lowest answer."""

    high: int
    """Highest answer."""

    mode: Mode
    """Way to combine keyed answers into a score."""

    subscales: Mapping[str, tuple[int, ...]]
    """Name → numbers of its items."""

    reversed_items: frozenset[int] = field(default_factory=frozenset)
    """Numbers of the reversed items."""


FORMS: Mapping[str, Form] = {
    "BFI": Form(
        "personality",
        44,
        1,
        5,
        "mean",
        {
            "Extraversion": _span(1, 36)[::5],
            "Agreeableness": _span(2, 42)[::5],
            "Conscientiousness": _span(3, 43)[::5],
            "Neuroticism": _span(4, 39)[::5],
            "Openness": (*_span(5, 40)[::5], 41, 44),
        },
        frozenset(_numbers("2 6 8 9 12 18 21 23 24 27 31 34 35 37 41 43")),
    ),
    "EPQ-R": Form(
        "personality",
        100,
        0,
        1,
        "sum",
        {
            "Extraversion": _numbers("1 6 11 16 20 24 28 33 36 40 45 47 51 55 58 61 63 67 69 72 78 90 94"),
            "Psychoticism": _numbers(
                "2 5 7 9 12 14 18 21 25 29 30 34 37 41 42 48 50 54 56 59 64 68 73 75 79 81 85 88 91 95 96 99"
            ),
            "Neuroticism": _numbers("3 8 13 17 22 26 31 35 38 43 46 52 60 65 70 74 76 80 83 84 87 92 97 100"),
            "Lying": _numbers("4 10 15 19 23 27 32 39 44 49 53 57 62 66 71 77 82 86 89 93 98"),
        },
        frozenset(
            _numbers(
                "2 4 5 7 9 10 12 14 18 19 21 24 27 32 33 41 44 47 49 53 54 57 59 64 66 68 71 77 79 81 82 85 88 89 93 "
                "96 99"
            )
        ),
    ),
    "DTDD": Form(
        "personality",
        12,
        1,
        9,
        "mean",
        {"Machiavellianism": _span(1, 4), "Psychopathy": _span(5, 8), "Narcissism": _span(9, 12)},
    ),
    "BSRI": Form("interpersonal", 60, 1, 7, "mean", {"Masculine": _span(1, 20), "Feminine": _span(21, 40)}),
    "CABIN": Form(
        "interpersonal",
        164,
        1,
        5,
        "mean",
        {name: _span(4 * place - 3, 4 * place) for place, name in enumerate(INTERESTS, 1)},
    ),
    "ICB": Form("interpersonal", 8, 1, 6, "mean", {"Overall": _span(1, 8)}, frozenset(_span(5, 8))),
    "ECR-R": Form(
        "interpersonal",
        36,
        1,
        7,
        "mean",
        {"Attachment Anxiety": _span(1, 18), "Attachment Avoidance": _span(19, 36)},
        frozenset(_numbers("9 11 20 22 26 27 28 29 30 31 33 34 35 36")),
    ),
    "GSE": Form("motivation", 10, 1, 4, "sum", {"Overall": _span(1, 10)}),
    "LOT-R": Form("motivation", 10, 0, 4, "sum", {"Overall": _numbers("1 3 4 7 9 10")}, frozenset((3, 7, 9))),
    "LMS": Form(
        "motivation",
        9,
        1,
        5,
        "mean",
        {"Rich": _span(1, 3), "Motivator": _span(4, 6), "Important": _span(7, 9)},
    ),
    "EIS": Form("emotional", 33, 1, 5, "sum", {"Overall": _span(1, 33)}, frozenset((5, 28, 33))),
    "WLEIS": Form(
        "emotional",
        16,
        1,
        7,
        "mean",
        {"SEA": _span(1, 4), "OEA": _span(5, 8), "UOE": _span(9, 12), "ROE": _span(13, 16)},
    ),
    "Empathy": Form("emotional", 10, 1, 7, "mean", {"Overall": _span(1, 10)}, frozenset((1, 6, 8, 9))),
}
"""Instrument → its key, as Huang et al. (2024) and their code have it."""


# -- our own statements


def own_instruments() -> list[Instrument]:
    """Load the statements of our own: an instrument for each of the thirteen, with its subscales and its scale."""
    text = resources.files(__package__).joinpath("data", "items.json").read_text(encoding="utf-8")
    return [_own(entry) for entry in json.loads(text)]


def _own(entry: Mapping[str, Any]) -> Instrument:
    form = FORMS[entry["form"]]
    items: dict[int, str] = {}
    reversed_items: set[int] = set()
    subscales: list[Subscale] = []
    for name, statements in entry["subscales"].items():
        first = len(items) + 1
        for number, statement in enumerate(statements, first):
            items[number] = statement.removeprefix("-")
            reversed_items |= {number} if statement.startswith("-") else set()
        subscales.append(Subscale(name, _span(first, len(items)), form.mode))
    items |= dict(enumerate(entry["fillers"], len(items) + 1))
    anchors = {int(answer): meaning for answer, meaning in entry["anchors"].items()}
    scale = Scale(form.low, form.high, frozenset(reversed_items), anchors)
    instructions = f"{entry['instructions']} {describe_scale(scale)}"
    return Instrument(entry["name"], instructions, items, scale, tuple(subscales), form.group)


# -- the original file


def read_original(path: str | Path) -> list[Instrument]:
    """Read PsychoBench's `questionnaires.json`.

    The texts are used whole; the original program cuts each at its first full stop. The range of answers, of which the
    file holds only the sum of both ends (`scale`), comes from `FORMS`; of any other instrument from its `min` and
    `max`, or from its prompt: 0 to `scale` if that speaks of 0, else 1 to `scale` − 1. `16P`, which is scored by a
    website, is left out.

    Args:
        path: The file. Another file of this form is read, too, but without norms, which hold for the published items.

    Returns:
        The instruments, in the order of the file.

    Raises:
        ConfigError: If the file cannot be read, or is of another form; the text names the file and the key.
    """
    try:
        raw = read_bytes(Path(path))
    except ConfigError as error:
        reason = f"{error}; the original file is at {QUESTIONNAIRES.url}"
        raise ConfigError(f"{reason}, or leave items='own' for statements of our own") from error
    return read_json_instruments(
        decoded(raw, Path(path)),
        str(path),
        _range_of,
        is_original=QUESTIONNAIRES.is_content(raw),
        without={"16P"},
        subscale_names=CORRECTED_NAMES,
        groups={name: form.group for name, form in FORMS.items()},
    )


def _range_of(written: WrittenInstrument) -> tuple[int, int]:
    """Return the lowest and highest answer of an instrument, whose sum is in the file."""
    form, low, high = FORMS.get(written.name), written.min, written.max
    if low is None and high is None and form is not None and written.scale == form.low + form.high:
        return form.low, form.high
    if low is None:
        speaks_of_0 = "0" in re.findall(r"-?\d+", written.prompt)
        low = written.scale - high if high is not None else 0 if speaks_of_0 or written.scale == 1 else 1
    high = written.scale - low if high is None else high
    if written.min is None and written.max is None and low < high:
        logger.warning("%s: answers are %d to %d (keys 'min' and 'max' change that)", written.name, low, high)
    return low, high


def proper_name(instrument: str, label: str) -> str:
    """Return the name of a subscale by its label in the original file; see `CORRECTED_NAMES`."""
    return CORRECTED_NAMES.get((instrument, label), label)


def load_instruments(items: str, names: Sequence[str] | None = None) -> list[Instrument]:
    """Load the instruments of a run.

    Args:
        items: `own`, `original` (downloaded at first use), or the path of a file: of the original's form, or a table of
            items, see `mesa_llm.questionnaire.read_instruments`.
        names: Which of them; None: all.

    Raises:
        ConfigError: If the file cannot be downloaded or read, a name is unknown, or `names` is empty.
    """
    instruments = own_instruments() if items == "own" else _read(QUESTIONNAIRES.path(items, "items"))
    by_name = {one.name: one for one in instruments}
    if names is None:
        return list(by_name.values())
    if not names:
        raise ConfigError(f"instruments names none; name one or more of {', '.join(by_name)}, or leave it out for all")
    if unknown := [name for name in names if name not in by_name]:
        raise ConfigError(f"instruments: there is no {unknown[0]!r} in items={items!r}; allowed: {', '.join(by_name)}")
    return [by_name[name] for name in dict.fromkeys(names)]


def _read(path: Path) -> list[Instrument]:
    """Read a file of instruments: a table, or JSON of the original's form."""
    if kind_of(path) not in (".json", ""):
        return read_instruments(path)
    if not path.is_file():
        return read_original(path)  # which says where the original file is
    text = read_text(path)
    is_table = '"questions"' not in text and any(f'"{name}"' in text.casefold() for name in COLUMNS["text"])
    return read_instruments(path) if is_table else read_original(path)
