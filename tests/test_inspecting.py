"""Looking into run logs: page by page, and harmless to terminals and spreadsheets."""

import subprocess
import sys
import tracemalloc

import pytest

from mesa_llm import ConfigError, RunLog, ScriptedLLM
from mesa_llm.errors import ServerTrouble, TransportError
from mesa_llm.inspecting import tables
from mesa_llm.records import ChatMessage, Reply, Request, Salt, ToolCall
from mesa_llm.wording import printable
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
    assert peak(6_000) < 1.5 * peak(2_000)


def test_a_table_says_how_many_rows_it_has_and_keeps_to_one_line_a_row(tmp_path) -> None:
    lines = "\n".join(tables(record(tmp_path / "run.sqlite", 1_200, "a\nb"), ["calls"], None, csv=False)).splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("calls", "(1200 rows)", 1_203)
    assert lines[1].startswith("agent  time  purpose  call  model  prompt")


def test_rows_of_one_agent_and_the_usage_of_all(tmp_path) -> None:
    path = record(tmp_path / "run.sqlite", 30, agents=3)
    assert len("\n".join(tables(path, ["calls"], 2, csv=True)).splitlines()) == 11
    (header, row) = "\n".join(tables(path, ["usage"], 2, csv=True)).splitlines()
    assert header == "model,calls,failed,prompt_tokens,reply_tokens,dollars,mean_latency_s"
    assert row.startswith("stub,10,0,30,0,0.0,0.")


@pytest.mark.parametrize("csv", [False, True])
def test_no_text_of_a_log_changes_the_terminal(csv, tmp_path) -> None:
    path = record(tmp_path / "run.sqlite", 2, ServerTrouble("\x1b]0;pwned\x07\x9b31m\u202e\r"))
    shown = "\n".join(tables(path, ["calls"], None, csv=csv))
    assert printable(shown) == shown
    assert "\\x1b]0;pwned" in shown


@pytest.mark.parametrize("formula", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1"])
def test_no_text_of_a_log_is_a_formula_in_a_spreadsheet(formula, tmp_path) -> None:
    model = PotModel(1, ScriptedLLM(lambda r: Reply(formula, (ToolCall("pay", {"coins": 1}),))), rng=1)
    model.runlog = RunLog(tmp_path / "run.sqlite")
    model.step()
    model.close()
    model.runlog.close()
    shown = "\n".join(tables(tmp_path / "run.sqlite", ["decisions"], None, csv=True))
    assert f",'{formula}," in shown


def test_numbers_stay_numbers_in_a_spreadsheet(tmp_path) -> None:
    path = record(tmp_path / "run.sqlite", 1)
    assert ",0.1,1" in "\n".join(tables(path, ["calls"], None, csv=True))


def test_a_reader_may_stop_reading(tmp_path) -> None:
    path = record(tmp_path / "run.sqlite", 2_000)
    command = [sys.executable, "-m", "mesa_llm.cli", "inspect", str(path), "--calls", "--csv"]
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
