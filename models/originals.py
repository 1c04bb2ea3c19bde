"""Files of original studies that are fetched when a user asks for them, as their licences keep them out of here."""

from __future__ import annotations

import importlib
from pathlib import Path

from mesa_llm import ConfigError
from mesa_llm.text import one_line


def fetch_original(url: str, sha256: str, folder: str, advice: str) -> Path:
    """Download a file, once, and check its digest; it is kept in the user's cache.

    Args:
        url: Where it is.
        sha256: Digest of its content, in hexadecimal.
        folder: Folder in the cache of `mesa_llm`.
        advice: What to do where it cannot be had.

    Raises:
        ConfigError: If pooch is not installed, or the file cannot be had.
    """
    try:
        pooch = importlib.import_module("pooch")
    except ImportError:
        raise ConfigError(f"the original's files need pooch: `pip install pooch`, or {advice}") from None
    name = url.rpartition("/")[2]
    try:
        return Path(pooch.retrieve(url, f"sha256:{sha256}", fname=name, path=Path(pooch.os_cache("mesa_llm"), folder)))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} cannot be fetched from {url} ({one_line(str(error), 200)}); {advice}") from error
