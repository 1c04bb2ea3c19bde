"""CognitiveBiases: thirty biases, each measured as the difference between a control and a treatment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    AgentConfig,
    ConfigError,
    Hidden,
    Label,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Settings,
    Slider,
    Structure,
    Turn,
)
from mesa_llm.questionnaire import AnswerKey, Item, Questionnaire, Sheet
from mesa_llm.text import counted, quoted
from mesa_llm_models.cognitive_biases.agents import Decider
from mesa_llm_models.cognitive_biases.items import (
    BiasTest,
    Role,
    is_reversed,
    load_material,
    load_tests,
    make_tests,
    option_number,
)
from mesa_llm_models.cognitive_biases.scores import BIASES, BiasScore, ConservatismRule, score_of

ROLES: tuple[Role, Role] = ("control", "treatment")

MAX_QUOTED = 6000
"""Maximum number of characters of a free answer that are shown again when its option is asked for."""


class CognitiveBiasesScenario(LLMScenario):
    """Parameters of tests of cognitive biases."""

    n_agents: Annotated[int, Field(ge=1), Slider(1, 10, label="Deciders")] = 1
    """Number of deciders; all get the same tests."""

    n_tests: Annotated[int, Field(ge=1), Slider(1, 20, label="Tests of a bias (steps)")] = 5
    """Number of tests of each bias, one a step."""

    biases: Sequence[str] | None = None
    """Names of the biases; None: all thirty."""

    answers: Annotated[Literal["choice", "two_step"], Label("Answers")] = "choice"
    """Whether an option is chosen at once, or read in a second call from a free answer, as in the original."""

    order_seed: Annotated[
        int, Field(ge=0), Label("Seed of the options' order"), Structure(1042, dimension="sequencing")
    ] = 42
    """Seed of the first test's order of options; each further test of a bias takes the next."""

    seed_stride: Annotated[int, Field(ge=1), Hidden()] = 1
    """How far apart the seeds of two tests are: 1 in the original's script, 5 in its published runs."""

    conservatism_rule: Annotated[ConservatismRule, Label("Conservatism scored as in")] = "2025"
    """`2024` turns Conservatism's treatment around, as all published numbers do; the authors dropped it in 2025."""

    susceptibility: Annotated[float, Field(ge=-1, le=1), Slider(-1, 1, 0.1)] = 0.5
    """Score that the rule twin aims at in every test."""

    tests: str | None = None
    """The original's data set as JSON or CSV; None: our own tests."""

    memory: str = "none"
    """Memory of the deciders; the original's have none."""


class CognitiveBiasesModel(LLMModel):
    """Deciders get a control and a treatment of each bias a step, independent of each other.

    Attributes:
        tests: The tests of each step.
        names: Names of the biases, in order.
        world: The questions and answers.
        decider_class: Class of its deciders.
    """

    goes_on_after_failures = True  # there is more to do than what failed
    scenario_class = CognitiveBiasesScenario
    decider_class: ClassVar[type[Decider]] = Decider
    scenario: CognitiveBiasesScenario

    def __init__(self, scenario: CognitiveBiasesScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        chosen = self.scenario
        if chosen.biases is not None and not chosen.biases:
            raise ConfigError(f"biases names none; name one or more of {', '.join(BIASES)}, or leave it out for all")
        if unknown := [name for name in chosen.biases or () if name not in BIASES]:
            raise ConfigError(f"biases: there is no {unknown[0]!r}; there are: {', '.join(BIASES)}")
        self.names = list(dict.fromkeys(chosen.biases or BIASES))
        self.tests = self._loaded() if chosen.tests else self._made()
        self.world = Questionnaire()
        self.worlds = (self.world,)
        self._extracted = 0
        self.activation = CognitiveBiasesModel.tests_of_step
        for _ in range(chosen.n_agents):
            config = AgentConfig(settings=Settings(temperature=0.0))
            self.decider_class(self, chosen.susceptibility, config=config, memory=chosen.memory)
        reporters: dict[str, Any] = {name: [self.mean_of, [name]] for name in self.names}
        self.datacollector = DataCollector(
            model_reporters={**reporters, "mean_absolute": "mean_absolute", "valid_share": "valid_share"}
        )
        self.datacollector.collect(self)

    def _made(self) -> list[list[BiasTest]]:
        """Return our own tests, by step: each bias in a scenario drawn for it."""
        scenarios, material = load_material()
        n, turned = self.scenario.n_tests, self._turned()
        columns = [
            make_tests(material[name], self.random.choice(scenarios), n, turned, self.scenario.conservatism_rule)
            for name in self.names
        ]
        return [[column[step] for column in columns] for step in range(n)]

    def _loaded(self) -> list[list[BiasTest]]:
        """Draw tests from the original's data set, by step.

        Raises:
            ConfigError: If the file cannot be read, or has no test of the biases.
        """
        tests = load_tests(self.scenario.tests or "", self.scenario.conservatism_rule)
        by_bias = {name: [one for one in tests if one.bias == name] for name in self.names}
        self.names = [name for name, of_bias in by_bias.items() if of_bias]
        if not self.names:
            raise ConfigError(f"{self.scenario.tests} has no test of the biases that are asked for")
        n = self.scenario.n_tests
        columns = [self.random.sample(of_bias, min(n, len(of_bias))) for of_bias in by_bias.values() if of_bias]
        return [
            [column[step].reversed() if is_turned else column[step] for column in columns if step < len(column)]
            for step, is_turned in enumerate(self._turned())
        ]

    def _turned(self) -> list[bool]:
        """Return whether the tests of each step show their options in reverse."""
        chosen = self.scenario
        return [is_reversed(chosen.order_seed + chosen.seed_stride * index) for index in range(chosen.n_tests)]

    # -- what is asked

    def tests_of_step(self) -> list[list[Turn]]:
        """Return one stage: both tasks of each test of this step, for each decider."""
        if self.now > len(self.tests):
            return []
        tests = self.tests[self.now - 1]
        return [[self._turn(agent, one, role) for agent in self.agents for one in tests for role in ROLES]]

    def _is_two_step(self, agent: Decider) -> bool:
        return self.scenario.answers == "two_step" and agent.writes

    def _turn(self, agent: Decider, test: BiasTest, role: Role) -> Turn:
        label, text = test.label(role), test.text(role).rstrip()
        options = tuple(f"Option {number}" for number in range(1, test.metric.n_options + 1))
        item = Item(label, text, options, (test, role))
        if self._is_two_step(agent):
            item = Item(f"{label}, free", text, facts=(test, role))
        return Turn(agent, self.world.ask(agent.unique_id, Sheet.of(item)))

    def next_stage(self, acted: list[Any]) -> list[Turn]:
        """Return, once a step, the second calls, which read the option from each free answer."""
        if self._extracted == self.now:
            return []
        self._extracted = self.now
        turns: list[Turn] = []
        for agent in (one for one in self.agents if self._is_two_step(one)):
            for test in self.tests[self.now - 1]:
                turns += [turn for role in ROLES if (turn := self._extraction(agent, test, role)) is not None]
        return turns

    def _extraction(self, agent: Decider, test: BiasTest, role: Role) -> Turn | None:
        """Return the second call for a free answer; None if there is no such answer."""
        label = test.label(role)
        place = AnswerKey(agent.unique_id, self.world.administration, f"{label}, free")
        if not (written := self.world.answers.get(place)):
            return None
        options = test.text(role).rpartition("Answer Options:\n")[2].strip()
        words = quoted(str(next(iter(written.values()))), MAX_QUOTED)
        text = self.prompt("extract.md", options=options, written=words)
        return Turn(agent, self.world.ask(agent.unique_id, Sheet.of(Item(label, text, facts=(test, role)))))

    def end_step(self) -> None:
        """End after the last tests."""
        self.running = self.now < len(self.tests)

    # -- scores

    def choices(self, agent_id: int, step: int, test: BiasTest, role: Role) -> dict[int, float]:
        """Return the probability of each option: that of the language model, if known, else 1 of the one it chose.

        Args:
            agent_id: Mesa `unique_id` of the decider.
            step: The step, from 1.
            test: A test of this step.
            role: Which of its tasks.

        Returns:
            Canonical index of an option, from 0 → its probability; empty if there is no valid answer.
        """
        index = self.choice(agent_id, step, test, role)
        if index is None:
            return {}
        known = self.world.probabilities.get(AnswerKey(agent_id, step, test.label(role)), {})
        numbers = {option_number(option): share for option, share in known.items()}
        return {test.index(number): share for number, share in numbers.items() if number is not None} or {index: 1.0}

    def choice(self, agent_id: int, step: int, test: BiasTest, role: Role) -> int | None:
        """Return the canonical index of the option that a decider chose.

        Args:
            agent_id: Mesa `unique_id` of the decider.
            step: The step, from 1.
            test: A test of this step.
            role: Which of its tasks.

        Returns:
            The index, from 0; None if there is no valid answer.
        """
        label = test.label(role)
        answers = self.world.answers.get(AnswerKey(agent_id, step, label), {})
        number = option_number(str(answers.get(label, "")))
        if number is None or not 1 <= number <= test.metric.n_options:
            return None
        return test.index(number)

    def test_scores(self, name: str) -> list[float | None]:
        """Return the score of each test of a bias so far, over all deciders; None where a choice is lacking."""
        by_agent = [self.scores_of(agent.unique_id, name) for agent in self.agents]
        return [score for scores in zip(*by_agent, strict=True) for score in scores]

    def scores_of(self, agent_id: int, name: str) -> list[float | None]:
        """Return the score of one decider in each test of a bias so far; None where a choice is lacking.

        Args:
            agent_id: Mesa `unique_id`.
            name: The bias.
        """
        scores: list[float | None] = []
        for step, tests in enumerate(self.tests[: int(self.time)], 1):
            for test in (one for one in tests if one.bias == name):
                control, treatment = (self.choices(agent_id, step, test, role) for role in ROLES)
                scores.append(test.metric.expected_score(control, treatment) if control and treatment else None)
        return scores

    def score(self, name: str) -> BiasScore:
        """Summarise the tests of one bias so far."""
        scores = self.test_scores(name)
        valid = [one for one in scores if one is not None]
        chances = [test.metric.expectation() for step in self.tests for test in step if test.bias == name]
        return score_of(name, valid, len(scores) - len(valid), math.fsum(chances) / len(chances))

    def scores(self) -> list[BiasScore]:
        """Summarise the tests of every bias so far."""
        return [self.score(name) for name in self.names]

    def mean_of(self, name: str) -> float:
        """Return the mean score of a bias so far; NaN before the first valid test."""
        valid = [one for one in self.test_scores(name) if one is not None]
        return math.fsum(valid) / len(valid) if valid else math.nan

    @property
    def mean_absolute(self) -> float:
        """Mean size of the scores of all valid tests so far; NaN before the first."""
        sizes = [abs(one) for name in self.names for one in self.test_scores(name) if one is not None]
        return math.fsum(sizes) / len(sizes) if sizes else math.nan

    @property
    def valid_share(self) -> float:
        """Share of the tests so far that have both choices; NaN before the first."""
        scores = [one for name in self.names for one in self.test_scores(name)]
        return sum(one is not None for one in scores) / len(scores) if scores else math.nan

    def results(self) -> dict[str, Any]:
        """Return the mean score of each bias, what random choices would give, and how many tests were valid."""
        figures: dict[str, Any] = {}
        for one in self.scores():
            figures |= {one.bias: one.mean, f"{one.bias}, random": one.random}
            if one.n_invalid:
                figures[f"{one.bias}, invalid"] = one.n_invalid
        return {
            **figures,
            "mean_absolute": self.mean_absolute,
            "valid_share": self.valid_share,
            **self.world.totals().lacks,
        }

    def story(self) -> str:
        """Describe each bias by its mean score, the largest first."""
        scores = sorted((one for one in self.scores() if one.n), key=lambda one: -abs(one.mean))
        lines = [
            f"{one.bias}: {one.mean:+.2f} in {counted(one.n, 'test')} (random: {one.random:+.2f})." for one in scores
        ]
        return "\n".join(lines) or "No valid test yet."
