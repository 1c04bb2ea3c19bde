"""SimSwarm's economic environment, script by script, as its own code computed it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mesa_llm.errors import ToolError
from mesa_llm.records import Event
from mesa_llm_models.economy.world import Economy, EconomyParameters
from tests.golden.reading import assert_close, failure_of, golden, outcome_of, recorded_part, section

CASES: list[dict[str, Any]] = section(golden("simswarm"), "economic_env")


NOT_COMPARED = {"log.step.*": "arguments that an action does not take, which the original passes over"}
"""Parts of a script that no test reads → why."""

REFUSALS = {"Cannot fire": "cannot let", "Insufficient balance": "does not cover", "Unknown action": "no action"}
"""What an error of the original says → what ours says."""

REL = 1e-12

PARAMETERS = {"labor_force", "metric_change_threshold"}
"""The environment's parameters; ours has more."""

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
        before = case.get("pre") or {}
        parameters = dict(case.get("config", {}))
        if unknown := parameters.keys() - PARAMETERS:
            raise TypeError(f"the original's environment has no parameter {sorted(unknown)}")
        self.world = Economy(EconomyParameters(**parameters), rules="original")
        self.numbers: dict[str, int] = {}
        for agent, (role, balance) in before.items():
            self.world.enter(self.number(agent), role, balance)

    def number(self, agent: str) -> int:
        return self.numbers.setdefault(agent, len(self.numbers) + 1)

    def act(self, agent: str, action: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run one action, and give what it did as the environment reports it."""
        own = self.world.enter(self.number(agent))
        method: Callable[..., str] | None = getattr(self.world, action, None) if action in DEFAULTS else None
        if method is None:
            return {"success": False, "why": f"no action {action}"}
        given = {**DEFAULTS[action], **(arguments if DEFAULTS[action] else {})}
        known = {name: value for name, value in given.items() if name in (*DEFAULTS[action], "variable", "value")}
        try:
            method(own.agent_id, **known)
        except ToolError as refusal:
            return {"success": False, "why": str(refusal)}
        results = {
            "set_price": {"price": own.price},
            "hire": {"workforce": own.workforce},
            "fire": {"workforce": own.workforce},
            "invest": {"invested": float(known.get("amount", 0)), "balance": own.balance},
            "apply_policy": {"policy": known.get("policy_name")},
            "allocate": {"target": known.get("target"), "amount": float(known.get("amount", 0))},
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
    return {"type": event.kind, "source": "economic", "round": event.time, "data": dict(event.facts)}


def seen_by(script: Script, agent: str) -> str:
    """Write an observation in the words of the original."""
    facts = script.world.facts(script.number(agent))
    lines = ["=== Economic State ===", "Metrics:", *(f"  {name}: {value:.4f}" for name, value in facts.metrics.items())]
    if facts.policies:
        lines += ["Active policies:", *(f"  - {policy.name}: {policy.description}" for policy in facts.policies)]
    if facts.variables:
        lines += ["Scenario variables:", *(f"  {name}: {value}" for name, value in facts.variables.items())]
    own = facts.own
    account = f"role={own.role} balance={own.balance} workforce={own.workforce} price={own.price} output={own.output}"
    return "\n".join([*lines, f"Your state: {account}"])


def check_outcome(found: dict[str, Any], wanted: dict[str, Any], place: str) -> None:
    """Compare what an action did; a refusal in its sense, and a price as the number that it is."""
    if "raises" in wanted:
        assert found == wanted, place
        return
    answer = wanted["ok"]
    if not answer["success"]:
        error = answer["data"]["error"]
        kind = next((kind for kind in REFUSALS if error.startswith(kind)), error)
        assert not found["ok"]["success"], place
        assert REFUSALS[kind] in found["ok"]["why"], place
        return
    told = dict(answer["data"])
    if "price" in told:
        told["price"] = float(told["price"])
    assert_close(found, {"ok": {"success": True, "data": told}}, REL, place)


def play(script: Script, entry: dict[str, Any], place: str) -> None:
    step = entry["step"]
    if step[0] == "tick":
        found = outcome_of(lambda: [told(event) for event in script.world.end_step()])
        if "raises" in entry.get("r", {}):
            assert found == entry["r"], place
            return
        assert entry.get("r", {"ok": None}) == {"ok": None}
        metrics = dict(script.world.state.metrics)
        assert_close(metrics, entry.get("metrics", metrics), REL, place)
        theirs = entry.get("events", found["ok"])
        assert len(found["ok"]) == len(theirs), place
        ours = [{key: one[key] for key in other} for one, other in zip(found["ok"], theirs, strict=True)]
        assert_close(ours, theirs, REL, place)
    elif "r" not in entry:
        outcome_of(lambda: seen_by(script, step[1]) if step[0] == "obs" else script.act(*step))
    elif step[0] == "obs":
        assert outcome_of(lambda: seen_by(script, step[1])) == entry["r"], place
    elif step[2] is None and "raises" in entry["r"]:
        assert entry["r"]["raises"] == "AttributeError", place  # the original looks an argument up in nothing
        assert "raises" in outcome_of(lambda: script.act(*step)), place
    else:
        check_outcome(outcome_of(lambda: script.act(*step)), entry["r"], place)


@scripts
def test_a_script_runs_as_recorded(case: dict[str, Any]) -> None:
    if failure_of(case) or "log" not in case:
        assert outcome_of(lambda: Script(case)) == {"raises": failure_of(case) or "TypeError"}
        return
    script = Script(case)
    for number, entry in enumerate(case["log"]):
        play(script, entry, f"step {number} {entry['step']}")
    check_actors(script.accounts(), case)
    agents = {number: agent for agent, number in script.numbers.items()}
    policies = [
        {"name": p.name, "description": p.description, "enacted_by": agents[p.enacted_by], "round": p.step}
        for p in script.world.state.policies
    ]
    wanted = case.get("policies", policies)
    assert len(policies) == len(wanted)
    assert [recorded_part(ours, theirs) for ours, theirs in zip(policies, wanted, strict=True)] == wanted
    assert_close(script.world.state.variables, case.get("variables", script.world.state.variables), REL)


def check_actors(accounts: dict[str, Any], case: dict[str, Any]) -> None:
    """Compare the accounts in the fields that are recorded; without any, there may be none, or they were left out."""
    wanted = case.get("actors")
    if wanted is not None:
        found = {name: recorded_part(one, wanted.get(name, one)) for name, one in accounts.items()}
        assert_close(found, wanted, REL)


def test_a_script_of_a_parameter_of_ours_does_not_start() -> None:
    assert outcome_of(lambda: Script({"config": {"wage": 1.0}})) == {"raises": "TypeError"}
