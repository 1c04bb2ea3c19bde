"""The thirty biases: how a test of each is scored, and which parameters its tests draw.

Source:
    Malberg et al. (2025), A Comprehensive Evaluation of Cognitive Biases in LLMs, NLP4DH (arXiv 2410.15413).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import md5
from itertools import product
from typing import Any, Literal

import numpy as np

from mesa_llm import ConfigError

ConservatismRule = Literal["2024", "2025"]
"""Whether Conservatism turns the treatment around, as in the published numbers (2024), or not (2025)."""

Parameters = Mapping[str, Any]
"""Parameters drawn for a test: name → value."""

TINY = 1e-8
"""Added to the denominator of every score, as in the original."""


@dataclass(frozen=True)
class Metric:
    """How one test is scored: by how far the choices of control and treatment lie from their origins."""

    n_options: int
    """Number of options, the same in control and treatment."""

    sign: float = -1.0
    """Direction of the bias; -1: the choice of the treatment lies farther from its origin where there is a bias."""

    control_origin: float = 0.0
    """Index from which the choice of the control is measured."""

    treatment_origin: float = 0.0
    """Index from which the choice of the treatment is measured."""

    flips: bool = False
    """Whether the scale of the treatment is reversed before the comparison."""

    def score(self, control: int, treatment: int) -> float:
        """Score one test.

        Args:
            control: Index of the option chosen in the control, from 0, in canonical order.
            treatment: The same for the treatment.

        Returns:
            The score, from -1 to 1; positive is a bias in the expected direction.

        Raises:
            ValueError: If an index is out of range.
        """
        for name, index in (("control", control), ("treatment", treatment)):
            if not 0 <= index < self.n_options:
                raise ValueError(f"{name} {index} lies outside 0..{self.n_options - 1}")
        turned = self.n_options - 1 - treatment if self.flips else treatment
        first, second = abs(control - self.control_origin), abs(turned - self.treatment_origin)
        return self.sign * (first - second) / (max(first, second) + TINY) + 0.0

    def expectation(self) -> float:
        """Compute the mean score of a respondent that chooses uniformly: the mean over all pairs of choices."""
        scores = [self.score(*pair) for pair in product(range(self.n_options), repeat=2)]
        return math.fsum(scores) / len(scores)


@dataclass(frozen=True)
class Bias:
    """One bias."""

    name: str
    """Its name, as the authors' folder has it."""

    metric: Metric
    """How its tests are scored, before a parameter changes it."""

    parameter: str = ""
    """Parameter of a test that changes how it is scored; empty: there is none."""

    settings: tuple[Any, ...] = ()
    """Values of the parameter that change it in different ways; the expectation is a mean over them."""

    def metric_of(self, parameters: Parameters, conservatism: ConservatismRule = "2025") -> Metric:
        """Return the metric of a test.

        Args:
            parameters: Parameters of the test, with the one that changes how it is scored.
            conservatism: Which rule scores Conservatism.

        Raises:
            ConfigError: If that parameter is missing, or has an invalid value.
        """
        if self.name == "Conservatism":
            return replace(self.metric, flips=conservatism == "2024")
        if not self.parameter:
            return self.metric
        if self.parameter not in parameters:
            raise ConfigError(f"a test of {self.name} needs its parameter {self.parameter!r}, got {dict(parameters)}")
        value = parameters[self.parameter]
        if self.name in _SIGNED:
            if value not in _SIGNED[self.name]:
                allowed = ", ".join(map(repr, _SIGNED[self.name]))
                raise ConfigError(f"{self.parameter} of {self.name} is one of {allowed}, got {value!r}")
            return replace(self.metric, sign=_SIGNED[self.name][value])
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ConfigError(f"{self.parameter} of {self.name} is a number, got {value!r}")
        control, treatment = _ORIGINS[self.name](value)
        return replace(self.metric, control_origin=control, treatment_origin=treatment)

    def expectation(self, conservatism: ConservatismRule = "2025") -> float:
        """Compute the exact mean score of a respondent that chooses uniformly.

        Args:
            conservatism: Which rule scores Conservatism.
        """
        settings: Sequence[Parameters] = [{self.parameter: value} for value in self.settings] or [{}]
        return math.fsum(self.metric_of(one, conservatism).expectation() for one in settings) / len(settings)


_SIGNED: Mapping[str, Mapping[Any, float]] = {
    "BandwagonEffect": {"A": -1.0, "B": 1.0},
    "FundamentalAttributionError": {"dispositional": 1.0, "situational": -1.0},
    "HaloEffect": {"positively": 1.0, "negatively": -1.0},
    "HyperbolicDiscounting": {"immediate": -1.0, "delayed": 1.0},
    "LossAversion": {"guaranteed": -1.0, "gamble": 1.0},
    "OptimismBias": {"positive": -1.0, "negative": 1.0},
    "SocialDesirabilityBias": {True: 1.0, False: -1.0},
}
"""Bias whose parameter sets the direction → value → sign."""

_ORIGINS: Mapping[str, Callable[[float], tuple[float, float]]] = {
    "Anchoring": lambda anchor: (round(int(anchor) / 10), round(int(anchor) / 10)),
    "HindsightBias": lambda percentage: (round(int(percentage) / 10) + 5, round(int(percentage) / 10) + 5),
    "PlanningFallacy": lambda update: (-update / 10, -3.0),
}
"""Bias whose parameter sets the origins → function from its value to the origins of control and treatment."""

_PARAMETERS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "Anchoring": ("anchor", tuple(range(10, 90))),
    "BandwagonEffect": ("majority_opinion", ("A", "B")),
    "FundamentalAttributionError": ("reason_A_in_control", ("dispositional", "situational")),
    "HaloEffect": ("halo", ("positively", "negatively")),
    "HindsightBias": ("percentage", tuple(range(-49, 50))),
    "HyperbolicDiscounting": ("scheme_A_in_control", ("immediate", "delayed")),
    "LossAversion": ("choice_A_in_treatment", ("guaranteed", "gamble")),
    "OptimismBias": ("event_kind", ("positive", "negative")),
    "PlanningFallacy": ("estimation_update", (10, 20, 30, 40)),
    "SocialDesirabilityBias": ("statement_desirable", (True, False)),
}
"""Bias → parameter that changes how a test is scored, and its possible values, rounded if it is continuous."""


def _bias(name: str, n_options: int, sign: float = -1.0, flips: bool = False) -> Bias:
    parameter, settings = _PARAMETERS.get(name, ("", ()))
    return Bias(name, Metric(n_options, sign, flips=flips), parameter, settings)


BIASES: Mapping[str, Bias] = {
    bias.name: bias
    for bias in (
        _bias("Anchoring", 11, 1),
        _bias("Anthropomorphism", 7, 1),
        _bias("AvailabilityHeuristic", 11),
        _bias("BandwagonEffect", 7, flips=True),
        _bias("ConfirmationBias", 11, 1),
        _bias("Conservatism", 7),
        _bias("DispositionEffect", 7, flips=True),
        _bias("EndowmentEffect", 11, 1),
        _bias("EscalationOfCommitment", 11, 1),
        _bias("FramingEffect", 7),
        _bias("FundamentalAttributionError", 7),
        _bias("HaloEffect", 7),
        _bias("HindsightBias", 11, 1),
        _bias("HyperbolicDiscounting", 7),
        _bias("IllusionOfControl", 11),
        _bias("InGroupBias", 7),
        _bias("InformationBias", 7, flips=True),
        _bias("LossAversion", 7, flips=True),
        _bias("MentalAccounting", 7, 1),
        _bias("NegativityBias", 7, flips=True),
        _bias("NotInventedHere", 7),
        _bias("OptimismBias", 11),
        _bias("PlanningFallacy", 11, 1),
        _bias("Reactance", 11),
        _bias("RiskCompensation", 11),
        _bias("SelfServingBias", 7, 1),
        _bias("SocialDesirabilityBias", 7),
        _bias("StatusQuoBias", 7, flips=True),
        _bias("Stereotyping", 7, 1),
        _bias("SurvivorshipBias", 7, 1),
    )
}
"""All biases by name, in alphabetical order."""


# -- parameters


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
