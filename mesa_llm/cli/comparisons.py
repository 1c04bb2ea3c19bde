"""Commands that compare answers with those of people, check judges, and fit choice models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from mesa_llm.cli.command import app, exits, log_named, say
from mesa_llm.cli.options import AsJson, Trust
from mesa_llm.errors import ConfigError


@app.command(rich_help_panel="Experiments")
@exits
def people(
    file: Annotated[
        Path,
        typer.Argument(
            help="Table of what people said or did: CSV, .xlsx or others, with the columns question and answer, or "
            "with a column for each question."
        ),
    ],
    answers: Annotated[
        list[str],
        typer.Argument(
            help="Run logs with surveys, names of recorded runs, or tables, such as that of a sweep; as NAME=FILE to "
            "name a source. Several files of one name are put together."
        ),
    ],
    by: Annotated[
        list[str] | None, typer.Option(help="Column of both sides, whose groups are compared too; repeatable.")
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option(help="Question to compare; by default all that both sides have; repeatable.")
    ] = None,
    as_choice: Annotated[
        list[str] | None, typer.Option(help="Question whose numbers are names of choices; repeatable.")
    ] = None,
    traits: Annotated[
        Path | None, typer.Option(help="Table with the column agent, and further columns of the simulated agents.")
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Column of both sides that names the same respondent; adds prediction-powered estimates."),
    ] = None,
    scale: Annotated[
        list[str] | None,
        typer.Option(
            help="Lowest and highest number that a question allows, as QUESTION=LOW:HIGH; people's other answers are "
            "taken for missing; repeatable."
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(help="Cell of people's table that is no answer, such as -9, besides the usual ones; repeatable."),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of people's table, such as cp1250; by default determined from it.")
    ] = None,
    purpose: Annotated[str | None, typer.Option(help="Purpose of the surveys in run logs; by default all.")] = None,
    csv: Annotated[Path | None, typer.Option(help="CSV file for the figures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare simulated answers or results with those of people: distances, spread, subgroups, split-half ceiling."""
    from mesa_llm.cli.people import compare_people, scales_of
    from mesa_llm.tables import MISSING

    compare_people(
        file,
        answers,
        csv=csv,
        purpose=purpose,
        as_json=as_json,
        say=say,
        by=by or (),
        questions=question or None,
        as_choices=as_choice or (),
        traits=traits,
        unit=unit,
        scales=scales_of(scale or ()),
        missing=MISSING | set(missing or ()),
        encoding=encoding,
    )


@app.command(rich_help_panel="Experiments")
@exits
def agreement(
    labels: Annotated[Path, typer.Argument(help="File of people's labels: CSV, .xlsx or any other table.")],
    files: Annotated[
        list[Path],
        typer.Argument(help="Run logs, or names of recorded runs (see `mesa-llm list`); they are replayed offline."),
    ],
    template: Annotated[
        bool, typer.Option("--template", help="Write LABELS, for people to fill in, in place of reading it.")
    ] = False,
    sample: Annotated[int, typer.Option(min=1, help="Maximum number of texts in the template.")] = 50,
    rng: Annotated[int, typer.Option(min=0, help="Seed of the texts that are drawn.")] = 1,
    level: Annotated[
        str | None,
        typer.Option(help="Compare labels as nominal, ordinal or interval ones; by default numbers as interval."),
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Check the judge of recorded runs against people's labels: Krippendorff's alpha, with intervals and a verdict.

    Scores that a language model gives are no results before this. Write the
    file with --template, let people fill it in, and run the command again.
    """
    from typing import get_args

    from mesa_llm.cli.labels import compare_labels, write_template
    from mesa_llm.statistics import Level

    if level not in (None, *get_args(Level)):
        raise ConfigError(f"--level {level}: expected {', '.join(get_args(Level))}")
    logs = list(map(log_named, files))
    if template:
        write_template(labels, logs, sample=sample, rng=rng, trust=trust, say=say)
    else:
        compare_labels(labels, logs, level=cast("Any", level), trust=trust, as_json=as_json, say=say)


@app.command(rich_help_panel="Experiments")
@exits
def distill(
    files: Annotated[
        list[Path],
        typer.Argument(help="Run logs, or names of recorded runs (see `mesa-llm list`); they are replayed offline."),
    ],
    out: Annotated[
        Path, typer.Option(help="JSON file for the surrogate; agents decide by it with --llm surrogate:FILE.")
    ],
    llm: Annotated[
        str | None, typer.Option(help="Language model whose decisions are fitted; needed if several decided.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="Fact that is not used, and may later take any value; repeatable.")
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Fit a small choice model to the recorded decisions of a language model, which can then decide in its place.

    Prints how well it predicts decisions that it was not fitted to, beside
    chance, the recorded frequencies and the rule twin.
    """
    from mesa_llm.cli.distill import distill_runs

    distill_runs(map(log_named, files), out, llm=llm, without=without or (), trust=trust, as_json=as_json, say=say)
