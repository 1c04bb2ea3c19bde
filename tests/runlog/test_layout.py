"""The layout of a run log: earlier formats are read and continued, foreign schemas refused."""

import gzip
import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mesa_llm import ConfigError, RunLog
from mesa_llm.model.recording import Recording, advance_to
from mesa_llm.testing import honest
from tests.pot import PotModel

RECORDED = Path(__file__).parents[1] / "model" / "recorded"

OLD = RECORDED / "asked_0_9_7.sqlite"
"""A log that version 0.9.7 recorded, of format 3; its prompts have changed since."""

REPEATED = RECORDED / "prisoners_dilemma_random_0_9_7.sqlite.gz"
"""Another, which the present version repeats."""


def format_of(path) -> int:
    with closing(sqlite3.connect(path)) as file:
        return file.execute("PRAGMA user_version").fetchone()[0]


def test_a_log_of_format_3_is_read_and_replayed_in_place_as_it_is(tmp_path) -> None:
    shutil.copy(OLD, tmp_path / "run.sqlite")
    recording = Recording.read(tmp_path / "run.sqlite")
    with closing(recording.rebuilt(log=tmp_path / "run.sqlite", replay=True, in_place=True)) as again:
        again.run_for(recording.last_step)
        assert (again.runlog.n_in_place, again.usage.calls) == (4, 0)
        assert '"post_id":' in "".join(again.runlog.actions()["facts"])
    log = RunLog(tmp_path / "run.sqlite", "read")
    assert set(log.calls()["checksum"]) == set(log.decisions()["reading"]) == {None}
    assert set(log.actions()["facts"]) == {"{}"}
    assert (tmp_path / "run.sqlite").read_bytes() == OLD.read_bytes()


def test_a_log_of_format_3_is_continued_in_this_one(tmp_path) -> None:
    file = tmp_path / "run.sqlite"
    file.write_bytes(gzip.decompress(REPEATED.read_bytes()))
    assert format_of(file) == 3
    recording = Recording.read(file)
    with closing(recording.replayed()) as again:
        assert again.runlog.digest == recording.digests[recording.last_step]
    with closing(recording.rebuilt(log=file)) as again:
        advance_to(again, recording.last_step)
        assert (again.runlog.digest, again.usage.calls) == (recording.digests[recording.last_step], 0)
    assert format_of(file) == 5
    assert Recording.read(file).digests == recording.digests
    assert RunLog(file, "read").manifest["format"] == 5


SILENCE = "BEGIN SELECT RAISE(IGNORE); END"

FOREIGN = {
    "trigger before": f"CREATE TRIGGER quiet BEFORE INSERT ON calls {SILENCE}",
    "trigger on update": f"CREATE TRIGGER quiet BEFORE UPDATE ON manifest {SILENCE}",
    "trigger of delete": "CREATE TRIGGER more AFTER DELETE ON steps BEGIN INSERT INTO steps VALUES (1, '', ''); END",
    "view": "CREATE VIEW calls_seen AS SELECT * FROM calls",
    "view in place of a table": "ALTER TABLE events RENAME TO kept; CREATE VIEW events AS SELECT * FROM kept",
    "extra table": "CREATE TABLE notes (text TEXT)",
    "extra index": "CREATE INDEX more ON calls (reply)",
    "partial unique index": "CREATE UNIQUE INDEX one ON decisions (time) WHERE time > 5",
    "virtual table": "CREATE VIRTUAL TABLE search USING fts5(text)",
    "extra column": "ALTER TABLE steps ADD COLUMN more TEXT DEFAULT 'x'",
    "generated column": "ALTER TABLE steps ADD COLUMN more TEXT AS (upper(digest))",
    "lost index": "DROP INDEX calls_at",
    "lost table": "DROP TABLE answers",
    "other type": "DROP TABLE steps; CREATE TABLE steps (time INTEGER PRIMARY KEY, measures BLOB, digest TEXT)",
    "check": "DROP TABLE messages; CREATE TABLE messages (time INTEGER CHECK (time < 3), sender INTEGER, "
    "recipients TEXT, text TEXT)",
    "default": "DROP TABLE writer; CREATE TABLE writer (pid INTEGER DEFAULT 1, host TEXT, since TEXT)",
    "collation": "DROP TABLE writer; CREATE TABLE writer (pid INTEGER, host TEXT COLLATE NOCASE, since TEXT)",
    "conflict clause": "DROP TABLE manifest; CREATE TABLE manifest (name TEXT PRIMARY KEY ON CONFLICT IGNORE, "
    "value TEXT NOT NULL)",
    "without rowid": "DROP TABLE steps; CREATE TABLE steps (time INTEGER PRIMARY KEY, measures TEXT, digest TEXT) "
    "WITHOUT ROWID",
    "strict": "DROP TABLE steps; CREATE TABLE steps (time INTEGER PRIMARY KEY, measures TEXT, digest TEXT) STRICT",
}


@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("mode", ["record", "replay", "read"])
def test_a_log_whose_schema_is_not_a_run_logs_is_refused_and_left_as_it_is(change, mode, tmp_path) -> None:
    RunLog(tmp_path / "run.sqlite").close()
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as file:
        file.executescript(change)
    before = (tmp_path / "run.sqlite").read_bytes()
    with pytest.raises(ConfigError, match=r"run\.sqlite' cannot be used as a run log: it has (no )?(\w+) \w+"):
        RunLog(tmp_path / "run.sqlite", mode)
    assert (tmp_path / "run.sqlite").read_bytes() == before


@pytest.mark.parametrize("upkeep", ["VACUUM", "ANALYZE", "REINDEX", "PRAGMA journal_mode=WAL"])
def test_upkeep_of_a_log_makes_it_no_other(upkeep, tmp_path) -> None:
    with closing(PotModel(2, rng=1, log=tmp_path / "run.sqlite")) as model:
        model.step()
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as file:
        file.execute(upkeep)
    with closing(PotModel(2, rng=1, log=tmp_path / "run.sqlite")) as model:
        model.run_for(2)
    assert list(RunLog(tmp_path / "run.sqlite", "read").steps()["time"]) == [1, 2]


def run_of_pot(path) -> None:
    with closing(PotModel(3, honest(), rng=1, log=path)) as model:
        model.run_for(4)


def altered(path, statement, *values) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(statement, values)


@pytest.mark.parametrize("n_agents", [10**9, 10**5])
def test_a_log_that_names_more_agents_than_it_holds_is_not_rebuilt(n_agents, tmp_path) -> None:
    run_of_pot(tmp_path / "run.sqlite")
    parameters = json.dumps({"n_agents": n_agents, "llm": "ScriptedLLM"})
    altered(tmp_path / "run.sqlite", "UPDATE manifest SET value = ? WHERE name = 'parameters'", parameters)
    with pytest.raises(ConfigError, match=rf"holds 12 decisions of a run with n_agents={n_agents}, which is not"):
        Recording.read(tmp_path / "run.sqlite").rebuilt(log=tmp_path / "run.sqlite", replay=True)


HUGE = {
    "a manifest value": ("UPDATE manifest SET value = ? WHERE name = 'versions'", json.dumps("x" * 20_000_000)),
    "a reply": ("UPDATE calls SET reply = ?", json.dumps({"text": "x" * 20_000_000, "tool_calls": []})),
    "a line named often": ("UPDATE calls SET prompt = ?", json.dumps([["user", " ".join(["1-1"] * 3_000_000)]])),
    "a decision": ("UPDATE decisions SET text = ?", "x" * 20_000_000),
}


@pytest.mark.parametrize("change", HUGE.values(), ids=HUGE)
def test_what_is_too_large_in_a_log_is_an_error(change, tmp_path) -> None:
    run_of_pot(tmp_path / "run.sqlite")
    altered(tmp_path / "run.sqlite", *change)
    with (
        pytest.raises(ConfigError, match=r"too big|characters"),
        closing(RunLog(tmp_path / "run.sqlite", "read")) as log,
    ):
        _ = (log.manifest, log.calls(), log.decisions())


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_log_that_was_cut_short_is_said_to_be_damaged_and_how_it_is_salvaged(share, tmp_path) -> None:
    run_of_pot(tmp_path / "run.sqlite")
    os.truncate(tmp_path / "run.sqlite", int((tmp_path / "run.sqlite").stat().st_size * share))
    with pytest.raises(ConfigError, match=r"--recover NEW\.sqlite") as error:
        run_of_pot(tmp_path / "run.sqlite")
    assert "room" not in str(error.value)
