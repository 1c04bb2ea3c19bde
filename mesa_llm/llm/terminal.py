"""A person at a terminal reads what an agent sees, chooses an action, and fills in its arguments one by one."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import Refused
from mesa_llm.llm.answers import as_reply
from mesa_llm.llm.human import latest
from mesa_llm.llm.schema import Schema, choice_schema, flat_schema, held_to
from mesa_llm.llm.words import in_words, read_value
from mesa_llm.records import Reply, Request, ToolCall

NO_INPUT = (EOFError, OSError, UnicodeError, NotImplementedError)
"""What reading a line raises where there is nobody to write one."""

PASS = "do_nothing"
"""The action after which there is nothing more to do."""

LEFT_OUT = object()
"""Stands for an argument that the person leaves out."""


class TerminalHuman:
    """Ask a person at the terminal, one question at a time, in a thread of its own."""

    name = "human"
    is_person = True
    """A person is given all the time it takes, and is never asked again by itself."""

    def __init__(self, read: Callable[[str], str] | None = None, write: Callable[[str], object] | None = None) -> None:
        """Keep where to read and write.

        Args:
            read: Shows a text and gives the line that the person writes; None: the standard input.
            write: Shows a text; None: the standard error, as the output belongs to what the run tells.
        """
        self._read = read or _read_line
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
            schema = flat_schema(request.schema)
            asked = Asked("answer", schema, held_to(schema, request.options), request.schema)
            return Reply(canonical_json(self._value(asked)), dollars=0.0, model="human")
        if request.tools:
            return Reply(tool_calls=tuple(self._calls(request)), dollars=0.0, model="human")
        return as_reply(self._read("Your answer: "), "human")

    def _introduce(self, request: Request) -> None:
        """Show who the agent is and what the rules are, once."""
        if request.salt.agent not in self._introduced:
            self._introduced.add(request.salt.agent)
            texts = [message.content for message in request.messages if message.role == "system"]
            self._write("\n".join(["", *texts, ""]))

    def _calls(self, request: Request) -> list[ToolCall]:
        """Let the person choose what to do, one thing after the other; a tool that reads is asked alone."""
        held = choice_schema(request.tools, request.options)["anyOf"]
        arguments = {choice["properties"]["action"]["enum"][0]: choice["properties"]["arguments"] for choice in held}
        tools = {tool.name: tool for tool in request.tools if tool.name in arguments}
        told = [f"{number}. {tool.name} – {tool.description}\n" for number, tool in enumerate(tools.values(), 1)]
        self._write("".join(told))
        calls: list[ToolCall] = []
        while len(calls) < request.max_actions:
            name = self._choose("What do you do? " if not calls else "And then? (empty: nothing more) ", list(tools))
            if not name and calls:
                break
            if not name or (calls and not tools[name].is_action):
                self._write("First choose one of the above.\n" if not name else f"{name} can only be done alone.\n")
                continue
            schema = flat_schema({"type": "object", **tools[name].parameters})
            calls.append(ToolCall(name, self._value(Asked("", schema, arguments[name], tools[name].parameters))))
            if not tools[name].is_action or name == PASS:
                break
        return calls

    def _choose(self, prompt: str, names: list[str]) -> str:
        """Ask for one of some names, by itself or by its number; empty if the line is."""
        while True:
            line = self._read(prompt).strip()
            chosen = names[int(line) - 1] if line.isdecimal() and 1 <= int(line) <= len(names) else line
            if chosen in names or not chosen:
                return chosen
            self._write(f"There is no {line[:80]!r}. Write a number from 1 to {len(names)}, or a name.\n")

    def _value(self, asked: Asked) -> Any:
        """Ask for a value; of a needed object with named properties, for one property after the other."""
        is_open = asked.schema.get("type") != "object" or asked.schema["additionalProperties"] is not False
        if is_open or not asked.is_needed:
            return self._line(asked)
        filled = {name: self._value(asked.part(name)) for name in asked.schema["properties"]}
        return {name: value for name, value in filled.items() if value is not LEFT_OUT}

    def _line(self, asked: Asked) -> Any:
        """Ask for one line until it fits; what is possible but not offered has to be written twice."""
        insisted: str | None = None
        self._write(asked.menu)
        while True:
            line = self._read(asked.prompt).strip()
            if not line and not asked.is_needed:
                return LEFT_OUT
            try:
                return asked.read(line, is_meant=line == insisted)
            except ValueError as error:
                insisted = line
                self._write(f"{error}\n")


@dataclass(frozen=True)
class Asked:
    """One value that a person is asked for."""

    name: str
    """What it is called; a part of something larger after the name of that."""

    schema: Schema
    """Flat schema of what can be given."""

    offered: Schema | None
    """The same, held to what is offered now; None: nothing is."""

    described: Mapping[str, Any]
    """The schema as it was given, with its descriptions."""

    is_needed: bool = True
    """False if an empty line leaves it out."""

    def part(self, name: str) -> Asked:
        """Give one property of it."""
        offered: Schema = self.offered or {}
        inner = self.described.get("properties", {}).get(name, {})
        return Asked(
            f"{self.name}, {name}" if self.name not in ("", "answer") else name,
            self.schema["properties"][name],
            offered.get("properties", {}).get(name),
            inner,
            name in self.schema["required"],
        )

    @property
    def choices(self) -> list[str]:
        """The texts that are offered, if they are more than two and none is a number; they are chosen by number."""
        values: list[Any] = (self.offered or {}).get("enum", [])
        are_texts = all(isinstance(value, str) and not value.isdecimal() for value in values)
        return values if len(values) > 2 and are_texts else []

    @property
    def menu(self) -> str:
        """The choices, one a line."""
        return "".join(f"  {number}. {choice}\n" for number, choice in enumerate(self.choices, 1))

    @property
    def prompt(self) -> str:
        """Say what is asked for, what it means, and what fits."""
        told = self.described.get("description", "").rstrip(".")
        fits = f"1..{len(self.choices)}" if self.choices else in_words(self.offered or self.schema)
        if self.is_free and self.offered != self.schema:
            fits = f"{in_words(self.schema)}, such as {fits}"
        hint = "" if self.is_needed else "; empty: leave it out"
        return f"{self.name}{' – ' if told else ''}{told} ({fits}{hint}): "

    @property
    def is_free(self) -> bool:
        """Whether what is offered are but examples: an amount can be any other as well."""
        return self.schema.get("type") == "number" and self.offered is not None

    def read(self, line: str, *, is_meant: bool) -> Any:
        """Read the value.

        Args:
            line: What the person wrote.
            is_meant: True if the same line was written before.

        Raises:
            ValueError: If it does not fit; or is not offered, and not meant for sure.
        """
        if self.choices and line.isdecimal() and 1 <= int(line) <= len(self.choices):
            return self.choices[int(line) - 1]
        try:
            return read_value(line, self.schema if self.offered is None else self.offered)
        except ValueError as error:
            try:
                value = read_value(line, self.schema)
            except ValueError:
                raise error from None
            if is_meant or self.is_free:
                return value
            raise ValueError(f"{error} If you mean {line[:80]!r} all the same, write it once more.") from None


def _read_line(prompt: str) -> str:
    _show(prompt)
    return input()


def _show(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
