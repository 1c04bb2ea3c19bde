"""Logs of version 0.9.7, recorded when the models were imported as `models`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mesa_llm.model.recording import Recording

RECORDED = Path(__file__).parent / "recorded"


@pytest.fixture
def recording(request, tmp_path) -> Recording:
    """Read a copy of a log: opening one brings it to the present format."""
    return Recording.read(shutil.copy(RECORDED / f"{request.param}_0_9_7.sqlite", tmp_path))


@pytest.mark.parametrize("recording", ["rule", "asked"], indirect=True)
def test_it_replays_to_the_recorded_digest(recording: Recording) -> None:
    assert recording.replayed().runlog.digest == recording.digests[recording.last_step]
