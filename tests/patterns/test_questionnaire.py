"""Questionnaires: each item is a turn with its label, all at once or one by one; the answers arrive at the world."""

import json
import re
from collections import Counter
from typing import Annotated, Any, Literal, Unpack

import pytest
from pydantic import Field

from mesa_llm import Event, LLMAgent, LLMModel, LLMOptions, Observation, Question, ScriptedLLM, ToolError, Turn

WORDS = re.findall(
    r"\S+",
    """talkative critical thorough gloomy inventive quiet selfless careless relaxed curious lively quarrelsome reliable
    tense clever eager forgiving untidy worried fanciful silent trusting lazy even-tempered original bold cold
    persistent moody artistic shy kind efficient calm conventional outgoing rude organised nervous reflective
    unmusical helpful distracted refined""",
)

Digit = Annotated[int, Field(ge=0, le=9)]


class Questionnaire:
    """Statements about oneself, each of which is rated from 1 to 5."""

    name = "questionnaire"

    def __init__(self, n_items: int) -> None:
        self.items = {f"item {number}": f"I am {word}." for number, word in enumerate(WORDS[:n_items], 1)}
        self.scores: dict[tuple[int, str], list[int]] = {}
        self.n_asked: Counter[str] = Counter()
        self.n_off_scale: Counter[str] = Counter()

    def observe(self, agent_id: int) -> Observation:
        return Observation(
            instructions="How well does a statement describe you? 1: not at all … 5: very well.", tools=()
        )

    def ask(self, label: str) -> Observation:
        rules = self.observe(0).instructions
        return Observation(self.items[label], rules, answer=Digit, label=label)

    def receive(self, agent_id: int, answer: int, label: str) -> str:
        if not 1 <= answer <= 5:
            self.n_off_scale[label] += 1
            raise ToolError(f"{answer} is not on the scale.")
        self.scores.setdefault((agent_id, label), []).append(answer)
        return ""

    def n_missing(self, label: str) -> int:
        n_given = sum(len(given) for (_, item), given in self.scores.items() if item == label)
        return self.n_asked[label] - self.n_off_scale[label] - n_given

    def end_step(self) -> list[Event]:
        return []


class Respondent(LLMAgent):
    """By rule, has no opinion."""

    def rule(self, seen: Observation) -> int:
        return 3

    def rule_answer(self, question: Question) -> str:
        return "I would rather not say."


class QuestionnaireModel(LLMModel):
    """One administration a step, its items in an order drawn anew."""

    def __init__(
        self,
        n_agents: int = 1,
        n_items: int = 44,
        way: Literal["at once", "one by one"] = "at once",
        memory: str = "none",
        llm: Any = "rule",
        rng: int | None = None,
        **options: Unpack[LLMOptions],
    ) -> None:
        super().__init__(llm=llm, rng=rng, **options)
        self.activation, self.way, self.form = QuestionnaireModel.administration, way, Questionnaire(n_items)
        self.worlds = (self.form,)
        Respondent.create_agents(self, n_agents, memory=memory)

    def administration(self) -> list[list[Turn]]:
        order = self.random.sample(list(self.form.items), len(self.form.items))
        stages = [[Turn(one, self.form.ask(label)) for one in self.agents] for label in order]
        self.form.n_asked.update(dict.fromkeys(order, len(self.agents)))
        return stages if self.way == "one by one" else [[turn for stage in stages for turn in stage]]

    def results(self) -> dict[str, Any]:
        given = [score for scores in self.form.scores.values() for score in scores]
        missing = {label: n for label in self.form.items if (n := self.form.n_missing(label))}
        return {"mean": sum(given) / len(given), "missing": missing, "off_scale": dict(self.form.n_off_scale)}


def wayward(request):
    """Leave the scale at item 3, answer item 5 in words, and all others with 4."""
    asked = " ".join(message.content for message in request.messages[-3:])
    return "I am human." if "inventive" in asked else {"answer": 9 if "thorough" in asked else 4}


@pytest.mark.parametrize("way", ["at once", "one by one"])
def test_what_is_missing_or_off_the_scale_is_counted_by_item(way) -> None:
    model = QuestionnaireModel(3, way=way, llm=ScriptedLLM(wayward), rng=1)
    model.run_for(2)
    assert model.results() == {"mean": 4, "missing": {"item 5": 6}, "off_scale": {"item 3": 6}}
    failed = model.runlog.decisions().query("kind == 'Unparsed'")
    assert list(failed["label"]) == ["item 5"] * 6
    refused = model.runlog.actions().query("ok == 0")
    assert set(zip(refused["label"], refused["result"], strict=True)) == {("item 3", '"9 is not on the scale."')}


def test_one_by_one_an_agent_remembers_its_answers_as_it_gave_them() -> None:
    model = QuestionnaireModel(way="one by one", memory="chat", llm=ScriptedLLM(lambda request: {"answer": 4}), rng=1)
    model.step()
    last = json.loads(model.runlog.calls()["prompt"].iloc[-1])
    assert [message["role"] for message in last] == ["system", *["user", "assistant"] * 43, "user"]
    assert {message["content"] for message in last[2::2]} == {'{"answer": 4}'}


def test_at_once_no_answer_knows_of_another_until_the_next_administration() -> None:
    model = QuestionnaireModel(memory="chat", llm=ScriptedLLM(lambda request: {"answer": 4}), rng=1)
    model.run_for(2)
    lengths = [len(json.loads(prompt)) for prompt in model.runlog.calls()["prompt"]]
    assert lengths == [2] * 44 + [2 + 2 * 44] * 44


@pytest.mark.parametrize("llm", ["rule", "random"])
def test_a_questionnaire_runs_without_a_language_model(llm) -> None:
    model = QuestionnaireModel(2, llm=llm, rng=1)
    model.step()
    assert model.results()["missing"] == {}
    assert model.engine.decisions == 88
