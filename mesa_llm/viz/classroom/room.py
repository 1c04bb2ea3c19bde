"""A classroom: its code, its seats, the students in them, and the questions waiting for them."""

from __future__ import annotations

import logging
import math
import secrets
import threading
import time as clock
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from mesa_llm.errors import ConfigError, HumanTimeout, MesaLLMError
from mesa_llm.llm.human.queue import HumanLLM, HumanQueue, PendingQuestion
from mesa_llm.records import Reply, Request
from mesa_llm.text import one_line
from mesa_llm.viz.session.forms import Draft, Lines

logger = logging.getLogger(__name__)

LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Characters of codes, chosen so that none looks like another."""

ROOM_CODE_LENGTH, SEAT_CODE_LENGTH = 6, 8

MAX_NAME = 40
"""Maximum length of a student's name."""

LOOK_S = 0.5
"""Seconds between two checks for late students."""

ABSENT_S = 60.0
"""Seconds without a request from a student's browser after which the seat may go to another; see `Classroom.join`."""

NOBODY = "no student has the seat of this agent"
"""Why a decision at an empty seat fails, for the run log."""


class NoSeat(MesaLLMError):
    """A student gets no seat; the message is for the student."""


class WrongCode(NoSeat):
    """A code is wrong."""


@dataclass(frozen=True)
class Visitor:
    """Somebody who wants a seat."""

    identity: str = ""
    """Identity of the browser; empty: unknown."""

    network: str = ""
    """Address or network; others may share it."""

    is_known: bool = False
    """Whether the browser has been here before."""


@dataclass(eq=False)
class StudentSeat:
    """The seat of one agent that a student can play."""

    agent_id: int
    """Mesa `unique_id` of the agent."""

    agent: str
    """Name of the agent."""

    student: str = ""
    """Name of the student; empty: the seat is free."""

    code: str = ""
    """Code with which the student can rejoin from another device."""

    key: str = ""
    """Key held by the student's browser."""

    visitor: Visitor = Visitor()
    """The student's browser, which can have only one seat."""

    looked_at: float = -math.inf
    """Time of the last request from the student's browser."""

    n_answers: int = 0
    """Number of questions answered by the student."""

    draft: Draft | None = None
    """The student's unfinished answer."""

    @property
    def is_taken(self) -> bool:
        """Whether a student has the seat."""
        return bool(self.student)


class _KeptSeat(BaseModel, frozen=True, extra="forbid"):
    """A taken seat in the file of a classroom, with the fields of `StudentSeat`."""

    agent_id: int
    agent: str
    student: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    code: Annotated[str, Field(min_length=SEAT_CODE_LENGTH)]
    key: Annotated[str, Field(min_length=32)]


class _KeptClassroom(BaseModel, frozen=True, extra="forbid"):
    """Contents of the file of a classroom."""

    code: Annotated[str, Field(min_length=ROOM_CODE_LENGTH)]
    """Room code."""

    seats: tuple[_KeptSeat, ...] = ()
    """Taken seats."""

    @classmethod
    def read(cls, file: Path) -> _KeptClassroom:
        """Read a file.

        Raises:
            ConfigError: If it is not the file of a classroom.
        """
        try:
            return cls.model_validate_json(file.read_bytes())
        except (OSError, ValidationError):
            raise ConfigError(
                f"{str(file)!r} is not the file of a classroom; name another file, or remove it"
            ) from None


class SeatQueue(HumanQueue):
    """A queue that accepts no questions for empty seats."""

    def __init__(self, is_played: Callable[[int], bool]) -> None:
        """Start empty.

        Args:
            is_played: Checks whether a student plays the agent with this id.
        """
        super().__init__()
        self._is_played = is_played

    def ask(self, request: Request) -> Future[Reply]:
        """Queue a question; for an empty seat, the decision fails at once."""
        if self._is_played(request.salt.agent):
            return super().ask(request)
        future: Future[Reply] = Future()
        future.set_exception(HumanTimeout(NOBODY))
        return future


class Classroom:
    """The classroom of one lesson. Its methods may be called from any thread.

    Attributes:
        code: Code that students enter to join.
        person: Transport of the agents at all seats.
        patience_s: Seconds after which the rule twin decides for a student; None: never.
        is_open: Whether new students can join.
        version: Counter that rises whenever seats or answers change.
    """

    def __init__(self, timeout_s: float | None = None, file: Path | None = None) -> None:
        """Open a classroom without seats, or restore one from its file.

        Args:
            patience_s: Seconds after which the rule twin decides for a student; None: never.
            file: File that saves the code and taken seats across restarts of the server; None: none.

        Raises:
            ConfigError: If the file is not that of a classroom, or cannot be written.
        """
        kept = (
            _KeptClassroom(code=new_code(ROOM_CODE_LENGTH))
            if file is None or not file.exists()
            else _KeptClassroom.read(file)
        )
        self.code = kept.code
        self.person = HumanLLM(SeatQueue(self._is_played))
        self.timeout_s = timeout_s
        self.is_open = True
        self.version = 0
        self._lock = threading.RLock()
        now = clock.monotonic()
        self._seats = {seat.agent_id: StudentSeat(**dict(seat), looked_at=now) for seat in kept.seats}
        self._is_arranged = False
        self._file = file
        self._since: dict[int, float] = {}
        self._closed = threading.Event()
        try:
            self._keep()
        except OSError as error:
            raise ConfigError(f"the classroom cannot be saved in {str(file)!r}: {error}") from None

    # -- seats

    def _changed(self) -> None:
        """Save changed seats."""
        self.version += 1
        try:
            self._keep()
        except OSError as error:
            logger.warning("the seats of the class cannot be saved: %s", error)

    def _keep(self) -> None:
        """Write the seats to the file, which only this user may read, as it contains the codes."""
        if self._file is None:
            return
        taken = [_KeptSeat.model_validate(seat, from_attributes=True) for seat in self._seats.values() if seat.is_taken]
        new_file = self._file.with_name(self._file.name + ".new")
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new_file.unlink(missing_ok=True)
        new_file.touch(0o600)
        new_file.write_text(
            _KeptClassroom(code=self.code, seats=tuple(taken)).model_dump_json(indent=1), encoding="utf-8"
        )
        new_file.replace(self._file)

    @property
    def seats(self) -> list[StudentSeat]:
        """All seats, in the order of their agents."""
        with self._lock:
            return list(self._seats.values())

    def arrange(self, agents: Iterable[tuple[int, str]]) -> None:
        """Set up the seats for a new model; students keep their seats, or get another one if theirs is gone.

        Args:
            agents: Id and name of each agent that a student can play.
        """
        with self._lock:
            old_seats = self._seats
            self._seats = {agent_id: StudentSeat(agent_id, name) for agent_id, name in agents}
            homeless: list[StudentSeat] = []
            for old in old_seats.values():
                if old.is_taken and not self._move(old, self._seats.get(old.agent_id)):
                    homeless.append(old)
            for old in homeless:
                self._move(old, self._free_seat())
            self._is_arranged = True
            self._changed()

    def _move(self, old: StudentSeat, new: StudentSeat | None) -> bool:
        if new is None:
            return False
        new.student, new.code, new.key, new.visitor = old.student, old.code, old.key, old.visitor
        new.looked_at, new.n_answers = old.looked_at, old.n_answers
        return True

    def _free_seat(self) -> StudentSeat | None:
        return next((seat for seat in self._seats.values() if not seat.is_taken), None)

    def _is_played(self, agent_id: int) -> bool:
        with self._lock:
            seat = self._seats.get(agent_id)
            return seat is not None and seat.is_taken

    def _abandoned_seat(self, network: str) -> StudentSeat | None:
        """Free an unattended seat of an address with at least two more seats than this one; None: there is none."""
        n_seats = Counter(seat.visitor.network for seat in self._seats.values() if seat.is_taken)
        before = clock.monotonic() - ABSENT_S
        abandoned = [
            seat
            for seat in self._seats.values()
            if not seat.n_answers and seat.looked_at < before and n_seats[seat.visitor.network] >= n_seats[network] + 2
        ]
        seat = min(abandoned, key=lambda seat: seat.looked_at, default=None)
        if seat is not None:
            self.free(seat, "it was unattended, and another student needed it")
        return seat

    def check_code(self, code: str) -> None:
        """Raise unless a typed room code is right.

        Raises:
            WrongCode: If it is wrong.
        """
        if not is_same_code(code, self.code):
            raise WrongCode("Wrong room code. Please check it: it has six letters and digits.")

    def join(self, code: str, name: str, seat_code: str = "", visitor: Visitor = Visitor()) -> StudentSeat:
        """Assign a student a free seat, or the one that the student has or had.

        If all are taken, the student gets an unattended seat, if there is one: taken from an address with at least two
        more seats than the student's, without a request for `ABSENT_S` seconds, and without any answer so far.

        Args:
            code: Room code as typed by the student.
            name: Name as typed by the student.
            seat_code: Seat code of a student who comes back; the browser that had the seat loses it.
            visitor: The student's browser, which keeps any seat that it has.

        Raises:
            NoSeat: If a code is wrong, or there is no seat.
        """
        self.check_code(code)
        name = clean_name(name)
        with self._lock:
            same = next((seat for seat in self._seats.values() if seat.student.casefold() == name.casefold()), None)
            if seat_code.strip():
                return self._come_back(same, seat_code, visitor)
            if (own := self.seat_of_visitor(visitor)) is not None:
                return own
            if same is not None:
                raise NoSeat(f"{name} already has a seat. If that is you, enter your seat code as well.")
            if not self._is_arranged:
                raise NoSeat("Your teacher is not here yet. Try again in a minute.")
            if not self.is_open:
                raise NoSeat("Your teacher is not letting anyone else join.")
            seat = self._free_seat() or self._abandoned_seat(visitor.network)
            if seat is None:
                raise NoSeat("All seats are taken. Ask your teacher for one.")
            seat.student, seat.code, seat.n_answers = name, new_code(SEAT_CODE_LENGTH), 0
            self._give(seat, visitor)
            return seat

    def _come_back(self, seat: StudentSeat | None, seat_code: str, visitor: Visitor) -> StudentSeat:
        if seat is None or not is_same_code(seat_code, seat.code):
            raise WrongCode("No seat has this name and seat code.")
        other = self.seat_of_visitor(visitor)
        if other is not None and other is not seat:
            self.free(other, "the student has changed seats")
        self._give(seat, visitor)
        return seat

    def _give(self, seat: StudentSeat, visitor: Visitor) -> None:
        """Reserve a seat for one browser."""
        seat.key, seat.visitor, seat.looked_at = secrets.token_urlsafe(32), visitor, clock.monotonic()
        self._changed()

    def seat_of_visitor(self, visitor: Visitor) -> StudentSeat | None:
        """Return the seat of a browser by its identity; None if there is none."""
        if not visitor.identity:
            return None
        with self._lock:
            return next((seat for seat in self._seats.values() if seat.visitor.identity == visitor.identity), None)

    def seat_of(self, key: str) -> StudentSeat | None:
        """Return the seat with a browser's key, and note the request; None if there is none."""
        with self._lock:
            for seat in self._seats.values():
                if seat.key and secrets.compare_digest(seat.key.encode(), key.encode()):
                    seat.looked_at = clock.monotonic()
                    return seat
        return None

    def free(self, seat: StudentSeat, reason: str = "the student has left") -> None:
        """Free a seat; the rule twin answers its open question.

        Args:
            seat: The seat.
            reason: Why, for the run log.
        """
        with self._lock:
            seat.student = seat.code = seat.key = ""
            seat.visitor = Visitor()
            seat.draft = None
            self._changed()
        self.let_rule_twin_decide([seat], reason)

    # -- questions

    def question_of(self, seat: StudentSeat) -> PendingQuestion | None:
        """Return the open question of a student; None if there is none."""
        return next((each for each in self.person.desk.pending if each.agent == seat.agent_id), None)

    @property
    def waiting(self) -> dict[int, float]:
        """The agents whose students have not answered yet, each with the seconds since the question."""
        now = clock.monotonic()
        return {
            question.agent: now - self._since.get(question.question_id, now) for question in self.person.desk.pending
        }

    def draft_of(self, seat: StudentSeat) -> Draft | None:
        """Return a student's unfinished answer to the open question; None if there is no question."""
        with self._lock:
            question = self.question_of(seat)
            if question is None:
                seat.draft = None
            elif seat.draft is None or seat.draft.question.question_id != question.question_id:
                seat.draft = Draft(question)
            return seat.draft

    def answer(
        self, seat: StudentSeat, question_id: int, offer: str, lines: Lines, n_chosen: int | None = None
    ) -> bool:
        """Accept a form filled in by a student.

        Args:
            seat: The student's seat.
            question_id: The question in the student's browser; answers to older questions are ignored.
            offer: Name of the action; empty for a typed answer.
            lines: Contents of its fields.
            n_chosen: Number of actions chosen so far, according to the browser; a form with another number, from a
                second click or window, is ignored. None: not checked.

        Returns:
            Whether the browser showed the current question.
        """
        with self._lock:
            draft = self.draft_of(seat)
            if draft is None or draft.question.question_id != question_id:
                return False
            if n_chosen not in (None, len(draft.calls)):
                return False
            reply = draft.choose(offer, lines)
            if reply is not None:
                seat.n_answers += 1
                self.person.desk.answer(question_id, reply)
            self.version += 1
            return True

    def finish(self, seat: StudentSeat, question_id: int) -> bool:
        """Send the actions chosen so far, although more would be possible.

        Args:
            seat: The student's seat.
            question_id: The question in the student's browser.

        Returns:
            Whether there were actions for the current question.
        """
        with self._lock:
            draft = self.draft_of(seat)
            if draft is None or draft.question.question_id != question_id or not draft.calls:
                return False
            seat.n_answers += 1
            self.person.desk.answer(question_id, draft.reply())
            self.version += 1
            return True

    # -- the rule twin

    def let_rule_twin_decide(
        self, seats: Sequence[StudentSeat], reason: str = "the teacher let the rule twin decide"
    ) -> None:
        """Let rule twins answer the open questions of some seats.

        Args:
            seats: The seats.
            reason: Why, for the run log.
        """
        agents = {seat.agent_id for seat in seats}
        for question in self.person.desk.pending:
            if question.agent in agents:
                self.person.desk.withdraw(question.question_id, reason)

    def look(self, now: float) -> None:
        """Let rule twins decide for students who took longer than `timeout_s`, or have left.

        Args:
            now: Time on a monotonic clock, in seconds.
        """
        pending = self.person.desk.pending
        self._since = {each.question_id: self._since.get(each.question_id, now) for each in pending}
        timeout_s = self.timeout_s
        for question in pending:
            if not self._is_played(question.agent):  # its student left while the question was being queued
                self.person.desk.withdraw(question.question_id, NOBODY)
            elif timeout_s is not None and now - self._since[question.question_id] >= timeout_s:
                self.person.desk.withdraw(question.question_id, f"no answer within {timeout_s:g} s")

    def watch(self) -> None:
        """Start a thread that calls `look` until the classroom is closed."""
        threading.Thread(target=self._watch, name="mesa-llm-room", daemon=True).start()

    def _watch(self) -> None:
        while not self._closed.wait(LOOK_S):
            self.look(clock.monotonic())

    def close(self) -> None:
        """End the thread."""
        self._closed.set()


def new_code(length: int) -> str:
    """Return a random code that is easy to read out and to type."""
    return "".join(secrets.choice(LETTERS) for _ in range(length))


def is_same_code(typed: str, code: str) -> bool:
    """Compare a typed code with the right one, ignoring case, spaces and dashes."""
    plain = "".join(typed.upper().replace("-", " ").split())
    return bool(code) and secrets.compare_digest(plain.encode(), code.encode())


JOINER = "\u200d"
"""Zero-width joiner, the only invisible character that is kept, as it joins emoji."""

FILLERS = MappingProxyType(dict.fromkeys([0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, *range(0xFE00, 0xFE10)]))
"""Invisible characters that Unicode classifies as letters, marks or symbols: fillers and variation selectors."""


def clean_name(name: str) -> str:
    """Return a name on one line, without invisible characters.

    Raises:
        NoSeat: If nothing is left, or it is too long.
    """
    plain = unicodedata.normalize("NFKC", name).translate(FILLERS)
    plain = "".join(" " if character.isspace() else character for character in plain)
    plain = one_line("".join(each for each in plain if each == JOINER or unicodedata.category(each)[0] != "C"))
    if not plain:
        raise NoSeat("Enter your name.")
    if len(plain) > MAX_NAME:
        raise NoSeat(f"This name is too long; the maximum is {MAX_NAME} characters.")
    return plain
