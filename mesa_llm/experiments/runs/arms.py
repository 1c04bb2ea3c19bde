"""Study arms that share their seeds, their measures over time, and figures with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mesa_llm.agents.design import OWN_DESIGN
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.findings import Table, Value, comparison_cells, estimate_cells, require_measure
from mesa_llm.experiments.runs.experiment import Experiment
from mesa_llm.experiments.runs.run import Row, Run, series_of
from mesa_llm.experiments.runs.study import Arm, StudyFindings, StudySetup
from mesa_llm.model.identity import name_of
from mesa_llm.model.model import LLMModel
from mesa_llm.model.options import OPTIONS
from mesa_llm.statistics import Column, Comparison, Estimate, compare, correct, mean_estimate, mean_intervals
from mesa_llm.text import counted, figure_text

if TYPE_CHECKING:
    from mesa_llm.charts import Drawn

type FloatArray = npt.NDArray[np.float64]

type Results = Mapping[str, Any]
"""Results of a run after its last step, by name."""


@dataclass(frozen=True)
class Band:
    """A measure over the steps: mean over runs, with a 95 % interval."""

    mean: FloatArray
    """Mean by step, from step 0; NaN where no run has a value."""

    low: FloatArray
    """Lower end; NaN where a run has no value."""

    high: FloatArray
    """Upper end."""


type Bands = Mapping[str, Mapping[str, Band]]
"""Arm → measure → its values over the steps."""

type Draw = Callable[[str, Bands, int], Drawn]
"""Draws the figure from the name of a study, the bands of its arms, and the number of seeds."""


RULE_TWIN = "rule twin"
"""Name of the reference arm, in which the rule twins decide."""


@dataclass(frozen=True)
class Placebo:
    """An arm of the same language model with the cause taken away."""

    name: str
    """Name of the arm."""

    changes: Mapping[str, Any]
    """Parameters that take the cause away, beside those of the treated arm."""

    text: str
    """What agents see in place of the cause."""

    figures: tuple[str, ...]
    """Figures of the treated arm that are compared with the placebo's."""

    treatment: str
    """What the treated arms have and the placebo lacks."""

    def of(self, arm: str, arms: Mapping[str, Any]) -> str:
        """Return the name of the placebo of a treated arm: its own where there are several.

        Args:
            arm: The treated arm.
            arms: All treated arms.
        """
        return named_beside(arm, self.name, arms)

    def beside(self, arms: Mapping[str, Mapping[str, Any]], llm: object) -> dict[str, Mapping[str, Any]]:
        """Return the treated arms, their placebos, and their rule twins unless all agents are rule twins.

        Args:
            arms: Treated arm → its parameters.
            llm: Language model of the agents.
        """
        found = dict(arms) | {self.of(arm, arms): {**own, **self.changes} for arm, own in arms.items()}
        if llm != "rule":
            found |= {named_beside(arm, RULE_TWIN, arms): {**own, "llm": "rule"} for arm, own in arms.items()}
        return found

    def design(self, arms: Mapping[str, Any], setup: StudySetup) -> list[Arm]:
        """Return what each arm is, and who decides in it.

        Args:
            arms: The treated arms.
            setup: Settings of the runs.
        """
        llm, rule_text = setup.llm_text, f"{self.treatment}, and decide by rule"
        found = [Arm(arm, llm, "treated", self.treatment) for arm in arms]
        found += [Arm(self.of(arm, arms), llm, "placebo", self.text, arm) for arm in arms]
        if setup.llm != "rule":
            found += [Arm(named_beside(arm, RULE_TWIN, arms), "rule", "reference", rule_text) for arm in arms]
        return found


def named_beside(arm: str, name: str, arms: Mapping[str, Any]) -> str:
    """Return the name of an arm that stands beside a treated one, which it contains where there are several."""
    return name if len(arms) == 1 else f"{arm}, {name}"


@dataclass(frozen=True)
class ArmFindings(StudyFindings):
    """Results of a study whose arms run with the same seeds."""

    bands: Bands = field(default_factory=dict[str, Mapping[str, Band]])
    """Arm → measure → its values over the steps."""

    outcomes: Mapping[str, Estimate] = field(default_factory=dict[str, Estimate])
    """Name of a figure → mean over seeds, with a 95 % interval."""

    results: Mapping[str, Mapping[int, Results]] = field(default_factory=dict[str, Mapping[int, Results]])
    """Arm → seed → results of the run; empty where a study keeps none."""

    differences: Mapping[str, Comparison] = field(default_factory=dict[str, Comparison])
    """Name of a figure → treated arm less placebo, corrected (Holm); empty where a study has no placebo."""

    def arms(self, measure: str) -> Mapping[str, Mapping[int, float | None]]:
        """Return a result of the runs by arm and seed.

        Args:
            measure: Name of the result, a number.

        Raises:
            ConfigError: If there is no such result.
        """
        every = [results for by_seed in self.results.values() for results in by_seed.values()]
        known = [name for results in every for name, value in results.items() if isinstance(value, int | float)]
        require_measure(self.name, measure, list(dict.fromkeys(known)))
        return {
            arm: {seed: results.get(measure) for seed, results in by_seed.items()}
            for arm, by_seed in self.results.items()
        }


@dataclass(frozen=True)
class Arms:
    """A model that runs in several arms, each with the same seeds."""

    name: str
    """Name of the study, in one word."""

    question: str
    """The research question."""

    model: type[LLMModel]
    """Class of the model."""

    arms: Mapping[str, Mapping[str, Any]]
    """Name of a treated arm → its parameters and options, which override those of the setup."""

    steps: int
    """Number of steps of a run."""

    measures: tuple[str, ...]
    """Measures of the model to follow over the steps."""

    outcomes: Callable[[Mapping[str, Results]], Mapping[str, float]]
    """Computes the figures of one seed from the results of each arm."""

    draw: Draw | None = None
    """Draws the figure; None for no figure."""

    setting: Mapping[str, Any] | None = None
    """Parameters of all arms."""

    defaults: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Computes parameters of all arms from those of the setup, which override them; None for the model's own."""

    placebo: Placebo | None = None
    """Placebo of each treated arm; None where no arm makes a claim about a treatment."""

    def run(self, setup: StudySetup) -> ArmFindings:
        """Run each arm with each seed.

        Args:
            setup: Settings of the runs.

        Raises:
            ConfigError: If the study fixes one of the parameters.
            AllDecisionsFailed: If every decision of a run failed.
        """
        arms = dict(self.arms) if self.placebo is None else self.placebo.beside(self.arms, setup.llm)
        taken = set(() if self.placebo is None else self.placebo.changes)
        own = set(self.setting or ()) | taken | set.intersection(*map(set, self.arms.values())) - {"llm"}
        if fixed := own & set(setup.parameters):
            raise ConfigError(f"{', '.join(sorted(fixed))} cannot be set: the study {self.name} sets it")
        n_steps = self.steps if setup.steps is None else setup.steps
        usual = {} if self.defaults is None else self.defaults(setup.parameters)
        settings = {
            name: {**(self.setting or {}), **usual, **setup.parameters, **changes}
            for name, changes in self.runs_of(arms).items()
        }
        with closing(setup.experiment()) as experiment:
            made = run_arms(experiment, setup, self.name, self.model, settings, n_steps, self.measures)
            cost = experiment.cost()
        results = {arm: {run.seed: run.results_in(row) for run, row in runs} for arm, runs in made.items()}
        by_seed = [{arm: of_arm[seed] for arm, of_arm in results.items()} for seed in setup.seeds]
        courses = {
            arm: np.array([course_in(row, self.measures, n_steps) for _, row in runs]) for arm, runs in made.items()
        }
        bands = {arm: bands_of(course, self.measures) for arm, course in courses.items()}
        figures = [self.outcomes(of_seed) for of_seed in by_seed]
        found = arm_findings(self.name, self.question, setup, n_steps, cost, bands, estimates(figures), self.draw)
        differences = {} if self.placebo is None else self.against(self.placebo, figures, setup.smallest_effect)
        tables = [*found.tables]
        if self.placebo is not None:
            tables.append(difference_table(differences, self.placebo, setup.smallest_effect))
        design = [] if self.placebo is None else self.placebo.design(self.arms, setup)
        return replace(found, results=results, differences=differences, tables=tables, design=design)

    def runs_of(self, arms: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        """Return the runs of one seed by name, with their parameters: one for each arm.

        Args:
            arms: The arms.
        """
        return arms

    def against(
        self, placebo: Placebo, figures: Sequence[Mapping[str, float]], smallest_effect: float | None
    ) -> dict[str, Comparison]:
        """Compare the figures of the treated arms with those of their placebos, paired by seed.

        Args:
            placebo: The placebo.
            figures: Figures of each seed, by name.
            smallest_effect: Smallest difference of interest; None: nothing is absent.
        """
        pairs: dict[str, tuple[Column, Column]] = {}
        for arm in self.arms:
            other = placebo.of(arm, self.arms)
            for figure in placebo.figures:
                pairs[f"{arm}: {figure}"] = (
                    [one.get(f"{arm}: {figure}") for one in figures],
                    [one.get(f"{other}: {figure}") for one in figures],
                )
        return corrected(pairs, smallest_effect)


def corrected(pairs: Mapping[str, tuple[Column, Column]], smallest_effect: float | None) -> dict[str, Comparison]:
    """Compare treated arms with their placebos in several figures, with p corrected for all of them (Holm).

    Args:
        pairs: Name of a figure → its values in the treated arm and in the placebo, in the same order of units.
        smallest_effect: Smallest difference of interest; None: nothing is absent.

    Returns:
        Name of a figure → its comparison, without figures that no pair has.
    """
    compared = correct([compare(*both, margin=smallest_effect) for both in pairs.values()], "holm")
    return {name: one for name, one in zip(pairs, compared, strict=True) if one is not None}


def difference_table(
    differences: Mapping[str, Comparison], placebo: Placebo, smallest_effect: float | None, unit: str = "run"
) -> Table:
    """Return how much the treated arms differ from their placebos.

    Args:
        differences: Figure of a treated arm → its difference from the placebo.
        placebo: The placebo.
        smallest_effect: Smallest difference of interest; None: nothing is absent.
        unit: What is paired.
    """
    rows: list[dict[str, Value]] = [
        {"figure": name, **comparison_cells(one), "verdict": one.verdict} for name, one in differences.items()
    ]
    absent = (
        "Without a smallest effect of interest nothing is called absent."
        if smallest_effect is None
        else f"Absent: shown to be smaller than {figure_text(smallest_effect)} (two one-sided tests, not corrected)."
    )
    return Table(
        f"Against the placebo: {placebo.name}",
        rows,
        f"Treated arm less placebo with the same language model, in pairs of {unit}s, with 95 % intervals; p of the "
        f"paired t-test, corrected over {counted(len(rows), 'row')} (Holm). {absent}",
    )


def arm_findings(
    name: str,
    question: str,
    setup: StudySetup,
    steps: int,
    cost: Mapping[str, Any],
    bands: Bands,
    outcomes: Mapping[str, Estimate],
    draw: Draw | None = None,
) -> ArmFindings:
    """Assemble the results of the arms.

    Args:
        name: Name of the study.
        question: The research question.
        setup: Settings of the runs.
        steps: Number of steps of a run.
        cost: Cost of the runs, from `Experiment.cost`.
        bands: Arm → measure → its values over the steps.
        outcomes: Name of a figure → mean over seeds.
        draw: Draws the figure; None for no figure.
    """
    rows = [{"figure": figure, **estimate_cells(one), "runs": float(one.n)} for figure, one in outcomes.items()]
    setting = {"seeds": list(setup.seeds), "language model": setup.llm_text, "steps": steps, **setup.parameters}
    tables = [Table("Figures", rows, "Means over seeds, with 95 % intervals.")]
    drawn = None if draw is None else partial(draw, name, bands, len(setup.seeds))
    return ArmFindings(name, question, setting, cost, tables, drawn, bands=bands, outcomes=outcomes)


# -- runs


def run_arms(
    experiment: Experiment,
    setup: StudySetup,
    study: str,
    model: type[LLMModel],
    arms: Mapping[str, Mapping[str, Any]],
    steps: int,
    series: Sequence[str] = (),
    run: type[Run] = Run,
) -> dict[str, list[tuple[Run, Row]]]:
    """Run each arm of a study with each seed.

    Args:
        experiment: Makes the runs.
        setup: Settings of the runs.
        study: Name of the study.
        model: Class of the model.
        arms: Name of an arm → its parameters and options, which may name a language model as `llm`.
        steps: Number of steps of a run.
        series: Measures to follow over the steps.
        run: Class of the runs.

    Returns:
        Arm → its runs with their rows, in the order of the seeds.
    """
    runs = [
        run(
            name_of(model),
            {name: value for name, value in own.items() if name != "llm" and name not in OPTIONS},
            own.get("llm", setup.llm),
            OWN_DESIGN,
            {},
            seed,
            steps,
            experiment.place,
            {**setup.options, **{name: value for name, value in own.items() if name in OPTIONS}},
            tuple(series),
            name="-".join([study, *arm.replace(",", "").split(), str(seed)]),
            may_be_light=setup.folder is None and own.get("llm", setup.llm) == "rule",
        )
        for seed in setup.seeds
        for arm, own in arms.items()
    ]
    pairs = list(zip(runs, experiment.make(study, runs), strict=True))
    return {arm: pairs[index :: len(arms)] for index, arm in enumerate(arms)}


# -- figures


def course(model: LLMModel, measures: Sequence[str], steps: int) -> FloatArray:
    """Return measures of a run over the steps, shape `(measures, steps + 1)`; NaN for missing values.

    Args:
        model: A model that has run.
        measures: Names of measures from its data collector.
        steps: Number of steps.
    """
    return course_in({"series": series_of(model, measures)}, measures, steps)


def course_in(row: Row, measures: Sequence[str], steps: int) -> FloatArray:
    """Return measures of a run over the steps by its row, as `course` does."""
    table = np.full((len(measures), steps + 1), np.nan)
    for index, name in enumerate(measures):
        for step, value in row["series"][name].items():
            if value is not None and int(step) <= steps:
                table[index, int(step)] = value
    return table


def bands_of(runs: FloatArray, measures: Sequence[str]) -> dict[str, Band]:
    """Average measures over runs, step by step.

    Args:
        runs: Courses, shape `(runs, measures, steps + 1)`.
        measures: Names of the measures.
    """
    return {name: Band(*mean_intervals(runs[:, row])) for row, name in enumerate(measures)}


def line_of(values: FloatArray) -> Band:
    """Return a single curve as a band of zero width.

    Args:
        values: Values by step or minute.
    """
    return Band(values, values, values)


def estimates(figures: Sequence[Mapping[str, float]]) -> dict[str, Estimate]:
    """Average the figures of several seeds, with intervals.

    Args:
        figures: Figures of each seed, by name.
    """
    names = dict.fromkeys(name for one in figures for name in one)
    found = {name: mean_estimate([one.get(name) for one in figures]) for name in names}
    return {name: one or Estimate(np.nan, None, None, 0) for name, one in found.items()}
