"""Error rates of audits, on planted minds whose true behaviour is known.

    python benchmarks/audit.py                       # prints the tables of docs/auditing.md
    python benchmarks/audit.py --audits 20           # quicker, less exact
    python benchmarks/audit.py --end-to-end 5        # and so many whole audits of each scripted mind

A mind is a distribution of the measure in 24 changes and a baseline, 0, 2 or 3 times the smallest effect apart. Its
audits are simulated by drawing from it, with the rule of `mesa_llm.experiments.audits.verdict` for many audits at once;
one audit of each kind is judged by the library too, which must say the same. The rule was chosen on the first half of
the kinds; the second half was drawn only afterwards.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from thresholds import Threshold, table

from mesa_llm import ScriptedLLM
from mesa_llm.engine.access import Access, OpenedModel
from mesa_llm.experiments.audits import audit, level_of
from mesa_llm.experiments.audits.claim import expectation_of
from mesa_llm.experiments.audits.looks import AuditLook, look_numbers, looks_at
from mesa_llm.experiments.audits.verdict import MAX_FEW, PairedEffects, judge, scale_of
from mesa_llm.experiments.runs.runner import through
from mesa_llm.llm.protocol import Capabilities
from mesa_llm.records import Request
from mesa_llm.statistics import ALPHA, MIN_RUNS
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel

FloatArray = npt.NDArray[np.float64]

N_CHANGES, MAX_FIXED = 24, 160
"""Number of changes of an audit, and of seeds of the largest fixed design."""

UNDECIDED, STABLE, SENSITIVE = 0, 1, 2

SIZES = (0.0, 2.0, 3.0)
"""Sizes of the planted effects, in smallest effects."""


# -- kinds of minds


@dataclass(frozen=True)
class Kind:
    """A kind of planted mind."""

    name: str
    """What its runs are like."""

    draw: Callable[[np.random.Generator, FloatArray], FloatArray]
    """Draws values from the means of all arms, in smallest effects, shape `(audits, 1 + changes, seeds)`."""

    smallest: float = 1.0
    """Smallest effect of interest."""

    n_fragile: int = 1
    """Number of changes that are planted."""

    small: float = 0.0
    """Effect of all other changes, in smallest effects."""


def normal(spread: float, shared: float = 0.0) -> Callable[[np.random.Generator, FloatArray], FloatArray]:
    """Draw runs whose differences have a normal spread, after a part that runs with one seed share."""

    def draw(rng: np.random.Generator, means: FloatArray) -> FloatArray:
        of_seed = shared * rng.standard_normal((len(means), 1, means.shape[2]))
        return means + of_seed + spread / np.sqrt(2) * rng.standard_normal(means.shape)

    return draw


def skewed(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Draw runs that are exponential about their mean, with a spread of differences of 1.7."""
    return means + 1.2 * (rng.standard_exponential(means.shape) - 1)


def lognormal(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Draw positive runs with a long tail, whose scale the mean sets."""
    return (4 + means) * np.exp(0.35 * rng.standard_normal(means.shape) - 0.35**2 / 2)


def heavy(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Draw runs with heavy tails: t with 3 degrees of freedom."""
    return means + 0.7 * rng.standard_t(3, means.shape)


def shares(decisions: int, smallest: float, base: float) -> Callable[[np.random.Generator, FloatArray], FloatArray]:
    """Draw shares of so many decisions."""

    def draw(rng: np.random.Generator, means: FloatArray) -> FloatArray:
        return rng.binomial(decisions, np.clip(base + smallest * means, 0, 1)) / decisions

    return draw


def drifting(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Draw runs whose seeds are autocorrelated, in the baseline and in the changes alike."""
    values = rng.standard_normal((len(means), 1, means.shape[2]))
    for seed in range(1, means.shape[2]):
        values[..., seed] = 0.8 * values[..., seed - 1] + 0.6 * values[..., seed]
    return means + 2 * values + 1.1 * rng.standard_normal(means.shape)


def some_runs(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Draw runs that are equal for equal seeds, but for 4 of 10 that a change moves."""
    of_seed = 2 * rng.standard_normal((len(means), 1, means.shape[2]))
    return of_seed + means / 0.4 * (rng.random(means.shape) < 0.4)


def two_regimes(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Draw runs that end in one of two regimes, 2.4 apart."""
    return means + 2.4 * (rng.random(means.shape) < 0.5) + 0.3 * rng.standard_normal(means.shape)


def wider(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Draw runs whose spread is half as large again in every second change."""
    spread = np.ones(means.shape[1])
    spread[2::2] = 1.5
    return means + spread[:, None] * rng.standard_normal(means.shape)


def missing(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Draw runs of which one in ten lacks the measure."""
    values = normal(2.0)(rng, means)
    return np.where(rng.random(values.shape) < 0.1, np.nan, values)


def rounded(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Draw runs whose measure is a whole number."""
    return np.round(normal(1.7, 1.0)(rng, means))


def alike(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Draw runs that do not vary."""
    return means.copy()


def near_a_bound(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Draw shares near 1, from a beta distribution, that a change lowers."""
    mean = 0.95 - 0.05 * means
    return rng.beta(20 * mean, 20 * (1 - mean))


def moved_unlike(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Draw runs that a change moves by unlike amounts, from none to twice the mean."""
    return means * rng.uniform(0, 2, means.shape) + rng.standard_normal(means.shape)


TUNED = (
    Kind("level, differences spread by 1", normal(1.0)),
    Kind("level, differences spread by 2", normal(2.0)),
    Kind("level, seeds share most of their spread", normal(1.5, 5.0)),
    Kind("6 of 24 changes", normal(1.7, 1.0), n_fragile=6),
    Kind("all others half the smallest effect", normal(1.7, 1.0), small=0.5),
    Kind("skewed: exponential", skewed),
    Kind("shares of 48 decisions", shares(48, 0.05, 0.6), 0.05),
    Kind("0/1, by a quarter", shares(1, 0.25, 0.1), 0.25),
    Kind("whole numbers", rounded),
    Kind("nothing varies", alike),
)
"""Kinds on which the rule was chosen."""

HELD = (
    Kind("level, differences spread by 1.5", normal(1.5, 2.0)),
    Kind("12 of 24 changes", normal(1.7, 1.0), n_fragile=12),
    Kind("skewed: lognormal", lognormal),
    Kind("heavy tails", heavy),
    Kind("shares of 10 decisions", shares(10, 0.1, 0.3), 0.1),
    Kind("0/1, never in the baseline", shares(1, 0.2, 0.0), 0.2),
    Kind("seeds autocorrelated", drifting),
    Kind("4 of 10 runs moved", some_runs),
    Kind("two regimes", two_regimes),
    Kind("spread changes, not the mean", wider),
    Kind("one in ten runs lacks the measure", missing),
    Kind("shares near a bound", near_a_bound, 0.05),
    Kind("moved by unlike amounts", moved_unlike),
)
"""Kinds that were kept back."""


def means_of(kind: Kind, size: float, audits: int, n_seeds: int) -> FloatArray:
    """Return the true means of a mind, in smallest effects, the planted changes first after the baseline."""
    n = kind.n_fragile if size else 0
    means = np.array([0.0] + [size] * n + [kind.small] * (N_CHANGES - n))
    return np.broadcast_to(means[:, None], (audits, 1 + N_CHANGES, n_seeds))


# -- the rule, for many audits at once


def judged(values: FloatArray, smallest: float, looks: Sequence[AuditLook]) -> tuple[npt.NDArray[np.int_], FloatArray]:
    """Judge many audits by looks.

    Args:
        values: Values of the measure, shape `(audits, 1 + changes, seeds)`, the baseline first.
        smallest: Smallest effect of interest.
        looks: The looks.

    Returns:
        State of each change, and number of seeds with which it was run, shape `(audits, changes)`.
    """
    apart = values[:, 1:] - values[:, :1]
    is_known = np.isfinite(apart)
    n_known = is_known.cumsum(axis=2)
    sums = np.where(is_known, apart, 0.0).cumsum(axis=2)
    squares = np.where(is_known, apart**2, 0.0).cumsum(axis=2)
    state = np.full(apart.shape[:2], UNDECIDED)
    seeds = np.full(apart.shape[:2], float(looks[-1].n_seeds))
    for look in looks:
        at, is_open = look.n_seeds - 1, state == UNDECIDED
        n, mean = n_known[..., at], sums[..., at] / n_known[..., at]
        variance = np.maximum(squares[..., at] - n * mean**2, 0) / (n - 1)
        error = np.where(variance < 1e-12, 0.0, np.sqrt(variance / n))
        p, beyond, within = _p_values(mean, error, n, smallest)
        decidable = is_open & (n >= MIN_RUNS)
        adjusted = _holm(np.where(decidable, p, 1.0), (state != SENSITIVE).sum(axis=1))
        sensitive = decidable & (adjusted <= look.level) & (beyond <= look.level)
        stable = decidable & (within <= look.level) & ~sensitive
        for audit_index, change in np.argwhere(stable):
            stable[audit_index, change] = _few_would_not_matter(
                values[audit_index, :, : at + 1], change, smallest, look.level
            )
        state[sensitive], state[stable] = SENSITIVE, STABLE
        seeds[sensitive | stable] = look.n_seeds
    return state, seeds


def _p_values(mean: FloatArray, error: FloatArray, n: FloatArray, smallest: float) -> tuple[FloatArray, ...]:
    """Return p of no difference, of one within the smallest effect, and of one beyond it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (
            2 * stats.t.sf(abs(mean) / error, n - 1),
            stats.t.sf((abs(mean) - smallest) / error, n - 1),
            stats.t.sf((smallest - abs(mean)) / error, n - 1),
        )
    is_alike = error == 0
    alike_p = (
        np.where(np.isclose(mean, 0), 1.0, 2.0 ** (1.0 - n)),
        np.where(abs(mean) > smallest, 0.0, 1.0),
        np.where(abs(mean) < smallest, 2.0**-n, 1.0),
    )
    return tuple(np.where(is_alike, alike, p) for alike, p in zip(alike_p, found, strict=True))


def _holm(p: FloatArray, n_tests: npt.NDArray[np.int_]) -> FloatArray:
    """Correct the p of each audit, shape `(audits, changes)`, for so many tests."""
    order = np.argsort(p, axis=1)
    factors = np.maximum(n_tests[:, None] - np.arange(p.shape[1]), 1)
    stepped = np.maximum.accumulate(np.take_along_axis(p, order, axis=1) * factors, axis=1)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.minimum(stepped, 1.0), axis=1)
    return adjusted


def _few_would_not_matter(values: FloatArray, change: int, smallest: float, level: float) -> bool:
    """Apply the rule for few pairs that differ from the others to one change of one audit."""
    pair = values[[0, 1 + change]]
    pair = pair[:, np.isfinite(pair).all(axis=0)]
    counted, counts = np.unique(np.round(pair[1] - pair[0], 12), return_counts=True)
    n, n_few = pair.shape[1], pair.shape[1] - int(counts.max())
    if n_few >= min(MAX_FEW, n / 2):
        return True
    share = stats.beta.ppf(1 - level, n_few + 1, n - n_few)
    scale = float(np.ptp(pair)) or scale_of(values.ravel().tolist())
    return bool(abs(counted[counts.argmax()]) + share * scale < smallest)


def judged_by_library(values: FloatArray, smallest: float, looks: Sequence[AuditLook]) -> list[int]:
    """Judge one audit as the library does."""
    state, level = [UNDECIDED] * (len(values) - 1), expectation_of("", smallest)
    for look in looks:
        seen = values[:, : look.n_seeds].tolist()
        still = [change for change, of in enumerate(state) if of == UNDECIDED]
        scale = scale_of(value for row in seen for value in row)
        contrasts = [PairedEffects(seen[0], seen[1 + change], level, smallest, scale) for change in still]
        found = judge(contrasts, level=look.level, n_stable=state.count(STABLE), look=look.number)
        for change, one in zip(still, found, strict=True):
            state[change] = {"undecided": UNDECIDED, "stable": STABLE, "sensitive": SENSITIVE}[one.change]
    return state


# -- rates


@dataclass
class Rates:
    """How audits ended."""

    audits: int = 0
    runs: float = 0.0
    alarms: int = 0
    """Audits that call a change sensitive that is none."""

    planted: int = 0
    found: int = 0
    stable_wrongly: int = 0
    harmless: int = 0
    """Changes without any effect, and how many of them are found stable."""

    stable: int = 0

    def add(self, state: npt.NDArray[np.int_], seeds: FloatArray, means: FloatArray) -> None:
        """Count audits of one mind."""
        size = means[0, 1:, 0]
        planted, none = state[:, size > 1], state[:, size == 0]
        self.audits += len(state)
        self.runs += float(seeds.sum() + seeds.max(axis=1).sum())
        self.alarms += int((state[:, size < 1] == SENSITIVE).any(axis=1).sum())
        self.planted, self.found = self.planted + planted.size, self.found + int((planted == SENSITIVE).sum())
        self.stable_wrongly += int((planted == STABLE).sum())
        self.harmless, self.stable = self.harmless + none.size, self.stable + int((none == STABLE).sum())

    @property
    def runs_each(self) -> float:
        """Mean number of runs of an audit."""
        return self.runs / self.audits


def fixed(n: int) -> list[AuditLook]:
    """Return the one look of a fixed design."""
    return [AuditLook(n, ALPHA, None)]


def simulate(
    kinds: Iterable[Kind], audits: int, designs: dict[str, list[AuditLook]]
) -> dict[tuple[str, str, float], Rates]:
    """Simulate audits of all minds of some kinds, in several designs, of the same draws.

    Returns:
        Kind, design and size → rates.
    """
    found: dict[tuple[str, str, float], Rates] = {}
    for kind in kinds:
        for size in SIZES:
            seed = [int.from_bytes(hashlib.blake2b(kind.name.encode(), digest_size=4).digest()), int(size)]
            means = means_of(kind, size, audits, MAX_FIXED)
            values = kind.draw(np.random.default_rng(seed), means)
            for name, looks in designs.items():
                state, seeds = judged(values, kind.smallest, looks)
                found.setdefault((kind.name, name, size), Rates()).add(state, seeds, means)
                if (
                    name == "looks"
                    and size == 2.0
                    and state[0].tolist() != judged_by_library(values[0], kind.smallest, looks)
                ):
                    raise SystemExit(f"{kind.name}, {size}: the library judges otherwise")
    return found


def together(found: dict[tuple[str, str, float], Rates], design: str, sizes: Sequence[float] = SIZES) -> Rates:
    """Add up the rates of all kinds in one design, each mind with the same weight."""
    whole = Rates()
    for (_, of, size), rates in found.items():
        if of == design and size in sizes:
            for name, value in vars(rates).items():
                setattr(whole, name, getattr(whole, name) + value)
    return whole


def share(n: float, of: float) -> str:
    """Write a share in percent."""
    return f"{n / of:.1%}" if of else "–"


def kind_rows(kinds: Sequence[Kind], found: dict[tuple[str, str, float], Rates]) -> list[tuple[str, ...]]:
    """Return the rows of the table of kinds."""
    rows: list[tuple[str, ...]] = []
    for kind in kinds:
        none, twice, thrice = (found[kind.name, "looks", size] for size in SIZES)
        alarms = sum(one.alarms for one in (none, twice, thrice)), sum(one.audits for one in (none, twice, thrice))
        wrong = twice.stable_wrongly + thrice.stable_wrongly, twice.planted + thrice.planted
        cells = [share(*alarms), share(*wrong), share(twice.found, twice.planted), share(thrice.found, thrice.planted)]
        stable = share(none.stable, none.harmless)
        rows.append((kind.name, *cells, stable, f"{none.runs_each:.0f}", f"{thrice.runs_each:.0f}"))
    return rows


def reached_by(found: dict[tuple[str, str, float], Rates], fixed_names: Iterable[str]) -> str:
    """Return the smallest fixed design that finds as much as the looks: planted effects, and what is stable."""

    def reached(design: str) -> tuple[float, float, float]:
        twice, thrice, whole = together(found, design, [2.0]), together(found, design, [3.0]), together(found, design)
        return twice.found / twice.planted, thrice.found / thrice.planted, whole.stable / whole.harmless

    wanted = reached("looks")
    return next((name for name in fixed_names if all(a >= b for a, b in zip(reached(name), wanted, strict=True))), "")


# -- whole audits


def _by_order(prompt: str, request: Request) -> float:
    text = str(request.schema)
    return 0.8 if text.find("cooperate") < text.find("defect") else 0.4


SCRIPTED: dict[str, Callable[[str, Request], float]] = {
    "nothing": lambda prompt, request: 0.7,
    "order of the options, by twice the smallest effect": _by_order,
    "a list, by three times": lambda prompt, request: 0.2 if "\n- " in prompt else 0.8,
}
"""What a scripted mind depends on → probability that it cooperates, given the whole prompt and the request."""


class Planted(Access):
    """An access that opens one scripted mind, whatever is named, but for rules and chance."""

    def __init__(self, probability: Callable[[str, Request], float]) -> None:
        super().__init__()

        def reply(request: Request) -> dict[str, str]:
            prompt = "\n".join(message.content for message in request.messages)
            digest = hashlib.blake2b(request.key.encode(), digest_size=8).digest()
            cooperates = int.from_bytes(digest) / 2**64 < probability(prompt, request)
            return {"answer": "cooperate" if cooperates else "defect"}

        self.mind = ScriptedLLM(reply, name="planted")

    def open(self, llm: Any, **options: Any) -> OpenedModel:
        """Open the mind."""
        if llm in ("rule", "random"):
            return super().open(llm, **options)
        return OpenedModel(Capabilities.of(self.mind), self.mind, True, 1)


def end_to_end(n_audits: int) -> list[tuple[str, ...]]:
    """Run whole audits of scripted minds, with the default design, and return how they ended."""
    claim, dimensions = level_of(DilemmaModel, "guests_cooperation", 0.2), ["format", "sequencing"]
    rows: list[tuple[str, ...]] = []
    for name, probability in SCRIPTED.items():
        for index in range(n_audits):
            with tempfile.TemporaryDirectory() as folder, through(Planted(probability)):
                own: dict[str, Any] = {"dimensions": dimensions, "awareness": False, "parameters": {"rounds": 3}}
                own |= {"seeds": range(1 + 1000 * index, 81 + 1000 * index), "looks": look_numbers()}
                found = audit(DilemmaModel, [claim], folder=Path(folder), llm="planted", **own)
            (one,) = found.claims
            states = [
                ", ".join(row.perturbation.name for row in one.in_state(state)) or "–"
                for state in ("sensitive", "undecided")
            ]
            rows.append((name, str(len(found.seeds)), str(found.cost["runs"]), *states))
    return rows


def main() -> int:
    """Print the tables; fail if a rate misses its goal by more than half."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=60, help="number of audits of each mind")
    parser.add_argument("--end-to-end", type=int, default=0, help="number of whole audits of each scripted mind")
    arguments = parser.parse_args()
    sizes = [*range(40, 100, 10), 120, 140, MAX_FIXED]
    designs = {"looks": looks_at(look_numbers()), **{str(n): fixed(n) for n in sizes}}
    start_s, thresholds = time.process_time(), list[Threshold]()
    head = ("kind", "false alarms", "stable, wrongly", "found: 2 ×", "3 ×", "stable: 0 ×", "runs: 0 ×", "3 ×")
    for title, kinds in (("Kinds on which the rule was chosen", TUNED), ("Kinds kept back", HELD)):
        found = simulate(kinds, arguments.audits, designs)
        print(f"\n{title}: {len(kinds) * len(SIZES)} minds, {arguments.audits} audits of each\n")
        print(table(head, kind_rows(kinds, found)))
        looks, same = together(found, "looks"), reached_by(found, map(str, sizes))
        twice, thrice = together(found, "looks", [2.0]), together(found, "looks", [3.0])
        fixed_runs = (1 + N_CHANGES) * int(same) if same else (1 + N_CHANGES) * MAX_FIXED
        what = f"fixed design that finds as much: {same or 'none'} seeds" if same else f"none of {MAX_FIXED} finds it"
        print(f"\nruns of an audit: {looks.runs_each:.0f} by looks, {fixed_runs} by the {what}\n")
        thresholds += [
            Threshold(f"{title}: false alarms", looks.alarms / looks.audits, 0.05),
            Threshold(f"{title}: stable, wrongly", looks.stable_wrongly / looks.planted, 0.05),
            Threshold(f"{title}: found, 2 ×", twice.found / twice.planted, 0.90, is_minimum=True),
            Threshold(f"{title}: found, 3 ×", thrice.found / thrice.planted, 0.99, is_minimum=True),
            Threshold(f"{title}: runs, of the fixed design", looks.runs_each / fixed_runs, 2 / 3),
        ]
    print(table(("rate", "goal", "measured", "verdict"), [one.row for one in thresholds]))
    if arguments.end_to_end:
        print()
        print(table(("depends on", "seeds", "runs", "sensitive", "undecided"), end_to_end(arguments.end_to_end)))
    print(f"\n{time.process_time() - start_s:.0f} s of processor time")
    return int(any(one.verdict == "FAILED" for one in thresholds))


if __name__ == "__main__":
    sys.exit(main())
