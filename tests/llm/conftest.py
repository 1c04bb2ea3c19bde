"""What tests of the embedded model share."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.llm.local.model import LocalLLM
from mesa_llm.llm.local.profile import CAPABLE, SMALLEST
from mesa_llm.llm.local.weights import is_present, model_file


@pytest.fixture(scope="session")
def model_path() -> Path:
    """Give the embedded model's file; without it, tests are skipped, but never on CI."""
    try:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ConfigError("xllamacpp is not installed")
        return model_file()
    except ConfigError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def capable_path() -> Path:
    """Give the file of the capable local model; where it has not been fetched, tests are skipped."""
    if importlib.util.find_spec("xllamacpp") is None or not is_present(CAPABLE):
        pytest.skip("the model of 1.1 GB is not here: `mesa-llm doctor --llm local:1.5b` fetches it")
    return model_file(CAPABLE)


@pytest.fixture(scope="session")
def local(model_path: Path) -> LocalLLM:
    """Give the embedded model, loaded once."""
    return LocalLLM(model_path, SMALLEST)
