"""What a person can answer is listed value by value, and what can follow what is said."""

from __future__ import annotations

import pytest

from mesa_llm.llm.human.forms import LEFT_OUT, PASS, FormField, NotOffered, offers_of, still_possible
from mesa_llm.records import ToolCall, ToolSpec
from tests.llm.human.questions import ACTIONS, TOOLS, VOTE, ask

NOTHING = ToolSpec(PASS, "Do nothing.", {"type": "object", "properties": {}, "additionalProperties": False}, True)


def names_after(*done: str, most: int = 2) -> list[str]:
    offers = offers_of(ask(tools=(*TOOLS.values(), NOTHING)))
    return [offer.name for offer in still_possible(offers, [ToolCall(name) for name in done], most)]


def test_at_first_everything_is_possible_and_after_an_action_further_actions() -> None:
    assert names_after() == [*TOOLS, PASS]
    assert names_after("rest") == [action.name for action in ACTIONS]


def test_nothing_follows_the_last_action_nor_a_look_nor_doing_nothing() -> None:
    assert names_after("rest", "rest") == names_after("rest", most=1) == []
    assert names_after("look_up") == names_after(PASS) == []


def test_a_tool_without_a_possible_value_is_not_offered() -> None:
    offers = offers_of(ask(tools=ACTIONS, options={"neighbour": ()}))
    assert [offer.name for offer in offers] == ["walk", "rest"]


def test_a_value_that_is_not_offered_is_read_only_if_it_is_meant() -> None:
    vote = offers_of(ask(schema=VOTE, options={"score": (1, 2)}))[0].field.lines[1]
    assert (vote.read("2", is_meant=False), vote.read("4", is_meant=True)) == (2, 4)
    with pytest.raises(NotOffered, match="1 or 2"):
        vote.read("4", is_meant=False)


def test_what_is_left_out_is_not_in_the_answer() -> None:
    schema = {**VOTE, "required": ["vote"]}
    (offer,) = offers_of(ask(schema=schema))

    def give(line: FormField) -> object:
        return "Oil" if line.is_needed else LEFT_OUT

    assert offer.field.fill(give) == {"vote": "Oil"}
