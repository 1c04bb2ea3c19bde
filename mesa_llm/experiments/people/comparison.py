"""Simulated answers beside those of people: distances, spread, subgroups, and what a perfect simulation could reach.

    table = model.survey([mood, vote])
    print(compare_with("people.csv", {"llm": table, "rule": by_rule}).text())

`survey_comparison` has `compare_survey`, which also runs the surveys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mesa_llm.charts.chart import Chart
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.findings import Findings, Table, Value, estimates_chart, require_measure
from mesa_llm.experiments.people.answers import (
    AGENT,
    ANSWER,
    AnswerTable,
    answer_table,
    as_choice_names,
    as_numbers,
    as_plain_numbers,
    is_log,
    is_missing,
    kind_of_answers,
)
from mesa_llm.experiments.people.distributions import (
    Kind,
    SplitHalf,
    choice_codes,
    distance_between,
    kolmogorov_smirnov,
    split_half,
    spread_ratio,
)
from mesa_llm.experiments.people.prediction_powered import PoweredEstimate, prediction_powered_mean
from mesa_llm.experiments.people.scales import AnswerScale, doubtful_numbers, odd_codes, scale_of, within_scale
from mesa_llm.runlog.comparison import not_checked
from mesa_llm.statistics import Estimate, cluster_means, mean_estimate, with_interval
from mesa_llm.tables import MISSING, TableSource
from mesa_llm.text import clip, counted, figure_text, suggestion

MAX_GROUPS = 30
"""Maximum number of groups of a column."""

MAX_SHOWN = 3
"""Maximum number of choices whose shares are shown in a line of text."""

type Source = TableSource | pd.Series
"""Answers: a table, one column, a file with a table, or a run log."""


@dataclass(frozen=True, kw_only=True)
class AnswerComparison:
    """Answers of one source to one question, beside those of people."""

    question: str
    """The question."""

    source: str
    """Name of the source."""

    group: str
    """Group of respondents, as `column = value`; empty: all."""

    kind: Kind
    """Whether answers are numbers or choices."""

    n: int
    """Number of simulated answers."""

    n_missing: int
    """Number of respondents of the source without an answer."""

    n_people: int
    """Number of people's answers."""

    n_people_missing: int
    """Number of people without an answer."""

    mean: Estimate | None
    """Mean of simulated numbers, with its interval; None for choices, or without an answer."""

    people_mean: Estimate | None
    """Mean of people's numbers."""

    shares: Mapping[str, float]
    """Simulated share of each choice; empty for numbers."""

    people_shares: Mapping[str, float]
    """People's share of each choice."""

    distance: float | None
    """Distance of the distributions: Wasserstein-1 of numbers in their unit, total variation of choices; None without
    answers.
    """

    distance_sd: float | None
    """Wasserstein-1 in standard deviations of people's answers; None for choices."""

    ks: float | None
    """Largest difference of the cumulative distributions (Kolmogorov–Smirnov); None for choices."""

    spread: Estimate | None
    """Simulated spread divided by people's: of variances, or of Gini–Simpson indices of choices."""

    ceiling: SplitHalf | None
    """Distance of random parts of the people from each other; None with too few people."""

    @property
    def is_within(self) -> bool | None:
        """Whether the source is as close to people as people are to each other (95 % of splits); None if unknown."""
        if self.distance is None or self.ceiling is None:
            return None
        return self.distance <= self.ceiling.upper

    @property
    def cells(self) -> dict[str, Any]:
        """The figures as the cells of a row."""
        ends = {"mean": self.mean, "people_mean": self.people_mean, "spread": self.spread}
        cells: dict[str, Any] = {name: getattr(self, name) for name in _PLAIN}
        for name, estimate in ends.items():
            low, high = (None, None) if estimate is None else (estimate.low, estimate.high)
            cells |= {name: estimate and estimate.value, f"{name}_low": low, f"{name}_high": high}
        split = self.ceiling
        cells |= {"ceiling": split and split.mean, "ceiling_95": split and split.upper, "within": self.is_within}
        return cells | {"shares": dict(self.shares), "people_shares": dict(self.people_shares)}


_PLAIN = (
    *("question", "group", "source", "kind", "n", "n_missing", "n_people", "n_people_missing"),
    *("distance", "distance_sd", "ks"),
)
"""Fields that are cells as they are."""

_SHARES = ("shares", "people_shares")
"""Cells that are no single figure."""


@dataclass(frozen=True, kw_only=True)
class PopulationEstimate:
    """A mean, or the share of a choice, in the whole population, from a few people and many simulated answers."""

    question: str
    """The question."""

    choice: str
    """The choice whose share is estimated; empty for a mean."""

    source: str
    """Source of the simulated answers."""

    estimate: PoweredEstimate
    """The prediction-powered estimate, with the classical one."""


@dataclass(frozen=True)
class PeopleComparison(Findings):
    """Answers of one or more sources beside those of people."""

    rows: Sequence[AnswerComparison]
    """One row per question, group and source."""

    estimates: Sequence[PopulationEstimate] = ()
    """Prediction-powered estimates, where both sides name their units."""

    notes: Sequence[str] = ()
    """What was left out, and why."""

    @property
    def table(self) -> pd.DataFrame:
        """The figures, one row per question, group and source."""
        return pd.DataFrame([row.cells for row in self.rows])

    @property
    def name(self) -> str:
        """Name of the comparison."""
        return "Comparison with people"

    def parts(self) -> list[Table]:
        """Return the answers, people first in each question and group; the estimates; and all figures."""
        every = [{name: cell for name, cell in row.cells.items() if name not in _SHARES} for row in self.rows]
        estimates: list[dict[str, Value]] = [
            dict(zip(_ESTIMATE_HEAD, _estimate_cells(one), strict=True)) for one in self.estimates
        ]
        title = "Estimates for all units, by people alone and with simulated answers (95 % intervals)"
        return [
            Table("Answers compared with people's", _rows_of(self.rows), LEGEND),
            *([Table(title, estimates)] if estimates else []),
            Table("All figures", every, is_folded=True, max_lines=0),
        ]

    @property
    def lead(self) -> list[str]:
        """What was left out, and why."""
        return [f"Note: {note}." for note in self.notes]

    def compare(self, measure: str) -> pd.DataFrame:
        """Return how far each source is from people in a question, with the ends of its intervals.

        Args:
            measure: The question.

        Raises:
            ConfigError: If there is no such question.
        """
        return pd.DataFrame([row.cells for row in self._about(measure)]).assign(unit="answers")

    def chart(self, measure: str) -> Chart:
        """Draw the mean answer of people and of each source with its 95 % interval; of choices, the distances.

        Args:
            measure: The question.

        Raises:
            ConfigError: If there is no such question.
        """
        rows = [row for row in self._about(measure) if not row.group]
        if rows[0].kind == "choice":
            distances = [None if row.distance is None else Estimate(row.distance, None, None, row.n) for row in rows]
            title = f"{measure}: total variation distance from people"
            return estimates_chart(title, [row.source for row in rows], distances)
        means = {"people": rows[0].people_mean, **{row.source: row.mean for row in rows}}
        return estimates_chart(f"{measure}: mean answer, with its 95 % interval", list(means), list(means.values()))

    def _about(self, question: str) -> list[AnswerComparison]:
        require_measure(self.name, question, list(dict.fromkeys(row.question for row in self.rows)))
        return [row for row in self.rows if row.question == question]

    def row(self, question: str, source: str | None = None, group: str = "") -> AnswerComparison:
        """Return the figures of one question.

        Args:
            question: The question.
            source: Name of the source; None: the first.
            group: The group, as `column = value`; empty: all.

        Raises:
            KeyError: If there is no such row.
        """
        for row in self.rows:
            if (row.question, row.group) == (question, group) and source in (None, row.source):
                return row
        raise KeyError((question, source, group))

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-serialisable types."""
        return {
            "rows": [row.cells for row in self.rows],
            "estimates": [asdict(one) for one in self.estimates],
            "notes": list(self.notes),
        }


LEGEND = (
    "distance: Wasserstein-1 of numbers (in brackets: in standard deviations of people), total variation of choices. "
    "split-half: distance of random parts of the people from each other, as a mean and as what 95 % stay below, scaled "
    "to the sizes that are compared; within: whether the source is as close to people as that. spread: simulated "
    "variance (choices: Gini–Simpson index) divided by people's; below 1, simulated answers are too alike. Intervals "
    "and split-half count agents: what one agent says with several seeds is one respondent."
)
"""What the columns of a text mean."""

_HEAD = ("question", "source", "n", "missing", "answers", "distance", "split-half", "within", "spread")
_ESTIMATE_HEAD = ("question", "source", "people alone", "with simulated answers", "weight", "people", "simulated")


def _rows_of(rows: Sequence[AnswerComparison]) -> list[dict[str, Value]]:
    """Return the figures as rows of a table: people first in each question and group."""
    cells: list[list[str]] = []
    place = None
    for row in rows:
        name = clip(row.question, 40) + (f" ({row.group})" if row.group else "")
        if place != (row.question, row.group):
            place = (row.question, row.group)
            answers = _answers_text(row.people_mean, row.people_shares)
            cells.append([name, "people", f"{row.n_people}", f"{row.n_people_missing}", answers, "", "", "", ""])
        cells.append(["", *_cells_of(row)])
    return [dict(zip(_HEAD, row, strict=True)) for row in cells]


def _cells_of(row: AnswerComparison) -> list[str]:
    in_sd = "" if row.distance_sd is None else f" ({figure_text(row.distance_sd)})"
    return [
        row.source,
        f"{row.n}",
        f"{row.n_missing}",
        _answers_text(row.mean, row.shares),
        figure_text(row.distance) + in_sd,
        "–" if row.ceiling is None else f"{figure_text(row.ceiling.mean)}, up to {figure_text(row.ceiling.upper)}",
        {True: "yes", False: "no", None: "–"}[row.is_within],
        with_interval(row.spread),
    ]


def _answers_text(mean: Estimate | None, shares: Mapping[str, float]) -> str:
    if not shares:
        return with_interval(mean)
    largest = sorted(shares.items(), key=lambda one: -one[1])
    shown = [f"{clip(name, 20)} {share:.0%}" for name, share in largest[:MAX_SHOWN] if share]
    return ", ".join(shown + ["…"] * (len(largest) > MAX_SHOWN))


def _estimate_cells(one: PopulationEstimate) -> list[str]:
    name = clip(one.question, 40) + (f": {clip(one.choice, 20)}" if one.choice else "")
    found = one.estimate
    figures = with_interval(found.classical), with_interval(found.powered), figure_text(found.weight)
    return [name, one.source, *figures, f"{found.classical.n}", f"{found.n_simulated}"]


# -- comparing


def compare_with(
    people: Source,
    answers: Source | Mapping[str, Source],
    *,
    by: str | Sequence[str] = (),
    questions: Sequence[str] | None = None,
    as_choices: Collection[str] = (),
    traits: Source | None = None,
    unit: str | None = None,
    scales: Mapping[str, Any] | None = None,
    missing: Collection[str] = MISSING,
    encoding: str | None = None,
) -> PeopleComparison:
    """Compare simulated answers, or results of runs, with those of people.

    Tables are long (columns `question` and `answer`, as `model.survey` returns them) or wide (a column per question, or
    per reporter of a model, and a row per respondent or run). Questions are compared that both sides have.

    Args:
        people: What people said or did: a file (CSV, .xlsx and others) or a table.
        answers: Simulated answers: a table, a file or a run log; or several of them by name, such as `llm`, `rule`.
        by: Columns of both sides, for whose values the comparison is repeated.
        questions: Questions to compare; None: all that people and a source have.
        as_choices: Questions whose numbers are names of choices, and have no size.
        traits: Table with the column `agent`, and further columns for `by` and `unit` of simulated answers.
        unit: Column of both sides that names the same respondent. Where people answered for some of the units, it adds
            prediction-powered estimates for all of them.
        scales: Question → what it allows: its type, as in `Question`, or its lowest and highest number. People's other
            answers are taken for missing, counted and noted. Without it, a note says which look like codes.
        missing: Cells of people's table that stand for a missing answer, unless simulated answers have them too.
        encoding: Encoding of people's file; None: determined from it.

    Raises:
        ConfigError: If a table cannot be read, nothing can be compared, a column is missing, numbers and words are
            mixed, or no answer is one that the question allows.
    """
    named = cast("Mapping[str, Source]", answers) if _are_named(answers) else {"simulated": cast("Source", answers)}
    if not named:
        raise ConfigError("there are no simulated answers to compare with people's")
    ours = [answer_table(source, name) for name, source in named.items()]
    used = {cell.casefold() for one in ours for name in one.frame for cell in one.frame[name] if isinstance(cell, str)}
    place = str(people) if isinstance(people, str | Path) else "the table of people"
    marks = {mark for mark in missing if mark.casefold() not in used}  # such as "None", where it is a choice
    theirs = answer_table(people, place, missing=marks, encoding=encoding)
    if traits is not None:
        known = answer_table(traits, "the traits").frame
        ours = [source.with_traits(known) for source in ours]
    columns = [by] if isinstance(by, str) else list(by)
    for column in [*columns, *([] if unit is None else [unit])]:
        _require_column(column, [theirs, *ours])
    reserved = {*columns, *([] if unit is None else [unit])}
    compared = _common_questions(theirs, ours, questions, reserved)
    notes = _left_out(theirs, ours, compared, reserved) if questions is None else []
    notes += [f"{name}: {not_checked(source)}" for name, source in named.items() if is_log(source)]
    rows: list[AnswerComparison] = []
    estimates: list[PopulationEstimate] = []
    for question in compared:
        asked = _Asked.of(question, theirs, ours, as_choices, scale_of((scales or {}).get(question)))
        notes += asked.notes
        rows += asked.rows()
        for column in columns:
            rows += asked.rows_by(column)
        if unit is not None:
            found = list(asked.estimates(unit))
            estimates += found
            notes += [] if found else [f"no estimate for {question!r:.60}: too few units have both answers"]
    return PeopleComparison(rows, estimates, notes)


@wraps(compare_with, assigned=("__doc__",))
def compare(people: Source, answers: Source | Mapping[str, Source], **options: Any) -> PeopleComparison:
    return compare_with(people, answers, **options)


def _require_column(column: str, tables: Iterable[AnswerTable]) -> None:
    for one in tables:
        if column not in one.frame.columns:
            names = [str(name) for name in one.frame.columns]
            raise ConfigError(
                f"{one.name} has no column {column!r}; it has {', '.join(names)}{suggestion(column, names)}. Traits of "
                "simulated agents are given by traits= (--traits)"
            )


def _common_questions(
    people: AnswerTable, sources: Sequence[AnswerTable], questions: Sequence[str] | None, reserved: Collection[str]
) -> list[str]:
    asked = [name for name in people.questions if name not in reserved]
    simulated = list(dict.fromkeys(name for source in sources for name in source.questions))
    if questions is not None:
        for name in questions:
            if name not in asked or name not in simulated:
                side = people.name if name not in asked else "the simulated answers"
                known = asked if name not in asked else simulated
                raise ConfigError(f"{side}: there is no question {name!r:.80}{suggestion(name, known)}")
        return list(questions)
    common = [name for name in asked if name in simulated]
    if not common:
        raise ConfigError(
            f"people and simulation have no question in common: {people.name} has {_named(asked)}; simulated answers "
            f"have {_named(simulated)}. Give questions the same name on both sides (Question(text, name=…)); a table "
            "with a row per answer has the columns 'question' and 'answer'"
        )
    return common


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(repr(clip(name, 60)) for name in names[:6])
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "") if names else "none"


def _left_out(
    people: AnswerTable, sources: Sequence[AnswerTable], compared: Sequence[str], reserved: Collection[str]
) -> list[str]:
    """Say which questions of long tables are on one side alone; further columns of wide ones are no questions."""
    notes: list[str] = []
    for one in (people, *sources):
        only = [name for name in one.asked if name not in compared and name not in reserved]
        if one.is_long and only:
            notes.append(f"{one.name}: no counterpart of {_named(only)}")
        elif missing := [name for name in compared if name not in one.questions]:
            notes.append(f"{one.name}: no answers to {_named(missing)}")
    return notes


@dataclass(frozen=True)
class _Asked:
    """Answers of people and of all sources to one question."""

    question: str
    kind: Kind
    people: pd.DataFrame
    """Rows of people, with the column `answer`."""

    sources: Mapping[str, pd.DataFrame]
    """Source → its rows."""

    notes: Sequence[str] = ()
    """What is to be said about the answers."""

    @classmethod
    def of(
        cls,
        question: str,
        people: AnswerTable,
        sources: Sequence[AnswerTable],
        as_choices: Collection[str],
        scale: AnswerScale | None,
    ) -> _Asked:
        ours = {source.name: source.answers_to(question) for source in sources if question in source.questions}
        rows = {people.name: people.answers_to(question), **ours}
        notes: list[str] = []
        if scale is not None and not scale.choices:
            rows[people.name], notes = _within(rows[people.name], scale, question, people.name)
        if question not in as_choices:
            converted, more = as_plain_numbers(question, {name: _given(own) for name, own in rows.items()})
            notes += more
            rows = {name: _with_answers(own, converted[name]) for name, own in rows.items()}
        if scale is not None:
            rows[people.name], odd = _within(rows[people.name], scale, question, people.name)
            notes += odd
        given = {name: _given(own) for name, own in rows.items()}
        if not given[people.name]:
            raise ConfigError(f"{people.name} has no answer to {question!r:.80}")
        kind = kind_of_answers(question, given, as_choices)
        if scale is None and kind == "number":
            simulated = [one for name in ours for one in given[name]]
            notes += odd_codes(given[people.name], simulated, question, people.name)
        if kind == "number":
            for name in ours:
                notes += doubtful_numbers(given[people.name], given[name], question, people.name)
        else:
            notes += [
                f"{question!r:.60}: {people.name} and {name} share no choice ({given[people.name][0]!r:.40}, "
                f"{given[name][0]!r:.40}); write choices alike"
                for name in ours
                if given[name] and not set(_shares(given[people.name])) & set(_shares(given[name]))
            ]
        theirs = rows.pop(people.name)
        return cls(question, kind, theirs, rows, notes)

    def rows(self, group: str = "", of: Sequence[Any] | None = None) -> list[AnswerComparison]:
        """Compare each source with people.

        Args:
            group: Name of the group; empty: all.
            of: Column of the group and its value; None: all.
        """
        people = _members(self.people, of)
        return [self._row(name, _members(rows, of), people, group) for name, rows in self.sources.items()]

    def rows_by(self, column: str) -> list[AnswerComparison]:
        """Compare each source with people within each group of a column.

        Raises:
            ConfigError: If there are too many groups.
        """
        values = sorted({_group(cell) for cell in self.people[column] if not is_missing(cell)})
        if len(values) > MAX_GROUPS:
            raise ConfigError(
                f"the column {column!r} has {len(values)} values; groups are compared for up to {MAX_GROUPS}: put "
                "numbers into a few classes first"
            )
        return [row for value in values for row in self.rows(f"{column} = {value}", (column, value))]

    def _row(self, source: str, ours: pd.DataFrame, theirs: pd.DataFrame, group: str) -> AnswerComparison:
        given, people = _given(ours), _given(theirs)
        figures = self._figures(given, people, _agents_of(ours)) if given and people else _NO_FIGURES
        means: dict[str, Any] = {"mean": None, "people_mean": None, "shares": {}, "people_shares": {}}
        if self.kind == "number":
            numbers = (as_numbers(given, self.question), as_numbers(people, self.question))
            means |= {"mean": _mean_over_agents(ours, numbers[0]), "people_mean": mean_estimate(numbers[1], "people")}
        else:
            means |= {"shares": _shares(given), "people_shares": _shares(people)}
        return AnswerComparison(
            question=self.question,
            source=source,
            group=group,
            kind=self.kind,
            n=len(given),
            n_missing=len(ours) - len(given),
            n_people=len(people),
            n_people_missing=len(theirs) - len(people),
            **means,
            **figures,
        )

    def _figures(self, given: Sequence[Any], people: Sequence[Any], agents: Sequence[str] | None) -> dict[str, Any]:
        theirs, ours = self._coded(people, given)
        distance = distance_between(ours, theirs, self.kind)
        figures = _NO_FIGURES | {"distance": distance, "spread": spread_ratio(ours, theirs, self.kind, agents)}
        figures["ceiling"] = split_half(theirs, len(ours if agents is None else set(agents)), self.kind)
        if self.kind == "number":
            deviation = float(theirs.std(ddof=1)) if len(theirs) > 1 else 0.0
            figures |= {"distance_sd": distance / deviation if deviation else None}
            figures |= {"ks": kolmogorov_smirnov(ours, theirs)}
        return figures

    def _coded(self, *samples: Sequence[Any]) -> list[NDArray[Any]]:
        """Return samples as numbers, or as numbered choices."""
        if self.kind == "number":
            return [np.array(as_numbers(sample, self.question)) for sample in samples]
        return list(choice_codes([as_choice_names(sample) for sample in samples])[1])

    def estimates(self, unit: str) -> Iterable[PopulationEstimate]:
        """Yield prediction-powered estimates of the mean, or of the share of each choice.

        Args:
            unit: Column with the name of each respondent.

        Raises:
            ConfigError: If people's table names a unit twice.
        """
        theirs = self._by_unit(self.people, unit)
        if repeated := [name for name, given in theirs.items() if len(given) > 1]:
            raise ConfigError(f"people's table has {counted(len(repeated), 'unit')} twice, such as {repeated[0]!r}")
        choices = [""] if self.kind == "number" else sorted({choice for given in theirs.values() for choice in given})
        for source, rows in self.sources.items():
            ours = self._by_unit(rows, unit)
            both = [name for name in theirs if name in ours]
            others = [name for name in ours if name not in theirs]
            if len(both) < 2 or not others:
                continue
            for choice in choices:
                people, own = (
                    [_mean(values[name], choice) for name in names]
                    for values, names in ((theirs, both), (ours, [*both, *others]))
                )
                estimate = prediction_powered_mean(people, own[: len(both)], own[len(both) :])
                yield PopulationEstimate(question=self.question, choice=choice, source=source, estimate=estimate)

    def _by_unit(self, rows: pd.DataFrame, unit: str) -> dict[str, list[Any]]:
        """Return the answers of each unit: numbers, or names of choices."""
        found: dict[str, list[Any]] = {}
        for name, answer in zip(rows[unit], rows[ANSWER], strict=True):
            if is_missing(name) or answer is None:
                continue
            one = as_numbers([answer], self.question) if self.kind == "number" else as_choice_names([answer])
            found.setdefault(_group(name), []).extend(one)
        return found


_NO_FIGURES: dict[str, Any] = dict.fromkeys(("distance", "distance_sd", "ks", "spread", "ceiling"))


def _are_named(answers: Any) -> bool:
    """Check whether answers are several sources by name, and not one dictionary of columns."""
    return isinstance(answers, Mapping) and not any(
        isinstance(one, list | tuple) and not all(isinstance(row, Mapping) for row in cast("Sequence[Any]", one))
        for one in cast("Mapping[str, Any]", answers).values()
    )


def _within(rows: pd.DataFrame, scale: AnswerScale, question: str, source: str) -> tuple[pd.DataFrame, list[str]]:
    """Return rows without the answers that a question does not allow, and what is to be said about it."""
    kept, notes = within_scale(list(rows[ANSWER]), scale, question, source)
    return rows.assign(**{ANSWER: pd.Series(kept, rows.index, object)}), notes


def _with_answers(rows: pd.DataFrame, given: Sequence[Any]) -> pd.DataFrame:
    """Return rows with other answers in place of those that are not missing."""
    values = iter(given)
    cells = [None if one is None else next(values) for one in rows[ANSWER]]
    return rows.assign(**{ANSWER: pd.Series(cells, rows.index, object)})


def _given(rows: pd.DataFrame) -> list[Any]:
    return [one for one in rows[ANSWER] if one is not None]


def _mean_over_agents(rows: pd.DataFrame, numbers: Sequence[float]) -> Estimate | None:
    """Average answers over agents: those that one agent gave with several seeds are no further respondents."""
    agents = _agents_of(rows)
    if agents is None:
        return mean_estimate(numbers, "answers")
    return mean_estimate(cluster_means(numbers, agents), "agents")


def _agents_of(rows: pd.DataFrame) -> list[str] | None:
    """Return who gave each answer that is not missing; None if the table does not name agents."""
    if AGENT not in rows.columns:
        return None
    cells = [agent for agent, answer in zip(rows[AGENT], rows[ANSWER], strict=True) if answer is not None]
    return [f"row {at}" if is_missing(agent) else f"agent {_group(agent)}" for at, agent in enumerate(cells)]


def _members(rows: pd.DataFrame, of: Sequence[Any] | None) -> pd.DataFrame:
    if of is None:
        return rows
    column, value = of
    return rows.loc[[not is_missing(cell) and _group(cell) == value for cell in rows[column]]]


def _group(cell: Any) -> str:
    """Return a cell as the name of a group or unit."""
    return as_choice_names([cell.item() if isinstance(cell, np.generic) else cell])[0]


def _shares(answers: Sequence[Any]) -> dict[str, float]:
    names, (codes,) = choice_codes([as_choice_names(answers)])
    return {name: float((codes == index).mean()) for index, name in enumerate(names)}


def _mean(answers: Sequence[Any], choice: str) -> float:
    return float(np.mean([one == choice for one in answers] if choice else answers))
