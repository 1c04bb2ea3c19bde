"""Two players with the same persona in three forms: does the form alone change whether they cooperate?

Source:
    Ye, Cao, Chen and Ferrara (2026), arXiv 2605.18890, case 1: two agents, ten rounds, 30 seeds a condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from typing import Annotated, Any

from pydantic import Field
from scipy import stats

from mesa_llm import AgentDesign
from mesa_llm.engine.presentation import PersonaForm, Presentation
from mesa_llm.experiments.findings import Table, Value, comparison_cells, estimate_cells
from mesa_llm.experiments.runs.neutral import NEUTRAL
from mesa_llm.experiments.runs.study import Study, StudyFindings, StudySetup
from mesa_llm.statistics import compare, correct, mean_estimate
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel

QUESTION = "Does the form of a persona alone change whether two players cooperate?"

PERSONA = (
    "You are a nurse of 41 years in a small town. You are patient and fair. You take few risks. You keep promises, and "
    "you care about what others think of you."
)
"""What every condition says about both players."""

FORMS: Mapping[str, PersonaForm] = {"plain": "sentence", "description": "description", "table": "table"}
"""Condition → form of the persona."""

PUBLISHED: Mapping[str, float] = {"gpt-5.2": 76, "claude-haiku-4-5": 77, "gemini-2.5-flash": 36, "deepseek-v3": 1}
"""Language model → largest difference between two conditions, in percentage points of cooperation.

Source:
    arXiv 2605.18890, case 1. With gpt-5.2 the description lies 76 points below plain, and 73 below the table.
"""

PLACEBO = "plain and a meaningless sentence"
"""Condition that should change nothing: what any change of the words does."""

MEASURE = "guests_cooperation"


def study_persona_form(setup: StudySetup, *, rounds: Annotated[int, Field(ge=1)] = 10) -> StudyFindings:
    """Let two players with the same persona play, in each form with each seed, and compare their cooperation.

    Args:
        setup: Settings of the runs.
        rounds: Number of rounds.
    """
    designs = {
        name: AgentDesign(persona=PERSONA, presentation=Presentation(persona_form=form)) for name, form in FORMS.items()
    }
    designs[PLACEBO] = replace(designs["plain"], persona=f"{PERSONA} {NEUTRAL[0]}")
    fixed = {"guests": 2, "regulars": False, "people": "alike", **setup.parameters, "rounds": rounds}
    with closing(setup.experiment()) as runs:
        table = runs.sweep("persona_form", DilemmaModel, fixed=fixed, designs=designs).table
        shares = {
            str(name): [100.0 * share for share in rows[MEASURE]] for name, rows in table.groupby("design", sort=False)
        }
        cost = runs.cost()
    rows: list[dict[str, Value]] = [
        {"form": name, **estimate_cells(mean_estimate(column, bounds=(0, 100)), "cooperation")}
        for name, column in shares.items()
    ]
    names = [*combinations(FORMS, 2), ("plain", PLACEBO)]
    compared = correct(
        [compare(shares[first], shares[second], margin=setup.smallest_effect) for first, second in names], "holm"
    )
    pairs: list[dict[str, Value]] = []
    for (first, second), one in zip(names, compared, strict=True):
        test: Any = stats.mannwhitneyu(shares[first], shares[second])
        cells = {
            "pair": f"{first} − {second}",
            **comparison_cells(one),
            "verdict": "cannot tell" if one is None else one.verdict,
        }
        pairs.append(cells | {"published test": float(test.pvalue)})
    largest = max(abs(float(pair["difference"] or 0)) for pair in pairs[:-1])
    beside: list[dict[str, Value]] = [
        {"language model": name, "largest difference": size} for name, size in PUBLISHED.items()
    ]
    beside.append({"language model": f"{setup.llm} (ours)", "largest difference": largest})
    tables = [
        Table("Cooperation by form of the persona", rows, "Percent of all moves, mean over seeds with 95 % intervals."),
        Table(
            "Differences",
            pairs,
            "Percentage points, paired by seed; p of the paired t-test, corrected by Holm. The last pair is the "
            "placebo: what a sentence does that means nothing. The published test is an unpaired one (two-sided "
            "Mann–Whitney).",
        ),
        Table("Beside the published sizes", beside, "Percentage points (arXiv 2605.18890, case 1); personas differ."),
    ]
    setting = {"seeds": list(setup.seeds), "language model": setup.llm, "rounds": rounds, **setup.parameters}
    return StudyFindings("persona_form", QUESTION, setting, cost, tables)


PERSONA_FORM = Study(
    "persona_form",
    QUESTION,
    DilemmaModel,
    study_persona_form,
    30,
    f"{PLACEBO}: a sentence about a river after the persona",
)
"""The study, of `mesa-llm study classics persona_form`."""
