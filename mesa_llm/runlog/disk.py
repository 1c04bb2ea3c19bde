"""The disk under a run log: what is wrong with it, and the room that is set aside on it for replies in flight."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mesa_llm.runlog.tables import line_of

MAX_RESERVE = 4_000_000
"""Maximum room that is set aside for replies in flight, in bytes; a reply takes about 25,000 until the step is over."""

MIN_RESERVE = 64_000
"""Minimum of this room; where there is less, the disk counts as full, and nothing is asked."""

MIN_ROOM = 300_000
"""About what an empty log takes with its companions and the minimum of this room, in bytes."""

_PROBED = 1_000_000
"""Number of bytes that are written, to no file, to find out why a log could not be."""


@dataclass(frozen=True)
class DiskFault:
    """Why a file cannot be written."""

    text: str
    """The reason, as part of a sentence."""

    remedy: str
    """When it can be written again, as part of a sentence."""


_FULL = DiskFault("the disk is full", "as soon as there is room")
_NOT_WRITABLE = DiskFault("its folder is not writable", "as soon as the file and its folder are writable")
_BROKEN = DiskFault("the disk reports an input/output error", "once its disk, or a copy of it on another one, works")

_FAULTS = {
    errno.ENOSPC: _FULL,
    getattr(errno, "EDQUOT", errno.ENOSPC): DiskFault("the disk quota is used up", "as soon as the quota leaves room"),
    errno.EFBIG: DiskFault("it would be larger than a file may be (ulimit -f)", "where files may be larger"),
    errno.EROFS: DiskFault("its disk is mounted read-only", "as soon as its disk can be written"),
    errno.EACCES: _NOT_WRITABLE,
    errno.EPERM: _NOT_WRITABLE,
    errno.EIO: _BROKEN,
}
"""Number of an error of the operating system → what it means for a file. ENOSPC comes last where EDQUOT is unknown."""


def disk_fault(path: Path, error: Exception, size: int = 0) -> DiskFault | None:
    """Return what is wrong with the disk under a file; None if an error has another reason.

    SQLite hides the number of the error, so the same is tried with a file that has no name.

    Args:
        path: The file.
        error: From writing it.
        size: Number of bytes that it was to have; 0: somewhat more than it has.
    """
    is_broken = _code(error) == sqlite3.SQLITE_IOERR
    if isinstance(error, OSError):
        number = error.errno
    elif is_broken or is_about_place(error):
        number = _probe(path, size)
    else:
        return None
    fault = _FAULTS.get(number or 0)
    if fault is None and is_broken:
        return DiskFault(f"{_BROKEN.text} ({line_of(error)})", _BROKEN.remedy)
    if number not in (errno.ENOSPC, getattr(errno, "EDQUOT", None)) or fault is None:
        return fault
    folder = Path(getattr(error, "filename2", None) or getattr(error, "filename", None) or path).parent
    with suppress(OSError):
        free = shutil.disk_usage(folder).free
        room = f"{free:,} bytes are free in {str(folder)!r}, and a run log needs {MIN_ROOM:,} to begin with"
        return DiskFault(f"{fault.text} ({room})", fault.remedy)
    return fault


def reason_of(path: Path, error: Exception, size: int = 0) -> str:
    """Return why a file could not be written, as part of a sentence; see `disk_fault`."""
    fault = disk_fault(path, error, size)
    return line_of(error) if fault is None else fault.text


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file that is as it was before until the new content is on the disk.

    Raises:
        OSError: If it cannot be written.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def is_about_place(error: Exception) -> bool:
    """Check whether an SQLite error concerns the location of a file: full disk, read-only, missing folder."""
    return _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def is_full(error: Exception) -> bool:
    """Check whether an SQLite error means that there was no room."""
    return _code(error) == sqlite3.SQLITE_FULL


def _code(error: Exception) -> int:
    """Return the primary result code of an SQLite error; 0 for any other."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _probe(path: Path, size: int) -> int | None:
    """Return the number of the error that writing beside a file, and beyond its end, gives; None if it gives none."""
    companions = (path, path.with_name(f"{path.name}-wal"))
    end = max(size, *(file.stat().st_size if file.is_file() else 0 for file in companions))
    try:
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.write(bytes(_PROBED))
            file.seek(end + _PROBED)  # a hole, so that this takes no room
            file.write(b"0")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno
    return None


def other_places() -> Iterator[Path]:
    """Yield folders that may lie on another disk than a log: the temporary one, that of the user, the memory."""
    with suppress(OSError):
        yield Path(tempfile.gettempdir())
    with suppress(RuntimeError):
        yield Path.home()
    yield Path("/dev/shm")


class Reserve:
    """Room on the disk of a log, given up when the disk is full so that the replies in flight can be written.

    It is a file without a name, of which nothing is left if the process is killed.
    """

    def __init__(self, folder: Path) -> None:
        """Set room aside.

        Args:
            folder: Folder of the log.

        Raises:
            OSError: If there is less than `MIN_RESERVE`.
        """
        wanted = max(min(shutil.disk_usage(folder).free // 4, MAX_RESERVE), MIN_RESERVE)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `free`
        while True:
            try:
                _allocate(self._file.fileno(), wanted)
                return
            except OSError:
                os.ftruncate(self._file.fileno(), 0)  # what was allocated before the disk was full
                wanted //= 2
                if wanted < MIN_RESERVE:
                    self._file.close()
                    raise

    def free(self) -> None:
        """Give the room up; for a fork, too, which has the file open as well."""
        if not self._file.closed:
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), 0)
            self._file.close()


def _allocate(file: int, size: int) -> None:
    """Make sure that a file has so many bytes on the disk.

    Raises:
        OSError: If the disk has no room for them.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    os.lseek(file, 0, os.SEEK_SET)
    left = size
    while left > 0:
        left -= os.write(file, bytes(min(left, MIN_RESERVE)))
