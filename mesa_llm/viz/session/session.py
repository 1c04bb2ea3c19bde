"""One visitor's session: a model built from their settings, and a runner that steps it."""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from mesa_llm.engine.access import Access
from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.experiments.runs.recordings import earlier_prompts
from mesa_llm.llm.human.queue import HumanLLM, HumanQueue
from mesa_llm.llm.protocol import LLM
from mesa_llm.model.identity import name_of
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.registry import require_listed
from mesa_llm.viz.render.markup import fault_text
from mesa_llm.viz.render.mesa_adapter import require_llm_model
from mesa_llm.viz.session.audit_runner import AuditRunner
from mesa_llm.viz.session.cost_estimate import CostEstimator
from mesa_llm.viz.session.interventions import InterventionRunner
from mesa_llm.viz.session.interviews import InterviewQueue
from mesa_llm.viz.session.run_settings import ModelFactory, RunSettings, accepts, offered_llms, transports_in
from mesa_llm.viz.session.runner import Runner
from mesa_llm.viz.session.runs import KeptRun, discard_if_empty, new_log
from mesa_llm.viz.session.rw_lock import steady
from mesa_llm.viz.session.trial import require_buildable

CHOICE_S = 0.4
"""Seconds after which a choice counts, so that a slider on its way does not build a model at each mark."""

WATCH_S = 1.0
"""Seconds between two steps of a recorded run that is played from its start."""


@dataclass(slots=True)
class PageVisit:
    """What remains of a visit to a page once it has ended.

    Attributes:
        log: Run log of the visit; None: the visit has not ended, or left no run log.
    """

    log: Path | None = None


class PageSession:
    """The session behind one open page.

    Attributes:
        recording: The recorded run on display; None: the run is live.
        cost_estimator: Estimates the cost of the first steps.
        target: Step of the recorded run on display, or on its way.
        llm_labels: Available language models → their labels.
        runner: Steps the model; None until a model has been built.
        queues: Queues of the model's questions to people.
        error: Why a model could not be built; empty if it could.
        built_from: Settings that the model was built from.
        visit: The visit to this page.
        auditor: Plans and runs audits; None: the page has no model class.
        previous: The browser's visit before this one, until another model is shown. It may end after this page opens.
    """

    def __init__(
        self,
        factory: ModelFactory,
        choice: RunSettings,
        folder: Path | None = None,
        recording: Recording | None = None,
        access: Access | None = None,
    ) -> None:
        """Build the first model.

        Args:
            factory: Builds models.
            choice: Settings of the run.
            folder: Folder for runs; None: they are not saved.
            recording: A recorded run to show instead; None: none.
            access: Common budget of the server's pages; None: each model has its own.
        """
        self.access = access
        self.seen_at = 0.0
        self.factory = factory
        self.llm_labels: Mapping[str, str] = offered_llms()
        self.folder = folder
        self.runner: Runner | None = None
        self.queues: list[HumanQueue] = []
        self.built_from = choice
        self.visit = PageVisit()
        self.previous = PageVisit()
        self.error = ""
        self._typed: WeakKeyDictionary[LLMModel, list[LLM]] = WeakKeyDictionary()
        self._wanted: tuple[RunSettings, float] | None = None
        self._choosing = threading.Lock()
        self.recording: Recording | None = None
        self.target = 0
        self.cost_estimator = CostEstimator()
        self.auditor = None if self._kind is None else AuditRunner(self._kind, folder, access)
        if recording is None:
            self.build(choice)
        else:
            self.view(recording)

    def build(self, choice: RunSettings, recorded: KeptRun | None = None) -> None:
        """Replace the model with a new one; if it cannot be built, keep the old one.

        Args:
            choice: Settings of the run.
            recorded: A run to resume; None: a new one.
        """
        self.error = ""
        typed: list[LLM] = []
        new_path: Path | None = None
        name = getattr(self.factory, "__name__", "this page's factory")
        try:
            if isinstance(self.factory, type):
                require_llm_model(self.factory, name)
            if recorded is not None:
                require_buildable(recorded.path, recorded.parameters, self._kind)
            arguments = self.arguments_of(choice)
            if recorded is not None:
                arguments["log"] = recorded.path
            elif self.folder is not None and accepts(self.factory, "log") and "log" not in arguments:
                arguments["log"] = new_path = new_log(self.folder, self.factory)
            typed = transports_in(arguments.get("llm"))
            model = self.factory(**arguments)
            require_llm_model(model, name)
            queues = human_queues(model)
        except Exception as fault:  # noqa: BLE001 - a model is anybody's code; the page tells what it raised
            self.error = fault_text("Building the model", fault, choice.hide)
        else:
            self.recording = None
            self._typed[model] = typed
            self.queues = queues
            self.show(model, choice)
            if recorded is None:
                self.cost_estimator.take(self.factory, arguments, choice)
            if recorded is not None and self.runner is not None and recorded.steps:
                self.runner.start(recorded.steps)  # replays the recorded steps
            return
        self._close_transports(typed)
        if new_path is not None:
            discard_if_empty(new_path)

    @property
    def is_untouched(self) -> bool:
        """Whether nothing has happened in the run yet that a new model would lose."""
        if self.runner is None:
            return self.recording is None
        model = self.runner.model
        is_new = not self.runner.busy and model.now == 1 and not model.usage.calls and not model.interventions.log
        return self.recording is None and is_new

    def want(self, choice: RunSettings) -> None:
        """Note what the visitor has chosen; before the first step it counts at once, else after Reset.

        Args:
            choice: Settings of the run.
        """
        self._wanted = choice, clock.monotonic()

    def catch_up(self) -> None:
        """Build the model that the visitor wants, if nothing has happened in the run yet."""
        if self._wanted is None or clock.monotonic() - self._wanted[1] < CHOICE_S:
            return
        (choice, _), self._wanted = self._wanted, None
        if choice.is_complete:
            self._apply(choice)

    def start(self, choice: RunSettings, steps: int | None = None) -> None:
        """Start stepping; before the first step, with the settings that the visitor has chosen.

        Args:
            choice: The chosen settings; a model that cannot be built from them makes no step.
            steps: Number of steps; None: until paused.
        """
        self._wanted = None
        if self._apply(choice) and self.runner is not None:
            self.runner.start(steps)

    def _apply(self, choice: RunSettings) -> bool:
        """Build the model of a choice if it still can count; return False if that failed."""
        with self._choosing:
            if not self.is_untouched or (choice == self.built_from and not self.error):
                return True
            self.build(choice)
            return not self.error

    def open(self, path: Path) -> None:
        """Show a run of the folder, if it imports nothing but parts of known models.

        Args:
            path: Its run log.
        """
        try:
            recording = Recording.read(path)
            require_listed(recording, self._kind)
        except MesaLLMError as error:
            self.error = str(error)
        else:
            self.view(recording)

    def view(self, recording: Recording) -> None:
        """Show a recorded run at its last step; if that fails, keep the current one.

        Args:
            recording: The run.
        """
        if self._open_at_start(recording):
            self.go_to(recording.last_step)

    def watch(self, recording: Recording) -> None:
        """Play a recorded run from its start; if that fails, keep the current one.

        Args:
            recording: The run.
        """
        if self._open_at_start(recording) and self.runner is not None:
            self.runner.pause_s = WATCH_S
            self.runner.start()

    def _open_at_start(self, recording: Recording) -> bool:
        """Show a recorded run before its first step; return whether that worked."""
        try:
            require_buildable(recording.file, recording.parameters, self._kind if self._is_own(recording) else None)
        except ConfigError as error:
            self.error = str(error)
            return False
        self.error = ""
        if not self._show_again(recording):
            return False
        self.recording = recording
        self.target = 0
        return True

    def go_to(self, step: int) -> None:
        """Show the recorded run as it was after a step.

        Args:
            step: The step; 0: the start.
        """
        recording, runner = self.recording, self.runner
        if recording is None or runner is None:
            return
        if (runner.busy or step < runner.model.time) and not self._show_again(recording):
            return
        self.target = step
        runner.start(step - int(runner.model.time), quietly=True)

    def _show_again(self, recording: Recording) -> bool:
        """Rebuild the model of a recorded run at its start; return whether that worked."""
        kind = self._kind if self._is_own(recording) else None
        try:
            in_place = bool(earlier_prompts(recording))
            model = recording.rebuilt(kind=kind, in_place=in_place, log=recording.file, replay=True)
        except MesaLLMError as error:
            self.error = str(error)
            return False
        self.queues = []
        self.show(model, self.built_from)
        if self.runner is not None:
            self.runner.last_step = recording.last_step
            self.runner.is_resumable = recording.file.parent == self.folder
        return True

    @property
    def _kind(self) -> type[LLMModel] | None:
        factory: object = self.factory
        return factory if isinstance(factory, type) and issubclass(factory, LLMModel) else None

    def _is_own(self, recording: Recording) -> bool:
        """Check whether a recorded run belongs to this page's model."""
        return self._kind is not None and name_of(self._kind) == recording.model

    def arguments_of(self, choice: RunSettings) -> dict[str, Any]:
        """Return the arguments for building a model.

        Args:
            choice: Settings of the run.

        Raises:
            ConfigError: If they do not fit the model.
        """
        return choice.arguments(self.factory, self.access)

    def show(self, model: LLMModel, choice: RunSettings) -> None:
        """Show a new model.

        Args:
            model: The model.
            choice: Settings that it was built from.
        """
        self.built_from = choice
        self.previous = PageVisit()
        if self.runner is None:
            self.runner = Runner(model, hide=choice.hide, on_closed=self._forget)
        else:
            self.runner.reset(model, choice.hide)
        InterventionRunner.of(model).access = self.access

    def _forget(self, model: LLMModel) -> None:
        """Clean up after a model: close its custom endpoint, and remove an empty run log."""
        self._close_transports(self._typed.pop(model, []))
        path = model.runlog.path
        if path is not None and path.parent == self.folder:
            discard_if_empty(path)

    def _close_transports(self, transports: list[LLM]) -> None:
        if self.access is not None:
            for transport in transports:
                self.access.forget(transport)

    @property
    def drawn(self) -> int:
        """Counter that changes with the model."""
        return 0 if self.runner is None else self.runner.drawn

    @property
    def state(self) -> tuple[object, ...]:
        """Everything that the text of a page depends on."""
        audits = 0 if self.auditor is None else self.auditor.version
        if self.runner is None:
            return self.error, self.previous.log
        questions = [question.question_id for queue in self.queues for question in queue.pending]
        model = self.runner.model
        queues = InterviewQueue.of(model).version, InterventionRunner.of(model).version
        return (
            self.error,
            self.previous.log,
            self.runner.pulse,
            questions,
            *queues,
            self.cost_estimator.version,
            audits,
        )

    def note_shown(self, drawn: int | None) -> None:
        """Note which drawing of the model a browser shows; None: no browser has the page open."""
        if self.runner is not None:
            self.runner.shown = drawn

    def still(self) -> AbstractContextManager[None]:
        """Hold the model still."""
        return nullcontext() if self.runner is None else steady(self.runner.model)

    @property
    def paid_log(self) -> Path | None:
        """The run log; None if there is none, or it holds no reply of a language model or a person."""
        return self.runner.model.runlog.path if self.runner is not None and self.runner.model.usage.calls else None

    def rest(self) -> None:
        """Pause the run, as nobody has the page open."""
        if self.runner is not None:
            self.runner.pause("Paused because this page was not open for a while. Press Play to continue.")
        if self.auditor is not None:
            self.auditor.stop("Stopped because this page was not open for a while.")

    def leave(self) -> None:
        """Close the model when its page is left, and note its run log."""
        if self.recording is None:
            self.visit.log = self.paid_log or self.previous.log
        self.close()

    def close(self) -> None:
        """Stop and close the model."""
        if self.auditor is not None:
            self.auditor.stop()
        if self.runner is not None:
            self.runner.close()


def human_queues(model: LLMModel) -> list[HumanQueue]:
    """Return the queues of a model's questions to people."""
    named_llms = list(model.llm.values()) if isinstance(model.llm, Mapping) else [model.llm]
    llms = [*named_llms, *(agent.llm for agent in llm_agents(model))]
    people = {id(llm): llm for llm in llms if isinstance(llm, HumanLLM)}
    return [person.desk for person in people.values()]
