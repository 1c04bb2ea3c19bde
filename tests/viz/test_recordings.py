"""The recorded runs of a model on its page."""

from __future__ import annotations

from typing import Any

import ipyvuetify
import reacton
import solara

from mesa_llm import recorded_run
from mesa_llm.viz import LLMPage
from mesa_llm.viz.server.page import recorded_runs_of
from mesa_llm.viz.session.run_settings import RunSettings
from mesa_llm.viz.session.session import PageSession
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel
from mesa_llm_models.oasis.polarisation import PolarisationModel
from tests.pot import PotModel
from tests.viz.test_page import until


def buttons(model: Any) -> list[str]:
    """Return the labels of the buttons of a model's page, in order."""
    _, shown = reacton.render(solara.AppLayout(children=[LLMPage(model)]), handle_error=False)
    widgets = shown.find(ipyvuetify.Btn).widgets
    labels = [child for button in widgets for child in button.children if isinstance(child, str) and child.strip()]
    shown.close()
    return labels


def test_the_first_button_of_a_page_plays_the_recorded_run() -> None:
    first = buttons(WealthModel)[0]
    assert first.startswith("Watch")
    assert not any(str(label).startswith("Watch") for label in buttons(PotModel))


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


def test_a_model_beside_another_does_not_show_its_recordings() -> None:
    assert [run.title for run in recorded_runs_of(WealthModel)]
    assert recorded_runs_of(PolarisationModel) == []
