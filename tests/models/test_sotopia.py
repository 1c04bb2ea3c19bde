"""Sotopia: meetings, what is read, who judges and what stays missing, other modes, files, statistics, the page."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mesa_llm import AgentDesign, ConfigError, Reply, Request, ScriptedLLM, ToolCall
from mesa_llm.testing import honest_reply
from mesa_llm.viz import markup
from mesa_llm_models.exports import export
from mesa_llm_models.sotopia.agents import demand
from mesa_llm_models.sotopia.app import EPISODE, episode_items, person_values, title_of
from mesa_llm_models.sotopia.charts import goal_chart, score_chart
from mesa_llm_models.sotopia.judge import STANDARD, intraclass, judge_prompt
from mesa_llm_models.sotopia.model import SotopiaModel
from mesa_llm_models.sotopia.output import episode_logs, logs_of_run, read_episode_logs
from mesa_llm_models.sotopia.scenes import ORIGINAL, RELATIONS, Scenes, load_scenes
from mesa_llm_models.sotopia.scores import (
    agreement,
    compare,
    distance_to_published,
    interval,
    normalised,
    paired,
    published,
)
from mesa_llm_models.sotopia.task import is_comparable
from mesa_llm_models.sotopia.visibility import visible_text


def finished(**options: Any) -> SotopiaModel:
    model = SotopiaModel(**{"rng": 1, "n_dyads": 4, **options})
    model.run_for(25)
    assert not model.running
    return model


def saying(text: str = "Well.", name: str | None = None) -> ScriptedLLM:
    """Make a language model that always says the same."""
    return ScriptedLLM(lambda request: ToolCall("say", {"text": text}), name=name)


def judging(scores: dict[str, Any], name: str = "judge") -> ScriptedLLM:
    """Make a judge that gives one score in all dimensions of a person; 0 where that is out of range."""

    def judge(request: Request) -> dict[str, Any]:
        assert request.schema is not None
        defined = request.schema["$defs"]
        return {
            agent: {
                one: {"reasoning": "so", "score": scores[agent] if one == "goal" else max(0, mark["minimum"])}
                for one, mark in ((name[5:], kind["properties"]["score"]) for name, kind in defined.items()
                                  if name.startswith("Mark_"))
            }
            for agent in request.schema["properties"]
        }  # fmt: skip

    return ScriptedLLM(judge, name=name)


def prompts(model: SotopiaModel, purpose: str = "decide") -> list[str]:
    calls = model.runlog.calls()
    found = [json.loads(prompt) for prompt in calls[calls["purpose"] == purpose]["prompt"]]
    return ["\n".join(message["content"] for message in messages) for messages in found]


# -- meetings


def test_by_rule_people_bargain_and_the_judge_finds_what_they_agreed_on() -> None:
    model = finished(n_dyads=20)
    found = model.results()
    assert (found["judge"], found["scored"], found["not_scored"], sum(found["ends"].values())) == ("rule", 40, 0, 20)
    agreed = [e for e in model.episodes if e.agreed_share(0) is not None]
    assert 0 < len(agreed) < 20
    goals = model.scores().set_index(["episode", "seat"])["goal"]
    assert all(goals[e.index, 0] + goals[e.index, 1] == 10 for e in agreed)
    assert model.story().startswith("20 meetings of 20 over")
    assert model.cost_estimate() == {"episodes": 20, "decisions": 400, "judgements": 0, "calls": 400}


def test_hundreds_of_meetings_go_on_at_once() -> None:
    model = SotopiaModel(n_dyads=200, sampling="random", rng=1, llm="random")
    model.run_for(3)
    assert len(model.runlog.decisions().query("time == 1 and label == 'interact'")) == 200
    assert model.results()["scored"] == 2 * model.n_over


@pytest.mark.parametrize("firmness", [0.0, 0.5, 1.0])
def test_a_rule_twin_gives_way_step_by_step_to_its_floor(firmness) -> None:
    asked = [demand(n, firmness) for n in range(12)]
    assert asked == sorted(asked, reverse=True)
    assert (asked[0], asked[-1]) == (9, round(2 + 6 * firmness))


@pytest.mark.parametrize(("rules", "end", "turns"), [("original", "stale", 2), ("corrected", "stale", 3)])
def test_one_who_passes_ends_a_meeting_early_only_under_the_original_rules(rules, end, turns) -> None:
    wait = ScriptedLLM(lambda request: ToolCall("wait", {"reason": "no"}))
    (episode,) = finished(n_dyads=1, rules=rules, llm=wait).episodes
    assert (episode.code, episode.room.n_turns) == (end, turns)


def test_leaving_ends_the_meeting_and_unusable_replies_are_silence() -> None:
    def reply(request: Request) -> Any:
        return Reply("hm") if request.salt.time == 1 else ToolCall("leave")

    (episode,) = finished(n_dyads=1, llm=ScriptedLLM(reply), attempts=1).episodes
    second = episode.characters[1].name
    assert (episode.end, episode.room.n_turns) == (f"{second} left", 2)
    assert [silence.name for silence in episode.room.silences] == [episode.characters[0].name]


@pytest.mark.parametrize("order", ["simultaneous", "random", "moderator"])
def test_turns_go_in_any_order(order) -> None:
    model = finished(order=order)
    others = {True: 1, False: 0}[order == "moderator"]
    decided = model.runlog.decisions().query("time == 1")
    assert len(decided) == {"simultaneous": 8, "random": 4, "moderator": 8}[order]
    assert sum(line.kind == "say" for e in model.episodes for line in e.room.lines) > 4 * others


# -- what is read


def test_a_text_may_hold_tags_within_tags_without_end() -> None:
    text = f"{'<extra_info>' * 5_000}Rain{'</extra_info>' * 5_000}"
    assert visible_text(text, "agent_0") == visible_text(text, "environment") == "Rain"


@pytest.mark.parametrize("text", ["<a>x</b>", "<!-- <a>", "<a "])
def test_a_long_text_of_tags_that_do_not_match_or_end_is_read_at_once(text) -> None:
    begun = time.process_time()
    visible_text(text * 20_000, "environment")
    assert time.process_time() - begun < 2  # in proportion to the square of its length, it was 8 s


@pytest.mark.parametrize(
    ("text", "original", "corrected"),
    [
        ("1 < 2 & 3", "1  2  3", "1  2 & 3"),
        ("2 & 1 < 3", "2 & 1  3", "2 & 1  3"),
        ("<p viewer='environment'>a</b>c & d</p>e", "c  d", "e"),
        ("a</p>b & c", "a", "ab & c"),
        ("<p viewer>a</p>b < c & d", "ab  c  d", "b  c & d"),
    ],
)
def test_original_rules_hide_the_same_text_faults_as_the_original(text, original, corrected) -> None:
    assert visible_text(text, "agent_0", rules="original") == original
    assert visible_text(text, "agent_0") == corrected


def test_everybody_reads_the_own_secret_and_goal_and_nobody_that_of_another() -> None:
    model = SotopiaModel(rng=1, n_dyads=52)
    for episode in model.episodes:
        for seat, person in enumerate(episode.persons):
            seen = episode.room.observe(person.unique_id, "interact")
            text = "\n".join((seen.instructions, seen.text, person.config.text))
            other = 1 - seat
            assert episode.characters[seat].secret in text
            assert visible_text(episode.goals[seat], f"agent_{seat}").strip() in text
            assert episode.characters[other].secret not in text
            if episode.goals[other] not in episode.goals[seat]:
                assert visible_text(episode.goals[other], f"agent_{other}").strip() not in text


def test_a_person_who_remembers_reads_the_scene_once_and_then_what_came_since() -> None:
    talk = ScriptedLLM(lambda request: ToolCall("say", {"text": f"turn {request.salt.time}"}))
    model = finished(n_dyads=1, max_turns=6, shows="last turn", memory="none", llm=talk)
    first, _, third, *_ = prompts(model)
    scene = model.episodes[0].situation.text
    assert scene in first
    assert scene not in third
    assert "“turn 2”" in third
    assert "“turn 1”" not in third
    remembering = finished(n_dyads=1, max_turns=6, shows="last turn", memory="chat", llm=talk)
    assert scene in prompts(remembering)[4]
    assert "turn 1" in prompts(remembering)[4]


def test_hidden_tags_and_a_design_without_personas_leave_the_goal() -> None:
    design = AgentDesign(persona="none")
    model = finished(n_dyads=1, max_turns=1, hidden_tags=["extra_info"], llm=saying(), design=design, judge="rule")
    (prompt,) = prompts(model)
    assert "Get the seat tonight." in prompt
    assert "new job" not in prompt
    assert model.episodes[0].characters[0].secret not in prompt
    assert model.episodes[0].characters[0].secret in judge_text(model)


def judge_text(model: SotopiaModel) -> str:
    return judge_prompt(model.episodes[0], [0, 1], model.dimensions)


# -- judges


def test_a_judge_reads_everything_and_is_asked_as_somebody_outside() -> None:
    llm = {"judge": judging({"agent_1": 8, "agent_2": 3}), "*": saying()}
    design = AgentDesign(persona="Be rude.", reasoning="inline")
    model = finished(n_dyads=1, max_turns=2, llm=llm, design=design)
    (text,) = prompts(model, "judge")
    for secret in (one.secret for one in model.episodes[0].characters):
        assert secret in text
    assert "rude" not in text
    assert not any("agent_1" in prompt for prompt in prompts(model))
    assert model.scores()["goal"].tolist() == [8, 3]
    assert (model.results()["judge"], model.results()["success"]) == ("judge", 0.5)


def test_judgement_out_of_range_is_retried_and_then_missing() -> None:
    llm = {"judge": judging({"agent_1": 11, "agent_2": 3}), "*": saying()}
    model = finished(n_dyads=2, max_turns=1, llm=llm)
    found = model.results()
    assert (found["scored"], found["not_scored"], found["judge_failures"], found["GOAL"]) == (0, 4, 4, None)
    ratings: Any = model.ratings()
    assert ratings["goal"].isna().all()
    assert all(model.ratings()["failure"].str.contains("less than or equal to 10"))
    assert "no judgement of judge could be used" in model.story()


def test_a_run_of_language_models_without_a_judge_has_no_scores_and_says_so() -> None:
    model = finished(n_dyads=1, max_turns=1, llm=saying())
    assert (model.results()["judge"], model.results()["GOAL"]) == (None, None)
    assert "name a judge=" in model.story()


def test_a_model_under_test_judges_itself_only_if_somebody_says_so() -> None:
    both = ScriptedLLM(lambda request: honest_reply(request))
    with pytest.raises(ConfigError, match=r"ScriptedLLM would judge itself.*same_judge=True"):
        SotopiaModel(rng=1, llm={"judge": both, "*": both}).step()
    assert finished(n_dyads=1, max_turns=1, llm={"judge": both, "*": both}, same_judge=True).n_judged == 1


def test_a_judge_who_favours_whom_it_reads_of_first_is_found_by_swapping() -> None:
    llm = {"judge": judging({"agent_1": 9, "agent_2": 5}), "*": saying()}
    model = finished(n_dyads=3, max_turns=1, llm=llm, swap=True)
    assert len(model.ratings()) == 12
    assert model.scores()["goal"].tolist() == [7.0] * 6
    found = agreement(model)
    assert found.loc["goal", "icc"] < 0
    assert (found.loc["goal", "first_gain"], found.loc["secret", "first_gain"]) == (4, 0)
    assert model.ratings().query("seat == 0 and swapped")["goal"].tolist() == [5] * 3
    assert math.isnan(found.loc["secret", "alpha"])


def test_judgements_are_recorded_and_replayed(tmp_path) -> None:
    options: dict[str, Any] = {"n_dyads": 2, "max_turns": 2, "swap": True, "log": tmp_path / "run.sqlite"}
    llm = {"judge": judging({"agent_1": 9, "agent_2": 5}), "*": saying()}
    model = finished(llm=llm, **options)
    model.close()
    again = finished(llm={"judge": "judge", "*": "ScriptedLLM"}, replay=True, **options)
    assert (again.runlog.digest, again.usage.calls) == (model.runlog.digest, 0)
    assert again.scores().equals(model.scores())
    assert model.usage_by_purpose["judge"].calls == 4
    again.close()


def test_several_judges_are_named_and_their_scores_averaged() -> None:
    model = finished(n_dyads=2, judge="rule, random", judgements=2)
    assert model.judge == "rule + random"
    assert model.scores()["judgements"].tolist() == [4] * 4
    assert set(model.ratings()["judge"]) == {"rule", "random"}


def test_runs_of_different_judges_are_not_compared_without_saying_so() -> None:
    first, second = finished(), finished(llm="random", judge="random")
    with pytest.raises(ConfigError, match=r"rule judged one run and random the other.*across_judges=True"):
        compare(first, second)
    assert set(compare(first, second, across_judges=True)["judge"]) == {"rule against random"}
    same: Any = compare(first, finished(rng=1))
    assert (same["difference"] == 0).all()
    assert (set(same["judge"]), set(same["pairs"])) == ({"rule"}, {8})


def test_judges_of_only_one_run_are_left_out_of_a_comparison() -> None:
    class OfTwo(SotopiaModel):
        mild, harsh = judging({"agent_1": 9, "agent_2": 9}, "mild"), judging({"agent_1": 1, "agent_2": 1}, "harsh")

        @property
        def judges(self) -> list[Any]:
            return [self.mild, self.harsh]

    class OfOneWhoFails(OfTwo):
        harsh = ScriptedLLM(lambda request: "no", name="harsh")

    whole, part = (kind(n_dyads=2, max_turns=1, attempts=1, rng=1) for kind in (OfTwo, OfOneWhoFails))
    for model in (whole, part):
        model.step()
    assert (whole.results()["GOAL"], part.results()["GOAL"]) == (5, 9)
    found = compare(whole, part).loc["goal"]
    assert (found["difference"], found["pairs"], found["judge"]) == (0, 4, "mild + harsh")


def test_scores_of_fewer_judgements_than_others_are_counted() -> None:
    replies = iter([{}, None, None, None])
    marks = {one.name: {"reasoning": "so", "score": 0} for one in STANDARD}
    judge = ScriptedLLM(lambda request: "no" if next(replies) is None else {"agent_1": marks, "agent_2": marks})
    model = SotopiaModel(n_dyads=1, max_turns=1, judgements=2, llm={"judge": judge, "*": "rule"}, judge_retries=0)
    model.step()
    found = model.results()
    assert (found["scored"], found["scored_in_part"], found["not_scored"]) == (2, 2, 0)


def test_dimensions_of_ones_own_are_judged(tmp_path) -> None:
    file = tmp_path / "dimensions.json"
    own = {"name": "warmth", "description": "How warm was it?", "low": 1, "high": 7}
    file.write_text(json.dumps([own]))
    model = finished(dimensions=str(file), n_dyads=1)
    assert {"warmth", "overall"} <= set(model.results())
    assert "8 to 10" not in judge_text(finished(n_dyads=1))
    assert "9 to 10: fully" in judge_text(finished(n_dyads=1, dimensions="banded"))
    file.write_text(json.dumps([{**own, "low": 9}]))
    with pytest.raises(ConfigError, match="low below high"):
        SotopiaModel(dimensions=str(file))


def test_a_goal_of_ones_own_counts_as_reached_by_its_own_range(tmp_path) -> None:
    file = tmp_path / "own.json"
    file.write_text(json.dumps([{"name": "goal", "description": "How far did it get?", "low": 0, "high": 100}]))
    llm = {"judge": judging({"agent_1": 70, "agent_2": 69}), "*": saying()}
    model = finished(n_dyads=1, max_turns=1, llm=llm, dimensions=str(file))
    assert model.results()["success"] == 0.5
    assert goal_chart(model).high == 100


# -- who plays


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": "judge"}, "'judge' already has a meaning"),
        ({"name": "copy"}, "'copy' already has a meaning"),
        ({"name": "b", "code": "overall"}, "'overall' already has a meaning"),
        ({"name": "b", "code": "a"}, "codes must be unique, got a, a"),
    ],
)
def test_a_dimension_that_would_stand_for_something_else_in_tables_is_refused(tmp_path, change, fault) -> None:
    one = {"name": "a", "description": "?", "low": 0, "high": 3}
    (tmp_path / "own.json").write_text(json.dumps([one, one | change]))
    with pytest.raises(ConfigError, match=fault):
        SotopiaModel(dimensions=str(tmp_path / "own.json"))


@pytest.mark.parametrize(
    ("seats", "fault"), [({"nihgt-boat": 1}, "did you mean night-boat"), ({"night-boat": 1}, "leaves no meeting")]
)
def test_seats_of_situations_that_are_not_there_are_refused(seats, fault) -> None:
    with pytest.raises(ConfigError, match=fault):
        SotopiaModel(n_dyads=1, partner="random", only_seats=seats)


def test_with_a_partner_one_seat_is_tested_or_both_in_two_meetings() -> None:
    llm = {"tested": saying("T", "T"), "partner": saying("P", "P"), "judge": judging({"agent_1": 9, "agent_2": 1})}
    model = finished(llm=llm, seats="both", n_dyads=1, max_turns=2)
    assert [[line.text for line in e.room.lines] for e in model.episodes] == [["T", "P"], ["P", "T"]]
    assert (model.results()["GOAL"], model.results()["scored"]) == (5.0, 2)
    only = {model.episodes[0].situation.situation_id: 1}
    (episode,) = finished(llm=llm, seats="both", partner="rule", n_dyads=1, only_seats=only, max_turns=2).episodes
    assert episode.tested_seats == (1,)
    with pytest.raises(ConfigError, match="set partner="):
        SotopiaModel(seats="both")
    with pytest.raises(ConfigError, match="mode='script': one author writes all parts"):
        SotopiaModel(partner="random", mode="script")


def test_an_author_writes_a_whole_scene_or_move_by_move() -> None:
    for mode in ("script", "script by moves"):
        model = finished(mode=mode)
        written = model.runlog.decisions().query("label == 'script'")
        n_turns = [episode.room.n_turns for episode in model.episodes]
        assert min(n_turns) > 1
        assert len(written) == (4 if mode == "script" else sum(n_turns))
    moves = [{"person": 1, "kind": "say", "text": "Hello"}, {"person": 2, "kind": "leave"}]
    written = finished(mode="script", n_dyads=1, llm=ScriptedLLM(lambda request: {"answer": moves}))
    assert [line.kind for line in written.episodes[0].room.lines] == ["say", "leave"]
    assert written.results()["ends"] == {"left": 1}
    none = finished(mode="script", n_dyads=1, llm=ScriptedLLM(lambda request: "no"), attempts=1)
    assert none.results()["ends"] == {"failed": 1}
    stuck = finished(mode="script by moves", n_dyads=1, max_turns=3, llm=ScriptedLLM(lambda _: "no"), attempts=1)
    assert stuck.results()["ends"] == {"turns": 1}


# -- files


@pytest.fixture
def folder(tmp_path):
    """Write a small cast in the form of Sotopia's files, with three people in one of its scenes."""
    agents = [{"agent_id": name, "first_name": name, "age": 30, "secret": f"{name} steals"} for name in "ABC"]
    places = [
        {"env_id": "two", "scenario": "A hall", "agent_goals": ["Sing", ""], "relationship": "3"},
        {"env_id": "three", "scenario": "A yard", "agent_goals": ["Dig", "Rest", "Plan"], "relationship": 0},
    ]
    ties = [{"agent1_id": "A", "agent2_id": "B", "relationship": 3, "background_story": "-"}]
    pairings = [{"env_id": "two", "agent_ids": ["A", "B"]}, {"env_id": "three", "agent_ids": ["A", "B", "C"]}]
    for name, entries in zip(ORIGINAL, (agents, places, ties, pairings), strict=True):
        (tmp_path / name).write_text("\n".join(map(json.dumps, entries)))
    return tmp_path


def test_a_goal_that_a_file_lacks_is_written_before_the_first_turn(folder) -> None:
    model = SotopiaModel(rng=1, items=str(folder), n_dyads=1, llm=ScriptedLLM(lambda request: "Hear a song."))
    model.step()
    assert model.episodes[0].goals == ["Sing", "Hear a song."]
    assert "Hear a song." in model.episodes[0].room.observe(2).instructions


def test_hard_scenes_of_ones_own_are_a_subset(folder) -> None:
    places = folder / "environment_profiles.jsonl"
    places.write_text(places.read_text().replace('"A hall"', '"A hall", "is_hard": true'))
    model = SotopiaModel(rng=1, items=str(folder), subset="hard")
    assert [episode.situation.situation_id for episode in model.episodes] == ["two"]


def test_three_people_may_whisper_and_all_are_judged(folder) -> None:
    def talk(request: Request) -> ToolCall:
        others = request.options["whisper.to"]
        return ToolCall("whisper", {"text": "psst", "to": others[0]}) if others[0] != "C" else ToolCall("leave")

    llm = {"*": ScriptedLLM(talk), "judge": judging({f"agent_{n}": n for n in (1, 2, 3)})}
    model = SotopiaModel(rng=1, items=str(folder), n_dyads=2, whispers=True, max_turns=3, llm=llm)
    model.episodes = model.episodes[1:]
    model.run_for(3)
    line = model.episodes[0].room.lines[0]
    assert (line.speaker, line.viewers) == ("A", (3, 4))
    assert model.scores()["goal"].tolist() == [1, 2, 3]


def test_sotopias_own_storage_is_read_as_its_lists_are(folder, tmp_path) -> None:
    kept = tmp_path / "kept"
    keys = {"AgentProfile": "agent_id", "EnvironmentProfile": "env_id"}
    for name, inner in zip(ORIGINAL, ("AgentProfile", "EnvironmentProfile", "RelationshipProfile",
                                      "EnvAgentComboStorage"), strict=True):  # fmt: skip
        (kept / inner).mkdir(parents=True)
        for number, line in enumerate((folder / name).read_text().splitlines()):
            entry = json.loads(line.replace("agent1_id", "agent_1_id").replace("agent2_id", "agent_2_id"))
            entry["pk"] = entry.pop(keys[inner]) if inner in keys else str(number)
            (kept / inner / f"{number}.json").write_text(json.dumps(entry))
    assert load_scenes(str(kept)) == load_scenes(str(folder))


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("agent_profiles.jsonl", ('"age": 30', '"age": "old"'), r"agent_profiles\.jsonl:1: age: .*integer"),
        ("agent_profiles.jsonl", ('"agent_id": "A", ', ""), r"agent_profiles\.jsonl:1: agent_id: field required"),
        (
            "agent_profiles.jsonl",
            ('"age": 30', '"age": 30, "moral_values": 5'),
            r"moral_values: input .* tuple",
        ),
        ("agent_profiles.jsonl", ('{"agent_id": "A"', "[" * 200_000), r"agent_profiles\.jsonl:1: not a JSON object"),
        ("agent_profiles.jsonl", ('{"agent_id": "C"', '{"agent_id": "A"'), "character 'A' appears twice"),
        ("agent_profiles.jsonl", ('"first_name": "B"', '"first_name": "A"'), "two people are called 'A'"),
        ("agent_profiles.jsonl", ('"first_name": "C"', '"first_name": " B"'), "two people are called 'B'"),
        ("agent_profiles.jsonl", ('"first_name": "C"', '"first_name": " "'), "'C' has no name; give it a first_name"),
        ("agent_profiles.jsonl", ('{"agent_id": "A"', "agent A"), r"agent_profiles\.jsonl:1: not a JSON object"),
        ("environment_profiles.jsonl", ('"3"', '"9"'), "relation"),
        ("relationship_profiles.jsonl", ('"agent1_id": "A", ', ""), r"profiles\.jsonl:1: agent1_id: field required"),
        ("relationship_profiles.jsonl", ('"agent2_id": "B"', '"agent2_id": null'), "agent2_id: input .* got None"),
        ("env_agent_combo_storages.jsonl", ('"two"', '"four"'), "there is no such situation"),
        ("env_agent_combo_storages.jsonl", ('["A", "B"]', '["A", "Z"]'), "there is no character 'Z'"),
        ("env_agent_combo_storages.jsonl", ('["A", "B"]', '["A", "B", "C"]'), "3 characters for 2 goals"),
    ],
)
def test_a_fault_in_a_file_is_named(folder, name, change, fault) -> None:
    file = folder / name
    file.write_text(file.read_text().replace(*change))
    with pytest.raises(ConfigError, match=fault):
        load_scenes(str(folder))


def test_what_stands_within_a_text_does_not_end_its_line(folder) -> None:
    file = folder / "environment_profiles.jsonl"
    file.write_text("\ufeff" + file.read_text().replace("A hall", "A\u2028hall"), encoding="utf-8")
    assert load_scenes(str(folder)).situations["two"].text == "A\u2028hall"


def test_a_folder_that_lacks_files_says_which() -> None:
    with pytest.raises(ConfigError, match="not a folder"):
        load_scenes("nowhere")
    with pytest.raises(ConfigError, match=r"neither agent_profiles\.jsonl nor a folder AgentProfile"):
        load_scenes(str(Path(__file__).parent))


def test_our_own_cast_is_large_enough_and_fits_together() -> None:
    cast, found = load_scenes(), load_scenes().report()
    assert (found["characters"], found["situations"], found["pairings"]) == (16, 13, 52)
    assert (set(found["relations"]), found["not_tied"], found["wrong_age"]) == (set(RELATIONS), 0, 0)
    counts = {subset: len(cast.pairings_of(subset)) for subset in ("all", "hard", "cooperative", "competitive")}
    assert counts == {"all": 52, "hard": 16, "cooperative": 12, "competitive": 16}
    first = [one.situation_id for one in cast.pairings_of()[:13]]
    assert len(set(first)) == 13


def test_a_run_is_written_and_read_in_the_form_of_sotopias_logs(tmp_path) -> None:
    log, file = tmp_path / "run.sqlite", tmp_path / "episodes.json"
    model = finished(n_dyads=2, llm="rule", log=log)
    wanted = episode_logs(model)
    model.close()
    assert export("mesa_llm_models.sotopia.output", logs_of_run, [str(log), str(file)]) == 0
    assert json.loads(file.read_text()) == json.loads(json.dumps(wanted))
    first = wanted[0]
    assert (first["models"], len(first["rewards"])) == (["rule", "rule", "rule"], 2)
    assert len(first["messages"]) == model.episodes[0].room.n_turns + 1
    sender, receiver, text = first["messages"][0][2]
    assert (sender, receiver) == (model.episodes[0].characters[0].name, "Environment")
    assert text.startswith('said: "')
    logs = json.loads(file.read_text())
    file.write_text("\n\n".join(map(json.dumps, logs)))
    assert read_episode_logs(file)["goal"].tolist() == model.scores()["goal"].tolist()
    file.write_text(json.dumps(logs, indent=1))
    again = read_episode_logs(file)
    assert again["goal"].tolist() == model.scores()["goal"].tolist()
    assert export("mesa_llm_models.sotopia.output", logs_of_run, [str(tmp_path / "no.sqlite"), str(file)]) == 2


# -- statistics


def test_intraclass_correlation_of_the_example_of_shrout_and_fleiss() -> None:
    by_case = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    assert intraclass(np.array(by_case).T) == pytest.approx(0.29, abs=0.005)


def test_published_means_and_normalised_means_follow_from_the_published_rows() -> None:
    table = published()
    rows = table[(table["model"] == "GPT-4") & (table["setting"].str.startswith("all"))]
    values = dict(zip(rows["measure"], rows["value"], strict=True))
    names = {"SOC": "social_rules", "SEC": "secret", "FIN": "financial_and_material_benefits"} | {
        "REL": "relationship", "KNO": "knowledge", "GOAL": "goal", "BEL": "believability"}  # fmt: skip
    scaled = normalised({names[code]: value for code, value in values.items()})
    assert sum(values.values()) / 7 == pytest.approx(3.31, abs=0.005)
    assert sum(scaled.values()) / 7 == pytest.approx(0.760, abs=0.0005)
    assert len(table) >= 80


def test_distance_from_published_means_says_if_judges_are_mixed() -> None:
    model = finished(n_dyads=1)
    with pytest.raises(ConfigError, match=r"gpt-4-0613 judged the published runs and rule these"):
        distance_to_published(model, "GPT-4")
    rows: Any = published().query("model == 'GPT-4' and setting.str.startswith('all 90')").set_index("measure")["value"]
    means = model.results()
    wanted = np.mean([abs(means[code] - rows[code]) for code in rows.index])
    assert distance_to_published(model, "GPT-4", across_judges=True) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("judge", "is_the_same"),
    [("openai/gpt-4-0613", True), ("gpt-4", True), ("gpt-4o", False), ("gpt-4-turbo", False), ("gpt-4, rule", False)],
)
def test_the_benchmark_compares_only_what_the_judge_of_the_paper_judged(judge, is_the_same) -> None:
    class Offline(SotopiaModel):
        def make_scenes(self) -> Scenes:
            return load_scenes("own")

    assert is_comparable(Offline(items="original", judge=judge, n_dyads=1)) is is_the_same


def test_intervals_are_drawn_over_scenes_and_pairs_are_matched() -> None:
    scores: Any = finished(n_dyads=26).scores()
    low, high = interval(scores, "goal")
    assert low < scores["goal"].mean() < high
    assert (low, high) == interval(scores, "goal")
    assert all(map(math.isnan, interval(scores[scores["episode"] == 0], "goal")))
    better = scores.assign(goal=scores["goal"] + 1)
    found = paired(better.sample(frac=1, random_state=1), scores, ["goal"]).loc["goal"]
    assert (found["difference"], found["pairs"]) == (1, 52)


# -- the page


def test_the_page_shows_a_meeting_with_goals_scores_and_reasons() -> None:
    model = finished(n_dyads=2)
    episode = model.episodes[0]
    persons = [person_values(episode, seat, model.dimensions) for seat in (0, 1)]
    shown = markup(
        EPISODE, text="-", relation="-", turns="1 turn", end="", persons=persons, items=episode_items(episode)
    )
    assert title_of(episode) == "1. night boat: Inês & Anand"
    for part in ("GOAL", "by its share of what was agreed", "Get the seat tonight", "<i>left</i>"):
        assert part in shown
    for draw in (score_chart, goal_chart):
        assert draw(model)._repr_png_()
        assert draw(SotopiaModel(rng=1))._repr_png_()
