"""Read tables from JSON: lists of objects, objects of columns, and JSON Lines."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mesa_llm.errors import ConfigError
from mesa_llm.tables.encodings import numbered_lines, read_text
from mesa_llm.tables.rows import MAX_CELL, MAX_COLUMNS, PlacedRow, Row, folded, require_size

BLANKS = re.compile(r"\s*")

WANTED = "a table is a list of objects, an object of columns, or an object with one list of objects"


class _Reader:
    """JSON decoder that keeps numbers as written and detects duplicate names in an object."""

    def __init__(self) -> None:
        self._repeated: list[str] = []
        self._decoder = json.JSONDecoder(object_pairs_hook=self._object, parse_float=_number)

    def item(self, text: str, begin: int) -> tuple[Any, int]:
        """Decode the value at a position; return it and the position after it."""
        self._repeated.clear()
        return self._decoder.raw_decode(text, begin)

    def row(self, item: Any) -> Row | str:
        """Return the last decoded item as a row, or a description of what is wrong with it."""
        if not isinstance(item, dict):
            return f"found {_kind(item)}; each row is an object"
        if self._repeated:
            return f"found {self._repeated[0]!r:.80} twice in one object; wanted each name once"
        return _row(cast("dict[str, Any]", item))

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [name for name, _ in pairs]
            self._repeated += [name for name in fields if names.count(name) > 1]
        return fields


def json_rows(path: Path, known: Collection[str], encoding: str | None = None) -> list[PlacedRow]:
    """Read a table from a JSON file, with the line of each row where it is known.

    Args:
        path: The file.
        known: Folded column names that identify an object as a row.
        encoding: Encoding of the file; None: determined from it.

    Raises:
        ConfigError: If the file is not JSON, or not a table.
    """
    text = read_text(path, encoding)
    begin = _after_blanks(text, 0)
    try:
        if text[begin : begin + 1] == "[":
            return list(_items(text, begin))
        reader = _Reader()
        document, end = reader.item(text, begin)
        if text[end:].strip():
            return json_line_rows(path, known, encoding)
        row = reader.row(document)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not a readable JSON file: {error}") from error
    if isinstance(row, str):
        raise ConfigError(f"{path}: {row}; {WANTED}")
    return [(1, each) for each in _rows_of(cast("dict[str, Any]", document), path, known)]


def json_line_rows(path: Path, known: Collection[str], encoding: str | None = None) -> list[PlacedRow]:
    """Read a table with one JSON object per line; only line feeds end a line.

    Args:
        path: The file.
        known: Not used.
        encoding: Encoding of the file; None: determined from it.
    """
    placed: list[PlacedRow] = []
    reader = _Reader()
    for line, text in numbered_lines(path, encoding):
        stripped = text.strip()
        try:
            item, end = reader.item(stripped, 0)
            if stripped[end:].strip():
                raise ValueError(f"more after the object, at column {end + 1}")
            placed.append((line, reader.row(item)))
        except (ValueError, RecursionError) as error:
            placed.append((line, f"found {stripped!r:.80}; wanted a JSON object ({error})"))
    return placed


def _items(text: str, begin: int) -> Iterator[PlacedRow]:
    """Decode the items of a list one by one, keeping track of the line on which each begins.

    Raises:
        ValueError: If the list is not JSON.
    """
    reader = _Reader()
    start, line = begin, 1 + text.count("\n", 0, begin)
    end = _after_blanks(text, begin + 1)
    if not text.startswith("]", end):
        while text[start : start + 1] in ("[", ","):
            item_start = _after_blanks(text, start + 1)
            line += text.count("\n", start, item_start)
            item, item_end = reader.item(text, item_start)
            yield (line, reader.row(item))
            start = end = _after_blanks(text, item_end)
            line += text.count("\n", item_start, end)
    if not text.startswith("]", end) or text[end + 1 :].strip():
        raise ValueError(f"line {line}: found {text[end : end + 20]!r}; wanted a comma, or the end of the list")


def _after_blanks(text: str, start: int) -> int:
    return cast("re.Match[str]", BLANKS.match(text, start)).end()


def _rows_of(document: dict[str, Any], path: Path, known: Collection[str]) -> Sequence[Row | str]:
    """Find the rows in an object.

    Raises:
        ConfigError: If there are none.
    """
    values = list(document.values())
    named = any(folded(name) in known for name in document)
    lists = {name: value for name, value in document.items() if isinstance(value, list)}
    if set(document) >= {"columns", "data"} and len(lists) >= 2:  # pandas' orient="split"
        return _records(lists["columns"], lists["data"], path)
    if lists and len(lists) == len(document) and (named or not _is_objects(values[0])):
        return _of_columns(lists)
    if values and all(isinstance(value, dict) for value in values) and "persona" not in document:
        return _indexed(cast("dict[str, dict[str, Any]]", document), path)
    if named:
        return [_row(document)]
    tables = [name for name, value in lists.items() if _is_objects(value)]
    if len(tables) == 1:
        return [_row(row) for row in lists[tables[0]]]
    raise ConfigError(f"{path} holds an object with {', '.join(map(repr, document)) or 'nothing'!s:.200}; {WANTED}")


def _of_columns(columns: Mapping[str, Sequence[Any]]) -> list[Row | str]:
    """Convert columns to rows, with a description of the error for rows beyond the shortest column."""
    shortest = min(columns, key=lambda name: len(columns[name]))
    n_whole = len(columns[shortest])
    rows: list[Row | str] = [
        _row(dict(zip(columns, cells, strict=True))) for cells in zip(*columns.values(), strict=False)
    ]
    longest = max(map(len, columns.values()))
    return rows + [f"found {n_whole} cells in column {shortest!r:.80}; wanted one for each row"] * (longest - n_whole)


def _records(columns: Sequence[Any], rows: Sequence[Any], path: Path) -> list[Row | str]:
    """Convert lists of cells to rows.

    Raises:
        ConfigError: If one does not have one cell per column.
    """
    require_size(len(rows), len(columns), str(path))
    for number, cells in enumerate(rows, 1):
        if not isinstance(cells, list | tuple) or len(cast("Sequence[Any]", cells)) != len(columns):
            raise ConfigError(f"{path}, row {number}: found {cells!r:.80}; wanted a list of {len(columns)} cells")
    return [_row(dict(zip(map(str, columns), cells, strict=True))) for cells in rows]


def _indexed(document: Mapping[str, Mapping[str, Any]], path: Path) -> list[Row | str]:
    """Return the rows of an object of objects, either columns of numbered cells or numbered rows.

    Raises:
        ConfigError: If neither level has numbers for names.
    """
    inner = {name: None for fields in document.values() for name in fields}
    if all(name.isdigit() for name in inner):
        cells = [{column: fields.get(name) for column, fields in document.items()} for name in inner]
        return [_row(row) for row in cells]
    if all(name.isdigit() for name in document):
        return [_row(row) for row in document.values()]
    raise ConfigError(f"{path} holds an object of objects whose names are not row numbers; {WANTED}")


def _row(fields: Mapping[str, Any]) -> Row | str:
    """Return an object as a row, or a description of what is wrong with it."""
    if len(fields) > MAX_COLUMNS:
        return f"found {len(fields):,} columns; a table has up to {MAX_COLUMNS:,}"
    row = {name.strip(): cell for name, cell in fields.items() if cell is not None and name.strip()}
    for name, cell in row.items():
        if isinstance(cell, str) and len(cell) > MAX_CELL:
            return f"found {len(cell):,} characters in column {name!r:.80}; a cell has up to {MAX_CELL:,}"
    return row


def _is_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in cast("list[Any]", value))


def _number(text: str) -> float | str:
    """Parse a number with a point or an exponent; keep it as text if `str` would not reproduce it."""
    number = float(text)
    return number if str(number) == text else text


def _kind(value: Any) -> str:
    """Describe the kind of a JSON value."""
    names = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(cast("type[Any]", type(value)), "null")
