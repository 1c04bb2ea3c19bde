"""People talk in a room when a host calls on them, and say in private what they think."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Unpack

import pandas as pd
from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    LLM,
    ConfigError,
    Failure,
    HumanLLM,
    Label,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Question,
    Slider,
    Structure,
    Turn,
)
from mesa_llm.engine.survey import llm_for
from mesa_llm.experiments.runs.neutral import NEUTRAL
from mesa_llm.model.measures import gini
from mesa_llm.text import counted
from mesa_llm.world import Rules
from mesa_llm_models.discussion.agents import Discussant, ScriptedPerson, verdict_by_rule
from mesa_llm_models.discussion.config import read_plan
from mesa_llm_models.discussion.config.plan import IMPLIED_MODELS, MANNERS, DiscussionPlan
from mesa_llm_models.discussion.scores import attitudes, missing_answers, talk_table
from mesa_llm_models.discussion.session import Session, end_rules, merged, original_batch
from mesa_llm_models.discussion.world import Clock, EndRule, Line, Manner, Room, Verdict

logger = logging.getLogger(__name__)

PHASES = ("decide", "write", "judge")
"""Phases of persons, and the judge: each can have a language model of its own."""


class DiscussionScenario(LLMScenario):
    """Parameters of a discussion."""

    config: str = "debate"
    """What is discussed: `debate`, `debate_guns`, `debate_climate`, `trolley`, or a file in JSON (SAUCE's) or TOML."""

    n_rooms: Annotated[int, Field(ge=1, le=10_000), Slider(1, 20, label="Rooms")] = 1
    """Number of repetitions, each in a room of its own; a file with lists of names brings its own number."""

    host: Annotated[
        Literal["Round Robin Host", "random", "moderator", "everyone"] | None,
        Label("Who is called on"),
        Structure("random", "everyone", dimension="interaction protocol"),
    ] = None
    """Who is called on: people in turn, at random, by a moderator, or all at once; None: as the file has it."""

    manner: Annotated[Manner | None, Label("How people come to speak")] = None
    """How people come to speak when called on; None: as the file has it."""

    max_messages: Annotated[int | None, Field(ge=1)] = None
    """Number of messages that ends the conversation; None: as the file has it."""

    max_minutes: Annotated[float | None, Field(gt=0, le=1_000_000)] = None
    """Minutes by the clock of the room that end the conversation; None: as the file has it."""

    shows_time_left: bool = True
    """Whether people read how much time is left, where there is a limit."""

    talk: Literal["shown", "neutral"] = "shown"
    """Whether people read what the others say; `neutral` puts a sentence about rivers and stones in its place, by the
    same speaker at the same time: the placebo of the study of debates. Such sentences do not move rule twins.
    """

    people_play: bool = True
    """Whether the persons that the file calls human are played by people at the terminal or on the page."""

    providers: dict[str, str] | None = None
    """Name of a model in the file, class of a person, or phase (`decide`, `write`, `judge`) → what to ask in its place;
    a model that SAUCE's class has by default, such as `gpt-3.5-turbo`, goes by its name, too."""

    max_shown: Annotated[int, Field(ge=1)] = 100
    """Maximum number of messages that people read."""

    memory: str = "none"
    """Memory of the people, besides the conversation, which they read."""

    rules: Rules = "corrected"
    """`original`: as SAUCE's code, where answers to surveys enter the conversation."""


class DiscussionModel(LLMModel):
    """A host calls on people, and each speaks or stays silent until an end rule holds.

    A step is a turn of the host, in every room that is not over. Private survey questions are answered between turns,
    in the light of the conversation, and enter it only under the original rules.

    Attributes:
        plan: The discussion, as read from its file, with what the scenario sets in its place.
        sessions: The rooms, each with its persons and its host.
        batch: Answers to surveys in the original's batches: one list for all rooms, with a row for each question and
            seat.
        n_free_replies: Number of decisions, answers and rulings so far by rule or at random, which cost nothing.
    """

    goes_on_after_failures = True  # there is more to do than what failed
    scenario_class = DiscussionScenario
    scenario: DiscussionScenario
    changeable = ("max_messages", "max_minutes", "shows_time_left", "max_shown")

    def __init__(self, scenario: DiscussionScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Read the discussion, and seat the persons.

        Args:
            scenario: The parameters; None: those given by keyword, and the defaults.
            **options: Options of all models, and fields of `DiscussionScenario`.

        Raises:
            ConfigError: If the discussion cannot be read, `providers` names what it lacks, or a provider is unknown.
        """
        own_activation = options.get("activation")
        super().__init__(scenario, **options)
        if own_activation is None:
            self.activation = DiscussionModel._first_stage
        chosen = self.scenario
        self.plan = self._plan()
        self._check_providers()
        if chosen.rules == "corrected" and self.plan.end.may_never_come:
            logger.warning(
                "%s: people may speak on and never agree; max_turns, or another limit with combine = 'any', ends it",
                chosen.config,
            )
        if self.plan.end.judge:  # fails now if its provider is unknown, and not after the last word
            self.engine.open(self.judge, is_auxiliary=True)
        n_rooms = self.plan.n_rooms or chosen.n_rooms
        names = ["room", *(f"room {index + 1}" for index in range(1, n_rooms))]
        plays_all = isinstance(self.llm, HumanLLM)  # who plays all agents plays these persons, too
        self.sessions = [
            Session(
                self,
                self._open_room(name),
                self.plan,
                index if self.plan.n_rooms else 0,
                manner=chosen.manner,
                memory=chosen.memory,
                people_play=chosen.people_play and not plays_all,
            )
            for index, name in enumerate(names)
        ]
        self.worlds = tuple(session.room for session in self.sessions)
        self.batch: list[list[Line]] = []
        self.n_free_replies = 0
        self._stages_left: Iterator[list[Turn]] = iter(())
        self.datacollector = DataCollector(
            model_reporters={
                "messages": "n_messages",
                "silences": "n_silences",
                "talk_gini": "talk_gini",
                "minutes": "minutes",
                "missing_answers": "n_missing",
            }
        )
        self.datacollector.collect(self)

    def _plan(self) -> DiscussionPlan:
        chosen = self.scenario
        plan = read_plan(chosen.config, chosen.rules)
        if chosen.host is not None:
            host = plan.host.model_copy(update={"class_": chosen.host})
            plan = plan.model_copy(update={"host": host})
        limits = {"max_num_msgs": chosen.max_messages, "max_minutes": chosen.max_minutes}
        end = plan.end.model_copy(update={name: value for name, value in limits.items() if value is not None})
        return plan.model_copy(update={"end": end})

    def _open_room(self, name: str) -> Room:
        """Open a room. The original's clock counts how often its code reads the time."""
        plan, chosen = self.plan, self.scenario
        is_original = chosen.rules == "original"
        return Room(
            plan.experiment.scenario,
            Clock("10:00:01", 1.0, 1.0, 0.0) if is_original else Clock(**plan.clock.model_dump()),
            self.end_rules_of(plan),
            name=name,
            rules=chosen.rules,
            has_whispers=plan.experiment.whispers and not is_original,
            shows_time_left=chosen.shows_time_left,
            max_shown=chosen.max_shown,
            filler=() if chosen.talk == "shown" else NEUTRAL,
        )

    def scenario_changed(self) -> None:
        """Pass changed limits, and what people read, on to the rooms."""
        self.plan = self._plan()
        for session in self.sessions:
            session.plan = self.plan
            session.room.end_rules = tuple(self.end_rules_of(self.plan))
            session.room.shows_time_left = self.scenario.shows_time_left
            session.room.max_shown = self.scenario.max_shown

    def _check_providers(self) -> None:
        """Check the keys of `providers`.

        Raises:
            ConfigError: If one is neither a model or class that the file can name, nor a phase.
        """
        in_file = {name for person in self.plan.persons for phase in PHASES for name in person.models(phase)}
        allowed_names = {*in_file, *MANNERS, *IMPLIED_MODELS.values(), *PHASES}
        if unknown := [name for name in self.scenario.providers or {} if name not in allowed_names]:
            raise ConfigError(
                f"providers: {self.scenario.config} names no model {unknown[0]!r}; what can be mapped: "
                f"{', '.join(sorted(in_file))}, and the phases {', '.join(PHASES)}"
            )

    def end_rules_of(self, plan: DiscussionPlan) -> list[EndRule]:
        """Return the end rules of the rooms."""
        rules = end_rules(plan, is_original=self.scenario.rules == "original")
        return [*rules, *([MaxCalls(self, plan.end.max_calls)] if plan.end.max_calls is not None else [])]

    def llm_of(self, agent: Any) -> str | LLM:
        """Return what an agent thinks with in its phase: first what `llm=` or `providers` name for the phase, then what
        `providers` name for its model or class, then what `llm=` names for all.
        """
        deciding = agent.phase == "decide"
        phases = ("decide",) if deciding else ("write",) if agent.phase else ()
        if isinstance(self.llm, Mapping):
            llm = next((self.llm[phase] for phase in phases if phase in self.llm), None)
            if llm is not None:
                return llm
        names = agent.plan.models("decide" if deciding else "write") if isinstance(agent, Discussant) else ()
        providers = self.scenario.providers or {}
        return next((providers[name] for name in (*phases, *names) if name in providers), super().llm_of(agent))

    @property
    def judge(self) -> str | LLM:
        """What judges whether all agree: what `llm=` or `providers` name for it, else what the persons think with.

        It is the rule where people play all agents, or `llm=` names nothing for the judge or for all others.
        """
        return llm_for((self.scenario.providers or {}).get("judge", self.llm), "judge")

    # -- a step

    @property
    def persons(self) -> list[Discussant]:
        """The persons, room by room."""
        return [person for session in self.sessions for person in session.persons]

    def start_step(self) -> None:
        """Ask the questions that are due before anybody has spoken."""
        if self.now == 1 and self.scenario.rules != "original":
            for session in self.sessions:
                session.check_end()
            self._survey()

    def _first_stage(self) -> list[list[Turn]]:
        if self.scenario.rules == "original" and self.plan.n_rooms:
            self._stages_left = original_batch(self.sessions, self.batch)
        else:
            self._stages_left = merged([session.step() for session in self.sessions if not session.end])
        return [next(self._stages_left, [])]

    def next_stage(self, acted: list[Any]) -> list[Any]:
        """Return the next stage of all rooms."""
        self.n_free_replies += sum(
            _is_free(agent) or (self.last_decisions[agent.unique_id].by == "rule" and not _is_scripted(agent))
            for agent in acted
        )
        return next(self._stages_left, [])

    def end_step(self) -> None:
        """Ask the questions and rulings that are due, and find out which conversations are over."""
        for person in self.persons:
            person.phase = ""
        if self.scenario.rules != "original":
            for session in self.sessions:
                session.check_end()
            self._survey()
            self._judge()
            for session in self.sessions:  # answers may agree, and a judge may find that people do
                session.check_end()
            self._survey()
        self.running = any(not session.end for session in self.sessions)

    def _survey(self) -> None:
        """Ask the questions that are due, each in all rooms at once."""
        due = [(session, session.due_questions()) for session in self.sessions]
        for question in self.plan.experiment.survey_questions:
            rooms = [session for session, questions in due if question in questions]
            persons = {person.unique_id: person for session in rooms for person in session.persons}
            if not persons:
                continue
            aside = Question(question.question, question.answer, question.id)
            self.n_free_replies += sum(map(_is_free, persons.values()))
            for row in self.survey([aside], list(persons.values())).to_dict("records"):
                person = persons[row["agent"]]
                failure = row["failure"] or ("nothing is left to say" if row["answer"] is None else "")
                person.room.note_answer(question.id, person.unique_id, row["answer"], failure)

    def _judge(self) -> None:
        """Ask the judge whether all have agreed, in the rooms where a ruling is due."""
        rooms = [session.room for session in self.sessions if session.is_judged_now]
        if not rooms:
            return
        question = self.plan.end.judge
        prompts = [
            self.prompt("judge.md", topic=room.topic.strip(), conversation=room.transcript(), question=question)
            for room in rooms
        ]
        by_prompt = dict(zip(prompts, rooms, strict=True))
        decisions = self.consult(
            self.judge, prompts, answer=Verdict, rule=lambda prompt: verdict_by_rule(by_prompt[prompt])
        )
        if self.engine.open(self.judge, is_auxiliary=True).capabilities.is_immediate:
            self.n_free_replies += len(rooms)
        for room, one in zip(rooms, decisions, strict=True):
            if isinstance(one, Failure):
                room.note_ruling(None, one.reason)
            else:
                room.note_ruling(one.answer)

    # -- measures

    @property
    def n_messages(self) -> int:
        """Number of messages so far, in all rooms."""
        return sum(len(session.lines()) for session in self.sessions)

    @property
    def n_silences(self) -> int:
        """Number of times so far that a person was called on and kept silent, in all rooms."""
        return sum(len(session.room.silences) for session in self.sessions)

    @property
    def talk_gini(self) -> float:
        """Gini coefficient of the number of messages per person."""
        counts = Counter(line.speaker_id for session in self.sessions for line in session.lines())
        return gini([counts[person.unique_id] for person in self.persons])

    @property
    def minutes(self) -> float:
        """Minutes by the clock of the room, mean over rooms."""
        return sum(session.room.clock.elapsed_s for session in self.sessions) / 60 / len(self.sessions)

    @property
    def n_missing(self) -> int:
        """Number of private survey questions without a usable answer, in all rooms."""
        return sum(answer.answer is None for session in self.sessions for answer in session.room.answers)

    def talk(self) -> pd.DataFrame:
        """Return each person's share of talk, silences and gaps; see `mesa_llm_models.discussion.scores.talk_table`."""
        return talk_table(self.sessions)

    def attitudes(self, question: str | None = None) -> pd.DataFrame:
        """Return the numeric answers given aside; see `mesa_llm_models.discussion.scores.attitudes`.

        Args:
            question: Id of the question; None: all with numeric answers.
        """
        return attitudes(self.sessions, question)

    def results(self) -> dict[str, Any]:
        """Return the measures, why the rooms ended, and for each question the number of missing answers, and its first
        and last mean if it is answered by number.
        """
        figures = super().results()
        figures["ends"] = dict(Counter(session.end or "not over" for session in self.sessions))
        for row in missing_answers(self.sessions).to_dict("records"):
            figures[f"{row['question']}_missing"] = row["missing"]
        answers = self.attitudes()
        means: Any = answers.groupby(["question", "after"])["answer"].mean()
        for name in dict.fromkeys(answers["question"]):
            figures[f"{name}_first"], figures[f"{name}_last"] = (float(means[name].iloc[end]) for end in (0, -1))
        return figures

    def story(self) -> str:
        """Describe in words who said how much, and how it ended."""
        messages, silences = counted(self.n_messages, "message"), counted(self.n_silences, "silence")
        parts = [f"{messages} and {silences} in {counted(len(self.sessions), 'room')}."]
        for session in self.sessions[:3]:
            counts = Counter(line.speaker_id for line in session.lines())
            spoke = ", ".join(f"{p.plan.name} {counts[p.unique_id]}" for p in session.persons)
            parts.append(f"{session.room.name}: {spoke}; {session.end or 'not over yet'}.")
        return "\n".join(parts)


def _is_scripted(agent: Any) -> bool:
    return isinstance(agent, ScriptedPerson)


def _is_free(agent: Any) -> bool:
    """Check whether an agent thinks by rule or at random, in place of a language model."""
    return agent.opened.capabilities.is_immediate and not _is_scripted(agent)


class MaxCalls:
    """Ends the conversations of a run at a number of replies, live, recorded, by rule or at random."""

    def __init__(self, model: DiscussionModel, maximum: int) -> None:
        """Store the number.

        Args:
            model: The model.
            maximum: Number of replies, in all rooms.
        """
        self.model, self.maximum = model, maximum

    def reason(self, room: Any) -> str:
        """Return why the conversation is over; empty: it is not."""
        used = self.model.usage.calls + self.model.usage.replayed + self.model.n_free_replies
        return f"{counted(used, 'reply is', 'replies are')} spent" if used >= self.maximum else ""
