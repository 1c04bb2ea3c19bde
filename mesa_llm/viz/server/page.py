"""A page for a model whose agents think: Mesa's controls and drawings, and an inspector for every agent."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import solara.lab
from mesa.visualization.utils import update_counter
from reacton import use_effect, use_exception, use_memo, use_ref, use_state
from solara.core import component
from solara.lab.utils.headers import headers

from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.model.scenario import controls, parameters_of
from mesa_llm.viz.classroom.lesson import Lesson, LessonSession
from mesa_llm.viz.classroom.panel import ClassPanel
from mesa_llm.viz.components.branches import Branches
from mesa_llm.viz.components.controls import Alarms, Controls, CostPreview, PlaySpeed
from mesa_llm.viz.components.cost import CostMeter
from mesa_llm.viz.components.human import HumanPanel
from mesa_llm.viz.components.inspector import AgentInspector
from mesa_llm.viz.components.interventions import InterventionForm
from mesa_llm.viz.components.interview import InterviewForm
from mesa_llm.viz.components.markup import bring_style
from mesa_llm.viz.components.page_state import AGENTS_TAB, PageState, browser_id, kernel_contexts, page_state, use_page
from mesa_llm.viz.components.placement import place_steady
from mesa_llm.viz.components.playback import Playback
from mesa_llm.viz.components.plots import Measures, MesaPlot, is_mesa_plot
from mesa_llm.viz.components.readme import About, Question
from mesa_llm.viz.components.report import ReportCard
from mesa_llm.viz.components.run_settings import RunSettingsForm, defaults
from mesa_llm.viz.components.runs import Reopen, Runs
from mesa_llm.viz.components.space import MakeRenderer, Space, has_space, plain_renderer
from mesa_llm.viz.components.tables import ActionTable, EventLog
from mesa_llm.viz.render.readme import Readme
from mesa_llm.viz.server.auth import foreign_origin
from mesa_llm.viz.server.state import ServerState
from mesa_llm.viz.session.refresh import watch
from mesa_llm.viz.session.run_settings import ModelFactory, RunSettings
from mesa_llm.viz.session.runs import KeptRun, runs_folder
from mesa_llm.viz.session.rw_lock import steady
from mesa_llm.viz.session.session import Session

logger = logging.getLogger(__name__)

Component = Callable[[Any], Any]
"""Shows part of a model: a Solara component, or a function that makes one (Mesa's `make_plot_component`)."""

Placed = Component | tuple[Component, int | str]
"""A component, with its tab: Mesa's page number, or a title."""

FIRST_TAB = "Model"
"""Title of the first tab of a page."""

ALWAYS: tuple[tuple[Component, str], ...] = (
    (Measures, "Measures"),
    (AgentInspector, AGENTS_TAB),
    (ActionTable, "Actions"),
    (InterventionForm, "News"),
    (EventLog, "News"),
    (Branches, "What if"),
    (ReportCard, "Report"),
    (About, "About"),
)
"""Components of every page."""

MEDDLING: tuple[Component, ...] = (InterviewForm, InterventionForm)
"""Components that ask agents or change the run, and so are left out for recorded runs."""


@component
def LLMPage(
    model: ModelFactory,
    *,
    model_params: Mapping[str, Any] | None = None,
    components: Sequence[Placed] = (),
    renderer: MakeRenderer | None = None,
    name: str | None = None,
    llm: str = "rule",
    rng: int | None = 42,
    keeps_runs: bool = True,
    lesson: Lesson | None = None,
    recording: Recording | None = None,
) -> None:
    """Show a model, run it, and inspect its agents. Each visitor gets a model of their own.

    The page sends no key of the environment to an endpoint that a visitor types, and shows nothing to a page of another
    origin that opened its WebSocket. `mesa-llm app FILE` also asks for a token; `solara run FILE` lets in anybody who
    can reach the server, under any name that leads to it.

    It resembles `SolaraViz`, but takes a factory of models instead of a model, and stays responsive while agents think.
    It has tabs for measures, for every agent's prompts and replies, for actions, for news, for a description of the
    model, and for its runs, which are kept in the folder `runs`. `LLMPage(MyModel)` alone shows the model's space or
    network, plots of all numbers that it collects, and controls for its parameters.

    Args:
        model: A model class, or any callable that takes parameters by name and returns a model.
        model_params: Mesa's description of the parameters: fixed values, `Slider`s, or dictionaries with a type; None:
            as the model's scenario declares them. Language model and seed can be chosen in any case.
        components: Components to show, each alone or with its tab: a number, as in Mesa, or a title; empty: the model's
            space and all its measures.
        renderer: Sets up Mesa's renderer of the space for a model; None: a plain one if no components are named.
        name: Title; None: the name of the class.
        llm: Initial language model: a name in `mesa_llm.viz.parameters.LLM_LABELS`, or a model string.
        rng: Initial seed; None: a new one each time.
        keeps_runs: Whether to keep runs: in the folder that the environment variable MESA_LLM_RUNS names, else in
            `runs` in the current folder.
        lesson: The lesson of a class that plays the model together, as set up by `mesa-llm class`; None: each visitor
            has a model alone.
        recording: A recorded run to show first, as `mesa-llm view` does; None: the page begins with a new run.
    """
    foreign = use_memo(lambda: foreign_origin(headers.peek()), [])
    server = use_memo(ServerState.current, [])
    if foreign:
        solara.Error(f"This page was opened by a page of {foreign}, and shows nothing there.")
    else:
        params = dict(declared(model) if model_params is None else model_params)
        initial = RunSettings(llm, seed="" if rng is None else str(rng), parameters=defaults(params))
        title = name or getattr(model, "__name__", "Model")
        folder = runs_folder() if keeps_runs else None

        def begin() -> Session:
            if lesson is not None:
                return lesson.session(model, initial, folder, server.access)
            session = Session(model, initial, folder, recording, server.access)
            key = browser_id(), model
            session.previous, server.visits[key] = server.visits.get(key, session.previous), session.visit
            return session

        _Page(server, model, params, components, renderer, title, initial, begin)


@component
def ServedPage() -> None:
    """Show the one page that the server was started with."""
    place = ServerState.current().page
    if place is not None:
        place()


@component
def _Page(
    server: ServerState,
    model: ModelFactory,
    params: dict[str, Any],
    components: Sequence[Placed],
    renderer: MakeRenderer | None,
    name: str,
    initial: RunSettings,
    begin: Callable[[], Session],
) -> None:
    session = use_memo(begin, [])
    choice = solara.use_reactive(session.built_from)
    recording = solara.use_reactive(session.recording)
    readme = use_memo(lambda: Readme.of(model), [])
    meanings = use_memo(lambda: meanings_of(model), [])
    baseline = use_memo(lambda: (session.drawn, session.state), [])
    arrival = use_memo(threading.Event, [])
    page = use_memo(PageState, [])
    page_state.provide(page)
    use_effect(lambda: _open(server, session, page, baseline, arrival), [])

    def resume(run: KeptRun) -> None:
        choice.set(run.choice(initial, choice.value, session.thinkers))
        session.build(choice.value, run)
        change()

    def view(run: KeptRun) -> None:
        session.open(run.path)
        change()

    def begin_anew() -> None:
        session.build(choice.value)
        change()

    def change() -> None:
        recording.set(session.recording)
        page.update_text()

    bring_style()
    with solara.AppBar():
        solara.AppBarTitle(name)
        solara.lab.ThemeToggle()
    with solara.Sidebar(), solara.Column(gap="10px", style={"padding": "4px 8px 24px"}):
        with solara.Card(margin=0):
            if recording.value is None:
                Controls(session, choice)
                CostPreview(session)
            else:
                Playback(session, recording.value, begin_anew)
            PlaySpeed(session)
        if recording.value is None:
            with solara.Card("Parameters", margin=0):
                # drawn anew at each step, it would take back what is typed
                RunSettingsForm(
                    model, params, choice, meanings, session.thinkers, has_common_budget=server.access is not None
                )
        _Cost(session)
    _Main(session, readme, components, renderer, Reopen(resume, view))
    _Arrival(event_arrive=lambda _: arrival.set())


def declared(model: ModelFactory) -> dict[str, Any]:
    """Return the controls of a model's parameters, as in Mesa's `model_params`.

    Args:
        model: The factory of the model; a class declares its parameters in its scenario.
    """
    return controls(model) if isinstance(model, type) and issubclass(model, LLMModel) else {}


def meanings_of(model: ModelFactory) -> dict[str, str]:
    """Return the meanings of a model's parameters, by name.

    Args:
        model: The factory of the model; a class declares its parameters in its scenario.
    """
    if not (isinstance(model, type) and issubclass(model, LLMModel)):
        return {}
    return {parameter.name: parameter.meaning for parameter in parameters_of(model)}


@component
def _Cost(session: Session) -> None:
    update_counter.get()
    if session.runner is not None:
        with solara.Card("Cost", margin=0):
            CostMeter(session.runner.model)


@component
def _Main(
    session: Session,
    readme: Readme,
    components: Sequence[Placed],
    renderer: MakeRenderer | None,
    reopen: Reopen,
) -> None:
    update_counter.get()
    with solara.Column(gap="12px", classes=["mesa-llm-main"]):
        Alarms(session)
        Question(readme)
        if session.runner is not None:
            if isinstance(session, LessonSession):
                ClassPanel(session.lesson)
            elif session.desks:
                HumanPanel(session.runner.model)
            _Tabs(session, session.runner.model, components, renderer, reopen)


@solara.component_vue("arrival.vue")
def _Arrival(event_arrive: Callable[[object], None] | None = None) -> None:
    """Report that the browser shows the page; see `arrival.vue`."""


def _open(
    server: ServerState,
    session: Session,
    page: PageState,
    baseline: tuple[int, tuple[object, ...]],
    arrival: threading.Event,
) -> Callable[[], None]:
    end = watch(session, page, server.drawing, baseline, arrival if kernel_contexts() is not None else None)

    def close() -> None:
        end()
        session.leave()

    return close


def tabs_of(
    components: Sequence[Placed],
    space: Component | None = None,
    runs: Component | None = None,
    *,
    is_recorded: bool = False,
) -> dict[str, list[Component]]:
    """Sort components by tab.

    Args:
        components: Components, with or without a tab; empty: the model's measures, on the first tab.
        space: Draws the space, which comes first; None: it is not drawn.
        runs: Shows the kept runs, which come last; None: they are not shown.
        is_recorded: Whether the model is a recorded run, without interviews and interventions.

    Returns:
        Title of each tab → its components, in order.
    """
    tabs: dict[str, list[Component]] = {FIRST_TAB: [space]} if space is not None else {}
    components_ = [placed[0] if isinstance(placed, tuple) else placed for placed in components]
    extras: list[Placed] = [extra for extra in ALWAYS if extra[0] not in components_]
    if not components:
        extras = [Measures, *(extra for extra in ALWAYS if extra[0] is not Measures)]
    for placed in (*components, *extras, *([(runs, "Runs")] if runs is not None else [])):
        component, tab = placed if isinstance(placed, tuple) else (placed, 0)
        if is_recorded and component in MEDDLING:
            continue
        tabs.setdefault(tab if isinstance(tab, str) else f"Page {tab}" if tab else FIRST_TAB, []).append(component)
    return tabs


def space_of(model: LLMModel, components: Sequence[Placed], renderer: MakeRenderer | None) -> Component | None:
    """Return the component that draws a model's space; None if it is not drawn.

    Args:
        model: The model.
        components: The other components of its page; if there are none, any space is drawn.
        renderer: Sets up Mesa's renderer; None: a plain one.
    """
    if renderer is None and (components or not has_space(model)):
        return None

    def show(model: LLMModel) -> Any:
        return Space(model, renderer or plain_renderer)

    return show


@component
def _Tabs(
    session: Session,
    model: LLMModel,
    components: Sequence[Placed],
    renderer: MakeRenderer | None,
    reopen: Reopen,
) -> None:
    def runs(model: LLMModel) -> Any:
        is_class = isinstance(session, LessonSession)
        return Runs(model, session.factory, session.folder, reopen._replace(view=None) if is_class else reopen)

    def sort() -> dict[str, list[Component]]:
        is_recorded = session.recording is not None
        return tabs_of(components, space_of(model, components, renderer), runs, is_recorded=is_recorded)

    page = use_page(model)
    tabs = use_memo(sort, [model])
    titles = list(tabs)

    def turn(index: int) -> None:
        page.tab.set(titles[index])

    now = titles.index(page.tab.value) if page.tab.value in titles else 0
    with solara.lab.Tabs(value=now, on_value=turn, lazy=True):
        for title, contents in tabs.items():
            with solara.lab.Tab(title), solara.Div(classes=["mesa-llm-columns"]):
                for component in contents:
                    _Component(component, model)


@component
def _Component(component: Component, model: LLMModel) -> None:
    """Show a component; if it raises, show the error in its place until the next step, and keep the page alive."""
    error, try_again = use_exception()
    drawn = update_counter.get()
    drawn_at = use_ref(drawn)
    if error is None:
        drawn_at.current = drawn
    is_past = drawn_at.current != drawn
    use_effect(lambda: try_again() if is_past else None, [is_past])
    use_effect(lambda: _log(error), [error])
    if error is None:
        _Content(component, model)
    else:
        solara.Error(f"This cannot be shown: {type(error).__name__}: {error} (the log has more)")


def _log(error: BaseException | None) -> None:
    if error is not None:
        logger.error("a component of a page cannot be shown", exc_info=error)


@component
def _Content(component: Component, model: LLMModel) -> None:
    """Show a component; its tab is selected before it is drawn, so that no other appears under that tab's name."""
    update_counter.get()
    is_turned_to, turn_to = use_state(False)
    use_effect(lambda: turn_to(True), [])
    if not is_turned_to:
        solara.ProgressLinear(True)
        return
    if component is Measures:  # it brings a card for each plot
        Measures(model)
        return
    with solara.Card(margin=0, classes=["mesa-llm-card"]):
        with steady(model):
            result = component(model)
        if is_mesa_plot(result):
            MesaPlot(result, model)
        else:
            place_steady(result, model)
