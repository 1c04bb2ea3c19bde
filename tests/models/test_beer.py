"""The beer game keeps its books as the board does, swings as published, and shows what it is told to show."""

from typing import Any

import pytest

from mesa_llm import ScriptedLLM, ToolCall
from mesa_llm.records import Request
from mesa_llm_models.beer.model import BeerGame


def play_week(game: BeerGame, *orders: int) -> None:
    """Let the positions, from the retailer up, order what they are told."""
    game.observations()
    calls = [ToolCall("place_order", {"cases": cases}) for cases in orders]
    game.apply(dict(zip(game.chain, calls, strict=True)))


def prompts_of(weeks: int = 1, **options: Any) -> list[tuple[int, str]]:
    """Return who read what in a game in which everybody says its number."""
    prompts: list[tuple[int, str]] = []

    def listen(request: Request) -> ToolCall:
        prompts.append((request.salt.agent, request.messages[-1].content))
        if request.tools[0].name == "place_order":
            return ToolCall("place_order", {"cases": 4})
        return ToolCall("tell_neighbours", {"text": f"This is number {request.salt.agent}."})

    BeerGame(rng=1, llm=ScriptedLLM(listen), memory="none", **options).run_for(weeks)
    return prompts


def test_an_order_travels_two_weeks_its_cases_two_more_and_brewing_takes_three() -> None:
    """By hand: the retailer and the factory order 10 in the first week, and demand is 8 in the fifth."""
    game = BeerGame(rng=1)
    play_week(game, 10, 4, 4, 10)
    for _ in range(4):
        play_week(game, 4, 4, 4, 4)
    assert [position.stocks for position in game.chain] == [
        [12, 12, 12, 12, 14],
        [12, 12, 6, 6, 6],
        [12, 12, 12, 12, 12],
        [12, 12, 12, 18, 18],
    ]
    assert game.results()["costs"] == {"retailer": 31, "wholesaler": 21, "distributor": 30, "factory": 36}


def test_what_cannot_be_shipped_is_owed_at_twice_the_cost_of_stock() -> None:
    game = BeerGame(rng=1)
    for _ in range(9):
        play_week(game, 4, 4, 4, 4)
    assert game.chain[0].stocks == [12, 12, 12, 12, 8, 4, 0, -4, -8]
    assert game.chain[0].cost == 4 * 6 + 4 + 2 + 0 + 4 + 8


def test_orders_swing_more_upstream_unless_the_supply_line_counts() -> None:
    """Sterman (1989): with the estimated parameters, a third of what is on order is taken into account."""
    swinging, calm = BeerGame(rng=1), BeerGame(rng=1, theta=0, alpha=1, beta=1, desired_stock=28)
    for game in (swinging, calm):
        game.run()
    ratios = list(swinging.results()["bullwhips"].values())
    assert ratios == sorted(ratios)
    assert (swinging.results()["cost"], swinging.results()["peak_order"]) == (2698, 33)
    assert (calm.results()["cost"], calm.results()["peak_order"]) == (312, 12)
    assert calm.results()["bullwhip"] < 2 < 50 < ratios[-1]
    assert (len(swinging.demands), swinging.running) == (36, False)


@pytest.mark.parametrize("shares_stock", [False, True])
def test_the_stock_of_others_is_shown_only_if_it_is_shared(shares_stock) -> None:
    assert all(("factory 12" in text) is shares_stock for _, text in prompts_of(shares_stock=shares_stock))


def test_neighbours_read_each_other_before_they_order_and_nobody_else_does() -> None:
    orders = {agent: text for agent, text in prompts_of(may_talk=True) if "How many cases" in text}
    heard = {agent: [n for n in range(1, 5) if f"This is number {n}." in text] for agent, text in orders.items()}
    assert heard == {1: [2], 2: [1, 3], 3: [2, 4], 4: [3]}


def test_a_game_with_messages_replays(tmp_path) -> None:
    digests = []
    for replay in (False, True):
        game = BeerGame(rng=1, may_talk=True, llm="random", log=tmp_path / "game.sqlite", replay=replay)
        game.run_for(3)
        digests.append(game.runlog.digest)
        game.close()
    assert digests[0] == digests[1]


def test_whoever_fails_orders_nothing_and_the_others_are_asked_all_the_same() -> None:
    game = BeerGame(rng=1, may_talk=True, attempts=1, llm=ScriptedLLM(lambda request: "beer"))
    game.step()
    assert [position.orders for position in game.chain] == [[0]] * 4
    assert len(game.runlog.failures()) == 8


def test_the_best_that_the_rule_can_do_costs_what_it_did_on_the_board() -> None:
    """Sterman (1989), benchmark costs: $204 in all; his sum has one week more at the stock of the start."""
    game = BeerGame(rng=1, theta=0, alpha=1, beta=1, desired_stock=28)
    game.chain[-1].expected -= 8  # S′ = 20 for the factory, which waits three weeks where the others wait four
    game.run()
    assert game.results()["cost"] + len(game.chain) * 12 * 0.5 == 204
