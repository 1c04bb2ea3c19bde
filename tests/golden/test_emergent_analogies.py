"""Matrices, letter strings and replies of the original (taylorwwebb/emergent_analogies_LLM @ 145e72b)."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mesa_llm_models.emergent_analogies.items import letters, matrices, originals
from mesa_llm_models.emergent_analogies.items.letters import LetterString
from mesa_llm_models.emergent_analogies.items.matrices import Matrix
from tests.golden.reading import decoded, golden, section

CASES: dict[str, Any] = golden("emergent_analogies")


def stored() -> dict[str, Any]:
    """Read all files of stored problems and replies that are at hand, whatever their names."""
    folder = Path(os.environ.get("MESA_LLM_DATA", ""))
    found: dict[str, Any] = {}
    paths = [*folder.glob("emergent_analogies*.json"), *folder.glob("emergent_analogies/*.json")]
    for path in sorted(paths) if "MESA_LLM_DATA" in os.environ else []:
        sections = decoded(json.loads(path.read_text(encoding="utf-8")))
        for name, cases in sections.items() if isinstance(sections, dict) else ():
            if isinstance(cases, list):
                found.setdefault(name, []).extend(cases)
    return found


STORED = stored()

NOT_COMPARED = {
    "repo": "where the recordings come from",
    "commit": "as repo",
    "numpy": "as repo",
    "seed": "problems here are drawn otherwise",
    "index": "the number of a problem within its type",
    "dataset": "which file a problem is of",
    "type": "replies are judged alike for all types",
    "transformation": "found by the solver from the source",
    "generalizations": "found by the solver from the target",
}
"""Parts of a case that no test reads → why."""


def matrix_of(case: Any) -> Matrix:
    cells = tuple(tuple(tuple(cell) for cell in row) for row in case["matrix"])
    return Matrix(case["type"], cells, case["perm_invariant"])


@pytest.mark.parametrize("case", section(CASES, "matrix_seeded_problems") + section(STORED, "matrix_problems"))
def test_a_matrix_follows_the_rules_of_its_type(case: Any) -> None:
    matrix = matrix_of(case)
    assert in_order(matrix.key, matrix) == in_order(case["correct_answer"], matrix)
    assert matrices.solve(matrix) == (tuple(sorted(matrix.key)) if matrix.is_set else matrix.key)
    assert matrix.kind in (*matrices.KINDS, *matrices.MANY_RULES)
    assert matrix.is_set == (matrix.category == "logic")
    if "prompt" in case:
        assert case["blank_marker"] == matrices.BLANK
        assert matrix.text == case["prompt"]
        chosen = case["answer_choices"][case["correct_choice_index"]]
        assert in_order(chosen, matrix) == in_order(case["correct_answer"], matrix)


def in_order(digits: Sequence[int], matrix: Matrix) -> list[int]:
    """Write the digits of an answer so that equal answers are equal: a set has no order."""
    kept = [digit for digit in digits if digit != matrices.BLANK]
    return sorted(kept) if matrix.is_set else kept


@pytest.mark.parametrize(
    "case", section(CASES, "matrix_synthetic_responses") + section(STORED, "matrix_recorded_responses")
)
def test_a_reply_to_a_matrix_is_judged(case: Any) -> None:
    verdict = matrices.is_right(case["response"], case["correct_answer"], case["perm_invariant"])
    assert verdict == case["expected"]


@pytest.mark.parametrize(
    "case", section(CASES, "letterstring_seeded_problems") + section(STORED, "letterstring_problems")
)
def test_a_letter_string_follows_the_rules_of_its_type(case: Any) -> None:
    first, second, third, fourth = (tuple(map(str, case[name])) for name in "ABCD")
    problem = LetterString(case["type"], (first, second), third, fourth)
    assert problem.kind in letters.KINDS
    if "prompt_stem_omitted" in case:
        assert problem.text("bare") == case["prompt_stem_omitted"]
    if problem.kind.startswith("realworld"):
        words = list_behind(case["transformation"], third, fourth)
        assert fourth in letters.solve(problem, {"list": words})
    else:
        assert fourth in letters.solve(problem)


def list_behind(transformation: str, third: tuple[str, ...], fourth: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ordered list of four that a pair of words was made of."""
    if transformation == "succ":
        return (*third, fourth[-1])
    return (fourth[0], *third) if transformation == "pred" else fourth


@pytest.mark.parametrize(
    "case", section(CASES, "letterstring_synthetic_responses") + section(STORED, "letterstring_recorded_responses")
)
def test_a_reply_to_a_letter_string_is_judged(case: Any) -> None:
    form = "sentence" if case["format"] == "sentence" else "lead"
    is_failure = isinstance(case["expected"], str)  # the original fails on an empty reply, which is wrong here
    assert letters.is_right(case["response"], case["correct_answer"], form) == (case["expected"] and not is_failure)


@pytest.mark.parametrize("source", section(CASES, "source"))
def test_the_digests_of_the_original_files_are_those_that_are_opened(source: Any) -> None:
    files = (originals.MATRICES, originals.MATRICES_OF_MORE_RULES, originals.LETTER_STRINGS, originals.VERBAL)
    assert {one.url.removeprefix(originals.BASE): one.sha256 for one in files} == dict(source["sha256"])
