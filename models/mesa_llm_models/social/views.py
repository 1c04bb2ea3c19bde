"""What users of a network think of its topic, and their first posts about it, drawn apart from everything else."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from mesa_llm import AgentConfig
from mesa_llm_models.social.text import OPENINGS, STAKES, VIEWS, view_text

SIDES = (0, 0, 1, 2, 2)
"""Index in `VIEWS` → side: 0 for the topic, 1 undecided, 2 against it."""

MAX_CONFIGS = 20_000
"""Maximum number of cached configs."""


def view_of(agent_id: int, run_seed: int) -> tuple[int, str]:
    """Draw a user's view on the topic, as its index in `VIEWS`, and its stake in it.

    Args:
        agent_id: Mesa `unique_id` of the user.
        run_seed: Seed of the run.
    """
    rng = random.Random(f"{run_seed} view {agent_id}")
    return rng.randrange(len(VIEWS)), rng.choice(STAKES)


def side_of(agent_id: int, run_seed: int, positions: Mapping[int, float]) -> int:
    """Return a user's side: 0 for the topic, 1 undecided, 2 against it.

    Args:
        agent_id: Mesa `unique_id` of the user.
        run_seed: Seed of the run.
        positions: User → its position on the topic, -1 to 1; a user without one has a view instead.
    """
    position = positions.get(agent_id)
    if position is None:
        return SIDES[view_of(agent_id, run_seed)[0]]
    return 0 if position >= 0.2 else 2 if position <= -0.2 else 1


def openings(topic: str, sides: Sequence[int], run_seed: int) -> list[str]:
    """Return first posts about the topic, all different while there are enough of a side.

    Args:
        topic: What the network talks about.
        sides: Side of each author.
        run_seed: Seed of the run.
    """
    rng = random.Random(f"{run_seed} first posts")
    left: list[list[str]] = [[] for _ in OPENINGS]
    posts: list[str] = []
    for side in sides:
        left[side] = left[side] or rng.sample(OPENINGS[side], len(OPENINGS[side]))
        posts.append(left[side].pop().format(topic=topic))
    return posts


class Views:
    """What the users of a network think of its topic.

    Attributes:
        topic: What the network talks about.
    """

    def __init__(self, topic: str, run_seed: int) -> None:
        """Store the topic.

        Args:
            topic: What the network talks about.
            run_seed: Seed of the run.
        """
        self.topic = topic
        self._run_seed = run_seed
        self._configs: dict[int, tuple[AgentConfig, AgentConfig]] = {}

    def text(self, agent_id: int) -> str:
        """Say what a user thinks of the topic, and what it has to do with the user."""
        return view_text(self.topic, *view_of(agent_id, self._run_seed))

    def config(self, agent_id: int, config: AgentConfig) -> AgentConfig:
        """Return a user's config with its view in the persona; recent ones are cached."""
        known = self._configs.get(agent_id)
        if known is not None and known[0] is config:
            return known[1]
        if len(self._configs) >= MAX_CONFIGS:
            self._configs.clear()
        persona = f"{config.persona} {self.text(agent_id)}".strip()
        own = config.model_copy(update={"persona": persona})
        self._configs[agent_id] = config, own
        return own
