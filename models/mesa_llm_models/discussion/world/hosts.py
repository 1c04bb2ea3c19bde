"""Hosts, who decide who is called on next."""

from __future__ import annotations

from typing import Protocol

from mesa_llm.world import RNG
from mesa_llm_models.discussion.world.world import Room


class Host(Protocol):
    """Chooses who speaks next."""

    def call(self, room: Room) -> list[int]:
        """Return the ids of those called on now; empty if there is nobody to call on."""
        ...


class RoundRobin:
    """Calls on members in turn, skipping those who have left."""

    def __init__(self, start: int = 0, skip: int = 1) -> None:
        """Set the first seat and the direction.

        Args:
            start: Index of the first seat called on; negative to count from the end.
            skip: Number of seats to advance after each call; 0 to stay, negative to go backwards.
        """
        self.seat, self.skip = start, skip

    def call(self, room: Room) -> list[int]:
        """Return the ids of those called on now."""
        seats, present = list(room.members), room.present
        for _ in seats:
            agent_id = seats[self.seat]
            self.seat = (self.seat + self.skip) % len(seats)
            if agent_id in present:
                return [agent_id]
        return []


class RandomHost:
    """Calls on a random member, possibly the same one again."""

    def __init__(self, start: int | None, rng: RNG) -> None:
        """Set the first seat.

        Args:
            start: Index of the first seat called on; None to draw it too.
            rng: Random generator.
        """
        self.seat = start
        self.rng = rng

    def call(self, room: Room) -> list[int]:
        """Return the ids of those called on now."""
        seats = room.present
        agent_id = self.rng.choice(seats) if self.seat is None else list(room.members)[self.seat]
        self.seat = None
        return [agent_id]


class Everyone:
    """Calls on everyone at once: they speak without hearing each other."""

    def call(self, room: Room) -> list[int]:
        """Return the ids of those called on now."""
        return room.present


class Moderated:
    """Calls on the speaker chosen by the room's moderator."""

    def call(self, room: Room) -> list[int]:
        """Return the id of the chosen speaker; empty before the moderator's choice."""
        return [] if room.next_speaker is None else [room.next_speaker]
