"""Connects plain Mesa models, which know nothing of language models, to an engine and a run log."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from mesa_llm.engine.access import Access, EngineOptions
from mesa_llm.engine.engine import Engine, run_seed_of
from mesa_llm.errors import ConfigError
from mesa_llm.llm.protocol import LLM
from mesa_llm.records import Decision, Event, Failure, Message, Outcome
from mesa_llm.runlog.log import RunLog
from mesa_llm.runlog.versions import versions
from mesa_llm.text import suggestion

if TYPE_CHECKING:
    from mesa import Model

_HAS_OPTIONS = "_is_connected_with_options"
"""Attribute that marks a plain model as connected with options, and thereby its copies too."""


class StepLog(RunLog):
    """A run log that closes steps by itself, as agents of a plain model may act between its steps.

    A step is closed by the first record of another step, or when the log is closed. Until then it can be read, and
    counts in the digest, as if it were over.
    """

    _open_step: int | None = None
    _resolved: tuple[int, int] | None = None  # the open step, and its number of records when it was last written
    _digest_so_far = ""
    _closed_digest: Any = None  # the hash of all steps, as it would be if the open one were closed

    def add(self, record: Decision | Failure | Outcome | Event | Message, time: int) -> None:
        """Record what happened; the first record of another step closes the previous one."""
        with self._lock:  # a page may be reading
            if time != self._open_step:
                self.finish()
                self._open_step = time
            super().add(record, time)

    def finish(self) -> None:
        """Close the open step."""
        with self._lock:
            if self._open_step is None or self._is_closed:
                return
            step, self._open_step = self._open_step, None
            if self._resolved == (step, len(self._facts)):  # it is in the file
                self._digest = self._closed_digest
                for records in (self._facts, self._rows, self._written):
                    records.clear()
            else:
                self.end_step(step, {})

    def flush(self) -> None:
        """Write the open step so far.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        self._written_digest()

    @property
    def digest(self) -> str:
        """Digest of all steps recorded so far, including the open one."""
        return super().digest if self._open_step is None else self._written_digest()

    def rows(self, name: str, agent: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Read a table row by row, including the open step so far."""
        self._written_digest()
        return super().rows(name, agent)

    def rows_of(self, name: str, time: object, agent: object) -> list[tuple[Any, ...]]:
        """Read the rows of a table about one agent in one step, which may be the open one."""
        self._written_digest()
        return super().rows_of(name, time, agent)

    def latest(self, name: str, size: int, skip: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Read the end of a table, including the open step so far."""
        self._written_digest()
        return super().latest(name, size, skip)

    def agents(self) -> list[int]:
        """Return the ids of all agents that were asked something or decided, including the open step."""
        self._written_digest()
        return super().agents()

    def failures(self) -> list[str]:
        """Return the reasons of all failed decisions, including those of the open step."""
        self._written_digest()
        return super().failures()

    def close(self) -> None:
        """Close the last step, and the file."""
        self.finish()
        super().close()

    def _written_digest(self) -> str:
        """Write the open step as if it were over, but leave it open; it is written again when it is closed."""
        with self._lock:
            if self._open_step is None or self._is_closed:
                return super().digest
            moment = self._open_step, len(self._facts)
            if moment != self._resolved:
                step, facts, digest = self._open_step, list(self._facts), self._digest.copy()
                rows = {table: list(records) for table, records in self._rows.items()}
                self._open_step = None
                self._digest_so_far = self.end_step(step, {})
                self._closed_digest = self._digest
                self._open_step, self._facts, self._rows, self._digest = step, facts, rows, digest
                self._resolved = moment
            return self._digest_so_far


def connect(
    model: Model[Any, Any],
    *,
    log: str | Path | None = None,
    replay: bool = False,
    retry_failures: bool = False,
    ask_again: bool = False,
    **options: Unpack[EngineOptions],
) -> Engine:
    """Connect a plain Mesa model to language models: set their endpoints, the budget and the run log.

    Call this before the model's agents first think; a model that is not connected gets the defaults. A copy of a
    connected model (`copy.deepcopy`, `pickle`) must be connected as well, with its own log and budget. An `LLMModel`
    takes the same options in its constructor.

        model = BoltzmannWealth(BoltzmannScenario(n=20, rng=42))
        engine = connect(model, log="run.sqlite", api_base="http://localhost:8000/v1", max_calls=500)
        Giver.enter(model.agents, llm="my-model")
        model.run_for(10)
        print(engine.usage, engine.runlog.decisions())

    Args:
        model: Any Mesa model.
        log: File of the run: replies that it holds are used, all others requested and recorded; None: in memory.
        replay, retry_failures, ask_again: See `RunOptions`.
        **options: Options for reaching language models and for budgets, as for an `LLMModel`; see `RunOptions`.

    Returns:
        The engine, with its `runlog`, its `usage` and `close`.

    Raises:
        ConfigError: If an option is unknown, the log holds another run, or the model is already connected.
    """
    unknown = sorted(set(options) - set(EngineOptions.__annotations__))
    if unknown:
        hint = suggestion(unknown[0], EngineOptions.__annotations__)
        raise ConfigError(f"unknown options: {', '.join(unknown)}{hint} (see mesa_llm.engine.options)")
    if replay and log is None:
        raise ConfigError("replay=True needs the log= of a recorded run")
    if Engine.of(model) is not None:
        raise ConfigError(
            f"this {type(model).__name__} is connected already: give an LLMModel its options itself, "
            "and connect any other model once, before its agents first think"
        )
    runlog = StepLog(log, "replay" if replay else "record", retry_failures, ask_again)
    engine = Engine(runlog, run_seed_of(model), options)
    runlog.begin(_identity(model, engine.run_seed), {"versions": versions()})
    engine.join(model)
    if log is not None or options:
        setattr(model, _HAS_OPTIONS, True)
    if runlog.path is not None:
        for name in _STEPS:
            if (proceed := getattr(model, name, None)) is not None:
                setattr(model, name, partial(_then_flush, proceed, model))
    weakref.finalize(model, runlog.finish)
    return engine


_STEPS = ("_user_step", "_advance_time")
"""What Mesa calls for a step, and until all events up to a time have happened."""


def _then_flush(proceed: Callable[..., None], model: Model[Any, Any], *arguments: Any) -> None:
    """Let a model go on, and write what has happened; a copy of the model has no log."""
    proceed(*arguments)
    engine = Engine.of(model)
    if engine is not None and isinstance(engine.runlog, StepLog):
        engine.runlog.flush()


def engine_of(model: Model[Any, Any]) -> Engine:
    """Return the engine of a model; a model without one is connected with the defaults.

    Raises:
        ConfigError: If the model is a copy of one that was connected with options.
    """
    own: object = getattr(model, "engine", None)
    if type(own) is Engine:  # as in every LLMModel
        return own
    engine = Engine.of(model)
    if engine is None and getattr(model, _HAS_OPTIONS, False):
        raise ConfigError(
            f"this {type(model).__name__} is a copy of one that was connected with a log, a budget or an endpoint, "
            "none of which is copied; connect() the copy, too, before its agents think"
        )
    return engine or connect(model)


def require_model(model: Model[Any, Any], llm: str | LLM | None) -> None:
    """Check that a language model can be asked, before agents of a Mesa model think with it; a replay asks nobody.

    Raises:
        ConfigError: If it is no language model, or no provider is known for it.
    """
    engine = Engine.of(model)
    if llm is None or (engine is not None and engine.runlog.mode == "replay"):
        return
    (Access() if engine is None else engine.access).require_known(llm)


def _identity(model: Model[Any, Any], run_seed: int) -> Mapping[str, Any]:
    """Return the identity of the run; the parameters of a plain model are unknown."""
    name = f"{type(model).__module__}:{type(model).__qualname__}"
    return {"model": name, "parameters": {}, "rng": None, "run_seed": run_seed}
