"""The page server, for visitors with its token."""

from __future__ import annotations

import ast
import html
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import warnings
import webbrowser
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn
from solara.server import app as solara_app
from solara.server import settings, starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp

from mesa_llm.engine.access import Access
from mesa_llm.errors import ConfigError, missing_in
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.classroom.lesson import Lesson
from mesa_llm.viz.classroom.students import JOIN_PATH, StudentPages
from mesa_llm.viz.server.auth import Auth, is_loopback
from mesa_llm.viz.server.connections import IDLE_S, MAX_ACCEPTED, MAX_QUEUE, ConnectionPool, raise_descriptor_limit
from mesa_llm.viz.server.page import LLMPage
from mesa_llm.viz.server.state import ServerState
from mesa_llm.viz.session.runner import wait_until_closed

logger = logging.getLogger(__name__)

SERVED_PAGE = "mesa_llm.viz.server.page:ServedPage"
"""Name of the only page of a server for Solara."""

TOKEN_VARIABLE = "MESA_LLM_APP_TOKEN"
"""Environment variable for the token."""

ANY_ADDRESS = ("", "0.0.0.0", "::")
"""Hosts that mean all addresses of this machine."""

MIN_TOKEN_LENGTH = 16
"""Minimum length of a token in characters, if other machines can reach the server."""

ENDING_S = 5
"""Maximum time to wait for open connections to end, and then for open models, in seconds."""


class PageServer:
    """A server of pages on this machine.

    Attributes:
        address: Address of the pages, with the token.
    """

    def __init__(
        self,
        page: str | Callable[[], Any],
        *,
        host: str = "127.0.0.1",
        port: int = 8765,
        token: str | None = None,
        names: Sequence[str] = (),
        access: Access | None = None,
        benchmark_folders: Iterable[Path] = (),
        lesson: Lesson | None = None,
    ) -> None:
        """Bind the port; requests are answered once `run` is called.

        Args:
            page: Module or file of the pages, as for `solara run`; or a model, as `module:Class` or the file that
                defines it; or a function that places the contents of a single page.
            host: Address to listen on.
            port: Port to listen on; 0: any that is free.
            token: Token in the address; None: a new one.
            names: Further host names of the server, besides `host` and those of this machine.
            access: Common budget of the models of all pages; None: none.
            benchmark_folders: Folders whose benchmarks are shown besides those in `runs`.
            lesson: Lesson whose students' pages are served as well, to anybody with the room code; None: none.

        Raises:
            ConfigError: If the token is too weak, the port is taken, or there is no such page.
        """
        _check_token(token, host)
        place = _placing(page)
        self._application = _solara(SERVED_PAGE if callable(place) else place)
        ServerState(
            access=access, benchmark_folders=benchmark_folders, page=place if callable(place) else None
        ).install()
        self._socket = _listening(host, port)
        self._port: int = self._socket.getsockname()[1]
        is_any = host in ANY_ADDRESS
        self._host = "127.0.0.1" if is_any else host
        token = token or secrets.token_urlsafe(32)
        self.address = self._with_token(token)
        self._auth = Auth(
            self._application,
            token,
            cookie=f"mesa-llm-{self._port}",
            hosts=[host, *names, *(_own_names() if is_any else ())],
            any_address=is_any,
        )
        self._lesson = lesson
        if lesson is not None:
            self._admit(lesson, host, names)

    def _admit(self, lesson: Lesson, host: str, names: Sequence[str]) -> None:
        """Serve the students' pages of a lesson."""
        self._auth.students = StudentPages(lesson, cookie=f"mesa-llm-seat-{self._port}").app
        is_any = host in ANY_ADDRESS
        hosts = [*names, *filter(None, [_outer_address()]), *_own_names()] if is_any else [self._host, *names]
        lesson.is_local = is_loopback(host) and not names
        lesson.links = [f"http://{_in_address(name)}:{self._port}{JOIN_PATH}" for name in hosts]

    def _with_token(self, token: str) -> str:
        return f"http://{_in_address(self._host)}:{self._port}/?token={quote(token, safe='')}"

    def run(self, *, browser: bool = False) -> None:
        """Serve until SIGINT, SIGTERM or SIGHUP; on return the port and the models of all pages are closed.

        Args:
            browser: Whether to open a browser.
        """
        for number in signal.SIGINT, signal.SIGTERM:  # until uvicorn handles them, and after that
            signal.signal(number, signal.default_int_handler)
        warnings.filterwarnings("ignore", "Cookies with samesite=none")  # from Solara, which allows framing
        if missing_in("offline"):
            logger.warning(
                "pages get their front end from the internet; `pip install 'mesa-llm-worlds[offline]'` keeps it here"
            )
        connections = ConnectionPool(raise_descriptor_limit())
        config = uvicorn.Config(
            self._auth,
            http=connections.protocol(),
            access_log=False,  # would contain the token
            log_config=None,
            log_level="error",
            backlog=MAX_ACCEPTED,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=ENDING_S,
        )
        if browser:
            address = self._with_token(self._auth.ticket())
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        if self._lesson is not None:
            self._lesson.room.watch()
        try:
            _Server(config).run(sockets=[self._socket])
        except KeyboardInterrupt:
            logger.info("the server was interrupted")
        finally:
            self._socket.close()
            if self._lesson is not None:
                self._lesson.close()
            wait_until_closed(ENDING_S)


class _Server(uvicorn.Server):
    """A server with a longer queue of clients than it accepts at once."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(MAX_QUEUE)


def _check_token(token: str | None, host: str) -> None:
    if token is not None and not token:
        raise ConfigError("the token is empty; omit --token to get a new one")
    if is_loopback(host):
        return
    if token is None:
        raise ConfigError(
            f"--host {host} lets other machines in: set the token that they must present, in the environment "
            f"variable {TOKEN_VARIABLE} (or with --token, which other users of this machine can see); "
            f"for example: {secrets.token_urlsafe(24)}"
        )
    if len(token) < MIN_TOKEN_LENGTH:
        raise ConfigError(
            f"--host {host} lets other machines guess the token: it needs at least {MIN_TOKEN_LENGTH} characters, "
            f"not {len(token)}; for example: {secrets.token_urlsafe(24)}"
        )


PAGES = frozenset({"page", "Page", "app", "routes"})
"""Names under which Solara finds a page in a file."""


def model_named(page: str) -> type[LLMModel] | None:
    """Return the model to show, if the name is that of a model instead of a page.

    Args:
        page: `module:Class`, or a Python file that defines one model and no page.

    Raises:
        ConfigError: If it cannot be imported, or has no such class.
    """
    if page.endswith(".py"):
        return _model_in_file(Path(page))
    module, _, name = page.partition(":")
    if not name:
        return None
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        factory = attrgetter(name)(import_module(module))
    except ImportError as error:
        raise ConfigError(f"there is no module {module!r} to show: {error}") from error
    except AttributeError:
        raise ConfigError(f"the module {module!r} has no {name!r}") from None
    except Exception as error:  # anybody's code
        raise ConfigError(f"{module!r} cannot be imported: {type(error).__name__}: {error}") from error
    return factory if isinstance(factory, type) and issubclass(factory, LLMModel) else None


def _model_in_file(file: Path) -> type[LLMModel] | None:
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError as error:
        raise ConfigError(f"{str(file)!r} cannot be read: {error}") from error
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    if names & PAGES:
        return None
    sys.path.insert(0, str(file.parent.resolve()))
    try:
        module = import_module(file.stem)
    except Exception as error:  # anybody's code
        raise ConfigError(f"{str(file)!r} cannot be imported: {type(error).__name__}: {error}") from error
    classes = [kind for kind in vars(module).values() if getattr(kind, "__module__", "") == module.__name__]
    models = [kind for kind in classes if isinstance(kind, type) and issubclass(kind, LLMModel)]
    if len(models) != 1:
        found = ", ".join(kind.__name__ for kind in models) or "no model"
        raise ConfigError(f"{str(file)!r} has no page and defines {found}; name one model: {file.stem}:CLASS")
    return models[0]


def _placing(page: str | Callable[[], Any]) -> str | Callable[[], Any]:
    """Return a function that places the only page of the server, or the name of a module or file with pages."""
    if callable(page):
        return page
    if page.endswith((".py", ".ipynb")) and not Path(page).is_file():
        raise ConfigError(f"there is no file {page!r} to show")
    model = model_named(page)
    return page if model is None else lambda: LLMPage(model)


def _solara(page: str) -> ASGIApp:
    """Return Solara's own application, set up to show a page without its banner."""
    settings.main.mode = "production"
    settings.telemetry.mixpanel_enable = False
    settings.theme.show_banner = False
    try:
        solara_app.apps["__default__"] = solara_app.AppScript(page)
    except ImportError as error:
        raise ConfigError(f"there is no page {page!r}: {error}") from error
    starlette.app.add_exception_handler(404, _no_page)
    return starlette.app


def _no_page(request: Request, _: Exception) -> HTMLResponse:
    """Respond to an unknown address with a link to the pages."""
    text = f'There is no page {html.escape(request.url.path)}. <a href="/">All pages</a>'
    return HTMLResponse(f"<!doctype html><title>mesa_llm</title><p>{text}</p>", 404)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=MAX_QUEUE)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}, port {port}: {error}; choose another --port or --host") from error


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _outer_address() -> str:
    """Return the address of this machine in its network, without sending anything; empty if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an example address, which is routed like any other
            return str(probe.getsockname()[0])
        except OSError:
            return ""


def _own_names() -> list[str]:
    name = socket.gethostname()
    return [name, f"{name}.local"]
