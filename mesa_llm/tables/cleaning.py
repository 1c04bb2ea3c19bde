"""Take out of a table what is no answer: further heads, totals, notes and marks of missing values; and say so."""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from string import ascii_lowercase
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.tables.numbers import numbers_of
from mesa_llm.tables.rows import PlacedRow, Row, folded, is_note
from mesa_llm.text import clip, counted

logger = logging.getLogger(__name__)

MISSING = frozenset(
    (
        *("NA", "N/A", "n/a", "n.a.", "N.A.", "<NA>", "NaN", "nan", "-nan", "-NaN", "NAN", "NaT"),
        *("NULL", "null", "None", "(null)", "\\N", ".", "-", "--", "–", "—", "−", "?"),
        *(f".{letter}" for letter in ascii_lowercase),
    )
)
"""Cells that stand for a missing value, as R, pandas, databases, Stata and people write it."""

ANY_CASE = frozenset(("na", "n/a", "nan", "null"))
"""Marks that stand for a missing value in any case, but in a name: Na, Nan and Null are names of people."""

ERROR_VALUE = re.compile(r"#(?:N/A(?: N/A)?|NA|NV|[¡]?[A-ZÄÉÖÜ][A-ZÄÉÖÜ0-9/]*[!?])|#{3,}|-?1\.#(?:IND|QNAN|INF)")
"""An error that a spreadsheet shows in place of a value, such as `#DIV/0!`."""

TOTALS = frozenset(
    (
        *("total", "totals", "grand total", "subtotal", "sum", "mean", "average", "avg", "all respondents"),
        *("gesamt", "insgesamt", "summe", "gesamtsumme", "mittelwert", "durchschnitt", "total général", "somme"),
        *("moyenne", "suma", "promedio", "totale", "somma", "totaal", "gemiddelde", "totalt", "summa", "medelvärde"),
    )
)
"""Labels of rows that sum up a table."""

STATISTICS = frozenset(
    ("n", "count", "anzahl", "median", "min", "max", "minimum", "maximum", "sd", "std", "std. dev.", "media", "média")
)
"""Labels of rows that sum up a table only if their numbers do."""

NAMES = frozenset(
    ("name", "realname", "real_name", "full_name", "username", "respondent", "participant", "person", "id")
)
"""Columns in which a label of `TOTALS` is never somebody's name."""

LABELLED = frozenset(
    ("question", "score", "measure", "item", "text", "variable", "statistic", "trait", "scale", "label")
)
"""Columns in which such a label is an ordinary cell."""

MAX_PLACES = 4
"""Maximum number of columns that a message names."""

_QUESTION = re.compile(
    r".*[?:]|(?:please|bitte|how|what|which|who|when|where|do you|are you|have you|to what extent|indicate|select|"
    r"wie|was|welche[rs]?|haben sie|sind sie)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_DATE = re.compile(r"date|datum|born|birth|geburt|naissance|fecha|_at$|\btime", re.IGNORECASE)
_IMPORT_ID = re.compile(r"""\s*\{\s*["']?ImportId["']?\s*:""")


def cleaned(
    placed: Sequence[PlacedRow], source: str, missing: Collection[str] = MISSING, unit: str = "line"
) -> list[PlacedRow]:
    """Return the rows of a table that are rows of it, without the cells that stand for missing values.

    What is left out is logged, with its number and place. A row that holds nothing else stays, without cells.

    Args:
        placed: The rows with their lines.
        source: The file, for messages.
        missing: Cells that stand for a missing value; those of `ERROR_VALUE` always do.
        unit: What the lines count, for messages.

    Raises:
        ConfigError: If no row is left.
    """
    kept = _without_heads(placed, source, unit)
    kept = _without_totals(kept, source, unit)
    _without_marks(kept, source, frozenset(missing), unit)
    _say_dates([row for _, row in kept if isinstance(row, dict)], source)
    if placed and not kept:
        raise ConfigError(f"{source}: found only column names; wanted rows below them")
    return kept


# -- further heads


def _without_heads(placed: Sequence[PlacedRow], source: str, unit: str) -> list[PlacedRow]:
    """Leave out rows with the texts or codes of questions below the column names, and column names that repeat."""
    first = [row for _, row in placed[:60] if isinstance(row, dict)]
    n_heads = _n_further_heads(first)
    if n_heads:
        lines = _lines_text([line for line, _ in placed[:n_heads]], unit)
        logger.warning("%s: left out %s: texts or codes of the questions", source, lines)
    kept: list[PlacedRow] = []
    repeated: list[int] = []
    for line, row in placed[n_heads:]:
        is_head = isinstance(row, dict) and len(row) > 1 and all(cell == name for name, cell in row.items())
        if is_head or (isinstance(row, dict) and line == placed[0][0] and _is_rule(row)):
            repeated.append(line)
        else:
            kept.append((line, row))
    if repeated:
        logger.warning("%s: left out %s: the column names again, or a line", source, _lines_text(repeated, unit))
    return kept


def _n_further_heads(rows: Sequence[Row]) -> int:
    """Count the rows below the column names that belong to the head."""
    for index, row in enumerate(rows[:4]):
        n_ids = sum(isinstance(cell, str) and _IMPORT_ID.match(cell) is not None for cell in row.values())
        if n_ids and 2 * n_ids >= len(row):
            return index + 1
    return int(len(rows) > 1 and _is_question_row(rows[0], rows[1:]))


def _is_question_row(row: Row, others: Sequence[Row]) -> bool:
    """Check whether a row holds questions: where all others have numbers, or in the words of the column names."""
    if len(row) < 2 or any(_is_number(cell) or not isinstance(cell, str) for cell in row.values()):
        return False
    columns = {name: [one[name] for one in others if name in one and not _is_mark(one[name], MISSING)] for name in row}
    asking = [name for name, cell in row.items() if _is_question(cell) and not any(map(_is_question, columns[name]))]
    alike = [
        name
        for name, cell in row.items()
        if len(_letters(name)) > 2 and _letters(cell) == _letters(name) and cell not in columns[name]
    ]
    n_signs = len({*asking, *alike})
    if n_signs >= 2 and 2 * n_signs >= len(row):
        return True
    numeric = [name for name, cells in columns.items() if cells and all(map(_is_number, cells))]
    texts = {row[name].strip() for name in numeric}
    if n_signs and numeric:
        return all(_is_wordy(text) or _letters(text) in map(_letters, numeric) for text in texts)
    return len(numeric) >= 2 and len(texts) == len(numeric) and all(map(_is_wordy, texts))


def _is_rule(row: Row) -> bool:
    """Check whether a row is a line under the column names, as Markdown and databases print it."""
    return len(row) > 1 and all(re.fullmatch(r"\s*:?[-=+]{2,}:?\s*", str(cell)) for cell in row.values())


def _is_question(cell: Any) -> bool:
    return isinstance(cell, str) and " " in cell.strip() and _QUESTION.fullmatch(cell.strip()) is not None


def _is_wordy(text: str) -> bool:
    return len(text.split()) > 1 and not _is_mark(text, MISSING)


def _letters(text: Any) -> str:
    return re.sub(r"[\W_]", "", str(text)).casefold()


def _is_number(cell: Any) -> bool:
    if isinstance(cell, str):
        return re.fullmatch(r"[-+−]?[$€£¥]?\s*\d[\d.,\s]*%?", cell.strip()) is not None
    return isinstance(cell, int | float) and not isinstance(cell, bool)


# -- totals and notes


def _without_totals(placed: list[PlacedRow], source: str, unit: str) -> list[PlacedRow]:
    """Leave out rows that sum up others, and notes below the table."""
    n_columns = len({name for _, row in placed if isinstance(row, dict) for name in row})
    texts = _text_columns(placed) if n_columns > 1 else set[str]()
    left_out = _notes_below(placed) if n_columns > 1 else dict[int, str]()
    for index in range(len(placed) - 1, -1, -1):
        row = placed[index][1]
        if isinstance(row, str) or not row or n_columns < 2 or index in left_out:
            continue
        label, cell = next(iter(row.items()))
        if not isinstance(cell, str):
            continue
        others = placed[:index] or placed[1:]  # a total may stand first, too
        if _total_word(cell) and _is_total(label, row, others, texts):
            left_out[index] = cell
    if left_out:
        lines = _lines_text([placed[index][0] for index in sorted(left_out)], unit)
        logger.warning("%s: left out %s: totals or notes of the table (%.60r)", source, lines, left_out[min(left_out)])
    kept = [one for index, one in enumerate(placed) if index not in left_out]
    _say_headings(kept, n_columns, source, unit)
    return kept


def _notes_below(placed: Sequence[PlacedRow]) -> dict[int, str]:
    """Return the rows of one text each at the end, from the first on that is a note, by their indices."""
    below: dict[int, str] = {}
    begin = len(placed)
    for index in range(len(placed) - 1, 0, -1):
        row = placed[index][1]
        first = next(iter(row.values())) if isinstance(row, dict) and len(row) == 1 else None
        if not isinstance(first, str):
            break
        below[index] = first
        begin = index if is_note(first) or _total_word(first) in TOTALS else begin
    return {index: text for index, text in below.items() if index >= begin}


def _say_headings(placed: Sequence[PlacedRow], n_columns: int, source: str, unit: str) -> None:
    """Say which rows may be headings of groups: one text at the left, where others have several cells."""
    rows = [(line, row) for line, row in placed if isinstance(row, dict) and row]
    if n_columns < 3 or not rows:
        return
    label = next(iter(rows[0][1]))
    lines = [line for line, row in rows if list(row) == [label] and isinstance(row[label], str)]
    if lines and 2 * len(lines) < len(rows):
        logger.warning(
            "%s: %s with nothing but a text in the column %.40r; if these are headings of groups, take them out, and "
            "write the group into a column", source, _lines_text(lines, unit), label,
        )  # fmt: skip


def _text_columns(placed: Iterable[PlacedRow]) -> set[str]:
    """Return the columns with a text in most rows."""
    rows = [row for _, row in placed if isinstance(row, dict)]
    counts = Counter(
        name for row in rows for name, cell in row.items() if isinstance(cell, str) and not _is_number(cell)
    )
    return {name for name, n in counts.items() if n * 5 >= len(rows) * 4}


def _total_word(cell: str) -> str:
    """Return the label of a row that may sum up others, in lower case; empty if it is none."""
    if len(cell) > 30:
        return ""
    word = " ".join(cell.casefold().strip(" :.").split())
    return word if word in TOTALS or word in STATISTICS else ""


def _is_total(label: str, row: Row, above: Sequence[PlacedRow], texts: Collection[str]) -> bool:
    """Check whether a row with a label of `TOTALS` or `STATISTICS` sums up those above it.

    Args:
        label: Column of the label.
        row: Its cells.
        above: The rows above.
        texts: Columns with a text in most rows.
    """
    if folded(label) in LABELLED:
        return False
    others = [name for name in texts if name != label]
    lacks_texts = bool(others) and not any(name in row for name in others)
    if _total_word(str(row[label])) in TOTALS and (len(row) == 1 or lacks_texts or folded(label) in NAMES):
        return True
    figures = {name: cell for name, cell in row.items() if name != label and _is_number(cell)}
    is_name = folded(label) in NAMES and _total_word(str(row[label])) in ("max", "min")
    return len(figures) > is_name and all(
        _sums_up(cell, [one[name] for _, one in above if isinstance(one, dict) and name in one])
        for name, cell in figures.items()
    )


def _sums_up(cell: Any, above: Sequence[Any]) -> bool:
    """Check whether a number is the sum, mean, median, number, bound or deviation of others."""
    try:
        found = numbers_of([cell, *(one for one in above if _is_number(one))])
    except ConfigError:
        return False
    if found is None or len(found[0]) < 3:
        return False
    figure, *numbers = found[0]
    n, total = len(numbers), math.fsum(numbers)
    mean = total / n
    deviation = math.sqrt(math.fsum((one - mean) ** 2 for one in numbers) / (n - 1))
    ordered = sorted(numbers)
    median = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    known = (total, mean, median, n, ordered[0], ordered[-1], deviation)
    return any(math.isclose(figure, one, rel_tol=0.01, abs_tol=0.05) for one in known)


# -- marks of missing values


def _without_marks(placed: Sequence[PlacedRow], source: str, missing: frozenset[str], unit: str) -> None:
    """Remove cells that stand for a missing value, in place."""
    marks: Counter[str] = Counter()
    places: Counter[str] = Counter()
    first_line = 0
    empty: list[int] = []
    has_numbers = any(mark[:1].isdigit() or mark[1:2].isdigit() for mark in missing)
    for line, row in placed:
        if isinstance(row, str):
            continue
        found = [
            name
            for name, cell in row.items()
            if _is_mark(cell, missing, has_numbers=has_numbers)
            or (missing and isinstance(cell, str) and cell.strip().casefold() in ANY_CASE and not _is_name(name))
        ]
        for name in found:
            marks[str(row.pop(name)).strip()] += 1
            places[name] += 1
            first_line = first_line or line
        if found and not row:
            empty.append(line)
    if marks:
        words = ", ".join(f"{mark!r:.30}" for mark, _ in marks.most_common(MAX_PLACES))
        columns = ", ".join(f"{clip(name, 40)}: {n}" for name, n in places.most_common(MAX_PLACES))
        more = ", …" if len(places) > MAX_PLACES else ""
        more += f" ({_lines_text(empty, unit)} with nothing else)" if empty else ""
        logger.warning(
            "%s: %s taken for missing values (%s), the first in %s %d, by column: %s%s; if people answered so, keep "
            "them with missing=()",
            source, counted(marks.total(), "cell"), words, unit, first_line, columns, more,
        )  # fmt: skip


def _is_name(column: str) -> bool:
    return folded(column) in NAMES or folded(column).endswith("name")


def _is_mark(cell: Any, missing: Collection[str], *, has_numbers: bool = False) -> bool:
    if isinstance(cell, str):
        return cell.strip() in missing or (cell[:1] in "#-1" and ERROR_VALUE.fullmatch(cell.strip()) is not None)
    if isinstance(cell, float) and cell != cell:
        return True
    return has_numbers and isinstance(cell, int | float) and not isinstance(cell, bool) and f"{cell:g}" in missing


def _lines_text(lines: Sequence[int], unit: str) -> str:
    """Describe lines, for people to read."""
    if len(lines) == 1:
        return f"{unit} {lines[0]}"
    shown = ", ".join(map(str, lines[:10]))
    return f"{unit}s {shown}" + (f" and {len(lines) - 10} more" if len(lines) > 10 else "")


def _say_dates(rows: Sequence[Row], source: str) -> None:
    """Say which columns of dates hold numbers of days, as Excel counts them."""
    for name in columns_of(rows[:1]):
        if _DATE.search(name) is None:
            continue
        cells = [row[name] for row in rows if name in row]
        days = [int(cell) for cell in cells if str(cell).isdigit() and 10_000 <= int(cell) <= 60_000]
        if len(days) == len(cells):
            day = (date(1899, 12, 30) + timedelta(days[0])).isoformat()
            logger.warning(
                "%s: the numbers in the column %.40r may be days as Excel counts them (%d is %s); if so, write dates",
                source, name, days[0], day,
            )  # fmt: skip


def columns_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the columns of all rows, in the order of their first occurrence."""
    return list(dict.fromkeys(column for row in rows for column in row))
