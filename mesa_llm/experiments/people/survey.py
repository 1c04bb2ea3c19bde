"""Surveys of a model by a language model, by rule, at random and without personas, each compared with people.

found = compare_survey(SocialModel, [mood], "people.csv", llm="openai/gpt-5-mini", folder="runs/mood")
print(found.text())
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from mesa_llm.agents.design import AgentDesign
from mesa_llm.engine.activation import llm_agents
from mesa_llm.engine.survey import Question
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.people.answers import AGENT, AnswerTable, is_missing
from mesa_llm.experiments.people.comparison import PeopleComparison, Source, compare_with
from mesa_llm.model.model import LLMModel
from mesa_llm.tables import MISSING
from mesa_llm.text import one_line

NO_PERSONA = "no persona"
"""Name of the source whose agents have no personas."""

BASELINES = ("rule", "random", NO_PERSONA)
"""Sources beside the language model, unless others are chosen."""


def compare_survey(
    model: type[LLMModel],
    questions: Iterable[Question | str],
    people: Source,
    *,
    llm: str,
    folder: str | Path | None = None,
    steps: int = 0,
    seeds: Sequence[int] = (1,),
    baselines: Sequence[str] = BASELINES,
    design: AgentDesign | None = None,
    parameters: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    by: str | Sequence[str] = (),
    as_choices: Collection[str] = (),
    unit: str | None = None,
    missing: Collection[str] = MISSING,
    encoding: str | None = None,
) -> PeopleComparison:
    """Survey a model's agents, and compare their answers with people's, beside those of rule twins and of chance.

    The agents' traits, and their name in the column `name`, are columns of the answers, for `by` and `unit`.

    Args:
        model: The model.
        questions: The questions, or their texts; people's table names them by `name`, or by their text.
        people: What people said: a file or a table.
        llm: Language model of the agents.
        folder: Folder of the run logs, which are resumed if they exist; None to keep nothing.
        steps: Number of steps before the survey.
        seeds: Seeds; each source runs once with each.
        baselines: Sources beside the language model: `rule`, `random`, and `no persona` (the language model, with
            agents that have neither persona nor traits).
        design: Design of the agents.
        parameters: Parameters of the model.
        options: Options of the model, such as `max_dollars` or `access`.
        by, as_choices, unit, missing, encoding: As for `compare_with`. People's answers that a question's type does not
            allow are taken for missing.

    Raises:
        ConfigError: If nothing can be compared, or a baseline is unknown.
        MesaLLMError: If a run failed.
    """
    asked = list(questions)
    own = design or AgentDesign()
    sources: dict[str, tuple[str, AgentDesign | None]] = {llm: (llm, design)}
    for name in baselines:
        if name not in BASELINES:
            raise ConfigError(f"there is no baseline {name!r}; there are: {', '.join(BASELINES)}")
        chosen = (llm, replace(own, persona="none")) if name == NO_PERSONA else (name, design)
        sources.setdefault(name, chosen)
    if llm in ("rule", "random"):  # these have no persona to lose
        sources.pop(NO_PERSONA, None)
    surveys = _Surveys(model, asked, steps, dict(parameters or {}), dict(options or {}), folder)
    tables, notes = dict[str, Source](), list[str]()
    for name, (mind, chosen) in sources.items():
        answers = pd.concat([surveys.run(name, mind, chosen, seed) for seed in seeds], ignore_index=True)
        failures = [why for why in answers["failure"] if not is_missing(why)]
        if len(failures) == len(answers):
            notes.append(f"{name} is left out, as it has no answers: {str(failures[0]).rstrip('.')}")
        else:
            tables[name] = answers
    if not tables:
        raise ConfigError(f"nobody answered: {notes[0]}")
    scales = {(one.name or one.text): one.answer for one in asked if isinstance(one, Question)}
    found = compare_with(
        people,
        tables,
        by=by,
        as_choices=as_choices,
        unit=unit,
        scales={one_line(name): answer for name, answer in scales.items()},
        missing=missing,
        encoding=encoding,
    )
    return replace(found, notes=[*notes, *found.notes])


@dataclass
class _Surveys:
    """Surveys of one model by different sources."""

    model: type[LLMModel]
    questions: Sequence[Question | str]
    steps: int
    parameters: dict[str, Any]
    options: dict[str, Any]
    folder: str | Path | None

    traits: dict[int, pd.DataFrame] = field(default_factory=dict[int, pd.DataFrame])
    """Seed → traits of its agents, from the first source: a design may take them away."""

    def run(self, name: str, llm: str, design: AgentDesign | None, seed: int) -> pd.DataFrame:
        """Run a model, survey its agents, and return their answers with their traits."""
        log = None if self.folder is None else Path(self.folder) / f"{_file_name(name)}-{seed}.sqlite"
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
        model = self.model(llm=llm, design=design, rng=seed, log=log, **self.parameters, **self.options)
        with closing(model):
            self.traits.setdefault(seed, traits_of(model))
            while model.running and model.time < self.steps:
                model.step()
            answers = model.survey(self.questions).assign(seed=seed)
        return AnswerTable(name, answers, is_long=True).with_traits(self.traits[seed].assign(seed=seed)).frame


def traits_of(model: LLMModel) -> pd.DataFrame:
    """Return the agents' traits as a table, with the columns `agent` and `name`.

    Args:
        model: The model.
    """
    rows = [
        {AGENT: agent.unique_id, "name": agent.config.name, **_plain_traits(agent.config.traits)}
        for agent in llm_agents(model)
    ]
    return pd.DataFrame(rows)


def _plain_traits(traits: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in traits.items() if not isinstance(value, list | dict)}


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
