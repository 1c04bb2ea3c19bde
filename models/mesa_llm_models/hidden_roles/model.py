"""A game of hidden roles: werewolves attack by night, and by day the village talks and votes somebody out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from random import Random
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    AgentConfig,
    Dialogue,
    LLMAgent,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Observation,
    Slider,
    Structure,
    ToolCall,
    action,
)
from mesa_llm_models.hidden_roles.text import CHARACTERS

NAMES = ("Ada", "Bo", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana", "Ivo")
"""Names of the players."""

BY_NIGHT = {"werewolf": "attack", "seer": "look_at"}
"""Role → what it does by night."""

CERTAIN = 1000
"""What the seer's knowledge, and the word of a seer, count, in accusations."""


class HiddenRolesScenario(LLMScenario):
    """Parameters of the village."""

    n_agents: Annotated[
        int, Field(ge=5, le=9), Slider(5, 9, label="Players"), Structure(5, 9, dimension="population")
    ] = 7
    """Number of players, one of them the seer."""

    n_wolves: Annotated[int, Field(ge=1, le=2), Slider(1, 2, label="Werewolves"), Structure(1)] = 2
    """Number of werewolves."""

    rounds: Annotated[
        int,
        Field(ge=1, le=5),
        Slider(1, 5, label="Turns to speak in a day"),
        Structure(2, dimension="interaction protocol"),
    ] = 1
    """Number of times that everybody speaks before the vote."""

    people: Literal["drawn", "alike"] = "drawn"
    """Whether each player has a character, drawn with the seed, or they differ by name and role alone."""

    memory: str = "window:30"
    """Memory of the players."""


class VillagePlayer(LLMAgent):
    """A player with a secret role.

    Attributes:
        name, role: Its name; and `villager`, `seer` or `werewolf`.
        character: How it is, in a sentence; empty: nothing is said of it.
        visions: Name of a player that it has looked at → whether that is a werewolf.
    """

    def __init__(self, model: HiddenRolesModel, name: str, role: str, **components: Any) -> None:
        super().__init__(model, config=AgentConfig(name=name), **components)
        self.name, self.role, self.character = name, role, ""
        self.visions: dict[str, bool] = {}

    @property
    def fellows(self) -> list[VillagePlayer]:
        """The other werewolves, also those who have left; none for all but werewolves."""
        wolves = [other for other in self.model.players.values() if other.role == "werewolf" and other is not self]
        return wolves if self.role == "werewolf" else []

    def learn(self) -> None:
        """Put what it alone knows into its persona, which its own prompts have, and no other."""
        persona = self.model.prompt("role.md", player=self)
        self.config = self.config.model_copy(update={"persona": persona})

    def observe(self) -> Observation:
        """Show what everybody knows, with a choice of the others; no werewolf attacks another."""
        phase = "vote" if self.model.is_day else BY_NIGHT.get(self.role, "vote")
        others = [other for other in self.model.agents if other is not self]
        names = tuple(other.name for other in others if phase != "attack" or other not in self.fellows)
        text = self.model.prompt("scene.md", model=self.model, phase=phase, player=self)
        return Observation(text, tools=(phase,), options={"player": names}, label=phase)

    @action(did="You proposed that the werewolves attack {player}.")
    def attack(self, player: str) -> str:
        """Propose whom the werewolves attack in this night."""
        self.model.proposals.append(player)
        return "Done."

    @action(did="You looked at {player}. {result}")
    def look_at(self, player: str) -> str:
        """Find out whether a player is a werewolf."""
        self.visions[player] = self.model.players[player].role == "werewolf"
        self.learn()
        return f"{player} is {'a' if self.visions[player] else 'no'} werewolf."

    @action(did="You voted for {player}.")
    def vote(self, player: str) -> str:
        """Vote to send a player away."""
        self.model.votes[self.name] = player
        return "Done."

    def rule(self, seen: Observation) -> ToolCall:
        """Attack anybody, look at somebody new, and vote for the player it suspects most."""
        names = list(seen.options["player"])
        fresh = [name for name in names if name not in self.visions] or names
        return ToolCall(seen.label, {"player": self.suspected() if seen.label == "vote" else self.random.choice(fresh)})

    def rule_utterance(self, dialogue: Dialogue) -> str:
        """Accuse the player it suspects most; the seer says so if it is sure."""
        suspect = self.suspected(dialogue)
        return self.model.prompt("remark.md", suspect=suspect, is_sure=self.visions.get(suspect, False))

    def suspected(self, *talks: Dialogue) -> str:
        """Return the name of the player that its rule twin suspects most, drawn if there are several.

        Suspicious are those who have named players who turned out to be no werewolves, more often than werewolves. It
        believes whoever claims to be the seer. The seer knows better, and no werewolf suspects another.

        Args:
            talks: Conversations that are still going on.
        """
        counts = Counter({name: CERTAIN if is_wolf else -CERTAIN for name, is_wolf in self.visions.items()})
        was_wolf = {name: self.model.players[name].role == "werewolf" for _, _, name in self.model.departures}
        for one in (one for talk in (*self.model.talks, *talks) for one in talk.utterances):
            words = set(re.findall(r"\w+", one.text))
            counts[one.name] += sum(-1 if was_wolf[word] else 1 for word in words & was_wolf.keys())
            if "seer" in words and not was_wolf.get(one.name):
                counts.update(dict.fromkeys(words, CERTAIN))
        names = [other.name for other in self.model.agents if other is not self and other not in self.fellows]
        highest = max(counts[name] for name in names)
        return self.random.choice([name for name in names if counts[name] == highest])


class HiddenRolesModel(LLMModel):
    """In each step a night, a conversation and a vote, until the werewolves are gone or as many as the others.

    Attributes:
        players: Name → player, also of those who have left.
        proposals, votes: Names that werewolves proposed in this night; and name → name it voted for, on the last day.
        talks, departures: The conversations, one a day; and day, `Night` or `Day`, and name of each who left.
        is_day: Whether this stage of the step is by day.
        hits: Whether each vote so far hit a werewolf, and the probability of that for a vote at random.
    """

    scenario_class = HiddenRolesScenario
    scenario: HiddenRolesScenario
    measures: ClassVar[Mapping[str, str]] = {
        "players": "Players in the game",
        "wolves": "Werewolves in the game",
        "hit_share": "Share of all votes so far that hit a werewolf",
        "chance_share": "The same share, expected of votes at random",
    }
    changeable = ("rounds",)
    goes_on_after_failures = True

    def __init__(self, scenario: HiddenRolesScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        n, n_wolves = self.scenario.n_agents, self.scenario.n_wolves
        roles = ["seer", *["werewolf"] * n_wolves, *["villager"] * (n - n_wolves - 1)]
        self.random.shuffle(roles)
        memory = self.scenario.memory
        self.players = {who[0]: VillagePlayer(self, *who, memory=memory) for who in zip(NAMES[:n], roles, strict=True)}
        if self.scenario.people == "drawn":
            characters = Random(f"players {self.run_seed}").sample(CHARACTERS, n)
            for player, character in zip(self.players.values(), characters, strict=True):
                player.character = character
        for player in self.players.values():
            player.learn()
        self.proposals: list[str] = []
        self.votes: dict[str, str] = {}
        self.talks: list[Dialogue] = []
        self.departures: list[tuple[int, str, str]] = []
        self.hits: list[tuple[bool, float]] = []
        self.is_day = False
        self.activation = HiddenRolesModel.awake
        self.datacollector = DataCollector(
            {
                "players": lambda model: len(model.agents),
                "wolves": lambda model: len(model.wolves),
                "hit_share": lambda model: fmean(hit for hit, _ in model.hits) if model.hits else None,
                "chance_share": lambda model: fmean(chance for _, chance in model.hits) if model.hits else None,
            }
        )
        self.datacollector.collect(self)

    @property
    def wolves(self) -> list[VillagePlayer]:
        """The werewolves in play."""
        return [player for player in self.agents if player.role == "werewolf"]

    @property
    def n_wolves_left(self) -> int:
        """Number of werewolves in play, as everybody can know: the role of each who left was announced."""
        gone = [name for _, _, name in self.departures if self.players[name].role == "werewolf"]
        return self.scenario.n_wolves - len(gone)

    @property
    def moment(self) -> str:
        """The words for the present stage, with which memories begin."""
        return f"On day {self.now}" if self.is_day else f"In night {self.now}"

    @property
    def winner(self) -> Literal["village", "werewolves"] | None:
        """Who has won; None while the game goes on."""
        n_wolves = len(self.wolves)
        return "village" if not n_wolves else "werewolves" if 2 * n_wolves >= len(self.agents) else None

    def start_step(self) -> None:
        """Let night fall."""
        self.is_day = False

    def awake(self) -> list[list[VillagePlayer]]:
        """Return who chooses by night: the werewolves and the seer, who do not know of each other."""
        return [[player for player in self.agents if player.role in BY_NIGHT]]

    def next_stage(self, acted: list[Any]) -> list[VillagePlayer]:
        """Let day break after the night: somebody is gone, all talk, and all vote."""
        if self.is_day:
            return []
        self.is_day = True
        self.send_away("Night", self.proposals)
        if self.winner is not None:
            return []
        order = self.random.sample(list(self.agents), len(self.agents))
        turns = self.scenario.rounds * len(order)
        self.talks.append(self.converse(order, turns=turns, topic=self.scene_of_talk))
        self.votes = {}
        return list(self.agents)

    def scene_of_talk(self, player: VillagePlayer) -> str:
        """Return what a player reads when the village talks."""
        return self.prompt("scene.md", model=self, phase="talk", player=player)

    def end_step(self) -> None:
        """Send away the player with the most votes."""
        if self.is_day and self.winner is None:
            for voter, target in self.votes.items():
                n_wolves = len(self.wolves) - (self.players[voter] in self.wolves)
                self.hits.append((self.players[target].role == "werewolf", n_wolves / (len(self.agents) - 1)))
            self.send_away("Day", list(self.votes.values()))
        self.running = self.winner is None

    def send_away(self, when: str, names: list[str]) -> None:
        """Remove from play the player who is named most, drawn if several are; nobody if nobody is named."""
        counts = Counter(name for name in names if self.players[name] in self.agents)
        if counts:
            name = self.random.choice([name for name, n in counts.items() if n == max(counts.values())])
            self.players[name].remove()
            self.departures.append((self.now, when, name))
        self.proposals = []

    def results(self) -> dict[str, Any]:
        """Return the measures of the last step, who has won (None: nobody yet), and the number of days."""
        return super().results() | {"winner": self.winner, "days": int(self.time)}
