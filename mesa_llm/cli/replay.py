"""`mesa-llm replay`: recorded runs and study bundles, repeated offline, with a verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any
from zipfile import is_zipfile

import typer

from mesa_llm.cli.bundle import no_warnings, unpacked
from mesa_llm.cli.command import BAD_INPUT, DIFFERENT, command, log_named, say, warn
from mesa_llm.cli.options import AsJson, Trust
from mesa_llm.cli.run import replay_run
from mesa_llm.errors import ConfigError, MesaLLMError, ReplayError
from mesa_llm.experiments.runs.recordings import earlier_prompts
from mesa_llm.model.recording import Recording
from mesa_llm.registry import unlisted
from mesa_llm.reports.bundle import CODE, NOT_COMPARED, BundleManifest, differing_members
from mesa_llm.runlog.versions import DISTRIBUTION, versions
from mesa_llm.text import counted

IDENTICAL, DIFFERS, IMPOSSIBLE = "identical", "differs", "cannot be replayed"
"""The verdicts."""

MAX_SHOWN = 5
"""Maximum number of differences that a verdict names."""


@command("replay")
def replay(
    file: Annotated[
        Path,
        typer.Argument(
            help="Run log of the run, a study bundle (.zip), or the name of a recorded run (see `mesa-llm list`).",
            callback=log_named,
        ),
    ],
    into: Annotated[
        Path | None,
        typer.Option(help="New or empty folder for the files of a bundle; by default they are deleted afterwards."),
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Replay a run offline, and say whether it is the recorded one.

    The last line is the verdict: identical, differs from a step on, or
    cannot be replayed; exits with 0, 1 or 2.
    """
    try:
        is_bundle = file.is_file() and is_zipfile(file)
        if into is not None and not is_bundle:
            raise ConfigError(f"--into {into}: {str(file)!r} is no bundle, and nothing is to be unpacked")
        with unpacked(file, into, trust=trust) if is_bundle else nullcontext((file, None)) as (log, bundle):
            is_temporary = is_bundle and into is None
            figures = replay_run(log, is_quiet=as_json, trust=trust, is_temporary=is_temporary)
            recording = Recording.read(log)
            if bundle is not None:
                _compare_members(log, bundle, recording, figures)
    except MesaLLMError as error:
        reason = _prompts_text(file) if isinstance(error, ReplayError) and not is_zipfile(file) else ""
        warn(f"{IMPOSSIBLE}: {reason}{error}")
        if as_json:
            say(json.dumps({"verdict": IMPOSSIBLE, "reason": f"{reason}{error}"}))
        raise typer.Exit(BAD_INPUT if isinstance(error, ConfigError) else DIFFERENT) from None
    changes = changed_versions(recording.versions)
    is_repeated = not figures["differences"]
    verdict = IDENTICAL if is_repeated else DIFFERS
    if as_json:
        say(json.dumps({**figures, "log": str(file), "verdict": verdict, "changed_versions": changes}))
    else:
        say(f"not compared: {'; '.join(figures['not_compared'])}")
        for change in figures["changes"] if is_repeated and not changes else ():
            say(change)
        if changes:
            say(f"versions that differ from the recording's: {_changes_text(changes)}")
        say(verdict_text(figures))
    if not is_repeated:
        raise typer.Exit(DIFFERENT)


def _prompts_text(log: Path) -> str:
    """Say that a log was recorded before a prompt of its model changed, and what to do; empty if it was not."""
    recording = Recording.read(log)
    if not (earlier := earlier_prompts(recording)):
        return ""
    install = f"To replay it, install {DISTRIBUTION}=={recording.version}. " if recording.version else ""
    return f"it was {earlier}. {install}To watch it as recorded: mesa-llm view {log}\n"


def _compare_members(log: Path, bundle: BundleManifest, recording: Recording, figures: dict[str, Any]) -> None:
    """Add to the figures of a replay which files of its bundle differ from what the log gives."""
    figures["not_compared"] += NOT_COMPARED.values()
    if figures["differences"]:
        figures["not_compared"].append("the files of the bundle, as its run differs")
        return
    with no_warnings():  # the run has given them
        found = differing_members(log.parent, bundle, unlisted(recording))
    found += [f"{CODE}/: {change}" for change in figures["changes"] if "code" in change and bundle.needs_trust]
    figures["differences"] += found
    if found:
        other = recording.version and recording.version != versions().get(DISTRIBUTION)
        made = f"Another version made the bundle ({recording.version}), which may write files otherwise, or files"
        figures["reason"] = f"{made if other else 'Files of the bundle'} were changed after it was made."


def verdict_text(figures: Mapping[str, Any]) -> str:
    """Return the verdict on a replay, and for one that differs what does and why.

    Args:
        figures: Figures of the replay; see `replay_run`.
    """
    digest, recorded, differences = figures["digest"], figures["recorded_digest"], figures["differences"]
    if differences:
        step = figures["differs_from"]
        first = DIFFERS if step is None else f"{DIFFERS} from step {step} on"
        more = len(differences) - MAX_SHOWN
        lines = [*differences[:MAX_SHOWN], *([f"and {counted(more, 'more difference')}"] if more > 0 else [])]
        digests = "" if digest == recorded else f": recorded {recorded}, now {digest}"
        return "\n  ".join([f"{first}{digests}", *lines, *filter(None, [figures["reason"]])])
    n_decisions = counted(figures["decisions"], "decision")
    if digest == recorded:
        return f"{IDENTICAL}: {n_decisions}, digest {digest}"
    return (
        f"{IDENTICAL} but for the last digits of numbers, as the log is of an earlier format: {n_decisions}, "
        f"recorded {recorded}, now {digest}"
    )


def changed_versions(recorded: Mapping[str, str]) -> dict[str, list[str | None]]:
    """Return the packages whose version here is another: name → the recorded version, and the one here."""
    here = versions()
    return {name: [version, here.get(name)] for name, version in recorded.items() if here.get(name) != version}


def _changes_text(changes: Mapping[str, list[str | None]]) -> str:
    return ", ".join(f"{name} {old} (here {new or 'not installed'})" for name, (old, new) in changes.items())
