"""What a visitor of a page chooses before Reset: what agents think with, the seed, the model's own parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import solara
from mesa.visualization.solara_viz import UserInputs, split_model_params
from mesa.visualization.user_param import Slider
from solara.core import component

from mesa_llm.errors import ConfigError
from mesa_llm.llm.base import LLM
from mesa_llm.llm.human import HumanLLM
from mesa_llm.model import LLMModel

Factory = Callable[..., LLMModel]
"""A model class, or anything that is called with parameters by name and gives a model."""

THINKERS = {
    "rule": "rules (no language model)",
    "random": "chance (the baseline)",
    "local": "the small model on this machine",
    "human": "you, and rules for the others",
    "other": "another model …",
}
"""What agents can think with → what the page calls it."""


@dataclass(frozen=True)
class Choice:
    """All that a model is built from."""

    thinker: str = "rule"
    """One of `THINKERS`; any other text is taken as a model string."""

    model_id: str = ""
    """With `other`: a litellm id, `ollama/NAME`, or the name an endpoint knows."""

    api_base: str = ""
    """With `other`: base URL of an OpenAI-compatible endpoint; empty: the provider's own."""

    most_dollars: float | None = None
    """With `other`: US dollars after which the run stops; None: no limit."""

    plays: int = 1
    """With `human`: number of the agent that the visitor plays; 0: all."""

    seed: str = ""
    """Seed; empty: a new one each time."""

    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The model's own parameters."""

    def arguments(self, factory: Factory) -> dict[str, Any]:
        """Give the arguments that a model is built with, as far as it takes them.

        Args:
            factory: What will be called.

        Raises:
            ConfigError: If another model is wanted, and none is named.
        """
        offered: dict[str, Any] = {"llm": self.llm(), "rng": self.seed.strip() or None}
        if self.thinker == "other":
            offered |= {"api_base": self.api_base.strip() or None, "max_dollars": self.most_dollars}
        taken = {name: value for name, value in offered.items() if value is not None and takes(factory, name)}
        return {**taken, **self.parameters}

    def llm(self) -> str | LLM | Mapping[Any, str | LLM]:
        """Give what agents think with.

        Raises:
            ConfigError: If another model is wanted, and none is named.
        """
        if self.thinker == "human":
            person = HumanLLM()
            return {self.plays: person, "*": "rule"} if self.plays else person
        if self.thinker != "other":
            return self.thinker
        if not self.model_id.strip():
            raise ConfigError("name the model, such as ollama/qwen3 or openai/gpt-4o-mini, then press Reset")
        return self.model_id.strip()


def takes(factory: Factory, name: str) -> bool:
    """Say whether a model can be given an argument of this name."""
    parameters = inspect.signature(factory).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def defaults(model_params: Mapping[str, Any]) -> dict[str, Any]:
    """Give the values that Mesa's description of parameters starts with."""
    adjustable, fixed = split_model_params(model_params)
    started = {name: param["value"] if isinstance(param, dict) else param.value for name, param in adjustable.items()}
    return {**fixed, **started}


@component
def Parameters(factory: Factory, model_params: Mapping[str, Any], chosen: solara.Reactive[Choice]) -> None:
    """Let a visitor choose what the next model is built from.

    Args:
        factory: What builds the model.
        model_params: Mesa's description of the model's parameters.
        chosen: What is chosen.
    """

    def choose(**changes: Any) -> None:
        chosen.set(replace(chosen.value, **changes))

    def adjust(name: str, value: Any) -> None:
        choose(parameters={**chosen.value.parameters, name: meant(model_params[name], value)})

    with solara.Column(gap="4px"):
        if takes(factory, "llm") and "llm" not in model_params:
            _Thinker(chosen.value, choose)
        if takes(factory, "rng") and "rng" not in model_params:
            solara.InputText(
                "Seed (empty: a new one)", chosen.value.seed, on_value=lambda text: choose(seed=text or "")
            )
        UserInputs(_labelled(model_params, chosen.value.parameters), on_change=adjust)


def worded(value: Any) -> Any:
    """Write one of several values as words: `in_turn` as `in turn`; what is no text stays as it is."""
    return value.replace("_", " ").replace(",", ", ") if isinstance(value, str) else value


def meant(param: Any, shown: Any) -> Any:
    """Give the value of a parameter that a list showed in words."""
    values = param["values"] if isinstance(param, dict) and param["type"] == "Select" else ()
    return next((value for value in values if worded(value) == shown), shown)


def _labelled(model_params: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Give the adjustable parameters; sliders say in their label where they stand, lists offer words."""
    labelled: dict[str, Any] = {}
    for name, param in split_model_params(model_params)[0].items():
        if isinstance(param, Slider):
            labelled[name] = copy(param)
            labelled[name].label = f"{param.label or name}: {values[name]:,}"
        elif str(param["type"]).startswith("Slider"):
            labelled[name] = {**param, "label": f"{param.get('label', name)}: {values[name]:,}"}
        elif param["type"] == "Select":
            labelled[name] = {**param, "value": worded(param["value"]), "values": [*map(worded, param["values"])]}
        else:
            labelled[name] = param
    return labelled


@component
def _Thinker(choice: Choice, choose: Callable[..., None]) -> None:
    names = list(THINKERS) if choice.thinker in THINKERS else [choice.thinker, *THINKERS]
    shown = {THINKERS.get(name, name): name for name in names}
    solara.Select(
        "Agents think with",
        values=list(shown),
        value=THINKERS.get(choice.thinker, choice.thinker),
        on_value=lambda label: choose(thinker=shown[label]),
    )
    if choice.thinker == "human":
        solara.InputInt("You play agent number (0: all)", choice.plays, on_value=lambda n: choose(plays=max(0, n or 0)))
    if choice.thinker == "other":
        solara.InputText(
            "Model", choice.model_id, on_value=lambda text: choose(model_id=text or ""), placeholder="ollama/qwen3"
        )
        solara.InputText(
            "Endpoint (empty: the provider's)", choice.api_base, on_value=lambda text: choose(api_base=text or "")
        )
        solara.InputFloat(
            "Spend at most, US$", choice.most_dollars, on_value=lambda most: choose(most_dollars=most), optional=True
        )
