"""What all commands share: declaration, output and exit codes."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer
from typer.core import TyperGroup

from mesa_llm.errors import AllDecisionsFailed, BudgetExceeded, ConfigError, MesaLLMError
from mesa_llm.text import printable

if TYPE_CHECKING:
    from mesa_llm.registry import ModelEntry

Say = Callable[[str], None]
"""Prints a line."""

_USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__base__)
"""click's UsageError, wherever this version of typer keeps it."""


class _Commands(TyperGroup):
    """The commands; unknown commands and options, and wrong values, are reported in one line."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except _USAGE_ERROR as error:
            context = getattr(error, "ctx", None) or ctx
            fault = " ".join(cast("typer.BadParameter", error).format_message().split()).rstrip(".")
            say(f"mesa-llm: {fault}; see `{context.command_path} --help`", err=True)
            raise typer.Exit(BAD_INPUT) from None


app = typer.Typer(
    cls=_Commands,
    name="mesa-llm",
    help="Agent-based models whose agents think with a language model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

DIFFERENT, BAD_INPUT, SPENT, NOTHING_DECIDED, INTERRUPTED = 1, 2, 3, 4, 130
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
            with _terminable():
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
            goes_on = f"; the same command goes on from here, with the same --{option}" if option else ""
            say(f"mesa-llm: interrupted{goes_on}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except MesaLLMError as error:
            say(f"mesa-llm: {error}", err=True)
            raise typer.Exit(DIFFERENT) from None

    return run_command


@contextmanager
def _terminable() -> Generator[None]:
    """Make SIGTERM end the command like Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def say(text: str, *, err: bool = False) -> None:
    """Print a line; control characters are made visible."""
    if not err:
        _HAS_SPOKEN.set(True)
    typer.echo(printable(text), err=err)


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


def look_here() -> None:
    """Make modules in the working directory importable, after all others."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
