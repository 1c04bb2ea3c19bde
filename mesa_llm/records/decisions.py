"""Observations and decisions of agents, and their outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mesa_llm.errors import ConfigError
from mesa_llm.records.frozen import frozen
from mesa_llm.records.images import Image
from mesa_llm.records.requests import ToolCall, html_block


class Speaker(Protocol):
    """Reads a reply as what somebody says."""

    def read(self, decision: Decision, prompt: str) -> Decision:
        """Return a decision with its line as it is said.

        Args:
            decision: The decision, as it was read from a reply.
            prompt: All that the speaker has read.

        Raises:
            ParseError: If the line cannot be said; `partial` is the decision to take if the next one cannot either.
        """
        ...


@frozen
class Observation:
    """What an agent observes before deciding: everything specific to the task."""

    text: str = ""
    """The text of the prompt."""

    instructions: str = ""
    """Text shared by all agents. It comes first in a prompt, so its prefix is cached."""

    answer: Any = None
    """Type of the expected answer (any type pydantic can validate); None to choose an action."""

    tools: tuple[str, ...] | None = None
    """Names of the tools and actions usable now; None for all of the agent's."""

    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Argument → all its allowed values now: ids and names that the text shows.

    A key is `argument`, for every action that has it, or `action.argument`, for that action only. The second takes
    precedence. Arguments that accept other values too are omitted.
    """

    option_order: Literal["own", "drawn"] = "own"
    """Order in which language models read the options and the lists of the text: as they stand, or, where positions
    mean nothing, drawn for each agent and step, so that a habit of taking the first one decides nothing."""

    max_actions: int = 1
    """Maximum number of actions in one decision."""

    facts: Any = None
    """The same observation as values, for rule twins and outside controllers."""

    cue: str = ""
    """Query for recalling memories; empty for the text."""

    label: str = ""
    """Label of the question (the item, phase or lot), for the run log and for the world that receives the answer."""

    world: str = ""
    """Name of the world that expects the answer; empty for the only one that receives answers."""

    persona_place: Literal["last", "first", "system"] = "last"
    """Where the prompt says who the agent is: after the text; before it, if it asks the agent about itself, as a
    questionnaire does; or in the system message, as published prompts do."""

    news: tuple[str, ...] = ()
    """Lines of news already in the text, so none is shown twice."""

    limits: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """`action.argument` → smallest and largest number that the world would accept now; None: no bound.

    They bound the offer to those who are asked. Rule twins may try other numbers, which the world refuses.
    """

    images: tuple[Image, ...] = ()
    """Images for language models that take them; the text must do for all others."""

    remembered: str | Callable[[Outcome], str] = ""
    """The sentence in which the agent remembers its typed answer, such as `"You said you would take {answer:ton}."`.

    Fields are as in `@action(did=…)`: `{answer}`, or a field of an answer that has several, `{result}` and
    `{facts[…]}`; or a function of the `Outcome`. Empty: a general sentence ("You answered 3.").
    """

    closing: str = ""
    """Text that ends the prompt, after who the agent is: the question, where it should be read last."""

    speech: Speaker | None = None
    """What a language model may say in answer, as `mesa_llm.agents.talk.Speech`; None: anything."""

    def _repr_html_(self) -> str:
        """Show the text and the options in Jupyter."""
        options = "\n".join(f"{name}: {', '.join(map(str, values))}" for name, values in self.options.items())
        return html_block("sees", self.text) + (html_block("options", options) if options else "")


class LazyObservation(Observation):
    """An observation that builds its text on first read, since rule twins read only the facts.

    Its facts, too, may be a function that returns them.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self, text: str | Callable[[], str] = "", **fields: Any) -> None: ...

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

    @property
    def facts(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The same observation as values."""
        facts = _FACTS.__get__(self)
        if callable(facts):
            facts = facts()
            _FACTS.__set__(self, facts)
        return facts

    @facts.setter
    def facts(self, facts: Any) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        _FACTS.__set__(self, facts)


_TEXT: Any = vars(Observation)["text"]
"""The slot that stores an observation's text."""

_FACTS: Any = vars(Observation)["facts"]
"""The slot that stores its facts."""


def options_for(action: str, options: Mapping[str, tuple[Any, ...]]) -> Mapping[str, tuple[Any, ...]]:
    """Return the options of one action.

    Args:
        action: Name of the action or tool.
        options: As in `Observation.options`.

    Returns:
        Argument → its values. May include arguments of other actions.
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
    """The validated answer, if the observation asked for one."""

    text: str = ""
    """What the model wrote besides actions or answer, such as its reasons."""

    by: str = ""
    """Decider: a model string, `rule`, `random`, `human`, `outside`, or `forced` (nobody was asked, as only
    one decision was possible)."""

    keys: tuple[str, ...] = ()
    """Keys of the requests that led to it, in order."""

    label: str = ""
    """Label of the observation it was based on."""

    is_null: bool = False
    """Whether the answer is `null`, which its type allows. Otherwise, an `answer` of None means there is none."""

    reading: str = ""
    """How the reply was parsed: its notation and each repair; empty without a reply."""

    probabilities: Mapping[str, float] = field(default_factory=dict)
    """Choice → its probability, under `scoring="probabilities"`; empty: all of it is on what was decided."""

    @property
    def has_answer(self) -> bool:
        """Whether it has a typed answer."""
        return self.answer is not None or self.is_null

    def labelled(self, label: str) -> Decision:
        """Return the decision with its observation's label, if it has one."""
        return self if label in ("", self.label) else replace(self, label=label)

    def __str__(self) -> str:
        """Return the decision as text: its actions as calls, or its answer."""
        if self.has_answer:
            return f"answer {self.answer!r}"
        return ", ".join(map(str, self.actions)) or "nothing"

    def __repr__(self) -> str:
        """Return the agent, its decision and the decider."""
        label = f" on {self.label!r}" if self.label else ""
        return f"<Decision of agent {self.agent}{label} by {self.by or 'nobody'}: {self}>"

    def _repr_html_(self) -> str:
        """Show the decision and its reasons in Jupyter."""
        label = f", {self.label}" if self.label else ""
        reasons = html_block("reasoning", self.text) if self.text else ""
        return html_block(f"agent {self.agent}{label}, by {self.by}", str(self)) + reasons


@frozen
class Failure:
    """A failed decision and its reason. Nothing is made up to replace it."""

    agent: int
    """Mesa `unique_id` of the agent that should have decided."""

    reason: str
    """Description of the failure."""

    kind: str
    """Name of the error: `RateLimited`, `ServerError`, `BadReply`, `Refused`, `Unparsed`, …"""

    by: str = ""
    """Decider that failed, as in `Decision.by`."""

    keys: tuple[str, ...] = ()
    """Keys of the requests sent, in order."""

    label: str = ""
    """Label of the observation it should have been based on."""

    reading: str = ""
    """How far the last reply was parsed, as in `Decision.reading`."""

    def labelled(self, label: str) -> Failure:
        """Return the failure with its observation's label, if it has one."""
        if label in ("", self.label):
            return self
        return Failure(self.agent, self.reason, self.kind, self.by, self.keys, label, self.reading)

    def _repr_html_(self) -> str:
        """Show the reason in Jupyter."""
        label = f", {self.label}" if self.label else ""
        return html_block(f"agent {self.agent}{label}, by {self.by}: failed", f"{self.kind}: {self.reason}")


@dataclass(frozen=True, slots=True, init=False)
class ActionResult:
    """The return value of an action: a text for the agent, and its facts for everything else.

    Reports and scores read the facts, so the text can be worded freely, in any language.
    """

    text: str
    """Text the agent reads and remembers."""

    facts: Mapping[str, Any]
    """What the action did, as JSON values: ids, amounts, prices."""

    def __init__(self, text: str, /, **facts: Any) -> None:
        """Combine a text with its facts.

        Args:
            text: Text the agent reads.
            **facts: Facts by name: numbers, texts, None, and lists or dictionaries of them.

        Raises:
            ConfigError: If JSON cannot represent a fact.
        """
        object.__setattr__(self, "text", text)
        if not _SCALARS.issuperset(map(type, facts.values())):  # nearly all facts are numbers and short texts
            facts = {name: _json_value(value, name) for name, value in facts.items()}
        object.__setattr__(self, "facts", facts)

    def __str__(self) -> str:
        """Return the text."""
        return self.text


_SCALARS = frozenset({bool, int, float, str, type(None)})


def _json_value(value: Any, name: str) -> Any:
    """Convert a fact to the value JSON reads back: tuples and arrays to lists, enum members to their values.

    Raises:
        ConfigError: If JSON cannot represent it.
    """
    if type(value) is tuple and _SCALARS.issuperset(map(type, value)):  # coordinates
        return list(value)
    try:
        return json.loads(json.dumps(value, default=_plain_value))
    except (TypeError, ValueError):
        raise ConfigError(
            f"the fact {name!r} of an action is {value!r:.60}, which JSON cannot represent; use a number, a text, or a "
            "list of them"
        ) from None


def _plain_value(value: Any) -> Any:
    """Return the value of an enum member, and NumPy numbers as Python's.

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
    """The outcome of one action or typed answer."""

    agent: int
    """Mesa `unique_id` of the agent that acted."""

    action: str
    """Name of the action; `answer` for a typed answer."""

    arguments: Mapping[str, Any]
    """Its arguments, as decided. For an answer, its JSON value as `answer`."""

    ok: bool
    """False if it was refused."""

    result: Any = None
    """Return value of the world, or the reason if it refused."""

    label: str = ""
    """Label of the observation it was based on."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """What it did, as values (see `ActionResult`); empty if refused."""


@frozen
class Event:
    """An event in a world that other worlds may react to."""

    source: str
    """Name of the world it happened in, or `schedule`."""

    kind: str
    """`viral_post`, `price_move`, `metric_change`, `policy_change`, …"""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """The event's values."""

    text: str = ""
    """The event in words."""

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
