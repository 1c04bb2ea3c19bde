"""The host that a file describes."""

from __future__ import annotations

from mesa_llm.world import RNG
from mesa_llm.worlds.room import Everyone, Host, Moderated, RandomHost, RoundRobin
from models.discussion.config import HostPlan


def host_of(plan: HostPlan, rng: RNG) -> Host:
    """Return the host that a plan describes.

    Args:
        plan: The plan.
        rng: Source of random draws.
    """
    start = plan.start_person_index or 0
    match plan.class_:
        case "Round Robin Host":
            return RoundRobin(start, plan.skip)
        case "random":
            return RandomHost(start, rng)
        case "moderator":
            return Moderated()
        case "everyone":
            return Everyone()
