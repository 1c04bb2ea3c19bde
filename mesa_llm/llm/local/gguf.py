"""Reads the header of a GGUF file: how many tokens its model can read, or why it is no model that can be asked."""

from __future__ import annotations

import math
import os
import re
import struct
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from mesa_llm.errors import ConfigError
from mesa_llm.llm.local.profile import Profile

MIN_CONTEXT = 4096
"""Number of tokens that are read at least, if the model can, however little memory there is."""

MEMORY_SHARE = 16
"""The cache of what has been read may take a sixteenth of the machine's memory."""

CACHED_BYTES = 2
"""Bytes of each number in that cache."""

MAX_LENGTH = 1 << 26
"""Maximum length of a text or list in a header, in bytes; longer ones are of a damaged file."""

_STRING, _ARRAY = 8, 9

_STARTS = (
    (b"version https://git-lfs", "a pointer of git-lfs in place of the file: run `git lfs pull` where it comes from"),
    (b"PK\x03\x04", "a zip archive (or PyTorch's format): unpack it, or get the model as GGUF"),
    (b"\x1f\x8b", "compressed with gzip: unpack it with gunzip"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it with unzstd"),
    (b"\x80", "a pickle of Python: get the model as GGUF"),
    (b"\x89HDF", "in HDF5: get the model as GGUF"),
    (b"lmgg", "in GGML, the format before GGUF, which is no longer read: get it as GGUF"),
    (b"tjgg", "in GGJT, the format before GGUF, which is no longer read: get it as GGUF"),
    (b"fmgg", "in GGMF, the format before GGUF, which is no longer read: get it as GGUF"),
    (b"FUGG", "a big-endian GGUF, for other processors: get the little-endian one"),
)
"""First bytes of files that are taken for models → what they are, and what to do."""

_ENCODERS = frozenset(
    {"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "neo-bert", "modern-bert", "t5encoder"}
    | {"gemma-embedding", "eurobert"}
)
"""Architectures that give vectors of texts, and write none."""

_KINDS = {
    "adapter": "a LoRA adapter, which changes a model and is none: merge it into its model",
    "mmproj": "the projector of a model that sees pictures, not the model: name the GGUF file beside it",
    "imatrix": "an importance matrix, which is used to make a model and is none",
    "vocab": "a vocabulary without a model: name the file with the weights",
}
"""Value of `general.type` → what the file is."""

_BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    9: (32, 36),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    15: (256, 292),
    16: (256, 66),
    17: (256, 74),
    18: (256, 98),
    19: (256, 50),
    20: (32, 18),
    21: (256, 110),
    22: (256, 82),
    23: (256, 136),
    24: (1, 1),
    25: (1, 2),
    26: (1, 4),
    27: (1, 8),
    28: (1, 8),
    29: (256, 56),
    30: (1, 2),
}
"""Type of a tensor → numbers in a block, and bytes of a block."""

_SPLIT = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.IGNORECASE)
"""Name of a file that holds a part of a model."""

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
        fields = header_of(path).fields
        architecture = fields["general.architecture"]
        own = {name.removeprefix(f"{architecture}."): value for name, value in fields.items()}
        n_context, token_bytes = int(own["context_length"]), _token_bytes(own)
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return MIN_CONTEXT
    n_affordable = memory_bytes // MEMORY_SHARE // max(1, token_bytes)
    return min(n_context, max(MIN_CONTEXT, n_affordable // 256 * 256))


def sampling_of(path: Path) -> dict[str, float]:
    """Return the sampling settings that a file recommends, by llama.cpp's names; empty if there are none.

    Args:
        path: The GGUF file.
    """
    try:
        fields = header_of(path).fields
    except (OSError, ValueError, KeyError, OverflowError, MemoryError, struct.error):
        return {}
    names = {"temp": "temperature", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p"}
    found = {name: fields.get(f"general.sampling.{key}") for key, name in names.items()}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}


def _token_bytes(fields: dict[str, Any]) -> int:
    """Return the bytes that each token takes in the cache: a key and a value for each layer and head."""
    n_heads = fields["attention.head_count"]
    heads = fields.get("attention.head_count_kv", n_heads)
    n_layers = int(fields["block_count"])
    n_all = sum(heads) if isinstance(heads, list) else int(heads) * n_layers
    width = int(fields["embedding_length"]) // (max(n_heads) if isinstance(n_heads, list) else int(n_heads))
    widths = int(fields.get("attention.key_length", width)) + int(fields.get("attention.value_length", width))
    return n_all * widths * CACHED_BYTES


class Header(NamedTuple):
    """The beginning of a GGUF file."""

    fields: dict[str, Any]
    """Name → value, without lists of texts."""

    n_tensors: int
    """Number of tensors."""

    n_bytes: int
    """Size that the file has if it is complete; a lower bound where a type of tensor is not known."""


def require_model(path: Path) -> None:
    """Check by its header that a file is a language model that llama.cpp can ask; a missing file is left to loading.

    Raises:
        ConfigError: If it is not; the message says what it is, and what to do.
    """
    if path.is_file() and (fault := _fault_of(path)):
        raise ConfigError(f"{str(path)!r} is {fault}")


def _fault_of(path: Path) -> str:
    """Describe why a file is no model that can be asked; empty if it is one."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            start = stream.read(512)
    except OSError as error:
        return f"a file that cannot be read: {error.strerror}"
    if fault := _fault_of_start(start):
        return fault
    try:
        header = header_of(path)
    except (OSError, ValueError, KeyError, OverflowError, MemoryError, struct.error):
        return f"a GGUF file whose header is cut or damaged ({size:,} bytes): get it again"
    if fault := _fault_of_kind(header, path):
        return fault
    if size < header.n_bytes:
        return f"cut: it has {size:,} bytes of {header.n_bytes:,}; get it again, for a download that stopped goes on"
    return ""


def _fault_of_start(start: bytes) -> str:
    """Describe what a file is by its first bytes; empty for GGUF of a version that is read."""
    if not start:
        return "empty: get it again"
    if not start.startswith(b"GGUF"):
        for mark, fault in _STARTS:
            if start.startswith(mark):
                return fault
        text = start.lstrip().lower()
        if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
            return "a web page, not the file: get the file itself (at Hugging Face: `resolve` in place of `blob`)"
        if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 1 << 32:
            return "in safetensors, the format for training: get the model as GGUF"
        if text.startswith((b"{", b"[")):
            return "JSON, not a model: it may be the message of a server; get the file again"
        return "no GGUF file: llama.cpp reads models in GGUF"
    if len(start) < 24:
        return f"cut after {len(start)} bytes: get it again"
    version = int.from_bytes(start[4:8], "little")
    if version == 1:
        return "in GGUF version 1, which is no longer read: get a newer file"
    if version & 0xFFFF == 0:
        return "a big-endian GGUF, for other processors: get the little-endian one"
    return ""


def _fault_of_kind(header: Header, path: Path) -> str:
    """Describe what a GGUF file is by its fields; empty if it is a language model."""
    fields = header.fields
    architecture = str(fields.get("general.architecture", ""))
    kind = "mmproj" if architecture == "clip" else str(fields.get("general.type", "model"))
    if kind in _KINDS:
        return _KINDS[kind]
    if fault := _fault_of_part(fields, path):
        return fault
    if header.n_tensors == 0:
        return _KINDS["vocab"]
    if architecture in _ENCODERS or int(fields.get(f"{architecture}.pooling_type", 0)) > 0:
        return f"an embedding model ({architecture}), which writes no text: name a model for chat"
    return ""


def _fault_of_part(fields: dict[str, Any], path: Path) -> str:
    """Describe what is wrong with a part of a model; empty for the first part beside all others, and for a whole."""
    match = _SPLIT.fullmatch(path.name)
    n_parts = int(fields.get("split.count", 0)) or (int(match[3]) if match else 0)
    if n_parts < 2:
        return ""
    number = int(fields.get("split.no", int(match[2]) - 1 if match else 0)) + 1
    if match is None:
        own = f"NAME-{number:05}-of-{n_parts:05}.gguf"
        return f"part {number} of {n_parts} under another name: give back its own, {own}"
    names = [f"{match[1]}-{one:05}-of-{n_parts:05}.gguf" for one in range(1, n_parts + 1)]
    if number > 1:
        return f"part {number} of {n_parts} of a model: name the first one, {names[0]}"
    lacking = [name for name in names if not path.with_name(name).is_file()]
    return f"part 1 of {n_parts} of a model, and beside it there is no {', '.join(lacking[:3])}" if lacking else ""


def header_of(path: Path) -> Header:
    """Return the header of a GGUF file.

    Args:
        path: The file.

    Raises:
        ValueError: If it is no GGUF file.
        OSError: If it cannot be read.

    Source:
        The description of GGUF in the repository of ggml, version 3.
    """
    with path.open("rb") as stream:
        magic, version, n_tensors, n_fields = struct.unpack("<4sIQQ", stream.read(24))
        if magic != b"GGUF" or version < 2:
            raise ValueError(f"{path} is no GGUF file")
        fields: dict[str, Any] = {}
        for _ in range(n_fields):
            name = _text(stream)
            value = _value(stream, _number(stream, "I"))
            if value is not None:
                fields[name] = value
        end = 0
        for _ in range(n_tensors):
            _text(stream)
            n_numbers = math.prod(_number(stream, "Q") for _ in range(_number(stream, "I")))
            block, block_bytes = _BLOCKS.get(_number(stream, "I"), (256, 50))
            end = max(end, _number(stream, "Q") + n_numbers // block * block_bytes)
        alignment = int(fields.get("general.alignment", 32)) or 32
        return Header(fields, n_tensors, -(-stream.tell() // alignment) * alignment + end if end else 0)


def _value(stream: BinaryIO, kind: int) -> Any:
    """Read a value; lists of texts are skipped, and give None."""
    if kind == _STRING:
        return _text(stream)
    if kind != _ARRAY:
        return _number(stream, _FORMATS[kind])
    inner, length = _number(stream, "I"), _number(stream, "Q")
    if inner == _STRING:
        for _ in range(length):
            stream.seek(_checked(_number(stream, "Q")), os.SEEK_CUR)
        return None
    letter = _FORMATS[inner]
    n_bytes = _checked(length * struct.calcsize(f"<{letter}"))
    return list(struct.unpack(f"<{length}{letter}", stream.read(n_bytes)))


def _number(stream: BinaryIO, letter: str) -> Any:
    return struct.unpack(f"<{letter}", stream.read(struct.calcsize(f"<{letter}")))[0]


def _text(stream: BinaryIO) -> str:
    return stream.read(_checked(_number(stream, "Q"))).decode("utf-8", "replace")


def _checked(length: int) -> int:
    """Return a length, unless it is that of a damaged file.

    Raises:
        ValueError: If it is.
    """
    if length > MAX_LENGTH:
        raise ValueError(f"found a length of {length:,} bytes")
    return length
