"""Views of a social world's state, as values for its users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from mesa_llm_models.social.world.csr import IntArray
from mesa_llm_models.social.world.facts import (
    FeedItem,
    GroupView,
    MessageView,
    OwnPost,
    PostView,
    ProductView,
    ReplyView,
    ShownIds,
    SocialFacts,
    ids_shown_by,
)
from mesa_llm_models.social.world.post_index import KINDS, QUOTE, REPOST, Viewer
from mesa_llm_models.social.world.settings import SocialSettings
from mesa_llm_models.social.world.state import Notice, Reader, SocialState
from mesa_llm_models.social.world.text import MAX_FOLLOWED

GROUP_ACTIONS = frozenset(("create_group", "join_group", "leave_group", "send_to_group", "listen_from_group"))
"""Actions on chat groups. Users with one of them see their groups."""

VOTE_NOTICES = frozenset(("like", "comment_like"))
"""Kinds of notices that tell users of others' votes."""

MAX_LISTED = 10
"""Maximum number of listed users and groups of each kind: followed users, muted users, own groups, open groups."""

MAX_VIEWS = 100_000
"""Maximum number of cached views of posts."""

MAX_NEW_MESSAGES = 3
"""Maximum number of new messages of a group in an observation."""

MAX_MESSAGES = 12
"""Maximum number of messages shown by `listen_from_group`."""

OWN_GROUPS = """
    SELECT group_id, name, members FROM group_members JOIN chat_group USING (group_id)
    WHERE group_members.agent_id = ? ORDER BY coalesce(
        (SELECT max(sent_at) FROM group_messages WHERE group_messages.group_id = chat_group.group_id), -1
    ) DESC, group_id DESC LIMIT ?"""

OPEN_GROUPS = """
    SELECT group_id, name, members FROM chat_group
    WHERE group_id NOT IN (SELECT group_id FROM group_members WHERE agent_id = ?)
    ORDER BY members DESC, group_id DESC LIMIT ?"""

MESSAGES = """
    SELECT message_id, group_id, sender_id, content, sent_at FROM group_messages
    WHERE group_id = ? AND sent_at >= ? AND sender_id <> ?
        AND sender_id NOT IN (SELECT mutee_id FROM mute WHERE muter_id = ?)
    ORDER BY sent_at DESC, message_id DESC LIMIT ?"""


class PostRow(NamedTuple):
    """Numbers of a post for its view, by column."""

    kind: int
    author: int
    created: int
    likes: int
    dislikes: int
    shares: int
    reports: int
    parent: int


class CommentRow(NamedTuple):
    """Numbers of a comment for its view, by column."""

    author: int
    created: int
    likes: int
    dislikes: int
    post: int

    @property
    def parent(self) -> int:
        """Id of its post."""
        return self.post


class Look:
    """A post as seen by every user without votes or muted users in it.

    Attributes:
        post: The post.
        author_id: User id of its publisher.
        source_id: Id of the post with the original text.
        writer_id: User id of the text's author.
        ids: The ids in it.
        replies: Ids of the replies under it.
        comments: Ids of the comments under it.
        items: The post as a feed item, by the viewer's relation to it (whether the viewer follows its publisher,
            whether the viewer wrote it, and the viewer's vote), for relations seen so far.
    """

    __slots__ = ("author_id", "comments", "ids", "items", "post", "replies", "source_id", "writer_id")

    def __init__(self, post: PostView) -> None:
        """Create a view without items."""
        self.post = post
        self.author_id, self.source_id, self.writer_id = post.author_id, post.source_id, post.source_author_id
        self.ids = ids_shown_by(post)
        self.replies = tuple([reply.reply_id for reply in post.replies])
        self.comments = self.ids.comments
        self.items: dict[tuple[bool, bool, int], FeedItem] = {}


class SocialView(SocialState):
    """Builds users' observations."""

    def __init__(self, settings: SocialSettings, **options: Any) -> None:
        """Create empty caches. The arguments are those of `SocialState`."""
        self._views: dict[int, PostView] = {}
        self._looks: dict[int, Look] = {}
        self._texts: dict[int, dict[tuple[bool, bool, int], str]] = {}
        self._shown_in: dict[int, set[int]] = {}  # post → posts whose cached views show it
        super().__init__(settings, **options)
        self._actions = frozenset(settings.actions)
        self._sees_groups = not GROUP_ACTIONS.isdisjoint(settings.actions)

    def look_changed(self, post_id: int) -> None:
        """Drop the cached view of a post, and of the posts that share or quote it."""
        for changed in (post_id, *self._shown_in.pop(post_id, ())):
            self._views.pop(changed, None)
            self._looks.pop(changed, None)
            self._texts.pop(changed, None)

    def next_step(self) -> None:
        """Advance to the next step, and drop texts, which state the age of posts."""
        super().next_step()
        self._texts.clear()
        if len(self._views) > MAX_VIEWS:
            self._views.clear()
            self._looks.clear()
            self._shown_in.clear()

    def post_view(self, post_id: int) -> PostView:
        """Return a post as everyone sees it."""
        if post_id not in self._views:
            self.source_id(post_id)
            self.load_views([post_id])
        return self._views[post_id]

    def load_views(self, post_ids: Iterable[int]) -> None:
        """Build missing views of posts, reading their texts and names together."""
        missing = [post_id for post_id in dict.fromkeys(post_ids) if post_id not in self._views]
        if not missing:
            return
        parts = [self._parts(post_id) for post_id in missing]
        shown = dict.fromkeys(part for source, quoted, replies, _ in parts for part in (source, quoted, *replies))
        shown.pop(0, None)
        texts = self.posts_texts(list(shown))
        ids = list(dict.fromkeys((*shown, *missing)))
        posts = dict(zip(ids, map(PostRow._make, self.posts.some(ids, PostRow._fields)), strict=True))
        ids = [comment_id for *_, comments in parts for comment_id in comments]
        comments = dict(zip(ids, map(CommentRow._make, self.comments.some(ids, CommentRow._fields)), strict=True))
        query = "SELECT comment_id, content FROM comment WHERE comment_id IN ({})"
        comment_texts = dict(self.store.of_ids(query, ids))
        self.names.load(row.author for row in chain(posts.values(), comments.values()))
        names = self.names

        def own_facts(post_id: int, source_id: int) -> tuple[Any, ...]:
            post, source = posts[post_id], posts[source_id]
            published = post_id, KINDS[post.kind], post.author, names[post.author]
            written = source_id, source.author, names[source.author], texts[source_id], post.created
            return *published, *written, source.likes, source.dislikes, source.shares, source.reports

        def reply_view(reply_id: int, row: PostRow | CommentRow, content: str) -> ReplyView:
            written = row.author, names[row.author], content, row.created
            return ReplyView(reply_id, row.parent, *written, row.likes, row.dislikes)

        for post_id, (source_id, quoted_id, replies, under) in zip(missing, parts, strict=True):
            self._views[post_id] = PostView(
                *own_facts(post_id, source_id),
                quoted=PostView(*own_facts(quoted_id, quoted_id)) if quoted_id else None,
                replies=tuple([reply_view(each, posts[each], texts[each]) for each in replies]),
                comments=tuple([reply_view(each, comments[each], comment_texts[each]) for each in under]),
            )

    def _parts(self, post_id: int) -> tuple[int, int, Sequence[int], Sequence[int]]:
        """Return the ids in a post: its source, the post it quotes (or 0), its replies and its comments."""
        source_id, quoted_id = self.posts.get("source", post_id - 1) + 1, 0
        if self.kind_of(source_id) == QUOTE:
            quoted_id = self.posts.get("source", self.posts.get("parent", source_id - 1) - 1) + 1
            self._shown_in.setdefault(quoted_id, set()).add(post_id)
            if self.posts.get("reports", quoted_id - 1) >= self.max_reports:
                quoted_id = 0
        if source_id != post_id:
            self._shown_in.setdefault(source_id, set()).add(post_id)
        limit = self.settings.replies_shown if self.settings.threading else 0
        return source_id, quoted_id, self._best_replies(source_id, limit), self._best_comments(source_id, limit)

    def _best_replies(self, post_id: int, limit: int) -> Sequence[int]:
        replies = self._replies.get(post_id, ())
        if not replies or not limit:
            return ()
        rows = np.array(replies, dtype=np.int64) - 1
        rows = rows[self.posts["reports"][rows] < self.max_reports]
        return (self._best_first(rows)[:limit] + 1).tolist()

    def _best_first(self, rows: IntArray) -> IntArray:
        """Return rows of replies in display order."""
        return rows[np.lexsort((-rows, self.posts["dislikes"][rows] - self.posts["likes"][rows]))]

    def _best_comments(self, post_id: int, limit: int) -> Sequence[int]:
        comments = self._comments.get(post_id, ())
        if not comments or not limit:
            return ()
        rows = np.array(comments, dtype=np.int64) - 1
        order = np.lexsort((-rows, self.comments["dislikes"][rows] - self.comments["likes"][rows]))
        return (rows[order[:limit]] + 1).tolist()

    def items(self, viewer: Viewer | Reader, post_ids: Sequence[int]) -> tuple[FeedItem, ...]:
        """Return posts as one user sees them: with its votes, and without replies and comments by muted users."""
        return tuple(self._items(viewer, post_ids)[0])

    def _items(self, viewer: Viewer | Reader, post_ids: Sequence[int]) -> tuple[list[FeedItem], list[ShownIds]]:
        """Return posts as one user sees them, and the ids in each.

        Users without votes or muted users in a post share one view of it.
        """
        known = self._looks
        if missing := [post_id for post_id in post_ids if post_id not in known]:
            self.load_views(missing)
            known.update({post_id: Look(self._views[post_id]) for post_id in missing})
        user_id, followed, muted = viewer.user_id, viewer.followed_ids, viewer.muted_ids
        votes, comment_votes = self.votes.of(user_id), self.comment_votes.of(user_id)
        items: list[FeedItem] = []
        ids: list[ShownIds] = []
        filler = self.settings.filler
        for post_id in post_ids:
            look = known[post_id]
            ties = look.author_id in followed, look.writer_id == user_id, votes.get(look.source_id, 0)
            if (
                (look.replies and votes and not votes.keys().isdisjoint(look.replies))
                or (look.comments and comment_votes and not comment_votes.keys().isdisjoint(look.comments))
                or (muted and not muted.isdisjoint(look.ids.users))
            ):
                post = _with_votes(_without_muted(look.post, muted), votes, comment_votes)
                items.append(FeedItem(_with_filler(post, filler, user_id), *ties))
                ids.append(ids_shown_by(post))
                continue
            if filler:
                items.append(FeedItem(_with_filler(look.post, filler, user_id), *ties))
                ids.append(look.ids)
                continue
            item = look.items.get(ties)
            if item is None:
                item = look.items[ties] = FeedItem(look.post, *ties)
            items.append(item)
            ids.append(look.ids)
        return items, ids

    def own_posts(self, user_id: int) -> tuple[OwnPost, ...]:
        """Return a user's latest posts, without plain reposts and hidden ones, newest first."""
        found: list[OwnPost] = []
        posts, post_id = self.posts, self.users.get("latest", user_id)
        while post_id and len(found) < self.settings.own_posts_shown:
            row = post_id - 1
            if posts.get("kind", row) != REPOST and posts.get("reports", row) < self.max_reports:
                created, likes, dislikes, shares = (
                    posts.get(name, row) for name in ("created", "likes", "dislikes", "shares")
                )
                n_answers = len(self._replies.get(post_id, ())) + len(self._comments.get(post_id, ()))
                found.append(OwnPost(post_id, created, likes, dislikes, shares, n_answers))
            post_id = posts.get("previous", row)
        return tuple(found)

    def content_of(self, post_id: int) -> str:
        """Return the text of a post; that of a post in sight is at hand."""
        view = self._views.get(post_id)
        return super().content_of(post_id) if view is None or view.source_id != post_id else view.content

    def groups(self, user_id: int) -> tuple[GroupView, ...]:
        """Return a user's listed groups, with their new messages."""
        oldest = self.step - self.settings.notice_steps
        return tuple(
            GroupView(*row, messages=self.messages(user_id, row[0], MAX_NEW_MESSAGES, oldest, by_others=True))
            for row in self.store.query(OWN_GROUPS, user_id, MAX_LISTED)
        )

    def messages(
        self, user_id: int, group_id: int, size: int, oldest: int = 0, *, by_others: bool = False
    ) -> tuple[MessageView, ...]:
        """Return the latest messages of a group, oldest first, without those by users the reader muted.

        Args:
            user_id: Id of the reader.
            group_id: Id of the group.
            size: Maximum number of messages.
            oldest: Step of the oldest message.
            by_others: Whether to exclude the reader's own messages.
        """
        left_out = user_id if by_others else 0
        rows = self.store.query(MESSAGES, group_id, oldest, left_out, user_id, size)
        return tuple(
            MessageView(message_id, group, author, self.names[author], content, step)
            for message_id, group, author, content, step in reversed(rows)
        )

    def _open_groups(self, user_id: int) -> tuple[GroupView, ...]:
        return tuple(GroupView(*row) for row in self.store.query(OPEN_GROUPS, user_id, MAX_LISTED))

    def _is_hidden(self, notice: Notice, reader: Reader) -> bool:
        """Check whether a notice is from a muted user, about a hidden post, or of a hidden vote."""
        if notice.user_id in reader.muted_ids:
            return True
        if notice.kind in VOTE_NOTICES and not self.settings.show_votes:
            return True
        has_words = self.settings.hide_reports > 0 and notice.kind in ("reply", "quote")
        return has_words and self.posts.get("reports", notice.new_id - 1) >= self.max_reports

    def _products(self) -> tuple[ProductView, ...]:
        return tuple(
            ProductView(*row) for row in self.store.query("SELECT product_name, sales FROM product ORDER BY product_id")
        )

    def facts(self, user_id: int) -> SocialFacts:
        """Return everything a user sees now.

        Raises:
            ConfigError: If the user has no account.
        """
        return self._facts(self.reader(user_id))[0]

    def _facts(self, reader: Reader) -> tuple[SocialFacts, list[ShownIds]]:
        """Return everything a user sees now, and the ids in each post of its feed."""
        user_id, names = reader.user_id, self._actions
        items, ids = self._items(reader, reader.feed)
        notices = self.inbox.of(user_id)
        facts = SocialFacts(
            user_id=user_id,
            step=self.step,
            followers=reader.followers,
            followings=reader.followings,
            feed=tuple(items),
            notices=notices and tuple([notice for notice in notices if not self._is_hidden(notice, reader)]),
            followed=reader.followees[:MAX_LISTED] if "unfollow" in names else (),
            follows=reader.followees[:MAX_FOLLOWED],
            own_posts=self.own_posts(user_id),
            muted=tuple(sorted(reader.muted_ids)[:MAX_LISTED]) if reader.muted_ids and "unmute" in names else (),
            products=self._products() if "purchase_product" in names else (),
            groups=self.groups(user_id) if self._sees_groups else (),
            open_groups=self._open_groups(user_id) if "join_group" in names else (),
        )
        return facts, ids


def _with_votes(post: PostView, votes: Mapping[int, int], comment_votes: Mapping[int, int]) -> PostView:
    """Mark the viewer's votes on replies and comments. Without votes, return the shared post itself."""
    is_any = any(votes.get(reply.reply_id) for reply in post.replies)
    if not is_any and not any(comment_votes.get(comment.reply_id) for comment in post.comments):
        return post
    replies = tuple(replace(reply, vote=votes.get(reply.reply_id, 0)) for reply in post.replies)
    comments = tuple(replace(comment, vote=comment_votes.get(comment.reply_id, 0)) for comment in post.comments)
    return replace(post, replies=replies, comments=comments)


def _with_filler(post: PostView, filler: Sequence[str], user_id: int) -> PostView:
    """Put neutral sentences in the place of what others have written under a post."""
    if not filler:
        return post

    def filled(view: ReplyView) -> ReplyView:
        own = view.author_id == user_id
        return view if own else replace(view, content=filler[view.reply_id % len(filler)])

    return replace(post, replies=tuple(map(filled, post.replies)), comments=tuple(map(filled, post.comments)))


def _without_muted(post: PostView, muted: Set[int]) -> PostView:
    """Remove replies, comments and quotations by muted users."""
    under = post.replies + post.comments + ((post.quoted,) if post.quoted else ())
    if not any(view.author_id in muted for view in under):
        return post
    return replace(
        post,
        quoted=None if post.quoted is not None and post.quoted.author_id in muted else post.quoted,
        replies=tuple(reply for reply in post.replies if reply.author_id not in muted),
        comments=tuple(comment for comment in post.comments if comment.author_id not in muted),
    )
