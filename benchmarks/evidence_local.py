"""Measure what local language models do, for the first section of `docs/evidence.md`.

    python benchmarks/evidence_local.py --llm local:1.5b --logs runs/evidence             # all measurements: hours
    python benchmarks/evidence_local.py --llm local --logs runs/evidence persona_form     # one of them

Each measurement keeps its run logs, so that it goes on where it was stopped, and stores its rows in
`evidence_local.json`; `python3 dev.py evidence --page` writes the page from them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import mesa_llm
from mesa_llm.engine.access import Access
from mesa_llm.experiments.audit import audit, read_claims
from mesa_llm.experiments.audit.findings import ClaimFindings
from mesa_llm.experiments.audit.probes import AwarenessJob, awareness_of
from mesa_llm.experiments.persona import persona_contrast
from mesa_llm.experiments.runner import Stop
from mesa_llm.experiments.study import StudySetup
from mesa_llm.experiments.sweep import SweepJob
from mesa_llm.model.identity import name_of
from mesa_llm.model.quality import Rate
from mesa_llm.registry import find_model
from mesa_llm.statistics import share_interval, with_interval
from mesa_llm.text import figure_text
from mesa_llm_models.classics.persona_form import PUBLISHED, study_persona_form

READINGS = Path(__file__).with_name("evidence_local.json")
CLAIMS = Path(__file__).with_name("evidence_claims.toml")

AUDITED = ("agent specification", "format", "sequencing")
"""Dimensions of the audit."""

ASKED_ASIDE: Mapping[str, tuple[str, ...]] = {
    "boltzmann_wealth": ("boltzmann", "inequality", "wealth distribution", "econophysics"),
    "epidemic": ("epidemi", "susceptible", "sir model", "sis model"),
    "opinion": ("opinion dynamics", "consensus", "polari", "bounded confidence", "persuasion"),
    "prisoners_dilemma": ("prisoner", "dilemma", "axelrod", "game theory", "tit for tat", "repeated interaction"),
    "schelling": ("schelling", "segregat"),
    "sugarscape": ("sugarscape", "epstein", "axtell", "artificial societ"),
    "wolf_sheep": ("predator", "lotka", "volterra", "ecolog", "ecosystem"),
    "social": ("social network analysis", "polari", "herd", "misinformation", "echo chamber", "information spread"),
}
"""Model whose agents are asked what is studied → words by which they name it, if their own prompts do not hold them."""


@dataclass(frozen=True)
class LocalRow:
    """One figure of a local language model."""

    quantity: str
    """What was measured."""

    ours: str
    """The figure, with its interval."""

    n: int
    """Number of seeds, questions or agents behind it."""

    verdict: str = ""
    """What it shows, by the rules of its measurement."""

    published: str = ""
    """Published figures of other language models, if there are any."""


@dataclass(frozen=True)
class Measurement:
    """Rows that one command measures."""

    title: str
    """What is measured."""

    command: str
    """Command that measures it; `MODEL` stands for the language model."""

    rows: Callable[[str, Path, int | None], list[LocalRow]]
    """Measures with a language model, a folder of logs, and a number of seeds (None: its own)."""

    summary: Callable[[Sequence[Mapping[str, Any]]], str]
    """Says in a sentence what the rows show."""

    note: str = ""
    """What a reader has to know."""


def persona(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Contrast personas."""
    with closing(Access()) as access:
        found = persona_contrast(llm, folder=logs, access=access)
    return [
        LocalRow(
            f"{row.name}, from {figure_text(row.range[0])} to {figure_text(row.range[1])}",
            with_interval(row.difference),
            0 if row.difference is None else row.difference.n,
            row.verdict,
        )
        for row in found
    ]


def persona_form(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Run [1]'s first case."""
    n = seeds or 30
    findings = study_persona_form(StudySetup(range(1, n + 1), logs, llm))
    shares, differences, _ = findings.tables
    published = ", ".join(f"{name} {size:.0f}" for name, size in PUBLISHED.items())
    rows = [
        LocalRow(f"cooperation, persona as {row['form']} (percent)", _interval(row, "cooperation"), n)
        for row in shares.rows
    ]
    for row in differences.rows:
        p = float(row["p"] or 1)
        verdict = "differs" if p < 0.05 else "no difference shown"
        text = f"{verdict} (p = {p:.2g})"
        rows.append(LocalRow(f"{row['pair']} (percentage points)", _interval(row, "difference"), n, text))
    largest = max(abs(float(row["difference"] or 0)) for row in differences.rows)
    rows.append(LocalRow("largest difference (percentage points)", figure_text(largest), n, "", published))
    return rows


def _interval(row: Mapping[str, Any], name: str) -> str:
    low, high = row["low"], row["high"]
    ends = "" if low is None or high is None else f" [{figure_text(low)}, {figure_text(high)}]"
    return figure_text(row[name]) + ends


def awareness(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Ask agents aside, before the first step, what is studied."""
    rows: list[LocalRow] = []
    total = Rate(0, 0)
    with closing(Access()) as access:
        access.open(llm)
        for name, words in ASKED_ASIDE.items():
            kind = find_model(name).load()
            parameters = {"guests": 5} if name == "prisoners_dilemma" else {}
            answers = []
            for seed in range(1, (seeds or 1) + 1):
                job = SweepJob(name_of(kind), parameters, llm, "own", {}, seed, 1, logs / name, {})
                job.folder.mkdir(parents=True, exist_ok=True)
                answers += AwarenessJob(job, words, "").run(access, Stop())
            rate = awareness_of(answers) or Rate(0, 0)
            total = total.plus(*rate)
            rows.append(LocalRow(f"agents of {name} who name the experiment", f"{rate.n} of {rate.of}", rate.of))
    low, high = share_interval(*total)
    text = f"{total.n} of {total.of} ({total.share:.0%} [{low:.0%}, {high:.0%}])"
    rows.append(LocalRow("all of them", text, total.of, "", "47.6 % of prompts, frontier models (arXiv 2509.18052)"))
    return rows


def audited(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Audit one claim of the prisoner's dilemma."""
    kind = find_model("prisoners_dilemma").load()
    options = {"scoring": "probabilities"}
    claims = read_claims(CLAIMS, kind)
    found = audit(kind, claims, llm=llm, seeds=seeds or 10, options=options, dimensions=AUDITED, folder=logs)
    found.write(logs)
    rows = [row for one in found.claims for row in _rows_of_claim(one)]
    return [*rows, LocalRow("coverage", found.coverage, len(found.seeds))]


def _rows_of_claim(one: ClaimFindings) -> list[LocalRow]:
    n = one.baseline.n
    rows = [LocalRow(one.claim.text, with_interval(one.baseline), n, one.verdict)]
    rows += [
        LocalRow(f"under “{row.perturbation.name}”", with_interval(row.result.effect), n, row.result.change)
        for row in one.perturbations
    ]
    return rows + [LocalRow(f"beside it: {row.name}", with_interval(row.effect), n, row.shown) for row in one.controls]


MEASUREMENTS: Mapping[str, Measurement] = {
    "persona": Measurement(
        "Does it react to who it is?",
        "python benchmarks/persona_contrast.py --llm MODEL",
        persona,
        lambda rows: f"It reacts to {_n_with(rows, 'reacts')} of {len(rows)} contrasts of personas as it should.",
        "Expected answer under a persona that should score high, minus that under one that should score low, from the "
        "probabilities of all answers.",
    ),
    "persona_form": Measurement(
        "Does the form of a persona alone change its cooperation?",
        "mesa-llm study classics persona_form --llm MODEL",
        persona_form,
        lambda rows: (
            "The form of a persona alone moves its cooperation in a prisoner's dilemma by "
            f"{rows[-1]['ours']} percentage points."
        ),
        "Two agents, ten rounds; the same persona as a plain line, a description and a table. The published personas "
        "are others, so only sizes are beside ours.",
    ),
    "awareness": Measurement(
        "Does it name the experiment that it is in?",
        "python benchmarks/evidence_local.py --llm MODEL --logs DIR awareness",
        awareness,
        lambda rows: f"Asked aside, {rows[-1]['ours']} of its agents name the experiment that they are in.",
        "Up to five agents a model, asked aside before the first step; they name it by one of the words listed in "
        "`benchmarks/evidence_local.py`, unless their own prompts hold it.",
    ),
    "audit": Measurement(
        "Is a claim about its cooperation stable?",
        "mesa-llm audit prisoners_dilemma --claims benchmarks/evidence_claims.toml --scoring probabilities "
        f"--dimensions '{','.join(AUDITED)}' --llm MODEL",
        audited,
        lambda rows: f"Of the claim “{rows[0]['quantity']}” the audit says: {rows[0]['verdict']}.",
        "What the verdicts mean: [Audit a claim](auditing.md).",
    ),
}
"""Name → measurement."""


def load() -> dict[str, dict[str, Any]]:
    """Load what was measured: language model → measurement → rows, date, version and logs."""
    return json.loads(READINGS.read_text(encoding="utf-8")) if READINGS.exists() else {}


def _n_with(rows: Sequence[Mapping[str, Any]], verdict: str) -> int:
    return sum(row["verdict"] == verdict for row in rows)


def summary(readings: Mapping[str, Mapping[str, Any]]) -> str:
    """Write what the measurements show, a list for each language model."""
    lines: list[str] = []
    for llm, found in readings.items():
        lines.append(f"- **{llm}**")
        for name, measurement in MEASUREMENTS.items():
            if name in found:
                lines.append(f"    - {measurement.summary(found[name]['rows'])}")
    return "\n".join(lines) + "\n"


def section(readings: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the section of the page."""
    lines = [
        "## What local language models do\n",
        "Small language models on one machine, measured by the commands below. No row says anything of other language "
        "models, or of people.\n",
    ]
    for llm, found in readings.items():
        lines.append(f"### {llm}\n")
        for name, measurement in MEASUREMENTS.items():
            if name not in found:
                continue
            one = found[name]
            command = measurement.command.replace("MODEL", llm)
            lines += [
                f"**{measurement.title}** {measurement.note} `{command}` ({one['date']}, version {one['version']}).\n",
                "| quantity | ours | n | verdict | published, other models |",
                "|---|---|---|---|---|",
                *(_line(row) for row in one["rows"]),
                "",
            ]
    return "\n".join(lines)


def _line(row: Mapping[str, Any]) -> str:
    cells = (row["quantity"], row["ours"], row["n"], row["verdict"] or "–", row["published"] or "–")
    return "| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and store the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(MEASUREMENTS)}; default: all")
    parser.add_argument("--llm", default="local", help="language model")
    parser.add_argument("--logs", type=Path, required=True, help="folder of the run logs")
    parser.add_argument("--seeds", type=int, help="number of seeds; by default that of each measurement")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(MEASUREMENTS)):
        parser.error(f"nothing is called {', '.join(unknown)}; there are: {', '.join(MEASUREMENTS)}")
    for name in options.names or MEASUREMENTS:
        folder = options.logs / options.llm.replace(":", "-") / name
        folder.mkdir(parents=True, exist_ok=True)
        rows = MEASUREMENTS[name].rows(options.llm, folder, options.seeds)
        readings = load()
        about = {"date": datetime.now(UTC).date().isoformat(), "version": mesa_llm.__version__}
        readings.setdefault(options.llm, {})[name] = {**about, "rows": [asdict(row) for row in rows]}
        READINGS.write_text(json.dumps(readings, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        for row in rows:
            print(f"{row.quantity}: {row.ours} (n = {row.n}) {row.verdict}", flush=True)


if __name__ == "__main__":
    main()
