"""Damaged run logs: every command says so in one line, and what can be read is recovered."""

import hashlib
import json
import random
import sqlite3
import sys
from contextlib import closing, suppress

import pytest
from typer.testing import CliRunner

from mesa_llm import ConfigError, RunLog
from mesa_llm.cli.app import app
from mesa_llm.records import ChatMessage, Reply, Request, Salt
from mesa_llm.runlog.recovery import recover
from mesa_llm.runlog.tables import reply_of
from mesa_llm.testing import honest
from mesa_llm_models.social.model import SocialModel
from tests.pot import PotModel
from tests.processes import run

NEVER_JSON = [None, "{", "null", "[1, 2]", "[" * 100_000, b"\xff", 2**62, -1, 1e308, '{"text": 5, "tool_calls": []}']


def run_command(*command):
    return CliRunner().invoke(app, [str(word) for word in command])


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Record a run of some thirty pages, once."""
    path = tmp_path_factory.mktemp("sound") / "run.sqlite"
    model = SocialModel(n_agents=4, rng=1, llm=honest(), log=path)
    for _ in range(2):
        model.step()
    model.close()
    return path.read_bytes()


def truncate(rng, file) -> None:
    file.write_bytes(file.read_bytes()[: rng.randrange(file.stat().st_size)])


def flip(rng, file) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(rng.choice([1, 20, 300])):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(content)


def blank_a_page(rng, file) -> None:
    content = bytearray(file.read_bytes())
    page = rng.randrange(len(content) // 4096)
    content[page * 4096 : (page + 1) * 4096] = rng.choice([bytes(4096), rng.randbytes(4096)])
    file.write_bytes(content)


def change_a_column(rng, file) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        table = rng.choice(["manifest", "texts", "calls", "decisions", "actions", "steps"])
        column = rng.choice([field[1] for field in database.execute(f"PRAGMA table_info({table})")])
        with suppress(sqlite3.IntegrityError):
            database.execute(f"UPDATE {table} SET {column} = ?", [rng.choice(NEVER_JSON)])


def change_the_schema(rng, file) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        table = rng.choice(["manifest", "texts", "calls", "decisions", "steps"])
        column = database.execute(f"PRAGMA table_info({table})").fetchall()[-1][1]
        change = rng.choice([f"RENAME COLUMN {column} TO other", "RENAME TO other", "ADD COLUMN other"])
        database.execute(f"ALTER TABLE {table} {change}")


CHANGED = "These files of the model's code have changed since it was recorded: "
"""Beginning of a line after the reason, which a damaged name of a file leads to."""


@pytest.mark.parametrize("damage", [truncate, flip, blank_a_page, change_a_column, change_the_schema])
def test_a_damaged_log_never_ends_in_a_traceback(damage, sound, tmp_path) -> None:
    for number in range(10):
        file, new = tmp_path / f"run{number}.sqlite", tmp_path / f"new{number}.sqlite"
        file.write_bytes(sound)
        damage(random.Random(f"{damage.__name__} {number}"), file)
        looks = [("inspect", file, "--calls", "--usage"), ("inspect", file, "--decisions", "--csv")]
        for command in [*looks, ("replay", file, "--json"), ("inspect", file, "--recover", new), ("replay", new)]:
            done = run_command(*command)
            assert isinstance(done.exception, SystemExit | None), command
            if done.exit_code == 2 and "It differs from" not in done.stderr:
                lines = [line for line in done.stderr.splitlines() if not line.startswith(CHANGED)]
                assert len(lines) == 1


def test_a_log_whose_pages_are_gone_is_salvaged_and_gone_on_with(tmp_path) -> None:
    def run(log):
        model = PotModel(20, honest(), rng=2, log=log)
        model.run_for(20)
        model.close()
        return model

    whole = run(tmp_path / "run.sqlite")
    content = bytearray((tmp_path / "run.sqlite").read_bytes())
    content[:4096] = bytes(4096)
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = bytes(4096)
    (tmp_path / "run.sqlite").write_bytes(content)
    results = {result.table: result for result in recover(tmp_path / "run.sqlite", tmp_path / "new.sqlite")}
    assert 0.8 * whole.usage.calls < results["calls"].kept <= whole.usage.calls
    again = run(tmp_path / "new.sqlite")
    assert again.runlog.digest == whole.runlog.digest
    assert again.usage.replayed == results["calls"].kept
    assert (tmp_path / "run.sqlite").read_bytes() == content


def test_a_model_whose_name_is_damaged_is_a_damaged_log(tmp_path) -> None:
    PotModel(2, honest(), rng=1, log=tmp_path / "run.sqlite").close()
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as database, database:
        database.execute("INSERT INTO calls (key, model) VALUES (x'00', CAST(x'ff' AS TEXT))")
    with closing(RunLog(tmp_path / "run.sqlite", "replay")) as log, pytest.raises(ConfigError, match="is damaged"):
        log.models()


def test_a_damaged_table_does_not_close_the_log(tmp_path) -> None:
    file = tmp_path / "run.sqlite"
    PotModel(2, honest(), rng=1, log=file).close()
    with closing(sqlite3.connect(file)) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages_at'").fetchone()
    content = bytearray(file.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = bytes(4096)
    file.write_bytes(content)
    with closing(RunLog(file, "read")) as log:
        with pytest.raises(ConfigError, match="is damaged"):
            log.latest("messages", 5)
        assert log.latest("events", 5) == ([], 0)


def test_a_reply_whose_reasoning_is_no_text_is_not_sound() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        reply_of('{"text": "yes", "tool_calls": [], "reasoning": 5}', 1, 1, None, 0.1, 1)


def test_rows_around_a_lost_stretch_are_all_kept_and_the_lost_ones_counted(tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    model = PotModel(50, honest(), rng=2, log=log)
    model.run_for(10)
    model.close()
    with closing(sqlite3.connect(log)) as database, database:
        database.execute("UPDATE calls SET purpose = CAST(x'ff' AS TEXT) WHERE rowid IN (3, 4, 5, 100, 499)")
    calls = next(result for result in recover(log, tmp_path / "new.sqlite") if result.table == "calls")
    assert (calls.kept, calls.lost, calls.is_whole) == (495, 5, True)


def test_what_is_salvaged_never_overwrites_a_file(tmp_path) -> None:
    PotModel(rng=1, log=tmp_path / "run.sqlite").runlog.close()
    (tmp_path / "new.sqlite").write_text("mine")
    with pytest.raises(ConfigError, match="already exists"):
        recover(tmp_path / "run.sqlite", tmp_path / "new.sqlite")
    assert (tmp_path / "new.sqlite").read_text() == "mine"


def test_what_is_salvaged_to_a_place_that_cannot_be_written_is_one_line(tmp_path) -> None:
    model = PotModel(2, honest(), rng=1, log=tmp_path / "run.sqlite")
    model.run_for(1)
    model.close()
    with pytest.raises(ConfigError, match="cannot be written; name a new file"):
        recover(tmp_path / "run.sqlite", tmp_path / "no folder" / "new.sqlite")


IN_LITTLE_ROOM = """
import resource
from mesa_llm.cli.app import main
resource.setrlimit(resource.RLIMIT_FSIZE, (3_500_000, resource.RLIM_INFINITY))
main()
"""


def keep_replies(path, numbers) -> RunLog:
    """Record replies; a thousand take about a megabyte."""
    log = RunLog(path)
    for number in numbers:
        request = Request("stub", (ChatMessage("user", f"{number} hello " * 80),), Salt(1, 1, 1, "decide", number))
        log.keep(request, Reply("fine"), 0.1, commit=number == numbers[-1])
    return log


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk_is_no_damage_and_loses_no_row(tmp_path) -> None:
    path, new = tmp_path / "run.sqlite", tmp_path / "new.sqlite"
    keep_replies(path, range(2000)).close()
    with closing(keep_replies(path, range(2000, 4000))):  # these stand beside the file, which is not larger than it may
        done = run("-c", IN_LITTLE_ROOM, "inspect", str(path), "--recover", str(new))
    assert (done.returncode, new.exists()) == (2, False)
    assert f"run.sqlite' cannot be recovered into '{new}': it would be larger than a file may be" in done.err
    assert not list(tmp_path.glob("new*"))


@pytest.mark.parametrize("held", ["dear diary" * 1000, ""])
def test_nothing_is_salvaged_of_what_is_no_log(held, tmp_path) -> None:
    (tmp_path / "notes.txt").write_text(held)
    done = run_command("inspect", tmp_path / "notes.txt", "--recover", tmp_path / "new.sqlite")
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert not (tmp_path / "new.sqlite").exists()


def test_a_log_of_another_format_is_not_taken_for_a_damaged_one(tmp_path) -> None:
    PotModel(rng=1, log=tmp_path / "run.sqlite").runlog.close()
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as database, database:
        database.execute("PRAGMA user_version=2")
        database.execute("UPDATE manifest SET value = ? WHERE name = 'format'", [json.dumps(2)])
    with pytest.raises(ConfigError, match="is a run log of format 2"):
        recover(tmp_path / "run.sqlite", tmp_path / "new.sqlite")


def test_a_recorded_reply_that_is_none_is_said_to_be_damaged(tmp_path) -> None:
    model = PotModel(rng=1, llm=honest(), log=tmp_path / "run.sqlite")
    model.step()
    model.close()
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as database, database:
        database.execute("UPDATE calls SET reply = NULL")
    again = PotModel(rng=1, llm="ScriptedLLM", log=tmp_path / "run.sqlite", replay=True)
    with pytest.raises(ConfigError, match=r"run\.sqlite' is damaged: .* --recover"):
        again.step()
    assert len(RunLog(tmp_path / "run.sqlite", "read").calls()) == 4


def test_a_damaged_manifest_stops_no_run_in_a_traceback(tmp_path) -> None:
    PotModel(rng=1, log=tmp_path / "run.sqlite").runlog.close()
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as database, database:
        database.execute("UPDATE manifest SET value = '5' WHERE name = 'versions'")
    PotModel(rng=1, log=tmp_path / "run.sqlite").runlog.close()
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as database, database:
        database.execute("UPDATE manifest SET value = '{' WHERE name = 'model'")
    with pytest.raises(ConfigError, match="is damaged"):
        PotModel(rng=1, log=tmp_path / "run.sqlite")


def test_texts_of_older_logs_are_told_from_damaged_ones(sound, tmp_path) -> None:
    log = tmp_path / "old.sqlite"
    log.write_bytes(sound)
    with closing(sqlite3.connect(log)) as database, database:
        for number, text in database.execute("SELECT id, text FROM texts").fetchall():
            digest = hashlib.blake2b(text.encode(), digest_size=12).digest()
            database.execute("UPDATE texts SET hash = ? WHERE id = ?", (digest, number))
        database.execute("UPDATE texts SET text = 'damaged' WHERE id = 3")
    assert [each.lost for each in recover(log, tmp_path / "new.sqlite") if each.table == "texts"] == [1]
