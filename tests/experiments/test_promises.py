"""A recording is worth watching if it keeps what it promises, and measures, actions and texts are not flat."""

from __future__ import annotations

import pytest

from mesa_llm.experiments.runs.promises import RecordingVerdict, Trace, conditions_in

TRACE = Trace(
    steps=2,
    measures={"stock": [100.0, 60.0], "catch": [None, 8.0], "people": [5, 5], "two words": [0, 1]},
    actions=[(1, "fish"), (2, "fish"), (1, "say"), (2, "wait")],
    events={"storm": 2},
    texts=["We should fish less now.", "we should fish less, now", "I do not agree with that."],
)


@pytest.mark.parametrize(
    ("promise", "is_kept"),
    [
        ("steps >= 2", True),
        ("steps > 2", False),
        ("end.stock == 60 and change.stock < 0", True),
        ("range.stock >= 40.5", False),
        ("end.two words >= 1", True),
        ("agents.fish == 2 and actions.say >= 1", True),
        ("events.storm >= 3", False),
        ("end.unknown <= 1", False),
        ("actions.unknown == 0", True),
    ],
)
def test_a_promise_is_checked_on_the_numbers_of_the_log(promise, is_kept) -> None:
    assert TRACE.keeps(promise) is is_kept


@pytest.mark.parametrize(
    "promise", ["__import__('os')", "steps", "steps.x > 1", "end > 1", "end.x >= y", "steps > 1 or steps > 2"]
)
def test_what_is_no_condition_is_refused(promise) -> None:
    with pytest.raises(ValueError, match="is no condition; write one such as"):
        conditions_in(promise)


def test_the_verdict_names_what_is_flat() -> None:
    good = RecordingVerdict.on(
        Trace(2, {"a": [0, 1], "b": [1, 0]}, [(1, "say")], {}, ["Shall we meet at noon?"]), "actions.say >= 1"
    )
    assert good.faults == []
    flat = RecordingVerdict.on(TRACE, "steps >= 3", frozenset({"fish", "wait"}))
    assert flat.faults == ["2 of 4 measures move", "75 % idle", "33 % repeated", "promise not kept"]
    assert RecordingVerdict.on(TRACE, "").faults[-1] == "promises nothing"
