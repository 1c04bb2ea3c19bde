"""Strategies: more than one request for a decision, which stays typed, checked, numbered and replayable."""

import json
from contextlib import closing
from typing import Any

import pytest
from typer.testing import CliRunner

from mesa_llm import AgentDesign, Reply, ScriptedLLM, ToolCall, action
from mesa_llm.cli.app import app
from mesa_llm.llm.replies import call
from tests.pot import Payer, PotModel, QuizModel


def made(llm, decide, n_agents=1, kind: type[Any] = PotModel, **options):
    return kind(n_agents, llm, rng=1, design=AgentDesign(decide=decide), **options)


def paying(request, coins=2):
    """Pay, or plan where no action is offered."""
    return call("pay", coins=coins) if request.tools else "1. Pay two coins."


def test_a_plan_is_written_first_and_remembered_until_the_next() -> None:
    model = made(ScriptedLLM(paying), "plan:2")
    model.run_for(3)
    prompts = list(model.runlog.calls()["prompt"])
    assert len(prompts) == 5  # planned in steps 1 and 3
    assert "numbered list" in prompts[0]
    assert "- pay:" in prompts[0]
    assert "1. Pay two coins." in prompts[1]
    assert "In step 1 you planned: 1. Pay two coins." in prompts[2]
    assert list(model.runlog.decisions()["text"]) == ["1. Pay two coins.", "", "1. Pay two coins."]
    assert model.coins == 6


def test_a_plan_stands_in_the_conversation_before_the_decision_that_it_led_to() -> None:
    design = AgentDesign(decide="plan", memory="chat")
    model = PotModel(1, ScriptedLLM(paying), rng=1, design=design)
    model.run_for(2)
    *_, last = model.runlog.calls()["prompt"]
    texts = [message["content"] for message in json.loads(last) if message["role"] == "assistant"]
    assert texts[0].splitlines() == ["1. Pay two coins.", '{"action":"pay","arguments":{"coins":2}}']


def looking_up(request):
    """Count the coins, and pay after that."""
    is_known = any(message.role == "tool" for message in request.messages)
    name, arguments = ("pay", {"coins": 3}) if is_known else ("count", {})
    thought = "It is time to pay." if is_known else "How much is there?"
    return Reply(tool_calls=(ToolCall(name, {"reasoning": thought, **arguments}),))


def test_react_gives_a_reason_for_each_call_and_reads_the_answer() -> None:
    model = made(ScriptedLLM(looking_up), "react")
    model.run_for(2)
    calls = model.runlog.calls()
    assert len(calls) == 4
    assert calls["prompt"].str.contains("Work in rounds").all()
    assert model.runlog.decisions()["text"][0] == "How much is there?\ncount()\nIt is time to pay."
    assert model.coins == 6


def by_sample(*coins):
    """Pay what the number of the sample says; None is no reply that can be used."""

    def reply(request):
        amount = coins[request.salt.call // 8]
        return "Well." if amount is None else call("pay", coins=amount)

    return ScriptedLLM(reply, delay_s=0.001)


@pytest.mark.parametrize(
    ("coins", "paid", "tally"),
    [
        ((1, 2, 2), 2, "2 of 3 samples"),
        ((1, 2, 3), 1, "1 of 3 samples"),
        ((None, 5, None), 5, "1 of 3 samples"),
    ],
)
def test_a_vote_takes_the_most_frequent_decision_and_the_first_of_a_tie(coins, paid, tally) -> None:
    model = made(by_sample(*coins), "vote:3")
    model.step()
    assert model.coins == paid
    assert tally in model.runlog.decisions()["text"][0]
    assert len(model.runlog.decisions()) == model.engine.decisions == 1


class Crier(Payer):
    """May also cry something out."""

    @action
    def cry(self, words: str) -> str:
        """Cry something out."""
        return f"You cried: {words}"


def test_free_text_is_no_part_of_a_vote() -> None:
    samples = [call("pay", coins=1), call("cry", words="Hear, hear!"), call("cry", words="I say!")]
    llm = ScriptedLLM(lambda request: samples[request.salt.call // 8])
    model = PotModel(0, llm, rng=1, design=AgentDesign(decide="vote:3"))
    Crier(model)
    model.step()
    assert list(model.runlog.actions()["result"]) == ['"You cried: Hear, hear!"']
    assert model.runlog.decisions()["text"][0] == "(2 of 3 samples decided so.)"


def test_a_vote_without_a_valid_sample_is_a_failure() -> None:
    model = made(by_sample(None, None), "vote:2")
    model.step()
    assert model.usage.failures == 1
    assert model.runlog.failures() == ["the reply names no action."]


def test_typed_answers_are_voted_on_too() -> None:
    one_or_two = ScriptedLLM(lambda request: {"answer": 1 + (request.salt.call // 8 % 3 > 0)})
    model = made(one_or_two, "vote:3", kind=QuizModel)
    model.step()
    assert model.answers == [2] * 5


@pytest.mark.parametrize("decide", ["plan", "react", "vote:3"])
def test_a_strategy_is_replayed_and_a_budget_that_ends_in_it_loses_nothing(decide, tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    script = looking_up if decide == "react" else paying
    whole = made(ScriptedLLM(script, delay_s=0.001), decide, 3)
    whole.run_for(2)
    with closing(made(ScriptedLLM(script, delay_s=0.001), decide, 3, log=log, max_calls=4)) as model:
        with pytest.raises(Exception, match="budget"):
            model.run_for(2)
        n_paid = model.usage.calls
    with closing(made(ScriptedLLM(script), decide, 3, log=log)) as model:
        model.run_for(2)
        assert model.usage.calls == whole.usage.calls - n_paid
        assert model.runlog.digest == whole.runlog.digest
    done = CliRunner().invoke(app, ["replay", "--trust", str(log), "--json"])
    assert json.loads(done.stdout.splitlines()[-1])["digest"] == whole.runlog.digest


@pytest.mark.parametrize("decide", ["plan", "react", "vote"])
@pytest.mark.parametrize("llm", ["rule", "random"])
def test_who_thinks_without_a_language_model_decides_as_ever(decide, llm) -> None:
    model, plain = made(llm, decide, 3), PotModel(3, llm, rng=1)
    for one in (model, plain):
        one.run_for(3)
    assert model.coins == plain.coins
