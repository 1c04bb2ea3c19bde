"""Probabilities of choices are read from the alternatives to the tokens in which a reply is written."""

from __future__ import annotations

import math
from typing import Any, Literal

import pytest

from mesa_llm.engine.reading.answers import answer_schema
from mesa_llm.llm.probabilities import Token, Weighing, choices_of, expected, tokens_in
from mesa_llm.records import Reply
from tests.llm.human.questions import ACTIONS, VOTE, ask


def tokens(*path: tuple[str, dict[str, float]] | str) -> list[Token]:
    """Write tokens: a text that is certain, or a text with its alternatives."""
    pairs = [(one, {one: 1.0}) if isinstance(one, str) else one for one in path]
    return [Token(text.encode(), {key.encode(): share for key, share in weights.items()}) for text, weights in pairs]


def weighed(choices: tuple[Any, ...], path: list[Token], closer: list[Token] | None = None) -> Reply:
    kind = Literal[choices]  # pyright: ignore[reportInvalidTypeForm]
    weighing = Weighing(ask(schema=answer_schema(kind), choices=choices))
    assert weighing.read(path)
    for request in weighing.unresolved():
        weighing.resolve(request, closer or [])
    return weighing.weighed(Reply())


def test_the_value_is_found_by_the_text_before_it() -> None:
    path = tokens('{"', "answer", '":', " ", ("4", {"4": 0.5, "2": 0.3, "7": 0.1, '"': 0.1}), "}")
    reply = weighed((1, 2, 3, 4, 5), path)
    assert reply.probabilities == pytest.approx({"1": 0, "2": 0.375, "3": 0, "4": 0.625, "5": 0})
    assert reply.off_list == pytest.approx(0.2)


def test_token_with_a_quote_is_compared_after_the_quote() -> None:
    path = tokens('{"answer":', (' "co', {' "co': 0.6, ' "def': 0.3, " co": 0.1}), "operate", '"}')
    assert weighed(("cooperate", "defect"), path).probabilities == pytest.approx({"cooperate": 2 / 3, "defect": 1 / 3})


def test_choices_that_begin_alike_are_told_apart_along_the_reply() -> None:
    path = tokens('{"answer": ', ("1", {"1": 0.8, "3": 0.2}), ("0", {"0": 0.75, "}": 0.25}), "}")
    assert weighed((1, 3, 10), path).probabilities == pytest.approx({"1": 0.2, "3": 0.2, "10": 0.6})


def test_choices_that_begin_alike_beside_the_reply_are_asked_for_again() -> None:
    path = tokens('{"answer": ', ("3", {"1": 0.8, "3": 0.2}), "}")
    closer = tokens('{"answer": ', ("1", {"1": 0.8, "3": 0.2}), ("}", {"0": 0.25, "}": 0.75}))
    assert weighed((1, 3, 10), path, closer).probabilities == pytest.approx({"1": 0.6, "3": 0.2, "10": 0.2})


def test_white_space_in_place_of_a_value_is_off_the_list() -> None:
    path = tokens('{"answer":', ("3", {" ": 0.9, "3": 0.06, "2": 0.04}), "}")
    reply = weighed((1, 2, 3), path)
    assert (reply.probabilities["3"], reply.off_list) == pytest.approx((0.6, 0.9))


def test_a_character_of_several_tokens_is_put_together() -> None:
    first, second = "ä".encode()[:1], "ä".encode()[1:]
    path = [*tokens('{"answer": "'), Token(first, {first: 0.7, b"n": 0.3}), Token(second, {second: 1.0}), *tokens('"}')]
    assert weighed(("ä", "nein"), path).probabilities == pytest.approx({"ä": 0.7, "nein": 0.3})


def test_a_choice_of_actions_is_where_the_action_is_named() -> None:
    weighing = Weighing(ask(tools=ACTIONS, choices=("walk", "rest")))
    assert weighing.read(tokens('{"action": "', ("rest", {"rest": 0.9, "walk": 0.1}), '", "arguments": {}}'))
    assert weighing.weighed(Reply()).probabilities == pytest.approx({"walk": 0.1, "rest": 0.9})


@pytest.mark.parametrize("text", ["", "I would rather not say.", '{"reason": 3}'])
def test_a_reply_without_the_value_has_no_probabilities(text: str) -> None:
    assert not Weighing(ask(schema=answer_schema(Literal[1, 2]), choices=(1, 2))).read(tokens(text))


@pytest.mark.parametrize(
    ("answer", "choices"),
    [(Literal["yes", "no"], ("yes", "no")), (bool, (True, False)), (Literal["only"], ()), (str, ()), (int, ())],
)
def test_only_answers_of_few_choices_have_any(answer: Any, choices: tuple[Any, ...]) -> None:
    assert choices_of(ask(schema=answer_schema(answer))) == choices


def test_actions_are_chosen_by_name_and_objects_have_no_choices() -> None:
    assert choices_of(ask(tools=ACTIONS)) == tuple(spec.name for spec in ACTIONS)
    assert choices_of(ask(schema=VOTE)) == ()


def test_what_cannot_be_chosen_now_is_no_choice() -> None:
    assert choices_of(ask(tools=ACTIONS, options={"neighbour": ()})) == ("walk", "rest")
    assert choices_of(ask(schema=answer_schema(Literal[1, 2, 3]), options={"answer": (1, 3)})) == (1, 3)


def test_the_expected_answer_is_the_mean_of_the_choices() -> None:
    assert expected({"1": 0.25, "5": 0.75}) == 4.0


def test_tokens_are_read_from_whatever_an_endpoint_returns() -> None:
    entry = {"token": "3", "bytes": [51], "logprob": math.log(0.5), "top_logprobs": [{"token": "2", "logprob": -1.0}]}
    (token,) = tokens_in({"content": [entry, None, "3"]})
    assert token.alternatives == pytest.approx({b"3": 0.5, b"2": math.exp(-1)})
    assert tokens_in(None) == tokens_in({"content": 3}) == []


def test_the_key_of_a_request_depends_on_its_choices_alone_if_it_has_any() -> None:
    plain = ask(schema=answer_schema(bool))
    assert len({plain.key, ask(schema=answer_schema(bool), choices=(True, False)).key, ask().key}) == 3
