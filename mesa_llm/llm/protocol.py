"""The interface of language models: one method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, cast, runtime_checkable

from mesa_llm.errors import ConfigError
from mesa_llm.records import Reply, Request


@runtime_checkable
class LLM(Protocol):
    """Replies to requests; transports and the layers around them all have this one method.

    A transport may describe itself by attributes, each of which has a default (see `Capabilities`): `name`,
    `is_immediate`, `is_person`, `needs_options`, `ignores_prompt`, `max_in_flight`, `reads_facts`,
    `takes_adapters`.
    """

    async def reply(self, request: Request) -> Reply:
        """Return the reply to a request.

        Raises:
            TransportError: If there is none; see `mesa_llm.errors` for the kinds.
        """
        ...


@runtime_checkable
class Embedded(Protocol):
    """A transport whose model runs in this process, from a file of weights."""

    def weights(self) -> dict[str, Any]:
        """Return what is known of the weights: `file`, `sha256`, `quantisation`; empty if they are not there."""
        ...


def require_llm(llm: object) -> None:
    """Check that a value of `llm=` other than a name is a transport.

    Raises:
        ConfigError: If it is not.
    """
    if isinstance(llm, LLM) and not isinstance(llm, type):
        return
    hint = ""
    if isinstance(llm, type):
        hint = f"; write {llm.__name__}(…)"
    elif callable(llm):
        hint = "; ScriptedLLM(function) answers by a function"
    raise ConfigError(f"llm= is a name or an object with `async def reply(request)`, got {llm!r:.60}{hint}")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of a transport, read from its attributes and never derived from its name."""

    name: str
    """Model and endpoint; part of every request's key, so that no two models or endpoints share a recorded reply."""

    is_immediate: bool = False
    """Whether it replies without waiting for anything."""

    is_person: bool = False
    """Whether a person replies."""

    needs_options: bool = False
    """Whether it needs a list of values for each argument, in place of free numbers and names."""

    ignores_prompt: bool = False
    """Whether it ignores the messages of a request, so that they need not be composed."""

    max_in_flight: int | None = None
    """Maximum number of requests that it handles at once; None: no limit."""

    takes_images: bool = False
    """Whether its prompts may hold images."""

    reads_facts: bool = False
    """Whether it reads a request's `situation`, the facts in place of the prompt."""

    takes_adapters: bool = True
    """Whether it answers by the adapter (LoRA) that a request names."""

    gives_probabilities: bool = False
    """Whether it is known to return the probabilities of a request's choices; endpoints say so only when asked."""

    @classmethod
    def of(cls, llm: LLM) -> Capabilities:
        """Read the capabilities of a transport from its attributes; without a `name`, it has that of its class."""
        return cls(
            str(getattr(llm, "name", type(llm).__name__)),
            bool(getattr(llm, "is_immediate", False)),
            bool(getattr(llm, "is_person", False)),
            bool(getattr(llm, "needs_options", False)),
            bool(getattr(llm, "ignores_prompt", False)),
            getattr(llm, "max_in_flight", None),
            bool(getattr(llm, "takes_images", False)),
            bool(getattr(llm, "reads_facts", False)),
            bool(getattr(llm, "takes_adapters", True)),
            bool(getattr(llm, "gives_probabilities", False)),
        )

    @property
    def noted(self) -> dict[str, bool]:
        """The flags that are set and that a replay, which does not have the transport, needs to know.

        Whether it takes images is noted with the first image.
        """
        return {flag: True for flag in _RECORDED_FLAGS if getattr(self, flag) and flag != "takes_images"}

    @classmethod
    def of_name(cls, name: str, attributes: object) -> Capabilities:
        """Return the capabilities of a transport from what a run log holds of it.

        Args:
            name: Its name.
            attributes: What `noted` returned, as read from a file; anything but set flags is ignored.
        """
        flags = cast("Mapping[str, Any]", attributes) if isinstance(attributes, Mapping) else {}
        return cls(name, **{flag: True for flag in _RECORDED_FLAGS if flags.get(flag) is True})


_RECORDED_FLAGS = ("is_person", "needs_options", "ignores_prompt", "takes_images", "gives_probabilities")
"""Capabilities that change the requests of a run, and are recorded."""


@runtime_checkable
class Describing(Protocol):
    """A transport that adds to the messages of a request, and can say what."""

    def wire_text(self, request: Request) -> str:
        """Describe what is sent beside the messages, such as the form of the reply in words and as a grammar."""
        ...


@lru_cache(maxsize=256)
def _is_describing(kind: type) -> bool:
    """Check whether transports of a class are `Describing`; cached, as the check of a protocol takes several µs."""
    return issubclass(kind, Describing)


def describing(llm: LLM) -> Describing | None:
    """Return the transport that adds to the messages of a request, for the run log; None if it adds nothing.

    Args:
        llm: The transport, or the outermost layer around it.
    """
    transport: Any = llm
    while (inner := getattr(transport, "inner", None)) is not None:
        transport = inner
    return transport if _is_describing(type(transport)) else None


@runtime_checkable
class Closable(Protocol):
    """A transport that holds connections or a loaded model."""

    async def close(self) -> None:
        """Release the connections or the model."""
        ...


async def close_transport(llm: LLM) -> None:
    """Close a transport, if there is anything to close."""
    if isinstance(llm, Closable):
        await llm.close()
