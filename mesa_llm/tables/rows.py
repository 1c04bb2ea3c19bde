"""Rows of tables: column names, size limits, and line numbers."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.tables.numbers import WRITTEN_NUMBER
from mesa_llm.text import counted

logger = logging.getLogger(__name__)

Row = dict[str, Any]
"""Cells of a row by column, without empty ones."""

PlacedRow = tuple[int, Row | str]
"""Line on which a row begins, from 1, with its cells or a description of what is wrong with them."""

Record = tuple[int, Sequence[Any] | str]
"""Line on which a row begins, with all its cells in order, or a description of what is wrong with it."""

MAX_COLUMNS = 5_000
"""Maximum number of columns."""

MAX_ROWS = 3_000_000
"""Maximum number of rows."""

MAX_LINES = 10_000_000
"""Maximum number of lines of a text file with a table."""

MAX_CELL = 2**23
"""Maximum number of characters of a cell; a user's list of followees is a single cell."""

NAMELESS = re.compile(r"(?:Unnamed: \d+(?:_level_\d+)?(?:\.\d+)?)?")
"""Names of columns without one, as pandas writes them."""

INVISIBLE = " \t\r\n\u00a0\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
"""Characters around column names that nobody sees."""

N_HEAD = 40
"""Number of rows among which column names are looked for."""

COMMENT = re.compile(r"(?:#|//|%|;|--)")
"""Beginning of a comment above a table."""


def folded(column: Any) -> str:
    """Normalise a column name: case-folded, with underscores for spaces."""
    return "_".join(str(column).casefold().split())


def is_filled(cell: Any) -> bool:
    """Check whether a cell holds anything but whitespace."""
    return cell is not None and (not isinstance(cell, str) or bool(cell.strip()))


def require_size(n_rows: int, n_columns: int, where: str) -> None:
    """Check the size of a table.

    Raises:
        ConfigError: If there are too many rows or columns.
    """
    if n_columns > MAX_COLUMNS:
        raise ConfigError(f"{where}: found {n_columns:,} columns; a table has up to {MAX_COLUMNS:,}")
    if n_rows > MAX_ROWS:
        raise ConfigError(f"{where}: found {n_rows:,} rows; a table has up to {MAX_ROWS:,}")


def headed_rows(
    records: Iterable[Record], path: Any, unit: str = "line", known: Collection[str] = (), *, is_ragged: bool = False
) -> list[PlacedRow]:
    """Label the cells of each row with the column names above them; empty rows are left out.

    The names stand in the first row, or below a title or comments, in the first row that has known ones. An empty
    column needs no name, and neither does a first column of row numbers.

    Args:
        records: Line and cells of each row, or a description of what is wrong with the row.
        path: The file, for errors.
        unit: What `records` counts (lines or rows), for errors.
        known: Folded column names that help find the row.
        is_ragged: Whether the format leaves out empty cells at the end of a row.

    Raises:
        ConfigError: If there are no rows, the table is too large, a column with cells has no name, or two columns have
            the same name.
    """
    numbered = iter(records)
    sample = list(islice(numbered, N_HEAD))
    head = head_index(sample, known)
    if head:
        lines = counted(head, unit)
        logger.warning(
            "%s: the column names stand on %s %d; left out %s above (%.80r)", path, unit, sample[head][0], lines,
            next((cell for cell in sample[0][1] if is_filled(cell)), ""),
        )  # fmt: skip
    header_line, header = sample[head] if sample else (1, ())
    where = f"{path}, {unit} {header_line}"
    body = sample[head + 1 :]
    if body and (joined := _joined_head(header, body[0][1])):
        logger.warning("%s: the column names go on in the %s below", where, unit)
        header, body = joined, body[1:]
    columns = _names_of(_with_row_names(header, body), where)
    if columns[0].startswith("#") and folded(columns[0].lstrip("# ")) in known:  # a head written as a comment
        columns[0] = columns[0].lstrip("# ")
    labelled = _Labelled(columns, where, unit, is_ragged)
    placed = [row for line, cells in chain(body, numbered) if (row := labelled.row(line, cells)) is not None]
    if not placed:
        raise ConfigError(f"{where}: found only column names; wanted rows below them")
    return placed


def head_index(sample: Sequence[Record], known: Collection[str]) -> int:
    """Return the index of the row with the column names among the first rows of a table."""
    rows = [[] if isinstance(cells, str) else [cell for cell in cells if is_filled(cell)] for _, cells in sample]
    hits = [sum(isinstance(cell, str) and folded(cell) in known for cell in row) for row in rows]
    if len(rows) < 2 or hits[0]:
        return 0
    best = hits.index(max(hits))
    are_above = all(len(row) < len(rows[best]) or COMMENT.match(str(row[0])) for row in rows[:best])
    if hits[best] and best + 1 < len(rows) and _is_head(rows[best]) and (hits[best] > 1 or are_above):
        return best
    width = sorted(len(row) for row in rows)[len(rows) // 2]
    for index, row in enumerate(rows[:-1]):
        is_comment = bool(row) and COMMENT.match(str(row[0])) is not None and str(row[0]).strip() not in ("#", "%")
        is_title = 2 * len(row) <= width or (is_comment and (" " in str(row[0]).strip() or len(row) != width))
        if not (width > 1 and is_title):
            return index if _is_head(row) else 0
    return 0


def _is_head(row: Sequence[Any]) -> bool:
    """Check whether filled cells may be column names: different texts, none of them a number."""
    texts = [cell.strip() for cell in row if isinstance(cell, str)]
    return len(set(texts)) == len(row) and not any(WRITTEN_NUMBER.fullmatch(text) for text in texts)


def _joined_head(header: Sequence[Any] | str, below: Sequence[Any] | str) -> list[str]:
    """Join column names that stand in two rows, as SurveyMonkey writes them; empty if they stand in one.

    The second row begins with empty cells, and names the columns that the first one leaves without a name.
    """
    if isinstance(header, str) or isinstance(below, str) or not header or not is_filled(header[0]):
        return []
    names = ["" if cell is None else str(cell).strip() for cell in header]
    parts = [str(cell).strip() if is_filled(cell) else "" for cell in below]
    parts += [""] * (len(names) - len(parts))
    names += [""] * (len(parts) - len(names))
    filled = [part for part in parts if part]
    is_second = filled and not parts[0] and not any(WRITTEN_NUMBER.fullmatch(part) for part in filled)
    gaps = [place for place, part in enumerate(parts) if part and not names[place]]
    plain = {"response", "open-ended response"}
    if not is_second or not (gaps or all(part.casefold() in plain for part in filled)):
        return []
    joined: list[str] = []
    above = ""
    for name, part in zip(names, parts, strict=True):
        above = name or above
        joined.append(f"{above}: {part}" if part and part.casefold() not in plain else name)
    return joined


def _with_row_names(header: Sequence[Any] | str, body: Sequence[Record]) -> Sequence[Any] | str:
    """Put an empty name first if every row has one more cell: R writes the names of rows without one."""
    whole = [cells for _, cells in body if not isinstance(cells, str)]
    if isinstance(header, str) or not whole or not all(len(cells) == len(header) + 1 for cells in whole):
        return header
    are_filled = all(is_filled(cells[0]) and is_filled(cells[-1]) for cells in whole)
    is_split = all(str(cells[-1]).startswith(" ") for cells in whole)  # at a comma within a cell, such as in Rome, IT
    return ["", *header] if are_filled and not is_split else header


def _names_of(header: Sequence[Any] | str, where: str) -> list[str]:
    """Return the column names, empty where one is missing.

    Raises:
        ConfigError: If there are none, too many, or two are the same.
    """
    require_size(0, len(header), where)
    texts = ["" if cell is None else str(cell).strip(INVISIBLE) for cell in header]
    columns = ["" if NAMELESS.fullmatch(text) else text for text in texts]
    if isinstance(header, str) or not any(columns):
        raise ConfigError(f"{where}: found no column names; wanted one above each column, and rows below them")
    places: dict[str, int] = {}
    for place, name in enumerate(columns, 1):
        if name and (first := places.setdefault(name, place)) != place:
            raise ConfigError(f"{where}: columns {first} and {place} are both called {name!r:.80}; rename one of them")
    return columns


class _Labelled:
    """Rows of a table with the names of their columns."""

    def __init__(self, columns: Sequence[str], where: str, unit: str, is_ragged: bool) -> None:
        self._columns = columns
        self._where, self._unit, self._is_ragged = where, unit, is_ragged
        self._nameless = {place for place, name in enumerate(columns) if not name}
        self._n_leading = next(place for place, name in enumerate(columns) if name)
        self._n_named = max(place for place, name in enumerate(columns, 1) if name)
        self._is_below = False
        self._numbers = [-1] * self._n_leading
        self._n_rows = 0

    def row(self, line: int, cells: Sequence[Any] | str) -> PlacedRow | None:
        """Return a row, or a description of what is wrong with it; None if it is empty."""
        if isinstance(cells, str):
            return line, cells
        self._n_rows += 1
        require_size(self._n_rows, len(cells), self._where)
        filled = [(place, cell) for place, cell in enumerate(cells) if is_filled(cell)]
        if not filled:
            return None
        n_columns = len(self._columns)
        is_short = len(cells) < self._n_named and not self._is_ragged
        if is_short and filled[0][0] == 0 == filled[-1][0] and (self._is_below or is_note(str(filled[0][1]))):
            is_short, self._is_below = False, True  # such as a source below the table, and what follows it
        elif is_short:
            self._is_below = False
        if is_short or filled[-1][0] >= n_columns:
            n_cells = len(cells) if is_short else filled[-1][0] + 1
            return line, f"found {n_cells} cells; wanted {n_columns}, one for each column"
        if self._nameless:
            self._require_names(filled, line)
        return line, {self._columns[place]: cell for place, cell in filled if self._columns[place]}

    def _require_names(self, filled: Sequence[tuple[int, Any]], line: int) -> None:
        """Check that cells without a column name are row numbers in the first columns.

        Raises:
            ConfigError: If one is not.
        """
        for place, cell in filled:
            if place in self._nameless:
                text = str(cell).strip()
                if place < self._n_leading and text.isdigit() and int(text) > self._numbers[place]:
                    self._numbers[place] = int(text)
                elif not (len(filled) == 1 and is_note(text)):
                    raise ConfigError(
                        f"{self._where}: column {place + 1} has no name, and {self._unit} {line} has {cell!r:.60} in "
                        "it; write a name above it"
                    )


NOTE = re.compile(
    r"\(?n\s*[=:]\s*[\d., ]+\)?|[*†‡§]+\s?\S.*|©.*|end of (?:file|table|data|report)\b.*"
    r"|(?:sources?|quellen?|notes?|anmerkung(?:en)?|remarks?|fuentes?|notas?|footnotes?|legende?|generated|exported|"
    r"created|downloaded|copyright|data from|stand|as of|weighted|base)\b\s*(?:[:=–—-]|by\b|on\b|from\b).*",
    re.IGNORECASE | re.DOTALL,
)
"""A line below a table that is no row of it."""


def is_note(text: str) -> bool:
    """Check whether a text is a note below a table, such as its source."""
    return NOTE.fullmatch(text.strip()) is not None
