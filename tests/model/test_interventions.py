"""News, posts and changes from outside a run: made once, recorded, and made again by replays."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from typing import Any, ClassVar

import pytest
from mesa.time import Priority

from mesa_llm import Change, ConfigError, News, Post, ScriptedLLM, branch
from mesa_llm.llm.replies import call
from mesa_llm_models.social.model import SocialModel
from mesa_llm_models.three_worlds.model import ThreeWorldsModel
from tests.pot import PotModel, QuizModel


def prompts_of(model_class: type[Any], value: Any, steps: int = 2) -> list[list[str]]:
    """Return what each agent reads, by step, where a value is injected before step 2."""
    prompts: list[list[str]] = [[]]

    def script(request: Any) -> Any:
        prompts[-1].append(request.messages[-1].content)
        return "1" if request.schema else call("pay", coins=1)

    model = model_class(2, ScriptedLLM(script), rng=1)
    model.step()
    model.inject(value)
    for _ in range(steps):
        prompts.append([])
        model.step()
    return prompts


def test_news_is_read_by_everyone_in_the_next_step_alone() -> None:
    before, told, after = prompts_of(PotModel, "The mint has burned down.")
    line = "- The mint has burned down."
    assert not any(line in prompt for prompt in [*before, *after])
    assert [prompt.count(line) for prompt in told] == [1, 1]


def test_news_reaches_agents_whose_observations_are_made_for_them() -> None:
    _, told = prompts_of(QuizModel, "The quiz is rigged.", steps=1)
    assert len(told) == 10
    assert all("- The quiz is rigged." in prompt for prompt in told)


def test_news_is_for_whom_it_names_and_as_long_as_it_says() -> None:
    _, told, again, after = prompts_of(PotModel, News(text="Pay less.", to=(2,), steps=2), steps=3)
    assert [sum("Pay less." in prompt for prompt in prompts) for prompts in (told, again, after)] == [1, 1, 0]


def town(log: Any, **options: Any) -> ThreeWorldsModel:
    return ThreeWorldsModel(n_agents=4, rng=options.pop("rng", 3), log=log, **options)


def one_run(log: Any, **options: Any) -> str:
    """Run a town in which something is done from outside before step 3."""
    model = town(log, **options)
    model.run_for(2)
    assert model.inject("A ship has come in.") == 3
    model.inject({"kind": "post", "text": "Read all about it!", "author": "Harbour News"})
    model.inject(Change(variable="bridge_toll", value=2, world="economy"))
    model.run_for(2)
    model.close()
    return model.runlog.digest


def test_a_replay_and_a_second_run_with_the_log_make_them_again(tmp_path: Any) -> None:
    digest = one_run(tmp_path / "run.sqlite")
    assert one_run(tmp_path / "run.sqlite") == digest
    assert one_run(tmp_path / "run.sqlite", replay=True) == digest
    replay = town(tmp_path / "run.sqlite", replay=True)
    replay.run_for(4)
    assert replay.runlog.digest == digest
    assert [applied.step for applied in replay.interventions.log] == [3, 3, 3]
    assert replay.economy.state.variables["bridge_toll"] == 2
    assert "Harbour News" in replay.social.names.values()
    plain = town(None)
    plain.run_for(4)
    assert plain.runlog.digest != digest


def test_a_run_that_was_killed_before_the_next_step_goes_on_with_what_was_done(tmp_path: Any) -> None:
    model = town(tmp_path / "run.sqlite")
    model.step()
    model.inject("A ship has come in.")
    model.close()
    again = town(tmp_path / "run.sqlite")
    again.run_for(2)
    assert [applied.step for applied in again.interventions.log] == [2]
    assert "A ship has come in." in [event.text for _, event in again.bridge.log]


def test_a_run_that_the_log_holds_otherwise_is_refused(tmp_path: Any) -> None:
    one_run(tmp_path / "run.sqlite")
    model = town(tmp_path / "run.sqlite")
    with pytest.raises(ConfigError, match="the run log holds step 1 with another intervention"):
        model.inject("Too early.")
    model.run_for(2)
    with pytest.raises(ConfigError, match=r"A ship has come in.*now: news for everyone: A boat"):
        model.inject("A boat has come in.")


def test_what_is_done_while_a_step_runs_waits_for_the_next() -> None:
    model = PotModel(2, rng=1)
    model.observations()
    assert model.inject("Later.") == 2
    model.step()
    assert not model.interventions.log
    model.step()
    assert [applied.step for applied in model.interventions.log] == [2]


def test_a_post_from_outside_is_in_the_feeds_under_the_account_that_it_names() -> None:
    model = SocialModel(n_agents=3, rng=1)
    model.inject(Post(text="We are hiring.", author=model.world.names[2]))
    model.inject(Post(text="Elections today."))
    posts = [item.post for item in model.world.facts(1).feed]
    assert {(post.author, post.content) for post in posts} >= {
        (model.world.names[2], "We are hiring."),
        ("Newsroom", "Elections today."),
    }


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "News: text: string should have at least 1 character"),
        ("x" * 601, "News: text: string should have at most 600 characters"),
        ({"kind": "storm"}, "is not an intervention.*wanted a text, or an object with the kind news, post, change"),
        (News(text="x", to="moon"), r"news to 'moon': wanted all, a world \(social, market, economy\), or agents"),
        (News(text="x", to=(99,)), "news to 99: there is no such agent"),
        (Post(text="x", world="market"), "no world market supports posts; those that do: social"),
        ({"kind": "post", "text": " "}, "Post: text: string should have at least 1 character"),
        (Change(variable="fee", value=2), "refused: fee = 2; wanted fee, a share from 0 on and below 1"),
        (Change(variable="feed", value="best"), "refused: there is no feed 'best'"),
        (Change(variable="n_agents", value=3, world="social"), "refused: n_agents = 3; wanted feed"),
        (
            Change(variable="n_agents", value=3),
            r"cannot be changed.*what can be: crowd_dollars, social.feed, .*economy.tax_rate",
        ),
    ],
)
def test_bad_interventions_are_one_clear_error_and_nothing_happens(value: Any, reason: str) -> None:
    model = town(None)
    with pytest.raises(ConfigError, match=reason):
        model.inject(value)
    assert not model.interventions.log


def test_a_variable_is_changed_under_the_name_by_which_errors_list_it() -> None:
    model = town(None)
    model.inject(Change(variable="social.feed", value="random"))
    assert model.social.changeable()["feed"] == "random"


class HeraldModel(PotModel):
    """Makes interventions itself, in the hook or event that `when` names, and one at the end of each step."""

    when: ClassVar[str] = "end_step"

    def __init__(self, n_agents: int = 2, llm: Any = "rule", rng: Any = None, **options: Any) -> None:
        super().__init__(n_agents, llm, rng, **options)
        if "event" in self.when:
            at, priority = (2.5, Priority.DEFAULT) if self.when == "event" else (2, Priority.LOW)
            self.schedule_event(self._happen, at=at, priority=priority)

    def _happen(self) -> None:
        self._herald(self.when)

    def _herald(self, when: str) -> None:
        if when == self.when and self.time >= 2:
            self.inject(f"{when}: the pot holds {self.coins}.")
            self.inject("It rains.")

    def start_interval(self) -> None:
        self._herald("start_interval")

    def step(self) -> None:
        self._herald("step")
        super().step()

    def start_step(self) -> None:
        self._herald("start_step")

    def next_stage(self, acted: list[Any]) -> list[Any]:
        self._herald("next_stage")
        return []

    def end_step(self) -> None:
        self._herald("end_step")


HOOKS = ["start_interval", "step", "start_step", "next_stage", "end_step", "event", "late event"]


def herald(when: str) -> type[HeraldModel]:
    return type("Herald", (HeraldModel,), {"when": when, "__module__": __name__})


def run_herald(when: str, log: Any, steps: int = 5, **options: Any) -> HeraldModel:
    """Run a model that makes interventions, with one from outside that says the same as it does."""
    model = herald(when)(rng=1, log=log, **options)
    if not options.get("replay"):
        model.interventions.schedule(3, "It rains.")
    model.run_for(steps)
    model.close()
    return model


def without_owner(log: Any) -> None:
    """Leave out of a log what earlier versions did not write: whose an intervention was."""
    with closing(sqlite3.connect(log)) as database, database:
        (text,) = database.execute("SELECT value FROM manifest WHERE name = 'interventions'").fetchone()
        rows = [{name: value for name, value in row.items() if name != "by"} for row in json.loads(text)]
        database.execute("UPDATE manifest SET value = ? WHERE name = 'interventions'", (json.dumps(rows),))


@pytest.mark.parametrize("is_earlier", [False, True])
@pytest.mark.parametrize("when", HOOKS)
def test_what_a_model_injects_itself_is_replayed_and_resumed(when: str, is_earlier: bool, tmp_path: Any) -> None:
    whole = run_herald(when, tmp_path / "whole.sqlite")
    run_herald(when, tmp_path / "run.sqlite", steps=4)
    assert len(whole.interventions.log) > 2
    if is_earlier:
        without_owner(tmp_path / "whole.sqlite")
        without_owner(tmp_path / "run.sqlite")
    replayed = run_herald(when, tmp_path / "whole.sqlite", replay=True)
    reopened = run_herald(when, tmp_path / "whole.sqlite")
    resumed = run_herald(when, tmp_path / "run.sqlite")
    assert {one.runlog.digest for one in (replayed, reopened, resumed)} == {whole.runlog.digest}
    assert replayed.interventions.log == resumed.interventions.log == whole.interventions.log


def test_scheduled_event_replays_without_the_script(tmp_path: Any) -> None:
    model = PotModel(2, rng=1, log=tmp_path / "run.sqlite")

    def rain() -> None:
        model.inject("It rains.")

    model.schedule_event(rain, at=2.5)
    model.run_for(4)
    model.close()
    replay = PotModel(2, rng=1, log=tmp_path / "run.sqlite", replay=True)
    replay.run_for(4)
    assert [(one.step, one.text) for one in replay.interventions.log] == [(3, "news for everyone: It rains.")]
    assert replay.runlog.digest == model.runlog.digest


def test_a_branch_makes_its_own_interventions_where_its_model_makes_them(tmp_path: Any) -> None:
    run_herald("end_step", tmp_path / "run.sqlite")
    sys.modules[__name__].Herald = herald("end_step")  # type: ignore[attr-defined]
    with closing(branch(tmp_path / "run.sqlite", 3, inject=["A flood."], log=tmp_path / "branch.sqlite")) as fork:
        fork.run()
        made = [(one.step, one.text.removeprefix("news for everyone: ")) for one in fork.model.interventions.log]
    assert [step for step, text in made if text == "A flood."] == [4]
    assert [step for step, text in made if text == "It rains."] == [3, 3, 4, 5]
