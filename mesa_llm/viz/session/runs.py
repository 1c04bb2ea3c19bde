"""Saved runs: their folder, how to reopen them, and their downloads."""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

from mesa_llm.canonical import legible_json
from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.experiments.runs.recordings import earlier_prompts, llm_text
from mesa_llm.llm.address import split_name
from mesa_llm.model.identity import located, name_of
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.runlog.compact import RECORDED_ON
from mesa_llm.runlog.file import open_to_read
from mesa_llm.runlog.log import RunLog
from mesa_llm.text import clip, counted, spreadsheet_cell
from mesa_llm.viz.render.downloads import Download, file_name
from mesa_llm.viz.render.markup import label_of
from mesa_llm.viz.session.run_settings import EMPTY, LLM_LABELS, REASONING, SCORING, ModelFactory, RunSettings
from mesa_llm.viz.session.rw_lock import steady
from mesa_llm.viz.session.trial import own_parameters

logger = logging.getLogger(__name__)

RUNS_VARIABLE = "MESA_LLM_RUNS"
"""Environment variable for the folder of all pages' runs; `none`: runs are not saved."""

MAX_LISTED = 20
"""Maximum number of runs that a page lists."""

RECENT_CALLS = 5
"""Number of latest replies whose price is looked at."""

MAX_PARAMETER = 80
"""Maximum number of characters of a parameter's value in the description of a run."""

MAX_DOWNLOAD = 200_000_000
"""Maximum size of a run log to download, in bytes."""


def runs_folder() -> Path | None:
    """Return the folder for runs: that of the environment variable, or `runs` in the current folder.

    Returns:
        The folder, which exists; None if the variable says `none`.
    """
    setting = os.environ.get(RUNS_VARIABLE, "")
    if setting == "none":
        return None
    for folder in (Path(setting or "runs"), Path("~/.local/share/mesa-llm/runs")):
        with suppress(OSError, RuntimeError):  # the user may have no home
            folder = folder.expanduser().absolute()
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return None


def new_log(folder: Path, model: ModelFactory) -> Path:
    """Return the path of a new run log.

    Args:
        folder: The folder of the runs.
        model: The model class, or a function that makes the model.
    """
    timestamp = datetime.now(UTC).strftime("%Y%m%d %H%M%S")
    return folder / file_name(getattr(model, "__name__", "model"), timestamp, secrets.token_hex(2), suffix="sqlite")


@dataclass(frozen=True)
class KeptRun:
    """A saved run."""

    path: Path
    """Its run log."""

    manifest: Mapping[str, Any]
    """Manifest of the run."""

    steps: int
    """Number of its last step."""

    calls: int
    """Number of its requests, including failed ones."""

    dollars: float
    """Their cost, in US dollars."""

    @classmethod
    def read(cls, path: Path) -> KeptRun | None:
        """Read a run from its log; None if it cannot be read.

        Args:
            path: The run log.
        """
        try:
            with closing(RunLog(path, "read")) as runlog:
                last_step = max((int(step) for step, *_ in runlog.rows("steps")), default=0)
                usage: Any = runlog.usage()
                calls, dollars = int(usage["calls"].sum()), float(usage["dollars"].sum())
                return cls(path, runlog.manifest, last_step, calls, dollars)
        except (MesaLLMError, OSError, ValueError):
            return None

    @property
    def is_empty(self) -> bool:
        """Whether it has neither requests nor steps."""
        return not self.steps and not self.calls

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of its model."""
        return self._noted("parameters")

    def _noted(self, name: str) -> dict[str, Any]:
        noted = self.manifest.get(name)
        return cast("dict[str, Any]", noted) if isinstance(noted, dict) else {}

    @property
    def description(self) -> str:
        """Its date, length, language model, cost and seed."""
        written = datetime.fromtimestamp(self.path.stat().st_mtime).strftime("%d %b %Y, %H:%M")
        date = self.manifest.get(RECORDED_ON, written)  # a file from a repository is as old as its check-out
        llm = self.parameters.get("llm", "rule")
        llm_kind = llm if isinstance(llm, str) else "you" if "human" in str(llm) else "several"
        cost = f", ${self.dollars:,.4f}" if self.dollars else ""
        steps, calls = counted(self.steps, "step"), counted(self.calls, "call")
        return f"{date} · {steps} · {llm_kind} · {calls}{cost} · seed {self.manifest.get('rng')}"

    def choice(
        self, initial: RunSettings, current: RunSettings, llm_labels: Collection[str] = LLM_LABELS
    ) -> RunSettings:
        """Return the settings with which the run can be resumed.

        Args:
            initial: Initial settings of the page, which name the available parameters.
            current: Current settings, whose key is used if it was typed for the same endpoint.
            llm_labels: Available language models; a classroom has no `human`.
        """
        recorded = located(self.parameters, self._noted("files"), self.path)
        choice = replace(
            initial,
            seed=str(self.manifest.get("rng", "")),
            parameters={name: recorded.get(name, value) for name, value in initial.parameters.items()},
            reasoning=recorded["reasoning"] if recorded.get("reasoning") in REASONING else "",
            reply_tokens=recorded["reply_tokens"] if isinstance(recorded.get("reply_tokens"), int) else None,
            scoring=recorded["scoring"] if recorded.get("scoring") in SCORING else "",
        )
        llm = recorded.get("llm", "rule")
        by_agent: dict[str, Any] = {}
        if isinstance(llm, dict):
            by_agent = cast("dict[str, Any]", llm)
            llm = by_agent.get("*", "rule")
        if by_agent and "human" in llm_labels:
            people = [agent_id for agent_id, name in by_agent.items() if name == "human"]
            return replace(choice, llm_kind="human", plays=int(people[0]) if people and people[0].isdecimal() else 0)
        if llm == "human":
            return replace(choice, llm_kind="human", plays=0)
        if llm in LLM_LABELS:
            return replace(choice, llm_kind=str(llm))
        name, address = split_name(str(llm))
        same = current.endpoint == (address or "")
        key = current.api_key if same else ""
        return replace(choice, llm_kind="other", model_id=name, api_base=address or "", api_key=key)


def recording_facts(
    recording: Recording, kind: type[LLMModel], title: str = "", labels: Mapping[str, str] = EMPTY
) -> dict[str, str]:
    """Describe a recorded run for its readers, without replaying it.

    Args:
        recording: The run.
        kind: Class of its model.
        title: What is seen in it; empty: unknown.
        labels: Parameter → its label.

    Returns:
        What is described → its description; of the parameters, those that differ from the model's defaults.
    """
    with closing(RunLog(recording.file, "read")) as log:
        usage: Any = log.usage()[["calls", "prompt_tokens", "reply_tokens", "dollars"]].sum()
        llms, is_known, date = log.models(), is_priced(log), str(log.manifest.get(RECORDED_ON, ""))
    earlier = earlier_prompts(recording)
    n_calls, n_tokens = int(usage["calls"]), int(usage["prompt_tokens"] + usage["reply_tokens"])
    price = f"${usage['dollars']:,.4f}" if usage["dollars"] else "$0" if is_known else "price unknown"
    llm = recording.parameters.get("llm", "rule")
    besides = {"llm": llm, "rng": recording.rng}  # facts of their own
    rest = {name: value for name, value in recording.parameters.items() if besides.get(name, ...) != value}
    own = own_parameters(rest, kind)
    texts = {name: value if isinstance(value, str) else legible_json(value) for name, value in own.items()}
    facts = {
        "Run": title,
        "File": recording.file.name,
        "Model": recording.model,
        "Decisions by": llm_text(llms) if llms else LLM_LABELS.get(str(llm), "rules"),
        "Seed": "" if recording.rng is None else f"{recording.rng}",
        "Steps": f"{recording.last_step:,}",
        "Decisions": f"{recording.n_rows:,}",
        "Cost": f"{price}: {counted(n_calls, 'request')}, {n_tokens:,} tokens",
        "Interventions": f"{len(recording.interventions)}" if recording.interventions else "",
        "Recorded": " · ".join(filter(None, (date, recording.version and f"version {recording.version}"))),
        "Prompts": f"It was {earlier}: its replies are given to the prompts of today." if earlier else "",
        "Parameters that differ from the defaults": "\n".join(
            f"{labels.get(name, label_of(name))}: {clip(text, MAX_PARAMETER)}" for name, text in texts.items()
        )
        or "none",
    }
    return {name: text for name, text in facts.items() if text}


def is_priced(runlog: RunLog) -> bool:
    """Check whether the price of a run's replies is known, as far as its latest ones tell.

    Args:
        runlog: Its log.
    """
    rows, _ = runlog.latest("calls", RECENT_CALLS)
    return not any(row["reply"] and row["dollars"] is None for row in rows)


def kept_runs(folder: Path, model: ModelFactory, besides: Path | None = None) -> list[KeptRun]:
    """List the saved runs of a model, newest first.

    Args:
        folder: The folder.
        model: The model class, or a function that makes the model.
        besides: A run to skip.
    """
    if not isinstance(model, type):
        return []
    files = [path for path in folder.glob("*.sqlite") if path != besides]
    runs: list[KeptRun] = []
    for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True):
        run = KeptRun.read(path)
        if run is not None and not run.is_empty and run.manifest.get("model") == name_of(model):
            runs.append(run)
        if len(runs) == MAX_LISTED:
            break
    return runs


def discard_if_empty(path: Path) -> None:
    """Remove an empty run log.

    Args:
        path: The run log, which nothing writes to any more.
    """
    run = KeptRun.read(path) if path.is_file() else None
    if run is not None and run.is_empty:
        for part in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", ".lock"))):
            with suppress(OSError):
                part.unlink(missing_ok=True)


def run_file(path: Path) -> bytes:
    """Return the contents of a run log as one file, even while it is being written.

    Args:
        path: The run log.

    Raises:
        ConfigError: If it is too large to download.
    """
    if path.stat().st_size > MAX_DOWNLOAD:
        raise ConfigError(f"this run is too large to download from the page; copy it from {path}")
    with closing(open_to_read(path)) as source, closing(sqlite3.connect(":memory:")) as copy:
        source.backup(copy)
        return copy.serialize()


def downloads_of(model: LLMModel) -> list[Download]:
    """Return the downloads of a run: its log, its measures, and its agents' decisions and actions.

    Args:
        model: The model.
    """
    seed = model.runlog.manifest.get("rng")
    name_of = partial(file_name, type(model).__name__, f"seed {seed}", f"step {model.now - 1}")

    def table(read: Callable[[], Any], *, index: bool) -> Callable[[], bytes]:
        def write() -> bytes:
            with steady(model):
                return str(read().map(spreadsheet_cell).to_csv(index=index)).encode()

        return write

    files: list[Download] = []
    path = model.runlog.path
    if path is not None:
        files.append(Download("Run (SQLite)", name_of(suffix="sqlite"), lambda: run_file(path)))
    collector = model.datacollector
    if collector is not None:
        measures = table(collector.get_model_vars_dataframe, index=True)
        files.append(Download("Measures (CSV)", name_of("measures", suffix="csv"), measures))
        if collector.agent_reporters:
            agents = table(collector.get_agent_vars_dataframe, index=True)
            files.append(Download("Agents (CSV)", name_of("agents", suffix="csv"), agents))
    decisions = table(model.runlog.decisions, index=False)
    actions = table(model.runlog.actions, index=False)
    return [
        *files,
        Download("Decisions (CSV)", name_of("decisions", suffix="csv"), decisions),
        Download("Actions (CSV)", name_of("actions", suffix="csv"), actions),
    ]


def available_downloads(model: LLMModel) -> list[Download]:
    """Return the downloads of a run; none for a model that Reset has just closed.

    Args:
        model: The model.
    """
    with suppress(ConfigError):
        return downloads_of(model)
    return []
