"""A reply is read however it is sent: as JSON, as events, as lines, with marks around it; what is cut is no reply."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.errors import BadReply
from mesa_llm.llm.openai.reply import read_reply
from mesa_llm.llm.openai.response_body import Cut, parse
from mesa_llm.records import Reply, ToolCall
from tests.honest_reply import completion
from tests.llm.human.questions import ACTIONS, ask

ASKED = ask(tools=ACTIONS)
WHOLE = json.dumps(completion("Yes.", body={"model": "tiny"}))
YES = read_reply(json.loads(WHOLE), ASKED)


def chunk(finish: str | None = None, usage: dict[str, int] | None = None, **delta: Any) -> str:
    body = {"model": "tiny", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return json.dumps(body | ({"usage": usage} if usage else {}))


def call(index: int | None, name: str | None, arguments: str, **fields: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return {**({} if index is None else {"index": index}), **fields, "function": function}


def events(*data: str, end: str = "\n\n", last: str = "data: [DONE]\n\n") -> bytes:
    return (": keep-alive" + end + "".join(f"data: {one}{end}" for one in data) + last).encode()


def read(body: bytes) -> Reply:
    return read_reply(parse(body), ASKED)


@pytest.mark.parametrize(
    "before", ["", "\ufeff", "\n \r\n", ": PROCESSING\n\n: PROCESSING\n\n", "data: ", "event: message\ndata:"]
)
@pytest.mark.parametrize("after", ["", "\n", "\n\ndata: [DONE]\n\n", "\r\n\r\ndata: [DONE]", "\n[DONE]", "\n: bye\n"])
def test_json_is_read_whatever_stands_around_it(before: str, after: str) -> None:
    assert read(f"{before}{WHOLE}{after}".encode()) == YES


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
    reply = read(events(*deltas, chunk("tool_calls"), json.dumps({"choices": [], "usage": usage}), end=end))
    assert (reply.text, reply.reasoning, reply.finish, reply.model) == ("I go.", "Hm.", "tool_calls", "tiny")
    assert reply.tool_calls == (ToolCall("walk", {"metres": 3}, "a"), ToolCall("rest", {}, "b"))
    assert (reply.prompt_tokens, reply.reply_tokens) == (12, 5)


def test_calls_without_an_index_or_all_of_the_same_are_told_apart() -> None:
    bare = [call(None, "walk", '{"metres": 1}'), call(None, "walk", '{"metres": 2}')]
    zeros = [call(0, "walk", '{"metres": 1}', id="a"), call(0, "walk", '{"metres": 2}', id="b")]
    for calls in (bare, zeros):
        reply = read(events(*(chunk(tool_calls=[one]) for one in calls), chunk("stop")))
        assert [one.arguments["metres"] for one in reply.tool_calls] == [1, 2]


def test_lines_as_ollama_streams_them_are_read() -> None:
    parts = [
        {"content": "Ye"},
        {"content": "s.", "thinking": "Hm."},
        {"content": "", "tool_calls": [call(None, "rest", "{}")]},
    ]
    lines = [{"model": "tiny", "message": {"role": "assistant", **part}, "done": False} for part in parts]
    last = {"model": "tiny", "message": {"content": ""}, "done": True, "done_reason": "length", "prompt_eval_count": 7}
    reply = read("\n".join(map(json.dumps, [*lines, last])).encode())
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
        read("".join(parts).encode())
