"""One town in three worlds: a social network, a prediction market and an economy."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    Bridge,
    ConfigError,
    Event,
    Hidden,
    Label,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Settings,
    Slider,
    Structure,
)
from mesa_llm.model.bridge import PAYLOADS, wording
from mesa_llm.population import Persona, Users, invented, preferential_follows, read_edges, read_users
from mesa_llm.text import counted, tone
from mesa_llm_models.economy.world import Economy, value_text
from mesa_llm_models.market.world import MakerName, MarketQuestion, PredictionMarkets, score_forecasts
from mesa_llm_models.social.beliefs import Beliefs, update_beliefs
from mesa_llm_models.social.world import Account, SocialWorld
from mesa_llm_models.three_worlds.agents import Claim, Townsperson, cast_of, own_words
from mesa_llm_models.three_worlds.bridge import (
    SCHEDULE,
    STATE_TAX,
    Crossings,
    Setting,
    Shock,
    check_shocks,
    checked_variables,
    is_newsworthy,
    shock_event,
)
from mesa_llm_models.three_worlds.text import GOAL, SEED_TEXT, opinion_question, price_question, work_question

MAX_BACKGROUND = 4000
"""Maximum number of characters of the background in prompts."""

MAX_TOPIC = 200
"""Maximum number of characters of the goal, as a topic of beliefs."""

FOLLOWS = 3
"""Number of citizens that each follows at the start."""

STORY_NEWS = 14
"""Maximum number of pieces of news in the story of a run."""

TALK_WORDS = re.compile(r"\b(?:market|price|odds|bet|yes rose|yes fell|economy|employment|tax|polic\w+|wage)s?\b", re.I)
"""Words that mark a post as about the market or the economy."""

MEASURES = (
    *("employment_rate", "average_price", "work_price", "goods_price", "opinion_price", "lag"),
    *("mean_position", "disagreement", "posts", "talk", "trades", "viral", "heard"),
    *("betting_money", "makers_money", "accounts_money", "households_money"),
)
"""Measures that are collected in every step."""


class ThreeWorldsScenario(LLMScenario):
    """Parameters of a town in three worlds."""

    n_agents: Annotated[int, Field(ge=1), Slider(2, 60, label="Citizens")] = 15
    """Number of citizens; the first one governs if there are two or more."""

    goal: Annotated[str, Field(min_length=1), Label("Question of the town")] = GOAL
    """Question of the town, in every prompt, and the topic of beliefs."""

    seed_text: Annotated[str, Label("Background")] = SEED_TEXT
    """Background, in every prompt; up to 4,000 characters."""

    cast: Annotated[Literal["invented", "named"], Label("Who the citizens are")] = "invented"
    """`invented`: invented people; `named`: the people and bodies that the background names, if any."""

    users: Annotated[str | None, Hidden()] = None
    """File with the citizens, as `mesa-llm extract` writes it, filled up with invented people. Overrides `cast`."""

    edges: Annotated[str | None, Hidden()] = None
    """File with whom the citizens in `users` follow on the network; see `mesa_llm.population.read_edges`. Follows of
    all others are drawn."""

    variables: Mapping[str, Setting] | None = None
    """Circumstances, with their present values in every prompt; `tax_rate` and `minimum_wage` act on the economy."""

    shocks: Sequence[Shock] | None = None
    """Outside shocks, each with `step`, `text` and optionally `variable` and `value`. None: a tax of 30 %
    in step 7."""

    visits: Annotated[
        Literal["in_turn", "together"],
        Label("Citizens look at the worlds"),
        Structure("together", dimension="interaction protocol"),
    ] = "in_turn"
    """`in_turn`: each visits one world a step and hears news of the others; `together`: each visits all three."""

    bridged: Annotated[bool, Label("News crosses between the worlds")] = True
    """Whether news crosses; if not, citizens hear only of scheduled shocks, as in SimSwarm."""

    horizon: Annotated[int, Field(ge=2), Slider(2, 60, label="Questions answered in step")] = 20
    """Step in which the market's questions are answered; the markets close a step before."""

    work: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05, label="Employment rate to bet on")] = 0.5
    """Employment rate in the market's question."""

    price: Annotated[float, Field(ge=0), Slider(1, 50, 1, label="Price of goods to bet on, $")] = 16.0
    """Average price of goods in the market's question, in dollars."""

    maker: Annotated[MakerName, Label("Market maker"), Structure("lmsr")] = "fixed_product"
    """Market maker."""

    liquidity: Annotated[
        float, Field(gt=0), Slider(20, 2000, 20, label="Depth of the market, $"), Structure(100.0, 400.0)
    ] = 200.0
    """Depth of the market makers, in dollars."""

    fee: Annotated[float, Field(ge=0, lt=1), Slider(0, 0.1, 0.005, label="Fee, share of a trade")] = 0.0
    """Fee as a share of the dollars of every trade."""

    news_steps: Annotated[int, Field(ge=0), Slider(0, 5, label="Steps that news is told")] = 1
    """Number of steps for which citizens hear of news; 0: only the paper and the crowd hear of it."""

    viral_threshold: Annotated[int, Field(ge=1), Slider(1, 15, label="Likes and reposts to go viral")] = 3
    """Number of likes and reposts at which a post goes viral."""

    crowd_dollars: Annotated[float, Field(ge=0), Slider(0, 200, 10, label="Crowd bets on a viral post, $")] = 50.0
    """Dollars that the crowd bets on each viral post."""

    memory: str = "window:6"
    """Memory of the citizens."""

    def check(self) -> None:
        """Check the variables of the economy, those set by shocks, and that follows come with citizens.

        Raises:
            ConfigError: If the economy has no such variable, or refuses its value, or `users` is missing.
        """
        if self.edges is not None and self.users is None:
            raise ConfigError("edges= says whom the citizens in a file follow; give the file as users=, too")
        checked_variables(self.variables or {})
        check_shocks(self.shocks or ())


class ThreeWorldsModel(LLMModel):
    """Citizens talk, bet and work; events of one world reach the others over the bridge.

    Attributes:
        social: The social network.
        market: The prediction market.
        economy: The economy.
        claims: Market → its question about the town.
        crossings: Effects of news on other worlds.
        topic: Topic of beliefs: the goal.
        circumstances: Variables of the economy at the start of the step, in words.
    """

    scenario_class = ThreeWorldsScenario
    scenario: ThreeWorldsScenario
    changeable = ("crowd_dollars",)

    def __init__(self, scenario: ThreeWorldsScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        parameters = self.scenario
        if options.get("bridge") is None:
            self.bridge = self._new_bridge()
        self.topic = parameters.goal[:MAX_TOPIC]
        self.social = SocialWorld("simswarm", rng=self.random, viral_threshold=parameters.viral_threshold)
        self.economy = Economy()
        claims = town_claims(parameters.goal, parameters.horizon - 1, parameters.work, parameters.price)
        questions = [MarketQuestion(claim.text) for claim in claims]
        self.market = PredictionMarkets(
            questions,
            maker=parameters.maker,
            liquidity=parameters.liquidity,
            fee=parameters.fee,
            shows_results=parameters.memory == "none",
        )
        self.claims: dict[str, Claim] = dict(zip(self.market.ledger.markets, claims, strict=True))
        self.worlds = (self.social, self.market, self.economy)
        self._move_in()
        self.economy.state.variables |= checked_variables(parameters.variables or {})
        self.circumstances = self._circumstances()
        self.crossings = Crossings(
            self.social,
            self.market,
            self.economy,
            self.claims,
            account=len(self.agents) + 1,
            crowd_dollars=parameters.crowd_dollars,
        )
        self.crossings.connect(self.bridge, crosses=parameters.bridged)
        self._engagement = self.social.measures.engagement()
        self.datacollector = DataCollector(
            model_reporters={name: name for name in MEASURES}, agent_reporters={"position": "position"}
        )
        self.datacollector.collect(self)

    def scenario_changed(self) -> None:
        """Pass the size of the crowd's bets on to the crossings."""
        self.crossings.crowd_dollars = self.scenario.crowd_dollars

    # -- set-up

    def _new_bridge(self) -> Bridge:
        shocks = [STATE_TAX] if self.scenario.shocks is None else self.scenario.shocks
        relevance = is_worth_hearing if self.scenario.bridged else is_scheduled
        return Bridge(
            map(shock_event, shocks), steps_alive=self.scenario.news_steps, relevance=relevance, payloads=PAYLOADS
        )

    def _move_in(self) -> None:
        """Assign each citizen an account on the network, a firm or the town hall, and an initial opinion."""
        n = self.scenario.n_agents
        named: list[Persona] = []
        users = Users([])
        if self.scenario.users is not None:
            users = read_users(Path(self.scenario.users))
            named = users.personas[:n]
        elif self.scenario.cast == "named":
            named = cast_of(self, self.background, self.scenario.goal, n)
        personas = [*named, *invented(n - len(named), self.random)]
        for index, persona in enumerate(personas):
            Townsperson(
                self,
                "government" if index == 0 and n > 1 else "producer",
                Beliefs({self.topic: self.random.uniform(-0.8, 0.8)}),
                topics=persona.topics,
                config=persona.config(settings=Settings(max_tokens=2000)),
                memory=self.scenario.memory,
            )
        citizens = list(self.agents)
        self.social.sign_up_many(
            Account(citizen.unique_id, persona.name, persona.username, persona.bio)
            for citizen, persona in zip(citizens, personas, strict=True)
        )
        edges = self._follows(users, n)
        self.social.follow_many([(citizens[a].unique_id, citizens[b].unique_id) for a, b in edges])
        for citizen in citizens:
            self.economy.enter(citizen.unique_id, citizen.role)
        names = {citizen.unique_id: citizen.config.name for citizen in citizens}
        self.market.names |= names
        self.economy.names |= names
        self.social.end_step()  # initial follows belong to step 0

    def _follows(self, users: Users, n: int) -> list[tuple[int, int]]:
        """Return who follows whom: among the citizens of a file as their file of follows says, else as drawn."""
        drawn = preferential_follows(n, min(FOLLOWS, n - 1), self.random) if n > 1 else []
        if self.scenario.edges is None:
            if users.personas:
                self.engine.warn(
                    f"{self.scenario.users}: {counted(len(drawn), 'follow')} of the citizens are drawn; bring your own "
                    "with edges=FILE"
                )
            return drawn
        found = read_edges(self.scenario.edges, users)
        if found.left_out:
            self.engine.warn(f"{self.scenario.edges}: left out {found.left_out}")
        own = [(a, b) for a, b in found.edges.tolist() if max(a, b) < n]
        return sorted([*own, *((a, b) for a, b in drawn if a >= len(users.personas))])

    # -- the step

    @property
    def background(self) -> str:
        """The background as in prompts."""
        return self.scenario.seed_text.strip()[:MAX_BACKGROUND]

    @property
    def instructions_text(self) -> str:
        """Text above every citizen's prompt, with the circumstances at the start of the step."""
        return self.prompt(self.instructions, model=self, scenario=self.scenario)

    def _circumstances(self) -> dict[str, str]:
        return {name: value_text(value) for name, value in self.economy.state.variables.items()}

    def start_step(self) -> None:
        """Record the circumstances after shocks, the same for all citizens of the step."""
        self.circumstances = self._circumstances()

    def end_step(self) -> None:
        """Resolve the market's questions when they are due, and move beliefs by the posts read."""
        if self.now == self.scenario.horizon:
            for market_id, claim in self.claims.items():
                self.market.resolve(market_id, "yes" if self.measured(claim) > claim.threshold else "no")
            self.running = False
        elif self.now == self.scenario.horizon - 1:
            for market_id in self.claims:
                self.market.close(market_id)
        self._move_beliefs()

    def _move_beliefs(self) -> None:
        engagement = self.social.measures.engagement()
        gains: dict[int, list[int]] = {}
        for post_id, (likes, dislikes) in engagement.items():
            previous = self._engagement.get(post_id, (0, 0))
            own = gains.setdefault(self.social.author_of(post_id), [0, 0])
            own[0] += likes - previous[0]
            own[1] += dislikes - previous[1]
        self._engagement = engagement
        for citizen in self.agents:
            likes, dislikes = (max(gain, 0) for gain in gains.get(citizen.unique_id, (0, 0)))
            if citizen.exposures or likes or dislikes:
                citizen.beliefs = update_beliefs(
                    citizen.beliefs, self.topic, citizen.exposures, own_likes=likes, own_dislikes=dislikes
                )
            citizen.exposures = []

    # -- measures

    def measured(self, claim: Claim) -> float:
        """Return the present value of a question's measure."""
        return self.mean_position if claim.measure == "opinion" else self.economy.state.metrics[claim.measure]

    def price_of(self, measure: str) -> float:
        """Return the price of YES of the question about a measure, or the last price after its answer."""
        market = self.market.ledger.markets[self._market_on(measure)]
        return market.prices_yes[-1] if market.answer else market.maker.price("yes")

    def _market_on(self, measure: str) -> str:
        return next(key for key, claim in self.claims.items() if claim.measure == measure)

    @property
    def work_price(self) -> float:
        """Price of YES of the question on employment."""
        return self.price_of("employment_rate")

    @property
    def goods_price(self) -> float:
        """Price of YES of the question on the price of goods."""
        return self.price_of("avg_price")

    @property
    def opinion_price(self) -> float:
        """Price of YES of the question on opinion."""
        return self.price_of("opinion")

    @property
    def lag(self) -> float:
        """Mean distance of the market's prices from the chances that the present measures suggest, 0 to 1."""
        gaps = [
            abs(self.price_of(claim.measure) - claim.chance(self.measured(claim))) for claim in self.claims.values()
        ]
        return math.fsum(gaps) / len(gaps)

    @property
    def employment_rate(self) -> float:
        """Share of the labour force at work, as last measured."""
        return self.economy.state.metrics["employment_rate"]

    @property
    def average_price(self) -> float:
        """Average price of the goods sold in the last step, in dollars."""
        return self.economy.state.metrics["avg_price"]

    @property
    def positions(self) -> list[float]:
        """Position of each citizen on the town's question, -1 (against) to 1 (for)."""
        return [citizen.position for citizen in self.agents]

    def stances(self) -> Mapping[int, float]:
        """Return the position of each citizen on the town's question, by id."""
        return {citizen.unique_id: citizen.position for citizen in self.agents}

    @property
    def mean_position(self) -> float:
        """Mean position of the citizens."""
        return statistics.fmean(self.positions)

    @property
    def disagreement(self) -> float:
        """Standard deviation of the citizens' positions."""
        return statistics.pstdev(self.positions)

    @property
    def posts(self) -> int:
        """Number of posts and replies of citizens so far."""
        totals = self.social.measures.totals()
        return totals["original"] + totals["reply"] - self.crossings.n_reports

    @property
    def talk(self) -> int:
        """Number of posts and replies of citizens so far that are about the market or the economy."""
        paper = self.crossings.paper
        rows = self.social.measures.posts_table()
        return sum(row["user_id"] != paper and bool(TALK_WORDS.search(row["content"] or "")) for row in rows)

    @property
    def trades(self) -> int:
        """Number of trades of citizens so far."""
        return sum(trade.agent_id != self.crossings.crowd for trade in self.market.ledger.trades)

    @property
    def viral(self) -> int:
        """Number of viral posts published over the bridge so far."""
        return sum(event.kind == "viral_post" for _, event in self.bridge.log)

    @property
    def heard(self) -> int:
        """Number of times that news reached a citizen so far, scheduled news included."""
        return len(self.bridge.deliveries)

    @property
    def policies_heard(self) -> int:
        """Number of times that a citizen heard of a policy of the town's own government so far."""
        events = [delivery.event for delivery in self.bridge.deliveries]
        return sum(event.kind == "policy_change" and event.source == self.economy.name for event in events)

    @property
    def brier(self) -> float | None:
        """Brier score of the market; None before its questions are answered."""
        forecasts = self.market.forecasts()
        return score_forecasts(forecasts).brier if forecasts else None

    @property
    def viral_pull(self) -> float | None:
        """Mean move of the price on opinion towards the stance of a viral post in the step after, in dollars.

        None if no post with a stance went viral.
        """
        path = self.market.ledger.markets[self._market_on("opinion")].prices_yes
        viral = [(time, event) for time, event in self.bridge.log if event.kind == "viral_post" and time < len(path)]
        stances = [(time, tone(own_words(event.facts["text"], self.crossings.reports))) for time, event in viral]
        pulls = [(path[time] - path[time - 1]) * math.copysign(1, stance) for time, stance in stances if stance]
        return math.fsum(pulls) / len(pulls) if pulls else None

    @property
    def betting_money(self) -> float:
        """Cash of all bettors, the crowd included, in dollars."""
        accounts = [*(citizen.unique_id for citizen in self.agents), self.crossings.paper, self.crossings.crowd]
        return math.fsum(self.market.ledger.portfolio(account).cash for account in accounts)

    @property
    def makers_money(self) -> float:
        """Cash of the market makers, and the fees, in dollars."""
        return math.fsum(market.maker_cash + market.fees for market in self.market.ledger.markets.values())

    @property
    def accounts_money(self) -> float:
        """Balances of all citizens in the economy, in dollars."""
        return math.fsum(participant.balance for participant in self.economy.state.participants.values())

    @property
    def households_money(self) -> float:
        """Money of all households, in dollars."""
        return self.economy.state.purse

    @property
    def money(self) -> tuple[float, float]:
        """All dollars of the market, and all of the economy; neither ever changes."""
        return self.betting_money + self.makers_money, self.accounts_money + self.households_money

    def results(self) -> dict[str, Any]:
        """Return the measures at the end, `lag` as the mean over all steps, and the scores of the market by name."""
        lags: list[float] = self.datacollector.model_vars["lag"]
        scores = {
            "lag": statistics.fmean(lags),
            "reports": self.crossings.n_reports,
            "bets": self.crossings.n_bets,
            "policies_heard": self.policies_heard,
            "viral_pull": self.viral_pull,
            "brier": self.brier,
        }
        return super().results() | {name: score for name, score in scores.items() if score is not None}

    def story(self) -> str:
        """Describe the news and the number of citizens who heard it, the market's questions, and opinions."""
        readers = Counter((delivery.time, delivery.event.text) for delivery in self.bridge.deliveries)
        news = [(time, event) for time, event in self.bridge.log if is_newsworthy(event)]
        lines = [
            f"Step {time}, {event.source}: {event.text or wording(event)} (heard by {readers[time, event.text]})"
            for time, event in news[-STORY_NEWS:]
        ]
        for market in self.market.ledger.markets.values():
            answer = f"Answer: {market.answer}." if market.answer else "Not answered yet."
            path = market.prices_yes
            lines.append(f"{market.question.text} YES went from ${path[0]:.2f} to ${path[-1]:.2f}. {answer}")
        lines += [
            f"{self.employment_rate:.0%} of people have work, and goods cost ${self.average_price:.2f}.",
            f"On “{self.topic}” people stand at {self.mean_position:+.2f} on average (-1 against, 1 for).",
            f"{counted(self.posts, 'post')}, {self.talk} of them about the market or the economy; "
            f"{counted(self.trades, 'trade')}; {counted(self.crossings.n_reports, 'report')} of the paper, "
            f"{counted(self.crossings.n_bets, 'bet')} of the crowd; "
            f"{counted(self.heard, 'time')} somebody heard news of a world they were not looking at.",
        ]
        return "\n".join(["What happened:", *lines])


def town_claims(goal: str, last_step: int, work: float, price: float) -> tuple[Claim, ...]:
    """Return the questions of a town.

    Args:
        goal: Question of the town.
        last_step: Step after which the measures are taken.
        work: Employment rate above which the answer is yes.
        price: Average price of goods above which the answer is yes, in dollars.
    """
    return (
        Claim("employment_rate", work, 0.1, work_question(work, last_step)),
        Claim("avg_price", price, 2.0, price_question(price, last_step)),
        Claim(
            "opinion",
            0.0,
            0.15,
            opinion_question(goal, last_step),
        ),
    )


def is_worth_hearing(agent_id: int, event: Event) -> bool:
    """Check whether citizens hear of an event of another world: any but a metric without a market."""
    return is_newsworthy(event)


def is_scheduled(agent_id: int, event: Event) -> bool:
    """Check whether an event was scheduled; SimSwarm's bridge delivers no others."""
    return event.source == SCHEDULE
