"""One episode: a situation, who plays it, and the room in which it happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any, Protocol

from mesa_llm import AgentConfig, Settings, ToolError
from mesa_llm.worlds.room import (
    EndRule,
    Everyone,
    Host,
    JustLeft,
    MaxTurns,
    Member,
    Moderated,
    RandomHost,
    Room,
    RoundRobin,
    Stale,
    TooFewLeft,
)
from mesa_llm.worlds.room.text import turns
from models.discussion.agents import Moderator
from models.sotopia.agents import AGREED, SHARE, Author, Person, ScriptMove
from models.sotopia.cast import Cast, Pairing
from models.sotopia.scenario import SotopiaScenario
from models.sotopia.visibility import ENVIRONMENT, NAME, TAGS, VISIBLE, WHOLE, portrait, visible_text

CODES: Mapping[type[Any], str] = {MaxTurns: "turns", JustLeft: "left", TooFewLeft: "left", Stale: "stale"}
"""End rule → code of the reason, for results."""

OWN_GOAL = "one of its own choice."
"""Stands for a goal that nobody has written."""


UNFAMILIAR = {0: "unknown.", len(NAME): "nothing but the name."}
"""Number of fields that are known of somebody → what is said of it."""


def end_rules(scenario: SotopiaScenario) -> tuple[EndRule, ...]:
    """Return what ends an episode."""
    leaving: EndRule = JustLeft() if scenario.rules == "original" else TooFewLeft()
    return (MaxTurns(scenario.max_turns), leaving, Stale(scenario.max_stale))


@dataclass(frozen=True)
class Rating:
    """What one judgement says of one person."""

    episode: int
    """Index of the episode."""

    seat: int
    """Seat of the person, from 0."""

    judge: str
    """Who judged."""

    sample: int
    """Which judgement of this judge it is, from 0."""

    is_swapped: bool
    """Whether the judge read of the persons in the reverse order."""

    scores: Mapping[str, int] | None
    """Dimension → score; None: there is no judgement that can be used."""

    reasons: Mapping[str, str]
    """Dimension → reason."""

    failure: str = ""
    """Why there is none."""


class EpisodeModel(Protocol):
    """What an episode needs of its model: any `SotopiaModel`."""

    scenario: SotopiaScenario
    cast: Cast
    random: Random

    @property
    def is_stepwise(self) -> bool:
        """Whether an author writes move by move."""
        ...

    def prompt(self, name: str, **values: Any) -> str:
        """Fill in a file of the model's folder `prompts`."""
        ...


class Episode:
    """One meeting.

    Attributes:
        model: The model.
        index: Its number, from 0.
        pairing: Who meets where.
        situation: The situation.
        characters: Who is played, by seat.
        goals: Private goal of each seat, with its tags.
        tested_seats: Seats that the model under test plays.
        room: The room.
        persons: Who plays, by seat.
        persons_by_id: The same by Mesa `unique_id`.
        author: Who writes all parts, in a script.
        moderator: Who gives the floor, if a mind does.
        end: Why it is over; empty: it is not.
        code: The same in one word.
        ratings: What the judges say of it.
    """

    def __init__(self, model: EpisodeModel, index: int, pairing: Pairing, tested_seats: Sequence[int]) -> None:
        """Seat the persons.

        Args:
            model: The model.
            index: Its number, from 0.
            pairing: Who meets where.
            tested_seats: Seats that the model under test plays.
        """
        chosen = model.scenario
        self.model, self.index, self.pairing, self.tested_seats = model, index, pairing, tuple(tested_seats)
        self.situation = model.cast.situations[pairing.situation_id]
        self.characters = [model.cast.characters[one] for one in pairing.character_ids]
        self.goals = list(self.situation.goals)
        self.room = Room(
            end_rules=end_rules(chosen),
            name="room" if index == 0 else f"room {index + 1}",
            has_whispers=chosen.whispers,
            max_shown=1_000,
            counts_absent=(chosen.stale_counts or ("all" if chosen.rules == "original" else "in turn")) == "all",
        )
        self.persons = [self._person(seat) for seat in range(len(self.characters))]
        self.persons_by_id = {person.unique_id: person for person in self.persons}
        self.host = self._host()
        config = AgentConfig(settings=_settings(chosen.temperature))
        self.moderator = Moderator(model, self.room, config=config) if chosen.order == "moderator" else None
        self.author = Author(model, self, config=_writing(chosen)) if chosen.mode != "agents" else None
        self.end = self.code = ""
        self.ratings: list[Rating] = []

    def _person(self, seat: int) -> Person:
        chosen, character = self.model.scenario, self.characters[seat]
        reads_once = chosen.shows == "last turn"
        config = AgentConfig(
            name=character.name,
            persona="" if chosen.lite or reads_once else self.own_portrait(seat),
            settings=_settings(chosen.temperature),
        )
        is_tested = seat in self.tested_seats
        person = Person(self.model, self.room, seat, is_tested, config=config, memory=chosen.memory)
        member = Member(person.unique_id, character.name, "interact", is_timed=False, reads_once=reads_once)
        self.room.seat(replace(member, brief=self.brief(seat)))
        return person

    def _host(self) -> Host:
        match self.model.scenario.order:
            case "round-robin":
                return RoundRobin()
            case "simultaneous":
                return Everyone()
            case "random":
                return RandomHost(None, self.model.random)
            case "moderator":
                return Moderated()

    # -- what a person reads

    def own_portrait(self, seat: int) -> str:
        """Describe a person to itself, its secret included."""
        return f"You are {portrait(self.characters[seat], WHOLE)}"

    def others_known(self, seat: int) -> list[dict[str, str]]:
        """Return what a person reads of each of the others: its name, what is known about it, its goal."""
        chosen = self.model.scenario
        fields = WHOLE if chosen.omniscient else VISIBLE[self.situation.relation]
        return [
            {
                "name": other.name,
                "about": portrait(other, fields).replace("\n", " · ")
                if len(fields) > len(NAME)
                else UNFAMILIAR[len(fields)],
                "goal": self.read_by(seat, self.goals[number]) if chosen.omniscient else "",
            }
            for number, other in enumerate(self.characters)
            if number != seat
        ]

    def read_by(self, seat: int, text: str) -> str:
        """Return what a person reads of a text with tags."""
        chosen = self.model.scenario
        viewer = ENVIRONMENT if chosen.omniscient else f"agent_{seat}"
        tags = [tag for tag in TAGS if tag not in chosen.hidden_tags]
        return visible_text(text, viewer, tags=tags, rules=chosen.rules).strip()

    def brief(self, seat: int) -> str:
        """Write what a person alone reads: the scene, whom it meets, what it knows of them, and its goal."""
        chosen = self.model.scenario
        return self.model.prompt(
            "brief.md",
            own="" if chosen.lite or chosen.shows != "last turn" else self.own_portrait(seat),
            text=self.read_by(seat, self.situation.text),
            others=self.others_known(seat),
            goal=self.read_by(seat, self.goals[seat]) or "one of your own choice.",
            lite=chosen.lite,
        )

    def player(self, seat: int) -> Person | Author:
        """Return who plays a seat."""
        return self.author or self.persons[seat]

    def goal_prompt(self, seat: int) -> str:
        """Write what is asked of who writes a person's goal."""
        one, text = self.characters[seat], self.read_by(seat, self.situation.text)
        return self.model.prompt("goal.md", text=text, person=one.name, portrait=portrait(one, WHOLE))

    def set_goal(self, seat: int, goal: str) -> None:
        """Set the goal that was written for a person."""
        self.goals[seat] = goal
        for number, person in enumerate(self.persons):
            member = self.room.members[person.unique_id]
            self.room.seat(replace(member, brief=self.brief(number)))

    def script_prompt(self) -> str:
        """Write what an author reads."""
        chosen = self.model.scenario
        persons = [
            {
                "number": seat + 1,
                "name": one.name,
                "portrait": "" if chosen.lite else portrait(one, WHOLE),
                "goal": visible_text(self.goals[seat], ENVIRONMENT, rules=chosen.rules) or OWN_GOAL,
            }
            for seat, one in enumerate(self.characters)
        ]
        return self.model.prompt(
            "script.md",
            text=visible_text(self.situation.text, ENVIRONMENT, rules=chosen.rules),
            persons=persons,
            max_turns=chosen.max_turns,
            happened=turns(self.room.lines),
            is_stepwise=self.model.is_stepwise,
        )

    # -- what happens

    def begin_turn(self) -> None:
        """Begin a turn; a moderator has to choose before anybody is called on."""
        self.room.begin_turn()
        if self.moderator is None:
            self.room.call(self.host.call(self.room))

    def end_turn(self, failures: Mapping[int, str]) -> None:
        """End a turn: who was called on and did nothing is silent; find out whether the episode is over.

        Args:
            failures: Why replies failed, by who gave them.
        """
        self.room.due(failures)
        self.room.end_turn()
        for rule in self.room.end_rules:
            if reason := rule.reason(self.room):
                self.end, self.code = reason, CODES[type(rule)]
                return

    def play(self, move: ScriptMove) -> None:
        """Let one move of a script happen, as a turn.

        Raises:
            ToolError: If that person is not there, or has no words for it.
        """
        agent_id = self.persons[move.person - 1].unique_id
        if agent_id not in self.room.present:
            raise ToolError(f"person {move.person} has left")
        self.room.begin_turn()
        self.room.call([agent_id])
        text = move.text.strip()
        match move.kind:
            case "leave":
                self.room.leave(agent_id)
            case "say" | "gesture" | "do" if text:
                getattr(self.room, move.kind)(agent_id, text)
            case _:
                self.room.wait(agent_id, text)
        self.end_turn({})

    def agreed_share(self, seat: int) -> int | None:
        """Return the share of 10 that a person got, if rule twins agreed on one."""
        candidates = (line for line in self.room.lines if line.kind == "say" and line.text.startswith(AGREED))
        agreement = next(candidates, None)
        found = agreement and SHARE.search(agreement.text)
        if not agreement or not found:
            return None
        share = min(10, int(found[1]))
        return share if agreement.speaker_id == self.persons[seat].unique_id else 10 - share

    @property
    def pair(self) -> str:
        """Ids of the characters, by seat."""
        return " & ".join(self.pairing.character_ids)


@lru_cache(maxsize=16)
def _settings(temperature: float) -> Settings:
    """Return the settings that all who play share."""
    return Settings(temperature=temperature)


def _writing(scenario: SotopiaScenario) -> AgentConfig:
    return AgentConfig(name="Author", settings=Settings(temperature=scenario.temperature, max_tokens=6_000))
