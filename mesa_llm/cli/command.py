"""Shared by all commands: how they are declared and found, what they print, and their exit codes."""

from __future__ import annotations

import ast
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, get_args, get_type_hints, runtime_checkable

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

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

PANELS: Mapping[str, tuple[str, ...]] = {
    "": ("list", "run", "replay", "inspect", "odd", "check", "doctor"),
    "Files": ("trust", "export", "report", "bundle", "extract", "notebooks"),
    "Experiments": (
        *("audit", "bench", "sweep", "power", "calibrate", "sensitivity", "study", "branch", "tournament"),
        *("people", "agreement", "distill"),
    ),
    "Pages": ("app", "view", "classroom"),
    "Servers": ("serve",),
}
"""Heading in the help → commands; each is declared in the module of its name, which is imported when it is typed."""

MODULES = {"app": "gallery"}
"""Commands declared in a module of another name."""

DIFFERENT, BAD_INPUT, SPENT, NOTHING_DECIDED, INTERRUPTED, UNREAD = 1, 2, 3, 4, 130, 141
"""Exit codes besides 0."""

_HAS_SPOKEN: ContextVar[bool] = ContextVar("mesa_llm_has_spoken", default=False)
"""Whether the current command has printed anything on stdout."""


class _Commands(TyperGroup):
    """The commands; unknown commands and options, and wrong values, are reported in one line."""

    _is_listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [name for names in PANELS.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find a command by its name, and import its module unless it is only listed."""
        names = self.list_commands(ctx)
        if cmd_name not in names:
            self.commands.update({name: _summary(name) for name in names})  # among which one is suggested
            return None
        if self._is_listing:
            return _summary(cmd_name)
        import_module(_module(cmd_name))
        declared = _DECLARED[cmd_name]
        return get_command_from_info(declared, pretty_exceptions_short=True, rich_markup_mode=self.rich_markup_mode)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, for which no command is imported."""
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except _USAGE_ERROR as error:
            context = getattr(error, "ctx", None) or ctx
            fault = " ".join(cast("typer.BadParameter", error).format_message().split()).rstrip(".")
            say(f"mesa-llm: {fault}; see `{context.command_path} --help`", err=True)
            raise typer.Exit(BAD_INPUT) from None


def _module(name: str) -> str:
    return f"mesa_llm.cli.{MODULES.get(name, name)}"


def _summary(name: str) -> TyperCommand:
    """Return a command with the docstring of its function and nothing else, without importing its module."""
    spec = find_spec(_module(name))
    tree = ast.parse(Path(str(spec and spec.origin)).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    own = next(
        one for one in functions if any(ast.unparse(line) == f"command({name!r})" for line in one.decorator_list)
    )
    return TyperCommand(name, help=ast.get_docstring(own), rich_help_panel=_panel(name))


def _panel(name: str) -> str | None:
    return next(panel for panel, names in PANELS.items() if name in names) or None


app = typer.Typer(
    cls=_Commands,
    name="mesa-llm",
    help="Agent-based models whose agents think with a language model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_DECLARED: dict[str, CommandInfo] = {}
"""Commands whose modules have been imported."""


# -- declaring a command


@runtime_checkable
class Group(Protocol):
    """Options that several commands share; given as metadata of a parameter, they take its place."""

    def parameters(self) -> list[inspect.Parameter]:
        """Return the options, as typer reads them."""
        ...

    def value(self, typed: Mapping[str, Any]) -> Any:
        """Return the value of the parameter from what was typed."""
        ...


class _Fields:
    """The fields of a dataclass as a group."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def parameters(self) -> list[inspect.Parameter]:
        hints = get_type_hints(self.kind, include_extras=True)
        return [
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
            for one in fields(self.kind)
        ]

    def value(self, typed: Mapping[str, Any]) -> Any:
        return self.kind(**typed)


def command[F: Callable[..., None]](name: str) -> Callable[[F], F]:
    """Declare a function as a command.

    A parameter whose type is a dataclass, or is annotated with a `Group`, stands for several options.

    Args:
        name: Name of the command, which is in `PANELS`.
    """

    def declare(function: F) -> F:
        _DECLARED[name] = CommandInfo(name, callback=exits(_typed(function)), rich_help_panel=_panel(name))
        return function

    return declare


def _typed(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function whose groups of options are parameters of their own, and that refuses keys in addresses."""
    groups = dict(_groups(function))
    own = inspect.signature(function, eval_str=True).parameters.values()
    parameters = [each for one in own for each in (groups[one.name].parameters() if one.name in groups else [one])]
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]

    @wraps(function)
    def run_command(**typed: Any) -> None:
        if any(map(typed.get, _MAY_HOLD_ADDRESSES)):
            from mesa_llm.cli.arguments import require_no_secrets

            require_no_secrets({name: typed.get(name) for name in _MAY_HOLD_ADDRESSES})
        values = {
            name: group.value({one.name: typed.pop(one.name) for one in group.parameters()})
            for name, group in groups.items()
        }
        function(**typed, **values)

    declared: Any = run_command
    declared.__signature__, declared.__annotations__ = inspect.Signature(parameters), {}
    return declared


_MAY_HOLD_ADDRESSES = ("api_base", "llm", "parser", "rewrite", "judge", "set_", "vary")
"""Options whose values may be, or name, addresses."""


def _groups(function: Callable[..., None]) -> Iterator[tuple[str, Group]]:
    for name, hint in get_type_hints(function, include_extras=True).items():
        if is_dataclass(hint):
            yield name, _Fields(hint)
        for one in get_args(hint)[1:]:
            if isinstance(one, Group):
                yield name, one


def exits(function: Callable[..., None]) -> Callable[..., None]:
    """Turn errors meant for a person into one line on stderr and an exit code.

    With `--json`, a command that is interrupted before it has printed its object prints one that says so, and that
    names the log or folder with what is complete.
    """

    @wraps(function)
    def run_command(*args: Any, **kwargs: Any) -> None:
        _HAS_SPOKEN.set(False)
        try:
            with interrupting():
                function(*args, **kwargs)
        except KeyboardInterrupt:
            option = next((name for name in ("log", "out") if (path := kwargs.get(name)) and Path(path).exists()), None)
            if kwargs.get("as_json") and not _HAS_SPOKEN.get():
                say(json.dumps({"interrupted": True, **({} if option is None else {option: str(kwargs[option])})}))
            goes_on = f"; to resume, run the same command with the same --{option}" if option else ""
            with suppress(OSError):  # nobody may be left who reads it
                say(f"mesa-llm: interrupted{goes_on}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except MesaLLMError as error:
            say(f"mesa-llm: {'stopped: ' if isinstance(error, BudgetExceeded) else ''}{error}", err=True)
            raise typer.Exit(next(code for kind, code in _EXIT_CODES.items() if isinstance(error, kind))) from None

    return run_command


_EXIT_CODES: dict[type[MesaLLMError], int] = {
    BudgetExceeded: SPENT,
    ConfigError: BAD_INPUT,
    AllDecisionsFailed: NOTHING_DECIDED,
    MesaLLMError: DIFFERENT,
}
"""Error → exit code; the first that fits."""


# -- printing


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


# -- what was typed


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
