"""One reader for every table that people bring."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from mesa_llm.errors import ConfigError
from mesa_llm.tables.objects import json_line_rows, json_rows
from mesa_llm.tables.parquet import parquet_rows
from mesa_llm.tables.rows import PlacedRow, Row, folded, require_size
from mesa_llm.tables.separated import separated_rows
from mesa_llm.tables.workbooks import workbook_rows

READERS: Mapping[str, Callable[[Path, Collection[str]], list[PlacedRow]]] = {
    ".csv": separated_rows,
    ".tsv": separated_rows,
    ".tab": separated_rows,
    ".txt": separated_rows,
    ".json": json_rows,
    ".jsonl": json_line_rows,
    ".ndjson": json_line_rows,
    ".xlsx": workbook_rows,
    ".xlsm": workbook_rows,
    ".parquet": parquet_rows,
}
"""Ending of a file → function that reads its rows; those of text may be packed, and have `.gz` after it."""


def kind_of(path: str | Path) -> str:
    """Return the ending of a file that says what it holds, in lower case, without `.gz`."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")


def read_table(path: str | Path, known: Collection[str] = ()) -> list[PlacedRow]:
    """Read the rows of a table, no cell altered.

    A cell is text as it stands in the file. A column becomes numbers only if `str` of each gives the cell again;
    workbooks, JSON and Parquet files have numbers of their own. Empty cells are left out, and so are empty rows.

    Args:
        path: A table with separators (`.csv`, `.tsv`, `.tab`, `.txt`: commas, semicolons, tabs or bars, in UTF-8,
            UTF-16 or Windows-1252), a workbook (`.xlsx`), a Parquet file, a JSON file, or JSON lines.
        known: Names of columns by which separators and rows are told.

    Returns:
        Line of each row, and its cells by column, or a description of what is wrong with the row.

    Raises:
        ConfigError: If the file cannot be read, is too large, or holds no rows; says where.
    """
    path = Path(path)
    reader = READERS.get(kind_of(path))
    if reader is None:
        advice = "; save it as .xlsx or CSV" if kind_of(path) in (".xls", ".ods", ".numbers") else ""
        raise ConfigError(f"{path}: tables are read from {', '.join(READERS)} files, not {path.suffix!r}{advice}")
    try:
        placed = reader(path, {folded(name) for name in known})
    except MemoryError:
        raise ConfigError(f"{path} is too large for the memory of this machine; divide it") from None
    if not placed:
        raise ConfigError(f"{path} holds no rows; wanted at least one")
    columns: set[str] = set()
    for line, row in placed:
        if not isinstance(row, str) and not row.keys() <= columns:
            columns |= row.keys()
            require_size(0, len(columns), f"{path}, line {line}")
    return placed


def whole_rows(path: str | Path, placed: Sequence[PlacedRow]) -> list[Row]:
    """Return the rows of a table all of which have to be usable.

    Raises:
        ConfigError: If one is not; says on which line, and why.
    """
    rows: list[Row] = []
    for line, row in placed:
        if isinstance(row, str):
            raise ConfigError(f"{path}, line {line}: {row}")
        rows.append(row)
    return rows
