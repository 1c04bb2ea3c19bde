"""Recorded decisions, what they were based on, and what the rule twin would have decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from mesa_llm.agents.deliberation import situation_of
from mesa_llm.engine.decision import NOT_ASKED
from mesa_llm.engine.reading.answers import answer_schema, bare_schema, plain_answer
from mesa_llm.errors import ConfigError, Refused
from mesa_llm.experiments.runs.recordings import read_again
from mesa_llm.llm.schema.flat import Schema
from mesa_llm.llm.surrogate.facts import facts_of, label_of, option_facts
from mesa_llm.llm.surrogate.parts import (
    actions_of,
    listed,
    offered,
    plain_part,
)
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.records import Decision, Failure, Observation, Request, Salt
from mesa_llm.tools.tool import within


@dataclass(frozen=True)
class RecordedChoice:
    """A decision that was recorded, what it was based on, and what the rule twin would have decided."""

    group: tuple[int, int]
    """Run and agent."""

    moment: tuple[int, int]
    """Run and step."""

    llm: str
    """Who decided."""

    label: str
    """Kind of question."""

    facts: Mapping[str, float | str]
    """What the agent saw."""

    offer: Mapping[str, Schema]
    """Action → its arguments; no name: an answer."""

    action: str
    """The action; empty: it was an answer."""

    arguments: Mapping[str, Any]
    """Arguments of the action, or fields of the answer, as JSON values."""

    options: Mapping[str, Mapping[str, Mapping[str, float]]]
    """Argument → option → facts of the option."""

    twin: tuple[str, Mapping[str, Any]] | None = None
    """Action and arguments of the rule twin; None: it did nothing, failed, or there is none."""

    @property
    def run(self) -> int:
        """Index of the run."""
        return self.group[0]


@dataclass
class RecordedChoices:
    """The decisions of recorded runs."""

    llm: str | None = None
    """Name of the language model whose decisions are collected; None: any."""

    run: int = 0
    """Index of the run that is replayed."""

    model: Any = None
    """Its model."""

    choices: list[RecordedChoice] = field(default_factory=list[RecordedChoice])
    """The decisions."""

    n_failed: int = 0
    """Number of decisions that failed, which are left out."""

    n_several: int = 0
    """Number of decisions of several actions, of which the first is kept."""

    def replay(self, recording: Recording, run: int = 0) -> None:
        """Replay a run, and add its decisions.

        Args:
            recording: The run.
            run: Index of the run among several.

        Raises:
            ConfigError: If it cannot be replayed.
        """

        def prepare(model: LLMModel) -> None:
            self.run, self.model = run, model
            model.engine.on_decisions = self.add

        read_again(recording, prepare)

    def add(
        self, agents: Sequence[Any], observations: Sequence[Observation], decisions: Sequence[Decision | Failure]
    ) -> None:
        """Add what was decided together; called before anybody acts."""
        for agent, seen, decision in zip(agents, observations, decisions, strict=True):
            if agent.request_purpose != "decide" or (name := agent.opened.name) == "rule":
                continue
            if self.llm not in (None, name):
                continue
            if isinstance(decision, Failure):
                self.n_failed += 1
            elif decision.reading != NOT_ASKED and (decision.actions or decision.has_answer):
                with suppress(Refused):  # what was decided can no longer be offered
                    self.choices.append(self._choice(agent, seen, decision, name))
                    self.n_several += len(decision.actions) > 1

    def _choice(self, agent: Any, seen: Observation, decision: Decision, name: str) -> RecordedChoice:
        situation = situation_of(seen, agent.config)
        tools = within(agent.toolbox(seen).specs, seen.limits) if seen.answer is None else ()
        schema = None if seen.answer is None else answer_schema(seen.answer)
        salt = Salt(0, agent.unique_id, agent.now, "decide", 0)
        offer = actions_of(offered(Request(name, (), salt, tools=tools, schema=schema, options=seen.options)))
        action, arguments = _plain(decision, seen)
        options: dict[str, Mapping[str, Mapping[str, float]]] = {}
        for argument, inner in offer.get(action, {"properties": {}})["properties"].items():
            if values := listed(plain_part(inner)):
                options[argument] = option_facts(seen.facts, values)
        return RecordedChoice(
            (self.run, agent.unique_id),
            (self.run, agent.now),
            name,
            label_of(situation),
            facts_of(situation),
            offer,
            action,
            arguments,
            options,
            self._twin(agent, seen),
        )

    def _twin(self, agent: Any, seen: Observation) -> tuple[str, Mapping[str, Any]] | None:
        """Return what the rule twin would have decided; the draws that it makes are taken back."""
        model = self.model
        states = model.random.getstate(), model.rng.bit_generator.state
        try:
            decision = agent.rule_decision(seen)
        except ConfigError:  # it has none
            return None
        finally:
            model.random.setstate(states[0])
            model.rng.bit_generator.state = states[1]
        is_something = isinstance(decision, Decision) and (decision.actions or decision.has_answer)
        return _plain(decision, seen) if is_something else None


def _plain(decision: Decision, seen: Observation) -> tuple[str, Mapping[str, Any]]:
    """Return a decision's first action and its arguments as JSON values; of an answer, its fields under no name."""
    if decision.actions:
        call = decision.actions[0]
        return call.name, {name: plain_answer(value) for name, value in call.arguments.items()}
    value = plain_answer(decision.answer)
    return "", value if bare_schema(seen.answer).get("type") == "object" else {"answer": value}
