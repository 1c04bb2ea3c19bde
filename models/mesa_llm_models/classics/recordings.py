"""Recorded runs of the classics with a language model, and their rule twins: same world, same seed, same steps.

`mesa-llm study classics` lists them. The recording of a classic is the first run in its `recordings/runs.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mesa_llm import ConfigError, LLMModel
from mesa_llm.engine.access import Access
from mesa_llm.experiments.runs.recordings import RecordedRun, runs_in
from mesa_llm.experiments.runs.runner import Job, Stop, run_jobs
from mesa_llm.model.identity import class_named
from mesa_llm.model.recording import advance_to


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

    @property
    def model(self) -> type[LLMModel]:
        """Its class."""
        return class_named(f"mesa_llm_models.classics.{self.name}.model:{self.kind}", LLMModel)

    @property
    def run(self) -> RecordedRun:
        """Its recorded run."""
        return next(iter(runs_in(Path(__file__).parent / self.name).values()))

    @property
    def steps(self) -> int:
        """Number of steps of the recorded run."""
        return self.run.recording.last_step

    def twin(self, llm: str | Mapping[str, str] = "rule", **options: Any) -> LLMModel:
        """Make a model of the same world and seed, before its first step.

        Args:
            llm: Language model of its agents, or several by agent.
            **options: Options of the model, such as `access` and `log`.
        """
        return self.run.recording.rebuilt({"llm": llm}, **options)


CLASSICS = {
    classic.name: classic
    for classic in (
        Classic("schelling", "SchellingModel", "likeness", "neighbours of one's own colour, mean share"),
        Classic("boltzmann_wealth", "WealthModel", "gini", "Gini coefficient of the coins"),
        Classic("sugarscape", "SugarModel", "traders", "traders alive"),
        Classic("wolf_sheep", "MeadowModel", "sheep", "sheep"),
        Classic("epidemic", "EpidemicModel", "infected", "share of people who are ill"),
        Classic("opinion", "OpinionModel", "spread", "standard deviation of opinions"),
        Classic("culture", "CultureModel", "n_taken", "habits taken over in a step"),
        Classic("el_farol", "FarolModel", "attendance", "people at the bar"),
        Classic("prisoners_dilemma", "DilemmaModel", "guests_score", "guest's points a round and opponent"),
    )
}
"""Name → classic model, from the best introduction onwards."""


@dataclass(frozen=True)
class _TwinJob(Job[LLMModel]):
    """A run of the same world and seed, for as many steps as the recorded one."""

    classic: Classic
    llm: str | Mapping[str, str]
    log: Path | None

    def run(self, access: Access, stop: Stop) -> LLMModel:
        model = self.classic.twin(self.llm, access=access, log=self.log)
        stop.run(model, self.classic.steps)
        return model


def run_twins(
    name: str,
    llm: str | Mapping[str, str] = "rule",
    *,
    folder: Path | None = None,
    limits: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[LLMModel, LLMModel]:
    """Run the recorded run of a classic to its end, and its rule twin for as many steps.

    Args:
        name: Name of the classic.
        llm: What agents think with in place of the recorded language model; `rule`: their rule twins.
        folder: Folder of the twin's log; None to keep none.
        limits: Endpoints, limits and budget of the twin, see `Access`.

    Returns:
        The rule twin, and the replay of the language model.

    Raises:
        ConfigError: If there is no such classic.
        BudgetExceeded: If the twin exceeded its budget.
    """
    if name not in CLASSICS:
        raise ConfigError(f"there is no classic {name!r}; there are: {', '.join(CLASSICS)}")
    classic = CLASSICS[name]
    job = _TwinJob(classic, llm, None if folder is None else folder / f"{name}.sqlite")
    ((_, twin),) = run_jobs([job], limits, on="threads")
    replay = classic.run.start()
    advance_to(replay, classic.steps)
    return twin, replay
