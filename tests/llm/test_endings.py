"""How a reply ended is told from every word of the field for it."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm.errors import ServerError
from mesa_llm.llm.endings import CUT, DECLINED, FILTERED, INTERRUPTED, MALFORMED, ending_in, ending_of
from mesa_llm.llm.openai.reply import read_reply
from tests.llm.human.questions import ask

WORDS = {
    CUT: ("length", "MAX_TOKENS", "max_output_tokens", "model_length", "model_context_window_exceeded"),
    FILTERED: ("content_filter", "SAFETY", "RECITATION", "content_filter: PROHIBITED_CONTENT", "refusal", "sensitive"),
    INTERRUPTED: ("error", "insufficient_system_resource", "network_error", "abort", "OTHER"),
    MALFORMED: ("MALFORMED_FUNCTION_CALL", "function_call_filter: UNEXPECTED_TOOL_CALL", "malformed_tool_use"),
}


@pytest.mark.parametrize(("ending", "word"), [(ending, word) for ending, words in WORDS.items() for word in words])
def test_each_word_for_an_ending_is_known(ending: str, word: str) -> None:
    assert ending_in(word) == ending


@pytest.mark.parametrize("word", ["stop", "tool_calls", "end_turn", "eos", "COMPLETE", "function_call"])
def test_a_reply_that_ended_by_itself_keeps_its_word(word: str) -> None:
    assert ending_in(word) == word


@pytest.mark.parametrize(
    "fields",
    [
        {"finish_reason": "stop", "native_finish_reason": "SAFETY"},
        {"finish_reason": "stop", "provider_specific_fields": {"native_finish_reason": "refusal"}},
        {"finish_reason": "stop", "content_filter_results": {"violence": {"filtered": True, "severity": "high"}}},
        {"finish_reason": {"type": "content_filter"}},
    ],
)
def test_what_stands_beside_the_reason_counts_too(fields: dict[str, Any]) -> None:
    assert ending_of(fields, {}) == FILTERED


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"finish_reason": "content_filter: PROHIBITED_CONTENT", "index": 0}]},
        {"choices": [], "promptFeedback": {"blockReason": "SAFETY"}},
        {"choices": [{"finish_reason": "content_filter", "message": {"content": None}}]},
    ],
)
def test_a_reply_that_was_withheld_is_a_filtered_one(body: dict[str, Any]) -> None:
    assert (read_reply(body, ask()).finish, read_reply(body, ask()).text) == (FILTERED, "")


def test_a_field_for_refusals_is_the_models_own() -> None:
    body = {"choices": [{"finish_reason": "stop", "message": {"content": None, "refusal": "I won't."}}]}
    assert read_reply(body, ask()).finish == DECLINED


def test_a_reply_that_broke_off_is_trouble_of_the_server() -> None:
    message = {"content": None, "tool_calls": [{"function": {"name": "rest", "arguments": "{}"}}]}
    with pytest.raises(ServerError, match="in the middle of its reply"):
        read_reply({"choices": [{"finish_reason": "error", "message": message}]}, ask())
