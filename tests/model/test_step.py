"""A model that can step again: what stops a step, what ends a run, and what is refused."""

import asyncio
import copy
import os
import pickle
import signal
import threading
import time
from typing import Any

import pytest
from mesa.datacollection import DataCollector

from mesa_llm import BudgetExceeded, ConfigError, Decision, Observation, ScriptedLLM, Stopped, ToolCall
from mesa_llm.engine.activation import Turn
from mesa_llm.engine.survey import Question
from mesa_llm.llm.limits import InFlight
from mesa_llm.llm.replies import call
from mesa_llm.testing import honest_reply
from tests.pot import Payer, PotModel, QuizModel


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)  # lets the main thread have it before another one comes


class Polled(PotModel):
    """Asks its agents and a judge at the end of each step, and pays what they say into the pot."""

    def end_step(self) -> None:
        table = self.survey([Question("How much do you add?", int)])
        self.pot.coins += sum(table["answer"].dropna())
        judge: Any = self.llm
        (judged,) = self.consult(judge, ["How much is it worth?"], answer=int)
        assert isinstance(judged, Decision)
        self.pot.coins += judged.answer
        self.pot.coins += sum(
            len(one.actions) for one in self.decide(list(self.agents)[:1]) if isinstance(one, Decision)
        )


class Script:
    """Answers by the request alone, and does something else when the n-th request of the end of a step comes."""

    def __init__(self, at: int | None = None, act: Any = None) -> None:
        self.at, self.act, self.n = at, act, 0

    def __call__(self, request):
        if request.salt.time == 2 and (request.salt.purpose != "decide" or request.salt.call >= 1024):
            self.n += 1
            if self.n == self.at:
                self.act()
        if request.salt.purpose == "decide":
            return honest_reply(request)
        return {"answer": request.salt.seed % 9}


def polled(script, log=None, **options):
    return Polled(3, ScriptedLLM(script, delay_s=0.001), rng=5, log=log, **options)


def whole() -> str:
    model = polled(Script())
    model.run_for(4)
    return model.runlog.digest


class Interrupted:
    """Sends a Ctrl-C when the second request arrives, and replies to it once nothing more is sent."""

    is_person = False

    def __init__(self) -> None:
        self.n_requests = self.n_given_up = 0

    async def reply(self, request):
        self.n_requests += 1
        is_auxiliary = self.n_requests == 2
        try:
            if is_auxiliary:
                ctrl_c()
            await self.wait(is_auxiliary)
        except asyncio.CancelledError:
            self.n_given_up += 1
            raise
        return honest_reply(request)

    async def wait(self, is_auxiliary):
        in_flight = InFlight.of_run.get()
        while in_flight is not None and not in_flight.is_ending:
            await asyncio.sleep(0.001)


class InterruptedTwice(Interrupted):
    """Sends another Ctrl-C then, and never replies."""

    async def wait(self, is_auxiliary):
        await super().wait(is_auxiliary)
        if is_auxiliary:
            ctrl_c()
        await asyncio.sleep(3600)


class InterruptedPerson(Interrupted):
    """Never replies."""

    is_person = True

    async def wait(self, is_auxiliary):
        await asyncio.sleep(3600)


def test_ctrl_c_waits_for_pending_replies_and_sends_no_more() -> None:
    llm = Interrupted()
    model = PotModel(5, llm, rng=1, concurrency=2)
    with pytest.raises(KeyboardInterrupt):
        model.run_for(2)
    assert (model.time, llm.n_requests, llm.n_given_up, len(model.runlog.calls())) == (0, 2, 0, 2)


def test_a_second_ctrl_c_gives_up_what_is_in_flight() -> None:
    llm = InterruptedTwice()
    model = PotModel(5, llm, rng=1, concurrency=2)
    with pytest.raises(KeyboardInterrupt):
        model.run_for(2)
    assert (model.time, llm.n_given_up, len(model.runlog.calls())) == (0, 2, 0)


def test_a_ctrl_c_waits_for_no_person() -> None:
    llm = InterruptedPerson()
    model = PotModel(2, llm, rng=1)
    with pytest.raises(KeyboardInterrupt):
        model.run_for(2)
    assert (model.time, llm.n_given_up) == (0, 2)


@pytest.mark.parametrize("at", [1, 3, 4, 5])
@pytest.mark.parametrize("interrupt", [False, True])
def test_a_step_that_is_stopped_while_it_is_finished_is_finished_first(at, interrupt, tmp_path) -> None:
    script = Script(at, lambda: ctrl_c() if interrupt else model.stop())
    model = polled(script, tmp_path / "run.sqlite")
    with pytest.raises(KeyboardInterrupt if interrupt else Stopped):
        model.run_for(4)
    assert (model.time, script.n) == (2, 5)
    model.run_for(2)
    model.close()
    again = polled(Script(), tmp_path / "run.sqlite", replay=True)
    again.run_for(4)
    assert again.runlog.digest == model.runlog.digest == whole()


@pytest.mark.parametrize("interrupt", [False, True])
def test_a_stop_while_the_next_stage_is_chosen_waits_for_it(interrupt) -> None:
    class Twice(PotModel):
        n_chosen = 0

        def next_stage(self, acted):
            self.n_chosen += 1
            if self.n_chosen == stop_at:
                ctrl_c() if interrupt else self.stop()
            return acted if self.n_chosen % 2 else []

    stop_at = 0
    expected = Twice(3, ScriptedLLM(honest_reply), rng=1)
    expected.run_for(2)
    stop_at = 1
    model = Twice(3, ScriptedLLM(honest_reply), rng=1)
    with pytest.raises(KeyboardInterrupt if interrupt else Stopped):
        model.run_for(2)
    assert (model.time, model.n_chosen, len(model.last_outcomes)) == (0, 1, 3)
    model.run_for(2)
    assert (model.runlog.digest, model.n_chosen) == (expected.runlog.digest, 4)


def test_a_ctrl_c_while_an_agent_acts_lets_the_others_act_too() -> None:
    class Slow(Payer):
        def act(self, decision, seen=None):
            if self.unique_id == 1 and self.model.now == 1:
                ctrl_c()
            return super().act(decision, seen)

    def run(kind):
        model = PotModel(0, rng=1, activation="in_order")
        kind.create_agents(model, 3)
        try:
            model.run_for(3)
        except KeyboardInterrupt:
            assert model.time == 1
            model.run_for(2)
        return model.runlog.digest

    assert run(Slow) == run(Payer)


def test_a_second_ctrl_c_breaks_a_step_off_for_good_and_its_log_goes_on(tmp_path) -> None:
    def twice():
        ctrl_c()
        ctrl_c()

    model = polled(Script(2, twice), tmp_path / "run.sqlite")
    with pytest.raises(KeyboardInterrupt):
        model.run_for(4)
    for go_on in (model.step, model.observations):
        with pytest.raises(ConfigError, match=r"step 2 was broken off .* create it again with the same log="):
            go_on()
    model.close()
    anew = polled(Script(), tmp_path / "run.sqlite")
    anew.run_for(4)
    assert anew.runlog.digest == whole()


def test_a_budget_spent_at_the_end_of_a_step_breaks_it_off_and_its_log_goes_on(tmp_path) -> None:
    model = polled(Script(), tmp_path / "run.sqlite", max_calls=13)
    with pytest.raises(BudgetExceeded):
        model.run_for(4)
    with pytest.raises(ConfigError, match="broken off"):
        model.step()
    model.close()
    anew = polled(Script(), tmp_path / "run.sqlite")
    anew.run_for(4)
    assert (anew.runlog.digest, anew.usage.replayed) == (whole(), 13)


def test_a_stop_that_found_nothing_to_stop_stops_nothing_later() -> None:
    model = PotModel(2, ScriptedLLM(lambda request: "fine", delay_s=0.001), rng=1)
    model.end_step = model.stop
    model.step()
    assert list(model.survey(["How are you?"])["answer"]) == ["fine"] * 2
    model.stop()
    assert len(model.ask(list(model.agents))) == 2


# -- the end of the run


class Ending(PotModel):
    """Ends with an action of its second step."""

    def next_stage(self, acted):
        self.running = self.now < 2
        return []


def test_after_the_end_nothing_moves_and_nobody_acts() -> None:
    model = Ending(2, rng=1)
    model.run()
    before = (model.time, model.runlog.digest, model.coins)
    agent = next(iter(model.agents))
    for go_on in (model.step, model.run, lambda: model.run_for(3), lambda: model.run_until(9), lambda: model.apply({})):
        go_on()
    assert model.observations() == {}
    with pytest.raises(ConfigError, match="not due"):
        model.apply({agent: ToolCall("pay", {"coins": 1})})
    assert (model.time, model.runlog.digest, model.coins) == before
    assert before[0] == 2


def test_no_step_follows_an_event_that_ends_the_run() -> None:
    class Closing(PotModel):
        def close_down(self) -> None:
            self.running = False

    model = Closing(2, rng=1)
    model.schedule_event(model.close_down, at=1.5)
    model.run_for(3)
    assert (model.pot.steps, len(model.datacollector.get_model_vars_dataframe())) == (1, 2)


def test_a_step_whose_action_ends_the_run_is_finished_whoever_drives_it() -> None:
    model, other = Ending(2, rng=1), Ending(2, rng=1)
    model.run()
    while seen := other.observations():
        other.apply({agent: agent.rule(observation) for agent, observation in seen.items()})
    assert (
        (other.time, other.coins, other.pot.steps) == (model.time, model.coins, model.pot.steps) == (2, model.coins, 2)
    )


# -- a controller from outside


@pytest.mark.parametrize(
    "decided",
    [
        "pay",
        3,
        object(),
        ToolCall("steal", {"coins": 1}),
        ToolCall("pay", {"coins": 99}),
        ToolCall("pay", {"coins": "many"}),
        ToolCall("pay", None),  # pyright: ignore[reportArgumentType]
        ToolCall("count"),
        [ToolCall("pay", {"coins": 1})] * 2,
        [ToolCall("pay", {"coins": 1}), "pay"],
        [3],
    ],
)
def test_what_a_controller_decides_is_checked_and_fails_alone(decided) -> None:
    model = PotModel(2, rng=1)
    one, other = model.observations()
    outcomes = model.apply({one: ToolCall("pay", {"coins": 1}), other: decided})
    assert ([outcome.ok for outcome in outcomes[one]], model.coins, model.time) == ([True], 1, 1)
    assert not any(outcome.ok for outcome in outcomes[other])
    assert (model.usage.failures, model.last_decisions[other.unique_id].kind) == (1, "Invalid")


@pytest.mark.parametrize("decided", ["3", ToolCall("pay", {"coins": 1}), 3.5, [3]])
def test_an_answer_of_another_type_from_a_controller_reaches_no_world(decided) -> None:
    model = QuizModel(rng=1)
    first, *others = model.observations()
    model.apply({first: decided, **{key: index for index, key in enumerate(others)}})
    assert (model.answers, model.usage.failures) == ([0, 1, 2, 3], 1)


def test_an_agent_does_not_act_upon_the_decision_of_another() -> None:
    model = PotModel(2, rng=1)
    one, other = model.observations()
    (decision,) = model.decide([other])
    assert not any(outcome.ok for outcome in model.apply({one: decision})[one])
    assert model.runlog.failures() == [f"agent {other.unique_id} has decided that, not agent {one.unique_id}"]


def test_a_decision_for_nobody_who_is_due_is_an_error_and_nothing_has_happened() -> None:
    model = PotModel(2, rng=1)
    one, _ = model.observations()
    with pytest.raises(ConfigError, match="not due in this step: agents 3;"):
        model.apply({one: ToolCall("pay", {"coins": 1}), 3: ToolCall("pay", {"coins": 1})})
    assert (model.coins, model.time, len(model.runlog.decisions())) == (0, 0, 0)


def test_an_agent_that_a_controller_removes_after_it_observed_does_nothing() -> None:
    model = PotModel(3, rng=1)
    first, *others = model.observations()
    first.remove()
    outcomes = model.apply({agent: ToolCall("pay", {"coins": 1}) for agent in others})
    assert (outcomes[first], model.coins, model.time) == ([], 2, 1)


# -- what is refused


def test_two_threads_cannot_step_one_model_at_once() -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def script(request):
        is_asked.set()
        may_answer.wait(30)
        return call("pay", coins=1)

    model = PotModel(2, ScriptedLLM(script), rng=1)
    stepping = threading.Thread(target=model.step)
    stepping.start()
    is_asked.wait(30)
    for go_on in (model.step, model.run, lambda: model.run_for(1)):
        with pytest.raises(ConfigError, match="another thread is stepping this model"):
            go_on()
    may_answer.set()
    stepping.join(30)
    assert (model.time, model.coins) == (1, 2)


@pytest.mark.parametrize(
    "how",
    [
        lambda model: model.step(),
        lambda model: model.apply({}),
        lambda model: model.run(),
        lambda model: model.run_for(1),
    ],
)
def test_a_step_within_a_step_is_refused(how) -> None:
    class Restless(Payer):
        def act(self, decision, seen=None):
            how(self.model)
            return super().act(decision, seen)

    model = PotModel(0, rng=1)
    Restless(model)
    with pytest.raises(ConfigError, match="step 1 is in progress"):
        model.step()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_model_is_neither_copied_nor_pickled_and_says_what_to_do(copied) -> None:
    with pytest.raises(ConfigError, match="create it again with the same parameters and log="):
        copied(PotModel(1, rng=1))


def test_a_reporter_that_returns_an_agent_is_told_what_to_return() -> None:
    model = PotModel(1, rng=1)
    model.datacollector = DataCollector({"first": lambda model: model.agents.to_list()})
    with pytest.raises(ConfigError, match="let them return numbers and texts, not agents, cells or methods"):
        model.step()


# -- stages within stages


def test_stages_go_on_from_each_other_and_agents_may_go_and_come_between_them() -> None:
    seen = []

    class Relay(PotModel):
        def next_stage(self, acted):
            seen.append([agent.unique_id for agent in acted])
            if len(seen) > 3:
                return []
            acted[0].remove()
            Payer(self)
            return [acted[0], acted[-1], Turn(list(self.agents)[-1], Observation("You are new here."))]

    model = Relay(2, rng=1, activation="in_order")
    model.step()
    assert seen == [[1, 2], [2, 3], [3, 4], [4, 5]]
    assert list(model.runlog.actions()["agent"]) == [agent for acted in seen for agent in acted]
