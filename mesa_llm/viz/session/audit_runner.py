"""Audits that a page plans and runs, each in a background thread."""

from __future__ import annotations

import math
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mesa_llm.agents.design import AgentDesign
from mesa_llm.engine.access import Access, OpenedModel
from mesa_llm.engine.options import ACCESS_OPTIONS
from mesa_llm.errors import BudgetExceeded, ConfigError, Stopped
from mesa_llm.experiments.audits import AuditSetup, estimate_audit, level_of, n_runs, plan_for, run_setup
from mesa_llm.experiments.audits.dimensions import DIMENSIONS, AuditPlan, Setting
from mesa_llm.experiments.runs.listening import ListeningAccess
from mesa_llm.experiments.runs.runner import Stop, through
from mesa_llm.llm.keys import Origin
from mesa_llm.llm.protocol import LLM, Capabilities
from mesa_llm.model.cost_estimate import Cost
from mesa_llm.model.identity import name_of, setting_digest
from mesa_llm.model.model import LLMModel
from mesa_llm.model.scenario import parameters_of
from mesa_llm.text import counted
from mesa_llm.viz.render.downloads import file_name
from mesa_llm.viz.render.markup import fault_text
from mesa_llm.viz.session.audits import AUDITS, KeptAudit
from mesa_llm.viz.session.run_settings import WITHOUT_TEXT, RunSettings

TRIAL_STEPS = 20
"""Maximum number of steps of the run that shows a model's measures and decisions."""

MAX_MEASURES = 200
"""Maximum number of measures to choose from."""

NOT_OFFERED = ("log", "replay", "access", "rng", "llm", "light")
"""Arguments of a page's run that an audit sets itself."""


@dataclass(frozen=True)
class AuditForm:
    """What a visitor chooses for an audit."""

    measure: str = ""
    """Name of a result; empty: the first."""

    smallest_effect: float | None = None
    """Smallest change of it that would matter; None: not said yet."""

    seeds: int = 10
    """Number of seeds."""

    steps: int = 10
    """Maximum number of steps of each run."""

    left_out: frozenset[str] = frozenset()
    """Dimensions that are not audited."""

    max_calls: int | None = None
    """Maximum number of live requests; None: twice the expected number."""

    max_dollars: float | None = None
    """Maximum cost, in US dollars; None: that of the page's runs."""


@dataclass(frozen=True)
class AuditOffer:
    """What can be audited of a page's model with its present settings."""

    kind: type[LLMModel]
    """Class of the model."""

    setting: Setting
    """Parameters, design, language model and options."""

    plan: AuditPlan
    """All perturbations and controls."""

    measures: tuple[str, ...]
    """Names of the results that are numbers."""

    decisions: int
    """Expected number of decisions in one run."""

    @cached_property
    def dimensions(self) -> Mapping[str, int]:
        """Dimension → its number of changes."""
        of_each = [one.dimension for one in self.plan.perturbations]
        return {name: of_each.count(name) for name in DIMENSIONS if name in of_each}

    def setup(self, form: AuditForm, folder: Path) -> AuditSetup:
        """Return the audit that a visitor has chosen.

        Args:
            form: What was chosen.
            folder: Folder of its logs.

        Raises:
            ConfigError: If a number is invalid.
        """
        if form.seeds < 2 or form.steps < 1:
            raise ConfigError(f"an audit needs 2 seeds and 1 step or more, got {form.seeds} and {form.steps}")
        measure = form.measure if form.measure in self.measures else next(iter(self.measures), "")
        claim = level_of(self.kind, measure, form.smallest_effect or 1.0)
        kept = [one for one in self.plan.perturbations if one.dimension not in form.left_out]
        plan = replace(self.plan, perturbations=kept)
        seeds = list(range(1, form.seeds + 1))
        return AuditSetup(self.kind, [claim], self.setting.llm, seeds, form.steps, plan, folder.resolve(), self.setting)


class TypedEndpoint(Access):
    """An access under which a name stands for the endpoint that a visitor typed, with the key typed beside it or none.

    Budget and limits are those of the access around which it is made.
    """

    def __init__(self, real: Access, name: str, transport: LLM) -> None:
        """Open nothing yet.

        Args:
            real: The access with the budget and the limits.
            name: The name.
            transport: The endpoint.
        """
        super().__init__()
        self._real = real
        self._typed = {name: transport}

    def open(self, llm: str | LLM, *, is_auxiliary: bool = False, origin: Origin = Origin.USER) -> OpenedModel:
        """Open the endpoint for its name; all else as usual."""
        named = self._typed.get(llm, llm) if isinstance(llm, str) else llm
        return self._real.open(named, is_auxiliary=is_auxiliary, origin=origin)

    def name_of(self, text: str, *, is_auxiliary: bool = False) -> str:
        """Return the name of a language model in a recording."""
        return text if text in self._typed else self._real.name_of(text, is_auxiliary=is_auxiliary)

    def paid(self, transport: LLM) -> LLM:
        """Return a transport that pays from the budget."""
        return self._real.paid(transport)

    @property
    def written(self) -> dict[str, Any]:
        """Limits as plain values."""
        return self._real.written

    @property
    def asks_in_batches(self) -> bool:
        """Whether requests are sent in batches."""
        return self._real.asks_in_batches

    @property
    def timeout_s(self) -> float:
        """Longest timeout, in seconds."""
        return self._real.timeout_s


@dataclass(frozen=True)
class _Chosen:
    """A page's settings, as an audit takes them."""

    setting: Setting
    """Parameters, design, language model and options of all runs."""

    limits: Mapping[str, Any]
    """Endpoints and limits that the page fixes."""

    typed: LLM | None
    """The endpoint that the visitor typed."""


class AuditRunner:
    """Plans and runs the audits of one page; a page reads its attributes.

    Attributes:
        form: What the visitor has chosen.
        offer: What can be audited with the page's settings; None: not known yet.
        cost: Expected cost of the audit that was chosen; None: not known.
        working: Description of the current task; empty: none.
        done: Number of finished runs of the current audit.
        total: Number of all its runs; 0: none is running.
        stopping: Whether the current audit is being stopped.
        note: How the last audit ended.
        error: Why the last task failed; empty if it did not.
        found: The audit on display; None: none.
        version: Counter that rises whenever anything here changes.
    """

    def __init__(self, kind: type[LLMModel], folder: Path | None, access: Access | None) -> None:
        """Start idle.

        Args:
            kind: Class of the model.
            folder: Folder of the page's runs; None: nothing is saved.
            access: Common budget of the server's pages; None: each audit has its own.
        """
        self.kind = kind
        self.folder = folder
        self.access = access
        self.form = AuditForm()
        self.offer: AuditOffer | None = None
        self.cost: Cost | None = None
        self.working = self.note = self.error = ""
        self.done = self.total = self.version = 0
        self.stopping = False
        self.found: KeptAudit | None = None
        self._prepared: object = None
        self._estimated: object = None
        self._reason = ""
        self._stop = Stop()
        self._task: Future[None] | None = None
        self._lock = threading.Lock()
        self._temporary: Path | None = None

    # -- what is chosen

    def change(self, **fields: Any) -> None:
        """Change what is chosen; does nothing while something runs.

        Args:
            **fields: Fields of the form.
        """
        if not self.total:
            self.form = replace(self.form, **fields)
            self.version += 1

    def show(self, found: KeptAudit | None) -> None:
        """Show a finished audit.

        Args:
            found: The audit; None: none.
        """
        self.found = found
        self.version += 1

    def is_current(self, choice: RunSettings) -> bool:
        """Check whether the offer is that of a page's settings.

        Args:
            choice: The settings.
        """
        return self._prepared == (choice, self.form.steps)

    def is_priced(self, choice: RunSettings) -> bool:
        """Check whether a provider may charge for an audit, so that its cost is estimated first."""
        return choice.llm_kind == "other" and not choice.endpoint

    def is_estimated(self, choice: RunSettings) -> bool:
        """Check whether the cost is that of what is chosen."""
        return self._estimated == (choice, self._priced_form)

    @property
    def _priced_form(self) -> AuditForm:
        return replace(self.form, measure="", smallest_effect=None, max_calls=None, max_dollars=None)

    def n_runs(self) -> int:
        """Return the number of runs of what is chosen; 0 without an offer."""
        if self.offer is None or self.form.seeds < 2 or self.form.steps < 1 or not self.offer.measures:
            return 0
        return n_runs(self.offer.setup(self.form, self._root()))

    def max_calls(self) -> int:
        """Return the maximum number of live requests: as chosen, or twice what is expected."""
        expected = self.cost.requests if self.cost is not None else self.expected_decisions()
        return self.form.max_calls or max(2 * expected, 1)

    def expected_decisions(self) -> int:
        """Return the expected number of decisions of what is chosen."""
        return 0 if self.offer is None else self.n_runs() * self.offer.decisions

    # -- tasks

    def prepare(self, choice: RunSettings) -> None:
        """Find out what can be audited with a page's settings, unless that is known; return at once.

        Args:
            choice: The settings.
        """
        key, steps = (choice, self.form.steps), self.form.steps
        if self._prepared == key:
            return

        def work() -> None:
            self.offer = None
            self._prepared = key
            self.offer = self._offer(choice, steps)

        self._begin("Looking for what can be changed in this model …", choice, work)

    def estimate(self, choice: RunSettings) -> None:
        """Estimate the cost of what is chosen, unless it is known; nothing is sent; return at once.

        Args:
            choice: The page's settings.
        """
        form, offer, key = self.form, self.offer, (choice, self._priced_form)
        if offer is None or not self.n_runs() or self._estimated == key:
            return

        def work() -> None:
            self.cost = None
            self._estimated = key
            self.cost, _ = estimate_audit(offer.setup(form, self._root()), **self._chosen(choice).limits)

        self._begin("Estimating the cost …", choice, work)

    def run(self, choice: RunSettings) -> None:
        """Run the audit that is chosen, or go on with it; return at once.

        Args:
            choice: The page's settings.
        """
        form, offer = self.form, self.offer
        if offer is None or self.working:
            return
        if not form.smallest_effect or form.smallest_effect < 0:
            self.error = "Enter the smallest change of the measure that would matter to you, above 0."
            self.version += 1
            return

        def work() -> None:
            setup = offer.setup(form, self._root())
            chosen = self._chosen(choice)
            setup = replace(setup, folder=self._logs(setup))
            access = self._access(chosen, choice)
            try:
                with through(self._opened(access, chosen), self._stop):
                    found = run_setup(setup, on_run=self._count)
            finally:
                if access is not self.access:
                    access.close()
                elif chosen.typed is not None:
                    access.forget(chosen.typed)
            place = setup.folder / self._name(form, setup)
            found.write(place)
            self.note = f"The audit is finished: {counted(self.done, 'run')}."
            self.found = KeptAudit.read(place)

        self._begin("Running the audit …", choice, work, total=self.n_runs())

    def stop(self, reason: str = "") -> None:
        """Stop the current audit; its runs are kept, and go on when it is started again.

        Args:
            reason: Why, if the visitor did not ask for it.
        """
        with self._lock:
            task = self._task
            if task is None or not self.total or self.stopping:
                return
            self.stopping, self._reason = True, reason
            self.version += 1
        threading.Thread(target=self._stop.end, args=([task],), name="mesa-llm-audit-stop", daemon=True).start()

    def _begin(self, working: str, choice: RunSettings, work: Callable[[], None], total: int = 0) -> None:
        with self._lock:
            if self.working:
                return
            self.working, self.error, self.note = working, "", ""
            self.done, self.total, self.stopping, self._reason = 0, total, False, ""
            self._stop, self._task = Stop(), Future()
            self._task.set_running_or_notify_cancel()
            self.version += 1
            arguments = (self._task, work, choice.hide)
        threading.Thread(target=self._work, args=arguments, name="mesa-llm-audit", daemon=True).start()

    def _work(self, task: Future[None], work: Callable[[], None], hide: Callable[[str], str]) -> None:
        note = error = ""
        try:
            work()
        except Stopped:
            why = self._reason or "Stopped."
            note = f"{why} {self.done} of {counted(self.total, 'run')} are kept; press Run to go on from there."
        except BudgetExceeded as fault:
            error = f"{fault_text('The audit', fault, hide)} Raise the limit and press Run to go on from there."
        except Exception as fault:  # noqa: BLE001 - a model is anybody's code; the page shows what it raised
            error = fault_text("The audit", fault, hide)
        with self._lock:
            self.working, self.total, self.stopping, self._task = "", 0, False, None
            self.note, self.error = note or self.note, error
            self.version += 1
        task.set_result(None)

    def _count(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        self.version += 1

    # -- what a task needs

    def _chosen(self, choice: RunSettings) -> _Chosen:
        """Return a page's settings as an audit takes them.

        Raises:
            ConfigError: If no audit can be made with them.
        """
        arguments = choice.arguments(self.kind, self.access)
        llm, typed = arguments.get("llm", "rule"), None
        if choice.llm_kind == "human" or isinstance(llm, Mapping):
            raise ConfigError(
                "an audit repeats the run many times with one language model, by rules or by chance; choose one of "
                "them and press Reset"
            )
        if not isinstance(llm, str):
            llm, typed = Capabilities.of(llm).name, llm
        known = {one.name for one in parameters_of(self.kind)} - set(NOT_OFFERED)
        parameters = {name: value for name, value in arguments.items() if name in known}
        fixed = ACCESS_OPTIONS & set(choice.parameters)
        limits = {name: choice.parameters[name] for name in sorted(fixed) if choice.parameters[name] is not None}
        apart = {*NOT_OFFERED, *parameters, *ACCESS_OPTIONS, "design"}
        options = {name: value for name, value in arguments.items() if name not in apart}
        design = arguments.get("design")
        written = design.to_json() if isinstance(design, AgentDesign) else {}
        return _Chosen(Setting(parameters, written, llm, options), limits, typed)

    def _offer(self, choice: RunSettings, steps: int) -> AuditOffer:
        """Plan everything, and run the model once by chance to see its measures."""
        if steps < 1:
            raise ConfigError(f"a run has 1 step or more, got {steps}")
        setting = self._chosen(choice).setting
        measures, decisions = _trial(self.kind, setting, steps)
        return AuditOffer(self.kind, setting, plan_for(self.kind, setting, steps=steps), measures, decisions)

    def _access(self, chosen: _Chosen, choice: RunSettings) -> Access:
        """Return the pages' common access, or one of the audit's own within the limits that were chosen."""
        if self.access is not None:
            return self.access
        limits = dict(chosen.limits)
        if choice.llm_kind not in WITHOUT_TEXT:
            limits["max_calls"] = min(self.max_calls(), limits.get("max_calls") or math.inf)
        if dollars := self.form.max_dollars or choice.max_dollars:
            limits["max_dollars"] = min(dollars, limits.get("max_dollars") or math.inf)
        return Access(**limits)

    @staticmethod
    def _opened(access: Access, chosen: _Chosen) -> Access:
        return access if chosen.typed is None else TypedEndpoint(access, chosen.setting.llm, chosen.typed)

    def _root(self) -> Path:
        """Return the folder of all audits; a temporary one if the page saves nothing."""
        if self.folder is not None:
            return self.folder / AUDITS
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="mesa-llm-audit-"))
            weakref.finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
        return self._temporary

    def _logs(self, setup: AuditSetup) -> Path:
        """Return the folder of the runs of a setting, which audits of all its measures share."""
        setting = setup.setting
        digest = setting_digest(
            [name_of(self.kind), dict(setting.parameters), setting.llm, dict(setting.design)],
            setting.options,
            setting.parameters,
        )
        return self._root() / f"{file_name(self.kind.__name__, suffix='')[:-1]}-{digest[:10]}"

    def _name(self, form: AuditForm, setup: AuditSetup) -> str:
        """Return the name of a report's folder, one for each measure, smallest effect, seeds, steps and dimensions."""
        claim = setup.claims[0]
        left_out = sorted(form.left_out & set(DIMENSIONS))
        chosen = [claim.measure, claim.smallest_effect, form.seeds, form.steps, left_out]
        digest = setting_digest(chosen, {}, {})
        return f"{file_name(claim.measure, suffix='')[:-1]}-{digest[:10]}"


def _trial(kind: type[LLMModel], setting: Setting, steps: int) -> tuple[tuple[str, ...], int]:
    """Run a model by chance; return its results that are numbers, and the decisions expected in one run."""
    design = AgentDesign.from_json({**setting.design, "llm": None})
    arguments = {**setting.parameters, **setting.options, "design": design}
    with closing(ListeningAccess()) as access, closing(kind(**arguments, llm="random", rng=1, access=access)) as model:
        model.run(min(steps, TRIAL_STEPS))
        n_steps, decisions = int(model.time), model.engine.decisions
        names = list(_numbers(model.results()))
        is_cut = model.running and n_steps < steps
    each = decisions / n_steps if is_cut and n_steps else 0
    return tuple(names[:MAX_MEASURES]), round(each * steps) if each else decisions


def _numbers(results: Mapping[str, Any]) -> list[str]:
    """Return the names of the results that are numbers, and of the numbers in those that are tables."""
    names: list[str] = []
    for name, value in results.items():
        if isinstance(value, Mapping):
            names += [f"{name}.{inner}" for inner, one in value.items() if _is_number(one)]
        elif _is_number(value):
            names.append(name)
    return names


def _is_number(value: Any) -> bool:
    with suppress(TypeError, ValueError, OverflowError):
        return not isinstance(value, str | bool | bytes) and math.isfinite(float(value))
    return False
