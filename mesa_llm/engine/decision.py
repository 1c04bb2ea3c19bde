"""From a reply to a decision: read it, check it, ask once more, or explain why it failed.

What a model writes is untrusted: it is parsed with bounds, checked by pydantic, and only ever reaches a function
whose name and arguments are known.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import Any, NoReturn, cast

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from mesa_llm.config import Reasoning
from mesa_llm.errors import ParseError, ToolBroken, ToolError, TransportError
from mesa_llm.llm.openai.request import wire_tools
from mesa_llm.llm.protocol import LLM
from mesa_llm.records import (
    ChatMessage,
    Decision,
    Failure,
    Observation,
    Reply,
    Request,
    Salt,
    ToolCall,
    ToolSpec,
    canonical_json,
    options_for,
    plain,
)
from mesa_llm.tools.tool import describe, plain_schema
from mesa_llm.tools.toolbox import ToolBox

logger = logging.getLogger(__name__)

MAX_TOOL_ROUNDS = 5
"""Maximum number of times a model may call tools before it decides."""

CALLS_OF_REPLY = 32
"""Numbers that the calls of one reply take, for tools whose answers are recorded."""

MAX_TEXT = 100_000
"""Maximum number of characters of a reply that are searched for JSON."""

MAX_TOOL_RESULT = 4_000
"""Maximum number of characters of a tool's answer that a model reads."""

REASONING = "reasoning"
"""Name of the field in which a model reasons before it decides."""

THINK = "Before you decide, reason in a few sentences: what matters here, and what do you want to do?"
"""Prompt for a model that reasons in free text first."""

_REASONING_SCHEMA = {"type": "string", "description": "Your reasoning in a few sentences, before anything else."}

_JSON = json.JSONEncoder(ensure_ascii=False)

_ANYTHING = TypeAdapter[Any](Any)

_SCALARS = frozenset({int, float, str, bool, type(None)})


@dataclass(slots=True)
class Query:
    """Everything one decision needs: the model, the observation, the tools and the request."""

    llm: LLM
    """The model that decides."""

    seen: Observation
    """What the agent observes."""

    box: ToolBox
    """Tools and actions it may use now."""

    request: Request
    """The first request; later ones extend it."""

    parser: LLM | None = None
    """Second model that puts a reply into form; None: the first model is asked once more."""

    parser_name: str = ""
    """Its name, part of the key of its replies."""

    reasoning: Reasoning = "none"
    """Whether, and how, the model reasons before it decides."""

    question: str = THINK
    """Prompt for a model that reasons in free text first."""

    keys: list[str] = field(default_factory=list)
    """Keys of the requests made so far."""

    async def ask(self, request: Request, llm: LLM | None = None) -> Reply:
        """Send a request and keep its key."""
        self.keys.append(request.key)
        return await (llm or self.llm).reply(request)

    def failure(self, reason: str, kind: str) -> Failure:
        """Return the failure of this decision."""
        return Failure(self.request.salt.agent, reason, kind, self.request.model, tuple(self.keys))


async def decide(query: Query) -> Decision | Failure:
    """Ask until there is a decision: run the tools that are called, repair a faulty reply once.

    Returns:
        The decision; or a failure with its reason, if no usable reply came.
    """
    request = query.request
    if query.reasoning == "inline":
        request = _with_reasoning(request)
    thought, rounds, is_repaired = "", 0, False
    try:
        if query.reasoning == "first":
            request, reply = await _think(query)
            thought = reply.text or reply.reasoning
            if query.parser is not None and thought:
                return _with_origin(query, await _put_into_form(query, request, thought), thought)
        while True:
            reply = await query.ask(request)
            try:
                decision = read(reply, query.seen, query.box, query.reasoning)
            except ParseError as error:
                if is_repaired:
                    return query.failure(_reason(error, reply), "Unparsed")
                is_repaired = True
                if query.parser is None:
                    request = _repair(request, reply, _reason(error, reply), query)
                    continue
                decision = await _put_into_form(query, request, reply.text or _calls_as_text(reply))
                thought = "\n".join(filter(None, (thought, _thought_in(reply, query))))
            if isinstance(decision, Decision):
                return _with_origin(query, decision, thought)
            if rounds == MAX_TOOL_ROUNDS:
                return query.failure(f"called tools {rounds + 1} times without deciding", "Undecided")
            rounds += 1
            if query.reasoning == "inline":
                thought = "\n".join(filter(None, (thought, _thought_in(reply, query), *map(str, decision))))
            request = await _answer_tools(request, reply, decision, query.box)
            if any(query.box[call.name].tool.shows_more for call in decision):
                query = replace(query, seen=replace(query.seen, options={}))
                request = replace(request, options={})
    except ParseError as error:
        return query.failure(str(error), "Unparsed")
    except (TransportError, ToolBroken) as error:
        return query.failure(str(error), type(error).__name__)


def _with_origin(query: Query, decided: Decision | tuple[ToolCall, ...], thought: str) -> Decision:
    """Complete a decision with who made it, from which replies, and after what reasoning.

    Raises:
        ParseError: If the second model called tools, which nothing would answer.
    """
    if not isinstance(decided, Decision):
        raise ParseError("the second model called tools instead of putting the reply into form.")
    request, text = query.request, "\n".join(filter(None, (thought, decided.text)))[:MAX_TEXT]
    agent, keys, is_null = request.salt.agent, tuple(query.keys), decided.is_null
    return Decision(agent, decided.actions, decided.answer, text, request.model, keys, query.seen.label, is_null)


def _reason(error: ParseError, reply: Reply) -> str:
    """Return why a reply cannot be used, and what to do if it was cut."""
    if reply.finish != "length":
        return str(error)
    return (
        f"the reply was cut after {reply.reply_tokens or 'all allowed'} tokens (finish=length); raise reply_tokens= "
        f"(--reply-tokens), or max_tokens in the agent's settings. {error}"
    )


# -- reasoning


async def _think(query: Query) -> tuple[Request, Reply]:
    """Let the model reason in free text first.

    Returns:
        The request for the typed decision, which continues the conversation; and the reply that reasons.
    """
    request = query.request
    offers = [f"- {spec.name}: {spec.description}" for spec in request.tools if spec.is_action]
    if query.seen.answer is not None and query.seen.answer is not str:
        offers = [f"an answer of this form: {canonical_json(answer_schema(query.seen.answer))}"]
    choices = "\n".join(["", "You will then be asked to decide:", *offers]) if offers else ""
    *earlier, last = request.messages
    question = replace(last, content=f"{last.content}\n\n{query.question}{choices}")
    thinking = replace(request, messages=(*earlier, question), tools=(), schema=None, options={})
    reply = await query.ask(thinking)
    thought = (reply.text or reply.reasoning)[:MAX_TEXT]
    continuation = (ChatMessage("assistant", thought), ChatMessage("user", "Now decide.")) if thought else ()
    salt = request.salt._replace(call=request.salt.call + 1)
    return replace(request, messages=(*earlier, question if thought else last, *continuation), salt=salt), reply


def _with_reasoning(request: Request) -> Request:
    """Ask for the reasoning as the first field of the arguments or the answer."""
    tools = tuple(reasoned_tool(spec) if spec.is_action else spec for spec in request.tools)
    schema = request.schema
    if schema is None and not any(spec.is_action for spec in tools):  # an answer in free text
        schema = answer_schema(str)
    return replace(request, tools=tools, schema=None if schema is None else _reasoned(schema))


@lru_cache(maxsize=1024)
def reasoned_tool(spec: ToolSpec) -> ToolSpec:
    """Return a tool whose first argument is the reasoning; a tool that has such an argument stays as it is."""
    return ToolSpec(spec.name, spec.description, _reasoned(spec.parameters), spec.is_action)


def _reasoned(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    if REASONING in properties:
        return dict(schema)
    required = [REASONING, *schema.get("required", ())]
    return {**schema, "properties": {REASONING: _REASONING_SCHEMA, **properties}, "required": required}


def _thought_in(reply: Reply, query: Query) -> str:
    """Return the reasoning in a reply that the second model has put into form; all prose is reasoning."""
    thought = ""
    if query.reasoning == "inline":
        text = _without_thoughts(reply.text)
        parsed = find_json(text)
        fields = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
        calls = [*(reply.tool_calls or _calls_in(text))[:20], ToolCall("", fields)]
        thought = _without_reasoning(calls, query.box)[1] or ("" if parsed else reply.text[:MAX_TEXT].strip())
    return "\n".join(filter(None, (reply.reasoning, thought)))


# -- follow-ups


def _next(request: Request, *messages: ChatMessage) -> Request:
    """Make the follow-up of a request."""
    salt = request.salt._replace(call=request.salt.call + 1)
    return replace(request, messages=(*request.messages, *messages), salt=salt)


def _assistant_message(reply: Reply) -> ChatMessage:
    return ChatMessage("assistant", reply.text[:MAX_TEXT], _with_ids(reply.tool_calls))


def _with_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Return the calls with an id each, as endpoints demand one."""
    return tuple(call if call.call_id else replace(call, call_id=f"call_{n}") for n, call in enumerate(calls))


async def _answer_tools(request: Request, reply: Reply, calls: Sequence[ToolCall], box: ToolBox) -> Request:
    """Run the tools a model called, with their checked arguments, and put their answers after its message."""
    answers: list[ChatMessage] = []
    remaining = list(calls)
    for number, call in enumerate(_with_ids(reply.tool_calls or tuple(calls))):
        text = "Not run: decide after you have read the answers."
        if checked := next((one for one in remaining if one.name == call.name), None):
            remaining.remove(checked)
            text = await _result(checked, box, request.salt, number)
        answers.append(ChatMessage("tool", _shortened(text), call_id=call.call_id))
    if not reply.tool_calls:
        results = "\n".join(f"{call.name}: {answer.content}" for call, answer in zip(calls, answers, strict=True))
        return _next(request, _assistant_message(reply), ChatMessage("user", results))
    return _next(request, _assistant_message(reply), *answers)


def _shortened(text: str) -> str:
    """Cut a tool's result to what a model reads, and mark the cut."""
    if len(text) <= MAX_TOOL_RESULT:
        return text
    return f"{text[:MAX_TOOL_RESULT]}… (cut: {len(text):,} characters in all)"


async def _result(call: ToolCall, box: ToolBox, salt: Salt, number: int) -> str:
    """Run a tool, and return what the model reads of it.

    Args:
        call: The call, checked.
        box: The tools.
        salt: Place of the request whose reply names the call.
        number: Number of the call in that reply.
    """
    tool = box[call.name].tool
    if tool.is_outside:
        place = salt._replace(purpose="tool", call=salt.call * CALLS_OF_REPLY + number)
        return await tool.function(call.arguments, place)
    try:
        result = box.run(call)
        return result if isinstance(result, str) else canonical_json(result)
    except ToolError as error:
        return f"Error: {error}"
    except Exception as error:  # a tool is anybody's code; it ends one agent's decision, not the step
        logger.exception("tool %s raised", call.name)
        raise ToolBroken(f"tool {call.name} raised {type(error).__name__}: {str(error)[:300]}") from error


def _repair(request: Request, reply: Reply, reason: str, query: Query) -> Request:
    """Return the request that asks once more, and explains what was wrong."""
    message = ChatMessage("assistant", reply.text[:2000] or _calls_as_text(reply))
    return _next(request, message, ChatMessage("user", f"That cannot be used: {reason}\n{_form(request, query.seen)}"))


def _calls_as_text(reply: Reply) -> str:
    return canonical_json([[call.name, call.arguments] for call in reply.tool_calls])[:2000]


async def _put_into_form(query: Query, request: Request, text: str) -> Decision | tuple[ToolCall, ...]:
    """Let the second model put what the first one wrote into form (two-step parsing).

    Its request has the number of the request it follows.

    Raises:
        ParseError: If the second model fails too.
    """
    question = f"Somebody answered:\n{text[:8000]}\n\nPut this answer into form, and add nothing. "
    salt = request.salt._replace(purpose=f"{request.salt.purpose}-form")
    messages = (ChatMessage("user", question + _form(query.request, query.seen)),)
    form_request = replace(query.request, model=query.parser_name, messages=messages, salt=salt, adapter=None)
    return read(await query.ask(form_request, query.parser), query.seen, query.box)


def _form(request: Request, seen: Observation) -> str:
    """Describe the form that a reply has to have."""
    if seen.answer is not None:
        schema = request.schema or answer_schema(seen.answer)
        return f"Answer with one JSON object of this schema: {canonical_json(schema)}"
    functions = [tool["function"] for tool in wire_tools(request.tools, request.options)]
    offers = [{"action": tool["name"], "arguments": tool["parameters"].get("properties", {})} for tool in functions]
    return (
        'Answer with one JSON object {"action": name, "arguments": {…}} and nothing else. '
        f"The actions and the schemas of their arguments: {canonical_json(offers)}"
    )


# -- reading and checking


def read(
    reply: Reply, seen: Observation, box: ToolBox, reasoning: Reasoning = "none"
) -> Decision | tuple[ToolCall, ...]:
    """Read a reply: as a decision, or as calls of tools to answer first.

    Raises:
        ParseError: If it is neither; the text explains why.
    """
    if seen.answer is not None and not reply.tool_calls:
        answer, thought = _read_answer(reply.text, seen.answer, reasoning)
        text = "\n".join(filter(None, (reply.reasoning, thought)))
        return Decision(0, answer=answer, text=text, is_null=answer is None)
    calls = reply.tool_calls or _calls_in(_without_thoughts(reply.text))
    if not calls:
        raise ParseError("the reply is empty." if not reply.text.strip() else "the reply names no action.")
    calls, thought = _without_reasoning(calls[:20], box) if reasoning == "inline" else (calls[:20], "")
    if reasoning == "inline" and not thought and not reply.tool_calls:
        parsed = find_json(_without_thoughts(reply.text))
        value = cast("dict[str, Any]", parsed).get(REASONING, "") if isinstance(parsed, dict) else ""
        thought = str(value)[:MAX_TEXT]  # beside the action, in place of among its arguments
    if any(box.is_action(call.name) for call in calls):
        text = "\n".join(filter(None, (reply.reasoning, thought, reply.text if reply.tool_calls else "")))
        actions = [call for call in calls if call.name not in box or box.is_action(call.name)]
        return Decision(0, _checked_actions(actions, seen, box), text=text[:MAX_TEXT])
    try:
        return tuple(box.check(call) for call in calls)
    except ToolError as error:
        raise ParseError(str(error)) from None


def check_decision(decision: Decision, seen: Observation, box: ToolBox) -> Decision:
    """Check a decision against its observation: the one check for all deciders.

    A decision of a language model, a rule, a person, the random baseline or an outside controller names actions that
    are offered, with arguments of the right types and from the lists of options; or it is an answer of the type asked
    for.

    Args:
        decision: The decision; one without actions and answer does nothing, which is always possible.
        seen: What the agent observed.
        box: Tools and actions it might use.

    Returns:
        The decision, its arguments and answer converted to their types.

    Raises:
        ParseError: If it does not fit; the text explains why.
    """
    if decision.has_answer and seen.answer is None:
        names = ", ".join(spec.name for spec in box.specs if spec.is_action)
        raise ParseError(f"an action is wanted, not an answer; choose one of: {names}.")
    if decision.actions:
        calls, answer = _checked_actions(decision.actions, seen, box), None
    elif decision.has_answer:
        calls, answer = (), _checked_answer(decision.answer, seen.answer)
    else:
        return decision
    return Decision(
        decision.agent, calls, answer, decision.text, decision.by, decision.keys, decision.label, decision.is_null
    )  # several times faster than replace()


def _checked_actions(actions: Sequence[Any], seen: Observation, box: ToolBox) -> tuple[ToolCall, ...]:
    """Check the actions of a decision against its observation, and convert their arguments to their types.

    Raises:
        ParseError: If they do not fit; the text explains why.
    """
    if seen.answer is not None:
        raise ParseError("an answer is wanted, not an action.")
    if len(actions) > seen.max_actions:
        raise ParseError(f"{len(actions)} actions were named; at most {seen.max_actions} can be done.")
    calls: list[ToolCall] = []
    for call in actions:
        _demand_call(call)
        try:
            calls.append(box.check(call))
        except ToolError as error:
            raise ParseError(str(error)) from None
        if not box.is_action(call.name):
            raise ParseError(f"{call.name} only reads; an action is wanted.")
        if seen.options:
            _check_options(calls[-1], seen.options)
    return tuple(calls)


def _demand_call(call: Any) -> None:
    """Check that a call has the shape of a language model's.

    Raises:
        ParseError: If it is something else, as only code can make it.
    """
    if not isinstance(call, ToolCall):
        raise ParseError(f"an action is a ToolCall, got a {type(call).__name__}.")
    name, arguments = cast("tuple[Any, Any]", (call.name, call.arguments))
    if type(name) is str and type(arguments) is dict:
        return
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        raise ParseError(f"an action has a name and arguments by name, got {name!r:.80} and {arguments!r:.80}.")


def _check_options(call: ToolCall, options: Mapping[str, tuple[Any, ...]]) -> None:
    """Check that arguments come from the lists of options.

    Raises:
        ParseError: If one does not.
    """
    options_here = options_for(call.name, options)
    for name, value in call.arguments.items():
        allowed = options_here.get(name)
        if allowed is None or value is None:
            continue
        for element in value if isinstance(value, list) else (value,):  # pyright: ignore[reportUnknownVariableType]
            if element not in allowed:
                possible = ", ".join(str(item) for item in allowed[:30]) or "nothing at the moment"
                raise ParseError(
                    f"{call.name}: {name}: {str(element)[:80]!r} is not possible now; possible: {possible}."
                )


def _checked_answer(answer: Any, kind: Any) -> Any:
    """Return an answer as a value of the type asked for; types that JSON distinguishes are not converted.

    Raises:
        ParseError: If it is of another type, or cannot be written as JSON.
    """
    try:
        encoded = to_json(answer, by_alias=True, fallback=_as_number)
        return _adapter(kind).validate_json(encoded, strict=True, by_alias=True, by_name=True)
    except ValidationError as error:
        raise ParseError(f"the answer does not fit: {describe(error)}") from None
    except PydanticSerializationError as error:
        raise ParseError(f"the answer cannot be written as JSON: {error}") from None


def _as_number(value: Any) -> Any:
    """Return numbers and arrays of numpy as JSON values; refuse all else that JSON does not know."""
    convert = getattr(value, "tolist", None)
    if not callable(convert):
        raise PydanticSerializationError(f"it holds a {type(value).__name__}")
    return convert()


def written_answer(answer: Any, kind: Any = None) -> str:
    """Write an answer as a model has to write it: text as it is, all else as JSON of the schema asked for.

    Args:
        answer: The answer.
        kind: Type asked for; None: unknown, and nothing is wrapped.
    """
    if isinstance(answer, str) and kind in (str, None):
        return answer
    value = plain_answer(answer)
    is_wrapped = kind is not None and _bare_schema(kind).get("type") != "object"
    return _JSON.encode({"answer": value} if is_wrapped else value)


def plain_answer(answer: Any) -> Any:
    """Return an answer as JSON values; sets are sorted, as their own order differs between two runs."""
    return to_jsonable_python(_without_sets(_ANYTHING.dump_python(answer, by_alias=True)), fallback=plain)


def _without_sets(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, set | frozenset):
        return sorted((_without_sets(item) for item in cast("set[Any]", value)), key=repr)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {key: item if type(item) in _SCALARS else _without_sets(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_without_sets(item) for item in cast("list[Any]", value)]
    return value


def _without_reasoning(calls: Sequence[ToolCall], box: ToolBox) -> tuple[tuple[ToolCall, ...], str]:
    """Remove the reasoning from the arguments of calls whose tools have no such argument."""
    remaining: list[ToolCall] = []
    thoughts: list[str] = []
    for call in calls:
        own = box[call.name].tool.spec.parameters.get("properties", {}) if call.name in box else {}
        if REASONING in call.arguments and REASONING not in own:
            thoughts.append(str(call.arguments[REASONING])[:MAX_TEXT])
            arguments = {name: value for name, value in call.arguments.items() if name != REASONING}
            call = replace(call, arguments=arguments)
        remaining.append(call)
    return tuple(remaining), "\n".join(thoughts)


def _without_thoughts(text: str) -> str:
    """Strip what a model thought aloud, as some do in the same text as their reply."""
    _, thought, remainder = text.rpartition("</think>")
    return remainder if thought and remainder.strip() else text


def _calls_in(text: str) -> tuple[ToolCall, ...]:
    """Find calls written as JSON in a text: one object, a list of them, or `{"actions": […]}`."""
    parsed = find_json(text)
    if isinstance(parsed, dict) and isinstance(parsed.get("actions"), list):
        parsed = parsed["actions"]
    items = cast("list[Any]", parsed if isinstance(parsed, list) else [parsed])
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
    """Return the first JSON object or list in a text; None if none can be read."""
    text = text[:MAX_TEXT]
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    for start in islice(re.finditer(r"[{[]", text), 20):
        try:
            return decoder.raw_decode(text, start.start())[0]
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
def _bare_schema(kind: Any) -> dict[str, Any]:
    return plain_schema(_adapter(kind).json_schema())


@lru_cache(maxsize=512)
def answer_schema(answer: Any) -> dict[str, Any]:
    """Return the JSON schema that a reply has to follow; a type other than an object is wrapped as `{"answer": …}`.

    Args:
        answer: Any type pydantic can check.
    """
    schema = _bare_schema(answer)
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
        ParseError: If there is none of this type; the text describes what was found.
    """
    return _read_answer(text, answer, "none")[0]


def _read_answer(text: str, answer: Any, reasoning: Reasoning) -> tuple[Any, str]:
    """Read a typed answer, and the reasoning that stands before it in the same object."""
    text = _without_thoughts(text)
    if not text.strip():
        raise ParseError("the reply is empty.")
    parsed, thought = find_json(text), ""
    fields = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    if reasoning == "inline" and REASONING not in _bare_schema(answer).get("properties", {}):
        thought = str(fields.pop(REASONING, ""))[:MAX_TEXT]
    is_wrapped = set(fields) == {"answer"}
    if answer is str and not (is_wrapped and isinstance(fields["answer"], str)):
        return text.strip()[:MAX_TEXT], thought
    candidates = [parsed, text.strip()] if parsed is not None else [text.strip()]
    if is_wrapped:
        candidates.insert(0, fields["answer"])
    faults: list[str] = []
    for candidate in candidates:
        try:
            return _adapter(answer).validate_python(candidate), thought
        except ValidationError as error:
            faults.append(describe(error))
    raise ParseError(f"the answer does not fit: {faults[0]}")
