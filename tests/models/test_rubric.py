"""A reader's marks on the prompts of all models: clear, complete, true, natural and short, from 1 to 5."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mesa_llm.registry import find_models

RUBRIC: dict[str, Any] = json.loads(Path(__file__).with_name("rubric").joinpath("marks.json").read_text("utf-8"))


@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_prompts_of_a_model_have_been_judged(entry) -> None:
    judged = RUBRIC["models"][entry.name]
    assert len(judged["prompts"]) >= 2
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in judged["prompts"])
    assert set(judged["marks"]) == set(RUBRIC["scale"])
    assert set(judged["marks"].values()) <= {1, 2, 3, 4, 5}


@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_a_low_mark_has_its_reason(entry) -> None:
    judged = RUBRIC["models"][entry.name]
    for name, mark in judged["marks"].items():
        assert mark >= 4 or f"{name}: " in judged["why"]


EXCEPTIONS = {"economy", "three_worlds", "market"}
"""Models whose mean is below 4, for the reasons in the table."""


def test_no_mean_is_below_four_but_where_it_is_said() -> None:
    means = {name: sum(judged["marks"].values()) / 5 for name, judged in RUBRIC["models"].items()}
    assert {name for name, mean in means.items() if mean < 4} <= EXCEPTIONS
