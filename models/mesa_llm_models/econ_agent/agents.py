"""Households: their months, reflections and memory, and the policies of their rule twins."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from mesa_llm import (
    ChatMemory,
    ChatMessage,
    Decision,
    Failure,
    LLMAgent,
    MemoryEntry,
    NoMemory,
    Observation,
    Outcome,
    ToolCall,
)
from mesa_llm.memory.text import NO_ANSWER
from mesa_llm.world import RNG
from mesa_llm_models.econ_agent.world import (
    CONSUMPTION_STEP,
    EPSILON,
    TOP_LEVEL,
    BoolArray,
    FloatArray,
    HouseholdFacts,
    IntArray,
    MonthlyEconomy,
    TaxSchedule,
    consumption_level,
    level_share,
    tax_text,
    uniforms,
)

PolicyName = Literal["composite", "len", "cats", "random", "fixed", "hand_to_mouth"]

POLICIES: dict[PolicyName, Callable[[random.Random], HouseholdPolicy]] = {
    "composite": lambda rng: BufferStock() if rng.random() < 0.5 else Lengnick(),
    "len": lambda rng: Lengnick(),
    "cats": lambda rng: BufferStock(),
    "random": lambda rng: AtRandom(),
    "fixed": lambda rng: Fixed(),
    "hand_to_mouth": lambda rng: HandToMouth(),
}
"""Name → constructor of the policy of one household's rule twin."""

MAX_THOUGHT = 1500
"""Maximum number of stored characters of a reflection: about 200 words."""

REFLECTION = "reflection"
"""Label of the question asking a household to reflect on the last months."""

DIALOGUE = "dialogue"
"""Name of the paper's household memory in the model's parameters."""

DIALOGUE_TOKENS = 64_000
"""Maximum number of tokens of a dialogue: far more than a year of prompts and answers."""


class Household(LLMAgent):
    """A household that plans its propensity to work and the share of money to spend.

    Attributes:
        policy: Policy of its rule twin.
        notes: Its notes on recent months, for reflection.
        index: Its index in the arrays of the economy.
    """

    def __init__(
        self, model: Any, policy: HouseholdPolicy, index: int, reflect_every: int = 3, **components: Any
    ) -> None:
        """Add a household to the model.

        Args:
            model: The model.
            policy: Policy of its rule twin.
            index: Its index in the arrays of the economy.
            reflect_every: Number of months between reflections; 0 for none.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.policy = policy
        self.index = index
        self.notes: deque[MonthNote] = deque(maxlen=reflect_every)

    # -- a month

    def observe(self) -> Observation:
        """Return job, prices, tax, savings and interest; with `fidelity="original"` only what the paper shows.

        The paper shows all of it in one text, because the dialogue stores that.
        """
        if self.model.scenario.fidelity != "original":
            return super().observe()
        facts, level = self.facts, self._field("level")
        text = self.model.prompt("original.md", facts=facts, level=level, tax=tax_text(facts.tax))
        return self.with_news(Observation(text, facts=facts, persona_place="system"))

    @property
    def facts(self) -> HouseholdFacts:
        """Facts it observes about the economy."""
        return self.model.world.facts(self.unique_id)

    def rule(self, seen: Observation) -> ToolCall:
        """Plan by the policy, which draws whether the household works: its propensity is then 1 or 0."""
        plans = self.policy.decide(HouseholdStanding.of(self.facts), self.random)
        level = int(plans.levels[0])
        share = level_share(level) if self.model.scenario.rules == "original" else level / TOP_LEVEL
        return ToolCall("plan_month", {"work": float(plans.works[0]), "consumption": share})

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Carry out the plan, and note it if the household reflects."""
        outcomes = super().act(decision, seen)
        if seen is None or seen.label == REFLECTION:
            return outcomes
        if isinstance(self.memory, HouseholdDialogue):
            if isinstance(decision, Failure):
                self.memory.add(MemoryEntry(self.now, "observation", seen.text))
                self.memory.add(MemoryEntry(self.now, "decision", NO_ANSWER))
        elif self.reflects:
            plan = " ".join(str(outcome.result) for outcome in outcomes) or "nothing; you had no plan this month."
            self.notes.append(MonthNote(self.facts.date, seen.text, plan))
        return outcomes

    # -- reflection

    @property
    def reflects(self) -> bool:
        """Whether it reflects: it has a language model, and a memory for its thoughts."""
        if not self.notes.maxlen or isinstance(self.memory, NoMemory):
            return False
        return self.opened.is_language_model

    def reflection(self) -> Observation:
        """Return the request to reflect on the last months, with the current month unless the memory is a dialogue."""
        if isinstance(self.memory, HouseholdDialogue):
            text = self.model.prompt("original_reflection.md", months=self.notes.maxlen)
            return Observation(text, answer=str, tools=(), label=REFLECTION, persona_place="system")
        observation = self.observe()
        text = self.model.prompt("reflection.md", months=list(self.notes), now=observation.text)
        return Observation(text, observation.instructions, answer=str, tools=(), cue=observation.text, label=REFLECTION)

    def prompt(self, seen: Observation) -> tuple[ChatMessage, ...]:
        """Return the prompt. A dialogue is asked to reflect after all the quarter's prompts and answers."""
        prompt = super().prompt(seen)
        if seen.label != REFLECTION or not isinstance(self.memory, HouseholdDialogue):
            return prompt
        system = [message for message in prompt if message.role == "system"]
        return (*system, *self.memory.last_months(self.notes.maxlen or 1), ChatMessage("user", seen.text))

    def remember(self, decision: Decision, outcomes: Iterable[Outcome], seen: Observation | None = None) -> None:
        """Remember a reflection as a thought, cut to its first words. A dialogue does not remember outcomes."""
        is_dialogue = isinstance(self.memory, HouseholdDialogue)
        if seen is None or seen.label != REFLECTION:
            super().remember(decision, () if is_dialogue else outcomes, seen)
        elif decision.answer:
            if is_dialogue:
                self.memory.add(MemoryEntry(self.now, "observation", seen.text, unit=self.unit_in()))
            thought = str(decision.answer)[:MAX_THOUGHT]
            self.memory.add(
                MemoryEntry(self.now, "thought", thought, 0.9, unit=self.unit_in(), moment=self.moment_in())
            )

    # -- measures

    def _field(self, name: str) -> Any:
        return getattr(self.model.world.economy.households, name)[self.index].item()

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
    def spending(self) -> float:
        """Dollars spent last month."""
        return self._field("consumption")

    @property
    def tax_paid(self) -> float:
        """Dollars of tax paid last month."""
        return self._field("tax_paid")


class MonthNote(NamedTuple):
    """A household's note on a month, for later reflection."""

    date: str
    """Name and year of the month."""

    observation: str
    """Text the household read before planning."""

    plan: str
    """Its plan, or a note that there is none."""


class HouseholdDialogue(ChatMemory):
    """Remembers prompts and answers as the paper's households do.

    A prompt follows last month's prompt and answer, and in the first month of a quarter also the request to reflect on
    the previous quarter, and the thought. A request to reflect follows the quarter's prompts and answers
    (`last_months`). Older months are stored only for that request, and older thoughts are not used.

    Source:
        Li et al. (2024), EconAgent, arXiv 2310.10436, and its program: a window of three messages.
    """

    __slots__ = ()

    def messages(self) -> tuple[ChatMessage, ...]:
        """Return last month's prompt and answer, and the reflection if it came later."""
        pairs = self._pairs()
        first = -2 if pairs and _is_reflection(pairs[-1]) else -1
        return _as_messages(pairs[first:])

    def last_months(self, count: int) -> tuple[ChatMessage, ...]:
        """Return the prompts and answers of the last months, without reflections.

        Args:
            count: Maximum number of months, 1 or more.
        """
        return _as_messages([pair for pair in self._pairs() if not _is_reflection(pair)][-count:])


def _is_reflection(pair: list[MemoryEntry]) -> bool:
    return pair[-1].kind == "thought"


def _as_messages(pairs: list[list[MemoryEntry]]) -> tuple[ChatMessage, ...]:
    """Return each pair as two messages, prompt and answer."""
    messages: list[ChatMessage] = []
    for pair in pairs:
        question = "\n".join(entry.text for entry in pair if entry.kind == "observation")
        answer = "\n".join(entry.text for entry in pair if entry.kind in ("decision", "thought"))
        messages += [ChatMessage("user", question), ChatMessage("assistant", answer)]
    return tuple(messages)


WORK_EXPONENT = 0.1
"""Exponent of the propensity to work as a function of a month's pay relative to savings."""

PRICE_EXPONENT = 0.1
"""Exponent of Lengnick households' spending as a function of the price relative to their money."""

BUFFER_MONTHS = 1.0
"""Target savings of buffer-stock households, in months of income."""


@dataclass(frozen=True, slots=True)
class HouseholdStanding:
    """State of the households at the start of a month, as policies see it."""

    salary: FloatArray
    """Dollars for a month of work, shape `(households,)`."""

    coin: FloatArray
    """Savings in dollars, same shape."""

    last_salary: FloatArray
    """Salary of the last month at work in dollars, same shape; 0 if there was none."""

    price: float
    """Dollars per good."""

    interest_rate: float
    """Yearly rate, as a fraction."""

    tax: TaxSchedule
    """Current tax."""

    tax_credit: float
    """Dollars redistributed to each household last month."""

    @classmethod
    def of(cls, facts: HouseholdFacts) -> HouseholdStanding:
        """Return the standing of one household, as arrays of one."""
        return cls(
            salary=np.array([facts.salary]),
            coin=np.array([facts.coin]),
            last_salary=np.array([facts.last_salary]),
            price=facts.price,
            interest_rate=facts.interest_rate,
            tax=facts.tax,
            tax_credit=facts.tax_credit,
        )

    @classmethod
    def of_all(cls, economy: MonthlyEconomy) -> HouseholdStanding:
        """Return the standing of all households of an economy, in the order of its arrays."""
        homes = economy.households
        return cls(
            salary=economy.parameters.hours * homes.skill,
            coin=homes.coin.copy(),
            last_salary=homes.last_salary.copy(),
            price=economy.price,
            interest_rate=economy.interest_rate,
            tax=economy.parameters.tax,
            tax_credit=economy.tax_credit,
        )

    def __len__(self) -> int:
        """Count the households."""
        return len(self.salary)


class Plans(NamedTuple):
    """Plans of the households for one month."""

    works: BoolArray
    """Whether each household works, shape `(households,)`."""

    levels: IntArray
    """Spending levels 0..50, same shape."""


class HouseholdPolicy(Protocol):
    """Plans a month: a pure function of households' knowledge, for one household or all at once.

    Source:
        Lengnick (2013), J. Econ. Behav. Organ. 86; Delli Gatti et al. (2011), Macroeconomics from the Bottom-up (the
        CATS model); both in the form that Li et al. (2024) use.
    """

    def decide(self, standing: HouseholdStanding, rng: RNG) -> Plans:
        """Return who works and how much each spends.

        Args:
            standing: State of the households.
            rng: Random generator.
        """
        ...


def work_propensity(standing: HouseholdStanding) -> FloatArray:
    """Compute the probability of working: pay over savings with interest, to the power 0.1; above 1 means certain."""
    wealth = standing.coin * (1 + standing.interest_rate) + EPSILON
    return (standing.salary / wealth) ** WORK_EXPONENT


def lengnick_share(standing: HouseholdStanding, works: BoolArray) -> FloatArray:
    """Compute the share spent under Lengnick's rule: the price over all money, to the power 0.1."""
    income = works * standing.salary
    return (standing.price / (EPSILON + standing.coin + income)) ** PRICE_EXPONENT


def buffer_stock_share(standing: HouseholdStanding, works: BoolArray) -> FloatArray:
    """Compute the share spent under the CATS rule: the excess over a buffer of a month's income.

    Before the first month of work the terms are of the order of 1e8, and the share is at either bound.
    """
    income = works * standing.salary
    target = BUFFER_MONTHS / (1 + standing.interest_rate)
    growth = income / (standing.last_salary + EPSILON) - 1
    excess = standing.coin / (standing.last_salary + EPSILON) - target
    spending = 1 + (excess - target * growth) / (1 + growth + EPSILON)
    return spending * income / (standing.coin + income + EPSILON)


def floor_level(share: FloatArray) -> IntArray:
    """Round shares down to the spending grid."""
    return np.clip(np.floor(share / CONSUMPTION_STEP), 0, TOP_LEVEL).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Lengnick:
    """LEN: spends a share that falls slowly with wealth."""

    def decide(self, standing: HouseholdStanding, rng: RNG) -> Plans:
        """Return who works and how much each spends."""
        works = uniforms(len(standing), rng) < work_propensity(standing)
        return Plans(works, floor_level(lengnick_share(standing, works)))


@dataclass(frozen=True, slots=True)
class BufferStock:
    """CATS: keeps a buffer of one month's income."""

    def decide(self, standing: HouseholdStanding, rng: RNG) -> Plans:
        """Return who works and how much each spends."""
        works = uniforms(len(standing), rng) < work_propensity(standing)
        return Plans(works, floor_level(buffer_stock_share(standing, works)))


@dataclass(frozen=True, slots=True)
class AtRandom:
    """Works with a fixed probability and spends a uniformly drawn level: the random baseline."""

    work: float = 0.9
    """Probability of working in a month."""

    def decide(self, standing: HouseholdStanding, rng: RNG) -> Plans:
        """Return who works and how much each spends."""
        works = uniforms(len(standing), rng) < self.work
        levels = np.array([rng.randint(0, TOP_LEVEL) for _ in range(len(standing))], dtype=np.int64)
        return Plans(works, levels)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Makes the same plan every month."""

    work: float = 1.0
    """Probability of working in a month."""

    consumption: float = 0.5
    """Share of all money to spend."""

    def decide(self, standing: HouseholdStanding, rng: RNG) -> Plans:
        """Return who works and how much each spends."""
        works = uniforms(len(standing), rng) < self.work
        level = int(consumption_level(self.consumption))
        return Plans(works, np.full(len(standing), level, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class HandToMouth:
    """Always works, and spends its income after tax plus last month's tax credit."""

    def decide(self, standing: HouseholdStanding, rng: RNG) -> Plans:
        """Return who works and how much each spends."""
        earned = standing.salary - standing.tax.due(standing.salary) + standing.tax_credit
        share = earned / (standing.coin + earned + EPSILON)
        return Plans(np.ones(len(standing), dtype=np.bool_), consumption_level(share))
