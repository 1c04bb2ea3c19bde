"""The range of numbers that a JSON schema allows, exactly in decimal: 0.1 is a tenth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

MAX_MULTIPLES = 500
"""Maximum number of multiples of a step that are listed one by one."""


MAX_SHOWN = Decimal(10) ** 9
"""Magnitude from which a bound is a technical one, which is kept but not described."""


class Range(NamedTuple):
    """A range of numbers; that of integers is closed and has whole ends."""

    low: Decimal | None
    """Lower end; None: there is none."""

    low_is_open: bool
    """True if the lower end itself is excluded."""

    high: Decimal | None
    """Upper end; None: there is none."""

    high_is_open: bool
    """True if the upper end itself is excluded."""

    @property
    def is_empty(self) -> bool:
        """Whether no number lies in it."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_is_open or self.high_is_open))

    def holds(self, number: Decimal) -> bool:
        """Check whether a number lies in it."""
        above = self.low is None or self.low < number or (self.low == number and not self.low_is_open)
        below = self.high is None or number < self.high or (self.high == number and not self.high_is_open)
        return above and below

    def multiples(self, step: Decimal) -> list[Decimal] | None:
        """List its multiples of a step; None if it is unbounded, or there are more than `MAX_MULTIPLES`."""
        if self.low is None or self.high is None or step <= 0 or (self.high - self.low) / step > MAX_MULTIPLES:
            return None
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [number * step for number in range(first, last + 1) if self.holds(number * step)]


def number_range(schema: Mapping[str, Any]) -> Range:
    """Return the range of a schema of type `integer` or `number`; of two bounds, the tighter one holds."""
    low = max(_bounds(schema, "minimum", "exclusiveMinimum", open_is=1), default=(None, 0))
    high = min(_bounds(schema, "maximum", "exclusiveMaximum", open_is=-1), default=(None, 0))
    wide = Range(low[0], low[1] != 0, high[0], high[1] != 0)
    return _whole(wide) if schema["type"] == "integer" else wide


def number_step(schema: Mapping[str, Any]) -> Decimal | None:
    """Return the step of a schema of type `integer` or `number`, for integers its first whole multiple; None: none."""
    step = schema.get("multipleOf")
    if step is None or not is_finite_number(step) or step <= 0:
        return None
    return Decimal(Fraction(str(step)).numerator) if schema["type"] == "integer" else Decimal(str(step))


def _bounds(schema: Mapping[str, Any], inclusive: str, exclusive: str, open_is: int) -> list[tuple[Decimal, int]]:
    """Return the bounds of one side with marks, by which the tighter of two bounds with one value is told."""
    keywords = ((inclusive, 0), (exclusive, open_is))
    return [(Decimal(str(schema[key])), mark) for key, mark in keywords if is_finite_number(schema.get(key))]


def _whole(wide: Range) -> Range:
    """Return the range of the integers in a range."""
    low, high = wide.low, wide.high
    if low is not None:
        low = Decimal(math.floor(low) + 1 if wide.low_is_open else math.ceil(low))
    if high is not None:
        high = Decimal(math.ceil(high) - 1 if wide.high_is_open else math.floor(high))
    return Range(low, low_is_open=False, high=high, high_is_open=False)


def is_finite_number(value: object) -> bool:
    """Check whether a value is a number that can bound a range, which true and false cannot."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def bound_text(bound: object) -> str:
    """Write a bound of a range as a person does, such as 1,000 or 0.5; empty: none, or a technical one."""
    number = Decimal(str(bound)) if isinstance(bound, Decimal) or is_finite_number(bound) else None
    return "" if number is None or abs(number) >= MAX_SHOWN else f"{number.normalize():,f}"
