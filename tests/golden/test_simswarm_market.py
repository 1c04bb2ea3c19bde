"""SimSwarm's market maker and market environment, as its own code computed them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from mesa_llm.errors import ToolError
from mesa_llm_models.market.world import MarketQuestion, PredictionMarkets
from mesa_llm_models.market.world.facts import floor_shares
from mesa_llm_models.market.world.makers import OUTCOMES, ConstantProductLegacy
from mesa_llm_models.market.world.state import question_slug
from tests.golden.reading import Recorded, failure_of, golden, is_same, outcome_of, recorded_part, section

CASES = golden("simswarm")


NOT_COMPARED = {
    "log.step.*": "arguments that an action does not take, which the original passes over",
    "rounds_where_log_order_is_not_execution_order": "the log is not recorded; its trades stand in order of execution",
}
"""Parts of a case that no test reads → why."""

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


@pytest.mark.parametrize("case", section(CASES, "amm_single"))
def test_one_trade_with_the_legacy_maker(case: dict[str, Any]) -> None:
    maker = ConstantProductLegacy.opened(case["price0"], case["liquidity"])
    operation, size = case["op"], case["x"]
    found = {"reserves0": [maker.yes, maker.no]}
    result = outcome_of(lambda: traded(maker, operation, size))
    if "ok" in result:
        maker, result = result["ok"][0], {"ok": result["ok"][1]}
    found |= {"result": result, "reserves": [maker.yes, maker.no]}
    found |= {f"price_{outcome}": outcome_of(lambda o=outcome: maker.price(o)) for outcome in OUTCOMES}
    wanted = recorded_part(case, found)
    assert is_same(recorded_part(found, case), wanted)


@pytest.mark.parametrize("case", section(CASES, "amm_sequences"))
def test_a_walk_of_the_legacy_maker(case: dict[str, Any]) -> None:
    maker = ConstantProductLegacy.opened(case["price0"], case["liquidity"])
    for step in case["steps"]:
        maker, moved = traded(maker, step["op"], step["x"])
        found = {"result": moved, "reserves": [maker.yes, maker.no], "price_yes": maker.price("yes")}
        assert is_same(recorded_part(found, step), recorded_part(step, found))


@pytest.mark.parametrize("case", section(CASES, "floor_shares"))
def test_holdings_are_rounded_down(case: dict[str, Any]) -> None:
    assert is_same(outcome_of(lambda: floor_shares(case["x"])), case["r"])


@pytest.mark.parametrize("case", section(CASES, "slug"))
def test_ids_are_made_of_questions(case: dict[str, Any]) -> None:
    assert question_slug(case["q"]) == case["r"]


@pytest.mark.parametrize("case", section(CASES, "slug_collision"))
def test_equal_questions_get_numbered_ids(case: dict[str, Any]) -> None:
    assert list(PredictionMarkets(case["questions"], rules="original").ledger.markets) == case["ids"]


REL = 1e-12


def executed(maker: ConstantProductLegacy, trades: list[list[Any]]) -> tuple[ConstantProductLegacy, list[list[Any]]]:
    """Execute the trades of one round, as listed or, where a log lists them in another order, as they replay.

    Returns:
        The maker after the round, and the trades in the order of execution.

    Raises:
        AssertionError: If no order replays.
    """
    if not trades:
        return maker, []
    for place, (_, operation, size, moved, price) in enumerate(trades):
        after, found = traded(maker, operation, size)
        prices = [after.price(outcome) for outcome in OUTCOMES]
        if found == pytest.approx(moved, rel=REL) and any(one == pytest.approx(price, rel=REL) for one in prices):
            try:
                end, rest = executed(after, trades[:place] + trades[place + 1 :])
            except AssertionError:
                continue
            return end, [trades[place], *rest]
    raise AssertionError(f"no order of these trades replays: {trades}")


def check_trades(case: dict[str, Any]) -> None:
    maker = ConstantProductLegacy.opened(case["initial_price_yes"], case["liquidity"])
    rounds: dict[int, list[list[Any]]] = {}
    for trade in case["trades"]:
        rounds.setdefault(trade[0], []).append(trade)
    kinds: Counter[str] = Counter()
    for number in sorted(rounds):
        before = maker
        maker, order = executed(maker, rounds[number])
        kinds.update(price_kinds(before, order))
    counts = {"n_recorded": len(case["trades"]), "rounds_with_trades": len(rounds), "recorded_price_kind": dict(kinds)}
    if case.get("complete"):
        assert maker.price("yes") == pytest.approx(case.get("final_price_yes", maker.price("yes")), rel=REL)
        assert recorded_part(counts, case) == recorded_part(case, counts)
    else:
        assert len(case["trades"]) <= case.get("n_recorded", math.inf)


def price_kinds(maker: ConstantProductLegacy, trades: list[list[Any]]) -> Iterator[str]:
    """Say of each trade which price stands beside it: that of YES, or that of NO, which is then its own outcome."""
    for _, operation, size, _, price in trades:
        maker, _ = traded(maker, operation, size)
        is_yes = maker.price("yes") == pytest.approx(price, rel=REL)
        assert is_yes or operation.endswith("_no")
        yield "yes_price" if is_yes else "own_outcome_price"


@pytest.mark.parametrize(
    "case", section(CASES, "demo_trades"), ids=lambda case: f"{case.get('job')}-{case.get('market')}"
)
def test_the_recorded_trades_replay(case: dict[str, Any]) -> None:
    check_trades(case)


@pytest.mark.parametrize("number", range(len(section(CASES, "demo_trades"))))
def test_trades_that_a_log_lists_in_another_order_replay(number: int) -> None:
    case = deepcopy(CASES["demo_trades"][number])
    case["trades"] = sorted(case["trades"], key=lambda trade: (trade[0], trade[1], -trade[3]))
    check_trades(case)


PARAMETERS = {
    "initial_balance": "cash",
    "initial_liquidity": "liquidity",
    "price_move_event_threshold": "price_move_threshold",
}
"""The environment's parameters besides its markets, there and here."""


class Replay:
    """Drives our world through one script of the original environment."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.numbers = {agent: number for number, agent in enumerate(case.get("agents", ()), start=1)}
        config = dict(case.get("config", {}))
        questions = [MarketQuestion(q["question"], q.get("initial_price_yes", 0.5)) for q in config.pop("markets", [])]
        if unknown := config.keys() - PARAMETERS.keys():
            raise TypeError(f"the original's environment has no parameter {sorted(unknown)}")
        options: Any = {PARAMETERS[key]: value for key, value in config.items()}
        self.world = PredictionMarkets(questions, rules="original", **options)

    def number(self, agent: str) -> int:
        return self.numbers.setdefault(agent, len(self.numbers) + 1)

    def seen(self, agent: str) -> str:
        """Write what the original shows, from our facts."""
        facts = self.world.observe(self.number(agent)).facts
        return "\n".join(
            f"Market [{m.market_id}]: {m.question} | "
            f"YES: {m.price_yes * 100:.0f}% | NO: {m.price_no * 100:.0f}%\n"
            f"  Your position in [{m.market_id}]: YES={m.yes_shares} NO={m.no_shares}"
            for m in facts.markets
        )

    def acted(self, agent: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run an action with the original's defaults for what is missing, and answer as the original does."""
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
            held = self.held(agent, *order[:2]) if "hold" in str(refusal) else {}
            return {"success": False, "data": {"error": str(refusal), **held}}
        return {"success": True, "data": self.last_trade()}

    def held(self, agent: str, market_id: Any, outcome: Any) -> dict[str, Any]:
        """Return what an agent holds, as a refusal to sell says it."""
        shares: dict[str, Any] = self.world.ledger.portfolio(self.number(agent)).shares
        return {"held": shares.get(market_id, {}).get(outcome.lower(), 0.0)}

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
        owned = {agent: ledger.portfolio(self.number(agent)) for agent in wanted.get("portfolios", ())}
        return {
            "markets": {key: reserves(market.maker) for key, market in ledger.markets.items()},
            "portfolios": {agent: {"balance": p.cash, "shares": p.shares} for agent, p in owned.items()},
            "n_trades": len(ledger.trades),
            "n_comments": sum(map(len, ledger.comments.values())),
        }


def reserves(maker: Any) -> list[float]:
    return [maker.yes, maker.no]


def check_entry(replay: Replay, entry: dict[str, Any]) -> None:
    step, wanted = entry["step"], entry.get("r")
    if step[0] == "tick":
        found = outcome_of(replay.ticked)
        if wanted is None or (wanted == {"ok": None} and "events" not in entry):
            assert "ok" in found
            return
        assert is_same(found, {"ok": entry["events"]} if wanted == {"ok": None} else wanted)
        return
    if step[0] == "obs":
        assert wanted is None or outcome_of(lambda: replay.seen(step[1])) == wanted
        return
    if step[2] is None and wanted == {"raises": "AttributeError"}:
        return  # some versions of the original look an argument up in nothing
    found = outcome_of(lambda: replay.acted(step[0], step[1], step[2] or {}))
    if wanted is None:
        return
    if "ok" in wanted and "ok" in found and "error" in wanted["ok"]["data"]:
        found["ok"]["data"]["error"] = in_their_words(found["ok"]["data"]["error"], wanted["ok"]["data"]["error"])
    assert is_same(found, wanted), (step, found)


def in_their_words(ours: str, theirs: str) -> str:
    """Return the original's error if ours says the same, else ours."""
    kind = next((kind for kind in REFUSALS if theirs.startswith(kind)), theirs)
    return theirs if REFUSALS.get(kind, kind) in ours else ours


@pytest.mark.parametrize("case", section(CASES, "market_env"))
def test_the_original_environment_replays(case: dict[str, Any]) -> None:
    opened = outcome_of(lambda: Replay(case))
    if "raises" in opened:
        case.get("config", Recorded({})).read_all()
        assert opened["raises"] == failure_of(case)
        return
    for entry in case["log"]:
        check_entry(opened["ok"], entry)
    if "final" in case:
        check_end(opened["ok"], case["final"])


def check_end(replay: Replay, wanted: dict[str, Any]) -> None:
    found = recorded_part(replay.final(wanted), wanted)
    for agent, portfolio in wanted.get("portfolios", {}).items():
        found["portfolios"][agent] = recorded_part(found["portfolios"][agent], portfolio)
    assert is_same(found, wanted)


def test_a_script_of_a_parameter_of_ours_does_not_start() -> None:
    assert outcome_of(lambda: Replay({"agents": [], "config": {"fee": 0.1}})) == {"raises": "TypeError"}


@pytest.mark.parametrize("name", ["buy_shares", "sell_shares"])
def test_an_action_without_arguments_is_one_with_none_of_them(name: str) -> None:
    replay = Replay({"config": {"markets": [{"question": "Rain?"}]}})
    wanted = {"ok": {"success": False, "data": {"error": "invalid outcome: None"}}}
    for arguments in (None, {}):
        check_entry(replay, {"step": ["a", name, arguments], "r": wanted})


def test_the_corrected_rules_refuse_what_poisoned_the_original() -> None:
    world = PredictionMarkets(["Rain?"])
    for amount in (float("nan"), float("inf"), -5.0, True):
        with pytest.raises(ToolError, match="amount must be"):
            world.buy_shares(1, "rain", "yes", amount)
    assert world.ledger.trades == []
