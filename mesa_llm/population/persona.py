"""One member of a population, before it becomes an agent."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from mesa_llm.config import AgentConfig

Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Persona(BaseModel):
    """Who an agent will be, and what it brings along."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    """What others call it."""

    persona: str = ""
    """Who it is, in sentences that can stand in a prompt."""

    traits: dict[str, JsonValue] = Field(default_factory=dict)
    """Facts about it, by name: age, occupation, …"""

    style: str = ""
    """How it writes."""

    username: str = ""
    """Its handle on a social network."""

    bio: str = ""
    """What it says of itself there, for all to read."""

    topics: tuple[str, ...] = ()
    """What it is interested in."""

    follows: tuple[int, ...] = ()
    """Whom it follows: places in the population, from 0, in order."""

    posts: tuple[str, ...] = ()
    """What it published earlier, oldest first."""

    activity: tuple[Probability, ...] = ()
    """24 probabilities of being active, by the hour from midnight on; empty: not known."""

    @field_validator("activity")
    @classmethod
    def _has_every_hour(cls, activity: tuple[float, ...]) -> tuple[float, ...]:
        if len(activity) not in (0, 24):
            raise ValueError(f"activity needs 24 probabilities, one an hour, got {len(activity)}")
        return activity

    def config(self, **changes: Any) -> AgentConfig:
        """Give the config of an agent that is this persona.

        Args:
            **changes: Other fields of the config: `settings`, `tools`, `adapter`, or other values.
        """
        fields: dict[str, Any] = {
            "name": self.name,
            "persona": self.persona,
            "traits": self.traits,
            "style": self.style,
        }
        return AgentConfig(**(fields | changes))
