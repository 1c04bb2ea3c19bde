"""What sheep and wolves read of their energy, and of the cells around them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mesa_llm.text import counted, noun_for
from mesa_llm_models.classics.people import Traits

STAYED = "You stayed where you were."
"""What came of staying."""

TEMPERS: dict[str, Traits] = {
    "sheep": {
        "temper": {
            "timid": "You are a timid sheep, and would rather go hungry than near a wolf.",
            "bold": "You are a bold sheep, and do not run from every wolf.",
            "greedy": "You are a sheep with a great appetite.",
        },
        "company": {
            "herd": "You like to be where other sheep are.",
            "alone": "You like to graze alone.",
        },
    },
    "wolf": {
        "temper": {
            "patient": "You are a patient wolf, and do not run about for nothing.",
            "restless": "You are a restless wolf, and like to roam.",
            "greedy": "You are a wolf with a great appetite.",
        },
        "company": {
            "pack": "You like to hunt where other wolves are.",
            "alone": "You hunt alone.",
        },
    },
}
"""Kind of an animal → what it is like."""


class Body(NamedTuple):
    """What an animal knows of itself."""

    kind: str
    """Its kind: sheep or wolf."""

    age: int
    """Number of steps that it has lived since it was born, or since the run began."""

    energy: int
    """Number of steps that it can live without food."""

    gain: float
    """Energy that it gains from a meal."""

    n_young: int
    """Number of its young so far."""

    @property
    def is_hungry(self) -> bool:
        """Whether it has less than a meal gives."""
        return self.energy < self.gain


class Cell(NamedTuple):
    """What an animal sees of a cell."""

    name: str
    """Its name."""

    n_sheep: int
    """Number of sheep in it."""

    n_wolves: int
    """Number of wolves in it."""

    regrowth: int
    """Number of steps until its grass has grown."""

    @property
    def text(self) -> str:
        """The cell as text: the animals in it, and whether there is grass to eat."""
        wolves = noun_for(self.n_wolves, "wolf", "wolves")
        return f"{self.name}: {self.n_sheep or 'no'} sheep, {self.n_wolves or 'no'} {wolves}, {self.grass}"

    @property
    def grass(self) -> str:
        """Whether there is grass to eat, or when there will be some."""
        return f"no grass (again in {counted(self.regrowth, 'step')})" if self.regrowth else "grass"


FOOD = {"sheep": "grass", "wolf": "a sheep"}
"""Kind of an animal → what it lives on."""


def observation_text(body: Body, here: Cell, around: Iterable[Cell]) -> str:
    """Write what an animal sees: how long it can live, what is in its cell, and where it can go.

    Args:
        body: What it knows of itself.
        here: Its cell, in which it is counted.
        around: The cells that it can go to.
    """
    young = f" and have had {body.n_young} young" if body.n_young else ""
    age = f"You have lived here for {counted(body.age, 'step')}{young}. " if body.age else ""
    if body.energy:
        food = f"You can live {counted(body.energy, 'step')} without food"
    else:
        food = "You starve in this step unless you eat"
    hungry = "you are hungry" if body.is_hungry else "you are not hungry"
    return "\n".join(
        [
            f"You are a {body.kind}. {age}{food}: {hungry}. A meal of {FOOD[body.kind]} gives you {body.gain:g} more.",
            f"You are at {here.text}. You are {_oneself(body.kind, here)}.",
            "You can stay, or go to:",
            *(f"- {cell.text}" for cell in around),
        ]
    )


def _oneself(kind: str, here: Cell) -> str:
    """Say which of the animals in its own cell an animal is."""
    if kind == "sheep":
        return "that sheep" if here.n_sheep == 1 else "one of those sheep"
    return "that wolf" if here.n_wolves == 1 else "one of those wolves"
