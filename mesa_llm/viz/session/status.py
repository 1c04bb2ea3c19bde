"""Text about the status of a run."""

from __future__ import annotations

from mesa_llm.llm.local.weights import download_status
from mesa_llm.model.model import LLMModel
from mesa_llm.model.quality import judge_text
from mesa_llm.model.recording import Recording
from mesa_llm.text import counted
from mesa_llm.viz.session.runner import Runner
from mesa_llm.viz.session.runs import KeptRun


def reset_warning(model: LLMModel) -> str:
    """Describe the run that Reset would discard, and where to find it later.

    Args:
        model: A model that holds replies of language models or people.
    """
    usage, path = model.usage, model.runlog.path
    cost = f" for ${usage.dollars:,.4f}" if usage.dollars else ""
    note = (
        "It has not been saved." if path is None else f"It is saved: you can reopen it on the Data tab ({path.name})."
    )
    replies = f"{usage.calls:,} {'reply' if usage.calls == 1 else 'replies'}"
    return f"This run has {replies} from language models or people{cost}. {note}"


def progress(runner: Runner) -> float | bool:
    """Return the progress of the current step in percent; True if unknown."""
    n_due = due(runner.model)
    return min(100.0, 100.0 * runner.decided / n_due) if n_due else True


def done(model: LLMModel) -> int:
    """Return the number of finished steps; Mesa's own time moves on when a step begins."""
    return model.now - 1


def due(model: LLMModel) -> int:
    """Return the number of agents that decide in the current stage."""
    return len(model.due)


def status(runner: Runner) -> str:
    """Describe what a run is doing; a run that begins or ends meanwhile is described anew.

    Args:
        runner: Its runner.
    """
    while True:
        version, text = runner.version, _status(runner)
        if runner.version == version:
            return text


def _status(runner: Runner) -> str:
    if not runner.busy:
        return runner.note or ended(runner.model, runner.n_failed)
    if runner.stopping:
        return "Stopping …"
    pulse, n_due = runner.pulse, due(runner.model)
    if pulse.seconds is None:
        return "Playing …"
    text = f"Step {runner.model.now}"
    if n_due:
        text += f": {min(pulse.decided, n_due)} of {n_due} decided"
    text += f", {pulse.seconds} s" if pulse.seconds else " …"
    if download := download_status():
        text += f" ({download})"
    return f"{text}, then pausing." if runner.finishing else text


def ended(model: LLMModel, n_failed: int) -> str:
    """Describe how the last step went, and whether the judges, if there are any, were checked against people.

    Args:
        model: A model between two steps.
        n_failed: Number of failed decisions in that step.
    """
    if not done(model):
        return "Ready."
    failed = f", but {counted(n_failed, 'decision')} failed; see the Agents tab" if n_failed else ""
    judged = f" {text[:1].upper()}{text[1:]}." if (text := judge_text(model)) else ""
    return f"Step {done(model)} finished{failed}.{judged}"


def playback_status(runner: Runner, step: int, last: int) -> str:
    """Describe what playback is doing.

    Args:
        runner: Its runner.
        step: The step on display.
        last: The last recorded step.
    """
    if runner.playing:
        return f"Playing, step {step} of {last} …"
    if runner.busy:
        return f"Replaying, step {step} …"
    return "Drag the slider to any step." if last and not runner.error else ""


def description_of(recording: Recording) -> str:
    """Describe when a run was recorded, and with which language model.

    Args:
        recording: The run.
    """
    run = KeptRun.read(recording.file)
    return recording.file.name if run is None else f"{recording.file.name}: {run.description}"
