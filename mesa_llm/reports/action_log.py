"""Actions and their outcomes, as tables: posts, engagement, activity, follows, trades and interactions."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from mesa_llm.engine.activation import llm_agents
from mesa_llm.text import tone
from mesa_llm.world import Rules

if TYPE_CHECKING:
    from mesa_llm.model.model import LLMModel

POST, VOTE, FOLLOW, BUY, SELL = "create_post", "vote", "follow", "buy_shares", "sell_shares"

PASS = "do_nothing"

REPLIES = frozenset({"reply", "create_comment"})

REPOSTS = frozenset({"repost", "quote_post"})

VOTES = {"vote": 0, "like_post": 1, "like_comment": 1, "dislike_post": -1, "dislike_comment": -1}
"""Rating actions → their value; 0 if the value is an argument of the action."""


@dataclass(frozen=True)
class LoggedAction:
    """One action of an agent."""

    step: int
    """Step of the action."""

    agent: int | str
    """Id of the agent."""

    name: str
    """Name of the agent."""

    action: str
    """Name of the action."""

    arguments: Mapping[str, Any]
    """Arguments of the action."""

    ok: bool
    """Whether the world accepted it."""

    facts: Mapping[str, Any]
    """What it did, as returned by the world: the `post_id` of a new post; `shares`, `dollars`, `price` of a trade."""

    @property
    def text(self) -> str:
        """Text the action wrote, or empty."""
        return str(self.arguments.get("content") or self.arguments.get("text") or "")

    @property
    def is_like(self) -> bool:
        """Whether it is an upvote of a post."""
        value = VOTES.get(self.action) or self.arguments.get("value", 1)
        return self.action in VOTES and isinstance(value, int | float) and value > 0


def names_of(model: LLMModel) -> dict[int, str]:
    """Return the names of a model's LLM agents by id."""
    return {agent.unique_id: agent.config.name or f"agent {agent.unique_id}" for agent in llm_agents(model)}


def actions_of(model: LLMModel) -> list[LoggedAction]:
    """Return the actions of a model's agents so far, in order.

    Args:
        model: The model.
    """
    names = names_of(model)
    return [
        LoggedAction(
            row["time"],
            row["agent"],
            names.get(row["agent"], f"agent {row['agent']}"),
            row["action"],
            json.loads(row["arguments"]),
            bool(row["ok"]),
            json.loads(row["facts"]),
        )
        for row in model.runlog.actions().to_dict("records")
    ]


class ActionTables:
    """Tables of agents' actions.

    Attributes:
        entries: The actions, in order.
    """

    def __init__(self, entries: Iterable[LoggedAction], rules: Rules = "corrected") -> None:
        """Store the actions.

        Args:
            entries: The actions, in order.
            rules: `corrected` omits refused actions. `original` counts them among posts, votes, replies and trades, and
                counts passing as activity, as SimSwarm's tables do.
        """
        self.rules: Rules = rules
        self.entries = [entry for entry in entries if entry.ok or rules == "original"]

    @classmethod
    def of(cls, model: LLMModel) -> ActionTables:
        """Return the tables of a run so far."""
        return cls(actions_of(model))

    def _table(self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
        return pd.DataFrame([tuple(row[name] for name in columns) for row in rows], columns=list(columns))

    def top_posts(self, n: int = 20) -> pd.DataFrame:
        """Return the posts with the most likes and shares, without replies. Ties go to the earlier post.

        Args:
            n: Maximum number of posts.

        Returns:
            One row per post: post, agent, name, text, step, likes, dislikes, shares (reposts and replies), engagement
            (likes and shares).
        """
        likes, dislikes, shares = Counter[Any](), Counter[Any](), Counter[Any]()
        for entry in self.entries:
            post = entry.arguments.get("post_id")
            if entry.action in VOTES and "comment_id" not in entry.arguments:
                (likes if entry.is_like else dislikes)[post] += 1
            elif entry.action in REPLIES | REPOSTS:
                shares[post] += 1
        rows: list[dict[str, Any]] = []
        for index, entry in enumerate(entry for entry in self.entries if entry.action == POST):
            post = entry.facts.get("post_id", f"{entry.agent}-r{entry.step}-{index}")
            counts = {"likes": likes[post], "dislikes": dislikes[post], "shares": shares[post]}
            row = {"post": post, "agent": entry.agent, "name": entry.name, "text": entry.text, "step": entry.step}
            rows.append({**row, **counts, "engagement": likes[post] + shares[post]})
        rows.sort(key=lambda row: -row["engagement"])
        columns = ("post", "agent", "name", "text", "step", "likes", "dislikes", "shares", "engagement")
        return self._table(rows[:n], columns)

    def engagement(self) -> pd.DataFrame:
        """Count posts, likes and replies in each step that has any action.

        Returns:
            One row per step: step, posts, likes, replies, active (number of agents that did anything but pass).
        """
        by_step: dict[int, list[LoggedAction]] = {}
        for entry in self.entries:
            by_step.setdefault(entry.step, []).append(entry)
        rows: list[dict[str, Any]] = []
        for step, done in sorted(by_step.items()):
            counts = {
                "posts": sum(entry.action == POST for entry in done),
                "likes": sum(entry.is_like for entry in done),
                "replies": sum(entry.action in REPLIES for entry in done),
            }
            active = {entry.agent for entry in done if entry.action != PASS or self.rules == "original"}
            rows.append({"step": step, **counts, "active": len(active)})
        return self._table(rows, ("step", "posts", "likes", "replies", "active"))

    def trajectories(self) -> pd.DataFrame:
        """Return the activity of each agent by step, without steps that have no actions.

        Returns:
            One row per agent and step: agent, name, step, posts, actions, tone (mean of its posts, -1 to 1; 0 without
            posts). Agents are in the order of their first action.
        """
        done: dict[Any, dict[int, list[LoggedAction]]] = {}
        for entry in self.entries:
            done.setdefault((entry.agent, entry.name), {}).setdefault(entry.step, []).append(entry)
        rows: list[dict[str, Any]] = []
        for (agent, name), steps in done.items():
            for step, entries in sorted(steps.items()):
                posts = [entry.text for entry in entries if entry.action == POST]
                row = {"agent": agent, "name": name, "step": step, "posts": len(posts), "actions": len(entries)}
                rows.append({**row, "tone": tone(" ".join(posts)) if posts else 0.0})
        return self._table(rows, ("agent", "name", "step", "posts", "actions", "tone"))

    def tones(self) -> dict[Any, float]:
        """Return the mean tone of each agent's posts over the steps in which it posted."""
        lived: dict[Any, list[float]] = {}
        for agent, _, _, posts, _, mood in self.trajectories().itertuples(index=False, name=None):
            if posts:
                lived.setdefault(agent, []).append(float(mood))
        return {agent: sum(moods) / len(moods) for agent, moods in lived.items()}

    def profiles(self) -> pd.DataFrame:
        """Return the activity of each agent: agent, name, posts, actions, steps (number of active steps)."""
        table = self.trajectories().groupby(["agent", "name"], sort=False)
        activity = table.agg(posts=("posts", "sum"), actions=("actions", "sum"), steps=("step", "size"))
        return activity.reset_index()

    def follows(self) -> pd.DataFrame:
        """Return who followed whom: follower, followee, is_mutual."""
        follows = ((entry.agent, _followee(entry)) for entry in self.entries if entry.ok)
        edges = [(follower, followee) for follower, followee in follows if followee is not None]
        known = set(edges)
        rows = [{"follower": a, "followee": b, "is_mutual": (b, a) in known} for a, b in edges]
        return self._table(rows, ("follower", "followee", "is_mutual"))

    def trades(self) -> pd.DataFrame:
        """Return all trades, including refused ones under the original rules.

        Returns:
            One row per trade: step, agent, name, side, market, outcome, shares, dollars (paid, received, or offered if
            refused), price (None if unknown), ok.
        """
        rows: list[dict[str, Any]] = []
        for entry in (entry for entry in self.entries if entry.action in (BUY, SELL)):
            order, trade = entry.arguments, entry.facts
            dollars = trade.get("dollars", order.get("amount"))
            row = {"step": entry.step, "agent": entry.agent, "name": entry.name, "market": order.get("market_id")}
            row |= {"outcome": order.get("outcome"), "shares": trade.get("shares"), "dollars": dollars}
            side = "buy" if entry.action == BUY else "sell"
            rows.append({**row, "price": trade.get("price"), "side": side, "ok": entry.ok})
        columns = ("step", "agent", "name", "side", "market", "outcome", "shares", "dollars", "price", "ok")
        return self._table(rows, columns)

    def interactions(self, names: Mapping[Any, str] | None = None) -> pd.DataFrame:
        """Count interactions between agents: follows, replies, likes, dislikes, reposts and mentions in posts.

        Args:
            names: Agent → name, for mentions; None for all agents with actions.

        Returns:
            One row per pair and kind: source, target, kind, weight. Interactions with oneself are left out.
        """
        known = dict(names or {entry.agent: entry.name for entry in self.entries})
        authors = {
            entry.facts["post_id"]: entry.agent
            for entry in self.entries
            if entry.ok and (entry.action == POST or entry.action in REPLIES) and "post_id" in entry.facts
        }
        weights: Counter[tuple[Any, Any, str]] = Counter()
        for entry in self.entries:
            for target, kind in _dealings(entry, authors, known) if entry.ok else ():
                if target in known and target != entry.agent:
                    weights[entry.agent, target, kind] += 1
        rows = [{"source": a, "target": b, "kind": kind, "weight": n} for (a, b, kind), n in weights.items()]
        return self._table(rows, ("source", "target", "kind", "weight"))


def _followee(entry: LoggedAction) -> Any:
    return entry.arguments.get("user_id", entry.arguments.get("agent_id")) if entry.action == FOLLOW else None


def _dealings(entry: LoggedAction, authors: Mapping[Any, Any], names: Mapping[Any, str]) -> list[tuple[Any, str]]:
    """Return the agents an action concerned, and how."""
    if entry.action == POST:
        return [(agent, "mention") for agent, name in names.items() if _mentions(entry.text, name)]
    if (followee := _followee(entry)) is not None:
        return [(followee, "follow")]
    kinds = {
        **dict.fromkeys(REPLIES, "reply"),
        **dict.fromkeys(REPOSTS, "repost"),
        **dict.fromkeys(VOTES, "like" if entry.is_like else "dislike"),
    }
    author = authors.get(entry.arguments.get("post_id"))
    return [(author, kinds[entry.action])] if entry.action in kinds and author is not None else []


def _mentions(text: str, name: str) -> bool:
    """Check whether a text mentions a name, as a whole word or after an @."""
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
