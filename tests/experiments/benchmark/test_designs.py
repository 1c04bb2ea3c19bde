"""The four original designs run in all tasks, and say what becomes of their components there."""

import pytest

from mesa_llm import AgentDesign, ToolServer
from mesa_llm.experiments.benchmark import find_task, find_tasks
from mesa_llm.experiments.benchmark.designs import (
    ORIGINAL_DESIGNS,
    PUBLISHED_RATIOS,
    Installation,
    ablations,
    installations,
)
from mesa_llm.experiments.benchmark.runs import Candidate, PlannedRun
from mesa_llm_models.sotopia.task import means
from tests.experiments.benchmark.pots import POT

TASKS = find_tasks()[0]


@pytest.mark.parametrize("name", TASKS)
def test_each_design_takes_a_step_in_each_task_and_uses_what_it_has(name) -> None:
    task = TASKS[name].as_quick()
    entered = installations(task, ORIGINAL_DESIGNS)
    for key, design in ORIGINAL_DESIGNS.items():
        model = PlannedRun(task, Candidate(key, "random", design), 1).make()
        model.run(1)
        assert model.engine.decisions > model.usage.failures
        found = entered[key]
        assert (found.memory == "used") == (key != "emergent_analogies")
        assert found.config != "used" or key in ("stock_agent", "auction_arena")
        assert found.tools != "used" or key == "stock_agent"


def test_only_where_a_task_offers_a_component_can_a_design_ignore_it() -> None:
    alone = {"alone": ORIGINAL_DESIGNS["emergent_analogies"]}
    ignored, absent = Installation("ignored", "ignored", "ignored"), Installation("absent", "absent", "absent")
    for name, expected in (("stock_agent", ignored), ("emergent_analogies", absent)):
        assert installations(find_task(name).as_quick(), alone) == {"alone": expected}


def test_each_original_design_is_that_of_a_task_and_published_ratios_have_a_unit_diagonal() -> None:
    assert set(ORIGINAL_DESIGNS) == set(PUBLISHED_RATIOS) <= set(TASKS)
    assert all(set(row) == set(PUBLISHED_RATIOS) and row[name] == 1 for name, row in PUBLISHED_RATIOS.items())


def test_an_ablation_takes_one_component_and_nothing_else() -> None:
    base = AgentDesign(memory="stream", settings={"temperature": 0.2}, reasoning="first", adapter="pirate")
    kept = base.to_json()
    for name, design in ablations("mine", base).items():
        assert design is not None
        written = design.to_json()
        changed = {key for key in {*written, *kept} if written.get(key) != kept.get(key)}
        expected = {"mine": set(), "mine without memory": {"memory"}, "mine without tools": {"world_tools"}}
        assert changed == expected.get(name, {"persona", "style"})
    assert installations(POT, ablations("own", None))["own without tools"] == Installation("used", "used", "ignored")


def test_a_researchers_own_tools_and_servers_go_with_the_tools() -> None:
    def weather() -> str:
        """Say how the weather is."""
        return "fine"

    server = ToolServer(command=("never-started",))
    for base in (AgentDesign(tools=(weather,), world_tools=False), AgentDesign(servers=(server,), world_tools=False)):
        entered = installations(POT, ablations("mine", base))
        assert (entered["mine"].tools, entered["mine without tools"].tools) == ("used", "ignored")


def test_the_measure_of_sotopia_is_that_of_table_2() -> None:
    assert find_task("sotopia").measured(means()) == pytest.approx(0.760, abs=5e-4)


def test_without_a_measure_a_task_has_its_first_score() -> None:
    assert POT.measured({"coins": 3.0, "love": 1.0}) == 3.0
    assert POT.measured_by("love").measured({"coins": 3.0}) is None
