"""Invented and drawn personas, follow graphs, hours of activity."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mesa_llm.population import (
    Persona,
    activity_table,
    core_ordinary_follows,
    draw,
    drawn_personas,
    follow_matrix,
    from_distributions,
    hourly_activity,
    invented,
    preferential_follows,
    random_follows,
    watts_strogatz_follows,
)
from mesa_llm.population.columns import residents
from mesa_llm.population.follows import ranked_edges
from mesa_llm.population.traits import MBTI, REDDIT_AGES, X_AGES, X_TOPICS

GRAPHS: dict[str, Callable[[int, int, int], list[tuple[int, int]]]] = {
    "random": random_follows,
    "preferential": preferential_follows,
    "watts_strogatz": lambda n, each, seed: watts_strogatz_follows(n, each, 0.3, seed),
}


def test_there_are_48_residents_and_each_is_somebody_of_its_own() -> None:
    everyone = residents()
    assert len(everyone) == 48
    for field in ("name", "persona", "style"):
        assert len({getattr(person, field) for person in everyone}) == 48
    assert all(len(person.topics) == 3 for person in everyone)


def test_residents_are_not_repeated_before_all_have_come() -> None:
    assert {person.name for person in invented(48, 1)} == {person.name for person in residents()}
    assert len(invented(200, 1)) == 200


@pytest.mark.parametrize("make", [invented, from_distributions], ids=["invented", "from_distributions"])
def test_equal_seeds_give_equal_people(make: Callable[..., list[Persona]]) -> None:
    assert make(60, random.Random(4)) == make(60, random.Random(4)) == make(60, 4)
    assert make(60, 4) != make(60, 5)


def test_a_persona_becomes_a_config() -> None:
    config = Persona(name="Ann", persona="You bake.", traits={"age": 4}, style="dry").config(tools=("vote",))
    assert config.text == "Your name is Ann.\nYou bake.\nage: 4\nHow you write: dry"
    assert config.tools == ("vote",)


@pytest.mark.parametrize("activity", [(0.5,) * 23, (1.5,) * 24, (float("nan"),) * 24])
def test_activity_is_24_probabilities(activity: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError):
        Persona(activity=activity)


def test_published_shares_sum_to_one() -> None:
    assert sum(MBTI.values()) == pytest.approx(1)
    assert sum(X_AGES.values()) == pytest.approx(1)
    assert sum(REDDIT_AGES.values()) == pytest.approx(1)


def test_x_users_follow_the_published_marginals() -> None:
    """Shares of OASIS, appendix E.2; four standard errors at n = 20,000 are below 0.015."""
    people = [person.traits for person in from_distributions(20_000, 7)]
    for (first, last), share in X_AGES.items():
        found = np.mean([first <= int(str(person["age"])) <= last for person in people])
        assert found == pytest.approx(share, abs=0.015)
    for kind, share in {**MBTI, "male": 0.4, "other": 0.2}.items():
        assert np.mean([kind in (p["mbti"], p["gender"]) for p in people]) == pytest.approx(share, abs=0.015)


def test_x_users_are_dealt_every_pair_of_topics_equally_often() -> None:
    pairs = Counter(person.topics for person in from_distributions(72, 1))
    assert pairs == dict.fromkeys(combinations(X_TOPICS, 2), 2)


def test_reddit_users_follow_the_published_marginals() -> None:
    """Shares of OASIS, appendix E.3."""
    people = from_distributions(20_000, 7, "reddit")
    countries = Counter(str(person.traits["country"]) for person in people)
    assert countries["US"] / 20_000 == pytest.approx(0.4833, abs=0.015)
    genders = Counter(str(person.traits["gender"]) for person in people)
    assert genders["female"] / 20_000 == pytest.approx(0.351 / (0.351 + 0.636), abs=0.015)
    assert {len(set(person.topics)) for person in people} == {2, 3}


def test_unknown_kinds_of_users_are_refused() -> None:
    with pytest.raises(ValueError, match="kind must be 'x' or 'reddit'"):
        from_distributions(1, 1, "tv")  # pyright: ignore[reportArgumentType]


def test_draw_never_gives_what_has_no_weight() -> None:
    people = draw(200, 1, {"vote": {"yes": 3.0, "no": 0.0}, "home": {"north": 1.0, "south": 1.0}})
    assert {person["vote"] for person in people} == {"yes"}
    assert {person["home"] for person in people} == {"north", "south"}


@pytest.mark.parametrize("weights", [{}, {"a": 0.0}, {"a": -1.0, "b": 2.0}, {"a": float("nan")}, {"a": float("inf")}])
def test_weights_that_cannot_be_drawn_from_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="trait 'vote' needs weights"):
        draw(3, 1, {"vote": weights})


@pytest.mark.parametrize("name", sorted(GRAPHS))
@given(st.integers(1, 30), st.data())
def test_follows_are_sorted_unique_and_never_of_oneself(name: str, n: int, data: st.DataObject) -> None:
    each = data.draw(st.integers(0, n - 1))
    edges = GRAPHS[name](n, each, data.draw(st.integers(0, 99)))
    assert edges == sorted(set(edges))
    assert all(a != b and 0 <= a < n and 0 <= b < n for a, b in edges)
    assert Counter(a for a, _ in edges) == (dict.fromkeys(range(n), each) if each else {})


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_graphs_of_equal_seeds_are_equal(name: str) -> None:
    assert GRAPHS[name](50, 4, 1) == GRAPHS[name](50, 4, 1) != GRAPHS[name](50, 4, 2)


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_nobody_follows_more_users_than_there_are(name: str) -> None:
    with pytest.raises(ValueError, match="each of 5 users can follow 0 to 4 others, got 5"):
        GRAPHS[name](5, 5, 1)


def test_preferential_follows_make_a_few_famous() -> None:
    followers = Counter(b for _, b in preferential_follows(2000, 3, 1))
    evenly = Counter(b for _, b in random_follows(2000, 3, 1))
    assert max(followers.values()) > 4 * max(evenly.values())


@given(st.integers(2, 30), st.data())
def test_ranked_follows_are_sorted_unique_and_never_of_oneself(n: int, data: st.DataObject) -> None:
    each, camps = data.draw(st.integers(0, n - 1)), data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    homophily = data.draw(st.sampled_from([None, 0.0, 0.5, 1.0]))
    edges = ranked_edges(n, each, random.Random(1), ranks=range(1, n + 1), camps=camps, homophily=homophily)
    found = [tuple(edge) for edge in edges.tolist()]
    assert found == sorted(set(found))
    assert Counter(a for a, _ in found) == {user: each for user in range(n) if each}
    assert all(a != b for a, b in found)


@pytest.mark.parametrize("homophily", [0.0, 0.3, 0.9, 1.0])
def test_follows_go_to_ones_own_camp_as_often_as_asked(homophily: float) -> None:
    camps = [user % 2 for user in range(1000)]
    edges = ranked_edges(1000, 3, random.Random(1), camps=camps, homophily=homophily)
    own = np.mean([camps[a] == camps[b] for a, b in edges.tolist()])
    assert own == pytest.approx(homophily, abs=0.03)  # three standard errors of 3,000 draws


def test_users_of_the_first_ranks_have_most_followers_and_equal_users_as_many() -> None:
    ranked = ranked_edges(200, 3, random.Random(1), ranks=range(200, 0, -1))
    followers = Counter(ranked[:, 1].tolist())
    assert followers.most_common(1)[0] == (199, max(followers.values()))
    evenly = Counter(ranked_edges(200, 3, random.Random(1))[:, 1].tolist())
    assert max(followers.values()) > 4 * max(evenly.values())


def test_without_rewiring_the_ring_stays() -> None:
    assert watts_strogatz_follows(5, 2, 0.0, 1) == sorted(
        (user, (user + step) % 5) for user in range(5) for step in (-1, 1)
    )


def test_ordinary_users_follow_only_core_users_of_their_topics() -> None:
    topics = [["a"], ["b"], ["a", "b"], ["b"], ["c"]]
    assert core_ordinary_follows(topics, 2, 1.0, rng=1) == [(2, 0), (2, 1), (3, 1)]
    assert core_ordinary_follows(topics, 2, 0.0, rng=1) == []


def test_ordinary_users_follow_with_the_given_probability() -> None:
    """Four standard errors of 20,000 draws at p = 0.2 are 0.011."""
    edges = core_ordinary_follows([["a"]] * 2010, 10, 0.2, rng=3)
    assert len(edges) / (2000 * 10) == pytest.approx(0.2, abs=0.012)


def test_follows_become_a_sparse_matrix() -> None:
    matrix = follow_matrix([(0, 1), (2, 1)], 3)
    assert matrix.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match="indices run from 0 to 2"):
        follow_matrix([(0, 3)], 3)


def test_the_papers_activity_is_relative_to_the_busiest_of_each_hour() -> None:
    counts = np.zeros((2, 24))
    counts[:, 0] = 4, 1
    counts[:, 1] = 0, 10
    hours = hourly_activity(counts)
    assert hours[:, :3].tolist() == [[1, 0, 0], [0.25, 1, 0]]


def test_the_codes_activity_is_relative_to_the_busiest_of_all_and_lifted() -> None:
    counts = np.zeros((2, 24))
    counts[:, 0] = 4, 1
    counts[:, 1] = 6, 10
    hours = hourly_activity(counts, "code")
    assert hours[:, :3].tolist() == [[0.5, 0.6, 0.1], [0.2, 1.0, 0.1]]


def test_activity_has_four_forms() -> None:
    counts = np.arange(1, 49).reshape(2, 24)
    assert activity_table("paper", 2, counts, rng=1)[1].tolist() == [1.0] * 24
    assert activity_table("code", 2, counts, rng=1).tolist() == hourly_activity(counts, "code").tolist()
    assert set(activity_table("reddit", 3, rng=1, share=0.3).ravel()) == {0.3}
    assert activity_table("core", 3, n_core=1, rng=1)[:, 5].tolist() == [0.1, 0.01, 0.01]


def test_rows_of_activity_are_dealt_to_any_number_of_users() -> None:
    counts = np.arange(1, 49).reshape(2, 24)
    dealt = activity_table("paper", 200, counts, rng=3)
    assert dealt.tolist() == activity_table("paper", 200, counts, rng=3).tolist()
    assert {tuple(row) for row in dealt} == {tuple(row) for row in hourly_activity(counts)}
    with pytest.raises(ValueError, match="activity 'code' is computed from counts"):
        activity_table("code", 2, rng=1)
    with pytest.raises(ValueError, match="a probability must be 0 to 1"):
        activity_table("reddit", 2, share=1.5, rng=1)


@pytest.mark.parametrize("counts", [np.zeros((2, 23)), np.full((1, 24), -1), np.full((1, 24), np.nan)])
def test_counts_that_are_none_are_refused(counts: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"counts (need|must)"):
        hourly_activity(counts)


def test_people_drawn_for_a_model_differ_as_far_as_the_lists_allow() -> None:
    people = drawn_personas(4, 1, ["Calm.", "Bold."], ["Old.", "Young.", "Tired.", "Awake."])
    assert people == drawn_personas(4, 1, ["Calm.", "Bold."], ["Old.", "Young.", "Tired.", "Awake."])
    assert len({person.name for person in people}) == len({person.persona.split()[1] for person in people}) == 4
    assert sorted(person.persona.split()[0] for person in people) == ["Bold.", "Bold.", "Calm.", "Calm."]


@pytest.mark.parametrize(("n", "sentences"), [(-1, ["Calm."]), (2, [])])
def test_people_need_a_number_and_sentences(n, sentences) -> None:
    with pytest.raises(ValueError, match="people need"):
        drawn_personas(n, 1, sentences)
