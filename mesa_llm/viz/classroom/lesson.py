"""A lesson: one model that a class plays together and only the teacher runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mesa_llm.agents.agent import LLMMixin
from mesa_llm.engine.access import Access
from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.classroom.room import Classroom
from mesa_llm.viz.render.agents import agent_label
from mesa_llm.viz.session.run_settings import ModelFactory, RunSettings, accepts, offered_llms
from mesa_llm.viz.session.session import PageSession


class Lesson:
    """The state shared by the teacher's page and the students' pages.

    Attributes:
        room: The room.
        n_seats: Maximum number of seats; None: one for each agent.
        agents: Ids of the agents that students play; empty: the first `n_seats`.
        title: Name of the model on the students' pages.
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

    def close(self) -> None:
        """Close the room and the model."""
        self.room.close()
        if self._session is not None:
            self._session.close()


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
        self._players: list[tuple[int, str]] = []
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
        if not accepts(self.factory, "llm"):
            raise ConfigError("this model accepts no llm=, so nobody can play in it")
        nobody = {"log": None} if "log" in arguments else {}
        trial = self.factory(**{**arguments, "llm": "rule", **nobody})
        try:
            self._players = self.lesson.players(trial)
            has_twins = all(getattr(type(agent), "rule", None) is not LLMMixin.rule for agent in llm_agents(trial))
        finally:
            trial.close()
        person = self.lesson.room.person
        arguments["llm"] = {**{agent_id: person for agent_id, _ in self._players}, "*": arguments.get("llm", "rule")}
        if has_twins and accepts(self.factory, "on_error"):
            arguments["on_error"] = "rule"
        return arguments

    def show(self, model: LLMModel, choice: RunSettings) -> None:
        """Show a new model; students keep their seats."""
        self.lesson.room.arrange(self._players)
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
