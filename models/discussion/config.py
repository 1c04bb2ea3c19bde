"""Descriptions of discussions: SAUCE's JSON files, and the same in TOML, with what SAUCE does not have."""

from __future__ import annotations

import json
import logging
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationError, field_validator
from typing_extensions import TypeIs

from mesa_llm import ConfigError
from mesa_llm.text import counted, one_line
from mesa_llm.worlds import Rules
from mesa_llm.worlds.room import Manner
from mesa_llm.worlds.room.clock import seconds_of
from mesa_llm.worlds.room.text import display_name

logger = logging.getLogger(__name__)

MANNERS: dict[str, Manner] = {
    "person": "speak",
    "choosing_person": "choose",
    "fine_tuned_person": "pass_token",
    "fake_person": "speak",
    "human": "speak",
    "asynchronous_human": "decide_write",
    "person_gpt3_5": "speak",
    "person_openai_completion": "speak",
    "person_hugging_face": "speak",
    "batchPersonHuggingFace": "speak",
    "first_decides_then_generates": "decide_write",
    "first_generates_then_decides": "write_decide",
    "async_group_discussant": "decide_write",
}
"""Class of a person → how it comes to speak. The first three are ours, the others SAUCE's."""

PHI = "microsoft/Phi-3-mini-4k-instruct"
"""Model of SAUCE's persons that name none."""

IMPLIED_MODELS: dict[str, str] = {
    "person_gpt3_5": "gpt-3.5-turbo",
    "person_openai_completion": "text-davinci-003",
    "person_hugging_face": PHI,
    "first_decides_then_generates": PHI,
    "first_generates_then_decides": PHI,
    "async_group_discussant": PHI,
}
"""Class of a person → the model that it has in SAUCE where the file names none."""

HOSTS = ("Round Robin Host", "random", "moderator", "everyone")
"""Classes of hosts; the first two are SAUCE's."""

Moment = Literal["always", "end"]
"""When a question is asked: at each number of messages, or at the end."""

LIMITS = ("max_num_msgs", "max_turns", "max_minutes", "max_silent_turns", "max_calls", "agreement", "judge")
"""Keys of the end of a discussion, one of which a file has to have."""

STUDIES = ("debate", "trolley")
"""Discussions that come with the model."""


def _number(value: Any) -> Any:
    """Refuse texts and truth values, which pydantic would turn into numbers."""
    if isinstance(value, str | bool):
        raise ValueError("input should be a valid integer")
    return value


Whole = Annotated[int, BeforeValidator(_number)]
"""A whole number, written as a number."""

_LAX = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

_LONGEST = 1_000_000
"""Maximum number of minutes or seconds in a file."""

MAX_LINE = 2_000
"""Maximum number of characters of a line or an answer."""


class PersonPlan(BaseModel):
    """One person; with `names`, one in each of several rooms."""

    model_config = _LAX

    class_: Annotated[str, Field(alias="class")]
    """Kind of person."""
    name: Annotated[str, Field(max_length=80)] = ""
    """What the others call it."""
    background_story: str = ""
    """Who it is."""
    names: tuple[Annotated[str, Field(max_length=80)], ...] = ()
    """Its name in each room."""
    background_stories: tuple[str, ...] = ()
    """Who it is in each room."""
    tag: str = ""
    """Label of the seat, for several rooms."""
    person_kwargs: dict[str, Any] = {}
    """More of these keys, for several rooms."""
    opinion: str = ""
    """What it thinks, in words."""
    strength: Annotated[float, Field(ge=0, le=1)] | None = None
    """How firmly it thinks so: 0 takes on what it hears, 1 never changes."""
    attitude: Annotated[float, Field(ge=0, le=10)] | None = None
    """What it thinks, from 0 (against) to 10 (for), for its rule twin."""
    speaking_personality: str = ""
    """How ready it is to speak, in words."""
    talkativeness: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Probability of speaking when called on, for its rule twin."""
    party: str = ""
    """Whom it belongs to, for comparisons."""
    things_to_say: tuple[str, ...] = ()
    """What a scripted person says, line by line."""
    pass_turn_token: str = ""
    """What passes, where whole texts are read for it; empty: as the class has it."""
    use_turn_token: str = "<speak>"
    """What does not."""
    share_start_time: StrictBool = True
    """Whether it knows when the room was opened."""
    in_context_learning: StrictBool = False
    """Whether it reads examples of speaking and waiting."""
    confirmation_bias: Any = None
    """Whether it believes what it thinks already; under the original rules, anything but null switches it on."""
    model_path: str = ""
    """Name of its model, which `providers` maps to another."""
    generation_model_name: str = ""
    """Name of the model that writes."""
    scheduling_model_name: str = ""
    """Name of the model that decides."""
    is_generation_model_shared: bool = True
    """No matter here: models are opened once for all."""
    is_scheduling_model_shared: bool = True
    """No matter here."""
    prompt_type: str = ""
    """No matter here: prompts do not depend on a model's chat format."""
    experiment_start_time: str = ""
    """No matter here: the room has a clock."""

    @field_validator("class_")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in MANNERS:
            raise ValueError(f"unknown; one of {', '.join(MANNERS)}")
        return name

    @property
    def manner(self) -> Manner:
        """How it comes to speak."""
        return MANNERS[self.class_]

    def models(self, phase: str) -> tuple[str, ...]:
        """Return what `providers` may call the model of a phase, the most exact name first.

        Args:
            phase: `decide`, `write`, or empty: another one.
        """
        own = self.scheduling_model_name if phase == "decide" else self.generation_model_name
        named = tuple(filter(None, (own, self.model_path)))
        return (*(named or filter(None, (IMPLIED_MODELS.get(self.class_),))), self.class_)

    @property
    def token(self) -> str:
        """What passes."""
        return self.pass_turn_token or ("<wait>" if self.class_ == "async_group_discussant" else "<pass>")


class HostPlan(BaseModel):
    """Who calls on people."""

    model_config = _LAX

    class_: Annotated[Literal["Round Robin Host", "random", "moderator", "everyone"], Field(alias="class")]
    """`Round Robin Host`: in turn; `random`; `moderator`: a mind chooses; `everyone`: all at once."""
    start_person_index: Whole | None = None
    """Who is called on first; negative: from the end."""
    skip: Whole = 1
    """How many seats a round robin moves on."""
    background_story: str = "You moderate the conversation, and see to it that everyone is heard."
    """Who the moderator is."""


class EndPlan(BaseModel):
    """When the conversation is over: as soon as one of these holds, or all of them."""

    model_config = _LAX

    class_: Annotated[Literal["iteration", "limits"], Field(alias="class")] = "iteration"
    """`iteration`: SAUCE's number of messages; `limits`: whichever limits are there."""
    max_num_msgs: Whole | None = None
    """Number of messages."""
    start_iteration: int = 0
    """No matter, as in SAUCE."""
    max_turns: Annotated[int, Field(ge=1)] | None = None
    """Number of turns, with silent ones."""
    max_minutes: Annotated[float, Field(gt=0, le=_LONGEST)] | None = None
    """Minutes by the clock of the room."""
    max_silent_turns: Annotated[int, Field(ge=1)] | None = None
    """Number of turns in a row in which nobody speaks; none given: five for each person."""
    max_calls: Annotated[int, Field(ge=1)] | None = None
    """Number of replies of language models, live or recorded, in all rooms."""
    agreement: str = ""
    """Id of the survey question that all have to answer alike."""
    judge: str = ""
    """What a judge, who takes no part, is asked about the conversation, such as `Have all agreed on one answer?`."""
    judge_every: Annotated[Whole, Field(ge=1)] | None = None
    """Number of messages between two of the judge's answers; none given: one for each person."""
    combine: Literal["any", "all"] = "any"
    """Whether one of the limits is enough; silence and the number of replies always are."""

    @property
    def has_limit(self) -> bool:
        """Whether anything but a long silence ends it."""
        return any(getattr(self, name) not in (None, "") for name in LIMITS)


class SurveyPlan(BaseModel):
    """A question that everyone is asked aside."""

    model_config = _LAX

    id: Annotated[str, Field(min_length=1)]
    """Its name."""
    question: str
    """What is asked."""
    iterations: Moment | tuple[Whole | Moment, ...] = ()
    """Numbers of messages at which it is asked, or after the turn that passes them; -1 or `end`: at the end; `always`:
    at each."""
    every: Annotated[Whole, Field(ge=1)] | None = None
    """Asked at every so many messages, too."""
    every_minutes: Annotated[float, Field(gt=0)] | None = None
    """Asked whenever so many minutes have passed by the clock of the room, too."""
    choices: tuple[str, ...] = ()
    """What may be answered; none: any text."""
    scale: tuple[int, int] | None = None
    """Smallest and largest number that may be answered; none: any text."""

    def is_due(self, n_before: int, n_lines: int, *, is_end: bool) -> bool:
        """Check whether it is asked at a number of messages, or at the end.

        Args:
            n_before: Number of messages at which this was checked before; several may have come since.
            n_lines: Number of messages.
            is_end: Whether the conversation is over.
        """
        moments = (self.iterations,) if isinstance(self.iterations, str) else self.iterations
        since = range(n_before + 1, n_lines + 1)
        if "always" in moments or (is_end and (-1 in moments or "end" in moments)):
            return True
        if any(moment in since for moment in moments):
            return True
        return self.every is not None and n_lines // self.every > n_before // self.every

    def period(self, elapsed_s: float) -> int:
        """Return how often its minutes have passed; 0 where it is not asked by the clock."""
        return 0 if self.every_minutes is None else int(elapsed_s / (60 * self.every_minutes))

    @property
    def answer(self) -> Any:
        """Type of the answer."""
        if self.choices:
            return Literal[self.choices]
        if self.scale is not None:
            return Annotated[int, Field(ge=self.scale[0], le=self.scale[1])]
        return Annotated[str, Field(max_length=MAX_LINE)]


class ClockPlan(BaseModel):
    """How time passes in the room."""

    model_config = _LAX

    start: str = "10:00:00"
    """Time of day at which the room is opened."""
    pause_s: Annotated[float, Field(ge=0, le=_LONGEST)] = 5.0
    """Seconds that thinking takes whenever somebody is asked."""
    line_s: Annotated[float, Field(ge=0, le=_LONGEST)] = 0.0
    """Seconds that a line takes, whatever its length."""
    word_s: Annotated[float, Field(ge=0, le=_LONGEST)] = 0.5
    """Seconds that each word takes."""

    @field_validator("start")
    @classmethod
    def _is_time(cls, start: str) -> str:
        seconds_of(start)
        return start


class ExperimentPlan(BaseModel):
    """What it is about."""

    model_config = _LAX

    scenario: Annotated[str, Field(min_length=1)]
    """What everybody reads first."""
    survey_questions: tuple[SurveyPlan, ...] = ()
    """What is asked aside."""
    whispers: bool = False
    """Whether one can speak to one person alone."""


class DiscussionPlan(BaseModel):
    """A discussion: who talks about what, called on by whom, until when, and what is asked aside."""

    model_config = _LAX

    persons: Annotated[tuple[PersonPlan, ...], Field(min_length=1)]
    """Who is in the room."""
    host: HostPlan
    """Who calls on them."""
    end: Annotated[EndPlan, Field(alias="endType")]
    """When it is over."""
    experiment: ExperimentPlan
    """What it is about."""
    clock: ClockPlan = ClockPlan()
    """How time passes."""
    session_room: Annotated[Any, Field(alias="sessionRoom")] = None
    """SAUCE's kind of room."""

    @property
    def n_rooms(self) -> int:
        """Number of rooms that its lists of names fill; 0: it has none."""
        return len(self.persons[0].names)

    def persons_in(self, room: int) -> list[PersonPlan]:
        """Return the persons of one room."""
        if not self.n_rooms:
            return list(self.persons)
        return [
            person.model_copy(update={"name": person.names[room], "background_story": person.background_stories[room]})
            for person in self.persons
        ]


def read_plan(config: str, rules: Rules = "corrected") -> DiscussionPlan:
    """Read a discussion.

    Args:
        config: A file in JSON or TOML, or the name of a study that comes with the model.
        rules: Under `original`, what stopped SAUCE is an error here, too; names may be there twice.

    Raises:
        ConfigError: If it cannot be read or cannot be; names the key, and what is allowed.
    """
    if config in STUDIES:
        text = resources.files("models.discussion").joinpath("data", f"{config}.toml").read_text(encoding="utf-8")
        return plan_of(tomllib.loads(text), config, rules)
    path = Path(config)
    try:
        text = path.read_text(encoding="utf-8-sig")
        raw = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text, object_pairs_hook=_object)
    except (OSError, ValueError, RecursionError) as error:
        known = ", ".join(STUDIES)
        raise ConfigError(f"config={config}: wanted one of {known}, or a file in JSON or TOML: {error}") from None
    return plan_of(raw, config, rules)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON; warn of keys that are there twice."""
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            logger.warning("an object has the key %r %d times; the last counts", key, count)
    return dict(pairs)


def plan_of(raw: Any, name: str = "config", rules: Rules = "corrected") -> DiscussionPlan:
    """Check a discussion that was read; see `read_plan`."""
    if not isinstance(raw, dict):
        raise ConfigError(f"{name}: wanted an object with persons, host, endType and experiment, got {raw!r:.60}")
    if rules == "original":
        raw = _without_unknown(raw, name)
    try:
        plan = DiscussionPlan.model_validate(raw)
        batched = [person.person_kwargs for person in plan.persons]
        if any(batched):
            raw = {**raw, "persons": [p | p.get("person_kwargs", {}) for p in raw["persons"]]}
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
    known = [one for one in persons if not isinstance(one, dict) or one.get("class") in MANNERS]
    if len(known) < len(persons):
        logger.warning("%s: %s of unknown classes left out", name, counted(len(persons) - len(known), "person"))
    return {**raw, "persons": known}


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
"""Key → what has to stand there."""


def _faults(error: ValidationError) -> list[str]:
    return list(dict.fromkeys(_fault(fault) for fault in error.errors()))[:3]


def _fault(fault: Any) -> str:
    """Describe one fault: its key, what is wrong, and what is allowed."""
    place = _place(fault["loc"])
    if fault["type"] == "missing":
        wanted = WANTED.get(re.sub(r"\[\d+\]", "", place), "")
        return f"{place}: missing; {wanted}" if wanted else f"{place}: missing"
    text = re.sub(r"^Value error, | or instance of \w+", "", fault["msg"])
    text = f"{text[:1].lower()}{text[1:]}".replace("tuple", "list").replace("dictionary", "object")
    return f"{place}: {text}, got {fault['input']!r:.60}"


def _place(location: tuple[Any, ...]) -> str:
    keys = [part for part in location if isinstance(part, int) or not re.search(r"tuple|literal|\W|int$", part)]
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in keys]
    return "".join(parts).removeprefix(".").replace("class_", "class")


def _unknown(raw: Any, kind: type[BaseModel], place: str = "") -> list[str]:
    """Return the keys that mean nothing, with their places."""
    if not isinstance(raw, dict):
        return []
    fields = {field.alias or name: field for name, field in kind.model_fields.items()}
    found = [f"{place}{key}" for key in raw if key not in fields]
    for name, field in fields.items():
        inner = next((one for one in (field.annotation, *get_args(field.annotation)) if _is_plan(one)), None)
        value = raw.get(name)
        for one in value if isinstance(value, list) else [value]:
            found += [] if inner is None else _unknown(one, inner, f"{place}{name}.")
    return list(dict.fromkeys(found))


def _is_plan(kind: Any) -> TypeIs[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _impossible(plan: DiscussionPlan, rules: Rules) -> list[str]:
    """Return what does not fit together."""
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
    """Find what single persons lack."""
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
        if person.class_ == "fake_person" and not person.things_to_say:
            yield f"{place}.things_to_say: missing; a fake_person says what stands there"
        if rules == "corrected" and (bad := [one for one in person.things_to_say if not 0 < len(one) <= MAX_LINE]):
            yield f"{place}.things_to_say: {bad[0]!r:.60}; lines of 1 to {MAX_LINE} characters"
        if person.class_ == "async_group_discussant" and not person.opinion:
            yield f"{place}.opinion: missing; an async_group_discussant has one"


def _question_faults(questions: Sequence[SurveyPlan], rules: Rules) -> Iterator[str]:
    """Find what is wrong with the questions of the surveys."""
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
    """Find what is wrong with who is called on, and with the end."""
    host, end, n = plan.host, plan.end, len(plan.persons)
    if host.class_ in HOSTS[:2] and host.start_person_index is None:
        yield f"host.start_person_index: missing; a number from {-n} to {n - 1}"
    elif host.start_person_index is not None and not -n <= host.start_person_index < n:
        yield f"host.start_person_index: {host.start_person_index}; a number from {-n} to {n - 1}"
    if end.class_ == "iteration" and end.max_num_msgs is None:
        yield "endType.max_num_msgs: missing; a number of messages"
    if not end.has_limit:
        yield f"endType: nothing ends the conversation; one of {', '.join(LIMITS)}"
    if end.agreement and end.agreement not in [question.id for question in plan.experiment.survey_questions]:
        yield f"endType.agreement: no survey question is called {end.agreement!r}"


def _room_name(plan: DiscussionPlan) -> str:
    name = plan.session_room.get("name") if isinstance(plan.session_room, dict) else plan.session_room
    return name if name in ("base", "batch") else ""


def _stopped(plan: DiscussionPlan) -> list[str]:
    """Return what stops SAUCE's own code."""
    faults: list[str] = []
    for index, person in enumerate(plan.persons):
        if person.class_ == "async_group_discussant" and (plan.n_rooms or not person.share_start_time):
            faults.append(f"persons[{index}].share_start_time: SAUCE's discussant has to know the start")
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
    if plan.n_rooms and isinstance(plan.session_room, dict):
        faults.append("sessionRoom: an object stops SAUCE's batches; write a text")
    return faults
