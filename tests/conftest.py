"""What all tests share."""

import signal

import pytest
from hypothesis import settings

settings.register_profile("mesa_llm", deadline=None, derandomize=True)
settings.load_profile("mesa_llm")

# A shell that starts the tests in the background has Ctrl-C ignored, here and in every process started here.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long, so that the workers that share the tests end at about the same time."""
    items.sort(key=lambda item: -len({"browser", "slow"} & {mark.name for mark in item.iter_markers()}))
