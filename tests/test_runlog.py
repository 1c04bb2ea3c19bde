"""The run log: record, replay, resume after a kill, inspect."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from mesa_llm import ConfigError, ReplayError, RunLog, ScriptedLLM
from mesa_llm.contract import honest, honest_reply
from mesa_llm.errors import ServerTrouble
from tests.faulty_server import FaultyServer
from tests.pot import PotModel


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


def test_recorded_failures_are_replayed_as_failures(tmp_path) -> None:
    first = recorded(tmp_path / "run.sqlite", ScriptedLLM(lambda request: ServerTrouble("down")))
    again = PotModel(4, "ScriptedLLM", rng=2, log=tmp_path / "run.sqlite", replay=True)
    again.run_for(3)
    assert again.runlog.digest == first.runlog.digest
    assert again.usage.failures == 12


def test_failures_can_be_asked_again(tmp_path) -> None:
    recorded(tmp_path / "run.sqlite", ScriptedLLM(lambda request: ServerTrouble("down")))
    model = recorded(tmp_path / "run.sqlite", honest(), retry_failures=True)
    assert (model.usage.failures, model.usage.calls) == (0, 12)


def test_one_changed_word_stops_a_replay_and_shows_the_first_request_that_differs(tmp_path) -> None:
    recorded(tmp_path / "run.sqlite", activation="in_order")
    again = PotModel(4, "ScriptedLLM", rng=2, log=tmp_path / "run.sqlite", replay=True, activation="in_order")
    for agent in again.agents:
        agent.config = agent.config.model_copy(update={"persona": "You like odd numbers."})
    with pytest.raises(ReplayError, match=r"(?s)agent 1, step 1.*-system: You like round.*\+system: You like odd"):
        again.step()


def test_equal_prompts_of_different_agents_are_different_samples(tmp_path) -> None:
    recorded(tmp_path / "run.sqlite")
    calls = RunLog(tmp_path / "run.sqlite", "read").calls()
    assert len(set(calls["prompt"])) < len(calls)
    assert len(set(calls["key"])) == len(calls)


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
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"sk-very-secret" not in held


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

    plain, asked = (PotModel(3, ScriptedLLM(script), rng=2) for _ in range(2))
    plain.run_for(3)
    for _ in range(3):
        asked.step()
        assert list(asked.survey(["How are you?"])["answer"]) == ["Fine."] * 3
    assert asked.runlog.digest == plain.runlog.digest


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
    asked = RunLog(tmp_path / "run.sqlite", "read").table("answers")
    assert list(asked["question"]) == ["How are you?", "And now?"] * 2 + ["How are you?"] * 2


def test_a_database_of_something_else_is_refused_and_left_as_it_is(tmp_path) -> None:
    with closing(sqlite3.connect(tmp_path / "photos.sqlite")) as photos:
        photos.execute("CREATE TABLE photos (taken TEXT)")
    before = (tmp_path / "photos.sqlite").read_bytes()
    for mode in ("record", "replay", "read"):
        with pytest.raises(ConfigError, match=r"something else \(tables: photos\)"):
            RunLog(tmp_path / "photos.sqlite", mode)
    assert (tmp_path / "photos.sqlite").read_bytes() == before


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


def start(server, log):
    model = PotModel(6, "stub", rng=3, log=log, api_base=server.url, concurrency=3)
    model.run_for(5)
    model.close()
    return model


VICTIM = "import sys; from types import SimpleNamespace as S; from tests.test_runlog import start;"


@pytest.mark.parametrize("after", [1, 13, 29])
def test_a_killed_run_goes_on_and_pays_nothing_twice(tmp_path, after) -> None:
    with FaultyServer(latency_s=0.02) as server:
        whole = start(server, tmp_path / "whole.sqlite")
        before = server.count
        command = f"{VICTIM} start(S(url={server.url!r}), {str(tmp_path / 'run.sqlite')!r})"
        victim = subprocess.Popen([sys.executable, "-c", command])
        while server.count < before + after and victim.poll() is None:
            time.sleep(0.002)
        victim.kill()
        victim.wait()
        again = start(server, tmp_path / "run.sqlite")
    assert again.runlog.digest == whole.runlog.digest
    assert again.usage.calls + again.usage.replayed == whole.usage.calls
    assert server.count - before <= whole.usage.calls + 3
    assert again.usage.replayed >= after - 3
