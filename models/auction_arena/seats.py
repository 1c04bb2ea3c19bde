"""Who takes which seat: settings that are the same for all bidders, or given seat by seat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from mesa_llm.errors import ConfigError
from mesa_llm.worlds.auction import Bidder, Desire, Planning
from models.auction_arena.twins import twin

MOST_DOLLARS = 10**9
"""Largest budget."""

PerSeat = str | int | float | Sequence[Any]
"""One value for all seats; or a list, or a text with commas, of which the seats take one after the other in turn."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One bidder, before it has a number."""

    name: str
    """What it is called."""

    twin: str
    """Name of its rule twin."""

    budget: int
    """Dollars it may spend in one auction."""

    desire: Desire
    """What it is after."""

    planning: Planning
    """When it plans."""

    overestimate_percent: float
    """By how much its estimates exceed the true values, in percent."""

    corrects_beliefs: bool
    """Whether it is told of wrong beliefs and asked again."""

    def bidder(self, unique_id: int) -> Bidder:
        """Give the bidder as it enters an auction.

        Args:
            unique_id: Mesa `unique_id` of the agent.
        """
        return Bidder(
            unique_id,
            self.name,
            self.budget,
            self.desire,
            self.planning,
            self.overestimate_percent,
            corrects_beliefs=self.corrects_beliefs,
        )


def take_seats(
    n_agents: int,
    *,
    names: PerSeat,
    twins: PerSeat,
    budget: PerSeat,
    desire: PerSeat,
    planning: PerSeat,
    overestimate_percent: PerSeat,
    corrects_beliefs: bool,
) -> list[Seat]:
    """Set every seat up.

    Args:
        n_agents: Seats.
        names: Names; empty: Bidder 1, Bidder 2, …
        twins: Names of rule twins.
        budget: Dollars, whole and not negative.
        desire: `maximize_profit` or `maximize_items`.
        planning: `adaptive`, `static` or `none`.
        overestimate_percent: Above -100.
        corrects_beliefs: As of `Seat`.

    Raises:
        ConfigError: If there are fewer than two seats, or a setting cannot be.
    """
    if isinstance(n_agents, bool) or n_agents < 2:
        raise ConfigError(f"an auction needs at least 2 bidders, got n_agents={n_agents!r}")
    called = names or [f"Bidder {number}" for number in range(1, n_agents + 1)]
    settings = (called, twins, budget, desire, planning, overestimate_percent)
    seats = [
        Seat(
            str(name),
            str(policy),
            _dollars(dollars),
            _one_of("desire", wish, get_args(Desire)),
            _one_of("planning", plans, get_args(Planning)),
            _percent(percent),
            corrects_beliefs,
        )
        for name, policy, dollars, wish, plans, percent in zip(
            *(by_seat(setting, n_agents) for setting in settings), strict=True
        )
    ]
    for seat in seats:
        twin(seat.twin, seat.overestimate_percent)
    return seats


def by_seat(setting: PerSeat, n_agents: int) -> list[Any]:
    """Give the value of a setting for each seat.

    Args:
        setting: One value for all, or several that the seats take in turn.
        n_agents: Seats.

    Raises:
        ConfigError: If it holds no value.
    """
    if isinstance(setting, str):
        values: list[Any] = [value.strip() for value in setting.split(",") if value.strip()]
    else:
        values = list(setting) if isinstance(setting, Sequence) else [setting]
    if not values:
        raise ConfigError(f"a setting of the seats needs at least one value, got {setting!r}")
    return [values[n % len(values)] for n in range(n_agents)]


def _dollars(value: Any) -> int:
    try:
        amount = int(value)
        is_whole = not isinstance(value, bool) and amount == float(value)
    except (TypeError, ValueError, OverflowError):
        amount, is_whole = -1, False
    if not is_whole or not 0 <= amount <= MOST_DOLLARS:
        raise ConfigError(f"a budget is a whole number of dollars from 0 to {MOST_DOLLARS}, got {value!r}")
    return amount


def _percent(value: Any) -> float:
    try:
        percent = float(value)
    except (TypeError, ValueError):
        percent = float("nan")
    if not -100 < percent <= 1000:
        raise ConfigError(f"overestimate_percent is a number above -100 and at most 1000, got {value!r}")
    return percent


def _one_of(what: str, value: Any, choices: tuple[str, ...]) -> Any:
    if value not in choices:
        raise ConfigError(f"{what} is one of {', '.join(choices)}, got {value!r}")
    return value
