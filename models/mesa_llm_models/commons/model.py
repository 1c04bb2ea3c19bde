"""A lake that belongs to nobody: fishers harvest at once, meet and talk, and the fish grow back or die out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean, median
from typing import Annotated, Any, ClassVar, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    Dialogue,
    LLMAgent,
    LLMModel,
    LLMOptions,
    LLMScenario,
    MemoryEntry,
    Observation,
    Slider,
    ToolCall,
    action,
)
from mesa_llm.model.measures import gini
from mesa_llm_models.commons.text import (
    NAMES,
    configs_of,
    meeting_text,
    met_text,
    observation_text,
    outlook_text,
    proposal_text,
    proposed_tons,
)

CAPACITY, COLLAPSE = 100, 5
"""Tons of fish that the lake holds at most, and at the start; tons below which the fish die out."""


class CommonsScenario(LLMScenario):
    """Parameters of the lake and its fishers."""

    n_agents: Annotated[int, Field(ge=2, le=len(NAMES)), Slider(2, len(NAMES), label="Fishers")] = 5
    """Number of fishers."""

    growth: Annotated[float, Field(ge=1.1, le=4), Slider(1.1, 4, 0.1)] = 2.0
    """Factor by which the fish that are left multiply until the next month."""

    months: Annotated[int, Field(ge=1, le=120), Slider(1, 36)] = 12
    """Number of months that a run lasts unless the fish die out; fishers are not told."""

    meeting: bool = True
    """Whether the fishers meet and talk after each harvest."""

    greed: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.3
    """How far rule twins go from a sustainable share to an equal split of all fish; how often despite a proposal."""

    people: Literal["drawn", "alike"] = "drawn"
    """Whether each fisher has a household, a boat and a temper, drawn with the seed, or they differ by name alone."""

    memory: str = "window:24"
    """Memory of the fishers."""


class Fisher(LLMAgent):
    """Decides each month how much to catch, and talks in the town meeting.

    Attributes:
        wanted: Tons it set out to catch this month.
        catches: Tons it has caught, month by month.
    """

    def __init__(self, model: CommonsModel, **components: Any) -> None:
        super().__init__(model, **components)
        self.wanted = 0
        self.catches: list[int] = []

    def observe(self) -> Observation:
        """Return the stock, how much of it can be taken safely, and its own catches."""
        model = self.model
        share, n = model.share_of(model.stock), len(model.agents)
        text = observation_text(model.now, model.stock, self.catches, share, n, COLLAPSE)
        return Observation(text, facts=self.model.stock, limits={"fish.tons": (0, self.model.stock)})

    def rule(self, seen: Observation) -> ToolCall:
        """Catch what the meeting proposed, or from greed an amount between the sustainable and an equal share."""
        greed, proposal, share = self.model.scenario.greed, self.model.proposal, self.model.share_of(seen.facts)
        if proposal is not None and self.random.random() >= greed:
            return ToolCall("fish", {"tons": int(proposal)})
        return ToolCall("fish", {"tons": math.ceil(share + greed * (seen.facts / len(self.model.agents) - share))})

    def rule_utterance(self, conversation: Dialogue) -> str:
        """Propose the sustainable share of the coming month."""
        return proposal_text(self.model.share_of(self.model.grown))

    @action(did="You set out to catch {tons:ton} of fish.")
    def fish(self, tons: Annotated[int, Field(ge=0)]) -> str:
        """Set out to catch fish this month.

        Args:
            tons: How many tons you want to catch; 0 to catch none.
        """
        self.wanted = tons
        return ""


class CommonsModel(LLMModel):
    """Everybody harvests at once; then all meet and talk, and the fish grow.

    Source: Piatti et al. (2024), Cooperate or Collapse, NeurIPS 37: the rules of the fishery, and the measures.

    Attributes:
        stock: Tons of fish in the lake.
        shares: Tons that each might have caught sustainably, month by month.
        meetings: Month → its town meeting.
    """

    scenario_class = CommonsScenario
    scenario: CommonsScenario
    measures: ClassVar[Mapping[str, str]] = {
        "survival": "Months fished so far",
        "gain": "Mean catch of a fisher so far, in tons",
        "equality": "Equality of catches: 1 if all have caught the same",
    }
    changeable = ("growth", "meeting", "greed")

    def __init__(self, scenario: CommonsScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        are_drawn = self.scenario.people == "drawn"
        configs = configs_of(self.scenario.n_agents, self.run_seed, are_drawn=are_drawn)
        Fisher.create_agents(self, len(configs), config=configs, memory=self.scenario.memory)
        self.stock = CAPACITY
        self.shares: list[int] = []
        self.meetings: dict[int, Dialogue] = {}
        self.datacollector = DataCollector(
            {
                "stock": "stock",
                "survival": lambda model: len(model.shares),
                "gain": lambda model: fmean(model.gains),
                "efficiency": "efficiency",
                "equality": lambda model: 1 - gini(model.gains),
                "over_usage": "over_usage",
                "proposal": "proposal",
            }
        )
        self.datacollector.collect(self)

    def end_step(self) -> None:
        """Land the harvest, hold the meeting, and let the fish grow; a run ends with them, or after its months."""
        self.harvest()
        self.running = self.stock >= COLLAPSE and self.now < self.scenario.months
        if self.scenario.meeting and self.running:
            fishers, catches = self.agents.shuffle(), {fisher.config.name: fisher.catches[-1] for fisher in self.agents}
            text = meeting_text(self.now, self.stock, catches)
            topic = f"{text} {outlook_text(self.grown, self.share_of(self.grown), len(fishers))}"
            self.meetings[self.now] = self.converse(list(fishers), turns=len(fishers), topic=topic)
            met = MemoryEntry(self.now, "observation", met_text(text), is_sentence=True, moment=self.moment)
            fishers.do(lambda fisher: fisher.memory.add(met))
        self.stock = self.grown

    @property
    def moment(self) -> str:
        """The words for the present month, with which memories begin."""
        return f"In month {self.now}"

    def harvest(self) -> None:
        """Land the fish of a month; if more is wanted than there is, each ton goes to one who still wants it."""
        self.shares.append(self.share_of(self.stock))
        caught = {fisher: fisher.wanted for fisher in self.agents}
        if sum(caught.values()) > self.stock:
            caught = dict.fromkeys(caught, 0)
            for _ in range(self.stock):
                caught[self.random.choice([fisher for fisher in caught if caught[fisher] < fisher.wanted])] += 1
        for fisher, tons in caught.items():
            fisher.catches.append(tons)
            fisher.wanted = 0
        self.stock -= sum(caught.values())

    @property
    def grown(self) -> int:
        """Tons of fish that those in the lake now will be next month; 0 if they die out."""
        return min(CAPACITY, int(self.stock * self.scenario.growth)) if self.stock >= COLLAPSE else 0

    def share_of(self, stock: int) -> int:
        """Return the whole tons that each may catch from a stock so that it grows back."""
        return math.floor(stock - stock / self.scenario.growth) // len(self.agents)

    @property
    def gains(self) -> list[int]:
        """Tons that each fisher has caught so far."""
        return [sum(fisher.catches) for fisher in self.agents]

    @property
    def efficiency(self) -> float:
        """Catches so far as a share of the largest sustainable harvest of all months."""
        best = self.scenario.months * math.floor(CAPACITY - CAPACITY / self.scenario.growth)
        return 1 - max(0, best - sum(self.gains)) / best

    @property
    def over_usage(self) -> float:
        """Share of the catches that were above the sustainable share of their month."""
        over = [tons > share for one in self.agents for tons, share in zip(one.catches, self.shares, strict=True)]
        return fmean(over) if over else 0.0

    @property
    def proposal(self) -> float | None:
        """Median of the tons proposed in the meeting of the last month; None if there was none, or no amount."""
        last = self.meetings.get(len(self.shares))
        tons = [proposed_tons(utterance.text) for utterance in last.utterances] if last else []
        return median(found) if (found := [one for one in tons if one is not None]) else None
