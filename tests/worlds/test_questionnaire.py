"""Questionnaires: what is asked, what counts as an answer, and what scores come of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.errors import ToolError
from mesa_llm.questionnaire import (
    Instrument,
    Item,
    Questionnaire,
    Scale,
    Sheet,
    Subscale,
    in_item_order,
    pages,
    sheets_of,
    summary,
)

SCALE = Scale(1, 5, frozenset({2}))
MOODS = Instrument(
    "Moods",
    "How are you?",
    {1: "I am glad.", 2: "I am sad.", 3: "It is Monday."},
    SCALE,
    (Subscale("Mean", (1, 2)), Subscale("Sum", (1, 2), "sum", 2)),
)


def page(world: Questionnaire) -> str:
    (sheet,) = sheets_of("Moods", MOODS.items_in((3, 1, 2)), per_sheet=None)
    world.ask(1, sheet)
    return sheet.label


def test_reversed_items_are_flipped() -> None:
    assert Scale(0, 3, frozenset({4})).score({1: 3, 4: 0}) == 6


def test_answers_outside_the_scale_are_refused() -> None:
    with pytest.raises(ValueError, match=r"outside 0\.\.3: \{1: 9\}"):
        Scale(0, 3).score({1: 9})


def test_a_page_is_mapped_back_to_its_items_and_fillers_are_not_scored() -> None:
    world = Questionnaire()
    world.receive(1, {"1": 1, "2": 5, "3": 1}, page(world))
    assert world.answers_to(MOODS, 1, 1) == {1: 5, 2: 1, 3: 1}
    assert world.scores(MOODS, 1, 1) == {"Mean": 5, "Sum": 20}


def test_what_cannot_be_used_is_counted_by_item_and_scores_nothing() -> None:
    world = Questionnaire()
    with pytest.raises(ToolError, match=r"Moods 3: “9” .*; Moods 2: no answer"):
        world.receive(1, {"1": 9, "2": "four"}, page(world))
    assert world.lacking() == {
        "Moods 3": {"out_of_range": 1},
        "Moods 1": {"unparsable": 1},
        "Moods 2": {"missing": 1},
    }
    assert world.scores(MOODS, 1, 1) == {"Mean": None, "Sum": None}


@pytest.mark.parametrize(("is_unparsable", "why"), [(True, "unparsable"), (False, "missing")])
def test_a_failed_decision_lacks_every_item_of_its_sheet(is_unparsable, why) -> None:
    world = Questionnaire()
    world.fail(1, page(world), is_unparsable=is_unparsable)
    assert world.lacking() == {f"Moods {number}": {why: 1} for number in (3, 1, 2)}


def test_a_single_item_off_the_scale_is_refused() -> None:
    world = Questionnaire()
    seen = world.ask(1, Sheet.of(MOODS.item(1)))
    with pytest.raises(ToolError, match="not on the scale"):
        world.receive(1, 6, seen.label)
    assert world.totals().out_of_range == 1


def test_nobody_answers_twice_or_what_was_not_asked() -> None:
    world = Questionnaire()
    label = page(world)
    world.receive(1, {"1": 1, "2": 1, "3": 1}, label)
    with pytest.raises(ToolError, match="not asked"):
        world.receive(1, {"1": 2, "2": 2, "3": 2}, label)
    with pytest.raises(ValueError, match="asked 'Moods' twice"):
        page(world)


def test_the_same_sheet_can_be_handed_out_in_the_next_administration() -> None:
    world = Questionnaire()
    for answer in (1, 2):
        world.receive(1, {"1": 1, "2": answer, "3": 1}, page(world))
        world.end_step()
    assert [world.answers_to(MOODS, 1, step)[1] for step in (1, 2)] == [1, 2]


def test_free_texts_and_choices_of_words_are_taken_as_they_are() -> None:
    world = Questionnaire()
    sheet = Sheet("two", (Item("why", "Why?"), Item("which", "Which?", ("A", "B"))))
    seen = world.ask(1, sheet)
    world.receive(1, {"1": "Because.", "2": "B"}, seen.label)
    assert world.given(1, 1) == {"why": "Because.", "which": "B"}


@given(st.lists(st.integers(), max_size=60), st.integers(1, 70))
def test_pages_hold_every_item_once_in_order(items, size) -> None:
    parts = list(pages(items, size))
    assert [item for part in parts for item in part] == items
    assert all(len(part) <= size for part in parts)


@given(st.permutations(range(1, 9)))
def test_any_order_is_mapped_back(order) -> None:
    assert in_item_order(order, [10 * number for number in order]) == {number: 10 * number for number in range(1, 9)}


@pytest.mark.parametrize("subscale", MOODS.subscales, ids=lambda subscale: subscale.name)
def test_the_expectation_of_a_random_responder_is_exact(subscale) -> None:
    both = [MOODS.score({1: one, 2: other})[subscale.name] for one in SCALE.choices for other in SCALE.choices]
    scores = [score for score in both if score is not None]
    found = summary(scores)
    assert MOODS.random_mean(subscale) == pytest.approx(found.mean)
    assert MOODS.random_sd(subscale) == pytest.approx(found.sd * (24 / 25) ** 0.5)
    assert MOODS.score_range(subscale) == (min(scores), max(scores))


def test_a_key_that_names_no_item_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Moods: the key names unknown items \[9\]"):
        Instrument("Moods", "", {1: "I am glad.", 2: "I am sad."}, SCALE, (Subscale("Mean", (1, 9)),))


def test_a_score_that_counts_an_item_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Mean counts items \[1\] more than once"):
        Instrument("Moods", "", {1: "I am glad.", 2: "I am sad."}, SCALE, (Subscale("Mean", (1, 1)),))
