"""A room where people talk: turns, lines, silences, a clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from mesa_llm.errors import ToolError
from mesa_llm.records import ActionResult, Event, Observation
from mesa_llm.text import one_line
from mesa_llm.tools.tool import action
from mesa_llm.world import Rules
from mesa_llm_models.discussion.world import text as wording
from mesa_llm_models.discussion.world.clock import Clock
from mesa_llm_models.discussion.world.facts import RoomFacts
from mesa_llm_models.discussion.world.rules import EndRule, MaxTime, cleaned, first_reason, speaks
from mesa_llm_models.discussion.world.state import FIRST_PHASE, Kind, Line, Member, Move, Ruling, Silence, SurveyAnswer
from mesa_llm_models.discussion.world.text import display_name

Text = Annotated[str, Field(min_length=1, max_length=2_000)]
"""A line."""

NO_REPLY = "no usable reply came"
"""Reason for a silence without the member's own reason."""


class Wish(BaseModel, frozen=True):
    """Whether somebody wants to speak now."""

    speak: bool
    """True to speak now, false to keep silent and listen."""

    reason: Annotated[str, Field(max_length=300)]
    """Why, in one short sentence."""


class Verdict(BaseModel, frozen=True):
    """What a judge finds in a conversation."""

    agreed: bool
    """True if all of them have agreed, false if anybody has not, or has not said so."""

    reason: Annotated[str, Field(max_length=300)]
    """Why, in one short sentence."""


_ACTIONS = {"choose": ("wait",), "interact": ("gesture", "do", "leave", "wait")}
"""Phase → actions besides speaking."""


@dataclass(slots=True)
class _Floor:
    """A member's turn to speak."""

    phase: str
    is_asked: bool = False
    draft: str = ""
    question: tuple[str, str] = ("", "")
    n_heard: int | None = None
    is_kept: bool = True


class Room:
    """A conversation among members who hear each other.

    Attributes:
        name: Name of the world, unique in a model.
        unit: Unit of a step.
        topic: Text everyone reads first.
        clock: The clock of the room.
        rules: `original` for SAUCE's code, with plain-text replies and tokens; `corrected` for typed replies.
        end_rules: Rules that end the conversation.
        members: Members by id, in the order of seats.
        lines: The conversation.
        silences: Silences of members who were called on.
        moves: Moves of all members, turn by turn.
        answers: Private survey answers.
        rulings: Rulings of the judge, if there is one.
        aside: Lines kept out of the conversation, under the original rules.
        n_turns: Number of turns so far.
        n_silent_turns: Number of silent turns in a row, up to now.
        next_speaker: Member chosen by the moderator.
    """

    wording: ClassVar[Any] = wording
    """Module with the texts agents read. A subclass may set its own."""

    unit = "turn"

    def __init__(
        self,
        topic: str = "",
        clock: Clock | None = None,
        end_rules: Iterable[EndRule] = (),
        *,
        name: str = "room",
        rules: Rules = "corrected",
        has_whispers: bool = False,
        shows_time_left: bool = True,
        max_shown: int = 100,
        filler: Sequence[str] = (),
        counts_absent: bool = False,
    ) -> None:
        """Create an empty room.

        Args:
            topic: Text everyone reads first.
            clock: The clock of the room; None for one that starts at ten.
            end_rules: Rules that end the conversation. The first that applies gives the reason.
            name: Name of the world, unique in a model.
            rules: Rules for parsing replies.
            has_whispers: Whether members can speak to one person alone.
            shows_time_left: Whether members see the time left, if there is a limit.
            max_shown: Maximum number of lines members read.
            filler: Sentences that members read in place of what others say; empty to show that.
            counts_absent: Whether members not called on make the move of doing nothing.
        """
        self.name, self.topic, self.rules = name, topic, rules
        self.clock = clock or Clock()
        self.end_rules = tuple(end_rules)
        self.has_whispers, self.shows_time_left, self.max_shown = has_whispers, shows_time_left, max_shown
        self.counts_absent, self.filler = counts_absent, tuple(filler)
        self.members: dict[int, Member] = {}
        self.lines: list[Line] = []
        self.silences: list[Silence] = []
        self.moves: list[Move] = []
        self.answers: list[SurveyAnswer] = []
        self.rulings: list[Ruling] = []
        self.aside: list[Line] = []
        self.n_turns = self.n_silent_turns = 0
        self.next_speaker: int | None = None
        self._floors: dict[int, _Floor] = {}
        self._n_before = 0
        self._done: dict[int, Kind] = {}
        self._waited: set[int] = set()
        self._last_moves: dict[int | None, str] = {}  # by member, over the moves processed so far
        self._present: list[int] = []
        self._counts_read = (0, 0)  # numbers of moves and members that `_present` is based on
        self._n_read: dict[int, int] = {}

    # -- members

    def seat(self, member: Member) -> None:
        """Add a member."""
        self.members[member.agent_id] = member

    @property
    def present(self) -> list[int]:
        """Ids of the members whose last move was not to leave, by seat."""
        if (counts := (len(self.moves), len(self.members))) != self._counts_read:
            for move in self.moves[self._counts_read[0] :]:
                self._last_moves[move.agent_id] = move.kind
            last, self._counts_read = self._last_moves.get, counts
            self._present = [agent_id for agent_id in self.members if last(agent_id) != "leave"]
        return self._present

    @property
    def timeline(self) -> list[Line | Silence]:
        """Lines and silences, oldest first."""
        entries: list[tuple[int, Line | Silence]] = [(2 * index + 1, line) for index, line in enumerate(self.lines)]
        entries += [(2 * silence.after, silence) for silence in self.silences]
        return [entry for _, entry in sorted(entries, key=itemgetter(0))]

    @property
    def end(self) -> str:
        """Why the conversation is over; empty if it is not."""
        return first_reason(self.end_rules, self)

    @property
    def limit_s(self) -> float | None:
        """Time limit in seconds, or None."""
        limits = [rule.seconds for rule in self.end_rules if isinstance(rule, MaxTime)]
        return min(limits) if limits else None

    # -- turns

    def begin_turn(self) -> None:
        """Begin a turn: one call of the host."""
        self._n_before, self.next_speaker = len(self.lines), None
        self._done, self._waited = {}, set()

    def call(
        self,
        agent_ids: Iterable[int],
        question: tuple[str, str] = ("", ""),
        *,
        n_heard: int | None = None,
        is_kept: bool = True,
    ) -> None:
        """Call on members to speak.

        Args:
            agent_ids: Their ids. Several speak without hearing each other.
            question: Id and text of a private survey question, under the original rules; answers enter the lines.
            n_heard: Number of lines they have heard; None for all.
            is_kept: Whether their lines enter `lines`; otherwise they enter `aside`.
        """
        for agent_id in agent_ids:
            phase = FIRST_PHASE[self.members[agent_id].manner]
            self._floors[agent_id] = _Floor(phase, question=question, n_heard=n_heard, is_kept=is_kept)

    def due(self, failures: Mapping[int, str] | None = None) -> dict[int, Observation]:
        """Return the next questions to the members called on, and advance the clock.

        Members who did nothing count as silent.

        Args:
            failures: Reasons for failed replies, by member.

        Returns:
            Id → observation; empty if there are no more questions.
        """
        for agent_id in [one for one, floor in self._floors.items() if floor.is_asked]:
            self._keep_silent(agent_id, (failures or {}).get(agent_id) or NO_REPLY)
        if not self._floors:
            return {}
        if any(self.members[agent_id].is_timed for agent_id in self._floors):
            self.clock.ask()
        due: dict[int, Observation] = {}
        for agent_id, floor in self._floors.items():
            floor.is_asked = True
            due[agent_id] = self.observe(agent_id, floor.phase)
            self._n_read[agent_id] = len(self.lines)
        return due

    def end_turn(self) -> None:
        """End a turn, and count it."""
        self.n_turns += 1
        present = self.present
        self.moves.append(Move(None, "turn"))
        for agent_id in present:
            if agent_id in self._done or agent_id in self._waited or self.counts_absent:
                self.moves.append(Move(agent_id, self._done.get(agent_id, "none")))
        self.n_silent_turns = 0 if len(self.lines) > self._n_before else self.n_silent_turns + 1

    # -- observations

    def observe(self, agent_id: int, phase: str = "") -> Observation:
        """Return a member's view of the conversation.

        Args:
            agent_id: Id of the member.
            phase: Kind of question; empty for none, as before a survey.
        """
        member = self.members.get(agent_id) or Member(agent_id, "")
        facts = self.facts(agent_id, phase)
        is_original = self.rules == "original"
        text = self.wording.description(facts, member, is_original=is_original)
        is_asked_last = not is_original and member.manner != "interact"
        closing = self.wording.question_text(facts, member) if is_asked_last else ""
        brief = "" if member.reads_once else member.brief
        instructions = "\n\n".join(filter(None, (self.topic, brief)))
        answer = self._answer_type(phase)
        if answer is not None:
            seen = Observation(text, instructions, answer, facts=facts, label=phase, world=self.name)
        else:
            tools, options = self._tools(phase or "choose"), self._hearers(agent_id)
            seen = Observation(text, instructions, None, tools, options, facts=facts, label=phase, world=self.name)
        return replace(seen, closing=closing) if closing else seen

    def _answer_type(self, phase: str) -> Any:
        """Return the answer type in a phase, or None if the phase takes an action."""
        if not phase:
            return None
        if self.rules == "original" or phase == "token":
            return str
        return {"draft": Text, "decide": Wish}.get(phase)

    def _tools(self, phase: str) -> tuple[str, ...]:
        own = _ACTIONS.get(phase, ())
        return ("say", "whisper", *own) if self.has_whispers and len(self.present) > 1 else ("say", *own)

    def _hearers(self, agent_id: int) -> dict[str, tuple[Any, ...]]:
        if not self.has_whispers:
            return {}
        others = tuple(display_name(self.members[one].name) for one in self.present if one != agent_id)
        return {"whisper.to": others} if others else {}

    def facts(self, agent_id: int, phase: str = "") -> RoomFacts:
        """Return what a member observes, as values."""
        floor = self._floors.get(agent_id) or _Floor("")
        member = self.members.get(agent_id) or Member(agent_id, "")
        n_read = self._n_read.get(agent_id) if member.reads_once and phase else None
        if n_read is None:
            lines = [line for line in self.lines[: floor.n_heard] if line.is_heard_by(agent_id)]
        else:
            lines = [one for one in self.lines[n_read:] if one.is_heard_by(agent_id) and one.speaker_id != agent_id]
        last_lines = [self._filled(line, agent_id) for line in lines[-self.max_shown :]]
        limit_s = self.limit_s if self.shows_time_left else None
        return RoomFacts(
            member.name,
            tuple([self.members[one].name for one in self.present if one != agent_id]),
            tuple(last_lines),
            len(lines) - len(last_lines),
            self.clock.now,
            self.clock.opening,
            None if limit_s is None else limit_s - self.clock.elapsed_s,
            phase,
            floor.draft,
            floor.question[1],
            self.n_turns + 1,
            member.brief if member.reads_once and n_read is None else "",
            n_read is not None,
        )

    def _filled(self, line: Line, agent_id: int) -> Line:
        """Return a line as a member reads it: with a neutral text, if others' words are replaced."""
        if not self.filler or line.speaker_id == agent_id:
            return line
        return replace(line, text=self.filler[(line.turn + line.speaker_id) % len(self.filler)])

    def moderation(self, agent_id: int) -> Observation:
        """Return the moderator's view of the conversation, asking who speaks next."""
        facts = self.facts(agent_id, "moderate")
        names = tuple(display_name(self.members[one].name) for one in self.present)
        text = self.wording.moderation_text(facts, names)
        options = {"person": names}
        return Observation(
            text, self.topic, tools=("give_floor",), options=options, facts=facts, label="moderate", world=self.name
        )

    # -- actions

    @action
    def say(self, agent_id: int, text: Text) -> ActionResult:
        """Say something to everyone in the room.

        Args:
            text: What you say, in your own words.
        """
        return self._speak(agent_id, text)

    @action
    def whisper(self, agent_id: int, text: Text, to: str) -> ActionResult:
        """Say something to one person alone; nobody else hears it.

        Args:
            text: What you say, in your own words.
            to: Name of the person.
        """
        hearer = next((one for one in self.members.values() if display_name(one.name) == to), None)
        if not self.has_whispers:
            raise ToolError(self.wording.reason_text("whisper_unheard"))
        if hearer is None or hearer.agent_id == agent_id:
            raise ToolError(self.wording.reason_text("nobody_else", to=to))
        return self._speak(agent_id, text, hearer=hearer)

    @action
    def gesture(self, agent_id: int, text: Text) -> ActionResult:
        """Show something without words: a look, a smile, a shrug.

        Args:
            text: What the others see, in a few words.
        """
        return self._speak(agent_id, text, kind="gesture")

    @action
    def do(self, agent_id: int, text: Text) -> ActionResult:
        """Do something: take, give, write, open or move something.

        Args:
            text: What you do, in a few words.
        """
        return self._speak(agent_id, text, kind="do")

    @action
    def leave(self, agent_id: int) -> ActionResult:
        """Leave for good: the conversation is over for you."""
        return self._speak(agent_id, "", kind="leave")

    @action
    def wait(self, agent_id: int, reason: Annotated[str, Field(max_length=300)]) -> ActionResult:
        """Keep silent this time, and listen.

        Args:
            reason: Why, in one short sentence. Nobody hears it.
        """
        self._require_member(agent_id)
        return self._keep_silent(agent_id, reason)

    @action
    def give_floor(self, agent_id: int, person: str) -> ActionResult:
        """Give the floor to one person, who speaks next.

        Args:
            person: Name of the person.
        """
        if agent_id in self.members:
            raise ToolError(self.wording.reason_text("not_moderator"))
        speaker = next((one for one in self.members.values() if display_name(one.name) == person), None)
        if speaker is None:
            raise ToolError(self.wording.reason_text("nobody", person=person))
        self.next_speaker = speaker.agent_id
        return ActionResult(self.wording.result_text("give_floor", person=person), speaker_id=speaker.agent_id)

    def receive(self, agent_id: int, answer: Any, label: str) -> str | ActionResult:
        """Receive a member's decision or text.

        Args:
            agent_id: Id of the member.
            answer: A `Wish`, or a text.
            label: The phase.

        Raises:
            ToolError: If the member was not asked.
        """
        floor = self._floors.get(agent_id)
        if floor is None or floor.phase != label:
            raise ToolError(self.wording.reason_text("not_called"))
        if label == "decide":
            return self._decided(agent_id, floor, self._wish(agent_id, answer))
        text = self._cleaned(agent_id, answer)
        if label == "draft":
            self._floors[agent_id] = _Floor("decide", False, text, floor.question, floor.n_heard, floor.is_kept)
            return ""
        if label in ("token", "choose") and not speaks(text, self.members[agent_id].pass_token):
            reason = "it wrote the token that passes" if text.strip() else "it wrote nothing"
            return self._keep_silent(agent_id, reason)
        return self._speak(agent_id, text)

    def _decided(self, agent_id: int, floor: _Floor, wish: Wish) -> str | ActionResult:
        if not wish.speak:
            return self._keep_silent(agent_id, wish.reason)
        if self.members[agent_id].manner == "write_decide":
            return self._speak(agent_id, floor.draft)
        self._floors[agent_id] = _Floor("write", False, "", floor.question, floor.n_heard, floor.is_kept)
        return ""

    def _wish(self, agent_id: int, answer: Any) -> Wish:
        if isinstance(answer, Wish):
            return answer
        text = self._cleaned(agent_id, str(answer))
        return Wish(speak=speaks(text, self.members[agent_id].pass_token), reason=text[:300])

    def _cleaned(self, agent_id: int, text: str) -> str:
        member = self.members[agent_id]
        if self.rules != "original" or not member.is_timed:
            return text
        return cleaned(text, member.name, f"[{self.clock.now}] {member.name}: " if member.is_prefixed else "")

    def _require_member(self, agent_id: int) -> None:
        if agent_id not in self.members:
            raise ToolError(self.wording.reason_text("not_here"))

    def _speak(self, agent_id: int, text: str, kind: Kind = "say", hearer: Member | None = None) -> ActionResult:
        """Add a line to the conversation, for everyone or one hearer."""
        self._require_member(agent_id)
        viewers = None if hearer is None else (agent_id, hearer.agent_id)
        member = self.members[agent_id]
        floor = self._floors.pop(agent_id, _Floor(""))
        if member.is_timed:
            self.clock.say(text)
        time = self.clock.now if member.is_timed else ""
        line = Line(agent_id, member.name, text, time, viewers, floor.question[0], kind, self.n_turns + 1)
        self._done[agent_id] = kind
        (self.lines if floor.is_kept else self.aside).append(line)
        result = self.wording.RESULTS[kind] if hearer is None else self.wording.heard_text(hearer.name)
        hearer_id = None if hearer is None else hearer.agent_id
        return ActionResult(result, kind=kind, hearer_id=hearer_id, turn=line.turn)

    def _keep_silent(self, agent_id: int, reason: str) -> ActionResult:
        floor = self._floors.pop(agent_id, _Floor(""))
        name = self.members[agent_id].name
        self._waited.add(agent_id)
        text = one_line(reason, 300) or "it gave no reason"
        self.silences.append(Silence(agent_id, name, len(self.lines), self.clock.now, text, floor.draft))
        return ActionResult(self.wording.result_text("silence"), kind="silence")

    # -- surveys and rulings

    def note_answer(self, question: str, agent_id: int, answer: Any, failure: str = "") -> None:
        """Record a private survey answer. Nobody in the room hears it.

        Args:
            question: Id of the question.
            agent_id: Id of the respondent.
            answer: The answer, or None.
            failure: Reason for a missing answer.
        """
        name = self.members[agent_id].name
        self.answers.append(SurveyAnswer(question, agent_id, name, len(self.lines), answer, failure))

    def transcript(self) -> str:
        """Return the conversation as heard by a listener who is not a member."""
        return self.wording.conversation(self.facts(0))

    def note_ruling(self, verdict: Verdict | None, failure: str = "") -> None:
        """Record the judge's ruling. Nobody in the room hears it.

        Args:
            verdict: The verdict; None without a usable reply.
            failure: Reason for a missing verdict.
        """
        agreed, reason = (None, failure) if verdict is None else (verdict.agreed, one_line(verdict.reason, 300))
        self.rulings.append(Ruling(len(self.lines), agreed, reason))

    def n_said(self, agent_id: int) -> int:
        """Return how often a member has spoken so far, including survey answers."""
        n_lines = sum(line.speaker_id == agent_id for line in (*self.lines, *self.aside))
        return n_lines + sum(answer.agent_id == agent_id for answer in self.answers)

    def end_step(self) -> list[Event]:
        """End a step without events: the conversation stays in the room."""
        return []
