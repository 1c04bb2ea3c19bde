"""News between worlds, and letters between agents."""

import pytest

from mesa_llm import Bridge, Event
from mesa_llm.agents.mailbox import MAX_INBOX, Mailbox
from mesa_llm.errors import ConfigError
from mesa_llm.model.bridge import PAYLOADS, Delivery
from mesa_llm_models.economy.world import Economy
from mesa_llm_models.market.world import PredictionMarkets

NEWS = Event("social", "viral_post", {"author": "Mia"}, "Mia's post went viral.")


def test_news_is_read_in_the_next_step_and_only_there() -> None:
    bridge = Bridge()
    bridge.publish([NEWS])
    assert bridge.digest(["market"]) == ""
    bridge.start_step(2)
    assert bridge.digest(["market"]) == "- Mia's post went viral."
    bridge.start_step(3)
    assert bridge.digest(["market"]) == ""


def test_agents_are_not_told_what_they_see_themselves_unless_asked_for() -> None:
    for own_worlds, told in ((False, ""), (True, "- Mia's post went viral.")):
        bridge = Bridge(own_worlds=own_worlds)
        bridge.publish([NEWS])
        bridge.start_step(2)
        assert bridge.digest(["social", "market"]) == told


def test_news_can_live_longer_and_is_told_once() -> None:
    bridge = Bridge(steps_alive=2)
    assert len(bridge.publish([NEWS, NEWS])) == 1
    bridge.start_step(1)
    bridge.start_step(2)
    assert bridge.digest([]).count("viral") == 1


def test_a_digest_is_bounded_and_keeps_the_newest() -> None:
    bridge = Bridge(max_events=3, max_characters=60)
    bridge.publish(Event("market", "price_move", {"to": n}, f"Price {n} " + "x" * 15) for n in range(9))
    bridge.start_step(1)
    lines = bridge.digest([]).splitlines()
    assert lines[-1].startswith("- Price 8")
    assert sum(map(len, lines)) <= 60


def test_a_long_line_is_cut_and_pushes_no_short_one_out() -> None:
    bridge = Bridge(max_characters=100)
    bridge.publish([NEWS, Event("market", "news", {}, "x" * 5000)])
    bridge.start_step(1)
    first, second = bridge.digest([]).splitlines()
    assert first == "- Mia's post went viral."
    assert second == "- " + "x" * 47 + "…"
    assert len(bridge.deliver([], 1)) == 2


def test_with_no_steps_alive_nobody_is_told_and_hooks_still_hear() -> None:
    heard = []
    bridge = Bridge(steps_alive=0)
    bridge.connect(NEWS.kind, heard.append)
    bridge.publish([NEWS])
    bridge.start_step(1)
    assert (bridge.digest([]), heard) == ("", [NEWS])


def test_a_world_can_act_on_the_news_of_another() -> None:
    heard = []
    bridge = Bridge([Event("", "policy_change", {"tax": 0.2}, time=3)])
    bridge.connect("policy_change", heard.append)
    assert [len(bridge.start_step(step)) for step in (1, 2, 3)] == [0, 0, 1]
    assert heard[0].facts == {"tax": 0.2}
    assert bridge.digest([]) == "- policy change (schedule): tax 0.2"


def test_letters_are_delivered_once_and_inboxes_bounded() -> None:
    mailbox = Mailbox()
    for n in range(MAX_INBOX + 5):
        mailbox.send(1, [2, 2], f"letter {n}")
    assert mailbox.inbox(2) == []
    assert len(mailbox.deliver()) == MAX_INBOX + 5
    assert [message.text for message in mailbox.inbox(2)][-1] == f"letter {MAX_INBOX + 4}"
    assert len(mailbox.inbox(2)) == MAX_INBOX
    mailbox.deliver()
    assert mailbox.inbox(2) == []


def test_an_agent_hears_only_of_the_kinds_it_subscribed_to() -> None:
    bridge = Bridge()
    bridge.subscribe(1, ["price_move"])
    bridge.publish([NEWS, Event("market", "price_move", {}, "YES rose.")])
    bridge.start_step(1)
    assert bridge.digest([], agent=1) == "- YES rose."
    assert len(bridge.heard([], agent=2)) == 2
    bridge.subscribe(1, None)
    assert len(bridge.heard([], agent=1)) == 2


def test_what_does_not_matter_to_an_agent_is_not_told_to_it() -> None:
    bridge = Bridge(relevance=lambda agent, event: agent != 7)
    bridge.publish([NEWS])
    bridge.start_step(1)
    assert (bridge.digest([], agent=7), bridge.digest([], agent=8)) == ("", "- Mia's post went viral.")


def test_each_delivery_is_noted_once() -> None:
    bridge = Bridge(steps_alive=2)
    bridge.publish([NEWS])
    for step in (3, 4):
        bridge.start_step(step)
        for _ in range(2):
            bridge.deliver(["market"], 1)
        bridge.deliver(["social"], 2)
    assert bridge.deliveries == [Delivery(3, 1, NEWS), Delivery(4, 1, NEWS)]
    assert bridge.log == [(3, NEWS)]


@pytest.mark.parametrize("facts", [{}, {"metric": "employment", "previous": 0.1, "current": float("nan"), "delta": 1}])
def test_facts_that_a_kind_does_not_have_are_refused(facts) -> None:
    event = Event("economy", "metric_change", facts)
    Bridge().publish([event])
    with pytest.raises(ConfigError, match="'economy' reported a metric_change with wrong facts: "):
        Bridge(payloads=PAYLOADS).publish([event])


def test_the_worlds_of_this_package_tell_facts_of_the_right_types() -> None:
    market, economy = PredictionMarkets(["Rain?"]), Economy()
    market.buy_shares(1, "rain", "yes", 500)
    economy.apply_policy(1, "tax", "A tax.", "tax_rate", 0.2)
    economy.hire(1, 100)
    events = [*market.end_step(), *economy.end_step()]
    assert {event.kind for event in Bridge(payloads=PAYLOADS).publish(events)} >= {"price_move", "policy_change"}
