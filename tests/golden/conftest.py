"""After each golden test: every key of its case was read, or stands in its module's `NOT_COMPARED`, or is warned of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.golden.reading import NotRecorded, Recorded, warn_of_unread


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip a test whose case lacks what it needs; `test_simswarm_fuzz.py` sees to it that none here does."""
    try:
        yield
    except NotRecorded as missing:
        pytest.skip(f"the case of {item.name} does not record {missing.args[0]!r}")


@pytest.fixture(autouse=True)
def every_key_is_read_or_listed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Warn after a passed test of the keys of its case that it left; `NOT_COMPARED` maps patterns of paths to reasons.

    A recording that our half of the files does not hold may carry a key that nobody here has seen.
    """
    failed = request.session.testsfailed
    yield
    callspec = getattr(request.node, "callspec", None)
    cases = [one for one in callspec.params.values() if isinstance(one, Recorded)] if callspec else []
    if request.session.testsfailed == failed:
        for case in cases:
            warn_of_unread(case, request.module.NOT_COMPARED)
