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
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import environment_secrets, without_secrets
from mesa_llm.runlog.layout import columns, connect
from mesa_llm.runlog.log import CAPABILITIES
from mesa_llm.tables import decoded, kind_of, read_table
from mesa_llm.tables.table import READERS
from mesa_llm.text import clip, one_line

MAX_EXAMPLE = 60
"""Maximum number of characters of an example."""

MIN_NAME = 4
"""Minimum number of characters of a user's or a machine's name that is looked for: shorter ones are words."""

COMMON_NAMES = frozenset(
    {"admin", "debian", "docker", "localhost", "mesa", "root", "runner", "ubuntu", "user", "vagrant"}
)
"""Names of users and machines that say nothing about anybody."""

PIECE = 8_000_000
"""Number of bytes of a file that are looked through at a time."""

LONGEST_KEY = 1_000
"""Number of bytes by which two pieces of a file overlap, so that no key is cut."""

PERSON = "human"
"""Name of a person's decisions in a run log."""

_PATH = re.compile(
    r"(?<![\w.:/])/(?:home|Users|root|mnt|media|tmp|var|private|Volumes|srv|opt|data)/[^\s\"'“”‘’<>|:;,)\]}\\`]+"
    r"|\b[A-Za-z]:\\{1,2}(?:Users|Documents)[^\s\"'<>|;,)\]}]+"
)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b")
_PHONE = re.compile(r"(?<![\w.,])(?:\+\d|\(0\d|0\d)[\d ()/-]{7,18}\d(?!\w|[.,]\d)")
_ADDRESS = re.compile(r"https?://[^\s\"'<>,)\]}\\]+")
_DATE = re.compile(r"\d{2}[-/ ]\d{2}[-/ ]\d{4}")
_TWO_NAMES = re.compile(r"(?<![.!?] )\b[A-ZÀ-Þ][a-zß-ÿ]+ [A-ZÀ-Þ][a-zß-ÿ]+\b")
_KEY = re.compile(
    r"\bsk-[A-Za-z0-9_-]{20,}|\b(?:hf|gsk|ghp|fw|r8)_[A-Za-z0-9]{16,}|\bAIza[\w-]{30,}|\bAKIA[A-Z0-9]{16}\b"
)

_PERSONAL_COLUMNS = re.compile(
    r"(?:user|screen|first|last|given|family|full|real|sur|birth)?[ _-]*name|e[ _-]?mail|phone|mobile|tel|address|"
    r"birth[ _-]?(?:day|date)|date[ _-]of[ _-]birth",
    re.IGNORECASE,
)
"""Names of columns that hold data about persons."""


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

    def __str__(self) -> str:
        """Return it as a line."""
        more = ", …" if self.count > len(self.examples) else ""
        return f"{self.file}: {self.what} ({self.count}): {', '.join(self.examples)}{more}"


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
        found = _in_log(file) if file == log else _in_file(file)
        by_kind: dict[str, Counter[str]] = {}
        for what, example in found:
            by_kind.setdefault(what, Counter())[one_line(example, MAX_EXAMPLE)] += 1
        for what, examples in sorted(by_kind.items()):
            most = tuple(example for example, _ in examples.most_common(3))
            disclosures.append(Disclosure(name, what, most, examples.total()))
    return disclosures


def require_no_keys(files: Iterable[Path], folder: Path, log: Path) -> None:
    """Check that no file holds a key of a provider, or a secret of the environment.

    Args:
        files: The files.
        folder: Folder that their names in the message begin at.
        log: The run log among them.

    Raises:
        ConfigError: If one does. The message does not repeat it.
    """
    secrets = environment_secrets()
    names = [
        file.relative_to(folder).as_posix()
        for file in sorted(files)
        if any(_holds_key(text, secrets) for text in (_texts_of(file) if file == log else _pieces_of(file)))
    ]
    if names:
        raise ConfigError(
            f"what looks like a key of yours stands in {', '.join(names)}; take it out of what the run was made with, "
            "and record the run again; nothing was written"
        )


def _holds_key(text: str, secrets: Iterable[str]) -> bool:
    return _KEY.search(text) is not None or without_secrets(text, secrets) != text


def _pieces_of(file: Path) -> Iterator[str]:
    """Yield a file in pieces, each with the end of the one before."""
    end = b""
    with file.open("rb") as source:
        while piece := source.read(PIECE):
            yield (end + piece).decode("utf-8", "replace")
            end = piece[-LONGEST_KEY:]


def _texts_of(log: Path) -> Iterator[str]:
    """Yield all texts of a run log."""
    with closing(connect(str(log))) as database:
        for table in columns():
            for row in database.execute(f"SELECT * FROM {table}"):
                yield from (value for value in row if isinstance(value, str))


def _in_file(file: Path) -> Iterator[tuple[str, str]]:
    """Find candidates in a file: in its text, or if it is a table of another form, in its cells."""
    content = file.read_bytes()
    if b"\0" not in content[:4096]:
        text = decoded(content, file)
        yield from _places(text)
        yield from _contacts(text)
    if kind_of(file) in READERS:
        try:
            rows = [row for _, row in read_table(file) if not isinstance(row, str)]
        except ConfigError:  # no table
            return
        for row in rows:
            for column, cell in row.items():
                if _PERSONAL_COLUMNS.fullmatch(str(column).strip()):
                    yield f"column {clip(str(column), 20)!r}", str(cell)
                elif b"\0" in content[:4096]:
                    yield from _contacts(str(cell))


def _in_log(file: Path) -> Iterator[tuple[str, str]]:
    """Find candidates in a run log: names and phone numbers in what people wrote, the rest anywhere."""
    with closing(connect(str(file))) as database:
        manifest = {name: json.loads(value) for name, value in database.execute("SELECT name, value FROM manifest")}
        capabilities: dict[str, dict[str, Any]] = manifest.get(CAPABILITIES) or {}
        people = {PERSON, *(name for name, flags in capabilities.items() if flags.get("is_person"))}
        for table in columns():
            names = columns()[table]
            for row in database.execute(f"SELECT * FROM {table}"):
                values = dict(zip(names, row, strict=False))
                is_persons = values.get("by", values.get("model")) in people
                named = str(values.get("model", values.get("value", "")))  # of a call, of the manifest
                yield from (("address of a server", found) for found in _ADDRESS.findall(named))
                for text in (value for value in row if isinstance(value, str)):
                    yield from _places(text)
                    yield from (("e-mail address", found) for found in _EMAIL.findall(text))
                    if is_persons:
                        yield from (("phone number written by a person", found) for found in _phones(text))
                        yield from (("name written by a person", found) for found in _TWO_NAMES.findall(text))


def _places(text: str) -> Iterator[tuple[str, str]]:
    """Find private paths, and the names of the user and the machine."""
    home = os.path.expanduser("~")  # which stays, if the user has none
    for found in _PATH.findall(text):
        yield "private path", found
    if len(home) > MIN_NAME and home in text and not _PATH.search(home):
        yield "private path", home
    for what, name in (("user name", _user_name()), ("name of this machine", socket.gethostname())):
        if len(name) >= MIN_NAME and name.lower() not in COMMON_NAMES:
            yield from ((what, name) for _ in re.findall(rf"\b{re.escape(name)}\b", text))


def _user_name() -> str:
    """Return the name of the user; empty if the system knows none, as in a container with an arbitrary user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _contacts(text: str) -> Iterator[tuple[str, str]]:
    yield from (("e-mail address", found) for found in _EMAIL.findall(text))
    yield from (("phone number", found) for found in _phones(text))


def _phones(text: str) -> list[str]:
    return [found for found in _PHONE.findall(text) if not _DATE.search(found)]
