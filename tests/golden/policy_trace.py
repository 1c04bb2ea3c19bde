"""Reads and checks the `policy_trace` of an EconAgent scenario: decisions of the authors' rule policy.

A trace holds what a household knew in a month, the uniform number that it drew, and what it did. Names, order and
nesting of its fields are not relied on: each field must hold, in every entry, one quantity that our economy and our
rules have for that household in that month; the draw, where it is recorded, must explain who worked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mesa_llm_models.econ_agent.agents import HouseholdStanding, buffer_stock_share, lengnick_share, work_propensity
from mesa_llm_models.econ_agent.world.rules import MonthlyEconomy
from mesa_llm_models.econ_agent.world.state import CONSUMPTION_STEP, TOP_LEVEL

Array = npt.NDArray[Any]

Quantities = Mapping[str, Array]
"""Name of a quantity → its values, by household, or by month and household."""

SPENDING = {"LEN": lengnick_share, "CATS": buffer_stock_share}

REL = 1e-9

MIN_DIGITS = 4
"""Minimum number of digits, or of decimal places, of a field whose numbers are taken to be rounded to as many."""

EDGE = 1e-6
"""Levels by which a share may lie beside the edge of a level and count as on either side: its last bits decide."""

MAX_LABELS = 5
"""Maximum number of names that a trace can have for the two rules, to be told from texts."""

PLACE = "place "
"""Begins the name of a field that the nesting of the entries makes."""


def quantities_of(economy: MonthlyEconomy, decisions: npt.ArrayLike) -> Quantities:
    """Return what households know at the start of a month, what their rules make of it, and what they did."""
    homes, standing = economy.households, HouseholdStanding.of_all(economy)
    works, levels = np.array(decisions).T
    everyone = np.ones(len(homes))
    quantities = {
        "skill": homes.skill,
        "full salary": standing.salary,
        "savings": standing.coin,
        "savings with interest": standing.coin * (1 + standing.interest_rate),
        "last salary": standing.last_salary,
        "expected skill": homes.expected_skill,
        "expected salary": economy.parameters.hours * homes.expected_skill,
        "price": standing.price * everyone,
        "interest rate": standing.interest_rate * everyone,
        "chance": work_propensity(standing),
        "chance, at most 1": np.minimum(work_propensity(standing), 1),
        "work": works,
        "level": levels,
        "share of the level": levels * CONSUMPTION_STEP,
        "salary": works * standing.salary,
        "age": homes.age,
    }
    for rule, share_of in SPENDING.items():
        share = share_of(standing, works)
        steps = np.clip(share / CONSUMPTION_STEP, 0, TOP_LEVEL)
        quantities[f"share by {rule}"] = share
        quantities[f"share in 0..1 by {rule}"] = np.clip(share, 0, 1)
        quantities[f"fit by {rule}"] = (np.floor(steps - EDGE) <= levels) & (levels <= np.floor(steps + EDGE))
    return {name: np.array(values) for name, values in quantities.items()}


def check_trace(trace: Any, months: Sequence[Quantities]) -> int:
    """Check every field of every entry, and return the number of entries.

    Args:
        trace: The entries, objects or lists, in one list or nested; lists may have a header, or be columns.
        months: The quantities of every month of the scenario.
    """
    known = {name: np.stack([month[name] for month in months]) for name in months[0]}
    entries = list(entries_of(trace))
    names = list(dict.fromkeys(name for entry in entries for name in entry))
    columns = {name: [_numbered(entry.get(name)) for entry in entries] for name in names}
    readings = [reading_of(columns, known, when) for when in times_of(columns, known["work"].shape)]
    assert readings, f"no month and household can be made out in {len(entries)} entries with the fields {names}"
    best = min(readings, key=lambda reading: len(reading.unknown))
    assert not best.unknown, f"fields of the trace that hold nothing we know: {best.unknown}; the others: {best.known}"
    return len(entries)


# -- entries


def entries_of(trace: Any, path: tuple[Any, ...] = ()) -> Iterator[dict[str, Any]]:
    """Iterate over the entries: each a flat object, whose nesting is in the names of its fields."""
    inner = list(trace.values() if isinstance(trace, dict) else trace)
    outer = {f"{PLACE}{depth}": int(one) if str(one).isdigit() else one for depth, one in enumerate(path)}
    flat = [one for one in inner if isinstance(one, list) and not any(isinstance(deep, (dict, list)) for deep in one)]
    header = next((one for one in flat if len(one) > 3 and all(isinstance(name, str) for name in one)), None)
    if not all(isinstance(one, (dict, list)) for one in inner):
        yield dict(_leaves(trace)) | outer
    elif isinstance(trace, dict) and len(flat) == len(trace) > 3 and not any(name.isdigit() for name in trace):
        for row in zip(*flat, strict=True):
            yield dict(zip(trace, row, strict=True)) | outer
    elif header is not None:
        for row in next(one for one in inner if one not in flat) if isinstance(trace, dict) else trace[1:]:
            yield dict(zip(header, row, strict=True)) | outer
    else:
        for place, one in trace.items() if isinstance(trace, dict) else enumerate(trace):
            yield from entries_of(one, (*path, place))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for place, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, (dict, list)):
            yield from _leaves(inner, f"{path}{place}.")
        else:
            yield f"{path}{place}", inner


def _numbered(value: Any) -> Any:
    """Return the number that a text of digits writes, such as the id of a household; anything else as it is."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


# -- what the fields hold


class Time(NamedTuple):
    """Month and household of every entry, from 0, and the fields that say so."""

    months: Array
    households: Array
    fields: tuple[str, str]


class Reading(NamedTuple):
    """What the fields of a trace hold, if its entries are of certain months and households."""

    known: dict[str, str]
    unknown: list[str]


def times_of(columns: Mapping[str, list[Any]], shape: tuple[int, ...]) -> Iterator[Time]:
    """Iterate over what may be month and household of the entries: two fields of whole numbers, or their order."""
    whole = {
        name: np.array(values)
        for name, values in columns.items()
        if all(isinstance(one, int) and 0 <= one <= max(shape) for one in values)
    }
    for order in {len(values): np.arange(len(values)) for values in columns.values()}.values():
        whole |= {"order // households": order // shape[1], "order % households": order % shape[1]}
        whole |= {"order % months": order % shape[0], "order // months": order // shape[0]}
    for (month, months), (household, households) in product(whole.items(), repeat=2):
        for first_month, first_household in product((1, 0), (0, 1)):
            when, who = months - first_month, households - first_household
            fit = all(((index >= 0) & (index < count)).all() for index, count in zip((when, who), shape, strict=True))
            if month != household and fit and len(np.unique(when * shape[1] + who)) == len(when):
                yield Time(when, who, (month, household))


def reading_of(columns: Mapping[str, list[Any]], known: Quantities, time: Time) -> Reading:
    """Find what every field holds if the entries are of these months and households."""
    here = {name: values[time.months, time.households] for name, values in known.items()}
    found = {name: quantity_in(values, here, time) for name, values in columns.items() if name not in time.fields}
    of_rules = {f"rule of household {one}": _are_of_one_rule(here, time.households == one) for one in time.households}
    unknown = [name for name, quantity in found.items() if quantity is None and not name.startswith(PLACE)]
    unknown += [name for name, is_one in of_rules.items() if not is_one]
    return Reading({name: quantity for name, quantity in found.items() if quantity}, unknown)


def quantity_in(values: list[Any], here: Quantities, time: Time) -> str | None:
    """Return the quantity that a field holds in all entries that have it: ours, the draw, or the name of a rule."""
    has = np.array([value is not None for value in values])
    labels = [str(value) for value in values]
    if all(isinstance(value, (int, float)) for value in values if value is not None):
        numbers = np.array([value for value in values if value is not None], dtype=float)
        rel, absolute = rounding_of(numbers.tolist())
        matches: dict[str, Array] = {}
        for name, ours in {**here, "month": time.months + 1, "household": time.households}.items():
            either, is_close = name.partition(" by ")[0], np.isclose(numbers, ours[has], rel, absolute)
            matches[either] = matches.get(either, False) | is_close
        for name, match in matches.items():
            if match.all():
                return name
        if len(set(labels)) > len(SPENDING):
            explains = (numbers >= 0) & (numbers < 1) & ((numbers < here["chance"][has]) == here["work"][has])
            return "draw" if explains.all() else None
    if len(set(labels)) == 1:
        return "constant"
    groups = [np.array([one == label for one in labels]) for label in dict.fromkeys(labels)]
    return "rule" if len(groups) <= MAX_LABELS and all(_are_of_one_rule(here, group) for group in groups) else None


def rounding_of(numbers: list[float]) -> tuple[float, float]:
    """Return the relative and the absolute tolerance of numbers that may have been rounded to few digits."""
    parts = [Decimal(repr(number)).normalize().as_tuple() for number in numbers if math.isfinite(number)]
    digits = max((len(part.digits) for part in parts), default=0)
    places = max((-int(part.exponent) for part in parts), default=0)
    if places < 1 or max(digits, places) < MIN_DIGITS:
        return REL, 1e-12
    rel = max(REL, 0.5 * 10.0 ** (1 - digits)) if digits >= MIN_DIGITS else REL
    return rel, max(1e-12, 0.5 * 10.0**-places)


def _are_of_one_rule(here: Quantities, entries: Array) -> bool:
    return any(here[f"fit by {rule}"][entries].all() for rule in SPENDING)
