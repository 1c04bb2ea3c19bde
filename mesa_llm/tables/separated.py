"""Read tables from CSV and similar text files."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.tables.encodings import decoded, read_bytes
from mesa_llm.tables.numbers import plain_number
from mesa_llm.tables.rows import MAX_CELL, MAX_LINES, PlacedRow, folded, headed_rows

SEPARATORS = (",", ";", "\t", "|")
"""Cell separators, most likely first."""

SPACE = " "
"""Stands for any spaces between two cells, as R writes tables unless it is told otherwise."""

FOREIGN = (
    (b"PK\x03\x04", "a workbook or an archive; rename it to .xlsx, or save it as CSV"),
    (b"\xd0\xcf\x11\xe0", "a workbook of old Excel, or one with a password; save it as .xlsx or CSV"),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file; get it with `git lfs pull`"),
    (b"<!doctype", "a web page, not a table; download the file itself, or copy the table into a spreadsheet"),
    (b"<html", "a web page, not a table; download the file itself, or copy the table into a spreadsheet"),
    (b"PAR1", "a Parquet file; rename it to .parquet"),
    (b"$FL2", "a file of SPSS; rename it to .sav"),
    (b"<stata_dta", "a file of Stata; rename it to .dta"),
    (b"SQLite format 3", "a database of SQLite; export the table as CSV"),
    (b"%PDF", "a PDF file; copy its table into a spreadsheet, and save CSV"),
)
"""Beginning of a file that is no text with separators → what it is, and what to do."""

_ESCAPED = re.compile(r'(?m)(?:^|[,;\t|])"[^"\n]*\\"[^",;\t|\r\n]')
"""A quotation mark that a backslash escapes within a cell, as databases write it."""

SEP_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""First line that names the separator for Excel."""

N_SAMPLE = 50
"""Maximum number of lines sampled to detect the separator."""

SAMPLE_CHARACTERS = 100_000
"""Maximum number of characters in that sample."""


def separated_rows(path: Path, known: Collection[str], encoding: str | None = None) -> list[PlacedRow]:
    """Read a table with a header and line numbers; all cells are text.

    Args:
        path: The file.
        known: Folded column names that help detect the separator and the header.
        encoding: Encoding of the file; None: determined from it.

    Raises:
        ConfigError: If there are no rows, the table is too large, or a quotation mark is never closed. The message
            names the line.
    """
    lines = lines_of(path, encoding)
    start, separator = separator_of(lines, path, known)
    return headed_rows(records_of(lines, separator, path, start), path, known=known)


def lines_of(path: Path, encoding: str | None = None) -> list[str]:
    """Read the lines of a text file with their endings (CR, LF or CRLF).

    Raises:
        ConfigError: If the file cannot be read, is empty, or has too many lines.
    """
    content = read_bytes(path)
    head = content[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if what := next((what for start, what in FOREIGN if head.startswith(start.lower())), ""):
        raise ConfigError(f"{path} is {what}")
    text = decoded(content, path, encoding)
    if (n_lines := max(text.count("\n"), text.count("\r"))) > MAX_LINES:
        raise ConfigError(f"{path} has {n_lines:,} lines; a table has up to {MAX_LINES:,}")
    lines = StringIO(text, newline="").readlines()
    if not any(line.strip() for line in lines):
        raise ConfigError(f"{path}, line 1: the file is empty; wanted column names, and rows below them")
    return lines


def separator_of(lines: Sequence[str], path: Path, known: Collection[str] = ()) -> tuple[int, str]:
    """Detect the separator of a table, from Excel's `sep=` line if there is one, else from a sample of lines.

    Args:
        lines: All lines.
        path: The file; tabs are tried first if its name ends in `.tsv`.
        known: Folded column names; the separator that finds most of them in one line is chosen.

    Returns:
        Index of the first line of the table, and the separator.
    """
    start = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if match := SEP_LINE.fullmatch(lines[start].rstrip("\r\n")):
        return start + 1, match[1]
    sample = "".join(line[:SAMPLE_CHARACTERS] for line in islice(lines, start, start + N_SAMPLE))[:SAMPLE_CHARACTERS]
    candidates = ("\t", *SEPARATORS) if ".tsv" in path.suffixes else SEPARATORS

    def fit(separator: str) -> tuple[int, float, int]:
        rows = [cells for cells in csv.reader(StringIO(sample, newline=""), delimiter=separator) if cells] or [[]]
        hits = [sum(folded(cell) in known for cell in cells) for cells in rows]
        width = len(rows[hits.index(max(hits))]) if any(hits) else _usual_width(rows)
        whole = sum(len(cells) == width for cells in rows) / len(rows)
        return max(hits), whole * (width > 1), width

    best = max(candidates, key=fit)
    return start, SPACE if not fit(best)[0] and _is_spaced(sample, known) else best


def _is_spaced(sample: str, known: Collection[str]) -> bool:
    """Check whether spaces separate the cells of a table, with names in quotation marks, or known ones and numbers.

    R names the rows, but not their column.
    """
    rows = [cells for cells in csv.reader(StringIO(sample), delimiter=SPACE, skipinitialspace=True) if cells]
    rows = [cells if cells[-1] else cells[:-1] for cells in rows]
    if len(rows) < 2:
        return False
    head, *body = rows if len(sample) < SAMPLE_CHARACTERS else rows[:-1]
    first = sample.lstrip().splitlines()[0]
    is_quoted = re.fullmatch(r"""(?:"[^"]*"\s*)+""", first) is not None
    widths = set(map(len, body))
    has_names = is_quoted and widths == {len(head) + 1} and len({cells[0] for cells in body}) == len(body)
    if len(head) < 2 or not (has_names or widths == {len(head)}):
        return False
    has_numbers = any(all(plain_number(cell) is not None for cell in cells) for cells in zip(*body, strict=True))
    return is_quoted or (has_numbers and any(folded(cell) in known for cell in head))


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of cells of the header, or of most rows if a title or comment stands above it."""
    widths = Counter(map(len, rows))
    return len(rows[0]) if widths[len(rows[0])] * 2 >= len(rows) else widths.most_common(1)[0][0]


def records_of(lines: Sequence[str], separator: str, path: Path, start: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Split lines into cells.

    Args:
        lines: All lines of the file.
        separator: Character between two cells.
        path: The file, for errors.
        start: Index of the first line to read.

    Yields:
        Line on which each record begins, from 1, and its cells; blank lines are left out.

    Raises:
        ConfigError: If a cell is too large, or a quotation mark is never closed. The message names the line.
    """
    limit = csv.field_size_limit(MAX_CELL)  # the default is too small for long lists of followers
    begin = line = start + 1
    manner = _manner(lines, separator, start)
    try:
        reader = csv.reader(islice(lines, start, None), delimiter=separator, **manner)
        for cells in reader:
            if cells:
                yield line, _own_cells(cells, separator)
            begin, line = line, start + reader.line_num + 1
    except csv.Error as error:
        raise ConfigError(f"{path}, line {line}: {error}; a cell has up to {MAX_CELL:,} characters") from error
    finally:
        csv.field_size_limit(limit)
    if len(lines) > begin and _is_open(lines[begin - 1 :], separator, manner):
        raise ConfigError(f"{path}, line {begin}: a quotation mark opens a cell, and nothing closes it")


def _manner(lines: Sequence[str], separator: str, start: int) -> dict[str, Any]:
    """Return how cells are written: with spaces before each, or with backslashes before quotation marks."""
    head = lines[start] if start < len(lines) else ""
    is_spaced = separator == SPACE or (separator in head and head.count(separator) == head.count(f"{separator} "))
    manner: dict[str, Any] = {"skipinitialspace": True} if is_spaced else {}
    if any('\\"' in line and _ESCAPED.search(line) for line in islice(lines, start, None)):
        manner["escapechar"] = "\\"
    return manner


def _own_cells(cells: list[str], separator: str) -> list[str]:
    """Return cells without what ends a line of spaces, or stands around those of a Markdown table."""
    if separator == "|" and len(cells) > 2 and not cells[0] and not cells[-1].strip():
        return [cell.strip() for cell in cells]
    return cells[:-1] if separator == SPACE and not cells[-1] else cells


def _is_open(lines: Sequence[str], separator: str, manner: Mapping[str, Any]) -> bool:
    """Check whether the last cell of a row has an unclosed quotation mark."""
    try:
        list(csv.reader(lines, delimiter=separator, strict=True, **manner))
    except csv.Error as error:
        return "end of data" in str(error)
    return False
