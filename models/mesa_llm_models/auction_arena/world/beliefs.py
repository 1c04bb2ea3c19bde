"""Bidders' beliefs about budgets, profits and lots won, and the errors in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field

from mesa_llm_models.auction_arena.world.state import BeliefCounts, BidderAccount
from mesa_llm_models.auction_arena.world.text import lots_text, reason_text, signed


class Belief(BaseModel):
    """What a bidder believes after a lot: the type of the answer that it is asked for."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    remaining_budget: float
    """Dollars it believes it has left."""

    total_profits: dict[str, float] = Field(max_length=100)
    """Bidder → profit so far, in dollars; itself included."""

    winning_bids: dict[str, dict[str, float]] = Field(max_length=100)
    """Bidder → lot it won → price paid; itself included."""


@dataclass(frozen=True, slots=True)
class Review:
    """The auctioneer's review of a statement of belief."""

    problems: tuple[str, ...]
    """Its errors, as text for the bidder."""

    is_formed: bool
    """Whether it could be read at all. Unreadable statements are not counted."""

    counts: BeliefCounts
    """Numbers of checks and errors."""


def opening_belief(me: BidderAccount, names: Sequence[str]) -> dict[str, Any]:
    """Return a bidder's knowledge before the first lot: its budget, and that no lot has been won."""
    return {
        "remaining_budget": me.budget,
        "total_profits": dict.fromkeys(names, 0),
        "winning_bids": {name: {} for name in names},
    }


def form_fault(statement: object) -> str:
    """Return why a statement cannot be read as a belief; empty if it can.

    The original reads three keys with numbers, or objects of numbers, and ignores all others.
    """
    if not isinstance(statement, Mapping) or not statement:
        return reason_text("no_belief")
    fields = cast("Mapping[str, Any]", statement)
    for key in ("remaining_budget", "total_profits", "winning_bids"):
        if key not in fields:
            return reason_text("no_field", key=key)
    if not _is_number(fields["remaining_budget"]):
        return reason_text("no_budget")
    if not _are_numbers(fields["total_profits"]):
        return reason_text("no_profits")
    wins = fields["winning_bids"]
    if not isinstance(wins, Mapping) or not all(map(_are_numbers, cast("Mapping[str, Any]", wins).values())):
        return reason_text("no_wins")
    return ""


def review_belief(
    statement: Mapping[str, Any], me: BidderAccount, accounts: Mapping[str, BidderAccount], *, match_part: bool = False
) -> Review:
    """Compare a belief with the truth.

    The bidder's own budget is one check; each listed bidder's profit and lots won are one check each. Prices are not
    compared, and unknown names are ignored.

    Args:
        statement: The bidder's statement. If it cannot be read, that is the only problem.
        me: Account of the bidder.
        accounts: All bidders' accounts, by name.
        match_part: Whether to treat every listed name that contains the bidder's name as its own, as the original does
            (Bidder 1 mistakes Bidder 10 for itself).
    """
    fault = form_fault(statement)
    if fault:
        return Review((fault,), False, BeliefCounts())
    counts = BeliefCounts(self_checks=1)
    problems: list[str] = []
    if statement["remaining_budget"] != me.budget:
        counts.self_errors += 1
        problems.append(reason_text("budget", budget=signed(me.budget), believed=signed(statement["remaining_budget"])))
    own_name = me.bidder.name
    for name, profit in statement["total_profits"].items():
        if name not in accounts:
            continue
        is_own = own_name in name if match_part else own_name == name
        believed_name = own_name if is_own else name
        is_wrong = profit != accounts[believed_name].profit
        _count(counts, is_own, is_wrong, is_own)
        if is_wrong:
            true_profit = accounts[believed_name].profit
            problems.append(
                reason_text("profit", name=believed_name, profit=signed(true_profit), believed=signed(profit))
            )
    for name, wins in statement["winning_bids"].items():
        if name not in accounts:
            continue
        won = [win.lot.name for win in accounts[name].wins]
        is_wrong = set(wins) != set(won)
        _count(counts, own_name in name if match_part else own_name == name, is_wrong, own_name == name)
        if is_wrong:
            problems.append(reason_text("wins", name=name, won=lots_text(won), believed=lots_text(wins)))
    return Review(tuple(problems), True, counts)


def add_counts(total: BeliefCounts, more: BeliefCounts) -> None:
    """Add further counts to a total."""
    total.self_checks += more.self_checks
    total.self_errors += more.self_errors
    total.other_checks += more.other_checks
    total.other_errors += more.other_errors


def _count(counts: BeliefCounts, is_own_check: bool, is_wrong: bool, is_own_error: bool) -> None:
    """Count a check. With partial names, the original counts check and error of one entry differently."""
    if is_own_check:
        counts.self_checks += 1
    else:
        counts.other_checks += 1
    if is_wrong and is_own_error:
        counts.self_errors += 1
    elif is_wrong:
        counts.other_errors += 1


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float))


def _are_numbers(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_is_number, cast("Mapping[str, Any]", value).values()))
