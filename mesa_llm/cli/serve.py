"""`mesa-llm serve`: servers of one language model, here or on Ray, which `mesa-llm.toml` names as one endpoint."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import time as clock
import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from mesa_llm.cli.command import command, say, warn
from mesa_llm.errors import BadReply, ConfigError
from mesa_llm.llm import child_process
from mesa_llm.llm.interrupts import until_interrupted

LOOK_AGAIN_S = 1.0
"""Seconds between two looks at the servers."""

STOP_S = 30.0
"""Maximum number of seconds for which a server may end by itself once it is told to."""

PROBE_S = 5.0
"""Seconds until a server that does not answer a look counts as not ready."""

HERE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """Servers of one model to start."""

    model: str
    """Name of the model, as vLLM takes it."""

    name: str
    """Name of the endpoint in `mesa-llm.toml`."""

    replicas: int
    """Number of servers."""

    gpus: int
    """Number of GPUs of each server, over which its model is split."""

    port: int
    """Port of the first server on this machine; the next ones follow. On Ray, any free port of the node is taken."""

    concurrency: int
    """Maximum number of requests in flight to each server."""

    arguments: Sequence[str]
    """Further arguments of `vllm serve`."""

    @property
    def command(self) -> list[str]:
        """Command of a server, without its address."""
        split = ["--tensor-parallel-size", str(self.gpus)] if self.gpus > 1 else []
        return ["vllm", "serve", self.model, *split, *self.arguments]

    def fields(self, bases: Sequence[str]) -> dict[str, Any]:
        """Return the fields of the endpoint, given the base URL of each server."""
        fields = {"model": self.model, "api_base": bases[0], "replicas": list(bases[1:])}
        return {**fields, "concurrency": self.concurrency * len(bases)}


class Server(Protocol):
    """A server that was started."""

    def base(self) -> str:
        """Return its base URL."""
        ...

    def status(self) -> int | None:
        """Return its exit status; None while it runs."""
        ...

    def stop(self) -> None:
        """End it."""
        ...


class ServerProcess:
    """A server as a process on the machine where this object is; on Ray, the object is an actor."""

    def __init__(self, command: Sequence[str], host: str | None, port: int) -> None:
        """Start it.

        Args:
            command: Its command, without its address.
            host: Address to listen on; None: that of the Ray node.
            port: Port to listen on; 0: any free one.

        Raises:
            ConfigError: If there is no such command.
        """
        if host is None:
            from mesa_llm.experiments.runs.runner import ray_module

            host = str(ray_module().util.get_node_ip_address())
        self._base = f"http://{host}:{port or _free_port(host)}/v1"
        try:
            env = {**os.environ, child_process.SAFE_PATH: "1"}
            self._process = subprocess.Popen(_at(command, self._base), env=env)
        except FileNotFoundError:
            raise ConfigError(f"no command {command[0]!r} here; install it (`pip install vllm`)") from None

    def base(self) -> str:
        """Return its base URL."""
        return self._base

    def status(self) -> int | None:
        """Return its exit status; None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """End it, with its connections if it takes too long."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _RayServer:
    """A server that an actor has started."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor

    def base(self) -> str:
        return self._ray.get(self._actor.base.remote())

    def status(self) -> int | None:
        return self._ray.get(self._actor.status.remote())

    def stop(self) -> None:
        self._ray.get(self._actor.stop.remote())
        self._ray.kill(self._actor)


@contextmanager
def started(plan: ServerPlan, on: str) -> Generator[list[Server]]:
    """Start servers, which end with the block.

    Args:
        plan: The servers.
        on: `processes` of this machine, or `ray`: the cluster of `RAY_ADDRESS`, or this machine.

    Raises:
        ConfigError: If Ray or vLLM is not installed.
    """
    with ExitStack() as stack:
        servers: list[Server] = []
        if on == "ray":
            from mesa_llm.experiments.runs.runner import ray_cluster

            ray = stack.enter_context(ray_cluster(plan.replicas))
            start = ray.remote(num_gpus=plan.gpus, num_cpus=1)(ServerProcess).remote
            servers += [_RayServer(ray, start(plan.command, None, 0)) for _ in range(plan.replicas)]
            for server in servers:
                stack.callback(server.stop)
        else:
            for index in range(plan.replicas):
                servers.append(ServerProcess(plan.command, HERE, plan.port and plan.port + index))
                stack.callback(servers[-1].stop)
        yield servers


def await_ready(servers: Sequence[Server], timeout_s: float) -> None:
    """Wait until all servers answer.

    Raises:
        ConfigError: If one ends before that, or they take too long.
    """
    waiting = {server.base(): server for server in servers}
    ends = clock.monotonic() + timeout_s
    while waiting:
        for base, server in list(waiting.items()):
            if (status := server.status()) is not None:
                raise ConfigError(f"the server at {base} ended with status {status}; its output says why")
            if _answers(base):
                del waiting[base]
        if waiting and clock.monotonic() > ends:
            raise ConfigError(f"no answer from {', '.join(waiting)} after {timeout_s:g} s; raise --timeout-s")
        if waiting:
            clock.sleep(LOOK_AGAIN_S)


def _answers(base: str) -> bool:
    """Check whether a server lists its models."""
    from mesa_llm.engine.event_loop import submit
    from mesa_llm.llm.openai.connection import send

    try:
        return submit(send(f"{base}/models", {}, None, PROBE_S, 1_000_000)).result().status == 200
    except (OSError, BadReply):
        return False


def with_endpoint(text: str, name: str, fields: Mapping[str, Any], file: str = "mesa-llm.toml") -> str:
    """Return the text of a file of endpoints with one endpoint added, or its fields replaced; the rest is unchanged.

    Args:
        text: Text of the file; empty: it does not exist yet.
        name: Name of the endpoint.
        fields: Its fields; others that it has in the text remain.
        file: Name of the file, for errors.

    Raises:
        ConfigError: If the text is no TOML, or has the endpoint in another form than a table of its own.
    """
    try:
        present = tomllib.loads(text).get("endpoints", {}).get(name)
    except (ValueError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
    key = name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name)
    lines = [f"[endpoints.{key}]"]
    lines += [f"{field} = {_toml(value)}" for field, value in {**(present or {}), **fields}.items()]
    table = "\n".join(lines) + "\n"
    if present is None:
        return f"{text.rstrip()}\n\n{table}".lstrip()
    pattern = rf'^\[endpoints\.(?:{re.escape(name)}|"{re.escape(name)}")\][^\n]*\n(?:(?!\[)[^\n]*(?:\n|\Z))*'
    replaced, n = re.subn(pattern, lambda found: f"{table}\n", text, count=1, flags=re.MULTILINE)
    if not n:
        raise ConfigError(f"{file} has the endpoint {name!r}, but no table [endpoints.{key}]; write it as one")
    return f"{replaced.rstrip()}\n"


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + "".join(f"\n    {_toml(one)}," for one in value) + ("\n]" if value else "]")
    return json.dumps(value)


def _at(command: Sequence[str], base: str) -> list[str]:
    """Return the command of a server with its address."""
    host, _, port = base.removeprefix("http://").removesuffix("/v1").rpartition(":")
    return [*command, "--host", host, "--port", port]


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as listening:
        return listening.getsockname()[1]


@command("serve")
def serve(
    model: Annotated[str, typer.Argument(help="Name of the model, as `vllm serve` takes it.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="After --: further arguments of `vllm serve`.")] = None,
    on: Annotated[
        str, typer.Option(help="Where servers run: processes, or ray (the cluster of RAY_ADDRESS, or this machine).")
    ] = "processes",
    replicas: Annotated[int, typer.Option(min=1, help="Number of servers.")] = 1,
    gpus: Annotated[int, typer.Option(min=0, help="Number of GPUs of each server.")] = 1,
    name: Annotated[
        str | None, typer.Option(help="Name of the endpoint; by default the last part of the model's name.")
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the first server here; 0 picks free ones, as Ray does.")
    ] = 8000,
    concurrency: Annotated[int, typer.Option(min=1, help="Maximum number of requests in flight to each server.")] = 256,
    file: Annotated[Path, typer.Option(help="File of endpoints to write.")] = Path("mesa-llm.toml"),
    timeout_s: Annotated[float, typer.Option(min=1, help="Seconds for which a server may load its model.")] = 1800,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be started and written, and do neither.")
    ] = False,
) -> None:
    """Start vLLM servers of one model, and write them to `mesa-llm.toml` as one endpoint.

    They run until the command is stopped. --llm NAME then asks all of
    them: the least busy server gets the next request.
    """
    if on not in ("processes", "ray"):
        raise ConfigError(f"--on {on}: expected processes or ray")
    plan = ServerPlan(
        model, name or model.rstrip("/").rpartition("/")[2], replicas, gpus, port, concurrency, arguments or ()
    )
    text = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
    hosts = [f"NODE_{index + 1}:PORT" if on == "ray" else f"{HERE}:{port + index}" for index in range(replicas)]
    bases = [f"http://{host}/v1" for host in hosts]
    planned = with_endpoint(text, plan.name, plan.fields(bases), str(file))
    if dry_run:
        place = f"on Ray, with {gpus} GPU each" if on == "ray" else "here"
        say(f"would start {place}:")
        for base in bases:
            say(f"  {shlex.join(_at(plan.command, base))}")
        say(f"would write {file}:\n{planned.rstrip()}")
        return
    with started(plan, on) as servers:
        await_ready(servers, timeout_s)
        fields = plan.fields([server.base() for server in servers])
        file.write_text(with_endpoint(text, plan.name, fields, str(file)), encoding="utf-8")
        say(f"{file} names {len(servers)} servers as {plan.name}; they run until this command is stopped")
        with until_interrupted():
            _watch(servers)


def _watch(servers: Sequence[Server]) -> None:
    """Wait until all servers have ended, and say when one does."""
    running = {server.base(): server for server in servers}
    while running:
        for base, server in list(running.items()):
            if (status := server.status()) is not None:
                warn(f"the server at {base} ended with status {status}; requests go to the others")
                del running[base]
        clock.sleep(LOOK_AGAIN_S)
    raise ConfigError("all servers have ended; their output says why")
