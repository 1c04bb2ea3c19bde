"""Logs of version 0.9.7, recorded when the models were imported as `models`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mesa_llm.errors import ReplayError
from mesa_llm.model.recording import Recording

RECORDED = Path(__file__).parent / "recorded"


@pytest.fixture
def recording(request, tmp_path) -> Recording:
    """Read a copy of a log: opening one brings it to the present format."""
    return Recording.read(shutil.copy(RECORDED / f"{request.param}_0_9_7.sqlite", tmp_path))


@pytest.mark.parametrize("recording", ["rule"], indirect=True)
def test_a_run_by_rule_replays_to_the_recorded_digest(recording: Recording) -> None:
    assert recording.replayed().runlog.digest == recording.digests[recording.last_step]


@pytest.mark.parametrize("recording", ["asked"], indirect=True)
def test_a_run_whose_prompts_have_changed_says_what_changed_and_which_version_replays_it(recording: Recording) -> None:
    with pytest.raises(ReplayError, match=r"(?s)-system: Your name is .*\+user: Your name is .*install that version"):
        recording.replayed()
