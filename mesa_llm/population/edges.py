"""Read follows from files: tables of two columns, SNAP edge lists, and GraphML."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np
import numpy.typing as npt

from mesa_llm.errors import ConfigError
from mesa_llm.population.files import Users
from mesa_llm.population.persona import Persona
from mesa_llm.tables import folded, kind_of, lines_of, read_bytes, read_table, records_of, separator_of, whole_rows
from mesa_llm.text import clip, counted

logger = logging.getLogger(__name__)

FOLLOWERS = frozenset(
    (
        *("follower", "follower_id", "follower_name", "source", "source_id", "src", "from", "from_id", "from_node"),
        *("from_node_id", "fromnodeid", "user", "user_id", "username", "ego"),
    )
)
"""Folded names of the follower column."""

FOLLOWEES = frozenset(
    (
        *(
            "followee",
            "followee_id",
            "followee_name",
            "followed",
            "followed_id",
            "following",
            "following_id",
            "follows",
        ),
        *("target", "target_id", "dst", "to", "to_id", "to_node", "to_node_id", "tonodeid", "friend", "friend_id"),
    )
)
"""Folded names of the followee column."""

COMMENTS = ("#", "%")
"""First characters of lines that are comments."""

NODE_NAMES = ("id", "user_id", "username", "user_name", "name", "label", "Label")
"""GraphML node attributes that may name a user."""

MAX_FOLLOWS = 10_000_000
"""Maximum number of follows in a file."""

MAX_GRAPHML = 2**25
"""Maximum size of a GraphML file, in bytes."""

UNKNOWN, AMBIGUOUS = -1, -2
"""Indices for names that match no user, and for names that match several."""

Key = Mapping[str, int]
"""Name of a user in a file → its index in the population."""


@dataclass(frozen=True, eq=False, slots=True)
class Follows:
    """Follows read from a file."""

    edges: npt.NDArray[np.int64]
    """Distinct pairs (follower, followee) of indices into the population, sorted, shape `(follows, 2)`."""

    n_dropped: int = 0
    """Number of follows left out because a name matches no user or several."""

    n_own: int = 0
    """Number of follows left out because a user follows itself."""

    n_repeated: int = 0
    """Number of repeated follows left out."""

    reason: str = ""
    """Description of the first dropped follow, with its line."""

    @property
    def left_out(self) -> str:
        """Summary of the follows left out, for people to read; empty if there are none."""
        parts = [
            f"{counted(self.n_dropped, 'follow')} that cannot be used ({self.reason})" if self.n_dropped else "",
            f"{counted(self.n_own, 'follow')} of oneself" if self.n_own else "",
            f"{counted(self.n_repeated, 'repeated follow')}" if self.n_repeated else "",
        ]
        return ", ".join(filter(None, parts))


@dataclass(slots=True)
class _Pairs:
    """Follows by the names of users in the file."""

    names: dict[str, int]
    """Name → its code."""

    codes: array[int]
    """Codes of follower and followee, alternating."""

    lines: array[int]
    """Line of each follow; -1 if the format has no lines."""

    labels: tuple[Mapping[str, str], ...] = ()
    """Alternative names of users: name in the file → other name."""

    is_mutual: bool = False
    """Whether every follow is mutual."""

    def add(self, follower: str, followee: str, line: int) -> None:
        """Add a follow.

        Raises:
            ConfigError: If there are too many.
        """
        if len(self.lines) >= MAX_FOLLOWS:
            raise ConfigError(f"found more than {MAX_FOLLOWS:,} follows in one file; split the file")
        for name in (follower, followee):
            self.codes.append(self.names.setdefault(name, len(self.names)))
        self.lines.append(line)


def read_edges(path: str | Path, users: Users | Sequence[Persona] | int, *, skip: bool = False) -> Follows:
    """Read follows from a file.

    The file has two columns, follower and followee, with or without a header. It may be a table of any format, see
    `mesa_llm.tables.read_table`, or whitespace-separated text with comments (`#`), as in SNAP's edge lists. In GraphML,
    an undirected edge counts both ways. Users are named by their ids (the column `user_id` or `id` of their file), by
    their row indices, from 0, by their usernames, or by their names, whichever matches most.

    Args:
        path: The file.
        users: The population: as `read_users` reads it, its personas, or its number of people.
        skip: Whether to leave out follows whose names match no user or several, instead of raising an error.

    Raises:
        ConfigError: If the file cannot be read or, without `skip`, a name is unknown or ambiguous. The message names
            the line.
    """
    path = Path(path)
    pairs = _graphml(path) if kind_of(path) == ".graphml" else _listed(path)
    kind, indices = _indices(pairs, _keys(users))
    ends = indices[np.frombuffer(pairs.codes, dtype=np.int64)] if pairs.codes else np.zeros(0, dtype=np.int64)
    edges = ends.reshape(-1, 2)
    if len(edges) and pairs.lines[0] >= 0 and _is_header(pairs, edges[0]):
        edges, pairs.lines, pairs.codes = edges[1:], pairs.lines[1:], pairs.codes[2:]
    bad = np.flatnonzero((edges < 0).any(axis=1))
    reason = _reason(path, pairs, edges, int(bad[0]), kind, users) if len(bad) else ""
    if reason and not (skip and len(bad) < len(edges)):
        more = f" ({len(bad) - 1} more of {len(edges)} follows cannot be used either)" if len(bad) > 1 else ""
        raise ConfigError(reason + more)
    edges = np.delete(edges, bad, axis=0)
    if pairs.is_mutual:
        edges = np.concatenate([edges, edges[:, ::-1]])
    others = edges[edges[:, 0] != edges[:, 1]]
    codes = np.sort((others[:, 0] << 32) | others[:, 1])
    codes = codes[np.diff(codes, prepend=-1) > 0]  # much faster than np.unique of pairs
    distinct = np.stack([codes >> 32, codes & 0xFFFFFFFF], axis=1)
    return Follows(distinct, len(bad), len(edges) - len(others), len(others) - len(distinct), reason)


def _keys(users: Users | Sequence[Persona] | int) -> dict[str, Key]:
    """Return the ways to name users, most likely first."""
    if isinstance(users, int):
        return {"row": {str(index): index for index in range(users)}}
    personas = users.personas if isinstance(users, Users) else users
    rows: Iterable[int] = (isinstance(users, Users) and users.rows) or range(len(personas))
    return {
        "id": _key(users.ids if isinstance(users, Users) else ()),
        "row": {str(row): index for index, row in enumerate(rows)},
        "username": _key(persona.username for persona in personas),
        "name": _key(persona.name for persona in personas),
    }


def _key(names: Iterable[str]) -> Key:
    key: dict[str, int] = {}
    for index, name in enumerate(names):
        if stripped := name.strip():
            key[stripped] = AMBIGUOUS if stripped in key else index
    return key


def _indices(pairs: _Pairs, keys: Mapping[str, Key]) -> tuple[str, npt.NDArray[np.int64]]:
    """Return the kind of name that matches most users, and the index of each name by its code."""
    best: tuple[int, str, list[int]] = (-1, "row", [])
    for labels in ({}, *pairs.labels):
        names = [labels.get(name, name) for name in pairs.names]
        for kind, key in keys.items():
            indices = [key.get(name, UNKNOWN) for name in names]
            if kind == "username":
                indices = [
                    key.get(name[1:], UNKNOWN) if index == UNKNOWN and name.startswith("@") else index
                    for name, index in zip(names, indices, strict=True)
                ]
            n_known = len(indices) - indices.count(UNKNOWN)
            if n_known > best[0]:
                best = n_known, kind, indices
    return best[1], np.array(best[2], dtype=np.int64)


def _is_header(pairs: _Pairs, first: npt.NDArray[np.int64]) -> bool:
    """Check whether the first line is a header: words that name no users."""
    names = list(pairs.names)
    words = [names[code] for code in pairs.codes[:2]]
    return bool((first == UNKNOWN).all()) and not any(word.isdigit() for word in words) and len(pairs.lines) > 1


def _reason(
    path: Path,
    pairs: _Pairs,
    edges: npt.NDArray[np.int64],
    index: int,
    kind: str,
    users: Users | Sequence[Persona] | int,
) -> str:
    """Describe a follow that cannot be used."""
    end = int(edges[index].argmin())  # ambiguous before unknown
    code = pairs.codes[2 * index + end]
    name = next(name for name, one in pairs.names.items() if one == code)
    line = pairs.lines[index]
    where = f"{path}, line {line}" if line > 0 else str(path)
    n = users if isinstance(users, int) else len(users.personas if isinstance(users, Users) else users)
    if edges[index, end] == AMBIGUOUS:
        return (
            f"{where}: found {name!r:.80}, the {kind} of several users; name users by the indices of their rows, from "
            "0, or by a column 'id' in their file"
        )
    wanted = f"a row from 0 to {n - 1}" if kind == "row" else f"the {kind} of a user"
    first = name == str(n) and "0" not in pairs.names
    advice = "; rows are numbered from 0; add a column 'id' to the users' file to use other numbers" if first else ""
    return f"{where}: found {name!r:.80}; wanted {wanted}{advice}"


# -- file formats


def _listed(path: Path) -> _Pairs:
    """Read a file with two columns."""
    pairs = _Pairs({}, array("q"), array("q"))
    is_table = kind_of(path) in TABLES
    records = _table_records(path) if is_table else _text_records(path)
    columns: tuple[int, int] | None = None
    for line, cells in records:
        if columns is None:
            columns, is_header = _columns(cells, f"{path}, line {line}")
            if is_header or is_table:
                continue
        if len(cells) <= max(columns):
            raise ConfigError(f"{path}, line {line}: found {clip(' '.join(cells), 80)!r}; wanted follower and followee")
        follower, followee = cells[columns[0]].strip(), cells[columns[1]].strip()
        pairs.add(follower, followee, line)
    return pairs


TABLES = (".xlsx", ".xlsm", ".parquet", ".json", ".jsonl", ".ndjson")
"""Suffixes of files that are read as tables; others are text with two columns."""


def _table_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    placed = read_table(path)
    rows = whole_rows(path, placed)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    yield placed[0][0], columns
    for (line, _), row in zip(placed, rows, strict=True):
        yield line, [str(row.get(column, "")) for column in columns]


def _text_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Split a text into cells, dropping comments."""
    lines = ["\n" if line.lstrip().startswith(COMMENTS) else line for line in lines_of(path)]
    first = next((line for line in lines if line.strip()), "")
    if any(separator in first.strip() for separator in ",;\t|="):
        start, separator = separator_of(lines, path, FOLLOWERS | FOLLOWEES)
        yield from records_of(lines, separator, path, start)
        return
    for line, text in enumerate(lines, 1):
        if cells := text.split():
            yield line, cells


def _columns(cells: Sequence[str], where: str) -> tuple[tuple[int, int], bool]:
    """Return the columns of follower and followee, and whether the first line names them.

    Raises:
        ConfigError: If there are fewer than two columns, or more than two without names.
    """
    names = [folded(cell) for cell in cells]
    followers = [index for index, name in enumerate(names) if name in FOLLOWERS]
    followees = [index for index, name in enumerate(names) if name in FOLLOWEES]
    if followers and followees:
        return (followers[0], followees[0]), True
    if len(cells) < 2:
        raise ConfigError(f"{where}: found one column; wanted two, follower and followee")
    if len(cells) > 2 and not (cells[0].isdigit() and cells[1].isdigit()):
        raise ConfigError(
            f"{where}: found {len(cells)} columns; wanted two, follower and followee, or a header that names them "
            "'follower' and 'followee'"
        )
    if len(cells) > 2:
        logger.warning("%s: the first two of %d columns are read, as follower and followee", where, len(cells))
    return (0, 1), False


def _graphml(path: Path) -> _Pairs:
    """Read a graph.

    Raises:
        ConfigError: If the file is not GraphML, or too large.
    """
    import networkx as nx

    content = read_bytes(path)
    if len(content) > MAX_GRAPHML:
        raise ConfigError(
            f"{path} has {len(content):,} bytes; GraphML is read up to {MAX_GRAPHML:,}; use a table instead"
        )
    try:
        graph: Any = nx.read_graphml(BytesIO(content))
    except (ParseError, nx.NetworkXError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path} is not a readable GraphML file: {error!s:.200}") from error
    pairs = _Pairs({}, array("q"), array("q"), is_mutual=not graph.is_directed())
    for follower, followee in graph.edges():
        pairs.add(str(follower), str(followee), -1)
    pairs.labels = tuple(
        {str(node): str(label).strip() for node, label in graph.nodes(data=name) if label is not None}
        for name in NODE_NAMES
    )
    return pairs
