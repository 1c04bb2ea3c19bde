"""Tasks are found as models are, and each of ours runs by rule and at random."""

import os
from pathlib import Path

import pytest

from mesa_llm import ConfigError, LLMModel, Task, parameters_of
from mesa_llm.experiments.benchmarks import Reference, find_task, find_tasks, mean_absolute_error
from mesa_llm.experiments.benchmarks.scores import known_scores
from mesa_llm.experiments.benchmarks.task import SHACHI
from mesa_llm_models.psychobench.items import read_original
from mesa_llm_models.psychobench.task import norms
from tests.experiments.benchmark.pots import POT
from tests.pot import PotModel

TASKS, BROKEN = find_tasks()


def test_all_tasks_can_be_used_and_go_by_the_names_and_levels_of_shachi() -> None:
    assert BROKEN == {}
    assert {name: task.level for name, task in TASKS.items()} == SHACHI


@pytest.mark.parametrize("name", TASKS)
def test_settings_and_original_items_are_parameters_of_the_model(name) -> None:
    task = TASKS[name]
    known = {parameter.name for parameter in parameters_of(task.model_class)}
    assert {*task.setting, *task.quick, *(task.original or {})} <= known


@pytest.mark.parametrize("llm", ["rule", "random"])
@pytest.mark.parametrize("name", TASKS)
def test_small_version_of_each_task_runs_by_rule_and_is_scored(name, llm) -> None:
    task = TASKS[name].as_quick()
    model = task.make(**task.setting, llm=llm, rng=1)
    model.run(task.max_steps)
    assert known_scores(task.score(model))


@pytest.mark.parametrize(
    ("name", "longer", "n_steps"),
    [
        ("psychobench", {"administrations": 12}, 12),
        ("cognitive_biases", {"n_tests": 22}, 22),
        ("compost", {"rounds": 11, "n_personas": 2, "n_topics": 2}, 11),
        ("emergent_analogies", {"n_per_type": 6}, 6),
    ],
)
def test_a_longer_run_than_the_published_one_is_made_to_its_end(name, longer, n_steps) -> None:
    task = TASKS[name].with_parameters(longer)
    model = task.make(**task.setting, rng=1)
    model.run(task.max_steps)
    assert (model.time, model.running) == (n_steps, False)


@pytest.mark.parametrize(
    ("name", "other"), [("emergent_analogies", {"answers": "choice"}), ("compost", {"context": "interview"})]
)
def test_what_was_published_of_another_form_is_no_target(name, other) -> None:
    task = TASKS[name].as_quick()
    assert task.is_comparable(task.make(**task.setting, rng=1))
    assert not task.is_comparable(task.make(**{**task.setting, **other}, rng=1))


@pytest.mark.parametrize("name", ["cognitive_biases", "emergent_analogies", "stock_agent", "emotionbench"])
def test_scores_and_published_values_go_by_the_same_names(name) -> None:
    task = TASKS[name]
    small = {"stock_agent": {"n_agents": 2}, "emotionbench": {"n_situations": 1}}.get(name, {})
    model = task.make(**{**task.setting, **small}, rng=1)
    model.run(task.max_steps if name == "stock_agent" else 1)
    assert task.target is not None
    assert set(task.target.values) <= set(task.score(model))


def test_the_norms_of_psychobench_are_those_of_its_original_file() -> None:
    file = Path(os.environ.get("MESA_LLM_DATA", ""), "psychobench", "questionnaires.json")
    if not file.is_file():
        pytest.skip("MESA_LLM_DATA holds no psychobench/questionnaires.json")
    instruments = read_original(file)
    found = {f"{one.name}: {scale.name}": scale.norms[0].mean for one in instruments for scale in one.subscales}
    assert norms() == found


def test_a_task_is_named_as_its_model_or_as_any_object_of_a_module() -> None:
    assert find_task("psychobench") is find_task("mesa_llm_models.psychobench.task:TASK")
    assert find_task("tests.experiments.benchmark.pots:POT") is POT


@pytest.mark.parametrize("name", ["nothing", "tests.pot:PotModel", "tests.nowhere:TASK"])
def test_what_is_no_task_is_one_error(name) -> None:
    with pytest.raises(ConfigError, match=r"there is no task|is no Task|cannot be found"):
        find_task(name)


def test_a_function_that_makes_a_model_says_which() -> None:
    def seats(**options) -> PotModel:
        return PotModel(**options)

    def unsaid(**options):
        return PotModel(**options)

    assert Task("pot", seats, dict, 1, 1, "").model_class is PotModel
    with pytest.raises(ConfigError, match="a function returning one"):
        _ = Task("pot", unsaid, dict, 1, 1, "").model_class


@pytest.mark.parametrize(("max_steps", "level"), [(0, 1), (1, 4)])
def test_a_task_without_steps_or_level_is_refused(max_steps, level) -> None:
    with pytest.raises(ConfigError, match="level must be 1, 2 or 3"):
        Task("pot", LLMModel, dict, max_steps, level, "")


def test_the_error_is_the_mean_absolute_difference_over_what_both_have() -> None:
    assert mean_absolute_error({"a": 1.0, "b": 5.0, "c": 9.0}, {"a": 2.0, "b": 2.0, "d": 0.0}) == 2.0
    assert Reference({"a": 1.0}, "x", "y").values["a"] == 1.0
