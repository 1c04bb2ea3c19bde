"""A recorded run in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.apps.village import Hamlet
from tests.browser.conftest import STARTING_MS, TOKEN, opened, serve
from tests.browser.test_pages import expect_step, press, turn_to

pytestmark = pytest.mark.browser


def test_a_recorded_run_is_opened_and_its_steps_are_gone_through(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "run.sqlite"
    model = Hamlet(rng=1, log=file)
    model.run_for(5)
    model.close()
    recorded = file.read_bytes()
    command = ["mesa_llm.cli.app", "view", str(file), "--trust", "--no-browser", "--port", "PORT"]
    with (
        serve(tmp_path, *command, token=TOKEN, MESA_LLM_APP_TOKEN=TOKEN) as served,
        opened(browser, served) as page,
    ):
        page.goto("/")
        expect(page.locator(".mesa-llm-time")).to_have_text("Step 5", timeout=STARTING_MS)
        expect(page.get_by_role("button", name="Step", exact=True)).to_have_count(0)
        expect(page.locator(".mesa-llm-settings .recording")).to_contain_text(re.compile(r"run\.sqlite[^$]*Seed\s*1"))
        press(page, "Back")
        expect_step(page, "4")
        expect(page.get_by_role("slider")).to_have_attribute("aria-valuenow", "4")
        slider = page.locator(".v-slider").bounding_box()
        assert slider is not None
        page.mouse.click(slider["x"] + 0.4 * slider["width"], slider["y"] + slider["height"] / 2)
        expect_step(page, "2")
        turn_to(page, "Agents")
        expect(page.locator(".mesa-llm-step")).to_contain_text("2")
        expect(page.locator(".agent-step .line.decided")).to_contain_text("Good day")
        press(page, "Play")
        expect_step(page, "5")
        expect(page.get_by_role("alert")).to_have_count(0)
        turn_to(page, "Experiment")
        page.get_by_role("slider", name="Fork after step 4").press("ArrowLeft")
        expect(page.get_by_text("Fork after step 3")).to_be_visible()
        page.wait_for_timeout(500)  # a field listens a moment after it is seen, and nobody types sooner
        page.get_by_label("Text", exact=True).fill("Good night")
        press(page, "Run the branch")
        expect(page.get_by_text("The branch ran 2 steps from step 3 beside a placebo, with 0 new")).to_be_visible()
        expect(page.get_by_role("img", name="this run and its branches")).to_be_visible()
    assert file.read_bytes() == recorded
