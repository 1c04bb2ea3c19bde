"""How a decision is asked for: tools answered, one repair, reasoning, failures with a reason."""

from contextlib import closing
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from mesa_llm import (
    AgentDesign,
    Failure,
    LLMAgent,
    LLMModel,
    Observation,
    Reply,
    ScriptedLLM,
    ToolCall,
    action,
)
from mesa_llm.engine.decision import Query, decide
from mesa_llm.engine.reading.parsing import read_answer
from mesa_llm.errors import ConfigError
from mesa_llm.llm.openai.reply import read_reply
from mesa_llm.llm.replies import call
from mesa_llm.testing import honest
from tests.pot import PotModel, QuizModel

THOUGHT = "Four is enough."


class Vote(BaseModel):
    party: Literal["red", "green"]
    sure: Annotated[float, Field(ge=0, le=1)]


def ask(script, **options):
    model = PotModel(n_agents=1, llm=ScriptedLLM(script), rng=1, **options)
    model.step()
    return model


def test_tools_are_answered_before_the_decision() -> None:
    model = ask(lambda request: call("count") if request.salt.call == 0 else call("pay", coins=5))
    assert model.coins == 5
    assert model.usage.calls == 2


def weigh(coins: int) -> str:
    """Weigh some coins."""
    return f"{coins * 5} grams"


def test_a_tool_that_reads_is_called_with_arguments_of_their_types() -> None:
    calls = iter([call("weigh", coins="3"), call("pay", coins=1)])
    model = PotModel(1, ScriptedLLM(lambda request: next(calls)), rng=1, design=AgentDesign(tools=(weigh,)))
    model.step()
    assert "15 grams" in model.runlog.calls()["prompt"].iloc[-1]


def test_an_agent_that_only_calls_tools_fails_after_five_rounds() -> None:
    model = ask(lambda request: call("count"))
    assert model.runlog.failures() == ["called tools 6 times without deciding"]


def test_exhausted_tools_are_not_offered_again() -> None:
    offered: list[list[str]] = []

    def script(request):
        offered.append([spec.name for spec in request.tools if spec.name != "do_nothing"])
        return call("weigh", coins=2) if "weigh" in offered[-1] and request.salt.call else call("count")

    model = PotModel(1, ScriptedLLM(script), rng=1, design=AgentDesign(tools=(weigh,)))
    model.step()
    assert offered == [["pay", "count", "weigh"], *[["pay", "weigh"]] * 4, ["pay"]]


def test_after_five_rounds_an_answer_is_asked_for_without_tools() -> None:
    def script(request):
        return call("count") if request.tools else {"value": 3}

    model = PotModel(1, ScriptedLLM(script), rng=1)
    decision = model.decide([model.agents[0]], [Observation("How many?", answer=int)])[0]
    assert (decision.answer, model.usage.calls) == (3, 2)


def test_invalid_reply_is_repaired_by_one_request_that_names_the_error() -> None:
    def script(request):
        if request.salt.call == 0:
            return call("pay", coins=99)
        assert "less than or equal to 10" in request.messages[-1].content
        return call("pay", coins=9)

    assert ask(script).coins == 9


def test_a_reply_that_stays_faulty_is_a_failure_with_its_reason() -> None:
    model = ask(lambda request: call("steal", coins=1))
    assert model.coins == 0
    assert model.runlog.failures() == ["there is no tool 'steal'; choose one of: do_nothing, pay, count."]


def test_a_second_model_can_put_replies_into_form() -> None:
    form = ScriptedLLM(lambda request: call("pay", coins=4))
    model = ask(lambda request: "I would say four.", parser=form)
    assert model.coins == 4


@pytest.mark.parametrize("as_text", [False, True])
def test_a_model_reasons_in_the_first_argument_of_an_action(as_text) -> None:
    def script(request):
        (pay,) = [spec for spec in request.tools if spec.name == "pay"]
        assert next(iter(pay.parameters["properties"])) == pay.parameters["required"][0] == "reasoning"
        arguments = {"reasoning": THOUGHT, "coins": 4}
        return {"action": "pay", "arguments": arguments} if as_text else call("pay", **arguments)

    model = ask(script, reasoning="inline")
    decided = model.last_decisions[1]
    assert (decided.actions[0].arguments, decided.text, model.coins) == ({"coins": 4}, THOUGHT, 4)


@pytest.mark.parametrize(("kind", "value"), [(int, 4), (str, "Four."), (Vote, Vote(party="red", sure=1))])
def test_a_model_reasons_in_the_first_field_of_an_answer(kind, value) -> None:
    def script(request):
        assert next(iter(request.schema["properties"])) == request.schema["required"][0] == "reasoning"
        fields = value.model_dump() if kind is Vote else {"answer": value}
        return {"reasoning": THOUGHT, **fields}

    model = quiz(kind, script, reasoning="inline")
    assert (model.answers, model.last_decisions[1].text) == ([value], THOUGHT)


def quiz(kind, script, **options):
    model = type("One", (QuizModel,), {"kinds": {"it": kind}})(1, ScriptedLLM(script), 1, **options)
    model.step()
    return model


@pytest.mark.parametrize(("kind", "said"), [(int, '{"answer": 4}'), (str, "Four."), (Vote, '{"party":"red","sure":1}')])
def test_a_model_reasons_freely_first_and_answers_in_a_second_request(kind, said) -> None:
    requests = []

    def script(request):
        requests.append(request)
        return THOUGHT if len(requests) == 1 else said

    model = quiz(kind, script, reasoning="first")
    first, second = requests
    assert (first.schema, first.tools) == (None, ())
    assert [message.content for message in second.messages[-2:]] == [THOUGHT, "Now decide."]
    assert (model.answers, model.last_decisions[1].text) == ([read_answer(said, kind)], THOUGHT)
    assert second.salt.call == first.salt.call + 1


@pytest.mark.parametrize("as_text", [False, True])
def test_a_model_reasons_freely_first_and_acts_in_a_second_request(as_text) -> None:
    def script(request):
        if not request.tools:
            assert "- pay: Pay into the pot." in request.messages[-1].content
            return THOUGHT
        return {"action": "pay", "arguments": {"coins": 4}} if as_text else call("pay", coins=4)

    model = ask(script, reasoning="first")
    assert (model.coins, model.usage.calls, model.last_decisions[1].text) == (4, 2, THOUGHT)


def test_the_parsing_model_decides_upon_what_was_reasoned_first(tmp_path) -> None:
    def run(*, replay):
        form = ScriptedLLM(lambda request: call("pay", coins=4) if THOUGHT in request.messages[0].content else "?")
        model = ask(lambda request: THOUGHT, parser=form, reasoning="first", log=tmp_path / "run.sqlite", replay=replay)
        model.close()
        return model

    live, again = run(replay=False), run(replay=True)
    assert (live.coins, live.usage.calls, live.last_decisions[1].text) == (4, 2, THOUGHT)
    assert (again.usage.calls, again.runlog.digest) == (0, live.runlog.digest)


@pytest.mark.parametrize(
    "reply",
    [
        THOUGHT,
        Reply(tool_calls=(ToolCall("pay", {"reasoning": THOUGHT, "coins": 99}),)),
        {"reasoning": THOUGHT, "coins": 4},
        {"action": "pay", "arguments": {"reasoning": THOUGHT, "coins": 99}},
        Reply('{"coins": 4, "reasoning": ""}', reasoning=THOUGHT),
    ],
    ids=["prose", "in a call", "beside", "in written arguments", "the endpoint's own"],
)
def test_the_reasoning_of_a_reply_that_was_put_into_form_is_kept(reply) -> None:
    form = ScriptedLLM(lambda request: call("pay", coins=4))
    model = ask(lambda request: reply, parser=form, reasoning="inline")
    assert model.coins == 4
    assert model.last_decisions[1].text == THOUGHT


@pytest.mark.parametrize("reasoning", ["inline", "first"])
def test_chance_and_rules_do_not_reason(reasoning) -> None:
    for llm in ("random", "rule"):
        models = [PotModel(3, llm, rng=1, **options) for options in ({}, {"reasoning": reasoning})]
        for model in models:
            model.run_for(3)
        assert models[0].runlog.digest == models[1].runlog.digest


@pytest.mark.parametrize("reasoning", ["inline", "first"])
def test_a_run_that_reasons_is_replayed(reasoning, tmp_path) -> None:
    digests = []
    for replay in (False, True):
        model = PotModel(3, honest(), rng=1, reasoning=reasoning, log=tmp_path / "run.sqlite", replay=replay)
        model.run_for(2)
        digests.append((model.runlog.digest, model.usage.failures))
        model.close()
    assert digests[0] == digests[1]
    assert digests[0][1] == 0


# -- length


def test_a_reply_that_was_cut_fails_with_what_to_do() -> None:
    model = ask(lambda request: Reply("", reply_tokens=120, finish="length"))
    (reason,) = model.runlog.failures()
    assert reason.startswith("the reply was cut after 120 tokens (finish=length); raise reply_tokens= (--reply-tokens)")


def test_the_length_of_replies_is_a_setting_of_every_model() -> None:
    requests = []

    def script(request):
        requests.append(request.settings["max_tokens"])
        return "fine" if request.salt.purpose == "survey" else call("pay", coins=1)

    model = ask(script, reply_tokens=4321)
    model.survey(["How are you?"])
    assert requests == [4321, 4321]


@pytest.mark.parametrize("tool", ["do_nothing", "pay"])
def test_a_call_that_was_cut_fails_with_what_to_do(tool) -> None:
    cut = {"function": {"name": tool, "arguments": '{"coins": '}}
    body = {"choices": [{"message": {"tool_calls": [cut]}, "finish_reason": "max_tokens"}]}
    (reason,) = ask(lambda request: read_reply(body, request), attempts=1).runlog.failures()
    assert "the reply was cut" in reason
    assert "--reply-tokens" in reason


@pytest.mark.parametrize("length", [0, -1, 1.5, "many", True])
def test_a_length_that_cannot_be_is_refused(length) -> None:
    with pytest.raises(ConfigError, match="reply_tokens: input should be"):
        PotModel(1, rng=1, reply_tokens=length)


def test_reasoning_beside_the_action_is_kept_too() -> None:
    text = '{"reasoning": "Four is enough.", "action": "pay", "arguments": {"coins": 4}}'
    model = ask(lambda request: text, reasoning="inline")
    assert (model.coins, model.last_decisions[1].text) == (4, THOUGHT)


# -- how a reply was read


@pytest.mark.parametrize(
    ("replies", "reading", "counts"),
    [
        (["pay(coins=3)"], "Python call", (0, 0)),
        (["{'action': 'Pay', 'arguments': {'coins': '3'}}"], "JSON; quotation marks replaced; 'Pay' read as", (0, 1)),
        (["Hm.", "pay(coins=3)"], "asked again; Python call", (1, 0)),
    ],
)
def test_a_decision_says_how_its_reply_was_read(replies, reading, counts) -> None:
    script = iter(replies)
    model = ask(lambda request: next(script))
    assert model.coins == 3
    assert model.last_decisions[1].reading.startswith(reading)
    assert (model.engine.reprompted, model.engine.parsed_leniently) == counts


def test_a_reply_that_is_cut_inside_its_thought_fails_and_names_the_limit() -> None:
    thought = '<think>One thing is {"action": "pay", "arguments": {"coins": 9}} but that would be foolish, so'
    model = ask(lambda request: Reply(thought, finish="length", reply_tokens=40))
    assert model.coins == 0
    assert "raise reply_tokens=" in model.last_decisions[1].reason


class Saver(LLMAgent):
    """Has one action, until it may spend what it saved."""

    saved = 0
    asks_always = False  # as before 0.12

    async def decide(self, seen: Observation):
        query = await self.query_for(seen)
        if isinstance(query, Query) and self.asks_always:
            query.requires_request = lambda request: True
        return await decide(query) if isinstance(query, Query) else query

    @action
    def save(self) -> str:
        """Put a coin aside."""
        self.saved += 1
        return "You saved a coin."

    def is_rich(self) -> bool:
        return self.saved >= 2

    @action(when="is_rich")
    def spend(self) -> str:
        """Spend what you saved."""
        self.saved = 0
        return "You spent it all."


class SavingModel(LLMModel):
    def __init__(self, **options) -> None:
        super().__init__(**options)
        Saver.create_agents(self, 1)


def saving(request) -> Reply:
    return call("save")


def test_a_choice_of_one_is_made_without_a_request() -> None:
    model = SavingModel(llm=ScriptedLLM(saving), rng=1)
    model.run_for(3)
    assert (model.agents[0].saved, model.usage.calls, model.engine.not_asked) == (3, 1, 2)
    assert list(model.runlog.decisions()["reading"]) == ["not asked", "not asked", "tool call"]
    assert list(model.runlog.decisions()["by"]) == ["forced", "forced", "ScriptedLLM"]


def test_an_earlier_log_is_repeated_with_the_model_named_that_was_not_asked(tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    for is_replay in (False, True):
        with closing(SavingModel(llm=ScriptedLLM(saving), rng=1, log=log, replay=is_replay)) as model:
            if not is_replay:
                model.runlog.request_version = 3
                model.runlog.begin(model.runlog.manifest, {})
            model.run_for(3)
            assert set(model.runlog.decisions()["by"]) == {"ScriptedLLM"}


@pytest.mark.parametrize("reasoning", ["inline", "first"])
def test_there_is_nothing_to_reason_about_in_a_choice_of_one(reasoning) -> None:
    model = SavingModel(llm=ScriptedLLM(saving), rng=1, reasoning=reasoning)
    model.run_for(2)
    assert (model.agents[0].saved, model.usage.calls) == (2, 0)


def test_a_choice_of_one_that_was_recorded_is_taken_from_the_recording(tmp_path, monkeypatch) -> None:
    log = tmp_path / "run.sqlite"
    with monkeypatch.context() as before:
        before.setattr(Saver, "asks_always", True)
        with closing(SavingModel(llm=ScriptedLLM(saving), rng=1, log=log)) as model:
            model.run_for(2)
            digest = model.runlog.digest
    with closing(SavingModel(llm=ScriptedLLM(saving), rng=1, log=log, replay=True)) as model:
        model.run_for(2)
        assert (model.usage.replayed, model.engine.not_asked, model.runlog.digest) == (2, 0, digest)


def test_a_choice_of_one_replays_from_a_log_that_holds_no_reply(tmp_path) -> None:
    digests = []
    for replay in (False, True):
        log = tmp_path / "run.sqlite"
        with closing(SavingModel(llm=ScriptedLLM(saving), rng=1, log=log, replay=replay)) as model:
            model.run_for(4)
            digests.append(model.runlog.digest)
    assert digests[0] == digests[1]


def test_chance_draws_even_if_there_is_one_choice() -> None:
    model = SavingModel(llm="random", rng=1)
    model.run_for(2)
    assert (model.engine.not_asked, set(model.runlog.decisions()["reading"])) == (0, {"tool call"})


class Ballot(BaseModel):
    """A ballot with one candidate."""

    name: Literal["Ann"]


@pytest.mark.parametrize(("kind", "answer"), [(Ballot, Ballot(name="Ann")), (Literal["yes"], "yes"), (None, None)])
def test_a_question_with_one_possible_answer_is_not_asked(kind, answer) -> None:
    model = SavingModel(llm=ScriptedLLM(saving), rng=1)
    (decision,) = model.decide(list(model.agents), [Observation(answer=kind or Literal["yes", "no"])])
    assert decision.answer == answer if kind else isinstance(decision, Failure)
    assert model.usage.calls == (0 if kind else 2)
