"""Transports without a language model: random choice as the baseline, and scripts for tests and teaching.

Those in which people reply, at a terminal or on a page, can be imported from here, too.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError
from mesa_llm.llm.human.queue import HumanLLM, HumanQueue, PendingQuestion
from mesa_llm.llm.human.terminal import TerminalHuman
from mesa_llm.llm.probabilities import uniform
from mesa_llm.llm.replies import Answer, as_reply, call
from mesa_llm.llm.schema.flat import choice_schema
from mesa_llm.llm.schema.sampling import draw, sample_value
from mesa_llm.records import Reply, Request, ToolCall

__all__ = [
    "HumanLLM",
    "HumanQueue",
    "PendingQuestion",
    "RandomLLM",
    "ScriptedLLM",
    "TerminalHuman",
    "call",
    "sample_value",
]

ANY_TEXT = {"type": "string"}
"""Schema that replies are drawn from where a request has neither a schema nor actions."""


class RandomLLM:
    """Chooses uniformly among what is allowed: the baseline.

    It draws a value of the request's schema if there is one, else one of its actions and then the arguments; without
    either, a few words. The draw depends on the salt of the request and never on its messages.
    """

    name = "random"
    is_immediate = True
    needs_options = True
    ignores_prompt = True

    async def reply(self, request: Request) -> Reply:
        """Draw an answer.

        Raises:
            Refused: If no value or action is possible.
        """
        reply = self._drawn(request)
        return replace(reply, probabilities=uniform(request.choices)) if request.choices else reply

    def _drawn(self, request: Request) -> Reply:
        rng = random.Random(request.salt.seed)
        actions = [tool for tool in request.tools if tool.is_action]
        if request.schema is not None:
            answer = sample_value(request.schema, rng, request.options)
            return Reply(canonical_json(answer), dollars=0.0, model="random")
        if actions:
            choice = draw(choice_schema(actions, request.options), rng)
            return as_reply(ToolCall(choice["action"], choice["arguments"]), "random")
        return as_reply(draw(ANY_TEXT, rng), "random")


class ScriptedLLM:
    """Answers by a function of the request, for tests and for teaching with sensible behaviour.

    The function is passed what a language model is sent: `request.messages` is the prompt::

        def thrifty(request):
            if request.schema is not None:  # a question, whose answer has this form
                return {"quota": 3}
            return ToolCall("catch", {"n_fish": 1})  # one of the actions in request.tools

        model = LakeModel(llm=ScriptedLLM(thrifty))
    """

    name = "ScriptedLLM"
    takes_images = True

    def __init__(
        self,
        answer: Callable[[Request], Answer | Exception],
        delay_s: Callable[[Request], float] | float = 0.0,
        name: str | None = None,
    ) -> None:
        """Store the script.

        Args:
            answer: Returns the answer to a request: a reply, a call, an object (sent as JSON), or a text. An
                exception that it returns is raised.
            delay_s: Seconds until the answer comes, or a function of the request that returns them.
            name: Name in the run log; None: that of the class. Two scripts in one run need different names, as replies
                are recorded under them.

        Raises:
            ConfigError: If the script is no function.
        """
        if not callable(cast("Any", answer)):
            raise ConfigError(
                f"ScriptedLLM takes a function of the request, got {answer!r:.60}; of a list of replies, take "
                "replies = iter(...) and write ScriptedLLM(lambda request: next(replies))"
            )
        self.name = self.name if name is None else name
        self._answer = answer
        self._delay_s = delay_s

    async def reply(self, request: Request) -> Reply:
        """Wait, then answer by the script.

        Raises:
            Exception: Any that the script returns or raises.
            TypeError: If it returns something else than an answer.
        """
        delay_s = self._delay_s(request) if callable(self._delay_s) else self._delay_s
        if delay_s > 0:
            await asyncio.sleep(delay_s)
        answer = self._answer(request)
        if isinstance(answer, Exception):
            raise answer
        return as_reply(answer, "scripted")
