"""One episode: a situation, its players, and their room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any, Protocol

from mesa_llm import AgentConfig, Observation, Settings, ToolError
from mesa_llm_models.discussion.agents import Moderator
from mesa_llm_models.discussion.world import (
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
from mesa_llm_models.discussion.world.text import turns
from mesa_llm_models.sotopia.agents import AGREED, SHARE, Author, RolePlayer, ScriptMove
from mesa_llm_models.sotopia.scenario import SotopiaScenario
from mesa_llm_models.sotopia.scenes import Pairing, Scenes
from mesa_llm_models.sotopia.text import KNOWN_BY_NAME, UNKNOWN, left_text, move_text
from mesa_llm_models.sotopia.visibility import ENVIRONMENT, NAME, TAGS, VISIBLE, WHOLE, portrait, visible_text

CODES: Mapping[type[Any], str] = {MaxTurns: "turns", JustLeft: "left", TooFewLeft: "left", Stale: "stale"}
"""End rule → code of the reason, for results."""

UNFAMILIAR = {0: UNKNOWN, len(NAME): KNOWN_BY_NAME}
"""Number of visible fields of a character → text that replaces a portrait."""


def end_rules(scenario: SotopiaScenario) -> tuple[EndRule, ...]:
    """Return the end rules of an episode."""
    leaving: EndRule = JustLeft() if scenario.rules == "original" else TooFewLeft()
    return (MaxTurns(scenario.max_turns), leaving, Stale(scenario.max_stale))


@dataclass(frozen=True)
class Rating:
    """Scores and reasons of one judgement for one person."""

    episode: int
    """Index of the episode."""

    seat: int
    """Seat of the person, from 0."""

    judge: str
    """Name of the judge."""

    sample: int
    """Index of the judgement among this judge's, from 0."""

    is_swapped: bool
    """Whether the persons were presented to the judge in reverse order."""

    scores: Mapping[str, int] | None
    """Dimension → score; None without a usable judgement."""

    reasons: Mapping[str, str]
    """Dimension → reason."""

    failure: str = ""
    """Reason for a missing judgement, or empty."""


class EpisodeModel(Protocol):
    """The part of a `SotopiaModel` used by an episode."""

    scenario: SotopiaScenario
    scenes: Scenes
    random: Random

    @property
    def is_stepwise(self) -> bool:
        """Whether an author writes move by move."""
        ...

    def prompt(self, name: str, /, **values: Any) -> str:
        """Render a file in the model's folder `prompts`."""
        ...


class Episode:
    """One meeting.

    Attributes:
        model: The model.
        index: Index of the episode in the run, from 0.
        pairing: The situation and its characters, by id.
        situation: The situation.
        characters: The characters, by seat.
        goals: Each seat's private goal, with its tags.
        tested_seats: Seats played by the model under test.
        room: The room.
        persons: The agents that play, by seat.
        persons_by_id: The same by Mesa `unique_id`.
        author: The agent that writes all parts; None where each person plays its own.
        moderator: The agent that chooses the speaker; None for other turn orders.
        end: Reason why the episode is over; empty if it is not.
        code: The same as one word: `turns`, `left`, `stale`, `script` or `failed`.
        ratings: Ratings by the judges, including failed ones.
    """

    def __init__(self, model: EpisodeModel, index: int, pairing: Pairing, tested_seats: Sequence[int]) -> None:
        """Seat the persons.

        Args:
            model: The model.
            index: Index of the episode in the run, from 0.
            pairing: The situation and its characters, by id.
            tested_seats: Seats played by the model under test.
        """
        chosen = model.scenario
        self.model, self.index, self.pairing, self.tested_seats = model, index, pairing, tuple(tested_seats)
        self.situation = model.scenes.situations[pairing.situation_id]
        self.characters = [model.scenes.characters[one] for one in pairing.character_ids]
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

    def _person(self, seat: int) -> RolePlayer:
        chosen, character = self.model.scenario, self.characters[seat]
        reads_once = chosen.shows == "last turn"
        config = AgentConfig(
            name=character.name,
            persona="" if chosen.lite or reads_once else self.own_portrait(seat),
            settings=_settings(chosen.temperature),
        )
        is_tested = seat in self.tested_seats
        person = RolePlayer(self.model, self.room, seat, is_tested, config=config, memory=chosen.memory)
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

    # -- prompts

    def own_portrait(self, seat: int) -> str:
        """Describe a person to itself, including its secret."""
        return f"You are {portrait(self.characters[seat], WHOLE, is_own=True)}"

    def others_known(self, seat: int) -> list[dict[str, str]]:
        """Return what a person reads about each of the others, for `brief.md`: `name`, `about` and `goal`."""
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
        """Write a person's private text: the scene, the others as far as it knows them, and its goal."""
        chosen = self.model.scenario
        return self.model.prompt(
            "brief.md",
            own="" if chosen.lite or chosen.shows != "last turn" else self.own_portrait(seat),
            text=self.read_by(seat, self.situation.text),
            others=self.others_known(seat),
            goal=self.read_by(seat, self.goals[seat]),
            lite=chosen.lite,
        )

    def player(self, seat: int) -> RolePlayer | Author:
        """Return the agent that plays a seat: the script's author, or the person."""
        return self.author or self.persons[seat]

    def goal_prompt(self, seat: int) -> str:
        """Write the prompt that asks for a person's goal if its file has none."""
        one, text = self.characters[seat], self.read_by(seat, self.situation.text)
        return self.model.prompt("goal.md", text=text, person=one.name, portrait=portrait(one, WHOLE))

    def set_goal(self, seat: int, goal: str) -> None:
        """Set a person's generated goal."""
        self.goals[seat] = goal
        for number, person in enumerate(self.persons):
            member = self.room.members[person.unique_id]
            self.room.seat(replace(member, brief=self.brief(number)))

    def script_prompt(self) -> str:
        """Write an author's prompt."""
        chosen = self.model.scenario
        persons = [
            {
                "number": seat + 1,
                "name": one.name,
                "portrait": "" if chosen.lite else portrait(one, WHOLE),
                "goal": visible_text(self.goals[seat], ENVIRONMENT, rules=chosen.rules),
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

    # -- turns

    def begin_turn(self) -> None:
        """Begin a turn. A moderator has to choose before anybody is called on."""
        self.room.begin_turn()
        if self.moderator is None:
            self.room.call(self.host.call(self.room))

    def end_turn(self, failures: Mapping[int, str]) -> None:
        """End a turn: count inactive persons as silent, and set `end` and `code` if a rule applies.

        Args:
            failures: Mesa `unique_id` → reason for a failed reply.
        """
        self.room.due(failures)
        self.room.end_turn()
        for rule in self.room.end_rules:
            if reason := rule.reason(self.room):
                self.end, self.code = reason, CODES[type(rule)]
                return

    def asked(self, agent_id: int, seen: Observation) -> Observation:
        """Return what a person observes on its turn, with who it is before, and what it can do last.

        Args:
            agent_id: Mesa `unique_id` of the person.
            seen: What the room shows it.
        """
        chosen, facts = self.model.scenario, seen.facts
        n_left = chosen.max_turns - facts.turn + 1
        n_people = len(facts.others) + 1
        own_left = {"round-robin": -(-n_left // n_people), "simultaneous": n_left}.get(chosen.order)
        text = move_text(
            facts, agent_id, max_turns=chosen.max_turns, turns_left=own_left, max_silent=chosen.max_stale + 1
        )
        return replace(seen, text=text, persona_place="first")

    def play(self, move: ScriptMove) -> None:
        """Carry out one move of a script, as a turn.

        Args:
            move: The move. Without a required text, it counts as waiting.

        Raises:
            ToolError: If the person has left.
        """
        agent_id = self.persons[move.person - 1].unique_id
        if agent_id not in self.room.present:
            raise ToolError(left_text(move.person))
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
        """Return a person's share of 10; None if no rule twin agreed to one."""
        candidates = (line for line in self.room.lines if line.kind == "say" and line.text.startswith(AGREED))
        agreement = next(candidates, None)
        match = agreement and SHARE.search(agreement.text)
        if not agreement or not match:
            return None
        share = min(10, int(match[1]))
        return share if agreement.speaker_id == self.persons[seat].unique_id else 10 - share

    @property
    def pair(self) -> str:
        """Ids of the characters, by seat."""
        return " & ".join(self.pairing.character_ids)


@lru_cache(maxsize=16)
def _settings(temperature: float) -> Settings:
    """Return all players' sampling settings."""
    return Settings(temperature=temperature)


def _writing(scenario: SotopiaScenario) -> AgentConfig:
    return AgentConfig(name="Author", settings=Settings(temperature=scenario.temperature, max_tokens=6_000))
