"""What waits for a batch, when it is sent, and how it is divided."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mesa_llm.llm.batches.protocol import BatchState
from mesa_llm.llm.batches.results import BatchLines
from mesa_llm.llm.batches.stage import Batched, BatchStage, post
from mesa_llm.llm.openai.connection import Response
from mesa_llm.llm.waiting import waits
from mesa_llm.records import Reply, Request
from tests.llm.human.questions import ask


class Echo:
    """A form of batches that are complete at once, and whose responses are the bodies."""

    base = "http://echo"

    def __init__(self, max_requests: int = 100, max_bytes: int = 10_000) -> None:
        self.max_requests = max_requests
        self.max_bytes = max_bytes
        self.in_progress: set[str] = set()
        self.sent: list[list[tuple[str, str]]] = []

    def line(self, key: str, body: bytes) -> bytes:
        return key.encode() + b" " + body

    async def create(self, lines: Any, mark: str) -> str:
        self.sent.append([tuple(line.decode().split(" ", 1)) for line in lines])
        return str(len(self.sent) - 1)

    async def find(self, intent: Any) -> str | None:
        return None

    async def look(self, batch_id: str) -> BatchState:
        n = len(self.sent[int(batch_id)])
        return BatchState(n, n, True, {})

    async def results(self, batch_id: str, state: BatchState) -> BatchLines:
        results = BatchLines()
        results.of = {key: Response(200, None, body.encode()) for key, body in reversed(self.sent[int(batch_id)])}
        return results

    @property
    def texts(self) -> list[list[str]]:
        """Bodies of each batch."""
        return [[body for _, body in batch] for batch in self.sent]


class Transport:
    """Sends the last message of a request as its body, in batches, and replies with the response."""

    def __init__(self, form: Echo) -> None:
        self.form = form

    async def reply(self, request: Request) -> Reply:
        response = await post(self.form, request, request.messages[-1].content.encode())
        return Reply(response.body.decode())


def question(text: str) -> Request:
    from mesa_llm.records import ChatMessage

    return ask(ChatMessage("user", text))


async def decided(stage: BatchStage, work: Any) -> Any:
    """Make a decision in a stage."""
    try:
        with stage.deciding():
            return await work
    finally:
        stage.end_decider()


def in_stage(*works: Any) -> list[Any]:
    """Make decisions in one stage."""

    async def make_all() -> list[Any]:
        stage = BatchStage()
        stage.begin_deciders(len(works))
        return await asyncio.gather(*(decided(stage, work) for work in works))

    return asyncio.run(asyncio.wait_for(make_all(), 10))


def test_a_batch_waits_for_a_decision_that_is_busy_elsewhere() -> None:
    form = Echo()
    llm = Batched(Transport(form))

    async def busy() -> str:
        await asyncio.sleep(0.05)
        return (await llm.reply(question("late"))).text

    async def prompt() -> str:
        return (await llm.reply(question("early"))).text

    assert in_stage(prompt(), busy()) == ["early", "late"]
    assert form.texts == [["early", "late"]]


def test_decision_with_two_requests_is_in_two_batches() -> None:
    form = Echo()
    llm = Batched(Transport(form))

    async def ask_for(*texts: str) -> None:
        for text in texts:
            await llm.reply(question(text))

    in_stage(ask_for("a1", "a2"), ask_for("b1"), ask_for(), ask_for("c1", "c2", "c3"))
    assert form.texts == [["a1", "b1", "c1"], ["a2", "c2"], ["c3"]]


def test_requests_that_a_decision_makes_at_once_are_in_one_batch() -> None:
    form = Echo()
    llm = Batched(Transport(form))

    async def ask_all(*texts: str) -> None:
        await asyncio.gather(*(llm.reply(question(text)) for text in texts))

    in_stage(ask_all("a1", "a2", "a3"), ask_all("b1"))
    assert form.texts == [["a1", "a2", "a3", "b1"]]


def test_what_waits_for_others_to_be_settled_is_not_waited_for() -> None:
    form = Echo()
    llm = Batched(Transport(form))
    is_settled = asyncio.Event()

    class Settling:
        async def reply(self, request: Request) -> Reply:
            with waits():
                await is_settled.wait()
            return await llm.inner.reply(request)

    async def first() -> None:
        await llm.reply(question("first"))
        is_settled.set()

    in_stage(first(), Batched(Settling()).reply(question("second")))
    assert form.texts == [["first"], ["second"]]


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [({"max_requests": 2}, [2, 2, 1]), ({"max_bytes": 3 * 67 + 10}, [3, 2]), ({"max_bytes": 1}, [1] * 5)],
)
def test_a_batch_is_divided_where_the_provider_takes_no_more(limits: dict[str, int], sizes: list[int]) -> None:
    form = Echo(**limits)
    llm = Batched(Transport(form))
    replies = in_stage(*(llm.reply(question(text)) for text in "abcde"))
    assert [reply.text for reply in replies] == list("abcde")
    assert [len(batch) for batch in form.texts] == sizes


def test_outside_of_a_run_what_is_asked_at_once_is_one_batch() -> None:
    form = Echo()
    llm = Batched(Transport(form))

    async def ask_all() -> list[Reply]:
        return await asyncio.gather(*(llm.reply(question(text)) for text in "abc"))

    assert [reply.text for reply in asyncio.run(asyncio.wait_for(ask_all(), 10))] == list("abc")
    assert form.texts == [list("abc")]
