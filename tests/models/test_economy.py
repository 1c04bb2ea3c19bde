"""The economy: wages, goods, taxes, and money that stays."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm import ToolCall
from mesa_llm.errors import ConfigError
from mesa_llm_models.economy.model import EconomyModel, EconomyScenario

NAN, INF = float("nan"), float("inf")


def run(steps: int, **parameters: Any) -> EconomyModel:
    model = EconomyModel(**parameters)
    for _ in range(steps):
        model.step()
    return model


@pytest.mark.parametrize("llm", ["rule", "random"])
def test_money_goods_and_people_add_up_in_every_step(llm: str) -> None:
    model = EconomyModel(rng=4, llm=llm)
    before, stocks = model.money, {player.unique_id: 0.0 for player in model.agents}
    for _ in range(30):
        model.step()
        assert model.money == pytest.approx(before, rel=1e-12)
        assert sum(player.workforce for player in model.agents) <= 1000
        for player in model.agents:
            own = player.account
            sold = own.sales / own.price if own.price > 0 else 0.0
            assert own.stock == pytest.approx(stocks[player.unique_id] + own.output - sold, abs=1e-6)
            assert min(own.balance, own.workforce, own.stock) >= -1e-9
            stocks[player.unique_id] = own.stock


arguments = st.floats() | st.floats(0, 20_000) | st.integers(-10, 2000) | st.text(max_size=3) | st.none()
acts = st.tuples(
    st.integers(1, 3),
    st.sampled_from(["set_price", "hire", "fire", "invest", "allocate"]),
    arguments,
    st.sampled_from(["households", "1", "2", "9", ""]),
)


@settings(max_examples=25)
@given(st.lists(acts, max_size=12))
def test_whatever_is_done_money_stays_and_nobody_owes(done: list[Any]) -> None:
    model = EconomyModel(n_agents=3, rng=1)
    names = {"set_price": "price", "hire": "count", "fire": "count", "invest": "amount", "allocate": "amount"}
    for agent_id, action, value, target in done:
        given_target = {"target": target} if action == "allocate" else {}
        model.apply({agent_id: ToolCall(action, {names[action]: value, **given_target})})
        assert model.money == pytest.approx(40_000, rel=1e-12)
        assert all(player.balance >= 0 for player in model.agents)
        assert model.households_money >= 0


@pytest.mark.parametrize("action", [("hire", "count"), ("invest", "amount"), ("set_price", "price")])
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (NAN, "finite number"),
        (-INF, "finite number"),
        (-5, "greater than or equal to|greater than 0"),
        (1e308, "less than or equal to|maximum size"),
        ("many", "should be a valid"),
        (None, "should be a valid"),
    ],
)
def test_what_is_no_amount_is_refused_with_a_reason(action: tuple[str, str], value: Any, why: str) -> None:
    model = EconomyModel(n_agents=3, rng=1)
    done = model.apply({2: ToolCall(action[0], {action[1]: value})})
    ((outcome,),) = [outcomes for agent, outcomes in done.items() if agent.unique_id == 2]
    assert not outcome.ok
    assert re.search(why, outcome.result)


def test_hiring_is_paid_every_step() -> None:
    model = EconomyModel(n_agents=2, rng=1)
    model.apply({2: ToolCall("hire", {"count": 100})})
    assert [player.balance for player in model.agents] == [10_000, 9_000]
    assert model.households_money == 11_000


def test_only_the_government_enacts_and_only_firms_hire() -> None:
    model = EconomyModel(n_agents=2, rng=1)
    governor, firm = (set(player.toolbox(player.observe())) for player in model.agents)
    assert "apply_policy" in governor - firm
    assert "hire" in firm - governor


def test_a_tax_flows_to_the_government() -> None:
    model = run(3, rng=1)
    assert model.tax_rate == 0.1
    sales = math.fsum(player.account.sales for player in model.agents)
    before = model.government_money
    model.apply({})
    assert sales > 0
    assert model.government_money > before


def test_an_economy_whose_firms_hoard_their_profits_falls_deeper() -> None:
    paying, hoarding = (run(60, rng=1, payout=payout) for payout in (0.9, 0.0))
    lows = [m.datacollector.get_model_vars_dataframe()["employment_rate"][20:].min() for m in (paying, hoarding)]
    assert lows[0] > 0.2 > 0.1 > lows[1]
    assert hoarding.households_money < 0.01 * hoarding.money


def test_under_the_original_rules_work_is_free_and_nothing_is_made() -> None:
    model = run(20, rng=1, rules="original")
    assert (model.money, model.total_output, model.total_investment) == (0, 0, 0)
    assert model.employment_rate > 0.95


def test_a_firm_reads_its_books_and_the_others() -> None:
    model = run(1, rng=1)
    firm = list(model.agents)[1]
    seen = firm.observe()
    assert f"You are [2], a producer, with a balance of ${firm.balance:.2f}." in seen.text
    assert "[1] " in seen.text
    assert "at most three things" in firm.prompt(seen)[0].content
    assert seen.max_actions == 3


def test_the_baseline_mostly_does_what_can_be_done() -> None:
    done: Any = run(20, rng=2, llm="random").runlog.actions()
    assert done["ok"].mean() > 0.7
    assert {"hire", "set_price", "invest"} <= set(done["action"])


def test_a_new_firm_prices_by_what_its_workers_will_make() -> None:
    model = EconomyModel(n_agents=9, rng=1, productivity=10.0)
    model.step()
    assert all(1.1 <= player.price <= 1.5 for player in model.agents if player.price)
    assert any(player.price for player in model.agents)


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"payout: .*finite"):
        EconomyModel(payout=NAN)


def test_a_scenario_sets_the_parameters() -> None:
    model = EconomyModel(scenario=EconomyScenario(n_agents=3, government=False, wage=5.0, rng=2))
    assert {player.role for player in model.agents} == {"producer"}
    assert model.world.parameters.wage == 5.0
