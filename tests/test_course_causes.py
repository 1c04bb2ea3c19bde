"""What the course says of causes is true: each sentence has a run that could have refuted it.

A row of `SENTENCES` holds words of the course, a run by rule, by chance or of a recording that ships, the value that
the run gives, and a tolerance. Expected values are means over the seeds of the run; the tolerance is about three
standard errors of such a mean, and smaller than the effect that the sentence is about.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from mesa.examples.advanced.epstein_civil_violence.agents import Citizen
from mesa.examples.advanced.epstein_civil_violence.model import EpsteinCivilViolence, EpsteinScenario
from mesa.examples.advanced.wolf_sheep.agents import Sheep, Wolf
from mesa.examples.advanced.wolf_sheep.model import WolfSheep, WolfSheepScenario
from mesa.examples.basic.boid_flockers.model import BoidFlockers, BoidsScenario
from mesa.examples.basic.conways_game_of_life.model import ConwaysGameOfLife
from mesa.examples.basic.schelling.model import Schelling, SchellingScenario
from scipy.optimize import root_scalar

from mesa_llm import AgentConfig, LLMAgent, LLMModel, Observation, ScriptedLLM, ToolCall, action, recorded_run
from mesa_llm.model.measures import gini
from mesa_llm_models.beer.model import BeerGame
from mesa_llm_models.classics.el_farol.model import FarolModel
from mesa_llm_models.classics.epidemic.model import EpidemicModel
from mesa_llm_models.classics.opinion.model import OpinionModel

COURSE = Path(__file__).parents[1] / "notebooks" / "course"


class Sentence(NamedTuple):
    """Words of the course about a cause, and a run that could refute them."""

    week: int
    """Week in whose text or notebook the words stand."""

    words: str
    """Words as they stand there."""

    run: Callable[[], float]
    """Makes the runs, and returns their value."""

    expected: float
    """Value that they give."""

    tolerance: float
    """Distance from which on the sentence counts as refuted."""


def mean_over(seeds: range, value: Callable[[int], float]) -> float:
    """Average a value over seeds."""
    return fmean(value(seed) for seed in seeds)


class LifeInTurn(ConwaysGameOfLife):
    """Life whose cells change one after another."""

    def step(self) -> None:
        """Let each cell look and change, in random order."""
        for cell in self.agents.shuffle():
            cell.determine_state()
            cell.assume_state()


def alive_in(kind: type[ConwaysGameOfLife], seed: int) -> float:
    """Return the share of living cells of a soup after 60 steps."""
    soup = kind(width=20, height=20, initial_fraction_alive=0.2, rng=seed)
    soup.run_for(60)
    return fmean(cell.state for cell in soup.agents)


def soup_gap() -> float:
    """Return how many more cells are alive if they change one after another, over three seeds."""
    return mean_over(range(1, 4), lambda seed: alive_in(LifeInTurn, seed) - alive_in(ConwaysGameOfLife, seed))


def kept_in_turn(rows: list[str]) -> float:
    """Return the share of 5 seeds in which a pattern is as it was, two steps one after another later."""
    same = 0
    for seed in range(5):
        life = LifeInTurn(width=8, height=8, initial_fraction_alive=0, rng=seed)
        drawn = {(2 + x, 2 + y) for y, row in enumerate(rows) for x, mark in enumerate(row) if mark == "#"}
        for cell in life.agents:
            cell.state = int((cell.x, cell.y) in drawn)
        life.run_for(2)
        same += {(cell.x, cell.y) for cell in life.agents if cell.state} == drawn
    return same / 5


def likeness(town: Any) -> float:
    """Return the mean share of like neighbours."""
    near = [(agent, list(agent.cell.neighborhood.agents)) for agent in town.agents]
    return fmean(fmean(other.type == agent.type for other in others) if others else 0 for agent, others in near)


@cache
def town_of(wish: float) -> tuple[float, float]:
    """Return likeness and share of happy residents after 40 steps, as means over three seeds."""
    ends = []
    for seed in range(1, 4):
        town = Schelling(SchellingScenario(homophily=wish, rng=seed))
        while town.running and town.time < 40:
            town.step()
        ends.append((likeness(town), town.happy / len(town.agents)))
    return fmean(end[0] for end in ends), fmean(end[1] for end in ends)


@cache
def calls_of(run: str) -> Any:
    """Return the calls of a recording, and the text that each agent read last."""
    with_text = recorded_run(run).replay().runlog.calls()
    with_text["text"] = [json.loads(prompt)[-1]["content"] for prompt in with_text["prompt"]]
    with_text["action"] = [json.loads(reply)["tool_calls"][0][0] for reply in with_text["reply"]]
    return with_text


def moves_by_likeness() -> float:
    """Return how much more often the recorded residents move where fewer than 40 % are like them."""
    calls = calls_of("schelling")
    alike = calls["text"].str.extract(r"(\d+)% are like")[0].astype(float)
    moves = (calls["action"] == "move")[alike.notna()]
    return float(moves[alike < 40].mean() - moves[alike >= 40].mean())


def room(order: str, alone: float = 0, n: int = 100, coins_each: int = 1, steps: int = 100) -> float:
    """Return the late Gini coefficient of people who meet all others, over ten runs; see week 10."""
    ginis = []
    for seed in range(1, 11):
        rng = random.Random(seed)
        coins = [coins_each] * n
        for step in range(steps):
            givers = rng.choices(range(n), k=n) if order == "drawn" else rng.sample(range(n), n)
            had = list(coins) if order == "together" else coins
            for giver in givers:
                taker = rng.randrange(n - 1)
                taker += taker >= giver
                if had[giver] > 0 and rng.random() >= alone:
                    coins[giver] -= 1
                    coins[taker] += 1
            if step >= steps // 2:
                ginis.append(gini(coins))
    return fmean(ginis)


def by_person() -> float:
    """Return the mean difference of the ten people's shares of gifts, generous less greedy."""
    generous, greedy = (
        (calls["action"] == "give").groupby(calls["agent"]).mean()
        for calls in (calls_of("boltzmann_wealth/generous"), calls_of("boltzmann_wealth/greedy"))
    )
    return float((generous - greedy).mean())


class Voter(LLMAgent):
    """A voter, who likes one of the candidates or none."""

    def observe(self) -> Observation:
        """Show the candidates."""
        return Observation("Today you elect a mayor.", options={"candidate": ("Ada", "Bo", "Cleo", "Dan")})

    @action
    def vote_for(self, candidate: str) -> str:
        """Vote for a candidate.

        Args:
            candidate: Name of the candidate.
        """
        return f"You voted for {candidate}."


def first_of_list() -> float:
    """Return the share of votes for the first of a list, if half of forty voters take whoever that is."""

    def lazy(request: Any) -> ToolCall:
        names = request.options["candidate"]
        return ToolCall("vote_for", {"candidate": next((n for n in names if n in str(request.messages)), names[0])})

    election = LLMModel(llm=ScriptedLLM(lazy), rng=1)
    for index in range(40):
        Voter(
            election, config=AgentConfig(persona=f"You like {('Bo', 'Cleo', 'Dan')[index % 3]}." if index % 2 else "")
        )
    election.step()
    return float(election.runlog.actions()["arguments"].str.contains("Ada").mean())


def twenty_coins(steps: int) -> float:
    """Return the late Gini coefficient of sixty people with twenty coins each."""
    return room("drawn", n=60, coins_each=20, steps=steps)


def share_given(persona: str) -> float:
    """Return the share of encounters in which recorded people gave."""
    return float((calls_of(f"boltzmann_wealth/{persona}")["action"] == "give").mean())


LIVELY = {
    "sheep_reproduce": 0.25,
    "wolf_reproduce": 0.08,
    "sheep_gain_from_food": 4.0,
    "grass_regrowth_time": 3,
    "initial_sheep": 200,
    "initial_wolves": 60,
}


def ends(seeds: range, steps: int = 150, **fields: Any) -> list[tuple[int, int]]:
    """Return the numbers of wolves and sheep at the end of runs of Mesa's model."""
    found = []
    for seed in seeds:
        meadow = WolfSheep(WolfSheepScenario(**fields, rng=seed))
        while meadow.time < steps and len(meadow.agents_by_type[Wolf]):
            meadow.step()
        found.append((len(meadow.agents_by_type[Wolf]), len(meadow.agents_by_type[Sheep])))
    return found


def all_dead() -> float:
    """Return the share of five runs with Mesa's parameters after which nobody is left."""
    return fmean(wolves + sheep == 0 for wolves, sheep in ends(range(1, 6)))


def both_live(size: int = 21, wolf_gain: float = 3.0) -> float:
    """Return the share of three runs with the lively parameters in which both species live after 150 steps."""
    fields: dict[str, Any] = {**LIVELY, "width": size, "height": size, "wolf_gain_from_food": wolf_gain}
    return fmean(min(numbers) > 0 for numbers in ends(range(1, 4), **fields))


class Mixed(WolfSheep):
    """The same world; all animals act in one random order."""

    def step(self) -> None:
        """Let all animals act, and collect."""
        self.agents.select(lambda agent: isinstance(agent, Wolf | Sheep)).shuffle_do("step")
        self.datacollector.collect(self)


def last_sheep(kind: type[WolfSheep], seed: int) -> float:
    """Return the first step after which no sheep is left; at most 150."""
    meadow = kind(WolfSheepScenario(rng=seed))
    while meadow.time < 150 and len(meadow.agents_by_type[Sheep]):
        meadow.step()
    return meadow.time


def mixed_gap() -> float:
    """Return how many steps later the last sheep dies if all animals act in one random order, over ten seeds."""
    return mean_over(range(1, 11), lambda seed: last_sheep(Mixed, seed) - last_sheep(WolfSheep, seed))


def blind_wolves() -> float:
    """Return the share of five runs with Mesa's parameters in which sheep outlive wolves that walk at random."""

    def walk(wolf: Any) -> None:
        wolf.cell = wolf.cell.neighborhood.select_random_cell()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Wolf, "move", walk)
        return fmean(sheep > 0 for _, sheep in ends(range(1, 6)))


def to_grass() -> float:
    """Return how much more often recorded sheep go to grass than by drawing a place, where they can choose."""
    place = re.compile(r"([\d,]+): (?:no|\d+) sheep, (?:no|\d+) wol\w+, (no grass|grass)")
    more = []
    for call in calls_of("wolf_sheep").itertuples():
        grass = {name: what == "grass" for name, what in place.findall(call.text)}
        if "You are a sheep" in call.text and 0 < sum(grass.values()) < len(grass):
            chosen = json.loads(call.reply)["tool_calls"][0][1].get("place", next(iter(grass)))
            more.append(grass[chosen] - fmean(grass.values()))
    assert len(more) == 38
    return fmean(more)


def spreads_on(graph: nx.Graph, spread: float, seed: int, n_infected: int, *, steps: int = 60, is_sir: bool = False):
    """Run the short epidemic of week 5, all at once; return who is ill, and who ever was, in each step."""
    rng = np.random.default_rng(seed)
    ties = nx.to_numpy_array(graph)
    ill = np.zeros(len(ties), dtype=bool)
    ill[rng.choice(len(ties), n_infected, replace=False)] = True
    ever, course = ill.copy(), [(ill.mean(), ill.mean())]
    while len(course) <= steps and ill.any():
        risk = 1 - (1 - spread) ** (ties @ ill)
        infected = ~(ever if is_sir else ill) & (rng.random(len(ill)) < risk)
        ill = (ill & (rng.random(len(ill)) >= 0.12)) | infected
        ever = ever | infected
        course.append((ill.mean(), ever.mean()))
    return course


def ill_in(kind: str, spread: float) -> float:
    """Return the share ill after 60 steps on random networks of 400 with or without hubs; eight seeds."""
    draw = {"random": partial(nx.gnp_random_graph, 400, 0.01), "hubs": partial(nx.barabasi_albert_graph, 400, 2)}[kind]
    return mean_over(range(1, 9), lambda seed: spreads_on(draw(seed=seed), spread, seed, 40)[-1][0])


def final_size(r0: float) -> float:
    """Solve the final-size equation z = 1 - exp(-R₀ z)."""
    return root_scalar(lambda z: 1 - math.exp(-r0 * z) - z, bracket=(1e-6, 1)).root if r0 > 1 else 0.0


def ever_ill(r0: float) -> float:
    """Return the share of 1,000 well-mixed people who fall ill in large outbreaks, over ten seeds."""
    ends = []
    for seed in range(1, 11):
        rng = np.random.default_rng(seed)
        susceptible, ill = 990, 10
        while ill:
            infected = rng.binomial(susceptible, 1 - (1 - r0 * 0.12 / 1000) ** ill)
            cured = rng.binomial(ill, 0.12)
            susceptible, ill = susceptible - infected, ill + infected - cured
        ends.append(1 - susceptible / 1000)
    return fmean(ends)


def clustering_kept() -> float:
    """Return the clustering of a ring with one tie in a hundred led elsewhere, as a share of that of the ring."""
    rings = [nx.connected_watts_strogatz_graph(400, 6, p, seed=1) for p in (0.01, 0)]
    one, other = map(nx.average_clustering, rings)
    return one / other


@cache
def half_time(p: float) -> float:
    """Return the step at which half of a ring of 400 people has been ill, for a share of rewired ties; six seeds."""

    def of(seed: int) -> float:
        ring = nx.connected_watts_strogatz_graph(400, 6, p, seed=seed)
        ever = [ever for _, ever in spreads_on(ring, 0.25, seed, 4, steps=400, is_sir=True)]
        return next((step for step, share in enumerate(ever) if share >= 0.5), 400)

    return mean_over(range(1, 7), of)


def ill_on_average(caution: float) -> float:
    """Return the mean share ill over six steps of the recorded town, by rule, over 20 seeds."""
    run = recorded_run("epidemic").recording
    changes = {"llm": "rule", "caution": caution, "light": True}
    ill = []
    for seed in range(1, 21):
        town = EpidemicModel(**{**run.parameters, **changes}, rng=seed)
        town.run_for(run.last_step)
        ill.append(fmean(town.datacollector.model_vars["infected"]))
    return fmean(ill)


def at_home(*, with_ill_contact: bool) -> float:
    """Return how many recorded decisions to stay at home were made with, or without, an ill contact."""
    calls = calls_of("epidemic")
    contacts = calls["text"].str.extract(r"when you go out, (\d+)")[0].astype(int) > 0
    return float(((calls["action"] == "stay_home") & (contacts == with_ill_contact)).sum())


@cache
def order_of_flock(**weights: float) -> float:
    """Return the order of sixty birds after 50 steps, over three seeds."""

    def of(seed: int) -> float:
        flock = BoidFlockers(BoidsScenario(population_size=60, width=50, height=50, rng=seed, **weights))
        flock.run_for(50)
        directions = np.array([bird.direction / np.linalg.norm(bird.direction) for bird in flock.agents])
        return float(np.linalg.norm(directions.mean(axis=0)))

    return mean_over(range(1, 4), of)


def cultures(features: int, traits: int, drift: float = 0, size: int = 6) -> float:
    """Return the number of cultures at the end of Axelrod's model, or after 60,000 meetings, over four seeds."""

    def of(seed: int) -> float:
        rng = random.Random(seed)
        near = {
            (row, column): [
                (r, c)
                for r, c in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1))
                if 0 <= r < size and 0 <= c < size
            ]
            for row in range(size)
            for column in range(size)
        }
        sites = list(near)
        habits = {site: [rng.randrange(traits) for _ in range(features)] for site in sites}
        for meeting in range(60_000):
            if meeting % 2_000 == 0 and not drift:
                pairs = ((habits[a], habits[b]) for a in near for b in near[a])
                if all(sum(map(int.__eq__, one, other)) in (0, features) for one, other in pairs):
                    break
            site = rng.choice(sites)
            own, other = habits[site], habits[rng.choice(near[site])]
            differing = [feature for feature in range(features) if own[feature] != other[feature]]
            if differing and rng.random() < 1 - len(differing) / features:
                feature = rng.choice(differing)
                own[feature] = other[feature]
            if rng.random() < drift:
                own[rng.randrange(features)] = rng.randrange(traits)
        village = nx.Graph((a, b) for a in near for b in near[a] if habits[a] == habits[b])
        village.add_nodes_from(near)
        return nx.number_connected_components(village)

    return mean_over(range(1, 5), of)


def taken_over(n_shared: range) -> float:
    """Return the share of recorded meetings, with so many habits in common, after which a habit was taken over."""
    calls = calls_of("culture")
    shared = calls["text"].str.extract(r"You share (\d+) of")[0].astype(int)
    return float((calls["action"] == "take_over")[shared.isin(n_shared)].mean())


def rioters(thresholds: list[int]) -> int:
    """Return how many riot in the end."""
    n = 0
    while (joined := sum(threshold <= n for threshold in thresholds)) > n:
        n = joined
    return n


@cache
def most_active(*, is_sudden: bool) -> float:
    """Return the largest number active at a time while legitimacy falls from 0.9 to 0.6, over four seeds."""

    def of(seed: int) -> float:
        fields: dict[str, Any] = {"cop_density": 0.04, "legitimacy": 0.9, "max_jail_term": 1000, "rng": seed}
        crowd = EpsteinCivilViolence(20, 20, EpsteinScenario(**fields))
        crowd.run_for(5)
        for step in range(1, 36):
            for citizen in crowd.agents_by_type[Citizen]:
                citizen.grievance = citizen.hardship * (1 - (0.6 if is_sudden else max(0.6, 0.9 - 0.01 * step)))
            crowd.step()
        return max(crowd.datacollector.model_vars["active"])

    return mean_over(range(1, 5), of)


def slow_and_sudden() -> float:
    """Return how many more are active at a time if legitimacy falls at once."""
    return most_active(is_sudden=True) - most_active(is_sudden=False)


def active_by_vision(vision: int) -> list[int]:
    """Return the number of active citizens in each of 20 steps."""
    fields: dict[str, Any] = {
        "cop_density": 0.04,
        "legitimacy": 0.82,
        "max_jail_term": 30,
        "citizen_vision": vision,
        "rng": 3,
    }
    crowd = EpsteinCivilViolence(20, 20, EpsteinScenario(**fields))
    crowd.run_for(20)
    return crowd.datacollector.model_vars["active"]


def vision_matters() -> float:
    """Return 1 if it matters how far citizens see, in Mesa's model as it is."""
    return float(active_by_vision(1) != active_by_vision(7))


@cache
def bar(seeds: range = range(1, 4), length: int = 70, **fields: Any) -> tuple[float, float, float]:
    """Return mean and standard deviation of attendance after 20 weeks, and the mean share satisfied, over seeds."""
    rows = []
    for seed in seeds:
        town = FarolModel(light=True, rng=seed, **fields)
        town.run_for(length)
        past = town.attendances[town.n_drawn + 20 :]
        rows.append((fmean(past), pstdev(past), fmean(town.datacollector.model_vars["satisfied"][21:])))
    mean, deviation, satisfied = (fmean(column) for column in zip(*rows, strict=True))
    return mean, deviation, satisfied


def goes_again(last: str) -> float:
    """Return how often recorded people go who went, or stayed, last week."""
    calls = calls_of("el_farol")
    return float((calls["action"] == "go")[calls["text"].str.contains(f"Last week you {last}")].mean())


def bullwhip(*, by_rule: bool) -> float:
    """Return the variance of the factory's orders, divided by that of the customers'."""
    chain = BeerGame(rng=1) if by_rule else recorded_run("beer").start()
    chain.run_for(12)
    return chain.results()["bullwhip"]


def retailer() -> list[int]:
    """Return what the recorded retailer ordered, from week 1 on; before it stands a 0 for week 0."""
    actions = recorded_run("beer").replay().runlog.actions()
    return [0, *(json.loads(text)["cases"] for text in actions[actions["agent"] == 1]["arguments"])]


@cache
def camps(epsilon: float, length: int = 15, llm: str = "rule") -> float:
    """Return the number of camps of thirty people, over six seeds."""

    def of(seed: int) -> float:
        people = OpinionModel(epsilon=epsilon, n_agents=30, llm=llm, light=True, rng=seed)
        people.run_for(length)
        return people.clusters

    return mean_over(range(1, 7), of)


def agrees(threshold: int) -> float:
    """Return in how many recorded decisions one goes out exactly if fewer than so many contacts are ill."""
    calls = calls_of("epidemic")
    contacts = calls["text"].str.extract(r"when you go out, (\d+)")[0].astype(int)
    return float(((calls["action"] == "go_out") == (contacts < threshold)).sum())


def cooperation(run: str) -> float:
    """Return the recorded guest's share of cooperation, as a mean over opponents."""
    actions = recorded_run(f"prisoners_dilemma/{run}").replay().runlog.actions()
    return float(actions["arguments"].str.contains("cooperate").groupby(actions["label"]).mean().mean())


SENTENCES = [
    Sentence(1, "The block survives in both", partial(kept_in_turn, ["##", "##"]), 1, 0),
    Sentence(1, "the blinker falls apart", partial(kept_in_turn, ["###"]), 0, 0.2),
    Sentence(1, "instead of dying down, fills the grid", soup_gap, 0.28, 0.12),
    Sentence(2, "lies far above the third that anybody asked for", lambda: town_of(0.3)[0], 0.76, 0.06),
    Sentence(2, "nearly as mixed as chance makes it", lambda: town_of(0.1)[0], 0.54, 0.05),
    Sentence(2, "mixed again: everybody moves, nothing settles", lambda: town_of(0.9)[0], 0.51, 0.04),
    Sentence(2, "hardly anybody is ever content", lambda: town_of(0.9)[1], 0.04, 0.06),
    Sentence(2, "A town in which everybody moves is mixed whatever people want", moves_by_likeness, -0.01, 0.01),
    Sentence(3, "The *decisions* differ clearly", lambda: share_given("generous") - share_given("greedy"), 0.56, 0.01),
    Sentence(3, "from twenty each it takes many more than 150 steps", partial(twenty_coins, 150), 0.37, 0.03),
    Sentence(3, "until chance has done its work", partial(twenty_coins, 2_000), 0.5, 0.04),
    Sentence(3, "everybody gives exactly once a step", partial(room, "in turn"), 0.618, 0.015),
    Sentence(4, "within a few dozen steps there are no sheep", all_dead, 1, 0),
    Sentence(4, "if a meal lasts three steps only, wolves die as soon as", both_live, 1, 0.34),
    Sentence(4, "nobody is left after 150 steps", partial(both_live, wolf_gain=20.0), 0, 0.34),
    Sentence(4, "an even meadow is two worlds that never meet", partial(both_live, size=20), 0, 0.34),
    Sentence(4, "The mixed order ends sooner than Mesa's", mixed_gap, -20, 14),
    Sentence(4, "Better eyes help wolves more than sheep", blind_wolves, 0.6, 0.4),
    Sentence(4, "Sheep go to grass clearly more often", to_grass, 0.284, 0.01),
    Sentence(5, "1.5, 0.80 for 2, 0.94 for 3", lambda: final_size(2), 0.797, 0.001),
    Sentence(5, "they agree within the intervals", lambda: ever_ill(2) - final_size(2), 0, 0.02),
    Sentence(5, "falls to about a half when one tie in a hundred", lambda: half_time(0.01) / half_time(0), 0.5, 0.15),
    Sentence(5, "and to a third with one in ten", lambda: half_time(0.1) / half_time(0), 0.3, 0.1),
    Sentence(5, "It follows the path length", clustering_kept, 0.97, 0.03),
    Sentence(5, "on the network with hubs", lambda: ill_in("hubs", 0.03) - ill_in("random", 0.03), 0.12, 0.06),
    Sentence(
        5, "far above them it makes no difference", lambda: ill_in("hubs", 0.06) - ill_in("random", 0.06), 0.02, 0.05
    ),
    Sentence(5, "In a world where staying at home helps", lambda: ill_on_average(0.5) - ill_on_average(0), -0.28, 0.09),
    Sentence(5, "never where there was a reason", partial(at_home, with_ill_contact=True), 0, 0),
    Sentence(5, "It stays at home in a few decisions", partial(at_home, with_ill_contact=False), 5, 0),
    Sentence(6, "Only *alignment* is needed for order", lambda: order_of_flock(match=0.0), 0.12, 0.06),
    Sentence(
        6, "without *cohesion* there is more order", lambda: order_of_flock(cohere=0.0) - order_of_flock(), 0.13, 0.08
    ),
    Sentence(6, "More *traits* lead to more cultures", lambda: cultures(5, 15) - cultures(5, 5), 6.2, 4),
    Sentence(6, "More *features* lead to fewer cultures", lambda: cultures(10, 15) - cultures(5, 15), -4.2, 3.5),
    Sentence(6, "*With nothing in common* it nearly always keeps", partial(taken_over, range(1)), 1 / 6, 0.01),
    Sentence(6, "*With anything in common*", partial(taken_over, range(1, 5)), 0.986, 0.01),
    Sentence(7, "The window is broken, and nobody moves", lambda: rioters([*range(1), 2, *range(2, 100)]), 1, 0),
    Sentence(7, "and so on to a hundred", lambda: rioters(list(range(100))), 100, 0),
    Sentence(7, "great outbursts in the first case", slow_and_sudden, 88, 60),
    Sentence(7, "`citizen_vision` is read nowhere", vision_matters, 0, 0),
    Sentence(7, "its *mean* comes out close to sixty", lambda: bar()[0], 58.8, 2),
    Sentence(7, "the standard deviation is more than twenty people", lambda: bar()[1], 23, 2.5),
    Sentence(7, "the swings shrink to", lambda: bar(pool="linear", weeks=5, predictors=5)[1], 3.1, 3),
    Sentence(7, "three in ten against one half", lambda: bar()[2], 0.3, 0.04),
    Sentence(7, "the more they move together", lambda: bar(predictors=12)[1] - bar(predictors=2)[1], 12.4, 6),
    Sentence(7, "the bar is empty or full, and *nobody* is ever right", lambda: bar(predictors=30, length=60)[2], 0, 0),
    Sentence(7, "they are creatures of habit", lambda: goes_again("went") - goes_again("stayed"), 0.547, 0.01),
    Sentence(8, "the mean difference is 0.53", by_person, 0.525, 0.001),
    Sentence(8, "She stands first in every list, and wins", first_of_list, 0.5, 0.001),
    Sentence(9, "the variance of the factory's orders is 5.07 times", partial(bullwhip, by_rule=False), 5.07, 0.01),
    Sentence(9, "0.21 times among the rule twins", partial(bullwhip, by_rule=True), 0.21, 0.01),
    Sentence(9, "a number that none of its eight lines held", lambda: retailer()[10] in retailer()[2:10], False, 0),
    Sentence(10, "| all give once a step, together |", partial(room, "together"), 0.572, 0.015),
    Sentence(10, "**the cause is that everybody gives exactly once a step.**", partial(room, "drawn"), 0.661, 0.015),
    Sentence(10, "which gives chance a part of its say back", partial(room, "in turn", 0.37), 0.651, 0.015),
    Sentence(10, "together, but alone in 37 % of the steps", partial(room, "together", 0.37), 0.619, 0.015),
    Sentence(11, "camps more at a bound of 0.1 than at 0.4", lambda: camps(0.1) - camps(0.4), 4.33, 1.2),
    Sentence(11, "after 45 in fewer than three", lambda: camps(0.2, length=45), 2.5, 0.6),
    Sentence(11, "1.25 camps at both ends", lambda: camps(0.1, llm="random") - camps(0.4, llm="random"), 0, 0.001),
    Sentence(11, "With *n* = 2 it agrees with the language model in 45", partial(agrees, 2), 45, 0),
    Sentence(11, 'the rule "always go out" also agrees in 55', partial(agrees, 99), 55, 0),
    Sentence(12, "Kind less ruthless is 0.35", lambda: cooperation("kind") - cooperation("ruthless"), 0.354, 0.001),
]
"""Words of the course about causes, the runs that could refute them, and what these give."""


def of_week(week: int) -> str:
    """Return all text of a week, with single spaces."""
    (folder,) = COURSE.glob(f"{week:02}_*")
    cells = json.loads((folder / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return " ".join(" ".join([(folder / "README.md").read_text(encoding="utf-8"), *texts]).split())


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda sentence: f"{sentence.week}: {sentence.words}")
def test_a_sentence_of_the_course_about_a_cause_holds_in_a_run(sentence) -> None:
    assert sentence.words in of_week(sentence.week)
    assert sentence.run() == pytest.approx(sentence.expected, abs=sentence.tolerance)


def test_every_week_has_a_sentence_that_is_tested() -> None:
    assert {sentence.week for sentence in SENTENCES} == {*range(1, 13)}
