"""Typed answers: the form in which they are asked for, how they are read, checked, and written.

An answer is read from an object, from lines, or from a sentence, and repaired only where nothing is lost and there is
one way to do it. What is off its list is no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError, WithJsonSchema
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from mesa_llm.canonical import plain
from mesa_llm.engine.calls import line_before
from mesa_llm.engine.fitting import (
    ANSWER_KEYS,
    MAX_OPTION,
    TAKEN_BACK,
    THOUGHT_KEYS,
    Fit,
    Misfit,
    as_number,
    letters,
    letters_of,
    meant,
    number_in,
    sentence_answers,
)
from mesa_llm.errors import ParseError
from mesa_llm.llm.notation import DECODER, Value, read_value, unfenced, values_in
from mesa_llm.tools.tool import describe, plain_schema

MAX_FAULTS = 5
"""Maximum number of faults of a sheet that are named."""

_JSON = json.JSONEncoder(ensure_ascii=False)

_ANYTHING = TypeAdapter[Any](Any)

_SCALARS = frozenset({int, float, str, bool, type(None)})

_TEXT = frozenset({str})

_CHOICES = frozenset({int, str})

MAX_LINE = 400
"""Maximum number of characters of a line in which a field or an answer is looked for."""

_LABELLED = re.compile(
    r"[\s>*_#-]{0,10}(?:(?:my|the|final|so|thus)\s+){0,3}(?:answer|decision|choice|rating|score|verdict|response|option|vote|probability|estimate|forecast|prediction)"
    r"\s*[*_]{0,3}\s*(?:[:=]|\bis\b:?)[\s*_]{0,4}(?P<answer>\S.*)",
    re.IGNORECASE,
)
"""A line that says what the answer is."""

_TAGGED = re.compile(
    r"<(answer|final_answer|choice|rating|option|decision)>\s*(?P<tagged>[^<>]{1,200}?)\s*</\1>|\\boxed\{(?P<boxed>[^{}]{1,200})\}",
    re.IGNORECASE,
)
"""An answer between tags."""

_FIELD = re.compile(
    r"[\s>*\u2022|-]{0,10}(?P<key>[^\n:=|.)\u2013\u2014\u2192\t]{1,80}?)[\s*_`\"'|]{0,6}"
    r"(?:[:=|)\u2013\u2014\u2192]|\.(?=[\s*])|\s-(?=\s)|->)[\s*_`\"'|:]{0,10}(?P<value>.*?)[\s*_`\"'|]{0,10}"
)
"""One field of an object, on a line of its own."""

_PAIR = re.compile(r"[\s*_|]{0,6}(?P<key>\d{1,4})[\s,;|*_]{1,8}(?P<value>[+-]?\d{1,4})[\s*_|.]{0,6}")
"""Two numbers on a line: that of an item, and its answer."""

_INLINE_PAIR = re.compile(r"(?P<key>\d{1,4})\s*[:.=)-]\s*(?P<value>\d{1,4})\b")
_INLINE = re.compile(r"[\s\[({]*(?:\d{1,4}\s*[:.=)-]\s*\d{1,4}\b[\s,;|.)\]}]*){2,}")
"""Several fields on one line."""

_BULLET = re.compile(r"\s*(?:[-*\u2022]|\d{1,3}[.)])\s+(?P<item>\S.{0,2000}?)\s*")
"""One entry of a list, on a line of its own."""

_TAIL = re.compile(r"[^\d=]*(?:\s[-\u2013\u2014]|[:\u2192.?!|]|->|\()\s*(?P<value>[^:=|]{1,60}?)\)?")
"""What a line ends with, after the text of an item that it repeats."""


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


@lru_cache(maxsize=512)
def adapter_of(answer: Any) -> TypeAdapter[Any]:
    """Return what checks answers of a type."""
    try:
        return TypeAdapter(answer, config=ConfigDict(allow_inf_nan=False))
    except PydanticUserError:  # pydantic models and dataclasses bring their own config
        return TypeAdapter(answer)


@lru_cache(maxsize=512)
def bare_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type, without titles, and not wrapped."""
    return plain_schema(adapter_of(kind).json_schema())


@lru_cache(maxsize=512)
def answer_schema(answer: Any) -> dict[str, Any]:
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


def checked_answer(answer: Any, kind: Any) -> Any:
    """Return an answer as a value of the requested type; types that JSON tells apart are not converted.

    Raises:
        ParseError: If it is of another type, or cannot be written as JSON.
    """
    try:
        encoded = to_json(answer, by_alias=True, fallback=_as_number)
        return adapter_of(kind).validate_json(encoded, strict=True, by_alias=True, by_name=True)
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
    is_wrapped = kind is not None and bare_schema(kind).get("type") != "object"
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


# -- reading


def read_typed(speech: str, kind: Any, *, reasoning: str = "") -> Answer:
    """Read an answer of a type other than `str`.

    The last object that looks like an answer counts; without any, lines or a sentence do.

    Args:
        speech: What was said.
        kind: Type of the answer: anything that pydantic can check.
        reasoning: Name of the field that holds the reasoning, if the answer was asked for with one.

    Raises:
        ParseError: If there is no such answer, or it is ambiguous; with the usable part of a sheet as `partial`.
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
            raise ParseError(f"the answer does not fit: {value.fault}.")
        return _from_object(value, kind, reasoning)
    if values.broken:
        start = values.broken[-1][0]
        what = "ends within its answer" if values.is_open else "holds an answer that is no JSON"
        raise ParseError(f"the reply {what}: {speech[start : start + 80]!r}.")
    return _from_prose(speech, kind)


def _is_mentioned(speech: str, value: Value) -> bool:
    """Check whether a list stands within a sentence, as a reference or a range does."""
    if not isinstance(value.value, list):
        return False
    before = line_before(speech, value.start).rstrip(" \t*_`")
    after = speech[value.end :].partition("\n")[0]
    is_labelled = before.endswith((":", "=")) or not re.search(r"\w", before)
    return not is_labelled or re.search(r"\w", after) is not None


def _exact(text: str, kind: Any) -> tuple[Any] | None:
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
def _lists(kind: Any) -> tuple[frozenset[Any], ...] | None:
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


def _is_sheet(kind: Any) -> bool:
    return _lists(kind) is not None and bare_schema(kind).get("type") == "object"


def _are_listed(value: Any, kind: Any) -> bool:
    choices = _lists(kind)
    if choices is None:
        return True
    if not _is_sheet(kind):
        return type(value) in _SCALARS and value in choices[0] and type(value) is not bool
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


def _is_relevant(value: Any, kind: Any) -> bool:
    """Check whether an object or a list looks like an answer of this type."""
    schema = bare_schema(kind)
    is_object, properties = schema.get("type") == "object", schema.get("properties", {})
    if isinstance(value, list):
        return schema.get("type") == "array" or "anyOf" in schema or _is_row(cast("list[Any]", value), schema)
    fields = cast("dict[str, Any]", value)
    keys = {letters(key) for key in fields}
    if "answer" in keys or keys & letters_of(tuple(properties)).keys() or Fit.item_names(keys) & properties.keys():
        return True
    inner = [*_inner(fields)]
    if is_object:
        nested = (one for one in inner if isinstance(one, dict | list))
        return not fields or not properties or any(_is_relevant(one, kind) for one in nested)
    is_list = schema.get("type") == "array" and len(inner) == 1 and isinstance(inner[0], list)
    return "anyOf" in schema or is_list or (len(inner) == 1 and not keys.isdisjoint(ANSWER_KEYS))


def _is_row(values: list[Any], schema: Mapping[str, Any]) -> bool:
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


def _from_object(value: Value, kind: Any, reasoning: str) -> Answer:
    """Read the answer in an object or a list.

    Raises:
        ParseError: If it does not fit.
    """
    schema, thoughts = bare_schema(kind), list[str]()
    parsed = value.value
    if reasoning and isinstance(parsed, dict) and reasoning not in schema.get("properties", {}):
        fields = dict(cast("dict[str, Any]", parsed))
        if reasoning in fields:
            thoughts.append(str(fields.pop(reasoning)))
        parsed = fields
    error: ParseError | None = None
    for candidate, repairs in _unwrapped(parsed, schema):
        fit = Fit(schema.get("$defs"))
        try:
            answer = _fitted(candidate, kind, schema, fit)
        except ParseError as fault:
            error = error or fault
            if error.partial is None:
                error = fault if fault.partial is not None else error
            continue
        return Answer(answer, "JSON", value.end, [*value.repairs, *repairs, *fit.repairs], thoughts + fit.thoughts)
    raise error or ParseError("the answer does not fit.")


def _unwrapped(value: Any, schema: Mapping[str, Any]) -> Iterator[tuple[Any, list[str]]]:
    """Yield what may be the answer in a value, the likeliest first, with what was taken off."""
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


def _by_number(value: Any, schema: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return a list of answers to a sheet as an object of them by number; anything else as it is."""
    if schema.get("type") != "object" or not isinstance(value, list) or not _is_row(cast("list[Any]", value), schema):
        return value, []
    entries = [_entry(one) for one in cast("list[Any]", value)]
    if all(entries):
        return dict(cast("list[tuple[str, Any]]", entries)), ["list of items read as an object"]
    return dict(zip(schema["properties"], cast("list[Any]", value), strict=True)), [
        "list read in the order of the items"
    ]


def _entry(value: Any) -> tuple[str, Any] | None:
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


def _fitted(value: Any, kind: Any, schema: Mapping[str, Any], fit: Fit) -> Any:
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
            raise ParseError("the answer does not fit: the object holds none of its fields.")
        answer = _validated(fitted, kind)
    except Misfit as misfit:
        raise ParseError(f"the answer does not fit: {misfit}.", kind="OffList") from None
    except ValidationError as error:
        raise ParseError(f"the answer does not fit: {describe(error)}.") from None
    return answer


def _validated(value: Any, kind: Any) -> Any:
    """Check a value as JSON tells types apart: nothing is converted that was not fitted, and noted, before.

    Raises:
        ValidationError: If it is of another type.
    """
    try:
        return adapter_of(kind).validate_python(value, strict=True)
    except ValidationError:
        return adapter_of(kind).validate_json(_JSON.encode(value), strict=True)


def _fitted_sheet(value: Any, kind: Any, schema: Mapping[str, Any], fit: Fit) -> dict[str, Any]:
    """Fit the answers to a sheet, item by item.

    Raises:
        ParseError: If an item has no answer, or one off its list; `partial` holds the answers, if any is usable.
    """
    properties = cast("Mapping[str, Mapping[str, Any]]", schema["properties"])
    try:
        value = fit.value(value, {"type": "object", "properties": {name: {} for name in properties}})
    except Misfit as misfit:
        raise ParseError(f"the answer does not fit: {misfit}.") from None
    if not isinstance(value, dict):
        raise ParseError(f"the answer does not fit: it has to be an object, got {value!r:.80}.")
    fields = cast("dict[str, Any]", value)
    fitted: dict[str, Any] = {}
    faults: list[str] = []
    n_usable, are_off_list = 0, True
    for name, own in properties.items():
        if fields.get(name) is None:
            faults.append(f"{name}: no answer")
            are_off_list = False
            continue
        try:
            answer = fit.value(fields[name], own, name)
            is_text = "enum" not in own and not (isinstance(answer, str) and answer.strip())
            if is_text:
                raise Misfit(f"{str(answer)[:80]!r} is no text")
            fitted[name], n_usable = answer, n_usable + 1
        except Misfit as misfit:
            faults.append(f"{name}: {misfit}")
            fitted[name] = fields[name]
    if unknown := [key for key in fields if key not in properties]:
        faults.append(f"there is no item {', '.join(key[:20] for key in unknown[:3])}")
        are_off_list = False
    if not faults:
        return fitted
    more = f"; and {len(faults) - MAX_FAULTS} more" if len(faults) > MAX_FAULTS else ""
    reason = f"{'; '.join(faults[:MAX_FAULTS])}{more}"
    partial = (fitted, len(properties) - n_usable) if n_usable else None
    raise ParseError(
        f"the answer does not fit: {reason}.", kind="OffList" if are_off_list else "Unparsed", partial=partial
    )


# -- prose


def _from_prose(speech: str, kind: Any) -> Answer:
    """Read an answer that is no object: lines, one value, or a sentence.

    Raises:
        ParseError: If there is none, or it is ambiguous.
    """
    schema = bare_schema(kind)
    text = unfenced(speech)[0]
    if not text:
        raise ParseError("the reply is empty.")
    fit = Fit(schema.get("$defs"))
    if schema.get("type") == "object":
        fields = _lines(speech, schema)
        if not fields:
            raise ParseError("the answer does not fit: the reply holds no JSON object.")
        return Answer(_fitted(fields, kind, schema, fit), "lines", len(speech), fit.repairs, fit.thoughts)
    if not _is_closed(schema):
        value = _plain_value(text)
        if schema.get("type") == "array" and isinstance(value, str):
            value = [match["item"] for match in map(_BULLET.fullmatch, text.split("\n")) if match is not None] or value
            value = (
                text
                if isinstance(value, list) and len(value) < len([line for line in text.split("\n") if line.strip()])
                else value
            )
        if isinstance(value, str) and not any(one.get("type") == "string" or not one for one in _branches(schema)):
            raise ParseError(f"the answer does not fit: the reply holds no JSON, got {text[:80]!r}.")
        answer = _fitted(value, kind, schema, fit)
        return Answer(answer, "text", len(speech), fit.repairs, [])
    value, notation = _answer_in(text, schema, kind)
    answer = _fitted(value, kind, schema, fit)
    is_bare = letters(text) == letters(str(value))
    repairs = [] if is_bare else [f"{text!r:.60} read as {value!r:.60}"]
    return Answer(answer, "bare value" if is_bare else notation, len(speech), repairs, [])


def _answer_in(text: str, schema: Mapping[str, Any], kind: Any) -> tuple[Any, str]:
    """Return the one value on offer that a text gives as its answer, and how it is written.

    It may be the text itself or a sentence; between tags; on a line that is labelled as the answer; or, of a long text,
    its first or its last sentence.

    Raises:
        ParseError: If there is none, or more than one.
    """
    tagged = {
        match["tagged"] or match["boxed"]
        for match in _TAGGED.finditer(text)
        if match["boxed"] or not (text[match.end() :] or text[: match.start()].rpartition("\n")[2].strip())
    }
    if len(tagged) == 1:
        return _meant(tagged.pop(), schema, kind), "tags"
    lines = text.split("\n")
    labelled = [
        (index, match["answer"])
        for index, line in enumerate(lines)
        if len(line) <= MAX_LINE and (match := _LABELLED.fullmatch(line)) is not None
    ]
    if labelled:
        index, answer = labelled[-1]
        after = "\n".join(lines[index + 1 :])
        if (
            not TAKEN_BACK.match(after)
            and not _answers_again(after, answer, schema, kind)
            and len({letters(answer) for _, answer in labelled}) == 1
        ):
            return _meant(answer, schema, kind), "labelled line"
        raise ParseError("the answer does not fit: it is given, and then spoken of again.")
    if len(text) <= MAX_OPTION:
        try:
            return _meant(text, schema, kind), "sentence"
        except ParseError as error:
            if len(lines) == 1 or error.kind == "OffList":
                raise
    return _meant_at_edge(text, schema, kind), "sentence"


def _answers_again(text: str, answer: str, schema: Mapping[str, Any], kind: Any) -> bool:
    """Check whether what follows an answer gives another one."""
    try:
        return _meant(text, schema, kind) != _meant(answer, schema, kind)
    except ParseError:
        return False


def _plain_value(text: str) -> Any:
    """Return the value of a text that is JSON; the text itself if it is not."""
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError):
        return text


def _branches(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the simple schemas that a schema is made of."""
    definitions = schema.get("$defs", {})
    queue: list[Mapping[str, Any]] = [schema]
    for _ in range(40):
        if not queue:
            return
        one = queue.pop(0)
        if isinstance(reference := one.get("$ref"), str):
            one = definitions.get(reference.rpartition("/")[2], {})
        parts = [*one.get("anyOf", ()), *one.get("oneOf", ()), *one.get("allOf", ())]
        queue += parts
        if not parts:
            yield one


def _is_closed(schema: Mapping[str, Any]) -> bool:
    """Check whether a type is a choice, a number or a truth value, and not any text."""
    return all(
        "enum" in one or "const" in one or one.get("type") in ("integer", "number", "boolean", "null")
        for one in _branches(schema)
    )


def _meant(text: str, schema: Mapping[str, Any], kind: Any) -> Any:
    """Return the one value on offer that a text means.

    Raises:
        ParseError: If it means none, or more than one.
    """
    found: list[Any] = []
    options: list[Any] = []
    for one in _branches(schema):
        own = cast("Sequence[Any]", one["enum"] if "enum" in one else [one["const"]] if "const" in one else ())
        options += own
        if one.get("type") in ("integer", "number") and not own:
            found += _numbers_meant(text, one, kind)
        elif one.get("type") == "boolean":
            found += [word in ("yes", "true") for word in meant(text, ["yes", "no", "true", "false"])]
        elif one.get("type") == "null" and letters(text) in ("null", "none"):
            found.append(None)
    found += meant(text, [option for option in options if isinstance(option, str | int | float)]) if options else []
    if len(found) == 1:
        return found[0]
    reason = "means more than one answer" if found else "holds no possible answer"
    possible = f"; possible: {', '.join(map(str, options[:30]))}" if options else ""
    kind_of_failure = "OffList" if found else "Unparsed"
    raise ParseError(f"the answer does not fit: {text[:80]!r} {reason}{possible}.", kind=kind_of_failure)


def _numbers_meant(text: str, schema: Mapping[str, Any], kind: Any) -> list[int | float]:
    """Return the number that a text gives as its answer, if it is on the scale."""
    maximum = schema.get("maximum")
    number = number_in(text, [maximum] if isinstance(maximum, int | float) else [])
    if number is None:
        numbers = re.findall(r"[+-]?\d+(?:\.\d+)?", text) if len(text) <= MAX_OPTION else []
        if len(numbers) != 1 or not sentence_answers(text, numbers):
            return []
        number = as_number(numbers[0])
    return [number] if _is_possible(number, kind) else []


def _meant_at_edge(text: str, schema: Mapping[str, Any], kind: Any) -> Any:
    """Return the answer that a long text begins or ends with, as a sentence or a line of its own.

    Raises:
        ParseError: If it does not, or begins with one and ends with another.
    """
    first = re.split(r"(?<=[.!?:])\s|\n", text, maxsplit=1)[0]
    last = re.split(r"(?<=[.!?:])\s|\n", text)[-1]
    found: list[Any] = []
    for edge in (last,) if TAKEN_BACK.match(text[len(first) :]) else (first, last):
        try:
            value = _meant(edge, schema, kind)
        except ParseError:
            continue
        is_whole = len(letters(edge)) > 1 or edge.strip() in text.split("\n")
        if is_whole and letters(edge) == letters(str(value)) and value not in found:
            found.append(value)
    if len(found) != 1:
        reason = "means more than one answer" if found else "holds no possible answer"
        raise ParseError(f"the answer does not fit: {text[:80]!r} {reason}.")
    return found[0]


def _is_possible(number: int | float, kind: Any) -> bool:
    try:
        adapter_of(kind).validate_python(number)
    except ValidationError:
        return False
    return True


def _lines(speech: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object that stand on lines of their own; empty if not one does.

    Raises:
        ParseError: If one stands there twice, with two values, or the lines are those of a scale.
    """
    properties = schema.get("properties", {})
    lines = [line for line in speech.split("\n") if line.strip() and len(line) <= MAX_LINE]
    if len(lines) == 1 and _INLINE.fullmatch(lines[0]):  # 1: 4, 2: 2, 3: 5
        lines = [f"{match['key']}: {match['value']}" for match in _INLINE_PAIR.finditer(lines[0])]
    if len(properties) > 1 and (
        row := re.fullmatch(r"[\s\[(]*([+-]?\d+(?:[\s,;]+[+-]?\d+)+)[\s\])]*\.?\s*", speech[:20_000])
    ):
        numbers = [as_number(number) for number in re.split(r"[\s,;]+", row[1])]
        if _is_row(cast("list[Any]", numbers), schema):
            return {str(index): number for index, number in enumerate(numbers, 1)}
    pairs = [_PAIR.fullmatch(line) for line in lines]
    matches = pairs if pairs and all(pairs) else [_FIELD.fullmatch(line) for line in lines]
    by_letters = letters_of(tuple(properties))
    fields: dict[str, Any] = {}
    for match in matches:
        if match is None or not match["value"].strip():
            continue
        key = letters(match["key"])
        name = by_letters.get(key) or next((one for one in Fit.item_names({key}) if one in properties), None)
        if name is None:
            continue
        value = _closed(match["value"].strip(), properties[name])
        if "enum" not in properties[name] and properties[name].get("type") not in ("integer", "number"):
            value = re.split(r"[:=|]", match[0], maxsplit=1)[-1].strip()
        if name in fields and fields[name] != value:
            raise ParseError(f"the answer does not fit: {name} is there twice.")
        fields[name] = value
    choices = [properties[name].get("enum") for name in properties]
    if choices and len(fields) > 2 and list(fields.values()) == choices[0]:
        raise ParseError("the answer does not fit: the reply lists the scale.")
    if fields and not all(choices) and len(fields) < len(lines):  # a text may go on on the next line
        raise ParseError("the answer does not fit: the reply holds no JSON object.")
    return fields


def _closed(value: str, schema: Mapping[str, Any]) -> str:
    """Return a value on a closed scale without the text of the item that a line may repeat before it."""
    allowed = schema.get("enum")
    if not allowed or meant(value, allowed):
        return value
    tail = _TAIL.fullmatch(value)
    return value if tail is None else tail["value"].strip()
