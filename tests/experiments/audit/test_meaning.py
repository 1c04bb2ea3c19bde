"""Whatever an audit changes in how things are put, the same is said: in all models, in all that their agents read.

What is compared are words: that none is lost or added where only form, order or place change; and that all numbers,
names, quotations, variables and conditions are kept where a text is said in other words. Whether sentences still mean
the same is for a reader to judge.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, nodes

from mesa_llm import AgentConfig, AgentDesign, Request
from mesa_llm.engine.activation import llm_agents
from mesa_llm.engine.presentation import (
    Presentation,
    first_person,
    observation_text,
    persona_text,
    presented,
    sentences,
)
from mesa_llm.engine.reading.aliases import Aliases
from mesa_llm.experiments.audits.dimensions import DIMENSIONS, Setting, plan_for
from mesa_llm.experiments.audits.wording import facts_in, facts_lost
from mesa_llm.experiments.runs.listening import ListeningAccess
from mesa_llm.model.scenario import parameters_of
from mesa_llm.population import from_distributions
from mesa_llm.population.columns import residents
from mesa_llm.prompts import LIBRARY, LIBRARY_PROMPTS, WORDINGS, templates_in, wordings_of
from mesa_llm.registry import find_models
from mesa_llm_models.shachi.two_worlds import TwoWorldsModel

ROOT = Path(__file__).parents[3]
MODELS: dict[str, Any] = {entry.name: entry for entry in find_models()}
REWORDED = ("shorter", "formal")

SMALL: dict[str, dict[str, Any]] = {
    "auction_arena": {"n_lots": 2},
    "cognitive_biases": {"n_tests": 1, "biases": ["Anchoring", "FramingEffect"]},
    "culture": {"size": 3},
    "el_farol": {"n_agents": 6},
    "compost": {"n_topics": 1, "texts_per_round": 1},
    "emotionbench": {"n_situations": 1, "n_defaults": 1, "emotions": ["Anger"]},
    "emergent_analogies": {"n_per_type": 1},
    "oasis": {"n_agents": 6},
    "schelling": {"size": 4},
}
"""Parameters that make the runs of a model short."""

OTHERS: dict[str, list[dict[str, Any]]] = {
    "auction_arena": [{"fidelity": "original", "n_lots": 2, "learning": True, "n_auctions": 2}],
    "beer": [{"shares_stock": True, "may_talk": True}],
    "boltzmann_wealth": [{"n_agents": 4, "coins": 3}],
    "cognitive_biases": [{"answers": "two_step"}],
    "commons": [{"meeting": False, "growth": 1.5}],
    "compost": [{"context": context, "rules": rules} for context in ("interview", "post") for rules in ("corrected",)]
    + [{"context": context, "rules": "original"} for context in ("forum", "interview", "post")],
    "culture": [{"size": 3, "meetings": "at once", "features": 6}],
    "discussion": [{"config": "trolley"}],
    "econ_agent": [{"n_agents": 4, "fidelity": "original"}, {"n_agents": 4, "tax": "none", "reflect_every": 1}],
    "economy": [{"government": False}],
    "el_farol": [{"n_agents": 6, "threshold": 0.5}],
    "emergent_analogies": [
        {"answers": "choice"},
        {"task": "letters"},
        {"task": "letters", "form": "sentence"},
        {"task": "stories"},
        {"task": "verbal"},
    ],
    "emotionbench": [{"n_defaults": 2}],
    "epidemic": [{"n_agents": 6, "spread": 0.7}],
    "hidden_roles": [{"n_wolves": 1}],
    "market": [{"n_questions": 2}],
    "oasis": [{"preset": "reddit"}],
    "opinion": [{"meetings": "everyone", "topic": "tea"}],
    "prisoners_dilemma": [{"announces_end": True, "noise": 0.2}],
    "psychobench": [{"history": False}],
    "schelling": [{"states_wish": False, "radius": 2}],
    "social": [{"may_pass": False, "preset": "reddit"}],
    "sotopia": [{"mode": "script"}, {"mode": "script by moves"}, {"shows": "last turn", "omniscient": True}],
    "stock_agent": [{"fidelity": "original"}],
    "sugarscape": [{"trades": False}],
    "three_worlds": [{"visits": "together", "seed_text": ""}],
    "town": [{"n_agents": 3, "sociability": 1.0}],
    "two_worlds": [{"n_agents": 4}],
    "wolf_sheep": [{"size": 5, "regrowth": 4}],
}
"""Other scenarios of each model, in which its agents read the other parts of their instructions."""


def kind_of(name: str) -> Any:
    return TwoWorldsModel if name == "two_worlds" else MODELS[name].load()


def heard(name: str, parameters: Mapping[str, Any], presentation: Presentation, steps: int) -> list[Request]:
    """Run a model with random choices, and return what its agents' language models would have read."""
    access, design = ListeningAccess(), AgentDesign(presentation=presentation)
    arguments = {**SMALL.get(name, {}), **parameters}
    with closing(access), closing(kind_of(name)(**arguments, llm="random", rng=1, access=access, design=design)) as run:
        run.run(steps)
    return access.listener.requests


@cache
def own_requests(name: str, index: int = -1, steps: int = 3) -> tuple[Request, ...]:
    """Return what is read without any change; `index` is that of one of the other scenarios."""
    return tuple(heard(name, OTHERS[name][index] if index >= 0 else {}, Presentation(), steps))


@cache
def texts() -> tuple[str, ...]:
    """Return what agents of all models see, with their memories, their personas and what they are asked."""
    requests = (request for name in MODELS for request in own_requests(name))
    return tuple(dict.fromkeys(m.content for request in requests for m in request.messages if m.role == "user"))


@cache
def personas() -> tuple[AgentConfig, ...]:
    """Return who agents of all models are, and people of the library's populations."""
    found = [person.config() for person in residents()]
    found += [person.config() for kind in ("x", "reddit") for person in from_distributions(40, 1, kind)]
    for name in MODELS:
        with closing(kind_of(name)(llm="rule", rng=1, **SMALL.get(name, {}))) as model:
            found += [agent.config for agent in llm_agents(model)]
    return tuple({config.text: config for config in found if config.text}.values())


# -- rewordings


def variants() -> list[Path]:
    """Return all files of rewordings of this project."""
    folders = (ROOT / "mesa_llm", ROOT / "models")
    return sorted(path for folder in folders for path in folder.rglob(f"prompts/{WORDINGS}/*/*.md"))


def original_of(variant: Path) -> Path:
    return variant.parents[2] / variant.name


def logic_of(template: Path) -> list[set[str]]:
    """Return the variables, conditions, loops and filters of a template."""
    tree = Environment().parse(template.read_text(encoding="utf-8"))
    conditions = [*tree.find_all(nodes.If), *tree.find_all(nodes.CondExpr)]
    kinds = (nodes.Name, nodes.Getattr, nodes.Getitem)
    return [
        {repr(condition.test) for condition in conditions},
        {repr(node) for kind in kinds for node in tree.find_all(kind)},
        {repr(loop.iter) for loop in tree.find_all(nodes.For)},
        {f"{one.name}{one.args}" for one in tree.find_all(nodes.Filter)},
    ]


@pytest.mark.parametrize("name", [*MODELS, "two_worlds"])
def test_every_model_has_two_rewordings_of_what_its_agents_read(name: str) -> None:
    kind = kind_of(name)
    assert set(REWORDED) <= set(wordings_of(kind))
    own = {path.name for path in variants() if path.parents[2] != LIBRARY and path.parent.name == "shorter"}
    assert all(templates_in(kind, wording) & own for wording in REWORDED)
    assert templates_in(kind, "shorter") == templates_in(kind, "formal")


@pytest.mark.parametrize("variant", variants(), ids=lambda path: str(path.relative_to(ROOT)))
def test_rewording_keeps_variables_conditions_and_loops(variant: Path) -> None:
    original = original_of(variant)
    assert logic_of(variant) == logic_of(original)
    before, after = original.read_text(encoding="utf-8"), variant.read_text(encoding="utf-8")
    assert before.split() != after.split()
    assert set(facts_in(after)["numbers"]) == set(facts_in(before)["numbers"])
    if variant.parent.name in REWORDED:
        assert (len(after) < len(before)) == (variant.parent.name == "shorter")


@pytest.mark.parametrize("name", [*MODELS, "two_worlds"])
@pytest.mark.parametrize("wording", REWORDED)
def test_agents_who_read_a_rewording_read_the_same_facts(name: str, wording: str) -> None:
    n_others = 0
    for index in range(-1, len(OTHERS[name])):
        parameters = OTHERS[name][index] if index >= 0 else {}
        other = heard(name, parameters, Presentation(wording=wording), 3)
        for before, after in zip(own_requests(name, index), other, strict=True):
            for message, reworded in zip(before.messages, after.messages, strict=True):
                assert facts_lost(message.content, reworded.content) == []
                n_others += message.content != reworded.content
    assert n_others > 0


# -- what is seen


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of a text without the dashes of lists."""
    for line in text.splitlines():
        yield re.sub(r"^\s*[-*•]\s+", "", line)


def of_json(value: Any) -> Iterator[str]:
    """Yield the texts of JSON, in order, but not the names that say only what belongs together."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from of_json(one)
    else:
        for name, one in value.items():
            yield from () if name in ("seen", "below") else (name,)
            yield from of_json(one)


def of_table(text: str) -> Iterator[str]:
    """Yield the cells of a table of two columns, in order, but not those that say nothing."""
    for row in text.splitlines()[2:]:
        cells = re.split(r"(?<!\\)\|", row)[1:-1]
        assert len(cells) == 2
        name = cells[0].replace("↳", "").strip()
        yield from (cell.replace("\\|", "|") for cell in ("" if name == "seen" else name, cells[1]))


READ = {"list": lines_of, "spaced": lines_of, "json": lambda text: of_json(json.loads(text)), "table": of_table}


def words(parts: Iterable[str]) -> list[str]:
    """Return the words of texts, with all signs but the colon, which forms put in other ways."""
    return " ".join(parts).replace(":", " ").split()


@pytest.mark.parametrize("form", READ)
def test_what_is_seen_in_another_form_has_the_same_words_in_the_same_order(form: Any) -> None:
    assert len(texts()) > 500
    for text in texts():
        assert words(READ[form](observation_text(text, form, "own", "own"))) == words(lines_of(text))


@pytest.mark.parametrize("orders", [("reversed", "own"), ("own", "reversed"), ("reversed", "reversed")])
def test_what_is_seen_in_another_order_has_the_same_lines(orders: Any) -> None:
    others = [(text, observation_text(text, "own", *orders)) for text in texts()]
    for text, other in others:
        assert Counter(filter(str.strip, text.splitlines())) == Counter(filter(str.strip, other.splitlines()))
    assert sum(text != other for text, other in others) > 50


def test_a_heading_keeps_its_list_and_a_post_its_replies() -> None:
    text = "You are here.\nPosts:\n- Post 1: “a | b”\n  - Reply 2: “c”\n- Post 3: “d”\nIt is late."
    seen = json.loads(observation_text(text, "json", "own", "own"))
    post = {"Post 1": "“a | b”", "below": [{"Reply 2": "“c”"}]}
    assert seen == [{"seen": "You are here."}, {"Posts": [post, {"Post 3": "“d”"}]}, {"seen": "It is late."}]
    assert "| ↳ Post 1 | “a \\| b” |\n| ↳ ↳ Reply 2 | “c” |" in observation_text(text, "table", "own", "own")
    other = "It is late.\nPosts:\n- Post 3: “d”\n- Post 1: “a | b”\n  - Reply 2: “c”\nYou are here."
    assert observation_text(text, "own", "reversed", "reversed") == other


@pytest.mark.parametrize(
    "text", ["[9 2] [1 3]\n[3 4] [", "They said:\nAda: “a”\nBo: “b”\nYour turn.", "I am Bo.\nMy answer:"]
)
def test_lines_that_only_make_sense_in_their_order_keep_it(text: str) -> None:
    assert observation_text(text, "own", "reversed", "own") == text


# -- personas

PRONOUNS = {"you", "your", "yours", "yourself", "i", "me", "my", "mine", "myself"}
FORMS = {"am", "are", "was", "were"}
LABELS = {
    "own": ["your name is", "how you write"],
    "sentence": ["persona", "writing style"],
    "description": ["this is a description of you", "your writing style"],
    "first_person": ["i say of myself", "my writing style"],
    "table": ["persona", "writing style"],
}
"""Form → words that it adds to say what is what, besides “name”."""


def facts_about(config: AgentConfig, form: Any) -> Counter[str]:
    """Return the words that are said about an agent, without those that a form adds or bends."""
    text = persona_text(config, form, LIBRARY_PROMPTS).lower()
    if form == "table":
        text = " ".join(re.split(r"(?<!\\)\|", text)[7:])
    for label in LABELS[form]:
        text = re.sub(rf"\b{label}\b", " ", text)
    own = re.findall(r"[^\W_]+", text)
    return Counter(word for word in own if word not in PRONOUNS | FORMS | {"name", "m"})


@pytest.mark.parametrize("form", ["sentence", "description", "first_person", "table"])
def test_who_an_agent_is_in_another_form_has_the_same_words(form: Any) -> None:
    assert len(personas()) > 150
    for config in personas():
        assert facts_about(config, form) == facts_about(config, "own")


def test_nobody_who_speaks_of_themselves_says_you_or_errs_in_grammar() -> None:
    slips = re.compile(
        r"\byou(?:r|rs|rself)?\b|\bI (?:are|were|is)\b|\bme (?:am|are|have|do|will|can)\b", re.IGNORECASE
    )
    for config in personas():
        text = persona_text(config, "first_person", LIBRARY_PROMPTS)
        assert slips.search(text) is None or "you" in config.name.lower(), text


@pytest.mark.parametrize(
    ("said", "spoken"),
    [
        ("You like your work, and people trust you.", "I like my work, and people trust me."),
        ("You like quiet and are shy, but were loud.", "I like quiet and am shy, but was loud."),
        ("You know people who work hard and are poor.", "I know people who work hard and are poor."),
        ("You usually are late, and you aren’t sorry.", "I usually am late, and I am not sorry."),
        ("You’re richer than you think, like you.", "I’m richer than I think, like me."),
        ("What you see is yours; nobody can tell you are tired.", "What I see is mine; nobody can tell I am tired."),
        (
            "It matters to you that streets are full and are loud.",
            "It matters to me that streets are full and are loud.",
        ),
    ],
)
def test_a_text_that_addresses_somebody_becomes_their_own(said: str, spoken: str) -> None:
    assert first_person(said) == spoken


def test_a_persona_is_split_into_sentences_without_losing_a_sign() -> None:
    text = "You say “No.” Dr. Wu agrees. (You lied.) You have $3.50!\nYou own No. 5, e.g. a shop"
    own = ["You say “No.”", "Dr. Wu agrees.", "(You lied.)", "You have $3.50!", "You own No. 5, e.g. a shop"]
    assert sentences(text) == own


# -- order, place, names


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("order", ["reversed", "drawn"])
@pytest.mark.parametrize("field", ["option_order", "tool_order"])
def test_options_and_actions_in_another_order_are_the_same(name: str, field: str, order: str) -> None:
    presentation = Presentation.model_validate({field: order})
    for request in own_requests(name):
        other = presented(request, presentation)
        assert sorted(tool.name for tool in request.tools) == sorted(tool.name for tool in other.tools)
        assert {tool.name: flat(tool.parameters) for tool in request.tools} == {
            tool.name: flat(tool.parameters) for tool in other.tools
        }
        assert flat(request.schema) == flat(other.schema)
        assert {key: sorted(map(str, one)) for key, one in request.options.items()} == {
            key: sorted(map(str, one)) for key, one in other.options.items()
        }


def flat(value: Any) -> Any:
    """Return a JSON value with its lists sorted."""
    if isinstance(value, Mapping):
        return {name: flat(one) for name, one in value.items()}
    return sorted(map(str, value)) if isinstance(value, list | tuple) else value


PLACES = [
    {"persona_place": "opening"},
    {"persona_place": "system"},
    {"persona_place": "first"},
    {"persona_place": "last"},
    {"memory_place": "after"},
    {"instructions_place": "user"},
]
"""Presentations that put something in another place."""


@pytest.mark.parametrize("name", MODELS)
def test_what_is_put_in_another_place_is_the_same(name: str) -> None:
    own = [Counter(words(m.content for m in request.messages)) for request in own_requests(name, steps=2)]
    for place in PLACES:
        other = heard(name, {}, Presentation.model_validate(place), 2)
        assert [Counter(words(m.content for m in request.messages)) for request in other] == own


@pytest.mark.parametrize("name", MODELS)
def test_exchanged_names_change_back(name: str) -> None:
    with closing(kind_of(name)(llm="rule", rng=1, **SMALL.get(name, {}))) as model:
        aliases = Aliases([agent.config.name for agent in llm_agents(model)])
    for request in own_requests(name):
        for message in request.messages:
            assert aliases.text(aliases.text(message.content), back=True) == message.content


# -- structure


@pytest.mark.parametrize("name", [*MODELS, "two_worlds"])
def test_a_model_can_be_made_with_each_value_of_its_structure(name: str) -> None:
    kind = kind_of(name)
    for parameter in parameters_of(kind):
        mark = parameter.structure
        for value in () if mark is None else mark.values:
            assert mark.dimension in DIMENSIONS  # pyright: ignore[reportOptionalMemberAccess]
            assert parameter.check(value) == value
            extra = {"beliefs": True} if value == "extreme" else {}
            assert kind.scenario_class(**{parameter.name: value}, **extra).to_dict()[parameter.name] == value


@pytest.mark.parametrize(
    ("name", "parameters", "numbers"),
    [
        ("commons", {}, ["half as many agents", "twice as many agents"]),
        ("hidden_roles", {}, ["n_agents 5", "n_agents 9"]),
        ("social", {}, ["n_agents 10", "n_agents 40"]),
        ("social", {"n_agents": 6}, ["half as many agents", "twice as many agents"]),
        ("prisoners_dilemma", {}, ["guests 2", "guests 4"]),
    ],
)
def test_audits_vary_population_by_half_and_double_or_marked_numbers(
    name: str, parameters: dict[str, Any], numbers: list[str]
) -> None:
    plan = plan_for(kind_of(name), Setting(parameters), dimensions=["population"])
    assert [one.name for one in plan.perturbations] == numbers


def test_the_wording_of_news_is_a_dimension_of_its_own_where_agents_read_news() -> None:
    plan = plan_for(kind_of("three_worlds"), Setting(), dimensions=["intervention design", "wording"])
    found = [(one.dimension, one.name) for one in plan.perturbations]
    named = [("wording", "wording “formal”"), ("wording", "wording “shorter”")]
    assert found == [("intervention design", "wording “news”"), *named]
