"""Read follows from files: tables of two columns, edge lists, matrices, and the graph files of `networks`."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from mesa_llm.errors import ConfigError
from mesa_llm.population.files import Users
from mesa_llm.population.networks import form_of, read_network
from mesa_llm.population.persona import Persona
from mesa_llm.population.ties import WEIGHTS, TieList, matrix_ties, square_of, weight_of
from mesa_llm.tables import (
    folded,
    kind_of,
    lines_of,
    read_bytes,
    read_table,
    records_of,
    separator_of,
    sheet_records,
    whole_rows,
)
from mesa_llm.text import clip, counted

logger = logging.getLogger(__name__)

FOLLOWERS = frozenset(
    (
        *("follower", "follower_id", "follower_name", "source", "source_id", "src", "from", "from_id", "from_node"),
        *("from_node_id", "fromnodeid", "user", "user_id", "username", "ego", "sender", "citing", "von"),
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
        *("alter", "receiver", "cited", "nach"),
    )
)
"""Folded names of the followee column."""

DIRECTIONS = frozenset(("type", "edge_type", "edgetype", "direction", "directed"))
"""Folded names of the column that says whether a tie has a direction."""

UNDIRECTED = frozenset(("undirected", "false", "no", "0", "mutual", "both", "sym", "symmetric"))
"""Cells of that column for ties without one."""

COMMENTS = ("#", "%", "//")
"""Beginnings of lines that are comments."""

_COMMENT_BEHIND = re.compile(r"\s[#%]\s.*")

_WITHOUT_DIRECTION = re.compile(r"\bundirected\b|^%\s*sym\b", re.IGNORECASE | re.MULTILINE)
"""What the comments of SNAP and KONECT say about ties without a direction."""

_TWO_KINDS = re.compile(r"^%\s*bip\b|\bbipartite\b", re.IGNORECASE | re.MULTILINE)

_FROM_ONE = re.compile(r"^%\s*(?:sym|asym)\b", re.IGNORECASE | re.MULTILINE)
"""First line of KONECT's files, which count from 1."""

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


def read_edges(
    path: str | Path, users: Users | Sequence[Persona] | int, *, skip: bool = False, encoding: str | None = None
) -> Follows:
    """Read follows from a file.

    The file has two columns, follower and followee, with or without a header. It may be a table of any format, see
    `mesa_llm.tables.read_table`, or whitespace-separated text with comments (`#`), as in SNAP's edge lists. It may also
    be a matrix whose rows follow its columns (a table, Matrix Market, `.npy`, `.npz`), GraphML, GEXF, GML, Pajek,
    JSON (node-link and others) or an adjacency list (`.adjlist`). A tie without a direction counts both ways, one of
    weight 0 or below is none, and other weights are not used; each is logged. Users are named by their ids (the column
    `user_id` or `id` of their file), by their row indices, from 0, by their usernames, or by their names, whichever
    matches most.

    Args:
        path: The file.
        users: The population: as `read_users` reads it, its personas, or its number of people.
        skip: Whether to leave out follows whose names match no user or several, instead of raising an error.
        encoding: Encoding of a text file; None: determined from it.

    Raises:
        ConfigError: If the file cannot be read or, without `skip`, a name is unknown or ambiguous. The message names
            the line.
    """
    path = Path(path)
    content = b"" if kind_of(path) in (".parquet",) else read_bytes(path)
    form = form_of(path, content)
    ties = read_network(path, content, form, encoding) if form else None
    if ties is None:
        ties = _listed(path, encoding)
    if not ties.codes:
        ties.notes.append("it holds no ties, so nobody follows anybody")
    for note in ties.said():
        logger.warning("%s: %s", path, note)
    kind, indices = _indices(ties, _keys(users))
    ends = indices[np.frombuffer(ties.codes, dtype=np.int64)] if ties.codes else np.zeros(0, dtype=np.int64)
    edges = ends.reshape(-1, 2)
    if len(edges) and ties.lines[0] >= 0 and _is_header(ties, edges[0]):
        edges, ties.lines, ties.codes = edges[1:], ties.lines[1:], ties.codes[2:]
    _require_zero(path, ties, kind, users)
    bad = np.flatnonzero((edges < 0).any(axis=1))
    reason = _reason(path, ties, edges, int(bad[0]), kind, users) if len(bad) else ""
    if reason and not (skip and len(bad) < len(edges)):
        more = f" ({len(bad) - 1} more of {len(edges)} follows cannot be used either)" if len(bad) > 1 else ""
        raise ConfigError(reason + more)
    edges = np.delete(edges, bad, axis=0)
    others = edges[edges[:, 0] != edges[:, 1]]
    codes = np.sort((others[:, 0] << 32) | others[:, 1])
    codes = codes[np.diff(codes, prepend=-1) > 0]  # much faster than np.unique of pairs
    distinct = np.stack([codes >> 32, codes & 0xFFFFFFFF], axis=1)
    return Follows(distinct, len(bad), len(edges) - len(others), len(others) - len(distinct), reason)


def _require_zero(path: Path, ties: TieList, kind: str, users: Users | Sequence[Persona] | int) -> None:
    """Check that rows are counted from 0.

    Raises:
        ConfigError: If they seem to be counted from 1.
    """
    if kind != "row" or "0" in ties.names:
        return
    n = _n_of(users)
    numbers = {int(name) for name in ties.names if name.isdigit()}
    if numbers and min(numbers) == 1 and max(numbers) == n:
        raise ConfigError(
            f"{path}: found rows 1 to {n}; wanted a row from 0 to {n - 1}, as rows are numbered from 0; subtract 1, or "
            "add a column 'id' to the users' file to use other numbers"
        )
    if numbers and min(numbers) == 1 and max(numbers) < n:
        logger.warning("%s: nobody follows or is followed by row 0; if the file counts from 1, subtract 1", path)


def _n_of(users: Users | Sequence[Persona] | int) -> int:
    return users if isinstance(users, int) else len(users.personas if isinstance(users, Users) else users)


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
        if stripped := normalize("NFC", name.strip()):
            key[stripped] = AMBIGUOUS if stripped in key else index
    return key


def _indices(ties: TieList, keys: Mapping[str, Key]) -> tuple[str, npt.NDArray[np.int64]]:
    """Return the kind of name that matches most users, and the index of each name by its code.

    Of two that match equally many, names and ids go before row indices, which match by accident.
    """
    best: tuple[tuple[int, bool], str, list[int]] = ((-1, False), "row", [])
    unique = [labels for labels in ties.labels if len(set(labels.values())) == len(labels)]
    for labels in ({}, *unique):
        names = [normalize("NFC", labels.get(name, name)) for name in ties.names]
        for kind, key in keys.items():
            indices = [key.get(name, UNKNOWN) for name in names]
            if kind == "username":
                indices = [
                    key.get(name[1:], UNKNOWN) if index == UNKNOWN and name.startswith("@") else index
                    for name, index in zip(names, indices, strict=True)
                ]
            score = len(indices) - indices.count(UNKNOWN), kind != "row"
            if score > best[0]:
                best = score, kind, indices
    return best[1], np.array(best[2], dtype=np.int64)


def _is_header(ties: TieList, first: npt.NDArray[np.int64]) -> bool:
    """Check whether the first line is a header: words that name no users."""
    names = list(ties.names)
    words = [names[code] for code in ties.codes[:2]]
    return bool((first == UNKNOWN).all()) and not any(word.isdigit() for word in words) and len(ties.lines) > 1


def _reason(
    path: Path,
    ties: TieList,
    edges: npt.NDArray[np.int64],
    index: int,
    kind: str,
    users: Users | Sequence[Persona] | int,
) -> str:
    """Describe a follow that cannot be used."""
    end = int(edges[index].argmin())  # ambiguous before unknown
    code = ties.codes[2 * index + end]
    name = next(name for name, one in ties.names.items() if one == code)
    line = ties.lines[index]
    where = f"{path}, line {line}" if line > 0 else str(path)
    if edges[index, end] == AMBIGUOUS:
        return (
            f"{where}: found {name!r:.80}, the {kind} of several users; name users by the indices of their rows, from "
            "0, or by a column 'id' in their file"
        )
    wanted = f"a row from 0 to {_n_of(users) - 1}" if kind == "row" else f"the {kind} of a user"
    return f"{where}: found {name!r:.80}; wanted {wanted}"


# -- file formats


def _listed(path: Path, encoding: str | None) -> TieList:
    """Read a table: two columns, or a matrix.

    Raises:
        ConfigError: If it is neither.
    """
    ties = TieList()
    kind = kind_of(path)
    if kind in (".xlsx", ".xlsm"):
        records, comments = iter(_sheet_texts(path)), ""
    elif kind in TABLES:
        records, comments = _table_records(path, encoding), ""
    else:
        records, comments = _text_records(path, encoding)
    if _TWO_KINDS.search(comments):
        raise ConfigError(f"{path} holds ties between two kinds of nodes (bipartite); wanted ties between users")
    first = next(records, None)
    if first is None:
        return ties
    rows = [first, *islice(records, len(first[1]) + 1)]
    head = _comment_head(comments, first[1])
    columns = head or _Columns.named(first[1])
    if columns is None and (square := _square([cells for _, cells in rows])) is not None:
        return square
    columns = columns or _Columns.of(first[1], f"{path}, line {first[0]}")
    ties.notes += columns.notes
    offset = int(bool(_FROM_ONE.search(comments)))
    is_mutual = bool(_WITHOUT_DIRECTION.search(comments))
    for line, cells in chain(rows[columns.is_header :] if head is None else rows, records):
        columns.add_to(ties, cells, f"{path}, line {line}", line, is_mutual=is_mutual, offset=offset)
    return ties


def _square(rows: Sequence[Sequence[str]]) -> TieList | None:
    """Return the ties of a table that is a matrix; None if it is none.

    Args:
        rows: All rows, or two more than the first has cells.
    """
    width = len(rows[0])
    if width < 2 or len(rows) not in (width, width + 1) or (square := square_of(rows)) is None:
        return None
    ties = matrix_ties(np.array([[weight_of(cell) or 0.0 for cell in row] for row in square[0]]), square[1])
    ties.notes.append(f"a matrix of {len(square[0])} rows, which follow its columns")
    return ties


TABLES = (".xlsx", ".xlsm", ".parquet", ".json", ".jsonl", ".ndjson", ".dta", ".sav", ".sas7bdat")
"""Suffixes of files that are read as tables; others are text with two columns."""


def _sheet_texts(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows of a workbook as texts."""
    name, records = sheet_records(path, FOLLOWERS | FOLLOWEES)
    width = max((len(cells) for _, cells in records), default=0)
    rows: list[tuple[int, list[str]]] = []
    for number, cells in records:
        if isinstance(cells, str):
            raise ConfigError(f"{path}, sheet {name!r}, row {number}: {cells}")
        texts = ["" if cell is None else str(cell).strip() for cell in cells]
        rows.append((number, texts + [""] * (width - len(texts))))
    return rows


def _table_records(path: Path, encoding: str | None) -> Iterator[tuple[int, list[str]]]:
    placed = read_table(path, FOLLOWERS | FOLLOWEES, encoding=encoding)
    rows = whole_rows(path, placed)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    yield 0, columns
    for (line, _), row in zip(placed, rows, strict=True):
        yield line, [str(row.get(column, "")) for column in columns]


def _text_records(path: Path, encoding: str | None) -> tuple[Iterator[tuple[int, list[str]]], str]:
    """Split a text into cells; return them and the comments."""
    text = lines_of(path, encoding)
    lines = ["\n" if line.lstrip().startswith(COMMENTS) else line for line in text]
    comments = "".join(line for line, kept in zip(text, lines, strict=True) if kept is not line)
    first = next((line for line in lines if line.strip()), "")
    if any(separator in first.partition("{")[0].strip() for separator in ",;\t|="):
        start, separator = separator_of(lines, path, FOLLOWERS | FOLLOWEES)
        return records_of(lines, separator, path, start), comments
    n_cells = _max_cells(first)
    if n_cells < 0:
        lines = [_COMMENT_BEHIND.sub("", line) if "#" in line or "%" in line else line for line in lines]
    return ((line, cells) for line, row in enumerate(lines, 1) if (cells := row.split(maxsplit=n_cells))), comments


def _max_cells(first: str) -> int:
    """Return how often a line is split: the attributes that networkx writes are one cell."""
    return 2 if re.search(r"\{.*\}\s*$", first) else -1


def _comment_head(comments: str, cells: Sequence[str]) -> _Columns | None:
    """Return the columns that the last comment above the ties names, as in SNAP's files; None if it names none."""
    last = comments.strip().splitlines()[-1:]
    names = re.split(r"[\s,;]+", last[0].lstrip("#%/ \t").strip()) if last else []
    folded_names = {folded(name) for name in names}
    if len(names) != len(cells) or not (folded_names & FOLLOWERS and folded_names & FOLLOWEES):
        return None
    return _Columns.named(names)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of a table of ties."""

    follower: int
    followee: int
    weight: int | None = None
    direction: int | None = None

    is_header: bool = False
    """Whether the first line names them."""

    notes: Sequence[str] = ()
    """What is to be said about them."""

    n_cells: int = 0
    """Number of cells of each line, where no header names them; 0: any."""

    @classmethod
    def named(cls, cells: Sequence[str]) -> _Columns | None:
        """Find the columns by their names in the first line; None if it does not name them."""
        names = [folded(cell) for cell in cells]
        followers, followees, weights, directions = (
            [index for index, name in enumerate(names) if name in known]
            for known in (FOLLOWERS, FOLLOWEES, WEIGHTS, DIRECTIONS)
        )
        if len(followers) == 2 and not followees:  # the followers of each user
            followees = [index for index in followers if names[index] in ("user", "user_id", "username", "ego")]
            followers = [index for index in followers if names[index].startswith("follower")]
        if not (followers and followees):
            return None
        optional = (weights[0] if weights else None), (directions[0] if directions else None)
        return cls(followers[0], followees[0], *optional, is_header=True)

    @classmethod
    def of(cls, cells: Sequence[str], where: str) -> _Columns:
        """Find the columns in a first line that does not name them.

        Raises:
            ConfigError: If there are fewer than two columns, or more than two that are no numbers.
        """
        if len(cells) < 2:
            raise ConfigError(f"{where}: found one column; wanted two, follower and followee")
        are_numbers = cells[0].strip().isdigit() and cells[1].strip().isdigit()
        has_attributes = len(cells) == 3 and cells[2].strip().startswith("{")
        if len(cells) > 2 and not are_numbers and not has_attributes:
            raise ConfigError(
                f"{where}: found {len(cells)} columns; wanted two, follower and followee, or a header that names them "
                "'follower' and 'followee'. A list of all whom one user follows is read from a file called .adjlist"
            )
        if len(cells) == 2 or has_attributes:
            return cls(0, 1, 2 if has_attributes else None, n_cells=len(cells))
        has_weight = weight_of(cells[2]) is not None
        what = ", and the third as their weight" if has_weight else ""
        note = f"the first two of {len(cells)} columns are read, as follower and followee{what}"
        return cls(0, 1, 2 if has_weight else None, notes=(note,), n_cells=len(cells))

    def add_to(
        self, ties: TieList, cells: Sequence[str], where: str, line: int, *, is_mutual: bool, offset: int
    ) -> None:
        """Add the tie of a row.

        Args:
            ties: The ties.
            cells: Cells of the row.
            where: File and line, for errors.
            line: The line.
            is_mutual: Whether ties have no direction, unless a column says so.
            offset: What is taken off numbers, as they are counted from it.

        Raises:
            ConfigError: If it has too few cells.
        """
        n_cells = max((index for index, cell in enumerate(cells, 1) if cell.strip()), default=0)
        found = clip(" ".join(cells), 80)
        if n_cells <= max(self.follower, self.followee):
            raise ConfigError(f"{where}: found {found!r}; wanted follower and followee")
        if self.n_cells and n_cells != self.n_cells:
            raise ConfigError(
                f"{where}: found {n_cells} cells ({found!r}); wanted {self.n_cells}, as in the first line. A list of "
                "all whom one user follows is read from a file called .adjlist"
            )
        ends = [cells[index].strip() for index in (self.follower, self.followee)]
        if offset:
            ends = [str(int(end) - offset) if end.isdigit() else end for end in ends]
        weight = None if self.weight is None or self.weight >= len(cells) else _weight(cells[self.weight])
        if self.direction is not None and self.direction < len(cells) and (cell := cells[self.direction].strip()):
            is_mutual = cell.casefold() in UNDIRECTED
        ties.add(ends[0], ends[1], line, weight=weight, is_mutual=is_mutual)


def _weight(cell: str) -> str | None:
    """Return the weight in a cell, also of the attributes that networkx writes; None without one."""
    text = cell.strip()
    if not text.startswith("{"):
        return text or None
    try:
        attributes: dict[str, object] = ast.literal_eval(text[:10_000])
        return next((str(value) for name, value in attributes.items() if folded(name) in WEIGHTS), None)
    except (ValueError, SyntaxError, TypeError, AttributeError, MemoryError, RecursionError):
        return None
