"""Questions asked aside: what was answered before an interruption is never asked for again."""

from typing import Any

import pytest

from mesa_llm import AgentDesign, Decision, Observation
from mesa_llm.engine.survey import Question
from mesa_llm.errors import ConfigError
from mesa_llm.llm.replies import call
from mesa_llm.llm.scripted import ScriptedLLM
from mesa_llm.testing import honest, honest_reply
from tests.pot import Pot, PotModel


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


def test_side_questions_count_as_calls_only() -> None:
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


def test_survey_appends_to_a_kept_conversation_without_changing_it() -> None:
    requests = []

    def script(request):
        requests.append([(message.role, message.content) for message in request.messages])
        return "Fine." if request.salt.purpose == "survey" else call("pay", coins=request.salt.time)

    model = PotModel(1, ScriptedLLM(script), rng=1, design=AgentDesign(memory="chat"))
    model.run_for(2)
    memory = next(iter(model.agents)).memory
    before = memory.to_json()
    model.survey(["How much did you pay?"])
    assert [role for role, _ in requests[-1]] == ["user", "assistant", "user", "assistant", "user"]
    assert requests[-1][1][1] == '{"action":"pay","arguments":{"coins":1}}'
    assert memory.to_json() == before


def prompts_of_surveys(requests):
    """Return the prompts of the surveys, as one text each."""
    surveys = [request for request in requests if request.salt.purpose == "survey"]
    return ["\n".join(message.content for message in request.messages) for request in surveys]


@pytest.mark.parametrize("memory", ["none", "window:9", "chat"])
def test_who_is_surveyed_sees_the_scene_and_the_conversation(memory) -> None:
    requests = []

    def script(request):
        requests.append(request)
        return "Fine." if request.salt.purpose == "survey" else call("pay", coins=3)

    model = PotModel(1, ScriptedLLM(script), rng=1, design=AgentDesign(memory=memory))
    model.run_for(2)
    model.survey(["How are you?"])
    model.survey(["How are you?"], shows_scene=False)
    seen, unseen = prompts_of_surveys(requests)
    assert "The pot holds 6 coins." in seen
    assert "The pot holds 6 coins." not in unseen
    assert ("3" in unseen) == (memory != "none")


def test_an_answer_that_fails_is_counted_and_leaves_the_others_whole() -> None:
    script = ScriptedLLM(lambda request: "?" if request.salt.agent == 2 else {"answer": 3})
    model = PotModel(3, script, rng=1)
    table = model.survey([Question("How many?", int)])
    assert list(table["answer"]) == [3, None, 3]
    assert [type(answer) for answer in table["answer"]] == [int, type(None), int]
    assert [reason is None for reason in table["failure"]] == [True, False, True]
    assert (model.usage_by_purpose["survey"].failures, model.usage.failures) == (1, 0)


class Polled(PotModel):
    """Pays what its own survey says into the pot, at the end of each step."""

    def end_step(self) -> None:
        self.pot.coins += sum(self.survey([Question("How much?", int)])["answer"])


def by_seed(request):
    return honest_reply(request) if request.salt.purpose == "decide" else {"answer": request.salt.seed % 100}


@pytest.mark.parametrize("purpose", ["survey", "mood"])
def test_surveys_by_hand_change_nothing_in_a_run_that_surveys_by_itself(purpose) -> None:
    quiet, curious = (Polled(2, ScriptedLLM(by_seed), rng=1) for _ in range(2))
    for _ in range(3):
        quiet.step()
        for _ in range(2):
            curious.survey([Question("How much?", int), Question("", int)], purpose=purpose)
            curious.consult(curious.llm, ["How much?"])
        curious.step()
        curious.survey([Question("How much?", int)], purpose=purpose)
    assert curious.runlog.digest == quiet.runlog.digest


def test_manual_surveys_within_an_externally_driven_step_change_nothing() -> None:
    quiet, curious = (Polled(2, ScriptedLLM(by_seed), rng=1) for _ in range(2))
    for model in (quiet, curious):
        for _ in range(2):
            seen = model.observations()
            if model is curious:
                model.survey([Question("How much?", int)])
            model.apply({agent: agent.rule(observation) for agent, observation in seen.items()})
    assert curious.runlog.digest == quiet.runlog.digest


def test_a_survey_by_hand_asked_twice_gives_two_samples_and_is_replayed(tmp_path) -> None:
    tables = []
    for replay in (False, True):
        model = PotModel(3, ScriptedLLM(by_seed), rng=1, log=tmp_path / "run.sqlite", replay=replay)
        model.run_for(1)
        tables.append([list(model.survey([Question("How much?", int)])["answer"]) for _ in range(2)])
        model.close()
    assert tables[0] == tables[1]
    assert tables[0][0] != tables[0][1]


def test_a_survey_draws_nothing_from_the_run() -> None:
    class Noisy(Pot):
        def observe(self, agent):
            return Observation(f"Noise: {model.random.random()} {model.rng.random()}", facts=0)

    digests = []
    for asks in (False, True):
        model = PotModel(2, "random", rng=1)
        model.pot = Noisy()
        model.worlds = (model.pot,)
        for _ in range(2):
            model.step()
            if asks:
                model.survey(["How are you?"])
        digests.append((model.runlog.digest, model.random.random(), model.rng.random()))
    assert digests[0] == digests[1]


@pytest.mark.parametrize("purpose", ["decide", "memory", "two words", ""])
def test_a_survey_cannot_be_counted_among_what_the_run_itself_asks(purpose) -> None:
    model = PotModel(1, ScriptedLLM(by_seed), rng=1)
    with pytest.raises(ConfigError, match="purpose="):
        model.survey(["How are you?"], purpose=purpose)
    with pytest.raises(ConfigError, match="purpose="):
        model.consult(model.llm, ["How are you?"], purpose=purpose)


# -- who is consulted


@pytest.mark.parametrize("how", [{"settings": {}}, {"reasoning": "loud"}])
def test_a_consultation_that_cannot_be_is_refused_before_it_is_asked(how) -> None:
    with pytest.raises(ConfigError, match=next(iter(how))):
        PotModel(1, rng=1).consult("random", ["Well?"], **how)


class Judged(PotModel):
    """Lets a judge say at the end of each step what the pot is worth."""

    judge: Any

    def end_step(self) -> None:
        prompts = [f"Worth of {self.coins} coins?", f"Worth of {self.coins} coins?"]
        made = self.consult(self.judge, prompts, answer=int, purpose="worth")
        self.worth = [one.answer if isinstance(one, Decision) else one.reason for one in made]


def judged(script, **options):
    model = Judged(2, honest(), rng=1, **options)
    model.judge = ScriptedLLM(script, delay_s=lambda request: 0.01 / (1 + request.salt.seed % 5))
    model.run_for(2)
    return model


def test_a_judge_is_recorded_counted_under_its_purpose_and_replayed(tmp_path) -> None:
    live = judged(by_seed, log=tmp_path / "run.sqlite")
    live.close()
    again = judged(by_seed, log=tmp_path / "run.sqlite", replay=True)
    assert (again.worth, again.runlog.digest, again.usage.calls) == (live.worth, live.runlog.digest, 0)
    assert len(set(live.worth)) == 2
    assert (live.usage_by_purpose["worth"].calls, live.usage_by_purpose["decide"].calls) == (4, 4)
    assert live.engine.decisions == 4


def test_a_judge_that_fails_is_a_value_and_counted_under_its_purpose() -> None:
    model = judged(lambda request: "no idea")
    assert all("does not fit" in reason for reason in model.worth)
    assert (model.usage_by_purpose["worth"].failures, model.usage.failures) == (4, 0)


def test_a_rule_may_judge() -> None:
    model = PotModel(1, rng=1)
    (made,) = model.consult("rule", ["abc"], answer=int, rule=len)
    assert made == Decision(0, answer=3, by="rule", label="judge")
    with pytest.raises(ConfigError, match="give rule="):
        model.consult("rule", ["abc"])


@pytest.mark.parametrize("question", ["How?", Question("How?")])
def test_one_question_is_no_list_of_questions(question: Any) -> None:
    with pytest.raises(ConfigError, match=r"got one; write \[question\]"):
        PotModel(2, rng=1).survey(question)
