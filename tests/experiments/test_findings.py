"""The daily act in one expression: personas, language models, designs and parameters as factors of one sweep."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from markupsafe import escape
from mesa.examples import BoltzmannWealth

from mesa_llm import AgentDesign, ConfigError, ScriptedLLM, experiments
from mesa_llm.experiments import Findings
from mesa_llm.experiments.audits import level_of
from mesa_llm.experiments.benchmarks.cross import cross
from mesa_llm.experiments.benchmarks.designs import ablations
from mesa_llm.records import Reply, Request, ToolCall
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from tests.experiments.benchmark.pots import POT
from tests.pot import PotModel
from tests.processes import run

PERSONAS = {"generous": "You give.", "greedy": "You keep."}


def giving(request: Request) -> Reply:
    """Pay as the persona says."""
    return Reply(tool_calls=(ToolCall("pay", {"coins": 5 if "You give" in request.messages[-1].content else 1}),))


def gifts(folder: Path, **changes: Any) -> Any:
    """Sweep two personas with a scripted language model and the rule twin."""
    options: dict[str, Any] = {"llm": [ScriptedLLM(giving), "rule"], "seeds": 4, "steps": 2, **changes}
    return experiments.sweep(PotModel, personas=PERSONAS, out=folder, workers=1, **options)


def test_personas_and_language_models_are_factors_alike(tmp_path: Path) -> None:
    found = gifts(tmp_path, designs={"own": None, "forgetful": AgentDesign(memory="none")})
    assert found.table[["persona", "llm", "design"]].drop_duplicates().shape == (8, 3)
    rows = found.compare("coins").set_index(["first", "second"])
    assert len(rows) == 8 * 7 / 2
    row = rows.loc["generous, ScriptedLLM, own", "greedy, ScriptedLLM, own"]
    assert (row["difference"], row["n"], row["unit"]) == (32, 4, "pairs of runs")
    assert rows.loc["generous, rule, own", "greedy, rule, own"]["difference"] == 0  # a rule twin reads no persona
    assert "generous, ScriptedLLM, own" in str(found)
    assert "<td>generous, ScriptedLLM, own</td>" in found._repr_html_()
    assert len(json.loads(json.dumps(found.to_json()))["table"]) == 32


def test_a_chart_is_drawn_in_a_notebook_without_a_backend(tmp_path: Path) -> None:
    chart = gifts(tmp_path).chart("coins")
    assert chart._repr_png_().startswith(b"\x89PNG")
    assert chart.names[0] == "generous, ScriptedLLM (n = 4)"


def test_fewer_than_four_runs_give_no_interval(tmp_path: Path) -> None:
    three, four = (gifts(tmp_path, seeds=seeds).compare("coins").iloc[1] for seeds in (3, 4))
    assert (three["n"], four["n"]) == (3, 4)
    assert three[["low", "high"]].isna().all()
    assert four[["low", "high"]].notna().all()


@pytest.mark.parametrize("ask", ["compare", "chart"])
def test_a_measure_that_there_is_not_is_named_with_those_that_there_are(tmp_path: Path, ask: str) -> None:
    with pytest.raises(ConfigError, match=r"no measure 'coin'; its measures are steps, coins, .*did you mean coins"):
        getattr(gifts(tmp_path, llm="random", seeds=1), ask)("coin")


def test_what_was_asked_is_not_asked_again(tmp_path: Path) -> None:
    asked: list[Request] = []

    def breaking(request: Request) -> Reply:
        asked.append(request)
        if len(asked) == 10:
            raise KeyboardInterrupt
        return giving(request)

    with pytest.raises(KeyboardInterrupt):
        gifts(tmp_path, llm=ScriptedLLM(breaking))
    found = gifts(tmp_path, llm=ScriptedLLM(breaking))
    assert found.n_failed == 0
    assert len(asked) <= 8 * 8 + 4  # the step that was interrupted may be asked again
    assert gifts(tmp_path, llm=ScriptedLLM(breaking)).n_done == 0


KILLED = """
import os, sys
from pathlib import Path
from mesa_llm import experiments
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from tests.experiments.benchmark.pots import POT
from tests.pot import PotModel
made = []
def die(row):
    made.append(row)
    if len(made) == 3:
        os._exit(9)
experiments.sweep(PotModel, llm=["rule", "random"], seeds=4, steps=2, out=Path(sys.argv[1]), workers=1, on_run=die)
"""


def test_a_killed_sweep_resumes(tmp_path: Path) -> None:
    assert run("-c", KILLED, tmp_path).returncode == 9
    found = experiments.sweep(PotModel, llm=["rule", "random"], seeds=4, steps=2, out=tmp_path, workers=1)
    assert (found.n_runs, found.n_done) == (8, 5)


def test_a_preview_shows_a_prompt_of_each_arm_and_asks_nobody(tmp_path: Path) -> None:
    def never(request: Request) -> Reply:
        raise AssertionError("a preview asks nobody")

    dry = gifts(tmp_path / "none", llm=[ScriptedLLM(never), "gpt-4o-mini", "rule"], seeds=3, dry_run=True)
    preview = dry.preview()
    assert preview.prompts["generous, gpt-4o-mini"].endswith("You give.")
    assert preview.prompts["greedy, rule"] == ""
    assert preview.total.requests == 2 * 2 * 3 * 8
    assert preview.total.dollars > 0
    assert str(dry) == str(preview)
    assert not (tmp_path / "none").exists()


def test_a_preview_counts_only_the_runs_that_are_missing(tmp_path: Path) -> None:
    gifts(tmp_path, seeds=3)
    assert gifts(tmp_path, seeds=4, dry_run=True).preview().total.requests == 2 * 8
    assert gifts(tmp_path, seeds=4).preview().total.requests == 0


def test_a_plain_mesa_model_is_swept_over_its_parameters(tmp_path: Path) -> None:
    how: dict[str, Any] = {"seeds": 4, "steps": 3, "out": tmp_path, "workers": 1}
    found = experiments.sweep(BoltzmannWealth, {"n": [10, 20]}, **how)
    assert found.compare("Gini").loc[0, ["first", "second", "n"]].tolist() == ["n=10", "n=20", 4]
    assert set(found.table["steps"]) == {3}
    assert experiments.sweep(BoltzmannWealth, {"n": [10, 20]}, **how).n_done == 0


@pytest.mark.parametrize("factor", [{"llm": "random"}, {"personas": PERSONAS}, {"designs": {"a": AgentDesign()}}])
def test_a_factor_that_cannot_act_in_a_plain_model_is_an_error(factor: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"cannot act in BoltzmannWealth, a plain .* \(n, width, height\)"):
        experiments.sweep(BoltzmannWealth, **factor)


def test_a_notebooks_own_model_runs_in_its_process() -> None:
    class Own(PotModel):
        """A model that no other process can import."""

    assert experiments.sweep(Own, seeds=2, steps=1).n_failed == 0


def test_a_bar_says_decisions_failures_and_dollars(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    gifts(tmp_path, seeds=1, progress=True)
    assert "4/4" in (shown := capfd.readouterr().err)
    assert "32 decisions, 0 failed, $0.0000" in shown


def branched(folder: Path) -> Findings:
    """Branch a run."""
    PotModel(n_agents=2, rng=1, log=folder / "parent.sqlite", llm="rule").run(3)
    fork = experiments.branch(folder / "parent.sqlite", 1, llm="random")
    fork.run()
    return fork


def compared(folder: Path) -> Findings:
    """Compare answers with those of people."""
    people = pd.DataFrame({"question": ["mood"] * 8, "answer": list(range(8))})
    moved = people.assign(answer=people["answer"] + 1)
    return experiments.compare(people, {"twins": people, "moved": moved})


def audited(folder: Path) -> Findings:
    """Audit a claim."""
    claims = [level_of(DilemmaModel, "guests_cooperation", 0.1)]
    small: Any = {"seeds": 2, "steps": 2, "dimensions": ["format"], "parameters": {"guests": 2, "regulars": False}}
    return experiments.audit(DilemmaModel, claims, folder=folder, llm="random", **small)


def calibrated(folder: Path) -> Findings:
    """Calibrate a parameter."""
    target = pd.DataFrame({"step": range(5), "gini": [0.0, 0.1, 0.2, 0.3, 0.3]})
    how: Any = {"points": 20, "seeds": 1, "search": 0, "fixed": {"n_agents": 3}, "workers": 1}
    return experiments.calibrate(WealthModel, target, {"coins": (1, 5)}, folder=folder, **how)


def analysed(folder: Path) -> Findings:
    """Analyse the sensitivity to a parameter."""
    how: Any = {"points": 2, "steps": 2, "method": "morris", "fixed": {"coins": 2}, "workers": 1}
    return experiments.sensitivity(WealthModel, {"n_agents": (3, 6)}, folder=folder, **how)


def studied(folder: Path) -> Findings:
    """Run a study with arms."""
    return experiments.study("oasis", "herd", seeds=2, steps=2, parameters={"n_agents": 12})


EXPERIMENTS: dict[Callable[[Path], Findings], tuple[str, str]] = {
    gifts: ("coins", "coins"),
    branched: ("coins", "coins"),
    compared: ("mood", "mood"),
    audited: ("guests_cooperation", "guests_cooperation"),
    calibrated: ("fit_error", "coins"),
    analysed: ("gini", "gini"),
    studied: ("score_up", "score_up"),
    lambda folder: experiments.benchmark(POT, "random", seeds=2): ("coins", "coins"),
    lambda folder: cross([POT], ablations("own", None), llm="rule", seeds=2): ("pot", "pot"),
}
"""Each kind of experiment → what it is compared by, and what is drawn of it."""


@pytest.mark.parametrize("make", EXPERIMENTS)
def test_every_experiment_returns_findings_that_compare_draw_and_show_themselves(tmp_path: Path, make: Any) -> None:
    found = make(tmp_path)
    compared_by, drawn = EXPERIMENTS[make]
    assert len(found.table)
    assert len(found.compare(compared_by))
    chart = found.chart(drawn)
    assert chart._repr_png_().startswith(b"\x89PNG")
    assert json.dumps(chart.data(), allow_nan=False)
    page, text = found._repr_html_(), str(found)
    assert found.title in text
    for section in found.sections():
        for sentence in (*section.sentences, *section.notes):
            assert sentence in text
            assert str(escape(sentence)) in page
        assert all(str(escape(table.title)) in page for table in section.tables)
    assert page.count("<img") == sum(len(section.charts) for section in found.sections())
    assert json.dumps(found.to_json())
    with pytest.raises(ConfigError, match="measure"):
        found.compare("nothing")


def test_a_study_is_run_by_its_name() -> None:
    found = experiments.study("discussion", "trolley", seeds=1, parameters={"rooms": 1})
    assert "<table>" in found._repr_html_()
    with pytest.raises(ConfigError, match="no measure"):
        found.compare("talk")
