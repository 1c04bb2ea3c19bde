"""Recognises replies in which a language model declines, or speaks as an assistant in place of the person it plays."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

MAX_OPENING = 300
"""Maximum number of characters from the start in which a reply declines: later, it quotes or plays somebody."""

MAX_CURT = 90
"""Maximum number of characters of a reply that declines politely and says nothing else."""

_CANNOT = r"(?:can(?:no|')?t|can not|could(?:n't| not)|won't|will not|(?:not able|unable) to|must decline to)"
_THAT = r"(?:that|this|these|those|such|your|the|any)"
_OPINION = r"(?:opinion|view|belief|feeling|emotion|experience|preference|thought|trait)s?"

_REFUSED_TASKS = (
    r"assist\b",
    rf"(?:help|comply|continue|engage|proceed) (?:you )?(?:with|in) {_THAT} (?:\w+ )?"
    r"(?:request|content|topic|task|prompt|query|conversation|question)s?\b",
    rf"(?:fulfil|fulfill|answer|complete|process|carry out) {_THAT} (?:\w+ )?(?:request|prompt|query|task)\b",
    rf"(?:provide|generate|create|produce|write|share|discuss) {_THAT} (?:\w+ ){{0,3}}"
    r"(?:content|material|request|response|prompt)s?\b",
    r"(?:role-?play|pretend to be|impersonate|take on (?:a|the) persona)\b",
    rf"(?:express|have|provide|share|offer) (?:any )?(?:personal|my own) {_OPINION}\b",
)
_MODEL = r"(?:artificial intelligence\b|(?:ai |large )?language model\b|(?:ai|virtual) assistant\b)"
_DECLINES = re.compile(
    "|".join(
        (
            rf"\b(?:i|we)(?:'m|'ll| am| are)? {_CANNOT} (?:{'|'.join(_REFUSED_TASKS)})",
            rf"\bas an? (?:ai\b|digital (?:ai|assistant|being|entity)\b|{_MODEL})",
            rf"\bi(?:'m| am) (?:just |only )?an? (?:{_MODEL}|ai(?: ?[.,;:!?]| (?:and|so|that|without)\b|$))",
            rf"\bi (?:don't|do not) (?:have|possess|hold) (?:any )?(?:personal|human) {_OPINION}\b",
            r"\b(?:violates?|against|follow) (?:my|openai's) (?:content |usage |safety |ethical )?"
            r"(?:guidelines|policies|programming)\b",
        )
    ),
    re.IGNORECASE,
)
"""What nobody says but a language model that does not do what it was asked to."""

_CURT = re.compile(
    r"(?:i'?m |i am |we'?re )?(?:(?:very|so|really|truly) )?(?:sorry|apologi[sz]e|afraid|unfortunately)\b.{0,20}"
    rf"\bi {_CANNOT} (?:help|do|assist|provide|answer|discuss|comply)\b[^.!?]{{0,30}}[.!?]*",
    re.IGNORECASE,
)
"""A refusal that is all of the reply: somebody who is played gives a reason, or goes on."""

_GREETING = re.compile(
    r"(?:(?:hello|hi|hey|greetings|good (?:day|morning|afternoon|evening))\b[^.!?\n]{0,40}[.!?,]*\s*)?"
    r"(?:(?:it'?s|it is) (?:nice|great|good) to (?:meet|see|hear from) you[.!]*\s*)?"
    r"(?:(?:how|what) (?:can|may|could) i (?:help|assist|do for)(?: you)?(?: with)?\b[^.!?\n]{0,40}[.!?]*"
    r"|(?:i'?m|i am) (?:here|happy|ready) to (?:help|assist)\b[^.!?\n]{0,60}[.!?]*)\s*"
    r"(?:(?:how|what) (?:can|may|could) i (?:help|assist|do for)(?: you)?\b[^.!?\n]{0,40}[.!?]*)?",
    re.IGNORECASE,
)
"""A greeting by an assistant that waits for its task."""

_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'"})


class _Language(NamedTuple):
    """How a language model declines in a language."""

    marks: tuple[str, ...]
    """What stands in every refusal."""

    pattern: str
    """What nobody says but a language model."""


@cache
def _languages() -> tuple[_Language, ...]:
    """Read the languages other than English."""
    tables = tomllib.loads((Path(__file__).with_suffix(".toml")).read_text(encoding="utf-8"))
    return tuple(_Language(tuple(table["marks"]), _pattern_of(table)) for table in tables.values())


def _pattern_of(table: Mapping[str, str]) -> str:
    pattern = f"{table['self']}{table['model']}"
    if "request" not in table:
        return pattern
    before = f"(?:{table['cannot']})[^.!?\u3002\uff01\uff1f]{{0,60}}?" if table["cannot"] else ""
    return f"{pattern}|{before}{table['request']}"


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def declines(text: str) -> bool:
    """Check whether a reply declines the task, or speaks of itself as a language model.

    Known are Arabic, Chinese, Dutch, English, French, German, Hindi, Indonesian, Italian, Japanese, Korean, Polish,
    Portuguese, Russian, Spanish, Swedish, Turkish and Vietnamese. What a played person would say, such as "I can't help
    you move, my back hurts", does not count.
    """
    speech = _speech(text)
    if len(speech) <= MAX_CURT and _CURT.fullmatch(speech):
        return True
    opening = speech[:MAX_OPENING]
    if _DECLINES.search(opening) is not None:
        return True
    text = f"{opening}\n{opening.lower()}"
    for language in _languages():
        for mark in language.marks:
            if mark in text:
                if _compiled(language.pattern).search(opening) is not None:
                    return True
                break
    return False


def is_assistant_greeting(text: str) -> bool:
    """Check whether a reply is nothing but the greeting of an assistant that waits for its task."""
    return _GREETING.fullmatch(_speech(text)) is not None


def _speech(text: str) -> str:
    """Return the beginning of a text on one line, without quotation marks and Markdown around it."""
    return " ".join(text[: 2 * MAX_OPENING].translate(_QUOTES).split()).strip(" \"'*_>-")
