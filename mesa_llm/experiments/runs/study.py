"""Studies: research questions about models, each answered by one command (`mesa-llm study oasis herd`).

A package declares its studies as `STUDIES` in a module `studies`. The command line needs nothing else to find them:

    def study_herd(setup: StudySetup, *, groups: Annotated[int, Field(ge=2)] = 3) -> Findings:
        \"\"\"Run the model with each seed, and compare the groups.

        Args:
            setup: Settings of the runs.
            groups: Number of groups.
        \"\"\"


    STUDIES = (Study("herd", "Do people follow the votes they see?", HerdModel, study_herd),)

The function's keyword-only parameters are options of this study. `--set` accepts them and the parameters of the model.
"""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import docstring_parser

from mesa_llm.engine.access import Access
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.findings import Findings, Table
from mesa_llm.experiments.runs.experiment import Experiment
from mesa_llm.experiments.runs.power import power_text
from mesa_llm.experiments.runs.runner import through
from mesa_llm.llm.address import written_llm
from mesa_llm.llm.budget import SharedBudget
from mesa_llm.llm.shared_budget import BUDGET
from mesa_llm.model.cost_estimate import Cost, CountingAccess
from mesa_llm.model.model import LLMModel
from mesa_llm.model.quality import Quality, quality_texts, quality_warning
from mesa_llm.model.scenario import Parameter
from mesa_llm.registry import find_parts, same_name
from mesa_llm.text import counted, suggestion

if TYPE_CHECKING:
    from mesa_llm.charts import Drawn

N_SEEDS = 20
"""Default number of seeds of a study."""


@dataclass(frozen=True)
class StudySetup:
    """Settings of the runs of a study."""

    seeds: Sequence[int]
    """Seeds; each runs once in each arm."""

    folder: Path | None = None
    """Folder of the run logs, which are resumed if they exist; None to keep nothing."""

    llm: str | Mapping[str, str] = "rule"
    """Language model of the agents, or `rule`; or several by agent, as `llm=` of a model takes them."""

    workers: int = 1
    """Number of concurrent runs."""

    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Parameters of the study's model, which override the study's own."""

    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of all models."""

    access: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Endpoints and limits shared by all runs, see `Access`."""

    purse: SharedBudget | None = None
    """Budget shared by all runs of the study; None for no limit."""

    steps: int | None = None
    """Number of steps of a run; None for the study's own."""

    smallest_effect: float | None = None
    """Smallest difference of interest, in the unit of the figures: smaller ones are absent; None: nothing is."""

    def __post_init__(self) -> None:
        """Check the smallest effect.

        Raises:
            ConfigError: If it is not above 0.
        """
        if self.smallest_effect is not None and not 0 < self.smallest_effect < math.inf:
            raise ConfigError(
                f"smallest_effect={self.smallest_effect}: wanted a number above 0, in the unit of the study's figures"
            )

    @property
    def llm_text(self) -> str:
        """Names of the language models, for tables."""
        return written_llm(self.llm)

    @property
    def limits(self) -> dict[str, Any]:
        """Endpoints, limits and budget, as accepted by `run_jobs`."""
        return {**self.access, "purse": self.purse}

    def experiment(self) -> Experiment:
        """Return what makes the runs, in the folder of the study."""
        how = {"llm": self.llm, "seeds": self.seeds, "steps": None, "options": self.options}
        return Experiment(self.folder, {**self.limits, "workers": self.workers}, how)


@dataclass(frozen=True)
class Study:
    """A research question, and the function that runs the experiment."""

    name: str
    """Name, in one word."""

    question: str
    """The question, in one sentence."""

    model: type[LLMModel]
    """Model whose parameters `--set` changes."""

    run: Callable[..., StudyFindings]
    """Runs the study. Takes a `StudySetup`, and the options of this study by keyword."""

    n_seeds: int = N_SEEDS
    """Default number of seeds."""

    placebo: str = ""
    """Placebo of its language models, or why it has none."""

    unit: str = "run"
    """What is compared, in the singular: runs, or what `option` counts in each of them."""

    unit_option: str = ""
    """Option of the study, or parameter, with the number of units in a run; empty for one."""

    @property
    def options(self) -> tuple[Parameter, ...]:
        """Options of this study: the keyword-only parameters of `run`."""
        hints = typing.get_type_hints(self.run, include_extras=True)
        meanings = {
            one.arg_name: one.description for one in docstring_parser.parse(inspect.getdoc(self.run) or "").params
        }
        return tuple(
            Parameter(name, hints[name], one.default, " ".join((meanings.get(name) or "").split()))
            for name, one in inspect.signature(self.run).parameters.items()
            if one.kind is inspect.Parameter.KEYWORD_ONLY
        )


def study(
    package: str,
    name: str,
    *,
    llm: str | Mapping[str, str] = "rule",
    seeds: int | Sequence[int] | None = None,
    out: str | Path | None = None,
    steps: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    workers: int = 1,
    options: Mapping[str, Any] | None = None,
    smallest_effect: float | None = None,
    **access: Any,
) -> Findings:
    """Run a study of a package: a question, the runs that answer it, and figures with intervals.

        study("oasis", "herd", seeds=20).table

    Args:
        package: Name of the package of models.
        name: Name of the study.
        llm: Language model of the agents, or several by agent.
        seeds: The seeds, or their number, counting from 1; None for the study's own number.
        out: Folder of the run logs, which are resumed if they exist; None to keep nothing.
        steps: Number of steps of a run; None for the study's own.
        parameters: Parameters of the model, and options of the study, by name.
        workers: Number of concurrent runs.
        options: Options of all models.
        smallest_effect: Smallest difference from a placebo of interest, in the unit of the figures: what is shown to be
            smaller is absent.
        **access: Endpoints, limits and budget shared by all runs, see `Access`.

    Raises:
        ConfigError: If there is no such study, or an option is invalid.
        MesaLLMError: If a run failed.
    """
    chosen = find_study(package, name)
    n_seeds = chosen.n_seeds if seeds is None else seeds
    given, own_names = dict(parameters or {}), [one.name for one in chosen.options]
    own = {one: given.pop(one) for one in own_names if one in given}
    limits = {one: access.pop(one, None) for one in BUDGET}
    purse = access.pop("purse", None) or (SharedBudget(*limits.values()) if any(limits.values()) else None)
    setup = StudySetup(
        range(1, n_seeds + 1) if isinstance(n_seeds, int) else n_seeds,
        folder=None if out is None else Path(out),
        llm=llm,
        workers=workers,
        parameters=given,
        options=options or {},
        access=access,
        purse=purse,
        steps=steps,
        smallest_effect=smallest_effect,
    )
    return chosen.run(setup, **own)


def estimate_study(study: Study, setup: StudySetup, **own: Any) -> tuple[Cost, list[str]]:
    """Estimate the cost of a study without sending a request or touching its folder.

    Its runs of the first seed are made with random replies, and the others are assumed to cost the same.

    Args:
        study: The study.
        setup: Settings of the runs.
        **own: Options of the study.

    Returns:
        Total cost of its runs; and names of the language models without a known price.

    Raises:
        ConfigError: If a parameter is invalid, or a provider is unknown.
    """
    counting = CountingAccess(Access(**setup.access))
    with closing(counting), through(counting):
        study.run(replace(setup, seeds=setup.seeds[:1], folder=None, purse=None, workers=1), **own)
    one = sum(counting.costs.values(), Cost())
    return sum([one] * len(setup.seeds), Cost()), list(counting.unpriced)


def power_of(study: Study, setup: StudySetup, **own: Any) -> str:
    """Say how large a difference the seeds of a study can find, and what its placebo is.

    Args:
        study: The study.
        setup: Settings of the runs.
        **own: Options of the study.
    """
    default = next((one.default for one in study.options if one.name == study.unit_option), 1)
    n = len(setup.seeds) * int(own.get(study.unit_option, setup.parameters.get(study.unit_option, default)) or 1)
    text = power_text(n, f"pair of {study.unit}s", f"pairs of {study.unit}s")
    return f"{text} Placebo: {study.placebo}." if study.placebo else text


def find_studies(package: str | None = None) -> tuple[dict[str, dict[str, Study]], dict[str, str]]:
    """Find the studies of one package of models, or of all.

    Args:
        package: Name of the package; None for all.

    Returns:
        Name of a package → its studies by name; and name of a package → the reason its studies cannot be used.
    """
    found, broken = find_parts("studies", tuple, package or "")
    return {name: {one.name: one for one in studies} for name, studies in found.items()}, broken


def find_study(package: str, name: str) -> Study:
    """Find a study by package and name.

    Raises:
        ConfigError: If there is none. The message lists the existing ones.
    """
    studies = studies_of(package)
    for key, study in studies.items():
        if same_name(name, key):
            return study
    raise ConfigError(f"{package} has no study {name!r}; it has {', '.join(studies)}{suggestion(name, studies)}")


def studies_of(package: str) -> dict[str, Study]:
    """Find the studies of a package by its name.

    Raises:
        ConfigError: If it has none, or they cannot be imported.
    """
    found, broken = find_studies(package)
    for name, fault in broken.items():
        raise ConfigError(f"the studies of {name!r} cannot be used: {fault}")
    if not found:
        names = sorted(find_studies()[0])
        raise ConfigError(f"{package!r} has no studies; {', '.join(names)} have some{suggestion(package, names)}")
    return next(iter(found.values()))


# -- results


@dataclass(frozen=True)
class Arm:
    """One of the settings that a study compares."""

    name: str
    """Name of the arm."""

    llm: str
    """Language model of its agents, or `rule`."""

    kind: Literal["treated", "placebo", "reference"]
    """A placebo is decided by the same language model with the cause taken away; a reference by rule twins."""

    text: str
    """What is done in it, or taken away."""

    placebo_of: str = ""
    """Name of the treated arm that a placebo is compared with."""


@dataclass(frozen=True)
class StudyFindings(Findings):
    """Results of a study."""

    study: str
    """Name of the study."""

    question: str
    """The research question."""

    setting: Mapping[str, Any]
    """Seeds, language models and parameters."""

    cost: Mapping[str, Any]
    """Runs, decisions, calls, tokens, dollars and seconds."""

    tables: Sequence[Table]
    """Its tables, the main one first."""

    draw: Callable[[], Drawn] | None = None
    """Draws its figure; None for no figure."""

    caveat: str = ""
    """Limits of the figures."""

    design: Sequence[Arm] = ()
    """Arms of the study; empty where it has no treatment."""

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.study

    @property
    def title(self) -> str:
        """The research question."""
        return f"{self.study}: {self.question}"

    @property
    def lead(self) -> list[str]:
        """Setting and cost, data quality, limits."""
        return list(filter(None, [self.setting_text, self.quality_text, self.caveat]))

    def parts(self) -> Sequence[Table]:
        """Return its tables, and what each arm is."""
        if not self.design:
            return self.tables
        rows = [
            {"arm": arm.name, "language model": arm.llm, "kind": arm.kind, "what it is": arm.text}
            for arm in self.design
        ]
        return [*self.tables, Table("Arms", rows)]

    def charts(self) -> list[Drawn]:
        """Return its chart, if it has one."""
        return [] if self.draw is None else [self.draw()]

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {"study": self.study, "setting": dict(self.setting), **self.cost, "tables": super().to_json()}

    @property
    def setting_text(self) -> str:
        """The setting and the cost, on one line."""
        chosen = "; ".join(f"{name}: {_setting_text(value)}" for name, value in self.setting.items())
        cost = self.cost
        return (
            f"{chosen}. {counted(cost['runs'], 'run')}, {cost['decisions']} decisions, {cost['failures']} failed; "
            f"{cost['calls']} calls, {cost['tokens']} tokens, ${cost['dollars']:.4f}."
        )

    @property
    def quality_text(self) -> str:
        """What did not come as asked, beside the results; empty if nothing is counted."""
        quality: Quality = self.cost.get("quality", {})
        texts = quality_texts({name: rate for name, rate in quality.items() if name != "failed"})
        beside = f"Beside the results: {'; '.join(texts)}." if texts else ""
        return " ".join(filter(None, (beside, quality_warning(quality))))


def _setting_text(value: Any) -> str:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return str(value)
    are_whole = len(value) > 2 and all(type(one) is int for one in value)
    if are_whole and list(value) == list(range(value[0], value[-1] + 1)):
        return f"{value[0]} to {value[-1]}"
    return ", ".join(map(str, value))
