"""Instruments from tables of item, text, key and scale."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.questionnaire.instruments import Instrument, Mode, Scale, Subscale
from mesa_llm.questionnaire.text import INSTRUCTIONS, describe_scale
from mesa_llm.tables import Row, folded, read_table, whole_rows
from mesa_llm.text import clip

logger = logging.getLogger(__name__)

COLUMNS: dict[str, tuple[str, ...]] = {
    "item": ("item", "item_id", "number", "no", "nr", "id", "question_id", "item_number"),
    "text": ("text", "statement", "question", "item_text", "wording"),
    "key": ("key", "keyed", "keying", "direction", "sign"),
    "reversed": ("reverse", "reversed", "reverse_scored", "reverse_keyed", "reverse_coded"),
    "scale": ("scale", "subscale", "dimension", "factor", "trait", "facet", "construct"),
    "instrument": ("instrument", "questionnaire", "inventory", "test"),
    "low": ("min", "minimum", "low", "lowest"),
    "high": ("max", "maximum", "high", "highest"),
    "labels": ("labels", "anchors", "options", "choices"),
    "mode": ("mode", "compute_mode"),
    "instructions": ("instructions", "prompt"),
}
"""Field of an item → names of its columns; the first match counts."""

STRAIGHT = frozenset(("1", "+1", "+", "1.0", "p", "pos", "positive", "n", "normal", "f", "forward", "straight"))
"""Cells of `key` for items that are not reversed."""

REVERSED = frozenset(("-1", "-", "-1.0", "r", "rev", "reverse", "reversed", "neg", "negative"))
"""Cells of `key` for reversed items."""

YES, NO = frozenset(("1", "true", "yes", "y", "x")) | REVERSED, frozenset(("0", "false", "no")) | STRAIGHT - {"1"}
"""Cells of `reversed`."""

MODES: Mapping[str, Mode] = {"": "mean", "mean": "mean", "avg": "mean", "average": "mean", "sum": "sum"}
"""Cells of `mode`."""

LOW, HIGH = 1, 5
"""Default lowest and highest answer."""

MAX_ITEMS = 5_000
"""Maximum number of items of a table."""

MAX_TEXT = 5_000
"""Maximum number of characters of an item."""

OVERALL = "Overall"
"""Name of the only score in a table without a scale column."""


@dataclass(frozen=True, slots=True)
class _Keyed:
    """One row of a table."""

    line: int
    """Line of the row."""

    item: str
    """Number or name of the item; empty to number it by position."""

    text: str
    """Text for respondents."""

    is_reversed: bool
    """Whether it is reversed."""

    scale: str
    """Name of its score; empty if it is not scored."""

    instrument: str
    """Name of its instrument."""

    answers: tuple[int, int, tuple[tuple[int, str], ...]]
    """Lowest and highest answer, and meanings of answers."""

    mode: Mode
    """Whether its score is the sum of the answers or their mean."""

    instructions: str
    """Text before the items."""


def read_instruments(path: str | Path) -> list[Instrument]:
    """Read instruments from a table with one item per row.

    Columns: `text`; `item`, its number; `key`, `+1` or `-1` (or `R`) for reversed items; `scale`, the score it counts
        towards; and optionally `instrument`, `min` and `max` (1 and 5 by default), `labels` (`1=never; 5=always`, or
        all of them separated by semicolons or bars), `mode` (`mean` or `sum`) and `instructions`. An item in several
        scales has one row for each.

    Args:
        path: A table in any format of `mesa_llm.tables.read_table`.

    Returns:
        The instruments, in order. An instrument without a name gets the file's. Instruments whose items have different
        answers are split.

    Raises:
        ConfigError: If the file cannot be read, or an item is invalid. The message names the line.
    """
    known = {name for names in COLUMNS.values() for name in names}
    placed = read_table(path, known, missing=())  # "-" is a key
    if len(placed) > MAX_ITEMS:
        raise ConfigError(f"{path} has {len(placed):,} rows; a table of items may have up to {MAX_ITEMS:,}")
    rows = whole_rows(path, placed)
    columns = _columns(path, rows)
    lines = [line for line, _ in placed]
    items = [_keyed(row, columns, f"{path}, line {line}", line) for line, row in zip(lines, rows, strict=True)]
    _say_defaults(path, columns, items)
    groups: dict[tuple[str, Any], list[_Keyed]] = {}
    for item in items:
        groups.setdefault((item.instrument or _stem(path), item.answers), []).append(item)
    names = [name for name, _ in groups]
    try:
        return [
            _instrument(name if names.count(name) == 1 else f"{name} {answers[0]}–{answers[1]}", group, path)
            for (name, answers), group in groups.items()
        ]
    except ValueError as error:
        raise error if isinstance(error, ConfigError) else ConfigError(f"{path}: {error}") from None


def _stem(path: str | Path) -> str:
    return Path(path).name.partition(".")[0]


def _columns(path: str | Path, rows: Sequence[Row]) -> dict[str, str]:
    """Return the column of each field.

    Raises:
        ConfigError: If there is no text column.
    """
    found = {folded(column): column for row in rows for column in row}
    columns = {field: found[name] for field, names in COLUMNS.items() for name in reversed(names) if name in found}
    if "text" not in columns:
        raise ConfigError(
            f"{path} has the columns {clip(', '.join(map(repr, found.values())), 300)}; a table of items needs a "
            "column 'text', and usually 'item', 'key' (+1 or -1) and 'scale'"
        )
    return columns


def _keyed(row: Row, columns: Mapping[str, str], where: str, line: int) -> _Keyed:
    """Read one item.

    Raises:
        ConfigError: If a cell is invalid.
    """
    cell = {field: str(row.get(column, "")).strip() for field, column in columns.items()}
    text = str(row.get(columns["text"], ""))
    if not text.strip() or len(text) > MAX_TEXT:
        length = f"{len(text):,} characters" if text.strip() else "a blank one"
        raise ConfigError(f"{where}: found {length} as the text of an item; expected 1 to {MAX_TEXT:,} characters")
    mode = MODES.get(cell.get("mode", "").casefold())
    if mode is None:
        raise ConfigError(f"{where}: found mode {cell['mode']!r:.60}; expected mean or sum")
    return _Keyed(
        line,
        cell.get("item", ""),
        text,
        _is_reversed(cell, where),
        cell.get("scale", OVERALL),
        cell.get("instrument", ""),
        _answers(cell, where),
        mode,
        cell.get("instructions", ""),
    )


def _is_reversed(cell: Mapping[str, str], where: str) -> bool:
    """Read the key of an item."""
    key = cell.get("key", "").replace("−", "-").replace("–", "-").casefold()
    if key and key not in STRAIGHT | REVERSED:
        raise ConfigError(f"{where}: found key {cell['key']!r:.60}; expected +1, or -1 or R for a reversed item")
    flag = cell.get("reversed", "").casefold()
    if flag and flag not in YES | NO:
        raise ConfigError(f"{where}: found {cell['reversed']!r:.60} in the column of reversed items; use yes or no")
    if key and flag and (key in REVERSED) != (flag in YES):
        raise ConfigError(f"{where}: found key {cell['key']!r:.60} and {cell['reversed']!r:.60}; they conflict")
    return key in REVERSED or flag in YES


def _answers(cell: Mapping[str, str], where: str) -> tuple[int, int, tuple[tuple[int, str], ...]]:
    """Read the range and labels of an item's answers."""
    parts = [part.strip() for part in re.split(r"[;|\n]", cell.get("labels", "")) if part.strip()]
    named = [re.fullmatch(r"(-?\d{1,4})\s*[=:]\s*(.+)", part) for part in parts]
    numbers = [int(match[1]) for match in named if match]
    if numbers and len(numbers) < len(parts):
        raise ConfigError(f"{where}: found labels {cell['labels']!r:.80}; expected numbers before all or none")
    by_default = (LOW, max(len(parts), 2) if parts and not numbers else HIGH)
    low, high = (
        _whole(cell.get(field) or str(default), field, where)
        for field, default in zip(("low", "high"), by_default, strict=True)
    )
    if "low" in cell and not cell.get("high") and parts and not numbers:
        high = low + len(parts) - 1
    if not low < high <= low + 1000:
        raise ConfigError(f"{where}: found answers from {low} to {high}; expected a lowest answer below the highest")
    if not numbers and parts and len(parts) != high - low + 1:
        raise ConfigError(f"{where}: found {len(parts)} labels for answers from {low} to {high}; expected one for each")
    labels = [match[2] for match in named if match] or parts
    meanings = tuple(zip(numbers or range(low, high + 1), labels, strict=False))
    if outside := [number for number, _ in meanings if not low <= number <= high]:
        raise ConfigError(f"{where}: found a label for {outside[0]}; answers are {low} to {high}")
    return low, high, meanings


def _whole(text: str, field: str, where: str) -> int:
    if re.fullmatch(r"-?\d{1,6}(\.0)?", text) is None:
        raise ConfigError(f"{where}: found {field} {text!r:.60}; expected a whole number")
    return int(float(text))


def _say_defaults(path: str | Path, columns: Mapping[str, str], items: Sequence[_Keyed]) -> None:
    """Log the defaults used for columns that a table lacks."""
    open_parts = []
    if not {"low", "high", "labels"} & set(columns):
        open_parts.append(f"answers are {LOW} to {HIGH} (columns 'min', 'max' and 'labels' change that)")
    if not {"key", "reversed"} & set(columns):
        open_parts.append("no item is reversed (column 'key')")
    if unscored := sum(not item.scale for item in items):
        open_parts.append(f"{unscored} of {len(items)} items belong to no scale, and are asked, but not scored")
    if open_parts:
        logger.warning("%s: %s", path, "; ".join(open_parts))


def _instrument(name: str, rows: Sequence[_Keyed], path: str | Path) -> Instrument:
    """Assemble the items of one instrument."""
    first: dict[str, _Keyed] = {}
    scales: dict[str, list[_Keyed]] = {}
    rows = [replace(row, item=row.item or str(place)) for place, row in enumerate(rows, 1)]
    for row in rows:
        earlier = first.setdefault(row.item, row)
        in_scale = scales.setdefault(row.scale, [])
        if earlier is not row and (earlier.text != row.text or any(one.item == row.item for one in in_scale)):
            raise ConfigError(
                f"{path}, line {row.line}: found item {row.item!r:.60} again, as on line {earlier.line}; expected a "
                "unique number for each item"
            )
        if earlier.is_reversed != row.is_reversed:
            raise ConfigError(
                f"{path}, line {row.line}: found another key of item {row.item!r:.60} than on line {earlier.line}; "
                "expected one key for all its scales"
            )
        in_scale.append(row)
    are_numbers = all(re.fullmatch(r"[1-9]\d{0,8}", item) for item in first)
    numbers = {item: int(item) if are_numbers else place for place, item in enumerate(first, 1)}
    subscales = [_subscale(scale, members, numbers, path) for scale, members in scales.items() if scale]
    low, high, meanings = rows[0].answers
    reversed_items = frozenset(numbers[item] for item, row in first.items() if row.is_reversed)
    scale = Scale(low, high, reversed_items, dict(meanings))
    text = next((row.instructions for row in rows if row.instructions), INSTRUCTIONS)
    items = dict(sorted((numbers[item], row.text) for item, row in first.items()))
    return Instrument(name, f"{text} {describe_scale(scale)}", items, scale, tuple(subscales), "own")


def _subscale(name: str, rows: Sequence[_Keyed], numbers: Mapping[str, int], path: str | Path) -> Subscale:
    mode = rows[0].mode
    if other := next((row for row in rows if row.mode != mode), None):
        raise ConfigError(f"{path}, line {other.line}: scale {name!r:.60} has both modes, mean and sum; expected one")
    return Subscale(name, tuple(numbers[row.item] for row in rows), mode)
