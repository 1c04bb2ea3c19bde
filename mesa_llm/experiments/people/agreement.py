"""How far judges agree with people: Krippendorff's alpha, from a file of human labels.

    write_label_template("run.sqlite", "labels.csv", sample=50)   # for people to fill in
    texts = [row.text for row in judge_agreement("labels.csv", "run.sqlite")]

The columns of a labels file are described in `mesa_llm.model.judgements`. Runs are replayed offline.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.runs.recordings import read_again, recorded_run
from mesa_llm.model.judgements import (
    LABEL,
    MEASURE,
    TEXT,
    UNIT,
    HumanLabels,
    JudgeAgreement,
    Judgements,
    Value,
    agreements_of,
    judged_values,
    read_labels,
)
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.statistics import Level
from mesa_llm.text import counted, spreadsheet_cell

if TYPE_CHECKING:
    import pandas as pd

N_TEMPLATE = 50
"""Default number of texts in a template of labels."""

CODERS = ("person_1", "person_2")
"""Empty columns of a template, one for each person."""

JUDGEMENT = "judgement"
"""Column of a table of judgements that holds what was judged."""

type Recorded = str | Path | Recording
"""A run log, or the name of a recorded run."""

type Judged = str | Path | Recording | LLMModel | pd.DataFrame
"""Where judgements are: a run log or the name of a recorded run, a model that has run, or a table."""


def judge_agreement(
    labels: str | Path | pd.DataFrame, judgements: Judged | Iterable[Judged], *, level: Level | None = None
) -> list[JudgeAgreement]:
    """Compare judgements with people's labels of the same texts, by measure.

    Args:
        labels: File or table of labels.
        judgements: Run logs, or names of recorded runs, which are replayed offline, so that their models are imported;
            models that have run with `labels=`; or tables with the columns `unit`, `judgement` and, if there are
            several, `measure`.
        level: Level of measurement; None: `interval` where all labels are numbers, otherwise `nominal`.

    Returns:
        One row for each measure that is labelled, with Krippendorff's alpha between judge and people, and of people
        among themselves.

    Raises:
        ConfigError: If a file cannot be read, a run cannot be replayed, nothing was judged, or no text that people
            labelled was.
    """
    human = read_labels(labels)
    merged: dict[str, dict[str, list[Value]]] = {}
    judged: dict[str, set[str]] = {}
    for source in _several(judgements):
        for measure, unit, value in _values(source, human):
            judged.setdefault(measure, set()).add(unit)
            merged.setdefault(measure, {}).setdefault(unit, []).append(value)
    if not merged:
        raise ConfigError("nobody judged anything in these runs; a judge is asked by model.consult(…)")
    found = agreements_of(human, merged, level)
    if not any(row.n_labelled for row in found):
        measures = ", ".join(merged)
        raise ConfigError(
            f"{human.source} labels no text that was judged in these runs ({measures}); "
            "`mesa-llm agreement FILE RUN --template` writes a file with their units"
        )
    return found


def write_label_template(
    runs: Recorded | Iterable[Recorded], path: str | Path, *, sample: int = N_TEMPLATE, rng: int = 1
) -> int:
    """Write a CSV file in which people can label what a judge was asked, without seeing what it said.

    Args:
        runs: Run logs or names of recorded runs, which are replayed offline.
        path: The file; it must not exist, as it might hold labels.
        sample: Maximum number of texts, drawn at random.
        rng: Seed of the draw.

    Returns:
        Number of rows: one for each text and measure.

    Raises:
        ConfigError: If the file exists or cannot be written, or nothing was judged.
    """
    path = Path(path)
    texts: dict[str, str] = {}
    rows: dict[tuple[str, str], str] = {}
    for source in [runs] if isinstance(runs, str | Path | Recording) else list(runs):
        kept = _replayed(source)
        texts |= kept.texts
        rows |= {(unit, measure): unit.partition("/")[0] for measure, units in kept.units.items() for unit in units}
    by_hand = sorted({text for text in rows.values() if not texts[text].isdigit()})  # a rule may read no text
    if not by_hand:
        raise ConfigError("there is no text to label: no language model judged anything in these runs")
    chosen = set(random.Random(rng).sample(by_hand, min(sample, len(by_hand))))
    written = [
        [unit, measure, spreadsheet_cell(texts[text])] for (unit, measure), text in rows.items() if text in chosen
    ]
    try:
        with path.open("x", encoding="utf-8-sig", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([UNIT, MEASURE, TEXT, *CODERS])
            writer.writerows([*row, *("" for _ in CODERS)] for row in sorted(written))
    except FileExistsError:
        raise ConfigError(f"{path} exists, and may hold labels; choose another name for the template") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
    return len(written)


def _several(judgements: Judged | Iterable[Judged]) -> list[Any]:
    import pandas as pd

    is_one = isinstance(judgements, str | Path | Recording | LLMModel | pd.DataFrame)
    return [judgements] if is_one else list(judgements)


def _values(source: Judged, labels: HumanLabels) -> list[tuple[str, str, Value]]:
    """Return measure, unit and value of each judgement of one source."""
    if isinstance(source, LLMModel):
        judgements = source.judgements
        if judgements.labels is None and not judgements.keeps_all:
            raise ConfigError(f"{type(source).__name__} kept no judgements: make it with labels=, or give its run log")
    elif isinstance(source, str | Path | Recording):
        judgements = _replayed(source)
    else:
        return _tabled(source, labels)
    return [
        (measure, unit, value)
        for measure, units in judgements.judged.items()
        for unit, values in units.items()
        for value in values
    ]


def _tabled(table: pd.DataFrame, labels: HumanLabels) -> list[tuple[str, str, Value]]:
    missing = [name for name in (UNIT, JUDGEMENT) if name not in table.columns]
    if missing:
        raise ConfigError(f"the judgements have no column {missing[0]!r}; wanted {UNIT!r} and {JUDGEMENT!r}")
    named: list[dict[Any, Any]] = table.to_dict("records")
    only = next(iter(labels.by_measure), "")
    rows = [(str(row.get(MEASURE) or only or LABEL), str(row[UNIT]).strip(), row[JUDGEMENT]) for row in named]
    return [
        value for measure, unit, answer in rows if answer is not None for value in judged_values(measure, unit, answer)
    ]


def _replayed(source: str | Path | Recording) -> Judgements:
    """Replay a run, and return all its judgements."""
    recording = source if isinstance(source, Recording) else Recording.read(_file_of(source))
    kept: list[Judgements] = []

    def prepare(model: LLMModel) -> None:
        model.judgements.keeps_all = True
        kept.append(model.judgements)

    read_again(recording, prepare)
    return kept[0]


def _file_of(name: str | Path) -> Path:
    path = Path(name)
    return path if path.exists() or isinstance(name, Path) else recorded_run(name).file


def agreement_text(rows: Iterable[JudgeAgreement]) -> str:
    """Describe how far a judge agrees with people, and what the bounds of the verdicts are."""
    found = list(rows)
    lines = [row.text for row in found]
    lines += [
        f"{row.measure}: {counted(row.n_labelled, 'unit')} of {row.n_judged} labelled by people"
        for row in found
        if row.n_labelled < row.n_judged
    ]
    return "\n".join([*lines, BOUNDS])


BOUNDS = (
    "Verdicts by the conventional bounds of alpha: reliable from 0.8, tentative from 0.667, below not to be used "
    "(Krippendorff 2004). Look at the interval too."
)
"""What the verdicts mean."""
