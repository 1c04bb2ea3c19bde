"""SimSwarm's sweeps, its reading of tool calls, and the weeks of its stories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mesa_llm import ConfigError, LLMModel, LLMScenario
from mesa_llm.errors import BadReply
from mesa_llm.experiments.runs.sweep import sweep
from mesa_llm.llm.lenient_json import UNREAD
from mesa_llm.llm.openai.reply import read_reply
from mesa_llm.records import Request, Salt
from mesa_llm.reports.findings import weeks_text
from tests.golden.reading import golden, section

CASES: dict[str, Any] = golden("simswarm")

NOT_COMPARED = {"raw*": "what is read is read by the program under test"}
"""Parts of the cases that no test reads → why."""


@pytest.mark.parametrize("case", section(CASES, "story_week_range"))
def test_days_are_counted_in_weeks(case: Any) -> None:
    assert weeks_text(*case["d"]) == case["r"]


class SweptScenario(LLMScenario):
    """The variables of the recorded sweeps."""

    a: int = 0
    b: str = ""
    z: int = 0


class SweptModel(LLMModel):
    """A model with nobody in it."""

    scenario_class = SweptScenario


@pytest.mark.parametrize("case", section(CASES, "sweep"))
def test_a_sweep_runs_the_combinations_in_order(case: Any, tmp_path: Path) -> None:
    vary = dict(case["vary"].items())
    if [] in vary.values():  # SimSwarm runs nothing, and says nothing
        with pytest.raises(ConfigError, match="varied over no values"):
            sweep(SweptModel, vary, folder=tmp_path, steps=1, workers=1)
        assert case["r"] == []
        return
    table = sweep(SweptModel, vary, folder=tmp_path, steps=1, workers=1).table
    wanted = [{"a": 0, "b": "", **dict(merged.items())} for _, merged in case["r"]]
    fixed = {"a": 0, "b": "", "z": 0}
    assert [{**fixed, **{name: row[name] for name in vary}} for row in table.to_dict("records")] == wanted
    assert [dict(chosen.items()) for chosen, _ in case["r"]] == [
        {name: row[name] for name in vary} for row in table.to_dict("records")
    ]


def calls_in(raw: Any) -> list[dict[str, Any]]:
    """Return the calls that our reader finds in a reply; none where it refuses the reply."""
    try:
        reply = read_reply(raw, Request("m", (), Salt(1, 1, 1, "decide", 0)))
    except BadReply:
        return []
    arguments = [{} if UNREAD in call.arguments else call.arguments for call in reply.tool_calls]
    return [{"name": call.name, "args": own} for call, own in zip(reply.tool_calls, arguments, strict=True)]


def usable(calls: list[Any]) -> list[dict[str, Any]]:
    """Return the calls that name a tool; arguments that are no object are none."""
    return [
        {"name": call["name"], "args": call["args"] if isinstance(call["args"], dict) else {}}
        for call in calls
        if call["name"] and isinstance(call["name"], str)
    ]


def as_texts(raw: Any) -> Any:
    """Write arguments that are objects as the texts that they should be; SimSwarm drops them, and we read them."""
    if isinstance(raw, list):
        return [as_texts(one) for one in raw]
    if not isinstance(raw, dict):
        return raw
    return {key: "{}" if key == "arguments" and isinstance(one, dict) else as_texts(one) for key, one in raw.items()}


@pytest.mark.parametrize("case", section(CASES, "parse_tool_calls"))
def test_tool_calls_are_read_as_simswarm_does_where_they_can_be_used(case: Any) -> None:
    """What SimSwarm crashes on, now or later, holds no call here."""
    assert usable(calls_in(as_texts(case["raw"]))) == usable(case["r"].get("ok", []))
    case["r"].read_all()


def test_replies_that_simswarm_stumbles_over_are_read_without_an_error() -> None:
    for broken in ({"choices": []}, {"choices": [{"message": None}]}, {"error": {"message": "busy"}}):
        assert calls_in(broken) == []
    calls = [{"function": {"name": "vote", "arguments": "[1]"}}, {}, {"function": {"name": "wait", "arguments": "{"}}]
    found = calls_in({"choices": [{"message": {"tool_calls": calls}}]})
    assert found == [{"name": "vote", "args": {}}, {"name": "wait", "args": {}}]
