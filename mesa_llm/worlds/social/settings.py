"""Parameters of a social world, and three ready sets of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mesa_llm.errors import ConfigError
from mesa_llm.worlds import Rules
from mesa_llm.worlds.social.recommenders import FEEDS, Feed, HotFeed, SimSwarmFeed, XFeed


@dataclass(frozen=True, kw_only=True)
class SocialSettings:
    """Parameters of a social world."""

    actions: tuple[str, ...]
    """Names of the tools and actions its users have."""

    feed: Feed | str = "newest"
    """Feed of the users, or the name of one (`newest`, `simswarm`, `reddit_hot`, `x`)."""

    feed_size: int = 10
    """Maximum number of posts in a feed."""

    replies_shown: int = 3
    """Maximum number of replies, and of comments, under a post."""

    threading: bool = True
    """Whether replies and comments stand under posts (SimSwarm); False: a feed lists posts alone."""

    rules: Rules = "corrected"
    """`original` repeats the defects of SimSwarm's social environment, bit for bit.

    There a user votes on posts of its own, follows itself and users who do not exist, and reposts anything
    without limit; a repost only counts and appears nowhere; the feed ignores dislikes; under a post stand its
    first direct replies rather than the best of its thread; empty posts are allowed.
    """

    self_rating: bool = False
    """Whether users may rate and repost what they wrote themselves."""

    show_score: bool = False
    """Whether posts show likes minus dislikes instead of both counts."""

    viral_threshold: int = 5
    """Likes and shares at which a post is reported as viral, once."""

    warn_reports: int = 2
    """Reports from which on a post is shown with a warning (OASIS)."""

    trend_posts: int = 1
    """Posts that `trend` lists (OASIS)."""

    trend_days: float = 7.0
    """Age up to which posts can trend, in days of simulated time (OASIS)."""

    step_minutes: float = 3.0
    """Simulated minutes in a step (OASIS, section 2.5)."""

    search_results: int = 10
    """Maximum number of results of a search."""

    notice_steps: int = 1
    """Number of steps for which users read what others did to them."""

    notices_shown: int = 6
    """Maximum number of lines of such news in an observation."""

    post_characters: int = 500
    """Characters of a post that are shown; replies and comments show half as many."""

    max_actions: int = 1
    """Maximum number of actions in one decision."""

    def __post_init__(self) -> None:
        """Refuse parameters that cannot work.

        Raises:
            ConfigError: If a feed is unknown, or a number is negative, infinite or not a number.
        """
        if isinstance(self.feed, str) and self.feed not in FEEDS:
            raise ConfigError(f"there is no feed {self.feed!r}; choose one of {', '.join(FEEDS)}")
        for name, value in vars(self).items():
            if name == "viral_threshold" and self.rules == "original":  # SimSwarm takes any
                continue
            if isinstance(value, (int, float)) and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"{name} must be a finite number from 0, got {value!r}")
        if self.rules not in ("corrected", "original"):
            raise ConfigError(f"rules must be 'corrected' or 'original', got {self.rules!r}")

    @property
    def chosen_feed(self) -> Feed:
        """The feed itself; SimSwarm's follows the rules of the world."""
        feed = FEEDS[self.feed] if isinstance(self.feed, str) else self.feed
        if isinstance(feed, SimSwarmFeed) and self.rules == "original":
            return SimSwarmFeed(feed.recency, feed.popularity, feed.relevance, feed.echo, "original")
        return feed


SIMSWARM_ACTIONS = ("create_post", "reply", "vote", "repost", "follow", "do_nothing")
"""Actions of SimSwarm's users."""

X_ACTIONS = ("create_post", "like_post", "repost", "follow", "do_nothing", "quote_post")
"""Actions of OASIS's Twitter users."""

REDDIT_ACTIONS = (
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
"""Actions of OASIS's Reddit users."""

PRESETS: dict[str, SocialSettings] = {
    "simswarm": SocialSettings(actions=SIMSWARM_ACTIONS, feed=SimSwarmFeed()),
    "x": SocialSettings(actions=X_ACTIONS, feed=XFeed(), feed_size=5),
    "reddit": SocialSettings(actions=REDDIT_ACTIONS, feed=HotFeed(), feed_size=5, show_score=True),
}
"""Settings by name. Sizes of feeds are those of OASIS's presets; SimSwarm itself shows 20 posts."""
