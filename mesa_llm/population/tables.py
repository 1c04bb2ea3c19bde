"""Personas from tables of any columns."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.population.persona import Persona

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: dict[str, tuple[str, ...]] = {
    "name": ("name", "realname", "real_name", "full_name"),
    "persona": ("persona", "user_char", "background", "biography"),
    "style": ("style", "way_of_speaking"),
    "username": ("username", "user_name", "handle"),
    "bio": ("bio", "description"),
    "topics": ("topics", "interested_topics", "interests"),
}
"""Fields of a persona → names of the columns that hold them, the first found counts. Other columns are traits."""

Row = Mapping[str, Any]


def from_table(table: str | Path | pd.DataFrame) -> list[Persona]:
    """Make one persona of each row of a table.

    Columns named in `COLUMNS` fill those fields, whatever their case; all others become traits under their own
    name. Topics are a list, or separated by semicolons. Empty cells are left out.

    Args:
        table: A CSV file, a JSON file with a list of objects, a file of JSON lines, or a DataFrame.

    Raises:
        ConfigError: If the file cannot be read, or a cell cannot be used; says which.
    """
    rows = rows_of(table)
    source = str(table) if isinstance(table, (str, Path)) else "the table"
    return [persona_of(row, source, number) for number, row in enumerate(rows, start=1)]


def rows_of(table: str | Path | pd.DataFrame) -> list[Row]:
    """Read a table as one mapping a row, without empty cells.

    Raises:
        ConfigError: If the file is missing, of an unknown kind, or not what its name says.
    """
    if not isinstance(table, (str, Path)):
        return _rows_of_frame(table)
    path = Path(table)
    readers = {".csv": _read_csv, ".json": _read_json, ".jsonl": _read_json_lines}
    read = readers.get(path.suffix.lower())
    if read is None:
        raise ConfigError(f"{path}: personas are read from {', '.join(readers)} files, not {path.suffix!r}")
    try:
        return read(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be opened: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # what pandas and json raise for contents they cannot read
        raise ConfigError(f"{path} is no readable {path.suffix[1:].upper()} file: {error}") from error


def _read_csv(path: Path) -> list[Row]:
    import pandas as pd

    return _rows_of_frame(pd.read_csv(path, keep_default_na=False, na_values=[""], encoding="utf-8"))


def _rows_of_frame(frame: pd.DataFrame) -> list[Row]:
    import pandas as pd

    named = frame.loc[:, [not str(column).startswith("Unnamed:") for column in frame.columns]]
    rows = named.convert_dtypes().to_dict("records")
    return [{str(key): _plain(cell) for key, cell in row.items() if not _is_empty(cell, pd.isna)} for row in rows]


def _is_empty(cell: Any, is_missing: Any) -> bool:
    return cell is None or (not isinstance(cell, (list, tuple, dict)) and bool(is_missing(cell)))


def _plain(cell: Any) -> Any:
    """Turn numpy's numbers into Python's, and dates into text."""
    value = cell.item() if hasattr(cell, "item") else cell
    return value if isinstance(value, (str, int, float, bool, list, tuple, dict)) else str(value)


def _read_json(path: Path) -> list[Row]:
    return _objects(json.loads(path.read_text(encoding="utf-8")), path)


def _read_json_lines(path: Path) -> list[Row]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return _objects([json.loads(line) for line in lines if line.strip()], path)


def _objects(found: Any, path: Path) -> list[Row]:
    if not isinstance(found, list):
        raise ConfigError(f"{path} holds a {type(found).__name__}; personas are a list of objects")
    rows: list[Row] = []
    for number, row in enumerate(cast("list[Any]", found), start=1):
        if not isinstance(row, dict):
            raise ConfigError(f"{path}, row {number}: found a {type(row).__name__}; each persona is an object")
        rows.append({str(key): cell for key, cell in cast("dict[Any, Any]", row).items() if cell is not None})
    return rows


def persona_of(row: Row, source: str, number: int, **fields: Any) -> Persona:
    """Make a persona of one row.

    Args:
        row: Cells by column.
        source: Where it comes from, for errors.
        number: Number of the row, from 1, for errors.
        **fields: Fields that were read already.

    Raises:
        ConfigError: If a cell cannot be used.
    """
    places = {_folded(column): column for column in row}
    used: set[str] = set()
    for field, names in COLUMNS.items():
        column = next((places[name] for name in names if name in places), None)
        if field not in fields and column is not None:
            used.add(column)
            fields[field] = _topics(row[column]) if field == "topics" else _text(row[column], source, number, column)
    fields.setdefault("traits", {column: cell for column, cell in row.items() if column not in used})
    for column, cell in row.items():
        if isinstance(cell, float) and not math.isfinite(cell):
            raise ConfigError(f"{source}, row {number}, column {column!r}: found {cell!r}; wanted a finite number")
    try:
        return Persona(**fields)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise ConfigError(f"{source}, row {number}, {place}: {fault['msg']}; found {fault['input']!r:.80}") from None


def _folded(column: str) -> str:
    return "_".join(column.casefold().split())


def _topics(cell: Any) -> tuple[str, ...]:
    parts: Sequence[Any] = cell if isinstance(cell, (list, tuple)) else str(cell).split(";")
    return tuple(str(part).strip() for part in parts if str(part).strip())


def _text(cell: Any, source: str, number: int, column: str) -> str:
    if isinstance(cell, (list, tuple, dict)):
        raise ConfigError(f"{source}, row {number}, column {column!r}: found {cell!r:.80}; this column is text")
    return str(cell).strip()
