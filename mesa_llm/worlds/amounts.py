"""Amounts as the worlds take them: true and false are no numbers, though Python counts with them."""

from __future__ import annotations

import math
from numbers import Integral, Real

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError


def _no_flag(given: object) -> object:
    if isinstance(given, bool):
        raise PydanticCustomError("number", "Input should be a number, not true or false")
    return given


NO_FLAG = BeforeValidator(_no_flag)
"""Put beside a numeric type of an action's argument: a tool box then refuses true and false."""


def is_number(value: object) -> bool:
    """Tell whether a value is a finite number, and neither true nor false."""
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def is_whole(value: object) -> bool:
    """Tell whether a value is a whole number, written as one; true and false are none."""
    return not isinstance(value, bool) and isinstance(value, Integral)
