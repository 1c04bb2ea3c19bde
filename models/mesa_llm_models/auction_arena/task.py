"""AuctionArena as a benchmark task: the TrueSkill of one bidder against its opponents over ten auctions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mesa_llm.experiments.benchmarks import Baseline, Measure, PublishedError, Task
from mesa_llm_models.auction_arena.model import AuctionArena

BIDDER = 1
"""Id of the measured bidder."""

LOTS = 10
"""Number of lots in an auction."""


def against_opponents(*, llm: Any = "rule", opponents: str | list[str] = "", **options: Any) -> AuctionArena:
    """Seat the measured bidder and its opponents, by default two bidders with AucArena's rule.

    Args:
        llm: Language model of the measured bidder; by rule it bids up to a lot's value. Several, by agent, leave out
            `opponents`.
        opponents: Language models of the others; see `AuctionScenario`.
        **options: Other fields of `AuctionScenario`, and options of all models.
    """
    llms = llm if opponents or isinstance(llm, Mapping) else {BIDDER: llm, "*": "rule"}
    return AuctionArena(llm=llms, opponents=opponents, **{"twins": "value,rule,rule", **options})


def scores(model: AuctionArena) -> Mapping[str, float]:
    """Return the measured bidder's TrueSkill, and the means of its profit and its lots."""
    results, name = model.results(), model.bidders[BIDDER].config.name
    profit = results[f"profit.{name}"] / 1000
    return {"skill": results[f"skill.{name}"], "profit, $1,000": profit, "lots": results[f"lots.{name}"]}


TASK = Task(
    "auction_arena",
    against_opponents,
    scores,
    10 * LOTS,
    2,
    "Chen et al. (2023), AucArena, arXiv 2310.05746",
    setting={"n_auctions": 10, "fidelity": "original"},
    quick={"n_auctions": 1, "n_lots": 3},
    target_note="there is no error without --target FILE; opponents are rule bidders unless `opponents` names others",
    unit="TrueSkill",
    published=PublishedError(
        2.22,
        10.49,
        "gpt-4-1106-preview against it and gpt-3.5-turbo-1106, 10 auctions; baseline: no memory",
        other_target="TrueSkill values that the paper only plots",
    ),
    baseline=Baseline(without=("memory",)),
    measure=Measure("TrueSkill", lambda found: found["skill"]),
)
