"""Files of the original studies: never shipped, downloaded on request, and identified by their digests."""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import dataclass
from pathlib import Path

from mesa_llm.errors import ConfigError
from mesa_llm.text import one_line

ORIGINAL = "original"
"""Value of a parameter that takes a path, for the original file to be downloaded."""


def options_for_file(parameter: str) -> str:
    """Describe how to pass a file to a parameter, in Python and on the command line.

    Args:
        parameter: The parameter that takes its path.
    """
    return f"{parameter}= (--set {parameter}=PATH; of a task of bench, --set TASK.{parameter}=PATH)"


@dataclass(frozen=True)
class Original:
    """A published file."""

    study: str
    """Name of the study; the folder in the cache."""

    name: str
    """File name."""

    url: str
    """Address to download it from."""

    sha256: str
    """Its digest; only this exact file is compared with published numbers."""

    licence: str
    """Its licence."""

    def is_content(self, content: bytes) -> bool:
        """Check whether bytes are those of exactly this file."""
        return hashlib.sha256(content).hexdigest() == self.sha256

    def is_file(self, path: str | Path | None) -> bool:
        """Check whether a path leads to exactly this file; None and an empty path do not."""
        try:
            return bool(path) and self.is_content(Path(path or "").read_bytes())
        except OSError:
            return False

    def fetch(self, parameter: str) -> Path:
        """Download the file once, check its digest, and keep it in the user's cache.

        Args:
            parameter: The parameter that takes its path.

        Raises:
            ConfigError: If pooch is not installed, or the file cannot be downloaded.
        """
        advice = f"download {self.url} yourself, and give its path as {options_for_file(parameter)}"
        try:
            pooch = importlib.import_module("pooch")
        except ImportError:
            raise ConfigError(f"{parameter}={ORIGINAL!r} needs pooch: `pip install pooch`, or {advice}") from None
        folder = Path(pooch.os_cache("mesa_llm"), self.study)
        try:
            return Path(pooch.retrieve(self.url, f"sha256:{self.sha256}", fname=self.name, path=folder))
        except (OSError, ValueError) as error:
            reason = one_line(str(error), 200)
            raise ConfigError(
                f"{parameter}={ORIGINAL!r}: {self.name} cannot be fetched ({reason}); {advice}"
            ) from error

    def path(self, given: str | Path, parameter: str) -> Path:
        """Return the path of a parameter's file, downloading this one if needed.

        Args:
            given: Value of the parameter: `original` for this file, or the path of another.
            parameter: The parameter.

        Raises:
            ConfigError: If this file has to be downloaded and cannot be; see `fetch`.
        """
        return self.fetch(parameter) if given == ORIGINAL else Path(given)
