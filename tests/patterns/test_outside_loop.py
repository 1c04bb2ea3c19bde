"""An outside loop: somebody else's program steps a model of several stages, and decides for those it plays."""

from collections.abc import Mapping
from contextlib import closing
from types import MappingProxyType
from typing import Annotated, Any, Literal, Unpack

import pytest
from pydantic import Field
from typer.testing import CliRunner

from mesa_llm import (
    ConfigError,
    Decision,
    Event,
    LLMAgent,
    LLMModel,
    LLMOptions,
    Observation,
    ScriptedLLM,
    ToolCall,
    Turn,
    action,
)
from mesa_llm.cli.app import app

Share = Annotated[int, Field(ge=0, le=10)]


class Table:
    name = "table"

    def __init__(self) -> None:
        self.offer: int | None = None
        self.coins: dict[int, int] = {}
        self.guesses: list[int] = []
        self.tips: list[int] = []

    def observe(self, agent_id: int) -> Observation:
        return Observation(f"You have {self.coins[agent_id]} coins. On the table: {self.offer}.", tools=())

    def receive(self, agent_id: int, answer: Any, label: str) -> str:
        if label == "offer":
            self.offer = answer
        elif label == "guess":
            self.guesses.append(answer)
        elif answer == "accept" and self.offer is not None:
            for one in self.coins:
                self.coins[one] += self.offer if one == agent_id else 10 - self.offer
        return ""

    @action
    def tip(self, agent_id: int, coins: Literal[0, 1, 2]) -> None:
        """Leave a tip."""
        self.tips.append(coins)

    def end_step(self) -> list[Event]:
        self.offer = None
        return []


class Guest(LLMAgent):
    def rule(self, seen: Observation) -> Any:
        return {"offer": 5, "guess": 5, "reply": "accept"}.get(seen.label, ToolCall("tip", {"coins": 1}))


class TableModel(LLMModel):
    """One offers; the other replies, and guesses what most do; both leave a tip."""

    def __init__(self, llm: Any = "rule", rng: int | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(llm=llm, rng=rng, **options)
        self.activation, self.table = TableModel.offering, Table()
        self.worlds = (self.table,)
        self.proposer, self.responder = Guest.create_agents(self, 2)
        self.table.coins = {one.unique_id: 0 for one in self.agents}

    def turn(self, agent: Guest, label: str, **asked: Any) -> Turn:
        return Turn(agent, Observation(self.table.observe(agent.unique_id).text, label=label, **asked))

    def offering(self) -> list[list[Turn]]:
        return [[self.turn(self.proposer, "offer", answer=Share)]]

    def next_stage(self, acted: list[Any]) -> list[Turn]:
        if acted == [self.proposer]:
            reply = self.turn(self.responder, "reply", answer=Literal["accept", "reject"])
            return [reply, self.turn(self.responder, "guess", answer=Share)]
        if acted == [self.responder, self.responder]:
            return [self.turn(one, "tip", tools=("tip",)) for one in self.agents]
        return []


def drive(model: TableModel, steps: int, own: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Step a model from outside; what is decided here stands in `own` by label, for all else its agents are asked."""
    while model.running and model.time < steps:
        seen = model.observations()
        asked = [key for key, sight in seen.items() if sight.label not in own]
        agents = [key[0] if isinstance(key, tuple) else key for key in asked]
        decided = dict(zip(asked, model.decide(agents, [seen[key] for key in asked]), strict=True))
        model.apply({key: decided[key] if key in decided else own[sight.label] for key, sight in seen.items()})


def generous(request):
    if request.tools:
        return ToolCall("tip", {"coins": 2})
    return {"answer": "accept" if "accept" in str(request.schema) else 7}


def test_a_program_of_ones_own_plays_a_part_and_asks_for_the_rest() -> None:
    model = TableModel(ScriptedLLM(generous), rng=1)
    drive(model, 2, {"offer": 1, "guess": 3})
    assert (model.table.coins, model.table.guesses, model.table.tips) == ({1: 18, 2: 2}, [3, 3], [2] * 4)
    rows = model.runlog.decisions()
    assert set(rows["label"][rows["by"] == "outside"]) == {"offer", "guess"}


def test_a_run_with_outside_parts_is_replayed_by_who_drove_it(tmp_path) -> None:
    digests = []
    for replay, llm in ((False, ScriptedLLM(generous)), (True, "ScriptedLLM")):
        with closing(TableModel(llm, rng=1, log=tmp_path / "run.sqlite", replay=replay)) as model:
            drive(model, 3, {"offer": 2})
            digests.append(model.runlog.digest)
    assert digests[0] == digests[1]
    done = CliRunner().invoke(app, ["replay", "--trust", str(tmp_path / "run.sqlite")])
    assert (done.exit_code, "decisions from outside" in done.output) == (2, True)


@pytest.mark.parametrize("stranger", [2, 99, (1, "bid")])
def test_who_is_not_due_cannot_decide_and_nothing_has_happened(stranger) -> None:
    model = TableModel(rng=1)
    with pytest.raises(ConfigError, match="not due"):
        model.apply({model.proposer: 5, stranger: 5})
    assert (model.time, model.table.offer, model.due) == (0, None, [model.proposer])


@pytest.mark.parametrize("wrong", ["five", 11, True, ToolCall("tip", {"coins": 1}), Decision(2, answer=5)])
def test_what_cannot_be_decided_is_refused_with_the_reason(wrong) -> None:
    model = TableModel(rng=1)
    ((outcome,),) = model.apply({model.proposer: wrong}).values()
    assert (outcome.ok, model.table.offer, model.usage.failures) == (False, None, 1)


def test_an_answer_to_one_question_is_no_answer_to_another() -> None:
    model = TableModel(rng=1)
    model.apply({model.proposer: 5})
    seen = model.observations()
    reply, guess = model.decide([model.responder] * 2, list(seen.values()))
    ((outcome,), _) = model.apply(dict(zip(seen, (guess, reply), strict=True))).values()
    assert outcome.result == "agent 2 has decided that on 'guess', not agent 2 on 'reply'"
