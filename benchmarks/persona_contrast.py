"""Contrasts between personas, through the prompts of our own models: a regression test of what agents read.

    python benchmarks/persona_contrast.py --llm local:1.5b
    python benchmarks/persona_contrast.py --llm local:FILE.gguf giving cooperation
    python benchmarks/persona_contrast.py --gate --llm local:1.5b            # in words that no prompt was tuned on
    python benchmarks/persona_contrast.py --gate --half A --llm local:1.5b openness lending

A change to a prompt that loses the persona shows here, however much clearer it reads. With the 1.5B model, all
contrasts take about ten minutes of processor time, and each half of the gate about fifteen.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import mesa_llm
from mesa_llm.engine.access import Access
from mesa_llm.experiments.persona import (
    N_SAMPLES,
    ContrastRow,
    contrast_heading,
    contrast_line,
    load_contrasts,
    persona_contrast,
    run_contrasts,
)
from mesa_llm.experiments.persona_gate import HALVES, gate_lines, gate_result, load_gate


def main() -> None:
    """Print the contrasts of a language model, or the table of the gate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    listed = ", ".join(one.name for one in load_contrasts())
    parser.add_argument("names", nargs="*", help=f"contrasts: {listed}; with --gate, its traits and choices")
    parser.add_argument("--llm", default="local", help="language model of the agents")
    parser.add_argument("--gate", action="store_true", help="ask in words that no prompt was tuned on")
    parser.add_argument("--half", action="append", help="A (to look at), B (only decides), or a file; else both")
    parser.add_argument("--scoring", choices=["probabilities", "replies"], help="probabilities, if there are any")
    parser.add_argument("--samples", type=int, default=N_SAMPLES, help="replies to each question, where sampled")
    parser.add_argument("--folder", type=Path, help="folder of the run logs")
    parser.add_argument("--replay", action="store_true", help="judge the logs in the folder again, and ask nothing")
    parser.add_argument("--api-base", help="base URL of the endpoint")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    start_s = sum(os.times()[:2]), time.perf_counter()
    _print_gate(given) if given.gate or given.half else _print_contrasts(given)
    cpu_s, wall_s = sum(os.times()[:2]) - start_s[0], time.perf_counter() - start_s[1]
    if not given.json:
        print(f"\n{given.llm}: {cpu_s:.0f} s of processor time, {wall_s:.0f} s in all.")


def _print_contrasts(given: argparse.Namespace) -> None:
    """Print the contrasts of the prompts' own words."""
    if not given.json:
        print(contrast_heading())
    rows = persona_contrast(
        given.llm,
        given.names or None,
        scoring=given.scoring,
        samples=given.samples,
        folder=given.folder,
        access=Access(api_base=given.api_base),
        report=None if given.json else lambda row: print(contrast_line(row), flush=True),
        replays=given.replay,
    )
    if given.json:
        print(json.dumps([row.written for row in rows]))


def _print_gate(given: argparse.Namespace) -> None:
    """Print each half of the gate: wording by trait and by choice."""
    results: list[dict[str, object]] = []
    for half in given.half or HALVES:
        gate = load_gate(half)
        rows = run_contrasts(
            given.llm,
            gate.contrasts(given.names or None),
            scoring=given.scoring,
            samples=given.samples,
            folder=None if given.folder is None else given.folder / gate.half,
            access=Access(api_base=given.api_base),
            replays=given.replay,
        )
        result = gate_result(gate, rows)
        results.append(result.written)
        if not given.json:
            print("\n".join(gate_lines(result)))
            print(f"{given.llm}, {_method(rows)}, mesa_llm {mesa_llm.__version__}.\n", flush=True)
    if given.json:
        print(json.dumps(results))


def _method(rows: list[ContrastRow]) -> str:
    samples = max((row.samples for row in rows), default=0)
    return f"{samples} replies to each question" if samples else "probabilities of all answers"


if __name__ == "__main__":
    main()
