"""Discussions: files and their faults, hosts, phases, questions aside, ends, several rooms, and the two studies."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from mesa_llm import ConfigError, Failure, ScriptedLLM, ToolCall
from mesa_llm.charts import Chart
from mesa_llm.experiments.runs.study import StudySetup
from mesa_llm.viz import markup
from mesa_llm_models.discussion.agents import attitude_after
from mesa_llm_models.discussion.app import CHAT, chat_items
from mesa_llm_models.discussion.charts import talk_chart
from mesa_llm_models.discussion.config import plan_of, read_plan
from mesa_llm_models.discussion.config.plan import MANNERS
from mesa_llm_models.discussion.model import DiscussionModel
from mesa_llm_models.discussion.output import sauce_output
from mesa_llm_models.discussion.scores import choice_shares, curve, drift, talk_shares
from mesa_llm_models.discussion.studies import TOPICS, run_rooms, study_debate
from mesa_llm_models.discussion.world import Line, Manner, Wish

HOST = {"class": "Round Robin Host", "start_person_index": 0}
QUESTION = {"id": "vote", "question": "Yes or no?", "iterations": [0, 2, -1], "choices": ["yes", "no"]}


def person(name: str, kind: str = "person", **fields: Any) -> dict[str, Any]:
    return {"class": kind, "name": name, "background_story": f"{name} is here.", **fields}


def seat(name: str, kind: str = "batchPersonHuggingFace", **fields: Any) -> dict[str, Any]:
    """Return a person who sits in two rooms; without a tag, if it is None."""
    own = {"class": kind, "tag": name, "names": [f"{name}1", f"{name}2"], "background_stories": [".", "."]}
    model = {"model_path": "m", "prompt_type": "llama_instruct"}
    return {key: value for key, value in (own | model | fields).items() if key != "tag" or value is not None}


def config_of(*persons: dict[str, Any], **parts: Any) -> dict[str, Any]:
    experiment = {"scenario": "The park", "survey_questions": parts.pop("questions", [])}
    end = {"class": "iteration", "max_num_msgs": 4, **parts.pop("end", {})}
    everybody = list(persons or (person("Ada"), person("Ben")))
    return {"persons": everybody, "host": HOST, "endType": end, "experiment": experiment, **parts}


def finished(model: DiscussionModel, steps: int = 300) -> DiscussionModel:
    while model.running and model.time < steps:
        model.step()
    return model


@pytest.fixture
def discussion(tmp_path):
    def make(config: dict[str, Any], **options: Any) -> DiscussionModel:
        file = tmp_path / "talk.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        return DiscussionModel(config=str(file), rng=1, **options)

    return make


# -- files


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"persons": [person("A", "robot")]}, r"persons\[0\]\.class: unknown; one of person, "),
        ({"persons": []}, r"persons: list should have at least 1"),
        ({"persons": [person("A"), person("A")]}, r"persons: 'A' is there 2 times; names have to differ"),
        ({"persons": [{"class": "person", "name": "A"}]}, r"persons\[0\]\.background_story: missing"),
        ({"persons": [person("A", "fake_person")]}, r"persons\[0\]\.things_to_say: missing"),
        ({"persons": [person("A\nB"), person("A B")]}, r"persons: 'A B' is there 2 times; names have to differ"),
        ({"persons": [person("A"), person(" ")]}, r"persons\[1\]\.name: missing"),
        ({"persons": [person("A", "fake_person", things_to_say=["a", ""])]}, r"things_to_say: ''; lines of 1 to 2000"),
        ({"persons": [person("A", "async_group_discussant")]}, r"persons\[0\]\.opinion: missing"),
        ({"persons": [person("A", "async_group_discussant", opinion=" ")]}, r"persons\[0\]\.opinion: missing"),
        ({"persons": [3]}, r"persons\[0\]: input should be a valid object, got 3"),
        ({"host": {"class": "random"}}, r"host\.start_person_index: missing; a number from -2 to 1"),
        ({"host": {"class": "king"}}, r"host\.class: input should be 'Round Robin Host'"),
        ({"host": {**HOST, "start_person_index": 2}}, r"host\.start_person_index: 2; a number from -2 to 1"),
        ({"endType": {"class": "iteration"}}, r"endType\.max_num_msgs: missing"),
        ({"endType": {"class": "limits"}}, r"endType: nothing ends the conversation; one of max_num_msgs, max_turns, "),
        ({"endType": {"class": "limits", "max_minutes": 1e308}}, r"endType\.max_minutes: .* less than or equal to"),
        ({"clock": {"word_s": math.inf}}, r"clock\.word_s: .* finite number, got inf"),
        ({"endType": {"class": "limits", "agreement": "x"}}, r"endType\.agreement: no survey question is called 'x'"),
        ({"experiment": {}}, r"experiment\.scenario: missing; what everybody reads first"),
        ({"persons": [{"name": "A"}]}, r"persons\[0\]\.class: missing; one of person, "),
        ({"persons": "Ada"}, r"persons: input should be a valid list, got 'Ada'"),
        ({"endType": {"class": "iteration", "max_num_msgs": "6"}}, r"endType\.max_num_msgs: .* valid integer, got '6'"),
        (
            {"experiment": {"scenario": "s", "survey_questions": [{"id": "q", "question": "?"}]}},
            r"survey_questions\.q\.iterations: missing; a list of numbers of messages",
        ),
        (
            {"experiment": {"scenario": "s", "survey_questions": [{**QUESTION, "iterations": ["never"]}]}},
            r"survey_questions\[0\]\.iterations\[0\]: .* got 'never'",
        ),
        ({"clock": {"start": "25:00"}}, r"clock\.start: a time of day must be HH:MM or HH:MM:SS, got '25:00'$"),
        (
            {"experiment": {"scenario": "s", "survey_questions": [QUESTION] * 2}},
            r"survey_questions: ids have to differ",
        ),
        (
            {"experiment": {"scenario": "s", "survey_questions": [{**QUESTION, "choices": ["a"], "scale": [0, 9]}]}},
            r"survey_questions\.vote\.scale: there are choices, too",
        ),
        (
            {"endType": {"class": "limits", "max_minutes": 1}, "clock": {"pause_s": 0, "word_s": 0}},
            r"endType\.max_minutes: the clock stands still",
        ),
        ({"sessionRoom": 3}, r"sessionRoom: 3; 'base' or 'batch'"),
    ],
)
def test_a_fault_in_a_file_is_named_with_its_key_and_what_is_allowed(changes, fault) -> None:
    with pytest.raises(ConfigError, match=f"^talk.json: .*{fault}"):
        plan_of(config_of() | changes, "talk.json")


def test_a_person_at_fault_is_not_missed_in_the_list_as_well() -> None:
    with pytest.raises(ConfigError, match=r"^talk.json: persons\[0\]\.strength: .* 1, got 2$"):
        plan_of(config_of(person("Ada", strength=2)), "talk.json")


def test_a_file_that_is_not_there_or_no_json_is_named(tmp_path) -> None:
    file = tmp_path / "broken.json"
    file.write_text("{", encoding="utf-8")
    for config in (str(file), "nothing", str(tmp_path)):
        with pytest.raises(ConfigError, match="debate_climate, trolley, or a file in JSON or TOML"):
            DiscussionModel(config=config)


def test_a_key_without_meaning_is_named_in_a_warning(caplog) -> None:
    plan_of(config_of(person("Ada", mood="good"), person("Ben")) | {"colour": "red"}, "talk.json")
    assert [record.getMessage() for record in caplog.records] == [
        "talk.json: colour is no key of a discussion, and is ignored",
        "talk.json: persons.mood is no key of a discussion, and is ignored",
    ]


def test_duplicate_or_unknown_key_in_a_batch_is_named_in_a_warning(tmp_path, caplog) -> None:
    seats: list[dict[str, Any]] = [
        {"class": "batchPersonHuggingFace", "names": [name], "background_stories": ["."]} for name in "AB"
    ]
    seats[0]["person_kwargs"] = {"opinon": "for"}
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(config_of(*seats))[:-1] + ', "endType": {"class": "iteration", "max_num_msgs": 1}}')
    assert read_plan(str(file)).end.max_num_msgs == 1
    messages = " ".join(record.getMessage() for record in caplog.records)
    assert "the key 'endType' 2 times; the last counts" in messages
    assert "persons.opinon is no key" in messages


def test_the_original_takes_no_file_without_its_only_end() -> None:
    with pytest.raises(ConfigError, match=r"endType\.max_num_msgs: missing; SAUCE knows no other end"):
        plan_of(config_of() | {"endType": {"class": "limits", "max_turns": 3}}, rules="original")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"host": HOST | {"class": "moderator"}}, r"host\.class: 'moderator'; SAUCE's hosts are 'Round Robin Host'"),
        ({"sessionRoom": "batch"}, r"sessionRoom: 'batch', where nobody has names"),
        ({"sessionRoom": {"name": "batch"}}, r"sessionRoom: 'batch', where nobody has names"),
        ({"persons": [seat("A")], "sessionRoom": "base"}, r"sessionRoom: 'base', where persons have names"),
        ({"persons": [person("A", "batchPersonHuggingFace", model_path="m")]}, r"persons\[0\]\.names: missing"),
        ({"persons": [seat("A", tag=None)]}, r"persons\[0\]\.tag: missing; SAUCE's batches label each seat"),
        ({"persons": [seat("A", person_kwargs={"name": "B"})]}, r"persons\[0\]\.person_kwargs\.name: stands in names"),
        ({"persons": [seat("A") | {"class": ["person"]}]}, r"persons\[0\]\.class: .* valid string, got \['p"),
        ({"persons": [seat("A", prompt_type="chatml")]}, r"persons\[0\]\.prompt_type: 'chatml'; one of mistral_instr"),
    ],
)
def test_the_original_takes_no_file_that_stops_it(changes, fault) -> None:
    with pytest.raises(ConfigError, match=f"^config: {fault}"):
        plan_of(config_of() | changes, rules="original")


def test_the_original_takes_a_whole_file_of_several_rooms() -> None:
    plan = plan_of(
        config_of(seat("A", person_kwargs={"opinion": "for"}), seat("B", person_kwargs=None)), "x", "original"
    )
    assert [(one.name, one.opinion) for one in plan.persons_in(1)] == [("A2", "for"), ("B2", "")]


def test_the_original_asks_at_numbers_alone_and_says_so(caplog) -> None:
    question = {"id": "q", "question": "?", "iterations": [2, "never", None, 3.0, 1.5, -1]}
    plan = plan_of(config_of(questions=[question]), rules="original")
    assert plan.experiment.survey_questions[0].iterations == (2, 3, -1)
    assert "of 'q', SAUCE asks at numbers alone" in caplog.text


def test_who_is_never_called_on_needs_no_lines_under_the_original_rules(discussion) -> None:
    persons = [person("A", "fake_person", things_to_say=["1", "2"]), person("B", "fake_person", things_to_say=[])]
    config = config_of(*persons, end={"max_num_msgs": 2}) | {"host": HOST | {"skip": 0}}
    assert [line.text for line in finished(discussion(config, rules="original")).sessions[0].lines()] == ["1", "2"]


def test_the_original_asks_nobody_more_in_its_batches_when_a_line_is_missing(discussion) -> None:
    seats = [seat(name, "fake_person", things_to_say=["1"]) for name in "AB"]
    question = {"id": "q", "question": "?", "iterations": [-1, 0]}
    model = finished(discussion(config_of(*seats, questions=[question, question | {"id": "r"}]), rules="original"))
    assert [[line.speaker for line in lines] for lines in model.batch] == [["A1", "A2"], ["B1", "B2"]]
    assert {session.end for session in model.sessions} == {"a fake person ran out of lines"}


def test_the_same_file_in_toml_and_in_json_is_the_same_discussion(tmp_path) -> None:
    toml = Path("models/mesa_llm_models/discussion/data/trolley.toml").read_text(encoding="utf-8")
    file = tmp_path / "trolley.json"
    file.write_text(json.dumps(tomllib.loads(toml)), encoding="utf-8")
    shouted = tmp_path / "TROLLEY.TOML"
    shouted.write_bytes(toml.replace("\n", "\r\n").encode())
    assert read_plan(str(file)) == read_plan(str(shouted)) == read_plan("trolley")


# -- turns


def test_silent_persons_do_not_go_on_for_ever(discussion) -> None:
    quiet = [person(name, "first_decides_then_generates", talkativeness=0) for name in "AB"]
    model = finished(discussion(config_of(*quiet)))
    assert (model.n_messages, model.time) == (0, 10)
    assert model.results()["ends"] == {"nobody spoke for 10 turns": 1}


@pytest.mark.parametrize(
    ("kind", "calls"),
    [("person", 4), ("choosing_person", 4), ("first_decides_then_generates", 8), ("first_generates_then_decides", 8)],
)
def test_each_way_to_speak_costs_its_number_of_requests(discussion, kind, calls) -> None:
    def reply(request):
        wants = request.schema is not None and "speak" in str(request.schema)
        if wants:
            return {"speak": True, "reason": "now"}
        text = f"Well, {request.salt.time}."
        return ToolCall("say", {"text": text}) if request.tools else {"answer": text}

    model = finished(discussion(config_of(person("A", kind), person("B", kind)), llm=ScriptedLLM(reply)))
    assert (model.n_messages, model.usage.calls, model.usage.failures) == (4, calls, 0)


def test_one_model_decides_and_another_writes(discussion) -> None:
    decider = ScriptedLLM(lambda request: {"speak": True, "reason": "now"}, name="decider")
    writer = ScriptedLLM(lambda request: ToolCall("say", {"text": f"Well, {request.salt.time}."}), name="writer")
    persons = [person(name, "first_decides_then_generates") for name in "AB"]
    model = finished(discussion(config_of(*persons), llm={"decide": decider, "*": writer}))
    assert model.runlog.calls()["model"].value_counts().to_dict() == {"decider": 4, "writer": 4}


def test_models_that_a_file_names_are_mapped_to_others(discussion) -> None:
    persons = [person("A", "person_hugging_face", model_path="big"), person("B", "person_gpt3_5")]
    model = finished(discussion(config_of(*persons), providers={"big": "random", "person_gpt3_5": "rule"}))
    assert set(model.runlog.decisions()["by"]) == {"random", "rule"}


def test_implied_model_is_mapped_and_an_absent_one_is_refused(discussion) -> None:
    config = config_of(person("A", "person_gpt3_5"), person("B", "person"))
    model = finished(discussion(config, providers={"gpt-3.5-turbo": "random"}))
    assert set(model.runlog.decisions()["by"]) == {"random", "rule"}
    with pytest.raises(ConfigError, match=r"names no model 'gpt-5'; .* gpt-3.5-turbo, person, .* phases decide, write"):
        discussion(config, providers={"gpt-5": "random"})


def test_a_failed_reply_is_a_silence_with_its_reason(discussion) -> None:
    model = discussion(config_of(), llm=ScriptedLLM(lambda request: "no call"), attempts=1)
    model.step()
    (silence,) = model.sessions[0].room.silences
    decision = model.last_decisions[silence.agent_id]
    assert isinstance(decision, Failure)
    assert silence.reason.startswith("the reply")


@pytest.mark.parametrize("host", ["random", "moderator", "everyone"])
@pytest.mark.parametrize("llm", ["rule", "random"])
def test_every_host_brings_a_conversation_to_its_end(host, llm) -> None:
    model = finished(DiscussionModel(config="debate", host=host, rng=2, llm=llm))
    assert not model.running
    assert model.n_messages >= 12


def test_another_activation_lets_people_speak_without_a_host() -> None:
    model = finished(DiscussionModel(config="debate", activation="everyone", rng=1))
    assert (model.time, model.n_messages) == (3, 12)


def test_a_moderator_by_rule_lets_everybody_speak_equally() -> None:
    model = finished(DiscussionModel(config="debate", host="moderator", rng=2))
    assert list(model.talk()["messages"]) == [3, 3, 3, 3]


def test_a_moderator_by_rule_knows_names_with_two_blanks(discussion) -> None:
    model = finished(discussion(config_of(person("Dr.  A"), person("B")) | {"host": {"class": "moderator"}}))
    assert model.talk_gini == 0


def test_those_called_on_together_do_not_hear_one_another() -> None:
    model = DiscussionModel(config="debate", host="everyone", rng=1)
    model.step()
    observed = model.runlog.decisions()
    assert len(observed) == model.n_messages == 4


def test_a_limit_of_time_ends_the_talk_by_the_clock_of_the_room() -> None:
    model = finished(DiscussionModel(config="trolley", max_messages=1000, max_minutes=2, rng=1))
    assert model.results()["ends"] == {"the time is up": 1}
    assert 2 <= model.minutes < 2.5


@pytest.mark.parametrize("shows", [True, False])
def test_the_time_left_is_shown_if_it_is_to_be(shows) -> None:
    model = DiscussionModel(config="trolley", shows_time_left=shows, rng=1)
    assert ("min 0 s are left" in model.persons[0].observe().text) == shows


# -- questions aside


def test_questions_aside_see_the_conversation_and_never_enter_it(discussion) -> None:
    def reply(request):
        text = f"I am for it, {request.salt.time}."
        return {"answer": "yes"} if request.salt.purpose == "survey" else ToolCall("say", {"text": text})

    model = finished(discussion(config_of(questions=[QUESTION]), llm=ScriptedLLM(reply)))
    room = model.sessions[0].room
    assert [line.text for line in room.lines] == [f"I am for it, {step}." for step in (1, 2, 3, 4)]
    assert [answer.after for answer in room.answers] == [0, 0, 2, 2, 4, 4]
    prompts = model.runlog.calls().query("purpose == 'survey'")["prompt"]
    assert [prompt.count("I am for it,") for prompt in prompts] == [0, 0, 2, 2, 4, 4]


def test_question_at_a_message_count_is_asked_once(discussion) -> None:
    quiet = [person(name, "first_decides_then_generates", talkativeness=0) for name in "AB"]
    model = finished(discussion(config_of(*quiet, questions=[{**QUESTION, "iterations": "always"}])))
    assert len(model.sessions[0].room.answers) == 2


def test_a_question_is_asked_by_the_clock(discussion) -> None:
    question = {"id": "q", "question": "?", "every_minutes": 0.25}
    clock = {"pause_s": 10, "word_s": 0}  # four turns of ten seconds
    model = finished(discussion(config_of(questions=[question], clock=clock)))
    assert [answer.after for answer in model.sessions[0].room.answers] == [2, 2, 3, 3]


def test_answers_of_those_who_say_nothing_stand_one_after_the_other(discussion) -> None:
    quiet = [person(name, "first_decides_then_generates") for name in "AB"]
    question = {"id": "q", "question": "?", "every_minutes": 0.25, "scale": [0, 99]}
    silent = {"speak": False, "reason": "."}
    turns = ScriptedLLM(lambda request: {"answer": request.salt.time} if request.salt.purpose == "survey" else silent)
    model = finished(discussion(config_of(*quiet, questions=[question], end={"max_silent_turns": 60}), llm=turns))
    assert set(drift([model])["moved"]) == {57}
    records = sauce_output(model)["survey_question"]
    assert [[entry["answer"] for entry in one["chat_entry"]] for one in records[:2]] == [[3, 3], [6, 6]]


def test_curves_go_from_left_to_right_however_long_each_room_talks(discussion) -> None:
    talkers = [person(name, "choosing_person", attitude=5) for name in "AB"]
    question = {**QUESTION, "choices": [], "scale": [0, 10], "iterations": [0, -1]}
    end = {"max_num_msgs": 99, "max_turns": 9}
    points: Any = curve([finished(discussion(config_of(*talkers, questions=[question], end=end), n_rooms=8))])
    assert points["after"].nunique() > 3
    assert points["after"].is_monotonic_increasing


def test_a_missing_answer_is_counted_and_never_a_zero(discussion) -> None:
    question = {**QUESTION, "choices": [], "scale": [0, 10], "iterations": [0]}

    def reply(request):
        wrong = request.salt.agent == 1
        return {"answer": 11 if wrong else 7} if request.salt.purpose == "survey" else ToolCall("say", {"text": "Hm."})

    model = discussion(config_of(questions=[question]), llm=ScriptedLLM(reply))
    model.step()
    assert (model.n_missing, model.results()["vote_missing"]) == (1, 1)
    assert list(model.attitudes()["answer"]) == [7]


def test_questions_due_within_a_turn_are_asked_after_it(discussion) -> None:
    questions = [{**QUESTION, "id": "two", "iterations": [2]}, {"id": "each", "question": "?", "every": 3}]
    persons = [
        person(name, attitude=attitude, strength=1) for name, attitude in {"A": 0, "B": 0, "C": 9, "D": 9}.items()
    ]
    config = config_of(*persons, questions=questions)
    end = {"class": "limits", "max_turns": 3, "judge": "Agreed?", "judge_every": 3}
    model = finished(discussion(config | {"host": {"class": "everyone"}, "endType": end}))
    moments = {(one.question, one.after) for one in model.sessions[0].room.answers}
    assert moments == {("each", 0), ("two", 4), ("each", 4), ("each", 8), ("each", 12)}
    assert [ruling.after for ruling in model.sessions[0].room.rulings] == [4, 8]


def test_agreement_ends_the_talk(discussion) -> None:
    persons = [person(name, attitude=attitude, strength=0) for name, attitude in (("A", 9), ("B", 1), ("C", 8))]
    question = {**QUESTION, "iterations": "always", "choices": ["no", "yes"]}
    model = finished(discussion(config_of(*persons, questions=[question], end={"agreement": "vote"})))
    assert model.results()["ends"] == {"all answered 'vote' alike: yes": 1}


@pytest.mark.parametrize(("after", "messages"), [(None, 3), (0, 1), (2, 2)])
def test_answers_that_happen_to_agree_at_first_do_not_end_the_talk(discussion, after, messages) -> None:
    persons = [person(name, attitude=9) for name in "ABC"]
    end = {"agreement": "vote", "agreement_after": after, "max_num_msgs": 12}
    question = {**QUESTION, "iterations": "always", "choices": ["no", "yes"]}
    model = finished(discussion(config_of(*persons, questions=[question], end=end)))
    assert (model.results()["ends"], model.n_messages) == ({"all answered 'vote' alike: yes": 1}, messages)


def test_the_output_holds_what_each_message_and_answer_was_a_reply_to(discussion) -> None:
    def reply(request):
        if request.salt.purpose == "survey":
            return {"answer": "yes"}
        text = f"I am for it, {request.salt.time}."
        return {"speak": True, "reason": "."} if request.schema else ToolCall("say", {"text": text})

    persons = [person("Ada"), person("Ben", "first_decides_then_generates")]
    model = finished(discussion(config_of(*persons, questions=[QUESTION]), llm=ScriptedLLM(reply)))
    output = sauce_output(model)
    entries = [*output["chat_entry"], *(entry for one in output["survey_question"] for entry in one["chat_entry"])]
    texts = ["\n".join(message["content"] for message in entry["prompt"]) for entry in entries]
    assert all(f"{entry['entity']['name']} is here." in text for entry, text in zip(entries, texts, strict=True))
    assert "Yes or no?" in texts[-1]
    assert "I am for it," not in str(output["chat_entry"][0]["prompt"])
    by_rule = sauce_output(finished(discussion(config_of(*persons))))
    assert {entry["prompt"] for entry in by_rule["chat_entry"]} == {None}


@pytest.mark.parametrize(("apart", "end"), [(1, "a judge found agreement"), (5, "6 messages")])
def test_a_judge_by_rule_ends_the_talk_of_those_who_agree(discussion, apart, end) -> None:
    persons = [person(name, attitude=attitude, strength=1) for name, attitude in (("A", 4), ("B", 4 + apart))]
    config = config_of(*persons, end={"max_num_msgs": 6, "judge": "Do they agree?"})
    model = finished(discussion(config))
    assert model.results()["ends"] == {end: 1}
    assert [ruling.after for ruling in model.sessions[0].room.rulings] == ([2] if apart == 1 else [2, 4])


def test_a_judge_sees_the_talk_and_a_judge_who_fails_ends_nothing(discussion, tmp_path) -> None:
    def reply(request):
        if request.salt.purpose != "judge":
            return ToolCall("say", {"text": f"Well, {request.salt.time}."})
        return {"agreed": True, "reason": "They do."} if request.messages[-1].content.count("Well,") > 2 else "Hm."

    log = tmp_path / "run.sqlite"
    config = config_of(end={"max_num_msgs": 9, "judge": "Agreed?", "judge_every": 1})
    model = finished(discussion(config, llm=ScriptedLLM(reply), log=log, attempts=1))
    model.close()
    assert [ruling.agreed for ruling in model.sessions[0].room.rulings] == [None, None, True]
    assert model.usage_by_purpose["judge"].failures == 2
    again = finished(discussion(config, llm=ScriptedLLM(reply), log=log, attempts=1, replay=True))
    assert (again.runlog.digest, again.usage.calls) == (model.runlog.digest, 0)


def test_scripted_persons_say_each_of_their_lines_once(discussion) -> None:
    lines = ["one", "two", "aside", "last"]
    persons = [person(name, "fake_person", things_to_say=lines) for name in "AB"]
    questions = [{"id": name, "question": "?", "iterations": [-1]} for name in ("p", "q")]
    output = sauce_output(finished(discussion(config_of(*persons, questions=questions), llm="random")))
    assert [entry["answer"] for entry in output["chat_entry"]] == ["one", "one", "two", "two"]
    answers = [[entry["answer"] for entry in record["chat_entry"]] for record in output["survey_question"]]
    assert answers == [["aside", "aside"], ["last", "last"]]
    assert [record["iteration"] for record in output["survey_question"]] == [4, 4]


# -- several rooms, and the studies


def test_rooms_run_side_by_side_in_one_step_and_hear_nothing_of_one_another() -> None:
    model = finished(DiscussionModel(config="debate", n_rooms=5, rng=1))
    assert (model.time, model.n_messages) == (12, 60)
    rooms = [session.room for session in model.sessions]
    assert len({tuple(line.text for line in room.lines) for room in rooms}) > 1
    speakers = [{line.speaker_id for line in room.lines} for room in rooms]
    assert not speakers[0] & speakers[1]


def test_lists_of_names_make_rooms(discussion) -> None:
    seats = [
        {"class": "person", "tag": tag, "names": [f"{tag}1", f"{tag}2"], "background_stories": ["x", "y"]}
        for tag in "AB"
    ]
    model = finished(discussion(config_of(*seats)))
    assert [[one.plan.name for one in session.persons] for session in model.sessions] == [["A1", "B1"], ["A2", "B2"]]
    assert [len(one["chat_entry"]) for one in sauce_output(model)] == [4, 4]


def test_an_attitude_is_pulled_by_the_latest_of_each_other() -> None:
    lines = [Line(2, "B", "I put it at 0 of 10."), Line(2, "B", "now 2 of 10"), Line(3, "C", "8 of 10")]
    assert attitude_after(5, 1, lines) == 5
    assert attitude_after(6, 0.5, lines) == pytest.approx(0.5 * 6 + 0.5 * (6 + 2 + 8) / 3)
    assert attitude_after(5, 0, [Line(2, "B", "no number")]) == 5


@pytest.mark.parametrize(("strength", "moves"), [(1.0, False), (0.0, True)])
def test_a_debate_moves_those_who_can_be_moved_to_the_middle(discussion, strength, moves) -> None:
    plan = read_plan("debate").model_dump(by_alias=True)
    persons = [{**one, "strength": strength} for one in plan["persons"]]
    model = finished(discussion({**plan, "persons": persons, "sessionRoom": "base"}))
    found = curve([model], "toll")
    gaps = found.groupby("after")["mean"].agg(lambda means: means.max() - means.min())
    assert gaps.iloc[0] == 6
    assert (gaps.iloc[-1] <= 1) == moves  # answers are whole numbers
    assert (drift([model])["moved"].abs().sum() > 0) == moves


def test_in_the_trolley_study_people_talk_as_often_as_they_are_talkative() -> None:
    shares = talk_shares([run_rooms("trolley", n_rooms=30, rng=3)]).set_index("name")
    assert list(shares.index) == ["Lena", "Oskar", "Tomi", "Ruth"]
    # 30 rooms × about 13 calls: a standard error of at most 0.025, and 0.08 is three of them
    assert shares["spoke"].to_list() == pytest.approx([0.9, 0.5, 0.25, 0.15], abs=0.08)
    assert shares["share"].is_monotonic_decreasing


def test_answers_by_choice_are_counted_as_shares_of_those_who_answered() -> None:
    shares: Any = choice_shares([run_rooms("trolley", n_rooms=3, rng=1)])
    first = shares.query("after == 0").to_dict("records")
    assert [(row["answer"], row["share"], row["answers"]) for row in first] == [("no", 0.5, 12), ("yes", 0.5, 12)]
    assert shares.groupby("after")["share"].sum().to_list() == [1.0] * shares["after"].nunique()


def test_a_budget_of_replies_ends_all_rooms(discussion) -> None:
    llm = ScriptedLLM(lambda request: ToolCall("say", {"text": f"Well, {request.salt.agent}, {request.salt.time}."}))
    model = finished(discussion(config_of(end={"max_num_msgs": 50, "max_calls": 6}), llm=llm, n_rooms=2))
    assert model.usage.calls == 6
    assert model.results()["ends"] == {"6 replies are spent": 2}


@pytest.mark.parametrize("llm", ["rule", "random"])
def test_a_budget_of_replies_ends_a_discussion_without_a_language_model(llm, discussion) -> None:
    end = {"class": "limits", "max_num_msgs": None, "max_calls": 6}
    people = [person("Ada", talkativeness=1), person("Ben", talkativeness=1)]
    model = finished(discussion(config_of(*people, end=end, questions=[QUESTION]), llm=llm))
    assert model.results()["ends"] == {"6 replies are spent": 1}  # two answers before, two lines, two answers after
    assert model.n_messages == 2


def test_an_end_that_may_never_come_is_named_in_a_warning(discussion, caplog) -> None:
    end = {"class": "limits", "max_num_msgs": None, "judge": "Agreed?"}
    discussion(config_of(end={**end, "max_turns": 3}))
    assert caplog.records == []
    discussion(config_of(end={**end, "max_turns": 3, "combine": "all"}))
    assert "people may speak on and never agree; max_turns, or another" in caplog.text


@pytest.mark.slow
def test_a_judge_whose_provider_nobody_knows_is_found_before_anybody_speaks(discussion) -> None:
    end = {"class": "limits", "max_num_msgs": None, "judge": "Agreed?"}
    with pytest.raises(ConfigError, match="no provider is known for llm='neat'"):
        discussion(config_of(end=end), llm="random", providers={"judge": "neat"})


# -- what is shown and written


def test_the_chat_shows_who_kept_silent_and_why_oldest_first() -> None:
    model = DiscussionModel(config="trolley", rng=3)
    room = model.sessions[0].room
    lena, oskar, *_ = room.members
    room.say(lena, "<b>Well</b>")
    room.call([oskar])
    room.due()
    room.receive(oskar, Wish(speak=False, reason="I listen."), "decide")
    room.say(lena, "Oskar?")
    items = chat_items(model.sessions[0])
    assert [(item["name"], item["is_silence"], item["text"]) for item in items] == [
        ("Lena", False, "<b>Well</b>"),
        ("Oskar", True, "I listen."),
        ("Lena", False, "Oskar?"),
    ]
    shown = markup(CHAT, topic="", lines="2 messages", silences="1 silence", now="", end="", items=items)
    assert "&lt;b&gt;Well&lt;/b&gt;" in shown


def test_people_play_those_whom_the_file_calls_human(discussion) -> None:
    config = config_of(person("Hal", "human"), person("Ida", "asynchronous_human"), person("Bob"))
    assert [one.llm for one in discussion(config, llm="random").persons] == ["human", "human", "random"]
    machines = discussion(config, llm="random", people_play=False)
    assert [one.llm for one in machines.persons] == ["random"] * 3


@pytest.mark.parametrize("llm", ["rule", "random"])
@pytest.mark.parametrize("manner", get_args(Manner))
@pytest.mark.parametrize("rules", ["corrected", "original"])
def test_every_way_to_speak_ends_by_itself(discussion, llm, manner, rules) -> None:
    kind = next(name for name, known in MANNERS.items() if known == manner)
    persons = [person(name, kind, opinion="Yes.", things_to_say=["x"]) for name in "AB"]
    options = {"llm": llm, "rules": rules, "people_play": False}
    model = finished(discussion(config_of(*persons, questions=[QUESTION]), **options))
    assert (model.running, model.usage.failures) == (False, 0)


def test_times_called_on_are_whole_numbers_from_zero() -> None:
    axes = talk_chart(DiscussionModel(rng=1)).figure().axes[0]
    assert axes.get_xlim()[0] == 0
    assert {float(tick).is_integer() for tick in axes.get_xticks()} == {True}


@pytest.mark.parametrize("topic", TOPICS)
def test_debate_parties_start_apart_and_the_page_shows_their_positions(topic, tmp_path) -> None:
    findings = study_debate(StudySetup([1], tmp_path), rooms=2, topic=topic)
    starts: list[Any] = [row["first"] for row in findings.tables[1].rows]
    assert starts[0] > 6 > 4 > starts[1]
    (chart,) = findings.charts()
    assert isinstance(chart, Chart)
    assert chart.x == "messages so far"


FACTS = {
    "the topic": "A town council discusses a toll of four dollars",
    "who is there": "In the room: Grace, Ines, Milan, Walter.",
    "what the others said, by name": "Walter: “Line 2.”",
    "what one said oneself": "You: “Line 1.”",
    "one's side": "You want the toll: the streets are full",
    "who spoke last": "Answer Milan, with a reason or an example that nobody has named yet.",
    "how long": "one or two sentences, fewer than 40 words.",
}
"""What Ines would know and need in the second round."""


@pytest.mark.parametrize("fact", FACTS)
def test_a_discussant_reads_what_it_would_know_and_need(fact) -> None:
    def script(request):
        if request.schema is not None:
            return {"answer": 5}
        prompts.append("\n".join(message.content for message in request.messages))
        return ToolCall("say", {"text": f"Line {len(prompts)}."})

    prompts: list[str] = []
    DiscussionModel(config="debate", people_play=False, llm=ScriptedLLM(script), rng=1).run_for(5)
    assert FACTS[fact] in prompts[4]
    assert prompts[4].endswith(FACTS["how long"])


def test_a_line_that_repeats_another_is_a_silence_with_its_reason(discussion) -> None:
    llm = ScriptedLLM(lambda request: ToolCall("say", {"text": "We cannot afford another toll."}))
    model = discussion(config_of(), llm=llm)
    model.run_for(2)
    room = model.sessions[0].room
    assert [line.text for line in room.lines] == ["We cannot afford another toll."]
    assert [(one.name, one.reason) for one in room.silences] == [("Ben", "it repeats Ada")]
