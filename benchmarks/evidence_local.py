"""Measure what local language models do, for the first section of `docs/evidence.md`.

    python benchmarks/evidence_local.py --llm local:1.5b --logs runs/evidence             # all measurements: hours
    python benchmarks/evidence_local.py --llm local --logs runs/evidence persona_form     # one of them

Each measurement keeps its run logs, so that it goes on where it was stopped, and stores its rows in
`evidence_local.json`; `python3 dev.py evidence --page` writes the page from them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evidence_local_measured import MEASUREMENTS

import mesa_llm
from mesa_llm.experiments.runs.recordings import LOCAL_LLMS

READINGS = Path(__file__).with_name("evidence_local.json")


def load() -> dict[str, dict[str, Any]]:
    """Load what was measured: language model → measurement → rows, date, version and logs."""
    return json.loads(READINGS.read_text(encoding="utf-8")) if READINGS.exists() else {}


def summary(readings: Mapping[str, Mapping[str, Any]]) -> str:
    """Write what the measurements show, a list for each language model."""
    lines: list[str] = []
    for llm, found in readings.items():
        lines.append(f"- **{_titled(llm)}**")
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
        lines.append(f"### {_titled(llm)}\n")
        for name, measurement in MEASUREMENTS.items():
            if name not in found:
                continue
            one = found[name]
            when = f"{one['date']}, version {one['version']}"
            lines += [
                f"**{measurement.title}** {measurement.note} `{measurement.command_for(llm)}` ({when}).\n",
                "| quantity | ours | n | verdict | published, other models |",
                "|---|---|---|---|---|",
                *(_line(row) for row in one["rows"]),
                "",
            ]
        if missing := [one for name, one in MEASUREMENTS.items() if name not in found]:
            lines += ["Not measured with it:\n", *(f"- {one.title} `{one.command_for(llm)}`" for one in missing), ""]
    return "\n".join(lines)


def _titled(llm: str) -> str:
    return f"{llm} ({LOCAL_LLMS[llm]})" if llm in LOCAL_LLMS else llm


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
        given = [{key: value for key, value in asdict(row).items() if value is not None} for row in rows]
        readings.setdefault(options.llm, {})[name] = {**about, "rows": given}
        READINGS.write_text(json.dumps(readings, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        for row in rows:
            print(f"{row.quantity}: {row.ours} (n = {row.n}) {row.verdict}", flush=True)


if __name__ == "__main__":
    main()
