"""How posts move beliefs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.text import tone
from mesa_llm_models.social.belief_text import confidence_band, position_band
from mesa_llm_models.social.beliefs import (
    MAX_DIGESTS,
    MAX_MOVE,
    Beliefs,
    Exposure,
    StepPost,
    apply_posts,
    beliefs_text,
    exposure_of,
    update_beliefs,
)

units = st.floats(0, 1)
stances = st.floats(-1, 1)
exposures = st.builds(Exposure, st.integers(1, 5), st.text("abc", max_size=1), stances, st.integers(-5, 500))


def holding(position: float, confidence: float = 0.5, **fields: object) -> Beliefs:
    """Hold a position on the topic T."""
    return Beliefs({"T": position}, {"T": confidence}, **fields)  # type: ignore[arg-type]


@given(stances, units, st.lists(exposures, max_size=30), st.integers(0, 10**6), st.integers(0, 10**6))
def test_beliefs_stay_within_their_scales(
    position: float, confidence: float, met: list[Exposure], likes: int, dislikes: int
) -> None:
    after = update_beliefs(holding(position, confidence), "T", met, own_likes=likes, own_dislikes=dislikes)
    assert -1 <= after.positions["T"] <= 1
    assert 0 <= after.confidence["T"] <= 1
    assert all(0 <= trust <= 1 for trust in after.trust.values())


@given(stances, units, st.lists(exposures, min_size=1, max_size=30))
def test_a_belief_moves_towards_what_it_met_and_not_far(
    position: float, confidence: float, met: list[Exposure]
) -> None:
    after = update_beliefs(holding(position, confidence), "T", met).positions["T"]
    heard = [position, *(post.stance for post in met)]
    assert min(heard) - 1e-12 <= after <= max(heard) + 1e-12
    assert abs(after - position) <= MAX_MOVE + 1e-12


@given(stances, st.floats(-0.05, 0.05))
def test_a_single_post_moves_about_as_in_the_original(position: float, gap: float) -> None:
    met = [Exposure(1, "a", max(-1.0, min(1.0, position + gap)))]
    moves = [update_beliefs(holding(position), "T", met, rules=rules).positions["T"] for rules in RULES]
    assert moves[0] == pytest.approx(moves[1], abs=1e-3)


RULES = ("original", "corrected")


def test_a_hundred_posts_saturate_the_original_only() -> None:
    met = [Exposure(author, str(author), 1.0, 3) for author in range(100)]
    ends = [update_beliefs(Beliefs(), "T", met, rules=rules).positions["T"] for rules in RULES]
    assert ends == [1.0, 0.2]


def test_the_confident_move_less() -> None:
    met = [Exposure(1, "a", 1.0)]
    sure, unsure = (update_beliefs(holding(0, confidence), "T", met).positions["T"] for confidence in (0.9, 0.1))
    assert 0 < sure < unsure


def test_what_was_seen_before_moves_less() -> None:
    met = [Exposure(1, "a", 1.0)]
    first = update_beliefs(Beliefs(), "T", met)
    again = update_beliefs(holding(0, digests=first.digests), "T", met)
    assert 0 < again.positions["T"] < first.positions["T"]


def test_trust_grows_in_those_who_agree_once_a_step() -> None:
    met = [Exposure(1, str(number), 0.8) for number in range(20)] + [Exposure(2, "x", -1.0)]
    trust = update_beliefs(holding(0.8), "T", met).trust
    assert 0.5 < trust[1] <= 0.525
    assert trust[2] < 0.5


def test_confidence_moves_a_tenth_at_most() -> None:
    assert update_beliefs(Beliefs(), "T", [], own_likes=10**9).confidence["T"] == pytest.approx(0.6)


@pytest.mark.parametrize("stance", [math.nan, math.inf, 1.2])
def test_a_stance_off_the_scale_is_refused(stance: float) -> None:
    with pytest.raises(ValueError, match=r"from -1 to 1"):
        update_beliefs(Beliefs(), "T", [Exposure(1, "a", stance)])


def test_the_oldest_posts_are_forgotten_first() -> None:
    met = [Exposure(1, f"new{number}", 0.0) for number in range(10)]
    old = tuple(f"old{number}" for number in range(MAX_DIGESTS))
    digests = update_beliefs(Beliefs(digests=old), "T", met).digests
    assert (len(digests), digests[0], digests[-1]) == (MAX_DIGESTS, "old10", "new9")


def test_nothing_given_is_changed() -> None:
    before = holding(0.1, trust={1: 0.5})
    update_beliefs(before, "T", [Exposure(1, "a", 1.0)])
    assert before == holding(0.1, trust={1: 0.5})


def test_other_topics_keep_their_beliefs() -> None:
    after = update_beliefs(Beliefs({"U": 0.3}, {"U": 0.4}), "T", [Exposure(1, "a", 1.0)])
    assert (after.positions["U"], after.confidence["U"]) == (0.3, 0.4)


# Posts of a step


def test_posts_move_all_but_their_author() -> None:
    after = apply_posts({1: Beliefs(), 2: Beliefs()}, [StepPost("p", 1, "Splendid!")], "T")
    assert after[1] == Beliefs()
    assert after[2].positions["T"] > 0


def test_exposure_can_follow_a_feed() -> None:
    posts = [StepPost("p", 3, "Splendid!"), StepPost("q", 3, "Horrible!")]
    after = apply_posts({1: Beliefs(), 2: Beliefs()}, posts, "T", feeds={1: {"q"}})
    assert after[1].positions["T"] < 0
    assert after[2] == Beliefs()


def test_likes_of_own_posts_raise_confidence() -> None:
    after = apply_posts({1: Beliefs()}, [StepPost("p", 1, "Words", likes=4)], "T")
    assert after[1].confidence["T"] == pytest.approx(0.52)


def test_any_measure_of_stance_can_be_used() -> None:
    after = apply_posts({2: Beliefs()}, [StepPost("p", 1, "We oppose this wonderful law")], "T", stance=lambda _: -1.0)
    assert after[2].positions["T"] < 0


def test_a_repeated_text_is_known_again_but_not_in_the_original() -> None:
    posts = [StepPost("p", 1, "So it is"), StepPost("q", 2, "so  it IS", step=4)]
    corrected = {exposure_of(post).digest for post in posts}
    original = {exposure_of(post, rules="original").digest for post in posts}
    assert (len(corrected), len(original)) == (1, 2)


def test_namesakes_stay_apart() -> None:
    posts = [StepPost("p", 1, "good", author_name="Jo"), StepPost("q", 2, "bad", author_name="Jo")]
    trust = [apply_posts({3: Beliefs()}, posts, "T", rules=rules)[3].trust for rules in RULES]
    assert [list(known) for known in trust] == [["Jo"], [1, 2]]


@given(st.text(max_size=200))
def test_tone_is_within_its_scale(text: str) -> None:
    assert -1 <= tone(text) <= 1


# In words


@pytest.mark.parametrize(("position", "words"), [(0.6, "strongly supportive"), (0.2, "leaning supportive")])
def test_a_supportive_band_begins_at_its_edge(position: float, words: str) -> None:
    assert position_band(position) == words


@pytest.mark.parametrize(("position", "words"), [(-0.2, "leaning opposed"), (-0.6, "strongly opposed")])
def test_an_opposed_band_includes_its_upper_edge(position: float, words: str) -> None:
    assert position_band(position) == words


def test_beliefs_in_words() -> None:
    assert beliefs_text(Beliefs()) == ""
    assert beliefs_text(holding(0.7, 0.1)) == "On “T” you are strongly supportive; your view is uncertain."
    assert confidence_band(0.75) == "firmly held"
