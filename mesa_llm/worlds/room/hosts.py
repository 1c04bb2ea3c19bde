"""Hosts, who decide who is called on next."""

from __future__ import annotations

from typing import Protocol

from mesa_llm.world import RNG
from mesa_llm.worlds.room.world import Room


class Host(Protocol):
    """Calls on people."""

    def call(self, room: Room) -> list[int]:
        """Return the ids of those called on now; empty if there is nobody to call on."""
        ...


class RoundRobin:
    """Calls on members in turn, skipping those who have left."""

    def __init__(self, start: int = 0, skip: int = 1) -> None:
        """Store the first seat and the direction.

        Args:
            start: Index of the seat that is called on first; negative: from the end.
            skip: Number of seats to move on after each call; 0: none, negative: backwards.
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
    """Calls on a member drawn at random; the same one may be called on again."""

    def __init__(self, start: int | None, rng: RNG) -> None:
        """Store the first seat.

        Args:
            start: Index of the seat that is called on first; None: the first is drawn, too.
            rng: Source of random draws.
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
    """Calls on everyone at once: they speak without waiting for one another."""

    def call(self, room: Room) -> list[int]:
        """Return the ids of those called on now."""
        return room.present


class Moderated:
    """Calls on the speaker whom the moderator of the room has chosen."""

    def call(self, room: Room) -> list[int]:
        """Return the id of the chosen speaker; empty before the moderator has chosen."""
        return [] if room.next_speaker is None else [room.next_speaker]
