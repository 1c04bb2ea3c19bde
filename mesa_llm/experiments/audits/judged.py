"""What the runs of an audit say, look by look: which changes are decided, and which runs the next look takes."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from mesa_llm.experiments.audits.claim import AuditClaim
from mesa_llm.experiments.audits.setup import AuditSetup, Condition, runs_of
from mesa_llm.experiments.audits.verdict import PairedEffects, Shown, Stability, judge, scale_of, shown
from mesa_llm.experiments.runs.run import Run


@dataclass(frozen=True)
class Judged:
    """What the runs of an audit say, look by look."""

    n_seeds: Mapping[Condition, int]
    """Claim and arm → number of seeds with which it was run."""

    changes: Mapping[Condition, Stability]
    """Claim and perturbation → what it does to the claim."""

    shown: Mapping[Condition, Shown]
    """Claim, and the baseline or a control → what it says of the claim."""


def judged_by_looks(setup: AuditSetup, rows: Mapping[Path, Mapping[str, Any]]) -> Generator[list[Run], None, Judged]:
    """Yield all runs that a look takes, and judge their rows when it goes on; the same rows end the same way.

    Args:
        setup: The audit.
        rows: Log of a run → its row; it must hold those of the runs yielded before going on.

    Returns:
        What the runs say.
    """
    claims, arms = range(len(setup.claims)), range(len(setup.arms))
    conditions, n_changes = list(product(claims, arms)), len(setup.plan.perturbations)
    n_seeds, changes, what = dict[Condition, int](), dict[Condition, Stability](), dict[Condition, Shown]()
    effects: dict[Condition, list[float]] = {one: [] for one in conditions}
    going_on = conditions
    for look in setup.looks:
        n_seeds |= dict.fromkeys(going_on, look.n_seeds)
        yield runs_of(setup, n_seeds)
        for one in going_on:
            effects[one] = effects_of(setup, rows, one, look.n_seeds)
        open_changes = [one for one in going_on if 1 <= one[1] <= n_changes]
        n_stable = sum(one.change == "stable" for one in changes.values())
        contrasts = [_contrast(setup, effects, one) for one in open_changes]
        found = judge(contrasts, level=look.level, n_stable=n_stable, look=look.number)
        changes |= dict(zip(open_changes, found, strict=True))
        beside = [one for one in going_on if one not in changes and what.get(one, "not shown") == "not shown"]
        what |= {one: _shown(setup, one, effects[one], look.level) for one in beside}
        undecided = [one for one in open_changes if changes[one].change == "undecided"]
        has_open = {claim for claim, _ in undecided}
        going_on = [
            one
            for one in conditions
            if one in undecided
            or (one[1] == 0 and (one[0] in has_open or what[one] == "not shown"))
            or (one[0] in has_open and what.get(one) == "not shown")
        ]
        if not going_on:
            break
    return Judged(n_seeds, changes, what)


def _contrast(setup: AuditSetup, effects: Mapping[Condition, Sequence[float]], one: Condition) -> PairedEffects:
    """Return the effects of a claim under a perturbation, beside those of the baseline."""
    claim, perturbed = setup.claims[one[0]], effects[one]
    seen = [value for (index, _), values in effects.items() if index == one[0] for value in values]
    own = effects[one[0], 0]
    return PairedEffects(own, perturbed, claim.expectation, claim.smallest_effect, scale_of(seen))


def _shown(setup: AuditSetup, one: Condition, effects: Sequence[float], level: float) -> Shown:
    """Return what the effects of a claim in an arm say of it."""
    claim = setup.claims[one[0]]
    finite = [value for value in effects if math.isfinite(value)]
    return shown(finite, claim.expectation, claim.smallest_effect, level=level)


def effects_of(setup: AuditSetup, rows: Mapping[Path, Mapping[str, Any]], one: Condition, n_seeds: int) -> list[float]:
    """Return the effects of a claim in an arm, one for each of the first seeds; NaN where a run lacks the measure."""
    claim = setup.claims[one[0]]
    runs = [setup.runs(one, seed) for seed in setup.seeds[:n_seeds]]
    return claim.effects([[value_of(claim, rows[run.log]) for run in of] for of in zip(*runs, strict=True)])


def value_of(claim: AuditClaim, row: Mapping[str, Any]) -> float:
    """Return the measure of a claim in one run; NaN without it."""
    value = None if row["error"] else claim.value_in(row)
    return math.nan if value is None else value
