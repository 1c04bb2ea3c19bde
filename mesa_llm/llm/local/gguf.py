"""Reads from the header of a GGUF file how many tokens its model can read."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any, BinaryIO

from mesa_llm.llm.local.profile import Profile

MIN_CONTEXT = 4096
"""Number of tokens that are read at least, if the model can, however little memory there is."""

MEMORY_SHARE = 16
"""The cache of what has been read may take a sixteenth of the machine's memory."""

CACHED_BYTES = 2
"""Bytes of each number in that cache."""

_STRING, _ARRAY = 8, 9

_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Type of a value → its format in `struct`."""


def context_of(path: Path, profile: Profile) -> int:
    """Return the number of tokens that a prompt and its reply may have together.

    It is that of the profile, else the file's own, but no more than fits into a sixteenth of the machine's memory; an
    unreadable file gets `MIN_CONTEXT`, as loading it will say what is wrong.

    Args:
        path: The GGUF file.
        profile: How the model is asked.
    """
    if profile.max_context is not None:
        return profile.max_context
    try:
        fields = header_of(path)
        architecture = fields["general.architecture"]
        own = {name.removeprefix(f"{architecture}."): value for name, value in fields.items()}
        n_context, token_bytes = int(own["context_length"]), _token_bytes(own)
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return MIN_CONTEXT
    n_affordable = memory_bytes // MEMORY_SHARE // max(1, token_bytes)
    return min(n_context, max(MIN_CONTEXT, n_affordable // 256 * 256))


def _token_bytes(fields: dict[str, Any]) -> int:
    """Return the bytes that each token takes in the cache: a key and a value for each layer and head."""
    n_heads = fields["attention.head_count"]
    heads = fields.get("attention.head_count_kv", n_heads)
    n_layers = int(fields["block_count"])
    n_all = sum(heads) if isinstance(heads, list) else int(heads) * n_layers
    width = int(fields["embedding_length"]) // (max(n_heads) if isinstance(n_heads, list) else int(n_heads))
    widths = int(fields.get("attention.key_length", width)) + int(fields.get("attention.value_length", width))
    return n_all * widths * CACHED_BYTES


def header_of(path: Path) -> dict[str, Any]:
    """Return the fields of a GGUF file, without lists of texts.

    Args:
        path: The file.

    Raises:
        ValueError: If it is no GGUF file.
        OSError: If it cannot be read.

    Source:
        The description of GGUF in the repository of ggml, version 3.
    """
    with path.open("rb") as stream:
        magic, version, _, n_fields = struct.unpack("<4sIQQ", stream.read(24))
        if magic != b"GGUF" or version < 2:
            raise ValueError(f"{path} is no GGUF file")
        fields: dict[str, Any] = {}
        for _ in range(n_fields):
            name = _text(stream)
            value = _value(stream, _number(stream, "I"))
            if value is not None:
                fields[name] = value
        return fields


def _value(stream: BinaryIO, kind: int) -> Any:
    """Read a value; lists of texts are skipped, and give None."""
    if kind == _STRING:
        return _text(stream)
    if kind != _ARRAY:
        return _number(stream, _FORMATS[kind])
    inner, length = _number(stream, "I"), _number(stream, "Q")
    if inner == _STRING:
        for _ in range(length):
            stream.seek(_number(stream, "Q"), os.SEEK_CUR)
        return None
    letter = _FORMATS[inner]
    return list(struct.unpack(f"<{length}{letter}", stream.read(length * struct.calcsize(f"<{letter}"))))


def _number(stream: BinaryIO, letter: str) -> Any:
    return struct.unpack(f"<{letter}", stream.read(struct.calcsize(f"<{letter}")))[0]


def _text(stream: BinaryIO) -> str:
    return stream.read(_number(stream, "Q")).decode("utf-8")
