"""EconAgent's environment, replayed from recorded decisions and draws (authors' code @ bfada09)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pytest

from mesa_llm.worlds.macro.jobs import BAND_EDGES, TITLES_PER_BAND, bands_of
from mesa_llm.worlds.macro.rules import MonthlyEconomy, consumption_level, ladder_of, taylor_rate
from mesa_llm.worlds.macro.state import UNEMPLOYED, US_TAX, Households, MacroParameters
from models.econ_agent.agents import BufferStock, Lengnick, Standing
from tests.golden.policy_trace import NAMES, check_known, check_trace
from tests.golden.reading import assert_close, golden

T = TypeVar("T")

CASES: dict[str, Any] = golden("econagent")


NOT_COMPARED = {
    "description": "prose about the scenario",
    "seed": "draws are taken from the recording, not from the original's generator",
}
"""Parts of a case that no test reads → why."""


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


def years_of(economy: MonthlyEconomy) -> dict[str, Any]:
    """Return the yearly series, and the monthly ones kept with them, under the names of the recording."""
    years = economy.years
    return {
        "unemployed_person_months": years.months_without_work,
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


def check_series(found: dict[str, Any], wanted: dict[str, Any], place: str) -> None:
    """Compare every series that the recording holds; it may lack some, and hold none that is not known."""
    assert wanted.keys() <= found.keys(), f"{place}: unknown series {sorted(wanted.keys() - found.keys())}"
    assert_close({name: found[name] for name in wanted}, wanted, place=place)


@pytest.mark.parametrize("scenario", CASES["scenarios"], ids=lambda case: case["id"])
def test_every_month_and_year_is_as_recorded(scenario: dict[str, Any]) -> None:
    economy = economy_of(scenario)
    assert scenario["n_agents"] == len(economy.households)
    assert len(scenario["monthly"]) == len(scenario["decisions"]) == scenario["months"]
    traced = check_trace(scenario.get("policy_trace", []), scenario["n_agents"], scenario["decisions"])
    for decisions, wanted in zip(scenario["decisions"], scenario["monthly"], strict=True):
        for fields in traced:
            if fields["month"] == economy.month + 1:
                check_known(fields, known_to(economy, fields["agent"]))
        replay(economy, decisions)
        check_series(month_of(economy), wanted, f"month {economy.month}")
    check_series(years_of(economy), scenario["annual"], "years")


def known_to(economy: MonthlyEconomy, agent: int) -> dict[str, float]:
    """Return what a household knows at the start of a month, under the names of `policy_trace`."""
    homes, standing = economy.households, Standing.of_all(economy)
    return {
        "skill": homes.skill[agent],
        "salary": standing.salary[agent],
        "coin": standing.coin[agent],
        "last_salary": standing.last_salary[agent],
        "expected_skill": homes.expected_skill[agent],
        "expected_salary": economy.parameters.hours * homes.expected_skill[agent],
        "price": standing.price,
        "interest_rate": standing.interest_rate,
    }


def traced_run(months: int, *, by_month: bool, theirs: dict[str, str]) -> tuple[list[Any], list[Any]]:
    """Run households of both rules, and write a trace of them as a recording might; with what they did."""
    rng = random.Random(3)
    first: dict[str, Any] = {"skill": [3.0, 40.0, 90.0], "age": [20] * 3, "coin": [0.0] * 3}
    homes = Households(first["skill"], first["age"], first["coin"], np.zeros(3, dtype=int))
    economy = MonthlyEconomy(homes, rng, rules="original", price=44.0)
    trace, decisions = [], []
    for month in range(1, months + 1):
        draws = [rng.random() for _ in range(3)]
        known = Standing.of_all(economy)
        lengnick, cats = (policy.decide(known, FixedUniforms(draws)) for policy in (Lengnick(), BufferStock()))
        works, levels = lengnick.works, np.where([False, True, False], cats.levels, lengnick.levels)
        done = [[int(work), int(level)] for work, level in zip(works, levels, strict=True)]
        rows: list[dict[str, Any]] = []
        for agent, (work, level) in enumerate(done):
            fields = {**known_to(economy, agent), "draw": draws[agent], "work": work, "level": level}
            fields |= {"month": month, "agent": agent, "rule": "cats" if agent == 1 else "len"}
            rows.append({theirs[name]: value for name, value in fields.items() if name in theirs})
        trace += [rows] if by_month else rows
        decisions.append(done)
        economy.run_month(works, levels)
    return trace, decisions


class FixedUniforms(random.Random):
    """Gives the numbers of a list."""

    def __init__(self, numbers: list[float]) -> None:
        super().__init__(0)
        self.numbers = iter(numbers)

    def random(self) -> float:
        return next(self.numbers)


INPUTS = ("salary", "coin", "last_salary", "price", "interest_rate", "draw", "work", "level")


@pytest.mark.parametrize("by_month", [True, False])
@pytest.mark.parametrize("extra", [(), ("month", "agent"), ("month", "agent", "rule", "skill", "expected_skill")])
@pytest.mark.parametrize("name", [0, 1])
def test_a_trace_of_rule_policies_is_checked_decision_by_decision(by_month, extra, name) -> None:
    theirs = {field: NAMES[field][name] for field in (*INPUTS, *extra)}
    trace, decisions = traced_run(30, by_month=by_month, theirs=theirs)
    assert len(check_trace(trace, 3, decisions)) == 90
    wrong = trace[4][2] if by_month else trace[14]
    wrong[theirs["level"]] = 50 - wrong[theirs["level"]]
    with pytest.raises(AssertionError):
        check_trace(trace, 3, decisions)


@pytest.mark.parametrize("unit", [CASES["unit"]], ids=["unit"])
def test_the_rules_give_the_recorded_values(unit: dict[str, Any]) -> None:
    check_tax(unit)
    for key in ("consumption_bucket", "consumption_bucket_offgrid"):
        for share, level in unit[key]:
            assert int(consumption_level(share, rules="original")) == level, share
    assert list(BAND_EDGES) == unit["band_edges"]
    for salary, bands in unit["offer_brackets"]:
        assert list(bands_of(salary, "original")) == bands, salary
    for inflation, unemployment, rate in unit["taylor"]:
        found = taylor_rate(inflation, unemployment, MacroParameters())
        assert found == pytest.approx(rate, rel=1e-9, abs=1e-12), (inflation, unemployment)
    check_ladders(unit)
    check_trace(unit.get("policy_trace", []), 1)


def check_tax(unit: dict[str, Any]) -> None:
    for income, tax, marginal in unit["tax"]:
        assert float(US_TAX.due(income)) == pytest.approx(tax, rel=1e-9, abs=1e-9), income
        assert float(US_TAX.marginal(income)) == marginal, income
    assert_close(list(US_TAX.floors), unit["brackets_monthly"])
    assert_close(list(US_TAX.rates), unit["rates"])


def check_ladders(unit: dict[str, Any]) -> None:
    """Compare the skill ladders: the key ends with the generator's seed, the fields are numbers of households."""
    ladders = [key for key in unit if key.startswith("skill_ladder_seed")]
    assert ladders
    for key in ladders:
        for count, ladder in unit[key].items():
            seed = int(key.removeprefix("skill_ladder_seed"))
            lomax = np.random.RandomState(seed).pareto(8, (1000, int(count)))
            assert_close(ladder_of(lomax).tolist(), ladder, place=count)
