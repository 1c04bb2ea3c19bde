"""Record the classics anew: `python3 dev.py record schelling`; without names, list the recordings."""

from __future__ import annotations

import argparse

from mesa_llm_models.classics.recordings import CLASSICS


def main() -> None:
    """Record the classics that are named, and list all."""
    parser = argparse.ArgumentParser(prog="dev.py record", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CLASSICS))
    parser.add_argument("--llm", default="local", help="language model of the agents (default: local)")
    arguments = parser.parse_args()
    for name in arguments.names:
        CLASSICS[name].record(arguments.llm)
    for classic in CLASSICS.values():
        size = f"{classic.file.stat().st_size / 1000:.0f} kB" if classic.file.is_file() else "not recorded"
        print(f"{classic.name}: {classic.steps} steps, {size}")


if __name__ == "__main__":
    main()
