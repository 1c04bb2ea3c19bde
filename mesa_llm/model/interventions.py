"""Interventions: news, posts and changes from outside a run, applied between steps and recorded in its log."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, TypeAdapter, ValidationError

from mesa_llm.agents.design import AgentDesign
from mesa_llm.canonical import canonical_json
from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.llm.address import written_name
from mesa_llm.llm.protocol import Capabilities
from mesa_llm.model.scenario import LLMScenario
from mesa_llm.records import Event, ToolCall
from mesa_llm.text import clip, one_line, quoted
from mesa_llm.tools.tool import describe
from mesa_llm.world import Changeable, Publisher

SOURCE = "outside"
"""Source of the events that report interventions."""

EVERYONE = "all"
"""Value of `News.to` for all agents."""

NEWSROOM = "Newsroom"
"""Default account for posts."""

INTERVENTIONS = "interventions"
"""Manifest key of the interventions."""

OWN = "model"
"""Who made an intervention, in its recorded row, if the model itself did."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=5000)]

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]
"""Text of news, short enough to be shown whole in a digest."""


class _Intervention(BaseModel, frozen=True, extra="forbid"):
    """An intervention in a run from outside."""

    def __init__(self, **fields: Any) -> None:
        """Check the fields.

        Raises:
            ConfigError: If one is missing, unknown or invalid.
        """
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise ConfigError(f"{type(self).__name__}: {describe(error)}") from None

    @property
    def document(self) -> dict[str, Any]:
        """The intervention as JSON values, as stored in the run log."""
        return self.model_dump(mode="json")


class News(_Intervention, frozen=True):
    """News that agents read in their next observations, in any world."""

    kind: Literal["news"] = "news"
    """What it is."""

    text: Line
    """Text of the news."""

    to: str | tuple[int | str, ...] = EVERYONE
    """Readers: `all`, the name of a world (all agents that observe it), or ids and names of agents."""

    steps: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Number of steps in which it can be read."""


class Post(_Intervention, frozen=True):
    """A post in a world that supports posts; the world decides who sees it."""

    kind: Literal["post"] = "post"
    """What it is."""

    text: Text
    """Text of the post."""

    author: Annotated[str | int, Field(union_mode="left_to_right")] = NEWSROOM
    """Account that publishes it, by name or number; an unknown name creates a new account."""

    world: str = ""
    """Name of the world; empty: the first that supports posts."""


class Change(_Intervention, frozen=True):
    """A new value for a changeable variable of a world or of the model's scenario."""

    kind: Literal["change"] = "change"
    """What it is."""

    variable: Annotated[str, Field(min_length=1)]
    """Name of the variable."""

    value: Any
    """The new value, as a JSON value."""

    world: str = ""
    """Name of the world; empty: the scenario, or the first world that has such a variable."""


class Minds(_Intervention, frozen=True, arbitrary_types_allowed=True):
    """A change of language model or design for all agents, from the next step on."""

    kind: Literal["minds"] = "minds"
    """What it is."""

    llm: Any = None
    """New language model: a model string or a transport; None: unchanged."""

    design: AgentDesign | None = None
    """Design to apply on top of the present one; None: unchanged."""

    @property
    def document(self) -> dict[str, Any]:
        """The intervention as JSON values: language models by their names."""
        name = written_name(self.llm) if isinstance(self.llm, str) else Capabilities.of(self.llm).name
        design = None if self.design is None else self.design.to_json()
        return {"kind": self.kind, "llm": None if self.llm is None else name, "design": design}


class ManualAction(_Intervention, frozen=True):
    """An action that somebody outside lets an agent carry out, in place of its own decision or beside it."""

    kind: Literal["action"] = "action"
    """What it is."""

    agent: Annotated[int | str, Field(union_mode="left_to_right")] = ""
    """The agent that acts, by number or name; empty where it is named beside the action, as in OASIS's `step`."""

    action: Annotated[str, Field(min_length=1, max_length=100)]
    """Name of the action."""

    arguments: dict[str, Any] = {}
    """Its arguments by name, as JSON values."""


Intervention = News | Post | Change | Minds | ManualAction
"""Any intervention."""

_WRITTEN: TypeAdapter[Intervention] = TypeAdapter(Annotated[Intervention, Field(discriminator="kind")])


def intervention_from(value: Any) -> Intervention:
    """Parse an intervention as written by a user or stored in a log.

    Args:
        value: An intervention; its JSON values, with `kind`; or a text, which is news for everyone.

    Raises:
        ConfigError: If it is not an intervention.
    """
    if isinstance(value, News | Post | Change | Minds | ManualAction):
        return value
    if isinstance(value, str):
        value = {"kind": "news", "text": value}
    if isinstance(value, Mapping) and value.get("kind") == "minds" and isinstance(value.get("design"), Mapping):
        value = {**value, "design": AgentDesign.from_json(value["design"])}
    try:
        return _WRITTEN.validate_python(value)
    except ValidationError as error:
        wanted = "a text, or an object with the kind news, post, change, minds or action and its fields"
        reason = f"{clip(str(value), 80)!r} is not an intervention: {describe(error)}; wanted {wanted}"
        raise ConfigError(reason) from None


@dataclass(frozen=True, slots=True)
class InterventionRecord:
    """An intervention that was made."""

    step: int
    """First step that it affects."""

    intervention: Intervention
    """The intervention."""

    refusal: str = ""
    """Why the world refused it; empty if it did not."""

    @property
    def text(self) -> str:
        """Description of the intervention and its refusal, if any."""
        return f"{description(self.intervention)}{self.refusal and f'; refused: {self.refusal}'}"


class Interventions:
    """The interventions of one run; recorded ones are repeated in their steps.

    Those that the model itself makes (in its hooks, or in an event that it schedules) are recorded as its own, and wait
    in a replay until the model makes them again.

    Attributes:
        log: The interventions so far, in order.
    """

    def __init__(self, model: Any) -> None:
        """Read the recorded interventions of a model.

        Args:
            model: The model; its log must already hold the identity of the run.
        """
        self._model_ref = weakref.ref(model)
        self._lock = threading.RLock()
        self._queue: list[tuple[Intervention, bool]] = []  # made during a step, and whether by the model itself
        self.log: list[InterventionRecord] = []
        rows = model.runlog.manifest.get(INTERVENTIONS, [])
        self._recorded: list[dict[str, Any]] = rows if isinstance(rows, list) else []
        self._ahead = list(self._recorded)  # rows that have not been applied yet
        self._of_anybody = [row for row in self._recorded if not _is_own(row)]  # in earlier logs, also the model's own
        self._repeated: list[dict[str, Any]] = []  # rows of anybody that have been repeated in this step

    @property
    def _model(self) -> Any:
        model = self._model_ref()
        if model is None:
            raise ConfigError("the model of these interventions is gone")
        return model

    def add(self, value: Any) -> int:
        """Intervene before the next step; if a step is in progress, before the following one.

        Args:
            value: See `intervention_from`.

        Returns:
            First step that it affects.

        Raises:
            ConfigError: If it is not an intervention, the model has nothing for it to act on, the run is over, or the
                log holds another run.
        """
        model = self._model
        intervention = _with_world(model, intervention_from(value))
        if not model.running:
            raise ConfigError("the run is over; to intervene, branch it at an earlier step")
        check(model, intervention)
        with self._lock:
            is_own: bool = model.is_advancing_here
            if not model.is_between_steps:
                self._queue.append((intervention, is_own))
                return model.now + 1
            self._make(intervention, is_own=is_own)
            return model.now

    def schedule(self, step: int, value: Any) -> None:
        """Intervene before a future step; an intervention already recorded for it is not repeated.

        Args:
            step: The step, from 1.
            value: See `intervention_from`.

        Raises:
            ConfigError: If it is not an intervention, the model has nothing for it to act on, or the step is over, in
                this run or in its log.
        """
        model = self._model
        intervention = _with_world(model, intervention_from(value))
        check(model, intervention)
        if any(row["step"] == step and _is_same(row, intervention) and not _is_own(row) for row in self._recorded):
            return
        if step < model.now or model.runlog.mode == "replay" or model.runlog.holds_step(step):
            raise ConfigError(
                f"step {step} is over without this intervention ({description(intervention)}). Branch the run at that "
                "step (mesa-llm branch, mesa_llm.branch), or intervene after its last step"
            )
        row = {"step": step, "intervention": intervention.document}
        for rows in (self._recorded, self._ahead):
            rows.append(row)
            rows.sort(key=lambda row: row["step"])
        model.runlog.note(INTERVENTIONS, self._recorded)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All interventions as stored in the run log, including those of future steps."""
        return list(self._recorded)

    def start_interval(self) -> None:
        """Apply those recorded for this step, and those queued during the last one, in the recorded order."""
        with self._lock:
            now = self._model.now
            self._repeated = [row for row in self._repeated if row["step"] == now]
            for row in self._due(now):
                if not _is_own(row):
                    self._repeat(row)
                elif match := next((one for one in self._queue if one[1] and _is_same(row, one[0])), None):
                    self._queue.remove(match)
                    self._repeat(row)
            queue, self._queue = self._queue, []
            for intervention, is_own in queue:
                self._make(intervention, is_own=is_own, is_late=True)

    def start_step(self) -> None:
        """Apply those made since `start_interval`, and any of the model's own that it has not made again.

        Those were made by an event that a script had scheduled, which a replay knows nothing of.
        """
        with self._lock:
            self.start_interval()
            for row in self._due(self._model.now):
                self._repeat(row)

    def _due(self, step: int) -> list[dict[str, Any]]:
        """Return the recorded interventions of a step that have not been applied yet."""
        return [row for row in self._ahead if row["step"] == step]

    def _repeat(self, row: dict[str, Any]) -> None:
        """Apply a recorded intervention."""
        self._ahead.remove(row)
        if row in self._of_anybody:
            self._repeated.append(row)
        self._apply(intervention_from(row["intervention"]), str(row.get("refusal", "")))

    def _make(self, intervention: Intervention, *, is_own: bool, is_late: bool = False) -> None:
        """Apply an intervention, and record it if it is new.

        Args:
            intervention: The intervention.
            is_own: Whether the model itself makes it.
            is_late: Whether to record a refusal because the caller can no longer handle it; else raise an error.

        Raises:
            ConfigError: If the log holds this step without it.
        """
        model, now = self._model, self._model.now
        due = [row for row in self._due(now) if is_own or not _is_own(row)]
        row = self._recorded_row(intervention, due, is_own=is_own)
        if row in self._repeated:
            self._repeated.remove(row)
            return
        if row is not None:
            self._ahead.remove(row)
            self._apply(intervention, str(row.get("refusal", "")), is_late=is_late)
            return
        if (due and not is_own) or model.runlog.mode == "replay" or model.runlog.holds_step(now):
            other = description(intervention_from(due[0]["intervention"])) if due else "nothing of that kind"
            raise ConfigError(
                f"the run log holds step {now} with another intervention ({other}; now: {description(intervention)}). "
                "Branch the run at that step (mesa-llm branch, mesa_llm.branch), or intervene after its last step"
            )
        refusal = self._apply(intervention, "", is_late=is_late)
        new: dict[str, Any] = {"step": now, "intervention": intervention.document}
        self._recorded.append(new | ({"refusal": refusal} if refusal else {}) | ({"by": OWN} if is_own else {}))
        model.runlog.note(INTERVENTIONS, self._recorded)

    def _recorded_row(
        self, intervention: Intervention, due: list[dict[str, Any]], *, is_own: bool
    ) -> dict[str, Any] | None:
        """Return the row of an intervention among those due: the next one, but any for the model's own."""
        rows = due[:1]
        if is_own:
            unmarked = [row for row in due if row in self._of_anybody]
            rows = [*filter(_is_own, due), *self._repeated, *unmarked]
        return next((row for row in rows if _is_same(row, intervention)), None)

    def _apply(self, intervention: Intervention, refusal: str, *, is_late: bool = False) -> str:
        """Apply an intervention that has not been refused, and return why a world refuses it, if one does.

        Raises:
            ConfigError: If a world refuses it, and the caller can still handle that.
        """
        model, now = self._model, self._model.now
        if not refusal:
            try:
                apply(model, intervention)
            except ToolError as error:
                if not is_late:
                    raise ConfigError(f"{description(intervention)}: refused: {error}") from None
                refusal = str(error)
        record = InterventionRecord(now, intervention, refusal)
        self.log.append(record)
        facts = {**intervention.document, **({"refusal": refusal} if refusal else {})}
        model.runlog.add(Event(SOURCE, intervention.kind, facts, record.text, now), now)
        return refusal


def _is_own(row: Mapping[str, Any]) -> bool:
    """Check whether the model itself made a recorded intervention."""
    return row.get("by") == OWN


def _is_same(row: Mapping[str, Any], intervention: Intervention) -> bool:
    return canonical_json(row["intervention"]) == canonical_json(intervention.document)


# -- effects


def description(intervention: Intervention) -> str:
    """Describe an intervention on one line."""
    match intervention:
        case News(text=text, to=to):
            readers = "everyone" if to == EVERYONE else to if isinstance(to, str) else ", ".join(map(str, to))
            return f"news for {readers}: {one_line(text)}"
        case Post(text=text, author=author):
            return f"post by {one_line(str(author), 80)}: {quoted(text)}"
        case Change(variable=variable, value=value):
            return f"{variable} = {one_line(canonical_json(value), 200)}"
        case ManualAction(agent=who, action=name, arguments=arguments):
            return one_line(f"{who} acts by hand: {ToolCall(name, arguments)}", 300)
        case Minds():
            names = {name: value for name, value in intervention.document.items() if value and name != "kind"}
            return f"agents think with {one_line(canonical_json(names), 200)}"


def publishers(model: Any) -> list[str]:
    """Return the names of the worlds that support posts."""
    return [world.name for world in model.worlds if isinstance(world, Publisher)]


def variables(model: Any) -> dict[tuple[str, str], Any]:
    """Return the changeable variables: (world, name) → present value.

    The scenario's variables come first, under the world `""`.
    """
    own = {("", name): getattr(model.scenario, name) for name in model.changeable}
    for world in model.worlds:
        if isinstance(world, Changeable):
            own |= {(world.name, name): value for name, value in world.changeable().items()}
    return own


def meaning_of(model: Any, world: str, variable: str) -> str:
    """Return the meaning and range of a changeable variable, as declared by its scenario or world.

    Args:
        model: The model.
        world: Name of the world; empty: the model's scenario.
        variable: Name of the variable.
    """
    if world:
        owner = next(one for one in model.worlds if one.name == world)
        meanings: Mapping[str, str] = getattr(owner, "meanings", {})
        return meanings.get(variable, "")
    parameter = next(one for one in type(model.scenario).parameters() if one.name == variable)
    return " ".join(filter(None, (parameter.meaning, f"({parameter.range})" if parameter.range else "")))


def check(model: Any, intervention: Intervention) -> None:
    """Check that a model has something for an intervention to act on.

    Raises:
        ConfigError: If it does not. The message lists the alternatives.
    """
    match intervention:
        case News():
            readers_of(model, intervention)
        case Post(world=world):
            names = publishers(model)
            if not names or world not in ("", *names):
                there_are = ", ".join(names) or "none"
                raise ConfigError(f"no world {world or 'of this model'} supports posts; those that do: {there_are}")
        case Change():
            owner_of(model, intervention)
        case ManualAction():
            agent_of(model, intervention)
        case Minds(llm=llm, design=design):
            if llm is None and design is None:
                raise ConfigError("minds: give an llm, a design, or both")


def readers_of(model: Any, news: News) -> tuple[frozenset[int] | None, str]:
    """Return the readers of news: agents (None: all), and the world that they observe (empty: any).

    Raises:
        ConfigError: If it names an agent or a world that does not exist.
    """
    if isinstance(news.to, str):
        names = [world.name for world in model.worlds]
        if news.to != EVERYONE and news.to not in names:
            raise ConfigError(
                f"news to {news.to!r}: wanted {EVERYONE}, a world ({', '.join(names) or 'none'}), or agents"
            )
        return None, "" if news.to == EVERYONE else news.to
    by_name: dict[str, int] = {}
    for agent in llm_agents(model):
        by_name |= {str(agent.unique_id): agent.unique_id, agent.config.name or str(agent.unique_id): agent.unique_id}
    if unknown := [reader for reader in news.to if str(reader) not in by_name]:
        raise ConfigError(f"news to {unknown[0]!r}: there is no such agent")
    return frozenset(by_name[str(reader)] for reader in news.to), ""


def agent_of(model: Any, manual: ManualAction) -> Any:
    """Return the agent that a manual action is for.

    Raises:
        ConfigError: If there is none, or several share the name.
    """
    who = str(manual.agent)
    agents = [agent for agent in llm_agents(model) if who in (str(agent.unique_id), agent.config.name)]
    if len(agents) != 1:
        found = "there is no such agent" if not agents else "several agents have that name; give the number"
        raise ConfigError(f"a manual action of {who!r}: {found}")
    return agents[0]


def _with_world(model: Any, intervention: Intervention) -> Intervention:
    """Return an intervention whose variable is named with its world, as errors list it, with the two apart."""
    match intervention:
        case Change(variable=variable, world=""):
            named = {f"{world}.{name}": (world, name) for world, name in variables(model) if world}
            world, name = named.get(variable, ("", variable))
            return intervention.model_copy(update={"world": world, "variable": name})
        case _:
            return intervention


def owner_of(model: Any, change: Change) -> Changeable | None:
    """Return the world that a change applies to; None: the model's scenario.

    Raises:
        ConfigError: If there is no such variable.
    """
    owners = [world for (world, name) in variables(model) if name == change.variable and change.world in ("", world)]
    worlds = {world.name: world for world in model.worlds if isinstance(world, Changeable)}
    if not owners and change.world in worlds:  # a world may accept new names
        return worlds[change.world]
    if not owners:
        there_are = ", ".join(f"{world}.{name}" if world else name for world, name in variables(model)) or "none"
        raise ConfigError(
            f"{change.variable!r} cannot be changed during a run of {type(model).__name__}; what can be: {there_are}"
        )
    return worlds[owners[0]] if owners[0] else None


def apply(model: Any, intervention: Intervention) -> None:
    """Carry out an intervention.

    Raises:
        ToolError: If a world refuses it.
        ConfigError: If the model has nothing for it to act on.
    """
    match intervention:
        case News(text=text, steps=steps):
            agents, world = readers_of(model, intervention)
            event = Event(SOURCE, "news", {"text": text}, text, model.now)
            model.bridge.announce(event, model.now, agents=agents, world=world, steps=steps)
        case Post(text=text, author=author, world=name):
            worlds = [world for world in model.worlds if isinstance(world, Publisher) and name in ("", world.name)]
            worlds[0].publish(str(author), text)
        case Change(variable=variable, value=value):
            owner = owner_of(model, intervention)
            if owner is None:
                _change_scenario(model, variable, value)
            else:
                owner.change(variable, value)
        case ManualAction(action=name, arguments=arguments):
            model.act_by_hand(agent_of(model, intervention), ToolCall(name, arguments))
        case Minds(llm=llm, design=design):
            model.change_minds(llm, design)


def _change_scenario(model: Any, name: str, value: Any) -> None:
    """Replace the scenario of a model by a copy with one value changed."""
    scenario: LLMScenario = model.scenario
    fields = {field: getattr(scenario, field) for field in type(scenario).fields}
    try:
        model.scenario = type(scenario)(rng=getattr(scenario, "rng", None), **{**fields, name: value})
        model.scenario_changed()
    except ConfigError as error:
        raise ToolError(str(error)) from None
