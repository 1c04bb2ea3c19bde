"""Reflection: what adds up in importance becomes insights, which are recalled and reflected on like other memories."""

import json
from contextlib import closing

import pytest

from mesa_llm import AgentDesign, BudgetExceeded, Reply, ScriptedLLM
from mesa_llm.llm.replies import call
from mesa_llm.memory import MemoryEntry, ReflectiveMemory, memory_from_json, open_memory
from mesa_llm.memory.reflection import Insight
from tests.pot import PotModel


def quick() -> ReflectiveMemory:
    """Reflect after four memories of the usual importance, without embeddings."""
    return ReflectiveMemory(weights=(1, 1, 0), threshold=2.0)


QUICK = AgentDesign(memory=quick)


def musing(request):
    """Pay; ask two questions; conclude something from the lines that are there, and something from none."""
    prompt = request.messages[-1].content
    if request.tools:
        return call("pay", coins=2)
    if "Step back" in prompt:
        return {"answer": ["Who pays?", "Is it enough?", "Who pays?"]}
    return {
        "answer": [
            {"insight": "You are the one\nwho pays.", "because": [2, 1, 99], "importance": 9},
            {"insight": "All is lost.", "because": [77], "importance": 10},
        ]
    }


def made(llm=None, n_agents=1, **options):
    return PotModel(n_agents, llm or ScriptedLLM(musing), rng=1, design=QUICK, **options)


def run(steps, *args, **options):
    model = made(*args, **options)
    model.run_for(steps)
    return model


def insights(model):
    return [[entry for entry in agent.memory.entries if entry.kind == "insight"] for agent in model.agents]


def test_insights_are_memories_that_cite_others() -> None:
    model = run(4)
    (found,) = insights(model)
    assert [entry.line for entry in found] == ["In step 4 you concluded: You are the one who pays."] * 2
    assert found[0].importance == 0.9
    assert found[0].because == (
        "In step 2 you paid 2.",
        "In step 1 you paid 2.",
    )
    assert model.usage_by_purpose["reflection"].calls == 3
    prompts = model.runlog.calls().query("purpose == 'reflection'")["prompt"]
    assert prompts.str.contains("You like round numbers").all()


def test_insights_come_to_mind_and_are_reflected_on() -> None:
    model = run(9)
    calls = model.runlog.calls()
    assert (
        "you concluded: You are the one who pays." in calls.query("time == 5 and purpose == 'decide'")["prompt"].item()
    )
    second = calls.query("time == 8 and purpose == 'reflection'")["prompt"]
    assert second.str.contains("you concluded").all()
    assert calls.query("purpose == 'reflection'")["time"].unique().tolist() == [4, 8]


@pytest.mark.parametrize("llm", ["rule", "random"])
def test_without_a_language_model_it_notes_what_comes_up_again_and_again(llm) -> None:
    model = run(8, llm)
    texts = [entry.text for entry in insights(model)[0]]
    assert texts
    assert all("comes up again and again" in text for text in texts)
    assert insights(run(8, llm)) == insights(model)


@pytest.mark.parametrize("reply", ["no questions", Reply(""), {"answer": []}, {"answer": ["  ", "\n"]}])
def test_reflection_without_questions_is_retried_next_step(reply) -> None:
    model = run(5, ScriptedLLM(lambda request: call("pay", coins=2) if request.tools else reply))
    assert insights(model) == [[]]
    assert sorted(set(model.runlog.calls().query("purpose == 'reflection'")["time"])) == [4, 5]
    assert model.coins == 10


def test_budget_spent_within_a_reflection_loses_nothing_on_replay(tmp_path) -> None:
    log, whole = tmp_path / "run.sqlite", run(5, n_agents=2)
    for max_calls in (9, 2, 1):  # within the questions, and within the insights
        with closing(made(n_agents=2, log=log, max_calls=max_calls)) as model, pytest.raises(BudgetExceeded):
            model.run_for(5)
    with closing(run(5, n_agents=2, log=log)) as model:
        assert model.usage.calls == whole.usage.calls - 12
        assert (model.runlog.digest, insights(model)) == (whole.runlog.digest, insights(whole))
    with closing(run(5, n_agents=2, log=log, replay=True)) as model:
        assert insights(model) == insights(whole)


def test_a_step_that_is_gone_on_with_keeps_the_questions_it_has_paid_for() -> None:
    n_asked = 0

    def moody(request):
        nonlocal n_asked
        n_asked += 1
        if n_asked == 6:
            raise BudgetExceeded("once")
        return musing(request)

    model = PotModel(1, ScriptedLLM(moody, delay_s=0.001), rng=1, design=QUICK)
    with pytest.raises(BudgetExceeded):
        model.run_for(4)
    model.run_for(1)
    assert insights(model) == insights(run(4))
    assert model.usage_by_purpose["reflection"].calls == 3


def test_what_adds_up_is_carried_into_another_life() -> None:
    memory = open_memory("reflection:4:15")
    for step in range(29):
        memory.add(MemoryEntry(step, "observation", f"It rains on day {step}."))
    memory.add(MemoryEntry(29, "insight", "It rains.", 1.0, because=("In step 1 you saw: It rains.",)))
    carried = memory_from_json(json.loads(json.dumps(memory.to_json())))
    assert isinstance(carried, ReflectiveMemory)
    assert not carried.is_due(1)
    carried.add(MemoryEntry(1, "observation", "It rains."))
    assert carried.is_due(1)
    assert carried.entries[-2].because == ("In step 1 you saw: It rains.",)


def test_no_reply_makes_more_than_the_bounds_allow() -> None:
    memory = quick()
    for step in range(6):
        memory.add(MemoryEntry(step, "observation", f"Rain on day {step}."))
    memory.keep_questions(["long " * 1000] + [f"Question {n}?" for n in range(50)], 6)
    found = memory.reflections(6)
    insight = Insight(insight="word " * 1000, because=list(range(-5, 50)), importance=10)
    memory.conclude([(one, [insight] * 50) for one in found], 6)
    written = [entry for entry in memory.entries if entry.kind == "insight"]
    assert (len(found), len(written)) == (3, 15)
    assert max(len(entry.text) for entry in written) <= 300
    assert max(len(entry.because) for entry in written) == 5
