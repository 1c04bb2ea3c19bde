"""Townspeople, who use the social network, trade and run firms; their knowledge of the town, and their rule twin."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from mesa_llm import Decision, Failure, LLMModel, Observation, Outcome, Persona, ToolCall
from mesa_llm.agents.observation import join
from mesa_llm.engine.survey import llm_for
from mesa_llm.model.text_extraction import Cast, Character, distinct, names_in, personas_of
from mesa_llm.records import Event
from mesa_llm.text import tone
from mesa_llm_models.economy.agents import govern, produce, with_offers
from mesa_llm_models.economy.world import EconomyFacts, Role
from mesa_llm_models.market.agents import best_bet, with_choices
from mesa_llm_models.social.agents import SocialUser
from mesa_llm_models.social.beliefs import Beliefs, Exposure, StepPost, beliefs_text, exposure_of
from mesa_llm_models.social.world import SocialFacts

MAX_ACTIONS = 3
"""Maximum number of actions of a citizen in a step."""

REACH = 0.15
"""Share of the distance to its belief by which one bet of the rule twin may move a price; others bet on the same."""

TALK = 0.35
"""Probability that the rule twin passes on news that its feed does not show."""

OUTSPOKEN = 0.15
"""Probability that the rule twin states its opinion if it passes on no news."""

OPINION_WEIGHT = 0.5
"""Weight of a viral post in an estimate of the town's opinion, against all posts before."""

OPINIONS = (
    (0.6, "About the question everybody asks: yes, and gladly! It is a great and good thing for us all."),
    (0.2, "About the question everybody asks: I am hopeful, some good may come of it."),
    (-0.2, "About the question everybody asks: there are two sides to it, and I see both."),
    (-0.6, "About the question everybody asks: I have doubts, and I am afraid it may go wrong."),
    (-1.1, "About the question everybody asks: no! It is a terrible mistake and will hurt us all."),
)
"""Lowest position → statement of the rule twin from that position on."""

OPENERS = ("Have you heard?", "This is going round:", "I just read this:", "Did everybody see this?")
"""Opening words of the rule twin when it passes on news."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A question of the market that a measure of the town answers."""

    measure: str
    """Name of the measure: `employment_rate`, `avg_price` (both of the economy) or `opinion` (mean position)."""

    threshold: float
    """Value above which the answer is yes, in the unit of the measure."""

    scale: float
    """Distance from the threshold at which the odds of yes are e to 1, in the unit of the measure."""

    text: str
    """The question."""

    def chance(self, value: float) -> float:
        """Estimate the probability of yes from the present value of the measure.

        Args:
            value: The measure, in its unit.

        Returns:
            A probability from 0.001 to 0.999.
        """
        return float(np.clip(expit((value - self.threshold) / self.scale), 0.001, 0.999))


class Townsperson(SocialUser):
    """A citizen of the town, who talks, bets and works.

    Attributes:
        role: Role in the economy: producer or government.
        beliefs: Beliefs on the town's question.
        knowledge: Measure of the town → value last observed or heard.
        exposures: Posts read or heard of in this step.
    """

    def __init__(self, model: Any, role: Role, beliefs: Beliefs, payout: float = 0.9, **components: Any) -> None:
        """Create a citizen.

        Args:
            model: The model.
            role: Role in the economy: producer or government.
            beliefs: Initial beliefs.
            payout: Share of its firm's profit that the rule twin pays out.
            **components: `activity`, `topics`; `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.role: Role = role
        self.beliefs = beliefs
        self.payout = payout
        self.knowledge: dict[str, float] = {}
        self.exposures: list[Exposure] = []

    # -- observation

    @property
    def worlds(self) -> tuple[Any, ...]:
        """The worlds to visit in this step: one in turn, or all."""
        worlds = self.model.worlds
        if self.model.scenario.visits == "together":
            return worlds
        return (worlds[(self.now + self.unique_id) % len(worlds)],)

    @property
    def news(self) -> list[Event]:
        """The news of this step from the other worlds."""
        return self.model.bridge.heard((world.name for world in self.worlds), self.unique_id)

    @property
    def position(self) -> float:
        """Position on the town's question, -1 (against) to 1 (for)."""
        return self.beliefs.positions.get(self.model.topic, 0.0)

    def observe(self) -> Observation:
        """Observe the visited worlds, and the news of the others."""
        looks = {world.name: self._look(world) for world in self.worlds}
        seen = join(looks, self.worlds)
        return self.with_news(
            replace(
                seen,
                text="\n\n".join(filter(None, (beliefs_text(self.beliefs), seen.text))),
                max_actions=MAX_ACTIONS,
                facts={**seen.facts, "news": tuple(self.news)},
            )
        )

    def _look(self, world: Any) -> Observation:
        seen = self.observation_of(world)
        if world is self.model.market:
            return with_choices(self, seen, world)
        if world is self.model.economy:
            return with_offers(self, seen)
        return seen

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Carry out the decision, and update knowledge and exposures by what was observed."""
        outcomes = super().act(decision, seen)
        if seen is not None:
            reports = self.model.crossings.reports
            self.knowledge = updated_knowledge(self.knowledge, seen.facts, reports)
            self.exposures = exposures_of(self.unique_id, seen.facts, reports)
            self.model.bridge.deliver((world.name for world in self.worlds), self.unique_id)
        return outcomes

    # -- the rule twin

    def rule(self, seen: Observation) -> list[ToolCall]:
        """Act once in each visited world, up to three times if the economy is the only one."""
        facts: Mapping[str, Any] = seen.facts
        actions: list[ToolCall] = []
        if "social" in facts:
            actions += filter(None, (self._talk(facts) or super().rule(seen),))
        if "market" in facts:
            actions += filter(None, (best_bet(facts["market"], self.guesses(facts), self.random, REACH),))
        if "economy" in facts:
            economy = facts["economy"]
            firm = govern(economy) if self.role == "government" else produce(economy, self.random, self.payout)
            actions += firm if len(facts) == 2 else [self.random.choice(firm)]
        useful = [call for call in actions if call.name != "do_nothing"]
        return useful[:MAX_ACTIONS] or [ToolCall("do_nothing")]

    def guesses(self, facts: Mapping[str, Any]) -> dict[str, float]:
        """Estimate the probability of yes of each question whose measure the citizen knows.

        Args:
            facts: Facts by world, and `news`.

        Returns:
            Market → probability of yes.
        """
        knowledge = updated_knowledge(self.knowledge, facts, self.model.crossings.reports)
        if "opinion" in knowledge:  # people take others to think a little as they do themselves
            knowledge["opinion"] = 0.75 * knowledge["opinion"] + 0.25 * self.position
        claims: Mapping[str, Claim] = self.model.claims
        return {
            market_id: claim.chance(knowledge[claim.measure])
            for market_id, claim in claims.items()
            if claim.measure in knowledge
        }

    def _talk(self, facts: Mapping[str, Any]) -> ToolCall | None:
        """Pass on the latest news of other worlds, unless it is in the feed already; otherwise state an opinion."""
        paper = self.model.crossings.paper
        feed = "\n".join(item.post.content for item in facts["social"].feed if item.post.source_author_id != paper)
        news = [event.text for event in facts["news"] if event.text and event.text not in feed]
        if news and self.random.random() < TALK:
            return ToolCall("create_post", {"content": f"{self.random.choice(OPENERS)} {news[-1]}"})
        if self.random.random() < OUTSPOKEN:
            return ToolCall("create_post", {"content": self.remark()})
        return None

    def remark(self) -> str:
        """Return a statement of the citizen's opinion on the town's question."""
        return next(opinion for floor, opinion in OPINIONS if self.position >= floor)


# -- knowledge and exposures


def own_words(text: str, reports: Collection[str]) -> str:
    """Return a post without the news that it quotes: a quoted price is no argument.

    Args:
        text: The post.
        reports: Texts of the published news.
    """
    for report in reports:
        text = text.replace(report, " ")
    return text.strip()


def updated_knowledge(
    knowledge: Mapping[str, float], facts: Mapping[str, Any], reports: Collection[str]
) -> dict[str, float]:
    """Compute a citizen's knowledge of the town's measures after an observation and the news.

    Args:
        knowledge: Measure → value known before.
        facts: Facts by world, and `news`.
        reports: Texts of the news published so far, which are no argument.

    Returns:
        Measure → value, for the known measures.
    """
    updated = dict(knowledge)
    for event in facts.get("news", ()):
        _hear(updated, event, reports)
    economy: EconomyFacts | None = facts.get("economy")
    if economy is not None and economy.step > 0:
        updated |= {name: economy.metrics[name] for name in ("employment_rate", "avg_price")}
    social: SocialFacts | None = facts.get("social")
    posts = [(own_words(item.post.content, reports), item.post.score) for item in (social.feed if social else ())]
    tones = [(tone(text), 1 + max(score, 0)) for text, score in posts if text]
    if tones:
        updated["opinion"] = sum(value * weight for value, weight in tones) / sum(weight for _, weight in tones)
    return updated


def _hear(knowledge: dict[str, float], event: Event, reports: Collection[str]) -> None:
    """Update the knowledge by one piece of news."""
    facts = event.facts
    if event.kind == "metric_change":
        knowledge[str(facts["metric"])] = float(facts["current"])
    elif event.kind == "viral_post":
        opinion = knowledge.get("opinion", 0.0)
        knowledge["opinion"] = opinion + OPINION_WEIGHT * (tone(own_words(str(facts["text"]), reports)) - opinion)
    elif event.kind == "policy_change" and facts.get("variable") == "tax_rate" and isinstance(facts["value"], float):
        previous = facts.get("previous")
        rise = facts["value"] - (previous if isinstance(previous, float) else 0.0)
        if "avg_price" in knowledge:
            knowledge["avg_price"] *= 1 + rise
        if "employment_rate" in knowledge:
            knowledge["employment_rate"] *= 1 - max(rise, 0.0) / 2


def exposures_of(reader_id: int, facts: Mapping[str, Any], reports: Collection[str]) -> list[Exposure]:
    """Return the posts by others that move a reader: those in its feed, and viral ones from the news.

    Args:
        reader_id: Mesa `unique_id` of the reader.
        facts: Facts by world, and `news`.
        reports: Texts of the news published so far; of a post, only the other words count.
    """
    social: SocialFacts | None = facts.get("social")
    posts = [
        StepPost(item.post.source_id, item.post.source_author_id, item.post.content, item.post.likes)
        for item in (social.feed if social is not None else ())
    ]
    posts += [
        StepPost(event.facts["post_id"], event.facts["author_id"], event.facts["text"], event.facts["score"])
        for event in facts.get("news", ())
        if event.kind == "viral_post"
    ]
    others = [replace(post, text=own_words(post.text, reports)) for post in posts if post.author != reader_id]
    return [exposure_of(post) for post in others if post.text]


# -- the cast of a town


def cast_of(model: LLMModel, background: str, goal: str, n: int) -> list[Persona]:
    """Find the people and bodies that the background of a town names, as personas with unique names.

    Args:
        model: The model, whose language model is asked once. A rule, or an unusable reply, falls back
            to the words with a capital.
        background: The background of the town.
        goal: Question that concerns them.
        n: Maximum number of personas.
    """

    def by_rule(_prompt: str) -> Cast:
        return Cast(characters=[Character(name=name) for name in names_in(background, n)])

    prompt = model.prompt("cast.md", goal=goal, background=background, n=n)
    (reply,) = model.consult(llm_for(model.llm, "cast"), [prompt], answer=Cast, purpose="cast", rule=by_rule)
    cast: Cast = reply.answer if isinstance(reply, Decision) else by_rule("")
    return personas_of(distinct(cast.characters), "the background of the town")[:n]
