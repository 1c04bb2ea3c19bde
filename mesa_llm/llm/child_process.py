"""How child processes of Python are started: none of them looks for modules in the working directory.

A working directory may be anybody's, such as one unpacked from a mail. Whatever file lies in it under the name of a
module of Python or of a package, be it one that this machine does not have, must not run because this program starts a
process there. A child that runs a model of the user's own is told where that is once its own imports are done.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

SAFE_PATH = "PYTHONSAFEPATH"
"""Variable that keeps Python from looking for modules in the working directory or beside a script."""

OUR_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
"""Folder that this library is imported from."""


def python(*arguments: str) -> list[str]:
    """Return a command that starts Python without the working directory on its path.

    Args:
        arguments: Its arguments, such as `-m` and a module.
    """
    return [sys.executable, "-P", *arguments]


def import_paths() -> list[str]:
    """Return where a child process looks for modules: where this one does, without the working directory.

    The folder that this library is imported from is among them, wherever it is.
    """
    here = os.path.realpath(os.getcwd())
    return [path for path in sys.path if path and (os.path.realpath(path) != here or here == OUR_FOLDER)]


def own_paths() -> list[str]:
    """Return where this process finds the user's own modules and a child does not: the working directory, or nothing.

    A child adds it to the end of its `sys.path` once it has imported what it needs itself.
    """
    return [] if len(import_paths()) == len(sys.path) else [os.getcwd()]


def python_variables() -> dict[str, str]:
    """Return the variables of the environment by which a child process of Python finds its modules."""
    return {SAFE_PATH: "1", "PYTHONPATH": os.pathsep.join(import_paths())}


def environment() -> dict[str, str]:
    """Return the environment of a child process of Python."""
    return {**os.environ, **python_variables()}


@contextmanager
def spawning() -> Generator[None]:
    """Start processes within the block by `multiprocessing`, which gives them this process's environment and path.

    A script in the working directory, which such a process executes once more, finds its neighbours after all others.
    """
    script = getattr(sys.modules["__main__"], "__file__", None)
    is_script_here = script is not None and os.path.realpath(os.path.dirname(script)) == os.path.realpath(os.getcwd())
    with _SPAWNING:
        variables, paths = own_variables(), sys.path[:]
        os.environ.update(python_variables())
        sys.path[:] = [*import_paths(), *(own_paths() if is_script_here else ())]
        try:
            yield
        finally:
            sys.path[:] = paths
            restore(variables)


def own_variables() -> dict[str, str | None]:
    """Return the same variables as the user has set them; None: not set."""
    return {name: os.environ.get(name) for name in (SAFE_PATH, "PYTHONPATH")}


def restore(variables: Mapping[str, str | None], paths: Sequence[str] = ()) -> None:
    """Set variables as the user has them, so that what the user's own code starts finds what it always does.

    Args:
        variables: What `own_variables` returned.
        paths: What `own_paths` returned, for a child process.
    """
    for name, value in variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    sys.path += [path for path in paths if path not in sys.path]


_SPAWNING = threading.RLock()
