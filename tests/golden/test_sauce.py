"""SAUCE's rooms, as recorded from its own code: the same speakers, lines, times, surveys and numbers of requests."""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import ConfigError, ScriptedLLM, ToolCall
from mesa_llm_models.discussion.config.plan import MANNERS
from mesa_llm_models.discussion.model import DiscussionModel
from mesa_llm_models.discussion.output import sauce_output
from mesa_llm_models.discussion.world import Line
from mesa_llm_models.discussion.world.rules import speaks
from tests.golden.reading import Recorded, golden, section

CASES = golden("sauce")

MAX_TURNS = 400
"""Maximum number of turns of a run here."""

NOT_COMPARED = {
    "*.keys.*": "compared in test_the_output_has_the_form_of_the_original",
}
"""Keys that no test reads → why."""

OTHER_BATCHES = {"AttributeError": "whoever keeps silent breaks the next prompt there, and not here"}
"""What stops the original in its batches and not us → why."""

OTHER_MODELS = {"NotImplementedError": "any model can play a discussant here", "IndexError": "no marker is needed"}
"""What stops the original in asynchronous runs and not us → why."""


def labelled(name: str) -> Any:
    cases = section(CASES, name)
    return pytest.mark.parametrize("case", cases, ids=[str(case.get("label", "")) for case in cases])


def finished(model: DiscussionModel, turns: int = MAX_TURNS) -> DiscussionModel:
    while model.running and model.time < turns:
        model.step()
    return model


def model_of(config: Any, folder: Path, **options: Any) -> DiscussionModel:
    file = folder / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    return DiscussionModel(config=str(file), rules="original", **options)


def short(entries: list[Any]) -> list[Any]:
    """Write entries as the golden file does."""
    return [
        {"batch": short(entry)}
        if isinstance(entry, list)
        else {"who": entry["entity"]["name"], "answer": entry["answer"], "time": entry["time"]}
        for entry in entries
    ]


def written(output: dict[str, Any]) -> dict[str, Any]:
    asked = [
        {"id": one["question_id"], "iteration": one["iteration"], "chat_entry": short(one["chat_entry"])}
        for one in output["survey_question"]
    ]
    return {"chat_entry": short(output["chat_entry"]), "survey_question": asked}


def recorded(output: Any) -> dict[str, Any]:
    return {name: value for name, value in output.items() if name != "keys"}


def compare_run(model: DiscussionModel, r: Any) -> None:
    """Compare a run that came to its end, or was stopped, in the original."""
    finished(model)
    if "out" in r:
        found = sauce_output(model)
        assert written(found) == recorded(r["out"])
        assert len(model.sessions[0].room.lines) == r["room_len_at_end"]
    else:
        assert r["run_raises"]
        assert spoken(model.sessions[0].room.lines) == spoken(r["room_so_far"])


def spoken(lines: Any) -> Any:
    """Return who said what, of our lines, of recorded ones in any of their forms, and of lists of either."""
    if isinstance(lines, Line):
        return [lines.speaker, lines.text]
    if isinstance(lines, dict):
        return spoken(lines["batch"]) if "batch" in lines else [lines["who"], lines["answer"]]
    return [spoken(one) for one in lines] if isinstance(lines, list) else lines


def read_whole(config: Any) -> None:
    """Count a configuration as read; a faulty one need not be an object."""
    if isinstance(config, Recorded):
        config.read_all()


def made_or_refused(config: Any, r: Any, folder: Path, rng: int, *, in_batch: bool = False) -> DiscussionModel | None:
    """Make a model; None where the file is refused, as what stopped the original in its run may be before it begins.

    Whether several rooms are run is an option of the original's command line, and stands in the file itself here: one
    of the other form stops the original alone.
    """
    persons = config.get("persons") if isinstance(config, dict) else None
    forms = {"names" in one for one in persons if isinstance(one, dict)} if isinstance(persons, list) else set()
    if forms == {not in_batch} and (r.get("load_raises") or r.get("run_raises")):
        r.read_all()
        return None
    if r.get("load_raises"):
        with pytest.raises(ConfigError, match=r"config\.json: "):
            model_of(config, folder)
        return None
    try:
        return model_of(config, folder, rng=rng)
    except ConfigError:
        assert r["run_raises"]
        r.read_all()
        return None


@labelled("sync")
def test_a_room_is_what_it_was(case: Any, tmp_path: Path) -> None:
    r, seed = case["r"], re.search(r"seed (\d+)", case["label"])
    read_whole(case["config"])
    model = made_or_refused(case["config"], r, tmp_path, int(seed[1]) if seed else 1)
    if model is not None:
        compare_run(model, r)


@labelled("batch")
def test_a_batch_is_what_it_was(case: Any, tmp_path: Path) -> None:
    r, seed = case["r"], re.search(r"seed (\d+)", case["label"])
    read_whole(case["config"])
    model = made_or_refused(case["config"], r, tmp_path, int(seed[1]) if seed else 1, in_batch=True)
    if model is None:
        return
    finished(model)
    if r.get("run_raises") in OTHER_BATCHES:
        r.read_all()
        return
    if "run_raises" in r:
        assert r["run_raises"] == "IndexError"
        assert model.sessions[0].end == "a fake person ran out of lines"
        assert spoken(model.batch) == spoken(r["room_so_far"])
        return
    assert [written(one) for one in sauce_output(model)] == [recorded(one) for one in r["out"]]
    assert len(model.batch) == r["room_len_at_end"]


def asynchronous(case: Any) -> dict[str, Any]:
    """Return the configuration of an asynchronous case, which says only what differs from one to the next."""
    persons = [
        {"class": kind, "name": name, "background_story": "b", "opinion": "o", **lines_of(case, kind, name)}
        for kind, name in zip(case["persons"], "ABCDEFGH", strict=False)
    ]
    host = {"class": "Round Robin Host", "start_person_index": 0}
    questions = [{"id": name, "question": "Q", "iterations": times} for name, times in moments_of(case).items()]
    experiment = {"scenario": "s", "survey_questions": case.get("survey_questions", questions)}
    return {"persons": persons, "host": host, "endType": case["end"], "experiment": experiment}


def lines_of(case: Any, kind: str, name: str) -> dict[str, list[str]]:
    """Return the lines of a fake person, which are what it was recorded to say; other kinds have none."""
    said = case["r"].get("room_so_far") or case["r"].get("out", {}).get("chat_entry", [])
    return {"things_to_say": [text for who, text in spoken(said) if who == name]} if kind == "fake_person" else {}


def moments_of(case: Any) -> dict[str, list[int]]:
    """Return at which numbers of messages each question was asked.

    The record of a question that was asked together with another one counts the answers to the other.
    """
    out = case["r"].get("out", {})
    moments: dict[str, list[int]] = {}
    before, n_lines = None, 0
    for one in out.get("survey_question", []):
        since = one["chat_entry"][before["iteration"] : one["iteration"]] if before else []
        is_with_it = before and before["id"] != one["id"] and not any(entry in out["chat_entry"] for entry in since)
        n_lines = n_lines if is_with_it else one["iteration"]
        moments.setdefault(one["id"], []).append(n_lines)
        before = one
    return moments


def by_script(case: Any, calls: list[Any]) -> ScriptedLLM:
    """Make a language model of recorded replies.

    Empty ones come as JSON, as an empty reply is asked for again here; so do those that may be JSON themselves.
    """
    decisions, texts = iter(list(case["scheduler_outputs"])), iter(list(case["generator_outputs"]))

    def reply(request: Any) -> Any:
        is_decision = "Do you want to" in request.messages[-1].content
        text = next(decisions, "<pass>") if is_decision else next(texts, "")
        calls.append(["decide" if is_decision else "write", text])
        return text if text.strip() and not text.lstrip().startswith("{") else {"answer": text}

    return ScriptedLLM(reply)


@pytest.mark.parametrize(
    "case", [one for one in section(CASES, "async") if "persons" in one], ids=lambda case: case["label"]
)
def test_who_decides_first_is_what_it_was(case: Any, tmp_path: Path) -> None:
    r, calls = case["r"], []
    asked = [["decide" if who == "sch" else "write", text] for who, text in case.get("calls", [])]
    if "load_raises" in r:  # what the file lacked is not recorded
        case.read_all()
        return
    model = model_of(asynchronous(case), tmp_path, rng=1, llm=by_script(case, calls), concurrency=1)
    if r.get("run_raises") in OTHER_MODELS:
        case.read_all()
        return
    if "run_raises" in r:  # the recorder stopped a run in which nobody speaks
        while model.running and model.time < MAX_TURNS and len(calls) < len(asked):
            model.step()
        assert model.running
        assert spoken(model.sessions[0].room.lines) == spoken(r["room_so_far"])
    else:
        compare_run(model, r)
    assert calls == asked


@pytest.mark.parametrize(
    "case", [one for one in section(CASES, "async") if "model_calls" in one], ids=lambda case: case["label"]
)
def test_a_shipped_configuration_runs_unchanged(case: Any) -> None:
    file = Path(os.environ.get("MESA_LLM_DATA", "."), "sauce", Path(case["label"]).name)
    wanted = dict(case["prompt_contains"])
    if not file.is_file():
        case.read_all()
        pytest.skip(f"MESA_LLM_DATA holds no sauce/{file.name}")
    config = json.loads(file.read_text(encoding="utf-8"))
    prompts: list[str] = []

    def reply(request: Any) -> str:
        prompts.append("\n".join(message.content for message in request.messages))
        return "<speak>" if "Do you want to" in request.messages[-1].content else "words"

    model = finished(DiscussionModel(config=str(file), rules="original", rng=1, llm=ScriptedLLM(reply)))
    texts = {"personality": "speaking_personality", "opinion": "opinion", "background": "background_story"}
    found = {
        name: any(person.get(key, "\0").strip() in prompt for prompt in prompts for person in config["persons"])
        for name, key in texts.items()
    }
    marks = {"example": "For example:", "start": "was opened at [", "now": "It is now ["}
    assert found | {name: any(mark in one for one in prompts) for name, mark in marks.items()} == wanted
    said = [line.speaker for line in model.sessions[0].lines()]
    assert len(prompts) == case["model_calls"]
    assert said == case["speakers"][: case["n_messages"]]
    assert len(model.sessions[0].records) == case["n_survey_records"]


@pytest.mark.parametrize("rules", ["original", "corrected"])
@pytest.mark.parametrize("file", sorted(Path(os.environ.get("MESA_LLM_DATA", "."), "sauce").glob("*.json")), ids=str)
def test_a_configuration_of_any_name_runs_to_its_end(file: Path, rules: Any) -> None:
    points = itertools.count()

    def reply(request: Any) -> Any:
        if rules == "original":
            return "<speak>"
        if request.schema is None:
            return ToolCall("say", {"text": f"Point {next(points)}."})
        if "speak" in str(request.schema):
            return {"speak": True, "reason": "now"}
        return {"answer": f"Point {next(points)}."}

    model = DiscussionModel(config=str(file), rules=rules, rng=1, llm=ScriptedLLM(reply), people_play=False)
    finished(model)
    assert (model.running, model.usage.failures) == (False, 0)
    assert {len(one.room.lines) for one in model.sessions} >= {model.plan.end.max_num_msgs} or rules == "original"


@pytest.mark.parametrize("case", section(CASES, "fine_tuned_should_speak"), ids=lambda case: repr(case["raw"]))
def test_a_text_speaks_where_it_did(case: Any) -> None:
    assert speaks(case["raw"], "<pass>", ignores_tokens=case["generate_without_special_tokens"]) == case["speaks"]


def test_every_registered_class_of_person_is_known() -> None:
    assert set(CASES.get("registered_person_classes", ())) <= set(MANNERS)


@pytest.mark.parametrize("wanted", section(CASES, "gpt35_roles"))
def test_a_conversation_in_roles_is_what_it_was(wanted: Any, tmp_path: Path) -> None:
    persons = [{"class": "person_gpt3_5", "name": name, "background_story": "b"} for name in "AB"]
    host = {"class": "Round Robin Host", "start_person_index": 0}
    end = {"class": "iteration", "max_num_msgs": 9}
    config = {"persons": persons, "host": host, "endType": end, "experiment": {"scenario": "s"}}
    model = model_of(config, tmp_path, rng=1)
    first, second = model.persons
    spoken = [(first, "a1"), (second, "b1"), (second, "b2"), (first, "a2")]
    room = first.room
    room.lines += [Line(one.unique_id, one.config.name, text) for one, text in spoken]
    live = first.prompt(room.observe(first.unique_id, "write"))
    assert [message.role for message in live] == wanted.get("live", [message.role for message in live])
    assert live[4].content == wanted.get("content_merge", live[4].content)
    room.call([first.unique_id], ("q", "Q"))
    copied = first.prompt(room.observe(first.unique_id, "write"))
    assert [message.role for message in copied] == wanted.get("survey_deepcopy", [one.role for one in copied])


def forms() -> list[dict[str, Any]]:
    """Return the different forms of an output with lines: the names of its keys, by what they are keys of."""
    outs = [one["r"]["out"] for one in section(CASES, "sync") if one["r"].get("out", {}).get("chat_entry")]
    return [dict(form) for form in {str(out["keys"]): out["keys"] for out in outs if "keys" in out}.values()]


@pytest.mark.parametrize("keys", forms())
def test_the_output_has_the_form_of_the_original(keys: dict[str, Any]) -> None:
    found = sauce_output(finished(DiscussionModel(config="debate", rng=1)))
    entry = found["chat_entry"][0]
    assert (sorted(found), sorted(entry), sorted(entry["entity"])) == (keys["top"], keys["entry"], keys["entity"])
