"""A social network whose users read, post, react and follow."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Unpack

from mesa.datacollection import DataCollector
from mesa.experimental.scenarios import Scenario

from mesa_llm import LLMModel, Settings
from mesa_llm.activation import Hourly, everyone
from mesa_llm.llm.base import LLM
from mesa_llm.options import ModelOptions, within
from mesa_llm.population import Persona, from_file, invented
from mesa_llm.worlds.social import SocialWorld
from mesa_llm.worlds.social.accounts import Account
from mesa_llm.worlds.social.settings import PRESETS
from models.social.agents import SocialUser
from models.social.network import MOST_DRAWN, follow_edges, follow_network
from models.social.story import tell

Preset = Literal["simswarm", "x", "reddit"]

SETTINGS = Settings(temperature=1.0, max_tokens=2000)
"""How the users' language model is sampled."""

RULES = resources.files("models.social").joinpath("prompts", "rules.md").read_text(encoding="utf-8").strip()
"""What every user is told."""


class SocialScenario(Scenario):
    """Parameters of a social network."""

    n_agents: int = 20
    preset: Preset = "simswarm"
    follows: int = 3
    hourly: bool = False
    step_minutes: float = 60.0
    start_hour: float = 8.0
    viral_threshold: int = 5
    threading: bool = True


class SocialModel(LLMModel):
    """Users of a social network decide together what to do with what their feeds show, and do it in an order drawn.

    Attributes:
        world: Users, posts and follows.
        grid: The follow network at the start, for drawing; empty beyond `MOST_DRAWN` users.
        rules: What every user is told first.
    """

    def __init__(
        self,
        n_agents: int | None = None,
        preset: Preset = "simswarm",
        feed: str | None = None,
        feed_size: int | None = None,
        may_pass: bool = True,
        follows: int = 3,
        users: str | None = None,
        hourly: bool = False,
        step_minutes: float = 60.0,
        start_hour: float = 8.0,
        viral_threshold: int = 5,
        threading: bool = True,
        memory: str = "window:6",
        llm: str | LLM = "rule",
        rng: int | str | None = None,
        scenario: SocialScenario | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        """Let users sign up, follow one another and publish what they brought.

        Args:
            n_agents: Users; None: 20, or all in the file. With `users`, the most that are taken from it.
            preset: Actions and feed: SimSwarm's, or those of OASIS's X and Reddit.
            feed: Another feed than the preset's: `newest`, `simswarm`, `reddit_hot`, `x`.
            feed_size: Most posts in a feed; None: as the preset has it.
            may_pass: Whether users may do nothing when it is their turn.
            follows: Users that a new user follows, where the population brings no follows.
            users: File with a population, in one of OASIS's formats or a table; None: invented residents.
            hourly: Let users be active by the hour of the day, instead of always.
            step_minutes: Simulated minutes in a step.
            start_hour: Hour of the day at the start.
            viral_threshold: Likes and reposts at which a post goes viral.
            threading: Whether replies and comments stand under posts.
            memory: What users remember with.
            llm: What users think with.
            rng: Seed.
            scenario: The parameters as a Mesa scenario; goes before the single ones.
            **options: As of `LLMModel`.
        """
        if scenario is not None:
            n_agents, preset, follows = scenario.n_agents, scenario.preset, scenario.follows
            hourly, step_minutes, start_hour = scenario.hourly, scenario.step_minutes, scenario.start_hour
            viral_threshold, threading = scenario.viral_threshold, scenario.threading
        hours = Hourly(lambda user: user.hours, step_minutes, within("start_hour", start_hour, 0, 24))
        options.setdefault("activation", hours if hourly else everyone)
        super().__init__(llm=llm, rng=rng, scenario=scenario, **options)
        self.rules = RULES
        changes: dict[str, Any] = {
            "viral_threshold": viral_threshold,
            "step_minutes": step_minutes,
            "threading": threading,
        }
        changes |= {name: value for name, value in (("feed", feed), ("feed_size", feed_size)) if value is not None}
        if not may_pass:
            changes["actions"] = tuple(action for action in PRESETS[preset].actions if action != "do_nothing")
        self.world = SocialWorld(preset, rng=self.random, **changes)
        self.worlds = (self.world,)
        n_taken = None if n_agents is None else within("n_agents", n_agents, 1)
        personas = invented(n_taken or 20, self.random) if users is None else from_file(Path(users), n_taken)
        self._settle(personas, within("follows", follows, 0), memory)
        self.world.end_step()  # what was brought along is of step 0
        self.datacollector = DataCollector(
            model_reporters={name: f"n_{name}" for name in ("posts", "replies", "likes", "reposts", "follows")}
            | {"largest_cascade": "largest_cascade", "active": "n_active"},
            agent_reporters={"followers": "n_followers"} if len(self.agents) <= MOST_DRAWN else {},
        )
        self.datacollector.collect(self)

    # -- set-up

    def _settle(self, personas: Sequence[Persona], follows: int, memory: str) -> None:
        """Sign the users up, let them follow one another, and publish what they brought."""
        edges = follow_edges(personas, follows, self.random)
        self.grid = follow_network(len(personas), edges, self.run_seed, self.random)
        cells = list(self.grid.all_cells) if len(self.grid.all_cells) else [None] * len(personas)
        users = [
            SocialUser(
                self,
                cell,
                topics=persona.topics,
                hours=persona.activity,
                config=persona.config(settings=SETTINGS),
                memory=memory,
            )
            for persona, cell in zip(personas, cells, strict=True)
        ]
        self.world.sign_up_many(
            Account(user.unique_id, persona.name, persona.username, persona.bio)
            for user, persona in zip(users, personas, strict=True)
        )
        self.world.follow_many([(users[a].unique_id, users[b].unique_id) for a, b in edges])
        posts = [(user, post) for user, persona in zip(users, personas, strict=True) for post in persona.posts]
        if not posts:
            opening = self.random.sample(users, -(-len(users) // 4))
            posts = [(user, user.remark()) for user in opening]
        for user, post in posts:
            self.world.create_post(user.unique_id, post)

    # -- measures

    @property
    def n_posts(self) -> int:
        """Posts of one's own so far."""
        return self.world.totals()["original"]

    @property
    def n_replies(self) -> int:
        """Replies and comments so far."""
        totals = self.world.totals()
        return totals["reply"] + totals["comments"]

    @property
    def n_likes(self) -> int:
        """Likes so far."""
        return self.world.totals()["likes"]

    @property
    def n_reposts(self) -> int:
        """Reposts and quotes so far."""
        totals = self.world.totals()
        return totals["repost"] + totals["quote"]

    @property
    def n_follows(self) -> int:
        """Follows now."""
        return self.world.totals()["follows"]

    @property
    def n_active(self) -> int:
        """Users who did something in the last step."""
        return sum(any(o.action != "do_nothing" for o in outcomes) for outcomes in self.last_outcomes.values())

    @property
    def largest_cascade(self) -> int:
        """Users in the largest cascade of reposts, its author included; 0 before the first post."""
        return self.world.largest_cascade()

    def story(self) -> str:
        """Say in words what happened: posts, replies, reactions, new follows, and the liveliest posts."""
        return tell(self)
