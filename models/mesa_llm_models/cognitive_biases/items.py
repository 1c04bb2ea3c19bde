"""Tests of biases: templates, their fillings and drawn parameters, or the original's data set."""

from __future__ import annotations

import ast
import random
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import md5
from importlib import resources
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from mesa_llm import ConfigError
from mesa_llm.tables import Row, read_table, whole_rows
from mesa_llm_models.cognitive_biases.scores import BIASES, Bias, ConservatismRule, Metric, Parameters

OWN = resources.files("mesa_llm_models.cognitive_biases").joinpath("data", "biases.toml")
"""Our own templates, fillings and scenarios."""

OPTION = re.compile(r"^(Option \d+:)(.*)$", re.MULTILINE)
"""An option of a task: its number, and its text."""

Role = Literal["control", "treatment"]

GAP = re.compile(r"\{\{(\w+)\}\}|\[\[(\w+)\]\]")
"""A gap of a template: `{{drawn}}` or `[[filled]]`."""

NUMBER = re.compile(r"\b[oO]ption (\d+)\b")
"""How an option is named in a free answer."""


@dataclass(frozen=True)
class Template:
    """One decision task: situation, question, and options in canonical order."""

    situation: tuple[str, ...]
    """Lines that describe the situation."""

    prompt: str
    """The question."""

    options: tuple[str, ...]
    """Possible answers."""

    def filled(self, values: Mapping[str, str]) -> Template:
        """Fill the gaps with texts, each without one last full stop, question or exclamation mark.

        Args:
            values: Name of a gap → text.

        Raises:
            ConfigError: If a gap has no text, or texts refer to each other without end.
        """
        return Template(
            tuple(_filled(line, values).rstrip() for line in self.situation),
            _filled(self.prompt, values),
            tuple(_filled(option, values) for option in self.options),
        )

    def text(self, is_reversed: bool = False) -> str:
        """Write the task in three headed blocks, its options numbered from 1.

        Args:
            is_reversed: Whether the options are in reverse order.
        """
        options = self.options[::-1] if is_reversed else self.options
        listed = "\n".join(f"Option {number}: {option}" for number, option in enumerate(options, 1))
        situation = "\n".join(self.situation)
        return f"Situation:\n{situation}\n\nPrompt:\n{self.prompt}\n\nAnswer Options:\n{listed}\n"


def trimmed(text: str) -> str:
    """Remove one last full stop, question or exclamation mark from a text for a gap."""
    return text[:-1] if text.endswith((".", "?", "!")) else text


def _filled(line: str, values: Mapping[str, str]) -> str:
    for _ in range(4):  # a text may have gaps of its own
        gaps = [one or other for one, other in GAP.findall(line)]
        if not gaps:
            return line
        if lacking := [name for name in gaps if name not in values]:
            raise ConfigError(f"nothing fills the gap {lacking[0]!r} in {line!r:.100}")
        line = GAP.sub(lambda gap: trimmed(values[gap[1] or gap[2]]), line)
    raise ConfigError(f"the gaps of {line!r:.100} fill each other without end")


def canonical_index(number: int, order: Sequence[int]) -> int:
    """Return the canonical index of an option.

    Args:
        number: Number of the option on the sheet, from 1.
        order: Canonical index of each option on the sheet, in order.

    Raises:
        ValueError: If there is no such option.
    """
    if not 1 <= number <= len(order):
        raise ValueError(f"there is no option {number}; options go from 1 to {len(order)}")
    return order[number - 1]


def option_number(text: str) -> int | None:
    """Read the number of the first option, such as `Option 3`, that a free answer names; None if it names none."""
    match = NUMBER.search(text[:20_000])
    return int(match[1]) if match and len(match[1]) < 10 else None


@dataclass(frozen=True)
class BiasTest:
    """One test: a control and a treatment, and how both choices are scored."""

    bias: str
    """Name of the bias."""

    number: int
    """Number among the tests of its bias, from 1."""

    control: str
    """Text of the task without the condition that evokes the bias."""

    treatment: str
    """Text of the task with it."""

    metric: Metric
    """How the choices are scored."""

    is_reversed: bool = False
    """Whether both tasks have their options in reverse order."""

    def label(self, role: Role) -> str:
        """Return the name of one of its tasks."""
        return f"{self.bias} {self.number} {role}"

    def text(self, role: Role) -> str:
        """Return the text of one of its tasks."""
        return self.control if role == "control" else self.treatment

    def reversed(self) -> BiasTest:
        """Return the same test with the options of both tasks in the opposite order, renumbered."""
        control, treatment = _options_reversed(self.control), _options_reversed(self.treatment)
        return replace(self, control=control, treatment=treatment, is_reversed=not self.is_reversed)

    def index(self, number: int) -> int:
        """Return the canonical index of an option, from its number on the sheet.

        Raises:
            ValueError: If there is no such option.
        """
        order = list(range(self.metric.n_options))
        return canonical_index(number, order[::-1] if self.is_reversed else order)


def _options_reversed(task: str) -> str:
    options = iter([text for _, text in OPTION.findall(task)][::-1])
    return OPTION.sub(lambda match: f"{match[1]}{next(options)}", task)


# -- our own


@dataclass(frozen=True)
class Material:
    """Our own material for the tests of one bias."""

    bias: Bias
    """The bias."""

    control: Template
    """Template of the control."""

    treatment: Template
    """Template of the treatment."""

    fillings: tuple[Mapping[str, str], ...]
    """Texts for the gaps, one set for each test in turn."""

    words: Mapping[str, Mapping[str, str]]
    """Gap → the parameter it comes `from`, and the text for each of its values."""

    choices: tuple[Mapping[str, Any], ...]
    """Statements, groups or conditions, one of which is drawn for each test."""


def load_material() -> tuple[list[str], dict[str, Material]]:
    """Load our own scenarios, and the material of each bias by name."""
    written = tomllib.loads(OWN.read_text(encoding="utf-8"))
    scales: Mapping[str, list[str]] = written["scales"]
    material: dict[str, Material] = {}
    for one in written["bias"]:
        options = scales[one["options"]] if isinstance(one["options"], str) else one["options"]
        roles = {"control": options, "treatment": one.get("treatment_options", options)}
        control, treatment = (
            Template(tuple(one[role]["situation"]), one[role]["prompt"], tuple(listed))
            for role, listed in roles.items()
        )
        bias = BIASES[one["name"]]
        material[bias.name] = Material(
            bias, control, treatment, tuple(one["fillings"]), one.get("words", {}), tuple(one.get("choices", ()))
        )
    scenarios = [f"{position} at {sector}" for position in written["positions"] for sector in written["sectors"]]
    return scenarios, material


def make_tests(
    material: Material, scenario: str, n_tests: int, reversals: Iterable[bool], conservatism: ConservatismRule
) -> list[BiasTest]:
    """Make tests of one bias in one scenario, each with its own fillings and parameters.

    Args:
        material: Material of the bias.
        scenario: Position and sector of the decider; its digest is the seed of the parameters.
        n_tests: Number of tests.
        reversals: Whether the options of each test are reversed.
        conservatism: Which rule scores Conservatism.
    """
    bias = material.bias
    draws = draw_parameters(bias.name, seed_of(scenario), n_tests, len(material.choices))
    tests: list[BiasTest] = []
    for number, (parameters, is_reversed) in enumerate(zip(draws, reversals, strict=False), 1):
        if "choice" in parameters:
            parameters = {**parameters, **material.choices[parameters["choice"]]}
        filling = material.fillings[(number - 1) % len(material.fillings)]
        values = {**filling, **_texts(material, parameters), "scenario": scenario}
        control, treatment = (one.filled(values).text(is_reversed) for one in (material.control, material.treatment))
        metric = bias.metric_of(parameters, conservatism)
        tests.append(BiasTest(bias.name, number, control, treatment, metric, is_reversed))
    return tests


def _texts(material: Material, parameters: Parameters) -> dict[str, str]:
    """Write parameters as texts for gaps, with those derived from them."""
    texts = {name: _text(name, value) for name, value in parameters.items()}
    texts |= {gap: one[str(parameters[one["from"]])] for gap, one in material.words.items()}
    if "first_percentage" in parameters:
        texts["rest"] = str(100 - parameters["first_percentage"])
    if "risk" in parameters:
        texts["left"] = str(parameters["risk"] - parameters["reduction"])
    return texts


def _text(name: str, value: Any) -> str:
    if name in ("anchor", "percentage"):
        return str(int(value))
    return f"{value:,.0f}" if name == "price" else str(value)


# -- the original's data set


def load_tests(path: str | Path, conservatism: ConservatismRule = "2025") -> list[BiasTest]:
    """Load tests of the original's published data set.

    Args:
        path: Its rows as JSON (a list, or one object a line) or CSV, with the columns `bias`, `control`, `treatment`
            and `metric_params`.
        conservatism: Which rule scores Conservatism.

    Raises:
        ConfigError: If the file cannot be read, or a row lacks something; the text names file, row and column.
    """
    tests: list[BiasTest] = []
    counts: dict[str, int] = {}
    names = {name.casefold(): name for name in BIASES}
    for number, row in enumerate(_rows(Path(path)), 1):
        where = f"{path}, row {number}"
        if lacking := [column for column in ("bias", "control", "treatment") if not isinstance(row.get(column), str)]:
            raise ConfigError(f"{where}: there is no text in column {lacking[0]!r}")
        name = names.get(row["bias"].replace(" ", "").casefold())
        if name is None:
            raise ConfigError(f"{where}: bias {row['bias']!r} is unknown; there are: {', '.join(BIASES)}")
        metric = _metric(BIASES[name], row.get("metric_params"), conservatism, where)
        for role in ("control", "treatment"):
            n = len(OPTION.findall(row[role]))
            if n != metric.n_options:
                raise ConfigError(f"{where}: {role} has {n} options, and {name} has {metric.n_options}")
        counts[name] = counts.get(name, 0) + 1
        tests.append(BiasTest(name, counts[name], row["control"], row["treatment"], metric))
    if not tests:
        raise ConfigError(f"{path} holds no tests")
    return tests


def _rows(path: Path) -> list[Row]:
    """Read the rows of a table; JSON lines may be called `.json`."""
    return whole_rows(path, read_table(path, {"bias", "control", "treatment"}, missing=()))


def _metric(bias: Bias, written: Any, conservatism: ConservatismRule, where: str) -> Metric:
    """Return the metric of a row: from its parameters, and from `BIASES` where they lack a value."""
    fields = {str(name): _single(value) for name, value in _literal(written, where).items()}
    own = bias.metric
    if not fields and bias.parameter:
        raise ConfigError(f"{where}: {bias.name} needs metric_params, as its score depends on the test")
    try:
        sign = float(fields.get("k", own.sign))
        first = float(fields.get("x_1", own.control_origin))
        second = float(fields.get("x_2", -3.0 if bias.name == "PlanningFallacy" else first))
    except (TypeError, ValueError):
        raise ConfigError(f"{where}: k, x_1 and x_2 of metric_params are numbers, got {fields!r:.100}") from None
    flips = _FLIPS.get(str(fields.get("flip_treatment", own.flips)).casefold())
    if flips is None:
        raise ConfigError(f"{where}: flip_treatment of metric_params is true or false, got {fields!r:.100}")
    if bias.name == "Conservatism":
        flips = conservatism == "2024"
    return Metric(own.n_options, sign, first, second, flips)


_FLIPS = {"true": True, "1": True, "false": False, "0": False}
"""Values of `flip_treatment` in files → whether the scale of the treatment is reversed."""


def _single(value: Any) -> Any:
    """Return the value of a list of one, as the original writes single values."""
    return value[0] if isinstance(value, list) and len(cast("list[Any]", value)) == 1 else value


def _literal(written: Any, where: str) -> Mapping[Any, Any]:
    if written in (None, ""):
        return {}
    if isinstance(written, Mapping):
        return cast("Mapping[Any, Any]", written)
    try:
        value = ast.literal_eval(str(written)[:10_000])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        value = None
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: metric_params is a dictionary such as {{'k': -1}}, got {written!r:.80}")
    return cast("dict[Any, Any]", value)


# -- parameters of tests


def seed_of(scenario: str) -> int:
    """Return the seed with which the parameters of a scenario's tests are drawn: a digest of its text."""
    return int(md5(scenario.encode(), usedforsecurity=False).hexdigest(), 16) % 2**32


def draw_parameters(name: str, seed: int, n_tests: int, n_choices: int = 0) -> list[dict[str, Any]]:
    """Draw the parameters of tests of one bias, as the original draws them from the same seed.

    Args:
        name: The bias.
        seed: Seed of the draws; see `seed_of`.
        n_tests: Number of tests.
        n_choices: Number of statements, groups or conditions from which a test picks one, for biases with such a
            list; its index is then the parameter `choice`.

    Returns:
        Parameters of each test: those that its text names, and the one that changes how it is scored.
    """
    if name in _LISTED:
        rng = random.Random(seed)
        return [{"choice": rng.choice(range(n_choices))} for _ in range(n_tests)] if n_choices else [{}] * n_tests
    if name in _PLAIN:
        columns = _PLAIN[name](random.Random(seed), n_tests)
    elif name in _NUMPY:
        columns = _NUMPY[name](np.random.RandomState(seed), n_tests)
    else:
        return [{} for _ in range(n_tests)]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


Columns = dict[str, list[Any]]

_LISTED = frozenset({"SocialDesirabilityBias", "Stereotyping", "IllusionOfControl"})
"""Biases whose tests pick one entry from a list that comes with their text."""


def _picked(values: Sequence[Any]) -> Callable[[np.random.RandomState, int], list[Any]]:
    def pick(rng: np.random.RandomState, n_tests: int) -> list[Any]:
        return [values[index] for index in rng.randint(0, len(values), n_tests)]

    return pick


def _of(**values: Sequence[Any]) -> Callable[[np.random.RandomState, int], Columns]:
    return lambda rng, n_tests: {name: _picked(options)(rng, n_tests) for name, options in values.items()}


def _loss_aversion(rng: np.random.RandomState, n_tests: int) -> Columns:
    first = _picked(("guaranteed", "gamble"))(rng, n_tests)
    base = rng.randint(1, 100, n_tests).tolist()
    factor = rng.uniform(2, 100, n_tests).tolist()
    gain = [round(one * other, 1) for one, other in zip(base, factor, strict=True)]
    second = ["gamble" if one == "guaranteed" else "guaranteed" for one in first]
    return {
        "base_amount": base,
        "lambda_coef": factor,
        "choice_A": first,
        "lambda_amount": gain,
        "choice_A_in_treatment": second,
    }


def _hyperbolic(rng: np.random.RandomState, n_tests: int) -> Columns:
    first = _picked(("immediate", "delayed"))(rng, n_tests)
    sooner = rng.randint(1, 100, n_tests).tolist()
    factor = rng.uniform(1, 5, n_tests).tolist()
    later = [int(min(one * other, 100)) for one, other in zip(sooner, factor, strict=True)]
    delay = rng.randint(2, 12, n_tests).tolist()
    return {
        "earlier_reward": sooner,
        "later_coef": factor,
        "months_delay": delay,
        "scheme_A": first,
        "later_reward": later,
        "scheme_A_in_control": first,
    }


def _attribution(rng: np.random.RandomState, n_tests: int) -> Columns:
    first = _picked(("dispositional", "situational"))(rng, n_tests)
    return {"reason_A": first, "reason_A_in_control": first}


def _halo(rng: np.random.RandomState, n_tests: int) -> Columns:
    first = _picked(("positively", "negatively"))(rng, n_tests)
    return {"perception": first, "halo": first}


def _risk(rng: np.random.RandomState, n_tests: int) -> Columns:
    """Draw a risk and its reduction, in percent, both multiples of ten; the original's draw has no seed."""
    risk = [10 * int(tens) for tens in rng.randint(2, 10, n_tests)]
    return {"risk": risk, "reduction": [10 * int(rng.randint(1, one // 10)) for one in risk]}


_NUMPY: Mapping[str, Callable[[np.random.RandomState, int], Columns]] = {
    "Anchoring": lambda rng, n: {"anchor": rng.uniform(10, 90, n).tolist()},
    "AvailabilityHeuristic": _of(outcome=("failure", "success")),
    "BandwagonEffect": _of(majority_opinion=("A", "B")),
    "ConfirmationBias": _of(kind=("positive", "negative")),
    "FramingEffect": lambda rng, n: {"first_percentage": rng.randint(51, 90, n).tolist()},
    "FundamentalAttributionError": _attribution,
    "HaloEffect": _halo,
    "HindsightBias": lambda rng, n: {"percentage": rng.uniform(-50, 50, n).tolist()},
    "HyperbolicDiscounting": _hyperbolic,
    "LossAversion": _loss_aversion,
    "MentalAccounting": lambda rng, n: {"price": (1000.0 * rng.randint(1, 100, n)).tolist()},
    "OptimismBias": _of(event_kind=("positive", "negative")),
    "PlanningFallacy": _of(estimation_update=(10, 20, 30, 40)),
    "RiskCompensation": _risk,
}


def _in_tens(rng: random.Random, n_tests: int) -> Columns:
    return {name: [rng.randint(10, 50) for _ in range(n_tests)] for name in ("increase", "decrease")}


def _shares(rng: random.Random, n_tests: int) -> Columns:
    names = ("survivor_percentage", "non_survivor_percentage")
    return {name: [rng.randint(90, 95) for _ in range(n_tests)] for name in names}


_PLAIN: Mapping[str, Callable[[random.Random, int], Columns]] = {
    "DispositionEffect": _in_tens,
    "NotInventedHere": lambda rng, n: {
        "externality": [rng.choice(("organizational", "contextual", "spatial")) for _ in range(n)]
    },
    "SurvivorshipBias": _shares,
}


def is_reversed(seed: int) -> bool:
    """Check whether a seed shows the options in reverse, in control and treatment alike."""
    return random.Random(seed).random() < 0.5
