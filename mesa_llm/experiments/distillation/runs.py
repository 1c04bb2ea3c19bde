"""Distils recorded runs."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.distillation.fitting import Sample, fitted_to
from mesa_llm.experiments.distillation.held_out import held_out_by
from mesa_llm.experiments.distillation.recorded import RecordedChoice, RecordedChoices
from mesa_llm.experiments.runs.recordings import recorded_run
from mesa_llm.llm.surrogate.file import RecordingSource, Surrogate
from mesa_llm.model.recording import Recording
from mesa_llm.text import counted

MIN_DECISIONS = 20
"""Minimum number of decisions of one kind that are fitted."""


def distill(
    recordings: Iterable[str | Path | Recording] | str | Path | Recording,
    *,
    llm: str | None = None,
    without: Collection[str] = (),
) -> Surrogate:
    """Fit a choice model to the decisions of recorded runs.

    Every decision is held out once, with all others of its run, and predicted by a model that was fitted to the other
    runs; `Surrogate.held_out` holds how well, with an interval over runs from four on. Of a single run, or where each
    run holds what no other does (a persona of its own), it is held out with all others of its agent (with fewer than
    `N_FOLDS` agents, of its step): how well new runs are predicted is then not known. The model that is returned is
    fitted to all decisions.

    Args:
        recordings: Run logs, or names of recorded runs (`boltzmann_wealth/coins`); they are replayed offline, which
            imports their models.
        llm: Name of the language model whose decisions are fitted, as the logs have it; None: there is only one.
        without: Names of facts that are not used, and may later take any value.

    Returns:
        The choice model; its `write` makes the file of a surrogate.

    Raises:
        ConfigError: If a run cannot be replayed, several language models decided, decisions are too few, or
            observations have no facts.

    Source:
        McFadden (1974), Conditional Logit Analysis of Qualitative Choice Behavior; Meinshausen (2006), Quantile
        Regression Forests, JMLR 7.
    """
    several = [recordings] if isinstance(recordings, str | Path | Recording) else list(recordings)
    runs = [one if isinstance(one, Recording) else Recording.read(_file_of(one)) for one in several]
    recorded = RecordedChoices(llm)
    for index, run in enumerate(runs):
        recorded.replay(run, index)
    choices = recorded.choices
    deciders = sorted({choice.llm for choice in choices})
    if len(deciders) > 1:
        raise ConfigError(f"decisions are by {', '.join(deciders)}; a surrogate is of one: give llm= (--llm) its name")
    by_label: dict[str, list[RecordedChoice]] = {}
    for choice in choices:
        by_label.setdefault(choice.label, []).append(choice)
    large = {label: rows for label, rows in by_label.items() if len(rows) >= MIN_DECISIONS}
    if not large:
        wanted = f"; at least {MIN_DECISIONS} of one kind are needed"
        who = "of a language model" if llm is None else f"of {llm}"
        raise ConfigError(f"{counted(len(choices), 'decision')} {who} in {counted(len(runs), 'recording')}{wanted}")
    for label, rows in large.items():
        _require_facts(label, rows)
    with threadpool_limits(1):  # the matrices are small, and threads would only wait for each other
        fitted = [fitted_to(label, Sample(rows, without)) for label, rows in sorted(large.items())]
        held_out = held_out_by(large, without)
    sources = [
        RecordingSource(name=run.file.name, sha256=hashlib.sha256(run.file.read_bytes()).hexdigest(), model=run.model)
        for run in runs
    ]
    return Surrogate(
        of=deciders,
        recordings=sources,
        fitted=fitted,
        n_failed=recorded.n_failed,
        n_several=recorded.n_several,
        too_few={label: len(rows) for label, rows in by_label.items() if label not in large},
        held_out=held_out,
    )


def _file_of(name: str | Path) -> Path:
    """Return the run log that a path, or the name of a recorded run, stands for."""
    path = Path(name)
    return path if path.exists() or isinstance(name, Path) else recorded_run(name).file


def _require_facts(label: str, rows: Sequence[RecordedChoice]) -> None:
    """Check that agents saw anything as values.

    Raises:
        ConfigError: If they did not.
    """
    names = {name for row in rows for name in row.facts}
    about_the_agent = all(name == "persona" or name.startswith("traits.") for name in names)
    if about_the_agent and len({canonical_json(row.facts) for row in rows}) == 1:
        question = f" labelled {label!r}" if label else ""
        raise ConfigError(
            f"the observations{question} have no facts as values, only text, so there is nothing to fit decisions to; "
            "let the model's observe() return Observation(text, facts={'coins': 3, …}): numbers, categories, or a "
            "dataclass of them. Recordings stay valid, as prompts do not change"
        )
