"""From what a model wrote to a decision or a typed answer, checked whoever decides."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mesa_llm import Decision, Observation, Reply, ToolCall
from mesa_llm.engine.reading.answers import answer_schema, plain_answer
from mesa_llm.engine.reading.parsing import check_decision, read, read_answer
from mesa_llm.engine.survey import NO_TOOLS
from mesa_llm.errors import ParseError
from mesa_llm.llm.lenient_json import values_in
from mesa_llm.tools.toolbox import ToolBox
from tests.pot import Pot


class Vote(BaseModel):
    party: Literal["red", "green"]
    sure: Annotated[float, Field(ge=0, le=1)]


@dataclass
class Bid:
    cents: int


def _nested(inner):
    return st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5)


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


PAY = '{"action": "pay", "arguments": {"coins": 1}}'


@pytest.mark.parametrize(
    ("text", "n_actions"),
    [
        (PAY, 1),
        (f"[{PAY}, {PAY}]", 2),
        (f'{{"actions": [{PAY}, {PAY}, {PAY}]}}', 3),
        (f'```json\n{{"actions": [{PAY}, {PAY}]}}\n```', 2),
    ],
)
def test_several_actions_are_read_as_an_object_a_list_or_the_wrapper(text, n_actions) -> None:
    decided = read(Reply(text), Observation(max_actions=3), ToolBox.of(object(), 1, [Pot()]))
    assert isinstance(decided, Decision)
    assert decided.actions == (ToolCall("pay", {"coins": 1}),) * n_actions


@pytest.mark.parametrize(
    "bad", ['{"action": "fly", "arguments": {}}', '{"action": "pay", "arguments": {"coins": "x"}}']
)
def test_of_a_partly_bad_list_nothing_is_done_and_all_is_asked_again(bad) -> None:
    with pytest.raises(ParseError, match=r"fly|coins"):
        read(Reply(f'{{"actions": [{PAY}, {bad}]}}'), Observation(max_actions=3), ToolBox.of(object(), 1, [Pot()]))


def test_more_actions_than_possible_are_asked_for_again() -> None:
    other = PAY.replace("1", "2")
    with pytest.raises(ParseError, match="at most 1"):
        read(Reply(f'{{"actions": [{PAY}, {other}]}}'), Observation(), ToolBox.of(object(), 1, [Pot()]))


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
    with suppress(ValueError):
        values_in(text)


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


def test_more_actions_than_allowed_are_refused() -> None:
    reply = Reply(tool_calls=(ToolCall("pay", {"coins": 1}), ToolCall("pay", {"coins": 2})))
    with pytest.raises(ParseError, match="at most 1"):
        read(reply, Observation(), ToolBox.of(object(), 1, [Pot()]))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), _nested, max_leaves=20))
def test_whatever_is_decided_is_checked_or_refused_and_breaks_nothing(value) -> None:
    box = ToolBox.of(object(), 1, [Pot()])
    calls: Any = value if isinstance(value, list) else [value]
    any_value: Any = value
    decisions = [Decision(1, answer=value), Decision(1, tuple(calls))]
    decisions += [Decision(1, (ToolCall("pay", any_value), ToolCall(any_value, {"coins": value})))]
    for seen in [Observation(answer=kind) for kind in (int, str, Vote, Bid, list[int])] + [
        Observation(max_actions=20, options={"coins": (1, "x"), "pay.coins": ()}),
        Observation(tools=()),
    ]:
        for decision in decisions:
            try:
                check_decision(decision, seen, box)
            except ParseError as error:
                assert str(error)  # noqa: PT017 - that nothing else is raised is what is tested


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (object(), str),
        (len, str),
        ("3", int),
        (3.5, int),
        (True, int),
        (ToolCall("pay"), str),
        (float("nan"), float),
        ("\ud800", str),
    ],
)
def test_an_answer_of_another_type_is_refused_whoever_gives_it(answer, kind) -> None:
    with pytest.raises(ParseError, match="answer"):
        check_decision(Decision(1, answer=answer), Observation(answer=kind), NO_TOOLS)


class Aliased(BaseModel):
    group: int = Field(validation_alias="Implement G")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (numpy.int64(3), int),
        (3, float),
        (Vote(party="red", sure=1), Vote),
        (Aliased.model_validate({"Implement G": 2}), Aliased),
        ({"a", "b"}, set[str]),
        ((1, 2), tuple[int, int]),
    ],
)
def test_an_answer_of_the_type_asked_for_passes_whoever_gives_it(answer, kind) -> None:
    assert check_decision(Decision(1, answer=answer), Observation(answer=kind), NO_TOOLS).answer == answer


def test_a_decision_is_an_action_or_an_answer_and_never_both() -> None:
    with pytest.raises(ParseError, match="not an action"):
        check_decision(Decision(1, (ToolCall("pay"),), answer=1), Observation(answer=int), NO_TOOLS)


@given(st.sets(st.text(), max_size=8))
def test_sets_are_written_in_one_order_in_every_process(words) -> None:
    assert plain_answer({"words": words})["words"] == sorted(words, key=repr)


# -- reasoning


def test_choices_keep_their_order_whatever_was_asked_before() -> None:
    for first, second in (("left", "right"), ("right", "left")):
        assert answer_schema(Literal[first, second])["properties"]["answer"]["enum"] == [first, second]
