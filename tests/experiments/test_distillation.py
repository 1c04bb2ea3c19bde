"""Surrogate minds: a mind of known behaviour is recovered, stands in for itself, and keeps to what it was fitted to."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from mesa_llm import ConfigError, DoNothing, LLMAgent, LLMModel, Observation, RunLog, ScriptedLLM, ToolCall, action
from mesa_llm.experiments.distillation import distill
from mesa_llm.llm.surrogate.file import MAX_BYTES, Surrogate
from mesa_llm.model.recording import Recording
from tests.pot import QuizModel


class Bazaar(DoNothing):
    """Deals out coins, which may be given to one of three people, some poorer than others."""

    name = "bazaar"

    def __init__(self, rng: Any, most: int) -> None:
        self.rng, self.most = rng, most

    def observe(self, agent: int) -> Observation:
        coins = self.rng.randint(0, self.most)
        people = [{"person": self.rng.randint(100, 999), "wealth": self.rng.randint(0, 9)} for _ in range(3)]
        text = f"You have {coins} coins. " + ", ".join(f"{one['person']} has {one['wealth']}" for one in people)
        options = {"give.to": tuple(one["person"] for one in people)}
        return Observation(text, facts={"coins": coins, "mood": "calm", "people": people}, options=options)

    @action
    def give(self, agent_id: int, coins: Annotated[int, Field(ge=0, le=50)], to: int) -> str:
        """Give coins to a person."""
        return "Given."

    def end_step(self) -> list[Any]:
        return []


class Giver(LLMAgent):
    """Never gives anything by rule."""

    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("do_nothing")


class BazaarModel(LLMModel):
    """Givers in a bazaar."""

    def __init__(self, n_agents: int = 10, most: int = 20, **options: Any) -> None:
        super().__init__(**options)
        self.worlds = (Bazaar(self.random, most),)
        Giver.create_agents(self, n_agents)


def generous(request: Any) -> ToolCall:
    """Give half of ten coins or more to the poorest; keep fewer; err once in twenty times."""
    numbers = [int(number) for number in re.findall(r"\d+", request.messages[-1].content.split("You have ")[1])]
    coins, wealth = numbers[0], dict(zip(numbers[1::2], numbers[2::2], strict=False))
    gives = (coins >= 10) != (request.salt.seed % 20 == 0)
    poorest = min(wealth, key=lambda person: wealth[person])
    return ToolCall("give", {"coins": coins // 2, "to": poorest}) if gives else ToolCall("do_nothing")


def run(steps: int, rng: int = 1, **options: Any) -> BazaarModel:
    model = BazaarModel(rng=rng, **options)
    model.run_for(steps)
    model.close()
    return model


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a surrogate of the generous mind."""
    folder = tmp_path_factory.mktemp("surrogate")
    run(20, llm=ScriptedLLM(generous, name="generous"), log=folder / "run.sqlite")
    distill(folder / "run.sqlite").write(folder / "mind.json")
    return folder / "mind.json"


def test_a_mind_of_known_behaviour_is_recovered(file: Path) -> None:
    surrogate = Surrogate.read(file)
    [fitted] = surrogate.fitted
    assert surrogate.of == ["generous"]
    assert fitted.action is not None
    columns = [fitted.columns({"coins": coins, "mood": "calm", "people.n": 3.0}) for coins in (2.0, 7.0, 12.0, 18.0)]
    gives = [fitted.action.probabilities(["do_nothing", "give"], each)[1] for each in columns]
    assert max(gives[:2]) < 0.2
    assert min(gives[2:]) > 0.8
    held_out: Any = surrogate.held_out
    scores: dict[str, Any] = {score.part: score for score in held_out.scores}
    deed, person, coins = scores["action"], scores["give.to"], scores["give.coins"]
    assert deed.surrogate < 0.4 < deed.rule < deed.chance + 0.01
    assert deed.accuracy > 0.9 > deed.rule_accuracy
    assert person.surrogate < 0.5 * person.chance
    assert coins.surrogate < 0.5 * coins.frequencies < coins.chance


def recorded(folder: Path, n: int, **options: Any) -> list[Path]:
    """Record runs of the generous mind, with seeds of their own."""
    files = [folder / f"{rng}.sqlite" for rng in range(1, n + 1)]
    for rng, file in enumerate(files, start=1):
        most = options.get("most", (20,) * n)[rng - 1]
        run(3, rng=rng, llm=ScriptedLLM(generous, name="generous"), log=file, most=most)
    return files


@pytest.mark.parametrize(("n", "has_interval"), [(2, False), (5, True)])
def test_runs_are_held_out_where_there_are_several_with_an_interval_from_four(
    tmp_path: Path, n: int, has_interval: bool
) -> None:
    held_out: Any = distill(recorded(tmp_path, n)).held_out
    assert (held_out.by, held_out.n_folds, held_out.n_runs) == ("runs", n, n)
    assert not held_out.is_same_run
    (deed,) = [score for score in held_out.scores if score.part == "action"]
    assert (deed.low is not None) == has_interval
    if has_interval:
        assert deed.low < deed.surrogate < deed.high < deed.chance


def test_one_run_or_runs_that_tell_nothing_of_each_other_are_said_to_be_the_same_run(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    alone: Any = distill(recorded(tmp_path / "one", 1)).held_out
    apart: Any = distill(recorded(tmp_path, 2, most=(9, 900))).held_out  # hardly any of the second is within the first
    for held_out, description in ((alone, "agents of the same run"), (apart, "agents of the same runs")):
        assert held_out.is_same_run
        assert held_out.description == description
        assert all(score.low is None for score in held_out.scores)


def test_a_surrogate_repeats_itself_and_every_decision_names_it(file: Path, tmp_path: Path) -> None:
    name = f"surrogate:{file}"
    models = [run(3, llm=name, log=tmp_path / f"{index}.sqlite") for index in range(2)]
    assert models[0].runlog.digest == models[1].runlog.digest
    assert all(decision.by.startswith("surrogate:mind#") for decision in models[0].last_decisions.values())
    assert models[0].usage.calls == 0
    assert models[0].data_quality()["by_surrogate"] == (30, 30)
    log = RunLog(tmp_path / "0.sqlite", "read")
    assert list(log.manifest["files"]) == [f"llm={name}"]
    log.close()
    assert Recording.read(tmp_path / "0.sqlite").replayed().runlog.digest == models[0].runlog.digest


def test_a_run_is_not_replayed_with_another_surrogate(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    copy.write_bytes(file.read_bytes())
    run(1, llm=f"surrogate:{copy}", log=tmp_path / "run.sqlite")
    copy.write_bytes(file.read_bytes().replace(b'"generous"', b'"greedy"'))
    with pytest.raises(ConfigError, match="has changed since the run was recorded"):
        Recording.read(tmp_path / "run.sqlite").replayed()


def test_surrogate_fails_or_asks_the_language_model_outside_its_fit(file: Path, tmp_path: Path) -> None:
    failed = run(2, llm=f"surrogate:{file}", most=900)
    assert failed.usage.failures > 15
    reasons = [getattr(each, "reason", "") for each in failed.last_decisions.values()]
    assert any(re.search(r"coins is \d+; in the recordings it was 0 to 20", reason) for reason in reasons)
    asked = run(2, llm=f"surrogate:{file}?else=random", most=90, log=tmp_path / "run.sqlite")
    assert asked.usage.failures == 0
    assert {decision.by.partition("?")[2] for decision in asked.last_decisions.values()} == {"", "else=random"}
    assert Recording.read(tmp_path / "run.sqlite").replayed().runlog.digest == asked.runlog.digest


def test_a_strangers_file_is_checked_before_anything_is_decided_by_it(file: Path, tmp_path: Path) -> None:
    fields = json.loads(file.read_text())
    fields["fitted"][0]["action"]["tree"] |= {"column": [0], "left": [0], "right": [0], "threshold": [0]}
    for content in (b"\x80\x04pickle", b'{"password": "hunter2"}', json.dumps(fields).encode(), b" " * (MAX_BYTES + 1)):
        (tmp_path / "bad.json").write_bytes(content)
        with pytest.raises(ConfigError, match="no surrogate") as error:
            Surrogate.read(tmp_path / "bad.json")
        assert "hunter2" not in str(error.value)


def test_observations_without_facts_are_refused_with_what_is_missing(tmp_path: Path) -> None:
    model = QuizModel(5, llm=ScriptedLLM(lambda request: {"answer": 1}), rng=1, log=tmp_path / "quiz.sqlite")
    model.run_for(5)
    model.close()
    with pytest.raises(ConfigError, match="have no facts as values"):
        distill(tmp_path / "quiz.sqlite")
