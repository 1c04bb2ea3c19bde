"""The language models of one run: each is opened once, asked within limits, and every reply recorded."""

from __future__ import annotations

import asyncio
import logging
import threading
import time as clock
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import coroutine
from typing import Any, cast

from mesa_llm.engine.access import Access
from mesa_llm.engine.options import ACCESS_OPTIONS, EngineOptions
from mesa_llm.errors import ConfigError, MesaLLMError, ReplayError, TransportError
from mesa_llm.llm import open_simple
from mesa_llm.llm.address import split_name, written_name
from mesa_llm.llm.budget import Bill, usage_of
from mesa_llm.llm.keys import Origin
from mesa_llm.llm.protocol import LLM, Capabilities, require_llm
from mesa_llm.records import Reply, Request, Usage
from mesa_llm.runlog.log import CAPABILITIES, PreparedCall, RunLog

logger = logging.getLogger(__name__)


PREPARED_TOGETHER = 8
"""Number of calls that the run log prepares before yielding to the event loop: each takes a few dozen µs."""


def access_for(options: EngineOptions) -> Access:
    """Return the shared access of the options, or create the one they describe.

    Raises:
        ConfigError: If the options do both, or a value is invalid.
    """
    access_options: dict[str, Any] = {name: value for name, value in options.items() if name in ACCESS_OPTIONS}
    shared = options.get("access")
    if shared is None:
        return Access(**access_options)
    if conflicts := sorted(name for name, value in access_options.items() if value is not None):
        raise ConfigError(f"{', '.join(conflicts)} given besides access=; give them to Access(...), for all its models")
    return shared


def written_options(options: EngineOptions) -> dict[str, Any]:
    """Return options as plain values that may be recorded: no keys, and no address with a user or a query.

    Args:
        options: Options of a model.

    Returns:
        Values by name, without unset ones; `endpoints` includes those of `mesa-llm.toml`.
    """
    written = access_for(options).written
    parser = options.get("parser")
    if parser is not None:
        written["parser"] = written_name(parser) if isinstance(parser, str) else Capabilities.of(parser).name
    return {**written, "allow_new_endpoint": True} if options.get("allow_new_endpoint") else written


@coroutine
def next_pass() -> Generator[None]:
    """Wait for the next pass of the event loop, like `asyncio.sleep(0)` but faster."""
    yield


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A language model, ready to be asked by the agents that name it."""

    capabilities: Capabilities
    """Capabilities of its transport."""

    llm: LLM | None
    """The transport; None for the rule twin."""

    is_immediate: bool
    """Whether replies come at once, as in every replay."""

    concurrency: int
    """Maximum number of requests in flight."""

    @property
    def name(self) -> str:
        """The model's name, part of every request's key."""
        return self.capabilities.name

    def named(self, adapter: str | None) -> str:
        """Return the model's name in requests, prefixed by the adapter if there is one."""
        return self.name if adapter is None else f"{adapter} on {self.name}"

    @property
    def is_language_model(self) -> bool:
        """Whether a language model replies, and not a rule, the random baseline or a person."""
        return self.llm is not None and not self.capabilities.is_immediate and not self.capabilities.is_person


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outermost layer: serves recorded replies, and records all others as they arrive."""

    run: Transports
    inner: LLM

    async def reply(self, request: Request) -> Reply:
        """Return the recorded reply, or request one and record it.

        Raises:
            TransportError: If no reply came, now or when it was recorded.
            ReplayError: In a replay, if the reply is not recorded.
        """
        log = self.run.runlog
        entry = log.find(request)
        if entry is not None:
            self.run.count(Usage(replayed=1), request.salt.purpose)
            if isinstance(entry, Reply):
                return entry
            raise entry
        if log.mode == "replay":
            raise ReplayError(log.explain(request))
        start = clock.perf_counter()
        awaited = _Awaited(request)
        self.run.awaited[id(awaited)] = awaited
        bill = Bill()
        token = Bill.of_reply.set(bill)
        try:
            reply = await self.inner.reply(request)
        except TransportError as error:
            await self._keep_failure(awaited, error, bill.usage, start)
            raise
        except (MesaLLMError, asyncio.CancelledError):
            self._note_unanswered(request, bill.usage)
            raise
        except Exception as error:  # a custom transport may raise anything; the other agents carry on
            if (fault := (request.model, type(error))) not in self.run.tracebacks:
                self.run.tracebacks.add(fault)
                logger.exception("%s raised (said once; all failures are in the run log)", request.model)
            failure = TransportError(f"it raised {type(error).__name__}: {str(error)[:300]}")
            await self._keep_failure(awaited, failure, bill.usage, start)
            raise failure from error
        finally:
            Bill.of_reply.reset(token)
            del self.run.awaited[id(awaited)]
        if bill.usage.requests > 1:
            reply = _with_all_paid(reply, bill.usage)
        if not reply.latency_s:
            reply = reply.timed(clock.perf_counter() - start)
        log.keep(request, reply, reply.latency_s, prepared=awaited.prepared, commit=False)
        await self.run.commit()
        self.run.count(usage_of(reply, reply.attempts), request.salt.purpose)
        return reply

    async def _keep_failure(self, awaited: _Awaited, failure: TransportError, paid: Usage, start: float) -> None:
        """Record a failure, with the usage of its requests."""
        request, seconds = awaited.request, clock.perf_counter() - start
        self.run.runlog.keep(request, failure, seconds, prepared=awaited.prepared, commit=False, paid=paid)
        await self.run.commit()
        self.run.count(paid, request.salt.purpose)

    def _note_unanswered(self, request: Request, paid: Usage) -> None:
        """Record the usage of requests that were sent for a reply that never came, as the run ended before it."""
        if not paid.requests:
            return
        self.run.count(paid, request.salt.purpose)
        with suppress(ConfigError):  # the log is closed already, or cannot be written
            self.run.runlog.note_unanswered(request.model, paid)


def _with_all_paid(reply: Reply, paid: Usage) -> Reply:
    """Return a reply with the usage of all requests that it took."""
    dollars = paid.dollars if paid.dollars else reply.dollars
    tokens = {"prompt_tokens": paid.prompt_tokens, "reply_tokens": paid.reply_tokens}
    cached = {"cached_tokens": paid.cached_tokens, "stored_tokens": paid.stored_tokens}
    return replace(reply, dollars=dollars, attempts=paid.requests, **tokens, **cached)


@dataclass(slots=True, eq=False)
class _Awaited:
    """A request whose reply is awaited."""

    request: Request
    prepared: PreparedCall | None = None
    """Row that the run log has prepared for the call."""


@dataclass(slots=True)
class _Commit:
    """A commit that several requests wait for."""

    fault: str | None = None
    """Why it failed; None: it did not."""


class Transports:
    """Opens the language models of one run, and records their replies.

    Attributes:
        access: Access to the language models; shared with other runs if the options share it.
        awaited: The requests whose replies are awaited, in the order asked.
        tracebacks: Names of transports and tools, with the types of their exceptions for which a traceback has been
            shown.
    """

    def __init__(self, runlog: RunLog, options: EngineOptions, count: Callable[[Usage, str], None]) -> None:
        """Store the options; nothing is opened yet.

        Args:
            runlog: Run log in which replies are looked up and recorded.
            options: How language models are reached, and how much may be spent.
            count: Called with the usage and the purpose of each reply, from any thread.

        Raises:
            ConfigError: If an option is invalid.
        """
        self.runlog = runlog
        self.options = options
        self.count = count
        self.access = access_for(options)
        self._lock = threading.RLock()
        self._opened: dict[tuple[str | int, bool], OpenedModel] = {}
        self._own_transports: list[LLM] = []
        self._agent_models: set[str] = set()
        self._next_commit: _Commit | None = None
        self.awaited: dict[int, _Awaited] = {}
        self.tracebacks: set[tuple[str, type[Exception]]] = set()

    def close(self) -> None:
        """Close the transports that this run opened, unless other runs share them."""
        if self.options.get("access") is None:
            self.access.close()

    async def prepare_calls(self) -> None:
        """Have the run log prepare for the awaited replies; replies that arrive meanwhile go first."""
        awaited = list(self.awaited.values())
        for start in range(0, len(awaited), PREPARED_TOGETHER):
            await asyncio.sleep(0)
            for one in awaited[start : start + PREPARED_TOGETHER]:
                if one.prepared is None and id(one) in self.awaited:
                    try:
                        one.prepared = self.runlog.prepare(one.request)
                    except ConfigError:  # the log cannot be written; recording the first reply will raise this again
                        return

    async def commit(self) -> None:
        """Wait for the commit of all replies recorded in this pass of the event loop; one commit serves them all.

        Nothing else is asked before that, so that a killed run loses no more than what is in flight.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        commit = self._next_commit
        if commit is None:
            commit = self._next_commit = _Commit()
            asyncio.get_running_loop().call_soon(self._commit, commit)
        await next_pass()  # after the commit, which was scheduled first
        if commit.fault is not None:
            raise ConfigError(commit.fault)

    def _commit(self, commit: _Commit) -> None:
        self._next_commit = None
        try:
            self.runlog.commit()
        except ConfigError as error:
            commit.fault = str(error)

    def declare(self, llms: Iterable[str | LLM]) -> None:
        """Register the models that agents think with, so that a second model of that name uses their endpoint.

        Args:
            llms: Values of `llm=`; models that `open` opens are registered as well.

        Raises:
            ConfigError: If one is neither a string nor a transport.
        """
        for llm in llms:
            if isinstance(llm, str):
                self._agent_models.add(llm.strip())
            else:
                require_llm(llm)

    def open(self, llm: str | LLM, *, is_auxiliary: bool = False) -> OpenedModel:
        """Open a model; the same string opens it only once.

        Args:
            llm: Model string, or a transport of the user's own.
            is_auxiliary: Whether it is asked in addition to the models that agents think with, as a parser or a judge
                is; a plain name is then looked up at its provider, unless an agent's model has the same name.

        Raises:
            ConfigError: If it cannot be opened, or was asked at another address in the recording.
        """
        key = (llm if isinstance(llm, str) else id(llm), is_auxiliary)
        opened = self._opened.get(key)
        if opened is None:
            with self._lock:
                opened = self._opened.get(key)
                if opened is None:
                    opened = self._opened[key] = self._open(llm, is_auxiliary)
        return opened

    def _open(self, llm: str | LLM, is_auxiliary: bool) -> OpenedModel:
        if isinstance(llm, str):
            if llm.strip() == "rule":
                return OpenedModel(Capabilities("rule", is_immediate=True), None, True, 1)
            is_auxiliary = is_auxiliary and llm.strip() not in self._agent_models
            if not is_auxiliary:
                self._agent_models.add(llm.strip())
        else:
            require_llm(llm)
            self._own_transports.append(llm)  # kept alive, as it is known by its id, which could otherwise be reused
        if self.runlog.mode == "replay":
            return self._open_silent(llm, is_auxiliary)
        route = self.access.open(llm, is_auxiliary=is_auxiliary, origin=self._origin_of(llm))
        if route.capabilities.is_immediate:
            return OpenedModel(route.capabilities, route.llm, True, 1)
        capabilities = replace(route.capabilities, name=self._name_recorded(route.capabilities.name))
        if not isinstance(llm, str):
            self.runlog.note_capabilities(capabilities.name, capabilities.noted)
        return OpenedModel(capabilities, Recorded(self, route.llm), False, route.concurrency)

    def _origin_of(self, llm: str | LLM) -> Origin:
        """Return where a model string comes from: the user, or the run log that the model was rebuilt from."""
        named = self.options.get("named")
        if named is None or llm == self.options.get("parser"):
            return Origin.USER
        return Origin.USER if isinstance(llm, str) and llm.strip() in named else Origin.LOG

    def _open_silent(self, llm: str | LLM, is_auxiliary: bool) -> OpenedModel:
        """Open a model of a replay, in which nothing is sent."""
        transport = open_simple(llm) if isinstance(llm, str) else llm
        if transport is None:
            name = recorded_name(str(llm).strip(), is_auxiliary, self.access, self.runlog)
            attributes = self.runlog.manifest.get(CAPABILITIES)
            attributes = cast("Mapping[str, Any]", attributes).get(name) if isinstance(attributes, Mapping) else None
            return OpenedModel(Capabilities.of_name(name, attributes), Recorded(self, _Silent()), True, 1)
        capabilities = Capabilities.of(transport)
        if capabilities.is_immediate:
            return OpenedModel(capabilities, transport, True, 1)
        capabilities = replace(capabilities, name=recorded_name(capabilities.name, False, None, self.runlog))
        return OpenedModel(capabilities, Recorded(self, _Silent()), True, 1)

    def _name_recorded(self, name: str) -> str:
        """Return the name under which a model's replies are recorded, which includes the address at the time.

        Raises:
            ConfigError: If the recording knows the model only at another address, and `allow_new_endpoint` is not set.
        """
        if not self.runlog.may_repeat:
            return name
        names = self.runlog.models()
        here = {opened.name for opened in self._opened.values()}
        elsewhere = [other for other in names if model_part(other) == model_part(name) and other not in here]
        if name in names or not elsewhere:
            return name
        recorded = ", ".join(address_part(other) for other in elsewhere)
        if not self.options.get("allow_new_endpoint"):
            raise ConfigError(
                f"the recording asked {model_part(name)} at {recorded}, and now it would be asked at "
                f"{address_part(name)}. If that is the same model, continue with allow_new_endpoint=True "
                "(--allow-new-endpoint); else give the recorded address as api_base= (--api-base), or another log="
            )
        if len(elsewhere) > 1:
            raise ConfigError(f"{model_part(name)} was asked at {recorded}, so that none of them can have moved alone")
        return elsewhere[0]

    @property
    def parser(self) -> OpenedModel | None:
        """The second model that parses replies, if there is one.

        Raises:
            ConfigError: If it is the rule twin, which cannot read text.
        """
        spec = self.options.get("parser")
        if spec is None:
            return None
        opened = self.open(spec, is_auxiliary=True)
        if opened.llm is None:
            raise ConfigError("parser='rule' cannot put replies into form; name a language model")
        return opened


def model_part(name: str) -> str:
    """Return the model in a name, without its address and without prefixes that stand for no address."""
    return split_name(name)[0].removeprefix("openai/").removeprefix("ollama/")


def address_part(name: str) -> str:
    """Return the address in a model's name; a plain name stands for its provider."""
    return split_name(name)[1] or "its provider"


def recorded_name(text: str, is_auxiliary: bool, access: Access | None, runlog: RunLog) -> str:
    """Find the name that a recording uses for a model string; a model unknown to it keeps its current name.

    Args:
        text: Model string, name of an endpoint, or class name of a custom transport.
        is_auxiliary: As for `Transports.open`.
        access: Access that the replay was given; None: the text is already a name.
        runlog: The recording.
    """
    names = runlog.models()
    candidates = [text] if access is None else []
    written: Mapping[str, Any] = runlog.manifest.get("options") or {}
    for option in [_access_of(written), access] if access is not None else []:
        if option is not None:
            candidates.append(option.name_of(text, is_auxiliary=is_auxiliary))
    if split_name(text)[1] is None:
        candidates.append(text)
    matches = [name for name in candidates if name in names]
    matches += [name for name in names if name not in matches and model_part(name) == model_part(candidates[0])]
    return matches[0] if matches else candidates[0]


def _access_of(written: Mapping[str, Any]) -> Access | None:
    """Create the access that a recording describes."""
    try:
        return Access(endpoints=written.get("endpoints"), api_base=written.get("api_base"))
    except (ConfigError, AttributeError, TypeError):  # a recording of another version
        return None


class _Silent:
    """Transport in a replay, which is never asked."""

    async def reply(self, request: Request) -> Reply:
        raise ReplayError(f"a replay asks nobody ({request.model})")
