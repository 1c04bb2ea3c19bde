"""Measure the published values that rules and stored data can reproduce, and write `docs/evidence.md`.

    python3 dev.py evidence              everything: some fifteen minutes of processor time
    python3 dev.py evidence econ_agent   the models named; the others keep their readings
    python3 dev.py evidence --page       the page alone, from the readings in `benchmarks/evidence.json`

Values that need files of the original projects are measured where `MESA_LLM_DATA` names their folder, and keep their
readings elsewhere.
"""

from __future__ import annotations

import argparse
import csv
import io
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
from evidence_record import Reading, Study

from mesa_llm.statistics import adjusted_p

ROOT = Path(__file__).resolve().parents[1]
READINGS = ROOT / "benchmarks" / "evidence.json"
PAGE = ROOT / "docs" / "evidence.md"

INTRODUCTION = """# Evidence

## Summary

Rules, worlds, scores and loaders do what the originals do, as far as it can be told: of {n_rows} published or recorded
values that need no language model, {same} are the same (nothing is drawn), {agrees} agree within a stated margin,
{differs} differ, and of {cannot_tell} so few runs cannot tell
([details](#what-rules-and-stored-data-reproduce)). That says nothing about how language models behave.

What small language models on one machine do ([details](#what-local-language-models-do)), each line with the version
and date of its runs:

{local}
No language model was paid for. Published values that need one are listed with the command that measures the same
([details](#what-needs-a-language-model-or-people)).

## How to read this page

`python3 dev.py evidence` measures everything that a rule or stored data can reproduce and writes this page and its
tables; tests check both against the readings, and the readings against the code.
`benchmarks/evidence_local.py` measures local language models. Where nothing is in print, the column *published* of the
tables holds what the authors' own program gives, or an independent one of the same rules.

*The same*: nothing was drawn, and ours rounds to the published value. *Agrees*: the 90 % interval of the distance lies
within a margin (two one-sided tests at 5 % each): a tenth of the published value; for a correlation or the score of a
bias 0.1, for a rate of unemployment or inflation one percentage point, for a change of prices 5. *Differs*: the
distance is not 0, by a t-test corrected by Holm for all {n_drawn} values with runs. *Cannot tell*: neither. Where the
published spread is not known, it is taken to be ours.
"""

TABLES = {
    "rules": "evidence_rules.csv",
    "local": "evidence_local.csv",
    "published": "evidence_published.csv",
}
"""Table → its file beside the page."""


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
    for file, text in written(readings).items():
        file.write_text(text, encoding="utf-8")
        print(f"written: {file.relative_to(ROOT)}")


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


# -- page and tables


def written(readings: Mapping[str, Mapping[str, Reading]]) -> dict[Path, str]:
    """Write the page and its tables, by their files."""
    lines = {
        "rules": rule_lines(readings),
        "local": evidence_local.table(evidence_local.load()),
        "published": published_lines(),
    }
    return {PAGE: page(readings)} | {PAGE.with_name(TABLES[name]): csv_text(rows) for name, rows in lines.items()}


def csv_text(lines: Iterable[Iterable[Any]]) -> str:
    """Write lines as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def verdicts(readings: Mapping[str, Mapping[str, Reading]]) -> dict[tuple[str, str], str]:
    """Judge all claims, by study and quantity; tests of those with runs are one family."""
    rows = [(study.name, claim, readings[study.name][claim.quantity]) for study in STUDIES for claim in study.claims]
    p_values = adjusted_p([reading.p(claim) for _, claim, reading in rows], "holm")
    return {
        (name, claim.quantity): reading.verdict(claim, p)
        for (name, claim, reading), p in zip(rows, p_values, strict=True)
    }


def page(readings: Mapping[str, Mapping[str, Reading]]) -> str:
    """Write the page."""
    found = verdicts(readings)
    counts = Counter(kind_of(verdict) for verdict in found.values())
    introduction = INTRODUCTION.format(
        n_rows=len(found),
        same=counts["the same"],
        agrees=counts["agrees"],
        differs=counts["differs"],
        cannot_tell=counts["cannot tell"],
        n_drawn=sum(reading.sd is not None for study in STUDIES for reading in readings[study.name].values()),
        local=evidence_local.summary(evidence_local.load()),
    )
    parts = [
        introduction,
        evidence_local.section(evidence_local.load()),
        "## What rules and stored data reproduce\n",
        f"Each value with its source, our mean, interval, number of runs, verdict and command: [{TABLES['rules']}]"
        f"({TABLES['rules']}).\n",
        "| model | what was run | the same | agrees | differs | cannot tell |",
        "|---|---|---|---|---|---|",
        *(study_line(study, found) for study in STUDIES),
        "",
        *differing(found),
        "## Programs that are replayed\n",
        replayed_table(),
        "## What needs a language model or people\n",
        f"Published values, their sources and the command that measures the same: [{TABLES['published']}]"
        f"({TABLES['published']}); `--dry-run` estimates the cost of each beforehand.\n",
        "| study | values |",
        "|---|---|",
        *(f"| {name} | {len(list(rows))} |" for name, rows in LLM_CLAIMS.items()),
    ]
    return "\n".join(parts) + "\n"


def kind_of(verdict: str) -> str:
    """Return a verdict without its size."""
    return verdict.partition(" by ")[0]


def study_line(study: Study, found: Mapping[tuple[str, str], str]) -> str:
    """Write the line of one model."""
    counts = Counter(kind_of(found[study.name, claim.quantity]) for claim in study.claims)
    numbers = (counts[kind] or "–" for kind in ("the same", "agrees", "differs", "cannot tell"))
    return f"| {study.name} | {study.note or 'stored data'} | {' | '.join(map(str, numbers))} |"


def differing(found: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Yield a sentence for each value that differs."""
    rows = [(*key, verdict) for key, verdict in found.items() if kind_of(verdict) == "differs"]
    if rows:
        yield "What differs: " + "; ".join(f"{name}, {what}: {verdict}" for name, what, verdict in rows) + ".\n"


def rule_lines(readings: Mapping[str, Mapping[str, Reading]]) -> Iterator[list[Any]]:
    """Yield the lines of the table of what rules and stored data reproduce, its heading first."""
    found = verdicts(readings)
    names = ("published", "published n", "ours", "low", "high", "n", "margin", "verdict", "source", "command")
    yield ["model", "quantity", *names]
    for study in STUDIES:
        for claim in study.claims:
            one = readings[study.name][claim.quantity]
            drawn = one.sd is not None
            ends = (short(one.mean - one.half_width), short(one.mean + one.half_width)) if drawn else ("", "")
            judged = (short(claim.tolerance) if drawn else "", found[study.name, claim.quantity])
            values = (short(claim.published), claim.n or "", short(one.mean), *ends, one.n, *judged)
            yield [study.name, claim.quantity, *values, claim.source, claim.command]


def published_lines() -> Iterator[list[Any]]:
    """Yield the lines of the table of published values that need a language model or people, its heading first."""
    yield ["study", "quantity", "published", "source", "command"]
    for name, rows in LLM_CLAIMS.items():
        for one in rows:
            yield [name, one.quantity, one.published, one.source, one.command]


def replayed_table() -> str:
    """Write the table of programs whose recorded runs are replayed."""
    lines = ["| program | what is compared | command |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {one} | {what} | `{command}` |" for one, what, command in REPLAYED)]) + "\n"


def commands() -> Iterator[str]:
    """Return the command of each row."""
    yield from (claim.command for study in STUDIES for claim in study.claims)
    yield from (one.command for rows in LLM_CLAIMS.values() for one in rows)
    yield from (command for _, _, command in REPLAYED)
    yield from (one.command for one in evidence_local.MEASUREMENTS.values() if one.command.startswith("mesa-llm"))


if __name__ == "__main__":
    main()
