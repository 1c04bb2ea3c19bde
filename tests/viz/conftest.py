"""Pages under test keep no runs, unless a test says where."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _keep_no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESA_LLM_RUNS", "none")
