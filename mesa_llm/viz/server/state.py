"""What all pages of a server share."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mesa_llm.engine.access import Access
from mesa_llm.viz.session.run_settings import ModelFactory
from mesa_llm.viz.session.session import PageVisit

APPLICATION = "solara.server.starlette"
"""Module of the application that serves all pages of a process."""


class ServerState:
    """What all pages of a server share.

    Attributes:
        access: Common budget of the models of all pages; None: each model has its own.
        benchmark_folders: Folders whose benchmarks are shown besides those in `runs`.
        page: Places the contents of the one page that the server was started with; None: it has other pages.
        visits: Session of a browser, and factory of the models → the browser's last visit to their page.
        drawing: Held while a page is drawn: one at a time.
    """

    def __init__(
        self,
        *,
        access: Access | None = None,
        benchmark_folders: Iterable[Path] = (),
        page: Callable[[], Any] | None = None,
    ) -> None:
        """Start without visits.

        Args:
            access: Common budget of the models of all pages; None: each model has its own.
            benchmark_folders: Folders of benchmarks, or folders that hold such folders.
            page: Places the contents of the one page of the server; None: it has other pages.
        """
        self.access = access
        self.benchmark_folders = tuple(folder.absolute() for folder in benchmark_folders)
        self.page = page
        self.visits: dict[tuple[str, ModelFactory], PageVisit] = {}
        self.drawing = threading.Lock()

    def install(self) -> None:
        """Make this the state of the server of this process."""
        module: Any = sys.modules[APPLICATION]
        module.app.state.mesa_llm = self

    @classmethod
    def current(cls) -> ServerState:
        """Return the state of the server of this process, such as that of `solara run`; without a server, a new one."""
        module: Any = sys.modules.get(APPLICATION)
        if module is None:
            return cls()
        state = getattr(module.app.state, "mesa_llm", None)
        if state is None:
            state = cls()
            state.install()
        return state
