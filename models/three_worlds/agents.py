"""The citizens: users of the social network, traders and heads of firms in one; and their rule twin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mesa_llm import Decision, Failure, Observation, Outcome, ToolCall
from mesa_llm.joined import join
from mesa_llm.records import Event
from mesa_llm.worlds.beliefs import Beliefs, Exposure, beliefs_text
from mesa_llm.worlds.economy.state import Role
from models.economy.agents import govern, produce, with_offers
from models.market.agents import best_bet, with_choices
from models.social.agents import SocialUser
from models.three_worlds.claims import Claim
from models.three_worlds.opinions import exposures, learned

MOST_ACTIONS = 3
"""Things that a citizen can do in a step."""

REACH = 0.15
"""Part of the way to what it believes that one bet of the rule twin may move a price: many have seen the same."""

TALK = 0.35
"""Probability that the rule twin passes news on, where nobody in its feed has."""

OUTSPOKEN = 0.15
"""Probability that it says what it thinks of the town's question otherwise."""

SAID = (
    (0.6, "About the question everybody asks: yes, and gladly! It is a great and good thing for us all."),
    (0.2, "About the question everybody asks: I am hopeful, some good may come of it."),
    (-0.2, "About the question everybody asks: there are two sides to it, and I see both."),
    (-0.6, "About the question everybody asks: I have doubts, and I am afraid it may go wrong."),
    (-1.1, "About the question everybody asks: no! It is a terrible mistake and will hurt us all."),
)
"""What the rule twin says from which position on."""

OPENERS = ("Have you heard?", "This is going round:", "I just read this:", "Did everybody see this?")
"""How the rule twin passes news on."""


class Citizen(SocialUser):
    """Somebody who talks, bets and works in one town.

    Attributes:
        role: What it does in the economy.
        beliefs: What it thinks about the town's question.
        known: What it knows of the town: measure → value, as last seen or heard.
        met: Posts that it met in this step.
    """

    def __init__(self, model: Any, role: Role, beliefs: Beliefs, payout: float = 0.9, **components: Any) -> None:
        """Let somebody move in.

        Args:
            model: The model.
            role: What it does in the economy.
            beliefs: What it thinks at first.
            payout: Share of its firm's profit that the rule twin pays out.
            **components: `activity`, `topics`; `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.role: Role = role
        self.beliefs = beliefs
        self.payout = payout
        self.known: dict[str, float] = {}
        self.met: list[Exposure] = []

    # -- what it looks at

    @property
    def worlds(self) -> tuple[Any, ...]:
        """The worlds that it looks at in this step: one after the other, or all together."""
        worlds = self.model.worlds
        if self.model.looking == "together":
            return worlds
        return (worlds[(self.now + self.unique_id) % len(worlds)],)

    @property
    def news(self) -> list[Event]:
        """What it hears in this step of worlds that it is not looking at."""
        return self.model.bridge.heard((world.name for world in self.worlds), self.unique_id)

    @property
    def position(self) -> float:
        """What it thinks about the town's question, -1 (against) to 1 (for)."""
        return self.beliefs.positions.get(self.model.topic, 0.0)

    def observe(self) -> Observation:
        """Look at the worlds whose turn it is, and hear of the others."""
        looks = {world.name: self._look(world) for world in self.worlds}
        seen = join(looks, self.worlds)
        return self.with_news(
            replace(
                seen,
                text="\n\n".join(filter(None, (beliefs_text(self.beliefs), seen.text))),
                rules=f"{self.model.rules}\n\n{seen.rules}".strip(),
                max_actions=MOST_ACTIONS,
                facts={**seen.facts, "news": tuple(self.news)},
            )
        )

    def _look(self, world: Any) -> Observation:
        seen = world.observe(self.unique_id)
        if world is self.model.market:
            return with_choices(self, seen, world)
        if world is self.model.economy:
            return with_offers(self, seen)
        return seen

    def with_news(self, seen: Observation) -> Observation:
        """Put what it hears of other worlds after an observation, as far as it wants to hear of it."""
        news = self.model.bridge.digest((world.name for world in self.worlds), self.unique_id)
        if not news:
            return seen
        return replace(seen, text=f"{seen.text}\n\nNews from elsewhere:\n{news}", cue=seen.cue or seen.text)

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Do what was decided, and keep in mind what was seen and heard."""
        outcomes = super().act(decision, seen)
        if seen is not None:
            reports = self.model.crossings.reports
            self.known = learned(self.known, seen.facts, reports)
            self.met = exposures(self.unique_id, seen.facts, reports)
            self.model.bridge.deliver((world.name for world in self.worlds), self.unique_id)
        return outcomes

    # -- the rule twin

    def rule(self, seen: Observation) -> list[ToolCall]:
        """Do one thing in each world that it looks at; in the economy alone up to three."""
        facts: Mapping[str, Any] = seen.facts
        done: list[ToolCall] = []
        if "social" in facts:
            done += filter(None, (self._talk(facts) or super().rule(seen),))
        if "market" in facts:
            done += filter(None, (best_bet(facts["market"], self.guesses(facts), self.random, REACH),))
        if "economy" in facts:
            seen_there = facts["economy"]
            firm = govern(seen_there) if self.role == "government" else produce(seen_there, self.random, self.payout)
            done += firm if len(facts) == 2 else [self.random.choice(firm)]
        useful = [call for call in done if call.name != "do_nothing"]
        return useful[:MOST_ACTIONS] or [ToolCall("do_nothing")]

    def guesses(self, facts: Mapping[str, Any]) -> dict[str, float]:
        """Give what it takes for the probability of each question of the market, as far as it knows anything.

        Args:
            facts: What it sees, by world, and `news`.
        """
        known = learned(self.known, facts, self.model.crossings.reports)
        if "opinion" in known:  # people take others to think a little as they do themselves
            known["opinion"] = 0.75 * known["opinion"] + 0.25 * self.position
        asked: dict[str, Claim] = self.model.claims
        return {key: claim.chance(known[claim.measure]) for key, claim in asked.items() if claim.measure in known}

    def _talk(self, facts: Mapping[str, Any]) -> ToolCall | None:
        """Pass the latest news of other worlds on, unless the feed shows that somebody has; or say what it thinks."""
        paper = self.model.crossings.paper
        read = "\n".join(item.post.content for item in facts["social"].feed if item.post.source_author_id != paper)
        fresh = [event.text for event in facts["news"] if event.text and event.text not in read]
        if fresh and self.random.random() < TALK:
            return ToolCall("create_post", {"content": f"{self.random.choice(OPENERS)} {fresh[-1]}"})
        if self.random.random() < OUTSPOKEN:
            return ToolCall("create_post", {"content": self.remark()})
        return None

    def remark(self) -> str:
        """Say what it thinks about the town's question."""
        return next(words for floor, words in SAID if self.position >= floor)
