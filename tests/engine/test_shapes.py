"""Shapes of replies met in the field, each against every kind of question; and what is combined and cut of them."""

from __future__ import annotations

import pytest

from tests.engine.shapes import KINDS, SHAPES, fault, fuzzed, outcome


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_is_read_for_what_it_says(shape, kind) -> None:
    value, reading = outcome(shape.body(kind), kind)
    assert value == shape.expected(kind)
    assert reading


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_read_that_does_not_stand_whole_and_outside_of_a_thought(seed) -> None:
    assert [found for one in fuzzed(2_000, seed) if (found := fault(*one))] == []
