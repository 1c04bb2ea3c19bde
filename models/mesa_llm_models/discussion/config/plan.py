"""The parts of a discussion as records, whose fields have the names of SAUCE's JSON files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, field_validator

from mesa_llm_models.discussion.text import MODERATOR
from mesa_llm_models.discussion.world import Manner
from mesa_llm_models.discussion.world.clock import seconds_of

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
    """Name that the others use."""
    background_story: str = ""
    """Background story that the prompt tells about the person."""
    names: tuple[Annotated[str, Field(max_length=80)], ...] = ()
    """Name in each room."""
    background_stories: tuple[str, ...] = ()
    """Background story in each room."""
    tag: str = ""
    """Label of the seat, for several rooms."""
    person_kwargs: dict[str, Any] | None = None
    """Further keys of a person, for several rooms; they override those beside them."""
    opinion: str = ""
    """Opinion, in words."""
    strength: Annotated[float, Field(ge=0, le=1)] | None = None
    """Firmness of the opinion, from 0 (adopts what it hears) to 1 (never changes)."""
    attitude: Annotated[float, Field(ge=0, le=10)] | None = None
    """Attitude of the rule twin, from 0 (against) to 10 (for)."""
    speaking_personality: str = ""
    """How readily the person speaks, in words."""
    talkativeness: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Probability that the rule twin speaks when called on."""
    party: str = ""
    """Group of the person, by which attitudes are compared."""
    things_to_say: tuple[str, ...] = ()
    """Lines of a scripted person, in order."""
    pass_turn_token: str = ""
    """Token that means a pass, wherever it occurs in a text; empty: that of the class."""
    use_turn_token: str = "<speak>"
    """Token that means speaking."""
    share_start_time: StrictBool = True
    """Whether the prompt says when the room was opened."""
    in_context_learning: StrictBool = False
    """Whether the prompt has examples of speaking and waiting."""
    confirmation_bias: Any = None
    """Whether the person favours what supports its own view; under the original rules, any value but null means yes."""
    model_path: str = ""
    """Name of its model, which `providers` maps to another."""
    generation_model_name: str = ""
    """Name of the model that writes."""
    scheduling_model_name: str = ""
    """Name of the model that decides."""
    is_generation_model_shared: bool = True
    """Ignored: each language model is opened once for all."""
    is_scheduling_model_shared: bool = True
    """Ignored, likewise."""
    prompt_type: str = ""
    """Chat format; checked under the original rules, and ignored: prompts do not depend on it."""
    experiment_start_time: str = ""
    """Ignored: the room has a clock."""

    @field_validator("class_")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in MANNERS:
            raise ValueError(f"unknown; one of {', '.join(MANNERS)}")
        return name

    @property
    def manner(self) -> Manner:
        """How the person responds when called on."""
        return MANNERS[self.class_]

    def models(self, phase: str) -> tuple[str, ...]:
        """Return the names by which `providers` may map the model of a phase, the most specific first.

        Args:
            phase: `decide`, `write`, or any other.
        """
        own = self.scheduling_model_name if phase == "decide" else self.generation_model_name
        named = tuple(filter(None, (own, self.model_path)))
        return (*(named or filter(None, (IMPLIED_MODELS.get(self.class_),))), self.class_)

    @property
    def token(self) -> str:
        """Token that means a pass."""
        return self.pass_turn_token or ("<wait>" if self.class_ == "async_group_discussant" else "<pass>")


class HostPlan(BaseModel):
    """The host, who calls on people."""

    model_config = _LAX

    class_: Annotated[Literal["Round Robin Host", "random", "moderator", "everyone"], Field(alias="class")]
    """`Round Robin Host`: in turn; `random`; `moderator`: an agent chooses; `everyone`: all at once."""
    start_person_index: Whole | None = None
    """Index of the person who is called on first; negative: from the end."""
    skip: Whole = 1
    """Number of seats that a round robin moves on."""
    background_story: str = MODERATOR
    """Who the moderator is, as its prompt says it."""


class EndPlan(BaseModel):
    """When the conversation is over: as soon as one of these holds, or all of them."""

    model_config = _LAX

    class_: Annotated[Literal["iteration", "limits"], Field(alias="class")] = "iteration"
    """`iteration`: by SAUCE's number of messages, which is then required; `limits`: by any of the limits below."""
    max_num_msgs: Whole | None = None
    """Number of messages."""
    start_iteration: int = 0
    """Ignored, as in SAUCE."""
    max_turns: Annotated[int, Field(ge=1)] | None = None
    """Number of turns, silent ones included."""
    max_minutes: Annotated[float, Field(gt=0, le=_LONGEST)] | None = None
    """Minutes by the clock of the room."""
    max_silent_turns: Annotated[int, Field(ge=1)] | None = None
    """Number of turns in a row in which nobody speaks; None: five for each person."""
    max_calls: Annotated[int, Field(ge=1)] | None = None
    """Number of replies in all rooms, live or recorded, whether of language models, people, rules or chance; the lines
    of a `fake_person` do not count."""
    agreement: str = ""
    """Id of the survey question that all have to answer alike."""
    agreement_after: Annotated[Whole, Field(ge=0)] | None = None
    """Number of messages before which equal answers do not end it; None: until everybody has had a turn."""
    judge: str = ""
    """Question about the conversation for a judge, who takes no part, such as `Have all agreed on one answer?`."""
    judge_every: Annotated[Whole, Field(ge=1)] | None = None
    """Number of messages between two rulings of the judge; None: one for each person."""
    combine: Literal["any", "all"] = "any"
    """Whether one of the limits ends it, or only all together; silence and `max_calls` always do by themselves."""

    @property
    def has_limit(self) -> bool:
        """Whether the file names any limit."""
        return any(getattr(self, name) not in (None, "") for name in LIMITS)

    @property
    def may_never_come(self) -> bool:
        """Whether it may go on for ever, as people may speak in every turn and never agree."""
        if self.max_calls is not None:
            return False
        has_bound = any(one is not None for one in (self.max_num_msgs, self.max_turns, self.max_minutes))
        return not has_bound or (self.combine == "all" and bool(self.agreement or self.judge))


class SurveyPlan(BaseModel):
    """A question that everyone answers in private."""

    model_config = _LAX

    id: Annotated[str, Field(min_length=1)]
    """Id of the question."""
    question: str
    """Text of the question."""
    iterations: Moment | tuple[Whole | Moment, ...] = ()
    """Numbers of messages at which it is asked, or after the turn that passes them; -1 or `end`: at the end; `always`:
    at each."""
    every: Annotated[Whole, Field(ge=1)] | None = None
    """Number of messages between two times that it is asked, in addition to `iterations`."""
    every_minutes: Annotated[float, Field(gt=0)] | None = None
    """Minutes by the clock of the room between two times that it is asked, in addition to `iterations`."""
    choices: tuple[str, ...] = ()
    """Possible answers; empty: any text, or a number of `scale`."""
    scale: tuple[int, int] | None = None
    """Smallest and largest number that may be answered; None: any text, or one of `choices`."""

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
        """Return how many periods of `every_minutes` have passed; 0 where it is not asked by the clock.

        Args:
            elapsed_s: Seconds since the room was opened.
        """
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
    """Seconds that thinking takes for each request."""
    message_s: Annotated[float, Field(ge=0, le=_LONGEST)] = 0.0
    """Seconds that a message takes, whatever its length."""
    word_s: Annotated[float, Field(ge=0, le=_LONGEST)] = 0.5
    """Seconds that each word takes."""

    @property
    def stands_still(self) -> bool:
        """Whether no time passes, whatever happens."""
        return self.pause_s == self.message_s == self.word_s == 0

    @field_validator("start")
    @classmethod
    def _is_time(cls, start: str) -> str:
        seconds_of(start)
        return start


class ExperimentPlan(BaseModel):
    """The topic, and the private survey questions."""

    model_config = _LAX

    scenario: Annotated[str, Field(min_length=1)]
    """Topic, which everybody reads first."""
    survey_questions: tuple[SurveyPlan, ...] = ()
    """Private survey questions."""
    whispers: bool = False
    """Whether one can speak to one person alone."""


class DiscussionPlan(BaseModel):
    """A discussion: who talks about what, who calls on them, when it ends, and which private questions are asked."""

    model_config = _LAX

    persons: Annotated[tuple[PersonPlan, ...], Field(min_length=1)]
    """The persons, in the order of their seats."""
    host: HostPlan
    """The host."""
    end: Annotated[EndPlan, Field(alias="endType")]
    """The limits that end it."""
    experiment: ExperimentPlan
    """The topic, and the private survey questions."""
    clock: ClockPlan = ClockPlan()
    """The clock of the room."""
    session_room: Annotated[Any, Field(alias="sessionRoom")] = None
    """SAUCE's kind of room."""

    @property
    def n_rooms(self) -> int:
        """Number of rooms that its lists of names fill; 0: it has none."""
        return len(self.persons[0].names)

    def persons_in(self, room: int) -> list[PersonPlan]:
        """Return the persons of one room, by its index; without lists of names, all rooms have the same."""
        if not self.n_rooms:
            return list(self.persons)
        return [
            person.model_copy(update={"name": person.names[room], "background_story": person.background_stories[room]})
            for person in self.persons
        ]
