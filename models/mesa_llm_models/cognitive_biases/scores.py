"""How a test of each of the thirty biases is scored, summaries of scores, and published ones.

Source:
    Malberg et al. (2025), A Comprehensive Evaluation of Cognitive Biases in LLMs, NLP4DH (arXiv 2410.15413).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import product
from typing import Any, Literal

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

    def expected_score(self, control: Mapping[int, float], treatment: Mapping[int, float]) -> float:
        """Score one test by the probabilities of the options: the mean score over all pairs of choices.

        Args:
            control: Index of an option of the control → its probability.
            treatment: The same for the treatment.
        """
        pairs = product(control.items(), treatment.items())
        weighted = [share * other * self.score(one, two) for (one, share), (two, other) in pairs if share and other]
        return math.fsum(weighted) / (math.fsum(control.values()) * math.fsum(treatment.values()))

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


# -- summaries


@dataclass(frozen=True)
class BiasScore:
    """Summary of the tests of one bias."""

    bias: str
    """Name of the bias."""

    mean: float
    """Mean score of the valid tests, from -1 to 1: positive in the expected direction; NaN if there are none."""

    mean_absolute: float
    """Mean absolute score; NaN if there are none."""

    se: float
    """Standard error of the mean; NaN with fewer than two tests."""

    n: int
    """Number of valid tests."""

    n_invalid: int
    """Number of tests that lack one of their choices; they are left out."""

    random: float
    """Exact expectation of the mean for random choices in the same tests."""


def score_of(bias: str, scores: Sequence[float], n_invalid: int, random: float) -> BiasScore:
    """Summarise the scores of the valid tests of one bias."""
    n = len(scores)
    mean = math.fsum(scores) / n if n else math.nan
    absolute = math.fsum(map(abs, scores)) / n if n else math.nan
    se = math.sqrt(math.fsum((one - mean) ** 2 for one in scores) / (n - 1) / n) if n > 1 else math.nan
    return BiasScore(bias, mean, absolute, se, n, n_invalid, random)


def published(model: str) -> dict[str, float]:
    """Load the published mean score of each bias for one language model, or `Random`; empty for unknown ones."""
    file = resources.files("mesa_llm_models.cognitive_biases").joinpath("data", "published.csv")
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return {row["bias"]: float(row["mean"]) for row in rows if row["model"] == model}
