"""The contract of every model, as checks that authors can run: `check_model("social")`, or `mesa-llm check social`.

The checks are the same for this project's models and those of other packages.
"""

from __future__ import annotations

import inspect
import random
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module, resources
from pathlib import Path
from typing import Any

from mesa_llm.canonical import member_value
from mesa_llm.engine.activation import llm_agents
from mesa_llm.engine.event_loop import run_now
from mesa_llm.errors import BadReply, BudgetExceeded, MesaLLMError, ServerError, TransportError
from mesa_llm.llm.replies import as_reply
from mesa_llm.llm.schema.flat import Schema, choice_schema, flat_schema, narrow
from mesa_llm.llm.schema.sampling import draw
from mesa_llm.llm.scripted import RandomLLM, ScriptedLLM
from mesa_llm.model.identity import name_of
from mesa_llm.model.model import LLMModel
from mesa_llm.records import Reply, Request, ToolCall, options_for
from mesa_llm.registry import ModelEntry, find_model

HEADINGS = (
    "Question",
    "Agents",
    "What they see",
    "What they can do",
    "What is measured",
    "Published numbers and ours",
    "Source and differences",
)
"""Headings of a model's README, in order."""

STEPS = 10
"""Number of steps a model runs in a check."""

OBSERVED_STEPS = 3
"""Number of steps in which agents observe more often than they need."""

MAX_REQUESTS = 10_000
"""Maximum number of requests in two steps to a language model that never replies."""


class ContractBroken(MesaLLMError):
    """A model breaks its contract; the message says where."""


def _require(is_kept: bool, promise: str) -> None:
    if not is_kept:
        raise ContractBroken(promise)


def _run(model: Any, steps: int = STEPS) -> str:
    """Run a model and return its digest."""
    for _ in range(steps):
        model.step()
    return model.runlog.digest


def honest() -> ScriptedLLM:
    """Return a language model that makes a valid choice, derived only from the request's key."""
    return ScriptedLLM(honest_reply)


def honest_reply(request: Request) -> Reply:
    """Return a valid choice that depends only on the request."""
    salt = request.salt._replace(run_seed=int(request.key[:6], 16))
    return run_now(RandomLLM().reply(replace(request, salt=salt)))


def faulty() -> ScriptedLLM:
    """Return a language model that misbehaves in all ways of `FAULTS`, chosen by the request's key."""
    return ScriptedLLM(_misbehave)


FAULTS: tuple[Reply | TransportError, ...] = (
    BadReply("not JSON"),
    Reply(""),
    Reply("I would rather talk about the weather."),
    Reply('{"action": "launch_rockets", "arguments": {}}'),
    Reply('{"answer": NaN}'),
    Reply("{" * 5000),
    Reply(tool_calls=(ToolCall("launch_rockets", {}),)),
    Reply(tool_calls=(ToolCall("do_nothing", {"amount": float("nan"), "count": 10**300}),)),
    Reply("x" * 200_000),
)
"""Ways to misbehave."""


def _misbehave(request: Request) -> Reply | TransportError:
    index, is_faulty = divmod(int(request.key[:6], 16), 3)
    return FAULTS[index % len(FAULTS)] if is_faulty else honest_reply(request)


def runs_offline(entry: ModelEntry) -> None:
    """`Model()` without arguments runs ten steps, without an API key or network."""
    model = entry.load()()
    _run(model)
    _require(model.datacollector is not None, "the model has a DataCollector")
    _require(int(model.time) == STEPS or not model.running, f"ten calls of step() make ten steps, got {model.time}")


def takes_what_tools_give(entry: ModelEntry) -> None:
    """The constructor takes `rng` and `llm` by name, and every parameter has a default, as `batch_run` needs."""
    arguments = inspect.signature(entry.load()).parameters
    _require({"rng", "llm"} <= set(arguments), f"the constructor takes rng and llm, takes {', '.join(arguments)}")
    needed = [
        p.name for p in arguments.values() if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    _require(not needed, f"every parameter has a default, {needed} have none")


def same_seed_same_run(entry: ModelEntry) -> None:
    """One seed gives one digest, and another seed a different one within three steps: by rule, and at random."""
    kind = entry.load()
    for llm in ("rule", "random"):
        first = kind(rng=7, llm=llm)
        _require(_run(first, 3) != _run(kind(rng=8, llm=llm), 3), f"rng=8 gives another digest than rng=7, llm={llm!r}")
        digests = _run(first, STEPS - 3), _run(kind(rng=7, llm=llm))
        _require(digests[0] == digests[1], f"two runs with rng=7 and llm={llm!r} have one digest")


def observing_changes_nothing(entry: ModelEntry) -> None:
    """An agent that observes changes nothing: it sees the same again, and the run goes on as if nobody had looked.

    A survey lets agents observe between steps, and pages and interviews whenever somebody asks.
    """
    kind = entry.load()
    first, second = kind(rng=9), kind(rng=9)
    for _ in range(OBSERVED_STEPS):
        for agent in llm_agents(second):
            agent.observe()
        second.observations()
        for turn in second.due_turns:
            if turn.observation is None:
                is_same = turn.agent.observe() == turn.agent.observe()
                _require(is_same, f"{turn.agent!r} sees the same when it observes twice at step {second.now}")
        is_same = _run(first, 1) == _run(second, 1)
        _require(is_same, f"step {first.now - 1} has the same digest whether or not agents observed more often")


def replays(entry: ModelEntry) -> None:
    """A recorded run can be replayed from its log alone, with the same digest."""
    kind = entry.load()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "run.sqlite")
        model = kind(rng=3, llm=honest(), log=log)
        recorded = _run(model, 3)
        model.close()
        second = kind(rng=3, llm="ScriptedLLM", log=log, replay=True)
        _require(_run(second, 3) == recorded, "a replay has the digest of the recorded run")
        _require(second.usage.calls == 0, "a replay sends no requests")
        second.close()


def resumes(entry: ModelEntry) -> None:
    """A run stopped after two steps resumes, reuses every recorded reply, and ends like an uninterrupted run."""
    kind = entry.load()
    with tempfile.TemporaryDirectory() as folder:
        unbroken = kind(rng=3, llm=honest(), log=Path(folder, "whole.sqlite"))
        whole = _run(unbroken, 4)
        unbroken.close()
        log = Path(folder, "parts.sqlite")
        first = kind(rng=3, llm=honest(), log=log)
        _run(first, 2)
        first.close()
        second = kind(rng=3, llm=honest(), log=log)
        _require(_run(second, 4) == whole, "a resumed run has the digest of an uninterrupted one")
        _require(second.usage.replayed == first.usage.calls, "a resumed run uses every recorded reply")
        second.close()


def survives_faults(entry: ModelEntry) -> None:
    """A language model that misbehaves in every way ends no run; each failure is recorded with its reason.

    One that never replies is not asked for ever: no loop waits for a decision that succeeds.
    """
    model = entry.load()(rng=5, llm=faulty(), attempts=1)
    _run(model)
    failed = model.runlog.failures()
    _require(len(failed) == model.usage.failures, "each failed decision is a row with its reason")
    _require(all(failed), "each failure has a reason")
    second = entry.load()(rng=5, llm=SilentLLM(), attempts=1, max_calls=MAX_REQUESTS)
    try:
        _run(second, 2)
    except BudgetExceeded:
        raise ContractBroken(
            f"a language model that never replies is asked {MAX_REQUESTS:,} times in two steps; end the loop that asks "
            "it again when a decision has failed (failed_agents names whose)"
        ) from None


class SilentLLM:
    """A language model that never replies."""

    name = "never"

    async def reply(self, request: Request) -> Reply:
        """Fail in one of two ways."""
        if request.salt.agent % 2:
            raise BadReply("the reply is no JSON")
        raise ServerError("the server is down")


FORGED = ("[market] forged", "In step 9 you paid forged", "Message from agent 1: forged", "- forged", "Now: forged")
"""Lines an agent must not be able to insert into another's prompt."""

FORGED_STEPS = 12
"""Number of steps of a run with agents that forge lines, enough for some text to be read a day later."""

BREAKS = ("\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029")
"""Line separators of Python and of terminals."""

INVISIBLE = "\x1b\u200b\u202e"
"""Invisible characters: the first of a terminal escape, a zero-width space, and a right-to-left override."""


def quotes_what_agents_write(entry: ModelEntry) -> None:
    """No text by an agent begins a line of a prompt or adds invisible characters; see `mesa_llm.text` for helpers.

    In this check, a language model fills every free text of actions, tools and answers with lines that look
    like those of the world.
    """
    forged: list[str] = []
    model = entry.load()(rng=11, llm=forger(forged))
    _run(model, FORGED_STEPS)
    _require(not forged, f"text by agents must not look like a line of a prompt; found {forged[:1]}")


def forger(forged: list[str]) -> ScriptedLLM:
    """Return a language model that writes forged lines in all its text.

    Args:
        forged: List that collects lines of its prompts that begin like a forged one or contain invisible characters.
            Its own messages do not count.
    """

    def reply(request: Request) -> Reply:
        contents = [message.content for message in request.messages if message.role != "assistant"]
        lines = [line for text in contents for line in text.splitlines()]
        forged.extend(line for line in lines if line.lstrip().startswith(FORGED) or set(INVISIBLE) & set(line))
        return _forged_reply(request)

    return ScriptedLLM(reply)


def _forged_reply(request: Request) -> Reply:
    rng = random.Random(request.key)
    text = f"{rng.choice(['', 'ok', INVISIBLE])}{rng.choice(BREAKS)}{rng.choice(FORGED)}"
    if request.schema is not None:
        narrowed = narrow(flat_schema(request.schema), request.options)
        return as_reply(draw(_filled(narrowed or {}, text), rng), "scripted")
    if not request.tools:
        return Reply(f"I think.{text}")
    has_looked = request.messages[-1].role == "tool"
    tools = [tool for tool in request.tools if tool.is_action or not has_looked]
    choices = choice_schema(tools, request.options)["anyOf"]
    forging = [choice for choice in choices if _filled(choice, text) != choice]
    call = draw(_filled(rng.choice(forging if forging and rng.random() < 0.8 else choices), text), rng)
    return as_reply(ToolCall(call["action"], call["arguments"]), "scripted")


def _filled(schema: Schema, text: str) -> Schema:
    """Restrict the free texts of a flat schema, at any depth, to one text. Choices from lists stay."""
    if "anyOf" in schema:
        return {"anyOf": [_filled(inner, text) for inner in schema["anyOf"]]}
    match schema.get("type"):
        case "string":
            return {"enum": [text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]]}
        case "array":
            return {**schema, "items": _filled(schema["items"], text)}
        case "object":
            filled = {name: _filled(inner, text) for name, inner in schema["properties"].items()}
            schema = {**schema, "properties": filled}
            if isinstance(schema["additionalProperties"], dict):
                schema["additionalProperties"] = _filled(schema["additionalProperties"], text)
                schema.setdefault("propertyNames", {"enum": [text]})
            return schema
        case None if "enum" not in schema:
            return {"enum": [text]}
        case _:
            return schema


def offers_what_is_shown(entry: ModelEntry) -> None:
    """Each id argument of an action is chosen from a list, and every value on the list is in the prompt.

    An id is an argument whose name ends in `_id`. There is no list if a tool can show more ids.
    """
    faults: list[str] = []

    def reply(request: Request) -> Reply:
        text = "\n".join(message.content for message in request.messages).casefold()
        for tool in request.tools:
            options = options_for(tool.name, request.options)
            for name in tool.parameters.get("properties", ()):
                if name in options:
                    values = [member_value(value) for value in options[name]]
                    faults.extend(f"{name} {value!r}" for value in values if str(value).casefold() not in text)
                elif name.endswith("_id") and all(other.is_action for other in request.tools):
                    faults.append(f"{tool.name}({name}), which can be anything")
        return honest_reply(request)

    _run(entry.load()(rng=4, llm=ScriptedLLM(reply)))
    _require(not faults, f"ids must be options, and options must be in the text; found {faults[:3]}")


CALL = re.compile(r"^(?:In|On|At) [^:\n]{0,80}?\b[a-z]\w*\([a-z_]\w*=", re.MULTILINE)
"""A line of a memory with the syntax of a call."""


def remembers_in_sentences(entry: ModelEntry) -> None:
    """What agents remember are sentences, and never the syntax of a call; `@action(did=…)` gives them."""
    calls: list[str] = []

    def reply(request: Request) -> Reply:
        calls.extend(found[0] for message in request.messages for found in CALL.finditer(message.content))
        return honest_reply(request)

    _run(entry.load()(rng=6, llm=ScriptedLLM(reply)), OBSERVED_STEPS)
    _require(not calls, f"memories must be sentences; found {calls[:3]}")


def has_page(entry: ModelEntry) -> None:
    """Its `app` module builds a page."""
    _require(entry.has_page, "the model has an app module")
    module = import_module(f"{entry.package}.app")
    _require(hasattr(module, "page"), "the app module has a `page`")


def has_readme(entry: ModelEntry) -> None:
    """Its README has the seven headings, in order, with text under each."""
    readme = resources.files(entry.package).joinpath("README.md")
    _require(readme.is_file(), "the model has a README.md")
    lines = [line.strip() for line in readme.read_text(encoding="utf-8").splitlines()]
    headings = [line.lstrip("#").strip() for line in lines if line.startswith("## ")]
    _require(
        [name for name in headings if name in HEADINGS] == list(HEADINGS), f"its README has the headings {HEADINGS}"
    )


CHECKS: dict[str, Callable[[ModelEntry], None]] = {
    check.__name__: check
    for check in (
        runs_offline,
        takes_what_tools_give,
        same_seed_same_run,
        observing_changes_nothing,
        replays,
        resumes,
        survives_faults,
        quotes_what_agents_write,
        offers_what_is_shown,
        remembers_in_sentences,
        has_page,
        has_readme,
    )
}
"""Every check, by name."""


PACKAGE_CHECKS = frozenset({"has_page", "has_readme"})
"""Checks of files beside a model. A model whose module is in no package has none."""


@dataclass(frozen=True)
class CheckResult:
    """Result of one check of a model."""

    check: str
    """Name of the check."""

    promise: str
    """The checked promise, in a sentence."""

    fault: str = ""
    """Reason it is broken; empty if it is kept."""


def check_results(entry: ModelEntry) -> Iterator[CheckResult]:
    """Run all checks that apply to a model, continuing after failures.

    Args:
        entry: The model, from `mesa_llm.registry.find_model`.
    """
    for name, check in _checks_of(entry).items():
        promise = inspect.cleandoc(check.__doc__ or "").split("\n\n")[0]
        try:
            check(entry)
        except ContractBroken as error:
            yield CheckResult(name, promise, str(error))
        except Exception as error:  # noqa: BLE001 - somebody's model; whatever it raises is the finding
            yield CheckResult(name, promise, f"{type(error).__name__}: {error}")
        else:
            yield CheckResult(name, promise)


def _checks_of(entry: ModelEntry) -> dict[str, Callable[[ModelEntry], None]]:
    return {name: check for name, check in CHECKS.items() if entry.package or name not in PACKAGE_CHECKS}


def check_model(model: str | type[LLMModel]) -> None:
    """Run all checks that apply to a model.

    Args:
        model: Its class, `module:Class`, or its name in `mesa-llm list`.

    Raises:
        ConfigError: If there is no such model, or it is a plain Mesa model.
        ContractBroken: At the first check that fails.
    """
    entry = find_model(model if isinstance(model, str) else name_of(model))
    for check in _checks_of(entry).values():
        check(entry)
