"""Observations and decisions of agents, and their outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.records.frozen import frozen
from mesa_llm.records.requests import ToolCall, html_block


@frozen
class Observation:
    """What an agent observes before it decides: everything specific to the task."""

    text: str = ""
    """The text of the prompt."""

    instructions: str = ""
    """Text that is the same for every agent; it comes first in a prompt, so that its prefix is cached."""

    answer: Any = None
    """Type of the answer wanted (anything pydantic can check); None: choose an action."""

    tools: tuple[str, ...] | None = None
    """Names of the tools and actions usable now; None: all that the agent has."""

    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Argument → all values that it may take now: ids and names that the text shows.

    A key is `argument`, for every action that has it, or `action.argument`, for that action alone; the second takes
    precedence. Arguments that may take other values as well are left out.
    """

    max_actions: int = 1
    """Maximum number of actions in one decision."""

    facts: Any = None
    """The same observation as values, for rule twins and outside controllers."""

    cue: str = ""
    """Query that memories are recalled by; empty: the text."""

    label: str = ""
    """Label of the question (the item, phase or lot), for the run log and for the world that receives the answer."""

    world: str = ""
    """Name of the world that wants the answer; empty: the only one that receives answers."""

    news: tuple[str, ...] = ()
    """Lines of news that the text holds, so that none is shown twice."""

    def _repr_html_(self) -> str:
        """Show the text and the options in Jupyter."""
        options = "\n".join(f"{name}: {', '.join(map(str, values))}" for name, values in self.options.items())
        return html_block("sees", self.text) + (html_block("options", options) if options else "")


class LazyObservation(Observation):
    """An observation whose text is composed when it is first read, since rule twins read only the facts."""

    __slots__ = ()

    @property
    def text(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The text of the prompt."""
        text: str | Callable[[], str] = _TEXT.__get__(self)
        if not isinstance(text, str):
            text = text()
            _TEXT.__set__(self, text)
        return text

    @text.setter
    def text(self, text: str | Callable[[], str]) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        _TEXT.__set__(self, text)


_TEXT: Any = vars(Observation)["text"]
"""The slot of an observation that holds its text."""


def options_for(action: str, options: Mapping[str, tuple[Any, ...]]) -> Mapping[str, tuple[Any, ...]]:
    """Return the options of one action.

    Args:
        action: Name of the action or tool.
        options: As in `Observation.options`.

    Returns:
        Argument → its values; arguments of other actions may be among them.
    """
    if "." not in "".join(options):
        return options
    own = f"{action}."
    shared = {name: values for name, values in options.items() if "." not in name}
    return shared | {name[len(own) :]: values for name, values in options.items() if name.startswith(own)}


@frozen
class Decision:
    """An agent's decision: actions to run, or a typed answer."""

    agent: int
    """Mesa `unique_id` of the agent that decided."""

    actions: tuple[ToolCall, ...] = ()
    """Actions to run, in order."""

    answer: Any = None
    """The validated answer, where the observation asked for one."""

    text: str = ""
    """What the model wrote besides actions or answer, such as its reasons."""

    by: str = ""
    """Who decided: a model string, `rule`, `random`, `human`, or `outside`."""

    keys: tuple[str, ...] = ()
    """Keys of the requests whose replies led to it, in order."""

    label: str = ""
    """Label of the observation it was made on."""

    is_null: bool = False
    """Whether the answer is `null`, which its type allows; otherwise an `answer` of None means that there is none."""

    reading: str = ""
    """How the reply was read: its notation, and each repair that was made; empty if it was made without a reply."""

    @property
    def has_answer(self) -> bool:
        """Whether it holds a typed answer."""
        return self.answer is not None or self.is_null

    def labelled(self, label: str) -> Decision:
        """Return the decision with the label of its observation, if that has one."""
        if label in ("", self.label):
            return self
        origin = (self.text, self.by, self.keys)
        return Decision(self.agent, self.actions, self.answer, *origin, label, self.is_null, self.reading)

    def __str__(self) -> str:
        """Return the decision as text: its actions as calls, or its answer."""
        if self.has_answer:
            return f"answer {self.answer!r}"
        return ", ".join(map(str, self.actions)) or "nothing"

    def __repr__(self) -> str:
        """Return the agent, its decision, and who decided."""
        label = f" on {self.label!r}" if self.label else ""
        return f"<Decision of agent {self.agent}{label} by {self.by or 'nobody'}: {self}>"

    def _repr_html_(self) -> str:
        """Show the decision and its reasons in Jupyter."""
        label = f", {self.label}" if self.label else ""
        reasons = html_block("reasoning", self.text) if self.text else ""
        return html_block(f"agent {self.agent}{label}, by {self.by}", str(self)) + reasons


@frozen
class Failure:
    """A decision that failed, and why; nothing is made up in its place."""

    agent: int
    """Mesa `unique_id` of the agent that should have decided."""

    reason: str
    """Description of the failure."""

    kind: str
    """Name of the error: `RateLimited`, `ServerError`, `BadReply`, `Refused`, `Unparsed`, …"""

    by: str = ""
    """Who should have decided, as in `Decision.by`."""

    keys: tuple[str, ...] = ()
    """Keys of the requests that were made, in order."""

    label: str = ""
    """Label of the observation it should have been made on."""

    reading: str = ""
    """How far the last reply was read, as in `Decision.reading`."""

    def labelled(self, label: str) -> Failure:
        """Return the failure with the label of its observation, if that has one."""
        if label in ("", self.label):
            return self
        return Failure(self.agent, self.reason, self.kind, self.by, self.keys, label, self.reading)

    def _repr_html_(self) -> str:
        """Show the reason in Jupyter."""
        label = f", {self.label}" if self.label else ""
        return html_block(f"agent {self.agent}{label}, by {self.by}: failed", f"{self.kind}: {self.reason}")


@dataclass(frozen=True, slots=True, init=False)
class ActionResult:
    """What an action returns: a text for the agent, and the facts in it for everyone else.

    Reports and scores read the facts, so that the text can be worded freely, in any language.
    """

    text: str
    """Text that the agent reads and remembers."""

    facts: Mapping[str, Any]
    """What the action did, as values that JSON can hold: ids, amounts, prices."""

    def __init__(self, text: str, /, **facts: Any) -> None:
        """Join a text with its facts.

        Args:
            text: Text that the agent reads.
            **facts: Facts by name: numbers, texts, None, and lists and dictionaries of them.

        Raises:
            ConfigError: If JSON cannot hold a fact.
        """
        object.__setattr__(self, "text", text)
        if not _SCALARS.issuperset(map(type, facts.values())):  # nearly all are numbers and short texts
            facts = {name: _json_value(value, name) for name, value in facts.items()}
        object.__setattr__(self, "facts", facts)

    def __str__(self) -> str:
        """Return the text."""
        return self.text


_SCALARS = frozenset({bool, int, float, str, type(None)})


def _json_value(value: Any, name: str) -> Any:
    """Convert a fact to what JSON reads back: tuples and arrays to lists, members of enums to their values.

    Raises:
        ConfigError: If JSON cannot hold it.
    """
    try:
        return json.loads(json.dumps(value, default=_plain_value))
    except (TypeError, ValueError):
        raise ConfigError(
            f"the fact {name!r} of an action is {value!r:.60}, which JSON cannot hold; give a number, a text, or a "
            "list of them"
        ) from None


def _plain_value(value: Any) -> Any:
    """Return the value of a member of an enum, and the numbers of NumPy as Python's.

    Raises:
        TypeError: If it is neither.
    """
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, type) or not hasattr(value, "tolist"):
        raise TypeError
    return value.tolist()


@frozen
class Outcome:
    """The outcome of one action, or of one typed answer."""

    agent: int
    """Mesa `unique_id` of the agent that acted."""

    action: str
    """Name of the action; `answer` for a typed answer."""

    arguments: Mapping[str, Any]
    """Its arguments, as decided; for an answer its JSON value, as `answer`."""

    ok: bool
    """False if it was refused."""

    result: Any = None
    """What the world returned; the reason if it refused."""

    label: str = ""
    """Label of the observation it was decided on."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """What it did, as values: see `ActionResult`; empty if it was refused."""


@frozen
class Event:
    """An event in a world that other worlds may react to."""

    source: str
    """Name of the world it happened in, or `schedule`."""

    kind: str
    """`viral_post`, `price_move`, `metric_change`, `policy_change`, …"""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """The event as values."""

    text: str = ""
    """The event as text."""

    time: int = 0
    """Step in which it happened."""


@frozen
class Message:
    """A message from one agent to others, who read it in the next step."""

    sender: int
    """Mesa `unique_id` of the sender."""

    recipients: tuple[int, ...]
    """Mesa `unique_id` of each reader."""

    text: str
    """Text of the message."""

    time: int = 0
    """Step in which it was sent."""
