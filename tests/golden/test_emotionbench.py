"""Keys, scores, orders, changes and tests of EmotionBench, by its own code (CUHK-ARISE/EmotionBench @ 48f6e1b)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from mesa_llm.questionnaire import Instrument, Mode, Scale, Subscale, in_item_order, summary
from mesa_llm_models.emotionbench.items import load_instruments, load_situations
from mesa_llm_models.emotionbench.scores import changes
from tests.golden.last_digits import assert_read_by_last_digits
from tests.golden.reading import assert_close, entry, golden, section

CASES: dict[str, Any] = golden("emotionbench")

NOT_COMPARED = {
    "kind": "how the answers were drawn",
    "name": "what the case is called",
}
"""Parts of a case that no test reads → why."""

MODES: dict[str, Mode] = {"SUM": "sum", "AVG": "mean"}

DIGITS = {"f": 4, "f_p": 4, "t": 4, "t_df": 1, "t_p": 4}
"""Digits to which the expected numbers of the tests are rounded, at least."""


def instrument_of(name: str) -> Instrument:
    defined = entry(CASES, "scale_definitions", name)
    mode, _, factor = defined["compute_mode"].partition("*")
    return Instrument(
        name,
        "",
        dict.fromkeys(range(1, defined["n_items"] + 1), ""),
        Scale(defined["response_min"], defined["response_max"], frozenset(defined["reverse_items"])),
        tuple(
            Subscale(key, tuple(items), MODES[mode], int(factor or 1)) for key, items in defined["subscales"].items()
        ),
    )


def original(name: str) -> Path:
    folder = os.environ.get("MESA_LLM_DATA")
    path = Path(folder or "", "emotionbench", name)
    if not folder or not path.is_file():
        pytest.skip(f"MESA_LLM_DATA holds no emotionbench/{name}")
    return path


@pytest.mark.parametrize("name", CASES.get("scale_definitions", ()))
def test_the_original_file_is_read_with_its_key(name: str) -> None:
    loaded, wanted = load_instruments(original("questionnaires.json"))[name], instrument_of(name)
    assert CASES["scale_definitions"][name]["reverse_constant"] == loaded.scale.low + loaded.scale.high
    assert (loaded.scale, loaded.subscales) == (wanted.scale, wanted.subscales)
    assert list(loaded.items) == list(wanted.items)


@pytest.mark.parametrize("name", [one for one in ("questionnaires_json", "situations_json") if "source" in CASES])
def test_the_original_files_are_those_that_the_cases_were_made_of(name: str) -> None:
    digest = hashlib.sha256(original(name.replace("_json", ".json")).read_bytes()).hexdigest()
    assert digest == CASES["source"][f"{name}_sha256"]


@pytest.mark.parametrize("wanted", section(CASES, "situation_counts"))
def test_the_original_situations_are_all_read(wanted: Any) -> None:
    counts: dict[str, dict[str, int]] = {}
    for one in load_situations(original("situations.json")):
        factors = counts.setdefault(one.emotion, {})
        factors[one.factor] = factors.get(one.factor, 0) + 1
    assert counts == wanted


@pytest.mark.parametrize("wanted", section(CASES, "situation_counts"))
def test_our_situations_have_the_factors_of_the_original(wanted: Any) -> None:
    ours = {(one.emotion, one.factor) for one in load_situations(has_twins=False)}
    assert ours == {(emotion, name) for emotion, factors in wanted.items() for name in dict(factors)}


@pytest.mark.parametrize("case", section(CASES, "scoring_cases"))
def test_answers_are_scored(case: Any) -> None:
    answers = dict(enumerate(case["answers"], 1))
    assert_close(instrument_of(case["scale"]).score(answers), case["expected"])


@pytest.mark.parametrize("case", section(CASES, "shuffle_cases"))
def test_answers_are_mapped_back_from_the_order_presented(case: Any) -> None:
    answers = in_item_order(case["order"], case["answers_in_presented_order"])
    assert_close(instrument_of(case["scale"]).score(answers), case["expected"])


@pytest.mark.parametrize("case", section(CASES, "parse_cases"))
def test_replies_are_read_by_the_last_character_of_each_line(case: Any) -> None:
    assert_read_by_last_digits(case)


def scored(instrument: Instrument, sheets: list[list[int]]) -> list[dict[str, float]]:
    return [
        {name: score for name, score in instrument.score(dict(enumerate(sheet, 1))).items() if score is not None}
        for sheet in sheets
    ]


def row_of(change: Any) -> dict[str, Any]:
    tested = change.comparison
    found: dict[str, Any] = {
        "mean": change.summary.mean,
        "sd": change.summary.sd,
        "n": change.summary.n,
        "change": change.change,
        "equal_variance": tested.equal_variance,
        "relation": tested.relation,
    }
    return found | {name: round(float(getattr(tested, name)), digits) for name, digits in DIGITS.items()}


@pytest.mark.parametrize("case", section(CASES, "end_to_end_cases"))
def test_a_whole_experiment_has_the_changes_of_the_original(case: Any) -> None:
    instrument = instrument_of(case["scale"])
    default = scored(instrument, case["default_runs"])
    evoked = {
        (name.partition("-")[0], name): scored(instrument, sheets) for name, sheets in case["evoked_runs"].items()
    }
    found: dict[str, Any] = {"default": {}, "factors": {}, "emotions": {}, "overall": {}}
    for one in instrument.subscales:
        base = summary([scores[one.name] for scores in default])
        found["default"][one.name] = {"mean": base.mean, "sd": base.sd, "n": base.n}
        for change in changes(default, evoked, one.name, case["alpha"]):
            if change.factor:
                found["factors"].setdefault(change.factor, {})[one.name] = row_of(change)
            elif change.emotion:
                found["emotions"].setdefault(change.emotion, {})[one.name] = row_of(change)
            else:
                found["overall"][one.name] = row_of(change)
    assert_close(found, numbers(case["expected"]), 1e-9)


def numbers(expected: Any) -> Any:
    """Turn means that happen to be whole into floats, and round the numbers of the tests as ours are."""
    if not isinstance(expected, dict):
        return expected
    found = {key: numbers(inner) for key, inner in expected.items()}
    found |= {key: float(found[key]) for key in ("mean", "sd", "change") if key in found}
    return found | {key: round(float(found[key]), digits) for key, digits in DIGITS.items() if key in found}
