"""EconAgent's environment, replayed from recorded decisions and draws (authors' code @ bfada09)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest

from mesa_llm_models.econ_agent.agents import BufferStock, HouseholdStanding, Lengnick
from mesa_llm_models.econ_agent.world.jobs import BAND_EDGES, TITLES_PER_BAND, bands_of
from mesa_llm_models.econ_agent.world.rules import MonthlyEconomy, consumption_level, ladder_of, taylor_rate
from mesa_llm_models.econ_agent.world.state import UNEMPLOYED, US_TAX, Households, MacroParameters
from tests.golden.policy_trace import Quantities, check_trace, quantities_of
from tests.golden.reading import assert_close, golden, name_of, section

T = TypeVar("T")

CASES: dict[str, Any] = golden("econagent")


NOT_COMPARED = {
    "description": "prose about the scenario",
    "seed": "draws are taken from the recording, not from the original's generator",
}
"""Parts of a case that no test reads → why."""

REMAINDERS = ("coin", "consumption_state", "goods_end")
"""Series that hold what is left of sums that cancel where all money is spent or all goods are sold."""

ROUNDING = 1e-14
"""What rounding leaves of a sum that cancels, as a part of it: the order of additions is not recorded."""


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
    first, count = scenario["init"], scenario["n_agents"]
    bands = np.array(first.get("offer_band", [0] * count))
    homes = Households(first["skill"], first["age"], first.get("coin", np.zeros(count)), bands * TITLES_PER_BAND)
    parameters = MacroParameters(first_rate=first.get("interest_rate", MacroParameters().first_rate))
    recorded = RecordedDraws(scenario["draws"])
    return MonthlyEconomy(homes, recorded, rules="original", parameters=parameters, price=first.get("price"))


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


def sums_of(economy: MonthlyEconomy) -> float:
    """Return the size of the sums of a month: all savings and salaries in dollars, and goods."""
    homes = economy.households
    return float(homes.coin.sum() + economy.parameters.hours * homes.skill.sum()) + economy.goods


def check_series(found: dict[str, Any], wanted: dict[str, Any], place: str, sums: float = 0.0) -> None:
    """Compare every known series that the recording holds; of others, the fixture of all golden tests warns.

    Args:
        found: Our series, by name.
        wanted: The recorded ones; some may lack.
        place: Where they stand, for the message of a failure.
        sums: Size of the sums of which `REMAINDERS` are left.
    """
    names = found.keys() & wanted.keys()
    assert names, f"{place}: none of the series {sorted(wanted)} is known"
    for name in sorted(names):
        absolute = max(1e-12, ROUNDING * sums if name in REMAINDERS else 0.0)
        assert_close(found[name], wanted[name], place=f"{place}.{name}", absolute=absolute)


@pytest.mark.parametrize("scenario", section(CASES, "scenarios"), ids=name_of)
def test_every_month_and_year_is_as_recorded(scenario: dict[str, Any]) -> None:
    economy = economy_of(scenario)
    assert scenario["n_agents"] == len(economy.households)
    assert len(scenario["monthly"]) == len(scenario["decisions"]) == scenario["months"]
    known: list[Quantities] = []
    for decisions, wanted in zip(scenario["decisions"], scenario["monthly"], strict=True):
        known.append(quantities_of(economy, decisions))
        sums = sums_of(economy)
        replay(economy, decisions)
        check_series(month_of(economy), wanted, f"month {economy.month}", sums + sums_of(economy))
    check_series(years_of(economy), scenario["annual"], "years")
    if scenario.get("policy_trace"):
        assert check_trace(scenario["policy_trace"], known)


def traced_run(n_months: int) -> tuple[list[Quantities], list[dict[str, Any]]]:
    """Run households of both rules, and write a trace of them as a recording might."""
    rng = random.Random(3)
    homes = Households(np.array([3.0, 40.0, 90.0]), np.array([20, 30, 40]), np.zeros(3), np.zeros(3, dtype=int))
    economy = MonthlyEconomy(homes, rng, rules="original", price=44.0)
    months: list[Quantities] = []
    trace: list[dict[str, Any]] = []
    for month in range(1, n_months + 1):
        draws = [rng.random() for _ in homes.coin]
        known = HouseholdStanding.of_all(economy)
        lengnick, cats = (policy.decide(known, FixedUniforms(draws)) for policy in (Lengnick(), BufferStock()))
        works, levels = lengnick.works, np.where([False, True, False], cats.levels, lengnick.levels)
        for one, u in enumerate(draws):
            state = {"s": known.coin[one], "z1": known.last_salary[one], "p": economy.price, "r": known.interest_rate}
            done = {"policy": "cats" if one == 1 else "len", "u": u, "l": int(works[one]), "k": int(levels[one])}
            trace.append({"month": month, "agent": one, "z_max": known.salary[one], **state, **done})
        months.append(quantities_of(economy, np.array([works, levels]).T))
        economy.run_month(works, levels)
    return months, trace


class FixedUniforms(random.Random):
    """Gives the numbers of a list."""

    def __init__(self, numbers: list[float]) -> None:
        super().__init__(0)
        self.numbers = iter(numbers)

    def random(self) -> float:
        return next(self.numbers)


def by_month(trace: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [[one for one in trace if one["month"] == month] for month in range(1, len(trace) // 3 + 1)]


SHAPES: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "objects": lambda trace: trace,
    "some": lambda trace: [one for one in trace if one["month"] % 5 == 0],
    "from 0": lambda trace: [{**one, "month": one["month"] - 1} for one in trace],
    "in order": lambda trace: [{name: one[name] for name in one if name not in ("month", "agent")} for one in trace],
    "rows": lambda trace: [list(one.values()) for one in trace],
    "header": lambda trace: {"fields": list(trace[0]), "rows": [list(one.values()) for one in trace]},
    "header first": lambda trace: [list(trace[0]), *(list(one.values()) for one in trace)],
    "columns": lambda trace: {name: [one[name] for one in trace] for name in trace[0]},
    "by month": by_month,
    "rows by month": lambda trace: [[list(one.values())[2:] for one in month] for month in by_month(trace)],
    "by agent": lambda trace: {str(n): [one for one in trace if one["agent"] == n] for n in range(3)},
    "texts": lambda trace: [{**one, "agent": str(one["agent"])} for one in trace],
    "no draws": lambda trace: [{name: one[name] for name in one if name != "u"} for one in trace],
    "groups": lambda trace: [{"t": one["month"], "in": {**one, "month": None}, "done": [one["k"]]} for one in trace],
}
"""Shapes in which a trace may come."""


@pytest.mark.parametrize("shape", SHAPES)
def test_a_trace_of_rule_policies_is_checked_whatever_its_shape_and_names(shape: str) -> None:
    months, trace = traced_run(30)
    assert check_trace(SHAPES[shape](trace), months) == (18 if shape == "some" else 90)
    wrongs: dict[str, Any] = {"k": 3, "u": 0.9999, "s": -1.0, "policy": "len"}
    for name, wrong in wrongs.items():
        if name == "u" and shape == "no draws":
            continue
        others = [*trace[:13], {**trace[13], name: wrong}, *trace[14:]]
        with pytest.raises(AssertionError, match=r"hold nothing we know|no month"):
            check_trace(SHAPES[shape](others), months)


def test_a_trace_rounded_to_few_digits_is_still_checked() -> None:
    months, trace = traced_run(30)
    rounded = [{name: round(one[name], 6) if name in "s z1 u z_max" else one[name] for name in one} for one in trace]
    assert check_trace(rounded, months) == 90
    rounded[13]["s"] += 1e-5
    with pytest.raises(AssertionError, match="hold nothing we know"):
        check_trace(rounded, months)


@pytest.mark.parametrize("unit", section(CASES, "unit"))
def test_the_rules_give_the_recorded_values(unit: dict[str, Any]) -> None:
    check_tax(unit)
    for key in ("consumption_bucket", "consumption_bucket_offgrid"):
        for share, level in unit.get(key, ()):
            assert int(consumption_level(share, rules="original")) == level, share
    assert list(BAND_EDGES) == unit.get("band_edges", list(BAND_EDGES))
    for salary, bands in unit.get("offer_brackets", ()):
        assert list(bands_of(salary, "original")) == bands, salary
    for inflation, unemployment, rate in unit.get("taylor", ()):
        found = taylor_rate(inflation, unemployment, MacroParameters())
        assert found == pytest.approx(rate, rel=1e-9, abs=1e-12), (inflation, unemployment)
    check_ladders(unit)


def check_tax(unit: dict[str, Any]) -> None:
    for income, tax, marginal in unit.get("tax", ()):
        assert float(US_TAX.due(income)) == pytest.approx(tax, rel=1e-9, abs=1e-9), income
        assert float(US_TAX.marginal(income)) == marginal, income
    assert_close(list(US_TAX.floors), unit.get("brackets_monthly", list(US_TAX.floors)))
    assert_close(list(US_TAX.rates), unit.get("rates", list(US_TAX.rates)))


def check_ladders(unit: dict[str, Any]) -> None:
    """Compare the skill ladders: the key ends with the generator's seed, the fields are numbers of households."""
    for key in (key for key in unit if key.startswith("skill_ladder_seed")):
        for count, ladder in unit[key].items():
            seed = int(key.removeprefix("skill_ladder_seed"))
            lomax = np.random.RandomState(seed).pareto(8, (1000, int(count)))
            assert_close(ladder_of(lomax).tolist(), ladder, place=count)
