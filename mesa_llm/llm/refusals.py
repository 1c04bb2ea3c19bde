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
_OPINION = r"(?:opinion|view|belief|feeling|emotion|experience(?!s? (?:with|of|in)\b)|preference|thought|trait)s?"

_REFUSED_TASKS = (
    r"assist\b",
    rf"(?:help|comply|continue|engage|proceed) (?:you )?(?:with|in) {_THAT} (?:\w+ )?"
    r"(?:request|content|topic|task|prompt|query|conversation|question)s?\b",
    rf"(?:fulfil|fulfill|answer|complete|process|carry out) {_THAT} (?:\w+ )?(?:request|prompt|query|task)\b",
    rf"(?:provide|generate|create|produce|write|share|discuss) {_THAT} (?!more )(?:\w+ ){{0,3}}"
    r"(?:content|material|request|response|prompt)s?\b",
    r"(?:provide|generate|create|produce|write) content (?:that|which)\b",
    r"(?:role-?play|impersonate|take on (?:a|the) persona)\b",
    rf"(?:express|have|provide|share|offer) (?:any )?(?:personal|my own) {_OPINION}\b",
)
_SO = (
    r"(?=\s*[.,;:!?]|\s*$| (?:i|and|so|that|without|it|my|there|do|am|have|developed|created|made|trained|built|by)\b)"
)
_MODEL = (
    rf"(?:artificial intelligence{_SO}|(?:ai |large )?language model\b|"
    rf"ai(?: (?:assistant|model|system|program|chatbot|entity|agent))?{_SO})"
)
_HELPER = rf"(?:(?:virtual|digital) assistant|(?:computer|software) program|chatbot){_SO}"
_LACKS = (
    r"\b(?:don't|do not|have no|can't|cannot|lack|without)\b.{0,30}"
    r"\b(?:opinion|feeling|emotion|preference|belief|view|vote|bod(?:y|ies)|home|personal)"
)
_BACKS_OUT = (
    rf"(?:{_CANNOT}|(?:not|don't feel) comfortable|(?:not going|refuse) to|must (?:respectfully )?decline to|"
    r"prefer not to|(?:would|'d) rather not|don't|do not)(?: be able to)?"
)
_ROLE = (
    r"(?:(?:respond|answer|continu|engag|speak|tak(?:e|ing) (?:on|part)|participat|adopt|play|portray|embody|assum)\w*"
    r"(?: \w+){0,4}? "
    r"(?:role-?play\w*|in character|as this (?:character|persona)|(?:this|that) (?:persona|character))\b|"
    r"role-?play\w* (?:as|this|a real)\b|engag\w+ (?:with|in) this scenario\b|"
    r"pretend to be (?:this|that|some|another|an? (?:real|human|fictional|different))\w*\b)"
)
_MAKER = (
    r"(?:openai|anthropic|google|deepseek|alibaba|moonshot|mistral|meta|microsoft|xai|\u963f\u91cc|\u767e\u5ea6|"
    r"\u6df1\u5ea6\u6c42\u7d22|\u6708\u4e4b\u6697\u9762)"
)
_I_AM = (
    r"(?:\bi'm|\bi am|\bsoy|\bich bin|\bje suis|\bsou|\bsono|\bik ben|\bjestem|\bя|\bjag är|\btôi là|"
    r"\u6211\u662f|\u6211\u53eb|\u79c1\u306f|\uc800\ub294)"
)
_INTRODUCES = (
    rf"{_I_AM}[\s\u2013\u2014-]*(?:chatgpt|gpt-?\d\w*|deepseek|qwen\w*|chatglm|\u901a\u4e49\u5343\u95ee|"
    r"\u6587\u5fc3\u4e00\u8a00|\u8c46\u5305)(?![a-z'-])|"
    rf"{_I_AM}[^.!?\n]{{0,60}}?(?:(?<!i'm )(?<!i am )(?:developed|created|made|trained|built|designed) by|"
    r"(?:entrenad|cread|desarrollad|treinad|criad|desenvolvid|sviluppat|addestrat|creat)[oa] (?:por|pel[oa]|da)|"
    r"(?:entraîné|développé|créé|conçu)e? par|(?:ontwikkeld|gemaakt|getraind) door|"
    rf"(?:созданн|разработанн|обученн)\w+(?: компанией)?|\u7531|\bvon(?= \w+ (?:entwickelt|trainiert)))\s*{_MAKER}"
)
_DECLINES = re.compile(
    "|".join(
        (
            rf"\b(?:i|we)(?:'m|'ll| am| are)? {_CANNOT} (?:{'|'.join(_REFUSED_TASKS)})",
            rf"\b(?:as|being) an? (?:digital (?:ai|assistant|being|entity)\b|{_MODEL})",
            r"\bi(?:'m| am) (?:\w+, )?(?:just |only |merely |designed to be )?an? (?:\w+ (?:and \w+ )?)?"
            rf"{_MODEL}",
            rf"\bi (?:don't|do not) (?:have|possess|hold) (?:any )?(?:personal|human) {_OPINION}\b",
            r"\b(?:violates?|against|follow) (?:my|openai's) (?:content |usage |safety |ethical )?"
            r"(?:guidelines|policies|programming)\b",
        )
    ),
    re.IGNORECASE,
)
"""What nobody says but a language model that does not do what it was asked to."""

_MARKED: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("assistant", "program", "chatbot"),
        rf"\b(?:as|being|i'm|i am)(?: just| only| merely)? an? {_HELPER}.{{0,40}}?{_LACKS}",
    ),
    (
        ("role", "character", "persona", "scenario", "pretend"),
        rf"\b(?:i|we)(?:'m| am)? ?{_BACKS_OUT} {_ROLE}|\bi (?:need|have) to (?:step out of|break) character\b",
    ),
    (
        (
            *(
                "openai",
                "anthropic",
                "google",
                "deepseek",
                "alibaba",
                "moonshot",
                "mistral",
                "meta",
                "microsoft",
                "xai",
            ),
            *("\u963f\u91cc", "\u767e\u5ea6", "\u6df1\u5ea6", "\u6708\u4e4b", "gpt", "qwen", "chatglm", "\u901a\u4e49"),
            *("\u6587\u5fc3", "\u8c46\u5305"),
        ),
        _INTRODUCES,
    ),
)
"""What stands in such a sentence, quick to look for in small letters; and the pattern of what only a model says."""

_CURT = (
    r"(?:i'?m |i am |we'?re )?(?:(?:very|so|really|truly) )?(?:sorry|apologi[sz]e|afraid|unfortunately)\b.{0,20}"
    rf"\bi {_CANNOT} (?:help|do|assist|provide|answer|discuss|comply)\b[^.!?]{{0,30}}"
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

_REPORTED = re.compile(
    r"(?:[:,\uff1a\uff0c]|\b(?:said|says|told|wrote|replied|answered)\b)\s*(?:"
    r"[\"\u201c\u201e\u201d\u00ab\u300c]([^\"\u201c\u201d\u00bb\u300d]{5,200})[\"\u201c\u201d\u00bb\u300d]|'(.{5,200}?)'(?!\w))"
    r"(?=\W{0,2}\w.{9})"
)
"""What somebody else is said to have said, before the reply goes on."""

_AROUND = " \"'*_>-\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f"
"""Marks around a reply."""

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
    if "helper" in table:
        pattern += f"|{table['self']}(?:{table['helper']}).{{0,40}}?(?:{table['lacks']})"
    if "request" not in table:
        return pattern
    before = f"(?:{table['cannot']})[^.!?\u3002\uff01\uff1f]{{0,60}}?" if table["cannot"] else ""
    return f"{pattern}|{before}{table['request']}"


@cache
def _curt() -> re.Pattern[str]:
    """Return what is a refusal where it is all of a reply, in any language."""
    tables = tomllib.loads((Path(__file__).with_suffix(".toml")).read_text(encoding="utf-8"))
    elsewhere = "|".join(table["curt"] for table in tables.values() if "curt" in table)
    return re.compile(rf"(?:{_CURT}|{elsewhere})[.!?\u3002\uff01\u0964\s]*", re.IGNORECASE)


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
    if len(speech) <= MAX_CURT and _curt().fullmatch(speech):
        return True
    opening = _REPORTED.sub(" ", speech[:MAX_OPENING])
    if _DECLINES.search(opening) is not None:
        return True
    small = opening.lower()
    for marks, pattern in _MARKED:
        if any(mark in small for mark in marks) and _compiled(pattern).search(opening) is not None:
            return True
    text = f"{opening}\n{small}"
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
    return " ".join(text[: 2 * MAX_OPENING].translate(_QUOTES).split()).strip(_AROUND)
