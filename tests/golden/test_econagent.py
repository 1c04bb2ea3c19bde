"""EconAgent's environment, replayed from recorded decisions and draws (authors' code @ bfada09)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pytest

from mesa_llm.worlds.macro.economy import MonthlyEconomy
from mesa_llm.worlds.macro.households import Households
from mesa_llm.worlds.macro.jobs import BAND_EDGES, TITLES_PER_BAND, UNEMPLOYED, bands_of
from mesa_llm.worlds.macro.rules import US_TAX, MacroParameters, consumption_level, ladder_of, taylor_rate
from tests.golden.reading import assert_close, golden

T = TypeVar("T")

CASES: dict[str, Any] = golden("econagent")
UNIT: dict[str, Any] = CASES["unit"]

scenarios = pytest.mark.parametrize("scenario", CASES["scenarios"], ids=lambda case: case["id"])


class RecordedDraws:
    """Gives back the draws of a recorded run: orders of buyers, and wage and price numbers in their turn."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        self.orders = iter(recorded["consumption_order"])
        months = zip(recorded["wage_u"], recorded["price_u"], strict=True)
        self.uniforms = (number for wages, price in months for number in (*wages, price))

    def random(self) -> float:
        return next(self.uniforms)

    def sample(self, population: Sequence[T], k: int) -> list[T]:
        order: list[int] = next(self.orders)
        assert sorted(order) == list(range(k))
        return [population[place] for place in order]

    def randint(self, a: int, b: int) -> int:
        return a  # the recordings do not hold which of a band's titles was drawn

    def choice(self, seq: Sequence[Any], /) -> Any:
        raise AssertionError("the original's month draws no choice that is recorded")

    def shuffle(self, x: list[Any], /) -> None:
        raise AssertionError("the original's month shuffles nothing that is recorded")


def economy_of(scenario: dict[str, Any]) -> MonthlyEconomy:
    first = scenario["init"]
    bands = np.array(first.get("offer_band", [0] * scenario["n_agents"]))
    homes = Households(first["skill"], first["age"], first["coin"], bands * TITLES_PER_BAND)
    parameters = MacroParameters(first_rate=first["interest_rate"])
    recorded = RecordedDraws(scenario["draws"])
    return MonthlyEconomy(homes, recorded, rules="original", parameters=parameters, price=first["price"])


def month_of(economy: MonthlyEconomy) -> dict[str, Any]:
    """Give the state at a month's end under the names of the recording."""
    homes, row = economy.households, economy.months[-1]
    employed = homes.job != UNEMPLOYED
    return {
        "month": row.month,
        "phi": row.imbalance,
        "price": row.price,
        "mean_wage": row.mean_wage,
        "goods_end": row.goods,
        "interest_rate": row.interest_rate,
        "income_this_month": np.where(employed, homes.last_salary, 0.0).tolist(),
        "income_state": homes.income.tolist(),
        "tax_paid": homes.tax_paid.tolist(),
        "lump_sum": row.tax_credit,
        "consumption_state": homes.consumption.tolist(),
        "coin": homes.coin.tolist(),
        "skill": homes.skill.tolist(),
        "expected_skill": homes.expected_skill.tolist(),
        "employed": employed.astype(int).tolist(),
        "age": homes.age.tolist(),
        "offer_band": (homes.offer // TITLES_PER_BAND).tolist(),
        "job_band": np.where(employed, homes.job // TITLES_PER_BAND, -1).tolist(),
    }


def replay(economy: MonthlyEconomy, decisions: list[Any]) -> None:
    works, levels = np.array(decisions, dtype=int).T
    economy.run_month(works, levels)


@scenarios
def test_every_month_ends_as_recorded(scenario: dict[str, Any]) -> None:
    economy = economy_of(scenario)
    assert len(scenario["monthly"]) == len(scenario["decisions"]) == scenario["months"]
    for decisions, wanted in zip(scenario["decisions"], scenario["monthly"], strict=True):
        replay(economy, decisions)
        found = month_of(economy)
        known = {name: value for name, value in wanted.items() if name in found}
        assert_close({name: found[name] for name in known}, known, place=f"month {economy.month}")


@scenarios
def test_yearly_series_are_as_recorded(scenario: dict[str, Any]) -> None:
    economy = economy_of(scenario)
    for decisions in scenario["decisions"]:
        replay(economy, decisions)
    years = economy.years
    found = {
        "unemployed_person_months": years.unemployed,
        "nominal_gdp": years.nominal_gdp,
        "real_gdp": years.real_gdp,
        "price_inflation": years.price_inflation,
        "wage_inflation": years.wage_inflation,
        "unemployment_growth": years.unemployment_growth,
        "nominal_gdp_growth": years.nominal_growth,
        "real_gdp_growth": years.real_growth,
        "interest_rate": economy.rates,
        "price": economy.prices,
        "mean_wage": economy.mean_wages,
    }
    known = {name: value for name, value in scenario["annual"].items() if name in found}
    assert_close({name: found[name] for name in known}, known)


def test_tax_and_its_marginal_rate() -> None:
    for income, tax, marginal in UNIT["tax"]:
        assert float(US_TAX.due(income)) == pytest.approx(tax, rel=1e-9, abs=1e-9), income
        assert float(US_TAX.marginal(income)) == marginal, income


def test_the_tax_schedule() -> None:
    assert_close(list(US_TAX.floors), UNIT["brackets_monthly"])
    assert_close(list(US_TAX.rates), UNIT["rates"])


@pytest.mark.parametrize("key", ["consumption_bucket", "consumption_bucket_offgrid"])
def test_spending_levels(key: str) -> None:
    for share, level in UNIT[key]:
        assert int(consumption_level(share, rounding="original")) == level, share


def test_job_bands() -> None:
    assert list(BAND_EDGES) == UNIT["band_edges"]
    for salary, bands in UNIT["offer_brackets"]:
        assert list(bands_of(salary, "original")) == bands, salary


def test_the_interest_rule() -> None:
    for inflation, unemployment, rate in UNIT["taylor"]:
        found = taylor_rate(inflation, unemployment, MacroParameters())
        assert found == pytest.approx(rate, rel=1e-9, abs=1e-12), (inflation, unemployment)


def test_skill_ladders() -> None:
    for count, ladder in UNIT["skill_ladder_seed42"].items():
        lomax = np.random.RandomState(42).pareto(8, (1000, int(count)))
        assert_close(ladder_of(lomax).tolist(), ladder, place=count)
