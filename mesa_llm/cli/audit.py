"""Audits on the command line: claims from a file or a measure, a progress bar, verdicts, a report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from mesa_llm.cli.command import Say
from mesa_llm.cli.cost import print_cost_of_seeds
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.audit import Audit, AuditClaim, audit, audit_setup, estimate_audit, level_of, read_claims
from mesa_llm.experiments.audit.dimensions import Setting
from mesa_llm.experiments.audit.findings import METHODS, PAGE
from mesa_llm.experiments.audit.wording import write_rewordings
from mesa_llm.model.model import LLMModel


def claims_of(
    kind: type[LLMModel], file: Path | None, measures: Sequence[str], smallest_effect: float | None
) -> list[AuditClaim]:
    """Return the claims of a file, or of the levels of measures.

    Args:
        kind: The model's class.
        file: File of claims.
        measures: Names of results, in place of a file.
        smallest_effect: Smallest change of their levels that counts.

    Raises:
        ConfigError: If there is neither or both, or a claim is invalid.
    """
    if (file is None) == (not measures):
        raise ConfigError("give the claims: --claims FILE.toml, or --measure NAME with --smallest-effect")
    if file is not None:
        return read_claims(file, kind)
    if smallest_effect is None or smallest_effect <= 0:
        raise ConfigError(
            "--measure needs --smallest-effect: the smallest change of the measure that would matter to you"
        )
    return [level_of(kind, measure, smallest_effect) for measure in measures]


def run_audit(
    kind: type[LLMModel],
    claims: Sequence[AuditClaim],
    *,
    folder: Path,
    rewrite: str | None,
    access: Mapping[str, Any],
    is_dry: bool,
    as_json: bool,
    say: Say,
    **arguments: Any,
) -> Audit | None:
    """Run an audit, print its verdicts, and write its report.

    Args:
        kind: The model's class.
        claims: The claims.
        folder: Folder of the logs and of the report.
        rewrite: Language model that says the instructions in other words; None: no rewordings but the model's own.
        access: Endpoints, limits and budget.
        is_dry: Whether to print the expected cost only, without sending a request.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.
        **arguments: As for `mesa_llm.experiments.audit.audit`.

    Returns:
        The findings; None if only the cost was printed.

    Raises:
        ConfigError: If an argument is invalid, or the report cannot be written.
        BudgetExceeded: If the budget ended it.
        MesaLLMError: If a run failed.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--out {folder}: expected the name of a folder, this is a file")
    limits = {name: value for name, value in arguments.items() if name in ("on", "workers", "awareness")}
    planned = {name: value for name, value in arguments.items() if name not in limits}
    if is_dry:
        setup = audit_setup(kind, claims, folder=folder, **planned)
        cost, unpriced = estimate_audit(setup, **access)
        print_cost_of_seeds(
            cost,
            unpriced,
            llm=setup.llm,
            n_seeds=len(setup.seeds),
            is_batch=bool(access.get("batch")),
            as_json=as_json,
            say=say,
        )
        return None
    if rewrite is not None:
        settings = [one.over(Setting(arguments["parameters"] or {})) for claim in claims for one in claim.between]
        folders = write_rewordings(kind, settings, rewrite, folder / "rewordings", **access)
        if not as_json:
            say(f"Rewordings of the instructions, to be read before the verdict is believed: {folder / 'rewordings'}\n")
        planned["wordings"] = folders
    with tqdm(unit="run", disable=as_json or None, dynamic_ncols=True) as bar:

        def on_run(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        found = audit(kind, claims, folder=folder, on_run=on_run, **planned, **limits, **access)
    found.write(folder)
    if as_json:
        say(json.dumps({**found.summary(), "page": str(folder / PAGE)}, default=str))
        return found
    say(found.text())
    say(f"\nPage: {folder / PAGE}\nMethods paragraph: {folder / METHODS}")
    return found
