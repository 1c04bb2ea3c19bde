"""Problems: any kind of analogy in one form, with its solution and the probability of a right random answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mesa_llm.questionnaire import Item, Sheet
from mesa_llm_models.emergent_analogies.items import letters, matrices
from mesa_llm_models.emergent_analogies.items.letters import ALPHABET, CONCEPTS, LetterString
from mesa_llm_models.emergent_analogies.items.matrices import BLANK, Cell, Matrix
from mesa_llm_models.emergent_analogies.items.stories import OPTIONS, StoryTrial
from mesa_llm_models.emergent_analogies.items.verbal import Verbal
from mesa_llm_models.emergent_analogies.text import choice_text, verbal_text

Answers = Literal["free", "choice"]
"""Whether the answer is written, or chosen from eight options."""

N_OPTIONS = 8
"""Number of options of a matrix."""


@dataclass(frozen=True)
class Problem:
    """One problem."""

    label: str
    """Its name, unique in a run."""

    kind: str
    """Its type."""

    category: str
    """Its group; accuracies are pooled over the problems of a group."""

    text: str
    """Text of the problem."""

    is_right: Callable[[str], bool]
    """Checks whether an answer, as it was written or chosen, is right."""

    is_readable: Callable[[str], bool]
    """Checks whether an answer can be read; one that cannot is wrong, as in the original."""

    solution: str
    """Answer of the rule twin; empty if it finds no rule."""

    chance: float
    """Probability that a random answer is right: as many random elements as the key has, or a random option."""

    choices: tuple[str, ...] = ()
    """Options; empty: the answer is written."""

    elements: tuple[tuple[str, ...], ...] = ()
    """Choices for each element of a written answer, for solvers that cannot write."""

    def sheet(self, is_bound: bool) -> Sheet:
        """Return the sheet that asks the problem.

        Args:
            is_bound: Whether the solver cannot write free text, and chooses each element of an answer.
        """
        if self.choices or not is_bound:
            return Sheet(self.label, (Item(self.label, self.text, self.choices, self),))
        elements = self.elements or (("",),)
        items = [
            Item(f"{self.label}, {number}", f"element {number}", one, self) for number, one in enumerate(elements, 1)
        ]
        return Sheet(self.label, tuple(items), self.text)


def continuation(text: str) -> str:
    """Return the part of a reply that continues the problem: what follows its last opening bracket, or all of it."""
    return text.strip().rpartition("[")[2]


def of_matrix(label: str, matrix: Matrix, answers: Answers, rng: random.Random) -> Problem:
    """Ask for the last cell of a matrix."""
    last_cell = matrices.solve(matrix)
    solution = "" if last_cell is None else " ".join(map(str, last_cell)) + "]"
    if answers == "choice":
        cells = [matrix.key, *distractors(matrix, rng)]
        rng.shuffle(cells)
        options = tuple(f"[{matrices.written(cell)}]" for cell in cells)
        right = options[cells.index(matrix.key)]
        text = choice_text(matrix.text, options)
        return Problem(
            label, matrix.kind, matrix.category, text, right.__eq__, options.__contains__, right, 1 / N_OPTIONS, options
        )
    return Problem(
        label,
        matrix.kind,
        matrix.category,
        matrix.text,
        lambda text: matrices.is_right(continuation(text), matrix.key, matrix.is_set),
        lambda text: matrices.read_cell(continuation(text)) is not None,
        solution,
        matrix.chance,
        elements=(tuple(map(str, range(10))),) * len(matrix.key),
    )


def distractors(matrix: Matrix, rng: random.Random) -> list[Cell]:
    """Make seven different wrong options from the key and other cells, with digits shifted, shuffled, mixed or drawn.

    Args:
        matrix: The problem. Two options of a set differ in their digits, not only in their order.
        rng: Source of the draws.
    """
    seen = {_same(matrix, matrix.key)}
    cells = [tuple(one for one in cell if one != BLANK) for row in matrix.cells for cell in row]
    options: list[Cell] = []
    while len(options) < N_OPTIONS - 1:
        base = list(rng.choice([matrix.key, matrix.key, *cells, *options]))
        way = rng.randrange(4)
        if way == 0 and base:
            index = rng.randrange(len(base))
            base[index] = min(max(base[index] + rng.choice((-2, -1, 1, 2)), 0), 9)
        elif way == 1:
            rng.shuffle(base)
        elif way == 2 and base:
            base[rng.randrange(len(base))] = rng.choice([one for cell in cells for one in cell])
        elif way == 3 and rng.random() < 0.3:
            base = [rng.randrange(10) for _ in range(max(len(matrix.key), 1))]
        cell = tuple(dict.fromkeys(base)) if matrix.is_set else tuple(base)
        if _same(matrix, cell) not in seen:
            seen.add(_same(matrix, cell))
            options.append(cell)
    return options


def _same(matrix: Matrix, cell: Cell) -> Any:
    return frozenset(cell) if matrix.is_set else cell


def of_letters(label: str, one: LetterString, form: letters.Format) -> Problem:
    """Ask for the second half of a pair of letter strings."""
    if one.kind.startswith("realworld"):
        words = {*one.target, *one.key}
        elements: tuple[str, ...] = next((own for own in CONCEPTS.values() if words <= set(own)), tuple(sorted(words)))
    else:
        elements = tuple(map(str, range(27))) if one.target[0].isdigit() else ALPHABET
    chance = len(elements) ** -len(one.key)
    read: Callable[[str], str] = continuation if form != "sentence" else str
    return Problem(
        label,
        one.kind,
        one.category,
        one.text(form),
        lambda text: letters.is_right(read(text), one.key, form),
        lambda text: bool(text.strip()),
        " ".join((letters.solve(one) or [one.key])[0]),
        chance,
        elements=(elements,) * len(one.key),
    )


def of_verbal(label: str, one: Verbal, rng: random.Random) -> Problem:
    """Ask which of two words completes a verbal analogy, in an order drawn."""
    options = tuple(rng.sample([one.key, one.foil], 2))
    text = verbal_text(one.text, options)
    return Problem(label, one.relation, one.relation, text, one.key.__eq__, options.__contains__, one.key, 0.5, options)


def of_story(label: str, one: StoryTrial) -> Problem:
    """Ask which of two stories is like a first one."""
    chance = 1 / len(OPTIONS)
    return Problem(
        label, one.condition, one.condition, one.text, one.key.__eq__, OPTIONS.__contains__, one.key, chance, OPTIONS
    )


def joined(answers: Sequence[str]) -> str:
    """Join the elements of an answer into the text that would have been written."""
    return " ".join(str(one) for one in answers)
