"""Interactions of an audit: pairs of changes that do together what neither does alone, and the multiverse of all runs.

    found = audit(DilemmaModel, [claim], llm="local:1.5b", folder="runs/audit", interactions=True)
    found.chart("multiverse of retaliation")

Running every pair would take hundreds of conditions. So a fraction of all combinations is run first, several changes
at once, each pair of changes in about as many of them as any other: what is left of the claim's effect after the sum
of the single effects points to a few pairs. These are then run alone and tested, with seeds that did not select them.

Source:
    Box and Hunter (1961), The 2^(k-p) fractional factorial designs, Technometrics 3(3); Dorfman (1943), The detection
    of defective members of large populations, Annals of Mathematical Statistics 14(4), for screening in groups.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.audits.claim import AuditClaim
from mesa_llm.experiments.audits.dimensions import AuditPlan, Perturbation, Setting, is_accepted
from mesa_llm.experiments.audits.multiverse import Interactions, MultiverseRow, PairRow
from mesa_llm.experiments.runs.run import Run
from mesa_llm.model.model import LLMModel
from mesa_llm.statistics import Comparison, Estimate, FloatArray, compare, correct, mean_estimate
from mesa_llm.text import counted

DEFAULT = 64
"""Number of combinations, if none is given."""

MIN_COMBINATIONS = 8
"""Minimum number of combinations."""

N_TESTED = 6
"""Maximum number of pairs that are run alone and tested after a screening."""

N_SCREENED, N_SEEDS = 5, 20
"""Number of seeds of a combination that is screened, and of a pair that is tested."""

MAX_ON = 6
"""Maximum number of changes in one combination: more of them would leave little of the model as it is."""

MIN_LEFT = 0.05
"""Minimum sum of squares that the single changes must leave of a pair, for the combinations to say anything of it."""

CANDIDATES = 40
"""Number of random combinations of which the one is taken that holds the pairs that are rarest so far."""

type Changes = tuple[int, ...]
"""Indices of changes that are made together, in the order of the audit's perturbations; empty: the baseline."""


@dataclass(frozen=True)
class InteractionPlan:
    """Which changes are made together."""

    pairs: Sequence[Changes]
    """All pairs of changes that go together."""

    combinations: Sequence[Changes]
    """The combinations of several changes that are run for a screening; empty: all pairs are tested."""


class InteractionSetup(Protocol):
    """What of an audit's setup its interactions need."""

    @property
    def model(self) -> type[LLMModel]:
        """Class of the model."""
        ...

    @property
    def claims(self) -> Sequence[AuditClaim]:
        """The claims."""
        ...

    @property
    def seeds(self) -> Sequence[int]:
        """Seeds of the runs, in order."""
        ...

    @property
    def plan(self) -> AuditPlan:
        """Perturbations and controls."""
        ...

    @property
    def interactions(self) -> InteractionPlan | None:
        """Which perturbations are made together; None: none."""
        ...

    def under(self, one: Setting, perturbation: Perturbation | None) -> Setting:
        """Return a setting of a claim under a perturbation."""
        ...

    def job(self, setting: Setting, seed: int) -> Run:
        """Return the run of a setting with a seed."""
        ...


# -- the design


def together(changes: Sequence[Perturbation], made: Changes) -> Perturbation | None:
    """Return several changes as one; None without any.

    Args:
        changes: The perturbations of an audit.
        made: Those that are made.
    """
    if not made:
        return None
    whole = Setting()
    for index in made:
        whole = changes[index].change.over(whole, keeps_llm=True)
    llm = next((changes[index].llm for index in made if changes[index].llm), "")
    return Perturbation("interactions", " + ".join(changes[index].name for index in made), whole, llm)


def go_together(changes: Sequence[Perturbation]) -> list[Changes]:
    """Return the pairs of changes that do not set the same thing.

    Args:
        changes: The perturbations of an audit.
    """
    sets = [one.change.names | ({"llm"} if one.llm else set()) for one in changes]
    return [pair for pair in combinations(range(len(changes)), 2) if sets[pair[0]].isdisjoint(sets[pair[1]])]


def plan_interactions(
    model: type[LLMModel], setting: Setting, changes: Sequence[Perturbation], n: int = DEFAULT
) -> InteractionPlan:
    """Choose combinations of changes: of random ones, each time that which holds the pairs that are rarest so far.

    Args:
        model: The model, which must accept them.
        setting: The setting of the baseline.
        changes: The perturbations of an audit.
        n: Number of combinations.

    Returns:
        The plan, always the same; without combinations if there are no more pairs than that, which are then all tested.

    Raises:
        ConfigError: If no two changes go together, or the number is too small.
    """
    if n < MIN_COMBINATIONS:
        raise ConfigError(f"interactions need at least {MIN_COMBINATIONS} combinations, got {n}")
    pairs = go_together(changes)
    if len(pairs) <= n:
        pairs = [pair for pair in pairs if _is_accepted(model, setting, changes, pair)]
    if not pairs:
        raise ConfigError(
            f"interactions need two changes that go together; the audit has {counted(len(changes), 'change')}: audit "
            "more dimensions"
        )
    if len(pairs) <= n:
        return InteractionPlan(pairs, [])
    rng, seen, chosen = random.Random(1), Counter[Changes](), list[Changes]()
    for _ in range(n):
        drawn = {_drawn(rng, len(changes), set(pairs)) for _ in range(CANDIDATES)} - set(chosen)
        by_rarity = sorted(drawn, key=lambda one: (-sum(1 / (1 + seen[pair]) ** 2 for pair in _pairs_in(one)), one))
        accepted = next((one for one in by_rarity if _is_accepted(model, setting, changes, one)), None)
        if accepted is not None:
            chosen.append(accepted)
            seen.update(_pairs_in(accepted))
    return InteractionPlan(pairs, chosen)


def _pairs_in(made: Changes) -> list[Changes]:
    return list(combinations(made, 2))


def _is_accepted(model: type[LLMModel], setting: Setting, changes: Sequence[Perturbation], made: Changes) -> bool:
    """Check whether a model can be made with several changes."""
    change = together(changes, made)
    return change is None or is_accepted(model, change.of(setting))


def _drawn(rng: random.Random, n_changes: int, pairs: set[Changes]) -> Changes:
    """Draw changes of which any two go together, as many as there may be, or fewer."""
    limit = MAX_ON if rng.random() < 0.5 else rng.randint(3, MAX_ON)
    order = rng.sample(range(n_changes), n_changes)
    made: list[int] = []
    for index in order:
        if len(made) < limit and all((min(index, one), max(index, one)) in pairs for one in made):
            made.append(index)
    return tuple(sorted(made))


# -- the runs


def screening_runs(setup: InteractionSetup) -> list[Run]:
    """Return the runs that a screening takes: the baseline, the single changes and the combinations.

    Args:
        setup: The audit.
    """
    plan = setup.interactions
    return [] if plan is None or not plan.combinations else _runs(setup, _screened(setup), seeds_of(setup)[:N_SCREENED])


def max_tested(setup: InteractionSetup) -> int:
    """Return the maximum number of pairs that are tested.

    Args:
        setup: The audit.
    """
    plan = setup.interactions
    if plan is None:
        return 0
    return min(N_TESTED * len(setup.claims), len(plan.pairs)) if plan.combinations else len(plan.pairs)


def tested_runs(setup: InteractionSetup, pairs: Sequence[Changes]) -> list[Run]:
    """Return the runs that pairs are tested on: the baseline, each change alone, and both.

    Args:
        setup: The audit.
        pairs: The pairs.
    """
    return _runs(setup, _tested(pairs), _tested_seeds(setup))


def judged_interactions(
    setup: InteractionSetup, rows: Mapping[Path, Mapping[str, Any]]
) -> Generator[list[Run], None, list[Interactions]]:
    """Yield the runs of a screening, then all that interactions take, and judge their rows when it goes on.

    Args:
        setup: The audit.
        rows: Log of a run → its row; it must hold those of the runs yielded before going on.

    Returns:
        The interactions of each claim; none without a plan.
    """
    plan = setup.interactions
    if plan is None:
        return []
    pairs: list[Sequence[Changes]] = [plan.pairs] * len(setup.claims)
    screened = screening_runs(setup)
    if plan.combinations:
        yield screened
        pairs = [_strongest(setup, claim, rows, plan) for claim in setup.claims]
    tested = tested_runs(setup, sorted({pair for of_claim in pairs for pair in of_claim}))
    yield list({job.log: job for job in [*screened, *tested]}.values())
    return [_judged(setup, claim, rows, of_claim, plan) for claim, of_claim in zip(setup.claims, pairs, strict=True)]


def _screened(setup: InteractionSetup) -> list[Changes]:
    plan = setup.interactions
    singles: list[Changes] = [(index,) for index in range(len(setup.plan.perturbations))]
    return [] if plan is None or not plan.combinations else [(), *singles, *plan.combinations]


def _tested(pairs: Sequence[Changes]) -> list[Changes]:
    return [(), *dict.fromkeys((index,) for pair in pairs for index in pair), *pairs]


def seeds_of(setup: InteractionSetup) -> list[int]:
    """Return the seeds of a screening and of the tests after it: those of the audit, continued if they are too few.

    Args:
        setup: The audit.
    """
    seeds = list(setup.seeds[: N_SCREENED + N_SEEDS])
    return [*seeds, *(max(setup.seeds) + 1 + index for index in range(N_SCREENED + N_SEEDS - len(seeds)))]


def _tested_seeds(setup: InteractionSetup) -> list[int]:
    """Return the seeds with which pairs are tested: none by which they were chosen."""
    has_screening = setup.interactions is not None and bool(setup.interactions.combinations)
    return seeds_of(setup)[N_SCREENED:] if has_screening else seeds_of(setup)[:N_SEEDS]


def _runs(setup: InteractionSetup, made: Sequence[Changes], seeds: Sequence[int]) -> list[Run]:
    """Return runs, each once, seed by seed."""
    changes = [together(setup.plan.perturbations, one) for one in made]
    settings = [setup.under(one, change) for change in changes for claim in setup.claims for one in claim.between]
    return list({job.log: job for job in (setup.job(one, seed) for seed in seeds for one in settings)}.values())


def _effects(
    setup: InteractionSetup,
    claim: AuditClaim,
    rows: Mapping[Path, Mapping[str, Any]],
    made: Changes,
    seeds: Sequence[int],
) -> list[float]:
    """Return the effects of a claim under changes, one per seed; NaN where a run has none."""
    change = together(setup.plan.perturbations, made)

    def value(one: Setting, seed: int) -> float:
        row = rows[setup.job(setup.under(one, change), seed).log]
        found = None if row["error"] else claim.value_in(row)
        return math.nan if found is None else found

    return claim.effects([[value(one, seed) for seed in seeds] for one in claim.between])


# -- the judgement


def _strongest(
    setup: InteractionSetup, claim: AuditClaim, rows: Mapping[Path, Mapping[str, Any]], plan: InteractionPlan
) -> list[Changes]:
    """Return the pairs that explain most of what the single effects leave of the combinations."""
    made = _screened(setup)
    columns = np.array([_effects(setup, claim, rows, one, seeds_of(setup)[:N_SCREENED]) for one in made])
    changes, setting = setup.plan.perturbations, setup.under(claim.between[0], None)
    found = strongest_pairs(columns, made, len(changes), plan.pairs, N_TESTED)
    return [pair for pair in found if _is_accepted(setup.model, setting, changes, pair)]


def strongest_pairs(
    effects: FloatArray, made: Sequence[Changes], n_changes: int, pairs: Sequence[Changes], n: int
) -> list[Changes]:
    """Choose pairs one after the other, each time that which explains most of what those before it leave.

    Args:
        effects: Effect under each combination, shape `(combinations, seeds)`; NaN where it is missing.
        made: The combinations, with the baseline and the single changes among them.
        n_changes: Number of changes.
        pairs: Pairs to choose from.
        n: Maximum number of pairs that are chosen.
    """
    with np.errstate(invalid="ignore"):
        is_known = np.isfinite(effects)
        means = np.where(is_known, effects, 0.0).sum(axis=1) / is_known.sum(axis=1)
    known = np.isfinite(means)
    is_made = np.array([[index in one for index in range(n_changes)] for one in made], dtype=np.float64)[known]
    left = means[known]
    basis = np.linalg.qr(np.column_stack([np.ones(len(left)), is_made]))[0]
    products = {pair: is_made[:, pair[0]] * is_made[:, pair[1]] for pair in pairs}
    chosen: list[Changes] = []
    while len(chosen) < n:
        rest = left - basis @ (basis.T @ left)
        own = {pair: column - basis @ (basis.T @ column) for pair, column in products.items() if pair not in chosen}
        sizes = {pair: float(column @ column) for pair, column in own.items()}
        scores = {pair: float(own[pair] @ rest) ** 2 / size for pair, size in sizes.items() if size > MIN_LEFT}
        if not scores:
            break
        best = max(scores.values())
        alike = [pair for pair, score in scores.items() if score >= (1 - 1e-9) * best]  # no runs tell them apart
        chosen += alike[: n - len(chosen)]
        basis = np.column_stack([basis, own[alike[0]] / math.sqrt(sizes[alike[0]])])
    return chosen


def _judged(
    setup: InteractionSetup,
    claim: AuditClaim,
    rows: Mapping[Path, Mapping[str, Any]],
    pairs: Sequence[Changes],
    plan: InteractionPlan,
) -> Interactions:
    """Test pairs, and sort all that was run."""
    names = [one.name for one in setup.plan.perturbations]
    made = dict.fromkeys(_screened(setup), seeds_of(setup)[:N_SCREENED])
    made |= dict.fromkeys(_tested(pairs), _tested_seeds(setup))
    effects = {one: _effects(setup, claim, rows, one, seeds) for one, seeds in made.items()}
    compared = [
        beyond_the_sum(effects[()], effects[pair[:1]], effects[pair[1:]], effects[pair], claim) for pair in pairs
    ]
    found = [
        PairRow(names[pair[0]], names[pair[1]], _mean(effects[pair]), one)
        for pair, one in zip(pairs, correct(compared, "holm"), strict=True)
        if one is not None
    ]
    multiverse = [MultiverseRow(tuple(names[index] for index in one), _mean(of)) for one, of in effects.items()]
    covered = {pair for one in made for pair in _pairs_in(one)}
    return Interactions(
        claim=claim,
        pairs=sorted(found, key=lambda row: -abs(row.beyond.difference.value)),
        n_pairs=len(plan.pairs),
        n_covered=len(covered & set(plan.pairs)),
        multiverse=sorted(multiverse, key=lambda row: (row.effect.value, row.changes)),
        n_screened=N_SCREENED if plan.combinations else 0,
    )


def beyond_the_sum(
    baseline: Sequence[float],
    first: Sequence[float],
    second: Sequence[float],
    both: Sequence[float],
    claim: AuditClaim,
) -> Comparison | None:
    """Compare what two changes do together with the sum of what each does alone, seed by seed.

    Args:
        baseline: Effect of the claim without either, one per seed.
        first: Effect under the one.
        second: Effect under the other.
        both: Effect under both.
        claim: The claim, whose smallest effect is the margin of equivalence.

    Returns:
        The comparison; None if no seed has all four.
    """
    together, apart = np.subtract(both, first), np.subtract(second, baseline)
    return compare(together.tolist(), apart.tolist(), claim.smallest_effect)


def _mean(effects: Sequence[float]) -> Estimate:
    return mean_estimate(effects) or Estimate(math.nan, None, None, 0)
