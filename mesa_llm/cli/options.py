"""Options of several commands; those of a run are derived from `RunOptions`, their only declaration."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mesa_llm.cli.command import log_named
from mesa_llm.engine.options import AccessOptions, RunOptions, checked_options, option
from mesa_llm.errors import ConfigError

if TYPE_CHECKING:
    from mesa_llm.engine.access import Access

DEFAULT_STEPS = 10
"""Default number of steps of a run."""

DESIGN_NAMES = (
    "JSON file of an AgentDesign (the functions it names are imported); own (the model's own agents); a strategy "
    "(plan, react, vote, vote:9); or one of Shachi's designs by name"
)
"""What may be typed for a design."""

PLOTS = (".png", ".svg", ".pdf")
"""Suffixes of files for a figure."""

NOT_TYPED: Mapping[str, str] = {
    "endpoints": "they stand in mesa-llm.toml",
    "api_key": "everybody on a machine can read command lines",
    "replay": "it is a command of its own",
}
"""Options of a run that no command has, and why."""

_SHARED = ("max_calls", "max_tokens", "max_dollars", "concurrency", "requests_per_min", "tokens_per_min")
"""Options whose limits all runs or pages of a command share."""


@dataclass(frozen=True)
class Flags:
    """The options of a record as flags of a command, which get their defaults, ranges and help from it."""

    record: type[AccessOptions] = RunOptions
    """`RunOptions`, or `AccessOptions` for a command that makes no run."""

    shared_by: str = ""
    """What shares the limits, if anything does."""

    without: Mapping[str, str] = field(default_factory=dict[str, str])
    """Options that the command lacks, and why."""

    def parameters(self) -> list[inspect.Parameter]:
        """Return the flags, as typer reads them."""
        names = [name for name in self.record.model_fields if name not in NOT_TYPED and name not in self.without]
        return [self._parameter(name) for name in names]

    def _parameter(self, name: str) -> inspect.Parameter:
        own = option(name)
        scope = f" Shared by all {self.shared_by}." if self.shared_by and name in _SHARED else ""
        flag = typer.Option(f"--{name.replace('_', '-')}", min=own.minimum, help=own.meaning + scope)
        kind = Annotated[own.kind | None if own.default is None else own.kind, flag]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=own.default, annotation=kind)

    def value(self, typed: Mapping[str, Any]) -> AccessOptions:
        """Return the record of what was typed.

        Raises:
            ConfigError: If a value is invalid.
        """
        for name, value in typed.items():
            if name.startswith("max_") and value is not None and not value > 0:
                flag = f"--{name.replace('_', '-')}"
                raise ConfigError(f"{flag} {value:g}: a budget must be above 0; leave {flag} out for no budget")
        return checked_options(self.record, typed)


RunFlags = Annotated[RunOptions, Flags()]
SharedRunFlags = Annotated[RunOptions, Flags(shared_by="runs")]
AccessFlags = Annotated[AccessOptions, Flags(AccessOptions)]
PageFlags = Annotated[AccessOptions, Flags(AccessOptions, "pages")]

Model = Annotated[str, typer.Argument(help="Name of the model (see `mesa-llm list`), or MODULE:CLASS for any other.")]
LogFile = Annotated[
    Path,
    typer.Argument(
        help="Run log of a run, which is never changed, or the name of a recorded run (see `mesa-llm list`).",
        callback=log_named,
    ),
]
LogFiles = Annotated[
    list[Path],
    typer.Argument(help="Run logs, or names of recorded runs (see `mesa-llm list`); they are replayed offline."),
]
LLM_HELP = (
    "What agents think with: rule, random, human, local, ollama/NAME, or any litellm model. Several in one run as "
    "WHO=NAME with commas, where WHO is main, others, an agent, a class or a share: main=NAME,others=NAME; "
    "1/2=NAME,2/2=NAME. Several to compare: names with commas, or any of these with semicolons."
)
Llm = Annotated[str, typer.Option(help=LLM_HELP)]
Design = Annotated[str | None, typer.Option(help=f"{DESIGN_NAMES}.")]
Designs = Annotated[list[str] | None, typer.Option(help=f"{DESIGN_NAMES}. Several are separated by commas.")]
Steps = Annotated[
    int | None,
    typer.Option(min=1, help="Steps of each run; 10 by default, with --config until the model ends by itself."),
]
FirstSeed = Annotated[int, typer.Option(min=0, help="First seed.")]
Log = Annotated[Path | None, typer.Option(help="Run log. Recorded replies are reused; new ones are appended.")]
On = Annotated[
    str,
    typer.Option(help="Where runs are made: processes, threads, or ray (the cluster of RAY_ADDRESS, or this machine)."),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Number of runs at a time; by default one per core.")]
Out = Annotated[Path, typer.Option(help="Output folder: results and one run log per run. Existing runs are resumed.")]
Vary = Annotated[
    list[str] | None,
    typer.Option(help="Parameter and its values, as name=1,2,3 or, in JSON, name=[…]; repeatable."),
]
OutOfPoints = Annotated[
    Path, typer.Option(help="Output folder: results, and a row of each run. Existing runs are resumed.")
]
Logs = Annotated[
    bool,
    typer.Option("--logs", help="Keep a run log per run, also by rule; runs with language models always keep theirs."),
]
Plot = Annotated[Path | None, typer.Option(help="File for the figure: PNG, SVG or PDF.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Estimate the cost without sending a request.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Import the model that the log names, even if `mesa-llm list` does not show it.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object as the last line, even if the run is stopped.")
]


@dataclass(frozen=True)
class Parameters:
    """Parameters of a model."""

    set_: Annotated[list[str] | None, typer.Option("--set", help="Model parameter, as name=value; repeatable.")] = None
    users: Annotated[Path | None, typer.Option(help="File with the population.")] = None
    config: Annotated[
        str | None,
        typer.Option(help="File that describes the run, for models with a `config` parameter (discussion)."),
    ] = None

    def of(self, kind: type[Any]) -> dict[str, Any]:
        """Return them as arguments of a model.

        Raises:
            ConfigError: If a name is unknown or a value does not fit its type.
        """
        from mesa_llm.cli.arguments import parameters

        return parameters(kind, self.set_ or [], self.users, self.config)

    def steps(self, typed: int | None) -> int | None:
        """Return the number of steps of a run; None: until the model ends by itself."""
        return DEFAULT_STEPS if typed is None and self.config is None else typed


@dataclass(frozen=True)
class PageServing:
    """Where a page is served, and to whom."""

    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8765
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines connect.")] = "127.0.0.1"
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser window.")] = True
    token: Annotated[
        str | None, typer.Option(envvar="MESA_LLM_APP_TOKEN", help="Token in the page's address; a new one by default.")
    ] = None
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another name of the server, such as that of a proxy; repeatable.")
    ] = None

    def server(self, page: Any, **how: Any) -> Any:
        """Return the server of a page, or of the module or file of one."""
        from mesa_llm.viz.server.server import PageServer

        own = {"host": self.host, "port": self.port, "token": self.token, "names": self.allow_host or ()}
        return PageServer(page, **own, **how)


def require_plot(plot: Path | None) -> None:
    """Check that a figure can be written.

    Raises:
        ConfigError: If the name of its file has another ending, or its folder does not exist.
    """
    if plot is not None and (plot.suffix.lower() not in PLOTS or not plot.absolute().parent.is_dir()):
        raise ConfigError(f"--plot {plot}: expected a name ending in {', '.join(PLOTS)}, in an existing folder")


def access_of_pages(options: AccessOptions) -> Access | None:
    """Return one access for all pages of a server, if one of its options was typed; None: each model has its own."""
    from mesa_llm.engine.access import Access

    return None if options == AccessOptions() else Access(**options.access)
