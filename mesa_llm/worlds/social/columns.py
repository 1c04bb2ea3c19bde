"""Numbers about posts and users as growing arrays, beside the tables that hold everything."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


class Columns:
    """Integer columns of equal length that grow at the end."""

    def __init__(self, *names: str, capacity: int = 1024) -> None:
        """Make empty columns of these names."""
        self._place = {name: place for place, name in enumerate(names)}
        self._block = np.zeros((len(names), capacity), dtype=np.int64)
        self._length = 0

    def __len__(self) -> int:
        """Count the rows."""
        return self._length

    def __getitem__(self, name: str) -> IntArray:
        """Give a column, shape `(rows,)`; writing to it writes to the columns."""
        return self._block[self._place[name], : self._length]

    def append(self, *values: int) -> int:
        """Add a row, its values in the order of the columns; give its number."""
        row = self._length
        self.grow(row + 1)
        self._block[:, row] = values
        return row

    def grow(self, length: int) -> None:
        """Make the columns at least this long; new rows hold zeros."""
        if length > self._block.shape[1]:
            larger = np.zeros((len(self._place), max(length, 2 * self._block.shape[1])), dtype=np.int64)
            larger[:, : self._length] = self._block[:, : self._length]
            self._block = larger
        self._length = max(self._length, length)

    def get(self, name: str, row: int) -> int:
        """Give one number."""
        return int(self._block[self._place[name], row])

    def add(self, name: str, row: int, change: int) -> None:
        """Add to one number."""
        self._block[self._place[name], row] += change
