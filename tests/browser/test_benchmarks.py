"""The page of benchmarks in a real browser: what the command has written, and from a run into its replay."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from tests.browser.conftest import STARTING_MS, TOKEN, opened, serve
from tests.browser.test_pages import expect_step, press
from tests.faulty_server import FaultyServer

pytestmark = pytest.mark.browser

LEGIBLE_PX = 600
"""Width of a plot from which its labels, of 10 points in a figure of 620, can be read."""


def benched(*words: object) -> None:
    """Run a benchmark."""
    done = CliRunner().invoke(app, ["bench", "auction_arena", "--quick", *map(str, words)])
    assert done.exit_code == 0, done.output


def test_a_benchmark_is_read_and_one_of_its_runs_opened(browser: Browser, tmp_path: Path) -> None:
    benched("--cross", "--llm", "random", "--repeats", 2, "--out", tmp_path / "runs" / "cross")
    benched("--repeats", 2, "--out", tmp_path / "elsewhere")
    command = ["mesa_llm.cli.app", "app", "--bench", str(tmp_path / "elsewhere"), "--no-browser", "--port", "PORT"]
    with (
        serve(tmp_path, *command, token=TOKEN, MESA_LLM_APP_TOKEN=TOKEN) as served,
        opened(browser, served) as page,
    ):
        page.goto("/")
        page.get_by_role("button", name="Benchmarks").click(timeout=STARTING_MS)
        expect(page.get_by_role("img", name="Scores of auction_arena")).to_be_visible(timeout=STARTING_MS)
        expect(page.get_by_text("mesa-llm bench auction_arena --llm rule --items own --quick")).to_be_visible()
        expect(page.get_by_text("Shachi (2025), Table 1")).to_be_visible()
        page.get_by_text("Runs", exact=True).click()
        page.get_by_role("row", name="random").get_by_role("button", name="Open").last.click()
        expect(page.get_by_text("This is a recorded run: no language model is called")).to_be_visible()
        expect_step(page, r"\d+")
        press(page, "Back to the benchmark")
        page.locator(".v-select", has_text="Benchmark").click()
        page.locator(".v-menu__content.menuable__content__active").get_by_text("designs × tasks").click()
        expect(page.get_by_role("img", name="Designs × tasks")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_a_report_can_be_read_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    with FaultyServer() as server:
        benched("--repeats", 1, "--out", tmp_path, "--llm", f"a-model-of-70-billion-parameters@{server.url}")
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto((tmp_path / "report.html").as_uri())
    plot = page.get_by_role("img", name="Scores of auction_arena").bounding_box()
    assert plot is not None
    assert plot["width"] >= LEGIBLE_PX
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.close()
