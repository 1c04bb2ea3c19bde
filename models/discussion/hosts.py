"""Hosts: who is called on next."""

from __future__ import annotations

from typing import Protocol

from mesa_llm.world import RNG
from mesa_llm.worlds.room import Room
from models.discussion.config import HostPlan


class Host(Protocol):
    """Calls on people."""

    def call(self, room: Room) -> list[int]:
        """Return who is called on now; nobody: somebody else has to choose."""
        ...


class RoundRobin:
    """Calls on one after the other."""

    def __init__(self, start: int = 0, skip: int = 1) -> None:
        """Store where to start.

        Args:
            start: Seat that is called on first; negative: from the end.
            skip: How many seats to move on; 0: none, negative: backwards.
        """
        self.seat, self.skip = start, skip

    def call(self, room: Room) -> list[int]:
        """Return who is called on now."""
        seats = list(room.members)
        agent_id = seats[self.seat]
        self.seat = (self.seat + self.skip) % len(seats)
        return [agent_id]


class RandomHost:
    """Calls on anybody; the same person may be called on again."""

    def __init__(self, start: int, rng: RNG) -> None:
        """Store where to start.

        Args:
            start: Seat that is called on first.
            rng: Source of random draws.
        """
        self.seat: int | None = start
        self.rng = rng

    def call(self, room: Room) -> list[int]:
        """Return who is called on now."""
        seats = list(room.members)
        agent_id = self.rng.choice(seats) if self.seat is None else seats[self.seat]
        self.seat = None
        return [agent_id]


class Everyone:
    """Calls on all at once: they speak without waiting for one another."""

    def call(self, room: Room) -> list[int]:
        """Return who is called on now."""
        return list(room.members)


class Moderated:
    """Calls on whom the moderator of the room has chosen."""

    def call(self, room: Room) -> list[int]:
        """Return who is called on now; nobody before the moderator has chosen."""
        return [] if room.next_speaker is None else [room.next_speaker]


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
