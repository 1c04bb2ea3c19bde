"""Read discussions from SAUCE's JSON files, or the same in TOML, and name what is wrong in them."""

from __future__ import annotations

import json
import logging
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from typing_extensions import TypeIs

from mesa_llm import ConfigError
from mesa_llm.tables import read_text
from mesa_llm.text import counted, one_line
from mesa_llm.world import Rules
from mesa_llm_models.discussion.config.plan import (
    HOSTS,
    LIMITS,
    MANNERS,
    MAX_LINE,
    DiscussionPlan,
    PersonPlan,
    SurveyPlan,
)
from mesa_llm_models.discussion.world.text import display_name

logger = logging.getLogger(__name__)

STUDIES = ("debate", "debate_guns", "debate_climate", "trolley")
"""Discussions that come with the model."""

PROMPT_TYPES = ("mistral_instruct", "llama_instruct")
"""Chat formats of SAUCE's `batchPersonHuggingFace`."""


def read_plan(config: str, rules: Rules = "corrected") -> DiscussionPlan:
    """Read a discussion.

    Args:
        config: A file in JSON or TOML, or the name of a study that comes with the model.
        rules: Under `original`, what stops SAUCE is an error, too, and two persons may have one name.

    Raises:
        ConfigError: If the file cannot be read, or a key in it is invalid; the text names the key, and what is allowed.
    """
    if config in STUDIES:
        text = (
            resources.files("mesa_llm_models.discussion").joinpath("data", f"{config}.toml").read_text(encoding="utf-8")
        )
        return plan_of(tomllib.loads(text), config, rules)
    path = Path(config)
    try:
        text = read_text(path)
        raw = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text, object_pairs_hook=_object)
    except (ConfigError, ValueError, RecursionError) as error:
        names = ", ".join(STUDIES)
        raise ConfigError(f"config={config}: wanted one of {names}, or a file in JSON or TOML: {error}") from None
    return plan_of(raw, config, rules)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON; warn of repeated keys."""
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            logger.warning("an object has the key %r %d times; the last counts", key, count)
    return dict(pairs)


def plan_of(raw: Any, name: str = "config", rules: Rules = "corrected") -> DiscussionPlan:
    """Check a discussion that was read from a file.

    Args:
        raw: Values of the file.
        name: Name of the file, for errors and warnings.
        rules: As for `read_plan`.

    Raises:
        ConfigError: If a key is invalid, or keys contradict each other.
    """
    if not isinstance(raw, dict):
        raise ConfigError(f"{name}: wanted an object with persons, host, endType and experiment, got {raw!r:.60}")
    if rules == "original":
        raw = _with_numbers_alone(_without_unknown(raw, name), name)
    try:
        plan = DiscussionPlan.model_validate(raw)
        if any(person.names and person.person_kwargs for person in plan.persons):
            raw = {**raw, "persons": [p | (p.get("person_kwargs") or {}) for p in raw["persons"]]}
            plan = DiscussionPlan.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(f"{name}: {'; '.join(_faults(error))}") from None
    for key in _unknown(raw, DiscussionPlan):
        logger.warning("%s: %s is no key of a discussion, and is ignored", name, key)
    if faults := [*_impossible(plan, rules), *(_stopped(plan) if rules == "original" else ())]:
        raise ConfigError(f"{name}: {'; '.join(faults)}")
    return plan


def _without_unknown(raw: dict[str, Any], name: str) -> dict[str, Any]:
    """Leave out the persons of unknown classes, as SAUCE's batches do."""
    persons = raw.get("persons")
    if not isinstance(persons, list) or not any(isinstance(one, dict) and "names" in one for one in persons):
        return raw
    classes = [one.get("class") if isinstance(one, dict) else [] for one in persons]
    usable = [
        one for one, kind in zip(persons, classes, strict=True) if isinstance(kind, list | dict) or kind in MANNERS
    ]
    if len(usable) < len(persons):
        logger.warning("%s: %s of unknown classes left out", name, counted(len(persons) - len(usable), "person"))
    return {**raw, "persons": usable}


def _with_numbers_alone(raw: dict[str, Any], name: str) -> dict[str, Any]:
    """Leave out what is no whole number in `iterations`, where SAUCE looks up the number of messages."""
    experiment = raw.get("experiment")
    questions = experiment.get("survey_questions") if isinstance(experiment, dict) else None
    if not isinstance(experiment, dict) or not isinstance(questions, list):
        return raw
    entries = [_with_numbers(question, name) for question in questions]
    return {**raw, "experiment": {**experiment, "survey_questions": entries}}


def _with_numbers(question: Any, name: str) -> Any:
    moments = question.get("iterations") if isinstance(question, dict) else None
    if not isinstance(moments, list):
        return question
    numbers = [int(one) for one in moments if isinstance(one, int | float) and float(one).is_integer()]
    if len(numbers) < len(moments):
        logger.warning("%s: of the moments %s of %r, SAUCE asks at numbers alone", name, moments, question.get("id"))
    return {**question, "iterations": numbers}


WANTED = {
    "persons": "a list of persons, each with class, name and background_story",
    "persons.class": f"one of {', '.join(MANNERS)}",
    "host": "an object with class and start_person_index",
    "host.class": f"one of {', '.join(HOSTS)}",
    "endType": "an object with class and max_num_msgs",
    "experiment": "an object with scenario and, if anything is asked aside, survey_questions",
    "experiment.scenario": "what everybody reads first, in words",
    "experiment.survey_questions.id": "its name",
    "experiment.survey_questions.question": "what is asked, in words",
}
"""Key → description of its value, for errors."""


def _faults(error: ValidationError) -> list[str]:
    """Describe the first three faults; that a list is too short only because its entries are faulty is left out."""
    faults = error.errors()
    places = [fault["loc"] for fault in faults]
    own = [
        fault
        for fault in faults
        if fault["type"] != "too_short" or not any(fault["loc"] == one[: len(fault["loc"])] != one for one in places)
    ]
    return list(dict.fromkeys(map(_fault, own)))[:3]


def _fault(fault: Any) -> str:
    """Describe one fault: its key, what is wrong, and what is allowed."""
    place = _place(fault["loc"])
    if fault["type"] == "missing":
        wanted = WANTED.get(re.sub(r"\[\d+\]", "", place), "")
        return f"{place}: missing; {wanted}" if wanted else f"{place}: missing"
    text = re.sub(r"^Value error, | or instance of \w+", "", fault["msg"])
    text = f"{text[:1].lower()}{text[1:]}".replace("tuple", "list").replace("dictionary", "object")
    return f"{place}: {text}" if ", got " in text else f"{place}: {text}, got {fault['input']!r:.60}"


def _place(location: tuple[Any, ...]) -> str:
    keys = [part for part in location if isinstance(part, int) or not re.search(r"tuple|literal|\W|int$", part)]
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in keys]
    return "".join(parts).removeprefix(".").replace("class_", "class")


def _unknown(raw: Any, kind: type[BaseModel], place: str = "") -> list[str]:
    """Return the unknown keys, each with its place."""
    if not isinstance(raw, dict):
        return []
    fields = {field.alias or name: field for name, field in kind.model_fields.items()}
    unknown = [f"{place}{key}" for key in raw if key not in fields]
    for name, field in fields.items():
        inner = next((one for one in (field.annotation, *get_args(field.annotation)) if _is_plan(one)), None)
        value = raw.get(name)
        for one in value if isinstance(value, list) else [value]:
            unknown += [] if inner is None else _unknown(one, inner, f"{place}{name}.")
    return list(dict.fromkeys(unknown))


def _is_plan(kind: Any) -> TypeIs[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _impossible(plan: DiscussionPlan, rules: Rules) -> list[str]:
    """Describe what is invalid or contradictory, beyond single values."""
    faults = list(_person_faults(plan, rules))
    if not faults and rules == "corrected":
        for room in range(max(1, plan.n_rooms)):
            names = [display_name(person.name) for person in plan.persons_in(room)]
            faults += ["persons: a name is blank; say what the others call it"] if "" in names else []
            twice = sorted({name for name in names if names.count(name) > 1})
            faults += [f"persons: {name!r} is there {names.count(name)} times; names have to differ" for name in twice]
    faults += [*_question_faults(plan.experiment.survey_questions, rules), *_course_faults(plan)]
    if plan.session_room is not None and not _room_name(plan):
        faults.append(f"sessionRoom: {plan.session_room!r}; 'base' or 'batch'")
    return faults


def _person_faults(plan: DiscussionPlan, rules: Rules) -> Iterator[str]:
    """Describe what is missing or invalid in single persons."""
    for index, person in enumerate(plan.persons):
        place = f"persons[{index}]"
        if len(person.names) != len(person.background_stories):
            yield f"{place}.names: {len(person.names)} names and {len(person.background_stories)} stories"
        elif len(person.names) != plan.n_rooms:
            yield f"{place}.names: {len(person.names)}, where the first person has {plan.n_rooms}"
        if "background_story" not in person.model_fields_set and not person.names and person.class_ != "fake_person":
            yield f"{place}.background_story: missing; who {person.name or 'the person'} is, in words"
        is_nameless = not one_line(person.name) and (rules == "corrected" or "name" not in person.model_fields_set)
        if is_nameless and not person.names:
            yield f"{place}.name: missing; what the others call it"
        is_mute = not person.things_to_say and (rules == "corrected" or "things_to_say" not in person.model_fields_set)
        if person.class_ == "fake_person" and is_mute:
            yield f"{place}.things_to_say: missing; a fake_person says what stands there"
        if rules == "corrected" and (bad := [one for one in person.things_to_say if not 0 < len(one) <= MAX_LINE]):
            yield f"{place}.things_to_say: {bad[0]!r:.60}; lines of 1 to {MAX_LINE} characters"
        is_blank = not one_line(person.opinion) and (rules == "corrected" or "opinion" not in person.model_fields_set)
        if person.class_ == "async_group_discussant" and is_blank:
            yield f"{place}.opinion: missing; an async_group_discussant has one"


def _question_faults(questions: Sequence[SurveyPlan], rules: Rules) -> Iterator[str]:
    """Describe what is wrong with the survey questions."""
    ids = [question.id for question in questions]
    if rules == "corrected" and len(set(ids)) < len(ids):
        yield f"survey_questions: ids have to differ, got {', '.join(ids)}"
    for question in questions:
        place = f"survey_questions.{question.id}"
        if not {"iterations", "every", "every_minutes"} & question.model_fields_set:
            yield f"{place}.iterations: missing; a list of numbers of messages, in which -1 is the end, or 'always'"
        if question.scale is not None and question.choices:
            yield f"{place}.scale: there are choices, too; give it one of them"
        if question.scale is not None and question.scale[0] >= question.scale[1]:
            yield f"{place}.scale: {list(question.scale)}; the smaller number first"


def _course_faults(plan: DiscussionPlan) -> Iterator[str]:
    """Describe what is wrong with the host, and with the end."""
    host, end, n = plan.host, plan.end, len(plan.persons)
    if host.class_ in HOSTS[:2] and host.start_person_index is None:
        yield f"host.start_person_index: missing; a number from {-n} to {n - 1}"
    elif host.start_person_index is not None and not -n <= host.start_person_index < n:
        yield f"host.start_person_index: {host.start_person_index}; a number from {-n} to {n - 1}"
    if end.class_ == "iteration" and end.max_num_msgs is None:
        yield "endType.max_num_msgs: missing; a number of messages"
    if not end.has_limit:
        yield f"endType: nothing ends the conversation; one of {', '.join(LIMITS)}"
    if end.max_minutes is not None and plan.clock.stands_still:
        yield "endType.max_minutes: the clock stands still; one of clock.pause_s, message_s and word_s above 0"
    if end.agreement and end.agreement not in [question.id for question in plan.experiment.survey_questions]:
        yield f"endType.agreement: no survey question is called {end.agreement!r}"


def _room_name(plan: DiscussionPlan) -> str:
    name = plan.session_room.get("name") if isinstance(plan.session_room, dict) else plan.session_room
    return name if name in ("base", "batch") else ""


def _stopped(plan: DiscussionPlan) -> list[str]:
    """Describe what stops SAUCE's own code."""
    faults = [fault for index, person in enumerate(plan.persons) for fault in _stopping(person, f"persons[{index}]")]
    for question in plan.experiment.survey_questions:
        if isinstance(question.iterations, str) or "iterations" not in question.model_fields_set:
            faults.append(
                f"survey_questions.{question.id}.iterations: a list of numbers of messages; anything else stops SAUCE; "
                "use rules='corrected'"
            )
    if plan.end.max_num_msgs is None:
        faults.append("endType.max_num_msgs: missing; SAUCE knows no other end")
    if "class_" not in plan.end.model_fields_set:
        faults.append("endType.class: missing; 'iteration' or 'limits'")
    if plan.host.class_ not in HOSTS[:2]:
        faults.append(f"host.class: {plan.host.class_!r}; SAUCE's hosts are {' and '.join(map(repr, HOSTS[:2]))}")
    if plan.n_rooms and isinstance(plan.session_room, dict):
        faults.append("sessionRoom: an object stops SAUCE's batches; write a text")
    if plan.n_rooms and _room_name(plan) == "base":
        faults.append(
            "sessionRoom: 'base', where persons have names and background_stories, one for each room; 'batch'"
        )
    if not plan.n_rooms and plan.session_room is not None and _room_name(plan) == "batch":
        faults.append("sessionRoom: 'batch', where nobody has names and background_stories, one for each room")
    return faults


def _stopping(person: PersonPlan, place: str) -> Iterator[str]:
    """Describe what in a single person stops SAUCE's own code."""
    if person.class_ == "async_group_discussant" and (person.names or not person.share_start_time):
        yield f"{place}.share_start_time: SAUCE's discussant has to know the start"
    if person.class_ == "batchPersonHuggingFace":
        if not person.names:
            yield f"{place}.names: missing; SAUCE's {person.class_} has one in each of several rooms"
        if not person.model_path:
            yield f"{place}.model_path: missing; SAUCE's {person.class_} names its model"
        if person.prompt_type not in PROMPT_TYPES:
            yield f"{place}.prompt_type: {person.prompt_type!r}; one of {', '.join(PROMPT_TYPES)}"
    if person.names and "tag" not in person.model_fields_set:
        yield f"{place}.tag: missing; SAUCE's batches label each seat"
    if person.names and (own := {"name", "background_story"} & set(person.person_kwargs or {})):
        yield f"{place}.person_kwargs.{min(own)}: stands in names and background_stories"
