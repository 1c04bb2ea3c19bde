"""Which side a text takes on a topic, and whether it speaks of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.errors import ConfigError
from mesa_llm.text import tone
from mesa_llm_models.social.stances import TopicStance

LAW = TopicStance("the new climate law")
BAN = TopicStance("a ban on cars in the centre", words=("ban",))


@pytest.mark.parametrize(
    ("text", "stance"),
    [
        ("I support this law.", 1),
        ("I don't support the law.", -1),
        ("Nobody wants to stop the law.", 1),
        ("We are for it! The climate laws are needed, and I agree.", 1),
        ("I love my garden. Yes!", None),
    ],
)
def test_words_for_and_against_tell_the_side_in_sentences_about_the_topic(text: str, stance: float | None) -> None:
    assert LAW(text) == stance


def test_a_merry_text_can_be_against_and_an_angry_one_for() -> None:
    merry = "We oppose this wonderful, fair and excellent law"
    assert tone(merry) > 0.8
    assert LAW(merry) == -1
    assert tone(angry := "Damn it, I support the ban, those cars kill us!") < -0.5
    assert BAN(angry) == 1


def test_the_mood_counts_where_no_side_is_named_and_the_topic_itself_has_none() -> None:
    assert (LAW("The law is a terrible mistake.") or 0) < -0.3
    assert BAN("There will be a ban.") == 0
    assert BAN("A ban? It is a wonderful idea.") == pytest.approx(tone("It is a wonderful idea.") / 2)


def test_endings_of_the_topics_words_do_not_matter() -> None:
    assert [BAN(f"I welcome {word}.") for word in ("the ban", "bans", "banning cars", "what is banned")] == [1] * 4
    assert BAN("I welcome the bandage.") is None


@given(st.text(max_size=200))
def test_any_text_has_a_stance_on_the_scale_or_none(text: str) -> None:
    stance = LAW(f"{text} law {text}")
    assert stance is not None
    assert -1 <= stance <= 1


def test_a_topic_without_a_word_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no words that name it"):
        TopicStance("?!")
