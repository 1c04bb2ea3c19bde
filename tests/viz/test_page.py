"""What pages are made of, without a browser."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import ipyvue
import ipyvuetify
import pytest
import reacton
import solara
from ipyvue import VueTemplate
from mesa.visualization import Slider
from mesa.visualization.utils import force_update, update_counter
from solara.core import component

from mesa_llm import AgentConfig, Decision, ScriptedLLM, ToolCall
from mesa_llm.engine.access import Access
from mesa_llm.errors import BudgetExceeded, ConfigError
from mesa_llm.llm.human.forms import FormField, offers_of
from mesa_llm.llm.human.queue import HumanLLM, HumanQueue
from mesa_llm.llm.local.profile import CAPABLE
from mesa_llm.records import ChatMessage, Reply, Request, Salt, ToolSpec, Usage
from mesa_llm.viz import LLMPage, Runner, markup
from mesa_llm.viz.components.controls import is_priced, tiles_of
from mesa_llm.viz.components.human import HumanPanel, button_names
from mesa_llm.viz.components.inspector import AgentInspector
from mesa_llm.viz.components.page_state import PageState, page_state
from mesa_llm.viz.components.placement import place_steady
from mesa_llm.viz.components.run_settings import controls_of, defaults, value_label
from mesa_llm.viz.components.runs import Reopen, Runs
from mesa_llm.viz.components.tables import ActionTable, MeasureTable
from mesa_llm.viz.render.agents import portrait
from mesa_llm.viz.render.markup import plain, prose
from mesa_llm.viz.render.trace import MAX_CHARACTERS, action_row, agent_steps, call_text, decision_text, shortened
from mesa_llm.viz.server.page import TabComponent, _Component, initial_settings, tabs_of
from mesa_llm.viz.session.forms import hint_of, read_fields
from mesa_llm.viz.session.refresh import CHECK_S, watch
from mesa_llm.viz.session.run_settings import RunSettings, accepts, offered_llms, public_address
from mesa_llm.viz.session.runner import wait_until_closed
from mesa_llm.viz.session.runs import KeptRun
from mesa_llm.viz.session.rw_lock import RWLock, lock_of, steady
from mesa_llm.viz.session.session import PageSession, human_queues
from mesa_llm.viz.session.status import status
from tests.browser.apps.village import HOSTILE, Village, Villager, renderer, say
from tests.browser.attacker import Endpoint, serving
from tests.pot import Payer, PotModel
from tests.viz.test_plain_models import texts_of

PATIENCE_S = 10.0


def until(holds: Any) -> None:
    """Wait until something holds; fail if it does not within `PATIENCE_S`."""
    give_up = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up, "it did not come true in time"
        time.sleep(0.01)


@pytest.fixture
def make_runner() -> Iterator[Any]:
    """Make runners, and close them."""
    made: list[Runner] = []

    def make(**parameters: Any) -> Runner:
        made.append(Runner(Village(rng=1, **parameters), pause_s=0.0))
        return made[-1]

    yield make
    for runner in made:
        runner.close()


class Broken(Village):
    """A village with a fault in its second step."""

    def end_step(self) -> None:
        """Break, once."""
        if self.now == 2 and not self.square.greetings.count("broken"):
            self.square.greetings.append("broken")
            raise ValueError("the well is poisoned")


# -- the runner


def test_a_runner_makes_the_steps_it_is_asked_for(make_runner: Any) -> None:
    runner = make_runner()
    runner.start(3)
    until(lambda: not runner.busy)
    assert (runner.model.time, runner.error, runner.note) == (3, "", "")


def test_pause_lets_the_step_that_runs_end(make_runner: Any) -> None:
    runner = make_runner(llm="scripted", delay_s=0.2)
    runner.start()
    until(lambda: runner.pulse.seconds is not None)
    runner.pause()
    until(lambda: not runner.busy)
    assert (runner.model.time, runner.note) == (1, "")


def test_a_page_that_nobody_has_open_plays_on_no_further_and_says_why() -> None:
    session = PageSession(Village, RunSettings(seed="1"))
    assert session.runner
    session.runner.start()
    until(lambda: session.runner and session.runner.model.time > 1)
    session.rest()
    until(lambda: session.runner and not session.runner.busy)
    assert session.runner.note.startswith("Paused because this page was not open")
    session.close()


def test_stop_ends_a_step_in_the_middle_and_the_next_one_makes_it_good(make_runner: Any) -> None:
    runner = make_runner(llm=ScriptedLLM(say, lambda request: 30.0 if request.salt.agent == 3 else 0.0))
    runner.start(1)
    until(lambda: runner.decided == 3)
    start = time.monotonic()
    runner.stop()
    until(lambda: not runner.busy)
    assert time.monotonic() - start < 15.0  # of the 30 s that a reply takes
    assert (runner.model.time, runner.error) == (0, "")
    assert runner.note.startswith("Stopped.")


def test_after_a_stop_a_step_can_be_made(make_runner: Any) -> None:
    waits = {"each": 30.0}
    runner = make_runner(llm=ScriptedLLM(say, lambda request: waits["each"]))
    runner.start(1)
    until(lambda: runner.pulse.seconds is not None)
    runner.stop()
    until(lambda: not runner.busy)
    waits["each"] = 0.0
    runner.start(1)
    until(lambda: not runner.busy)
    assert (runner.model.time, runner.error, runner.note) == (1, "", "")


def test_a_step_that_fails_is_told_and_the_next_one_works() -> None:
    runner = Runner(Broken(rng=1), pause_s=0.0)
    runner.start(2)
    until(lambda: not runner.busy)
    assert runner.error == "The step failed with ValueError: the well is poisoned"
    runner.start(1)
    until(lambda: not runner.busy)
    assert runner.error == ""
    runner.close()


def test_reset_during_a_step_takes_the_new_model_at_once(make_runner: Any) -> None:
    runner = make_runner(llm="scripted", delay_s=30.0)
    runner.start()
    until(lambda: runner.pulse.seconds is not None)
    new = Village(rng=2)
    runner.reset(new)
    assert (runner.model, runner.busy) == (new, False)
    runner.start(1)
    until(lambda: not runner.busy)
    assert new.time == 1


def test_a_second_start_changes_nothing(make_runner: Any) -> None:
    runner = make_runner(llm="scripted", delay_s=0.3)
    runner.start(1)
    runner.start(5)
    until(lambda: not runner.busy)
    assert runner.model.time == 1


def test_a_model_that_has_ended_is_not_stepped(make_runner: Any) -> None:
    runner = make_runner()
    runner.model.running = False
    runner.start()
    until(lambda: not runner.busy)
    assert (runner.model.time, runner.note) == (0, "The model has ended. Press Reset for a new run.")


def test_the_status_counts_who_has_decided(make_runner: Any) -> None:
    runner = make_runner(llm=ScriptedLLM(say, lambda request: 30.0 if request.salt.agent == 3 else 0.0))
    assert status(runner) == "Ready."
    runner.start(1)
    until(lambda: runner.decided == 3)
    assert status(runner).startswith("Step 1: 3 of 4 decided")


def silent(request: Request) -> Any:
    """Reply with no action, if the agent is no later than the third."""
    return "I would rather not." if request.salt.agent <= 3 else ToolCall("rest")


@pytest.mark.parametrize(("on_error", "n_agents", "share"), [("skip", 3, "All 3"), ("rule", 5, "3 of 5")])
def test_play_stops_where_most_decisions_of_a_step_failed(
    make_runner: Any, on_error: str, n_agents: int, share: str
) -> None:
    runner = make_runner(llm=ScriptedLLM(silent), on_error=on_error, n_agents=n_agents)
    runner.start()
    until(lambda: not runner.busy)
    assert runner.model.time == 1
    assert runner.alarm.startswith(
        f"{share} decisions of step 1 failed. Unparsed: the reply names no action. The Agents tab"
    )


def test_where_rule_twins_fail_their_rule_is_to_be_mended(make_runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Villager, "rule", lambda self, seen: ToolCall("shout"))
    runner = make_runner()
    runner.start(1)
    until(lambda: not runner.busy)
    assert "there is no tool 'shout'" in runner.alarm
    assert "rule() of the agent class" in runner.alarm


def test_play_goes_on_where_half_of_the_decisions_failed(make_runner: Any) -> None:
    runner = make_runner(llm=ScriptedLLM(silent), n_agents=6)
    runner.start(2)
    until(lambda: not runner.busy)
    assert (runner.model.time, runner.alarm) == (2, "")


# -- the gate


def test_a_reader_waits_for_the_writer() -> None:
    gate, seen = RWLock(), list[str]()

    def read() -> None:
        with gate.reading():
            seen.append("read")

    with gate.writing():
        reader = threading.Thread(target=read)
        reader.start()
        time.sleep(0.05)
        seen.append("written")
    reader.join(PATIENCE_S)
    assert seen == ["written", "read"]


def test_readers_are_let_in_while_the_writer_waits() -> None:
    gate = RWLock()
    entered = threading.Event()

    def read() -> None:
        with gate.reading():
            entered.set()

    with gate.writing(), gate.waiting():
        threading.Thread(target=read).start()
        assert entered.wait(PATIENCE_S)


def test_a_reader_may_read_within_reading_while_a_writer_waits() -> None:
    gate = RWLock()

    def write() -> None:
        with gate.writing():
            pass

    with gate.reading():
        writer = threading.Thread(target=write)
        writer.start()
        with gate.reading():
            assert writer.is_alive()
    writer.join(PATIENCE_S)
    assert not writer.is_alive()


def test_readers_who_wait_go_before_the_next_writer() -> None:
    gate, done = RWLock(), list[str]()

    def read() -> None:
        with gate.reading():
            done.append("read")

    with gate.writing():
        reader = threading.Thread(target=read)
        reader.start()
        time.sleep(0.05)
    with gate.writing():
        done.append("written")
    reader.join(PATIENCE_S)
    assert done == ["read", "written"]


def test_writers_take_turns_also_while_one_waits() -> None:
    gate, done = RWLock(), list[str]()

    def write() -> None:
        with gate.writing():
            done.append("second")

    with gate.writing():
        writer = threading.Thread(target=write)
        writer.start()
        with gate.waiting():
            time.sleep(0.05)
        done.append("first")
    writer.join(PATIENCE_S)
    assert done == ["first", "second"]


def test_a_component_is_drawn_only_while_the_model_stands_still() -> None:
    model, done = Village(rng=1), list[str]()

    @component
    def Careless() -> None:
        done.append("drawn")

    @component
    def Page() -> None:
        place_steady(Careless(), model)

    with lock_of(model).writing():
        page = threading.Thread(target=reacton.render, args=(Page(),))
        page.start()
        time.sleep(0.3)
        done.append("written")
    page.join(PATIENCE_S)
    assert done == ["written", "drawn"]


def test_a_page_may_look_at_a_model_while_its_agents_think(make_runner: Any) -> None:
    runner = make_runner(llm="scripted", delay_s=30.0)
    runner.start(1)
    until(lambda: runner.model.engine.decisions == 0 and runner.pulse.seconds is not None)
    start = time.monotonic()
    with steady(runner.model):
        assert time.monotonic() - start < 15.0  # of the 30 s that a reply takes


class Curious(Village):
    """A village in which everybody is asked something when a step ends."""

    def end_step(self) -> None:
        """Ask how they are."""
        self.survey(["How are you?"])


def test_page_left_during_a_question_to_a_person_releases_its_run(tmp_path: Path) -> None:
    session = PageSession(Curious, RunSettings("human", seed="1", plays=1), tmp_path)
    assert session.runner is not None
    runner, desk = session.runner, session.queues[0]
    runner.start(1)
    until(lambda: desk.pending)
    assert desk.answer(desk.pending[0].question_id, ToolCall("rest"))
    until(lambda: desk.pending and "How are you?" in desk.pending[0].text)
    path = session.paid_log
    session.leave()
    wait_until_closed(PATIENCE_S)
    assert not desk.pending
    kept = KeptRun.read(path) if path is not None else None
    assert kept is not None
    assert kept.calls == 1
    session.build(session.built_from, kept)  # as Resume does
    assert session.error == ""


def test_page_finds_the_run_left_by_a_page_that_closes_later(tmp_path: Path) -> None:
    before, page, after = (PageSession(Village, RunSettings("scripted", seed="1"), tmp_path) for _ in range(3))
    page.previous, after.previous = before.visit, page.visit
    assert before.runner is not None
    before.runner.start(1)
    until(lambda: before.paid_log is not None)
    state = page.state
    before.leave()
    assert page.previous.log == before.paid_log
    assert page.state != state  # so that the page shows it
    page.leave()  # without a step, as when it is reloaded twice
    assert after.previous.log == before.paid_log
    after.leave()


# -- the thread that redraws a page


class Restless:
    """Something that is never the same for long."""

    drawn = 0
    seen_at = 0.0
    still = staticmethod(nullcontext)

    def rest(self) -> None:
        """Go on all the same."""

    def note_shown(self, drawn: int | None) -> None:
        """Go on all the same."""

    def catch_up(self) -> None:
        """Go on all the same."""

    @property
    def state(self) -> tuple[object, ...]:
        """Change all the time."""
        return (time.monotonic(),)


def test_slow_page_finishes_drawing_despite_new_updates() -> None:
    restless, page, drawings = Restless(), PageState(), list[float]()

    @component
    def Page() -> None:
        page.use_moment()
        drawings.append(time.monotonic())
        time.sleep(2 * CHECK_S)

    _, context = reacton.render(Page(), handle_error=False)
    end = watch(restless, page, threading.Lock())
    page.update_text()  # as a click does; comes back when nothing is left to draw
    end()
    assert len(drawings) < 6
    context.close()


def test_a_model_that_plays_is_never_more_than_one_step_ahead_of_its_page() -> None:
    runner = Runner(Village(rng=1), pause_s=0)
    runner.shown = runner.drawn
    runner.start()
    for step in (1, 2):
        until(lambda step=step: runner.model.time == step)
        time.sleep(0.05)
        assert runner.model.time == step
        runner.shown = runner.drawn
    runner.shown = None  # the page is left
    until(lambda: runner.model.time > 3)
    runner.close()
    wait_until_closed(10)


# -- what is chosen


def test_a_choice_gives_only_the_arguments_a_model_takes() -> None:
    def small(rng: Any = None) -> Any:
        return rng

    assert RunSettings("random", seed=" 7 ").arguments(small) == {"rng": "7"}
    assert RunSettings("random", seed="7").arguments(Village) == {"llm": "random", "rng": "7"}
    assert not accepts(small, "llm")


def test_another_model_has_to_be_named() -> None:
    with pytest.raises(ConfigError, match="enter the name of the model"):
        RunSettings("other").arguments(Village)


def test_another_model_may_have_an_endpoint_and_a_limit() -> None:
    choice = RunSettings("other", model_id="ollama/qwen3", api_base="http://localhost:1/v1", max_dollars=0.5)
    arguments = choice.arguments(Village)
    assert (str(arguments.pop("llm").name), arguments) == ("qwen3@http://localhost:1/v1", {"max_dollars": 0.5})


def asked_with(key: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> set[str | None]:
    """Step a model at an endpoint typed on the page; give the Authorization headers that it gets."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("MESA_LLM_API_KEY", "sk-of-the-environment-too")
    with serving(Endpoint()) as endpoint:
        choice = RunSettings("other", model_id="openai/m", api_base=endpoint.url, api_key=key)
        Village(**choice.arguments(Village, **options), on_error="skip").step()
        return set(endpoint.authorizations)


def test_an_endpoint_typed_on_the_page_gets_no_key_but_one_typed_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_with("", monkeypatch) == {None}
    assert asked_with("sk-typed", monkeypatch) == {"Bearer sk-typed"}
    assert asked_with("", monkeypatch, access=Access(max_calls=9)) == {None}


def test_the_budget_of_a_server_holds_for_all_its_pages_together() -> None:
    purse = Access(max_calls=6)  # a step of four villagers takes four
    with serving(Endpoint()) as endpoint:
        choice = RunSettings("other", model_id="m", api_base=endpoint.url, max_dollars=1.0)
        first, second = (Village(**choice.arguments(Village, purse)) for _ in range(2))
        first.step()
        with pytest.raises(BudgetExceeded):
            second.step()
        assert len(endpoint.authorizations) == 6


def test_a_model_that_would_evade_the_budget_of_the_server_is_not_built() -> None:
    with pytest.raises(ConfigError, match="accepts no access="):
        RunSettings("rule").arguments(lambda llm: llm, Access(max_calls=6))


def test_typed_endpoint_leaves_the_server_access_with_its_model() -> None:
    access = Access(max_calls=1000)
    with serving(Endpoint()) as endpoint:
        typed = RunSettings("other", model_id="m", api_base=endpoint.url, api_key="sk-typed", seed="1")
        session = PageSession(Village, typed, access=access)
        for choice in (typed, RunSettings(seed="1")):
            runner = session.runner
            assert runner is not None
            runner.start(1)
            until(lambda runner=runner: not runner.busy)
            assert len(access._connections) == 1
            session.build(choice)
            wait_until_closed(10)
            assert len(access._connections) == 0
        session.close()


@pytest.mark.parametrize("fixed", [{"api_base": "http://localhost:1/v1"}, {"max_dollars": 1.0}, {"concurrency": 2}])
def test_page_access_on_a_server_with_a_budget_is_refused_with_advice(fixed) -> None:
    with pytest.raises(ConfigError, match=rf"^this page fixes {next(iter(fixed))} in model_params, .*mesa-llm\.toml"):
        RunSettings("random", parameters=fixed).arguments(Village, Access(max_calls=6))
    assert RunSettings("random", parameters=fixed).arguments(Village) == {"llm": "random", **fixed}


@pytest.mark.parametrize("name", ["m@http://evil.example/v1", "huggingface/http://evil.example", "m@evil.example"])
def test_a_name_of_a_model_holds_no_endpoint(name: str) -> None:
    with pytest.raises(ConfigError, match="enter the address under Endpoint"):
        RunSettings("other", model_id=name).arguments(Village)
    assert RunSettings("other", model_id="vertex_ai/claude@20240620").llm() == "vertex_ai/claude@20240620"


SECRET = "http://ann:pass%40word@localhost:1/v1?key=sk-query&v=1"


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert public_address(SECRET) == "http://•••@localhost:1/v1?•••"
    assert public_address("ann:secret@localhost") == "•••@localhost"
    assert public_address("http://localhost:1/v1") == "http://localhost:1/v1"
    with pytest.raises(ConfigError, match="enter the complete address"):
        RunSettings("other", model_id="m", api_base=public_address(SECRET)).arguments(Village)


def test_secrets_of_a_choice_are_taken_out_of_texts_and_reprs() -> None:
    choice = RunSettings("other", model_id="m", api_base=SECRET, api_key="sk-typed")
    text = choice.hide(f"{SECRET} pass@word sk-typed sk-query, but v=1 stays")
    assert text == "http://(key)@localhost:1/v1?key=(key)&v=1 (key) (key) (key), but v=1 stays"
    assert "sk-" not in repr(choice)
    assert "pass" not in repr(choice)


def test_a_fault_is_told_though_the_ticker_looked_while_the_model_was_built() -> None:
    looks: list[object] = []

    def make(rng: Any = None) -> Village:
        if rng == "broken":
            looks.append(session.state)
            raise ValueError("no such seed")
        return Village(rng=rng)

    session = PageSession(make, RunSettings(seed="1"))
    session.build(RunSettings(seed="broken"))
    assert "no such seed" in session.error
    assert session.state != looks[0]
    session.close()


def test_what_a_model_raises_is_shown_and_logged_without_the_key(caplog: pytest.LogCaptureFixture) -> None:
    def leaky(llm: Any) -> Any:
        raise ValueError(f"sk-typed is not valid at {SECRET}")

    session = PageSession(leaky, RunSettings("other", model_id="m", api_base=SECRET, api_key="sk-typed"))
    assert session.error.startswith(
        "Building the model failed with ValueError: (key) is not valid at http://(key)@localhost"
    )
    assert "ValueError" in caplog.text
    assert not any(secret in session.error + caplog.text for secret in ("sk-typed", "sk-query", "pass%40word"))


def test_a_step_that_fails_tells_and_logs_no_key(caplog: pytest.LogCaptureFixture) -> None:
    runner = Runner(Broken(rng=1), pause_s=0.0, hide=RunSettings(api_key="poisoned").hide)
    runner.start(2)
    until(lambda: not runner.busy)
    assert runner.error == "The step failed with ValueError: the well is (key)"
    assert "poisoned" not in caplog.text
    runner.close()


def test_a_run_that_fails_after_reset_logs_no_key_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    is_reached, goes_on = threading.Event(), threading.Event()

    class Slow(Village):
        def end_step(self) -> None:
            is_reached.set()
            goes_on.wait(PATIENCE_S)
            raise ValueError("the well is poisoned")

    runner = Runner(Slow(rng=1), hide=RunSettings(api_key="poisoned").hide)
    runner.start(1)
    assert is_reached.wait(PATIENCE_S)
    runner.reset(Village(rng=1), RunSettings(api_key="another").hide)
    goes_on.set()
    until(lambda: "The step failed" in caplog.text)
    assert "poisoned" not in caplog.text
    runner.close()


def test_reasoning_and_length_of_replies_are_the_model_s_own_unless_chosen() -> None:
    choice = RunSettings("local", reasoning="first", reply_tokens=900)
    assert choice.arguments(Village) == {"llm": "local", "reasoning": "first", "reply_tokens": 900}
    assert RunSettings("local", scoring="replies").arguments(Village) == {"llm": "local", "scoring": "replies"}
    assert RunSettings("local").arguments(Village) == {"llm": "local"}
    assert replace(choice, llm_kind="rule").arguments(Village) == {"llm": "rule"}


def test_a_model_whose_runner_was_closed_is_closed_when_that_was_waited_for(tmp_path: Path) -> None:
    runner = Runner(Village(rng=1, log=tmp_path / "run.sqlite"), pause_s=0.0)
    runner.start()
    runner.close()
    wait_until_closed(PATIENCE_S)
    assert not (tmp_path / "run.sqlite-wal").exists()


def test_a_person_plays_one_agent_or_all() -> None:
    one, everyone = RunSettings("human", plays=2).llm(), RunSettings("human", plays=0).llm()
    assert isinstance(one, dict)
    assert one["*"] == "rule"
    assert isinstance(one[2], HumanLLM)
    assert isinstance(everyone, HumanLLM)


def test_parameters_start_as_mesa_describes_them() -> None:
    described = {"a": Slider("A", 3, 1, 5), "b": {"type": "Checkbox", "value": True}, "c": "fixed"}
    assert defaults(described) == {"a": 3, "b": True, "c": "fixed"}


def test_a_list_offers_textfor_the_values_that_a_model_takes() -> None:
    assert [value_label(value) for value in ("in_turn", "rule,value", 3, None)] == [
        "in turn",
        "rule, value",
        "3",
        "default",
    ]


def test_a_parameter_of_a_type_that_no_page_knows_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model_params\['a'\] has the type 'Dial'"):
        controls_of({"a": {"type": "Dial", "value": 3}})


def test_a_slider_has_room_for_the_value_that_a_page_begins_with() -> None:
    part = {"type": "SliderFloat", "value": 0.1, "min": 0, "max": 0.5, "step": 0.1}
    whole, share = controls_of({"n": Slider("n", 20, 5, 200, 5), "p": part})
    assert [whole.with_place_for(value) for value in (20, None)] == [whole, whole]
    shown = whole.with_place_for(503)
    assert (shown.minimum, shown.maximum, shown.step) == (5, 503, 1)
    assert share.with_place_for(0.25).step == 0.05
    assert share.with_place_for(0.1234567891).step == 0


def test_a_page_begins_with_the_parameters_that_it_is_given() -> None:
    begun = initial_settings({"n": Slider("n", 20, 2, 200), "fixed": 1}, llm="random", parameters={"n": 7, "more": 2})
    assert (begun.llm_kind, dict(begun.parameters)) == ("random", {"fixed": 1, "n": 7, "more": 2})


def test_a_model_that_cannot_be_built_leaves_the_old_one() -> None:
    session = PageSession(Village, RunSettings(seed="1"))
    old = session.runner and session.runner.model
    session.build(RunSettings(seed="forty-two"))
    assert "rng is the seed, a whole number" in session.error
    assert session.runner
    assert session.runner.model is old
    session.close()


def chosen(session: PageSession, choice: RunSettings) -> Any:
    """Choose settings, and return the model after the page has caught up with the choice."""
    session.want(choice)
    until(lambda: session.catch_up() or session._wanted is None)  # pyright: ignore[reportPrivateUsage]
    assert session.runner
    return session.runner.model


def test_a_choice_counts_at_once_before_the_first_step_and_then_after_reset() -> None:
    session = PageSession(PotModel, RunSettings(seed="1"))
    assert len(chosen(session, RunSettings(seed="1", parameters={"n_agents": 2})).agents) == 2
    session.start(RunSettings(seed="1", parameters={"n_agents": 3}), 1)
    runner: Any = session.runner
    until(lambda: runner.model.time == 1 and not runner.busy)
    assert len(runner.model.agents) == 3
    later = RunSettings(seed="8", parameters={"n_agents": 5})
    assert len(chosen(session, later).agents) == 3
    assert later.changes_from(session.built_from, labels={"n_agents": "Payers"}) == ["seed 8", "Payers: 5"]
    session.close()


def test_no_step_is_made_with_other_settings_than_those_that_were_chosen() -> None:
    session = PageSession(PotModel, RunSettings(seed="1"))
    session.start(RunSettings(seed="forty-two"), 1)
    assert session.runner
    assert ("rng is the seed" in session.error, session.runner.busy, session.runner.model.now) == (True, False, 1)
    session.start(RunSettings(seed="2"), 1)
    assert session.error == ""
    session.close()


def test_news_sent_before_the_first_step_is_not_lost_by_a_choice() -> None:
    session = PageSession(PotModel, RunSettings(seed="1"))
    assert session.runner
    session.runner.model.inject("The pot is new.")
    assert len(chosen(session, RunSettings(seed="2")).interventions.log) == 1
    session.close()


def test_what_differs_between_settings_is_told_without_secrets() -> None:
    key = RunSettings("other", "m", "http://u:pass@host/v1", "sk-1", reasoning="first", max_dollars=2.0)
    text = "; ".join(key.changes_from(RunSettings()))
    assert text == "decisions by m; another endpoint or key; reasoning: first, in a separate request; maximum cost $2"


def test_a_page_without_any_model_says_why() -> None:
    session = PageSession(Village, RunSettings(seed="one"))
    assert session.runner is None
    assert "rng is the seed, a whole number" in session.error


# -- what is shown


def test_thoughts_hold_prompt_reply_decision_and_outcome() -> None:
    model = Village(llm="scripted", rng=1)
    model.step()
    (thought,) = agent_steps(model, 3)
    assert [line.role for line in thought.requests[0].prompt] == ["system", "user"]
    assert thought.requests[0].reply == "greet(words: Hello from 3)"
    assert json.loads(thought.requests[0].raw)["tool_calls"] == [["greet", {"words": "Hello from 3"}, ""]]
    assert [verdict.failure for verdict in thought.decisions] == [""]
    assert thought.actions[0].result == "1 greetings were heard."


def test_thoughts_hold_what_a_language_model_was_told_of_each_tool() -> None:
    model = Village(llm="scripted", rng=1)
    model.step()
    greet, rest = agent_steps(model, 3)[0].requests[0].tools
    assert (greet.name, rest.name) == ("greet", "rest")
    assert greet.description.startswith("Greet everybody on the square.")
    assert json.loads(greet.parameters)["properties"]["words"]["description"] == "What you say."


def test_thoughts_hold_why_a_decision_failed() -> None:
    model = Village(llm="scripted", rng=1)
    model.step()
    (thought,) = agent_steps(model, 2)
    assert len(thought.requests) == 2
    assert thought.decisions[0].failure == "Unparsed: the reply names no action."
    assert thought.actions == ()


def test_thoughts_without_a_language_model_have_no_calls() -> None:
    model = Village(rng=1)
    model.step()
    model.step()
    newest, oldest = agent_steps(model, 1)
    assert (newest.time, oldest.time) == (2, 1)
    assert (newest.requests, newest.decisions[0].by) == ((), "the rule twin")


def test_a_long_text_is_cut_and_says_how_long_it_was() -> None:
    assert shortened("x" * MAX_CHARACTERS) == "x" * MAX_CHARACTERS
    assert shortened("x" * 30_000).endswith("… (30,000 characters)")


def test_what_agents_wrote_is_escaped() -> None:
    model = Village(llm="scripted", rng=1)
    model.step()
    html = markup("agent_step.html", step=agent_steps(model, 1)[0], open=True)
    assert HOSTILE not in html
    assert "&lt;img src=x" in html


def test_answers_to_numbered_items_are_shown_in_their_order() -> None:
    assert decision_text('[[],{"10":1,"2":3}]') == '{"2":3,"10":1}'
    fields = {"time": 1, "agent": 7, "action": "answer", "arguments": '{"to":{"10":1,"2":3}}', "ok": 1, "result": "{}"}
    assert action_row(fields, {}).cells[2:] == ('answer(to: {"2":3,"10":1})', "{}")


def test_right_to_left_text_does_not_reorder_the_call_around_it() -> None:
    assert call_text("say", {"text": "שלום (1)", "to": "é"}) == "say(text: \u2068שלום (1)\u2069, to: é)"


def test_a_refused_action_is_marked() -> None:
    fields = {"time": 2, "agent": 7, "action": "greet", "arguments": '{"words":"boo"}', "ok": 0, "result": '"No."'}
    row = action_row(fields, {7: "Ada"})
    assert (row.cells, row.mood) == (("2", "Ada", "greet(words: boo)", "No."), "failed")


def test_the_meter_marks_failures_and_tells_of_the_log_only_if_it_was_used() -> None:
    tiles = {tile.what: tile for tile in tiles_of(Usage(calls=2, prompt_tokens=1200, failures=1), 5)}
    assert (tiles["tokens"].number, tiles["failed"].mood) == ("1,200", "failed")
    assert "replayed" not in tiles
    one = tiles_of(Usage(calls=1), 1, is_priced=False)
    assert [tile.what for tile in one[:4]] == ["decision", "failed", "reply", "tokens"]
    assert one[4] == ("–", "price unknown", "")


def test_a_reply_without_a_price_did_not_cost_nothing() -> None:
    free, unknown = (
        PotModel(1, llm=ScriptedLLM(lambda _, price=price: Reply("x", dollars=price))) for price in (0.0, None)
    )
    for model in (free, unknown):
        model.step()
    assert (is_priced(free, free.usage), is_priced(unknown, unknown.usage)) == (True, False)


def test_a_missing_measure_is_a_dash() -> None:
    model = PotModel(1, rng=1)
    model.datacollector.model_vars["coins"][:] = [None, 1234.5, float("nan")]
    html = texts_of(MeasureTable(model))
    assert html.count(">–<") == 2
    assert ">1,234<" in html


def test_a_click_on_an_action_opens_its_agent_at_its_step() -> None:
    model = Village(rng=1)
    model.run_for(2)
    page = PageState()
    _, context = reacton.render(provided(page, ActionTable(model)), handle_error=False)
    clickable = next(
        one for one in context.find(VueTemplate).widgets if "data-pick" in str(one.get_state().get("html"))
    )
    agent_id = model.runlog.latest("actions", 5)[0][4]["agent"]
    pick = f"agent {agent_id} 1"
    assert clickable.get_state()["html"].count(f'data-pick="{pick}"') == 2  # the row, and a button for the keyboard
    clickable._handle_event(None, {"event": "pick", "data": pick}, [])  # pyright: ignore[reportPrivateUsage]
    assert (page.tab.value, page.selected("agent").value, page.step.value) == ("Agents", agent_id, 1)
    context.close()


def test_the_inspector_says_when_a_click_was_on_nobody_of_the_model() -> None:
    page = PageState()
    model = Village(rng=1)
    assert "is not an agent" not in texts_of(provided(page, AgentInspector(model)))
    page.inspect_agent(1_000)
    assert "1000 is not an agent of this model" in texts_of(provided(page, AgentInspector(model)))


@component
def provided(page: PageState, shown: Any) -> Any:
    """Show an element on a page with this state."""
    page_state.provide(page)
    return solara.Column(children=[shown])


def test_backticks_and_asterisks_of_a_readme_are_set_as_code_and_bold() -> None:
    assert prose("Set `n < 2`, **not** 3.") == "Set <code>n &lt; 2</code>, <b>not</b> 3."
    assert plain("Set `n`, **not** m.") == "Set n, not m."


def test_while_a_person_plays_nothing_is_shown_that_an_agent_may_not_know() -> None:
    def secret(model: Any) -> Any:
        return solara.Text("the true chance")

    def public(model: Any) -> Any:
        return solara.Text("the price")

    page = LLMPage(
        Village, model_params={"n_agents": 2}, llm="human", components=[secret, public], players_see=[public]
    )
    _, context = reacton.render(solara.AppLayout(children=[page]), handle_error=False)

    def has(text: str) -> bool:
        return any(text in map(str, one.children) for one in context.find(ipyvue.Html).widgets)

    assert (has("the true chance"), len(context.find(ipyvuetify.Tab))) == (False, 0)
    lift = next(one for one in context.find(ipyvuetify.Btn).widgets if one.children[-1] == "Show everything")
    lift.fire_event("click", {})
    assert len(context.find(ipyvuetify.Tab)) == 5
    context.close()


def test_components_stand_on_the_tabs_they_name() -> None:
    def plot(model: Any) -> None: ...

    tabs = tabs_of([(plot, 0), (plot, 2), (plot, "Feed")])
    assert list(tabs) == ["Model", "Page 2", "Feed", "Agents", "Data", "Experiment", "About"]


def test_a_component_stands_on_one_of_the_five_tabs_under_its_heading() -> None:
    def table(model: Any) -> None: ...

    assert tabs_of([(table, "Data", "Trades")])["Data"][0] == (table, "Trades")
    assert list(tabs_of([])) == ["Model", "Agents", "Data", "Experiment", "About"]


def test_a_table_reads_only_the_page_that_is_shown() -> None:
    model = Village(rng=1)
    model.run_for(3)
    rows, count = model.runlog.latest("actions", size=4, skip=1)
    assert ([row["time"] for row in rows], count) == ([3, 3, 3, 2], 12)
    with pytest.raises(ConfigError, match="no table 'deeds'"):
        model.runlog.latest("deeds", 1)


@pytest.mark.parametrize(("name", "lead"), [("", "<h3>Payer 1 <span"), ("Ann", "<h3>Ann <span")])
def test_an_agent_without_a_name_is_called_by_class_and_number_once(name: str, lead: str) -> None:
    payer = Payer(PotModel(0, rng=1), config=AgentConfig(name=name))
    page = markup("agent.html", **portrait(payer))
    assert lead in page
    assert page.count("Payer 1") == 1


@pytest.mark.parametrize(
    "shows", [ActionTable, AgentInspector, lambda model: Runs(model, Village, None, Reopen(print, print))]
)
def test_what_is_drawn_just_after_reset_has_closed_a_model_raises_nothing(shows: Any) -> None:
    model = Village(rng=1)
    model.step()
    model.close()
    _, context = reacton.render(shows(model), handle_error=False)
    context.close()


# -- people


def asked(**fields: Any) -> Request:
    """Make a request of agent 1."""
    return Request("human", (), Salt(0, 1, 1, "decide", 0), **fields)


GREET = ToolSpec(
    "greet",
    "Greet somebody.",
    {
        "type": "object",
        "properties": {
            "user_id": {"type": "integer", "description": "Whom."},
            "loud": {"type": "boolean"},
            "words": {"type": "string"},
        },
        "required": ["user_id", "loud"],
        "additionalProperties": False,
    },
    is_action=True,
)


def whole(schema: dict[str, Any], **options: tuple[Any, ...]) -> FormField:
    """Ask for what a schema says."""
    return offers_of(asked(schema=schema, options=options))[0].field


def properties(**schemas: dict[str, Any]) -> dict[str, Any]:
    """Make the schema of an object that needs all its properties."""
    return {"type": "object", "properties": schemas, "required": list(schemas), "additionalProperties": False}


def test_a_question_offers_its_actions_with_the_values_they_may_take() -> None:
    (offer,) = offers_of(asked(tools=(GREET,), options={"user_id": (4, 9)}))
    assert (offer.name, offer.description, offer.field.lines[0].values) == ("greet", "Greet somebody.", [4, 9])
    assert read_fields(offer.field, {("user_id",): "9"}, {}) == ({"user_id": 9, "loud": False}, {})


def test_a_field_says_what_it_is_for_and_what_fits() -> None:
    (offer,) = offers_of(asked(tools=(GREET,), options={"user_id": (4, 9)}))
    hints = [hint_of(line) for line in offer.field.lines]
    assert hints == ["Whom (integer; options are listed)", "(true or false)", "(text; optional)"]


def test_a_missing_value_is_asked_for() -> None:
    (offer,) = offers_of(asked(tools=(GREET,)))
    assert read_fields(offer.field, {("words",): "Hello"}, {})[1] == {("user_id",): "This field is required."}


def test_what_is_not_offered_is_taken_when_it_is_sent_once_more() -> None:
    (offer,) = offers_of(asked(tools=(GREET,), options={"user_id": (4, 9)}))
    first, other = {("user_id",): "5"}, {("user_id",): "6"}
    assert "press the button again" in read_fields(offer.field, first, {})[1]["user_id",]
    assert "press the button again" in read_fields(offer.field, other, first)[1]["user_id",]
    assert read_fields(offer.field, other, other) == ({"user_id": 6, "loud": False}, {})


def test_an_amount_is_free_where_figures_are_but_examples() -> None:
    price = whole(properties(price={"type": "number", "minimum": 0}), price=(10.0, 20.0))
    assert hint_of(price.lines[0]) == "(number from 0; examples are listed)"
    assert read_fields(price, {("price",): "12.34"}, {}) == ({"price": 12.34}, {})
    assert read_fields(price, {("price",): "-1"}, {})[1] == {("price",): "Expected number from 0."}


def test_a_part_of_a_part_has_a_field_of_its_own() -> None:
    bid = whole(properties(lot={"type": "string"}, offer=properties(dollars={"type": "integer"})))
    assert [line.name for line in bid.lines] == ["lot", "offer, dollars"]
    lines = {("lot",): "Vase", ("offer", "dollars"): "5"}
    assert read_fields(bid, lines, {})[0] == {"lot": "Vase", "offer": {"dollars": 5}}


def test_an_answer_that_is_no_object_is_one_field() -> None:
    assert read_fields(whole({"type": "integer", "minimum": 1}), {(): "4"}, {}) == (4, {})
    assert read_fields(offers_of(asked())[0].field, {(): "By no means."}, {}) == ("By no means.", {})


def test_what_may_be_null_can_stay_empty() -> None:
    note = whole(properties(note={"anyOf": [{"type": "string"}, {"type": "null"}]}))
    assert read_fields(note, {}, {}) == ({"note": None}, {})


def test_items_are_written_with_commas() -> None:
    cards = whole(properties(cards={"type": "array", "items": {"type": "integer"}}))
    assert hint_of(cards.lines[0]) == "(list of integer; comma-separated)"
    assert read_fields(cards, {("cards",): "1, 2"}, {}) == ({"cards": [1, 2]}, {})
    assert read_fields(cards, {("cards",): "one"}, {})[1] == {("cards",): "Expected integer."}


def test_the_desks_of_a_model_are_found_once_each() -> None:
    desk = HumanQueue()
    person = HumanLLM(desk)
    model = Village(llm={1: person, 2: person, "*": "rule"}, rng=1)
    assert human_queues(model) == [desk]


def test_a_person_decides_for_an_agent(make_runner: Any) -> None:
    desk = HumanQueue()
    runner = make_runner(llm={1: HumanLLM(desk), "*": "rule"})
    runner.start(1)
    until(lambda: desk.pending)
    desk.answer(desk.pending[0].question_id, ToolCall("rest"))
    until(lambda: not runner.busy)
    decided = runner.model.last_decisions[1]
    assert isinstance(decided, Decision)
    assert [call.name for call in decided.actions] == ["rest"]


def test_several_questions_of_one_agent_can_be_told_apart_and_picked() -> None:
    desk = HumanQueue()
    model = Village(llm=HumanLLM(desk), n_agents=3, rng=1)
    for text in ("What is first?", "What is second?"):
        desk.ask(Request("human", (ChatMessage("user", text),), Salt(0, 1, 1, "decide", 0)))
    _, context = reacton.render(HumanPanel(model), handle_error=False)
    assert button_names([(question, "Ann") for question in desk.pending]) == ["Ann: 1 of 2", "Ann: 2 of 2"]
    second = next(one for one in context.find(ipyvuetify.Btn).widgets if ": 2 of 2" in str(one.children))
    second.fire_event("click", {})
    assert any("What is second?" in str(one) for one in context.find(VueTemplate).widgets)
    context.close()


# -- the whole page


def test_a_page_can_be_drawn_without_a_server() -> None:
    box, context = reacton.render(
        LLMPage(Village, model_params={"n_agents": 3}, renderer=renderer, name="Village"), handle_error=False
    )
    assert context.find() is not None
    assert box.children
    context.close()


@component
def _Unlucky(model: Village) -> None:
    """Raise at the first step alone."""
    update_counter.get()
    if model.time == 1:
        raise KeyError("gini")
    solara.Text(f"gini at {model.time:g}")


def test_a_component_that_raises_is_an_error_in_its_place_until_the_next_step(caplog: pytest.LogCaptureFixture) -> None:
    model = Village(rng=1)
    _, context = reacton.render(_Component(TabComponent(_Unlucky), model), handle_error=False)
    shown: list[bool] = []
    for _ in range(3):
        shown.append(len(context.find(ipyvuetify.Alert)) > 0)
        model.step()
        force_update()
    assert shown == [False, True, False]
    assert "mesa_llm.viz.server.page" in {record.name for record in caplog.records}
    context.close()


def test_the_page_of_the_social_network_is_an_element() -> None:
    from mesa_llm_models.social.app import page

    assert isinstance(page, reacton.core.Element)


def test_the_capable_local_model_is_offered_where_its_file_lies(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MESA_LLM_CACHE", str(tmp_path))
    assert CAPABLE.name not in offered_llms()
    assert CAPABLE.source is not None
    (tmp_path / "models").mkdir()
    with (tmp_path / "models" / CAPABLE.source.file).open("wb") as file:
        file.truncate(CAPABLE.source.n_bytes)
    assert CAPABLE.name in offered_llms()
