"""The players: a role player with its rule twin, and the author of a whole scene."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, Field, create_model

from mesa_llm import LLMAgent, Observation, ToolCall
from mesa_llm_models.discussion.world import Room

SHARE = re.compile(r"\b(\d+) of 10\b")
"""A share of the goal, as worded by rule twins."""

AGREED = "Agreed"
"""First word of a rule twin's acceptance."""

SILENT = 0.08
"""Probability that a rule twin does nothing in a turn; a gesture has the same probability."""

PATIENCE = 8
"""Number of times a rule twin demands its share before it gives up and leaves."""

REMARKS = (
    "How do you see it?",
    "What matters most to you here?",
    "Let us find a way that suits both of us.",
    "I have my reasons.",
    "Think of how it would look to others.",
    "I could live with that.",
)
"""Remarks of rule twins before a demand."""

GESTURES = ("smiles and nods", "shakes the head", "looks at the floor", "raises an eyebrow")
"""Gestures of rule twins."""


def demand(n_said: int, firmness: float) -> int:
    """Return the share of 10 that a rule twin demands, which decreases with each demand.

    Args:
        n_said: Number of its previous demands.
        firmness: Firmness, from 0 (concedes down to a share of 2) to 1 (8).

    Source:
        Rosenschein and Zlotkin (1994), Rules of Encounter: monotonic concession.
    """
    floor = 2 + 6 * firmness
    return round(9 - (9 - floor) * min(1.0, n_said / (PATIENCE - 2)))


def answer_to(others: list[str], n_said: int, firmness: float, remark: str) -> str:
    """Return a rule twin's reply: it accepts what the latest demand leaves it, or demands its share.

    Args:
        others: Lines of the others, in order.
        n_said: Number of times it has spoken before.
        firmness: As in `demand`.
        remark: Remark before its demand.

    Returns:
        The text; empty if its patience has run out and it leaves.
    """
    share = demand(n_said, firmness)
    demands = [min(10, int(match[1])) for text in others if (match := SHARE.search(text))]
    if demands and 10 - demands[-1] >= share:
        return f"{AGREED}: {10 - demands[-1]} of 10 of what I came for."
    return "" if n_said >= PATIENCE else f"{remark} I would like {share} of 10 of what I came for."


class RolePlayer(LLMAgent):
    """A person who plays a character in an episode.

    Attributes:
        room: The room of the episode.
        seat: Index of its seat, from 0.
        is_tested: Whether the model under test plays it.
        firmness: Firmness of its rule twin, from 0 to 1; see `demand`.
    """

    def __init__(self, model: Any, room: Room, seat: int, is_tested: bool, **components: Any) -> None:
        """Place a person in the room of an episode.

        Args:
            model: The model.
            room: The room of the episode.
            seat: Index of its seat, from 0.
            is_tested: Whether the model under test plays it.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.room, self.seat, self.is_tested = room, seat, is_tested
        self.worlds = (room,)
        self.firmness: float = model.random.random()

    def rule(self, seen: Observation) -> ToolCall:
        """Bargain: demand a share, concede step by step, accept when satisfied, then leave."""
        lines = [line for line in self.room.lines if line.is_heard_by(self.unique_id) and line.kind == "say"]
        if any(line.text.startswith(AGREED) for line in lines):
            return ToolCall("leave")
        mood = self.random.random()
        remark = self.random.choice(REMARKS)
        if mood < SILENT:
            return ToolCall("wait", {"reason": "I would rather hear more first."})
        if mood < 2 * SILENT:
            return ToolCall("gesture", {"text": self.random.choice(GESTURES)})
        others = [line.text for line in lines if line.speaker_id != self.unique_id]
        text = answer_to(others, len(lines) - len(others), self.firmness, remark)
        return ToolCall("say", {"text": text}) if text else ToolCall("leave")


class ScriptMove(BaseModel, frozen=True):
    """One move in a scene by a single author."""

    person: Annotated[int, Field(ge=1)]
    """Number of the person."""

    kind: Literal["say", "gesture", "do", "leave", "wait"]
    """What the person does."""

    text: Annotated[str, Field(max_length=2_000)] = ""
    """What it says, shows or does; empty for the others."""


@lru_cache(maxsize=16)
def move_type(n_persons: int) -> type[ScriptMove]:
    """Return the type of a move in a scene with a number of people.

    Args:
        n_persons: Number of people.
    """
    person: Any = (Annotated[int, Field(ge=1, le=n_persons)], ...)
    return create_model("Move", __base__=ScriptMove, person=person)


class Scene(Protocol):
    """The part of an `Episode` that its author uses."""

    room: Room
    persons: list[RolePlayer]
    end: str

    def script_prompt(self) -> str:
        """Write the author's prompt."""
        ...

    def play(self, move: ScriptMove) -> None:
        """Carry out one move of a script, as a turn."""
        ...


class Author(LLMAgent):
    """Writes every part of an episode, all at once or move by move.

    Attributes:
        scene: The episode.
    """

    def __init__(self, model: Any, scene: Scene, **components: Any) -> None:
        """Add an author to an episode.

        Args:
            model: The model.
            scene: The episode.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.scene = scene
        self.worlds = (scene.room,)

    def observe(self) -> Observation:
        """Return the scene with all secrets and goals, and the text so far."""
        move: Any = move_type(len(self.scene.persons))
        n_moves = Field(min_length=1, max_length=2 * self.model.scenario.max_turns)
        answer = move if self.model.is_stepwise else Annotated[list[move], n_moves]
        return Observation(self.scene.script_prompt(), answer=answer, label="script", world=self.scene.room.name)

    def receive(self, answer: Any, label: str, world: str) -> str:
        """Play the moves as written, until the scene is over."""
        moves = [answer] if isinstance(answer, ScriptMove) else list(answer)
        for move in moves:
            if not self.scene.end:
                self.scene.play(move)
        return ""

    def rule(self, seen: Observation) -> Any:
        """Write the whole scene as the rule twins would play it, or the next move of the person whose turn it is."""
        persons = self.scene.persons
        if self.model.is_stepwise:
            number = self.scene.room.n_turns % len(persons)
            call = persons[number].rule(seen)
            return {"person": number + 1, "kind": call.name, "text": call.arguments.get("text", "")}
        moves: list[dict[str, Any]] = []
        while len(moves) < self.model.scenario.max_turns:
            number = len(moves) % len(persons)
            others = [move["text"] for index, move in enumerate(moves) if index % len(persons) != number]
            n_said = len(moves) // len(persons)
            is_agreed = any(move["text"].startswith(AGREED) for move in moves)
            remark = self.random.choice(REMARKS)
            text = "" if is_agreed else answer_to(others, n_said, persons[number].firmness, remark)
            moves.append({"person": number + 1, "kind": "say" if text else "leave", "text": text})
            if not text:
                break
        return moves
