"""A class in real browsers: the teacher's and those of up to four students, one of them hostile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.apps.village import HOSTILE
from tests.browser.conftest import STARTING_MS, TOKEN, Served, opened, serve
from tests.browser.test_attack import FETCH
from tests.browser.test_pages import expect_step, press

pytestmark = pytest.mark.browser

WEBSOCKET = """path => new Promise(resolve => {
    const socket = new WebSocket(location.origin.replace("http", "ws") + path);
    socket.onopen = () => resolve("open");
    socket.onclose = () => resolve("closed");
})"""


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve a class of four seats, the whole hamlet."""
    command = ["mesa_llm.cli.app", "classroom", "tests.browser.apps.village:Hamlet", "--seats", "4"]
    options = ["--no-browser", "--port", "PORT"]
    with serve(tmp_path_factory.mktemp("class"), *command, *options, token=TOKEN, MESA_LLM_APP_TOKEN=TOKEN) as served:
        yield served
        assert "raised exception" not in served.log.read_text()


def sit_down(student: Page, server: Served, name: str) -> None:
    """Take a seat, as students do."""
    code = re.search(r"room code (\w+)", server.log.read_text())
    assert code is not None
    student.goto("/join")
    student.get_by_label("Room code").fill(code[1].lower())
    student.get_by_label("Your name").fill(name)
    press(student, "Take a seat")


def held(route: Route) -> None:
    """Let an answer reach the server at once, and its reply the student only after the page has looked for news."""
    if route.request.method == "POST":
        reply = route.fetch(max_redirects=0)
        route.request.frame.page.wait_for_timeout(2_000)
        route.fulfill(response=reply)
    else:
        route.fallback()


def test_a_class_plays_together_and_only_the_teacher_goes_on(browser: Browser, server: Served) -> None:
    stranger = replace(server, token="")
    with opened(browser, server) as teacher, opened(browser, stranger) as ana, opened(browser, stranger) as eve:
        teacher.goto("/")
        expect(teacher.get_by_text("0 of 4 seats taken.")).to_be_visible(timeout=STARTING_MS)
        sit_down(ana, server, "Ana")
        sit_down(eve, server, HOSTILE[:39])
        expect(teacher.get_by_text("2 of 4 seats taken.")).to_be_visible()
        expect(teacher.get_by_role("button", name="Free the seat of Ana", exact=True)).to_be_visible()
        press(teacher, "Step")
        ana.get_by_text("Greet", exact=True).click()
        ana.get_by_label("Words").fill("Good evening, everybody")
        ana.get_by_label("Times").fill("2")
        press(ana, "Do this")
        expect(ana.get_by_role("heading", name="Waiting for 1 other")).to_be_visible()
        expect(teacher.get_by_text("1 of 2 students has not answered")).to_be_visible()

        # what the other student's browser can reach is the own seat, and nothing else
        for path in ("/", "/social", "/jupyter/api/kernels/1"):
            assert eve.request.get(path).status == 403
        for path in ("/jupyter/api/kernels/1/channels", "/join/seat"):
            assert eve.evaluate(WEBSOCKET, path) == "closed"
        assert eve.evaluate("document.cookie") == ""
        assert eve.evaluate(FETCH, ["http://localhost:9/", {}]) == "refused"
        assert "Good evening" not in eve.content()

        teacher.reload()
        expect(teacher.get_by_text("1 of 2 students has not answered")).to_be_visible(timeout=STARTING_MS)
        press(teacher, "Let rule twins decide for them")
        expect_step(teacher, "1")
        expect(teacher.get_by_text("2 of 4 seats taken. Press Step when everyone is ready.")).to_be_visible()
        expect(ana.get_by_text("2 greetings were heard.")).to_be_visible()
        expect(eve.get_by_text("(by the rule twin)")).to_be_visible()
        assert [page.evaluate("window.hacked") for page in (teacher, eve)] == [None, None]


def test_a_class_of_five_browsers_plays_a_round(browser: Browser, server: Served) -> None:
    with ExitStack() as stack:
        teacher, *students = (
            stack.enter_context(opened(browser, one)) for one in (server, *4 * [replace(server, token="")])
        )
        teacher.goto("/")
        expect(teacher.locator(".mesa-llm-time")).to_be_visible(timeout=STARTING_MS)
        taken = teacher.get_by_role("button", name="Free the seat of")
        while n := taken.count():
            taken.first.click()
            expect(taken).to_have_count(n - 1)
        for student, name in zip(students, ("Bea", "Carl", "Dora", "Emil"), strict=True):
            sit_down(student, server, name)
        students[0].route("/join/seat", held)
        expect(teacher.get_by_text("4 of 4 seats taken.")).to_be_visible()
        step = int(teacher.locator(".mesa-llm-time").inner_text().removeprefix("Step "))
        press(teacher, "Step")
        for student in students:
            student.get_by_text("Greet", exact=True).click()
            student.get_by_label("Words").fill("Hello")
            press(student, "Do this")
        expect_step(teacher, str(step + 1))
        for student in students:
            expect(student.get_by_text("1 greetings were heard.")).to_be_visible()
