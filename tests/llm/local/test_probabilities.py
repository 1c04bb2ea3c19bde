"""The embedded model returns the probability of each choice. What it prefers is never looked at."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace
from typing import Literal

import pytest

from mesa_llm.engine.reading.answers import answer_schema
from mesa_llm.llm.local.model import LocalLLM
from mesa_llm.records import Reply, Request
from tests.llm.human.questions import TOOLS, ask

SETTINGS = {"temperature": 0.7, "max_tokens": 40}
VOTE = ask(schema=answer_schema(Literal["cooperate", "defect"]), settings=SETTINGS)
SCALE = ask(schema=answer_schema(Literal[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), settings=SETTINGS)


def replied(llm: LocalLLM, request: Request) -> Reply:
    return asyncio.run(llm.reply(request))


def test_probabilities_do_not_change_the_reply(local: LocalLLM) -> None:
    plain, weighed = (replied(local, replace(VOTE, choices=choices)) for choices in ((), ("cooperate", "defect")))
    assert (plain.text, dict(plain.probabilities)) == (weighed.text, {})
    assert math.fsum(weighed.probabilities.values()) == pytest.approx(1)
    assert 0 < weighed.off_list < 1


def test_probabilities_are_the_same_whatever_was_asked_before(local: LocalLLM) -> None:
    request = replace(VOTE, choices=("cooperate", "defect"))
    first = replied(local, request)
    replied(local, ask(settings=SETTINGS))
    assert replied(local, request).probabilities == first.probabilities


def test_1_and_10_are_told_apart(local: LocalLLM) -> None:
    reply = replied(local, replace(SCALE, choices=tuple(range(1, 11))))
    assert list(reply.probabilities) == [str(number) for number in range(1, 11)]
    assert reply.probabilities["1"] != reply.probabilities["10"]
    assert str(json.loads(reply.text)["answer"]) in reply.probabilities


def test_a_choice_of_actions_has_probabilities_too(local: LocalLLM) -> None:
    reply = replied(local, ask(tools=(TOOLS["walk"], TOOLS["rest"]), choices=("walk", "rest"), settings=SETTINGS))
    assert set(reply.probabilities) == {"walk", "rest"}
    assert reply.tool_calls[0].name in reply.probabilities
