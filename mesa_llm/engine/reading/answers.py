"""Typed answers: the schema by which they are requested, how they are read from an object, checked, and written.

An answer is repaired only where nothing is lost and there is one way to do it; what is off its list is no answer.
Replies without an object are read by `mesa_llm.engine.reading.prose`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, wraps
from typing import Any, NamedTuple, cast

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError, WithJsonSchema
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from mesa_llm.canonical import plain
from mesa_llm.engine.reading.coercion import (
    ANSWER_KEYS,
    THOUGHT_KEYS,
    Coercion,
    CoercionError,
    letters,
    letters_of,
)
from mesa_llm.engine.reading.reasoning import marked_if_cut
from mesa_llm.engine.reading.tool_calls import line_before
from mesa_llm.engine.text import reason_text
from mesa_llm.errors import ParseError
from mesa_llm.llm.lenient_json import DECODER, Value, read_value, values_in
from mesa_llm.tools.tool import describe, plain_schema

MAX_FAULTS = 5
"""Maximum number of faults of a sheet that are named."""

_JSON = json.JSONEncoder(ensure_ascii=False)

_ANYTHING = TypeAdapter[Any](Any)

SCALARS = frozenset({int, float, str, bool, type(None)})
"""Types of the values that JSON holds as they are."""

_TEXT = frozenset({str})

_CHOICES = frozenset({int, str})


class Answer(NamedTuple):
    """An answer that was read."""

    value: Any
    """The answer, of the type asked for."""

    notation: str
    """How it was written."""

    end: int
    """Index after its last character."""

    repairs: list[str]
    """What was mended."""

    thoughts: list[str]
    """Texts in which the model explained itself beside it."""


# -- forms


def _cached[T](function: Callable[[Any], T]) -> Callable[[Any], T]:
    """Cache a function of types; it tells `Literal["a", "b"]` from `Literal["b", "a"]`, which are equal."""
    of_text = lru_cache(maxsize=512)(lambda kind, _text: function(kind))

    @wraps(function)
    def cached(kind: Any) -> T:
        return of_text(kind, "" if isinstance(kind, type) else repr(kind))

    return cached


@_cached
def adapter_of(answer: Any) -> TypeAdapter[Any]:
    """Return the adapter that checks answers of a type."""
    try:
        return TypeAdapter(answer, config=ConfigDict(allow_inf_nan=False))
    except PydanticUserError:  # pydantic models and dataclasses bring their own config
        return TypeAdapter(answer)


@_cached
def bare_schema(kind: object) -> dict[str, Any]:
    """Return the JSON schema of a type, without titles, and not wrapped."""
    return plain_schema(adapter_of(kind).json_schema())


@_cached
def answer_schema(answer: object) -> dict[str, Any]:
    """Return the JSON schema that a reply must follow; a type other than an object is wrapped as `{"answer": …}`.

    Args:
        answer: Any type that pydantic can check.
    """
    schema = bare_schema(answer)
    if schema.get("type") == "object":
        return schema
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    wrapped: dict[str, Any] = {"type": "object", "properties": {"answer": inner}, "required": ["answer"]}
    wrapped["additionalProperties"] = False
    return {**wrapped, "$defs": schema["$defs"]} if "$defs" in schema else wrapped


# -- checking and writing


def checked_answer(answer: object, kind: object) -> Any:
    """Return an answer as a value of the requested type; types that JSON tells apart are not converted.

    Raises:
        ParseError: If it is of another type, or cannot be written as JSON.
    """
    try:
        encoded = to_json(answer, by_alias=True, fallback=_as_number)
        return adapter_of(kind).validate_json(encoded, strict=True, by_alias=True, by_name=True)
    except ValidationError as error:
        raise ParseError(reason_text("answer_of_other_type", fault=describe(error))) from None
    except PydanticSerializationError as error:
        raise ParseError(reason_text("answer_not_json", error=error)) from None


def _as_number(value: object) -> Any:
    """Return NumPy numbers and arrays as JSON values; refuse anything else that JSON cannot hold."""
    convert = getattr(value, "tolist", None)
    if not callable(convert):
        raise PydanticSerializationError(f"it holds a {type(value).__name__}")
    return convert()


def written_answer(answer: object, kind: Any = None) -> str:
    """Write an answer as a model has to write it: text unchanged, anything else as JSON that follows the schema.

    Args:
        answer: The answer.
        kind: Requested type; None: unknown, and nothing is wrapped.
    """
    if isinstance(answer, str) and kind in (str, None):
        return answer
    value = plain_answer(answer)
    is_wrapped = kind is not None and bare_schema(kind).get("type") != "object"
    return _JSON.encode({"answer": value} if is_wrapped else value)


def plain_answer(answer: object) -> Any:
    """Return an answer as JSON values; sets are sorted, as their order differs between runs."""
    if type(answer) in SCALARS:
        return answer
    if type(answer) is dict:
        fields = cast("dict[Any, Any]", answer)
        if _TEXT.issuperset(map(type, fields)) and SCALARS.issuperset(map(type, fields.values())):
            return fields
    return to_jsonable_python(_without_sets(_ANYTHING.dump_python(answer, by_alias=True)), fallback=plain)


def _without_sets(value: object) -> Any:
    if type(value) in SCALARS:
        return value
    if isinstance(value, set | frozenset):
        return sorted((_without_sets(item) for item in cast("set[Any]", value)), key=repr)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {key: item if type(item) in SCALARS else _without_sets(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_without_sets(item) for item in cast("list[Any]", value)]
    return value


# -- reading


def object_answer(speech: str, kind: object, *, reasoning: str = "") -> Answer | None:
    """Read a typed answer from the last object or list that looks like one; None if there is none.

    Args:
        speech: What was said.
        kind: Type of the answer: anything that pydantic can check.
        reasoning: Name of the field that holds the reasoning, if the answer was asked for with one.

    Raises:
        ParseError: If the object does not fit; with the usable part of a sheet as `partial`.
    """
    text = speech.strip()
    if (answer := _exact(text, kind)) is not None:
        return Answer(answer[0], "JSON", len(speech), [], [])
    try:
        values = values_in(speech)
    except ValueError as error:
        raise ParseError(f"{error}.") from None
    found = values.found
    if text.startswith(('"', "`")) and not found:
        found = _encoded(text, len(speech))
    last_end = -1
    for value in reversed(found):
        last_end = max(last_end, value.end)
        if not _is_relevant(value.value, kind) or _is_mentioned(speech, value):
            continue
        if any(start >= value.end for start, _ in values.broken):
            break
        if value.fault:
            raise ParseError(reason_text("answer_fault", fault=value.fault))
        return _from_object(value, kind, reasoning)
    if values.broken:
        start = values.broken[-1][0]
        refusal = "open_answer" if values.is_open else "broken_answer"
        raise ParseError(reason_text(refusal, text=speech[start : start + 80]))
    return None


def _is_mentioned(speech: str, value: Value) -> bool:
    """Check whether a list stands within a sentence, as a reference or a range does."""
    if not isinstance(value.value, list):
        return False
    before = line_before(speech, value.start).rstrip(" \t*_`")
    after = speech[value.end :].partition("\n")[0]
    is_labelled = before.endswith((":", "=")) or not re.search(r"\w", before)
    return not is_labelled or re.search(r"\w", after) is not None


def _exact(text: str, kind: object) -> tuple[Any] | None:
    """Read a text that is an answer to the letter; None if it is not. This is how nearly all replies are read."""
    adapter, schema = adapter_of(kind), bare_schema(kind)
    try:
        value = DECODER.decode(text)
        if schema.get("type") == "object":
            properties = schema.get("properties")
            if properties and not (value and cast("dict[str, Any]", value).keys() <= properties.keys()):
                return None
        else:
            if type(value) is not dict or len(cast("dict[str, Any]", value)) != 1 or "answer" not in value:
                return None
            value = value["answer"]
        if type(value) is bool and schema.get("type") != "boolean" and "anyOf" not in schema:
            return None  # Python takes it for 1 or 0
        answer = adapter.validate_python(value, strict=True)
    except (ValueError, RecursionError, AttributeError):  # pydantic's ValidationError is a ValueError
        return None
    return (answer,) if _are_listed(value, kind) else None


@lru_cache(maxsize=512)
def _lists(kind: object) -> tuple[frozenset[Any], ...] | None:
    """Return the choices that pydantic does not check: those of a type whose schema was written by hand.

    Returns:
        Choices of each field of an object, or of the one value; None where the type itself checks all.
    """
    if not any(isinstance(one, WithJsonSchema) for one in getattr(kind, "__metadata__", ())):
        return None
    schema = bare_schema(kind)
    if schema.get("type") == "object":
        return tuple(frozenset(field.get("enum", ())) for field in schema.get("properties", {}).values())
    return (frozenset(schema["enum"]),) if "enum" in schema else None


def _is_sheet(kind: object) -> bool:
    return _lists(kind) is not None and bare_schema(kind).get("type") == "object"


def _are_listed(value: object, kind: object) -> bool:
    choices = _lists(kind)
    if choices is None:
        return True
    if not _is_sheet(kind):
        return type(value) in SCALARS and value in choices[0] and type(value) is not bool
    fields = cast("dict[str, Any]", value)
    names = bare_schema(kind)["properties"]
    if len(fields) != len(names) or not _CHOICES.issuperset(map(type, fields.values())):
        return False
    if len(set(choices)) == 1 and choices[0]:  # the same scale for all items
        return choices[0].issuperset(fields.values())
    return all(
        (fields[name] in allowed if allowed else type(fields[name]) is str)
        for name, allowed in zip(names, choices, strict=True)
    )


def _encoded(text: str, end: int) -> list[Value]:
    """Return the object that a text holds as the string of another JSON text."""
    try:
        value = read_value(text)
    except ValueError:
        return []
    return [value._replace(end=end)] if isinstance(value.value, dict | list) else []


def _is_relevant(value: object, kind: object) -> bool:
    """Check whether an object or a list looks like an answer of this type."""
    schema = bare_schema(kind)
    is_object, properties = schema.get("type") == "object", schema.get("properties", {})
    if isinstance(value, list):
        return schema.get("type") == "array" or "anyOf" in schema or is_row(cast("list[Any]", value), schema)
    fields = cast("dict[str, Any]", value)
    keys = {letters(key) for key in fields}
    if "answer" in keys or keys & letters_of(tuple(properties)).keys() or Coercion.item_names(keys) & properties.keys():
        return True
    inner = [*_inner(fields)]
    if is_object:
        nested = (one for one in inner if isinstance(one, dict | list))
        return not fields or not properties or any(_is_relevant(one, kind) for one in nested)
    is_list = schema.get("type") == "array" and len(inner) == 1 and isinstance(inner[0], list)
    return "anyOf" in schema or is_list or (len(inner) == 1 and not keys.isdisjoint(ANSWER_KEYS))


def is_row(values: list[Any], schema: Mapping[str, Any]) -> bool:
    """Check whether a list can be the answers to a sheet, in the order of its items."""
    properties = schema.get("properties", {})
    return (
        len(properties) > 1
        and len(values) == len(properties)
        and list(properties) == [str(number) for number in range(1, len(properties) + 1)]
    )


def _inner(fields: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values of fields in which a model does not explain itself."""
    for key, value in fields.items():
        if letters(key) not in THOUGHT_KEYS:
            yield value


def _from_object(value: Value, kind: object, reasoning: str) -> Answer:
    """Read the answer in an object or a list.

    Raises:
        ParseError: If it does not fit.
    """
    schema, thoughts = bare_schema(kind), list[str]()
    parsed = value.value
    if reasoning and isinstance(parsed, dict) and reasoning not in schema.get("properties", {}):
        fields = dict(cast("dict[str, Any]", parsed))
        if reasoning in fields:
            thoughts.append(marked_if_cut(str(fields.pop(reasoning))))
        parsed = fields
    error: ParseError | None = None
    for candidate, repairs in _unwrapped(parsed, schema):
        fit = Coercion(schema.get("$defs"))
        try:
            answer = fitted(candidate, kind, schema, fit)
        except ParseError as fault:
            error = error or fault
            if error.partial is None:
                error = fault if fault.partial is not None else error
            continue
        return Answer(answer, "JSON", value.end, [*value.repairs, *repairs, *fit.repairs], thoughts + fit.thoughts)
    raise error or ParseError(reason_text("answer"))


def _unwrapped(value: object, schema: Mapping[str, Any]) -> Iterator[tuple[Any, list[str]]]:
    """Yield candidates for the answer within a value, the likeliest first, each with what was removed around it."""
    is_object, properties = schema.get("type") == "object", schema.get("properties", {})
    if not is_object and isinstance(value, dict) and "answer" in value:
        fields = cast("dict[str, Any]", value)
        yield fields["answer"], ["other fields left out"] if len([*_inner(fields)]) > 1 else []
    elif is_object or isinstance(value, list):
        yield _by_number(value, schema)
    for _ in range(3):  # {"name": "answer", "arguments": {…}}, or one field around it all
        if not isinstance(value, dict):
            return
        fields = cast("dict[str, Any]", value)
        inner = [key for key in fields if letters(key) not in THOUGHT_KEYS]
        if isinstance(fields.get("arguments"), dict) and "arguments" not in properties:
            inner = ["arguments"]
        if len(inner) != 1 or inner[0] in properties:
            return
        is_list = schema.get("type") == "array" and isinstance(fields[inner[0]], list)
        if not is_object and not is_list and inner[0] != "arguments" and letters(inner[0]) not in ANSWER_KEYS:
            return
        value = fields[inner[0]]
        if is_object and not isinstance(value, dict | list | str):
            return
        unwrapped, repairs = _by_number(value, schema)
        yield unwrapped, ["wrapping taken off", *repairs]


def _by_number(value: object, schema: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return a list of answers to a sheet as an object of them by number; anything else as it is."""
    if schema.get("type") != "object" or not isinstance(value, list) or not is_row(cast("list[Any]", value), schema):
        return value, []
    entries = [_entry(one) for one in cast("list[Any]", value)]
    if all(entries):
        return dict(cast("list[tuple[str, Any]]", entries)), ["list of items read as an object"]
    return dict(zip(schema["properties"], cast("list[Any]", value), strict=True)), [
        "list read in the order of the items"
    ]


def _entry(value: object) -> tuple[str, Any] | None:
    """Return the number of an item and its answer, of an object such as `{"item": 3, "answer": 5}`."""
    if not isinstance(value, dict):
        return None
    fields = {letters(key): one for key, one in cast("dict[str, Any]", value).items()}
    numbers = [
        fields[key]
        for key in ("item", "question", "number", "id", "itemid", "statement", "index")
        if type(fields.get(key)) is int
    ]
    answers = [one for key, one in fields.items() if key in ANSWER_KEYS]
    return (str(numbers[0]), answers[0]) if len(numbers) == len(answers) == 1 else None


def fitted(value: object, kind: object, schema: Mapping[str, Any], fit: Coercion) -> Any:
    """Fit a value to its type, and check it.

    Raises:
        ParseError: If it does not fit.
    """
    if _is_sheet(kind):
        return _fitted_sheet(value, kind, schema, fit)
    try:
        fitted = fit.value(value, schema)
        properties = schema.get("properties")
        if properties and isinstance(fitted, dict) and properties.keys().isdisjoint(cast("dict[str, Any]", fitted)):
            raise ParseError(reason_text("no_fields"))
        answer = _validated(fitted, kind)
    except CoercionError as misfit:
        raise ParseError(reason_text("answer_fault", fault=misfit), kind="OffList") from None
    except ValidationError as error:
        raise ParseError(reason_text("answer_fault", fault=describe(error))) from None
    return answer


def _validated(value: object, kind: object) -> Any:
    """Check a value as JSON tells types apart: nothing is converted that was not fitted, and noted, before.

    Raises:
        ValidationError: If it is of another type.
    """
    try:
        return adapter_of(kind).validate_python(value, strict=True)
    except ValidationError:
        return adapter_of(kind).validate_json(_JSON.encode(value), strict=True)


def _fitted_sheet(value: object, kind: object, schema: Mapping[str, Any], fit: Coercion) -> dict[str, Any]:
    """Fit the answers to a sheet, item by item.

    Raises:
        ParseError: If an item has no answer, or one off its list; `partial` holds the answers, if any is usable.
    """
    properties = cast("Mapping[str, Mapping[str, Any]]", schema["properties"])
    try:
        value = fit.value(value, {"type": "object", "properties": {name: {} for name in properties}})
    except CoercionError as misfit:
        raise ParseError(reason_text("answer_fault", fault=misfit)) from None
    if not isinstance(value, dict):
        raise ParseError(reason_text("no_object", value=value))
    fields = cast("dict[str, Any]", value)
    fitted: dict[str, Any] = {}
    faults: list[str] = []
    n_usable, are_off_list = 0, True
    for name, own in properties.items():
        if fields.get(name) is None:
            faults.append(reason_text("no_answer", name=name))
            are_off_list = False
            continue
        try:
            answer = fit.value(fields[name], own, name)
            is_text = "enum" not in own and not (isinstance(answer, str) and answer.strip())
            if is_text:
                raise CoercionError(reason_text("no_text", value=str(answer)[:80]))
            fitted[name], n_usable = answer, n_usable + 1
        except CoercionError as misfit:
            faults.append(f"{name}: {misfit}")
            fitted[name] = fields[name]
    if unknown := [key for key in fields if key not in properties]:
        faults.append(reason_text("no_item", names=", ".join(key[:20] for key in unknown[:3])))
        are_off_list = False
    if not faults:
        return fitted
    more = reason_text("more_faults", count=len(faults) - MAX_FAULTS) if len(faults) > MAX_FAULTS else ""
    reason = f"{'; '.join(faults[:MAX_FAULTS])}{more}"
    partial = (fitted, len(properties) - n_usable) if n_usable else None
    raise ParseError(
        reason_text("answer_fault", fault=reason), kind="OffList" if are_off_list else "Unparsed", partial=partial
    )
