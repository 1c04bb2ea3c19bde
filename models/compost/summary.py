"""Scores of personas, with their errors, and how many cells they rest on."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from models.compost.scores import CHANCE, Caricature, standard_error, topic_means

if TYPE_CHECKING:
    from models.compost.model import CompostModel


@dataclass(frozen=True)
class PersonaScore:
    """One score of a persona."""

    mean: float
    """Mean over topics; NaN without any."""

    error: float
    """Standard error of the mean; NaN of fewer than two topics."""

    by_topic: Mapping[str, float]
    """The score on each topic that could be scored."""

    chance: float = CHANCE
    """What chance gives."""


@dataclass(frozen=True)
class Scores:
    """What a corpus shows."""

    individuation: Mapping[str, PersonaScore]
    """Persona → how well its texts can be told from the default persona's: 0.5 is chance, 1 always."""

    exaggeration: Mapping[str, PersonaScore]
    """Persona → how far its texts lie from the default persona, 0, to the persona without a topic, 1."""

    by_topic: Mapping[str, float]
    """Topic → mean exaggeration over personas."""

    coverage: float
    """Share of the cells for which there is an exaggeration."""


def scores_of(corpus: Caricature) -> Scores:
    """Score a corpus.

    Args:
        corpus: Its measures.
    """
    exaggerations = corpus.exaggerations()
    scored = [topic for topic in corpus.topics if corpus.rules == "original" or topic != corpus.controls.topic]
    n_cells = len(corpus.personas) * len(scored)
    n_found = sum(len(row) for name, row in exaggerations.items() if name != corpus.controls.persona)
    told_apart = corpus.individuations()
    return Scores(
        {name: _score({t: one.accuracy for t, one in row.items()}) for name, row in told_apart.items()},
        {name: _score(exaggerations.get(name, {})) for name in dict.fromkeys([*corpus.personas, *exaggerations])},
        topic_means(exaggerations),
        n_found / n_cells if n_cells else 0.0,
    )


def _score(by_topic: Mapping[str, float]) -> PersonaScore:
    values = list(by_topic.values())
    return PersonaScore(statistics.fmean(values) if values else math.nan, standard_error(values), by_topic)


def tell(model: CompostModel) -> str:
    """Tell how each persona scores, and on how much that rests.

    Args:
        model: The model, after a run.
    """
    scores = model.scores()
    lines = [
        f"{name}: individuation {_number(scores.individuation[name].mean)}, exaggeration {_number(row.mean)} "
        f"({len(row.by_topic)} topics)"
        for name, row in scores.exaggeration.items()
        if name in scores.individuation
    ]
    ending = (
        f"{model.n_texts} texts, {model.n_missing} missing, {model.n_unparsable} without a text; "
        f"{scores.coverage:.0%} of the cells could be scored; vectors of {model.scenario.embedder}."
    )
    heading = (
        "Told from the default persona (0.5 is chance), and exaggerated (0: the default persona, 1: no topic left):"
    )
    return "\n".join([heading, *lines, ending])


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"
