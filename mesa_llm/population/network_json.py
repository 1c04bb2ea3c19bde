"""Read networks in JSON: node-link, adjacency, neighbours by name, pairs, and matrices."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mesa_llm.population.ties import NODE_NAMES, TieList, graph_ties, matrix_ties, weight_in
from mesa_llm.tables import decoded, folded


def json_ties(content: bytes, path: Path, encoding: str | None) -> TieList | None:
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

        return graph_ties(nx.adjacency_graph(graph))
    if "children" in graph:
        raise ValueError("it is a tree with children")
    return _neighbours(outer)


def _json_lists(rows: Sequence[Any]) -> TieList | None:
    """Read a list of lists: pairs, or a matrix; None if it is a list of objects."""
    if rows and all(isinstance(row, dict) and isinstance(row.get("data"), dict) for row in rows):  # Cytoscape
        nodes, links = ([row for row in rows if ("source" in row["data"]) == is_link] for is_link in (False, True))
        return _node_link({"nodes": nodes}, links)
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
    ties = TieList()
    for follower, followee, *weight in rows:
        ties.add(_text(follower), _text(followee), weight=weight[0] if weight else None)
    return ties


def _are_links(links: Sequence[Any]) -> bool:
    plain = [_inner(link) for link in links]
    return all({"source", "target"} <= set(link) or {"from", "to"} <= set(link) for link in plain)


def _inner(item: Any) -> dict[str, Any]:
    """Return the attributes of a node or link; Cytoscape's and graphology's stand one level below.

    A link may be a list of two ends, and perhaps a weight; a node its id.
    """
    if isinstance(item, list) and len(cast("list[Any]", item)) in (2, 3):
        return dict(zip(("source", "target", "weight"), cast("list[Any]", item), strict=False))
    if isinstance(item, str | int):
        return {"id": item}
    own = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    below = next((own[name] for name in ("data", "attributes") if isinstance(own.get(name), dict)), {})
    return own | below


def _node_link(graph: Mapping[str, Any], links: Sequence[Any]) -> TieList:
    """Read links between nodes, as networkx, D3, Cytoscape, vis.js, graphology and JSON Graph write them."""
    listed: Any = graph.get("nodes", [])
    named = [{"id": name, **_inner(node)} for name, node in listed.items()] if isinstance(listed, dict) else None
    nodes = named if named is not None else [_inner(node) for node in listed]
    ids = [next((node[name] for name in ("id", "key", "name") if name in node), None) for node in nodes]
    has_ids = all(any(name in node for name in ("id", "key")) for node in nodes)
    options = graph.get("options")
    kind = cast("dict[str, Any]", options).get("type") if isinstance(options, dict) else None
    directed = {"directed": True, "undirected": False}.get(str(kind), graph.get("directed"))
    ties = TieList()
    if directed is None:
        ties.notes.append('the file does not say "directed": true, so its links have no direction')
    for link in map(_inner, links):
        ends = [link["source"], link["target"]] if "source" in link else [link["from"], link["to"]]
        ends = [cast("dict[str, Any]", end).get("id", end) if isinstance(end, dict) else end for end in ends]
        if not has_ids and all(isinstance(end, int) and 0 <= end < len(ids) for end in ends):
            ends = [end if ids[end] is None else ids[end] for end in ends]  # D3 numbers nodes
        own = link.get("directed", not link["undirected"] if "undirected" in link else directed)
        ties.add(_text(ends[0]), _text(ends[1]), weight=weight_in(link), is_mutual=not own)
    ties.labels = [
        {
            _text(own): str(node[name]).strip()
            for own, node in zip(ids, nodes, strict=True)
            if node.get(name) is not None
        }
        for name in NODE_NAMES
    ]
    return ties


def _neighbours(document: Mapping[str, Any]) -> TieList | None:
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
    ties = TieList(notes=["each name follows those listed under it, one way"])
    for follower, followees in document.items():
        for followee in followees:
            weight = followees[followee] if isinstance(followees, dict) else None
            own = cast("dict[str, Any]", weight) if isinstance(weight, dict) else None
            ties.add(follower, _text(followee), weight=weight if own is None else weight_in(own))
    return ties


def _text(name: Any) -> str:
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name).strip()
