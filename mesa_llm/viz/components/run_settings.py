"""A visitor's choices before Reset: what agents think with, the seed, and the model's own parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import solara
from mesa.visualization.solara_viz import split_model_params
from mesa.visualization.user_param import Slider
from reacton import ipyvuetify as vuetify
from reacton import use_ref, use_state
from reacton.ipyvue import use_event
from solara.core import component

from mesa_llm.errors import ConfigError
from mesa_llm.viz.session.run_settings import (
    LLM_LABELS,
    REASONING,
    WITHOUT_TEXT,
    ModelFactory,
    RunSettings,
    public_address,
    takes,
)


@dataclass(frozen=True)
class Control:
    """Control of one parameter of a model."""

    name: str
    """Name of the parameter."""

    kind: str
    """`Slider`, `Select`, `Checkbox` or `InputText`, as in Mesa's `model_params`."""

    label: str
    """Its label."""

    value: Any
    """Its initial value."""

    minimum: float = 0.0
    """Smallest value on a slider."""

    maximum: float = 0.0
    """Largest value on a slider."""

    step: float = 1.0
    """Distance between values on a slider."""

    is_whole: bool = False
    """Whether a slider holds whole numbers."""

    values: tuple[Any, ...] = ()
    """Choices of a list."""

    @classmethod
    def of(cls, name: str, described: Any) -> Control:
        """Read Mesa's description of a parameter: a `Slider`, or a mapping with a type.

        Args:
            name: Name of the parameter.
            described: Its description.

        Raises:
            ConfigError: If the description is anything else.
        """
        if isinstance(described, Slider):
            kind = "SliderFloat" if described.is_float_slider else "SliderInt"
            described = {**vars(described), "type": kind}
        label, value, kind = described.get("label") or name, described.get("value"), str(described["type"])
        if kind in ("SliderInt", "SliderFloat"):
            bounds = float(described["min"]), float(described["max"]), float(described.get("step") or 1)
            return cls(name, "Slider", label, value, *bounds, is_whole=kind == "SliderInt")
        if kind not in ("Select", "Checkbox", "InputText"):
            raise ConfigError(
                f"model_params[{name!r}] has the type {kind!r}; "
                "a page knows SliderInt, SliderFloat, Select, Checkbox and InputText"
            )
        return cls(name, kind, label, value, values=tuple(described.get("values", ())))


def controls_of(model_params: Mapping[str, Any]) -> list[Control]:
    """Return the controls of a model's adjustable parameters.

    Args:
        model_params: Mesa's description of the parameters.
    """
    return [Control.of(name, described) for name, described in split_model_params(model_params)[0].items()]


def defaults(model_params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the initial values in Mesa's description of parameters."""
    adjustable = {control.name: control.value for control in controls_of(model_params)}
    return {**split_model_params(model_params)[1], **adjustable}


@component
def RunSettingsForm(
    factory: ModelFactory,
    model_params: Mapping[str, Any],
    choice: solara.Reactive[RunSettings],
    meanings: Mapping[str, str] = MappingProxyType({}),
    thinkers: Mapping[str, str] = LLM_LABELS,
    *,
    has_common_budget: bool = False,
) -> None:
    """Let a visitor choose what the next model is built from.

    Args:
        factory: Builds the model.
        model_params: Mesa's description of the model's parameters.
        choice: The present choices.
        meanings: Parameter → its meaning, shown as a tooltip.
        thinkers: Language model → its label.
        has_common_budget: Whether all pages of the server share one budget.
    """

    def choose(**changes: Any) -> None:
        choice.set(replace(choice.value, **changes))

    def adjust(name: str, value: Any) -> None:
        choose(parameters={**choice.value.parameters, name: value})

    with solara.Column(gap="4px"):
        if takes(factory, "llm") and "llm" not in model_params:
            _Thinker(choice.value, choose, thinkers, has_common_budget)
        if takes(factory, "rng") and "rng" not in model_params:
            _Text("Seed (empty: a new one)", choice.value.seed, lambda text: choose(seed=text))
        for control in controls_of(model_params):
            value = choice.value.parameters.get(control.name, control.value)
            meaning = meanings.get(control.name, "")
            with solara.Div(attributes={"title": meaning}):
                _Adjuster(control, value, partial(adjust, control.name)).key(control.name)


@component
def _Adjuster(control: Control, value: Any, adjust: Callable[[Any], None]) -> None:
    """Let a visitor adjust one parameter; the label of a slider shows its value, and lists offer words."""
    match control.kind:
        case "Slider" if control.is_whole:
            low, high, step = int(control.minimum), int(control.maximum), int(control.step)
            solara.SliderInt(f"{control.label}: {value:,}", value, low, high, step, on_value=adjust)
        case "Slider":
            low, high, step = control.minimum, control.maximum, control.step
            solara.SliderFloat(f"{control.label}: {value:,.10g}", value, low, high, step, on_value=adjust)
        case "Checkbox":
            solara.Checkbox(label=control.label, value=bool(value), on_value=adjust)
        case "Select":
            by_words = {worded(each): each for each in control.values}
            solara.Select(control.label, list(by_words), worded(value), on_value=lambda label: adjust(by_words[label]))
        case _:
            _Text(control.label, "" if value is None else str(value), adjust)


def worded(value: Any) -> str:
    """Write a value of a list as words: `in_turn` as `in turn`, None as the model's default."""
    if value is None:
        return "as usual"
    return value.replace("_", " ").replace(",", ", ") if isinstance(value, str) else str(value)


@component
def _Thinker(
    choice: RunSettings, choose: Callable[..., None], thinkers: Mapping[str, str], has_common_budget: bool
) -> None:
    names = list(thinkers) if choice.thinker in thinkers else [choice.thinker, *thinkers]
    by_label = {thinkers.get(name, name): name for name in names}
    solara.Select(
        "Agents think with",
        values=list(by_label),
        value=thinkers.get(choice.thinker, choice.thinker),
        on_value=lambda label: choose(thinker=by_label[label]),
    )
    if choice.thinker == "human":
        _Number("You play agent number (0: all)", choice.plays, lambda n: choose(plays=max(0, int(n or 0))))
    if choice.thinker == "other":
        _Other(choice, choose, has_common_budget)
    if choice.thinker not in WITHOUT_TEXT:
        _Replies(choice, choose)


@component
def _Other(choice: RunSettings, choose: Callable[..., None], has_common_budget: bool) -> None:
    """Ask for a model's name, its endpoint and a budget; the server's budget takes precedence over the visitor's."""

    def move(text: str) -> None:
        if text != public_address(choice.api_base):
            choose(api_base=text, api_key="")  # a key goes to no endpoint that it was not typed for

    _Text("Model", choice.model_id, lambda text: choose(model_id=text), placeholder="ollama/qwen3")
    _Text("Endpoint (empty: the provider's)", public_address(choice.api_base), move)
    if choice.endpoint:
        label = "Key: taken, not shown again" if choice.api_key else "Key (empty: none is sent)"
        _Text(label, "", lambda text: choose(api_key=text.strip()), type="password")
    if choice.api_key:
        solara.Button("Forget the key", on_click=lambda: choose(api_key=""), text=True, small=True)
    if not has_common_budget:
        _Number("Spend at most, US$", choice.max_dollars, lambda maximum: choose(max_dollars=maximum))
    else:
        solara.Text("All pages of this server share one budget.", classes=["mesa-llm-hint"])


@component
def _Replies(choice: RunSettings, choose: Callable[..., None]) -> None:
    """Ask when agents reason, and how long a reply may be."""
    reasoning = {label: name for name, label in REASONING.items()}
    solara.Select(
        "Reasoning",
        values=list(reasoning),
        value=REASONING[choice.reasoning],
        on_value=lambda label: choose(reasoning=reasoning[label]),
    )
    _Number(
        "Reply length (tokens)",
        choice.reply_tokens,
        lambda length: choose(reply_tokens=None if length is None else max(1, int(length))),
    )


@component
def _Text(label: str, value: str, on_value: Callable[[str], None], **looks: Any) -> None:
    """Show a field that is read when it loses focus, or at Enter, and then shows the value that was read.

    Once read, the field is replaced by a new one, so that no secret stays in the browser.
    """
    reads, count = use_state(0)

    def read(text: str) -> None:
        on_value(text)
        count(reads + 1)

    _TextInput(label, value, read, looks).key(f"read {reads} times")


@component
def _TextInput(label: str, value: str, parse: Callable[[str], None], looks: dict[str, Any]) -> None:
    """Show a field while something is typed in it.

    What is being typed is not sent back: all fields are set whenever any part of the page is drawn, which would swallow
    letters.
    """
    typed = use_ref(value)

    def type_in(*event: Any) -> None:
        typed.current = str(event[-1] or "")

    def leave(*event: Any) -> None:
        if typed.current != value:
            parse(typed.current)

    field = vuetify.TextField(label=label, value=value, hide_details="auto", **looks)
    use_event(field, "input", type_in)
    use_event(field, "blur", leave)
    use_event(field, "keydown.enter", leave)


@component
def _Number(label: str, value: float | None, on_value: Callable[[float | None], None]) -> None:
    """Show a field for a number; any other text is ignored."""

    def read(text: str) -> None:
        try:
            number = float(text) if text.strip() else None
        except ValueError:
            return
        if number is None or math.isfinite(number):
            on_value(number)

    _Text(label, "" if value is None else f"{value:g}", read, type="number")
