"""Which weights a local model decides with: their checksum and quantisation, for the manifest of a run log.

The checksum of a file is computed once a change, however many processes ask: it is kept in the user's cache under the
file's path, size, time of last change and inode. Where the file is still to be downloaded, it is the checksum without
which nothing that was downloaded is kept.
"""

from __future__ import annotations

import json
import os
import re
import struct
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.llm.local.gguf import header_of
from mesa_llm.llm.local.profile import Profile
from mesa_llm.llm.local.weights import cache_folder, checksum, model_file

CHECKSUMS = "checksums.json"
"""File in the cache of models that keeps the checksums of files."""

MAX_KEPT = 200
"""Maximum number of checksums in it."""

FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 32: "BF16",
}  # fmt: skip
"""Value of `general.file_type` in a GGUF file → quantisation. Source: `llama_ftype` of llama.cpp."""


def weights_of(path: Path | None, profile: Profile) -> dict[str, Any]:
    """Return what is known of the weights of a local model, without downloading them.

    Args:
        path: The user's own file; None: the one of the profile.
        profile: How the model is asked.

    Returns:
        `file` (its name), `sha256`, and `quantisation` where it is known; empty if the user's own file is not there.
    """
    try:
        file = model_file(profile, download=False) if path is None else path
    except ConfigError:  # it is to be downloaded, or MESA_LLM_MODEL is wrong, which asking it says
        file = None
    if file is not None and file.is_file():
        return _with_quantisation({"file": file.name, "sha256": known_checksum(file)}, file)
    if path is not None or profile.source is None:
        return {}
    return _with_quantisation({"file": profile.source.file, "sha256": profile.source.sha256}, None)


def _with_quantisation(facts: dict[str, Any], file: Path | None) -> dict[str, Any]:
    kind: str | None = None
    if file is not None:
        with suppress(OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError, struct.error):
            kind = FILE_TYPES.get(header_of(file).fields["general.file_type"])
    named = re.search(r"(?i)(?<![a-z0-9])(i?q\d_\w+|b?f16|f32)(?![a-z0-9])", Path(facts["file"]).stem)
    kind = kind or (named[1].upper() if named else None)
    return facts | ({"quantisation": kind} if kind else {})


def known_checksum(file: Path) -> str:
    """Return the SHA-256 of a file, which is computed only if it has changed since it was last asked for.

    Raises:
        OSError: If the file cannot be read.
    """
    status = file.stat()
    key = f"{file.resolve()}:{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"
    kept = cache_folder() / CHECKSUMS
    known = _known(kept)
    if key not in known:
        known = dict([*known.items(), (key, checksum(file))][-MAX_KEPT:])
        with suppress(OSError):  # a cache that cannot be written costs time alone
            _replace(kept, json.dumps(known, indent=1))
    return known[key]


def _known(kept: Path) -> dict[str, str]:
    try:
        known: Any = json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    is_whole = isinstance(known, dict) and all(re.fullmatch("[0-9a-f]{64}", str(value)) for value in known.values())
    return known if is_whole else {}


def _replace(target: Path, text: str) -> None:
    """Write a file that other processes may read or write at the same time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    number, draft = tempfile.mkstemp(dir=target.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(draft, target)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise
