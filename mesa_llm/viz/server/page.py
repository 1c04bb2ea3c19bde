"""The page of a model: Mesa's controls and drawings, plus an inspector for every agent."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import solara.lab
from mesa.visualization.utils import update_counter
from reacton import ipyvuetify as vuetify
from reacton import use_effect, use_exception, use_memo, use_ref, use_state
from solara.core import component
from solara.lab.utils.headers import headers

from mesa_llm.experiments.runs.recordings import RecordedRun, made_runs
from mesa_llm.model.identity import name_of
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.model.scenario import controls, parameters_of
from mesa_llm.viz.classroom.lesson import Lesson, LessonSession
from mesa_llm.viz.classroom.panel import ClassPanel
from mesa_llm.viz.components.controls import Alarms, Controls, CostEstimateCard, Playback, PlaySpeed
from mesa_llm.viz.components.experiment import Experiment
from mesa_llm.viz.components.human import HumanPanel
from mesa_llm.viz.components.inspector import AgentInspector, InterviewForm
from mesa_llm.viz.components.interventions import Branches, InterventionForm
from mesa_llm.viz.components.markup import place_style
from mesa_llm.viz.components.page_state import (
    ABOUT_TAB,
    AGENTS_TAB,
    DATA_TAB,
    EXPERIMENT_TAB,
    MODEL_TAB,
    TABS,
    PageState,
    browser_id,
    kernel_contexts,
    page_state,
    use_page,
)
from mesa_llm.viz.components.placement import place_steady
from mesa_llm.viz.components.plots import Measures, MesaPlot, is_mesa_plot
from mesa_llm.viz.components.readme import About, Question
from mesa_llm.viz.components.run_settings import RunSettingsForm, controls_of, defaults
from mesa_llm.viz.components.runs import RecordedRuns, RecordingFacts, Reopen, ReportCard, Runs
from mesa_llm.viz.components.space import MakeRenderer, Space, has_space, plain_renderer
from mesa_llm.viz.components.tables import ActionTable, EventLog, MeasureTable
from mesa_llm.viz.render.readme import Readme
from mesa_llm.viz.server.auth import foreign_origin
from mesa_llm.viz.server.state import ServerState
from mesa_llm.viz.session.refresh import watch
from mesa_llm.viz.session.run_settings import ModelFactory, RunSettings
from mesa_llm.viz.session.runner import PLAY_S
from mesa_llm.viz.session.runs import KeptRun, runs_folder
from mesa_llm.viz.session.rw_lock import steady
from mesa_llm.viz.session.session import PageSession

logger = logging.getLogger(__name__)

Component = Callable[[Any], Any]
"""Shows part of a model: a Solara component, or a function that returns an element, like Mesa's plot components."""

PlacedComponent = Component | tuple[Component, int | str] | tuple[Component, int | str, str]
"""A component, or a component with its tab, a page number as in Mesa or a title, and perhaps a heading."""


class TabComponent(NamedTuple):
    """A component on a tab."""

    component: Component
    """The component."""

    heading: str = ""
    """Heading above it; empty: none."""


DEFAULT_COMPONENTS: tuple[tuple[Component, str, str], ...] = (
    (Measures, DATA_TAB, ""),
    (AgentInspector, AGENTS_TAB, ""),
    (ActionTable, AGENTS_TAB, "Actions"),
    (MeasureTable, DATA_TAB, "Measures by step"),
    (EventLog, DATA_TAB, "Events"),
    (ReportCard, DATA_TAB, "Report"),
    (InterventionForm, EXPERIMENT_TAB, "News"),
    (Branches, EXPERIMENT_TAB, "What if"),
    (About, ABOUT_TAB, ""),
)
"""Components of every page."""

LIVE_ONLY: tuple[Component, ...] = (InterviewForm, InterventionForm)
"""Components that query agents or change the run, left out for recorded runs."""


@component
def LLMPage(
    model: ModelFactory,
    *,
    model_params: Mapping[str, Any] | None = None,
    components: Sequence[PlacedComponent] = (),
    renderer: MakeRenderer | None = None,
    name: str | None = None,
    llm: str = "rule",
    rng: int | None = 42,
    parameters: Mapping[str, Any] = MappingProxyType({}),
    keeps_runs: bool = True,
    lesson: Lesson | None = None,
    recording: Recording | None = None,
    players_see: Sequence[Component] = (),
) -> None:
    """Show a model, run it, and inspect its agents. Each visitor gets their own model.

    No key from the environment is sent to an endpoint that a visitor enters, and pages of other origins see nothing.
    `mesa-llm app FILE` also requires a token; `solara run FILE` lets in anybody who can reach the server, under any
    host name.

    It is like `SolaraViz`, but takes a model class instead of a model, and stays responsive while agents decide. Its
    tabs are Model (the space and the plots), Agents (every agent's prompts, replies and actions), Data (measures,
    events, a report, and the runs, saved in the folder `runs`), Experiment (news, branches, audits) and About.
    `LLMPage(MyModel)` alone shows the model's space or network, plots of all numbers that it collects, and controls for
    its parameters. While a person plays, everything but the person's own view is covered until it is asked for.

    Args:
        model: A model class, or any callable that takes parameters by name and returns a model.
        model_params: Parameters as in Mesa: fixed values, `Slider`s, or dictionaries with a type; None: as declared by
            the model's scenario. Language model and seed can always be chosen.
        components: Components, each optionally with its tab, a number as in Mesa or a title, and a heading. The first
            one on the first tab takes its left half. Empty: the model's space and all its measures.
        renderer: Sets up Mesa's renderer of the space; None: a default one if no components are given.
        name: Title; None: the name of the class.
        llm: Initial language model: `rule`, `random`, `local`, `human`, or a model string.
        rng: Initial seed; None: a new one each time.
        parameters: Initial values of parameters, where they differ from those of `model_params`.
        keeps_runs: Whether to save runs, in the folder named by the environment variable MESA_LLM_RUNS or else in
            `runs` in the current folder.
        lesson: Lesson in which a class plays the model together; None: each visitor has their own model.
        recording: Recorded run to show first, as `mesa-llm view` does; None: start with a new run.
        players_see: Components that also people who play see, since they show nothing that an agent may not know.
    """
    foreign = use_memo(lambda: foreign_origin(headers.peek()), [])
    server = use_memo(ServerState.current, [])
    if foreign:
        solara.Error(f"This page was opened from {foreign}, and is not shown there.")
    else:
        params = dict(declared_controls(model) if model_params is None else model_params)
        initial = initial_settings(params, llm=llm, rng=rng, parameters=parameters)
        title = name or getattr(model, "__name__", "Model")
        folder = runs_folder() if keeps_runs else None

        def begin() -> PageSession:
            if lesson is not None:
                return lesson.session(model, initial, folder, server.access)
            session = PageSession(model, initial, folder, recording, server.access)
            key = browser_id(), model
            session.previous, server.visits[key] = server.visits.get(key, session.previous), session.visit
            return session

        _Page(server, model, params, PageContents(components, renderer, players_see), title, initial, begin)


class PageContents(NamedTuple):
    """What a page shows of its model."""

    components: Sequence[PlacedComponent]
    """Components with their tabs; see `LLMPage`."""

    renderer: MakeRenderer | None
    """Sets up Mesa's renderer of the space; None: a default one."""

    players_see: Sequence[Component]
    """Components that are not covered while a person plays."""


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
    contents: PageContents,
    name: str,
    initial: RunSettings,
    begin: Callable[[], PageSession],
) -> None:
    session = use_memo(begin, [])
    choice = solara.use_reactive(session.built_from)
    recording = solara.use_reactive(session.recording)
    readme = use_memo(lambda: Readme.of(model), [])
    meanings = use_memo(lambda: meanings_of(model), [])
    labels = use_memo(lambda: {control.name: control.label for control in controls_of(params)}, [])
    baseline = use_memo(lambda: (session.drawn, session.state), [])
    arrival = use_memo(threading.Event, [])
    page = use_memo(PageState, [])
    page_state.provide(page)
    use_memo(lambda: page.attach(session), [])
    recorded_runs = use_memo(lambda: [] if isinstance(session, LessonSession) else recorded_runs_of(model), [])
    use_effect(lambda: _open(server, session, page, baseline, arrival), [])

    def resume(run: KeptRun) -> None:
        choice.set(run.choice(initial, choice.value, session.llm_labels))
        session.build(choice.value, run)
        change()

    def view(run: KeptRun) -> None:
        session.open(run.path)
        change()

    def watch(run: RecordedRun) -> None:
        session.watch(run.recording)
        change()

    def begin_anew() -> None:
        session.build(choice.value)
        if session.runner is not None:
            session.runner.pause_s = PLAY_S
        change()

    def change() -> None:
        recording.set(session.recording)
        page.update_text()

    place_style()
    with solara.AppBar():
        solara.AppBarTitle(name)
        for fold, shows in ((page.is_folded, "mesa-llm-wide"), (page.is_unfolded, "mesa-llm-narrow")):
            _FoldButton("Parameters" if recording.value is None else "This run", fold, shows)
        solara.lab.ThemeToggle()
    recorded = recording.value
    is_live = recorded is None
    with solara.Div(classes=["mesa-llm-page"]):
        with solara.Div(classes=["mesa-llm-top"]):
            Question(readme)
            if recorded is not None:
                Playback(session, recorded, begin_anew)
            else:
                Controls(session, choice, labels)
                if recorded_runs:
                    RecordedRuns(session, recorded_runs, watch)
        folds = {"folded": page.is_folded.value, "unfolded": page.is_unfolded.value}
        with solara.Div(classes=["mesa-llm-settings", *(name for name, is_so in folds.items() if is_so)]):
            if is_live:
                solara.HTML(tag="h2", unsafe_innerHTML="Parameters", classes=["mesa-llm-heading"])
                RunSettingsForm(  # redrawn at each step, it would overwrite what is being typed
                    model,
                    params,
                    choice,
                    meanings,
                    session.llm_labels,
                    initial=initial.parameters,
                    has_common_budget=server.access is not None,
                    on_choice=session.want,
                )
            elif session.runner is not None:
                file = recorded.file
                title = next((run.title for run in recorded_runs if run.file == file), "")
                RecordingFacts(recorded, session.runner.model, title, labels)
            PlaySpeed(session).key("of a new run" if recorded is None else f"of {recorded.file}")
            if is_live:
                CostEstimateCard(session)
        _Main(session, contents, Reopen(resume, view))
    _Arrivals(page, arrival)


def initial_settings(
    params: Mapping[str, Any], *, llm: str = "rule", rng: int | None = 42, parameters: Mapping[str, Any]
) -> RunSettings:
    """Return the settings with which a page builds its first model.

    Args:
        params: Mesa's description of the model's parameters.
        llm: Initial language model.
        rng: Initial seed; None: a new one each time.
        parameters: Initial values that differ from those described.
    """
    return RunSettings(llm, seed="" if rng is None else str(rng), parameters={**defaults(params), **parameters})


def declared_controls(model: ModelFactory) -> dict[str, Any]:
    """Return the controls of a model's parameters in the form of Mesa's `model_params`.

    Args:
        model: The factory of the model; a class declares its parameters in its scenario.
    """
    return controls(model) if isinstance(model, type) and issubclass(model, LLMModel) else {}


def meanings_of(model: ModelFactory) -> dict[str, str]:
    """Return the meanings of a model's parameters by name.

    Args:
        model: The factory of the model; a class declares its parameters in its scenario.
    """
    if not (isinstance(model, type) and issubclass(model, LLMModel)):
        return {}
    return {parameter.name: parameter.meaning for parameter in parameters_of(model)}


def recorded_runs_of(model: ModelFactory) -> list[RecordedRun]:
    """Return the recorded runs that come with a model.

    Args:
        model: The factory of the model; only a class has recorded runs, in the folder of its module.

    Raises:
        ConfigError: If they cannot be read.
    """
    file = getattr(sys.modules.get(model.__module__), "__file__", None)
    if file is None or not (isinstance(model, type) and issubclass(model, LLMModel)):
        return []
    return [run for run in made_runs(Path(file).parent) if run.recording.model == name_of(model)]


@component
def _FoldButton(label: str, fold: solara.Reactive[bool], shows: str) -> None:
    """Fold the left column on a wide screen, where it is open at first, or unfold it on a narrow one."""
    solara.Button(
        label,
        icon_name="mdi-tune",
        on_click=lambda: fold.set(not fold.peek()),
        text=True,
        dark=True,
        classes=[shows],
    )


@component
def _Main(session: PageSession, contents: PageContents, reopen: Reopen) -> None:
    update_counter.get()
    open_model, uncover = use_state(cast("LLMModel | None", None))
    with solara.Div(classes=["mesa-llm-main"]):
        Alarms(session)
        if session.runner is None:
            return
        model = session.runner.model
        plays = bool(session.queues) and not isinstance(session, LessonSession)
        if isinstance(session, LessonSession):
            ClassPanel(session.lesson)
        elif plays:
            HumanPanel(model)
        if plays and model.running and open_model is not model:
            _Cover(lambda: uncover(model))
            _Columns(model, [TabComponent(one) for one in contents.players_see])
        else:
            _Tabs(session, model, contents, reopen)


@component
def _Cover(lift: Callable[[], None]) -> None:
    """Say that the rest of the page is covered, and let a person uncover it."""
    with solara.Info(dense=True):
        solara.Text(
            "While you play, the page shows what your agent sees, and covers the rest: charts, tables and other agents "
            "may tell what your agent cannot know."
        )
        solara.Button("Show everything", icon_name="mdi-eye-outline", on_click=lift, text=True, small=True)


@component
def _Arrivals(page: PageState, arrival: threading.Event) -> None:
    """Note that the browser shows the page, and each time that it shows a new drawing."""

    page.use_moment()

    def arrive(number: object) -> None:
        page.note_seen(number)
        arrival.set()

    _Arrival(number=page.n_sent, event_arrive=arrive)


@solara.component_vue("arrival.vue")
def _Arrival(number: int, event_arrive: Callable[[object], None] | None = None) -> None:
    """Report that the browser shows the page, and each new number; see `arrival.vue`."""


def _open(
    server: ServerState,
    session: PageSession,
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
    components: Sequence[PlacedComponent],
    space: Component | None = None,
    runs: Component | None = None,
    experiment: Component | None = None,
    *,
    is_recorded: bool = False,
) -> dict[str, list[TabComponent]]:
    """Group components by tab.

    Args:
        components: Components, with or without a tab; empty: the model's measures on the first tab.
        space: Draws the space, which comes first; None: not shown.
        runs: Shows the saved runs, which come last in the data; None: not shown.
        experiment: Plans, runs and shows audits, after the branches; None: not shown.
        is_recorded: Whether it is a recorded run, without interviews and interventions.

    Returns:
        Title of each tab → its components in order. The tabs of every page come first and last, others between.
    """
    placed = [_placed(one) for one in components or [Measures]]
    own = [one.component for _, one in placed]
    extras = [(tab, TabComponent(extra, heading)) for extra, tab, heading in DEFAULT_COMPONENTS if extra not in own]
    first = [(MODEL_TAB, TabComponent(space))] if space is not None else []
    last = [(EXPERIMENT_TAB, TabComponent(experiment, "Audit"))] if experiment is not None else []
    last += [(DATA_TAB, TabComponent(runs, "Runs"))] if runs is not None else []
    tabs: dict[str, list[TabComponent]] = {}
    leading = [pair for pair in extras if pair[0] in (AGENTS_TAB, ABOUT_TAB)]  # come first on their tabs
    others = [pair for pair in extras if pair not in leading]
    for tab, one in (*leading, *first, *placed, *others, *last):
        if not (is_recorded and one.component in LIVE_ONLY):
            tabs.setdefault(tab, []).append(one)
    titles = [tab for tab in tabs if tab not in TABS]
    return {tab: tabs[tab] for tab in (MODEL_TAB, *titles, *TABS[1:]) if tab in tabs}


def _placed(one: PlacedComponent) -> tuple[str, TabComponent]:
    """Return the tab of a component, and the component with its heading."""
    if not isinstance(one, tuple):
        return MODEL_TAB, TabComponent(one)
    tab = one[1] if isinstance(one[1], str) else f"Page {one[1]}" if one[1] else MODEL_TAB
    return tab, TabComponent(one[0], one[2] if len(one) > 2 else "")


def space_of(model: LLMModel, components: Sequence[PlacedComponent], renderer: MakeRenderer | None) -> Component | None:
    """Return the component that draws a model's space; None if it is not drawn.

    Args:
        model: The model.
        components: Other components of the page; if there are none, any space is drawn.
        renderer: Sets up Mesa's renderer; None: a default one.
    """
    if renderer is None and (components or not has_space(model)):
        return None

    def show(model: LLMModel) -> Any:
        return Space(model, renderer or plain_renderer)

    return show


@component
def _Tabs(session: PageSession, model: LLMModel, contents: PageContents, reopen: Reopen) -> None:
    components, renderer, _ = contents

    def runs(model: LLMModel) -> Any:
        is_class = isinstance(session, LessonSession)
        return Runs(model, session.factory, session.folder, reopen._replace(view=None) if is_class else reopen)

    def experiment(model: LLMModel) -> Any:
        return None if session.auditor is None else Experiment(session, session.auditor)

    def sort() -> dict[str, list[TabComponent]]:
        is_recorded = session.recording is not None
        can_audit = session.auditor is not None and not is_recorded and not isinstance(session, LessonSession)
        space = space_of(model, components, renderer)
        return tabs_of(components, space, runs, experiment if can_audit else None, is_recorded=is_recorded)

    page = use_page(model)
    tabs = use_memo(sort, [model])
    titles = list(tabs)

    def turn(index: int) -> None:
        page.tab.set(titles[index])

    now = titles.index(page.tab.value) if page.tab.value in titles else 0
    with solara.lab.Tabs(value=now, on_value=turn, lazy=True):
        for title, placed in tabs.items():
            with solara.lab.Tab(title):
                if title == MODEL_TAB and len(placed) > 1:
                    with solara.Div(classes=["mesa-llm-halves"]):
                        _Columns(model, placed[:1])
                        _Columns(model, placed[1:])
                else:
                    _Columns(model, placed)


@component
def _Columns(model: LLMModel, placed: Sequence[TabComponent]) -> None:
    """Show components side by side; first select their tab, so that no other's content is under it."""
    is_turned_to, turn_to = use_state(False)
    use_effect(lambda: turn_to(True), [])
    if not is_turned_to:
        vuetify.ProgressLinear(indeterminate=True, attributes={"aria-label": "Loading"}, class_="mesa-llm-loading")
        return
    with solara.Div(classes=["mesa-llm-columns"]):
        for one in placed:
            _Component(one, model)


@component
def _Component(placed: TabComponent, model: LLMModel) -> None:
    """Show a component; if it raises, show the error in its place until the next step."""
    error, try_again = use_exception()
    drawn = update_counter.get()
    drawn_at = use_ref(drawn)
    if error is None:
        drawn_at.current = drawn
    is_past = drawn_at.current != drawn
    use_effect(lambda: try_again() if is_past else None, [is_past])
    use_effect(lambda: _log(error), [error])
    if error is None:
        _Content(placed, model)
    else:
        solara.Error(f"This component failed with {type(error).__name__}: {error} (see the log for details)")


def _log(error: BaseException | None) -> None:
    if error is not None:
        logger.error("a component of a page failed", exc_info=error)


@component
def _Content(placed: TabComponent, model: LLMModel) -> None:
    """Show a component in a card."""
    update_counter.get()
    if placed.component is Measures:  # has a card for each plot
        Measures(model)
        return
    with solara.Card(margin=0, classes=["mesa-llm-card"]):
        if placed.heading:
            solara.HTML(tag="h2", unsafe_innerHTML=escape(placed.heading), classes=["mesa-llm-heading"])
        with steady(model):
            result = placed.component(model)
        if is_mesa_plot(result):
            MesaPlot(result, model)
        else:
            place_steady(result, model)
