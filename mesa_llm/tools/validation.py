"""Validation of amounts. Rejects true and false as numbers, although Python computes with them."""

from __future__ import annotations

import math
from numbers import Integral, Real

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError


def _no_flag(value: object) -> object:
    if isinstance(value, bool):
        raise PydanticCustomError("number", "Input should be a number, not true or false")
    return value


NO_FLAG = BeforeValidator(_no_flag)
"""Annotation for a numeric action argument; the tool box then rejects true and false."""


def is_number(value: object) -> bool:
    """Check whether a value is a finite number; true and false are not."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def is_whole(value: object) -> bool:
    """Check whether a value is an integer; 2.0, true and false are not."""
    return not isinstance(value, bool) and isinstance(value, Integral)
