"""From reply to decision: typed answers, tools answered, one repair, failures with a reason."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mesa_llm import AgentDesign, Decision, Observation, Reply, ScriptedLLM, ToolCall
from mesa_llm.engine.decision import answer_schema, check_decision, find_json, plain_answer, read, read_answer
from mesa_llm.engine.survey import NO_TOOLS
from mesa_llm.errors import ConfigError, ParseError
from mesa_llm.llm.openai.reply import read_reply
from mesa_llm.llm.replies import call
from mesa_llm.testing import honest
from mesa_llm.tools.toolbox import ToolBox
from tests.pot import Pot, PotModel, QuizModel


class Vote(BaseModel):
    party: Literal["red", "green"]
    sure: Annotated[float, Field(ge=0, le=1)]


@dataclass
class Bid:
    cents: int


def _nested(inner):
    return st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ('{"party": "red", "sure": 0.5}', Vote, Vote(party="red", sure=0.5)),
        ('Well:\n```json\n{"party": "green", "sure": 1}\n```', Vote, Vote(party="green", sure=1)),
        ('{"answer": 4}', Annotated[int, Field(ge=1, le=7)], 4),
        ("4", Annotated[int, Field(ge=1, le=7)], 4),
        ("yes", Literal["yes", "no"], "yes"),
        ('{"cents": 12}', Bid, Bid(12)),
        ("[1, 2]", list[int], [1, 2]),
        ("I like it.", str, "I like it."),
        ('<think>{"cents": 1}? Or more?</think>\n{"cents": 12}', Bid, Bid(12)),
    ],
)
def test_a_typed_answer_is_read_from_what_models_write(text, kind, value) -> None:
    assert read_answer(text, kind) == value


def test_an_action_that_is_only_thought_of_is_not_done() -> None:
    text = '<think>{"action": "pay", "arguments": {"coins": 9}}</think>{"action": "pay", "arguments": {"coins": 1}}'
    decided = read(Reply(text), Observation(), ToolBox.of(object(), 1, [Pot()]))
    assert isinstance(decided, Decision)
    assert decided.actions == (ToolCall("pay", {"coins": 1}),)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", str),
        ('{"party": "blue", "sure": 0.5}', Vote),
        ('{"party": "red", "sure": NaN}', Vote),
        ('{"party": "red", "sure": 1e999}', Vote),
        ("9", Annotated[int, Field(ge=1, le=7)]),
        ("{" * 5000, Vote),
        ("NaN", float),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_with_a_reason(text, kind) -> None:
    with pytest.raises(ParseError, match=r"\w"):
        read_answer(text, kind)


def test_a_plain_type_is_asked_for_as_an_object_and_an_object_as_it_is() -> None:
    assert answer_schema(int)["required"] == ["answer"]
    assert set(answer_schema(Vote)["properties"]) == {"party", "sure"}


@given(st.text(max_size=300))
def test_no_text_breaks_the_search_for_json(text) -> None:
    find_json(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"action": "pay", "arguments": {"coins": 3}}',
        'I pay. {"name": "pay", "parameters": {"coins": 3}}',
        '{"actions": [{"action": "pay", "arguments": {"coins": 3}}]}',
    ],
)
def test_models_without_tool_calls_act_through_json(text) -> None:
    decision = read(Reply(text), Observation(), ToolBox.of(object(), 1, [Pot()]))
    assert isinstance(decision, Decision)
    assert decision.actions == (ToolCall("pay", {"coins": 3}),)


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


def test_a_faulty_reply_is_repaired_by_one_more_request_that_says_what_was_wrong() -> None:
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


def test_more_actions_than_allowed_are_refused() -> None:
    reply = Reply(tool_calls=(ToolCall("pay", {"coins": 1}), ToolCall("pay", {"coins": 2})))
    with pytest.raises(ParseError, match="at most 1"):
        read(reply, Observation(), ToolBox.of(object(), 1, [Pot()]))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), _nested, max_leaves=20))
def test_whatever_is_decided_is_checked_or_refused_and_breaks_nothing(value) -> None:
    box = ToolBox.of(object(), 1, [Pot()])
    calls: Any = value if isinstance(value, list) else [value]
    any_value: Any = value
    decisions = [Decision(1, answer=value), Decision(1, tuple(calls))]
    decisions += [Decision(1, (ToolCall("pay", any_value), ToolCall(any_value, {"coins": value})))]
    for seen in [Observation(answer=kind) for kind in (int, str, Vote, Bid, list[int])] + [
        Observation(max_actions=20, options={"coins": (1, "x"), "pay.coins": ()}),
        Observation(tools=()),
    ]:
        for decision in decisions:
            try:
                check_decision(decision, seen, box)
            except ParseError as error:
                assert str(error)  # noqa: PT017 - that nothing else is raised is what is tested


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (object(), str),
        (len, str),
        ("3", int),
        (3.5, int),
        (True, int),
        (ToolCall("pay"), str),
        (float("nan"), float),
        ("\ud800", str),
    ],
)
def test_an_answer_of_another_type_is_refused_whoever_gives_it(answer, kind) -> None:
    with pytest.raises(ParseError, match="answer"):
        check_decision(Decision(1, answer=answer), Observation(answer=kind), NO_TOOLS)


class Aliased(BaseModel):
    group: int = Field(validation_alias="Implement G")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (numpy.int64(3), int),
        (3, float),
        (Vote(party="red", sure=1), Vote),
        (Aliased.model_validate({"Implement G": 2}), Aliased),
        ({"a", "b"}, set[str]),
        ((1, 2), tuple[int, int]),
    ],
)
def test_an_answer_of_the_type_asked_for_passes_whoever_gives_it(answer, kind) -> None:
    assert check_decision(Decision(1, answer=answer), Observation(answer=kind), NO_TOOLS).answer == answer


def test_a_decision_is_an_action_or_an_answer_and_never_both() -> None:
    with pytest.raises(ParseError, match="not an action"):
        check_decision(Decision(1, (ToolCall("pay"),), answer=1), Observation(answer=int), NO_TOOLS)


@given(st.sets(st.text(), max_size=8))
def test_sets_are_written_in_one_order_in_every_process(words) -> None:
    assert plain_answer({"words": words})["words"] == sorted(words, key=repr)


# -- reasoning

THOUGHT = "Four is enough."


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
    with pytest.raises(ConfigError, match="reply_tokens is a whole number, 1 or more"):
        PotModel(1, rng=1, reply_tokens=length)


def test_reasoning_beside_the_action_is_kept_too() -> None:
    text = '{"reasoning": "Four is enough.", "action": "pay", "arguments": {"coins": 4}}'
    model = ask(lambda request: text, reasoning="inline")
    assert (model.coins, model.last_decisions[1].text) == (4, THOUGHT)
