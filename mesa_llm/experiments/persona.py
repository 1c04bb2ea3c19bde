"""How far a language model reacts to who an agent is: contrasting personas, asked through the project's own models.

    for row in persona_contrast("local:1.5b"):
        print(row.name, row.difference, row.verdict)

Each contrast runs a model twice, with a persona that should score high and one that should score low, and compares the
expected answers to the same questions. They are computed from the probabilities of all answers, so that no sampling is
in them; a language model that returns none is asked several times in their place. The prompts are those of the models:
a change to one of them shows here.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from mesa_llm.agents.design import AgentDesign
from mesa_llm.engine.access import Access
from mesa_llm.engine.activation import llm_agents
from mesa_llm.engine.survey import Question
from mesa_llm.errors import ConfigError, NoProbabilities
from mesa_llm.llm.probabilities import Scoring, choice_text, expected
from mesa_llm.model.model import LLMModel
from mesa_llm.registry import find_model
from mesa_llm.statistics import Estimate, compare, is_absent, with_interval
from mesa_llm.text import NOT_KNOWN, figure_text, suggestion

CONTRASTS = resources.files("mesa_llm.experiments").joinpath("persona.toml")
"""The personas, and where each of them should show."""

N_SAMPLES = 10
"""Default number of replies to each question of a language model that returns no probabilities."""

CLEAR = 0.1
"""Difference, as a share of the range, from which a language model is said to react."""

SAMPLED = {"temperature": 1.0}
"""Settings of replies that are sampled in place of probabilities."""

Verdict = Literal["reacts", "hardly reacts", "does not react", "reacts the wrong way", "cannot tell", "no answers"]
"""A contrast in words; see `ContrastRow.verdict`."""


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """Two personas, and the questions to which they should answer differently."""

    name: str
    """What the personas differ in."""

    model: str
    """Name of the model whose agents are asked."""

    measure: str
    """`answer`: mean keyed answer to the items of a questionnaire; `number`: the number that is the answer; otherwise a
    choice, whose probability counts."""

    range: tuple[float, float]
    """Lowest and highest possible value."""

    high: tuple[str, ...]
    """Wordings of the persona that should score high."""

    low: tuple[str, ...]
    """Wordings of the persona that should score low, in the order of `high`."""

    parameters: tuple[Mapping[str, Any], ...] = ({},)
    """Parameters of the model, one run each."""

    questions: tuple[str, ...] = ()
    """Questions asked aside in place of a step of the model."""

    choices: tuple[Any, ...] = ()
    """Possible answers to the questions."""

    is_extra: bool = False
    """Whether it is asked only by its name."""

    wordings: tuple[str, ...] = ()
    """Names of the wordings, such as "third person", in the order of `high`; empty: they are only numbered."""


@dataclass(frozen=True, kw_only=True)
class ContrastRow:
    """What came of one contrast."""

    name: str
    """What the personas differ in."""

    low: float | None
    """Mean over all questions under the low persona; None without answers."""

    high: float | None
    """Mean under the high persona."""

    difference: Estimate | None
    """Mean of high minus low over pairs of equal questions, with its interval; None without a pair."""

    range: tuple[float, float]
    """Lowest and highest possible value."""

    off_list: float | None
    """Mean probability that lay on none of the answers; None where replies were sampled."""

    n_failed: int
    """Number of questions without a usable reply, under either persona."""

    samples: int
    """Number of replies to each question; 0: scored by probabilities."""

    by_wording: tuple[float | None, ...] = ()
    """Mean difference under each wording of the personas, in their order; None without a pair."""

    @property
    def wording_range(self) -> str:
        """Smallest and largest difference over the wordings of the personas: "0.1 to 1.0 by wording"."""
        return range_text(self.by_wording)

    @property
    def verdict(self) -> Verdict:
        """The contrast in words: it reacts if the interval excludes 0 and the difference is at least `CLEAR`.

        It does not react if the difference is shown to be smaller than that; an interval that holds 0 and reaches
        beyond it cannot tell.
        """
        found = self.difference
        if found is None:
            return "no answers"
        margin = CLEAR * (self.range[1] - self.range[0])
        if found.low is not None and found.high is not None and not found.low <= 0 <= found.high:
            if found.value < 0:
                return "reacts the wrong way"
            return "reacts" if found.value >= margin else "hardly reacts"
        return "does not react" if is_absent(found, margin) else "cannot tell"

    @property
    def written(self) -> dict[str, Any]:
        """The row as plain values, with its verdict."""
        lists = {"range": list(self.range), "by_wording": list(self.by_wording)}
        return {**asdict(self), **lists, "verdict": self.verdict}


def range_text(differences: Iterable[float | None]) -> str:
    """Write the smallest and the largest of some differences: "0.1 to 1.0 by wording"; "–" without any.

    Args:
        differences: Difference under each wording; None where there is none.
    """
    known = [one for one in differences if one is not None]
    return f"{decimal_text(min(known))} to {decimal_text(max(known))} by wording" if known else NOT_KNOWN


def decimal_text(value: float) -> str:
    """Write a number with two decimals; what rounds to nothing has no sign."""
    return f"{round(value, 2) + 0.0:.2f}"


def load_contrasts(names: Iterable[str] | None = None) -> list[Contrast]:
    """Load the contrasts.

    Args:
        names: Names of those that are wanted; None: all but the extra ones.

    Raises:
        ConfigError: If there is none of a name.
    """
    written = tomllib.loads(CONTRASTS.read_text(encoding="utf-8"))["contrast"]
    by_name = {one["name"]: Contrast(**{name: _frozen(value) for name, value in one.items()}) for one in written}
    wanted = [one.name for one in by_name.values() if not one.is_extra] if names is None else list(names)
    if unknown := [name for name in wanted if name not in by_name]:
        hint = suggestion(unknown[0], by_name)
        raise ConfigError(f"there is no contrast {unknown[0]!r}; there are: {', '.join(by_name)}{hint}")
    return [by_name[name] for name in wanted]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def persona_contrast(
    llm: str,
    names: Iterable[str] | None = None,
    *,
    scoring: Scoring | None = None,
    samples: int = N_SAMPLES,
    folder: Path | None = None,
    report: Callable[[ContrastRow], object] | None = None,
    access: Access | None = None,
    replays: bool = False,
) -> list[ContrastRow]:
    """Compare contrasting personas through the project's models: five traits, giving, cooperating, opinions, a risk.

    Args:
        llm: Language model of the agents.
        names: Names of the contrasts; None: all but the extra ones.
        scoring: What answers are scored by; None: by probabilities, or by replies if the language model returns none.
        samples: Number of replies to each question where they are sampled.
        folder: Folder of the run logs, which are resumed if they exist; None to keep nothing.
        report: Called with each row as soon as it is known.
        access: Endpoints and limits; None: the defaults.
        replays: Whether the logs in the folder are replayed, and nothing may be asked.

    Raises:
        ConfigError: If a contrast or a model is unknown, or the language model cannot be asked.
    """
    return run_contrasts(
        llm,
        load_contrasts(names),
        scoring=scoring,
        samples=samples,
        folder=folder,
        report=report,
        access=access,
        replays=replays,
    )


def run_contrasts(
    llm: str,
    contrasts: Iterable[Contrast],
    *,
    scoring: Scoring | None = None,
    samples: int = N_SAMPLES,
    folder: Path | None = None,
    report: Callable[[ContrastRow], object] | None = None,
    access: Access | None = None,
    replays: bool = False,
) -> list[ContrastRow]:
    """Run contrasts, such as those of a gate or of one's own; see `persona_contrast`.

    Args:
        llm: Language model of the agents.
        contrasts: The contrasts.
        scoring: What answers are scored by; None: by probabilities, or by replies if the language model returns none.
        samples: Number of replies to each question where they are sampled.
        folder: Folder of the run logs, which are resumed if they exist; None to keep nothing.
        report: Called with each row as soon as it is known.
        access: Endpoints and limits; None: the defaults.
        replays: Whether the logs in the folder are replayed, and nothing may be asked.

    Raises:
        ConfigError: If a model is unknown, or the language model cannot be asked.
    """
    if llm in ("rule", "human"):
        raise ConfigError(
            f"llm={llm!r} is no language model; personas are contrasted for local, NAME@URL, or any other"
        )
    shared = access or Access()
    rows: list[ContrastRow] = []
    try:
        if not replays:
            shared.open(llm)  # held open, so that an embedded model is loaded once
        how: Scoring = scoring or "probabilities"
        for contrast in contrasts:
            try:
                row = _Runs(contrast, llm, how, samples, folder, shared, replays).row()
            except NoProbabilities:
                if scoring is not None:
                    raise
                how = "replies"
                row = _Runs(contrast, llm, how, samples, folder, shared, replays).row()
            rows.append(row)
            if report is not None:
                report(row)
    finally:
        if access is None:
            shared.close()
    return rows


@dataclass(frozen=True)
class _Runs:
    """The runs of one contrast."""

    contrast: Contrast
    llm: str
    scoring: Scoring
    samples: int
    folder: Path | None
    access: Access
    replays: bool

    def row(self) -> ContrastRow:
        """Run both personas, and compare their answers to the same questions."""
        low, high = (self._side(side) for side in ("low", "high"))
        pairs = [key for key in high.values if key in low.values]
        lows, highs = ([side.values[key] for key in pairs] for side in (low, high))
        comparison = compare(highs, lows)
        off_list = low.off_list + high.off_list
        return ContrastRow(
            name=self.contrast.name,
            low=fmean(lows) if pairs else None,
            high=fmean(highs) if pairs else None,
            difference=None if comparison is None else comparison.difference,
            range=self.contrast.range,
            off_list=fmean(off_list) if off_list else None,
            n_failed=low.n_failed + high.n_failed,
            samples=self.samples if self.scoring == "replies" else 0,
            by_wording=tuple(self._by_wording({key: high.values[key] - low.values[key] for key in pairs})),
        )

    def _by_wording(self, differences: Mapping[Any, float]) -> Iterator[float | None]:
        """Yield the mean difference under each wording."""
        for wording in range(len(self.contrast.high)):
            own = [difference for (of, _, _), difference in differences.items() if of == wording]
            yield fmean(own) if own else None

    def _side(self, side: str) -> _Answers:
        """Run the models with all wordings of one persona."""
        answers = _Answers({}, [], 0)
        for wording, persona in enumerate(getattr(self.contrast, side)):
            for run, parameters in enumerate(self.contrast.parameters):
                place = f"{side}-{wording + 1}-{run + 1}"
                drawn: dict[Any, list[float]] = {}
                for sample in range(self.samples if self.scoring == "replies" else 1):
                    found = self._run(persona, parameters, place, sample)
                    answers = _Answers(
                        answers.values, answers.off_list + found.off_list, answers.n_failed + found.n_failed
                    )
                    for key, value in found.values.items():
                        drawn.setdefault(key, []).append(value)
                answers.values.update({(wording, run, key): fmean(values) for key, values in drawn.items()})
        return answers

    def _run(self, persona: str, parameters: Mapping[str, Any], place: str, sample: int) -> _Answers:
        """Run the model once with one persona."""
        name = self.contrast.name.replace(" ", "_")
        file = f"{name}-{place}-{self.scoring}-{sample + 1}.sqlite"
        model = find_model(self.contrast.model).load()(
            **parameters,
            llm=self.llm,
            design=AgentDesign(persona=persona, settings=SAMPLED if self.scoring == "replies" else {}),
            scoring=self.scoring,
            rng=1 + sample,
            log=None if self.folder is None else self.folder / file,
            access=self.access,
            replay=self.replays,
        )
        with closing(model):
            return self._survey(model) if self.contrast.questions else self._step(model)

    def _survey(self, model: LLMModel) -> _Answers:
        """Ask one agent of a model the questions."""
        agent = llm_agents(model)[0]
        kind = Literal[self.contrast.choices]  # pyright: ignore[reportInvalidTypeForm]
        rows = model.survey([Question(text, kind) for text in self.contrast.questions], [agent]).to_dict("records")
        answered = [(index, row) for index, row in enumerate(rows) if row["failure"] is None]
        values = {
            index: self._value(row.get("probabilities") or {choice_text(row["answer"]): 1.0}) for index, row in answered
        }
        return _Answers(values, _off_list(model), len(rows) - len(answered))

    def _step(self, model: Any) -> _Answers:
        """Run one step of a model."""
        model.step()
        if self.contrast.measure == "answer":
            values: dict[Any, float] = dict(_keyed_answers(model))
        else:
            values = {key: self._value(weights) for key, weights in choices_made(model)}
        return _Answers(values, _off_list(model), model.engine.usage.failures)

    def _value(self, probabilities: Mapping[str, float]) -> float:
        """Return what counts of the probabilities of all choices: their mean, or one of them."""
        if self.contrast.measure == "number":
            return expected(probabilities)
        return probabilities.get(self.contrast.measure, 0.0)


@dataclass(frozen=True)
class _Answers:
    """Answers under one persona."""

    values: dict[Any, float]
    """Question → value of its answer."""

    off_list: list[float]
    """Probability off the list, for each question; empty where replies were sampled."""

    n_failed: int
    """Number of questions without a usable reply."""


def _keyed_answers(model: Any) -> Iterator[tuple[Any, float]]:
    """Yield each item of a questionnaire's only administration, with the keyed answer to it."""
    for agent in llm_agents(model):
        for instrument in model.instruments:
            for number, answer in model.world.answers_to(instrument, agent.unique_id, 1).items():
                yield (agent.unique_id, instrument.name, number), instrument.scale.keyed(number, answer)


def choices_made(model: LLMModel) -> Iterator[tuple[Any, dict[str, float]]]:
    """Yield each decision of a run by agent, label and number, with the probabilities of its choices.

    Decisions without a request, or without probabilities where these are scored, had nothing to choose from.

    Args:
        model: A model whose run is recorded.
    """
    weights = {key: dict(zip(rows["choice"], rows["probability"], strict=True)) for key, rows in _by_request(model)}
    numbers: dict[Any, int] = {}
    for _, agent, _, decision, _, _, _, keys, label, _ in model.runlog.rows("decisions"):
        own = next((weights[key] for key in reversed(keys.split()) if key in weights), None)
        if decision is None or not keys or (own is None and weights):
            continue
        number = numbers[agent, label] = numbers.get((agent, label), 0) + 1
        yield (agent, label, number), own or _certain(*json.loads(decision))


def _certain(actions: list[Any], answer: Any) -> dict[str, float]:
    """Return the probabilities of a decision that is known to be this one."""
    return {actions[0][0] if actions else choice_text(answer): 1.0}


def _by_request(model: LLMModel) -> Any:
    return model.runlog.probabilities().groupby("key", sort=False)


def _off_list(model: LLMModel) -> list[float]:
    """Return the probability off the list of each request."""
    return [float(rows["off_list"].iloc[0]) for _, rows in _by_request(model)]


def contrast_heading() -> str:
    """Return the heading of lines of contrasts."""
    return _LINE.format(
        "contrast", "low", "high", "difference [95 %]", "range of wordings", "n", "off list", "failed", "verdict"
    )


def contrast_line(row: ContrastRow) -> str:
    """Return a contrast as a line: means under both personas, difference with interval and range, pairs, verdict."""
    n = 0 if row.difference is None else row.difference.n
    means = figure_text(row.low), figure_text(row.high), with_interval(row.difference), row.wording_range
    return _LINE.format(row.name, *means, n, figure_text(row.off_list), row.n_failed, row.verdict)


_LINE = "{:<24} {:>6} {:>6}  {:<24} {:<26} {:>3} {:>9} {:>7}  {}"
