"""A class that plays one model together: who gets in, what a seat can do, and what it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from mesa_llm.errors import ConfigError
from mesa_llm.model.recording import Recording
from mesa_llm.viz.classroom.admission import (
    GUESS_S,
    GUESSES,
    SEAT_S,
    SEAT_WAIT_S,
    SEATS,
    STRANGER_TRIES,
    AttemptLimits,
    Identities,
    Throttle,
    TooSoon,
)
from mesa_llm.viz.classroom.lesson import Lesson, LessonSession, Seating
from mesa_llm.viz.classroom.panel import summary
from mesa_llm.viz.classroom.room import ABSENT_S, Classroom, NoSeat, Visitor, clean_name
from mesa_llm.viz.classroom.students import MAX_BODY, MAX_TEXT, StudentPages
from mesa_llm.viz.components.controls import tiles_of
from mesa_llm.viz.server.auth import Auth
from mesa_llm.viz.session.run_settings import RunSettings
from mesa_llm.viz.session.runner import Runner, wait_until_closed
from mesa_llm.viz.session.runs import kept_runs
from tests.browser.apps.village import HOSTILE, Hamlet
from tests.viz.test_page import PATIENCE_S, until

HERE = "http://127.0.0.1:8765"


class Class:
    """A class of three seats in a hamlet of four, with browsers for its students."""

    def __init__(self, folder: Path | None = None, file: Path | None = None) -> None:
        """Open the room, and build the model."""
        self.lesson = Lesson(Classroom(file=file), title="Hamlet", n_seats=3)
        self.session: LessonSession = self.lesson.session(Hamlet, RunSettings(seed="1"), folder)
        teachers = PlainTextResponse("the teacher's page")
        self.guard = Auth(teachers, "a token", cookie="pass")
        self.guard.students = StudentPages(self.lesson, cookie="seat").app

    @property
    def room(self) -> Classroom:
        """The room."""
        return self.lesson.room

    @property
    def runner(self) -> Runner:
        """What steps the model."""
        assert self.session.runner is not None
        return self.session.runner

    @property
    def greetings(self) -> list[str]:
        """What was said in the hamlet."""
        model: Any = self.runner.model
        return model.square.greetings

    def browser(self) -> TestClient:
        """Open a browser, with no cookies in it."""
        return TestClient(self.guard, HERE)

    def student(self, name: str) -> TestClient:
        """Take a seat."""
        student = self.browser()
        assert f"{name}, you play" in enter(student, self.room.code, name)
        return student

    def step(self, n_questions: int) -> None:
        """Begin a step, and wait until so many students are asked."""
        self.runner.start(1)
        until(lambda: len(self.room.waiting) == n_questions)

    def wait(self) -> None:
        """Wait until the step is over."""
        until(lambda: not self.runner.busy)


def enter(browser: TestClient, code: str, name: str, seat_code: str = "") -> str:
    """Come through the door, and return what the browser shows then."""
    return browser.post("/join", data={"code": code, "name": name, "seat_code": seat_code}).text


def greet(student: TestClient, question: int, words: str) -> str:
    """Answer a question by a greeting, and return what the browser shows then."""
    answer = {"question": str(question), "offer": "greet", "field0": words, "field1": "1"}
    return student.post("/join/seat", data=answer).text


@pytest.fixture
def lesson() -> Iterator[Class]:
    """Begin a lesson, and end it."""
    begun = Class()
    yield begun
    begun.lesson.close()


def test_students_and_rule_twins_play_together_and_the_run_replays(tmp_path: Path) -> None:
    lesson = Class(tmp_path)
    ana, ben = lesson.student("Ana"), lesson.student("Ben")
    lesson.step(2)
    assert "Waiting for 1 other" in greet(ana, 1, "Hello from Ana")
    greet(ben, 2, "Hello from Ben")
    lesson.wait()
    assert (lesson.runner.error, lesson.runner.n_failed) == ("", 0)
    assert sorted(lesson.greetings) == ["Good day", "Good day", "Hello from Ana", "Hello from Ben"]
    assert "1 greetings were heard." in ana.get("/join/seat").text
    digest, path = lesson.runner.model.runlog.digest, lesson.runner.model.runlog.path
    assert path is not None
    lesson.lesson.close()
    wait_until_closed(PATIENCE_S)
    replayed = Recording.read(path).replayed()
    assert replayed.runlog.digest == digest
    replayed.close()


def test_a_class_goes_on_after_a_restart_with_its_seats_and_its_answers(tmp_path: Path) -> None:
    before = Class(tmp_path, tmp_path / "room.json")
    ana, ben = before.student("Ana"), before.student("Ben")
    before.step(2)
    greet(ana, 1, "Hello from Ana")
    until(lambda: list(before.room.waiting) == [2])
    before.runner.stop()
    before.wait()
    before.lesson.close()
    wait_until_closed(PATIENCE_S)

    after = Class(tmp_path, tmp_path / "room.json")
    (kept,) = kept_runs(tmp_path, Hamlet, after.runner.model.runlog.path)
    after.session.build(kept.choice(RunSettings(), RunSettings(), after.session.llm_labels), kept)
    assert after.session.error == ""
    again, another = after.browser(), after.browser()
    again.cookies = ben.cookies
    after.step(1)
    assert "Ben, you play Villager 2" in again.get("/join/seat").text
    assert "Ana already has a seat" in enter(another, before.room.code, "Ana")
    assert "Ana, you play" in enter(another, before.room.code, "Ana", before.room.seats[0].code)
    greet(again, after.room.person.desk.pending[0].question_id, "Hello from Ben")
    after.wait()
    assert sorted(after.greetings) == ["Good day", "Good day", "Hello from Ana", "Hello from Ben"]
    after.lesson.close()


def test_invalid_room_file_is_refused_and_codes_are_private(tmp_path: Path) -> None:
    file = tmp_path / "room.json"
    Classroom(file=file)
    assert file.stat().st_mode & 0o077 == 0
    file.write_text("{}")
    with pytest.raises(ConfigError, match="is not the file of a classroom"):
        Classroom(file=file)


def test_empty_seats_are_no_failures_in_the_middle_of_a_step(lesson: Class) -> None:
    lesson.student("Ana")
    lesson.step(1)
    engine = lesson.runner.model.engine
    until(lambda: engine.human_timeouts == 2)
    shown = tiles_of(lesson.runner.model.usage, engine.decisions, engine.human_timeouts)
    tiles = {tile.what: tile.number for tile in shown}
    assert (tiles["failed"], tiles["left to rule twins"]) == ("0", "2")
    lesson.runner.stop()
    lesson.wait()


def test_only_who_knows_the_code_gets_a_seat_and_no_name_gets_two(lesson: Class) -> None:
    browser = lesson.browser()
    assert "Wrong room code" in enter(browser, "AAAAAA", "Ana")
    lesson.student("Ana")
    assert "ANA already has a seat" in enter(browser, lesson.room.code.lower(), "ANA")
    lesson.student("Ben")
    lesson.student("Cem")
    assert "All seats are taken" in enter(browser, lesson.room.code, "Dora")
    lesson.room.free(lesson.room.seats[0])
    lesson.room.is_open = False
    assert "not letting anyone else join" in enter(browser, lesson.room.code, "Dora")


def test_a_browser_that_sends_the_form_twice_has_one_seat(lesson: Class) -> None:
    ana = lesson.student("Ana")
    assert "Ana, you play" in enter(ana, lesson.room.code, "Ana")
    assert "Ana, you play" in enter(ana, lesson.room.code, "Ben")
    assert [seat.student for seat in lesson.room.seats] == ["Ana", "", ""]


def test_nobody_waits_for_a_student_who_left_while_the_question_was_asked(lesson: Class) -> None:
    lesson.student("Ana")
    lesson.step(1)
    lesson.room.seats[0].student = ""
    lesson.room.look(0.0)
    lesson.wait()
    assert lesson.greetings == ["Good day"] * 4


def test_a_lost_student_comes_back_by_the_seat_code_and_the_old_browser_is_out(lesson: Class) -> None:
    old, new = lesson.student("Ana"), lesson.browser()
    seat = lesson.room.seats[0]
    assert "No seat has this name and seat code" in enter(new, lesson.room.code, "Ana", "AAAAAAAA")
    assert "No seat has this name and seat code" in enter(new, lesson.room.code, "Ben", seat.code)
    assert "Ana, you play" in enter(new, lesson.room.code, "ana", seat.code.lower())
    assert "This browser has no seat" in old.get("/join/seat").text


def test_a_student_reaches_nothing_but_the_own_seat(lesson: Class) -> None:
    ana, ben = lesson.student("Ana"), lesson.student("Ben")
    for path in ("/", "/social", "/_solara/api/close/1", "/join2", "/static/x.js"):
        assert (ana.get(path).status_code, ana.post(path).status_code) == (403, 403)
    assert ana.get("/join/../").status_code == 403
    for path in ("/join/step", "/join/seat/2", "/join//seat"):
        assert ana.get(path).status_code == 404
    with pytest.raises(WebSocketDisconnect), ana.websocket_connect("/join/seat", headers={"origin": HERE}):
        pass
    lesson.step(2)
    assert "Villager 2" not in ana.get("/join/seat").text
    greet(ana, 2, "I am Ben")
    assert len(lesson.room.waiting) == 2
    greet(ben, 2, "It is me")
    until(lambda: list(lesson.room.waiting) == [1])
    lesson.runner.stop()
    lesson.wait()


def test_a_form_of_another_origin_is_refused(lesson: Class) -> None:
    ana = lesson.student("Ana")
    assert ana.post("/join/leave", headers={"origin": "http://evil.example"}).status_code == 403
    assert lesson.room.seats[0].is_taken


def test_names_are_text_and_of_one_line(lesson: Class) -> None:
    page = enter(lesson.browser(), lesson.room.code, HOSTILE[:39])
    assert "<img" not in page
    assert "&lt;img" in page
    assert clean_name(" A\u202en\u0000a \n B\u200do ") == "Ana Bo"
    assert clean_name("\u200d\U0001f9d1\u200d\U0001f680") == "\U0001f9d1\u200d\U0001f680"
    assert clean_name("\u3164A\u034fna\ufe0f\u2800") == "Ana"
    for name in ("", "\u200b \n", "\u3164", "x" * 41):
        with pytest.raises(NoSeat):
            clean_name(name)


def test_a_text_may_be_as_long_as_its_field_lets_a_student_type(lesson: Class) -> None:
    ana = lesson.student("Ana")
    lesson.step(1)
    typed = "\n".join("x" * (MAX_TEXT // 2))
    greet(ana, 1, typed.replace("\n", "\r\n"))  # as browsers send line breaks
    lesson.wait()
    assert typed in lesson.greetings


def test_seat_page_names_the_current_and_then_the_finished_step(lesson: Class) -> None:
    ana, ben = lesson.student("Ana"), lesson.student("Ben")
    lesson.step(2)
    assert "step 1" in ana.get("/join/seat").text
    assert "step 1" in greet(ana, 1, "Hello")
    greet(ben, 2, "Hello")
    lesson.wait()
    assert "step 1" in ana.get("/join/seat").text


def test_the_page_of_a_student_who_was_not_asked_claims_no_answer(lesson: Class) -> None:
    lesson.student("Ana")
    lesson.step(1)
    assert "or it is not your turn yet" in lesson.student("Ben").get("/join/seat").text


def test_what_is_wrong_with_an_answer_stands_beside_its_field(lesson: Class) -> None:
    ana = lesson.student("Ana")
    lesson.step(1)
    page = ana.post("/join/seat", data={"question": "1", "offer": "greet", "field0": HOSTILE, "field1": "seven"}).text
    assert "&lt;img src=x" in page
    assert "<img" not in page
    assert 'role="alert"' in page
    greet(ana, 1, "Hello")
    lesson.wait()
    assert "Hello" in lesson.greetings


def test_second_window_on_a_seat_is_told_its_answer_was_not_taken(lesson: Class) -> None:
    ana = lesson.student("Ana")
    lesson.step(1)
    choice = {"question": "1", "offer": "greet", "field0": "Hello", "field1": "1"}
    assert "did not count" in ana.post("/join/seat", data={**choice, "chosen": "1"}).text  # a click too much
    assert list(lesson.room.waiting) == [1]
    assert "did not count" not in ana.post("/join/seat", data={**choice, "chosen": "0"}).text
    assert "did not count" in greet(ana, 1, "Good bye")
    lesson.wait()
    assert lesson.greetings.count("Hello") == 1


def test_the_rule_twin_stands_in_after_a_time_or_when_the_teacher_says_so(lesson: Class) -> None:
    lesson.student("Ana")
    lesson.student("Ben")
    lesson.step(2)
    lesson.room.look(1000.0)
    lesson.room.look(9000.0)
    assert len(lesson.room.waiting) == 2
    lesson.room.let_rule_twin_decide(lesson.room.seats[:1])
    until(lambda: list(lesson.room.waiting) == [2])
    lesson.room.timeout_s = 30.0
    lesson.room.look(9001.0)
    lesson.wait()
    assert lesson.greetings == ["Good day"] * 4
    assert (lesson.runner.alarm, lesson.runner.n_failed) == ("", 0)
    assert lesson.runner.model.engine.human_timeouts == 3


def test_seat_page_says_who_decides_for_empty_seats_and_other_agents(lesson: Class) -> None:
    assert (lesson.lesson.has_twins, lesson.lesson.n_others, lesson.lesson.others) == (True, 1, "rule")
    lesson.session.build(RunSettings("random", parameters={"n_agents": 6}))
    assert (lesson.lesson.n_others, lesson.lesson.others) == (3, "random")
    seating = Seating(((1, "Ana"),), 3, has_twins=False, others="random")
    assert "1 seat for 3 agents; empty seats decide nothing: this model has no rule twins" in seating.summary
    assert summary(1, 0, 0, is_running=False, has_twins=False) == "0 of 1 seat taken. Nobody plays the empty seats."


def test_students_keep_their_seats_when_the_teacher_begins_anew(lesson: Class) -> None:
    ana, ben = lesson.student("Ana"), lesson.student("Ben")
    lesson.session.build(RunSettings(seed="2", parameters={"n_agents": 1}))
    assert "Ana, you play" in ana.get("/join/seat").text
    assert "This browser has no seat" in ben.get("/join/seat").text


def test_long_forms_are_refused(lesson: Class) -> None:
    browser = lesson.browser()
    assert browser.post("/join", content=b"x" * (MAX_BODY + 1)).status_code == 413
    assert browser.post("/join", data={"name": "x" * (MAX_TEXT + 1)}).status_code == 413
    assert browser.post("/join", content=b"&".join([b"a=b"] * 1000)).status_code == 413


def test_wrong_codes_slow_only_the_browser_that_sends_them(lesson: Class) -> None:
    eve, ben = lesson.browser(), lesson.browser()
    ben.get("/join")
    assert any("Too many wrong codes" in enter(eve, "AAAAAA", "Eve") for _ in range(50))
    for _ in range(STRANGER_TRIES + 1):  # each in a browser that forgets its cookies
        enter(lesson.browser(), "AAAAAA", "Eve")
    assert "Ben, you play" in enter(ben, lesson.room.code, "Ben")
    assert "Ana, you play" in enter(lesson.browser(), lesson.room.code, "Ana")


def test_each_wrong_code_doubles_the_wait_of_its_visitor() -> None:
    seconds = [0.0]
    tries, eve = AttemptLimits(lambda: seconds[0]), Visitor("eve", "10.0.0.1", is_known=True)
    waits: list[float] = []
    for _ in range(11):
        begun = seconds[0]
        while True:
            try:
                tries.begin(eve)
                break
            except TooSoon:
                seconds[0] += 0.5
        tries.end(eve, is_wrong=True)
        waits.append(seconds[0] - begun)
    assert waits == [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_rate_limit_on_codes_holds_for_any_number_of_visitors() -> None:
    seconds = [0.0]
    tries, n_tried = AttemptLimits(lambda: seconds[0]), 0
    for index in range(20_000):  # in 10 seconds
        visitor = Visitor(str(index), "10.0.0.1", is_known=True)
        seconds[0] = index / 2000
        with suppress(TooSoon):
            tries.begin(visitor)
            tries.end(visitor, is_wrong=True)
            n_tried += 1
    assert n_tried == pytest.approx(GUESSES + 10 / GUESS_S, rel=0.05)
    seconds[0] += 1
    assert tries.begin(Visitor("ana", "10.0.0.1", is_known=True)) == 0


def test_browser_has_one_seat_whatever_names_and_cookies_it_sends(lesson: Class) -> None:
    eve = lesson.browser()
    eve.get("/join")
    visitor = eve.cookies["seat-visitor"]
    for name in ("Eve", "Eva", "Yves"):
        eve.cookies = {"seat-visitor": visitor}  # as if all forms were sent before the first was answered
        assert "Eve, you play" in enter(eve, lesson.room.code, name)
    eve.post("/join/leave")
    assert "Yves, you play" in enter(eve, lesson.room.code, "Yves")
    ana = lesson.student("Ana")
    code = next(seat.code for seat in lesson.room.seats if seat.student == "Ana")
    eve.cookies = {"seat-visitor": visitor}
    assert "Ana, you play" in enter(eve, lesson.room.code, "Ana", code)
    assert "This browser has no seat" in ana.get("/join/seat").text
    assert [seat.student for seat in lesson.room.seats] == ["", "Ana", ""]


def test_seats_are_taken_from_one_address_at_the_pace_of_a_class_and_no_faster() -> None:
    seconds = [0.0]
    pace, waits = Throttle(SEATS, SEAT_S, lambda: seconds[0]), []
    for _ in range(30):  # a student each three seconds
        seconds[0] += 3
        waits.append(pace.take("10.0.0.1", SEAT_WAIT_S))
    assert waits == [0] * 30
    waits = [pace.take("10.0.0.2", SEAT_WAIT_S) for _ in range(60)]
    assert waits == [*[0] * SEATS, *(SEAT_S * n for n in range(1, 31)), *[None] * (30 - SEATS)]


def test_seats_that_an_address_hoards_and_does_not_look_at_go_to_others(lesson: Class) -> None:
    room = lesson.room
    hoarded = [room.join(room.code, name, "", Visitor(name, "10.0.0.1")) for name in ("A", "B", "C")]
    ana, ben = Visitor("ana", "10.0.0.2"), Visitor("ben", "10.0.0.3")
    with pytest.raises(NoSeat, match="All seats are taken"):
        room.join(room.code, "Ana", "", ana)
    for seat in hoarded:
        seat.looked_at -= ABSENT_S + 1
    hoarded[0].n_answers = 1
    room.seat_of(hoarded[1].key)
    with pytest.raises(NoSeat, match="All seats are taken"):
        room.join(room.code, "D", "", Visitor("d", "10.0.0.1"))
    assert room.join(room.code, "Ana", "", ana) is hoarded[2]
    with pytest.raises(NoSeat, match="All seats are taken"):
        room.join(room.code, "Ben", "", ben)
    assert [seat.student for seat in room.seats] == ["A", "B", "Ana"]


def test_identities_of_browsers_cannot_be_made_up() -> None:
    identities = Identities()
    cookie = identities.cookie(identities.new())
    assert identities.read(cookie) == cookie.partition(".")[0]
    for forged in ("", "eve", "eve.", "." + cookie.partition(".")[2], Identities().cookie("eve"), "\xe9.\xe9"):
        assert identities.read(forged) == ""


def test_before_the_teacher_has_opened_the_page_there_are_no_seats() -> None:
    room = Classroom()
    with pytest.raises(NoSeat, match="Your teacher is not here yet"):
        room.join(room.code, "Ana")


def test_agents_that_are_not_there_get_no_seat() -> None:
    lesson = Lesson(Classroom(), agents=[2, 99])
    session = lesson.session(Hamlet, RunSettings(seed="1"), None)
    assert session.error == "the model has no agent 99; the agents that decide are: 1, 2, 3, 4"
    lesson.agents = [2]
    session.build(RunSettings(seed="1"))
    assert [seat.agent for seat in lesson.room.seats] == ["Villager 2 (agent 2)"]
    lesson.close()


def test_a_student_whose_agent_has_died_is_told(lesson: Class) -> None:
    ana = lesson.student("Ana")
    next(iter(lesson.runner.model.agents)).remove()
    assert "Your agent has left the model" in ana.get("/join/seat").text


def test_a_page_of_the_teacher_that_is_left_keeps_the_model(lesson: Class) -> None:
    lesson.session.leave()
    assert lesson.lesson.session(Hamlet, RunSettings(seed="7"), None) is lesson.session
    lesson.step(0)
    lesson.wait()
    assert lesson.runner.model.time == 1


def test_nobody_plays_in_a_model_that_takes_no_language_model() -> None:
    def make(rng: int | None = None) -> Hamlet:
        return Hamlet(rng=rng)

    session = LessonSession(Lesson(Classroom()), make, RunSettings(seed="1"), None)
    assert session.error == "this model accepts no llm=, so nobody can play in it"
