"""Facts observed by a user, as values."""

from __future__ import annotations

from typing import NamedTuple

from mesa_llm.records.frozen import frozen
from mesa_llm_models.social.world.state import Notice


@frozen
class ReplyView:
    """A reply (a post in its own right) or a comment, as shown under a post."""

    reply_id: int
    """Its id: a post id for a reply, a comment id for a comment."""

    parent_id: int
    """The post or reply it answers."""

    author_id: int
    """User id of the author."""

    author: str
    """Name of the author."""

    content: str
    """Its text."""

    step: int
    """Step of publication."""

    likes: int
    """Current number of likes."""

    dislikes: int
    """Current number of dislikes."""

    vote: int = 0
    """The viewer's vote on it: 1 for a like, -1 for a dislike, 0 for none."""

    @property
    def score(self) -> int:
        """Likes minus dislikes."""
        return self.likes - self.dislikes


@frozen
class PostView:
    """A post. The text and counts of a repost are those of its source."""

    post_id: int
    """Its id; a repost has its own."""

    kind: str
    """`original`, `repost`, `quote` or `reply`."""

    author_id: int
    """User id of the publisher; for a repost, the user who reposted."""

    author: str
    """Name of the publisher."""

    source_id: int
    """Id of the post with this text and these counts: for a repost its source, else the post itself."""

    source_author_id: int
    """User id of the text's author."""

    source_author: str
    """Name of the text's author."""

    content: str
    """The text."""

    step: int
    """Step of publication."""

    likes: int
    """Current number of likes."""

    dislikes: int
    """Current number of dislikes."""

    shares: int
    """Number of reposts and quotes."""

    reports: int
    """Number of reports."""

    quoted: PostView | None = None
    """The quoted post, without its replies."""

    replies: tuple[ReplyView, ...] = ()
    """Some replies, best first (original rules: the first direct ones)."""

    comments: tuple[ReplyView, ...] = ()
    """Some comments, best first."""

    @property
    def score(self) -> int:
        """Likes minus dislikes."""
        return self.likes - self.dislikes


@frozen
class FeedItem:
    """A post in a user's feed."""

    post: PostView
    """The post."""

    is_followed: bool
    """Whether the viewer follows its publisher."""

    is_own: bool
    """Whether the viewer wrote it."""

    vote: int
    """The viewer's vote on it: 1 for a like, -1 for a dislike, 0 for none."""


class ShownIds(NamedTuple):
    """The ids in a post, each once: its own, and those of the posts and comments in it or under it."""

    posts: tuple[int, ...]
    """Posts and replies, in order of appearance."""

    users: tuple[int, ...]
    """Their authors, and those of the comments."""

    comments: tuple[int, ...]
    """Comments."""


def ids_shown_by(post: PostView) -> ShownIds:
    """Collect the ids in a post."""
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
    """Its id."""

    group_id: int
    """Id of the group."""

    user_id: int
    """User id of the author."""

    author: str
    """Name of the author."""

    content: str
    """Its text."""

    step: int
    """Step of writing."""


@frozen
class GroupView:
    """A chat group."""

    group_id: int
    """Its id."""

    name: str
    """Its name."""

    members: int
    """Number of members."""

    messages: tuple[MessageView, ...] = ()
    """Latest messages by others that are new to the viewer, oldest first; only in the viewer's groups."""


@frozen
class ProductView:
    """A product on offer."""

    name: str
    """Its name."""

    sales: int
    """Number sold so far."""


class OwnPost(NamedTuple):
    """One of the viewer's own posts, and what came of it."""

    post_id: int
    """Its id."""

    step: int
    """Step of publication."""

    likes: int
    """Current number of likes."""

    dislikes: int
    """Current number of dislikes."""

    shares: int
    """Number of reposts and quotes."""

    answers: int
    """Number of replies and comments under it."""


@frozen
class SocialFacts:
    """Facts one user observes in one step."""

    user_id: int
    """Mesa `unique_id` of the user."""

    step: int
    """The step of the world."""

    followers: int
    """Number of followers."""

    followings: int
    """Number of users it follows."""

    feed: tuple[FeedItem, ...]
    """The feed, best first."""

    notices: tuple[Notice, ...]
    """Recent actions by others that concern the user, oldest first, without muted users."""

    followed: tuple[int, ...]
    """Ids of listed users the user follows; only if it can unfollow."""

    muted: tuple[int, ...]
    """Ids of listed users the user muted; only if it can unmute."""

    follows: tuple[int, ...] = ()
    """Ids of the first few users it follows."""

    own_posts: tuple[OwnPost, ...] = ()
    """Its latest posts, newest first."""

    products: tuple[ProductView, ...] = ()
    """Products on offer; only if the user can buy."""

    groups: tuple[GroupView, ...] = ()
    """The user's listed groups, those with the latest messages first; only if it has group actions."""

    open_groups: tuple[GroupView, ...] = ()
    """Listed groups the user could join, largest first; only if it can join."""
