"""At a terminal, a person is shown what to decide, and asked again until the answer fits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from mesa_llm.errors import Refused
from mesa_llm.llm.human.terminal import TerminalHuman
from mesa_llm.records import Reply, Request, ToolCall
from tests.llm.human.questions import ACTIONS, TOOLS, VOTE, ask


class Person:
    """Writes the lines that it was told to, and keeps what it was shown."""

    def __init__(self, *lines: str) -> None:
        self.lines: Iterator[str] = iter(lines)
        self.shown = ""

    def read(self, prompt: str) -> str:
        self.shown += prompt
        for line in self.lines:
            return line
        raise EOFError

    def write(self, text: str) -> None:
        self.shown += text

    def answer(self, *requests: Request) -> list[Reply]:
        terminal = TerminalHuman(self.read, self.write)

        async def all_of_them() -> list[Reply]:
            return list(await asyncio.gather(*(terminal.reply(request) for request in requests)))

        return asyncio.run(all_of_them())


def test_an_action_is_chosen_by_number_and_its_arguments_are_asked_in_turn() -> None:
    (reply,) = Person("1", "7", "Good morning").answer(ask(tools=ACTIONS))
    assert reply.tool_calls == (ToolCall("talk_to", {"neighbour": 7, "text": "Good morning"}),)


def test_a_person_is_called_by_the_name_of_the_agent() -> None:
    person = Person("Hello", "Hello")
    person.answer(ask(agent=7, name="Ines"), ask(agent=8))
    assert "\nInes (agent 7), step 1\n" in person.shown
    assert "\nAgent 8, step 1\n" in person.shown


def test_an_empty_line_leaves_an_optional_argument_out() -> None:
    (reply,) = Person("walk", "").answer(ask(tools=ACTIONS))
    assert reply.tool_calls == (ToolCall("walk", {}),)


def test_a_single_action_with_arguments_is_filled_in_at_once() -> None:
    (reply,) = Person("7", "Good morning").answer(ask(tools=[one for one in ACTIONS if one.name == "talk_to"]))
    assert reply.tool_calls == (ToolCall("talk_to", {"neighbour": 7, "text": "Good morning"}),)


def test_nonsense_is_asked_again() -> None:
    person = Person("9", "jump", "walk", "far", "99", "4")
    (reply,) = person.answer(ask(tools=ACTIONS))
    assert reply.tool_calls == (ToolCall("walk", {"metres": 4}),)
    assert person.shown.count("There is no") == 2
    assert person.shown.count("Expected integer 1..9.") == 2


def test_what_is_offered_is_shown_and_anything_else_has_to_be_written_twice() -> None:
    person = Person("talk_to", "5", "4", "Hello")
    (reply,) = person.answer(ask(tools=ACTIONS, options={"neighbour": (4, 7)}))
    assert reply.tool_calls[0].arguments["neighbour"] == 4
    assert "neighbour – Who is talked to (4 or 7)" in person.shown
    (reply,) = Person("talk_to", "5", "5", "Hello").answer(ask(tools=ACTIONS, options={"neighbour": (4, 7)}))
    assert reply.tool_calls[0].arguments["neighbour"] == 5


def test_an_amount_can_be_any_other_than_the_round_ones_offered() -> None:
    person = Person("12.34")
    schema = {"type": "object", "properties": {"price": {"type": "number", "minimum": 0}}, "required": ["price"]}
    (reply,) = person.answer(ask(schema={**schema, "additionalProperties": False}, options={"price": (10.0, 20.0)}))
    assert json.loads(reply.text) == {"price": 12.34}
    assert "number from 0, such as 10.0 or 20.0" in person.shown


def test_a_text_out_of_several_is_chosen_by_number() -> None:
    person = Person("talk_to", "4", "2")
    (reply,) = person.answer(ask(tools=ACTIONS, options={"neighbour": (4,), "text": ("Yes.", "No.", "Rain?")}))
    assert reply.tool_calls[0].arguments["text"] == "No."
    assert "3. Rain?" in person.shown


def test_several_actions_are_asked_for_one_by_one() -> None:
    (reply,) = Person("walk", "3", "3", "").answer(ask(tools=ACTIONS, max_actions=3))
    assert [call.name for call in reply.tool_calls] == ["walk", "rest"]
    (reply,) = Person("rest", "rest").answer(ask(tools=ACTIONS, max_actions=2))
    assert [call.name for call in reply.tool_calls] == ["rest", "rest"]


def test_only_actions_can_follow_an_action() -> None:
    person = Person("rest", "look_up", "")
    (reply,) = person.answer(ask(tools=tuple(TOOLS.values()), max_actions=2))
    assert [call.name for call in reply.tool_calls] == ["rest"]
    assert "look_up can only be done alone." in person.shown


def test_free_keys_are_written_with_colons_under_their_parent() -> None:
    person = Person("5", "Oil: 4", "Oil: 2.5, Gas: 1")
    spent = {"type": "object", "additionalProperties": {"type": "number", "maximum": 3}}
    schema = {"type": "object", "properties": {"spent": {**VOTE, "properties": {"Ann": spent}, "required": ["Ann"]}}}
    (reply,) = person.answer(ask(schema={**schema, "required": ["spent"], "additionalProperties": False}))
    assert json.loads(reply.text) == {"spent": {"Ann": {"Oil": 2.5, "Gas": 1.0}}}
    assert "spent, Ann ({name: number up to 3, …})" in person.shown


def test_an_answer_is_filled_in_property_by_property() -> None:
    (reply,) = Person("Oil", "4").answer(ask(schema=VOTE))
    assert json.loads(reply.text) == {"vote": "Oil", "score": 4}


def test_a_free_answer_is_taken_as_it_is() -> None:
    (reply,) = Person("I like rain.").answer(ask())
    assert reply.text == "I like rain."


def test_the_rules_are_shown_once_and_the_observation_each_time() -> None:
    person = Person("a", "b")
    person.answer(ask(), ask(number=1))
    assert (person.shown.count("You live in a village."), person.shown.count("It rains.")) == (1, 2)


def test_the_end_of_the_input_refuses_the_request() -> None:
    with pytest.raises(Refused, match="its input has ended"):
        Person().answer(ask())


def test_a_withdrawn_question_is_not_asked() -> None:
    person = Person("only one line")
    terminal = TerminalHuman(person.read, person.write)

    async def withdraw_the_first() -> Reply:
        withdrawn = asyncio.ensure_future(terminal.reply(ask(agent=1)))
        withdrawn.cancel()
        return await terminal.reply(ask(agent=2))

    assert asyncio.run(withdraw_the_first()).text == "only one line"
