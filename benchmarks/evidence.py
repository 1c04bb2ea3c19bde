"""Measure the published values that rules and stored data can reproduce, and write `docs/evidence.md`.

    python3 dev.py evidence              everything: some fifteen minutes of processor time
    python3 dev.py evidence econ_agent   the models named; the others keep their readings
    python3 dev.py evidence --page       the page alone, from the readings in `benchmarks/evidence.json`

Values that need files of the original projects are measured where `MESA_LLM_DATA` names their folder, and keep their
readings elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import evidence_local
from evidence_llm import LLM_CLAIMS, REPLAYED
from evidence_measured import STUDIES
from evidence_record import Claim, LLMClaim, Reading, Study

ROOT = Path(__file__).resolve().parents[1]
READINGS = ROOT / "benchmarks" / "evidence.json"
PAGE = ROOT / "docs" / "evidence.md"

INTRODUCTION = """# Evidence

## Summary

Rules, worlds, scores and loaders do what the originals do: of {n_rows} published or recorded values that need no
language model, {n_same} are the same or agree ([details](#what-rules-and-stored-data-reproduce)). That says nothing
about how language models behave.

What small language models on one machine do ([details](#what-local-language-models-do)), each figure with its number of
runs, and no claim beyond the models named:

{local}
No language model was paid for. Published values that need one are listed with the command that measures the same
([details](#what-needs-a-language-model-or-people)).

## How to read this page

`python3 dev.py evidence` measures everything that a rule or stored data can reproduce and writes this page; tests check
the page against the readings, and the readings against the code. `benchmarks/evidence_local.py` measures local language
models. Where nothing is in print, the column *published* shows what the authors' own program gives, or an independent
one of the same rules.

**Verdicts.** *the same*: nothing was drawn, and ours rounds to the published value. *agrees*: the mean of our runs is
so close that chance alone, in our runs and in the published ones, would leave them further apart once in twenty times
or more; where the published spread is not known, it is taken to be ours. *differs by*: ours minus the published value.
Brackets hold the 95 % interval of our mean, *n* is the number of our runs or of the values compared. Of {n_drawn} rows
with runs, chance alone would make about {n_expected} differ; {n_differing} do.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [study.name for study in STUDIES]
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{', '.join(names)}; default: all")
    parser.add_argument("--page", action="store_true", help="write the page from the readings, and measure nothing")
    options = parser.parse_args()
    if unknown := sorted(set(options.models) - set(names)):
        parser.error(f"no published values of {', '.join(unknown)} are reproduced; there are: {', '.join(names)}")
    readings = load()
    if not options.page:
        readings |= measured(options.models or names)
        store(readings)
    PAGE.write_text(page(readings), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")


def measured(names: Iterable[str]) -> dict[str, dict[str, Reading]]:
    """Measure the studies of several models, two at a time."""
    wanted = [study.name for study in STUDIES if study.name in set(names)]
    able = [name for name in wanted if is_measurable(study_of(name))]
    for name in sorted(set(wanted) - set(able)):
        print(f"{name}: not measured, as MESA_LLM_DATA does not name the folder of its files", flush=True)
    with ProcessPoolExecutor(2) as pool:
        return dict(zip(able, pool.map(measure, able), strict=True))


def measure(name: str) -> dict[str, Reading]:
    """Measure the study of one model."""
    study = study_of(name)
    found = dict(study.measure(study.n_runs))
    print(f"{name}: {len(found)} values", flush=True)
    return found


def study_of(name: str) -> Study:
    """Return the study of a model."""
    return next(study for study in STUDIES if study.name == name)


def is_measurable(study: Study) -> bool:
    """Check whether the files of a study are available."""
    return not study.data or Path(os.environ.get("MESA_LLM_DATA", os.devnull), study.data).is_dir()


# -- readings


def load() -> dict[str, dict[str, Reading]]:
    """Load the stored readings, if any."""
    if not READINGS.exists():
        return {}
    stored: Any = json.loads(READINGS.read_text(encoding="utf-8"))
    return {name: {quantity: Reading(**one) for quantity, one in rows.items()} for name, rows in stored.items()}


def store(readings: Mapping[str, Mapping[str, Reading]]) -> None:
    """Store the readings with six significant digits."""
    plain = {
        name: {
            quantity: {field: short(value) for field, value in asdict(one).items()} for quantity, one in rows.items()
        }
        for name, rows in sorted(readings.items())
    }
    READINGS.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")


def short(value: float | None) -> float | int | None:
    """Round to six significant digits."""
    return value if value is None or isinstance(value, int) else float(f"{value:.6g}")


# -- page


def page(readings: Mapping[str, Mapping[str, Reading]]) -> str:
    """Write the page."""
    rows = [(claim, readings[study.name][claim.quantity]) for study in STUDIES for claim in study.claims]
    drawn = [reading.verdict(claim) for claim, reading in rows if reading.sd is not None]
    counts = {
        "n_drawn": len(drawn),
        "n_expected": round(0.05 * len(drawn)),
        "n_differing": sum(verdict != "agrees" for verdict in drawn),
        "n_rows": len(rows),
        "n_same": sum(reading.verdict(claim) in ("agrees", "the same") for claim, reading in rows),
        "local": evidence_local.summary(evidence_local.load()),
    }
    parts = [
        INTRODUCTION.format(**counts),
        evidence_local.section(evidence_local.load()),
        "## What rules and stored data reproduce\n",
    ]
    parts += [section(study, readings[study.name]) for study in STUDIES]
    parts += ["## Programs that are replayed\n", replayed_table(), "## What needs a language model or people\n"]
    parts.append("`MODEL` stands for your language model; `--dry-run` estimates the cost of a benchmark beforehand.\n")
    parts += [llm_section(name, rows) for name, rows in LLM_CLAIMS.items()]
    return "\n".join(parts)


def section(study: Study, readings: Mapping[str, Reading]) -> str:
    """Write the rows of one model, with a table for each command."""
    verdicts = Counter(readings[claim.quantity].verdict(claim).split(" by ")[0] for claim in study.claims)
    words = {"agrees": "agree", "differs": "differ", "the same": "the same"}
    summary = ", ".join(f"{count} {words[verdict]}" for verdict, count in verdicts.items())
    lines = [f"### {study.name}\n", f"{study.note} {len(study.claims)} values: {summary}.\n".lstrip()]
    lines += ["| quantity | published | ours | n | verdict | source | command |", "|---|---|---|---|---|---|---|"]
    lines += [row(claim, readings[claim.quantity]) for claim in study.claims]
    return "\n".join(lines) + "\n"


def row(claim: Claim, reading: Reading) -> str:
    """Write one row."""
    ours = f"{reading.mean:,.{claim.digits}f}"
    if reading.sd is not None:
        low, high = reading.mean - reading.half_width, reading.mean + reading.half_width
        ours += f" [{low:,.{claim.digits}f}, {high:,.{claim.digits}f}]"
    published = f"{claim.published:,.{claim.digits}f}" + (f" (n = {claim.n:,})" if claim.n else "")
    cells = (claim.quantity, published, ours, f"{reading.n:,}", reading.verdict(claim), claim.source)
    return "| " + " | ".join(cells) + f" | `{claim.command}` |"


def replayed_table() -> str:
    """Write the table of programs whose recorded runs are replayed."""
    lines = ["| program | what is compared | command |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {one} | {what} | `{command}` |" for one, what, command in REPLAYED)]) + "\n"


def llm_section(name: str, rows: Iterable[LLMClaim]) -> str:
    """Write the rows of one study that needs a paid language model."""
    lines = [f"### {name}, not measured here\n", "| quantity | published | source | command |", "|---|---|---|---|"]
    lines += [f"| {one.quantity} | {one.published} | {one.source} | `{one.command}` |" for one in rows]
    return "\n".join(lines) + "\n"


def commands() -> Iterator[str]:
    """Return the command of each row."""
    yield from (claim.command for study in STUDIES for claim in study.claims)
    yield from (one.command for rows in LLM_CLAIMS.values() for one in rows)
    yield from (command for _, _, command in REPLAYED)
    yield from (one.command for one in evidence_local.MEASUREMENTS.values() if one.command.startswith("mesa-llm"))


if __name__ == "__main__":
    main()
