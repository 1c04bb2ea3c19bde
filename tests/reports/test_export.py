"""Exports of runs: tables that pandas reads, and graphs that networkx reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx
import pandas as pd
import pytest
from typer.testing import CliRunner

from mesa_llm import Post, ScriptedLLM, ToolCall
from mesa_llm.cli.app import app
from mesa_llm.reports import export, network_of, tables_of
from mesa_llm_models.social.model import SocialModel
from mesa_llm_models.stock_agent.model import StockAgentModel
from mesa_llm_models.three_worlds.model import ThreeWorldsModel


@pytest.fixture(scope="module")
def town() -> ThreeWorldsModel:
    model = ThreeWorldsModel(n_agents=6, rng=1)
    model.run_for(3)
    model.inject(Post(text="=HYPERLINK(1)", author="Newsroom"))
    model.run_for(5)
    return model


def test_the_files_hold_what_the_worlds_hold(town: ThreeWorldsModel, tmp_path: Path) -> None:
    written = export(town, tmp_path / "out")
    read = {name: pd.read_csv(tmp_path / "out" / name) for name in written if name.endswith(".csv")}
    assert {name: len(table) for name, table in read.items()} == {n: written[n] for n in read}
    assert read["measures.csv"]["step"].tolist() == list(range(9))
    assert read["measures.csv"]["posts"].tolist()[-1] == town.posts
    own = read["trades.csv"][read["trades.csv"]["agent"] != town.crossings.crowd]
    assert len(own) == town.trades
    assert read["interventions.csv"]["kind"].tolist() == ["post"]
    assert "'=HYPERLINK(1)" in read["posts.csv"]["text"].tolist()
    assert sum(read["engagement.csv"]["posts"].tolist()) <= len(read["posts.csv"])
    assert read["top_posts.csv"]["engagement"].is_monotonic_decreasing


def test_who_passes_is_not_active() -> None:
    model = SocialModel(rng=1)
    model.run_for(3)
    tables = tables_of(model)
    assert tables["engagement"]["active"].tolist() == tables["measures"]["active"].tolist()[1:]


def test_the_graph_is_read_again_with_its_kinds_and_stances(town: ThreeWorldsModel, tmp_path: Path) -> None:
    export(town, tmp_path)
    graph = networkx.read_graphml(tmp_path / "network.graphml", force_multigraph=True)
    assert graph.number_of_edges() == network_of(town).number_of_edges()
    follows = [edge for *edge, kind in graph.edges(data="kind") if kind == "follow"]
    assert len(follows) == len(town.social.measures.follow_edges())
    citizen = next(iter(town.agents))
    assert graph.nodes[str(citizen.unique_id)]["stance"] == citizen.position
    assert graph.nodes[str(citizen.unique_id)]["label"] == citizen.config.name


def test_what_was_refused_is_in_the_actions_and_counts_nowhere_else() -> None:
    def vote_once(request: Any) -> ToolCall:
        is_first = request.salt.time == 1
        return ToolCall("vote", {"post_id": 1, "value": 1}) if is_first else ToolCall("create_post", {"content": " "})

    model = SocialModel(n_agents=3, rng=1, llm=ScriptedLLM(vote_once), preset="simswarm")
    model.inject(Post(text="Vote for me.", author=model.world.names[1]))
    model.run_for(2)
    tables = tables_of(model)
    assert len(tables["actions"]) > 2
    counted = ((tables["engagement"], "likes"), (tables["actions"], "ok"), (tables["top_posts"], "likes"))
    assert [sum(table[name].tolist()) for table, name in counted] == [2, 2, 2]


def test_a_model_without_posts_exports_what_it_has() -> None:
    model = StockAgentModel(n_agents=4, rng=1)
    model.run_for(2)
    tables = tables_of(model)
    assert {"measures", "agents", "actions", "trades", "orders"} <= tables.keys()
    assert "top_posts" not in tables
    assert len(tables["trades"]) == len(model.world.history.trades)


def test_a_log_is_exported_on_the_command_line(tmp_path: Path) -> None:
    model = SocialModel(n_agents=4, rng=1, log=tmp_path / "run.sqlite")
    model.run_for(2)
    wanted = tables_of(model)["actions"]
    model.close()
    words = ["export", str(tmp_path / "run.sqlite"), "--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(app, words)
    assert json.loads(done.stdout)["files"]["actions.csv"] == len(wanted)
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(app, [*words[:3], str(tmp_path / "file")])
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
