"""What the pages of a server share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from solara.server.starlette import app

from mesa_llm.viz.server.state import ServerState


@pytest.fixture(autouse=True)
def _leave_a_new_state() -> Iterator[None]:
    yield
    del app.state.mesa_llm


def test_pages_find_the_state_of_their_server() -> None:
    state = ServerState(benchmark_folders=[Path("elsewhere")])
    state.install()
    assert ServerState.current() is state
    assert state.benchmark_folders == (Path("elsewhere").absolute(),)


def test_a_new_server_knows_nothing_of_the_one_before() -> None:
    first = ServerState(page=lambda: None)
    first.install()
    ServerState().install()
    assert ServerState.current() is not first
    assert ServerState.current().page is None
