"""Sessions with tool servers over the Model Context Protocol: started on demand, bounded, and recorded.

A server's tools and results are untrusted: names and descriptions are shortened, and a result enters a prompt as one
quoted line.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time as clock
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import IO, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from mesa_llm.canonical import canonical_json
from mesa_llm.engine.event_loop import close_all
from mesa_llm.engine.numbering import by_content
from mesa_llm.engine.text import reason_text
from mesa_llm.engine.tool_server import ToolServer
from mesa_llm.errors import ConfigError, ReplayError, ServerError, TransportError
from mesa_llm.llm.certificates import share_certificates
from mesa_llm.llm.redaction import redaction_of
from mesa_llm.records import ChatMessage, Reply, Request, Salt, ToolSpec
from mesa_llm.runlog.log import RunLog
from mesa_llm.text import clip, one_line, quoted
from mesa_llm.tools.tool import Tool, plain_schema

logger = logging.getLogger(__name__)

MAX_TOOLS = 64
"""Maximum number of tools per server."""

MAX_DESCRIPTION = 1_000
"""Maximum number of characters of a tool's description."""

MAX_SCHEMA = 10_000
"""Maximum number of characters of the JSON schema of a tool's arguments."""

MAX_RESULT = 3_500
"""Maximum number of characters of an answer."""

MAX_REASON = 300
"""Maximum number of characters of an error's text."""

START_S = 120.0
"""Timeout of a start, in seconds: some programs are downloaded first."""

MAX_READ_S = 600.0
"""Seconds until a silent connection is closed; calls have a timeout of their own."""

_CONNECTION_CLOSED = -32000
"""The protocol's error code for a server that has ended."""

_PARSE_ERROR = -32700
"""The protocol's error code for a message that cannot be parsed."""


class ServerTool(BaseModel, frozen=True):
    """A tool that a server offers, as it is recorded."""

    name: str
    """Name that the server knows it by."""

    description: str
    """Its description, on one line."""

    parameters: dict[str, Any]
    """JSON schema of its arguments."""

    reads: bool
    """Whether the server declares that it only reads."""


_OFFERS = TypeAdapter(list[ServerTool])


class ToolSessions:
    """The sessions of a run with its tool servers, one per server for all agents that use it."""

    def __init__(self, runlog: RunLog, run_seed: int, named: Collection[str] | None = None) -> None:
        """Store the run log; nothing is started yet.

        Args:
            runlog: Run log in which results are looked up and recorded.
            run_seed: Seed of the run.
            named: As in `EngineOptions`: commands and addresses of the servers that the user names.
        """
        self._named = named
        self.runlog = runlog
        self.run_seed = run_seed
        self._offers: dict[ToolServer, list[ServerTool]] = {}
        self._tools: dict[ToolServer, dict[str, Tool]] = {}
        self._sessions: dict[ToolServer, _Session] = {}
        self._starting = asyncio.Lock()
        self.close = weakref.finalize(self, _close_all, self._sessions)

    async def tools(self, servers: Sequence[ToolServer], time: int) -> tuple[Tool, ...]:
        """Return the tools of servers; a server whose list of tools is recorded is not started.

        Args:
            servers: The servers.
            time: Step in which the tools are needed.

        Raises:
            ConfigError: If a server does not start, offers no tool that may be called, or lacks a tool that was named;
                or if two tools would share a name.
            ReplayError: In a replay, if a server's list of tools is not recorded.
        """
        tools: dict[str, Tool] = {}
        owners: dict[str, str] = {}
        for server in servers:
            if server not in self._tools:
                listing = _listing(server, Salt(self.run_seed, 0, time, "tools", 0))
                offers = self._recorded_offers(listing) or await self._list(server, listing)
                self._tools.setdefault(server, self._chosen(server, offers))
            for own_name, tool in self._tools[server].items():
                name, owner = tool.spec.name, f"{own_name!r} of {server.name}"
                if name in tools:
                    raise ConfigError(
                        f"the tools {owners[name]} and {owner} would both be called {name}; say in tools=(…) of a "
                        "server which of its tools agents may call, or give it another name="
                    )
                tools[name], owners[name] = tool, owner
        return tuple(tools.values())

    def _recorded_offers(self, listing: Request) -> list[ServerTool] | None:
        entry = self._recorded(listing)
        if not isinstance(entry, Reply):
            return None
        try:
            return _OFFERS.validate_json(entry.text)
        except ValidationError as error:
            raise ConfigError(f"the run log is damaged: what {listing.model} offers cannot be read") from error

    async def _list(self, server: ToolServer, listing: Request) -> list[ServerTool]:
        """Start a server and list its tools, once for all agents that wait for it."""
        async with self._starting:
            if server in self._offers:
                return self._offers[server]
            start = clock.perf_counter()
            session = self._session(server)
            try:
                offers = await session.offers()
            except ServerError as error:
                self._drop(session)
                raise ConfigError(f"tool server {server.name} ({server.place}) {error}") from None
            reply = Reply(_OFFERS.dump_json(offers).decode())
            self.runlog.keep(listing, reply, clock.perf_counter() - start)
            self._offers[server] = offers
            return offers

    def _chosen(self, server: ToolServer, offers: Sequence[ServerTool]) -> dict[str, Tool]:
        """Return the tools that agents may call, by their names on the server.

        Raises:
            ConfigError: If there are none, or one that was named is missing.
        """
        by_name = {offer.name: offer for offer in offers}
        names = [name for name, offer in by_name.items() if offer.reads] if server.tools is None else server.tools
        there_are = ", ".join(by_name) or "none"
        if missing := [name for name in names if name not in by_name]:
            raise ConfigError(f"tool server {server.name} offers no tool {missing[0]!r}; it has {there_are}")
        if not names:
            raise ConfigError(
                f"tool server {server.name} declares none of its tools to read only; name those that agents may call "
                f"in tools=(…), out of {there_are}"
            )
        return {name: self._tool(server, by_name[name]) for name in names}

    def _tool(self, server: ToolServer, offer: ServerTool) -> Tool:
        spec = ToolSpec(server.tool_name(offer.name), offer.description, offer.parameters)
        return Tool(spec, partial(self._call, server, offer.name), None, None, is_outside=True)

    async def _call(self, server: ToolServer, name: str, arguments: Mapping[str, Any], salt: Salt) -> str:
        """Call a tool, unless its result is recorded.

        Args:
            server: The server.
            name: Name of the tool on the server.
            arguments: Arguments by name, which the server checks.
            salt: Salt of the call: agent, step and number.

        Returns:
            Text for the model: the result, quoted, or the reason why there is none.

        Raises:
            ReplayError: In a replay, if the result is not recorded.
        """
        request = Request(_name_of(server), (ChatMessage("user", canonical_json([name, arguments])),), salt)
        entry = self._recorded(request)
        if entry is None:
            start = clock.perf_counter()
            session = self._session(server)
            try:
                entry = Reply(_without_key(server, await session.call(name, arguments)))
            except ServerError as error:
                entry = error
            if session.is_over:
                self._drop(session)
            self.runlog.keep(request, entry, clock.perf_counter() - start)
        return f"Error: {server.name} {entry}" if isinstance(entry, TransportError) else entry.text

    def _recorded(self, request: Request) -> Reply | TransportError | None:
        entry = self.runlog.find(request)
        if entry is None and self.runlog.mode == "replay":
            raise ReplayError(self.runlog.explain(request))
        return entry

    def _session(self, server: ToolServer) -> _Session:
        variables = (*server.env, *filter(None, [server.key_env]))
        if variables and self._named is not None and server.place not in self._named:
            raise ConfigError(
                f"the tool server {server.place!r} stands in the run log, which wants {', '.join(variables)} of your "
                "environment for it; nothing was sent. If you trust it, name it: branch(…, named=[its command or url])"
            )
        if server not in self._sessions:
            self._sessions[server] = _Session(server)
        return self._sessions[server]

    def _drop(self, session: _Session) -> None:
        """End a session, so that the next call starts the server again."""
        if self._sessions.get(session.server) is session:
            del self._sessions[session.server]
        session.end()


def _name_of(server: ToolServer) -> str:
    """Return the name under which a server's results are recorded."""
    return f"tool server {server.name}"


def _listing(server: ToolServer, salt: Salt) -> Request:
    """Return the request for a server's list of tools; it is numbered by the server, whichever agent needs it first."""
    spec = canonical_json([server.url or server.command, server.name])
    return Request(_name_of(server), (ChatMessage("user", spec),), by_content(salt, spec))


class _Session:
    """A running server, opened and closed in the same task, as the protocol's client requires.

    Attributes:
        server: The server.
        is_over: Whether it has ended, or never started.
    """

    def __init__(self, server: ToolServer) -> None:
        self.server = server
        self.is_over = False
        self._is_to_end = asyncio.Event()
        self._client: asyncio.Future[Any] | None = None
        self._task: asyncio.Task[None] | None = None

    async def offers(self) -> list[ServerTool]:
        """List the tools whose arguments have a usable schema.

        Raises:
            ServerError: If it does not start or answer.
        """
        listed = await self._ask(lambda client: client.list_tools(), START_S)
        offers: list[ServerTool] = []
        for tool in listed.tools[:MAX_TOOLS]:
            schema = plain_schema(tool.input_schema)
            if schema.get("type") != "object" or len(canonical_json(schema)) > MAX_SCHEMA:
                logger.warning("tool %s of %s is left out: its schema is too long", tool.name, self.server.name)
                continue
            description = one_line(tool.description or tool.name, MAX_DESCRIPTION)
            reads = bool(tool.annotations is not None and tool.annotations.read_only_hint)
            offers.append(ServerTool(name=tool.name, description=description, parameters=schema, reads=reads))
        return offers

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool.

        Returns:
            Its result, shortened and quoted.

        Raises:
            ServerError: If it does not start or answer.
        """
        result = await self._ask(lambda client: client.call_tool(name, dict(arguments)), self.server.timeout_s)
        text = "\n".join(block.text for block in result.content if block.type == "text")
        if not text.strip() and result.structured_content is not None:
            text = canonical_json(result.structured_content)
        answer = f"{self.server.name} answers: {quoted(text, MAX_RESULT) if text.strip() else 'nothing to read'}"
        return f"Error: {answer}" if result.is_error else answer

    async def _ask(self, ask: Callable[[Any], Awaitable[Any]], timeout_s: float) -> Any:
        """Ask the server, starting it first if necessary; the start has a timeout of its own.

        Raises:
            ServerError: If it does not start or answer; `is_over` shows whether it has ended.
        """
        if self._client is None:
            self._client = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._client))
        client = await asyncio.shield(self._client)
        try:
            async with asyncio.timeout(timeout_s):
                return await ask(client)
        except TimeoutError:
            raise ServerError(reason_text("late_server", timeout_s=timeout_s)) from None
        except Exception as error:  # the client may raise anything on the output of a foreign program
            self.is_over = getattr(error, "code", _CONNECTION_CLOSED) == _CONNECTION_CLOSED
            raise ServerError(reason_text("mute_server", error=_reason(error))) from error

    async def _run(self, opened: asyncio.Future[Any]) -> None:
        """Run the server until it is told to end."""
        with tempfile.TemporaryFile("w+", errors="replace") as stderr:
            try:
                await self._serve(opened, stderr)
            except Exception as error:  # noqa: BLE001 - as above
                self.is_over = True
                if not opened.done():
                    what = "did not start" if self.server.command else "cannot be used"
                    opened.set_exception(ServerError(f"{what}: {_reason(error)}{_end_of(stderr)}"))
                    opened.exception()  # nobody may be waiting any more

    async def _serve(self, opened: asyncio.Future[Any], stderr: IO[str]) -> None:
        mcp = await asyncio.to_thread(_load)
        start_s = START_S if self.server.command else self.server.timeout_s
        async with self._streams(mcp, stderr) as streams, mcp.ClientSession(*streams) as client:
            async with asyncio.timeout(start_s):
                await client.initialize()
            opened.set_result(client)
            await self._is_to_end.wait()

    def _streams(self, mcp: Any, stderr: IO[str]) -> AbstractAsyncContextManager[Any]:
        """Start the program, or connect to the URL."""
        if self.server.url:
            return _http_streams(self.server)
        program, *arguments = self.server.command
        environment = {name: os.environ[name] for name in self.server.env if name in os.environ}
        parameters = mcp.StdioServerParameters(command=program, args=arguments, env=environment)
        return mcp.stdio_client(parameters, errlog=stderr)

    def end(self) -> None:
        """Ask the server to end; call on the event loop."""
        self._is_to_end.set()
        self.is_over = True

    async def close(self) -> None:
        """End the server, and wait until it has ended."""
        self.end()
        if self._task is not None:
            await self._task


def _without_key(server: ToolServer, text: str) -> str:
    """Return a result without the key that is sent to the server."""
    return redaction_of((os.environ.get(server.key_env or "", ""),)).text(text)


@asynccontextmanager
async def _http_streams(server: ToolServer) -> AsyncGenerator[Any]:
    """Open a client for a URL, with its key.

    Raises:
        ConfigError: If the environment holds no key.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers: dict[str, str] = {}
    if server.key_env is not None:
        key = os.environ.get(server.key_env)
        if not key:
            raise ConfigError(f"needs a key in the variable {server.key_env} of the environment")
        headers["Authorization"] = f"Bearer {key}"
    share_certificates()
    timeout = httpx2.Timeout(server.timeout_s, read=MAX_READ_S)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks={"response": [_require_entrance]}) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams


async def _require_entrance(response: Any) -> None:
    """Check that a server grants access; the client itself does not report a refusal.

    Raises:
        ConfigError: If it refuses the key, or wants one.
    """
    if response.status_code in (401, 403):
        raise ConfigError(
            f"it wants a key, or another one (HTTP {response.status_code}); key_env names the variable that holds it"
        )


def _load() -> Any:
    """Import the protocol's client, which takes a second.

    Raises:
        ConfigError: If it is not installed.
    """
    try:
        import mcp
    except ImportError:
        raise ConfigError("needs the package mcp: `pip install 'mcp>=2,<3'`") from None
    logging.getLogger("mcp").addHandler(logging.NullHandler())  # else it prints errors that are raised here
    return mcp


def _reason(error: BaseException) -> str:
    """Return the reason of an error on one line; of an exception group, the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it took too long."
    if isinstance(error, ConfigError):
        return str(error)
    code = getattr(error, "code", None)
    if isinstance(error, ValidationError) or code == _PARSE_ERROR:
        return "what came is no message of the protocol."
    if code == _CONNECTION_CLOSED:
        return "the connection was closed."
    return (
        quoted(str(error), MAX_REASON) if code is not None else one_line(f"{type(error).__name__}: {error}", MAX_REASON)
    )


def _end_of(stderr: IO[str]) -> str:
    """Return the last line that a server wrote to stderr."""
    stderr.seek(0)
    lines = stderr.read().strip().splitlines()
    return f" (it says: {clip(one_line(lines[-1]), MAX_REASON)})" if lines else ""


def _close_all(sessions: dict[ToolServer, _Session]) -> None:
    """End all servers."""
    running = list(sessions.values())
    sessions.clear()
    close_all(running)
