"""A dry run counts what would be sent, by the course that a run takes by rule, and asks nobody."""

import pytest

from mesa_llm import Access, AgentDesign
from mesa_llm.experiments.benchmarks.runs import Candidate, PlannedRun, estimate_plans
from mesa_llm.experiments.benchmarks.task import find_task
from mesa_llm.llm.tokens import price
from tests.experiments.benchmark.pots import POT
from tests.faulty_server import FaultyServer


def cost(llm, task=POT, seeds=(1,), design=None, **options):
    plans = [PlannedRun(task, Candidate("m", llm, design), seed) for seed in seeds]
    return estimate_plans(plans, Access(), **options)[0][task.name]


def test_each_decision_is_a_request_and_runs_of_a_task_cost_the_same() -> None:
    one, two = cost("gpt-4o-mini"), cost("gpt-4o-mini", seeds=(1, 2))
    assert (one.requests, two.requests) == (12, 24)
    assert two.prompt_tokens == 2 * one.prompt_tokens > 12 * 30


def test_dollars_are_those_of_litellms_price_map() -> None:
    found = cost("gpt-4o-mini", reply_tokens=100)
    assert found.max_reply_tokens == 1200
    assert found.max_dollars == pytest.approx(price("gpt-4o-mini", found.prompt_tokens, 1200))
    assert found.dollars == pytest.approx(price("gpt-4o-mini", found.prompt_tokens, found.reply_tokens))


def test_an_unknown_price_is_none_and_the_embedded_model_costs_nothing() -> None:
    assert cost("openai/no-such").dollars is None
    assert cost("local").dollars == 0


def test_an_endpoint_is_not_asked() -> None:
    with FaultyServer() as server:
        assert cost(f"m@{server.url}").requests == 12
        assert server.count == 0


def test_reasoning_first_is_a_second_request_and_a_memory_makes_prompts_longer() -> None:
    plain = cost("gpt-4o-mini", design=AgentDesign(memory="none"))
    assert cost("gpt-4o-mini", reasoning="first").requests == 24
    assert cost("gpt-4o-mini", design=AgentDesign(memory="window:9")).prompt_tokens > plain.prompt_tokens


@pytest.mark.parametrize("name", ["econ_agent", "auction_arena", "cognitive_biases"])
def test_our_tasks_are_rehearsed(name) -> None:
    assert cost("gpt-4o-mini", find_task(name).as_quick()).requests > 0


def test_who_judges_is_paid_for_what_rule_twins_do_too() -> None:
    judged = find_task("sotopia").as_quick().with_parameters({"judge": "gpt-4o-mini"})
    costs, unpriced = estimate_plans([PlannedRun(judged, Candidate("rule", "rule"), 1)], Access())
    assert (costs["sotopia"].requests, unpriced) == (6, [])


def test_models_without_a_price_are_named_whoever_asks_them() -> None:
    judged = find_task("sotopia").as_quick().with_parameters({"judge": "m@http://127.0.0.1:9/v1"})
    _, unpriced = estimate_plans([PlannedRun(judged, Candidate("priced", "gpt-4o-mini"), 1)], Access())
    assert unpriced == ["m@http://127.0.0.1:9/v1"]
