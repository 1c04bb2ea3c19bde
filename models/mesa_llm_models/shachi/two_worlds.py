"""One population in two worlds: people alternately trade on an exchange and talk on a social network."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import AgentConfig, Bridge, Label, LLMModel, LLMOptions, LLMScenario, Observation, Structure, ToolCall
from mesa_llm.agents.agent import LLMMixin
from mesa_llm.engine.activation import Stage, llm_agents
from mesa_llm.experiments.runs.neutral import NEUTRAL
from mesa_llm.memory import Memory, MemoryEntry, memory_from_json, open_memory
from mesa_llm.memory.transfer import endless, filler
from mesa_llm.model.schedule import Role, Visit, WorldSchedule
from mesa_llm.population import invented
from mesa_llm.prompts import open_prompt
from mesa_llm.world import World
from mesa_llm_models.oasis.model import INFLUENCER, POST, fan_edges
from mesa_llm_models.shachi.traders import PairedTrader, order_near
from mesa_llm_models.social.agents import SETTINGS, SocialUser
from mesa_llm_models.social.world import Account, SocialWorld
from mesa_llm_models.stock_agent.agents import STYLE, Twin, strategies, with_menu
from mesa_llm_models.stock_agent.model import StockAgentModel
from mesa_llm_models.stock_agent.scores import total_change
from mesa_llm_models.stock_agent.world import (
    STOCKS,
    Calendar,
    Close,
    Exchange,
    Moment,
    Stock,
    TraderFacts,
    draw_endowments,
)

OTHER_POST = "The town's bakers have agreed on one recipe for the rye loaf of the autumn fair, a newspaper reports."
"""Post in the control with another topic."""

ACTIONS = ("create_post", "create_comment", "like_post", "repost", "quote_post", "do_nothing")
"""Actions on the social network."""

Coupling = Literal["shared", "isolated", "filler", "alone"]
"""Link between the worlds: one memory (`shared`); one memory each (`isolated`), optionally with neutral text instead of
the network's (`filler`); or no network at all (`alone`).
"""

DEALS = re.compile(r"\b(bought|sold) ([AB])\b")
"""Trades as the rule twin posts them and recognises them in others' posts."""

TECHNOLOGY = re.compile(r"\b(?:Amazon|technology)\b")
"""Words the rule twin takes as good news for the technology firm, stock B."""

TRADE_TALK = re.compile(r"\b(?:stocks?|shares?|bought|sold|trad(?:e|es|ed|er|ers|ing)|invest\w*)\b", re.IGNORECASE)
"""Words that mark a post or comment as about trading."""

MARGIN = 0.01
"""Distance from the latest price the rule twin accepts on hearsay, as a fraction of it."""


class TwoWorldsScenario(LLMScenario):
    """Parameters of a population in two worlds. Shachi's study has 50 people, 10 days and 50 turns."""

    n_agents: Annotated[int, Field(ge=2)] = 10
    """Number of people, who trade and talk; 50 in the study."""

    days: Annotated[int, Field(ge=1)] = 10
    """Number of days until the exchange closes."""

    sessions: Annotated[int, Field(ge=1)] = 3
    """Number of trading sessions per day."""

    turns: Annotated[int, Field(ge=1)] | None = None
    """Number of trading turns between two network steps; None for one turn each, a session. 50 in the study."""

    order: Annotated[
        Literal["social_first", "exchange_first"],
        Label("World visited first"),
        Structure("exchange_first", dimension="interaction protocol"),
    ] = "social_first"
    """First world to visit: the network, as in the study's program, or the exchange, as in its text."""

    coupling: Annotated[Coupling, Label("What the worlds have in common")] = "shared"
    """Link between the worlds: one memory, one memory each, the same with neutral text, or no network."""

    post: Annotated[str, Field(min_length=1, max_length=5000), Label("Post that all see first")] = POST
    """Post by the account everyone follows."""

    news_crosses: bool = False
    """Whether people also receive news from the other world, as a second link besides memory."""

    twin: Annotated[Twin, Label("Rule of the traders")] = "mixed"
    """Rule by which rule twins trade when not following hearsay."""

    hearsay: Annotated[float, Field(ge=0, le=1), Label("Rule twins follow hearsay")] = 0.5
    """Probability that a rule twin follows hearsay about a stock in its memory."""

    talk: Annotated[float, Field(ge=0, le=1), Label("Rule twins talk of trades")] = 0.5
    """Probability that a rule twin on the network posts about the trade it remembers."""

    ties: Annotated[float, Field(ge=0, le=20), Structure(1.0, 6.0)] = 3.0
    """Mean number of others each person follows, besides the account everyone follows."""

    memory: Annotated[str, Label("Memory")] = "chat:4000:3"
    """Memory of each person, or of each person in each world."""


class Inhabitant(PairedTrader, SocialUser):
    """A person who trades or talks, depending on the model's current `world`."""

    @property
    def is_original(self) -> bool:
        """False: observation and memory are the corrected model's."""
        return False

    def observe(self) -> Observation:
        """Return the observation of the current world."""
        if self.model.is_social:
            return SocialUser.observe(self)
        seen = LLMMixin.observe(self)
        return with_menu(seen, self.facts) if self.opened.capabilities.needs_options else seen

    def act_by_rule(self, seen: Observation) -> ToolCall | None:
        """Trade by the strategy or on hearsay; post about trades, or as the social rule twin."""
        if self.model.is_social:
            return self._trade_talk(seen) or SocialUser.rule(self, seen)
        usual = super().act_by_rule(seen)
        if self.model.world.now.stage != "trade" or self.random.random() >= self.model.scenario.hearsay:
            return usual
        return order_upon(heard_in(self.memory.entries), self.facts) or usual

    def _trade_talk(self, seen: Observation) -> ToolCall | None:
        """Post about the latest trade in memory."""
        text = last_deal_in(self.memory.entries)
        if text is None or self.random.random() >= self.model.scenario.talk:
            return None
        return self._wish(seen, ("post",), content=f"I {text} today, and I would do it again.")


def heard_in(entries: Iterable[MemoryEntry]) -> Counter[Stock]:
    """Count the votes for each stock in a memory of the network: buyers less sellers, plus one for B's topic.

    Args:
        entries: Entries of a memory.
    """
    texts = [entry.text for entry in entries if entry.world == "social" and entry.kind == "observation"]
    votes: Counter[Any] = Counter()
    for verb, stock in (deal for text in texts for deal in DEALS.findall(text)):
        votes[stock] += 1 if verb == "bought" else -1
    votes["B"] += any(TECHNOLOGY.search(text) for text in texts)
    return votes


def order_upon(votes: Counter[Stock], facts: TraderFacts) -> ToolCall | None:
    """Return an order in the stock with the most votes, on the voted side; None without votes.

    Args:
        votes: Buyers less sellers, by stock.
        facts: The trader's observed facts.
    """
    stock = max(STOCKS, key=lambda one: abs(votes[one]))
    if not votes[stock]:
        return None
    return order_near(facts, "buy" if votes[stock] > 0 else "sell", stock, MARGIN)


def last_deal_in(entries: Iterable[MemoryEntry]) -> str | None:
    """Return the latest order in a memory of the exchange, as `bought A`; None without any."""
    orders = [entry.text for entry in entries if entry.world == "exchange" and entry.kind == "outcome"]
    deals = [re.match(r"You (bid for|offered) [^;.]*? of ([AB]) at ", text) for text in orders]
    last = next((deal for deal in reversed(deals) if deal), None)
    return last and f"{'bought' if last[1] == 'bid for' else 'sold'} {last[2]}"


class TwoWorldsModel(LLMModel):
    """People alternate between a social network and an exchange: one network step, then some trading turns.

    A step is a step of the network, a stage of the exchange's day, or the part of a session within the visit. Loans,
    forecasts and posts on the exchange's forum are simultaneous and do not count as turns. Each world has its own
    random generator, and time passes alike for every `coupling`, so runs with one seed differ only in the coupling and
    its consequences.

    Attributes:
        exchange: The exchange.
        social: The social network.
    """

    scenario_class = TwoWorldsScenario
    scenario: TwoWorldsScenario
    schedule: WorldSchedule

    def __init__(self, scenario: TwoWorldsScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Open the exchange, sign people up on the network, and publish the first post there."""
        options.setdefault("activation", turns_of_visit)
        super().__init__(scenario, **options)
        chosen = self.scenario
        if options.get("bridge") is None:
            self.bridge = Bridge(steps_alive=int(chosen.news_crosses))
        n = chosen.n_agents
        chance = {name: random.Random(f"{self.run_seed} {name}") for name in ("people", "exchange", "social")}
        endowments = draw_endowments(range(1, n + 1), chance["exchange"])
        self.exchange = Exchange(
            endowments, chance["exchange"], calendar=Calendar(chosen.days, chosen.sessions), name="exchange"
        )
        self.social = SocialWorld("x", rng=chance["social"], actions=ACTIONS)
        self.worlds = (self.social, self.exchange)
        visits = [Visit("social"), Visit("exchange", chosen.turns or n)]
        self.schedule = WorldSchedule(visits[:: 1 if chosen.order == "social_first" else -1], until="exchange")
        people = invented(n, chance["people"])
        for endowment, strategy, persona in zip(
            endowments, strategies(chosen.twin, n, chance["people"]), people, strict=True
        ):
            style = endowment.style
            trading = AgentConfig(
                name=persona.name,
                persona=open_prompt(StockAgentModel, f"{style.lower()}.md").fill({}),
                traits={STYLE: style},
                settings=SETTINGS,
            )
            self._add(strategy, persona.topics, trading, persona.config(settings=SETTINGS))
        self._sign_up(people, chance["social"])
        self._stage: Moment | None = None
        self._waiting: list[int] = []
        self._turns: list[int] = []
        self._neutral = endless(NEUTRAL)
        self.datacollector = DataCollector(
            {
                **{name: name for name in ("present", "day", "session", "n_posts", "n_trade_posts")},
                **{f"price_{stock}": f"price_{stock.lower()}" for stock in STOCKS},
            }
        )
        self.datacollector.collect(self)

    # -- set-up

    def _add(self, strategy: Any, topics: tuple[str, ...], trading: AgentConfig, talking: AgentConfig) -> None:
        """Add a person with a role in each world."""
        memory = open_memory(self.scenario.memory)
        agent = Inhabitant(self, strategy, topics=topics, config=trading, memory=memory)
        is_shared = self.scenario.coupling == "shared"
        agent.roles = {
            "exchange": Role(agent.config, agent.memory, agent.tools),
            "social": Role(talking, agent.memory if is_shared else _another(agent.memory), agent.tools),
        }

    def _sign_up(self, people: list[Any], rng: random.Random) -> None:
        """Sign people up, connect them, and publish the first post by the account everyone follows."""
        n = len(people)
        account = n + 1
        self.social.sign_up_many(
            Account(index, person.name, person.username, person.bio) for index, person in enumerate(people, 1)
        )
        self.social.sign_up(account, INFLUENCER.name)
        edges = fan_edges(n + 1, min(self.scenario.ties, n - 1), rng)
        self.social.follow_many([(follower, followee or account) for follower, followee in edges])
        self.social.create_post(account, self.scenario.post)
        self.social.end_step()

    # -- the visits

    @property
    def world(self) -> Any:
        """The current world."""
        return self.present_worlds[0]

    @property
    def is_social(self) -> bool:
        """Whether people are on the social network now."""
        return self.world is self.social

    @property
    def instructions_text(self) -> str:
        """Instructions for every prompt in the current world."""
        return self.prompt("social.md" if self.is_social else "exchange.md")

    def turns_of(self) -> list[Stage]:
        """Return the agents to act now, as stages."""
        people = {agent.unique_id: agent for agent in llm_agents(self)}
        if self.is_social:
            if self.scenario.coupling == "alone":
                return []
            return [[people[index] for index in self._shuffled(list(people))]]
        if self.exchange.now != self._stage:
            self._stage, self._waiting = self.exchange.now, list(self.exchange.turn_order)
        takes_turns = self.exchange.takes_turns
        self._turns = self._waiting[: self.schedule.remaining if takes_turns else None]
        agents = [people[index] for index in self._turns]
        return [[agent] for agent in agents] if takes_turns else [agents]

    def _shuffled(self, ids: list[int]) -> list[int]:
        random.Random(f"{self.run_seed} order {self.now}").shuffle(ids)
        return ids

    @property
    def visit_length(self) -> int:
        """Length of the step: 1 on the network, otherwise the number of trading turns taken."""
        return 1 if self.is_social else len(self._turns) if self.exchange.takes_turns else 0

    @property
    def ending_worlds(self) -> tuple[World, ...]:
        """The current world, unless it is an exchange in the middle of a session."""
        return () if not self.is_social and self._waiting else self.present_worlds

    def end_step(self) -> None:
        """Store the traders still waiting for a turn, and replace memories of the network with neutral text."""
        if not self.is_social:
            self._waiting = self._waiting[len(self._turns) :]
        elif self.scenario.coupling == "filler":
            self._fill()

    def _fill(self) -> None:
        """Add neutral text to everybody's memory, as long as the memory of this network step."""
        for agent in llm_agents(self):
            for entry in agent.roles["social"].memory.entries:
                if entry.time == self.now:
                    text = filler(len(entry.text), self._neutral)
                    agent.roles["exchange"].memory.add(MemoryEntry(self.now, entry.kind, text, world="social"))

    # -- measures

    @property
    def present(self) -> str:
        """Name of the last step's world; empty before the first."""
        return self.world.name if self.time else ""

    @property
    def day(self) -> int:
        """Day on the exchange."""
        return self.exchange.now.day

    @property
    def session(self) -> int:
        """Session of the day; 0 before the first."""
        return self.exchange.now.session

    @property
    def price_a(self) -> float:
        """Latest session price of A."""
        return self.exchange.market.prices["A"]

    @property
    def price_b(self) -> float:
        """Latest session price of B."""
        return self.exchange.market.prices["B"]

    @property
    def n_posts(self) -> int:
        """Number of posts, quotes and comments by people so far, without the first post."""
        return len(self.writings())

    @property
    def n_trade_posts(self) -> int:
        """Number of such posts about trading."""
        return sum(bool(TRADE_TALK.search(text)) for _, text in self.writings())

    def writings(self) -> list[tuple[int, str]]:
        """Return (network step, text) of everything people wrote."""
        posts = [row for row in self.social.measures.posts_table() if row["user_id"] <= self.scenario.n_agents]
        rows = [*posts, *self.social.measures.comments_table()]
        return [(row["step"], str(row["content"])) for row in rows if row["content"]]

    def results(self) -> dict[str, Any]:
        """Return the indicators in Shachi's Table 3 by stock, price changes in percent, and the posts about trading.

        `volume` counts matched orders, `buys` and `sells` the orders submitted. `course` has the price paths, the
        orders of each session by stock, and the posts about trading in each network step.
        """
        closes: dict[Stock, list[Close]] = {
            stock: [one for one in self.exchange.history.closes if one.stock == stock] for stock in STOCKS
        }
        figures: dict[str, Any] = {}
        for stock, own in closes.items():
            figures[f"volume_{stock}"] = sum(one.fills for one in own)
            figures[f"buys_{stock}"] = sum(one.buys for one in own)
            figures[f"sells_{stock}"] = sum(one.sells for one in own)
            figures[f"change_{stock}"] = total_change(self.exchange.market.paths[stock])
        return figures | {
            "posts": self.n_posts,
            "trade_posts": self.n_trade_posts,
            "refused": self.n_refused,
            "course": self._course(closes),
        }

    def _course(self, closes: dict[Stock, list[Close]]) -> dict[str, list[float]]:
        steps = Counter(step for step, text in self.writings() if TRADE_TALK.search(text))
        return {
            **{f"price_{stock}": list(self.exchange.market.paths[stock]) for stock in STOCKS},
            **{f"orders_{stock}": [one.buys + one.sells for one in own] for stock, own in closes.items()},
            "trade_posts": [steps[step] for step in range(1, self.social.step)],
        }

    def story(self) -> str:
        """Describe prices, orders and posts."""
        results = self.results()
        lines = [
            f"{stock}: {results[f'buys_{stock}']} orders to buy, {results[f'sells_{stock}']} to sell, "
            f"{results[f'volume_{stock}']} matched; the price changed by {results[f'change_{stock}']:+.1f}%."
            for stock in STOCKS
        ]
        lines.append(f"{results['posts']} posts and comments, {results['trade_posts']} of them about trading.")
        return "\n".join(["What happened:", *lines])


def _another(memory: Memory) -> Memory:
    """Return a copy of a memory."""
    return memory_from_json(memory.to_json())


def turns_of_visit(model: TwoWorldsModel) -> list[Stage]:
    """Return the agents to act in the current world."""
    return model.turns_of()
