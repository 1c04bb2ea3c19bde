"""Sentences in which agents remember what they did."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm import ConfigError
from mesa_llm.records import Outcome
from mesa_llm.tools.tool import action, compile_tool
from mesa_llm.tools.wording import action_text, answer_text, infinitive_of, past_of, wording_of


def remembered(name, docstring="", did: Any = "", ok=True, result="Done.", facts=None, **arguments) -> str:
    outcome = Outcome(1, name, arguments, ok, result, "", facts or {})
    return action_text(wording_of(name, docstring, did), outcome)


@pytest.mark.parametrize(
    ("sentence", "did", "arguments", "result"),
    [
        ("You ordered 14 cases.", "You ordered {cases:case}.", {"cases": 14}, "Done."),
        ("You ordered 1 case.", "You ordered {cases:case}.", {"cases": 1}, "OK"),
        ("You ordered no cases.", "You ordered {cases:case}.", {"cases": 0}, ""),
        ("You fed 2 people.", "You fed {n:person|people}", {"n": 2}, None),
        ("You paid $0.30.", "You paid ${price:.2f}.", {"price": 0.1 + 0.2}, "Done."),
        ("You paid 0.3. It rains.", "You paid {price}. {result}", {"price": 0.1 + 0.2}, "It rains"),
        ("You wrote: “a ‘b’ c”", "You wrote: {text!r}", {"text": "a\n“b”  c"}, "Done."),
        ("You named a, b and c.", "You named {names}.", {"names": ["a", "b", "c"]}, "Done."),
    ],
)
def test_an_action_is_remembered_in_the_words_of_its_author(sentence, did, arguments, result) -> None:
    assert remembered("act", did=did, result=result, **arguments) == sentence


@pytest.mark.parametrize(
    ("sentence", "name", "docstring", "arguments", "result"),
    [
        ("You placed an order with it (14 cases).", "order", "Place an order with it.", {"cases": 14}, "Done."),
        ("You raised the bid (1 cent). It rains.", "raise_bid", "Raise the bid.", {"cents": 1}, "It rains."),
        ("You sold shares (market 4).", "sell", "Sells shares, if you can.", {"market_id": 4}, True),
        ("You wrote a post: “hello there”", "post", "Write a post.", {"text": "hello there"}, None),
        ("You placed order (to Ann).", "place_order", "place order", {"to": "Ann", "then": None, "n": ""}, "ok."),
        ("You set price (0.3).", "set_price", "The price of next week.", {"price": 0.1 + 0.2}, "Done."),
        ("You chose north.", "north", "north", {}, "Done."),
        ("You rested. You have 3 coins.", "rest", "Rest.", {}, "You have 3 coins."),
        ("You paid 3 to Ann.", "pay", "Pay.", {"coins": 3}, "You paid 3 to Ann."),
    ],
)
def test_an_action_without_a_sentence_reads_like_one(sentence, name, docstring, arguments, result) -> None:
    assert remembered(name, docstring, result=result, **arguments) == sentence


@pytest.mark.parametrize(
    ("sentence", "docstring", "did", "reason"),
    [
        ("You wanted to order 14 cases, but you are poor.", "", "You ordered {cases:case}. {result}", "You are poor."),
        ("You wanted to order beer (14 cases), but 14 is too many.", "Order beer.", "", "14 is too many"),
        ("You wanted to order beer (14 cases), but cases: too many.", "Order beer.", "", "order: cases: too many"),
    ],
)  # fmt: skip
def test_what_was_refused_is_remembered_with_its_reason(sentence, docstring, did, reason) -> None:
    assert remembered("order", docstring, did, ok=False, result=reason, cases=14) == sentence


def test_a_sentence_can_be_a_function_of_the_outcome() -> None:
    def met(outcome: Outcome) -> str:
        return f"You met {outcome.facts['name']}"

    assert remembered("act", did=met, facts={"name": "Ruth"}) == "You met Ruth."
    assert remembered("act", did="You met {facts[name]}.", facts={"name": "Ruth"}) == "You met Ruth."


def test_a_field_that_an_action_has_not_is_reported_when_it_is_declared() -> None:
    @action(did="You ordered {crates}.")
    def order(cases: int) -> None:
        """Order."""

    with pytest.raises(ConfigError, match=r"has a field 'crates'; it may have cases, result, facts"):
        compile_tool(order, 0)


@pytest.mark.parametrize(
    ("sentence", "given", "answer", "ok", "result"),
    [
        ("You answered 3.", "", 3, True, ""),
        ("You answered “I plan to go.”", "", "I plan to go.", True, "Done."),
        ("You answered: 1, 2 and 3.", "", [1, 2, 3], True, None),
        ("You caught 3 tons.", "", 3, True, "You caught 3 tons."),
        ("You said you would catch 1 ton.", "You said you would catch {answer:ton}.", 1, True, ""),
        ("You asked for $2.50.", "You asked for ${price:.2f}.", {"price": 2.5}, True, ""),
        ("You wanted to answer 3, but it is closed.", "", 3, False, "It is closed"),
        ("You wanted to bid 3, but it is closed.", "You bid {answer}.", 3, False, "it is closed."),
    ],
)
def test_answers_are_remembered_as_sentences(sentence, given, answer, ok, result) -> None:
    assert answer_text(given, Outcome(1, "answer", {"answer": answer}, ok, result)) == sentence


VERBS = (
    "order move stop carry trade create visit hire share offer join explain close raise like hope tell go argue decide "
    "avoid handle purchase vote ask use invest produce announce harvest rest place chase pass sign try buy sell stay"
)


@pytest.mark.parametrize("verb", VERBS.split())
def test_verbs_are_found_again_from_their_past_tense(verb) -> None:
    assert infinitive_of(past_of(verb), ()) == verb
