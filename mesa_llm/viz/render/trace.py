"""An agent's prompts, replies, decisions and actions, step by step, and rows of the tables of a run, for display."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from mesa_llm.canonical import legible_json
from mesa_llm.engine.activation import llm_agents
from mesa_llm.llm.surrogate.names import PREFIX, is_surrogate
from mesa_llm.records import ToolSpec
from mesa_llm.runlog.layout import columns
from mesa_llm.runlog.log import RunLog
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm.viz.render.mesa_adapter import runlog_of

MAX_CALLS = 400
"""Maximum number of requests read per agent; the latest are read."""

MAX_CHARACTERS = 20_000
"""Maximum number of characters of a text on display."""

DIGEST_DIGITS = 12
"""Number of digits of a tool's digest in the run log."""


@dataclass(frozen=True)
class PromptMessage:
    """One message of a prompt."""

    role: str
    """Role of the speaker: system, user, assistant or tool."""

    text: str
    """Text of the message; for an assistant, with its tool calls."""


@dataclass(frozen=True)
class OfferedTool:
    """A tool or action that was available."""

    name: str
    """Its name."""

    description: str
    """Its description for the language model; empty if unknown."""

    parameters: str
    """JSON schema of its arguments; empty if unknown."""


@dataclass(frozen=True)
class TracedRequest:
    """One request to a language model, with its reply or error."""

    purpose: str
    """Its purpose: `decide`, `memory`, …"""

    model: str
    """The model string."""

    prompt: tuple[PromptMessage, ...]
    """The prompt."""

    tools: tuple[OfferedTool, ...]
    """Tools and actions that were available."""

    form: str
    """Schema of the reply and sampling settings, as JSON."""

    sent: str
    """What was sent beside the messages: the form of the reply in words and as a grammar; empty if nothing was."""

    reply: str
    """Text and tool calls of the reply; empty if there is none."""

    raw: str
    """The recorded reply, as JSON; empty if there is none."""

    reasoning: str
    """Reasoning before the reply, if the endpoint returns it."""

    error: str
    """Why there is no reply; empty if there is one."""

    cost: str
    """Tokens, seconds, dollars and attempts, as text."""


@dataclass(frozen=True)
class TracedAction:
    """One action with its outcome."""

    action: str
    """The call."""

    ok: bool
    """Whether the world accepted it."""

    result: str
    """Result from the world."""


@dataclass(frozen=True)
class TracedDecision:
    """One decision, or the failure to make it."""

    by: str
    """Who decided."""

    decided: str
    """The actions or the answer, as text; empty if it failed."""

    text: str
    """Text beside the decision, such as the reasoning."""

    label: str
    """Label of the question, if it has one."""

    failure: str
    """Kind and reason of the failure; empty if there was none."""


@dataclass(frozen=True)
class AgentStep:
    """Everything that one agent did in one step."""

    time: int
    """The step."""

    requests: tuple[TracedRequest, ...]
    """Its requests, in order."""

    decisions: tuple[TracedDecision, ...]
    """Its decisions: one, unless the model has several stages, or the rule twin stepped in."""

    actions: tuple[TracedAction, ...]
    """Its actions, in order."""


def agent_steps(model: Any, agent: int) -> list[AgentStep]:
    """Return what an agent did in each step, newest first.

    Args:
        model: The model.
        agent: Mesa `unique_id`.

    Returns:
        One entry for each step in which the agent had a request, a decision or an action, including the current step.
    """
    runlog = runlog_of(model)
    if runlog is None:
        return []
    requests: dict[int, list[TracedRequest]] = {}
    rows = runlog.calls_of(agent, MAX_CALLS, last_step=int(model.time))
    specs = _specs(model, agent) if rows else {}
    for row in reversed(rows):
        requests.setdefault(int(row["time"]), []).append(_request(row, specs))
    decisions = {time: [_decision(row) for row in rows] for time, rows in _by_time(runlog, "decisions", agent)}
    actions = {time: [_action(row) for row in rows] for time, rows in _by_time(runlog, "actions", agent)}
    times = sorted({*requests, *decisions, *actions}, reverse=True)
    return [
        AgentStep(time, tuple(requests.get(time, ())), tuple(decisions.get(time, ())), tuple(actions.get(time, ())))
        for time in times
    ]


def _by_time(runlog: RunLog, table: str, agent: int) -> Iterable[tuple[int, list[dict[str, Any]]]]:
    grouped: dict[int, list[dict[str, Any]]] = {}
    for values in runlog.rows(table, agent):
        row = dict(zip(columns()[table], values, strict=True))
        grouped.setdefault(int(row["time"]), []).append(row)
    return grouped.items()


def _specs(model: Any, agent_id: int) -> dict[str, ToolSpec]:
    """Return the tools of an agent and its worlds by the first digits of their digests; none if it has left."""
    agent = next((each for each in llm_agents(model) if each.unique_id == agent_id), None)
    if agent is None:
        return {}
    box = ToolBox.of(agent, agent_id, agent.worlds, agent.tools)
    return {spec.digest[:DIGEST_DIGITS]: spec for spec in box.specs}


def _offered_tools(parameters: dict[str, Any], specs: Mapping[str, ToolSpec]) -> tuple[OfferedTool, ...]:
    names, digests = parameters.get("tools", []), parameters.get("tools_digest", [])
    tools: list[OfferedTool] = []
    for name, digest in zip_longest(names, digests, fillvalue=""):
        spec = specs.get(digest)
        schema = "" if spec is None else json.dumps(dict(spec.parameters), ensure_ascii=False, indent=1)
        tools.append(OfferedTool(name, "" if spec is None else spec.description, shortened(schema)))
    return tuple(tools)


def _request(row: dict[str, Any], specs: Mapping[str, ToolSpec]) -> TracedRequest:
    parameters: dict[str, Any] = json.loads(row["parameters"])
    sent = str(parameters.pop("sent", ""))
    prompt = tuple(PromptMessage(message["role"], _message_text(message)) for message in json.loads(row["prompt"]))
    reply: dict[str, Any] = json.loads(row["reply"]) if row["reply"] else {"text": "", "tool_calls": []}
    calls_text = "\n".join(call_text(name, arguments) for name, arguments, _ in reply["tool_calls"])
    return TracedRequest(
        purpose=row["purpose"],
        model=row["model"],
        prompt=prompt,
        tools=_offered_tools(parameters, specs),
        form=_indented({name: value for name, value in parameters.items() if value and "tools" not in name}),
        sent=shortened(sent),
        reply=shortened("\n".join(filter(None, (reply["text"], calls_text)))),
        raw=_indented(reply) if row["reply"] else "",
        reasoning=shortened(reply.get("reasoning") or ""),
        error=f"{row['error_kind']}: {row['error']}" if row["error_kind"] else "",
        cost=_cost(row),
    )


def _indented(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, indent=1)) if value else ""


def _message_text(message: dict[str, Any]) -> str:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    lines = [message["content"], *(f"{call['name']}({call['arguments']})" for call in calls)]
    return shortened("\n".join(filter(None, lines)))


def _cost(row: dict[str, Any]) -> str:
    parts = [f"{row['prompt_tokens']:,} tokens read, {row['reply_tokens']:,} written", f"{row['latency_s']:.1f} s"]
    if row["dollars"]:
        parts.append(f"${row['dollars']:.5f}")
    if row["attempts"] and row["attempts"] > 1:
        parts.append(f"{row['attempts']} attempts")
    return " · ".join(parts)


def _decision(row: dict[str, Any]) -> TracedDecision:
    failure = f"{row['kind']}: {row['reason']}" if row["kind"] else ""
    description, text = decision_text(row["decision"]), shortened(row["text"] or "")
    return TracedDecision(decider(row["by"]), description, text, row["label"] or "", shortened(failure))


def _action(row: dict[str, Any]) -> TracedAction:
    result = json.loads(row["result"])
    text = result if isinstance(result, str) else legible_json(result)
    return TracedAction(call_text(row["action"], json.loads(row["arguments"])), bool(row["ok"]), shortened(text))


def decision_text(decision: str | None) -> str:
    """Describe a decision from the run log."""
    if not decision:
        return ""
    actions, answer = json.loads(decision)
    if answer is not None:
        return shortened(answer if isinstance(answer, str) else legible_json(answer))
    return "\n".join(call_text(name, arguments) for name, arguments in actions) or "nothing"


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """Return a call as `name(argument: value, …)`."""
    values = {key: value if isinstance(value, str) else legible_json(value) for key, value in arguments.items()}
    arguments_text = ", ".join(f"{key}: {isolated(value)}" for key, value in values.items())
    return shortened(f"{name}({arguments_text})" if arguments_text else name)


def isolated(text: str) -> str:
    """Isolate right-to-left text, which would otherwise change the order of the text around it."""
    if text.isascii() or not any(unicodedata.bidirectional(character) in ("R", "AL") for character in text):
        return text
    return f"\u2068{text}\u2069"


def decider(by: str) -> str:
    """Return a label for whoever decided."""
    if is_surrogate(by):
        return f"a surrogate ({by.removeprefix(PREFIX)})"
    return {
        "rule": "the rule twin",
        "random": "chance",
        "human": "a person",
        "forced": "nobody, as one choice was left",
    }.get(by, by)


def shortened(text: str) -> str:
    """Shorten a text that is too long to display."""
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}… ({len(text):,} characters)"


class Row(NamedTuple):
    """One row of a table."""

    cells: tuple[str, ...]
    """Text of each cell."""

    mood: str = ""
    """`failed` highlights it as a failure."""

    agent: int = 0
    """Id of the agent that a click on the row opens; 0: none."""

    step: int = -1
    """Step that is then shown of it; negative: the latest."""


AGENT_FACTS = ("agent_id", "author_id", "winner", "trader")
"""Facts of an event that name the agent whose event it is."""


def agent_in(facts: Mapping[str, Any]) -> int:
    """Return the id of the agent whose event it is; 0: nobody's.

    Args:
        facts: The facts of the event.
    """
    return next((facts[name] for name in AGENT_FACTS if type(facts.get(name)) is int), 0)


def event_row(fields: dict[str, Any]) -> Row:
    """Return the row of an event: step, world, text; a click opens its agent, if it has one, at that step."""
    text = fields["text"] or f"{fields['kind']} {fields['facts']}"
    cells = str(fields["time"]), fields["source"], shortened(text)
    return Row(cells, agent=agent_in(json.loads(fields["facts"])), step=fields["time"])


def action_row(fields: dict[str, Any], names: dict[int, str]) -> Row:
    """Return the row of an action: step, agent, action, result; a click opens the agent at that step.

    Args:
        fields: The row of the run log.
        names: Names of agents by id.
    """
    agent_name = names.get(fields["agent"]) or f"agent {fields['agent']}"
    result = json.loads(fields["result"])
    text = result if isinstance(result, str) else legible_json(result)
    action_text = call_text(fields["action"], json.loads(fields["arguments"]))
    cells = str(fields["time"]), agent_name, action_text, shortened(text)
    return Row(cells, "" if fields["ok"] else "failed", fields["agent"], fields["time"])
