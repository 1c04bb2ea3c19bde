"""The benchmark page: reports of `mesa-llm bench`, as in its HTML files, and replays of their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import cast

import solara.lab
from reacton import use_memo, use_state
from solara.core import component
from solara.lab.utils.headers import headers

from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.experiments.benchmarks.cross import Cross
from mesa_llm.experiments.benchmarks.report import BenchmarkReport
from mesa_llm.experiments.benchmarks.results import RunRow
from mesa_llm.model.recording import Recording
from mesa_llm.registry import find_model, require_listed
from mesa_llm.text import counted
from mesa_llm.viz.components.markup import ClickableHTML, place_style
from mesa_llm.viz.components.picture import Picture
from mesa_llm.viz.render.downloads import Download, file_name
from mesa_llm.viz.server.auth import foreign_origin
from mesa_llm.viz.server.model_page import model_page
from mesa_llm.viz.server.state import ServerState
from mesa_llm.viz.session.runs import runs_folder

KINDS: Mapping[str, type[BenchmarkReport] | type[Cross]] = MappingProxyType(
    {"report.json": BenchmarkReport, "cross.json": Cross}
)
"""Name of a result file → class of its contents."""

RUNS = Path("runs")
"""Default output folder of the command."""

COMMANDS = (
    "mesa-llm bench                                            list tasks and their sources",
    "mesa-llm bench emotionbench auction_arena --quick         rule twins and chance, free of charge",
    "mesa-llm bench psychobench --llm MODEL --dry-run          estimate the cost of a language model",
    "mesa-llm bench psychobench --llm MODEL --max-dollars 2    run with a budget",
)
"""Commands for a first benchmark."""

MAX_RESULTS = 20_000_000
"""Maximum size of a result file to open, in bytes."""


def result_files(further: Iterable[Path] = ()) -> list[Path]:
    """Return the result files of all benchmarks on the page, latest first.

    Args:
        further: Folders of benchmarks, or folders that hold such folders, besides `runs`.
    """
    temporary = runs_folder()
    folders = [*further, RUNS.absolute(), *([] if temporary is None else [temporary])]
    files = {path for folder in folders for name in KINDS for path in (folder / name, *folder.glob(f"*/{name}"))}
    return sorted((path for path in files if path.is_file()), key=lambda path: path.stat().st_mtime, reverse=True)


@dataclass(frozen=True)
class FinishedBenchmark:
    """The results of a finished benchmark."""

    file: Path
    """File with the results."""

    @cached_property
    def results(self) -> BenchmarkReport | Cross:
        """Its results.

        Raises:
            ConfigError: If they cannot be read, or are too large.
        """
        size = self.file.stat().st_size
        if size > MAX_RESULTS:
            raise ConfigError(f"{self.file} has {size:,} bytes; the maximum is {MAX_RESULTS:,}")
        return KINDS[self.file.name].read(self.file)

    @property
    def title(self) -> str:
        """Its folder, kind and date."""
        date = datetime.fromtimestamp(self.file.stat().st_mtime).strftime("%d %b %Y, %H:%M")
        kind = "designs × tasks" if KINDS[self.file.name] is Cross else "tasks"
        return f"{self.folder} · {kind} · {date}"

    @property
    def folder(self) -> Path:
        """Its folder, relative to the current one."""
        folder = self.file.parent
        return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder

    @property
    def runs(self) -> list[tuple[RunRow, Path]]:
        """Runs whose logs are in the folder, each with its log; the folder may have been moved."""
        logs = [(run, self.file.parent / Path(run.log).name) for run in self.results.runs if run.log is not None]
        return [(run, log) for run, log in logs if log.is_file()]

    def fragment(self) -> str:
        """Return its report as an HTML fragment."""
        picks = {run.log: number for number, (run, _) in enumerate(self.runs) if run.log is not None}
        return self.results.fragment(picks)

    def downloads(self) -> Iterator[Download]:
        """Return its downloads."""
        stem = f"{self.file.parent.name} {self.file.stem}"
        yield Download("JSON", file_name(stem, suffix="json"), self.file.read_bytes)
        page = self.file.with_suffix(".html")
        if page.is_file():
            yield Download("HTML", file_name(stem, suffix="html"), page.read_bytes)


@component
def Benchmarks() -> None:
    """Show the benchmarks on this machine; they are started on the command line."""
    foreign = use_memo(lambda: foreign_origin(headers.peek()), [])
    n_looks, look = use_state(0)
    files = use_memo(lambda: result_files(ServerState.current().benchmark_folders), [n_looks])
    chosen, choose = use_state("")
    recording, replay = use_state(cast("Recording | None", None))
    place_style()
    if foreign:
        solara.Error(f"This page was opened from {foreign}, and is not shown there.")
        return
    if recording is not None:
        _Replay(recording, lambda: replay(None))
        return
    with solara.AppBar():
        solara.AppBarTitle("Benchmarks")
        solara.lab.ThemeToggle()
    by_title = {one.title: one for one in map(FinishedBenchmark, files)}
    now = chosen if chosen in by_title else next(iter(by_title), "")
    with solara.Column(gap="10px", classes=["mesa-llm-report"]):
        solara.Text(
            "Run a benchmark on the command line, where you can also estimate its cost:", classes=["mesa-llm-hint"]
        )
        solara.Preformatted("\n".join(COMMANDS))
        with solara.Row(gap="12px", style={"align-items": "center", "flex-wrap": "wrap"}):
            if by_title:
                solara.Select("Benchmark", list(by_title), value=now, on_value=choose, dense=True)
            solara.Button("Refresh", icon_name="mdi-refresh", text=True, on_click=lambda: look(n_looks + 1))
        if not by_title:
            solara.Info(
                f"No benchmarks in {RUNS.absolute()} yet. To show other folders, use mesa-llm app --bench FOLDER."
            )
        else:
            _Results(by_title[now], replay).key(f"{now}, {n_looks}")


@component
def _Results(written: FinishedBenchmark, replay: Callable[[Recording], None]) -> None:
    """Show one benchmark."""
    fault, set_fault = use_state("")

    def read() -> tuple[str, str]:
        try:
            command = written.results.command(written.folder)
            return written.fragment(), command
        except ConfigError as error:
            set_fault(str(error))
            return "", ""

    html, command = use_memo(read, [])

    def open_run(kind: str, number: int, _: int) -> None:
        runs = written.runs
        if kind != "run" or number >= len(runs):
            return
        try:
            recording = Recording.read(runs[number][1])
            require_listed(recording)
        except MesaLLMError as error:
            set_fault(str(error))
            return
        set_fault("")
        replay(recording)

    if fault:
        solara.Error(fault, dense=True)
    if html:
        n_runs = counted(len(written.results.runs), "run")
        solara.Text(f"To continue these {n_runs}:", classes=["mesa-llm-hint"])
        solara.Preformatted(command)
        Picture("this benchmark", list(written.downloads()))
        ClickableHTML(html, open_run)


@component
def _Replay(recording: Recording, leave: Callable[[], None]) -> None:
    """Replay a run of a benchmark on its model's page."""
    item = use_memo(lambda: model_page(find_model(recording.model)), [recording])
    with solara.AppBar():
        solara.Button("Back to the benchmark", icon_name="mdi-arrow-left", text=True, dark=True, on_click=leave)
    item.element(recording=recording)
