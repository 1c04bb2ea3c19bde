"""Which weights decided: their checksum and quantisation, in the manifest, and before a run is resumed."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import ConfigError, ScriptedLLM
from mesa_llm.llm.local.identity import CHECKSUMS, known_checksum, weights_of
from mesa_llm.llm.local.profile import CAPABLE, profile_of
from mesa_llm.llm.local.weights import cache_folder
from mesa_llm.llm.replies import call
from mesa_llm.model.recording import Recording
from tests.pot import PotModel


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESA_LLM_CACHE", str(tmp_path / "cache"))


def gguf(file: Path, file_type: int) -> Path:
    """Write a GGUF file that holds nothing but its quantisation."""
    name = b"general.file_type"
    field = struct.pack("<Q", len(name)) + name + struct.pack("<II", 4, file_type)
    file.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + field)
    return file


def test_a_file_is_known_by_its_checksum_and_quantisation(tmp_path: Path) -> None:
    file = gguf(tmp_path / "model.gguf", 15)
    profile, path = profile_of(f"local:{file}")
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    assert weights_of(path, profile) == {"file": "model.gguf", "sha256": sha256, "quantisation": "Q4_K_M"}


def test_weights_not_yet_downloaded_are_identified_by_checksum() -> None:
    assert CAPABLE.source is not None
    known = {"file": CAPABLE.source.file, "sha256": CAPABLE.source.sha256, "quantisation": "Q4_K_M"}
    assert weights_of(None, CAPABLE) == known


def test_a_checksum_is_computed_again_only_if_the_file_has_changed(tmp_path: Path) -> None:
    file = gguf(tmp_path / "model.gguf", 1)
    first = known_checksum(file)
    kept = cache_folder() / CHECKSUMS
    kept.write_text(kept.read_text().replace(first, "0" * 64))
    assert known_checksum(file) == "0" * 64
    os.utime(file, ns=(1, 1))
    assert known_checksum(file) == first
    kept.write_text("{")
    assert known_checksum(file) == first


class Weighted(ScriptedLLM):
    """A scripted model that says which weights it has."""

    def __init__(self, sha256: str) -> None:
        super().__init__(lambda request: call("pay", coins=1), name="local:model.gguf")
        self._facts = {"file": "model.gguf", "sha256": sha256 * 64, "quantisation": "Q8_0"}

    def weights(self) -> dict[str, Any]:
        return self._facts


def pot(log: Path, llm: Any, steps: int, **options: Any) -> PotModel:
    with closing(PotModel(2, llm, rng=1, log=log, **options)) as model:
        model.run_for(steps)
    return model


def test_a_run_is_not_resumed_with_other_weights_and_replays_without_any(tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    recorded = pot(log, Weighted("a"), 2)
    assert Recording.read(log).models["local:model.gguf"]["sha256"] == "a" * 64
    assert pot(log, Weighted("b"), 2).runlog.digest == recorded.runlog.digest  # nothing is asked
    with pytest.raises(ConfigError, match=r"of other weights: model.gguf \(SHA-256 aaaaaaaaaaaaaaaa…, Q8_0\) then, "):
        pot(log, Weighted("b"), 3)
    assert pot(log, "local:model.gguf", 2, replay=True).runlog.digest == recorded.runlog.digest
    assert pot(log, Weighted("a"), 3).usage.calls == 2


def test_a_log_that_does_not_say_what_decided_is_resumed_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    pot(log, Weighted("a"), 2)
    with closing(sqlite3.connect(log)) as database, database:
        database.execute("DELETE FROM manifest WHERE name = 'models'")
    pot(log, Weighted("b"), 3)
    with closing(sqlite3.connect(log)) as database:
        facts = dict(database.execute("SELECT name, value FROM manifest"))
    assert "models" not in facts
    assert json.loads(facts["recorded_on"])
