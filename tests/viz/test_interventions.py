"""The news desk: what stands in its fields, and what it does to a run."""

from __future__ import annotations

import threading
import time
from typing import ClassVar

import pytest

from mesa_llm import Change, News, Post
from mesa_llm.viz.session.interventions import InterventionOptions, InterventionRunner, intervention_of
from mesa_llm.viz.session.rw_lock import steady
from mesa_llm_models.classics.schelling.model import SchellingModel
from mesa_llm_models.three_worlds.model import ThreeWorldsModel
from tests.pot import PotModel


def finished(desk: InterventionRunner) -> InterventionRunner:
    give_up = time.monotonic() + 30
    while desk.working and time.monotonic() < give_up:
        time.sleep(0.005)
    return desk


def test_the_fields_make_interventions() -> None:
    assert intervention_of("News", " x ", "all") == News(text="x")
    assert intervention_of("News", "x", "social") == News(text="x", to="social")
    assert intervention_of("News", "x", "agent 3: Ann") == News(text="x", to=(3,))
    assert intervention_of("Post", "x", "") == Post(text="x", author="Newsroom")
    assert intervention_of("Change of a variable", "0.5", "economy.tax_rate") == Change(
        variable="tax_rate", value=0.5, world="economy"
    )
    with pytest.raises(ValueError, match="Enter a text"):
        intervention_of("News", " ", "all")


def test_a_model_offers_what_it_has() -> None:
    assert InterventionOptions.of(PotModel(2, rng=1)).kinds == ["News"]
    town = InterventionOptions.of(ThreeWorldsModel(n_agents=2, rng=1))
    assert town.kinds == ["News", "Post", "Change of a variable"]
    assert list(town.readers)[:4] == ["all", "social", "market", "economy"]
    assert town.variables["market.fee"].startswith("Now 0.0. Share of each trade")
    assert "(≥ 0, ≤ 1)" in InterventionOptions.of(SchellingModel(rng=1)).variables["homophily"]


def test_what_cannot_be_done_is_said() -> None:
    model, desk = PotModel(2, rng=1), InterventionRunner()
    desk.send(model, Post(text="x"))
    assert "supports posts" in finished(desk).error
    desk.send(model, News(text="x"))
    assert (finished(desk).note, desk.error) == ("Sent. Agents read it in step 1.", "")


class WithVisitor(PotModel):
    """Whoever looks at a run while a branch makes its first step again sees it within half a minute."""

    looks: ClassVar[list[float]] = []
    original: ClassVar[PotModel | None] = None

    def begin_step(self) -> None:
        if self.original is not None:
            visitor = threading.Thread(target=self.look, args=(self.original,), daemon=True)
            visitor.start()
            visitor.join(30)
            assert self.looks
        super().begin_step()

    def look(self, model: PotModel) -> None:
        with steady(model):
            self.looks.append(model.time)


def test_a_page_is_drawn_while_a_branch_makes_the_steps_of_its_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model, desk = WithVisitor(2, rng=1), InterventionRunner()
    model.run_for(2)
    monkeypatch.setattr(WithVisitor, "original", model)
    desk.branch(model, News(text="x"), 1)
    assert finished(desk).error == ""
    assert set(WithVisitor.looks) == {2}
