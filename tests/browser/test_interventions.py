"""The news desk in a real browser: news in the run, and what would come of it in a branch."""

from __future__ import annotations

import zipfile

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_pages import card, expect_step, open_ready, press, turn_to

pytestmark = pytest.mark.browser


def test_a_visitor_tries_news_in_a_branch_and_sends_other_news(page: Page) -> None:
    open_ready(page, "/three_worlds")
    press(page, "Step")
    expect_step(page, "1")
    turn_to(page, "Experiment")
    news, what_if = card(page, "News"), card(page, "What if")
    what_if.get_by_role("button", name="Run the branch").click()
    expect(page.get_by_text("Enter a text first.")).to_be_visible()
    what_if.get_by_label("Text", exact=True).fill("The mayor has <b>resigned</b>.")
    what_if.get_by_role("button", name="Run the branch").click()
    expect(what_if.get_by_text("The branch ran 5 steps from step 1 beside an unchanged control branch")).to_be_visible()
    expect(what_if.get_by_role("img").first).to_be_visible()
    expect_step(page, "1")
    expect(news.get_by_text("The branch ran")).to_have_count(0)
    news.get_by_label("Text", exact=True).fill("The mayor has <b>resigned</b>.")
    news.get_by_role("button", name="Send").click()
    expect(news.get_by_text("Sent. Agents read it in step 2.")).to_be_visible()
    expect(news.get_by_role("cell", name="news for everyone: The mayor has <b>resigned</b>.")).to_be_visible()
    news.get_by_role("button", name="Change of a variable").click()
    news.get_by_label("New value", exact=True).fill("best")
    news.get_by_role("button", name="Send").click()
    expect(news.get_by_text("crowd_dollars: input should be a valid number")).to_be_visible()
    news.get_by_role("button", name="News", exact=True).click()
    page.wait_for_timeout(500)  # nobody presses two buttons sooner
    news.get_by_role("button", name="Send").click()
    expect(news.get_by_text("Enter a text first.")).to_be_visible()
    turn_to(page, "Data")
    press(page, "Write the report")
    expect(page.get_by_role("heading", name="Three worlds after 1 step")).to_be_visible()
    expect(page.get_by_text("Written by rule.")).to_be_visible()
    with page.expect_download() as download:
        press(page, "Tables and graph (zip)")
    assert {"measures.csv", "interventions.csv"} <= set(zipfile.ZipFile(download.value.path()).namelist())
