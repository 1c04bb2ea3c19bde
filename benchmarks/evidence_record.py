"""Records of the evidence page: published values, our readings of them, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy import stats

LEVEL = 0.95
"""Confidence of intervals and tests."""


@dataclass(frozen=True)
class Claim:
    """A published value that a rule or stored data can reproduce."""

    quantity: str
    """Measured quantity and its subject; unique within its model."""

    published: float
    """The value."""

    source: str
    """Source: a publication, file or program."""

    command: str
    """Command that reproduces our value."""

    digits: int = 2
    """Number of published digits after the decimal point."""

    n: int = 0
    """Number of runs behind the published value; 0: it is exact, or the number is not known."""

    margin: float | None = None
    """Distance within which ours agrees; None: a tenth of the value."""

    @property
    def tolerance(self) -> float:
        """Distance within which ours agrees."""
        return abs(self.published) / 10 if self.margin is None else self.margin


@dataclass(frozen=True)
class LLMClaim:
    """A published value, or several, that only a language model or people can reproduce."""

    quantity: str
    """Measured quantity and its subject."""

    published: str
    """The values, as published."""

    source: str
    """Source: a publication or file."""

    command: str
    """Command that measures the same; `MODEL` stands for the reader's language model."""


@dataclass(frozen=True)
class Reading:
    """Our value of a claim."""

    n: int
    """Number of runs, or of values compared."""

    mean: float
    """Mean of the runs, or the value itself."""

    sd: float | None = None
    """Sample standard deviation over runs; None: the value is exact, without random draws."""

    first: float | None = None
    """Value of the first run."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Reading:
        """Summarise the values of several runs, in order, without NaN."""
        known = [value for value in values if not math.isnan(value)]
        return cls(len(known), fmean(known), stdev(known) if len(known) > 1 else math.nan, known[0])

    @property
    def half_width(self) -> float:
        """Half-width of the mean's 95 % interval, by Student's t; 0 if the value is exact."""
        return self._t(0.975) * self.sd / math.sqrt(self.n) if self.sd is not None else 0.0

    def _t(self, level: float) -> float:
        return float(stats.t.ppf(level, self.n - 1))

    def _error(self, claim: Claim) -> float:
        """Return the standard error of the distance; if the published spread is not known, ours is used for it."""
        return (self.sd or 0.0) * math.sqrt(1 / self.n + (1 / claim.n if claim.n else 0))

    def p(self, claim: Claim) -> float | None:
        """Return the two-sided p of no distance beyond the rounding of the published value; None if it is exact."""
        if self.sd is None:
            return None
        gap = max(0.0, abs(self.mean - claim.published) - 0.5 * 10**-claim.digits)
        error = self._error(claim)
        return float(2 * stats.t.sf(gap / error, self.n - 1)) if error else float(gap == 0)

    def verdict(self, claim: Claim, p: float | None = None) -> str:
        """Compare with a published value.

        An exact value has to round to the published one. The mean of runs agrees if the 90 % interval of its distance
        lies within the margin of the claim (two one-sided tests); it differs if p is at most .05; otherwise the runs
        cannot tell.

        Args:
            claim: The published value.
            p: p of no distance, corrected for all that is compared; None: that of this claim alone.
        """
        gap = self.mean - claim.published
        differs = f"differs by {gap:+.{claim.digits}f}"
        if self.sd is None:
            return "the same" if abs(gap) <= 0.5 * 10**-claim.digits + 1e-9 else differs
        if abs(gap) + self._t(0.95) * self._error(claim) <= claim.tolerance:
            return "agrees"
        p = self.p(claim) if p is None else p
        return differs if p is not None and p <= 1 - LEVEL else "cannot tell"


Readings = Mapping[str, Reading]
"""Quantity of a claim → our value."""


@dataclass(frozen=True)
class Study:
    """The published values of one model here."""

    name: str
    """Name of the model."""

    claims: Sequence[Claim]
    """Claims that a rule or stored data can reproduce."""

    measure: Callable[[int], Readings]
    """Function from the number of runs of each setting to our values."""

    n_runs: int = 1
    """Number of runs of each setting on the page."""

    data: str = ""
    """Folder of the stored data in `MESA_LLM_DATA`; empty: not needed."""

    note: str = ""
    """Note for the reader."""
