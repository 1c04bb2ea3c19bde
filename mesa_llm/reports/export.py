"""Exports for pandas, networkx, Gephi and others: the tables of a run as CSV, its interactions as GraphML."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.reports.action_log import POST, VOTES, ActionTables, names_of
from mesa_llm.reports.private_data import require_no_keys
from mesa_llm.text import one_line, spreadsheet_cell
from mesa_llm.world import Tabular

if TYPE_CHECKING:
    import networkx

TOP_POSTS = 20
"""Number of posts in the table of top posts."""

MAX_NODES = 100_000
"""Number of agents above which a graph includes only agents with actions."""


def tables_of(model: LLMModel) -> dict[str, pd.DataFrame]:
    """Return the tables of a run so far: measures, actions, events, and the tables of its worlds.

    Args:
        model: The model.

    Returns:
        Name → table, without empty ones: `measures` (one row per step), `agents` (one row per step and agent, if the
        data collector collects any), `actions`, `events`, `interventions`; `profiles` and `trajectories` of agents;
        where there are posts, `engagement` by step and `top_posts`; the tables of the worlds.
    """
    tables = {**dict(_collected(model)), **dict(_logged(model)), **dict(_done(model))}
    for world in model.worlds:
        if isinstance(world, Tabular):
            for name, rows in world.tables().items():
                tables[name if name not in tables else f"{world.name}_{name}"] = pd.DataFrame(rows)
    if "posts" in tables and len(posts := tables["posts"]):
        tables["top_posts"] = top_posts(posts)
    return {name: table for name, table in tables.items() if len(table)}


def top_posts(posts: pd.DataFrame, n: int = TOP_POSTS) -> pd.DataFrame:
    """Return the posts with the most likes and shares. Ties go to the earlier post.

    Args:
        posts: One row per post, with likes, shares and kind.
        n: Maximum number of posts.
    """
    own = posts[~posts["kind"].isin(("reply", "repost"))] if "kind" in posts else posts
    ranked = own.assign(engagement=own["likes"] + own["shares"])
    return ranked.sort_values("engagement", ascending=False, kind="stable").head(n).reset_index(drop=True)


def _collected(model: LLMModel) -> Iterator[tuple[str, pd.DataFrame]]:
    collector: Any = model.datacollector
    if collector is None:
        return
    measures: pd.DataFrame = collector.get_model_vars_dataframe()
    first = int(model.time) - len(measures) + 1
    measures.insert(0, "step", range(first, first + len(measures)), allow_duplicates=True)
    yield "measures", measures
    if collector.agent_reporters:
        agents: pd.DataFrame = collector.get_agent_vars_dataframe().reset_index()
        agents = agents.rename(columns={"Step": "step", "AgentID": "agent", "Time": "step"})  # Mesa 3 and 4
        yield "agents", agents.astype({"step": int})


def _logged(model: LLMModel) -> Iterator[tuple[str, pd.DataFrame]]:
    names = names_of(model)
    actions = model.runlog.actions().rename(columns={"time": "step"})
    actions.insert(2, "name", [names.get(agent, "") for agent in actions["agent"]])
    yield "actions", actions
    yield "events", model.runlog.events().rename(columns={"time": "step"})
    done = [
        {"step": one.step, "kind": one.intervention.kind, "what": one.text, "refusal": one.refusal}
        for one in model.interventions.log
    ]
    yield "interventions", pd.DataFrame(done)


def _done(model: LLMModel) -> Iterator[tuple[str, pd.DataFrame]]:
    tables = ActionTables.of(model)
    yield "profiles", tables.profiles()
    yield "trajectories", tables.trajectories()
    if any(entry.action == POST or entry.action in VOTES for entry in tables.entries):
        yield "engagement", tables.engagement()


def network_of(model: LLMModel) -> networkx.MultiDiGraph[Any]:
    """Return follows and interactions as a graph.

    Args:
        model: The model.

    Returns:
        Nodes: agents and accounts, by number, with name, actions, posts, steps, tone, and stance where the model has
            one. Edges: `kind` (follow, reply, like, dislike, repost, mention) and `weight` (count).
    """
    import networkx

    tables, names = ActionTables.of(model), names_of(model)
    profiles = {row["agent"]: row for row in rows_of(tables.profiles())}
    tones = tables.tones()
    stances = model.stances()
    follows = [row for world in model.worlds if isinstance(world, Tabular) for row in world.tables().get("follows", ())]
    nodes = {**names, **{row["follower"]: "" for row in follows if row["follower"] not in names}}
    if len(nodes) > MAX_NODES:
        nodes = {agent: name for agent, name in nodes.items() if agent in profiles}
    graph: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph()
    for agent, name in nodes.items():
        own = profiles.get(agent, {})
        counts = {field: int(own.get(field, 0)) for field in ("posts", "actions", "steps")}
        stance = {"stance": float(stances[agent])} if agent in stances else {}
        graph.add_node(agent, label=one_line(name) or str(agent), tone=float(tones.get(agent, 0.0)), **counts, **stance)
    for row in follows:
        if row["follower"] in nodes and row["followee"] in nodes:
            graph.add_edge(row["follower"], row["followee"], kind="follow", weight=1)
    for row in rows_of(tables.interactions(nodes)):
        if not (follows and row["kind"] == "follow"):
            graph.add_edge(row["source"], row["target"], kind=row["kind"], weight=int(row["weight"]))
    return graph


def export(model: LLMModel, folder: str | Path) -> dict[str, int]:
    """Write the tables and the graph of a run to a folder, unless a key stands in them.

    Args:
        model: The model.
        folder: The folder; it is created if needed.

    Returns:
        File → number of its rows, or of the graph's edges.

    Raises:
        ConfigError: If a key stands in them, or the folder cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="mesa-llm-") as draft:
        counts = write_tables(model, Path(draft))
        require_no_keys(Path(draft).iterdir(), Path(draft))
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            for name in counts:
                shutil.copyfile(Path(draft, name), Path(folder, name))
        except OSError as error:
            raise ConfigError(f"{str(folder)!r} cannot be written: {error.strerror}") from error
    return counts


def write_tables(model: LLMModel, folder: Path) -> dict[str, int]:
    """Write the tables and the graph of a run to a folder, whatever stands in them.

    Args:
        model: The model.
        folder: The folder; it is created if needed.

    Returns:
        File → number of its rows, or of the graph's edges.

    Raises:
        ConfigError: If the folder cannot be written.
    """
    import networkx

    counts: dict[str, int] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables_of(model).items():
            table.map(spreadsheet_cell).to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
            counts[f"{name}.csv"] = len(table)
        graph = network_of(model)
        if graph.number_of_edges():
            networkx.write_graphml(graph, folder / "network.graphml")
            counts["network.graphml"] = graph.number_of_edges()
    except OSError as error:
        raise ConfigError(f"{str(folder)!r} cannot be written: {error.strerror}") from error
    return counts


def rows_of(table: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Return the rows of a table by column; empty without a table."""
    if table is None:
        return []
    return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False, name=None)]
