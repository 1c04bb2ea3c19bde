"""The four original designs run in all tasks, and say what becomes of their components there."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from mesa_llm import AgentDesign, ToolServer
from mesa_llm.engine.activation import llm_agents
from mesa_llm.experiments.benchmarks import Task, find_task, find_tasks
from mesa_llm.experiments.benchmarks.designs import (
    ORIGINAL_DESIGNS,
    PUBLISHED_RATIOS,
    WITHOUT,
    Installation,
    ablations,
    installations,
    requests_in,
)
from mesa_llm.experiments.benchmarks.runs import Candidate, PlannedRun
from mesa_llm.experiments.benchmarks.task import SHACHI
from mesa_llm.records import Request
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


def test_original_designs_match_tasks_and_ratios_have_unit_diagonal() -> None:
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


def words_of(component: str, task: Task, requests: Sequence[Request]) -> Iterator[str]:
    """Return what a component says in requests, beside what is said without it."""
    model = task.as_quick().make(**{**task.as_quick().setting, "llm": "rule", "rng": 1})
    for request in requests:
        agent = next((one for one in llm_agents(model) if one.unique_id == request.salt.agent), None)
        text = "\n".join(message.content for message in request.messages)
        if component == "config" and agent is not None:
            config = agent.config
            values = [config.persona, config.style, *config.role.values(), *config.traits.values()]
            yield from (str(value) for value in values if len(str(value)) > 3 and str(value) in text)
        if component == "memory":
            yield from (message.content for message in request.messages if message.role == "assistant")
            yield from (line for line in ("What you remember", "What you learnt", "Your reasons") if line in text)
        if component == "tools":
            names = [spec.name for spec in request.tools if not spec.is_action]
            yield from (*names, *(name for name in ("read_forum", "search_posts") if name in text))
    model.close()


@pytest.mark.parametrize("component", WITHOUT)
@pytest.mark.parametrize("name", SHACHI)
def test_without_a_component_no_request_has_a_word_of_it(name: str, component: str) -> None:
    settings: list[dict[str, Any]] = [{}]
    if name in ("stock_agent", "auction_arena"):
        settings = [{"fidelity": "corrected"}, {"fidelity": "original"}]
    if name == "psychobench":  # by protocol, each of its questionnaires is one conversation
        settings = [{"history": False}]
    for setting in settings:
        task = TASKS[name].with_parameters(setting)
        requests = requests_in(task, AgentDesign(**WITHOUT[component]), max_steps=7)
        assert requests
        assert list(words_of(component, task, requests)) == []


@pytest.mark.parametrize("fidelity", ["corrected", "original"])
@pytest.mark.parametrize(("name", "word"), [("stock_agent", "Aggressive"), ("auction_arena", "larger total profit")])
def test_what_an_agent_wants_is_told_by_its_config_alone(name: str, word: str, fidelity: str) -> None:
    task = TASKS[name].with_parameters({"fidelity": fidelity})
    for design, is_told in ((None, True), (AgentDesign(persona="none"), False), (AgentDesign(persona="A fox."), False)):
        texts = [message.content for request in requests_in(task, design) for message in request.messages]
        assert any(word in text for text in texts) == is_told
        is_used = is_told or (design is not None and design.persona == "A fox.")
        assert (installations(task, {"one": design})["one"].config == "used") == is_used


@pytest.mark.parametrize(
    ("name", "config", "memory", "tools"),
    [
        ("emergent_analogies", (), ORIGINAL_DESIGNS, ()),
        ("stock_agent", ("stock_agent", "auction_arena"), ORIGINAL_DESIGNS, ("stock_agent",)),
        ("auction_arena", ("stock_agent", "auction_arena"), ORIGINAL_DESIGNS, ()),
        ("sotopia", (), ORIGINAL_DESIGNS, ()),
    ],
)
def test_the_agents_of_table_2_are_installed_as_in_the_paper(name: str, config: Any, memory: Any, tools: Any) -> None:
    for key, found in installations(TASKS[name], ORIGINAL_DESIGNS).items():
        assert (found.config == "used") == (key in config)
        assert (found.memory == "used") == (key in memory and key != "emergent_analogies")
        assert (found.tools == "used") == (key in tools)
