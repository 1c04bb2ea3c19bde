"""Digit matrices: generate, write, solve and score them.

Source:
    Webb, Holyoak & Lu (2023), Emergent analogical reasoning in large language models, Nature Human Behaviour 7.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, permutations
from pathlib import Path
from typing import Any

from mesa_llm_models.emergent_analogies.items.originals import MATRICES, MATRICES_OF_MORE_RULES, read_pickled

Cell = tuple[int, ...]
"""Digits of a cell, in order; `BLANK` for an empty slot."""

Grid = tuple[tuple[int, ...], ...]
"""One digit for each of 3 × 3 cells."""

BLANK = -1
"""An empty slot of a cell."""

ORIGINAL_SHA256 = frozenset({MATRICES.sha256, MATRICES_OF_MORE_RULES.sha256})
"""Digests of the original's two files of matrices."""


@dataclass(frozen=True)
class Matrix:
    """One problem: 3 × 3 cells of digits, the last of which is asked for."""

    kind: str
    """Its type, such as `two_rule_comb3` or `AND_permuted`."""

    cells: tuple[tuple[Cell, ...], ...]
    """All nine cells, by row, the last included."""

    is_set: bool = False
    """Whether digits count in any order, as in all logic problems."""

    @property
    def key(self) -> Cell:
        """The digits of the last cell, without empty slots."""
        return tuple(digit for digit in self.cells[2][2] if digit != BLANK)

    @property
    def category(self) -> str:
        """Group of its type: `one_rule` … `five_rule`, or `logic`."""
        return category_of(self.kind)

    @property
    def text(self) -> str:
        """Text of the matrix, up to the bracket that opens the last cell."""
        rows = [" ".join(f"[{written(cell)}]" for cell in row) for row in self.cells[:2]]
        last = " ".join(f"[{written(cell)}]" for cell in self.cells[2][:2])
        return "\n".join([*rows, f"{last} ["])

    @property
    def chance(self) -> float:
        """Probability that as many random digits as the key has are right."""
        n = len(self.key)
        ways = math.factorial(n) if self.is_set else 1
        return ways / 10**n


def written(cell: Cell) -> str:
    """Write a cell: one space between digits, and a space for an empty slot."""
    return " ".join(" " if digit == BLANK else str(digit) for digit in cell)


def read_cell(text: str) -> list[int] | None:
    """Read a continuation as the original does: digits up to the first `]`.

    Args:
        text: The continuation. Spaces are skipped, and each digit counts by itself, in any script.

    Returns:
        The digits; None if there is any other character among them.
    """
    digits: list[int] = []
    for character in text:
        if character == "]":
            break
        if character == " ":
            continue
        if not character.isdecimal():
            return None
        digits.append(int(character))
    return digits


def is_right(text: str, key: Sequence[int], is_set: bool) -> bool:
    """Check a continuation against the key: in order, or in any order for a set."""
    digits = read_cell(text)
    if digits is None:
        return False
    return sorted(digits) == sorted(key) if is_set else digits == list(key)


def category_of(kind: str) -> str:
    """Return the group of a type of matrix."""
    if kind in ONE_RULE:
        return "one_rule"
    match = re.match(r"(two|three|four|five)_rule", kind)
    return f"{match[1]}_rule" if match else "logic"


# -- rules of one digit


def _rows(a: int, b: int, c: int) -> Grid:
    return (a, a, a), (b, b, b), (c, c, c)


def _columns(a: int, b: int, c: int) -> Grid:
    return ((a, b, c),) * 3


def _left(a: int, b: int, c: int) -> Grid:
    return (a, b, c), (b, c, a), (c, a, b)


def _right(a: int, b: int, c: int) -> Grid:
    return (a, b, c), (c, a, b), (b, c, a)


def _progression(start: int, step: int) -> Grid:
    return tuple(tuple(start + step * (row + column) for column in range(3)) for row in range(3))


PROGRESSIONS: Mapping[int, tuple[Grid, ...]] = {
    size: tuple(
        _progression(start, step) for step in (size, -size) for start in range(10) if 0 <= start + 4 * step <= 9
    )
    for size in (1, 2)
}
"""Size of the step → all progressions: twelve of size 1, four of size 2."""

_OF_THREE: Mapping[str, Callable[[int, int, int], Grid]] = {
    "row_constant": _rows,
    "col_constant": _columns,
    "dist3_diag1": _left,
    "dist3_diag2": _right,
}

ONE_RULE = (*_OF_THREE, "prog_size1", "prog_size2")
"""Types with one rule."""

_RULES: Mapping[int, tuple[str, ...]] = {
    0: ("row_constant", "col_constant"),
    1: ("dist3_diag1", "dist3_diag2"),
    2: ("prog_size1", "prog_size2"),
}
"""Rule of a combination → the types that it may take: constant, distribution of three, progression."""

COMBINATIONS: Mapping[str, tuple[int, ...]] = {
    f"{name}_rule_comb{index}": rules
    for name, n in (("two", 2), ("three", 3))
    for index, rules in enumerate(combinations_with_replacement(range(3), n))
}
"""Type with several rules → its rules."""

LOGIC = ("c3_set_union", "c2_set_union", "c1_set_union", "AND", "XOR")
"""Types of logic; each has a second one with the digits shuffled within cells (`_permuted`)."""

KINDS = (*ONE_RULE, *COMBINATIONS, *LOGIC, *(f"{name}_permuted" for name in LOGIC))
"""The 32 types of the first set."""

MANY_RULES = tuple(f"{name}_rule_prob{index}" for name in ("four", "five") for index in range(10))
"""Types of the second set with four and five rules, which are drawn for each type."""

MAX_REPEATS = 10_000
"""Number of draws in a row without a new problem after which a type counts as exhausted."""


def _draw(kind: str, rng: random.Random) -> Grid:
    if kind in _OF_THREE:
        return _OF_THREE[kind](*rng.sample(range(10), 3))
    return rng.choice(PROGRESSIONS[int(kind[-1])])


def _stack(kind: str, rules: Sequence[int], rng: random.Random) -> Matrix:
    """Stack one grid for each rule, in an order drawn; no two grids are the same."""
    order = rng.choice(list(permutations(rules)))
    grids: list[Grid] = []
    for rule in order:
        grid = _draw(rng.choice(_RULES[rule]), rng)
        while grid in grids:
            grid = _draw(rng.choice(_RULES[rule]), rng)
        grids.append(grid)
    return Matrix(kind, stacked(grids))


def stacked(grids: Sequence[Grid]) -> tuple[tuple[Cell, ...], ...]:
    """Put grids of one digit together into cells of several."""
    return tuple(tuple(tuple(grid[row][column] for grid in grids) for column in range(3)) for row in range(3))


_SLOTS: Mapping[str, tuple[str, ...]] = {
    "c3_set_union": ("0.", "1.", "01", ".2", ".3", "23", "02", "13", "0213"),
    "c2_set_union": (".0", ".01.", "1.", "20", "2013", "13", "2.", "2..3", ".3"),
    "c1_set_union": ("2013", "20", "13", ".01.", ".0", "1.", "2..3", "2.", ".3"),
    "XOR": ("01", "02", "12", "02", "30", "23", "12", "23", "13"),
}
"""Type of logic → the nine cells, as indices into the drawn digits and dots for empty slots."""


def _logic(kind: str, rng: random.Random) -> Matrix:
    """Make a logic problem: half of them with their empty slots, half without; `_permuted` ones are shuffled."""
    name = kind.removesuffix("_permuted")
    digits = rng.sample(range(10), 5)
    is_open = rng.random() < 0.5
    cells = [_slots(name, index, digits) for index in range(9)]
    if not is_open:
        cells = [tuple(digit for digit in cell if digit != BLANK) for cell in cells]
    if kind != name:
        cells = [tuple(rng.sample(cell, len(cell))) for cell in cells]
        if name == "AND":
            cells = _without_shared(cells, digits[1])
    return Matrix(kind, tuple(tuple(cells[row : row + 3]) for row in (0, 3, 6)), is_set=True)


def _slots(name: str, index: int, digits: Sequence[int]) -> Cell:
    if name == "AND":
        first, second = divmod(index, 3)
        return _and_cell(first, second, digits)
    return tuple(BLANK if mark == "." else digits[int(mark)] for mark in _SLOTS[name][index])


def _and_cell(row: int, column: int, digits: Sequence[int]) -> Cell:
    """Return a cell of an `AND` problem: the digits of its column and row, around the digit that all cells share."""
    of_column = (digits[0] if column == 0 else digits[3] if column == 1 else BLANK,)
    of_row = (digits[2] if row == 0 else digits[4] if row == 1 else BLANK,)
    return (*of_column, digits[1], *of_row)


def _without_shared(cells: Sequence[Cell], shared: int) -> list[Cell]:
    """Drop the digit that is in all cells, so that the last becomes empty."""
    return [tuple(digit for digit in cell if digit != shared) for cell in cells]


def make_matrices(kind: str, n: int, rng: random.Random) -> list[Matrix]:
    """Make different problems of one type.

    Args:
        kind: One of `KINDS` or `MANY_RULES`.
        n: Number of problems. A type may have fewer, such as `prog_size1` with 12 and `two_rule_comb5` with 240; then
            all of them are made.
        rng: Source of the draws.
    """
    if kind.startswith("prog_size"):
        grids = PROGRESSIONS[int(kind[-1])]
        return [Matrix(kind, stacked([grid])) for grid in rng.sample(grids, min(n, len(grids)))]
    if kind in MANY_RULES:
        n_rules = 4 if kind.startswith("four") else 5
        rules: Sequence[int] = [rng.randrange(3) for _ in range(n_rules)]
    else:
        rules = COMBINATIONS.get(kind, ())
    by_cells: dict[Any, Matrix] = {}
    n_repeats = 0
    while len(by_cells) < n and n_repeats < MAX_REPEATS:
        if rules:
            one = _stack(kind, rules, rng)
        elif kind in ONE_RULE:
            one = Matrix(kind, stacked([_draw(kind, rng)]))
        else:
            one = _logic(kind, rng)
        n_repeats = n_repeats + 1 if one.cells in by_cells else 0
        by_cells.setdefault(one.cells, one)
    return list(by_cells.values())


# -- solving


def solve(matrix: Matrix) -> Cell | None:
    """Find the last cell from the other eight, by the rules alone.

    Returns:
        Its digits, those of a set in ascending order; None if no rule fits.
    """
    if matrix.is_set:
        return _solve_sets([[frozenset(cell) - {BLANK} for cell in row] for row in matrix.cells])
    digits = [_solve_digit(matrix.cells, slot) for slot in range(len(matrix.cells[0][0]))]
    return None if None in digits else tuple(digit for digit in digits if digit is not None)


def _candidates(grid: Sequence[Sequence[int]]) -> Iterator[Grid]:
    (a, b, c), (d, _, _), (g, _, _) = grid
    yield from (_rows(a, d, g), _columns(a, b, c), _left(a, b, c), _right(a, b, c))
    yield from (*PROGRESSIONS[1], *PROGRESSIONS[2])


def _solve_digit(cells: Sequence[Sequence[Cell]], slot: int) -> int | None:
    grid = [
        [cell[slot] if (row, column) != (2, 2) else 0 for column, cell in enumerate(cells[row])] for row in range(3)
    ]
    for one in _candidates(grid):
        if all(one[row][column] == grid[row][column] for row in range(3) for column in range(3) if row + column < 4):
            return one[2][2]
    return None


Digits = frozenset[int]

_FITS: tuple[tuple[Callable[[Digits, Digits, Digits], bool], Callable[[Digits, Digits], Digits]], ...] = (
    (lambda a, b, c: c == a | b, lambda a, b: a | b),
    (lambda a, b, c: b == a | c and not a & c, lambda a, b: b - a),
    (lambda a, b, c: a == b | c and not b & c, lambda a, b: a - b),
    (lambda a, b, c: c == a & b, lambda a, b: a & b),
    (lambda a, b, c: c == a ^ b, lambda a, b: a ^ b),
)
"""Relation of three sets, with the third set computed from the first two."""


def _solve_sets(rows: Sequence[Sequence[Digits]]) -> Cell | None:
    columns = [[row[index] for row in rows] for index in range(2)]
    for fits, third in _FITS:
        if all(fits(*line) for line in (*rows[:2], *columns)):
            return tuple(sorted(third(rows[2][0], rows[2][1])))
    return None


# -- the original's problems


def load_matrices(path: str | Path, allowed: frozenset[str] = ORIGINAL_SHA256) -> dict[str, list[Matrix]]:
    """Load the original's problems from `all_problems.npz` or `all_problems_1thru5.npz`; see `read_pickled`.

    Args:
        path: The file.
        allowed: SHA-256 digests of the files that may be opened.

    Returns:
        Type → its problems.

    Raises:
        ConfigError: If the file cannot be read, or has another digest.
    """
    kinds = read_pickled(path, allowed)
    return {
        kind: [_stored(kind, cells, bool(stored["perm_invariant"])) for cells in stored["prob"]]
        for kind, stored in kinds.items()
    }


def _stored(kind: str, cells: Any, is_set: bool) -> Matrix:
    rows = tuple(tuple(tuple(int(digit) for digit in cell) for cell in row) for row in cells)
    return Matrix(kind, rows, is_set)
