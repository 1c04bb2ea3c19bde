"""What language models would be asked: requests that are noted, and answered at random, so that nothing is sent."""

from __future__ import annotations

from mesa_llm.engine.access import Access, OpenedModel
from mesa_llm.llm.keys import Origin
from mesa_llm.llm.protocol import LLM, Capabilities
from mesa_llm.llm.scripted import RandomLLM
from mesa_llm.records import Reply, Request


class Listener(RandomLLM):
    """Random choice that notes the requests of agents, whose prompts are written as for a language model.

    Attributes:
        requests: The requests, in order.
    """

    ignores_prompt = False

    def __init__(self) -> None:
        """Start without requests."""
        self.requests: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        """Note a request of an agent, and draw an answer."""
        if request.salt.agent:
            self.requests.append(request)
        return await super().reply(request)


class ListeningAccess(Access):
    """An access that opens one listener in place of every language model.

    Attributes:
        listener: The listener.
    """

    def __init__(self, *, is_llm: bool = False) -> None:
        """Start with a listener of its own.

        Args:
            is_llm: Whether agents take it for a language model, and so reason, plan and summarise with it; otherwise
                they decide with it as with random choice.
        """
        super().__init__()
        self.listener = Listener()
        self.listener.is_immediate = not is_llm

    def open(self, llm: str | LLM, *, is_auxiliary: bool = False, origin: Origin = Origin.USER) -> OpenedModel:
        """Open the listener, whatever is named."""
        return OpenedModel(Capabilities.of(self.listener), self.listener, self.listener.is_immediate, 1)
