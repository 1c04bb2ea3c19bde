"""Simulated answers beside those of people: figures by hand, sources, groups, units, and what a user gets wrong."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import pytest
from pydantic import Field

from mesa_llm import AgentConfig, ConfigError, LLMAgent, LLMModel, Question, compare_survey, compare_with
from mesa_llm.experiments.people.distributions import distance_between, split_half, spread_of, spread_ratio
from tests.faulty_server import FaultyServer
from tests.honest_reply import completion

MOOD = Question("How do you feel, 1 to 7?", Annotated[int, Field(ge=1, le=7)], name="mood")
VOTE = Question("Do you agree?", Literal["yes", "no"], name="vote")


class Voter(LLMAgent):
    """Answers as its age says."""

    def rule(self, seen) -> None:
        return None

    def rule_answer(self, question: Question) -> Any:
        is_old = self.config.traits["age"] == "old"
        return (6 if is_old else 2) if question.name == "mood" else ("yes" if is_old else "no")


class VoterModel(LLMModel):
    def __init__(self, **options) -> None:
        super().__init__(**options)
        for number in range(20):
            age = "old" if number < 10 else "young"
            Voter(self, config=AgentConfig(name=f"P{number}", persona="A voter.", traits={"age": age}))


def people(n: int = 40, **columns) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    own = {"mood": rng.integers(1, 8, n), "vote": rng.choice(["Yes", "no"], n), "age": ["old", "young"] * (n // 2)}
    return pd.DataFrame(own | columns)


def long(**answers) -> pd.DataFrame:
    rows = [(question, answer) for question, given in answers.items() for answer in given]
    return pd.DataFrame(rows, columns=["question", "answer"])


def test_figures_of_numbers_are_those_by_hand() -> None:
    row: Any = compare_with(long(mood=[1, 2, 3, 4]), long(mood=[2, 3, 4, 5, None])).row("mood")
    assert (row.kind, row.n, row.n_missing, row.n_people) == ("number", 4, 1, 4)
    assert (row.mean.value, row.people_mean.value, row.distance, row.ks) == (3.5, 2.5, 1.0, 0.25)
    assert row.distance_sd == pytest.approx(1 / np.std([1, 2, 3, 4], ddof=1))
    assert row.spread.value == pytest.approx(1.0)
    assert row.shares == {}


def test_figures_of_choices_are_those_by_hand_whatever_their_case() -> None:
    row: Any = compare_with(long(vote=["Yes", "yes", "no", "No "]), long(vote=["yes", "yes", "yes", "no"])).row("vote")
    assert (row.kind, row.distance, row.distance_sd, row.ks, row.mean) == ("choice", 0.25, None, None, None)
    assert (row.shares, row.people_shares) == ({"yes": 0.75, "no": 0.25}, {"yes": 0.5, "no": 0.5})
    assert row.spread.value == pytest.approx((1 - 6 / 12) / (1 - 4 / 12))  # pairs that agree: 3·2 of 12, and 2·2 of 12


def test_too_alike_is_seen_although_the_mean_is_right() -> None:
    row: Any = compare_with(long(mood=[1, 2, 3, 4, 5, 6, 7] * 5), long(mood=[4] * 35)).row("mood")
    assert (row.mean.value, row.people_mean.value) == (4.0, 4.0)
    assert (row.spread.value, row.is_within) == (0.0, False)


@pytest.mark.parametrize(("n_people", "n_simulated"), [(60, 40), (60, 300), (200, 20)])
@pytest.mark.parametrize("kind", ["number", "choice"])
def test_a_perfect_simulation_lies_within_the_split_half_ceiling(kind, n_people, n_simulated) -> None:
    rng, hits = np.random.default_rng(7), 0
    for _ in range(60):
        theirs, ours = (rng.choice(5, n, p=[0.4, 0.3, 0.1, 0.1, 0.1]) for n in (n_people, n_simulated))
        ceiling: Any = split_half(theirs, n_simulated, kind)
        hits += distance_between(ours, theirs, kind) <= ceiling.upper
    assert hits >= 0.87 * 60  # 95 % expected; 52 of 60 or fewer happen in 1 of 90 such tests


def test_people_are_read_from_a_spreadsheet_of_any_shape(tmp_path) -> None:
    (tmp_path / "wide.csv").write_text("Person;mood;vote\n1;3,5;yes\n2;;no\n3;4,5;yes\n", encoding="utf-8-sig")
    (tmp_path / "long.csv").write_text("Question,Answer\nmood,3.5\nmood,4.5\nvote,yes\nvote,no\nvote,yes\n")
    simulated = long(mood=[4, 4], vote=["yes", "no"])
    wide, tall = (compare_with(tmp_path / name, simulated) for name in ("wide.csv", "long.csv"))
    assert wide.row("mood").n_people_missing == 1
    assert [row.distance for row in wide.rows] == [row.distance for row in tall.rows] == [0.5, pytest.approx(1 / 6)]


def test_results_of_runs_are_compared_like_answers() -> None:
    runs = pd.DataFrame({"seed": [1, 2, 3], "cooperation": [0.2, 0.4, 0.6], "digest": ["a", "b", "c"]})
    groups = pd.DataFrame({"group": [1, 2, 3, 4], "cooperation": [0.5, 0.6, 0.6, 0.7]})
    (row,) = compare_with(groups, runs).rows
    assert (row.question, row.n, row.n_people) == ("cooperation", 3, 4)
    assert compare_with(groups, runs["cooperation"]).rows == [row]


def test_groups_are_compared_for_themselves() -> None:
    simulated = long(mood=[1] * 10 + [7] * 10).assign(agent=range(20))
    traits = pd.DataFrame({"agent": range(20), "age": ["old"] * 10 + ["young"] * 10})
    found = compare_with(people(mood=[1, 7] * 20), simulated, by="age", traits=traits)
    assert [(row.group, row.distance) for row in found.rows] == [("", 0.0), ("age = old", 0.0), ("age = young", 0.0)]
    turned = compare_with(people(mood=[7, 1] * 20), simulated, by="age", traits=traits)
    assert turned.row("mood", group="age = old").distance == 6


def test_units_with_both_answers_give_estimates_for_all_units() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(4, 1, 200)
    simulated = long(mood=truth + 1).assign(person=range(200))
    sample = pd.DataFrame({"person": range(30), "mood": truth[:30]})
    found = compare_with(sample, simulated, unit="person")
    estimate: Any = found.estimates[0].estimate
    powered, classical = estimate.powered, estimate.classical
    assert abs(powered.value - truth.mean()) < abs(classical.value - truth.mean())
    assert powered.high - powered.low < 0.5 * (classical.high - classical.low)
    assert "with simulated answers" in found.text()


def test_a_survey_stands_beside_its_rule_twin_chance_and_no_persona(tmp_path) -> None:
    how: dict[str, Any] = {"llm": "random", "folder": tmp_path, "by": "age"}
    found: Any = compare_survey(VoterModel, [MOOD, VOTE], people(), **how)
    assert {row.source for row in found.rows} == {"random", "rule"}
    assert found.row("mood", "rule", "age = old").mean.value == 6.0
    assert found.row("vote", "rule").shares == {"yes": 0.5, "no": 0.5}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["random-1.sqlite", "rule-1.sqlite"]
    assert compare_survey(VoterModel, [MOOD, VOTE], people(), **how).table.equals(found.table)


def test_a_language_model_is_also_asked_without_personas(tmp_path) -> None:
    def kind(body, number):
        has_persona = "A voter." in str(body["messages"])
        return completion('{"answer": "yes"}' if has_persona else '{"answer": "no"}', body=body)

    with FaultyServer(kind) as server:
        how: dict[str, Any] = {"llm": f"tiny@{server.url}", "folder": tmp_path, "by": "age"}
        how |= {"baselines": ["no persona"]}
        found = compare_survey(VoterModel, [VOTE], people(), **how)
        n_requests = len(server.requests)
        compare_survey(VoterModel, [VOTE], people(), **how)
        assert len(server.requests) == n_requests  # resumed from the logs
    assert found.row("vote", "no persona").shares == {"no": 1.0}
    assert found.row("vote", "no persona", "age = old").n == 10
    assert found.row("vote", found.rows[0].source).shares == {"yes": 1.0}


class MuteModel(LLMModel):
    def __init__(self, **options) -> None:
        super().__init__(**options)
        LLMAgent.create_agents(self, 8)


def test_a_rule_twin_without_answers_is_left_out_with_a_note() -> None:
    found = compare_survey(MuteModel, [VOTE], people(), llm="random")
    assert {row.source for row in found.rows} == {"random"}
    assert found.notes[0].startswith("rule is left out, as it has no answers: LLMAgent thinks by rule, and has no rule")
    with pytest.raises(ConfigError, match="nobody answered: rule is left out"):
        compare_survey(MuteModel, [VOTE], people(), llm="rule", baselines=[])


@pytest.mark.parametrize(
    ("theirs", "ours", "options", "fault"),
    [
        (long(mood=[1]), long(moods=[1]), {}, "no question in common: .*'mood'; simulated answers have 'moods'"),
        (long(mood=[1]), long(mood=["fine"]), {}, "are numbers and some are not"),
        (long(mood=["1,000"]), long(mood=[1]), {}, "write it without a comma"),
        (long(mood=[1]), long(mood=[1]), {"by": "age"}, "has no column 'age'"),
        (long(mood=[1]), long(mood=[1]), {"questions": ["mod"]}, "no question 'mod'; did you mean mood"),
        (long(mood=[None]), long(mood=[1]), {}, "has no answer to 'mood'"),
        (long(mood=[1]), pd.Series([1]), {}, "a column without a name"),
    ],
)
def test_what_cannot_be_compared_is_said(theirs, ours, options, fault) -> None:
    with pytest.raises(ConfigError, match=fault):
        compare_with(theirs, ours, **options)


def test_numbers_may_be_names_of_choices() -> None:
    codes = compare_with(long(party=[1, 2, 9]), long(party=[1.0, 2, 2]), as_choices=["party"]).row("party")
    assert (codes.kind, codes.distance) == ("choice", pytest.approx(1 / 3))


def test_spread_of_choices_is_the_chance_that_two_differ() -> None:
    codes = np.array([0, 0, 1, 2])
    assert spread_of(codes, "choice") == pytest.approx(10 / 12)
    assert spread_of(codes[:1], "choice") is None
    assert spread_ratio(codes, np.zeros(4, dtype=int), "choice") is None


@pytest.mark.parametrize("scales", [{"mood": (1, 7)}, {"mood": MOOD.answer}])
@pytest.mark.parametrize("code", [-99, 99, "-9"])
def test_codes_outside_of_the_scale_are_missing_and_noted(scales, code) -> None:
    found = compare_with(long(mood=[1, 7, 4, code]), long(mood=[2, 6, 4]), scales=scales)
    row: Any = found.row("mood")
    assert (row.n_people, row.n_people_missing, row.people_mean.value) == (3, 1, 4)
    assert f"1 answer to 'mood' taken for missing ({code!r}); it allows 1 to 7" in found.text()


def test_without_a_scale_a_code_is_noted_and_counts() -> None:
    found = compare_with(long(mood=[1, 7, 4, 99]), long(mood=[2, 6, 4]))
    assert "1 answer to 'mood' far from the simulated 2 to 6 (99); if these are codes" in found.text()
    assert not compare_with(long(mood=[1, 7, 4]), long(mood=[2, 6, 4])).notes


def test_answers_that_are_no_choices_are_missing_and_noted() -> None:
    found = compare_with(long(vote=["Yes", "no", "refused"]), long(vote=["yes", "no"]), scales={"vote": VOTE.answer})
    assert found.row("vote").people_shares == {"yes": 0.5, "no": 0.5}
    assert "('refused'); it allows 'yes', 'no'" in found.text()
    with pytest.raises(ConfigError, match="no answer to 'vote' that it allows: found 1, 2; wanted 'yes', 'no'"):
        compare_with(long(vote=[1, 2]), long(vote=["yes", "no"]), scales={"vote": VOTE.answer})


def test_words_among_numbers_are_missing_where_a_scale_is_given_and_else_named() -> None:
    mood = long(mood=["1", "7", "4 = so so", "Refused"])
    found = compare_with(mood, long(mood=[2, 6, 4]), scales={"mood": (1, 7)})
    row = found.row("mood")
    assert row.people_mean is not None
    assert (row.n_people, row.people_mean.value) == (3, 4)
    assert "1 answer to 'mood' taken for missing ('Refused'); it allows 1 to 7" in found.text()
    with pytest.raises(ConfigError, match=r"the table of people: 'Refused'; simulated: 2"):
        compare_with(long(mood=["1", "7", "Refused"]), long(mood=[2, 6, 4]))


@pytest.mark.parametrize(
    ("theirs", "ours", "note"),
    [
        ([0.12, 0.5], [12, 50], "one side has numbers up to 1, the other up to 50"),
        ([12, 50], [0.12, 0.5], "one side has numbers up to 1, the other up to 50"),
        ([0, 3, 4], [1, 3, 5], "people's answers begin at 0, simulated ones at 1"),
        (["1,3", "2", "4"], [1, 2, 5], "'1,3' is read as 1.3; if it is two answers, split it"),
        (["VRAI", "FAUX"], ["yes", "no"], "share no choice ('VRAI', 'yes'); write choices alike"),
    ],
)
def test_answers_that_may_be_on_another_scale_are_noted(theirs, ours, note) -> None:
    assert note in compare_with(long(q=theirs), long(q=ours)).text()


@pytest.mark.parametrize(
    ("theirs", "ours"), [([1, 3, 5], [2, 3, 4]), ([0, 1, 1], [1, 1, 0]), ([0, 3, 10], [2, 5, 8]), ([0.1, 1], [0.5, 1])]
)
def test_answers_on_one_scale_have_no_note(theirs, ours) -> None:
    assert not compare_with(long(q=theirs), long(q=ours)).notes


def test_a_survey_knows_what_its_questions_allow() -> None:
    found = compare_survey(VoterModel, [MOOD], people(mood=[-99] * 5 + [4] * 35), llm="rule", baselines=())
    mean = found.row("mood").people_mean
    assert mean is not None
    assert mean.value == 4
    assert "5 answers to 'mood' taken for missing (-99)" in found.text()


def test_units_and_labels_are_taken_off_where_the_other_side_has_numbers() -> None:
    found = compare_with(long(mood=["1 = never", "5 - always"], age=["25 years", "31 years"]), long(mood=[2], age=[30]))
    assert [(mean := found.row(name).people_mean) and mean.value for name in ("mood", "age")] == [3, 28]
    assert "'years' is taken off the numbers" in found.text()


def test_marks_of_missing_answers_are_missing_unless_the_simulation_answers_so() -> None:
    assert compare_with(long(vote=["yes", "NA", "None"]), long(vote=["yes"])).row("vote").n_people == 1
    assert compare_with(long(vote=["yes", "NA", "None"]), long(vote=["none"])).row("vote").n_people == 2


def test_what_one_agent_says_with_several_seeds_is_one_respondent() -> None:
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"mood": rng.normal(0, 1, 60)})
    once = pd.DataFrame({"agent": range(20), "mood": rng.normal(0, 1, 20)})
    alone, repeated = (compare_with(people, table).row("mood") for table in (once, pd.concat([once] * 5)))
    for row in (alone, repeated):
        assert row.mean is not None
        assert row.spread is not None
        assert (row.mean.n, row.mean.unit, row.spread.n, row.spread.unit) == (20, "agents", 20, "agents")
        assert row.spread.low is not None
        assert row.spread.high is not None
    assert repeated.ceiling == alone.ceiling
    spreads: list[Any] = [row.spread for row in (alone, repeated)]
    assert spreads[1].high / spreads[1].low == pytest.approx(spreads[0].high / spreads[0].low, rel=0.05)
