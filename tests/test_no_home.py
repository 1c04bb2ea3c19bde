"""A user without a home, nor an entry in the list of users, as in many containers, meets no traceback."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any, NoReturn

import pytest

from mesa_llm import ConfigError
from mesa_llm.llm.keys import agree, has_agreed
from mesa_llm.llm.local.model import EmbeddedModel
from mesa_llm.llm.local.profile import SMALLEST
from mesa_llm.llm.local.weights import cache_folder, model_file
from mesa_llm.reports.private_data import _places
from mesa_llm.viz.session.runs import RUNS_VARIABLE, runs_folder
from tests.pot import PotModel


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user whom the system does not know."""

    def unknown(user: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {user}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in [name for name in os.environ if name.startswith(("XDG_", "MESA_LLM_"))]:
        monkeypatch.delenv(name)
    for name in ("HOME", "USER", "LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("ask", [cache_folder, model_file, lambda: agree(b"", Path("mesa-llm.toml"))])
def test_what_needs_a_folder_says_so(ask: Callable[[], Any]) -> None:
    with pytest.raises(ConfigError, match=r"there is no folder to keep (models|agreements) in"):
        ask()


def test_what_can_do_without_a_folder_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").touch()
    monkeypatch.setenv(RUNS_VARIABLE, str(tmp_path / "taken"))
    assert not has_agreed(b"anything")
    assert runs_folder() is None
    assert list(_places("nothing private")) == []


def test_a_run_ends_at_its_first_request_and_names_the_variable() -> None:
    model = PotModel(llm="local", rng=1)
    with pytest.raises(ConfigError, match="MESA_LLM_CACHE"):
        model.run_for(3)
    assert (model.engine.decisions, model.engine.usage.failures) == (0, 0)


@pytest.mark.parametrize("fault", [MemoryError(), OSError(5, "Input/output error")])
def test_a_model_that_a_machine_cannot_load_is_no_failed_decision(
    fault: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: Any) -> NoReturn:
        raise fault

    monkeypatch.setattr("mesa_llm.llm.local.model.load", load)
    with pytest.raises(ConfigError, match=r"cannot be loaded on this machine: (there is not enough memory|.*error)"):
        EmbeddedModel(tmp_path / "any.gguf", SMALLEST).write({}, Event())
