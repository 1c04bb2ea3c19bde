"""Read the ties of networks from graph files, matrices, adjacency lists and JSON.

Forms are recognised by their content, whatever the file is called; a form that is not read is named in the error.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import zipfile
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from xml.etree.ElementTree import ParseError

from mesa_llm.errors import ConfigError
from mesa_llm.tables import decoded, folded, kind_of
from mesa_llm.text import counted

NODE_NAMES = ("id", "user_id", "username", "user_name", "name", "label", "Label")
"""Attributes of nodes that may name a user."""

WEIGHTS = frozenset(("weight", "weights", "value", "strength", "sign", "rating"))
"""Folded names of the weight of a tie."""

MAX_FOLLOWS = 10_000_000
"""Maximum number of follows in a file."""

MAX_GRAPH = 2**25
"""Maximum size of a file that networkx reads, in bytes."""

MAX_MATRIX = 10**8
"""Maximum number of cells of a matrix that is stored with its zeros."""

WAY_OUT = (
    "write it as GraphML (nx.write_graphml(graph, 'follows.graphml')), or as a table with the columns source and target"
)

UNREAD: Mapping[str, str] = {
    **dict.fromkeys((".dot", ".gv"), "DOT of Graphviz"),
    ".dl": "DL of UCINET",
    **dict.fromkeys((".##h", ".##d"), "UCINET"),
    **dict.fromkeys((".g6", ".s6", ".graph6", ".sparse6"), "graph6"),
    **dict.fromkeys((".lgr", ".gw"), "LEDA"),
    **dict.fromkeys((".mat", ".h5", ".hdf5"), "a binary matrix of MATLAB"),
    **dict.fromkeys((".pkl", ".pickle", ".gpickle"), "a pickle, which may run code,"),
    **dict.fromkeys((".rds", ".rdata", ".rda"), "R"),
    ".gdf": "GDF of GUESS",
    ".vna": "VNA of NetDraw",
    ".tlp": "Tulip",
    ".metis": "METIS",
}
"""Suffix of a file → form of its network, which is not read."""

_OPENING: Sequence[tuple[str, str]] = (
    (r"%%matrixmarket\b", ".mtx"),
    (r"(?s)(?:<\?xml.*?\?>|<!--.*?-->|\s)*<(?:\w+:)?gexf\b", ".gexf"),
    (r"(?s)(?:<\?xml.*?\?>|<!--.*?-->|\s)*<(?:\w+:)?graphml\b", ".graphml"),
    (r"(?:(?:#|creator|version|comment).*\n|\s)*graph\s*\[", ".gml"),
    (r"(?:%.*\n|\s)*\*(?:vertices|network|arcs|edges|matrix)", ".net"),
    (r"dl\s+(?:n|nr|nm|format)\b", ".dl"),
    (r"(?s)(?://[^\n]*\n|#[^\n]*\n|/\*.*?\*/|\s)*(?:strict\s+)?(?:di)?graph\b[^\[\n{]*\{", ".dot"),
    (r">>(?:graph6|sparse6)<<", ".g6"),
    (r"leda\.graph", ".lgr"),
    (r"nodedef>", ".gdf"),
    (r"\*node data", ".vna"),
    (r"(?:ï»¿)?\s*[{\[]", ".json"),
)
"""Pattern of the beginning of a file, in lower case → suffix of its form."""


@dataclass(slots=True)
class Ties:
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


def form_of(path: Path, content: bytes) -> str:
    """Return the suffix that stands for the form of a network; empty for tables, edge lists and other texts."""
    if content.startswith(b"\x93NUMPY"):
        return ".npy"
    kind = kind_of(path)
    if content.startswith(b"PK"):
        return ".npz" if kind == ".npz" else ""
    head = content[:4096].replace(b"\0", b"").decode("latin-1").lower().lstrip("\ufeffï»¿ÿþ \t\r\n")
    for pattern, suffix in _OPENING:
        if re.match(pattern, head):
            is_lines = suffix == ".json" and kind in (".jsonl", ".ndjson", ".csv", ".tsv")
            return "" if is_lines else suffix
    return kind if kind in READERS or kind in UNREAD else ""


def read_network(path: Path, content: bytes, form: str, encoding: str | None = None) -> Ties | None:
    """Read the ties of a network; None if the file is a JSON table.

    Args:
        path: The file.
        content: Its content.
        form: Its form, as `form_of` returns it.
        encoding: Encoding of a text; None: determined from it.

    Raises:
        ConfigError: If the form is not read, or the file is too large or broken. The message names the form.
    """
    if form in UNREAD:
        raise ConfigError(f"{path} is {UNREAD[form]}, which is not read; {WAY_OUT}")
    import networkx as nx

    name, reader = READERS[form]
    if len(content) > MAX_GRAPH and form not in (".mtx", ".npz", ".npy"):
        raise ConfigError(f"{path} has {len(content):,} bytes; {name} is read up to {MAX_GRAPH:,}; use a table instead")
    try:
        return reader(content, path, encoding)
    except (*BROKEN, nx.NetworkXException) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path} is not a readable {name} file: {error!s:.200}; {WAY_OUT}") from error


# -- files that networkx reads


def _require_plain(content: bytes) -> None:
    """Refuse XML that defines entities, which may grow without bound.

    Raises:
        ValueError: If it does.
    """
    if re.search(rb"<!\s*(?:DOCTYPE|ENTITY)", content.replace(b"\0", b""), re.IGNORECASE):
        raise ValueError("it has a DOCTYPE, which may define entities; take it out")


def _graphml(content: bytes, path: Path, encoding: str | None) -> Ties:
    import networkx as nx

    _require_plain(content)
    return _of_graph(nx.read_graphml(BytesIO(content)))


def _gexf(content: bytes, path: Path, encoding: str | None) -> Ties:
    import networkx as nx

    _require_plain(content)
    old = re.sub(rb"(https?://(?:www\.)?)(gexf\.net|gephi\.org/gexf)/[\w.]+", rb"http://www.gexf.net/1.2draft", content)
    return _of_graph(nx.read_gexf(BytesIO(old), version="1.2draft"))


def _gml(content: bytes, path: Path, encoding: str | None) -> Ties:
    import networkx as nx

    text = decoded(content, path, encoding)
    if not re.search(r"(?m)^\s*multigraph\s", text):  # a tie that repeats is counted, not an error
        text = re.sub(r"(?m)^(\s*graph\s*\[)", r"\1 multigraph 1", text, count=1)
    graph: Any = nx.parse_gml(text.splitlines(), label="id")
    labels = [label for _, label in graph.nodes(data="label") if label is not None]
    if len(labels) == len(graph) == len(set(map(str, labels))):  # ids only number the nodes of a GML file
        ids = {str(label): str(node) for node, label in graph.nodes(data="label")}
        ties = _of_graph(nx.relabel_nodes(graph, dict(graph.nodes(data="label"))))
        ties.labels = [*ties.labels, ids]
        return ties
    return _of_graph(graph)


def _of_graph(graph: Any) -> Ties:
    """Return the edges of a networkx graph."""
    ties = Ties()
    is_mutual = not graph.is_directed()
    for follower, followee, attributes in graph.edges(data=True):
        ties.add(str(follower), str(followee), weight=_weight_in(attributes), is_mutual=is_mutual)
    ties.labels = [
        {str(node): str(label).strip() for node, label in graph.nodes(data=name) if label is not None}
        for name in NODE_NAMES
    ]
    return ties


def _weight_in(attributes: Mapping[str, Any]) -> Any:
    return next((value for name, value in attributes.items() if folded(name) in WEIGHTS), None)


def _pajek(content: bytes, path: Path, encoding: str | None) -> Ties:
    """Read a Pajek network: vertices counted from 1, arcs, edges, their lists, and matrices."""
    ties, labels = Ties(), dict[str, str]()
    section, n, row, n_relations = "", 0, 0, 0
    for line, text in enumerate(re.split(r"\r\n|\r|\n", decoded(content, path, encoding)), 1):
        stripped = text.strip()
        if not stripped or stripped.startswith("%"):
            continue
        if stripped.startswith("*"):
            words = stripped[1:].casefold().split()
            section, row = words[0], 0
            if section == "vertices":
                if len(words) > 2:
                    raise ValueError(f"line {line}: it has two kinds of vertices")
                n = int(words[1])
            elif section not in ("network", "arcs", "edges", "arcslist", "edgeslist", "matrix"):
                section = ""  # partitions and vectors of a project
            n_relations += section in ("arcs", "edges", "arcslist", "edgeslist", "matrix")
            continue
        if section == "vertices":
            cells = shlex.split(stripped.replace("'", "\\'"))
            labels[_vertex(cells[0], n, line)] = cells[1] if len(cells) > 1 else ""
        elif section in ("arcs", "edges"):
            first, second, *rest = stripped.split()
            ends = _vertex(first, n, line), _vertex(second, n, line)
            ties.add(*ends, line, weight=rest[0] if rest else None, is_mutual=section == "edges")
        elif section in ("arcslist", "edgeslist"):
            first, *others = (_vertex(one, n, line) for one in stripped.split())
            for other in others:
                ties.add(first, other, line, is_mutual=section == "edgeslist")
        elif section == "matrix":
            for column, weight in enumerate(stripped.split()):
                if weight_of(weight) != 0:
                    ties.add(str(row), str(column), line, weight=weight)
            row += 1
    if not n:
        raise ValueError("it has no *Vertices")
    if n_relations > 1:
        ties.notes.append(f"{n_relations} lists of ties are read as one")
    _name_by_labels(ties, labels)
    return ties


def _vertex(number: str, n: int, line: int) -> str:
    """Return the number of a vertex, counted from 0 instead of 1."""
    index = int(number) - 1
    if not 0 <= index < n:
        raise ValueError(f"line {line}: found vertex {number}; wanted one from 1 to {n}")
    return str(index)


def _name_by_labels(ties: Ties, labels: Mapping[str, str]) -> None:
    """Name vertices by their labels, where each has its own; numbers are then their other names."""
    named = {number: label.strip() for number, label in labels.items() if label.strip()}
    if len(set(named.values())) == len(named) and all(name in named for name in ties.names):
        ties.labels = [{label: number for number, label in named.items()}]
        ties.names = {named[number]: code for number, code in ties.names.items()}


# -- matrices


def _matrix_market(content: bytes, path: Path, encoding: str | None) -> Ties:
    from scipy.io import mmread

    banner, *lines = content[:65536].decode("latin-1").splitlines()
    size = next((line.split() for line in lines if line.strip() and not line.startswith("%")), [])
    words = banner.casefold().split()
    if "complex" in words or "hermitian" in words:
        raise ValueError("it has complex numbers")
    if "array" in words and len(size) >= 2 and int(size[0]) * int(size[1]) > MAX_MATRIX:
        raise ValueError(f"it has {size[0]} × {size[1]} cells; up to {MAX_MATRIX:,} are read")
    return matrix_ties(mmread(BytesIO(content), spmatrix=False))


def _numpy(content: bytes, path: Path, encoding: str | None) -> Ties:
    """Read an array: a square matrix, or two rows or columns of ends of ties."""
    import numpy as np
    from scipy.sparse import load_npz

    if not content.startswith(b"PK"):
        return _of_array(np.load(BytesIO(content), allow_pickle=False))
    with zipfile.ZipFile(BytesIO(content)) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        names = {Path(name).stem for name in archive.namelist()}
    if size > 8 * MAX_MATRIX:
        raise ValueError(f"it has {size:,} bytes when unpacked")
    if {"format", "shape", "data"} <= names:
        return matrix_ties(load_npz(BytesIO(content)))
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        chosen = [name for name in arrays.files if name in ("edges", "edge_index", "adjacency", "adj", "matrix")]
        if len(chosen or arrays.files) != 1:
            raise ValueError(f"it has the arrays {', '.join(arrays.files)}; wanted one, called edges or adjacency")
        return _of_array(arrays[(chosen or arrays.files)[0]])


def _of_array(values: Any) -> Ties:
    import numpy as np

    if values.ndim == 2 and values.shape[0] == values.shape[1] != 2:
        return matrix_ties(values)
    if values.ndim == 2 and 2 in values.shape and values.shape != (2, 2) and np.issubdtype(values.dtype, np.integer):
        ties = Ties()
        for follower, followee in (values if values.shape[1] == 2 else values.T).tolist():
            ties.add(str(follower), str(followee))
        return ties
    raise ValueError(f"it has the shape {values.shape}; wanted a square matrix, or pairs of row numbers")


def matrix_ties(matrix: Any, names: Sequence[str] | None = None) -> Ties:
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
    ties = Ties()
    for row, column, weight in zip(*(part.tolist() for part in (*cells.coords, np.asarray(cells.data))), strict=True):
        ties.add(own_names[row], own_names[column], weight=int(weight) if isinstance(weight, bool) else weight)
    return ties


# -- lists of neighbours, and JSON


def _adjacency_list(content: bytes, path: Path, encoding: str | None) -> Ties:
    """Read lines of a follower and all its followees."""
    ties = Ties(notes=["the first of each line follows all others on it, one way"])
    for line, text in enumerate(re.split(r"\r\n|\r|\n", decoded(content, path, encoding)), 1):
        own = text.partition("#")[0].strip()
        separator = next((sign for sign in "\t;," if sign in own), None)
        follower, *followees = [cell.strip().strip(":") for cell in own.split(separator)] or [""]
        for followee in filter(None, followees):
            ties.add(follower, followee, line)
    return ties


def _json(content: bytes, path: Path, encoding: str | None) -> Ties | None:
    """Read a network in JSON: node-link, adjacency, neighbours by name, or a matrix; None if it is a table."""
    document: Any = json.loads(decoded(content, path, encoding))
    if isinstance(document, list):
        return _json_lists(cast("list[Any]", document))
    if not isinstance(document, dict):
        return None
    outer = cast("dict[str, Any]", document)
    inner = next((outer[name] for name in ("graph", "elements") if isinstance(outer.get(name), dict)), {})
    graph: dict[str, Any] = outer | inner if "nodes" in inner or "edges" in inner else outer
    links = next((graph[name] for name in ("links", "edges") if isinstance(graph.get(name), list)), None)
    if links is not None and ("nodes" in graph or len(graph) <= 3) and _are_links(links):
        return _node_link(graph, links)
    if isinstance(graph.get("adjacency"), list) and isinstance(graph.get("nodes"), list):
        import networkx as nx

        return _of_graph(nx.adjacency_graph(graph))
    if "children" in graph:
        raise ValueError("it is a tree with children")
    return _neighbours(outer)


def _json_lists(rows: Sequence[Any]) -> Ties | None:
    """Read a list of lists: pairs, or a matrix; None if it is a list of objects."""
    if not rows or not all(isinstance(row, list) for row in rows):
        return None
    widths = {len(row) for row in rows}
    if widths == {len(rows)} and len(rows) > 2:
        import numpy as np

        return matrix_ties(np.array(rows))
    if not widths <= {2, 3} or widths == {2, 3} or (widths == {2} and len(rows) == 2):
        raise ValueError(
            "it has lists that may be pairs, neighbours or rows of a matrix; wanted an object of lists by name, or "
            'objects with "source" and "target"'
        )
    ties = Ties()
    for follower, followee, *weight in rows:
        ties.add(_text(follower), _text(followee), weight=weight[0] if weight else None)
    return ties


def _are_links(links: Sequence[Any]) -> bool:
    plain = [_inner(link) for link in links]
    return all({"source", "target"} <= set(link) or {"from", "to"} <= set(link) for link in plain)


def _inner(item: Any) -> dict[str, Any]:
    """Return the attributes of a node or link; Cytoscape's and graphology's stand one level below."""
    own = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    below = next((own[name] for name in ("data", "attributes") if isinstance(own.get(name), dict)), {})
    return own | below


def _node_link(graph: Mapping[str, Any], links: Sequence[Any]) -> Ties:
    """Read links between nodes, as networkx, D3, Cytoscape, vis.js, graphology and JSON Graph write them."""
    listed: Any = graph.get("nodes", [])
    named = [{"id": name, **_inner(node)} for name, node in listed.items()] if isinstance(listed, dict) else None
    nodes = named if named is not None else [_inner(node) for node in listed]
    ids = [next((node[name] for name in ("id", "key", "name") if name in node), None) for node in nodes]
    has_ids = all(any(name in node for name in ("id", "key")) for node in nodes)
    options = graph.get("options")
    kind = cast("dict[str, Any]", options).get("type") if isinstance(options, dict) else None
    directed = {"directed": True, "undirected": False}.get(str(kind), graph.get("directed"))
    ties = Ties()
    if directed is None:
        ties.notes.append('the file does not say "directed": true, so its links have no direction')
    for link in map(_inner, links):
        ends = [link["source"], link["target"]] if "source" in link else [link["from"], link["to"]]
        ends = [cast("dict[str, Any]", end).get("id", end) if isinstance(end, dict) else end for end in ends]
        if not has_ids and all(isinstance(end, int) and 0 <= end < len(ids) for end in ends):
            ends = [end if ids[end] is None else ids[end] for end in ends]  # D3 numbers nodes
        own = link.get("directed", not link["undirected"] if "undirected" in link else directed)
        ties.add(_text(ends[0]), _text(ends[1]), weight=_weight_in(link), is_mutual=not own)
    ties.labels = [
        {
            _text(own): str(node[name]).strip()
            for own, node in zip(ids, nodes, strict=True)
            if node.get(name) is not None
        }
        for name in NODE_NAMES
    ]
    return ties


def _neighbours(document: Mapping[str, Any]) -> Ties | None:
    """Read an object of the followees of each follower; None if it may be a table."""
    if not document or not all(isinstance(value, list | dict) for value in document.values()):
        return None
    lists = [cast("list[Any]", value) for value in document.values() if isinstance(value, list)]
    if any(isinstance(item, dict | list) for items in lists for item in items):
        return None
    names = {folded(name) for name in document}
    if names & {"source", "target", "from", "to", "follower", "followee"} or {"columns", "data"} <= names:
        return None
    if lists and len(lists) < len(document):
        return None
    ties = Ties(notes=["each name follows those listed under it, one way"])
    for follower, followees in document.items():
        for followee in followees:
            weight = followees[followee] if isinstance(followees, dict) else None
            own = cast("dict[str, Any]", weight) if isinstance(weight, dict) else None
            ties.add(follower, _text(followee), weight=weight if own is None else _weight_in(own))
    return ties


def _text(name: Any) -> str:
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name).strip()


type NetworkReader = Callable[[bytes, Path, str | None], Ties | None]

READERS: Mapping[str, tuple[str, NetworkReader]] = {
    ".graphml": ("GraphML", _graphml),
    ".gexf": ("GEXF", _gexf),
    ".gml": ("GML", _gml),
    **dict.fromkeys((".net", ".paj"), ("Pajek", _pajek)),
    ".mtx": ("Matrix Market", _matrix_market),
    **dict.fromkeys((".npz", ".npy"), ("NumPy", _numpy)),
    **dict.fromkeys((".adjlist", ".adj"), ("adjacency list", _adjacency_list)),
    ".json": ("JSON", _json),
}
"""Suffix → name of the form, and the function that reads it."""

BROKEN = (
    *(ParseError, OSError, KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError, EOFError),
    *(zipfile.BadZipFile, OverflowError, StopIteration),
)
"""Exceptions of readers on files that they cannot read, besides networkx's own."""


def square_of(rows: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[str] | None] | None:
    """Return the cells and the names of a matrix in a table, with or without names; None if it is none.

    Args:
        rows: All rows of the table, the first one too.
    """
    width = len(rows[0])
    cells = [[cell.strip() for cell in row] for row in rows]
    if len(cells) == width and _are_numbers(cells, width):
        has_no_loops = all(weight_of(cells[index][index]) == 0 for index in range(width))
        return (cells, None) if width > 3 or (width == 3 and has_no_loops) else None
    head, body = cells[0], cells[1:]
    inner = [row[1:] for row in body]
    firsts = [row[0] for row in body if row]
    for names in (head[1:], head):  # with an empty corner, or without, as R writes it
        if firsts == names and _are_numbers(inner, len(names)) and (names is head or weight_of(head[0]) is None):
            return inner, names
    is_named = width > 3 or (width > 1 and all(weight_of(name) is None for name in head))
    if len(body) == width and is_named and len(set(head)) == width and _are_numbers(body, width):
        return body, head
    return None


def _are_numbers(cells: Iterable[Sequence[str]], width: int) -> bool:
    return all(len(row) == width and all(not cell or weight_of(cell) is not None for cell in row) for row in cells)
