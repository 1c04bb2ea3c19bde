"""Folders of experiments that an earlier version made are resumed: nothing is made anew, and the findings are the same.

`data/folders.tar.xz` holds a folder for each of `EXPERIMENTS` and what was found in it, as this file made them with
version 1.0.0 (`python -m tests.experiments.test_resuming`, at 2cba1db5). Where models or audits have changed so that
runs of then are made anew, those are replaced by the ones in `data/folders_1_5.tar.xz`, of version 1.5.0.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest

from mesa_llm import AgentDesign
from mesa_llm.experiments import Findings, audit, benchmark, calibrate, sensitivity, study, sweep
from mesa_llm.experiments.audits import level_of
from mesa_llm.experiments.benchmarks.cross import cross
from mesa_llm.experiments.benchmarks.task import find_task
from mesa_llm.experiments.persona import persona_contrast
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel

ARCHIVE = Path(__file__).parent / "data" / "folders.tar.xz"

NEWER = Path(__file__).parent / "data" / "folders_1_5.tar.xz"

SINCE_1_5 = ("arms", "curves", "twins", "benched", "crossed", "audited")
"""Experiments whose folders are of version 1.5.0."""

TARGET = pd.DataFrame({"step": range(5), "gini": [0.0, 0.1, 0.2, 0.3, 0.3]})

PASSING = {"seconds", "done", "n_done", "tokens"}
"""Fields of findings that tell of one session."""

JUDGED = {"low", "high", "low_90", "high_90", "p", "corrected", "shown", "change", "further_seeds", "verdict", "claim"}
JUDGED |= {"adjusted_p", "methods", "notes", "without effect", "variance"}
"""Fields that rest on intervals, which are estimated in another way since, and sentences that are written anew."""


def swept(folder: Path) -> Any:
    designs = {"own": None, "forgetful": AgentDesign(memory="none")}
    fixed: Any = {"steps": 2, "seeds": 2, "fixed": {"rounds": 3}, "workers": 1}
    found = sweep(DilemmaModel, {"guests": [2, 3]}, llm=["rule", "random"], designs=designs, out=folder, **fixed)
    return found.table.drop(columns="seconds").to_dict("records")


def swept_without_logs(folder: Path) -> Any:
    found = sweep(WealthModel, {"n_agents": [3, 4]}, steps=2, out=folder, options={"light": True}, workers=1)
    return found.table.drop(columns="seconds").to_dict("records")


def arms(folder: Path) -> Any:
    small = {"n_agents": 20, "posts_per_step": 2}
    return study("oasis", "herd", seeds=2, out=folder, steps=2, parameters=small).to_json()


def worlds(folder: Path) -> Any:
    parameters = {"sizes": (12, 14)}
    return study("oasis", "scale", seeds=1, out=folder, steps=2, llm="random", parameters=parameters).to_json()


def curves(folder: Path) -> Any:
    return study("oasis", "spreading", seeds=1, out=folder, steps=2, parameters={"n_agents": 12}).to_json()


def rooms(folder: Path) -> Any:
    return study("discussion", "debate", out=folder, steps=3, parameters={"rooms": 1}).to_json()


def forms(folder: Path) -> Any:
    return study("classics", "persona_form", seeds=2, out=folder, parameters={"rounds": 1}).to_json()


def twins(folder: Path) -> Any:
    return study("classics", "boltzmann_wealth", out=folder).to_json()


def benched(folder: Path) -> Any:
    return tables(benchmark("auction_arena", "random", seeds=2, out=folder, is_quick=True, has_baseline=True))


def crossed(folder: Path) -> Any:
    designs = {"own": None, "forgetful": AgentDesign(memory="none")}
    task = find_task("auction_arena").as_quick()
    return tables(cross([task], designs, llm="random", seeds=2, folder=folder, options={}))


def tables(found: Findings) -> Any:
    """Return the tables of findings."""
    return {one.title: list(one.rows) for one in found.parts()}


def audited(folder: Path) -> Any:
    claims = [level_of(DilemmaModel, "guests_cooperation", 0.1)]
    small: Any = {"guests": 2, "regulars": False}
    how: Any = {"seeds": 2, "steps": 2, "dimensions": ["memory", "format"], "parameters": small}
    return audit(DilemmaModel, claims, folder=folder, llm="random", **how).to_json()


def calibrated(folder: Path) -> Any:
    how: Any = {"points": 20, "seeds": 1, "search": 1, "fixed": {"n_agents": 3}, "workers": 1}
    return calibrate(WealthModel, TARGET, {"coins": (1, 5)}, folder=folder, **how).to_json()


def analysed(folder: Path) -> Any:
    how: Any = {"points": 2, "steps": 2, "method": "morris", "fixed": {"coins": 2}, "workers": 1}
    return sensitivity(WealthModel, {"n_agents": (3, 6)}, folder=folder, **how).to_json()


def contrasted(folder: Path) -> Any:
    return [row.written for row in persona_contrast("random", ["cooperation"], folder=folder, samples=1)]


EXPERIMENTS: dict[str, Callable[[Path], Any]] = {
    made.__name__: made
    for made in (swept, swept_without_logs, arms, worlds, curves, rooms, forms, twins, benched, crossed, audited)
} | {made.__name__: made for made in (calibrated, analysed, contrasted)}
"""Name of a folder → makes the experiment in it, or resumes it."""


def lasting(found: Any) -> Any:
    """Return findings without what tells of one session, as JSON values."""
    if isinstance(found, dict):
        return {str(name): lasting(value) for name, value in found.items() if name not in PASSING}
    if isinstance(found, list | tuple):
        return [lasting(value) for value in found]
    return json.loads(json.dumps(found, default=str))


def common(found: Any, recorded: Any) -> Any:
    """Return what was found, without intervals, and without fields that findings did not have then."""
    if isinstance(found, dict) and isinstance(recorded, dict):
        left_out = JUDGED | ({"runs"} if recorded.get("mean", 0) is None else set())  # no run has the figure
        return {name: common(found.get(name), value) for name, value in recorded.items() if name not in left_out}
    if isinstance(found, str):
        return re.sub(r" \[.*\]$", "", found)
    if isinstance(found, list) and isinstance(recorded, list) and len(found) == len(recorded):
        return [common(*pair) for pair in zip(found, recorded, strict=True)]
    return found


GROWN = {"rooms": "", "forms": ""}
"""Study that has had a placebo since → begin of the figures of a reference that it has under another name."""


def is_kept(table: list[Any], row: dict[str, Any]) -> bool:
    """Check whether a table still has a row, among others and beside further cells."""
    wanted = {name: value for name, value in row.items() if name not in JUDGED}
    return any(wanted.items() <= one.items() for one in table)


def logs_in(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Return the run logs of a folder: path → digests of the steps, and number of calls."""
    found: dict[str, tuple[Any, ...]] = {}
    for file in folder.rglob("*.sqlite"):
        with closing(sqlite3.connect(file)) as log:
            steps = log.execute("SELECT * FROM steps").fetchall()
            found[file.relative_to(folder).as_posix()] = (*steps, *log.execute("SELECT count(*) FROM calls"))
    return found


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders as they were made by an earlier version, with what was found in each."""
    place = tmp_path_factory.mktemp("folders")
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(place, filter="data")
    for name in SINCE_1_5:
        shutil.rmtree(place / name)
    with tarfile.open(NEWER) as packed:
        packed.extractall(place, filter="data")
    return place


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_folder_of_before_is_resumed(folders: Path, name: str) -> None:
    folder = folders / name
    before = logs_in(folder)
    rows = {file: file.stat().st_mtime_ns for file in folder.rglob("*-*.json")}
    found = EXPERIMENTS[name](folder)
    recorded = json.loads((folders / f"{name}.json").read_text(encoding="utf-8"))
    if name in GROWN:
        gone = GROWN[name]
        for title, table in recorded["tables"].items():
            rows_of = [row for row in table if not gone or not str(row["figure"]).startswith(gone)]
            assert rows_of
            assert all(is_kept(lasting(found)["tables"][title], row) for row in rows_of)
    else:
        assert common(lasting(found), recorded) == common(recorded, recorded)
    assert before.items() <= logs_in(folder).items()
    assert name in GROWN or len(logs_in(folder)) == len(before)
    assert {file: file.stat().st_mtime_ns for file in rows} == rows


def make(archive: Path) -> None:
    """Make the folders of this version and their findings, and pack them."""
    with TemporaryDirectory() as name:
        place = Path(name)
        for experiment in SINCE_1_5:
            made = EXPERIMENTS[experiment]
            (place / experiment).mkdir()
            found = json.dumps(lasting(made(place / experiment)))
            (place / f"{experiment}.json").write_text(found, encoding="utf-8")
        for file in place.rglob("*.sqlite"):  # a model that is still open holds its last steps aside
            with closing(sqlite3.connect(file)) as log:
                log.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with tarfile.open(archive, "w:xz", preset=9) as packed:
            for file in sorted(place.rglob("*"), key=lambda file: (file.suffix, file.name)):
                if file.suffix in (".sqlite", ".json", ".csv"):
                    packed.add(file, file.relative_to(place).as_posix())


if __name__ == "__main__":
    make(NEWER)
