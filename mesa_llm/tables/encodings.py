"""Texts of files in the encodings that people save them in."""

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
"""Maximum size of a file."""

MAX_UNPACKED = 2**28
"""Maximum size of what a packed file holds."""

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins like UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""First bytes of a file → its encoding."""

GZIP = b"\x1f\x8b"
"""First bytes of a packed file."""

SAVE_AS = "save it as UTF-8 (in Excel: Save As, “CSV UTF-8”)"

_LETTER, _SMALL = r"[^\W\d_]", "[a-zß-öø-ÿ]"
_FOREIGN = re.compile(
    rf"[^\W\d_\x00-\x7f]{{4}}"
    rf"|{_LETTER}[ƒ„†‡ˆ‰‹“”•˜™›€‚¡¢£¥¦¨©¬®¯±²³´¶¸¹¼½¾¿÷×]{_LETTER}"
    rf"|{_LETTER}[ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞŒ](?={_SMALL})"
    rf"|{_LETTER}{{3}}[¹²³]|[ŠšŽžŸ¤]|[aeiouy]œ"
)
"""What Windows-1252 makes of texts in other encodings, and Western European words do not have: four letters with
accents in a row, signs or capitals within a word, and the letters that it shares with Eastern European ones."""


def read_bytes(path: Path) -> bytes:
    """Read a file, and unpack it if it is packed by gzip.

    Raises:
        ConfigError: If it cannot be opened or unpacked, or is too large.
    """
    try:
        if path.is_dir():
            raise ConfigError(f"{path} is a folder; wanted a file")
        if (size := path.stat().st_size) > MAX_BYTES:
            raise ConfigError(f"{path} has {size:,} bytes; files of up to {MAX_BYTES:,} are read")
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # a ValueError: a NUL within the path
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
    """Read a text in UTF-8, UTF-16, UTF-32 or Windows-1252, which is assumed with a warning where nothing else fits.

    Every line ends with a line feed, whichever way it does in the file.

    Raises:
        ConfigError: If the file cannot be read, or its encoding cannot be told.
    """
    path = Path(path)
    return decoded(read_bytes(path), path).replace("\r\n", "\n").replace("\r", "\n")


def decoded(content: bytes, path: Path) -> str:
    """Decode what a file holds, as `read_text` does; lines end as they do in the file.

    Raises:
        ConfigError: If its encoding cannot be told.
    """
    mark, encoding = next((pair for pair in MARKS if content.startswith(pair[0])), (b"", "utf-8"))
    if not mark and 0 in content[:4096]:
        encoding = _wide(content[:4096])
    try:
        text = content[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        if mark or encoding != "utf-8":
            raise ConfigError(f"{path} is no whole text in {encoding.upper()}: {error.reason}; {SAVE_AS}") from error
        text = _western(content, path)
    if "\0" in text:
        raise ConfigError(f"{path} is no text: it holds NUL characters; {SAVE_AS}")
    return text


def _wide(head: bytes) -> str:
    """Tell UTF-16 without a mark by the NULs of its ASCII characters."""
    high, low = head[0::2].count(0), head[1::2].count(0)
    if max(high, low) < len(head) / 5 or min(high, low) > len(head) / 20:
        return "utf-8"
    return "utf-16-le" if low > high else "utf-16-be"


def _western(content: bytes, path: Path) -> str:
    """Decode Windows-1252, the only encoding of one byte a character that is assumed.

    Raises:
        ConfigError: If the text looks like one in another encoding.
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
    logger.warning("%s is not in UTF-8; it is read as Windows-1252. Should letters be wrong: %s", path, SAVE_AS)
    return text


def numbered_lines(path: str | Path) -> list[tuple[int, str]]:
    """Read the lines of a text that are not blank, each with its number, from 1.

    Only line feeds end a line: other line breaks of Unicode, such as U+2028, may occur within texts.

    Raises:
        ConfigError: If the file cannot be read, or its encoding cannot be told.
    """
    return [(number, line) for number, line in enumerate(read_text(path).split("\n"), start=1) if line.strip()]
