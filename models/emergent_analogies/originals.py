"""The original's files: matrices and letter strings as pickled archives, verbal analogies as a sheet of Excel's."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from mesa_llm import ConfigError
from mesa_llm.worlds.questionnaire import Original

BASE = "https://raw.githubusercontent.com/taylorwwebb/emergent_analogies_LLM/145e72b5be6b845dfdc69450075f88930e9a661f/"


def _original(place: str, sha256: str, licence: str = "Apache-2.0") -> Original:
    return Original("emergent_analogies", place.rpartition("/")[2], f"{BASE}{place}", sha256, licence)


MATRICES = _original("digit_mat/all_problems.npz", "8ccef408112108fd5994d4cc131a498c68f1cc474be185376616ad3ee37f3362")
"""Matrices of the first experiment: 32 types."""

MATRICES_OF_MORE_RULES = _original(
    "digit_mat/all_problems_1thru5.npz", "78160e054e5cf3df083879d44959ac9de56bc245ab88e1f398cc550983a3800d"
)
"""Matrices of the second experiment: one to five rules."""

LETTER_STRINGS = _original(
    "letter_string/all_prob.npz", "2a235f3fd7f11c9a3d7bf550b316cfa0b0849fcdbcac89baa088c2ffeb238a79"
)
"""Letter strings: 28 types."""

VERBAL = _original(
    "UCLA_VAT/UCLA_VAT.xlsx",
    "535eac3bb3b62c124375699d298dfee4572f1444cf9eb739c26cd970f53adff1",
    "the items are their authors'",
)
"""The UCLA Verbal Analogy Test: 80 analogies."""

MAX_BYTES = 20_000_000
"""Maximum size of a part of an Excel file."""


def read_pickled(path: str | Path, allowed: frozenset[str]) -> Mapping[str, Any]:
    """Read the object in an archive of pickles. As these can run code, only files with a published digest are opened.

    Args:
        path: The file.
        allowed: SHA-256 digests of the files that may be opened.

    Returns:
        Type → its problems.

    Raises:
        ConfigError: If the file cannot be read, or has another digest.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    digest = hashlib.sha256(content).hexdigest()
    if digest not in allowed:
        raise ConfigError(
            f"{path} has the SHA-256 {digest}, and only the published files are opened: {sorted(allowed)}"
        )
    with np.load(path, allow_pickle=True) as archive:
        return archive[archive.files[0]].item()


# -- a sheet of Excel's: XML files in a zip archive

_SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def read_sheet(path: str | Path) -> list[list[str]]:
    """Read the first sheet of an Excel file as text, row by row.

    Raises:
        ConfigError: If the file cannot be read as an Excel file, or a part of it has more than `MAX_BYTES`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            has_shared = "xl/sharedStrings.xml" in names
            shared = [_text(one) for one in _xml(archive, "xl/sharedStrings.xml")] if has_shared else []
            first = min(name for name in names if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", name))
            rows = [
                {_column(cell): _value(cell, shared) for cell in row}
                for row in _xml(archive, first).iter(f"{_SPACE}row")
            ]
    except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile, ElementTree.ParseError) as error:
        raise ConfigError(f"{path} cannot be read as a sheet of Excel's: {error}") from None
    return [[row.get(column, "") for column in range(max(row, default=-1) + 1)] for row in rows]


def _xml(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    if archive.getinfo(name).file_size > MAX_BYTES:
        raise ValueError(f"{name} has more than {MAX_BYTES} bytes")
    return ElementTree.fromstring(archive.read(name))


def _text(element: ElementTree.Element) -> str:
    return "".join(part.text or "" for part in element.iter(_SPACE + "t"))


def _value(cell: ElementTree.Element, shared: list[str]) -> str:
    """Return the text of a cell: shared with others, its own, or a number."""
    if cell.get("t") == "inlineStr":
        return _text(cell)
    value = cell.findtext(_SPACE + "v") or ""
    return shared[int(value)] if cell.get("t") == "s" else value


def _column(cell: ElementTree.Element) -> int:
    """Return the index of a cell's column, from 0: that of `C7` is 2."""
    letters = re.sub(r"[^A-Z]", "", cell.get("r") or "A")[:3]
    index = 0
    for letter in letters:
        index = 26 * index + ord(letter) - ord("A") + 1
    return index - 1
