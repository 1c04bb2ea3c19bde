"""Beliefs and posts of SimSwarm's golden file, as our own records and back."""

from __future__ import annotations

from typing import Any

from mesa_llm_models.social.beliefs import Beliefs, StepPost

REL = 1e-12


WRITES = ("create_post", "reply", "post", "comment")


def beliefs_of(state: dict[str, Any]) -> Beliefs:
    names = ("positions", "confidence", "trust")
    return Beliefs(*(state.get(name, {}) for name in names), digests=tuple(state.get("seen", ())))


def written(beliefs: Beliefs) -> dict[str, Any]:
    """Write beliefs down as the golden file does."""
    return {
        "positions": dict(beliefs.positions),
        "confidence": dict(beliefs.confidence),
        "trust": dict(beliefs.trust),
        "n_seen": len(beliefs.digests),
    }


def text_of(record: dict[str, Any]) -> str:
    """Return what a record wrote, under either name of the argument; empty if it wrote nothing."""
    arguments = record.get("args") or {}
    return arguments.get("text") or arguments.get("content") or ""


def posts_of(records: list[dict[str, Any]], likes: dict[str, Any], numbers: dict[str, int]) -> list[StepPost]:
    """Return the posts that a step's records wrote; `numbers` gets a number for every author."""
    posts: list[StepPost] = []
    for place, record in enumerate(records):
        text, post_id = text_of(record), (record.get("result") or {}).get("post_id")
        author, kind, step = record["agent"], record["type"], record["round"]
        if not record["success"] or kind.lower() not in WRITES:
            continue
        writer = numbers.setdefault(author, len(numbers) + 1)
        given, refused = likes.get(str(post_id), (0, 0))
        posts.append(StepPost(str(post_id or place), writer, text, given, refused, author.upper(), step))
    return posts
