"""Recorded runs: declared beside a model, recorded and resumed, replayed and described."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mesa_llm import ConfigError, LLMModel, ScriptedLLM, recorded_run
from mesa_llm.errors import DecisionError
from mesa_llm.experiments.runs import recordings
from mesa_llm.experiments.runs.recordings import figures_of, made_runs, runs_in
from mesa_llm.model.recording import Recording
from mesa_llm.testing import honest, honest_reply
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel

DECLARATIONS = """
[coins]
title = "Four people who give a coin or keep it"
steps = 3
parameters = { n_agents = 4, size = 2 }

[greedy]
title = "The same, greedy"
steps = 3
rng = 7
parameters = { n_agents = 4, size = 2 }
design = { persona = "You are greedy." }
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / "runs.toml").write_text(DECLARATIONS)
    return tmp_path


def test_a_run_is_recorded_as_declared_and_replayed_from_its_compact_file(folder) -> None:
    run = runs_in(folder)["greedy"]
    assert made_runs(folder) == []
    run.record(WealthModel, honest(), folder / "log.sqlite")
    assert made_runs(folder) == [run]
    model = run.replay()
    assert (model.time, model.usage.calls, len(model.agents), run.recording.rng) == (3, 0, 4, 7)
    assert "You are greedy." in model.runlog.calls().prompt.iloc[0]
    assert run.start().time == 0


def test_a_run_of_earlier_prompts_is_read_as_long_as_its_replies_decide_the_same(folder, monkeypatch, caplog) -> None:
    runs_in(folder)["greedy"].record(WealthModel, honest(), folder / "log.sqlite")
    made = Recording.read(folder / "log.sqlite")
    before = {name: value for name, value in made.parameters.items() if name != "people"}
    monkeypatch.setattr(recordings, "earlier_prompts", lambda recording: "recorded with 1.4.0")
    models: list[LLMModel] = []
    recordings.read_again(replace(made, parameters=before), models.append)
    (model,) = models
    assert (model.scenario.people, model.runlog.n_in_place > 0, model.time) == ("alike", True, 3)
    assert "log.sqlite was recorded with 1.4.0" in caplog.text
    with closing(sqlite3.connect(made.file)) as file, file:
        file.execute('UPDATE decisions SET decision = \'[[["keep",{}],["keep",{}]],null]\' WHERE time = 2')
    with pytest.raises(ConfigError, match="decide something else from step 2 on: record it anew"):
        recordings.read_again(replace(made, parameters=before), models.append)


def test_a_run_that_was_stopped_goes_on_and_nothing_is_asked_twice(folder) -> None:
    run, asked = runs_in(folder)["coins"], []

    def reply(request):
        asked.append(request.key)
        return honest_reply(request)

    def stop(model):
        if model.time == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.record(WealthModel, ScriptedLLM(reply), folder / "log.sqlite", stop)
    assert made_runs(folder) == []
    run.record(WealthModel, ScriptedLLM(reply), folder / "log.sqlite")
    assert len(asked) == len(set(asked)) == figures_of(run.file).calls
    assert run.recording.last_step == 3


def test_a_run_in_which_most_decisions_failed_does_not_replace_the_recording(folder) -> None:
    run = runs_in(folder)["coins"]
    run.record(WealthModel, honest(), folder / "good.sqlite")
    before = run.file.read_bytes()
    with pytest.raises(DecisionError, match=r"decisions failed\. The first failed because: "):
        run.record(WealthModel, ScriptedLLM(lambda request: "hm"), folder / "bad.sqlite")
    assert run.file.read_bytes() == before


def test_the_figures_of_a_recording_count_what_it_holds(folder) -> None:
    run = runs_in(folder)["coins"]
    replies = iter(range(1000))
    flaky = ScriptedLLM(lambda request: "hm" if next(replies) in (2, 3) else honest_reply(request))
    run.record(WealthModel, flaky, folder / "log.sqlite")
    figures = figures_of(run.file)
    assert (figures.steps, figures.agents, figures.decisions) == (3, 4, 12)
    assert figures.valid_percent == 100 * (12 - figures.failed) / 12
    assert figures.llms == ("ScriptedLLM",)
    assert figures.summary.startswith("ScriptedLLM: 4 agents, 3 steps, recorded on 20")


def test_a_recorded_run_is_found_by_its_model_and_its_name() -> None:
    assert recorded_run("schelling").title == recorded_run("schelling/town").title
    with pytest.raises(ConfigError, match=r"no recorded run 'discussion/trolly'.*debate.*did you mean"):
        recorded_run("discussion/trolly")


def test_a_declaration_that_cannot_be_read_says_where_and_why(folder) -> None:
    file = folder / "recordings" / "runs.toml"
    file.write_text("[coins]\ntitle = 'Coins'\nstep = 3\n")
    with pytest.raises(ConfigError, match=r"runs\.toml.*step"):
        runs_in(folder)
    file.write_text("[coins\n")
    with pytest.raises(ConfigError, match=r"runs\.toml"):
        runs_in(folder)


def test_a_run_that_has_not_been_recorded_says_so(folder) -> None:
    with pytest.raises(ConfigError, match="'coins' has not been recorded yet"):
        runs_in(folder)["coins"].replay()
