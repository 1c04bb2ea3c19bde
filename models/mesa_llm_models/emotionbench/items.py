"""What is asked: instruments of affect and situations that evoke emotions, our own or the original's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from mesa_llm import ConfigError
from mesa_llm.questionnaire import (
    Instrument,
    Original,
    WrittenInstrument,
    read_instruments,
    read_json_instruments,
)
from mesa_llm.tables import decoded, kind_of, read_bytes
from mesa_llm.text import one_line
from mesa_llm.tools.tool import describe
from mesa_llm_models.emotionbench.text import imagined_text

OWN = resources.files("mesa_llm_models.emotionbench").joinpath("data", "affect_list.json")
"""Our own instrument, in the form of the original's file."""

BASE = "https://raw.githubusercontent.com/CUHK-ARISE/EmotionBench/48f6e1b01c449c213374172b24e6a461b59cd088/"

LICENCE = "GPL-3.0, for research alone; the instruments are third parties'"

QUESTIONNAIRES = Original(
    "emotionbench",
    "questionnaires.json",
    f"{BASE}questionnaires.json",
    "62df9edf007ba5da0c8e80b027113159ac490574a1f536bbb3d4177af5751585",
    LICENCE,
)
"""The original's nine instruments; published numbers hold for this very file alone."""

PLACEHOLDER = "SCENARIO"
"""Placeholder of the situation in an instrument's instructions."""

MAX_BYTES = 5_000_000
"""Maximum size of a file that is read."""


def load_instruments(path: str | Path | None = None) -> dict[str, Instrument]:
    """Load instruments.

    Args:
        path: The original's `questionnaires.json`, a file of its form, or a table of items; `original`: that file,
            downloaded at first use; None or empty: our own list.

    Returns:
        Name → instrument; `is_original` only if the file is exactly the original's.

    Raises:
        ConfigError: If the file cannot be downloaded or read, or holds something else.
    """
    if path:
        file = QUESTIONNAIRES.path(path, "questionnaires")
        if kind_of(file) not in (".json", ""):
            return {one.name: one for one in read_instruments(file)}
        name, text = read_text(file)
    else:
        name, text = "affect_list.json", OWN.read_text(encoding="utf-8")
    instruments = read_json_instruments(text, name, _range_of, is_original=QUESTIONNAIRES.is_content(text.encode()))
    return {
        one.name: replace(one, items={number: one_line(text, 600) for number, text in one.items.items()})
        for one in instruments
    }


def read_text(path: str | Path) -> tuple[str, str]:
    """Read a text file of at most `MAX_BYTES`; lines end as they do in the file.

    Returns:
        Its path, and its text.

    Raises:
        ConfigError: If the file cannot be read, is too large, or its encoding cannot be told.
    """
    file = Path(path)
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{file}: {file.stat().st_size} bytes, and at most {MAX_BYTES} are read")
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
    return str(file), decoded(read_bytes(file), file)


def _range_of(written: WrittenInstrument) -> tuple[int, int]:
    """Find the range of answers, which stands in the instructions; the file holds only the sum of both ends."""
    match = re.search(r"from (\d+) to (\d+)", written.inner_setting or written.prompt)
    return (int(match[1]), int(match[2])) if match else (1, written.scale - 1)


def with_situation(instrument: Instrument, situation: str) -> str:
    """Return an instrument's instructions with a situation in place of `PLACEHOLDER`, or before them if they have none.

    Args:
        instrument: The instrument.
        situation: The situation, in the second person; empty: none.
    """
    imagined = f"{imagined_text(situation)}\n\n" if situation else ""
    if PLACEHOLDER not in instrument.instructions:
        return f"{imagined}{instrument.instructions}"
    return (
        " ".join(re.sub(rf"\s*{PLACEHOLDER}\s*", "\0", instrument.instructions).split())
        .replace("\0", f" {imagined}")
        .strip()
    )


def checked_name(instruments: dict[str, Instrument], name: str | None) -> Instrument:
    """Return the instrument of a name; None or empty: the first.

    Raises:
        ConfigError: If there is none of this name.
    """
    if not name:
        return next(iter(instruments.values()))
    if name not in instruments:
        raise ConfigError(f"instrument: there is no {name!r}; there are: {', '.join(instruments)}")
    return instruments[name]


# -- situations

OWN_SITUATIONS = resources.files("mesa_llm_models.emotionbench").joinpath("data", "situations.json")
"""Our own situations, two for each factor, and a pleasant twin for each emotion."""

SITUATIONS = Original(
    "emotionbench",
    "situations.json",
    f"{BASE}situations.json",
    "3b4ef2ea1e5452814064bb480ec89feb83228f151a51ff9472134c3d68152b35",
    LICENCE,
)
"""The original's 428 situations; published numbers hold for this very file alone."""

MAX_CHARACTERS = 2000
"""Maximum number of characters of a situation."""


@dataclass(frozen=True)
class Occasion:
    """Occasion of a sheet: a situation, or none."""

    label: str
    """Label of its sheet."""

    text: str = ""
    """What happens, in the second person; empty: the default measurement."""

    emotion: str = ""
    """Emotion that it is meant to evoke; empty: none."""

    factor: str = ""
    """Kind of situation, as the original names it; empty: none."""

    is_twin: bool = False
    """Whether it is the pleasant counterpart of an emotion's situations, for which there are no published numbers."""


class _Factor(BaseModel):
    name: Annotated[str, Field(min_length=1, max_length=200)]
    scenarios: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


class _Emotion(BaseModel):
    name: Annotated[str, Field(min_length=1, max_length=200)]
    factors: Annotated[list[_Factor], Field(min_length=1)]


class _WrittenSituations(BaseModel):
    emotions: Annotated[list[_Emotion], Field(min_length=1)]
    twins: dict[str, str] = {}


def load_situations(
    path: str | Path | None = None,
    *,
    emotions: Sequence[str] | None = None,
    per_factor: int | None = None,
    has_twins: bool = True,
) -> list[Occasion]:
    """Load situations.

    Args:
        path: The original's `situations.json`, or a file of its form; `original`: that file, downloaded at first use;
            None or empty: our own.
        emotions: Which emotions; None: all.
        per_factor: Maximum number of situations of a factor, the first of each; None: all.
        has_twins: Whether the pleasant twins are included, where there are any.

    Returns:
        The situations in the order of the file, then the twins.

    Raises:
        ConfigError: If the file cannot be downloaded or read, or holds something else; an emotion is unknown; or
            `emotions` is empty.
    """
    name, text = ("situations.json", OWN_SITUATIONS.read_text(encoding="utf-8"))
    if path:
        name, text = read_text(SITUATIONS.path(path, "situations"))
    try:
        written = _WrittenSituations.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(f"{name}: {describe(error)}; wanted what EmotionBench's file has") from None
    names = [emotion.name for emotion in written.emotions]
    if twice := next((one for one in names if names.count(one) > 1), None):
        raise ConfigError(f"{name}: {twice} is in the file more than once")
    if emotions is not None and not emotions:
        raise ConfigError(f"emotions names none; name one or more of {', '.join(names)}, or leave it out for all")
    if unknown := [one for one in emotions or () if one not in names]:
        raise ConfigError(f"emotions: there is no {unknown[0]!r}; {name} has: {', '.join(names)}")
    entries = [emotion for emotion in written.emotions if emotions is None or emotion.name in emotions]
    occasions = [
        Occasion(f"{emotion.name}-{index} {number}", one_line(text, MAX_CHARACTERS), emotion.name, factor.name)
        for emotion in entries
        for index, factor in enumerate(emotion.factors)
        for number, text in enumerate(factor.scenarios[:per_factor], 1)
    ]
    twins = {emotion.name: written.twins.get(emotion.name, "") for emotion in entries} if has_twins else {}
    occasions += [
        Occasion(f"{emotion} twin", one_line(text, MAX_CHARACTERS), emotion, is_twin=True)
        for emotion, text in twins.items()
        if text
    ]
    if blank := next((one.label for one in occasions if not one.text), None):
        raise ConfigError(f"{name}: situation {blank} is blank; wanted what happens, in the second person")
    return occasions
