"""Objects and lists as language models write them: JSON, and what can be read as JSON without losing anything.

Nothing is guessed. A quotation mark of another kind, a comma too many, Python's `True`, a bare key and a comment are
read for what they are, and each is noted as a repair. A missing bracket, a key that occurs twice with two values, `NaN`
and an ellipsis are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from mesa_llm.llm.text import reason_text

UNREAD = "(unread)"
"""Name under which a transport passes on the arguments of a call that are no object, as they came."""

MAX_DEPTH = 60
"""Maximum depth of brackets."""

MAX_WORK = 400_000
"""Maximum number of characters that are read in one text, over all attempts at brackets that are no values."""

MAX_ATTEMPTS = 2_000
"""Maximum number of brackets in one text that are no values, and of those that are."""

MAX_LAYERS = 3
"""Maximum number of times that one value may be encoded within another: JSON in a string of JSON."""

_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "\u201e": "\u201c", "`": "`"}
"""Opening → closing quotation mark."""

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}
"""Letter after a backslash → its meaning."""

_CONSTANTS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
"""Words that are values."""

_NO_VALUES = frozenset({"NaN", "nan", "Infinity", "inf", "undefined"})
"""Words that look like values, and are none in JSON."""

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])")
_WORD = re.compile(r"[^\W\d][\w-]*")
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
_KEYWORD = re.compile(r"[\"']?([A-Za-z_]\w*)[\"']?\s*[=:](?!=)")
_OPENING = re.compile(r"[{[]")
_BRACKET = re.compile(r'[][{}]|"(?:[^"\\]|\\.)*"')
"""A bracket, or a string in which none counts."""

_PLAIN = {quote: re.compile(rf"[^\\\x00-\x1f{quote}]+") for quote in "\"'\u201d\u2019\u201c`"}
"""Closing quotation mark → characters of a string that stand for themselves."""

_LOOKS_BEGUN = re.compile(r"\{\s*(?:[\"'\u201c\u201e\\]|[\w-]+\s*[:=]|$)|\[\s*(?:[{\[\"\d-]|$)")
"""The beginning of an object or a list of them, rather than a bracket in a sentence."""

_FENCE = re.compile(r"\s*(```|~~~)[\w+-]*[ \t]*\n(.*?)\n?\s*\1\s*", re.DOTALL)


class Value(NamedTuple):
    """A value in a text."""

    value: Any
    """The object or list, as JSON values."""

    start: int
    """Index of its first character."""

    end: int
    """Index after its last character."""

    repairs: tuple[str, ...] = ()
    """What was read although JSON does not know it."""

    fault: str = ""
    """Why it cannot be used although it stands whole; empty: it can."""


class Values(NamedTuple):
    """The objects and lists of a text, none of them within another."""

    found: list[Value]
    """They, in order; none lies within what looks like an object and cannot be read."""

    broken: list[tuple[int, int]]
    """Where something begins and ends that looks like an object or a list, and cannot be read."""

    is_open: bool
    """Whether the text ends within one."""


class Unfinished(ValueError):
    """The text ended within a value."""


def values_in(text: str) -> Values:
    """Find the objects and lists in a text.

    Raises:
        ValueError: If the text holds more brackets than can be searched.
    """
    found: list[Value] = []
    broken: list[tuple[int, int]] = []
    position = work = attempts = 0
    is_open = False
    while (match := _OPENING.search(text, position)) is not None:
        start = match.start()
        position = start + 1
        if broken and start < broken[-1][1]:
            continue
        try:
            value = value_at(text, start)
        except ValueError as error:
            is_unfinished = isinstance(error, Unfinished)
            attempts += 1
            work += len(text) - start if is_unfinished else int(error.args[-1])
            if _LOOKS_BEGUN.match(text, start):
                is_open = is_open or is_unfinished
                broken.append((start, len(text) if is_unfinished else _end_of(text, start)))
        else:
            found.append(value)
            position = value.end
        if work > MAX_WORK or max(attempts, len(found)) > MAX_ATTEMPTS:
            raise ValueError(reason_text("too_many_brackets"))
    return Values(found, broken, is_open)


def _end_of(text: str, start: int) -> int:
    """Return the index after the bracket that closes the one at `start`; that of the text's end if none does."""
    depth = 0
    for match in _BRACKET.finditer(text, start):
        depth += (match[0] in "{[") - (match[0] in "}]")
        if depth <= 0 and match[0] in "}]":
            return match.end()
    return len(text)


def value_at(text: str, start: int) -> Value:
    """Read the object or list that begins at an index.

    Raises:
        Unfinished: If the text ends within it.
        ValueError: If it is neither JSON nor what can be read as JSON.
    """
    if text.startswith("{{{", start):  # more than doubled brackets: what has to be tried again at each of thousands
        raise ValueError(reason_text("no_value", text=text[start + 1 : start + 21]), 1)
    try:
        value, end = DECODER.raw_decode(text, start)
        if not _is_deep(text, start, end):
            return Value(value, start, end)
        raise ValueError(reason_text("too_deep", maximum=MAX_DEPTH), 1)
    except _DuplicateKey as error:
        fault = str(error)
    except (ValueError, RecursionError):
        fault = ""
    if text.startswith("{{", start) and (inner := _inner(text, start)) is not None:
        return inner
    reader = _Reader(text, start)
    value = reader.value()
    return Value(value, start, reader.position, tuple(dict.fromkeys(reader.repairs)), fault or reader.fault)


def _inner(text: str, start: int) -> Value | None:
    """Return the object in doubled brackets, as templates write them: `{{"a": 1}}`; None if there is none."""
    try:
        value = value_at(text, start + 1)
    except ValueError:
        return None
    if not text.startswith("}", value.end):
        return None
    return Value(
        value.value, start, value.end + 1, (*value.repairs, "doubled brackets read as single ones"), value.fault
    )


def read_value(text: str) -> Value:
    """Read a text that is one value and nothing else, also in a fence, or encoded as a string.

    Raises:
        ValueError: If it is something else; an `Unfinished` if it is the beginning of a value.
    """
    repairs: list[str] = []
    for _ in range(MAX_LAYERS):
        text, is_fenced = unfenced(text)
        repairs += ["fence removed"] if is_fenced else []
        try:
            if _is_deep(text, 0, len(text)):
                raise ValueError(reason_text("too_deep", maximum=MAX_DEPTH))
            value = DECODER.decode(text)
            read = Value(value, 0, len(text))
        except _DuplicateKey as error:
            return Value(None, 0, len(text), tuple(repairs), str(error))
        except (ValueError, RecursionError):
            reader = _Reader(text, 0)
            read = Value(reader.value(), 0, len(text), tuple(dict.fromkeys(reader.repairs)), reader.fault)
            reader.skip()
            if reader.position != len(text):
                raise ValueError(reason_text("more_follows")) from None
        repairs += read.repairs
        if not (isinstance(read.value, str) and read.value.lstrip()[:1] in ("{", "[", '"', "`")):
            return read._replace(repairs=tuple(repairs))
        text = read.value
        repairs.append("encoded twice")
    raise ValueError(reason_text("too_many_layers"))


def unfenced(text: str) -> tuple[str, bool]:
    """Return the content of a text that is one Markdown fence and nothing else, and whether it was one."""
    match = _FENCE.fullmatch(text)
    if match is None or match[1] in match[2]:
        return text.strip(), False
    return match[2].strip(), True


class Arguments(NamedTuple):
    """The arguments of a call in Python's notation."""

    positional: list[Any]
    """Those without a name."""

    named: dict[str, Any]
    """Those with one."""

    end: int
    """Index after the closing bracket."""

    repairs: tuple[str, ...]
    """What was read although Python does not know it."""

    fault: str
    """Why they cannot be used although they stand whole; empty: they can."""


def arguments_at(text: str, start: int) -> Arguments:
    """Read the arguments of a call in Python's notation, from its opening bracket on.

    Raises:
        Unfinished: If the text ends within them.
        ValueError: If they are something else, as prose in brackets is.
    """
    reader = _Reader(text, start)
    positional, named = reader.arguments()
    repairs = tuple(repair for repair in dict.fromkeys(reader.repairs) if repair not in _PYTHONIC)
    return Arguments(positional, named, reader.position, repairs, reader.fault)


_PYTHONIC = frozenset({"Python's constant read as JSON's", "quotation marks replaced", "tuple read as a list"})
"""Repairs of JSON that are none in Python's notation."""


def _is_deep(text: str, start: int, end: int) -> bool:
    """Check whether a value is nested deeper than is read; strings are not looked into, as this is rare."""
    if text.count("{", start, end) + text.count("[", start, end) <= MAX_DEPTH:
        return False
    depth = 0
    for match in _BRACKET.finditer(text, start, end):
        depth += (match[0] in "{[") - (match[0] in "}]")
        if depth > MAX_DEPTH:
            return True
    return False


class _DuplicateKey(ValueError):
    """A key that occurs twice, with two values."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        for key, value in pairs:
            if not _is_same(fields[key], value):
                raise _DuplicateKey(reason_text("key_twice", name=key[:80]))
    return fields


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def _no_constant(name: str) -> NoReturn:
    raise ValueError(reason_text("no_json", name=name))


DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_pairs)
"""Reads JSON; a ValueError for NaN and infinities, and for a key that occurs twice with two values."""


class _Reader:
    """Reads one value; `position` is where it stands in the text."""

    def __init__(self, text: str, position: int) -> None:
        self.text, self.start, self.position = text, position, position
        self.repairs: list[str] = []
        self.fault = ""
        self._depth = 0

    def value(self, *, allows_words: bool = False) -> Any:
        """Read a value.

        Args:
            allows_words: Whether a bare word is a text, as in an object whose keys are bare as well.

        Raises:
            Unfinished: If the text ends within it.
            ValueError: If it is none.
        """
        self.skip()
        sign = self._next()
        if sign == "{":
            return self._nested(self._object)
        if sign in "[(":
            return self._nested(lambda: self._list("]" if sign == "[" else ")"))
        if sign in _QUOTES:
            return self._string()
        if (number := _NUMBER.match(self.text, self.position)) is not None:
            self.position = number.end()
            return self._number(number[0])
        return self._word(allows_words)

    def skip(self) -> None:
        """Skip white space and comments."""
        while self.position < len(self.text):
            if self.text[self.position] in " \t\r\n\xa0":
                self.position += 1
            elif (comment := _COMMENT.match(self.text, self.position)) is not None:
                self.position = comment.end()
                self.repairs.append("comment dropped")
            elif self.text.startswith("/*", self.position):
                raise Unfinished(reason_text("in_comment"))
            else:
                return

    def _next(self) -> str:
        if self.position >= len(self.text):
            raise Unfinished(reason_text("in_value"))
        return self.text[self.position]

    def _fail(self) -> NoReturn:
        raise ValueError(
            reason_text("no_value", text=self.text[self.position : self.position + 20]), self.position - self.start
        )

    def _nested(self, read: Any) -> Any:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail()
        self.position += 1
        value = read()
        self._depth -= 1
        return value

    def _object(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for _ in self._members("}"):
            key = self._key()
            self.skip()
            if self._next() not in ":=":
                self._fail()
            if self.text[self.position] == "=":
                self.repairs.append("= read as :")
            self.position += 1
            value = self.value(allows_words=True)
            if key in fields and not _is_same(fields[key], value):
                self.fault = reason_text("key_twice", name=key[:80])
            fields[key] = value
        return fields

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Read the arguments of a call, by position and by name."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        self.position += 1
        for _ in self._members(")"):
            name = _KEYWORD.match(self.text, self.position)
            if name is None:
                if named:
                    self._fail()
                positional.append(self.value())
                continue
            self.position = name.end()
            value = self.value(allows_words=True)
            if name[1] in named and not _is_same(named[name[1]], value):
                self.fault = reason_text("argument_twice", name=name[1])
            named[name[1]] = value
        return positional, named

    def _list(self, closing: str) -> list[Any]:
        if closing == ")":
            self.repairs.append("tuple read as a list")
        return [self.value() for _ in self._members(closing)]

    def _members(self, closing: str) -> Iterator[None]:
        """Yield before each member of an object or a list, and read commas and the closing bracket in between."""
        has_comma = True
        while True:
            self.skip()
            if self._next() == closing:
                self.position += 1
                return
            if not has_comma:
                self._fail()
            yield
            self.skip()
            has_comma = self._next() == ","
            if has_comma:
                self.position += 1
                self.skip()
                if self._next() == closing:
                    self.repairs.append("trailing comma dropped")

    def _key(self) -> str:
        if self._next() in _QUOTES:
            return self._string()
        word = re.compile(r"[\w-]+").match(self.text, self.position)
        if word is None:
            self._fail()
        self.position = word.end()
        self.repairs.append("bare key quoted")
        return word[0]

    def _string(self) -> str:
        opening = self.text[self.position]
        closing = _QUOTES[opening]
        if opening != '"':
            self.repairs.append("quotation marks replaced")
        parts: list[str] = []
        position = self.position + 1
        while True:
            if position >= len(self.text):
                raise Unfinished(reason_text("in_string"))
            sign = self.text[position]
            if sign == closing:
                self.position = position + 1
                return "".join(parts)
            if sign == "\\":
                part, position = self._escape(position)
                parts.append(part)
                continue
            if (plain := _PLAIN[closing].match(self.text, position)) is not None:
                parts.append(plain[0])
                position = plain.end()
                continue
            self.repairs.append("control character in a string kept")
            parts.append(sign)
            position += 1

    def _escape(self, position: int) -> tuple[str, int]:
        """Return the character that a backslash stands for, and the index after it."""
        sign = self.text[position + 1 : position + 2]
        if not sign:
            raise Unfinished(reason_text("in_string"))
        if sign == "u":
            digits = self.text[position + 2 : position + 6]
            if len(digits) < 4:
                raise Unfinished(reason_text("in_string"))
            try:
                letter = json.loads(f'"{self.text[position : position + 12]}"') if digits[:1] in "dD" else None
            except ValueError:
                letter = None
            if letter is not None and len(letter) == 1:
                return letter, position + 12
            try:
                return chr(int(digits, 16)), position + 6
            except ValueError:
                self.position = position
                self._fail()
        if sign not in _ESCAPES and sign not in "_*":
            self.position = position
            self._fail()
        if sign not in '"\\/bfnrt':
            self.repairs.append("needless backslash dropped")
        return _ESCAPES.get(sign, sign), position + 2

    def _number(self, text: str) -> int | float:
        if re.match(r"[+-]?0\d", text):  # a code, such as a postal one: as a number it would lose its zeros
            self._fail()
        if not re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", text):
            self.repairs.append("number rewritten")
        try:
            number = int(text) if re.fullmatch(r"[+-]?\d{1,4000}", text) else float(text)
        except ValueError:
            self._fail()
        if number in (float("inf"), float("-inf")):
            self._fail()
        return number

    def _word(self, allows_words: bool) -> Any:
        word = _WORD.match(self.text, self.position)
        if word is None or word[0] in _NO_VALUES:
            self._fail()
        if word[0] in _CONSTANTS:
            if word[0] not in ("true", "false", "null"):
                self.repairs.append("Python's constant read as JSON's")
            value: Any = _CONSTANTS[word[0]]
        elif allows_words:
            value = word[0]
            self.repairs.append("bare word quoted")
        else:
            self._fail()
        self.position = word.end()
        if self.position >= len(self.text):
            raise Unfinished(reason_text("in_value"))
        return value
