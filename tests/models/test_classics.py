"""The classic models do what their sources say; the contract of every model is tested with the others."""

import pytest
from mesa.examples.basic.schelling.model import Schelling
from mesa.examples.basic.schelling.model import SchellingScenario as MesaScenario

from models.classics.prisoners_dilemma.model import DilemmaModel
from models.classics.schelling.model import SchellingModel


def test_schellings_rule_twin_is_mesas_example_resident_by_resident() -> None:
    ours, theirs = SchellingModel(size=20, rng=42), Schelling(MesaScenario(rng=42))
    for _ in range(8):
        ours.step()
        theirs.step()
    assert [(a.cell.coordinate, a.colour == "blue") for a in ours.agents] == [
        (a.cell.coordinate, a.type == 1) for a in theirs.agents
    ]


def test_mild_wishes_end_in_strong_segregation() -> None:
    """Schelling (1971): residents who ask for 40 % end with far more."""
    town = SchellingModel(size=20, homophily=0.4, rng=1)
    assert town.likeness == pytest.approx(0.5, abs=0.06)
    town.run(30)
    assert town.happy == len(town.agents)
    assert town.likeness > 0.75


def test_tit_for_tat_beats_nobody_and_comes_first() -> None:
    """Axelrod (1980)."""
    tournament = DilemmaModel(guests=0, rounds=100, rng=1)
    tournament.run()
    assert tournament.ranking()[0][0] == "tit_for_tat"
    (own,) = [player for player in tournament.agents if player.strategy == "tit_for_tat"]
    for number, moves in own.moves.items():
        other = tournament.players[number]
        assert moves.count("defect") <= other.moves[own.unique_id].count("defect")
