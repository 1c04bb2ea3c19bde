"""Logs of earlier versions, by rule, by chance and of a language model; in 0.9.7, models were imported as `models`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mesa_llm.cli.run import replay_run
from mesa_llm.model.recording import Recording

RECORDED = Path(__file__).parent / "recorded"

CHANGED = {"economy_random_0_9_7"}
"""Logs that the present version does not repeat."""

COMPACT = sorted(file.name.removesuffix(".sqlite.gz") for file in RECORDED.glob("*.sqlite.gz"))


@pytest.fixture
def recording(request, tmp_path) -> Recording:
    """Read a copy of a log: opening one brings it to the present format."""
    return Recording.read(shutil.copy(RECORDED / f"{request.param}_0_9_7.sqlite", tmp_path))


@pytest.mark.parametrize("recording", ["rule", "asked"], indirect=True)
def test_it_replays_to_the_recorded_digest(recording: Recording) -> None:
    assert recording.replayed().runlog.digest == recording.digests[recording.last_step]


@pytest.mark.parametrize("name", [name for name in COMPACT if name not in CHANGED])
def test_all_that_it_holds_is_repeated(name: str) -> None:
    figures = replay_run(RECORDED / f"{name}.sqlite.gz", is_quiet=True, say=print)
    assert (figures["differences"], figures["reason"]) == ([], "")


@pytest.mark.parametrize("name", sorted(CHANGED))
def test_unrepeatable_log_says_what_changed_and_which_version_repeats_it(name: str) -> None:
    figures = replay_run(RECORDED / f"{name}.sqlite.gz", is_quiet=True, say=print)
    assert figures["differs_from"] == 5
    assert figures["reason"].startswith("What the random baseline chooses from has changed. It was recorded with mesa-")
    assert figures["reason"].endswith("that version replays it: pip install mesa-llm-worlds==0.9.7")
