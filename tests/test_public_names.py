"""What a model, an experiment or a lesson needs is imported from `mesa_llm`; an old name works for one release."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import mesa_llm
from mesa_llm._deprecated import NAMES, with_current_names

PUBLIC = dir(mesa_llm)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(mesa_llm, name)
    assert inspect.getdoc(value)
    assert value.__name__.rpartition(".")[2] == name


def test_the_names_that_every_model_needs_are_public() -> None:
    assert {"LLMAgent", "LLMModel", "LLMScenario", "Mind", "World", "action", "tool", "check_model"} <= set(PUBLIC)


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="No mesa_llm attribute Engines"):
        getattr(mesa_llm, "Engines")  # noqa: B009 - the stub says that there is none


def test_objects_in_an_old_log_are_found_under_their_new_names() -> None:
    recorded = {"model": "models.social.model:SocialModel", "parameters": {"llm": ["rule", "models.txt"]}}
    assert with_current_names(recorded) == {
        "model": "mesa_llm_models.social.model:SocialModel",
        "parameters": {"llm": ["rule", "models.txt"]},
    }


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, mesa_llm; print(sorted(name for name in sys.modules if name.startswith(('mesa', 'pydantic'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['mesa_llm']"


@pytest.mark.parametrize(
    "old", [*NAMES, "mesa_llm.experiments.audit:read_claims", "mesa_llm.experiments.branch:branch"]
)
def test_what_has_moved_is_found_under_its_old_name_with_a_warning(old: str) -> None:
    importlib.import_module("mesa_llm.experiments")
    module, _, name = old.partition(":")
    new_module, _, new = NAMES.get(old, f"mesa_llm.experiments:{name}").partition(":")
    with pytest.warns(DeprecationWarning, match=f"{module} is now mesa_llm"):
        found = getattr(importlib.import_module(module), name)
    assert found is getattr(importlib.import_module(new_module), new)
