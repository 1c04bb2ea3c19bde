"""The eight things that Shachi's studies rest on, without a language model: loop, tools, parsing, and so on.

The fourth, designs in tasks, is tested in tests/experiments/benchmark/test_designs.py. More of the fifth, normalisers,
stands in tests/experiments/benchmark/test_cross.py and tests/models/test_sotopia.py; more of the eighth in
tests/test_statistics.py.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import product
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import pytest
from pydantic import BaseModel, Field

from mesa_llm import (
    AgentConfig,
    AgentDesign,
    ChatMemory,
    ConfigError,
    DoNothing,
    Event,
    LLMAgent,
    LLMModel,
    LLMOptions,
    MemoryEntry,
    Observation,
    Reply,
    ScriptedLLM,
    ToolCall,
    WindowMemory,
    action,
    tool,
)
from mesa_llm.engine.reading.parsing import read_answer
from mesa_llm.errors import ParseError
from mesa_llm.experiments.benchmarks import find_tasks
from mesa_llm.llm.replies import call
from mesa_llm.memory import (
    SavedMemories,
    import_memory,
    memory_from_json,
    neutral,
    open_memory,
    saved_memories,
    scrambled,
    within_tokens,
)
from mesa_llm.model.schedule import Role, Visit, WorldSchedule
from mesa_llm.records import Request
from mesa_llm.statistics import adjusted_p, permutation_p, ratio_estimate
from mesa_llm_models.shachi.two_worlds import TwoWorldsModel
from mesa_llm_models.shachi.worlds import path_p
from tests.pot import PotModel

TASKS, _ = find_tasks()

# -- 1. the loop: every task, driven from outside, by halves, and by agents who say nothing


def driven(model: LLMModel, steps: int, chosen: Callable[[int], bool] = lambda index: True) -> str:
    """Step a model from outside; only chosen agents are asked, the others decide nothing. Return the run's digest."""
    while model.running and model.time < steps:
        seen = list(model.observations().items())
        asked = [(key, sight) for index, (key, sight) in enumerate(seen) if chosen(index)]
        agents = [key[0] if isinstance(key, tuple) else key for key, _ in asked]
        decisions = model.decide(agents, [sight for _, sight in asked])
        model.apply(dict(zip([key for key, _ in asked], decisions, strict=True)))
        if not seen:
            model.step()
    return model.runlog.digest


@pytest.mark.parametrize("name", TASKS)
def test_a_loop_from_outside_is_the_loop_and_goes_on_with_some_agents_or_none(name) -> None:
    task = TASKS[name].as_quick()
    whole = task.make(**task.setting, llm="random", rng=1)
    whole.run(1)
    assert driven(task.make(**task.setting, llm="random", rng=1), 1) == whole.runlog.digest
    for chosen in (lambda index: index % 2 == 0, lambda index: False):
        model = task.make(**task.setting, llm="random", rng=1)
        driven(model, 1, chosen)
        assert model.time == 1 or not model.running


# -- 2. the tool loop


def asked(script: Callable[[Any], Any], **options: Any) -> PotModel:
    model = PotModel(n_agents=1, llm=ScriptedLLM(script), rng=1, **options)
    model.step()
    return model


@pytest.mark.parametrize(("rounds", "coins", "calls"), [(0, 3, 1), (1, 3, 2), (5, 3, 6), (6, 0, 6)])
def test_up_to_five_rounds_of_tools_are_answered(rounds, coins, calls) -> None:
    model = asked(lambda request: call("count") if request.salt.call < rounds else call("pay", coins=3))
    assert (model.coins, model.usage.calls) == (coins, calls)


def test_each_call_of_a_round_is_answered_under_its_id() -> None:
    seen: list[Any] = []

    def script(request: Any) -> Any:
        seen.append(request.messages)
        calls = tuple(ToolCall("count", {}, name) for name in ("a", "b"))
        return Reply(tool_calls=calls) if request.salt.call == 0 else call("pay", coins=2)

    assert asked(script).coins == 2
    answered = [message.call_id for message in seen[1] if message.role == "tool"]
    assert answered == ["a", "b"]


def broken() -> str:
    """Break."""
    raise ZeroDivisionError("oh")


def long() -> str:
    """Tell a lot."""
    return "word " * 100_000


@pytest.mark.parametrize(
    ("function", "coins", "failures"), [(broken, 0, ["tool broken raised ZeroDivisionError: oh"]), (long, 1, [])]
)
def test_a_tool_that_breaks_is_a_recorded_failure_and_a_long_result_is_none(function, coins, failures) -> None:
    first = call(function.__name__)
    model = asked(
        lambda request: first if request.salt.call == 0 else call("pay", coins=1), design=AgentDesign(tools=(function,))
    )
    assert (model.coins, model.runlog.failures(), model.running) == (coins, failures, True)


@pytest.mark.parametrize("reply", [call("steal"), Reply("{no json"), call("pay", coins="many")])
def test_what_cannot_be_done_is_repaired_once_and_then_a_failure(reply) -> None:
    assert asked(lambda request: reply if request.salt.call == 0 else call("pay", coins=4)).coins == 4
    hopeless = asked(lambda request: reply)
    assert (hopeless.coins, hopeless.usage.calls, len(hopeless.runlog.failures())) == (0, 2, 1)


# -- 3. parsing


class Trade(BaseModel):
    side: Literal["buy", "sell"]
    shares: Annotated[int, Field(ge=1, le=100)]


@pytest.mark.parametrize(
    "text",
    [
        '{"side": "buy", "shares": 40}',
        '```json\n{"side": "buy", "shares": 40}\n```',
        'After some thought I buy: {"side": "buy", "shares": 40}. Good luck to me.',
    ],
)
def test_valid_fenced_and_embedded_json_is_read(text) -> None:
    assert read_answer(text, Trade) == Trade(side="buy", shares=40)


@pytest.mark.parametrize(
    "text",
    ["I buy forty.", '{"side": "buy", "shares": "forty"}', '{"side": "buy"}', '{"side": "hold", "shares": 4}'],
)
def test_prose_wrong_types_and_missing_fields_are_refused_with_the_reason(text) -> None:
    with pytest.raises(ParseError, match=r"\w"):
        read_answer(text, Trade)


def test_a_number_that_the_parsing_model_made_up_is_found_in_the_log(tmp_path) -> None:
    text, drifted = "I would pay four.", ScriptedLLM(lambda request: call("pay", coins=9), name="parser")
    model = asked(lambda request: text, parser=drifted, log=tmp_path / "run.sqlite")
    assert model.coins == 9
    replies = model.runlog.calls()["reply"].astype(str)
    assert any("four" in reply for reply in replies)  # what was said, and what was made of it, both stand there
    assert any("9" in reply and "four" not in reply for reply in replies)


# -- 5. normalisers


def test_a_matrix_of_raw_scores_has_ones_on_its_diagonal() -> None:
    raw = np.random.default_rng(1).uniform(0.5, 2, (4, 4, 6))  # designs, tasks, seeds
    ratios = [[ratio_estimate(raw[row, column], raw[column, column]).value for column in range(4)] for row in range(4)]
    assert np.diag(ratios) == pytest.approx(1)
    assert ratios[0][1] == pytest.approx(raw[0, 1].mean() / raw[1, 1].mean())
    for diagonal in ([0.0] * 6, [-1.0] * 6):
        with pytest.raises(ValueError, match=r"must be positive, .*; use the difference instead"):
            ratio_estimate(raw[0, 1], diagonal)


# -- 6. memories carried over


def lived(memory: str) -> dict[str, Any]:
    kept = open_memory(memory)
    for step in range(6):
        kept.add(MemoryEntry(step, "observation", f"In step {step}\n  the tide  was {step} feet.", world="sea"))
        kept.add(MemoryEntry(step, "decision", f"wait {step}", world="sea"))
    return json.loads(json.dumps(kept.to_json()))


@pytest.mark.parametrize("memory", ["window:4", "chat:400:3", "stream:5", "summary:4", "none"])
def test_a_memory_goes_round_byte_for_byte(memory) -> None:
    saved = lived(memory)
    assert json.dumps(memory_from_json(saved).to_json()) == json.dumps(saved)


def test_lives_go_round_with_where_they_come_from(tmp_path) -> None:
    model = PotModel(rng=3)
    model.run(4)
    lives = saved_memories(model)
    lives.write(tmp_path / "lives.json")
    again = SavedMemories.read(tmp_path / "lives.json")
    assert again.text() == (tmp_path / "lives.json").read_text()
    assert (again.run, again.steps, again.seed) == (model.runlog.digest, 4, model.run_seed)
    assert [(life.agent, life.first_step, life.last_step) for life in again.lives] == [(n, 1, 4) for n in (1, 2, 3, 4)]
    (tmp_path / "lives.json").write_text('{"version": 2}')
    with pytest.raises(ConfigError, match="no saved memories of version 1"):
        SavedMemories.read(tmp_path / "lives.json")


@pytest.mark.parametrize("memory", ["window:50", "stream", "reflection", "chat"])
def test_a_life_becomes_the_beginning_of_a_memory_of_another_kind(memory) -> None:
    agent = next(iter(PotModel(n_agents=1, rng=1).agents))
    agent.memory = open_memory(memory)
    agent.memory.add(MemoryEntry(1, "thought", "mine"))
    import_memory(agent, lived("window:2"), "merge")
    texts = [entry["text"] for entry in agent.memory.to_json()["entries"]]
    assert (len(texts), texts[-1]) == (3, "mine")


@pytest.mark.parametrize(("use", "kinds"), [("replace", 12 + 1), ("readonly", 12), ("merge", 12 + 1 + 1)])
def test_a_life_replaces_what_was_there_or_comes_before_it_or_stays_as_it_is(use, kinds) -> None:
    agent = next(iter(PotModel(n_agents=1, rng=1).agents))
    agent.memory = WindowMemory(50, 2000)
    agent.memory.add(MemoryEntry(1, "thought", "mine"))
    import_memory(agent, lived("chat:4000:20"), use)
    agent.memory.add(MemoryEntry(2, "thought", "later"))
    entries = agent.memory.to_json()["entries"]
    assert len(entries) == kinds
    assert entries[0]["is_past"]
    text = agent.memory.recall("", 3) + "".join(message.content for message in agent.memory.messages())
    assert "n an earlier life in sea, " in text
    assert "step 0" in text


@pytest.mark.parametrize(("tokens", "n_entries"), [(0, 0), (1, 0), (2, 1), (10**6, 12)])
def test_what_is_carried_is_the_newest_that_fits(tokens, n_entries) -> None:
    for memory in ("chat:4000:20", "stream"):
        saved = lived(memory)
        cut = within_tokens(saved, tokens)
        assert cut.get("entries", []) == saved["entries"][len(saved["entries"]) - n_entries :]
        memory_from_json(cut)


def test_placebos_have_the_length_and_not_the_sense() -> None:
    saved = lived("chat:4000:20")
    lengths = [len(entry["text"]) for entry in saved["entries"]]
    filled = neutral(saved, ["Stones lie still.", "Rivers run."])
    assert [len(entry["text"]) for entry in filled["entries"]] == lengths
    assert "tide" not in json.dumps(filled)
    words = scrambled(saved, random.Random(1))
    assert sum(len(entry["text"]) for entry in words["entries"]) == sum(lengths)
    assert sorted(" ".join(e["text"] for e in words["entries"]).split()) == sorted(
        " ".join(e["text"] for e in saved["entries"]).split()
    )
    assert words != saved
    with pytest.raises(ConfigError, match="needs sentences"):
        neutral(saved, [" "])


# -- 7. several worlds in turn


class Hall(DoNothing):
    """A place that closes after some steps, where one waves."""

    def __init__(self, name: str, n_steps: int) -> None:
        self.name, self.n_steps = name, n_steps
        self.guests: list[tuple[int, ...]] = []
        self._here: list[int] = []

    def observe(self, agent_id: int) -> Observation:
        return Observation(f"You are in the {self.name}.", label=self.name)

    @action
    def wave(self, agent_id: int) -> str:
        """Wave."""
        self._here.append(agent_id)
        return f"You waved in the {self.name}."

    @tool
    def look(self, agent_id: int) -> str:
        """Look around."""
        return self.name

    @property
    def is_over(self) -> bool:
        return len(self.guests) >= self.n_steps

    def end_step(self) -> list[Event]:
        self.guests.append(tuple(sorted(self._here)))
        self._here = []
        return []


class Guest(LLMAgent):
    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("wave")


class HallsModel(LLMModel):
    """Three guests, who go to and fro between two halls; the third stays out of the red one."""

    def __init__(
        self,
        until: str = "all",
        red: int = 3,
        blue: int = 5,
        llm: Any = "rule",
        rng: Any = None,
        **options: Unpack[LLMOptions],
    ) -> None:
        super().__init__(llm=llm, rng=rng, **options)
        self.worlds = (Hall("red", 3), Hall("blue", 5))
        self.schedule = WorldSchedule([Visit("red"), Visit("blue", 2)], until, {"red": (1, 2)})
        for agent in Guest.create_agents(self, 3, memory="window:9"):
            roles = {name: AgentConfig(name="Ada", persona=f"You wear {name}.") for name in ("red", "blue")}
            agent.roles = {name: Role(config, agent.memory) for name, config in roles.items()}


def test_worlds_are_visited_in_order_and_ratio() -> None:
    model = HallsModel(rng=1)
    model.run(6)
    red, blue = model.worlds
    assert list(model.runlog.decisions().query("agent == 1")["label"]) == ["red", "blue", "blue", "red", "blue", "blue"]
    assert (red.guests, blue.guests) == ([(1, 2)] * 2, [(1, 2, 3)] * 4)
    assert model.schedule.n_cycles == 2


@pytest.mark.parametrize(("until", "steps"), [("any", 7), ("all", 8), ("red", 7), ("blue", 8)])
def test_a_run_ends_when_any_all_or_one_of_the_worlds_is_over(until, steps) -> None:
    model = HallsModel(until, rng=1)
    model.run(50)
    assert (int(model.time), model.running) == (steps, False)


def test_identity_memory_and_role_go_along() -> None:
    prompts: list[str] = []
    llm = ScriptedLLM(lambda request: prompts.append(str(request.messages)) or call("wave"))
    model = HallsModel(llm=llm, rng=1)
    model.run(2)
    first_in_blue = next(text for text in prompts if "in the blue" in text and "you waved in the red" in text)
    assert "You wear blue" in first_in_blue
    assert "You wear red" not in first_in_blue
    assert "in step 1 you waved" in first_in_blue.lower()


def bold_prompts(model: HallsModel, prompts: list[Request], steps: int) -> list[bool]:
    """Run a model, and return which of the prompts sent meanwhile are those of a bold guest without a memory."""
    model.run(steps)
    texts = [str(request.messages) for request in prompts]
    prompts.clear()
    return ["You are bold." in text and "wear" not in text and "remember" not in text for text in texts]


def test_design_changes_personas_at_the_start_and_mid_run() -> None:
    prompts: list[Request] = []
    llm = ScriptedLLM(lambda request: prompts.append(request) or call("wave"))
    bold = AgentDesign(persona="You are bold.", memory="none", settings={"temperature": 0.3})
    model = HallsModel(llm=llm, rng=1, design=bold)
    model.run(1)
    assert [request.settings["temperature"] for request in prompts] == [0.3, 0.3]
    assert bold_prompts(model, prompts, 3) == [True] * 10
    changed = HallsModel(llm=llm, rng=1)
    assert bold_prompts(changed, prompts, 2) == [False] * 5
    changed.change_minds(design=bold)
    assert bold_prompts(changed, prompts, 2) == [True] * 5


def test_a_run_over_two_worlds_that_was_cut_goes_on_as_if_it_had_not_been(tmp_path) -> None:
    whole = HallsModel(llm="random", rng=2)
    whole.run(6)
    for steps in (2, 6):
        model = HallsModel(llm="random", rng=2, log=tmp_path / "run.sqlite")
        model.run(steps)
        model.close()
    assert (model.runlog.digest, [hall.guests for hall in model.worlds]) == (
        whole.runlog.digest,
        [hall.guests for hall in whole.worlds],
    )


@pytest.mark.parametrize(
    ("visits", "until", "members", "message"),
    [
        ([], "any", {}, "at least one visit"),
        ([Visit("red", 0)], "any", {}, "length 1 or more"),
        ([Visit("red")], "blue", {}, "until must be any, all, or a visited world"),
        ([Visit("red")], "any", {"green": (1,)}, "not visited"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(visits, until, members, message) -> None:
    with pytest.raises(ConfigError, match=message):
        WorldSchedule(visits, until, members)


def test_a_schedule_names_a_world_of_the_model() -> None:
    model = HallsModel(rng=1)
    model.schedule = WorldSchedule([Visit("green")])
    with pytest.raises(ConfigError, match="visits 'green'; the worlds of the model are: red, blue"):
        model.step()


HEARSAY: dict[str, Any] = {"n_agents": 4, "days": 1, "twin": "hold", "hearsay": 1.0, "talk": 0.0, "post": "I bought B"}
"""People who never trade but upon hearsay, and one post that says what to buy."""


@pytest.mark.parametrize(("coupling", "buys"), [("shared", 4 * 3), ("isolated", 0), ("filler", 0), ("alone", 0)])
def test_worlds_exchange_information_only_through_shared_memory(coupling, buys) -> None:
    model = TwoWorldsModel(**HEARSAY, coupling=coupling, rng=1)
    model.run()
    found = model.results()
    assert (found["buys_B"], found["sells_B"], found["buys_A"]) == (buys, 0, 0)


@pytest.mark.parametrize("turns", [1, 3, 4, 10])
def test_a_visit_lasts_as_many_turns_as_it_is_given_and_nobody_loses_one(turns) -> None:
    model = TwoWorldsModel(n_agents=4, days=1, turns=turns, twin="hold", rng=1)
    model.run()
    n_visits = 4 * 3 // turns + 1
    assert (model.exchange.is_over, model.social.step - 1) == (True, n_visits)
    decided = model.runlog.decisions()["agent"].value_counts()
    assert set(decided - n_visits) <= {3 + 2, 3 + 3}  # three sessions, a forecast, a post; the loan, if it may have one


def test_runs_of_one_seed_share_draws_whatever_the_worlds_share() -> None:
    runs = {}
    for coupling in ("alone", "isolated", "filler"):
        model = TwoWorldsModel(n_agents=5, days=2, coupling=coupling, rng=7)
        model.run()
        runs[coupling] = [order._asdict() for order in model.exchange.history.orders]
    assert runs["alone"] == runs["isolated"] == runs["filler"] != []


# -- 8. statistics


def test_a_path_is_tested_as_a_whole_by_all_signs() -> None:
    apart = [0.3, -0.1, 0.4, 0.2, 0.6]
    sums = [abs(sum(s * d for s, d in zip(signs, apart, strict=True))) for signs in product((1, -1), repeat=5)]
    exact = np.mean([one >= abs(sum(apart)) - 1e-12 for one in sums])
    assert path_p(np.array(apart)[:, None], np.zeros((5, 1))) == pytest.approx(exact)
    assert path_p(np.ones((5, 4)), np.ones((5, 4))) == 1
    assert path_p(np.ones((1, 4)), np.zeros((1, 4))) is None


def test_labels_are_permuted_exactly_and_ps_are_corrected_as_by_hand() -> None:
    assert permutation_p([[1, 2], [3, 4]]) == pytest.approx(2 / 6)
    assert adjusted_p([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.04, None, 0.04])


def test_a_chat_memory_holds_its_window() -> None:
    memory = memory_from_json(lived("chat:400:3"))
    assert isinstance(memory, ChatMemory)
    assert len(memory.messages()) == 6
