"""What a program knows of a model, for its ODD document: agents, worlds, schedule, prompts, actions and measures."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import docstring_parser
from mesa.discrete_space import DiscreteSpace

from mesa_llm.canonical import member_value
from mesa_llm.engine.access import Access, OpenedModel
from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.llm.keys import Origin
from mesa_llm.llm.protocol import LLM, Capabilities
from mesa_llm.llm.scripted import RandomLLM
from mesa_llm.model.model import LLMModel
from mesa_llm.model.scenario import parameters_of
from mesa_llm.model.stages import USAGE
from mesa_llm.records import Reply, Request, ToolSpec
from mesa_llm.runlog.layout import columns
from mesa_llm.runlog.log import RunLog
from mesa_llm.text import clip, counted
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm.world import Receiver, unit_of

_DESCRIBED = frozenset(
    {
        "end_step",
        "next_stage",
        "observe",
        "receive",
        "results",
        "rule",
        "scenario_changed",
        "start_interval",
        "start_step",
        "story",
    }
)
"""Methods that are described under another heading, or describe a run."""

MAX_STEPS = 3
"""Maximum number of steps that are made until an agent sends a request."""

MAX_EXAMPLE = 6_000
"""Maximum number of characters of the example of a request."""

MAX_VALUE = 80
"""Maximum number of characters of a parameter's value."""

_OWN = ("mesa_llm.", "mesa.", "mesa_geo.")
"""Beginnings of the names of modules that are no model's."""

STAGE = (
    "In each stage all its agents observe the same state and decide concurrently, which only reads; then they act one "
    "after another in the order of the stage, and nothing else of theirs writes."
)
"""What a stage is, in every model."""

DECIDERS = (
    "Decisions are made by a language model, by the rule twin (a rule-based counterpart of the agent, `--llm rule`), "
    "at random (`--llm random`), or by a person; all pass the same check."
)
"""Who decides, in every model."""

STOCHASTICITY = (
    "All draws of the model and its activation come from generators that one seed sets (`rng`). Each request to a "
    "language model carries a seed made of the run's seed, the agent, the step, the purpose and a number; its reply is "
    "recorded, so that a recorded run is repeated bit for bit."
)
"""What holds for chance in every model."""


_NONE = inspect.Parameter.empty
"""Stands for a value that there is not."""


class _FirstRequest:
    """Replies at random, and keeps the first request for a decision."""

    name = "a language model"

    def __init__(self) -> None:
        self.request: Request | None = None

    async def reply(self, request: Request) -> Reply:
        """Draw a reply."""
        if self.request is None and request.salt.purpose == "decide":
            self.request = request
        reply = await RandomLLM().reply(request)
        return replace(reply, model=self.name)


class _Offline(Access):
    """Opens no connection: whatever language model is named, one transport replies."""

    def __init__(self, transport: LLM) -> None:
        super().__init__()
        self.transport = transport

    def open(self, llm: str | LLM, *, is_auxiliary: bool = False, origin: Origin = Origin.USER) -> OpenedModel:
        """Open the transport in place of any other but random choice."""
        if isinstance(llm, str) and llm.strip() == "random":
            return OpenedModel(Capabilities.of(RandomLLM()), RandomLLM(), True, 1)
        return OpenedModel(Capabilities.of(self.transport), self.transport, False, 64)

    def name_of(self, text: str, *, is_auxiliary: bool = False) -> str:
        """Return a model string as it is."""
        return text


def example_request(kind: type[LLMModel]) -> str:
    """Let a model with its defaults and seed 1 step until an agent asks a language model, which nobody is.

    Args:
        kind: Class of the model.

    Returns:
        The request, as text; empty without a request in the first steps.

    Raises:
        ConfigError: If a step breaks.
    """
    first = _FirstRequest()
    with closing(kind(rng=1, llm=first, access=_Offline(first))) as model:
        try:
            while first.request is None and model.running and model.time < MAX_STEPS:
                model.step()
        except MesaLLMError:
            raise
        except Exception as error:  # the model's own code
            fault = f"{type(error).__name__}: {error}"
            raise ConfigError(f"{kind.__name__} breaks in step {model.now} ({fault}); see mesa-llm check") from error
    return "" if first.request is None else _request_text(first.request)


def recorded_request(log: Path) -> str:
    """Return the first request for a decision that a run log holds, as text; empty if it holds none."""
    with closing(RunLog(log, "read")) as source:
        for row in source.rows("calls"):
            call = dict(zip(columns()["calls"], row, strict=True))
            if call["purpose"] == "decide":
                messages = [(one["role"], one["content"]) for one in json.loads(call["prompt"])]
                return "\n\n".join(f"[{role}]\n{content}" for role, content in messages)
    return ""


class OddFacts:
    """What is known of a model before its first step."""

    def __init__(self, model: LLMModel, folder: Path | None, request: str, values: Mapping[str, Any] | None) -> None:
        """Store what it is read from.

        Args:
            model: The model.
            folder: Folder of its code; None: it is in no file.
            request: A request of one of its agents, as text; empty: there is none.
            values: Parameters of the run that is described, by name; None: the defaults, with seed 1.
        """
        self.kind, self.model, self.folder, self.request = type(model), model, folder, request
        self.values = values
        self.run = "a run with defaults and seed 1" if values is None else "this run"
        self.minds: list[Any] = [found[0] for found in _by_class(llm_agents(model)).values()]

    def by_part(self) -> dict[str, str]:
        """Return the facts by the title of the part that they belong to, as Markdown."""
        return {
            "Purpose": _paragraph(self.kind),
            "Entities and state variables": "\n\n".join(self._entities()),
            "Scales": "\n".join(self._scales()),
            "Process overview and scheduling": "\n".join(self._schedule()),
            "Adaptation": "\n".join(self._twins()),
            "Learning": "\n".join(self._memories()),
            "Sensing": "\n\n".join(self._prompts()),
            "Interaction": "\n".join(self._interactions()),
            "Stochasticity": STOCHASTICITY,
            "Observation": self._measures(),
            "Initialization": self._parameters(),
            "Input data": "\n\n".join(self._files()),
            "Submodels": "\n\n".join(self._submodels()),
        }

    # -- entities

    def _entities(self) -> Iterator[str]:
        yield _entity("Model", self.kind, "")
        for kind, agents in _by_class(self.model.agents).items():
            decides = "decides" if getattr(agents[0], "is_minded", False) else "follows fixed rules"
            yield _entity("Agent", kind, f"{len(agents)} at the start; {decides}")
        for world in self.model.worlds:
            yield _entity("World", type(world), f"called `{world.name}`")

    def _scales(self) -> Iterator[str]:
        for world in self.model.worlds:
            if (unit := unit_of(world)) != "step":
                yield f"- World `{world.name}`: one of its steps is a {unit}."
        for name, space in vars(self.model).items():
            if isinstance(space, DiscreteSpace):
                torus = ", a torus" if getattr(space, "torus", False) else ""
                cells = counted(len(list(space.all_cells)), "cell")
                yield f"- Space `{name}`: {type(space).__name__} of {cells}{torus}."

    # -- processes

    def _schedule(self) -> Iterator[str]:
        yield from ("A step of the program, in order:", "")
        yield from (f"{index}. {text}" for index, text in enumerate(self._processes(), 1))

    def _processes(self) -> Iterator[str]:
        yield from self._hook("start_interval", "before the events of the step")
        yield "Messages of the step before and news of other worlds arrive."
        yield from self._hook("start_step", "before anybody acts")
        activation = self.model.activation
        yield f"The activation `{_name_of(activation)}` chooses who acts. {_paragraph(activation)}".rstrip()
        yield STAGE
        if self.model.messages_arrive == "next_stage":
            yield "Messages are read in the next stage of the same step."
        yield from self._hook("next_stage", "after the last stage, for further ones")
        yield "Agents that summarise or reflect on their memories do so."
        yield from self._hook("end_step", "after all have acted")
        for world in self.model.worlds:
            yield f"World `{world.name}` ends its step. {_paragraph(type(world).end_step)}".rstrip()
        if self.model.datacollector is not None:
            yield "Measures are collected."

    def _hook(self, name: str, when: str) -> Iterator[str]:
        """Describe what the model does in a hook, if it defines it."""
        method = getattr(self.kind, name)
        if not method.__module__.startswith(_OWN):
            yield f"`{name}`, {when}. {_paragraph(method)}".rstrip()

    def _twins(self) -> Iterator[str]:
        yield from (DECIDERS, "")
        for agent in self.minds:
            rule = type(agent).rule
            text = "none." if rule.__module__.startswith(_OWN) else _paragraph(rule) or "no description."
            yield f"- Rule twin of `{type(agent).__name__}`: {text}"

    def _memories(self) -> Iterator[str]:
        for agent in self.minds:
            memory = agent.memory
            settings = ", ".join(f"{name}={getattr(memory, name)}" for name in getattr(memory, "settings", ()))
            what = f"{type(memory).__name__}({settings}). {_paragraph(type(memory))}"
            yield f"- Memory of `{type(agent).__name__}`: {what}"

    def _interactions(self) -> Iterator[str]:
        for world in self.model.worlds:
            yield f"- All agents of world `{world.name}` act on the same state of it."
        where = "stage" if self.model.messages_arrive == "next_stage" else "step"
        yield f"- Messages between agents, if any, are read in the next {where}."

    def _submodels(self) -> Iterator[str]:
        specs = {spec.name: spec for agent in self.minds for spec in _specs_of(agent)}
        if specs:
            rows = [
                (
                    f"`{spec.name}`",
                    "action" if spec.is_action else "tool",
                    _argument_text(spec),
                    spec.description.partition("\n\n")[0],
                )
                for spec in specs.values()
            ]
            yield "Actions write, tools read. The text is what a language model is told of them.\n\n" + table(
                ("name", "kind", "arguments", "text"), rows
            )
        methods = [
            (f"`{world.name}.receive`", _paragraph(type(world).receive))
            for world in self.model.worlds
            if isinstance(world, Receiver)
        ]
        if methods:
            yield "Typed answers go to the world that asked:\n\n" + table(("method", "what it does"), methods)
        kinds = dict.fromkeys([self.kind, *_by_class(self.model.agents), *map(type, self.model.worlds)])
        if procedures := [row for kind in kinds for row in _procedures(kind, specs)]:
            yield "Procedures of the program:\n\n" + table(("procedure", "what it does"), procedures)

    # -- prompts

    def _prompts(self) -> Iterator[str]:
        if text := self.model.instructions_text:
            yield f"All agents read these instructions first:\n\n{fenced(text)}"
        if not self.request:
            yield f"No agent asks a language model in {self.run}."
            return
        yield f"The first request of {self.run}, as a language model reads it:\n\n" + fenced(
            clip(self.request, MAX_EXAMPLE)
        )

    # -- values

    def _measures(self) -> str:
        collector: Any = self.model.datacollector
        if collector is None:
            return "Nothing is collected; `results()` returns the scores of a run."
        rows = [
            (f"`{name}`", "model", _meaning(self.kind, name, reporter))
            for name, reporter in collector.model_reporters.items()
            if name not in USAGE
        ]
        kinds = list(_by_class(self.model.agents))
        rows += [
            (f"`{name}`", "each agent", next(filter(None, (_meaning(kind, name, reporter) for kind in kinds)), ""))
            for name, reporter in collector.agent_reporters.items()
        ]
        known = table(("measure", "of", "meaning"), rows)
        return f"Collected after each step, besides calls, tokens, dollars, failures and seconds:\n\n{known}"

    def _parameters(self) -> str:
        values = self.values or {}
        rows = [
            (
                f"`{one.name}`",
                _value_text(one.default),
                _value_text(values.get(one.name, _NONE)),
                one.range,
                one.meaning,
            )
            for one in parameters_of(self.kind)
        ]
        if not rows:
            return ""
        head = ("name", "default", "this run", "range", "meaning")
        shown = [index for index in range(len(head)) if index != 2 or values]
        return "Parameters:\n\n" + table(
            [head[index] for index in shown], [[row[index] for index in shown] for row in rows]
        )

    def _files(self) -> Iterator[str]:
        if self.folder is None or not (self.folder / "model.py").exists():  # else `data` may be anybody's
            return
        data = self.folder / "data"
        rows = [
            (
                f"`data/{path.relative_to(data).as_posix()}`",
                str(path.stat().st_size),
                hashlib.sha256(path.read_bytes()).hexdigest()[:16],
            )
            for path in sorted(data.rglob("*"))
            if path.is_file() and path.name != "SOURCE.md"
        ]
        if rows:
            yield "Files that come with the model:\n\n" + table(("file", "bytes", "SHA-256 begins"), rows)
        if (source := data / "SOURCE.md").is_file():
            yield re.sub(r"^(#+) ", r"####\1 ", source.read_text(encoding="utf-8").strip(), flags=re.MULTILINE)


# -- Markdown


def fenced(text: str) -> str:
    """Return a text as a block of code that the text cannot close."""
    longest = max(map(len, re.findall(r"~{3,}", text)), default=2)
    fence = "~" * max(4, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_in_cell(cell) for cell in line) + " |" for line in lines)


def _in_cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def _entity(what: str, kind: type[Any], note: str) -> str:
    """Describe a class: what it is, and what its state consists of."""
    text = f"**{what} `{kind.__name__}`**{f' ({note})' if note else ''}. {_paragraph(kind)}".rstrip()
    rows = [(f"`{name}`", meaning) for name, meaning in _attributes(kind).items()]
    return f"{text}\n\n{table(('variable', 'meaning'), rows)}" if rows else text


def _attributes(kind: type[Any]) -> dict[str, str]:
    """Return what the docstrings of a class and of those it inherits from say of attributes."""
    found: dict[str, str] = {}
    for cls in reversed(kind.__mro__):
        if cls is kind or not cls.__module__.startswith(_OWN):
            parsed = docstring_parser.parse(inspect.cleandoc(vars(cls).get("__doc__") or ""))
            for one in parsed.params:
                if one.args[:1] == ["attribute"]:
                    found[one.arg_name] = " ".join((one.description or "").split())
    return found


def _request_text(request: Request) -> str:
    parts = [f"[{message.role}]\n{message.content}" for message in request.messages]
    actions = [spec.name for spec in request.tools if spec.is_action]
    tools = [spec.name for spec in request.tools if not spec.is_action]
    parts += [f"[actions offered] {', '.join(actions)}"] * bool(actions) + [
        f"[tools offered] {', '.join(tools)}"
    ] * bool(tools)
    if request.schema is not None:
        fields: Mapping[str, Any] = request.schema.get("properties", {})
        parts.append(f"[answer asked for] {', '.join(fields) if fields else request.schema.get('type', 'JSON')}")
    return "\n\n".join(parts)


def _specs_of(agent: Any) -> Sequence[ToolSpec]:
    return ToolBox.of(agent, agent.unique_id, agent.worlds, agent.tools).specs


def _argument_text(spec: ToolSpec) -> str:
    fields: Mapping[str, Mapping[str, Any]] = spec.parameters.get("properties", {})
    return "; ".join(
        f"`{name}`: {field['description']}" if field.get("description") else f"`{name}`"
        for name, field in fields.items()
    )


def _value_text(value: Any) -> str:
    return "" if value is _NONE else f"`{clip(str(member_value(value)), MAX_VALUE)}`"


# -- docstrings


def _paragraph(target: Any) -> str:
    """Return the first paragraph of a docstring, on one line; of an object without one, that of its class."""
    target = target if isinstance(target, type) or (callable(target) and hasattr(target, "__name__")) else type(target)
    return " ".join((inspect.getdoc(target) or "").partition("\n\n")[0].split())


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _meaning(kind: type[Any], name: str, reporter: Any) -> str:
    """Return what a reporter of a data collector returns, as far as a docstring says it.

    Args:
        kind: Class of the model, or of an agent.
        name: Name of the measure, by which Mesa hides which attribute of an agent it is.
        reporter: The reporter.
    """
    attribute = reporter if isinstance(reporter, str) else name
    found = inspect.getattr_static(kind, attribute, None)
    if isinstance(found, property):
        return _paragraph(found.fget)
    return _paragraph(found) if inspect.isfunction(found) else _attributes(kind).get(attribute, "")


def _procedures(kind: type[Any], known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the public methods of a class, and of those of a model that it inherits from, with what they do.

    Args:
        kind: The class.
        known: Names of actions and tools, which are described elsewhere.
    """
    found: dict[str, Any] = {}
    for cls in kind.__mro__:
        if not cls.__module__.startswith(_OWN) and cls is not object:
            found = {**vars(cls), **found}
    for name, method in found.items():
        is_known = name.startswith("_") or name in {*known, *_DESCRIBED}
        if inspect.isfunction(method) and not is_known and (text := _paragraph(method)):
            yield f"`{kind.__name__}.{name}`", text


def _by_class(agents: Iterable[Any]) -> dict[type[Any], list[Any]]:
    """Sort agents by class, in the order in which the classes occur."""
    found: dict[type[Any], list[Any]] = {}
    for agent in agents:
        found.setdefault(type(agent), []).append(agent)
    return found
