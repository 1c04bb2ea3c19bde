"""Requests to language models, and their replies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from html import escape
from typing import Any, Literal, NamedTuple

from mesa_llm.canonical import canonical_json, compact_json, flat_json, options_json, schema_json
from mesa_llm.prompts import LIBRARY_PROMPTS, Prompts
from mesa_llm.records.frozen import frozen
from mesa_llm.records.images import Image

Role = Literal["system", "user", "assistant", "tool"]

CALLS = "tool_calls"
"""Name under which `Reply.carried` holds what belongs to the calls of the reply, in their order."""


@frozen
class ToolCall:
    """One call of a tool or action as the model made it, entirely unchecked."""

    name: str
    """Name of the tool or action."""

    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments by name, unchecked."""

    call_id: str = ""
    """The provider's id for the call, or empty."""

    def __str__(self) -> str:
        """Return the call in Python's notation: `pay(coins=3)`."""
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


class _Cache:
    """Slots for a message's encodings. A dictionary per message would cost more time than caching saves."""

    __slots__ = ("_framed", "_wire_json")


@frozen
class ChatMessage(_Cache):
    """One message of a prompt, with cached encodings: a conversation repeats its messages in each prompt."""

    role: Role
    """Role of the speaker."""

    content: str
    """Text of the message."""

    tool_calls: tuple[ToolCall, ...] = ()
    """Tool calls of an assistant's message."""

    call_id: str = ""
    """Id of the call a tool message answers."""

    images: tuple[Image, ...] = ()
    """Images that come after the text."""

    carried: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the reply that this message repeats has to bring back; see `Reply.carried`. Not part of a request's key."""

    def to_wire(self) -> dict[str, Any]:
        """Return the message in the format of OpenAI's chat completions, as JSON values."""
        wire: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.images:
            wire["content"] = [{"type": "text", "text": self.content}, *(image.wire for image in self.images)]
        if self.tool_calls:
            wire["tool_calls"] = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
                }
                for call in self.tool_calls
            ]
        if self.call_id:
            wire["tool_call_id"] = self.call_id
        if self.carried:
            _carry(wire, self.carried)
        return wire

    @property
    def wire_json(self) -> bytes:
        """The message as sent to endpoints: JSON in UTF-8."""
        encoded: bytes | None = getattr(self, "_wire_json", None)
        if encoded is None:
            encoded = compact_json(self.to_wire())
            object.__setattr__(self, "_wire_json", encoded)
        return encoded

    @property
    def framed(self) -> bytes:
        """The message as it enters a request's key."""
        encoded: bytes | None = getattr(self, "_framed", None)
        if encoded is None:
            calls = [canonical_json([call.name, call.arguments, call.call_id]) for call in self.tool_calls]
            images = [image.digest for image in self.images]
            text = _framed([self.role, self.content, self.call_id, *calls, *images])
            encoded = text.encode("utf-8", "surrogatepass")
            object.__setattr__(self, "_framed", encoded)
        return encoded

    def _repr_html_(self) -> str:
        """Show the message in Jupyter."""
        return _message_html(self)


def _carry(wire: dict[str, Any], carried: Mapping[str, Any]) -> None:
    """Add to a message of the assistant, and to its calls, what their endpoint wants back."""
    wire |= {name: value for name, value in carried.items() if name != CALLS}
    for call, own in zip(wire.get(CALLS, ()), carried.get(CALLS, ()), strict=False):
        call |= {name: value for name, value in own.items() if name != "function"}
        call["function"] |= own.get("function", {})


class Prompt(tuple[ChatMessage, ...]):
    """The messages of a prompt, displayed in sequence in Jupyter."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Show the messages in Jupyter."""
        return "".join(map(_message_html, self))


@dataclass(frozen=True, eq=False)
class ToolSpec:
    """A tool or action as a language model sees it. One object each, compared by identity."""

    name: str
    """Its name, unique in a prompt."""

    description: str
    """Description for the model to read."""

    parameters: Mapping[str, Any]
    """JSON schema of its arguments: an object without additional properties."""

    is_action: bool = False
    """True if it writes to the world; it then runs after all agents have decided."""

    @cached_property
    def wire(self) -> dict[str, Any]:
        """The tool in the format of OpenAI's chat completions."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything a model sees of the tool."""
        return hashlib.sha256(canonical_json(self.wire).encode()).hexdigest()


class Salt(NamedTuple):
    """Distinguishes equal prompts: two agents with the same prompt get two samples."""

    run_seed: int
    """Seed of the run."""

    agent: int
    """Mesa `unique_id` of the requesting agent; 0 for the model itself."""

    time: int
    """Step of the request."""

    purpose: str
    """`decide`, `survey`, `memory`, … Each is numbered separately, so side requests renumber no decision."""

    call: int
    """Number of the call for this agent, step and purpose, from 0."""

    @property
    def seed(self) -> int:
        """A 31-bit seed for the sampler of a language model."""
        digest = hashlib.sha256(repr(tuple(self)).encode()).digest()
        return int.from_bytes(digest[:4], "big") >> 1


def _framed(parts: Sequence[str]) -> str:
    """Join parts with their lengths, so different parts never yield the same text."""
    return "".join([f"{len(part)}:{part}" for part in parts])


@frozen
class ChoiceSituation:
    """What an agent decides about and who it is, as values: what a surrogate mind reads in place of a prompt."""

    facts: Any = None
    """Facts of the observation."""

    label: str = ""
    """Label of the observation."""

    persona: str = ""
    """Persona of the agent."""

    traits: Mapping[str, Any] = field(default_factory=dict)
    """Traits of the agent."""


@lru_cache(maxsize=1024)
def _framed_digests(tools: tuple[ToolSpec, ...]) -> bytes:
    """Join the digests of tools. Cached, since many requests offer the same ones."""
    return _framed([tool.digest for tool in tools]).encode()


@dataclass(frozen=True)
class Request:
    """One request to a language model."""

    model: str
    """Name of the model: model and endpoint."""

    messages: tuple[ChatMessage, ...]
    """The prompt."""

    salt: Salt
    """Agent, step and purpose of the request, and its number."""

    tools: tuple[ToolSpec, ...] = ()
    """Tools and actions the model may call."""

    schema: Mapping[str, Any] | None = None
    """JSON schema the reply's text must follow; None for free text or a tool call."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """Sampling settings: temperature, max_tokens, …"""

    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Allowed argument values, as in `Observation.options`; sent to endpoints as enums."""

    adapter: str | None = None
    """LoRA adapter to use instead of the model; `model` then names both."""

    max_actions: int = 1
    """Maximum number of actions in one decision, as in `Observation.max_actions`. Not part of the key."""

    name: str = ""
    """Name of the agent, for people. Not part of the key."""

    prompts: Prompts = field(default=LIBRARY_PROMPTS, repr=False, compare=False)
    """Templates of the model for later additions to the prompt. Not part of the key."""

    choices: tuple[Any, ...] = ()
    """Values of the answer, or names of actions, whose probabilities are wanted with the reply; empty: none."""

    sent: str = field(default="", compare=False)
    """What the transport adds to the messages, such as the form of the reply, for people. Not part of the key."""

    situation: ChoiceSituation | None = field(default=None, repr=False, compare=False)
    """What the agent decides about, as values, for transports that read no prompt. Not part of the key."""

    @property
    def max_calls(self) -> int:
        """Maximum number of actions that one reply may call; 1 where an answer is wanted, or tools only read."""
        return max(1, self.max_actions) if self.schema is None and any(tool.is_action for tool in self.tools) else 1

    @cached_property
    def settings_text(self) -> str:
        """The sampling settings as JSON, for the key and the run log."""
        return flat_json(self.settings)

    @cached_property
    def options_text(self) -> str:
        """The options as JSON, for the key and the run log."""
        return options_json(self.options) if self.options else "{}"

    @cached_property
    def key(self) -> str:
        """SHA-256 of everything that can change the reply; the reply is recorded under it."""
        parts: list[str] = []
        if self.schema is not None:
            parts.append(schema_json(self.schema))
        if self.options:
            parts.append(self.options_text)
        if self.choices:
            parts.append(canonical_json(["choices", *self.choices]))
        origin = _framed([self.model, repr(tuple(self.salt)), self.settings_text]).encode("utf-8", "surrogatepass")
        rest = _framed(parts).encode("utf-8", "surrogatepass") if parts else b""
        messages = [message.framed for message in self.messages]
        return hashlib.sha256(b"".join((origin, _framed_digests(self.tools), rest, *messages))).hexdigest()


@frozen
class Usage:
    """Calls, tokens, US dollars and failures. Add with `+`, subtract with `-`."""

    calls: int = 0
    """Number of replies from the language model."""

    replayed: int = 0
    """Number of replies taken from the run log."""

    prompt_tokens: int = 0
    """Number of tokens read by the model."""

    reply_tokens: int = 0
    """Number of tokens written by the model."""

    dollars: float = 0.0
    """US dollars, where the price is known."""

    failures: int = 0
    """Number of failed decisions."""

    requests: int = 0
    """Number of requests sent, including retries."""

    cached_tokens: int = 0
    """Number of `prompt_tokens` read from the provider's cache."""

    stored_tokens: int = 0
    """Number of `prompt_tokens` written to the provider's cache."""

    @property
    def tokens(self) -> int:
        """Number of tokens read and written."""
        return self.prompt_tokens + self.reply_tokens

    def __add__(self, other: Usage) -> Usage:
        """Add two usages, field by field."""
        return Usage(
            self.calls + other.calls,
            self.replayed + other.replayed,
            self.prompt_tokens + other.prompt_tokens,
            self.reply_tokens + other.reply_tokens,
            self.dollars + other.dollars,
            self.failures + other.failures,
            self.requests + other.requests,
            self.cached_tokens + other.cached_tokens,
            self.stored_tokens + other.stored_tokens,
        )

    def __sub__(self, other: Usage) -> Usage:
        """Return the usage since `other`."""
        return self + Usage(
            -other.calls,
            -other.replayed,
            -other.prompt_tokens,
            -other.reply_tokens,
            -other.dollars,
            -other.failures,
            -other.requests,
            -other.cached_tokens,
            -other.stored_tokens,
        )


@frozen
class Reply:
    """The reply of a language model."""

    text: str = ""
    """Its text; empty if it only called tools."""

    tool_calls: tuple[ToolCall, ...] = ()
    """Its tool calls."""

    prompt_tokens: int = 0
    """Number of tokens that the model read."""

    reply_tokens: int = 0
    """Number of tokens that the model wrote."""

    dollars: float | None = None
    """US dollars; None where the price is not known."""

    model: str = ""
    """The model that replied, as the endpoint names it."""

    finish: str = ""
    """Reason the reply ended, as reported by the endpoint; `length` if it was cut at `max_tokens`."""

    latency_s: float = 0.0
    """Seconds from request to reply; never part of a digest."""

    attempts: int = 1
    """Number of requests sent for it."""

    reasoning: str = ""
    """Reasoning the model wrote before its text, if the endpoint returns it."""

    state: str = ""
    """State of its text: `whole`, `interrupted` by a thought, or ending inside one (`open`); empty before parsing."""

    cached_tokens: int = 0
    """Number of `prompt_tokens` read from the provider's cache."""

    stored_tokens: int = 0
    """Number of `prompt_tokens` written to the provider's cache."""

    probabilities: Mapping[str, float] = field(default_factory=dict)
    """Each of the request's choices, as text → its probability, adding up to 1; empty unless asked for."""

    off_list: float = 0.0
    """Probability that the model gave to anything but the choices, before it was divided among them."""

    carried: Mapping[str, Any] = field(default_factory=dict)
    """Field of the reply's message → its value, for what the endpoint wants back with the next request: signatures of
    thought, reasoning. `True` stands for the text of `reasoning`."""

    def timed(self, latency_s: float) -> Reply:
        """Return the reply with a latency, in seconds."""
        return replace(self, latency_s=latency_s)


class BatchIntent(NamedTuple):
    """A batch that was to be created when the run was killed or its connection cut, so that its id is not known."""

    mark: str
    """What it was marked with, where the provider keeps marks."""

    n_requests: int
    """Number of its requests."""

    since_s: float
    """Time at which it was to be created, in seconds since 1970."""

    known: frozenset[str]
    """Ids of batches that are others."""

    keys: frozenset[str] = frozenset()
    """Ids of its requests."""


def _message_html(message: ChatMessage) -> str:
    return html_block(
        message.role,
        "\n".join(filter(None, (message.content, *map(str, message.tool_calls), *map(str, message.images)))),
    )


def html_block(heading: str, text: str) -> str:
    """Return HTML for Jupyter that shows a text under a heading, keeping its line breaks."""
    style = "white-space: pre-wrap; margin: 0 0 0.8em 1em"
    return f"<div><strong>{escape(heading)}</strong><pre style='{style}'>{escape(text)}</pre></div>"
