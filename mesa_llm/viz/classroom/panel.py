"""The teacher's view of a class: room code, seats, and missing answers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import solara
from solara.core import component

from mesa_llm.text import counted
from mesa_llm.viz.classroom.lesson import Lesson
from mesa_llm.viz.classroom.room import Classroom, StudentSeat
from mesa_llm.viz.components.markup import Markup
from mesa_llm.viz.components.page_state import PageState, use_page

TIMEOUTS: Mapping[str, float | None] = MappingProxyType(
    {
        "never": None,
        "after 30 s": 30.0,
        "after 1 minute": 60.0,
        "after 2 minutes": 120.0,
        "after 5 minutes": 300.0,
    }
)
"""Time limit after which the rule twin decides for a student: label → seconds."""


@component
def ClassPanel(lesson: Lesson) -> None:
    """Show the class, and let the teacher manage seats.

    Args:
        lesson: The lesson.
    """
    page = use_page(lesson)
    page.moment()
    room, is_running = lesson.room, lesson.is_running
    seats, waiting = room.seats, room.waiting
    taken = [seat for seat in seats if seat.is_taken]
    late = [seat for seat in taken if seat.agent_id in waiting]
    with solara.Card("Your class", margin=0, classes=["mesa-llm-class"]):
        Markup("class_links.html", code=room.code, links=lesson.links, is_local=lesson.is_local)
        with solara.Row(gap="12px", style={"align-items": "center", "flex-wrap": "wrap"}):
            text = summary(len(seats), len(taken), len(late), is_running=is_running, has_twins=lesson.has_twins)
            solara.Text(text, classes=["mesa-llm-heading"])
            if late:
                solara.Button(
                    "Let rule twins decide for them",
                    icon_name="mdi-account-clock-outline",
                    on_click=lambda: room.let_rule_twin_decide(late),
                    small=True,
                    color="warning",
                )
        with solara.Div(classes=["mesa-llm-seats"]):
            for seat in seats:
                state = _state(lesson, seat, waiting.get(seat.agent_id))
                _SeatCard(room, seat, seat.student, state, seat in late).key(f"seat {seat.agent_id}")
        if lesson.n_others:
            others = counted(lesson.n_others, "agent")
            solara.Text(f"{others} without a seat: decided for by {lesson.others}.", classes=["mesa-llm-hint"])
        _Settings(page, room)


def summary(n_seats: int, n_taken: int, n_late: int, *, is_running: bool, has_twins: bool = True) -> str:
    """Summarise a class in one line.

    Args:
        n_seats: Number of seats.
        n_taken: Number of students.
        n_late: Number of students who have not answered.
        is_running: Whether a step is running.
        has_twins: Whether the agents have rule twins.
    """
    text = f"{n_taken} of {counted(n_seats, 'seat')} taken."
    if n_late:
        have = "has" if n_late == 1 else "have"
        return f"{text} {n_late} of {counted(n_taken, 'student')} {have} not answered yet."
    if not n_taken:
        return f"{text} {'Rule twins play' if has_twins else 'Nobody plays'} the empty seats."
    return f"{text} Everyone has answered." if is_running else f"{text} Press Step when everyone is ready."


def _state(lesson: Lesson, seat: StudentSeat, seconds: float | None) -> str:
    """Describe what a seat is doing; `seconds` since its question, if one waits."""
    if not seat.is_taken:
        return "played by the rule twin" if lesson.has_twins else "decides nothing"
    if seconds is not None:
        return f"no answer for {seconds:.0f} s"
    return "no question" if lesson.is_running else "ready"


@component
def _SeatCard(room: Classroom, seat: StudentSeat, student: str, state: str, is_late: bool) -> None:
    is_taken = bool(student)  # the seat is a mutable object, so its changes alone would not redraw the card
    name = student or "free"
    classes = ["mesa-llm-seat", "late" if is_late else "taken" if is_taken else "free"]
    with solara.Div(classes=classes):
        Markup("class_seat.html", name=name, agent=seat.agent, state=state, is_taken=is_taken)
        with solara.Row(gap="4px", style={"flex-wrap": "wrap"}):
            if is_late:
                solara.Button(
                    "Rule twin",
                    on_click=lambda: room.let_rule_twin_decide([seat]),
                    small=True,
                    text=True,
                    attributes={"aria-label": f"Rule twin decides for {name}"},
                )
            if is_taken:
                solara.Button(
                    "Free the seat",
                    on_click=lambda: room.free(seat, "the teacher freed the seat"),
                    small=True,
                    text=True,
                    attributes={"aria-label": f"Free the seat of {name}"},
                )


@component
def _Settings(page: PageState, room: Classroom) -> None:
    labels = {seconds: label for label, seconds in TIMEOUTS.items()}
    if room.timeout_s not in labels:
        labels[room.timeout_s] = f"after {room.timeout_s:g} s"
    by_label = {label: seconds for seconds, label in labels.items()}

    def set_timeout(label: str) -> None:
        room.timeout_s = by_label[label]
        page.update_text()

    def open_or_close(is_open: bool) -> None:
        room.is_open = is_open
        page.update_text()

    with solara.Row(gap="18px", style={"align-items": "center", "flex-wrap": "wrap"}):
        with solara.Div(style={"width": "16rem"}):
            solara.Select(
                "Rule twin replaces late students",
                list(by_label),
                labels[room.timeout_s],
                set_timeout,
                dense=True,
            )
        solara.Checkbox(label="Let new students join", value=room.is_open, on_value=open_or_close)
