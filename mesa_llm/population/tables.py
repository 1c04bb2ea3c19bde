"""Personas from tables of any columns."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.population.persona import Persona
from mesa_llm.text import clip, numbered_lines

if TYPE_CHECKING:
    import pandas as pd

BEFORE_ITEM = re.compile(r"[\s,]*")
"""Text before an item of a JSON list."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "name": ("name", "realname", "real_name", "full_name"),
    "persona": ("persona", "user_char", "background", "biography"),
    "style": ("style", "way_of_speaking"),
    "username": ("username", "user_name", "handle"),
    "bio": ("bio", "description"),
    "topics": ("topics", "interested_topics", "interests"),
}
"""Field of a persona → names of its columns, of which the first found counts. All other columns are traits."""

GIVEN, FAMILY = "first_name", "last_name"
"""Columns that hold a name in two parts."""

IDENTIFYING = ("name", "persona", "username", "bio")
"""Fields of which every table of people has at least one."""

SEPARATORS = (",", ";", "\t", "|")
"""Separators of CSV files, the likeliest first."""

Row = Mapping[str, Any]
"""Cells of a row by column, without empty ones."""

PlacedRow = tuple[int, Row | str]
"""Line on which a row begins, from 1, and its cells, or a description of what is wrong with them."""

MAX_CELL = 2**26
"""Maximum number of characters of a cell whose line is known."""


def from_table(table: str | Path | pd.DataFrame) -> list[Persona]:
    """Make one persona of each row of a table.

    Columns named in `COLUMNS` fill those fields, whatever their case; all others become traits under their own
    name. A name may also be split into `first_name` and `last_name`. Topics are a list, or separated by semicolons.
    Empty cells are left out.

    Args:
        table: A CSV file (with commas, semicolons, tabs or bars), a JSON file with a list of objects, a file of JSON
            lines, or a DataFrame.

    Raises:
        ConfigError: If the file cannot be read, no column holds names or personas, or a cell cannot be used; says
            which.
    """
    rows = rows_of(table)
    source = str(table) if isinstance(table, (str, Path)) else "the table"
    _demand_people(rows, source)
    return [persona_of(row, source, row_number) for row_number, row in enumerate(rows, start=1)]


def columns_of(rows: Sequence[Row]) -> list[str]:
    """Return the columns of all rows, in the order of their first occurrence."""
    return list(dict.fromkeys(column for row in rows for column in row))


def _demand_people(rows: Sequence[Row], source: str) -> None:
    """Check that a table describes people.

    Raises:
        ConfigError: If no column identifies them.
    """
    columns = columns_of(rows)
    names = {name for field in IDENTIFYING for name in COLUMNS[field]} | {GIVEN, FAMILY}
    if rows and not any(_folded(column) in names for column in columns):
        columns_text = clip(", ".join(map(repr, columns)), 300)
        raise ConfigError(
            f"{source} has the columns {columns_text}; a population needs a column 'name' or 'persona' "
            f"(also understood: {', '.join(sorted(names - {'name', 'persona'}))}). Rename one, or add one"
        )


def rows_of(table: str | Path | pd.DataFrame) -> list[Row]:
    """Read a table as one mapping a row, without empty cells.

    Raises:
        ConfigError: If the file is missing, of an unknown kind, or not what its name says.
    """
    if not isinstance(table, (str, Path)):
        return _rows_of_frame(table)
    return _read(Path(table), {".csv": _read_csv, ".json": _read_json, ".jsonl": _read_json_lines})


def placed_rows(path: str | Path) -> list[PlacedRow]:
    """Read a table as `rows_of` does, each row with its line, or with a description of what is wrong with it.

    Cells of CSV files stay text.

    Raises:
        ConfigError: If the file is missing, of an unknown kind, or not what its name says.
    """
    return _read(Path(path), PLACED)


def _read[Rows](path: Path, readers: Mapping[str, Callable[[Path], Rows]]) -> Rows:
    """Read a file by the reader of its kind.

    Raises:
        ConfigError: If the file is missing, of an unknown kind, or not what its name says.
    """
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(f"{path}: personas are read from {', '.join(readers)} files, not {path.suffix!r}")
    try:
        return reader(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be opened: {error.strerror}") from error
    except (ValueError, RecursionError, csv.Error) as error:  # what pandas and json raise for contents they cannot read
        raise ConfigError(f"{path} is no readable {path.suffix[1:].upper()} file: {error}") from error


def typed_rows(path: str | Path, placed: Sequence[PlacedRow]) -> list[Row]:
    """Return the readable rows, in order, as `rows_of` reads them: numbers in CSV files become numbers.

    Args:
        path: The file.
        placed: Its rows, as `placed_rows` reads them.

    Raises:
        ConfigError: If no column identifies people.
    """
    rows = [row for _, row in placed if not isinstance(row, str)]
    if Path(path).suffix.lower() == ".csv":
        read = rows_of(path) if len(rows) == len(placed) else []
        rows = read if len(read) == len(rows) else _typed(rows)
    _demand_people(rows, str(path))
    return rows


def _typed(rows: Sequence[Row]) -> list[Row]:
    """Convert cells that are text as if they were read from a CSV file."""
    import pandas as pd

    file = StringIO(pd.DataFrame(rows, columns=columns_of(rows)).to_csv(index=False))
    return _rows_of_frame(pd.read_csv(file, keep_default_na=False, na_values=[""]))


def _placed_csv(path: Path) -> list[PlacedRow]:
    limit = csv.field_size_limit(MAX_CELL)  # a list of many followers is longer than the default allows
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = file.readlines()
        separator = _separator(lines[0][:100_000] if lines else "")
        reader = csv.reader(lines, delimiter=separator)
        columns = next(reader, [])
        if not columns:
            raise ValueError("it has no line with the names of its columns")
        placed: list[PlacedRow] = []
        begin = line = reader.line_num + 1
        for cells in reader:
            if cells:
                placed.append((line, _row_of(columns, cells)))
            begin, line = line, reader.line_num + 1
        if len(lines) > begin and _is_open(lines[begin - 1 :], separator):
            raise ValueError(f"line {begin}: a quotation mark opens a cell, and nothing closes it")
        return placed
    finally:
        csv.field_size_limit(limit)


def _is_open(lines: Sequence[str], separator: str) -> bool:
    """Check whether the last cell of a row opens a quotation and does not close it."""
    try:
        list(csv.reader(lines, delimiter=separator, strict=True))
    except csv.Error as error:
        return "end of data" in str(error)
    return False


def _row_of(columns: Sequence[str], cells: Sequence[str]) -> Row | str:
    if len(cells) != len(columns):
        return f"found {len(cells)} cells; wanted {len(columns)}, one for each column"
    return {column: cell for column, cell in zip(columns, cells, strict=True) if column and cell.strip()}


def _placed_json(path: Path) -> list[PlacedRow]:
    """Read the objects of a list one by one, to know where each begins."""
    text = path.read_text(encoding="utf-8-sig")
    document = json.loads(text)
    if not isinstance(document, list):
        raise ConfigError(f"{path} {_no_list(document)}")
    decoder, index, line = json.JSONDecoder(), text.index("[") + 1, 1 + text.count("\n", 0, text.index("["))
    placed: list[PlacedRow] = []
    for _ in cast("list[Any]", document):
        begin = cast("re.Match[str]", BEFORE_ITEM.match(text, index)).end()
        line += text.count("\n", index, begin)
        item, index = decoder.raw_decode(text, begin)
        placed.append((line, _row_of_item(item)))
        line += text.count("\n", begin, index)
    return placed


def _no_list(document: Any) -> str:
    """Describe what a JSON file holds instead of a list."""
    if isinstance(document, dict) and {"scale", "depth", "max_breadth"} <= document.keys():
        return "holds no users but curves of how a post spread (OASIS's real_propagation); `read_curves` reads them"
    return f"holds a {type(document).__name__}; personas are a list of objects"


def _placed_json_lines(path: Path) -> list[PlacedRow]:
    placed: list[PlacedRow] = []
    for line, text in numbered_lines(path):
        try:
            placed.append((line, _row_of_item(json.loads(text))))
        except ValueError as error:
            placed.append((line, f"found {text!r:.80}; wanted a JSON object ({error})"))
    return placed


def _row_of_item(item: Any) -> Row | str:
    if not isinstance(item, dict):
        return f"found a {type(item).__name__}; each persona is an object"
    return {str(key): cell for key, cell in cast("dict[Any, Any]", item).items() if cell is not None}


PLACED = {".csv": _placed_csv, ".json": _placed_json, ".jsonl": _placed_json_lines}
"""File ending → function that reads the rows with their lines."""


def _read_csv(path: Path) -> list[Row]:
    import pandas as pd

    with path.open(encoding="utf-8-sig", newline="") as file:
        separator = _separator(file.readline(100_000))
    return _rows_of_frame(pd.read_csv(path, sep=separator, keep_default_na=False, na_values=[""], encoding="utf-8-sig"))


def _separator(head: str) -> str:
    """Find the separator of a table: the one that splits its first line into most known columns, then into most."""
    column_names = {name for names in COLUMNS.values() for name in names}

    def fit(separator: str) -> tuple[int, int]:
        cells = next(csv.reader([head], delimiter=separator), [])
        return sum(_folded(cell) in column_names for cell in cells), len(cells)

    return max(SEPARATORS, key=fit)


def _rows_of_frame(frame: pd.DataFrame) -> list[Row]:
    import pandas as pd

    kept_columns = frame.loc[:, [not str(column).startswith("Unnamed:") for column in frame.columns]]
    rows = kept_columns.convert_dtypes().to_dict("records")
    return [{str(key): _plain(cell) for key, cell in row.items() if not _is_empty(cell, pd.isna)} for row in rows]


def _is_empty(cell: Any, is_missing: Any) -> bool:
    return cell is None or (not isinstance(cell, (list, tuple, dict)) and bool(is_missing(cell)))


def _plain(cell: Any) -> Any:
    """Turn numpy's numbers into Python's, and dates into text."""
    value = cell.item() if hasattr(cell, "item") else cell
    return value if isinstance(value, (str, int, float, bool, list, tuple, dict)) else str(value)


def _read_json(path: Path) -> list[Row]:
    return _all_rows(_placed_json(path), path)


def _read_json_lines(path: Path) -> list[Row]:
    return _all_rows(_placed_json_lines(path), path)


def _all_rows(placed: Sequence[PlacedRow], path: Path) -> list[Row]:
    rows: list[Row] = []
    for line, row in placed:
        if isinstance(row, str):
            raise ConfigError(f"{path}, line {line}: {row}")
        rows.append(row)
    return rows


def persona_of(row: Row, source: str, row_number: int, **fields: Any) -> Persona:
    """Make a persona of one row.

    Args:
        row: Cells by column.
        source: Where it comes from, for errors.
        row_number: Number of the row, from 1, for errors.
        **fields: Fields that have been read already.

    Raises:
        ConfigError: If a cell cannot be used.
    """
    columns = {_folded(column): column for column in row}
    used_columns: set[str] = set()
    for field, names in COLUMNS.items():
        column = next((columns[name] for name in names if name in columns), None)
        if field not in fields and column is not None:
            used_columns.add(column)
            fields[field] = (
                _topics(row[column]) if field == "topics" else _text(row[column], source, row_number, column)
            )
    if "name" not in fields and (parts := [columns[name] for name in (GIVEN, FAMILY) if name in columns]):
        used_columns.update(parts)
        fields["name"] = " ".join(_text(row[column], source, row_number, column) for column in parts)
    fields.setdefault("traits", {column: cell for column, cell in row.items() if column not in used_columns})
    for column, cell in row.items():
        if isinstance(cell, float) and not math.isfinite(cell):
            raise ConfigError(f"{source}, row {row_number}, column {column!r}: found {cell!r}; wanted a finite number")
    try:
        return Persona(**fields)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        path_text = ".".join(str(part) for part in fault["loc"])
        raise ConfigError(
            f"{source}, row {row_number}, {path_text}: {fault['msg']}; found {fault['input']!r:.80}"
        ) from None


def _folded(column: str) -> str:
    return "_".join(column.casefold().split())


def _topics(cell: Any) -> tuple[str, ...]:
    parts: Sequence[Any] = cell if isinstance(cell, (list, tuple)) else str(cell).split(";")
    return tuple(str(part).strip() for part in parts if str(part).strip())


def _text(cell: Any, source: str, row_number: int, column: str) -> str:
    if isinstance(cell, (list, tuple, dict)):
        raise ConfigError(f"{source}, row {row_number}, column {column!r}: found {cell!r:.80}; this column is text")
    return str(cell).strip()
