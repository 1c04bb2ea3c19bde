"""A social network whose users read, post, react and follow."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Unpack

import networkx as nx
import numpy as np
import numpy.typing as npt
from mesa.datacollection import DataCollector
from mesa.discrete_space import Network
from pydantic import BeforeValidator, Field

from mesa_llm import ConfigError, Hidden, Hourly, Label, LLMModel, LLMOptions, LLMScenario, Output, Slider, Structure
from mesa_llm.llm.embeddings import embedder
from mesa_llm.memory import open_memory
from mesa_llm.population import ActivityForm, Persona, Users
from mesa_llm.population.columns import People
from mesa_llm.text import counted, quoted
from mesa_llm.world import Rules
from mesa_llm_models.social.agents import SETTINGS, SocialUser
from mesa_llm_models.social.opinions import BeliefParameters, Opinions, StanceName
from mesa_llm_models.social.population import (
    N_INVENTED,
    Hubs,
    PopulationName,
    check_people,
    draw_people,
    follow_edges,
    is_hourly,
    say_drawn,
    set_hours,
    shaped_edges,
)
from mesa_llm_models.social.text import TOPIC, examples_text, talk_text
from mesa_llm_models.social.views import Views, openings, side_of
from mesa_llm_models.social.world import PRESETS, Account, FeedName, PresetName, SocialWorld

MAX_DRAWN = 500
"""Maximum number of users for which the network is laid out and drawn."""

MAX_SPRUNG = 150
"""Maximum number of users for a spring layout; larger networks are drawn as a circle."""

OWN_PRESETS = ("simswarm", "x", "reddit")
"""Presets that are not OASIS's; in them, a quarter of the users have a first post."""

MAX_LINES = 12
"""Maximum number of posts, of comments and of follows in the story."""


def split_names(names: Any) -> Any:
    """Split a string at its commas, as passed on the command line; return anything else unchanged."""
    return [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else names


Names = Annotated[tuple[str, ...], BeforeValidator(split_names)]
"""Several names, or one comma-separated string of names."""


class SocialScenario(LLMScenario):
    """Parameters of a social network."""

    n_agents: Annotated[Annotated[int, Field(ge=1)] | None, Structure(10, 40, dimension="population")] = None
    """Number of users; None for 20, or all in the file. With `users`, the maximum number read from it."""

    preset: Annotated[PresetName, Label("Actions and feed as in")] = "simswarm"
    """Actions and feed: SimSwarm's, those of X and Reddit, or those of an OASIS scenario."""

    actions: Annotated[Names | None, Hidden()] = None
    """Names of the users' actions; None for the preset's."""

    first_posts: Annotated[Annotated[float, Field(ge=0, le=1)] | None, Label("Share who write a first post")] = None
    """Share of users with an invented first post, if the population has no posts; None for a quarter, but for nobody in
    OASIS's presets.
    """

    products: Annotated[Names, Hidden()] = ()
    """Names of the products that `purchase_product` can buy."""

    feed: Annotated[FeedName | None, Label("Feed"), Structure("newest", "random")] = None
    """Name of the feed; None for the preset's."""

    embedder: Annotated[str, Hidden()] = "wordllama"
    """Embedder that compares posts and interests for the feeds `x_personal…`: `wordllama`, `minilm`, `twhin-bert`, or a
    model of litellm or sentence-transformers, see `mesa_llm.llm.embeddings.embedder`."""

    feed_size: Annotated[Annotated[int, Field(ge=0)] | None, Label("Posts in a feed"), Structure(5, 20)] = None
    """Maximum number of posts in a feed; None for the preset's."""

    may_pass: Annotated[bool, Label("Users may do nothing")] = True
    """Whether users may do nothing on their turn."""

    follows: Annotated[int, Field(ge=0), Slider(0, 10, label="Users a newcomer follows"), Structure(1, 6)] = 3
    """Number of users that a new user follows, if the population has no follows."""

    homophily: Annotated[
        Annotated[float, Field(ge=0, le=1)] | None, Label("Follows within one's own camp"), Structure(0.5, 0.9)
    ] = None
    """Probability that a drawn follow goes to a user of one's own camp, and not of another: the same side of the topic
    with `beliefs`, else the same first interest; None: camps do not matter.
    """

    hubs: Annotated[Hubs | None, Label("Who has the most followers"), Structure("none", "random", "extreme")] = None
    """Who has the most followers, if follows are drawn: `none` (all have about as many), `random` users, or, with
    `beliefs`, those of the most `extreme` or most `moderate` positions; None: those who came first.
    """

    users: Annotated[str | None, Hidden()] = None
    """File with a population, in one of OASIS's formats or a table; None for `population`."""

    edges: Annotated[str | None, Hidden()] = None
    """File with follows, instead of those in `users`: a table, a matrix, or a network (GraphML, GEXF and others); see
    `mesa_llm.population.read_edges`.
    """

    skip_broken: Annotated[bool, Hidden()] = False
    """Whether to skip and count invalid items and rows of `users` and `edges` instead of raising an error."""

    population: Annotated[PopulationName, Label("Users who are in no file")] = "invented"
    """Source of users not in a file: invented residents, or OASIS's distributions of X or Reddit users. With a file,
    `oasis_x` makes its users core users and draws ordinary ones up to `n_agents`.
    """

    core_users: Annotated[Annotated[int, Field(ge=0)] | None, Hidden()] = None
    """Number of core users, followed by topic (`oasis_x`); None for a tenth of all users, up to 196."""

    follow_probability: Annotated[float, Field(ge=0, le=1), Hidden()] = 0.2
    """Probability that a user follows a core user over a shared topic: 0.2 in OASIS's code, 0.1 in its appendix."""

    hourly: Annotated[bool, Label("Active by the hour of the day")] = False
    """Whether users are active by the hour of the day, as in their file, instead of always."""

    activity_form: Annotated[ActivityForm | None, Label("Hours of activity as in")] = None
    """Hours of activity: counts by the formula in OASIS's paper or code, one probability for all as in its Reddit runs,
    or one each for core and ordinary users; None for the hours in the file if `hourly`, else always active.
    """

    activity_table: Annotated[str | tuple[tuple[float, ...], ...] | None, Hidden()] = None
    """Activity counts, 24 per row, or a file with them. If rows and users differ in number, each user gets a random
    row. None for those of `users`.
    """

    active_share: Annotated[float, Field(ge=0, le=1), Hidden()] = 0.1
    """Probability that a user is active in a step (`reddit`), or that a core user is (`core`)."""

    ordinary_share: Annotated[float, Field(ge=0, le=1), Hidden()] = 0.01
    """Probability that an ordinary user is active in a step (`core`)."""

    step_minutes: Annotated[Annotated[float, Field(gt=0)] | None, Label("Minutes in a step")] = None
    """Simulated minutes per step; None for 3 in OASIS's presets, 60 in SimSwarm's."""

    start_hour: Annotated[float, Field(ge=0, le=24), Slider(0, 24, 1, label="Hour of the day at the start")] = 8.0
    """Hour of the day at the start."""

    hide_reports: Annotated[int, Field(ge=0), Slider(0, 20, label="Reports that hide a post (0: none)")] = 0
    """Number of reports at which a post is hidden; 0 for never."""

    viral_threshold: Annotated[int, Field(ge=0), Slider(1, 20, label="Likes to go viral")] = 5
    """Number of likes, reposts and quotes at which a post goes viral."""

    threading: Annotated[bool, Label("Replies stand under posts"), Structure(False)] = True
    """Whether feeds show replies and comments under their posts."""

    memory: Annotated[str, Hidden()] = "window:6"
    """Memory of the users."""

    database: Annotated[str | None, Hidden(), Output()] = None
    """SQLite file of the network, written after every step; None for memory. An existing file is emptied."""

    beliefs: Annotated[bool, Label("Posts move beliefs")] = False
    """Whether users have a belief about `topic` that shifts with the posts they read."""

    topic: Annotated[str, Field(min_length=3, max_length=200), Label("What people talk about")] = TOPIC
    """What the network talks about, and what beliefs are about: a proposal to be for or against."""

    about: Annotated[Literal["topic", "interests"] | None, Label("First posts are about")] = None
    """What invented first posts are about: the `topic`, which then stands in the users' instructions, or each user's
    own `interests`. None for the topic where the users are invented, in the presets that are not OASIS's.
    """

    people: Annotated[Literal["drawn", "alike"], Label("Views on the topic")] = "drawn"
    """Whether users have a view on the `topic` that the network talks about, and a stake in it, `drawn` apart from
    everything else; `alike`: nothing is said of it. With `beliefs` they have those.
    """

    topic_words: Annotated[Names, Hidden()] = ()
    """Words by which the rule finds sentences about the topic; empty for the words of the topic."""

    stance: Annotated[StanceName, Label("Stance of posts is measured by")] = "rule"
    """Measure of the stance of posts: a rule about the topic, their tone, or a model (`llm={"stance": …}`)."""

    belief_rules: Annotated[Rules, Hidden()] = "corrected"
    """`original` for SimSwarm's beliefs, which shift with the tone of all posts in a step, read or not."""

    belief_spread: Annotated[float, Field(ge=0, le=1), Hidden()] = 0.8
    """Initial positions are uniform between minus this value and this value; SimSwarm's are all 0."""

    def check(self) -> None:
        """Check that the parameters of the population are consistent."""
        check_people(self)


class SocialModel(LLMModel):
    """Users of a social network decide on their feeds simultaneously, and act in random order.

    Attributes:
        population: Population of the users, in order of creation.
        memory: Memory of the users.
        world: Users, posts and follows.
        grid: The initial follow network, for drawing; empty beyond `MAX_DRAWN` users.
        users_file: Contents of the users file, with the skipped rows; empty without a file.
        step_minutes: Simulated minutes per step.
        opinions: Opinions of the users on the topic; None without beliefs.
        views: What the users think of the topic; None if nothing is said of it.
        user_class: Class of its users.
        n_users: Number of users without a number or file.
    """

    scenario_class = SocialScenario
    judge_purposes = frozenset({"judge", "stance"})
    user_class: ClassVar[type[SocialUser]] = SocialUser
    n_users: ClassVar[int] = N_INVENTED
    scenario: SocialScenario

    def __init__(self, scenario: SocialScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Sign users up, connect them, and publish their first posts."""
        super().__init__(scenario, **options)
        parameters = self.scenario
        self.memory = parameters.memory
        open_memory(self.memory)  # raises an error for an invalid name before any user is created
        self.step_minutes = parameters.step_minutes or (60.0 if parameters.preset == "simswarm" else 3.0)
        self.world = SocialWorld(parameters.preset, rng=self.random, path=parameters.database, **self._changes())
        self.worlds = (self.world,)
        self.opinions = self._opinions()
        self.users_file = Users([])
        has_views = self.is_about_topic and parameters.people == "drawn" and not parameters.beliefs
        self.views = Views(parameters.topic, self.run_seed) if has_views else None
        self.population = self._people()
        set_hours(self.population, parameters, self.users_file, self.random)
        if is_hourly(parameters) and "activation" not in options:
            self.activation = Hourly(self.population.hours, self.step_minutes, parameters.start_hour)
        self._settle(self.population)
        self.world.end_step()  # first posts and follows belong to step 0
        self.datacollector = DataCollector(
            model_reporters={name: f"n_{name}" for name in ("posts", "replies", "likes", "reposts")}
            | {"follow_edges": "n_follows", "largest_cascade": "largest_cascade", "active": "n_active"}
            | ({} if self.opinions is None else {name: name for name in ("mean_position", "position_spread")}),
            agent_reporters=self._agent_reporters(),
        )
        self.datacollector.collect(self)

    def stances(self) -> Mapping[int, float]:
        """Return each user's position on the topic, by id; empty without beliefs."""
        opinions = self.opinions
        return {} if opinions is None else {agent_id: opinions.position(agent_id) for agent_id in opinions.beliefs}

    # -- set-up

    def _changes(self) -> dict[str, Any]:
        """Return the settings that differ from the preset."""
        parameters = self.scenario
        names = ("viral_threshold", "threading", "products", "hide_reports")
        changes = {name: getattr(parameters, name) for name in names} | {"step_minutes": self.step_minutes}
        changes |= {name: value for name in ("feed", "feed_size") if (value := getattr(parameters, name)) is not None}
        changes["embed"] = embedder(parameters.embedder).embed
        actions = PRESETS[parameters.preset].actions if parameters.actions is None else parameters.actions
        changes["actions"] = tuple(name for name in actions if parameters.may_pass or name != "do_nothing")
        return changes

    def _agent_reporters(self) -> dict[str, str]:
        """Return the reporters of each user; empty if there are too many users."""
        if len(self.agents) > MAX_DRAWN:
            return {}
        return {"followers": "n_followers"} | ({} if self.opinions is None else {"position": "position"})

    def _opinions(self) -> Opinions | None:
        """Return the opinions of the users on the topic; None without beliefs."""
        chosen = self.scenario
        if not chosen.beliefs:
            return None
        belief = BeliefParameters(
            chosen.topic, chosen.topic_words, chosen.stance, chosen.belief_rules, chosen.belief_spread
        )
        return Opinions(belief)

    def _people(self) -> People:
        """Return the population: invented, drawn, or read from the file."""
        people, self.users_file = draw_people(self.scenario, self.random, self.n_users)
        return people

    def _settle(self, people: People) -> None:
        """Sign users up, connect them, and publish their first posts."""
        edges = follow_edges(people, self.scenario, self.random)
        if self.opinions is not None:
            self.opinions.enter(range(1, len(people) + 1), self.random)
        shaped = shaped_edges(people, self.scenario, self.stances(), self.run_seed)
        edges = edges if shaped is None else shaped
        self.grid = follow_network(len(people), edges, self.run_seed, self.random)
        cells = list(self.grid.all_cells) or [None] * len(people)
        users = [self.user_class(self, cell) for cell in cells]
        self.world.sign_up_many(Account(index, *profile) for index, profile in enumerate(people.profiles(), start=1))
        edges += 1
        self.world.follow_many(edges)
        n_follows = len(edges)
        del edges
        posts = [(users[index], post) for index, post in people.posts()]
        opening = posts or self.opening(users)
        is_invented = not posts and type(self).opening is SocialModel.opening
        say_drawn(people, self.scenario, n_follows, len(opening) if is_invented else 0)
        for user, post in opening:
            self.world.create_post(user.unique_id, post)

    def opening(self, users: Sequence[SocialUser]) -> list[tuple[SocialUser, str]]:
        """Return the first posts if the population has none, by a share of the users. Override to change them.

        Args:
            users: All users.
        """
        share, actions = self.scenario.first_posts, self.world.settings.actions
        if share is None:
            share = 0.25 if self.scenario.preset in OWN_PRESETS else 0.0
        if not share and "create_post" not in actions:
            self.engine.warn("there are no posts, and nobody can write one: set first_posts=, or users= with posts")
        authors = self.random.sample(list(users), math.ceil(round(share * len(users), 6)))
        remarks = [(user, user.remark()) for user in authors]
        if not self.is_about_topic:
            return remarks
        positions, topic = self.stances(), self.scenario.topic
        sides = [side_of(user.unique_id, self.run_seed, positions) for user in authors]
        return list(zip(authors, openings(topic, sides, self.run_seed), strict=True))

    @property
    def is_about_topic(self) -> bool:
        """Whether the network talks about the topic, and not about what each of its users is interested in."""
        chosen = self.scenario
        if chosen.about is None:
            is_invented = chosen.users is None and chosen.population == "invented"
            return is_invented and chosen.preset in OWN_PRESETS and type(self).opening is SocialModel.opening
        return chosen.about == "topic"

    @property
    def talk(self) -> str:
        """What the network talks about, as a sentence in the users' instructions; empty if nothing in particular."""
        return talk_text(self.scenario.topic) if self.is_about_topic else ""

    def sign_up(self, persona: Persona | None = None, follows: Iterable[int] = (), **components: Any) -> SocialUser:
        """Let somebody join the network, at any time in a run; `user.remove()` lets somebody leave.

        Args:
            persona: Who joins; None: somebody without a name.
            follows: Users whom they follow.
            **components: `config`, `memory`, `llm`, `tools` of the new user.

        Raises:
            ToolError: If one of those whom they follow does not exist.
        """
        who = persona or Persona()
        components.setdefault("config", who.config(settings=SETTINGS))
        # accounts of nobody in the model, such as a newsroom's, have numbers too
        self.agent_id_counter = max(self.agent_id_counter, len(self.world.users))
        user = self.user_class(self, topics=who.topics, hours=who.activity, **components)
        self.world.sign_up(user.unique_id, who.name, who.username, who.bio)
        if self.opinions is not None:
            self.opinions.enter([user.unique_id], self.random)
        for followed in follows:
            self.world.follow(user.unique_id, followed)
        return user

    @property
    def examples(self) -> str:
        """Examples of actions, as the end of a sentence in the users' instructions; empty if there are none."""
        examples = examples_text(self.world.settings.actions)
        return examples and f": {examples}"

    def end_step(self) -> None:
        """Shift the users' beliefs, if any, by the posts they read."""
        if self.opinions is not None:
            self.opinions.end_step(self)

    # -- interviews

    def interview(self, agent: SocialUser, question: str) -> str | None:
        """Interview one user without changing the run: nobody else hears it, and the user does not remember it.

        It is recorded, replayed and budgeted like any other call. Question and answer are in the table `answers` of the
        run log, under the purpose `interview`, and in the world's table of traces, as in OASIS's.

        Args:
            agent: The user.
            question: Text of the question.

        Returns:
            The answer; None if the call failed, with the reason in the log.

        Raises:
            ConfigError: If the agent is not a user of this model, or the question is empty.
        """
        return self.interviews([agent], question)[0]

    def interviews(self, agents: Sequence[SocialUser], question: str) -> list[str | None]:
        """Interview several users at once; see `interview`.

        Args:
            agents: The users.
            question: Text of the question.

        Returns:
            The answer of each; None where the call failed.

        Raises:
            ConfigError: If an agent is not a user of this model, or the question is empty.
        """
        for agent in agents:
            if agent not in self.agents:
                raise ConfigError(f"{agent!r:.80} is not a user of this model; use one of model.agents")
        if not question.strip():
            raise ConfigError("the question is empty; write a question for the user")
        answers: list[str | None] = self.survey([question], agents, purpose="interview")["answer"].tolist()
        for agent, answer in zip(agents, answers, strict=True):
            self.world.trace(agent.unique_id, "interview", prompt=question, response=answer)
        return answers

    # -- measures

    @property
    def n_posts(self) -> int:
        """Number of original posts so far."""
        return self.world.measures.totals()["original"]

    @property
    def n_replies(self) -> int:
        """Number of replies and comments so far."""
        totals = self.world.measures.totals()
        return totals["reply"] + totals["comments"]

    @property
    def n_likes(self) -> int:
        """Number of likes so far."""
        return self.world.measures.totals()["likes"]

    @property
    def n_reposts(self) -> int:
        """Number of reposts and quotes so far."""
        totals = self.world.measures.totals()
        return totals["repost"] + totals["quote"]

    @property
    def n_follows(self) -> int:
        """Current number of follows."""
        return self.world.measures.totals()["follows"]

    @property
    def n_active(self) -> int:
        """Number of users with an action in the last step."""
        acts = ((agent_id, outcome.action) for agent_id, outcomes in self.last_outcomes.items() for outcome in outcomes)
        return len({agent_id for agent_id, action in acts if action != "do_nothing"})

    @property
    def mean_position(self) -> float | None:
        """Mean position on the topic, -1 (against) to 1 (for); None without beliefs."""
        return None if self.opinions is None else self.opinions.mean

    @property
    def position_spread(self) -> float | None:
        """Standard deviation of the positions on the topic; None without beliefs."""
        return None if self.opinions is None else self.opinions.spread

    @property
    def largest_cascade(self) -> int:
        """Number of users in the largest cascade of reposts, including its author; 0 before the first post."""
        return self.world.measures.largest_cascade()

    def story(self) -> str:
        """Describe the posts, replies, reactions and new follows."""
        return _story(self)


def follow_network(n: int, edges: npt.NDArray[np.int32], seed: int, rng: random.Random) -> Network:
    """Lay out the follow network for drawing; empty with more than `MAX_DRAWN` users.

    Args:
        n: Number of users.
        edges: (follower, followee), as indices of users.
        seed: Seed of the layout.
        rng: Random generator of the space.
    """
    graph = nx.Graph()
    if n <= MAX_DRAWN:
        graph.add_nodes_from(range(n))
        graph.add_edges_from(edges.tolist())
    sprung = 0 < n <= MAX_SPRUNG
    layout = (
        nx.spring_layout(graph, seed=seed % 2**31, k=1.6 / max(n, 1) ** 0.5) if sprung else nx.circular_layout(graph)
    )
    return Network(graph, capacity=None, random=rng, layout=layout)


def _story(model: SocialModel) -> str:
    """Describe who posted, answered, shared and followed."""
    world = model.world
    posts = world.measures.posts_table()
    lines = [f"Step {post['step']}: {_post_line(world, post)}" for post in posts][-MAX_LINES:]
    comments = [
        f"Step {c['step']}: {world.names[c['user_id']]} comments on post {c['post_id']}: {quoted(c['content'], 110)}"
        for c in world.measures.comments_table()
    ][-MAX_LINES:]
    actions = model.runlog.actions()
    follows = [
        f"Step {row['time']}: {world.names[row['agent']]} follows {world.names.get(user_id, f'user {user_id}')}"
        for row in actions.to_dict("records")
        if row["action"] == "follow" and row["ok"]
        for user_id in (json.loads(row["facts"])["user_id"],)
    ]
    totals = (
        f"{counted(model.n_posts, 'post')}, {counted(model.n_replies, 'reply', 'replies')}, "
        f"{counted(model.n_reposts, 'repost')}, {counted(model.n_likes, 'like')}, "
        f"{counted(model.n_follows, 'follow')}; the largest cascade reached {counted(model.largest_cascade, 'user')}."
    )
    groups, products = _groups_line(world), _products_line(world)
    return "\n".join(
        filter(None, ["What happened:", *lines, *comments, *follows[-MAX_LINES:], groups, products, totals])
    )


def _groups_line(world: SocialWorld) -> str:
    """Describe the largest groups and their number of messages; empty without groups."""
    groups = sorted(world.measures.groups_table(), key=lambda group: -group["members"])
    names = ", ".join(f"{quoted(group['name'])} ({counted(group['members'], 'member')})" for group in groups[:3])
    n_messages = counted(len(world.measures.messages_table()), "message")
    return f"{counted(len(groups), 'chat group')} with {n_messages}; the largest: {names}." if groups else ""


def _products_line(world: SocialWorld) -> str:
    """Describe the sales; empty without products."""
    sales = ", ".join(f"{product['name']} {product['sales']}" for product in world.measures.products_table())
    return f"Sold: {sales}." if sales else ""


def _post_line(world: Any, post: dict[str, Any]) -> str:
    author = world.names[post["user_id"]]
    quotation = quoted(post["content"], 110)
    match post["kind"]:
        case "repost":
            return f"{author} reposts post {post['parent_id']}"
        case "quote":
            return f"{author} quotes post {post['parent_id']}: {quotation}"
        case "reply":
            return f"{author} answers post {post['parent_id']}: {quotation}"
        case _:
            return f"{author} writes post {post['post_id']}: {quotation}"
