"""News from an account that everybody follows, and its followers' reactions."""

from __future__ import annotations

import random
from collections import Counter
from statistics import fmean
from typing import Annotated, Any, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import Hidden, Label, LLMOptions, Persona, Slider, Structure
from mesa_llm.population import invented
from mesa_llm.population.columns import People, people_of
from mesa_llm_models.oasis.text import INFLUENCER_BIO, INFLUENCER_PERSONA, POST, news_text
from mesa_llm_models.social.model import Names, SocialModel, SocialScenario
from mesa_llm_models.social.population import listed, read_follows, with_follows
from mesa_llm_models.social.world import Cascade, PresetName

N_USERS = 31
"""Number of users without a number or file; the benchmark has 111."""

INFLUENCER = Persona(
    name="The Daily Gadget",
    username="dailygadget",
    persona=INFLUENCER_PERSONA,
    bio=INFLUENCER_BIO,
    topics=("technology", "online shops", "start-ups"),
)
"""The account that everybody follows."""


class OasisScenario(SocialScenario):
    """Parameters of an account and its followers."""

    n_agents: Annotated[Annotated[int, Field(ge=2)] | None, Structure(16, 62, dimension="population")] = None
    """Number of users, including the influencer; None for 31, or all in the file."""

    preset: Annotated[PresetName, Label("Feed as in")] = "x"
    """Feed and settings of the world; see the social model."""

    actions: Annotated[Names | None, Hidden()] = (
        *("create_post", "create_comment", "like_post", "dislike_post", "repost", "quote_post"),
        *("follow", "unfollow", "mute", "do_nothing"),
    )
    """Names of the users' actions; None for the preset's."""

    post: Annotated[str, Field(min_length=1, max_length=5_000), Label("The influencer's post")] = POST
    """First post of the influencer, unless the file has one."""

    ties: Annotated[
        float,
        Field(ge=0, le=20),
        Slider(0, 5, 0.1, label="Other followers that a follower follows"),
        Structure(0.0, 1.0),
    ] = 0.1
    """Mean number of fellow followers a follower follows. OASIS's file for this topic has 12 such follows."""

    step_minutes: Annotated[float, Field(ge=0), Slider(1, 240, 1, label="Minutes in a step")] = 3.0
    """Simulated minutes per step."""

    start_hour: Annotated[float, Field(ge=0, le=24), Slider(0, 24, 1, label="Hour of the day at the start")] = 18.0
    """Hour of the day at the start; the real post was published at 18:48 UTC."""

    memory: Annotated[str, Hidden()] = "chat:100000:2"
    """Memory of the users: five messages (two exchanges and the current observation), up to 100,000 tokens."""


class OasisModel(SocialModel):
    """One account posts news to followers who hardly follow each other: how far does it spread, and who joins in?

    Attributes:
        influencer: The account that everybody follows.
        root_id: Id of the influencer's post.
    """

    scenario_class = OasisScenario
    scenario: OasisScenario
    _cascade: tuple[tuple[int, dict[str, int]], Cascade] | None = None  # with the counts it was computed from

    def __init__(self, scenario: OasisScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Sign the users up as followers of the influencer, and publish its post."""
        super().__init__(scenario, **options)
        followers = {agent: agent.n_followers for agent in self.agents}
        self.influencer: Any = max(followers, key=lambda agent: followers[agent])
        own_posts = [post for post in self.world.measures.posts_table() if post["user_id"] == self.influencer.unique_id]
        self.root_id: int = own_posts[-1]["post_id"]
        self.datacollector = DataCollector(
            {"scale": "scale", "depth": "depth", "max_breadth": "max_breadth", "activity": "activity"}
            | {name: f"n_{name}" for name in ("posts", "replies", "likes", "reposts")}
            | {"follow_edges": "n_follows"}
        )
        self.datacollector.collect(self)

    def _people(self) -> People:
        """Return the influencer and its followers, or the people in the file with the most followed first."""
        parameters = self.scenario
        if parameters.users is None:
            personas = fan_base(parameters.n_agents or N_USERS, parameters.post, parameters.ties, self.random)
            if parameters.edges is not None:
                personas = with_follows(personas, read_follows(parameters, len(personas)))
        else:
            personas = listed(super()._people())
        followed = Counter(followee for persona in personas for followee in persona.follows if followee < len(personas))
        index = min(range(len(personas)), key=lambda one: (-followed[one], one))
        if not personas[index].posts:
            personas[index] = personas[index].model_copy(update={"posts": (parameters.post,)})
        return people_of(personas)

    @property
    def talk(self) -> str:
        """What the network talks about: the influencer's news, as a sentence in the users' instructions."""
        return news_text(self.world.names[self.influencer.unique_id])

    # -- measures

    @property
    def cascade(self) -> Cascade:
        """Spread of the influencer's post by reposts and quotes, step by step; recomputed only after new ones."""
        world = self.world
        moment = world.step, world.measures.totals()
        if self._cascade is None or self._cascade[0] != moment:
            self._cascade = moment, world.measures.cascade(self.root_id)
        return self._cascade[1]

    @property
    def scale(self) -> int:
        """Number of users in the cascade, including the influencer."""
        return self.cascade.size[-1]

    @property
    def depth(self) -> int:
        """Largest distance of a user in the cascade from the influencer."""
        return self.cascade.depth[-1]

    @property
    def max_breadth(self) -> int:
        """Largest number of users at one distance from the influencer; 1 before the first share."""
        return self.cascade.breadth[-1]

    @property
    def activity(self) -> float:
        """Share of all users with an accepted action in the last step."""
        did = [any(o.ok and o.action != "do_nothing" for o in outcomes) for outcomes in self.last_outcomes.values()]
        return sum(did) / len(self.agents)

    def results(self) -> dict[str, Any]:
        """Return the last measures, with the mean activity over all steps."""
        activity = self.datacollector.model_vars["activity"][1:]
        return super().results() | {"activity": fmean(activity) if activity else 0.0}


def fan_edges(n: int, ties: float, rng: random.Random) -> list[tuple[int, int]]:
    """Draw the follows among an account, user 0, and its followers.

    Args:
        n: Number of users, including the account.
        ties: Mean number of others that a follower follows.
        rng: Random generator.

    Returns:
        (follower, followee), sorted: everybody follows user 0, plus uniformly drawn pairs.
    """
    n_fans = n - 1
    n_pairs = n_fans * (n_fans - 1)
    pairs: list[tuple[int, int]] = []
    for code in rng.sample(range(n_pairs), min(round(ties * n_fans), n_pairs)):
        follower, other = divmod(code, n_fans - 1)
        pairs.append((follower + 1, other + 1 + (other >= follower)))
    return sorted([*((fan, 0) for fan in range(1, n)), *pairs])


def fan_base(n: int, post: str, ties: float, rng: random.Random) -> list[Persona]:
    """Invent an account and its followers.

    Args:
        n: Number of users, including the account.
        post: First post of the account.
        ties: Mean number of others that a follower follows.
        rng: Random generator.

    Returns:
        The population: the account and its post first, with the follows of `fan_edges`.
    """
    people = [INFLUENCER.model_copy(update={"posts": (post,)}), *invented(n - 1, rng)]
    follows: list[list[int]] = [[] for _ in people]
    for follower, followee in fan_edges(n, ties, rng):
        follows[follower].append(followee)
    return [person.model_copy(update={"follows": tuple(own)}) for person, own in zip(people, follows, strict=True)]
