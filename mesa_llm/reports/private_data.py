"""Private paths, personal data and keys in files that are about to be shared.

What is found are candidates: a person has to look at them. Nothing is found in what only a person understands, such
as a story that tells who somebody is.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from mesa_llm.errors import ConfigError
from mesa_llm.llm.credentials import (
    MIN_SECRET,
    RANDOM,
    SECRET_COLUMN,
    credentials_in,
    environment_secrets,
    is_strong,
    without_secrets,
)
from mesa_llm.reports.contents import Piece, decoded_views, pieces_of
from mesa_llm.reports.personal_data import EMAIL, NUMBERS, PERSONAL_COLUMNS, PHONE, PLACES, found_of
from mesa_llm.runlog.layout import columns, connect
from mesa_llm.runlog.log import CAPABILITIES
from mesa_llm.text import clip, one_line

MAX_EXAMPLE = 60
"""Maximum number of characters of an example."""

MIN_NAME = 4
"""Minimum number of characters of a user's or a machine's name that is looked for: shorter ones are words."""

COMMON_NAMES = frozenset(
    {"admin", "debian", "docker", "localhost", "mesa", "root", "runner", "ubuntu", "user", "vagrant"}
)
"""Names of users and machines that say nothing about anybody."""

_ENCODED = re.compile(r"[\\%&=]|[^\x20-\x7e\n]|[A-Za-z0-9+/_-]{16,}|(?:[0-9a-fA-F]{2}[ :]){11}")
"""Signs that a text may hold something in another encoding."""

PERSON = "human"
"""Name of a person's decisions in a run log."""

_PATH = re.compile(
    r"/(?<![\w.:/]/)(?:home|Users|root|mnt|media|tmp|var|private|Volumes|srv|opt|data)/[^\s\"'“”‘’<>|:;,)\]}\\`]+"
)
_WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\{1,2}(?:Users|Documents)[^\s\"'<>|;,)\]}]+")
_ADDRESS = re.compile(r"https?://[^\s\"'<>,)\]}\\]+")
_TWO_NAMES = re.compile(r"(?<![.!?] )\b[A-ZÀ-Þ][a-zß-ÿ]+ [A-ZÀ-Þ][a-zß-ÿ]+\b")
OWN_HASHES = frozenset({"MANIFEST.json", "README.md", "ODD.md", "requirements.txt"})
"""Files of a bundle that are written here, and hold hashes, which look like random strings."""

_HASHED_COLUMNS = frozenset({"key", "keys", "hash", "digest", "checksum"})
"""Columns of a run log that hold hashes."""

_HASHED_FACTS = frozenset({"prompts", "files", "digest", "identity", "versions", "design", "code", "inputs", "weights"})
"""Entries of a run log's manifest that hold hashes."""

BATCH = 500_000
"""Number of characters of cells that are looked through together."""

BETWEEN = "\n\x01\n"
"""What stands between texts that are looked through together, and in nothing that is found."""

UNREAD = "could not be read"
"""What a disclosure says of contents that nobody has looked through."""


@dataclass(frozen=True)
class Disclosure:
    """Something in a file that somebody should look at before it is shared."""

    file: str
    """The file."""

    what: str
    """What it may be: a private path, an e-mail address, …"""

    examples: tuple[str, ...]
    """The most frequent ones."""

    count: int
    """How often it occurs."""

    place: str = ""
    """Where it first stands inside the file."""

    def __str__(self) -> str:
        """Return it as a line."""
        more = ", …" if self.count > len(self.examples) else ""
        place = f" [{self.place}]" if self.place else ""
        return f"{self.file}: {self.what} ({self.count}): {', '.join(self.examples)}{more}{place}"


class _Found(NamedTuple):
    """Something found in a file."""

    what: str
    example: str
    place: str
    is_key: bool = False
    is_again: bool = False


def private_data(files: Iterable[Path], folder: Path, log: Path) -> list[Disclosure]:
    """Look for private paths and personal data.

    Args:
        files: The files.
        folder: Folder that their names in the disclosures begin at.
        log: The run log among them. In it, names and phone numbers are looked for only in what people wrote.
    """
    disclosures: list[Disclosure] = []
    for file in sorted(files):
        name = file.relative_to(folder).as_posix()
        by_kind: dict[str, dict[str, list[str]]] = {}
        for found in _in_log(file) if file == log else _in_file(file, name):
            if not found.is_key:
                examples = by_kind.setdefault(found.what, {})
                example = one_line(found.example, MAX_EXAMPLE)
                if not (found.is_again and example in examples):
                    examples.setdefault(example, []).append(found.place)
        for what, examples in sorted(by_kind.items()):
            most = sorted(examples, key=lambda example: -len(examples[example]))[:3]
            count, place = sum(map(len, examples.values())), next(filter(None, chain(*examples.values())), "")
            disclosures.append(Disclosure(name, what, tuple(most), count, place))
    return disclosures


def require_no_keys(files: Iterable[Path], folder: Path, log: Path | None = None) -> None:
    """Check that no file holds a key of a provider, or a secret of the environment.

    Args:
        files: The files.
        folder: Folder that their names in the message begin at.
        log: The run log among them, if there is one.

    Raises:
        ConfigError: If one does. The message does not repeat it.
    """
    names: dict[str, str] = {}
    for file in sorted(files):
        name = file.relative_to(folder).as_posix()
        for found in _in_log(file) if file == log else _in_file(file, name):
            if found.is_key:
                names.setdefault(name, f"{name} ({found.what}{found.place and ', '}{found.place})")
                break
    if names:
        raise ConfigError(
            f"what looks like a key of yours stands in {', '.join(names.values())}; take it out of what this is "
            "made of, and record the run again if it is in there; nothing was written"
        )


def write_without_keys(file: Path, text: str) -> None:
    """Write a text that may be shared.

    Args:
        file: The file.
        text: Its content.

    Raises:
        ConfigError: If it holds a key; nothing is written.
        OSError: If the file cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="mesa-llm-") as folder:
        draft = Path(folder, file.name)
        draft.write_text(text, encoding="utf-8")
        require_no_keys([draft], draft.parent)
    file.write_text(text, encoding="utf-8")


# -- files


def _in_file(file: Path, name: str) -> Iterator[_Found]:
    """Find candidates in a file, in all that it holds."""
    with_random = name not in OWN_HASHES
    cells: dict[str, list[tuple[int, str]]] = {}
    n_characters = 0
    for piece in pieces_of(file):
        if piece.fault:
            yield _Found(UNREAD, piece.fault, piece.place)
        elif piece.column:
            yield from _of_column(piece)
            if piece.is_again:
                continue
            cells.setdefault(piece.place, []).append((piece.line, piece.text))
            n_characters += len(piece.text)
            if n_characters > BATCH:
                yield from _in_cells(cells, with_random)
                cells, n_characters = {}, 0
        else:
            for found in _in_text(piece.text, piece.place, piece.line, with_random):
                yield found._replace(is_again=piece.is_again)
    yield from _in_cells(cells, with_random)


def _of_column(piece: Piece) -> Iterator[_Found]:
    """Find what the name of a cell's column tells."""
    column, place = piece.column.strip(), _place(piece.place, piece.line)
    if PERSONAL_COLUMNS.fullmatch(column):
        yield _Found(f"column {clip(column, 20)!r}", piece.text, place)
    if SECRET_COLUMN.fullmatch(column) and len(piece.text) >= MIN_SECRET:
        if is_strong(piece.text):
            yield _Found(f"column {clip(column, 20)!r}", "", place, is_key=True)
        else:
            yield _Found(f"column {clip(column, 20)!r} may hold secrets", _masked(piece.text), place)


def _in_cells(cells: Mapping[str, Sequence[tuple[int, str]]], with_random: bool) -> Iterator[_Found]:
    """Find candidates in cells without the names of their columns, many at a time."""
    for place, texts in cells.items():
        text = "\n".join(text for _, text in texts)
        yield from _in_text(text, place, 0, with_random)
        for view in decoded_views(text, place):
            for found in _in_text(view.text, view.place, 0, with_random):
                yield found._replace(is_again=view.is_again)


def _in_text(text: str, place: str, line: int, with_random: bool) -> Iterator[_Found]:
    """Find candidates of all kinds in a text.

    Args:
        text: The text.
        place: Where it stands in its file.
        line: Line at which it begins; 0: it has none.
        with_random: Whether a random string may be a key there, rather than a hash of ours.
    """

    def at(index: int) -> str:
        return _place(place, line and line + text.count("\n", 0, index))

    yield from _credentials(text, at, with_random)
    for what, example in _places(text):
        yield _Found(what, example, at(text.find(example)))
    kinds = (EMAIL, PHONE, *NUMBERS, *PLACES) if with_random else (EMAIL,)  # versions look like numbers
    for what, example, index in found_of(kinds, text):
        yield _Found(what, example, at(index))


def _credentials(text: str, at: Callable[[int], str], with_random: bool) -> Iterator[_Found]:
    """Find secrets in a text."""
    for one in credentials_in(text):
        if one.is_certain:
            yield _Found(one.kind, "", at(one.start), is_key=True)
        elif with_random or one.kind != RANDOM:
            yield _Found(one.kind, _masked(text[one.start : one.end]), at(one.start))
    if without_secrets(text, environment_secrets()) != text:
        yield _Found("a secret of the environment", "", at(0) if "\n" not in text else "", is_key=True)


def _masked(secret: str) -> str:
    """Return the beginning of what may be a secret, and its length."""
    shown = one_line(secret)
    return f"{shown[: min(6, len(shown) // 3)]}… ({len(shown)} characters)"


def _place(place: str, line: int) -> str:
    return ", ".join(filter(None, (place, f"line {line}" if line else "")))


# -- the run log


def _in_log(file: Path) -> Iterator[_Found]:
    """Find candidates in a run log: names and phone numbers in what people wrote, the rest anywhere."""
    with closing(connect(str(file))) as database:
        manifest = {name: json.loads(value) for name, value in database.execute("SELECT name, value FROM manifest")}
        capabilities: dict[str, dict[str, Any]] = manifest.get(CAPABILITIES) or {}
        people = {PERSON, *(name for name, flags in capabilities.items() if flags.get("is_person"))}
        for table in columns():
            names = columns()[table]
            cells: dict[tuple[bool, bool], dict[str, None]] = {}
            for row in database.execute(f"SELECT * FROM {table}"):
                values = dict(zip(names, row, strict=False))
                is_persons = values.get("by", values.get("model")) in people
                named = str(values.get("model", values.get("value", "")))  # of a call, of the manifest
                for address in _ADDRESS.findall(named):
                    yield _Found("address of a server", address, f"table {table}")
                is_hash = values.get("name") in _HASHED_FACTS
                for column, text in values.items():
                    if isinstance(text, str):
                        with_random = not (is_hash or column in _HASHED_COLUMNS)
                        cells.setdefault((with_random, is_persons), {})[text] = None
            for (with_random, is_persons), texts in cells.items():
                for batch in _batches(texts):
                    yield from _in_texts(batch, f"table {table}", with_random, is_persons)


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield texts, many at a time."""
    batch, n_characters = list[str](), 0
    for text in texts:
        batch.append(text)
        n_characters += len(text)
        if n_characters > BATCH:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch


def _in_texts(texts: Sequence[str], place: str, with_random: bool, is_persons: bool) -> Iterator[_Found]:
    """Find candidates in texts of a run log, decoded or not."""
    yield from _in_view(BETWEEN.join(texts), place, with_random, is_persons)
    encoded = [text for text in texts if _ENCODED.search(text)]
    views = {view.text: None for text in encoded for view in decoded_views(text, place)}
    for found in _in_view(BETWEEN.join(views), place, with_random, is_persons):
        yield found._replace(is_again=True)


def _in_view(text: str, place: str, with_random: bool, is_persons: bool) -> Iterator[_Found]:
    """Find candidates in one reading of a text of a run log."""
    yield from _credentials(text, lambda index: place, with_random)
    for what, example in _places(text):
        yield _Found(what, example, place)
    for what, example, _ in found_of((EMAIL, *NUMBERS) if with_random else (EMAIL,), text):
        yield _Found(what, example, place)
    if is_persons:
        for what, example, _ in found_of((PHONE, *PLACES), text):
            yield _Found(f"{what} written by a person", example, place)
        yield from (_Found("name written by a person", found, place) for found in _TWO_NAMES.findall(text))


def _places(text: str) -> Iterator[tuple[str, str]]:
    """Find private paths, and the names of the user and the machine."""
    home = os.path.expanduser("~")  # which stays, if the user has none
    windows = _WINDOWS_PATH.findall(text) if "Users" in text or "Documents" in text else ()
    for found in chain(_PATH.findall(text), windows):
        yield "private path", found
    if len(home) > MIN_NAME and home in text and not (_PATH.search(home) or _WINDOWS_PATH.search(home)):
        yield "private path", home
    for what, name in (("user name", _user_name()), ("name of this machine", socket.gethostname())):
        if len(name) >= MIN_NAME and name.lower() not in COMMON_NAMES and name in text:
            yield from ((what, name) for _ in re.findall(rf"\b{re.escape(name)}\b", text))


def _user_name() -> str:
    """Return the name of the user; empty if the system knows none, as in a container with an arbitrary user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
