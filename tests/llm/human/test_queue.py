"""A question waits on the desk until a person answers from any thread, or it is withdrawn."""

from __future__ import annotations

import asyncio
import threading
import time

from mesa_llm.llm.human.queue import HumanLLM, HumanQueue, latest
from mesa_llm.records import ChatMessage, Reply, ToolCall
from tests.llm.human.questions import ask


def answer_next(desk: HumanQueue, text: str) -> None:
    while not desk.pending:
        time.sleep(0.001)
    assert desk.answer(desk.pending[0].question_id, text)


def test_a_person_answers_from_another_thread() -> None:
    human = HumanLLM()
    person = threading.Thread(target=answer_next, args=(human.desk, "I stay."))
    person.start()
    assert asyncio.run(human.reply(ask())).text == "I stay."
    person.join()
    assert human.desk.pending == []


def test_questions_wait_in_the_order_asked_and_are_answered_in_any() -> None:
    desk = HumanQueue()
    first, second = desk.ask(ask(agent=7)), desk.ask(ask(agent=8))
    assert [(question.question_id, question.agent) for question in desk.pending] == [(1, 7), (2, 8)]
    desk.answer(2, ToolCall("rest"))
    assert (first.done(), second.result().tool_calls) == (False, (ToolCall("rest"),))


def test_a_question_shows_what_the_agent_sees_now() -> None:
    desk = HumanQueue()
    desk.ask(ask())
    assert desk.pending[0].text == "It rains."


def test_a_cancelled_wait_takes_its_question_off_the_desk() -> None:
    human = HumanLLM()

    async def give_up() -> None:
        waiting = asyncio.ensure_future(human.reply(ask()))
        while not human.desk.pending:
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])

    asyncio.run(give_up())
    assert human.desk.pending == []
    assert human.desk.answer(1, "too late") is False


def test_only_the_first_answer_counts() -> None:
    desk = HumanQueue()
    waiting = desk.ask(ask())
    assert [desk.answer(1, "first"), desk.answer(1, "second")] == [True, False]
    assert waiting.result() == Reply("first", dollars=0.0, model="human")


def test_after_a_tool_has_answered_that_is_what_is_new() -> None:
    message = ChatMessage("assistant", "", (ToolCall("look_up", {}, "c"),))
    request = ask(ChatMessage("user", "It rains."), message, ChatMessage("tool", "rain: 3", call_id="c"))
    assert latest(request) == "rain: 3"
