"""One town in three worlds: what people say, what they bet on, and what they live on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Literal, Unpack

import jinja2
from mesa.datacollection import DataCollector
from mesa.experimental.scenarios import Scenario

from mesa_llm import Bridge, Event, LLMModel, Settings
from mesa_llm.bridge import PAYLOADS
from mesa_llm.errors import ConfigError
from mesa_llm.llm.base import LLM
from mesa_llm.options import ModelOptions, within
from mesa_llm.population import invented
from mesa_llm.worlds.beliefs import Beliefs
from mesa_llm.worlds.economy import Economy, EconomyParameters
from mesa_llm.worlds.economy.state import Value
from mesa_llm.worlds.economy.view import value_text
from mesa_llm.worlds.market import MakerName, PredictionMarkets, Question
from mesa_llm.worlds.social import SocialWorld
from mesa_llm.worlds.social.accounts import Account
from models.social.network import follow_edges
from models.three_worlds.agents import Citizen
from models.three_worlds.claims import Claim, claims
from models.three_worlds.crossings import Crossings, is_worth_telling
from models.three_worlds.measures import REPORTED, Measures
from models.three_worlds.opinions import moved
from models.three_worlds.shocks import read_shocks, read_variables
from models.three_worlds.story import tell

RULES = resources.files("models.three_worlds").joinpath("prompts", "rules.md").read_text(encoding="utf-8")
"""What everyone is told; a template."""

GOAL = "Will the new market hall do the town good?"

SEED_TEXT = (
    "The council wants to build a covered market hall on the square. Some look forward to it, others fear for the "
    "square and for the town's purse."
)

MOST_SEED = 4000
"""Characters of the background that reach the prompts."""


class ThreeWorldsScenario(Scenario):
    """Parameters of a town in three worlds."""

    n_agents: int = 15
    looking: Literal["in_turn", "together"] = "in_turn"
    bridged: bool = True
    horizon: int = 20
    news_steps: int = 1
    viral_threshold: int = 3
    crowd_dollars: float = 50.0


class ThreeWorldsModel(Measures, LLMModel):
    """Citizens who talk, bet and work; what happens in one world reaches the others over the bridge.

    Attributes:
        social: The social network.
        market: The prediction market.
        economy: The economy.
        claims: What the market asks: market → question.
        crossings: What news does in other worlds.
        topic: What beliefs are about.
        looking: Whether citizens look at one world in a step, in turn, or at all together.
        rules: What everyone is told first, with the circumstances as they are when a step begins.
    """

    def __init__(
        self,
        n_agents: int = 15,
        goal: str = GOAL,
        seed_text: str = SEED_TEXT,
        variables: Mapping[str, Value] | None = None,
        shocks: Sequence[Mapping[str, Any]] | None = None,
        looking: Literal["in_turn", "together"] = "in_turn",
        bridged: bool = True,
        horizon: int = 20,
        work: float = 0.5,
        price: float = 16.0,
        maker: MakerName = "fixed_product",
        liquidity: float = 200.0,
        fee: float = 0.0,
        news_steps: int = 1,
        viral_threshold: int = 3,
        crowd_dollars: float = 50.0,
        memory: str = "window:6",
        llm: str | LLM = "rule",
        rng: int | str | None = None,
        scenario: ThreeWorldsScenario | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        """Let the citizens move in, and open the bridge.

        Args:
            n_agents: Citizens; the first one governs, if there are two or more.
            goal: The question on everybody's mind: it is in every prompt, and what beliefs are about.
            seed_text: What everybody knows; it is in every prompt.
            variables: Circumstances, in every prompt as they are by then; `tax_rate` and `minimum_wage` act on the
                economy.
            shocks: What strikes from outside, each with `step`, `text` and, if it sets one, `variable` and `value`.
                None: a tax of 30% in step 7.
            looking: `in_turn`: at one world in a step, and news of the two others; `together`: at all three.
            bridged: Whether news crosses; without, only scheduled shocks are told, as in SimSwarm.
            horizon: Step in which the market's questions are answered; they close a step before.
            work: Employment rate that the market asks about.
            price: Average price of goods that the market asks about, in dollars.
            maker: Who trades with everyone.
            liquidity: Depth of the makers.
            fee: Share of every trade that the house keeps.
            news_steps: For how many steps news is told; 0: to nobody, so that only the paper and the crowd hear of it.
            viral_threshold: Likes and reposts at which a post goes viral.
            crowd_dollars: What the crowd bets on each viral post.
            memory: What citizens remember with.
            llm: What citizens think with.
            rng: Seed.
            scenario: The parameters as a Mesa scenario; goes before the single ones.
            **options: As of `LLMModel`.
        """
        if scenario is not None:
            n_agents, looking = scenario.n_agents, scenario.looking
            bridged, horizon = scenario.bridged, scenario.horizon
            news_steps, viral_threshold = scenario.news_steps, scenario.viral_threshold
            crowd_dollars = scenario.crowd_dollars
        if looking not in ("in_turn", "together"):
            raise ConfigError(f"looking is 'in_turn' or 'together', got {looking!r}")
        within("horizon", horizon, 2)
        within("news_steps", news_steps, 0)
        within("crowd_dollars", crowd_dollars, 0)
        struck, given = read_shocks(shocks), read_variables(variables)
        schedule = [shock.event for shock in struck]
        matters = is_worth_hearing if bridged else is_scheduled
        options.setdefault("bridge", Bridge(schedule, steps_alive=news_steps, relevance=matters, payloads=PAYLOADS))
        super().__init__(llm=llm, rng=rng, scenario=scenario, **options)
        self.looking, self.bridged, self.horizon = looking, bridged, horizon
        self.topic = goal[:200]
        self._told = goal, seed_text
        self.rules = written(goal, seed_text, given)
        asked = claims(goal, horizon - 1, within("work", work, 0, 1), within("price", price, 0))
        self.social = SocialWorld("simswarm", rng=self.random, viral_threshold=viral_threshold)
        self.economy = Economy(EconomyParameters())
        self.market = PredictionMarkets(
            [Question(claim.text) for claim in asked], maker=maker, liquidity=liquidity, fee=fee
        )
        self.claims: dict[str, Claim] = dict(zip(self.market.ledger.markets, asked, strict=True))
        self.worlds = (self.social, self.market, self.economy)
        self._move_in(n_agents, memory)
        self.economy.state.variables |= given
        self.crossings = Crossings(self, len(self.agents) + 1, len(self.agents) + 2, crowd_dollars)
        self.crossings.strike(self.bridge)
        if bridged:
            self.crossings.open(self.bridge)
        self._judged = self.social.engagement()
        self._written_at = 0
        self.datacollector = DataCollector(model_reporters=REPORTED, agent_reporters={"position": "position"})
        self.datacollector.collect(self)

    # -- set-up

    def _move_in(self, n_agents: int, memory: str) -> None:
        """Give each citizen an account on the network, a firm or the town hall, and a first opinion."""
        personas = invented(within("n_agents", n_agents, 1), self.random)
        for place, persona in enumerate(personas):
            Citizen(
                self,
                "government" if place == 0 and n_agents > 1 else "producer",
                Beliefs({self.topic: self.random.uniform(-0.8, 0.8)}),
                topics=persona.topics,
                config=persona.config(settings=Settings(max_tokens=2000)),
                memory=memory,
            )
        citizens = list(self.agents)
        self.social.sign_up_many(
            Account(citizen.unique_id, persona.name, persona.username, persona.bio)
            for citizen, persona in zip(citizens, personas, strict=True)
        )
        edges = follow_edges(personas, 3, self.random)
        self.social.follow_many([(citizens[a].unique_id, citizens[b].unique_id) for a, b in edges])
        for citizen in citizens:
            self.economy.enter(citizen.unique_id, citizen.role)
        names = {citizen.unique_id: citizen.config.name for citizen in citizens}
        self.market.names |= names
        self.economy.names |= names
        self.social.end_step()  # who follows whom at the start is of step 0

    # -- the step

    def begin_step(self) -> None:
        """Let shocks strike and news arrive, and write the circumstances down as they are now, for all alike."""
        super().begin_step()
        if self._written_at != self.now:
            self._written_at = self.now
            self.rules = written(*self._told, self.economy.state.variables)

    def end_step(self) -> None:
        """Answer the market's questions when they are due, and let what people read move what they think."""
        if self.now == self.horizon:
            for market_id, claim in self.claims.items():
                self.market.resolve(market_id, "yes" if self.measured(claim) > claim.threshold else "no")
            self.running = False
        elif self.now == self.horizon - 1:
            for market_id in self.claims:
                self.market.close(market_id)
        self._change_minds()

    def _change_minds(self) -> None:
        judged = self.social.engagement()
        gained: dict[int, list[int]] = {}
        for post_id, (likes, dislikes) in judged.items():
            before = self._judged.get(post_id, (0, 0))
            own = gained.setdefault(self.social.author_of(post_id), [0, 0])
            own[0] += likes - before[0]
            own[1] += dislikes - before[1]
        self._judged = judged
        for citizen in self.agents:
            likes, dislikes = (max(gain, 0) for gain in gained.get(citizen.unique_id, (0, 0)))
            citizen.beliefs = moved(citizen.beliefs, self.topic, citizen.met, likes, dislikes)
            citizen.met = []

    def story(self) -> str:
        """Say in words what crossed from world to world, and what became of the town."""
        return tell(self)


def is_worth_hearing(agent: int, event: Event) -> bool:
    """Tell whether an event is told to those who look elsewhere: all but the metrics that nobody bets on."""
    return is_worth_telling(event)


def is_scheduled(agent: int, event: Event) -> bool:
    """Tell whether an event was scheduled: the only ones that SimSwarm's bridge delivers."""
    return event.source == "schedule"


def written(goal: str, seed_text: str, variables: Mapping[str, Value]) -> str:
    """Write what everyone is told: the question, the background and the circumstances included.

    Args:
        goal: The question on everybody's mind.
        seed_text: The background; what is beyond `MOST_SEED` characters is left out.
        variables: Circumstances, by name.
    """
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    background = seed_text.strip()[:MOST_SEED]
    told = {name: value_text(value) for name, value in variables.items()}
    return environment.from_string(RULES).render(goal=goal, background=background, variables=told).strip()
