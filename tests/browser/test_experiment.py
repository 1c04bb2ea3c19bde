"""The tab Experiment in a real browser: an audit from the form to its findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_pages import open_ready, press, turn_to

pytestmark = pytest.mark.browser


def test_a_visitor_audits_a_measure_and_downloads_the_findings(page: Page) -> None:
    open_ready(page, "/rules")
    turn_to(page, "Experiment")
    seeds = page.get_by_label("Seeds", exact=True)
    seeds.fill("2")
    seeds.press("Enter")
    expect(page.get_by_text("No language model is called.")).to_be_visible()
    page.wait_for_timeout(500)  # a field listens a moment after it is seen
    press(page, "Run the audit")
    expect(page.get_by_text("Enter the smallest change of the measure that would matter to you")).to_be_visible()
    page.get_by_label("Smallest change that matters").fill("1")
    press(page, "Run the audit")
    expect(page.get_by_text("The audit is finished")).to_be_visible(timeout=180_000)
    expect(page.get_by_text("Verdict: ")).to_be_visible()
    expect(page.get_by_role("img", name="Changes of greetings")).to_be_visible()
    with page.expect_download() as download:
        press(page, "JSON")
    assert json.loads(Path(download.value.path()).read_text(encoding="utf-8"))["model"] == "Village"
    expect(page.get_by_role("button", name="Open", exact=True)).to_be_visible()
