"""Scores, draws, orders and texts of the original's own classes (simonmalberg/cognitive-biases-in-llms @ a3d2465)."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm_models.cognitive_biases.items import (
    Template,
    canonical_index,
    draw_parameters,
    is_reversed,
    load_material,
    option_number,
    seed_of,
    trimmed,
)
from mesa_llm_models.cognitive_biases.scores import BIASES, Metric, score_of
from tests.golden.reading import golden, section

CASES: dict[str, Any] = golden("cognitive_biases")

NOT_COMPARED = {
    "desc": "how the case was made",
}
"""Parts of a case that no test reads → why."""

N_STATEMENTS = 16
"""Number of statements of a published scale, one of which SocialDesirabilityBias draws."""

ROUNDING = 6e-7
"""Half a unit of the last digit of the grids, and a little."""


def grid(metric: Metric) -> list[list[float]]:
    options = range(metric.n_options)
    return [[metric.score(control, treatment) for treatment in options] for control in options]


@pytest.mark.parametrize("name", CASES.get("bias_specs", ()))
def test_a_bias_is_defined_as_in_the_original(name: str) -> None:
    wanted, bias = CASES["bias_specs"][name], BIASES[name]
    assert bias.metric.n_options == wanted["n_options"]
    assert [bias.parameter] * bool(bias.parameter) == wanted["parameter"]
    material = load_material()[1][name]
    assert (material.control.options == material.treatment.options) == wanted["same_option_labels"]
    assert bool(draw_parameters(name, 1, 1, len(material.choices))[0]) == wanted["has_custom_values"]


@pytest.mark.parametrize("case", section(CASES, "score_grids"))
def test_every_pair_of_choices_is_scored(case: Any) -> None:
    metric = BIASES[case["bias"]].metric_of(case["params"])
    case["params"].read_all()
    assert metric.n_options == case["n_options"]
    for found, wanted in zip(grid(metric), case["matrix_rows_control_cols_treatment"], strict=True):
        assert found == pytest.approx(wanted, abs=ROUNDING)


def test_conservatism_is_scored_as_in_2024_where_that_is_wanted() -> None:
    rows = iter(grid(BIASES["Conservatism"].metric_of({}, "2024")))
    for wanted in section(CASES, "conservatism_flipped_grid_as_in_2024_2025_publication"):
        assert any(found == pytest.approx(wanted, abs=ROUNDING) for found in rows)  # rows in order, some left out


@pytest.mark.parametrize("case", section(CASES, "aggregate_cases"))
def test_tests_are_averaged(case: Any) -> None:
    bias = BIASES[case["bias"]]
    scores = [bias.metric_of(one["params"]).score(one["control"], one["treatment"]) for one in case["tests"]]
    case.read_all()
    found = score_of(bias.name, scores, 0, 0.0)
    assert found.mean == pytest.approx(case["expected_mean"], abs=1e-12)
    assert round(found.mean, 2) == case["expected_aggregate_rounded"]
    assert found.mean_absolute == pytest.approx(case["expected_mean_abs"], abs=1e-12)


@pytest.mark.parametrize("case", section(CASES, "unshuffle_cases"))
def test_the_number_shown_is_mapped_back(case: Any) -> None:
    assert len(case["shown_order"]) == case["n_options"]
    assert canonical_index(case["answered_option_number"], case["shown_order"]) == case["expected_canonical_index"]


@pytest.mark.parametrize(("number", "error"), section(CASES, "out_of_range_decisions"))
def test_a_number_out_of_range_is_an_error(number: int, error: str) -> None:
    assert error == "ValueError"
    with pytest.raises(ValueError, match="options go from 1 to 7"):
        canonical_index(number, range(7))


@pytest.mark.parametrize("case", section(CASES, "flip_by_seed"))
def test_a_seed_reverses_the_options(case: Any) -> None:
    assert is_reversed(case["seed"]) == case["reversed"]


@pytest.mark.parametrize("case", section(CASES, "extraction_cases"))
def test_an_option_is_read_from_a_free_answer(case: Any) -> None:
    assert option_number(case["text"]) == case["expected"]


@pytest.mark.parametrize("case", section(CASES, "insertion_trim_cases"))
def test_a_text_that_is_put_in_loses_its_last_mark(case: Any) -> None:
    assert trimmed(case["text"]) == case["expected"]


@pytest.mark.parametrize("case", section(CASES, "format_case"))
def test_a_task_is_written_as_in_the_original(case: Any) -> None:
    template = Template(("S one {{u}}.", "S two [[m]]."), "P?", ("A [[m]]", "B")).filled({"u": "val", "m": "gap"})
    for name, wanted in case.items():
        if name != "desc":
            seed = name.removeprefix("seed")
            assert template.text(seed.isdigit() and is_reversed(int(seed))) == wanted


@pytest.mark.parametrize("case", section(CASES, "sampling_cases"))
def test_parameters_are_drawn_as_in_the_original(case: Any) -> None:
    assert seed_of(case["scenario"]) == case["iteration_seed"]
    drawn = draw_parameters(case["bias"], case["iteration_seed"], case["num_instances"], N_STATEMENTS)
    for name, values in case["values"].items():
        if case["bias"] != "SocialDesirabilityBias":
            # A list is a kind and what its text names besides: the country of `spatial`, which no score depends on.
            assert [one[name] for one in drawn] == [value[0] if isinstance(value, list) else value for value in values]


def test_which_statements_are_desirable_fits_all_draws() -> None:
    desirable: dict[int, Any] = {}
    for case in section(CASES, "sampling_cases"):
        if case["bias"] == "SocialDesirabilityBias":
            drawn = draw_parameters(case["bias"], case["iteration_seed"], case["num_instances"], N_STATEMENTS)
            for one, value in zip(drawn, case["values"]["desirable"], strict=True):
                assert desirable.setdefault(one["choice"], value) == value


@pytest.mark.parametrize("name", CASES.get("uniform_random_responder_expectation", ()))
def test_random_choices_have_the_exact_expectation(name: str) -> None:
    wanted = CASES["uniform_random_responder_expectation"][name]
    assert BIASES[name].expectation() == pytest.approx(wanted, abs=5e-5)
