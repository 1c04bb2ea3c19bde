"""Names exchanged among agents in all that a language model reads, and back in what it replies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mesa_llm.engine.activation import llm_agents
from mesa_llm.llm.openai.carried import carried_by
from mesa_llm.records import ChatMessage, Reply, Request, ToolCall, ToolSpec
from mesa_llm.text import COMMON


class Aliases:
    """Names that stand for others in everything that a language model reads, and back in what it replies."""

    def __init__(self, names: Sequence[str]) -> None:
        """Give each name to the next one, and with it the given name, where everybody has a different one.

        Args:
            names: The names; with fewer than two different ones, nothing is changed.
        """
        different = list(dict.fromkeys(filter(None, names)))
        self._forth = _each_to_next(different) | _each_to_next(_given_names(different))
        self._back = {other: name for name, other in self._forth.items()}
        words = "|".join(map(re.escape, sorted(self._forth, key=len, reverse=True)))
        self._pattern = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None

    def __bool__(self) -> bool:
        """Whether any name is changed."""
        return self._pattern is not None

    def request(self, request: Request) -> Request:
        """Return a request as the language model reads it."""
        if self._pattern is None:
            return request
        return replace(
            request,
            messages=tuple(self._message(message) for message in request.messages),
            tools=tuple(
                ToolSpec(spec.name, self.text(spec.description), self._value(spec.parameters), spec.is_action)
                for spec in request.tools
            ),
            schema=self._value(request.schema),
            options={name: tuple(map(self._value, values)) for name, values in request.options.items()},
            choices=tuple(map(self._value, request.choices)),
            name=self.text(request.name),
        )

    def reply(self, reply: Reply) -> Reply:
        """Return a reply with the agents' own names."""
        if self._pattern is None:
            return reply
        calls = tuple(
            ToolCall(
                call.name, {name: self._value(value, back=True) for name, value in call.arguments.items()}, call.call_id
            )
            for call in reply.tool_calls
        )
        weights = {self.text(choice, back=True): weight for choice, weight in reply.probabilities.items()}
        return replace(
            reply,
            text=self.text(reply.text, back=True),
            reasoning=self.text(reply.reasoning, back=True),
            tool_calls=calls,
            probabilities=weights,
            carried=carried_by(reply.carried, reply.reasoning),
        )

    def text(self, text: str, *, back: bool = False) -> str:
        """Return a text with the other names, or with the agents' own again."""
        if self._pattern is None:
            return text
        names = self._back if back else self._forth
        return self._pattern.sub(lambda found: names[found[0]], text)

    def _message(self, message: ChatMessage) -> ChatMessage:
        calls = tuple(replace(call, arguments=self._value(call.arguments)) for call in message.tool_calls)
        return replace(message, content=self.text(message.content), tool_calls=calls)

    def _value(self, value: Any, *, back: bool = False) -> Any:
        """Return a JSON value with the other names in its texts; names of fields stay."""
        if isinstance(value, str):
            return self.text(value, back=back)
        if isinstance(value, Mapping):
            return {name: self._value(one, back=back) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._value(one, back=back) for one in value)
        return value


def _each_to_next(names: Sequence[str]) -> dict[str, str]:
    """Return each name with the next one, and the last with the first; empty with fewer than two."""
    return dict(zip(names, [*names[1:], *names[:1]], strict=True)) if len(names) > 1 else {}


def _given_names(names: Sequence[str]) -> list[str]:
    """Return the given names of people, which texts use alone, too; empty unless all have one of their own."""
    given = [name.split()[0] for name in names if " " in name.strip()]
    are_names = all(one.isalpha() and one.istitle() and one.lower() not in COMMON for one in given)
    return given if are_names and len(set(given)) == len(names) and set(given).isdisjoint(names) else []


def aliases_of(model: Any) -> Aliases:
    """Return the exchanged names of all agents of a model that think."""
    return Aliases([agent.config.name for agent in llm_agents(model)])
