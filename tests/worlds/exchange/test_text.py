"""What traders are shown: books, figures, reports, the forum."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from pydantic import TypeAdapter

from mesa_llm.engine.decision import MAX_TOOL_RESULT
from mesa_llm_models.stock_agent.world import COMPANIES, Lending, RateChange, Screen
from mesa_llm_models.stock_agent.world.text import BACKGROUNDS
from tests.worlds.exchange.small_exchange import exchange, go_to, offered, refusal


def test_each_trader_sees_what_the_one_before_did() -> None:
    world = exchange()
    go_to(world, "trade")
    assert "Offers to sell A, best first: none." in world.observe(2).text
    world.sell(1, "A", 5, 30.5)
    assert "Offers to sell A, best first: trader 1: 5 at 30.5." in world.observe(2).text
    assert world.observe(2).facts.asks == {"A": (30.5, 5), "B": None}


def test_a_long_book_is_cut_where_the_screen_says() -> None:
    world = exchange(traders=5, screen=Screen(max_orders=2))
    go_to(world, "trade")
    for trader in (1, 2, 3, 4):
        world.sell(trader, "A", 1, 30.0 + trader)
    assert "trader 1: 1 at 31.0; trader 2: 1 at 32.0; and 2 more." in world.observe(5).text


def test_company_figures_are_shown_in_the_first_session_only() -> None:
    world = exchange()
    assert "past quarters" not in world.observe(1).instructions
    go_to(world, "trade")
    assert "past quarters" in world.observe(1).instructions
    world.end_step()
    assert "past quarters" not in world.observe(1).instructions


def test_what_is_known_of_the_companies_is_shown_besides_their_figures() -> None:
    world = exchange()
    go_to(world, "trade")
    instructions = world.observe(1).instructions
    for fact in ("new chief executive", "results over the last five", "promised to do more for social", "subsidies"):
        assert fact in instructions
    for company in COMPANIES.values():
        assert BACKGROUNDS[company.stock] in instructions


def test_nobody_is_told_on_which_day_the_exchange_closes() -> None:
    short, long = exchange(days=7), exchange(days=8)
    assert short.observe(1) == long.observe(1)


def test_reports_are_shown_on_their_days() -> None:
    world = exchange(days=13, sessions=1)
    reported = []
    while not world.is_over:
        if world.takes_turns and "reports today" in world.observe(1).instructions:
            reported.append(world.now.day)
        world.end_step()
    assert reported == [12]


def test_posts_are_read_the_next_day_and_by_author() -> None:
    world = exchange()
    go_to(world, "post")
    world.post_message(2, "Selling B.")
    world.post_message(1, " Buying A. ")
    assert not world.has_posts(1)
    world.end_step()
    assert "read_forum" in offered(world, 3)
    assert world.read_forum(3) == "On the forum:\nTrader 1: “Buying A.”\nTrader 2: “Selling B.”"
    assert "Selling B." not in world.observe(3).text


def test_readers_see_a_fair_sample_of_too_many_posts_and_their_number() -> None:
    world = exchange(traders=50)
    go_to(world, "post")
    for trader in range(1, 51):
        world.post_message(trader, f"Trader {trader} writes. " + "I expect much of A and little of B. " * 8)
    world.end_step()
    read = [world.read_forum(reader) for reader in range(1, 51)]
    authors = Counter(int(author) for text in read for author in re.findall(r"^Trader (\d+):", text, re.MULTILINE))
    assert set(authors) == set(range(1, 51))
    assert max(authors.values()) < 3 * min(authors.values()) + 10
    assert read[0].startswith(f"On the forum ({len(re.findall('^Trader', read[0], re.MULTILINE))} of 50 posts, drawn")
    assert max(map(len, read)) <= MAX_TOOL_RESULT
    assert world.read_forum(1) == read[0]


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 2001])
def test_posts_that_say_nothing_or_too_much_are_refused(text: str) -> None:
    world = exchange()
    go_to(world, "post")
    assert "write 1 to 2000" in refusal(world.post_message, 1, text)


def test_a_policy_changes_the_rates_and_is_announced() -> None:
    policy = RateChange(2, (0.01, 0.02, 0.03), "Money is cheap.")
    world = exchange(lending=Lending(rate_changes=(policy,)), screen=Screen(shows_posts=True))
    events = go_to(world, "post") + world.end_step()
    assert [(event.kind, event.text) for event in events] == [("policy_change", "Money is cheap.")]
    assert "type 0, 22 days, 1.00%" in world.observe(1).text
    assert "Announcement: Money is cheap." in world.observe(1).text


def test_facts_are_plain_values() -> None:
    facts = exchange().observe(1).facts
    assert TypeAdapter(type(facts)).dump_python(facts)["recent_prices"] == {"A": (30,), "B": (40,)}


def test_company_figures_add_up_to_those_of_the_program() -> None:
    # Sums over the twelve quarters (ten of B's net profit) in the StockAgent program's texts.
    sums = {stock: round(sum(company.revenue), 2) for stock, company in COMPANIES.items()}
    assert sums == {"A": 45414.87, "B": 10808.9}
    assert [len(company.net_profit) for company in COMPANIES.values()] == [12, 10]
    assert [report.day for report in COMPANIES["B"].reports] == [12, 78, 144, 210]


def test_the_cash_shown_can_be_spent_to_the_last_cent() -> None:
    world = exchange()
    world.market.accounts[1].cash = 100.009
    go_to(world, "trade")
    assert "You have 100.00 cash" in world.observe(1).text


def test_uncovered_orders_are_announced_as_cancelled_under_strict_rules() -> None:
    assert "is cancelled" in exchange().observe(1).instructions
    assert "is cancelled" not in exchange(rules="original").observe(1).instructions
