"""From reply to decision: typed answers, tools answered, one repair, failures with a reason."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mesa_llm import Decision, Observation, Reply, ScriptedLLM, ToolCall
from mesa_llm.errors import ParseError
from mesa_llm.llm.answers import call
from mesa_llm.parse import answer_schema, find_json, read, read_answer
from mesa_llm.toolbox import ToolBox
from tests.pot import Pot, PotModel


class Vote(BaseModel):
    party: Literal["red", "green"]
    sure: Annotated[float, Field(ge=0, le=1)]


@dataclass
class Bid:
    cents: int


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ('{"party": "red", "sure": 0.5}', Vote, Vote(party="red", sure=0.5)),
        ('Well:\n```json\n{"party": "green", "sure": 1}\n```', Vote, Vote(party="green", sure=1)),
        ('{"answer": 4}', Annotated[int, Field(ge=1, le=7)], 4),
        ("4", Annotated[int, Field(ge=1, le=7)], 4),
        ("yes", Literal["yes", "no"], "yes"),
        ('{"cents": 12}', Bid, Bid(12)),
        ("[1, 2]", list[int], [1, 2]),
        ("I like it.", str, "I like it."),
        ('<think>{"cents": 1}? Or more?</think>\n{"cents": 12}', Bid, Bid(12)),
    ],
)
def test_a_typed_answer_is_read_from_what_models_write(text, kind, value) -> None:
    assert read_answer(text, kind) == value


def test_an_action_that_is_only_thought_of_is_not_done() -> None:
    text = '<think>{"action": "pay", "arguments": {"coins": 9}}</think>{"action": "pay", "arguments": {"coins": 1}}'
    decided = read(Reply(text), Observation(), ToolBox.of(object(), 1, [Pot()]))
    assert isinstance(decided, Decision)
    assert decided.actions == (ToolCall("pay", {"coins": 1}),)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", str),
        ('{"party": "blue", "sure": 0.5}', Vote),
        ('{"party": "red", "sure": NaN}', Vote),
        ('{"party": "red", "sure": 1e999}', Vote),
        ("9", Annotated[int, Field(ge=1, le=7)]),
        ("{" * 5000, Vote),
        ("NaN", float),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_with_a_reason(text, kind) -> None:
    with pytest.raises(ParseError, match=r"\w"):
        read_answer(text, kind)


def test_a_plain_type_is_asked_for_as_an_object_and_an_object_as_it_is() -> None:
    assert answer_schema(int)["required"] == ["answer"]
    assert set(answer_schema(Vote)["properties"]) == {"party", "sure"}


@given(st.text(max_size=300))
def test_no_text_breaks_the_search_for_json(text) -> None:
    find_json(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"action": "pay", "arguments": {"coins": 3}}',
        'I pay. {"name": "pay", "parameters": {"coins": 3}}',
        '{"actions": [{"action": "pay", "arguments": {"coins": 3}}]}',
    ],
)
def test_models_without_tool_calls_act_through_json(text) -> None:
    decision = read(Reply(text), Observation(), ToolBox.of(object(), 1, [Pot()]))
    assert isinstance(decision, Decision)
    assert decision.actions == (ToolCall("pay", {"coins": 3}),)


def ask(script, **options):
    model = PotModel(n_agents=1, llm=ScriptedLLM(script), rng=1, **options)
    model.step()
    return model


def test_tools_are_answered_before_the_decision() -> None:
    model = ask(lambda request: call("count") if request.salt.call == 0 else call("pay", coins=5))
    assert model.coins == 5
    assert model.usage.calls == 2


def test_an_agent_that_only_calls_tools_fails_after_five_rounds() -> None:
    model = ask(lambda request: call("count"))
    assert model.runlog.failures() == ["called tools 6 times without deciding"]


def test_a_faulty_reply_is_repaired_by_one_more_request_that_says_what_was_wrong() -> None:
    def script(request):
        if request.salt.call == 0:
            return call("pay", coins=99)
        assert "less than or equal to 10" in request.messages[-1].content
        return call("pay", coins=9)

    assert ask(script).coins == 9


def test_a_reply_that_stays_faulty_is_a_failure_with_its_reason() -> None:
    model = ask(lambda request: call("steal", coins=1))
    assert model.coins == 0
    assert model.runlog.failures() == ["there is no tool 'steal'; choose one of: do_nothing, pay, count."]


def test_a_second_model_can_put_replies_into_form() -> None:
    form = ScriptedLLM(lambda request: call("pay", coins=4))
    model = ask(lambda request: "I would say four.", parser=form)
    assert model.coins == 4


def test_more_actions_than_allowed_are_refused() -> None:
    reply = Reply(tool_calls=(ToolCall("pay", {"coins": 1}), ToolCall("pay", {"coins": 2})))
    with pytest.raises(ParseError, match="at most 1"):
        read(reply, Observation(), ToolBox.of(object(), 1, [Pot()]))
