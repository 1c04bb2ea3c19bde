"""`mesa-llm classroom`: a class that plays a model together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.cli.arguments import llm_in, parameters
from mesa_llm.cli.command import command, look_here, model_named, say
from mesa_llm.cli.options import Flags, Model, PageServing, access_of_pages
from mesa_llm.engine.options import AccessOptions
from mesa_llm.errors import ConfigError


@command("classroom")
def classroom(
    model: Model,
    serving: PageServing,
    options: Annotated[
        AccessOptions,
        Flags(AccessOptions, "pages", without={"timeout_s": "--timeout-s is the time that a student has"}),
    ],
    seats: Annotated[int | None, typer.Option(min=1, help="Maximum number of seats; by default one per agent.")] = None,
    agents: Annotated[
        str | None,
        typer.Option(help="Numbers of the agents that students play, such as 1,2,5; by default the first ones."),
    ] = None,
    set_: Annotated[
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
) -> None:
    """Let a class play a model together: students join with a room code, the teacher steps.

    Each student sees and answers only the questions to their own agent. Only
    the teacher's link can step, reset and spend. An empty seat is decided for
    by the rule twin of its agent, never by a language model; agents without a
    seat think with --llm. For students' own devices, add --host 0.0.0.0 (and
    a token, see --token).
    """
    from mesa_llm.viz.classroom.lesson import Lesson  # Solara loads for seconds
    from mesa_llm.viz.classroom.room import Classroom
    from mesa_llm.viz.server.model_page import model_page

    look_here()
    numbers = _numbers(agents or "")
    item = model_page(model_named(model))
    chosen: dict[str, Any] = {"parameters": parameters(item.entry.load(), set_ or (), None)}
    if llm is not None:
        chosen["llm"] = _llm_of_others(llm)
    lesson = Lesson(Classroom(timeout_s, room), title=item.title, n_seats=seats, agents=numbers)
    page = item.placing(lesson=lesson, **chosen)
    seating = item.seating(lesson, **chosen)
    server = serving.server(page, access=access_of_pages(options), lesson=lesson)
    say(f"mesa-llm: the teacher's page (keep this link to yourself): {server.address}", with_keys=True)
    say(
        f"mesa-llm: students open {' or '.join(lesson.links)} and type the room code {lesson.room.code}", with_keys=True
    )
    say(f"mesa-llm: {seating}")
    server.run(browser=serving.browser)


def _llm_of_others(name: str) -> str:
    """Check what the agents without a seat are to think with.

    Raises:
        ConfigError: If it is a person, or one name for each of several kinds of agents.
    """
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
