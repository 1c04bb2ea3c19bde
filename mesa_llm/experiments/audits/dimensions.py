"""Dimensions of an audit, and the perturbations that a model has in each of them.

A perturbation changes nothing that a claim is about: the same facts are put in another form, by another language model,
or to a few agents more. The core owns what is changed, so that every model has them, a user's own included; a model
adds to them with `Structure` in its scenario, and with rewordings in `prompts/variants/NAME/`.

Source:
    Ye, Cao, Chen and Ferrara (2026), arXiv 2605.18890, for the dimensions (TRAILS).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from mesa_llm.agents.design import AgentDesign
from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.runs.agent_statistic import AgentStatistic
from mesa_llm.experiments.runs.listening import Listener, ListeningAccess
from mesa_llm.memory import NoMemory
from mesa_llm.model.model import LLMModel
from mesa_llm.model.scenario import Parameter, parameters_of
from mesa_llm.prompts import templates_in, wordings_of
from mesa_llm.text import suggestion

DIMENSIONS: Mapping[str, str] = {
    "language model": "micro",
    "agent specification": "micro",
    "reasoning": "micro",
    "memory": "micro",
    "interaction protocol": "meso",
    "intervention design": "meso",
    "environment structure": "macro",
    "population": "macro",
    "format": "representation",
    "instruction hierarchy": "representation",
    "wording": "representation",
    "context": "representation",
    "sequencing": "representation",
}
"""Dimension → its level."""

TRIAL_STEPS = 3
"""Number of steps in which a perturbation must change some request to count as one."""

MEMORY_STEPS = 30
"""The same for memories, whose length shows late; runs that are shorter are tried to their end."""

MAX_OBSERVERS = 20
"""Maximum number of agents whose observations are searched for instructions."""

NEWS_TEMPLATES = ("agent_news.md", "agent_messages.md")
"""Templates in which interventions reach an agent."""


@dataclass(frozen=True)
class Setting:
    """What one run of an audit is made with."""

    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Parameters of the scenario."""

    design: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Design of the agents, as JSON."""

    llm: str = "rule"
    """Language model of the agents."""

    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of the model, such as its activation."""

    def over(self, other: Setting, *, keeps_llm: bool = False) -> Setting:
        """Return another setting with the changes of this one, field by field.

        Args:
            other: The setting that is changed.
            keeps_llm: Whether the language model of the other stays.
        """
        design = {**other.design, **self.design}
        for name in ("presentation", "settings"):
            if name in other.design and name in self.design:
                design[name] = {**other.design[name], **self.design[name]}
        parameters, options = {**other.parameters, **self.parameters}, {**other.options, **self.options}
        return Setting(parameters, design, other.llm if keeps_llm else self.llm, options)

    @property
    def names(self) -> set[str]:
        """What it sets, as paths: `parameters.noise`, `design.presentation.persona_form`, `options.activation`."""
        inner = {
            f"design.{name}.{part}" if isinstance(value, Mapping) else f"design.{name}"
            for name, value in self.design.items()
            for part in (value if isinstance(value, Mapping) else ("",))
        }
        return inner | {f"parameters.{name}" for name in self.parameters} | {f"options.{name}" for name in self.options}


@dataclass(frozen=True)
class Perturbation:
    """One change of how a model is put or run, under which a claim should hold."""

    dimension: str
    """Its dimension."""

    name: str
    """What is changed, in words."""

    change: Setting
    """The change; its language model counts only if `llm` is set."""

    llm: str = ""
    """Another language model; empty: that of the baseline."""

    def of(self, setting: Setting) -> Setting:
        """Return a setting with this change."""
        changed = self.change.over(setting, keeps_llm=True)
        return replace(changed, llm=self.llm) if self.llm else changed


def perturbation(dimension: str, name: str, *, llm: str = "", **changes: Any) -> Perturbation:
    """Write a perturbation: `perturbation("memory", "no memory", memory="none")`.

    Args:
        dimension: Its dimension.
        name: What is changed, in words.
        llm: Another language model.
        **changes: Fields of the design; `parameters` and `options` by their names.
    """
    parameters, options = changes.pop("parameters", {}), changes.pop("options", {})
    return Perturbation(dimension, name, Setting(parameters, changes, options=options), llm)


def presentation(dimension: str, name: str, **fields: Any) -> Perturbation:
    """Write a perturbation of how things are put: fields of a `Presentation`.

    Args:
        dimension: Its dimension.
        name: What is changed, in words.
        **fields: Fields of the presentation.
    """
    return perturbation(dimension, name, presentation=fields)


_OF_EVERY_MODEL: tuple[Perturbation, ...] = (
    perturbation("language model", "temperature 0", settings={"temperature": 0.0}),
    perturbation("language model", "temperature 1", settings={"temperature": 1.0}),
    presentation("agent specification", "persona as one line", persona_form="sentence"),
    presentation("agent specification", "persona as a description", persona_form="description"),
    presentation("agent specification", "persona in the first person", persona_form="first_person"),
    presentation("agent specification", "persona as a table", persona_form="table"),
    presentation("agent specification", "names exchanged", names="exchanged"),
    perturbation("reasoning", "no reasoning", reasoning="none"),
    perturbation("reasoning", "reasoning in the reply", reasoning="inline"),
    perturbation("reasoning", "reasoning first", reasoning="first"),
    perturbation("reasoning", "a plan first", decide="plan"),
    perturbation("memory", "no memory", memory="none"),
    perturbation("memory", "memory as a window", memory="window"),
    perturbation("memory", "memory as a conversation", memory="chat"),
    perturbation("interaction protocol", "all decide at once", options={"activation": "everyone"}),
    perturbation("interaction protocol", "in order of creation", options={"activation": "in_order"}),
    perturbation("interaction protocol", "one after another", options={"activation": "one_at_a_time"}),
    presentation("format", "what is seen as a list", observation_form="list"),
    presentation("format", "what is seen as a table", observation_form="table"),
    presentation("format", "what is seen as JSON", observation_form="json"),
    presentation("format", "more white space", observation_form="spaced"),
    presentation("instruction hierarchy", "instructions in the user’s message", instructions_place="user"),
    presentation("instruction hierarchy", "persona before the instructions", persona_place="opening"),
    presentation("instruction hierarchy", "persona after the instructions", persona_place="system"),
    presentation("context", "memories after what is seen", memory_place="after"),
    presentation("context", "parts of what is seen reversed", observation_order="reversed"),
    presentation("context", "persona before what is seen", persona_place="first"),
    presentation("sequencing", "options reversed", option_order="reversed"),
    presentation("sequencing", "actions reversed", tool_order="reversed"),
    presentation("sequencing", "entries of lists reversed", list_order="reversed"),
)

CONTROLS: Mapping[str, Perturbation] = {
    "another sample": presentation("", "another sample of the same requests", sample=1),
    "no persona": perturbation("", "no persona", persona="none"),
    "another’s persona": presentation("", "persona of another agent", persona_of="another"),
    "no instructions": presentation("", "no instructions of the model", instructions="none"),
}
"""Runs beside the perturbations, under which a claim need not hold: how much of it is noise, persona, instruction."""


@dataclass(frozen=True)
class AuditPlan:
    """What an audit of a model runs, besides the baseline."""

    perturbations: Sequence[Perturbation]
    """The perturbations, by dimension."""

    controls: Sequence[Perturbation]
    """The runs beside them."""

    without_effect: Sequence[str]
    """Perturbations that change no request of this model, and so are not run."""


def plan_for(
    model: type[LLMModel],
    setting: Setting,
    *,
    llms: Sequence[str] = (),
    dimensions: Iterable[str] | None = None,
    wordings: Iterable[str] = (),
    fixed: Iterable[str] = (),
    steps: int | None = None,
) -> AuditPlan:
    """Find the perturbations of a model: those that change any of its requests, with parameters that it accepts.

    Args:
        model: The model.
        setting: The setting of the baseline.
        llms: Further language models.
        dimensions: Names of the dimensions; None: all.
        wordings: Folders of rewordings, besides those beside the model's prompts.
        fixed: Paths of what the claims compare, which no perturbation may change; see `Setting.names`.
        steps: Number of steps of the audit's runs; None: until the model ends.

    Raises:
        ConfigError: If a dimension is unknown.
    """
    wanted = list(DIMENSIONS) if dimensions is None else list(dimensions)
    if unknown := [name for name in wanted if name not in DIMENSIONS]:
        hint = suggestion(unknown[0], DIMENSIONS)
        raise ConfigError(f"there is no dimension {unknown[0]!r}; there are: {', '.join(DIMENSIONS)}{hint}")
    taken = set(fixed)
    candidates = [
        one
        for one in _candidates(model, setting, llms, wordings)
        if one.dimension in wanted and taken.isdisjoint(one.change.names)
    ]
    trials = _Trials(model, setting, steps)
    is_new = [trials.is_new(one) for one in candidates]
    kept = [one for one, has_effect in zip(candidates, is_new, strict=True) if has_effect]
    without_effect = [one.name for one, has_effect in zip(candidates, is_new, strict=True) if not has_effect]
    beside = [one for one in CONTROLS.values() if trials.is_new(one)]
    order = list(DIMENSIONS)
    return AuditPlan(sorted(kept, key=lambda one: order.index(one.dimension)), beside, without_effect)


def _candidates(
    model: type[LLMModel], setting: Setting, llms: Sequence[str], wordings: Iterable[str]
) -> Iterator[Perturbation]:
    """Yield all perturbations that might apply to a model."""
    for name in llms:
        yield perturbation("language model", f"language model {name}", llm=name)
    yield from _OF_EVERY_MODEL
    trial = _Trial(model, setting, steps=0)
    yield from _of_memory(trial.memory)
    yield from _of_scenario(model, trial.scenario)
    for name in wordings_of(model):
        is_of_news = templates_in(model, name) <= set(NEWS_TEMPLATES)
        dimension = "intervention design" if is_of_news else "wording"
        yield presentation(dimension, f"wording “{name}”", wording=name)
    for number, folder in enumerate(wordings, 1):
        yield presentation("wording", f"written rewording {number}", wording=str(folder))


def _of_memory(memory: Any) -> Iterator[Perturbation]:
    """Yield memories of half and twice the length of one that an agent has."""
    if memory is None or isinstance(memory, NoMemory) or not getattr(memory, "settings", ()):
        return
    first = type(memory).settings[0]
    length = getattr(memory, first, None)
    if isinstance(length, int) and length >= 2:
        yield perturbation("memory", "memory half as long", memory=f"{memory.kind}:{length // 2}")
        yield perturbation("memory", "memory twice as long", memory=f"{memory.kind}:{length * 2}")


def _of_scenario(model: type[LLMModel], scenario: Mapping[str, Any]) -> Iterator[Perturbation]:
    """Yield half and twice as many agents, and the values of what a model marks as structure.

    Where a model cannot have half or twice as many, the numbers that it marks are tried.
    """
    for parameter in parameters_of(model):
        present, mark = scenario.get(parameter.name), parameter.structure
        marked = [] if mark is None else [(f"{parameter.name} {one}", one) for one in mark.values if one != present]
        accepted = [(name, value) for name, value in marked if _accepts(parameter, value)]
        dimension = "environment structure" if mark is None else mark.dimension
        if parameter.name == "n_agents" and isinstance(present, int):
            halved = [("half as many agents", present // 2), ("twice as many agents", present * 2)]
            possible = [(name, value) for name, value in halved if _accepts(parameter, value)]
            accepted = accepted if accepted and len(possible) < len(halved) else possible
            dimension = "population"
        for name, value in accepted:
            yield perturbation(dimension, name, parameters={parameter.name: value})


def _accepts(parameter: Parameter, value: Any) -> bool:
    """Check whether a parameter may have a value."""
    try:
        parameter.check(value)
    except ConfigError:
        return False
    return True


# -- trials


class _Trials:
    """Trials of a model in several settings, to see which of them put anything in another way."""

    def __init__(self, model: type[LLMModel], setting: Setting, steps: int | None) -> None:
        self.model = model
        self.setting = setting
        self.long = min(MEMORY_STEPS, steps or MEMORY_STEPS)
        self._seen = [self._signature(setting, n) for n in dict.fromkeys((TRIAL_STEPS, self.long))]

    def is_new(self, one: Perturbation) -> bool:
        """Check whether a perturbation makes requests that nothing before it has made; another model always does."""
        if one.llm:
            return True
        signature = self._signature(one.of(self.setting), self.long if one.dimension == "memory" else TRIAL_STEPS)
        if signature is None or signature in self._seen:
            return False
        self._seen.append(signature)
        return True

    def _signature(self, setting: Setting, steps: int) -> list[Any] | None:
        """Return what language models would read in the first steps; None if the model refuses the setting."""
        try:
            return _Trial(self.model, setting, steps).signature
        except ConfigError:
            return None


class _Trial:
    """First steps of a model with random choices: what its agents' language models would read.

    Attributes:
        requests: The requests, in order.
        memory: Memory of the first agent; None without agents.
        scenario: Parameters of the scenario, by name.
        reasoning: How agents reason before they decide.
    """

    def __init__(self, model: type[LLMModel], setting: Setting, steps: int = TRIAL_STEPS) -> None:
        with _listened_to(model, setting) as (running, listener):
            agents = llm_agents(running)
            self.memory: Any = agents[0].memory if agents else None
            self.scenario = running.scenario.to_dict()
            self.reasoning = [running.reasoning or agent.config.reasoning for agent in agents]
            if steps:
                running.run(steps)
        self.requests = listener.requests

    @property
    def signature(self) -> list[Any]:
        """Everything in its requests that a language model reads, and their settings."""
        reasoning = [[index, kind] for index, kind in enumerate(self.reasoning) if kind != "none"]
        return reasoning + [
            [
                request.salt,
                [[message.role, message.content] for message in request.messages],
                [spec.digest for spec in request.tools],
                request.schema and list(_ordered(request.schema)),
                {name: list(values) for name, values in request.options.items()},
                dict(request.settings),
            ]
            for request in self.requests
        ]


def instructions_of(model: type[LLMModel], setting: Setting) -> list[str]:
    """Return the instructions that agents read in a setting: the model's own, and those of what they first see.

    Args:
        model: The model.
        setting: The setting.
    """
    with _listened_to(model, setting) as (running, _):
        seen = [agent.observe().instructions for agent in llm_agents(running)[:MAX_OBSERVERS]]
        return list(dict.fromkeys(filter(None, [running.instructions_text, *seen])))


def check_over_agents(model: type[LLMModel], setting: Setting, statistics: Iterable[AgentStatistic]) -> None:
    """Check that the agents of a model have what statistics over them name; see `AgentStatistic.check`.

    Args:
        model: The model.
        setting: The setting.
        statistics: The statistics.

    Raises:
        ConfigError: If no agent has it.
    """
    with _listened_to(model, setting) as (running, _):
        for one in statistics:
            one.check(running)


@contextmanager
def _listened_to(model: type[LLMModel], setting: Setting) -> Generator[tuple[LLMModel, Listener]]:
    """Yield a model in a setting that decides at random, and what notes its requests."""
    design = AgentDesign.from_json({**setting.design, "llm": None})
    arguments = {**setting.parameters, **setting.options, "design": design}
    with (
        closing(ListeningAccess()) as access,
        closing(model(**arguments, llm="random", rng=1, access=access)) as running,
    ):
        yield running, access.listener


def _ordered(schema: Any) -> Iterator[Any]:
    """Yield the parts of a JSON schema in their order, which comparing dictionaries ignores."""
    if isinstance(schema, Mapping):
        for name, value in schema.items():
            yield name
            yield from _ordered(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from _ordered(value)
    else:
        yield schema
