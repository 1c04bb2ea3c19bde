"""What a person in an economic model would know and needs stands in its observation, and is right."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm import ToolCall
from mesa_llm_models.auction_arena.model import AuctionArena
from mesa_llm_models.auction_arena.text import whole_sentences
from mesa_llm_models.beer.model import BeerGame
from mesa_llm_models.econ_agent.model import EconAgentModel
from mesa_llm_models.economy.model import EconomyModel
from mesa_llm_models.market.model import MarketModel
from mesa_llm_models.stock_agent.model import StockAgentModel

Facts = dict[str, str]


def chain_in_week_six(**parameters: Any) -> BeerGame:
    """Play five weeks by rule, and begin the sixth."""
    game = BeerGame(rng=1, **parameters)
    game.run_for(5)
    game.observations()
    return game


def beer_facts(game: BeerGame, index: int) -> Facts:
    """Compute by hand, from the books of the chain, what a player needs."""
    own, above = game.chain[index], game.chain[index + 1 : index + 2]
    in_mail = sum(above[0].mail) + above[0].backlog if above else 0
    return {
        "position": f"the {own.position}:",
        "incoming": f"this week: {game.demands[-1] if not index else own.incoming} case",
        "pipeline": f"{own.shipments[0]} will {'arrive' if above else 'be ready'} next week",
        "on order": f"{sum(own.shipments) + in_mail} cases, of which",
        "stock": f"you have {own.stock} case",
        "backlog": f", is {own.backlog} case",
        "delay": f"in week {game.now + (4 if above else 3)}",
        "cost of the week": f"costs you ${own.stock * 0.5 + own.backlog:.2f}",
        "cost so far": f"have cost you ${own.cost:.2f}",
    }


@pytest.mark.parametrize("index", range(4))
def test_a_player_of_the_beer_game_reads_its_books(index) -> None:
    game = chain_in_week_six()
    text = game.chain[index].observe().text
    assert {name: fact for name, fact in beer_facts(game, index).items() if fact not in text} == {}


def test_players_of_the_beer_game_differ_and_the_rule_plays_the_same_with_and_without_people() -> None:
    drawn, alike = chain_in_week_six(), chain_in_week_six(people="alike")
    assert len({player.config.persona for player in drawn.chain} - {""}) == 4
    assert {player.config.persona for player in alike.chain} == {""}
    assert [player.orders for player in drawn.chain] == [player.orders for player in alike.chain]
    assert [player.config for player in drawn.chain] == [player.config for player in chain_in_week_six().chain]


# -- the economy


def economy_after_sales(**parameters: Any) -> EconomyModel:
    """Return an economy of a government and three firms in which goods have been sold: 300 made, 167 sold."""
    model = EconomyModel(n_agents=4, rng=1, labor_force=1000, **parameters)
    policy = {"policy_name": "tax", "description": "A tenth.", "variable": "tax_rate", "value": "10%"}
    decisions = {
        1: [ToolCall("apply_policy", policy)],
        2: [ToolCall("set_price", {"price": 50.0}), ToolCall("hire", {"count": 100})],
        3: [ToolCall("set_price", {"price": 100.0}), ToolCall("hire", {"count": 200})],
    }
    model.apply(decisions)
    return model


ECONOMY_FACTS: dict[str, tuple[int, str]] = {
    "what households can buy": (2, "spend about $3870.00 in this step"),
    "demand at what price": (2, "at $70.06 a good, that buys 55.24"),
    "what others ask": (2, "Yara Castillo, producer: asks $100.00 a good and employs 200."),
    "goods made and sold by all": (2, "300 goods were made and 167 sold, at $70.06 on average"),
    "what a good costs to make": (2, "a good costs you $10.00 to make"),
    "the price that pays": (2, "with the 10% tax on its sale you lose money below $11.11"),
    "stock": (3, "sold 67 and took $6700.00 before 10% tax; 133 goods are unsold"),
    "weeks of cash": (2, "$1000.00 in all; your balance pays for 13 such steps"),
    "what can be sold": (2, "you will have 100 goods to sell"),
    "a firm without a price": (4, "You have no price: until you set one, you sell nothing."),
    "a firm without workers": (4, "Your balance would pay 1000 workers for one step."),
    "tax received": (1, "The tax takes 10% of every sale; in the last step you took in $1170.00."),
}


@pytest.mark.parametrize("fact", ECONOMY_FACTS)
def test_a_participant_of_the_economy_reads_what_it_needs(fact) -> None:
    agent_id, text = ECONOMY_FACTS[fact]
    model = economy_after_sales()
    assert text in next(agent for agent in model.agents if agent.unique_id == agent_id).observe().text


def test_a_firm_is_offered_prices_that_a_person_would_think_of() -> None:
    model = economy_after_sales()
    prices = {firm.unique_id: firm.observe().limits["set_price.price"] for firm in list(model.agents)[1:]}
    assert prices == dict.fromkeys((2, 3, 4), (0, 351))  # five times what goods cost
    assert EconomyModel(n_agents=2, rng=1, wage=0).world.observe(2).limits["set_price.price"] == (0, 50)


def test_owners_of_firms_differ_and_the_rule_does_business_in_the_same_way_with_and_without_people() -> None:
    drawn, alike = (EconomyModel(rng=1, people=people) for people in ("drawn", "alike"))
    for model in (drawn, alike):
        model.run_for(5)
    assert len({player.config.persona for player in drawn.agents} - {""}) == 9
    assert {player.config.persona for player in alike.agents} == {""}
    assert drawn.results() == alike.results()


# -- the market, the auction, the exchange, the households


def test_a_trader_reads_what_a_share_is_worth_and_what_its_cash_buys() -> None:
    model = MarketModel(n_agents=1, n_questions=2, horizon=4, rng=1)
    (trader,) = model.agents
    first, last = model.world.ledger.markets
    trader.hints = {first: 0.24, last: 0.5}
    text = trader.observe().text
    assert "24% for yes: a YES share is worth $0.24 to you and costs $0.500, more than that" in text
    assert "a NO share is worth $0.76 to you and costs $0.500, less than that" in text
    assert "a YES share is worth $0.50 to you and costs $0.500, about as much" in text
    assert "The most that you could spend, $1000.00, would buy 1333.33 YES shares and move YES to $0.900" in text
    model.run_for(2)
    offered = trader.observe().options
    assert {market for name, markets in offered.items() if name.endswith("market_id") for market in markets} <= {last}


def test_a_bidder_reads_its_purse_its_estimate_and_what_the_next_bid_would_earn() -> None:
    model = AuctionArena(n_lots=2, order="ascending", rng=1, planning="none", budget=12_000)
    text = model.bidders[1].observe().text
    assert "You have $12000 left for this lot and 1 later one." in text
    assert "Now: Widget A. It starts at $1000, and you value it at $2200." in text
    assert "at least $1000, which by your estimate would earn you $1200" in text
    assert "above $2200 you lose" in text


def test_reasons_that_were_cut_are_read_again_up_to_their_last_whole_sentence() -> None:
    assert whole_sentences("I want A. I can do without B. Then I wou") == "I want A. I can do without B."
    assert whole_sentences("I want") == ""


def test_an_investor_reads_what_it_is_worth_and_what_its_cash_buys() -> None:
    model = StockAgentModel(n_agents=2, days=1, rng=1)
    model.run_for(1)
    trader = next(iter(model.agents))
    facts, text = trader.facts, trader.observe().text
    assert facts.worth == pytest.approx(
        facts.cash + 30 * facts.shares["A"] + 40 * facts.shares["B"] - trader.account.debt
    )
    assert f"buy up to {int(facts.cash // 30)} shares of A or {int(facts.cash // 40)} shares of B" in text
    assert trader.observe().limits["buy.price"] == (15, 80)


def test_a_household_reads_what_work_brings_after_tax_and_what_its_money_buys() -> None:
    model = EconAgentModel(n_agents=2, rng=1, tax="flat", flat_rate=0.2)
    household = model.households[0]
    facts, text = household.facts, household.observe().text
    pay = round(facts.salary, 2) - round(0.2 * facts.salary, 2)
    assert f"you have ${facts.coin + pay:.2f} in all, which buys {(facts.coin + pay) / facts.price:.1f} goods" in text
    assert "Interest is paid at the end of the year, in 12 months" in text


@pytest.mark.parametrize("model", [MarketModel, AuctionArena, StockAgentModel, EconAgentModel])
def test_the_people_of_a_model_differ_and_rules_do_the_same_with_and_without_them(model) -> None:
    drawn, alike = (model(n_agents=3, rng=1, people=people) for people in ("drawn", "alike"))
    assert len({agent.config.persona for agent in drawn.agents}) == 3
    drawn.run_for(1)
    alike.run_for(1)
    assert str(drawn.results()) == str(alike.results())
