"""Finds calls of tools and actions in a text, in the notations that language models write them in.

Objects are recognised by their fields, all other notations by the name of something on offer with its arguments after
it: in brackets, as an object, between tags, or line by line.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from mesa_llm.engine.reading.coercion import CONTRAST, NEGATION, TAKEN_BACK, THOUGHT_KEYS, letters
from mesa_llm.engine.text import reason_text
from mesa_llm.errors import ParseError
from mesa_llm.llm.lenient_json import UNREAD, Unfinished, Value, Values, arguments_at, read_value, value_at, values_in
from mesa_llm.records import ToolSpec

MAX_NAMED = 200
"""Maximum number of times that a reply may name what is on offer outside of objects."""

MAX_LINE = 400
"""Maximum number of characters before a name on its line that are looked at."""

MAX_NAMESPACES = 4
"""Maximum number of namespaces before a name."""

MAX_CALLS = 20
"""Maximum number of calls of one reply that are read."""

_NAME_KEYS = ("action", "name", "tool", "tool_name", "function", "function_name", "recipient_name", "command", "type")
"""Fields that name what is called, the likeliest first."""

_ARGUMENT_KEYS = (
    "arguments",
    "parameters",
    "args",
    "params",
    "input",
    "inputs",
    "action_input",
    "tool_input",
    "action_arguments",
    "kwargs",
    "arguments_json",
)
"""Fields that hold the arguments."""

_LIST_KEYS = ("actions", "tool_calls", "calls", "function_calls", "tools", "tool_uses")
"""Fields that hold several calls."""

_CALL_KEYS = ("function", "function_call", "tool_call", "call", "tool_use", "action")
"""Fields that hold one call as an object."""

_HOLDERS = frozenset(
    {
        *map(letters, (*_LIST_KEYS, *_CALL_KEYS)),
        "decision",
        "finaldecision",
        "final",
        "finalaction",
        "finalanswer",
        "answer",
    }
    | {"response", "output", "result", "choice", "message", "nextaction", "chosenaction", "decisions", "data"}
)
"""Fields in which the call is what is decided, and not an example or an alternative."""

_IGNORED_KEYS = frozenset({"id", "type", "call_id", "tool_call_id", "index", "recipient"})
"""Fields of a call that say nothing about it."""

_NAMESPACE = re.compile(
    r"\A(?:to=)?(?:functions?|tools?|actions?|default_api|api|multi_tool_use|namespace|calls?)[./:]+",
    re.IGNORECASE,
)
"""What some models write before the name of a tool."""

_AROUND = re.compile(r"\A[\s\"'`*]+|(?::\d{1,4})?(?:\(\s*\))?[\s\"'`*]*\Z")
"""What some write around it: quotation marks, the number of the call (`functions.vote:0`), empty brackets."""

_CONNECTOR = re.compile(
    r"(?::\d{1,4}\b|[\s\"'`:>=,\])*|-]|<[^<>{}]{0,80}>|\[ARGS\]|\[CALL_ID\]\w{0,20}|"
    r"\u273f\w{1,12}\u273f|\b(?:json|args|arguments?|parameters?|params|inputs?|action|tool|with|and|the|code)\b)*",
    re.IGNORECASE,
)
"""What may stand between the name of a tool and the object of its arguments."""

_SPACE = r"(?:[^<>\s/=\"']{0,20}[:\uff5c])?"
_PARAMETER = re.compile(
    rf"\s*<{_SPACE}(?:parameter|param|arg|argument)(?:=|\s+name\s*=\s*)[\"']?(?P<key>[\w.-]{{1,64}})[\"']?"
    r"(?:\s[^<>]{0,80})?>(?P<value>.*?)</[^<>]{0,30}(?:parameter|param|argument|arg)>"
    r"|\s*<(?:\w{1,20}_)?arg_key>\s*(?P<key2>[\w.-]{1,64})\s*</(?:\w{1,20}_)?arg_key>"
    r"\s*<(?:\w{1,20}_)?arg_value>(?P<value2>.*?)</(?:\w{1,20}_)?arg_value>"
    r"|\s*<(?P<key3>[\w.-]{1,64})>(?P<value3>.*?)</(?P=key3)>",
    re.DOTALL,
)
"""One argument between tags."""

_OPENING_TAG = re.compile(
    rf"<{_SPACE}(?:function|tool|invoke|tool_call|call|action|tool_use|function_call)(?:=|\s+name\s*=\s*|\()?[\"']?"
    r"(?:functions?\.)?\Z|<(?:\w{1,20}[_:])?(?:tool_call|function_call|tool|action|invoke)>\s*\Z|<\Z"
)
"""What stands before a name in a tag."""

_NULLS = frozenset({"null", "None"})
"""How an argument that may be left out is left out where values have no quotation marks."""

_CLOSING_TAG = re.compile(r"\s*</?[^<>{}]{0,60}>")

_LABEL = re.compile(
    r"(?:\A[\W\d]{0,20}|[.!?;,]\s+)(?:(?:my|the|final|next|chosen|so)\s+){0,4}"
    r"(?:action|tool|function|call|decision|choice|move|i choose)\s*(?:to take)?\s*\*{0,2}\s*(?:[:=]|\bis\b)\W{0,10}\Z",
    re.IGNORECASE,
)
"""What stands before a name on a line of its own."""

_LINE = re.compile(
    r"[ \t]{0,8}(?:[-*\u2022][ \t]{1,4})?[\"'`*]{0,3}(?P<key>\w[\w .-]{0,63}?)[\"'`*]{0,3}[ \t]{0,4}[:=][ \t]{0,8}"
    r"(?P<value>[^\n]*)(?:\n|\Z)"
)

_UNKNOWN = re.compile(
    rf"<{_SPACE}(?:function|invoke)(?:=|\s+name\s*=\s*)[\"']?(?P<name>[\w.-]{{1,64}})"
    r"|(?:\A|\n)[ \t]{0,8}(?:Action|Tool)[ \t]{0,8}:[ \t]{0,8}(?P<line>[\w.-]{1,64})[ \t]{0,8}"
    r"\n\s{0,8}(?:Action Input|Arguments)\s{0,8}:"
)
"""Calls by tags or lines, whatever they name."""

_BETWEEN = re.compile(
    r"<[^<>]{0,80}>|\b(?:and|then|also|next|first|second|third|finally|step|json|tool_code|python|print|action|actions|"
    r"input|call|tool|thought|observation|or|either|alternatively|vs)\b|(?m:^)\s*\d{1,2}[.)]|[\W_]",
    re.IGNORECASE,
)
"""What may stand between two calls that belong together."""


_CHOICE = re.compile(r"\b(?:or|either|alternatively|vs|versus)\b", re.IGNORECASE)
"""Words between calls of which only one is meant."""


class Call(NamedTuple):
    """One call in a text."""

    name: str
    """Name of what is called, as it is on offer; empty if nothing of this name is."""

    written: str
    """The name, as it was written."""

    arguments: dict[str, Any]
    """The arguments by name."""

    start: int
    """Index of its first character."""

    end: int
    """Index after its last character."""

    notation: str
    """How it was written."""

    repairs: tuple[str, ...] = ()
    """What was mended."""

    fault: str = ""
    """Why it cannot be used although it stands whole; empty: it can."""


_ESCAPED = re.compile(r'<\|"\|>(.*?)<\|"\|>|<escape>(.*?)<escape>', re.DOTALL)
"""A string between the marks that Gemma's calls have in place of quotation marks."""

_NEXT_TURN = re.compile(
    r"\n[ \t]{0,8}(?:User|Human|Assistant|Observation|Tool|Tool result|Result)\s*:|<tool_response>"
    r"|(?<=[)}\]>])(?:assistant|user)\s*\n"
)
"""The beginning of a turn that the model makes up: the answer of a tool, or somebody else's words."""

_NOT_RUN = re.compile(r"\A\W*(?:def|if|elif|else|while|for|class|lambda)\b|\bunless\b|#|//|<!--|~~", re.IGNORECASE)
"""What stands before a call on its line that is not made."""

UNCLEAR = object()
"""Stands for the arguments of an object that names two tools, or holds two sets of arguments."""


class Offers:
    """What may be called now, by name."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        """Index the names.

        Args:
            specs: The tools and actions on offer.
        """
        self.parameters = {spec.name: list(spec.parameters.get("properties", ())) for spec in specs}
        self.required = {spec.name: spec.parameters.get("required", ()) for spec in specs}
        by_letters: dict[str, list[str]] = {}
        for name in self.parameters:
            by_letters.setdefault(letters(name), []).append(name)
        self._by_letters = {key: names[0] for key, names in by_letters.items() if len(names) == 1 and key}
        names = sorted(self.parameters, key=len, reverse=True)
        words = ["[_ -]?".join(map(re.escape, re.split(r"[_ -]", name))) for name in names]
        self.pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(words) or '(?!)'})(?![\w-])", re.IGNORECASE)

    def resolve(self, written: str) -> str:
        """Return the name on offer that a written one means; empty if there is none."""
        if written in self.parameters:
            return written
        name = written.partition("<|")[0].strip()
        for _ in range(MAX_NAMESPACES):
            for one in (name, _AROUND.sub("", name)):
                if one in self.parameters:
                    return one
                if found := self._by_letters.get(letters(one)):
                    return found
            if name == (name := _NAMESPACE.sub("", _AROUND.sub("", name))):
                return ""
        return ""


@lru_cache(maxsize=1024)
def offers_of(specs: tuple[ToolSpec, ...]) -> Offers:
    """Return what may be called; cached, as many agents are offered the same."""
    return Offers(specs)


def calls_in(speech: str, offers: Offers) -> list[Call]:
    """Return the calls that a text ends with: the last one on offer, with those that belong to it.

    Raises:
        ParseError: If it names no call on offer, or is ambiguous: it ends within a call, its last one cannot be read,
            or is of something that is not on offer.
    """
    speech = _ESCAPED.sub(lambda match: json.dumps(match[1] or match[2] or ""), speech)
    values, speech = _values(speech)
    calls = sorted(_every_call(speech, values, offers), key=lambda call: (call.end, call.start))
    if (turn := _next_turn(speech, calls, values)) >= 0 and any(call.end <= turn for call in calls):
        calls = [call for call in calls if call.end <= turn]
        values = values._replace(broken=[span for span in values.broken if span[1] <= turn], is_open=False)
        speech = speech[:turn]
    last_end = calls[-1].end if calls else -1
    broken = [
        span
        for span in values.broken
        if span[1] > last_end and not any(call.start <= span[0] < call.end for call in calls)
    ]
    if broken and (values.is_open or calls or _names_a_call(speech[broken[-1][0] : broken[-1][1]], offers)):
        refusal = "cut_object" if values.is_open else "broken_object"
        raise ParseError(reason_text(refusal, text=speech[broken[-1][0] :][:80]))
    if not calls:
        return []
    group = [calls[-1]]
    for call in reversed(calls[:-1]):
        between = speech[call.end : group[-1].start]
        if _BETWEEN.sub("", between) and not ("</tool_call>" in between and "<tool_call>" in between):
            break
        group.append(call)
    group.reverse()
    _require_meant(group, calls, speech)
    for call in group:
        require_usable(call, offers.parameters)
    return group[:MAX_CALLS]


def require_usable(call: Call, names: Iterable[str]) -> None:
    """Check that a call is of something on offer, and that its arguments could be read.

    Args:
        call: The call.
        names: Names of what is on offer.

    Raises:
        ParseError: If it is not.
    """
    if not call.name:
        known = ", ".join(names)
        raise ParseError(reason_text("no_tool" if known else "no_tools", name=call.written[:80], known=known))
    if call.fault:
        raise ParseError(reason_text("call_fault", tool=call.name, fault=call.fault))


def line_before(text: str, index: int) -> str:
    """Return what stands before an index on its line."""
    return text[text.rfind("\n", 0, index) + 1 : index]


def _require_meant(group: Sequence[Call], calls: Sequence[Call], speech: str) -> None:
    """Check that a call is made, and not just mentioned.

    Raises:
        ParseError: If it is one of several to choose from, is taken back after it, or stands in a sentence that negates
            it or speaks of another one as well.
    """
    first, last = group[0], group[-1]
    between = " ".join(speech[one.end : other.start] for one, other in itertools.pairwise(group))
    head = line_before(speech, first.start)[-MAX_LINE:]
    if len(group) > 1 and _CHOICE.search(f"{head} {between}"):
        raise ParseError(reason_text("several_calls", count=len(group)))
    before = head if len(group) > 1 else re.sub(r"[\w.]+[.:]\Z", "", head)  # without the namespace of a tool
    after = speech[last.end :]
    rest = after.partition("\n")[0]
    is_before, is_after = (re.search(r"\w", _BETWEEN.sub("", part)) is not None for part in (before, rest))
    others = {(call.name, repr(call.arguments)) for call in calls} - {(one.name, repr(one.arguments)) for one in group}
    is_called = last.notation != "Python call" or (
        not _NOT_RUN.search(before)
        and not (others and (is_before or is_after))
        and not NEGATION.search(f"{before} {rest}")
        and (not is_before or _OWN.search(before) is not None)
    )
    is_inside = is_before and is_after and last.notation == "JSON"
    is_announced = _OWN.search(before) is not None or re.search(r"[:!.][\s`*]*\Z", before) is not None
    is_unclear = not is_called or (is_inside and not is_announced)
    if is_unclear or TAKEN_BACK.match(after) or CONTRAST.search(rest):
        raise ParseError(reason_text("not_decided", tool=last.written))


_OWN = re.compile(
    r"\b(?:i|my|me|let|so|therefore|thus|action|decision|choice|answer|call|final|next|here|do|now)\b|\A\W*\Z",
    re.IGNORECASE,
)
"""Words that say whose call it is, where one stands in a sentence."""


def _next_turn(speech: str, calls: Sequence[Call], values: Values) -> int:
    """Return where a turn begins that the model makes up, outside of values and calls; -1: nowhere."""
    taken = [(call.start, call.end) for call in calls] + [(value.start, value.end) for value in values.found]
    for match in _NEXT_TURN.finditer(speech):
        if not any(start <= match.start() < end for start, end in taken):
            return match.start()
    return -1


def _names_a_call(text: str, offers: Offers) -> bool:
    return offers.pattern.search(text) is not None or re.search(r"action|tool|function|arguments", text) is not None


def _values(speech: str) -> tuple[Values, str]:
    """Find the objects and lists of a speech, which may be the string of another JSON text."""
    try:
        if speech.startswith('"'):
            value = read_value(speech)
            if isinstance(value.value, dict | list):
                return Values([value], [], is_open=False), " " * len(speech)
        return values_in(speech), speech
    except Unfinished:
        return Values([], [(0, len(speech))], is_open=True), speech
    except ValueError as error:
        if speech.startswith('"'):
            return values_in(speech), speech
        raise ParseError(f"{error}.") from None


def _every_call(speech: str, values: Values, offers: Offers) -> Iterator[Call]:
    """Yield all calls of a text, in no order; none lies within another, or within what cannot be read."""
    if len(values.found) == 1 and not speech[: values.found[0].start].strip() and values.found[0].end == len(speech):
        yield from _calls_of(values.found[0], offers)
        return
    named = list(_named_calls(speech, values, offers))
    yield from named
    for value in values.found:
        if not any(call.start <= value.start < call.end for call in named):
            yield from _calls_of(value, offers)
    for match in _UNKNOWN.finditer(speech):
        written = match["name"] or match["line"]
        if not offers.resolve(written) and not any(call.start <= match.start() < call.end for call in named):
            yield Call("", written, {}, match.start(), match.end(), "tags")


# -- objects


def _calls_of(value: Value, offers: Offers) -> Iterator[Call]:
    """Yield the calls that an object or a list holds."""
    for written, arguments in _calls_within(value.value, offers, 0):
        fields, repairs, fault = _arguments_of(arguments)
        name = offers.resolve(written)
        repairs = (*value.repairs, *(_renamed(written, name)), *repairs)
        yield Call(name, written, fields, value.start, value.end, "JSON", repairs, value.fault or fault)


def _renamed(written: str, name: str) -> tuple[str, ...]:
    return (f"{written[:60]!r} read as {name!r}",) if name and written != name else ()


def _calls_within(value: object, offers: Offers, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the name and the arguments of each call in a value, as they are written."""
    if depth > 4:
        return
    if isinstance(value, list):
        for item in cast("list[Any]", value)[:MAX_CALLS]:
            yield from _calls_within(item, offers, depth + 1)
        return
    if not isinstance(value, dict):
        return
    fields = cast("dict[str, Any]", value)
    own = _own_call(fields, offers)
    if own is not None:
        yield own
        return
    for key, inner in fields.items():
        if letters(key) in _HOLDERS and isinstance(inner, dict | list):
            yield from _calls_within(inner, offers, depth + 1)


def _own_call(fields: dict[str, Any], offers: Offers) -> tuple[str, Any] | None:
    """Return the name and the arguments of the call that an object is; None if it is none."""
    if any(isinstance(fields.get(key), list) for key in _LIST_KEYS):
        return None
    if "description" in fields and not any("description" in names for names in offers.parameters.values()):
        return None  # the tool as it was described
    unknown: tuple[str, Any] | None = None
    named = {offers.resolve(fields[key]) for key in _NAME_KEYS if isinstance(fields.get(key), str)} - {""}
    held = [fields[key] for key in _ARGUMENT_KEYS if key in fields]
    if len(named) > 1 or any(other != held[0] for other in held):
        return " or ".join(sorted(named)) or "a tool", UNCLEAR
    for key in _NAME_KEYS:
        written = fields.get(key)
        if not isinstance(written, str):
            continue
        arguments = next((fields[name] for name in _ARGUMENT_KEYS if name in fields), None)
        has_arguments = any(name in fields for name in _ARGUMENT_KEYS)
        if name := offers.resolve(written):
            if has_arguments:
                return written, arguments
            ignored = {key, *_IGNORED_KEYS} - set(offers.parameters[name])
            return written, {other: value for other, value in fields.items() if other not in ignored}
        if unknown is None and (key == "action" or (isinstance(arguments, dict) and key != "type")):
            unknown = written, {}
    inner = [key for key in fields if offers.resolve(key) and not isinstance(fields[key], list)]
    rest = [key for key in fields if key not in inner and letters(key) not in THOUGHT_KEYS]
    if len(inner) == 1 and not rest and isinstance(fields[inner[0]], dict | str | None):
        return inner[0], fields[inner[0]]
    if unknown is not None and any(isinstance(fields.get(key), dict) for key in _CALL_KEYS):
        return None
    return unknown


def _arguments_of(value: object) -> tuple[dict[str, Any], tuple[str, ...], str]:
    """Return arguments by name, what was mended, and why they cannot be used."""
    repairs: tuple[str, ...] = ()
    if value is UNCLEAR:
        return {}, (), reason_text("unclear_call")
    if isinstance(value, str) and value.strip():
        try:
            read = read_value(value)
        except ValueError:
            read = _repeated(value)
        if read is None:
            return {}, (), reason_text("no_arguments", text=repr(value[:80]))
        if read.fault:
            return {}, (), read.fault
        value, repairs = read.value, ("arguments in a string read", *read.repairs)
    if value is None or value == "" or value == []:
        return {}, repairs, ""
    if isinstance(value, list) and len(cast("list[Any]", value)) == 1 and isinstance(value[0], dict):
        value, repairs = value[0], (*repairs, "list of one object read as the object")
    if not isinstance(value, dict):
        return {}, (), reason_text("no_arguments", text=f"{value!r:.80}")
    return cast("dict[str, Any]", value), repairs, ""


def _repeated(text: str) -> Value | None:
    """Read arguments that a server has put together from several objects; None if the text is anything else.

    They are those that are there twice. An empty object beside one that is not says nothing: it is how some servers
    begin. Others contradict each other, and are a fault.
    """
    try:
        values, _ = _values(text)
    except ParseError:
        return None
    rest = text
    for value in reversed(values.found):
        rest = rest[: value.start] + rest[value.end :]
    if len(values.found) < 2 or values.broken or rest.strip(" \t\r\n,;"):
        return None
    said = [value for value in values.found if value.value] or values.found[:1]
    if any(repr(value.value) != repr(said[0].value) or value.fault for value in said):
        return said[0]._replace(fault=reason_text("several_arguments", count=len(said)))
    return said[0]._replace(repairs=(*said[0].repairs, "the same arguments twice"))


def native(written: str, arguments: Mapping[str, Any], offers: Offers) -> Call:
    """Read a call that the endpoint has recognised.

    Args:
        written: Name of the tool.
        arguments: Its arguments, or under `UNREAD` what could not be read as an object.
        offers: What may be called.
    """
    name = offers.resolve(written)
    value: Any = arguments.get(UNREAD, arguments)
    fields, repairs, fault = _arguments_of(value)
    return Call(name, written, fields, 0, 0, "tool call", (*_renamed(written, name), *repairs), fault)


# -- names with arguments after them


def _named_calls(speech: str, values: Values, offers: Offers) -> Iterator[Call]:
    """Yield the calls that are no objects: a name on offer, and its arguments after it."""
    taken = [(value.start, value.end) for value in values.found] + values.broken
    is_call = {value.start: next(_calls_of(value, offers), None) is not None for value in values.found}
    position = 0
    for _ in range(MAX_NAMED):
        if (match := offers.pattern.search(speech, position)) is None:
            return
        position = match.end()
        if any(start <= match.start() < end for start, end in taken):
            continue
        name = offers.resolve(match[0])
        head = line_before(speech, match.start())[-MAX_LINE:]
        if re.search(r"\w[.:]\Z", head) and not _NAMESPACE.search(re.split(r"[^\w.:/=]", head)[-1]):
            continue
        call = name and _named_call(speech, match, name, offers, is_call)
        if call:
            position = max(position, call.end)
            yield call
    if offers.pattern.search(speech, position) is not None:
        raise ParseError(reason_text("too_many_names", maximum=MAX_NAMED))


def _named_call(
    speech: str, match: re.Match[str], name: str, offers: Offers, is_call: Mapping[int, bool]
) -> Call | None:
    written, start, end = match[0], match.start(), match.end()
    renamed = _renamed(written, name)
    if (bracket := re.compile(r"\(|\s\((?=\s*\w+\s*=)").match(speech, end)) is not None:
        call = _python_call(speech, match, bracket.end() - 1, name, offers)
        if call is not None:
            return call
    before = speech[max(0, start - 80) : start]
    tag = _OPENING_TAG.search(before)
    connector = _CONNECTOR.match(speech, end)
    after = connector.end() if connector is not None else end
    if speech.startswith("{", after) and not is_call.get(after):
        try:
            value = value_at(speech, after)
        except ValueError as error:
            is_open = isinstance(error, Unfinished)
            fault = reason_text("cut_arguments" if is_open else "broken_arguments", text=speech[after:][:80])
            return Call(name, written, {}, start, len(speech) if is_open else after + 1, "name and object", (), fault)
        fields, repairs, fault = _arguments_of(value.value)
        return Call(
            name,
            written,
            fields,
            start,
            value.end,
            "name and object",
            (*renamed, *value.repairs, *repairs),
            value.fault or fault,
        )
    if tag is not None and (call := _tagged_call(speech, match, name, offers)) is not None:
        return call
    return _line_call(speech, match, name, offers)


def _python_call(speech: str, match: re.Match[str], bracket: int, name: str, offers: Offers) -> Call | None:
    """Read a call in Python's notation; None if the brackets hold something else."""
    written, start = match[0], match.start()
    try:
        read = arguments_at(speech, bracket)
    except Unfinished:
        if re.match(r"\(\s*(?:\w+\s*[=:]|[\"'{\[\d]|\Z)", speech[bracket:]):
            return Call(name, written, {}, start, len(speech), "Python call", (), reason_text("cut_arguments"))
        return None
    except ValueError:
        if re.match(r"\(\s*\w+\s*=[^=]", speech[bracket:]):
            fault = reason_text("unread_arguments", text=speech[bracket:][:80])
            return Call(name, written, {}, start, bracket + 1, "Python call", (), fault)
        return None
    names = offers.parameters[name]
    fields, fault = dict(read.named), read.fault
    positional = read.positional
    if len(positional) == 1 and isinstance(positional[0], dict) and not fields:
        fields, positional = cast("dict[str, Any]", positional[0]), []
    elif len(positional) > len(names) or any(one in fields for one in names[: len(positional)]):
        fault = fault or reason_text("takes" if names else "takes_nothing", names=", ".join(names))
    fields = {**dict(zip(names, positional, strict=False)), **fields}
    repairs = (*_renamed(written, name), *read.repairs)
    return Call(name, written, fields, start, read.end, "Python call", repairs, fault)


def _tagged_call(speech: str, match: re.Match[str], name: str, offers: Offers) -> Call | None:
    """Read a call whose arguments stand between tags; None if it is none."""
    written, start = match[0], match.start()
    head = re.compile(r"[\"']?(?:\s[^<>]{0,80})?\s*/?>|\s*(?=<)").match(speech, match.end())
    if head is None:
        return None
    if head[0].endswith("/>"):
        return Call(name, written, {}, start, head.end(), "tags", _renamed(written, name))
    fields: dict[str, Any] = {}
    fault, position = "", head.end()
    own_names = {letters(one) for one in offers.parameters[name]}
    while (parameter := _PARAMETER.match(speech, position)) is not None:
        key = parameter["key"] or parameter["key2"] or parameter["key3"]
        value = next(parameter[group] for group in ("value", "value2", "value3") if parameter[group] is not None)
        if parameter["key3"] is not None and letters(key) not in own_names:
            break
        value = re.sub(r"\A\r?\n|\r?\n\Z", "", value)
        value = None if value.strip() in _NULLS and key not in offers.required[name] else value
        if key in fields and fields[key] != value:
            fault = reason_text("argument_twice", name=key)
        fields[key] = value
        position = parameter.end()
    closing = _CLOSING_TAG.match(speech, position)
    if closing is None:
        rest = speech[position:].strip()
        if fields or not rest or rest.startswith("<"):
            return Call(name, written, fields, start, len(speech), "tags", (), reason_text("open_tag"))
        return None
    if "/" not in closing[0] and not re.search(r"(?i)end|observation|call", closing[0]):
        return Call(name, written, fields, start, closing.end(), "tags", (), reason_text("unread_tags"))
    return Call(name, written, fields, start, closing.end(), "tags", _renamed(written, name), fault)


def _line_call(speech: str, match: re.Match[str], name: str, offers: Offers) -> Call | None:
    """Read a name on a line of its own, with arguments on the lines after it; None if it is part of a sentence."""
    line_end = speech.find("\n", match.end())
    line_end = len(speech) if line_end < 0 else line_end
    if re.search(r"\w", speech[match.end() : line_end]):
        return None
    before = line_before(speech, match.start())
    is_labelled = _LABEL.search(before[-MAX_LINE:]) is not None
    is_bare = not re.search(r"\w", before)
    if not (is_labelled or is_bare):
        return None
    own_names = {letters(one) for one in offers.parameters[name]}
    fields: dict[str, Any] = {}
    fault, position = "", min(line_end + 1, len(speech))
    while (line := _LINE.match(speech, position)) is not None:
        if letters(line["key"]) in _ARGUMENT_KEYS and not line["value"].strip():
            position = line.end()
            continue
        if letters(line["key"]) not in own_names:
            break
        if line["key"] in fields and fields[line["key"]] != line["value"]:
            fault = reason_text("argument_twice", name=line["key"])
        value = line["value"].strip()
        fields[line["key"]] = None if value in _NULLS and line["key"] not in offers.required[name] else value
        position = line.end()
    if not is_labelled and re.search(r"\w", speech[: match.start()] + speech[position:]):
        return None
    if is_bare and not is_labelled and not fields and offers.required[name]:
        return None
    if fields and re.match(r"\s*\w", speech[position:]) and not _UNKNOWN.match("\n" + speech[position:].lstrip()):
        fault = fault or reason_text("open_lines")
    repairs = _renamed(match[0], name)
    return Call(name, match[0], fields, match.start(), position or match.end(), "lines", repairs, fault)
