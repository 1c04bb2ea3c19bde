"""`mesa-llm trust`: agreements to files of endpoints that use keys from the environment."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from mesa_llm.cli.command import DIFFERENT, Say, command, say
from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import Address
from mesa_llm.llm.endpoints import CONFIG_FILE, EndpointFile, read_endpoints
from mesa_llm.llm.keys import Origin, agree
from mesa_llm.text import printable

QUESTION = "Agree, until the file changes? [y/N] "


@command("trust")
def trust(
    file: Annotated[Path, typer.Argument(help="File of endpoints.")] = Path("mesa-llm.toml"),
    yes: Annotated[bool, typer.Option("--yes", help="Agree without being asked.")] = False,
) -> None:
    """Allow a file of endpoints to use keys from your environment, until the file changes."""
    if not _agree_to(file, is_agreed=yes, say=say):
        raise typer.Exit(DIFFERENT)


def _agree_to(path: Path, *, is_agreed: bool, say: Say) -> bool:
    """Show which keys a file of endpoints would use, ask the user to agree, and remember the answer.

    Args:
        path: The file.
        is_agreed: Whether the user has already agreed, so that nothing is asked.
        say: Prints a line.

    Returns:
        Whether the user agrees, or the file wants nothing.

    Raises:
        ConfigError: If there is no such file, it holds anything but endpoints, or there is no terminal to ask in.
    """
    if not path.is_file():
        raise ConfigError(f"there is no file of endpoints {str(path)!r}")
    file = read_endpoints(path)
    if not file.with_keys:
        say(f"{path} uses no key and needs no agreement")
        return True
    for line in _wants(file):
        say(line)
    if file.origin is Origin.FILE:
        say("already agreed")
        return True
    if not is_agreed and not sys.stdin.isatty():
        raise ConfigError(f"{path}: there is no terminal to ask in; read the file, and add --yes if you agree")
    if not is_agreed and not _says_yes():
        say("not agreed: no key is sent")
        return False
    agree(file.content, file.path)
    say("agreed, until the file changes")
    return True


def ask_once(arguments: Sequence[str], say: Say) -> None:
    """Ask for an agreement before a command, in a terminal, if it names an endpoint that wants a key.

    Args:
        arguments: Arguments of the command.
        say: Prints a line.
    """
    path = Path(CONFIG_FILE)
    if not (path.is_file() and sys.stdin.isatty() and sys.stderr.isatty()):
        return
    try:
        file = read_endpoints()
    except ConfigError:  # the command itself says so, if it needs the file
        return
    names = file.with_keys if file.origin is Origin.FOLDER else {}
    if any(argument.rpartition("=")[2] in names for argument in arguments):
        _agree_to(path, is_agreed=False, say=say)


def _wants(file: EndpointFile) -> Iterator[str]:
    """Describe which variable goes to which address."""
    for name, endpoint in file.with_keys.items():
        bases = [Address.of(base).base for base in (endpoint.api_base, *endpoint.replicas) if base is not None]
        where = ", ".join(bases) or f"the provider of {endpoint.model}"
        yield printable(f"{file.path}, {name}: sends the variable {endpoint.key_env} of your environment to {where}")


def _says_yes() -> bool:
    sys.stderr.write(QUESTION)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
