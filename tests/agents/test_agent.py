"""Minds for agents: in our models, in Mesa's own, in every kind of thread."""

import asyncio
import functools
import json
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import mesa
import pytest
from mesa.discrete_space import Grid2DMovingAgent
from mesa.examples.basic.boltzmann_wealth_model.agents import MoneyAgent
from mesa.examples.basic.boltzmann_wealth_model.model import BoltzmannScenario, BoltzmannWealth
from pydantic import BaseModel, Field

from mesa_llm import (
    AgentDesign,
    ConfigError,
    Decision,
    Failure,
    LLMAgent,
    LLMMixin,
    LLMModel,
    MemoryMixin,
    Mind,
    MovesOnGrid,
    Observation,
    Reply,
    ScriptedLLM,
    ToolCall,
    ToolError,
    action,
    tool,
)
from mesa_llm.agents.deliberation import as_decision
from mesa_llm.agents.observation import join
from mesa_llm.engine.reading.parsing import read
from mesa_llm.llm.replies import call
from mesa_llm.memory import WindowMemory
from mesa_llm.testing import honest, honest_reply
from tests.llm.human.questions import Village
from tests.pot import Pot, PotModel, Quiz, QuizModel


class Giver(MoneyAgent, Mind):
    """Mesa's money agent, with a mind."""

    @action
    def give(self) -> str:
        """Give one coin to somebody in your cell."""
        before = self.wealth
        self.give_money()
        return f"You had {before} and have {self.wealth}."

    @action
    def walk(self) -> str:
        """Go to a cell nearby."""
        self.move()
        return "You went on."


async def _waits(agent: Any, seen: Observation) -> None: ...


@pytest.mark.parametrize(
    ("name", "method", "fault"),
    [
        ("rule", lambda agent, seen: "pay", r"Slip.rule\(\) returned 'pay' where an action is expected; return"),
        ("rule", _waits, "Slip.rule must not be async; write def rule"),
        (
            "decide",
            lambda agent, seen: ToolCall("pay"),
            r"Slip.decide must be async; write async def decide\(self, seen\)",
        ),
        ("observe", lambda agent: "A pot.", r"Slip.observe\(\) returned 'A pot.'; return an Observation"),
    ],
)
def test_a_slip_in_an_agent_says_what_to_write(name: str, method: Any, fault: str) -> None:
    def step() -> None:
        model = PotModel(0, rng=1)
        type("Slip", (LLMAgent,), {name: method})(model)
        model.step()

    with pytest.raises(ConfigError, match=fault):
        step()


@pytest.mark.parametrize("values", [{"ann", "bo"}, "ann", 3])
def test_options_without_an_order_are_refused(values: Any) -> None:
    model = PotModel(0, rng=1)
    type("Slip", (LLMAgent,), {"observe": lambda agent: Observation(options={"to": values})})(model)
    with pytest.raises(ConfigError, match="options of 'to', which Slip observes, are "):
        model.step()


def test_who_an_agent_is_is_a_config_or_a_text() -> None:
    dictionary: Any = {"persona": "You are kind."}
    with pytest.raises(ConfigError, match="config= must be an AgentConfig or a persona as text, got"):
        LLMAgent(PotModel(0, rng=1), config=dictionary)
    with pytest.raises(ConfigError, match="config= must be an AgentConfig or a persona"):
        Giver.enter(BoltzmannWealth(BoltzmannScenario(n=1, rng=1)).agents, config=3)


def test_a_config_that_is_set_later_is_what_config_takes() -> None:
    payer, dictionary = LLMAgent(PotModel(0, rng=1)), {"name": "Ann"}
    payer.config = "You like round numbers."  # pyright: ignore[reportAttributeAccessIssue]
    assert payer.prompt(Observation("Now."))[0].content == "Now.\n\nYou like round numbers."
    with pytest.raises(ConfigError, match="config= must be an AgentConfig or a persona as text, got"):
        payer.config = dictionary  # pyright: ignore[reportAttributeAccessIssue]


def test_an_argument_that_no_class_of_an_agent_takes_is_named() -> None:
    with pytest.raises(TypeError, match=r"LLMAgent\(\) got an argument that none of its classes takes: presona"):
        LLMAgent(PotModel(0, rng=1), presona="kind", llm="rule", memory="none")
    wrong: Any = {"memroy": "none"}
    with pytest.raises(TypeError, match=r"takes: memroy; did you mean memory\?"):
        LLMAgent(PotModel(0, rng=1), **wrong)


def test_the_agents_of_mesas_own_model_get_minds_without_changing_the_model() -> None:
    model = BoltzmannWealth(BoltzmannScenario(n=12, width=3, height=3, rng=1))
    givers = Giver.enter(model.agents, llm="random")
    model.run_for(5)
    assert len(model.agents_by_type[Giver]) == 12
    assert sum(agent.wealth for agent in model.agents) == 12
    assert [agent.unique_id for agent in givers] == list(range(1, 13))
    assert len(model.datacollector.get_model_vars_dataframe()) == 6


def test_a_mind_sees_the_place_it_is_in() -> None:
    model = BoltzmannWealth(BoltzmannScenario(n=30, width=3, height=3, rng=1))
    prompts = []

    def script(request):
        prompts.append(request.messages[-1].content)
        return call("walk")

    Giver.enter(model.agents, llm=ScriptedLLM(script))
    model.step()
    assert "Giver" in prompts[0]


def test_entering_agents_keep_what_they_have_and_can_get_a_persona_each() -> None:
    model = BoltzmannWealth(BoltzmannScenario(n=3, rng=1))
    givers = Giver.enter(model.agents, config=lambda agent: f"You own {agent.wealth} coins.")
    assert {giver.config.persona for giver in givers} == {"You own 1 coins."}
    assert all(giver.cell is not None for giver in givers)


def run(model) -> str:
    model.run_for(2)
    return model.runlog.digest


EXPECTED = {"digest": ""}


def expected() -> str:
    EXPECTED["digest"] = EXPECTED["digest"] or run(PotModel(4, honest(), rng=1))
    return EXPECTED["digest"]


def test_a_model_runs_inside_a_running_event_loop() -> None:
    async def notebook() -> str:
        return run(PotModel(4, honest(), rng=1))

    assert asyncio.run(notebook()) == expected()


def test_two_models_run_in_two_threads() -> None:
    digests = []
    slow = ScriptedLLM(honest_reply, delay_s=0.01)
    threads = [threading.Thread(target=lambda: digests.append(run(PotModel(4, slow, rng=1)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert digests == [expected()] * 2


def test_models_run_one_after_another_in_one_process() -> None:
    assert [run(PotModel(4, honest(), rng=1)) for _ in range(2)] == [expected()] * 2


def test_a_script_ends_by_itself_and_says_nothing() -> None:
    code = "from tests.pot import PotModel; from mesa_llm.testing import honest; PotModel(3, honest(), rng=1).step()"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_the_package_loads_none_of_the_heavy_ones() -> None:
    heavy = ["litellm", "solara", "matplotlib", "xllamacpp", "mesa", "pydantic", "pycurl"]
    code = f"import sys, mesa_llm; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_a_typed_answer_reaches_the_agent_that_was_asked() -> None:
    class Guesser(LLMAgent):
        guess = 0

        def observe(self) -> Observation:
            return Observation("How many beans are in the jar?", answer=int)

        def act(self, decision, seen=None):
            assert isinstance(decision, Decision)
            self.guess = decision.answer
            return super().act(decision, seen)

    model = PotModel(0, ScriptedLLM(lambda request: '{"answer": 42}'), rng=1)
    (agent,) = Guesser.create_agents(model, 1).to_list()
    model.step()
    assert agent.guess == 42


def test_an_outside_function_can_be_an_agents_action() -> None:
    paid = []

    @action
    def donate(amount: int) -> str:
        """Donate."""
        paid.append(amount)
        return "thanks"

    model = PotModel(0, ScriptedLLM(lambda request: call("donate", amount=3)), rng=1)
    LLMAgent(model, tools=[donate])
    model.step()
    assert paid == [3]
    assert model.last_decisions[1].actions == (ToolCall("donate", {"amount": 3}),)


def test_an_outside_function_stays_usable_where_a_world_names_its_own_tools() -> None:
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"rain in {city}"

    agent = LLMAgent(PotModel(0, rng=1), tools=[weather])
    assert list(agent.toolbox(Observation(tools=("pay",)))) == ["pay", "weather"]


def test_where_one_world_limits_the_tools_all_of_the_other_stay() -> None:
    seen = {"village": Observation(tools=("rest", "do_nothing")), "pot": Observation()}
    assert join(seen, [Village(), Pot()]).tools == ("rest", "do_nothing", "pay", "count")


def test_where_no_world_limits_the_tools_the_agent_keeps_all_it_has() -> None:
    assert join({"village": Observation(), "pot": Observation()}, [Village(), Pot()]).tools is None


def test_the_options_of_a_world_hold_in_its_own_tools_alone() -> None:
    seen = {
        "village": Observation(options={"metres": (1, 2)}),
        "pot": Observation(options={"coins": (3,), "pay.coins": (4,), "other": (5,)}),
    }
    options = join(seen, [Village(), Pot()]).options
    assert options == {"walk.metres": (1, 2), "pay.coins": (4,), "other": (5,)}


def test_options_go_by_the_names_that_tools_have_in_several_worlds() -> None:
    class Well(Pot):
        name = "well"

        @action
        def pay(self, agent_id: int, coins: int) -> str:
            """Throw a coin."""
            return "Plop."

    looks = {name: Observation(options={"coins": (n,)}) for n, name in enumerate(("pot", "well"), 1)}
    assert join(looks, [Pot(), Well()]).options == {"pot_pay.coins": (1,), "well_pay.coins": (2,)}


@pytest.mark.parametrize(("reply", "taken"), [('{"answer": null}', [None]), ('{"answer": 3}', [3])])
def test_a_null_that_is_asked_for_is_an_answer(reply, taken) -> None:
    class Guesser(LLMAgent):
        guesses: Any = None

        def observe(self) -> Observation:
            return Observation("How many, if you know?", answer=int | None)

        def receive(self, answer, label, world):
            self.guesses = [*(self.guesses or []), answer]

    model = PotModel(0, ScriptedLLM(lambda request: reply), rng=1)
    agent = Guesser(model, memory="chat")
    model.step()
    assert agent.guesses == taken
    assert agent.memory.messages()[-1].content == reply


def test_a_question_of_one_world_is_answered_to_it_in_the_light_of_the_others() -> None:
    seen = join({"village": Observation("Noon."), "pot": Observation("How many coins?", answer=int, label="guess")})
    assert (seen.answer, seen.label, seen.world, "Noon." in seen.text) == (int, "guess", "pot", True)
    with pytest.raises(ConfigError, match="a Turn for each"):
        join({"village": Observation(answer=str), "pot": Observation(answer=int)})


class Taker(LLMAgent):
    """Takes the one apple there is, whatever it sees."""

    def has_apple(self) -> bool:
        return self.model.apples > 0

    @action(when="has_apple")
    def take(self) -> str:
        """Take the apple."""
        self.model.apples -= 1
        return "You have the apple."

    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("take")


@pytest.mark.parametrize("llm", ["rule", ScriptedLLM(lambda request: call("take"))])
def test_what_another_made_impossible_in_the_same_step_is_refused(llm) -> None:
    model = PotModel(0, llm, rng=1)
    model.apples = 1
    Taker.create_agents(model, 3)
    model.step()
    assert model.apples == 0
    done = model.runlog.actions()
    assert sorted(done["ok"]) == [False, False, True]
    assert set(done[~done["ok"]]["result"]) == {'"take cannot be done now."'}


def test_an_agent_that_can_do_nothing_is_not_asked() -> None:
    model = PotModel(0, ScriptedLLM(lambda request: "Well."), rng=1)
    model.apples = 0
    agent = Taker(model)
    model.worlds = ()
    model.step()
    assert model.usage.calls == 0
    assert model.last_decisions[agent.unique_id].text == "There is no action that could be done now."


@pytest.mark.parametrize(
    ("name", "llm"),
    [("observe", "random"), ("act", "random"), ("rule", "rule"), ("decide", "rule")],
)
def test_a_value_in_the_place_of_a_method_is_named_with_what_to_do(name: str, llm: str) -> None:
    model = PotModel(1, llm, rng=1)
    for agent in model.agents:
        setattr(agent, name, "what I see")
    with pytest.raises(ConfigError, match=rf"\.{name} is 'what I see', and hides the method {name}\(\).*another name"):
        model.step()


class Moth(LLMAgent):
    """Flies into the light, again and again."""

    @action
    def fly(self) -> str:
        """Fly into the light."""
        self.remove()
        return "You burnt."

    def observe(self) -> Observation:
        return Observation("It is dark.", max_actions=2)

    def rule(self, seen: Observation) -> list[ToolCall]:
        return [ToolCall("fly"), ToolCall("fly")]


def test_an_agent_that_one_of_its_actions_removes_does_no_other() -> None:
    model = PotModel(0, rng=1)
    Moth(model)
    model.worlds = ()
    model.step()
    assert list(model.runlog.actions()["result"]) == ['"You burnt."']


def test_a_failure_from_outside_stays_a_failure() -> None:
    failure = Failure(1, "nobody answered", "Timeout", "outside")
    assert as_decision(1, failure, "outside") is failure
    model = PotModel(1, rng=1)
    assert list(model.apply({1: failure}).values()) == [[]]
    assert model.runlog.failures() == ["nobody answered"]


class Adder:
    def __call__(self, a: int) -> int:
        return a


@action
async def fetch(city: str) -> str:
    """Fetch the weather."""
    return city


@tool(when="is_open")
def enquire(city: str) -> str:
    """Enquire."""
    return city


@pytest.mark.parametrize("function", [functools.partial(int, base=2), Adder(), fetch, enquire])
def test_what_can_be_no_tool_is_refused_when_it_is_given(function) -> None:
    model = PotModel(1, rng=1)
    with pytest.raises(ConfigError, match="tool"):
        LLMAgent(model, tools=[function])
    with pytest.raises(ConfigError, match="tool"):
        PotModel(1, rng=1, design=AgentDesign(tools=(function,)))


@pytest.mark.parametrize("count", [1, 3])
def test_a_conversation_holds_answers_in_the_form_that_is_read(count) -> None:
    decided = Decision(1, tuple(ToolCall("pay", {"coins": n}) for n in range(count)))
    agent = LLMAgent(PotModel(0, rng=1), memory="chat")
    seen = Observation("The pot is empty.", max_actions=3)
    agent.act(decided, seen)
    (_, answered) = agent.memory.messages()
    again = read(Reply(answered.content), seen, agent.toolbox(seen))
    assert isinstance(again, Decision)
    assert again.actions == decided.actions


def test_messages_are_remembered_once_even_where_the_decision_failed() -> None:
    model = PotModel(2, rng=1)
    agent = next(iter(model.agents))
    model.mailbox.send(2, [1], "x\n" * 900)
    model.mailbox.deliver()
    for _ in range(2):
        agent.act(Failure(1, "nobody answered", "Timeout", "outside"))
    (line,) = agent.memory.recall("", 2).splitlines()
    assert line.startswith("In step 1 agent 2 told you: “x x x")
    assert len(line) < 650


def test_a_conversation_that_showed_a_message_holds_it_once() -> None:
    model = PotModel(0, rng=1)
    agent = LLMAgent(model, memory="chat")
    model.mailbox.send(2, [1], "good morning")
    model.mailbox.deliver()
    agent.act(Decision(1, (ToolCall("pay", {"coins": 1}),)), agent.observe())
    assert str([entry.text for entry in agent.memory.entries]).count("good morning") == 1


class Group(BaseModel):
    group: Annotated[int, Field(alias="Implement G")]


@pytest.mark.parametrize(
    ("kind", "reply", "kept"),
    [
        (int, '{"answer": 3}', '{"answer": 3}'),
        (Group, '{"Implement G": 1}', '{"Implement G": 1}'),
        (list[int], '{"answer": [1, 2]}', '{"answer": [1, 2]}'),
        (str, "Let us meet at five.", "Let us meet at five."),
        (bool, "true", '{"answer": true}'),
    ],
)
def test_a_conversation_holds_answers_as_the_model_wrote_them(kind, reply, kept) -> None:
    requests = []

    def script(request):
        requests.append(request.messages)
        return reply

    one = type("One", (QuizModel,), {"kinds": {"it": kind}})
    model = one(1, ScriptedLLM(script), 1, design=AgentDesign(memory="chat"))
    model.run_for(2)
    assert [message.content for message in requests[1] if message.role == "assistant"] == [kept]
    (outcome,) = model.last_outcomes[1]
    assert json.loads(json.dumps(outcome.arguments)) == {"answer": model.answers[0] if kind is not Group else GROUP}
    assert model.usage.failures == 0


GROUP = {"Implement G": 1}


def test_other_memories_hold_answers_as_json_and_no_python() -> None:
    one = type("One", (QuizModel,), {"kinds": {"it": Group}})
    model = one(1, ScriptedLLM(lambda request: GROUP), 1, design=AgentDesign(memory="window:5"))
    model.step()
    (agent,) = model.agents
    assert agent.memory.recall("", 2).endswith("you answered: Implement G 1.")


@pytest.mark.parametrize("llm", ["rule", "scripted"])
def test_an_empty_list_is_an_answer_where_one_is_wanted(llm) -> None:
    class Unsure(LLMAgent):
        def rule(self, seen):
            return []

    class Which(QuizModel):
        kinds: ClassVar = {"which": list[str]}

    model = Which(0, "rule" if llm == "rule" else ScriptedLLM(lambda request: '{"answer": []}'), 1)
    Unsure(model)
    model.step()
    assert model.quiz.answers == [(1, "which", [])]


@pytest.mark.parametrize("answer", ["3", 3.5, ToolCall("pay", {"coins": 1}), object(), [1]])
def test_what_a_rule_decides_is_checked_as_what_a_model_writes(answer) -> None:
    class Odd(LLMAgent):
        def rule(self, seen):
            return answer

    model = QuizModel(0, "rule", 1)
    Odd(model)
    model.step()
    assert (model.answers, model.usage.failures, {kind.kind for kind in model.last_decisions.values()}) == (
        [],
        5,
        {"Invalid"},
    )


class Refusing(Quiz):
    """Takes no ones."""

    def receive(self, agent_id, answer, label):
        if answer == 1:
            raise ToolError("no ones, please.")
        return super().receive(agent_id, answer, label)


def test_an_answer_that_the_world_refuses_is_an_outcome_and_remembered() -> None:
    model = QuizModel(1, "rule", 1, design=AgentDesign(memory="window:5"))
    model.quiz = Refusing()
    model.worlds = (model.quiz,)
    model.step()
    rows = model.runlog.actions()
    assert (list(rows["ok"]), set(rows["action"]), list(rows["label"])) == ([0] * 5, {"answer"}, list(model.kinds))
    assert "no ones, please." in next(iter(model.agents)).memory.recall("", 2)


def test_an_answer_goes_to_the_world_that_the_observation_names() -> None:
    model = QuizModel(1, "rule", 1)
    other = type("Other", (Quiz,), {"name": "other"})()
    model.worlds = (model.quiz, other)
    with pytest.raises(ConfigError, match="quiz, other all receive answers"):
        model.step()
    (agent,) = model.agents
    agent.receive(3, "it", "other")
    assert other.answers == [(1, "it", 3)]
    with pytest.raises(ConfigError, match="asks for world 'third'"):
        agent.receive(3, "it", "third")


class Meddler(LLMAgent):
    """Asks its language model, and does something else."""

    async def decide(self, seen: Observation):
        return replace(await super().decide(seen), actions=(ToolCall("give", {"to": "nobody"}),))

    @action
    def give(self, to: str) -> str:
        """Give something to somebody."""
        return f"Given to {to}."

    def observe(self) -> Observation:
        return Observation("Ann is here.", options={"to": ("Ann",)})


def test_what_code_makes_of_a_reply_is_checked_against_the_options_too() -> None:
    model = PotModel(0, ScriptedLLM(lambda request: call("give", to="Ann")), rng=1)
    Meddler(model)
    model.step()
    assert model.usage.failures == 1
    assert "'nobody' is not possible now" in model.runlog.failures()[0]


class Debtor(MoneyAgent):
    """Has a method of its own under a name that the engine calls."""

    def resolve(self) -> None:
        """Pay what is owed."""


def test_a_name_that_the_engine_calls_is_not_taken_by_another_method() -> None:
    with pytest.raises(ConfigError, match="rename yours"):
        type("Thinking", (Debtor, Mind), {})


@pytest.mark.parametrize("name", ["remember", "prompt", "act", "tools"])
def test_an_action_has_no_name_by_which_the_engine_asks_for_something_else(name: str) -> None:
    with pytest.raises(ConfigError, match=f"Slip.{name}: LLM agents already have a method {name}"):
        type("Slip", (LLMAgent,), {name: action(lambda self: "done")})


def test_an_action_that_another_class_hides_is_no_silent_loss() -> None:
    with pytest.raises(ConfigError, match=r"Grid2DMovingAgent\.move hides the action MovesOnGrid\.move"):
        type("Walker", (Grid2DMovingAgent, MovesOnGrid, Mind), {})
    assert type("Walker", (Grid2DMovingAgent, MovesOnGrid, Mind), {"move": MovesOnGrid.move})
    assert type("Resting", (Taker,), {"take": None})


def test_a_class_whose_methods_nobody_marked_is_warned_of_once(caplog) -> None:
    model = PotModel(0, "random", rng=1)
    type("Slip", (LLMAgent,), {"take": Taker.has_apple}).create_agents(model, 2)
    model.worlds = ()
    model.run_for(2)
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == ["Slip has no action"]


class Bidder(LLMAgent):
    """Is asked for a bid in every other step."""

    def observe(self) -> Observation:
        return Observation("Your bid?", answer=int) if self.model.time % 2 == 0 else Observation("Wait.")

    def receive(self, answer: int, label: str, world: str) -> str:
        return f"You bid {answer}."


def test_a_class_that_takes_answers_may_have_nothing_to_do_in_a_step(caplog) -> None:
    model = PotModel(0, "random", rng=1)
    Bidder(model)
    model.worlds = ()
    model.run_for(2)
    assert (len(model.runlog.actions()), caplog.messages) == (1, [])


def test_an_agent_thinks_with_all_four_mixins() -> None:
    with pytest.raises(ConfigError, match="Bare lacks ConfigMixin, ToolMixin; inherit from Mind"):
        type("Bare", (LLMMixin, MemoryMixin, mesa.Agent), {})


def test_a_list_of_tools_that_mesa_has_handed_out_is_told_apart() -> None:
    with pytest.raises(
        ConfigError,
        match=r"tools= is a list of functions, got <built-in function print>.*tools=\[\[first, second\]\] \* n",
    ):
        LLMAgent.create_agents(PotModel(0), 2, tools=[print, print])


def test_what_happened_is_remembered_in_the_unit_of_its_world() -> None:
    model = PotModel(2, "rule", rng=1)
    setattr(model.pot, "unit", "month")  # noqa: B010 - a world may say it or not
    for agent in model.agents:
        agent.memory = WindowMemory()
    model.run_for(2)
    remembered = [agent.memory.recall("", 3) for agent in model.agents]
    assert all(text.startswith("In month 1 you ") for text in remembered)
    assert all(entry.unit == "month" for agent in model.agents for entry in agent.memory.saved().entries)


class Dam:
    """A world whose gates have opened once."""

    name = "dam"

    def __init__(self) -> None:
        self.opened: set[str] = set()

    def observe(self, agent_id: int) -> Observation:
        return Observation("Two gates.", tools=("open_gate", "wait"), options={"gate": ("north", "south")})

    @action(allowed={"gate": "is_closed"})
    def open_gate(self, agent_id: int, gate: str) -> str:
        """Open a gate.

        Args:
            gate: Its name.
        """
        self.opened.add(gate)
        return "It is open."

    @action
    def wait(self, agent_id: int) -> str:
        """Wait."""
        return "You waited."

    def is_closed(self, agent_id: int, gate: str) -> bool:
        return gate not in self.opened

    def end_step(self) -> list:
        return []


class Keeper(LLMAgent):
    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("open_gate", {"gate": "north"})


class DamModel(LLMModel):
    def __init__(self, **options) -> None:
        super().__init__(worlds=[Dam()], **options)
        Keeper.create_agents(self, 1)


def test_values_that_the_world_would_refuse_are_not_offered() -> None:
    model = DamModel(llm="random", rng=1)
    (keeper,) = model.agents
    keeper.worlds[0].opened.add("north")
    assert keeper.observe().options["open_gate.gate"] == ("south",)
    keeper.worlds[0].opened.add("south")
    assert keeper.observe().tools == ("wait",)


def test_a_rule_twin_may_try_what_would_be_refused() -> None:
    model = DamModel(rng=1)
    model.run_for(2)
    assert list(model.runlog.actions()["action"]) == ["open_gate", "open_gate"]


def test_numbers_that_the_world_would_refuse_are_out_of_bounds() -> None:
    asked = []
    script = ScriptedLLM(lambda request: asked.append(request) or call("pay", coins=2))
    model = PotModel(1, script, rng=1)
    (agent,) = model.agents
    agent.observe = lambda: Observation("A pot.", limits={"pay.coins": (None, 2.5)})
    model.step()
    (pay,) = [spec for spec in asked[0].tools if spec.name == "pay"]
    assert (pay.parameters["properties"]["coins"]["minimum"], pay.parameters["properties"]["coins"]["maximum"]) == (
        0,
        2,
    )


@pytest.mark.parametrize("bounds", [(1, 0), (None, -3), (11, None), (1.2, 1.8)])
def test_an_action_for_which_no_number_is_left_is_not_offered(bounds) -> None:
    asked = []
    model = PotModel(1, ScriptedLLM(lambda request: asked.append(request) or call("do_nothing")), rng=1)
    (agent,) = model.agents
    agent.observe = lambda: Observation("A pot.", limits={"pay.coins": bounds})
    model.step()
    assert [spec.name for spec in asked[0].tools] == ["do_nothing", "count"]


def test_bounds_of_several_worlds_are_those_of_their_own_actions() -> None:
    dam, pot = Dam(), Pot()
    seen = join({"dam": Observation(), "pot": Observation(limits={"pay.coins": (1, 2)})}, [dam, pot])
    assert seen.limits == {"pay.coins": (1, 2)}


def test_a_log_of_before_is_continued_with_the_offers_of_before(tmp_path) -> None:
    with closing(DamModel(llm="random", rng=1, log=tmp_path / "run.sqlite")) as model:
        model.step()
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as file, file:
        file.execute("DELETE FROM manifest WHERE name = 'requests'")
    with closing(DamModel(llm="random", rng=1, log=tmp_path / "run.sqlite")) as model:
        (keeper,) = model.agents
        keeper.worlds[0].opened.add("north")
        assert keeper.observe().options == {"gate": ("north", "south")}
