"""A person at a terminal reads what an agent sees, chooses an action, and fills in its arguments one by one."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import Refused
from mesa_llm.llm.answers import as_reply
from mesa_llm.llm.human import latest
from mesa_llm.llm.schema import Schema, choice_schema, flat_schema, held_to
from mesa_llm.llm.words import in_words, read_value, signature
from mesa_llm.records import Reply, Request, ToolCall

NO_INPUT = (EOFError, OSError, UnicodeError, NotImplementedError)
"""What reading a line raises where there is nobody to write one."""

LEFT_OUT = object()
"""Stands for an argument that the person leaves out."""


class TerminalHuman:
    """Ask a person at the terminal, one question at a time, in a thread of its own."""

    name = "human"
    is_person = True
    """A person is given all the time it takes, and is never asked again by itself."""

    def __init__(self, read: Callable[[str], str] = input, write: Callable[[str], object] | None = None) -> None:
        """Keep where to read and write.

        Args:
            read: Shows a text and gives the line that the person writes.
            write: Shows a text; None: the standard output.
        """
        self._read = read
        self._write = write or _show
        self._questions: queue.SimpleQueue[tuple[Request, Future[Reply]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._introduced: set[int] = set()

    async def reply(self, request: Request) -> Reply:
        """Wait for a person's answer.

        Raises:
            Refused: If the input has ended.
        """
        started = time.perf_counter()
        answer: Future[Reply] = Future()
        self._questions.put((request, answer))
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name="terminal", daemon=True)
            self._thread.start()
        reply = await asyncio.wrap_future(answer)
        return replace(reply, latency_s=time.perf_counter() - started)

    def _serve(self) -> None:
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
        self._introduce(request)
        self._write(f"\nAgent {request.salt.agent}, step {request.salt.time}\n{latest(request)}\n")
        if request.schema is not None:
            schema = held_to(flat_schema(request.schema), request.options)
            if schema is None:
                raise Refused("the question has no possible answer now")
            return Reply(canonical_json(self._value("answer", schema)), dollars=0.0, model="human")
        if request.tools:
            return as_reply(self._call(request), "human")
        return as_reply(self._read("Your answer: "), "human")

    def _introduce(self, request: Request) -> None:
        """Show who the agent is and what the rules are, once."""
        if request.salt.agent not in self._introduced:
            self._introduced.add(request.salt.agent)
            texts = [message.content for message in request.messages if message.role == "system"]
            self._write("\n".join(["", *texts, ""]))

    def _call(self, request: Request) -> ToolCall:
        """Let the person choose one tool or action, then its arguments."""
        choices = choice_schema(request.tools, request.options)["anyOf"]
        arguments = {choice["properties"]["action"]["enum"][0]: choice["properties"]["arguments"] for choice in choices}
        told = {tool.name: f"{signature(tool)} – {tool.description}" for tool in request.tools}
        names = list(arguments)
        self._write("".join(f"{number}. {told[name]}\n" for number, name in enumerate(names, 1)))
        numbers = {str(number): name for number, name in enumerate(names, 1)}
        while True:
            line = self._read("What do you do? ").strip()
            name = numbers.get(line, line)
            if name in arguments:
                return ToolCall(name, self._value("arguments", arguments[name]))
            self._write(f"There is no {line[:80]!r}. Write a number from 1 to {len(names)}, or a name.\n")

    def _value(self, name: str, schema: Schema) -> Any:
        """Ask for a value; of an object, for its properties one by one."""
        if schema.get("type") != "object" or schema["additionalProperties"] is not False:
            return self._line(name, schema)
        filled = {
            name: self._value(name, inner) if name in schema["required"] else self._line(name, inner, LEFT_OUT)
            for name, inner in schema["properties"].items()
        }
        return {name: value for name, value in filled.items() if value is not LEFT_OUT}

    def _line(self, name: str, schema: Schema, if_empty: object = None) -> Any:
        """Ask for one line until it fits.

        Args:
            name: What is asked for.
            schema: What fits.
            if_empty: What an empty line stands for; None: it is read like any other.
        """
        hint = "; empty: leave it out" if if_empty is LEFT_OUT else ""
        while True:
            line = self._read(f"{name} ({in_words(schema)}{hint}): ")
            if not line.strip() and if_empty is not None:
                return if_empty
            try:
                return read_value(line, schema)
            except ValueError as error:
                self._write(f"{error}\n")


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
