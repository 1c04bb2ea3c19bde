"""Answers in prose: fields on lines of their own, one value between tags or on a labelled line, or a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from mesa_llm.engine.reading.answers import Answer, adapter_of, bare_schema, fitted, is_row
from mesa_llm.engine.reading.coercion import (
    MAX_OPTION,
    TAKEN_BACK,
    Coercion,
    as_number,
    letters,
    letters_of,
    meant,
    number_in,
    sentence_answers,
)
from mesa_llm.engine.text import reason_text
from mesa_llm.errors import ParseError
from mesa_llm.llm.lenient_json import DECODER, unfenced

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


def prose_answer(speech: str, kind: object) -> Answer:
    """Read an answer that is not an object: lines, one value, or a sentence.

    Raises:
        ParseError: If there is none, or it is ambiguous.
    """
    schema = bare_schema(kind)
    text = unfenced(speech)[0]
    if not text:
        raise ParseError(reason_text("empty"))
    fit = Coercion(schema.get("$defs"))
    if schema.get("type") == "object":
        fields = _lines(speech, schema)
        if not fields:
            raise ParseError(reason_text("no_json_object"))
        return Answer(fitted(fields, kind, schema, fit), "lines", len(speech), fit.repairs, fit.thoughts)
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
            raise ParseError(reason_text("no_json", text=text[:80]))
        answer = fitted(value, kind, schema, fit)
        return Answer(answer, "text", len(speech), fit.repairs, [])
    value, notation = _answer_in(text, schema, kind)
    answer = fitted(value, kind, schema, fit)
    is_bare = letters(text) == letters(str(value))
    repairs = [] if is_bare else [f"{text!r:.60} read as {value!r:.60}"]
    return Answer(answer, "bare value" if is_bare else notation, len(speech), repairs, [])


def _answer_in(text: str, schema: Mapping[str, Any], kind: object) -> tuple[Any, str]:
    """Return the one possible value that a text gives as its answer, and how it is written.

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
        raise ParseError(reason_text("spoken_of_again"))
    if len(text) <= MAX_OPTION:
        try:
            return _meant(text, schema, kind), "sentence"
        except ParseError as error:
            if len(lines) == 1 or error.kind == "OffList":
                raise
    return _meant_at_edge(text, schema, kind), "sentence"


def _answers_again(text: str, answer: str, schema: Mapping[str, Any], kind: object) -> bool:
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


def _meant(text: str, schema: Mapping[str, Any], kind: object) -> Any:
    """Return the one possible value that a text means.

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
    refusals = ("ambiguous_choice", "off_list_choice") if options else ("ambiguous", "off_list")
    possible = ", ".join(map(str, options[:30]))
    kind_of_failure = "OffList" if found else "Unparsed"
    raise ParseError(reason_text(refusals[0 if found else 1], text=text[:80], possible=possible), kind=kind_of_failure)


def _numbers_meant(text: str, schema: Mapping[str, Any], kind: object) -> list[int | float]:
    """Return the number that a text gives as its answer, if it is on the scale."""
    maximum = schema.get("maximum")
    number = number_in(text, [maximum] if isinstance(maximum, int | float) else [])
    if number is None:
        numbers = re.findall(r"[+-]?\d+(?:\.\d+)?", text) if len(text) <= MAX_OPTION else []
        if len(numbers) != 1 or not sentence_answers(text, numbers):
            return []
        number = as_number(numbers[0])
    return [number] if _is_possible(number, kind) else []


def _meant_at_edge(text: str, schema: Mapping[str, Any], kind: object) -> Any:
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
        raise ParseError(reason_text("ambiguous" if found else "off_list", text=text[:80]))
    return found[0]


def _is_possible(number: int | float, kind: object) -> bool:
    try:
        adapter_of(kind).validate_python(number)
    except ValidationError:
        return False
    return True


def _lines(speech: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object that stand on lines of their own; empty if none does.

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
        if is_row(cast("list[Any]", numbers), schema):
            return {str(index): number for index, number in enumerate(numbers, 1)}
    pairs = [_PAIR.fullmatch(line) for line in lines]
    matches = pairs if pairs and all(pairs) else [_FIELD.fullmatch(line) for line in lines]
    by_letters = letters_of(tuple(properties))
    fields: dict[str, Any] = {}
    for match in matches:
        if match is None or not match["value"].strip():
            continue
        key = letters(match["key"])
        name = by_letters.get(key) or next((one for one in Coercion.item_names({key}) if one in properties), None)
        if name is None:
            continue
        value = _closed(match["value"].strip(), properties[name])
        if "enum" not in properties[name] and properties[name].get("type") not in ("integer", "number"):
            value = re.split(r"[:=|]", match[0], maxsplit=1)[-1].strip()
        if name in fields and fields[name] != value:
            raise ParseError(reason_text("twice", name=name))
        fields[name] = value
    choices = [properties[name].get("enum") for name in properties]
    if choices and len(fields) > 2 and list(fields.values()) == choices[0]:
        raise ParseError(reason_text("scale"))
    if fields and not all(choices) and len(fields) < len(lines):  # a text may go on on the next line
        raise ParseError(reason_text("no_json_object"))
    return fields


def _closed(value: str, schema: Mapping[str, Any]) -> str:
    """Return a value on a closed scale without the text of the item that a line may repeat before it."""
    allowed = schema.get("enum")
    if not allowed or meant(value, allowed):
        return value
    tail = _TAIL.fullmatch(value)
    return value if tail is None else tail["value"].strip()
