"""A request is written in OpenAI's form, or in as much of it as an endpoint knows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mesa_llm.config import Settings
from mesa_llm.llm.openai.dialect import Dialect
from mesa_llm.llm.openai.errors import ErrorDetail
from mesa_llm.llm.openai.form import description_of
from mesa_llm.llm.openai.request import Writer
from mesa_llm.records import ChatMessage, Request, ToolCall, ToolSpec
from tests.llm.human.questions import ACTIONS, TOOLS, VOTE, ask

LOOSE = {"type": "object", "properties": {"vote": {"type": "string"}}}
SETTINGS = {"temperature": 0.3, "max_tokens": 50}


def written(request: Request, dialect: Dialect | None = None) -> dict[str, Any]:
    return json.loads(Writer("tiny").write(request, dialect or Dialect()))


def test_a_plain_request_holds_model_messages_settings_and_seed() -> None:
    request = ask(settings=SETTINGS)
    assert written(request) == {
        "model": "tiny",
        "stream": False,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        "temperature": 0.3,
        "max_tokens": 50,
        "seed": request.salt.seed,
    }


def test_a_seed_or_a_model_of_the_users_own_goes_first() -> None:
    body = written(ask(settings={"seed": 7, "model": "tiny-lora"}))
    assert (body["seed"], body["model"]) == (7, "tiny-lora")


def test_calls_and_their_answers_are_written_back() -> None:
    message = ChatMessage("assistant", "", (ToolCall("look_up", {"word": "é"}, "c1"),))
    messages = written(ask(message, ChatMessage("tool", "a letter", call_id="c1")))["messages"]
    assert messages[0]["tool_calls"][0]["id"] == messages[1]["tool_call_id"] == "c1"
    assert json.loads(messages[0]["tool_calls"][0]["function"]["arguments"]) == {"word": "é"}


@pytest.mark.parametrize(
    ("tools", "schema", "choice"),
    [
        (ACTIONS, None, "required"),
        (ACTIONS, VOTE, "required"),
        ((TOOLS["look_up"],), None, "required"),
        ((TOOLS["look_up"],), VOTE, "auto"),
    ],
)
def test_a_tool_must_be_called_unless_a_schema_can_be_answered(tools: Any, schema: Any, choice: str) -> None:
    body = written(ask(tools=tools, schema=schema))
    assert body["tool_choice"] == choice
    assert body["tools"] == [tool.wire for tool in tools]


def test_tools_that_change_between_requests_are_written_anew() -> None:
    writer = Writer("tiny")
    for tools in (ACTIONS, ACTIONS[:1], ACTIONS):
        assert json.loads(writer.write(ask(tools=tools), Dialect()))["tools"] == [tool.wire for tool in tools]


@pytest.mark.parametrize(("schema", "is_strict"), [(VOTE, True), (LOOSE, False)])
def test_a_schema_is_strict_where_it_leaves_nothing_open(schema: dict[str, Any], is_strict: bool) -> None:
    response_format = written(ask(schema=schema))["response_format"]
    assert response_format == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": is_strict},
    }


def test_a_simple_dialect_writes_less() -> None:
    request = ask(tools=ACTIONS, schema=VOTE, settings=SETTINGS)
    dialect = Dialect("none", "none", omitted=frozenset({"seed", "stream"}), length="max_completion_tokens")
    assert sorted(written(request, dialect)) == ["max_completion_tokens", "messages", "model", "temperature", "tools"]
    assert written(request, Dialect("object", "auto"))["response_format"] == {"type": "json_object"}


def test_without_tool_calls_the_choice_is_told_in_words() -> None:
    body = written(ask(tools=ACTIONS), replace(Dialect(), tools=False))
    assert "tools" not in body
    text = body["messages"][0]["content"]
    assert all(tool.name in text and tool.description in text for tool in ACTIONS)
    assert '{"action"' in text


def test_several_actions_are_asked_for_as_parallel_calls_or_as_a_list() -> None:
    request, refusing = ask(tools=ACTIONS, max_actions=3), Dialect(omitted=frozenset({"parallel_tool_calls"}))
    assert written(request)["parallel_tool_calls"] is True
    assert "parallel_tool_calls" not in written(ask(tools=ACTIONS))
    for dialect in (refusing, Dialect(tools=False)):
        body = written(request, dialect)
        assert "tools" not in body
        assert "parallel_tool_calls" not in body
        assert body["response_format"]["json_schema"]["schema"]["properties"]["actions"]["maxItems"] == 3
        assert '{"actions": [{"action": name' in body["messages"][0]["content"]
    assert "up to 3 times" in written(request, Dialect(choice="none"))["messages"][0]["content"]


def test_bounds_are_written_as_a_person_does() -> None:
    def words(**bounds: float) -> str:
        return description_of({"type": "number", **bounds})

    assert words(minimum=0, maximum=1e12) == "a number of at least 0"
    assert words(minimum=0.5, maximum=25000.0) == "a number from 0.5 to 25,000"
    assert words(exclusiveMinimum=-1e12, maximum=1000.0) == "a number of at most 1,000"


RATE = ToolSpec(
    "rate",
    "Rate a post.",
    {
        "type": "object",
        "properties": {
            "post_id": {"type": "integer", "exclusiveMinimum": 0, "description": "Its number."},
            "others": {"type": "array", "items": {"type": "integer"}},
            "as_user": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        },
        "required": ["post_id"],
        "additionalProperties": False,
    },
    is_action=True,
)
HIDE = ToolSpec("hide", "Hide a post.", RATE.parameters, is_action=True)


def properties(body: dict[str, Any]) -> dict[str, Any]:
    return {tool["function"]["name"]: tool["function"]["parameters"]["properties"] for tool in body["tools"]}


def test_the_values_that_arguments_may_take_now_are_sent_as_enums() -> None:
    options = {"post_id": (3, 5), "others": (7,), "as_user": (1, 2)}
    schema = properties(written(ask(tools=(RATE,), options=options)))["rate"]
    assert schema["post_id"] == {"type": "integer", "description": "Its number.", "enum": [3, 5]}
    assert schema["others"]["items"] == {"enum": [7], "type": "integer"}
    assert schema["as_user"]["anyOf"] == [{"enum": [1, 2]}, {"type": "null"}]


def test_options_of_one_action_leave_the_argument_of_that_name_in_others_alone() -> None:
    schemas = properties(written(ask(tools=(RATE, HIDE), options={"hide.post_id": (9,), "post_id": (3, 5)})))
    assert (schemas["rate"]["post_id"]["enum"], schemas["hide"]["post_id"]["enum"]) == ([3, 5], [9])
    schemas = properties(written(ask(tools=(RATE, HIDE), options={"hide.post_id": (9,)})))
    assert schemas["rate"] == RATE.parameters["properties"]


def test_one_writer_sends_each_request_its_own_values() -> None:
    writer = Writer("tiny")
    for ids in ((1,), (2, 3), ("\0post_id\0", "é")):
        body = json.loads(writer.write(ask(tools=(RATE,), options={"post_id": ids}), Dialect()))
        assert properties(body)["rate"]["post_id"]["enum"] == list(ids)


def test_what_needs_a_value_and_has_none_is_not_offered() -> None:
    body = written(ask(tools=(RATE, TOOLS["look_up"]), options={"post_id": ()}))
    assert [tool["function"]["name"] for tool in body["tools"]] == ["look_up"]


def test_a_model_without_tool_calls_reads_the_values() -> None:
    request = ask(tools=(RATE,), options={"post_id": (3, 5)})
    assert "post_id: 3 or 5" in written(request, Dialect(tools=False))["messages"][0]["content"]


def test_how_much_to_reason_is_asked_for_until_an_endpoint_rejects_it() -> None:
    request = ask(settings=Settings(reasoning_effort="low").sent)
    assert written(request)["reasoning_effort"] == "low"
    unknown = ErrorDetail("Unrecognized request argument supplied: reasoning_effort", "")
    assert "reasoning_effort" not in written(request, Dialect().without(unknown, written(request)))
