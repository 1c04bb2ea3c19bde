"""Every model, ours and of other packages, keeps the contract."""

import pytest

from mesa_llm.contract import CHECKS
from mesa_llm.gallery import find_models


@pytest.mark.contract
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_a_model_keeps_its_contract(entry, check) -> None:
    CHECKS[check](entry)
