"""Publishing: posts, replies, comments, reposts and quotes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mesa_llm.errors import ToolError
from mesa_llm.tools import action
from mesa_llm.worlds.social.feeds import ORIGINAL, QUOTE, REPLY, REPOST
from mesa_llm.worlds.social.inbox import Notice
from mesa_llm.worlds.social.state import SocialState

PostId = Annotated[int, Field(gt=0)]
Text = Annotated[str, Field(min_length=1, max_length=5000)]


class Posting(SocialState):
    """What puts something new before others."""

    @action
    def create_post(self, actor: int, content: Text) -> str:
        """Publish a post of your own.

        Args:
            content: The words of the post.
        """
        self.acting(actor)
        post_id = self.add_post(actor, ORIGINAL, self.cleaned(content, "post"))
        return f"You published post {post_id}."

    @action
    def reply(self, actor: int, post_id: PostId, content: Text) -> str:
        """Reply to a post or to another reply; everyone can read it.

        Args:
            post_id: Number of the post or reply that you answer.
            content: The words of your reply.
        """
        self.acting(actor)
        parent_id = self.source_id(post_id)
        words = self.cleaned(content, "reply")
        reply_id = self.add_post(actor, REPLY, words, parent_id)
        self.tell_author(parent_id, "reply", actor, reply_id, words)
        return f"You replied to post {parent_id}; your reply is post {reply_id}."

    @action
    def create_comment(self, actor: int, post_id: PostId, content: Text) -> str:
        """Write a comment under a post.

        Args:
            post_id: Number of the post.
            content: The words of your comment.
        """
        self.acting(actor)
        target = self.source_id(post_id)
        words = self.cleaned(content, "comment")
        self.n_comments += 1
        self.store.write(
            "INSERT INTO comment (comment_id, post_id, user_id, content, step) VALUES (?, ?, ?, ?, ?)",
            *(self.n_comments, target, actor, words, self.step),
        )
        self.words_changed()
        self.tell_author(target, "comment", actor, self.n_comments, words)
        return f"You commented on post {target}; it is comment {self.n_comments}."

    @action
    def repost(self, actor: int, post_id: PostId) -> str:
        """Pass a post on, as it is, to those who follow you.

        Args:
            post_id: Number of the post.
        """
        self.acting(actor)
        source_id = self.source_id(post_id)
        if self.is_original:
            self.store.write(
                "INSERT INTO bare_repost (user_id, post_id, step) VALUES (?, ?, ?)",
                actor,
                source_id,
                self.step,
            )
        else:
            self._check_repost(actor, source_id)
            repost_id = self.add_post(actor, REPOST, "", post_id)
            self.tell_author(source_id, "repost", actor, repost_id)
            if post_id != source_id:
                self.inbox.tell(self.author_of(post_id), Notice("repost", actor, self.step, post_id, repost_id))
        self.count_on_post(source_id, "shares", 1)
        return f"You reposted post {post_id}."

    def _check_repost(self, actor: int, source_id: int) -> None:
        if self.author_of(source_id) == actor and not self.settings.self_rating:
            raise ToolError(f"Post {source_id} is your own; repost what others wrote.")
        earlier = "SELECT 1 FROM post WHERE user_id = ? AND source_id = ? AND kind = 'repost'"
        if self.store.first(earlier, actor, source_id):
            raise ToolError(f"You have reposted post {source_id} already.")

    @action
    def quote_post(self, actor: int, post_id: PostId, content: Text) -> str:
        """Pass a post on to those who follow you, with words of your own above it.

        Args:
            post_id: Number of the post.
            content: What you say about it.
        """
        self.acting(actor)
        source_id = self.source_id(post_id)
        words = self.cleaned(content, "quote")
        quote_id = self.add_post(actor, QUOTE, words, post_id)
        self.count_on_post(source_id, "shares", 1)
        self.tell_author(source_id, "quote", actor, quote_id, words)
        return f"You quoted post {source_id} in post {quote_id}."
