"""The world protocol: state and rules, without agents, Mesa or a language model."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from mesa_llm.errors import ConfigError
from mesa_llm.records import ActionResult, Event, Observation
from mesa_llm.text import NOTHING_DONE
from mesa_llm.tools.tool import action

T = TypeVar("T")


@runtime_checkable
class World(Protocol):
    """State and rules of a situation that agents act in.

    Its `@tool` and `@action` methods take the acting agent's id as their first argument. A world whose step is a month,
    a day, … may have an attribute `unit` that says so; see `unit_of`.
    """

    name: str
    """Name of the world, unique in a model."""

    def observe(self, agent_id: int, /) -> Observation:
        """Return what an agent sees now; reads only."""
        ...

    def end_step(self) -> list[Event]:
        """End a step: advance the world's own time, and return what happened."""
        ...


def tuple_of_worlds(worlds: Any) -> tuple[Any, ...]:
    """Return worlds as a tuple.

    Raises:
        ConfigError: If it is one world, or one of them is a class or has no name.
    """
    if not isinstance(worlds, Iterable):
        raise ConfigError(f"worlds is a tuple of worlds, got {worlds!r:.60}; of one world, write (world,)")
    several = tuple(cast("Iterable[Any]", worlds))
    for world in several:
        name = getattr(world, "name", None)
        if isinstance(world, type) or not isinstance(name, str) or not name:
            raise ConfigError(f"a world is an object with a name (name = 'market' in its class), got {world!r:.60}")
    return several


def events_of(world: Any) -> list[Event]:
    """End the step of a world, and return its events.

    Raises:
        ConfigError: If its `end_step` returns something else.
    """
    returned: Any = world.end_step()
    events: list[Any] = list(cast("Iterable[Any]", returned)) if isinstance(returned, Iterable) else [returned]
    for event in events:
        if not isinstance(event, Event):
            raise ConfigError(
                f"{type(world).__name__}.end_step() returned {returned!r:.60}; return a list of events, [] if none"
            )
    return events


def unit_of(*worlds: Any) -> str:
    """Return the common `unit` of the time of some worlds: `step` if they have none, or differ."""
    if len(worlds) == 1:
        return str(getattr(worlds[0], "unit", "step"))
    units = {str(getattr(world, "unit", "step")) for world in worlds}
    return units.pop() if len(units) == 1 else "step"


@runtime_checkable
class Receiver(Protocol):
    """A world that asks typed questions and receives the answers, in the place of actions."""

    name: str

    def receive(self, agent_id: int, answer: Any, label: str) -> str | ActionResult:
        """Receive an agent's answer; like an action, this writes to the world.

        Args:
            agent_id: Mesa `unique_id` of the agent.
            answer: The answer, of the type that the observation asked for.
            label: Label of that observation.

        Returns:
            The result, for the agent to read, with its facts if there are any.

        Raises:
            ToolError: If the world refuses the answer; the agent reads why.
        """
        ...


@runtime_checkable
class Publisher(Protocol):
    """A world that accepts posts from outside the run, between steps."""

    name: str

    def publish(self, author: str, text: str) -> int:
        """Publish a post.

        Args:
            author: Name or number of an account; for an unknown name, a new account is opened.
            text: Text of the post.

        Returns:
            Number of the post.

        Raises:
            ToolError: If the world refuses it.
        """
        ...


@runtime_checkable
class Changeable(Protocol):
    """A world with variables that can be changed from outside the run, between steps."""

    name: str

    def changeable(self) -> Mapping[str, Any]:
        """Return the variables that may be changed, with their present values."""
        ...

    def change(self, variable: str, value: Any) -> None:
        """Change a variable.

        Args:
            variable: Its name.
            value: The new value, as JSON holds it.

        Raises:
            ToolError: If there is no such variable, or it cannot have this value.
        """
        ...


@runtime_checkable
class Tabular(Protocol):
    """A world that provides tables of its history, for exports and reports."""

    name: str

    def tables(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return the tables by name, each a list of rows with the same columns."""
        ...


@runtime_checkable
class Crowded(Protocol):
    """A world that prepares observations in bulk if told in advance which agents are about to observe."""

    name: str

    def expect(self, agent_ids: Sequence[int]) -> None:
        """Prepare the observations of these agents; reads only."""
        ...


@runtime_checkable
class Finite(Protocol):
    """A world that comes to an end."""

    name: str

    @property
    def is_over(self) -> bool:
        """Whether the world has ended."""
        ...


class DoNothing:
    """Adds the action `do_nothing` to a world."""

    @action
    def do_nothing(self, agent_id: int) -> str:
        """Do nothing this time."""
        return NOTHING_DONE


class RNG(Protocol):
    """Source of a world's random draws, which can be replaced to replay a recorded run exactly."""

    def random(self) -> float:
        """Draw from [0, 1)."""
        ...

    def randint(self, a: int, b: int) -> int:
        """Draw an integer from a to b, both included."""
        ...

    def choice(self, seq: Sequence[T], /) -> T:
        """Draw one item."""
        ...

    def sample(self, population: Sequence[T], k: int) -> list[T]:
        """Draw k different items."""
        ...

    def shuffle(self, x: list[T], /) -> None:
        """Shuffle a list in place."""
        ...


def make_rng(rng: RNG | int | None) -> RNG:
    """Return a generator as it is, or make a new one from a seed; None: from the system's entropy."""
    return random.Random(rng) if rng is None or isinstance(rng, int) else rng
