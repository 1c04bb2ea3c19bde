"""The cast of a town: the people and bodies in its background, found by a language model or by capital letters."""

from __future__ import annotations

from mesa_llm import Decision, LLMModel, Persona
from mesa_llm.engine.survey import llm_for
from mesa_llm.model.text_extraction import Cast, Character, distinct, names_in, personas_of


def cast_of(model: LLMModel, background: str, goal: str, n: int) -> list[Persona]:
    """Find the people and bodies that the background of a town names, as personas with unique names.

    Args:
        model: The model, whose language model is asked once. A rule, or an unusable reply, falls back
            to the words with a capital.
        background: The background of the town.
        goal: Question that concerns them.
        n: Maximum number of personas.
    """

    def by_rule(_prompt: str) -> Cast:
        return Cast(characters=[Character(name=name) for name in names_in(background, n)])

    prompt = model.prompt("cast.md", goal=goal, background=background, n=n)
    (reply,) = model.consult(llm_for(model.llm, "cast"), [prompt], answer=Cast, purpose="cast", rule=by_rule)
    cast: Cast = reply.answer if isinstance(reply, Decision) else by_rule("")
    return personas_of(distinct(cast.characters), "the background of the town")[:n]
