"""Who acts, and in which order."""

import mesa
import pytest

from mesa_llm import ConfigError
from mesa_llm.engine.activation import ByType, Hourly, RandomShare, everyone, in_order, in_turn, one_at_a_time
from tests.pot import Payer, PotModel


class Rich(Payer):
    pass


def numbers(stages):
    return [[agent.unique_id for agent in stage] for stage in stages]


def test_everyone_acts_in_an_order_that_the_seed_decides() -> None:
    orders = [numbers(everyone(PotModel(9, rng=seed)))[0] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(1, 10))


def test_in_order_one_at_a_time_and_in_turn() -> None:
    model = PotModel(3, rng=1)
    assert numbers(in_order(model)) == [[1, 2, 3]]
    assert sorted(map(tuple, numbers(one_at_a_time(model)))) == [(1,), (2,), (3,)]
    turns = []
    for _ in range(4):
        turns += numbers(in_turn(model))
        model.step()
    assert turns == [[1], [2], [3], [1]]


def test_one_class_acts_after_another() -> None:
    model = PotModel(2, rng=1)
    Rich(model)
    first, second = numbers(ByType(Rich, Payer)(model))
    assert (first, sorted(second)) == ([3], [1, 2])
    assert numbers(ByType(Rich)(model)) == [[3]]


@pytest.mark.parametrize(("share", "fewest", "most"), [(0, 0, 0), (0.5, 380, 620), (1, 1000, 1000)])
def test_a_random_share_acts(share, fewest, most) -> None:
    assert fewest <= len(RandomShare(share)(PotModel(1000, rng=1))[0]) <= most


def test_a_share_beyond_one_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        RandomShare(1.5)


def test_hourly_activity_follows_each_agents_day() -> None:
    morning = Hourly(lambda agent: [0] * 8 + [1] * 4 + [0] * 12, minutes_per_step=60, start_hour=7)
    model = PotModel(5, rng=1)
    active = []
    for _ in range(6):
        active.append(len(morning(model)[0]))
        model.step()
    assert active == [0, 5, 5, 5, 5, 0]
    assert morning.hour(18) == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.survey(["How are you?"], agents=model.agents),
        lambda model: model.ask(list(model.agents)),
        lambda model: model.step(),
    ],
)
def test_who_has_no_mind_is_asked_nothing_and_named(ask) -> None:
    model = PotModel(1, "random", rng=1, activation=lambda model: [list(model.agents)])
    type("Grass", (mesa.Agent,), {})(model)
    with pytest.raises(ConfigError, match="Grass has no mind, and can be asked nothing"):
        ask(model)
