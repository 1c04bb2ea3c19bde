"""Requests to language models, and their replies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from html import escape
from typing import Any, Literal, NamedTuple

from mesa_llm.canonical import canonical_json, compact_json, flat_json, options_json, schema_json
from mesa_llm.records.frozen import frozen

Role = Literal["system", "user", "assistant", "tool"]


@frozen
class ToolCall:
    """One call of a tool or an action, as a model asked for it; nothing in it is trusted yet."""

    name: str
    """Name of the tool or action."""

    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments by name, unchecked."""

    call_id: str = ""
    """The provider's id for the call; empty if it gave none."""

    def __str__(self) -> str:
        """Write the call as Python would: `pay(coins=3)`."""
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


class _Written:
    """What is written of a message, kept in slots: a dictionary for each message takes more time than it saves."""

    __slots__ = ("_framed", "_wire_json")


@frozen
class ChatMessage(_Written):
    """One message of a prompt; what is written of it is kept, as those of a conversation come again in each prompt."""

    role: Role
    """Role of the speaker."""

    content: str
    """Text of the message."""

    tool_calls: tuple[ToolCall, ...] = ()
    """Tool calls of an assistant's message."""

    call_id: str = ""
    """Id of the call that a tool message answers."""

    def to_wire(self) -> dict[str, Any]:
        """Return the message in the form of OpenAI's chat completions."""
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
        """The message as endpoints read it."""
        written: bytes | None = getattr(self, "_wire_json", None)
        if written is None:
            written = compact_json(self.to_wire())
            object.__setattr__(self, "_wire_json", written)
        return written

    @property
    def framed(self) -> bytes:
        """The message as the key of a request writes it."""
        written: bytes | None = getattr(self, "_framed", None)
        if written is None:
            calls = [canonical_json([call.name, call.arguments, call.call_id]) for call in self.tool_calls]
            text = _framed([self.role, self.content, self.call_id, *calls])
            written = text.encode("utf-8", "surrogatepass")
            object.__setattr__(self, "_framed", written)
        return written

    def _repr_html_(self) -> str:
        """Show the message in Jupyter."""
        return _message_html(self)


class Prompt(tuple[ChatMessage, ...]):
    """The messages of a prompt, which Jupyter shows one below the other."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Show the messages in Jupyter."""
        return "".join(map(_message_html, self))


@dataclass(frozen=True, eq=False)
class ToolSpec:
    """A tool or an action as a language model sees it. Compared and hashed by identity: there is one for each tool."""

    name: str
    """Its name, unique in a prompt."""

    description: str
    """Its description, for the model to read."""

    parameters: Mapping[str, Any]
    """JSON schema of its arguments: an object without further properties."""

    is_action: bool = False
    """True if it writes to the world: it then runs after everyone has decided."""

    @cached_property
    def wire(self) -> dict[str, Any]:
        """The tool in the form of OpenAI's chat completions."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}

    @cached_property
    def digest(self) -> str:
        """Digest of everything that a model sees of the tool."""
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
    """`decide`, `survey`, `memory`, …: asking aside never moves the numbering of decisions."""

    call: int
    """Number of the call for this agent, step and purpose, from 0."""

    @property
    def seed(self) -> int:
        """A 31-bit seed for the sampler of a language model."""
        digest = hashlib.sha256(repr(tuple(self)).encode()).digest()
        return int.from_bytes(digest[:4], "big") >> 1


def _framed(parts: Sequence[str]) -> str:
    """Join parts with their lengths, so that no other parts join to the same."""
    return "".join([f"{len(part)}:{part}" for part in parts])


@lru_cache(maxsize=1024)
def _framed_digests(tools: tuple[ToolSpec, ...]) -> bytes:
    """Join the digests of tools, which many requests offer."""
    return _framed([tool.digest for tool in tools]).encode()


@dataclass(frozen=True)
class Request:
    """One request to a language model."""

    model: str
    """Name of the model: model and endpoint."""

    messages: tuple[ChatMessage, ...]
    """The prompt."""

    salt: Salt
    """Who asks, when, and the number of the request."""

    tools: tuple[ToolSpec, ...] = ()
    """Tools and actions that may be called."""

    schema: Mapping[str, Any] | None = None
    """JSON schema that the text of the reply has to follow; None: free text or a tool call."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """Sampling settings: temperature, max_tokens, …"""

    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """The values that arguments may take now, as in `Observation.options`: endpoints are sent them as enums."""

    adapter: str | None = None
    """LoRA adapter that is asked for in place of the model; `model` then names both."""

    max_actions: int = 1
    """Maximum number of actions in the reply, for people, who choose one after the other; no part of the key."""

    name: str = ""
    """Name of the agent, for people; no part of the key."""

    @cached_property
    def settings_text(self) -> str:
        """The sampling settings, as the key and the run log write them."""
        return flat_json(self.settings)

    @cached_property
    def options_text(self) -> str:
        """The values that arguments may take, as the key and the run log write them."""
        return options_json(self.options) if self.options else "{}"

    @cached_property
    def key(self) -> str:
        """Digest under which the reply is recorded: everything that can change a reply."""
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
    """Calls, tokens, dollars and failures. Adds with `+`."""

    calls: int = 0
    """Replies that came live."""

    replayed: int = 0
    """Replies served from the run log."""

    prompt_tokens: int = 0
    """Tokens read by the model."""

    reply_tokens: int = 0
    """Tokens written by the model."""

    dollars: float = 0.0
    """US dollars, where the price is known."""

    failures: int = 0
    """Decisions that ended as a failure."""

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
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
        )

    def __sub__(self, other: Usage) -> Usage:
        """Return what was used since `other`."""
        return self + Usage(
            -other.calls,
            -other.replayed,
            -other.prompt_tokens,
            -other.reply_tokens,
            -other.dollars,
            -other.failures,
        )


@frozen
class Reply:
    """The reply of a language model."""

    text: str = ""
    """Its text; empty if it only called tools."""

    tool_calls: tuple[ToolCall, ...] = ()
    """Its tool calls."""

    prompt_tokens: int = 0
    """Tokens it read."""

    reply_tokens: int = 0
    """Tokens it wrote."""

    dollars: float | None = None
    """US dollars; None where the price is not known."""

    model: str = ""
    """The model that replied, as the endpoint names it."""

    finish: str = ""
    """Why it stopped, as the endpoint names it; `length` wherever it was cut at `max_tokens`."""

    latency_s: float = 0.0
    """Seconds from request to reply; never part of a digest."""

    attempts: int = 1
    """Requests it took."""

    reasoning: str = ""
    """Reasoning that a reasoning model wrote before its text, if the endpoint shows it."""

    def timed(self, latency_s: float) -> Reply:
        """Return the reply with its latency set."""
        tokens, rest = (self.prompt_tokens, self.reply_tokens), (self.attempts, self.reasoning)
        return Reply(self.text, self.tool_calls, *tokens, self.dollars, self.model, self.finish, latency_s, *rest)


def _message_html(message: ChatMessage) -> str:
    return html_block(message.role, "\n".join(filter(None, (message.content, *map(str, message.tool_calls)))))


def html_block(heading: str, text: str) -> str:
    """Write a text under a heading, with its line breaks, for Jupyter."""
    style = "white-space: pre-wrap; margin: 0 0 0.8em 1em"
    return f"<div><strong>{escape(heading)}</strong><pre style='{style}'>{escape(text)}</pre></div>"
