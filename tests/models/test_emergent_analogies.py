"""Emergent analogies: problems that are made, solved and judged."""

import hashlib
import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm import ConfigError, ScriptedLLM
from mesa_llm_models.emergent_analogies.items import letters, matrices
from mesa_llm_models.emergent_analogies.items.problems import distractors, joined, of_letters
from mesa_llm_models.emergent_analogies.items.stories import load_trials
from mesa_llm_models.emergent_analogies.items.verbal import load_verbal
from mesa_llm_models.emergent_analogies.model import EmergentAnalogiesModel


def run(**parameters):
    model = EmergentAnalogiesModel(**{"rng": 1, "n_per_type": 1, **parameters})
    while model.running:
        model.step()
    return model


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([*matrices.KINDS, *matrices.MANY_RULES]), st.integers(0, 10**6))
def test_every_matrix_is_solved_by_its_rules_and_none_comes_twice(kind, seed) -> None:
    made = matrices.make_matrices(kind, 6, random.Random(seed))
    assert len({one.cells for one in made}) == len(made) == (4 if kind == "prog_size2" else 6)
    for one in made:
        assert matrices.solve(one) == (tuple(sorted(one.key)) if one.is_set else one.key)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(letters.KINDS), st.integers(0, 10**6))
def test_every_letter_string_has_one_solution(kind, seed) -> None:
    for one in letters.make_letters(kind, 5, random.Random(seed)):
        assert letters.solve(one) == [one.key]


def test_a_type_with_fewer_problems_than_wanted_gives_all_it_has() -> None:
    made = matrices.make_matrices("two_rule_comb5", 300, random.Random(1))
    assert len({one.cells for one in made}) == len(made) == 240


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(matrices.KINDS), st.integers(0, 10**6))
def test_the_seven_distractors_are_wrong_and_different(kind, seed) -> None:
    rng = random.Random(seed)
    matrix = matrices.make_matrices(kind, 1, rng)[0]
    wrong = [frozenset(one) if matrix.is_set else one for one in distractors(matrix, rng)]
    key = frozenset(matrix.key) if matrix.is_set else matrix.key
    assert len({*wrong, key}) == 8


@pytest.mark.parametrize("task", ["matrices", "letters", "verbal", "stories"])
def test_the_rule_twin_solves_as_much_as_it_is_skilled(task) -> None:
    assert run(task=task).mean_accuracy == 1
    assert run(task=task, skill=0).mean_accuracy == 0


@pytest.mark.parametrize(
    ("task", "answers"), [("matrices", "free"), ("matrices", "choice"), ("verbal", "free"), ("stories", "free")]
)
def test_random_answers_have_the_exact_expectation(task, answers) -> None:
    model = run(task=task, answers=answers, llm="random", n_agents=20, n_per_type=3)
    for name in model.categories:
        n = sum(problem.category == name for problem, _, _ in model.verdicts())
        chance = model.chance(name)
        assert model.accuracy(name) == pytest.approx(chance, abs=4.5 * (chance * (1 - chance) / n) ** 0.5)


def test_a_chat_model_may_repeat_the_matrix_before_it_answers() -> None:
    def reply(request):
        problem = next(one for one in model.problems.values() if one.text == request.messages[-1].content)
        return f"{problem.text}{problem.solution}"

    model = EmergentAnalogiesModel(rng=1, n_per_type=1, llm=ScriptedLLM(reply))
    model.step()
    assert model.mean_accuracy == 1


def test_words_are_wrong_and_no_reply_is_missing() -> None:
    results = run(llm=ScriptedLLM(lambda request: "Five, I think.")).results()
    assert (results["mean"], results["unreadable"], results["missing"]) == (0, 32, 0)


@pytest.mark.parametrize(
    ("reply", "digits"), [("\uff15 6]", [5, 6]), ("\u0665]", [5]), ("\u00b2]", None), ("5\u00a06]", None)]
)
def test_digits_of_all_scripts_count_and_nothing_that_looks_like_them(reply, digits) -> None:
    assert matrices.read_cell(reply) == digits


def test_a_file_that_is_not_the_published_one_is_not_opened(tmp_path) -> None:
    path = tmp_path / "all_problems.npz"
    np.savez(path, all_problems=np.array({"row_constant": 1}, dtype=object))
    with pytest.raises(ConfigError, match="only the published files are opened"):
        EmergentAnalogiesModel(matrices=str(path))


def test_a_file_of_the_original_form_is_read(tmp_path) -> None:
    path = tmp_path / "all_problems.npz"
    cells = np.array([[[[6]] * 3, [[1]] * 3, [[3]] * 3]])
    problems = {"row_constant": {"prob": cells, "perm_invariant": False}}
    np.savez(path, all_problems=np.array(problems, dtype=object))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (matrix,) = matrices.load_matrices(path, frozenset({digest}))["row_constant"]
    assert matrix.text == "[6] [6] [6]\n[1] [1] [1]\n[3] [3] ["
    assert matrices.solve(matrix) == matrix.key == (3,)


def test_letter_strings_of_the_original_form_are_read(tmp_path) -> None:
    path = tmp_path / "all_prob.npz"
    pairs = [[list("abcd"), list("abce")], [list("ijkl"), list("ijkm")]]
    words = [[list("bedc"), list("bcde")], [["hot", "cold", "warm"], ["cold", "warm", "hot"]]]
    stored = {"succ": {"prob": [pairs]}, "realworld_sort": {"prob": [words]}}
    np.savez(path, all_prob=np.array(stored, dtype=object))
    found = letters.load_letters(path, frozenset({hashlib.sha256(path.read_bytes()).hexdigest()}))
    (plain,), (real,) = found["succ"], found["realworld_sort"]
    assert letters.solve(plain) == [plain.key] == [tuple("ijkm")]
    assert (plain.category, real.category) == ("0_generalisations", "real_world")
    assert of_letters("realworld_sort 1", real, "lead").solution == "cold warm hot"


def test_verbal_analogies_are_read_from_a_sheet_of_excel(tmp_path) -> None:
    path = tmp_path / "UCLA_VAT.xlsx"
    columns = dict(
        zip(["Relation", "A", "B", "C", "D", "D'"], ["Synonym", "rob", "steal", "cry", "weep", "eyes"], strict=True)
    )
    pd.DataFrame([columns]).to_excel(path, index=False)
    (one,) = load_verbal(path)
    assert (one.relation, one.text, one.key, one.foil) == ("synonym", "rob is to steal as cry is to", "weep", "eyes")
    path.write_text("no archive")
    with pytest.raises(ConfigError, match=r"UCLA_VAT\.xlsx is not a readable .xlsx workbook"):
        load_verbal(path)


def test_each_story_is_asked_in_both_conditions_and_orders() -> None:
    trials = load_trials()
    assert len(trials) == len({one.text for one in trials}) == 16
    assert {(one.condition, one.key) for one in trials} == {
        (condition, side) for condition in ("near", "far") for side in ("Story A", "Story B")
    }


def test_both_equally_is_wrong_and_no_failure() -> None:
    results = run(task="stories", llm=ScriptedLLM(lambda request: {"answer": "both equally"})).results()
    assert (results["mean"], results["unreadable"], results["out_of_range"]) == (0, 0, 0)


def test_there_are_six_verbal_analogies_of_each_relation() -> None:
    relations = [one.relation for one in load_verbal()]
    assert {relation: relations.count(relation) for relation in relations} == dict.fromkeys(
        ("synonym", "opposite", "function", "category"), 6
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A,B\n1,2\n", "no column 'Relation'"),
        ("Relation,A,B,C,D,D'\nfunction,a,b,c,d,e\nfunction,a,b,c,,e\n", "line 3: a word is missing"),
    ],
)
def test_a_bad_file_of_verbal_analogies_is_one_clear_error(tmp_path, text, wanted) -> None:
    path = tmp_path / "vat.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=wanted):
        EmergentAnalogiesModel(task="verbal", verbal=str(path))


def test_the_rule_twin_answers_in_the_form_of_its_sheet() -> None:
    model = run(llm="rule", skill=1.0, n_per_type=2)
    (solver,) = model.agents
    for problem in model.problems.values():
        answer = solver.rule(model.world.ask(solver.unique_id, problem.sheet(is_bound=True)))
        answers = list(answer.values()) if isinstance(answer, dict) else [answer]
        assert len(answers) == len(problem.sheet(is_bound=True).items)
        assert problem.is_right(joined(answers))


def test_a_language_model_writes_its_answer_even_if_it_needs_options() -> None:
    class Small(ScriptedLLM):
        needs_options = True

    model = run(llm=Small(lambda request: "[1 2 3]"), n_per_type=1)
    assert not any(agent.is_bound for agent in model.agents)
    assert model.usage.failures == 0
