"""Aggregation, ends, visibility, tags, games, ranges, statistics and files of Sotopia, by its own code.

`dyadic` is commit 97db3b0, which `rules="original"` follows; `main` is a0aaafb, after the refactoring for several
agents. Of `main`, two sections are not compared: `reset_visibility`, as it shows nobody a portrait of anybody else, and
`judge_canned`, as it loses what its judge says.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from mesa_llm import ScriptedLLM, ToolCall
from mesa_llm.engine.survey import JUDGING
from mesa_llm_models.discussion.world import EndRule, JustLeft, MaxTurns, Member, Move, Room, Stale, TooFewLeft
from mesa_llm_models.sotopia.judge import STANDARD, judgement_type
from mesa_llm_models.sotopia.model import SotopiaModel
from mesa_llm_models.sotopia.scenes import HARD, RELATIONS, CharacterProfile, Pairing, Scenes, Situation, load_scenes
from mesa_llm_models.sotopia.scores import aggregate, margins, normalised
from mesa_llm_models.sotopia.visibility import VISIBLE, WHOLE, visible_text
from tests.golden.reading import assert_close, golden, section

CASES: dict[str, Any] = golden("sotopia")

CANNED: Any = CASES.get("dyadic", {}).get("judge_canned", {})

VERSIONS = ("dyadic", "main")

NOT_COMPARED = {
    "call.structured": "how the request was put to the provider",
    "call.keys": "names of the gaps in the original's prompt",
    "model": "the name of a row",
}
"""Parts of a case that no test reads → why."""

KINDS: dict[str, Any] = {
    "speak": "say",
    "non-verbal communication": "gesture",
    "action": "do",
    "leave": "leave",
    "none": "none",
}
"""Type of an action there → kind of a move here."""

DIMENSIONS = [one.name for one in STANDARD]


def cases(name: str, *versions: str) -> list[Any]:
    """Return the cases of a section, each with the version it is of."""
    found = [(version, case) for version in versions or VERSIONS for case in section(CASES.get(version, {}), name)]
    return [pytest.param(version, case, id=f"{version}-{index}") for index, (version, case) in enumerate(found)]


# -- aggregation


@pytest.mark.parametrize(("version", "case"), cases("aggregate"))
def test_rows_are_aggregated_as_the_original_aggregates_them(version: str, case: Any) -> None:
    wanted, rows = case["r"], [tuple(row) for row in case["items"]]
    if "raises" in wanted:
        assert wanted["raises"] in ("ValueError", "AssertionError", "ValidationError")
        with pytest.raises(ValueError):
            aggregate(rows, ignores_others=version == "main")
        return
    found, wanted = aggregate(rows, ignores_others=version == "main"), wanted["ok"]
    assert found.terminated is wanted["terminated"]
    for number in (1, 2):
        rate, expected = found.rates.get(f"agent_{number}"), wanted[f"p{number}"]
        assert (rate is None) == (expected is None)
        if rate is not None:
            assert_close([rate[0], rate[1]], [expected[0], dict(expected[1].items())])
    assert len(found.comments.split("\n")) == wanted["comments_lines"]
    assert found.comments.startswith("Environment: ") == wanted["has_env_comment"]


def test_later_versions_keep_the_comments_of_others_and_not_their_rates() -> None:
    found = aggregate([("agent_1", "goal", 7, "a"), ("agent_3", "goal", 5, "c")], ignores_others=True)
    assert (list(found.rates), found.comments) == (["agent_1"], "agent_1:\ngoal: a\nagent_3:\ngoal: c\n")


# -- ends


def end_rules(version: str, max_turns: int, max_stale: int) -> tuple[EndRule, ...]:
    return (MaxTurns(max_turns), JustLeft() if version == "dyadic" else TooFewLeft(), Stale(max_stale))


@pytest.mark.parametrize(("version", "case"), cases("termination"))
def test_an_episode_ends_when_and_why_the_original_ends_it(version: str, case: Any) -> None:
    rules = end_rules(version, case["max_turn"], case["max_stale"])
    room = Room(end_rules=rules)
    names = sorted({message[0] for message in case["messages"]} - {"E"})
    for agent_id, name in enumerate(names, 1):
        room.seat(Member(agent_id, name, "interact", is_timed=False))
    for name, *action in case["messages"]:
        room.moves.append(Move(names.index(name) + 1, KINDS[action[0]]) if action else Move(None, "turn"))
    room.n_turns = case["turn"]
    is_long, has_left, is_stale = (bool(rule.reason(room)) for rule in rules)
    left = "leaving" if version == "dyadic" else "too_few"
    reasons = {"too_long": is_long or is_stale, left: has_left, "stale": is_stale}  # "stales for too long" names both
    is_over, wanted = case["r"]["ok"]
    assert bool(room.end) == is_over
    assert {reason for reason, holds in reasons.items() if holds} == set(wanted)


# -- who sees what

FIELDS = {
    "first": "first_name",
    "last": "last_name",
    "age": "age",
    "gender": "gender",
    "occupation": "occupation",
    "pronoun": "pronouns",
    "public_info": "public_info",
    "personality": "personality",
    "secret": "secret",
}
"""Name of a field there → here."""

GOALS = (
    "GOAL0 <extra_info>EXTRA0</extra_info> <strategy_hint>HINT0</strategy_hint> "
    "<clarification_hint>CLAR0</clarification_hint> <other>OTHER0</other>",
    "GOAL1 <extra_info>EXTRA1</extra_info> <p viewer='agent_1'>ONLY1</p> <p viewer='environment'>ONLYENV</p>",
)

MARKS = ("GOAL0", "GOAL1", "EXTRA0", "EXTRA1", "HINT0", "CLAR0", "OTHER0", "ONLY1", "ONLYENV", "SCEN")


def character(number: int) -> CharacterProfile:
    texts: dict[str, Any] = {field: f"{field.replace('_', '')}{number}x" for field in FIELDS.values() if field != "age"}
    return CharacterProfile(character_id=str(number), age=41 + number, **texts)


def meeting(relation: int, **options: Any) -> SotopiaModel:
    """Make a model of one meeting of two people whose every field is a word of its own."""
    place = Situation(situation_id="E", text="SCEN", goals=GOALS, relation=RELATIONS[relation])
    pairing = Pairing(situation_id="E", character_ids=("0", "1"))
    people = {str(number): character(number) for number in (0, 1)}

    class Meeting(SotopiaModel):
        def make_scenes(self) -> Scenes:
            return Scenes(people, {"E": place}, (), (pairing,))

    return Meeting(rng=1, rules="original", **options)


def told(model: SotopiaModel, seat: int) -> str:
    """Return everything that somebody reads at the beginning, in small letters but for marks."""
    episode = model.episodes[0]
    person = episode.persons[seat]
    seen = episode.room.observe(person.unique_id, "interact")
    return "\n".join((seen.instructions, person.config.text, seen.text))


@pytest.mark.parametrize(("version", "case"), cases("bio_visibility"))
def test_fields_are_visible_by_relation(version: str, case: Any) -> None:
    relation = RELATIONS[case["relationship"]]
    assert case["name"].startswith(relation.split("_")[0])
    assert {FIELDS[name] for name in case["self"]} == {FIELDS[name] for name in case["environment"]} == set(WHOLE)
    assert {FIELDS[name] for name in case["other"]} == set(VISIBLE[relation])


@pytest.mark.parametrize(("version", "case"), cases("reset_visibility", "dyadic"))
def test_persons_read_at_the_beginning_what_they_read_in_the_original(version: str, case: Any) -> None:
    model = meeting(case["relationship"], omniscient=case["omniscient"], lite=case["lite"])
    asked: dict[int, Any] = {turn.agent.seat: turn.observation for turn in model.first_stage()[0]}
    for seat in (0, 1):
        wanted, text = case["r"]["ok"][f"agent_{seat}"], told(model, seat)
        for whose, number in (("own", seat), ("partner", 1 - seat)):
            fields = {name: str(getattr(character(number), field)) for name, field in FIELDS.items()}
            found = {name for name, word in fields.items() if re.search(rf"\b{word}\b", text)}
            assert found == set(wanted[whose]), (seat, whose)
        assert {mark for mark in MARKS if re.search(rf"\b{mark}\b", text)} == set(wanted["goals"])
        assert text.count("unknown") == wanted["says_unknown"]
        tools = {KINDS_OF_TOOLS[tool] for tool in asked[seat].tools or ()} if seat in asked else {"none"}
        assert sorted(tools) == wanted["available"]
        assert model.episodes[0].room.n_turns == wanted["turn"]


KINDS_OF_TOOLS = {
    "say": "speak",
    "gesture": "non-verbal communication",
    "do": "action",
    "leave": "leave",
    "wait": "none",
}


@pytest.mark.parametrize(("version", "case"), cases("xml"))
def test_tags_in_texts_are_read_as_the_original_reads_them(version: str, case: Any) -> None:
    for viewer in ("agent_0", "agent_1", "environment"):
        assert visible_text(case["raw"], viewer, rules="original") == case[viewer]["ok"], viewer


# -- games


NAMES = {"say": "said", "leave": "left"}
"""Kind of a line here → what an observation there is called that holds it."""


class Recorded:
    """Calls on whom the recording says, where the original draws without a seed."""

    def __init__(self, masks: list[list[bool]]) -> None:
        self.masks = masks

    def call(self, room: Room) -> list[int]:
        return [one for one, may_act in zip(room.members, self.masks[room.n_turns], strict=True) if may_act]


def scripted(actions: list[list[list[str]]]) -> ScriptedLLM:
    """Make a language model that does what stands in a script, by turn and seat."""
    tools = {kind: name for name, kind in KINDS_OF_TOOLS.items()}

    def reply(request: Any) -> ToolCall:
        kind, words = actions[request.salt.time - 1][(request.salt.agent - 1) % 2]
        arguments = {"wait": {"reason": "-"}, "leave": {}}.get(tools[kind], {"text": words or " "})
        return ToolCall(tools[kind], arguments)

    return ScriptedLLM(reply)


@pytest.mark.parametrize(("version", "case"), cases("episodes"))
def test_a_game_goes_as_in_the_original(version: str, case: Any) -> None:
    model = meeting(
        0,
        order=case["order"],
        max_turns=case["max_turn"],
        max_stale=case["max_stale"],
        stale_counts="all" if version == "dyadic" else "in turn",
        llm=scripted(case["actions"]),
    )
    episode = model.episodes[0]
    if case["order"] == "random":
        episode.host = Recorded([entry["may_act"] for entry in case["log"]])
    rates = aggregate([(*row, "") for row in section(CANNED, "rows")]).rates
    for entry in case["log"]:
        before = len(episode.room.lines)
        model.step()
        assert episode.room.n_turns == entry["turn"]
        asked = set(model.runlog.decisions().query(f"time == {entry['turn']}")["agent"])
        assert [person.unique_id in asked for person in episode.persons] == entry["may_act"]
        assert [bool(episode.end)] * 2 == entry["terminated"]
        seats = {person.unique_id: seat for seat, person in enumerate(episode.persons)}
        done = {f"p{seats[line.speaker_id]}_{NAMES.get(line.kind, '')}" for line in episode.room.lines[before:]}
        for observed in entry["obs"]:
            assert {name.split("_")[0] for name in observed} == {name.split("_")[0] for name in done}
            assert {name for name in done if not name.endswith("_")} <= set(observed)
        assert 1 + len(episode.room.moves) == entry["inbox"]
        is_rated = bool(episode.end) and version == "dyadic"  # later versions lose what their judge says
        for number, (rating, reward) in enumerate(zip(entry["rating"], entry["reward"], strict=True), 1):
            if is_rated and not rates:
                continue  # the file lacks the rows of the judge
            overall, by_name = rates[f"agent_{number}"] if is_rated else (0, {})
            assert_close(reward, float(overall) if is_rated else 0)
            assert_close(rating, [overall, by_name] if is_rated else 0)
    assert case["err"] or bool(episode.end) == all(case["log"][-1]["terminated"])


@pytest.mark.parametrize("case", [CANNED] if CANNED else [])
def test_a_judgement_has_a_row_for_each_person_and_dimension(case: Any) -> None:
    rows = [tuple(row) for row in case["rows"]]
    assert len(rows) == case["n_rows_returned"] == 2 * len(DIMENSIONS)
    marks: dict[str, Any] = {f"agent_{number}": {} for number in (1, 2)}
    for name, dimension, score in rows:
        marks[name][dimension] = {"reasoning": "", "score": score}
    judgement = TypeAdapter(judgement_type(STANDARD)).validate_python(marks)
    found = [(name, one, judgement[name][one]["score"]) for one in DIMENSIONS for name in marks]
    assert found == rows
    assert [call["temperature"] for call in case["call"]] == [JUDGING.temperature]


@pytest.mark.parametrize(("version", "case"), cases("ranges"))
def test_a_score_out_of_its_range_spoils_the_judgement(version: str, case: Any) -> None:
    marks = {one.name: {"reasoning": "", "score": max(one.low, min(0, one.high))} for one in STANDARD}
    given = {**marks, case["dim"]: {"reasoning": "", "score": case["score"]}}
    try:
        TypeAdapter(judgement_type(STANDARD)).validate_python({"agent_1": given, "agent_2": marks})
        accepted = True
    except ValidationError:
        accepted = False
    assert accepted == case["accepted"]


# -- statistics


@pytest.mark.parametrize("case", section(CASES, "benchmark_stats"))
def test_margins_are_the_published_ones_by_the_exact_quantile(case: Any) -> None:
    import pandas as pd

    rows = [{"situation": place, "seat": seat, **dict(zip(DIMENSIONS, scores, strict=True))}
            for place, seat, scores in case["rows"]]  # fmt: skip
    table = pd.DataFrame(rows)
    table["overall_score"] = table[DIMENSIONS].mean(axis=1)
    found, wanted = margins(table, [*DIMENSIONS, "overall_score"]), dict(case["ok"].items())
    groups, episodes = wanted.pop("setting_num"), wanted.pop("episode_count")
    for name, (mean, margin) in wanted.items():
        assert found.loc[name, "mean"] == pytest.approx(mean, abs=1e-9)
        assert found.loc[name, "margin"] == pytest.approx(margin, rel=0.04, abs=1e-9)  # theirs is drawn
        assert (found.loc[name, "groups"], found.loc[name, "episodes"]) == (groups[0], episodes[0])
    for name, exact in case["derived_exact"].items():
        assert found.loc[name, "sem"] == pytest.approx(exact["sem"], abs=1e-9)
        assert found.loc[name, "margin"] == pytest.approx(exact["margin_exact"], rel=1e-9, abs=1e-9)
        if exact["sem"]:
            assert found.loc[name, "margin"] / found.loc[name, "sem"] == pytest.approx(case["t975"], rel=1e-9)
    assert case["t975"] > 0


@pytest.mark.parametrize("case", section(CASES, "minmax_normalisation"))
def test_scores_are_normalised_between_lowest_and_highest(case: Any) -> None:
    found = normalised(dict(case["raw"].items()))
    assert_close(found, {name: float(value) for name, value in case["minmax"].items()})
    assert sum(found.values()) / 7 == pytest.approx(case["mean_minmax"])
    assert sum(case["raw"].values()) / 7 == pytest.approx(case["mean_raw"])


# -- files


@pytest.mark.parametrize("case", section(CASES, "loader"))
def test_the_original_files_are_read_whole(case: Any) -> None:
    folder = Path(os.environ.get("MESA_LLM_DATA", ""), "sotopia")
    if "MESA_LLM_DATA" not in os.environ or not folder.is_dir():
        case.read_all()
        pytest.skip("MESA_LLM_DATA holds no sotopia")
    cast = load_scenes(str(folder))
    found, counts = cast.report(), case["counts"]
    names = {"agents": "characters", "environments": "situations", "relationships": "ties", "combos": "pairings"}
    assert {name: found[ours] for name, ours in names.items()} == dict(counts.items())
    assert found["sources"] == dict(case["environment_source"].items())
    by_code = {RELATIONS[int(code)]: count for code, count in case["environment_relationship"].items()}
    assert found["relations"] == by_code
    by_code = {RELATIONS[int(code)]: count for code, count in case["relationship_table"].items()}
    assert found["tie_relations"] == by_code
    assert {str(n): count for n, count in found["pairings_each"].items()} == dict(case["combos_per_env"].items())
    assert case["combo_ids_missing"] == 0  # else loading fails
    assert {entry["env_id"]: entry["entries"] for entry in case["hard_environment_entries"]}.items() <= HARD.items()
    for kind in ("competitive", "cooperative"):
        own = {key for key, one in cast.situations.items() if one.kind == kind}
        assert own == set(case[f"{kind}_env_ids"])
    assert found["tags"] == dict(case["tag_occurrences"].items())
    tied = case["combo_relationship_vs_table"]
    assert (found["tied"], found["not_tied"]) == (tied["same"], tied["different"])
    hard = Counter(one.situation_id for one in cast.pairings_of("hard"))
    assert (len(hard), set(hard.values())) == (14, {5})
    assert replace(cast).pairings == cast.pairings
