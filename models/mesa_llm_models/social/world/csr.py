"""Compact stores of a social world's numbers: columns, lists of lists, follows, votes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

TAIL_SHARE = 0.05
"""Share of recent changes at which they are merged into the compact arrays."""

NO_VOTES: Mapping[int, int] = MappingProxyType({})
"""Votes of a user without votes."""

MIN_TAIL = 4096
"""Number of recent changes below which nothing is merged."""


class Columns:
    """Integer columns of equal length that grow at the end."""

    def __init__(self, capacity: int = 1024, **kinds: npt.DTypeLike) -> None:
        """Create empty columns.

        Args:
            capacity: Initial capacity, in rows.
            **kinds: Name of a column → its integer type.
        """
        self._arrays: dict[str, npt.NDArray[Any]] = {name: np.zeros(capacity, kind) for name, kind in kinds.items()}
        self._capacity = capacity
        self._length = 0

    def __len__(self) -> int:
        """Count the rows."""
        return self._length

    def __getitem__(self, name: str) -> IntArray:
        """Return a column, shape `(rows,)`. Writing to it changes the columns."""
        return self._arrays[name][: self._length]

    def append(self, *values: int) -> int:
        """Add a row, with values in column order. Return its index."""
        row = self._length
        self.grow(row + 1)
        for array, value in zip(self._arrays.values(), values, strict=True):
            array[row] = value
        return row

    def grow(self, length: int) -> None:
        """Grow the columns to at least this length, with zeros in new rows."""
        if length > self._capacity:
            self._capacity = max(length, self._capacity + self._capacity // 2)
            for name, array in self._arrays.items():
                larger = np.zeros(self._capacity, array.dtype)
                larger[: self._length] = array[: self._length]
                self._arrays[name] = larger
        self._length = max(self._length, length)

    def get(self, name: str, row: int) -> int:
        """Return one number."""
        return int(self._arrays[name][row])

    def some(self, ids: Sequence[int], names: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """Return the values of some columns for ids; id n is in row n - 1."""
        indices = np.array(ids, dtype=np.int64) - 1
        return zip(*(self._arrays[name][indices].tolist() for name in names), strict=True)

    def put(self, name: str, row: int, value: int) -> None:
        """Set one number."""
        self._arrays[name][row] = value

    def add(self, name: str, row: int, change: int) -> None:
        """Add to one number."""
        self._arrays[name][row] += change


@dataclass(frozen=True, slots=True)
class Ragged:
    """Lists of integers of different lengths, concatenated."""

    values: IntArray
    """All lists, concatenated."""

    bounds: IntArray
    """Start of each list, and end of the last one; shape `(lists + 1,)`."""

    @classmethod
    def of(cls, lists: Iterable[Sequence[int] | IntArray]) -> Ragged:
        """Concatenate lists."""
        arrays = [np.asarray(numbers, dtype=np.int64) for numbers in lists]
        bounds = np.zeros(len(arrays) + 1, dtype=np.int64)
        np.cumsum([len(array) for array in arrays], out=bounds[1:])
        return cls(np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int64), bounds)

    @classmethod
    def by_owner(cls, owners: IntArray, values: IntArray, n: int) -> Ragged:
        """Make lists from values sorted by owner.

        Args:
            owners: Index of each value's list, non-decreasing.
            values: The values.
            n: Number of lists.
        """
        return cls(values, np.searchsorted(owners, np.arange(n + 1)))

    def __len__(self) -> int:
        """Count the lists."""
        return len(self.bounds) - 1

    def __getitem__(self, index: int) -> IntArray:
        """Return one list."""
        return self.values[self.bounds[index] : self.bounds[index + 1]]

    @property
    def lengths(self) -> IntArray:
        """Length of each list."""
        return np.diff(self.bounds)

    @property
    def owners(self) -> IntArray:
        """Index of the list of each value."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def only(self, is_kept: BoolArray) -> Ragged:
        """Keep the values selected by a mask."""
        kept = np.zeros(len(self.values) + 1, dtype=np.int64)
        np.cumsum(is_kept, out=kept[1:])
        return Ragged(self.values[is_kept], kept[self.bounds])

    def head(self, size: int) -> Ragged:
        """Keep the first values of each list."""
        if not len(self.values) or int(self.lengths.max(initial=0)) <= size:
            return self
        return self.only(np.arange(len(self.values)) - np.repeat(self.bounds[:-1], self.lengths) < size)

    def at(self, indices: IntArray) -> Ragged:
        """Return some of the lists, in the given order. Indices may repeat."""
        return slices(self.values, self.bounds[indices], self.bounds[indices + 1])

    def holds(self, values: IntArray) -> BoolArray:
        """Check which lists contain which values, shape `(lists, values)`."""
        distinct, positions = np.unique(values, return_inverse=True)
        matrix = np.zeros((len(self), len(distinct)), dtype=np.bool_)
        if len(distinct) and len(self.values):
            nearest = np.minimum(np.searchsorted(distinct, self.values), len(distinct) - 1)
            is_hit = distinct[nearest] == self.values
            matrix[self.owners[is_hit], nearest[is_hit]] = True
        return matrix[:, positions.reshape(-1)]


def slices(values: IntArray, starts: IntArray, ends: IntArray) -> Ragged:
    """Cut slices out of an array.

    Args:
        values: The array.
        starts: Start of each slice.
        ends: End of each slice, exclusive.
    """
    lengths = ends - starts
    bounds = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return Ragged(values[np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], lengths)], bounds)


def compressed(keys: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Sort positions by key, and find where each key begins.

    Args:
        keys: Numbers from 0 to n - 1.
        n: Number of keys.

    Returns:
        The positions, increasing within each key; and the bounds of the keys, shape `(n + 1,)`.
    """
    bounds = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=n), out=bounds[1:])
    return np.argsort(keys, kind="stable").astype(np.int32), bounds


class FollowMatrix:
    """Follows: one sorted list of followees per user, in compressed rows with a tail of recent changes.

    Compressed rows take four bytes per follow and eight per user. Later follows and unfollows are in the tail, which is
    merged when it exceeds `TAIL_SHARE` of the rows.
    """

    def __init__(self) -> None:
        """Create a matrix without follows."""
        self._bounds: IntArray = np.zeros(1, dtype=np.int64)
        self._followees: IntArray = np.zeros(0, dtype=np.int32)
        self._added: dict[int, set[int]] = {}
        self._removed: dict[int, set[int]] = {}
        self._n_tail = 0
        self._n = 0

    def __len__(self) -> int:
        """Count the follows."""
        return self._n

    @property
    def n_bytes(self) -> int:
        """Bytes of the compressed rows."""
        return self._bounds.nbytes + self._followees.nbytes

    def has(self, follower: int, followee: int) -> bool:
        """Check whether one user follows another."""
        if follower in self._added and followee in self._added[follower]:
            return True
        return self._is_compressed(follower, followee) and followee not in self._removed.get(follower, ())

    def _is_compressed(self, follower: int, followee: int) -> bool:
        row = self._row(follower)
        index = int(np.searchsorted(row, followee))
        return index < len(row) and int(row[index]) == followee

    def _row(self, follower: int) -> IntArray:
        if follower + 1 >= len(self._bounds):
            return self._followees[:0]
        return self._followees[self._bounds[follower] : self._bounds[follower + 1]]

    def add(self, follower: int, followee: int) -> bool:
        """Let a user follow another. Return whether that is new."""
        if self.has(follower, followee):
            return False
        if not _discard(self._removed, follower, followee):
            self._added.setdefault(follower, set()).add(followee)
        self._count(1)
        return True

    def remove(self, follower: int, followee: int) -> bool:
        """Remove a follow. Return whether it existed."""
        if not self.has(follower, followee):
            return False
        if not _discard(self._added, follower, followee):
            self._removed.setdefault(follower, set()).add(followee)
        self._count(-1)
        return True

    def _count(self, change: int) -> None:
        self._n += change
        self._n_tail += 1
        if self._n_tail > max(MIN_TAIL, TAIL_SHARE * len(self._followees)):
            self._merge(np.zeros(0, dtype=np.int64))

    def add_many(self, pairs: IntArray) -> IntArray:
        """Let many users follow others at once. Return the new follows, sorted, as one number each.

        Args:
            pairs: (follower, followee), shape `(pairs, 2)`.
        """
        codes = codes_of(pairs)
        if not _is_rising(codes):
            codes.sort()
            codes = codes[np.diff(codes, prepend=-1) != 0]
        if self._n and len(codes):
            codes = codes[~np.isin(codes, codes_of(self.edges()), assume_unique=True)]
        self._n += len(codes)
        if len(codes):
            self._merge(codes)
        return codes

    def _merge(self, new: IntArray) -> None:
        """Rebuild the compressed rows with new follows and those in the tail.

        Args:
            new: New follows, sorted, as one number each.
        """
        codes = new
        if self._n_tail or len(self._followees):
            codes = np.concatenate([codes_of(self.edges()), new])
            codes.sort()
        n_users = max(int(codes[-1] >> 32) + 1 if len(codes) else 0, len(self._bounds) - 1)
        self._bounds = np.searchsorted(codes, np.arange(n_users + 1) << 32)
        self._followees = halves(codes, slice(None))[1]
        self._added, self._removed, self._n_tail = {}, {}, 0

    def edges(self) -> IntArray:
        """Return all follows as (follower, followee), sorted, shape `(follows, 2)`."""
        followers = np.repeat(np.arange(len(self._bounds) - 1, dtype=np.int32), np.diff(self._bounds))
        edges = np.stack([followers, self._followees], axis=1)
        if removed := _pairs(self._removed):
            codes = [follower << 32 | followee for follower, followee in removed]
            edges = edges[~np.isin(edges[:, 0].astype(np.int64) << 32 | edges[:, 1], codes)]
        if added := _pairs(self._added):
            edges = np.concatenate([edges, np.array(added, dtype=np.int32)])
            edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
        return edges

    def of(self, follower: int) -> IntArray:
        """Return the ids of the users a user follows, in increasing order."""
        row = self._row(follower)
        if follower not in self._added and follower not in self._removed:
            return row
        followees = set(row.tolist()) - self._removed.get(follower, set()) | self._added.get(follower, set())
        return np.array(sorted(followees), dtype=np.int32)

    def of_many(self, followers: IntArray) -> Ragged:
        """Return the ids of the users each of these users follows, in increasing order."""
        changed = self._added.keys() | self._removed.keys() if self._n_tail else ()
        ids = followers.tolist()
        if len(ids) == 1 or (changed and not changed.isdisjoint(ids) and len(ids) < 8):
            return Ragged.of([self.of(follower) for follower in ids])
        known = np.minimum(followers, len(self._bounds) - 2) if len(self._bounds) > 1 else np.zeros_like(followers)
        if len(self._bounds) < 2:
            compact = Ragged(self._followees, np.zeros(len(ids) + 1, dtype=np.int64))
        else:
            starts, ends = self._bounds[known], self._bounds[known + 1]
            compact = slices(self._followees, starts, np.where(followers == known, ends, starts))
        return self._with_tail(ids, compact) if changed else compact

    def _with_tail(self, ids: list[int], compact: Ragged) -> Ragged:
        """Apply the recent changes of some users to their lists."""
        owners = compact.owners
        codes = owners << 32 | compact.values
        removed = [index << 32 | b for index, a in enumerate(ids) if a in self._removed for b in self._removed[a]]
        added = [index << 32 | b for index, a in enumerate(ids) if a in self._added for b in self._added[a]]
        if removed:
            codes = codes[~np.isin(codes, removed)]
        if added:
            codes = np.sort(np.concatenate([codes, np.array(added, dtype=np.int64)]))
        return Ragged.by_owner(codes >> 32, codes & 0xFFFFFFFF, len(ids)) if removed or added else compact


class Votes:
    """Votes of users: 1 for a like, -1 for a dislike, 0 for a recorded vote that does not count."""

    def __init__(self) -> None:
        """Create a store without votes."""
        self._by_user: dict[int, dict[int, int]] = {}

    def __len__(self) -> int:
        """Count the votes."""
        return sum(map(len, self._by_user.values()))

    def of(self, user_id: int) -> Mapping[int, int]:
        """Return the votes of a user, by target id."""
        return self._by_user.get(user_id, NO_VOTES)

    def cast(self, user_id: int, target_id: int, value: int) -> None:
        """Record a vote, replacing any earlier one."""
        self._by_user.setdefault(user_id, {})[target_id] = value

    def withdraw(self, user_id: int, target_id: int) -> None:
        """Remove a vote."""
        del self._by_user[user_id][target_id]


def _discard(changes: dict[int, set[int]], follower: int, followee: int) -> bool:
    """Undo a change, if there is one. Return whether there was."""
    own = changes.get(follower, set())
    if followee not in own:
        return False
    own.remove(followee)
    if not own:
        del changes[follower]
    return True


def _pairs(changes: Mapping[int, set[int]]) -> list[tuple[int, int]]:
    return [(follower, followee) for follower, own in changes.items() for followee in own]


def codes_of(pairs: IntArray) -> IntArray:
    """Return pairs of ids as one number each, with the first id in the upper half."""
    codes = pairs[:, 0].astype(np.int64)
    codes <<= 32
    codes |= pairs[:, 1]
    return codes


def halves(codes: IntArray, part: slice) -> tuple[IntArray, IntArray]:
    """Split such numbers into their two ids."""
    words = codes.view(np.int32).reshape(-1, 2)[part]
    first, second = (1, 0) if sys.byteorder == "little" else (0, 1)
    return words[:, first].copy(), words[:, second].copy()


def _is_rising(codes: IntArray) -> bool:
    """Check whether numbers are strictly increasing, a million at a time to save memory."""
    starts = range(0, len(codes), 1_000_000)
    return all(bool((np.diff(codes[start : start + 1_000_001]) > 0).all()) for start in starts)
