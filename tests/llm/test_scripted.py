"""Chance draws only what is allowed, by the salt alone; a script answers what it is told to."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mesa_llm.errors import ConfigError, RateLimited, Refused
from mesa_llm.llm.scripted import RandomLLM, ScriptedLLM, call, sample_value
from mesa_llm.records import ChatMessage, Reply, Request, ToolCall
from mesa_llm.tools.toolbox import ToolBox
from tests.llm.human.questions import ACTIONS, TOOLS, VOTE, Village, ask
from tests.llm.schema.test_grammar import schemas_with_numbers


def replied(llm: RandomLLM | ScriptedLLM, request: Request) -> Reply:
    return asyncio.run(llm.reply(request))


@given(schema=schemas_with_numbers, seed=st.integers(0, 99))
def test_a_drawn_value_satisfies_its_schema(schema: dict[str, Any], seed: int) -> None:
    value = sample_value(schema, random.Random(seed))
    jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)


@given(schema=schemas_with_numbers, seed=st.integers(0, 99))
def test_the_same_seed_draws_the_same_value(schema: dict[str, Any], seed: int) -> None:
    assert sample_value(schema, random.Random(seed)) == sample_value(schema, random.Random(seed))


def test_alternatives_are_equally_likely() -> None:
    rng = random.Random(1)
    drawn = Counter(sample_value({"anyOf": [{"enum": ["a"]}, {"enum": ["b", "c"]}]}, rng) for _ in range(2000))
    # Four standard deviations: 4 * sqrt(2000 * 0.5 * 0.5) = 89.
    assert drawn["a"] == pytest.approx(1000, abs=89)


@pytest.mark.parametrize(
    ("kind", "step", "high"),
    [("number", 0.5, 1000), ("number", 0.1, 90), ("number", 7, None), ("integer", 1.5, 9000), ("integer", 7, None)],
)
def test_many_multiples_of_a_step_are_drawn_like_few(kind: str, step: float, high: int | None) -> None:
    bounds = {"exclusiveMinimum": 0} | ({} if high is None else {"exclusiveMaximum": high})
    rng = random.Random(1)
    for _ in range(300):
        value = sample_value({"type": kind, "multipleOf": step, **bounds}, rng)
        assert 0 < value < (high or value + 1)
        assert Fraction(str(value)) % Fraction(str(step)) == 0


def test_numbers_without_bounds_go_from_0_to_100() -> None:
    rng = random.Random(1)
    drawn = [sample_value({"type": "integer"}, rng) for _ in range(500)]
    assert (min(drawn) >= 0, max(drawn) <= 100, len(set(drawn)) > 90) == (True, True, True)


class Order(BaseModel):
    """An order with values that are no plain JSON."""

    day: date
    at: datetime | None
    opening: time
    wait: timedelta
    price: Annotated[Decimal, Field(ge=1, le=5, decimal_places=2)]


@given(st.integers(0, 9999))
def test_dates_times_and_decimals_are_drawn_as_such(seed: int) -> None:
    Order.model_validate(sample_value(Order.model_json_schema(), random.Random(seed)))


def test_a_property_with_options_takes_one_of_them() -> None:
    schema = {"properties": {"to": {"type": "integer"}}, "required": ["to"]}
    assert sample_value(schema, random.Random(1), {"to": (12,)})["to"] == 12
    with pytest.raises(Refused, match="no possible value"):
        sample_value(schema, random.Random(1), {"to": ()})


@given(number=st.integers(0, 10_000))
def test_chance_chooses_actions_that_pass_the_check(number: int) -> None:
    request = ask(number=number, tools=tuple(TOOLS.values()), options={"neighbour": (4, 7)})
    (chosen,) = replied(RandomLLM(), request).tool_calls
    assert TOOLS[chosen.name].is_action
    assert ToolBox.of(object(), 1, [Village()]).check(chosen).arguments.get("neighbour", 4) in (4, 7)


def test_chance_draws_actions_uniformly() -> None:
    drawn = Counter(replied(RandomLLM(), ask(number=n, tools=ACTIONS)).tool_calls[0].name for n in range(900))
    # Four standard deviations: 4 * sqrt(900 * 1/3 * 2/3) = 57.
    assert [drawn[name] for name in ("talk_to", "walk", "rest")] == pytest.approx([300] * 3, abs=57)


def test_chance_depends_on_the_salt_and_not_on_the_prompt() -> None:
    one = replied(RandomLLM(), ask(tools=ACTIONS))
    other = replied(RandomLLM(), ask(ChatMessage("user", "Please rest."), tools=ACTIONS))
    assert one == other


def test_chance_answers_by_the_schema_where_an_answer_is_wanted() -> None:
    reply = replied(RandomLLM(), ask(schema=VOTE, tools=ACTIONS))
    jsonschema.validate(json.loads(reply.text), VOTE)
    assert reply.tool_calls == ()


def test_chance_writes_a_few_words_where_anything_goes() -> None:
    assert 3 <= len(replied(RandomLLM(), ask()).text.split()) <= 8


@pytest.mark.parametrize(
    ("answer", "text", "calls"),
    [
        ("hello", "hello", ()),
        ({"vote": "Oil"}, '{"vote": "Oil"}', ()),
        (ToolCall("rest"), "", (ToolCall("rest"),)),
        (call("walk", metres=2), "", (ToolCall("walk", {"metres": 2}),)),
    ],
)
def test_a_script_answers_in_any_form(answer: Any, text: str, calls: tuple[ToolCall, ...]) -> None:
    reply = replied(ScriptedLLM(lambda _: answer), ask())
    assert (reply.text, reply.tool_calls) == (text, calls)


def test_an_exception_that_a_script_gives_back_is_raised() -> None:
    with pytest.raises(RateLimited, match="slower"):
        replied(ScriptedLLM(lambda _: RateLimited("slower")), ask())


def test_a_script_says_what_it_cannot_answer_with() -> None:
    with pytest.raises(TypeError, match="not int"):
        replied(ScriptedLLM(lambda _: 3), ask())  # type: ignore[arg-type, return-value]


def test_answers_of_a_script_come_in_the_order_of_their_delays() -> None:
    order: list[int] = []
    script = ScriptedLLM(
        lambda request: order.append(request.salt.agent) or "", lambda request: 0.03 / request.salt.agent
    )

    async def both() -> None:
        await asyncio.gather(script.reply(ask(agent=1)), script.reply(ask(agent=3)))

    asyncio.run(both())
    assert order == [3, 1]


def test_a_script_that_is_no_function_is_refused_when_it_is_made() -> None:
    replies: Any = ["go"]
    with pytest.raises(ConfigError, match="takes a function of the request, got \\['go'\\]"):
        ScriptedLLM(replies)
