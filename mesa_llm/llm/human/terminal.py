"""A human player at a terminal, who reads what an agent sees, chooses an action, and enters its arguments."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import Refused
from mesa_llm.llm.human.forms import LEFT_OUT, FormField, NotOffered, Offer, offers_of, still_possible
from mesa_llm.llm.human.queue import latest
from mesa_llm.llm.replies import as_reply
from mesa_llm.llm.schema.description import description_of
from mesa_llm.records import Reply, Request, ToolCall

NO_INPUT = (EOFError, OSError, UnicodeError, NotImplementedError)
"""Errors of reading a line where nobody can write one."""


class TerminalHuman:
    """Asks a person at the terminal, one question at a time, in a thread of its own."""

    name = "human"
    is_person = True
    """A person may take any time, and is never asked the same again automatically."""

    def __init__(self, read: Callable[[str], str] | None = None, write: Callable[[str], object] | None = None) -> None:
        """Set how to read and write.

        Args:
            read: Shows a prompt and returns the line that the person writes; None: from standard input.
            write: Shows a text; None: on standard error, as standard output is for the results of the run.
        """
        self._read = read or _read_line
        self._write = write or _show
        self._questions: queue.SimpleQueue[tuple[Request, Future[Reply]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._introduced: set[int] = set()

    async def reply(self, request: Request) -> Reply:
        """Wait for a person's answer.

        Raises:
            Refused: If no answer is possible, or the input has ended.
        """
        start = time.perf_counter()
        answer: Future[Reply] = Future()
        self._questions.put((request, answer))
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name="terminal", daemon=True)
            self._thread.start()
        reply = await asyncio.wrap_future(answer)
        return reply.timed(time.perf_counter() - start)

    def _serve(self) -> None:
        """Ask the queued questions, one after another, on the terminal's thread."""
        while True:
            request, answer = self._questions.get()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(self._ask(request))
            except NO_INPUT as error:
                answer.set_exception(Refused(f"nobody answers at the terminal: {str(error) or 'its input has ended'}"))
            except Refused as error:
                answer.set_exception(error)
            finally:
                if not answer.done():
                    answer.set_exception(Refused("asking at the terminal went wrong"))

    def _ask(self, request: Request) -> Reply:
        """Ask a person to reply to a request."""
        self._introduce(request)
        who = f"{request.name} (agent {request.salt.agent})" if request.name else f"Agent {request.salt.agent}"
        self._write(f"\n{who}, step {request.salt.time}\n{latest(request)}\n")
        if request.schema is None and not request.tools:
            return as_reply(self._read("Your answer: "), "human")
        offers = offers_of(request)
        if request.schema is not None:
            return Reply(canonical_json(offers[0].field.fill(self._line)), dollars=0.0, model="human")
        return Reply(tool_calls=tuple(self._calls(offers, request.max_actions)), dollars=0.0, model="human")

    def _introduce(self, request: Request) -> None:
        """Show the agent's instructions, the first time that it is asked."""
        if request.salt.agent not in self._introduced:
            self._introduced.add(request.salt.agent)
            texts = [message.content for message in request.messages if message.role == "system"]
            self._write("\n".join(["", *texts, ""]))

    def _calls(self, offers: list[Offer], max_actions: int) -> list[ToolCall]:
        """Let the person choose what to do, one thing after another; a single action with arguments needs no choice."""
        if len(offers) == 1 and max_actions == 1 and offers[0].field.full_schema.get("required"):
            self._write(f"{offers[0].name} – {offers[0].description}\n")
            return [ToolCall(offers[0].name, offers[0].field.fill(self._line))]
        lines = [f"{index}. {offer.name} – {offer.description}\n" for index, offer in enumerate(offers, 1)]
        self._write("".join(lines))
        by_name = {offer.name: offer for offer in offers}
        calls: list[ToolCall] = []
        while possible := still_possible(offers, calls, max_actions):
            name = self._choose("What do you do? " if not calls else "And then? (empty: nothing more) ", list(by_name))
            if not name and calls:
                break
            if not name or by_name[name] not in possible:
                self._write("First choose one of the above.\n" if not name else f"{name} can only be done alone.\n")
                continue
            calls.append(ToolCall(name, by_name[name].field.fill(self._line)))
        return calls

    def _choose(self, prompt: str, names: list[str]) -> str:
        """Ask for one of some names, or its number; return an empty text if the line is empty."""
        while True:
            line = self._read(prompt).strip()
            name = _by_index(names).get(line, line)
            if name in names or not name:
                return name
            self._write(f"There is no {line[:80]!r}. Write a number from 1 to {len(names)}, or a name.\n")

    def _line(self, field: FormField) -> Any:
        """Ask for one line until it fits; a value that is possible but not offered has to be written twice."""
        unoffered: str | None = None
        texts = _texts(field)
        self._write("".join(f"  {index}. {text}\n" for index, text in enumerate(texts, 1)))
        while True:
            line = self._read(_prompt(field, texts)).strip()
            if not line and not field.is_needed:
                return LEFT_OUT
            line = _by_index(texts).get(line, line)
            try:
                return field.read(line, is_meant=line == unoffered)
            except NotOffered as error:
                unoffered = line
                self._write(f"{error} If you mean {line[:80]!r} all the same, write it once more.\n")
            except ValueError as error:
                self._write(f"{error}\n")


def _by_index(names: list[str]) -> dict[str, str]:
    return {str(index): name for index, name in enumerate(names, 1)}


def _texts(field: FormField) -> list[str]:
    """Return the values to number for the person: texts offered, if there are more than two and none is a number."""
    values: list[Any] = (field.choices or {}).get("enum", [])
    are_texts = all(isinstance(value, str) and not value.isdecimal() for value in values)
    return values if len(values) > 2 and are_texts else []


def _prompt(field: FormField, texts: list[str]) -> str:
    """Return the prompt for a line: the field's name, its description, and what fits."""
    fits = f"1..{len(texts)}" if texts else description_of(field.choices or field.schema)
    if field.is_free:
        fits = f"{description_of(field.schema)}, such as {fits}"
    hint = "" if field.is_needed else "; empty: leave it out"
    return f"{field.name}{' – ' if field.description else ''}{field.description} ({fits}{hint}): "


def _read_line(prompt: str) -> str:
    _show(prompt)
    return input()


def _show(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
