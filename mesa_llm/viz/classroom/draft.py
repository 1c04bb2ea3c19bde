"""A student's answer to one question, before it is sent."""

from __future__ import annotations

from collections.abc import Mapping

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import Refused
from mesa_llm.llm.human.questions import Offer, offers_of, still_possible
from mesa_llm.llm.human.queue import Question
from mesa_llm.records import Reply, ToolCall
from mesa_llm.viz.session.forms import read_fields

Lines = Mapping[tuple[str, ...], str]
"""Contents of the fields of a form."""


class Draft:
    """The answer to one question, while a student works on it.

    Attributes:
        question: The question.
        offers: All possible choices.
        refusal: Reason why there are none; empty if there are.
        calls: Choices made so far.
        picked: Name of the choice that was filled in last and not accepted.
        lines: Contents of its fields.
        faults: Its faults, by field.
    """

    def __init__(self, question: Question) -> None:
        """Start with nothing chosen."""
        self.question = question
        self.offers: list[Offer] = []
        self.refusal = ""
        self.calls: list[ToolCall] = []
        self.picked: str | None = None
        self.lines: Lines = {}
        self.faults: Lines = {}
        try:
            self.offers = offers_of(question.request)
        except Refused as error:
            self.refusal = str(error)

    @property
    def possible(self) -> list[Offer]:
        """The choices that are possible next."""
        return still_possible(self.offers, self.calls, self.question.request.max_actions)

    def choose(self, name: str, lines: Lines) -> Reply | None:
        """Make one choice.

        Args:
            name: Name of an action; empty for a typed answer.
            lines: Contents of its fields.

        Returns:
            The whole answer if no more can be chosen; None if there are faults, or more is possible.
        """
        offer = next((each for each in self.possible if each.name == name), None)
        if offer is None:
            return None
        last_lines = self.lines if self.picked == name else {}
        value, self.faults = read_fields(offer.field, lines, last_lines)
        self.picked, self.lines = name, lines
        if self.faults:
            return None
        self.picked, self.lines = None, {}
        if offer.tool is None:
            text = canonical_json(value) if self.question.request.schema is not None else value
            return Reply(text, dollars=0.0, model="human")
        self.calls.append(ToolCall(offer.name, value))
        return None if self.possible else self.reply()

    def reply(self) -> Reply:
        """Return the choices as an answer."""
        return Reply(tool_calls=tuple(self.calls), dollars=0.0, model="human")
