"""`mesa-llm view`: a recorded run in the browser."""

from __future__ import annotations

from mesa_llm.cli.command import command, look_here, say
from mesa_llm.cli.options import LogFile, PageServing, Trust
from mesa_llm.cli.run import recording_of
from mesa_llm.registry import find_model


@command("view")
def view(file: LogFile, serving: PageServing, trust: Trust = False) -> None:
    """Open a recorded run in the browser: its space, measures and agents after each step."""
    from mesa_llm.viz.server.model_page import model_page  # Solara loads for seconds

    look_here()
    recording = recording_of(file, trust=trust)
    page = model_page(find_model(recording.model)).placing(recording=recording)
    server = serving.server(page)
    say(f"mesa-llm: the run opens at {server.address}", with_keys=True)
    server.run(browser=serving.browser)
