"""Texts for people and models to read: on one line, clipped, quoted, and in tables.

Texts and names of agents reach the prompts of others only through `one_line` or `quoted`, so that none of them can look
like a line of the world, of a memory, or of somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

MAX_NAME = 80
"""Maximum number of characters of a name in the prompts of others."""

MAX_QUOTE = 2_000
"""Default maximum number of characters of a quotation."""

NOT_KNOWN = "–"
"""Placeholder for a missing figure."""

NOTHING_DONE = "You did nothing."
"""What came of doing nothing, in any world."""

TINY = 5e-5
"""Figures below it are shown as 0."""

COMMON = frozenset(
    re.findall(
        r"\w+",
        "about after all also and any are because before both but can did does each every few for from had has have "
        "her here his how however its just last many may more most new next not now one only other others our over "
        "she should since some such than that the their them then there these they this those though through today "
        "two under until was were what when where which while who whose why will with would yet yesterday you your",
    )
)
"""Common English words, which are no names even at the start of a sentence, and say little about a text's topic."""

_ESCAPE = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
"""Sequences that colour, move or rename a terminal."""

_EMOJI = r"[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]"
"""Pictures and their modifiers: a joiner between two makes them one, as a person and a rocket make an astronaut."""

_UNSEEN = re.compile(
    rf"{_ESCAPE}|(?<!{_EMOJI})\u200d|\u200d(?!{_EMOJI})|"
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0001-\U000e007f]"
)
"""Invisible characters: terminal escapes, control characters, zero-width and bidirectional marks, lone surrogates."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, in the plural unless the number is one.

    Args:
        count: The number.
        noun: The noun, in the singular.
        plural: Its plural; empty: the noun with an s.
    """
    return f"{count} {noun}" if count == 1 else f"{count} {plural or f'{noun}s'}"


def none_succeeded(n_decisions: int, whose: str = "") -> str:
    """Return the beginning of a message that all decisions failed.

    Args:
        n_decisions: Number of decisions.
        whose: Whom or what they belong to; empty: left out.
    """
    of = f" of {whose}" if whose else ""
    return f"the only decision{of} failed" if n_decisions == 1 else f"none of the {n_decisions} decisions{of} succeeded"


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return the part of an error that suggests a name in place of a misspelt one; empty if none is close."""
    close = get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def clip(text: str, max_characters: int) -> str:
    """Cut a text to a number of characters; an ellipsis shows the cut."""
    if len(text) <= max_characters:
        return text
    return text[: max_characters - 1] + "…" if max_characters > 0 else ""


def one_line(text: str, max_characters: int | None = None) -> str:
    """Put a text on one line, without invisible characters.

    Line breaks of every kind (`\\r`, U+0085, U+2028, …) and runs of blanks become one blank. Terminal escapes, control
    characters, zero-width characters (except those that join emoji) and marks that turn the direction of writing are
    removed.

    Args:
        text: Any text.
        max_characters: Length to clip it to; None: unlimited.
    """
    if not text.isprintable():
        text = _UNSEEN.sub("", text)
    line = " ".join(text.split())
    return line if max_characters is None else clip(line, max_characters)


def quoted(text: str, max_characters: int = MAX_QUOTE) -> str:
    """Quote what somebody wrote: on one line, in “…”, which the text itself cannot close.

    Args:
        text: Any text.
        max_characters: Length to clip it to, not counting the quotation marks.
    """
    line = one_line(text, max_characters)
    return f"“{line if line.isascii() else line.translate(_INNER)}”"


_INNER = str.maketrans("“”„‟", "‘’‚‛")
"""Double quotation marks → single ones, for use inside a quotation."""


def printable(text: str) -> str:
    """Return a text that is safe to print in a terminal: control characters are written as escapes."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() or c in "\n\t\u200d" else c.encode("unicode_escape").decode() for c in text])


_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def spreadsheet_cell(value: Any) -> Any:
    """Return a value as a cell that no spreadsheet takes for a formula; numbers stay as they are."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) and not _NUMBER.fullmatch(text) else text


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write a table with aligned columns, as lines."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]


def figure_text(value: float | None) -> str:
    """Write a figure with three significant digits."""
    if value is None:
        return NOT_KNOWN
    if abs(value) < TINY:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
