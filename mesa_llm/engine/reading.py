"""From a model's reply to a decision, or an answer of the requested type: the one check for all deciders.

Replies are untrusted: they are parsed within bounds and checked by pydantic, and can only reach functions whose names
and arguments are known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any, NoReturn, cast

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from mesa_llm.canonical import member_value, plain
from mesa_llm.config import Reasoning
from mesa_llm.errors import ParseError, ToolError
from mesa_llm.records import Decision, Observation, Reply, ToolCall
from mesa_llm.tools.tool import describe, plain_schema
from mesa_llm.tools.toolbox import ToolBox

MAX_TEXT = 100_000
"""Maximum number of characters of a reply that are searched for JSON."""

REASONING = "reasoning"
"""Name of the field in which a model reasons before it decides."""

_JSON = json.JSONEncoder(ensure_ascii=False)

_ANYTHING = TypeAdapter[Any](Any)

_SCALARS = frozenset({int, float, str, bool, type(None)})

_TEXT = frozenset({str})


def read(
    reply: Reply, seen: Observation, box: ToolBox, reasoning: Reasoning = "none"
) -> Decision | tuple[ToolCall, ...]:
    """Read a reply as a decision, or as tool calls to be answered first.

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
        thought = str(value)[:MAX_TEXT]  # beside the action, instead of among its arguments
    if any(box.is_action(call.name) for call in calls):
        text = "\n".join(filter(None, (reply.reasoning, thought, reply.text if reply.tool_calls else "")))
        actions = [call for call in calls if call.name not in box or box.is_action(call.name)]
        return Decision(0, _checked_actions(actions, seen, box), text=text[:MAX_TEXT])
    try:
        return tuple(box.check(call) for call in calls)
    except ToolError as error:
        raise ParseError(str(error)) from None


def thought_in(reply: Reply, box: ToolBox, reasoning: Reasoning) -> str:
    """Return the reasoning in a reply that a second model has parsed; all of its prose counts as reasoning."""
    thought = ""
    if reasoning == "inline":
        text = _without_thoughts(reply.text)
        parsed = find_json(text)
        fields = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
        calls = [*(reply.tool_calls or _calls_in(text))[:20], ToolCall("", fields)]
        thought = _without_reasoning(calls, box)[1] or ("" if parsed else reply.text[:MAX_TEXT].strip())
    return "\n".join(filter(None, (reply.reasoning, thought)))


def check_decision(decision: Decision, seen: Observation, box: ToolBox) -> Decision:
    """Check a decision against its observation: the one check for all deciders.

    Whether it comes from a language model, a rule, a person, the random baseline or an outside controller, a decision
    must name actions on offer, with arguments of the right types and from the lists of options, or hold an answer of
    the requested type.

    Args:
        decision: The decision; without actions and answer it does nothing, which is always allowed.
        seen: What the agent observed.
        box: Tools and actions it could use.

    Returns:
        The decision, with its arguments and answer converted to their types.

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
    origin = (decision.text, decision.by, decision.keys, decision.label, decision.is_null, decision.reading)
    return Decision(decision.agent, calls, answer, *origin)  # several times faster than replace()


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
    """Check that a call is shaped like one of a language model.

    Raises:
        ParseError: If it is not, which only code can cause.
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
    for name, value in call.arguments.items():
        allowed = options.get(f"{call.name}.{name}", options.get(name))
        if allowed is None or value is None:
            continue
        for element in value if isinstance(value, list) else (value,):  # pyright: ignore[reportUnknownVariableType]
            if element in allowed or (chosen := member_value(element)) in allowed:
                continue
            possible = ", ".join(str(member_value(item)) for item in allowed[:30]) or "nothing at the moment"
            raise ParseError(f"{call.name}: {name}: {str(chosen)[:80]!r} is not possible now; possible: {possible}.")


def _checked_answer(answer: Any, kind: Any) -> Any:
    """Return an answer as a value of the requested type; types that JSON tells apart are not converted.

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
    """Return NumPy numbers and arrays as JSON values; refuse anything else that JSON cannot hold."""
    convert = getattr(value, "tolist", None)
    if not callable(convert):
        raise PydanticSerializationError(f"it holds a {type(value).__name__}")
    return convert()


def written_answer(answer: Any, kind: Any = None) -> str:
    """Write an answer as a model has to write it: text unchanged, anything else as JSON that follows the schema.

    Args:
        answer: The answer.
        kind: Requested type; None: unknown, and nothing is wrapped.
    """
    if isinstance(answer, str) and kind in (str, None):
        return answer
    value = plain_answer(answer)
    is_wrapped = kind is not None and _bare_schema(kind).get("type") != "object"
    return _JSON.encode({"answer": value} if is_wrapped else value)


def plain_answer(answer: Any) -> Any:
    """Return an answer as JSON values; sets are sorted, as their order differs between runs."""
    if type(answer) in _SCALARS:
        return answer
    if type(answer) is dict:
        fields = cast("dict[Any, Any]", answer)
        if _TEXT.issuperset(map(type, fields)) and _SCALARS.issuperset(map(type, fields.values())):
            return fields
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
    """Remove the reasoning from the arguments of calls to tools that have no such argument."""
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
    """Strip a model's thinking aloud, which some models put in the same text as their reply."""
    _, thought, remainder = text.rpartition("</think>")
    return remainder if thought and remainder.strip() else text


def _calls_in(text: str) -> tuple[ToolCall, ...]:
    """Find calls that a text holds as JSON: one object, a list of them, or `{"actions": […]}`."""
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
    for start in islice(re.finditer(r"[{[]", text), 20):
        try:
            return _DECODER.raw_decode(text, start.start())[0]
        except (ValueError, RecursionError):
            continue
    return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


@lru_cache(maxsize=512)
def _adapter(answer: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(answer, config=ConfigDict(allow_inf_nan=False))
    except PydanticUserError:  # pydantic models and dataclasses bring their own config
        return TypeAdapter(answer)


@lru_cache(maxsize=512)
def _bare_schema(kind: Any) -> dict[str, Any]:
    return plain_schema(_adapter(kind).json_schema())


@lru_cache(maxsize=512)
def answer_schema(answer: Any) -> dict[str, Any]:
    """Return the JSON schema that a reply must follow; a type other than an object is wrapped as `{"answer": …}`.

    Args:
        answer: Any type that pydantic can check.
    """
    schema = _bare_schema(answer)
    if schema.get("type") == "object":
        return schema
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    wrapped: dict[str, Any] = {"type": "object", "properties": {"answer": inner}, "required": ["answer"]}
    wrapped["additionalProperties"] = False
    return {**wrapped, "$defs": schema["$defs"]} if "$defs" in schema else wrapped


def read_answer(text: str, answer: Any) -> Any:
    """Read a typed answer from a text.

    Args:
        text: The reply.
        answer: Type of the answer; `str` takes the text as it is.

    Raises:
        ParseError: If the text holds no answer of this type; the message describes what was found.
    """
    return _read_answer(text, answer, "none")[0]


def _read_answer(text: str, answer: Any, reasoning: Reasoning) -> tuple[Any, str]:
    """Read a typed answer, and the reasoning that precedes it in the same object."""
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
