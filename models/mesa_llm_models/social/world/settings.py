"""Parameters of a social world, and presets."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from mesa_llm.errors import ConfigError
from mesa_llm.text import MAX_NAME, one_line
from mesa_llm.world import Rules
from mesa_llm_models.social.world.personal import NO_EMBED, Embed, PersonalFeed
from mesa_llm_models.social.world.recommenders import Feed, HotFeed, NewestFeed, RandomFeed, SimSwarmFeed, XFeed

FeedName = Literal[
    "newest",
    "random",
    "simswarm",
    "reddit_hot",
    "reddit_hot_paper",
    "x",
    "x_followed",
    "x_personal",
    "x_personal_paper",
    "x_personal_code",
]
"""Name of a ready feed."""

FEEDS: dict[str, Feed] = {
    "newest": NewestFeed(),
    "random": RandomFeed(),
    "simswarm": SimSwarmFeed(),
    "reddit_hot": HotFeed(),
    "reddit_hot_paper": HotFeed("paper"),
    "x": XFeed(),
    "x_followed": XFeed(other_posts=0),
    "x_personal": PersonalFeed(),
    "x_personal_paper": PersonalFeed(form="paper"),
    "x_personal_code": PersonalFeed(form="code"),
}
"""Feeds by name. Those that compare texts, `x_personal…`, need an embedding function. `x_followed` is X without a
recommender.
"""

UNITS = {1.0: "minute", 60.0: "hour", 24 * 60.0: "day"}
"""Minutes in a step → the word for such a step."""

MAX_PRODUCTS = 30
"""Maximum number of products on offer, since every observation lists them."""


@dataclass(frozen=True, kw_only=True)
class SocialSettings:
    """Parameters of a social world."""

    actions: tuple[str, ...]
    """Names of the tools and actions available to users."""

    feed: Feed | str = "newest"
    """Feed of the users, or its name in `FEEDS`."""

    embed: Embed | None = None
    """Converts texts to vectors; needed by feeds that compare texts and have no embedding function of their own."""

    feed_size: int = 10
    """Maximum number of posts in a feed."""

    replies_shown: int = 3
    """Maximum number of replies, and of comments, under a post."""

    threading: bool = True
    """Whether replies and comments are shown under posts (SimSwarm); if False, a feed lists only posts."""

    rules: Rules = "corrected"
    """`original` reproduces the defects of SimSwarm's social environment, bit for bit.

    In it, users can vote on their own posts, follow themselves and users that do not exist, and repost anything without
    limit; a repost is only counted and invisible; the feed ignores dislikes; a post is shown with its first direct
    replies rather than the best in its thread; empty posts are allowed.
    """

    self_rating: bool = False
    """Whether users may rate and repost their own posts."""

    show_score: bool = False
    """Whether posts show likes minus dislikes instead of both counts."""

    show_votes: bool = True
    """Whether users see how others voted: counts or scores, and notices of likes. Posts keep their order."""

    filler: tuple[str, ...] = ()
    """Sentences that users read in place of the comments and replies of others; empty to show these."""

    viral_threshold: int = 5
    """Number of likes and shares at which a post goes viral, once."""

    warn_reports: int = 2
    """Number of reports at which a post is shown with a warning (OASIS)."""

    hide_reports: int = 0
    """Number of reports at which a post is hidden from feeds, searches, trends and threads, and accepts no actions; 0
    for never (OASIS).
    """

    products: tuple[str, ...] = ()
    """Names of the products that `purchase_product` can buy."""

    trend_posts: int = 1
    """Number of posts listed by `trend` (OASIS)."""

    trend_days: float = 7.0
    """Maximum age of trending posts, in days of simulated time (OASIS)."""

    step_minutes: float = 3.0
    """Simulated minutes per step (OASIS, section 2.5)."""

    search_results: int = 10
    """Maximum number of search results."""

    own_posts_shown: int = 3
    """Maximum number of a user's own posts that its observation lists."""

    notice_steps: int = 1
    """Number of steps for which users see notices of others' actions."""

    notices_shown: int = 6
    """Maximum number of lines of notices in an observation."""

    post_characters: int = 500
    """Maximum number of characters shown of a post; half as many of replies and comments."""

    max_actions: int = 1
    """Maximum number of actions in one decision."""

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises:
            ConfigError: If a feed is unknown, a number is negative or not finite, there are no actions, an action or
                product is repeated, or a product's name is not one short line.
        """
        self._check_names()
        if isinstance(self.feed, str) and self.feed not in FEEDS:
            raise ConfigError(f"there is no feed {self.feed!r}; choose one of {', '.join(FEEDS)}")
        for name, value in vars(self).items():
            if name == "viral_threshold" and self.rules == "original":  # SimSwarm accepts any
                continue
            if isinstance(value, (int, float)) and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"{name} must be a finite number of 0 or more, got {value!r}")
        if self.rules not in ("corrected", "original"):
            raise ConfigError(f"rules must be 'corrected' or 'original', got {self.rules!r}")

    def _check_names(self) -> None:
        """Check the names of actions and products."""
        for field, names in (("actions", self.actions), ("products", self.products)):
            if isinstance(names, str):
                raise ConfigError(f"{field} must be a list of names, got the text {names!r:.80}; use ({names!r:.80},)")
            if twice := [name for index, name in enumerate(names) if name in names[:index]]:
                raise ConfigError(f"{field} names {twice[0]!r:.80} twice; name each once")
        if not self.actions:
            raise ConfigError("actions is empty; users need at least one, such as do_nothing")
        for name in self.products:
            if not name or name != one_line(name, MAX_NAME):
                raise ConfigError(f"a product's name must be one line of 1 to {MAX_NAME} characters, got {name!r:.120}")
        if len(self.products) > MAX_PRODUCTS:
            raise ConfigError(f"at most {MAX_PRODUCTS} products can be on offer, got {len(self.products)}")
        if self.products and "purchase_product" not in self.actions:
            raise ConfigError("products are bought by the action purchase_product, which is not among the actions")

    @property
    def unit(self) -> str:
        """Unit of time of all that users read: `minute`, `hour` or `day`, or else `step`."""
        return UNITS.get(self.step_minutes, "step")

    @property
    def chosen_feed(self) -> Feed:
        """The resolved feed: SimSwarm's with the world's rules, one that compares texts with the world's `embed`."""
        feed = FEEDS[self.feed] if isinstance(self.feed, str) else self.feed
        if isinstance(feed, SimSwarmFeed) and self.rules == "original":
            return SimSwarmFeed(feed.recency, feed.popularity, feed.relevance, feed.echo, "original")
        if isinstance(feed, PersonalFeed) and feed.embed is None:
            return replace(feed, embed=self.embed)
        return feed

    def require_embed(self) -> None:
        """Check that a feed that compares texts can do so.

        Raises:
            ConfigError: If it has no embedding function.
        """
        if isinstance(feed := self.chosen_feed, PersonalFeed) and feed.embed is None:
            raise ConfigError(NO_EMBED)


SIMSWARM_ACTIONS = ("create_post", "reply", "vote", "repost", "follow", "do_nothing")
"""Actions of SimSwarm's users."""

OASIS_X_ACTIONS = ("create_post", "like_post", "repost", "follow", "do_nothing", "quote_post")
"""Default actions of OASIS's Twitter users."""

OASIS_REDDIT_ACTIONS = (
    "like_post",
    "dislike_post",
    "create_post",
    "create_comment",
    "like_comment",
    "dislike_comment",
    "search_posts",
    "search_user",
    "trend",
    "refresh",
    "do_nothing",
    "follow",
    "mute",
)
"""Default actions of OASIS's Reddit users."""

X_ACTIONS = (*OASIS_X_ACTIONS, "unlike_post", "unfollow", "mute", "unmute")
"""Actions of X users: OASIS's, muting, and the actions that undo them."""

REDDIT_ACTIONS = (
    *OASIS_REDDIT_ACTIONS,
    *("unlike_post", "undo_dislike_post", "unlike_comment", "undo_dislike_comment", "unfollow", "unmute"),
)
"""Actions of Reddit users: OASIS's, and the actions that undo them."""

SPREADING_ACTIONS = ("like_post", "repost", "follow", "do_nothing")
"""Actions in OASIS's information spreading, also for its rumours among a million users."""

POLARISATION_ACTIONS = (
    *("do_nothing", "repost", "like_post", "dislike_post", "follow"),
    *("create_comment", "like_comment", "dislike_comment"),
)
"""Actions in OASIS's group polarisation."""

HERD_ACTIONS = (
    *("like_comment", "dislike_comment", "like_post", "dislike_post"),
    *("search_posts", "search_user", "trend", "refresh", "do_nothing"),
)
"""Actions in OASIS's herd effect, as compared with people: votes cannot be withdrawn."""

COUNTERFACTUAL_ACTIONS = ("create_comment", *HERD_ACTIONS)
"""Actions in OASIS's herd effect under counterfactual posts."""

PresetName = Literal[
    "simswarm",
    "x",
    "reddit",
    "oasis_x",
    "oasis_reddit",
    "information_spreading",
    "group_polarisation",
    "herd_effect",
    "counterfactual_herd",
]
"""Name of a preset."""

PRESETS: dict[str, SocialSettings] = {
    "simswarm": SocialSettings(actions=SIMSWARM_ACTIONS, feed=SimSwarmFeed()),
    "x": SocialSettings(actions=X_ACTIONS, feed=XFeed(), feed_size=5),
    "reddit": SocialSettings(actions=REDDIT_ACTIONS, feed=HotFeed(), feed_size=5, show_score=True),
    "oasis_x": SocialSettings(actions=OASIS_X_ACTIONS, feed="x_personal", feed_size=5),
    "oasis_reddit": SocialSettings(actions=OASIS_REDDIT_ACTIONS, feed=HotFeed(), feed_size=5, show_score=True),
    "information_spreading": SocialSettings(actions=SPREADING_ACTIONS, feed="x_personal", feed_size=5),
    "group_polarisation": SocialSettings(actions=POLARISATION_ACTIONS, feed="x_personal", feed_size=5),
    "herd_effect": SocialSettings(
        actions=HERD_ACTIONS, feed=HotFeed(pool=300), feed_size=1, replies_shown=10, show_score=True
    ),
    "counterfactual_herd": SocialSettings(
        actions=COUNTERFACTUAL_ACTIONS, feed=HotFeed(pool=50), feed_size=5, replies_shown=10, show_score=True
    ),
}
"""Settings by name. Feed sizes are those of OASIS's presets; SimSwarm itself shows 20 posts. `oasis_x`,
`information_spreading` and `group_polarisation` recommend by the score in OASIS's paper, which compares texts: their
feeds need `embed`.

The last four are the scenarios of OASIS's Table 17 (Yang et al. 2024, arXiv 2411.11581, appendix F.1). The rows of that
table are out of order in our copy, so we read it together with the text of F.2 (like, repost, follow, do nothing), F.3
(comments, likes and dislikes of posts) and F.4 (the nine actions of the herd effect), and with the action lists in
OASIS's code. The likes and dislikes of comments in `group_polarisation` are uncertain: the code has them, and the table
only hints at them. In `counterfactual_herd`, `pool` is the code's value for 100 users (500 for 1,000, 5,000 for
10,000), as are the five posts shown; F.4 has one.
"""
