"""The world protocol: state and rules, without agents, Mesa or a language model."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, cast, runtime_checkable

from mesa_llm.errors import ConfigError
from mesa_llm.records import ActionResult, Event, Observation
from mesa_llm.text import NOTHING_DONE
from mesa_llm.tools.tool import action

T = TypeVar("T")

Rules = Literal["corrected", "original"]
"""Rule set for originals with defects that affect their published numbers: corrected, or as published."""


@runtime_checkable
class World(Protocol):
    """State and rules of a situation in which agents act.

    Its `@tool` and `@action` methods take the acting agent's id as their first argument. A world with steps of a month,
    a day, … may say so in an attribute `unit`; see `unit_of`. One with a clock of its own may give the words of the
    moment in an attribute or property `moment`, such as `At 08:30`; see `moment_of`.
    """

    name: str
    """Name of the world, unique in a model."""

    def observe(self, agent_id: int, /) -> Observation:
        """Return what an agent sees now. Reads only."""
        ...

    def end_step(self) -> list[Event]:
        """End a step: advance the world's own time, and return its events."""
        ...


def tuple_of_worlds(worlds: Any) -> tuple[Any, ...]:
    """Return worlds as a tuple.

    Raises:
        ConfigError: If it is a single world, or an element is a class or has no name.
    """
    if not isinstance(worlds, Iterable):
        raise ConfigError(f"worlds must be a tuple of worlds, got {worlds!r:.60}; for one world, write (world,)")
    several = tuple(cast("Iterable[Any]", worlds))
    for world in several:
        name = getattr(world, "name", None)
        if isinstance(world, type) or not isinstance(name, str) or not name:
            raise ConfigError(f"a world must have a name (name = 'market' in its class), got {world!r:.60}")
    return several


def events_of(world: Any) -> list[Event]:
    """End the step of a world, and return its events.

    Raises:
        ConfigError: If its `end_step` does not return a list of events.
    """
    returned: Any = world.end_step()
    events: list[Any] = list(cast("Iterable[Any]", returned)) if isinstance(returned, Iterable) else [returned]
    for event in events:
        if not isinstance(event, Event):
            raise ConfigError(
                f"{type(world).__name__}.end_step() returned {returned!r:.60}; return a list of events or []"
            )
    return events


def unit_of(*worlds: Any) -> str:
    """Return the time `unit` shared by some worlds: `step` if they have none, or differ."""
    if len(worlds) == 1:
        return str(getattr(worlds[0], "unit", "step"))
    units = {str(getattr(world, "unit", "step")) for world in worlds}
    return units.pop() if len(units) == 1 else "step"


def moment_of(*owners: Any) -> str:
    """Return the words for the present moment that some worlds, or a model, share; empty if they have none, or differ.

    Memories begin with them: "At 08:30 you went to the market." They say the time as observations show it.

    Args:
        owners: Worlds or models, each perhaps with an attribute or property `moment`.
    """
    moments = {getattr(owner, "moment", "") for owner in owners}
    moment = moments.pop() if len(moments) == 1 else ""
    return moment if isinstance(moment, str) else ""


@runtime_checkable
class Receiver(Protocol):
    """A world that asks typed questions and receives answers instead of actions."""

    name: str

    def receive(self, agent_id: int, answer: Any, label: str) -> str | ActionResult:
        """Receive an agent's answer. Like an action, this writes to the world.

        Args:
            agent_id: Mesa `unique_id` of the agent.
            answer: The answer, of the type the observation asked for.
            label: Label of that observation.

        Returns:
            The result, for the agent to read, with its facts if any.

        Raises:
            ToolError: If the world refuses the answer; the agent reads the reason.
        """
        ...


@runtime_checkable
class Publisher(Protocol):
    """A world that accepts posts from outside the run, between steps."""

    name: str

    def publish(self, author: str, text: str) -> int:
        """Publish a post.

        Args:
            author: Name or number of an account. An unknown name opens a new account.
            text: Text of the post.

        Returns:
            Number of the post.

        Raises:
            ToolError: If the world refuses the post.
        """
        ...


@runtime_checkable
class Changeable(Protocol):
    """A world with variables that can be changed from outside the run, between steps."""

    name: str

    def changeable(self) -> Mapping[str, Any]:
        """Return the variables that may be changed, with their current values."""
        ...

    def change(self, variable: str, value: Any) -> None:
        """Change a variable.

        Args:
            variable: Name of the variable.
            value: The new value, as a JSON value.

        Raises:
            ToolError: If there is no such variable, or the value is invalid.
        """
        ...


@runtime_checkable
class Tabular(Protocol):
    """A world with tables of its history, for exports and reports."""

    name: str

    def tables(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return the tables by name, each a list of rows with the same columns."""
        ...


@runtime_checkable
class Crowded(Protocol):
    """A world that prepares observations in bulk if told which agents are about to observe."""

    name: str

    def expect(self, agent_ids: Sequence[int]) -> None:
        """Prepare the observations of these agents. Reads only."""
        ...


@runtime_checkable
class Questioner(Protocol):
    """A world that counts which of its questions were not answered as asked."""

    name: str

    def quality(self) -> Mapping[str, tuple[int, int]]:
        """Return by kind, in `snake_case`, how many questions lack a usable answer, and of how many."""
        ...


@runtime_checkable
class Finite(Protocol):
    """A world that can end."""

    name: str

    @property
    def is_over(self) -> bool:
        """Whether the world has ended."""
        ...


class DoNothing:
    """Adds the action `do_nothing` to a world."""

    @action(did=NOTHING_DONE)
    def do_nothing(self, agent_id: int) -> str:
        """Do nothing this time."""
        self.pass_turn(agent_id)
        return NOTHING_DONE

    def pass_turn(self, agent_id: int) -> None:
        """Override to record that an agent has done nothing."""


class RNG(Protocol):
    """A world's random generator, replaceable to replay a recorded run exactly."""

    def random(self) -> float:
        """Draw from [0, 1)."""
        ...

    def randint(self, a: int, b: int) -> int:
        """Draw an integer from a to b, inclusive."""
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
    """Return a generator unchanged, or create one from a seed; None for system entropy."""
    return random.Random(rng) if rng is None or isinstance(rng, int) else rng
