"""The same town with and without the bridge, from the same seeds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from mesa_llm_models.three_worlds.model import ThreeWorldsModel


def one_run(bridged: bool, seed: int, **parameters: Any) -> dict[str, Any]:
    """Run a town to its horizon.

    Args:
        bridged: Whether news crosses.
        seed: Seed.
        **parameters: Other parameters of the model.

    Returns:
        `seed`, `bridged`, and the results of the model by name.
    """
    model = ThreeWorldsModel(bridged=bridged, rng=seed, **parameters)
    while model.running:
        model.step()
    results = model.results()
    model.close()
    return {"seed": seed, "bridged": bridged, **results}


def compare(seeds: Iterable[int], **parameters: Any) -> pd.DataFrame:
    """Run each seed with and without the bridge.

    Args:
        seeds: Seeds.
        **parameters: Other parameters of the model, the same for both.

    Returns:
        One row a run; see `one_run`.
    """
    return pd.DataFrame([one_run(bridged, seed, **parameters) for seed in seeds for bridged in (True, False)])
