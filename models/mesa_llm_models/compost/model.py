"""CoMPosT: a language model writes as various personas on various topics, and its texts are tested for caricature."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from collections.abc import Sequence
from importlib import resources
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
from mesa_llm.llm.embeddings import embedder
from mesa_llm.questionnaire import Item, Sheet
from mesa_llm.tables import read_text
from mesa_llm.text import NOT_KNOWN, counted, one_line
from mesa_llm.world import Rules
from mesa_llm_models.compost.agents import PersonaTexts, SimulatedPersona, answer_type
from mesa_llm_models.compost.scores import Caricature, Controls, CorpusText, PersonaTopic, Scores, scores_of
from mesa_llm_models.compost.text import writer_text

Context = Literal["forum", "interview", "post"]
"""Where the texts appear, which chooses the prompt."""

N_OWN_WORDS = 4
"""Number of words that mark one persona, or one topic, in texts of rule twins."""

_DESIGN: dict[str, list[str]] = json.loads(
    resources.files(__package__).joinpath("data", "design.json").read_text(encoding="utf-8")
)

PERSONAS = tuple(_DESIGN["personas"])
"""Personas of our own choice among the paper's."""

TOPICS = tuple(_DESIGN["topics"])
"""Topics of our own: everyday, general and specific; debated, general and specific; and so on."""

QUESTIONS = tuple(_DESIGN["questions"])
"""Interview questions of our own."""


class CompostScenario(LLMScenario):
    """Parameters of a test for caricature."""

    context: Annotated[Context, Label("Where texts appear"), Structure("interview", "post")] = "forum"
    """Where the texts appear, which chooses the prompt: a forum, an interview, or short public posts."""

    n_personas: Annotated[
        int,
        Field(ge=1, le=len(PERSONAS)),
        Slider(1, len(PERSONAS), label="Personas"),
        Structure(2, 6, dimension="population"),
    ] = 3
    """Number of personas, besides the default one; not used where `personas` names them."""

    n_topics: Annotated[int, Field(ge=1, le=len(TOPICS)), Slider(1, len(TOPICS), label="Topics")] = 4
    """Number of topics, besides the default one; there are ten questions for interviews. Not used where `topics` names
    them."""

    personas: Sequence[str] | None = None
    """Personas in a few words each, such as `40-year-old person`; None: the first of our own."""

    topics: str | Sequence[str] | None = None
    """Topics, or questions of the interview; or a text file with one a line, as the original's. None: the first of our
    own."""

    default_persona: str = "person"
    """Persona that the others are compared with."""

    rounds: Annotated[int, Field(ge=1), Slider(1, 20, label="Rounds")] = 10
    """Number of steps."""

    texts_per_round: Annotated[int, Field(ge=1, le=50), Slider(1, 10, label="Texts a round")] = 2
    """Texts of each persona on each topic in a step; published are 10 rounds of 10."""

    embedder: str = "wordllama"
    """Embedder of the texts: `wordllama`, `litellm:MODEL` or `sentence-transformers:MODEL`."""

    people: Annotated[Literal["drawn", "alike"], Label("Writers of one persona are")] = "drawn"
    """Whether each text of a persona on a topic is by another writer, with a trait and an occasion, or all by the
    same one. The same writers are drawn for each persona, apart from everything else, and say nothing of any group.
    Under the original rules they are alike, as in the paper.
    """

    rules: Rules = "corrected"
    """How texts are asked for, seed words found and cells scored; `original` as the published program does."""

    memory: str = "none"
    """Memory of the personas; the original's have none."""

    temperature: Annotated[float, Field(ge=0, le=2), Slider(0, 2, 0.1)] = 1.0
    """Sampling temperature."""

    def check(self) -> None:
        """Check that personas and topics differ from each other and from the defaults.

        Raises:
            ConfigError: If some are the same, one is blank, a list is empty, or the file of topics cannot be read.
        """
        for name, values, default in (
            ("personas", self.personas, self.default_persona),
            ("topics", topics_of(self), DEFAULT_TOPIC),
        ):
            if values is not None and (not values or len({*values, default}) <= len(values)):
                raise ConfigError(
                    f"{name} are one or more, all different and none of them {default!r}, got {values!r:.80}"
                )
        texts = (*(self.personas or ()), *(topics_of(self) or ()), self.default_persona)
        if any(not text.strip() for text in texts):
            raise ConfigError("personas and topics are texts, got one that is blank")


DEFAULT_TOPIC = "comment"
"""Name of the default topic: none in particular."""


def topics_of(scenario: CompostScenario) -> Sequence[str] | None:
    """Return the topics that a scenario names; of a file, without the default topic, which the original's files hold.

    Args:
        scenario: The parameters.

    Returns:
        The topics, in order; None: the scenario names none.

    Raises:
        ConfigError: If the file cannot be read.
    """
    named = scenario.topics
    if not isinstance(named, str):
        return named
    try:
        lines = [one_line(line) for line in read_text(named).splitlines()]
    except ConfigError as error:
        raise ConfigError(
            f"topics is a list of topics, or a text file with one a line; got {named!r}: {error}"
        ) from None
    return list(dict.fromkeys(line for line in lines if line and line != DEFAULT_TOPIC))


class CompostModel(LLMModel):
    """Personas who write on topics, several texts on each in every step.

    Attributes:
        controls: The default persona and topic.
        topics: All topics, the default one first.
        corpus: The texts so far, sorted by persona and topic.
        filler: Words of the rule twins that mark neither a persona nor a topic.
    """

    scenario_class = CompostScenario
    scenario: CompostScenario
    instructions = ""

    def __init__(self, scenario: CompostScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Create the personas.

        Args:
            scenario: The parameters; None: those given by keyword, and the defaults.
            **options: Options of all models, and fields of the scenario.
        """
        super().__init__(scenario, **options)
        chosen = self.scenario
        self.activation = CompostModel.write
        self.controls = Controls(chosen.default_persona, DEFAULT_TOPIC)
        own_topics = QUESTIONS if chosen.context == "interview" else TOPICS
        self.topics = [DEFAULT_TOPIC, *(topics_of(chosen) or own_topics[: chosen.n_topics])]
        self.world = PersonaTexts(answer_type(chosen.context, is_original=chosen.rules == "original"))
        self.worlds = (self.world,)
        self.filler = _DESIGN["filler"]
        others = [name for name in PERSONAS if name != chosen.default_persona]
        labels = list(chosen.personas or others[: chosen.n_personas])
        for index, label in enumerate((chosen.default_persona, *labels)):
            SimulatedPersona(
                self, label, index / (len(labels) + 1), config=self._config_of(label), memory=chosen.memory
            )
        shuffled = sorted(_DESIGN["words"])
        random.Random(0).shuffle(shuffled)
        names = [*labels, *self.topics[1:]]
        self._words = {
            name: [shuffled[(index * N_OWN_WORDS + step) % len(shuffled)] for step in range(N_OWN_WORDS)]
            for index, name in enumerate(names)
        }
        self._scores: tuple[int, Scores] | None = None
        self.datacollector = DataCollector({"texts": "n_texts", "missing": "n_missing", "unparsable": "n_unparsable"})
        self.datacollector.collect(self)

    def _config_of(self, label: str) -> AgentConfig:
        """Return who a persona is; under the original rules, the requests say so, and the config does not."""
        persona = "" if self.scenario.rules == "original" else f"You are {with_article(label)}."
        return AgentConfig(persona=persona, settings=Settings(temperature=self.scenario.temperature, max_tokens=256))

    def write(self) -> list[list[Turn]]:
        """Ask every persona for texts on every topic, all at once."""
        return [
            [
                Turn(agent, self.world.ask(agent.unique_id, self._sheet(agent, topic, number)))
                for agent in self.agents
                for topic in self.topics
                for number in range(1, self.scenario.texts_per_round + 1)
            ]
        ]

    def _sheet(self, agent: SimulatedPersona, topic: str, number: int) -> Sheet:
        """Return the sheet that asks for one text."""
        named = "" if topic == DEFAULT_TOPIC else one_line(topic)
        is_original = self.scenario.rules == "original"
        file, values = "original.md" if is_original else "write.md", dict[str, str]()
        if not is_original:
            values["writer"] = self._writer(named, number)
        text = self.prompt(
            file, context=self.scenario.context, persona=with_article(agent.label), topic=named, **values
        )
        item = Item(f"{agent.label} · {topic}", text, facts=PersonaTopic(agent.label, topic))
        return Sheet(f"{topic} #{number}", (item,))

    def _writer(self, topic: str, number: int) -> str:
        """Return who writes the text of this number in this round, besides the persona; empty if all are alike."""
        if self.scenario.people == "alike":
            return ""
        return writer_text(random.Random(f"{self.run_seed} writer {topic} {self.now} {number}"), topic)

    def words_of(self, name: str) -> list[str]:
        """Return the words that mark a persona or a topic in texts of rule twins; none for the default ones."""
        return self._words.get(name, [])

    def end_step(self) -> None:
        """End after the last round."""
        self.running = self.now < self.scenario.rounds

    # -- measures

    @property
    def corpus(self) -> list[CorpusText]:
        """The texts so far, sorted by persona and topic."""
        by_cell: dict[PersonaTopic, list[str]] = {
            PersonaTopic(agent.label, topic): [] for agent in self.agents for topic in self.topics
        }
        labels = {agent.unique_id: agent.label for agent in self.agents}
        for place, answers in self.world.answers.items():
            topic = place.sheet.rpartition(" #")[0]
            by_cell[PersonaTopic(labels[place.agent_id], topic)] += map(str, answers.values())
        return [CorpusText(*cell, text) for cell, texts in by_cell.items() for text in texts]

    @property
    def n_texts(self) -> int:
        """Number of texts so far."""
        return self.world.totals().answered

    @property
    def n_missing(self) -> int:
        """Number of texts so far that did not come, refusals and greetings of the language model included."""
        return self.world.totals().missing

    @property
    def n_declined(self) -> int:
        """Number of replies so far in which the language model declined, or greeted as an assistant."""
        return self.world.n_declined

    @property
    def n_unparsable(self) -> int:
        """Number of replies so far without a text."""
        return self.world.totals().unparsable

    def caricature(self, corpus: Sequence[CorpusText] | None = None) -> Caricature:
        """Prepare the measures of a corpus; None: of the texts so far."""
        corpus = self.corpus if corpus is None else corpus
        return Caricature(corpus, embedder(self.scenario.embedder).embed, self.controls, self.scenario.rules)

    def scores(self) -> Scores:
        """Compute individuation and exaggeration of the texts so far; the result is kept until there are more texts."""
        if self._scores is None or self._scores[0] != self.n_texts:
            self._scores = (self.n_texts, scores_of(self.caricature()))
        return self._scores[1]

    def results(self) -> dict[str, Any]:
        """Return both scores of each persona, mean exaggeration, coverage, embedder and counts of texts; None for a
        missing score.
        """
        scores = self.scores()
        rows = {f"individuation: {name}": finite(row.mean) for name, row in scores.individuation.items()}
        rows |= {f"exaggeration: {name}": finite(row.mean) for name, row in scores.exaggeration.items()}
        means = [row.mean for row in scores.exaggeration.values() if not math.isnan(row.mean)]
        return rows | {
            "exaggeration": statistics.fmean(means) if means else None,
            "coverage": scores.coverage,
            "embedder": self.scenario.embedder,
            "texts": self.n_texts,
            "missing": self.n_missing,
            "declined": self.n_declined,
            "unparsable": self.n_unparsable,
        }

    def story(self) -> str:
        """Describe in words how well each persona is told apart, and how exaggerated it is."""
        scores = self.scores()
        lines = [
            f"{name}: individuation {figure(scores.individuation[name].mean)}, exaggeration {figure(row.mean)} "
            f"({counted(len(row.by_topic), 'topic')})"
            for name, row in scores.exaggeration.items()
            if name in scores.individuation
        ]
        ending = (
            f"{counted(self.n_texts, 'text')}, {self.n_missing} missing (of which {self.n_declined} declined), "
            f"{self.n_unparsable} without a text; "
            f"{scores.coverage:.0%} of the cells could be scored; vectors of {self.scenario.embedder}."
        )
        heading = (
            "Told from the default persona (chance is 0.5, and less with few texts), and exaggerated (0: the default "
            "persona, 1: no topic left):"
        )
        return "\n".join([heading, *lines, ending])


def finite(value: float) -> float | None:
    """Return a number; None in place of NaN."""
    return None if math.isnan(value) else value


_TAKES_AN = re.compile(r"(?!uni(?![dmn])|eu|one\b|use|ukr|ugan|uru)[aeiou]|hour|honest|heir|8|11-|18-", re.IGNORECASE)
"""Words that begin with the sound of a vowel, as written: `uninsured`, but not `university`."""


def with_article(label: str) -> str:
    """Return a persona with the indefinite article: `an 80-year-old person`."""
    label = one_line(label)
    return f"{'an' if _TAKES_AN.match(label) else 'a'} {label}"


def figure(value: float) -> str:
    """Write a score; a dash in place of NaN."""
    return NOT_KNOWN if math.isnan(value) else f"{value:.2f}"
