"""The checks that authors of models run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mesa_llm.engine.loop import run_now
from mesa_llm.errors import TransportError
from mesa_llm.records import ChatMessage, Request, Salt
from mesa_llm.testing import FAULTS, check_model, faulty


def test_a_model_in_no_package_is_held_to_no_check_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lone_pot.py").write_text("from tests.pot import PotModel\n\n\nclass LonePot(PotModel):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    check_model("lone_pot:LonePot")


def test_a_faulty_model_misbehaves_in_every_way() -> None:
    found: list[Any] = []
    for number in range(200):
        request = Request("faulty", (ChatMessage("user", "Well?"),), Salt(0, number, 0, "decide", 0))
        try:
            found.append(run_now(faulty().reply(request)))
        except TransportError as fault:
            found.append(fault)
    assert all(fault in found for fault in FAULTS)
