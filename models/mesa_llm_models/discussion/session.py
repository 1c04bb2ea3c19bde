"""One room of a run, with its people and its host: who decides what in a step, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mesa_llm import AgentConfig, Decision, Failure, LLMModel, Observation, Turn
from mesa_llm.agents.talk import Speech, silence_in
from mesa_llm.world import RNG
from mesa_llm_models.discussion.agents import Discussant, Moderator, ScriptedPerson, config_of
from mesa_llm_models.discussion.config.plan import DiscussionPlan, HostPlan, PersonPlan, SurveyPlan
from mesa_llm_models.discussion.world import (
    Agreement,
    AllOf,
    EndRule,
    Everyone,
    EveryoneSilent,
    Host,
    JudgedAgreement,
    Line,
    Manner,
    MaxLines,
    MaxTime,
    MaxTurns,
    Member,
    Moderated,
    RandomHost,
    Room,
    RoomFacts,
    RoundRobin,
)
from mesa_llm_models.discussion.world.text import display_name

Stages = Iterator[list[Turn]]
"""The stages of a step, each made when the previous one is over."""

MAX_WORDS = 40
"""Maximum number of words of a line."""

SILENT_ROUNDS = 5
"""Number of silent turns in a row for each person, after which a conversation is over."""

PEOPLE = ("human", "asynchronous_human")
"""Classes of persons who may be played by people."""


@dataclass(frozen=True)
class SurveyRecord:
    """A question that was asked under the original rules, where its answers enter the conversation."""

    question: SurveyPlan
    """The question."""

    n_lines: int
    """Number of lines at that time, earlier answers included; in batches, number of rows of answers."""


class Session:
    """A room, its persons and its host.

    Attributes:
        model: The model.
        plan: The discussion, as read from its file.
        room: The room.
        persons: The persons, by seat.
        host: The host, who calls on them.
        moderator: The agent that gives the floor; None: the host needs none.
        end: Why the conversation is over; empty if it is not.
        records: Questions asked so far, under the original rules.
    """

    def __init__(
        self,
        model: LLMModel,
        room: Room,
        plan: DiscussionPlan,
        index: int,
        *,
        manner: Manner | None,
        memory: str,
        people_play: bool,
    ) -> None:
        """Seat the persons.

        Args:
            model: The model.
            room: The room, empty.
            plan: The discussion, as read from its file.
            index: Index of the room in the plan's lists of names.
            manner: How people respond when called on; None: as the plan has it.
            memory: Memory of the persons.
            people_play: Whether the persons that the plan calls human are played by people.
        """
        self.model, self.room, self.plan = model, room, plan
        self.is_original = room.rules == "original"
        self.persons = [
            self._seat(person, manner, memory, is_played=people_play and person.class_ in PEOPLE)
            for person in plan.persons_in(index)
        ]
        self.host = host_of(plan.host, model.random)
        self.moderator: Moderator | None = None
        if plan.host.class_ == "moderator":
            config = AgentConfig(name="Moderator", persona=plan.host.background_story)
            self.moderator = Moderator(model, self.room, config=config)
        self.end = ""
        self.records: list[SurveyRecord] = []
        self._n_checked = -1
        self._asked_at: dict[str, int] = {}
        self._periods: dict[str, int] = {}

    def _seat(self, plan: PersonPlan, manner: Manner | None, memory: str, *, is_played: bool) -> Discussant:
        kind = ScriptedPerson if plan.class_ == "fake_person" else Discussant
        is_scripted = kind is ScriptedPerson
        llm = "rule" if is_scripted else "human" if is_played else None
        config = config_of(plan, is_original=self.is_original)
        person = kind(self.model, self.room, plan, config=config, memory=memory, llm=llm)
        manner = plan.manner if self.is_original or is_scripted else manner or plan.manner
        is_discussant = plan.class_ == "async_group_discussant"
        self.room.seat(
            Member(
                person.unique_id,
                plan.name,
                manner,
                plan.token,
                plan.use_turn_token,
                shows_opening=plan.share_start_time and (is_discussant or not self.is_original),
                has_examples=plan.in_context_learning,
                is_timed=manner in ("decide_write", "write_decide") or not self.is_original,
                is_prefixed=is_discussant,
            )
        )
        return person

    # -- a step

    def step(self) -> Stages:
        """Iterate over the stages of a step."""
        if self.is_original:
            yield from self._original_step()
        elif not self.end:
            yield from self.turn()

    def turn(self, seats: Sequence[int] | None = None) -> Stages:
        """Iterate over the stages of a turn: the host calls on people, and they speak or keep silent.

        Args:
            seats: Indices of the persons called on, where the host of another room decides; None: the own host does.
        """
        room = self.room
        room.begin_turn()
        if self.moderator is not None:
            yield [Turn(self.moderator, self.moderator.observe())]
        room.call(self.host.call(room) if seats is None else [self.persons[seat].unique_id for seat in seats])
        yield from self.phases()
        room.end_turn()

    def phases(self) -> Stages:
        """Iterate over the questions to those called on, until all have spoken or kept silent."""
        by_id = {person.unique_id: person for person in self.persons}
        while due := self.room.due(self._failures()):
            turns: list[Turn] = []
            for agent_id, seen in due.items():
                by_id[agent_id].phase = seen.label
                turns.append(Turn(by_id[agent_id], self._spoken(seen)))
            yield turns

    def _spoken(self, seen: Observation) -> Observation:
        """Return an observation with what may be said in answer, where a line is asked for; the original takes any."""
        if self.is_original or seen.label not in ("write", "choose", "draft", "token"):
            return seen
        facts: RoomFacts = seen.facts
        own = [line.text for line in facts.lines if line.speaker == facts.name]
        heard = [(display_name(line.speaker), line.text) for line in facts.lines if line.speaker != facts.name]
        others = tuple(map(display_name, facts.others))
        argument = "text" if seen.answer is None else ""
        name = display_name(facts.name)
        return replace(seen, speech=Speech(name, others, tuple(own), tuple(heard), 2, MAX_WORDS, argument))

    def _failures(self) -> dict[int, str]:
        """Return why people who were asked have said nothing."""
        decided = self.model.last_decisions.items()
        failures = {number: last.reason for number, last in decided if isinstance(last, Failure)}
        silences = {
            number: f"it {silence_in(last)}"
            for number, last in decided
            if isinstance(last, Decision) and silence_in(last)
        }
        return failures | silences

    # -- private survey questions

    def due_questions(self) -> list[SurveyPlan]:
        """Return the questions to ask aside now, in the order of the file: each once at a number of lines, and once
        whenever its minutes have passed.
        """
        n_lines, elapsed_s = len(self.room.lines), self.room.clock.elapsed_s
        due: list[SurveyPlan] = []
        for question in self.plan.experiment.survey_questions:
            period = question.period(elapsed_s)
            is_new = self._asked_at.get(question.id) != n_lines
            if period > self._periods.get(question.id, 0) or (
                is_new and question.is_due(self._n_checked, n_lines, is_end=bool(self.end))
            ):
                due.append(question)
                self._asked_at[question.id], self._periods[question.id] = n_lines, period
        self._n_checked = n_lines
        return due

    @property
    def is_judged_now(self) -> bool:
        """Whether a ruling of the judge is due."""
        rules = [one for rule in self.room.end_rules for one in (rule.parts if isinstance(rule, AllOf) else (rule,))]
        return not self.end and any(one.is_due(self.room) for one in rules if isinstance(one, JudgedAgreement))

    def check_end(self) -> None:
        """Set `end` if an end rule holds."""
        self.end = self.end or self.room.end

    # -- the original

    def _original_step(self) -> Stages:
        """Do what one iteration of SAUCE's loop does: answers to surveys enter the conversation."""
        if not self.room.end:
            yield from self._original_surveys()
            if not self.end:
                yield from self.turn()
            self._check_lines()
        if self.room.end and not self.end:
            yield from self._original_surveys()
            self.end = self.end or self.room.end

    def _check_lines(self) -> None:
        """End the conversation, as the original breaks off, if a fake person was called on and had no line left."""
        if any(person.is_mute for person in self.persons):
            self.end = "a fake person ran out of lines"

    def _original_surveys(self) -> Stages:
        room = self.room
        is_end, n_lines = bool(room.end), len(room.lines)
        questions = self.plan.experiment.survey_questions
        for question in [one for one in questions if original_is_due(one, n_lines, is_end=is_end)]:
            self.records.append(SurveyRecord(question, len(room.lines)))
            n_heard = len(room.lines)
            for person in self.persons:
                room.call([person.unique_id], (question.id, question.question), n_heard=n_heard)
                yield from self.phases()
                self._check_lines()
                if self.end:
                    return

    def lines(self) -> list[Line]:
        """Return the conversation, without the answers that the original's surveys put into it."""
        return [line for line in self.room.lines if not line.survey]


def original_is_due(question: SurveyPlan, n_lines: int, *, is_end: bool) -> bool:
    """Check whether the original asks a question at a number of lines."""
    iterations = [one for one in question.iterations if isinstance(one, int)]
    return n_lines in iterations or (is_end and -1 in iterations)


def original_batch(sessions: list[Session], batch: list[list[Line]]) -> Stages:
    """Iterate over a step of SAUCE's batches: all rooms in step, and surveys by the length of one list for all.

    Args:
        sessions: The rooms.
        batch: Answers to surveys so far, one row of lines for each question and seat; those of this step are appended.
    """
    host, first = sessions[0].host, sessions[0].room
    if not any(session.room.end for session in sessions):
        yield from _batch_surveys(sessions, batch, is_end=False)
        if not _are_out_of_lines(sessions):
            seats = [list(first.members).index(agent_id) for agent_id in host.call(first)]
            yield from merged([session.turn(seats) for session in sessions])
    if any(session.room.end for session in sessions):
        yield from _batch_surveys(sessions, batch, is_end=True)
        for session in sessions:
            session.end = session.end or "the shortest room is full"
    if _are_out_of_lines(sessions):
        for session in sessions:
            session.end = "a fake person ran out of lines"


def _are_out_of_lines(sessions: list[Session]) -> bool:
    """Check whether a fake person was called on and had no line left, which breaks the original's batches off."""
    return any(person.is_mute for session in sessions for person in session.persons)


def _batch_surveys(sessions: list[Session], batch: list[list[Line]], *, is_end: bool) -> Stages:
    for asking in sessions:
        questions = asking.plan.experiment.survey_questions
        due = [one for one in questions if original_is_due(one, len(batch), is_end=is_end)]
        if not due:
            return
        for question in due:
            asking.records.append(SurveyRecord(question, len(batch)))
            for seat in range(len(asking.persons)):
                before = [len(session.room.aside) for session in sessions]
                for session in sessions:
                    agent_id = session.persons[seat].unique_id
                    session.room.call([agent_id], (question.id, question.question), is_kept=False)
                yield from merged([session.phases() for session in sessions])
                if _are_out_of_lines(sessions):
                    return
                batch.append([line for s, n in zip(sessions, before, strict=True) for line in s.room.aside[n:]])


def merged(parts: list[Stages]) -> Stages:
    """Iterate over the stages of several rooms at once: the first of all, then the second of all, ….

    Args:
        parts: The stages of each room.
    """
    while parts:
        stages = [(part, next(part, None)) for part in parts]
        parts = [part for part, stage in stages if stage is not None]
        together = [turn for _, stage in stages if stage is not None for turn in stage]
        if together:
            yield together


def end_rules(plan: DiscussionPlan, *, is_original: bool = False) -> list[EndRule]:
    """Return the end rules of a plan.

    Args:
        plan: The plan.
        is_original: Whether the number of messages alone ends it, as in SAUCE, even if nobody speaks.
    """
    end = plan.end
    rules: list[EndRule] = []
    if end.max_num_msgs is not None:
        rules.append(MaxLines(end.max_num_msgs))
    if is_original:
        return rules
    if end.max_turns is not None:
        rules.append(MaxTurns(end.max_turns))
    if end.max_minutes is not None:
        rules.append(MaxTime(60 * end.max_minutes))
    if end.agreement:
        rules.append(Agreement(end.agreement, end.agreement_after))
    if end.judge:
        rules.append(JudgedAgreement(end.judge_every or len(plan.persons)))
    if end.combine == "all" and rules:
        rules = [AllOf(tuple(rules))]
    return [*rules, EveryoneSilent(end.max_silent_turns or SILENT_ROUNDS * len(plan.persons))]


def host_of(plan: HostPlan, rng: RNG) -> Host:
    """Return the host that a plan describes.

    Args:
        plan: The plan.
        rng: Source of random draws.
    """
    start = plan.start_person_index or 0
    match plan.class_:
        case "Round Robin Host":
            return RoundRobin(start, plan.skip)
        case "random":
            return RandomHost(start, rng)
        case "moderator":
            return Moderated()
        case "everyone":
            return Everyone()
