"""The run log: record, replay, resume after a kill, inspect."""

import inspect
import json
import os
import re
import shutil
import sqlite3
import sys
import threading
import time
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm import BudgetExceeded, ConfigError, ReplayError, RunLog, ScriptedLLM
from mesa_llm.errors import ServerError
from mesa_llm.records import ChatMessage, Decision, Failure, Reply, Request, Salt, ToolCall
from mesa_llm.runlog.file import WriteLock
from mesa_llm.runlog.recovery import recover
from mesa_llm.testing import honest, honest_reply
from mesa_llm_models.social.model import SocialModel
from tests.faulty_server import HANG, SERVER_ERROR, FaultyServer
from tests.pot import PotModel
from tests.processes import Python, run


def recorded(path, llm=None, **options):
    model = PotModel(4, llm or honest(), rng=2, log=path, attempts=1, **options)
    model.run_for(3)
    model.close()
    return model


def test_a_replay_asks_nobody_and_ends_in_the_same_digest(tmp_path) -> None:
    first = recorded(tmp_path / "run.sqlite")
    again = PotModel(4, "ScriptedLLM", rng=2, log=tmp_path / "run.sqlite", replay=True)
    again.run_for(3)
    assert again.runlog.digest == first.runlog.digest
    assert (again.usage.calls, again.usage.replayed) == (0, first.usage.calls)


def replace(log, copy) -> None:
    shutil.copy(copy, log.with_name("other"))
    os.replace(log.with_name("other"), log)


def retarget(log, copy) -> None:
    shutil.copy(log, log.with_name("aside"))
    log.unlink()
    log.symlink_to(copy)


def remove_wal(log, copy) -> None:
    log.with_name(f"{log.name}-wal").unlink()
    log.with_name(f"{log.name}-shm").unlink()


CHANGES = {
    "replaced by itself": lambda log, copy: replace(log, log),
    "replaced by an older copy": replace,
    "overwritten by an older copy": lambda log, copy: log.write_bytes(copy.read_bytes()),
    "overwritten by itself": lambda log, copy: log.write_bytes(log.read_bytes()),
    "overwritten by something else": lambda log, copy: log.write_bytes(b"dear diary" * 9999),
    "emptied": lambda log, copy: os.truncate(log, 0),
    "cut short": lambda log, copy: os.truncate(log, 20_000),
    "deleted": lambda log, copy: log.unlink(),
    "moved away": lambda log, copy: log.rename(log.with_name("away.sqlite")),
    "made a link to a copy": retarget,
    "left without a write-ahead log": remove_wal,
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows changes no open file")
@pytest.mark.parametrize("when", ["between steps", "in a step", "before the end"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_log_changed_during_recording_stops_the_run_without_loss(change, when, tmp_path) -> None:
    log, copy = tmp_path / "run.sqlite", tmp_path / "copy.sqlite"
    whole = recorded(tmp_path / "whole.sqlite")
    n_asked = []

    def reply_in_step_two(request):
        n_asked.append(1)
        if when == "in a step" and len(n_asked) == 6:
            change(log, copy)
        return honest_reply(request)

    model = PotModel(4, ScriptedLLM(reply_in_step_two), rng=2, log=log, attempts=1)
    model.run_for(1)
    shutil.copy(log, copy)
    if when == "before the end":
        model.run_for(2)
    if when != "in a step":
        change(log, copy)
    with pytest.raises(ConfigError, match=r"while it was being recorded\. The recording is saved in") as error:
        model.run_for(2) if when != "before the end" else model.close()
    model.close()
    (kept,) = re.findall(r"saved in '(.*?)'", str(error.value))
    again = recorded(Path(kept))
    assert (again.runlog.digest, again.usage.replayed) == (whole.runlog.digest, len(n_asked))
    left = {file.name for file in tmp_path.iterdir()}
    assert not {name for name in left if name.endswith(("-wal", "-shm", ".lock"))}


def test_a_log_that_cannot_be_made_is_not_taken_for_a_damaged_one(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"is a folder; name a file in it, such as .*run\.sqlite.$"):
        RunLog(tmp_path)


def test_recorded_failures_are_replayed_as_failures(tmp_path) -> None:
    first = recorded(tmp_path / "run.sqlite", ScriptedLLM(lambda request: ServerError("down")))
    again = PotModel(4, "ScriptedLLM", rng=2, log=tmp_path / "run.sqlite", replay=True)
    again.run_for(3)
    assert again.runlog.digest == first.runlog.digest
    assert again.usage.failures == 12


def test_failures_can_be_asked_again(tmp_path) -> None:
    recorded(tmp_path / "run.sqlite", ScriptedLLM(lambda request: ServerError("down")))
    model = recorded(tmp_path / "run.sqlite", honest(), retry_failures=True)
    assert (model.usage.failures, model.usage.calls) == (0, 12)


def test_changed_word_stops_a_replay_and_shows_the_first_difference(tmp_path) -> None:
    recorded(tmp_path / "run.sqlite", activation="in_order")
    again = PotModel(4, "ScriptedLLM", rng=2, log=tmp_path / "run.sqlite", replay=True, activation="in_order")
    for agent in again.agents:
        agent.config = agent.config.model_copy(update={"persona": "You like odd numbers."})
    with pytest.raises(ReplayError, match=r"(?s)agent 1, step 1.*-user: You like round.*\+user: You like odd"):
        again.step()


def test_equal_prompts_of_different_agents_are_different_samples(tmp_path) -> None:
    recorded(tmp_path / "run.sqlite")
    calls = RunLog(tmp_path / "run.sqlite", "read").calls()
    assert len(set(calls["prompt"])) < len(calls)
    assert len(set(calls["key"])) == len(calls)


def test_what_prompts_have_in_common_is_stored_once(tmp_path) -> None:
    model = PotModel(4, honest(), rng=2, log=tmp_path / "run.sqlite")
    for agent in model.agents:
        agent.config = agent.config.model_copy(update={"persona": "\n".join(f"Rule {n}." for n in range(5_000))})
    model.run_for(5)
    model.close()
    calls = RunLog(tmp_path / "run.sqlite", "read").calls()
    assert calls["prompt"].str.len().sum() > 20 * 50_000
    assert (tmp_path / "run.sqlite").stat().st_size < 500_000


messages = st.builds(
    ChatMessage,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(st.sampled_from(["", "a", "b", "é", "1-3", "\r", "long " * 50])).map("\n".join),
    st.lists(st.builds(ToolCall, st.just("pay"), st.just({"coins": 1}), st.just("call_1")), max_size=1).map(tuple),
    st.sampled_from(["", "call_1"]),
)


def test_texts_that_come_again_are_stored_once_however_much_is_new_meanwhile(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("mesa_llm.runlog.tables.MAX_KNOWN", 4_000)  # new of five users in less than two steps
    model = SocialModel(n_agents=5, rng=1, llm=honest(), log=tmp_path / "run.sqlite")
    for _ in range(6):
        model.step()
    model.close()
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as log:
        texts = [text for (text,) in log.execute("SELECT text FROM texts")]
    assert len(texts) == len(set(texts))
    assert sum(map(len, texts)) > 8_000


@given(st.lists(st.lists(messages, max_size=4), max_size=8))
def test_prompts_are_read_as_they_were_asked(prompts) -> None:
    log = RunLog()
    for number, prompt in enumerate(prompts):
        log.keep(Request("stub", tuple(prompt), Salt(1, 1, number, "decide", 0)), Reply("fine"), 0.1)
    documents = [json.dumps([message.to_wire() for message in prompt], ensure_ascii=False) for prompt in prompts]
    assert list(log.calls()["prompt"]) == documents
    assert [row["prompt"] for row in log.calls_of(1)] == documents[::-1]


@given(st.lists(st.lists(messages, max_size=4), max_size=8), st.randoms(use_true_random=False))
def test_prepared_calls_are_recorded_like_unprepared_ones(prompts, random) -> None:
    plain, log = RunLog(), RunLog()
    requests = [Request("stub", tuple(one), Salt(1, 1, time, "decide", 0)) for time, one in enumerate(prompts)]
    waiting = random.sample(range(len(requests)), random.randint(0, len(requests)))
    prepared = {index: log.prepare(requests[index]) for index in waiting}
    for index, request in enumerate(requests):
        plain.keep(request, Reply("fine"), 0.1)
        log.keep(request, Reply("fine"), 0.1, prepared=prepared.get(index))
    assert log.calls().equals(plain.calls())


replies = st.builds(
    Reply,
    st.text(),
    st.lists(st.builds(ToolCall, st.text(), st.dictionaries(st.text(), st.integers() | st.text())), max_size=2).map(
        tuple
    ),
    *[st.integers(0, 2**40)] * 2,
    st.none() | st.floats(0, 1e9),
    *[st.text()] * 2,
    st.floats(0, 1e9),
    st.integers(1, 9),
)


@given(replies)
def test_a_reply_is_found_as_it_was_kept(reply) -> None:
    log, request = RunLog(), Request("stub", (ChatMessage("user", "Hello"),), Salt(1, 1, 1, "decide", 0))
    log.keep(request, reply, reply.latency_s)
    log.may_repeat = True
    assert log.find(request) == reply


def test_halves_of_surrogate_pairs_break_no_step(tmp_path) -> None:
    broken = ScriptedLLM(lambda request: Reply("\ud800", (ToolCall("pay", {"coins": 1}, "\ud800"),)))
    first = recorded(tmp_path / "run.sqlite", broken)
    again = PotModel(4, "ScriptedLLM", rng=2, log=tmp_path / "run.sqlite", replay=True)
    again.run_for(3)
    assert again.runlog.digest == first.runlog.digest


def test_a_log_of_another_run_is_refused_and_left_as_it_is(tmp_path) -> None:
    recorded(tmp_path / "run.sqlite")
    before = (tmp_path / "run.sqlite").read_bytes()
    with pytest.raises(ConfigError, match="holds another run"):
        PotModel(5, honest(), rng=2, log=tmp_path / "run.sqlite")
    assert (tmp_path / "run.sqlite").read_bytes() == before


def test_a_file_that_is_no_log_is_refused_and_left_as_it_is(tmp_path) -> None:
    (tmp_path / "notes.txt").write_text("dear diary" * 100)
    with pytest.raises(ConfigError, match="cannot be used as a run log"):
        PotModel(log=tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text().startswith("dear diary")


def test_a_run_without_a_seed_goes_on_with_the_seed_of_its_log(tmp_path) -> None:
    first = PotModel(4, honest(), log=tmp_path / "run.sqlite")
    first.run_for(2)
    first.close()
    again = PotModel(4, honest(), log=tmp_path / "run.sqlite")
    again.run_for(2)
    assert again.runlog.digest == first.runlog.digest


def test_keys_of_providers_never_enter_the_file(tmp_path) -> None:
    recorded(tmp_path / "run.sqlite", api_key="sk-very-secret")
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"sk-very-secret" not in content


def test_tables_say_what_was_asked_decided_and_done(tmp_path) -> None:
    recorded(tmp_path / "run.sqlite")
    log = RunLog(tmp_path / "run.sqlite", "read")
    assert len(log.decisions()) == len(log.calls()) == 12
    assert set(log.actions()["action"]) <= {"pay", "do_nothing"}
    assert list(log.events()["kind"]) == ["counted"] * 3
    assert list(log.steps()["time"]) == [1, 2, 3]


def test_a_survey_changes_nothing_of_the_run(tmp_path) -> None:
    def script(request):
        return "Fine." if request.salt.purpose == "survey" else honest_reply(request)

    plain, surveyed = (PotModel(3, ScriptedLLM(script), rng=2) for _ in range(2))
    plain.run_for(3)
    for _ in range(3):
        surveyed.step()
        assert list(surveyed.survey(["How are you?"])["answer"]) == ["Fine."] * 3
    assert surveyed.runlog.digest == plain.runlog.digest


def broken_at_2(path):
    """Run three steps, the second of which breaks after everybody has acted."""
    model = PotModel(2, rng=2, log=path)
    model.step()
    model.pot.is_broken = True
    with pytest.raises(ZeroDivisionError):
        model.step()
    model.pot.is_broken = False
    model.step()
    model.close()
    return model


def test_a_broken_step_is_written_once_however_often_it_is_run(tmp_path) -> None:
    first, again = broken_at_2(tmp_path / "run.sqlite"), broken_at_2(tmp_path / "run.sqlite")
    log = RunLog(tmp_path / "run.sqlite", "read")
    assert list(log.decisions()["time"]) == [1, 1, 2, 2, 3, 3]
    assert again.runlog.digest == first.runlog.digest


def test_a_survey_asked_again_after_a_resume_replaces_its_answers(tmp_path) -> None:
    for _ in range(2):
        model = PotModel(2, rng=2, log=tmp_path / "run.sqlite")
        model.run_for(1)
        model.survey(["How are you?", "And now?"])
        model.survey(["How are you?"])
        model.close()
    answers = RunLog(tmp_path / "run.sqlite", "read").table("answers")
    assert list(answers["question"]) == ["How are you?", "And now?"] * 2 + ["How are you?"] * 2


def test_a_database_of_something_else_is_refused_and_left_as_it_is(tmp_path) -> None:
    with closing(sqlite3.connect(tmp_path / "photos.sqlite")) as photos:
        photos.execute("CREATE TABLE photos (taken TEXT)")
    before = (tmp_path / "photos.sqlite").read_bytes()
    for mode in ("record", "replay", "read"):
        with pytest.raises(ConfigError, match=r"something else \(tables: photos\)"):
            RunLog(tmp_path / "photos.sqlite", mode)
    assert (tmp_path / "photos.sqlite").read_bytes() == before


@pytest.mark.parametrize("mode", ["record", "replay", "read"])
def test_a_log_of_another_format_is_refused_and_left_as_it_is(mode, tmp_path) -> None:
    recorded(tmp_path / "run.sqlite")
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as file:
        file.execute("PRAGMA user_version=7")
    before = (tmp_path / "run.sqlite").read_bytes()
    with pytest.raises(ConfigError, match=r"run log of format 7, and this version of mesa_llm reads formats 3 to 5"):
        RunLog(tmp_path / "run.sqlite", mode)
    assert (tmp_path / "run.sqlite").read_bytes() == before


def test_a_model_that_was_closed_says_so_before_anybody_acts(tmp_path) -> None:
    model = recorded(tmp_path / "run.sqlite")
    coins = model.coins
    with pytest.raises(ConfigError, match=r"run log .*run\.sqlite' is closed"):
        model.step()
    assert model.coins == coins


def test_a_salt_gives_seeds_that_differ_by_agent_time_and_call() -> None:
    salt = PotModel(1, rng=1).engine.salt(1, 1)
    others = [salt._replace(agent=2), salt._replace(time=2), salt._replace(call=1), salt._replace(purpose="survey")]
    assert len({each.seed for each in [salt, *others]}) == 5


def start(url, log):
    model = PotModel(6, "stub", rng=3, log=log, api_base=url, concurrency=3)
    model.run_for(5)
    model.close()
    return model


def victim_of(url, log) -> Python:
    return Python("-c", f"from tests.pot import PotModel\n{inspect.getsource(start)}\nstart({url!r}, {str(log)!r})")


@pytest.mark.parametrize("after", [1, 13, 29])
def test_a_killed_run_goes_on_and_pays_nothing_twice(tmp_path, after) -> None:
    with FaultyServer(latency_s=0.02) as server:
        whole = start(server.url, tmp_path / "whole.sqlite")
        before = server.count
        victim = victim_of(server.url, tmp_path / "run.sqlite")
        while server.count < before + after and victim.poll() is None:
            time.sleep(0.002)
        victim.kill()
        victim.wait()
        again = start(server.url, tmp_path / "run.sqlite")
    assert again.runlog.digest == whole.runlog.digest
    assert again.usage.calls + again.usage.replayed == whole.usage.calls
    assert server.count - before <= whole.usage.calls + 3
    assert again.usage.replayed >= after - 3


def test_the_file_alone_of_a_killed_run_holds_all_its_closed_steps(tmp_path) -> None:
    with FaultyServer(lambda body, number: HANG if number > 20 else None) as server:
        victim = victim_of(server.url, tmp_path / "run.sqlite")
        while server.count < 21 and victim.poll() is None:
            time.sleep(0.002)
        victim.kill()
        victim.wait()
    shutil.copy(tmp_path / "run.sqlite", tmp_path / "copy.sqlite")
    whole, copy = (RunLog(tmp_path / name, "read").steps() for name in ("run.sqlite", "copy.sqlite"))
    assert list(copy["digest"]) == list(whole["digest"])
    assert len(copy) >= 2


def test_a_log_that_was_closed_is_one_file(tmp_path) -> None:
    recorded(tmp_path / "run.sqlite")
    assert [file.name for file in tmp_path.iterdir()] == ["run.sqlite"]


@contextmanager
def held_by_another_process(log):
    """Let another process hold a log until the end of the block; give its number."""
    code = f"from tests.pot import PotModel; m = PotModel(2, rng=1, log={str(log)!r}); m.step()"
    holder = Python("-c", f"{code}; print('ready', flush=True); import time; time.sleep(999)")
    try:
        while "ready" not in holder.out and holder.poll() is None:
            time.sleep(0.002)
        yield holder
    finally:
        holder.kill()
        holder.wait()


def test_two_processes_cannot_record_one_log_and_the_second_is_told_who_does(tmp_path) -> None:
    with held_by_another_process(tmp_path / "run.sqlite") as holder:
        with pytest.raises(ConfigError, match=rf"is being recorded by process {holder.pid} on .* \(since 20"):
            PotModel(2, rng=1, log=tmp_path / "run.sqlite")
        assert list(RunLog(tmp_path / "run.sqlite", "read").steps()["time"]) == [1]
    PotModel(2, rng=1, log=tmp_path / "run.sqlite").step()


def test_files_left_by_a_killed_writer_are_removed_by_the_next(tmp_path) -> None:
    with held_by_another_process(tmp_path / "run.sqlite") as holder:
        holder.kill()
        holder.wait()
    left = {file.name for file in tmp_path.iterdir()}
    PotModel(2, rng=1, log=tmp_path / "run.sqlite").close()
    assert "run.sqlite.lock-journal" not in left
    assert [file.name for file in tmp_path.iterdir()] == ["run.sqlite"]


def test_two_models_of_one_process_cannot_record_one_log(tmp_path) -> None:
    first = PotModel(2, rng=1, log=tmp_path / "run.sqlite")
    first.step()
    with pytest.raises(ConfigError, match=r"another model of this process .* close that one first: model\.close\(\)"):
        PotModel(2, rng=1, log=tmp_path / "run.sqlite")
    first.step()
    first.close()
    PotModel(2, rng=1, log=tmp_path / "run.sqlite").step()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_forked_process_cannot_go_on_with_its_parents_log(tmp_path) -> None:
    code = """
import os, sys
from mesa_llm import ConfigError
from tests.pot import PotModel
from tests.processes import Python, run
model = PotModel(2, rng=1, log=sys.argv[1])
model.step()
if not os.fork():
    try:
        model.step()
    except ConfigError as error:
        print(error, flush=True)
    model.close()
    os._exit(0)
os.wait()
model.step()
model.close()
"""
    forked = run("-c", code, str(tmp_path / "run.sqlite"))
    assert forked.returncode == 0
    assert "which this one was forked from" in forked.out
    assert list(RunLog(tmp_path / "run.sqlite", "read").steps()["time"]) == [1, 2]


def test_a_model_that_could_not_be_made_does_not_keep_its_log_from_the_next(tmp_path) -> None:
    class Broken(PotModel):
        def __init__(self, **options) -> None:
            super().__init__(**options)
            raise ConfigError("no such population")

    with pytest.raises(ConfigError, match="no such population") as error:
        Broken(rng=1, log=tmp_path / "run.sqlite")
    with pytest.raises(ConfigError, match="holds another run"):
        PotModel(rng=1, log=tmp_path / "run.sqlite")
    assert error.tb is not None


def test_only_one_of_many_threads_gets_a_log(tmp_path) -> None:
    RunLog(tmp_path / "run.sqlite").close()
    logs, refused = [], []

    def take() -> None:
        try:
            logs.append(WriteLock(tmp_path / "run.sqlite"))
        except BlockingIOError:
            refused.append(1)

    for _ in range(20):
        threads = [threading.Thread(target=take) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len(logs) == 1
        logs.pop().free()
    assert len(refused) == 140


IN_LITTLE_ROOM = """
import resource
from mesa_llm.cli.app import main
resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, resource.RLIM_INFINITY))
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk_ends_a_run_in_one_line_and_it_goes_on_when_there_is_room(tmp_path) -> None:
    command = ["run", "social", "--llm", "stub", "--rng", "1", "--steps", "3", "--set", "n_agents=60", "--json"]
    command += ["--log", str(tmp_path / "run.sqlite"), "--concurrency", "4"]
    with FaultyServer() as server:
        command += ["--api-base", server.url]
        small = run("-c", IN_LITTLE_ROOM, *command)
        before = server.count
        whole = json.loads(run("-m", "mesa_llm.cli.app", *command).out.splitlines()[-1])
    assert (small.returncode, len(small.err.splitlines())) == (2, 1)
    assert "cannot be written" in small.err
    assert before <= whole["replayed"] + 4
    assert (whole["decisions"], whole["calls"] + whole["replayed"]) == (180, 180)


def test_a_log_that_cannot_be_written_asks_for_nothing_more(tmp_path) -> None:
    with FaultyServer() as server:
        model = PotModel(50, "stub", rng=3, log=tmp_path / "run.sqlite", api_base=server.url, concurrency=2)
        model.runlog._trace.execute("PRAGMA max_page_count=60")
        counts = []
        for _ in range(3):
            with pytest.raises(ConfigError, match=r"cannot be written: database or disk is full\. No more requests"):
                model.run_for(20)
            counts.append(server.count)
    assert 0 < len(model.runlog.calls()) <= counts[0] <= len(model.runlog.calls()) + 2
    assert counts == counts[:1] * 3


def test_a_reply_is_found_as_soon_as_it_is_kept() -> None:
    log, request = RunLog(), Request("stub", (ChatMessage("user", "Hello"),), Salt(1, 1, 1, "decide", 0))
    log.may_repeat = True
    log.keep(request, Reply("fine"), 0.1, commit=False)
    assert log.find(request) == Reply("fine", latency_s=0.1)


def test_a_reply_that_no_log_can_hold_ends_the_run() -> None:
    model = PotModel(4, ScriptedLLM(lambda request: Reply("3", prompt_tokens=2**70)), rng=3)
    with pytest.raises(ConfigError, match="cannot be written: Python int too large"):
        model.run_for(1)


def rewritten(path, *, persona="You like round numbers.", steps=3, **options):
    """Go on with a recorded run whose agents are now somebody else."""
    model = PotModel(4, honest(), rng=2, log=path, attempts=1, activation="in_order", **options)
    for agent in model.agents:
        agent.config = agent.config.model_copy(update={"persona": persona})
    try:
        model.run_for(steps)
    finally:
        model.close()
    return model


def test_a_run_whose_prompt_changed_stops_before_it_pays_and_goes_on_when_told(tmp_path) -> None:
    rewritten(tmp_path / "run.sqlite")
    odd = partial(rewritten, tmp_path / "run.sqlite", persona="You like odd numbers.")
    with pytest.raises(ConfigError, match=r"(?s)agent 1, step 1.*-user: You like round.*\+user: .*--ask-again"):
        odd()
    assert odd(ask_again=True).usage.calls == 12
    assert odd().usage.replayed == 12
    assert rewritten(tmp_path / "run.sqlite").usage.replayed == 12
    with pytest.raises(ConfigError, match=r"(?s)-user: You like odd.*\+user: You like even"):
        rewritten(tmp_path / "run.sqlite", persona="You like even numbers.")


def test_failures_that_are_asked_again_may_change_what_follows(tmp_path) -> None:
    down = ScriptedLLM(lambda request: ServerError("down") if request.salt.time == 1 else honest_reply(request))
    recorded(tmp_path / "run.sqlite", down)
    model = recorded(tmp_path / "run.sqlite", honest(), retry_failures=True)
    assert (model.usage.failures, model.usage.calls + model.usage.replayed) == (0, 12)


def brief(request: Request) -> Reply:
    """Answer within a limit of tokens, which some replies need more of."""
    if request.salt.agent == 1 and request.settings["max_tokens"] < 100:
        return Reply(text='{"action": "pay", "argu', finish="length", reply_tokens=50)
    return honest_reply(request)


def test_replies_that_were_cut_are_asked_for_again_under_a_raised_limit(tmp_path) -> None:
    cut = recorded(tmp_path / "run.sqlite", ScriptedLLM(brief), reply_tokens=50)
    assert cut.usage.failures == 3
    with pytest.raises(ConfigError, match="reply_tokens: 50, now 500"):
        recorded(tmp_path / "run.sqlite", ScriptedLLM(brief), reply_tokens=500)
    whole = recorded(tmp_path / "run.sqlite", ScriptedLLM(brief), reply_tokens=500, retry_failures=True)
    assert whole.usage.failures == 0
    assert whole.usage.calls >= 3
    again = recorded(tmp_path / "run.sqlite", "ScriptedLLM", reply_tokens=500, replay=True)
    assert (again.runlog.digest, again.usage.calls) == (whole.runlog.digest, 0)


@pytest.mark.parametrize("retry_failures", [True, False])
def test_failures_asked_again_by_a_run_that_was_stopped_need_no_further_word(retry_failures, tmp_path) -> None:
    def play(**options):
        options = {"llm": "stub", "api_base": server.url, "attempts": 1, "log": tmp_path / "run.sqlite"} | options
        model = PotModel(3, rng=1, **options)
        with closing(model):
            model.run_for(4)
        return model.runlog.digest

    with FaultyServer(lambda body, number: SERVER_ERROR if number == 2 else None) as server:
        play()
        with pytest.raises(BudgetExceeded):
            play(retry_failures=True, max_calls=3)
        again = play(retry_failures=retry_failures)
        before = server.count
        assert play() == again
        assert server.count == before


def test_a_run_that_was_recorded_by_other_versions_says_which_when_it_differs(tmp_path) -> None:
    rewritten(tmp_path / "run.sqlite")
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as file, file:
        file.execute("UPDATE manifest SET value = json_set(value, '$.mesa', '3.0') WHERE name = 'versions'")
    with pytest.raises(ConfigError, match=r"changed since: mesa: '3.0', now '"):
        rewritten(tmp_path / "run.sqlite", persona="You like odd numbers.")


def test_a_log_in_memory_is_no_file(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = PotModel(rng=1, log=":memory:")
    model.step()
    assert (model.runlog.path, list(tmp_path.iterdir())) == (None, [])


@contextmanager
def nothing_writable(folder):
    """Take the right to write a folder, also from root."""
    is_root = os.geteuid() == 0
    folder.chmod(0o555)
    if is_root:
        for parent in folder.parents:
            if not parent.stat().st_mode & 0o005:  # pytest's folders are its user's alone, at whatever depth
                parent.chmod(parent.stat().st_mode | 0o055)
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such rights")
@pytest.mark.parametrize("beside", [False, True], ids=["closed", "killed"])
def test_a_log_in_a_read_only_place_is_read_and_replayed(beside, tmp_path) -> None:
    model = PotModel(4, honest(), rng=2, log=tmp_path / "run.sqlite")
    model.run_for(3)
    (tmp_path / "there").mkdir()
    if not beside:
        model.close()
    for file in tmp_path.glob("run.sqlite*"):
        shutil.copy(file, tmp_path / "there")
    (tmp_path / "there" / "run.sqlite-shm").unlink(missing_ok=True)
    with nothing_writable(tmp_path / "there"):
        again = PotModel(4, "ScriptedLLM", rng=2, log=tmp_path / "there" / "run.sqlite", replay=True)
        again.run_for(3)
    assert again.runlog.digest == model.runlog.digest


def edited(path, statement, *values) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(statement, values)


ALTERED = [
    "reply = replace(reply, 'pay', 'paz')",
    "key = zeroblob(32)",
    "error_kind = 'BadReply'",
    "error = 'no'",
    "prompt_tokens = prompt_tokens + 1",
    "reply_tokens = NULL",
    "dollars = 3.5",
    "latency_s = latency_s + 1",
    "attempts = 2",
    "agent = 9",
    "time = 7",
]


@pytest.mark.parametrize("altered", ALTERED)
@pytest.mark.parametrize("replay", [True, False])
def test_an_altered_reply_is_told_as_damage_of_its_row_when_it_is_used(altered, replay, tmp_path) -> None:
    recorded(tmp_path / "run.sqlite")
    edited(tmp_path / "run.sqlite", f"UPDATE calls SET {altered} WHERE rowid = 7")
    again = PotModel(4, honest(), rng=2, log=tmp_path / "run.sqlite", replay=replay)
    with pytest.raises(ConfigError, match=r"is damaged: the reply recorded for agent \d, step \d, .* --recover"):
        again.run_for(3)
    again.close()


def test_an_altered_reply_is_salvaged_as_lost_and_asked_again(tmp_path) -> None:
    whole = recorded(tmp_path / "run.sqlite")
    edited(tmp_path / "run.sqlite", "UPDATE calls SET reply = replace(reply, 'pay', 'paz') WHERE rowid = 7")
    kept = {each.table: (each.kept, each.lost) for each in recover(tmp_path / "run.sqlite", tmp_path / "new.sqlite")}
    assert kept["calls"] == (11, 1)
    again = recorded(tmp_path / "new.sqlite")
    assert (again.runlog.digest, again.usage.calls) == (whole.runlog.digest, 1)


def test_how_a_reply_was_read_is_in_the_log_and_not_in_its_digest(tmp_path) -> None:
    digests = []
    for reading in ("", "fenced JSON; name repaired"):
        log = RunLog(tmp_path / f"{len(reading)}.sqlite")
        log.add(Decision(1, answer=4, reading=reading), 1)
        log.add(Failure(2, "no", "Unparsed", reading=reading), 1)
        digests.append(log.end_step(1, {}))
        assert list(log.decisions()["reading"]) == [reading] * 2
        log.close()
    assert digests[0] == digests[1]
