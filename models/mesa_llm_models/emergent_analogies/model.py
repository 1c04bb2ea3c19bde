"""EmergentAnalogies: analogies that are generated anew for each run, so that no language model has read them."""

from __future__ import annotations

import math
from itertools import islice
from typing import Annotated, Any, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import AgentConfig, Hidden, Label, LLMModel, LLMOptions, LLMScenario, Settings, Slider, Structure, Turn
from mesa_llm.questionnaire import AnswerKey, Questionnaire
from mesa_llm.text import counted
from mesa_llm_models.emergent_analogies.agents import Solver
from mesa_llm_models.emergent_analogies.items import letters, matrices
from mesa_llm_models.emergent_analogies.items.letters import LetterString, load_letters, make_letters
from mesa_llm_models.emergent_analogies.items.matrices import Matrix, load_matrices, make_matrices
from mesa_llm_models.emergent_analogies.items.originals import LETTER_STRINGS, MATRICES, MATRICES_OF_MORE_RULES
from mesa_llm_models.emergent_analogies.items.problems import (
    Answers,
    Problem,
    joined,
    of_letters,
    of_matrix,
    of_story,
    of_verbal,
)
from mesa_llm_models.emergent_analogies.items.stories import COMPARED, load_trials
from mesa_llm_models.emergent_analogies.items.verbal import RELATIONS, load_verbal


class EmergentAnalogiesScenario(LLMScenario):
    """Parameters of a set of analogies."""

    n_agents: Annotated[int, Field(ge=1), Slider(1, 10, label="Solvers")] = 1
    """Number of solvers; all get the same problems."""

    task: Annotated[Literal["matrices", "letters", "verbal", "stories"], Label("Task")] = "matrices"
    """Digit matrices (what Shachi scores), letter strings, verbal analogies, or stories."""

    n_per_type: Annotated[int, Field(ge=1), Slider(1, 50, label="Problems of a type (steps)")] = 5
    """Number of problems of each type, one a step; fewer where a type has no more. The paper has 40 and 50."""

    answers: Annotated[Answers, Label("Answers to matrices")] = "free"
    """Whether the missing cell is written, or chosen from eight options."""

    more_rules: Annotated[bool, Label("Four and five rules")] = False
    """Whether there are matrices with four and five rules besides (the paper's second experiment), and no logic."""

    form: Annotated[
        letters.Format, Label("Form of letter strings"), Structure("bare", "sentence", dimension="format")
    ] = "lead"
    """Brackets after a line of introduction, brackets alone, or a sentence."""

    skill: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05, label="Skill of the rule twin")] = 1.0
    """Probability that the rule twin sees the rule of a problem."""

    matrices: Annotated[str | None, Hidden()] = None
    """The original's `all_problems.npz` or `all_problems_1thru5.npz`, or `original` to download it; None: generated
    matrices."""

    letters: Annotated[str | None, Hidden()] = None
    """The original's `all_prob.npz`, or `original` to download it; None: generated letter strings."""

    verbal: Annotated[str | None, Hidden()] = None
    """A CSV or Excel file with the columns of the UCLA Verbal Analogy Test, or `original` to download that; None: our
    own items."""

    stories: Annotated[str | None, Hidden()] = None
    """A CSV file with stories, in the columns of `data/stories.csv`; None: our own."""

    memory: str = "none"
    """Memory of the solvers; `chat` keeps problems and answers in the prompt, as the second experiment does."""


class EmergentAnalogiesModel(LLMModel):
    """Solvers get one problem of each type a step, all at once.

    Attributes:
        rounds: Problems of each step.
        problems: Label → problem, in the order asked.
        world: The problems as sheets, and the answers.
    """

    scenario_class = EmergentAnalogiesScenario
    scenario: EmergentAnalogiesScenario

    def __init__(self, scenario: EmergentAnalogiesScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        self.rounds = self._rounds()
        self.problems = {problem.label: problem for one in self.rounds for problem in one}
        self.world = Questionnaire()
        self._verdicts: list[tuple[Problem, str, bool] | None] = []  # on the answers so far, in order
        self.worlds = (self.world,)
        self.activation = EmergentAnalogiesModel.problems_of_step
        for _ in range(self.scenario.n_agents):
            config = AgentConfig(settings=Settings(temperature=0.0))
            Solver(self, self.scenario.skill, config=config, memory=self.scenario.memory)
        names = list(dict.fromkeys(problem.category for problem in self.problems.values()))
        reporters: dict[str, Any] = {name: [self.accuracy, [name]] for name in names}
        self.datacollector = DataCollector(
            model_reporters={**reporters, "mean": "mean_accuracy", "answered_share": "answered_share"}
        )
        self.datacollector.collect(self)

    def _rounds(self) -> list[list[Problem]]:
        """Return the problems of each step: one of each type, as long as the type has any left."""
        columns = self._columns()
        longest = max(len(column) for column in columns)
        return [[column[step] for column in columns if step < len(column)] for step in range(longest)]

    def _columns(self) -> list[list[Problem]]:
        """Return the problems of each type."""
        chosen, rng, n = self.scenario, self.random, self.scenario.n_per_type
        if chosen.task == "letters":
            return [
                [of_letters(f"{one.kind} {number}", one, chosen.form) for number, one in enumerate(strings, 1)]
                for strings in self._letters(n)
            ]
        if chosen.task == "stories":
            trials = load_trials(chosen.stories)
            rng.shuffle(trials)
            conditions = [[one for one in trials if one.condition == name][:n] for name in COMPARED]
            return [
                [of_story(f"{one.condition} {number}", one) for number, one in enumerate(sort, 1)]
                for sort in conditions
            ]
        if chosen.task == "verbal":
            items = load_verbal(chosen.verbal)
            rng.shuffle(items)
            sorts = [[one for one in items if one.relation == relation][:n] for relation in RELATIONS]
            return [
                [of_verbal(f"{one.relation} {number}", one, rng) for number, one in enumerate(sort, 1)]
                for sort in filter(None, sorts)
            ]
        return [
            [of_matrix(f"{one.kind} {number}", one, chosen.answers, rng) for number, one in enumerate(grids, 1)]
            for grids in self._matrices(n)
        ]

    def _letters(self, n: int) -> list[list[LetterString]]:
        """Make letter strings of each type, or draw them from the original's."""
        if source := self.scenario.letters:
            stored = load_letters(LETTER_STRINGS.path(source, "letters"))
            return [self.random.sample(strings, min(n, len(strings))) for strings in stored.values()]
        return [make_letters(kind, n, self.random) for kind in letters.KINDS]

    def _matrices(self, n: int) -> list[list[Matrix]]:
        """Make matrices of each type, or draw them from the original's."""
        if source := self.scenario.matrices:
            original = MATRICES_OF_MORE_RULES if self.scenario.more_rules else MATRICES
            stored = load_matrices(original.path(source, "matrices"))
            return [self.random.sample(grids, min(n, len(grids))) for grids in stored.values()]
        ruled = (*matrices.ONE_RULE, *matrices.COMBINATIONS, *matrices.MANY_RULES)
        kinds = ruled if self.scenario.more_rules else matrices.KINDS
        return [make_matrices(kind, n, self.random) for kind in kinds]

    def problems_of_step(self) -> list[list[Turn]]:
        """Return one stage: each solver's problems of this step."""
        if self.now > len(self.rounds):
            return []
        return [
            [
                Turn(agent, self.world.ask(agent.unique_id, problem.sheet(agent.is_bound)))
                for agent in self.agents
                for problem in self.rounds[self.now - 1]
            ]
        ]

    def end_step(self) -> None:
        """End after the last problems."""
        self.running = self.now < len(self.rounds)

    # -- scores

    def verdicts(self) -> list[tuple[Problem, str, bool]]:
        """Return each complete answer, with its problem before it and whether it is right after it."""
        return list(self.verdict_by_answer().values())

    def verdict_by_answer(self) -> dict[AnswerKey, tuple[Problem, str, bool]]:
        """Return the `verdicts` by agent, administration (the step) and sheet."""
        is_bound = {agent.unique_id: agent.is_bound for agent in self.agents}
        for place in islice(self.world.answers, len(self._verdicts), None):
            answers, problem = self.world.answers[place], self.problems[place.sheet]
            text = joined([str(answer) for answer in answers.values()])
            is_whole = len(answers) == len(problem.sheet(is_bound[place.agent_id]).items)
            self._verdicts.append((problem, text, problem.is_right(text)) if is_whole else None)
        places = zip(self.world.answers, self._verdicts, strict=True)
        return {place: verdict for place, verdict in places if verdict is not None}

    def accuracy(self, name: str) -> float:
        """Return the share of right answers of a category or type so far; NaN before the first."""
        verdicts = [right for problem, _, right in self.verdicts() if name in (problem.category, problem.kind)]
        return sum(verdicts) / len(verdicts) if verdicts else math.nan

    def chance(self, name: str) -> float:
        """Return the exact expectation of random answers to the problems of a category or type."""
        chances = [one.chance for one in self.problems.values() if name in (one.category, one.kind)]
        return math.fsum(chances) / len(chances)

    @property
    def categories(self) -> list[str]:
        """The categories, in the order asked."""
        return list(dict.fromkeys(problem.category for problem in self.problems.values()))

    @property
    def mean_accuracy(self) -> float:
        """Mean of the categories' accuracies: what Shachi compares; NaN before the first answers of each."""
        accuracies = [self.accuracy(name) for name in self.categories]
        return math.fsum(accuracies) / len(accuracies)

    @property
    def answered_share(self) -> float:
        """Share of the problems asked so far that have an answer; NaN before the first."""
        n_asked = sum(len(one) for one in self.rounds[: int(self.time)]) * len(self.agents)
        return len(self.verdicts()) / n_asked if n_asked else math.nan

    def results(self) -> dict[str, Any]:
        """Return accuracies by category, their mean, expectations of random answers, and counts of missing answers."""
        figures: dict[str, Any] = {}
        for name in self.categories:
            figures |= {name: self.accuracy(name), f"{name}, random": self.chance(name)}
        chances = [self.chance(name) for name in self.categories]
        verdicts = self.verdicts()
        return {
            **figures,
            "mean": self.mean_accuracy,
            "mean, random": math.fsum(chances) / len(chances),
            "answered": len(verdicts),
            "unreadable": sum(not problem.is_readable(text) for problem, text, _ in verdicts),
            **self.world.totals().lacks,
        }

    def story(self) -> str:
        """Describe how many problems of each category were solved."""
        lines = [
            f"{name}: {self.accuracy(name):.0%} right (random: {self.chance(name):.1%})." for name in self.categories
        ]
        return "\n".join([f"{counted(len(self.verdicts()), 'problem')} answered.", *lines])
