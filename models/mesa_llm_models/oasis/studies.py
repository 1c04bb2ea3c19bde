"""The studies of OASIS, each one command: `python -m mesa_llm_models.oasis.studies herd --seeds 30 --json`."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mesa_llm import ConfigError
from mesa_llm.benchmark.scores import bootstrap
from mesa_llm.cli.command import exits, say, warn
from mesa_llm.cli.options import ApiBase, AsJson, MaxCallsOfAll
from mesa_llm.engine.access import Access
from mesa_llm.records import Usage
from mesa_llm.statistics import Estimate
from mesa_llm.worlds.social.curves import SpreadCurves, read_curves
from mesa_llm_models.oasis.ablations import ARMS, AblationModel
from mesa_llm_models.oasis.herd import GROUPS, HerdModel
from mesa_llm_models.oasis.polarisation import PolarisationModel
from mesa_llm_models.oasis.rumours import TOPICS, RumourModel
from mesa_llm_models.oasis.spreading import (
    CURVE_TOPIC,
    FITTED,
    MINUTES,
    QUANTITIES,
    SpreadingModel,
    Topic,
    baseline_curves,
    held_out_predictions,
    nrmse,
    read_topics,
    split_topics,
    twin_prediction,
)
from mesa_llm_models.oasis.study import Band, Findings, Results, Study, estimates, line_of, log_option, run_model
from mesa_llm_models.social.model import SocialModel

N_SEEDS = 30
"""Number of seeds of a study."""


CURVES = ("scale", "depth", "max_breadth")
"""The three curves of a spreading post."""


@dataclass(frozen=True)
class SpreadingStudy:
    """Spread of a post by the frozen twin, compared with real posts if OASIS's files are available."""

    name: str = "spreading"
    """Name, in one word."""

    model: type[SocialModel] = SpreadingModel
    """Class of the model."""

    steps: int = MINUTES - 1
    """Number of steps of a run, of one minute each."""

    measures: tuple[str, ...] = CURVES
    """Curves over the minutes."""

    def run(
        self,
        seeds: Sequence[int],
        steps: int | None = None,
        log: Path | None = None,
        data: Path | None = None,
        **parameters: Any,
    ) -> Findings:
        """Run the twin with each seed on a generated population, and on the people of the topic with a real curve.

        Args:
            seeds: The seeds.
            steps: Number of steps of a run; None: those of 149 minutes, so that minutes 0 to 149 are compared.
            log: Folder of the run logs, which are continued if they exist; None: no recording.
            data: Folder with OASIS's files; None: no comparison.
            **parameters: Parameters and options of the model.
        """
        start, usage = time.perf_counter(), Usage()
        step_minutes = parameters.get("step_minutes", 1.0)
        n_steps = math.ceil(self.steps / step_minutes) if steps is None else steps
        n_minutes = 1 + (self.steps if steps is None else math.ceil(n_steps * step_minutes))  # with minute 0
        arms: dict[str, dict[str, Any]] = {"twin": {}}
        if data is not None:
            arms["twin, real follows"] = {"users": str(data / f"{CURVE_TOPIC}.csv")}
        runs: dict[str, list[SpreadCurves]] = {arm: [] for arm in arms}
        for arm, own in arms.items():
            for seed in seeds:
                options = {**parameters, **own, **log_option(log, self.name, arm, seed), "rng": seed}
                with closing(SpreadingModel(**options)) as model:
                    usage += run_model(model, n_steps)
                    runs[arm].append(model.curves().until(n_minutes))
        lasts = [{f"{name} at the end": float(getattr(one, name)[-1]) for name in CURVES} for one in runs["twin"]]
        outcomes, lines = estimates(lasts), dict[str, SpreadCurves]()
        if data is not None:
            training, held_out = split_topics(read_topics(data / "all_topics.csv"))
            real = read_curves(data / f"{CURVE_TOPIC}_real_propagation.json").until(n_minutes)
            lines = baseline_curves(real, parameters.get("n_agents", 111))
            outcomes |= curve_errors({**runs, **{name: [one] for name, one in lines.items()}}, real)
            outcomes |= held_out_errors(training, held_out, seeds)
            lines = {"real": real, **lines}
        bands = {name: curve_bands(name, runs, lines) for name in CURVES}
        return Findings(self.name, tuple(seeds), n_steps, bands, outcomes, time.perf_counter() - start, usage)


def curve_bands(
    name: str, runs: Mapping[str, Sequence[SpreadCurves]], lines: Mapping[str, SpreadCurves]
) -> dict[str, Band]:
    """Return one of the three curves, with the arms as bands and the others as lines.

    Args:
        name: `scale`, `depth` or `max_breadth`.
        runs: Arm → curves of its runs.
        lines: Name → curves of a single line.
    """
    bands = {arm: Band(*bootstrap(np.array([getattr(one, name) for one in own]))) for arm, own in runs.items()}
    return bands | {line: line_of(getattr(curves, name)) for line, curves in lines.items()}


def curve_errors(runs: Mapping[str, Sequence[SpreadCurves]], real: SpreadCurves) -> dict[str, Estimate]:
    """Compute the errors of all runs and baselines against a real curve, in the form of the paper and of the code.

    Args:
        runs: Predictor → its curves, one a seed.
        real: The real curves.
    """
    errors: dict[str, Estimate] = {}
    for name in CURVES:
        for form in ("paper", "code"):
            for who, curves in runs.items():
                key = f"NRMSE of {name} ({form}), {who}"
                errors |= estimates([{key: nrmse(getattr(one, name), getattr(real, name), form)} for one in curves])
    return errors


def held_out_errors(training: Sequence[Topic], held_out: Sequence[Topic], seeds: Sequence[int]) -> dict[str, Estimate]:
    """Compute the errors on held-out topics, with bootstrap intervals over topics.

    For times, the mean absolute difference of logarithms (0.69: wrong by a factor of two); for depths, the mean
    absolute difference.

    Args:
        training: The topics of the fit.
        held_out: The others; topics without times are left out.
        seeds: Seeds of the twin; its prediction is their mean.
    """
    rows: list[dict[str, float]] = []
    for index, topic in enumerate(held_out):
        if not np.isfinite(topic.median_minutes):
            continue
        runs = [twin_prediction(FITTED, topic, 1_000 * seed + index) for seed in seeds]
        twin = {name: float(np.mean([run[name] for run in runs])) for name in QUANTITIES}
        row: dict[str, float] = {}
        for who, predicted in {"twin": twin, **held_out_predictions(topic, training)}.items():
            for name in QUANTITIES:
                value, real = predicted[name], getattr(topic, name)
                error = abs(value - real) if name == "depth" else abs(np.log(max(value, 0.1) / real))
                row[f"held out: {name.replace('_', ' ')}, {who}"] = float(error)
        rows.append(row)
    return estimates(rows)


def herd_outcomes(arms: Mapping[str, Results]) -> dict[str, float]:
    """Compute the effect of a first vote on later votes.

    A group's mean score less its first vote, less the mean score of the control group.
    """
    figures: dict[str, float] = {}
    for arm, results in arms.items():
        scores = {group: _known(results[f"score_{group}"]) for group in GROUPS}
        for group, first_vote in GROUPS.items():
            figures[f"{arm}: score, {group}"] = scores[group]
            if first_vote:
                figures[f"{arm}: effect, {group}"] = scores[group] - first_vote - scores["control"]
    return figures


def counterfactual_outcomes(arms: Mapping[str, Results]) -> dict[str, float]:
    """Compute the excess disagreement of comments on posts with a first vote over those on others."""
    figures: dict[str, float] = {}
    for arm, results in arms.items():
        scores = {group: _known(results[f"disagree_{group}"]) for group in GROUPS}
        figures |= {f"{arm}: disagree score, {group}": score for group, score in scores.items()}
        figures |= {
            f"{arm}: effect, {group}": scores[group] - scores["control"] for group, vote in GROUPS.items() if vote
        }
    return figures


def _known(figure: float | None) -> float:
    return math.nan if figure is None else figure


BLIND = {"herding": 0.0, "llm": "rule"}
"""The control of a herd study: rule twins that vote whatever the score."""

HERD = Study(
    "herd",
    HerdModel,
    {"herding": {}, "blind": BLIND},
    40,
    tuple(f"score_{group}" for group in GROUPS),
    herd_outcomes,
)

COUNTERFACTUAL = Study(
    "counterfactual",
    HerdModel,
    {"herding": {}, "blind": BLIND},
    30,
    tuple(f"disagree_{group}" for group in GROUPS),
    counterfactual_outcomes,
    {"preset": "counterfactual_herd"},
)


def polarisation_outcomes(arms: Mapping[str, Results]) -> dict[str, float]:
    """Return the share of answers that became more extreme, their leaning and their helpfulness, by arm."""
    names = ("more_extreme", "less_extreme", "neutral", "leaning", "helpfulness")
    return {
        f"{arm}: {name.replace('_', ' ')}": _known(results[name]) for arm, results in arms.items() for name in names
    }


def rumour_outcomes(arms: Mapping[str, Results]) -> dict[str, float]:
    """Compute the excess of posts on rumours over those on truths, over all topics and for each."""
    figures: dict[str, float] = {}
    for arm, results in arms.items():
        figures[f"{arm}: posts on truths"] = results["truths"]
        figures[f"{arm}: posts on rumours"] = results["rumours"]
        figures[f"{arm}: rumours less truths"] = results["rumours"] - results["truths"]
        figures |= {
            f"{arm}: rumour less truth, {topic}": results[f"{topic}_rumour"] - results[f"{topic}_truth"]
            for topic in TOPICS
        }
    return figures


SPREADING = SpreadingStudy()

POLARISATION = Study(
    "polarisation",
    PolarisationModel,
    {
        "cautious": {"leaning": "cautious"},
        "bold": {"leaning": "bold"},
        "nobody is moved": {"leaning": "cautious", "persuasion": 0.0, "llm": "rule"},
    },
    30,
    ("more_extreme", "neutral", "leaning"),
    polarisation_outcomes,
)

RUMOURS = Study(
    "rumours",
    RumourModel,
    {"alluring": {}, "no allure": {"allure": 1.0, "llm": "rule"}},
    60,
    ("truths", "rumours"),
    rumour_outcomes,
)

SIZES = (50, 200, 1000)
"""Numbers of users in the scale study; the number of posts in a step is proportional."""

SCALE = Study(
    "scale",
    HerdModel,
    {f"{n} users": {"n_agents": n, "posts_per_step": max(1, n // 12)} for n in SIZES},
    10,
    tuple(f"disagree_{group}" for group in GROUPS),
    counterfactual_outcomes,
    {"preset": "counterfactual_herd"},
)

ABLATED = ("posts", "likes", "reposts", "largest_cascade", "fit", "busiest_over_mean")
"""Measures to compare the arms of the ablations by."""


def ablation_outcomes(arms: Mapping[str, Results]) -> dict[str, float]:
    """Return the measures of the whole network, and the change of each in every ablation."""
    whole = arms["whole"]
    figures = {f"whole: {name.replace('_', ' ')}": whole[name] for name in ABLATED}
    for arm, results in arms.items():
        for name in ABLATED if arm != "whole" else ():
            if results[name] is not None and whole[name] is not None:  # None if no feed had a stranger's post, say
                figures[f"{arm}: change of {name.replace('_', ' ')}"] = results[name] - whole[name]
    return {name: float(_known(value)) for name, value in figures.items()}


ABLATIONS = Study("ablations", AblationModel, ARMS, 24, ("reposts", "largest_cascade", "active"), ablation_outcomes)

STUDIES: dict[str, Study | SpreadingStudy] = {
    study.name: study for study in (SPREADING, POLARISATION, HERD, COUNTERFACTUAL, RUMOURS, SCALE, ABLATIONS)
}
"""Studies by name."""


PLOTS = (".png", ".svg", ".pdf")
"""File suffixes for the figure."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@exits
def run_study(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(STUDIES)}.")],
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = N_SEEDS,
    rng: Annotated[int, typer.Option(min=0, help="The first seed.")] = 1,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of a run; the study's own by default.")] = None,
    llm: Annotated[str, typer.Option(help="What agents think with.")] = "rule",
    api_base: ApiBase = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Model parameter, as name=value.")] = None,
    log: Annotated[Path | None, typer.Option(help="Folder of the run logs; the same command goes on.")] = None,
    max_calls: MaxCallsOfAll = None,
    data: Annotated[Path | None, typer.Option(help="Folder with OASIS's files, to compare spreading with.")] = None,
    plot: Annotated[Path | None, typer.Option(help="File for the figure: PNG, SVG or PDF.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a study; the last line of --json is its figures."""
    from mesa_llm.cli.arguments import parameters, require_no_secrets
    from mesa_llm_models.oasis.charts import study_figure

    require_no_secrets(set_ or (), llm=llm, api_base=api_base)
    if name not in STUDIES:
        raise ConfigError(f"there is no study {name!r}; choose one of {', '.join(STUDIES)}")
    study = STUDIES[name]
    changes = parameters(study.model, set_ or [], None)
    access = Access(api_base=api_base, max_calls=max_calls)
    if log is not None and log.exists() and not log.is_dir():
        raise ConfigError(f"--log {log}: wanted the name of a folder, this is a file")
    if plot is not None and (plot.suffix.lower() not in PLOTS or not plot.absolute().parent.is_dir()):
        raise ConfigError(f"--plot {plot}: wanted a name that ends in {', '.join(PLOTS)}, in a folder that exists")
    if data is not None and not isinstance(study, SpreadingStudy):
        raise ConfigError(f"--data is for spreading; {name} compares nothing with OASIS's files")
    changes |= {"llm": llm, "access": access} | ({} if data is None else {"data": data})
    findings = study.run(range(rng, rng + seeds), steps, log, **changes)
    say(findings.text())
    if findings.usage.failures:
        warn(f"decisions and answers that failed: {findings.usage.failures}")
    if plot is not None:
        study_figure(findings).savefig(plot)
    if as_json:
        say(json.dumps(findings.summary()))


if __name__ == "__main__":
    app()
