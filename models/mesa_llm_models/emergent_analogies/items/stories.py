"""Story analogies: in which of two stories are events linked as in the first one?"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mesa_llm import ConfigError
from mesa_llm.tables import read_table, whole_rows
from mesa_llm.text import one_line
from mesa_llm_models.emergent_analogies.text import story_text

OWN = resources.files("mesa_llm_models.emergent_analogies").joinpath("data", "stories.csv")
"""Our own stories."""

COLUMNS = ("Source", "Literal similarity", "Mere appearance", "True analogy", "False analogy")
"""Columns of a file of stories: the source story, and those that it is compared with."""

NEAR, FAR = "near", "far"

COMPARED = {NEAR: COLUMNS[1:3], FAR: COLUMNS[3:5]}
"""Condition → columns of the right story and its foil: about the same things as the source, or about others."""

OPTIONS = ("Story A", "Story B", "both equally")
"""Possible answers; `both equally` is wrong."""

MAX_CHARACTERS = 4000
"""Maximum number of characters of a story."""


@dataclass(frozen=True)
class StoryTrial:
    """One story, and two that it is compared with."""

    condition: str
    """`near`: both stories are about the same things as the source; `far`: about others."""

    source: str
    """The source story."""

    right: str
    """The story whose events are linked in the same way."""

    foil: str
    """The story that is like the source in single events alone."""

    is_first: bool
    """Whether the right story is Story A."""

    @property
    def key(self) -> str:
        """The right option."""
        return OPTIONS[0] if self.is_first else OPTIONS[1]

    @property
    def text(self) -> str:
        """Text of the trial."""
        first, second = (self.right, self.foil) if self.is_first else (self.foil, self.right)
        return story_text(self.source, first, second)


def load_trials(path: str | Path | None = None) -> list[StoryTrial]:
    """Load stories, each in both conditions and both orders: four trials a story.

    Args:
        path: A table with the columns `COLUMNS`; None or empty: our own.

    Raises:
        ConfigError: If the file cannot be read, lacks a column or a story.
    """
    if not path:
        with resources.as_file(OWN) as file:
            return load_trials(file)
    name = str(path)
    placed = read_table(path, COLUMNS, missing=())
    rows = whole_rows(path, placed)
    if lacking := [column for column in COLUMNS if not any(column in row for row in rows)]:
        raise ConfigError(f"{name}: there is no column {lacking[0]!r}, or nothing in it; it needs {', '.join(COLUMNS)}")
    trials: list[StoryTrial] = []
    for number, row in enumerate(rows, 1):
        stories = {column: one_line(str(row.get(column, "")), MAX_CHARACTERS) for column in COLUMNS}
        if empty := [column for column in COLUMNS if not stories[column]]:
            raise ConfigError(f"{name}, story {number}: there is no text in column {empty[0]!r}")
        trials += [
            StoryTrial(condition, stories[COLUMNS[0]], stories[right], stories[foil], is_first)
            for condition, (right, foil) in COMPARED.items()
            for is_first in (True, False)
        ]
    return trials
