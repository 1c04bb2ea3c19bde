"""Read tables of every supported format."""

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
"""File suffix → function that reads the rows. Text formats may be compressed, with `.gz` appended."""


def kind_of(path: str | Path) -> str:
    """Return the suffix that identifies the format of a file, in lower case, ignoring `.gz`."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")


def read_table(path: str | Path, known: Collection[str] = ()) -> list[PlacedRow]:
    """Read the rows of a table without altering any cell.

    Cells are text, exactly as in the file. A column becomes numeric only if `str` of each number gives the cell again;
    numbers in workbooks, JSON and Parquet files stay numbers. Empty cells and empty rows are left out.

    Args:
        path: A table with separators (`.csv`, `.tsv`, `.tab`, `.txt`: commas, semicolons, tabs or bars, in UTF-8,
            UTF-16 or Windows-1252), a workbook (`.xlsx`), a Parquet file, a JSON file, or JSON Lines.
        known: Column names that help recognise separators and rows.

    Returns:
        Line of each row with its cells by column, or with a description of what is wrong with it.

    Raises:
        ConfigError: If the file cannot be read, is too large, or holds no rows. The message says where.
    """
    path = Path(path)
    reader = READERS.get(kind_of(path))
    if reader is None:
        advice = "; save it as .xlsx or CSV" if kind_of(path) in (".xls", ".ods", ".numbers") else ""
        raise ConfigError(f"{path}: tables are read from {', '.join(READERS)} files, not {path.suffix!r}{advice}")
    try:
        placed = reader(path, {folded(name) for name in known})
    except MemoryError:
        raise ConfigError(f"{path} does not fit into the memory of this machine; split it") from None
    if not placed:
        raise ConfigError(f"{path} holds no rows; wanted at least one")
    columns: set[str] = set()
    for line, row in placed:
        if not isinstance(row, str) and not row.keys() <= columns:
            columns |= row.keys()
            require_size(0, len(columns), f"{path}, line {line}")
    return placed


def whole_rows(path: str | Path, placed: Sequence[PlacedRow]) -> list[Row]:
    """Return the rows of a table, requiring every one to be usable.

    Raises:
        ConfigError: If one is not. The message names the line and the reason.
    """
    rows: list[Row] = []
    for line, row in placed:
        if isinstance(row, str):
            raise ConfigError(f"{path}, line {line}: {row}")
        rows.append(row)
    return rows
