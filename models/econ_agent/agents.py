"""The households, their rule twins, and what they note of each month."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import resources
from typing import Any, Literal, NamedTuple

from jinja2 import Environment, StrictUndefined

from mesa_llm import Decision, Failure, LLMAgent, Observation, Outcome, ToolCall
from mesa_llm.memory import MemoryEntry, NoMemory
from mesa_llm.worlds.macro import (
    AtRandom,
    BufferStock,
    Fixed,
    HandToMouth,
    HouseholdFacts,
    Lengnick,
    Policy,
)
from mesa_llm.worlds.macro.rules import TOP_LEVEL, level_share

PolicyName = Literal["composite", "len", "cats", "random", "fixed", "hand_to_mouth"]

POLICIES: dict[str, Callable[[random.Random], Policy]] = {
    "composite": lambda draws: BufferStock() if draws.random() < 0.5 else Lengnick(),
    "len": lambda draws: Lengnick(),
    "cats": lambda draws: BufferStock(),
    "random": lambda draws: AtRandom(),
    "fixed": lambda draws: Fixed(),
    "hand_to_mouth": lambda draws: HandToMouth(),
}
"""Name → what makes the policy of one household's rule twin."""

MOST_THOUGHT = 1500
"""Characters kept of a reflection: some 200 words."""

REFLECTION = "reflection"
"""Label of the question what a household makes of the last months."""

_TEXT = resources.files("models.econ_agent").joinpath("prompts", "reflection.md").read_text(encoding="utf-8")
_TEMPLATE = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(_TEXT)

RULES = resources.files("models.econ_agent").joinpath("prompts", "rules.md").read_text(encoding="utf-8").strip()
"""What every household is told besides the rules of the economy."""


class MonthNote(NamedTuple):
    """What a household notes of a month, to reflect on later."""

    date: str
    """The month."""

    seen: str
    """What it saw before it planned."""

    plan: str
    """What it planned, or why it did not."""


class Household(LLMAgent):
    """A household that plans how willing it is to work and which share of its money it spends.

    Attributes:
        policy: Rule of its rule twin.
        notes: What it noted of the latest months, to reflect on.
        place: Its place in the arrays of the economy.
    """

    def __init__(self, model: Any, policy: Policy, place: int, reflect_every: int = 3, **components: Any) -> None:
        """Place a household.

        Args:
            model: The model.
            policy: Rule of its rule twin.
            place: Its place in the arrays of the economy.
            reflect_every: Months it notes to reflect on; 0: it never reflects.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.policy = policy
        self.place = place
        self.notes: deque[MonthNote] = deque(maxlen=reflect_every)

    # -- a month

    def observe(self) -> Observation:
        """Look at job, prices, tax, savings and interest; what all households are told comes first."""
        seen = super().observe()
        return replace(seen, rules="\n\n".join(filter(None, (seen.rules, RULES))))

    def rule(self, seen: Observation) -> ToolCall:
        """Plan by the policy: the work draw is made here, so that it works surely or not at all."""
        plans = self.policy.decide(_facts(seen).standing, self.random)
        level = int(plans.levels[0])
        share = level_share(level) if self.model.world.economy.rules == "original" else level / TOP_LEVEL
        return ToolCall("plan_month", {"work": float(plans.works[0]), "consumption": share})

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Do what was planned, and note it if the household reflects."""
        outcomes = super().act(decision, seen)
        if seen is not None and seen.label != REFLECTION and self.reflects:
            done = " ".join(str(outcome.result) for outcome in outcomes) or "nothing; you had no plan this month."
            self.notes.append(MonthNote(_facts(seen).date, seen.text, done))
        return outcomes

    # -- reflection

    @property
    def reflects(self) -> bool:
        """Whether it reflects: it thinks with a language model, and can remember what it thought."""
        if not self.notes.maxlen or isinstance(self.memory, NoMemory):
            return False
        return self.opened.is_language_model

    def reflection(self) -> Observation:
        """Ask what the household makes of the last months, in the light of what it sees now."""
        now = self.observe()
        text = _TEMPLATE.render(months=list(self.notes), now=now.text)
        return Observation(text, now.rules, answer=str, tools=(), cue=now.text, label=REFLECTION)

    def remember(self, decision: Decision, outcomes: Iterable[Outcome], seen: Observation | None = None) -> None:
        """Remember a reflection as a thought, cut to its first words; all else as it came."""
        if seen is None or seen.label != REFLECTION:
            super().remember(decision, outcomes, seen)
        elif decision.answer:
            self.memory.add(MemoryEntry(self.now, "thought", str(decision.answer)[:MOST_THOUGHT], 0.9))

    # -- what is collected

    def _field(self, name: str) -> Any:
        return getattr(self.model.world.economy.households, name)[self.place].item()

    @property
    def savings(self) -> float:
        """Savings, in dollars."""
        return self._field("coin")

    @property
    def wage(self) -> float:
        """Hourly wage, in dollars."""
        return self._field("skill")

    @property
    def is_employed(self) -> bool:
        """Whether it worked last month."""
        return self._field("job") >= 0

    @property
    def spent(self) -> float:
        """Dollars spent last month."""
        return self._field("consumption")

    @property
    def tax_paid(self) -> float:
        """Dollars of tax paid last month."""
        return self._field("tax_paid")


def _facts(seen: Observation) -> HouseholdFacts:
    """Give the economy's facts of an observation, also where other worlds are seen besides."""
    return seen.facts["macro"] if isinstance(seen.facts, dict) else seen.facts
