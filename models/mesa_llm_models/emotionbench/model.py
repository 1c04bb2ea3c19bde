"""EmotionBench: affect by default, and in situations that evoke an emotion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    AgentConfig,
    ConfigError,
    Label,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Settings,
    Slider,
    Structure,
    Turn,
)
from mesa_llm.agents.answering import TEMPERATURES, Answering, answering_of, answering_text
from mesa_llm.questionnaire import DRAW, ORIGINAL, Answer, AnswerKey, Questionnaire, Sheet
from mesa_llm_models.emotionbench.agents import AffectRespondent
from mesa_llm_models.emotionbench.items import (
    SITUATIONS,
    Occasion,
    checked_name,
    load_instruments,
    load_situations,
    with_situation,
)
from mesa_llm_models.emotionbench.scores import Factor, ScoreChange, Scores, changes, mean_distance

ITEM = ", item "
"""What stands between the label of an occasion and the number of an item that is asked alone."""


class EmotionBenchScenario(LLMScenario):
    """Parameters of a measurement of feelings in situations."""

    n_agents: Annotated[int, Field(ge=1), Slider(1, 10, label="Respondents")] = 1
    """Number of respondents; each fills in all sheets."""

    repetitions: Annotated[int, Field(ge=1), Slider(1, 20, label="Repetitions (steps)")] = 2
    """Number of steps; in each, every situation is asked once. The paper has 10."""

    n_defaults: Annotated[int, Field(ge=1), Slider(1, 20, label="Default sheets a step")] = 5
    """Number of sheets without a situation in each step; 5 in 10 steps are the paper's 50."""

    n_situations: Annotated[int | None, Field(ge=1), Label("Situations a factor")] = None
    """Maximum number of situations of a factor, the first of each; None: all. The paper has 5."""

    emotions: Sequence[str] | None = None
    """Names of the emotions; None: all."""

    order: Annotated[Literal["shuffled", "canonical"], Structure("canonical", dimension="sequencing")] = "shuffled"
    """Whether each sheet has its items in an order of its own, or all in that of the instrument."""

    twins: Annotated[bool, Label("Pleasant twins")] = True
    """Whether each emotion also has a pleasant situation, which should reverse the change; our own only."""

    sensitivity: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.4
    """How far a situation moves the feelings of the rule twin, as a part of the scale's length."""

    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.01
    """Level of the tests against the default sheets."""

    instrument: Annotated[str | None, Label("Instrument")] = None
    """Name of the instrument; None: the first of the file, or our own AffectList-20."""

    questionnaires: str | None = None
    """The original's `questionnaires.json`, `original` to download it, or a table of items; None: our own."""

    situations: str | None = None
    """The original's `situations.json`, or `original` to download it; None: our own situations."""

    draws: Annotated[int, Field(ge=1, le=100), Slider(1, 20, label="Draws of each sheet")] = 5
    """Number of times that a language model without probabilities fills in each sheet; see `answering`."""

    memory: str = "none"
    """Memory of the respondents; the original's have none."""


class EmotionBenchModel(LLMModel):
    """Respondents fill in sheets about their feelings: some by default, the others in situations they imagine.

    A step is one repetition: the default sheets and one sheet for each situation, all at once. An answer counts as the
    mean of all answers by their probabilities, where the language model is known to return them; otherwise as the mean
    of several draws at temperature 1; with `scoring="replies"`, as one reply at temperature 0, which shows the
    likeliest answer and hides how likely it is.

    Attributes:
        answering: What answers count as: `probabilities`, `draws` or `replies`.
        instrument: The instrument that is filled in.
        occasions: The situations, in the order of the file.
        world: The sheets and answers.
    """

    scenario_class = EmotionBenchScenario
    scenario: EmotionBenchScenario

    def __init__(self, scenario: EmotionBenchScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        chosen = self.scenario
        self.answering: Answering = answering_of(self, options.get("scoring"))
        self.instrument = checked_name(load_instruments(chosen.questionnaires), chosen.instrument)
        self.occasions = load_situations(
            chosen.situations, emotions=chosen.emotions, per_factor=chosen.n_situations, has_twins=chosen.twins
        )
        is_panas = self.instrument.is_original and self.instrument.name == "PANAS"
        situations = chosen.situations
        self._is_comparable = is_panas and (situations == ORIGINAL or SITUATIONS.is_file(situations))
        self._by_label = {one.label: one for one in self.occasions}
        situation_texts = ["", *(one.text for one in self.occasions)]
        self._texts = {text: with_situation(self.instrument, text) for text in situation_texts}
        self._labels = {number: self.instrument.item(number).label for number in self.instrument.items}
        self.world = Questionnaire()
        self._pages: dict[tuple[int, int, str], dict[str, float]] = {}  # answers to items that were asked alone
        self._drawn: set[AnswerKey] = set()  # sheets whose draws were scored
        self._n_read = 0  # number of answered sheets that were scored
        self._sheets: list[tuple[Occasion, Scores]] = []  # those without missing answers, in order
        self._by_kind: dict[str, list[Scores]] = {"default": [], "situations": [], "twins": []}
        self.worlds = (self.world,)
        self.activation = EmotionBenchModel.repetition
        for _ in range(chosen.n_agents):
            config = AgentConfig(settings=Settings(temperature=TEMPERATURES[self.answering]))
            AffectRespondent(self, chosen.sensitivity, config=config, memory=chosen.memory)
        reporters: dict[str, Any] = {
            f"{one.name}, {kind}": [self.mean_of, [one.name, kind]]
            for one in self.instrument.subscales
            for kind in ("default", "situations", "twins")
        }
        self.datacollector = DataCollector(model_reporters={**reporters, "usable_share": "usable_share"})
        self.datacollector.collect(self)

    def repetition(self) -> list[list[Turn]]:
        """Return one stage: each respondent's sheets, those without a situation first.

        Where answers are scored by their probabilities, each item has a sheet of its own.
        """
        defaults = [Occasion(f"default {number}") for number in range(1, self.scenario.n_defaults + 1)]
        return [
            [
                Turn(agent, self.world.ask(agent.unique_id, draw))
                for agent in self.agents
                for occasion in (*defaults, *self.occasions)
                for sheet in self._sheets_of(occasion)
                for draw in sheet.drawn(self._n_draws(agent))
            ]
        ]

    def _n_draws(self, agent: Any) -> int:
        """Return how often an agent fills in each sheet; only language models do so several times."""
        return self.scenario.draws if self.answering == "draws" and agent.opened.is_language_model else 1

    @property
    def asks_items_alone(self) -> bool:
        """Whether each item has a sheet of its own."""
        return self.engine.scoring == "probabilities"

    def _sheets_of(self, occasion: Occasion) -> list[Sheet]:
        order, text = list(self.instrument.items), self._texts[occasion.text]
        if self.asks_items_alone:
            items = zip(order, self.instrument.items_in(), strict=True)
            return [Sheet(f"{occasion.label}{ITEM}{number}", (item,), text) for number, item in items]
        if self.scenario.order == "shuffled":
            self.random.shuffle(order)
        return [Sheet(occasion.label, tuple(self.instrument.items_in(order)), text)]

    def occasion_of(self, label: str) -> Occasion:
        """Return the occasion of a sheet by its label; a label of no situation is that of a default sheet."""
        label = label.partition(DRAW)[0]
        label = label.rpartition(ITEM)[0] or label
        return self._by_label.get(label, Occasion(label))

    def end_step(self) -> None:
        """End after the last repetition."""
        self.running = self.now < self.scenario.repetitions

    # -- scores

    def _scored(self) -> list[tuple[Occasion, Scores]]:
        """Return the scores of each sheet without missing answers; others are left out.

        Sheets that are handed out several times have one score each, once their administration is over.
        """
        for place in islice(self.world.answers, self._n_read, None):
            if DRAW in place.sheet and place.administration == self.world.administration:
                break
            self._n_read += 1
            occasion, answers = self.occasion_of(place.sheet), self._answers_at(place)
            scores = None if answers is None else self._score(answers)
            if scores is not None:
                self._sheets.append((occasion, scores))
                kind = "twins" if occasion.is_twin else "situations" if occasion.text else "default"
                self._by_kind[kind].append(scores)
        return self._sheets

    def _answers_at(self, place: AnswerKey) -> Mapping[str, Answer | float] | None:
        """Return the answers to a sheet by item, or what is known of them; None for a draw of one that was scored."""
        if self.asks_items_alone:
            return self._gathered(place, self.occasion_of(place.sheet))
        answers = self.world.answers[place]
        sheet, _, draw = place.sheet.partition(DRAW)
        if not draw:
            return answers
        key = place._replace(sheet=sheet)
        if key in self._drawn:
            return None
        self._drawn.add(key)
        drawn = self.world.draws[key]
        return {label: self.world.expected(place, int(given[0]), label) for label, given in drawn.items()}

    def _gathered(self, place: AnswerKey, occasion: Occasion) -> dict[str, float]:
        """Return the answers to the items of an occasion that were read so far, this one included."""
        pages = self._pages.setdefault((place.agent_id, place.administration, occasion.label), {})
        for label, answer in self.world.answers[place].items():
            pages[label] = self.world.expected(place, int(answer))
        return pages

    def _score(self, answers: Mapping[str, Answer | float]) -> Scores | None:
        """Score a sheet; None if it lacks an answer."""
        given = {number: answers[label] for number, label in self._labels.items() if label in answers}
        numbered = {number: one if isinstance(one, float) else int(one) for number, one in given.items()}
        if len(numbered) < len(self.instrument.items):
            return None
        scores = self.instrument.score(numbered)
        return {name: score for name, score in scores.items() if score is not None}

    def default_scores(self) -> list[Scores]:
        """Return the scores of each default sheet."""
        self._scored()
        return list(self._by_kind["default"])

    def evoked_scores(self) -> dict[Factor, list[Scores]]:
        """Return the scores of each sheet in a situation, by emotion and factor; twins are left out."""
        by_factor: dict[Factor, list[Scores]] = {}
        for occasion, scores in self._scored():
            if occasion.text and not occasion.is_twin:
                by_factor.setdefault((occasion.emotion, occasion.factor), []).append(scores)
        return by_factor

    def changes(self) -> list[ScoreChange]:
        """Compare situations with the default sheets, for each subscale: by factor, by emotion, and all together."""
        default, evoked = self.default_scores(), self.evoked_scores()
        return [
            change
            for subscale in self.instrument.subscales
            for change in changes(default, evoked, subscale.name, self.scenario.alpha)
        ]

    def mean_of(self, subscale: str, kind: str) -> float:
        """Return a score's mean over the `default`, `situations` or `twins` sheets so far; NaN before the first."""
        self._scored()
        values = [one[subscale] for one in self._by_kind[kind]]
        return math.fsum(values) / len(values) if values else math.nan

    @property
    def usable_share(self) -> float:
        """Share of the sheets asked so far that have all their answers; NaN before the first."""
        respondents = list(self.agents)
        n_draws = sum(map(self._n_draws, respondents)) / len(respondents)
        n_sheets = self.world.totals().asked / len(self.instrument.items) / n_draws
        return len(self._scored()) / n_sheets if n_sheets else math.nan

    @property
    def is_comparable(self) -> bool:
        """Whether this is the real PANAS in the original's situations, which the published means are of."""
        return self._is_comparable

    def distance(self, respondent: str, *, of_changes: bool = False) -> float:
        """Compute the mean absolute difference from a published respondent, over emotions and subscales.

        Args:
            respondent: A published respondent, such as `gpt-3.5-turbo` or `human-crowd`.
            of_changes: Whether changes are compared; else means in the situations.

        Returns:
            The difference in points of PANAS, whose scores go from 10 to 50; NaN if nothing can be compared.

        Raises:
            ConfigError: If this is not the real PANAS in the original's situations.
        """
        if not self.is_comparable:
            raise ConfigError(
                "published means hold for PANAS in the original's situations; give questionnaires= and situations="
            )
        figures = {
            (one.emotion, one.subscale): one.change if of_changes else one.summary.mean
            for one in self.changes()
            if one.emotion and not one.factor
        }
        return mean_distance(figures, respondent, of_changes=of_changes)

    def results(self) -> dict[str, Any]:
        """Return means, changes, expectations of a random respondent, and counts of missing answers."""
        figures: dict[str, Any] = {}
        for subscale in self.instrument.subscales:
            figures[f"{subscale.name}, default"] = self.mean_of(subscale.name, "default")
            figures[f"{subscale.name}, random"] = self.instrument.random_mean(subscale)
        for one in self.changes():
            if not one.factor:
                name = f"{one.subscale}, {one.emotion or 'all situations'}"
                figures |= {name: one.summary.mean, f"{name}, change": one.change, f"{name}, relation": one.relation}
        return {
            **figures,
            "sheets": len(self._scored()),
            "usable_share": self.usable_share,
            **self.world.totals().lacks,
        }

    def story(self) -> str:
        """Describe how feelings changed, emotion by emotion."""
        lines = [f"{self.instrument.name}, {len(self._scored())} sheets with all answers."]
        lines += [self.answering_text] if self.answering_text else []
        for one in self.changes():
            if not one.factor:
                change = f"{one.summary.mean:.1f} ({one.change:+.1f} from the default, {one.relation})"
                lines.append(f"{one.emotion or 'All situations'}: {one.subscale} {change}.")
        return "\n".join(lines)

    @property
    def answering_text(self) -> str:
        """What an answer of a language model counts as, and how certain it was; empty without a language model."""
        if not any(agent.opened.is_language_model for agent in self.agents):
            return ""
        return answering_text(self.answering, self.scenario.draws, self.world.certainty)
