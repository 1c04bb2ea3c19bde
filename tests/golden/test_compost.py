"""Seed words, exaggeration and individuation, computed by CoMPosT's own code (myracheng/lm_caricature @ 9cda928)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from mesa_llm_models.compost.scores import (
    Caricature,
    Controls,
    CorpusText,
    PersonaTopic,
    exaggeration,
    individuation,
    log_odds,
    mean_cosine,
    tokens,
    topic_means,
    transport_distance,
)
from tests.golden.reading import golden, recorded_part, section

CASES: dict[str, Any] = golden("compost")

NOT_COMPARED = {
    "name": "what the case is called",
    "note": "prose about the case",
    "check_sorted_pairs": "the same number, computed in another way",
}
"""Parts of a case that no test reads → why."""

approx = partial(pytest.approx, abs=1e-8)
"""Compare with a score of a corpus, which is recorded with eight digits."""

POOLS: list[list[str]] = [
    list(pool) for rule in section(CASES, "embedding_rule") for pool in rule.get("pools", {}).values()
]


def count_embedding(texts: Sequence[str]) -> Any:
    """Count the words of each pool, as the golden file's `embedding_rule` says; the last coordinate is 1."""
    return np.array(
        [[*(sum(word in pool for word in tokens(text, "original")) for pool in POOLS), 1.0] for text in texts]
    )


def corpus_of(case: Any) -> Caricature:
    if not POOLS:
        pytest.skip("the file has no embedding_rule")
    rows = [CorpusText(row["persona"], row["topic"], row["response"]) for row in case["rows"]]
    return Caricature(rows, count_embedding, Controls(case["default_persona"], case["default_topic"]), "original")


@pytest.mark.parametrize("case", section(CASES, "corpus_cases"), ids=lambda case: case["name"])
def test_a_corpus_is_scored_as_the_original_scores_it(case: Any) -> None:
    corpus, wanted = corpus_of(case), case["expected"]
    for cell, words in wanted["seed_words"].items():
        found = corpus.seed_words(PersonaTopic(*cell.split("|")))
        for side in ("persona", "topic"):
            given = dict(getattr(found, side))
            assert given == pytest.approx(dict(map(tuple, words[f"{side}_words"])), abs=1e-5), cell
    scores, recorded = corpus.exaggerations(), {name: finite(row) for name, row in wanted["exaggeration"].items()}
    assert scores == {name: approx(row) for name, row in recorded.items() if row}
    persona_means = finite(wanted["persona_mean"])
    assert {name: statistics.fmean(scores[name].values()) for name in persona_means} == approx(persona_means)
    assert topic_means(scores) == approx(finite(wanted["topic_mean_nan_ignored"]))
    told_apart = corpus.individuations()
    for name, row in wanted["individuation"].items():
        found = [told_apart[name][topic] for topic in row["topics_in_order"]]
        assert list(told_apart[name]) == row["topics_in_order"]
        assert [one.accuracy for one in found] == approx(row["accuracy"])
        assert [one.macro_f1 for one in found] == approx(row["macro_f1"])
        assert statistics.fmean(one.accuracy for one in found) == approx(row["mean_accuracy"])
    assert set(told_apart) == set(wanted["individuation"])


def finite(scores: Any) -> dict[str, float]:
    """Leave out what the original could not compute: it keeps NaN where nothing is said of a cell here."""
    return {name: float(score) for name, score in scores.items() if score is not None and math.isfinite(score)}


@pytest.mark.parametrize("case", section(CASES, "exaggeration_micro_cases"))
def test_exaggeration_along_an_axis(case: Any) -> None:
    poles = [np.array(case[f"{side}_pole_sentence_embeddings"]).mean(axis=0) for side in ("persona", "topic")]
    axis, wanted = poles[0] - poles[1], dict(case["expected"].items())
    texts = {
        "simulation": case["simulation_embeddings"],
        "topic_control": case["default_persona_on_topic_embeddings"],
        "persona_control": case["persona_on_default_topic_embeddings"],
    }
    vectors = {name: np.array(rows) for name, rows in texts.items()}
    assert axis == pytest.approx(np.array(wanted.pop("axis", axis)), abs=1e-6)
    found = {f"mean_cos_{name}": mean_cosine(rows, axis) for name, rows in vectors.items()}
    found["exaggeration"] = exaggeration(axis, *vectors.values())
    assert recorded_part(found, wanted) == pytest.approx(wanted, abs=1e-7, nan_ok=True)


@pytest.mark.parametrize("case", section(CASES, "log_odds_cases"))
def test_log_odds(case: Any) -> None:
    found = log_odds(case["texts_1"], case["texts_2"], case["background"], "original")
    assert found == pytest.approx(dict(case["expected_z"].items()), abs=1e-7)


@pytest.mark.parametrize("case", section(CASES, "individuation_micro_cases"), ids=lambda case: case["name"])
def test_individuation(case: Any) -> None:
    sides = {"persona": case["persona_embeddings"], "default": case["default_embeddings"]}
    assert isinstance(case["row_order"], str)
    vectors = np.array([*sides["persona"], *sides["default"]])
    labels = [name for name, rows in sides.items() for _ in rows]
    found, wanted = individuation(vectors, labels), case["expected"]
    assert list(found.tested) == wanted["test_row_indices"]
    assert found.accuracy == pytest.approx(wanted["accuracy"], abs=1e-7)
    assert found.macro_f1 == pytest.approx(wanted["macro_f1"], abs=1e-7)


@pytest.mark.parametrize("case", section(CASES, "sorted_pair_distance_cases"))
def test_distance_of_two_distributions(case: Any) -> None:
    assert transport_distance(case["a"], case["b"]) == pytest.approx(case["expected"], abs=1e-7)
