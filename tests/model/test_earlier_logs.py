"""Logs of earlier versions, by rule, by chance and of a language model; in 0.9.7, models were imported as `models`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mesa_llm.cli.run import replay_run
from mesa_llm.errors import ReplayError
from mesa_llm.model.recording import Recording

RECORDED = Path(__file__).parent / "recorded"

BASELINE = "What the random baseline chooses from has changed."
RULE = "The rule that agents decide by has changed."
WORLD = "The rules of the model or of its worlds have changed."

CHANGED = {
    "economy_random_0_9_7": (5, BASELINE),
    **{f"market_random_{version}": (1, BASELINE) for version in ("0_9_7", "1_0_0")},
    **{f"market_rule_{version}": (1, RULE) for version in ("0_9_7", "1_0_0")},
    **{f"social_random_{version}": (1, WORLD) for version in ("0_9_7", "1_0_0")},
    **{f"social_rule_{version}": (1, RULE) for version in ("0_9_7", "1_0_0")},
}
"""Logs that the present version does not repeat → the step from which on, and why.

Since 1.5, ids of markets are whole words, and users of the social network talk about its topic.
"""

COMPACT = sorted(file.name.removesuffix(".sqlite.gz") for file in RECORDED.glob("*.sqlite.gz"))


def test_a_log_of_other_texts_opens_and_says_which_version_repeats_it(tmp_path: Path) -> None:
    recording = Recording.read(shutil.copy(RECORDED / "asked_0_9_7.sqlite", tmp_path))  # into the present format
    with pytest.raises(ReplayError, match=r"no reply is recorded for this request(?s:.*)that version replays it: pip"):
        recording.replayed()


@pytest.mark.parametrize("name", [name for name in COMPACT if name not in CHANGED])
def test_all_that_it_holds_is_repeated(name: str) -> None:
    figures = replay_run(RECORDED / f"{name}.sqlite.gz", is_quiet=True, say=print)
    assert (figures["differences"], figures["reason"]) == ([], "")


@pytest.mark.parametrize("name", CHANGED)
def test_unrepeatable_log_says_what_changed_and_which_version_repeats_it(name: str) -> None:
    figures = replay_run(RECORDED / f"{name}.sqlite.gz", is_quiet=True, say=print)
    version = ".".join(name.split("_")[-3:])
    step, reason = CHANGED[name]
    assert (figures["differs_from"], figures["reason"].startswith(reason)) == (step, True)
    assert f"It was recorded with mesa-llm-worlds {version}" in figures["reason"]
    assert figures["reason"].endswith(f"that version replays it: pip install mesa-llm-worlds=={version}")
