"""What a person in a classic's place would know and need stands in the prompt, and is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from mesa_llm import AgentDesign, LLMModel, ScriptedLLM
from mesa_llm.engine.presentation import Presentation
from mesa_llm.llm.replies import call
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel
from mesa_llm_models.classics.culture.model import CultureModel
from mesa_llm_models.classics.culture.text import habit_name, trait_name
from mesa_llm_models.classics.el_farol.model import FarolModel
from mesa_llm_models.classics.el_farol.text import Past
from mesa_llm_models.classics.el_farol.text import observation_text as farol_text
from mesa_llm_models.classics.epidemic.model import EpidemicModel
from mesa_llm_models.classics.epidemic.text import EpidemicView
from mesa_llm_models.classics.epidemic.text import observation_text as epidemic_text
from mesa_llm_models.classics.opinion.model import OpinionModel
from mesa_llm_models.classics.opinion.text import Meeting
from mesa_llm_models.classics.opinion.text import observation_text as opinion_text
from mesa_llm_models.classics.prisoners_dilemma.game import POINTS
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from mesa_llm_models.classics.prisoners_dilemma.text import Games
from mesa_llm_models.classics.prisoners_dilemma.text import observation_text as dilemma_text
from mesa_llm_models.classics.schelling.model import SchellingModel
from mesa_llm_models.classics.schelling.text import Neighbourhood
from mesa_llm_models.classics.schelling.text import observation_text as schelling_text
from mesa_llm_models.classics.sugarscape.model import SugarModel
from mesa_llm_models.classics.wolf_sheep.model import MeadowModel, Wolf

Facts = Iterator[tuple[str, str]]
"""Name of a fact, and the text that must stand in the prompt."""


def of_resident(one: Any) -> Facts:
    near = one.neighbours
    n_alike = sum(other.colour == one.colour for other in near)
    town = one.model
    yield "own colour", f"You are {one.colour}."
    yield "neighbours", f"{len(near)} neighbour" if near else "Nobody lives near you"
    if near:
        yield "those of one's colour", f"{n_alike or 'none'} {one.colour} like you"
        yield "their share", f"{100 * n_alike / len(near):.0f}% are like you"
        yield "share wanted", "You want 40 % or more"
    yield "contentment", "you are content here" if one.is_happy else "you are not content here"
    n_empty = town.scenario.size**2 - len(town.agents)
    yield "empty homes", f"{n_empty} homes are empty" if n_empty > 1 else "1 home is empty"
    yield "what a move means", "you get an empty home by lot"


def of_walker(one: Any) -> Facts:
    yield "own coins", f"You have {one.wealth or 'no'} coin"
    if one.met is None:
        yield "nobody", "You meet nobody."
        return
    others = [other for other in one.cell.agents if other not in (one, one.met)]
    yield "who is met", f"You meet {one.met.config.name}, who has {one.met.wealth or 'no'} coin"
    if others:
        together = sum(other.wealth for other in others)
        yield "others there", f"{len(others)} other "
        yield "their coins", f"have {together or 'no'} coin" if len(others) > 1 else f"has {together or 'no'} coin"
    if not one.wealth:
        yield "nothing to give", "you have nothing to give"


def of_patron(one: Any) -> Facts:
    bar = one.model
    past = bar.attendances[-bar.scenario.weeks :]
    n_crowded = sum(came >= bar.crowded for came in past)
    yield "attendances", f"the latest last: {', '.join(map(str, past))}."
    yield "capacity", f"It is crowded if {bar.crowded} or more of the {bar.scenario.n_agents} people come"
    yield "crowded weeks", f"as in {'all' if n_crowded == len(past) else n_crowded or 'none'} of these weeks"
    if one.went is None:
        return
    is_good = past[-1] < bar.crowded
    yield "own choice", "Last week you went" if one.went else "Last week you stayed at home"
    enjoyed = {True: "it was a good evening", False: "it was crowded"}
    missed = {True: "missed a good evening", False: "missed nothing"}
    yield "how it was", (enjoyed if one.went else missed)[is_good]


def of_person(one: Any) -> Facts:
    n_ill = sum(other.health == "infected" for other in one.contacts)
    n = len(one.contacts)
    yield (
        "own health",
        {"susceptible": "can catch", "infected": "can pass the virus on", "resistant": "immune"}[one.health],
    )
    if one.health == "susceptible":
        yield "whether one has been ill", "have had the virus" if one.has_been_ill else "You can catch the virus"
    yield "contacts", f"Of the {n} people" if n > 1 else "You meet one person" if n else "You meet nobody"
    if n > 1:
        yield "those who are ill", {0: "none is ill", 1: "1 is ill"}.get(n_ill, f"{n_ill} are ill")
    if one.health == "susceptible" and n_ill:
        yield "risk", f"with a chance of {100 * (1 - 0.6**n_ill):.0f} %"
    if one.health == "infected" and n_ill < n:
        yield "risk for others", "catches it from you with a chance of 40 %"


def of_citizen(one: Any) -> Facts:
    own = round(100 * one.opinion)
    yield "own opinion", f"Your opinion is {own}, on the scale from 0 (nothing) to 100 (everything)"
    if one.opposite is not None:
        theirs = round(100 * one.opposite)
        yield "whom one meets", f"whose opinion is {theirs}."
        if own != theirs:
            yield "difference", f"That is {abs(own - theirs)} {'higher' if theirs > own else 'lower'} than yours"
            yield "what a compromise makes", f"becomes about {round(100 * (one.opinion + one.opposite) / 2)};"


def of_villager(one: Any) -> Facts:
    yield "neighbour", f"You meet {one.met_name}, who lives next door"
    for feature, (own, theirs) in enumerate(zip(one.habits, one.met, strict=True)):
        texts = trait_name(feature, own), trait_name(feature, theirs)
        same, other = f"{texts[0]} for both of you", f"yours is {texts[0]}, theirs is {texts[1]}"
        yield habit_name(feature), f"- {habit_name(feature)}: {same if own == theirs else other}"
    n_shared = sum(map(int.__eq__, one.habits, one.met))
    yield "habits in common", f"You share {n_shared} of 5 habits"


def of_trader(one: Any) -> Facts:
    yield "stocks", f"You have {one.sugar} sugar and {one.spice} spice"
    yield "needs", f"use up {one.sugar_need} sugar and {one.spice_need} spice"
    for name, stock, need in (("sugar", one.sugar, one.sugar_need), ("spice", one.spice, one.spice_need)):
        n_steps = next(n for n in range(1, 999) if stock - n * need <= 0)
        yield f"how long {name} lasts", f"{name} in {'this step' if n_steps == 1 else f'{n_steps} steps'}"
    for name, cell in one.places.items():
        yield name, f"- {name}: {cell.sugar} sugar, {cell.spice} spice"


def of_animal(one: Any) -> Facts:
    kind = "wolf" if isinstance(one, Wolf) else "sheep"
    yield "kind", f"You are a {kind}."
    yield "energy", f"live {int(one.energy)} step" if one.energy >= 1 else "You starve in this step unless you eat"
    yield "hunger", "you are hungry" if int(one.energy) < one.gain else "you are not hungry"
    yield "a meal", f"gives you {one.gain:g} more"
    for cell in one.cell.neighborhood:
        n_sheep = sum(not isinstance(other, Wolf) for other in cell.agents)
        n_wolves = sum(isinstance(other, Wolf) for other in cell.agents)
        wolves = "wolf" if n_wolves == 1 else "wolves"
        place = "{},{}".format(*cell.coordinate)
        grass = "no grass (again in" if cell.regrowth else "grass"
        yield place, f"- {place}: {n_sheep or 'no'} sheep, {n_wolves or 'no'} {wolves}, {grass}"


WORLDS: dict[str, tuple[type[LLMModel], dict[str, Any], Callable[[Any], Facts]]] = {
    "schelling": (SchellingModel, {"size": 6}, of_resident),
    "boltzmann_wealth": (WealthModel, {"n_agents": 12, "size": 3}, of_walker),
    "el_farol": (FarolModel, {"n_agents": 12, "weeks": 5}, of_patron),
    "epidemic": (EpidemicModel, {"n_agents": 14}, of_person),
    "opinion": (OpinionModel, {"n_agents": 11}, of_citizen),
    "culture": (CultureModel, {"size": 3, "traits": 3, "meetings": "at once"}, of_villager),
    "sugarscape": (SugarModel, {"n_agents": 8, "size": 8, "vision": 2, "poorest": 8}, of_trader),
    "wolf_sheep": (MeadowModel, {"size": 5, "n_sheep": 9, "n_wolves": 3}, of_animal),
}
"""Model → its class, a small world, and what one of its agents would know."""

WRONG = re.compile(
    r"\b1 (?!is\b)\w+s\b(?! like)|\b0 (?:people|persons?|coins?|steps?|weeks|neighbours?|sheep)\b|\ba 0\b|  "
)
"""What no person would say: "1 people", "0 people"."""


def prompts_of(kind: type[LLMModel], **options: Any) -> list[tuple[str, str]]:
    """Return what the agents of a model read, first what all read, over some steps of choices by chance."""
    found: list[tuple[str, str]] = []

    def reply(request: Any) -> Any:
        by_role = {message.role: message.content for message in request.messages}
        found.append((by_role["system"], by_role["user"]))
        return "cooperate" if not request.tools else chosen(request)

    model = kind(llm=ScriptedLLM(reply), **options)
    model.run(4)
    assert model.usage.failures == 0
    return found


def chosen(request: Any) -> Any:
    names = sorted(tool.name for tool in request.tools)
    tool = names[request.salt.seed % len(names)]
    needs = next(one for one in request.tools if one.name == tool).parameters["properties"]
    return call(tool, **{name: values[-1] for name, values in request.options.items() if name in needs})


@pytest.mark.parametrize("rng", [1, 2])
@pytest.mark.parametrize("name", WORLDS)
def test_an_observation_has_what_its_agent_would_know_and_has_it_right(name: str, rng: int) -> None:
    kind, parameters, facts_of = WORLDS[name]
    model = kind(llm="random", rng=rng, **parameters)
    for _ in range(4):
        model.step()
        for agent in model.agents:
            text = agent.observe().text
            missing = {fact: said for fact, said in facts_of(agent) if said not in text}
            assert not missing, text
            assert not WRONG.search(text), text


def test_a_player_reads_the_payoffs_the_history_and_what_it_was_worth() -> None:
    rounds = [("cooperate", "defect"), ("defect", "cooperate"), ("defect", "defect"), ("forfeit", "cooperate")]
    own, theirs = zip(*rounds, strict=True)
    text = dilemma_text(Games("player 3", own, theirs, 9, 10))
    assert "This is round 5 of 9." in text
    assert "So far you have 6 points from these rounds, and player 3 has 9." in text
    for number, (mine, yours) in enumerate(rounds[:3], start=1):
        points = POINTS[mine, yours], POINTS[yours, mine]
        noun = "point" if points[0] == 1 else "points"
        line = f"you chose to {mine}, player 3 chose to {yours}: {points[0]} {noun} for you, {points[1]} for player 3."
        assert f"Round {number}: {line}" in text
    assert "Round 4: you made no move, player 3 chose to cooperate: 0 points for you, 3 for player 3." in text
    long = dilemma_text(Games("player 3", ("cooperate",) * 12, ("defect",) * 12, None, 10))
    assert "In rounds 1 to 2 you cooperated twice, and player 3 never." in long
    (system, _), *_ = prompts_of(DilemmaModel, rounds=2, rng=1)
    for said in (
        "both cooperate: 3",
        "both defect: 1",
        "5 points for the one who defects",
        "which round will be the last",
    ):
        assert said in system


@pytest.mark.parametrize("health", ["susceptible", "infected", "resistant"])
@pytest.mark.parametrize(("n_contacts", "n_ill"), [(0, 0), (1, 0), (1, 1), (2, 1), (3, 0), (3, 2), (3, 3)])
def test_nobody_is_told_of_one_people_or_of_none_who_are_ill(health: str, n_contacts: int, n_ill: int) -> None:
    text = epidemic_text(EpidemicView(health, 1, False, n_contacts, n_ill, 0.4))
    assert not WRONG.search(text), text
    assert ("You meet nobody" in text) is (n_contacts == 0)


def test_numbers_of_a_meeting_agree_after_rounding() -> None:
    for own, theirs in product([0.0, 0.245, 0.255, 0.5049, 0.7551, 0.756, 1.0], repeat=2):
        text = opinion_text(own, Meeting(theirs, "Ann", outcome=(own + theirs) / 2))
        numbers = re.search(r"is (\d+), .* whose opinion is (\d+)\. That is (\d+) .*about (\d+);", text)
        if numbers is None:
            assert "hardly a difference" in text
            continue
        first, second, distance, outcome = map(int, numbers.groups())
        assert distance == abs(first - second)
        assert abs(outcome - (first + second) / 2) <= 1


@pytest.mark.parametrize(
    ("seen", "wish", "said"),
    [
        (("blue", 0, 0, 3), 0.4, "Nobody lives near you, so you are not content here."),
        (("blue", 0, 0, 3), 0.0, "you are content here"),
        (("blue", 1, 0, 1), 0.4, "You have 1 neighbour: 1 blue like you, and none orange, so 100% are like you."),
        (("blue", 1, 2, 1), 1 / 3, "at least 1 of 3 here: you are content here"),
        (("blue", 1, 2, 0), 0.4, "No home is empty, so nobody can move now."),
    ],
)
def test_residents_read_why_they_are_content_also_at_the_edges(seen: Any, wish: float, said: str) -> None:
    assert said in schelling_text(Neighbourhood(*seen), wish)
    assert "content" not in schelling_text(Neighbourhood(*seen), None)


@pytest.mark.parametrize(
    ("past", "said"),
    [
        (Past([3], 2, 3, [True]), "Last week you went, with 2 others, and it was crowded"),
        (Past([1], 2, 3, [True]), "Last week you went, with nobody else, and it was a good evening."),
        (Past([1], 2, 3, [False]), "missed a good evening: only 1 person came."),
        (Past([0], 2, 3, [False]), "missed a good evening: nobody came."),
        (Past([1, 0], 2, 3, [True, False]), "In the last 2 weeks you went once."),
    ],
)
def test_people_read_whether_last_week_was_good(past: Past, said: str) -> None:
    assert said in farol_text(past)


@pytest.mark.parametrize("name", WORLDS)
def test_memories_are_sentences_of_a_life(name: str) -> None:
    kind, small, _ = WORLDS[name]
    memories = "\n".join(
        user.partition("What you remember:\n")[2].partition("\n\n")[0]
        for _, user in prompts_of(kind, rng=1, memory="window:4", **small)
    )
    assert re.search(r"^In (step|week) 1 you \w+ ", memories, re.MULTILINE)
    assert not re.search(r"\w\(|result|: (You|Done)", memories), memories


# -- people


ALL = {**{name: (kind, small) for name, (kind, small, _) in WORLDS.items()}, "dilemma": (DilemmaModel, {"guests": 3})}


@pytest.mark.parametrize("name", ALL)
def test_agents_are_people_or_alike_and_their_rules_and_chance_are_the_same(name: str) -> None:
    kind, small = ALL[name]
    for llm in ("rule", "random"):
        arms = [kind(llm=llm, rng=3, people=people, **small) for people in ("drawn", "alike")]
        for model in arms:
            model.run(4)
        drawn, alike = (model.datacollector.get_model_vars_dataframe().drop(columns="seconds") for model in arms)
        assert drawn.equals(alike)


@pytest.mark.parametrize("name", ALL)
def test_prompts_say_who_one_is_and_another_seed_draws_other_people(name: str) -> None:
    kind, small = ALL[name]
    personas = [
        {agent.config.persona for agent in kind(rng=rng, **small).agents if getattr(agent, "config", None)}
        for rng in (1, 1, 2)
    ]
    assert personas[0] == personas[1] != personas[2]
    assert len(personas[0]) > 2
    assert {
        agent.config.persona for agent in kind(rng=1, people="alike", **small).agents if hasattr(agent, "config")
    } <= {""}
    prompts = prompts_of(kind, rng=1, **small)
    assert all(any(persona in user for persona in personas[0]) or name == "wolf_sheep" for _, user in prompts)
    without = prompts_of(kind, rng=1, design=AgentDesign(persona="none"), **small)
    assert not any(persona in user for persona in personas[0] for _, user in without)


@pytest.mark.parametrize("name", ["el_farol", "epidemic", "schelling"])
def test_people_are_asked_different_questions(name: str) -> None:
    kind, small = ALL[name]
    drawn, alike = (
        len(set(prompts_of(kind, rng=1, people=people, memory="none", **small))) for people in ("drawn", "alike")
    )
    assert drawn > 1.5 * alike


@pytest.mark.parametrize("name", ALL)
def test_prompts_keep_their_facts_in_other_forms(name: str) -> None:
    kind, small = ALL[name]
    form = AgentDesign(presentation=Presentation(observation_form="table", persona_form="table", names="exchanged"))
    assert prompts_of(kind, rng=1, design=form, **small)
