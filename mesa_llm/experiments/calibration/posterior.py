"""Approximate Bayesian computation: posteriors from a table of simulated series, and a check that they recover truths.

    table = ReferenceTable(draws, series, points)    # draws from the prior, in [0, 1], and what the model made of each
    table.posterior(observed)                        # draws from the posterior of an observed series, weighted
    table.recovery()                                 # are the simulations of the table themselves recovered?

The prior is uniform. A series is summarised by the parameters that a regression over the table predicts from it
(Fearnhead and Prangle 2012), always one that has not seen the simulation in question. The nearest simulations are
accepted and corrected by a local-linear regression (Beaumont et al. 2002). Both sides are logits, which keeps
parameters within the range of the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from mesa_llm.errors import ConfigError
from mesa_llm.statistics import COVERAGE, FloatArray

ACCEPTED = 0.25
"""Share of the simulations that is accepted."""

MIN_ACCEPTED = 100
"""Minimum number of simulations that are accepted, where there are as many: from fewer, intervals are too narrow."""

MIN_POINTS = 20
"""Minimum number of different draws from the prior."""

N_FOLDS = 10
"""Number of regressions, each of which predicts the parameters of the simulations that it has not seen."""

N_COMPONENTS = 8
"""Maximum number of principal components of a series that the regressions use."""

PENALTIES = np.logspace(-4, 3, 15)
"""Penalties among which a ridge regression chooses."""

N_RECOVERED = 200
"""Default maximum number of simulations whose parameters are recovered."""

EDGE = 1e-3
"""Distance from 0 and 1 that a parameter keeps, whose logit would be infinite."""

NO_VARIANCE = 1e-9
"""Share of the variance up to which a principal component is rounding error."""

TINY_SCALE = 1e-12
"""Smallest distance between series that counts as one."""


@dataclass(frozen=True)
class Draws:
    """Weighted draws from a posterior, with parameters in [0, 1]."""

    values: FloatArray
    """The draws, shape `(draws, parameters)`."""

    weights: FloatArray
    """Their weights, shape `(draws,)`, with the sum 1."""

    @property
    def mean(self) -> FloatArray:
        """Mean of each parameter, shape `(parameters,)`."""
        return self.weights @ self.values

    def quantile(self, share: float) -> FloatArray:
        """Return a quantile of each parameter, shape `(parameters,)`."""
        columns = [_weighted_quantile(column, self.weights, share) for column in self.values.T]
        return np.array(columns)

    def interval(self, coverage: float = COVERAGE) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the central credible interval of each parameter, each of shape `(parameters,)`."""
        return self.quantile((1 - coverage) / 2), self.quantile((1 + coverage) / 2)


@dataclass(frozen=True)
class Recovery:
    """What the method makes of simulations whose parameters are known: the truth, the mean and the interval of each."""

    truth: FloatArray
    """Parameters of the simulations, in [0, 1], shape `(simulations, parameters)`."""

    mean: FloatArray
    """Means of their posteriors, of the same shape."""

    low: FloatArray
    """Lower ends of their 95 % intervals, of the same shape."""

    high: FloatArray
    """Upper ends."""

    @property
    def n(self) -> int:
        """Number of simulations."""
        return len(self.truth)

    @property
    def n_covered(self) -> NDArray[np.int64]:
        """Number of simulations whose interval covers the truth, shape `(parameters,)`."""
        return ((self.low <= self.truth) & (self.truth <= self.high)).sum(axis=0)

    @property
    def error(self) -> FloatArray:
        """Root mean square error of the posterior mean, shape `(parameters,)`."""
        return np.sqrt(np.square(self.mean - self.truth).mean(axis=0))

    @property
    def width(self) -> FloatArray:
        """Mean width of the intervals, shape `(parameters,)`; those of the prior are 0.95 wide."""
        return (self.high - self.low).mean(axis=0)


class ReferenceTable:
    """Simulations with parameters drawn from the prior, from which posteriors are computed."""

    def __init__(
        self,
        draws: FloatArray,
        series: FloatArray,
        points: Sequence[int] | NDArray[np.int64] | None = None,
        *,
        accepted: float = ACCEPTED,
    ) -> None:
        """Take the simulations.

        Args:
            draws: Parameters of each simulation, uniform in [0, 1], shape `(simulations, parameters)`.
            series: What the model made of them, all values of a simulation in a row, shape `(simulations, values)`.
            points: Number of the draw that a simulation belongs to, where several (with seeds of their own) share one;
                None: each has a draw of its own.
            accepted: Share of the simulations that is accepted, above 0 and up to 1.

        Raises:
            ConfigError: If there are too few simulations, or the share is out of range.
        """
        self.draws, self.series = np.asarray(draws, np.float64), np.asarray(series, np.float64)
        self.points = np.arange(len(self.draws)) if points is None else np.asarray(points)
        require_share(accepted)
        n_points = len(np.unique(self.points))
        if n_points < MIN_POINTS:
            raise ConfigError(
                f"found {n_points} complete draws from the prior; a posterior needs {MIN_POINTS} or more, and is good "
                "from a few hundred on"
            )
        self.accepted = accepted

    def posterior(self, observed: FloatArray) -> Draws:
        """Compute the posterior of an observed series.

        Args:
            observed: The series, shape `(values,)`.
        """
        row = np.asarray(observed, np.float64).reshape(1, -1)
        summary = np.mean([_predict(fold, row)[0] for _, fold in self._folds], axis=0)
        return self._near(summary, np.ones(len(self.draws), bool))

    def recovery(self, n: int = N_RECOVERED, seed: int = 1) -> Recovery:
        """Recover simulations of the table, each from all others but those with the same draw.

        Args:
            n: Maximum number of simulations, one of each draw.
            seed: Seed of their choice, where there are more.
        """
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(self.draws))
        _, first = np.unique(self.points[order], return_index=True)
        chosen = order[rng.permutation(first)[:n]]
        posteriors = [self._near(self._summaries[index], self.points != self.points[index]) for index in chosen]
        means = np.array([one.mean for one in posteriors])
        ends = np.array([one.interval() for one in posteriors])
        return Recovery(self.draws[chosen], means, ends[:, 0], ends[:, 1])

    @cached_property
    def _folds(self) -> list[tuple[NDArray[np.int64], Any]]:
        """Rows that a regression has not seen, and the regression."""
        folds = GroupKFold(N_FOLDS, shuffle=True, random_state=1).split(self.series, groups=self.points)
        return [(unseen, _fitted(self.series[seen], self.draws[seen])) for seen, unseen in folds]

    @cached_property
    def _summaries(self) -> FloatArray:
        """Predicted logits of the parameters of each simulation, shape `(simulations, parameters)`."""
        summaries = np.empty_like(self.draws)
        for unseen, fold in self._folds:
            summaries[unseen] = _predict(fold, self.series[unseen])
        return summaries

    def _near(self, summary: FloatArray, may_use: NDArray[np.bool_]) -> Draws:
        """Accept the simulations with the nearest summaries, and correct them by the local-linear regression.

        Source:
            Beaumont, Zhang and Balding (2002), Approximate Bayesian Computation in Population Genetics, Genetics 162,
            equations 4 to 8. Residuals are scaled up for the degrees of freedom that the regression takes.
        """
        apart = self._summaries[may_use] - summary
        z = _logits(self.draws[may_use])
        distance = np.sqrt(np.square(apart).sum(axis=1))
        n_columns = 1 + z.shape[1]
        n_accepted = min(len(z), max(round(self.accepted * len(z)), MIN_ACCEPTED))
        nearest = np.argsort(distance, kind="stable")[:n_accepted]
        reach = distance[nearest[-1]]
        closeness = 1 - np.square(distance[nearest] / reach) if reach > TINY_SCALE else np.ones(n_accepted)
        weights = np.maximum(closeness, 0) / np.maximum(closeness, 0).sum()
        design = np.column_stack([np.ones(n_accepted), apart[nearest]])
        root = np.sqrt(weights)[:, None]
        slopes = np.linalg.lstsq(root * design, root * z[nearest], rcond=None)[0]
        residuals = z[nearest] - design @ slopes
        n_effective = 1 / np.square(weights).sum()
        residuals *= np.sqrt(n_effective / max(n_effective - n_columns, 1))
        return Draws(expit(slopes[0] + residuals), weights)


def require_share(accepted: float) -> None:
    """Check the share of the simulations that is accepted.

    Raises:
        ConfigError: If it is not above 0 and up to 1.
    """
    if not 0 < accepted <= 1:
        raise ConfigError(f"accepted is a share of the simulations, above 0 and up to 1; got {accepted!r}")


def _fitted(series: FloatArray, draws: FloatArray) -> Any:
    """Fit the parameters by a quadratic function of the principal components of the series."""
    scaled = StandardScaler().fit_transform(series)
    shares = np.linalg.svd(scaled, compute_uv=False) ** 2 / scaled.size
    n_varying = int((shares > NO_VARIANCE).sum())
    pipeline = make_pipeline(
        StandardScaler(),
        PCA(max(1, min(N_COMPONENTS, n_varying, len(series) // 20)), svd_solver="full"),
        StandardScaler(),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        RidgeCV(PENALTIES),
    )
    return pipeline.fit(series, draws)


def _predict(fold: Any, series: FloatArray) -> FloatArray:
    """Return the logits of the parameters that a regression predicts, shape `(simulations, parameters)`."""
    return _logits(fold.predict(series).reshape(len(series), -1))


def _logits(draws: FloatArray) -> FloatArray:
    return logit(np.clip(draws, EDGE, 1 - EDGE))


def _weighted_quantile(values: FloatArray, weights: FloatArray, share: float) -> float:
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share, cumulated, values[order]))
