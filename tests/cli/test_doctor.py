"""`mesa-llm doctor` says what an endpoint can do and what to set, and fails where nothing can be used."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from tests.faulty_server import Fault, FaultyServer, refused
from tests.honest_reply import completion, honest
from tests.llm.openai.strict_server import no_field, no_format, no_system, strict, taking_turns


def examined(behave: Any, *options: str) -> tuple[dict[str, Any], int]:
    """Examine a server; give the result of each thing that was looked at, and the exit code."""
    with FaultyServer(behave) as server:
        ran = CliRunner().invoke(app, ["doctor", "--llm", "tiny", "--api-base", server.url, "--json", *options])
    findings = json.loads(ran.stdout)
    return {entry["about"]: entry["result"] for entry in findings["findings"]} | {"all": findings}, ran.exit_code


def test_an_endpoint_that_can_do_all_is_described() -> None:
    found, code = examined(lambda body, number: None)
    assert code == 0
    assert found["answers in a form"] == "constrained by a JSON schema"
    assert found["actions"].startswith("called as tools: ")
    assert (found["system messages"], found["turns"]) == ("anywhere", "in any order")
    assert found["seed"].startswith("one request gives one reply")
    assert found["all"]["is_usable"]


def test_what_a_simple_endpoint_cannot_do_is_told() -> None:
    rules = (no_system(), taking_turns("roles must alternate"), no_field("tools", "does not support tools"))
    found, code = examined(
        strict(*rules, no_format("json_schema", "response_format is unavailable"), no_field("seed", "seed"))
    )
    assert code == 0
    assert "described in words" in found["answers in a form"]
    assert "described in words" in found["actions"]
    assert "first user message" in found["system messages"]
    assert "alternate" in found["turns"]
    assert found["requests"] == "seed is left out"


def test_a_prompt_that_is_cut_is_found_with_what_to_set() -> None:
    def behave(body: dict[str, Any], number: int) -> dict[str, Any]:
        reply = honest(body)
        return reply | {"usage": {"prompt_tokens": min(2048, reply["usage"]["prompt_tokens"]), "completion_tokens": 3}}

    found, _ = examined(behave)
    assert found["long prompts"] == "20,138 characters: truncated: only 2,048 tokens were read"
    assert "num_ctx" in found["all"]["findings"][-1]["advice"]


@pytest.mark.parametrize("fault", [refused(500, "out of memory"), Fault(body=b"<html>"), completion("")])
def test_an_endpoint_without_a_usable_reply_fails(fault: Any) -> None:
    found, code = examined(lambda body, number: fault)
    assert (code, found["all"]["is_usable"]) == (1, False)


def test_the_findings_are_printed_for_a_person() -> None:
    with FaultyServer(lambda body, number: completion("Hello.", prompt_tokens=None)) as server:
        ran = CliRunner().invoke(app, ["doctor", "--llm", f"tiny@{server.url}", "--characters", "0"])
    assert "! usage            not reported\n" in ran.stdout
    assert "- usage: budgets of tokens" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith(f"tiny@{server.url} is usable; ")


def test_without_a_model_it_says_what_is_here_and_shows_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    config = tmp_path / "mesa-llm.toml"
    config.write_text('[endpoints.judge]\nmodel = "big"\napi_base = "http://judge.example/v1"\nkey_env = "JUDGE"\n')
    monkeypatch.setenv("MESA_LLM_CONFIG", str(config))
    monkeypatch.setenv("MESA_LLM_MODEL", str(tmp_path / "no.gguf"))
    monkeypatch.setenv("MESA_LLM_CACHE", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    text = CliRunner().invoke(app, ["doctor"]).stdout
    assert "judge             big@http://judge.example/v1" in text
    assert "OPENAI_API_KEY is set" in text
    assert "does not answer: MESA_LLM_MODEL names" in text
    assert "Qwen2.5-Coder-1.5B-Instruct, 1,117 MB, Apache-2.0: is fetched by `mesa-llm doctor --llm local:1.5b`" in text
    assert "can be used (see `mesa-llm list`)" in text
    assert "sk-very-secret" not in text


def test_contrasts_of_personas_are_printed_line_by_line_or_as_one_object() -> None:
    runner = CliRunner()
    lines = runner.invoke(app, ["doctor", "--persona", "--llm", "random"]).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["extraversion", "agreeableness", "conscientiousness"]
    assert lines[-1].startswith("random reacts in 0 of 10 contrasts")
    found = json.loads(runner.invoke(app, ["doctor", "--persona", "--llm", "random", "--json"]).stdout)
    verdicts = {one["verdict"] for one in found["contrasts"]}
    assert verdicts == {"does not react", "cannot tell"}  # four pairs are too few


def test_personas_need_a_language_model() -> None:
    ran = CliRunner().invoke(app, ["doctor", "--persona"])
    assert ran.exit_code != 0
    assert "--persona needs --llm" in ran.output
