"""From a reply to a decision: read it, check it, ask once more, or say why it failed.

What a model writes is untrusted: it is parsed with bounds, checked by pydantic, and only ever reaches a function
whose name and arguments are known.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NoReturn, cast

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ParseError, ToolBroken, ToolError, TransportError
from mesa_llm.llm.base import LLM
from mesa_llm.records import ChatMessage, Decision, Failure, Observation, Reply, Request, ToolCall
from mesa_llm.toolbox import ToolBox
from mesa_llm.tools import describe, plain_schema

logger = logging.getLogger(__name__)

MAX_TOOL_ROUNDS = 5
"""Most times a model may call tools before it decides."""

MAX_TEXT = 100_000
"""Most characters of a reply that are searched for JSON."""

MAX_TOOL_RESULT = 4_000
"""Most characters of a tool's answer that a model reads."""


@dataclass(frozen=True)
class Asking:
    """Everything one decision needs: who asks what of which model."""

    llm: LLM
    """The model that decides."""

    seen: Observation
    """What the agent sees."""

    box: ToolBox
    """What it may use now."""

    request: Request
    """The first request; later ones extend it."""

    parser: LLM | None = None
    """Second model that puts a reply into form; None: the first model is asked once more."""

    replies: list[str] = field(default_factory=list)
    """Keys of the requests made so far."""

    async def ask(self, request: Request, llm: LLM | None = None) -> Reply:
        """Send a request and keep its key."""
        self.replies.append(request.key)
        return await (llm or self.llm).reply(request)


async def decide(asking: Asking) -> Decision | Failure:
    """Ask until there is a decision: tools are answered, a faulty reply is repaired once.

    Returns:
        The decision; or a failure with its reason, if no usable reply came.
    """
    request, agent, by = asking.request, asking.request.salt.agent, asking.request.model
    rounds, repaired = 0, False
    try:
        while True:
            reply = await asking.ask(request)
            try:
                decided = read(reply, asking.seen, asking.box)
            except ParseError as error:
                if repaired:
                    return Failure(agent, str(error), "Unparsed", by, tuple(asking.replies))
                repaired = True
                if asking.parser is not None:
                    decided = await _put_into_form(asking, reply)
                else:
                    request = _repair(request, reply, error, asking)
                    continue
            if isinstance(decided, Decision):
                return Decision(agent, decided.actions, decided.answer, decided.text, by, tuple(asking.replies))
            if rounds == MAX_TOOL_ROUNDS:
                reason = f"called tools {rounds + 1} times without deciding"
                return Failure(agent, reason, "Undecided", by, tuple(asking.replies))
            rounds += 1
            request = _answer_tools(request, reply, decided, asking.box)
    except ParseError as error:
        return Failure(agent, str(error), "Unparsed", by, tuple(asking.replies))
    except (TransportError, ToolBroken) as error:
        return Failure(agent, str(error), type(error).__name__, by, tuple(asking.replies))


def _next(request: Request, *messages: ChatMessage) -> Request:
    """Make the follow-up of a request."""
    salt = request.salt._replace(call=request.salt.call + 1)
    return replace(request, messages=(*request.messages, *messages), salt=salt)


def _as_said(reply: Reply) -> ChatMessage:
    return ChatMessage("assistant", reply.text[:MAX_TEXT], _numbered(reply.tool_calls))


def _numbered(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Give every call an id, as endpoints demand one."""
    return tuple(call if call.call_id else replace(call, call_id=f"call_{n}") for n, call in enumerate(calls))


def _answer_tools(request: Request, reply: Reply, calls: Sequence[ToolCall], box: ToolBox) -> Request:
    """Run the tools a model called, and put their answers after its message."""
    answers: list[ChatMessage] = []
    wanted = {call.name for call in calls}
    for call in _numbered(reply.tool_calls or tuple(calls)):
        text = _result(call, box) if call.name in wanted else "Not run: decide after you have read the answers."
        answers.append(ChatMessage("tool", text[:MAX_TOOL_RESULT], call_id=call.call_id))
    if not reply.tool_calls:
        joined = "\n".join(f"{call.name}: {answer.content}" for call, answer in zip(calls, answers, strict=True))
        return _next(request, _as_said(reply), ChatMessage("user", joined))
    return _next(request, _as_said(reply), *answers)


def _result(call: ToolCall, box: ToolBox) -> str:
    """Run a tool, and give what the model is told of it."""
    try:
        result = box.call(call)
        return result if isinstance(result, str) else canonical_json(result)
    except ToolError as error:
        return f"Error: {error}"
    except Exception as error:  # a tool is anybody's code; it ends one agent's decision, not the step
        logger.exception("tool %s raised", call.name)
        raise ToolBroken(f"tool {call.name} raised {type(error).__name__}: {str(error)[:300]}") from error


def _repair(request: Request, reply: Reply, error: ParseError, asking: Asking) -> Request:
    """Tell the model what was wrong, and ask once more."""
    said = ChatMessage("assistant", reply.text[:2000] or _calls_as_text(reply))
    return _next(request, said, ChatMessage("user", f"That cannot be used: {error}\n{form(asking.seen, asking.box)}"))


def _calls_as_text(reply: Reply) -> str:
    return canonical_json([[call.name, call.arguments] for call in reply.tool_calls])[:2000]


async def _put_into_form(asking: Asking, reply: Reply) -> Decision | tuple[ToolCall, ...]:
    """Let the second model put what the first one wrote into form (two-step parsing).

    Raises:
        ParseError: If it cannot either.
    """
    said = reply.text[:8000] or _calls_as_text(reply)
    text = f"Somebody answered:\n{said}\n\nPut this answer into form, and add nothing. "
    salt = asking.request.salt._replace(purpose=f"{asking.request.salt.purpose}-form", call=0)
    name = str(getattr(asking.parser, "name", "parser"))
    messages = (ChatMessage("user", text + form(asking.seen, asking.box)),)
    request = replace(asking.request, model=name, messages=messages, salt=salt)
    return read(await asking.ask(request, asking.parser), asking.seen, asking.box)


def form(seen: Observation, box: ToolBox) -> str:
    """Say in words what form a reply has to have."""
    if seen.answer is not None:
        return f"Answer with one JSON object of this schema: {canonical_json(answer_schema(seen.answer))}"
    offers = [{"action": spec.name, "arguments": spec.parameters.get("properties", {})} for spec in box.specs]
    return (
        'Answer with one JSON object {"action": name, "arguments": {…}} and nothing else. '
        f"The actions and the schemas of their arguments: {canonical_json(offers)}"
    )


def read(reply: Reply, seen: Observation, box: ToolBox) -> Decision | tuple[ToolCall, ...]:
    """Read a reply: as a decision, or as calls of tools to answer first.

    Raises:
        ParseError: If it is neither; the text says why.
    """
    if seen.answer is not None and not reply.tool_calls:
        return Decision(0, answer=read_answer(reply.text, seen.answer))
    calls = reply.tool_calls or _calls_in(_after_thought(reply.text))
    if not calls:
        raise ParseError("the reply is empty." if not reply.text.strip() else "the reply names no action.")
    checked: list[ToolCall] = []
    for call in calls[:20]:
        try:
            checked.append(box.check(call))
        except ToolError as error:
            raise ParseError(str(error)) from None
    actions = tuple(call for call in checked if box[call.name].tool.spec.is_action)
    if not actions:
        return tuple(checked)
    if seen.answer is not None:
        raise ParseError("an answer is wanted, not an action.")
    if len(actions) > seen.max_actions:
        raise ParseError(f"{len(actions)} actions were named; at most {seen.max_actions} can be done.")
    return Decision(0, actions=actions, text=reply.text[:MAX_TEXT] if reply.tool_calls else "")


def _after_thought(text: str) -> str:
    """Leave out what a model wrote while it thought aloud, as some do in the same text as their reply."""
    _, thought, said = text.rpartition("</think>")
    return said if thought and said.strip() else text


def _calls_in(text: str) -> tuple[ToolCall, ...]:
    """Find calls written as JSON in a text: one object, a list of them, or `{"actions": […]}`."""
    found = find_json(text)
    if isinstance(found, dict) and isinstance(found.get("actions"), list):
        found = found["actions"]
    items = cast("list[Any]", found if isinstance(found, list) else [found])
    calls: list[ToolCall] = []
    for item in items:
        if not isinstance(item, dict):
            continue
        fields = cast("dict[str, Any]", item)
        name = fields.get("action", fields.get("name"))
        arguments = fields.get("arguments", fields.get("parameters", {}))
        if isinstance(name, str) and isinstance(arguments, dict):
            calls.append(ToolCall(name, cast("dict[str, Any]", arguments)))
    return tuple(calls)


def find_json(text: str) -> Any:
    """Give the first JSON object or list in a text; None if there is none that can be read."""
    text = text[:MAX_TEXT]
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    starts = [place for place, character in enumerate(text) if character in "{["][:20]
    for start in starts:
        try:
            return decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
    return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


@lru_cache(maxsize=512)
def _adapter(answer: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(answer, config=ConfigDict(allow_inf_nan=False))
    except PydanticUserError:  # a model or dataclass brings its own config
        return TypeAdapter(answer)


@lru_cache(maxsize=512)
def answer_schema(answer: Any) -> dict[str, Any]:
    """Give the JSON schema that a reply has to follow; what is no object is wrapped as `{"answer": …}`.

    Args:
        answer: Any type pydantic can check.
    """
    schema = plain_schema(_adapter(answer).json_schema())
    if schema.get("type") == "object":
        return schema
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    wrapped: dict[str, Any] = {"type": "object", "properties": {"answer": inner}, "required": ["answer"]}
    wrapped["additionalProperties"] = False
    return {**wrapped, "$defs": schema["$defs"]} if "$defs" in schema else wrapped


def read_answer(text: str, answer: Any) -> Any:
    """Read a typed answer out of a text.

    Args:
        text: The reply.
        answer: Type of the answer; `str` takes the text as it is.

    Raises:
        ParseError: If there is none of this type; the text says what was found.
    """
    text = _after_thought(text)
    if not text.strip():
        raise ParseError("the reply is empty.")
    found = find_json(text)
    if answer is str and not isinstance(found, dict):
        return text.strip()[:MAX_TEXT]
    candidates = [found, text.strip()] if found is not None else [text.strip()]
    if isinstance(found, dict) and set(cast("dict[str, Any]", found)) == {"answer"}:
        candidates.insert(0, found["answer"])
    faults: list[str] = []
    for candidate in candidates:
        try:
            return _adapter(answer).validate_python(candidate)
        except ValidationError as error:
            faults.append(describe(error))
    raise ParseError(f"the answer does not fit: {faults[0]}")
