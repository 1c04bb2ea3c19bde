"""Facts that a user observes, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mesa_llm.worlds.social.recommenders import KINDS, QUOTE, Viewer
from mesa_llm.worlds.social.settings import SocialSettings
from mesa_llm.worlds.social.state import Notice, SocialState


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class ProductView:
    """A product on offer."""

    name: str
    """Its name."""

    sales: int
    """Number sold so far."""


@dataclass(frozen=True, slots=True)
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


GROUP_ACTIONS = frozenset(("create_group", "join_group", "leave_group", "send_to_group", "listen_from_group"))
"""Actions on chat groups; who has one of them sees the groups it is in."""

MAX_LISTED = 10
"""Maximum number of followed users, muted users, groups of one's own and groups to join that are listed."""

MAX_MARKS = 1000
"""Maximum number of ids in one query, as SQLite takes no more than some 30,000."""

MAX_NEW_MESSAGES = 3
"""Maximum number of new messages of a group in an observation."""

MAX_MESSAGES = 12
"""Maximum number of messages that `listen_from_group` shows."""

FIRST_REPLIES = """
    SELECT post_id, parent_id, user_id, content, step, likes, dislikes FROM post
    WHERE parent_id = ? AND kind = 'reply' AND reports < ? ORDER BY post_id LIMIT ?"""

BEST_REPLIES = """
    SELECT post_id, parent_id, user_id, content, step, likes, dislikes FROM post
    WHERE root_id = ? AND kind = 'reply' AND reports < ? ORDER BY likes - dislikes DESC, post_id DESC LIMIT ?"""

BEST_COMMENTS = """
    SELECT comment_id, post_id, user_id, content, step, likes, dislikes FROM comment
    WHERE post_id = ? ORDER BY likes - dislikes DESC, comment_id DESC LIMIT ?"""

OWN_GROUPS = """
    SELECT group_id, name, members FROM group_members JOIN chat_group USING (group_id)
    WHERE group_members.user_id = ? ORDER BY coalesce(
        (SELECT max(step) FROM group_messages WHERE group_messages.group_id = chat_group.group_id), -1
    ) DESC, group_id DESC LIMIT ?"""

OPEN_GROUPS = """
    SELECT group_id, name, members FROM chat_group
    WHERE group_id NOT IN (SELECT group_id FROM group_members WHERE user_id = ?)
    ORDER BY members DESC, group_id DESC LIMIT ?"""

MESSAGES = """
    SELECT message_id, group_id, user_id, content, step FROM group_messages
    WHERE group_id = ? AND step >= ? AND user_id <> ?
        AND user_id NOT IN (SELECT mutee_id FROM mute WHERE muter_id = ?)
    ORDER BY step DESC, message_id DESC LIMIT ?"""


class SocialView(SocialState):
    """Builds what users see."""

    def __init__(self, settings: SocialSettings, **options: Any) -> None:
        """Begin with nothing to see; the arguments are those of `SocialState`."""
        self._views: dict[int, PostView] = {}
        self._texts: dict[tuple[int, bool, bool, int], str] = {}
        super().__init__(settings, **options)

    def words_changed(self) -> None:
        """Forget how posts look."""
        self._views.clear()
        self._texts.clear()

    def post_view(self, post_id: int) -> PostView:
        """Return a post as everyone sees it."""
        view = self._views.get(post_id)
        if view is None:
            source_id = self.source_id(post_id)
            view = self._post(post_id, source_id, quoted=self._quoted(source_id))
            limit = self.settings.replies_shown if self.settings.threading else 0
            replies = FIRST_REPLIES if self.is_original else BEST_REPLIES
            hidden = self.max_reports
            view = replace(
                view,
                replies=self._replies(self.store.rows(replies, source_id, hidden, limit)),
                comments=self._replies(self.store.rows(BEST_COMMENTS, source_id, limit)) if self.n_comments else (),
            )
            self._views[post_id] = view
        return view

    def _quoted(self, post_id: int) -> PostView | None:
        if self.kind_of(post_id) != QUOTE:
            return None
        parent = self.store.first("SELECT parent_id FROM post WHERE post_id = ?", post_id)
        quoted = self.source_id(int(parent[0])) if parent else post_id
        return self._post(quoted, quoted) if self.posts.get("reports", quoted - 1) < self.max_reports else None

    def _post(self, post_id: int, source_id: int, quoted: PostView | None = None) -> PostView:
        author, writer = self.author_of(post_id), self.author_of(source_id)
        content = self.store.first("SELECT content FROM post WHERE post_id = ?", source_id)
        return PostView(
            post_id=post_id,
            kind=KINDS[self.kind_of(post_id)],
            author_id=author,
            author=self.names[author],
            source_id=source_id,
            source_author_id=writer,
            source_author=self.names[writer],
            content=content[0] if content else "",
            step=self.posts.get("created", post_id - 1),
            likes=self.posts.get("likes", source_id - 1),
            dislikes=self.posts.get("dislikes", source_id - 1),
            shares=self.posts.get("shares", source_id - 1),
            reports=self.posts.get("reports", source_id - 1),
            quoted=quoted,
        )

    def _replies(self, rows: list[tuple[Any, ...]]) -> tuple[ReplyView, ...]:
        return tuple(ReplyView(row[0], row[1], row[2], self.names[row[2]], *row[3:]) for row in rows)

    def items(self, viewer: Viewer, post_ids: Sequence[int]) -> tuple[FeedItem, ...]:
        """Return posts as one user sees them: with its votes, without what muted users wrote under them."""
        posts = [_without_muted(self.post_view(post_id), viewer) for post_id in post_ids]
        rated = [post.source_id for post in posts] + [reply.reply_id for post in posts for reply in post.replies]
        votes = self._votes("post", viewer.user_id, rated)
        comments = [comment.reply_id for post in posts for comment in post.comments]
        comment_votes = self._votes("comment", viewer.user_id, comments) if comments else {}
        items: list[FeedItem] = []
        for post in posts:
            if votes or comment_votes:
                post = _with_votes(post, votes, comment_votes)
            followed = bool(viewer.follows[post.author_id])
            is_own = post.source_author_id == viewer.user_id
            items.append(FeedItem(post, followed, is_own, votes.get(post.source_id, 0)))
        return tuple(items)

    def _votes(self, kind: Literal["post", "comment"], user_id: int, ids: list[int]) -> dict[int, int]:
        votes: dict[int, int] = {}
        for start in range(0, len(ids), MAX_MARKS):
            batch = ids[start : start + MAX_MARKS]
            marks = ", ".join("?" * len(batch))
            query = f"SELECT {kind}_id, value FROM {kind}_vote WHERE user_id = ? AND {kind}_id IN ({marks})"
            votes.update(self.store.rows(query, user_id, *batch))
        return votes

    def groups(self, user_id: int) -> tuple[GroupView, ...]:
        """Return the groups a user is in, as far as they are listed, with what is new in them."""
        oldest = self.step - self.settings.notice_steps
        return tuple(
            GroupView(*row, messages=self.messages(user_id, row[0], MAX_NEW_MESSAGES, oldest, by_others=True))
            for row in self.store.rows(OWN_GROUPS, user_id, MAX_LISTED)
        )

    def messages(
        self, user_id: int, group_id: int, size: int, oldest: int = 0, *, by_others: bool = False
    ) -> tuple[MessageView, ...]:
        """Return the latest messages of a group, oldest first; none of users that the reader muted.

        Args:
            user_id: Who reads.
            group_id: The group.
            size: Maximum number of messages.
            oldest: Step from which on they were written.
            by_others: Whether to leave out what the reader wrote.
        """
        left_out = user_id if by_others else 0
        rows = self.store.rows(MESSAGES, group_id, oldest, left_out, user_id, size)
        return tuple(
            MessageView(message_id, group, author, self.names[author], content, step)
            for message_id, group, author, content, step in reversed(rows)
        )

    def _open_groups(self, user_id: int) -> tuple[GroupView, ...]:
        return tuple(GroupView(*row) for row in self.store.rows(OPEN_GROUPS, user_id, MAX_LISTED))

    def _products(self) -> tuple[ProductView, ...]:
        return tuple(
            ProductView(*row) for row in self.store.rows("SELECT name, sales FROM product ORDER BY product_id")
        )

    def facts(self, user_id: int) -> SocialFacts:
        """Return all that a user sees now.

        Raises:
            ConfigError: If the user has no account.
        """
        viewer = self.viewer(user_id)
        ties = self.ties(user_id)
        names = self.settings.actions
        return SocialFacts(
            user_id=user_id,
            step=self.step,
            followers=self.users.get("followers", user_id),
            followings=self.users.get("followings", user_id),
            feed=self.items(viewer, self.feed(viewer)),
            notices=tuple(notice for notice in self.inbox.of(user_id) if not _is_hidden(notice, viewer)),
            followed=tuple(ties.followed[:MAX_LISTED].tolist()) if "unfollow" in names else (),
            muted=tuple(ties.muted[:MAX_LISTED].tolist()) if "unmute" in names else (),
            products=self._products() if "purchase_product" in names else (),
            groups=() if GROUP_ACTIONS.isdisjoint(names) else self.groups(user_id),
            open_groups=self._open_groups(user_id) if "join_group" in names else (),
        )


def _is_hidden(notice: Notice, viewer: Viewer) -> bool:
    return viewer.hidden is not None and bool(viewer.hidden[notice.user_id])


def _with_votes(post: PostView, votes: Mapping[int, int], comment_votes: Mapping[int, int]) -> PostView:
    """Mark the viewer's votes on what stands under a post; without any, the post stays the one that all share."""
    if not any(reply.reply_id in votes for reply in post.replies) and not any(
        comment.reply_id in comment_votes for comment in post.comments
    ):
        return post
    replies = tuple(replace(reply, vote=votes.get(reply.reply_id, 0)) for reply in post.replies)
    comments = tuple(replace(comment, vote=comment_votes.get(comment.reply_id, 0)) for comment in post.comments)
    return replace(post, replies=replies, comments=comments)


def _without_muted(post: PostView, viewer: Viewer) -> PostView:
    """Leave out what muted users wrote under a post, or are quoted with in it."""
    hidden = viewer.hidden
    if hidden is None:
        return post
    under = post.replies + post.comments + ((post.quoted,) if post.quoted else ())
    if not any(hidden[view.author_id] for view in under):
        return post
    return replace(
        post,
        quoted=None if post.quoted is not None and hidden[post.quoted.author_id] else post.quoted,
        replies=tuple(reply for reply in post.replies if not hidden[reply.author_id]),
        comments=tuple(comment for comment in post.comments if not hidden[comment.author_id]),
    )
