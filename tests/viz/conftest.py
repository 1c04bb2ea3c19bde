"""Pages under test keep no runs, unless a test says where, and are closed before their folder goes."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from mesa_llm.viz.session.runner import wait_until_closed

CLOSING_S = 30.0


@pytest.fixture(autouse=True)
def _keep_no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESA_LLM_RUNS", "none")


@pytest.fixture(autouse=True)
def _close_runs(tmp_path: Path) -> Generator[None]:
    yield
    wait_until_closed(CLOSING_S)
