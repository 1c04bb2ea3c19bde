"""Instruments from JSON files in the format shared by PsychoBench and EmotionBench."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.questionnaire.instruments import Instrument, Mode, Norm, Scale, Subscale, require_texts
from mesa_llm.tools.tool import describe

MODES: Mapping[str, Mode] = {"SUM": "sum", "AVG": "mean"}
"""First part of `compute_mode` → way to combine keyed answers. A factor may follow, as in `SUM*2`."""


class _Crowd(BaseModel):
    crowd_name: str
    mean: float
    std: float
    n: int


class _Category(BaseModel):
    cat_name: Annotated[str, Field(max_length=200)]
    cat_questions: Annotated[list[int], Field(min_length=1)]
    crowd: list[_Crowd] = []


class WrittenInstrument(BaseModel):
    """One instrument, as written in a file; `scale` is the sum of the lowest and the highest answer."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    questions: Annotated[dict[int, str], Field(min_length=1, max_length=1000)]
    prompt: str = "Rate each statement."
    inner_setting: str = ""
    scale: int
    min: int | None = None
    max: int | None = None
    compute_mode: str = "AVG"
    reverse: list[int] = []
    categories: list[_Category]


_FILE = TypeAdapter(list[WrittenInstrument])


def read_json_instruments(
    text: str,
    name: str,
    range_of: Callable[[WrittenInstrument], tuple[int, int]],
    *,
    is_original: bool = False,
    without: Collection[str] = (),
    subscale_names: Mapping[tuple[str, str], str] | None = None,
    groups: Mapping[str, str] | None = None,
) -> list[Instrument]:
    """Read the instruments of a file.

    Args:
        text: Contents of the file.
        name: Its name, for errors.
        range_of: Finds the lowest and highest answer, of which the file gives only the sum.
        is_original: Whether this is the published file, whose norms apply. Norms in other files are ignored.
        without: Names of instruments to leave out.
        subscale_names: Instrument and name in the file → proper name of the subscale.
        groups: Instrument → its kind; `own` for others.

    Returns:
        The instruments, in the order of the file.

    Raises:
        ConfigError: If the file has another format, or a key in it is invalid. The message names both.
    """
    try:
        written = [one for one in _FILE.validate_json(text) if one.name not in without]
    except ValidationError as error:
        raise ConfigError(f"{name}: {describe(error, 'the file')}; expected a list of instruments") from None
    if not written:
        raise ConfigError(f"{name}: it contains no instruments; expected at least one")
    names = [one.name for one in written]
    if repeated := next((one for one in names if names.count(one) > 1), None):
        raise ConfigError(f"{name}: {repeated} is in the file more than once; give each instrument once")
    try:
        return [_instrument(one, range_of(one), is_original, subscale_names or {}, groups or {}) for one in written]
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None


def _instrument(
    written: WrittenInstrument,
    answers: tuple[int, int],
    is_original: bool,
    subscale_names: Mapping[tuple[str, str], str],
    groups: Mapping[str, str],
) -> Instrument:
    name, (low, high) = written.name, answers
    require_texts(name, written.questions)
    if not written.categories:
        raise ValueError(f"{name}: there are no categories; expected at least one, with its items")
    if low >= high or low + high != written.scale:
        raise ValueError(
            f"{name}: answers from {low} to {high} do not fit scale {written.scale}, which is their sum; give the "
            "lowest and highest answer as min and max"
        )
    mode, _, factor = written.compute_mode.partition("*")
    if mode not in MODES or (factor and not factor.isdigit()):
        raise ValueError(f"{name}: compute_mode must be SUM, AVG or SUM*2, got {written.compute_mode!r}")
    subscales = tuple(
        Subscale(
            subscale_names.get((name, one.cat_name), one.cat_name),
            tuple(one.cat_questions),
            MODES[mode],
            int(factor or 1),
            tuple(Norm(norm.crowd_name, norm.mean, norm.std, norm.n) for norm in one.crowd) if is_original else (),
        )
        for one in written.categories
    )
    items = dict(sorted(written.questions.items()))
    scale = Scale(low, high, frozenset(written.reverse))
    return Instrument(name, written.prompt.strip(), items, scale, subscales, groups.get(name, "own"), is_original)
