"""What the answers to a questionnaire count as, where a run does not say.

A language model that weighs an answer hides this in a single reply: at temperature 0, an answer of probability 0.37 is
given every time. Its probabilities are counted where it returns them; otherwise it is asked several times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from mesa_llm.llm import open_simple
from mesa_llm.llm.probabilities import Scoring
from mesa_llm.llm.protocol import LLM, Capabilities

Answering = Literal["probabilities", "draws", "replies"]
"""An answer counts as the mean of all answers by their probabilities, as that of several draws, or as its reply."""

TEMPERATURES: Mapping[Answering, float] = {"probabilities": 0.0, "draws": 1.0, "replies": 0.0}
"""Way of answering → sampling temperature of the replies; 1 draws from the language model's own probabilities."""

_SINCE = 5
"""Version of requests since which the default is not `replies`; see `RunLog.request_version`."""


def answering_of(model: Any, scoring: Scoring | None) -> Answering:
    """Choose what answers count as, before the respondents are created.

    By default: probabilities, if all language models of the run are known to return them and none reasons first;
    several draws, if not. Rule twins, people and the random baseline give one reply each. The engine of the model is
    told to ask for probabilities if they are chosen.

    Args:
        model: The model.
        scoring: The run's own choice; None: the default.

    Returns:
        The way; an explicit `scoring="replies"` is one reply, whatever that hides.
    """
    if scoring is not None:
        return scoring
    known = [_capabilities(model, llm) for llm in _llms(model)]
    minds = [one for one in known if one is None or not (one.is_immediate or one.is_person)]
    if not minds or model.runlog.request_version < _SINCE:
        return "replies"
    if _reasons(model) or not all(one is not None and one.gives_probabilities for one in minds):
        return "draws"
    model.engine.scoring = "probabilities"
    return "probabilities"


def answering_text(answering: Answering, n_draws: int, certainty: float | None) -> str:
    """Say what an answer counts as, how certain answers were, and what single replies hide.

    Args:
        answering: The way.
        n_draws: Number of draws of each sheet.
        certainty: Mean share of the most frequent answer, if it is known.
    """
    if answering == "replies":
        return "An answer counts as its one reply, which does not show how probable the others were."
    source = "by their probabilities" if answering == "probabilities" else f"over {n_draws} draws"
    certain = "" if certainty is None else f" The most frequent answer to an item had {certainty:.0%} on average."
    return f"An answer counts as the mean of all answers {source}.{certain}"


def _llms(model: Any) -> list[str | LLM]:
    """Return the language models that respondents may think with."""
    own = model.llm
    by_design = None if model.design is None else model.design.llm
    if isinstance(own, Mapping):
        return [*own.values(), *([] if by_design is None else [by_design])]
    return [own if by_design is None else by_design]


def _capabilities(model: Any, llm: str | LLM) -> Capabilities | None:
    """Return what a language model can, as far as is known before it is asked; None of an endpoint."""
    if not isinstance(llm, str):
        return Capabilities.of(llm)
    if llm.strip() == "rule":
        return Capabilities("rule", is_immediate=True)
    transport = open_simple(llm, is_silent=True)
    if transport is not None:
        return Capabilities.of(transport)
    recorded = model.runlog.manifest.get("capabilities")
    return Capabilities.of_name(llm, recorded[llm]) if isinstance(recorded, Mapping) and llm in recorded else None


def _reasons(model: Any) -> bool:
    """Check whether a reply holds more than the answer, so that the answer has no probabilities."""
    design = model.design
    by_design = design is not None and (design.reasoning not in (None, "none") or design.decide is not None)
    return by_design or model.reasoning not in (None, "none")
