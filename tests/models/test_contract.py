"""Every model, ours and of other packages, keeps the contract."""

import pytest

from mesa_llm.contract import CHECKS
from mesa_llm.gallery import find_models
from mesa_llm.llm.simple import RandomLLM


@pytest.mark.contract
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_a_model_keeps_its_contract(entry, check) -> None:
    CHECKS[check](entry)


@pytest.mark.contract
@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_chance_is_one_however_it_is_named(entry) -> None:
    digests = []
    for llm in ("random", RandomLLM()):
        model = entry.load()(rng=3, llm=llm)
        model.run_for(3)
        digests.append((model.runlog.digest, model.runlog.manifest["parameters"]["llm"]))
    assert digests[0] == digests[1]
