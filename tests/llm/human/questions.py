"""Requests that the tests of transports ask."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mesa_llm.records import ChatMessage, Request, Salt
from mesa_llm.tools.tool import action, tool
from mesa_llm.tools.toolbox import ToolBox


class Village:
    """A place with things to do, to ask requests about."""

    name = "village"

    @tool
    def look_up(self, agent_id: int, word: str, limit: Annotated[int, Field(ge=1, le=5)] = 3) -> str:
        """Look a word up. Takes no time."""
        return f"{word}: {limit}"

    @action
    def talk_to(self, agent_id: int, neighbour: int, text: Annotated[str, Field(max_length=60)]) -> str:
        """Talk to a neighbour.

        Args:
            neighbour: Who is talked to.
            text: What is said.
        """
        return "said"

    @action
    def walk(self, agent_id: int, metres: Annotated[int, Field(ge=1, le=9)] = 1) -> str:
        """Walk on."""
        return "walked"

    @action
    def rest(self, agent_id: int) -> str:
        """Rest for a while."""
        return "rested"


TOOLS = {spec.name: spec for spec in ToolBox.of(object(), 1, [Village()]).specs}
ACTIONS = tuple(spec for spec in TOOLS.values() if spec.is_action)
VOTE: dict[str, Any] = {
    "type": "object",
    "properties": {"vote": {"enum": ["Green", "Oil"]}, "score": {"type": "integer", "minimum": 1, "maximum": 5}},
    "required": ["vote", "score"],
    "additionalProperties": False,
}


def ask(*messages: ChatMessage, agent: int = 1, number: int = 0, **fields: Any) -> Request:
    """Make a request, by default a short one without tools."""
    prompt = messages or (ChatMessage("system", "You live in a village."), ChatMessage("user", "It rains."))
    return Request(fields.pop("model", "test"), prompt, Salt(1, agent, 1, "decide", number), **fields)
