"""What models, agents, decisions and prompts look like in a terminal and in Jupyter."""

import re

from mesa_llm import ChatMessage, Decision, Failure, Observation, ScriptedLLM, ToolCall, branch
from mesa_llm.testing import honest_reply
from mesa_llm_models.social.model import SocialModel
from tests.pot import PotModel


def test_a_model_says_how_far_it_is_and_what_its_agents_think_with() -> None:
    model = PotModel(3, rng=1)
    model.step()
    assert repr(model) == "<PotModel: step 1, 3 agents, llm rule>"
    model.running = False
    assert repr(model) == "<PotModel: step 1, ended, 3 agents, llm rule>"
    assert "llm several" in repr(PotModel(3, {"*": "rule"}, rng=1))
    assert "1 agent," in repr(PotModel(1, rng=1))
    assert "llm ScriptedLLM" in repr(PotModel(3, ScriptedLLM(honest_reply), rng=1))
    assert "secret" not in repr(PotModel(3, "m@http://ann:secret@127.0.0.1:9/v1", rng=1))
    assert repr(PotModel.__new__(PotModel)) == "<PotModel, not set up>"


def test_what_a_model_has_says_what_it_holds() -> None:
    model = SocialModel(n_agents=2, rng=1)
    model.step()
    assert repr(model.scenario).startswith("SocialScenario(n_agents=2, ")
    assert repr(model.scenario).endswith(", rng=1)")
    assert re.fullmatch(r"<\w+Memory, entries: [1-9]>", repr(model.agents.to_list()[0].memory))
    assert repr(model.runlog) == "<RunLog in memory, record>"
    assert repr(branch(model, 1)) == "<Branch at step 1: <SocialModel: step 1, 2 agents, llm rule>>"


def test_an_agent_says_its_class_number_and_name() -> None:
    assert repr(PotModel(1, rng=1).agents[0]) == "<Payer 1>"
    assert re.fullmatch(r"<SocialUser 1: \w+ \w+>", repr(SocialModel(n_agents=1, rng=1).agents[0]))


def test_a_decision_says_who_decided_what() -> None:
    decided = Decision(3, (ToolCall("pay", {"coins": 2}),), by="rule", keys=("0" * 64,))
    assert repr(decided) == "<Decision of agent 3 by rule: pay(coins=2)>"
    assert str(Decision(3, answer="yes")) == "answer 'yes'"
    assert str(Decision(3)) == "nothing"
    assert repr(Decision(3, answer=4, by="m", label="item 1")) == "<Decision of agent 3 on 'item 1' by m: answer 4>"


def test_jupyter_shows_records_as_escaped_text() -> None:
    agent = PotModel(1, rng=1).agents[0]
    pages = [
        agent.prompt(Observation("<script>1</script>")),
        Decision(1, (ToolCall("say", {"text": "<script>1</script>"}),), text="<script>1</script>", by="m"),
        Failure(1, "<script>1</script>", "Unparsed", "m"),
        ChatMessage("user", "<script>1</script>"),
        Observation("<script>1</script>", options={"id": ("<script>1</script>",)}),
    ]
    for record in pages:
        html = record._repr_html_()
        assert "&lt;script&gt;1&lt;/script&gt;" in html
        assert "<script>" not in html
