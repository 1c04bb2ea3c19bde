"""Interventions in a run, branches of it, and its report, each run in a background thread."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from mesa_llm.engine.access import Access
from mesa_llm.engine.activation import llm_agents
from mesa_llm.experiments.runs.branch import Branch, branch
from mesa_llm.experiments.runs.neutral import neutral_interventions
from mesa_llm.model.interventions import (
    EVERYONE,
    NEWSROOM,
    Change,
    Intervention,
    News,
    Post,
    meaning_of,
    publishers,
    variables,
)
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording, texts_in
from mesa_llm.reports import Report, report_of, written_by
from mesa_llm.text import counted
from mesa_llm.viz.render.figures import BranchRun, Series
from mesa_llm.viz.render.markup import fault_text
from mesa_llm.viz.session.per_model import PerModel
from mesa_llm.viz.session.rw_lock import lock_of

if TYPE_CHECKING:
    import pandas as pd

NEWS, POST, CHANGE = "News", "Post", "Change of a variable"
"""Kinds of interventions, as labelled on the page."""

SEND, BRANCH, WRITE = "send", "branch", "write"
"""Tasks: intervene in the run, run a branch of it, write a report."""

MAX_BRANCHES = 4
"""Maximum number of branches on display; the latest are kept."""

MAX_READERS = 60
"""Maximum number of agents that are listed as readers."""

RETRIES = 1.25
"""Replies allowed for each expected one, so that retried replies do not end a branch early."""


class InterventionRunner:
    """Carries out visitors' interventions in one model, and runs branches of it; a page reads its attributes.

    Attributes:
        note: Result of the last task; empty if there was none.
        error: Why the last task failed; empty if it did not.
        working: Description of the current task; empty: none.
        task: The task of `working`, `note` and `error`: `SEND`, `BRANCH` or `WRITE`.
        branches: Branches that have been run, oldest first.
        report: The latest report; None: none yet.
        hide: Removes secrets from error messages.
        access: Common budget of the server's pages; None: a branch has its own.
        version: Counter that rises whenever anything here changes.
    """

    def __init__(self) -> None:
        """Start idle."""
        self.note = self.error = self.working = self.task = ""
        self.branches: list[BranchRun] = []
        self.report: Report | None = None
        self.hide: Callable[[str], str] = str
        self.access: Access | None = None
        self.version = 0
        self._lock = threading.Lock()
        self._fork: Branch | None = None
        self._is_stopping = False

    @staticmethod
    def of(model: LLMModel) -> InterventionRunner:
        """Return the intervention runner of a model."""
        return _runners.of(model)

    def send(self, model: LLMModel, intervention: Intervention) -> None:
        """Intervene in a run before its next step; return at once.

        Args:
            model: The model.
            intervention: The intervention.
        """

        def work() -> tuple[str, str]:
            with lock_of(model).writing():
                step = model.inject(intervention)
            return f"Sent. Agents read it in step {step}.", ""

        self._begin(SEND, "Sending …", work)

    def branch(
        self,
        model: LLMModel,
        intervention: Intervention,
        steps: int,
        at: int | None = None,
        max_calls: int | None = None,
        *,
        placebo: bool = False,
    ) -> None:
        """Run a branch of a run, leaving the run itself unchanged; return at once.

        Where the run has not made the branch's steps itself, an unchanged control branch makes them first. A branch
        that is stopped, or whose budget ends, is kept with the steps it has made.

        Args:
            model: The model, which may be a recorded run.
            intervention: Intervention in the branch.
            steps: Number of steps to run.
            at: Step after which the branch forks; None: the latest.
            max_calls: Maximum number of live requests of branch, control and placebo together, unless the pages share
                a budget; None: unlimited.
            placebo: Whether a second branch has a neutral text in the place of the intervention.
        """

        def work() -> tuple[str, str]:
            step = int(model.time) if at is None else at
            needs_control = step + steps > last_step_of(model)
            share = None if max_calls is None else math.ceil(max_calls / (1 + needs_control + placebo))
            with ExitStack() as opened:
                control, fault = None, ""
                if needs_control:
                    control = self._forked(model, model, step, (), share)
                    opened.callback(control.close)
                    fault = self._advance(control, steps)
                # common random numbers: the branch takes the control's replies, unless that was stopped in a step
                source = model if control is None or fault else control.model
                runs: list[BranchRun] = []
                reached = 0
                parent: dict[str, Series] = {} if control is None else _series(control.compare(), "branch")
                others = neutral_interventions([intervention])[:1] if placebo else []
                for change in (*others, intervention):
                    fork = self._forked(model, source, step, (change,), share)
                    opened.callback(fork.close)
                    fault = self._advance(fork, steps) or fault
                    usage = fork.model.usage if runs or control is None else fork.model.usage + control.model.usage
                    table = fork.compare()
                    title = fork.model.interventions.log[-1].text
                    title = f"placebo: {title}" if change is not intervention else title
                    own = _series(table, "parent") if control is None else parent
                    values, copied = _series(table, "branch"), fork.model.runlog.n_copied
                    runs.append(BranchRun(title, fork.at, values, own, usage.calls, copied))
                    reached = int(fork.model.time) - step
            self.branches = [*self.branches, *runs][-MAX_BRANCHES:]
            run = runs[-1]._replace(calls=sum(one.calls for one in runs), copied=sum(one.copied for one in runs))
            parts = ("an unchanged control branch" * (control is not None), "a placebo" * placebo)
            beside = f" beside {' and '.join(filter(None, parts))}" if any(parts) else ""
            replies = f"{run.calls} new and {run.copied} reused replies"
            note = f"The branch ran {counted(reached, 'step')} from step {run.at}{beside}, with {replies}."
            return note, fault

        self._is_stopping = False
        self._begin(BRANCH, f"Running a branch of {counted(steps, 'step')} …", work)

    def _forked(
        self, model: LLMModel, source: LLMModel, at: int, changes: Sequence[Intervention], max_calls: int | None
    ) -> Branch:
        """Fork a run of a model, which makes no step meanwhile; the page can still be drawn."""
        gate = lock_of(model)
        with gate.writing(), gate.waiting():
            named = model.engine.options.get("named")  # no key is sent to an endpoint that a visitor typed
            typed = {"named": texts_in(model.llm) if named is None else named}
            return branch(source, at, inject=changes, placebo=False, **typed, **self._budget(model, max_calls))

    def _advance(self, fork: Branch, steps: int) -> str:
        """Run a branch, and return why it ended early; empty if it did not."""
        with self._lock:
            self._fork = fork
        try:
            if self._is_stopping:
                return "Stopped."
            fork.run(steps)
        except Exception as fault:  # noqa: BLE001 - a model is anybody's code; the page shows what it raised
            text = fault_text("The branch", fault, self.hide)
            return f"{text[:1].upper()}{text[1:].rstrip('.')}. The plot shows the steps until then."
        finally:
            with self._lock:
                self._fork = None
        return ""

    def stop(self) -> None:
        """Stop the branch that is running; the steps it has made are kept."""
        with self._lock:
            self._is_stopping = True
            if self._fork is not None:
                self._fork.model.stop()

    def write(self, model: LLMModel, llm: str) -> None:
        """Write the report of a run so far; return at once.

        Args:
            model: The model.
            llm: Author: `rule`, or a language model.
        """

        def work() -> tuple[str, str]:
            with lock_of(model).writing():
                report = report_of(model)
                self.report = report if llm == "rule" else written_by(model, llm, report)
            return "", ""

        self._begin(WRITE, "Writing the report …", work)

    def _begin(self, task: str, working: str, work: Callable[[], tuple[str, str]]) -> None:
        with self._lock:
            if self.working:
                return
            self.task, self.working, self.note, self.error = task, working, "", ""
            self.version += 1
        threading.Thread(target=self._work, args=(work,), name="mesa-llm-intervention", daemon=True).start()

    def _budget(self, model: LLMModel, max_calls: int | None) -> dict[str, Any]:
        """Return the options that limit a branch: the pages' common budget, or a number of live requests."""
        if model.engine.options.get("access") is not None:
            return {}
        return {"max_calls": max_calls} if self.access is None else {"access": self.access}

    def _work(self, work: Callable[[], tuple[str, str]]) -> None:
        note = error = ""
        try:
            note, error = work()
        except Exception as fault:  # noqa: BLE001 - a model is anybody's code; the page shows what it raised
            error = fault_text("The task", fault, self.hide)
        with self._lock:
            self.working, self.note, self.error = "", note, error
            self.version += 1


def _series(table: pd.DataFrame, column: str) -> dict[str, Series]:
    """Return the values of one column of a comparison, by measure."""
    known = table.dropna(subset=column)
    groups = known.groupby("measure", sort=False)
    return {str(name): dict(zip(rows["step"], rows[column], strict=True)) for name, rows in groups}


_runners = PerModel("_intervention_runner", InterventionRunner)


def last_step_of(model: LLMModel) -> int:
    """Return the last step that a run has made; for a recorded run, the last recorded step.

    Args:
        model: The model.
    """
    path = model.runlog.path
    return Recording.read(path).last_step if model.runlog.mode == "replay" and path is not None else int(model.time)


def last_fork_of(model: LLMModel) -> int:
    """Return the last step after which a branch can go on; negative: there is none.

    A live run can be forked after its latest step, but a recorded run or one that has ended only before its last.

    Args:
        model: The model.
    """
    last = last_step_of(model)
    goes_on = model.running and model.runlog.mode != "replay"
    return last if goes_on and last else last - 1


def live_replies(model: LLMModel, steps: int, at: int, *, placebo: bool = False) -> int:
    """Return how many live replies a branch and its control may need, a quarter more than one for each agent and step.

    Where a step of the run has taken more replies than it has agents, as many are expected.

    Args:
        model: The model.
        steps: Number of steps of the branch.
        at: Step after which it forks.
        placebo: Whether a placebo runs as well.
    """
    n_agents = sum(1 for _ in llm_agents(model))
    usage, n_steps = model.usage, max(int(model.time), 1)
    per_step = max(n_agents, (usage.calls + usage.replayed) / n_steps)
    n_control = max(0, at + steps - last_step_of(model))
    return math.ceil(RETRIES * per_step * ((1 + placebo) * steps + n_control))


@dataclass(frozen=True)
class InterventionOptions:
    """What a visitor can choose for an intervention in a model."""

    readers: Sequence[str]
    """Possible readers of news: everyone, the agents in one world, single agents."""

    has_posts: bool
    """Whether posts can be published."""

    variables: Mapping[str, str]
    """Variables that can be changed, as `world.name` → current value and meaning."""

    @classmethod
    def of(cls, model: LLMModel) -> InterventionOptions:
        """Return the options for a model."""
        agents = [f"agent {agent.unique_id}: {agent.config.name}" for agent in islice(llm_agents(model), MAX_READERS)]
        worlds = [world.name for world in model.worlds] if len(model.worlds) > 1 else []
        own = {
            f"{world}.{name}" if world else name: f"Now {json.dumps(value)}. {meaning_of(model, world, name)}"
            for (world, name), value in variables(model).items()
        }
        return cls((EVERYONE, *worlds, *agents), bool(publishers(model)), own)

    @property
    def kinds(self) -> list[str]:
        """The kinds of interventions that are possible."""
        return [NEWS, *([POST] if self.has_posts else []), *([CHANGE] if self.variables else [])]


def intervention_of(kind: str, text: str, target: str) -> Intervention:
    """Create an intervention from the fields of the form.

    Args:
        kind: Kind of the intervention.
        text: Text of the news or the post, or the new value as JSON or text.
        target: Readers, account, or variable.

    Raises:
        ValueError: If the text is empty.
    """
    text = text.strip()
    if not text:
        raise ValueError("Enter a text first.")
    if kind == POST:
        return Post(text=text, author=target.strip() or NEWSROOM)
    if kind == CHANGE:
        world, _, name = target.rpartition(".")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        return Change(variable=name, value=value, world=world)
    agent = target.removeprefix("agent ").partition(":")[0]
    return News(text=text, to=(int(agent),) if target.startswith("agent ") and agent.isdecimal() else target)
