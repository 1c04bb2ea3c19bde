"""Facts that a user observes, as values."""

from __future__ import annotations

from typing import NamedTuple

from mesa_llm.records.frozen import frozen
from mesa_llm.worlds.social.state import Notice


@frozen
class ReplyView:
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

    vote: int = 0
    """The viewer's vote on it: 1 a like, -1 a dislike, 0 none."""

    @property
    def score(self) -> int:
        """Likes minus dislikes."""
        return self.likes - self.dislikes


@frozen
class PostView:
    """A post. Of a repost, words and counts are those of its source."""

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

    quoted: PostView | None = None
    """The post that a quote quotes, without its replies."""

    replies: tuple[ReplyView, ...] = ()
    """A few replies, best first (original rules: the first direct ones)."""

    comments: tuple[ReplyView, ...] = ()
    """A few comments, best first."""

    @property
    def score(self) -> int:
        """Likes minus dislikes."""
        return self.likes - self.dislikes


@frozen
class FeedItem:
    """A post in the feed of one user."""

    post: PostView
    """The post."""

    is_followed: bool
    """Whether the viewer follows who published it."""

    is_own: bool
    """Whether the viewer wrote it."""

    vote: int
    """The viewer's vote on it: 1 a like, -1 a dislike, 0 none."""


class ShownIds(NamedTuple):
    """The ids that a post shows: its own, and those of what it passes on, quotes and has under it; each once."""

    posts: tuple[int, ...]
    """Posts and replies, in order of appearance."""

    users: tuple[int, ...]
    """Who wrote them, and the comments."""

    comments: tuple[int, ...]
    """Comments."""


def ids_shown_by(post: PostView) -> ShownIds:
    """Collect the ids that a post shows."""
    posts, users = [post.post_id, post.source_id], [post.author_id, post.source_author_id]
    if post.quoted is not None:
        posts.append(post.quoted.post_id)
        users.append(post.quoted.author_id)
    for reply in post.replies:
        posts.append(reply.reply_id)
        users.append(reply.author_id)
    comments = [comment.reply_id for comment in post.comments]
    users += [comment.author_id for comment in post.comments]
    return ShownIds(tuple(dict.fromkeys(posts)), tuple(dict.fromkeys(users)), tuple(comments))


@frozen
class MessageView:
    """A message in a group."""

    message_id: int
    """Its number."""

    group_id: int
    """Number of the group."""

    user_id: int
    """User id of who wrote it."""

    author: str
    """Name of who wrote it."""

    content: str
    """Its words."""

    step: int
    """Step in which it was written."""


@frozen
class GroupView:
    """A chat group."""

    group_id: int
    """Its number."""

    name: str
    """Its name."""

    members: int
    """Number of members."""

    messages: tuple[MessageView, ...] = ()
    """Latest messages of others that are news to the viewer, oldest first; only of a group it is in."""


@frozen
class ProductView:
    """A product on offer."""

    name: str
    """Its name."""

    sales: int
    """Number sold so far."""


@frozen
class SocialFacts:
    """Facts that one user observes in one step."""

    user_id: int
    """Mesa `unique_id` of the user."""

    step: int
    """The step of the world."""

    followers: int
    """Number of followers."""

    followings: int
    """Number of users followed."""

    feed: tuple[FeedItem, ...]
    """The feed, best first."""

    notices: tuple[Notice, ...]
    """Recent actions of others that concern the user, oldest first; none of muted users."""

    followed: tuple[int, ...]
    """User ids the user follows, as far as they are listed: only where it can unfollow."""

    muted: tuple[int, ...]
    """User ids the user muted, as far as they are listed: only where it can unmute."""

    products: tuple[ProductView, ...] = ()
    """What is on offer: only where the user can buy."""

    groups: tuple[GroupView, ...] = ()
    """Groups the user is in, those with the latest messages first, as far as they are listed: only where it has
    actions on groups."""

    open_groups: tuple[GroupView, ...] = ()
    """Groups the user could join, the largest first, as far as they are listed: only where it can join."""
