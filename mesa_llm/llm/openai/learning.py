"""Learns an endpoint's dialect from what it refuses, for the whole run, and says so once."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from mesa_llm.llm.openai.dialect import FORM_ERROR, Dialect
from mesa_llm.llm.openai.errors import ErrorDetail, is_final

logger = logging.getLogger(__name__)


class Learner:
    """The dialect of one endpoint, as far as it has been learned.

    What a refusal teaches is kept once a request written that way is accepted. If it is refused all the same, the
    refusal was about something else, and what was learned from it is forgotten.

    Attributes:
        dialect: The dialect in which the next request is written.
        accepted: The dialect of the last request that was accepted; None: there was none.
    """

    def __init__(self, address: str, dialect: Dialect | None = None) -> None:
        """Start with all of OpenAI's format.

        Args:
            address: Name of the endpoint, for warnings.
            dialect: What is known already; None: nothing.
        """
        self.dialect = self._first = dialect or Dialect()
        self.accepted: Dialect | None = None
        self._address = address
        self._notes: list[str] = []

    def learn(self, used: Dialect, status: int, detail: ErrorDetail, sent: Mapping[str, Any]) -> bool:
        """Learn from a refusal; return whether the request is to be sent again, written differently.

        Args:
            used: The dialect in which the request was written.
            status: HTTP status of the refusal.
            detail: The endpoint's error.
            sent: The body of the request.
        """
        prompt = prompt_in(sent)
        if not _may_be_about_form(status, detail) or is_final(status, detail, prompt):
            return False
        simpler = used.without(detail, sent, prompt)
        learned = self.dialect if simpler is None else self.dialect.with_changes(used, simpler)
        if learned != self.dialect:
            self._notes.append(f"{detail.text}; from now on, {learned.summary(self.dialect)}")
            self.dialect = learned
        return simpler is not None or used != self.dialect

    def accept(self, dialect: Dialect) -> None:
        """Note that a request in a dialect was accepted, and say what has been learned."""
        self.accepted = dialect
        for note in self._notes:
            logger.warning("%s: %s", self._address, note)
        self._notes.clear()

    def give_up(self, dialect: Dialect) -> None:
        """Forget what was learned from a refusal that another form did not mend."""
        if dialect is self.dialect and dialect is not self.accepted:
            self.dialect = self.accepted or self._first
            self._notes.clear()

    def note(self, learned: Dialect, reason: str) -> None:
        """Keep a dialect that was learned from a reply, and say why.

        Args:
            learned: The dialect.
            reason: What the reply shows.
        """
        if learned != self.dialect:
            logger.warning("%s: %s; from now on, %s", self._address, reason, learned.summary(self.dialect))
            self.dialect = learned


def prompt_in(sent: Mapping[str, Any]) -> str:
    """Return the texts of the messages of a request, on one line, as errors quote them."""
    return " ".join(" ".join(_texts(sent.get("messages", ()))).split())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _may_be_about_form(status: int, detail: ErrorDetail) -> bool:
    """Check whether an error may be about a part of the request that the endpoint does not know."""
    if status in (400, 406, 415, 422, 501):
        return True
    if status == 404:
        return "support" in detail.text
    is_server_error = status in (500, 502, 503)  # some servers report their chat templates' errors so
    return is_server_error and not detail.is_about_loading and bool(FORM_ERROR.search(detail.text))
