"""Shared by all commands: how they are declared, what they print, and their exit codes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer
from typer.core import TyperGroup

from mesa_llm.errors import AllDecisionsFailed, BudgetExceeded, ConfigError, MesaLLMError
from mesa_llm.llm.credentials import without_credentials
from mesa_llm.llm.interrupts import interrupting
from mesa_llm.text import printable

if TYPE_CHECKING:
    from mesa_llm.registry import ModelEntry

Say = Callable[[str], None]
"""Prints a line."""

_USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__base__)
"""click's UsageError, wherever this version of typer keeps it."""


MODULES = ("runs", "experiments", "comparisons", "outputs", "pages", "serve")
"""Modules that declare commands; importing them registers the commands."""

OLD_COMMANDS = {"cast": "extract", "class": "classroom"}
"""Names of commands in earlier versions → what they are called now; the old ones work for one release."""

OLD_OPTIONS = {
    "--at": "--from-step",
    "--moved": "--allow-new-endpoint",
    "--patience": "--timeout-s",
    "--salvage": "--recover",
    "--timeout": "--timeout-s",
}
"""Spellings of options in earlier versions → what they are called now; the old ones work for one release."""


class _Commands(TyperGroup):
    """The commands; unknown commands and options, and wrong values, are reported in one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        self._load()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find a command by its name, or by the one that it had before."""
        if cmd_name not in self.commands:
            self._load()
        if (name := OLD_COMMANDS.get(cmd_name)) is not None:
            warn(f"`{cmd_name}` is now called `{name}`; the old name works for one release")
            cmd_name = name
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that was typed; its options may have the spellings that they had before."""
        name, command, rest = super().resolve_command(ctx, args)
        flags = {flag for parameter in command.params for flag in parameter.opts} if command is not None else set()
        return OLD_COMMANDS.get(name or "", name), command, [_with_present_spelling(text, flags) for text in rest]

    def _load(self) -> None:
        """Register the commands of all modules."""
        for module in MODULES:
            import_module(f"mesa_llm.cli.{module}")
        self.commands.update(typer.main.get_group(app).commands)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except _USAGE_ERROR as error:
            context = getattr(error, "ctx", None) or ctx
            fault = " ".join(cast("typer.BadParameter", error).format_message().split()).rstrip(".")
            say(f"mesa-llm: {fault}; see `{context.command_path} --help`", err=True)
            raise typer.Exit(BAD_INPUT) from None


def _with_present_spelling(text: str, flags: Collection[str]) -> str:
    """Return an argument, whose option may be spelled as before, as it is spelled now.

    Args:
        text: The argument.
        flags: Options of the command.
    """
    old, equals, value = text.partition("=")
    new = OLD_OPTIONS.get(old)
    if new not in flags or old in flags:
        return text
    warn(f"{old} is now called {new}; the old spelling works for one release")
    return f"{new}{equals}{value}"


app = typer.Typer(
    cls=_Commands,
    name="mesa-llm",
    help="Agent-based models whose agents think with a language model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

DIFFERENT, BAD_INPUT, SPENT, NOTHING_DECIDED, INTERRUPTED, UNREAD = 1, 2, 3, 4, 130, 141
"""Exit codes besides 0."""

_HAS_SPOKEN: ContextVar[bool] = ContextVar("mesa_llm_has_spoken", default=False)
"""Whether the current command has printed anything on stdout."""


def exits(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors meant for a person into one line on stderr and an exit code.

    With `--json`, a command that is interrupted before it has printed its object prints one that says so, and that
    names the log or folder with what is complete.
    """

    @wraps(command)
    def run_command(*args: Any, **kwargs: Any) -> None:
        _HAS_SPOKEN.set(False)
        try:
            with interrupting():
                command(*args, **kwargs)
        except BudgetExceeded as error:
            say(f"mesa-llm: stopped: {error}", err=True)
            raise typer.Exit(SPENT) from None
        except ConfigError as error:
            say(f"mesa-llm: {error}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except AllDecisionsFailed as error:
            say(f"mesa-llm: {error}", err=True)
            raise typer.Exit(NOTHING_DECIDED) from None
        except KeyboardInterrupt:
            option = next((name for name in ("log", "out") if (path := kwargs.get(name)) and Path(path).exists()), None)
            if kwargs.get("as_json") and not _HAS_SPOKEN.get():
                say(json.dumps({"interrupted": True, **({} if option is None else {option: str(kwargs[option])})}))
            goes_on = f"; to resume, run the same command with the same --{option}" if option else ""
            with suppress(OSError):  # nobody may be left who reads it
                say(f"mesa-llm: interrupted{goes_on}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except MesaLLMError as error:
            say(f"mesa-llm: {error}", err=True)
            raise typer.Exit(DIFFERENT) from None

    return run_command


def say(text: str, *, err: bool = False, with_keys: bool = False) -> None:
    """Print a line; control characters are made visible.

    Args:
        text: The line.
        err: Whether to print it on stderr.
        with_keys: Whether a key in it is meant to be shown, as in the link to a page.
    """
    if not err:
        _HAS_SPOKEN.set(True)
    try:
        typer.echo(printable(text) if with_keys else without_credentials(printable(text)), err=err)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2 if err else 1)  # what is left over goes there at the end
        raise SystemExit(UNREAD) from None
    except OSError as error:
        if err:  # there is nowhere left to say it
            return
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - what is left over goes there at the end
        raise ConfigError(f"the output cannot be written: {error.strerror}") from None


def warn(text: str) -> None:
    """Print a warning on stderr."""
    say(f"mesa-llm: {text}", err=True)


def model_named(name: str) -> ModelEntry:
    """Find the model that was typed; a `module:Class` is looked for in the working directory as well."""
    from mesa_llm.registry import find_model

    if ":" in name:
        look_here()
    entry = find_model(name)
    entry.load()
    return entry


def log_named(file: Path) -> Path:
    """Return a run log that was typed; where there is no such file, a recorded run of this name (`social`)."""
    from mesa_llm.experiments.runs.recordings import recorded_run

    if file.exists():
        return file
    try:
        recording = recorded_run(file.as_posix()).file
    except ConfigError:
        return file  # the command says that there is no such file
    return recording if recording.is_file() else file


def look_here() -> None:
    """Make modules in the working directory importable, after all others."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
