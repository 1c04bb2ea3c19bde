"""Requests are numbered when they are put in line: latency never decides who gets which reply."""

import asyncio
import gc
import random
import sys

import pytest

from mesa_llm import ConfigError, Decision, LLMAgent, Observation, ScriptedLLM
from mesa_llm.engine import engine
from mesa_llm.llm.replies import call
from tests.pot import PotModel, QuizModel


def late(request):
    return random.SystemRandom().uniform(0, 0.02)


def by_number(request):
    """Answer equal prompts by the request's key, as a language model does by its seed."""
    return {"answer": request.salt.seed % 1000}


class Same(QuizModel):
    """Asks everything under one label, so that nothing but their numbers tells the requests apart."""

    def _everything(self, model):
        same = Observation("Say a number.", answer=int)
        return [[(turn._replace(observation=same)) for turn in stage] for stage in super()._everything(model)]

    def step(self):
        (stage,) = self._everything(self)
        seen = [turn.observation or Observation() for turn in stage]
        decided = self.decide([turn.agent for turn in stage], seen)
        self.numbers = [made.answer for made in decided if isinstance(made, Decision)]


def test_several_questions_to_one_agent_keep_their_replies_at_any_latency() -> None:
    models = [Same(3, ScriptedLLM(by_number, delay_s=delay_s), rng=1) for delay_s in (0, late, late)]
    for model in models:
        model.step()
    assert len(set(models[0].numbers)) == 15
    assert models[0].numbers == models[1].numbers == models[2].numbers


def test_one_agent_that_is_asked_twice_under_one_label_in_a_stage_is_an_error() -> None:
    class Twice(QuizModel):
        def _everything(self, model):
            return [stage * 2 for stage in super()._everything(model)]

    model = Twice(rng=1)
    with pytest.raises(ConfigError, match="same label; give each Observation its own label="):
        model.step()
    assert (model.time, model.answers) == (0, [])


class Reformed(QuizModel):
    """Hands its second model on by its script."""

    def __init__(self, log, *, replay=False) -> None:
        script = ScriptedLLM(lambda request: "Well …", delay_s=late)
        super().__init__(1, script, 1, log=log, replay=replay, parser=Former(form, delay_s=late))


class Former(ScriptedLLM):
    """A second model with a name of its own."""

    name = "former"


def form(request):
    return {"answer": request.salt.seed % 1000}


def test_formatting_by_a_second_model_is_recorded_once_and_replayed(tmp_path) -> None:
    live = Reformed(tmp_path / "run.sqlite")
    live.run_for(2)
    calls = live.runlog.calls()
    live.close()
    again = Reformed(tmp_path / "run.sqlite", replay=True)
    again.run_for(2)
    assert (live.usage.calls, len(calls), len(set(live.answers))) == (20, 20, 10)
    assert set(calls["model"]) == {"ScriptedLLM", "former"}
    assert (again.answers, again.runlog.digest) == (live.answers, live.runlog.digest)


class Twofold(LLMAgent):
    """Decides by a second language model that waits, though its own waits for nothing."""

    async def decide(self, seen):
        await ScriptedLLM(lambda request: "hm", delay_s=0.001).reply(None)  # pyright: ignore[reportArgumentType]
        return await super().decide(seen)


def test_a_decision_of_ones_own_may_wait_though_the_agents_model_never_does() -> None:
    model = PotModel(0, "random", rng=1)
    Twofold.create_agents(model, 3)
    model.step()
    assert (model.engine.decisions, model.usage.failures, len(model.runlog.actions())) == (3, 0, 3)


def test_stage_numbers_immediate_and_waiting_agents_in_order() -> None:
    def run(delay_s):
        model = PotModel(0, {"Twofold": "random", "*": ScriptedLLM(paid, delay_s=delay_s)}, rng=1)
        for kind in (LLMAgent, Twofold, LLMAgent):
            kind(model)
        model.run_for(2)
        return model.runlog.digest

    assert run(0) == run(late)


def paid(request):
    return call("pay", coins=request.salt.seed % 4)


def test_one_decision_asks_no_more_than_its_numbers_reach() -> None:
    class Endless(LLMAgent):
        async def decide(self, seen):
            for _ in range(200):
                await super().decide(seen)

    model = PotModel(0, ScriptedLLM(paid), rng=1)
    Endless(model)
    with pytest.raises(ConfigError, match="more than 128 questions"):
        model.step()


def test_numbers_of_steps_that_are_over_are_forgotten() -> None:
    class Lots(PotModel):
        def observe_lot(self, agent):
            return Observation(label=f"lot {self.now}", facts=0)

        def step(self):
            agents = list(self.agents)
            self.decide(agents, [self.observe_lot(agent) for agent in agents])

    model = Lots(2, ScriptedLLM(paid), rng=1)
    model.run_for(5)
    assert len(model.engine._numbering._turns) == 2


@pytest.mark.parametrize(("after_s", "is_running"), [(600.0, False), (0.0, True)])
def test_the_garbage_collector_rests_until_replies_take_their_time(monkeypatch, after_s, is_running) -> None:
    monkeypatch.setattr(engine, "COLLECTOR_AFTER_S", after_s)
    found = []

    class Patient:
        async def reply(self, request):
            for _ in range(3_000):
                if gc.isenabled() is is_running:
                    break
                await asyncio.sleep(0.01)
            found.append(gc.isenabled())
            return paid(request)

    PotModel(2, Patient(), rng=1).step()
    assert found == [is_running] * 2
    assert gc.isenabled()


def test_garbage_collection_runs_between_stages_not_during_decisions() -> None:
    model = PotModel(5, ScriptedLLM(paid), rng=1, activation="one_at_a_time")
    found = []

    def note(phase, info):
        found.append(model._seen is None)

    threshold = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1)
    try:
        model.step()
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(note)
    assert len(found) >= 2 * 4
    assert all(found)


def test_code_that_exits_ends_the_step_and_the_next_one_runs() -> None:
    def leave(request):
        sys.exit(3)

    model = PotModel(2, ScriptedLLM(leave), rng=1)
    with pytest.raises(SystemExit):
        model.step()
    other = PotModel(2, ScriptedLLM(lambda request: call("pay", coins=1)), rng=1)
    other.step()
    assert other.coins == 2
