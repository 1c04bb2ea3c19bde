"""PsychoBench: respondents fill in thirteen questionnaires, and their scores are compared with those of people."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
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
from mesa_llm.population import invented
from mesa_llm.questionnaire import DRAW, Instrument, ItemCount, Questionnaire, Sheet, sheets_of
from mesa_llm_models.psychobench.agents import ScaleRespondent
from mesa_llm_models.psychobench.items import OWN, load_instruments
from mesa_llm_models.psychobench.scores import ScoreRow, score_rows, summary_of

Order = Literal["random", "published", "published first"]
"""In which order items are presented."""


class PsychoBenchScenario(LLMScenario):
    """Parameters of a psychological assessment."""

    n_agents: Annotated[int, Field(ge=1, le=1000), Slider(1, 20, label="Respondents")] = 1
    """Number of respondents."""

    administrations: Annotated[int, Field(ge=1), Slider(2, 20, label="Administrations")] = 10
    """How often each questionnaire is filled in, once a step; norms are compared from two on."""

    items: Annotated[str, Label("Items (own, original, or a file)")] = "own"
    """What is asked: `own` for statements of our own; `original` for PsychoBench's `questionnaires.json`, downloaded at
    first use (research alone; needs pooch); or the path of a file of its form, or of a table of items with the columns
    `item`, `text`, `key` and `scale`."""

    instruments: Sequence[str] | None = None
    """Names of the questionnaires; None: all."""

    subscales: Sequence[str] | None = None
    """Names of the scores whose items are asked; None: all."""

    order: Annotated[Order, Label("Order of items"), Structure("published", dimension="sequencing")] = "random"
    """`random`: drawn anew for each respondent and administration; `published`: always as in the file; `published
    first`: so in the first administration, and random after it."""

    tests_per_order: Annotated[int, Field(ge=1), Label("Administrations in the same order")] = 1
    """Number of administrations in a row that a respondent fills a questionnaire in in the same order of its items."""

    per_request: Annotated[
        int, Field(ge=1, le=200), Slider(1, 60, label="Items a request"), Structure(1, 10, dimension="context")
    ] = 30
    """Maximum number of items that are asked in one request; 1: item by item."""

    history: Annotated[bool, Label("Later pages show earlier ones"), Structure(False, dimension="context")] = True
    """Whether a request shows the earlier ones of its questionnaire, with the answers; else all are asked at once."""

    personas: Annotated[bool, Label("Respondents are invented people")] = False
    """Whether respondents are invented people; else nobody in particular, so that the language model itself answers."""

    memory: str = "none"
    """What respondents remember from one step to the next."""

    draws: Annotated[int, Field(ge=1, le=100), Slider(1, 20, label="Draws of each page")] = 5
    """Number of times that a language model without probabilities fills in each page; see `answering`."""

    temperature: Annotated[float, Field(ge=0, le=2), Slider(0, 2, 0.1)] = 0.0
    """Sampling temperature. Where pages are drawn several times, 0 stands for 1, the language model's own: draws at 0
    would all be the same."""


class PsychoBenchModel(LLMModel):
    """Respondents who fill in questionnaires about themselves, once a step.

    What an answer counts as: with language models that return the probabilities of all answers, their mean; with
    others, the mean of several draws at temperature 1; with `scoring="replies"`, one reply at temperature 0. Such a
    reply shows the likeliest answer and hides how likely it is: the same scores then look far more extreme.

    Attributes:
        answering: What answers count as: `probabilities`, `draws` or `replies`.
        instruments: The questionnaires, in order.
        world: The answers, and counts of those that cannot be used.
    """

    scenario_class = PsychoBenchScenario
    scenario: PsychoBenchScenario

    def __init__(self, scenario: PsychoBenchScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Load the questionnaires, and create the respondents.

        Args:
            scenario: The parameters; None: those given by keyword, and the defaults.
            **options: Options of all models, and fields of the scenario.

        Raises:
            ConfigError: If the questionnaires cannot be read, or one is unknown.
        """
        super().__init__(scenario, **options)
        self.activation = PsychoBenchModel.administer
        self.instruments = self._chosen_instruments()
        self.world = Questionnaire()
        self.worlds = (self.world,)
        self.answering: Answering = answering_of(self, options.get("scoring"))
        self._order_seed = self.random.getrandbits(32) if self.scenario.tests_per_order > 1 else 0
        self._pages: dict[tuple[int, str, int], list[Sheet]] = {}
        n, temperature = self.scenario.n_agents, self.scenario.temperature or TEMPERATURES[self.answering]
        settings = Settings(temperature=temperature, max_tokens=2000)
        people = [persona.config(settings=settings) for persona in invented(n, self.random)]
        configs = people if self.scenario.personas else [AgentConfig(settings=settings)] * n
        for config in configs:
            ScaleRespondent(self, self.instruments, config=config, memory=self.scenario.memory)
        self.datacollector = DataCollector(
            {"answered": "n_answered", "out_of_range": "n_out_of_range", "unparsable": "n_unparsable"}
            | {"missing": "n_missing"}
        )
        self.datacollector.collect(self)

    def _chosen_instruments(self) -> list[Instrument]:
        """Load the questionnaires, with the scores that are wanted.

        Raises:
            ConfigError: If they cannot be read, or one is unknown or has none of the scores.
        """
        instruments = load_instruments(self.scenario.items, self.scenario.instruments)
        if self.scenario.subscales is None:
            return instruments
        try:
            return [instrument.only(self.scenario.subscales) for instrument in instruments]
        except ValueError as error:
            raise ConfigError(f"subscales: {error}") from None

    def administer(self) -> list[list[Turn]]:
        """Return the stages of an administration: one a page where later pages show earlier ones, else one for all."""
        self._pages = {
            (agent.unique_id, instrument.name, number): pages
            for agent in self.agents
            for instrument in self.instruments
            for number, pages in enumerate(self._drawn(instrument, agent))
        }
        by_page: list[list[Turn]] = []
        respondents = {agent.unique_id: agent for agent in self.agents}
        for (agent_id, _, _), sheets in self._pages.items():
            agent = respondents[agent_id]
            for index, sheet in enumerate(sheets):
                by_page += [[]] if index == len(by_page) else []
                by_page[index].append(Turn(agent, self.world.ask(agent_id, sheet)))
        return by_page if self.scenario.history else [[turn for stage in by_page for turn in stage]]

    def _drawn(self, instrument: Instrument, agent: Any) -> Iterator[list[Sheet]]:
        """Yield the pages of a questionnaire, once for each draw; only language models are drawn several times."""
        is_drawn = self.answering == "draws" and agent.opened.is_language_model
        pages = [
            sheet.drawn(self.scenario.draws if is_drawn else 1) for sheet in self._sheets(instrument, agent.unique_id)
        ]
        for draw in zip(*pages, strict=True):
            yield list(draw)

    @property
    def _per_request(self) -> int:
        """Number of items a request: one where answers are scored by their probabilities."""
        return 1 if self.engine.scoring == "probabilities" else self.scenario.per_request

    def _sheets(self, instrument: Instrument, agent_id: int) -> list[Sheet]:
        """Put an instrument on sheets, its items in the order of this administration."""
        items = instrument.items_in()
        order, series = self.scenario.order, (self.now - 1) // self.scenario.tests_per_order
        if order == "random" or (order == "published first" and series > 0):
            is_kept = self.scenario.tests_per_order > 1  # the order then depends on the series alone
            rng = random.Random(f"{self._order_seed} {agent_id} {instrument.name} {series}") if is_kept else self.random
            rng.shuffle(items)
        per_request, text = self._per_request, instrument.instructions
        return sheets_of(instrument.name, items, per_sheet=per_request, text=text)

    def earlier_pages(self, agent_id: int, sheet: Sheet) -> Iterator[tuple[Sheet, Any]]:
        """Find the pages of the same questionnaire that an agent answered before this one.

        Args:
            agent_id: Mesa `unique_id` of the respondent.
            sheet: The page that it is asked now.

        Yields:
            Each page, with the answers by their numbers on it, or with the answer to its only item; none without
            `history`.
        """
        if not self.scenario.history:
            return
        instrument: Instrument = sheet.items[0].facts[0]
        _, _, draw = sheet.label.partition(DRAW)
        for page in self._pages[agent_id, instrument.name, max(int(draw or 1) - 1, 0)]:
            if page.label == sheet.label:
                return
            if numbered := page.numbered(self.world.given_on(agent_id, page.label)):
                yield page, numbered if len(page.items) > 1 else numbered["1"]

    def end_step(self) -> None:
        """End after the last administration."""
        self.running = self.now < self.scenario.administrations

    # -- measures

    @property
    def totals(self) -> ItemCount:
        """Counts of all items so far."""
        return self.world.totals()

    @property
    def n_answered(self) -> int:
        """Number of valid answers so far."""
        return self.totals.answered

    @property
    def n_out_of_range(self) -> int:
        """Number of answers so far that are not on the scale."""
        return self.totals.out_of_range

    @property
    def n_unparsable(self) -> int:
        """Number of items so far in whose reply no number could be read."""
        return self.totals.unparsable

    @property
    def n_missing(self) -> int:
        """Number of items so far without any answer."""
        return self.totals.missing

    def scores(self) -> list[ScoreRow]:
        """Compute the scores over all administrations that are over, beside chance and norms."""
        return score_rows(self.world, self.instruments, [agent.unique_id for agent in self.agents])

    def results(self) -> dict[str, Any]:
        """Return the mean of each score, None without a complete administration, and the counts of all items.

        Scores of instruments of one's own are given as sums, too. `straight lines` are questionnaires with reversed
        items that were answered with one number throughout: their scores look like those of a balanced person.
        """
        means: dict[str, float | None] = {}
        for row in self.scores():
            name = f"{row.instrument}: {row.subscale}"
            means[name] = row.mean if row.n else None
            if row.group == OWN:
                means[f"{name} (sum)"] = row.total if row.n else None
        totals = self.totals
        return means | {
            "answered": totals.answered,
            "out of range": totals.out_of_range,
            "unparsable": totals.unparsable,
            "missing": totals.missing,
            "straight lines": self.world.n_straight,
        }

    def story(self) -> str:
        """Describe in words how the respondents scored, what an answer counts as, and what could not be scored."""
        text = summary_of(self.scores(), self.totals, self.world.n_straight)
        return f"{text} {self.answering_text}" if self.answering_text else text

    @property
    def answering_text(self) -> str:
        """What an answer of a language model counts as, and how certain it was; empty without a language model."""
        if not any(agent.opened.is_language_model for agent in self.agents):
            return ""
        return answering_text(self.answering, self.scenario.draws, self.world.certainty)
