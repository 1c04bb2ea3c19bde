"""The layout of a run log: earlier formats are read and continued, foreign schemas refused."""

import shutil
import sqlite3
from contextlib import closing

from mesa_llm import RunLog
from mesa_llm.model.recording import Recording, advance_to
from models.classics.recordings import CLASSICS

OLD = CLASSICS["boltzmann_wealth"].file
"""A log that version 0.4.0 recorded, of format 3."""


def format_of(path) -> int:
    with closing(sqlite3.connect(path)) as file:
        return file.execute("PRAGMA user_version").fetchone()[0]


def test_a_log_of_format_3_is_read_and_replayed_as_it_is(tmp_path) -> None:
    shutil.copy(OLD, tmp_path / "run.sqlite")
    recording = Recording.read(tmp_path / "run.sqlite")
    with closing(recording.replayed()) as again:
        assert again.runlog.digest == recording.digests[recording.last_step]
    log = RunLog(tmp_path / "run.sqlite", "read")
    assert set(log.calls()["checksum"]) == set(log.decisions()["reading"]) == {None}
    assert (tmp_path / "run.sqlite").read_bytes() == OLD.read_bytes()


def test_a_log_of_format_3_is_continued_in_this_one(tmp_path) -> None:
    shutil.copy(OLD, tmp_path / "run.sqlite")
    recording = Recording.read(tmp_path / "run.sqlite")
    with closing(recording.rebuilt(log=tmp_path / "run.sqlite")) as again:
        advance_to(again, recording.last_step)
        assert (again.runlog.digest, again.usage.calls) == (recording.digests[recording.last_step], 0)
    assert format_of(tmp_path / "run.sqlite") == 4
    assert Recording.read(tmp_path / "run.sqlite").digests == recording.digests
    assert RunLog(tmp_path / "run.sqlite", "read").manifest["format"] == 4
