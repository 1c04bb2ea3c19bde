"""Whole runs of SimSwarm's engine with scripted replies: what agents do and remember, what markets trade, what agents
believe in the end, and what the bridge tells.

The engine itself is not rebuilt: our agents decide together and act in order, and their prompts are our own. What its
agents did in its environments is done again on our worlds, in the order of its log, or in another one in which it can
have been done, since a log may list the calls of a round as they were answered.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from mesa_llm import Bridge, Event
from mesa_llm.memory import MemoryEntry, WindowMemory
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm_models.economy.world import Economy
from mesa_llm_models.market.world import PredictionMarkets
from mesa_llm_models.market.world.makers import ConstantProductLegacy, Outcome
from mesa_llm_models.social.beliefs import Beliefs, apply_posts
from mesa_llm_models.social.world import SocialWorld
from tests.golden.beliefs import REL, posts_of, written
from tests.golden.reading import Recorded, assert_close, golden, is_same
from tests.golden.test_simswarm_economy import Script
from tests.golden.test_simswarm_market import Replay as Markets
from tests.golden.test_simswarm_market import in_their_words
from tests.golden.test_simswarm_social import Replay as Social

RUNS: dict[str, Recorded] = golden("simswarm").get("engine_runs", Recorded({}))


NOT_COMPARED = {
    "raises": "one wrong reply ends the original's run; here it is a failure of one decision",
    "chat_log.args.*": "arguments that an action does not take",
    "chat_log.result.*": "of social and economic refusals the sense, of the rest the ids and the numbers",
}
"""Parts of a run that no test reads → why."""

Log = list[dict[str, Any]]
"""Rows of a run's log."""

WORLDS: dict[str, tuple[str, ...]] = {
    "social": SocialWorld("simswarm").settings.actions,
    "market": tuple(ToolBox.of(object(), 1, [PredictionMarkets(["Rain?"])])),
    "economic": tuple(ToolBox.of(object(), 1, [Economy()])),
}
"""The original's name of a world → the tools of ours."""

MEMORY_CALLS = 20
"""Number of calls of tools that the original's agents remember."""

POOR = "insufficient balance"
"""How a refusal begins that depends on what an agent had at first, which is not recorded."""

runs = pytest.mark.parametrize("run", RUNS.values(), ids=list(RUNS))


def rounds_of(log: Log) -> Iterator[tuple[int, Log]]:
    """Iterate over the rounds of a log, each with its rows."""
    rounds: dict[int, Log] = defaultdict(list)
    for record in log:
        rounds[record["round"]].append(record)
    for step in sorted(rounds):
        yield step, rounds[step]


def in_order(records: Log) -> Log:
    """Return the rows of a round as they can have been done on the social world, in whatever order they are listed.

    First what failed for want of a post, then new posts by their numbers, then what was done to them, and last what
    failed because it had been done.
    """

    def place(record: dict[str, Any]) -> tuple[int, int]:
        result = record.get("result") or {}
        if not record["success"]:
            return (0 if str(result.get("error")).startswith("Post not found") else 3, 0)
        number = re.fullmatch(r"p(\d+)", str(result.get("post_id")))
        is_new = number is not None and record["type"] in ("create_post", "reply")
        return (1, int(number[1])) if number and is_new else (2, 0)

    return sorted(records, key=place)


# -- beliefs


def liked_by(log: Log, step: int) -> dict[str, tuple[int, int]]:
    """Count likes and dislikes of every post up to the end of a step."""
    counts: dict[str, tuple[int, int]] = {}
    for record in log:
        if record["type"] == "vote" and record["success"] and record["round"] <= step:
            likes, dislikes = counts.get(record["args"]["post_id"], (0, 0))
            is_like = record["args"].get("value", 1) > 0
            counts[record["args"]["post_id"]] = (likes + is_like, dislikes + (not is_like))
    return counts


def beliefs_after(run: dict[str, Any]) -> dict[int, dict[str, Beliefs]]:
    """Return what every agent believes after each round, and before the first as round 0."""
    log = run["chat_log"]
    wanted = run.get("belief", {})
    numbers = {agent: number for number, agent in enumerate(dict.fromkeys([*wanted, *agents_of(log)]), 1)}
    believers = {number: Beliefs() for number in numbers.values()}
    topic = next((topic for one in wanted.values() for topic in one.get("positions", ())), "goal")
    after = {0: believers}
    for step, records in rounds_of(log):
        posts = posts_of(in_order(records), liked_by(log, step), numbers)
        believers = apply_posts(believers, posts, topic, rules="original")
        after[step] = believers
    return {step: {agent: one[numbers[agent]] for agent in numbers} for step, one in after.items()}


def agents_of(log: Log) -> list[str]:
    return list(dict.fromkeys(record["agent"] for record in log))


def check_beliefs(run: dict[str, Any]) -> None:
    wanted = run.get("belief", {})
    last = list(beliefs_after(run).values())[-1]
    for agent, theirs in wanted.items():
        ours = written(last[agent])
        assert_close({name: ours[name] for name in theirs}, theirs, REL)


# -- deeds


def check_deeds(log: Log) -> None:
    """Do what the log says on the social and the economic world, round by round, and check what came of it."""
    social = Social({"config": {}, "log": [{"step": [one["agent"]]} for one in log]})
    economic = Script({"config": {}})
    for _, records in rounds_of(log):
        for record in in_order([one for one in records if one["platform"] == "social"]):
            check_social(social, record)
        economic = played(economic, [one for one in records if one["platform"] == "economic"])
        social.events()
        economic.world.end_step()


def check_social(social: Social, record: dict[str, Any]) -> None:
    if record["type"] == "do_nothing":
        assert record["success"]
        return
    found = social.act(record["agent"], record["type"], record["args"])
    assert found["ok"] == record["success"]
    if found.get("new") and record.get("result"):
        assert found["new"] == record["result"].get("post_id", found["new"])


def played(economic: Script, records: Log) -> Script:
    """Return the economy after the calls of a round, in the first order in which they end as recorded.

    Raises:
        AssertionError: If there is none.
    """
    if not records:
        return economic
    for place, record in enumerate(records):
        after = deepcopy(economic)
        name, result = record["type"], record.get("result") or {}
        found = after.act(record["agent"], name, record["args"])
        is_right = found["success"] == record["success"]
        if is_right and found["success"] and name != "do_nothing":
            is_right = is_same({key: found["data"][key] for key in result}, result)
        if is_right:
            try:
                return played(after, records[:place] + records[place + 1 :])
            except AssertionError:
                continue
    raise AssertionError(f"no order of these calls ends as recorded: {records}")


# -- markets


def check_markets(log: Log) -> None:
    """Trade as the log says, from the parameters of the environment or, if others are recorded, from these."""
    log = [one for one in log if one["platform"] == "market" and one["type"] != "do_nothing"]
    if not log:
        return
    faults: list[AssertionError] = []
    for config in configs_of(log):
        try:
            trade(Markets({"config": config}), log)
        except AssertionError as fault:
            faults.append(fault)
        else:
            return
    raise faults[0]


def configs_of(log: Log) -> Iterator[dict[str, Any]]:
    """Iterate over what the parameters of the markets can be: the defaults, and what the first trades tell."""
    markets = questions_of(log)
    depths = {depth for record in log if record["success"] for depth in depth_of(record, log)}
    for liquidity, cash in [(None, None), (None, 1e12), *((depth, 1e12) for depth in sorted(depths))]:
        config: dict[str, Any] = {"markets": list(markets.values())}
        config |= {} if liquidity is None else {"initial_liquidity": liquidity}
        yield config | ({} if cash is None else {"initial_balance": cash})


def questions_of(log: Log) -> dict[str, dict[str, Any]]:
    """Return the markets that a log names or lists, each with its question and, where a trade tells it, first price."""
    found: dict[str, dict[str, Any]] = {}
    for record in log:
        for market in (record.get("result") or {}).get("markets", ()):
            found.setdefault(market["market_id"], {"question": market["question"]})
    for record in log:
        if record["success"] and (name := record["args"].get("market_id")) is not None:
            market = found.setdefault(name, {"question": name})
            for reserves in first_reserves(record, log):
                market.setdefault("initial_price_yes", round(reserves.price("yes"), 9))
    return found


def depth_of(record: dict[str, Any], log: Log) -> list[float]:
    """Return the liquidity before a trade, if it is the first of its market."""
    return [round((reserves.yes + reserves.no) / 2, 6) for reserves in first_reserves(record, log)]


def first_reserves(record: dict[str, Any], log: Log) -> list[ConstantProductLegacy]:
    """Return what the maker had before the first purchase in a market; nothing for other calls."""
    first = next(
        (one for one in log if one["success"] and one["args"].get("market_id") == record["args"].get("market_id")), None
    )
    result = record.get("result") or {}
    if record is not first or not {"cost", "shares", "price", "outcome"} <= set(result):
        return []
    cost, shares, price = (float(result[key]) for key in ("cost", "shares", "price"))
    odds = (1 - price) / price if result["outcome"] == "yes" else price / (1 - price)
    other = shares * cost / (shares - cost * odds)  # the other side's reserve after the trade
    own = other * odds + shares
    pair = (own, other - cost) if result["outcome"] == "yes" else (other - cost, own)
    return [ConstantProductLegacy(*pair)]


def trade(markets: Markets, log: Log) -> None:
    """Make the calls of a log, and compare what came of each."""
    step = 1
    for number, records in rounds_of(log):
        for _ in range(number - step):
            markets.ticked()
        step = number
        markets = traded(markets, records)


def traded(markets: Markets, records: Log) -> Markets:
    """Return the markets after the calls of a round, in the first order in which they end as recorded.

    Raises:
        AssertionError: If there is none.
    """
    if not records:
        return markets
    for place, record in enumerate(records):
        after = deepcopy(markets)
        if is_as_recorded(after, record):
            try:
                return traded(after, records[:place] + records[place + 1 :])
            except AssertionError:
                continue
    raise AssertionError(f"no order of these calls ends as recorded: {records}")


def is_as_recorded(markets: Markets, record: dict[str, Any]) -> bool:
    result = record.get("result") or {}
    error = str(result.get("error", ""))
    if not record["success"] and error.startswith(POOR):
        return True
    found = markets.acted(record["agent"], record["type"], dict(record["args"]))
    data = {key: value for key, value in found["data"].items() if key in result}
    if "error" in data:
        data["error"] = in_their_words(data["error"], error)
    return found["success"] == record["success"] and is_close(data, result)


def is_close(found: Any, wanted: Any) -> bool:
    """Compare results, whose round is the engine's."""
    try:
        assert_close({**found, "round": wanted.get("round")}, {**wanted, "round": wanted.get("round")}, REL)
    except AssertionError:
        return False
    return True


# -- memory and requests


def calls_of(run: dict[str, Any], agent: str) -> Log:
    """Return the calls of an agent, without rounds in which it called nothing, which the log writes as passing."""
    lines = run.get("memory", {}).get(agent, [])
    passes = {line for line in lines if line.endswith(" do_nothing({})")}
    own = [record for record in run["chat_log"] if record["agent"] == agent]
    first = int(lines[0].split()[1].rstrip(":")) if len(lines) >= MEMORY_CALLS else 0
    return [
        one
        for one in own
        if one["type"] != "do_nothing" or one["args"] or one["round"] < first or line_of(one) in passes
    ]


def line_of(record: dict[str, Any]) -> str:
    return f"Round {record['round']}: {record['type']}({dict(record['args'])})"


def memories_before(run: dict[str, Any]) -> dict[int, dict[str, WindowMemory]]:
    """Return what every agent remembers before each round and, under the next number, after the last one."""
    last = max((record["round"] for record in run["chat_log"]), default=0)
    memories = {agent: WindowMemory(MEMORY_CALLS, 10**6) for agent in agents_of(run["chat_log"])}
    before: dict[int, dict[str, WindowMemory]] = {}
    for step in range(1, last + 1):
        before[step] = deepcopy(memories)
        for agent, memory in memories.items():
            for record in calls_of(run, agent):
                if record["round"] == step:
                    memory.add(MemoryEntry(step, "decision", line_of(record)))
    return before | {last + 1: memories}


def check_memory(run: dict[str, Any]) -> None:
    """Compare what a window of as many calls holds in the end; within a round calls may be in another order."""
    *_, memories = memories_before(run).values()
    for agent, lines in run.get("memory", {}).items():
        found = [entry.text for entry in memories[agent].entries]
        assert len(found) <= MEMORY_CALLS
        assert [line.split(":")[0] for line in found] == [line.split(":")[0] for line in lines]
        assert sorted(map(sorted_arguments, found)) == sorted(map(sorted_arguments, lines))


def sorted_arguments(line: str) -> str:
    """Return a line of a memory with the arguments of its call in alphabetical order."""
    call, _, arguments = line.partition("(")
    try:
        return f"{call}({sorted(ast.literal_eval(arguments.removesuffix(')')).items())})"
    except (ValueError, SyntaxError):
        return line


def check_requests(run: dict[str, Any]) -> None:
    """Check that a request has a message of beliefs, and one of memories, once an agent has some."""
    beliefs, memories = beliefs_after(run), memories_before(run)
    agents = {agent.upper(): agent for agent in agents_of(run["chat_log"])}
    for call in run["llm_calls"]:
        step, agent = call["call"], agents.get(call["agent"], "")
        if agent in run.get("memory", {}) and "n_messages" in call:
            believes = bool(beliefs[step - 1][agent].positions)
            assert call["n_messages"] - 2 == believes + bool(memories[step][agent].entries)


def check_forms(calls: Log) -> None:
    """Check that a request ends with the user's message, and that its tools are those of our worlds."""
    for call in calls:
        if {"roles", "n_messages"} <= set(call):
            assert call["roles"] == ["system"] * (call["n_messages"] - 1) + ["user"]
        worlds = [tools for name, tools in WORLDS.items() if f"[{name}]" in call["env_headers"]]
        if "tool_names" in call:
            assert Counter(call["tool_names"]) == Counter(name for tools in worlds for name in tools)


def check_snapshots(run: dict[str, Any]) -> None:
    """Check how many agents there are, and how many calls every round has."""
    log = run["chat_log"]
    counts = Counter(record["round"] for record in log)
    for step, n_agents, metrics in run.get("snapshots", ()):
        assert n_agents == len(agents_of(log))
        assert metrics.get("actions", counts[step]) == counts[step]


# -- the bridge


def check_bridge(calls: Log) -> None:
    """Check that an agent hears of what is scheduled for the step, and of nothing that its own worlds tell."""
    scheduled = {call["call"] for call in calls if call["user_has_bridge"]}
    bridge = Bridge([Event("", "shock", time=step) for step in scheduled])
    for step in sorted({call["call"] for call in calls}):
        bridge.start_step(step)
        for call in calls:
            worlds = [world for world in WORLDS if f"[{world}]" in call["env_headers"]]
            assert call["agent"]
            if call["call"] == step:
                assert bool(bridge.digest(worlds)) == call["user_has_bridge"]
        in_all = [w for w in WORLDS if all(f"[{w}]" in call["env_headers"] for call in calls)]
        bridge.publish([Event(world, "news", time=step) for world in in_all])


@runs
def test_deeds_trades_memories_beliefs_and_news_are_those_of_the_run(run: dict[str, Any]) -> None:
    if "llm_calls" in run:
        check_bridge(run["llm_calls"])
        check_forms(run["llm_calls"])
    if "chat_log" in run:
        check_deeds(run["chat_log"])
        check_markets(run["chat_log"])
        check_beliefs(run)
        check_memory(run)
        check_snapshots(run)
    if {"llm_calls", "chat_log"} <= set(run):
        check_requests(run)


def test_markets_of_other_parameters_are_found_by_their_first_trade() -> None:
    maker = ConstantProductLegacy.opened(0.3, 80)
    log: Log = []
    trades: list[tuple[Outcome, float]] = [("no", 40.0), ("yes", 2_000.0)]
    for number, (outcome, dollars) in enumerate(trades, 1):
        maker, shares = maker.buy(outcome, dollars)
        args = {"market_id": "rain", "outcome": outcome, "amount": dollars}
        result = {"side": "buy", "shares": shares, "cost": dollars, "price": maker.price("yes"), "round": number}
        record = {"round": number, "agent": "a", "type": "buy_shares", "platform": "market", "success": True}
        log.append({**record, "args": args, "result": {**result, "market_id": "rain", "outcome": outcome}})
    check_markets(log)
    log[1]["result"]["shares"] += 1
    with pytest.raises(AssertionError, match="no order of these calls"):
        check_markets(log)
