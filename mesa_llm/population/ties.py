"""Ties between users, by their names in a file, and what is said about them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.tables import folded
from mesa_llm.text import counted

NODE_NAMES = ("id", "user_id", "username", "user_name", "name", "label", "Label")
"""Attributes of nodes that may name a user."""

WEIGHTS = frozenset(("weight", "weights", "value", "strength", "sign", "rating"))
"""Folded names of the weight of a tie."""

MAX_FOLLOWS = 10_000_000
"""Maximum number of follows in a file."""


@dataclass(slots=True)
class TieList:
    """Ties between users, by their names in a file."""

    names: dict[str, int] = field(default_factory=dict[str, int])
    """Name → its code."""

    codes: array[int] = field(default_factory=lambda: array("q"))
    """Codes of follower and followee, alternating."""

    lines: array[int] = field(default_factory=lambda: array("q"))
    """Line of each follow; -1 if the format has no lines."""

    labels: Sequence[Mapping[str, str]] = ()
    """Alternative names of users: name in the file → other name."""

    n_mutual: int = 0
    """Number of ties without a direction."""

    n_absent: int = 0
    """Number of ties left out because their weight is 0."""

    n_negative: int = 0
    """Number of ties left out because their weight is below 0."""

    has_weights: bool = False
    """Whether a weight is neither 0 nor 1."""

    notes: list[str] = field(default_factory=list[str])
    """What else is to be said."""

    def add(self, follower: str, followee: str, line: int = -1, *, weight: Any = None, is_mutual: bool = False) -> None:
        """Add a tie, unless its weight is 0 or below.

        Raises:
            ConfigError: If there are too many.
        """
        if weight is not None and (number := weight_of(weight)) is not None:
            self.n_absent += number == 0
            self.n_negative += number < 0
            self.has_weights = self.has_weights or number not in (-1, 0, 1)
            if number <= 0:
                return
        self.n_mutual += is_mutual
        both = is_mutual and follower != followee
        for pair in ((follower, followee), (followee, follower))[: 1 + both]:
            if len(self.lines) >= MAX_FOLLOWS:
                raise ConfigError(f"found more than {MAX_FOLLOWS:,} follows in one file; split the file")
            for name in pair:
                self.codes.append(self.names.setdefault(name, len(self.names)))
            self.lines.append(line)

    def said(self) -> list[str]:
        """Return what is to be said about the ties, for people to read."""
        found = [
            f"{counted(self.n_mutual, 'tie')} without a direction: each counts both ways" if self.n_mutual else "",
            f"left out {counted(self.n_absent, 'tie')} of weight 0" if self.n_absent else "",
            f"left out {counted(self.n_negative, 'tie')} of a weight below 0" if self.n_negative else "",
            "weights are not used: a tie of any weight above 0 is a follow" if self.has_weights else "",
        ]
        return [*self.notes, *filter(None, found)]


def weight_of(cell: Any) -> float | None:
    """Return a weight as a number; None if it is none."""
    try:
        number = float(str(cell).strip().replace("−", "-"))
    except ValueError:
        return None
    return None if math.isnan(number) else number


def weight_in(attributes: Mapping[str, Any]) -> Any:
    return next((value for name, value in attributes.items() if folded(name) in WEIGHTS), None)


def graph_ties(graph: Any) -> TieList:
    """Return the edges of a networkx graph."""
    ties = TieList()
    is_mutual = not graph.is_directed()
    for follower, followee, attributes in graph.edges(data=True):
        ties.add(str(follower), str(followee), weight=weight_in(attributes), is_mutual=is_mutual)
    ties.labels = [
        {str(node): str(label).strip() for node, label in graph.nodes(data=name) if label is not None}
        for name in NODE_NAMES
    ]
    return ties


def matrix_ties(matrix: Any, names: Sequence[str] | None = None) -> TieList:
    """Return the ties of a square matrix, in which the row follows the column.

    Args:
        matrix: Weights; 0 is no tie. An array of NumPy or SciPy.
        names: Names of rows and columns; None: their numbers, from 0.

    Raises:
        ValueError: If it is not square, or holds no numbers.
    """
    import numpy as np
    from scipy.sparse import coo_array

    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " × ".join(map(str, matrix.shape))
        raise ValueError(f"it is {shape}, a network of two kinds of nodes; wanted as many rows as columns")
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"it holds {matrix.dtype}; wanted numbers")
    cells = coo_array(matrix)
    if cells.nnz > MAX_FOLLOWS:
        raise ConfigError(f"found more than {MAX_FOLLOWS:,} follows in one file; split the file")
    n = int(matrix.shape[0])
    own_names = list(map(str, range(n))) if names is None else list(names)
    ties = TieList()
    rows, columns = cells.coords
    if n > 2 and cells.nnz >= n - 1 and (bool((rows < columns).all()) or bool((rows > columns).all())):
        ties.notes.append("all ties stand on one side of the diagonal; if they have no direction, fill in the other")
    for row, column, weight in zip(*(part.tolist() for part in (*cells.coords, np.asarray(cells.data))), strict=True):
        ties.add(own_names[row], own_names[column], weight=int(weight) if isinstance(weight, bool) else weight)
    return ties


def square_of(rows: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[str] | None] | None:
    """Return the cells and the names of a matrix in a table, with or without names; None if it is none.

    Args:
        rows: All rows of the table, the first one too.
    """
    width = len(rows[0])
    cells = [[cell.strip() for cell in row] for row in rows]
    head, body = cells[0], cells[1:]
    inner = [row[1:] for row in body]
    firsts = [row[0] for row in body if row]
    for names in (head[1:], head):  # with an empty corner, or without, as R writes it
        if firsts != names and len(set(firsts)) == len(firsts) and sorted(firsts) == sorted(names):
            named = dict(zip(firsts, inner, strict=True))
            firsts, inner = names, [named[name] for name in names]
        if firsts == names and _are_numbers(inner, len(names)) and (names is head or weight_of(head[0]) is None):
            return inner, names
    if len(cells) == width and all(head) and _are_numbers(cells, width):
        has_no_loops = all(weight_of(cells[index][index]) == 0 for index in range(width))
        return (cells, None) if width > 3 or (width == 3 and has_no_loops) else None
    is_named = width > 3 or (width > 2 and all(weight_of(name) is None for name in head))
    if len(body) == width and is_named and len(set(head)) == width and _are_numbers(body, width):
        return body, head
    return None


def _are_numbers(cells: Iterable[Sequence[str]], width: int) -> bool:
    return all(len(row) == width and all(not cell or weight_of(cell) is not None for cell in row) for row in cells)
