"""Verbal analogies: A is to B as C is to which of two words?"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mesa_llm import ConfigError
from mesa_llm.text import one_line

OWN = resources.files("models.emergent_analogies").joinpath("data", "verbal.csv")
"""Our own items, six for each relation."""

COLUMNS = ("Relation", "A", "B", "C", "D", "D'")
"""Columns of the original's sheet, and of ours."""

RELATIONS = ("synonym", "opposite", "function", "category")


@dataclass(frozen=True)
class Verbal:
    """One verbal analogy."""

    relation: str
    """How A and B belong together: one of `RELATIONS`."""

    words: tuple[str, str, str]
    """A, B and C."""

    key: str
    """D, the right word."""

    foil: str
    """D', which belongs to C in another way."""

    @property
    def text(self) -> str:
        """The analogy as it is read."""
        first, second, third = self.words
        return f"{first} is to {second} as {third} is to"


def load_verbal(path: str | Path | None = None) -> list[Verbal]:
    """Load verbal analogies.

    Args:
        path: A CSV file with the columns of the UCLA Verbal Analogy Test; None or empty: our own.

    Raises:
        ConfigError: If the file cannot be read, or lacks a column or a word.
    """
    try:
        name, text = (
            (str(path), Path(path).read_text(encoding="utf-8-sig"))
            if path
            else ("verbal.csv", OWN.read_text(encoding="utf-8"))
        )
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    reader = csv.DictReader(text.splitlines())
    if lacking := [column for column in COLUMNS if column not in (reader.fieldnames or ())]:
        raise ConfigError(f"{name}: there is no column {lacking[0]!r}; it needs {', '.join(COLUMNS)}")
    found: list[Verbal] = []
    for row in reader:
        words = [one_line(row[column] or "", 100) for column in COLUMNS]
        if not all(words):
            raise ConfigError(
                f"{name}, line {reader.line_num}: a word is missing; each of {', '.join(COLUMNS)} has one"
            )
        relation = words[0].casefold()
        if relation not in RELATIONS:
            raise ConfigError(
                f"{name}, line {reader.line_num}: Relation is one of {', '.join(RELATIONS)}, got {words[0]!r}"
            )
        found.append(Verbal(relation, (words[1], words[2], words[3]), words[4], words[5]))
    if not found:
        raise ConfigError(f"{name} holds no analogies")
    return found
