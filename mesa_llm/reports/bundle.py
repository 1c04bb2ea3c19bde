"""Study bundles: one file with all that another machine needs to replay a run, and to read what it was.

A bundle is a zip archive with the run log, the input files that its parameters name, the prompts, the code of a model
that no installed package holds, the versions of all packages, the tables, an ODD document, a README, and a manifest
with the hash of every file. Paths in it are relative; equal runs give equal bundles.
"""

from __future__ import annotations

import ast
import hashlib
import secrets
import shutil
import stat
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.model.identity import present_files, with_moved_files
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.prompts import FOLDER as PROMPTS
from mesa_llm.prompts import Prompts
from mesa_llm.reports.export import write_tables
from mesa_llm.reports.odd import FILE as ODD_TEXTS
from mesa_llm.reports.odd import odd_of
from mesa_llm.reports.private_data import Disclosure, private_data, require_no_keys
from mesa_llm.runlog.log import RunLog
from mesa_llm.text import counted
from mesa_llm.tools.tool import describe

LOG, CONTENTS, ODD, README, LOCK = "run.sqlite", "MANIFEST.json", "ODD.md", "README.md", "requirements.txt"
"""Files of a bundle besides those in folders."""

INPUTS, CODE, TABLES = "inputs", "code", "tables"
"""Folders of a bundle, besides `prompts`."""

COMPANIONS = (PROMPTS, "data", "templates", "README.md", ODD_TEXTS, "text.py")
"""Files and folders beside the code of a model that belong to it."""

FORMAT = 2
"""Version of the form of a bundle; 1 had no date, and is read too."""

MAX_FILES = 10_000
"""Maximum number of files in a bundle."""

MAX_BYTES = 2_000_000_000
"""Maximum number of bytes in a bundle, unpacked."""

MAX_RATIO = 200
"""Maximum size of a bundle unpacked, as a multiple of its size, beyond `FREE_BYTES`."""

FREE_BYTES = 50_000_000
"""Number of bytes that any bundle may unpack to."""

MAX_MANIFEST = 10_000_000
"""Maximum number of bytes of a bundle's manifest."""

MAX_PATH = 200
"""Maximum number of characters of the path of a file in a bundle."""

WALL_CLOCK = "seconds"
"""Column of the measures that differs from replay to replay."""

_TIME = (1980, 1, 1, 0, 0, 0)
"""Time of every file in an archive, the earliest that it can hold."""

_CHUNK = 1 << 20


class BundleManifest(BaseModel, strict=True, frozen=True, extra="forbid"):
    """What a bundle holds."""

    format: int
    """Version of its form."""

    model: str
    """Class of the model, as `module:Class`."""

    rng: int | None
    """Seed."""

    steps: Annotated[int, Field(ge=1)]
    """Number of steps."""

    decisions: Annotated[int, Field(ge=0)]
    """Number of decisions."""

    digest: str
    """Digest of the run."""

    versions: dict[str, str]
    """Package → version that recorded the run."""

    recorded_on: str = ""
    """Date on which the recording began, as `2026-11-26`; empty: unknown."""

    models: dict[str, dict[str, Any]] = {}
    """Name of a language model → what decided: its mode of access and, of local weights, their SHA-256."""

    needs_trust: bool
    """Whether a replay runs code out of the bundle."""

    files: dict[str, str]
    """File → its SHA-256, of all files but this one."""


@dataclass(frozen=True)
class Bundle:
    """A bundle that is about to be written: its files lie in a folder."""

    folder: Path
    """The folder."""

    manifest: BundleManifest
    """What it holds."""

    missing: tuple[str, ...]
    """Parameters that name a folder, which is not in the bundle."""

    def disclosures(self) -> list[Disclosure]:
        """Return the private paths and personal data that may be in it."""
        made = (TABLES, PROMPTS)  # of the log, and of the model
        paths = [path for path in self._paths() if path.relative_to(self.folder).parts[0] not in made]
        return private_data(paths, self.folder, self.folder / LOG)

    def write(self, target: Path) -> int:
        """Write the archive, replacing the target unless that is a link, and return its size in bytes.

        Raises:
            ConfigError: If a file holds a key, or the archive cannot be written.
        """
        require_no_keys(self._paths(), self.folder, self.folder / LOG)
        if target.is_symlink():
            raise ConfigError(
                f"{str(target)!r} is a link, which would be replaced; name the file itself, or another one"
            )
        partial = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("xb"):  # a link of this name is not followed
                pass
            with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
                for path in self._paths():
                    entry = zipfile.ZipInfo(path.relative_to(self.folder).as_posix(), _TIME)
                    entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o644) << 16
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as packed:
                        shutil.copyfileobj(source, packed, _CHUNK)
            with zipfile.ZipFile(partial) as archive:
                _require_safe(archive.infolist(), partial)  # what nobody could unpack is not written
            partial.replace(target)
        except OSError as error:
            raise ConfigError(f"{str(target)!r} cannot be written: {error.strerror}") from error
        finally:
            partial.unlink(missing_ok=True)
        return target.stat().st_size

    @property
    def own_files(self) -> list[str]:
        """Names of the files that belong to the code of a model of one's own."""
        return [
            path.relative_to(self.folder).as_posix() for path in self._paths() if self.folder / CODE in path.parents
        ]

    def _paths(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file())


def bundle_of(recording: Recording, folder: Path, *, own_code: Iterable[str] = ()) -> Bundle:
    """Put the files of a bundle into a folder, and replay the run from there.

    Args:
        recording: The run.
        folder: An empty folder.
        own_code: Names, as `module:name`, of what the run imports and no installed package holds.

    Raises:
        ConfigError: If an input file is not found, or the run does not replay.
        ReplayError: If the run asks for something that the log does not hold.
    """
    versions = _copy_log(recording, _copy_inputs(recording, folder), folder / LOG)
    moved = Recording.read(folder / LOG)
    with closing(moved.rebuilt(log=moved.file, replay=True)) as model:
        comparison = moved.compare(model)
        kind = type(model)
        if comparison.differences:
            name = str(recording.file)
            raise ConfigError(
                f"{name!r} holds something else than its replies give ({comparison.differences[0]}); see mesa-llm "
                f"replay {name}"
            )
        _write_tables(model, folder / TABLES)
    modules = list(dict.fromkeys(name.partition(":")[0] for name in own_code))
    for module in modules:
        if module.partition(".")[0] not in _LIBRARIES:
            _copy_code(module, folder / CODE)
    _copy_prompts(kind, folder / PROMPTS)
    document = odd_of(kind, recording=moved)
    manifest = BundleManifest(
        format=FORMAT,
        model=moved.model,
        rng=moved.rng,
        steps=moved.last_step,
        decisions=moved.n_rows,
        digest=str(moved.digests[moved.last_step]),
        versions=versions,
        recorded_on=moved.recorded_on,
        models={name: dict(facts) for name, facts in moved.models.items()},
        needs_trust=bool(modules),
        files={},
    )
    texts = {ODD: document.markdown(), LOCK: "\n".join([*installed(), ""]), README: _readme(manifest)}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    manifest = manifest.model_copy(update={"files": _hashes(folder)})
    (folder / CONTENTS).write_text(f"{manifest.model_dump_json(indent=2)}\n", encoding="utf-8")
    return Bundle(folder, manifest, tuple(_folders_named(recording.parameters)))


def installed() -> list[str]:
    """Return all installed packages as lines of a file of requirements, sorted."""
    found = {str(one.metadata["Name"]).lower().replace("_", "-"): one.version for one in distributions()}
    return [f"{name}=={version}" for name, version in sorted(found.items())]


# -- what comes out


def unpack(file: Path, folder: Path) -> BundleManifest:
    """Unpack a bundle after every file in it has been checked; nothing of it is run or imported.

    Args:
        file: The bundle, which may come from anybody.
        folder: An empty folder.

    Raises:
        ConfigError: If it is no bundle, is damaged, does not hold what its manifest says, would unpack to too much, or
            holds anything but plain files inside its own folder.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            entries = {entry.filename: entry for entry in archive.infolist()}
            _require_safe(archive.infolist(), file)
            if CONTENTS not in entries:
                raise ConfigError(f"{str(file)!r} is no bundle: it holds no {CONTENTS}; mesa-llm bundle makes one")
            if entries[CONTENTS].file_size > MAX_MANIFEST:
                raise ConfigError(f"{str(file)!r} is no bundle: its {CONTENTS} is too large")
            manifest = _read_manifest(archive.read(CONTENTS), file)
            if strangers := sorted(entries.keys() ^ {*manifest.files, CONTENTS}):
                raise ConfigError(f"{str(file)!r} does not hold what its manifest says: {', '.join(strangers[:5])}")
            for name, digest in manifest.files.items():
                with archive.open(entries[name]) as source:
                    if _sha256(source) != digest:
                        raise ConfigError(
                            f"{str(file)!r}: {name} is not the file that its manifest names; get the bundle again"
                        )
            for name, entry in entries.items():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, target.open("xb") as unpacked:
                    shutil.copyfileobj(source, unpacked, _CHUNK)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise ConfigError(f"{str(file)!r} cannot be unpacked: {error}") from error
    return manifest


def _require_safe(entries: Iterable[zipfile.ZipInfo], file: Path) -> None:
    """Check that an archive holds a bounded number of plain files, all inside its own folder.

    Raises:
        ConfigError: If it does not.
    """
    names: set[str] = set()
    total = 0
    for entry in entries:
        total += entry.file_size
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG) or entry.is_dir() or entry.flag_bits & 1 or not _is_plain(entry.filename):
            raise ConfigError(f"{str(file)!r} holds {entry.filename!r:.80}, which no bundle has; nothing was unpacked")
        if entry.filename.casefold() in names:
            raise ConfigError(f"{str(file)!r} holds {entry.filename!r:.80} twice; nothing was unpacked")
        names.add(entry.filename.casefold())
    most = min(MAX_BYTES, max(FREE_BYTES, MAX_RATIO * file.stat().st_size))
    if len(names) > MAX_FILES or total > most:
        raise ConfigError(
            f"{str(file)!r} would unpack to {len(names):,} files of {total:,} bytes; at most {MAX_FILES:,} files of "
            f"{most:,} bytes are unpacked"
        )


def _is_plain(name: str) -> bool:
    """Check whether the name of a file stays inside the folder that it is unpacked to, on every system."""
    parts = name.split("/")
    return (
        name.isprintable()
        and not set(name) & set('\\:*?"<>|')
        and all(part not in ("", ".", "..") and part == part.strip(" ").rstrip(".") for part in parts)
        and len(name) <= MAX_PATH
    )


def _read_manifest(content: bytes, file: Path) -> BundleManifest:
    try:
        manifest = BundleManifest.model_validate_json(content)
    except ValidationError as error:
        raise ConfigError(f"{str(file)!r} is no bundle: {CONTENTS}: {describe(error)}") from error
    if not 1 <= manifest.format <= FORMAT:
        raise ConfigError(
            f"{str(file)!r} is a bundle of form {manifest.format}, and this version of mesa_llm reads forms 1 to "
            f"{FORMAT}: replay it with mesa-llm-worlds {manifest.versions.get('mesa-llm-worlds', '')}"
        )
    if LOG not in manifest.files:
        raise ConfigError(f"{str(file)!r} is no bundle: it holds no {LOG}")
    return manifest


NOT_COMPARED: Mapping[str, str] = {
    LOCK: "the packages of the machine that made the bundle",
    f"{CODE}/": "code, which the replay runs",
    f"{CONTENTS}: format": "the form of the bundle",
}
"""File, folder or fact of a bundle that a replay cannot check → what it is."""


def differing_members(folder: Path, manifest: BundleManifest, own_code: Iterable[str] = ()) -> list[str]:
    """Compare each file of an unpacked bundle with what its run log gives; hashes are as easily forged as files.

    Args:
        folder: Folder that the bundle was unpacked into; its run log has been replayed.
        manifest: What the bundle says that it holds.
        own_code: As for `bundle_of`.

    Returns:
        The files that differ, each with what does.

    Raises:
        ConfigError: If the run does not replay.
    """
    found: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mesa-llm-") as temporary:
        again = bundle_of(Recording.read(folder / LOG), Path(temporary), own_code=own_code)
        files = {*manifest.files, *again.manifest.files}
        for name in sorted(files - {LOG}):
            if not any(name == one or (one.endswith("/") and name.startswith(one)) for one in NOT_COMPARED):
                found += _difference(name, folder / name, Path(temporary) / name)
    for name, now in again.manifest.model_dump(exclude={"format", "files"}).items():
        if (recorded := getattr(manifest, name)) != now and (name in manifest.model_fields_set or manifest.format > 1):
            found.append(f"{CONTENTS}, {name}: in the bundle {recorded!r:.80}, of the log {now!r:.80}")
    return found


def _difference(name: str, here: Path, again: Path) -> Iterator[str]:
    """Describe how a file of a bundle differs from the one that its run log gives."""
    if not again.is_file():
        yield f"{name}: no run of this log has such a file"
    elif not here.is_file():
        yield f"{name}: it is missing"
    elif here.read_bytes() != again.read_bytes():
        lines, now = (path.read_bytes().splitlines() for path in (here, again))
        number = next((n for n, (old, new) in enumerate(zip(lines, now, strict=False)) if old != new), None)
        if number is None:
            yield f"{name}: it has {counted(len(lines), 'line')}, and the log gives {len(now)}"
        else:
            old, new = (text[number].decode(errors="replace") for text in (lines, now))
            yield f"{name}, line {number + 1}: in the bundle {old!r:.80}, of the log {new!r:.80}"


# -- what goes in


def _copy_inputs(recording: Recording, folder: Path) -> dict[str, str]:
    """Copy the input files of a run, and return their new paths: `parameter=path` → path in the bundle.

    Raises:
        ConfigError: If one is not found.
    """
    paths: dict[str, str] = {}
    by_content: dict[tuple[str, str], str] = {}
    for name, source in present_files(recording.files, recording.file).items():
        if source is None:
            raise ConfigError(
                f"{str(recording.file)!r} was made with {name}, and no file with this content (SHA-256 "
                f"{recording.files[name]}…) is there, in {str(Path.cwd())!r}, or in the folder of the log or above it"
            )
        key = source.name, recording.files[name]
        if key not in by_content:
            taken = {PurePosixPath(path).name for path in by_content.values()}
            own = source.name if source.name not in taken else f"{len(taken)}-{source.name}"
            by_content[key] = f"{INPUTS}/{own}"
            (folder / INPUTS).mkdir(exist_ok=True)
            shutil.copyfile(source, folder / INPUTS / own)
        paths[name] = by_content[key]
    return paths


def _copy_log(recording: Recording, inputs: Mapping[str, str], target: Path) -> dict[str, str]:
    """Copy a run log, with other paths of its input files, and return the versions that recorded it.

    Args:
        recording: The run.
        inputs: `parameter=path` → the new path.
        target: The copy.
    """
    parameters, files = with_moved_files(recording.parameters, recording.files, inputs)
    with closing(RunLog(recording.file, "read")) as source:
        source.clean_to(target, {"parameters": parameters, "files": files})
    return dict(recording.versions)


def _write_tables(model: LLMModel, folder: Path) -> None:
    """Write the tables of a run, without the time that its steps took."""
    collector: Any = model.datacollector
    if collector is not None:
        collector.model_vars.pop(WALL_CLOCK, None)
    write_tables(model, folder)


def _copy_prompts(kind: type[LLMModel], folder: Path) -> None:
    """Copy the templates that the agents of a model read, its own over those of the library."""
    folder.mkdir(exist_ok=True)
    prompts = Prompts(kind)
    for name in prompts.digests():
        if name.endswith(".md"):
            (folder / name).write_text(prompts[name].text, encoding="utf-8")


def _copy_code(module: str, folder: Path) -> None:
    """Copy a module, the modules beside it that it imports, and what belongs to them.

    Raises:
        ConfigError: If its source is not available.
    """
    source = _source_of(module)
    if source is None:
        raise ConfigError(f"the source of {module} is in no file; put the model into a module of its own")
    root = source.parents[module.count(".") + (source.name == "__init__.py")]
    companions = [source.with_name(name) for name in COMPANIONS]
    files = [*_imported(module, root, {}), *(path for one in companions for path in _files_in(one))]
    for path in dict.fromkeys(files):
        target = folder / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _files_in(path: Path) -> list[Path]:
    """Return a file, or the files in a folder; none if there is neither."""
    if path.is_file():
        return [path]
    return [one for one in sorted(path.rglob("*")) if one.is_file() and "__pycache__" not in one.parts]


def _imported(module: str, root: Path, known: dict[str, Path]) -> Iterable[Path]:
    """Return the files of a module and of those under a folder that it imports, one after the other."""
    source = _source_of(module)
    if module in known or source is None or root not in source.parents or "site-packages" in source.parts:
        return known.values()
    known[module] = source
    package = module if source.name == "__init__.py" else module.rpartition(".")[0]
    parents = [module.rsplit(".", index)[0] for index in range(1, module.count(".") + 1)]
    for name in (*parents, *_names_imported(source, package)):
        if name.partition(".")[0] not in _LIBRARIES:
            _imported(name, root, known)
    return known.values()


_LIBRARIES = frozenset({"mesa_llm", "mesa_llm_models"})
"""Packages that a bundle never holds, wherever their code is."""


def _names_imported(source: Path, package: str) -> Iterator[str]:
    """Yield the names of the modules that a file may import."""
    for node in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            name = ".".join(filter(None, (base, node.module)))
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)


def _source_of(module: str) -> Path | None:
    """Return the file of a module that has been imported; None: it has not, or is in no file of Python."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).resolve() if file is not None and file.endswith(".py") else None


def _folders_named(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parameters that name a folder."""
    for name, value in parameters.items():
        if isinstance(value, str) and (Path(value).name != value or value in (".", "..")) and Path(value).is_dir():
            yield f"{name}={value}"


def _hashes(folder: Path) -> dict[str, str]:
    hashes: dict[str, str] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            hashes[path.relative_to(folder).as_posix()] = _sha256(file)
    return hashes


def _sha256(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := file.read(_CHUNK):
        digest.update(piece)
    return digest.hexdigest()


def _model_text(facts: Mapping[str, Any]) -> str:
    """Describe what a language model was, and how it was asked."""
    weights = f", SHA-256 `{facts['sha256']}`" if facts.get("sha256") else ""
    kind = f", {facts['quantisation']}" if facts.get("quantisation") else ""
    return f"{facts.get('access', 'unknown')}{kind}{weights}"


def _readme(manifest: BundleManifest) -> str:
    """Write the README of a bundle."""
    own = manifest.versions.get("mesa-llm-worlds", "")
    trust = " --trust" if manifest.needs_trust else ""
    code = f"- `{CODE}/`: the code of the model, which a replay runs (`--trust`)\n" if manifest.needs_trust else ""
    seed = "" if manifest.rng is None else f", seed {manifest.rng}"
    date = f" on {manifest.recorded_on}" if manifest.recorded_on else ""
    models = "".join(f"- `{name}`: {_model_text(facts)}\n" for name, facts in manifest.models.items())
    decided = f"## What decided\n\n{models}\n" if models else ""
    return (
        f"# A recorded run of {manifest.model.partition(':')[2]}\n\n"
        f"{counted(manifest.steps, 'step')}, {counted(manifest.decisions, 'decision')}{seed}, recorded{date} with "
        f"mesa-llm-worlds {own} on Python {manifest.versions.get('python', '')}. Digest: `{manifest.digest}`.\n\n"
        f"{decided}"
        f"## Replay\n\nWhere mesa-llm-worlds {own} is installed:\n\n"
        f"```sh\nmesa-llm replay STUDY.zip{trust}\n```\n\n"
        "`STUDY.zip` is the file that this README comes from. The replay asks no language model and needs no key; it "
        "checks the hash of every file, repeats the run, and compares all that the log, the tables and the documents "
        "hold with what its replies give. If it differs or breaks, compare "
        f"the installed packages with `{LOCK}`.\n\n"
        "## Files\n\n"
        f"- `{LOG}`: every request, reply, decision and outcome\n"
        f"- `{INPUTS}/`: files that the run was made with, if any\n"
        f"{code}- `{PROMPTS}/`: the templates of what agents read\n"
        f"- `{TABLES}/`: measures, actions and events, as CSV\n"
        f"- `{ODD}`: the model by the ODD protocol\n"
        f"- `{LOCK}`: versions of all packages\n"
        f"- `{CONTENTS}`: SHA-256 of every file\n"
    )
