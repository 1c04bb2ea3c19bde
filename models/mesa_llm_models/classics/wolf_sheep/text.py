"""What sheep and wolves read of their energy, and of the cells around them."""

from __future__ import annotations

from collections.abc import Iterable

STAYED = "You stayed."
"""What came of staying."""


def observation_text(kind: str, energy: int, here: str, cells: Iterable[str]) -> str:
    """Write what an animal sees.

    Args:
        kind: Its kind: sheep or wolf.
        energy: Number of steps that it can live without food.
        here: Description of its cell, as `cell_text` writes it.
        cells: Descriptions of the cells that it can go to.
    """
    steps = "step" if energy == 1 else "steps"
    listing = "\n".join(f"- {cell}" for cell in cells)
    return (
        f"You are a {kind}, and can live {energy} {steps} without food. You are at {here}.\nYou can go to:\n{listing}"
    )


def cell_text(name: str, n_sheep: int, n_wolves: int, *, has_grass: bool) -> str:
    """Describe a cell: the animals in it, and whether there is grass to eat."""
    animals = f"{n_sheep or 'no'} sheep, {n_wolves or 'no'} {'wolf' if n_wolves == 1 else 'wolves'}"
    return f"{name}: {animals}, {'grass' if has_grass else 'no grass'}"
