"""Designs × tasks: what a component is worth is found exactly where a script says what it is worth."""

import json
from dataclasses import replace
from typing import Any

import pytest

from mesa_llm import AgentDesign, ConfigError, ScriptedLLM, Task
from mesa_llm.errors import BadReply
from mesa_llm.experiments.benchmarks.cross import Cross, cross
from mesa_llm.experiments.benchmarks.designs import ORIGINAL_DESIGNS, ablations
from mesa_llm.experiments.benchmarks.task import find_task
from mesa_llm.llm.replies import call
from mesa_llm.records import Request
from tests.experiments.benchmark.pots import POT

CONFIG, MEMORY, TOOLS = 2, 1, 1
"""Coins more a turn for each component; the first of three turns has nothing to remember."""


def pay(request: Request):
    """Pay more for each component, and a coin or two by chance."""
    text = " ".join(str(message.content) for message in request.messages)
    tools = {tool.name for tool in request.tools}
    coins = 1 + request.salt.seed % 2 + CONFIG * ("round numbers" in text) + MEMORY * ("you paid" in text)
    return call("pay", coins=coins + TOOLS * ("count" in tools))


PAYER = ScriptedLLM(pay, name="payer")


@pytest.fixture(scope="module")
def taken_apart() -> Cross:
    return cross([POT], ablations("own", None), llm=PAYER, seeds=6)


def test_a_component_is_worth_what_it_adds_however_chance_falls(taken_apart) -> None:
    cells = {name: taken_apart.cell(POT, name) for name in taken_apart.designs}
    less = {name: cell.comparison and cell.comparison.difference for name, cell in cells.items()}
    worth = {"config": 12 * CONFIG, "memory": 8 * MEMORY, "tools": 12 * TOOLS}
    for component, coins in worth.items():
        found = less[f"own without {component}"]
        assert found is not None
        assert (found.value, found.low, found.n) == (-coins, None, 6)  # nothing varies
        assert getattr(cells[f"own without {component}"].installation, component) == "ignored"
    assert less["own"] is None


def test_six_pairs_of_one_sign_are_significant_with_three_corrections(taken_apart) -> None:
    comparisons = [taken_apart.cell(POT, name).comparison for name in list(taken_apart.designs)[1:]]
    assert [one.p for one in comparisons] == [2 / 2**6] * 3
    assert [one.adjusted_p for one in comparisons] == [2 / 2**6] * 3
    assert taken_apart.text().count(" *") == 3


def test_ratios_are_those_of_the_means_and_the_diagonal_is_one(taken_apart) -> None:
    rows = [taken_apart.cell(POT, name) for name in taken_apart.designs]
    own = rows[0].figure.value
    assert [row.ratio.value for row in rows] == pytest.approx([row.figure.value / own for row in rows])
    assert (rows[0].ratio.low, rows[0].ratio.high) == (1, 1)


def test_ablations_leave_sampling_alone_and_designs_are_dealt_the_same_chance() -> None:
    requests: list[Request] = []
    scribe = ScriptedLLM(lambda request: (requests.append(request), pay(request))[1], name="scribe")
    base = AgentDesign(settings={"temperature": 0.3, "max_tokens": 99}, reasoning="inline")
    cross([POT], ablations("warm", base), llm=scribe, seeds=1)
    assert {tuple(request.settings.items()) for request in requests} == {(("temperature", 0.3), ("max_tokens", 99))}
    salts = [request.salt for request in requests]
    assert {salts.count(salt) for salt in salts} == {4}


def test_a_task_is_normalised_by_the_design_of_its_name_or_else_by_the_first() -> None:
    other = replace(POT, name="sotopia")
    found = cross([POT, other], {"own": None, "sotopia": ORIGINAL_DESIGNS["sotopia"]}, llm=PAYER, seeds=1)
    assert [found.diagonal(task) for task in (POT, other)] == ["own", "sotopia"]
    assert "(study" not in found.text()


def test_the_same_design_under_two_names_is_two_rows_of_equal_runs() -> None:
    found = cross([POT], {"own": None, "twin": None}, llm=PAYER, seeds=2)
    assert [len(found.runs_of(POT, name)) for name in found.designs] == [2, 2]
    comparison = found.cell(POT, "twin").comparison
    assert comparison is not None
    assert comparison.difference.value == 0


@pytest.mark.parametrize("sign", [0, -1])
def test_a_diagonal_that_is_not_positive_has_no_ratios_and_says_so(sign) -> None:
    debt = Task("debt", POT.make, lambda model: {"coins": sign * model.coins}, 3, 1, "Our own.", {"n_agents": 2})
    found = cross([debt], {"own": None, "sotopia": ORIGINAL_DESIGNS["sotopia"]}, llm=PAYER, seeds=2)
    assert [found.cell(debt, name).ratio for name in found.designs] == [None, None]
    assert "use the difference instead" in found.text()
    assert found.cell(debt, "sotopia").comparison is not None


def test_a_run_that_failed_leaves_its_pair_out() -> None:
    second = POT.make(rng=2).run_seed

    def stumble(request):
        has_tools = any(not tool.is_action for tool in request.tools)
        return pay(request) if has_tools or request.salt.run_seed != second else BadReply("down")

    found = cross(
        [POT], {"own": None, "sotopia": ORIGINAL_DESIGNS["sotopia"]}, llm=ScriptedLLM(stumble), seeds=3, attempts=1
    )
    comparison, figure = found.cell(POT, "sotopia").comparison, found.cell(POT, "own").figure
    assert comparison is not None
    assert figure is not None
    assert (comparison.difference.n, figure.n) == (2, 3)
    (failure,) = found.faults
    assert failure.startswith("FAILED pot, sotopia: 1 of 3 runs: none of the 12 decisions succeeded")


def test_failed_decisions_are_counted_beside_scores() -> None:
    half = ScriptedLLM(lambda request: pay(request) if request.salt.agent % 2 else BadReply("down"))
    found = cross([POT], {"own": None}, llm=half, seeds=2, attempts=1)
    (line,) = found.faults
    assert line.startswith("IN PART pot, own: 12 of 24 decisions failed, and the scores are of what came; ")
    assert line in found.text()
    assert line in found.page()


def test_rule_twins_ignore_designs_so_that_all_rows_are_equal() -> None:
    tasks = [find_task(name).as_quick() for name in ORIGINAL_DESIGNS]
    found = cross(tasks, seeds=1)
    for task in tasks:
        scores = [run.scores for design in found.designs for run in found.runs_of(task, design)]
        assert len(scores) == 4
        assert all(one == scores[0] for one in scores)
    assert "all designs decide alike" in found.text()
    assert found.ratio_rows().__next__()[0] == "emergent_analogies"
    assert "(study: 0.62)" in found.text()


def test_a_measure_that_no_run_has_is_named_beside_those_there_are() -> None:
    found = cross([POT.measured_by("love")], {"own": None}, llm="random", seeds=1)
    assert "love; normalised by own, of which no run has it; scores of this task are coins" in found.text()


def test_everything_is_json_and_a_page_with_a_heat_map(taken_apart) -> None:
    figures = json.loads(json.dumps(taken_apart.to_json(), allow_nan=False))
    cell = figures["cells"][1]
    assert (cell["design"], cell["installation"]["config"], len(cell["runs"])) == ("own without config", "ignored", 6)
    assert figures["designs"]["own without memory"] == {"memory": "none"}
    html = taken_apart.page()
    assert "data:image/svg+xml" in html
    assert "own without tools" in html


def test_a_difference_of_one_pair_has_no_colour() -> None:
    found = cross([POT], ablations("own", None), llm=PAYER, seeds=1)
    effects: Any = found.heat_maps().charts[1]
    assert effects.series[0].values == [0.0, None, None, None]
    assert set(effects.series[0].colours) == {"#ffffff"}


def test_what_cannot_be_is_said_before_anybody_is_asked() -> None:
    def never(request):
        raise AssertionError("somebody was asked")

    with pytest.raises(ConfigError, match="no task"):
        cross(["nothing"], llm=ScriptedLLM(never))
    with pytest.raises(ConfigError, match="at least one design"):
        cross([POT], {}, llm=ScriptedLLM(never))
    with pytest.raises(ConfigError, match="unknown options: colour"):
        cross([replace(POT, setting={"colour": 1})], llm=ScriptedLLM(never))


def test_what_was_found_is_read_again_from_its_json(taken_apart, tmp_path) -> None:
    (tmp_path / "cross.json").write_text(json.dumps(taken_apart.to_json()), encoding="utf-8")
    again = Cross.read(tmp_path / "cross.json")
    assert (again.to_json(), again.text()) == (taken_apart.to_json(), taken_apart.text())
    (tmp_path / "cross.json").write_text('{"tasks": 3}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"cross\.json is not a report of this version"):
        Cross.read(tmp_path / "cross.json")
