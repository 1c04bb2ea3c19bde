"""Recorded audits: judged again, they find the same, and ask nothing."""

from __future__ import annotations

import io
import sqlite3
import sys
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from mesa_llm import ConfigError
from mesa_llm.experiments.audits import Audit, declared_audit, record_audit, recorded_audit, run_setup
from mesa_llm.model.identity import class_named
from mesa_llm.model.model import LLMModel
from tests.faulty_server import FaultyServer

DECLARED = """
[audit]
llm = ["tiny"]
seeds = 2
parameters = { guests = 2, regulars = false, rounds = 2 }
dimensions = ["agent specification"]

[claims.cooperation]
measure = "guests_cooperation"
smallest_effect = 0.1
"""


@pytest.fixture
def kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[LLMModel]:
    """Return a model of one's own that declares an audit."""
    module = tmp_path / "own_dilemma.py"
    module.write_text(
        "from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel\n"
        "class OwnDilemma(DilemmaModel):\n    pass\n"
    )
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / "audit.toml").write_text(DECLARED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_dilemma", raising=False)
    return class_named("own_dilemma:OwnDilemma", LLMModel)


def record(kind: type[LLMModel], folder: Path) -> Audit:
    """Make the audit that a model declares at a server, and record it."""
    setup = declared_audit(kind, folder)
    with FaultyServer(lambda body, number: None) as server:
        found = run_setup(setup, api_base=server.url)
    record_audit(setup)
    return found


def test_a_recorded_audit_finds_the_same_and_asks_nothing(kind: type[LLMModel], tmp_path: Path) -> None:
    found = record(kind, tmp_path / "made")
    again = run_setup(recorded_audit(kind, tmp_path / "again"))
    assert again.claims == found.claims
    assert again.awareness == found.awareness


def change(folder: Path) -> Path:
    """Change the decisions of one run of an audit by hand."""
    log = next(file for file in sorted((folder / "logs").glob("[0-9a-f]*.sqlite")))
    with closing(sqlite3.connect(log)) as database, database:
        database.execute("UPDATE decisions SET decision = '[[],\"forged\"]'")
    return log


def test_decisions_that_were_changed_by_hand_are_not_judged(kind: type[LLMModel], tmp_path: Path) -> None:
    record(kind, tmp_path / "made")
    run_setup(recorded_audit(kind, tmp_path / "again"))
    run_setup(recorded_audit(kind, tmp_path / "again"))
    log = change(tmp_path / "again")
    with pytest.raises(ConfigError, match=rf"{log.name}' is not the log of the recorded run; delete it"):
        recorded_audit(kind, tmp_path / "again")
    log = change(tmp_path / "made")
    with pytest.raises(ConfigError, match=rf"{log.stem}.json' is not the row of its run: .*its log, was changed"):
        run_setup(declared_audit(kind, tmp_path / "made"))


def test_a_recorded_audit_that_does_not_fit_says_why(kind: type[LLMModel], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has not been recorded yet"):
        recorded_audit(kind, tmp_path / "none")
    record(kind, tmp_path / "made")
    archive = tmp_path / "recordings" / "audit.tar.xz"
    declaration = tmp_path / "recordings" / "audit.toml"
    declaration.write_text(DECLARED.replace("rounds = 2", "rounds = 3"))
    with pytest.raises(ConfigError, match=r"lacks \d+ files of what is audited today"):
        recorded_audit(kind, tmp_path / "longer")
    archive.write_bytes(archive.read_bytes()[:-100])
    with pytest.raises(ConfigError, match="is damaged"):
        recorded_audit(kind, tmp_path / "damaged")
    with tarfile.open(archive, "w:xz") as packed:
        entry = tarfile.TarInfo("../outside.json")
        packed.addfile(entry, io.BytesIO())
    with pytest.raises(ConfigError, match=r"holds '../outside.json'"):
        recorded_audit(kind, tmp_path / "hostile")
    assert not (tmp_path / "hostile" / "outside.json").exists()
