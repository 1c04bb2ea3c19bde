"""Measure what local language models do, for the section of `docs/evidence.md`, and keep the runs.

    python benchmarks/evidence_local.py --llm local:1.5b --logs runs/evidence             # all measurements: hours
    python benchmarks/evidence_local.py --llm local --logs runs/evidence persona          # one of them
    python benchmarks/evidence_local.py --llm local:1.5b --recorded                       # from the runs that are kept

Each measurement goes on where it was stopped, stores its rows in `evidence_local.json`, and its run logs beside it in
`recorded/`; judged again from these, nothing is asked. `python3 dev.py evidence --page` writes the page from the rows.
"""

from __future__ import annotations

import argparse
import json
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evidence_local_measured import MEASUREMENTS, LocalRow

import mesa_llm
from mesa_llm.experiments.audits.recorded import pack_runs
from mesa_llm.experiments.runs.recordings import LOCAL_LLMS

READINGS = Path(__file__).with_name("evidence_local.json")

RECORDED = Path(__file__).with_name("recorded")
"""Folder of the runs behind the readings, an archive each."""


def load() -> dict[str, dict[str, Any]]:
    """Load what was measured: language model → measurement → rows, date and version."""
    return json.loads(READINGS.read_text(encoding="utf-8")) if READINGS.exists() else {}


def archive_of(llm: str, name: str) -> Path:
    """Return the archive of a measurement's runs."""
    return RECORDED / f"{llm.replace(':', '-')}-{name}.tar.xz"


def replayed(llm: str, name: str, folder: Path) -> list[dict[str, Any]]:
    """Compute the rows of a measurement from the runs that are kept; nothing is asked.

    Args:
        llm: The language model.
        name: Name of the measurement.
        folder: Folder to unpack the runs into.
    """
    if MEASUREMENTS[name].ships_logs:
        with tarfile.open(archive_of(llm, name)) as packed:
            packed.extractall(folder, filter="data")
    return plain(MEASUREMENTS[name].rows(llm, folder, load()[llm][name].get("seeds"), True))


def keep(llm: str, name: str, folder: Path) -> None:
    """Pack the logs of a measurement; equal runs give equal archives."""
    RECORDED.mkdir(exist_ok=True)
    files = [file for file in folder.rglob("*") if file.suffix in (".sqlite", ".json")]
    pack_runs({file.relative_to(folder).as_posix(): file for file in files}, archive_of(llm, name))


def plain(rows: Sequence[LocalRow]) -> list[dict[str, Any]]:
    """Return rows as they are stored."""
    return [{key: value for key, value in asdict(row).items() if value != ""} for row in rows]


def summary(readings: Mapping[str, Mapping[str, Any]]) -> str:
    """Write what the measurements show, a list for each language model."""
    lines: list[str] = []
    for llm, found in readings.items():
        lines.append(f"- **{_titled(llm)}**")
        for name, measurement in MEASUREMENTS.items():
            if name in found:
                text = measurement.summary([_filled(row) for row in found[name]["rows"]])
                lines.append(f"    - {text} *{_when(name, found[name])}*")
    return "\n".join(lines) + "\n"


def section(readings: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the section of the page: how each was measured, with which command."""
    lines = [
        "## What local language models do\n",
        "Small language models on one machine. No line says anything of other language models, or of people. All rows, "
        "with units and intervals, are in [evidence_local.csv](evidence_local.csv); the runs behind them lie in "
        "`benchmarks/recorded/`, and `python benchmarks/evidence_local.py --llm local:1.5b --recorded` computes them "
        "again without asking anything, with the version that measured them where prompts have changed since. "
        "Below four units there is no interval, and so no line.\n",
    ]
    for name, measurement in MEASUREMENTS.items():
        measured = [llm for llm, found in readings.items() if name in found]
        if measured:
            command = measurement.command_for(measured[0])
            lines.append(f"**{measurement.title}** {measurement.note} `{command}`\n")
    return "\n".join(lines)


def table(readings: Mapping[str, Mapping[str, Any]]) -> Iterator[list[Any]]:
    """Yield the lines of the table of all rows, its heading first."""
    yield ["language model", "measurement", "quantity", "ours", "n", "unit", "verdict", "published", "version", "date"]
    for llm, found in readings.items():
        for name, one in found.items():
            for row in map(_filled, one["rows"]):
                cells = (row["quantity"], row["ours"], row["n"], row["unit"], row["verdict"], row["published"])
                yield [llm, name, *cells, one["version"], one["date"]]


def _filled(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"verdict": "", "published": "", **row}


def _when(name: str, one: Mapping[str, Any]) -> str:
    changed = MEASUREMENTS[name].changed_since(one["version"])
    return f"({one['version']}, {one['date']}{f'; prompts changed in {changed}' if changed else ''})"


def _titled(llm: str) -> str:
    return f"{llm} ({LOCAL_LLMS[llm]})" if llm in LOCAL_LLMS else llm


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and store the rows and the runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(MEASUREMENTS)}; default: all")
    parser.add_argument("--llm", default="local", help="language model")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--logs", type=Path, help="folder of the run logs")
    how.add_argument("--recorded", action="store_true", help="judge the runs that are kept again; nothing is asked")
    parser.add_argument("--seeds", type=int, help="number of seeds; by default that of each measurement")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(MEASUREMENTS)):
        parser.error(f"nothing is called {', '.join(unknown)}; there are: {', '.join(MEASUREMENTS)}")
    kept = load().get(options.llm, {})
    for name in options.names or (kept if options.recorded else MEASUREMENTS):
        with tempfile.TemporaryDirectory() as draft:
            if options.recorded:
                rows = replayed(options.llm, name, Path(draft))
                about = {key: value for key, value in kept[name].items() if key != "rows"}
            else:
                rows, about = _measured(options.llm, name, options.logs, options.seeds)
        readings = load()
        readings.setdefault(options.llm, {})[name] = {**about, "rows": rows}
        READINGS.write_text(json.dumps(readings, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        for row in map(_filled, rows):
            print(f"{row['quantity']}: {row['ours']} (n = {row['n']} {row['unit']}) {row['verdict']}", flush=True)


def _measured(llm: str, name: str, logs: Path, seeds: int | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Measure, and keep the runs."""
    folder = logs / llm.replace(":", "-") / name
    folder.mkdir(parents=True, exist_ok=True)
    rows = plain(MEASUREMENTS[name].rows(llm, folder, seeds, False))
    if MEASUREMENTS[name].ships_logs:
        keep(llm, name, folder)
    about = {"date": datetime.now(UTC).date().isoformat(), "version": mesa_llm.__version__}
    return rows, about if seeds is None else {**about, "seeds": seeds}


if __name__ == "__main__":
    main()
