"""Keys, scores, orders and tests of PsychoBench, computed by its own code (CUHK-ARISE/PsychoBench @ d514fb0)."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm.questionnaire import (
    Instrument,
    Mode,
    Scale,
    Subscale,
    Summary,
    compare,
    in_item_order,
    summary,
)
from mesa_llm_models.psychobench.items import FORMS, proper_name
from tests.golden.last_digits import assert_read_by_last_digits
from tests.golden.reading import assert_close, entry, golden, section

CASES: dict[str, Any] = golden("psychobench")

NOT_COMPARED = {
    "kind": "how the answers were drawn",
    "group": "who the norm is of",
    "expected.precision": "to how many digits the expected numbers are rounded, as the tolerances below",
}
"""Parts of a case that no test reads → why."""


def instrument_of(name: str) -> Instrument:
    defined = entry(CASES, "scale_definitions", name)
    mode: Mode = "sum" if defined["compute_mode"] == "SUM" else "mean"
    return Instrument(
        name,
        "",
        dict.fromkeys(range(1, defined["n_items"] + 1), ""),
        Scale(defined["response_min"], defined["response_max"], frozenset(defined["reverse_items"])),
        tuple(Subscale(key, tuple(items), mode) for key, items in defined["subscales"].items()),
    )


def name_of(case: Any) -> str:
    return case["scale"]


@pytest.mark.parametrize("name", CASES.get("scale_definitions", ()))
def test_a_form_has_the_published_key(name: str) -> None:
    defined, form = CASES["scale_definitions"][name], FORMS[name]
    subscales = {proper_name(name, key): tuple(sorted(items)) for key, items in defined["subscales"].items()}
    assert (form.n_items, form.low, form.high) == (
        defined["n_items"],
        defined["response_min"],
        defined["response_max"],
    )
    assert form.low + form.high == defined["reverse_constant"]
    assert {"sum": "SUM", "mean": "AVG"}[form.mode] == defined["compute_mode"]
    assert form.reversed_items == frozenset(defined["reverse_items"])
    assert form.subscales == subscales
    scored = {number for items in form.subscales.values() for number in items}
    assert [number for number in range(1, form.n_items + 1) if number not in scored] == defined["unscored_items"]


@pytest.mark.parametrize("case", section(CASES, "scoring_cases"), ids=name_of)
def test_scores(case: Any) -> None:
    found = instrument_of(case["scale"]).score(dict(enumerate(case["answers"], 1)))
    assert_close(found, dict(case["expected"].items()), 1e-12)


@pytest.mark.parametrize("case", section(CASES, "shuffle_cases"), ids=name_of)
def test_answers_in_another_order_are_mapped_back(case: Any) -> None:
    answers = in_item_order(case["order"], case["answers_in_presented_order"])
    assert_close(instrument_of(case["scale"]).score(answers), dict(case["expected"].items()), 1e-12)


@pytest.mark.parametrize("case", section(CASES, "aggregate_cases"), ids=name_of)
def test_runs_are_summarised(case: Any) -> None:
    instrument = instrument_of(case["scale"])
    runs = [instrument.score(dict(enumerate(answers, 1))) for answers in case["runs_in_item_order"]]
    for name, wanted in case["expected"].items():
        found = summary([score for run in runs if (score := run[name]) is not None])
        assert_close([found.mean, found.sd, found.n], [float(wanted["mean"]), float(wanted["sd"]), wanted["n"]], 1e-9)


@pytest.mark.parametrize("case", section(CASES, "stats_cases"), ids=lambda case: f"{case['scale']}-{case['subscale']}")
def test_scores_are_compared_with_norms(case: Any) -> None:
    first, second = (Summary(case[side]["mean"], case[side]["sd"], case[side]["n"]) for side in ("model", "norm"))
    found, wanted = compare(first, second, case["alpha"]), case["expected"]
    assert (found.equal_variance, found.relation) == (wanted["equal_variance"], wanted["relation"])
    assert list(found.f_df) == wanted["f_df"]
    assert found.t_df == pytest.approx(wanted["t_df"], rel=1e-9, abs=0.051)
    for name in ("f", "f_p", "t", "t_p"):
        assert getattr(found, name) == pytest.approx(wanted[name], rel=1e-9, abs=0.000051), name


@pytest.mark.parametrize("case", section(CASES, "parse_cases"), ids=lambda case: repr(case["text"]))
def test_replies_are_read_as_the_original_reads_them(case: Any) -> None:
    assert_read_by_last_digits(case)
