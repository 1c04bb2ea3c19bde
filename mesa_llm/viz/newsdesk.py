"""The news desk: what a visitor does to a run from outside, what would come of it in a branch, and its report."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import solara
from mesa.visualization.utils import update_counter
from reacton import ipyvuetify as vuetify
from reacton import use_ref, use_state
from reacton.ipyvue import use_event
from solara.core import component

from mesa_llm.engine.activation import minded
from mesa_llm.model.branch import branch
from mesa_llm.model.interventions import EVERYONE, NEWSROOM, Change, Intervention, News, Post, publishers, variables
from mesa_llm.model.model import LLMModel
from mesa_llm.reports import Report, report_of, written_by
from mesa_llm.viz.figures import Figure, Plot, numbers_of
from mesa_llm.viz.gate import OnePerModel, gate_of, steady
from mesa_llm.viz.markup import Markup, fault_text, label_of
from mesa_llm.viz.tables import Row
from mesa_llm.viz.ticker import words

NEWS, POST, CHANGE = "News", "Post", "Change of a variable"
"""What can be done to a run, as the page names it."""

MAX_BRANCHES = 4
"""Maximum number of branches that are shown, the latest."""

MAX_READERS = 60
"""Maximum number of agents that are listed as readers."""

MAX_STEPS = 50
"""Maximum number of steps that a branch runs on the page."""


class BranchRun(NamedTuple):
    """A branch that was run."""

    title: str
    """What was changed."""

    at: int
    """Last step that it has in common with its parent."""

    values: dict[str, tuple[list[int], list[float]]]
    """Measure → steps, and its value after each."""

    calls: int
    """Replies that came live."""


class NewsDesk:
    """Does to one model what visitors of a page want, and runs branches of it.

    Knows nothing of Solara; a page looks at its plain attributes.

    Attributes:
        note: What became of the last thing that was done; empty: nothing was.
        error: Why it could not be done; empty if it could.
        working: What is being run; empty: nothing.
        branches: Branches that were run, oldest first.
        report: The report that was written last; None: none was.
        version: Rises whenever anything here changes.
    """

    def __init__(self) -> None:
        """Start with nothing done."""
        self.note = self.error = self.working = ""
        self.branches: list[BranchRun] = []
        self.report: Report | None = None
        self.hide: Callable[[str], str] = str
        self.version = 0
        self._lock = threading.Lock()

    @staticmethod
    def of(model: LLMModel) -> NewsDesk:
        """Return the desk of a model."""
        return _desks.of(model)

    def send(self, model: LLMModel, intervention: Intervention) -> None:
        """Do something to a run before its next step; returns at once.

        Args:
            model: The model.
            intervention: What to do.
        """

        def work() -> str:
            with gate_of(model).writing():
                step = model.inject(intervention)
            return f"Done: it bears on step {step}."

        self._begin("Sending …", work)

    def branch(self, model: LLMModel, intervention: Intervention | None, steps: int) -> None:
        """Run a branch of a run, which itself stays as it is; returns at once.

        Args:
            model: The model.
            intervention: What to do to the branch; None: nothing.
            steps: Number of steps to run.
        """

        def work() -> str:
            with gate_of(model).writing():
                fork = branch(model, int(model.time), inject=() if intervention is None else (intervention,))
            try:
                fork.run(steps)
                table = fork.compare().dropna(subset="branch")
                log = fork.model.interventions.log
                title = log[-1].text if intervention is not None and log else "without a change"
                values = {
                    str(name): (rows["step"].tolist(), rows["branch"].tolist())
                    for name, rows in table.groupby("measure", sort=False)
                }
                run = BranchRun(title, fork.at, values, fork.model.usage.calls)
            finally:
                fork.close()
            self.branches = [*self.branches, run][-MAX_BRANCHES:]
            return f"The branch ran {steps} steps from step {run.at} on, with {run.calls} live replies."

        self._begin(f"A branch runs {steps} steps …", work)

    def write(self, model: LLMModel, llm: str) -> None:
        """Have the report of a run so far written; returns at once.

        Args:
            model: The model.
            llm: Who writes: `rule`, or a language model.
        """

        def work() -> str:
            with gate_of(model).writing():
                report = report_of(model)
                self.report = report if llm == "rule" else written_by(model, llm, report)
            return ""

        self._begin("The report is written …", work)

    def _begin(self, working: str, work: Callable[[], str]) -> None:
        with self._lock:
            if self.working:
                return
            self.working, self.note, self.error = working, "", ""
            self.version += 1
        threading.Thread(target=self._work, args=(work,), name="mesa-llm-news-desk", daemon=True).start()

    def _work(self, work: Callable[[], str]) -> None:
        note = error = ""
        try:
            note = work()
        except Exception as fault:  # noqa: BLE001 - a model is anybody's code; the page tells what it raised
            error = fault_text("The news desk", fault, self.hide)
        with self._lock:
            self.working, self.note, self.error = "", note, error
            self.version += 1


_desks = OnePerModel(lambda _model: NewsDesk())


@dataclass(frozen=True)
class Choices:
    """What can be chosen at the desk of a model."""

    readers: Sequence[str]
    """Who can read news: everyone, the visitors of a world, single agents."""

    has_posts: bool
    """Whether a world has posts."""

    variables: Sequence[str]
    """Variables that can be changed, as `world.name`, with their present values."""

    @classmethod
    def of(cls, model: LLMModel) -> Choices:
        """Return what can be chosen for a model."""
        agents = [f"agent {agent.unique_id}: {agent.config.name}" for agent in islice(minded(model), MAX_READERS)]
        worlds = [world.name for world in model.worlds] if len(model.worlds) > 1 else []
        own = [f"{world}.{name}" if world else name for world, name in variables(model)]
        return cls((EVERYONE, *worlds, *agents), bool(publishers(model)), own)

    @property
    def kinds(self) -> list[str]:
        """What can be done."""
        return [NEWS, *([POST] if self.has_posts else []), *([CHANGE] if self.variables else [])]


def intervention_of(kind: str, text: str, target: str) -> Intervention:
    """Make an intervention of what stands in the fields.

    Args:
        kind: What is to be done.
        text: Text of the news or the post, or the new value: JSON, or a text.
        target: Readers, account, or variable.

    Raises:
        ValueError: If nothing is written.
    """
    text = text.strip()
    if not text:
        raise ValueError("Write something first.")
    if kind == POST:
        return Post(text=text, author=target.strip() or NEWSROOM)
    if kind == CHANGE:
        world, _, name = target.rpartition(".")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        return Change(variable=name, value=value, world=world)
    agent = target.removeprefix("agent ").partition(":")[0]
    return News(text=text, to=(int(agent),) if target.startswith("agent ") and agent.isdecimal() else target)


@component
def NewsDeskForm(model: LLMModel) -> None:
    """Let a visitor send news, publish posts and change variables, in the run or in a branch of it.

    Args:
        model: The model.
    """
    update_counter.get()
    words.get()
    desk = NewsDesk.of(model)
    with steady(model):
        choices = Choices.of(model)
        rows = [Row((str(one.step), one.text), "failed" if one.refusal else "") for one in model.interventions.log]
    solara.Text(
        "From outside, between two steps. It stands in the run log, and a replay does it again. Send does it to this "
        "run; a branch leaves this run as it is, and shows beside it what would come of it.",
        classes=["mesa-llm-hint"],
    )
    _Desk(model, desk, choices)
    if desk.working:
        solara.ProgressLinear(True)
    for text, show in ((desk.working, solara.Info), (desk.error, solara.Error), (desk.note, solara.Success)):
        if text:
            show(text, dense=True)
    if rows:
        Markup("table.html", columns=("Step", "Done from outside"), rows=rows[::-1], more=0, nothing="")
    if desk.branches:
        _Branches(model, desk)


@component
def _Desk(model: LLMModel, desk: NewsDesk, choices: Choices) -> None:
    """Show the fields; what is typed is not sent back meanwhile, so that a step takes nothing back."""
    kind, choose = use_state(NEWS)
    reader, set_reader = use_state(EVERYONE)
    variable, set_variable = use_state("")
    steps, set_steps = use_state(5)
    fault, set_fault = use_state("")
    text, author = use_ref(""), use_ref("")
    own = variable if variable in choices.variables else next(iter(choices.variables), "")
    target = {NEWS: reader, CHANGE: own}.get(kind, "")

    def write(do: Callable[[Intervention], None]) -> None:
        try:
            intervention = intervention_of(kind, text.current, author.current if kind == POST else target)
        except ValueError as error:
            set_fault(str(error))
            return
        set_fault("")
        do(intervention)

    solara.ToggleButtonsSingle(kind, values=choices.kinds, on_value=choose, dense=True)
    if kind == NEWS:
        solara.Select("Who hears it", list(choices.readers), value=reader, on_value=set_reader, dense=True)
    elif kind == POST:
        _Typed("Account (a user's name; any other: a newsroom)", author, rows=0)
    else:
        solara.Select("Variable", list(choices.variables), value=own, on_value=set_variable, dense=True)
    _Typed("New value" if kind == CHANGE else "Text", text, rows=0 if kind == CHANGE else 2).key(kind)
    with solara.Row(gap="12px", style={"align-items": "center", "flex-wrap": "wrap"}):
        is_busy = bool(desk.working)
        solara.Button(
            "Send", color="primary", disabled=is_busy, on_click=lambda: write(lambda one: desk.send(model, one))
        )
        solara.Button(
            "Try in a branch",
            outlined=True,
            disabled=is_busy or not model.time,
            on_click=lambda: write(lambda one: desk.branch(model, one, steps)),
        )
        solara.Button(
            "Branch without a change",
            text=True,
            disabled=is_busy or not model.time,
            on_click=lambda: desk.branch(model, None, steps),
        )
        solara.SliderInt("Steps of a branch", value=steps, min=1, max=MAX_STEPS, on_value=set_steps)
    if fault:
        solara.Error(fault, dense=True)


@component
def _Typed(label: str, typed: Any, rows: int) -> None:
    def type_in(*event: Any) -> None:
        typed.current = str(event[-1] or "")

    options: dict[str, Any] = {"label": label, "value": "", "outlined": True, "dense": True, "hide_details": True}
    field = vuetify.Textarea(rows=rows, auto_grow=True, **options) if rows else vuetify.TextField(**options)
    use_event(field, "input", type_in)


@component
def _Branches(model: LLMModel, desk: NewsDesk) -> None:
    """Plot one measure of this run and of its branches."""
    with steady(model):
        names = list(numbers_of(model)[0])
    chosen, choose = use_state("")
    name = chosen if chosen in names else next(iter(names), "")
    if not name:
        return
    solara.Select("Measure", names, value=name, on_value=choose, dense=True)
    branches = tuple(desk.branches)
    Plot(model, branches_figure(name, branches)).key(f"{name} of {len(branches)} branches, {desk.version}")


def branches_figure(name: str, branches: Sequence[BranchRun]) -> Callable[[LLMModel], Figure]:
    """Make what draws a measure of a run and of its branches side by side.

    Args:
        name: Name of the measure.
        branches: The branches.
    """

    def draw(model: LLMModel) -> Figure:
        figure = Figure(figsize=(7, 3.6), layout="constrained")
        axes = figure.subplots()
        values = list(model.datacollector.model_vars[name])
        first = int(model.time) - len(values) + 1
        axes.plot(range(first, first + len(values)), values, color="#0f172a", marker=".", label="this run")
        for index, run in enumerate(branches):
            steps, own = run.values.get(name, ([], []))
            later = [(step, value) for step, value in zip(steps, own, strict=True) if step >= run.at]
            title = run.title if len(run.title) <= 48 else f"{run.title[:47]}…"
            axes.plot(*zip(*later, strict=True), color=f"C{index}", marker=".", linestyle="--", label=title)
        axes.set_title(f"{label_of(name)}: this run and its branches", loc="left")
        axes.set_xlabel("Step")
        axes.legend(fontsize="small")
        return figure

    return draw
