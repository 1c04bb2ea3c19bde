"""A file that is no language model says what it is, before it is loaded."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import pytest

from mesa_llm import ConfigError
from mesa_llm.llm import open_simple
from mesa_llm.llm.local.gguf import require_model


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(
    architecture: str = "llama", n_tensors: int = 1, version: int = 3, order: str = "<", **fields: int | str
) -> bytes:
    """Return a GGUF file with tensors of 32 numbers, which all begin at the same place."""
    entries = {"general.architecture": architecture} | {name.replace("__", "."): fields[name] for name in fields}
    head = b"GGUF" + struct.pack(f"{order}IQQ", version, n_tensors, len(entries))
    for name, value in entries.items():
        is_text = isinstance(value, str)
        head += text(name) + (struct.pack("<I", 8) + text(value) if is_text else struct.pack("<II", 4, value))
    head += b"".join(text(f"t{index}") + struct.pack("<IQIQ", 1, 32, 0, 0) for index in range(n_tensors))
    return head + bytes(-len(head) % 32 + 128)


def zipped() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("data.pkl", "x")
    return content.getvalue()


FAULTS = {
    "empty": (b"", "empty"),
    "stub": (gguf()[:20], "cut after 20 bytes"),
    "header": (gguf()[:60], "header is cut or damaged"),
    "weights": (gguf()[:-40], "cut: it has"),
    "page": (b"\n<!DOCTYPE html><html>Sign in</html>", "a web page"),
    "error": (b'{"error": "not found"}', "JSON, not a model"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git-lfs"),
    "safetensors": (struct.pack("<Q", 30) + b'{"__metadata__": {}}', "safetensors"),
    "archive": (zipped(), "a zip archive"),
    "old": (b"tjgg" + bytes(40), "GGJT"),
    "first": (gguf(version=1), "GGUF version 1"),
    "other": (gguf(order=">"), "big-endian"),
    "part": (gguf(split__no=1, split__count=3), "part 2 of 3"),
    "vocabulary": (gguf(n_tensors=0), "a vocabulary"),
    "projector": (gguf("clip"), "the projector"),
    "adapter": (gguf(general__type="adapter"), "a LoRA adapter"),
    "encoder": (gguf("nomic-bert"), "an embedding model"),
    "pooled": (gguf("qwen3", qwen3__pooling_type=3), "an embedding model"),
    "unknown": (b"something else", "no GGUF file"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_no_model_says_what_it_is(name: str, tmp_path: Path) -> None:
    content, fault = FAULTS[name]
    (tmp_path / f"{name}.gguf").write_bytes(content)
    with pytest.raises(ConfigError, match=fault) as error:
        open_simple(f"local:{tmp_path / name}.gguf")
    assert "\n" not in str(error.value)


def test_a_part_names_the_file_that_is_asked_for(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"m-0000{number}-of-00002.gguf").write_bytes(gguf(split__no=number - 1, split__count=2))
    require_model(tmp_path / "m-00001-of-00002.gguf")
    with pytest.raises(ConfigError, match=r"name the first one, m-00001-of-00002\.gguf"):
        require_model(tmp_path / "m-00002-of-00002.gguf")
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(ConfigError, match=r"beside it there is no m-00002-of-00002\.gguf"):
        require_model(tmp_path / "m-00001-of-00002.gguf")


def test_a_whole_model_is_left_to_loading(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(gguf())
    require_model(tmp_path / "m.gguf")
    require_model(tmp_path / "missing.gguf")
