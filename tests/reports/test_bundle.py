"""Study bundles: a run replays from one file elsewhere, and a bundle from anybody does no harm."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mesa_llm import ConfigError, LLMModel, ScriptedLLM
from mesa_llm.cli.app import app
from mesa_llm.experiments.runs import recordings
from mesa_llm.experiments.runs.recordings import recorded_run
from mesa_llm.model.recording import Recording
from mesa_llm.registry import find_model
from mesa_llm.reports import bundle as bundles
from mesa_llm.reports import bundle_of, unpack
from mesa_llm.reports.bundle import NOT_COMPARED, BundleManifest
from mesa_llm_models.market.model import MarketModel
from mesa_llm_models.social.model import SocialModel
from tests.faulty_server import FaultyServer
from tests.pot import PotModel

ROOT = Path(__file__).parents[2]

LAKE = '''
"""A lake that belongs to nobody, whose anglers are named in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from lake_words import seen_text
from mesa_llm import LLMAgent, LLMModel, LLMOptions, LLMScenario, Observation, ToolCall, action


class LakeScenario(LLMScenario):
    """Parameters of the lake."""

    anglers: str = ""
    """File with a name a line; empty: three without a name."""

    stock: Annotated[int, Field(ge=1)] = 100
    """Fish at the start."""


class Angler(LLMAgent):
    """Somebody who fishes."""

    def observe(self) -> Observation:
        return Observation(seen_text(self.model.stock), facts=self.model.stock)

    def rule(self, seen: Observation) -> ToolCall:
        """Catch a tenth."""
        return ToolCall("fish", {"n": min(10, seen.facts // 10)})

    @action
    def fish(self, n: Annotated[int, Field(ge=0, le=10)]) -> str:
        """Catch some fish."""
        caught = min(n, self.model.stock)
        self.model.stock -= caught
        return f"You caught {caught}."


class LakeModel(LLMModel):
    """Anglers at a lake."""

    scenario_class = LakeScenario
    scenario: LakeScenario

    def __init__(self, scenario: LakeScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        file = self.scenario.anglers
        names = Path(file).read_text(encoding="utf-8").splitlines() if file else [""] * 3
        self.stock = self.scenario.stock
        Angler.create_agents(self, len(names), config=[f"You are {name}." for name in names])
        self.datacollector = DataCollector({"stock": "stock"})
        self.datacollector.collect(self)

    def end_step(self) -> None:
        """Let the fish grow."""
        self.stock = min(100, 2 * self.stock)
'''
"""A model of somebody's own, with a module and prompts beside it."""


def run_command(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def own_command(folder: Path, *words: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, in a folder."""
    folder.mkdir(exist_ok=True)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "models")))}
    command = [sys.executable, "-m", "mesa_llm.cli.app", *map(str, words)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def recorded(folder: Path, model: type[LLMModel] = PotModel, **options: Any) -> Recording:
    """Record two steps of a model."""
    with closing(model(rng=1, log=folder / "run.sqlite", **options)) as run:
        run.run_for(2)
    return Recording.read(folder / "run.sqlite")


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that records a run and bundles it."""

    def make(name: str = "study.zip", model: type[LLMModel] = MarketModel, **options: Any) -> Path:
        stage = tmp_path / f"stage of {name}"
        stage.mkdir()
        run = recorded(tmp_path, model, **options)
        bundle_of(run, stage).write(tmp_path / name)
        (tmp_path / "run.sqlite").unlink()
        return tmp_path / name

    return make


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle a run of a model of somebody's own, and delete all that it was made with."""
    folder = tmp_path_factory.mktemp("study")
    home = folder / "home"
    (home / "prompts").mkdir(parents=True)
    files = {"lake_model.py": LAKE, "lake_words.py": "def seen_text(n):\n    return f'The lake holds {n} fish.'\n"}
    files |= {"prompts/instructions.md": "You fish.", "names.txt": "Mina\nOle\n"}
    for name, text in files.items():
        (home / name).write_text(text, encoding="utf-8")
    run = "run lake_model:LakeModel --llm random --steps 3 --rng 1 --log run.sqlite --set"
    assert own_command(home, *run.split(), f"anglers={home / 'names.txt'}").returncode == 0
    made = own_command(home, "bundle", "run.sqlite", "--out", "study.zip", "--trust", "--yes")
    assert made.returncode == 0, made.stderr
    assert "code/lake_model.py, code/lake_words.py, code/prompts/instructions.md" in made.stdout
    shutil.move(home / "study.zip", folder / "study.zip")
    shutil.rmtree(home)
    return folder / "study.zip"


@pytest.mark.slow
def test_a_model_of_ones_own_replays_where_its_files_are_not(study: Path, tmp_path: Path) -> None:
    done = own_command(tmp_path / "away", "replay", study, "--trust")
    assert (done.returncode, done.stdout.splitlines()[-1][:31]) == (0, "identical: 6 decisions, digest "), done.stderr


@pytest.mark.slow
def test_code_out_of_a_bundle_is_not_run_unless_it_is_trusted(study: Path, tmp_path: Path) -> None:
    done = own_command(tmp_path / "away", "replay", study)
    assert done.returncode == 2
    assert "cannot be replayed" in done.stderr
    assert "add --trust" in done.stderr


def test_equal_runs_give_equal_bundles(made: Any) -> None:
    assert made("one.zip").read_bytes() == made("two.zip").read_bytes()


def test_a_bundle_holds_log_tables_document_versions_and_a_hash_of_each(made: Any, tmp_path: Path) -> None:
    file = made()
    manifest = unpack(file, tmp_path / "out")
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
    assert names == {*manifest.files, "MANIFEST.json"}
    assert {"run.sqlite", "ODD.md", "README.md", "requirements.txt", "tables/measures.csv"} <= names
    assert "prompts/instructions.md" in names
    assert (
        f"mesa-llm-worlds=={manifest.versions['mesa-llm-worlds']}\n" in (tmp_path / "out/requirements.txt").read_text()
    )
    assert manifest.decisions == 2 * 12
    assert manifest.digest in (tmp_path / "out/README.md").read_text()


def test_input_files_are_in_it_and_no_path_of_the_machine_is(made: Any, tmp_path: Path) -> None:
    users = tmp_path / "people" / "users.csv"
    users.parent.mkdir()
    users.write_text("name,persona\nMina,A baker.\nOle,A pilot.\n", encoding="utf-8")
    file = made(model=SocialModel, users=str(users), llm="random")
    users.unlink()
    unpack(file, tmp_path / "out")
    assert (tmp_path / "out/inputs/users.csv").is_file()
    assert not [
        path for path in (tmp_path / "out").rglob("*") if path.is_file() and str(tmp_path).encode() in path.read_bytes()
    ]
    done = run_command("replay", file)
    assert (done.exit_code, done.stdout.splitlines()[-1][:11]) == (0, "identical: ")


def test_a_run_that_comes_with_a_model_is_bundled_by_its_name(tmp_path: Path, monkeypatch) -> None:
    anew = recorded_run("schelling/town").model_copy(update={"folder": tmp_path})
    anew.record(find_model("schelling").load(), "random", tmp_path / "log.sqlite")
    monkeypatch.setattr(recordings, "recorded_run", {"schelling/town": anew}.__getitem__)
    made = run_command("bundle", "schelling/town", "--out", tmp_path / "town.zip", "--json")
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["decisions"] == anew.recording.n_rows > 50
    done = run_command("replay", tmp_path / "town.zip")
    said = done.stdout.splitlines()[-1].rpartition("digest")[0]
    assert (done.exit_code, said) == (0, f"identical: {anew.recording.n_rows} decisions, ")


def test_a_run_of_earlier_prompts_is_not_bundled_and_the_version_that_can_is_named(tmp_path: Path) -> None:
    earlier = recorded_run("schelling/town")
    made = run_command("bundle", "schelling/town", "--out", tmp_path / "town.zip")
    refused = (made.exit_code, (tmp_path / "town.zip").exists()) == (2, False)
    assert refused is earlier.is_of_earlier_prompts, made.output
    assert not refused or f"pip install mesa-llm-worlds=={earlier.recording.version}" in made.stderr


def test_a_run_that_does_not_replay_is_not_bundled(tmp_path: Path) -> None:
    recorded(tmp_path)
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as file, file:
        file.execute("UPDATE steps SET digest = 'another' WHERE time = 2")
    done = run_command("bundle", tmp_path / "run.sqlite", "--out", tmp_path / "study.zip", "--trust")
    assert (done.exit_code, (tmp_path / "study.zip").exists()) == (2, False)
    assert "holds something else than its replies give (steps.digest, step 2: recorded" in done.stderr


def test_a_missing_input_file_is_named(tmp_path: Path) -> None:
    users = tmp_path / "users.csv"
    users.write_text("name,persona\nMina,A baker.\nOle,A pilot.\n", encoding="utf-8")
    run = recorded(tmp_path, SocialModel, users=str(users))
    users.write_text("name,persona\nMina,A baker.\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"was made with users=.*users\.csv, and no file with this content"):
        bundle_of(run, tmp_path)


def test_private_data_is_listed_and_nothing_written_unless_agreed(tmp_path: Path) -> None:
    users = tmp_path / "users.csv"
    users.write_text("name,persona\nMina Berg,Write to mina@berg.example or +41 79 555 12 34.\nOle,A pilot.\n")
    recorded(tmp_path, SocialModel, users=str(users))
    out = tmp_path / "study.zip"
    done = run_command("bundle", tmp_path / "run.sqlite", "--out", out)
    assert (done.exit_code, out.exists()) == (2, False)
    assert "inputs/users.csv: e-mail address (1): mina@berg.example" in done.stdout
    assert "inputs/users.csv: phone number (1): +41 79 555 12 34" in done.stdout
    assert "inputs/users.csv: column 'name' (2): Mina Berg, Ole" in done.stdout
    assert "add --yes" in done.stderr
    assert run_command("bundle", tmp_path / "run.sqlite", "--out", out, "--yes").exit_code == 0
    assert out.exists()


class Villager(ScriptedLLM):
    """Writes as people do."""

    is_person = True


def test_what_people_wrote_is_looked_through(tmp_path: Path) -> None:
    text = "I met Anna Keller, call 079 555 12 34 or anna@keller.example, see /home/anna/notes.txt"
    person = Villager(lambda request: {"action": "create_post", "arguments": {"content": text}}, name="human")
    run = recorded(tmp_path, SocialModel, n_agents=2, llm=person)
    (tmp_path / "out").mkdir()
    found = {one.what: one.examples for one in bundle_of(run, tmp_path / "out").disclosures()}
    assert found["name written by a person"] == ("Anna Keller",)
    assert found["phone number written by a person"] == ("079 555 12 34",)
    assert found["e-mail address"] == ("anna@keller.example",)
    assert found["private path"] == ("/home/anna/notes.txt",)


def test_bundle_lists_the_language_model_server_and_replays_without_it(tmp_path: Path) -> None:
    with FaultyServer() as server:
        recorded(tmp_path, SocialModel, n_agents=2, llm="stub", api_base=server.url)
    (tmp_path / "out").mkdir()
    bundle = bundle_of(Recording.read(tmp_path / "run.sqlite"), tmp_path / "out")
    assert {one.what: one.examples for one in bundle.disclosures()} == {"address of a server": (server.url,)}
    bundle.write(tmp_path / "study.zip")
    assert run_command("replay", tmp_path / "study.zip").exit_code == 0


def test_a_key_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "correct-horse-battery")
    users = tmp_path / "users.csv"
    users.write_text("name,persona\nMina,Her key is correct-horse-battery.\nOle,A pilot.\n")
    recorded(tmp_path, SocialModel, users=str(users))
    done = run_command("bundle", tmp_path / "run.sqlite", "--out", tmp_path / "study.zip", "--yes")
    assert (done.exit_code, (tmp_path / "study.zip").exists()) == (2, False)
    assert "what looks like a key of yours stands in inputs/users.csv" in done.stderr
    assert "horse" not in done.stderr


def test_a_link_in_place_of_the_file_is_not_replaced(made: Any, tmp_path: Path) -> None:
    (tmp_path / "study.zip").symlink_to(tmp_path / "elsewhere.zip")
    with pytest.raises(ConfigError, match=r"study\.zip' is a link"):
        made()
    assert (tmp_path / "study.zip").is_symlink()
    assert not (tmp_path / "elsewhere.zip").exists()


# -- bundles of others


def changed(file: Path, name: str, content: bytes, attributes: int = 0) -> Path:
    """Write a bundle again, with another file in it or in place of one."""
    with zipfile.ZipFile(file) as source:
        contents = {entry: source.read(entry) for entry in source.namelist() if entry != name}
    target = file.with_name("changed.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, old in contents.items():
            archive.writestr(entry, old)
        added = zipfile.ZipInfo(name)
        added.external_attr = attributes
        archive.writestr(added, content, zipfile.ZIP_DEFLATED)
    return target


def refusal(file: Path, folder: Path) -> str:
    """Return why a bundle is refused; nothing outside of the folder may be written."""
    folder.mkdir()
    with pytest.raises(ConfigError) as error:
        unpack(file, folder)
    assert not (folder.parent / "evil.txt").exists()
    return str(error.value)


@pytest.mark.parametrize(
    "name", ["../evil.txt", "/evil.txt", "a/../../evil.txt", "C:/evil.txt", "a\\..\\evil.txt", "a//b", "b/"]
)
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str, made: Any, tmp_path: Path) -> None:
    file = changed(made(), name, b"")
    assert "which no bundle has; nothing was unpacked" in refusal(file, tmp_path / "here")


def test_a_link_is_refused(made: Any, tmp_path: Path) -> None:
    file = changed(made(), "link", b"/etc/passwd", (stat.S_IFLNK | 0o777) << 16)
    assert "'link', which no bundle has" in refusal(file, tmp_path / "here")


def test_a_bomb_is_refused_before_it_is_unpacked(made: Any, tmp_path: Path) -> None:
    file = changed(made(), "zeros", bytes(bundles.FREE_BYTES + 1))
    assert "would unpack to" in refusal(file, tmp_path / "here")
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("name", ["run.sqlite", "tables/measures.csv", "extra.txt", "ODD.MD"])
def test_a_file_that_the_manifest_does_not_name_so_is_refused(name: str, made: Any, tmp_path: Path) -> None:
    fault = refusal(changed(made(), name, b"something else"), tmp_path / "here")
    assert any(words in fault for words in ("is not the file", "does not hold what", "twice"))


def forged(file: Path, target: Path, others: Mapping[str, bytes | None]) -> Path:
    """Write a copy of a bundle with other contents of some files (None: without one), and all hashes made anew."""
    with zipfile.ZipFile(file) as archive:
        whole = {one: archive.read(one) for one in archive.namelist()} | {**others}
    files = {one: content for one, content in whole.items() if content is not None}
    manifest = json.loads(files["MANIFEST.json"])
    manifest["files"] = {one: hashlib.sha256(files[one]).hexdigest() for one in sorted(files) if one != "MANIFEST.json"}
    files["MANIFEST.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(target, "w") as archive:
        for one, bytes_of in files.items():
            archive.writestr(one, bytes_of)
    return target


def another_digit(content: bytes) -> bytes:
    """Return a content with another last digit."""
    at = max((index for index, byte in enumerate(content) if chr(byte).isdigit()), default=0)
    return content[:at] + (b"7" if content[at : at + 1] != b"7" else b"8") + content[at + 1 :]


def altered(content: bytes) -> bytes:
    """Return a run log with another word in its decisions."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(content)
        database.execute("UPDATE actions SET result = '\"Nothing happened.\"' WHERE rowid = 1")
        database.commit()
        return database.serialize()


def differing(file: Path) -> set[str]:
    """Return which files of a bundle, and facts of its manifest, a replay names as different."""
    done = run_command("replay", file, "--json")
    assert done.exit_code == 1
    differences = json.loads(done.stdout.splitlines()[-1])["differences"]
    return {re.split(", line |: ", text)[0] for text in differences}


def test_every_file_of_a_bundle_is_compared_with_what_its_log_gives(made: Any, tmp_path: Path) -> None:
    file = made()
    assert run_command("replay", file).exit_code == 0
    with zipfile.ZipFile(file) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    log = run_command("replay", forged(file, tmp_path / "log.zip", {"run.sqlite": altered(files["run.sqlite"])}))
    assert (log.exit_code, "actions.result" in log.stdout) == (1, True)
    others = {
        name: another_digit(content) for name, content in files.items() if name not in ("MANIFEST.json", "run.sqlite")
    }
    assert {*others} - differing(forged(file, tmp_path / "forged.zip", others)) <= NOT_COMPARED.keys()


def test_every_fact_in_the_manifest_of_a_bundle_is_compared(made: Any, tmp_path: Path) -> None:
    file = made()
    with zipfile.ZipFile(file) as archive:
        manifest = json.loads(archive.read("MANIFEST.json"))
    facts = BundleManifest.model_fields.keys() - {"format", "files"}
    for name in facts:
        value = manifest[name]
        other = {"x": {}} if name == "models" else {"x": "1"} if name == "versions" else f"{value}7"
        manifest[name] = value + 1 if type(value) is int else not value if type(value) is bool else other
    other = forged(file, tmp_path / "forged.zip", {"MANIFEST.json": json.dumps(manifest).encode()})
    assert differing(other) >= {f"MANIFEST.json, {name}" for name in facts}


def test_a_file_that_no_run_gives_and_one_that_is_missing_are_named(made: Any, tmp_path: Path) -> None:
    file = made()
    more = run_command("replay", forged(file, tmp_path / "more.zip", {"tables/more.csv": b"a,b\n1,2\n"}))
    less = run_command("replay", forged(file, tmp_path / "less.zip", {"tables/measures.csv": None}))
    assert (more.exit_code, less.exit_code) == (1, 1)
    assert "tables/more.csv: no run of this log has such a file" in more.stdout
    assert "tables/measures.csv: it is missing" in less.stdout


def test_a_bundle_says_when_and_by_what_was_decided(made: Any, tmp_path: Path) -> None:
    manifest = unpack(made(), tmp_path / "out")
    assert manifest.recorded_on == date.today().isoformat()
    assert manifest.models == {"rule": {"access": "rule"}}
    assert f"recorded on {manifest.recorded_on} with" in (tmp_path / "out/README.md").read_text()


def test_what_is_no_bundle_cannot_be_replayed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("photo.jpg", b"")
    done = run_command("replay", tmp_path / "other.zip")
    assert (done.exit_code, len(done.output.splitlines())) == (2, 1)
    assert "cannot be replayed: " in done.stderr
    assert "it holds no MANIFEST.json" in done.stderr


def test_a_replay_ends_with_a_verdict_in_json_too(made: Any, tmp_path: Path) -> None:
    file = made()
    figures = json.loads(run_command("replay", file, "--json").stdout.splitlines()[-1])
    assert (figures["verdict"], figures["log"], figures["changed_versions"]) == ("identical", str(file), {})
    assert run_command("replay", file, "--into", tmp_path / "kept").exit_code == 0
    assert run_command("inspect", tmp_path / "kept" / "run.sqlite", "--decisions").exit_code == 0
    assert "expected a new or an empty folder" in run_command("replay", file, "--into", tmp_path / "kept").stderr
    broken = run_command("replay", tmp_path / "nowhere.sqlite", "--json")
    assert json.loads(broken.stdout)["verdict"] == "cannot be replayed"


def test_versions_that_differ_are_named(tmp_path: Path) -> None:
    recorded(tmp_path, MarketModel)
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as file, file:
        file.execute("UPDATE manifest SET value = json_set(value, '$.numpy', '1.0') WHERE name = 'versions'")
    lines = run_command("replay", tmp_path / "run.sqlite").stdout.splitlines()
    assert lines[-2].startswith("versions that differ from the recording's: numpy 1.0 (here ")
    assert lines[-1].startswith("identical: ")
