"""Read tables from CSV and similar text files."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from io import StringIO
from itertools import islice
from pathlib import Path

from mesa_llm.errors import ConfigError
from mesa_llm.tables.encodings import decoded, read_bytes
from mesa_llm.tables.rows import MAX_CELL, MAX_LINES, PlacedRow, folded, headed_rows

SEPARATORS = (",", ";", "\t", "|")
"""Cell separators, most likely first."""

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
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise ConfigError(f"{path} is a workbook or an archive; rename it to .xlsx, or save it as CSV")
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

    return start, max(candidates, key=fit)


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
    try:
        reader = csv.reader(islice(lines, start, None), delimiter=separator)
        for cells in reader:
            if cells:
                yield line, cells
            begin, line = line, start + reader.line_num + 1
    except csv.Error as error:
        raise ConfigError(f"{path}, line {line}: {error}; a cell has up to {MAX_CELL:,} characters") from error
    finally:
        csv.field_size_limit(limit)
    if len(lines) > begin and _is_open(lines[begin - 1 :], separator):
        raise ConfigError(f"{path}, line {begin}: a quotation mark opens a cell, and nothing closes it")


def _is_open(lines: Sequence[str], separator: str) -> bool:
    """Check whether the last cell of a row has an unclosed quotation mark."""
    try:
        list(csv.reader(lines, delimiter=separator, strict=True))
    except csv.Error as error:
        return "end of data" in str(error)
    return False
