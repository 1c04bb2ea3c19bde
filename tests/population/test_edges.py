"""Follows from files of every form, and users named in every way."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse

from mesa_llm.errors import ConfigError
from mesa_llm.population import Persona, Users, read_edges, read_users

PEOPLE = "name,username,persona\nAnn Lee,ann,Bakes.\nBo,bo,Runs.\nCy,cy,Sings.\nDi,di,Cooks.\n"
EDGES = [[0, 1], [0, 2], [1, 0], [3, 0]]


@pytest.fixture
def users(tmp_path: Path) -> Users:
    (tmp_path / "people.csv").write_text(PEOPLE)
    return read_users(tmp_path / "people.csv")


def edges(path: Path, text: str, users: Users | Sequence[Persona], *, skip: bool = False) -> list[list[int]]:
    path.write_text(text)
    return read_edges(path, users, skip=skip).edges.tolist()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.csv", "follower_id,followee_id\n0,1\n0,2\n1,0\n3,0\n"),
        ("e.csv", "0;1\n0;2\n1;0\n3;0\n"),
        ("e.tsv", "target\tsource\n1\t0\n2\t0\n0\t1\n0\t3\n"),
        ("e.txt", "# Directed graph\n# FromNodeId\tToNodeId\n0\t1\n0\t2\n1\t0\n3\t0\n"),
        ("e.edgelist", "% by networkx\n0 1 {}\n0 2 {}\n1 0 {}\n3 0 {}\n"),
        ("e.csv", "who,whom\nann,bo\nann,cy\nbo,ann\ndi,ann\n"),
        ("e.csv", "@ann,@bo\n@ann,@cy\n@bo,@ann\n@di,@ann\n"),
        ("e.csv", "Ann Lee,Bo\nAnn Lee,Cy\nBo,Ann Lee\nDi,Ann Lee\n"),
        ("e.csv", "since,follower,followee\n2020,ann,bo\n2021,ann,cy\n2020,bo,ann\n2020,di,ann\n"),
        ("e.jsonl", '{"from": 0, "to": 1}\n{"from": 0, "to": 2}\n{"from": 1, "to": 0}\n{"from": 3, "to": 0}\n'),
    ],
)
def test_two_columns_of_every_form_name_users_in_every_way(tmp_path: Path, users: Users, name: str, text: str) -> None:
    assert edges(tmp_path / name, text, users) == EDGES


def test_workbooks_parquet_and_graphs(tmp_path: Path, users: Users) -> None:
    frame = pd.DataFrame(EDGES, columns=["a", "b"])
    frame.to_excel(tmp_path / "e.xlsx", index=False)
    frame.to_parquet(tmp_path / "e.parquet")
    graph: Any = nx.DiGraph([("n0", "n1"), ("n0", "n2"), ("n1", "n0"), ("n3", "n0")])
    nx.set_node_attributes(graph, dict(zip(["n0", "n1", "n2", "n3"], ["ann", "bo", "cy", "di"], strict=True)), "label")
    nx.write_graphml(graph, tmp_path / "e.graphml")
    for name in ("e.xlsx", "e.parquet", "e.graphml"):
        assert read_edges(tmp_path / name, users).edges.tolist() == EDGES, name
    nx.write_graphml(nx.Graph([(0, 1)]), tmp_path / "mutual.graphml")
    assert read_edges(tmp_path / "mutual.graphml", users).edges.tolist() == [[0, 1], [1, 0]]


def test_a_column_of_ids_names_users_before_their_rows(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\n2,Bo\n007,Cy\n")
    users = read_users(tmp_path / "people.csv")
    assert edges(tmp_path / "e.csv", "1,2\n2,007\n", users) == [[0, 1], [1, 2]]
    assert edges(tmp_path / "e.csv", "0,1\n1,2\n", read_users(tmp_path / "people.csv").personas) == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0,1\n1,9\n", r"line 2: found '9'; wanted a row from 0 to 3"),
        ("1,2\n3,4\n", r"found rows 1 to 4; wanted a row from 0 to 3, as rows are numbered from 0;"),
        ("ann,bo\nann,eve\neve,bo\n", r"line 2: found 'eve'; wanted the username of a user \(1 more of 3 follows"),
        ("0\n1\n", "found one column; wanted two"),
        ("ann,bo,3\n", "found 3 columns; wanted two"),
        ("0,1\n2\n", "line 2: found '2'; wanted follower and followee"),
        ("", "the file is empty"),
    ],
)
def test_follows_that_cannot_be_used_say_why(tmp_path: Path, users: Users, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        edges(tmp_path / "e.csv", text, users)


def test_follows_that_cannot_be_used_are_left_out_and_counted(tmp_path: Path, users: Users) -> None:
    (tmp_path / "e.csv").write_text("0,1\n0,1\n2,2\n1,9\n8,1\n3,0\n")
    found = read_edges(tmp_path / "e.csv", users, skip=True)
    assert found.edges.tolist() == [[0, 1], [3, 0]]
    assert (found.n_dropped, found.n_own, found.n_repeated) == (2, 1, 1)
    assert "2 follows that cannot be used" in found.left_out
    assert "line 4: found '9'" in found.reason


def test_a_name_that_several_users_have_names_nobody(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("username,persona\nann,a\nann,b\nbo,c\n")
    users = read_users(tmp_path / "people.csv")
    with pytest.raises(ConfigError, match=r"'ann', the username of several users; name users by .* a column 'id'"):
        edges(tmp_path / "e.csv", "bo,ann\n", users)
    assert edges(tmp_path / "e.csv", "2,1\n1,0\n", users) == [[1, 0], [2, 1]]


def test_rows_left_out_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,persona\nAnn,a\nbroken\nCy,c\n")
    users = read_users(tmp_path / "people.csv", skip=True)
    assert edges(tmp_path / "e.csv", "0,2\n2,1\n", users, skip=True) == [[0, 1]]


@pytest.mark.parametrize(
    "text", ["<graphml>", "<x/>", '<!DOCTYPE x [<!ENTITY a "' + "x" * 9 + '">]><graphml>&a;</graphml>']
)
def test_broken_graphs_are_refused(tmp_path: Path, users: Users, text: str) -> None:
    with pytest.raises(ConfigError, match=r"e\.graphml"):
        edges(tmp_path / "e.graphml", text, users)


def test_an_explosion_of_entities_is_refused(tmp_path: Path, users: Users) -> None:
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
    text = f'<!DOCTYPE x [<!ENTITY a0 "{"x" * 100}">{entities}]><graphml><graph id="&a9;"/></graphml>'
    with pytest.raises(ConfigError, match="not a readable GraphML"):
        edges(tmp_path / "e.graphml", text, users)


TIES = [(0, 1), (0, 2), (1, 0), (3, 0)]
MATRIX = [[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
LINKS = [{"source": a, "target": b} for a, b in TIES]
NAMES = ["ann", "bo", "cy", "di"]
GRAPH: Any = nx.DiGraph(TIES)


def lines(cells: Sequence[Sequence[Any]], separator: str = ",") -> str:
    return "".join(separator.join(map(str, row)) + "\n" for row in cells)


MIXED_GEXF = """<gexf xmlns="http://gexf.net/1.3" version="1.3"><graph defaultedgetype="directed"><nodes>
<node id="0"/><node id="1"/><node id="2"/><node id="3"/></nodes><edges><edge source="0" target="1" type="undirected"/>
<edge source="0" target="2"/><edge source="3" target="0" type="directed"/></edges></graph></gexf>"""

WRITTEN: dict[str, Any] = {
    "g.graphml": lambda path: nx.write_graphml(GRAPH, path),
    "g.gexf": lambda path: nx.write_gexf(GRAPH, path),
    "g.gml": lambda path: nx.write_gml(GRAPH, path),
    "shuffled.gml": lambda path: nx.write_gml(nx.DiGraph([(3, 0), (1, 0), (0, 2), (0, 1)]), path),
    "g.net": lambda path: nx.write_pajek(GRAPH, path),
    "shuffled.net": lambda path: nx.write_pajek(nx.DiGraph([(3, 0), (1, 0), (0, 2), (0, 1)]), path),
    "list.net": lambda path: path.write_text("*Vertices 4\r\n*Arcslist\r\n1 2 3\r\n2 1\r\n4 1\r\n"),
    "matrix.net": lambda path: path.write_text("*Vertices 4\n*Matrix\n" + lines(MATRIX, " ")),
    "g.json": lambda path: path.write_text(json.dumps(nx.node_link_data(GRAPH))),
    "edges.json": lambda path: path.write_text(json.dumps({"edges": LINKS, "nodes": [], "directed": True})),
    "adjacency.json": lambda path: path.write_text(json.dumps(nx.adjacency_data(GRAPH))),
    "lists.json": lambda path: path.write_text(json.dumps(nx.to_dict_of_lists(GRAPH))),
    "dicts.json": lambda path: path.write_text(json.dumps(nx.to_dict_of_dicts(GRAPH))),
    "cyto.json": lambda path: path.write_text(json.dumps(nx.cytoscape_data(GRAPH))),
    "pairs.json": lambda path: path.write_text(json.dumps([*TIES, (3, 0)])),
    "elements.json": lambda path: path.write_text(json.dumps({"directed": True, "nodes": [0], "edges": TIES})),
    "shuffled.csv": lambda path: pd.DataFrame(MATRIX, NAMES, NAMES).iloc[::-1].to_csv(path),
    "followers.csv": lambda path: path.write_text("user_id,follower_id\n" + lines([(b, a) for a, b in TIES])),
    "comments.txt": lambda path: path.write_text(lines([(*tie, "# since 2020") for tie in TIES], " ")),
    "mixed.gexf": lambda path: path.write_text(MIXED_GEXF),
    "matrix.json": lambda path: path.write_text(json.dumps(MATRIX)),
    "records.json": lambda path: path.write_text(json.dumps(LINKS)),
    "g.adjlist": lambda path: nx.write_adjlist(GRAPH, path),
    "g.edgelist": lambda path: nx.write_weighted_edgelist(nx.DiGraph([(*tie, {"weight": 2}) for tie in TIES]), path),
    "data.edgelist": lambda path: nx.write_edgelist(nx.DiGraph([(*tie, {"weight": 2}) for tie in TIES]), path),
    "m.mtx": lambda path: scipy.io.mmwrite(path, scipy.sparse.coo_array(np.array(MATRIX))),
    "dense.mtx": lambda path: scipy.io.mmwrite(path, np.array(MATRIX)),
    "m.npz": lambda path: scipy.sparse.save_npz(path, scipy.sparse.csr_array(np.array(MATRIX))),
    "m.npy": lambda path: np.save(path, np.array(MATRIX)),
    "pairs.npy": lambda path: np.save(path, np.array(TIES)),
    "m.csv": lambda path: path.write_text(lines(MATRIX)),
    "m.txt": lambda path: path.write_text(lines(MATRIX, " ")),
    "named.csv": lambda path: pd.DataFrame(MATRIX, NAMES, NAMES).to_csv(path),
    "numbered.csv": lambda path: pd.DataFrame(MATRIX).to_csv(path),
    "head.csv": lambda path: pd.DataFrame(MATRIX, NAMES, NAMES).to_csv(path, index=False),
    "named.xlsx": lambda path: pd.DataFrame(MATRIX, NAMES, NAMES).to_excel(path),
    "headless.xlsx": lambda path: pd.DataFrame(TIES).to_excel(path, index=False, header=False),
    "w.csv": lambda path: path.write_text("Source,Target,Weight\n0,1,2\n0,2,.5\n1,0,1\n3,0,1\n2,1,0\n2,3,-1\n"),
    "signs.txt": lambda path: path.write_text(lines([*[(*tie, 1) for tie in TIES], (2, 3, -1)], "\t")),
    "snap.txt": lambda path: path.write_text("# ToNodeId FromNodeId\n" + lines([(b, a) for a, b in TIES], "\t")),
    "konect.tsv": lambda path: path.write_text("% asym unweighted\n" + lines([(a + 1, b + 1) for a, b in TIES], " ")),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_every_form_of_a_network_is_the_same_network(tmp_path: Path, users: Users, name: str) -> None:
    WRITTEN[name](tmp_path / name)
    assert read_edges(tmp_path / name, users).edges.tolist() == EDGES
    if name[-1] != "x":
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        assert read_edges(tmp_path / f"{name}.gz", users).edges.tolist() == EDGES


UNDIRECTED: dict[str, Any] = {
    "g.csv": lambda path: path.write_text("Source,Target,Type\n0,1,Undirected\n1,2,undirected\n3,0,Directed\n"),
    "d.csv": lambda path: path.write_text("from,to,directed\n0,1,false\n1,2,FALSE\n3,0,true\n"),
    "g.net": lambda path: path.write_text("*vertices 4\n*arcs\n4 1\n*edges\n1 2\n2 3 1.0\n"),
    "g.json": lambda path: path.write_text('{"nodes": [], "links": [{"source": 0, "target": 1}, {"source": 1, '
        '"target": 2}, {"source": 3, "target": 0, "directed": true}], "directed": false}'),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDIRECTED)
def test_a_tie_without_direction_counts_both_ways_and_is_counted(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    UNDIRECTED[name](tmp_path / name)
    assert read_edges(tmp_path / name, 4).edges.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [3, 0]]
    assert "2 ties without a direction: each counts both ways" in caplog.text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("snap.txt", "# Undirected graph: amazon\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n"),
        ("konect.tsv", "% sym unweighted\n1 2\n2 3\n"),
        ("m.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n"),
        ("cy.json", '[{"data": {"id": "a"}}, {"data": {"source": "a", "target": "b"}}, {"data": {"source": "b", '
            '"target": "c"}}]'),
        ("d3.json", '{"nodes": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "links": [{"source": 0, "target": 1}, '
            '{"source": 1, "target": 2}]}'),
        ("g.gexf", '<gexf xmlns="http://gexf.net/1.3" version="1.3"><graph defaultedgetype="undirected"><nodes>'
            '<node id="0"/><node id="1"/><node id="2"/></nodes><edges><edge source="0" target="1"/>'
            '<edge source="1" target="2"/></edges></graph></gexf>'),
        ("g.gml", "graph [\n node [ id 0 ] node [ id 1 ] node [ id 2 ]\n edge [ source 0 target 1 ]\n"
            " edge [ source 1 target 2 ]\n]\n"),
    ],
)  # fmt: skip
def test_what_a_file_says_of_direction_is_heard(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = read_edges(tmp_path / name, [Persona(name=one) for one in "abc"])
    assert found.edges.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]


def test_weights_that_are_no_tie_are_left_out_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    WRITTEN["w.csv"](tmp_path / "w.csv")
    assert read_edges(tmp_path / "w.csv", 4).edges.tolist() == EDGES
    for said in ("1 tie of weight 0", "1 tie of a weight below 0", "weights are not used"):
        assert said in caplog.text


def test_labels_name_users_before_row_numbers(tmp_path: Path, users: Users) -> None:
    graph: Any = nx.DiGraph([(0, 1)])
    nx.set_node_attributes(graph, {0: "di", 1: "ann"}, "label")
    for name, write in (("g.graphml", nx.write_graphml), ("g.gexf", nx.write_gexf)):
        write(graph, tmp_path / name)
        assert read_edges(tmp_path / name, users).edges.tolist() == [[3, 0]]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("g.dot", "digraph { 0 -> 1 }", "DOT of Graphviz, which is not read; write it as GraphML"),
        ("x.txt", "dl n=3 format=fullmatrix\ndata:\n0 1 1\n", "DL of UCINET, which is not read"),
        ("a.txt", "0 1 2\n1 2\n2 0\n", "line 2: found 2 cells .* read from a file called .adjlist"),
        ("a.txt", "0 1\n1 2 0\n", "line 2: found 3 cells"),
        ("g.lgl", "# 0\n1 1\n2 1\n", "LGL of igraph, which is not read"),
        ("g.graphml", "<graphml><graph id='a'/>\n<graph id='b'/></graphml>", "it has 2 graphs; wanted one"),
        ("g.g6", "A_", "graph6, which is not read"),
        ("m.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 5 1\n1 2\n", "3 × 5, a network of two kinds"),
        ("m.mtx", "%%MatrixMarket matrix array real general\n99999 99999\n1\n", "up to 100,000,000 are read"),
        ("g.net", "*vertices 3 2\n*edges\n1 3\n", "line 1: it has two kinds of vertices"),
        ("g.net", "*vertices 3\n*arcs\n1 4\n", "line 3: found vertex 4; wanted one from 1 to 3"),
        ("g.json", "[[0, 1], [1, 0]]", "lists that may be pairs, neighbours or rows"),
        ("g.json", '{"name": "a", "children": []}', "it is a tree"),
        ("x.tsv", "% bip unweighted\n1 1\n", "ties between two kinds of nodes"),
        ("e.csv", "1,2\n3,4\n", "found rows 1 to 4; wanted a row from 0 to 3"),
        ("g.gexf", '<!DOCTYPE x [<!ENTITY a "b">]><gexf><graph/></gexf>', "it has a DOCTYPE"),
        ("m.npz", "PK", "is not a readable NumPy file"),
    ],
)
def test_a_network_that_is_not_read_is_refused_with_its_form(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text)
    for skip in (False, True):
        with pytest.raises(ConfigError, match=why):
            read_edges(tmp_path / name, 4, skip=skip)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "0,1,0,0\n0,0,1,0\n0,0,0,1\n0,0,0,0\n",
            "all ties stand on one side of the diagonal; if they have no direction",
        ),
        ("source,target\n", "it holds no ties, so nobody follows anybody"),
    ],
)
def test_a_network_that_may_lack_half_or_all_of_its_ties_is_said(
    tmp_path: Path, text: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    edges(tmp_path / "e.csv", text, [Persona(name=one) for one in "abcd"])
    assert said in caplog.text


def test_names_are_the_same_however_their_accents_are_stored(tmp_path: Path) -> None:
    assert edges(tmp_path / "e.csv", "Zoe\u0308,Bo\n", [Persona(name="Zo\u00eb"), Persona(name="Bo")]) == [[0, 1]]


def test_a_file_that_may_count_from_one_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert edges(tmp_path / "e.csv", "1,2\n2,1\n", [Persona(name=one) for one in "abcd"]) == [[1, 2], [2, 1]]
    assert "nobody follows or is followed by row 0; if the file counts from 1, subtract 1" in caplog.text
