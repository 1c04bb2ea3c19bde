"""Function calls that a live decision takes, from the prompt to its line in the log, whatever the load on the machine.

Agents pay into a pot at a local endpoint, as in `overhead.py`. cProfile counts the calls of functions in Python and in
C, over all threads; what a step costs besides its decisions is spread over them. The run fails if there are more than
stated. (The module `pstats` shows 16 fewer, as it takes all constructors that dataclasses generate for one function.)
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import sysconfig
import tempfile
from collections import Counter, defaultdict
from cProfile import Profile
from operator import itemgetter
from pathlib import Path

from harness import ROOT, last_line
from measurement import Measurement
from mock_server import UNLIMITED, mock_server
from thresholds import figure_text, table
from workload_ours import WARM_UP, pot

AGENTS, STEPS = 100, 5
"""Number of agents, and of counted steps."""

MAX_CALLS = 700
"""Maximum number of function calls a decision, with CPython 3.12."""

TOLERANCE = 0.01
"""Share by which another release of Python or of a dependency may exceed the maximum."""

STANDARD_LIBRARY = sysconfig.get_path("stdlib") + os.sep
"""Folder of Python's own modules."""


def count(agents: int = AGENTS, steps: int = STEPS) -> dict[tuple[str, str], float]:
    """Count the calls of live decisions, with everything recorded in a file.

    Args:
        agents: Number of agents, each of which decides once a step.
        steps: Number of counted steps, after a warm-up.

    Returns:
        File and function → calls a decision.

    Raises:
        SystemExit: If a decision fails, which takes other calls.
    """
    profile = Profile()
    with mock_server(UNLIMITED) as base, tempfile.TemporaryDirectory() as folder:
        model = pot(Measurement("steps", base=base, agents=agents), folder)
        for _ in range(WARM_UP):
            model.step()
        profile.enable()
        for _ in range(steps):
            model.step()
        profile.disable()
        failures = model.usage.failures
        model.close()
    if failures:
        raise SystemExit(f"{failures} decisions failed, which takes other calls; see the log above")
    counts: Counter[tuple[str, str]] = Counter()
    for entry in profile.getstats():
        code = entry.code
        function = ("in C", code) if isinstance(code, str) else (code.co_filename, code.co_qualname)
        counts[function] += entry.callcount
    return {function: number / agents / steps for function, number in counts.items()}


def calls_a_decision() -> float:
    """Count the calls of a decision in a fresh process, where no other thread makes any."""
    return last_line([sys.executable, str(Path(__file__)), "--json"], 120)["calls"]


def main() -> None:
    """Count, and print by file or by function."""
    parser = argparse.ArgumentParser(description="Count the function calls of a live decision.")
    parser.add_argument("--functions", action="store_true", help="list functions, in place of files")
    parser.add_argument("--json", action="store_true", help="print the total alone, as JSON")
    options = parser.parse_args()
    counts = count()
    total = sum(counts.values())
    if options.json:
        print(json.dumps({"calls": total}))
        return
    parts: defaultdict[str, float] = defaultdict(float)
    for (file, function), number in counts.items():
        place = file.removeprefix(f"{ROOT}{os.sep}").removeprefix(STANDARD_LIBRARY).rpartition("site-packages/")[2]
        parts[f"{place} {function}" if options.functions else place] += number
    rows = [
        [name, figure_text(number)]
        for name, number in sorted(parts.items(), key=itemgetter(1), reverse=True)
        if number >= 0.1
    ]
    print(table(["function" if options.functions else "file", "calls a decision"], rows))
    print(f"\n{total:.1f} calls a decision, of {MAX_CALLS} at most; Python {sys.version.split()[0]}.")
    if total > MAX_CALLS * (1 + TOLERANCE):
        sys.exit(1)


if __name__ == "__main__":
    main()
