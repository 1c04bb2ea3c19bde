"""What strikes the town from outside, at a given step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import Event
from mesa_llm.tools import describe
from mesa_llm.worlds.economy import Economy
from mesa_llm.worlds.economy.state import Value

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Shock(BaseModel, frozen=True, extra="forbid"):
    """One thing that happens from outside."""

    step: Annotated[int, Field(ge=1)]
    """Step in which everyone hears of it."""

    text: Annotated[str, Field(min_length=1, max_length=400)]
    """What happens, in words."""

    variable: str | None = None
    """Variable of the economy that it sets, if any: `tax_rate`, `minimum_wage` or another."""

    value: Finite | str | None = None
    """What the variable is set to."""

    @property
    def event(self) -> Event:
        """The shock as news: a `policy_change` if it sets a variable, else `news`."""
        if self.variable is None:
            return Event("schedule", "news", {"text": self.text}, self.text, self.step)
        policy = f"{self.variable}, set from outside"
        facts = {"policy": policy, "description": self.text, "variable": self.variable, "value": self.value}
        return Event("schedule", "policy_change", facts, self.text, self.step)


STATE_TAX = {
    "step": 7,
    "text": "The state levies a tax of 30% on every sale, from now on.",
    "variable": "tax_rate",
    "value": 0.3,
}
"""What strikes the town where nothing else does."""


def read_shocks(given: Iterable[Mapping[str, Any]] | None) -> tuple[Shock, ...]:
    """Read and check shocks; None: `STATE_TAX`.

    Raises:
        ConfigError: If one lacks something, or sets a variable to what it cannot be.
    """
    shocks: list[Shock] = []
    for one in [STATE_TAX] if given is None else given:
        try:
            shocks.append(Shock.model_validate(dict(one)))
        except ValidationError as error:
            raise ConfigError(f"shock {dict(one)}: {describe(error)}") from None
        if (shocks[-1].variable is None) != (shocks[-1].value is None):
            raise ConfigError(f"shock {dict(one)}: give both variable and value, or neither")
    read_variables({shock.variable: shock.value for shock in shocks if shock.variable and shock.value is not None})
    return tuple(shocks)


def read_variables(given: Mapping[str, Value] | None) -> dict[str, Value]:
    """Check variables of the economy, by setting them in one that nobody lives in.

    Raises:
        ConfigError: If a name or a value cannot be.
    """
    trial = Economy()
    own = trial.enter(1)
    for name, value in (given or {}).items():
        try:
            trial.rules.enact(own, name, "", name, value)
        except ToolError as refusal:
            raise ConfigError(f"variable {name!r}: {refusal}") from None
    return dict(trial.state.variables)
