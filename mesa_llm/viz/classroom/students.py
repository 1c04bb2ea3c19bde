"""The students' pages: plain HTML forms, kept apart from the teacher's page.

A student's cookie holds the key of one seat. It only allows reading and answering the questions to the agent at that
seat: nothing here steps or resets the model, spends money, or shows the questions of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError
from mesa_llm.llm.human.forms import FormField, Offer
from mesa_llm.model.model import LLMModel
from mesa_llm.records import Failure
from mesa_llm.viz.classroom.admission import Admission, Identities, TooSoon, network_of
from mesa_llm.viz.classroom.lesson import Lesson
from mesa_llm.viz.classroom.room import NoSeat, StudentSeat, Visitor
from mesa_llm.viz.render.markup import label_of, markup
from mesa_llm.viz.render.trace import call_text
from mesa_llm.viz.session.forms import hint_of
from mesa_llm.viz.session.rw_lock import steady

JOIN_PATH = "/join"
"""Path of the students' pages; all other paths are the teacher's."""

MAX_BODY = 64_000
"""Maximum size of a submitted form, in bytes."""

MAX_TEXT = 2000
"""Maximum length of one text, in characters; it may end up in prompts that the teacher pays for."""

MAX_FIELDS = 200
"""Maximum number of fields in a submitted form."""

FILES = MappingProxyType({"seat.css": "text/css", "seat.js": "text/javascript"})
"""Static files of the students' pages → media type."""


class TooLarge(Exception):
    """A form is larger than any that a student could fill in."""


class StudentPages:
    """The students' pages of one lesson, as an ASGI application.

    Attributes:
        app: The application.
    """

    def __init__(self, lesson: Lesson, *, cookie: str) -> None:
        """Set up the pages.

        Args:
            lesson: The lesson.
            cookie: Name of the cookie that holds the key of a seat.
        """
        self._lesson = lesson
        self._room = lesson.room
        self._cookie = cookie
        self._identities = Identities()
        self._admission = Admission(lesson.room)
        routes = [
            Route(JOIN_PATH, self._join),
            Route(JOIN_PATH, self._enter, methods=["POST"]),
            Route(f"{JOIN_PATH}/seat", self._seat),
            Route(f"{JOIN_PATH}/seat", self._answer, methods=["POST"]),
            Route(f"{JOIN_PATH}/leave", self._leave, methods=["POST"]),
            Route(f"{JOIN_PATH}/now", self._now),
            *(Route(f"{JOIN_PATH}/{name}", self._file) for name in FILES),
        ]
        self.app = Starlette(routes=routes, exception_handlers={TooLarge: _too_large, ClientDisconnect: _gone})

    # -- joining

    async def _join(self, request: Request) -> Response:
        if self._seat_of(request) is not None:
            return _redirect(f"{JOIN_PATH}/seat")
        page = self._join_page({"code": request.query_params.get("code", "")[:20]})
        return self._with_identity(request, page, self._visitor_of(request))

    def _join_page(self, typed: dict[str, str], fault: str = "", status: int = 200) -> Response:
        values = {name: typed.get(name, "")[:100] for name in ("code", "name", "seat_code")}
        return _page(markup("join.html", title=self._lesson.title, fault=fault, **values), status)

    def _visitor_of(self, request: Request) -> Visitor:
        """Return the sender of a request; a new visitor if there is no valid cookie."""
        network = network_of(request.client.host) if request.client else ""
        identity = self._identities.read(request.cookies.get(f"{self._cookie}-visitor", ""))
        return Visitor(identity or self._identities.new(), network, bool(identity))

    def _with_identity(self, request: Request, response: Response, visitor: Visitor) -> Response:
        """Set the cookie that identifies a new visitor's browser."""
        if not visitor.is_known:
            cookie = self._identities.cookie(visitor.identity)
            self._set_cookie(request, response, f"{self._cookie}-visitor", cookie)
        return response

    def _set_cookie(self, request: Request, response: Response, name: str, value: str) -> None:
        secure = request.url.scheme == "https"
        response.set_cookie(name, value, path=JOIN_PATH, httponly=True, samesite="lax", secure=secure)

    async def _enter(self, request: Request) -> Response:
        typed = dict(await _fields(request))
        if self._seat_of(request) is not None:  # a second click, or the Back button
            return _redirect(f"{JOIN_PATH}/seat")
        visitor = self._visitor_of(request)
        code, name, seat_code = (typed.get(name, "") for name in ("code", "name", "seat_code"))
        try:
            seat = await self._admission.enter(code, name, seat_code, visitor)
        except NoSeat as refusal:
            status = 429 if isinstance(refusal, TooSoon) else 403
            return self._with_identity(request, self._join_page(typed, str(refusal), status), visitor)
        response = self._with_identity(request, _redirect(f"{JOIN_PATH}/seat"), visitor)
        self._set_cookie(request, response, self._cookie, seat.key)
        return response

    # -- playing

    def _seat_of(self, request: Request) -> StudentSeat | None:
        return self._room.seat_of(request.cookies.get(self._cookie, ""))

    async def _seat(self, request: Request) -> Response:
        seat = self._seat_of(request)
        if seat is None:
            return self._join_page(
                {}, "This browser has no seat, or has given it up. Enter the room code to join.", 403
            )
        return _page(await run_in_threadpool(self._seat_page, seat, "late" in request.query_params))

    def _seat_page(self, seat: StudentSeat, is_late: bool) -> str:
        draft = self._room.draft_of(seat)
        question: dict[str, Any] | None = None
        if draft is not None:
            request = draft.question.request
            rules = "\n\n".join(message.content for message in request.messages if message.role == "system")
            question = {
                "number": draft.question.question_id,
                "rules": rules,
                "text": draft.question.text,
                "refusal": draft.refusal,
                "chosen": [call_text(call.name, dict(call.arguments)) for call in draft.calls],
                "maximum": request.max_actions,
                "offers": [
                    _offer(
                        offer,
                        offer.name == draft.picked or len(draft.possible) == 1,
                        draft.lines if offer.name == draft.picked else {},
                        draft.faults if offer.name == draft.picked else {},
                    )
                    for offer in draft.possible
                ],
            }
        model, waiting = self._lesson.model, self._n_others(seat)
        is_under_way = question is not None or waiting > 0
        return markup(
            "seat.html",
            title=self._lesson.title,
            seat=seat,
            question=question,
            is_late=is_late,
            step=0 if model is None else model.now - (not is_under_way),
            is_over=model is not None and not model.running,
            is_gone=model is not None and not is_in_model(model, seat.agent_id),
            waiting=waiting,
            outcomes=[] if model is None else actions_of(model, seat.agent_id),
            version=self._version(seat),
            max_text=MAX_TEXT,
        )

    def _n_others(self, seat: StudentSeat) -> int:
        return len(self._room.waiting.keys() - {seat.agent_id})

    def _version(self, seat: StudentSeat) -> str:
        """Return a text that changes whenever the page of a seat does; with an open question, only with that."""
        question = self._room.question_of(seat)
        draft = self._room.draft_of(seat)
        if question is not None:
            return f"question {question.question_id}, {0 if draft is None else len(draft.calls)} chosen"
        model = self._lesson.model
        step, is_running = (0, True) if model is None else (model.now, model.running)
        return f"{id(model)} step {step} {is_running} waiting {self._n_others(seat)}"

    async def _now(self, request: Request) -> Response:
        seat = self._seat_of(request)
        return PlainTextResponse("gone" if seat is None else self._version(seat), headers=NOT_CACHED)

    async def _answer(self, request: Request) -> Response:
        fields = dict(await _fields(request))
        seat = self._seat_of(request)
        number, n_chosen = _number(fields.get("question")), _number(fields.get("chosen"))
        if seat is None or number is None:
            return _redirect(f"{JOIN_PATH}/seat")
        if "finish" in fields:
            is_taken = self._room.finish(seat, number)
        else:
            name = fields.get("offer", "")
            is_taken = self._room.answer(seat, number, name, self._lines(seat, name, fields), n_chosen)
        return _redirect(f"{JOIN_PATH}/seat" if is_taken else f"{JOIN_PATH}/seat?late")

    def _lines(self, seat: StudentSeat, name: str, fields: dict[str, str]) -> dict[tuple[str, ...], str]:
        draft = self._room.draft_of(seat)
        offer = next((each for each in draft.possible if each.name == name), None) if draft else None
        if offer is None:
            return {}
        return {line.path: fields[key] for key, line in _numbered(offer.field) if key in fields}

    async def _leave(self, request: Request) -> Response:
        seat = self._seat_of(request)
        if seat is not None:
            self._room.free(seat)
        response = _redirect(JOIN_PATH)
        response.delete_cookie(self._cookie, path=JOIN_PATH)
        return response

    async def _file(self, request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        return Response(Path(__file__).with_name(name).read_bytes(), media_type=FILES[name], headers=NOT_CACHED)


NOT_CACHED = MappingProxyType({"Cache-Control": "no-store"})
"""Headers of responses that browsers must not cache."""


def is_in_model(model: LLMModel, agent_id: int) -> bool:
    """Check whether an agent is still in a model.

    Args:
        model: The model.
        agent_id: Mesa `unique_id` of the agent.
    """
    with steady(model):
        return any(agent.unique_id == agent_id for agent in llm_agents(model))


def actions_of(model: LLMModel, agent_id: int) -> list[dict[str, Any]]:
    """Return an agent's last actions with their outcomes.

    Args:
        model: The model.
        agent_id: Mesa `unique_id` of the agent.

    Returns:
        `text`, `result`, `ok` and `by` of each action or answer.
    """
    try:
        with steady(model):
            decision, outcomes = model.last_decisions.get(agent_id), list(model.last_outcomes.get(agent_id, ()))
    except ConfigError:  # Reset has just closed it
        return []
    if decision is None or isinstance(decision, Failure):
        return []
    actions: list[dict[str, Any]] = []
    for outcome in outcomes:
        text = call_text(outcome.action, dict(outcome.arguments))
        actions.append({"text": text, "result": str(outcome.result), "ok": outcome.ok, "by": decision.by})
    return actions or [{"text": "nothing", "result": "", "ok": True, "by": decision.by}]


def _offer(offer: Offer, is_open: bool, lines: Any, faults: Any) -> dict[str, Any]:
    return {
        "name": offer.name,
        "label": label_of(offer.name) if offer.name else "Your answer",
        "description": offer.description,
        "is_open": is_open,
        "fields": [
            {
                "key": key,
                "label": label_of(line.name),
                "hint": hint_of(line),
                "control": line.control,
                "items": line.items or (["yes", "no"] if line.control == "list" else []),
                "is_needed": line.is_needed,
                "text": lines.get(line.path, ""),
                "fault": faults.get(line.path, ""),
            }
            for key, line in _numbered(offer.field)
        ],
    }


def _number(text: str | None) -> int | None:
    """Return a whole number from a form; None if it is not a number."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 16 else None


def _numbered(field: FormField) -> Iterator[tuple[str, FormField]]:
    return ((f"field{index}", line) for index, line in enumerate(field.lines))


async def _fields(request: Request) -> list[tuple[str, str]]:
    """Read the fields of a submitted form.

    Raises:
        TooLarge: If it is larger than any that a student could fill in.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise TooLarge
    try:
        pairs = parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, errors="replace", max_num_fields=MAX_FIELDS
        )
    except ValueError:
        raise TooLarge from None
    fields = [
        (key, value.replace("\r\n", "\n")) for key, value in pairs
    ]  # browsers count a line break as one character
    if any(len(value) > MAX_TEXT for _, value in fields):
        raise TooLarge
    return fields


async def _too_large(request: Request, error: Exception) -> Response:
    return PlainTextResponse("Too long. Go back and shorten your text.\n", 413)


async def _gone(request: Request, error: Exception) -> Response:
    return PlainTextResponse("", 400)


def _page(html: str, status: int = 200) -> Response:
    return HTMLResponse(html, status, headers=NOT_CACHED)


def _redirect(path: str) -> Response:
    return RedirectResponse(path, 303, headers=NOT_CACHED)
