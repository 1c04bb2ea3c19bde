"""Situations that evoke an emotion, by emotion and factor: our own, or the original's from its file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from mesa_llm import ConfigError
from mesa_llm.text import one_line
from mesa_llm.tools.tool import describe
from mesa_llm.worlds.questionnaire import Original
from mesa_llm_models.emotionbench.instruments import BASE, LICENCE, read_text

OWN = resources.files("mesa_llm_models.emotionbench").joinpath("data", "situations.json")
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


class _Written(BaseModel):
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
    name, text = ("situations.json", OWN.read_text(encoding="utf-8"))
    if path:
        name, text = read_text(SITUATIONS.path(path, "situations"))
    try:
        written = _Written.model_validate_json(text)
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
