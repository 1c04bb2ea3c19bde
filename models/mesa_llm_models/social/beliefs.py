"""Beliefs and how posts change them: positions, confidence and trust, as pure functions.

Source: SimSwarm's belief model (sneg55/SimSwarm, MIT).

A belief moves towards the stance of each post by

    trust · social proof · novelty · 0.1 / resistance

of the gap, where resistance grows with confidence. `rules="original"` is that model, number by number.
`rules="corrected"`, the default, changes:

* All posts of a step together pull by 1 - exp(-sum of their weights) towards their weighted mean stance, and by at most
  0.2. A belief never leaves the range between itself and the stances it met. In the original the pulls add up, so a
  hundred posts in a step push anyone to the end of the scale.
* Likes count from 0 to 10. In the original they are unlimited, and a negative count reverses the pull.
* Trust in an author changes once per step, by the mean of the author's stances. In the original, once per post.
* Confidence changes by at most 0.1 per step. In the original, without limit.
* A post is identified by its words, regardless of author and step. In the original step and author are part of its
  identity, so hardly anything is ever seen twice. The oldest posts are forgotten first.
* Authors are distinguished by id. In the original by name, so namesakes share their trust.
* A stance that is not a number is an error. In the original NaN spreads.
* The caller specifies who saw which posts (`feeds`), so exposure can follow a feed. In the original everyone sees every
  post.

VADER's compound score of a text, the default stance, measures its tone, not its argument ("We oppose this wonderful
law" scores as support). Any function from a text to -1..1 can replace it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mesa_llm.text import tone
from mesa_llm.world import Rules
from mesa_llm_models.social.belief_text import convictions_text

Author = int | str
"""Author of a post: a Mesa `unique_id`, or a name."""

Stance = Callable[[str], float]
"""Measures the stance of a text, from -1 (against) to 1 (for)."""

FIRST_POSITION, FIRST_CONFIDENCE, FIRST_TRUST = 0.0, 0.5, 0.5
NOVELTY_NEW, NOVELTY_SEEN = 1.5, 0.5
PROOF_FLOOR, PROOF_PER_LIKE, MAX_LIKES = 0.3, 0.07, 10
PULL, MAX_MOVE = 0.1, 0.2
TRUST_RATE = 0.05
CONFIDENCE_PER_LIKE, CONFIDENCE_PER_DISLIKE, MAX_CONFIDENCE_MOVE = 0.005, 0.008, 0.1
MAX_DIGESTS = 2000


@dataclass(frozen=True, slots=True)
class Beliefs:
    """The beliefs of one agent."""

    positions: Mapping[str, float] = field(default_factory=dict[str, float])
    """Topic → position, from -1 (against) to 1 (for)."""

    confidence: Mapping[str, float] = field(default_factory=dict[str, float])
    """Topic → confidence in the position, 0 to 1."""

    trust: Mapping[Author, float] = field(default_factory=dict[Author, float])
    """Author → trust in them, 0 to 1."""

    digests: tuple[str, ...] = ()
    """Digests of the posts read so far, oldest first; at most `MAX_DIGESTS`."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """A post, as seen by its readers."""

    author: Author
    """Author of the post."""

    digest: str
    """Digest that identifies the post."""

    stance: float
    """Its stance, -1 to 1."""

    likes: int = 0
    """Number of likes."""


@dataclass(frozen=True, slots=True)
class StepPost:
    """A post or reply of this step."""

    post_id: int | str
    """Id of the post."""

    author: int
    """Mesa `unique_id` of its author."""

    text: str
    """Its text."""

    likes: int = 0
    """Number of likes."""

    dislikes: int = 0
    """Number of dislikes."""

    author_name: str = ""
    """Author name, which the original rules use as identity."""

    step: int = 0
    """Step of writing; part of its identity under the original rules."""


def update_beliefs(
    beliefs: Beliefs,
    topic: str,
    exposures: Sequence[Exposure],
    *,
    own_likes: int = 0,
    own_dislikes: int = 0,
    rules: Rules = "corrected",
) -> Beliefs:
    """Compute an agent's beliefs after a step.

    Args:
        beliefs: Its previous beliefs.
        topic: Topic of the posts.
        exposures: Posts it read in this step, in order.
        own_likes: Number of likes its own posts received.
        own_dislikes: Number of dislikes they received.
        rules: `original` for SimSwarm's rules, or `corrected`.

    Raises:
        ValueError: If, under the corrected rules, a stance is outside -1..1.
    """
    is_original = rules == "original"
    outside = [post.stance for post in exposures if not -1 <= post.stance <= 1]
    if outside and not is_original:
        raise ValueError(f"a stance must be a number from -1 to 1, got {outside[:3]}")
    position = beliefs.positions.get(topic, FIRST_POSITION)
    confidence = beliefs.confidence.get(topic, FIRST_CONFIDENCE)
    digests = dict.fromkeys(beliefs.digests)
    weights = _weights(exposures, digests, beliefs.trust, 0.3 + 0.7 * confidence, bounded=not is_original)
    move = _summed_move if is_original else _bounded_move
    position = _clamp(position + move(position, exposures, weights), -1.0, 1.0)
    trust = _trust_after(beliefs.trust, exposures, position, by_author=not is_original)
    gain = own_likes * CONFIDENCE_PER_LIKE - own_dislikes * CONFIDENCE_PER_DISLIKE
    if not is_original:
        gain = _clamp(gain, -MAX_CONFIDENCE_MOVE, MAX_CONFIDENCE_MOVE)
    return Beliefs(
        positions={**beliefs.positions, topic: position},
        confidence={**beliefs.confidence, topic: _clamp(confidence + gain, 0.0, 1.0)},
        trust=trust,
        digests=tuple(digests)[-MAX_DIGESTS:],
    )


def _weights(
    exposures: Sequence[Exposure],
    digests: dict[str, None],
    trust: Mapping[Author, float],
    resistance: float,
    *,
    bounded: bool,
) -> list[float]:
    """Weight posts by trust, likes and novelty, and add their digests to those already read."""
    weights: list[float] = []
    for post in exposures:
        novelty = NOVELTY_SEEN if post.digest in digests else NOVELTY_NEW
        digests[post.digest] = None
        likes = min(max(post.likes, 0), MAX_LIKES) if bounded else post.likes
        proof = PROOF_FLOOR + PROOF_PER_LIKE * likes
        weights.append(trust.get(post.author, FIRST_TRUST) * proof * novelty / resistance)
    return weights


def _summed_move(position: float, exposures: Sequence[Exposure], weights: list[float]) -> float:
    """Sum the pulls of all posts, each from the previous position."""
    move = 0.0
    for post, weight in zip(exposures, weights, strict=True):
        move += (post.stance - position) * weight * PULL
    return move


def _bounded_move(position: float, exposures: Sequence[Exposure], weights: list[float]) -> float:
    """Move towards the weighted mean stance, further with more weight, but by at most `MAX_MOVE`."""
    total = sum(weights)
    if total <= 0:
        return 0.0
    mean = sum(post.stance * weight for post, weight in zip(exposures, weights, strict=True)) / total
    pulled = -math.expm1(-PULL * total) * (mean - position)
    return _clamp(pulled, -MAX_MOVE, MAX_MOVE)


def _trust_after(
    trust: Mapping[Author, float], exposures: Sequence[Exposure], position: float, *, by_author: bool
) -> dict[Author, float]:
    """Raise trust in authors whose stance is near the new position, and lower it in others, per post or per author."""
    stances: list[tuple[Author, float]] = [(post.author, post.stance) for post in exposures]
    if by_author:
        of_author: dict[Author, list[float]] = {}
        for author, stance in stances:
            of_author.setdefault(author, []).append(stance)
        stances = [(author, sum(several) / len(several)) for author, several in of_author.items()]
    updated = dict(trust)
    for author, stance in stances:
        agreement = 1.0 - abs(stance - position) / 2.0
        trust_value = updated.get(author, FIRST_TRUST) + TRUST_RATE * (agreement - 0.5)
        updated[author] = _clamp(trust_value, 0.0, 1.0)
    return updated


def _clamp(value: float, low: float, high: float) -> float:
    """Keep a value within bounds; NaN stays NaN."""
    return max(min(value, high), low)


def apply_posts(
    believers: Mapping[int, Beliefs],
    posts: Iterable[StepPost],
    topic: str,
    *,
    stance: Stance = tone,
    feeds: Mapping[int, Collection[int | str]] | None = None,
    rules: Rules = "corrected",
) -> dict[int, Beliefs]:
    """Compute the beliefs of all agents after the posts of a step.

    Args:
        believers: Agent → its previous beliefs.
        posts: Posts of the step, in writing order. Those without text are ignored.
        topic: Their topic.
        stance: Measures the stance of a text.
        feeds: Agent → ids of the posts it read; None if all agents read all posts. Agents ignore their own posts.
        rules: `original` for SimSwarm's rules, or `corrected`.

    Returns:
        Agent → its beliefs. An agent that read nothing, and whose posts received no votes, keeps its old ones.
    """
    texts = [post for post in posts if post.text]
    exposures = [(post, exposure_of(post, stance, rules=rules)) for post in texts]
    updated: dict[int, Beliefs] = {}
    for agent, beliefs in believers.items():
        feed = None if feeds is None else feeds.get(agent, ())
        own = [
            exposure for post, exposure in exposures if post.author != agent and (feed is None or post.post_id in feed)
        ]
        likes = sum(post.likes for post in texts if post.author == agent)
        dislikes = sum(post.dislikes for post in texts if post.author == agent)
        updated[agent] = beliefs
        if own or likes or dislikes:
            updated[agent] = update_beliefs(beliefs, topic, own, own_likes=likes, own_dislikes=dislikes, rules=rules)
    return updated


def exposure_of(post: StepPost, stance: Stance = tone, *, rules: Rules = "corrected") -> Exposure:
    """Convert a post to an exposure for its readers."""
    text = " ".join(post.text.split()).casefold()
    identity = f"{post.step}:{post.author}:{post.text}" if rules == "original" else text
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    author = (post.author_name or post.author) if rules == "original" else post.author
    return Exposure(author, digest, stance(post.text), post.likes)


def beliefs_text(beliefs: Beliefs) -> str:
    """Describe an agent's beliefs, one line per topic; empty if it has none."""
    return convictions_text(beliefs.positions, beliefs.confidence, FIRST_CONFIDENCE)
