"""Sealed claims: what a report says of them is true, whatever was changed since."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from mesa_llm.experiments.audits import AuditClaim, audit, check_seal, claim_from, seal_claims
from mesa_llm.experiments.audits.seal import FILE
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel

CHANCE: dict[str, Any] = {"llm": "random", "dimensions": ["sequencing"], "awareness": False}
GAME = {"guests": 2, "regulars": False, "rounds": 1}


def claim(name: str = "level", smallest_effect: float = 0.1, **fields: Any) -> AuditClaim:
    """Return a claim about the guests."""
    fields = {"measure": "guests_cooperation", "smallest_effect": smallest_effect, **fields}
    return claim_from(name, fields, DilemmaModel)


def audited(folder: Path, *claims: AuditClaim, seeds: int = 2, **changes: Any) -> str:
    """Audit claims with chance, and return what is said of their seal."""
    return audit(DilemmaModel, claims, folder=folder, seeds=seeds, parameters=GAME, **{**CHANCE, **changes}).seal_text


def test_claims_are_sealed_before_the_first_run_of_every_audit(tmp_path: Path) -> None:
    found = audit(DilemmaModel, [claim()], folder=tmp_path, seeds=2, parameters=GAME, **CHANCE)
    (seal,) = json.loads((tmp_path / FILE).read_text(encoding="utf-8"))["seals"]
    assert hashlib.sha256(seal["text"].encode()).hexdigest() == seal["sha256"]
    n = found.cost["runs"]
    sentence = f"The claims were sealed at {seal['sealed']} (SHA-256 {seal['sha256']}), before the first of {n} runs."
    assert found.seal_text == sentence
    assert sentence in found.methods
    assert found.to_json()["seal"]["sealed before the first run"] is True
    assert sentence in found.page()


def resealed(folder: Path) -> None:
    """Put the seal of other claims in the place of the seal."""
    (folder / FILE).unlink()
    seal_claims([claim(smallest_effect=0.3)], folder)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda folder: None,
        lambda folder: (folder / FILE).unlink(),
        lambda folder: (folder / FILE).write_text("{"),
        resealed,
    ],
)
def test_claims_that_stay_as_they_were_are_sealed_whatever_happens_to_the_seal_file(
    tmp_path: Path, tamper: Callable[[Path], object]
) -> None:
    audited(tmp_path, claim())
    tamper(tmp_path)
    before = check_seal([claim()], tmp_path).seal.sealed
    text = audited(tmp_path, claim(), seeds=3)
    assert text.startswith(f"The claims were sealed at {before} (SHA-256 ")
    copy = shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name}-copy"))
    assert check_seal([claim()], copy).text == text


@pytest.mark.parametrize(
    "changed",
    [
        claim(smallest_effect=0.2),
        claim(expects="value in [0, 1]"),
        claim(statistic="spread"),
        claim(measure="guests_score"),
        claim(between=[{"noise": 0.0}, {"noise": 0.5}]),
    ],
)
def test_claims_that_were_changed_after_runs_are_not_sealed(tmp_path: Path, changed: AuditClaim) -> None:
    audited(tmp_path, claim())
    n = check_seal([claim()], tmp_path).n_runs
    text = audited(tmp_path, changed)
    n_all = check_seal([claim()], tmp_path).n_runs
    wanted = (
        f"Not sealed before the first run: level; {n} of {n_all} runs began when it was not sealed as it stands now."
    )
    assert text == wanted


def test_what_is_no_part_of_a_claim_leaves_its_seal(tmp_path: Path) -> None:
    first, second = claim(), claim("other", 0.5)
    audited(tmp_path, first, second)
    assert audited(tmp_path, second, first, dimensions=["format"]).startswith("The claims were sealed at ")


def test_a_claim_added_later_is_named_and_one_that_was_left_out_too(tmp_path: Path) -> None:
    audited(tmp_path, claim("first"))
    text = audited(tmp_path, claim("first"), claim("late", 0.5))
    assert text.startswith("Sealed before the first of ")
    assert "runs: first. Not sealed before the first run: late; " in text
    assert audited(tmp_path, claim("first")).endswith("Sealed in this folder and not judged here: late.")


def test_runs_whose_logs_hold_no_seal_are_not_sealed(tmp_path: Path) -> None:
    """Rows whose logs were deleted count: their runs could have been made under any claims."""
    audited(tmp_path, claim())
    for log in (tmp_path / "logs").glob("*.sqlite"):
        log.unlink()
    check = check_seal([claim()], tmp_path)
    assert (check.is_sealed, check.n_before["level"]) == (False, check.n_runs)


def test_a_seal_that_was_changed_by_hand_is_none(tmp_path: Path) -> None:
    seal_claims([claim()], tmp_path)
    written = json.loads((tmp_path / FILE).read_text(encoding="utf-8"))
    written["seals"][0]["text"] = written["seals"][0]["text"].replace("0.1", "0.2")
    (tmp_path / FILE).write_text(json.dumps(written), encoding="utf-8")
    assert seal_claims([claim()], tmp_path).text != written["seals"][0]["text"]


def test_the_command_seals_claims_before_any_run_and_the_audit_says_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["audit", "prisoners_dilemma", "--measure", "cooperation", "--smallest-effect", "0.1", "--out", "audit"]
    monkeypatch.chdir(tmp_path)
    sealed = CliRunner().invoke(app, [*command, "--seal"])
    (seal,) = json.loads(Path("audit", FILE).read_text(encoding="utf-8"))["seals"]
    when = f"at {seal['sealed']} (SHA-256 {seal['sha256']})"
    assert sealed.output.startswith(f"The claims were sealed {when}, before any run.")
    options = ["--llm", "random", "--seeds", "2", "--dimensions", "sequencing", "--set", "rounds=1"]
    found = CliRunner().invoke(app, [*command, *options])
    assert f"The claims were sealed {when}, before the first of " in found.output
