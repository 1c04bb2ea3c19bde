"""Every model, ours and of other packages, keeps the contract."""

from typing import Any

import ipyvuetify as vuetify
import pytest
import reacton
import solara
from mesa.visualization import SolaraViz

from mesa_llm.llm.scripted import RandomLLM
from mesa_llm.model.scenario import controls, parameters_of
from mesa_llm.registry import find_models
from mesa_llm.testing import CHECKS


@pytest.mark.contract
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_a_model_keeps_its_contract(entry, check) -> None:
    CHECKS[check](entry)


@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_mesas_batch_run_drives_a_model_with_fields_and_with_a_scenario(entry) -> None:
    kind = entry.load()
    name = next(p.name for p in parameters_of(kind) if p.name in kind.scenario_class.fields and type(p.default) is int)
    value = getattr(kind.scenario_class, name)
    batch_run = pytest.importorskip("mesa.batchrunner").batch_run  # Mesa 4.0.0a0 has none
    how: dict[str, Any] = {"rng": [1], "max_steps": 1, "display_progress": False}
    (row,) = batch_run(kind, {name: [value]}, **how)[-1:]
    (same,) = batch_run(kind, {"scenario": [kind.scenario_class(**{name: value})]}, **how)[-1:]
    assert (row[name], row["rng"], row["Step"]) == (value, 1, 1)
    assert {key: row[key] for key in row.keys() & same.keys() if key not in ("RunId", "seconds")} == {
        key: same[key] for key in row.keys() & same.keys() if key not in ("RunId", "seconds")
    }


@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_mesas_own_page_drives_a_model(entry) -> None:
    model = entry.load()(rng=1)
    viz = SolaraViz(model, components=[], model_params=controls(type(model)))
    _, page = reacton.render(solara.AppLayout(children=[viz]), handle_error=False)
    for name in ("Reset", "Step"):
        next(button for button in page.find(vuetify.Btn).widgets if button.children == [name]).click()
    assert not page.find(vuetify.Alert).widgets
    page.close()


@pytest.mark.contract
@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_chance_is_one_however_it_is_named(entry) -> None:
    digests = []
    for llm in ("random", RandomLLM()):
        model = entry.load()(rng=3, llm=llm)
        model.run_for(3)
        digests.append((model.runlog.digest, model.runlog.manifest["parameters"]["llm"]))
    assert digests[0] == digests[1]


@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_no_slider_moves_a_default(entry) -> None:
    sliders = {name: one for name, one in controls(entry.load()).items() if isinstance(one, dict) and "step" in one}
    off = {name: one for name, one in sliders.items() if not _is_on_grid(one["value"] - one["min"], one["step"])}
    assert off == {}


def _is_on_grid(distance: float, step: float) -> bool:
    return abs(distance / step - round(distance / step)) < 1e-6
