"""Format text for people and models: on one line, clipped, quoted, or in tables.

Agents' texts and names reach other agents' prompts only through `one_line` or `quoted`, so that they cannot be mistaken
for a line of the world, of a memory, or of another agent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any

MAX_NAME = 80
"""Maximum number of characters of a name in other agents' prompts."""

MAX_QUOTE = 2_000
"""Default maximum number of characters of a quotation."""

NOT_KNOWN = "–"
"""Placeholder for a missing number."""

NOTHING_DONE = "You did nothing."
"""What came of doing nothing, in any world."""

TINY = 5e-5
"""Smaller magnitudes are shown as 0."""

COMMON = frozenset(
    re.findall(
        r"\w+",
        "about after all also and any are because before both but can did does each every few for from had "
        "has have her here his how however its just last many may more most new next not now one only other "
        "others our over she should since some such than that the their them then there these they this those "
        "though through today two under until was were what when where which while who whose why will with "
        "would yet yesterday you your",
    )
)
"""Common English words, which are not names even at the start of a sentence, and say little about a text's topic."""

_ESCAPE = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
"""Terminal escape sequences."""

_EMOJI = r"[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]"
"""Emoji and their modifiers; a joiner combines two into one, such as a person and a rocket into an astronaut."""

_UNSEEN = re.compile(
    rf"{_ESCAPE}|(?<!{_EMOJI})\u200d|\u200d(?!{_EMOJI})|"
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0001-\U000e007f]"
)
"""Invisible characters: terminal escapes, control characters, zero-width and bidirectional marks, lone surrogates."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """Format a number with its noun, in the plural unless the number is one.

    Args:
        count: The number.
        noun: The noun, in the singular.
        plural: Its plural; empty: the noun with an appended s.
    """
    return f"{count} {noun_for(count, noun, plural)}"


def noun_for(count: int, noun: str, plural: str = "") -> str:
    """Return a noun as it stands after a number.

    Args:
        count: The number.
        noun: The noun, in the singular.
        plural: Its plural; empty: the noun with an appended s.
    """
    return noun if count == 1 else plural or f"{noun}s"


def tally(count: float, noun: str, plural: str = "") -> str:
    """Format a number with its noun as a sentence says it: `no cases`, `1 case`, `14 cases`; and `no one` for people.

    Args:
        count: The number.
        noun: The noun, in the singular.
        plural: Its plural; empty: the noun with an appended s, and of a person, people.
    """
    if not plural and noun == "person":
        plural = "people"
    number = number_text(count)
    if number == "0":
        return "no one" if plural == "people" else f"no {plural or f'{noun}s'}"
    return f"{number} {noun if number == '1' else plural or f'{noun}s'}"


def number_text(value: float) -> str:
    """Format a number without the noise of its last binary digits: 0.3, 12.5, 2, 1000000000000."""
    if isinstance(value, int):
        return str(value)
    text = f"{value:.10g}"
    if "e" not in text:
        return text
    return f"{value:.0f}" if abs(value) >= 1 else text


def rounded_parts(parts: Sequence[float], decimals: int = 0) -> list[float]:
    """Round numbers so that they add up to their rounded sum, as a reader who adds them expects.

    Each is rounded down, and those with the largest remainders up.

    Args:
        parts: The numbers.
        decimals: Number of decimals.
    """
    unit = 10.0**-decimals
    scaled = [round(part / unit, 9) for part in parts]
    whole = [math.floor(part) for part in scaled]
    missing = round(sum(scaled)) - sum(whole)
    ranked = sorted(range(len(parts)), key=lambda index: (whole[index] - scaled[index], index))
    for index in ranked[:missing]:
        whole[index] += 1
    return [round(part * unit, decimals) for part in whole]


def listed(items: Sequence[str], last: str = "and") -> str:
    """Join words as a sentence lists them: `a, b and c`.

    Args:
        items: The words.
        last: Word before the last one.
    """
    return f" {last} ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "You Your Yours The A An It Its This That These Those There They Their Nobody Everybody Everyone Each "
        "All Some Any No None Nothing Only Not In On At He She We Our His Her One Both Neither Either If As "
        "Since Because When After Before Too Choose Must People Somebody Someone Anybody Another Other Others Agent",
    )
)
"""Words that begin with a small letter inside a sentence."""


def sentence_inside(text: str) -> str:
    """Write a sentence as it stands after other words: without a capital, unless it begins with a name."""
    if text.startswith("You "):  # nearly all
        return f"y{text[1:]}"
    first = text.partition(" ")[0].rstrip(",'’")
    return text[:1].lower() + text[1:] if first in _FUNCTION_WORDS else text


def whole_sentence(text: str) -> str:
    """End a text with a full stop, unless it has an end already."""
    text = text.rstrip()
    return text if not text or text.endswith((".", "!", "?", "…", ".”", "!”", "?”", "”")) else f"{text}."


def none_succeeded(n_decisions: int, whose: str = "") -> str:
    """Format the beginning of a message that all decisions failed.

    Args:
        n_decisions: Number of decisions.
        whose: Owner of the decisions; empty: omitted.
    """
    of = f" of {whose}" if whose else ""
    return f"the only decision{of} failed" if n_decisions == 1 else f"none of the {n_decisions} decisions{of} succeeded"


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return an addition to an error that suggests a name instead of a misspelt one; empty if none is close."""
    close = get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def clip(text: str, max_characters: int) -> str:
    """Truncate a text to a number of characters, with an ellipsis at the cut."""
    if len(text) <= max_characters:
        return text
    return text[: max_characters - 1] + "…" if max_characters > 0 else ""


def one_line(text: str, max_characters: int | None = None) -> str:
    """Put a text on one line, without invisible characters.

    Line breaks of every kind (`\\r`, U+0085, U+2028, …) and runs of whitespace become one space. Terminal escapes,
    control characters, zero-width characters (except those that join emoji) and bidirectional marks are removed.

    Args:
        text: Any text.
        max_characters: Length to clip it to; None: unlimited.
    """
    if not text.isprintable():
        text = _UNSEEN.sub("", text)
    line = " ".join(text.split())
    return line if max_characters is None else clip(line, max_characters)


def quoted(text: str, max_characters: int = MAX_QUOTE) -> str:
    """Quote an agent's text: on one line, in “…”, which the text itself cannot close.

    Args:
        text: Any text.
        max_characters: Length to clip it to, not counting the quotation marks.
    """
    line = one_line(text, max_characters)
    return f"“{line if line.isascii() else line.translate(_INNER)}”"


_INNER = str.maketrans("“”„‟", "‘’‚‛")
"""Double quotation marks → single ones, for use inside a quotation."""


def printable(text: str) -> str:
    """Escape control characters, making a text safe to print in a terminal."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() or c in "\n\t\u200d" else c.encode("unicode_escape").decode() for c in text])


_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def spreadsheet_cell(value: Any) -> Any:
    """Escape a cell that a spreadsheet would treat as a formula; numbers are unchanged."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) and not _NUMBER.fullmatch(text) else text


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a table with aligned columns, as lines."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]


def figure_text(value: float | None) -> str:
    """Format a number with three significant digits."""
    if value is None:
        return NOT_KNOWN
    if abs(value) < TINY:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def sentences(texts: Mapping[str, str]) -> Callable[..., str]:
    """Return a function that fills in a sentence of a table.

    Args:
        texts: Name of a sentence → its text, with a field in braces for each value.
    """

    def fill(name: str, /, **values: object) -> str:
        return texts[name].format(**values)

    return fill


@lru_cache(maxsize=4096)  # many readers see one post
def tone(text: str) -> float:
    """Measure the tone of a text, from -1 to 1: VADER's compound score.

    Source:
        Hutto and Gilbert (2014), VADER, ICWSM 8.
    """
    return float(_tone_analyzer().polarity_scores(text)["compound"])


@cache
def _tone_analyzer() -> Any:
    """Load VADER's lexicon, once."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()
