"""Batches through litellm: it writes each request and reads its response as if that were sent alone."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import ConfigError
from mesa_llm.llm.litellm import LiteLLM
from tests.batch_server import BatchServer
from tests.faulty_server import FaultyServer
from tests.pot import PotModel, QuizModel

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a server that is the address of both providers."""
    with BatchServer() as server:
        for name, address in (("OPENAI", server.url), ("ANTHROPIC", server.origin)):
            monkeypatch.setenv(f"{name}_API_BASE", address)
            monkeypatch.setenv(f"{name}_API_KEY", f"{KEY}{name}")
        yield server


@pytest.mark.parametrize("llm", ["openai/gpt-4o-mini", "gpt-4o-mini", "anthropic/claude-haiku-4-5"])
def test_a_stage_with_tools_is_one_batch_at_half_the_price(llm: str, server: BatchServer, tmp_path: Path) -> None:
    with closing(PotModel(5, llm, rng=1, batch=True, log=tmp_path / "run.sqlite")) as model:
        model.step()
        assert (server.sizes[0], model.usage.failures) == (5, 0)
        prices = (0.5e-6, 2.5e-6) if "claude" in llm else (0.075e-6, 0.3e-6)
        usage = model.usage
        expected = usage.prompt_tokens * prices[0] + usage.reply_tokens * prices[1]
        assert usage.dollars == pytest.approx(expected)
    assert KEY.encode() not in (tmp_path / "run.sqlite").read_bytes()


@pytest.mark.parametrize("llm", ["openai/gpt-4o-mini", "anthropic/claude-haiku-4-5"])
def test_what_goes_wrong_in_a_batch_fails_one_decision(llm: str, server: BatchServer) -> None:
    server.behave = lambda batch, number: {"refused": [0], "lost": [1]} if number == 1 else {}
    with closing(PotModel(4, llm, rng=1, batch=True)) as model:
        model.step()
        assert server.sizes[0] == 4
        assert model.usage.failures == 1
        assert "refused" in model.runlog.failures()[0]


def test_a_typed_answer_of_anthropic_is_read(server: BatchServer) -> None:
    def reply(body: Any) -> dict[str, Any]:
        content = [
            {"type": "tool_use", "id": "t", "name": tool["name"], "input": {"answer": 4}}
            for tool in body.get("tools", ())
        ]
        text = [{"type": "text", "text": json.dumps({"answer": 4})}]
        usage = {"input_tokens": 9, "output_tokens": 3}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
        return message | {"content": content or text, "stop_reason": "end_turn", "usage": usage}

    server.behave = lambda batch, number: {"reply": reply}
    with closing(QuizModel(1, "anthropic/claude-haiku-4-5", rng=1, batch=True)) as model:
        model.step()
        assert (server.sizes, model.answers) == ([5], [4] * 5)


def test_a_batch_holds_what_would_be_sent_alone(server: BatchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(PotModel(3, "openai/gpt-4o-mini", rng=1, batch=True)) as model:
        model.step()
    with FaultyServer() as live:
        monkeypatch.setenv("OPENAI_API_BASE", live.url)
        with closing(PotModel(3, "openai/gpt-4o-mini", rng=1)) as model:
            model.step()
        sent = sorted(live.requests[:3], key=lambda request: request.body["seed"])
    assert [request.body for request in sent] == sorted(
        (b for _, b in server.batches[0].lines), key=lambda b: b["seed"]
    )


@pytest.mark.parametrize("llm", ["gemini/gemini-2.5-flash", "bedrock/anthropic.claude-v2", "nobody-knows"])
def test_other_providers_are_refused_before_anything_is_loaded_or_sent(llm: str) -> None:
    with pytest.raises(ConfigError, match="only models of OpenAI and Anthropic"):
        LiteLLM(llm).batched()
