"""Read tables from Excel workbooks."""

from __future__ import annotations

import logging
import re
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime, time
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from mesa_llm.errors import ConfigError
from mesa_llm.tables.rows import N_HEAD, PlacedRow, Record, folded, headed_rows, is_filled, require_size
from mesa_llm.text import counted

logger = logging.getLogger(__name__)

MAX_UNPACKED = 2**27
"""Maximum size of a decompressed workbook, in bytes."""

MAX_SHEET_ROWS = 2**20
"""Maximum number of rows of a sheet, as in Excel."""

MAX_PLACES = 10_000_000
"""Maximum number of cells of a sheet, counting empty cells before the last one of a row."""

BROKEN = (
    *(OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, EOFError, RuntimeError),
    *(ParseError, zipfile.BadZipFile, zlib.error),
)
"""Exceptions that openpyxl raises for unreadable files."""

PADDED = re.compile(r'0[0\\" ()/.-]*')
"""Number format that pads whole numbers with zeros, such as `00000` or `000\\-00\\-0000`."""


def workbook_rows(path: Path, known: Collection[str] = (), encoding: str | None = None) -> list[PlacedRow]:
    """Read one sheet of a workbook: the first one with known column names, or the first that is not empty.

    Text and numbers stay as they are, and dates are in ISO 8601. Formulas are replaced by the values that Excel stored
    with them. Numbers that their format pads with zeros become text. Hidden rows and columns are read.

    Args:
        path: The file.
        known: Folded column names that help find the sheet and the row with the column names.
        encoding: Not used.

    Raises:
        ConfigError: If openpyxl is not installed, or the file is not a workbook, is too large, or holds no table.
    """
    name, rows = sheet_records(path, known)
    return headed_rows(rows, f"{path}, sheet {name!r}", "row", known, is_ragged=True)


def sheet_records(path: Path, known: Collection[str] = ()) -> tuple[str, list[Record]]:
    """Return the name of a sheet and its rows with all their cells; see `workbook_rows`."""
    try:
        openpyxl = import_module("openpyxl")
    except ImportError:
        raise ConfigError(f"{path}: workbooks are read with openpyxl: `pip install openpyxl`, or save as CSV") from None
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MAX_UNPACKED:
            raise ConfigError(
                f"{path} has {size:,} bytes when unpacked; workbooks of up to {MAX_UNPACKED:,} are read. Save as CSV"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about features that do not affect cells, such as charts
            return _chosen_sheet(openpyxl, path, known)
    except FileNotFoundError as error:
        raise ConfigError(f"{path} cannot be opened: {error.strerror}") from error
    except BROKEN as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{path} is not a readable .xlsx workbook ({error!s:.200}); if it has a password or another format, "
            "save it as .xlsx or CSV"
        ) from error


def _chosen_sheet(openpyxl: Any, path: Path, known: Collection[str]) -> tuple[str, list[Record]]:
    """Return the name and the rows of the first sheet with known columns, or of the first that is not empty."""
    formulas = openpyxl.load_workbook(path, read_only=True, data_only=False)
    try:
        names = [sheet.title for sheet in formulas.worksheets if sheet.sheet_state == "visible"]
        hidden = [sheet.title for sheet in formulas.worksheets if sheet.title not in names]
        heads = {name: list(islice(_rows_of(formulas[name], path), N_HEAD)) for name in [*names, *hidden]}
        filled = [name for name, rows in heads.items() if rows]
        if not filled:
            raise ConfigError(f"{path} holds no cells; wanted column names, and rows below them")
        fitting = [name for name in filled if any(_has_known(cells, known) for _, cells in heads[name])]
        name = [*fitting, *filled][0]
        percents: dict[int, float] = {}
        rows = list(_rows_of(formulas[name], path, percents))
        _say_choice(path, [*names, *hidden], fitting, name)
        _say_layout(path, formulas[name])
        if percents:
            place, number = next(iter(percents.items()))
            logger.warning(
                "%s, sheet %r: numbers shown in percent are read as they are stored: %g for %g %%, in column %d%s",
                path, name, number, 100 * number, place + 1, ", …" if len(percents) > 1 else "",
            )  # fmt: skip
        if any(cell is FORMULA for _, cells in rows for cell in cells):
            return name, _calculated(openpyxl, path, name, rows)
        return name, [*rows]
    finally:
        formulas.close()


def _has_known(cells: Sequence[Any], known: Collection[str]) -> bool:
    return any(isinstance(cell, str) and folded(cell) in known for cell in cells)


def _say_choice(path: Path, names: Sequence[str], fitting: Sequence[str], name: str) -> None:
    """Say which sheet is read, where there are several."""
    if len(names) > 1:
        others = ", ".join(map(repr, fitting[1:]))
        reason = "the first that is not empty" if not fitting else "the first with such columns"
        more = f"; {others} would fit too, and {'is' if len(fitting) == 2 else 'are'} left out" if others else ""
        logger.warning("%s has %d sheets; %r is read, %s%s", path, len(names), name, reason, more)


def _say_layout(path: Path, sheet: Any) -> None:
    """Say what a reader of the workbook would not see: hidden rows and columns, and merged cells that lose theirs."""
    with zipfile.ZipFile(path) as archive:
        xml = archive.read(sheet._worksheet_path.lstrip("/"))
    n_rows, n_columns = len(HIDDEN_ROW.findall(xml)), len(HIDDEN_COLUMN.findall(xml))
    if n_rows or n_columns:
        parts = [counted(n, noun) for n, noun in ((n_rows, "hidden row"), (n_columns, "group of hidden columns")) if n]
        logger.warning("%s, sheet %r: %s are read too", path, sheet.title, " and ".join(parts))
    merged = [cells.decode() for cells in MERGED.findall(xml)]
    tall = [cells for cells in merged if len(set(re.findall(r"\d+", cells))) > 1]
    if tall:
        logger.warning(
            "%s, sheet %r: merged cells, such as %s, count for their first row alone; unmerge and fill them to keep "
            "their value in the others", path, sheet.title, tall[0],
        )  # fmt: skip


HIDDEN_ROW = re.compile(rb"""<row\b[^>]*\bhidden=["'](?:1|true)["']""")
HIDDEN_COLUMN = re.compile(rb"""<col\b[^>]*\bhidden=["'](?:1|true)["']""")
MERGED = re.compile(rb"""<mergeCell\b[^>]*\bref=["']([A-Z]+\d+:[A-Z]+\d+)["']""")

FORMULA = object()
"""Marks a cell that holds a formula."""


def _calculated(openpyxl: Any, path: Path, name: str, rows: Sequence[tuple[int, Sequence[Any]]]) -> list[Record]:
    """Replace formulas by their stored values."""
    values = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        stored = dict(_rows_of(values[name], path))
    finally:
        values.close()
    filled: list[Record] = []
    for number, cells in rows:
        row = [
            (stored.get(number, ()) + (None,) * len(cells))[index] if cell is FORMULA else cell
            for index, cell in enumerate(cells)
        ]
        lacks = any(cell is FORMULA and value is None for cell, value in zip(cells, row, strict=True))
        reason = "found a formula without a stored value; open the file in Excel and save it"
        filled.append((number, reason if lacks else row))
    return filled


def _rows_of(sheet: Any, path: Path, percents: dict[int, float] | None = None) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Read the non-empty rows with their row numbers.

    Args:
        sheet: The sheet.
        path: The file, for errors.
        percents: Receives the first number of each column that is shown in percent, by the column's index.

    Raises:
        ConfigError: If there are too many rows or cells.
    """
    sheet.reset_dimensions()  # they may claim a million columns
    n_places = 0
    for number, cells in enumerate(sheet.iter_rows(), 1):
        n_places += len(cells)
        require_size(0, len(cells), f"{path}, row {number}")
        if number > MAX_SHEET_ROWS or n_places > MAX_PLACES:
            raise ConfigError(
                f"{path}, row {number}: the sheet is too large; up to {MAX_SHEET_ROWS:,} rows and {MAX_PLACES:,} cells "
                "are read. Save as CSV"
            )
        values = tuple([_value(cell) for cell in cells])
        if percents is not None:
            for place, cell in enumerate(cells):
                if isinstance(cell.value, float) and "%" in cell.number_format:
                    percents.setdefault(place, cell.value)
        if any(map(is_filled, values)):
            yield number, values


def _value(cell: Any) -> Any:
    """Return a cell's value: text, a number, or None."""
    value = cell.value
    if cell.data_type == "f":
        return FORMULA
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).upper()  # as Excel shows it
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return _padded(value, cell.number_format) if isinstance(value, int | float) else str(value)


def _padded(value: int | float, form: str) -> int | float | str:
    """Format a whole number with the zeros and separators of its number format, if it has any."""
    form = form.partition(";")[0]
    if not (isinstance(value, int) and value >= 0 and PADDED.fullmatch(form) and "." not in form):
        return value
    pattern = re.sub(r'[\\"]', "", form)
    n_figures = pattern.count("0")
    figures = str(value).zfill(n_figures)
    if pattern == "0" or len(figures) > n_figures:
        return value
    rest = iter(figures)
    return "".join(next(rest) if sign == "0" else sign for sign in pattern)
