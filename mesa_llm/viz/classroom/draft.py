"""A student's answer to one question before it is sent."""

from __future__ import annotations

from collections.abc import Mapping

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import Refused
from mesa_llm.llm.human.forms import Offer, offers_of, still_possible
from mesa_llm.llm.human.queue import PendingQuestion
from mesa_llm.records import Reply, ToolCall
from mesa_llm.viz.session.forms import read_fields

Lines = Mapping[tuple[str, ...], str]
"""Contents of the fields of a form."""


class Draft:
    """A student's unfinished answer to one question.

    Attributes:
        question: The question.
        offers: All possible actions.
        refusal: Why there are none; empty if there are.
        calls: Actions chosen so far.
        picked: Name of the action whose fields had errors; None: none had.
        lines: Contents of its fields.
        faults: Errors by field.
    """

    def __init__(self, question: PendingQuestion) -> None:
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
        """The actions that can be chosen next."""
        return still_possible(self.offers, self.calls, self.question.request.max_actions)

    def choose(self, name: str, lines: Lines) -> Reply | None:
        """Choose one action.

        Args:
            name: Name of an action; empty for a typed answer.
            lines: Contents of its fields.

        Returns:
            The complete answer if nothing more can be chosen; None if there are errors or more is possible.
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
        """Return the chosen actions as an answer."""
        return Reply(tool_calls=tuple(self.calls), dollars=0.0, model="human")
