"""Measurements of local language models: what each runs, and what it says in a row and in a sentence.

A measurement stands here only if its number of runs can show something; what the others would take is said by
`mesa-llm power` and by the `--dry-run` of each study.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mesa_llm.engine.access import Access
from mesa_llm.experiments.audits import recorded_audit, run_setup
from mesa_llm.experiments.audits.audit import Audit
from mesa_llm.experiments.audits.claim_findings import SHOWN_WORDS
from mesa_llm.experiments.audits.probes import AwarenessJob
from mesa_llm.experiments.persona import choices_made, persona_contrast
from mesa_llm.experiments.runs.run import Run
from mesa_llm.experiments.runs.runner import Stop
from mesa_llm.experiments.runs.study import StudySetup
from mesa_llm.model.identity import name_of
from mesa_llm.registry import find_model
from mesa_llm.runlog.versions import is_before
from mesa_llm.statistics import Estimate, cluster_means, compare, mean_estimate, with_interval
from mesa_llm.text import counted, figure_text
from mesa_llm_models.classics.opinion.model import OpinionModel
from mesa_llm_models.classics.persona_form import PUBLISHED, study_persona_form

ASKED_ASIDE: Mapping[str, tuple[str, ...]] = {
    "boltzmann_wealth": ("boltzmann", "inequality", "wealth distribution", "econophysics"),
    "culture": ("axelrod", "dissemination of culture", "cultural diffusion", "homophily", "social influence"),
    "el_farol": ("el farol", "minority game", "inductive", "bounded rationality", "congestion"),
    "epidemic": ("epidemi", "susceptible", "sir model", "sis model"),
    "opinion": ("opinion dynamics", "consensus", "polari", "bounded confidence", "persuasion"),
    "prisoners_dilemma": ("prisoner", "dilemma", "axelrod", "game theory", "tit for tat", "repeated interaction"),
    "schelling": ("schelling", "segregat"),
    "sugarscape": ("sugarscape", "epstein", "axtell", "artificial societ"),
    "wolf_sheep": ("predator", "lotka", "volterra", "ecolog", "ecosystem"),
    "social": ("social network analysis", "polari", "herd", "misinformation", "echo chamber", "information spread"),
}
"""Model whose agents are asked what is studied → words by which they name it, if their own prompts do not hold them."""

BOUND = 0.2
"""Distance of two opinions below which bounded confidence always compromises, and beyond which it never does."""

SMALLEST = 0.1
"""Smallest difference of two probabilities of interest."""


@dataclass(frozen=True)
class LocalRow:
    """One figure of a local language model."""

    quantity: str
    """What was measured."""

    ours: str
    """The figure, with its 95 % interval."""

    n: int
    """Number of units behind it."""

    unit: str
    """What the interval counts: runs, pairs of questions, models."""

    verdict: str = ""
    """What it shows, by the rules of its measurement."""

    published: str = ""
    """Published figures of other language models, if there are any."""

    @classmethod
    def of(cls, quantity: str, estimate: Estimate | None, unit: str, verdict: str = "") -> LocalRow:
        """Return the row of an estimate."""
        return cls(quantity, with_interval(estimate), 0 if estimate is None else estimate.n, unit, verdict)


@dataclass(frozen=True)
class Measurement:
    """Rows that one command measures."""

    title: str
    """What is measured."""

    command: str
    """Command that measures it; `MODEL` stands for the language model."""

    rows: Callable[[str, Path, int | None, bool], list[LocalRow]]
    """Measures with a language model, a folder of logs, a number of seeds (None: its own); or replays the logs."""

    summary: Callable[[Sequence[Mapping[str, Any]]], str]
    """Says in a sentence what the rows show."""

    note: str
    """What was run, and what a reader has to know."""

    ships_logs: bool = True
    """Whether its logs stand beside the readings; otherwise they are with the model."""

    prompts_since: str = "1.5.0"
    """Version in which a prompt of its runs last changed."""

    def changed_since(self, version: str) -> str:
        """Return the version in which its prompts changed after it was measured with a version; empty: in none."""
        return self.prompts_since if is_before(version, self.prompts_since) else ""

    def command_for(self, llm: str) -> str:
        """Return the command that measures a language model."""
        return self.command.replace("MODEL", llm)


def persona(llm: str, logs: Path, seeds: int | None, replays: bool) -> list[LocalRow]:
    """Contrast personas."""
    with closing(Access()) as access:
        found = persona_contrast(llm, folder=logs, access=access, replays=replays)
    rows: list[LocalRow] = []
    for row in found:
        quantity = f"{row.name}, from {figure_text(row.range[0])} to {figure_text(row.range[1])}"
        one = LocalRow.of(quantity, row.difference, "pairs of questions", row.verdict)
        rows.append(replace(one, ours=f"{one.ours}; {row.wording_range}"))
    return rows


def opinions(llm: str, logs: Path, seeds: int | None, replays: bool) -> list[LocalRow]:
    """Measure how probable a compromise is when two people meet, by the distance of their opinions."""
    means: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(1, (seeds or 5) + 1):
        found: dict[bool, list[float]] = {True: [], False: []}
        log = logs / f"{seed}.sqlite"
        with closing(
            OpinionModel(n_agents=20, llm=llm, scoring="probabilities", rng=seed, log=log, replay=replays)
        ) as model:
            before = {citizen.unique_id: citizen.opinion for citizen in model.agents}
            model.step()
            met = {citizen.unique_id: citizen.opposite for citizen in model.agents}
            for (agent, _, _), weights in choices_made(model):
                if (opposite := met[agent]) is not None:
                    found[abs(opposite - before[agent]) <= BOUND].append(weights.get("compromise", 0.0))
        for is_near, values in found.items():
            means[is_near] += cluster_means(values, [seed] * len(values))
    apart = compare(means[True], means[False], margin=SMALLEST)
    bounds = (0.0, 1.0)
    return [
        LocalRow.of(f"probability, opinions at most {BOUND} apart", mean_estimate(means[True], bounds=bounds), "runs"),
        LocalRow.of("probability, opinions further apart", mean_estimate(means[False], bounds=bounds), "runs"),
        LocalRow.of(
            "the first less the second",
            None if apart is None else apart.difference,
            "pairs of runs",
            "" if apart is None else f"a difference is {apart.verdict}",
        ),
    ]


def awareness(llm: str, logs: Path, seeds: int | None, replays: bool) -> list[LocalRow]:
    """Ask agents aside, before the first step, what is studied."""
    rows: list[LocalRow] = []
    shares: list[float] = []
    n_aware = n_asked = 0
    with closing(Access()) as access:
        if not replays:
            access.open(llm)
        for name, words in ASKED_ASIDE.items():
            kind = find_model(name).load()
            parameters = {"guests": 5} if name == "prisoners_dilemma" else {}
            answers = []
            for seed in range(1, (seeds or 1) + 1):
                job = Run(name_of(kind), parameters, llm, "own", {}, seed, 1, logs / name, {})
                job.folder.mkdir(parents=True, exist_ok=True)
                answers += AwarenessJob(job, words, "", replays).run(access, Stop())
            aware = [float(one.is_aware) for one in answers]
            shares += cluster_means(aware, [name] * len(aware))
            n_aware, n_asked = n_aware + int(sum(aware)), n_asked + len(aware)
            rows.append(LocalRow(f"agents of {name}", f"{sum(aware):.0f} of {len(aware)}", len(aware), "agents"))
    whole = mean_estimate(shares, "models", bounds=(0.0, 1.0))
    published = "47.6 % of prompts, which are another unit (arXiv 2509.18052, frontier models)"
    text = f"{n_aware} of {n_asked}; mean share over models {with_interval(whole)}"
    return [*rows, LocalRow("agents of all models", text, len(shares), "models", "", published)]


def persona_form(llm: str, logs: Path, seeds: int | None, replays: bool) -> list[LocalRow]:
    """Run [1]'s first case."""
    n = seeds or 12
    findings = study_persona_form(StudySetup(range(1, n + 1), logs, llm))
    shares, differences, _ = findings.tables
    rows = [
        LocalRow(f"cooperation, persona as {row['form']} (percent)", _interval(row, "cooperation"), n, "runs")
        for row in shares.rows
    ]
    for row in differences.rows:
        quantity = f"{row['pair']} (percentage points)"
        rows.append(LocalRow(quantity, _interval(row, "difference"), n, "pairs of runs", _shown(row)))
    largest = max(abs(float(row["difference"] or 0)) for row in differences.rows[:-1])
    published = ", ".join(f"{name} {size:.0f}" for name, size in PUBLISHED.items())
    note = "largest of three differences, which chance alone makes larger than 0 (percentage points)"
    return [*rows, LocalRow(note, figure_text(largest), n, "pairs of runs", "", published)]


def _interval(row: Mapping[str, Any], name: str) -> str:
    low, high = row["low"], row["high"]
    ends = "" if low is None or high is None else f" [{figure_text(low)}, {figure_text(high)}]"
    return figure_text(row[name]) + ends


def _shown(row: Mapping[str, Any]) -> str:
    p = row["adjusted p"]
    return str(row["verdict"]) if p is None else f"{row['verdict']} (p = {p:.2g}, Holm over four)"


def audited(llm: str, logs: Path, seeds: int | None, replays: bool) -> list[LocalRow]:
    """Judge the recorded audit of the prisoner's dilemma again; nothing is asked."""
    return audit_rows(run_setup(recorded_audit(find_model("prisoners_dilemma").load(), logs)))


def audit_rows(found: Audit) -> list[LocalRow]:
    """Return the rows of an audit."""
    (one,) = found.claims
    text = "cooperation of two kind players less that of two ruthless ones"
    rows = [LocalRow.of(text, one.baseline, "pairs of runs", one.verdict)]
    rows += [
        LocalRow.of(
            f"under “{row.perturbation.name}”",
            row.result.effect,
            "pairs of runs",
            f"claim {SHOWN_WORDS[row.result.shown]}; size {row.result.change}",
        )
        for row in one.perturbations
    ]
    rows += [
        LocalRow.of(f"beside it: {row.name}", row.effect, "pairs of runs", SHOWN_WORDS[row.shown])
        for row in one.controls
    ]
    return [*rows, LocalRow("asked aside", found.awareness_text, len(found.seeds), "runs")]


def _figure(rows: Sequence[Mapping[str, Any]], quantity: str) -> str:
    return next(row["ours"] for row in rows if row["quantity"] == quantity)


def _persona_text(rows: Sequence[Mapping[str, Any]]) -> str:
    reacts = [row["quantity"].partition(",")[0] for row in rows if row["verdict"] == "reacts"]
    undecided = sum(row["verdict"] == "cannot tell" for row in rows)
    named = f": {', '.join(reacts)}" if reacts else ""
    return (
        f"In the words that the prompts were tuned on, it reacts to its persona in {len(reacts)} of {len(rows)} "
        f"contrasts{named}; {undecided} cannot tell. Other words are another matter (below)."
    )


def _opinions_text(rows: Sequence[Mapping[str, Any]]) -> str:
    near, far, apart = (row["ours"] for row in rows)
    return (
        f"When two people meet, a compromise has a probability of {near} if they are at most {BOUND} apart, and of "
        f"{far} if they are further apart: {apart}, {rows[2]['verdict']} ({counted(rows[2]['n'], 'pair')} of runs). "
        "Bounded confidence has 1, 0 and 1."
    )


def _form_text(rows: Sequence[Mapping[str, Any]]) -> str:
    shown = [row for row in rows if row["verdict"].startswith("shown")]
    pairs = [f"{row['quantity'].removesuffix(' (percentage points)')} {row['ours']}" for row in shown]
    return (
        f"The form of one persona moves its cooperation in a prisoner's dilemma, in percentage points: "
        f"{', '.join(pairs)} ({counted(rows[0]['n'], 'pair')} of runs each, Holm over four)."
        if pairs
        else f"Whether the form of a persona moves its cooperation cannot be told from {rows[0]['n']} pairs of runs."
    )


MEASUREMENTS: Mapping[str, Measurement] = {
    "persona": Measurement(
        "Does it react to who it is?",
        "python benchmarks/evidence_local.py --llm MODEL --logs DIR persona",
        persona,
        _persona_text,
        "Expected answer under a persona that should score high, minus that under one that should score low, from the "
        "probabilities of all answers; two wordings of each persona. *Reacts*: the interval excludes 0, and the "
        "difference is a tenth of the range or more. Questions are the units: nothing is said of other questions, and "
        "the prompts were tuned on these. Elsewhere less is left: with local:1.5b, statements that share no word with "
        "their personas give 0.23 points (0.09 to 0.34 by wording) in one half of the gate and 0.12 (0.04 to 0.25) in "
        "the other ([1.5.0](choosing_a_model.md#does-it-react-to-who-it-is)).",
    ),
    "opinions": Measurement(
        "Does it change opinions as a known reference does?",
        "python benchmarks/evidence_local.py --llm MODEL --logs DIR opinions",
        opinions,
        _opinions_text,
        "Twenty people meet once in pairs; the probability of a compromise, averaged in each run. A difference is "
        f"*absent* if its 90 % interval lies within {SMALLEST} around 0 (references as in arXiv 2412.05093).",
    ),
    "persona_form": Measurement(
        "Does the form of a persona alone change its cooperation?",
        "python benchmarks/evidence_local.py --llm MODEL --logs DIR persona_form",
        persona_form,
        _form_text,
        "Two agents, ten rounds; the same persona as a plain line, a description and a table. The published personas "
        "are others, so only sizes stand beside ours.",
    ),
    "awareness": Measurement(
        "Does it name the experiment that it is in?",
        "python benchmarks/evidence_local.py --llm MODEL --logs DIR awareness",
        awareness,
        lambda rows: (
            f"Asked aside in ten models, {rows[-1]['ours']} of its agents name the experiment that they are in; in the "
            "audited dilemma below it is most of them."
        ),
        "Up to five agents a model, asked before the first step; they name it by one of the words listed in "
        "`benchmarks/evidence_local_measured.py`, unless their own prompts hold it. Agents of a model are one cluster.",
    ),
    "audit": Measurement(
        "Is a claim about its cooperation stable?",
        "mesa-llm audit prisoners_dilemma --recorded --out DIR",
        audited,
        lambda rows: (
            f"Audited: two kind players cooperate with a probability {rows[0]['ours']} above that of two ruthless ones "
            f"({counted(rows[0]['n'], 'pair')} of runs). {rows[0]['verdict']} {rows[-1]['ours']}"
        ),
        "What the verdicts mean: [Audit a claim](auditing.md).",
        ships_logs=False,
    ),
}
"""Name → measurement."""
