"""The recorded runs of a model on its page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ipyvuetify
import reacton
import solara

from mesa_llm import recorded_run
from mesa_llm.viz import LLMPage
from mesa_llm.viz.server.page import recorded_runs_of
from mesa_llm.viz.session.run_settings import RunSettings
from mesa_llm.viz.session.runs import recording_facts
from mesa_llm.viz.session.session import PageSession
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel
from mesa_llm_models.oasis.polarisation import PolarisationModel
from tests.browser.apps.village import Village, renderer
from tests.viz.test_page import until


@contextmanager
def page_of(model: Any, **options: Any) -> Iterator[Any]:
    """Show the page of a model."""
    _, shown = reacton.render(solara.AppLayout(children=[LLMPage(model, **options)]), handle_error=False)
    yield shown
    shown.close()


def labels(page: Any) -> list[str]:
    """Return the labels of the buttons of a page, in order."""
    texts = [child for button in page.find(ipyvuetify.Btn).widgets for child in button.children]
    return [text for text in texts if isinstance(text, str) and text.strip()]


def test_a_button_of_a_page_plays_the_recorded_run() -> None:
    with page_of(WealthModel) as page:
        first = next(one for one in page.find(ipyvuetify.Btn).widgets if str(one.children[-1]).startswith("Watch"))
        first.fire_event("click", {})
        until(lambda: "Start a new run" in labels(page))  # the thread that draws each step may be drawing just now
        assert not any(label.startswith("Watch") for label in labels(page))


def test_a_page_of_a_model_without_recordings_offers_none() -> None:
    with page_of(Village, model_params={"n_agents": 3}, renderer=renderer) as page:
        assert not any(label.startswith("Watch") for label in labels(page))


def test_a_recorded_run_plays_from_its_start_to_its_end_and_asks_nobody() -> None:
    recording = recorded_run("boltzmann_wealth").recording
    session = PageSession(WealthModel, RunSettings(seed="1"), None)
    session.watch(recording)
    runner: Any = session.runner
    assert (session.recording, runner.playing, session.error) == (recording, True, "")
    runner.pause_s = 0.0
    until(lambda: not runner.busy)
    assert (runner.model.time, runner.model.usage.calls) == (recording.last_step, 0)
    assert runner.note == "The recording ends here."
    session.close()


def test_a_page_says_which_recorded_run_it_replays() -> None:
    run = recorded_run("boltzmann_wealth")
    facts = recording_facts(run.recording, WealthModel, run.title, {"n_agents": "People"})
    assert facts["Run"] == "Ten people who meet, and give a coin or keep it"
    assert facts["Decisions by"] == "local:1.5b (Qwen2.5-Coder-1.5B-Instruct)"
    assert (facts["Seed"], facts["Steps"], facts["Decisions"]) == ("1", "6", "60")
    assert re.fullmatch(r"\$0: 28 requests, [\d,]+ tokens", facts["Cost"])
    assert facts["Recorded"] == "2026-11-26 · version 0.12.0"
    differing = facts["Parameters that differ from the defaults"].splitlines()
    assert {"People: 10", "Size: 3"} <= set(differing)
    assert not any(line.startswith("Coins") for line in differing)


def test_a_model_beside_another_does_not_show_its_recordings() -> None:
    assert [run.title for run in recorded_runs_of(WealthModel)]
    assert recorded_runs_of(PolarisationModel) == []
