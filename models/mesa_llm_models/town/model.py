"""A small town: people plan their day, choose a place for each hour, and talk with those they meet; news spreads."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import comb
from statistics import fmean
from typing import Annotated, Any, ClassVar, Unpack

import networkx as nx
from mesa.datacollection import DataCollector
from mesa.discrete_space import CellAgent, Network
from pydantic import Field

from mesa_llm import Dialogue, LLMModel, LLMOptions, LLMScenario, Mind, Observation, Slider, Structure, ToolCall, action
from mesa_llm_models.town import text

MORNING, HOURS, PARTY_HOUR, PARTY_PLACE = 8, 14, 18, "park"
"""First hour of a day, its number of hours, and when and where the party is, on the last day."""

PLANNED = "You planned your day: {answer!r}"
"""The sentence in which people remember their plan."""

MAX_TALKERS = 4
"""Maximum number of people in one conversation."""


class TownScenario(LLMScenario):
    """Parameters of the town."""

    n_agents: Annotated[
        int,
        Field(ge=2, le=len(text.PEOPLE)),
        Slider(2, len(text.PEOPLE), label="People"),
        Structure(4, 10, dimension="population"),
    ] = 8
    """Number of people."""

    days: Annotated[int, Field(ge=1, le=14), Slider(1, 7)] = 1
    """Number of days; the party is on the last one."""

    sociability: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.5
    """Probability that those who are in one place talk in an hour."""

    turns: Annotated[int, Field(ge=1, le=12), Slider(1, 8), Structure(2, 8, dimension="interaction protocol")] = 4
    """Maximum number of turns of a conversation."""

    gossip: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.5
    """Probability that a rule twin that has heard of the party speaks of it in its turn."""

    whim: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.1
    """Probability that a rule twin goes anywhere instead of following its routine."""

    memory: str = "stream:12"
    """Memory of the people."""


class TownDweller(Mind, CellAgent):
    """Plans its day, spends each hour in a place, and talks with those it meets.

    Attributes:
        home: Where it lives.
        work: Where it works.
        doing: What it does in this hour.
        plan: What it plans to do today.
        has_heard: Whether it has heard of the party.
        heard: Who told it of the party, and in which words; None: nobody.
    """

    cell: Any

    def __init__(self, model: TownModel, home: str, work: str, **components: Any) -> None:
        super().__init__(model, **components)
        self.home, self.work = home, work
        self.cell = model.grid[home]
        self.doing, self.plan, self.has_heard = text.PLACES[home], "", False
        self.heard: tuple[str, str] | None = None

    def observe(self) -> Observation:
        """Return the time, the place, who else is there, its plan, what it knows of the party, and where it can go."""
        present = {other.config.name: other.doing for other in self.cell.agents if other is not self}
        day, hour = self.model.day, self.model.hour
        seen = text.observation_text(day, hour, self.cell.coordinate, present, self.plan, self.news)
        return Observation(seen, options={"place": tuple(text.PLACES)})

    @property
    def news(self) -> str:
        """What it knows of the party; empty: nothing."""
        if self.heard is not None:
            return text.heard_text(*self.heard)
        if self is not self.model.host:
            return ""
        model = self.model
        return text.party_text(model.day, model.hour, (model.scenario.days, PARTY_HOUR, PARTY_PLACE))

    @action(did="You spent the hour here: {place} ({doing!r}).")
    def spend_hour(self, place: str, doing: Annotated[str, Field(max_length=120)]) -> str:
        """Spend the next hour in a place.

        Args:
            place: Where you are in this hour.
            doing: What you do there, in a few words.
        """
        self.cell, self.doing = self.model.grid[place], doing
        return ""

    def receive(self, answer: str, label: str, world: str) -> str:
        """Keep the plan of the day."""
        self.plan = answer
        return ""

    def rule(self, seen: Observation) -> ToolCall | str:
        """Plan the routine; follow it, go to the party, or go anywhere on a whim."""
        if seen.label == "plan":
            return text.plan_text(self.work)
        hour, place = self.model.hour, self.work
        if self.has_heard and self.model.is_party:
            place = PARTY_PLACE
        elif self.random.random() < self.model.scenario.whim:
            place = self.random.choice(list(text.PLACES))
        elif hour < 9 or hour >= 20:
            place = self.home
        elif hour == 12 or hour >= 17:
            place = "bakery" if hour == 12 else self.random.choice(("market", "park"))
        return ToolCall("spend_hour", {"place": place, "doing": text.PLACES[place]})

    def rule_utterance(self, conversation: Dialogue) -> str:
        """Tell of the party, or pass the time of day."""
        if self.has_heard and self.random.random() < self.model.scenario.gossip:
            return text.news_text(self.model.scenario.days, PARTY_HOUR, PARTY_PLACE)
        return text.remark_text(self.model.hour)


class TownModel(LLMModel):
    """Everybody plans in the morning, chooses a place for each hour, and talks with those who are there.

    Attributes:
        host: Who gives the party.
        grid: The places, each of which can be reached from all others.
        talks: Conversations of the last hour.
        acquainted: Pairs who have talked, by number.
        guests: Number of people who have heard of the party and came to it, besides the host.
        day: The day, from 1.
        hour: The hour of the day.
    """

    scenario_class = TownScenario
    scenario: TownScenario
    measures: ClassVar[Mapping[str, str]] = {
        "heard": "Share of people who have heard of the party",
        "n_talks": "Talks in the last hour",
        "group_size": "People in a place where somebody is",
        "density": "Share of pairs who have talked so far",
    }
    changeable = ("sociability", "turns", "gossip", "whim")

    def __init__(self, scenario: TownScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        graph = nx.complete_graph(list(text.PLACES))
        self.grid: Any = Network(graph, random=self.random, layout=nx.circular_layout(graph))
        news = text.host_text(self.scenario.days, PARTY_HOUR, PARTY_PLACE)
        for person in text.PEOPLE[: self.scenario.n_agents]:
            config = text.config_of(person, "" if self.agents else news)
            TownDweller(self, person.home, person.work, config=config, memory=self.scenario.memory)
        self.host: TownDweller = self.agents[0]
        self.host.has_heard = True
        self.talks: list[Dialogue] = []
        self.acquainted: set[tuple[int, int]] = set()
        self.guests, self.day, self.hour = 0, 1, MORNING
        measures = {
            "heard": lambda model: fmean(one.has_heard for one in model.agents),
            "guests": "guests",
            "n_talks": lambda model: len(model.talks),
            "group_size": lambda model: fmean(map(len, model.groups)),
            "density": lambda model: len(model.acquainted) / comb(len(model.agents), 2),
        }
        self.datacollector = DataCollector(measures, {"place": lambda one: one.cell.coordinate})
        self.datacollector.collect(self)

    @property
    def is_party(self) -> bool:
        """Whether this is the hour of the party."""
        return (self.day, self.hour) == (self.scenario.days, PARTY_HOUR)

    @property
    def moment(self) -> str:
        """The words for the present hour, with which memories begin."""
        return f"On day {self.day} at {self.hour}:00"

    def topic_for(self, one: TownDweller) -> str:
        """Return what somebody reads who meets people: when and where, and what it knows of the party."""
        where = text.meeting_text(self.day, self.hour, one.cell.coordinate)
        return "\n".join(filter(None, (where, one.news)))

    def start_step(self) -> None:
        """Set the clock, and let everybody plan the day in its first hour."""
        day, hour = divmod(self.now - 1, HOURS)
        self.day, self.hour = day + 1, hour + MORNING
        if self.hour == MORNING:
            self.agents.set("plan", "")
            question = Observation(text.plan_question(self.day), answer=str, label="plan", remembered=PLANNED)
            self.ask(list(self.agents), [question] * len(self.agents))

    def end_step(self) -> None:
        """Let those in one place talk, and pass the news on; a run ends in the evening of the last day."""
        if self.is_party:
            self.guests = sum(one.has_heard and one.cell.coordinate == PARTY_PLACE for one in self.agents[1:])
        groups = [self.random.sample(group, min(len(group), MAX_TALKERS)) for group in self.groups if len(group) > 1]
        groups = [group for group in groups if self.random.random() < self.scenario.sociability]
        self.talks = self.converse_in_groups(groups, turns=self.scenario.turns, topic=self.topic_for)
        for talk in self.talks:
            for utterance in talk.utterances:
                if utterance.speaker.has_heard and text.NEWS_WORD in utterance.text.lower():
                    for one in talk.agents:
                        if not one.has_heard:
                            one.has_heard, one.heard = True, (utterance.name, utterance.text)
            if talk.utterances:
                self.acquainted.update(combinations(sorted(one.unique_id for one in talk.agents), 2))
        self.running = self.now < HOURS * self.scenario.days

    @property
    def groups(self) -> list[list[TownDweller]]:
        """The people in each place where somebody is."""
        return [people for cell in self.grid.all_cells if (people := list(cell.agents))]
