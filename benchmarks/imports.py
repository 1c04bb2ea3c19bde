"""Cost of importing this project, Mesa alone, and the other package."""

from __future__ import annotations

from statistics import median
from typing import Any

from goals import Goal
from sides import OURS, NotRun, Side

HEAVY = ("litellm", "solara", "matplotlib", "xllamacpp")
"""Packages that an import must not load."""

START = "pass"
MESA = "import mesa"
OWN = "import mesa_llm"
USED = "from mesa_llm import LLMAgent, LLMModel"
PEERS = "from mesa_llm.llm_agent import LLMAgent"


def measure_imports(peer: Side | None, rounds: int) -> dict[str, Any]:
    """Import in fresh processes, one after the other, several times.

    Returns:
        Statement → median and minimum of processor seconds, without those of starting Python; and what heavy
        packages this project loaded.
    """
    jobs = {START: OURS, MESA: OURS, OWN: OURS, USED: OURS} | ({PEERS: peer} if peer is not None else {})
    found: dict[str, list[float]] = {statement: [] for statement in jobs}
    heavy: set[str] = set()
    for number in range(rounds + 1):  # the first one compiles
        for statement, side in jobs.items():
            try:
                reading = side.cpu_s(statement)
            except NotRun:
                continue
            if number:
                found[statement].append(reading["cpu_s"])
            if side is OURS:
                heavy.update(name for name in HEAVY if name in reading["modules"])
    start = {kind.__name__: kind(found[START]) for kind in (median, min)}
    figures: dict[str, Any] = {
        statement: {kind.__name__: max(0.0, kind(times) - start[kind.__name__]) for kind in (median, min)}
        for statement, times in found.items()
        if times and statement != START
    }
    return {"seconds": figures, "heavy": sorted(heavy)}


def import_goals(reading: dict[str, Any]) -> list[Goal]:
    """Compare the readings with the goals."""
    seconds = {statement: figures["median"] for statement, figures in reading["seconds"].items()}
    wanted = [
        Goal("`import mesa_llm`, CPU relative to `import mesa`", seconds[OWN] / seconds[MESA], 1.1, "×"),
        Goal(f"of {', '.join(HEAVY)}, loaded by the imports", len(reading["heavy"]), 0, "packages"),
    ]
    ready = seconds[PEERS] / seconds[USED] if PEERS in seconds else None
    return [*wanted, Goal("import of LLMAgent and LLMModel, less CPU than upstream's agent", ready, 3, "×", True)]
