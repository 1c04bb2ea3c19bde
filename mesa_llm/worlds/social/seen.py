"""What a user sees, as values: the facts of an observation."""

from __future__ import annotations

from dataclasses import dataclass

from mesa_llm.worlds.social.inbox import Notice


@dataclass(frozen=True, slots=True)
class ReplySeen:
    """A reply (which is a post of its own) or a comment, as it stands under a post."""

    reply_id: int
    """Its number: of a post if it is a reply, of a comment if it is a comment."""

    parent_id: int
    """The post or reply that it answers."""

    author_id: int
    """User id of who wrote it."""

    author: str
    """Name of who wrote it."""

    content: str
    """Its words."""

    step: int
    """Step in which it was written."""

    likes: int
    """Likes now."""

    dislikes: int
    """Dislikes now."""

    @property
    def score(self) -> int:
        """Likes minus dislikes."""
        return self.likes - self.dislikes


@dataclass(frozen=True, slots=True)
class PostSeen:
    """A post, as everyone sees it. Of a repost, words and counts are those of its source."""

    post_id: int
    """Its number; a repost has one of its own."""

    kind: str
    """`original`, `repost`, `quote` or `reply`."""

    author_id: int
    """User id of who published it; of a repost, who reposted."""

    author: str
    """Name of who published it."""

    source_id: int
    """The post whose words and counts these are: of a repost, what it passes on; else the post itself."""

    source_author_id: int
    """User id of who wrote the words."""

    source_author: str
    """Name of who wrote the words."""

    content: str
    """The words."""

    step: int
    """Step in which it was published."""

    likes: int
    """Likes now."""

    dislikes: int
    """Dislikes now."""

    shares: int
    """Times it was reposted or quoted."""

    reports: int
    """Times it was reported."""

    quoted: PostSeen | None = None
    """What a quote stands above, without its replies."""

    replies: tuple[ReplySeen, ...] = ()
    """A few replies, best first (original rules: the first direct ones)."""

    comments: tuple[ReplySeen, ...] = ()
    """A few comments, best first."""

    @property
    def score(self) -> int:
        """Likes minus dislikes."""
        return self.likes - self.dislikes


@dataclass(frozen=True, slots=True)
class FeedItem:
    """A post in the feed of one user."""

    post: PostSeen
    """The post."""

    is_followed: bool
    """Whether the viewer follows who published it."""

    is_own: bool
    """Whether the viewer wrote it."""

    vote: int
    """The viewer's vote on it: 1 a like, -1 a dislike, 0 none."""


@dataclass(frozen=True, slots=True)
class SocialFacts:
    """What one user sees in one step."""

    user_id: int
    """Who looks."""

    step: int
    """The step of the world."""

    followers: int
    """How many follow the user."""

    followings: int
    """How many the user follows."""

    feed: tuple[FeedItem, ...]
    """The feed, best first."""

    notices: tuple[Notice, ...]
    """What others did to the user lately, oldest first; nothing by those it muted."""

    followed: tuple[int, ...]
    """User ids the user follows, as far as they are listed: only where it can unfollow."""

    muted: tuple[int, ...]
    """User ids the user muted, as far as they are listed: only where it can unmute."""
