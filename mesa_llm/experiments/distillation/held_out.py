"""Scores a surrogate by decisions that it was not fitted to, beside chance, frequencies and the rule twin."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import OutsideSurrogate
from mesa_llm.experiments.distillation.fitting import (
    FLOOR,
    Sample,
    crps,
    fitted_to,
    folds_of,
    quantiles,
    run_folds_of,
)
from mesa_llm.experiments.distillation.recorded import RecordedChoice
from mesa_llm.llm.schema.flat import Schema
from mesa_llm.llm.schema.ranges import number_range
from mesa_llm.llm.surrogate.file import Fitted, HeldOut, PartScore
from mesa_llm.llm.surrogate.parts import (
    Choice,
    Number,
    OptionChoice,
    listed,
    plain_part,
)
from mesa_llm.statistics import ratio_estimate

MAX_OUTSIDE = 0.25
"""Maximum share of decisions outside of what other runs hold, as each has its own persona: with more, agents of the
same runs are held out.
"""


def held_out_by(by_label: Mapping[str, Sequence[RecordedChoice]], without: Collection[str]) -> HeldOut | None:
    """Predict each decision by a model fitted to the others; None if all are of one step.

    Runs are held out where there are several, and others hold what is needed to predict them.
    """
    rows = [row for label in sorted(by_label) for row in by_label[label]]
    runs = run_folds_of(rows)
    if len(set(runs)) > 1:
        found = _held_out(by_label, without, "runs", rows, runs)
        if found.n_outside <= MAX_OUTSIDE * found.n:
            return found
    by, folds = folds_of(rows)
    return _held_out(by_label, without, by, rows, folds) if len(set(folds)) > 1 else None


def _held_out(
    by_label: Mapping[str, Sequence[RecordedChoice]],
    without: Collection[str],
    by: Literal["runs", "agents", "steps"],
    rows: Sequence[RecordedChoice],
    folds: Sequence[int],
) -> HeldOut:
    """Predict the decisions of each part by a model fitted to the other parts."""
    losses: dict[tuple[str, str], list[tuple[int, _Loss]]] = {}
    n_outside = 0
    for fold in sorted(set(folds)):
        for label in sorted(by_label):
            train = [row for row, one in zip(rows, folds, strict=True) if one != fold and row.label == label]
            test = [row for row, one in zip(rows, folds, strict=True) if one == fold and row.label == label]
            if not train:
                n_outside += len(test)
                continue
            scorer = _Scorer(fitted_to(label, Sample(train, without)), train)
            for row in test:
                try:
                    scored = list(scorer.losses(row))
                except OutsideSurrogate:
                    n_outside += 1
                    continue
                for part, loss in scored:
                    losses.setdefault((label, part), []).append((row.run, loss))
    scores = [_score(label, part, several, by) for (label, part), several in losses.items()]
    n_runs = len({row.run for row in rows})
    return HeldOut(by=by, n_folds=len(set(folds)), n=len(rows), n_runs=n_runs, n_outside=n_outside, scores=scores)


@dataclass(frozen=True)
class _Loss:
    """Losses of one held-out decision."""

    surrogate: float
    chance: float
    frequencies: float
    rule: float | None
    is_number: bool = False
    is_hit: bool = False
    is_twin: bool | None = None
    confidence: float = 0.0


class _Scorer:
    """Scores decisions by a model that was fitted to others."""

    def __init__(self, fitted: Fitted, train: Sequence[RecordedChoice]) -> None:
        self.fitted = fitted
        self.train = train
        self.counts: dict[str, Counter[str]] = {}
        self.agreement: dict[str, tuple[int, int]] = {}
        self.numbers: dict[str, list[float]] = {}
        for row in train:
            for part, value, twin, _ in _parts(row):
                self.counts.setdefault(part, Counter())[canonical_json(value)] += 1
                if isinstance(value, int | float) and not isinstance(value, bool):
                    self.numbers.setdefault(part, []).append(float(value))
                if twin:
                    agreed, n = self.agreement.get(part, (0, 0))
                    self.agreement[part] = agreed + (canonical_json(twin[0]) == canonical_json(value)), n + 1

    def losses(self, row: RecordedChoice) -> Iterator[tuple[str, _Loss]]:
        """Yield each part of a decision with its losses; parts without an alternative are left out.

        Raises:
            OutsideSurrogate: If it is outside of what was fitted.
        """
        columns = self.fitted.columns(row.facts)
        for name, value, twin, schema in _parts(row):
            if schema is None:
                model, options, known = self.fitted.action, list(row.offer), {}
            else:
                argument = self.fitted.arguments.get(name)
                model, options = None if argument is None else argument.part, listed(schema)
                known = row.options.get(name.partition(".")[2], {})
            if isinstance(model, Choice | OptionChoice) and options is not None and value in options:
                if len(options) > 1:
                    shares = model.probabilities(options, columns, known)
                    yield name, self._log_losses(name, value, twin, options, shares)
            elif isinstance(model, Number) and schema is not None:
                yield name, self._number_losses(name, float(value), twin, schema, model.values(columns, schema))
            elif model is None:
                raise OutsideSurrogate(f"{name} was never chosen")

    def _log_losses(
        self, name: str, value: Any, twin: tuple[Any, ...], options: Sequence[Any], shares: Sequence[float]
    ) -> _Loss:
        place, n = options.index(value), len(options)
        counts = [self.counts[name][canonical_json(option)] + 1 for option in options]
        rule, is_twin = None, None
        if name in self.agreement:
            agreed, n_twins = self.agreement[name]
            share = (agreed + 1) / (n_twins + 2)
            is_twin = bool(twin) and canonical_json(twin[0]) == canonical_json(value)
            has_twin = bool(twin) and any(canonical_json(twin[0]) == canonical_json(option) for option in options)
            rule = _log_loss((share if is_twin else (1 - share) / (n - 1)) if has_twin else 1 / n)
        return _Loss(
            _log_loss(shares[place]),
            math.log(n),
            _log_loss(counts[place] / sum(counts)),
            rule,
            is_hit=shares[place] == max(shares),
            is_twin=is_twin,
            confidence=max(shares),
        )

    def _number_losses(
        self, name: str, value: float, twin: tuple[Any, ...], schema: Schema, drawn: Sequence[float]
    ) -> _Loss:
        recorded, span = self.numbers[name], number_range(schema)
        low = min(recorded) if span.low is None else float(span.low)
        high = max(recorded) if span.high is None else float(span.high)
        grid = np.linspace(low, high, 101).tolist()
        chance = crps(grid, value)
        is_number = bool(twin) and isinstance(twin[0], int | float)
        rule = None
        if name in self.agreement:
            rule = abs(float(twin[0]) - value) if is_number else chance
        marginal = crps(quantiles(np.array(recorded)), value)
        return _Loss(crps(drawn, value), chance, marginal, rule, is_number=True)


def _parts(row: RecordedChoice) -> Iterator[tuple[str, Any, tuple[Any, ...], Schema | None]]:
    """Yield the parts of a decision: name, value, that of the rule twin in a tuple (empty: it has none), and schema."""
    action, arguments = row.twin or ("", None)
    if row.action:
        yield "action", row.action, () if row.twin is None else (action,), None
    is_same = row.twin is not None and action == row.action
    for name, inner in row.offer.get(row.action, {"properties": {}})["properties"].items():
        if row.arguments.get(name) is None:
            continue
        twin = (arguments[name],) if is_same and arguments is not None and name in arguments else ()
        yield f"{row.action}.{name}", row.arguments[name], twin, plain_part(inner)


def _log_loss(share: float) -> float:
    return -math.log(max(share, FLOOR))


def _score(label: str, part: str, by_run: Sequence[tuple[int, _Loss]], by: str) -> PartScore:
    losses = [loss for _, loss in by_run]
    low, high = _interval(by_run) if by == "runs" else (None, None)
    rules = [loss.rule for loss in losses if loss.rule is not None]
    twins = [loss.is_twin for loss in losses if loss.is_twin is not None]
    is_number = losses[0].is_number
    return PartScore(
        label=label,
        part=part,
        measure="CRPS" if is_number else "log loss",
        n=len(losses),
        n_runs=len({run for run, _ in by_run}),
        surrogate=_mean([loss.surrogate for loss in losses]),
        low=low,
        high=high,
        chance=_mean([loss.chance for loss in losses]),
        frequencies=_mean([loss.frequencies for loss in losses]),
        rule=_mean(rules) if len(rules) == len(losses) else None,
        accuracy=None if is_number else _mean([loss.is_hit for loss in losses]),
        rule_accuracy=None if is_number or not twins else _mean(twins),
        confidence=None if is_number else _mean([loss.confidence for loss in losses]),
    )


def _interval(by_run: Sequence[tuple[int, _Loss]]) -> tuple[float | None, float | None]:
    """Return the interval of the mean loss of a decision, over runs; it ends at 0."""
    sums: dict[int, list[float]] = {}
    for run, loss in by_run:
        sums.setdefault(run, []).append(loss.surrogate)
    found = ratio_estimate([math.fsum(one) for one in sums.values()], [float(len(one)) for one in sums.values()])
    if found.low is None or found.high is None:
        return None, None
    return round(max(found.low, 0.0), 4), round(found.high, 4)


def _mean(values: Sequence[float]) -> float:
    return round(math.fsum(values) / len(values), 4)
