"""Questions asked aside: what was answered before an interruption is never asked for again."""

from mesa_llm import AgentDesign
from mesa_llm.contract import honest_reply
from mesa_llm.errors import ConfigError
from mesa_llm.llm.answers import call
from mesa_llm.llm.simple import ScriptedLLM
from tests.pot import PotModel


class Cut:
    """Answers questions aside until the connection is cut, once; then answers all of them.

    Attributes:
        asked: The questions that arrived.
    """

    def __init__(self, after: int) -> None:
        self.after = after
        self.asked = []

    def __call__(self, request):
        if request.salt.purpose == "decide":
            return honest_reply(request)
        self.asked.append(request.key)
        return ConfigError("the key was withdrawn") if len(self.asked) == self.after + 1 else "Fine."


def go_on(act) -> None:
    """Do something that is interrupted once, again."""
    try:
        act()
    except ConfigError:
        act()
    else:
        raise AssertionError("nothing was interrupted")


def test_what_is_asked_aside_counts_as_calls_and_neither_as_decisions_nor_as_failures() -> None:
    model = PotModel(3, ScriptedLLM(lambda request: "" if request.salt.purpose == "survey" else "?"), rng=1)
    model.survey(["How are you?"])
    assert (model.usage.calls, model.usage.failures, model.engine.decisions) == (6, 0, 0)


def test_an_interrupted_survey_uses_every_reply_that_came() -> None:
    script = Cut(after=3)
    model = PotModel(3, ScriptedLLM(script), rng=1, concurrency=1)
    go_on(lambda: model.survey(["How are you?", "Why?"]))
    assert len(script.asked) == 6 + 1
    assert len(set(script.asked)) == 6
    assert model.usage.replayed == 3


def test_a_second_survey_of_the_same_step_is_asked_anew() -> None:
    script = Cut(after=4)
    model = PotModel(3, ScriptedLLM(script), rng=1, concurrency=1)
    model.survey(["How are you?"])
    go_on(lambda: model.survey(["How are you?"]))
    assert len(set(script.asked)) == 6
    assert model.usage.replayed == 1


def test_an_interrupted_summary_of_memories_uses_every_reply_that_came() -> None:
    script = Cut(after=2)
    model = PotModel(3, ScriptedLLM(script), rng=1, concurrency=1, design=AgentDesign(memory="summary:2"))
    go_on(lambda: model.run_for(8))
    assert model.usage.replayed == 2
    assert len(set(script.asked)) == len(script.asked) - 1


def test_an_agent_that_keeps_its_conversation_is_asked_at_its_end_and_keeps_it_unchanged() -> None:
    asked = []

    def script(request):
        asked.append([(message.role, message.content) for message in request.messages])
        return "Fine." if request.salt.purpose == "survey" else call("pay", coins=request.salt.time)

    model = PotModel(1, ScriptedLLM(script), rng=1, design=AgentDesign(memory="chat"))
    model.run_for(2)
    memory = next(iter(model.agents)).memory
    before = memory.to_json()
    model.survey(["How much did you pay?"])
    assert [role for role, _ in asked[-1]] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert asked[-1][2][1] == '{"action":"pay","arguments":{"coins":1}}'
    assert memory.to_json() == before
