"""Read text files in the encodings that users save them in."""

from __future__ import annotations

import codecs
import gzip
import logging
import re
import zlib
from pathlib import Path

from mesa_llm.errors import ConfigError

logger = logging.getLogger(__name__)

MAX_BYTES = 2**29
"""Maximum size of a file, in bytes."""

MAX_UNPACKED = 2**28
"""Maximum size of a decompressed file, in bytes."""

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins like UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks and their encodings."""

GZIP = b"\x1f\x8b"
"""First bytes of a gzip file."""

SAVE_AS = "save it as UTF-8 (in Excel: Save As, “CSV UTF-8”)"

_LETTER, _SMALL = r"[^\W\d_]", "[a-zß-öø-ÿ]"
_FOREIGN = re.compile(
    rf"[^\W\d_\x00-\x7f]{{4}}"
    rf"|{_LETTER}[ƒ„†‡ˆ‰‹“”•˜™›€‚¡¢£¥¦¨©¬®¯±²³´¶¸¹¼½¾¿÷×]{_LETTER}"
    rf"|{_LETTER}[ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞŒ](?={_SMALL})"
    rf"|{_LETTER}{{3}}[¹²³]|[ŠšŽžŸ¤]|[aeiouy]œ"
)
"""Signs that a text decoded as Windows-1252 is in another encoding: four accented letters in a row, symbols or
capitals within a word, and letters that also occur in Eastern European encodings."""


def read_bytes(path: Path) -> bytes:
    """Read a file, decompressing gzip.

    Raises:
        ConfigError: If it cannot be opened or decompressed, or is too large.
    """
    try:
        if path.is_dir():
            raise ConfigError(f"{path} is a folder; wanted a file")
        if (size := path.stat().st_size) > MAX_BYTES:
            raise ConfigError(f"{path} has {size:,} bytes; files of up to {MAX_BYTES:,} are read")
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: NUL in the path
        raise ConfigError(f"{path} cannot be opened: {getattr(error, 'strerror', None) or error}") from error
    if not content.startswith(GZIP):
        return content
    try:
        with gzip.open(path) as file:
            content = file.read(MAX_UNPACKED + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"{path} cannot be unpacked: {error}") from error
    if len(content) > MAX_UNPACKED:
        raise ConfigError(f"{path} has more than {MAX_UNPACKED:,} bytes when unpacked; so many are not read")
    return content


def read_text(path: str | Path) -> str:
    """Read a text file in UTF-8, UTF-16, UTF-32 or, with a warning if nothing else fits, Windows-1252.

    All line endings become line feeds.

    Raises:
        ConfigError: If the file cannot be read, or its encoding cannot be determined.
    """
    path = Path(path)
    return decoded(read_bytes(path), path).replace("\r\n", "\n").replace("\r", "\n")


def decoded(content: bytes, path: Path) -> str:
    """Decode the content of a file as `read_text` does, but keep its line endings.

    Raises:
        ConfigError: If its encoding cannot be determined.
    """
    mark, encoding = next((pair for pair in MARKS if content.startswith(pair[0])), (b"", "utf-8"))
    if not mark and 0 in content[:4096]:
        encoding = _wide(content[:4096])
    try:
        text = content[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        if mark or encoding != "utf-8":
            raise ConfigError(f"{path} is not valid {encoding.upper()}: {error.reason}; {SAVE_AS}") from error
        text = _western(content, path)
    if "\0" in text:
        raise ConfigError(f"{path} is not a text file: it contains NUL characters; {SAVE_AS}")
    return text


def _wide(head: bytes) -> str:
    """Detect UTF-16 without a byte order mark by the NULs in its ASCII characters."""
    high, low = head[0::2].count(0), head[1::2].count(0)
    if max(high, low) < len(head) / 5 or min(high, low) > len(head) / 20:
        return "utf-8"
    return "utf-16-le" if low > high else "utf-16-be"


def _western(content: bytes, path: Path) -> str:
    """Decode Windows-1252, the only single-byte encoding supported.

    Raises:
        ConfigError: If the text seems to be in another encoding.
    """
    try:
        text = content.decode("cp1252")
        foreign = _FOREIGN.search(text)
        if foreign is None and text.count("“") > text.count("”") + text.count("„"):
            foreign = re.search("“", text)
    except UnicodeDecodeError as error:
        text, foreign = "", error
    if foreign is not None:
        at = content[: foreign.start if isinstance(foreign, UnicodeDecodeError) else foreign.start()]
        line = len(re.split(rb"\r\n|\r|\n", at))
        raise ConfigError(f"{path}, line {line}: the text is neither UTF-8 nor Windows-1252; {SAVE_AS}")
    logger.warning("%s is not in UTF-8; it is read as Windows-1252. If letters are wrong, %s", path, SAVE_AS)
    return text


def numbered_lines(path: str | Path) -> list[tuple[int, str]]:
    """Read the non-blank lines of a text file with their line numbers, from 1.

    Only line feeds end a line, since other Unicode line breaks, such as U+2028, may occur within texts.

    Raises:
        ConfigError: If the file cannot be read, or its encoding cannot be determined.
    """
    return [(number, line) for number, line in enumerate(read_text(path).split("\n"), start=1) if line.strip()]
