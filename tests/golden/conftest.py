"""After each golden test: every key of its case was read, or stands in its module's `NOT_COMPARED`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.golden.reading import Recorded, unlisted


@pytest.fixture(autouse=True)
def every_key_is_read_or_listed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a passed test that left a key of its case unread; `NOT_COMPARED` maps patterns of paths to reasons."""
    failed = request.session.testsfailed
    yield
    callspec = getattr(request.node, "callspec", None)
    cases = [one for one in callspec.params.values() if isinstance(one, Recorded)] if callspec else []
    if request.session.testsfailed == failed:
        for case in cases:
            left = unlisted(case, request.module.NOT_COMPARED)
            assert not left, f"neither read nor listed in NOT_COMPARED: {left}"
