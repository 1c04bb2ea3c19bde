"""Contrasts between personas, through the prompts of our own models: a regression test of what agents read.

    python benchmarks/persona_contrast.py --llm local:1.5b
    python benchmarks/persona_contrast.py --llm local:FILE.gguf giving cooperation

A change to a prompt that loses the persona shows here, however much clearer it reads. With the 1.5B model, all
contrasts take about ten minutes of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from mesa_llm.engine.access import Access
from mesa_llm.experiments.persona import N_SAMPLES, contrast_heading, contrast_line, load_contrasts, persona_contrast


def main() -> None:
    """Print the contrasts of a language model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"contrasts: {', '.join(one.name for one in load_contrasts())}")
    parser.add_argument("--llm", default="local", help="language model of the agents")
    parser.add_argument("--scoring", choices=["probabilities", "replies"], help="probabilities, if there are any")
    parser.add_argument("--samples", type=int, default=N_SAMPLES, help="replies to each question, where sampled")
    parser.add_argument("--folder", type=Path, help="folder of the run logs")
    parser.add_argument("--api-base", help="base URL of the endpoint")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    if not given.json:
        print(contrast_heading())
    start_s = sum(os.times()[:2]), time.perf_counter()
    rows = persona_contrast(
        given.llm,
        given.names or None,
        scoring=given.scoring,
        samples=given.samples,
        folder=given.folder,
        access=Access(api_base=given.api_base),
        report=None if given.json else lambda row: print(contrast_line(row), flush=True),
    )
    cpu_s, wall_s = sum(os.times()[:2]) - start_s[0], time.perf_counter() - start_s[1]
    if given.json:
        print(json.dumps([row.written for row in rows]))
        return
    print(f"\n{given.llm}: {cpu_s:.0f} s of processor time, {wall_s:.0f} s in all.")


if __name__ == "__main__":
    main()
