"""Files of the original studies: not included, downloaded on request, and identified by digest."""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import dataclass
from pathlib import Path

from mesa_llm.errors import ConfigError
from mesa_llm.text import one_line

ORIGINAL = "original"
"""Value of a path parameter to download the original file."""


def options_for_file(parameter: str) -> str:
    """Describe how to pass a file to a parameter, in Python and on the command line.

    Args:
        parameter: Name of the path parameter.
    """
    return f"{parameter}= (--set {parameter}=PATH; of a task of bench, --set TASK.{parameter}=PATH)"


@dataclass(frozen=True)
class Original:
    """A published file."""

    study: str
    """Name of the study, also its cache folder."""

    name: str
    """File name."""

    url: str
    """Download address."""

    sha256: str
    """Its digest. Only this exact file is compared with published numbers."""

    licence: str
    """Its licence."""

    def is_content(self, content: bytes) -> bool:
        """Check whether bytes are exactly this file's."""
        return hashlib.sha256(content).hexdigest() == self.sha256

    def is_file(self, path: str | Path | None) -> bool:
        """Check whether a path leads to exactly this file. None and an empty path do not."""
        try:
            return bool(path) and self.is_content(Path(path or "").read_bytes())
        except OSError:
            return False

    def fetch(self, parameter: str) -> Path:
        """Download the file once, check its digest, and store it in the user's cache.

        Args:
            parameter: Name of the path parameter.

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
                f"{parameter}={ORIGINAL!r}: {self.name} cannot be downloaded ({reason}); {advice}"
            ) from error

    def path(self, given: str | Path, parameter: str) -> Path:
        """Return the path of a parameter's file, downloading this one if needed.

        Args:
            given: Value of the parameter: `original` for this file, or another path.
            parameter: Name of the parameter.

        Raises:
            ConfigError: If this file cannot be downloaded; see `fetch`.
        """
        return self.fetch(parameter) if given == ORIGINAL else Path(given)
