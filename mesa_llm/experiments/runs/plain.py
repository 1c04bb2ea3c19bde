"""Runs of plain Mesa models, in which nothing thinks with a language model."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mesa import Model
from mesa.experimental.scenarios import Scenario

from mesa_llm.model.options import constructor, fields_of

_SEEDS = ("rng", "seed")
"""Parameters of a constructor that take the seed, the first choice first."""


def plain_parameters(kind: type[Model[Any, Any]]) -> list[str]:
    """Return the names of a plain model's parameters: those of its constructor, and of its scenario.

    Args:
        kind: The model's class.
    """
    named = [name for name, one in constructor(kind).parameters.items() if one.kind not in _VARIABLE]
    own = [name for name in named if name not in (*_SEEDS, "scenario")]
    scenario = _scenario_class(kind)
    return own if scenario is None else [*own, *(name for name in fields_of(scenario()) if name != "rng")]


_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@lru_cache(maxsize=256)
def _scenario_class(kind: type[Model[Any, Any]]) -> type[Scenario[Any]] | None:
    """Return the class of the scenario that a model has by default; None if it takes none of its own."""
    if "scenario" not in constructor(kind).parameters:
        return None
    try:
        scenario = type(kind().scenario)
    except TypeError:  # it needs arguments
        return None
    return None if scenario is Scenario else scenario


def make_plain(kind: type[Model[Any, Any]], parameters: Mapping[str, Any], seed: int) -> Model[Any, Any]:
    """Make a plain model with parameters, some of which may be those of its scenario.

    Args:
        kind: The model's class.
        parameters: The parameters.
        seed: The seed.
    """
    named = constructor(kind).parameters
    own = {name: value for name, value in parameters.items() if name in named}
    scenario = _scenario_class(kind)
    if scenario is not None:
        rest = {name: value for name, value in parameters.items() if name not in own}
        return kind(**own, scenario=scenario(**rest, rng=seed))
    takes = next((name for name in _SEEDS if name in named), _SEEDS[0])
    return kind(**{**parameters, takes: seed})
