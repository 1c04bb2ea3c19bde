"""The original's files: matrices and letter strings as pickled archives, verbal analogies as an Excel sheet."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mesa_llm import ConfigError
from mesa_llm.questionnaire import Original

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
