"""The loop: decide together, act in order; and a model that never dies."""

import _thread
import importlib
import random
import threading
import time

import mesa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mesa.datacollection import DataCollector

from mesa_llm import (
    AgentConfig,
    AgentDesign,
    Bridge,
    BudgetExceeded,
    ConfigError,
    DecisionError,
    Event,
    LLMAgent,
    LLMModel,
    LLMScenario,
    Observation,
    ScriptedLLM,
    Settings,
    Stopped,
    TalkMixin,
    ToolCall,
    ToolError,
    action,
)
from mesa_llm.errors import ServerError
from mesa_llm.llm.replies import call
from mesa_llm.memory import WindowMemory
from mesa_llm.testing import honest, honest_reply
from tests.pot import Payer, Pot, PotModel


def run(model, steps=3) -> str:
    model.run_for(steps)
    return model.runlog.digest


def late(request):
    return random.SystemRandom().uniform(0, 0.01)


@settings(max_examples=5)
@given(st.integers(0, 2**31 - 1))
def test_latency_and_concurrency_never_change_a_run(seed) -> None:
    digests = {
        run(PotModel(6, ScriptedLLM(honest_reply, delay_s=late), rng=seed, concurrency=concurrency))
        for concurrency in (1, 8, 64)
    }
    assert len(digests) == 1


def test_everyone_decides_on_the_same_state_and_acts_in_activation_order() -> None:
    prompts = []

    def script(request):
        prompts.append(request.messages[-1].content)
        return call("pay", coins=1)

    model = PotModel(5, ScriptedLLM(script), rng=1)
    model.step()
    assert prompts == ["The pot holds 0 coins.\n\nYou like round numbers."] * 5
    assert model.coins == 5


def test_a_prompt_file_that_is_edited_in_a_step_is_read_anew_in_the_next(tmp_path, monkeypatch) -> None:
    (tmp_path / "edited_pot.py").write_text("from tests.pot import PotModel\n\nclass EditedPot(PotModel): pass\n")
    (tmp_path / "prompts").mkdir()
    file = tmp_path / "prompts" / "ask.md"
    monkeypatch.syspath_prepend(tmp_path)
    texts = []

    class Pot(importlib.import_module("edited_pot").EditedPot):
        def end_step(self) -> None:
            for text in ("old", "other"):
                if self.now == 1:
                    file.write_text(text)
                texts.append(self.prompt("ask.md"))

    model = Pot(1, ScriptedLLM(lambda request: call("pay", coins=1)), rng=1)
    model.run_for(2)
    assert texts == ["old", "old", "other", "other"]
    file.write_text("newest")
    assert model.prompt("ask.md") == "newest"


def test_one_at_a_time_each_sees_what_the_one_before_did() -> None:
    seen = []

    def script(request):
        seen.append(request.messages[-1].content)
        return call("pay", coins=1)

    PotModel(3, ScriptedLLM(script), rng=1, activation="one_at_a_time").step()
    assert seen == [f"The pot holds {coins} coins.\n\nYou like round numbers." for coins in range(3)]


def test_a_step_can_go_on_in_stages_that_depend_on_what_was_done() -> None:
    class Rounds(PotModel):
        def next_stage(self, acted):
            return acted if self.coins < 10 else []

    model = Rounds(2, ScriptedLLM(lambda request: call("pay", coins=1)), rng=1)
    model.step()
    assert (model.coins, model.time, model.engine.decisions) == (10, 1, 10)


def test_calls_tokens_dollars_failures_and_time_are_collected_unasked() -> None:
    model = PotModel(2, ScriptedLLM(lambda request: "nonsense"), rng=1)
    model.run_for(2)
    table = model.datacollector.get_model_vars_dataframe()
    assert list(table["failures"]) == [0, 2, 2]
    assert list(table["calls"]) == [0, 4, 4]
    assert (table["seconds"].iloc[1:] > 0).all()
    assert {"tokens", "dollars", "coins"} <= set(table.columns)


@pytest.mark.parametrize(("on_error", "paid"), [("skip", False), ("rule", True)])
def test_a_failed_decision_is_skipped_or_left_to_the_rule_twin(on_error, paid) -> None:
    model = PotModel(8, ScriptedLLM(lambda request: ServerError("down")), rng=1, on_error=on_error, attempts=1)
    model.run_for(2)
    assert (model.coins > 0) == paid
    assert model.usage.failures == 16


def test_on_error_raise_tells_at_the_end_of_the_step_and_the_model_goes_on() -> None:
    model = PotModel(2, ScriptedLLM(lambda request: "nonsense"), rng=1, on_error="raise")
    with pytest.raises(DecisionError, match="2 decisions failed in step 1"):
        model.step()
    with pytest.raises(DecisionError, match="step 2"):
        model.step()
    assert model.pot.steps == 2


def test_a_broken_rule_of_the_world_leaves_a_model_that_can_step_again() -> None:
    model = PotModel(3, rng=1)
    model.pot.is_broken = True
    with pytest.raises(ZeroDivisionError):
        model.run_for(2)
    model.pot.is_broken = False
    model.run_for(3)
    assert (model.pot.steps, model.time) == (3, 4)


def test_ctrl_c_while_agents_decide_leaves_a_step_that_has_not_happened() -> None:
    whole = run(PotModel(4, honest(), rng=5))
    model = PotModel(4, ScriptedLLM(honest_reply, delay_s=lambda request: 0.2), rng=5)
    threading.Timer(0.1, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        model.step()
    assert model.time == 0
    assert run(model) == whole


def test_a_step_can_be_stopped_from_another_thread_and_goes_on_later() -> None:
    is_slow = threading.Event()
    is_slow.set()
    model = PotModel(4, ScriptedLLM(honest_reply, delay_s=lambda request: 30 if is_slow.is_set() else 0), rng=5)
    threading.Timer(0.3, model.stop).start()
    begun = time.perf_counter()
    with pytest.raises(Stopped):
        model.step()
    assert time.perf_counter() - begun < 30  # which one reply alone would take
    assert model.time == 0
    is_slow.clear()
    assert run(model) == run(PotModel(4, ScriptedLLM(honest_reply), rng=5))


def test_what_was_answered_before_a_stop_is_not_asked_for_again() -> None:
    asked = []

    def counted(request):
        asked.append(request.salt.agent)
        if len(asked) == 3:
            model.stop()
        return honest_reply(request)

    model = PotModel(5, ScriptedLLM(counted, delay_s=lambda request: 0.01), rng=5, concurrency=1)
    with pytest.raises(Stopped):
        model.step()
    model.step()
    assert model.usage.replayed >= 2
    assert len(asked) <= 5 + 1


def test_graceful_stop_sends_no_more_and_waits_for_pending_requests() -> None:
    sent = []

    def takes(request):
        sent.append(request.salt.agent)
        if len(sent) == 2:
            model.stop(gives_up=False)
        return 0.1

    model = PotModel(5, ScriptedLLM(honest_reply, delay_s=takes), rng=5, concurrency=2)
    with pytest.raises(Stopped):
        model.step()
    assert (len(sent), model.usage.calls, model.time) == (2, 2, 0)
    assert run(model) == run(PotModel(5, ScriptedLLM(honest_reply), rng=5))
    assert model.usage.replayed == 2


def test_a_spent_budget_stops_cleanly_and_a_larger_one_goes_on(tmp_path) -> None:
    whole = run(PotModel(4, honest(), rng=5, log=tmp_path / "whole.sqlite"), 3)
    poor = PotModel(4, honest(), rng=5, log=tmp_path / "parts.sqlite", max_calls=6)
    with pytest.raises(BudgetExceeded):
        poor.run_for(3)
    assert poor.usage.calls == 6
    poor.close()
    rich = PotModel(4, honest(), rng=5, log=tmp_path / "parts.sqlite", max_calls=50)
    assert run(rich, 3) == whole
    assert rich.usage.replayed == 6


def test_a_controller_from_outside_drives_both_halves_of_a_step() -> None:
    model = PotModel(3, rng=1)
    seen = model.observations()
    assert {observation.facts for observation in seen.values()} == {0}
    outcomes = model.apply({agent: ToolCall("pay", {"coins": 2}) for agent in seen})
    assert model.time == 1
    assert model.coins == 6
    assert all(made[0].ok for made in outcomes.values())
    assert len(model.datacollector.get_model_vars_dataframe()) == 2


def test_driving_from_outside_with_the_rule_gives_the_run_of_the_rule() -> None:
    model, other = PotModel(3, rng=4), PotModel(3, rng=4)
    for _ in range(3):
        model.apply({agent: agent.rule(seen) for agent, seen in model.observations().items()})
        other.step()
    assert model.coins == other.coins


def test_agents_can_think_with_different_models_settings_and_memories() -> None:
    asked = {}

    def script(request):
        asked[request.salt.agent] = request.settings.get("temperature")
        return call("pay", coins=1)

    model = PotModel(0, {"Payer": "rule", 2: ScriptedLLM(script)}, rng=1)
    Payer(model)
    Payer(model, config=AgentConfig(settings=Settings(temperature=0.1)), memory="none")
    Payer(model, llm="random", memory="stream")
    model.run_for(2)
    assert asked == {2: 0.1}
    assert {decision.by for decision in model.last_decisions.values()} == {"rule", "ScriptedLLM", "random"}


def test_a_design_chooses_the_components_of_every_agent() -> None:
    design = AgentDesign(llm="random", memory="none", style="short")
    model = PotModel(2, rng=1, design=design)
    model.step()
    assert {decision.by for decision in model.last_decisions.values()} == {"random"}
    assert {agent.config.text for agent in model.agents} == {"You like round numbers.\nHow you write: short"}


def test_messages_sent_in_one_step_are_read_in_the_next() -> None:
    class Talker(TalkMixin, LLMAgent):
        pass

    prompts = []

    def script(request):
        prompts.append(request.messages[-1].content)
        return call("send_message", to=3 - request.salt.agent, text=f"hello from {request.salt.agent}")

    model = PotModel(0, ScriptedLLM(script), rng=1, activation="in_order")
    Talker.create_agents(model, 2)
    model.run_for(2)
    assert "hello" not in "".join(prompts[:2])
    assert ["hello from 2" in prompts[2], "hello from 1" in prompts[3]] == [True, True]


def test_whom_one_can_write_to_is_a_choice_where_the_text_names_everybody() -> None:
    class Talker(TalkMixin, LLMAgent):
        pass

    model = mesa.Model(rng=1)
    few = Talker.create_agents(model, 3, llm="gpt-9").to_list()
    assert few[0].observe().options == {"send_message.to": (2, 3)}
    Talker.create_agents(model, 30, llm="gpt-9")
    assert few[0].observe().options == {}
    few[0].llm = "random"
    assert few[0].observe().options["send_message.to"] == tuple(range(2, 22))


@pytest.mark.parametrize("n_plain", [1, 40])
def test_messages_are_offered_only_to_agents_that_read_them(n_plain: int) -> None:
    class Talker(TalkMixin, LLMAgent):
        pass

    class Silent(Talker):
        reads_messages = False

    class Reader(mesa.Agent):
        reads_messages = True

    model = mesa.Model(rng=1)
    first, second = Talker.create_agents(model, 2, llm="random").to_list()
    mesa.Agent.create_agents(model, n_plain)
    Silent(model, llm="random")
    assert first.observe().options == {"send_message.to": (second.unique_id,)}
    own = Reader(model)
    assert first.observe().options == {"send_message.to": (second.unique_id, own.unique_id)}
    with pytest.raises(ToolError, match="agent 3 reads no messages"):
        first.send_message(3, "Hello?")


def test_with_nobody_who_reads_messages_none_can_be_sent() -> None:
    class Talker(TalkMixin, LLMAgent):
        pass

    asked = []
    model = mesa.Model(rng=1)
    talker = Talker(model, llm=ScriptedLLM(lambda request: asked.append(request) or call("send_message", to=2)))
    mesa.Agent.create_agents(model, 3)
    talker.step()
    assert asked == []
    Talker(model, llm="random")
    talker.step()
    assert [tool.name for tool in asked[0].tools] == ["send_message"]


def test_events_scheduled_or_from_elsewhere_reach_the_next_observation() -> None:
    bridge = Bridge([Event("", "policy_change", text="Taxes rise.", time=2)])
    prompts = []

    def script(request):
        prompts.append(request.messages[-1].content)
        return call("do_nothing")

    model = PotModel(1, ScriptedLLM(script), rng=1, bridge=bridge)
    model.run_for(3)
    assert ["Taxes rise." in prompt for prompt in prompts] == [False, True, False]


def test_a_memory_tells_later_what_was_done() -> None:
    prompts = []

    def script(request):
        prompts.append(request.messages[-1].content)
        return call("pay", coins=7 if request.salt.time == 1 else 2)

    PotModel(1, ScriptedLLM(script), rng=1).run_for(3)
    assert "In step 1 you wanted to pay into the pot (7 coins), but the pot takes no seven coins." in prompts[1]
    assert "In step 2 you paid 2." in prompts[2]


def test_memories_that_ask_for_a_summary_get_one_from_the_agents_own_model() -> None:
    def script(request):
        return "You paid often." if request.salt.purpose == "memory" else call("pay", coins=1)

    model = PotModel(1, ScriptedLLM(script), rng=1, design=AgentDesign(memory="summary:2"))
    model.run_for(6)
    (agent,) = model.agents
    assert "You paid often." in agent.memory.recall("", 6)


def test_removed_agents_neither_decide_nor_act() -> None:
    model = PotModel(3, rng=1, activation="one_at_a_time")
    first, second, _ = model.agents
    first.act = lambda decision, seen=None: second.remove() or []
    model.run_for(2)
    assert len(model.agents) == 2


def test_an_agent_that_others_remove_before_its_turn_does_not_act() -> None:
    class Jealous(Payer):
        def act(self, decision, seen=None):
            self.model.agents.select(lambda other: other is not self).do("remove")
            return super().act(decision, seen)

    model = PotModel(0, rng=1)
    Jealous.create_agents(model, 3)
    model.run_for(2)
    assert (len(model.agents), len(model.runlog.actions())) == (1, 2)


def test_a_stop_between_two_steps_ends_the_run_and_the_next_goes_on() -> None:
    model = PotModel(2, rng=1)
    model.end_step = lambda: model.stop() if model.now == 3 else None
    with pytest.raises(Stopped, match="between two steps"):
        model.run_for(5)
    assert model.time == 3
    model.run_for(2)
    assert (model.time, len(model.runlog.steps())) == (5, 5)


def test_a_stop_while_agents_observe_leaves_a_step_that_has_not_happened() -> None:
    whole = run(PotModel(2, rng=1))
    model = PotModel(2, rng=1)
    seeing = model.pot.observe
    model.pot.observe = lambda agent: model.stop() or seeing(agent)
    with pytest.raises(Stopped):
        model.step()
    model.pot.observe = seeing
    assert (model.time, run(model)) == (0, whole)


def test_tool_or_transport_that_raises_fails_one_decision_and_replays(tmp_path) -> None:
    def weigh() -> int:
        """Weigh the pot."""
        raise ZeroDivisionError("no scales")

    def broken(request):
        if request.salt.agent == 1:
            raise OSError("the cable is cut")
        return call("weigh") if request.salt.agent == 2 else call("pay", coins=1)

    told = []
    for replay in (False, True):
        design = AgentDesign(tools=(weigh,))
        model = PotModel(3, ScriptedLLM(broken), rng=1, log=tmp_path / "run.sqlite", replay=replay, design=design)
        told.append((run(model, 2), sorted(set(model.runlog.failures())), model.pot.coins))
        model.close()
    assert told[0] == told[1]
    assert told[0][1:] == (["it raised OSError: the cable is cut", "tool weigh raised ZeroDivisionError: no scales"], 2)


def test_a_broken_tool_shows_its_traceback_once_in_a_run_and_later_a_line(caplog) -> None:
    def weigh() -> int:
        """Weigh the pot."""
        raise ZeroDivisionError("no scales")

    run(PotModel(3, ScriptedLLM(lambda request: call("weigh")), rng=1, design=AgentDesign(tools=(weigh,))), 2)
    records = [
        record for record in caplog.records if record.message == "tool weigh raised ZeroDivisionError: no scales"
    ]
    assert [bool(record.exc_info) for record in records] == [True, *[False] * 5]


def test_what_was_asked_apart_and_then_applied_is_noted_once() -> None:
    model = PotModel(3, ScriptedLLM(lambda request: "?" if request.salt.agent == 2 else call("pay", coins=1)), rng=1)
    seen = model.observations()
    model.apply(dict(zip(seen, model.decide(list(seen), list(seen.values())), strict=True)))
    assert (len(model.runlog.decisions()), len(model.runlog.failures()), model.pot.coins) == (3, 1, 2)


def test_without_rule_twins_on_error_rule_is_refused_before_anything_is_asked() -> None:
    asked = []
    model = PotModel(0, ScriptedLLM(lambda request: asked.append(request) or ""), rng=1, on_error="rule")
    LLMAgent(model)
    with pytest.raises(ConfigError, match="no rule twin"):
        model.step()
    assert asked == []


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"on_error": "ignore"}, "on_error: input should be 'skip', 'rule' or 'raise'"),
        ({"colour": 1}, "unknown options: colour"),
        ({"seed": 1}, "unknown options: seed; the seed is rng="),
        ({"replay": True}, "needs the log="),
        ({"rng": "soon"}, "whole number"),
        ({"activation": "all"}, "no activation"),
        ({"llm": ""}, "llm= is empty"),
        ({"concurrency": 0}, "concurrency: input should be greater than or equal to 1, got 0"),
        ({"max_dollars": "1"}, "max_dollars: input should be a valid number, got '1'"),
    ],
    ids=str,
)
def test_options_that_cannot_be_are_refused_in_words(options, fault) -> None:
    with pytest.raises(ConfigError, match=fault):
        PotModel(1, **{"llm": "rule", "rng": 1} | options).step()


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("interventions", [], r"PotModel\.interventions is \[\], where the model keeps its Interventions"),
        ("schedule", ["Monday"], "where the model keeps its WorldSchedule; give the attribute another name"),
        ("worlds", Pot(), r"worlds must be a tuple of worlds, got .*; for one world, write \(world,\)"),
        ("worlds", (Pot,), "a world must have a name"),
        ("activation", "all", "no activation"),
    ],
)
def test_an_attribute_that_hides_a_part_of_the_model_is_named(name, value, fault) -> None:
    model = PotModel(1, rng=1)
    setattr(model, name, value)
    with pytest.raises(ConfigError, match=fault):
        model.step()


def test_instructions_may_be_text_and_a_missing_file_is_an_error() -> None:
    seen: list[str] = []
    script = ScriptedLLM(lambda request: seen.append(request.messages[0].content) or call("pay", coins=1))
    with pytest.raises(ConfigError, match=r"'You like pots.', the name of a file .* set instructions_text"):
        type("Named", (PotModel,), {"instructions": "You like pots."})(1, script, rng=1).step()
    type("Written", (PotModel,), {"instructions_text": "You like pots."})(1, script, rng=1).step()
    assert seen[0].startswith("You like pots.")


@pytest.mark.parametrize(
    "text", ["You live in {{ scenario.town }}.", "{%- if model %}Pay.{% endif %}", "Hi {{-name-}}"]
)
def test_a_template_outside_of_a_file_is_refused_before_anybody_reads_it(text) -> None:
    with pytest.raises(ConfigError, match=r"Raw\.instructions_text holds the template \{.*put it into the file"):
        type("Raw", (PotModel,), {"instructions_text": text})
    model = PotModel(1, "random", rng=1)
    model.instructions_text = text
    with pytest.raises(ConfigError, match="which nothing fills in"):
        model.step()
    with pytest.raises(ConfigError, match="the question holds the template"):
        model.survey([text])


def test_a_template_in_the_docstring_of_an_action_is_refused() -> None:
    def wave(self) -> str:
        return "You waved."

    wave.__doc__ = "Wave to {{ n_agents }} others."
    model = PotModel(0, "random", rng=1)
    type("Waver", (LLMAgent,), {"wave": action(wave)})(model)
    with pytest.raises(ConfigError, match=r"the docstring of wave\(\) holds the template"):
        model.step()


def test_braces_in_data_are_no_template() -> None:
    told: list[str] = []
    script = ScriptedLLM(lambda request: told.append(str(request.messages)) or call("pay", coins=1))
    model = type("Braces", (PotModel,), {"instructions_text": 'Write {"coins": {"n": 1}}.'})(0, script, rng=1)
    Payer(model, config="You write {{ name }} on every door.")
    model.step()
    assert "{{ name }}" in told[0]
    assert '{"coins": {"n": 1}}' in told[0].replace("\\", "")


@pytest.mark.parametrize(
    ("option", "fault"),
    [
        ({"llm": {"Payerr": "mock/a", "*": "rule"}}, "llm= names 'Payerr'.*did you mean Payer"),
        (
            {"llm": {"LLMAgent": "mock/a", "*": "rule"}},
            "llm= names 'LLMAgent', which is no agent's id",
        ),
        ({"allowances": {"payer": {"calls": 1}}}, "allowances= names 'payer'.*did you mean Payer"),
        ({"llm": {"Two": "mock/a", "*": "rule"}}, "llm= names 'Two'.*classes are Payer"),
    ],
)
def test_a_misspelt_agent_or_class_does_not_fall_back_to_the_rest(option, fault) -> None:
    with pytest.raises(ConfigError, match=fault):
        PotModel(2, rng=1, **option).step()
    PotModel(2, llm={"Payer": "random", "1/2": "rule", 7: "rule", "*": "rule"}, rng=1).step()


@pytest.mark.parametrize("fields", [{"options": [1, 2]}, {"tools": "pay"}])
def test_options_and_tools_of_another_form_are_refused_in_words(fields) -> None:
    observer = type("Observer", (Payer,), {"observe": lambda self: Observation("A pot.", **fields)})
    model = PotModel(0, "random", rng=1)
    observer(model)
    with pytest.raises(ConfigError, match=r"Observer observes .* and tools a tuple of names"):
        model.step()


def test_options_of_an_argument_that_no_action_takes_are_warned_of_once(caplog) -> None:
    seen = Observation("A pot.", options={"coin": (1, 2), "coins": (1, 2), "pay.coins": (1,), "pay.agent": (1,)})
    model = PotModel(0, "random", rng=1)
    type("Observer", (Payer,), {"observe": lambda self: seen})(model)
    model.run_for(2)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning == (
        "Observer observes options for coin, pay.agent, which none of its actions takes; arguments are coins"
    )


def test_a_world_that_returns_no_events_is_named() -> None:
    silent = type("Silent", (Pot,), {"end_step": lambda self: None})
    model = PotModel(1, rng=1)
    model.worlds = (silent(),)
    with pytest.raises(ConfigError, match=r"Silent\.end_step\(\) returned None; return a list of events or \[\]"):
        model.step()


def test_an_agent_cannot_live_in_two_worlds_of_one_name() -> None:
    model = PotModel(1, rng=1)
    model.worlds = (Pot(), Pot())
    with pytest.raises(ConfigError, match=r"share a name \(pot, pot\)"):
        model.step()


@pytest.mark.parametrize("use", [lambda model: model.step(), LLMAgent, lambda model: model.random])
def test_a_model_that_was_not_set_up_says_what_its_constructor_lacks(use) -> None:
    bare = type("Bare", (LLMModel,), {"__init__": lambda self, **options: None})()
    with pytest.raises(AttributeError, match=r"Bare has no \w+ yet: its __init__ must call super\(\).__init__"):
        use(bare)


def test_a_constructor_that_takes_no_options_says_how_to_take_them() -> None:
    narrow = type("Narrow", (LLMModel,), {"__init__": lambda self, n=3, rng=None: None})
    with pytest.raises(TypeError, match=r"Narrow\(\) got an unexpected keyword argument 'llm'; .*needs \*\*options"):
        narrow(llm="random")


def test_a_field_without_a_type_is_named_when_it_is_set() -> None:
    scenario = type("LooseScenario", (LLMScenario,), {"n_agents": 3})
    with pytest.raises(ConfigError, match=r"LooseScenario\.n_agents has no type annotation and so is no parameter"):
        type("Loose", (LLMModel,), {"scenario_class": scenario})(n_agents=4)


def test_a_seed_given_as_text_is_taken() -> None:
    assert run(PotModel(rng="42")) == run(PotModel(rng=42))


def test_a_model_without_a_seed_says_which_one_it_drew() -> None:
    first = PotModel()
    assert run(first) == run(PotModel(rng=first.runlog.manifest["rng"]))


def test_agents_that_decide_together_are_not_activated_one_by_one() -> None:
    model = PotModel(2, rng=1)
    with pytest.raises(ConfigError, match=r"PotModel lets all agents decide together in its own step\(\)"):
        model.agents.shuffle_do("step")


@pytest.mark.parametrize("llm", [None, 3, print, ScriptedLLM])
def test_what_cannot_reply_is_refused_as_a_language_model(llm) -> None:
    with pytest.raises(ConfigError, match="llm= is a name or an object with `async def reply"):
        PotModel(1, llm, rng=1)


def test_what_cannot_reply_is_refused_as_the_language_model_of_an_agent() -> None:
    with pytest.raises(ConfigError, match=r"ScriptedLLM\(function\) answers by a function"):
        LLMAgent(mesa.Model(), llm=print).step()  # pyright: ignore[reportArgumentType]


def test_a_model_without_agents_is_warned_of_as_when_theirs_were_never_set_up(caplog) -> None:
    PotModel(0, rng=1).run_for(2)
    assert caplog.messages == ["step 1: the model has no agents; their __init__ must call super().__init__(model)"]


def test_a_step_that_mostly_failed_is_warned_of_once(caplog) -> None:
    model = PotModel(3, ScriptedLLM(lambda request: "nonsense"), rng=1)
    model.run_for(2)
    assert caplog.messages == ["step 1: 3 of 3 decisions failed: the reply names no action."]


def test_a_warning_of_failures_is_one_line_without_escapes(caplog) -> None:
    PotModel(1, ScriptedLLM(lambda request: ServerError("red \x1b[31m\nalert")), rng=1, attempts=1).step()
    assert caplog.messages == ["step 1: 1 of 1 decision failed: red alert (requests sent: 1)"]


def test_the_traceback_of_a_language_model_of_ones_own_is_shown_once(caplog) -> None:
    PotModel(3, ScriptedLLM(lambda request: {}["coins"]), rng=1).run_for(2)
    messages = [record.getMessage() for record in caplog.records if record.exc_info]
    assert messages == ["ScriptedLLM raised (said once; all failures are in the run log)"]


def test_a_plain_mesa_model_activates_thinking_agents_with_shuffle_do() -> None:
    class Plain(mesa.Model):
        def __init__(self) -> None:
            super().__init__(rng=1)
            self.n = 0

        def step(self) -> None:
            self.agents.shuffle_do("step")

    class Counter(LLMAgent):
        @action
        def count(self) -> str:
            """Count one further."""
            self.model.n += 1
            return "counted"

    model = Plain()
    Counter.create_agents(model, 3, llm=ScriptedLLM(lambda request: call("count")))
    model.run_for(2)
    assert model.n == 6


class Counting(PotModel):
    """Collects what is named like what every model collects, and what is collected by type."""

    def __init__(self, calls: int = 0, mood: int = 0, **options) -> None:
        super().__init__(2, rng=2, **options)
        self.datacollector = DataCollector(
            model_reporters={"calls": lambda model: calls, "coins": "coins"},
            agenttype_reporters={Payer: {"mood": lambda agent: mood}},
        )


def test_all_that_a_user_collects_is_in_the_digest() -> None:
    models = [Counting(), Counting(calls=1), Counting(mood=1), Counting()]
    for model in models:
        model.run_for(2)
    digests = [model.runlog.digest for model in models]
    assert len(set(digests[:3])) == 3
    assert digests[3] == digests[0]


def test_a_reporter_may_name_what_it_counts_by_cells_and_classes() -> None:
    model = PotModel(2, rng=1)
    model.datacollector = DataCollector({"paid": lambda model: {(0, 1): 1, Payer: 2}})
    model.step()
    assert model.results() == {"paid": {(0, 1): 1, Payer: 2}}


@pytest.mark.parametrize("method", ["step", "end_step"])
def test_a_model_that_collects_what_is_collected_anyway_is_warned_of_once(method, caplog) -> None:
    class Twice(PotModel):
        pass

    def collect(self) -> None:
        getattr(PotModel, method)(self)
        self.datacollector.collect(self)

    setattr(Twice, method, collect)
    Twice(1, rng=1).run_for(4)
    (message,) = caplog.messages
    assert "leave datacollector.collect(self) out of step() and end_step()" in message


class Ann(Payer):
    """Has a name."""

    def __init__(self, model, config="") -> None:
        super().__init__(model, config=AgentConfig(name="Ann"))


@pytest.mark.parametrize(
    ("memories", "fault"),
    [
        ({1: WindowMemory().to_json(), "Ann": WindowMemory().to_json()}, "names agent 1 twice, as 'Ann' too"),
        ({"Ann": WindowMemory()}, "a memory from to_json"),
        ({"Ann": "all my life"}, "a memory from to_json"),
        ({"Bob": WindowMemory().to_json()}, "there are no such agents"),
    ],
)
def test_memories_of_another_life_go_to_one_agent_each(memories, fault) -> None:
    with pytest.raises(ConfigError, match=fault):
        run(AnnsModel(memories=memories))


class AnnsModel(PotModel):
    """One agent with a name."""

    def __init__(self, **options) -> None:
        super().__init__(0, rng=1, **options)
        Ann(self)
