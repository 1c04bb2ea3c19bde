"""Read tables of every supported format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesa_llm.errors import ConfigError
from mesa_llm.tables.cleaning import MISSING, cleaned, columns_of
from mesa_llm.tables.frames import memory_rows
from mesa_llm.tables.numbers import with_numbers
from mesa_llm.tables.objects import json_line_rows, json_rows
from mesa_llm.tables.parquet import parquet_rows
from mesa_llm.tables.rows import PlacedRow, Row, folded, require_size
from mesa_llm.tables.separated import separated_rows
from mesa_llm.tables.statistics_files import statistics_rows
from mesa_llm.tables.workbooks import workbook_rows

if TYPE_CHECKING:
    import pandas as pd

type TableSource = str | Path | pd.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]
"""A file with a table, or one in memory: a DataFrame, a list of dictionaries, or a dictionary of lists."""

type Reader = Callable[[Path, Collection[str], str | None], list[PlacedRow]]
"""Reads the rows of a file: its path, folded names of known columns, and its encoding, or None."""

SEPARATED = (".csv", ".tsv", ".tab", ".txt")
"""Suffixes of text files with separators, in which a number is a column's text."""

READERS: Mapping[str, Reader] = {
    **dict.fromkeys(SEPARATED, separated_rows),
    ".json": json_rows,
    ".jsonl": json_line_rows,
    ".ndjson": json_line_rows,
    ".xlsx": workbook_rows,
    ".xlsm": workbook_rows,
    ".parquet": parquet_rows,
    **dict.fromkeys((".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt"), statistics_rows),
}
"""File suffix → function that reads the rows. Text formats may be compressed, with `.gz` appended."""

WAYS_OUT: Mapping[str, str] = {
    **dict.fromkeys((".xls", ".xlsb", ".ods", ".numbers"), "save it as .xlsx or CSV"),
    **dict.fromkeys((".rds", ".rdata", ".rda"), 'in R, export it: write.csv(x, "x.csv", row.names = FALSE)'),
    **dict.fromkeys((".feather", ".arrow", ".orc"), "save it with pandas: table.to_parquet(…)"),
    **dict.fromkeys((".pkl", ".pickle"), "save it with pandas: table.to_csv(…); pickles may run code"),
    **dict.fromkeys((".sqlite", ".db", ".mdb", ".accdb"), "export the table as CSV"),
    **dict.fromkeys((".bz2", ".xz", ".zst", ".zip", ".7z", ".rar", ".tar", ".tgz"), "unpack it; .gz is read packed"),
    **dict.fromkeys((".yaml", ".yml", ".toml", ".xml"), "save it as JSON or CSV"),
    **dict.fromkeys((".pdf", ".doc", ".docx", ".html", ".htm"), "copy its table into a spreadsheet, and save CSV"),
}
"""Suffix of a file that is not read → what to do."""


def kind_of(path: str | Path) -> str:
    """Return the suffix that identifies the format of a file, in lower case, ignoring `.gz`."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")


def name_of(source: Any) -> str:
    """Return the name of a table, for messages."""
    return str(source) if isinstance(source, str | Path) else "the table"


def read_table(
    source: TableSource,
    known: Collection[str] = (),
    *,
    missing: Collection[str] = MISSING,
    encoding: str | None = None,
) -> list[PlacedRow]:
    """Read the rows of a table without altering any cell.

    Cells are text, exactly as in the file. A column becomes numeric only if `str` of each number gives the cell again;
    numbers in workbooks, JSON, Parquet and statistics files stay numbers. Left out, with a line in the log that says
    how many and where, are: lines above the column names, further heads with the texts or codes of questions, rows that
    sum up the table, notes below it, and cells that stand for a missing value. Empty cells and rows are left out.

    Args:
        source: A table with separators (`.csv`, `.tsv`, `.tab`, `.txt`: commas, semicolons, tabs or bars, in UTF-8,
            UTF-16 or Windows-1252), a workbook (`.xlsx`), a Parquet file, a JSON file, JSON Lines, a file of Stata,
            SPSS or SAS, or a table in memory: a DataFrame, a list of dictionaries, a dictionary of lists.
        known: Column names that help recognise sheets, separators, column names and rows.
        missing: Cells that stand for a missing value; `()` to keep all but Excel's error values.
        encoding: Encoding of a text file; None: determined from it.

    Returns:
        Line of each row with its cells by column, or with a description of what is wrong with it.

    Raises:
        ConfigError: If the table cannot be read, is too large, or holds no rows. The message says where.
    """
    name = name_of(source)
    is_text = False
    try:
        if isinstance(source, str | Path):
            path = Path(source)
            placed = _reader_of(path)(path, {folded(name) for name in known}, encoding)
            is_text = kind_of(path) in SEPARATED
        else:
            placed = memory_rows(source, name)
    except MemoryError:
        raise ConfigError(f"{name} does not fit into the memory of this machine; split it") from None
    placed = cleaned(placed, name, missing, "line" if isinstance(source, str | Path) else "row")
    if not placed:
        raise ConfigError(f"{name} holds no rows; wanted at least one")
    columns: set[str] = set()
    for line, row in placed:
        if not isinstance(row, str) and not row.keys() <= columns:
            columns |= row.keys()
            require_size(0, len(columns), f"{name}, line {line}")
    if is_text:
        rows = [row for _, row in placed if not isinstance(row, str)]
        with_numbers(columns_of(rows), rows)
    return placed


def _reader_of(path: Path) -> Reader:
    """Return the function that reads a file.

    Raises:
        ConfigError: If its format is not read.
    """
    kind = kind_of(path)
    if kind in READERS:
        return READERS[kind]
    advice = f"; {WAYS_OUT.get(kind, 'if it is text with separators, call it .csv')}"
    raise ConfigError(f"{path}: tables are read from {', '.join(READERS)} files, not {path.suffix!r}{advice}")


def whole_rows(source: Any, placed: Sequence[PlacedRow]) -> list[Row]:
    """Return the rows of a table, requiring every one to be usable.

    Raises:
        ConfigError: If one is not. The message names the line and the reason.
    """
    rows: list[Row] = []
    for line, row in placed:
        if isinstance(row, str):
            unit = "line" if isinstance(source, str | Path) else "row"
            raise ConfigError(f"{name_of(source)}, {unit} {line}: {row}")
        rows.append(row)
    return rows
