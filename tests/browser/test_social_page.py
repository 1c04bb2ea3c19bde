"""The page of the social network in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import Served, opened
from tests.browser.test_pages import expect_step, open_ready, press, turn_to

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def social(browser: Browser, server: Served) -> Iterator[Page]:
    """Open the social network once, make four steps, and let tests look around."""
    with opened(browser, server) as page:
        page.set_viewport_size({"width": 1280, "height": 720})
        open_ready(page, "/social")
        for step in range(1, 5):
            press(page, "Step")
            expect_step(page, str(step))
        yield page


def search(page: Page, label: str, text: str) -> Locator:
    """Type into a list that is searched, and return what it offers."""
    page.get_by_role("textbox", name=label).fill(text)
    return page.locator(".v-menu__content.menuable__content__active [role=option]")


def test_the_network_is_coloured_by_what_a_visitor_picks(social: Page) -> None:
    network = social.get_by_role("img", name="Follow network")
    before = social.locator(".mesa-llm-scene").inner_html()
    expect(network).to_be_visible()
    social.locator(".v-select", has_text="Colour by").click()
    social.locator(".v-menu__content.menuable__content__active").get_by_text("followers").click()
    expect(social.locator(".mesa-llm-scene")).not_to_have_js_property("innerHTML", before)


def test_a_feed_leads_to_a_thread_and_an_author_to_its_feed(social: Page) -> None:
    turn_to(social, "Agents")
    search(social, "Feed of", "7 ·").first.click()
    expect(social.locator(".feed")).to_contain_text("and follows 3")
    post = social.locator(".feed .post").last
    words = post.locator("p").inner_text()
    author = post.locator("header b").inner_text()
    post.get_by_role("button", name="Thread").click()
    expect(social.locator(".thread .post p").first).to_have_text(words)
    social.locator(".thread header button").first.click()
    expect(social.locator(".feed")).to_contain_text(f"The feed as {author} sees it now")


def test_a_post_opens_its_author_at_its_step_by_keyboard(social: Page) -> None:
    turn_to(social, "Agents")
    button = social.locator(".feed").get_by_role("button", name=re.compile("at step [1-9]")).first
    found = re.fullmatch("Inspect (.+) at step (.+)", button.get_attribute("aria-label") or "")
    assert found
    button.press("Enter")
    expect(social.locator(".agent h3")).to_contain_text(found[1])
    expect(social.locator(".agent h3")).to_be_in_viewport()
    expect(social.locator(".mesa-llm-step")).to_contain_text(found[2])


def test_a_cascade_stands_beside_a_real_one_from_a_file(social: Page) -> None:
    turn_to(social, "Agents")
    social.locator(".feed").get_by_role("button", name="Cascade").first.click()
    expect(social.get_by_role("tab", name="Data")).to_have_attribute("aria-selected", "true")
    spread = social.get_by_role("img", name="users reached")
    expect(spread).to_be_visible()
    curves = {name: [1, 2] for name in ("scale", "depth", "max_breadth")}
    curves |= {f"{name}_time": [0, 60] for name in curves}
    upload = social.get_by_label("Upload a real cascade")
    upload.set_input_files({"name": "broken.json", "mimeType": "application/json", "buffer": b"{}"})
    expect(social.get_by_role("alert")).to_contain_text("broken.json: found nothing under 'scale'")
    expect(social.locator(".mesa-llm-legend").get_by_text("a", exact=True)).to_have_count(0)
    upload.set_input_files({"name": "a.json", "mimeType": "application/json", "buffer": json.dumps(curves).encode()})
    expect(social.get_by_role("alert")).to_have_count(0)
    expect(social.locator(".mesa-llm-legend").get_by_text("a", exact=True)).to_have_count(3)


def test_posts_are_searched_on_the_server(social: Page) -> None:
    turn_to(social, "Data")
    found = search(social, "Cascade of post", "three years")
    expect(found.last).to_contain_text("Three years ago")
    number = found.last.inner_text().partition(" ")[0]
    found.last.click()
    expect(social.get_by_role("img", name=f"Cascade of post {number} by")).to_be_visible()


def test_an_agent_is_interviewed_and_nothing_is_asked_without_a_click(social: Page) -> None:
    turn_to(social, "Agents")
    expect(social.get_by_text("No questions yet.")).to_be_visible()
    press(social, "Ask")
    expect(social.get_by_role("alert")).to_have_text("Enter a question first.")
    for question in ("What matters to you?", "Anything else?"):
        social.get_by_label("Question").fill(question)
        press(social, "Ask")
        expect(social.locator(".interview").first).to_contain_text(question)
        expect(social.locator(".interview .line.reply").first).to_contain_text("What I think about most is")
    expect(social.locator(".interview")).to_have_count(2)
    expect(social.get_by_role("alert")).to_have_count(0)


def test_tables_turn_their_pages(social: Page) -> None:
    turn_to(social, "Agents")
    expect(social.get_by_text("1–30 of")).to_be_visible()
    newest = social.locator("td").first.inner_text()
    social.get_by_role("button", name="Older").click()
    expect(social.get_by_text("31–60 of")).to_be_visible()
    assert newest == "4"
