"""Users' opinions on one topic, shifted by the posts they read."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from mesa_llm import Decision, Observation
from mesa_llm.engine.survey import llm_for
from mesa_llm.text import quoted, tone
from mesa_llm.world import Rules
from mesa_llm_models.social.beliefs import Beliefs, StepPost, apply_posts, beliefs_text, exposure_of, update_beliefs
from mesa_llm_models.social.stances import TopicStance
from mesa_llm_models.social.world import PostView, SocialFacts
from mesa_llm_models.social.world.post_index import ORIGINAL, REPLY

StanceName = Literal["rule", "tone", "model"]
"""Measure of the stance of a post, see `Opinions`."""


class Reading(BaseModel, frozen=True):
    """What a language model reads out of a post."""

    about: bool
    """Whether the post speaks of the topic."""

    stance: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
    """How far its author is for the topic, -1 to 1."""


@dataclass(frozen=True)
class BeliefParameters:
    """Parameters of users' beliefs."""

    topic: str
    """Topic to be for or against."""

    words: tuple[str, ...] = ()
    """Words that name the topic, for the rule; empty for the words of the topic."""

    stance: StanceName = "rule"
    """Measure of the stance of a post."""

    rules: Rules = "corrected"
    """`original` for SimSwarm's rules, or `corrected`."""

    spread: float = 0.8
    """Initial positions are uniform between minus this value and this value."""


class Opinions:
    """Each user's opinion on a topic.

    Under the corrected rules a user is influenced by the posts, replies and comments it read on its turn, if they are
    about the topic, and by the likes and dislikes its own posts have received since. Under SimSwarm's own, everyone is
    influenced by the tone of all posts in a step, read or not, on any topic.

    Attributes:
        belief: Parameters.
        beliefs: User → its beliefs.
        stances: Text of a post → its stance, -1 to 1; None if it is not about the topic, or not measurable.
    """

    def __init__(self, belief: BeliefParameters) -> None:
        """Create opinions without users.

        Raises:
            ConfigError: If the topic has no words that name it.
        """
        self.belief = belief
        self.beliefs: dict[int, Beliefs] = {}
        self.stances: dict[str, float | None] = {}
        self._by_rule = TopicStance(belief.topic, belief.words)
        self._read: dict[int, list[StepPost]] = {}
        self._counts = np.zeros((2, 0), dtype=np.int64)
        self._n_posts = 0

    @property
    def topic(self) -> str:
        """Topic to be for or against."""
        return self.belief.topic

    def enter(self, agent_ids: Iterable[int], rng: Any) -> None:
        """Assign users their initial positions.

        Args:
            agent_ids: The users.
            rng: Random generator.
        """
        spread = self.belief.spread
        self.beliefs |= {agent_id: Beliefs({self.topic: rng.uniform(-spread, spread)}) for agent_id in agent_ids}

    def position(self, agent_id: int) -> float:
        """Return a user's position, -1 (against) to 1 (for); 0 for an unknown user."""
        return self.of(agent_id).positions[self.topic]

    def of(self, agent_id: int) -> Beliefs:
        """Return a user's beliefs."""
        return self.beliefs.get(agent_id, Beliefs({self.topic: 0.0}))

    @property
    def positions(self) -> list[float]:
        """Position of each user, in order of entry."""
        return [beliefs.positions[self.topic] for beliefs in self.beliefs.values()]

    @property
    def mean(self) -> float:
        """Mean position."""
        return statistics.fmean(self.positions)

    @property
    def spread(self) -> float:
        """Standard deviation of the positions."""
        return statistics.pstdev(self.positions)

    def on_mind(self, agent_id: int, seen: Observation) -> Observation:
        """Return an observation preceded by the user's beliefs."""
        return replace(seen, text=f"{beliefs_text(self.of(agent_id))}\n\n{seen.text}", cue=seen.cue or seen.text)

    def read(self, agent_id: int, facts: SocialFacts) -> None:
        """Store the posts a user read on its turn, until the end of the step."""
        posts = [post for item in facts.feed for post in posts_of(item.post)]
        self._read[agent_id] = [post for post in posts if post.author != agent_id and post.text]

    def end_step(self, model: Any) -> None:
        """Update the users by the posts read in this step.

        Args:
            model: The model, whose world has the posts and whose language model may read them.
        """
        if self.belief.rules == "original":
            self._move_all(model)
        else:
            self._move_readers(model)
        self._read = {}

    def _move_all(self, model: Any) -> None:
        """Update every user by all posts of the step."""
        world, board = model.world, model.world.board
        rows = np.arange(self._n_posts, len(board))
        self._n_posts = len(board)
        rows = rows[np.isin(board.kind[rows], (ORIGINAL, REPLY))]
        columns = (board.author[rows], board.likes[rows], board.dislikes[rows], board.created[rows])
        written = zip(rows.tolist(), world.texts(rows), *(column.tolist() for column in columns), strict=True)
        posts = [
            StepPost(row + 1, author, text, likes, dislikes, author_name=world.names[author], step=step)
            for row, text, author, likes, dislikes, step in written
        ]
        self.beliefs = apply_posts(self.beliefs, posts, self.topic, stance=tone, rules="original")

    def _move_readers(self, model: Any) -> None:
        """Update users by the posts they read, and by reactions to their own."""
        gains = self._gains(model.world)
        self._learn_stances(model, {post.text for posts in self._read.values() for post in posts})
        for agent_id in sorted(self._read.keys() | gains.keys()):
            exposures = [
                exposure_of(post, self._known) for post in self._read.get(agent_id, ())
                if self.stances[post.text] is not None
            ]  # fmt: skip
            likes, dislikes = gains.get(agent_id, (0, 0))
            if exposures or likes or dislikes:
                self.beliefs[agent_id] = update_beliefs(
                    self.of(agent_id), self.topic, exposures, own_likes=likes, own_dislikes=dislikes
                )

    def _known(self, text: str) -> float:
        return self.stances[text] or 0.0

    def _gains(self, world: Any) -> Mapping[int, tuple[int, int]]:
        """Count the likes and dislikes each author's posts have received since the last step."""
        board = world.board
        counts = np.stack([board.likes, board.dislikes]).astype(np.int64)
        fresh = counts.copy()
        fresh[:, : self._counts.shape[1]] -= self._counts
        self._counts = counts
        rows = np.flatnonzero(fresh.any(axis=0))
        authors, indices = np.unique(board.author[rows], return_inverse=True)
        gains = np.zeros((2, len(authors)), dtype=np.int64)
        for gain, change in zip(gains, fresh[:, rows], strict=True):
            np.add.at(gain, indices, change)
        return dict(zip(authors.tolist(), zip(*np.maximum(gains, 0).tolist(), strict=True), strict=True))

    def _learn_stances(self, model: Any, texts: set[str]) -> None:
        """Measure the stance of each text without one."""
        new = sorted(texts - self.stances.keys())
        if self.belief.stance != "model":
            measure = tone if self.belief.stance == "tone" else self._by_rule
            self.stances |= {text: measure(text) for text in new}
        elif new:
            prompts = [
                model.prompt("stance.md", topic=quoted(self.topic, 500), post=quoted(text, 5000)) for text in new
            ]
            by_prompt = dict(zip(prompts, new, strict=True))
            readings = model.consult(
                llm_for(model.llm, "stance"),
                prompts,
                answer=Reading,
                purpose="stance",
                rule=lambda prompt: self._reading(by_prompt[prompt]),
            )
            for text, reading in zip(new, readings, strict=True):
                is_about = isinstance(reading, Decision) and reading.answer.about
                self.stances[text] = reading.answer.stance if is_about else None

    def _reading(self, text: str) -> Reading:
        stance = self._by_rule(text)
        return Reading(about=stance is not None, stance=stance or 0.0)


def posts_of(post: PostView) -> list[StepPost]:
    """Return a post with its comments and the post it quotes, for updating beliefs."""
    own = StepPost(post.source_id, post.source_author_id, post.content, post.likes, post.dislikes)
    below = [
        StepPost(reply.reply_id, reply.author_id, reply.content, reply.likes, reply.dislikes)
        for reply in (*post.replies, *post.comments)
    ]
    return [own, *below, *(posts_of(post.quoted) if post.quoted is not None else ())]
