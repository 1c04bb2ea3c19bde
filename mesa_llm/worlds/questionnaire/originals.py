"""Files of the original studies: never shipped, fetched on request, and known by their digests."""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import dataclass
from pathlib import Path

from mesa_llm.errors import ConfigError
from mesa_llm.text import one_line

ORIGINAL = "original"
"""What a parameter says in place of a file to have the original fetched."""


def options_for_file(parameter: str) -> str:
    """Name the options that a parameter's file is given by, in Python and on the command line.

    Args:
        parameter: The parameter that takes its path.
    """
    return f"{parameter}= (--set {parameter}=PATH; of a task of bench, --set TASK.{parameter}=PATH)"


@dataclass(frozen=True)
class Original:
    """A published file."""

    study: str
    """Whose it is; the folder in the cache."""

    name: str
    """File name."""

    url: str
    """Where it is."""

    sha256: str
    """Its digest; what is compared with published numbers is this very file alone."""

    licence: str
    """Under which it may be used."""

    def is_content(self, content: bytes) -> bool:
        """Check whether bytes are those of this very file."""
        return hashlib.sha256(content).hexdigest() == self.sha256

    def is_file(self, path: str | Path | None) -> bool:
        """Check whether a path leads to this very file; None and empty lead nowhere."""
        try:
            return bool(path) and self.is_content(Path(path or "").read_bytes())
        except OSError:
            return False

    def fetch(self, parameter: str) -> Path:
        """Download the file once, check its digest, and keep it in the user's cache.

        Args:
            parameter: The parameter that takes its path.

        Raises:
            ConfigError: If pooch is not installed, or the file cannot be had.
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
        """Return where a parameter's file is: this one, fetched if need be, for `original`; else as given."""
        return self.fetch(parameter) if given == ORIGINAL else Path(given)
