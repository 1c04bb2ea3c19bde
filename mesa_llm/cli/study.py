"""Studies on the command line: a list of them, and the findings of one."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mesa_llm.canonical import member_value
from mesa_llm.cli.arguments import parameters
from mesa_llm.cli.command import Say
from mesa_llm.cli.cost import print_cost_of_seeds
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.findings import Findings
from mesa_llm.experiments.runs.study import Study, StudySetup, estimate_study, find_studies, studies_of
from mesa_llm.model.quality import quality_warning
from mesa_llm.model.scenario import Parameter

PAGE, FIGURES = "page.html", "findings.json"
"""Names of the files of the findings, in the study's folder."""

PLOTS = (".png", ".svg", ".pdf")
"""Suffixes of files for the figure."""


def study_list(package: str | None) -> Iterator[str]:
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


def run_study(
    study: Study,
    setup: StudySetup,
    assignments: Sequence[str],
    *,
    plot: Path | None,
    as_json: bool,
    say: Say,
    warn: Say,
    is_dry: bool = False,
) -> Findings | None:
    """Run a study, print its findings, and write them into its folder.

    Args:
        study: The study.
        setup: Settings of the runs, but for the parameters.
        assignments: Parameters of the model and options of the study, as `name=value`.
        plot: File for the figure; None: none.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.
        warn: Prints a warning.
        is_dry: Whether to print the expected cost only, without sending a request.

    Returns:
        The findings; None if only the cost was printed.

    Raises:
        ConfigError: If an option is unknown or invalid, or the findings cannot be written.
        MesaLLMError: If a run failed.
    """
    folder = setup.folder
    if folder is not None and folder.exists() and not folder.is_dir():
        raise ConfigError(f"--out {folder}: expected the name of a folder, this is a file")
    if plot is not None and (plot.suffix.lower() not in PLOTS or not plot.absolute().parent.is_dir()):
        raise ConfigError(f"--plot {plot}: expected a name ending in {', '.join(PLOTS)}, in an existing folder")
    given = parameters(study.model, assignments, None, others=study.options)
    own = {one.name: given.pop(one.name) for one in study.options if one.name in given}
    missing = [one.name for one in study.options if one.default is inspect.Parameter.empty and one.name not in own]
    if missing:
        raise ConfigError(f"the study {study.name} needs --set {missing[0]}=…; `mesa-llm study` lists its options")
    setup = replace(setup, parameters=given)
    if is_dry:
        cost, unpriced = estimate_study(study, setup, **own)
        print_cost_of_seeds(
            cost,
            unpriced,
            llm=setup.llm,
            n_seeds=len(setup.seeds),
            is_batch=bool(setup.access.get("batch")),
            as_json=as_json,
            say=say,
        )
        return None
    findings = study.run(setup, **own)
    summary: dict[str, Any] = findings.summary()
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / PAGE).write_text(findings.page(), encoding="utf-8")
            (folder / FIGURES).write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
            summary["page"] = str(folder / PAGE)
        if plot is not None and findings.draw is not None:
            findings.draw().savefig(plot)
    except OSError as error:
        raise ConfigError(f"{error.filename}: the findings cannot be written: {error.strerror}") from error
    if as_json:
        say(json.dumps(summary))
    else:
        say(findings.text())
        if folder is not None:
            say(f"\nPage: {folder / PAGE}")
        if plot is not None and findings.draw is not None:
            say(f"Plot: {plot}")
    if note := quality_warning(findings.cost.get("quality", {})):
        warn(note)
    if findings.cost["failures"]:
        warn(f"{findings.cost['failures']} of {findings.cost['decisions']} decisions failed; the run logs say why")
    return findings
