"""The state of one visitor's page: which tab, agent and post are open, and when its text and plots are redrawn."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast
from weakref import ref

import solara
from mesa.visualization.utils import force_update, update_counter
from reacton import create_context, use_context, use_effect
from reacton.core import get_render_context

from mesa_llm.viz.session.per_model import PerModel

MODEL_TAB, AGENTS_TAB, DATA_TAB, EXPERIMENT_TAB, ABOUT_TAB = TABS = ("Model", "Agents", "Data", "Experiment", "About")
"""Titles of the tabs of every page, in order; those that a page's own components name come after the first."""


class PageState:
    """The state of a page; each visitor has values of their own.

    Attributes:
        tab: Title of the open tab; empty: the first.
        step: Step that the inspector shows; negative: the latest.
        is_folded: Whether the parameters are folded on a wide screen.
        is_unfolded: Whether the parameters are unfolded on a narrow screen.
    """

    def __init__(self) -> None:
        """Start on the first tab with nothing selected."""
        self.tab = solara.reactive("")
        self.step = solara.reactive(-1)
        self.is_folded = solara.reactive(False)
        self.is_unfolded = solara.reactive(False)
        self._selected: dict[str, solara.Reactive[int]] = {}
        self._text = solara.reactive(object())
        self._sent = solara.reactive(0)
        self._seen = 0
        self._batch: Callable[[], AbstractContextManager[Any] | None] = lambda: None
        self._shown: solara.Reactive[tuple[object, ...]] = solara.reactive(())

    def __reduce__(self) -> tuple[type[PageState], tuple[()]]:
        """Copy or pickle as a new state, so that a model can be copied after a page has shown it."""
        return type(self), ()

    def attach(self, owner: Any) -> None:
        """Become the state of all components of an owner, in the sidebar too, which Solara draws apart from the page.

        Args:
            owner: The owner, as given to `use_page`.
        """
        _of_owner.put(owner, self)

    # -- what is open

    def selected(self, kind: str) -> solara.Reactive[int]:
        """Return the selected id of a kind, such as `agent` or `post`; 0: none is selected.

        Args:
            kind: The kind.
        """
        if kind not in self._selected:
            self._selected.setdefault(kind, solara.reactive(0))
        return self._selected[kind]

    def inspect_agent(self, agent_id: int, step: int = -1) -> None:
        """Open the inspector at an agent.

        Args:
            agent_id: Mesa `unique_id` of the agent.
            step: The step to show; negative: the latest.
        """
        self.step.set(step)
        self.selected("agent").set(agent_id)
        self.tab.set(AGENTS_TAB)

    # -- when it is redrawn

    def moment(self) -> tuple[object, ...]:
        """Return the moment that the page shows now; a component that calls this is redrawn whenever it changes.

        Mesa's `update_counter` changes when the model has changed and has to be redrawn; the second value also changes
        when only the text about a running step has to be updated.
        """
        return update_counter.get(), self._text.get()

    def use_moment(self) -> None:
        """Redraw the calling component at each moment, and note when the whole page shows it."""
        if (context := get_render_context(required=False)) is not None:
            self._batch = ref(context)
        now = self.moment()
        use_effect(lambda: self._shown.set(now), [now])  # runs once all of the page is drawn

    def redraw(self) -> None:
        """Redraw the whole page."""
        with self._batch() or nullcontext():  # else each component that shows the model draws the whole page anew
            force_update()
        self._sent.set(self._sent.peek() + 1)  # goes to the browser last

    @property
    def n_sent(self) -> int:
        """Number of drawings sent to the browser; a component that reads this sends it after each."""
        return self._sent.value

    def note_seen(self, number: object) -> None:
        """Note how many drawings the browser has shown.

        Args:
            number: The last `n_sent` that has arrived there.
        """
        if type(number) is int:
            self._seen = max(self._seen, number)

    def update_text(self) -> None:
        """Update the text about the run; plots stay as they are."""
        self._text.set(object())

    def handler(self, do: Callable[..., None], *arguments: int) -> Callable[[], None]:
        """Return a click handler that calls a function, and updates the text at once.

        Args:
            do: The function.
            *arguments: Its arguments.
        """

        def handle() -> None:
            do(*arguments)
            self.update_text()

        return handle

    @property
    def is_settled(self) -> bool:
        """Whether the page shows the last update completely, in the browser too if there is one."""
        is_seen = self._seen >= self._sent.peek() or kernel_contexts() is None
        return is_seen and self._shown.peek() == (update_counter.peek(), self._text.peek())

    @property
    def is_open(self) -> bool:
        """Whether a browser has the page of this thread open; outside Solara's server this is always true."""
        contexts = kernel_contexts()
        if contexts is None:
            return True
        return contexts.PageStatus.CONNECTED in tuple(contexts.get_current_context().page_status.values())


page_state = create_context(cast("PageState | None", None))
"""The state of the page around a component; None: the page is not one of ours."""

_of_owner = PerModel("_page_state", PageState)


def use_page(owner: Any) -> PageState:
    """Return the state of the page around the calling component.

    Args:
        owner: The model that the component shows; on a page of Mesa's `SolaraViz`, all components of a model share one
            state.
    """
    return use_context(page_state) or _of_owner.of(owner)


def kernel_contexts() -> Any:
    """Return Solara's kernel contexts if this thread has one, else None; importing the module would start a thread."""
    contexts = sys.modules.get("solara.server.kernel_context")
    return contexts if contexts is not None and contexts.has_current_context() else None


def browser_id() -> str:
    """Return the session of the browser that has the page of this thread open; outside Solara's server it is empty."""
    contexts = kernel_contexts()
    return "" if contexts is None else str(contexts.get_current_context().session_id)
