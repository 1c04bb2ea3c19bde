"""Fits what a model wrote to what is on offer: the names, options, labels and types of a JSON schema.

Only what loses nothing is done, and only where there is one way to do it: `"3"` is the number 3, `[yes]` and `Yes.` are
the option `yes`, and `Q3` is the item `3`. What fits two options, or none, is refused. Each repair is noted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from mesa_llm.canonical import member_value
from mesa_llm.notation import read_value

Schema = Mapping[str, Any]

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

_NUMBER = re.compile(r"(?<![\w.])[+\u2212-]?\d+(?:\.\d+)?(?![\w]|\.\d)")

NEGATION = re.compile(
    r"\b(?:not|never|neither|nor|cannot|without|except|instead|rather|unless|hardly|nobody|nothing)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
"""Words after which the mention of an option does not mean that it is chosen."""

_CUES = (
    r"(?:answer|option|choice|choose|chose|pick|select|rate|rating|score|give|say|vote(?: for)?|decide|decision|"
    r"go with|opt for|would be|is|are|rated|at|as|number|response|value|level|it)"
)
"""Words after which an answer follows."""


class Misfit(ValueError):
    """A value that does not fit what is on offer."""


class Fit:
    """Fits values to schemas; `repairs` says what was changed, `faults` what stays off its list, by path.

    Attributes:
        repairs: Descriptions of the repairs.
        thoughts: Texts of fields in which a model explained itself without having been asked.
    """

    def __init__(self, definitions: Mapping[str, Any] | None = None) -> None:
        """Begin without repairs.

        Args:
            definitions: `$defs` of the schema.
        """
        self.repairs: list[str] = []
        self.thoughts: list[str] = []
        self._definitions = definitions or {}

    def value(self, value: Any, schema: Schema, path: str = "") -> Any:
        """Return a value as the schema wants it, where nothing is lost by it.

        Raises:
            Misfit: If it is off the schema's list, or fits it in more than one way.
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
            case "string" if isinstance(value, int | float) and not isinstance(value, bool):
                self._note(path, "number read as text")
                return str(value)
            case "array":
                return self._list(value, schema, path)
            case "object" if "properties" in schema:
                return self._object(value, schema, path)
            case _:
                return value

    def option(self, value: Any, allowed: Sequence[Any], path: str = "") -> Any:
        """Return the option that a value means.

        Raises:
            Misfit: If it means none of them, or more than one.
        """
        for option in allowed:
            if type(option) is type(value) and option == value:
                return value
        chosen = chosen_option(value, allowed)
        self._note(path, f"{_brief(value)} read as {_brief(chosen)}")
        return chosen

    def keys(self, fields: Mapping[str, Any], names: Iterable[str], path: str = "") -> dict[str, Any]:
        """Return fields under the names on offer; those of no such name keep their own.

        Raises:
            Misfit: If two fields mean the same name.
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
                raise Misfit(f"{_joined(path, name)} is there twice")
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

    def _either(self, value: Any, branches: Sequence[Schema], path: str) -> Any:
        """Fit a value to the one branch that takes it; unchanged, if a branch takes it as it is."""
        results: list[tuple[Any, list[str]]] = []
        for branch in branches:
            fit = Fit(self._definitions)
            try:
                fitted = fit.value(value, branch, path)
            except Misfit:
                continue
            if not fit.repairs and _has_type(fitted, self._resolved(branch)):
                return value
            results.append((fitted, fit.repairs))
        if not results:
            return value  # what is wrong with it, the check of its type tells
        if any(other != results[0][0] for other, _ in results):
            raise Misfit(f"{path or 'the answer'}: {_brief(value)} can be read in more than one way")
        self.repairs += results[0][1]
        return results[0][0]

    def _number(self, value: Any, kind: str, path: str) -> Any:
        if isinstance(value, float) and kind == "integer" and value.is_integer():
            return int(value)
        if not isinstance(value, str):
            return value
        number = number_in(value)
        if number is None or (kind == "integer" and not isinstance(number, int)):
            return value
        self._note(path, f"{_brief(value)} read as {number}")
        return number

    def _boolean(self, value: Any, path: str) -> Any:
        word = letters(value) if isinstance(value, str) else ""
        if word not in ("true", "false", "yes", "no"):
            return value
        self._note(path, f"{_brief(value)} read as {'true' if word in ('true', 'yes') else 'false'}")
        return word in ("true", "yes")

    def _list(self, value: Any, schema: Schema, path: str) -> Any:
        value = self._decoded(value, "[", path)
        if not isinstance(value, list):
            if value is None or isinstance(value, Mapping):
                return value
            value = [value]
            self._note(path, "one value read as a list of it")
        items = cast("Schema", schema.get("items", {}))
        members = cast("list[Any]", value)
        return [self.value(member, items, _joined(path, str(index))) for index, member in enumerate(members)]

    def _object(self, value: Any, schema: Schema, path: str) -> Any:
        value = self._decoded(value, "{", path)
        if not isinstance(value, Mapping):
            return value
        properties = cast("Mapping[str, Schema]", schema["properties"])
        fields = self.keys(cast("Mapping[str, Any]", value), properties, path)
        return {
            name: self.value(member, properties[name], _joined(path, name)) if name in properties else member
            for name, member in fields.items()
        }

    def _decoded(self, value: Any, opening: str, path: str) -> Any:
        """Return the value that a text holds as JSON, if it begins like one."""
        if not isinstance(value, str) or not value.lstrip(" \t\r\n`jsonJSON").startswith(opening):
            return value
        try:
            read = read_value(value)
        except ValueError:
            return value
        if read.fault:
            raise Misfit(f"{path or 'the answer'}: {read.fault}")
        self._note(path, "value in a string read")
        return read.value


def _has_type(value: Any, schema: Schema) -> bool:
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


def _brief(value: Any) -> str:
    return f"{value!r:.60}"


# -- options


def letters(text: str) -> str:
    """Return a text without case, marks around it, and what joins its words: `create_post` equals `Create Post.`

    Signs, points and hyphens of numbers stay: `-1` is not `1`, and `A+` not `A`.
    """
    text = _ENDS.sub("", text.casefold())
    return _JOINTS.sub("", text)


_ENDS = re.compile(
    r"\A[\s\"'`*_()\[\]{}<>#:;,.!?\u2018-\u201f\u00ab\u00bb]+|[\s\"'`*_()\[\]{}<>:;,.!?\u2018-\u201f\u00ab\u00bb]+\Z"
)
_JOINTS = re.compile(r"(?<=[^\W\d_])[\s_-]+(?=[^\W_])|(?<=\d)[\s_-]+(?=[^\W\d_])")


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


def number_in(text: str, max_words: int = 1) -> int | float | None:
    """Return the one number that a text holds besides marks and a few words; None if there is none, or several.

    Args:
        text: The text, such as `"30 dollars"` or `"[4]"`.
        max_words: Maximum number of words beside it.
    """
    if len(text) > MAX_OPTION:
        return None
    numbers = list(_NUMBER.finditer(text))
    if len(numbers) != 1:
        return None
    before, after = text[: numbers[0].start()], text[numbers[0].end() :]
    rest = f"{before} {after}"
    if re.search(r"[\d%\u2030]", rest) or re.search(r"[-\u2212]\s*\Z", before) or NEGATION.search(rest):
        return None
    if re.search(r"\w", before) and re.search(r"\w", after):
        return None
    return as_number(numbers[0][0]) if len(re.findall(r"[^\W\d_]+", rest)) <= max_words else None


def as_number(text: str) -> int | float:
    """Convert the text of a number."""
    text = text.replace("\u2212", "-").removeprefix("+")
    return float(text) if "." in text else int(text)


def chosen_option(value: Any, allowed: Sequence[Any]) -> Any:
    """Return the one option that a value, which is not on the list itself, means.

    Raises:
        Misfit: If it means none of them, or more than one; the message lists what is possible.
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
        found = mentioned(value, options)
    elif isinstance(value, list | tuple) and len(members := cast("Sequence[Any]", value)) == 1:
        (member,) = members
        return member if member in options and not isinstance(member, list) else chosen_option(member, allowed)
    elif isinstance(value, Mapping) and len(fields := cast("Mapping[str, Any]", value)) == 1:
        (member,) = fields.values()
        return member if member in options and not isinstance(member, dict) else chosen_option(member, allowed)
    if len(found) == 1:
        return found[0]
    possible = ", ".join(str(option) for option in options[:30]) or "nothing at the moment"
    reason = "means more than one option" if found else "is not possible"
    raise Misfit(f"{str(value)[:80]!r} {reason}; possible: {possible}")


def mentioned(text: str, options: Sequence[Any]) -> list[Any]:
    """Return the options that a short text means: all but one are a reason to ask again.

    A text that equals an option but for case and marks means it. A text of more words means the option that it begins
    with, that stands in brackets or quotation marks, or that alone is named in it, unless it holds a negation.
    """
    text = text.strip()
    if len(text) > MAX_OPTION or not text:
        return []
    numbers = [option for option in options if isinstance(option, int | float) and not isinstance(option, bool)]
    names = [option for option in options if isinstance(option, str) and option.strip()]
    found: list[Any] = []
    if numbers:
        number = number_in(text, max_words=12)
        found += [option for option in numbers if number is not None and option == number]
    if found or not names:
        return found
    key = letters(text)
    if equal := [name for name in names if key and letters(name) == key]:
        return equal if len(equal) == 1 else [name for name in equal if name.casefold() == text.casefold()] or equal
    return _named(text, names)


def _named(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that a sentence means."""
    rest, found, marked = text, [], []
    for name in sorted(names, key=len, reverse=True):  # the longest first: `agree` is also in `strongly agree`
        pattern = _name_pattern(name)
        places = list(pattern.finditer(rest))
        if not places:
            continue
        if is_common(name):
            places = [place for place in places if _is_meant(rest, place)]
        if places:
            found.append(name)
            marked += [name] if any(_is_marked(rest, place) for place in places) else []
        rest = pattern.sub(lambda place: "\0" * len(place[0]), rest)
    if len(found) > 1 and len(marked) == 1 and not NEGATION.search(rest):
        return marked
    if len(found) == 1 and NEGATION.search(rest) and not _begins(text, found[0]):
        return []
    return found


@lru_cache(maxsize=4096)
def _name_pattern(name: str) -> re.Pattern[str]:
    words = (
        r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", name.strip())))
        if re.search(r"\w", name)
        else re.escape(name)
    )
    case = "" if len(letters(name)) == 1 else "(?i)"
    return re.compile(rf"{case}(?<![^\W_]){words}(?![^\W_])")


def is_common(name: str) -> bool:
    """Check whether a name may well occur in a sentence without being meant: a letter, or an everyday word."""
    return len(letters(name)) == 1 or name.casefold().strip() in _COMMON


_COMMON = frozenset(
    [
        "a",
        "i",
        "no",
        "yes",
        "none",
        "all",
        "both",
        "other",
        "others",
        "some",
        "any",
        "same",
        "more",
        "less",
        "up",
        "down",
        "in",
        "out",
        "on",
        "off",
        "and",
        "or",
        "not",
        "it",
        "so",
        "as",
        "is",
    ]
)


def _is_marked(text: str, place: re.Match[str]) -> bool:
    """Check whether brackets, quotation marks or emphasis stand around a name."""
    before, after = text[: place.start()].rstrip()[-1:], text[place.end() :].lstrip()[:1]
    return (before, after) in _PAIRS


_PAIRS = frozenset(
    {("(", ")"), ("[", "]"), ("{", "}"), ('"', '"'), ("'", "'"), ("*", "*"), ("`", "`"), ("_", "_"), ("<", ">")}
    | {("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb")}
)


def _is_meant(text: str, place: re.Match[str]) -> bool:
    """Check whether an everyday word stands where an answer would: marked, first before a mark, or after a cue."""
    if _is_marked(text, place):
        return True
    before, after = text[: place.start()], text[place.end() :]
    if not re.search(r"\w", before):
        return bool(re.match(r"\s*(?:[.,:;!)\]\u2013\u2014-]|\Z)", after))
    is_cued = re.search(rf"(?i)(?:\b{_CUES}\b|[:=])\W*\Z", before) is not None
    return is_cued and bool(re.match(r"\s*(?:[.,:;!)\]\u2013\u2014*\"'-]|\Z|because\b|as\b)", after))


def _begins(text: str, name: str) -> bool:
    match = re.match(r"\W*", text)
    place = _name_pattern(name).match(text, match.end() if match else 0)
    return place is not None and bool(re.match(r"\W*(?:[.,:;!)\]\u2013\u2014-]|\Z)", text[place.end() :]))


def number_meant(text: str, is_possible: Any) -> int | float | None:
    """Return the number that a sentence gives as its answer: the only possible one in it, where an answer would stand.

    Args:
        text: A sentence.
        is_possible: Whether a number is on the scale.
    """
    if len(text) > MAX_OPTION:
        return None
    places = [place for place in _NUMBER.finditer(text) if is_possible(as_number(place[0]))]
    if len({as_number(place[0]) for place in places}) != 1:
        return None
    for place in places:
        before, after = text[: place.start()], text[place.end() :]
        is_first, is_last = not re.search(r"\w", before), not re.search(r"\w", after)
        is_cued = re.search(rf"(?i)(?:\b{_CUES}(?: an?)?\b|[:=])\W*\Z", before) is not None
        if NEGATION.search(before[-40:]):
            return None
        if is_first or is_last or is_cued or _is_marked(text, place):
            return as_number(place[0])
    return None
