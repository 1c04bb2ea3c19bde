"""Cost of redrawing the page of the social network: `python benchmarks/page_redraw.py --users 10000 --steps 5`.

Builds the page in a Solara kernel as its server does, with a browser that only counts bytes, and redraws
every tab after a step. The last line of the output is one JSON object: by tab, processor seconds and kilobytes.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

os.environ["MESA_LLM_RUNS"] = "none"

import ipyvuetify
import solara
import solara.server.app  # pyright: ignore[reportUnusedImport] - the server's own components
from mesa.visualization.utils import force_update
from solara.server.kernel import Kernel
from solara.server.kernel_context import VirtualKernelContext
from solara.server.websocket import WebsocketWrapper

from mesa_llm.viz import LLMPage
from mesa_llm.viz.server.page import tabs_of
from mesa_llm_models.social import app
from mesa_llm_models.social.model import SocialModel

made: list[SocialModel] = []


class Counter(WebsocketWrapper):
    """A browser that counts bytes."""

    n_bytes = 0

    def send_text(self, data: str) -> None:
        """Count the bytes of a text."""
        self.n_bytes += len(data.encode())

    def send_bytes(self, data: bytes) -> None:
        """Count bytes."""
        self.n_bytes += len(data)

    def close(self) -> None:
        """Do nothing."""

    async def receive(self) -> str | bytes:
        """Return no message."""
        return b""


def make(**parameters: Any) -> SocialModel:
    """Build the model of the page, and store it."""
    made.append(SocialModel(**parameters))
    return made[-1]


def measure(users: int, steps: int) -> dict[str, Any]:
    """Redraw each tab after a step.

    Args:
        users: Number of users.
        steps: Number of steps before.
    """
    kernel, browser = Kernel(), Counter()
    context = VirtualKernelContext(id="measured", session_id="measured", kernel=kernel)
    costs: dict[str, Any] = {"users": users, "steps": steps}
    with context:
        kernel.session.websockets.add(browser)
        page = LLMPage(make, model_params={"n_agents": users}, components=app.components, keeps_runs=False)
        started, spent = time.perf_counter(), time.process_time()
        _, rendering = solara.render(page, handle_error=False)  # pyright: ignore[reportPrivateImportUsage]
        model = made[-1]
        costs["first_s"] = round(time.process_time() - spent, 3)
        model.run_for(steps)
        tabs = rendering.find(ipyvuetify.Tabs).widget
        for index, tab in enumerate(tabs_of(app.components)):
            tabs.v_model = index
            force_update()
            model.step()
            before, spent = browser.n_bytes, time.process_time()
            force_update()
            costs[tab] = {
                "cpu_s": round(time.process_time() - spent, 3),
                "kB": round((browser.n_bytes - before) / 1000, 1),
            }
        rendering.close()
        costs["wall_s"] = round(time.perf_counter() - started, 1)
    return costs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(measure(options.users, options.steps)))
