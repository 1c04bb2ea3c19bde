"""What a person in an economic model would know and needs stands in its observation, and is right."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm import ToolCall
from mesa_llm_models.beer.model import BeerGame
from mesa_llm_models.economy.model import EconomyModel

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
