"""SimSwarm's market maker and market environment, as its own code computed them."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm.errors import ToolError
from mesa_llm.worlds.market import PredictionMarkets, Question
from mesa_llm.worlds.market.accounts import question_slug
from mesa_llm.worlds.market.makers import OUTCOMES, ConstantProductLegacy
from mesa_llm.worlds.market.views import floor_shares
from tests.golden.reading import golden, is_same, outcome_of

CASES = golden("simswarm")

REFUSALS = {
    "invalid outcome": "no answer",
    "unknown market": "no market",
    "amount must be positive": "amount must be positive",
    "shares must be positive": "shares must be positive",
    "insufficient balance": "of cash you have",
    "insufficient shares": "you hold",
}
"""What an error of the original says → what ours says."""


def traded(maker: ConstantProductLegacy, operation: str, size: Any) -> tuple[ConstantProductLegacy, float]:
    side, outcome = operation.split("_")
    return getattr(maker, side)(outcome, size)


@pytest.mark.parametrize("case", CASES["amm_single"])
def test_one_trade_with_the_legacy_maker(case: dict[str, Any]) -> None:
    maker = ConstantProductLegacy.opened(case["price0"], case["liquidity"])
    assert is_same([maker.yes, maker.no], case["reserves0"])
    result = outcome_of(lambda: traded(maker, case["op"], case["x"]))
    if "ok" in result:
        maker, result = result["ok"][0], {"ok": result["ok"][1]}
    found = [result, [maker.yes, maker.no], *(outcome_of(lambda o=o: maker.price(o)) for o in OUTCOMES)]
    assert is_same(found, [case[key] for key in ("result", "reserves", "price_yes", "price_no")])


@pytest.mark.parametrize("case", CASES["amm_sequences"])
def test_a_walk_of_the_legacy_maker(case: dict[str, Any]) -> None:
    maker = ConstantProductLegacy.opened(case["price0"], case["liquidity"])
    for step in case["steps"]:
        maker, moved = traded(maker, step["op"], step["x"])
        assert is_same([moved, [maker.yes, maker.no]], [step["result"], step["reserves"]])
        assert is_same(maker.price("yes"), step["price_yes"])


@pytest.mark.parametrize("case", CASES["floor_shares"])
def test_holdings_are_rounded_down(case: dict[str, Any]) -> None:
    assert is_same(outcome_of(lambda: floor_shares(case["x"])), case["r"])


@pytest.mark.parametrize("case", CASES["slug"])
def test_ids_are_made_of_questions(case: dict[str, Any]) -> None:
    assert question_slug(case["q"]) == case["r"]


@pytest.mark.parametrize("case", CASES["slug_collision"])
def test_equal_questions_get_numbered_ids(case: dict[str, Any]) -> None:
    assert list(PredictionMarkets(case["questions"], rules="original").ledger.markets) == case["ids"]


@pytest.mark.parametrize("case", CASES["demo_trades"], ids=lambda case: f"{case['job']}-{case['market']}")
def test_the_recorded_trades_replay(case: dict[str, Any]) -> None:
    maker = ConstantProductLegacy.opened(case["initial_price_yes"], case["liquidity"])
    for _, operation, size, moved, recorded_price in case["trades"]:
        maker, found = traded(maker, operation, size)
        assert found == pytest.approx(moved, rel=1e-12)
        assert any(maker.price(outcome) == pytest.approx(recorded_price, rel=1e-12) for outcome in OUTCOMES)
    assert maker.price("yes") == pytest.approx(case["final_price_yes"], rel=1e-12)


class Replay:
    """Drives our world through one script of the original environment."""

    def __init__(self, case: dict[str, Any]) -> None:
        config = dict(case["config"])
        questions = [Question(q["question"], q.get("initial_price_yes", 0.5)) for q in config.pop("markets", [])]
        names = {"initial_balance": "cash", "initial_liquidity": "liquidity"}
        names["price_move_event_threshold"] = "price_move_threshold"
        options: Any = {names.get(key, key): value for key, value in config.items()}
        self.world = PredictionMarkets(questions, rules="original", **options)
        self.numbers = {agent: number for number, agent in enumerate(case["agents"], start=1)}

    def number(self, agent: str) -> int:
        return self.numbers.setdefault(agent, len(self.numbers) + 1)

    def seen(self, agent: str) -> str:
        """Write what the original shows, from our facts."""
        facts = self.world.observe(self.number(agent)).facts
        return "\n".join(
            f"Market [{m.market_id}]: {m.question} | "
            f"YES: {m.price_yes * 100:.0f}% | NO: {m.price_no * 100:.0f}%\n"
            f"  Your position in [{m.market_id}]: YES={m.yes_held} NO={m.no_held}"
            for m in facts.markets
        )

    def acted(self, agent: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run an action with the original's defaults for what is missing, and answer as the original does.

        Raises:
            AttributeError: If there are no arguments, and the action has some.
        """
        size = {"buy_shares": "amount", "sell_shares": "shares"}.get(name)
        if name == "browse_markets":
            return {"success": True, "data": {"markets": self.listed()}}
        if name == "do_nothing":
            return {"success": True, "data": {}}
        if name == "comment_on_market":
            said: Any = {"market_id": arguments.get("market_id"), "text": arguments.get("text", "")}
            self.world.comment_on_market(self.number(agent), **said)
            return {"success": True, "data": {"action": "comment", **said}}
        if size is None:
            return {"success": False, "data": {"error": f"Unknown action: {name}"}}
        order = [arguments.get("market_id"), arguments.get("outcome"), arguments.get(size, 0.0)]
        try:
            getattr(self.world, name)(self.number(agent), *order)
        except ToolError as refusal:
            return {"success": False, "data": {"error": str(refusal)}}
        return {"success": True, "data": self.last_trade()}

    def last_trade(self) -> dict[str, Any]:
        trade = self.world.ledger.trades[-1]
        dollars = "cost" if trade.side == "buy" else "proceeds"
        told = {key: getattr(trade, key) for key in ("side", "market_id", "outcome", "shares")}
        return {**told, dollars: trade.dollars, "price": trade.price_yes, "round": trade.step}

    def listed(self) -> list[dict[str, Any]]:
        keys = ("market_id", "question", "price_yes", "price_no")
        return [{key: getattr(view, key) for key in keys} for view in self.world.facts(0).markets]

    def ticked(self) -> list[dict[str, Any]]:
        return [
            {
                "type": event.kind,
                "source": event.source,
                "round": event.time,
                "data": {key: event.facts[key] for key in ("market_id", "from", "to")},
            }
            for event in self.world.end_step()
        ]

    def final(self, wanted: dict[str, Any]) -> dict[str, Any]:
        ledger = self.world.ledger
        owned = {agent: ledger.portfolio(self.number(agent)) for agent in wanted["portfolios"]}
        return {
            "markets": {key: reserves(market.maker) for key, market in ledger.markets.items()},
            "portfolios": {agent: {"balance": p.cash, "shares": p.shares} for agent, p in owned.items()},
            "n_trades": len(ledger.trades),
            "n_comments": sum(map(len, ledger.comments.values())),
        }


def reserves(maker: Any) -> list[float]:
    return [maker.yes, maker.no]


def check_entry(replay: Replay, entry: dict[str, Any]) -> None:
    step, wanted = entry["step"], entry["r"]
    if step[0] == "tick":
        told = outcome_of(replay.ticked)
        assert is_same(told, {"ok": entry["events"]} if "ok" in wanted else wanted)
        return
    if step[0] == "obs":
        assert outcome_of(lambda: replay.seen(step[1])) == wanted
        return
    found = outcome_of(lambda: replay.acted(*step))
    if "ok" in wanted and "error" in wanted["ok"]["data"] and not wanted["ok"]["data"]["error"].startswith("Unk"):
        kind = next(kind for kind in REFUSALS if wanted["ok"]["data"]["error"].startswith(kind))
        assert REFUSALS[kind] in found["ok"]["data"]["error"]
    else:
        assert is_same(found, wanted), (step, found)


@pytest.mark.parametrize("case", CASES["market_env"])
def test_the_original_environment_replays(case: dict[str, Any]) -> None:
    opened = outcome_of(lambda: Replay(case))
    if "raises" in opened:
        assert opened == {"raises": case.get("raises", case.get("init", {}).get("raises"))}
        return
    for entry in case["log"]:
        check_entry(opened["ok"], entry)
    assert is_same(opened["ok"].final(case["final"]), case["final"])


@pytest.mark.parametrize("name", ["buy_shares", "sell_shares", "comment_on_market"])
def test_an_action_without_arguments_ends_the_original(name: str) -> None:
    replay = Replay({"config": {"markets": [{"question": "Rain?"}]}, "agents": ["a"]})
    check_entry(replay, {"step": ["a", name, None], "r": {"raises": "AttributeError"}})


def test_the_corrected_rules_refuse_what_poisoned_the_original() -> None:
    world = PredictionMarkets(["Rain?"])
    for amount in (float("nan"), float("inf"), -5.0, True):
        with pytest.raises(ToolError, match="amount must be"):
            world.buy_shares(1, "rain", "yes", amount)
    assert world.ledger.trades == []
