"""Truths and rumours on four topics, published together by one account: which spread further?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import Hidden, LLMOptions, Observation, Slider, ToolCall
from mesa_llm.population import core_ordinary_follows
from mesa_llm.population.columns import People, people_of
from mesa_llm.text import counted
from mesa_llm.worlds.social import SocialFacts
from mesa_llm_models.social.agents import SocialUser
from mesa_llm_models.social.model import SocialModel, SocialScenario

Kind = Literal["truth", "rumour"]


@dataclass(frozen=True)
class Story:
    """A post of the publisher."""

    topic: str
    """Topic of the post."""

    kind: Kind
    """Truth or rumour."""

    text: str
    """Text of the post."""


STORIES = (
    Story("technology", "truth", "A parcel service tests small drones that bring medicine to islands off the coast."),
    Story("technology", "rumour", "Delivery drones film every garden they cross and sell the pictures, insiders say."),
    Story("education", "truth", "A university lets students from families with low incomes study without fees."),
    Story("education", "rumour", "A famous university is about to give places to whoever bids most, in an auction."),
    Story("entertainment", "truth", "The last part of a well-known film series runs for about three hours."),
    Story(
        "entertainment",
        "rumour",
        "The lead actor died during the shoot and was replaced by a computer. Nobody says so.",
    ),
    Story("health", "truth", "Half an hour of brisk walking a day lowers the risk of heart disease."),
    Story("health", "rumour", "Running after the age of forty destroys the heart, doctors admit behind closed doors."),
)
"""Four topics as in OASIS's study, in our own words; all rumours are invented."""

TOPICS = tuple(dict.fromkeys(story.topic for story in STORIES))

CORE_SHARE = 0.05
"""Share of core users, who have followers and are ten times as active."""


class RumourScenario(SocialScenario):
    """Parameters of truths and rumours."""

    n_agents: Annotated[Annotated[int, Field(ge=10)] | None, Slider(50, 1000, 50, label="Users")] = 400
    """Number of users, including the publisher; one in twenty is a core user."""

    preset: Annotated[Literal["information_spreading"], Hidden()] = "information_spreading"
    """Feed and actions of OASIS's study."""

    core_activity: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.01, label="Activity of core users")] = 0.1
    """Probability that a core user is active in a step (OASIS: 0.1)."""

    activity: Annotated[float, Field(ge=0, le=1), Slider(0, 0.2, 0.01, label="Activity of ordinary users")] = 0.01
    """Probability that an ordinary user is active in a step (OASIS: 0.01)."""

    follow_probability: Annotated[
        float, Field(ge=0, le=1), Slider(0, 1, 0.05, label="Probability to follow a core user of one's topic")
    ] = 0.2
    """Probability that an ordinary user follows a core user with a shared topic."""

    sharing: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05, label="Rule twin shares a truth")] = 0.3
    """Probability that the rule twin shares a truth it reads."""

    allure: Annotated[float, Field(ge=0, le=3), Slider(0, 3, 0.1, label="Allure of rumours")] = 1.5
    """Factor on that probability for a rumour; 1 for no difference."""

    memory: Annotated[str, Hidden()] = "window:6"
    """Memory of the users."""


class Bystander(SocialUser):
    """A user who reads stories. The rule twin shares some.

    Attributes:
        is_core: Whether this is a core user.
    """

    is_core = False

    def rule(self, seen: Observation) -> ToolCall | None:
        """Choose a random story from the feed, and share it with the probability of its kind."""
        facts: SocialFacts = seen.facts
        scenario = self.model.scenario
        stories = [item for item in facts.feed if item.post.source_id in self.model.stories]
        shareable = [item for item in stories if item.post.source_author_id != self.unique_id]
        shareable = [item for item in shareable if (self.unique_id, item.post.source_id) not in self.model.sharers]
        if shareable and "repost" in (seen.tools or ()):
            item = self.random.choice(shareable)
            allure = scenario.allure if self.model.stories[item.post.source_id].kind == "rumour" else 1.0
            if self.random.random() < min(1.0, scenario.sharing * allure):
                return ToolCall("repost", {"post_id": item.post.post_id})
        return ToolCall("do_nothing") if "do_nothing" in (seen.tools or ()) else None


class RumourModel(SocialModel):
    """One account publishes four truths and four rumours to ordinary users and to active, popular core users.

    Attributes:
        stories: Id of a post → its story.
        sharers: (User id, post id) of each share of a story.
        n_core: Number of core users, including the publisher.
    """

    scenario_class = RumourScenario
    changeable = ("sharing", "allure", "core_activity", "activity")
    scenario: RumourScenario
    user_class = Bystander
    n_core: int
    _order: Sequence[Story] = STORIES

    def __init__(self, scenario: RumourScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Sign up the users, and publish all stories."""
        super().__init__(scenario, **options)
        if "activation" not in options:
            self.activation = RumourModel.awake
        for agent in list(self.agents)[: self.n_core]:
            agent.is_core = True
        self.stories = dict(enumerate(self._order, start=1))
        self.sharers: frozenset[tuple[int, int]] = frozenset()
        self.counts: Counter[Story] = Counter(STORIES)
        by_story = {f"{story.topic}_{story.kind}": [self._count, [story]] for story in STORIES}
        self.datacollector = DataCollector({"truths": "truths", "rumours": "rumours", "active": "n_active", **by_story})
        self.datacollector.collect(self)

    def _people(self) -> People:
        """Return the population, with two topics each: the publisher, then the other core users, then the rest."""
        people = super()._people()
        personas = list(people)
        n_core = max(2, round(CORE_SHARE * len(personas)))
        topics = [TOPICS, *(tuple(self.random.sample(TOPICS, 2)) for _ in personas[1:])]
        self.n_core = n_core
        follows: list[list[int]] = [[0] if 0 < index < n_core else [] for index in range(len(personas))]
        edges: Any = people.edges
        if self.scenario.edges is None or edges is None:
            edges = core_ordinary_follows(
                topics, min(n_core, len(personas)), self.scenario.follow_probability, rng=self.random
            )
            if self.scenario.users is not None:
                self.engine.warn(
                    f"{self.scenario.users}: topics, and {counted(len(edges), 'follow')} by topic, are drawn; provide "
                    "your own follows with edges=FILE"
                )
        else:
            follows = [[] for _ in personas]
        for follower, followee in edges:
            follows[follower].append(int(followee))
        return people_of(
            [
                one.model_copy(update={"topics": own_topics, "follows": tuple(sorted(own)), "posts": ()})
                for one, own_topics, own in zip(personas, topics, follows, strict=True)
            ]
        )

    def opening(self, users: Sequence[SocialUser]) -> list[tuple[SocialUser, str]]:
        """Return all stories as the first user's posts, in random order.

        Args:
            users: All users.
        """
        self._order = self.random.sample(STORIES, len(STORIES))  # feeds break ties by recency
        return [(users[0], story.text) for story in self._order]

    def awake(self) -> list[list[Any]]:
        """Draw the active users and their order."""
        core, ordinary = self.scenario.core_activity, self.scenario.activity
        agents = [agent for agent in self.agents if self.random.random() < (core if agent.is_core else ordinary)]
        self.random.shuffle(agents)
        return [agents]

    def end_step(self) -> None:
        """Count the posts on each story: the original, reposts and quotes."""
        sharers: set[tuple[int, int]] = set()
        counts: Counter[Story] = Counter()
        for post in self.world.measures.posts_table():
            story = self.stories.get(post["root_id"])
            if story is not None:
                counts[story] += 1
                sharers.add((post["user_id"], post["root_id"]))
        self.counts, self.sharers = counts, frozenset(sharers)

    # -- measures

    def _count(self, story: Story) -> int:
        return self.counts[story]

    def count(self, kind: Kind) -> int:
        """Return the number of posts on all stories of a kind so far.

        Args:
            kind: `truth` or `rumour`.
        """
        return sum(count for story, count in self.counts.items() if story.kind == kind)

    truths = property(lambda self: self.count("truth"))
    rumours = property(lambda self: self.count("rumour"))
