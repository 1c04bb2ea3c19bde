"""What is only mentioned, negated, weighed, taken back or of another scale is no answer, and is never carried out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from mesa_llm import Observation, Reply, ToolCall, action
from mesa_llm.engine.reading.parsing import read, read_answer
from mesa_llm.errors import ParseError
from mesa_llm.records import Decision
from mesa_llm.tools.toolbox import ToolBox
from tests.engine.shapes import SHEET

YES_NO = Literal["yes", "no", "undecided"]
TRADE = Literal["buy", "sell", "hold"]
LIKERT = Literal["strongly disagree", "disagree", "neutral", "agree", "strongly agree"]
LETTER = Literal["A", "B", "C"]
SCALE = Literal[1, 2, 3, 4, 5, 6, 7]
VOTE = Literal[1, -1]
SHARE = Annotated[float, Field(ge=0, le=1)]
AGE = Literal["<18", "18-64", ">65"]

NO_ANSWERS: list[tuple[Any, list[str]]] = [
    (VOTE, ["minus 1", "\u20131", "\u20111", "downvote, minus one (1)"]),
    (SHARE, ["0,75", "1%", "1 percent", "1 in 10", "1/10", '{"answer": 0,75}']),
    (Annotated[int, Field(ge=1)], ["12,000", "12 thousand", "5 (thousand)", "12 000"]),
    (SCALE, ["7/10", "3 out of 10", "6-8", "7 or 8", "more than 4", ">4", "at least 5", "5 years ago I agreed"]),
    (SCALE, ["5? No way.", "Answer: 3\nWait, actually 5.", '{"confidence": 5}', '{"answer": true}', "1 = never"]),
    (AGE, ["18", ">18", "65"]),
    (YES_NO, ["I have no idea.", "Yes, and no.", "No, wait, yes!", "yes/no/undecided", "Would I say yes?"]),
    (TRADE, ["I would not buy", "Buy... never!", "I used to buy", "Should I buy?", "hold on", "too early to sell"]),
    (LIKERT, ["I refuse to agree", "agree or disagree", "Agree - partly", "dis-agree-able", "Bob's answer is agree"]),
    (
        LETTER,
        ["A. Agree\nB. Disagree\nC. Neutral", "Option A or option B", "A good question.", "The worst option is A."],
    ),
    (list[str], ["See reference [1].", '{"answer": "none"}']),
    (SHEET.answer, ["I choose from [1, 2, 3, 4, 5, 6].", '{"1": 4}', "[4, 2, 5]"]),
]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in NO_ANSWERS for text in texts])
def test_what_is_no_answer_is_not_read_as_one(kind, text) -> None:
    with pytest.raises(ParseError, match=r"\w"):
        read_answer(text, kind)


@pytest.mark.parametrize(
    ("kind", "text", "answer"),
    [
        (VOTE, "(-1)", -1),
        (SCALE, "4/7", 4),
        (SCALE, "4 (agree)", 4),
        (SCALE, "I'd say 4.", 4),
        (AGE, "18-64.", "18-64"),
        (YES_NO, "No, I don't think so.", "no"),
        (LIKERT, "I strongly agree.", "strongly agree"),
        (LIKERT, "Agree, because nothing else works.", "agree"),
        (LETTER, "B) London", "B"),
        (LETTER, r"So \boxed{B}", "B"),
        (TRADE, "My decision is: **sell**", "sell"),
        (list[str], "1. apples\n2. pears", ["apples", "pears"]),
    ],
)
def test_what_gives_an_answer_is_read_as_it(kind, text, answer) -> None:
    assert read_answer(text, kind) == answer


class Town:
    name = "town"

    @action
    def follow(self, agent_id: int, user: str) -> str:
        """Follow."""
        return ""

    @action
    def unfollow(self, agent_id: int, user: str) -> str:
        """Unfollow."""
        return ""


CALL = '{"action": "follow", "arguments": {"user": "Bob"}}'


@pytest.mark.parametrize(
    "text",
    [
        f'{{"rejected": {CALL}}}',
        f'{{"options": [{CALL}]}}',
        f"I could do {CALL}, but no.",
        f"Bob did {CALL} yesterday.",
        "un-follow(user='Bob')",
        "cancel.follow(user='Bob')",
        "I will not follow(user='Bob').",
        "Bob would follow(user='Bob')",
        "if bored: follow(user='Bob')",
        "# follow(user='Bob')",
        "follow(user='Bob') or unfollow(user='Bob')",
        '{"action": "follow", "arguments": {"user": "Bob Smith"}}',
        '{"action": "follow", "arguments": {"user": "anyone but Bob"}}',
        '{"action": "follow", "tool": "unfollow", "arguments": {"user": "Bob"}}',
        '{"action": "follow", "arguments": {"user": "Bob"}, "parameters": {"user": "Ann"}}',
        '{"name": "follow", "description": "Follow.", "parameters": {"user": "Bob"}}',
    ],
)
def test_a_call_that_is_only_spoken_of_is_not_made(text) -> None:
    with pytest.raises(ParseError, match=r"\w"):
        read(
            Reply(text), Observation(options={"user": ("Ann", "Bob")}, max_actions=2), ToolBox.of(object(), 1, [Town()])
        )


def test_what_a_model_makes_up_after_its_call_is_not_done() -> None:
    text = f'{CALL}\nObservation: done\n{{"action": "unfollow", "arguments": {{"user": "Bob"}}}}'
    decided = read(Reply(text), Observation(max_actions=2), ToolBox.of(object(), 1, [Town()]))
    assert isinstance(decided, Decision)
    assert decided.actions == (ToolCall("follow", {"user": "Bob"}),)


@pytest.mark.parametrize(
    "text", ['{"a":' * 2000, "[" * 90_000, "\n" * 90_000, '{"answer": "' + "\n" * 90_000 + "a", "<think>" * 9000]
)
def test_no_reply_takes_long_or_raises_anything_else(text) -> None:
    for kind in (YES_NO, SHEET.answer, list[str]):
        with pytest.raises(ParseError, match=r"\w"):
            read_answer(text, kind)
