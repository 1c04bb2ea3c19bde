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
from mesa_llm.experiments.audits import Audit, AuditClaim, AuditSetup, estimate_audit, level_of, read_claims, run_setup
from mesa_llm.experiments.audits.dimensions import Setting
from mesa_llm.experiments.audits.findings import METHODS, PAGE
from mesa_llm.experiments.audits.wording import write_rewordings
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
        raise ConfigError(
            "give the claims: --claims FILE.toml, or --measure NAME with --smallest-effect; the audit that comes with "
            "some models is judged again with --recorded"
        )
    if file is not None:
        return read_claims(file, kind)
    if smallest_effect is None or smallest_effect <= 0:
        raise ConfigError(
            "--measure needs --smallest-effect: the smallest change of the measure that would matter to you"
        )
    return [level_of(kind, measure, smallest_effect) for measure in measures]


def require_folder(folder: Path) -> None:
    """Check that the output is a folder, or that there is none yet.

    Args:
        folder: The folder.

    Raises:
        ConfigError: If it is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--out {folder}: expected the name of a folder, this is a file")


def reworded(
    kind: type[LLMModel],
    claims: Sequence[AuditClaim],
    rewrite: str,
    folder: Path,
    *,
    parameters: Mapping[str, Any],
    access: Mapping[str, Any],
    as_json: bool,
    say: Say,
) -> list[Path]:
    """Have a language model say the instructions in other words, and return the folders of its rewordings.

    Args:
        kind: The model's class.
        claims: The claims.
        rewrite: The language model.
        folder: Folder of the audit.
        parameters: Parameters of all runs.
        access: Endpoints, limits and budget.
        as_json: Whether to print nothing.
        say: Prints a line.

    Raises:
        BudgetExceeded: If the budget ended it.
    """
    settings = [one.over(Setting(parameters)) for claim in claims for one in claim.between]
    folders = write_rewordings(kind, settings, rewrite, folder / "rewordings", **access)
    if not as_json:
        say(f"Rewordings of the instructions, to be read before the verdict is believed: {folder / 'rewordings'}\n")
    return folders


def run_audit(
    setup: AuditSetup,
    *,
    folder: Path,
    access: Mapping[str, Any],
    is_dry: bool,
    as_json: bool,
    say: Say,
    **limits: Any,
) -> Audit | None:
    """Run an audit, print its verdicts, and write its report.

    Args:
        setup: The audit.
        folder: Folder of the report, as it is printed.
        access: Endpoints, limits and budget.
        is_dry: Whether to print the expected cost only, without sending a request.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.
        **limits: As for `mesa_llm.experiments.audits.run_setup`.

    Returns:
        The findings; None if only the cost was printed.

    Raises:
        ConfigError: If the report cannot be written.
        BudgetExceeded: If the budget ended it.
        MesaLLMError: If a run failed.
    """
    if is_dry:
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
    with tqdm(unit="run", disable=as_json or None, dynamic_ncols=True) as bar:

        def on_run(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        found = run_setup(setup, on_run=on_run, **limits, **access)
    found.write(folder)
    if as_json:
        say(json.dumps({**found.summary(), "page": str(folder / PAGE)}, default=str))
        return found
    say(found.text())
    say(f"\nPage: {folder / PAGE}\nMethods paragraph: {folder / METHODS}")
    return found
