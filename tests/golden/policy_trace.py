"""Reads and checks the `policy_trace` of an EconAgent scenario: decisions of the authors' rule policy.

Each entry is an object with what one household knew in one month, the uniform number that it drew, and what it did. The
entries stand in one list, or in a list for each month; the names of their fields are those of the program or the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mesa_llm.worlds.macro import US_TAX, MacroParameters
from models.econ_agent.agents import (
    Standing,
    buffer_stock_share,
    floor_level,
    lengnick_share,
    work_propensity,
)

HOURS = MacroParameters().hours

NAMES = {
    "month": ("month", "t", "step"),
    "agent": ("agent", "agent_id", "id", "idx", "i"),
    "rule": (
        "policy",
        "rule",
        "kind",
        "variant",
        "type",
        "fun",
        "consumption_rule",
        "consumption_fun",
        "consumption_fun_idx",
    ),
    "skill": ("skill", "w"),
    "salary": ("max_income", "z_max", "salary", "full_income"),
    "income": ("curr_income", "current_income", "z"),
    "coin": ("wealth", "coin", "s", "savings"),
    "last_salary": ("last_income", "z1", "last_salary", "income_state", "prev_income", "income"),
    "expected_salary": ("expected_income", "expected_salary"),
    "expected_skill": ("expected_skill", "expected skill"),
    "price": ("price", "P", "p"),
    "interest_rate": ("interest_rate", "interest", "r", "rate"),
    "draw": ("u", "uniform", "draw", "work_u", "u_work", "uniform_draw", "rand", "random"),
    "chance": ("p_work", "work_propensity", "prob", "probability"),
    "work": ("l", "work", "labor", "labour", "works", "work_action"),
    "level": ("c", "k", "consumption_index", "level", "index", "consumption", "consumption_action"),
    "decision": ("decision", "action", "actions", "result", "output"),
}
"""What a field is → what a trace may call it."""

GROUPS = ("inputs", "input", "args", "state", "outputs")
"""Objects within an entry that hold some of its fields."""

RULES = {"LEN": lengnick_share, "CATS": buffer_stock_share}
"""The spending rules, in the order of the authors' list."""

REL = 1e-9


def fields_of(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry's fields under the names of `NAMES`."""
    flat = dict(entry)
    for group in GROUPS:
        if isinstance(flat.get(group), dict):
            flat |= dict(flat.pop(group))
    known = {theirs: ours for ours, names in NAMES.items() for theirs in names}
    unknown = sorted(flat.keys() - known.keys())
    assert not unknown, f"fields of a policy trace that NAMES does not know: {unknown}"
    if "income" in flat and any(name in flat for name in NAMES["last_salary"][:-1]):
        known["income"] = "income"  # the last salary stands beside it
    fields = {known[name]: value for name, value in flat.items()}
    if isinstance(fields.get("decision"), list):
        fields["work"], fields["level"] = fields.pop("decision")
    return fields


def entries_of(trace: list[Any], n_agents: int) -> Iterator[dict[str, Any]]:
    """Iterate over the fields of all entries, each with its `month`, from 1, and `agent`, from 0."""
    months = trace if trace and isinstance(trace[0], list) else [[one] for one in trace]
    width = None if trace and isinstance(trace[0], list) else n_agents
    rows = [(m, place, fields_of(one)) for m, month in enumerate(months) for place, one in enumerate(month)]
    first = min((fields.get("month", 1) for *_, fields in rows), default=1)
    for m, place, fields in rows:
        month, agent = (m, place) if width is None else divmod(m, width)
        month = fields.get("month", month + first) - first
        yield {**fields, "month": month + 1, "agent": int(fields.get("agent", agent))}


def standing_of(fields: dict[str, Any]) -> Standing:
    """Return what one household knew."""
    salary = fields.get("salary", HOURS * fields["skill"] if "skill" in fields else None)
    if salary is None:
        salary = fields["income"]  # of a month at work
    known = [np.array([float(value)]) for value in (salary, fields["coin"], fields["last_salary"])]
    return Standing(known[0], known[1], known[2], fields["price"], fields["interest_rate"], US_TAX, 0.0)


def rule_of(fields: dict[str, Any]) -> set[str]:
    """Return the spending rules that an entry may have followed: the one it names, or all."""
    named = fields.get("rule")
    if isinstance(named, (int, float)):
        return {list(RULES)[int(named)]}
    return {rule for rule in RULES if rule.lower() in str(named).lower()} or set(RULES)


def check_decision(fields: dict[str, Any]) -> set[str]:
    """Check one decision against our rules, and return the spending rules that explain it."""
    standing = standing_of(fields)
    chance = work_propensity(standing)
    works = np.array([fields["draw"]]) < chance
    assert int(works[0]) == int(fields["work"]), fields
    if "income" in fields:
        assert fields["income"] in (standing.salary[0], works[0] * standing.salary[0])
    if "chance" in fields:
        assert float(chance[0]) == pytest.approx(fields["chance"], rel=REL)
    levels = {rule: int(floor_level(RULES[rule](standing, works))[0]) for rule in rule_of(fields)}
    fitting = {rule for rule, level in levels.items() if level == fields["level"]}
    assert fitting, f"{fields}: ours are {levels}"
    return fitting


def check_trace(trace: list[Any], n_agents: int, decisions: list[Any] | None = None) -> list[dict[str, Any]]:
    """Check a whole trace: every decision, that it is the one taken, and that nobody changes the rule.

    Args:
        trace: The entries.
        n_agents: Number of households.
        decisions: What was done, by month and household; None where no scenario holds it.

    Returns:
        The fields of the entries, with `month` and `agent`.
    """
    entries = list(entries_of(trace, n_agents))
    rules: dict[int, set[str]] = {}
    for fields in entries:
        agent = fields["agent"]
        rules[agent] = rules.get(agent, set(RULES)) & check_decision(fields)
        assert rules[agent], f"no rule explains all decisions of household {agent}"
        if decisions is not None:
            assert [fields["work"], fields["level"]] == decisions[fields["month"] - 1][agent], fields
    return entries


def check_known(fields: dict[str, Any], known: dict[str, float]) -> None:
    """Check that what an entry says a household knew is what our economy says."""
    for name in fields.keys() & known.keys():
        assert known[name] == pytest.approx(fields[name], rel=REL, abs=1e-12), (name, fields)
