"""The runs of a page, which are kept."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import LLMModel, Reply, ScriptedLLM, ToolCall
from mesa_llm.model.recording import Recording
from mesa_llm.viz.render.trace import agent_steps
from mesa_llm.viz.session import trial
from mesa_llm.viz.session.run_settings import RunSettings
from mesa_llm.viz.session.runner import wait_until_closed
from mesa_llm.viz.session.runs import KeptRun, downloads_of, kept_runs, run_file, runs_folder
from mesa_llm.viz.session.session import PageSession
from mesa_llm.viz.session.status import reset_warning
from tests.browser.apps.village import Hamlet, Village, say
from tests.pot import PotModel
from tests.viz.test_page import until

FIRST = RunSettings(seed="42", parameters={"n_agents": 4})


def run_of(session: PageSession) -> Any:
    """Return what runs the model of a session."""
    assert session.runner is not None
    return session.runner


def played(folder: Path, choice: RunSettings, steps: int = 2, model: type[LLMModel] = Village) -> KeptRun:
    """Run a village on a page for some steps, close the page, and return what is kept."""
    session = PageSession(model, choice, folder)
    run_of(session).start(steps)
    until(lambda: not run_of(session).busy)
    session.close()
    wait_until_closed(10)
    return kept_runs(folder, model)[0]


def test_a_run_is_kept_and_one_without_a_step_is_not(tmp_path: Path) -> None:
    PageSession(Village, FIRST, tmp_path).close()
    wait_until_closed(10)
    assert list(tmp_path.iterdir()) == []
    run = played(tmp_path, FIRST)
    assert (run.steps, run.manifest["rng"]) == (2, 42)
    assert run.path.parent == tmp_path


def test_a_run_is_gone_on_with_where_it_was_left(tmp_path: Path) -> None:
    choice = RunSettings("scripted", seed="7", parameters={"n_agents": 3})
    run = played(tmp_path, choice)
    session = PageSession(Village, FIRST, None)
    session.build(choice, run)
    until(lambda: not run_of(session).busy)
    assert (run_of(session).model.time, run_of(session).model.usage.calls) == (2, 0)
    run_of(session).start(1)
    until(lambda: not run_of(session).busy)
    assert run_of(session).model.usage.calls > 0
    session.close()


def test_a_replay_asks_nobody_and_ends_where_the_recording_does(tmp_path: Path) -> None:
    choice = RunSettings("scripted", seed="7", parameters={"n_agents": 3})
    run = played(tmp_path, choice)
    session = PageSession(Village, FIRST, None)
    session.view(Recording.read(run.path))
    until(lambda: not run_of(session).busy)
    assert (run_of(session).model.time, run_of(session).model.usage.calls) == (2, 0)
    assert run_of(session).note.startswith("The recording ends here")
    session.close()


def test_a_recorded_run_is_shown_after_any_step_forwards_and_backwards(tmp_path: Path) -> None:
    run = played(tmp_path, RunSettings("scripted", seed="7", parameters={"n_agents": 3}), 4)
    session = PageSession(Village, FIRST, None)
    session.open(run.path)
    greetings: dict[int, list[str]] = {}
    for step in (4, 2, 3, 0):
        session.go_to(step)
        until(lambda: not run_of(session).busy)
        greetings[step] = list(run_of(session).model.square.greetings)
        assert (run_of(session).model.time, run_of(session).model.usage.calls) == (step, 0)
        times = [thought.time for thought in agent_steps(run_of(session).model, 1)]
        assert times == list(range(step, 0, -1))
    assert greetings[4][: len(greetings[2])] == greetings[2] != greetings[3][: len(greetings[4])]
    assert greetings[0] == []
    session.close()


def test_a_step_is_asked_for_while_the_page_is_on_its_way_to_another(tmp_path: Path) -> None:
    run = played(tmp_path, FIRST, 30)
    session = PageSession(Village, FIRST, None)
    session.open(run.path)
    session.go_to(3)
    until(lambda: not run_of(session).busy)
    assert (run_of(session).model.time, session.target) == (3, 3)
    session.close()


def test_a_log_that_would_import_strange_things_is_not_opened(tmp_path: Path) -> None:
    model = Hamlet(rng=1, log=tmp_path / "run.sqlite")
    model.step()
    model.close()
    session = PageSession(LLMModel, RunSettings(seed="1"), None)
    session.open(tmp_path / "run.sqlite")
    assert "belongs to none of the models of `mesa-llm list`" in session.error
    assert session.recording is None
    session.close()


def kept_with(**parameters: Any) -> KeptRun:
    """Make a run that was kept with these parameters."""
    return KeptRun(Path("run.sqlite"), {"rng": 5, "parameters": parameters}, 1, 1, 0.0)


def test_what_was_chosen_for_a_run_is_chosen_again() -> None:
    choice = kept_with(llm="rule", n_agents=9, stranger=1).choice(FIRST, FIRST)
    assert (choice.llm_kind, choice.seed, choice.parameters) == ("rule", "5", {"n_agents": 9})
    assert kept_with(llm={"2": "human", "*": "rule"}).choice(FIRST, FIRST).plays == 2
    assert kept_with(llm="openai/m").choice(FIRST, FIRST).model_id == "openai/m"


def test_a_key_goes_to_no_other_endpoint_than_it_was_typed_for() -> None:
    typed = RunSettings("other", model_id="m", api_base="http://localhost:1/v1", api_key="sk-typed")
    assert kept_with(llm="m@http://localhost:1/v1").choice(FIRST, typed).api_key == "sk-typed"
    assert kept_with(llm="m@http://localhost:2/v1").choice(FIRST, typed).api_key == ""
    assert kept_with(llm="openai/m").choice(FIRST, typed).api_key == ""


def test_a_run_can_be_downloaded_while_it_is_written(tmp_path: Path) -> None:
    model = Village(rng=1, log=tmp_path / "run.sqlite")
    model.step()
    (tmp_path / "copy.sqlite").write_bytes(run_file(tmp_path / "run.sqlite"))
    steps = sqlite3.connect(tmp_path / "copy.sqlite").execute("SELECT count(*) FROM steps").fetchone()
    assert steps == (1,)
    model.close()


def test_a_run_is_offered_with_its_measures_decisions_and_actions() -> None:
    model = Village(rng=1)
    model.step()
    files = {download.name: download.content().decode() for download in downloads_of(model)}
    assert list(files) == [f"village-seed-1-step-1-{name}.csv" for name in ("measures", "decisions", "actions")]
    assert files["village-seed-1-step-1-measures.csv"].startswith(",greetings,")


def test_no_spreadsheet_takes_what_a_language_model_wrote_for_a_formula() -> None:
    model = Village(rng=1, n_agents=1, llm=ScriptedLLM(lambda request: Reply("=1+1", (ToolCall("rest"),))))
    model.step()
    files = {download.label: download.content().decode() for download in downloads_of(model)}
    assert ",'=1+1," in files["Decisions (CSV)"]


def test_what_reset_would_drop_is_said() -> None:
    model = Village(rng=1, llm=ScriptedLLM(say), n_agents=1)
    model.step()
    assert reset_warning(model) == "This run has 1 reply from language models or people. It has not been saved."


def test_files_that_are_no_runs_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "other.sqlite").write_text("no run")
    assert kept_runs(tmp_path, Village) == []


def test_the_environment_says_where_runs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESA_LLM_RUNS", str(tmp_path / "kept"))
    assert runs_folder() == tmp_path / "kept"
    monkeypatch.setenv("MESA_LLM_RUNS", "none")
    assert runs_folder() is None
    monkeypatch.delenv("MESA_LLM_RUNS")
    monkeypatch.chdir(tmp_path)
    assert runs_folder() == tmp_path / "runs"


def with_agents(run: KeptRun, number: Any) -> Recording:
    """Change the number of agents in a run log, and read it."""
    with sqlite3.connect(run.path) as file:
        parameters = json.dumps({**run.parameters, "n_agents": number})
        file.execute("UPDATE manifest SET value = ? WHERE name = 'parameters'", [parameters])
    return Recording.read(run.path)


@pytest.mark.parametrize("resumes", [False, True])
def test_a_log_that_asks_for_a_model_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resumes: bool
) -> None:
    monkeypatch.setattr(trial, "BUILD_S", 0)
    recording = with_agents(played(tmp_path, FIRST, model=PotModel), 4_000_000)
    session = PageSession(PotModel, FIRST, None)
    before = run_of(session).model
    if resumes:
        session.build(FIRST, kept_runs(tmp_path, PotModel)[0])
    else:
        session.view(recording)
    assert "needs more than 0 s or 2 GB to build its model (n_agents is 4,000,000)" in session.error
    assert run_of(session).model is before
    session.close()


def test_a_large_model_that_can_be_built_is_shown(tmp_path: Path) -> None:
    recording = with_agents(played(tmp_path, FIRST, model=PotModel), trial.PLAIN_SIZE + 1)
    session = PageSession(PotModel, FIRST, None)
    session.view(recording)
    assert (session.error, len(run_of(session).model.agents)) == ("", trial.PLAIN_SIZE + 1)
    session.close()
