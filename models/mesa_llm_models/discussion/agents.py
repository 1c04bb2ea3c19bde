"""People who talk, their rule twins, people with scripted lines, and the moderator."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, get_args

from mesa_llm import ChatMessage, LLMAgent, Observation, Question, ToolCall
from mesa_llm.config import AgentConfig, Settings
from mesa_llm_models.discussion.config.plan import PersonPlan
from mesa_llm_models.discussion.text import CONFIRMATION_BIAS, LISTENS, REMARKS, SPEAKS, firmness_text
from mesa_llm_models.discussion.world import Line, Room, RoomFacts
from mesa_llm_models.discussion.world.text import display_name, role_messages

SETTINGS = Settings(temperature=0.8)
"""Sampling of the persons' language model."""

RATING = re.compile(r"\b(\d+(?:\.\d+)?) of 10\b")
"""An attitude that somebody says aloud, as rule twins do."""


def attitude_after(own: float, strength: float, lines: Iterable[Line]) -> float:
    """Compute an attitude after a conversation: the own one, pulled towards the latest ones that others have said.

    Args:
        own: Attitude before, from 0 to 10.
        strength: Weight of the own attitude, from 0 to 1.
        lines: Lines of others; numbers `x of 10` in them are their attitudes.

    Returns:
        The own attitude, weighted by `strength`, plus the mean of it and the others', weighted by the rest.

    Source:
        Friedkin and Johnsen (1990), Journal of Mathematical Sociology 15(3–4): initial opinions keep a weight.
    """
    attitudes: dict[int, float] = {}
    for line in lines:
        if match := RATING.search(line.text):
            attitudes[line.speaker_id] = min(10.0, float(match[1]))
    if not attitudes:
        return own
    return strength * own + (1 - strength) * (own + sum(attitudes.values())) / (1 + len(attitudes))


AGREED = 2.0
"""Maximum distance of two attitudes, from 0 to 10, that agree by rule."""


def verdict_by_rule(room: Room) -> dict[str, Any]:
    """Judge a conversation by rule: all agree if all have said their attitudes, and these lie at most `AGREED` apart.

    Args:
        room: The room.

    Returns:
        The fields of a `Verdict`.
    """
    attitudes = {line.speaker_id: float(match[1]) for line in room.lines if (match := RATING.search(line.text))}
    if set(attitudes) < set(room.members):
        return {"agreed": False, "reason": "not everyone has said what they think"}
    spread = max(attitudes.values()) - min(attitudes.values())
    return {"agreed": spread <= AGREED, "reason": f"what they think lies {spread:.1f} points of 10 apart"}


def config_of(plan: PersonPlan, *, is_original: bool = False) -> AgentConfig:
    """Return the config of a person: its name, persona and sampling.

    Args:
        plan: The person.
        is_original: Whether keys that SAUCE accepts and never uses are left out.
    """
    parts = [plan.background_story.strip()]
    if plan.opinion:
        parts.append(plan.opinion)
    if plan.strength is not None and not is_original:
        parts.append(firmness_text(plan.strength))
    if plan.speaking_personality and not is_original:
        parts.append(plan.speaking_personality)
    if plan.confirmation_bias is not None and (is_original or plan.confirmation_bias):
        parts.append(CONFIRMATION_BIAS)
    return AgentConfig(name=plan.name, persona="\n".join(filter(None, parts)), settings=SETTINGS)


class Discussant(LLMAgent):
    """A person who takes part in a discussion.

    Attributes:
        plan: The person, as the file has it.
        room: The room in which it sits.
        phase: Kind of question that it is being asked; empty: none.
        opening_attitude: Attitude of its rule twin at the start, from 0 to 10.
        strength: Weight of the rule twin's own attitude, from 0 to 1.
    """

    def __init__(self, model: Any, room: Room, plan: PersonPlan, **components: Any) -> None:
        """Place a person in a room.

        Args:
            model: The model.
            room: The room.
            plan: The person, as the file has it.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.plan, self.room, self.phase = plan, room, ""
        self.worlds = (room,)
        self.opening_attitude = 5.0 if plan.attitude is None else plan.attitude
        self.strength = 0.5 if plan.strength is None else plan.strength

    def prompt(self, seen: Observation) -> tuple[ChatMessage, ...]:
        """Write the prompt; under the original rules, that of a `person_gpt3_5` has the conversation as chat messages.

        In the original's surveys it does not know its own lines, which count as somebody else's.
        """
        if self.room.rules != "original" or self.plan.class_ != "person_gpt3_5":
            return super().prompt(seen)
        facts: RoomFacts = seen.facts
        about = (f"Your name is {self.plan.name}.", seen.instructions, self.config.persona)
        messages = role_messages(facts.lines, None if facts.question else self.unique_id, facts.question)
        first = tuple(ChatMessage("system", text) for text in about)
        return (*first, *(ChatMessage(role, text) for role, text in messages))

    @property
    def is_mute(self) -> bool:
        """Whether it was called on and had no line left, as only a `ScriptedPerson` can."""
        return False

    # -- the rule twin

    @property
    def attitude(self) -> float:
        """Attitude of its rule twin now, from 0 to 10."""
        return self.attitude_on(self.room.facts(self.unique_id))

    def attitude_on(self, facts: RoomFacts) -> float:
        """Return the attitude of its rule twin after the lines that it has heard, from 0 to 10."""
        others = [line for line in facts.lines if line.speaker_id != self.unique_id]
        return attitude_after(self.opening_attitude, self.strength, others)

    def rule(self, seen: Observation) -> Any:
        """Speak with the probability `talkativeness`; say one's attitude as a number, and a remark."""
        facts: RoomFacts = seen.facts
        is_text, original = seen.answer is str, self.room.rules == "original"
        if facts.phase == "decide":
            does_speak = self.random.random() < self.plan.talkativeness
            if is_text:
                return self.plan.use_turn_token if does_speak else self.plan.token
            return {"speak": does_speak, "reason": SPEAKS if does_speak else LISTENS}
        if facts.phase in ("choose", "token") and self.random.random() >= self.plan.talkativeness:
            return self.plan.token if is_text else ToolCall("wait", {"reason": LISTENS})
        text = self.remark(facts)
        return text if facts.phase in ("draft", "token") or original else ToolCall("say", {"text": text})

    def remark(self, facts: RoomFacts) -> str:
        """Return a remark of its rule twin, with its attitude as a number."""
        attitude = self.attitude_on(facts)
        side = "against" if attitude < 4 else "for" if attitude > 6 else "between"
        return f"{self.random.choice(REMARKS[side])} I put it at {attitude:.1f} of 10."

    def rule_answer(self, question: Question) -> Any:
        """Answer aside: a number or a choice in proportion to the attitude, else the attitude in words."""
        attitude = self.attitude
        survey = next((one for one in self.model.plan.experiment.survey_questions if one.id == question.name), None)
        if survey is not None and survey.scale is not None:
            low, high = survey.scale
            return round(low + attitude / 10 * (high - low))
        if survey is not None and survey.choices:
            index = min(int(attitude / 10 * len(survey.choices)), len(survey.choices) - 1)
            return survey.choices[index]
        return f"I put it at {attitude:.1f} of 10." if get_args(question.answer) else "I do not know."


class ScriptedPerson(Discussant):
    """A person whose lines are in the file, whatever decides for the others."""

    @property
    def next_line(self) -> str | None:
        """The next line; None: none is left."""
        index = self.room.n_said(self.unique_id)
        return self.plan.things_to_say[index] if index < len(self.plan.things_to_say) else None

    @property
    def is_mute(self) -> bool:
        """Whether it was called on and had no line left."""
        return any(silence.agent_id == self.unique_id for silence in self.room.silences)

    def rule(self, seen: Observation) -> Any:
        """Return the next line, as a text or an action; None if none is left."""
        text = self.next_line
        return text if seen.answer is str or text is None else ToolCall("say", {"text": text})

    def rule_answer(self, question: Question) -> Any:
        """Answer with the next line."""
        return self.next_line


class Moderator(LLMAgent):
    """Gives the floor to one of the others.

    Attributes:
        room: The room that it moderates.
        phase: Always `moderate`.
    """

    def __init__(self, model: Any, room: Room, **components: Any) -> None:
        """Place a moderator beside a room.

        Args:
            model: The model.
            room: The room.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.room, self.phase = room, "moderate"
        self.worlds = (room,)

    def observe(self) -> Observation:
        """Look at the conversation, and at who can be given the floor."""
        return self.room.moderation(self.unique_id)

    def rule(self, seen: Observation) -> ToolCall:
        """Call on the one who has spoken least; among several, on one drawn."""
        names = seen.options["person"]
        counts = [sum(display_name(line.speaker) == name for line in self.room.lines) for name in names]
        quiet = [name for name, count in zip(names, counts, strict=True) if count == min(counts)]
        return ToolCall("give_floor", {"person": self.random.choice(quiet)})
