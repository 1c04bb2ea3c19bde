"""What citizens know of the town, and how what they read moves what they think."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from mesa_llm.records import Event
from mesa_llm.worlds.beliefs import Beliefs, Exposure, Post, exposure_of, tone, update_beliefs
from mesa_llm.worlds.economy import EconomyFacts
from mesa_llm.worlds.social.seen import SocialFacts

SOURCE_WEIGHT = 0.5
"""Weight of a viral post against all that was read before, in a guess of what people think."""


def own_words(text: str, reports: Collection[str]) -> str:
    """Give what a post says besides the news that it passes on: who quotes a price argues for nothing.

    Args:
        text: The post.
        reports: News, in the words in which they were told.
    """
    for report in reports:
        text = text.replace(report, " ")
    return text.strip()


def learned(known: Mapping[str, float], facts: Mapping[str, Any], reports: Collection[str]) -> dict[str, float]:
    """Give what somebody knows of the measures of the town, after a look and the news.

    Args:
        known: Measure → its value, as known before.
        facts: What it sees now, by world, and `news`.
        reports: News told so far, which argue for nothing.

    Returns:
        Measure → its value, as far as anything is known of it.
    """
    after = dict(known)
    for event in facts.get("news", ()):
        _hear(after, event, reports)
    economy: EconomyFacts | None = facts.get("economy")
    if economy is not None and economy.step > 0:
        after |= {name: economy.metrics[name] for name in ("employment_rate", "avg_price")}
    social: SocialFacts | None = facts.get("social")
    read = [(own_words(item.post.content, reports), item.post.score) for item in (social.feed if social else ())]
    tones = [(tone(words), 1 + max(score, 0)) for words, score in read if words]
    if tones:
        after["opinion"] = sum(said * weight for said, weight in tones) / sum(weight for _, weight in tones)
    return after


def _hear(known: dict[str, float], event: Event, reports: Collection[str]) -> None:
    """Learn from one piece of news."""
    facts = event.facts
    if event.kind == "metric_change":
        known[str(facts["metric"])] = float(facts["current"])
    elif event.kind == "viral_post":
        before = known.get("opinion", 0.0)
        known["opinion"] = before + SOURCE_WEIGHT * (tone(own_words(str(facts["text"]), reports)) - before)
    elif event.kind == "policy_change" and facts.get("variable") == "tax_rate" and isinstance(facts["value"], float):
        previous = facts.get("previous")
        rise = facts["value"] - (previous if isinstance(previous, float) else 0.0)
        if "avg_price" in known:
            known["avg_price"] *= 1 + rise
        if "employment_rate" in known:
            known["employment_rate"] *= 1 - max(rise, 0.0) / 2


def exposures(own: int, facts: Mapping[str, Any], reports: Collection[str]) -> list[Exposure]:
    """Give the posts that somebody met: those in its feed, and viral ones that it heard of; none of its own.

    Args:
        own: Mesa `unique_id` of who reads.
        facts: What it sees, by world, and `news`.
        reports: News told so far; a post counts for what it says besides them, if anything.
    """
    social: SocialFacts | None = facts.get("social")
    met = [
        Post(item.post.source_id, item.post.source_author_id, item.post.content, item.post.likes)
        for item in (social.feed if social is not None else ())
    ]
    met += [
        Post(event.facts["post_id"], event.facts["author_id"], event.facts["text"], event.facts["score"])
        for event in facts.get("news", ())
        if event.kind == "viral_post"
    ]
    argued = [replace(post, text=own_words(post.text, reports)) for post in met if post.author != own]
    return [exposure_of(post) for post in argued if post.text]


def moved(beliefs: Beliefs, topic: str, met: list[Exposure], likes: int, dislikes: int) -> Beliefs:
    """Give the beliefs of somebody after a step; who met nothing, and was not judged, keeps them.

    Args:
        beliefs: The beliefs before.
        topic: What the town talks about.
        met: The posts it met.
        likes: New likes of its own posts.
        dislikes: New dislikes of its own posts.
    """
    if not (met or likes or dislikes):
        return beliefs
    return update_beliefs(beliefs, topic, met, own_likes=likes, own_dislikes=dislikes)
