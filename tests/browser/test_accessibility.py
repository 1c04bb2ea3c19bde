"""Pages as axe-core, the checker of the W3C's guidelines, sees them: light, dark, and on a phone."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import STARTING_MS, visit
from tests.browser.test_pages import expect_step, open_ready, press, turn_to

pytestmark = pytest.mark.browser

RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
    .filter(each => ["serious", "critical"].includes(each.impact))
    .map(each => `${each.id}: ${each.nodes.map(node => node.html.slice(0, 120)).join("; ")}`)"""
"""Returns the serious and critical violations on a page, with the elements."""

SMALL = """all => all.filter(each => each.getClientRects().length && parseFloat(getComputedStyle(each).fontSize) < 12
    && [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim())).map(each => each.outerHTML)"""
"""Returns the elements with text below 12 pixels."""

Theme = Literal["light", "dark"]


def faults(page: Page) -> list[str]:
    """Return what is wrong with a page for people who see little, or use no mouse, once all its parts are there."""
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    expect(page.locator(".mesa-llm-loading")).to_have_count(0)
    found: list[str] = []
    for _ in range(6):  # parts that arrive are named five times a second
        page.wait_for_timeout(600)
        violations: Any = page.evaluate(RUN)
        found = [*violations, *page.locator(".v-application *").evaluate_all(SMALL)]
        if not found:
            break
    return found


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_pages_have_no_serious_fault(page: Page, theme: Theme, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=theme)
    visit(page, "/")
    expect(page.get_by_label("Search models")).to_be_visible(timeout=STARTING_MS)
    assert faults(page) == []
    open_ready(page, "/schelling")
    press(page, "Step")
    expect_step(page, "1")
    assert faults(page) == []
    for tab in ("Agents", "Data", "Experiment", "About"):
        turn_to(page, tab)
        assert faults(page) == [], tab
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_page_is_run_by_keyboard_alone(page: Page) -> None:
    open_ready(page, "/rules")
    page.get_by_role("button", name="Step", exact=True).focus()
    page.keyboard.press("Enter")
    expect_step(page, "1")
    page.get_by_role("tab", name="Agents", exact=True).focus()
    page.keyboard.press("Enter")
    row = page.get_by_role("button", name="Inspect 1 · Villager 2")
    row.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".mesa-llm-pick input").first).to_have_value("2 · Villager 2")
