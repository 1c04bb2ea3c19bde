"""AuctionArena as a benchmark task: the TrueSkill of one bidder against two rule bidders over ten auctions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mesa_llm.experiments.benchmark import Measure, PublishedError, Task
from mesa_llm_models.auction_arena.model import AuctionArena

BIDDER = 1
"""Id of the measured bidder."""

LOTS = 10
"""Number of lots in an auction."""


def against_rules(*, llm: Any = "rule", **options: Any) -> AuctionArena:
    """Seat the measured bidder, and two bidders with AucArena's rule.

    Args:
        llm: Language model of the measured bidder. By rule it bids up to a lot's value.
        **options: Fields of `AuctionScenario`, and options of all models.
    """
    return AuctionArena(llm={BIDDER: llm, "*": "rule"}, **{"twins": "value,rule,rule", **options})


def scores(model: AuctionArena) -> Mapping[str, float]:
    """Return the measured bidder's TrueSkill, and the means of its profit and its lots."""
    results, name = model.results(), model.bidders[BIDDER].config.name
    profit = results[f"profit.{name}"] / 1000
    return {"skill": results[f"skill.{name}"], "profit, $1,000": profit, "lots": results[f"lots.{name}"]}


TASK = Task(
    "auction_arena",
    against_rules,
    scores,
    10 * LOTS,
    2,
    "Chen et al. (2023), AucArena, arXiv 2310.05746",
    setting={"n_auctions": 10, "fidelity": "original"},
    quick={"n_auctions": 1, "n_lots": 3},
    target_note="the paper only plots its TrueSkill values, so that there is no error; opponents here are rule bidders",
    unit="TrueSkill",
    published=PublishedError(
        2.22, 10.49, "gpt-4-1106-preview against it and gpt-3.5-turbo-1106, 10 auctions; baseline: no memory"
    ),
    measure=Measure("TrueSkill", lambda found: found["skill"]),
)
