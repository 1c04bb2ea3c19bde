"""What an endpoint refuses is learned once; then one request is enough, and says all that the first one said."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from mesa_llm.errors import Refused
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.openai.dialect import Dialect
from mesa_llm.llm.openai.errors import ErrorDetail
from mesa_llm.llm.openai.request import Writer
from mesa_llm.records import ChatMessage, Reply, Request, ToolCall
from tests.faulty_server import Fault, FaultyServer, refused
from tests.llm.human.questions import ACTIONS, TOOLS, VOTE, ask
from tests.llm.openai.strict_server import (
    json_has_to_be_mentioned,
    nine_characters,
    no_both,
    no_field,
    no_format,
    no_keyword,
    no_system,
    no_value,
    one_system_at_the_front,
    only_users_and_assistants,
    roles_of,
    strict,
    taking_turns,
    texts_of,
)

CALL = ChatMessage("assistant", "", (ToolCall("look_up", {"word": "é"}, "call_0"),))
TALK = (
    ChatMessage("system", "You live in a village."),
    ChatMessage("system", "You are Ann."),
    ChatMessage("assistant", "Good morning."),
    ChatMessage("user", "It rains."),
    ChatMessage("user", "You can look a word up."),
    CALL,
    ChatMessage("tool", "a letter", call_id="call_0"),
    ChatMessage("user", "Now decide."),
)
SETTINGS = {"temperature": 0.7, "top_p": 0.9, "max_tokens": 50, "reasoning_effort": "low", "stop": ["\n"]}
FULL = ask(*TALK, tools=(*ACTIONS, TOOLS["look_up"]), schema=VOTE, settings=SETTINGS | {"parallel_tool_calls": False})
TURNS = "Conversation roles must alternate user/assistant/user/assistant/..."


def asked(behave: Any, *requests: Request) -> tuple[list[Any], FaultyServer]:
    """Ask one request after another; give the replies, or what was raised in their place, and the server."""

    async def ask_all(url: str) -> list[Any]:
        llm = OpenAIHTTP("tiny", url)
        replies = [(await asyncio.gather(llm.reply(request), return_exceptions=True))[0] for request in requests]
        await llm.close()
        return replies

    with FaultyServer(behave) as server:
        return asyncio.run(ask_all(server.url)), server


DIALECTS = [
    (no_system(),),
    (no_system("Developer instruction is not enabled for models/gemma-3-27b-it"),),
    (no_system("Unsupported value: 'messages[0].role' does not support 'system' with this model.", 500),),
    (no_system('messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter'),),
    (no_system("messages[0]: unknown variant `system`, expected one of `user`, `assistant`, `tool`", 422),),
    (one_system_at_the_front,),
    (taking_turns(TURNS),),
    (taking_turns("Please ensure that multiturn requests alternate between user and model."), no_system()),
    (taking_turns(f"Error rendering prompt with jinja template: {TURNS}", 500),),
    (no_system(TURNS), taking_turns(TURNS)),
    (only_users_and_assistants, taking_turns(TURNS), no_field("tools", "this model does not support tools")),
    (no_format("json_schema", "This response_format type is unavailable now"), json_has_to_be_mentioned),
    (no_format("json_schema", "Unknown response_format type"), no_format("json_object", "response_format: invalid")),
    (json_has_to_be_mentioned,),
    (
        no_value("tool_choice", "required", "tool_choice: only 'auto' and 'none' are supported"),
        no_field("seed", "seed"),
    ),
    (no_field("tools", '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),),
    (no_field("tools", "registry.ollama.ai/library/gemma:2b does not support tools"), taking_turns(TURNS)),
    (no_field("parallel_tool_calls", "Unknown parameter: 'parallel_tool_calls'.", param="parallel_tool_calls"),),
    (no_field("stream", "[{'loc': ['body', 'stream'], 'msg': 'Extra inputs are not permitted'}]", 422),),
    (no_field("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),),
    (no_value("temperature", 0.7, "'temperature' does not support 0.7 with this model. Only 1 is supported."),),
    (
        no_field("top_p", "`top_p` cannot be specified"),
        no_field("stop", "Unsupported parameter: 'stop'"),
    ),
    (no_field("reasoning_effort", "Unrecognized request argument supplied: reasoning_effort"),),
    (no_keyword("minimum", "Invalid schema for function 'walk': 'minimum' is not permitted"),),
    (no_keyword("additionalProperties", "Unknown name \"additionalProperties\" at 'tools[0]': Cannot find field."),),
    (
        no_keyword("maxLength", "Unsupported keyword: maxLength"),
        no_keyword("enum", "enum is not supported"),
    ),
    (no_keyword("maximum", "Failed to compile the JSON schema to a grammar"),),
    (nine_characters,),
    (no_system("input.messages[0].role must be one of ['user', 'assistant', 'tool']"),),
    (no_field("parallel_tool_calls", "parallel_tool_calls is not supported"),),
    (no_field("reasoning_effort", '"tiny" does not support thinking'),),
    (no_field("tools", "Unsupported parameter: tools"), no_format("json_schema", "json_schema is not supported")),
    (no_both("Cannot use custom grammar constraints with tools."),),
    (no_both("Function calling with a response mime type: 'application/json' is unsupported"),),
]


@pytest.mark.parametrize("rules", DIALECTS)
def test_after_one_decision_each_takes_one_request(rules: Any) -> None:
    replies, server = asked(strict(*rules), FULL, FULL, ask(*TALK[-1:], schema=VOTE), ask(tools=ACTIONS))
    assert all(isinstance(reply, Reply) for reply in replies)
    assert [reply.attempts for reply in replies[1:2]] == [1]
    assert server.count <= 1 + 4 + 2 * len(rules)


@pytest.mark.parametrize("rules", DIALECTS)
def test_nothing_that_was_said_is_lost(rules: Any) -> None:
    _, server = asked(strict(*rules), FULL)
    text = json.dumps(server.last, ensure_ascii=False)
    for said in ("You live in a village.", "You are Ann.", "Good morning.", "It rains.", "a letter", "Now decide."):
        assert text.count(said) == 1
    for form in ("Walk on.", "Who is talked to", "look_up", "Green", "score"):
        assert form in text


def test_what_one_request_learned_another_in_flight_keeps() -> None:
    rules = strict(no_system(), no_format("json_schema", "response_format?"), no_field("tools", "no tools"))

    async def at_once(url: str) -> int:
        llm = OpenAIHTTP("tiny", url)
        requests = [ask(schema=VOTE, agent=agent) for agent in range(8)] + [ask(agent=agent) for agent in range(8, 16)]
        await asyncio.gather(*map(llm.reply, requests))
        n_first = server.count
        await asyncio.gather(*map(llm.reply, requests))
        await llm.close()
        return server.count - n_first

    with FaultyServer(rules, latency_s=0.01) as server:
        assert asyncio.run(at_once(server.url)) == 16


def test_of_requests_that_are_refused_together_one_learns_the_rest() -> None:
    rules = strict(no_system(), no_field("tools", "no support for tools"), no_field("seed", "unknown: seed"))

    async def at_once(url: str) -> None:
        llm = OpenAIHTTP("tiny", url)
        await asyncio.gather(*(llm.reply(ask(tools=ACTIONS, agent=agent)) for agent in range(10)))
        await llm.close()

    with FaultyServer(rules, latency_s=0.01) as server:
        asyncio.run(at_once(server.url))
    assert server.count == 10 + 2 + 10


def test_the_form_is_described_in_the_first_message_where_no_schema_holds() -> None:
    rules = strict(no_format("json_schema", "This response_format type is unavailable now"), json_has_to_be_mentioned)
    replies, server = asked(rules, ask(schema=VOTE), ask(schema=VOTE))
    assert [reply.attempts for reply in replies] == [2, 1]
    first = server.last["messages"][0]["content"]
    assert (
        'JSON object, and nothing before or after it: {"vote": "Green" or "Oil", "score": a whole number from 1 to 5}'
        in (first)
    )


def test_a_form_that_is_accepted_and_ignored_is_described_from_then_on(caplog: pytest.LogCaptureFixture) -> None:
    replies, server = asked(lambda body, number: "I like Green.", *[ask(schema=VOTE)] * 3)
    assert [reply.attempts for reply in replies] == [1, 1, 1]
    assert ["Green" in texts_of(request.body["messages"]) for request in server.requests] == [False, True, True]
    assert len(caplog.records) == 1


def test_ignored_tools_are_described_and_enforced_by_schema() -> None:
    call = '{"action": "rest", "arguments": {}}'
    replies, server = asked(
        lambda body, number: call if "response_format" in body else "I rest.", *[ask(tools=ACTIONS)] * 3
    )
    assert [reply.text for reply in replies] == ["I rest.", call, call]
    assert "tools" not in server.last
    offers = server.last["response_format"]["json_schema"]["schema"]["anyOf"]
    assert [offer["properties"]["action"] for offer in offers] == [{"enum": [tool.name]} for tool in ACTIONS]


def test_keywords_that_are_left_out_are_stated_in_words() -> None:
    rule = no_keyword("maximum", "Invalid JSON payload received. Unknown name \"maximum\" at 'tools[0].parameters'")
    (reply,), server = asked(strict(rule), ask(tools=ACTIONS))
    assert reply.attempts == 2
    assert "walk(metres?: a whole number from 1 to 9)" in server.last["messages"][0]["content"]
    assert '"minimum": 1' in json.dumps(server.last["tools"])


def test_system_text_is_merged_into_the_first_user_message() -> None:
    replies, server = asked(strict(no_system(), taking_turns(TURNS)), ask(*TALK))
    assert roles_of(server.last) == ["user", "assistant", "user", "assistant", "tool", "user"]
    assert server.last["messages"][0]["content"] == "You live in a village.\n\nYou are Ann."
    assert server.last["messages"][2]["content"] == "It rains.\n\nYou can look a word up."
    assert isinstance(replies[0], Reply)


def test_an_endpoint_that_only_streams_is_read() -> None:
    def behave(body: dict[str, Any], number: int) -> Fault:
        if not body["stream"]:
            return refused(400, "This model only support stream mode, please enable the stream parameter.")
        chunk = {"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]}
        return Fault(body=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

    replies, _ = asked(behave, ask(), ask())
    assert [(reply.text, reply.attempts) for reply in replies] == [("Yes.", 2), ("Yes.", 1)]


def test_a_temperature_of_zero_stays_cold() -> None:
    rule = no_value("temperature", 0, "`temperature` (=0.0) has to be a strictly positive float")
    _, server = asked(strict(rule), ask(settings={"temperature": 0}))
    assert server.last["temperature"] == 0.01


@pytest.mark.parametrize(
    ("words", "room"),
    [
        ("max_tokens is too large: 2000. This model supports at most 1024 completion tokens", 1024),
        (
            "This model's maximum context length is 2048 tokens. However, you requested 2500 tokens "
            "(500 in the messages, 2000 in the completion). Please reduce the length of the messages or completion.",
            1548,
        ),
    ],
)
def test_a_reply_is_asked_for_no_longer_than_there_is_room(words: str, room: int) -> None:
    def behave(body: dict[str, Any], number: int) -> Fault | None:
        return refused(400, words) if body["max_tokens"] > room else None

    replies, server = asked(behave, *[ask(settings={"max_tokens": 2000})] * 2)
    assert [reply.attempts for reply in replies] == [2, 1]
    assert server.last["max_tokens"] == room


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 2048 tokens. However, you requested 2500 tokens (2000 in max_tokens).",
        "The prompt is too long: it exceeds the context window, with tools and response_format",
        "your request was flagged",
    ],
)
def test_what_no_other_form_can_mend_is_refused_at_once(words: str) -> None:
    (error,), server = asked(lambda body, number: refused(400, words), FULL)
    assert (isinstance(error, Refused), server.count) == (True, 1)


def test_an_endpoint_that_refuses_everything_comes_to_an_end() -> None:
    words = "Unsupported: response_format, tool_choice, seed, top_p, 'minimum', tools, system, roles must alternate"
    (error,), server = asked(lambda body, number: refused(400, words), FULL)
    assert isinstance(error, Refused)
    assert server.count < 25


def test_what_is_learned_is_said_once_in_plain_words(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    asked(strict(no_system()), ask(), ask())
    assert [record.getMessage().rpartition("; ")[2] for record in caplog.records] == [
        "from now on, system text goes into the first user message"
    ]


@pytest.mark.parametrize("keyword", ["$defs", "oneOf", "const", "discriminator", "anyOf", "pattern", "format"])
def test_a_schema_without_a_keyword_can_still_be_read_as_a_schema(keyword: str) -> None:
    cat = {"type": "object", "properties": {"kind": {"const": "cat"}, "born": {"type": "string", "format": "date"}}}
    dog = {"type": "object", "properties": {"kind": {"const": "dog"}, "tag": {"type": "string", "pattern": "^x"}}}
    animals = {"oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}], "discriminator": {"propertyName": "kind"}}
    fields = {"pet": animals, "name": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
    schema = {"type": "object", "properties": fields, "$defs": {"Cat": cat, "Dog": dog}}
    body = json.loads(Writer("tiny").write(ask(schema=schema), Dialect(keywords=frozenset({keyword}))))
    assert f'"{keyword}"' not in json.dumps(body["response_format"])
    assert all(
        word in body["messages"][0]["content"] for word in ('"cat"', '"dog"', "YYYY-MM-DD", "^x", "text or null")
    )


def test_a_refusal_that_names_an_english_word_is_no_refusal_of_a_keyword() -> None:
    body = json.loads(Writer("tiny").write(ask(schema=VOTE), Dialect()))
    detail = ErrorDetail("the maximum number of schemas is reached", "")
    assert Dialect().without(detail, body) is None


LITTLE = {"temperature": 0.7, "top_p": 0.9, "stop": ["\n"], "seed": 3, "n": 1, "user": "me", "reasoning_effort": "low"}
NAMED = [
    ("temperature", "`temperature` is deprecated for this model.", {}),
    ("temperature", "temperature has been removed for this model", {}),
    ("temperature", "The temperature parameter went away in this version", {}),
    ("temperature", "Please do not set temperature.", {}),
    ("temperature", "Request contains an invalid argument", {"param": "generationConfig.temperature"}),
    ("temperature", "bad", {"details": [{"fieldViolations": [{"field": "generationConfig.temperature"}]}]}),
    ("top_p", "topP is obsolete here", {}),
    ("top_p", "nope", {"param": "top_p"}),
    ("top_p", "Extra inputs are forbidden", {"loc": ["body", "top_p"]}),
    ("stop", "This model takes no stop sequences; the parameter stop went away", {}),
    ("seed", "seed: gone", {}),
    ("n", "the parameter n is fixed", {}),
    ("user", "Unknown parameter: 'user'", {}),
    ("reasoning_effort", "reasoning_effort retired", {}),
    ("temperature", "\u53c2\u6570temperature\u65e0\u6548", {}),
    ("stop", "\u4e0d\u8bc6\u522b\u7684\u5b57\u6bb5 stop", {}),
    ("temperature", "extraneous key [temperature]", {}),
    ("top_p", "Bad request", {"errors": [{"pointer": "#/top_p"}]}),
    ("seed", "no others", {"params": {"additionalProperty": "seed"}}),
]


@pytest.mark.parametrize(("name", "words", "fields"), NAMED)
def test_a_setting_is_left_out_by_whatever_names_it(name: str, words: str, fields: dict[str, Any]) -> None:
    rule = no_field(name, words, **fields)
    replies, server = asked(strict(rule), *[ask(settings=LITTLE)] * 2)
    assert [getattr(reply, "attempts", reply) for reply in replies] == [2, 1]
    left_out = (LITTLE.keys() | {"seed"}) - server.last.keys()
    assert left_out == {name}


CONTENT = ask(ChatMessage("user", "The temperature is rising, and my stop is closed."), settings=LITTLE)


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("Invalid character in 'The temperature is rising, and my stop'", {}),
        ("A text about the temperature is not what we answer", {}),
        ("bad input", {"param": "messages[0].content.temperature"}),
        ("bad schema", {"loc": ["body", "tools", 0, "function", "parameters", "temperature"]}),
    ],
)
def test_a_refusal_of_what_is_said_changes_no_setting(words: str, fields: dict[str, Any], caplog) -> None:
    behave = lambda body, number: refused(400, words, **fields) if number <= 2 else None  # noqa: E731
    replies, server = asked(behave, CONTENT, CONTENT, CONTENT)
    assert isinstance(replies[0], Refused)
    assert server.last["temperature"] == 0.7
    assert not [record for record in caplog.records if "left out" in record.getMessage()]
