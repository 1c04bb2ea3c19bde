"""Read text files in the encodings that users save them in."""

from __future__ import annotations

import codecs
import gzip
import json
import logging
import re
import zlib
from pathlib import Path
from typing import Any

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

NAME_IT = f"{SAVE_AS}, or name its encoding with encoding="
"""Advice for a text whose encoding cannot be determined."""

_LETTER, _SMALL, _MARKED = r"[^\W\d_]", "[a-zß-öø-ÿ]", r"[^\W\d_\x00-\x7f]"
_FOREIGN = re.compile(
    rf"{_MARKED}{{4}}"
    rf"|{_LETTER}[ƒ„†‡ˆ‰‹“”•˜™›€‚¡¢£¥¦¨©¬®¯±²³´¶¸¹¼½¾¿÷×]{_LETTER}"
    rf"|{_LETTER}[ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞŒ](?={_SMALL})"
    rf"|{_LETTER}{{3}}[¹²³]|[ŠšŽžŸ¤]|[aeiouy]œ|{_LETTER}[‚ˆƒ‡]|[¡-¿]{{4}}"
    # Central European (1250): £ukasz, ¯aneta, Gdañsk, Kowaliæ, Szõke, Brãila, Nìmec, Dùm, and Czech words such as Øidiè
    rf"|[£¯¥]{_SMALL}|œ[^\W\d_uidct]|ñ(?=[^\W\d_aeiouáéíóú])|[aeiouy]æ\b|õ(?![e\W])|ã(?=[^\W\d_oes])"
    rf"|È(?={_SMALL})|è(?=[aiouyáí])|ì(?={_LETTER})|{_LETTER}ù(?={_LETTER})"
    rf"|\b(?=\w*[øèÈØ])(?=\w*[áíýúìù])\w+|\b(?=\w*[øØ])\w*è"
    # Turkish (1254) and Romanian: Ayþe, Ýbrahim, Güneþ, Daðlý; Baltic (1257): Bçrziòð
    rf"|[þÞýÝðÐ](?={_LETTER})|(?<={_SMALL})[þÞýÝðÐ]|ç(?=[^\W\d_aeouyàâéèêëïoóôõãúùûí])"
)
"""Signs that a text decoded as Windows-1252 is in another encoding: four accented letters in a row, symbols or
capitals within a word, and letters where no Western language has them."""

_PAIR = re.compile(rf"{_MARKED}{{2}}")
_WESTERN_PAIR = re.compile(
    r"[äöåøæüß]{2}|[çÿ].|é[éâêèîàë]|ü[íéèï]|ï[éü]|õ[ée]|ã[éí]|œ[ûù]|[áéíóú][üñç]|ñ[áéíóú]", re.IGNORECASE
)
"""Two accented letters in a row as Western languages have them: Ääni, ação, créée, lingüística."""

_UTF8_PART = re.compile(rb"[\xc3-\xc5][\x80-\xbf]|\xe2\x80[\x93-\xa6]|\xc2[\xa0-\xbf]")
"""Bytes that are a character in UTF-8, and nothing that anybody writes in Windows-1252."""

_TWICE = re.compile(
    r"Ã[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’•˜™š›œžŸ]|[ÄÅ][\x80-\x9f¡-§©-¬®-º¼-¿€‚ƒ„†‡ˆ‰Š‹ŒŽ•˜™š›œžŸ]"
    r"|â(?:€|\x80)[\x80-\xbf™œ˜“”¦]|Â[\xa0-\xbf](?!\w)"
)
"""UTF-8 that some program took for Windows-1252, and saved as UTF-8 again."""


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


def read_text(path: str | Path, encoding: str | None = None) -> str:
    """Read a text file in UTF-8, UTF-16, UTF-32 or, with a warning if nothing else fits, Windows-1252.

    All line endings become line feeds.

    Args:
        path: The file.
        encoding: Its encoding, such as `cp1250`; None: determined from the file.

    Raises:
        ConfigError: If the file cannot be read, or its encoding cannot be determined.
    """
    path = Path(path)
    return decoded(read_bytes(path), path, encoding).replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: str | Path) -> Any:
    """Read a JSON file.

    Raises:
        ConfigError: If it cannot be opened, or is not JSON. The message names the file.
    """
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not a readable JSON file: {error}") from error


def decoded(content: bytes, path: Path, encoding: str | None = None) -> str:
    """Decode the content of a file as `read_text` does, but keep its line endings.

    Raises:
        ConfigError: If its encoding cannot be determined, or is not the one that is given.
    """
    if encoding is not None:
        return _decoded_as(content, path, encoding)
    mark, known = next((pair for pair in MARKS if content.startswith(pair[0])), (b"", "utf-8"))
    if not mark and 0 in content[:4096]:
        known = _wide(content[:4096])
    try:
        text = content[len(mark) :].decode(known)
    except UnicodeDecodeError as error:
        if mark or known != "utf-8":
            raise ConfigError(f"{path} is not valid {known.upper()}: {error.reason}; {NAME_IT}") from error
        text = _western(content, path)
    if "\0" in text:
        raise ConfigError(f"{path} is not a text file: it contains NUL characters; {NAME_IT}")
    if twice := _TWICE.search(text):
        raise ConfigError(
            f"{path}, line {_line_at(text, twice.start())}: {_word_at(text, twice)!r} is UTF-8 that a program took for "
            f"Windows-1252 and saved again; {SAVE_AS} from the original, or keep it as it is with encoding='utf-8'"
        )
    if lost := text.count("\ufffd"):
        line = _line_at(text, text.index("\ufffd"))
        logger.warning("%s: %d letters were lost before (“\ufffd”), the first on line %d", path, lost, line)
    return text


def _decoded_as(content: bytes, path: Path, encoding: str) -> str:
    """Decode in the encoding that the user names.

    Raises:
        ConfigError: If there is no such encoding, or the content is in another one.
    """
    mark = next((mark for mark, _ in MARKS if content.startswith(mark) and encoding.lower().startswith("utf")), b"")
    if not encoding.lower().startswith("utf") and not content.isascii() and _is_utf8(content):
        logger.warning("%s is read as %s, as you say; it is valid UTF-8, too", path, encoding)
    name = encoding if not mark else next(name for one, name in MARKS if one == mark)
    try:
        return content[len(mark) :].decode(name)
    except LookupError:
        raise ConfigError(f"there is no encoding {encoding!r:.60}; wanted one of Python's, such as 'cp1250'") from None
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        raise ConfigError(f"{path}, line {line}: the text is not in {encoding}: {error.reason}") from None


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _line_at(text: str, index: int) -> int:
    return len(re.split(r"\r\n|\r|\n", text[:index]))


def _word_at(text: str, match: re.Match[str]) -> str:
    """Return the word around a match, for errors."""
    begin = re.search(r"\w*$", text[max(0, match.start() - 30) : match.start()])
    end = re.compile(r"\w*").match(text, match.end())
    return (begin[0] if begin else "") + match[0] + (end[0][:30] if end else "")


def _wide(head: bytes) -> str:
    """Detect UTF-16 without a byte order mark by the NULs in its ASCII characters."""
    high, low = head[0::2].count(0), head[1::2].count(0)
    if max(high, low) < len(head) / 5 or min(high, low) > len(head) / 20:
        return "utf-8"
    return "utf-16-le" if low > high else "utf-16-be"


def _western(content: bytes, path: Path) -> str:
    """Decode Windows-1252, the only single-byte encoding that is guessed.

    Raises:
        ConfigError: If the text seems to be in another encoding.
    """
    if part := _UTF8_PART.search(content):
        line = len(re.split(rb"\r\n|\r|\n", content[: part.start()]))
        raise ConfigError(f"{path}, line {line}: this part of the file is UTF-8, and another part is not; {SAVE_AS}")
    try:
        text = content.decode("cp1252")
        foreign = _foreign(text)
    except UnicodeDecodeError as error:
        text, foreign = "", error.start
    if foreign is not None:
        line = len(re.split(rb"\r\n|\r|\n", content[:foreign]))
        raise ConfigError(f"{path}, line {line}: the text is neither UTF-8 nor Windows-1252; {NAME_IT}")
    logger.warning("%s is not in UTF-8; it is read as Windows-1252. If letters are wrong, %s", path, NAME_IT)
    return text


def _foreign(text: str) -> int | None:
    """Return where a text that was decoded as Windows-1252 is in another encoding; None if nothing shows it."""
    if found := _FOREIGN.search(text):
        return found.start()
    for pair in _PAIR.finditer(text):
        if _WESTERN_PAIR.fullmatch(pair[0]) is None:
            return pair.start()
    if text.count("“") > text.count("”") + text.count("„"):
        return text.index("“")
    return None


def numbered_lines(path: str | Path, encoding: str | None = None) -> list[tuple[int, str]]:
    """Read the non-blank lines of a text file with their line numbers, from 1.

    Only line feeds end a line, since other Unicode line breaks, such as U+2028, may occur within texts.

    Raises:
        ConfigError: If the file cannot be read, or its encoding cannot be determined.
    """
    return [
        (number, line) for number, line in enumerate(read_text(path, encoding).split("\n"), start=1) if line.strip()
    ]
