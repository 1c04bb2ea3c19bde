"""Nothing that is raised anywhere while agents decide keeps the engine waiting."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from mesa_llm import AgentDesign, Observation, Reply, Request, ToolCall, tool
from mesa_llm.llm.local.conversations import Conversations
from mesa_llm.llm.local.decoder import Decoder
from mesa_llm.llm.local.model import EmbeddedModel, LocalLLM
from mesa_llm.llm.scripted import ScriptedLLM
from tests.pot import Pot, PotModel

GUARD_S = 60.0
"""Seconds after which a step that waits for ever is given up; any that ends takes a fraction of one."""


class Whim(BaseException):
    """An exception that is none of Python's."""


KINDS = (
    StopIteration,
    StopAsyncIteration,
    SystemExit,
    KeyboardInterrupt,
    MemoryError,
    GeneratorExit,
    asyncio.CancelledError,
    Whim,
)


class Provider:
    """Replies by awaiting what a function returns."""

    name = "provider"

    def __init__(self, wait: Callable[[], Any]) -> None:
        self._wait = wait

    async def reply(self, request: Request) -> Reply:
        await asyncio.sleep(0)
        await self._wait()
        return Reply("never")


class Loaded(EmbeddedModel):
    """An embedded model whose llama.cpp raises."""

    def __init__(self, fail: Callable[..., NoReturn], local: LocalLLM) -> None:
        super().__init__(None, local.profile)
        self._server = SimpleNamespace(handle_chat_completions=fail)
        self._decoder = Decoder(self._server, Conversations(self._server, None), {})


def embedded(fail: Callable[..., NoReturn]) -> LocalLLM:
    local = LocalLLM()
    local._model = Loaded(fail, local)
    return local


def in_own_thread(fail: Callable[..., NoReturn]) -> asyncio.Future[Any]:
    return asyncio.wrap_future(ThreadPoolExecutor(1).submit(fail))


def paying(**attributes: Any) -> PotModel:
    """Return a model whose engine has attributes, and whose agents pay."""
    model = PotModel(llm=ScriptedLLM(lambda request: ToolCall("pay", {"coins": 1}), delay_s=0.001), rng=1)
    for name, value in attributes.items():
        setattr(model.engine, name, value)
    return model


class WhimsicalPot(Pot):
    """A pot that cannot be counted."""

    def __init__(self, fail: Callable[..., NoReturn]) -> None:
        super().__init__()
        self.fail = fail

    @tool
    def count(self, agent_id: int) -> int:
        """Count the coins in the pot."""
        self.fail()


def counting(fail: Callable[..., NoReturn]) -> PotModel:
    """Return a model whose agents call a tool that fails."""
    model = PotModel(llm=ScriptedLLM(lambda request: ToolCall("count", {})), rng=1)
    model.pot = WhimsicalPot(fail)
    model.worlds = (model.pot,)
    return model


def deciding(fail: Callable[..., NoReturn]) -> PotModel:
    """Return a model whose agents decide by code of their own that fails."""

    async def decide(agent: Any, seen: Observation) -> NoReturn:
        await asyncio.sleep(0)
        fail()

    llm = ScriptedLLM(lambda request: "never")
    return PotModel(llm=llm, rng=1, design=AgentDesign(decide=decide))


PLACES: dict[str, Callable[[Callable[..., NoReturn]], PotModel]] = {
    "a provider": lambda fail: PotModel(llm=ScriptedLLM(fail), rng=1),
    "a provider's coroutine": lambda fail: PotModel(llm=Provider(fail), rng=1),
    "a provider's thread": lambda fail: PotModel(llm=Provider(lambda: asyncio.to_thread(fail)), rng=1),
    "a provider's own thread": lambda fail: PotModel(llm=Provider(lambda: in_own_thread(fail)), rng=1),
    "a local model's thread": lambda fail: PotModel(llm=embedded(fail), rng=1),
    "a tool": counting,
    "an agent's own decide": deciding,
    "a listener": lambda fail: paying(on_decision=fail),
    "the question whether to stop": lambda fail: paying(should_stop=fail),
    "what is done meanwhile": lambda fail: paying(while_waiting=fail),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_an_exception_is_an_error_or_a_failure_and_never_a_hang(place: str, kind: type[BaseException]) -> None:
    def fail(*_: Any) -> NoReturn:
        raise kind("a whim")

    outcomes = outcomes_of(PLACES[place](fail))
    assert outcomes == ["failures"] or isinstance(outcomes[0], BaseException)


def outcomes_of(model: PotModel) -> list[Any]:
    """Step a model in a thread that is given up if it hangs; return what came of that."""
    outcomes: list[Any] = []

    def step() -> None:
        try:
            model.step()
            outcomes.append("failures" if model.data_quality()["failed"].n == model.engine.decisions else "decisions")
        except BaseException as error:  # noqa: BLE001 - it is what the test looks at
            outcomes.append(error)

    thread = threading.Thread(target=step, daemon=True)
    thread.start()
    thread.join(GUARD_S)
    assert outcomes, "the engine waits for ever"
    return outcomes


def test_work_is_closed_that_has_not_begun_when_the_engine_fails() -> None:
    async def work() -> None:
        raise AssertionError("it began")

    def fail() -> NoReturn:
        raise Whim("a whim")

    waiting = work()
    with pytest.raises(Whim):
        paying(should_stop=fail).engine.wait(waiting)
    assert inspect.getcoroutinestate(waiting) == inspect.CORO_CLOSED
