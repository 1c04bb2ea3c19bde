"""A lesson: one model that a class plays together and only the teacher runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mesa_llm.agents.agent import LLMMixin
from mesa_llm.engine.access import Access
from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError
from mesa_llm.llm.protocol import LLM, Capabilities
from mesa_llm.model.model import LLMModel
from mesa_llm.text import counted
from mesa_llm.viz.classroom.room import Classroom
from mesa_llm.viz.render.agents import agent_label
from mesa_llm.viz.session.run_settings import ModelFactory, RunSettings, accepts, offered_llms
from mesa_llm.viz.session.session import PageSession


@dataclass(frozen=True)
class Seating:
    """Who decides for which agents of a class's model."""

    players: tuple[tuple[int, str], ...]
    """Id and name of each agent that has a seat."""

    n_agents: int
    """Number of agents that decide, with and without a seat."""

    has_twins: bool
    """Whether all of them have a rule twin, which decides for whoever is absent."""

    others: str
    """What the agents without a seat think with."""

    @property
    def n_others(self) -> int:
        """Number of agents without a seat."""
        return self.n_agents - len(self.players)

    @property
    def summary(self) -> str:
        """The numbers of seats and agents, and who decides where no student does."""
        n_seats = len(self.players)
        empty = "are played by their rule twins" if self.has_twins else "decide nothing: this model has no rule twins"
        text = f"{counted(n_seats, 'seat')} for {counted(self.n_agents, 'agent')}; empty seats {empty}"
        if not self.n_others:
            return f"{text}; every agent has a seat, so --llm decides for nobody"
        have = "has no seat and thinks" if self.n_others == 1 else "have no seat and think"
        return f"{text}; {counted(self.n_others, 'agent')} {have} with {self.others}"


class Lesson:
    """The state shared by the teacher's page and the students' pages.

    Attributes:
        room: The room.
        n_seats: Maximum number of seats; None: one for each agent.
        agents: Ids of the agents that students play; empty: the first `n_seats`.
        title: Name of the model on the students' pages.
        has_twins: Whether the agents of the current model have rule twins, which play the empty seats.
        n_others: Number of agents of the current model that have no seat.
        others: What they think with.
        links: Addresses of the students' pages, the best one first.
        is_local: Whether only this machine can reach them.
    """

    def __init__(
        self, room: Classroom, *, title: str = "A model", n_seats: int | None = None, agents: Sequence[int] = ()
    ) -> None:
        """Set the seats; the model is built when the teacher's page is opened.

        Args:
            room: The room.
            title: Name of the model on the students' pages.
            n_seats: Maximum number of seats; None: one for each agent.
            agents: Ids of the agents that students play; empty: the first `n_seats`.
        """
        self.room = room
        self.title = title
        self.n_seats = n_seats
        self.agents = list(agents)
        self.has_twins = True
        self.n_others = 0
        self.others = "rule"
        self.links: list[str] = []
        self.is_local = True
        self._session: LessonSession | None = None
        self._lock = threading.Lock()

    def session(
        self, factory: ModelFactory, choice: RunSettings, folder: Path | None, access: Access | None = None
    ) -> LessonSession:
        """Return the session of the lesson, which outlives the teacher's page; the first call creates it.

        Args:
            factory: Builds models.
            choice: Settings of the first run.
            folder: Folder for runs; None: they are not saved.
            access: Common budget of the server's pages; None: each model has its own.
        """
        with self._lock:
            if self._session is None:
                self._session = LessonSession(self, factory, choice, folder, access)
            return self._session

    @property
    def model(self) -> LLMModel | None:
        """The current model; None if there is none yet."""
        session = self._session
        return None if session is None or session.runner is None else session.runner.model

    @property
    def is_running(self) -> bool:
        """Whether a step is running."""
        session = self._session
        return session is not None and session.runner is not None and session.runner.busy

    def players(self, model: LLMModel) -> list[tuple[int, str]]:
        """Return the id and name of each agent that gets a seat.

        Raises:
            ConfigError: If a named agent is not in the model, or the model has no agents that decide.
        """
        names = {agent.unique_id: agent_label(agent) for agent in llm_agents(model)}
        strangers = [agent_id for agent_id in self.agents if agent_id not in names]
        if strangers or not names:
            there_are = ", ".join(map(str, list(names)[:50])) or "none"
            missing = ", ".join(map(str, strangers)) or "to play"
            raise ConfigError(f"the model has no agent {missing}; the agents that decide are: {there_are}")
        return [(agent_id, names[agent_id]) for agent_id in self.agents or list(names)][: self.n_seats]

    def seating(self, factory: ModelFactory, arguments: Mapping[str, Any]) -> Seating:
        """Find out who has a seat in a model, by building it once with rule twins and without a run log.

        Args:
            factory: Builds models.
            arguments: Its arguments; `llm` is what the agents without a seat think with.

        Raises:
            ConfigError: If the model cannot be built, or nobody can play in it.
        """
        if not accepts(factory, "llm"):
            raise ConfigError("this model accepts no llm=, so nobody can play in it")
        nobody = {"log": None} if "log" in arguments else {}
        trial = factory(**{**arguments, "llm": "rule", **nobody})
        try:
            players = tuple(self.players(trial))
            agents = llm_agents(trial)
            has_twins = all(getattr(type(agent), "rule", None) is not LLMMixin.rule for agent in agents)
        finally:
            trial.close()
        return Seating(players, len(agents), has_twins, _llm_name(arguments.get("llm", "rule")))

    def seat(self, seating: Seating) -> None:
        """Set up the seats for a new model; students keep theirs.

        Args:
            seating: Who has a seat in it.
        """
        self.has_twins, self.n_others, self.others = seating.has_twins, seating.n_others, seating.others
        self.room.arrange(seating.players)

    def close(self) -> None:
        """Close the room and the model."""
        self.room.close()
        if self._session is not None:
            self._session.close()


def _llm_name(llm: str | LLM | Mapping[Any, str | LLM]) -> str:
    """Return the name of a language model, or say that there are several."""
    if isinstance(llm, str):
        return llm
    return "several language models" if isinstance(llm, Mapping) else Capabilities.of(llm).name


class LessonSession(PageSession):
    """The session of a lesson; all of the teacher's pages share it."""

    def __init__(
        self,
        lesson: Lesson,
        factory: ModelFactory,
        choice: RunSettings,
        folder: Path | None,
        access: Access | None = None,
    ) -> None:
        """Build the first model.

        Args:
            lesson: The lesson.
            factory: Builds models.
            choice: Settings of the run.
            folder: Folder for runs; None: they are not saved.
            access: Common budget of the server's pages; None: each model has its own.
        """
        self.lesson = lesson
        self._seating: Seating | None = None
        super().__init__(factory, choice, folder, access=access)
        self.llm_labels = {name: label for name, label in offered_llms().items() if name != "human"}

    def arguments_of(self, choice: RunSettings) -> dict[str, Any]:
        """Return the arguments of a model with a human player in each seat, replaced by the rule twin if absent.

        Args:
            choice: Settings of the run.

        Raises:
            ConfigError: If nobody can play in it.
        """
        arguments = super().arguments_of(choice)
        seating = self._seating = self.lesson.seating(self.factory, arguments)
        person = self.lesson.room.person
        arguments["llm"] = {**{agent_id: person for agent_id, _ in seating.players}, "*": arguments.get("llm", "rule")}
        if seating.has_twins and accepts(self.factory, "on_error"):
            arguments["on_error"] = "rule"
        return arguments

    def show(self, model: LLMModel, choice: RunSettings) -> None:
        """Show a new model; students keep their seats."""
        if self._seating is not None:
            self.lesson.seat(self._seating)
        super().show(model, choice)

    @property
    def state(self) -> tuple[object, ...]:
        """Everything that the text of the teacher's page depends on."""
        room = self.lesson.room
        return (*super().state, room.version, room.is_open, room.timeout_s)

    def leave(self) -> None:
        """Keep the model for the students and the teacher's return, but pause the run."""
        if self.runner is not None and self.runner.playing:
            self.rest()
