"""Names of local models, and the context that a file has of its own."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.llm import open_simple
from mesa_llm.llm.local.gguf import MIN_CONTEXT, context_of
from mesa_llm.llm.local.profile import CAPABLE, SMALLEST, Profile, profile_of
from mesa_llm.llm.protocol import Capabilities

OWN = Profile("local:own.gguf")


def test_each_name_has_its_profile() -> None:
    assert profile_of("local") == (SMALLEST, None)
    assert profile_of("local:1.5b") == (CAPABLE, None)
    assert profile_of("local: models/own.gguf") == (OWN, Path("models/own.gguf"))
    with pytest.raises(ConfigError, match=r"names no file; write local:FILE\.gguf, or one of local, local:1.5b"):
        profile_of("local:")


def test_a_model_is_recorded_under_its_name() -> None:
    models = [open_simple(name) for name in ("local", "local:1.5b", "local:/tmp/own.gguf")]
    assert [Capabilities.of(model).name for model in models if model] == ["local", "local:1.5b", "local:own.gguf"]


def written(path: Path, **fields: int) -> Path:
    """Write the header of a model."""

    def text(words: str) -> bytes:
        return struct.pack("<Q", len(words)) + words.encode()

    strings: dict[str, Any] = {"general.architecture": struct.pack("<I", 8) + text("tiny")}
    strings["tokenizer.ggml.tokens"] = struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b")
    numbers = {f"tiny.{name.replace('__', '.')}": struct.pack("<II", 4, value) for name, value in fields.items()}
    entries = [text(name) + value for name, value in {**strings, **numbers}.items()]
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, len(entries)) + b"".join(entries))
    return path


def test_a_file_has_its_own_context_as_far_as_memory_allows(tmp_path: Path) -> None:
    sizes = {"block_count": 2, "attention__head_count": 4, "attention__head_count_kv": 2}
    small = written(tmp_path / "a.gguf", context_length=9000, embedding_length=64, **sizes)
    assert context_of(small, OWN) == 9000
    assert context_of(small, SMALLEST) == 4096
    huge = written(tmp_path / "b.gguf", context_length=2**31, embedding_length=2**20, **sizes)
    assert MIN_CONTEXT <= context_of(huge, OWN) < 2**20


def test_what_is_no_model_gets_some_context(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"nothing that could be read")
    assert context_of(tmp_path / "a.gguf", OWN) == MIN_CONTEXT
