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
from mesa_llm.model.scenario import slider_step
from mesa_llm.viz.render.markup import plain
from mesa_llm.viz.session.run_settings import (
    LLM_LABELS,
    REASONING,
    SCORING,
    WITHOUT_TEXT,
    ModelFactory,
    RunSettings,
    accepts,
    public_address,
)


@dataclass(frozen=True)
class Control:
    """The control of one parameter of a model."""

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
    """Step of a slider."""

    is_whole: bool = False
    """Whether a slider has whole numbers only."""

    values: tuple[Any, ...] = ()
    """Options of a list."""

    def with_place_for(self, value: Any) -> Control:
        """Return a control that can show a value: a slider would otherwise move it to its nearest mark.

        Args:
            value: The value.
        """
        if self.kind != "Slider" or isinstance(value, bool) or not isinstance(value, int | float):
            return self
        minimum, maximum = min(self.minimum, value), max(self.maximum, value)
        step = slider_step(self.step, value - minimum, is_whole=self.is_whole) if self.step else 0.0
        return replace(self, minimum=minimum, maximum=maximum, step=step)

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
                "a page supports SliderInt, SliderFloat, Select, Checkbox and InputText"
            )
        return cls(name, kind, label, value, values=tuple(described.get("values", ())))


def controls_of(model_params: Mapping[str, Any]) -> list[Control]:
    """Return the controls of a model's adjustable parameters.

    Args:
        model_params: Mesa's description of the parameters.
    """
    return [Control.of(name, described) for name, described in split_model_params(model_params)[0].items()]


def defaults(model_params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the initial values from Mesa's description of the parameters."""
    adjustable = {control.name: control.value for control in controls_of(model_params)}
    return {**split_model_params(model_params)[1], **adjustable}


@component
def RunSettingsForm(
    factory: ModelFactory,
    model_params: Mapping[str, Any],
    choice: solara.Reactive[RunSettings],
    meanings: Mapping[str, str] = MappingProxyType({}),
    llm_labels: Mapping[str, str] = LLM_LABELS,
    *,
    initial: Mapping[str, Any] = MappingProxyType({}),
    has_common_budget: bool = False,
    on_choice: Callable[[RunSettings], None] | None = None,
) -> None:
    """Let a visitor choose the settings of the next run.

    Args:
        factory: Builds the model.
        model_params: Mesa's description of the model's parameters.
        choice: The current settings.
        meanings: Parameter → its tooltip.
        llm_labels: Language model → its label.
        initial: Initial values of parameters, which their controls must be able to show.
        has_common_budget: Whether all pages of the server share one budget.
        on_choice: Called with the new settings after each choice; None: nothing is.
    """

    def choose(**changes: Any) -> None:
        choice.set(replace(choice.value, **changes))
        if on_choice is not None:
            on_choice(choice.peek())

    def adjust(name: str, value: Any) -> None:
        choose(parameters={**choice.value.parameters, name: value})

    with solara.Column(gap="4px"):
        if accepts(factory, "llm") and "llm" not in model_params:
            _Thinker(choice.value, choose, llm_labels, has_common_budget)
        if accepts(factory, "rng") and "rng" not in model_params:
            TextField("Seed (empty: a new one each time)", choice.value.seed, lambda text: choose(seed=text))
        for described in controls_of(model_params):
            control = described.with_place_for(initial.get(described.name, described.value))
            value = choice.value.parameters.get(control.name, control.value)
            meaning = plain(meanings.get(control.name, ""))
            with solara.Div(attributes={"title": meaning}):
                _Adjuster(control, value, partial(adjust, control.name)).key(control.name)


@component
def _Adjuster(control: Control, value: Any, adjust: Callable[[Any], None]) -> None:
    """Let a visitor set one parameter; the label of a slider shows its value."""
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
            by_words = {value_label(each): each for each in control.values}
            solara.Select(
                control.label, list(by_words), value_label(value), on_value=lambda label: adjust(by_words[label])
            )
        case _:
            TextField(control.label, "" if value is None else str(value), adjust)


def value_label(value: Any) -> str:
    """Return the label of an option: `in turn` for `in_turn`, `default` for None."""
    if value is None:
        return "default"
    return value.replace("_", " ").replace(",", ", ") if isinstance(value, str) else str(value)


@component
def _Thinker(
    choice: RunSettings, choose: Callable[..., None], llm_labels: Mapping[str, str], has_common_budget: bool
) -> None:
    names = list(llm_labels) if choice.llm_kind in llm_labels else [choice.llm_kind, *llm_labels]
    by_label = {llm_labels.get(name, name): name for name in names}
    solara.Select(
        "Language model",
        values=list(by_label),
        value=llm_labels.get(choice.llm_kind, choice.llm_kind),
        on_value=lambda label: choose(llm_kind=by_label[label]),
    )
    if choice.llm_kind == "human":
        NumberField("You play agent (0: all agents)", choice.plays, lambda n: choose(plays=max(0, int(n or 0))))
    if choice.llm_kind == "other":
        _Other(choice, choose, has_common_budget)
    if choice.llm_kind not in WITHOUT_TEXT:
        _Replies(choice, choose)


@component
def _Other(choice: RunSettings, choose: Callable[..., None], has_common_budget: bool) -> None:
    """Ask for a model, its endpoint and a budget; a budget of the server takes precedence."""

    def move(text: str) -> None:
        if text != public_address(choice.api_base):
            choose(api_base=text, api_key="")  # a key is only sent to the endpoint that it was typed for

    TextField("Model", choice.model_id, lambda text: choose(model_id=text), placeholder="ollama/qwen3")
    TextField("Endpoint (empty: the provider's own)", public_address(choice.api_base), move)
    if choice.endpoint:
        label = "Key (saved, not shown again)" if choice.api_key else "API key (optional)"
        TextField(label, "", lambda text: choose(api_key=text.strip()), type="password")
    if choice.api_key:
        solara.Button("Remove the key", on_click=lambda: choose(api_key=""), text=True, small=True)
    if not has_common_budget:
        NumberField("Maximum cost (US$)", choice.max_dollars, lambda maximum: choose(max_dollars=maximum))
    else:
        solara.Text("All pages of this server share one budget and its limits.", classes=["mesa-llm-hint"])


@component
def _Replies(choice: RunSettings, choose: Callable[..., None]) -> None:
    """Ask when agents reason, what decisions are scored by, and for the maximum length of a reply."""
    for field, title, labels in (("reasoning", "Reasoning", REASONING), ("scoring", "Decisions scored by", SCORING)):
        names = {label: name for name, label in labels.items()}
        solara.Select(
            title,
            values=list(names),
            value=labels[getattr(choice, field)],
            on_value=lambda label, field=field, names=names: choose(**{field: names[label]}),
        )
    NumberField(
        "Reply length (tokens)",
        choice.reply_tokens,
        lambda length: choose(reply_tokens=None if length is None else max(1, int(length))),
    )


@component
def TextField(label: str, value: str, on_value: Callable[[str], None], **looks: Any) -> None:
    """Show a field that is read on Enter or when it loses focus.

    The field is then replaced with a new one, so that no secret stays in the browser.
    """
    reads, count = use_state(0)

    def read(text: str) -> None:
        on_value(text)
        count(reads + 1)

    _TextInput(label, value, read, looks).key(f"read {reads} times")


@component
def _TextInput(label: str, value: str, parse: Callable[[str], None], looks: dict[str, Any]) -> None:
    """Show a field that does not echo what is being typed.

    All fields are set whenever any part of the page is drawn, which would swallow letters.
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
def NumberField(label: str, value: float | None, on_value: Callable[[float | None], None]) -> None:
    """Show a field for a number; other text is ignored."""

    def read(text: str) -> None:
        try:
            number = float(text) if text.strip() else None
        except ValueError:
            return
        if number is None or math.isfinite(number):
            on_value(number)

    TextField(label, "" if value is None else f"{value:g}", read, type="number")
