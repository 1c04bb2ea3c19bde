"""The cast of a town: those whom its background names, found by a language model, or by their capital letters."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from mesa_llm import Decision
from mesa_llm.engine.survey import llm_for
from mesa_llm.population import Persona
from mesa_llm.text import COMMON, one_line

if TYPE_CHECKING:
    from models.three_worlds.model import ThreeWorldsModel

MIN_NAME, MAX_NAME = 2, 80
"""Minimum and maximum number of characters of a name; a longer one is cut."""


class Character(BaseModel):
    """Somebody, or some institution, whom a text names."""

    name: str
    """Its name."""

    type: str = "person"
    """What it is: person, organisation, …"""

    summary: str = ""
    """Who it is, in a sentence."""


class Cast(BaseModel):
    """Those whom a text names."""

    characters: Annotated[list[Character], Field(max_length=100)]
    """People and institutions that have a say or a stake in the matter, the most important first."""


def read_cast(text: str) -> list[Character]:
    """Read a cast from a reply in free text as SimSwarm does, for comparison; `cast_of` asks for a typed answer.

    Args:
        text: The reply, with a JSON list in a fenced block, or between the first `[` and the last `]`. What is no
            object with a name in it is left out, as are names that are too short.

    Raises:
        ValueError: If there is no such list, or nobody is left in it.
    """
    fenced = re.search(r"```(?:json)?\s*(\[.*?\])\s*```", text, re.DOTALL)
    bare = re.search(r"\[.*\]", text, re.DOTALL)
    found = fenced[1] if fenced else bare[0] if bare else ""
    try:
        written: list[Any] = TypeAdapter(list[Any]).validate_python(json.loads(found))
    except (ValueError, ValidationError, RecursionError):
        raise ValueError(f"wanted a JSON list of objects with name, type and summary, got {text!r:.80}") from None
    people: list[Character] = []
    for one in written:
        try:
            fields = {key: value for key, value in one.items() if value is not None} if isinstance(one, dict) else one
            people.append(Character.model_validate(fields))
        except ValidationError:
            continue
    named = [one for one in people if len(one.name.strip()) >= MIN_NAME]
    if not named:
        raise ValueError(f"nobody is named in {text!r:.80}")
    return [one.model_copy(update={"name": one_line(one.name, MAX_NAME)}) for one in named]


def names_in(text: str, n: int) -> list[str]:
    """Find names in a text: words of three letters or more that begin with a capital, without common ones.

    Args:
        text: The text.
        n: Maximum number of names.
    """
    found: dict[str, str] = {}
    for word in re.findall(r"[^\W\d_]{3,}", text):
        if word[0].isupper() and word.lower() not in COMMON:
            found.setdefault(word.lower(), word)
    return list(found.values())[:n]


def cast_of(model: ThreeWorldsModel, n: int) -> list[Persona]:
    """Find those whom the background of a town names, as personas; a name that comes twice is one persona.

    Args:
        model: The model; it is asked once what its language model finds. A reply that cannot be used, and a rule, give
            way to the words with a capital.
        n: Maximum number of personas.
    """

    def by_rule(_prompt: str) -> Cast:
        return Cast(characters=[Character(name=name) for name in names_in(model.background, n)])

    prompt = model.prompt("cast.md", goal=model.scenario.goal, background=model.background, n=n)
    (given,) = model.consult(llm_for(model.llm, "cast"), [prompt], answer=Cast, purpose="cast", rule=by_rule)
    cast: Cast = given.answer if isinstance(given, Decision) else by_rule("")
    personas: dict[str, Persona] = {}
    for one in cast.characters:
        name = one_line(one.name, MAX_NAME)
        if len(name) >= MIN_NAME:
            summary = one_line(one.summary, 300)
            kind = "" if one.type == "person" else f" ({one_line(one.type, 40)})"
            text = f"You are {name}{kind}, of whom the background of the town speaks. {summary}".strip()
            handle = re.sub(r"\W+", "_", name.lower()).strip("_")
            personas.setdefault(handle, Persona(name=name, persona=text, username=handle, bio=summary))
    return list(personas.values())[:n]
