"""Commands that open pages in the browser: app, view, classroom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mesa_llm.cli.command import app, exits, log_named, look_here, model_named, say
from mesa_llm.cli.options import (
    AllowHost,
    Browser,
    Host,
    MaxCallsOfPages,
    MaxDollarsOfPages,
    MaxTokensOfPages,
    Port,
    Token,
    Trust,
)
from mesa_llm.errors import ConfigError

if TYPE_CHECKING:
    from mesa_llm.engine.access import Access

GALLERY = "mesa_llm.viz.server.gallery"
"""The page of all models."""

HERE = "127.0.0.1"
"""Address that only this machine can reach."""


@app.command("app", rich_help_panel="Pages")
@exits
def open_app(
    page: Annotated[str, typer.Argument(help="Module or file of your own pages, as for `solara run`.")] = GALLERY,
    port: Port = 8765,
    host: Host = HERE,
    browser: Browser = True,
    token: Token = None,
    allow_host: AllowHost = None,
    max_calls: MaxCallsOfPages = None,
    max_tokens: MaxTokensOfPages = None,
    max_dollars: MaxDollarsOfPages = None,
    bench: Annotated[
        list[Path] | None,
        typer.Option(help="Another folder written by `mesa-llm bench`, in addition to those in runs; repeatable."),
    ] = None,
) -> None:
    """Open the gallery of all models, or your own pages, in the browser. Only visitors with the token get in."""
    from mesa_llm.viz.server.server import PageServer

    look_here()
    for folder in bench or ():
        if not folder.is_dir():
            raise ConfigError(f"--bench {folder}: there is no such folder")
    access = _shared_access(max_calls, max_tokens, max_dollars)
    server = PageServer(
        page,
        host=host,
        port=port,
        token=token,
        names=allow_host or (),
        access=access,
        benchmark_folders=bench or (),
    )
    say(f"mesa-llm: the page opens at {server.address}", with_keys=True)
    server.run(browser=browser)


@app.command(rich_help_panel="Pages")
@exits
def view(
    file: Annotated[
        Path,
        typer.Argument(
            help="Run log of the run, which is replayed offline, or the name of a recorded run (see `mesa-llm list`).",
            callback=log_named,
        ),
    ],
    port: Port = 8765,
    host: Host = HERE,
    browser: Browser = True,
    token: Token = None,
    allow_host: AllowHost = None,
    trust: Trust = False,
) -> None:
    """Open a recorded run in the browser: its space, measures and agents after each step."""
    from mesa_llm.cli.run import recording_of
    from mesa_llm.registry import find_model
    from mesa_llm.viz.server.model_page import model_page
    from mesa_llm.viz.server.server import PageServer

    look_here()
    recording = recording_of(file, trust=trust)
    page = model_page(find_model(recording.model)).placing(recording=recording)
    server = PageServer(page, host=host, port=port, token=token, names=allow_host or ())
    say(f"mesa-llm: the run opens at {server.address}", with_keys=True)
    server.run(browser=browser)


@app.command("classroom", rich_help_panel="Pages")
@exits
def open_classroom(
    model: Annotated[
        str, typer.Argument(help="Name of the model (see `mesa-llm list`), or MODULE:CLASS for any other.")
    ],
    seats: Annotated[int | None, typer.Option(min=1, help="Maximum number of seats; by default one per agent.")] = None,
    agents: Annotated[
        str | None,
        typer.Option(help="Numbers of the agents that students play, such as 1,2,5; by default the first ones."),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Parameter of the model at the start; repeatable."),
    ] = None,
    llm: Annotated[
        str | None,
        typer.Option(
            help="What the agents without a seat think with: rule, random, local, ollama/NAME, or any litellm model; "
            "by default that of the model's page, which is rule unless its author chose another."
        ),
    ] = None,
    timeout_s: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds after which the rule twin decides for a student; by default never."),
    ] = None,
    room: Annotated[
        Path | None,
        typer.Option(
            help="File that keeps the room code and the seats, so that the same command resumes after a restart."
        ),
    ] = None,
    port: Port = 8765,
    host: Host = HERE,
    browser: Browser = True,
    token: Token = None,
    allow_host: AllowHost = None,
    max_calls: MaxCallsOfPages = None,
    max_tokens: MaxTokensOfPages = None,
    max_dollars: MaxDollarsOfPages = None,
) -> None:
    """Let a class play a model together: students join with a room code, the teacher steps.

    Each student sees and answers only the questions to their own agent. Only
    the teacher's link can step, reset and spend. An empty seat is decided for
    by the rule twin of its agent, never by a language model; agents without a
    seat think with --llm. For students' own devices, add --host 0.0.0.0 (and
    a token, see --token).
    """
    from mesa_llm.cli.arguments import parameters, require_no_secrets
    from mesa_llm.viz.classroom.lesson import Lesson
    from mesa_llm.viz.classroom.room import Classroom
    from mesa_llm.viz.server.model_page import model_page
    from mesa_llm.viz.server.server import PageServer

    look_here()
    require_no_secrets(assignments or (), llm=llm)
    numbers = _numbers(agents or "")
    item = model_page(model_named(model))
    chosen: dict[str, Any] = {"parameters": parameters(item.entry.load(), assignments or (), None)}
    if llm is not None:
        chosen["llm"] = _llm_of_others(llm)
    lesson = Lesson(Classroom(timeout_s, room), title=item.title, n_seats=seats, agents=numbers)
    page = item.placing(lesson=lesson, **chosen)
    access = _shared_access(max_calls, max_tokens, max_dollars)
    seating = item.seating(lesson, **chosen)
    server = PageServer(page, host=host, port=port, token=token, names=allow_host or (), access=access, lesson=lesson)
    say(f"mesa-llm: the teacher's page (keep this link to yourself): {server.address}", with_keys=True)
    say(
        f"mesa-llm: students open {' or '.join(lesson.links)} and type the room code {lesson.room.code}", with_keys=True
    )
    say(f"mesa-llm: {seating}")
    server.run(browser=browser)


def _llm_of_others(name: str) -> str:
    """Check what the agents without a seat are to think with.

    Raises:
        ConfigError: If it is a person, or one name for each of several kinds of agents.
    """
    from mesa_llm.cli.arguments import llm_in

    if name == "human":
        raise ConfigError("--llm human: students take the seats; name what the other agents think with, such as rule")
    if name != name.strip() or not name or isinstance(llm_in(name), dict):
        raise ConfigError(f"--llm {name}: expected one name for all agents without a seat, such as ollama/qwen3")
    return name


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",") if number.strip()]
    except ValueError:
        raise ConfigError(f"--agents {text}: expected numbers of agents separated by commas, such as 1,2,5") from None


def _shared_access(max_calls: int | None, max_tokens: int | None, max_dollars: float | None) -> Access | None:
    """Return one access for all pages of a server, if they have a budget; None: each model has its own."""
    from mesa_llm.cli.arguments import budget
    from mesa_llm.engine.access import Access

    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    return Access(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars) if spend else None
