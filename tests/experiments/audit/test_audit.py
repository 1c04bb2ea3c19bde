"""Audits, whole, on planted minds: what they depend on is found, and nothing is asked twice."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import Access, ConfigError, ScriptedLLM
from mesa_llm.engine.access import OpenedModel
from mesa_llm.errors import BudgetExceeded
from mesa_llm.experiments.audits import Audit, audit, audit_setup, claim_from, estimate_audit, level_of, plan_for
from mesa_llm.experiments.audits.dimensions import Setting
from mesa_llm.experiments.audits.wording import facts_lost, write_rewordings
from mesa_llm.experiments.runs.runner import through
from mesa_llm.llm.protocol import Capabilities
from mesa_llm.records import Request
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from tests.faulty_server import FaultyServer
from tests.processes import Python, run

PARAMETERS = {"guests": 2, "regulars": False, "rounds": 2}
PERSONA = {"persona": "You are fair. You keep promises."}
LEVEL = level_of(DilemmaModel, "guests_cooperation", 0.4)


class Planted(Access):
    """An access that opens one scripted mind, whatever is named, but for rules and chance."""

    def __init__(self, answer: Callable[[str, Request], Any]) -> None:
        super().__init__()
        self.mind = ScriptedLLM(lambda request: answer("\n".join(one.content for one in request.messages), request))

    def open(self, llm: Any, **options: Any) -> OpenedModel:
        """Open the mind."""
        if llm in ("rule", "random"):
            return super().open(llm, **options)
        return OpenedModel(Capabilities.of(self.mind), self.mind, True, 1)


def planted(folder: Path, answer: Callable[[str, Request], Any], **changes: Any) -> Audit:
    """Audit a planted mind."""
    options: dict[str, Any] = {"llm": "planted", "seeds": 8, "parameters": PARAMETERS, "design": PERSONA, **changes}
    with through(Planted(answer)):
        return audit(options.pop("model", DilemmaModel), options.pop("claims", [LEVEL]), folder=folder, **options)


def move(text: str) -> dict[str, str]:
    """Return a move as a reply."""
    return {"answer": text}


def by_form(prompt: str, request: Request) -> Any:
    """Defect if the persona stands in a table."""
    if "what do you think" in prompt or "what result do you think" in prompt:
        return "It is the prisoner's dilemma of Axelrod."
    return move("defect" if "| persona |" in prompt else "cooperate")


def test_what_a_mind_depends_on_is_sensitive_and_nothing_else(tmp_path: Path) -> None:
    (found,) = planted(tmp_path, by_form, dimensions=["agent specification"]).claims
    assert [row.perturbation.name for row in found.in_state("sensitive")] == ["persona as a table"]
    assert len(found.in_state("stable")) == len(found.perturbations) - 1
    assert found.verdict == (
        "No direction or range of this level is claimed, so nothing is shown or refuted. "
        "Its value, 1 in the model as it is, changes under 1 (to 0 under persona as a table) and stays within ±0.4 "
        "under 4. Too little for a claim of kind exploratory: 1 of 3 dimensions audited."
    )
    (row,) = found.in_state("sensitive")
    assert (row.changed, row.result.difference.value) == ((32, 32), -1)


def test_agents_are_asked_aside_what_is_studied_and_the_runs_do_not_notice(tmp_path: Path) -> None:
    found = planted(tmp_path, by_form, dimensions=["format"], seeds=2)
    without = planted(tmp_path / "other", by_form, dimensions=["format"], seeds=2, awareness=False)
    assert found.awareness_text == (
        "4 of 4 agents asked aside, in 2 runs, named what is studied (100%, no interval below four runs)."
    )
    assert found.claims == without.claims


AUDIT = ["-m", "mesa_llm.cli.app", "audit", "prisoners_dilemma", "--measure", "cooperation", "--smallest-effect", "0.1"]
AUDIT += ["--llm", "tiny", "--dimensions", "context", "--json"]
AUDIT += ["--set", "guests=2", "--set", "regulars=false", "--set", "rounds=2"]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize(("seeds", "at"), [("--seeds=2", 3), ("--seeds=2", 30), ("--max-seeds=12", 200)])
def test_an_audit_that_is_killed_at_any_moment_goes_on_and_asks_nothing_twice(
    tmp_path: Path, seeds: str, at: int
) -> None:
    process: list[Python] = []

    def kill(body: Any, number: int) -> None:
        if number == at:
            process[0].kill()

    with FaultyServer(kill) as server:
        command = [*AUDIT, seeds, "--api-base", server.url, "--out", tmp_path / "audit"]
        process.append(Python(*command))
        process[0].wait(60)
        whole = run(*command)
        n_sent = server.count
        again = run(*command)
        assert server.count == n_sent
    found = json.loads(whole.out)
    assert "not checked against the recorded replies; to check: mesa-llm replay " in again.err
    assert found["calls"] + found["awareness"]["of"] * 2 <= n_sent <= found["calls"] + found["awareness"]["of"] * 2 + 2
    assert json.loads(again.out)["claims"] == found["claims"]


def test_by_looks_an_audit_ends_early_and_goes_on_where_it_was(tmp_path: Path) -> None:
    asked: list[Request] = []

    def answer(prompt: str, request: Request) -> Any:
        asked.append(request)
        return by_form(prompt, request)

    own: dict[str, Any] = {
        "dimensions": ["agent specification"],
        "seeds": None,
        "looks": [5, 8, 30],
        "awareness": False,
    }
    planted(tmp_path, answer, **{**own, "looks": [5]})
    (found,) = planted(tmp_path, answer, **own).claims
    assert {row.result.look for row in found.perturbations} <= {2, 3}
    assert [row.perturbation.name for row in found.in_state("sensitive")] == ["persona as a table"]
    n_asked = len(asked)
    assert planted(tmp_path, answer, **own).claims[0] == found
    assert len(asked) == n_asked
    assert planted(tmp_path / "at once", answer, **own).claims[0] == found
    assert len(asked) == 2 * n_asked


def test_a_claim_that_chance_shows_is_the_doing_of_the_world(tmp_path: Path) -> None:
    fields = {"between": [{"noise": 0.0}, {"noise": 1.0}], "expects": "first is greater", "smallest_effect": 0.05}
    claim = claim_from("noise", {"measure": "guests_cooperation", **fields}, DilemmaModel)
    (found,) = planted(tmp_path, by_form, claims=[claim], dimensions=["format"]).claims
    assert found.shown == "shown"
    assert {row.name: row.shown for row in found.controls}["rule in place of the language model"] == "shown"
    assert any("The rule twin shows the claim too" in note for note in found.warnings)


def test_a_claim_of_policy_needs_more_than_was_audited(tmp_path: Path) -> None:
    claim = claim_from("level", {"measure": "cooperation", "smallest_effect": 0.5, "kind": "policy"}, DilemmaModel)
    (found,) = planted(
        tmp_path, lambda prompt, request: move("defect"), claims=[claim], dimensions=["format"], seeds=5
    ).claims
    assert found.verdict.endswith(
        "Too little for a claim of kind policy: 1 of 9 dimensions and 1 of 2 language models audited."
    )


def test_the_report_says_what_was_not_audited_and_is_one_page(tmp_path: Path) -> None:
    found = planted(tmp_path, by_form, dimensions=["agent specification"], seeds=2)
    assert found.coverage.startswith("1 of 13 dimensions audited: agent specification. Not audited: language model,")
    page = found.page()
    assert "persona as a table" in page
    assert "two one-sided paired t-tests" in page
    assert "With 2 seeds, nothing can be judged; that takes at least 4." in page
    assert json.loads(json.dumps(found.to_json()))["claims"][0]["verdict"] in page


def test_the_measures_stand_beside_those_of_people(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text("guests_cooperation\n" + "\n".join(["0.4", "0.5", "0.6", "0.7"] * 5), encoding="utf-8")
    found = planted(tmp_path, by_form, dimensions=["format"], seeds=3, people=people)
    assert found.people is not None
    assert {row.source for row in found.people.rows} == {"planted", "rule", "random", "no persona"}
    assert "Beside people" in found.page()
    with pytest.raises(ConfigError, match="there is no such file"):
        planted(tmp_path, by_form, people="nobody.csv")


def test_another_language_model_is_a_perturbation(tmp_path: Path) -> None:
    setup = audit_setup(DilemmaModel, [LEVEL], folder=tmp_path, llm=["one", "two"], dimensions=["language model"])
    assert next(one.name for one in setup.plan.perturbations) == "language model two"


def test_what_the_claims_compare_is_not_perturbed(tmp_path: Path) -> None:
    between = [{"design": {"memory": "none"}}, {"design": {"memory": "window"}}]
    claim = claim_from("memory", {"measure": "cooperation", "between": between, "smallest_effect": 1}, DilemmaModel)
    setup = audit_setup(DilemmaModel, [claim], folder=tmp_path)
    assert "memory" not in {one.dimension for one in setup.plan.perturbations}


def test_only_what_changes_a_request_is_run() -> None:
    plan = plan_for(DilemmaModel, Setting({"rounds": 3}, PERSONA), steps=3)
    names = [one.name for one in plan.perturbations]
    assert "what is seen as a table" in names
    reasons = {one.perturbation.name: one.reason for one in plan.not_run}
    assert reasons["one after another"] == "no effect"  # all move at once in this game


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dimensions": ["formats"]}, r"there is no dimension 'formats'; .*did you mean format\?"),
        ({"seeds": [1]}, "two or more different seeds"),
        ({"seeds": [1, 1]}, "two or more different seeds"),
        ({"claims": []}, "at least one claim"),
    ],
)
def test_a_faulty_audit_is_refused(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    claims = arguments.pop("claims", [LEVEL])
    with pytest.raises(ConfigError, match=message):
        audit_setup(DilemmaModel, claims, folder=tmp_path, **arguments)


def test_the_estimate_is_what_is_paid_then_and_a_budget_ends_it(tmp_path: Path) -> None:
    options: dict[str, Any] = {"llm": "tiny", "seeds": 2, "parameters": PARAMETERS, "dimensions": ["format"]}
    with FaultyServer() as server:
        setup = audit_setup(DilemmaModel, [LEVEL], folder=tmp_path / "a", **options)
        cost, _ = estimate_audit(setup, api_base=server.url)
        assert server.count == 0
        with pytest.raises(BudgetExceeded):
            audit(DilemmaModel, [LEVEL], folder=tmp_path / "a", **options, api_base=server.url, max_calls=20)
        audit(DilemmaModel, [LEVEL], folder=tmp_path / "a", **options, api_base=server.url)
    assert server.count == pytest.approx(cost.requests, rel=0.2)


def test_rewordings_keep_the_facts_and_are_written_once(tmp_path: Path) -> None:
    asked: list[str] = []

    def reword(request: Request) -> str:
        text = request.messages[-1].content.split("\n\n", 1)[1].partition("\n\nThis is missing")[0]
        asked.append(text)
        return text.replace("3 points", "three") if len(asked) == 1 else f"In short: {text.strip()}"

    setting = Setting({"guests": 2, "regulars": False})
    mind: Any = ScriptedLLM(reword)
    folders, again = (write_rewordings(DilemmaModel, [setting], mind, tmp_path, n=1) for _ in range(2))
    assert folders == again
    assert len(asked) == 2  # the first one had lost a number
    (text,) = folders[0].glob("*.md")
    assert text.read_text(encoding="utf-8").startswith("In short: You play a game")
    plan = plan_for(DilemmaModel, setting, dimensions=["wording"], wordings=[str(folders[0])])
    assert "written rewording 1" in [one.name for one in plan.perturbations]


def test_facts_are_numbers_names_and_quotes() -> None:
    assert facts_lost("Pay 3 coins to Ann, say “yes”.", "To Ann you pay 3 coins and say “yes”.") == []
    assert facts_lost("Pay 3 coins to Ann.", "Pay 4 coins to her.") == ["Ann", "3", "4"]
