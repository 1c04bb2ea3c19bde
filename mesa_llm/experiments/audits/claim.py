"""Claims: what a study says of a model, written so that it can be tested.

[claims.retaliation]
measure = "guests_cooperation"
between = [{noise = 0.0}, {noise = 0.2}]
expects = "first is greater"
smallest_effect = 0.05
kind = "mechanism"

A claim can be about agents, a subgroup, the difference between two subgroups, or the spread between runs:

[claims.inequality]
measure = "wealth"
over_agents = "gini"
subgroup = {side = "left"}
against = {side = "right"}
statistic = "spread"
smallest_effect = 0.1
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from mesa_llm.agents.design import AgentDesign
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.audits.dimensions import Setting
from mesa_llm.experiments.runs.agent_statistic import AgentStatistic
from mesa_llm.model.model import LLMModel
from mesa_llm.model.scenario import parameters_of
from mesa_llm.text import suggestion
from mesa_llm.tools.tool import describe

Kind = Literal["exploratory", "mechanism", "policy"]
"""What a claim is for, and so how much has to be audited before a verdict on it."""

Statistic = Literal["mean", "spread"]
"""What a claim says of its measure over the runs: its mean, or how far the runs lie apart."""

DIMENSIONS_NEEDED: Mapping[Kind, int] = {"exploratory": 3, "mechanism": 6, "policy": 9}
"""Kind of claim → number of dimensions that must be audited for a verdict."""

MODELS_NEEDED: Mapping[Kind, int] = {"exploratory": 1, "mechanism": 1, "policy": 2}
"""Kind of claim → number of language models that must be audited for a verdict."""

_INTERVAL = re.compile(r"value in \[\s*(-?[\d.]+(?:e-?\d+)?)\s*,\s*(-?[\d.]+(?:e-?\d+)?)\s*\]")


@dataclass(frozen=True)
class Expectation:
    """What a claim expects of its effect."""

    text: str
    """As it is written; empty: nothing, so that only changes of the level are tested."""

    low: float
    """Smallest value that it allows."""

    high: float
    """Largest value."""

    is_equivalence: bool
    """Whether the effect has to be shown to lie between the two, in place of beyond 0."""


def expectation_of(text: str, smallest_effect: float) -> Expectation:
    """Read what a claim expects.

    Args:
        text: `first is greater`, `second is greater`, `no difference`, `value in [a, b]`, or empty.
        smallest_effect: Smallest effect of interest.

    Raises:
        ConfigError: If it is none of these.
    """
    infinite = float("inf")
    known = {
        "": Expectation(text, -infinite, infinite, is_equivalence=True),
        "first is greater": Expectation(text, 0, infinite, is_equivalence=False),
        "second is greater": Expectation(text, -infinite, 0, is_equivalence=False),
        "no difference": Expectation(text, -smallest_effect, smallest_effect, is_equivalence=True),
    }
    if text in known:
        return known[text]
    if (found := _INTERVAL.fullmatch(text)) and float(found[1]) < float(found[2]):
        return Expectation(text, float(found[1]), float(found[2]), is_equivalence=True)
    names = ", ".join(filter(None, known))
    raise ConfigError(f"expects = {text!r}: wanted one of {names}, or value in [a, b] with a below b")


@dataclass(frozen=True)
class AuditClaim:
    """A measure of a model, alone or as the difference between two settings, and what is expected of it."""

    name: str
    """Its name."""

    measure: str
    """Name of a result; `scores.anna` is a result's own entry. For a statistic over agents, that statistic's name."""

    between: tuple[Setting, ...]
    """The two settings that are compared, first minus second; or one, whose level is the claim."""

    expectation: Expectation
    """What is expected of the difference, or of the level."""

    smallest_effect: float
    """Smallest effect of interest, in the unit of the measure: what is smaller counts as no change."""

    kind: Kind
    """What it is for."""

    words: tuple[str, ...]
    """Words by which somebody names the experiment who recognises it."""

    statistic: Statistic = "mean"
    """What is claimed of the measure over the runs."""

    over_agents: AgentStatistic | None = None
    """The statistic over the agents of a run that is its measure; None for a result of the model."""

    @property
    def quantity(self) -> str:
        """What the claim is about: its measure, or the spread of its measure between runs."""
        return self.measure if self.statistic == "mean" else f"spread between runs of {self.measure}"

    @property
    def text(self) -> str:
        """The claim as a sentence."""
        if len(self.between) == 1:
            return f"{self.quantity}: {self.expectation.text or 'its level'}"
        first, second = (setting_text(one) for one in self.between)
        expected = self.expectation.text or "the difference"
        return f"{self.quantity}, {first} (first) against {second} (second): {expected}"

    def effects(self, columns: Sequence[Sequence[float]]) -> list[float]:
        """Return the effect of the claim at each seed, of which the mean is estimated.

        Args:
            columns: For each of its settings, the measure in each run, in the same order of seeds; NaN if missing.

        Returns:
            The measure of each run, or the difference between the two settings; for a spread, the same of how far each
            run lies from the median of its setting, times √(n / (n - 1)) so that it does not depend on the number of
            runs. The mean of these deviations is compared as by Brown and Forsythe, seed by seed.

        Source:
            Brown and Forsythe (1974), Robust tests for the equality of variances, JASA 69(346).
        """
        first, *others = [np.asarray(self._deviations(one) if self.statistic == "spread" else one) for one in columns]
        return (first - others[0] if others else first).tolist()

    @staticmethod
    def _deviations(values: Sequence[float]) -> list[float]:
        finite = [value for value in values if math.isfinite(value)]
        if len(finite) < 2:
            return [math.nan] * len(values)
        median, factor = float(np.median(finite)), math.sqrt(len(finite) / (len(finite) - 1))
        return [abs(value - median) * factor for value in values]

    def value_in(self, row: Mapping[str, Any]) -> float | None:
        """Return the measure of one run; None if it is missing.

        Args:
            row: Results of the run.

        Raises:
            ConfigError: If the run has no such result, or it is no number.
        """
        value: Any = row
        for index, part in enumerate([self.measure] if self.measure in row else self.measure.split(".")):
            marked = f"{part} (result)"
            if not isinstance(value, Mapping) or not (part in value or (not index and marked in value)):
                known = ", ".join(name for name, one in row.items() if _is_number(one) or isinstance(one, Mapping))
                raise ConfigError(f"claim {self.name}: no result is called {self.measure!r}; the runs have: {known}")
            value = value.get(marked, value.get(part))
        if value is None:
            return None
        if not _is_number(value):
            raise ConfigError(f"claim {self.name}: {self.measure} is {value!r:.40}, which is not a number")
        return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or value is None


def setting_text(setting: Setting) -> str:
    """Return a setting in words."""
    parts = [f"{name}={value}" for name, value in setting.parameters.items()]
    for name, value in setting.design.items():
        inner = value.items() if isinstance(value, Mapping) else ((name, value),)
        parts += [f"{inner_name}={inner_value}" for inner_name, inner_value in inner]
    parts += [f"{name}={value}" for name, value in setting.options.items()]
    parts += [f"llm={setting.llm}"] if setting.llm else []
    return ", ".join(parts) or "as it is"


class _WrittenClaim(BaseModel):
    """A claim as it stands in a file."""

    model_config = ConfigDict(extra="forbid")

    measure: str
    between: tuple[dict[str, Any], dict[str, Any]] | None = None
    expects: str = ""
    smallest_effect: float = Field(gt=0, allow_inf_nan=False)
    kind: Kind = "exploratory"
    words: tuple[str, ...] = ()
    statistic: Statistic = "mean"
    over_agents: str = ""
    subgroup: dict[str, Any] = {}
    against: dict[str, Any] = {}

    @property
    def agents(self) -> AgentStatistic | None:
        """The statistic over agents; None for a result of the model.

        Raises:
            ConfigError: If it is invalid.
        """
        if not (self.over_agents or self.subgroup or self.against):
            return None
        return AgentStatistic(self.measure, self.over_agents or "mean", self.subgroup, self.against)

    @field_validator("between", mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value


def read_claims(file: str | Path, model: type[LLMModel]) -> list[AuditClaim]:
    """Read the claims of a TOML file.

    Args:
        file: The file; each claim is a table `[claims.NAME]`.
        model: The model that they are about.

    Raises:
        ConfigError: If the file cannot be read, has no claims, or one of them is invalid.
    """
    try:
        document = tomllib.loads(Path(file).read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise ConfigError(f"{file}: it is nested too deeply") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file}: the claims cannot be read: {error}") from error
    written = document.get("claims")
    if not isinstance(written, dict) or not written:
        raise ConfigError(f"{file} has no claims; write each as a table [claims.NAME], with a measure")
    return [claim_from(name, fields, model, where=f"{file}: ") for name, fields in written.items()]


def claim_from(name: str, fields: Any, model: type[LLMModel], *, where: str = "") -> AuditClaim:
    """Make a claim of its fields.

    Args:
        name: Its name.
        fields: `measure`, `smallest_effect` and, unless the level is meant, `between`; `expects`, `kind`, `words`;
            `statistic`, `over_agents`, `subgroup` and `against`.
        model: The model that it is about.
        where: Where it is written, for errors.

    Raises:
        ConfigError: If a field is missing, unknown or invalid.
    """
    try:
        written = _WrittenClaim.model_validate(fields)
        expectation = expectation_of(written.expects, written.smallest_effect)
        settings = [_setting(one, model) for one in written.between or ({},)]
        agents = written.agents
    except ValidationError as error:
        raise ConfigError(f"{where}claim {name}: {describe(error)}") from None
    except ConfigError as error:
        raise ConfigError(f"{where}claim {name}: {error}") from None
    is_of_level = expectation.text.startswith("value in") or not expectation.text
    if len(settings) == 1 and not is_of_level and not written.against:
        raise ConfigError(
            f"{where}claim {name}: {written.expects!r} needs two settings to compare, between = [{{…}}, {{…}}], or two "
            "subgroups, subgroup = {…} and against = {…}"
        )
    if len(settings) == 1 and written.statistic == "spread" and not is_of_level:
        raise ConfigError(
            f"{where}claim {name}: {written.expects!r} of a spread needs two settings to compare, "
            "between = [{…}, {…}]"
        )
    measure = written.measure if agents is None else agents.name
    own = (name, measure, tuple(settings), expectation, written.smallest_effect, written.kind, written.words)
    return AuditClaim(*own, written.statistic, agents)


def _setting(fields: Mapping[str, Any], model: type[LLMModel]) -> Setting:
    """Read a setting: parameters of the scenario by name, `design`, `llm`, `activation`.

    Raises:
        ConfigError: If a name is unknown or a value invalid.
    """
    known = {parameter.name: parameter for parameter in parameters_of(model)}
    parameters, options = dict[str, Any](), dict[str, Any]()
    design: Mapping[str, Any] = {}
    for name, value in fields.items():
        if name in known:
            known[name].check(value)
            parameters[name] = value
        elif name == "design":
            design = AgentDesign.from_json(value).to_json()
        elif name == "activation":
            options[name] = value
        elif name != "llm":
            hint = suggestion(name, [*known, "design", "llm", "activation"])
            raise ConfigError(f"{model.__name__} has no parameter {name!r}{hint}")
    return Setting(parameters, design, str(fields.get("llm", "")), options)


def level_of(model: type[LLMModel], measure: str, smallest_effect: float) -> AuditClaim:
    """Return a claim that only the level of a measure stays as it is.

    Args:
        model: The model.
        measure: Name of a result.
        smallest_effect: Smallest change of interest.
    """
    return claim_from(measure, {"measure": measure, "smallest_effect": smallest_effect}, model)


def compared(claims: Sequence[AuditClaim]) -> set[str]:
    """Return the paths of what claims compare, which no perturbation may change; see `Setting.names`."""
    settings = [setting for claim in claims if len(claim.between) > 1 for setting in claim.between]
    return {path for one in settings for path in (*one.names, *(("llm",) if one.llm else ()))}
