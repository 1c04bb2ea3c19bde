"""OASIS's interface: who acts, by hand or by itself, step by step; and OASIS's database of it."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import ConfigError, Failure, ManualAction, ScriptedLLM
from mesa_llm.llm.scripted import call
from mesa_llm.model.recording import Recording
from mesa_llm.records import Reply, Request
from mesa_llm_models.oasis.environment import InterviewAction, LLMAction, OasisEnv, make
from mesa_llm_models.social.output import main

README = Path(__file__).parents[2] / "models/mesa_llm_models/oasis/README.md"


def post(content: str) -> ManualAction:
    return ManualAction(action="create_post", arguments={"content": content})


def direct(env: OasisEnv) -> list[Any]:
    first, second, third = env.agents
    return [
        env.step({first: [post("Bread."), InterviewAction("How are you?")], third: LLMAction()}),
        env.step(
            {second: ManualAction(action="follow", arguments={"followee_id": 0}), third: [LLMAction(), post("Tea.")]}
        ),
    ]


def trace(path: Path) -> list[tuple[int, str, Any]]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT user_id, action, info FROM trace ORDER BY rowid").fetchall()
    return [(user, action, json.loads(info)) for user, action, info in rows]


def test_users_act_in_the_order_in_which_they_are_told(tmp_path: Path) -> None:
    env = make(3, database=tmp_path / "oasis.db", rng=1)
    first, second = direct(env)
    env.close()
    (posted,), answer = first[env.agents[0]]
    assert (posted.ok, posted.facts["post_id"], answer[:4]) == (True, 1, "What")
    assert [len(results) for results in second.values()] == [1, 2]
    done = [(user, action) for user, action, _ in trace(tmp_path / "oasis.db") if action != "sign_up"]
    assert done[0] == (0, "create_post")
    assert done[-1] == (2, "create_post")
    assert (1, "follow", {"follow_id": 1}) in trace(tmp_path / "oasis.db")
    interview = {"prompt": "How are you?", "response": answer, "interview_id": "1_0"}
    assert (0, "interview", interview) in trace(tmp_path / "oasis.db")


def test_a_recorded_run_is_replayed_by_its_program_and_by_its_log_alone(tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"

    def reply(request: Request) -> Reply:
        return call("create_post", content="Hello.") if request.tools else Reply("Fine.")

    env = make(3, llm=ScriptedLLM(reply, name="scripted"), log=log, rng=1)
    results = direct(env)
    env.close()
    again = make(3, llm="scripted", log=log, rng=1, replay=True)
    assert [list(one.values()) for one in direct(again)] == [list(one.values()) for one in results]
    assert again.model.runlog.digest == env.model.runlog.digest
    alone = Recording.read(log).replayed()
    assert alone.runlog.digest == env.model.runlog.digest


def test_a_run_log_gives_the_same_database_as_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, files = tmp_path / "run.sqlite", (tmp_path / "run.db", tmp_path / "log.db")
    env = make(3, "reddit", files[0], log=log, rng=1)
    direct(env)
    env.close()
    assert main([str(log), str(files[1])]) == 0
    with closing(sqlite3.connect(files[0])) as one, closing(sqlite3.connect(files[1])) as other:
        assert list(one.iterdump()) == list(other.iterdump())
    assert main([str(log), str(log)]) == 2
    assert "is a database of another kind" in capsys.readouterr().err


def test_a_recorded_step_cannot_be_told_otherwise(tmp_path: Path) -> None:
    env = make(3, log=tmp_path / "run.sqlite", rng=1)
    env.step({env.agents[0]: post("Bread.")})
    env.close()
    again = make(3, log=tmp_path / "run.sqlite", rng=1)
    with pytest.raises(ConfigError, match="holds step 1 with other actions"):
        again.step({again.agents[0]: post("Tea.")})


def test_what_is_done_by_hand_is_refused_with_a_reason_and_remembered() -> None:
    env = make(2, "reddit", rng=1, beliefs=True)
    user, other = env.agents
    env.step({user: post("Bread.")})
    done = env.step({
        other: [ManualAction(action="like_post", arguments={"post_id": number}) for number in (1, 7)],
        user: [ManualAction(action="trend"), ManualAction(action="like_post", arguments={"post_id": "bread"})],
    })  # fmt: skip
    (liked,), (unknown,) = done[other]
    assert (liked.ok, unknown.ok, unknown.result[:19]) == (True, False, "There is no post 7;")
    assert "you wanted to like a post (7), but there is no post 7" in other.memory.recall("", 9)
    (trend,), wrong = done[user]
    assert "Bread." in trend.result
    assert isinstance(wrong, Failure)


def test_who_cannot_be_told_that_is_refused_before_anything_is_done() -> None:
    env = make(2, rng=1)
    user = env.agents[0]
    for told, why in (
        (ManualAction(action="trend"), "no action 'trend'"),
        ("post", "a user is told 'post'"),
        (None, "told None"),
        (ManualAction(agent=2, action="do_nothing"), "told what 2 is to do"),
    ):
        with pytest.raises(ConfigError, match=why):
            env.step({user: told})  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="is not a user of this network"):
        env.step({make(2, rng=1).agents[0]: LLMAction()})
    with pytest.raises(ConfigError, match="no platform 'myspace'"):
        make(2, "myspace")  # pyright: ignore[reportArgumentType]
    assert env.model.time == 0


def test_a_program_for_oasis_may_await() -> None:
    async def program() -> Any:
        env = make(2, rng=1)
        await env.reset()
        results = await env.step({env.agents[0]: post("Bread.")})
        await env.close()
        return results

    ((((posted,),),)) = asyncio.run(program()).values()
    assert posted.ok


def test_the_example_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(example, {})
    assert {action for _, action, _ in trace(tmp_path / "network.db")} >= {"sign_up", "create_post", "interview"}
