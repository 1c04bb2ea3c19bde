"""Disks that fill up, or fail, at any byte of a run: nothing that was paid for is lost or asked for twice."""

import ast
import os
import re
import shutil
import signal
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import pytest

from mesa_llm import ConfigError, RunLog
from mesa_llm.runlog.disk import write_whole
from mesa_llm.runlog.recovery import recover
from tests.pot import PotModel
from tests.processes import run
from tests.small_disk import (
    CountingLLM,
    Interrupted,
    SmallDisk,
    interrupted,
    keys_in,
    limit_files,
    play,
    spilled,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")

PAGE, NO_NAMESPACE = 4096, 77


def child_of(function: str, folder: Path, *values: object) -> list:
    """Call a function of this file in a process of its own, on a disk of its own, and return all that it noted."""
    for name in "temporary", "disk":
        (folder / name).mkdir(exist_ok=True)
    code = f"from tests.runlog.test_full_disk import *; tempfile.tempdir = {str(folder / 'temporary')!r}; "
    done = run("-c", f"{code}{function}(Path({str(folder / 'disk')!r}), *{values!r})")
    if done.returncode == NO_NAMESPACE:
        pytest.skip("this machine lets nobody mount a file system in memory")
    assert done.returncode in (0, -signal.SIGKILL), done.err
    notes = folder / "notes"
    return [ast.literal_eval(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def note(folder: Path, *values: object) -> None:
    with (folder.parent / "notes").open("a") as notes:
        notes.write(f"{values!r}\n")


def small_disk(folder: Path) -> SmallDisk:
    try:
        return SmallDisk(folder)
    except OSError:
        sys.exit(NO_NAMESPACE)


def on_small_disks(folder: Path) -> None:
    disk = small_disk(folder)
    for pages in range(8, 70):
        one = interrupted(folder / "run.sqlite", disk.limit, pages * PAGE)
        note(folder, one.fault, one.is_whole, one.n_lost, one.n_twice, one.digest)
        for file in folder.iterdir():
            file.unlink()


def in_small_files(folder: Path) -> None:
    for number in range(62):
        one = interrupted(folder / f"{number}.sqlite", limit_files, 28_001 + number * 1_777)
        note(folder, one.fault, one.is_whole, one.n_lost, one.n_twice, one.digest)


@pytest.mark.parametrize(
    ("scan", "reason"), [("on_small_disks", "the disk is full ("), ("in_small_files", "larger than a file may be")]
)
def test_wherever_room_ends_the_log_is_whole_and_nothing_is_asked_for_twice(scan, reason, tmp_path) -> None:
    runs = [Interrupted(*noted) for noted in child_of(scan, tmp_path)]
    faults = [one.fault for one in runs if one.fault]
    assert len(runs) > 60
    assert len(faults) > 30
    assert {(one.is_whole, one.n_lost, one.n_twice) for one in runs} == {(True, 0, 0)}
    assert len({one.digest for one in runs}) == 1
    assert all(reason in fault and "\n" not in fault for fault in faults)


class FillingLLM(CountingLLM):
    """Lets no file become larger than the write-ahead log is when the tenth request arrives."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.wal = log.with_name(f"{log.name}-wal")

    async def reply(self, request):
        if len(self.keys) == 9:
            limit_files(self.wal.stat().st_size)
        return await super().reply(request)


def full_in_a_step(folder: Path, is_killed: bool) -> None:
    log = folder / "run.sqlite"
    llm = FillingLLM(log)
    model = PotModel(24, llm, rng=3, log=log)
    model.runlog.note("size", "x" * 100_000)  # so that there is room for the new file
    with pytest.raises(ConfigError) as error:
        model.run_for(1)
    limit_files()
    note(folder, str(error.value), llm.keys, spilled())
    if is_killed:
        os.kill(os.getpid(), signal.SIGKILL)
    with suppress(ConfigError):  # says where the replies are by now
        model.close()
    note(folder, spilled())


@pytest.mark.parametrize("is_killed", [False, True])
def test_replies_that_find_no_room_wait_on_another_disk_for_the_resume(is_killed, tmp_path, monkeypatch) -> None:
    (fault, before, aside), *closed = child_of("full_in_a_step", tmp_path, is_killed)
    assert f"had no room there; this log takes them from '{tmp_path / 'temporary' / 'mesa-llm-unsaved'}" in fault
    assert aside
    assert closed == ([] if is_killed else [([],)])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    model = PotModel(24, again := CountingLLM(), rng=3, log=tmp_path / "disk" / "run.sqlite")
    model.run_for(1)
    model.close()
    assert sorted(before + again.keys) == sorted({*before, *again.keys})
    assert (len(before + again.keys), spilled()) == (24, [])


def overwrite(log: Path, copy: Path) -> None:
    log.write_bytes(copy.read_bytes())


def replace(log: Path, copy: Path) -> None:
    os.replace(copy, log)


def delete(log: Path, copy: Path) -> None:
    log.unlink()


def changed_where_no_file_can_grow(folder: Path, change: str) -> None:
    log, copy = folder / "run.sqlite", folder / "copy.sqlite"
    model = PotModel(6, CountingLLM(), rng=3, log=log)
    model.run_for(1)
    shutil.copy(log, copy)
    os.link(log, folder / "original.sqlite")
    globals()[change](log, copy)
    limit_files(PAGE)
    with pytest.raises(ConfigError) as error:
        model.close()
    limit_files()
    (folder / "run.sqlite-wal.kept").rename(folder / "original.sqlite-wal")
    note(folder, str(error.value), len(keys_in(folder / "original.sqlite") or ()))


@pytest.mark.parametrize("change", ["replace", "delete"])
def test_no_write_ahead_log_is_deleted_while_no_copy_is_whole(change, tmp_path) -> None:
    ((fault, n_replies),) = child_of("changed_where_no_file_can_grow", tmp_path, change)
    assert "and the recording cannot be saved: " in fault
    assert f"What was written last is kept in '{tmp_path / 'disk' / 'run.sqlite-wal.kept'}'" in fault
    assert n_replies == 6


def changed_on_a_full_disk(folder: Path, change: str) -> None:
    disk, log, copy, llm = small_disk(folder), folder / "run.sqlite", folder / "copy.sqlite", CountingLLM()
    model = PotModel(6, llm, rng=3, log=log)
    model.run_for(1)
    shutil.copy(log, copy)
    model.run_for(1)
    globals()[change](log, copy)
    model.runlog._reserve.free()  # and another program takes the room
    disk.fill()
    with pytest.raises(ConfigError, match="while it was being recorded") as error:
        model.run_for(1)
    (saved,) = re.findall(r"The recording is saved in '(.*?)'", str(error.value))
    assert not saved.startswith(str(folder))
    assert play(Path(saved), again := CountingLLM()) == ""
    assert not {*llm.keys} & {*again.keys}
    assert len(llm.keys + again.keys) == 18


@pytest.mark.parametrize("change", ["overwrite", "replace", "delete"])
def test_a_log_changed_on_a_full_disk_is_saved_on_another(change, tmp_path) -> None:
    child_of("changed_on_a_full_disk", tmp_path, change)


def copied_on_a_full_disk(folder: Path) -> None:
    disk, log = small_disk(folder), folder / "run.sqlite"
    assert play(log, CountingLLM()) == ""
    targets = [folder / name for name in ("copy.sqlite", "run.sqlite.gz", "row.json")]
    for target in targets:
        target.write_text("as it was")
    disk.fill()
    with closing(RunLog(log, "read")) as source:
        for write in (
            lambda: source.copy_to(targets[0]),
            lambda: source.compact_to(targets[1]),
            lambda: write_whole(targets[2], "x" * 100_000),
            lambda: recover(log, folder / "new.sqlite"),
        ):
            with pytest.raises((ConfigError, OSError), match=r"disk is full|No space left"):
                write()
    assert [target.read_text() for target in targets] == ["as it was"] * 3
    assert len(list(folder.iterdir())) == 5  # and no half of a file beside them


def test_no_copy_of_a_log_replaces_a_whole_file_by_half_of_one(tmp_path) -> None:
    child_of("copied_on_a_full_disk", tmp_path)
