"""From state to what one user sees of it, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mesa_llm.worlds.social.feeds import KINDS, QUOTE, Viewer
from mesa_llm.worlds.social.inbox import Notice
from mesa_llm.worlds.social.seen import FeedItem, PostSeen, ReplySeen, SocialFacts
from mesa_llm.worlds.social.state import SocialState
from mesa_llm.worlds.social.wording import post_text

LISTED = 10
"""Most followed or muted users that are listed to who can unfollow or unmute."""

FIRST_REPLIES = """
    SELECT post_id, parent_id, user_id, content, step, likes, dislikes FROM post
    WHERE parent_id = ? AND kind = 'reply' ORDER BY post_id LIMIT ?"""

BEST_REPLIES = """
    SELECT post_id, parent_id, user_id, content, step, likes, dislikes FROM post
    WHERE root_id = ? AND kind = 'reply' ORDER BY likes - dislikes DESC, post_id DESC LIMIT ?"""

BEST_COMMENTS = """
    SELECT comment_id, post_id, user_id, content, step, likes, dislikes FROM comment
    WHERE post_id = ? ORDER BY likes - dislikes DESC, comment_id DESC LIMIT ?"""


class View(SocialState):
    """Builds what users see."""

    def post_seen(self, post_id: int) -> PostSeen:
        """Give a post as everyone sees it."""
        known = self.shown.get(post_id)
        if known is None:
            source_id = self.source_id(post_id)
            known = self._post(post_id, source_id, quoted=self._quoted(source_id))
            limit = self.settings.replies_shown if self.settings.threading else 0
            replies = FIRST_REPLIES if self.is_original else BEST_REPLIES
            known = replace(
                known,
                replies=self._replies(self.store.rows(replies, source_id, limit)),
                comments=self._replies(self.store.rows(BEST_COMMENTS, source_id, limit)) if self.n_comments else (),
            )
            self.shown[post_id] = known
        return known

    def _quoted(self, post_id: int) -> PostSeen | None:
        if self.kind_of(post_id) != QUOTE:
            return None
        parent = self.store.first("SELECT parent_id FROM post WHERE post_id = ?", post_id)
        quoted = self.source_id(int(parent[0])) if parent else post_id
        return self._post(quoted, quoted)

    def _post(self, post_id: int, source_id: int, quoted: PostSeen | None = None) -> PostSeen:
        author, writer = self.author_of(post_id), self.author_of(source_id)
        content = self.store.first("SELECT content FROM post WHERE post_id = ?", source_id)
        return PostSeen(
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

    def _replies(self, rows: list[tuple[Any, ...]]) -> tuple[ReplySeen, ...]:
        return tuple(ReplySeen(row[0], row[1], row[2], self.names[row[2]], *row[3:]) for row in rows)

    def items(self, viewer: Viewer, post_ids: Sequence[int]) -> tuple[FeedItem, ...]:
        """Give posts as one user sees them: with its votes, without what muted users wrote under them."""
        votes = self._votes(viewer.user_id, [self.source_id(post_id) for post_id in post_ids])
        items: list[FeedItem] = []
        for post_id in post_ids:
            post = _without_muted(self.post_seen(post_id), viewer)
            followed = bool(viewer.follows[post.author_id])
            is_own = post.source_author_id == viewer.user_id
            items.append(FeedItem(post, followed, is_own, votes.get(post.source_id, 0)))
        return tuple(items)

    def _votes(self, user_id: int, post_ids: list[int]) -> dict[int, int]:
        marks = ", ".join("?" * len(post_ids))
        query = f"SELECT post_id, value FROM post_vote WHERE user_id = ? AND post_id IN ({marks})"
        return {int(post_id): int(value) for post_id, value in self.store.rows(query, user_id, *post_ids)}

    def text_of(self, items: Sequence[FeedItem]) -> str:
        """Write posts as one user sees them."""
        texts: list[str] = []
        for item in items:
            post = item.post
            key = (post.post_id, item.is_followed, item.is_own, item.vote)
            is_shared = post is self.shown.get(post.post_id)
            text = self.texts.get(key) if is_shared else None
            if text is None:
                text = post_text(item, self.step, self.settings)
                if is_shared:
                    self.texts[key] = text
            texts.append(text)
        return "\n".join(texts) or "There is nothing in your feed yet."

    def facts(self, user_id: int) -> SocialFacts:
        """Give all that a user sees now.

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
            followed=tuple(ties.followed[:LISTED].tolist()) if "unfollow" in names else (),
            muted=tuple(ties.muted[:LISTED].tolist()) if "unmute" in names else (),
        )


def _is_hidden(notice: Notice, viewer: Viewer) -> bool:
    return viewer.hidden is not None and bool(viewer.hidden[notice.user_id])


def _without_muted(post: PostSeen, viewer: Viewer) -> PostSeen:
    """Leave out what muted users wrote under a post, or are quoted with in it."""
    hidden = viewer.hidden
    if hidden is None:
        return post
    under = post.replies + post.comments + ((post.quoted,) if post.quoted else ())
    if not any(hidden[seen.author_id] for seen in under):
        return post
    return replace(
        post,
        quoted=None if post.quoted is not None and hidden[post.quoted.author_id] else post.quoted,
        replies=tuple(reply for reply in post.replies if not hidden[reply.author_id]),
        comments=tuple(comment for comment in post.comments if not hidden[comment.author_id]),
    )
