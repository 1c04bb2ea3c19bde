"""Images that agents see, for language models that take them."""

from __future__ import annotations

import base64
import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError

MAX_BYTES = 20_000_000
"""Maximum size of an image, in bytes; providers take no larger ones."""

SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
"""First bytes of a file → its media type. WebP, which has its name further on, is the fourth."""


class Image:
    """An image in a prompt: PNG, JPEG, GIF or WebP.

    Two images are equal if their bytes are.
    """

    def __init__(self, source: str | Path | bytes) -> None:
        """Read an image.

        Args:
            source: Its file, or its bytes.

        Raises:
            ConfigError: If it cannot be read, is too large, or of another kind.
        """
        try:
            self.data = source if isinstance(source, bytes) else Path(source).read_bytes()
        except OSError as error:
            raise ConfigError(f"the image {str(source)!r} cannot be read: {error.strerror or error}") from error
        kinds = [kind for start, kind in SIGNATURES.items() if self.data.startswith(start)]
        if self.data[:4] == b"RIFF" and self.data[8:12] == b"WEBP":
            kinds = ["image/webp"]
        what = "an image" if isinstance(source, bytes) else f"the image {str(source)!r}"
        if not kinds:
            raise ConfigError(f"{what} begins with {self.data[:8]!r}, and is no PNG, JPEG, GIF or WebP; convert it")
        if len(self.data) > MAX_BYTES:
            raise ConfigError(f"{what} has {len(self.data):,} bytes; make it smaller, at most {MAX_BYTES:,}")
        self.media_type = kinds[0]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its bytes."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def wire(self) -> dict[str, Any]:
        """The image as a part of a message in the format of OpenAI's chat completions."""
        url = f"data:{self.media_type};base64,{base64.b64encode(self.data).decode()}"
        return {"type": "image_url", "image_url": {"url": url}}

    @property
    def note(self) -> str:
        """What the run log keeps of it: kind, size and digest; not the image."""
        return f"{self.media_type}, {len(self.data):,} bytes, sha256 {self.digest}"

    def __eq__(self, other: object) -> bool:
        """Check whether two images have the same bytes."""
        return isinstance(other, Image) and self.data == other.data

    def __hash__(self) -> int:
        """Return the hash of its bytes."""
        return hash(self.data)

    def __repr__(self) -> str:
        """Return its kind and size."""
        return f"<Image {self.media_type}, {len(self.data):,} bytes>"
