"""Verbal analogies: A is to B as C is to which of two words?"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from io import StringIO
from pathlib import Path

from mesa_llm import ConfigError
from mesa_llm.text import one_line
from models.emergent_analogies.originals import VERBAL, read_sheet

OWN = resources.files("models.emergent_analogies").joinpath("data", "verbal.csv")
"""Our own items, six for each relation."""

COLUMNS = ("Relation", "A", "B", "C", "D", "D'")
"""Columns of the original's sheet, and of ours."""

RELATIONS = ("synonym", "opposite", "function", "category")


@dataclass(frozen=True)
class Verbal:
    """One verbal analogy."""

    relation: str
    """Relation of A and B: one of `RELATIONS`."""

    words: tuple[str, str, str]
    """A, B and C."""

    key: str
    """D, the right word."""

    foil: str
    """D', a word that is related to C in another way."""

    @property
    def text(self) -> str:
        """The analogy up to the missing word."""
        first, second, third = self.words
        return f"{first} is to {second} as {third} is to"


def load_verbal(path: str | Path | None = None) -> list[Verbal]:
    """Load verbal analogies.

    Args:
        path: A CSV or Excel file with the columns of the UCLA Verbal Analogy Test; `original`: that test, downloaded at
            first use; None or empty: our own.

    Raises:
        ConfigError: If the file cannot be downloaded or read, lacks a column or a word, or has another relation.
    """
    if not path:
        return analogies_in(csv.reader(OWN.read_text(encoding="utf-8").splitlines()), "verbal.csv")
    file = VERBAL.path(path, "verbal")
    if file.suffix == ".xlsx":
        return analogies_in(read_sheet(file), str(file))
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
    return analogies_in(csv.reader(StringIO(text, newline="")), str(file))


def analogies_in(table: Iterable[Sequence[str]], name: str) -> list[Verbal]:
    """Read verbal analogies from a table, whose first row names the columns.

    Args:
        table: Rows of the table.
        name: Name of the table in errors.

    Raises:
        ConfigError: If it lacks a column or a word, has another relation, or holds no analogies.
    """
    header, *rows = [[cell.strip() for cell in row] for row in table] or [[]]
    if lacking := [column for column in COLUMNS if column not in header]:
        raise ConfigError(f"{name}: there is no column {lacking[0]!r}; it needs {', '.join(COLUMNS)}")
    indices = [header.index(column) for column in COLUMNS]
    items: list[Verbal] = []
    for line, row in enumerate(rows, 2):
        if not any(row):
            continue
        words = [one_line(row[index], 100) if index < len(row) else "" for index in indices]
        if not all(words):
            raise ConfigError(f"{name}, line {line}: a word is missing; each of {', '.join(COLUMNS)} has one")
        relation = words[0].casefold()
        if relation not in RELATIONS:
            raise ConfigError(f"{name}, line {line}: Relation is one of {', '.join(RELATIONS)}, got {words[0]!r}")
        items.append(Verbal(relation, (words[1], words[2], words[3]), words[4], words[5]))
    if not items:
        raise ConfigError(f"{name} holds no analogies")
    return items
