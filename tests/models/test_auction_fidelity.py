"""`fidelity="original"`: bidders are told what AucArena tells, remember what it keeps, and are asked in its order."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Literal

import pytest

from mesa_llm import ConfigError, ScriptedLLM, ToolCall
from mesa_llm.records import Reply, Request
from mesa_llm.registry import ModelEntry
from mesa_llm.testing import CHECKS
from mesa_llm_models.auction_arena.agents import BidderDialogue
from mesa_llm_models.auction_arena.model import AuctionArena, AuctionScenario
from mesa_llm_models.auction_arena.world import ORIGINAL_RULES

SYSTEM = ("ascending auction", "larger total profit", "not known to you", "true value less your bid")


class Bidding:
    """Answers for all bidders, and keeps what they are sent: the stage, the bidder, and the messages."""

    def __init__(self, bids: dict[int, list[int]], wrong_beliefs: int = 0) -> None:
        self.bids = {bidder: iter(amounts) for bidder, amounts in bids.items()}
        self.wrong_beliefs = wrong_beliefs
        self.requests: list[tuple[str, int, Request]] = []

    def reply(self, request: Request) -> Any:
        bidder = request.salt.agent
        schema: dict[str, Any] = dict(request.schema or {})
        fields: dict[str, Any] = schema.get("properties", {})
        stage = "bid" if not fields else "belief" if "total_profits" in fields else "plan"
        stage = "lessons" if "lessons" in fields else stage
        self.requests.append((stage, bidder, request))
        if stage == "bid":
            amount = next(self.bids[bidder], None)
            return ToolCall("withdraw") if amount is None else ToolCall("bid", {"amount": amount})
        return Reply(text=json.dumps({"reasoning": f"Thoughts of {bidder}.", **self.answer(stage, request)}))

    def answer(self, stage: str, request: Request) -> dict[str, Any]:
        schema: dict[str, Any] = dict(request.schema or {})
        if stage == "lessons":
            return {"lessons": ["Bid less."]}
        if stage == "plan":
            return dict.fromkeys([name for name in schema["properties"] if name != "reasoning"], 2)
        names = schema["$defs"]["Profits"]["properties"]
        budget = 7 if self.wrong_beliefs > 0 else 20_000
        self.wrong_beliefs -= 1
        zero = {"total_profits": dict.fromkeys(names, 0), "winning_bids": {name: {} for name in names}}
        return {"remaining_budget": budget, **zero}

    def of(self, stage: str, bidder: int | None = None) -> list[Request]:
        return [one for kind, who, one in self.requests if kind == stage and bidder in (None, who)]


def played(bidding: Bidding, steps: int = 1, **parameters: Any) -> AuctionArena:
    arguments: dict[str, Any] = {"n_lots": 3, "order": "listed", "corrects_beliefs": False, "rng": 1}
    arguments["fidelity"] = "original"
    n_agents = parameters.pop("n_agents", len(bidding.bids))
    model = AuctionArena(n_agents=n_agents, llm=ScriptedLLM(bidding.reply), **{**arguments, **parameters})
    for _ in range(steps):
        model.step()
    return model


def texts(request: Request, role: str) -> list[str]:
    return [message.content for message in request.messages if message.role == role]


def test_the_system_text_says_who_one_is_what_one_wants_and_what_profit_is() -> None:
    bidding = Bidding({1: [1000], 2: []})
    played(bidding)
    for _, bidder, request in bidding.requests:
        (system,) = texts(request, "system")
        assert all(words in system for words in (*SYSTEM, f"Your name is Bidder {bidder}"))
        assert not re.search(r"too high|overestimat|inflated|off\b|\$|Widget|minimum|tenth", system)


def test_plan_prompt_has_budget_lots_prices_and_estimates() -> None:
    bidding = Bidding({1: [], 2: []})
    played(bidding, budget="20000,9000")
    first, second = bidding.of("plan")[:2]
    (text,) = texts(first, "user")
    assert [text.count(words) for words in ("$20000", "1. Widget A", "$1000", "$2200", "3. Thingamajig C")] == [1] * 5
    assert text.index("Widget A") < text.index("Gadget B") < text.index("Thingamajig C")
    assert "$9000" in texts(second, "user")[0]
    assert not re.search(r"Bidder|\$2000\b|\$6000", text)


def test_opening_bid_prompt_has_plan_remaining_lots_and_price() -> None:
    bidding = Bidding({1: [1000], 2: []})
    played(bidding)
    request = bidding.of("bid", 1)[0]
    plan, text = texts(request, "user")
    assert plan == texts(bidding.of("plan", 1)[0], "user")[0]
    (answer,) = texts(request, "assistant")
    reasons, priorities = answer.split("\n")
    assert reasons == "Thoughts of 1."
    assert json.loads(priorities) == {"Widget A": 2, "Gadget B": 2, "Thingamajig C": 2}
    for words in ("3 lots are left: Widget A, Gadget B, Thingamajig C", "starting price is $1000", "$2200", "profit"):
        assert words in text
    assert not re.search(r"\$20000|\$3000|\$6600|remaining_budget|Bidder|at least", text)


@pytest.mark.parametrize("planning", ["static", "none"])
def test_bidders_without_replanning_read_beliefs_in_the_opening_round_only(planning) -> None:
    bidding = Bidding({1: [1000], 2: [1200], 3: [1100, 1400]})
    played(bidding, planning=planning)
    opening, later = bidding.of("bid", 3)[:2]
    assert '{"remaining_budget":20000,"total_profits":{"Bidder 1":0' in texts(opening, "user")[-1]
    assert "remaining_budget" not in texts(later, "user")[-1]
    assert len(bidding.of("plan")) == (3 if planning == "static" else 0)
    assert len(texts(opening, "user")) == (2 if planning == "static" else 1)


def test_later_rounds_show_last_bids_leader_and_minimum_raise() -> None:
    bidding = Bidding({1: [1000], 2: [1200], 3: [], 4: [1100, 1400]})
    played(bidding)
    request = bidding.of("bid", 4)[1]
    *_, opening, text = texts(request, "user")
    assert "lots are left" in opening
    assert "Bidder 1 bid $1000, Bidder 2 bid $1200, Bidder 3 withdrew, Bidder 4 bid $1100" in text
    assert "Round 1 on Widget A" in text
    assert "$1200, by Bidder 2" in text
    assert "at least $100." in text
    assert not re.search(r"\$2200|\$20000|Gadget|profit|lots are left|at least \$1300", text)
    assert texts(request, "assistant")[-1] == '{"action":"bid","arguments":{"amount":1100}}'


def test_all_bids_of_many_bidders_are_told() -> None:
    bidding = Bidding({n: [1000 + n, 9000] if n == 1 else [1000 + n] for n in range(1, 41)})
    played(bidding, planning="none", n_lots=1)
    text = texts(bidding.of("bid", 1)[1], "user")[-1]
    assert len(re.findall(r"Bidder \d+ bid", text)) == 40


def test_bids_are_asked_by_seat_without_the_leader_and_dropouts() -> None:
    bidding = Bidding({1: [1000], 2: [1200], 3: [], 4: [1100, 1400]})
    played(bidding)
    bidders = [bidder for stage, bidder, _ in bidding.requests if stage == "bid"]
    assert bidders == [1, 2, 3, 4, 1, 4, 2]


def test_who_is_refused_is_asked_alone_until_its_bid_is_settled() -> None:
    bidding = Bidding({1: [50_000, 10, 1200], 2: [1100], 3: [0, 1300]})
    played(bidding, max_retries=None)
    bidders = [bidder for stage, bidder, _ in bidding.requests if stage == "bid"]
    assert bidders[:6] == [1, 2, 3, 1, 1, 3]
    refused = bidding.of("bid", 1)[1:3]
    over, below = (texts(one, "user")[-1] for one in refused)
    assert over.startswith("Your bid was not valid: A bid of $50000 is more than the $20000 you have left; ")
    assert below.startswith("Your bid was not valid: A bid of $10 is below the starting price of $1000; ")
    assert "lots are left" in texts(refused[1], "user")[1]


def test_belief_prompt_has_bids_hammer_price_and_last_belief() -> None:
    bidding = Bidding({1: [1000], 2: [1200, 1500], 3: [1300]}, wrong_beliefs=3)
    played(bidding, 2)
    assert len(texts(bidding.of("belief", 1)[0], "user")) == 1
    (won,), (lost,) = (texts(bidding.of("belief", bidder)[0], "user") for bidder in (3, 1))
    for text in (won, lost):
        assert "Round 1: Bidder 1 bid $1000, Bidder 2 bid $1200, Bidder 3 bid $1300." in text
        assert "sold to Bidder 2 for $1500. Its true value is $2000" in text
        assert '"remaining_budget":20000' in text
        assert "You did not win Widget A" in text
    (text,) = texts(bidding.of("belief", 2)[0], "user")
    assert "You won Widget A" in text
    assert '"remaining_budget":7' in texts(bidding.of("belief", 1)[1], "user")[0]


def test_a_plan_is_made_anew_from_the_belief_and_the_lots_still_to_come() -> None:
    bidding = Bidding({1: [1000], 2: []}, wrong_beliefs=1)
    played(bidding, 2)
    replan = bidding.of("plan", 1)[1]
    (text,) = texts(replan, "user")
    assert '"remaining_budget":7' in text
    assert "1. Gadget B: it starts at $3000; your own estimate of its value is $6600" in text
    assert "Widget A: it" not in text
    opening = bidding.of("bid", 1)[1]
    assert texts(opening, "user")[:-1] == [text]
    assert "2 lots are left: Gadget B, Thingamajig C" in texts(opening, "user")[-1]


@pytest.mark.parametrize("planning", ["adaptive", "static", "none"])
def test_the_dialogue_of_a_lot_is_forgotten_with_it(planning) -> None:
    bidding = Bidding({1: [1000], 2: [1100, None], 3: []})  # type: ignore[list-item]
    played(bidding, 2, planning=planning)
    opening = next(one for one in bidding.of("bid", 3)[1:] if "Now Gadget B" in texts(one, "user")[-1])
    assert "Now Widget A" not in "".join(texts(opening, "user"))
    assert len(texts(opening, "assistant")) == (planning != "none")


def test_lessons_come_from_the_last_auction_and_are_numbered() -> None:
    bidding = Bidding({1: [1000] * 3, 2: []})
    played(bidding, 2, n_lots=1, n_auctions=2, learning=True)
    (text,) = texts(bidding.of("lessons", 1)[0], "user")
    assert "Bidder 1 wins it for $1,000" in text
    last = bidding.of("plan", 1)[-1]
    assert "1. Bid less." in texts(last, "system")[0]
    assert len(last.messages) == 2


def test_plans_come_first_then_for_every_lot_bids_beliefs_and_plans() -> None:
    bidding = Bidding({1: [1000, 3000, 4000], 2: []})
    played(bidding, 3)
    stages = [stage for stage, *_ in bidding.requests]
    assert stages == [*["plan"] * 2, *(["bid"] * 2 + ["belief"] * 2 + ["plan"] * 2) * 2, *["bid"] * 2, *["belief"] * 2]
    assert [bidder for _, bidder, _ in bidding.requests] == [1, 2] * 9


def test_fidelity_and_rules_and_memory_are_chosen_each_on_its_own() -> None:
    for fidelity in ("corrected", "original"):
        for rules in ("corrected", "original"):
            model = AuctionArena(n_agents=2, fidelity=fidelity, rules=rules, rng=1)
            assert (model.rules.is_lenient, model.scenario.fidelity) == (rules == "original", fidelity)
            assert isinstance(model.bidders[1].memory, BidderDialogue) == (fidelity == "original")
    assert AuctionArena(n_agents=2, rules="original", rng=1).rules == ORIGINAL_RULES
    bidding = Bidding({1: [1000], 2: [1100, 1300]})
    played(bidding, memory="none")
    assert Counter(len(request.messages) for _, _, request in bidding.requests) == {2: len(bidding.requests)}
    bidding = Bidding({1: [1000], 2: [1100, 1300]})
    played(bidding, memory="dialogue", fidelity="corrected")
    assert len(bidding.of("bid", 1)[1].messages) == 6


def test_rule_twins_bid_the_same_whatever_is_told() -> None:
    stories: set[str] = set()
    for fidelity in ("corrected", "original"):
        model = AuctionArena(scenario=AuctionScenario(fidelity=fidelity, n_lots=4, rng=5))
        while model.running:
            model.step()
        stories.add(model.story())
    assert len(stories) == 1


def test_a_fidelity_that_there_is_not_is_refused() -> None:
    wrong: Any = "published"
    with pytest.raises(ConfigError, match=r"fidelity: .*'corrected' or 'original'"):
        AuctionArena(fidelity=wrong)


class PublishedScenario(AuctionScenario):
    """The published prompts, memory and order of asking by default, in auctions with lessons between them."""

    fidelity: Literal["corrected", "original"] = "original"
    n_lots: int | None = 2
    n_auctions: int = 3
    learning: bool = True


class PublishedArena(AuctionArena):
    """The arena with these defaults."""

    scenario_class = PublishedScenario


@pytest.mark.parametrize("check", CHECKS)
def test_the_contract_of_models_is_kept(check) -> None:
    CHECKS[check](ModelEntry("published", "mesa_llm_models.auction_arena", module=__name__, qualname="PublishedArena"))
