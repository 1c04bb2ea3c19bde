"""`mesa-llm study`: a list of the studies, and the findings of one."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.canonical import member_value
from mesa_llm.cli.arguments import llm_in, parameters
from mesa_llm.cli.command import command, say, warn
from mesa_llm.cli.cost import print_cost_of_seeds
from mesa_llm.cli.options import AsJson, DryRun, FirstSeed, Llm, Plot, SharedRunFlags, require_plot
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.runs.study import (
    StudySetup,
    estimate_study,
    find_studies,
    find_study,
    power_of,
    studies_of,
)
from mesa_llm.llm.budget import SharedBudget
from mesa_llm.llm.shared_budget import BUDGET
from mesa_llm.model.quality import quality_warning
from mesa_llm.model.scenario import Parameter

PAGE, FIGURES = "page.html", "findings.json"
"""Names of the files of the findings, in the study's folder."""


@command("study")
def study(
    options: SharedRunFlags,
    package: Annotated[
        str | None, typer.Argument(help="Package of models, such as oasis or shachi; without it, lists all studies.")
    ] = None,
    name: Annotated[
        str | None, typer.Argument(help="Name of the study; without it, lists the package's studies and their options.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds, each run in every arm; the study's own by default.")
    ] = None,
    rng: FirstSeed = 1,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps, months or tests of each run; the study's own by default.")
    ] = None,
    llm: Llm = "rule",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter of the model or option of the study, as name=value.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Output folder: page, figures and one run log per run. Existing runs are resumed."),
    ] = None,
    plot: Plot = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of runs at a time.")] = 1,
    smallest_effect: Annotated[
        float | None,
        typer.Option(help="Smallest difference from a placebo that would matter: what is smaller is absent."),
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Run a study: a question, the runs that answer it, and figures with intervals."""
    if package is None or name is None:
        for line in _list(package):
            say(line)
        return
    chosen = find_study(package, name)
    if out is not None and out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out}: expected the name of a folder, this is a file")
    require_plot(plot)
    given = parameters(chosen.model, set_ or [], None, others=chosen.options)
    own = {one.name: given.pop(one.name) for one in chosen.options if one.name in given}
    missing = [one.name for one in chosen.options if one.default is inspect.Parameter.empty and one.name not in own]
    if missing:
        raise ConfigError(f"the study {chosen.name} needs --set {missing[0]}=…; `mesa-llm study` lists its options")
    budget = options.max_calls, options.max_tokens, options.max_dollars
    setup = StudySetup(
        range(rng, rng + (seeds or chosen.n_seeds)),
        folder=out,
        llm=llm_in(llm),
        workers=workers,
        parameters=given,
        options=options.changed,
        access={name: value for name, value in options.access.items() if name not in BUDGET},
        purse=SharedBudget(*budget) if any(budget) else None,
        steps=steps,
        smallest_effect=smallest_effect,
    )
    if dry_run:
        how: dict[str, Any] = {"llm": setup.llm, "n_seeds": len(setup.seeds), "is_batch": options.batch}
        how["power"] = power_of(chosen, setup, **own)
        print_cost_of_seeds(*estimate_study(chosen, setup, **own), **how, as_json=as_json)
        return
    findings = chosen.run(setup, **own)
    summary: dict[str, Any] = findings.to_json()
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            (out / PAGE).write_text(findings.page(), encoding="utf-8")
            (out / FIGURES).write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
            summary["page"] = str(out / PAGE)
        if plot is not None and findings.draw is not None:
            findings.draw().savefig(plot)
    except OSError as error:
        raise ConfigError(f"{error.filename}: the findings cannot be written: {error.strerror}") from error
    if as_json:
        say(json.dumps(summary))
    else:
        say(findings.text())
        if out is not None:
            say(f"\nPage: {out / PAGE}")
        if plot is not None and findings.draw is not None:
            say(f"Plot: {plot}")
    if note := quality_warning(findings.cost.get("quality", {})):
        warn(note)
    if findings.cost["failures"]:
        warn(f"{findings.cost['failures']} of {findings.cost['decisions']} decisions failed; the run logs say why")


def _list(package: str | None) -> Iterator[str]:
    """Describe each study in a line; the studies of one package with their options.

    Args:
        package: Name of the package; None: all.

    Raises:
        ConfigError: If the package has no studies.
    """
    if package is not None:
        found, broken = {package: studies_of(package)}, {}
    else:
        found, broken = find_studies()
    names = [f"{place} {name}" for place, studies in found.items() for name in studies]
    width = max(map(len, [*names, *broken]), default=0)
    for place, studies in found.items():
        for name, study in studies.items():
            yield f"{f'{place} {name}':<{width}}  {study.question}"
            if package is not None:
                yield from (f"{'':<{width}}    {_option_text(one)}" for one in study.options)
    for place, fault in broken.items():
        yield f"{place:<{width}}  BROKEN: {fault}"


def _option_text(option: Parameter) -> str:
    default = "" if option.default in (inspect.Parameter.empty, None) else f" (default: {member_value(option.default)})"
    return f"--set {option.name}=…  {option.meaning}{default}"
