"""Access control of the page server: only visitors with its token get in, and only from its own pages.

A page of another origin in the same browser can send requests to any server on this machine, and read from WebSockets.
So every request, and every WebSocket before it is accepted, is checked: the host name it was sent to (attackers can
make their own domain point here), the origin it was sent from, and the token.
"""

from __future__ import annotations

import html
import ipaddress
import secrets
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from mesa_llm.viz.classroom.students import JOIN_PATH

PROTECTION = MappingProxyType(
    {
        "Content-Security-Policy": "frame-ancestors 'none'",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }
)
"""Headers of every HTTP response: no other page can frame or read this one, or keep a handle on its window."""

STUDENTS_PROTECTION = MappingProxyType(
    {
        **PROTECTION,
        "Content-Security-Policy": (
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
    }
)
"""The same for students' pages, where no injected script may run or send anything."""

ASK_FOR_TOKEN = (
    "This page needs its token: open the address that `mesa-llm app` printed on start, which ends in ?token=…\n"
)
"""Response to visitors with neither token nor cookie."""


def host_name(netloc: str) -> str:
    """Return the host of `host:port` in lower case without brackets; empty if there is none.

    Args:
        netloc: The value of a Host header, or the same part of a URL.
    """
    try:
        return (urlsplit(f"//{netloc}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Check whether a host name always means this machine."""
    address = _ip_address(host)
    return host == "localhost" if address is None else address.is_loopback


def is_same_origin(origin: str, netloc: str) -> bool:
    """Check whether a request comes from a page of the server that it was sent to.

    Args:
        origin: The value of its Origin header.
        netloc: The value of its Host header.
    """
    try:
        sender = urlsplit(origin)
    except ValueError:
        return False
    return sender.scheme in ("http", "https") and sender.netloc.lower() == netloc.lower() != ""


def foreign_origin(headers: Mapping[str, list[str]] | None) -> str:
    """Return the origin of the page that opened a WebSocket if it belongs to another server; else an empty text.

    Args:
        headers: Headers of the WebSocket's request, in lower case; None if there is no browser.
    """
    if headers is None:
        return ""
    origin = next(iter(headers.get("origin", ())), "")
    served_as = [*headers.get("host", ()), *headers.get("x-forwarded-host", ())]
    return "" if not origin or any(is_same_origin(origin, netloc) for netloc in served_as) else origin


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


class Auth:
    """ASGI middleware that keeps unauthorised visitors out of an application.

    Attributes:
        app: The protected application.
        cookie: Name of the cookie that a browser gets in exchange for the token.
        students: The students' pages of a classroom, which need no token; None: there are none.
    """

    def __init__(
        self, app: ASGIApp, token: str, *, cookie: str, hosts: Iterable[str] = (), any_address: bool = False
    ) -> None:
        """Set the token and the accepted host names.

        Args:
            app: The application to protect.
            token: Token that a browser's first request must carry.
            cookie: Name of the cookie; cookies ignore ports, so each server on a host needs its own.
            hosts: Names under which the server may be addressed, besides those of this machine itself.
            any_address: Whether it may also be addressed by any IP address, which no attacker can redirect.
        """
        self.app = app
        self.cookie = cookie
        self.students: ASGIApp | None = None
        self._token = token
        self._ticket = ""
        self._pass = secrets.token_urlsafe(32)
        self._hosts = frozenset(host.lower().strip("[]").rstrip(".") for host in hosts)
        self._any_address = any_address

    def ticket(self) -> str:
        """Return a single-use token: the command that opens a browser is visible to everybody on the machine."""
        self._ticket = secrets.token_urlsafe(32)
        return self._ticket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward or refuse a request or WebSocket."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        refusal = self._refusal(connection)
        if scope["type"] == "websocket":
            is_welcome = not refusal and "origin" in connection.headers and self._has_pass(connection)
            await (self.app if is_welcome else WebSocketClose(1008))(scope, receive, send)
        elif refusal:
            await _protected(PlainTextResponse(refusal, 403))(scope, receive, send)
        elif self.students is not None and _is_for_students(scope["path"]):
            await _protected(self.students, STUDENTS_PROTECTION)(scope, receive, send)
        elif "token" in connection.query_params:
            await _protected(self._admission(connection))(scope, receive, send)
        elif self._has_pass(connection):
            await _protected(self.app)(scope, receive, send)
        else:
            await _protected(PlainTextResponse(ASK_FOR_TOKEN, 403))(scope, receive, send)

    def _refusal(self, connection: HTTPConnection) -> str:
        """Return why a request is refused whatever its token; empty if it is not."""
        headers = connection.headers
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_known(name := host_name(hosts[0])):
            name = host_name(hosts[0])[:100] if hosts else ""
            return f"Unknown host name {name!r}; if it belongs to this server, start it with --allow-host {name}\n"
        if any(not is_same_origin(origin, hosts[0]) for origin in headers.getlist("origin")) or _is_embedded(headers):
            return "Requests from pages of other servers are refused.\n"
        return ""

    def _is_known(self, host: str) -> bool:
        return is_loopback(host) or host in self._hosts or (self._any_address and _ip_address(host) is not None)

    def _has_pass(self, connection: HTTPConnection) -> bool:
        return secrets.compare_digest(connection.cookies.get(self.cookie, "").encode(), self._pass.encode())

    def _admission(self, connection: HTTPConnection) -> Response:
        """Exchange a token for a cookie, and send the browser to the address without the token.

        This needs a page instead of a redirect: after a redirect, a browser coming from a link on another site would
        not send the cookie.
        """
        if not self._is_token(connection.query_params):
            return PlainTextResponse(f"Wrong token. {ASK_FOR_TOKEN}", 403)
        url = connection.url
        parameters = [(name, value) for name, value in parse_qsl(url.query, keep_blank_values=True) if name != "token"]
        clean = (
            "./"
            + quote(connection.scope["path"].rpartition("/")[2])
            + (f"?{urlencode(parameters)}" if parameters else "")
        )
        page = f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(clean)}"><title>mesa_llm</title>'
        response = HTMLResponse(page, headers={"Cache-Control": "no-store"})
        response.set_cookie(self.cookie, self._pass, httponly=True, samesite="strict", secure=url.scheme == "https")
        return response

    def _is_token(self, query: QueryParams) -> bool:
        token = query["token"].encode()
        if self._ticket and secrets.compare_digest(token, self._ticket.encode()):
            self._ticket = ""
            return True
        return secrets.compare_digest(token, self._token.encode())


def _is_for_students(path: str) -> bool:
    return path == JOIN_PATH or path.startswith(f"{JOIN_PATH}/")


def _is_embedded(headers: Headers) -> bool:
    """Check whether another site embeds this one in a page; it may link here."""
    if headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != ("navigate", "document")


def _protected(app: ASGIApp, headers: Mapping[str, str] = PROTECTION) -> ASGIApp:
    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers)
            await send(message)

        await app(scope, receive, send_protected)

    return call
