"""What all patterns promise: the same run at any latency, from the log, after a stop, with faults, with surveys."""

import hashlib
import json
from contextlib import suppress

import pytest
from typer.testing import CliRunner

from mesa_llm import BudgetExceeded, Question, Stopped
from mesa_llm.cli.app import app
from mesa_llm.engine.event_loop import run_now
from mesa_llm.testing import faulty, honest_reply
from tests.patterns.promises import Pattern, Witness
from tests.patterns.test_designs import DESIGNS, LakeModel
from tests.patterns.test_dyad import DyadModel
from tests.patterns.test_memory_transfer import PAST, LivesModel
from tests.patterns.test_outside_loop import TableModel, drive
from tests.patterns.test_questionnaire import QuestionnaireModel
from tests.patterns.test_room import RoomModel

PATTERNS = {
    "room": Pattern(RoomModel, frozenset({"decide", "moderate", "write"})),
    "dyad": Pattern(DyadModel, frozenset({"turn 1", "turn 2"}), steps=8, rng=4, second="judge"),
    "design": Pattern(LakeModel, frozenset({"season"}), second="adviser", parameters={"design": DESIGNS["all"]}),
    "lives": Pattern(
        LivesModel, frozenset({"farm", "sea"}), parameters={"memories": {"Ada": PAST["Ben"], "2": PAST["Ada"]}}
    ),
    "outside loop": Pattern(TableModel, frozenset({"offer", "reply", "guess", "tip"}), drive=drive),
    "questionnaire at once": Pattern(
        QuestionnaireModel,
        frozenset({"item 1", "item 8"}),
        steps=2,
        parameters={"n_items": 8, "memory": "chat"},
    ),
    "questionnaire one by one": Pattern(
        QuestionnaireModel,
        frozenset({"item 1", "item 5"}),
        steps=2,
        parameters={"n_agents": 2, "n_items": 5, "way": "one by one", "memory": "chat"},
    ),
}

pytestmark = pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)


def typed(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def jitter(salt):
    return lambda request: hashlib.sha256(f"{salt} {request.key}".encode()).digest()[0] % 4 / 1000


def misbehave(request):
    return run_now(faulty().reply(request))


@pytest.fixture(scope="module")
def whole():
    """Return the digest and the number of requests of an unbroken run."""
    runs = {}

    def run(pattern):
        if id(pattern) not in runs:
            witness = Witness()
            runs[id(pattern)] = pattern.run(pattern.made(witness)), witness.asked.total()
        return runs[id(pattern)]

    return run


def test_latency_and_concurrency_change_nothing(pattern, whole) -> None:
    digests = {pattern.run(pattern.made(honest_reply, jitter(n), concurrency=n)) for n in (1, 8, 64)}
    assert digests == {whole(pattern)[0]}


def test_a_recording_is_replayed_in_process_and_from_the_command_line(pattern, whole, tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    recorded = pattern.run(pattern.made(honest_reply, jitter(0), log=log))
    replayed = pattern.replayed(log)
    assert pattern.run(replayed) == recorded == whole(pattern)[0]
    assert replayed.usage.calls == 0
    done = typed("replay", "--trust", log, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1])["digest"] == recorded


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_stop_at_any_request_loses_nothing_in_the_same_process(pattern, whole, concurrency) -> None:
    digest, n_requests = whole(pattern)
    for stop_at in range(1, n_requests + 1):
        witness = Witness(stop_at)
        witness.model = pattern.made(witness, jitter(stop_at) if concurrency > 1 else 0.0, concurrency=concurrency)
        assert pattern.run(witness.model) == digest, stop_at
        assert witness.asked.total() == len(witness.asked) == n_requests, stop_at


def test_a_run_that_was_stopped_is_gone_on_with_by_a_new_model(pattern, whole, tmp_path) -> None:
    digest, n_requests = whole(pattern)
    for stop_at in range(1, n_requests + 1, 3):
        witness = Witness(stop_at)
        log = tmp_path / f"{stop_at}.sqlite"
        witness.model = pattern.made(witness, log=log, concurrency=4)
        with suppress(Stopped):
            pattern.drive(witness.model, pattern.steps)
        witness.model.close()
        assert pattern.run(pattern.made(witness, log=log)) == digest, stop_at
        assert witness.asked.total() == len(witness.asked) == n_requests, stop_at


def test_any_budget_stops_cleanly_and_the_next_run_goes_on(pattern, whole, tmp_path) -> None:
    digest, n_requests = whole(pattern)
    for n_calls in range(2, n_requests, 3):
        witness = Witness()
        log = tmp_path / f"{n_calls}.sqlite"
        poor = pattern.made(witness, log=log, max_calls=n_calls)
        with pytest.raises(BudgetExceeded):
            pattern.run(poor)
        assert poor.usage.calls == n_calls
        assert pattern.run(pattern.made(witness, log=log)) == digest
        assert witness.asked.total() == len(witness.asked) == n_requests


def test_no_fault_of_a_language_model_ends_a_run(pattern, tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    model = pattern.made(misbehave, attempts=1, log=log)
    digest = pattern.run(model)
    assert model.usage.failures < model.engine.decisions
    assert model.usage.failures + model.engine.reprompted > 0
    assert pattern.run(pattern.replayed(log)) == digest


def test_asking_aside_in_the_middle_changes_nothing(pattern, whole) -> None:
    model = pattern.made()
    pattern.drive(model, 1)
    model.stop()  # nothing is under way, and what is asked by hand is no part of the run
    answers = model.survey([Question("How do you feel?", int), "Why?"])
    model.consult(model.llm, ["Is this going well?"], purpose="annotator")
    assert len(answers) == 2 * len(model.agents)
    assert pattern.run(model) == whole(pattern)[0]


def test_the_inspector_shows_what_was_asked_and_answered(pattern, tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    model = pattern.made(log=log)
    pattern.run(model)
    tables = {name: typed("inspect", log, f"--{name}", "--csv").stdout for name in ("decisions", "actions", "calls")}
    for label in pattern.labels:
        assert f",{label}," in tables["decisions"]
        assert f",{label}," in tables["actions"]
    assert tables["calls"].count(",decide,") >= model.engine.decisions - model.engine.not_asked
