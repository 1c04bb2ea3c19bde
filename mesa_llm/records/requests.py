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

Role = Literal["system", "user", "assistant", "tool"]


@frozen
class ToolCall:
    """One call of a tool or an action, as a model made it; nothing in it has been checked."""

    name: str
    """Name of the tool or action."""

    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments by name, unchecked."""

    call_id: str = ""
    """The provider's id for the call; empty if it gave none."""

    def __str__(self) -> str:
        """Return the call in Python's notation: `pay(coins=3)`."""
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


class _Cache:
    """Slots for what a message is encoded to; a dictionary per message would take more time than caching saves."""

    __slots__ = ("_framed", "_wire_json")


@frozen
class ChatMessage(_Cache):
    """One message of a prompt; its encodings are cached, as a conversation's messages recur in each of its prompts."""

    role: Role
    """Role of the speaker."""

    content: str
    """Text of the message."""

    tool_calls: tuple[ToolCall, ...] = ()
    """Tool calls of an assistant's message."""

    call_id: str = ""
    """Id of the call that a tool message answers."""

    def to_wire(self) -> dict[str, Any]:
        """Return the message in the form of OpenAI's chat completions, as JSON values."""
        wire: dict[str, Any] = {"role": self.role, "content": self.content}
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
        return wire

    @property
    def wire_json(self) -> bytes:
        """The message as it is sent to endpoints: JSON in UTF-8."""
        encoded: bytes | None = getattr(self, "_wire_json", None)
        if encoded is None:
            encoded = compact_json(self.to_wire())
            object.__setattr__(self, "_wire_json", encoded)
        return encoded

    @property
    def framed(self) -> bytes:
        """The message as it enters the key of a request."""
        encoded: bytes | None = getattr(self, "_framed", None)
        if encoded is None:
            calls = [canonical_json([call.name, call.arguments, call.call_id]) for call in self.tool_calls]
            text = _framed([self.role, self.content, self.call_id, *calls])
            encoded = text.encode("utf-8", "surrogatepass")
            object.__setattr__(self, "_framed", encoded)
        return encoded

    def _repr_html_(self) -> str:
        """Show the message in Jupyter."""
        return _message_html(self)


class Prompt(tuple[ChatMessage, ...]):
    """The messages of a prompt, which Jupyter shows one below another."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Show the messages in Jupyter."""
        return "".join(map(_message_html, self))


@dataclass(frozen=True, eq=False)
class ToolSpec:
    """A tool or an action as a language model sees it; there is one object for each, compared by identity."""

    name: str
    """Its name, unique in a prompt."""

    description: str
    """Its description, for the model to read."""

    parameters: Mapping[str, Any]
    """JSON schema of its arguments: an object that allows no other properties."""

    is_action: bool = False
    """True if it writes to the world: it then runs after everyone has decided."""

    @cached_property
    def wire(self) -> dict[str, Any]:
        """The tool in the form of OpenAI's chat completions."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that a model sees of the tool."""
        return hashlib.sha256(canonical_json(self.wire).encode()).hexdigest()


class Salt(NamedTuple):
    """Distinguishes equal prompts: two agents with the same prompt are two samples."""

    run_seed: int
    """Seed of the run."""

    agent: int
    """Mesa `unique_id` of the agent that is asked; 0 for the model itself."""

    time: int
    """Step in which it is asked."""

    purpose: str
    """`decide`, `survey`, `memory`, …; each is numbered by itself, so that asking aside renumbers no decision."""

    call: int
    """Number of the call for this agent, step and purpose, from 0."""

    @property
    def seed(self) -> int:
        """A 31-bit seed for the sampler of a language model."""
        digest = hashlib.sha256(repr(tuple(self)).encode()).digest()
        return int.from_bytes(digest[:4], "big") >> 1


def _framed(parts: Sequence[str]) -> str:
    """Join parts with their lengths, so that different parts never give the same text."""
    return "".join([f"{len(part)}:{part}" for part in parts])


@lru_cache(maxsize=1024)
def _framed_digests(tools: tuple[ToolSpec, ...]) -> bytes:
    """Join the digests of tools; cached, as many requests offer the same ones."""
    return _framed([tool.digest for tool in tools]).encode()


@dataclass(frozen=True)
class Request:
    """One request to a language model."""

    model: str
    """Name of the model: model and endpoint."""

    messages: tuple[ChatMessage, ...]
    """The prompt."""

    salt: Salt
    """For whom, when and for what it is made, and its number."""

    tools: tuple[ToolSpec, ...] = ()
    """Tools and actions that may be called."""

    schema: Mapping[str, Any] | None = None
    """JSON schema that the text of the reply has to follow; None: free text or a tool call."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """Sampling settings: temperature, max_tokens, …"""

    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Values that arguments may take now, as in `Observation.options`; they are sent to endpoints as enums."""

    adapter: str | None = None
    """LoRA adapter that is asked in place of the model; `model` then names both."""

    max_actions: int = 1
    """Maximum number of actions that a person may choose, one after another; not part of the key."""

    name: str = ""
    """Name of the agent, for people; no part of the key."""

    prompts: Prompts = field(default=LIBRARY_PROMPTS, repr=False, compare=False)
    """Templates of the model, for what has to be added to the prompt on the way; no part of the key."""

    @cached_property
    def settings_text(self) -> str:
        """The sampling settings as JSON, as they enter the key and the run log."""
        return flat_json(self.settings)

    @cached_property
    def options_text(self) -> str:
        """The options as JSON, as they enter the key and the run log."""
        return options_json(self.options) if self.options else "{}"

    @cached_property
    def key(self) -> str:
        """SHA-256 of everything that can change the reply, which is recorded under it."""
        parts: list[str] = []
        if self.schema is not None:
            parts.append(schema_json(self.schema))
        if self.options:
            parts.append(self.options_text)
        origin = _framed([self.model, repr(tuple(self.salt)), self.settings_text]).encode("utf-8", "surrogatepass")
        rest = _framed(parts).encode("utf-8", "surrogatepass")
        messages = [message.framed for message in self.messages]
        return hashlib.sha256(b"".join((origin, _framed_digests(self.tools), rest, *messages))).hexdigest()


@frozen
class Usage:
    """Calls, tokens, US dollars and failures, which add with `+` and subtract with `-`."""

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
    """Number of decisions that failed."""

    requests: int = 0
    """Number of requests sent, those that failed and were sent again among them."""

    cached_tokens: int = 0
    """Number of those `prompt_tokens` that came from the provider's cache."""

    stored_tokens: int = 0
    """Number of those `prompt_tokens` that the provider stored in its cache."""

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
    """Why it ended, in the endpoint's word; `length` wherever it was cut at `max_tokens`."""

    latency_s: float = 0.0
    """Seconds from request to reply; never part of a digest."""

    attempts: int = 1
    """Number of requests that it took."""

    reasoning: str = ""
    """Reasoning that a model wrote before its text, if the endpoint returns it."""

    state: str = ""
    """Whether its text is `whole`, `interrupted` by a thought, or ends within one (`open`); empty: not read yet."""

    cached_tokens: int = 0
    """Number of those `prompt_tokens` that came from the provider's cache."""

    stored_tokens: int = 0
    """Number of those `prompt_tokens` that the provider stored in its cache."""

    def timed(self, latency_s: float) -> Reply:
        """Return the reply with a latency, in seconds."""
        return replace(self, latency_s=latency_s)


def _message_html(message: ChatMessage) -> str:
    return html_block(message.role, "\n".join(filter(None, (message.content, *map(str, message.tool_calls)))))


def html_block(heading: str, text: str) -> str:
    """Return HTML that shows a text under a heading, with its line breaks, for Jupyter."""
    style = "white-space: pre-wrap; margin: 0 0 0.8em 1em"
    return f"<div><strong>{escape(heading)}</strong><pre style='{style}'>{escape(text)}</pre></div>"
