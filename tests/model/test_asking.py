"""Agents asked anywhere in a run: in hooks, inside actions, at event times, in conversations and in teams."""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from typing import Any, ClassVar

import pytest

from mesa_llm import ConfigError, LLMAgent, LLMModel, Observation, ReplayError, ScriptedLLM, ToolCall, action, tool
from mesa_llm.agents.team import Team
from mesa_llm.engine.activation import Turn
from mesa_llm.llm.replies import call
from mesa_llm.records import Reply, Request
from tests.pot import Payer, PotModel, QuizModel

ONE = ScriptedLLM(lambda request: call("pay", coins=1))
NONSENSE = ScriptedLLM(lambda request: "nonsense")


class Together:
    """Says the same to everybody, with its number for a #, and counts how many wait for it at once."""

    def __init__(self, text: str) -> None:
        self.text, self.n_requests, self.n_in_flight, self.most_in_flight = text, 0, 0, 0

    async def reply(self, request: Request) -> Reply:
        self.n_requests += 1
        self.n_in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.n_in_flight)
        await asyncio.sleep(0.05)
        self.n_in_flight -= 1
        return Reply(self.text.replace("#", str(self.n_requests)))


def twice(kind: type[LLMModel], log: Any, steps: int = 3, **options: Any) -> tuple[Any, Any]:
    """Run a model with a log, and replay it; return both."""
    first = kind(log=log, rng=1, **options)
    first.run_for(steps)
    first.close()
    again = kind(log=log, rng=1, replay=True, **options)
    again.run_for(steps)
    assert again.runlog.digest == first.runlog.digest
    assert again.usage.calls == 0
    return first, again


# -- ask


class Asking(PotModel):
    """Asks its first agent once more in each hook of a step, and at the time of an event."""

    def __init__(self, **options: Any) -> None:
        super().__init__(2, **options)
        self.schedule_event(self.once_more, at=1.5)

    def once_more(self) -> None:
        self.ask([self.agents[0]])

    start_step = end_step = start_interval = once_more


@pytest.mark.parametrize("llm", ["rule", ONE])
def test_agent_asked_anywhere_acts_remembers_and_replays(llm, tmp_path) -> None:
    model, again = twice(Asking, tmp_path / "run.sqlite", 2, llm=llm)
    actions = again.runlog.actions()
    assert actions.groupby("time").size().to_dict() == {1: 5, 2: 6}
    assert actions["ok"].all()
    assert model.coins == again.coins > 0
    assert len(model.last_outcomes[1]) == 5
    assert model.agents[0].memory.recall("", 3).count("you paid") == 9 or llm != "rule"


class Passing(PotModel):
    """Lets the first agent pass the question on to the second inside its own action."""

    def __init__(self, **options: Any) -> None:
        LLMModel.__init__(self, **options)
        self.coins_paid: list[tuple[int, int]] = []
        Passer.create_agents(self, 2)
        self.activation = lambda model: [[model.agents[0]]]


class Passer(LLMAgent):
    """Pays, and lets the next one pay."""

    @action
    def pay(self, coins: int) -> str:
        """Pay."""
        self.model.coins_paid.append((self.unique_id, coins))
        if self.unique_id == 1:
            self.model.ask([self.model.agents[1]])
        return ""

    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("pay", {"coins": self.unique_id})


@pytest.mark.parametrize("llm", ["rule", ONE])
def test_an_action_may_ask_somebody_else(llm, tmp_path) -> None:
    model, again = twice(Passing, tmp_path / "run.sqlite", 1, llm=llm)
    assert [agent for agent, _ in model.coins_paid] == [1, 2]
    assert list(again.runlog.actions()["agent"]) == [2, 1]


def test_a_decision_that_ask_has_carried_out_is_not_carried_out_again() -> None:
    model = PotModel(1, rng=1)
    (decision,) = model.ask(list(model.agents))
    with pytest.raises(ConfigError, match="carried this decision out already"):
        model.agents[0].act(decision)
    with pytest.raises(ConfigError, match="carried this decision out already"):
        model.apply({model.agents[0]: decision})


def test_the_label_of_a_decision_carried_out_by_hand_reaches_the_world() -> None:
    model = QuizModel(rng=1)
    (decision,) = model.decide(list(model.agents), [Observation("How many?", answer=int, label="item 9")])
    model.agents[0].act(decision)
    assert model.quiz.answers == [(1, "item 9", 1)]


# -- stages


class Endless(PotModel):
    """Goes on as long as anybody has acted."""

    def next_stage(self, acted: list[Any]) -> list[Any]:
        return acted


def test_stages_of_a_step_are_bounded_and_the_error_says_so() -> None:
    with pytest.raises(ConfigError, match="has added 100 stages"):
        Endless(1, rng=1).step()


def test_a_step_ends_with_a_stage_in_which_everybody_failed() -> None:
    model = Endless(2, NONSENSE, rng=1)
    model.step()
    assert (model.time, model.engine.decisions, len(model.failed_agents)) == (1, 2, 2)


def test_who_failed_is_known_to_the_next_stage() -> None:
    class Retrying(PotModel):
        retried: ClassVar[list[int]] = []

        def next_stage(self, acted: list[Any]) -> list[Any]:
            self.retried.extend(agent.unique_id for agent in self.failed_agents)
            return []

    model = Retrying(2, ScriptedLLM(lambda request: "?" if request.salt.agent == 2 else call("pay", coins=1)), rng=1)
    model.step()
    assert model.retried == [2]


class Talker(LLMAgent):
    """Tells everybody a number, and decides when it has heard those of the others."""

    def rule(self, seen: Observation) -> ToolCall:
        if seen.label == "decide":
            return ToolCall("choose", {"text": seen.text})
        return ToolCall("announce", {"number": self.unique_id})

    @action
    def announce(self, number: int) -> str:
        """Tell."""
        others = [agent.unique_id for agent in self.model.agents if agent is not self]
        self.model.mailbox.send(self.unique_id, others, f"number {number}", self.now)
        return ""

    @action
    def choose(self, text: str) -> str:
        """Choose."""
        self.model.heard.append(text.count("number"))
        return ""


def test_messages_of_a_stage_reach_the_next_one_if_the_model_says_so() -> None:
    class TalkThenDecide(LLMModel):
        messages_arrive = "next_stage"

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.heard: list[int] = []
            Talker.create_agents(self, 3)

        def next_stage(self, acted: list[Any]) -> list[Turn]:
            has_talked = self.last_decisions[1].label == "decide"
            return [] if has_talked else [Turn(a, a.with_news(Observation(label="decide"))) for a in self.agents]

    model = TalkThenDecide(rng=1)
    model.step()
    assert model.heard == [2, 2, 2]


# -- conversations


class Gossip(LLMModel):
    """Two pairs talk before each step."""

    def __init__(self, **options: Any) -> None:
        super().__init__(activation=lambda model: [], **options)
        Speaker.create_agents(self, 4, memory="window:20")

    def start_step(self) -> None:
        agents = list(self.agents)
        self.talks = self.converse_in_groups(
            [agents[:2], agents[2:]], turns=6, until=lambda talk: len(talk.utterances) == 3, topic="The weather."
        )


class Speaker(LLMAgent):
    """Counts what was said."""

    def rule_utterance(self, conversation: Any) -> str:
        return f"This is utterance {len(conversation.utterances) + 1}."

    def rule(self, seen: Observation) -> None:
        return None


def test_a_conversation_is_heard_remembered_recorded_and_replayed(tmp_path) -> None:
    script = ScriptedLLM(lambda request: f'Agent {request.salt.agent}: "{request.messages[-1].content.count("“")}."')
    model, again = twice(Gossip, tmp_path / "run.sqlite", 1, llm=script)
    assert model.talks[1].text == again.talks[1].text == "Agent 3: “0.”\nAgent 4: “1.”\nAgent 3: “2.”"
    assert "agent 4 said: “1.”" in model.agents[2].memory.recall("", 3)
    assert "you said: “1.”" in model.agents[3].memory.recall("", 3)
    assert (model.usage.calls, len(again.runlog.messages())) == (6, 6)


def test_a_conversation_has_a_rule_twin_and_one_without_is_a_failure_of_each() -> None:
    model = Gossip(rng=1)
    model.step()
    assert model.talks[0].by(model.agents[0]) == ["This is utterance 1.", "This is utterance 3."]
    mute = PotModel(2, rng=1)
    talk = mute.converse(list(mute.agents))
    assert (talk.utterances, [failure.kind for failure in talk.failures]) == ([], ["NoRule", "NoRule"])


def test_what_one_agent_alone_knows_of_a_conversation_is_in_its_prompts_alone() -> None:
    read: dict[int, str] = {}

    def script(request: Request) -> str:
        read[request.salt.agent] = request.messages[-1].content
        return f"Well, that is number {request.salt.agent}, {request.salt.call}."

    model = PotModel(2, ScriptedLLM(script), rng=1)
    model.converse(list(model.agents), topic=lambda agent: f"You know secret {agent.unique_id}.")
    assert ["secret 1" in read[1], "secret 2" in read[1], "secret 2" in read[2]] == [True, False, True]


def test_groups_talk_at_the_same_time() -> None:
    llm = Together("Well, number #.")
    Gossip(llm=llm, rng=1).step()
    assert (llm.n_requests, llm.most_in_flight) == (6, 2)


# -- event time


class Waking(PotModel):
    """Nobody acts but those that are woken."""

    wake_window = 0.25

    def __init__(self, **options: Any) -> None:
        LLMModel.__init__(self, activation=lambda model: [], **options)
        self.trace: list[Any] = []
        Sleeper.create_agents(self, 4)
        for agent in self.agents:
            agent.wake(at=agent.unique_id / 10)

    def start_interval(self) -> None:
        self.trace.append(("interval", self.time))

    def start_step(self) -> None:
        self.trace.append(("step", self.time))


class Sleeper(LLMAgent):
    """Rises, sets its alarm again, and wakes its neighbour."""

    @action
    def rise(self) -> str:
        """Rise."""
        self.model.trace.append((self.unique_id, self.model.time))
        if self.unique_id == 4:
            self.wake(after=0.5)
            self.model.agents[0].wake()
            self.model.agents[1].wake(after=0.1).cancel()
        return ""

    @action
    def doze(self) -> str:
        """Sleep on."""
        return ""

    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("rise")


@pytest.mark.parametrize("llm", ["rule", ScriptedLLM(lambda request: ToolCall("rise"))])
def test_those_due_in_one_window_decide_together_in_order(llm, tmp_path) -> None:
    model, again = twice(Waking, tmp_path / "run.sqlite", 1, llm=llm)
    early = [(1, 0.25), (2, 0.25), (3, 0.5), (4, 0.5)]
    assert model.trace == [("interval", 0), *early, (1, 0.75), ("step", 1), (4, 1)]
    assert again.runlog.actions()["agent"].tolist() == [1, 2, 3, 4, 1, 4]


def test_twenty_at_event_times_are_asked_at_once() -> None:
    class Many(Waking):
        wake_window = 1

        def __init__(self, **options: Any) -> None:
            LLMModel.__init__(self, activation=lambda model: [], **options)
            self.trace: list[Any] = []
            for agent in Sleeper.create_agents(self, 20):
                agent.wake(at=agent.unique_id / 21)

    llm = Together('{"action": "rise"}')
    Many(llm=llm, rng=1).step()
    assert (llm.n_requests, llm.most_in_flight) == (20, 20)


class Ward(PotModel):
    """Twenty events of one window ask one agent each; nobody else acts."""

    is_together = True

    def __init__(self, **options: Any) -> None:
        LLMModel.__init__(self, activation=lambda model: [], **options)
        self.trace: list[Any] = []
        self.answers: list[Any] = []  # as `ask` returns them
        for agent in reversed(Sleeper.create_agents(self, 20)):
            self.schedule_event(lambda agent=agent: self.call_in(agent), at=1.99 - agent.unique_id / 21)

    def call_in(self, agent: Any) -> None:
        if self.is_together:
            self.answers += self.ask([agent], together=True)
        else:
            self.answers += self.ask([agent])


@pytest.mark.parametrize(("is_together", "most"), [(True, 20), (False, 1)])
def test_events_of_one_window_that_ask_together_wait_once_and_replay(is_together, most, tmp_path) -> None:
    kind = type("Ward", (Ward,), {"is_together": is_together})
    llm = Together('{"action": "doze"}')
    _, again = twice(kind, tmp_path / "run.sqlite", 2, llm=llm)
    assert (llm.n_requests, llm.most_in_flight) == (20, most)
    assert again.runlog.actions()["agent"].tolist() == [*range(20, 0, -1)]


def test_the_turn_of_an_agent_that_is_asked_together_can_be_cancelled() -> None:
    model = Ward(rng=1)
    model.schedule_event(lambda: model.answers[-1].cancel(), at=1.995)
    model.run_for(2)
    assert len(model.runlog.actions()) == 19
    own = Observation("Get up!")
    (turn,) = model.ask([model.agents[0]], [own], together=True)
    assert turn.observation is own
    with pytest.raises(ConfigError, match="object has no mind"):
        model.ask([object()], together=True)


def test_a_time_that_has_passed_and_a_window_that_cuts_steps_are_errors() -> None:
    model = Waking(rng=1)
    model.step()
    with pytest.raises(ConfigError, match=r"cannot be woken at 0\.5: it is 1"):
        model.agents[0].wake(at=0.5)
    with pytest.raises(ConfigError, match=r"wake_window=0\.3"):
        type("Odd", (Waking,), {"wake_window": 0.3})(rng=1)


# -- foreign code


class Retrieving(PotModel):
    """Decides by what a retriever finds, which is somebody else's code."""

    def __init__(self, **options: Any) -> None:
        LLMModel.__init__(self, **options)
        self.n_found = self.coins_paid = 0
        Retriever.create_agents(self, 2)


class Retriever(LLMAgent):
    """Pays as many coins as it finds texts."""

    @action
    def pay(self, coins: int) -> str:
        """Pay."""
        self.model.coins_paid += coins
        return ""

    async def search(self, words: str) -> list[str]:
        self.model.n_found += 1
        await asyncio.sleep(0)
        return words.split()

    async def decide(self, seen: Observation) -> Any:
        found = await self.recorded("retriever", self.search, "a few words", result=list[str])
        return ToolCall("pay", {"coins": len(found)})

    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("pay", {"coins": 1})


def test_foreign_code_is_called_once_counted_and_replayed(tmp_path) -> None:
    model, again = twice(Retrieving, tmp_path / "run.sqlite", 2, llm=ONE)
    assert (model.n_found, model.coins_paid, again.n_found, again.coins_paid) == (4, 12, 0, 12)
    assert model.usage_by_purpose["retriever"].calls == model.usage.calls == 4


def test_foreign_code_is_paid_from_the_budget() -> None:
    model = Retrieving(llm=ONE, rng=1, max_calls=3)
    with pytest.raises(Exception, match="the budget of 3 calls is spent"):
        model.run_for(2)


def test_user_code_that_raises_fails_one_decision_and_its_replay(tmp_path) -> None:
    class Broken(Retrieving):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.agents[0].search = broken

    async def broken(words: str) -> list[str]:
        raise OSError("no index")

    model, again = twice(Broken, tmp_path / "run.sqlite", 1, llm=ONE)
    assert again.runlog.failures() == ["retriever: it raised OSError: no index"]
    assert model.coins_paid == 3


def test_the_rule_twin_wins_over_an_own_decide_unless_the_class_says_otherwise() -> None:
    model = Retrieving(rng=1)
    model.step()
    assert (model.coins_paid, model.n_found) == (2, 0)
    Own = type("Own", (Retriever,), {"decides_without_llm": True})
    own = Retrieving(rng=1)
    own.agents.do("remove")
    Own.create_agents(own, 1)
    own.step()
    assert (own.coins_paid, own.n_found) == (3, 1)


def test_an_own_decide_that_records_nothing_is_warned_of_once(caplog) -> None:
    class Silent(Retriever):
        async def decide(self, seen: Observation) -> Any:
            return ToolCall("pay", {"coins": len(await self.search("a b"))})

    model = Retrieving(llm=ONE, rng=1)
    Silent.create_agents(model, 2)
    model.run_for(2)
    assert [record.getMessage()[:45] for record in caplog.records] == ["Silent.decide has decided without a request t"]


def test_a_result_that_json_cannot_hold_is_an_error_that_says_so() -> None:
    class Odd(Retriever):
        async def search(self, words: str) -> Any:
            return object()

    model = Retrieving(llm=ONE, rng=1)
    Odd.create_agents(model, 1)
    with pytest.raises(ConfigError, match=r"returned <object object.*cannot be recorded as list"):
        model.step()


def test_a_tool_may_consult_somebody_while_an_agent_decides(tmp_path) -> None:
    adviser = ScriptedLLM(lambda request: f"Pay {len(request.messages[0].content)}.")

    class Advised(Payer):
        @tool
        async def advice(self, question: str) -> str:
            """Ask an adviser."""
            advised = await self.consult(adviser, question)
            return str(getattr(advised, "answer", "nobody answers"))

    def script(request: Any) -> Any:
        if request.messages[-1].role != "tool":
            return call("advice", question="How?")
        return call("pay", coins=int(request.messages[-1].content.strip("Pay .")))

    class AdvisedModel(PotModel):
        def __init__(self, **options: Any) -> None:
            super().__init__(0, **options)
            Advised.create_agents(self, 2)

    model, again = twice(AdvisedModel, tmp_path / "run.sqlite", 1, llm=ScriptedLLM(script))
    assert model.coins == again.coins == 8
    assert model.usage_by_purpose["advice"].calls == 2
    baseline = AdvisedModel(llm="random", rng=1)
    baseline.run_for(5)
    assert not baseline.runlog.failures()


# -- teams and allowances


class Firm(Team, Passer):
    """Does what most of its members want."""


class FirmModel(Passing):
    """One firm of three, which alone acts."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        members = [*self.agents, Passer(self)]
        Firm(self, members=members)
        self.activation = lambda model: [list(model.agents_by_type[Firm])]


def test_a_team_does_what_most_of_its_members_want(tmp_path) -> None:
    script = ScriptedLLM(lambda request: call("pay", coins=5 if request.salt.agent == 1 else 2))
    model, _ = twice(FirmModel, tmp_path / "run.sqlite", 1, llm=script)
    assert model.coins_paid == [(4, 2)]
    assert model.usage_by_purpose["opinion"].calls == 3
    assert "2 of 3 members" in model.last_decisions[4].text
    by_rule = FirmModel(rng=1)
    by_rule.step()
    assert by_rule.coins_paid == [(4, 1)]


def test_who_has_spent_its_allowance_fails_and_the_others_go_on(tmp_path) -> None:
    allowances = {"Payer": {"calls": 5}, 2: {"calls": 1}}
    model, again = twice(PotModel, tmp_path / "run.sqlite", 4, llm=ONE, n_agents=3, allowances=allowances)
    assert model.usage.calls == 5
    assert again.runlog.decisions().query("time == 2")["agent"].tolist().count(2) == 1
    assert {failure.split("(")[0] for failure in again.runlog.failures()} == {
        "the allowance of agent 2 is spent ",
        "the allowance of all Payer agents is spent ",
    }
    with pytest.raises(ConfigError, match="allowances: 'Payer'"):
        PotModel(1, rng=1, allowances={"Payer": {"coins": 1}})


def test_a_replay_of_another_run_says_what_is_missing(tmp_path) -> None:
    twice(Retrieving, tmp_path / "run.sqlite", 1, llm=ONE)
    with pytest.raises(ReplayError):
        Retrieving(log=tmp_path / "run.sqlite", rng=1, replay=True, llm=ONE).run_for(2)


def test_an_event_may_be_a_lambda_or_a_function_that_nothing_else_refers_to() -> None:
    model, happened = PotModel(1, rng=1), []

    def schedule() -> None:
        def local() -> None:
            happened.append("local")

        model.schedule_event(local, at=1.2)
        model.schedule_event(lambda: happened.append("lambda"), after=1.4)
        model.schedule_event(partial(happened.append, "partial"), at=1.6)

    schedule()
    gc.collect()
    model.schedule_event(lambda: happened.append("cancelled"), at=1.7).cancel()
    model.run_for(2)
    assert happened == ["local", "lambda", "partial"]
    with pytest.raises(TypeError, match="must be a callable"):
        model.schedule_event(3, at=9)
