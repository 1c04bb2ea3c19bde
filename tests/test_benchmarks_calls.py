"""The number of function calls of a live decision, which no load on a machine changes, stays within what is stated."""

import importlib
from pathlib import Path

import pytest


def test_a_live_decision_makes_no_more_function_calls_than_stated(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    calls = importlib.import_module("calls")
    counted = calls.calls_a_decision()
    assert counted == pytest.approx(calls.MAX_CALLS, rel=0.1)  # what is counted is a whole decision
    assert counted <= calls.MAX_CALLS * (1 + calls.TOLERANCE)
