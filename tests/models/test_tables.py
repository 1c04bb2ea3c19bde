"""The tables on the pages of the models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from typing import Any

import pytest

from mesa_llm.registry import find_models
from mesa_llm.viz.components.tables import ModelTable

NAMES = (
    "cognitive_biases",
    "compost",
    "discussion",
    "econ_agent",
    "economy",
    "emergent_analogies",
    "emotionbench",
    "market",
    "psychobench",
    "stock_agent",
    "three_worlds",
)


def tables(name: str, model: Any) -> Iterator[tuple[Any, ...]]:
    """Iterate over the tables of a model's page: function that lists the rows, and columns."""
    for part in import_module(f"mesa_llm_models.{name}.app").page.kwargs["components"]:
        element = (part[0] if isinstance(part, tuple) else part)(model)
        if getattr(element, "component", None) is ModelTable:
            yield element.args[1:3]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_has_a_text_for_each_column(name: str) -> None:
    model = next(entry for entry in find_models() if entry.name == name).load()(llm="rule", rng=1)
    with closing(model):
        model.run_for(2)
        shown = list(tables(name, model))
        assert shown
        for rows, columns in shown:
            cells = [getattr(row, "cells", row) for row in rows(model)]
            assert {len(row) for row in cells} == {len(columns)}
            assert all(isinstance(text, str) for row in cells for text in row)
