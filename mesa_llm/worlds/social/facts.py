"""Facts that a user observes, as values."""

from __future__ import annotations

from typing import NamedTuple

from mesa_llm.records.frozen import frozen
from mesa_llm.worlds.social.state import Notice


@frozen
class ReplyView:
    """A reply (which is a post of its own) or a comment, as shown under a post."""

    reply_id: int
    """Its id: a post id for a reply, a comment id for a comment."""

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
    """A post; words and counts of a repost are those of its source."""

    post_id: int
    """Its id; a repost has one of its own."""

    kind: str
    """`original`, `repost`, `quote` or `reply`."""

    author_id: int
    """User id of the publisher: for a repost, the user who reposted."""

    author: str
    """Name of the publisher."""

    source_id: int
    """Id of the post with these words and counts: for a repost its source, else the post itself."""

    source_author_id: int
    """User id of the author of the words."""

    source_author: str
    """Name of the author of the words."""

    content: str
    """The words."""

    step: int
    """Step in which it was published."""

    likes: int
    """Likes now."""

    dislikes: int
    """Dislikes now."""

    shares: int
    """Number of reposts and quotes."""

    reports: int
    """Number of reports."""

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
    """Whether the viewer follows its publisher."""

    is_own: bool
    """Whether the viewer wrote it."""

    vote: int
    """The viewer's vote on it: 1 a like, -1 a dislike, 0 none."""


class ShownIds(NamedTuple):
    """The ids that a post shows, each once: its own, and those of the posts and comments shown in it or under it."""

    posts: tuple[int, ...]
    """Posts and replies, in order of appearance."""

    users: tuple[int, ...]
    """Their authors, and those of the comments."""

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
    """Latest messages of others that are new to the viewer, oldest first; only in a group it belongs to."""


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
    """Ids of users whom the user follows, as far as they are listed: only if it can unfollow."""

    muted: tuple[int, ...]
    """Ids of users whom the user muted, as far as they are listed: only if it can unmute."""

    products: tuple[ProductView, ...] = ()
    """Products on offer: only if the user can buy."""

    groups: tuple[GroupView, ...] = ()
    """Groups of the user, those with the latest messages first, as far as they are listed: only if it has actions on
    groups."""

    open_groups: tuple[GroupView, ...] = ()
    """Groups that the user could join, the largest first, as far as they are listed: only if it can join."""
