"""Minds for agents: in our models, in Mesa's own, in every kind of thread."""

import asyncio
import subprocess
import sys
import threading

from mesa.examples.basic.boltzmann_wealth_model.agents import MoneyAgent
from mesa.examples.basic.boltzmann_wealth_model.model import BoltzmannScenario, BoltzmannWealth

from mesa_llm import Decision, LLMAgent, Mind, Observation, ScriptedLLM, ToolCall, action
from mesa_llm.agent import join
from mesa_llm.contract import honest, honest_reply
from mesa_llm.llm.answers import call
from tests.llm.asked import Village
from tests.pot import Pot, PotModel


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
    code = "from tests.pot import PotModel; from mesa_llm.contract import honest; PotModel(3, honest(), rng=1).step()"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_the_package_loads_none_of_the_heavy_ones() -> None:
    heavy = ["litellm", "solara", "matplotlib", "xllamacpp", "mesa", "pydantic", "httptools"]
    code = f"import sys, mesa_llm; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_using_the_package_loads_neither_provider_nor_page_nor_model() -> None:
    code = (
        "import sys; from mesa_llm import LLMModel, LLMAgent; import mesa_llm.cli;"
        "print([n for n in ('litellm', 'solara', 'matplotlib', 'xllamacpp', 'openai') if n in sys.modules])"
    )
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
