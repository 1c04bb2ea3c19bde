"""Mesa's own page of a plain model whose agents have minds, with our components, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.conftest import ROOT, STARTING_MS, opened, serve
from tests.browser.test_pages import press, turn_to

pytestmark = pytest.mark.browser

GIVERS = ROOT / "tests" / "browser" / "apps" / "givers.py"


def is_within(part: Locator, whole: Locator) -> bool:
    """Check whether a part of the page is no wider than what it stands in, and begins in it."""
    inner, outer = part.bounding_box(), whole.bounding_box()
    assert inner is not None
    assert outer is not None
    return outer["x"] <= inner["x"] and inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1


def test_our_components_bring_their_style_to_mesas_page_once(browser: Browser, tmp_path: Path) -> None:
    command = ["solara", "run", str(GIVERS), "--port", "PORT", "--production", "--no-open"]
    with serve(tmp_path, *command) as served, opened(browser, served) as page:
        page.goto("/")
        expect(page.get_by_role("button", name="Step")).to_be_visible(timeout=STARTING_MS)
        place = page.locator(".vue-grid-item > div")
        press(page, "Step")
        plot = page.get_by_role("img", name="Gini")
        expect(plot).to_be_visible(timeout=STARTING_MS)
        assert is_within(plot, place.first)
        turn_to(page, "Page 2")
        expect(page.get_by_role("columnheader", name="Outcome")).to_have_css("text-align", "left")
        expect(place.first).to_have_css("overflow-y", "auto")
        expect(page.get_by_role("cell").first).to_have_css("unicode-bidi", "plaintext")  # as Hebrew needs it
        expect(page.get_by_text("EventLog needs an LLMModel")).to_be_visible()
        expect(page.locator("#ipyvue-mesa-llm")).to_have_count(1)
        press(page, "▶")
        expect(page.get_by_text(re.compile(r"Time: ([5-9]|\d\d+)\.0"))).to_be_visible()
        turn_to(page, "Page 1")
        expect(page.get_by_text("You are generous, but not foolish.")).to_be_visible()
