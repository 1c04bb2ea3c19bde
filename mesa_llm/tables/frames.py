"""Read tables that are in memory: DataFrames, lists of dictionaries, and dictionaries of lists."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from mesa_llm.errors import ConfigError
from mesa_llm.tables.rows import NAMELESS, PlacedRow, Row, is_filled, require_size
from mesa_llm.text import clip

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

WANTED = "a table is a file, a DataFrame, a list of dictionaries, or a dictionary of lists"


def memory_rows(table: Any, source: str) -> list[PlacedRow]:
    """Read a table that is in memory, with the number of each row, from 1.

    Raises:
        ConfigError: If it is no table, or a column or cell cannot be used.
    """
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return frame_rows(table, source)
    if isinstance(table, Mapping):
        columns = cast("Mapping[Any, Any]", table)
        if not all(isinstance(cells, list | tuple) for cells in columns.values()):
            raise ConfigError(f"{source} is a dictionary whose values are no lists; {WANTED}")
        lengths = {str(name): len(cells) for name, cells in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ConfigError(f"{source} has columns of different lengths ({lengths!s:.200}); give each row a cell")
        rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
        return _listed_rows(rows, source)
    if isinstance(table, Sequence) and not isinstance(table, str | bytes):
        return _listed_rows(cast("Sequence[Any]", table), source)
    other: Any = table
    if callable(getattr(other, "to_pandas", None)):  # polars and pyarrow
        return frame_rows(other.to_pandas(), source)
    raise ConfigError(f"found {type(table).__name__}; {WANTED}")


def _listed_rows(rows: Sequence[Any], source: str) -> list[PlacedRow]:
    placed: list[PlacedRow] = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            placed.append((number, f"found {row!r:.80}; each row is a dictionary"))
            continue
        cells = cast("Mapping[Any, Any]", row)
        named = _names_of(list(cells), source)
        placed.append((number, _filled(zip(named, cells.values(), strict=True), f"{source}, row {number}")))
    return placed


def frame_rows(frame: pd.DataFrame, source: str) -> list[PlacedRow]:
    """Read a DataFrame; levels of its index that have a name are columns.

    Raises:
        ConfigError: If two columns have the same name, or one with cells has none.
    """
    frame = _with_index(frame, source)
    columns = _names_of([_flat(column) for column in frame.columns], source)
    require_size(len(frame), len(columns), source)
    converted = [_cells(frame.iloc[:, place]) for place in range(len(columns))]
    for place, (name, cells) in enumerate(zip(columns, converted, strict=True)):
        if not name:
            _require_row_numbers([cell for cell in cells if is_filled(cell)], place, frame.columns[place], source)
    rows: Iterable[Sequence[Any]] = zip(*converted, strict=True)
    return [
        (number, _filled(zip(columns, cells, strict=True), f"{source}, row {number}"))
        for number, cells in enumerate(rows, 1)
    ]


def _with_index(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    """Make columns of the named levels of an index, and say which others are left out."""
    import pandas as pd

    kept = [level for level, name in enumerate(frame.index.names) if name is not None]
    for level, name in enumerate(frame.index.names):
        values = frame.index.get_level_values(level)
        if name is not None and frame.columns.nlevels == 1 and name in frame.columns:
            if list(values) != list(frame[name]):
                raise ConfigError(
                    f"{source}: the index and a column are both called {name!r:.60}, and differ; rename one of them"
                )
            kept.remove(level)
        elif name is None and len(values) and not pd.api.types.is_integer_dtype(values):
            logger.warning(
                "%s: the index has no name, and is left out (it begins with %.40r); keep it with "
                "table.rename_axis('name')", source, values[0],
            )  # fmt: skip
    dropped = [level for level in range(frame.index.nlevels) if level not in kept]
    named = frame.reset_index(level=dropped, drop=True) if kept and dropped else frame
    return named.reset_index() if kept else frame.reset_index(drop=True)


def _flat(column: Any) -> str:
    """Return the name of a column; the levels of a name that has several are joined."""
    parts = cast("tuple[Any, ...]", column) if isinstance(column, tuple) else (column,)
    texts = [str(part).strip() for part in parts if part is not None]
    named = [text for text in texts if NAMELESS.fullmatch(text) is None]
    return ": ".join(dict.fromkeys(named))


def _names_of(columns: Sequence[Any], source: str) -> list[str]:
    """Return the names of columns, empty for those without one.

    Raises:
        ConfigError: If two are the same.
    """
    names = ["" if NAMELESS.fullmatch(str(column).strip()) else str(column).strip() for column in columns]
    if repeated := [name for name in dict.fromkeys(names) if name and names.count(name) > 1]:
        raise ConfigError(f"{source}: several columns are called {repeated[0]!r:.80}; rename all but one")
    return names


def _require_row_numbers(cells: Sequence[Any], place: int, column: Any, source: str) -> None:
    """Check that a column without a name numbers the rows.

    Raises:
        ConfigError: If it does not.
    """
    numbers = [cell for cell in cells if isinstance(cell, int) and not isinstance(cell, bool)]
    if len(numbers) < len(cells) or any(a >= b for a, b in pairwise(numbers)):
        raise ConfigError(
            f"{source}: column {place + 1} ({str(column)!r:.40}) has no name, and {cells[0]!r:.60} in it; name it, or "
            "drop it"
        )


def _cells(column: pd.Series) -> list[Any]:
    """Return the cells of a column, whole numbers without a fraction, and None where there is none."""
    import pandas as pd

    if str(column.dtype).lower() in ("float16", "float32"):  # as they are written: 0.1, not 0.10000000149
        numbers: Any = column.to_numpy(dtype="float32", na_value=float("nan"))
        column = pd.Series([float(str(number)) for number in numbers])
    values: list[Any] = column.convert_dtypes().tolist()
    if not pd.api.types.is_numeric_dtype(column):  # codes among labels
        values = [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in values]
    return [None if pd.api.types.is_scalar(cell) and pd.isna(cell) else cell for cell in values]


def _filled(cells: Iterable[tuple[str, Any]], where: str) -> Row | str:
    """Return the filled cells of a row in their JSON form, or a description of what is wrong with one."""
    row: Row = {}
    for name, cell in cells:
        value = plain_cell(cell)
        if isinstance(value, bytes):
            return f"found bytes in column {name!r:.80} that are not UTF-8: {value!r:.40}; decode them first"
        if name and is_filled(value):
            row[name] = value
    return row


def plain_cell(cell: Any) -> Any:
    """Return a cell in its JSON form: NumPy's numbers as Python's, dates in ISO 8601, other objects as text.

    Bytes become text; those that are not UTF-8 stay bytes.
    """
    if cell is None or isinstance(cell, str | bool | int):
        return str(cell) if isinstance(cell, str) else cell
    if isinstance(cell, datetime):  # and pandas' Timestamp
        whole = cell.time() == time() and cell.tzinfo is None
        return cell.date().isoformat() if whole else cell.isoformat()
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, float):
        return float(cell)
    if isinstance(cell, Mapping):
        return {str(name): plain_cell(value) for name, value in cast("Mapping[Any, Any]", cell).items()}
    if isinstance(cell, list | tuple | set | frozenset):
        members = cast("Iterable[Any]", sorted(cell, key=str) if isinstance(cell, set | frozenset) else cell)
        return [plain_cell(member) for member in members]
    if isinstance(cell, bytes | bytearray):
        try:
            return bytes(cell).decode("utf-8")
        except UnicodeDecodeError:
            return bytes(cell)
    if isinstance(cell, Decimal):
        return str(cell)
    if callable(getattr(cell, "tolist", None)):  # NumPy's scalars and arrays
        number = cell.tolist()
        return float(str(cell)) if isinstance(number, float) else plain_cell(number)
    return clip(str(cell), 2**23)
