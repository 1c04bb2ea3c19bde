"""A page for a model whose agents think: Mesa's controls and drawings, and a look into every mind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import solara
import solara.lab
from mesa.visualization.utils import update_counter
from reacton import use_effect, use_memo, use_state
from solara.core import component
from solara.lab.utils.headers import headers

from mesa_llm.model import LLMModel
from mesa_llm.viz.controls import Controls
from mesa_llm.viz.gate import steady
from mesa_llm.viz.guard import foreign_origin
from mesa_llm.viz.held import held
from mesa_llm.viz.human import HumanPanel
from mesa_llm.viz.inspector import AgentInspector
from mesa_llm.viz.markup import CSS
from mesa_llm.viz.meter import CostMeter
from mesa_llm.viz.parameters import Choice, Factory, Parameters, defaults
from mesa_llm.viz.session import Session
from mesa_llm.viz.space import MakeRenderer, Space
from mesa_llm.viz.tables import ActionTable, EventLog
from mesa_llm.viz.ticker import watch

Component = Callable[[Any], Any]
"""Shows something of a model: a Solara component, or a function that makes one (Mesa's `make_plot_component`)."""

Placed = Component | tuple[Component, int | str]
"""A component, and the tab it stands on: Mesa's page number, or a title."""

ALWAYS: tuple[Placed, ...] = ((AgentInspector, "Agents"), (ActionTable, "Actions"), (EventLog, "News"))
"""What stands on every page."""


@component
def LLMPage(
    model: Factory,
    *,
    model_params: Mapping[str, Any] | None = None,
    components: Sequence[Placed] = (),
    renderer: MakeRenderer | None = None,
    name: str | None = None,
    llm: str = "rule",
    rng: int | None = 42,
) -> None:
    """Show a model, run it, and look into its agents. Each visitor gets a model of its own.

    It sends no key of the environment to an endpoint that a visitor types, and shows nothing to a page of another
    origin that opened its WebSocket. `mesa-llm app FILE` asks for a token besides; `solara run FILE` lets anybody in
    who can reach the server, under any name that leads to it.

    As `SolaraViz`, but it takes what makes a model instead of a model; it goes on answering while agents think; and
    it has tabs for every agent's prompts and replies, for actions and for news.

    Args:
        model: A model class, or anything called with parameters by name that gives a model.
        model_params: Mesa's description of the parameters: fixed values, `Slider`s, or dictionaries with a type. What
            agents think with and the seed are asked for in any case.
        components: What to show, each as a component, or with the tab it stands on: a number, as in Mesa, or a title.
        renderer: Sets Mesa's renderer of the space up for a model; None: no space is drawn.
        name: Title; None: the name of the class.
        llm: What agents think with at first: a name in `mesa_llm.viz.parameters.THINKERS`, or a model string.
        rng: Seed at first; None: a new one each time.
    """
    foreign = use_memo(lambda: foreign_origin(headers.peek()), [])
    if foreign:
        solara.Error(f"This page was opened by a page of {foreign}, and shows nothing there.")
    else:
        params = dict(model_params or {})
        first = Choice(llm, seed="" if rng is None else str(rng), parameters=defaults(params))
        _Page(model, params, components, renderer, name or getattr(model, "__name__", "Model"), first)


@component
def _Page(
    model: Factory,
    params: dict[str, Any],
    components: Sequence[Placed],
    renderer: MakeRenderer | None,
    name: str,
    first: Choice,
) -> None:
    chosen = solara.use_reactive(first)
    session = use_memo(lambda: Session(model, first), [])
    tabs = use_memo(lambda: tabs_of(components, renderer), [])
    use_effect(lambda: _open(session), [])
    solara.Style(CSS)
    with solara.AppBar():
        solara.AppBarTitle(name)
    with solara.Sidebar(), solara.Column(gap="10px", style={"padding": "4px 8px 24px"}):
        with solara.Card(margin=0):
            Controls(session, chosen)
        with solara.Card("Parameters", margin=0):
            Parameters(model, params, chosen)  # drawn anew with each step, it would take back what is being typed
        _Cost(session)
    _Main(session, tabs)


@component
def _Cost(session: Session) -> None:
    update_counter.get()
    if session.runner is not None:
        with solara.Card("Cost", margin=0):
            CostMeter(session.runner.model)


@component
def _Main(session: Session, tabs: dict[str, list[Component]]) -> None:
    update_counter.get()
    with solara.Column(gap="12px", classes=["mesa-llm-main"]):
        if session.runner is not None:
            if session.desks:
                HumanPanel(session.runner.model)
            _Tabs(session.runner.model, tabs)


def _open(session: Session) -> Callable[[], None]:
    end = watch(session)

    def close() -> None:
        end()
        session.close()

    return close


def tabs_of(components: Sequence[Placed], renderer: MakeRenderer | None) -> dict[str, list[Component]]:
    """Sort components by the tab they stand on.

    Args:
        components: Components, with or without a tab.
        renderer: Sets up the renderer of the space, which goes first.

    Returns:
        Title of each tab → its components, in order.
    """
    tabs: dict[str, list[Component]] = {"Model": [_space(renderer)]} if renderer is not None else {}
    own = [placed[0] if isinstance(placed, tuple) else placed for placed in components]
    for placed in (*components, *(extra for extra in ALWAYS if isinstance(extra, tuple) and extra[0] not in own)):
        component, tab = placed if isinstance(placed, tuple) else (placed, 0)
        tabs.setdefault(tab if isinstance(tab, str) else f"Page {tab}" if tab else "Model", []).append(component)
    return tabs


def _space(renderer: MakeRenderer) -> Component:
    def show(model: LLMModel) -> Any:
        return Space(model, renderer)

    return show


@component
def _Tabs(model: LLMModel, tabs: dict[str, list[Component]]) -> None:
    picked, pick = use_state(0)

    def turn(tab: int) -> None:
        with steady(model):
            pick(tab)

    with solara.lab.Tabs(value=picked, on_value=turn, lazy=True):
        for title, components in tabs.items():
            with solara.lab.Tab(title), solara.Div(classes=["mesa-llm-columns"]):
                half = len(components) // 2
                for column in filter(None, (components[:half], components[half:])):
                    with solara.Column(gap="12px"):
                        for component in column:
                            _Shown(component, model)


@component
def _Shown(component: Component, model: LLMModel) -> None:
    update_counter.get()
    with solara.Card(margin=0, classes=["mesa-llm-card"]):
        with steady(model):
            made = component(model)
        held(made, model)
