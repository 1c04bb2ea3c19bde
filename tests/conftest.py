"""What all tests share."""

import gc
import os
import shutil
import signal
import tempfile
from functools import cache
from pathlib import Path

import pytest
import typer.main
import typer.testing
from hypothesis import settings

# The same fifty examples of each property in every run; --hypothesis-profile=thorough draws others, ten times as many.
settings.register_profile("mesa_llm", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile("mesa_llm")

FILES = sorted(Path(__file__).parent.rglob("*.py"))
"""All files of the tests, in the order in which shards take turns."""

# A run log waits for the disk at each step: the files of tests lie in memory where there is room, but for a TMPDIR.
MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30  # bytes
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# The command line is built once, and not before every command that a test types.
typer.testing._get_command = cache(typer.main.get_command)  # type: ignore[attr-defined]

# Until all tests are collected nothing is thrown away; what is there by then stays, and is never looked through again.
gc.disable()

# A shell in the background has Ctrl-C ignored, and nohup SIGHUP, here and in every process started here.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take a part of the tests: `--shard 2/4` is the second of four, and together they are all."""
    parser.addoption("--shard", default="1/1", metavar="PART/PARTS", help="every PARTS-th file, from the PART-th on")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of the other shards before they are imported."""
    part, parts = map(int, str(config.getoption("--shard")).split("/"))
    if parts == 1 or collection_path.suffix != ".py":
        return None
    return None if FILES.index(collection_path) % parts == part - 1 else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long, so that the workers that share the tests end at about the same time."""
    items.sort(key=lambda item: -len({"browser", "slow"} & {mark.name for mark in item.iter_markers()}))


def pytest_collection_finish() -> None:
    """Leave modules and collected tests, about a million objects, out of every later round of the garbage collector."""
    gc.freeze()
    gc.enable()
