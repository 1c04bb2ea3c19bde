"""Extraction of a cast and of betting questions from a text, by a language model or by rule."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from mesa_llm.config import Settings
from mesa_llm.engine.survey import consult
from mesa_llm.llm.protocol import LLM
from mesa_llm.population import Persona
from mesa_llm.prompts import prompts_of
from mesa_llm.records import Decision, Failure
from mesa_llm.text import COMMON, one_line

MIN_NAME, MAX_NAME = 2, 80
"""Minimum and maximum number of characters of a name; a longer one is cut."""

MAX_SUMMARY = 300
"""Maximum number of characters of a summary."""

MAX_CHARACTERS, MAX_BETS = 100, 50
"""Maximum number of characters, and of questions, extracted from a text."""

MAX_QUESTION = 200
"""Maximum number of characters of a question; a longer one is cut."""

PRICES = (0.05, 0.95)
"""Minimum and maximum of the initial price of YES."""

MAX_TEXT = 12_000
"""Maximum number of characters of a text in a prompt."""

SETTINGS = Settings(temperature=0.3, max_tokens=4000)
"""Sampling settings for extraction."""


class Character(BaseModel):
    """Somebody, or some institution, whom a text names."""

    name: str
    """Its name."""

    type: str = "person"
    """What it is: person, organisation, …"""

    summary: str = ""
    """Who it is, in a sentence."""

    @property
    def handle(self) -> str:
        """Handle on a social network."""
        return re.sub(r"\W+", "_", self.name.lower()).strip("_")


class Cast(BaseModel):
    """Those whom a text names."""

    characters: Annotated[list[Character], Field(max_length=MAX_CHARACTERS)]
    """People and institutions that have a say or a stake in the matter, the most important first."""


class Bet(BaseModel):
    """A question with two answers that people could bet on."""

    question: str
    """The question, which the future answers by yes or no."""

    price: float = 0.5
    """Probability of yes as it looks now, 0.05 to 0.95."""


class Bets(BaseModel):
    """Questions that people could bet on."""

    bets: Annotated[list[Bet], Field(max_length=MAX_BETS)]
    """The questions, the most important first."""


# -- by a language model


def characters_from(
    model: Any, llm: str | LLM, text: str, n: int, goal: str = ""
) -> tuple[list[Character], Failure | None]:
    """Extract the people and institutions named in a text, with a language model or by capitalised words.

    Args:
        model: A Mesa model, whose log records the request.
        llm: Language model to use; `rule`: none.
        text: The text.
        n: Maximum number of characters in the cast.
        goal: Question in which they have a say or a stake; empty: none.

    Returns:
        The cast, without repeated names, and the failure of the language model if the rule was used instead.
    """

    def by_rule(_prompt: str) -> Cast:
        return Cast(characters=[Character(name=name) for name in names_in(text, min(n, MAX_CHARACTERS))])

    answer, failure = _consulted(model, llm, _prompt(model, "extract_characters.md", text, n, goal), Cast, by_rule)
    return distinct(answer.characters)[:n], failure


def bets_from(model: Any, llm: str | LLM, text: str, n: int, goal: str = "") -> tuple[list[Bet], Failure | None]:
    """Extract questions to bet on, with a language model or by rule (the goal and the text's own questions).

    Args:
        model: A Mesa model, whose log records the request.
        llm: Language model to use; `rule`: none.
        text: The text.
        n: Maximum number of questions.
        goal: The main question; empty: none.

    Returns:
        The questions, without duplicates, and the failure of the language model if the rule was used instead.
    """

    def by_rule(_prompt: str) -> Bets:
        questions = [goal, *re.findall(r"[^.!?\n]+\?", text)]
        return Bets(bets=checked_bets(Bet(question=question) for question in questions)[:MAX_BETS])

    answer, failure = _consulted(model, llm, _prompt(model, "extract_questions.md", text, n, goal), Bets, by_rule)
    return checked_bets(answer.bets)[:n], failure


def _consulted(model: Any, llm: str | LLM, prompt: str, kind: Any, by_rule: Any) -> tuple[Any, Failure | None]:
    (reply,) = consult(model, llm, [prompt], answer=kind, purpose="cast", rule=by_rule, settings=SETTINGS)
    return (reply.answer, None) if isinstance(reply, Decision) else (by_rule(""), reply)


def _prompt(model: Any, name: str, text: str, n: int, goal: str) -> str:
    return prompts_of(model).fill(name, text=text.strip()[:MAX_TEXT], n=n, goal=one_line(goal))


# -- checks


def distinct(characters: Iterable[Character]) -> list[Character]:
    """Clean up characters: names on one line, without duplicates and names that are too short."""
    unique: dict[str, Character] = {}
    for one in characters:
        name = one_line(one.name, MAX_NAME)
        if len(name) >= MIN_NAME:
            clean = Character(name=name, type=one_line(one.type, 40), summary=one_line(one.summary, MAX_SUMMARY))
            unique.setdefault(clean.handle or name.casefold(), clean)
    return list(unique.values())


def checked_bets(bets: Iterable[Bet]) -> list[Bet]:
    """Clean up questions: on one line, without duplicates, with prices within bounds (0.5 for NaN)."""
    unique: dict[str, Bet] = {}
    for bet in bets:
        question = one_line(bet.question, MAX_QUESTION)
        price = min(max(bet.price, PRICES[0]), PRICES[1]) if bet.price == bet.price else 0.5
        if question:
            unique.setdefault(question.casefold(), Bet(question=question, price=price))
    return list(unique.values())


def personas_of(characters: Iterable[Character], about: str = "a text") -> list[Persona]:
    """Return the personas of a cast.

    Args:
        characters: The cast.
        about: Name of the text that mentions them.
    """
    people: list[Persona] = []
    for one in characters:
        kind = "" if one.type == "person" else f" ({one.type})"
        text = f"You are {one.name}{kind}, of whom {about} speaks. {one.summary}".strip()
        people.append(Persona(name=one.name, persona=text, username=one.handle, bio=one.summary))
    return people


def names_in(text: str, n: int) -> list[str]:
    """Find names in a text: capitalised words of three letters or more, without common ones.

    Args:
        text: The text.
        n: Maximum number of names.
    """
    unique: dict[str, str] = {}
    for word in re.findall(r"[^\W\d_]{3,}", text):
        if word[0].isupper() and word.lower() not in COMMON:
            unique.setdefault(word.lower(), word)
    return list(unique.values())[:n]


def read_characters(text: str) -> list[Character]:
    """Parse a cast from a free-text reply as SimSwarm does, for comparison with the typed `characters_from`.

    Args:
        text: The reply, with a JSON list in a fenced block, or between the first `[` and the last `]`. Items without a
            name and names that are too short are left out; names, types and summaries are converted to text.

    Raises:
        ValueError: If there is no such list, or it names no character.
    """
    fenced = re.search(r"```(?:json)?\s*(\[.*?\])\s*```", text, re.DOTALL)
    bare = re.search(r"\[.*\]", text, re.DOTALL)
    json_text = fenced[1] if fenced else bare[0] if bare else ""
    try:
        items: list[Any] = TypeAdapter(list[Any]).validate_python(json.loads(json_text))
    except (ValueError, ValidationError, RecursionError):
        raise ValueError(f"wanted a JSON list of characters, got {text!r:.80}") from None
    people: list[Character] = []
    for one in items:
        fields: dict[str, Any] = one if isinstance(one, dict) else {}
        name, kind, summary = (str(fields.get(key, "")).strip() for key in ("name", "type", "summary"))
        if len(name) >= MIN_NAME:
            people.append(Character(name=name[:MAX_NAME], type=kind or "person", summary=summary))
    if not people:
        raise ValueError(f"no character is named in {text!r:.80}")
    return people
