"""Read the ties of networks from graph files, matrices, adjacency lists and JSON.

Forms are recognised by their content, whatever the file is called; a form that is not read is named in the error.
"""

from __future__ import annotations

import re
import shlex
import zipfile
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from mesa_llm.errors import ConfigError
from mesa_llm.population.network_json import json_ties
from mesa_llm.population.ties import TieList, graph_ties, matrix_ties, weight_of
from mesa_llm.tables import decoded, kind_of

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
    **dict.fromkeys((".pkl", ".pickle", ".gpickle"), "a pickle (it may run code)"),
    **dict.fromkeys((".rds", ".rdata", ".rda"), "R"),
    ".multiline_adjlist": "a multiline adjacency list",
    ".lgl": "LGL of igraph",
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


def read_network(path: Path, content: bytes, form: str, encoding: str | None = None) -> TieList | None:
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


def _graphml(content: bytes, path: Path, encoding: str | None) -> TieList:
    import networkx as nx

    _require_plain(content)
    if (n_graphs := len(re.findall(rb"<(?:\w+:)?graph[\s>]", content.replace(b"\0", b"")))) > 1:
        raise ValueError(f"it has {n_graphs} graphs; wanted one")
    return graph_ties(nx.read_graphml(BytesIO(content)))


def _gexf(content: bytes, path: Path, encoding: str | None) -> TieList:
    import networkx as nx

    _require_plain(content)
    old = re.sub(rb"(https?://(?:www\.)?)(gexf\.net|gephi\.org/gexf)/[\w.]+", rb"http://www.gexf.net/1.2draft", content)
    if not re.search(rb"defaultedgetype=[\"']undirected", old):  # a tie of its own kind, which networkx refuses
        old = re.sub(rb"(<(?:\w+:)?edge\s[^>]*\btype=[\"'])undirected", rb"\1mutual", old)
    return graph_ties(nx.read_gexf(BytesIO(old), version="1.2draft"))


def _gml(content: bytes, path: Path, encoding: str | None) -> TieList:
    import networkx as nx

    text = decoded(content, path, encoding)
    if not re.search(r"(?m)^\s*multigraph\s", text):  # a tie that repeats is counted, not an error
        text = re.sub(r"(?m)^(\s*graph\s*\[)", r"\1 multigraph 1", text, count=1)
    graph: Any = nx.parse_gml(text.splitlines(), label="id")
    labels = [label for _, label in graph.nodes(data="label") if label is not None]
    if len(labels) == len(graph) == len(set(map(str, labels))):  # ids only number the nodes of a GML file
        ids = {str(label): str(node) for node, label in graph.nodes(data="label")}
        ties = graph_ties(nx.relabel_nodes(graph, dict(graph.nodes(data="label"))))
        ties.labels = [*ties.labels, ids]
        return ties
    return graph_ties(graph)


def _pajek(content: bytes, path: Path, encoding: str | None) -> TieList:
    """Read a Pajek network: vertices counted from 1, arcs, edges, their lists, and matrices."""
    ties, labels = TieList(), dict[str, str]()
    section, n, row = "", 0, 0
    relations: list[str] = []
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
            relations += [section] if section in ("arcs", "edges", "arcslist", "edgeslist", "matrix") else []
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
    if len(set(relations)) < len(relations):
        ties.notes.append(f"{len(relations)} lists of ties are read as one")
    _name_by_labels(ties, labels)
    return ties


def _vertex(number: str, n: int, line: int) -> str:
    """Return the number of a vertex, counted from 0 instead of 1."""
    index = int(number) - 1
    if not 0 <= index < n:
        raise ValueError(f"line {line}: found vertex {number}; wanted one from 1 to {n}")
    return str(index)


def _name_by_labels(ties: TieList, labels: Mapping[str, str]) -> None:
    """Name vertices by their labels, where each has its own; numbers are then their other names."""
    named = {number: label.strip() for number, label in labels.items() if label.strip()}
    if len(set(named.values())) == len(named) and all(name in named for name in ties.names):
        ties.labels = [{label: number for number, label in named.items()}]
        ties.names = {named[number]: code for number, code in ties.names.items()}


# -- matrices


def _matrix_market(content: bytes, path: Path, encoding: str | None) -> TieList:
    from scipy.io import mmread

    banner, *lines = content[:65536].decode("latin-1").splitlines()
    size = next((line.split() for line in lines if line.strip() and not line.startswith("%")), [])
    words = banner.casefold().split()
    if "complex" in words or "hermitian" in words:
        raise ValueError("it has complex numbers")
    if "array" in words and len(size) >= 2 and int(size[0]) * int(size[1]) > MAX_MATRIX:
        raise ValueError(f"it has {size[0]} × {size[1]} cells; up to {MAX_MATRIX:,} are read")
    return matrix_ties(mmread(BytesIO(content), spmatrix=False))


def _numpy(content: bytes, path: Path, encoding: str | None) -> TieList:
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


def _of_array(values: Any) -> TieList:
    import numpy as np

    if values.ndim == 2 and values.shape[0] == values.shape[1] != 2:
        return matrix_ties(values)
    if values.ndim == 2 and 2 in values.shape and values.shape != (2, 2) and np.issubdtype(values.dtype, np.integer):
        ties = TieList()
        for follower, followee in (values if values.shape[1] == 2 else values.T).tolist():
            ties.add(str(follower), str(followee))
        return ties
    raise ValueError(f"it has the shape {values.shape}; wanted a square matrix, or pairs of row numbers")


# -- lists of neighbours


def _adjacency_list(content: bytes, path: Path, encoding: str | None) -> TieList:
    """Read lines of a follower and all its followees."""
    ties = TieList(notes=["the first of each line follows all others on it, one way"])
    for line, text in enumerate(re.split(r"\r\n|\r|\n", decoded(content, path, encoding)), 1):
        own = text.partition("#")[0].strip()
        separator = next((sign for sign in "\t;," if sign in own), None)
        follower, *followees = [cell.strip().strip(":") for cell in own.split(separator)] or [""]
        for followee in filter(None, followees):
            ties.add(follower, followee, line)
    return ties


type NetworkReader = Callable[[bytes, Path, str | None], TieList | None]

READERS: Mapping[str, tuple[str, NetworkReader]] = {
    ".graphml": ("GraphML", _graphml),
    ".gexf": ("GEXF", _gexf),
    ".gml": ("GML", _gml),
    **dict.fromkeys((".net", ".paj"), ("Pajek", _pajek)),
    ".mtx": ("Matrix Market", _matrix_market),
    **dict.fromkeys((".npz", ".npy"), ("NumPy", _numpy)),
    **dict.fromkeys((".adjlist", ".adj"), ("adjacency list", _adjacency_list)),
    ".json": ("JSON", json_ties),
}
"""Suffix → name of the form, and the function that reads it."""

BROKEN = (
    *(ParseError, OSError, KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError, EOFError),
    *(zipfile.BadZipFile, OverflowError, StopIteration),
)
"""Exceptions of readers on files that they cannot read, besides networkx's own."""
