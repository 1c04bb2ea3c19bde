"""The recorded runs of the models: each can be made, and each that has been made is replayed to its end."""

from __future__ import annotations

import importlib
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mesa_llm.experiments.audits import recorded_audit, run_setup
from mesa_llm.experiments.audits.recorded import ARCHIVE, DECLARATION
from mesa_llm.experiments.runs.recordings import declared_runs, figures_of
from mesa_llm.runlog.log import RunLog
from mesa_llm.viz.session.run_settings import RunSettings
from mesa_llm.viz.session.runs import recording_facts
from mesa_llm.viz.session.session import PageSession
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from tests.viz.test_page import until

ROOT = Path(__file__).parents[2]

DECLARED = declared_runs()
MADE = {name: run for name, (_, run) in DECLARED.items() if run.file.is_file()}
EARLIER = {name: run for name, run in MADE.items() if run.is_of_earlier_prompts}


@pytest.fixture
def table(monkeypatch) -> Any:
    """The table about recordings, as a README has it."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("record").table


@pytest.mark.parametrize("name", DECLARED)
def test_a_declared_run_can_be_begun(name) -> None:
    entry, run = DECLARED[name]
    with closing(run.model(entry.load(), "rule")) as model:
        model.step()
        assert (model.usage.failures, model.time) == (0, 1)
        assert model.engine.decisions > 0


@pytest.mark.parametrize("name", [name for name in MADE if name not in EARLIER])
def test_a_recording_replays_to_its_end_without_a_request(name) -> None:
    run = MADE[name]
    with closing(run.replay()) as model:
        assert model.runlog.digest == run.recording.digests[run.recording.last_step]
        assert model.usage.calls == 0
        assert not model.running or model.time == run.steps


@pytest.mark.parametrize("name", EARLIER)
def test_a_recording_of_earlier_prompts_opens_and_everything_that_shows_it_says_so(name, table) -> None:
    entry, run = DECLARED[name]
    kind, version, (*_, row) = entry.load(), run.recording.version, table([(name, run)])
    with closing(run.start()) as model, closing(RunLog(run.file, "read")) as log:
        assert (model.time, model.usage.calls, log.calls().empty) == (0, 0, False)
    with closing(run.replay()) as model:
        assert model.usage.calls == 0
        assert model.time == run.recording.last_step or not model.running
    said = f"recorded with {version}, and prompts of its model changed in {run.prompts_since}"
    assert said in recording_facts(run.recording, kind)["Prompts"]
    assert f"{version}, prompts changed in {run.prompts_since}" in row
    session = PageSession(kind, RunSettings(seed="1"), recording=run.recording)
    until(lambda: session.runner is not None and not session.runner.busy)
    assert session.runner is not None
    assert session.runner.model.usage.calls == 0
    assert session.runner.model.time == run.recording.last_step or "no reply is recorded" in session.runner.error
    session.close()


@pytest.mark.parametrize("name", MADE)
def test_nearly_all_decisions_of_a_recording_are_valid_and_it_is_small(name) -> None:
    figures = figures_of(MADE[name].file)
    assert figures.valid_percent >= 95
    assert figures.size <= 400_000


@pytest.mark.parametrize("name", MADE)
def test_a_readme_holds_the_figures_of_the_recordings(name, table) -> None:
    readme = MADE[name].folder.parent / "README.md"
    row = table([(name, MADE[name])])[-1]
    assert row in readme.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", [name for name in MADE if name not in EARLIER])
def test_the_twins_of_a_recording_are_what_rule_and_chance_give_today(name) -> None:
    entry, run = DECLARED[name]
    kept, size = run.twins, run.twins_file.stat().st_size
    assert (set(kept), size <= 10_000) == ({"rule", "random"}, True)
    run.record_twins(entry.load())
    assert run.twins == kept


def test_no_recording_is_left_of_a_run_that_is_no_longer_declared() -> None:
    folders = {run.folder for _, run in DECLARED.values()}
    others = {"runs.toml", DECLARATION, ARCHIVE}
    found = {file for folder in folders for file in folder.iterdir() if file.name not in others}
    twins = {run.twins_file for run in MADE.values() if run.twins_file.is_file()}
    assert found == {run.file for run in MADE.values()} | twins


def test_a_recorded_audit_is_judged_again_as_its_page_says(tmp_path: Path) -> None:
    found = run_setup(recorded_audit(DilemmaModel, tmp_path))
    (claim,) = found.claims
    sensitive = {row.perturbation.name: row.result.effect.value for row in claim.in_state("sensitive")}
    page = " ".join((ROOT / "docs" / "auditing.md").read_text(encoding="utf-8").replace("\n>", " ").split())
    assert all(f"{value:.2f}" in page for value in sensitive.values())
    assert f"Of {len(claim.perturbations)} changes, it is shown under {len(claim.showing('shown'))};" in page
    assert re.sub(r" and judged with [\d.]*\d", "", found.methods) in page
    assert claim.verdict in (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
