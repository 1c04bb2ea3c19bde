"""What a provider of batches does, what a run writes down of them, and what goes between the two."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from mesa_llm.errors import ConfigError, MesaLLMError, ServerError
from mesa_llm.llm.protocol import LLM
from mesa_llm.records import BatchIntent, Usage

if TYPE_CHECKING:
    from mesa_llm.llm.openai.connection import Response


class BatchState(NamedTuple):
    """State of a batch at its provider."""

    n_done: int
    """Number of requests that are answered, or have failed."""

    n_requests: int
    """Number of requests; 0 while the provider has not counted them."""

    is_over: bool
    """Whether no more of them will be answered."""

    document: Mapping[str, Any]
    """What the provider says of the batch."""

    n_lines: int | None = None
    """Number of requests that it has results of, once it is over; None: of all."""


class MaybeCreated(ConfigError):
    """It is not known whether a batch was created."""


class BatchGone(ConfigError):
    """A provider does not have a batch, or the results of one."""


class BatchResults(Protocol):
    """What became of the requests of a batch, as far as the provider shows it."""

    @property
    def of(self) -> Mapping[str, Response | MesaLLMError]:
        """Key of a request → its response, or the error for which it has none."""
        ...

    def are_whole(self, keys: Collection[str], state: BatchState) -> bool:
        """Check whether none is missing of those that the provider counts, among the requests with these keys."""
        ...

    def oddities(self, keys: Collection[str], state: BatchState) -> str:
        """Describe results that nobody has asked for; empty if there are none."""
        ...


class BatchForm(Protocol):
    """A provider's form of batches, at one address, with one key."""

    max_requests: int
    """Maximum number of requests in a batch."""

    max_bytes: int
    """Maximum size of a batch, in bytes."""

    in_progress: set[str]
    """Ids of the batches that are waited for in this process."""

    @property
    def base(self) -> str:
        """Base URL, without secrets."""
        ...

    def line(self, key: str, body: bytes) -> bytes:
        """Write a request as part of a batch.

        Args:
            key: Id of the request within the batch.
            body: Its body as it would be sent alone.
        """
        ...

    async def create(self, lines: Sequence[bytes], mark: str) -> str:
        """Create a batch of such requests, and return its id.

        Args:
            lines: The requests.
            mark: What `find` finds the batch by, where the provider keeps it.

        Raises:
            MaybeCreated: If it is not known whether it was created.
            ConfigError: If there are no batches at this address, or the key is refused.
            TransportError: If the provider is in trouble.
        """
        ...

    async def find(self, intent: BatchIntent) -> str | None:
        """Return the id of a batch, if it was created.

        Args:
            intent: What is known of it.

        Raises:
            MesaLLMError: If the provider cannot be reached, or refuses to say.
        """
        ...

    async def look(self, batch_id: str) -> BatchState:
        """Return the state of a batch.

        Raises:
            BatchGone: If the provider does not have it.
            MesaLLMError: If the provider cannot be reached, or refuses to say.
        """
        ...

    async def results(self, batch_id: str, state: BatchState) -> BatchResults | MesaLLMError:
        """Fetch what became of each request of a batch that is over; or return the error of the whole batch.

        Raises:
            BatchGone: If the provider has deleted it.
            MesaLLMError: If the provider cannot be reached.
        """
        ...


def lost(text: str) -> ServerError:
    """Return the error of a request that a batch did not carry out; it costs nothing, and may be sent again."""
    error = ServerError(text)
    error.usage = Usage(requests=1)
    return error


class BatchProgress(NamedTuple):
    """How far a batch is."""

    batch_id: str
    """Id that the provider gave it."""

    n_done: int
    """Number of its requests that are answered, or have failed."""

    n_requests: int
    """Number of its requests."""

    def __str__(self) -> str:
        """Write it as one line."""
        return f"batch {self.batch_id}: {self.n_done} of {self.n_requests} done"


class BatchLedger(Protocol):
    """Keeps the batches of a run that are not collected yet, so that a stopped run collects them when it is resumed."""

    is_kept: bool
    """Whether it outlives this process."""

    @property
    def may_ask_again(self) -> bool:
        """Whether requests may be sent again that may have been billed."""
        ...

    def batch_of(self, key: str, base: str) -> str | None:
        """Return the last batch at an address that holds a request and is not collected yet.

        Args:
            key: Key of the request.
            base: Base URL, without secrets.
        """
        ...

    def require_claimed(self) -> None:
        """Check that the batches of an earlier session hold requests that this one makes.

        Raises:
            ConfigError: If one does not: new requests would be paid for besides it.
        """
        ...

    def intent_of(self, key: str, base: str) -> BatchIntent | None:
        """Return the intent of the last batch at an address that holds a request, if its id is not known.

        Args:
            key: Key of the request.
            base: Base URL, without secrets.
        """
        ...

    def begin(self, mark: str, base: str, expected: Mapping[str, tuple[str, Usage]]) -> BatchIntent:
        """Write down a batch that is about to be created; it is on disk when this returns.

        Args:
            mark: What the batch is marked with.
            base: Base URL at which it is created, without secrets.
            expected: Key of each request → its model, and what it is taken to cost until its reply is there.
        """
        ...

    def add(self, mark: str, batch_id: str | None) -> None:
        """Write down the id of such a batch; None: it was not created."""
        ...

    def collect(self, batch_ids: Sequence[str]) -> None:
        """Note that all replies of some batches are recorded."""
        ...


@runtime_checkable
class Batchable(Protocol):
    """A transport that can ask in batches."""

    def batched(self) -> LLM:
        """Return a transport to the same model that asks in batches; requests and their keys stay the same.

        Raises:
            ConfigError: If its provider has no batches.
        """
        ...
