"""CoMPosT: known caricatures are found, nothing is scored that cannot be, and tables of others are read."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import f1_score

from mesa_llm import ConfigError, ScriptedLLM
from mesa_llm.records import Request
from mesa_llm_models.compost.model import PERSONAS, QUESTIONS, TOPICS, CompostModel, with_article
from mesa_llm_models.compost.scores import (
    Caricature,
    CorpusText,
    PersonaTopic,
    exaggeration,
    forest_predictions,
    log_odds,
    macro_f1,
    read_corpus,
    tokens,
)
from mesa_llm_models.compost.task import TASK


def counted(texts):
    """Count the words of a fixed vocabulary."""
    words = ["star", "moon", "soil", "plant", "say", "well"]
    return np.array([[*(tokens(text).count(word) for word in words), 1.0] for text in texts], dtype=float)


def corpus(share: float) -> list[CorpusText]:
    """Write as a stargazer whose texts on gardens are, for a share of them, on stars."""
    rows = []
    for number in range(20):
        on_stars = "Star moon star say." if number < 20 * share else "Soil plant soil say."
        rows += [
            CorpusText("person", "comment", "Say well say well."),
            CorpusText("person", "garden", "Soil plant soil well."),
            CorpusText("stargazer", "comment", "Star moon moon well."),
            CorpusText("stargazer", "garden", on_stars),
        ]
    return rows


def test_the_small_version_of_the_task_has_texts_enough_to_be_scored() -> None:
    task = TASK.as_quick()
    model = task.make(llm="rule", rng=1, **task.setting)
    model.run(task.max_steps)
    assert not any(score is None or math.isnan(score) for score in task.score(model).values())


@pytest.mark.parametrize("share", [0.0, 0.25, 0.75, 1.0])
def test_exaggeration_is_the_share_of_texts_that_leave_the_topic(share) -> None:
    score = Caricature(corpus(share), counted).exaggeration(PersonaTopic("stargazer", "garden"))
    assert score == pytest.approx(share, abs=0.1)


def test_by_rule_the_levels_of_the_personas_are_found() -> None:
    model = CompostModel(rng=4, n_topics=2)
    model.run_for(10)
    found = model.scores().exaggeration
    levels = {agent.label: agent.level for agent in model.agents if agent.level}
    assert list(found) == list(levels)
    for name, level in levels.items():
        assert found[name].mean == pytest.approx(level, abs=0.17)
    assert model.results()["coverage"] == 1.0


def test_seed_words_are_whole_words_in_any_case_unless_the_original_rules_hold() -> None:
    texts = [CorpusText("person", "comment", "Well.")]
    cell = PersonaTopic("person", "comment")
    corrected = Caricature([*texts, CorpusText("person", "comment", "Wellness day.")], counted)
    original = Caricature([*texts, CorpusText("person", "comment", "unwell day.")], counted, rules="original")
    assert corrected._sentences(cell, ["well"]) == ["Well."]
    assert original._sentences(cell, ["well"]) == ["unwell day."]


def test_a_cell_without_seed_words_has_no_score() -> None:
    same = [CorpusText(who, topic, "Say well.") for who in ("person", "twin") for topic in ("comment", "garden")] * 4
    found = Caricature(same, counted)
    assert found.exaggerations() == {}
    assert found.exaggeration(PersonaTopic("nobody", "garden")) is None
    assert found.individuation("nobody", "garden") is None


def test_single_persona_on_a_topic_is_distinguished_under_original_rules_only() -> None:
    rows = [one for one in corpus(0.5) if one != CorpusText("person", "garden", "Soil plant soil well.")]
    alone = Caricature(rows, counted, rules="original").individuations()["stargazer"]["garden"]
    assert (alone.accuracy, alone.macro_f1) == (1.0, 1.0)
    assert list(Caricature(rows, counted).individuations()["stargazer"]) == ["comment"]


def test_exaggeration_has_its_known_value_under_original_rules() -> None:
    model = CompostModel(llm="rule", rng=1, n_personas=1, n_topics=2, rounds=3, texts_per_round=10, rules="original")
    model.run()
    (row,) = model.scores().exaggeration.values()
    assert next(iter(row.by_topic)) == "comment"
    assert row.chance == pytest.approx((1 + 0.5 * (len(row.by_topic) - 1)) / len(row.by_topic))


def test_a_text_is_infinitely_far_from_two_ends_that_are_one() -> None:
    axis, end, text = np.array([1.0, 0.0]), np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])
    assert exaggeration(axis, text, end, end) == math.inf
    assert exaggeration(axis, -text, end, end) == -math.inf
    assert math.isnan(exaggeration(axis, end, end, end))


def test_seed_words_allow_any_alphabet_under_corrected_rules() -> None:
    rows = [CorpusText("person", "comment", "plant " * 9), CorpusText("twin", "comment", "Café " * 9)]
    cell = PersonaTopic("twin", "comment")
    assert list(Caricature(rows, counted).seed_words(cell).persona) == ["café"]
    assert list(Caricature(rows, counted, rules="original").seed_words(cell).persona) == ["caf"]


def test_log_odds_of_a_single_word_are_no_numbers_that_anything_rests_on() -> None:
    assert log_odds(["a"], ["a"], []) == {}


def in_form(request: Request, text: str) -> Any:
    """Return a text as a language model is asked for it: in an object, or bare as in the paper."""
    return text if request.schema is None else dict.fromkeys(request.schema["properties"], text)


@pytest.mark.parametrize(
    ("context", "topics", "rules", "wanted"),
    [
        ("forum", None, "corrected", "Write a comment in an online forum, on the topic “cooking”."),
        ("interview", None, "corrected", f"You are asked in an interview: {QUESTIONS[0]}"),
        ("post", ["tea"], "corrected", "what you think of “tea”."),
        ("forum", None, "original", "an 80-year-old person wrote this comment on the topic “cooking”"),
        ("interview", None, "original", f"Question: {QUESTIONS[0]}"),
        ("post", ["tea"], "original", "posted what they think of “tea”"),
    ],
)
def test_a_request_says_who_writes_where_and_on_what_and_nothing_else(context, topics, rules, wanted) -> None:
    model = CompostModel(
        context=context,
        topics=topics,
        rules=rules,
        rounds=2,
        llm=ScriptedLLM(lambda request: in_form(request, "So it is.")),
        rng=1,
    )
    model.run()
    prompts = list(model.runlog.calls()["prompt"])
    assert any(wanted in prompt for prompt in prompts)
    assert any("You are an 80-year-old person." in prompt for prompt in prompts) == (rules == "corrected")
    assert not any('"system"' in prompt or "So it is." in prompt for prompt in prompts)


def test_an_empty_reply_is_counted_and_no_text() -> None:
    model = CompostModel(n_personas=1, n_topics=1, llm=ScriptedLLM(lambda request: ""), rng=1)
    model.step()
    assert (model.n_texts, model.n_unparsable) == (0, 8)
    assert model.results()["exaggeration"] is None


@pytest.mark.parametrize("label", ["80-year-old person", "Asian person", "18-year-old", "accountant", "uninsured man"])
def test_articles(label) -> None:
    assert with_article(label) == f"an {label}"


@pytest.mark.parametrize("label", ["man", "13-year-old", "university student", "European person", "Ukrainian", "user"])
def test_articles_before_the_sound_of_a_consonant(label) -> None:
    assert with_article(label) == f"a {label}"


def test_a_table_is_read_and_rows_without_a_text_are_left_out(tmp_path) -> None:
    path = tmp_path / "mini.csv"
    path.write_text("prompt,persona,topic,response\nx,user,comment,Hello.\nx,user,comment,\nx,user,NA,None\n")
    assert read_corpus(path) == [CorpusText("user", "comment", "Hello."), CorpusText("user", "NA", "None")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("persona,topic\na,b\n", "no column 'response'.*found persona, topic"),
        ("persona,topic,response\na,b,Hello,there\n", "column 1 has no name"),
        ("", "the file is empty"),
        ("persona,topic,response\na,b,\na,,Hello\n", "none of the 2 rows has a persona, a topic and a response"),
    ],
)
def test_a_bad_table_is_one_clear_error(tmp_path, content, message) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"bad\.csv[:,] .*{message}"):
        read_corpus(path)


def test_a_missing_table_is_one_clear_error() -> None:
    with pytest.raises(ConfigError, match=r"none\.csv cannot be opened"):
        read_corpus("none.csv")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"personas": ["man", "man"]}, "personas are one or more, all different"),
        ({"topics": ["comment"]}, "none of them 'comment'"),
        ({"personas": []}, "personas are one or more"),
        ({"topics": [" "]}, "blank"),
        ({"n_personas": 99}, "n_personas"),
    ],
)
def test_bad_parameters_are_refused(fields, message) -> None:
    with pytest.raises(ConfigError, match=message):
        CompostModel(**fields)


def test_personas_and_topics_are_all_different() -> None:
    assert len({*PERSONAS, *TOPICS, *QUESTIONS}) == len(PERSONAS) + len(TOPICS) + len(QUESTIONS)


def test_topics_of_the_original_are_read_from_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "topics.txt"
    file.write_text("Health\ncomment\n\nSports \nHealth\n", encoding="utf-8")
    assert CompostModel(topics=str(file), rng=1).topics == ["comment", "Health", "Sports"]


def test_what_a_language_model_says_in_its_own_voice_is_no_text_of_the_persona() -> None:
    replies = {1: "I love long walks.", 2: "I'm sorry, but I can't assist with that.", 3: "Hello! How can I help you?"}
    script = ScriptedLLM(lambda request: in_form(request, replies[request.salt.agent]))
    model = CompostModel(n_personas=2, n_topics=1, rounds=1, texts_per_round=1, llm=script, rng=1)
    model.step()
    assert (model.n_texts, model.n_missing, model.n_declined) == (2, 4, 4)
    assert {one.text for one in model.corpus} == {"I love long walks."}


def test_the_mean_f1_score_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    for n_labels in (1, 2, 3):
        labels, predictions = (np.array([f"persona {one}" for one in rng.integers(0, n_labels, 9)]) for _ in range(2))
        assert macro_f1(labels, predictions) == pytest.approx(f1_score(labels, predictions, average="macro"), rel=1e-12)


def test_the_fast_forest_predicts_as_scikit_learns() -> None:
    rng = np.random.default_rng(1)
    for n, n_classes in ((9, 2), (32, 2), (32, 3), (40, 1)):
        known, others = rng.normal(size=(n, 48)), rng.normal(size=(8, 48))
        labels = np.array([f"persona {index % n_classes}" for index in range(n)])
        expected = RandomForestClassifier(random_state=0).fit(known, labels).predict(others)
        assert forest_predictions(known, labels, others).tolist() == expected.tolist()
