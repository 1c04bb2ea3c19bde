"""The economy as a world: participants act, and a step ends with what changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, get_args

from pydantic import BeforeValidator, Field

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import Event, Observation
from mesa_llm.text import MAX_NAME, one_line, quoted
from mesa_llm.tools import action
from mesa_llm.world import DoNothing
from mesa_llm.worlds.amounts import NO_FLAG
from mesa_llm.worlds.economy.corrected import HOUSEHOLDS, MOST_DOLLARS, NUMBER, CorrectedRules
from mesa_llm.worlds.economy.original import OriginalRules
from mesa_llm.worlds.economy.state import (
    EconomyParameters,
    EconomyState,
    Participant,
    Policy,
    Role,
    Rules,
    Value,
)
from mesa_llm.worlds.economy.view import (
    CAPITAL_STEP,
    ORIGINAL_RULES_TEXT,
    OTHERS_SHOWN,
    RULES_TEXT,
    EconomyFacts,
    Notables,
    ParticipantView,
    plain,
    write_corrected,
    write_original,
)

Count = Annotated[int, Field(ge=1, le=10**9), NO_FLAG]
Amount = Annotated[float, Field(gt=0, le=MOST_DOLLARS), NO_FLAG]
Price = Annotated[float, Field(ge=0, le=MOST_DOLLARS), NO_FLAG]
Word = Annotated[str, Field(max_length=80)]
Words = Annotated[str, Field(max_length=400)]


def _payee(given: object) -> object:
    """Read a payee in the ways models write it: 2, "[2]", "[2] Ada", "Households"."""
    text = str(given).strip()
    number = NUMBER.match(text)
    if number:
        return number[1] or number[2]
    return HOUSEHOLDS if text.casefold() == HOUSEHOLDS else given


Payee = Annotated[int | Word, BeforeValidator(_payee), NO_FLAG]


class Economy(DoNothing):
    """An economy of producers, governments and households.

    A tool box checks the arguments of actions under either rules. Called directly, actions under the original
    rules take what SimSwarm takes, NaN and negative amounts included, and raise Python's own errors for the
    rest.
    """

    def __init__(
        self,
        parameters: EconomyParameters | None = None,
        *,
        rules: Rules = "corrected",
        names: Mapping[int, str] | None = None,
        name: str = "economy",
    ) -> None:
        """Set up an economy without participants; each enters on first contact, or by `enter`.

        Args:
            parameters: Parameters.
            rules: SimSwarm's, or those with its defects mended that the package lists.
            names: What participants call each other, by id.
            name: Name of the world.

        Raises:
            ConfigError: If there are no such rules, or labour force or threshold make no sense under the corrected
                ones.
        """
        if rules not in get_args(Rules):
            raise ConfigError(f"rules must be one of {get_args(Rules)}, got {rules!r}")
        self.name = name
        self.names = dict(names or {})
        self.parameters = parameters or EconomyParameters()
        if rules == "corrected":
            self.parameters.check_counts()
        self.is_original = rules == "original"
        self.state = EconomyState(purse=0.0 if self.is_original else self.parameters.starting_purse)
        chosen = OriginalRules if self.is_original else CorrectedRules
        self.rules: OriginalRules | CorrectedRules = chosen(self.state, self.parameters)
        self._enacted: list[Policy] = []
        self._notables = Notables()

    def enter(self, actor: int, role: Role = "producer", balance: float | None = None) -> Participant:
        """Give an agent an account, unless it has one.

        Args:
            actor: Mesa `unique_id`.
            role: What it does. Once there is a government, only governments enact policies.
            balance: Dollars to start with; None: the parameter's, or 0 under the original rules.
        """
        if actor not in self.state.participants:
            if balance is None:
                balance = 0.0 if self.is_original else self.parameters.starting_balance
            if not self.is_original and not (math.isfinite(balance) and balance >= 0):
                raise ConfigError(f"a participant cannot start with a balance of {balance!r}; give 0 or more")
            self._seat(Participant(actor, role, balance))
        return self.state.participants[actor]

    def _seat(self, one: Participant) -> None:
        """Put a participant on the list, and among those whom everybody sees, if there is room or it governs."""
        self.state.participants[one.actor] = one
        self.state.n_governments += one.role == "government"
        if self._notables.has_room:
            self._notables.add(one)
        elif one.role == "government" and self.state.n_governments <= OTHERS_SHOWN + 1:
            self._notables = Notables(self.state.participants.values())

    def observe(self, agent: int) -> Observation:
        """Show a participant the metrics, policies, other participants and its own account."""
        facts = self.facts(agent)
        if self.is_original:
            return Observation(text=write_original(facts), rules=ORIGINAL_RULES_TEXT, facts=facts)
        payees = (HOUSEHOLDS, *(str(other.actor) for other in facts.others))
        options = {"allocate.target": payees}
        return Observation(text=write_corrected(facts, self.names), rules=RULES_TEXT, options=options, facts=facts)

    def facts(self, agent: int) -> EconomyFacts:
        """Give what a participant sees, as values."""
        own, state = self.enter(agent), self.state
        seen = EconomyFacts(
            step=state.step,
            metrics=dict(state.metrics),
            policies=tuple(state.policies),
            variables=dict(state.variables),
            own=replace(own),
        )
        if isinstance(self.rules, OriginalRules):
            return seen
        others = self._notables.seen_by(agent)
        return replace(
            seen,
            others=tuple(ParticipantView(one.actor, one.role, one.price, one.workforce) for one in others),
            more_others=len(state.participants) - 1 - len(others),
            wage=self.rules.wage,
            goods_per_worker=self.rules.goods_per_worker(own.capital),
            goods_per_worker_after=self.rules.goods_per_worker(own.capital + CAPITAL_STEP),
            tax_rate=self.rules.tax_rate,
            unemployed=self.rules.unemployed,
            purse=state.purse,
        )

    def may_produce(self, actor: int) -> bool:
        """Tell whether a participant may employ people and sell goods."""
        return self.is_original or self.enter(actor).role == "producer"

    def may_fire(self, actor: int) -> bool:
        """Check whether a participant has workers to let go; under the original rules anyone may try."""
        return self.is_original or (self.may_produce(actor) and self.enter(actor).workforce > 0)

    def may_govern(self, actor: int) -> bool:
        """Tell whether a participant may enact policies: a government, or anyone where there is none."""
        own = self.enter(actor)
        return self.is_original or own.role == "government" or self.state.n_governments == 0

    def _producer(self, actor: int) -> Participant:
        """Give the account of someone who may produce."""
        if not self.may_produce(actor):
            raise ToolError("you govern; only producers set prices, employ people and invest.")
        return self.enter(actor)

    @action(when="may_produce")
    def set_price(self, actor: int, price: Price) -> str:
        """Set the price of your goods.

        Args:
            price: Dollars for one good; 0 keeps your goods off the market.
        """
        own = self._producer(actor)
        self.rules.set_price(own, price)
        return f"Your price is ${own.price:.2f}."

    @action(when="may_produce")
    def hire(self, actor: int, count: Count) -> str:
        """Employ more people.

        Args:
            count: How many to hire.
        """
        own = self._producer(actor)
        self.rules.hire(own, count)
        return f"You employ {own.workforce} people."

    @action(when="may_fire")
    def fire(self, actor: int, count: Count) -> str:
        """Let workers go.

        Args:
            count: How many to let go.
        """
        own = self._producer(actor)
        self.rules.fire(own, count)
        return f"You employ {own.workforce} people."

    @action(when="may_produce")
    def invest(self, actor: int, amount: Amount) -> str:
        """Spend money on capital, so that your workers make more.

        Args:
            amount: Dollars to invest.
        """
        own = self._producer(actor)
        self.rules.invest(own, amount)
        return f"Your balance is ${own.balance:.2f}."

    @action
    def allocate(self, actor: int, target: Payee, amount: Amount) -> str:
        """Pay money to someone else.

        Args:
            target: The number in brackets of who is paid, or "households" for all of them together.
            amount: Dollars to pay.
        """
        own = self.enter(actor)
        self.rules.allocate(own, target, amount)
        return f"Your balance is ${own.balance:.2f}."

    @action(when="may_govern")
    def apply_policy(
        self,
        actor: int,
        policy_name: Word,
        description: Words,
        variable: Word | None = None,
        value: Annotated[float | Word | None, NO_FLAG] = None,
    ) -> str:
        """Enact a policy that everyone sees from the next step on.

        Args:
            policy_name: A short name; a policy of the same name is replaced.
            description: What the policy says, in a sentence.
            variable: Name of a variable the policy sets, if any: tax_rate, minimum_wage or another.
            value: What the variable is set to.
        """
        if not self.may_govern(actor):
            raise ToolError("only a government enacts policies here.")
        own = self.enter(actor)
        self.rules.enact(own, policy_name, description, variable, value)
        self._enacted.append(self.state.policies[-1])
        return f"Policy {policy_name} is in force."

    def end_step(self) -> list[Event]:
        """Let the step end; tell which metrics changed and, if corrected, which policies are new."""
        self.state.step += 1
        before, self.state.metrics = self.state.metrics, self.rules.close_step()
        self._notables = Notables(self.state.participants.values())
        enacted, self._enacted = self._enacted, []
        events = [] if self.is_original else [self._policy_event(policy) for policy in enacted]
        for metric, current in self.state.metrics.items():
            if self.rules.is_news(before[metric], current):
                events.append(self._metric_event(metric, before[metric], current))
        return events

    def _metric_event(self, metric: str, previous: float, current: float) -> Event:
        facts = {"metric": metric, "previous": previous, "current": current, "delta": current - previous}
        words = metric.replace("avg_", "average ").replace("_", " ")
        text = f"In the economy, {words} went from {plain(previous)} to {plain(current)}."
        return Event(self.name, "metric_change", facts, text, self.state.step)

    def _policy_event(self, policy: Policy) -> Event:
        facts: dict[str, Value | int | None] = {
            "policy": policy.name,
            "description": policy.description,
            "actor": policy.enacted_by,
            "variable": policy.variable,
            "value": policy.value,
            "previous": policy.previous,
        }
        who = one_line(self.names.get(policy.enacted_by, ""), MAX_NAME) or f"Participant {policy.enacted_by}"
        text = f"{who} enacted the policy {quoted(policy.name)}: {quoted(policy.description)}"
        return Event(self.name, "policy_change", facts, text, self.state.step)
