"""The judge: dimensions, prompts, judgements, its rule twin, and the agreement of judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Protocol, TypedDict

import numpy as np
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from mesa_llm import ConfigError, Decision, Failure, Settings
from mesa_llm.llm.protocol import LLM
from mesa_llm.tables import read_text
from mesa_llm.text import counted
from mesa_llm.tools.tool import describe
from mesa_llm_models.discussion.world.text import turns
from mesa_llm_models.sotopia import text
from mesa_llm_models.sotopia.episodes import Episode, Rating
from mesa_llm_models.sotopia.scenario import SotopiaScenario
from mesa_llm_models.sotopia.visibility import ENVIRONMENT, WHOLE, portrait, visible_text

MAX_REASON = 600
"""Maximum number of characters of the reason for a score."""

REPLY_TOKENS = 4_000
"""Maximum number of tokens of a judgement: a reason and a score for each person and dimension."""


@dataclass(frozen=True)
class Dimension:
    """A dimension rated by a judge."""

    name: str
    """Name in judgements."""

    code: str
    """Short name in tables."""

    low: int
    """Minimum score."""

    high: int
    """Maximum score."""

    meaning: str
    """Question to the judge."""

    bands: tuple[tuple[int, int, str], ...] = ()
    """Lowest score, highest score and meaning of each band."""

    @property
    def text(self) -> str:
        """Description for the judge: name, range, question and bands."""
        return text.dimension_text(self.name, self.low, self.high, self.meaning, self.bands)


def _banded(ends: Sequence[int], meanings: Sequence[str]) -> tuple[tuple[int, int, str], ...]:
    return tuple(zip(ends[::2], ends[1::2], meanings, strict=True))


STANDARD = (
    Dimension("believability", "BEL", 0, 10, text.MEANINGS["believability"]),
    Dimension("relationship", "REL", -5, 5, text.MEANINGS["relationship"]),
    Dimension("knowledge", "KNO", 0, 10, text.MEANINGS["knowledge"]),
    Dimension("secret", "SEC", -10, 0, text.MEANINGS["secret"]),
    Dimension("social_rules", "SOC", -10, 0, text.MEANINGS["social_rules"]),
    Dimension("financial_and_material_benefits", "FIN", -5, 5, text.MEANINGS["financial_and_material_benefits"]),
    Dimension("goal", "GOAL", 0, 10, text.MEANINGS["goal"]),
)
"""The seven dimensions, in the order of a judgement."""

_BANDS = {
    "believability": _banded((0, 3, 4, 6, 7, 8, 9, 10), text.GRADES),
    "knowledge": _banded((0, 3, 4, 6, 7, 8, 9, 10), text.GRADES),
    "goal": _banded((0, 3, 4, 6, 7, 8, 9, 10), text.GRADES),
    "relationship": _banded((-5, -3, -2, 0, 1, 3, 4, 5), text.MOVES),
    "financial_and_material_benefits": _banded((-5, -3, -2, 0, 1, 3, 4, 5), text.MOVES),
    "secret": _banded((-10, -7, -6, -4, -3, -1, 0, 0), text.SECRETS),
    "social_rules": _banded((-10, -8, -7, -5, -4, -2, -1, 0), text.FAULTS),
}

BANDED = tuple(Dimension(one.name, one.code, one.low, one.high, one.meaning, _BANDS[one.name]) for one in STANDARD)
"""The same dimensions with the meaning of score bands."""

TABLE_ORDER = ("SOC", "SEC", "FIN", "REL", "KNO", "GOAL", "BEL")
"""Order of the published tables."""


_COLUMNS = {"episode", "situation", "pair", "seat", "tested", "judge", "sample", "swapped", "failure", "kind", "hard"}
_RESULTS = {"source", "name", "judgements", "missing", "overall", "min-max", "success", "ends", "judge_failures"}
_COUNTS = {"scored", "not_scored", "scored_in_part"}
RESERVED_NAMES = {*_COLUMNS, *_RESULTS, *_COUNTS, *dir(BaseModel)}
"""Reserved names for dimensions: other columns of tables, other results, and attributes of pydantic models."""


class _Written(BaseModel):
    name: str = Field(pattern=r"^[a-z]\w*$")
    description: str
    low: int
    high: int
    code: str = ""


def dimensions_of(name: str) -> tuple[Dimension, ...]:
    """Return the rated dimensions.

    Args:
        name: `standard`, `banded`, or a JSON file with a list of objects with `name`, `description`, `low`, `high`.

    Raises:
        ConfigError: If the file cannot be read, or a dimension has an invalid range, name or code.
    """
    if name in ("standard", "banded"):
        return STANDARD if name == "standard" else BANDED
    try:
        entries = TypeAdapter(list[_Written]).validate_json(read_text(name))
    except ConfigError as error:
        raise ConfigError(f"dimensions={name!r}: {error}; choose standard or banded, or name a JSON file") from None
    except ValidationError as error:
        raise ConfigError(f"{name}: {describe(error)}; expected a list of {{name, description, low, high}}") from None
    if not entries or any(one.low >= one.high for one in entries) or len({w.name for w in entries}) < len(entries):
        raise ConfigError(f"{name}: expected at least one dimension, with unique names, each with low below high")
    dimensions = tuple(Dimension(w.name, w.code or w.name, w.low, w.high, w.description) for w in entries)
    names = {text for dimension in dimensions for text in (dimension.name, dimension.code)}
    if clashes := sorted(RESERVED_NAMES & names):
        raise ConfigError(
            f"{name}: {clashes[0]!r} already has a meaning in tables of scores; choose another name or code"
        )
    if len({one.code for one in dimensions}) < len(dimensions):
        raise ConfigError(f"{name}: codes must be unique, got {', '.join(one.code for one in dimensions)}")
    return dimensions


@lru_cache(maxsize=64)
def judgement_type(dimensions: tuple[Dimension, ...], n_persons: int = 2) -> Any:
    """Return the type of a judgement. One score out of range makes all of it invalid.

    Args:
        dimensions: Dimensions to rate.
        n_persons: Number of persons, called `agent_1`, `agent_2`, … in it.

    Returns:
        Nested dictionaries: person → dimension → `reasoning` and `score`.
    """
    marks: dict[str, Any] = {}
    for one in dimensions:
        reason = Annotated[str, Field(max_length=MAX_REASON, description=text.REASON)]
        score = Annotated[int, Field(ge=one.low, le=one.high)]
        marks[one.name] = _fields(f"Mark_{one.name}", {"reasoning": reason, "score": score})
    person = _fields("Marks", marks)
    return _fields("Judgement", {f"agent_{number}": person for number in range(1, n_persons + 1)})


def _fields(name: str, types: dict[str, Any]) -> Any:
    make: Any = TypedDict  # type checkers want the fields written out
    return make(name, types)


class JudgingModel(Protocol):
    """The part of a `SotopiaModel` used for judging."""

    scenario: SotopiaScenario
    dimensions: tuple[Dimension, ...]
    n_judge_failures: int

    @property
    def judges(self) -> list[str | LLM]:
        """Language models of the judges."""
        ...

    def judge_name(self, judge: str | LLM) -> str:
        """Return the name of a judge in results."""
        ...

    def consult(
        self, llm: str | LLM, prompts: Sequence[str], *, answer: Any, settings: Settings, rule: Callable[[str], Any]
    ) -> list[Decision | Failure]:
        """Ask a language model that does not take part."""
        ...


@dataclass(frozen=True, eq=False)  # each is one of its own
class _Job:
    episode: Episode
    judge: str
    sample: int
    is_swapped: bool

    @property
    def seats(self) -> list[int]:
        """Seats in the order of presentation to the judge."""
        seats = list(range(len(self.episode.persons)))
        return seats[::-1] if self.is_swapped else seats


def judge_episodes(model: JudgingModel, episodes: Sequence[Episode]) -> list[Rating]:
    """Have all judges of a model judge episodes.

    A failed judgement is retried `judge_retries` times, and otherwise stays missing.

    Args:
        model: The model.
        episodes: Completed episodes.

    Returns:
        One rating for each judge, judgement and person, without scores where the judgement is missing.
    """
    chosen, ratings = model.scenario, list[Rating]()
    for judge in model.judges:
        name = model.judge_name(judge)
        jobs = [
            _Job(episode, name, sample, is_swapped)
            for episode in episodes
            for sample in range(chosen.judgements)
            for is_swapped in ((False, True) if chosen.swap else (False,))
        ]
        failures: dict[_Job, Failure] = {}
        for _ in range(1 + chosen.judge_retries):
            decisions = _consulted(model, judge, jobs)
            ratings += [
                one for job in jobs if not isinstance(decisions[job], Failure) for one in _rows(job, decisions[job])
            ]
            failures = {job: decisions[job] for job in jobs if isinstance(decisions[job], Failure)}
            model.n_judge_failures += len(failures)
            jobs = list(failures)
            if not jobs:
                break
        else:
            ratings += [_lacking(job, seat, failures[job].reason) for job in jobs for seat in job.seats]
    return ratings


def _consulted(model: JudgingModel, judge: str | LLM, jobs: Sequence[_Job]) -> dict[_Job, Any]:
    """Request judgements from one judge, with one answer type per batch of episodes with equally many persons."""
    decisions: dict[_Job, Any] = {}
    for n_persons in sorted({len(job.seats) for job in jobs}):
        alike = [job for job in jobs if len(job.seats) == n_persons]
        decisions |= _consulted_alike(model, judge, alike, judgement_type(model.dimensions, n_persons))
    return decisions


def _consulted_alike(model: JudgingModel, judge: str | LLM, jobs: Sequence[_Job], answer: Any) -> dict[_Job, Any]:
    if judge == "rule":  # it reads the episodes directly
        prompts = [str(index) for index in range(len(jobs))]
    else:
        prompts = [judge_prompt(job.episode, job.seats, model.dimensions) for job in jobs]
    by_prompt = dict(zip(prompts, jobs, strict=True))

    def by_rule(prompt: str) -> dict[str, Any]:
        job = by_prompt[prompt]
        return rule_judgement(job.episode, job.seats, model.dimensions)

    settings = Settings(temperature=model.scenario.judge_temperature, max_tokens=REPLY_TOKENS)
    decisions = model.consult(judge, prompts, answer=answer, settings=settings, rule=by_rule)
    return dict(zip(jobs, decisions, strict=True))


def _rows(job: _Job, decision: Any) -> list[Rating]:
    rows: list[Rating] = []
    for number, seat in enumerate(job.seats, 1):
        marks = decision.answer[f"agent_{number}"]
        scores = {name: mark["score"] for name, mark in marks.items()}
        reasons = {name: mark["reasoning"] for name, mark in marks.items()}
        rows.append(Rating(job.episode.index, seat, job.judge, job.sample, job.is_swapped, scores, reasons))
    return rows


def _lacking(job: _Job, seat: int, reason: str) -> Rating:
    return Rating(job.episode.index, seat, job.judge, job.sample, job.is_swapped, None, {}, reason)


def judge_prompt(episode: Episode, seats: Sequence[int], dimensions: Sequence[Dimension]) -> str:
    """Write a judge's prompt, with all secrets and goals.

    Args:
        episode: The episode.
        seats: Seats in the order in which the persons are presented.
        dimensions: Dimensions to rate.
    """
    rules = episode.model.scenario.rules
    lines = [one for one in episode.room.lines if not (rules == "original" and "did nothing" in one.text)]
    persons = [
        {
            "number": number,
            "name": episode.characters[seat].name,
            "portrait": portrait(episode.characters[seat], WHOLE),
            "goal": visible_text(episode.goals[seat], ENVIRONMENT, rules=rules),
        }
        for number, seat in enumerate(seats, 1)
    ]
    return episode.model.prompt(
        "judge.md",
        text=visible_text(episode.situation.text, ENVIRONMENT, rules=rules),
        persons=persons,
        happened=turns(lines),
        dimensions=[one.text for one in dimensions],
    )


# -- the rule twin of a judge


def rule_judgement(episode: Episode, seats: Sequence[int], dimensions: Sequence[Dimension]) -> dict[str, Any]:
    """Judge by rule: the goal score is the share a rule twin agreed on. Texts are not interpreted.

    Args:
        episode: The episode.
        seats: Seats in judging order.
        dimensions: Dimensions to rate. One unknown to the rule gets the possible score closest to zero.

    Returns:
        A judgement; see `judgement_type`.
    """
    judgement: dict[str, Any] = {}
    for number, seat in enumerate(seats, 1):
        by_rule = _by_rule(episode, seat)
        marks: dict[str, Any] = {}
        for one in dimensions:
            score, reason = by_rule.get(one.name, (0, "the rule does not look at it"))
            marks[one.name] = {"reasoning": reason, "score": min(max(score, one.low), one.high)}
        judgement[f"agent_{number}"] = marks
    return judgement


def _by_rule(episode: Episode, seat: int) -> dict[str, tuple[int, str]]:
    lines, agent_id, character = episode.room.lines, episode.persons[seat].unique_id, episode.characters[seat]
    own = [line for line in lines if line.speaker_id == agent_id]
    texts = [line.text for line in own if line.kind == "say"]
    news = {line.text for line in lines if line.kind == "say" and line.is_heard_by(agent_id)} - {*texts}
    share = episode.agreed_share(seat)
    repeated = len(texts) - len(set(texts))
    has_told = bool(character.secret) and character.secret.casefold() in " ".join(texts).casefold()
    is_abrupt = bool(own) and own[0].kind == "leave"
    agreed = share is not None
    return {
        "believability": (10 - 2 * repeated, f"repeated itself {counted(repeated, 'time')}"),
        "relationship": (2 if agreed else -1, "they agreed" if agreed else "they did not agree"),
        "knowledge": (len(news), f"heard {counted(len(news), 'different thing')}"),
        "secret": (-10 if has_told else 0, "told its secret" if has_told else "kept its secret"),
        "social_rules": (-2 if is_abrupt else 0, "left without a word" if is_abrupt else "broke no rule"),
        "financial_and_material_benefits": ((share or 0) - 5 if agreed else 0, "by its share of what was agreed"),
        "goal": (share or 0, f"got {share} of 10" if agreed else "nothing was agreed"),
    }


# -- agreement


def intraclass(scores: Any) -> float:
    """Compute ICC(2,1): the absolute agreement of single judges, as a share of all variance.

    Args:
        scores: Score by judge and case, shape `(judges, cases)`. Cases with a NaN are ignored.

    Returns:
        At most 1; NaN with fewer than two judges or cases, or without any variance.

    Source:
        Shrout and Fleiss (1979), Psychological Bulletin 86(2), case 2.
    """
    table = np.asarray(scores, dtype=float)
    table = table[:, ~np.isnan(table).any(axis=0)]
    n_judges, n_cases = table.shape
    if n_judges < 2 or n_cases < 2:
        return float("nan")
    mean = table.mean()
    of_cases = n_judges * ((table.mean(axis=0) - mean) ** 2).sum() / (n_cases - 1)
    of_judges = n_cases * ((table.mean(axis=1) - mean) ** 2).sum() / (n_judges - 1)
    rest = table - table.mean(axis=0) - table.mean(axis=1)[:, None] + mean
    error = (rest**2).sum() / ((n_cases - 1) * (n_judges - 1))
    below = of_cases + (n_judges - 1) * error + n_judges * (of_judges - error) / n_cases
    return float((of_cases - error) / below) if below else float("nan")
