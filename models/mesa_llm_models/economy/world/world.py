"""The economy as a world: participants act, and a step ends with the resulting changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, get_args

from pydantic import BeforeValidator, Field

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ActionResult, Event, Observation
from mesa_llm.text import MAX_NAME, one_line, quoted
from mesa_llm.tools.tool import action
from mesa_llm.tools.validation import NO_FLAG
from mesa_llm.world import DoNothing, Rules
from mesa_llm_models.economy.world import text as wording
from mesa_llm_models.economy.world.facts import CAPITAL_STEP, MAX_OTHERS, EconomyFacts, Notables, ParticipantView
from mesa_llm_models.economy.world.rules import HOUSEHOLDS, MAX_DOLLARS, NUMBER, CorrectedRules
from mesa_llm_models.economy.world.rules_original import OriginalEconomyRules
from mesa_llm_models.economy.world.state import (
    MINIMUM_WAGE,
    TAX_RATE,
    EconomyParameters,
    EconomyState,
    Participant,
    Policy,
    Role,
    Value,
)

Count = Annotated[int, Field(ge=1, le=10**9), NO_FLAG]
Amount = Annotated[float, Field(gt=0, le=MAX_DOLLARS), NO_FLAG]
Price = Annotated[float, Field(ge=0, le=MAX_DOLLARS), NO_FLAG]
Word = Annotated[str, Field(max_length=80)]
Words = Annotated[str, Field(max_length=400)]


def _payee(value: object) -> object:
    """Read a payee in any form that language models write: 2, "[2]", "[2] Ada", "Households"."""
    text = str(value).strip()
    match = NUMBER.match(text)
    if match:
        return match[1] or match[2]
    return HOUSEHOLDS if text.casefold() == HOUSEHOLDS else value


Payee = Annotated[int | Word, BeforeValidator(_payee), NO_FLAG]

CENT = 0.01
"""The smallest payment, in dollars."""


class Economy(DoNothing):
    """An economy of producers, governments and households.

    A tool box checks the arguments of actions under both rule sets. Called directly, actions under the original rules
    accept what SimSwarm accepts, including NaN and negative amounts, and raise Python's own errors for the rest.
    """

    wording: ClassVar[Any] = wording
    """Module with the texts agents read. A subclass may set its own."""

    def __init__(
        self,
        parameters: EconomyParameters | None = None,
        *,
        rules: Rules = "corrected",
        names: Mapping[int, str] | None = None,
        name: str = "economy",
    ) -> None:
        """Create an economy without participants. Each enters when it first observes, or by `enter`.

        Args:
            parameters: Parameters; None for the defaults.
            rules: `original` for SimSwarm's rules, or `corrected`; see the package for the differences.
            names: Participant id → name that others read.
            name: Name of the world.

        Raises:
            ConfigError: If the rules are unknown, or under the corrected ones labour force or threshold is invalid.
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
        rules_class = OriginalEconomyRules if self.is_original else CorrectedRules
        self.rules: OriginalEconomyRules | CorrectedRules = rules_class(self.state, self.parameters)
        self._enacted: list[Policy] = []
        self._notables = Notables()

    def set_parameters(self, parameters: EconomyParameters) -> None:
        """Use other parameters from the next step on. Starting balances and purses are unchanged.

        Args:
            parameters: The parameters.
        """
        self.parameters = self.rules.parameters = parameters

    def enter(self, agent_id: int, role: Role = "producer", balance: float | None = None) -> Participant:
        """Return a participant's account, adding new participants.

        Args:
            agent_id: Mesa `unique_id`.
            role: Whether it produces or governs. With at least one government, only governments enact policies.
            balance: Dollars to start with; None for the parameters' value, or 0 under the original rules.

        Raises:
            ConfigError: If, under the corrected rules, the balance is negative or not finite.
        """
        if agent_id not in self.state.participants:
            self._add(Participant(agent_id, role, self.rules.opening_balance(balance)))
        return self.state.participants[agent_id]

    def _add(self, participant: Participant) -> None:
        """Add a participant, and show it to all others if there is room or it governs."""
        self.state.participants[participant.agent_id] = participant
        self.state.n_governments += participant.role == "government"
        if self._notables.has_room:
            self._notables.add(participant)
        elif participant.role == "government" and self.state.n_governments <= MAX_OTHERS + 1:
            self._notables = Notables(self.state.participants.values())

    def observe(self, agent_id: int) -> Observation:
        """Return a participant's view of metrics, policies, other participants and its own account."""
        facts = self.facts(agent_id)
        if self.is_original:
            return Observation(
                text=self.wording.write_original(facts),
                instructions=self.wording.ORIGINAL_INSTRUCTIONS,
                facts=facts,
                persona_place="system",
            )
        payees = (HOUSEHOLDS, *(str(other.agent_id) for other in facts.others))
        options = {"allocate.target": payees}
        return Observation(
            text=self.wording.write_corrected(facts, self.names),
            instructions=self.wording.INSTRUCTIONS,
            options=options,
            limits=self._limits(agent_id),
            facts=facts,
        )

    def _limits(self, agent_id: int) -> dict[str, tuple[float | None, float | None]]:
        """Return the largest payments and numbers of workers that would be accepted from a participant."""
        own, rules = self.enter(agent_id), self.rules
        if isinstance(rules, OriginalEconomyRules):
            return {}
        payable = (CENT, math.floor(own.balance * 100) / 100)
        return {
            "set_price.price": (0, rules.highest_price(own)),
            "hire.count": (1, rules.n_hireable(own)),
            "fire.count": (1, own.workforce),
            "invest.amount": payable,
            "allocate.amount": payable,
        }

    def facts(self, agent_id: int) -> EconomyFacts:
        """Return what a participant sees, as values."""
        own, state = self.enter(agent_id), self.state
        facts = EconomyFacts(
            step=state.step,
            metrics=dict(state.metrics),
            policies=tuple(state.policies),
            variables=dict(state.variables),
            own=replace(own),
        )
        if isinstance(self.rules, OriginalEconomyRules):
            return facts
        others = self._notables.others_of(agent_id)
        return replace(
            facts,
            others=tuple(
                ParticipantView(participant.agent_id, participant.role, participant.price, participant.workforce)
                for participant in others
            ),
            more_others=len(state.participants) - 1 - len(others),
            wage=self.rules.wage,
            goods_per_worker=self.rules.goods_per_worker(own.capital),
            goods_per_worker_after=self.rules.goods_per_worker(own.capital + CAPITAL_STEP),
            tax_rate=self.rules.tax_rate,
            unemployed=self.rules.unemployed,
            purse=state.purse,
            spending=self.rules.spending(),
            sold=state.sold,
            unit_cost=self.rules.unit_cost(own),
        )

    def may_produce(self, agent_id: int) -> bool:
        """Check whether a participant may employ people and sell goods."""
        return not self.rules.has_roles or self.enter(agent_id).role == "producer"

    def may_fire(self, agent_id: int) -> bool:
        """Check whether a participant has workers to lay off. Under the original rules anyone may try."""
        return not self.rules.has_roles or (self.may_produce(agent_id) and self.enter(agent_id).workforce > 0)

    def may_hire(self, agent_id: int) -> bool:
        """Check whether there is another worker, whom a participant can pay. Under the original rules all may try."""
        rules, own = self.rules, self.enter(agent_id)
        return isinstance(rules, OriginalEconomyRules) or (self.may_produce(agent_id) and rules.n_hireable(own) > 0)

    def may_invest(self, agent_id: int) -> bool:
        """Check whether a participant may produce, and has money to invest."""
        return self.may_produce(agent_id) and self.may_pay(agent_id)

    def may_pay(self, agent_id: int) -> bool:
        """Check whether a participant has a cent. Under the original rules anyone may try to pay."""
        return not self.rules.has_roles or self.enter(agent_id).balance >= CENT

    def may_govern(self, agent_id: int) -> bool:
        """Check whether a participant may enact policies: a government, or anyone if there is none."""
        own = self.enter(agent_id)
        return not self.rules.has_roles or own.role == "government" or self.state.n_governments == 0

    def _producer(self, agent_id: int) -> Participant:
        """Return the account of a participant that may produce."""
        if not self.may_produce(agent_id):
            raise ToolError(self.wording.reason_text("not_a_producer"))
        return self.enter(agent_id)

    @action(when="may_produce", did="You set your price at ${price:.2f}.")
    def set_price(self, agent_id: int, price: Price) -> ActionResult:
        """Set the price of your goods.

        Args:
            price: Dollars for one good; 0 keeps your goods off the market.
        """
        own = self._producer(agent_id)
        self.rules.set_price(own, price)
        return ActionResult(self.wording.result_text("set_price", price=own.price), price=own.price)

    @action(when="may_hire", did="You hired {count:person|people}.")
    def hire(self, agent_id: int, count: Count) -> ActionResult:
        """Employ more people.

        Args:
            count: How many to hire.
        """
        own = self._producer(agent_id)
        self.rules.hire(own, count)
        return ActionResult(self.wording.workforce_text(own.workforce), workforce=own.workforce)

    @action(when="may_fire", did="You let {count:worker} go.")
    def fire(self, agent_id: int, count: Count) -> ActionResult:
        """Let workers go.

        Args:
            count: How many to let go.
        """
        own = self._producer(agent_id)
        self.rules.fire(own, count)
        return ActionResult(self.wording.workforce_text(own.workforce), workforce=own.workforce)

    @action(when="may_invest", did="You invested ${amount:.2f}.")
    def invest(self, agent_id: int, amount: Amount) -> ActionResult:
        """Spend money on capital, so that your workers make more.

        Args:
            amount: Dollars to invest.
        """
        own = self._producer(agent_id)
        self.rules.invest(own, amount)
        return ActionResult(
            self.wording.result_text("balance", balance=own.balance), balance=own.balance, capital=own.capital
        )

    @action(when="may_pay", did="You paid ${amount:.2f} to {target}.")
    def allocate(self, agent_id: int, target: Payee, amount: Amount) -> ActionResult:
        """Pay money to someone else.

        Args:
            target: The number in brackets of the recipient, or "households" for all of them together.
            amount: Dollars to pay.
        """
        own = self.enter(agent_id)
        self.rules.allocate(own, target, amount)
        return ActionResult(
            self.wording.result_text("balance", balance=own.balance), payee=target, amount=amount, balance=own.balance
        )

    @action(when="may_govern", did="You enacted the policy {policy_name!r}: {description!r}")
    def apply_policy(
        self,
        agent_id: int,
        policy_name: Word,
        description: Words,
        variable: Word | None = None,
        value: Annotated[float | Word | None, NO_FLAG] = None,
    ) -> ActionResult:
        """Enact a policy that everyone sees from the next step on.

        Args:
            policy_name: A short name; a policy of the same name is replaced.
            description: What the policy says, in a sentence.
            variable: Name of a variable the policy sets, if any: tax_rate, minimum_wage or another.
            value: What the variable is set to: a share from 0 to 1 for tax_rate, dollars for minimum_wage.
        """
        if not self.may_govern(agent_id):
            raise ToolError(self.wording.reason_text("not_a_government"))
        own = self.enter(agent_id)
        self.rules.enact(own, policy_name, description, variable, value)
        policy = self.state.policies[-1]
        self._enacted.append(policy)
        text = self.wording.result_text("apply_policy", name=policy_name)
        return ActionResult(
            text, policy=policy.name, variable=policy.variable, value=policy.value, previous=policy.previous
        )

    def end_step(self) -> list[Event]:
        """End the step: measure, and report changed metrics and, under the corrected rules, new policies."""
        self.state.step += 1
        before, self.state.metrics = self.state.metrics, self.rules.close_step()
        self._notables = Notables(self.state.participants.values())
        enacted, self._enacted = self._enacted, []
        events = [self._policy_event(policy) for policy in enacted] if self.rules.reports_policies else []
        for metric, current in self.state.metrics.items():
            if self.rules.is_news(before[metric], current):
                events.append(self._metric_event(metric, before[metric], current))
        return events

    def tables(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return current policies and participants, for exports and reports."""
        participants = [
            {"agent": own.agent_id, "name": self.names.get(own.agent_id, ""), "role": own.role}
            | {"balance": own.balance, "workforce": own.workforce, "price": own.price, "output": own.output}
            for own in self.state.participants.values()
        ]
        return {"policies": [asdict(policy) for policy in self.state.policies], "participants": participants}

    # from outside the run

    meanings = MappingProxyType(
        {
            TAX_RATE: "Tax on sales, as a share of the price, from 0 to 1.",
            MINIMUM_WAGE: "Dollars that a worker earns in a step at the least, 0 or more.",
        }
    )
    """Variable that can be changed during a run → its meaning."""

    def changeable(self) -> Mapping[str, Any]:
        """Return the variables, which policies can set too. `change` also accepts new names."""
        return {TAX_RATE: 0.0, MINIMUM_WAGE: 0.0, **self.state.variables}

    def change(self, variable: str, value: Any) -> None:
        """Set a variable. Policies that set it are repealed.

        Raises:
            ToolError: If the variable cannot exist, or the value is invalid.
        """
        self.rules.set_variable(variable, value)

    def _metric_event(self, metric: str, previous: float, current: float) -> Event:
        facts = {"metric": metric, "previous": previous, "current": current, "delta": current - previous}
        name = metric.replace("avg_", "average ").replace("_", " ")
        text = self.wording.metric_text(name, previous, current)
        return Event(self.name, "metric_change", facts, text, self.state.step)

    def _policy_event(self, policy: Policy) -> Event:
        facts: dict[str, Value | int | None] = {
            "policy": policy.name,
            "description": policy.description,
            "agent_id": policy.enacted_by,
            "variable": policy.variable,
            "value": policy.value,
            "previous": policy.previous,
        }
        author = one_line(self.names.get(policy.enacted_by, ""), MAX_NAME) or f"Participant {policy.enacted_by}"
        text = f"{author} enacted the policy {quoted(policy.name)}: {quoted(policy.description)}"
        return Event(self.name, "policy_change", facts, text, self.state.step)
