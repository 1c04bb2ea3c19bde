"""Recorded audits that come with a model: all their runs, so that anybody can judge them again and nothing is asked.

A model's folder declares one in `recordings/audit.toml`, its claims as in any file of claims, and how it audits them:

    [audit]
    llm = ["local:1.5b", "local"]
    seeds = 10
    options = { scoring = "probabilities" }

    [claims.character]
    measure = "guests_probability"
    ...

`perturbations` names those that are run, where they are not all that the model has: a later version may know more than
were recorded.

The runs lie beside it in one archive, compressed together, as they are much alike.
"""

from __future__ import annotations

import inspect
import io
import lzma
import os
import sqlite3
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.audits.audit import AuditSetup, audit_setup, files_of, missing_files
from mesa_llm.experiments.audits.claim import read_claims
from mesa_llm.experiments.runs.recordings import FOLDER
from mesa_llm.model.model import LLMModel
from mesa_llm.reports.private_data import require_no_keys
from mesa_llm.runlog.compact import write_clean
from mesa_llm.runlog.log import RunLog
from mesa_llm.text import counted
from mesa_llm.tools.tool import describe

DECLARATION = "audit.toml"
"""File in the folder of a model's recordings that declares a recorded audit."""

ARCHIVE = "audit.tar.xz"
"""File beside it with the runs."""

MAX_BYTES = 500_000_000
"""Maximum size of the unpacked runs, in bytes."""


class _Declaration(BaseModel):
    """How the claims are audited."""

    model_config = ConfigDict(extra="forbid")

    llm: list[str] = Field(min_length=1)
    seeds: int = Field(ge=2)
    steps: int | None = Field(default=None, ge=1)
    parameters: dict[str, Any] = {}
    options: dict[str, Any] = {}
    dimensions: list[str] | None = None
    perturbations: list[str] | None = None


def declared_audit(model: type[LLMModel], folder: str | Path, *, is_recorded: bool = False) -> AuditSetup:
    """Plan the audit that a model declares, as it would be made anew.

    Args:
        model: The model.
        folder: Folder of the logs and of the report.
        is_recorded: Whether all its runs are recorded, and nothing may be asked.

    Raises:
        ConfigError: If the model declares none, or its declaration is invalid.
    """
    file = _place(model) / DECLARATION
    if not file.is_file():
        raise ConfigError(f"{model.__name__} has no recorded audit: there is no {file}")
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        declared = _Declaration.model_validate(document.get("audit"))
    except ValidationError as error:
        raise ConfigError(f"{file}: {describe(error)}") from None
    except RecursionError:
        raise ConfigError(f"{file}: it is nested too deeply") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from error
    options = declared.model_dump(exclude={"perturbations"})
    setup = replace(audit_setup(model, read_claims(file, model), folder=folder, **options), is_recorded=is_recorded)
    if declared.perturbations is None:
        return setup
    try:
        plan = setup.plan.only(declared.perturbations, "not recorded" if is_recorded else "not chosen")
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    return replace(setup, plan=plan)


def recorded_audit(model: type[LLMModel], folder: str | Path) -> AuditSetup:
    """Unpack the recorded audit of a model into a folder; judged by `run_setup`, nothing is asked.

        found = run_setup(recorded_audit(DilemmaModel, "runs/recorded"))

    Args:
        model: The model.
        folder: Folder of the logs and of the report. What is already in it is left as it is.

    Raises:
        ConfigError: If the model has no recorded audit, it lacks runs of what is audited today, or the folder cannot be
            written.
    """
    setup = declared_audit(model, folder, is_recorded=True)
    archive = _place(model) / ARCHIVE
    if not archive.is_file():
        raise ConfigError(f"the audit of {model.__name__} has not been recorded yet: there is no {archive}")
    logs = setup.folder / "logs"
    try:
        logs.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as packed:
            for member, content in _members(packed, archive):
                if (logs / member).exists():
                    _require_same(logs / member, content)
                else:
                    draft = logs / f"{member}.{os.getpid()}"  # unpacking may be stopped at any moment
                    draft.write_bytes(content)
                    draft.replace(logs / member)
    except (EOFError, lzma.LZMAError, tarfile.TarError) as error:
        raise ConfigError(f"{archive} is damaged: {error}") from error
    except OSError as error:
        raise ConfigError(f"{error.filename}: the recorded runs cannot be written: {error.strerror}") from error
    if missing := missing_files(setup):
        raise ConfigError(
            f"the recorded audit of {model.__name__} lacks {counted(len(missing), 'file')} of what is audited today, "
            f"such as {missing[0].name}: its prompts, its parameters or the perturbations have changed since; name the "
            f"perturbations that were recorded in {DECLARATION}: perturbations = […]"
        )
    return setup


def record_audit(setup: AuditSetup) -> Path:
    """Put the runs of an audit that has been made in the place of a model's recorded audit.

    Args:
        setup: The audit.

    Returns:
        The archive; see `pack_runs`.

    Raises:
        ConfigError: If runs are missing, or a key stands in one.
    """
    if missing := missing_files(setup):
        raise ConfigError(
            f"{setup.folder} lacks {counted(len(missing), 'file')} of the audit, such as {missing[0].name}"
        )
    archive = _place(setup.model) / ARCHIVE
    pack_runs({file.name: file for file in files_of(setup)}, archive)
    return archive


def pack_runs(files: Mapping[str, Path], archive: Path) -> None:
    """Pack run logs and what lies beside them; equal runs give equal archives.

    The process that wrote the logs, and its host, are left out.

    Args:
        files: Name in the archive → log, which ends with `.sqlite`, or other file.
        archive: The new archive, a `.tar.xz`.

    Raises:
        ConfigError: If a key stands in one.
    """
    with tempfile.TemporaryDirectory() as folder:
        copies = {name: Path(folder, name) for name in files}
        for name, copy in copies.items():
            copy.parent.mkdir(parents=True, exist_ok=True)
            if copy.suffix == ".sqlite":
                with closing(sqlite3.connect(files[name])) as source:
                    write_clean(source, copy)
            else:
                copy.write_bytes(files[name].read_bytes())
        require_no_keys(list(copies.values()), Path(folder))
        with tarfile.open(archive, "w:xz", preset=9) as packed:
            for name in sorted(copies, key=lambda name: (copies[name].suffix, name)):
                content = copies[name].read_bytes()
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                packed.addfile(entry, io.BytesIO(content))


def _require_same(file: Path, recorded: bytes) -> None:
    """Check that a row or log of a run, of which its claims are judged, is the one in the archive.

    Raises:
        ConfigError: If it is not.
    """
    if file.read_bytes() == recorded or (file.suffix == ".sqlite" and _steps_of(file) == _steps_in(recorded)):
        return
    what = "row" if file.suffix == ".json" else "log"
    raise ConfigError(f"{str(file)!r} is not the {what} of the recorded run; delete it to unpack it again")


def _steps_in(content: bytes) -> str:
    """Return a digest of the steps that the content of a log holds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "run.sqlite")
        file.write_bytes(content)
        return _steps_of(file)


def _steps_of(file: Path) -> str:
    """Return a digest of the steps that a log holds; who opened it since, and when, does not count."""
    with closing(RunLog(file, "read")) as log:
        return log.trace_digest(sys.maxsize)


def _place(model: type[LLMModel]) -> Path:
    """Return the folder of a model's recordings."""
    return Path(inspect.getfile(model)).parent / FOLDER


def _members(packed: tarfile.TarFile, archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the files of an archive.

    Raises:
        ConfigError: If it holds anything but plain files without a path, or too much.
    """
    left = MAX_BYTES
    for member in packed:
        left -= member.size
        file = packed.extractfile(member) if member.isreg() else None
        if file is None or Path(member.name).name != member.name or left < 0:
            raise ConfigError(f"{archive} is no recorded audit: it holds {member.name!r:.80}, or is too large")
        yield member.name, file.read()
