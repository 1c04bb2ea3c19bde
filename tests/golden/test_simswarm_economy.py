"""SimSwarm's economic environment, script by script, as its own code computed it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from mesa_llm.errors import ToolError
from mesa_llm.records import Event
from mesa_llm.worlds.economy import Economy, EconomyParameters
from tests.golden.reading import assert_close, golden, outcome_of

CASES: list[dict[str, Any]] = golden("simswarm")["economic_env"]

REL = 1e-12

DEFAULTS: dict[str, dict[str, Any]] = {
    "set_price": {"price": 0.0},
    "hire": {"count": 0},
    "fire": {"count": 0},
    "invest": {"amount": 0.0},
    "allocate": {"target": "", "amount": 0.0},
    "apply_policy": {"policy_name": "", "description": ""},
    "do_nothing": {},
}
"""The environment's actions, and what it takes for arguments that are missing."""

scripts = pytest.mark.parametrize("case", CASES)


class Script:
    """Plays a script on our world, with a number for each of the agents it names."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.world = Economy(EconomyParameters(**case["config"]), rules="original")
        self.numbers: dict[str, int] = {}
        for agent, (role, balance) in case.get("pre", {}).items():
            self.world.enter(self.number(agent), role, balance)

    def number(self, agent: str) -> int:
        return self.numbers.setdefault(agent, len(self.numbers) + 1)

    def act(self, agent: str, action: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run one action, and give what it did as the environment reports it."""
        own = self.world.enter(self.number(agent))
        method: Callable[..., str] | None = getattr(self.world, action, None) if action in DEFAULTS else None
        if method is None:
            return {"success": False}
        given = {**DEFAULTS[action], **arguments}
        known = {name: value for name, value in given.items() if name in (*DEFAULTS[action], "variable", "value")}
        try:
            method(own.actor, **known)
        except ToolError:
            return {"success": False}
        results = {
            "set_price": {"price": own.price},
            "hire": {"workforce": own.workforce},
            "fire": {"workforce": own.workforce},
            "invest": {"invested": float(known.get("amount", 0)), "balance": own.balance},
            "apply_policy": {"policy": known.get("policy_name")},
        }
        return {"success": True, "data": results.get(action, {})}

    def accounts(self) -> dict[str, Any]:
        names = ("role", "balance", "workforce", "price", "output")
        participants = self.world.state.participants
        return {
            agent: {name: getattr(participants[number], name) for name in names}
            for agent, number in self.numbers.items()
            if number in participants
        }


def told(event: Event) -> dict[str, Any]:
    return {"type": event.kind, "round": event.time, "data": dict(event.facts)}


def seen_by(script: Script, agent: str) -> list[str]:
    """Give the numbers of an observation, in the words and order of the original."""
    facts = script.world.facts(script.number(agent))
    lines = [f"{name}: {value:.4f}" for name, value in facts.metrics.items()]
    lines += [f"- {policy.name}: {policy.description}" for policy in facts.policies]
    lines += [f"{name}: {value}" for name, value in facts.variables.items()]
    own = facts.own
    account = f"role={own.role} balance={own.balance} workforce={own.workforce} price={own.price} output={own.output}"
    return [*lines, account]


def shown(text: str) -> list[str]:
    """Take the headings out of an observation of the original."""
    lines = [line[2:] for line in text.splitlines() if line.startswith("  ")]
    own = re.search(r"role=.*", text)
    return [*lines, *([own.group()] if own else [])]


def wanted_of(result: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a recorded result what is worded: texts of errors, and arguments given back unchanged."""
    if "ok" not in result or not isinstance(result["ok"], dict):
        return result
    answer = result["ok"]
    if not answer["success"]:
        return {"ok": {"success": False}}
    kept = {name: value for name, value in answer["data"].items() if name not in ("target", "amount")}
    if "price" in kept:
        kept["price"] = float(kept["price"])
    return {"ok": {"success": True, "data": kept}}


def play(script: Script, entry: dict[str, Any], place: str) -> None:
    step = entry["step"]
    if step[0] == "tick":
        found = outcome_of(lambda: [told(event) for event in script.world.end_step()])
        if "raises" in entry["r"]:
            assert found == entry["r"], place
            return
        assert_close(dict(script.world.state.metrics), entry["metrics"], REL, place)
        assert_close(found["ok"], entry["events"], REL, place)
    elif step[0] == "obs":
        assert seen_by(script, step[1]) == shown(entry["r"]["ok"]), place
    else:
        found = outcome_of(lambda: script.act(*step))
        if step[2] is None:
            assert "raises" in found, place
        else:
            assert_close(found, wanted_of(entry["r"]), REL, place)


@scripts
def test_a_script_runs_as_recorded(case: dict[str, Any]) -> None:
    if "log" not in case:
        assert "raises" in outcome_of(lambda: Script(case))
        return
    script = Script(case)
    for number, entry in enumerate(case["log"]):
        play(script, entry, f"step {number} {entry['step']}")


@scripts
def test_accounts_policies_and_variables_end_as_recorded(case: dict[str, Any]) -> None:
    if "actors" not in case:
        pytest.skip("the script ends before anyone has an account")
    script = Script(case)
    for number, entry in enumerate(case["log"]):
        play(script, entry, f"step {number}")
    assert_close(script.accounts(), case["actors"], REL)
    agents = {number: agent for agent, number in script.numbers.items()}
    policies = [
        {"name": p.name, "description": p.description, "enacted_by": agents[p.enacted_by], "round": p.step}
        for p in script.world.state.policies
    ]
    assert policies == case["policies"]
    assert_close(script.world.state.variables, case["variables"], REL)
