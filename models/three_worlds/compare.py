"""Runs the same town with and without the bridge, from the same seeds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from mesa_llm.worlds.beliefs import tone
from models.three_worlds.model import ThreeWorldsModel
from models.three_worlds.opinions import own_words

MEASURES = ("heard", "talk", "posts", "viral", "trades", "lag", "disagreement", "mean_position")
"""Measures of a run that are compared, as they are at its end; `lag` is the mean over all steps."""


def one_run(bridged: bool, seed: int, **parameters: Any) -> dict[str, Any]:
    """Run a town to its horizon and give what is compared.

    Args:
        bridged: Whether news crosses.
        seed: Seed.
        **parameters: Of the model.

    Returns:
        seed, bridged, the measures, `reports` of the paper, `bets` of the crowd, the `brier` score, `viral_pull` and
        `policies_heard`: how often somebody who looked elsewhere heard of a policy of the town's own government.
    """
    model = ThreeWorldsModel(bridged=bridged, rng=seed, **parameters)
    while model.running:
        model.step()
    row = {name: getattr(model, name) for name in MEASURES}
    row["lag"] = float(model.datacollector.get_model_vars_dataframe()["lag"].mean())
    told = {
        "reports": model.crossings.n_reports,
        "bets": model.crossings.n_bets,
        "brier": model.brier,
        "viral_pull": viral_pull(model),
        "policies_heard": sum(
            one.event.kind == "policy_change" and one.event.source == "economy" for one in model.bridge.deliveries
        ),
    }
    model.close()
    return {"seed": seed, "bridged": bridged, **row, **told}


def viral_pull(model: ThreeWorldsModel) -> float | None:
    """Say how far the price on opinion went the way of a viral post in the step after, on average.

    Args:
        model: The model, after a run.

    Returns:
        Dollars of a one-dollar share; None if nothing went viral that was for or against something.
    """
    key = next(key for key, claim in model.claims.items() if claim.measure == "opinion")
    path = model.market.ledger.markets[key].prices_yes
    pulls: list[float] = []
    for time, event in model.bridge.log:
        if (
            event.kind == "viral_post"
            and (said := tone(own_words(event.facts["text"], model.crossings.reports)))
            and time < len(path)
        ):
            pulls.append((path[time] - path[time - 1]) * (1 if said > 0 else -1))
    return sum(pulls) / len(pulls) if pulls else None


def compare(seeds: Iterable[int], **parameters: Any) -> pd.DataFrame:
    """Run each seed with and without the bridge.

    Args:
        seeds: Seeds.
        **parameters: Of the model, the same for both.

    Returns:
        One row a run; see `one_run`.
    """
    return pd.DataFrame([one_run(bridged, seed, **parameters) for seed in seeds for bridged in (True, False)])
