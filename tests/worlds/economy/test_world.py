"""The economy of producers, governments and households."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ToolCall
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm.world import World
from mesa_llm_models.economy.world import Economy, EconomyParameters
from mesa_llm_models.economy.world.state import METRICS
from mesa_llm_models.economy.world.text import number_text

NAN, INF = float("nan"), float("inf")


def act(world: Economy, agent_id: int, name: str, **arguments: Any) -> str:
    """Act through the tool box, as models do."""
    return ToolBox.of(object(), agent_id, [world]).call(ToolCall(name, arguments))


def firm(price: float = 5.0, workers: int = 100, **parameters: Any) -> Economy:
    """Build an economy with one producer, number 1, at work."""
    world = Economy(EconomyParameters(**parameters))
    act(world, 1, "set_price", price=price)
    act(world, 1, "hire", count=workers)
    return world


def test_it_is_a_world() -> None:
    assert isinstance(Economy(), World)


def test_workers_are_paid_out_of_the_balance() -> None:
    world = firm(price=0.0, workers=100)
    world.end_step()
    assert world.enter(1).balance == 9_000
    assert world.state.purse == 11_000


def test_nobody_hires_more_than_it_can_pay() -> None:
    world = Economy()
    world.enter(1, balance=99.0)
    with pytest.raises(ToolError, match="pays 9 workers"):
        act(world, 1, "hire", count=10)


def test_nobody_hires_people_who_are_not_there() -> None:
    world = firm(workers=90, labor_force=100)
    with pytest.raises(ToolError, match="only 10 people are without work"):
        act(world, 2, "hire", count=11)


def test_workers_whom_the_balance_cannot_pay_are_let_go() -> None:
    world = firm(price=0.0, workers=100, starting_balance=1_500.0)
    world.end_step()
    world.end_step()
    assert (world.enter(1).workforce, world.enter(1).balance) == (50, 0)


def test_one_cannot_fire_more_than_one_employs() -> None:
    with pytest.raises(ToolError, match="employ 100 workers and cannot let 101 go"):
        act(firm(), 1, "fire", count=101)


def test_who_has_no_workers_is_not_offered_to_let_any_go() -> None:
    boxes = [ToolBox.of(object(), agent_id, [firm()]).usable for agent_id in (1, 2)]
    assert ["fire" in box for box in boxes] == [True, False]
    assert "fire" in ToolBox.of(object(), 1, [Economy(rules="original")]).usable


def test_workers_make_goods_and_households_buy_them() -> None:
    world = firm(price=5.0, workers=100)
    world.end_step()
    own = world.enter(1)
    assert (own.output, own.stock, own.sales) == (100, 0, 500)
    assert own.balance == 10_000 - 1_000 + 500


def test_capital_makes_workers_more_productive() -> None:
    world = firm()
    act(world, 1, "invest", amount=5_000)
    world.end_step()
    assert world.enter(1).output == pytest.approx(100 * 1.5**0.3)
    assert world.state.metrics["total_investment"] == 5_000


def test_households_buy_the_cheapest_goods_first() -> None:
    world = Economy(EconomyParameters(starting_purse=0.0, spending_share=0.5))
    for agent_id, price in ((1, 12.0), (2, 10.0)):
        act(world, agent_id, "set_price", price=price)
        act(world, agent_id, "hire", count=10)
    world.end_step()
    assert [world.enter(agent_id).sales for agent_id in (1, 2)] == pytest.approx([0, 100])


def test_firms_with_equal_prices_share_the_demand() -> None:
    world = Economy(EconomyParameters(starting_balance=2_000.0))
    for agent_id in range(1, 9):
        act(world, agent_id, "set_price", price=100.0)
        act(world, agent_id, "hire", count=20)
    for _ in range(5):
        world.end_step()
    firms = [world.enter(agent_id) for agent_id in range(1, 9)]
    assert firms[0].sales > 0
    assert [firm.balance for firm in firms] == pytest.approx([firms[0].balance] * 8)


def test_of_equal_prices_who_offers_more_sells_more() -> None:
    world = Economy(EconomyParameters(starting_purse=0.0, spending_share=0.5))
    for agent_id, workers in ((1, 10), (2, 30)):
        act(world, agent_id, "set_price", price=10.0)
        act(world, agent_id, "hire", count=workers)
    world.end_step()
    assert [world.enter(agent_id).sales for agent_id in (1, 2)] == pytest.approx([50, 150])


def test_a_payment_arrives() -> None:
    world = Economy()
    world.enter(2)
    act(world, 1, "allocate", target="2", amount=100)
    act(world, 1, "allocate", target="households", amount=50)
    assert [world.enter(1).balance, world.enter(2).balance, world.state.purse] == [9_850, 10_100, 10_050]


@pytest.mark.parametrize("target", [3, "[3] Ben", "nobody"])
def test_a_payment_needs_someone_else_who_is_there(target: int | str) -> None:
    world = Economy()
    world.enter(2)
    with pytest.raises(ToolError, match="choose one of: 2, households"):
        act(world, 1, "allocate", target=target, amount=1)


@pytest.mark.parametrize("amount", [0, -1, NAN, INF, -INF, 1e300, "many", None, 10_000.01])
def test_amounts_that_cannot_be_paid_are_refused(amount: object) -> None:
    world = firm()
    world.enter(2)
    for name, others in (("invest", {}), ("allocate", {"target": 2})):
        with pytest.raises(ToolError):
            act(world, 1, name, amount=amount, **others)
    assert world.state.money == 30_000


@pytest.mark.parametrize("amount", [0, -1, NAN, INF, 1e300])
def test_the_rules_refuse_bad_amounts_without_a_tool_box(amount: float) -> None:
    world = Economy()
    for refused in (lambda: world.invest(1, amount), lambda: world.allocate(1, "households", amount)):
        with pytest.raises(ToolError, match="an amount must be"):
            refused()


@pytest.mark.parametrize("count", [0, -5, 1.5, NAN, 10**30, "all"])
def test_counts_that_are_no_number_of_people_are_refused(count: object) -> None:
    for name in ("hire", "fire"):
        with pytest.raises(ToolError):
            act(firm(), 1, name, count=count)


@pytest.mark.parametrize("price", [-1, NAN, INF, 1e13])
def test_prices_have_bounds(price: float) -> None:
    with pytest.raises(ToolError, match="price"):
        act(Economy(), 1, "set_price", price=price)
    with pytest.raises(ToolError, match="price"):
        Economy().set_price(1, price)


# Policies


def test_a_policy_is_shown_and_told() -> None:
    world = Economy(names={1: "Ada"})
    act(world, 1, "apply_policy", policy_name="Levy", description="Pay up.", variable="tax_rate", value=0.25)
    assert "Policy “Levy”: “Pay up.”" in world.observe(2).text
    (event,) = world.end_step()
    assert (event.kind, event.facts["variable"], event.facts["value"]) == ("policy_change", "tax_rate", 0.25)
    assert event.text.startswith("Ada enacted")


def test_tax_goes_to_the_government() -> None:
    world = firm(price=5.0, workers=100)
    world.enter(2, role="government", balance=0.0)
    act(world, 2, "apply_policy", policy_name="Levy", description="", variable="tax_rate", value=0.2)
    world.end_step()
    assert world.enter(2).balance == pytest.approx(100)


def test_a_minimum_wage_raises_the_wage() -> None:
    world = firm(price=0.0, workers=100)
    act(world, 1, "apply_policy", policy_name="Floor", description="", variable="minimum_wage", value=20)
    world.end_step()
    assert world.enter(1).balance == 8_000


def test_only_a_government_governs_once_there_is_one() -> None:
    world = Economy()
    world.enter(2, role="government")
    assert "apply_policy" not in ToolBox.of(object(), 1, [world]).usable
    assert "hire" not in ToolBox.of(object(), 2, [world]).usable
    with pytest.raises(ToolError, match="only a government"):
        act(world, 1, "apply_policy", policy_name="P", description="")
    with pytest.raises(ToolError, match="only producers"):
        act(world, 2, "hire", count=1)


@pytest.mark.parametrize(
    ("variable", "value"), [("tax_rate", 1.5), ("tax_rate", "high"), ("minimum_wage", -1), ("No Name", 1), ("x", None)]
)
def test_variables_that_cannot_be_are_refused(variable: str, value: object) -> None:
    with pytest.raises(ToolError):
        act(Economy(), 1, "apply_policy", policy_name="P", description="", variable=variable, value=value)


def test_policies_and_variables_stay_few() -> None:
    world = Economy()
    for number in range(30):
        act(world, 1, "apply_policy", policy_name=f"p{number}", description="")
    act(world, 1, "apply_policy", policy_name="p29", description="again")
    assert len(world.state.policies) == 20
    assert world.state.policies[-1].description == "again"


# Events, observations, parameters


def test_a_firm_knows_what_a_worker_and_capital_make_before_it_hires_or_prices() -> None:
    world = Economy(EconomyParameters(productivity=3.0))
    world.enter(1)
    seen = world.observe(1)
    assert (seen.facts.goods_per_worker, seen.facts.goods_per_worker_after) == pytest.approx((3, 3 * 1.1**0.3))
    assert "with it a worker makes 3 goods a step, and with $1,000 more would make 3.087" in seen.text


def test_what_a_firm_knows_of_its_workers_is_what_they_make() -> None:
    world = firm(workers=10)
    act(world, 1, "invest", amount=1_000)
    promised = world.facts(1).goods_per_worker
    world.end_step()
    assert world.enter(1).output == pytest.approx(10 * promised)


def test_events_tell_of_relative_changes() -> None:
    world = firm(price=100.0, workers=100)
    first = {event.facts["metric"] for event in world.end_step()}
    act(world, 1, "set_price", price=104.0)
    act(world, 1, "fire", count=4)
    assert first == {"employment_rate", "avg_price", "total_output"}
    assert world.end_step() == []


def test_an_observation_shows_whom_one_can_pay() -> None:
    world = firm(price=5.0)
    world.names[1] = "Ada's bakery"
    seen = world.observe(2)
    assert "[1] Ada's bakery, producer: asks $5.00 a good and employs 100." in seen.text
    assert [other.agent_id for other in seen.facts.others] == [1]


def crowd(n: int = 50) -> Economy:
    """Build an economy of producers whose prices fall with their number; the last one to enter governs."""
    world = Economy(EconomyParameters(starting_balance=100.0))
    for agent_id in range(1, n + 1):
        world.enter(agent_id)
        world.set_price(agent_id, 1_000 - agent_id)
    world.enter(n + 1, "government")
    world.end_step()
    return world


def test_of_many_others_one_sees_the_government_and_the_cheapest() -> None:
    seen = crowd().observe(1)
    assert [other.agent_id for other in seen.facts.others] == list(range(22, 52))
    assert "Only governments and the cheapest producers are listed; there are 20 more." in seen.text


def test_the_cheapest_sees_the_next_cheapest_in_its_own_place() -> None:
    assert [other.agent_id for other in crowd().facts(50).others] == [*range(21, 50), 51]


def test_who_sells_nothing_gives_way_to_who_sells() -> None:
    world = crowd()
    world.set_price(50, 0.0)
    world.end_step()
    assert 50 not in {other.agent_id for other in world.facts(1).others}


def test_a_government_that_enters_late_is_seen_at_once() -> None:
    world = crowd()
    world.enter(60, "government")
    assert world.facts(1).others[-1].agent_id == 60


def test_one_can_pay_who_is_not_shown() -> None:
    world = crowd()
    world.allocate(50, 1, 10.0)
    assert world.enter(1).balance == 110


def test_a_refused_payment_names_some_of_many() -> None:
    with pytest.raises(ToolError, match=r"choose one of: 2, 3, .*, 31, 20 more, households\.$"):
        crowd().allocate(1, 99, 1.0)


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (15_520.0, "15,520"),
        (123_456_789.4, "123,456,789"),
        (999.96, "1,000"),
        (12.5, "12.5"),
        (0.04231, "0.04231"),
        (0.0, "0"),
        (-3.14159, "-3.142"),
        (1e300, "1e+300"),
        (NAN, "nan"),
    ],
)
def test_numbers_are_written_as_people_write_them(number: float, written: str) -> None:
    assert number_text(number) == written


def test_events_hold_plain_figures() -> None:
    world = firm(price=0.0, workers=100, starting_balance=50_000.0)
    act(world, 1, "invest", amount=15_520)
    texts = [event.text for event in world.end_step()]
    assert "In the economy, total investment went from 0 to 15,520." in texts


def test_facts_are_a_copy() -> None:
    world = firm()
    facts = world.facts(1)
    act(world, 1, "fire", count=100)
    world.end_step()
    assert (facts.own.workforce, facts.metrics["employment_rate"]) == (100, 0.0)


@pytest.mark.parametrize(
    "parameters", [{"wage": -1}, {"starting_purse": NAN}, {"capital_scale": 0}, {"spending_share": 2}]
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="must be"):
        EconomyParameters(**parameters)  # type: ignore[arg-type]


def test_a_participant_cannot_start_in_debt() -> None:
    with pytest.raises(ConfigError, match="balance"):
        Economy().enter(1, balance=-1.0)


# Whatever happens

amounts = st.one_of(st.floats(allow_nan=True), st.integers(-10, 20_000))
actions = st.one_of(
    st.tuples(st.just("set_price"), st.fixed_dictionaries({"price": amounts})),
    st.tuples(st.sampled_from(["hire", "fire"]), st.fixed_dictionaries({"count": st.integers(-10, 2_000)})),
    st.tuples(st.just("invest"), st.fixed_dictionaries({"amount": amounts})),
    st.tuples(
        st.just("allocate"),
        st.fixed_dictionaries({"target": st.sampled_from([1, 2, 3, "households", "?"]), "amount": amounts}),
    ),
    st.tuples(
        st.just("apply_policy"),
        st.fixed_dictionaries(
            {
                "policy_name": st.text(max_size=5),
                "description": st.just(""),
                "variable": st.sampled_from(["tax_rate", "minimum_wage", "mood"]),
                "value": amounts,
            }
        ),
    ),
)
turns = st.lists(st.tuples(st.integers(1, 3), actions, st.booleans()), max_size=40)


def play(world: Economy, moves: list[Any]) -> None:
    """Let three participants do anything, refused or not; some moves end a step."""
    for agent_id, (name, arguments), ends in moves:
        with suppress(ToolError):
            act(world, agent_id, name, **arguments)
        if ends:
            world.end_step()


@settings(max_examples=60, deadline=None)
@given(turns, st.booleans())
def test_money_is_conserved_and_nobody_is_in_debt(moves: list[Any], has_government: bool) -> None:
    world = Economy()
    for agent_id in (1, 2, 3):
        world.enter(agent_id, role="government" if has_government and agent_id == 3 else "producer")
    play(world, moves)
    assert world.state.money == pytest.approx(40_000)
    assert min(one.balance for one in world.state.participants.values()) >= -1e-6
    assert world.state.purse >= -1e-6


@settings(max_examples=40, deadline=None)
@given(turns)
def test_metrics_stay_finite_and_within_bounds(moves: list[Any]) -> None:
    world = Economy()
    play(world, moves)
    world.end_step()
    assert list(world.state.metrics) == list(METRICS)
    assert all(math.isfinite(value) and value >= 0 for value in world.state.metrics.values())
    assert sum(one.workforce for one in world.state.participants.values()) == world.state.employed <= 1_000
    assert all(one.stock >= -1e-6 and one.workforce >= 0 for one in world.state.participants.values())


# The original rules


def test_the_original_hires_without_paying_and_makes_money_from_nothing() -> None:
    world = Economy(rules="original")
    world.hire(1, 5_000)
    world.invest(1, -100.0)
    world.end_step()
    assert (world.enter(1).balance, world.state.metrics["employment_rate"]) == (100, 1.0)


def test_the_original_refuses_what_a_tool_box_refuses_everywhere() -> None:
    with pytest.raises(ToolError, match="count"):
        act(Economy(rules="original"), 1, "hire", count=-3)


def test_the_original_tells_of_absolute_changes_and_of_no_policy() -> None:
    world = Economy(rules="original")
    world.apply_policy(1, "p", "d")
    world.hire(1, 49)
    assert world.end_step() == []
    world.hire(1, 50)
    assert [event.facts["metric"] for event in world.end_step()] == ["employment_rate"]


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("hire", {"count": True}),
        ("set_price", {"price": True}),
        ("invest", {"amount": True}),
        ("allocate", {"target": "households", "amount": True}),
        ("apply_policy", {"policy_name": "x", "description": "y", "variable": "tax_rate", "value": True}),
    ],
)
def test_true_is_no_number(action: str, arguments: dict[str, Any]) -> None:
    world = Economy()
    with pytest.raises(ToolError, match="not true or false"):
        act(world, 1, action, **arguments)
    with pytest.raises(ToolError, match="got True"):
        getattr(world, action)(1, **arguments)


@pytest.mark.parametrize("wrong", [{"labor_force": NAN}, {"labor_force": 1.5}, {"metric_change_threshold": NAN}])
def test_counts_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Economy(EconomyParameters(**wrong))


@pytest.mark.parametrize("target", [2, "2", "[2]", " [2] Edith Park"])
def test_a_payee_is_named_as_observations_name_it(target: int | str) -> None:
    world = Economy(names={1: "Ben", 2: "Edith Park"})
    world.enter(2)
    act(world, 1, "allocate", target=target, amount=50)
    assert world.enter(2).balance == 10_050


def test_payments_to_oneself_and_to_a_name_are_refused_with_the_reason() -> None:
    world = Economy(names={1: "Ben", 2: "Kim"})
    for agent_id in (1, 2):
        world.enter(agent_id)
    with pytest.raises(ToolError, match="you cannot pay yourself"):
        act(world, 1, "allocate", target="[1]", amount=50)
    with pytest.raises(ToolError, match="nobody called 'kim' to pay; choose one of: 2, households"):
        act(world, 1, "allocate", target="Kim", amount=50)


def test_all_whom_the_text_names_can_be_paid_and_nobody_else() -> None:
    world = Economy()
    for agent_id in (1, 2, 7):
        world.enter(agent_id)
    assert world.observe(2).options == {"allocate.target": ("households", "1", "7")}


def test_a_firm_without_money_is_offered_neither_payments_nor_workers() -> None:
    world = Economy()
    world.enter(1, balance=0.0)
    assert set(ToolBox.of(object(), 1, [world]).usable) == {"set_price", "apply_policy", "do_nothing"}


def test_under_the_original_rules_everything_may_be_tried() -> None:
    world = Economy(rules="original")
    world.enter(1, balance=0.0)
    assert set(ToolBox.of(object(), 1, [world]).usable) == set(ToolBox.of(object(), 1, [world]))


def test_the_offer_bounds_what_a_participant_can_pay() -> None:
    world = Economy(EconomyParameters(labor_force=50))
    world.enter(1, balance=205.559)
    limits = world.observe(1).limits
    assert limits["hire.count"] == (1, 20)
    assert limits["allocate.amount"] == (0.01, 205.55)
