"""Users of the social network, and their rule twin."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from mesa.discrete_space import CellAgent

from mesa_llm import AgentConfig, Decision, Failure, Mind, Observation, Outcome, Question, Settings, ToolCall
from mesa_llm.config import NOBODY
from mesa_llm.population.columns import ALWAYS, People
from mesa_llm.records import options_for
from mesa_llm.text import MAX_NAME
from mesa_llm_models.social.opinions import Opinions
from mesa_llm_models.social.text import ANSWERS, REMARKS, STATEMENTS
from mesa_llm_models.social.world import FeedItem, SocialFacts

WORD = re.compile(r"[^\W\d_]{5,}")
"""Words that indicate an interest: five letters or more."""

INTENTS: dict[str, tuple[tuple[str, dict[str, int]], ...]] = {
    "post": (("create_post", {}),),
    "like": (("like_post", {}), ("vote", {"value": 1})),
    "dislike": (("dislike_post", {}), ("vote", {"value": -1})),
    "answer": (("reply", {}), ("create_comment", {})),
    "share": (("repost", {}),),
    "follow": (("follow", {}),),
}
"""Intent of a user → the actions that serve it, in order of preference."""

NO_TOPICS = ("the news",)
"""Topics of a rule twin without its own topics."""

SETTINGS = Settings(temperature=1.0, max_tokens=2000)
"""Sampling settings of the users' language model."""

CHAT = 0.15
"""Probability that the rule twin uses groups or products, where available."""

CHAT_ACTIONS = ("send_to_group", "join_group", "create_group", "purchase_product")
"""Actions of the rule twin on groups and products."""


@lru_cache(maxsize=20_000)
def words_of(text: str) -> frozenset[str]:
    """Return the words of a text that indicate an interest, in lower case."""
    return frozenset(word.lower() for word in WORD.findall(text))


class PopulationValue[T]:
    """An attribute read from the model's population unless the user has its own value."""

    def __init__(self, look_up: Callable[[People, int], T], default: T) -> None:
        """Set the look-up.

        Args:
            look_up: Returns the value, given the population and the user's index in it.
            default: Value in a model without a population.
        """
        self.look_up, self.default = look_up, default

    def __get__(self, user: Any, kind: Any = None) -> Any:
        """Return the value, or the descriptor itself when read from the class."""
        if user is None:
            return self
        people, index = user.model.population, user.unique_id - 1
        return self.default if people is None or index >= len(people) else self.look_up(people, index)


class PopulationConfig(PopulationValue[AgentConfig]):
    """The config of a person of the population, who also has a view on what the network talks about, if any."""

    def __get__(self, user: Any, kind: Any = None) -> Any:
        """Return the config, or the descriptor itself when read from the class."""
        config = super().__get__(user, kind)
        if user is None or config is NOBODY:
            return config
        views = getattr(user.model, "views", None)
        return config if views is None else views.config(user.unique_id, config)


class SocialUser(Mind, CellAgent):
    """A user of the social network.

    Attributes not given come from the model's population, by the user's index. The memory is created on first use.

    Attributes:
        activity: Probability that the rule twin acts on its turn.
        topics: Topics that the rule twin writes about.
        mood: Share of its reactions that are friendly.
    """

    activity = 0.7
    mood = 0.85
    topics: Any = PopulationValue(lambda people, index: people.topics(index) or NO_TOPICS, NO_TOPICS)
    _config: Any = PopulationConfig(lambda people, index: people.config(index, SETTINGS), NOBODY)

    def __init__(
        self,
        model: Any,
        cell: Any = None,
        activity: float | None = None,
        topics: Sequence[str] = (),
        hours: Sequence[float] = (),
        **components: Any,
    ) -> None:
        """Create a user.

        Args:
            model: The model.
            cell: Its node of the network, if the network is drawn.
            activity: Probability that the rule twin acts on its turn; None for 0.7.
            topics: Topics that the rule twin writes about; empty for the population's.
            hours: 24 probabilities of being active; empty for the population's.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        if cell is not None:
            self.cell = cell
        if activity is not None:
            self.activity = activity
        if topics:
            self.topics = tuple(topics)
        if hours:
            self.hours = hours

    @property
    def hours(self) -> tuple[float, ...]:
        """24 probabilities of being active, from midnight on."""
        people, index = self.model.population, self.unique_id - 1
        return vars(self).get("_hours", ALWAYS) if people is None or index >= len(people) else people.hours[index]

    @hours.setter
    def hours(self, hours: Sequence[float]) -> None:
        people, index = self.model.population, self.unique_id - 1
        if people is None or index >= len(people):  # it has come later
            self._hours = tuple(hours)
        else:
            people.hours[index] = hours

    @property
    def first_memory(self) -> str | None:
        """Initial memory of the user."""
        return None if self.model.population is None else self.model.memory

    @property
    def interests(self) -> frozenset[str]:
        """Words that attract the rule twin's attention."""
        people: People | None = self.model.population
        about = people.description(self.unique_id - 1) if people and self.unique_id <= len(people) else None
        is_of_people = about is not None and ("_config" not in vars(self) or self.config.persona.startswith(about))
        persona = about if about is not None and is_of_people else self.config.persona  # the same with a design
        return words_of(f"{persona} {' '.join(self.topics)}")

    def observe(self) -> Observation:
        """Return the feed, below the user's beliefs if it has any."""
        seen = super().observe()
        return seen if self.opinions is None else self.opinions.on_mind(self.unique_id, seen)

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Carry out the decision, and register the posts read with the user's opinions."""
        outcomes = super().act(decision, seen)
        if seen is not None and self.opinions is not None:
            self.opinions.read(self.unique_id, seen.facts)
        return outcomes

    @property
    def opinions(self) -> Opinions | None:
        """Opinions of all users on the topic; None without beliefs."""
        return getattr(self.model, "opinions", None)

    @property
    def position(self) -> float | None:
        """Its position on the topic, -1 (against) to 1 (for); None without beliefs."""
        return None if self.opinions is None else self.opinions.position(self.unique_id)

    @property
    def n_followers(self) -> int:
        """Current number of followers."""
        return int(self.model.world.users.get("followers", self.unique_id))

    # -- the rule twin

    def rule(self, seen: Observation) -> ToolCall | None:
        """Act on interest, popularity and habit.

        A user acts with probability `activity`. It then writes a new post with probability 0.15 (always if there is
        nothing to react to), or reacts to one post, drawn by interest and popularity. With chat groups or products, it
        first uses these with probability 0.15.
        """
        facts: SocialFacts = seen.facts["social"] if isinstance(seen.facts, dict) else seen.facts
        if self.random.random() >= self.activity:
            return self._wish(seen, ())
        if (chat := self._chat(seen, facts)) is not None:
            return chat
        others = [item for item in facts.feed if item.post.source_author_id != self.unique_id]
        if not others or self.random.random() < 0.15:
            return self._wish(seen, ("post",), content=self.remark())
        interests = self.interests
        weights = [self.pull(item, interests) for item in others]
        (index,) = self.random.choices(range(len(others)), weights)
        return self._react(seen, others[index], min(1.0, weights[index] / 4))

    def pull(self, item: FeedItem, interests: frozenset[str] | None = None) -> float:
        """Compute how strongly a post attracts the user: the sum of interest, acquaintance and popularity.

        Args:
            item: A post of the feed.
            interests: Words that attract its attention; None for the user's own interests.

        Returns:
            At least 0.2; a shared word adds 1, a followed author 1, popularity ln(1 + likes + shares).
        """
        n_shared = len((self.interests if interests is None else interests) & words_of(item.post.content))
        return 0.2 + min(n_shared, 3) + item.is_followed + math.log1p(item.post.likes + item.post.shares)

    def _react(self, seen: Observation, item: FeedItem, interest: float) -> ToolCall | None:
        draw = self.random.random
        friendly = draw() < self.mood
        wishes = ["like" if friendly else "dislike"] if item.vote == 0 else []
        if draw() < 0.35 * interest:
            wishes.insert(0, "share")
        elif draw() < 0.3:
            wishes.insert(0, "answer")
        elif friendly and not item.is_followed and draw() < 0.4 * interest:
            wishes.insert(0, "follow")
        return self._wish(
            seen,
            wishes,
            content=self.random.choice(ANSWERS),
            post_id=item.post.source_id,
            user_id=item.post.source_author_id,
            repost_id=item.post.post_id,  # the repost itself, since the next user shares it from there
        )

    def _wish(self, seen: Observation, wishes: Sequence[str], **arguments: Any) -> ToolCall | None:
        """Return the first available action that serves one of the intents, or a decision to do nothing."""
        actions = seen.tools or ()
        whom = options_for("follow", seen.options).get("user_id")
        if whom is not None and arguments.get("user_id") not in whom:
            wishes = [wish for wish in wishes if wish != "follow"]
        needs = {"post": ("content",), "answer": ("content", "post_id"), "follow": ("user_id",)}
        for wish in wishes:
            for name, fixed in INTENTS[wish]:
                if name in actions:
                    own_arguments = {key: arguments[key] for key in needs.get(wish, ("post_id",))}
                    if wish == "share":
                        own_arguments["post_id"] = arguments["repost_id"]
                    offered = seen.options.get(f"{name}.post_id")  # where refusals are left out, as after a failure
                    if offered is None or own_arguments["post_id"] in offered:
                        return ToolCall(name, {**own_arguments, **fixed})
        return ToolCall("do_nothing") if "do_nothing" in actions else None

    def _chat(self, seen: Observation, facts: SocialFacts) -> ToolCall | None:
        """Write to a group, join one, open the first one, or buy something; draw no random numbers otherwise.

        It answers new messages in a group, starts a topic in a quiet one, and buys products in proportion to their
        sales.
        """
        has_groups = bool(facts.groups or facts.open_groups)
        offered = [
            name for name in CHAT_ACTIONS if name in (seen.tools or ()) and (name != "create_group" or not has_groups)
        ]
        if not offered or self.random.random() >= CHAT:
            return None
        match self.random.choice(offered):
            case "purchase_product":
                products = facts.products
                product = self.random.choices(products, [1 + product.sales for product in products])[0]
                return ToolCall("purchase_product", {"product_name": product.name, "amount": 1})
            case "send_to_group":
                group = self.random.choice(facts.groups)
                message = self.random.choice(ANSWERS) if group.messages else self.remark()
                return ToolCall("send_to_group", {"group_id": group.group_id, "message": message})
            case "join_group":
                return ToolCall("join_group", {"group_id": self.random.choice(facts.open_groups).group_id})
            case _:
                return ToolCall("create_group", {"name": self.random.choice(self.topics)[:MAX_NAME]})

    def rule_answer(self, question: Question) -> str:
        """Answer an interview with a remark on its topics, regardless of the question."""
        topics = self.topics[0] if len(self.topics) == 1 else f"{', '.join(self.topics[:-1])} and {self.topics[-1]}"
        return f"What I think about most is {topics}."

    def remark(self) -> str:
        """Return a remark on one of its topics; with beliefs, its position half of the time."""
        if self.opinions is not None and self.random.random() < 0.5:
            position = self.position or 0.0
            band = 0 if position >= 0.2 else 2 if position <= -0.2 else 1
            return self.random.choice(STATEMENTS[band]).format(topic=self.opinions.topic)
        return self.random.choice(REMARKS).format(topic=self.random.choice(self.topics))
