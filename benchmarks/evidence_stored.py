"""Published values that random choices and stored data reproduce, by model, and the measurement of ours."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from evidence_record import Claim, Reading, Readings

from mesa_llm.benchmark import find_task, mean_absolute_error
from mesa_llm_models.cognitive_biases.model import CognitiveBiasesModel
from mesa_llm_models.cognitive_biases.scores import published
from mesa_llm_models.emergent_analogies import letters, matrices
from mesa_llm_models.emotionbench import scores as emotionbench
from mesa_llm_models.psychobench.instruments import read_original
from mesa_llm_models.psychobench.task import norms
from mesa_llm_models.sotopia import scores as sotopia


def data_file(*parts: str) -> Path:
    """Return the path of a file of the original projects, in the folder that `MESA_LLM_DATA` names."""
    return Path(os.environ["MESA_LLM_DATA"], *parts)


# -- cognitive_biases

HEAT_MAP = "the authors' heat-map of 2024-10-14, `models/mesa_llm_models/cognitive_biases/data/published.csv`"
MODELS = [
    "GPT-4o",
    "GPT-4o-mini",
    "GPT-3.5-Turbo",
    "Llama 3.1 405B",
    "Llama 3.1 70B",
    "Llama 3.1 8B",
    "Llama 3.2 3B",
    "Llama 3.2 1B",
    "Gemini 1.5 Pro",
    "Gemini 1.5 Flash",
    "Gemma 2 27B",
    "Gemma 2 9B",
    "Mistral Small",
    "Mistral Large 2",
    "WizardLM 2 8x22B",
    "WizardLM-2-7B",
    "Phi 3",
    "Qwen2.5 72B",
    "Yi-Large",
    "Random",
]
"""Columns of the heat-map."""

AVERAGE = "Average of models (incl. Random)"
BY_CHANCE = "mesa-llm run cognitive_biases --llm random --steps 200 --set n_tests=200 --set conservatism_rule=2024"


def bias_claims() -> Iterator[Claim]:
    for bias, mean in published("Random").items():
        yield Claim(f"mean score of random choices, {bias}", mean, HEAT_MAP, f"{BY_CHANCE} --rng 1 --json", 2, 1000)
    stored = "python3 dev.py evidence cognitive_biases"
    baseline = find_task("cognitive_biases").published
    if baseline:
        quantity = "distance of random choices from GPT-4o-mini, 30 biases"
        yield Claim(quantity, baseline.baseline, baseline.source, stored)
    yield Claim("biases whose average over 20 columns is the printed one", 30, HEAT_MAP, stored, 0)


def biases(n_runs: int) -> Readings:
    model = CognitiveBiasesModel(n_tests=n_runs, conservatism_rule="2024", llm="random", rng=1)
    model.run_for(n_runs)
    found = {
        f"mean score of random choices, {one.bias}": Reading(one.n, one.mean, one.se * math.sqrt(one.n))
        for one in model.scores()
    }
    columns = [published(name) for name in MODELS]
    printed = published(AVERAGE)
    rounding = 0.005 + 0.005  # of the average, and of the twenty values
    same = [bias for bias, mean in printed.items() if abs(fmean(one[bias] for one in columns) - mean) <= rounding]
    found["biases whose average over 20 columns is the printed one"] = Reading(len(printed), len(same))
    distance = mean_absolute_error(published("Random"), published("GPT-4o-mini"))
    return found | {"distance of random choices from GPT-4o-mini, 30 biases": Reading(len(printed), distance)}


# -- emergent_analogies

REPLIES = "replies of text-davinci-003 in the authors' repository, with their verdicts"


def analogy_claims() -> Iterator[Claim]:
    command = "MESA_LLM_DATA=FOLDER python3 dev.py evidence emergent_analogies"
    yield Claim("verdicts on stored replies to matrices", 85, REPLIES, command, 0)
    yield Claim("verdicts on stored replies to letter strings", 83, REPLIES, command, 0)
    yield Claim("answers to stored matrices, by rule", 68, REPLIES, command, 0)


def analogies(n_runs: int) -> Readings:
    stored = json.loads(data_file("emergent_analogies", "stored_problems_and_replies.json").read_text("utf-8"))
    digits, strings = stored["matrix_recorded_responses"], stored["letterstring_recorded_responses"]
    problems = stored["matrix_problems"]
    return {
        "verdicts on stored replies to matrices": Reading(len(digits), sum(map(is_verdict_on_matrix, digits))),
        "verdicts on stored replies to letter strings": Reading(len(strings), sum(map(is_verdict_on_string, strings))),
        "answers to stored matrices, by rule": Reading(len(problems), sum(map(is_solved, problems))),
    }


def is_verdict_on_matrix(case: Any) -> bool:
    """Check whether our verdict on a stored reply to a matrix is that of its authors."""
    right = matrices.is_right(case["response"], case["correct_answer"], case["perm_invariant"])
    return right == case["expected"]


def is_verdict_on_string(case: Any) -> bool:
    """Check whether our verdict on a stored reply to a letter string is that of its authors.

    Their program fails on some replies, which count as wrong.
    """
    form: Any = "sentence" if case["format"] == "sentence" else "lead"
    expected = case["expected"] is True
    return letters.is_right(case["response"], case["correct_answer"], form) == expected


def is_solved(case: Any) -> bool:
    """Check whether the solver finds the stored answer of a matrix."""
    cells = tuple(tuple(tuple(cell) for cell in row) for row in case["matrix"])
    matrix = matrices.Matrix(case["type"], cells, case["perm_invariant"])
    answer = tuple(case["correct_answer"])
    return matrices.solve(matrix) == (tuple(sorted(answer)) if matrix.is_set else answer)


# -- emotionbench

SHEETS = "means by emotion, `models/mesa_llm_models/emotionbench/data/published.csv`"


def emotion_claims() -> Iterator[Claim]:
    for one in emotionbench.published():
        if not one.emotion and not one.is_default:
            quantity = f"{one.subscale} over all emotions, {one.respondent}"
            yield Claim(quantity, one.summary.mean, SHEETS, "python3 dev.py evidence emotionbench", 4)


def emotions(n_runs: int) -> Readings:
    table = emotionbench.published()
    found: dict[str, Reading] = {}
    for one in table:
        if one.emotion or one.is_default:
            continue
        parts = [other.summary for other in table if other.emotion and is_alike(one, other)]
        n = sum(part.n for part in parts)
        mean = sum(part.mean * part.n for part in parts) / n
        found[f"{one.subscale} over all emotions, {one.respondent}"] = Reading(n, mean)
    return found


def is_alike(one: emotionbench.Published, other: emotionbench.Published) -> bool:
    """Check whether two means are of the same respondent and subscale."""
    return (one.respondent, one.subscale) == (other.respondent, other.subscale)


# -- psychobench

NORMS = "questionnaires.json of the authors' repository, `models/mesa_llm_models/psychobench/data/norms.csv`"


def norm_claims() -> Iterator[Claim]:
    command = "MESA_LLM_DATA=FOLDER python3 dev.py evidence psychobench"
    yield Claim("first norms of people, as the loader reads them", 69, NORMS, command, 0)


def norms_read(n_runs: int) -> Readings:
    written = norms()
    read = {
        f"{instrument.name}: {subscale.name}": subscale.norms[0].mean
        for instrument in read_original(data_file("psychobench", "questionnaires.json"))
        for subscale in instrument.subscales
    }
    same = sum(read.get(name) == mean for name, mean in written.items())
    return {"first norms of people, as the loader reads them": Reading(len(written), same)}


# -- sotopia

TABLE = "Zhou et al. (2024), table of models, `models/mesa_llm_models/sotopia/data/published.json`"
OVERALL = {
    "GPT-4": (3.31, 0.760),
    "GPT-3.5": (2.93, 0.722),
    "Llama-2-70b-chat": (2.52, 0.681),
    "MPT-30b-chat": (1.87, 0.615),
}
"""Model → mean of its seven dimensions, as printed and on the scale of each, from 0 to 1."""


def dyad_claims() -> Iterator[Claim]:
    for name, (mean, share) in OVERALL.items():
        yield Claim(f"mean of seven dimensions, {name}", mean, TABLE, "python3 dev.py evidence sotopia", 2)
        yield Claim(f"mean of seven shares of the scale, {name}", share, TABLE, "python3 dev.py evidence sotopia", 3)


def dyads(n_runs: int) -> Readings:
    table: Any = sotopia.published()
    found: dict[str, Reading] = {}
    for name in OVERALL:
        rows = table[(table["model"] == name) & table["setting"].str.startswith("all 90")]
        values = dict(zip(rows["measure"], rows["value"], strict=True))
        by_name = {one.name: values[one.code] for one in sotopia.STANDARD}
        found[f"mean of seven dimensions, {name}"] = Reading(7, fmean(values.values()))
        shares = fmean(sotopia.normalised(by_name).values())
        found[f"mean of seven shares of the scale, {name}"] = Reading(7, shares)
    return found
