"""Recorded runs of the classics with a language model, and their rule twins: same world, same seed, same steps.

`mesa-llm study classics` lists them; `python3 dev.py record NAME` records one anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mesa_llm import ConfigError, LLMModel
from mesa_llm.model.identity import class_named
from mesa_llm.model.recording import Recording, advance_to

FILE = "recording.sqlite"
"""Name of a recording, in the folder of its model."""

SEED = 1
"""Seed of the recorded runs."""


@dataclass(frozen=True)
class Classic:
    """A classic model and its recording."""

    name: str
    """Name of its package, by which `mesa-llm run` knows it."""

    kind: str
    """Name of its class."""

    measure: str
    """Measure by which the rule twin is compared with the language model."""

    label: str
    """Description of that measure, for a plot."""

    setting: Mapping[str, Any]
    """Parameters of the recorded run, small enough for a language model on one thread."""

    steps: int
    """Number of steps of the recorded run."""

    @property
    def model(self) -> type[LLMModel]:
        """Its class."""
        return class_named(f"mesa_llm_models.classics.{self.name}.model:{self.kind}", LLMModel)

    @property
    def file(self) -> Path:
        """Its recording."""
        return Path(__file__).parent / self.name / FILE

    @property
    def recording(self) -> Recording:
        """Its recorded run.

        Raises:
            ConfigError: If it is missing or damaged.
        """
        return Recording.read(self.file)

    def llm_twin(self) -> LLMModel:
        """Rebuild the model of the recorded run, before its first step; it is replayed without requests."""
        return self.recording.rebuilt(log=self.file, replay=True)

    def twin(self, llm: str = "rule") -> LLMModel:
        """Make a model of the same world and seed, before its first step.

        Args:
            llm: Language model of its agents.
        """
        return self.recording.rebuilt({"llm": llm})

    def record(self, llm: str) -> None:
        """Record the run anew.

        Args:
            llm: Language model of its agents.
        """
        self.file.unlink(missing_ok=True)
        model = self.model(**self.setting, llm=llm, rng=SEED, log=self.file)
        advance_to(model, self.steps)
        model.close()
        with closing(sqlite3.connect(self.file)) as database:  # one file without companions, as small as can be
            database.execute("PRAGMA journal_mode = DELETE")
            database.execute("VACUUM")


CLASSICS = {
    classic.name: classic
    for classic in (
        Classic(
            "schelling",
            "SchellingModel",
            "likeness",
            "neighbours of one's own colour, mean share",
            {"size": 5, "memory": "none"},
            6,
        ),
        Classic(
            "boltzmann_wealth",
            "WealthModel",
            "gini",
            "Gini coefficient of the coins",
            {"n_agents": 10, "size": 3, "memory": "none"},
            6,
        ),
        Classic(
            "sugarscape",
            "SugarModel",
            "traders",
            "traders alive",
            {"n_agents": 8, "size": 8, "vision": 2, "poorest": 10, "metabolism": 3, "memory": "none"},
            14,
        ),
        Classic(
            "wolf_sheep",
            "MeadowModel",
            "sheep",
            "sheep",
            {"size": 6, "n_sheep": 10, "n_wolves": 2, "memory": "none"},
            10,
        ),
        Classic(
            "epidemic",
            "EpidemicModel",
            "infected",
            "share of people who are ill",
            {"n_agents": 10, "memory": "none"},
            6,
        ),
        Classic(
            "opinion",
            "OpinionModel",
            "spread",
            "standard deviation of opinions",
            {"n_agents": 10, "memory": "none"},
            5,
        ),
        Classic(
            "prisoners_dilemma",
            "DilemmaModel",
            "guests_score",
            "guest's points a round and opponent",
            {"rounds": 6},
            6,
        ),
    )
}
"""Name → classic model, from the best introduction onwards."""


def run_twins(name: str, llm: str = "rule") -> tuple[LLMModel, LLMModel]:
    """Run the recorded run of a classic to its end, and its rule twin for as many steps.

    Args:
        name: Name of the classic.
        llm: What agents think with in place of the recorded language model; `rule`: their rule twins.

    Returns:
        The rule twin, and the replay of the language model.

    Raises:
        ConfigError: If there is no such classic.
    """
    if name not in CLASSICS:
        raise ConfigError(f"there is no classic {name!r}; there are: {', '.join(CLASSICS)}")
    classic = CLASSICS[name]
    twins = (classic.twin(llm), classic.llm_twin())
    for twin in twins:
        advance_to(twin, classic.steps)
    return twins
