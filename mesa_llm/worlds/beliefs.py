"""How posts move beliefs: positions, confidence and trust, as pure functions.

Source: SimSwarm's belief model (sneg55/SimSwarm, MIT).

A belief moves towards the stance of each post by

    trust · social proof · novelty · 0.1 / resistance

of the gap, where resistance grows with confidence. `rules="original"` is that model, number by number.
`rules="corrected"`, the default, mends this:

* All posts of a step together pull by 1 - exp(-sum of their weights) towards their weighted mean stance, and by
  0.2 at most. A belief never leaves the range between itself and the stances it met. In the original the pulls
  add up, so that a hundred posts of a step throw anyone to the end of the scale.
* Likes count from 0 to 10. In the original their number has no limit, and a negative one turns the pull round.
* Trust in an author moves once a step, by the mean of the author's stances. In the original once a post.
* Confidence moves by 0.1 a step at most, in the original without limit.
* A post is known again by its words, whoever repeats them, whenever. In the original the step and the author are
  part of its identity, so that hardly anything is ever seen twice. The items forgotten first are the oldest.
* Authors are known by any id, so that namesakes stay apart. (Pass ids; the original passes display names.)
* A stance that is no number is refused. In the original NaN spreads.
* Who has seen which posts is up to the caller (`met`), so that exposure can follow a feed. In the original
  everyone meets every post.

VADER's compound score of a text, the default stance, measures its tone and not what it argues for ("We oppose this
wonderful law" scores as support). Any function from a text to -1..1 can take its place.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from mesa_llm.text import quoted

Rules = Literal["original", "corrected"]
"""Which rules hold: SimSwarm's, or the mended ones."""

Author = int | str
"""Who wrote a post: a Mesa `unique_id`, or a name."""

Stance = Callable[[str], float]
"""Measures what a text stands for, from -1 (against) to 1 (for)."""

FIRST_POSITION, FIRST_CONFIDENCE, FIRST_TRUST = 0.0, 0.5, 0.5
NOVELTY_NEW, NOVELTY_SEEN = 1.5, 0.5
PROOF_FLOOR, PROOF_PER_LIKE, MOST_LIKES = 0.3, 0.07, 10
PULL, MOST_MOVE = 0.1, 0.2
TRUST_RATE = 0.05
CONFIDENCE_PER_LIKE, CONFIDENCE_PER_DISLIKE, MOST_CONFIDENCE_MOVE = 0.005, 0.008, 0.1
MOST_SEEN = 2000

POSITION_BANDS = (
    (0.6, "strongly supportive"),
    (0.2, "leaning supportive"),
    (-0.2, "undecided"),
    (-0.6, "leaning opposed"),
)
CONFIDENCE_BANDS = ((0.75, "firmly held"), (0.45, "moderate"), (0.2, "tentative"))


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What one agent believes."""

    positions: Mapping[str, float] = field(default_factory=dict[str, float])
    """Topic → position, from -1 (against) to 1 (for)."""

    confidence: Mapping[str, float] = field(default_factory=dict[str, float])
    """Topic → how sure it is, 0 to 1."""

    trust: Mapping[Author, float] = field(default_factory=dict[Author, float])
    """Author → how far it is trusted, 0 to 1."""

    seen: tuple[str, ...] = ()
    """Digests of the posts met, oldest first."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """A post as a reader meets it."""

    author: Author
    """Who wrote it."""

    digest: str
    """What tells it from other posts."""

    stance: float
    """What it stands for, -1 to 1."""

    likes: int = 0
    """Likes it has."""


@dataclass(frozen=True, slots=True)
class Post:
    """A post or reply of this step."""

    post_id: int | str
    """Id of the post."""

    author: int
    """Mesa `unique_id` of its author."""

    text: str
    """What it says."""

    likes: int = 0
    """Likes it has."""

    dislikes: int = 0
    """Dislikes it has."""

    author_name: str = ""
    """What the original rules know the author by."""

    step: int = 0
    """Step it was written in; part of its identity under the original rules."""


@cache
def _analyser() -> SentimentIntensityAnalyzer:
    """Load VADER's lexicon, once."""
    return SentimentIntensityAnalyzer()


def tone(text: str) -> float:
    """Measure the tone of a text, from -1 to 1: VADER's compound score.

    Source:
        Hutto and Gilbert (2014), VADER, ICWSM 8.
    """
    return float(_analyser().polarity_scores(text)["compound"])


def update_beliefs(
    beliefs: Beliefs,
    topic: str,
    met: Sequence[Exposure],
    *,
    own_likes: int = 0,
    own_dislikes: int = 0,
    rules: Rules = "corrected",
) -> Beliefs:
    """Give the beliefs after a step.

    Args:
        beliefs: The beliefs before.
        topic: What the posts are about.
        met: Posts met in this step, in order.
        own_likes: Likes that the agent's own posts got.
        own_dislikes: Dislikes that they got.
        rules: SimSwarm's, or the mended ones.

    Raises:
        ValueError: If a stance is not within -1..1, under the corrected rules.
    """
    is_original = rules == "original"
    strange = [post.stance for post in met if not -1 <= post.stance <= 1]
    if strange and not is_original:
        raise ValueError(f"a stance must be a number from -1 to 1, got {strange[:3]}")
    position = beliefs.positions.get(topic, FIRST_POSITION)
    confidence = beliefs.confidence.get(topic, FIRST_CONFIDENCE)
    seen = dict.fromkeys(beliefs.seen)
    weights = _weights(met, seen, beliefs.trust, 0.3 + 0.7 * confidence, bounded=not is_original)
    move = _summed_move if is_original else _bounded_move
    position = _clamp(position + move(position, met, weights), -1.0, 1.0)
    trust = _trust_after(beliefs.trust, met, position, by_author=not is_original)
    gain = own_likes * CONFIDENCE_PER_LIKE - own_dislikes * CONFIDENCE_PER_DISLIKE
    if not is_original:
        gain = _clamp(gain, -MOST_CONFIDENCE_MOVE, MOST_CONFIDENCE_MOVE)
    return Beliefs(
        positions={**beliefs.positions, topic: position},
        confidence={**beliefs.confidence, topic: _clamp(confidence + gain, 0.0, 1.0)},
        trust=trust,
        seen=tuple(seen)[-MOST_SEEN:],
    )


def _weights(
    met: Sequence[Exposure],
    seen: dict[str, None],
    trust: Mapping[Author, float],
    resistance: float,
    *,
    bounded: bool,
) -> list[float]:
    """Weigh posts by trust, likes and novelty, and add them to what was seen."""
    weights: list[float] = []
    for post in met:
        novelty = NOVELTY_SEEN if post.digest in seen else NOVELTY_NEW
        seen[post.digest] = None
        likes = min(max(post.likes, 0), MOST_LIKES) if bounded else post.likes
        proof = PROOF_FLOOR + PROOF_PER_LIKE * likes
        weights.append(trust.get(post.author, FIRST_TRUST) * proof * novelty / resistance)
    return weights


def _summed_move(position: float, met: Sequence[Exposure], weights: list[float]) -> float:
    """Add the pulls of all posts, each from the position before."""
    move = 0.0
    for post, weight in zip(met, weights, strict=True):
        move += (post.stance - position) * weight * PULL
    return move


def _bounded_move(position: float, met: Sequence[Exposure], weights: list[float]) -> float:
    """Pull towards the weighted mean stance; more posts pull more, up to all the way or a fifth of the half-scale."""
    total = sum(weights)
    if total <= 0:
        return 0.0
    mean = sum(post.stance * weight for post, weight in zip(met, weights, strict=True)) / total
    pulled = -math.expm1(-PULL * total) * (mean - position)
    return _clamp(pulled, -MOST_MOVE, MOST_MOVE)


def _trust_after(
    trust: Mapping[Author, float], met: Sequence[Exposure], position: float, *, by_author: bool
) -> dict[Author, float]:
    """Trust authors more whose stance is near the new position, others less: once a post, or once an author."""
    stances: list[tuple[Author, float]] = [(post.author, post.stance) for post in met]
    if by_author:
        said: dict[Author, list[float]] = {}
        for author, stance in stances:
            said.setdefault(author, []).append(stance)
        stances = [(author, sum(several) / len(several)) for author, several in said.items()]
    after = dict(trust)
    for author, stance in stances:
        agreement = 1.0 - abs(stance - position) / 2.0
        moved = after.get(author, FIRST_TRUST) + TRUST_RATE * (agreement - 0.5)
        after[author] = _clamp(moved, 0.0, 1.0)
    return after


def _clamp(value: float, low: float, high: float) -> float:
    """Keep a value within bounds; NaN stays NaN."""
    return max(min(value, high), low)


def apply_posts(
    believers: Mapping[int, Beliefs],
    posts: Iterable[Post],
    topic: str,
    *,
    stance: Stance = tone,
    met: Mapping[int, Collection[int | str]] | None = None,
    rules: Rules = "corrected",
) -> dict[int, Beliefs]:
    """Give everyone's beliefs after a step's posts.

    Args:
        believers: Agent → its beliefs before.
        posts: Posts of the step, in the order they were written; those without words count for nothing.
        topic: What they are about.
        stance: Measures what a text stands for.
        met: Agent → ids of the posts that it saw; None: everyone saw all. Nobody is moved by its own.
        rules: SimSwarm's, or the mended ones.

    Returns:
        Agent → its beliefs; those who saw nothing, and whose posts were neither liked nor disliked, keep theirs.
    """
    written = [post for post in posts if post.text]
    shown = [(post, exposure_of(post, stance, rules=rules)) for post in written]
    after: dict[int, Beliefs] = {}
    for agent, beliefs in believers.items():
        seen_ids = None if met is None else met.get(agent, ())
        reached = [
            exposure
            for post, exposure in shown
            if post.author != agent and (seen_ids is None or post.post_id in seen_ids)
        ]
        likes = sum(post.likes for post in written if post.author == agent)
        dislikes = sum(post.dislikes for post in written if post.author == agent)
        after[agent] = beliefs
        if reached or likes or dislikes:
            after[agent] = update_beliefs(beliefs, topic, reached, own_likes=likes, own_dislikes=dislikes, rules=rules)
    return after


def exposure_of(post: Post, stance: Stance = tone, *, rules: Rules = "corrected") -> Exposure:
    """Give a post as readers meet it."""
    words = " ".join(post.text.split()).casefold()
    identity = f"{post.step}:{post.author}:{post.text}" if rules == "original" else words
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    author = (post.author_name or post.author) if rules == "original" else post.author
    return Exposure(author, digest, stance(post.text), post.likes)


def position_band(position: float) -> str:
    """Name a position in words."""
    return next((words for floor, words in POSITION_BANDS[:2] if position >= floor), _lower_band(position))


def _lower_band(position: float) -> str:
    """Name a position below the supportive ones; their lower bounds belong to the band beneath."""
    return next((words for floor, words in POSITION_BANDS[2:] if position > floor), "strongly opposed")


def confidence_band(confidence: float) -> str:
    """Name a confidence in words."""
    return next((words for floor, words in CONFIDENCE_BANDS if confidence >= floor), "uncertain")


def beliefs_text(beliefs: Beliefs) -> str:
    """Tell an agent what it believes, topic by topic; empty if nothing yet."""
    lines = [
        f"On {quoted(topic)} you are {position_band(position)}; your view is "
        f"{confidence_band(beliefs.confidence.get(topic, FIRST_CONFIDENCE))}."
        for topic, position in beliefs.positions.items()
    ]
    return "\n".join(lines)
