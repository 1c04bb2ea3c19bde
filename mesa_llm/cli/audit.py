"""`mesa-llm audit`: claims of a model, tested under what should not matter to them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.cli.arguments import design_in, llms_in
from mesa_llm.cli.command import command, model_named, say
from mesa_llm.cli.cost import print_cost_of_seeds
from mesa_llm.cli.options import (
    AsJson,
    Design,
    DryRun,
    FirstSeed,
    Flags,
    Llm,
    Model,
    On,
    Out,
    Parameters,
    Workers,
)
from mesa_llm.engine.options import RunOptions
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.audits import (
    AuditClaim,
    AuditSetup,
    audit_setup,
    check_seal,
    level_of,
    read_claims,
    recorded_audit,
    run_setup,
    seal_claims,
)
from mesa_llm.experiments.audits.audit import estimate_interactions, estimate_seed
from mesa_llm.experiments.audits.dimensions import Setting
from mesa_llm.experiments.audits.findings import METHODS, PAGE
from mesa_llm.experiments.audits.interactions import DEFAULT, MIN_COMBINATIONS
from mesa_llm.experiments.audits.looks import MAX_SEEDS, look_numbers, power_text
from mesa_llm.experiments.audits.seal import FILE as SEAL_FILE
from mesa_llm.experiments.audits.wording import write_rewordings
from mesa_llm.model.model import LLMModel
from mesa_llm.runlog.comparison import not_checked
from mesa_llm.statistics import MIN_RUNS

NEEDS_LOGS = {
    "light": "what agents saw and said is read from the run logs",
    "reasoning": "it is one of the dimensions",
}
"""Options that an audit lacks, and why."""


@command("audit")
def audit_claims(
    model: Model,
    fixed: Parameters,
    options: Annotated[RunOptions, Flags(shared_by="runs", without=NEEDS_LOGS)],
    claims: Annotated[
        Path | None, typer.Option(help="File of claims (TOML), each a table [claims.NAME]; see docs/auditing.md.")
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option(help="Result whose level is audited, in place of claims; repeatable.")
    ] = None,
    smallest_effect: Annotated[
        float | None, typer.Option(help="Smallest change of --measure that would matter to you, in its unit.")
    ] = None,
    recorded: Annotated[
        bool,
        typer.Option("--recorded", help="Judge the recorded audit that comes with the model again, asking nothing."),
    ] = False,
    llm: Llm = "rule",
    fixed_design: Annotated[
        int | None,
        typer.Option("--fixed", min=2, help="Number of seeds of a fixed design; by default, it looks at 10, 15, … 80."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=2, help="The same as --fixed.")] = None,
    max_seeds: Annotated[
        int | None, typer.Option(min=MIN_RUNS, help=f"Number of seeds at the last look; by default {MAX_SEEDS}.")
    ] = None,
    rng: FirstSeed = 1,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of each run; by default until the model ends.")
    ] = None,
    dimensions: Annotated[
        str | None, typer.Option(help="Dimensions to audit, separated by commas; by default all that the model has.")
    ] = None,
    rewrite: Annotated[
        str | None,
        typer.Option(help="Language model that says the instructions in other words, once, for you to read."),
    ] = None,
    judge: Annotated[
        str, typer.Option(help="Language model that judges whether agents named the experiment; by default, words do.")
    ] = "",
    people: Annotated[
        Path | None, typer.Option(help="Table of what people did, with columns named like the measures of the claims.")
    ] = None,
    interactions: Annotated[
        bool, typer.Option("--interactions", help="Audit pairs of changes too, and draw the multiverse of all runs.")
    ] = False,
    combinations: Annotated[
        int | None,
        typer.Option(
            min=MIN_COMBINATIONS,
            help=f"Combinations of changes by which the pairs to test are found; by default {DEFAULT}.",
        ),
    ] = None,
    seal: Annotated[
        bool,
        typer.Option("--seal", help="Only seal the claims: write their SHA-256, with the time, into the folder."),
    ] = False,
    no_awareness: Annotated[
        bool, typer.Option("--no-awareness", help="Do not ask agents aside what they think is studied.")
    ] = False,
    design: Design = None,
    on: On = "processes",
    workers: Workers = 1,
    out: Out = Path("runs", "audit"),
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Test whether a claim about a model is stable under what should not matter: other wordings, forms, orders, models.

    To resume an audit that was stopped, run the same command again.
    """
    kind = model_named(model).load()
    chosen = design_in(design)
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out}: expected the name of a folder, this is a file")
    if seal:
        if recorded or dry_run:
            raise ConfigError("--seal seals claims before the first run; it goes with --claims or --measure, and --out")
        _seal(_claims(kind, claims, measure or [], smallest_effect), out, as_json=as_json)
        return
    if combinations is not None and not interactions:
        raise ConfigError("--combinations is the number for --interactions; give both")
    if fixed_design is not None and seeds is not None:
        raise ConfigError("--fixed and --seeds are the same; give one of them")
    if recorded:
        if claims or measure or dimensions or rewrite or fixed != Parameters() or chosen or llm != "rule":
            raise ConfigError("--recorded judges what was recorded; it goes with --out and --json alone")
        setup = recorded_audit(kind, out)
    else:
        found = _claims(kind, claims, measure or [], smallest_effect)
        parameters, wordings = fixed.of(kind), list[Path]()
        looks, n_seeds = _looks(fixed_design or seeds, max_seeds)
        if rewrite is not None and not dry_run:
            settings = [one.over(Setting(parameters)) for claim in found for one in claim.between]
            wordings = write_rewordings(kind, settings, rewrite, out / "rewordings", **options.access)
            if not as_json:
                say(
                    f"Rewordings of the instructions, to be read before the verdict is believed: {out / 'rewordings'}\n"
                )
        setup = audit_setup(
            kind,
            found,
            folder=out,
            llm=_names(llm),
            seeds=range(rng, rng + n_seeds),
            looks=looks,
            steps=steps,
            parameters=parameters,
            design=None if chosen is None else chosen.to_json(),
            options=options.of_logs,
            dimensions=None if dimensions is None else [name.strip() for name in dimensions.split(",")],
            wordings=wordings,
            judge=judge,
            people=people,
            interactions=(combinations or True) if interactions else False,
        )
    if dry_run:
        _print_estimate(setup, options, as_json=as_json)
        return
    how: dict[str, Any] = {"on": on, "workers": workers, "progress": False if as_json else None}
    verdicts = run_setup(setup, awareness=not no_awareness, **how, **options.access)
    verdicts.write(out)
    if as_json:
        say(json.dumps({**verdicts.to_json(), "page": str(out / PAGE)}, default=str))
    else:
        say(verdicts.text())
        say(f"\nPage: {out / PAGE}\nMethods paragraph: {out / METHODS}")
    say(not_checked(out / "logs" / "LOG"), err=True)


def _seal(claims: Sequence[AuditClaim], out: Path, *, as_json: bool) -> None:
    """Seal claims, and print the seal with what it is worth: whether runs had been made before."""
    seal_claims(claims, out)
    check = check_seal(claims, out)
    say(json.dumps(check.to_json()) if as_json else f"{check.text}\nSeal: {out / SEAL_FILE}")


def _looks(n_fixed: int | None, max_seeds: int | None) -> tuple[tuple[int, ...] | None, int]:
    """Return the numbers of seeds at which to look, or None for a fixed design, and the number of all seeds.

    Raises:
        ConfigError: If a fixed design is to have looks.
    """
    if n_fixed is None:
        numbers = look_numbers(max_seeds or MAX_SEEDS)
        return numbers, numbers[-1]
    if max_seeds is not None:
        raise ConfigError("--max-seeds bounds the looks, of which a fixed design (--fixed, --seeds) has only one")
    return None, n_fixed


def _print_estimate(setup: AuditSetup, options: RunOptions, *, as_json: bool) -> None:
    """Print what an audit would cost, at its first look and if it takes all, and what it would find."""
    one, unpriced = estimate_seed(setup, **options.access)
    together = estimate_interactions(setup, **options.access)
    first, last = (sum([one] * look.n_seeds, together) for look in (setup.looks[0], setup.looks[-1]))
    print_cost_of_seeds(
        last,
        unpriced,
        llm=setup.llm,
        n_seeds=len(setup.seeds),
        is_batch=options.batch,
        as_json=as_json,
        fewest=(setup.looks[0].n_seeds, first) if len(setup.looks) > 1 else None,
        power=power_text(setup.looks, len(setup.claims) * len(setup.plan.perturbations)),
    )


def _names(llm: str) -> list[str]:
    """Return the language models to audit, the baseline first.

    Raises:
        ConfigError: If several are to think in one run.
    """
    names = [one for one in llms_in(llm) if isinstance(one, str)]
    if len(names) < len(llms_in(llm)):
        raise ConfigError(f"--llm {llm}: an audit compares language models that all agents think with: NAME,NAME")
    return names


def _claims(
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
