"""Prompts of all models read as a person would write them."""

from __future__ import annotations

import pytest

from mesa_llm.registry import find_models
from tests.models.reading import faults_in, prompts_of


@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_prompts_have_no_fault_that_a_program_finds(entry) -> None:
    assert list(faults_in(prompts_of(entry))) == []
