"""Reads all text that a file holds, whatever it is packed or encoded in, within bounds.

Tables, workbooks, databases and archives are opened as those who get them would open them; what cannot be read is
named. Nothing in a file is run.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import html
import io
import lzma
import quopri
import re
import sqlite3
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mesa_llm.errors import ConfigError
from mesa_llm.llm.credentials import visible
from mesa_llm.runlog.layout import connect
from mesa_llm.tables import kind_of, read_table
from mesa_llm.tables.table import READERS

MAX_DEPTH = 6
"""Maximum number of archives and encodings inside of one another."""

MAX_BYTES = 1_000_000_000
"""Maximum number of bytes of one file, unpacked, that are looked through."""

MAX_MEMBERS = 20_000
"""Maximum number of members of archives of one file that are looked through."""

PIECE = 4_000_000
"""Number of characters that are looked through at a time."""

OVERLAP = 2_000
"""Number of characters by which two pieces of a text overlap, so that no key is cut."""

MAX_VIEWS = 3
"""Maximum number of decodings of a text, one after the other."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some of the text in a file, or what could not be read."""

    place: str
    """Where it stands inside the file; empty: in the file itself."""

    text: str
    """The text, decoded."""

    line: int = 0
    """Line of the file at which the text begins; 0: it has no lines."""

    column: str = ""
    """Name of the column that it is a cell of."""

    fault: str = ""
    """Why nothing more could be read."""

    is_again: bool = False
    """Whether the text around it has been read already, be it as one text or in another encoding."""


@dataclass(slots=True)
class _Room:
    """What may still be read of one file."""

    n_bytes: int = MAX_BYTES
    n_members: int = MAX_MEMBERS

    seen: set[bytes] = field(default_factory=set[bytes])
    """What has been decoded of texts."""

    def take(self, stream: Any) -> bytes:
        """Read a stream as far as there is room.

        Raises:
            ConfigError: If there is more.
        """
        content = bytes(stream.read(self.n_bytes + 1))
        return self.taken(content)

    def taken(self, content: bytes) -> bytes:
        """Count unpacked bytes.

        Raises:
            ConfigError: If they are too many.
        """
        self.n_bytes -= len(content)
        self.n_members -= 1
        if self.n_bytes < 0 or self.n_members < 0:
            raise ConfigError(f"it unpacks to more than {MAX_BYTES:,} bytes or {MAX_MEMBERS:,} members")
        return content


_BROKEN = (
    *(OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, EOFError, RuntimeError, MemoryError),
    *(ConfigError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, tarfile.TarError, sqlite3.Error, binascii.Error),
    *(ArithmeticError, NotImplementedError, AssertionError),
)
"""Exceptions of readers at files that are damaged, or made to do harm."""

_UNREAD = (
    (b"%PDF", "a PDF"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or encrypted document of Office"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x89HDF\r\n\x1a\n", "HDF5"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (b"\x04\x22\x4d\x18", "compressed with lz4"),
    (b"MZ", "a program"),
    (b"\x7fELF", "a program"),
    (b"OggS", "a recording"),
    (b"RIFF", "a recording or picture"),
    (b"ID3", "a recording"),
    (b"$FL2", "a file of SPSS"),
    (b"$FL3", "a file of SPSS"),
    (b"GGUF", "a language model"),
)
"""First bytes of files whose text is not read, or not all of it → what they are."""

_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*", b"RIFF")


def pieces_of(file: Path) -> Iterator[Piece]:
    """Yield all text in a file, and what of it could not be read."""
    room = _Room()
    try:
        with file.open("rb") as stream:
            content = room.take(stream)
    except (OSError, ConfigError, MemoryError) as error:
        yield Piece("", "", fault=_reason(error))
        return
    yield from _content(content, file.name, "", room, 0)


def _content(content: bytes, name: str, place: str, room: _Room, depth: int) -> Iterator[Piece]:
    """Yield the text in the content of a file.

    Args:
        content: The content.
        name: Name of the file, whose suffix tells tables apart.
        place: Where it stands.
        room: What may still be read.
        depth: Number of archives and encodings around it.
    """
    if not content:
        return
    if depth > MAX_DEPTH:
        yield Piece(place, "", fault=f"it holds more than {MAX_DEPTH} archives or encodings inside of one another")
        return
    try:
        yield from _by_form(content, name, place, room, depth)
    except RecursionError:
        yield Piece(place, "", fault="it is nested too deeply")
    except _BROKEN as error:
        yield Piece(place, "", fault=_reason(error))
        yield from _strings(content, place)


def _by_form(content: bytes, name: str, place: str, room: _Room, depth: int) -> Iterator[Piece]:
    if content.startswith(b"\x1f\x8b"):
        member, is_whole = _unzipped(content, room)
        if not is_whole:
            yield Piece(place, "", fault="its gzip is cut or damaged")
        yield from _content(member, _inner(name, ".gz"), place, room, depth + 1)
    elif content.startswith(b"BZh"):
        with bz2.open(io.BytesIO(content)) as stream:
            member = room.take(stream)
        yield from _content(member, _inner(name, ".bz2"), place, room, depth + 1)
    elif content.startswith((b"\xfd7zXZ\0", b"\x5d\0\0")):
        with lzma.open(io.BytesIO(content)) as stream:
            member = room.take(stream)
        yield from _content(member, _inner(name, ".xz"), place, room, depth + 1)
    elif content.startswith(b"SQLite format 3\0"):
        yield from _database(content, place, room, depth)
    elif content.startswith(b"PAR1"):
        yield from _parquet(content, place)
    elif content.startswith((b"ARROW1", b"FEA1")):
        yield from _frame(import_module("pandas").read_feather(io.BytesIO(content)), place)
    elif content[:11] == b"<stata_dta>" or (content[:1] in b"\x71\x72\x73" and kind_of(name) == ".dta"):
        yield from _frame(import_module("pandas").read_stata(io.BytesIO(content), convert_categoricals=False), place)
    elif zipfile.is_zipfile(io.BytesIO(content)):
        yield from _zip(content, place, room, depth)
    elif content[257:262] == b"ustar" or _is_tar(content):
        yield from _tar(content, place, room, depth)
    else:
        yield from _plain(content, name, place, room, depth)


def _plain(content: bytes, name: str, place: str, room: _Room, depth: int) -> Iterator[Piece]:
    """Yield what is in no container: text, or something that is not read."""
    what = next((what for mark, what in _UNREAD if content.startswith(mark)), "")
    is_picture = content.startswith(_PICTURES)
    if is_picture:
        yield from _picture(content, place)
    text = None if what or is_picture else text_of(content)
    if text is not None:
        yield from _text(text, name, place, room, depth)
        if kind_of(name) in READERS:
            yield from _cells(content, name, place)
        return
    if is_picture:
        what = "a picture, and nobody has looked at what it shows"
    yield Piece(place, "", fault=f"it is {what}" if what else "its form is not known")
    yield from _strings(content, place)


def _reason(error: BaseException) -> str:
    return " ".join(f"{error or type(error).__name__}".split())[:160]


def _inner(name: str, suffix: str) -> str:
    return name[: -len(suffix)] if name.lower().endswith(suffix) else name


def _join(place: str, part: str) -> str:
    return f"{place} › {part}" if place else part


# -- text


def text_of(content: bytes) -> str | None:
    """Decode a text in UTF-8, UTF-16 or UTF-32 with or without a mark, or in a code page; None: it is no text."""
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe\0\0", "utf-32-le"),
        (b"\0\0\xfe\xff", "utf-32-be"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
    ):
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    if b"\0" in content:
        return _wide(content)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace") if _is_cp1252(content) else content.decode("latin-1")
    n_controls = sum(text[:20_000].count(chr(code)) for code in (*range(1, 9), *range(14, 27), 127))
    return None if n_controls > max(8, len(text[:20_000]) / 50) else text


def _is_cp1252(content: bytes) -> bool:
    try:
        content.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return True


def _wide(content: bytes) -> str | None:
    """Decode UTF-16 or UTF-32 without a mark, by where its zeros stand; None: it is no text."""
    head = content[: min(len(content), 4096) // 4 * 4] or content
    shares = [head[first::4].count(0) / max(1, len(head[first::4])) for first in range(4)]
    pairs = (shares[0] + shares[2]) / 2, (shares[1] + shares[3]) / 2
    for encoding, is_it in (
        ("utf-32-le", shares[2] > 0.9 and shares[3] > 0.9 and shares[0] < 0.1),
        ("utf-32-be", shares[0] > 0.9 and shares[1] > 0.9 and shares[3] < 0.1),
        ("utf-16-le", pairs[1] > 0.3 > 0.1 > pairs[0]),
        ("utf-16-be", pairs[0] > 0.3 > 0.1 > pairs[1]),
    ):
        if is_it:
            return content.decode(encoding, "replace")
    text = content.decode("utf-8", "replace")
    return text.replace("\0", " ") if text.count("\0") + text.count("�") < len(text) / 20 else None


_ASCII_RUN, _WIDE_RUN = re.compile(rb"[\x09\x20-\x7e]{6,}"), re.compile(rb"(?:[\x20-\x7e]\0){6,}")
_WIDE_BE_RUN = re.compile(rb"(?:\0[\x20-\x7e]){6,}")


def _strings(content: bytes, place: str) -> Iterator[Piece]:
    """Yield what can be read in a file of an unknown form: runs of letters, of one byte or two."""
    for pattern, encoding in ((_ASCII_RUN, "ascii"), (_WIDE_RUN, "utf-16-le"), (_WIDE_BE_RUN, "utf-16-be")):
        text = "\n".join(found.decode(encoding, "replace") for found in pattern.findall(content))
        yield from (Piece(place, text[start : start + PIECE + OVERLAP]) for start in range(0, len(text), PIECE))


def _text(text: str, name: str, place: str, room: _Room, depth: int) -> Iterator[Piece]:
    """Yield a text, as it is and decoded, piece by piece."""
    line = 1
    for start in range(0, len(text), PIECE):
        piece = text[start : start + PIECE + OVERLAP]
        yield Piece(place, piece, line)
        line += piece.count("\n", 0, PIECE)
        yield from decoded_views(piece, place, room, depth)


_ESCAPE = re.compile(
    r"\\u(?:\{(?=[^}]{1,6}\}))?((?<=\{)[0-9a-fA-F]{1,6}(?=\})|[0-9a-fA-F]{4})\}?|\\x([0-9a-fA-F]{2})|\\([0-7]{3})"
    r"|\\([/\"'\\-])"
)
_QUOTED = re.compile(r"=[0-9A-F]{2}|=\r?\n")
_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}(?:\s{1,4}[A-Za-z0-9+/_-]{16,})*(?:\s{1,4}[A-Za-z0-9+/_-]{1,75})?={0,2}"
)
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{2}[ :]?){12,}(?![0-9A-Za-z])")


def decoded_views(text: str, place: str, room: _Room | None = None, depth: int = 0) -> Iterator[Piece]:
    """Yield what a text says once escapes, percent signs, entities, base64 and invisible characters are decoded.

    Args:
        text: The text.
        place: Where it stands.
        room: What may still be read of its file; None: as much as of a new one.
        depth: Number of archives and encodings around it.
    """
    room = room or _Room()
    known = {text}
    views = [text]
    for _ in range(MAX_VIEWS):
        views = [view for one in views for view in _views(one) if view not in known and not known.add(view)]
        yield from (Piece(place, view, is_again=True) for view in views)
    for view in known:
        yield from _packed(view, place, room, depth)


def _views(text: str) -> Iterator[str]:
    """Yield the text in other readings, where it has any."""
    yield visible(text) if not (text.isascii() and text.isprintable()) else text
    if "\\" in text:
        yield _ESCAPE.sub(_unescaped, text)
        yield re.sub(r"\\\r?\n\s*", "", text)  # a line that goes on
    if "%" in text:
        yield unquote(text)
    if "&" in text:
        yield html.unescape(text)
    if "=" in text and _QUOTED.search(text):
        yield quopri.decodestring(text.encode("utf-8", "replace")).decode("utf-8", "replace")
    if "\0" in text:
        yield text.replace("\0", "")


def _unescaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2]
    code = int(digits, 16) if digits else int(match[3], 8) if match[3] else ord(match[4])
    return chr(code) if code < 0x110000 else match[0]


def _packed(text: str, place: str, room: _Room, depth: int) -> Iterator[Piece]:
    """Yield what a text holds in base64 or hexadecimal digits, if it is text or a known form."""
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, _from_hex)):
        for match in pattern.finditer(text):
            content = decode(match[0])
            if len(content) >= 6 and content not in room.seen and _is_telling(content):
                room.seen.add(content)
                yield from _content(room.taken(content), "", _join(place, "encoded"), room, depth + 1)


def _from_base64(word: str) -> bytes:
    word = re.sub(r"\s+", "", word).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(word[: len(word) - (len(word) % 4 == 1)] + "=" * (-len(word) % 4 % 3))
    except (binascii.Error, ValueError):
        return b""


def _from_hex(word: str) -> bytes:
    return bytes.fromhex(re.sub(r"[ :]", "", word))


def _is_telling(content: bytes) -> bool:
    """Check whether decoded bytes are text, or begin as a container does; random bytes do not."""
    marks = (b"\x1f\x8b\x08", b"PK\x03\x04", b"BZh", b"\xfd7zXZ\0", b"SQLite format 3\0", b"PAR1")
    if content.startswith((*marks, b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return True
    head = content[:400].replace(b"\0", b"") if b"\0" in content[:8] else content[:400]
    n_plain = sum(32 <= byte < 127 or byte in b"\t\r\n" or byte >= 0xC2 for byte in head)
    return len(head) >= 6 and n_plain == len(head) and sum(32 <= byte < 127 for byte in head) > 0.8 * len(head)


# -- tables


def _cells(content: bytes, name: str, place: str) -> Iterator[Piece]:
    """Yield the cells of a table with the names of their columns; none if it is no table."""
    with tempfile.TemporaryDirectory(prefix="mesa-llm-") as folder:
        file = Path(folder, f"table{kind_of(name)}")
        file.write_bytes(content)
        try:
            rows = read_table(file)
        except (ConfigError, RecursionError):
            return
    for line, row in rows:
        if not isinstance(row, str):
            yield from (Piece(place, str(cell), line, str(column), is_again=True) for column, cell in row.items())


def _frame(frame: Any, place: str) -> Iterator[Piece]:
    for column in frame.columns:
        yield Piece(place, str(column))
        yield from (Piece(place, str(cell), 0, str(column)) for cell in frame[column] if cell is not None)


def _parquet(content: bytes, place: str) -> Iterator[Piece]:
    parquet: Any = import_module("pyarrow.parquet")
    file = parquet.ParquetFile(io.BytesIO(content))
    for name, value in (file.schema_arrow.metadata or {}).items():
        if name not in (b"pandas", b"ARROW:schema"):
            yield Piece(
                _join(place, "metadata"), f"{name.decode('utf-8', 'replace')} = {value.decode('utf-8', 'replace')}"
            )
    for index in range(file.num_row_groups):
        table = file.read_row_group(index)
        for column in table.column_names:
            for cell in table.column(column).to_pylist():
                if cell is not None:
                    text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
                    yield Piece(place, text, 0, column)


def _database(content: bytes, place: str, room: _Room, depth: int) -> Iterator[Piece]:
    """Yield the cells of a SQLite database, and what lies in its freed pages."""
    with closing(connect(":memory:")) as database:
        database.deserialize(content)
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for (statement,) in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall():
            yield Piece(place, statement)
        for name in names:
            quoted = name.replace('"', '""')
            cursor = database.execute(f'SELECT * FROM "{quoted}"')
            columns = [one[0] for one in cursor.description]
            for row in cursor:
                for column, cell in zip(columns, row, strict=True):
                    if isinstance(cell, bytes):
                        yield from _content(room.taken(cell), "", _join(place, f"table {name}"), room, depth + 1)
                    elif cell is not None:
                        yield Piece(_join(place, f"table {name}"), str(cell), 0, column)
    yield from _strings(content, place)


# -- archives


def _unzipped(content: bytes, room: _Room) -> tuple[bytes, bool]:
    """Unpack gzip as far as it goes; return whether that is all of it."""
    found, is_whole = b"", True
    while content.startswith(b"\x1f\x8b"):
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        found += room.taken(unpacker.decompress(content, room.n_bytes + 1))
        content, is_whole = unpacker.unused_data, is_whole and unpacker.eof
    return found, is_whole


def _zip(content: bytes, place: str, room: _Room, depth: int) -> Iterator[Piece]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        is_workbook = "xl/workbook.xml" in names
        if is_workbook:
            yield from _workbook(content, place, room)
        if archive.comment:
            yield Piece(place, archive.comment.decode("utf-8", "replace"))
        for entry in archive.infolist():
            inner = _join(place, entry.filename)
            yield Piece(inner, f"{entry.filename}\n{entry.comment.decode('utf-8', 'replace')}")
            if entry.is_dir():
                continue
            if entry.flag_bits & 1:
                yield Piece(inner, "", fault="it is encrypted")
                continue
            try:
                with archive.open(entry) as stream:
                    member = room.take(stream)
            except _BROKEN as error:
                yield Piece(inner, "", fault=_reason(error))
                if room.n_bytes < 0 or room.n_members < 0:
                    return
                continue
            if entry.filename.endswith((".xml", ".rels", ".vml")) and len(names) > 1:
                yield from _markup(member, inner)
            else:
                yield from _content(member, entry.filename, inner, room, depth + 1)


_TAG = re.compile(r"<[^<>]*>")
_RUNS = re.compile(
    r"</(?:w:|a:)?t></(?:w:|a:)?r><(?:w:|a:)?r(?: [^>]{0,200})?>(?:<(?:w:|a:)?rPr>.{0,600}?</(?:w:|a:)?rPr>)?"
    r"<(?:w:|a:)?t(?: [^>]{0,60})?>"
)
"""End of a run of letters to the start of the next one in the same paragraph or cell."""


def _markup(content: bytes, place: str) -> Iterator[Piece]:
    """Yield the texts of a document in XML, its runs joined, and the values of attributes."""
    text = text_of(content) or ""
    joined = _RUNS.sub("", text)
    plain = html.unescape(_TAG.sub("\n", joined))
    values = html.unescape("\n".join(re.findall(r'="([^"]{6,})"', text)))
    for one in (plain, values):
        lines = "\n".join(line for line in map(str.strip, one.split("\n")) if line)
        for start in range(0, len(lines), PIECE):
            piece = lines[start : start + PIECE + OVERLAP]
            yield Piece(place, piece)
            yield from decoded_views(piece, place)


def _workbook(content: bytes, place: str, room: _Room) -> Iterator[Piece]:
    """Yield the cells of all sheets of a workbook, hidden ones too, with the first row as names of columns."""
    openpyxl: Any = import_module("openpyxl")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        room.n_bytes -= sum(entry.file_size for entry in archive.infolist())
    if room.n_bytes < 0:
        raise ConfigError(f"it unpacks to more than {MAX_BYTES:,} bytes")
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True)
    try:
        for sheet in book.worksheets:
            sheet.reset_dimensions()
            inner = _join(place, f"sheet {sheet.title!r}")
            names: list[str] = []
            for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
                if not names and any(row):
                    names = ["" if cell is None else str(cell) for cell in row]
                for index, cell in enumerate(row):
                    if cell is not None:
                        yield Piece(inner, str(cell), number, names[index] if index < len(names) else "")
    finally:
        book.close()


def _is_tar(content: bytes) -> bool:
    return len(content) >= 512 and content[156:157] in b"\x0001235" and tarfile.is_tarfile(io.BytesIO(content))


def _tar(content: bytes, place: str, room: _Room, depth: int) -> Iterator[Piece]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for member in archive:
            inner = _join(place, member.name)
            yield Piece(inner, f"{member.name}\n{member.linkname}\n{member.pax_headers or ''}")
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                yield from _content(room.take(stream), member.name, inner, room, depth + 1)


def _picture(content: bytes, place: str) -> Iterator[Piece]:
    """Yield the texts that go with a picture, and where it was taken."""
    image: Any = import_module("PIL.Image")
    try:
        with image.open(io.BytesIO(content)) as picture:
            facts = {str(name): str(value) for name, value in picture.info.items() if isinstance(value, str | bytes)}
            tags = picture.getexif()
            if where := tags.get_ifd(0x8825):
                yield Piece(_join(place, "Exif"), f"GPS position: {dict(where)}"[:300], column="GPS position")
            facts |= {f"Exif {name}": str(value) for name, value in tags.items()}
    except (*_BROKEN, SyntaxError):
        return
    for name, value in facts.items():
        yield Piece(_join(place, name), value)
