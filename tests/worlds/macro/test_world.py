"""The rules of EconAgent's economy."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ToolCall
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm.world import Rules, World
from mesa_llm_models.econ_agent.world.jobs import BAND_EDGES, TITLES, bands_of, draw_offer
from mesa_llm_models.econ_agent.world.rules import (
    MonthlyEconomy,
    consumption_level,
    draw_age,
    draw_households,
    level_share,
    sell_goods,
    taylor_rate,
)
from mesa_llm_models.econ_agent.world.state import (
    NO_TAX,
    UNEMPLOYED,
    US_TAX,
    Households,
    MacroParameters,
    TaxSchedule,
    flat_tax,
)
from mesa_llm_models.econ_agent.world.world import Macroeconomy

incomes = st.floats(0, 1e7)
RULES: tuple[Rules, ...] = ("original", "corrected")


def economy(
    skills: list[float] | None = None, rules: Rules = "corrected", seed: int = 1, **options: float
) -> MonthlyEconomy:
    """Build an economy of few households without savings."""
    count = len(skills or [10.0, 20.0, 30.0])
    zeros = [0] * count
    homes = Households(np.array(skills or [10.0, 20.0, 30.0]), np.array([40] * count), np.array(zeros), np.array(zeros))
    return MonthlyEconomy(homes, random.Random(seed), rules=rules, **options)  # type: ignore[arg-type]


def months(model: MonthlyEconomy, count: int, works: int = 1, level: int = 25) -> MonthlyEconomy:
    """Let everyone do the same for some months."""
    size = len(model.households)
    for _ in range(count):
        model.run_month(np.full(size, works, dtype=bool), np.full(size, level))
    return model


def plan(world: Macroeconomy, agent_id: int, **arguments: object) -> str:
    """Act through the tool box, as models do."""
    return ToolBox.of(object(), agent_id, [world]).call(ToolCall("plan_month", arguments))


# Tax


def test_an_income_is_taxed_slice_by_slice() -> None:
    schedule = TaxSchedule((0.0, 100.0, 300.0), (0.1, 0.2, 0.5))
    assert schedule.due([50.0, 200.0, 400.0]).tolist() == pytest.approx([5.0, 30.0, 100.0])


def test_a_floor_belongs_to_the_slice_it_begins() -> None:
    assert TaxSchedule((0.0, 100.0), (0.1, 0.2)).marginal([99.99, 100.0]).tolist() == [0.1, 0.2]


@given(incomes, incomes)
def test_who_earns_more_keeps_more(one: float, other: float) -> None:
    low, high = sorted((one, other))
    net_income = np.array([low, high]) - US_TAX.due([low, high])
    assert 0 <= net_income[0] <= net_income[1] + 1e-9


def test_flat_and_no_tax() -> None:
    assert flat_tax(0.25).due(1000.0) == 250.0
    assert NO_TAX.due(1000.0) == 0.0


@pytest.mark.parametrize(("floors", "rates"), [((), ()), ((5.0,), (0.1,)), ((0.0, 9.0), (0.1,)), ((0.0,), (1.5,))])
def test_a_schedule_that_cannot_be_is_refused(floors: tuple[float, ...], rates: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="tax"):
        TaxSchedule(floors, rates)


# Spending levels, interest, skills, jobs


def test_the_grid_of_shares_keeps_its_levels() -> None:
    shares = [round(0.02 * level, 2) for level in range(51)]
    assert consumption_level(shares).tolist() == list(range(51))


def test_the_original_loses_a_level_in_two_places() -> None:
    shares = [round(0.02 * level, 2) for level in range(51)]
    lost = np.flatnonzero(consumption_level(shares, rules="original") != np.arange(51))
    assert [shares[place] for place in lost] == [0.58, 0.94]


@given(st.integers(0, 50), st.sampled_from(RULES))
def test_a_level_survives_as_a_share(level: int, rules: Rules) -> None:
    assert consumption_level(level_share(level), rules) == level


def test_an_economy_on_target_has_the_natural_rate_and_inflation() -> None:
    assert taylor_rate(0.02, 0.04, MacroParameters()) == pytest.approx(0.03)


@given(st.floats(-1, 1), st.floats(0, 1))
def test_the_interest_rate_is_never_negative(inflation: float, unemployment: float) -> None:
    assert taylor_rate(inflation, unemployment, MacroParameters()) >= 0


def test_the_original_ranks_households_by_wage_and_the_corrected_deals() -> None:
    ranked = draw_households(30, random.Random(1), rules="original").skill
    dealt = draw_households(30, random.Random(1)).skill
    assert sorted(dealt) == ranked.tolist() != dealt.tolist()


def test_ages_follow_the_quantiles_of_the_paper() -> None:
    rng = random.Random(5)
    ages = [draw_age(rng) for _ in range(4000)]
    assert (min(ages), max(ages)) == (18, 59)
    assert np.mean(ages) == pytest.approx(39.2, abs=0.6)
    assert np.std(ages) == pytest.approx(11.8, abs=0.5)


@given(st.floats(0, 1e9))
def test_a_salary_has_one_band(salary: float) -> None:
    (band,) = bands_of(salary)
    assert BAND_EDGES[band] <= salary
    assert band == 9 or salary < BAND_EDGES[band + 1]


def test_an_edge_lies_in_two_bands_of_the_original_and_the_upper_one_wins() -> None:
    assert bands_of(2454, "original") == (0, 1)
    assert draw_offer(2454, 0, "original", random.Random(1)) // 10 == 1


def test_the_original_leaves_the_offer_above_ten_million() -> None:
    assert draw_offer(2e7, 7, "original", random.Random(1)) == 7


def test_there_are_ten_different_titles_a_band() -> None:
    assert len(TITLES) == len(set(TITLES)) == 100


# The goods market


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 50)), min_size=1, max_size=20),
    st.floats(0, 1e4),
    st.floats(1, 1e3),
    st.randoms(use_true_random=False),
)
def test_nobody_spends_more_than_it_has_and_no_good_is_sold_twice(
    buyers: list[tuple[float, int]], goods: float, price: float, rng: random.Random
) -> None:
    coin, levels = np.array([coin for coin, _ in buyers]), np.array([level for _, level in buyers])
    order = rng.sample(range(len(buyers)), len(buyers))
    sales = sell_goods(order, coin, levels, goods, price)
    assert (sales.spending <= coin * (1 + 1e-12)).all()
    assert sales.goods_left >= 0
    assert sales.spending.sum() / price == pytest.approx(goods - sales.goods_left, rel=1e-6, abs=1e-6)


def test_the_last_buyer_gets_what_is_left_and_later_ones_nothing() -> None:
    sales = sell_goods([1, 0, 2], np.array([100.0] * 3), np.array([50] * 3), goods=15.0, price=10.0)
    assert sales.spending.tolist() == pytest.approx([50.0, 100.0, 0.0])
    assert sales.is_short.tolist() == [True, False, True]
    assert sales.demand == pytest.approx(30.0)


# Months

decisions = st.lists(
    st.tuples(st.lists(st.booleans(), min_size=3, max_size=3), st.lists(st.integers(0, 50), min_size=3, max_size=3)),
    min_size=1,
    max_size=40,
)


@settings(max_examples=40)
@given(decisions, st.integers(0, 10**6), st.sampled_from(RULES))
def test_savings_prices_and_wages_stay_within_bounds(plans: list, seed: int, rules: Rules) -> None:
    model = economy(rules=rules, seed=seed)
    for works, levels in plans:
        row = model.run_month(np.array(works), np.array(levels))
        assert (model.households.coin >= -1e-6).all()
        assert min(row.price, *model.households.skill) >= 1
        assert -1 <= row.imbalance <= 1


@settings(max_examples=40)
@given(decisions, st.integers(0, 10**6))
def test_money_is_conserved(plans: list, seed: int) -> None:
    model = economy(seed=seed)
    for works, levels in plans:
        model.run_month(np.array(works), np.array(levels))
    assert model.money == pytest.approx(0, abs=1e-6 * (1 + model.households.coin.sum()))


def test_the_original_makes_interest_from_nothing() -> None:
    before = months(economy(rules="original"), 11).money
    model = months(economy(rules="original"), 12)
    assert before == pytest.approx(0, abs=1e-6)
    assert model.money == pytest.approx(model.households.coin.sum() * (1 - 1 / 1.03))


def test_tax_is_handed_back_in_equal_parts() -> None:
    model = months(economy([10.0, 200.0]), 1, level=0)
    salaries = 168 * np.array([10.0, 200.0])
    credit = US_TAX.due(salaries).sum() / 2
    assert model.households.coin == pytest.approx(salaries - US_TAX.due(salaries) + credit)


@pytest.mark.parametrize(("rules", "income"), [("original", 1680.0), ("corrected", 0.0)])
def test_income_after_a_month_without_work(rules: Rules, income: float) -> None:
    model = months(economy([10.0], rules=rules), 1)
    months(model, 1, works=0)
    assert model.households.income[0] == income
    assert model.households.last_salary[0] == 1680.0


@pytest.mark.parametrize(("rules", "is_stale"), [("original", True), ("corrected", False)])
def test_consumption_after_a_month_without_shopping(rules: Rules, is_stale: bool) -> None:
    model = months(economy([10.0], rules=rules), 1, level=50)
    months(model, 1, level=0)
    assert (model.households.consumption[0] > 0) == is_stale


def test_a_glut_lowers_the_price_and_wages_and_a_shortage_raises_them() -> None:
    glut = months(economy(), 1, level=0)
    shortage = months(months(economy(), 2, level=0), 12, works=0, level=50)
    assert glut.prices[1] < glut.prices[0]
    assert shortage.price > shortage.prices[2]
    assert shortage.mean_wages[-1] > shortage.mean_wages[1]


def test_the_rate_first_moves_after_two_years() -> None:
    model = months(economy(), 23)
    assert model.rates == [0.03]
    assert len(months(model, 1).rates) == 2


def test_growth_after_full_employment_is_undefined_or_huge() -> None:
    grown = [months(months(economy(rules=rules), 12), 12, works=0).years.unemployment_growth for rules in RULES]
    assert grown[0][0] > 1e8
    assert np.isnan(grown[1][0])


def test_households_grow_older_each_year() -> None:
    assert months(economy(), 25).households.age.tolist() == [42, 42, 42]


@pytest.mark.parametrize("plans", [([1, 1], [5, 5]), ([1, 1, 2], [5, 5, 5]), ([1, 1, 1], [5, 51, 5])])
def test_plans_that_do_not_fit_are_refused(plans: tuple[list[int], list[int]]) -> None:
    with pytest.raises(ValueError, match=r"household|levels"):
        economy().run_month(np.array(plans[0]), np.array(plans[1]))


def test_tables_have_a_row_a_month_and_a_full_year() -> None:
    model = months(economy(), 30)
    years = model.yearly_table()
    assert len(model.monthly_table()) == 30
    assert years.index.tolist() == [1, 2]
    assert years["price_inflation"].isna().tolist() == [True, False]
    assert years["interest_rate"].tolist() == model.rates


# The world


def test_it_is_a_world() -> None:
    assert isinstance(Macroeconomy([1, 2], 1), World)


def test_equal_seeds_give_equal_runs() -> None:
    runs = []
    for _ in range(2):
        world = Macroeconomy(range(1, 11), 42)
        for _ in range(14):
            for agent_id in world.agent_ids:
                plan(world, agent_id, work=0.8, consumption=0.3)
            world.end_step()
        runs.append((world.economy.prices, world.household_table().to_dict()))
    assert runs[0] == runs[1]


def test_a_first_month_shows_the_offer_and_no_past() -> None:
    world = Macroeconomy([7], 1)
    seen = world.observe(7)
    assert seen.facts.offer in seen.text
    assert seen.facts.price_before is None
    assert "January 2001" in seen.text
    assert "tax last month" not in seen.text


def test_a_later_month_shows_job_shopping_tax_and_changes() -> None:
    world = Macroeconomy([7], 1)
    plan(world, 7, work=1, consumption=0.1)
    world.end_step()
    seen = world.observe(7)
    assert "February 2001" in seen.text
    for amount in (seen.facts.salary, seen.facts.consumption, seen.facts.tax_paid, seen.facts.coin):
        assert f"${amount:.2f}" in seen.text
    assert seen.facts.job in seen.text


@pytest.mark.parametrize(("rules", "trend"), [("corrected", "steady"), ("original", "going up")])
def test_wages_and_prices_that_stay_are_steady(rules: Rules, trend: str) -> None:
    world = Macroeconomy([7], 1, rules=rules, parameters=MacroParameters(max_wage_change=0, max_price_change=0))
    plan(world, 7, work=1, consumption=0.1)
    world.end_step()
    text = world.observe(7).text
    assert f"wages are {trend} in the labour market" in text
    assert f"prices are {trend}." in text


@pytest.mark.parametrize(("rate", "text"), [(0.2, "20%"), (0.125, "12.5%")])
def test_a_flat_tax_is_told_as_one_rate(rate: float, text: str) -> None:
    instructions = Macroeconomy([7], 1, parameters=MacroParameters(tax=flat_tax(rate))).observe(7).instructions
    assert f"Every monthly income is taxed at {text}; what the tax brings in is handed back" in instructions
    assert "slice" not in instructions


def test_a_shortage_is_told() -> None:
    world = Macroeconomy([1, 2], 1, households=economy([10.0, 10.0]).households)
    world.economy.households.coin += 1e6
    for agent_id in (1, 2):
        plan(world, agent_id, work=0, consumption=1)
    world.end_step()
    assert "Goods were short" in world.observe(1).text


def test_observing_changes_nothing() -> None:
    world = Macroeconomy([1, 2], 9)
    state = world.rng.getstate()  # type: ignore[attr-defined]
    assert world.observe(1) == world.observe(1)
    assert world.rng.getstate() == state  # type: ignore[attr-defined]


@pytest.mark.parametrize("work", [1.5, -0.1, float("nan"), float("inf"), "much", None])
def test_a_share_outside_the_unit_interval_is_refused(work: object) -> None:
    with pytest.raises(ToolError, match="work"):
        plan(Macroeconomy([1], 1), 1, work=work, consumption=0.5)


def test_strangers_are_refused() -> None:
    world = Macroeconomy([1], 1)
    with pytest.raises(ConfigError, match="not a household"):
        world.observe(2)
    with pytest.raises(ToolError, match="no household"):
        world.plan_month(2, 1.0, 0.5)


@pytest.mark.parametrize(("rules", "employed", "level"), [("original", 2, 25), ("corrected", 0, 0)])
def test_households_without_a_plan_are_counted(rules: Rules, employed: int, level: int) -> None:
    world = Macroeconomy([1, 2], 1, rules=rules)
    world.end_step()
    row = world.economy.months[0]
    assert (row.undecided, row.employed) == (2, employed)
    assert world.economy.households.level.tolist() == [level, level]


def test_the_plan_of_a_month_holds_for_that_month_only() -> None:
    world = Macroeconomy([1], 1)
    plan(world, 1, work=1, consumption=0.5)
    world.end_step()
    world.end_step()
    assert [row.undecided for row in world.economy.months] == [0, 1]


@pytest.mark.parametrize(("rules", "level"), [("original", 28), ("corrected", 29)])
def test_a_share_of_58_percent(rules: Rules, level: int) -> None:
    world = Macroeconomy([1], 1, rules=rules)
    plan(world, 1, work=1, consumption=0.58)
    world.end_step()
    assert world.economy.households.level.tolist() == [level]


def test_years_end_with_events_from_the_second_on() -> None:
    world = Macroeconomy([1, 2], 1)
    told = {month: [event.kind for event in world.end_step()] for month in range(1, 37)}
    assert {month for month, kinds in told.items() if kinds} == {24, 36}
    assert told[24] == ["metric_change", "policy_change"]


def test_ids_and_households_have_to_match() -> None:
    with pytest.raises(ConfigError, match="share an id"):
        Macroeconomy([1, 1])
    with pytest.raises(ConfigError, match="do not fit"):
        Macroeconomy([1, 2], households=economy([10.0]).households)


def test_households_out_of_work_get_offers_that_fit_their_wage() -> None:
    world = Macroeconomy(range(1, 51), 4)
    world.end_step()
    homes = world.economy.households
    assert (homes.job == UNEMPLOYED).all()
    assert [int(offer) // 10 for offer in homes.offer] == [bands_of(168 * skill)[0] for skill in homes.skill]


@pytest.mark.parametrize("share", [float("nan"), -0.1, 1.1, True, "1"])
def test_a_plan_by_code_is_checked_like_those_of_models(share: float) -> None:
    world = Macroeconomy([1, 2], rng=1)
    for plan in ((share, 0.5), (0.5, share)):
        with pytest.raises(ToolError, match="must be a number from 0 to 1"):
            world.plan_month(1, *plan)
    world.end_step()
