"""Says in words what happened on the social network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mesa_llm.text import counted, quoted

if TYPE_CHECKING:
    from models.social.model import SocialModel

MOST_LINES = 12
"""Most posts, and most follows, that are told."""


def tell(model: SocialModel) -> str:
    """Tell who posted, answered, shared and followed whom.

    Args:
        model: The model, after a run.
    """
    world = model.world
    posts = world.posts_table()
    lines = [f"Step {post['step']}: {_said(world, post, posts)}" for post in posts][-MOST_LINES:]
    comments = [
        f"Step {c['step']}: {world.names[c['user_id']]} comments on post {c['post_id']}: {quoted(c['content'], 110)}"
        for c in world.comments_table()
    ][-MOST_LINES:]
    done = model.runlog.actions()
    follows = [
        f"Step {row['time']}: {world.names[row['agent']]}: {json.loads(row['result'])}"
        for row in done.to_dict("records")
        if row["action"] == "follow" and row["ok"]
    ]
    totals = (
        f"{model.n_posts} posts, {model.n_replies} replies, {model.n_reposts} reposts, {model.n_likes} likes, "
        f"{model.n_follows} follows; the largest cascade reached {counted(model.largest_cascade, 'user')}."
    )
    return "\n".join(["What happened:", *lines, *comments, *follows[-MOST_LINES:], totals])


def _said(world: Any, post: dict[str, Any], posts: list[dict[str, Any]]) -> str:
    author = world.names[post["user_id"]]
    words = quoted(post["content"], 110)
    match post["kind"]:
        case "repost":
            return f"{author} reposts post {post['parent_id']}"
        case "quote":
            return f"{author} quotes post {post['parent_id']}: {words}"
        case "reply":
            return f"{author} answers post {post['parent_id']}: {words}"
        case _:
            return f"{author} writes post {post['post_id']}: {words}"
