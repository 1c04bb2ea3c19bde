"""EmotionBench: sheets by default and in situations, and how they differ."""

import math
import os
import shutil
from pathlib import Path

import pytest

from mesa_llm import ConfigError, ScriptedLLM
from mesa_llm_models.emotionbench.items import (
    OWN,
    OWN_SITUATIONS,
    load_instruments,
    load_situations,
    with_situation,
)
from mesa_llm_models.emotionbench.model import EmotionBenchModel
from mesa_llm_models.emotionbench.scores import mean_distance, published


def run(**parameters):
    model = EmotionBenchModel(**{"rng": 1, "repetitions": 1, **parameters})
    while model.running:
        model.step()
    return model


def test_the_rule_twin_feels_worse_in_situations_and_better_in_their_twins() -> None:
    model = run(repetitions=2)
    by_emotion = [one for one in model.changes() if not one.factor]
    assert {(one.subscale, one.relation) for one in by_emotion} == {("Positive Affect", "<"), ("Negative Affect", ">")}
    assert model.mean_of("Positive Affect", "twins") > model.mean_of("Positive Affect", "default")
    assert model.mean_of("Negative Affect", "twins") < model.mean_of("Negative Affect", "default")


def test_a_rule_twin_that_feels_nothing_in_situations_does_not_change() -> None:
    overall = [one for one in run(sensitivity=0, n_defaults=20).changes() if not one.emotion]
    assert [one.relation for one in overall] == ["=", "="]


def test_a_random_respondent_has_the_exact_expectation() -> None:
    model = run(llm="random", repetitions=4, n_defaults=20)
    results = model.results()
    assert results["Positive Affect, random"] == results["Negative Affect, random"] == 30
    subscale = model.instrument.subscales[0]
    error = model.instrument.random_sd(subscale) / math.sqrt(80)
    assert results["Positive Affect, default"] == pytest.approx(30, abs=4 * error)


def test_random_respondent_has_the_expected_distance_from_published_means() -> None:
    pairs = [(one.emotion, one.subscale) for one in published() if one.respondent == "gpt-4" and one.emotion]
    assert mean_distance(dict.fromkeys(pairs, 30.0), "gpt-3.5-turbo") == pytest.approx(4.85, abs=0.01)
    assert mean_distance(dict.fromkeys(pairs, 0.0), "gpt-3.5-turbo", of_changes=True) == pytest.approx(8.77, abs=0.01)


def test_a_sheet_that_lacks_an_answer_has_no_score_and_the_item_is_counted() -> None:
    def reply(request):
        line = [text for message in request.messages for text in message.content.splitlines()]
        number = next(text.split(".")[0] for text in line if text.endswith(". angry"))
        return {str(index): 3 for index in range(1, 21)} | {number: 9}

    results = run(llm=ScriptedLLM(reply), scoring="replies", emotions=["Fear"], n_defaults=1)
    assert results.results()["sheets"] == 0
    assert results.world.lacking() == {"AffectList-20 6": {"out_of_range": 12}}


def test_no_reply_is_missing_and_a_reply_of_words_unparsable() -> None:
    silent = ScriptedLLM(lambda request: "I am only a program.")
    model = run(llm=silent, scoring="replies", emotions=["Fear"], n_defaults=1, attempts=1)
    assert model.results()["unparsable"] == 12 * 20
    assert math.isnan(model.results()["Positive Affect, default"])


def test_each_sheet_has_an_order_of_its_own_unless_it_is_canonical() -> None:
    def orders(model):
        return {tuple(item.label for item in turn.observation.facts.items) for turn in model.repetition()[0]}

    assert len(orders(EmotionBenchModel(rng=1))) == 5 + 72 + 8
    assert len(orders(EmotionBenchModel(rng=1, order="canonical"))) == 1


def test_there_are_two_situations_per_factor_and_a_twin_per_emotion() -> None:
    situations = load_situations()
    factors = [(one.emotion, one.factor) for one in situations if not one.is_twin]
    assert (len(factors), len(set(factors)), len(situations) - len(factors)) == (72, 36, 8)
    assert len({one.text for one in situations}) == len({one.label for one in situations}) == 80


def test_the_situation_stands_where_the_instrument_says() -> None:
    instrument = load_instruments()["AffectList-20"]
    assert with_situation(instrument, "") == instrument.instructions.removeprefix("SCENARIO ")
    text = with_situation(instrument, "It rains.")
    assert text.startswith("Imagine that this is happening to you: It rains.\n\nHow much")


def test_published_means_are_not_compared_with_our_own_items() -> None:
    with pytest.raises(ConfigError, match="give questionnaires= and situations="):
        run(emotions=["Fear"]).distance("human-crowd")


FOLDER = Path(os.environ.get("MESA_LLM_DATA", "nowhere"), "emotionbench")
FILES = ("questionnaires.json", "situations.json")
needs_original = pytest.mark.skipif(not (FOLDER / FILES[0]).is_file(), reason="MESA_LLM_DATA holds no emotionbench")


@needs_original
def test_the_original_files_are_fetched_once_and_compared_with_people(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "mesa_llm" / "emotionbench").mkdir(parents=True)
    for name in FILES:
        shutil.copy(FOLDER / name, tmp_path / "mesa_llm" / "emotionbench")
    model = run(questionnaires="original", situations="original", emotions=["Fear"], n_situations=1, n_defaults=2)
    assert len(model.occasions) == 5
    assert model.distance("human-crowd") > 0


@pytest.mark.parametrize(("own", "load"), [(OWN, load_instruments), (OWN_SITUATIONS, load_situations)])
def test_a_file_may_begin_with_a_byte_order_mark(tmp_path, own, load) -> None:
    path = tmp_path / "own.json"
    path.write_text(own.read_text(encoding="utf-8"), encoding="utf-8-sig")
    assert load(path) == load()


@needs_original
@pytest.mark.parametrize("changed", FILES)
def test_a_changed_file_is_not_compared_with_anybody(tmp_path, changed) -> None:
    for name in FILES:
        text = (FOLDER / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace(" the ", " a ", 1) if name == changed else text, encoding="utf-8")
    files = {name.removesuffix(".json"): str(tmp_path / name) for name in FILES}
    with pytest.raises(ConfigError, match="published means hold for"):
        run(**files, emotions=["Fear"], n_situations=1, n_defaults=1).distance("human-crowd")


ONE_ITEM = (
    '{"name": "A", "compute_mode": "SUM", "prompt": "1 to 5", "scale": 6, '
    '"categories": [{"cat_name": "x", "cat_questions": [1]}], "questions": {"1": "a"}}'
)
"""An instrument of one item."""


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("[]", "at least one"),
        ("{", "JSON"),
        ('[{"name": "A", "compute_mode": "MAX", "prompt": "1 to 5", "scale": 6, "categories": [{"cat_name": "x", '
         '"cat_questions": [1]}], "questions": {"1": "a"}}]', "compute_mode must be SUM, AVG or SUM"),
        ('[{"name": "A", "compute_mode": "SUM", "prompt": "from 1 to 4", "scale": 6, "categories": [{"cat_name": "x", '
         '"cat_questions": [1]}], "questions": {"1": "a"}}]', "do not fit scale 6"),
        ('[{"name": "A", "compute_mode": "SUM", "prompt": "", "scale": 6, "categories": [{"cat_name": "x", '
         '"cat_questions": [2]}], "questions": {"1": "a"}}]', r"key names unknown items \[2\]"),
        (f"[{ONE_ITEM}, {ONE_ITEM}]", "A is in the file more than once"),
        (f"[{ONE_ITEM.replace('"a"', '" "')}]", r"A: items \[1\] are blank"),
    ],
)  # fmt: skip
def test_a_bad_file_of_instruments_is_one_clear_error(tmp_path, written, wanted) -> None:
    path = tmp_path / "q.json"
    path.write_text(written)
    with pytest.raises(ConfigError, match=wanted) as caught:
        EmotionBenchModel(questionnaires=str(path))
    assert str(path) in str(caught.value)


FEAR = '{"name": "Fear", "factors": [{"name": "Heights", "scenarios": ["You look down.", "SECOND"]}]}'
"""An emotion with two situations."""


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (f'{{"emotions": [{FEAR}, {FEAR}]}}', "Fear is in the file more than once"),
        (f'{{"emotions": [{FEAR.replace("SECOND", " ")}]}}', "situation Fear-0 2 is blank"),
        (f'{{"emotions": [{FEAR}], "twins": {{"Fear": " "}}}}', "situation Fear twin is blank"),
    ],
)
def test_a_bad_file_of_situations_is_one_clear_error(tmp_path, written, wanted) -> None:
    path = tmp_path / "s.json"
    path.write_text(written)
    with pytest.raises(ConfigError, match=f"{path}: {wanted}"):
        EmotionBenchModel(situations=str(path))


def test_a_list_that_names_no_emotions_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"emotions names none; name one or more of .*, or leave it out for all"):
        EmotionBenchModel(emotions=[])


def test_unknown_names_are_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no 'Boredom'; .* has: Anger, Anxiety"):
        EmotionBenchModel(emotions=["Boredom"])
    with pytest.raises(ConfigError, match="no 'PANAS'; there are: AffectList-20"):
        EmotionBenchModel(instrument="PANAS")
    with pytest.raises(ConfigError, match="cannot be read"):
        EmotionBenchModel(situations="nowhere.json")


def test_an_instrument_of_ones_own_is_a_table_of_items(tmp_path) -> None:
    (tmp_path / "moods.csv").write_text("item,text,key,scale\n1,Calm,+1,Ease\n2,Tense,-1,Ease\n")
    model = EmotionBenchModel(questionnaires=str(tmp_path / "moods.csv"), instrument="moods", rng=1)
    model.step()
    assert model.instrument.score({1: 5, 2: 1}) == {"Ease": 5.0}


# -- what a respondent needs to know


@pytest.mark.parametrize("scoring", ["replies", "probabilities"])
def test_a_sheet_says_what_happens_what_is_felt_and_what_each_number_means(scoring) -> None:
    model = EmotionBenchModel(rng=1, n_situations=1, n_defaults=1, llm="random", scoring=scoring)
    for seen in (turn.observation for turn in model.repetition()[0]):
        occasion, (instrument, _) = model.occasion_of(seen.label), seen.facts.items[0].facts
        assert seen.text.count(occasion.text) == 1 if occasion.text else "Imagine" not in seen.text
        assert all(item.text in seen.text for item in seen.facts.items)
        assert "right now" in seen.text
        meanings = ("1 (not at all)", "2 (slightly)", "3 (somewhat)", "4 (strongly)", "5 (very strongly)")
        assert all(meaning in seen.text for meaning in meanings)
        assert len(meanings) == len(instrument.scale.choices)


# -- what an answer counts as


def test_without_probabilities_a_sheet_is_drawn_several_times_and_is_one_score() -> None:
    given = iter([1, 1, 2, 5] * 100)

    def reply(request):
        return dict.fromkeys(request.schema["properties"], next(given))

    model = run(llm=ScriptedLLM(reply), draws=4, emotions=["Fear"], n_defaults=1, n_situations=1)
    n_sheets = 1 + len(model.occasions)
    assert (model.results()["sheets"], model.usable_share, model.world.totals().asked) == (
        n_sheets,
        1,
        20 * 4 * n_sheets,
    )
    assert model.results()["Positive Affect, default"] == 10 * 2.25
    assert {row["distribution"] for row in model.world.tables()["answers"]} == {"1:0.5 2:0.25 5:0.25"}
    assert "over 4 draws. The most frequent answer to an item had 50% on average." in model.story()


@pytest.mark.parametrize(("scoring", "temperature"), [(None, 1), ("replies", 0)])
def test_single_replies_are_at_temperature_0_and_draws_at_the_language_models_own(scoring, temperature) -> None:
    llm = ScriptedLLM(lambda request: dict.fromkeys((request.schema or {})["properties"], 1))
    model = run(llm=llm, scoring=scoring, emotions=["Fear"], n_defaults=1, n_situations=1)
    assert {agent.config.settings.temperature for agent in model.agents} == {temperature}
    assert ("does not show how probable" in model.story()) == (scoring == "replies")
