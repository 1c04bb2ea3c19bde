"""`mesa-llm bundle`: a recorded run in one file, which another machine replays."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from mesa_llm.cli.command import DIFFERENT, command, say
from mesa_llm.cli.options import AsJson, LogFile
from mesa_llm.cli.run import recording_of
from mesa_llm.errors import ConfigError
from mesa_llm.registry import unlisted
from mesa_llm.reports.bundle import CODE, LOG, Bundle, BundleManifest, bundle_of, unpack
from mesa_llm.reports.private_data import require_no_keys
from mesa_llm.text import counted

MAX_SHOWN = 20
"""Maximum number of files of one's own that are named."""

QUESTION = "Write the bundle all the same? [y/N] "


@command("bundle")
def bundle(
    file: LogFile,
    out: Annotated[Path, typer.Option(help="Zip file of the bundle.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Write it without being asked, whatever private data it may hold.")
    ] = False,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Import the model that the log names, and put its code into the bundle."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Put a recorded run into one file that replays on another machine.

    It holds the log, its input files, prompts, code of your own, package
    versions, tables, an ODD document and a hash of every file. Private
    paths and what may be personal data are listed first; keys are refused.
    """
    if out.suffix != ".zip":
        raise ConfigError(f"--out {out}: expected a file name ending in .zip")
    recording = recording_of(file, trust=trust)
    with tempfile.TemporaryDirectory(prefix="mesa-llm-") as folder:
        with no_warnings():  # the run has given them
            made = bundle_of(recording, Path(folder), own_code=unlisted(recording))
        disclosures = [str(disclosure) for disclosure in made.disclosures()]
        if not as_json:
            _show(made, disclosures)
        if disclosures and not (yes or _is_agreed(out)):
            say("nothing was written")
            raise typer.Exit(DIFFERENT)
        size = made.write(out)
    manifest = made.manifest
    trust_option = " --trust" if manifest.needs_trust else ""
    if as_json:
        facts = {"out": str(out), "bytes": size, "disclosures": disclosures, "missing": list(made.missing)}
        say(json.dumps({**facts, **manifest.model_dump(exclude={"versions"})}))
    else:
        say(f"bundle: {out}, {counted(len(manifest.files) + 1, 'file')}, {size:,} bytes")
        say(f"  to replay it anywhere: mesa-llm replay {out.name}{trust_option}")


@contextmanager
def no_warnings() -> Generator[None]:
    """Show no warnings of the replay."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _show(bundle: Bundle, disclosures: list[str]) -> None:
    """Show what may be private or is missing."""
    if disclosures:
        say("Look at these before you share it:")
    for line in disclosures:
        say(f"  {line}")
    if bundle.own_files:
        more = ", …" if len(bundle.own_files) > MAX_SHOWN else ""
        say(f"Code of your own, with what lies beside it: {', '.join(bundle.own_files[:MAX_SHOWN])}{more}")
    for name in bundle.missing:
        say(f"Not in the bundle: the folder {name}; a replay needs it where it is not read from the log")


def _is_agreed(out: Path) -> bool:
    """Ask whether to write a bundle.

    Raises:
        ConfigError: If there is no terminal to ask in.
    """
    if not sys.stdin.isatty():
        raise ConfigError(
            f"{out}: there is no terminal to ask in; read what was found, and add --yes to write it all the same"
        )
    sys.stderr.write(QUESTION)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@contextmanager
def unpacked(file: Path, into: Path | None, *, trust: bool) -> Generator[tuple[Path, BundleManifest]]:
    """Unpack a bundle for a replay, and make its code importable if it is trusted.

    Args:
        file: The bundle.
        into: Folder that it stays in, empty or new; None: a temporary one.
        trust: Whether code out of the bundle may be run.

    Yields:
        The run log, and what the bundle holds.

    Raises:
        ConfigError: If the folder is not empty, or the bundle is damaged, holds what none has, or is to stay and
            holds a key.
    """
    if into is not None and into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise ConfigError(f"--into {into}: expected a new or an empty folder")
    with tempfile.TemporaryDirectory(prefix="mesa-llm-") as temporary:
        folder = Path(temporary)
        manifest = unpack(file, folder)
        if into is not None:
            require_no_keys((path for path in folder.rglob("*") if path.is_file()), folder, folder / LOG)
            shutil.copytree(folder, into, dirs_exist_ok=True)
            folder = into
        code = folder / CODE
        is_importable = trust and code.is_dir()
        if is_importable:
            _require_not_imported(code)
            sys.path.insert(0, str(code))
        try:
            yield folder / LOG, manifest
        finally:
            if is_importable:
                sys.path.remove(str(code))


def _require_not_imported(code: Path) -> None:
    """Check that no module of the same name would take the place of one in a bundle.

    Raises:
        ConfigError: If this process has imported one.
    """
    for path in code.iterdir():
        if path.stem in sys.modules:
            raise ConfigError(f"another {path.stem} than the bundle's is imported already; replay it in a new process")
