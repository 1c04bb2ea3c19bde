"""The pages in a real browser."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from mesa_llm.registry import find_models
from tests.browser.attacker import Endpoint
from tests.browser.conftest import STARTING_MS, WINDOW, opened, pause, serve_guarded, visit

pytestmark = pytest.mark.browser


def press(page: Page, name: str) -> None:
    """Click a button."""
    page.get_by_role("button", name=name, exact=True).click()


def turn_to(page: Page, tab: str) -> None:
    """Click a tab until it is open: a page that draws on a busy machine can miss the first click."""
    handle = page.get_by_role("tab", name=tab, exact=True)
    for _ in range(3):
        handle.click()
        with suppress(AssertionError):
            return expect(handle).to_have_attribute("aria-selected", "true", timeout=10_000)
    return expect(handle).to_have_attribute("aria-selected", "true")


def expect_step(page: Page, number: str) -> None:
    """Wait until the page shows this step."""
    expect(page.locator(".mesa-llm-time")).to_have_text(re.compile(rf"^Step ({number})$"))


def card(page: Page, heading: str) -> Locator:
    """Return the part of the open tab under a heading."""
    return page.locator(".mesa-llm-card", has=page.get_by_role("heading", name=heading, exact=True))


def choose(page: Page, label: str, value: str) -> None:
    """Choose from a list."""
    page.locator(".v-select", has_text=label).click()
    page.locator(".v-menu__content.menuable__content__active").get_by_text(value, exact=True).click()


def reset_to_choices(page: Page) -> None:
    """Press Reset once the page has taken what was chosen."""
    expect(page.get_by_text("Press Reset to apply changes")).to_be_visible()
    press(page, "Reset")


def open_ready(page: Page, path: str) -> Page:
    """Open a page and wait until its model stands ready."""
    visit(page, path)
    expect(page.get_by_text("Ready.", exact=True)).to_be_visible(timeout=STARTING_MS)
    return page


def ask_endpoint(page: Page, endpoint: Endpoint, key: str = "") -> None:
    """Choose an endpoint on the page, with a key, and make a step."""
    choose(page, "Language model", "another model …")
    page.get_by_label("Model", exact=True).fill("openai/gpt-4o-mini")
    page.get_by_label("Endpoint").fill(endpoint.url)
    page.get_by_label("Endpoint").press("Enter")
    if key:
        page.get_by_label("API key (optional)").fill(key)
        page.get_by_label("API key (optional)").press("Enter")
        expect(page.get_by_label("Key (saved, not shown again)")).to_have_value("")
    expect(page.get_by_text("Decisions by openai/gpt-4o-mini")).to_be_visible()
    press(page, "Step")


def test_a_page_is_dark_where_the_system_is(page: Page) -> None:
    open_ready(page, "/rules")
    turn_to(page, "Agents")
    step, text = page.locator(".mesa-llm-time"), page.locator(".mesa-llm pre").first
    page.emulate_media(color_scheme="dark")
    for light in (step, text):
        expect(light).to_have_css("color", "rgb(229, 231, 235)")
    expect(text).to_have_css("background-color", "rgb(43, 45, 49)")
    page.emulate_media(color_scheme="light")
    expect(text).to_have_css("color", "rgb(30, 41, 59)")


def test_a_page_says_after_it_was_reloaded_where_the_run_is(page: Page) -> None:
    open_ready(page, "/fast")
    press(page, "Step")
    expect_step(page, "1")
    for _ in range(2):
        page.reload()
        expect(page.get_by_text("Your last run was saved")).to_be_visible(timeout=STARTING_MS)
    turn_to(page, "Data")
    page.get_by_role("button", name="Resume").first.click()
    expect_step(page, "1")


def test_the_gallery_groups_its_models_finds_them_and_opens_them(page: Page) -> None:
    page.goto("/shelling")  # no model
    page.get_by_role("link", name="All pages").click()
    card = page.locator(".mesa-llm-entry").first
    expect(card).to_contain_text("Start here")
    titles = page.locator(".mesa-llm-gallery h2")
    expect(titles).to_have_text(["Course", "Social", "Markets", "Benchmark"])
    page.get_by_label("Search models").fill("spread attention")
    expect(titles).to_have_text(["Social"])
    card.get_by_role("link").press("Enter")
    expect(page.get_by_text("Ready.", exact=True)).to_be_visible(timeout=STARTING_MS)
    press(page, "Step")
    expect_step(page, "1")
    press(page, "Play")
    turn_to(page, "Agents")
    expect(page.locator(".feed .post").first).to_be_visible()
    expect_step(page, r"[3-9]|\d\d+")
    page.get_by_role("button", name="All models").click()
    expect(card).to_be_visible()


CUT = "all => all.filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.innerText.slice(0, 99))"
"""Beginnings of the elements that hide a part of themselves at the right."""

BROKEN = """
() => [...document.querySelectorAll('.mesa-llm-readme td')].flatMap(cell => {
  const found = [], walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (walk.nextNode())
    for (const word of walk.currentNode.data.matchAll(/\\w+/g)) {
      range.setStart(walk.currentNode, word.index);
      range.setEnd(walk.currentNode, word.index + word[0].length);
      if (range.getClientRects().length > 1) found.push(word[0]);
    }
  return found;
})
"""
"""Words in the tables of a README that stand on two lines."""

OUTSIDE = """all => all.flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter(text => {
    const at = text.getBoundingClientRect();
    return at.left < box.left - 1 || at.right > box.right + 1 || at.top < box.top - 3 || at.bottom > box.bottom + 3;
  }).map(text => text.textContent);
})"""
"""Names in the pictures of spaces that do not lie within them."""

MODELS = [entry.name for entry in find_models() if not entry.package.startswith("mesa_llm_models.classics.")]
"""The models, but for the classics, whose pages are one page: a browser page takes ten seconds."""


@pytest.mark.parametrize("name", [*MODELS, "schelling"])
def test_the_page_of_every_model_steps_and_shows_no_error_on_any_tab(page: Page, name: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    open_ready(page, f"/{name}")
    press(page, "Step")
    expect_step(page, "1")
    assert page.locator(".mesa-llm-settings :is(label, .v-select__selection)").evaluate_all(CUT) == []
    assert page.locator(".mesa-llm-scene > svg").evaluate_all(OUTSIDE) == []
    widths = [slider.bounding_box() for slider in page.locator(".v-slider").all()]
    assert all(box and box["width"] > 200 for box in widths), widths
    for tab in page.get_by_role("tab").all():
        if tab.text_content() == "Data" and name != "schelling":
            continue  # up to 32 plots, all drawn by tests/viz/test_figures.py
        tab.click()
        expect(tab).to_have_attribute("aria-selected", "true")
        expect(page.locator(".mesa-llm-card:visible").first).to_be_visible()
        assert page.locator(".mesa-llm .scroll:visible").evaluate_all(CUT) == []
        assert page.evaluate(BROKEN) == []
    expect(page.get_by_role("alert")).to_have_count(0)


COUNT_DRAWINGS = """() => {
  window.drawings = 0;
  let last = 0;
  const seen = new MutationObserver(() => {
    const now = performance.now();
    if (now - last > 20) { window.drawings += 1; }
    last = now;
  });
  seen.observe(document.querySelector(".mesa-llm-plot"), {subtree: true, childList: true, attributes: true});
}"""
"""Counts the drawings of the first chart in `window.drawings`."""

FREE_CELL = """() => {
  const svg = document.querySelector(".mesa-llm-scene > svg"), box = svg.getBoundingClientRect(), side = box.width / 20;
  const taken = new Set([...svg.querySelectorAll(".agent")].map((agent) => {
    const at = agent.getBoundingClientRect();
    return [at.x + at.width / 2 - box.x, at.y + at.height / 2 - box.y].map((end) => Math.floor(end / side)).join(" ");
  }));
  for (let row = 0; row < 20; row++) {
    for (let column = 0; column < 20; column++) {
      if (!taken.has(`${column} ${row}`)) { return [box.x + (column + 0.5) * side, box.y + (row + 0.5) * side]; }
    }
  }
}"""
"""Finds the middle of a free cell of a town of 20 by 20."""


def test_step_moves_time_and_draws_the_model(page: Page) -> None:
    open_ready(page, "/fast")
    plot = page.get_by_role("img", name="Greetings so far")
    expect(plot.locator("path").first).to_be_attached()
    before = plot.inner_html()
    press(page, "Step")
    expect_step(page, "1")
    expect(plot).not_to_have_js_property("innerHTML", before)


def test_play_draws_every_step(page: Page) -> None:
    open_ready(page, "/newcomer")
    expect(page.get_by_role("img", name="Greetings").locator("path").first).to_be_attached()
    page.evaluate(COUNT_DRAWINGS)
    press(page, "Play")
    expect(page.locator(".mesa-llm-time")).to_have_text(re.compile(r"Step ([8-9]|\d\d+)"))
    pause(page)
    assert page.evaluate("window.drawings") >= 6


def test_an_agent_a_cell_and_a_value_answer_the_pointer(page: Page) -> None:
    open_ready(page, "/schelling")
    space = page.locator(".mesa-llm-scene > svg")
    agent = space.get_by_role("button").first
    box, side = space.bounding_box(), agent.bounding_box()
    assert box is not None
    assert side is not None
    expect(page.locator(".mesa-llm-scene path.over")).to_have_count(0)
    free = page.evaluate(FREE_CELL)
    page.mouse.click(*free)
    expect(page.get_by_role("status")).to_contain_text("Nobody is here.")
    page.mouse.click(side["x"] + side["width"] / 2, side["y"] + side["height"] / 2)
    expect(page.get_by_role("tab", name="Agents")).to_have_attribute("aria-selected", "true")


def step_on_phone(page: Page, path: str, width: int) -> None:
    """Make one step on a page as wide as a phone."""
    page.set_viewport_size({"width": width, "height": 800})
    open_ready(page, path)
    press(page, "Step")
    expect_step(page, "1")


NAMELESS = "all => all.filter(each => !(each.textContent.trim() || each.ariaLabel)).map(each => each.outerHTML)"
"""Buttons that a screen reader cannot name."""


def test_on_a_phone_nothing_is_cut_and_every_button_has_a_name(page: Page) -> None:
    step_on_phone(page, "/social", 360)
    assert page.locator(".v-toolbar__title").evaluate_all(CUT) == []
    assert page.locator(".mesa-llm-scene > svg").evaluate_all(OUTSIDE) == []
    press(page, "Parameters")
    assert page.locator(".mesa-llm-settings :is(label, .v-select__selection)").evaluate_all(CUT) == []
    turn_to(page, "Experiment")
    last = page.locator(".v-btn-toggle:visible button").last.bounding_box()
    assert last is not None
    assert last["x"] + last["width"] <= 360
    turn_to(page, "Agents")
    assert page.locator("button").evaluate_all(NAMELESS) == []


def test_parameters_fold_on_a_wide_page_and_unfold_on_a_phone(page: Page) -> None:
    step_on_phone(page, "/rules", 390)
    seed = page.get_by_label("Seed")
    expect(seed).to_be_hidden()
    press(page, "Parameters")
    expect(seed).to_be_visible()
    page.set_viewport_size(WINDOW)
    press(page, "Parameters")
    expect(seed).to_be_hidden()
    press(page, "Parameters")
    expect(seed).to_be_visible()


@pytest.fixture
def stepped(page: Page) -> Page:
    """Open the village after one step; tests that look around in it find it as the test before has left it."""
    if not page.url.endswith("/fast"):
        open_ready(page, "/fast")
        press(page, "Step")
    expect_step(page, "1")
    return page


def test_failed_decisions_are_told_beside_the_step(stepped: Page) -> None:
    expect(stepped.locator(".mesa-llm-status")).to_have_text(
        "Step 1 finished, but 1 decision failed; see the Agents tab."
    )


def test_the_inspector_shows_prompt_reply_decision_and_outcome(stepped: Page) -> None:
    turn_to(stepped, "Agents")
    for part, text in {
        "system": "You live in a village.",
        "user": "You are friendly.",
        "reply": "greet(words:",
        "decided": "times: 1",
        "done": "1 greetings were heard.",
    }.items():
        expect(stepped.locator(f".agent-step .line.{part}").first).to_contain_text(text)


def test_what_agents_write_is_shown_and_never_run(stepped: Page) -> None:
    turn_to(stepped, "Agents")
    for place in (".line.reply", "td"):
        hostile = stepped.locator(place, has_text="<img src=x onerror='window.hacked = true'> {{ 7 * 7 }} hello")
        expect(hostile.first).to_be_visible()
    assert stepped.evaluate("window.hacked") is None


def test_a_failed_decision_is_shown_with_its_reason(stepped: Page) -> None:
    turn_to(stepped, "Agents")
    stepped.locator(".mesa-llm-pick").click()
    stepped.get_by_text("2 · Villager 2").click()
    expect(stepped.locator(".agent-step .line.failed")).to_contain_text("Unparsed: the reply names no action.")


def test_reset_builds_a_model_of_the_parameters(stepped: Page) -> None:
    page = stepped
    page.locator(".v-slider__thumb-container").focus()
    page.keyboard.press("ArrowRight")
    reset_to_choices(page)
    expect(page.get_by_text("This run has")).to_be_visible()
    expect_step(page, "1")
    press(page, "Reset anyway")
    expect_step(page, "0")
    expect(page.get_by_text("Press Reset to apply changes")).to_have_count(0)
    press(page, "Step")
    expect(page.locator(".tile", has_text="decisions")).to_have_text(re.compile(r"5\s*decisions"))


def test_play_runs_on_any_tab_until_pause(page: Page) -> None:
    open_ready(page, "/rules")
    press(page, "Play")
    for tab in page.get_by_role("tab").all():
        tab.click()
        expect(tab).to_have_attribute("aria-selected", "true")
    expect_step(page, r"[3-9]|\d\d+")
    press(page, "Pause")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_enabled()
    status = page.locator(".mesa-llm-status")
    expect(status).to_have_text(re.compile(r"^Step \d+ finished\.$"))
    stood = status.inner_text().removesuffix(" finished.")
    expect(page.locator(".mesa-llm-time")).to_have_text(stood)
    page.wait_for_timeout(700)
    assert page.locator(".mesa-llm-time").inner_text() == stood


def test_the_page_answers_while_agents_think_and_stops_in_the_middle(page: Page) -> None:
    open_ready(page, "/slow")
    press(page, "Step")
    expect(page.get_by_text("0 of 3 decided")).to_be_visible()
    turn_to(page, "Agents")
    expect(page.get_by_text("Persona")).to_be_visible()
    expect(page.get_by_text("0 of 3 decided")).to_be_visible()
    press(page, "Stop")
    expect(page.get_by_text("Stopped while agents were deciding")).to_be_visible()
    expect_step(page, "0")


def test_tab_opened_during_a_long_step_shows_nothing_of_the_previous_tab(page: Page) -> None:
    open_ready(page, "/pondering")
    space = page.get_by_role("img", name="Space")
    expect(space).to_be_visible()
    press(page, "Step")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_enabled()
    page.get_by_role("tab", name="Agents", exact=True).click()
    expect(space).to_have_count(0, timeout=3000)
    expect_step(page, "0")
    expect(page.get_by_text("Persona")).to_be_visible()


def play(page: Page, path: str) -> None:
    """Open a page, play its first agent, and make a step."""
    open_ready(page, path)
    choose(page, "Language model", "you (rules for the other agents)")
    expect(page.get_by_text("You are playing. Press Step")).to_be_visible()
    press(page, "Step")


def pay(page: Page, target: str, amount: str) -> None:
    """Fill in whom the person pays how much, and press at once; the form of the payment before has to be gone."""
    expect(page.get_by_label("Target")).to_have_count(0)
    press(page, "Allocate")
    expect(page.get_by_label("Target")).to_be_visible()
    page.wait_for_timeout(500)  # a field listens a moment after it is seen, and nobody types sooner
    page.get_by_label("Target").fill(target)
    page.get_by_label("Amount").fill(amount)
    press(page, "Do this")


def test_a_person_answers_from_the_page(page: Page) -> None:
    play(page, "/rules")
    expect(page.get_by_text("You stand on the square.")).to_be_visible()
    press(page, "Greet")
    page.get_by_role("textbox", name="words").fill("Good evening")
    press(page, "Do this")
    expect_step(page, "1")
    expect(page.get_by_text("You are playing. Press Step")).to_be_visible()
    expect(page.get_by_text("You stand on the square.")).to_have_count(0)
    press(page, "Show everything")
    turn_to(page, "Agents")
    expect(page.locator("td", has_text="Good evening").first).to_be_visible()


def test_a_person_does_several_things_with_figures_of_their_own(page: Page) -> None:
    play(page, "/economy")
    pay(page, "2", "12.34")
    expect(page.get_by_text("1. allocate(target: 2, amount: 12.34)")).to_be_visible()
    pay(page, "77", "5")
    refusal = page.get_by_text("This is not one of the options.")
    expect(refusal).to_be_visible()
    page.wait_for_timeout(500)  # what a field was left with arrives late, and nobody types sooner
    page.get_by_label("Target").fill("2")
    expect(refusal).to_have_count(0)
    press(page, "Do this")
    expect(page.get_by_text("then … (up to 1 more)")).to_be_visible()
    press(page, "Done")
    expect_step(page, "1")
    press(page, "Show everything")
    turn_to(page, "Agents")
    expect(page.locator("tr", has_text="allocate(amount: 12.34, target: 2)")).to_be_visible()
    expect(page.locator("tr", has_text="allocate(amount: 5.0, target: 2)")).to_be_visible()


def test_a_model_that_cannot_be_built_says_why(page: Page) -> None:
    open_ready(page, "/rules")
    page.get_by_label("Seed").fill("forty-two")
    page.get_by_label("Seed").press("Enter")
    expect(page.get_by_text("rng is the seed, a whole number")).to_be_visible()
    press(page, "Step")
    expect_step(page, "0")
    page.get_by_label("Seed").fill("8")
    page.get_by_label("Seed").press("Tab")
    expect(page.get_by_text("rng is the seed, a whole number")).to_have_count(0)
    expect(page.get_by_label("Seed")).to_have_value("8")
    press(page, "Step")
    expect_step(page, "1")


def test_reset_click_counts_when_the_seed_is_committed_on_mouse_down(page: Page) -> None:
    open_ready(page, "/newcomer")
    press(page, "Step")
    expect_step(page, "1")
    page.get_by_label("Seed").fill("31")
    page.get_by_role("button", name="Reset", exact=True).hover()
    page.mouse.down()
    expect(page.get_by_text("Press Reset to apply changes")).to_be_visible()
    page.mouse.up()
    expect_step(page, "0")
    expect(page.get_by_label("Seed")).to_have_value("31")


def test_a_server_that_is_told_to_end_closes_the_run_logs_of_its_pages(browser: Browser, tmp_path: Path) -> None:
    log = tmp_path / "village.sqlite"
    with serve_guarded(tmp_path, VILLAGE_LOG=str(log)) as served, opened(browser, served) as page:
        open_ready(page, "/recorded")
        press(page, "Step")
        expect(page.get_by_text("0 of 3 decided")).to_be_visible()
        assert log.with_name("village.sqlite-wal").exists()
        served.process.terminate()
        assert served.process.wait(60) == 0
    assert not log.with_name("village.sqlite-wal").exists()


def test_the_budget_of_a_server_holds_for_all_its_pages(browser: Browser, endpoint: Endpoint, tmp_path: Path) -> None:
    options = ("--max-calls", "5")  # a step of three villagers takes three
    with serve_guarded(tmp_path, *options) as served, opened(browser, served) as page:
        ask_endpoint(open_ready(page, "/rules"), endpoint)
        expect(page.get_by_text("Step 1 finished")).to_be_visible()
        ask_endpoint(open_ready(page, "/newcomer"), endpoint)
        expect(page.get_by_text("the budget of 5 calls is spent")).to_be_visible()
    assert len(endpoint.authorizations) == 5


def test_what_is_typed_while_a_model_plays_stays(page: Page) -> None:
    open_ready(page, "/rules")
    press(page, "Play")
    page.get_by_label("Seed").fill("")
    for digit in "1234":  # a step is drawn between any two
        page.get_by_label("Seed").press_sequentially(digit)
        step = page.locator(".mesa-llm-time").inner_text()
        expect(page.locator(".mesa-llm-time")).not_to_have_text(step)
    expect(page.get_by_label("Seed")).to_have_value("1234")


def test_a_seed_typed_while_a_model_plays_is_that_of_the_next_model(page: Page) -> None:
    open_ready(page, "/newcomer")
    press(page, "Play")
    expect_step(page, r"[1-9]\d*")
    page.get_by_label("Seed").fill("77")
    page.get_by_label("Greeting", exact=True).fill("Hullo to YOU")
    page.get_by_label("Greeting", exact=True).press("Tab")
    reset_to_choices(page)
    expect_step(page, "0")
    expect(page.get_by_label("Seed")).to_have_value("77")
    expect(page.get_by_label("Greeting", exact=True)).to_have_value("Hullo to YOU")
    press(page, "Step")
    expect_step(page, "1")
    turn_to(page, "Data")
    with page.expect_download() as download:
        page.get_by_role("button", name="Actions (CSV)").click()
    assert download.value.suggested_filename == "hamlet-seed-77-step-1-actions.csv"
    assert "Hullo to YOU" in Path(download.value.path()).read_text()


def test_page_of_a_bare_model_shows_space_measures_and_parameters(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    open_ready(page, "/newcomer")
    expect(page.get_by_text("Who greets whom in a hamlet?")).to_be_visible()
    press(page, "Step")
    expect_step(page, "1")
    boxes = [page.get_by_role("img", name=name).bounding_box() for name in ("Space", "Greetings")]
    assert all(box is not None and box["width"] > 350 for box in boxes)
    assert len({box["y"] < 500 and round(box["x"]) for box in boxes if box}) == 2  # side by side
    expect(page.get_by_text("Villagers: 4")).to_be_visible()
    page.get_by_role("button", name="Inspect 3 · Villager 3").click()
    expect(page.get_by_text("Your name is Villager 3.")).to_be_visible()


def test_plots_are_downloaded_as_png_and_svg(page: Page) -> None:
    open_ready(page, "/newcomer")
    for label, name, start in (("PNG", "greetings", b"\x89PNG"), ("SVG", "space", b"<?xml")):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Download {name.capitalize()} as {label}").click()
        assert download.value.suggested_filename == f"hamlet-{name}-step-0.{label.lower()}"
        assert Path(download.value.path()).read_bytes().startswith(start)


def test_a_run_that_was_reset_is_gone_on_with(page: Page) -> None:
    open_ready(page, "/newcomer")
    page.get_by_label("Seed").fill("123")
    page.get_by_label("Seed").press("Enter")
    expect(page.get_by_text("seed 123.")).to_be_visible()
    press(page, "Step")
    expect_step(page, "1")
    press(page, "Reset")
    expect_step(page, "0")
    page.get_by_label("Seed").fill("5")
    page.get_by_label("Seed").press("Enter")
    turn_to(page, "Data")
    page.get_by_text("seed 123").locator("xpath=..").get_by_role("button", name="Resume").click()
    expect_step(page, "1")
    expect(page.get_by_label("Seed")).to_have_value("123")


def test_play_stops_and_says_why_at_the_top_when_every_decision_fails(page: Page) -> None:
    open_ready(page, "/rules")
    choose(page, "Language model", "another model …")
    page.get_by_label("Model", exact=True).fill("m")
    page.get_by_label("Endpoint").fill("http://127.0.0.1:9/v1")
    page.get_by_label("Endpoint").press("Enter")
    expect(page.get_by_text("Decisions by m;")).to_be_visible()
    press(page, "Play")
    alarm = page.locator(".mesa-llm-main").get_by_role("alert")
    expect(alarm).to_contain_text("All 3 decisions of step 1 failed. ServerError: the connection to")
    expect(alarm).to_contain_text("Check the language model under Parameters")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_enabled()
    expect_step(page, "1")


def test_the_studies_share_a_page_on_which_one_is_chosen_and_run(page: Page) -> None:
    open_ready(page, "/studies")
    choose(page, "Study", "rumours")
    expect(page.locator(".v-toolbar__title")).to_have_text("Posts on truths and on rumours")
    expect(page.get_by_text("Ready.", exact=True)).to_be_visible()
    before = page.locator(".mesa-llm-plot svg").first.inner_html()
    press(page, "Step")
    expect_step(page, "1")
    page.wait_for_function("before => document.querySelector('.mesa-llm-plot svg').innerHTML !== before", arg=before)
    expect(page.get_by_role("alert")).to_have_count(0)
