"""Records of the evidence page: published values, our readings of them, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy import stats

LEVEL = 0.95
"""Confidence of intervals and verdicts."""


@dataclass(frozen=True)
class Claim:
    """A published value that a rule or stored data can reproduce."""

    quantity: str
    """What was measured, and of whom; unique within its model."""

    published: float
    """The value."""

    source: str
    """Publication, file or program that it is from."""

    command: str
    """Command that a user types to see ours."""

    digits: int = 2
    """Digits after the decimal point that are published."""

    n: int = 0
    """Number of runs behind the published value; 0: it is exact, or the number is not known."""


@dataclass(frozen=True)
class LLMClaim:
    """A published value, or several, that only a language model or people can reproduce."""

    quantity: str
    """What was measured, and of whom."""

    published: str
    """The values, as published."""

    source: str
    """Publication or file that they are from."""

    command: str
    """Command that measures the same; `MODEL` stands for a language model of the reader's."""


@dataclass(frozen=True)
class Reading:
    """Our value of a claim."""

    n: int
    """Number of runs, or of values compared."""

    mean: float
    """Mean of the runs, or the value itself."""

    sd: float | None = None
    """Sample standard deviation over runs; None: nothing was drawn, and the value is exact."""

    first: float | None = None
    """Value of the first run."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Reading:
        """Summarise the values of several runs, in their order; those that are not numbers are left out."""
        known = [value for value in values if not math.isnan(value)]
        return cls(len(known), fmean(known), stdev(known) if len(known) > 1 else math.nan, known[0])

    @property
    def half_width(self) -> float:
        """Half of the width of the mean's interval, by Student's t; 0 if the value is exact."""
        return self._t * self.sd / math.sqrt(self.n) if self.sd is not None else 0.0

    @property
    def _t(self) -> float:
        return float(stats.t.ppf((1 + LEVEL) / 2, self.n - 1))

    def verdict(self, claim: Claim) -> str:
        """Compare with a published value.

        An exact value has to round to the published one. The mean of runs has to lie so near that chance alone, in
        ours and in the published runs, leaves them so far apart more than once in twenty times; where the published
        spread is not known, it is taken to be ours.
        """
        gap = self.mean - claim.published
        if self.sd is None:
            is_near = abs(gap) <= 0.5 * 10**-claim.digits + 1e-9
            return "the same" if is_near else f"differs by {gap:+.{claim.digits}f}"
        reach = self._t * self.sd * math.sqrt(1 / self.n + (1 / claim.n if claim.n else 0))
        return "agrees" if abs(gap) <= reach + 0.5 * 10**-claim.digits else f"differs by {gap:+.{claim.digits}f}"


Readings = Mapping[str, Reading]
"""Quantity of a claim → our value."""


@dataclass(frozen=True)
class Study:
    """The published values of one model here."""

    name: str
    """Name of the model."""

    claims: Sequence[Claim]
    """Those that a rule or stored data can reproduce."""

    measure: Callable[[int], Readings]
    """Measures ours, with so many runs of each setting."""

    n_runs: int = 1
    """Number of runs of each setting on the page."""

    data: str = ""
    """Folder of `MESA_LLM_DATA` that holds the stored data; empty: none is needed."""

    note: str = ""
    """What a reader has to know of them."""
