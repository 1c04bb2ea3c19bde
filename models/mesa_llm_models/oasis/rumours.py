"""Truths and rumours on four topics, published together by one account: which spread further?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Unpack, cast

import numpy as np
from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import Hidden, Label, LLMOptions, Observation, Slider, Structure, ToolCall
from mesa_llm.engine.activation import uniform_draws
from mesa_llm.population import DrawnPeople
from mesa_llm.population.columns import People
from mesa_llm_models.oasis.text import stories_text
from mesa_llm_models.social.agents import SocialUser
from mesa_llm_models.social.model import SocialModel, SocialScenario
from mesa_llm_models.social.world import SocialFacts

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

RUMOURS = tuple(story for story in STORIES if story.kind == "rumour")

SECOND_TRUTHS = (
    Story("technology", "rumour", "A bicycle maker sells a lock that sends its owner a message when it is moved."),
    Story("education", "rumour", "A school teaches mathematics in the morning and music in the afternoon this year."),
    Story("entertainment", "rumour", "A well-known singer plays ten concerts in small halls before the summer."),
    Story("health", "rumour", "Brushing one's teeth twice a day for two minutes keeps most of them healthy."),
)
"""Truths in the place of the rumours, counted as these are: the placebo."""

TOPICS = tuple(dict.fromkeys(story.topic for story in STORIES))


class RumourScenario(SocialScenario):
    """Parameters of truths and rumours."""

    n_agents: Annotated[
        Annotated[int, Field(ge=10)] | None,
        Slider(50, 1000, 50, label="Users"),
        Structure(200, 800, dimension="population"),
    ] = 400
    """Number of users, including the publisher."""

    population: Annotated[Literal["oasis_x"], Hidden()] = "oasis_x"
    """Core users, and ordinary users around them drawn from OASIS's distributions. The core users are those in
    `users`, or else `core_users` drawn ones (by default a tenth of all users, up to 196). The first is the publisher.
    """

    preset: Annotated[Literal["information_spreading"], Hidden()] = "information_spreading"
    """Feed and actions of OASIS's study."""

    core_activity: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.01, label="Activity of core users")] = 0.1
    """Probability that a core user is active in a step (OASIS: 0.1)."""

    activity: Annotated[float, Field(ge=0, le=1), Slider(0, 0.2, 0.01, label="Activity of ordinary users")] = 0.01
    """Probability that an ordinary user is active in a step (OASIS: 0.01)."""

    follow_probability: Annotated[
        float,
        Field(ge=0, le=1),
        Slider(0, 1, 0.05, label="Probability to follow a core user of one's topic"),
        Structure(0.1, 0.4),
    ] = 0.2
    """Probability that an ordinary user follows a core user with a shared topic."""

    second: Annotated[Literal["rumours", "truths"], Label("Second post on each topic")] = "rumours"
    """Second post on each topic, beside a truth: a rumour, or a second truth that is counted as one, the placebo of the
    study. The rule twin has no allure for second truths.
    """

    sharing: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05, label="Rule twin shares a truth")] = 0.3
    """Probability that the rule twin shares a truth it reads."""

    allure: Annotated[float, Field(ge=0, le=3), Slider(0, 3, 0.1, label="Allure of rumours")] = 1.5
    """Factor on that probability for a rumour; 1 for no difference."""

    memory: Annotated[str, Hidden()] = "window:6"
    """Memory of the users."""


class Bystander(SocialUser):
    """A user who reads stories. The rule twin shares some."""

    @property
    def is_core(self) -> bool:
        """Whether this is a core user, whom others follow and who is more active."""
        return self.unique_id <= self.model.n_core

    def rule(self, seen: Observation) -> ToolCall | None:
        """Choose a random story from the feed, and share it with the probability of its kind."""
        facts: SocialFacts = seen.facts
        scenario = self.model.scenario
        stories = [item for item in facts.feed if item.post.source_id in self.model.stories]
        shareable = [item for item in stories if item.post.source_author_id != self.unique_id]
        shareable = [item for item in shareable if (self.unique_id, item.post.source_id) not in self.model.sharers]
        if shareable and "repost" in (seen.tools or ()):
            item = self.random.choice(shareable)
            is_rumour = self.model.stories[item.post.source_id] in RUMOURS
            allure = scenario.allure if is_rumour else 1.0
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
        self.stories = dict(enumerate(self._order, start=1))
        self.sharers: set[tuple[int, int]] = set()
        self.counts: Counter[Story] = Counter(self.told)
        self._n_counted = len(self.stories)
        by_story = {f"{story.topic}_{story.kind}": [self._count, [story]] for story in self.told}
        self.datacollector = DataCollector({"truths": "truths", "rumours": "rumours", "active": "n_active", **by_story})
        self.datacollector.collect(self)

    def _people(self) -> People:
        """Return the core users, then the ordinary ones, with their follows.

        Core users without follows of their own follow the publisher.
        """
        people = cast("DrawnPeople", super()._people())
        people.core = tuple(one.model_copy(update={"posts": ()}) for one in people.core)  # only stories are published
        self.n_core = people.n_core
        if people.edges is None:
            edges = people.follow_edges(self.scenario.follow_probability, rng=self.random)
            if not len(edges) or edges[0, 0] >= self.n_core:
                fans = np.arange(1, self.n_core)
                edges = np.concatenate([np.stack([fans, np.zeros_like(fans)], axis=1), edges])
            people.edges = edges
        return people

    @property
    def told(self) -> tuple[Story, ...]:
        """Stories of this run: a truth on each topic, and a rumour or a second truth, in the order of `STORIES`."""
        if self.scenario.second == "rumours":
            return STORIES
        seconds = {story.topic: story for story in SECOND_TRUTHS}
        return tuple(seconds[story.topic] if story.kind == "rumour" else story for story in STORIES)

    def opening(self, users: Sequence[SocialUser]) -> list[tuple[SocialUser, str]]:
        """Return all stories as the first user's posts, in random order.

        Args:
            users: All users.
        """
        self._order = self.random.sample(self.told, len(self.told))  # feeds break ties by recency
        return [(users[0], story.text) for story in self._order]

    @property
    def talk(self) -> str:
        """What the network talks about: the stories of the first account, as a sentence in the users' instructions."""
        return stories_text(self.world.names[1], TOPICS)

    def awake(self) -> list[list[Any]]:
        """Draw the active users and their order."""
        core, ordinary = self.scenario.core_activity, self.scenario.activity
        everyone = list(self.agents)
        limits = np.array([core if agent.is_core else ordinary for agent in everyone])
        is_awake = uniform_draws(self.random, len(everyone)) < limits
        agents = [everyone[index] for index in np.flatnonzero(is_awake).tolist()]
        self.random.shuffle(agents)
        return [agents]

    def end_step(self) -> None:
        """Count the new posts on each story: reposts and quotes."""
        posts, start = self.world.posts, self._n_counted
        self._n_counted = len(posts)
        for author, root_id in zip(posts["author"][start:].tolist(), posts["root"][start:].tolist(), strict=True):
            if (story := self.stories.get(root_id)) is not None:
                self.counts[story] += 1
                self.sharers.add((author, root_id))

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
