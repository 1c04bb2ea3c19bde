"""Carry events of one world to the agents of another, one step later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from pydantic import FiniteFloat, TypeAdapter, ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.records import Event
from mesa_llm.text import clip, one_line

Hook = Callable[[Event], None]
"""Called with each delivered event, so that one world can react to another."""

Relevance = Callable[[int, Event], bool]
"""Returns whether an event is relevant to the agent with an id."""


class ViralPost(TypedDict):
    """Facts of a `viral_post`: a post with many likes or reposts."""

    post_id: int
    author_id: int
    author: str
    text: str
    score: int


PriceMove = TypedDict(
    "PriceMove",
    {
        "market_id": str,
        "question": str,
        "from": FiniteFloat,
        "to": FiniteFloat,
        "price_yes": FiniteFloat,
        "delta": FiniteFloat,
    },
)
"""Facts of a `price_move`: the price of YES before and after a step, and their difference."""


class MetricChange(TypedDict):
    """Facts of a `metric_change`: a metric of an economy before and after a step."""

    metric: str
    previous: FiniteFloat
    current: FiniteFloat
    delta: FiniteFloat


class PolicyChange(TypedDict):
    """Facts of a `policy_change`: the policy, and the variable that it sets, if any."""

    policy: str
    description: str
    variable: str | None
    value: FiniteFloat | str | None


class MarketResolved(TypedDict):
    """Facts of a `market_resolved`: a question and its answer."""

    market_id: str
    question: str
    outcome: str
    price_yes: FiniteFloat


PAYLOADS: dict[str, Any] = {
    "viral_post": ViralPost,
    "price_move": PriceMove,
    "metric_change": MetricChange,
    "policy_change": PolicyChange,
    "market_resolved": MarketResolved,
}
"""Kind of event shared by several worlds → minimum facts of such an event."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event that reached an agent."""

    time: int
    """Step in which it reached the agent."""

    agent: int
    """Mesa `unique_id` of the agent."""

    event: Event
    """The event."""


@dataclass(frozen=True, slots=True)
class _Announcement:
    """News from outside the run."""

    event: Event
    last_step: int
    agents: frozenset[int] | None
    world: str

    def reaches(self, worlds: frozenset[str], agent: int | None) -> bool:
        """Check whether an agent that observes these worlds reads it; None: any agent."""
        return (self.agents is None or agent in self.agents) and (not self.world or self.world in worlds)


class Bridge:
    """Carries events between worlds: published at the end of a step, read in the next.

    Agents read a digest of news from worlds that they do not observe. Worlds can react to events in other worlds
    through hooks (`connect`).

    Attributes:
        log: Every event that arrived, with its step of arrival.
        deliveries: Events that reached agents, as recorded by `deliver`.
    """

    def __init__(
        self,
        schedule: Iterable[Event] = (),
        *,
        steps_alive: int = 1,
        max_events: int = 8,
        max_characters: int = 1200,
        own_worlds: bool = False,
        relevance: Relevance | None = None,
        payloads: Mapping[str, Any] | None = None,
    ) -> None:
        """Create a bridge.

        Args:
            schedule: Shocks, each delivered in the step of its `time`.
            steps_alive: Number of steps in which an event can be read; 0: only hooks receive it.
            max_events: Maximum number of events in a digest; the newest are kept.
            max_characters: Maximum number of characters of a digest; a line longer than half of that is cut.
            own_worlds: Whether agents also read the news of the worlds they observe.
            relevance: Returns whether an event is relevant to an agent; None: every event is relevant to all.
            payloads: Kind → type of its facts, checked on publication. `PAYLOADS` are those of the worlds of this
                package.
        """
        self._schedule = sorted(schedule, key=lambda event: event.time)
        self._steps_alive = steps_alive
        self._max_events = max_events
        self._max_characters = max_characters
        self._own_worlds = own_worlds
        self._relevance = relevance
        self._checks = {kind: TypeAdapter[Any](facts) for kind, facts in (payloads or {}).items()}
        self._subscriptions: dict[int, frozenset[str]] = {}
        self._published: list[Event] = []
        self._current: list[tuple[int, Event]] = []
        self._announced: list[_Announcement] = []
        self._hooks: dict[str, list[Hook]] = {}
        self._time = 0
        self._delivered: dict[int, list[Event]] = {}  # agent → events it received in this step
        self.log: list[tuple[int, Event]] = []
        self.deliveries: list[Delivery] = []

    def connect(self, kind: str, hook: Hook) -> None:
        """Call a hook with every event of a kind, at the start of the step in which it is read."""
        self._hooks.setdefault(kind, []).append(hook)

    def subscribe(self, agent: int, kinds: Iterable[str] | None) -> None:
        """Restrict the events that an agent reads to some kinds.

        Args:
            agent: Mesa `unique_id`.
            kinds: The kinds; None: all, the default.
        """
        if kinds is None:
            self._subscriptions.pop(agent, None)
        else:
            self._subscriptions[agent] = frozenset(kinds)

    def publish(self, events: Iterable[Event]) -> list[Event]:
        """Accept events for the next step, dropping duplicates.

        Raises:
            ConfigError: If the facts of an event do not match its kind.
        """
        fresh: list[Event] = []
        for event in events:
            self._check(event)
            if event not in self._published:
                self._published.append(event)
                fresh.append(event)
        return fresh

    def announce(
        self, event: Event, time: int, *, agents: Iterable[int] | None = None, world: str = "", steps: int = 1
    ) -> None:
        """Deliver news from outside the run, from the next step on, regardless of subscriptions and limits.

        Args:
            event: The news.
            time: The next step.
            agents: Mesa `unique_id`s of its readers; None: everyone.
            world: Name of a world to which readers are restricted; empty: any world.
            steps: Number of steps in which it can be read.
        """
        readers = None if agents is None else frozenset(agents)
        self._announced.append(_Announcement(event, time + steps - 1, readers, world))
        self.log.append((time, event))
        for hook in self._hooks.get(event.kind, ()):
            hook(event)

    @property
    def has_announcements(self) -> bool:
        """Whether there is any news from outside the run."""
        return bool(self._announced)

    def announcements_for(self, worlds: Iterable[str], agent: int) -> list[Event]:
        """Return the news from outside the run that reaches an agent, and record that it did.

        Args:
            worlds: Names of the worlds that the agent observes.
            agent: Mesa `unique_id`.
        """
        own = frozenset(worlds)
        events = [news.event for news in self._announced if news.reaches(own, agent)]
        self._record(events, agent)
        return events

    def start_step(self, time: int) -> list[Event]:
        """Deliver the events published in the last step and those scheduled for this one.

        Args:
            time: The step that begins.

        Returns:
            The scheduled events of this step.
        """
        scheduled = [
            replace(event, source=event.source or "schedule") for event in self._schedule if event.time == time
        ]
        arrived = [*scheduled, *self._published]
        self._published = []
        self._time, self._delivered = time, {}
        self._current = [(t, event) for t, event in self._current if time - t < self._steps_alive]
        self._current += [(time, event) for event in arrived if self._steps_alive > 0]
        self._announced = [news for news in self._announced if news.last_step >= time]
        self.log += [(time, event) for event in arrived]
        for event in arrived:
            for hook in self._hooks.get(event.kind, ()):
                hook(event)
        return scheduled

    @property
    def has_news(self) -> bool:
        """Whether there is any news in this step."""
        return bool(self._current or self._announced)

    def heard(self, worlds: Iterable[str], agent: int | None = None) -> list[Event]:
        """Return the events of other worlds that reach an agent, oldest first.

        Args:
            worlds: Names of the worlds that the agent observes.
            agent: Mesa `unique_id`, to apply its subscriptions and relevance; None: any agent.
        """
        if not self.has_news:
            return []
        own = frozenset(worlds)
        by_line: dict[str, Event] = {}
        for _, event in self._current:
            if (self._own_worlds or event.source not in own) and (agent is None or self._matters(agent, event)):
                by_line.setdefault(_line(event), event)
        for news in self._announced:
            if news.reaches(own, agent):
                by_line.setdefault(_line(news.event), news.event)
        lines = list(by_line)[-self._max_events :]
        while sum(min(len(line), self._longest_line) for line in lines) > self._max_characters:
            lines.pop(0)
        return [by_line[line] for line in lines]

    def digest(self, worlds: Iterable[str], agent: int | None = None) -> str:
        """Describe the events of other worlds that reach an agent.

        Args:
            worlds: Names of the worlds that the agent observes.
            agent: Mesa `unique_id`; None: any agent.
        """
        return "\n".join(map(self.line, self.heard(worlds, agent)))

    def line(self, event: Event) -> str:
        """Format an event as a line of a digest."""
        return clip(_line(event), self._longest_line)

    @property
    def _longest_line(self) -> int:
        return self._max_characters // 2

    def deliver(self, worlds: Iterable[str], agent: int) -> list[Event]:
        """Record that the events of `heard` reached an agent, once for each step and event."""
        return self._record(self.heard(worlds, agent), agent)

    def _record(self, events: Iterable[Event], agent: int) -> list[Event]:
        """Record that events reached an agent; return those that are new to it in this step."""
        delivered = self._delivered.setdefault(agent, [])
        fresh = [event for event in events if event not in delivered]
        delivered += fresh
        self.deliveries += [Delivery(self._time, agent, event) for event in fresh]
        return fresh

    def _matters(self, agent: int, event: Event) -> bool:
        kinds = self._subscriptions.get(agent)
        return (kinds is None or event.kind in kinds) and (self._relevance is None or self._relevance(agent, event))

    def _check(self, event: Event) -> None:
        check = self._checks.get(event.kind)
        if check is None:
            return
        try:
            check.validate_python(dict(event.facts))
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
            raise ConfigError(f"world {event.source!r} reported a {event.kind} with wrong facts: {faults}") from None


def _line(event: Event) -> str:
    return f"- {one_line(event.text or wording(event))}"


def wording(event: Event) -> str:
    """Describe an event without a text by its facts."""
    facts: Mapping[str, object] = event.facts
    description = ", ".join(f"{name} {value}" for name, value in facts.items())
    return (
        f"{event.kind.replace('_', ' ')} ({event.source}): {description}"
        if description
        else event.kind.replace("_", " ")
    )
