"""Whatever an endpoint sends is read as a reply or refused as none; nothing in it is believed unseen."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.engine.reading.parsing import read
from mesa_llm.errors import BadReply, ParseError
from mesa_llm.llm.lenient_json import UNREAD
from mesa_llm.llm.openai.reply import MAX_CALLS, MAX_REASONING, Cut, parse, read_reply
from mesa_llm.records import Observation, Reply, ToolCall
from mesa_llm.tools.toolbox import ToolBox
from tests.honest_reply import completion
from tests.llm.human.questions import ACTIONS, ask
from tests.pot import Pot

ASKED = ask(tools=ACTIONS)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)

WHOLE = json.dumps(completion("Yes.", body={"model": "tiny"}))
YES = read_reply(json.loads(WHOLE), ASKED)


def message(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": fields, "finish_reason": "stop"}]}


def test_an_honest_reply_is_read_whole() -> None:
    body = completion("I walk.", [("walk", '{"metres": 3}')], prompt_tokens=12, completion_tokens=5, cost=0.002)
    reply = read_reply(body, ASKED, 0.5)
    assert (reply.text, reply.tool_calls) == ("I walk.", (ToolCall("walk", {"metres": 3}, "call_0"),))
    assert (reply.prompt_tokens, reply.reply_tokens, reply.dollars) == (12, 5, 0.002)
    assert (reply.finish, reply.latency_s, reply.attempts) == ("tool_calls", 0.5, 1)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ([], "no `choices`"),
        ({"choices": []}, "no `choices`"),
        ({"choices": [None]}, "no `message`"),
        ({"choices": [{"message": "hi"}]}, "no `message`"),
        (message(content=42), "content is a int"),
        (message(content=None, tool_calls="walk()"), "`tool_calls` is a str"),
        (message(content=None, tool_calls=[{"function": {"name": 3}}]), "names no tool"),
    ],
)
def test_what_holds_nothing_usable_is_no_reply(body: Any, reason: str) -> None:
    with pytest.raises(BadReply, match=reason):
        read_reply(body, ASKED)


@pytest.mark.parametrize(
    ("content", "text"),
    [(None, ""), ("", ""), ([{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}], "ab")],
)
def test_content_comes_in_several_forms(content: Any, text: str) -> None:
    assert read_reply(message(content=content), ASKED).text == text


@pytest.mark.parametrize(
    "thought",
    [
        {"type": "thinking", "thinking": "Hm, 42?"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, 42?"}]},
        {"type": "reasoning", "text": "Hm, 42?"},
        {"text": "Hm, 42?", "thought": True},
    ],
)
def test_a_part_that_holds_reasoning_is_kept_apart(thought: dict[str, Any]) -> None:
    reply = read_reply(message(content=[thought, {"type": "text", "text": "Yes."}]), ASKED)
    assert (reply.text, reply.reasoning) == ("Yes.", "Hm, 42?")


@pytest.mark.parametrize("finish", ["length", "stop"])
def test_reasoning_alone_is_no_text(finish: str) -> None:
    details = [{"type": "reasoning.text", "text": "Hm, 42?"}]
    choice = {"message": {"content": None, "tool_calls": None, "reasoning_details": details}, "finish_reason": finish}
    reply = read_reply({"choices": [choice]}, ASKED)
    assert (reply.text, reply.reasoning, reply.finish) == ("", "Hm, 42?", finish)


@pytest.mark.parametrize(
    "fields",
    [
        {"function_call": {"name": "walk", "arguments": '{"metres": 3}'}},
        {"function_call": {"name": "walk", "arguments": {"metres": 3}}, "tool_calls": None},
        {"tool_calls": [{"name": "walk", "arguments": {"metres": 3}}]},
        {"tool_calls": {"function": {"name": "walk", "arguments": '{"metres": 3}'}}},
        {"content": [{"type": "tool_use", "name": "walk", "input": {"metres": 3}}]},
    ],
)
def test_a_call_comes_in_several_forms(fields: dict[str, Any]) -> None:
    assert read_reply(message(**{"content": None, **fields}), ASKED).tool_calls == (ToolCall("walk", {"metres": 3}),)


def test_a_refusal_is_the_text_where_there_is_none() -> None:
    reply = read_reply(message(content=None, refusal="I won't."), ASKED)
    assert (reply.text, reply.finish) == ("I won't.", "refusal")


def test_reasoning_is_not_taken_for_an_answer() -> None:
    assert read_reply(message(content=None, reasoning_content="Hm, 42?"), ASKED).text == ""


@pytest.mark.parametrize("arguments", ['{"neighbour": ', "[1]", "null", "1" * 5000, "[" * 100_000, 3])
def test_a_call_with_unreadable_arguments_is_kept_for_the_model_to_be_told(arguments: Any) -> None:
    body = message(content=None, tool_calls=[{"function": {"name": "talk_to", "arguments": arguments}}])
    (call,) = read_reply(body, ASKED).tool_calls
    assert call.arguments.keys() <= {UNREAD}


def test_an_action_that_needs_no_arguments_never_runs_on_unreadable_ones() -> None:
    call = {"function": {"name": "do_nothing", "arguments": '{"metres": '}}
    reply = read_reply(message(content=None, tool_calls=[call]), ASKED)
    with pytest.raises(ParseError, match="arguments are no JSON object"):
        read(reply, Observation(), ToolBox.of(object(), 1, [Pot()]))


@pytest.mark.parametrize("arguments", ["", " ", None, "{}", {}])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    body = message(content=None, tool_calls=[{"function": {"name": "rest", "arguments": arguments}}])
    assert read_reply(body, ASKED).tool_calls == (ToolCall("rest", {}),)


@pytest.mark.parametrize("count", [math.nan, math.inf, -1, 10**30, 1e300, "7", True, None])
def test_a_count_of_tokens_that_is_none_is_zero(count: Any) -> None:
    reply = read_reply(completion("fine", prompt_tokens=count, completion_tokens=count), ASKED)
    assert (reply.text, reply.prompt_tokens, reply.reply_tokens) == ("fine", 0, 0)


@pytest.mark.parametrize("cost", [math.nan, math.inf, -0.1, 1e300, "7", True, None])
def test_a_price_that_is_none_is_unknown(cost: Any) -> None:
    assert read_reply(completion("fine", cost=cost), ASKED).dollars is None


def test_only_so_many_calls_are_read() -> None:
    assert len(read_reply(completion(None, [("rest", "{}")] * 10_000), ASKED).tool_calls) == MAX_CALLS


@given(st.text(st.characters(codec=None), max_size=20))
def test_text_and_arguments_can_always_be_stored(text: str) -> None:
    body = json.loads(json.dumps(completion(text, [("walk", json.dumps({text: [text]}))])))
    reply = read_reply(body, ASKED)
    json.dumps([reply.text, dict(reply.tool_calls[0].arguments)], ensure_ascii=False).encode("utf-8")


@given(body=anything, content=anything, calls=anything, usage=anything)
def test_nothing_an_endpoint_sends_raises_anything_else(body: Any, content: Any, calls: Any, usage: Any) -> None:
    for reply in (body, {"choices": body}, {**message(content=content, tool_calls=calls), "usage": usage}):
        with suppress(BadReply):
            read_reply(reply, ASKED)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_what_a_model_thought_is_kept_in_bounds(field: str) -> None:
    message = {"content": "Yes.", field: "Hm. " * 30_000}
    reply = read_reply({"choices": [{"message": message, "finish_reason": "stop"}]}, ask())
    assert (reply.text, reply.reasoning[:4], len(reply.reasoning)) == ("Yes.", "Hm. ", MAX_REASONING)


@pytest.mark.parametrize("said", ["length", "max_tokens", "MAX_TOKENS"])
def test_a_reply_that_was_cut_says_so_in_one_word(said: str) -> None:
    reply = read_reply({"choices": [{"message": {"content": "Y"}, "finish_reason": said}]}, ask())
    assert reply.finish == "length"


def chunk(finish: str | None = None, usage: dict[str, int] | None = None, **delta: Any) -> str:
    body = {"model": "tiny", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return json.dumps(body | ({"usage": usage} if usage else {}))


def call(index: int | None, name: str | None, arguments: str, **fields: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return {**({} if index is None else {"index": index}), **fields, "function": function}


def events(*data: str, end: str = "\n\n", last: str = "data: [DONE]\n\n") -> bytes:
    return (": keep-alive" + end + "".join(f"data: {one}{end}" for one in data) + last).encode()


def reply_in(body: bytes) -> Reply:
    return read_reply(parse(body), ASKED)


@pytest.mark.parametrize(
    "before", ["", "\ufeff", "\n \r\n", ": PROCESSING\n\n: PROCESSING\n\n", "data: ", "event: message\ndata:"]
)
@pytest.mark.parametrize("after", ["", "\n", "\n\ndata: [DONE]\n\n", "\r\n\r\ndata: [DONE]", "\n[DONE]", "\n: bye\n"])
def test_json_is_read_whatever_stands_around_it(before: str, after: str) -> None:
    assert reply_in(f"{before}{WHOLE}{after}".encode()) == YES


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\n", "\r\r"])
def test_events_add_up_to_the_reply(end: str) -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 5}
    calls = [
        call(0, "walk", "", id="a"),
        call(0, None, '{"metres"'),
        call(1, "rest", "{}", id="b"),
        call(0, None, ": 3}"),
    ]
    deltas = [chunk(role="assistant", content=""), chunk(reasoning_content="Hm"), chunk(reasoning_content=".")]
    deltas += [chunk(content="I "), chunk(content="go."), *(chunk(tool_calls=[one]) for one in calls)]
    reply = reply_in(events(*deltas, chunk("tool_calls"), json.dumps({"choices": [], "usage": usage}), end=end))
    assert (reply.text, reply.reasoning, reply.finish, reply.model) == ("I go.", "Hm.", "tool_calls", "tiny")
    assert reply.tool_calls == (ToolCall("walk", {"metres": 3}, "a"), ToolCall("rest", {}, "b"))
    assert (reply.prompt_tokens, reply.reply_tokens) == (12, 5)


def test_calls_without_an_index_or_all_of_the_same_are_told_apart() -> None:
    bare = [call(None, "walk", '{"metres": 1}'), call(None, "walk", '{"metres": 2}')]
    zeros = [call(0, "walk", '{"metres": 1}', id="a"), call(0, "walk", '{"metres": 2}', id="b")]
    for calls in (bare, zeros):
        reply = reply_in(events(*(chunk(tool_calls=[one]) for one in calls), chunk("stop")))
        assert [one.arguments["metres"] for one in reply.tool_calls] == [1, 2]


def test_lines_as_ollama_streams_them_are_read() -> None:
    parts = [
        {"content": "Ye"},
        {"content": "s.", "thinking": "Hm."},
        {"content": "", "tool_calls": [call(None, "rest", "{}")]},
    ]
    lines = [{"model": "tiny", "message": {"role": "assistant", **part}, "done": False} for part in parts]
    last = {"model": "tiny", "message": {"content": ""}, "done": True, "done_reason": "length", "prompt_eval_count": 7}
    reply = reply_in("\n".join(map(json.dumps, [*lines, last])).encode())
    assert (reply.text, reply.reasoning, reply.finish, reply.prompt_tokens) == ("Yes.", "Hm.", "length", 7)
    assert reply.tool_calls[0].name == "rest"


def test_an_error_amid_the_events_is_the_answer() -> None:
    for error in ({"error": {"message": "overloaded", "code": 529}}, {"message": "overloaded"}):
        assert "overloaded" in json.dumps(parse(events(chunk(content="I wou"), json.dumps(error)))["error"])


@pytest.mark.parametrize(
    "body",
    [
        events(chunk(content="I wou"), last=""),
        events(chunk(content="I"), last='data: {"choices": [{"del'),
        WHOLE[:40].encode(),
    ],
)
def test_what_ends_too_early_is_no_reply(body: bytes) -> None:
    with pytest.raises(Cut):
        parse(body)


@given(
    st.lists(
        st.sampled_from([*WHOLE, "data: ", "[DONE]", "\n", "{", "}", '{"choices":[', WHOLE, chunk(content="x")]),
        max_size=12,
    )
)
def test_any_mixture_is_read_or_refused(parts: list[str]) -> None:
    with suppress(ValueError, RecursionError, BadReply):
        reply_in("".join(parts).encode())
