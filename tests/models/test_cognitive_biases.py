"""Cognitive biases: tests that are made, decided and scored."""

import csv
import io
import json

import pytest

from mesa_llm import ConfigError, ScriptedLLM
from mesa_llm.experiments.benchmarks import mean_absolute_error
from mesa_llm_models.cognitive_biases.items import GAP, is_reversed, load_material, load_tests, make_tests
from mesa_llm_models.cognitive_biases.model import CognitiveBiasesModel
from mesa_llm_models.cognitive_biases.scores import BIASES, published


def run(**parameters):
    model = CognitiveBiasesModel(**{"rng": 1, "n_tests": 1, **parameters})
    while model.running:
        model.step()
    return model


def test_the_rule_twin_leans_as_far_as_it_is_susceptible() -> None:
    means = [one.mean for one in run(n_tests=4, susceptibility=0.5).scores()]
    assert len(means) == 30
    assert min(means) > 0.3
    assert max(one.mean for one in run(n_tests=4, susceptibility=-0.5).scores()) < 0


def test_a_rule_twin_that_is_not_susceptible_shows_no_bias() -> None:
    sizes = [one.mean_absolute for one in run(susceptibility=0).scores() if one.bias not in ("PlanningFallacy",)]
    assert max(sizes) < 0.01


def test_random_choices_stay_around_their_expectation() -> None:
    scores = run(llm="random", n_tests=20, n_agents=4).scores()
    assert all(one.mean == pytest.approx(one.random, abs=4.5 * one.se) for one in scores)


def test_the_published_random_column_is_as_far_from_the_target_as_shachi_says() -> None:
    assert mean_absolute_error(published("Random"), published("GPT-4o-mini")) == pytest.approx(0.239, abs=0.0005)
    assert set(published("GPT-4o-mini")) == set(BIASES)


def test_always_taking_the_first_option_is_unbiased_where_tasks_agree() -> None:
    model = run(llm=ScriptedLLM(lambda request: "Option 1"), biases=["FramingEffect", "BandwagonEffect"], n_tests=3)
    assert model.mean_of("FramingEffect") == 0
    assert model.score("BandwagonEffect").mean_absolute == pytest.approx(1)


def test_in_two_steps_the_option_is_read_from_a_free_answer() -> None:
    def reply(request):
        asked = request.messages[-1].content
        return "Option 2" if asked.startswith("Somebody had to") else "Hm.\nForged: take the second."

    model = run(answers="two_step", llm=ScriptedLLM(reply), n_agents=2)
    assert model.valid_share == 1
    prompts = "".join(model.runlog.calls()["prompt"])
    assert len(model.runlog.calls()) == 2 * 2 * 60
    assert "\\nForged" not in prompts


def test_in_two_steps_no_option_and_one_that_is_not_there_make_a_test_invalid() -> None:
    def reply(request):
        second = request.messages[-1].content.startswith("Somebody had to")
        return ("No option selected" if request.salt.call % 4 else "Option 99") if second else "I cannot decide."

    results = run(answers="two_step", llm=ScriptedLLM(reply), biases=["HaloEffect", "Anchoring"]).results()
    assert (results["valid_share"], results["Anchoring, invalid"], results["HaloEffect, invalid"]) == (0, 1, 1)


def test_a_free_answer_that_fails_is_given_by_rule_where_that_is_wanted() -> None:
    model = run(answers="two_step", llm=ScriptedLLM(lambda request: ""), on_error="rule", biases=["HaloEffect"])
    assert model.results()["HaloEffect"] == pytest.approx(0.5)


def test_a_number_out_of_range_is_counted_for_its_task() -> None:
    model = run(llm=ScriptedLLM(lambda request: {"answer": "Option 99"}), biases=["Anchoring"])
    assert set(model.world.lacking()) == {"Anchoring 1 control", "Anchoring 1 treatment"}
    assert model.results()["valid_share"] == 0


def test_control_and_treatment_have_their_options_in_the_same_order() -> None:
    model = run(biases=["Anchoring"], n_tests=3, order_seed=42)
    assert [one.is_reversed for (one,) in model.tests] == [False, True, True]
    options = [
        {text.partition("Answer Options:")[2] for text in (one.control, one.treatment)} for (one,) in model.tests
    ]
    assert [len(one) for one in options] == [1, 1, 1]


@pytest.mark.parametrize("name", BIASES)
def test_every_bias_has_four_fillings_and_no_gap_is_left(name) -> None:
    scenarios, material = load_material()
    assert len(scenarios) == 50
    assert len(material[name].fillings) == 4
    for scenario in scenarios[::7]:
        for test in make_tests(material[name], scenario, 8, [False] * 8, "2025"):
            assert not GAP.search(test.control + test.treatment)
            assert test.control != test.treatment


def rows_of(**changes):
    options = "\n".join(f"Option {number}: {number}" for number in range(1, 12))
    task = f"Situation:\nS.\n\nPrompt:\nP?\n\nAnswer Options:\n{options}"
    row = {"bias": "Planning Fallacy", "control": task, "treatment": task, "metric_params": "{'k': 1, 'x_1': -1.0}"}
    return [row | changes]


@pytest.mark.parametrize("lines", [False, True])
def test_rows_of_the_original_form_are_read(tmp_path, lines) -> None:
    path = tmp_path / "tests.json"
    path.write_text(json.dumps(rows_of()[0]) if lines else json.dumps(rows_of()))
    (test,) = load_tests(path)
    assert (test.metric.sign, test.metric.control_origin, test.metric.treatment_origin) == (1, -1, -3)
    assert run(tests=str(path)).names == ["PlanningFallacy"]


def test_tests_of_a_file_show_their_options_in_reverse_where_the_seed_says_so(tmp_path) -> None:
    path = tmp_path / "tests.json"
    path.write_text(json.dumps(rows_of() * 8))
    model = CognitiveBiasesModel(tests=str(path), n_tests=8, llm="random", rng=1)
    for step, (test,) in enumerate(model.tests):
        is_turned = is_reversed(42 + step)
        first, last = ("Option 1: 11", "Option 11: 1") if is_turned else ("Option 1: 1", "Option 11: 11")
        assert f"{first}\n" in test.control
        assert test.treatment.endswith(last)
        assert test.index(1) == (10 if is_turned else 0)
    assert len({test.is_reversed for (test,) in model.tests}) == 2


@pytest.mark.parametrize(
    ("flips", "is_flipped"), [(False, False), ("False", False), ([True], True), ("true", True), (0, False)]
)
def test_whether_a_scale_is_turned_around_is_read_as_it_is_meant(tmp_path, flips, is_flipped) -> None:
    path = tmp_path / "tests.json"
    path.write_text(json.dumps(rows_of(metric_params={"k": 1, "x_1": [-1.0], "flip_treatment": flips})))
    (test,) = load_tests(path)
    assert (test.metric.flips, test.metric.control_origin) == (is_flipped, -1)


@pytest.mark.parametrize("name", ["tests.jsonl", "tests.csv"])
def test_a_line_separator_within_a_text_ends_no_row(tmp_path, name) -> None:
    (row,) = rows_of()
    row = row | {"control": row["control"].replace("S.", "One.\u2028Two.")}
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, row)
    writer.writeheader()
    writer.writerow(row)
    text = table.getvalue() if name.endswith("csv") else json.dumps(row, ensure_ascii=False)
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    (test,) = load_tests(tmp_path / name)
    assert "One.\u2028Two." in test.control


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"bias": "Boredom"}, "row 1: bias 'Boredom' is unknown"),
        ({"control": None}, "no text in column 'control'"),
        ({"control": "Option 1: a"}, "control has 1 options, and PlanningFallacy has 11"),
        ({"metric_params": "__import__('os')"}, "metric_params is a dictionary"),
        ({"metric_params": ""}, "PlanningFallacy needs metric_params"),
        ({"metric_params": "{'k': 'x'}"}, "are numbers"),
        ({"metric_params": "{'k': 1, 'flip_treatment': 'maybe'}"}, "is true or false"),
    ],
)
def test_a_bad_row_is_one_clear_error(tmp_path, changes, wanted) -> None:
    path = tmp_path / "tests.json"
    path.write_text(json.dumps(rows_of(**changes)))
    with pytest.raises(ConfigError, match=wanted) as caught:
        CognitiveBiasesModel(tests=str(path))
    assert str(path) in str(caught.value)


def test_a_list_that_names_no_biases_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"biases names none; name one or more of .*, or leave it out for all"):
        CognitiveBiasesModel(biases=[])


def test_an_unknown_bias_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no 'Boredom'; there are: Anchoring"):
        CognitiveBiasesModel(biases=["Boredom"])
