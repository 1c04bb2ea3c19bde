"""`mesa-llm run`: a model with a progress bar and a summary; replays and branches show their runs in the same way."""

from __future__ import annotations

import json
import logging
import time as clock
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic_core import to_json
from tqdm import tqdm

from mesa_llm.canonical import plain
from mesa_llm.cli.arguments import design_in, llm_in, scheduled
from mesa_llm.cli.command import Say, command, look_here, model_named, say, warn
from mesa_llm.cli.options import AsJson, Design, DryRun, Llm, Log, Model, Parameters, RunFlags
from mesa_llm.errors import AllDecisionsFailed, ConfigError
from mesa_llm.llm.batches.protocol import BatchProgress
from mesa_llm.model.identity import name_of
from mesa_llm.model.quality import Rate, quality_texts, quality_warning
from mesa_llm.model.recording import Recording, texts_in
from mesa_llm.records import Decision, Failure, Usage
from mesa_llm.registry import find_models, require_listed
from mesa_llm.reports.action_log import names_of
from mesa_llm.runlog.comparison import LogComparison
from mesa_llm.runlog.log import RunLog
from mesa_llm.text import counted, none_succeeded, one_line, printable, spreadsheet_cell

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

SHOW_S = 0.1
"""Minimum number of seconds between two changes of the progress bar: each change counts all agents that are due."""

MAX_TEXTS_PER_STEP, MAX_TEXTS = 3, 60
"""Maximum number of texts that are printed of a step and of a run."""

MAX_TEXT = 160
"""Maximum number of characters of each."""

MIN_SPACES = 3
"""Minimum number of spaces in a text, so that names and choices are none."""

IN_SUMMARY = ("failed", "reprompted", "parsed_leniently")
"""Kinds of data quality that stand in the first line of a summary."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@command("run")
def run(
    model: Model,
    parameters: Parameters,
    options: RunFlags,
    llm: Llm = "rule",
    steps: Annotated[
        int | None,
        typer.Option(min=0, help="Number of steps; 10 by default, with --config until the model ends by itself."),
    ] = None,
    rng: Annotated[int | None, typer.Option(help="Seed, 0 or more; by default one is drawn and printed.")] = None,
    log: Log = None,
    design: Design = None,
    inject: Annotated[
        list[str] | None,
        typer.Option(help="News for everyone, or an intervention as JSON, before a step: '3: It snows.'; repeatable."),
    ] = None,
    dry_run: DryRun = False,
    csv: Annotated[
        Path | None, typer.Option(help="File for the measures of the model's DataCollector, one row per step.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing of what agents say and write, only the summary.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a model. To resume a run that was stopped, run the same command with the same --log."""
    if rng is not None and rng < 0:
        raise ConfigError(f"--rng {rng}: a seed is 0 or a positive whole number; leave --rng out to have one drawn")
    entry = model_named(model)
    kind, llms = entry.load(), llm_in(llm)
    arguments = {**parameters.of(kind), **options.access, "on_error": options.on_error, **options.changed}
    arguments |= {"llm": llms, "rng": rng, "log": log}
    if design is not None:  # an address in its file has no right to a key
        typed = [text.partition("=")[2] for text in parameters.set_ or ()]
        arguments |= {"design": design_in(design), "named": texts_in(llms, options.parser, typed)}
    interventions = scheduled(inject or ())
    if dry_run:
        from mesa_llm.cli.cost import print_estimate

        print_estimate(entry.name, kind, arguments, parameters.steps(steps), interventions, as_json=as_json)
        return
    how: dict[str, Any] = {"interventions": interventions, "as_json": as_json, "csv": csv, "shows_talk": not quiet}
    run_model(entry.name, kind(**arguments), parameters.steps(steps), is_live=True, warn=warn, **how)


class _Talk:
    """Picks some of what agents say and write in each step, to be read along."""

    def __init__(self, model: Any) -> None:
        self._model, self._seen, self._n_left = model, dict[int, object](), MAX_TEXTS

    def lines(self) -> list[str]:
        """Return a few of the texts of the step that has just ended, each with the name of its agent."""
        if not self._n_left:
            return []
        latest: dict[int, Decision | Failure] = self._model.last_decisions
        new = {agent: one for agent, one in latest.items() if self._seen.get(agent) is not one}
        self._seen = dict[int, object](latest)
        texts = {agent: said for agent, one in new.items() if isinstance(one, Decision) and (said := spoken_in(one))}
        if not texts:
            return []
        names = names_of(self._model)
        chosen = list(texts.items())[: min(MAX_TEXTS_PER_STEP, self._n_left)]
        self._n_left -= len(chosen)
        lines = [
            f"  {names.get(agent, f'agent {agent}')}: “{printable(one_line(text, MAX_TEXT))}”" for agent, text in chosen
        ]
        more = len(texts) - len(chosen)
        also = f" (and {counted(more, 'text')} more)" if more else ""
        end = [] if self._n_left else ["  … further texts are not shown; see mesa-llm inspect --decisions, or view"]
        return [f"step {int(self._model.time)}{also}:", *lines, *end]


def spoken_in(decision: Decision) -> str:
    """Return the longest text of a decision that is a sentence rather than a name or a choice; empty if it has none."""
    values = [value for call in decision.actions for value in call.arguments.values()]
    texts = [value for value in [*values, decision.answer] if isinstance(value, str) and value.count(" ") >= MIN_SPACES]
    return max(texts, key=len, default="")


class _Progress:
    """A progress bar of steps, with decisions, failures, tokens and dollars."""

    def __init__(self, model: Any, steps: int | None, *, quiet: bool) -> None:
        self.model, self.decided, self.show_due_s = model, 0, 0.0
        self.last_batch: BatchProgress | None = None
        self.bar = tqdm(total=steps, unit="step", disable=quiet or None, dynamic_ncols=True)
        self.bar.bar_format = (
            "{n:.1f} steps [{elapsed}] {postfix}"
            if steps is None
            else "{l_bar}{bar}| {n:.1f}/{total} steps [{elapsed}<{remaining}] {postfix}"
        )

    def decision(self, usage: Usage) -> None:
        """Count one more decision."""
        self.decided += 1
        now = clock.monotonic()
        if self.bar.disable or now < self.show_due_s:
            return
        self.show_due_s = now + SHOW_S
        n_due = max(len(self.model.due), 1)
        self.bar.n = min(self.model.now - 1 + self.decided / n_due, self.model.now)
        self.show(usage)

    def batch(self, progress: BatchProgress) -> None:
        """Show how far a batch is; where there is no bar, as a line on stderr whenever that changes."""
        if not self.bar.disable:
            self.bar.set_postfix_str(str(progress))
        elif progress != self.last_batch:
            say(str(progress), err=True)
        self.last_batch = progress

    def step(self) -> None:
        """Count one more step."""
        self.decided = 0
        self.bar.n = int(self.model.time)
        self.show(self.model.usage)
        self.bar.refresh()

    def interrupted_by(self, say: Say, text: str) -> None:
        """Print a line above the bar."""
        self.bar.clear()
        say(text)

    def show(self, usage: Usage) -> None:
        """Show decisions, failures, tokens and dollars."""
        text = f"{self.model.engine.decisions} decisions, {usage.failures} failed, {usage.tokens} tokens"
        self.bar.set_postfix_str(text + (f", ${usage.dollars:.4f}" if usage.dollars else ""), refresh=False)
        self.bar.update(0)


def run_model(
    name: str,
    model: Any,
    steps: int | None,
    *,
    as_json: bool,
    say: Say = say,
    also: Mapping[str, Any] = _NOTHING,
    csv: Path | None = None,
    is_live: bool = False,
    warn: Say | None = None,
    closes: bool = True,
    shows_talk: bool = False,
    interventions: Sequence[tuple[int, Any]] = (),
    after_step: Callable[[int], None] = lambda step: None,
) -> dict[str, Any]:
    """Run a model and report on the run: as text at its end, or as JSON even if it is stopped.

    Args:
        name: Name of the model.
        model: The model.
        steps: Number of steps after which the run ends; None: until the model ends by itself.
        as_json: Whether to print one line of JSON, even if the run is stopped, and nothing else.
        say: Prints a line.
        also: Additional figures for the JSON.
        csv: File for the rows of the model's DataCollector, one per step; None: no file.
        is_live: Whether this is no replay, so that a run in which every decision failed is an error.
        warn: Prints a warning as soon as more than half of a step's decisions failed; None: no warning.
        closes: Whether to close the model at the end.
        shows_talk: Whether to print some of what agents say and write in each step.
        interventions: Pairs of a step and an intervention before it.
        after_step: Called at the end of each step, with its number.

    Returns:
        The figures of `--json`; see `summary`.

    Raises:
        ConfigError: If the model has ended before its first step, the CSV file cannot be written, or an intervention
            cannot be made.
        AllDecisionsFailed: If `is_live` and every decision failed.
    """
    start = clock.perf_counter()
    with closing(model) if closes else nullcontext():
        if steps != 0 and not model.running:
            raise ConfigError(f"the model {name!r} has ended before its first step; check its parameters (--set)")
        if csv is not None:
            _require_writable(csv, model)
        for step, intervention in interventions:
            model.interventions.schedule(step, intervention)
        progress = _Progress(model, steps, quiet=as_json)
        watch = _FailureWatch(model)
        model.engine.on_decision = progress.decision
        model.engine.on_batch = progress.batch
        if warn is not None:
            model.engine.warn = partial(progress.interrupted_by, warn)
        talk = _Talk(model)
        try:
            while model.running and (steps is None or model.time < steps):
                model.step()
                progress.step()
                watch.step()
                for line in talk.lines() if shows_talk and not as_json else ():
                    progress.interrupted_by(say, line)
                after_step(int(model.time))
        finally:
            progress.bar.close()
            model.engine.on_decision = None
            figures = {**summary(name, model, clock.perf_counter() - start), "failed_steps": watch.failed_steps, **also}
            figures["warning"] = _warning(model, watch)
            if csv is not None:
                _write_csv(csv, model)
            if as_json:
                say(json.dumps(figures))
        if not as_json:
            _describe(model, figures, steps, say)
            if csv is not None:
                say(f"measures of each step: {csv}")
        if is_live:
            _require_decisions(model)
    return figures


class _FailureWatch:
    """Counts the steps in which more than half of the decisions failed."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.failed_steps: list[dict[str, int]] = []
        self._before = self._counts()

    def _counts(self) -> tuple[int, int]:
        return self.model.engine.decisions, self.model.usage.failures

    def step(self) -> None:
        """Count the decisions and failures of the last step."""
        counts = self._counts()
        decisions, failures = (after - before for after, before in zip(counts, self._before, strict=True))
        self._before = counts
        if 2 * failures > decisions:
            step = int(self.model.time)
            self.failed_steps.append({"step": step, "decisions": decisions, "failures": failures})


def _first(reasons: Sequence[str]) -> str:
    return reasons[0][:300] if reasons else "unknown"


def _warning(model: Any, watch: _FailureWatch) -> str | None:
    """Return a warning if more than half of the decisions of a step or of the run failed."""
    decisions: int = model.engine.decisions
    failures: int = model.usage.failures
    if not watch.failed_steps and 2 * failures <= decisions:
        return None
    steps = len(watch.failed_steps)
    location = f", more than half of them in {counted(steps, 'step')} of {int(model.time)}" if steps else ""
    return (
        f"{failures} of {counted(decisions, 'decision')} failed{location}. The first failed because: "
        f"{_first(model.runlog.failures())}"
    )


def _require_decisions(model: Any) -> None:
    """Check that not every decision of a run failed, as when the endpoint is dead.

    Raises:
        AllDecisionsFailed: If every one did.
    """
    if model.engine.all_failed:
        hint = " and --retry-failures, as the log holds the failures" if model.runlog.path is not None else ""
        raise AllDecisionsFailed(
            f"{none_succeeded(model.engine.n_asked)}. The first failed because: "
            f"{_first(model.runlog.failures()).rstrip('.')}. Check --llm and --api-base with `mesa-llm doctor`, then "
            f"run the same command again{hint}"
        )


def _require_writable(csv: Path, model: Any) -> None:
    """Check before the run that its measures can be written after it.

    Raises:
        ConfigError: If the model collects nothing, or the file cannot be created.
    """
    if model.datacollector is None:
        raise ConfigError(f"--csv: {type(model).__name__} has no DataCollector, so there are no measures to write")
    if csv.is_dir() or not csv.absolute().parent.is_dir():
        raise ConfigError(f"--csv {csv}: expected the name of a file in an existing folder")
    if model.runlog.path is not None and csv.absolute() == model.runlog.path.absolute():
        raise ConfigError(f"--csv {csv}: this is the run log; choose another file")


def _write_csv(csv: Path, model: Any) -> None:
    """Write the measures of the model's DataCollector, one row per step.

    Raises:
        ConfigError: If the file cannot be written.
    """
    table: pd.DataFrame = model.datacollector.get_model_vars_dataframe()
    first_step = int(model.time) - len(table) + 1
    table.insert(0, "step", range(first_step, first_step + len(table)), allow_duplicates=True)
    try:
        table.map(spreadsheet_cell).to_csv(csv, index=False, lineterminator="\n")
    except OSError as error:
        raise ConfigError(f"--csv {csv}: cannot be written: {error.strerror}") from error


def summary(name: str, model: Any, seconds: float) -> dict[str, Any]:
    """Return the figures of a run so far.

    Args:
        name: Name of the model.
        model: The model.
        seconds: Duration of the run.

    Returns:
        model, seed, steps, whether the model has `ended` by itself, digest, decisions, failures, decisions that were
        asked for again or read with repairs, data quality (kind → how often `n` of how many `of`), agreement of the
        judges with people where labels are given, calls, replayed,
        tokens, dollars, seconds, log; the model's results by name; usage and failures by purpose.
    """
    usage: Usage = model.usage
    by_purpose: dict[str, Usage] = model.usage_by_purpose
    return {
        "model": name,
        "seed": _seed(model),
        "steps": int(model.time),
        "ended": not model.running,
        "digest": model.runlog.digest,
        "decisions": model.engine.decisions,
        "failures": usage.failures,
        "asked_again": model.engine.reprompted,
        "repaired": model.engine.parsed_leniently,
        "quality": {name: rate._asdict() for name, rate in model.data_quality().items()},
        "judges": [one.written for one in model.judge_agreement()],
        "calls": usage.calls,
        "replayed": usage.replayed,
        "tokens": usage.tokens,
        "dollars": round(usage.dollars, 6),
        "seconds": round(seconds, 3),
        "log": None if model.runlog.path is None else str(model.runlog.path),
        "results": _results(model),
        "failures_by_purpose": {purpose: own.failures for purpose, own in by_purpose.items()},
        "usage_by_purpose": {purpose: asdict(own) for purpose, own in by_purpose.items()},
    }


def _results(model: Any) -> dict[str, Any]:
    """Return the model's results as JSON values; infinities and NaN become null."""
    try:
        return json.loads(to_json(model.results(), fallback=plain, inf_nan_mode="null"))
    except Exception:  # the model's own code; a run that was stopped early may lack what it needs
        logger.exception("%s.results() raised", type(model).__name__)
        return {}


def _seed(model: Any) -> int | None:
    """Return the seed of a run, as `--rng` takes it."""
    manifest: dict[str, Any] = model.runlog.manifest
    scenario: Any = manifest.get("parameters", {}).get("scenario") or {}
    seeds = (manifest.get("rng"), scenario.get("fields", {}).get("rng"))
    return next((seed for seed in seeds if isinstance(seed, int)), None)


def _describe(model: Any, figures: dict[str, Any], steps: int | None, say: Say) -> None:
    """Describe what happened in a run."""
    say(model.story())
    end_text = ""
    if figures["ended"] and (steps is None or figures["steps"] < steps):
        end_text = f"{'' if steps is None else f' of {steps}'}: the model ended by itself"
    say(
        f"\n{counted(figures['steps'], 'step')}{end_text}, "
        f"{counted(figures['decisions'], 'decision')} ({figures['failures']} failed{_reading_text(figures)}), "
        f"{counted(figures['calls'], 'live reply', 'live replies')}, {figures['replayed']} from the log, "
        f"{figures['tokens']} tokens, ${figures['dollars']:.4f}, {figures['seconds']} s"
    )
    quality: dict[str, Rate] = model.data_quality()
    beside = quality_texts({name: rate for name, rate in quality.items() if name not in IN_SUMMARY}, model.refusals)
    if beside:
        say(f"beside the results: {'; '.join(beside)}")
    for one in model.judge_agreement():
        say(f"judge, {one.text}")
    if figures["warning"]:
        say(f"WARNING: {figures['warning']}")
    elif note := quality_warning(quality):
        say(f"NOTE: {note}")
    for reason in list(dict.fromkeys(model.runlog.failures()))[:3]:
        say(f"failed: {reason[:200]}")
    is_listed = _name_in_list(name_of(type(model))) is not None
    if file := figures["log"]:
        trust = "" if is_listed else " --trust"
        say(f"run log: {file}")
        say(f"  to inspect it: mesa-llm inspect {file} --decisions")
        say(f"  to replay it: mesa-llm replay {file}{trust}")
        say(f"  to view it in the browser: mesa-llm view {file}{trust}")
    elif is_listed:
        say("to run it in the browser: mesa-llm app")
    if figures["seed"] is not None:
        say(f"seed: {figures['seed']} (to repeat the run: --rng {figures['seed']})")
    say(f"digest: {figures['digest']}")


def _reading_text(figures: Mapping[str, Any]) -> str:
    """Describe how many replies were requested again or repaired; empty if none was."""
    again, repaired = figures["asked_again"], figures["repaired"]
    return (f", {again} asked again" if again else "") + (f", {repaired} read with repairs" if repaired else "")


def replay_run(
    file: Path, *, is_quiet: bool, say: Say = say, trust: bool = False, is_temporary: bool = False
) -> dict[str, Any]:
    """Replay a recorded run from its log alone.

    Args:
        file: The run log.
        is_quiet: Whether to print nothing.
        say: Prints a line.
        trust: Whether to import what the log names even if it belongs to no listed model.
        is_temporary: Whether the file is deleted afterwards, so that it is not named.

    Returns:
        The figures of `run_model`, the `recorded_digest`, and what the log holds that its replies do not give (in a log
        of an earlier format, numbers may differ in their last digits): `differs_from`, the first step that differs, or
        None; the `differences` in words; the `reason`; the `changes` since then; and what was `not_compared`.

    Raises:
        ConfigError: If the file holds no run, one whose model is not listed, or one whose model cannot be made from
            its parameters.
        ReplayError: If the run asks for something the file does not hold.
    """
    recording = recording_of(file, trust=trust)
    model = recording.rebuilt(log=recording.file, replay=True)
    name, last_step = listed_as(recording.model), recording.last_step
    also: dict[str, Any] = {"recorded_digest": str(recording.digests[last_step])}
    also |= {"log": None} if is_temporary else {}
    figures: dict[str, Any] = {}
    spoken: dict[str, Any] = {"as_json": is_quiet, "say": (lambda _: None) if is_quiet else say}
    with closing(model), closing(RunLog(recording.file, "read")) as recorded:
        comparison = LogComparison(recorded, model.runlog)

        def compare(step: int) -> None:
            comparison.check_step(step)

        def run() -> None:
            figures.update(run_model(name, model, last_step, also=also, after_step=compare, closes=False, **spoken))
            comparison.finish()

        recording.guarded(run)
        figures |= {
            "differs_from": comparison.first_step,
            "differences": [str(one) for one in comparison.differences],
            "reason": comparison.reason,
            "changes": list(model.runlog.changes),
            "not_compared": comparison.not_compared(),
        }
    return figures


def recording_of(file: Path, *, trust: bool = False) -> Recording:
    """Read a recorded run, before anything that it names is imported.

    Args:
        file: The run log.
        trust: Whether to import what the log names even if it belongs to no listed model, or is in the working
            directory.

    Raises:
        ConfigError: If the file holds no run, or one whose model is not listed.
    """
    recording = Recording.read(file)
    if trust:
        look_here()
    else:
        require_listed(recording)
    return recording


def listed_as(name: str) -> str:
    """Return the name of a model class in `mesa-llm list`, or its class name if it is not listed."""
    return _name_in_list(name) or name.partition(":")[2]


def _name_in_list(name: str) -> str | None:
    module, _, qualname = name.partition(":")
    names = [entry.name for entry in find_models() if entry.module == module and entry.qualname in ("", qualname)]
    return names[0] if names else None
