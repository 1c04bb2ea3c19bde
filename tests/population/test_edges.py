"""Follows from files of every form, and users named in every way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest

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
        ("1,2\n3,4\n", r"found '4'; wanted a row from 0 to 3; rows are numbered from 0;"),
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
