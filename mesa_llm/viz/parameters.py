"""A visitor's choices before Reset: what agents think with, the seed, and the model's own parameters."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import solara
from mesa.visualization.solara_viz import split_model_params
from mesa.visualization.user_param import Slider
from reacton import ipyvuetify as vuetify
from reacton import use_ref, use_state
from reacton.ipyvue import use_event
from solara.core import component

from mesa_llm.engine.access import Access
from mesa_llm.engine.transports import ACCESS_OPTIONS
from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import environment_secrets, without_secrets
from mesa_llm.llm.human.queue import HumanLLM
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.protocol import LLM
from mesa_llm.model.model import LLMModel

Factory = Callable[..., LLMModel]
"""A model class, or any callable that takes parameters by name and returns a model."""

THINKERS = {
    "rule": "rules (no language model)",
    "random": "chance (the baseline)",
    "local": "the small model on this machine",
    "human": "you, and rules for the others",
    "other": "another model …",
}
"""Language model → its label on the page."""

SPEECHLESS = ("rule", "random", "human")
"""Choices that write no text, so that reasoning and reply length do not apply."""

REASONING = {
    "": "as the model has it",
    "none": "none",
    "inline": "with the decision",
    "first": "first, in a request of its own",
}
"""Way to reason → its label on the page."""

NAMES_ADDRESS = re.compile(r"://|@.*[.:/]")
"""Matches model names that contain an endpoint, which would get the keys of the environment."""

ADDRESS = re.compile(r"(?P<scheme>[a-z]+:/+)?(?P<user>.*@)?(?P<where>[^?#]*)(?P<query>.*)", re.IGNORECASE)
"""The parts of an address, even of a malformed one."""

HIDDEN = "•••"
"""Replacement for secrets."""


_shared: list[Access] = []


def share(access: Access) -> None:
    """Make the models of all pages of this process share one budget.

    Args:
        access: The access with the budget.
    """
    _shared[:] = [access]


def shared_access() -> Access | None:
    """Return the access that all pages of this process share; None: each model has its own."""
    return _shared[0] if _shared else None


@dataclass(frozen=True)
class Choice:
    """All choices that a model is built from."""

    thinker: str = "rule"
    """One of `THINKERS`; any other text is taken as a model string."""

    model_id: str = ""
    """With `other`: a litellm id, `ollama/NAME`, or the endpoint's name for the model."""

    api_base: str = field(default="", repr=False)
    """With `other`: base URL of an OpenAI-compatible endpoint; empty: the provider's own. It may hold a password."""

    api_key: str = field(default="", repr=False)
    """Key for that endpoint; empty: none is sent. It is stored nowhere else."""

    reasoning: str = ""
    """When agents reason, one of `REASONING`; empty: the model's default."""

    reply_tokens: int | None = None
    """Maximum length of a reply, in tokens; None: the model's default."""

    max_dollars: float | None = None
    """With `other`: US dollars after which the run stops; None: no limit."""

    plays: int = 1
    """With `human`: id of the agent that the visitor plays; 0: all."""

    seed: str = ""
    """Seed; empty: a new one each time."""

    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The model's own parameters."""

    def arguments(self, factory: Factory, access: Access | None = None) -> dict[str, Any]:
        """Return the arguments for building a model, as far as its factory takes them.

        Args:
            factory: The factory.
            access: The server's budget for the models of all pages; None: each has its own.

        Raises:
            ConfigError: If `other` is chosen and no model is named, or the model would evade the server's budget, or
                has an access of its own.
        """
        candidates: dict[str, Any] = {"llm": self.llm(), "rng": self.seed.strip() or None}
        if self.thinker not in SPEECHLESS:
            candidates |= {"reasoning": self.reasoning or None, "reply_tokens": self.reply_tokens}
        if self.thinker == "other" and access is None:
            candidates |= {"max_dollars": self.max_dollars}
        arguments = {name: value for name, value in candidates.items() if value is not None and takes(factory, name)}
        if access is None:
            return {**arguments, **self.parameters}
        if not takes(factory, "access"):
            raise ConfigError("this model takes no access=, so that the budget of this server cannot hold for it")
        if access_options := sorted(
            name for name in ACCESS_OPTIONS & set(self.parameters) if self.parameters[name] is not None
        ):
            raise ConfigError(
                f"this page fixes {', '.join(access_options)} in model_params, and this server has one budget "
                "and one access for all its pages: name the endpoint by llm='NAME@URL', or by a table of "
                "mesa-llm.toml with its limits; "
                "or start the server without --max-calls, --max-tokens and --max-dollars"
            )
        return {**arguments, **self.parameters, "access": access}

    @property
    def endpoint(self) -> str:
        """Base URL of the endpoint; empty: the provider's own."""
        return self.api_base.strip() if self.thinker == "other" else ""

    def hide(self, text: str) -> str:
        """Remove the visitor's key, secrets in the endpoint's address, and keys of the environment from a text."""
        return without_secrets(text, [self.api_key, *secrets_of(self.api_base), *environment_secrets()])

    def llm(self) -> str | LLM | Mapping[Any, str | LLM]:
        """Return what agents think with.

        Raises:
            ConfigError: If `other` is chosen, and no model is named.
        """
        if self.thinker == "human":
            person = HumanLLM()
            return {self.plays: person, "*": "rule"} if self.plays else person
        if self.thinker != "other":
            return self.thinker
        if not self.model_id.strip():
            raise ConfigError("name the model, such as ollama/qwen3 or openai/gpt-4o-mini, then press Reset")
        if NAMES_ADDRESS.search(self.model_id):
            raise ConfigError("the model's name holds an address; type the address under Endpoint")
        return self._at_endpoint() if self.endpoint else self.model_id.strip()

    def _at_endpoint(self) -> LLM:
        """Open the visitor's endpoint, with the visitor's key or none, but never with a key of the environment."""
        if HIDDEN in self.endpoint:
            raise ConfigError("type the whole address of the endpoint again, with what the page has hidden in it")
        name = self.model_id.strip().removeprefix("ollama/").removeprefix("openai/")
        return OpenAIHTTP(name, self.endpoint, self.api_key)


def transports_in(llm: str | LLM | Mapping[Any, str | LLM] | None) -> list[LLM]:
    """Return the transports among the agents' language models: people, and endpoints that were typed."""
    transports = llm.values() if isinstance(llm, Mapping) else [llm]
    return [each for each in transports if each is not None and not isinstance(each, str)]


def secrets_of(api_base: str) -> set[str]:
    """Return the parts of an address that may be secret: user, password, and the values of its query."""
    match = ADDRESS.fullmatch(api_base.strip())
    if match is None:
        return {api_base}
    user, query = (match["user"] or "").removesuffix("@"), match["query"]
    pairs = (pair.partition("=") for pair in re.split("[?&#]", query))
    secrets = {user, *user.split(":", 1), *(value or name for name, _, value in pairs)}
    return {*secrets, *map(unquote, secrets)} - {""}


def public_address(api_base: str) -> str:
    """Return an address with user, password and query hidden."""
    match = ADDRESS.fullmatch(api_base.strip())
    if match is None:
        return HIDDEN
    user, query = f"{HIDDEN}@" if match["user"] else "", f"?{HIDDEN}" if match["query"] else ""
    return f"{match['scheme'] or ''}{user}{match['where']}{query}"


def takes(factory: Factory, name: str) -> bool:
    """Check whether a model can be given an argument of this name."""
    parameters = inspect.signature(factory).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


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
def Parameters(
    factory: Factory,
    model_params: Mapping[str, Any],
    choice: solara.Reactive[Choice],
    meanings: Mapping[str, str] = MappingProxyType({}),
    thinkers: Mapping[str, str] = MappingProxyType(THINKERS),
) -> None:
    """Let a visitor choose what the next model is built from.

    Args:
        factory: Builds the model.
        model_params: Mesa's description of the model's parameters.
        choice: The present choices.
        meanings: Parameter → its meaning, shown as a tooltip.
        thinkers: Language model → its label.
    """

    def choose(**changes: Any) -> None:
        choice.set(replace(choice.value, **changes))

    def adjust(name: str, value: Any) -> None:
        choose(parameters={**choice.value.parameters, name: value})

    with solara.Column(gap="4px"):
        if takes(factory, "llm") and "llm" not in model_params:
            _Thinker(choice.value, choose, thinkers)
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
def _Thinker(choice: Choice, choose: Callable[..., None], thinkers: Mapping[str, str]) -> None:
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
        _Other(choice, choose)
    if choice.thinker not in SPEECHLESS:
        _Replies(choice, choose)


@component
def _Other(choice: Choice, choose: Callable[..., None]) -> None:
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
    if shared_access() is None:
        _Number("Spend at most, US$", choice.max_dollars, lambda maximum: choose(max_dollars=maximum))
    else:
        solara.Text("All pages of this server share one budget.", classes=["mesa-llm-hint"])


@component
def _Replies(choice: Choice, choose: Callable[..., None]) -> None:
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
