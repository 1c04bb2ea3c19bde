"""Tables in Excel's workbooks."""

from __future__ import annotations

import logging
import re
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime, time
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from mesa_llm.errors import ConfigError
from mesa_llm.tables.rows import PlacedRow, headed_rows, is_filled, require_size

logger = logging.getLogger(__name__)

MAX_UNPACKED = 2**27
"""Maximum number of bytes of a workbook, unpacked."""

MAX_SHEET_ROWS = 2**20
"""Maximum number of rows of a sheet, as in Excel."""

MAX_PLACES = 10_000_000
"""Maximum number of cells of a sheet, empty ones before the last of a row included."""

BROKEN = (
    *(OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, EOFError, RuntimeError),
    *(ParseError, zipfile.BadZipFile, zlib.error),
)
"""What openpyxl raises for contents that it cannot read."""

PADDED = re.compile(r'0[0\\" ()/.-]*')
"""Number format that pads whole numbers with zeros, such as `00000` or `000\\-00\\-0000`."""


def workbook_rows(path: Path, known: Collection[str] = ()) -> list[PlacedRow]:
    """Read the first sheet with cells of a workbook: texts and numbers as they are, dates in ISO 8601.

    Formulas count as the values that Excel stored with them; numbers padded with zeros by their format are texts.

    Args:
        path: The file.
        known: Not used.

    Raises:
        ConfigError: If openpyxl is not installed, the file is no workbook or too large, or it holds no table.
    """
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
            warnings.simplefilter("ignore")  # of what has no bearing on cells, such as charts
            name, rows = _first_sheet(openpyxl, path)
    except FileNotFoundError as error:
        raise ConfigError(f"{path} cannot be opened: {error.strerror}") from error
    except BROKEN as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{path} is no readable .xlsx workbook ({error!s:.200}); with a password, or in another form, save it as "
            ".xlsx or CSV"
        ) from error
    return headed_rows(rows, f"{path}, sheet {name!r}", "row")[1]


def _first_sheet(openpyxl: Any, path: Path) -> tuple[str, list[tuple[int, Sequence[Any] | str]]]:
    """Return the name and the rows of the first sheet with cells."""
    formulas = openpyxl.load_workbook(path, read_only=True, data_only=False)
    try:
        sheets = [sheet.title for sheet in formulas.worksheets]
        for name in sheets:
            rows = list(_rows_of(formulas[name], path))
            if not rows:
                continue
            if len(sheets) > 1:
                logger.warning("%s has %d sheets; %r is read, the first with cells", path, len(sheets), name)
            if any(cell is FORMULA for _, cells in rows for cell in cells):
                return name, _calculated(openpyxl, path, name, rows)
            return name, [*rows]
    finally:
        formulas.close()
    raise ConfigError(f"{path} holds no cells; wanted names of columns, and rows below them")


FORMULA = object()
"""Stands for a cell with a formula."""


def _calculated(
    openpyxl: Any, path: Path, name: str, rows: Sequence[tuple[int, Sequence[Any]]]
) -> list[tuple[int, Sequence[Any] | str]]:
    """Put the stored values in place of formulas."""
    values = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        stored = dict(_rows_of(values[name], path))
    finally:
        values.close()
    filled: list[tuple[int, Sequence[Any] | str]] = []
    for number, cells in rows:
        found = [
            (stored.get(number, ()) + (None,) * len(cells))[place] if cell is FORMULA else cell
            for place, cell in enumerate(cells)
        ]
        lacks = any(cell is FORMULA and value is None for cell, value in zip(cells, found, strict=True))
        reason = "found a formula without its value; open the file in Excel, and save it"
        filled.append((number, reason if lacks else found))
    return filled


def _rows_of(sheet: Any, path: Path) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Read the rows that hold anything, each with its number.

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
        if any(map(is_filled, values)):
            yield number, values


def _value(cell: Any) -> Any:
    """Return a cell's value: a text, a number, or None."""
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
    """Return a whole number with the zeros and signs of its format, if that has any."""
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
