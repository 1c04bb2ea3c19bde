"""Verbal analogies: A is to B as C is to which of two words?"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mesa_llm import ConfigError
from mesa_llm.tables import read_table, whole_rows
from mesa_llm.text import one_line
from mesa_llm_models.emergent_analogies.items.originals import VERBAL

OWN = resources.files("mesa_llm_models.emergent_analogies").joinpath("data", "verbal.csv")
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
        with resources.as_file(OWN) as file:
            return analogies_in(file)
    return analogies_in(VERBAL.path(path, "verbal"))


def analogies_in(path: Path) -> list[Verbal]:
    """Read verbal analogies from a table.

    Args:
        path: The file.

    Raises:
        ConfigError: If it lacks a column or a word, has another relation, or holds no analogies.
    """
    placed = read_table(path, set(map(str.casefold, COLUMNS)), missing=())
    rows = whole_rows(path, placed)
    name = str(path)
    if lacking := [column for column in COLUMNS if not any(column in row for row in rows)]:
        raise ConfigError(f"{name}: there is no column {lacking[0]!r}, or nothing in it; it needs {', '.join(COLUMNS)}")
    items: list[Verbal] = []
    for (line, _), row in zip(placed, rows, strict=True):
        words = [one_line(str(row.get(column, "")), 100) for column in COLUMNS]
        if not all(words):
            raise ConfigError(f"{name}, line {line}: a word is missing; each of {', '.join(COLUMNS)} has one")
        relation = words[0].casefold()
        if relation not in RELATIONS:
            raise ConfigError(f"{name}, line {line}: Relation is one of {', '.join(RELATIONS)}, got {words[0]!r}")
        items.append(Verbal(relation, (words[1], words[2], words[3]), words[4], words[5]))
    return items
