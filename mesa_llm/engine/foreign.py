"""Calls to foreign code while an agent decides: recorded, replayed, counted and paid like a request.

Whatever an agent awaits besides its language model (an agent of another framework, a retriever, a web service) is kept
in the run log as a request to a model of that name, whose reply is the result as JSON.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from mesa_llm.canonical import canonical_json
from mesa_llm.engine.engine import Engine
from mesa_llm.errors import BadReply, ConfigError, TransportError
from mesa_llm.records import ChatMessage, Reply, Request, Usage

MAX_RESULT_CHARACTERS = 200_000
"""Maximum number of characters of a result, as JSON."""

NO_USAGE = Usage()


@dataclass(frozen=True)
class ForeignCall:
    """A call of foreign code by an agent; see `LLMMixin.recorded`."""

    name: str
    """Name of what is called: the model's name in the run log, and the purpose in `usage_by_purpose`."""

    call: Callable[..., Any] | Awaitable[Any]
    """Function, which may be async, or an awaitable."""

    arguments: tuple[Any, ...] = ()
    """Arguments of the function, as plain values; part of the key of the recorded result."""

    result: Any = Any
    """Type of the result."""

    usage: Callable[[Any], Usage] | None = None
    """Returns what a result has cost; None: one call."""

    _adapter: TypeAdapter[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the name and the type.

        Raises:
            ConfigError: If the name is not one word, or the result is of a type that JSON cannot hold.
        """
        if not self.name.isidentifier():
            raise ConfigError(f"recorded({self.name!r}, …): name what is called in one word, such as 'retriever'")
        if self.arguments and not callable(self.call):
            raise ConfigError(
                f"recorded({self.name!r}, …): an awaitable takes no arguments; give the function and them"
            )
        object.__setattr__(self, "_adapter", _adapter_of(self.result))

    def request(self, engine: Engine, agent_id: int, step: int) -> Request:
        """Return the request under whose key the result is recorded.

        Args:
            engine: Engine of the model, which numbers the request.
            agent_id: Mesa `unique_id` of the agent that decides.
            step: The step.

        Raises:
            ConfigError: If an argument is not a plain value.
        """
        try:
            text = canonical_json(list(self.arguments))
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"recorded({self.name!r}, …) takes arguments that JSON can hold, as the result is found by them: "
                f"{error}; give plain values, or bind the object: functools.partial(function, agent)"
            ) from error
        return Request(self.name, (ChatMessage("user", text),), engine.salt(agent_id, step, self.name))

    async def reply(self, request: Request) -> Reply:
        """Call it, and return its result as a reply.

        Raises:
            ConfigError: If the result is not of the declared type, or JSON cannot hold it.
        """
        returned = self.call(*self.arguments) if callable(self.call) else self.call
        value = await returned if inspect.isawaitable(returned) else returned
        try:
            text = self._adapter.dump_json(self._adapter.validate_python(value)).decode()
        except (ValidationError, PydanticSerializationError) as error:
            raise ConfigError(
                f"recorded({self.name!r}, …) returned {value!r:.80}, which cannot be recorded as "
                f"{getattr(self.result, '__name__', self.result)}: {str(error).splitlines()[0]}; return plain values, "
                "or give result= the type"
            ) from error
        if len(text) > MAX_RESULT_CHARACTERS:
            raise ConfigError(
                f"recorded({self.name!r}, …) returned {len(text):,} characters of JSON; return what is needed, at most "
                f"{MAX_RESULT_CHARACTERS:,}"
            )
        used = NO_USAGE if self.usage is None else self.usage(value)
        return Reply(
            text,
            prompt_tokens=used.prompt_tokens,
            reply_tokens=used.reply_tokens,
            dollars=used.dollars,
            attempts=max(used.requests, 1),
        )

    def value(self, reply: Reply) -> Any:
        """Return the result in a reply.

        Raises:
            BadReply: If a recorded result is not of the declared type.
        """
        try:
            return self._adapter.validate_json(reply.text)
        except ValidationError as error:
            raise BadReply(f"the result of {self.name!r} cannot be read: {str(error).splitlines()[0]}") from error

    def discard(self) -> None:
        """Close a coroutine that nobody has awaited, as its result was recorded."""
        if inspect.iscoroutine(self.call):
            self.call.close()


async def recorded(engine: Engine, agent_id: int, step: int, call: ForeignCall) -> Any:
    """Return the result of a foreign call: the recorded one, or else a new one, which is recorded and paid.

    Args:
        engine: Engine of the model.
        agent_id: Mesa `unique_id` of the agent that decides.
        step: The step.
        call: The call.

    Raises:
        TransportError: If it raised, now or when it was recorded.
        BudgetExceeded: If the budget does not allow it.
        ReplayError: In a replay, if the result is not recorded.
    """
    try:
        reply = await engine.paid(call).reply(call.request(engine, agent_id, step))
    except TransportError as error:
        raise TransportError(f"{call.name}: {error}") from error
    finally:
        call.discard()
    return call.value(reply)


@lru_cache(maxsize=256)
def _adapter_of(kind: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(kind)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise ConfigError(f"result={kind!r} is no type that JSON can hold: {str(error).splitlines()[0]}") from error
