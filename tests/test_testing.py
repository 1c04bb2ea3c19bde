"""The checks that authors of models run."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mesa_llm import branch, parameters_of
from mesa_llm.engine.event_loop import run_now
from mesa_llm.errors import ConfigError, TransportError
from mesa_llm.records import ChatMessage, Observation, Request, Salt
from mesa_llm.testing import FAULTS, ContractBroken, check_model, faulty, observing_changes_nothing
from tests.engine.test_plain import Field
from tests.pot import Payer, PotModel


def test_a_model_in_no_package_is_held_to_no_check_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lone_pot.py").write_text("from tests.pot import PotModel\n\n\nclass LonePot(PotModel):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    check_model(import_module("lone_pot").LonePot)


@pytest.mark.parametrize("use", [check_model, parameters_of, lambda plain: branch(plain(), at=1)])
def test_what_needs_an_llm_model_says_so_of_a_plain_one(use: Callable[[Any], object]) -> None:
    with pytest.raises(ConfigError, match=r"Field is .*a plain Mesa model"):
        use(Field)


def counts_visits(agent: Any) -> Observation:
    agent.model.pot.coins += 1
    return Observation("A pot.")


def draws(agent: Any) -> Observation:
    return Observation(f"You rolled {agent.random.random()}.")


def forgets(agent: Any) -> Observation:
    agent.model.random.random()
    return Observation("A pot.")


@pytest.mark.parametrize(
    ("observe", "fault"),
    [(counts_visits, "the same digest"), (draws, "sees the same when it observes twice"), (forgets, "the same digest")],
)
def test_an_observation_that_changes_the_world_breaks_a_promise(
    observe: Any, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry: Any = SimpleNamespace(load=lambda: PotModel)
    observing_changes_nothing(entry)
    monkeypatch.setattr(Payer, "observe", observe)
    with pytest.raises(ContractBroken, match=fault):
        observing_changes_nothing(entry)


def test_no_check_leaves_a_log_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kept_pot.py").write_text(
        "from tests.pot import PotModel\n\nMADE = []\n\n\nclass KeptPot(PotModel):\n"
        "    def __init__(self, *arguments, **options):\n"
        "        super().__init__(*arguments, **options)\n        MADE.append(self)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    check_model("kept_pot:KeptPot")
    for model in import_module("kept_pot").MADE:
        if model.runlog.path is not None:
            with pytest.raises(ConfigError, match="is closed"):
                model.runlog.steps()


def test_a_faulty_model_misbehaves_in_every_way() -> None:
    found: list[Any] = []
    for number in range(200):
        request = Request("faulty", (ChatMessage("user", "Well?"),), Salt(0, number, 0, "decide", 0))
        try:
            found.append(run_now(faulty().reply(request)))
        except TransportError as fault:
            found.append(fault)
    assert {repr(fault) for fault in FAULTS} <= {repr(fault) for fault in found}


def test_a_fault_says_the_same_however_often_it_happens() -> None:
    model = PotModel(8, faulty(), rng=1)
    model.run_for(8)
    texts = {reason for reason in model.runlog.failures() if reason.startswith("not JSON")}
    assert texts == {"not JSON (requests sent: 3)"}
