"""Error rates of audits, on planted minds whose true behaviour is known.

    python benchmarks/audit.py               # prints the table of docs/auditing.md
    python benchmarks/audit.py --pool 60 --audits 200

Each mind plays a prisoner's dilemma as a scripted language model, which reads what a language model would be sent: it
cooperates with one probability, and with another where the prompt shows what it is fragile to. All runs of all
perturbations are made with many seeds; then many audits are judged, each of some of these seeds, drawn anew. A claim
that is robust must seldom be called sensitive, one that is sensitive seldom stable, and a planted fragility of twice
the smallest effect must be found.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from thresholds import Threshold, table

from mesa_llm import AgentDesign, ScriptedLLM
from mesa_llm.experiments.audits.claim import level_of
from mesa_llm.experiments.audits.dimensions import Perturbation, Setting, plan_for
from mesa_llm.experiments.audits.verdict import stability
from mesa_llm.records import Request
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel

FloatArray = npt.NDArray[np.float64]

SMALLEST = 0.05
"""Smallest effect of interest: a change of five points in the share of cooperation."""

ROUNDS = 6
"""Rounds of a game, against eight opponents."""

PERSONA = "You are fair. You keep your promises, and you remember what others did."

SETTING = Setting({"rounds": ROUNDS}, {"persona": PERSONA}, "random")

CLAIM = level_of(DilemmaModel, "guests_cooperation", SMALLEST)


@dataclass(frozen=True)
class Mind:
    """A planted mind."""

    name: str
    """What it depends on."""

    probability: Callable[[str, Request], float]
    """Probability that it cooperates, given the whole prompt and the request."""

    fragile: Callable[[str], bool]
    """Whether a perturbation of this name changes its behaviour."""

    seeds: int = 30
    """Number of seeds of its audits."""


def _is_described(prompt: str, request: Request) -> float:
    return 0.09 if "This is a description of you." in prompt else 0.85


def _by_order(prompt: str, request: Request) -> float:
    return 0.6 if _first_option(request) == "cooperate" else 0.6 - 2 * SMALLEST


def _first_option(request: Request) -> str:
    text = str(request.schema)
    return "cooperate" if text.find("cooperate") < text.find("defect") else "defect"


def _by_white_space(prompt: str, request: Request) -> float:
    return 0.6 - 2 * SMALLEST if "\n\n  " in prompt else 0.6


def _by_memory(prompt: str, request: Request) -> float:
    has_memories = "What you remember:" in prompt or any(one.role == "assistant" for one in request.messages)
    return 0.6 - 4 * SMALLEST if has_memories else 0.6


MINDS = (
    Mind("nothing", lambda prompt, request: 0.6, lambda name: False),
    Mind("nothing, at 5 seeds", lambda prompt, request: 0.6, lambda name: False, 5),
    Mind("nothing, at 60 seeds", lambda prompt, request: 0.6, lambda name: False, 60),
    Mind("form of the persona, by 76 points", _is_described, lambda name: name == "persona as a description"),
    Mind("order of the options, by twice the smallest effect", _by_order, lambda name: name == "options reversed"),
    Mind("white space, by twice the smallest effect", _by_white_space, lambda name: name == "more white space"),
    Mind("memory, by four times the smallest effect", _by_memory, lambda name: name.startswith("memory as")),
)


def move(mind: Mind, request: Request) -> str:
    """Return the move of a mind: chance decides anew for every prompt, as with a language model that is sampled."""
    prompt = "\n".join(message.content for message in request.messages)
    digest = hashlib.blake2b(f"{request.key}".encode(), digest_size=8).digest()
    return "cooperate" if int.from_bytes(digest, "big") / 2**64 < mind.probability(prompt, request) else "defect"


def run(task: tuple[int, Perturbation | None, int]) -> float:
    """Run one game, and return the share of the guest's moves that were cooperation.

    Args:
        task: Index of the mind, perturbation (None: the baseline), and seed.
    """
    index, perturbation, seed = task
    mind = MINDS[index]
    setting = SETTING if perturbation is None else perturbation.of(SETTING)
    llm = ScriptedLLM(lambda request: {"answer": move(mind, request)}, name="planted")
    llm.is_immediate = True  # pyright: ignore[reportAttributeAccessIssue]
    design = AgentDesign.from_json(setting.design)
    with closing(DilemmaModel(**setting.parameters, **setting.options, design=design, llm=llm, rng=seed)) as model:
        model.run(ROUNDS)
        return float(CLAIM.value_in(model.results()) or 0.0)


@dataclass
class Rates:
    """How audits of one mind ended."""

    audits: int = 0
    sensitive_wrongly: int = 0
    """Audits that call a perturbation sensitive that is none."""

    stable_wrongly: int = 0
    """Audits that call a planted fragility stable."""

    found: int = 0
    """Audits that find all planted fragilities."""

    all_stable: int = 0
    """Audits in which everything is stable."""


def judge(mind: Mind, arms: Sequence[Perturbation], pool: FloatArray, n_audits: int) -> Rates:
    """Judge many audits of a mind, each of other seeds of the pool.

    Args:
        mind: The mind.
        arms: The perturbations.
        pool: Effects, shape `(1 + arms, seeds)`, the baseline first.
        n_audits: Number of audits.
    """
    rng, rates = np.random.default_rng(1), Rates()
    is_fragile = [mind.fragile(arm.name) for arm in arms]
    for _ in range(n_audits):
        chosen = rng.choice(pool.shape[1], mind.seeds, replace=False)
        found = stability(
            pool[0, chosen].tolist(), [row.tolist() for row in pool[1:, chosen]], CLAIM.expectation, SMALLEST
        )
        changes = [one.change for one in found]
        own = [change for change, planted in zip(changes, is_fragile, strict=True) if planted]
        others = [change for change, planted in zip(changes, is_fragile, strict=True) if not planted]
        rates.audits += 1
        rates.sensitive_wrongly += "sensitive" in others
        rates.stable_wrongly += "stable" in own
        rates.found += bool(own) and all(change == "sensitive" for change in own)
        rates.all_stable += all(change == "stable" for change in changes)
    return rates


def main() -> int:
    """Print the table; fail if a rate misses its goal by more than half."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pool", type=int, default=240, help="number of seeds that all runs are made with")
    parser.add_argument("--audits", type=int, default=1_000, help="number of audits of each mind")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count(), help="number of processes")
    arguments = parser.parse_args()
    arms = plan_for(DilemmaModel, SETTING, steps=ROUNDS).perturbations
    pools: dict[str, FloatArray] = {}
    thresholds: list[Threshold] = []
    start_s = time.process_time()
    print(f"{len(arms)} perturbations, {arguments.pool} seeds, {arguments.audits} audits of each mind")
    rows: list[tuple[str, ...]] = []
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as workers:
        for index, mind in enumerate(MINDS):
            key = mind.name.partition(",")[0] if mind.name.startswith("nothing") else mind.name
            if key not in pools:
                tasks = [(index, arm, seed) for arm in (None, *arms) for seed in range(1, arguments.pool + 1)]
                shares = workers.map(run, tasks, chunksize=20)
                pools[key] = np.array(shares).reshape(1 + len(arms), arguments.pool)
            rates = judge(mind, arms, pools[key], arguments.audits)
            is_planted = any(mind.fragile(arm.name) for arm in arms)
            cells = [mind.name, str(mind.seeds), _share(rates.sensitive_wrongly, rates)]
            cells += [_share(rates.stable_wrongly, rates) if is_planted else "–"]
            cells += [_share(rates.found, rates) if is_planted else "–", _share(rates.all_stable, rates)]
            rows.append(tuple(cells))
            thresholds.append(
                Threshold(f"{mind.name}: sensitive, wrongly", rates.sensitive_wrongly / rates.audits, 0.05)
            )
            if is_planted:
                thresholds.append(Threshold(f"{mind.name}: stable, wrongly", rates.stable_wrongly / rates.audits, 0.05))
                thresholds.append(Threshold(f"{mind.name}: not found", 1 - rates.found / rates.audits, 0.20))
    head = ("depends on", "seeds", "sensitive, wrongly", "stable, wrongly", "fragility found", "all stable")
    print(f"\n{table(head, rows)}\n")
    print(f"\n{time.process_time() - start_s:.0f} s of processor time, besides that of the workers")
    print(table(("rate", "goal", "measured", "verdict"), [one.row for one in thresholds]))
    return int(any(one.verdict == "FAILED" for one in thresholds))


def _share(n: int, rates: Rates) -> str:
    return f"{n / rates.audits:.1%}"


if __name__ == "__main__":
    sys.exit(main())
