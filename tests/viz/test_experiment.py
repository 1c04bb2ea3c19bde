"""The tab Experiment: what can be audited, what it takes, how it is stopped, and what finished audits say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import Access, ConfigError, LLMModel
from mesa_llm.charts.style import picture_of
from mesa_llm.experiments.audits import audit, level_of, n_runs
from mesa_llm.viz.components.experiment import saved_chart
from mesa_llm.viz.render.markup import markup
from mesa_llm.viz.server.page import tabs_of
from mesa_llm.viz.session.audit_runner import AuditRunner
from mesa_llm.viz.session.audits import KeptAudit, SavedAudit, change_cells, kept_audits
from mesa_llm.viz.session.run_settings import RunSettings
from mesa_llm.viz.session.session import PageSession
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from tests.browser.attacker import Endpoint, serving
from tests.faulty_server import FaultyServer
from tests.viz.test_page import until

PARAMETERS = {"guests": 2, "regulars": False, "rounds": 2}
CHANCE = RunSettings("random", seed="1", parameters=PARAMETERS)
FORM: dict[str, Any] = {"measure": "cooperation", "smallest_effect": 0.2, "seeds": 2, "steps": 2}
REPORT: dict[str, Any] = {
    "model": "DilemmaModel",
    "llm": "random",
    "seeds": [1, 2],
    "claims": [
        {
            "name": "cooperation",
            "claim": "cooperation: its level",
            "smallest effect": 0.2,
            "verdict": "holds",
            "baseline": {"value": 0.5, "low": 0.4, "high": 0.6},
            "perturbations": [
                {
                    "dimension": "format",
                    "perturbation": "as $x_ <b>",
                    "effect": {"value": 0.5},
                    "difference": {"value": 0.1},
                    "low_90": -0.1,
                    "high_90": 0.3,
                    "change": "undecided",
                }
            ],
        }
    ],
}


def prepared(folder: Path | None, choice: RunSettings = CHANCE, access: Access | None = None) -> AuditRunner:
    """Return what plans and runs audits, once it knows what can be audited."""
    auditor = AuditRunner(DilemmaModel, folder, access)
    auditor.change(**FORM)
    auditor.prepare(choice)
    until(lambda: not auditor.working)
    return auditor


def finished(auditor: AuditRunner, choice: RunSettings = CHANCE) -> AuditRunner:
    """Run the audit of one dimension, and wait for its end."""
    assert auditor.offer is not None
    auditor.change(left_out=frozenset(auditor.offer.dimensions) - {"sequencing"})
    auditor.run(choice)
    until(lambda: not auditor.working)
    return auditor


def written(folder: Path, **changes: Any) -> Path:
    """Write a report into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "audit.json").write_text(json.dumps({**REPORT, **changes}), encoding="utf-8")
    return folder


def test_the_form_offers_the_measures_and_the_dimensions_that_the_model_has() -> None:
    auditor = prepared(None)
    assert (auditor.error, auditor.offer is not None) == ("", True)
    assert auditor.offer is not None
    assert {"cooperation", "guests_cooperation"} <= set(auditor.offer.measures)
    assert auditor.offer.dimensions["sequencing"] >= 1
    assert sum(auditor.offer.dimensions.values()) == len(auditor.offer.plan.perturbations)
    setup = auditor.offer.setup(auditor.form, Path("nowhere"))
    assert auditor.n_runs() == n_runs(setup) > 2 * len(setup.plan.perturbations)
    assert auditor.expected_decisions() == auditor.n_runs() * auditor.offer.decisions > 0


def test_an_audit_runs_and_its_findings_are_those_of_the_command_line(tmp_path: Path) -> None:
    auditor = finished(prepared(tmp_path))
    assert (auditor.error, auditor.found is not None) == ("", True)
    assert auditor.note == f"The audit is finished: {auditor.n_runs()} runs."
    (kept,) = kept_audits(tmp_path, "DilemmaModel")
    options: dict[str, Any] = {"seeds": 2, "steps": 2, "llm": "random", "dimensions": ["sequencing"]}
    claims = [level_of(DilemmaModel, "cooperation", 0.2)]
    audit(DilemmaModel, claims, folder=tmp_path / "same", parameters=PARAMETERS, **options).write(tmp_path / "same")
    assert kept.saved.claims == KeptAudit.read(tmp_path / "same").saved.claims
    assert kept.saved.methods.startswith(
        "Robustness of 1 claim about DilemmaModel was audited with mesa_llm and random"
    )
    assert [file.label for file in kept.downloads()] == ["HTML", "JSON", "Methods paragraph"]


def test_what_is_stopped_goes_on_and_another_measure_repeats_no_run(tmp_path: Path) -> None:
    auditor = prepared(tmp_path)
    auditor.change(seeds=8)
    auditor.run(CHANCE)
    until(lambda: auditor.done > 2)
    auditor.stop()
    until(lambda: not auditor.working)
    logs = next(iter((tmp_path / "audits").iterdir())) / "logs"
    assert "are kept; press Run to go on from there." in auditor.note
    times = {file.name: file.stat().st_mtime_ns for file in sorted(logs.glob("*.json"))[:3]}
    auditor.change(seeds=2)
    finished(auditor).change(measure="guests_cooperation")
    finished(auditor)
    assert (auditor.error, len(kept_audits(tmp_path, "DilemmaModel"))) == ("", 2)
    assert all((logs / name).stat().st_mtime_ns == time for name, time in times.items() if "-1." in name)


def test_a_typed_endpoint_gets_the_typed_key_within_the_limit_of_requests(tmp_path: Path) -> None:
    with serving(Endpoint()) as endpoint:
        choice = RunSettings("other", "m", endpoint.url, "sk-typed", parameters=PARAMETERS)
        auditor = prepared(tmp_path, choice)
        auditor.change(max_calls=3)
        finished(auditor, choice)
        assert "Raise the limit and press Run to go on from there." in auditor.error
        assert endpoint.authorizations == ["Bearer sk-typed"] * 3
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"sk-typed" in file.read_bytes()]


def test_an_audit_pays_from_the_budget_of_all_pages(tmp_path: Path) -> None:
    with FaultyServer() as server:
        choice = RunSettings("other", "m", server.url, parameters=PARAMETERS)
        auditor = finished(prepared(tmp_path, choice, Access(max_calls=4)), choice)
        assert (server.count, "budget" in auditor.error) == (4, True)


def test_a_paid_audit_says_first_what_it_costs() -> None:
    choice = RunSettings("other", "gpt-4o-mini", parameters=PARAMETERS)
    auditor = prepared(None, choice)
    auditor.change(left_out=frozenset(auditor.offer.dimensions if auditor.offer else ()) - {"sequencing"})
    assert (auditor.is_priced(choice), auditor.is_estimated(choice)) == (True, False)
    auditor.estimate(choice)
    until(lambda: not auditor.working)
    assert auditor.cost is not None
    assert auditor.cost.dollars
    assert auditor.max_calls() == 2 * auditor.cost.requests
    auditor.change(seeds=3)
    assert not auditor.is_estimated(choice)


@pytest.mark.parametrize(
    ("choice", "fields", "message"),
    [
        (replace(CHANCE, llm_kind="human"), {}, "an audit repeats the run many times with one language model"),
        (CHANCE, {"steps": 0}, "a run has 1 step or more, got 0"),
    ],
)
def test_what_cannot_be_audited_is_said_in_a_line(choice: RunSettings, fields: dict[str, Any], message: str) -> None:
    auditor = AuditRunner(DilemmaModel, None, None)
    auditor.change(**fields)
    auditor.prepare(choice)
    until(lambda: not auditor.working)
    assert auditor.error.startswith(message)
    auditor.run(choice)
    assert not auditor.working


def test_a_run_needs_the_smallest_change_that_matters() -> None:
    auditor = prepared(None)
    auditor.change(smallest_effect=None)
    auditor.run(CHANCE)
    assert auditor.error == "Enter the smallest change of the measure that would matter to you, above 0."


def test_leaving_the_page_stops_its_audit(tmp_path: Path) -> None:
    session = PageSession(DilemmaModel, CHANCE, tmp_path)
    auditor = session.auditor
    assert auditor is not None
    auditor.change(**{**FORM, "seeds": 20})
    auditor.prepare(CHANCE)
    until(lambda: not auditor.working)
    before = session.state
    auditor.run(CHANCE)
    until(lambda: auditor.done > 0)
    assert session.state != before
    session.leave()
    until(lambda: not auditor.working)
    assert auditor.note.startswith("Stopped.")


def test_audits_stand_after_branches_where_they_can_run() -> None:
    def audit(model: LLMModel) -> None: ...

    def runs(model: LLMModel) -> None: ...

    tabs = tabs_of([], None, runs, audit)
    assert [one.heading for one in tabs["Experiment"]] == ["News", "What if", "Audit"]
    assert tabs["Data"][-1] == (runs, "Runs")
    assert audit not in [one.component for one in tabs_of([], None, runs)["Experiment"]]


# -- reports of strangers


def test_a_report_of_a_stranger_is_drawn_and_written_as_text(tmp_path: Path) -> None:
    claim = KeptAudit.read(written(tmp_path)).saved.claims[0]
    chart = saved_chart(claim)
    assert chart.names == ["as $x_ <b>"]
    assert picture_of(chart.figure()).startswith(b"\x89PNG")
    (cells,) = change_cells(claim)[1]
    assert cells[1:6] == ("as $x_ <b>", "0", "0.5", "–", "0.1 [-0.1, 0.3]")
    assert cells[7] == "undecided"
    hostile = claim.model_copy(update={"verdict": "<img src=x onerror=alert(1)>"})
    assert "&lt;img src=x" in markup("audit_claim.html", claim=hostile, smallest_effect="0.2")


@pytest.mark.parametrize(
    "changes",
    [
        {"claims": []},
        {"claims": [{**REPORT["claims"][0], "smallest effect": float("nan")}]},
        {"claims": [{**REPORT["claims"][0], "verdict": "x" * 30_000}]},
        {"claims": [{**REPORT["claims"][0], "baseline": {"value": 1e300}}]},
        {"model": ["no name"]},
        {"notes": ["x" * 10_000] * 500},
    ],
)
def test_a_faulty_report_is_not_listed(tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = written(tmp_path / "stranger", **changes)
    with pytest.raises(ConfigError, match=r"is not the report of an audit|is larger than"):
        KeptAudit.read(folder)
    assert kept_audits(tmp_path, "DilemmaModel") == []


def test_audits_made_by_the_command_line_are_listed_for_their_model_only(tmp_path: Path) -> None:
    written(tmp_path / "mine")
    written(tmp_path / "other", model="SocialModel")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "audit.json").write_text("[" * 100_000)
    (kept,) = kept_audits(tmp_path, "DilemmaModel")
    assert (kept.folder.name, kept.saved) == ("mine", SavedAudit.model_validate(REPORT))
    assert kept.description.endswith("random · 2 seeds · cooperation: holds")
