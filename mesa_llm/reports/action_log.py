"""What agents did in a run, as tables: posts, engagement, what each did, follows, trades, who dealt with whom."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from mesa_llm.engine.activation import llm_agents
from mesa_llm.worlds import Rules
from mesa_llm.worlds.beliefs import tone

if TYPE_CHECKING:
    from mesa_llm.model.model import LLMModel

POST, VOTE, FOLLOW, BUY, SELL = "create_post", "vote", "follow", "buy_shares", "sell_shares"

PASS = "do_nothing"

REPLIES = frozenset({"reply", "create_comment"})

REPOSTS = frozenset({"repost", "quote_post"})

VOTES = {"vote": 0, "like_post": 1, "like_comment": 1, "dislike_post": -1, "dislike_comment": -1}
"""Actions that rate something → their value; 0: the value is an argument of the action."""

OWN_POST = re.compile(r"post (\d+)\.$")
"""Finds the id of a new post in the social network's reply to its author."""

TRADED = re.compile(r"(?P<shares>[\d,]+\.?\d*) (?:YES|NO) shares of .* for \$(?P<cost>[\d,]+\.?\d*)")
"""Finds shares and dollars in the market's reply to a trader."""


@dataclass(frozen=True)
class Deed:
    """Something that somebody did."""

    step: int
    """Step in which it was done."""

    agent: int | str
    """Id of the agent who did it."""

    name: str
    """Name of the agent."""

    action: str
    """Name of the action."""

    arguments: Mapping[str, Any]
    """Arguments of the action."""

    ok: bool
    """Whether the world accepted it."""

    result: Mapping[str, Any]
    """Its result: the `post_id` of a new post; `shares` and `cost` (or `proceeds`) and `price` of a trade."""

    @property
    def text(self) -> str:
        """What was written; empty if nothing was."""
        return str(self.arguments.get("content") or self.arguments.get("text") or "")

    @property
    def is_like(self) -> bool:
        """Whether it is a vote for a post."""
        value = VOTES.get(self.action) or self.arguments.get("value", 1)
        return self.action in VOTES and isinstance(value, int | float) and value > 0


def names_of(model: LLMModel) -> dict[int, str]:
    """Return the names of a model's agents that think, by number."""
    return {agent.unique_id: agent.config.name or f"agent {agent.unique_id}" for agent in llm_agents(model)}


def actions_of(model: LLMModel) -> list[Deed]:
    """Return what the agents of a model have done so far, in order.

    Args:
        model: The model.
    """
    names = names_of(model)
    return [
        Deed(
            row["time"],
            row["agent"],
            names.get(row["agent"], f"agent {row['agent']}"),
            row["action"],
            json.loads(row["arguments"]),
            bool(row["ok"]),
            _result(row["action"], str(json.loads(row["result"]))),
        )
        for row in model.runlog.actions().to_dict("records")
    ]


def _result(action: str, text: str) -> dict[str, Any]:
    """Read the result of an action from the text with which the world reported it."""
    if action == POST or action in REPLIES:
        found = OWN_POST.search(text)
        return {"post_id": int(found[1])} if found else {}
    if action in (BUY, SELL) and (found := TRADED.search(text)):
        numbers = {name: float(number.replace(",", "")) for name, number in found.groupdict().items()}
        return {"shares": numbers["shares"], "cost" if action == BUY else "proceeds": numbers["cost"]}
    return {}


class ActionTables:
    """Tables of what agents did.

    Attributes:
        deeds: What was done, in order.
    """

    def __init__(self, deeds: Iterable[Deed], rules: Rules = "corrected") -> None:
        """Keep the deeds.

        Args:
            deeds: What was done, in order.
            rules: `corrected` leaves out what the worlds refused; `original` counts it among posts, votes, replies and
                trades, and who passes as active, as SimSwarm's tables do.
        """
        self.rules: Rules = rules
        self.deeds = [deed for deed in deeds if deed.ok or rules == "original"]

    @classmethod
    def of(cls, model: LLMModel) -> ActionTables:
        """Return the tables of a run so far."""
        return cls(actions_of(model))

    def _table(self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
        return pd.DataFrame([tuple(row[name] for name in columns) for row in rows], columns=list(columns))

    def top_posts(self, n: int = 20) -> pd.DataFrame:
        """Return the posts that were liked and passed on most, without replies; ties go to the earlier post.

        Args:
            n: Maximum number of posts.

        Returns:
            One row a post: post, agent, name, text, step, likes, dislikes, shares (reposts and replies), engagement
            (likes and shares).
        """
        likes, dislikes, shares = Counter[Any](), Counter[Any](), Counter[Any]()
        for deed in self.deeds:
            post = deed.arguments.get("post_id")
            if deed.action in VOTES and "comment_id" not in deed.arguments:
                (likes if deed.is_like else dislikes)[post] += 1
            elif deed.action in REPLIES | REPOSTS:
                shares[post] += 1
        rows: list[dict[str, Any]] = []
        for index, deed in enumerate(deed for deed in self.deeds if deed.action == POST):
            post = deed.result.get("post_id", f"{deed.agent}-r{deed.step}-{index}")
            counts = {"likes": likes[post], "dislikes": dislikes[post], "shares": shares[post]}
            row = {"post": post, "agent": deed.agent, "name": deed.name, "text": deed.text, "step": deed.step}
            rows.append({**row, **counts, "engagement": likes[post] + shares[post]})
        rows.sort(key=lambda row: -row["engagement"])
        columns = ("post", "agent", "name", "text", "step", "likes", "dislikes", "shares", "engagement")
        return self._table(rows[:n], columns)

    def engagement(self) -> pd.DataFrame:
        """Return how much was posted, liked and replied in each step in which anything was done.

        Returns:
            One row a step: step, posts, likes, replies, active (number of agents that did anything but pass).
        """
        by_step: dict[int, list[Deed]] = {}
        for deed in self.deeds:
            by_step.setdefault(deed.step, []).append(deed)
        rows: list[dict[str, Any]] = []
        for step, done in sorted(by_step.items()):
            counts = {
                "posts": sum(deed.action == POST for deed in done),
                "likes": sum(deed.is_like for deed in done),
                "replies": sum(deed.action in REPLIES for deed in done),
            }
            active = {deed.agent for deed in done if deed.action != PASS or self.rules == "original"}
            rows.append({"step": step, **counts, "active": len(active)})
        return self._table(rows, ("step", "posts", "likes", "replies", "active"))

    def trajectories(self) -> pd.DataFrame:
        """Return what each agent did in each step in which it did anything.

        Returns:
            One row an agent and step: agent, name, step, posts, actions, tone (of its posts together, -1 to 1; 0
            without any). Agents stand in the order in which they first did something.
        """
        done: dict[Any, dict[int, list[Deed]]] = {}
        for deed in self.deeds:
            done.setdefault((deed.agent, deed.name), {}).setdefault(deed.step, []).append(deed)
        rows: list[dict[str, Any]] = []
        for (agent, name), steps in done.items():
            for step, deeds in sorted(steps.items()):
                posts = [deed.text for deed in deeds if deed.action == POST]
                row = {"agent": agent, "name": name, "step": step, "posts": len(posts), "actions": len(deeds)}
                rows.append({**row, "tone": tone(" ".join(posts)) if posts else 0.0})
        return self._table(rows, ("agent", "name", "step", "posts", "actions", "tone"))

    def tones(self) -> dict[Any, float]:
        """Return the mean tone of the posts of each agent that posted, over the steps in which it did."""
        lived: dict[Any, list[float]] = {}
        for agent, _, _, posts, _, mood in self.trajectories().itertuples(index=False, name=None):
            if posts:
                lived.setdefault(agent, []).append(float(mood))
        return {agent: sum(moods) / len(moods) for agent, moods in lived.items()}

    def profiles(self) -> pd.DataFrame:
        """Return how active each agent was: agent, name, posts, actions, steps (number of steps with any)."""
        table = self.trajectories().groupby(["agent", "name"], sort=False)
        activity = table.agg(posts=("posts", "sum"), actions=("actions", "sum"), steps=("step", "size"))
        return activity.reset_index()

    def follows(self) -> pd.DataFrame:
        """Return who followed whom: follower, followee, is_mutual."""
        edges = [(deed.agent, followee) for deed in self.deeds if deed.ok and (followee := _followee(deed)) is not None]
        known = set(edges)
        rows = [{"follower": a, "followee": b, "is_mutual": (b, a) in known} for a, b in edges]
        return self._table(rows, ("follower", "followee", "is_mutual"))

    def trades(self) -> pd.DataFrame:
        """Return all trades, refused ones, too, under the original rules.

        Returns:
            One row a trade: step, agent, name, side, market, outcome, shares, dollars (paid, got, or offered in vain),
            price (None: not known), ok.
        """
        rows: list[dict[str, Any]] = []
        for deed in (deed for deed in self.deeds if deed.action in (BUY, SELL)):
            order, trade = deed.arguments, deed.result
            dollars = next((trade[name] for name in ("cost", "proceeds") if name in trade), order.get("amount"))
            row = {"step": deed.step, "agent": deed.agent, "name": deed.name, "market": order.get("market_id")}
            row |= {"outcome": order.get("outcome"), "shares": trade.get("shares"), "dollars": dollars}
            side = "buy" if deed.action == BUY else "sell"
            rows.append({**row, "price": trade.get("price"), "side": side, "ok": deed.ok})
        columns = ("step", "agent", "name", "side", "market", "outcome", "shares", "dollars", "price", "ok")
        return self._table(rows, columns)

    def interactions(self, names: Mapping[Any, str] | None = None) -> pd.DataFrame:
        """Return who dealt with whom, and how often: follows, replies, likes, dislikes, reposts, mentions in posts.

        Args:
            names: Agent → name, for mentions; None: those who did anything.

        Returns:
            One row a pair and kind: source, target, kind, weight; nobody deals with itself.
        """
        known = dict(names or {deed.agent: deed.name for deed in self.deeds})
        authors = {
            deed.result["post_id"]: deed.agent
            for deed in self.deeds
            if deed.ok and (deed.action == POST or deed.action in REPLIES) and "post_id" in deed.result
        }
        weights: Counter[tuple[Any, Any, str]] = Counter()
        for deed in self.deeds:
            for target, kind in _dealings(deed, authors, known) if deed.ok else ():
                if target in known and target != deed.agent:
                    weights[deed.agent, target, kind] += 1
        rows = [{"source": a, "target": b, "kind": kind, "weight": n} for (a, b, kind), n in weights.items()]
        return self._table(rows, ("source", "target", "kind", "weight"))


def _followee(deed: Deed) -> Any:
    return deed.arguments.get("user_id", deed.arguments.get("agent_id")) if deed.action == FOLLOW else None


def _dealings(deed: Deed, authors: Mapping[Any, Any], names: Mapping[Any, str]) -> list[tuple[Any, str]]:
    """Return whom a deed concerned, and how."""
    if deed.action == POST:
        return [(agent, "mention") for agent, name in names.items() if _mentions(deed.text, name)]
    if (followee := _followee(deed)) is not None:
        return [(followee, "follow")]
    kinds = {
        **dict.fromkeys(REPLIES, "reply"),
        **dict.fromkeys(REPOSTS, "repost"),
        **dict.fromkeys(VOTES, "like" if deed.is_like else "dislike"),
    }
    author = authors.get(deed.arguments.get("post_id"))
    return [(author, kinds[deed.action])] if deed.action in kinds and author is not None else []


def _mentions(text: str, name: str) -> bool:
    """Check whether a text names somebody, as a whole word or after an @."""
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
