"""Looking into run logs: page by page, and harmless to terminals and spreadsheets."""

import json
import sqlite3
import subprocess
import sys
import tracemalloc
from contextlib import closing

import pytest

from mesa_llm import ConfigError, RunLog, ScriptedLLM
from mesa_llm.cli.inspect import tables
from mesa_llm.errors import ServerError, TransportError
from mesa_llm.records import ChatMessage, Reply, Request, Salt, ToolCall
from mesa_llm.text import printable
from tests.pot import PotModel


def record(path, calls, text: str | TransportError = "fine", agents=1):
    """Keep calls with long prompts of their own in a log."""
    log = RunLog(path)
    came = Reply(text, prompt_tokens=3) if isinstance(text, str) else text
    for number in range(calls):
        messages = (ChatMessage("user", f"{number} " * 500),)
        salt = Salt(1, number % agents, number, "decide", 0)
        log.keep(Request("stub", messages, salt), came, 0.1, commit=False)
    log.close()
    return path


def test_a_large_log_is_written_in_constant_memory(tmp_path) -> None:
    def peak(calls) -> int:
        path = record(tmp_path / f"{calls}.sqlite", calls)
        tracemalloc.start()
        for _ in tables(path, ["calls"], None, csv=True):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak(10)
    assert peak(3_000) < 1.5 * peak(1_000)


def test_a_table_says_how_many_rows_it_has_and_keeps_to_one_line_a_row(tmp_path) -> None:
    PotModel(2, "random", rng=1, log=tmp_path / "run.sqlite").run_for(300)
    lines = "\n".join(tables(tmp_path / "run.sqlite", ["actions"], None, csv=False)).splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("actions", "(600 rows)", 603)
    assert lines[1].split()[:4] == ["time", "agent", "action", "arguments"]


def pay(request):
    return Reply("So be it.\nI pay.", (ToolCall("pay", {"coins": 1}),), prompt_tokens=30, reply_tokens=4)


def recorded(path, llm=pay):
    """Record two steps of two agents who share a pot."""
    model = PotModel(2, ScriptedLLM(llm), rng=1, log=path, attempts=1)
    model.run_for(2)
    model.close()
    return path


def test_a_decision_is_a_block_with_its_reasons_and_what_came_of_it(tmp_path) -> None:
    text = "\n".join(tables(recorded(tmp_path / "run.sqlite"), ["decisions"], 2, csv=False))
    blocks = text.split("\n\n")
    assert len(blocks) == 4
    lines = [line.strip() for line in blocks[1].splitlines()]
    assert lines[:4] == ["step 1, agent 2, by ScriptedLLM", "pay(coins=1)", "reasoning: So be it.", "I pay."]
    assert lines[4] == "read as: tool call"
    assert lines[5].startswith("done: pay: ")
    assert blocks[-1] == "(2 rows)"


def test_call_shows_the_end_of_its_prompt_and_all_of_it_in_full(tmp_path) -> None:
    path = recorded(tmp_path / "run.sqlite")
    prompt = recorded_prompt(path)
    short, full = ("\n".join(tables(path, ["calls"], 2, csv=False, full=full)) for full in (False, True))
    assert "step 2, agent 2, decide 0, ScriptedLLM" in short
    assert "reply: pay(coins=1)" in short
    assert "30 + 4 tokens" in short
    assert all(line.strip() in full for line in prompt.splitlines())
    assert "[user]" in full


def recorded_prompt(path) -> str:
    log = RunLog(path, "read")
    messages = json.loads(log.calls()["prompt"].iloc[-1])
    log.close()
    return "\n".join(message["content"] for message in messages)


def test_decisions_in_full_show_what_was_asked_and_replied(tmp_path) -> None:
    text = "\n".join(tables(recorded(tmp_path / "run.sqlite"), ["decisions"], 1, csv=False, full=True))
    assert text.count("[user]") == text.count("reply: pay(coins=1)") == 2


def test_a_failed_decision_shows_why(tmp_path) -> None:
    path = recorded(tmp_path / "run.sqlite", lambda request: ServerError("the server is down"))
    for table in ("decisions", "calls"):
        text = "\n".join(tables(path, [table], 1, csv=False))
        assert text.count("ServerError: the server is down") == 2


@pytest.mark.parametrize("value", ["{", "[]", '{"a": 1}', "[[1, 2]]", '[["x"], null]', "\x1b[31m", None, 3])
@pytest.mark.parametrize(("table", "column"), [("decisions", "decision"), ("calls", "prompt"), ("calls", "reply")])
def test_damaged_rows_are_shown_as_they_stand(table, column, value, tmp_path) -> None:
    path = recorded(tmp_path / "run.sqlite")
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"UPDATE {table} SET {column} = ?", [value])
    text = "\n".join(tables(path, [table], 1, csv=False, full=True))
    assert text.endswith("(2 rows)")
    assert printable(text) == text


def test_an_agent_that_is_not_in_the_log_is_refused_with_those_that_are(tmp_path) -> None:
    with pytest.raises(ConfigError, match="has no rows of agent 9; its agents are those from 1 to 2"):
        list(tables(recorded(tmp_path / "run.sqlite"), ["decisions"], 9, csv=False))


def test_rows_of_one_agent_and_the_usage_of_all(tmp_path) -> None:
    path = record(tmp_path / "run.sqlite", 30, agents=3)
    assert len("\n".join(tables(path, ["calls"], 2, csv=True)).splitlines()) == 11
    (header, row) = "\n".join(tables(path, ["usage"], 2, csv=True)).splitlines()
    assert header == "model,calls,failed,prompt_tokens,reply_tokens,dollars,mean_latency_s,requests,cached_tokens"
    assert row.startswith("stub,10,0,30,0,0.0,0.")


@pytest.mark.parametrize("csv", [False, True])
def test_no_text_of_a_log_changes_the_terminal(csv, tmp_path) -> None:
    path = record(tmp_path / "run.sqlite", 2, ServerError("\x1b]0;pwned\x07\x9b31m\u202e\r"))
    output = "\n".join(tables(path, ["calls"], None, csv=csv))
    assert printable(output) == output
    assert "\\x1b]0;pwned" in output


@pytest.mark.parametrize("formula", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1"])
def test_no_text_of_a_log_is_a_formula_in_a_spreadsheet(formula, tmp_path) -> None:
    model = PotModel(1, ScriptedLLM(lambda r: Reply(formula, (ToolCall("pay", {"coins": 1}),))), rng=1)
    model.runlog = RunLog(tmp_path / "run.sqlite")
    model.step()
    model.close()
    model.runlog.close()
    output = "\n".join(tables(tmp_path / "run.sqlite", ["decisions"], None, csv=True))
    assert f",'{formula}," in output


def test_numbers_stay_numbers_in_a_spreadsheet(tmp_path) -> None:
    path = record(tmp_path / "run.sqlite", 1)
    assert ",0.1,1" in "\n".join(tables(path, ["calls"], None, csv=True))


def test_a_reader_may_stop_reading(tmp_path) -> None:
    path = record(tmp_path / "run.sqlite", 2_000)
    command = [sys.executable, "-m", "mesa_llm.cli.app", "inspect", str(path), "--calls", "--csv"]
    looking = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert looking.stdout is not None
    assert looking.stdout.readline().startswith("key,agent")
    looking.stdout.close()
    assert looking.stderr is not None
    assert looking.stderr.read() == ""
    looking.wait()


def test_an_unknown_table_is_refused_with_those_there_are(tmp_path) -> None:
    log = RunLog(record(tmp_path / "run.sqlite", 1), "read")
    with pytest.raises(ConfigError, match="no table 'calls; DROP TABLE calls'; it has manifest, "):
        log.table("calls; DROP TABLE calls")
