"""The classic models do what their sources say; the contract of every model is tested with the others."""

from random import Random
from statistics import fmean

import ipyvuetify as vuetify
import numpy as np
import pytest
import reacton
import solara
from mesa.examples.basic.boltzmann_wealth_model.model import BoltzmannScenario, BoltzmannWealth
from mesa.examples.basic.schelling.model import Schelling
from mesa.examples.basic.schelling.model import SchellingScenario as MesaScenario

from mesa_llm import ScriptedLLM
from mesa_llm.llm.replies import call
from mesa_llm_models.classics.app import page
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel
from mesa_llm_models.classics.culture.model import CultureModel
from mesa_llm_models.classics.el_farol.model import FarolModel
from mesa_llm_models.classics.epidemic.model import EpidemicModel
from mesa_llm_models.classics.opinion.model import OpinionModel
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from mesa_llm_models.classics.recordings import CLASSICS, run_twins
from mesa_llm_models.classics.schelling.model import SchellingModel
from mesa_llm_models.classics.sugarscape.model import SugarModel
from mesa_llm_models.classics.wolf_sheep.model import MESA_RATES, MeadowModel, Sheep


def measured(model, name: str, *, last: int) -> float:
    """Return the mean of a measure over the last steps."""
    return fmean(model.datacollector.model_vars[name][-last:])


def test_mild_preferences_segregate_and_the_rule_twin_equals_mesas_example() -> None:
    """Schelling (1971): residents who ask for 40 % end with far more."""
    ours, theirs = SchellingModel(size=20, rng=42, memory="none"), Schelling(MesaScenario(rng=42))
    assert ours.likeness == pytest.approx(0.5, abs=0.06)
    for _ in range(8):
        ours.step()
        theirs.step()
    assert [(a.cell.coordinate, a.colour == "blue") for a in ours.agents] == [
        (a.cell.coordinate, a.type == 1) for a in theirs.agents
    ]
    assert (ours.happy, ours.running) == (len(ours.agents), False)
    assert ours.likeness > 0.75


def test_wealth_is_distributed_as_theory_says_and_as_in_mesas_example() -> None:
    """Drăgulescu and Yakovenko (2000), for whole coins: with one a head the Gini coefficient is 2/3."""
    scenario = BoltzmannScenario(n=60, width=8, height=8, rng=1)
    ours, theirs = WealthModel(n_agents=60, size=8, memory="none", rng=1), BoltzmannWealth(scenario)
    ours.run_for(60)
    theirs.run_for(60)
    assert measured(ours, "gini", last=30) == pytest.approx(2 / 3, abs=0.06)
    assert measured(ours, "gini", last=30) == pytest.approx(measured(theirs, "Gini", last=30), abs=0.06)
    assert sum(walker.wealth for walker in ours.agents) == 60


@pytest.mark.parametrize(("spread", "is_endemic"), [(0.02, False), (0.4, True)])
def test_a_virus_stays_above_the_threshold_and_dies_out_below(spread, is_endemic) -> None:
    """Pastor-Satorras and Vespignani (2001): spread / (check x recovery), 0.17 and 3.3, against 1 / ties = 0.25."""
    epidemic = EpidemicModel(n_agents=60, ties=4, n_infected=8, spread=spread, resistance=0, memory="none", rng=2)
    epidemic.run(40)
    assert (epidemic.infected > 0.5) is is_endemic
    assert epidemic.infected > 0.5 or epidemic.infected < 0.1


def test_a_virus_passes_to_nobody_who_stays_at_home() -> None:
    epidemic = EpidemicModel(n_agents=30, n_infected=5, caution=1, check_frequency=0, rng=1)
    epidemic.run(10)
    assert epidemic.infected == pytest.approx(5 / 30)


@pytest.mark.parametrize("epsilon", [0.5, 0.2, 0.1])
def test_about_one_over_two_epsilon_clusters_remain(epsilon) -> None:
    """Deffuant et al. (2000); small groups that were left out may count besides."""
    people = OpinionModel(n_agents=60, epsilon=epsilon, memory="none", rng=2)
    people.run_for(30)
    assert people.clusters == pytest.approx(1 / (2 * epsilon), abs=1.5)


def axelrods_village(habits: list[list[int]], size: int, rng: Random, n_meetings: int) -> list[list[int]]:
    """Run Axelrod's model (1997, p. 208) site by site: what the rule twins are held against."""
    for _ in range(n_meetings):
        row, column = divmod(rng.choice(range(size**2)), size)
        near = [(row + down, column + right) for down, right in ((-1, 0), (0, -1), (0, 1), (1, 0))]
        near = [place for place in near if all(0 <= number < size for number in place)]
        own, (other_row, other_column) = habits[row * size + column], rng.choice(near)
        theirs = habits[other_row * size + other_column]
        different = [i for i in range(len(own)) if own[i] != theirs[i]]
        if different and rng.random() < 1 - len(different) / len(own):
            feature = rng.choice(different)
            own[feature] = theirs[feature]
    return habits


def test_the_rule_twin_of_culture_is_axelrods_model_villager_by_villager() -> None:
    village = CultureModel(size=5, features=3, traits=4, rng=1)
    rng = Random()
    rng.setstate(village.random.getstate())
    habits = [list(villager.habits) for villager in village.villagers]
    village.run_for(20)
    assert village.n_taken < 25
    assert [villager.habits for villager in village.villagers] == axelrods_village(habits, 5, rng, 20 * 25)


def test_likeness_spreads_until_neighbours_share_everything_or_nothing() -> None:
    """Axelrod (1997): more traits, more regions."""
    ends = [CultureModel(size=5, features=3, traits=traits, rng=2, light=True) for traits in (2, 15)]
    for village in ends:
        village.run(500)
    assert [(village.running, village.active) for village in ends] == [(False, 0)] * 2
    assert all(village.regions == village.zones for village in ends)
    assert ends[0].regions < ends[1].regions
    assert ends[0].largest > ends[1].largest


def test_the_bar_is_as_full_as_it_may_be_on_average_and_never_settles() -> None:
    """Arthur (1994): mean attendance comes close to the threshold."""
    town = FarolModel(rng=1)
    town.run_for(100)
    assert measured(town, "attendance", last=70) == pytest.approx(60, abs=4)
    assert town.variance > 100


def test_a_person_acts_on_the_predictor_that_erred_least() -> None:
    """One by one, as in Arthur (1994): forecasts of all predictors, the best of each person, who goes, who learns."""
    town = FarolModel(n_agents=9, predictors=3, weeks=4, fading=0.5, rng=3)
    errors = {patron: dict.fromkeys(patron.errors, 0.0) for patron in town.agents}
    for _ in range(12):
        past = list(town.attendances[-4:])
        said = {one: one.forecast(past, 9) for one in town.predictors}
        out = sum(said[min(own, key=lambda one: own[one])] < 5.4 for own in errors.values())
        town.step()
        assert town.attendance == out
        for own in errors.values():
            own.update({one: (error + abs(said[one] - out)) / 2 for one, error in own.items()})
    assert [one.forecast([4, 2, 3, 5], 9) for one in town.predictors if one.weeks == 2] == [3, 6, 4, 7]


def test_linear_strategies_are_chosen_by_their_forecasts_of_the_last_weeks() -> None:
    """A second program, in arrays: weights from −1 to 1, errors of the last `weeks` weeks, who goes."""
    town = FarolModel(n_agents=9, pool="linear", predictors=3, weeks=4, rng=3)
    weights = np.array([[(one.constant, *one.weights) for one in patron.errors] for patron in town.agents])
    assert weights.shape == (9, 3, 5)
    assert -1 <= weights.min() < weights.max() <= 1
    past = np.array(town.attendances) / 9
    assert len(past) == 8
    for _ in range(12):
        said = [weights @ (1, *past[week - 4 : week][::-1]) for week in range(len(past) - 4, len(past) + 1)]
        errors = np.sum([abs(one - came) for one, came in zip(said[:4], past[-4:], strict=True)], axis=0)
        town.step()
        assert town.attendance == (said[4][range(9), errors.argmin(axis=1)] < 0.6).sum()
        past = np.append(past, town.attendance / 9)


def test_trade_lets_more_people_live_at_prices_around_one() -> None:
    """Epstein and Axtell (1996), chapter IV."""
    alive = []
    for trades in (True, False):
        people = SugarModel(n_agents=40, size=24, vision=4, trades=trades, memory="none", rng=2)
        people.step()
        assert people.price == (pytest.approx(1, abs=0.2) if trades else None)
        people.run_for(19)
        alive.append(people.traders)
    assert alive[0] > alive[1]


def test_wolves_starve_without_sheep_and_sheep_live_on_without_wolves() -> None:
    small = {"size": 8, "memory": "none", "rng": 2}
    alone = MeadowModel(n_sheep=20, n_wolves=0, **small)
    alone.run(60)
    assert alone.sheep > 0
    hungry = MeadowModel(n_sheep=0, n_wolves=6, **small)
    hungry.run(200)
    assert (hungry.wolves, hungry.running) == (0, False)


@pytest.mark.slow
@pytest.mark.parametrize("rates", [{}, MESA_RATES], ids=["default", "Mesa's rates"])
def test_wolves_and_sheep_cycle_by_default_and_die_out_at_the_rates_of_mesas_example(rates) -> None:
    """Wilensky (1997): a peak in the spectrum that noise with the same memory reaches in one of twenty series."""
    meadow = MeadowModel(memory="none", light=True, rng=1, **rates)
    meadow.run_for(400)
    sheep = np.array(meadow.datacollector.model_vars["sheep"][100:], dtype=float)
    if rates:
        assert not meadow.running
        return
    assert min(meadow.sheep, meadow.wolves) > 0
    power = np.abs(np.fft.rfft((sheep - sheep.mean()) * np.hanning(len(sheep))))[1:] ** 2
    lengths = len(sheep) / np.arange(1, len(power) + 1)
    assert power[(lengths > 60) & (lengths < 140)].sum() / power.sum() > 0.5


def test_who_is_born_in_a_run_decides_from_the_next_step_on() -> None:
    meadow = MeadowModel(size=8, n_sheep=20, n_wolves=0, sheep_reproduce=1, sheep_gain=50, llm="random", rng=1)
    young = [len(meadow.agents) + number for number in range(1, 21)]
    meadow.run_for(2)
    decisions = meadow.runlog.decisions()
    assert set(decisions[decisions.agent.isin(young)].time) == {2}
    assert all(isinstance(animal, Sheep) for animal in meadow.agents)


def test_tit_for_tat_beats_nobody_and_comes_first() -> None:
    """Axelrod (1980)."""
    tournament = DilemmaModel(guests=0, rounds=60, rng=1)
    tournament.run()
    assert tournament.ranking()[0][0] == "tit_for_tat"
    (own,) = [player for player in tournament.agents if player.strategy == "tit_for_tat"]
    for number, moves in own.moves.items():
        other = tournament.players[number]
        assert moves.count("defect") <= other.moves[own.unique_id].count("defect")


@pytest.mark.parametrize("name", CLASSICS)
def test_a_recording_replays_offline_beside_its_rule_twin(name) -> None:
    classic = CLASSICS[name]
    rule, llm = run_twins(name)
    assert (llm.usage.calls, rule.usage.replayed) == (0, 0)
    assert classic.run.is_of_earlier_prompts or llm.runlog.digest == classic.run.recording.digests[classic.steps]
    assert rule.runlog.digest != llm.runlog.digest


def test_a_rule_twin_and_a_recording_step_beside_each_other_on_one_page() -> None:
    _, shown = reacton.render(solara.AppLayout(children=[page]), handle_error=False)
    for name in ("Step", "To the end", "Again", "Step"):
        next(button for button in shown.find(vuetify.Btn).widgets if button.children == [name]).click()
    assert not shown.find(vuetify.Alert).widgets
    shown.close()


@pytest.mark.parametrize("write", ["[{0}, {1}]".format, "({0},{1})".format, lambda row, column: [row, column]])
@pytest.mark.parametrize("kind", [SugarModel, MeadowModel])
def test_a_place_is_read_in_the_ways_models_write_it(kind, write) -> None:
    def reply(request):
        return call("go_to", place=write(*map(int, request.options["place"][0].split(","))))

    model = kind(llm=ScriptedLLM(reply), rng=1)
    model.step()
    assert model.usage.failures == 0
    assert model.runlog.actions()["ok"].any()
