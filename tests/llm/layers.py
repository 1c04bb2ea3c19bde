"""Requests that are sent through the layers around a transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mesa_llm.errors import (
    TransportError,
)
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.protocol import LLM
from mesa_llm.llm.scripted import ScriptedLLM
from mesa_llm.records import ChatMessage, Reply
from tests.faulty_server import FaultyServer
from tests.llm.human.questions import ask

PRICED = Reply("hm", prompt_tokens=10, reply_tokens=5, dollars=0.01, model="tiny")


def failing(*errors: TransportError) -> ScriptedLLM:
    """Fail with these, one after another, then reply."""
    left = list(errors)
    return ScriptedLLM(lambda request: left.pop(0) if left else PRICED)


def gathered(llm: LLM, number: int, text: str = "It rains.") -> list[Any]:
    """Ask a number of requests at once; give replies and errors."""

    async def ask_all() -> list[Any]:
        requests = [ask(ChatMessage("user", text), agent=agent) for agent in range(1, number + 1)]
        return await asyncio.gather(*map(llm.reply, requests), return_exceptions=True)

    return asyncio.run(ask_all())


def served(
    server: FaultyServer, around: Callable[[LLM], LLM], number: int, timeout_s: float = 10.0, **settings: Any
) -> list[Any]:
    """Ask a server through layers; give replies and errors."""
    transport = OpenAIHTTP("tiny", server.url, timeout_s=timeout_s)

    async def ask_all() -> list[Any]:
        llm = around(transport)
        requests = [replace(ask(agent=agent), settings=settings) for agent in range(1, number + 1)]
        try:
            return await asyncio.gather(*map(llm.reply, requests), return_exceptions=True)
        finally:
            await transport.close()

    return asyncio.run(ask_all())
