"""Dimensions of an audit, and the perturbations that a model has in each of them.

A perturbation changes nothing that a claim is about: the same facts are put in another form, by another language model,
or to a few agents more. The core owns what is changed, so that every model has them, a user's own included; a model
adds to them with `Structure` in its scenario, and with rewordings in `prompts/variants/NAME/`.

Source:
    Ye, Cao, Chen and Ferrara (2026), arXiv 2605.18890, for the dimensions (TRAILS).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

from mesa_llm.agents.design import AgentDesign
from mesa_llm.canonical import with_text_names
from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.experiments.runs.agent_statistic import AgentStatistic
from mesa_llm.experiments.runs.listening import Listener, ListeningAccess
from mesa_llm.memory import NoMemory
from mesa_llm.model.model import LLMModel
from mesa_llm.model.scenario import Parameter, parameters_of
from mesa_llm.prompts import templates_in, wordings_of
from mesa_llm.records import Request
from mesa_llm.text import one_line, suggestion

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
"""Number of steps of a first trial, in which most perturbations change some request."""

MAX_REQUESTS = 3_000
"""Number of requests at which a trial of a whole run is cut off; what has shown no effect by then is run."""

LANGUAGE_MODEL = "language model"
"""The dimension of other language models, and of other temperatures of the same one."""

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
        """What it sets besides the language model, as paths: `parameters.noise`, `design.presentation.persona_form`."""
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

    scale: float = 1.0
    """Number of agents, as a multiple of the baseline's."""

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


Reason = Literal["no effect", "refused", "duplicate", "compared", "not chosen", "not recorded"]
"""Why a perturbation is not run."""


@dataclass(frozen=True)
class NotRun:
    """A perturbation that is not run, and why."""

    perturbation: Perturbation
    """The perturbation."""

    reason: Reason
    """Why it is not run."""

    detail: str = ""
    """Of a refusal: the error. Of a duplicate: the perturbation that is the same."""

    @property
    def text(self) -> str:
        """The reason in words."""
        return f"{_REASONS[self.reason]}{self.detail}"


_REASONS: Mapping[Reason, str] = {
    "no effect": "changes neither what these agents read nor the results, in trials of whole runs with random choices",
    "refused": "refused by the model: ",
    "duplicate": "the same as ",
    "compared": "set by the claims themselves",
    "not chosen": "not asked for",
    "not recorded": "not recorded",
}


def not_run_texts(not_run: Sequence[NotRun]) -> list[str]:
    """Return what was not run as sentences, one for each reason.

    Args:
        not_run: The perturbations.
    """
    by_reason: dict[str, list[str]] = {}
    for reason in _REASONS:
        for one in not_run:
            if one.reason == reason:
                by_reason.setdefault(one.text, []).append(one.perturbation.name)
    return [f"Not run ({text}): {', '.join(names)}." for text, names in by_reason.items()]


@dataclass(frozen=True)
class AuditPlan:
    """What an audit of a model runs, besides the baseline."""

    perturbations: Sequence[Perturbation]
    """The perturbations, by dimension."""

    controls: Sequence[Perturbation]
    """The runs beside them."""

    not_run: Sequence[NotRun] = ()
    """Perturbations and controls that are not run, and why."""

    def only(self, names: Collection[str], reason: Reason) -> AuditPlan:
        """Return the plan with some of its perturbations alone.

        Args:
            names: Names of the perturbations.
            reason: Why the others are not run.

        Raises:
            ConfigError: If there is no perturbation of one of the names.
        """
        known = [one.name for one in self.perturbations]
        if unknown := [name for name in names if name not in known]:
            hint = suggestion(unknown[0], known)
            raise ConfigError(f"there is no perturbation {unknown[0]!r}; there are: {', '.join(known)}{hint}")
        kept = [one for one in self.perturbations if one.name in names]
        left_out = [NotRun(one, reason) for one in self.perturbations if one.name not in names]
        return AuditPlan(kept, self.controls, [*self.not_run, *left_out])


def audited_dimensions(perturbations: Iterable[Perturbation]) -> list[str]:
    """Return the dimensions in which perturbations were run, in the order of `DIMENSIONS`.

    The dimension "language model" counts where another one was run; another temperature of the same one is not enough.

    Args:
        perturbations: The perturbations that were run.
    """
    found = {one.dimension for one in perturbations if one.dimension != LANGUAGE_MODEL or one.llm}
    return [name for name in DIMENSIONS if name in found]


def plan_for(
    model: type[LLMModel],
    setting: Setting,
    *,
    llms: Sequence[str] = (),
    dimensions: Iterable[str] | None = None,
    wordings: Iterable[str] = (),
    fixed: Iterable[str] = (),
    steps: int | None = None,
    others: Sequence[Setting] = (),
    over_agents: Sequence[AgentStatistic] = (),
) -> AuditPlan:
    """Find the perturbations of a model: those that change what its agents read or its results, and that it accepts.

    What changes nothing is found by trials with random choices, over the whole run; what they cannot tell is run.

    Args:
        model: The model.
        setting: The setting of the baseline.
        llms: Further language models.
        dimensions: Names of the dimensions; None: all.
        wordings: Folders of rewordings, besides those beside the model's prompts.
        fixed: Paths of what the claims compare, which no perturbation may change; see `Setting.names`.
        steps: Number of steps of the audit's runs; None: until the model ends.
        others: Further settings that the claims compare, under which a perturbation may change something, too.
        over_agents: Statistics over agents that the claims are about, which count as results.

    Raises:
        ConfigError: If a dimension is unknown.
    """
    wanted = list(DIMENSIONS) if dimensions is None else list(dimensions)
    if unknown := [name for name in wanted if name not in DIMENSIONS]:
        hint = suggestion(unknown[0], DIMENSIONS)
        raise ConfigError(f"there is no dimension {unknown[0]!r}; there are: {', '.join(DIMENSIONS)}{hint}")
    taken = set(fixed)
    trials = _Trials(model, [setting, *others], steps, over_agents)
    perturbations, controls, not_run = list[Perturbation](), list[Perturbation](), list[NotRun]()
    for one in (*_candidates(model, setting, llms, wordings), *CONTROLS.values()):
        if one.dimension and one.dimension not in wanted:
            not_run.append(NotRun(one, "not chosen"))
        elif one.dimension and not taken.isdisjoint({"llm"} if one.llm else one.change.names):
            not_run.append(NotRun(one, "compared"))
        elif fault := trials.fault(one):
            not_run.append(fault)
        elif one.dimension:
            perturbations.append(replace(one, scale=trials.scale(one)))
        else:
            controls.append(one)
    order = list(DIMENSIONS)
    return AuditPlan(sorted(perturbations, key=lambda one: order.index(one.dimension)), controls, not_run)


def _candidates(
    model: type[LLMModel], setting: Setting, llms: Sequence[str], wordings: Iterable[str]
) -> Iterator[Perturbation]:
    """Yield all perturbations that might apply to a model."""
    for name in llms:
        yield perturbation("language model", f"language model {name}", llm=name)
    yield from _OF_EVERY_MODEL
    with _listened_to(model, setting) as (running, _):
        agents = llm_agents(running)
        yield from _of_memory(agents[0].memory if agents else None)
        yield from _of_scenario(model, running.scenario.to_dict())
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
    """Trials of a model under perturbations, to see which of them change what is read, or what comes of it."""

    def __init__(
        self,
        model: type[LLMModel],
        settings: Sequence[Setting],
        steps: int | None,
        over_agents: Sequence[AgentStatistic],
    ) -> None:
        self.settings = settings
        self.run = partial(_Trial, model, steps, over_agents)
        self._kept = {"": self.run(settings)}
        self._llms = {setting.llm for setting in settings}

    def fault(self, one: Perturbation) -> NotRun | None:
        """Return why a perturbation is not to be run; None if it is to be run, from then on beside all others."""
        if one.llm:
            if one.llm in self._llms:
                return NotRun(one, "duplicate", "a language model that is run already")
            self._llms.add(one.llm)
            return None
        trial = self.run([one.of(setting) for setting in self.settings])
        try:
            alike = next((name for name, other in self._kept.items() if trial.is_like(other)), None)
        except Exception as error:  # noqa: BLE001 - a model is anybody's code, and may refuse a setting by any error
            return NotRun(one, "refused", _first_sentence(error))
        if alike is None:
            self._kept[one.name] = trial
            return None
        return NotRun(one, "duplicate", f"“{alike}”") if alike else NotRun(one, "no effect")

    def scale(self, one: Perturbation) -> float:
        """Return the number of agents under a perturbation that is run, as a multiple of the baseline's."""
        own = self._kept[""].n_agents
        return self._kept[one.name].n_agents / own if own and not one.llm else 1.0


class _Trial:
    """A model in one or more settings, with random choices: what its agents' language models would read."""

    def __init__(
        self,
        model: type[LLMModel],
        steps: int | None,
        over_agents: Sequence[AgentStatistic],
        settings: Sequence[Setting],
    ) -> None:
        self.model = model
        self.steps = steps
        self.over_agents = over_agents
        self.settings = settings
        self.n_agents = 0

    def is_like(self, other: _Trial) -> bool:
        """Check whether two trials ask the same and come to the same, over whole runs."""
        if self.first != other.first:
            return False
        try:
            whole = other.whole
        except Exception:  # noqa: BLE001 - the other one ends by its own error; nothing is known of what would follow
            return False
        return whole is not None and self.whole == whole

    @cached_property
    def first(self) -> list[str]:
        """Digests of what language models would read in the first steps, one for each setting."""
        digests: list[str] = []
        for setting in self.settings:
            with _listened_to(self.model, setting, is_llm=True) as (running, listener):
                self.n_agents = self.n_agents or len(llm_agents(running))
                running.run(TRIAL_STEPS if self.steps is None else min(TRIAL_STEPS, self.steps))
                digests.append(_digest(listener.requests))
        return digests

    @cached_property
    def whole(self) -> list[str] | None:
        """The same over whole runs, with their results; None if one is too long to be tried to its end."""
        digests: list[str] = []
        for setting in self.settings:
            with _listened_to(self.model, setting, is_llm=True) as (running, listener):
                n_steps, subgroups = 0, [one.begin(running) for one in self.over_agents]
                while running.running and (self.steps is None or n_steps < self.steps):
                    if max(len(listener.requests), n_steps) > MAX_REQUESTS:
                        return None
                    running.run(1)
                    n_steps += 1
                results = json.dumps(with_text_names(dict(running.results())), default=repr)
                of_agents = [repr(one.value(running)) for one in subgroups]
                digests += [_digest(listener.requests), results, *of_agents]
        return digests


def _digest(requests: Sequence[Request]) -> str:
    """Return a digest of everything in requests that a language model reads, and of their settings."""
    digest = hashlib.sha256()
    for request in requests:
        parts = [
            request.salt,
            [[message.role, message.content] for message in request.messages],
            [spec.digest for spec in request.tools],
            request.schema and list(_ordered(request.schema)),
            {name: list(values) for name, values in request.options.items()},
            sorted(request.settings.items()),
        ]
        digest.update(repr(parts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _first_sentence(error: Exception) -> str:
    """Return the first sentence of an error, with its kind unless it is one of ours."""
    text = one_line(str(error), 200)
    sentence = re.split(r"(?<=[.;!?]) ", text, maxsplit=1)[0].rstrip(".;")
    return sentence if isinstance(error, MesaLLMError) else f"{type(error).__name__}: {sentence}"


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


def is_accepted(model: type[LLMModel], setting: Setting) -> bool:
    """Check whether a model can be made in a setting.

    Args:
        model: The model.
        setting: The setting.
    """
    try:
        with _listened_to(model, setting):
            return True
    except ConfigError:
        return False


@contextmanager
def _listened_to(
    model: type[LLMModel], setting: Setting, *, is_llm: bool = False
) -> Generator[tuple[LLMModel, Listener]]:
    """Yield a model in a setting that decides at random, and what notes its requests."""
    design = AgentDesign.from_json({**setting.design, "llm": None})
    arguments = {**setting.parameters, **setting.options, "design": design}
    with (
        closing(ListeningAccess(is_llm=is_llm)) as access,
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
