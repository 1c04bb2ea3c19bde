"""Coerces what a model wrote to the names, options, labels and types of a JSON schema, where nothing is lost.

Only what loses nothing is done, and only where there is one way to do it: `"3"` is the number 3, `[yes]` and `Yes.` are
the option `yes`, and `Q3` is the item `3`. What fits two options, or none, is refused. Each repair is noted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from mesa_llm.canonical import member_value
from mesa_llm.engine.text import NOTHING, WHOLE_ANSWER, reason_text
from mesa_llm.llm.lenient_json import read_value

Schema = Mapping[str, Any]

MAX_DIGITS = 40
"""Maximum number of characters of a number."""

MAX_OPTION = 400
"""Maximum number of characters of a text that is compared with options."""

THOUGHT_KEYS = frozenset(
    {
        "reason",
        "reasons",
        "reasoning",
        "thought",
        "thoughts",
        "thinking",
        "thoughtprocess",
        "analysis",
        "explanation",
        "rationale",
        "justification",
        "chainofthought",
        "scratchpad",
        "reflection",
    }
)
"""Names of fields in which models explain themselves, whether or not they were asked to."""

_ITEM_WORDS = re.compile(r"^(?:q|item|question|statement|answer|number|no|nr|task|line|i|s|#)+(?=\d+$)")
"""What models write before the number of an item."""

_SIGNED = r"[+\u2212-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?"

_WRAPPED = re.compile(rf"[\s\"'`*_(\[{{\u201c\u2018#]*(?P<number>{_SIGNED})[\s\"'`*_)\]}}\u201d\u2019.;,!]*", re.DOTALL)
"""A number with marks around it, and nothing else."""

_OF_MAXIMUM = re.compile(rf"[\s\"'`*_(\[]*(?P<number>{_SIGNED})\s*(?:/|out of)\s*(?P<maximum>\d+)[\s\"'`*_)\].;,!]*")
"""A number on a scale whose maximum it names."""

_GLOSSED = re.compile(
    rf"[\s\"'`*_(\[]*(?P<number>{_SIGNED})[\s*_`\"')\]]*(?:\((?P<gloss>[^()\d]*)\)|(?:[:.)]|\s[-\u2013\u2014])\s*(?P<tail>[^\d?]*))"
    r"[\s\"'`*_.;,!]*"
)
"""A number with the words that a scale has for it: `4 (agree)`, `4 - agree`, `4. agree`."""

_PREFIXED = re.compile(
    rf"[\s\"'`*_(\[]*(?P<words>[^\W\d_]+(?:[\s_]+[^\W\d_]+){{0,2}})[\s_:#=.]*(?P<number>{_SIGNED})[\s\"'`*_)\].;,!]*"
)
"""A number after the name of what it numbers: `post 12`."""


def _any_of(words: str) -> str:
    """Return a pattern of phrases, which are separated by commas."""
    return "|".join(phrase.strip() for phrase in words.split(","))


_NEGATIONS = _any_of(
    "not, no, never, none, neither, nor, cannot, cant, dont, wont, isnt, arent, without, except, instead, rather, "
    "unless, hardly, nobody, nothing, doubt, refuse, avoid, against, stop, deny, wrong, far from, zero, reject\\w*, "
    "kein, pas, nein, nie"
)
NEGATION = re.compile(rf"\b(?:{_NEGATIONS})\b|n['\u2019]t\b", re.IGNORECASE)
"""Words after which the mention of an option does not mean that it is chosen."""

_CONTRASTS = _any_of(
    "but, however, although, though, wait, actually, or, instead, rather, otherwise, if, unless, maybe, perhaps, "
    "changed?, on second thought, correction, scratch that, let me, well, used to, would have, partly, partially, "
    "somewhat, slightly, mostly, almost, half, only, kidding, joking, out of, minus, plus, reversed?, thousand, "
    "million, hundred, percent, dozen"
)
CONTRAST = re.compile(rf"\b(?:{_CONTRASTS})\b|\?", re.IGNORECASE)
"""Words with which an answer is taken back, weighed, qualified, or made to depend on something."""

_RETRACTIONS = _any_of(
    "but, however, wait, actually, no, nope, hmm, or, instead, rather, correction, sorry, on second thought, "
    "scratch that, just kidding"
)
TAKEN_BACK = re.compile(rf"\W*(?:{_RETRACTIONS})\b", re.IGNORECASE)
"""Beginning of what follows an answer and takes it back."""

_NOUNS = _any_of(
    "answer, option, choice, rating, score, vote, verdict, decision, response, conclusion, level, number, value"
)
_VERBS = _any_of(
    "say, answer, choose, chose, pick, select, rate, vote, vote for, decide, decide on, go with, go for, opt for, give"
)
_CUE = re.compile(
    r"(?:\A|[.!?,;:\n*]|\b(?:so|thus|therefore|hence|think|believe|that))[\s*_]*"
    rf"(?:(?:(?:my|the|final|correct|best|right)\s+){{0,3}}(?:{_NOUNS})\s*(?:is|would be|will be|:|=|to this is)?|"
    r"i(?:['\u2019]d| would| will|['\u2019]ll| do)?(?:\s+(?:definitely|simply|just|strongly))?"
    rf"(?:\s+(?:{_VERBS}))?(?:\s+(?:it|this|that))?(?=[\s:])|"
    r"(?:choose|pick|select)(?=\s)|it(?:['\u2019]s| is| would be))"
    r"\s*(?:an?|the|option|answer|that|number|rating of|score of)?[\s:\"'`*_(\[\u201c\u2018]{0,6}\Z",
    re.IGNORECASE,
)
"""What stands before an answer in a sentence that gives one."""

_AFTER = re.compile(
    r"\)\s|[\s\"'`*_)\]\u201d\u2019]*(?:\Z|[.,;:!\u2026\u3002\U0001f300-\U0001faff]|\s[-\u2013\u2014]\s|[\u2013\u2014]|\s\(|\n|\s(?:because|since|as|for|given)\b)"
)
"""What may follow an answer in a sentence."""

_MARKS = re.compile(r"[\s\"'`*_(\[{#>\u201c\u2018-]*")
"""What may stand before an answer with which a text begins."""

_REASON = re.compile(r"\b(?:because|since|as|for|given that|due to)\b", re.IGNORECASE)


class CoercionError(ValueError):
    """A value that cannot be coerced."""


class Coercion:
    """Fits values to schemas.

    Attributes:
        repairs: Descriptions of the repairs.
        thoughts: Texts of fields in which a model explained itself without having been asked.
    """

    def __init__(self, definitions: Mapping[str, Any] | None = None) -> None:
        """Start without repairs.

        Args:
            definitions: `$defs` of the schema.
        """
        self.repairs: list[str] = []
        self.thoughts: list[str] = []
        self._definitions = definitions or {}

    def value(self, value: object, schema: Schema, path: str = "") -> Any:
        """Return a value as the schema requires it, if nothing is lost.

        Raises:
            CoercionError: If it is off the schema's list, or fits it in more than one way.
        """
        schema = self._resolved(schema)
        if "const" in schema or "enum" in schema:
            allowed = cast("list[Any]", schema["enum"] if "enum" in schema else [schema["const"]])
            return self.option(value, allowed, path)
        if branches := schema.get("anyOf") or schema.get("oneOf"):
            return self._either(value, branches, path)
        match schema.get("type"):
            case "integer" | "number" as kind:
                return self._number(value, kind, path)
            case "boolean":
                return self._boolean(value, path)
            case "string" if type(value) is int:
                self._note(path, "number read as text")
                return str(value)
            case "array":
                return self._list(value, schema, path)
            case "object":
                return self._object(value, schema, path)
            case _:
                return value

    def option(self, value: object, allowed: Sequence[Any], path: str = "") -> Any:
        """Return the option that a value means.

        Raises:
            CoercionError: If it means none of them, or more than one.
        """
        for option in allowed:
            if type(option) is type(value) and option == value:
                return value
        chosen = chosen_option(value, allowed, _words_of(path))
        self._note(path, f"{_brief(value)} read as {_brief(chosen)}")
        return chosen

    def keys(self, fields: Mapping[str, Any], names: Iterable[str], path: str = "") -> dict[str, Any]:
        """Return fields under the names on offer; those of no such name keep their own.

        Raises:
            CoercionError: If two fields mean the same name.
        """
        names = list(names)
        known = frozenset(names)
        by_letters = letters_of(tuple(names))
        fitted: dict[str, Any] = {}
        for key, value in fields.items():
            name = key if key in known else by_letters.get(letters(key))
            if name is None and (bare := _ITEM_WORDS.sub("", letters(key))) in known:
                name = bare
            if name is None:
                if letters(key) in THOUGHT_KEYS:
                    self.thoughts.append(value if isinstance(value, str) else str(value))
                    continue
                name = key
            if name in fitted and fitted[name] != value:
                raise CoercionError(reason_text("key_twice", name=_joined(path, name)))
            if name != key:
                self._note(path, f"{key!r:.60} read as {name!r:.60}")
            fitted[name] = value
        return fitted

    @staticmethod
    def item_names(keys: Iterable[str]) -> set[str]:
        """Return the numbers of items that keys mean: `q3`, `item3` and `3` are `3`."""
        return {_ITEM_WORDS.sub("", key) for key in keys}

    # -- by type

    def _resolved(self, schema: Schema) -> Schema:
        for _ in range(10):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                break
            schema = self._definitions.get(reference.rpartition("/")[2], {})
        if len(parts := schema.get("allOf", ())) == 1:
            return self._resolved(parts[0])
        return schema

    def _note(self, path: str, repair: str) -> None:
        self.repairs.append(f"{path}: {repair}" if path else repair)

    def _either(self, value: object, branches: Sequence[Schema], path: str) -> Any:
        """Fit a value to the one branch that takes it; unchanged, if a branch takes it as it is."""
        results: list[tuple[Any, list[str]]] = []
        for branch in branches:
            fit = Coercion(self._definitions)
            try:
                fitted = fit.value(value, branch, path)
            except CoercionError:
                continue
            if not _has_type(fitted, self._resolved(branch)):
                continue
            if not fit.repairs:
                return fitted
            results.append((fitted, fit.repairs))
        if not results:
            return value  # what is wrong with it, the check of its type tells
        if any(other != results[0][0] for other, _ in results):
            whole = path or WHOLE_ANSWER
            raise CoercionError(reason_text("several_readings", path=whole, value=_brief(value)))
        self.repairs += results[0][1]
        return results[0][0]

    def _number(self, value: object, kind: str, path: str) -> Any:
        if isinstance(value, float) and kind == "integer" and value.is_integer():
            return int(value)
        if not isinstance(value, str):
            return value
        number = number_in(value, words=_words_of(path))
        if number is None or (kind == "integer" and not isinstance(number, int)):
            return value
        self._note(path, f"{_brief(value)} read as {number}")
        return number

    def _boolean(self, value: object, path: str) -> Any:
        word = letters(value) if isinstance(value, str) else ""
        if word not in ("true", "false", "yes", "no"):
            return value
        self._note(path, f"{_brief(value)} read as {'true' if word in ('true', 'yes') else 'false'}")
        return word in ("true", "yes")

    def _list(self, value: object, schema: Schema, path: str) -> Any:
        value = self._decoded(value, "[", path)
        if not isinstance(value, list):
            if value is None or isinstance(value, Mapping) or (isinstance(value, str) and _NO_LIST.search(value)):
                return value
            value = [value]
            self._note(path, "one value read as a list of it")
        items = cast("Schema", schema.get("items", {}))
        members = cast("list[Any]", value)
        return [self.value(member, items, _joined(path, str(index))) for index, member in enumerate(members)]

    def _object(self, value: object, schema: Schema, path: str) -> Any:
        value = self._decoded(value, "{", path)
        if not isinstance(value, Mapping):
            return value
        properties = cast("Mapping[str, Schema]", schema.get("properties", {}))
        if not properties:
            inner = schema.get("additionalProperties")
            fields = cast("Mapping[str, Any]", value)
            return (
                {key: self.value(one, inner, _joined(path, key)) for key, one in fields.items()}
                if isinstance(inner, Mapping)
                else value
            )
        fields = self.keys(cast("Mapping[str, Any]", value), properties, path)
        return {
            name: self.value(member, properties[name], _joined(path, name)) if name in properties else member
            for name, member in fields.items()
        }

    def _decoded(self, value: object, opening: str, path: str) -> Any:
        """Return the value that a text holds as JSON, if it begins like one."""
        if not isinstance(value, str) or not value.lstrip(" \t\r\n`jsonJSON").startswith(opening):
            return value
        try:
            read = read_value(value)
        except ValueError:
            return value
        if read.fault:
            raise CoercionError(f"{path or WHOLE_ANSWER}: {read.fault}")
        self._note(path, "value in a string read")
        return read.value


_NO_LIST = re.compile(r"[,;\n]|\A\W*(?:none|null|nothing|n/a|na|empty)?\W*\Z", re.IGNORECASE)
"""A text that may be a list of several values, or of none."""


def _words_of(path: str) -> frozenset[str]:
    """Return the words that may stand before a number in a field: those of its name, and a few for any."""
    return frozenset({"option", "number", "no", "id", *re.split(r"[\W_]+", path.rpartition(".")[2].casefold())})


def _has_type(value: object, schema: Schema) -> bool:
    """Check whether a value is of a schema's type, as JSON tells types apart."""
    if "enum" in schema or "const" in schema:
        return True
    kinds = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "array": list,
        "object": Mapping,
        "null": type(None),
    }
    kind = schema.get("type")
    if kind not in kinds:
        return True
    return isinstance(value, kinds[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _brief(value: object) -> str:
    return f"{value!r:.60}"


# -- options


def letters(text: str) -> str:
    """Return a text without case, marks around it, and what joins its words: `create_post` equals `Create Post.`

    Signs and points of numbers stay: `-1` is not `1`, `<18` not `18`, and `A+` not `A`.
    """
    text = text.casefold() if text.isascii() else unicodedata.normalize("NFC", text).casefold()
    text = text.lstrip(f"{_QUOTES_AND_BRACKETS}@").rstrip(f"{_QUOTES_AND_BRACKETS}\u2026\u3002")
    return _JOINTS.sub("", text)


_QUOTES_AND_BRACKETS = " \t\r\n\f\v\xa0\"'`*_()[]{}:;,.!\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"
_JOINTS = re.compile(
    r"(?<=[^\W\d_]{2})[\s_-]+(?=[^\W_])|(?<=[^\W\d_])[\s_-]+(?=[^\W\d_]{2}|\d)|(?<=\d)[\s_-]+(?=[^\W\d_])"
)


@lru_cache(maxsize=1024)
def letters_of(names: tuple[str, ...]) -> Mapping[str, str]:
    """Return the names by their letters; names whose letters are equal are left out."""
    by_letters: dict[str, str] = {}
    twice: set[str] = set()
    for name in names:
        key = letters(name)
        twice |= {key} if key in by_letters else set()
        by_letters[key] = name
    return {key: name for key, name in by_letters.items() if key and key not in twice}


def as_number(text: str) -> int | float:
    """Convert the text of a number."""
    text = text.replace("\u2212", "-").removeprefix("+")
    if len(text) > MAX_DIGITS:
        return float("nan")  # equal to nothing, and no JSON
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def number_in(text: str, allowed: Sequence[int | float] = (), words: Container[str] = ()) -> int | float | None:
    """Return the number that a short text is; None if it is anything else.

    Args:
        text: The text, such as `[4]`.
        allowed: The numbers on a closed scale, which may have a gloss (`4 (agree)`) or name the scale's end (`4/5`).
        words: Words that may stand before it, as `post` before the number of one.
    """
    if len(text) > MAX_OPTION:
        return None
    if (match := _WRAPPED.fullmatch(text)) is not None:
        return as_number(match["number"])
    if (match := _PREFIXED.fullmatch(text)) is not None:
        return (
            as_number(match["number"])
            if all(word in words for word in re.split(r"[\s_]+", match["words"].casefold()))
            else None
        )
    if not allowed:
        return None
    if (match := _OF_MAXIMUM.fullmatch(text)) is not None:
        return as_number(match["number"]) if int(match["maximum"]) == max(allowed) else None
    if (match := _GLOSSED.fullmatch(text)) is not None:
        tail = match["tail"] or match["gloss"] or ""
        is_plain = not re.search(r"[%<>]", text) and not NEGATION.search(tail) and not CONTRAST.search(tail)
        return as_number(match["number"]) if is_plain and len(tail.split()) <= 6 else None
    return None


def chosen_option(value: object, allowed: Sequence[Any], words: Container[str] = ()) -> Any:
    """Return the one option that a value, which is not on the list itself, means.

    Args:
        value: The value.
        allowed: The options.
        words: Words that may stand before a number.

    Raises:
        CoercionError: If it means none of them, or more than one; the message lists what is possible.
    """
    options = [member_value(option) for option in allowed]
    found: list[Any] = []
    if isinstance(value, float):
        found = [option for option in options if type(option) is int and float(option) == value]
    elif isinstance(value, int) and not isinstance(value, bool):
        found = [option for option in options if isinstance(option, str) and option.strip() == str(value)]
    elif isinstance(value, bool):
        found = [option for option in options if isinstance(option, str) and letters(option) == str(value).lower()]
    elif isinstance(value, str):
        found = meant(value, options, words)
    elif isinstance(value, list | tuple) and len(members := cast("Sequence[Any]", value)) == 1:
        (member,) = members
        return member if member in options and not isinstance(member, list) else chosen_option(member, allowed, words)
    elif (
        isinstance(value, Mapping)
        and len(fields := cast("Mapping[str, Any]", value)) == 1
        and letters(next(iter(fields))) in ANSWER_KEYS
    ):
        (member,) = fields.values()
        return member if member in options and not isinstance(member, dict) else chosen_option(member, allowed, words)
    if len(found) == 1:
        return found[0]
    possible = ", ".join(str(option) for option in options[:30]) or NOTHING
    refusal = "several_options" if found else "off_options"
    raise CoercionError(reason_text(refusal, value=str(value)[:80], possible=possible))


ANSWER_KEYS = frozenset(
    {"answer", "choice", "decision", "rating", "response", "value", "option", "selection", "vote", "result"}
    | {"finalanswer", "finaldecision", "finalchoice", "verdict", "score", "selected", "chosen", "myanswer"}
)
"""Names of a field that holds the answer itself, though another was asked for."""


def meant(text: str, options: Sequence[Any], words: Container[str] = ()) -> list[Any]:
    """Return the options that a text means as its answer: all but one are a reason to ask again.

    An answer is what equals an option but for case and marks; what a sentence begins with, before a mark; or what
    follows words such as “my answer is”. What is only mentioned, negated, taken back, or asked, is none.
    """
    text = text.strip()
    if not text or len(text) > MAX_OPTION + max(
        [len(option) for option in options if isinstance(option, str)], default=0
    ):
        return []
    numbers = [option for option in options if isinstance(option, int | float) and not isinstance(option, bool)]
    names = [option for option in options if isinstance(option, str) and option.strip()]
    if numbers and (number := number_in(text, numbers, words)) is not None:
        return [option for option in numbers if option == number]
    key = letters(text)
    if equal := [name for name in names if key and letters(name) == key]:
        return equal if len(equal) == 1 else [name for name in equal if name.casefold() == text.casefold()] or equal
    words_alone = re.findall(r"[^\W_]+", text.casefold())
    if len(words_alone) > 1 and (
        same := [name for name in names if re.findall(r"[^\W_]+", name.casefold()) == words_alone]
    ):
        return same
    return sentence_answers(text, [*map(str, numbers), *names], numbers)


def sentence_answers(text: str, names: Sequence[str], numbers: Sequence[int | float] = ()) -> list[Any]:
    """Return the names and numbers that a sentence gives as its answer; see `meant`."""
    if len(text) > MAX_OPTION:
        return []
    rest = text
    places: list[tuple[str, int, int]] = []
    for name in sorted(names, key=len, reverse=True):  # the longest first: `agree` is also in `strongly agree`
        pattern = _name_pattern(name)
        places += [(name, place.start(), place.end()) for place in pattern.finditer(rest)]
        rest = pattern.sub(lambda place: "\0" * len(place[0]), rest)
    if numbers and re.search(r"\d", rest):  # another number, such as that of another scale
        return []
    found = {name for name, _, _ in places}
    if len(found) != 1:
        return sorted(found)
    name, start, end = places[0]
    before, after = text[:start], text[end:]
    is_first = _MARKS.fullmatch(before) is not None
    has_cue = is_first or _CUE.search(before) is not None
    if not has_cue or _AFTER.match(after) is None:
        return []
    remark = _REASON.split(after, maxsplit=1)[0]
    is_negated = NEGATION.search(before) or (letters(name) != "no" and NEGATION.search(remark))
    if is_negated or CONTRAST.search(before) or CONTRAST.search(remark):
        return []
    return [next((number for number in numbers if str(number) == name), name)]


@lru_cache(maxsize=4096)
def _name_pattern(name: str) -> re.Pattern[str]:
    parts = re.split(r"[\s_-]+", name.strip()) if re.fullmatch(r"[\w\s-]+", name) else [name.strip()]
    words = r"[\s_-]+".join(map(re.escape, parts)) if all(parts) else re.escape(name.strip())
    case = "" if len(letters(name)) == 1 else "(?i)"
    return re.compile(
        rf"{case}(?<![\w+<>\u2264\u2265~%/@#&\u2010-\u2015\u2212\uff0d\ufe63-])(?<!\d[.,:]){words}(?![\w+#%/@&=\u2010-\u2015\u2212\uff0d\ufe63-]|['\u2019]\w|[.,:]\w)"
    )
