"""A member of a population, before it becomes an agent, and names for invented ones."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from mesa_llm.config import AgentConfig

Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]

GIVEN_NAMES: dict[str, tuple[str, ...]] = {
    "female": (
        *("Amara", "Birgit", "Carmen", "Dalia", "Edith", "Farah", "Greta", "Hana", "Ines", "Joy", "Keiko", "Lucia"),
        *("Mona", "Nadia", "Olga", "Priya", "Rosa", "Sofia", "Tilda", "Uma", "Vera", "Wanda", "Yara", "Zoe"),
    ),
    "male": (
        *("Adil", "Bruno", "Chidi", "Dario", "Emil", "Faisal", "Gustav", "Hugo", "Ivan", "Jamal", "Kenji", "Leon"),
        *("Mateo", "Nils", "Oscar", "Pavel", "Quentin", "Rafael", "Samir", "Tomas", "Umar", "Viktor", "Yusuf", "Zeno"),
    ),
    "other": (
        *("Alex", "Ariel", "Charlie", "Dana", "Eden", "Finley", "Kai", "Kim", "Lou", "Mika", "Noor", "Quinn"),
        *("Remy", "Robin", "Sam", "Sasha"),
    ),
}
"""Given names by gender."""

FAMILY_NAMES = (
    *("Abara", "Bauer", "Castillo", "Dahl", "Eriksen", "Ferreira", "Greene", "Haddad", "Ibarra", "Jansen", "Kowalski"),
    *("Lindqvist", "Moreau", "Nakamura", "Okafor", "Petrov", "Quigley", "Rossi", "Silva", "Tanaka", "Ueda", "Varga"),
    *("Walsh", "Yilmaz", "Zhou", "Achterberg", "Baptiste", "Cohen", "Duarte", "Eklund", "Farrow", "Gupta", "Holm"),
    *("Ivers", "Jovanovic", "Khan", "Lopez", "Mbeki", "Novak", "Olsen", "Park", "Reyes", "Schuster", "Torres"),
    *("Underhill", "Vogel", "Weber", "Zielinski"),
)
"""Family names."""


class Persona(BaseModel):
    """A person for an agent to play, with posts and follows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    """Name that others know."""

    persona: str = ""
    """Description in full sentences, for a prompt."""

    traits: dict[str, JsonValue] = Field(default_factory=dict)
    """Facts by name: age, occupation, …"""

    style: str = ""
    """Writing style."""

    username: str = ""
    """Handle on a social network."""

    bio: str = ""
    """Public profile."""

    topics: tuple[str, ...] = ()
    """Topics of interest."""

    follows: tuple[int, ...] = ()
    """Users it follows: sorted indices into the population, from 0."""

    posts: tuple[str, ...] = ()
    """Earlier posts, oldest first."""

    activity: tuple[Probability, ...] = ()
    """24 hourly probabilities of being active, from midnight on; empty if unknown."""

    @field_validator("activity")
    @classmethod
    def _has_every_hour(cls, activity: tuple[float, ...]) -> tuple[float, ...]:
        if len(activity) not in (0, 24):
            raise ValueError(f"activity needs 24 probabilities, one per hour, got {len(activity)}")
        return activity

    def config(self, **changes: Any) -> AgentConfig:
        """Return the config of an agent with this persona.

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
