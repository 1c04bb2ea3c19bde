"""The next request brings back what its endpoint wants of the reply before it, as it came, also after a replay."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from mesa_llm.errors import BudgetExceeded
from mesa_llm.llm.openai.dialect import Dialect
from mesa_llm.llm.openai.errors import ErrorDetail
from mesa_llm.llm.openai.reply import parse, read_reply
from mesa_llm.llm.openai.request import Writer
from mesa_llm.records import ChatMessage, ToolCall
from mesa_llm.records.requests import CALLS
from mesa_llm.runlog.tables import reply_of, stored_reply
from tests.faulty_server import FaultyServer
from tests.honest_reply import completion
from tests.llm.human.questions import ask
from tests.llm.openai.thinking_servers import DETAILS, PROVIDERS, SIGNATURE, behaviour, calling
from tests.pot import PotModel


def run(server: FaultyServer, **options: Any) -> PotModel:
    model = PotModel(options.pop("n_agents", 1), f"tiny@{server.url}", rng=1, **options)
    model.step()
    return model


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_round_of_tools_takes_two_requests_at_each_provider(provider: str) -> None:
    with FaultyServer(behaviour(provider)) as server, closing(run(server, n_agents=2)) as model:
        assert (model.coins, model.usage.failures, server.count) == (6, 0, 4)


@pytest.mark.parametrize("provider", ["Gemini", "DeepSeek", "Kimi", "Anthropic", "OpenRouter"])
def test_where_a_reply_had_nothing_to_bring_back_calls_are_written_as_messages(provider: str) -> None:
    with FaultyServer(behaviour(provider, loses=True)) as server, closing(run(server)) as model:
        assert (model.coins, model.usage.failures, server.count) == (3, 0, 3)
        assert {message["role"] for message in server.last["messages"]} <= {"system", "user", "assistant"}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_run_that_ended_between_two_requests_goes_on_with_the_same_one(provider: str, tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    with FaultyServer(behaviour(provider)) as server:
        first = PotModel(1, f"tiny@{server.url}", rng=1, log=log, max_calls=1)
        with closing(first), pytest.raises(BudgetExceeded):
            first.step()
        with closing(run(server, log=log)) as model:
            assert (model.coins, server.count, model.usage.replayed) == (3, 2, 1)
            digest = model.runlog.digest
        with closing(run(server, log=log, replay=True)) as model:
            assert (model.runlog.digest, server.count) == (digest, 2)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_that_has_to_be_repaired_breaks_no_rule(provider: str) -> None:
    answer = behaviour(provider)

    def behave(body: dict[str, Any], number: int) -> Any:
        first = PROVIDERS[provider][1]["choices"][0]["message"]
        bad = {**first, CALLS: [{**first[CALLS][0], "function": {"name": "pay", "arguments": '{"coins": 99}'}}]}
        return {"choices": [{"message": bad, "finish_reason": "tool_calls"}]} if number == 1 else answer(body, number)

    with FaultyServer(behave) as server, closing(run(server)) as model:
        assert (model.coins, model.usage.failures, server.count) == (3, 0, 2)


def test_what_is_brought_back_is_no_part_of_a_key_and_survives_the_run_log() -> None:
    reply = read_reply(calling({"extra_content": {"google": {"x": "\ud800"}}}, {"reasoning_content": "Moss?"}), ask())
    assert (reply.reasoning, reply.carried["reasoning_content"]) == ("Moss?", True)
    columns = (reply.prompt_tokens, reply.reply_tokens, reply.dollars, reply.latency_s, reply.attempts)
    assert reply_of(stored_reply(reply), *columns).carried == reply.carried
    plain = ChatMessage("assistant", "", reply.tool_calls)
    assert ask(plain).key == ask(ChatMessage("assistant", "", reply.tool_calls, carried=reply.carried)).key


@pytest.mark.parametrize(
    "words", ["'messages.1' : property 'reasoning_content' is unsupported", "Extra inputs are not permitted"]
)
def test_an_endpoint_that_does_not_take_it_back_is_sent_it_no_more(words: str) -> None:
    carried = {"reasoning_content": "Hm.", CALLS: [{"extra_content": {"a": 1}}]}
    messages = (
        ChatMessage("user", "Look."),
        ChatMessage("assistant", "", (ToolCall("count", {}, "c"),), carried=carried),
    )
    sent = json.loads(Writer("tiny").write(ask(*messages), Dialect()))
    detail = ErrorDetail(words, "")
    learned = Dialect().without(detail, sent)
    assert learned is not None
    again = json.loads(Writer("tiny").write(ask(*messages), learned))["messages"][1]
    assert "reasoning_content" not in again
    assert ("extra_content" in again[CALLS][0]) == ("reasoning_content" in words)


def test_a_thought_before_the_decision_is_brought_back_with_its_reasoning() -> None:
    def behave(body: dict[str, Any], number: int) -> Any:
        said = {"role": "assistant", "content": "Three coins.", "reasoning_content": "Moss?"}
        return {"choices": [{"message": said, "finish_reason": "stop"}]} if number == 1 else None

    with FaultyServer(behave) as server, closing(run(server, reasoning="first")):
        thought = next(one for one in server.last["messages"] if one["role"] == "assistant")
        assert (thought["content"], thought["reasoning_content"]) == ("Three coins.", "Moss?")


def test_an_id_that_is_refused_for_its_length_is_written_as_a_short_one() -> None:
    messages = (ChatMessage("user", "Look."), ChatMessage("assistant", "", (ToolCall("count", {}, "c" * 90),)))
    sent = json.loads(Writer("tiny").write(ask(*messages), Dialect()))
    detail = ErrorDetail("Invalid 'messages[1].tool_calls[0].id': string too long. Expected 40 at most.", "")
    assert Dialect().without(detail, sent) == Dialect(short_ids=True)


def test_what_is_brought_back_arrives_in_pieces_too() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "count", "arguments": "{}"}, "extra_content": {"google": {}}}
    signed = {"index": 0, "extra_content": {"google": {"thought_signature": SIGNATURE}}}
    deltas: list[dict[str, Any]] = [
        {"reasoning_details": [{"type": "reasoning.text", "text": "Mo", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "ss", "signature": "s", "index": 0}]},
        {"reasoning_details": DETAILS, CALLS: [call]},
        {CALLS: [signed]},
    ]
    lines = [json.dumps({"choices": [{"delta": delta, "finish_reason": None}]}) for delta in deltas]
    body = "".join(f"data: {line}\n\n" for line in lines) + "data: [DONE]\n\n"
    carried = read_reply(parse(body.encode()), ask()).carried
    whole = {"type": "reasoning.text", "text": "Moss", "signature": "s", "index": 0}
    assert carried["reasoning_details"] == [whole, *DETAILS]
    assert carried[CALLS] == [{"extra_content": {"google": {"thought_signature": SIGNATURE}}}]


def test_content_in_parts_comes_back_with_its_thoughts() -> None:
    parts = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Yes."}]
    reply = read_reply(completion([*parts, {"type": "tool_use", "name": "count", "input": {}}]), ask())
    assert (reply.text, reply.reasoning, reply.carried["content"]) == ("Yes.", "Hm.", parts)
