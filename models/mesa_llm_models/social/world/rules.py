"""Rules of a social world: the actions of its users."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mesa_llm.errors import ToolError
from mesa_llm.records import ActionResult
from mesa_llm.text import quoted
from mesa_llm.tools.tool import action
from mesa_llm_models.social.world.accounts import SocialAccounts, UserId
from mesa_llm_models.social.world.post_index import ORIGINAL, QUOTE, REPLY, REPOST
from mesa_llm_models.social.world.state import MAX_TEXT, Notice, pair

PostId = Annotated[int, Field(gt=0)]
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]

CommentId = Annotated[int, Field(gt=0)]
MAX_REASON = 500
"""Maximum number of characters of the reason in a report."""

Reason = Annotated[str, Field(min_length=1, max_length=MAX_REASON)]

VERBS = {1: "like", -1: "dislike"}
UNDO_POST = {1: "unlike_post", -1: "undo_dislike_post"}
UNDO_COMMENT = {1: "unlike_comment", -1: "undo_dislike_comment"}


class SocialRules(SocialAccounts):
    """Follows and mutes; posts, replies, comments, reposts and quotes; votes and reports.

    A user has one vote on each post or comment, and has to withdraw it to change it. Differences in the original are in
    `rules_original`.
    """

    follows_anybody = False
    """Whether users may follow anyone they see, including repeatedly and themselves."""

    # follows, mutes

    @action(options={"user_id": "not_followed"})
    def follow(self, agent_id: int, user_id: UserId) -> ActionResult:
        """Follow a user, to see more of what they post.

        Args:
            user_id: Number of the user, as shown after a name.
        """
        self.acting(agent_id)
        self._check_followee(agent_id, user_id)
        if not self.follows.add(agent_id, user_id):
            return self._follow_again(user_id)
        self.store.add("follow", agent_id, user_id, self.step)
        self._change_counts(agent_id, user_id, 1)
        self.trace(agent_id, "follow", followee_id=user_id)
        if user_id in self.names:
            self.inbox.add(user_id, Notice("follow", agent_id, self.step))
        text = self.wording.result_text("follow", name=self.names.get(user_id, "user"), user_id=user_id)
        return ActionResult(text, user_id=user_id, is_new=True)

    def _check_followee(self, agent_id: int, user_id: int) -> None:
        self.other_user(agent_id, user_id, "follow")

    def _follow_again(self, user_id: int) -> ActionResult:
        raise ToolError(self.wording.reason_text("followed", name=self.names[user_id], user_id=user_id))

    @action(options={"user_id": "followed"})
    def unfollow(self, agent_id: int, user_id: UserId) -> ActionResult:
        """Stop following a user.

        Args:
            user_id: Number of a user you follow.
        """
        self.acting(agent_id)
        if not self.follows.remove(agent_id, user_id):
            raise ToolError(self.wording.reason_text("not_followed", user_id=user_id))
        if self._unwritten_follows:  # it may be among those that are written late
            self._undone_follows.append(pair(agent_id, user_id))
        self.store.remove("follow", agent_id, user_id)
        self.trace(agent_id, "unfollow", followee_id=user_id)
        self._change_counts(agent_id, user_id, -1)
        self.inbox.take_back(user_id, "follow", agent_id)
        return ActionResult(
            self.wording.result_text("unfollow", name=self.names.get(user_id, "user"), user_id=user_id),
            user_id=user_id,
        )

    def _change_counts(self, follower: int, followee: int, change: int) -> None:
        self.users.add("followings", follower, change)
        self._unwritten_users.add(follower)
        if followee in self.names:
            self.users.add("followers", followee, change)
            self._unwritten_users.add(followee)
        self.feeds_changed()

    @action(options={"user_id": "not_muted"})
    def mute(self, agent_id: int, user_id: UserId) -> ActionResult:
        """Mute a user: you no longer see what they post and write.

        Args:
            user_id: Number of the user, as shown after a name.
        """
        self.other_user(self.acting(agent_id), user_id, "mute")
        muted = self.mutes.setdefault(agent_id, set())
        if user_id in muted:
            raise ToolError(self.wording.reason_text("muted", name=self.names[user_id], user_id=user_id))
        muted.add(user_id)
        self.store.add("mute", agent_id, user_id, self.step)
        self.trace(agent_id, "mute", mutee_id=user_id)
        self.feeds_changed()
        return ActionResult(
            self.wording.result_text("mute", name=self.names[user_id], user_id=user_id), user_id=user_id
        )

    @action(options={"user_id": "muted"})
    def unmute(self, agent_id: int, user_id: UserId) -> ActionResult:
        """Stop muting a user: you see again what they post.

        Args:
            user_id: Number of a user you muted.
        """
        self.acting(agent_id)
        muted = self.mutes.get(agent_id, set())
        if user_id not in muted:
            raise ToolError(self.wording.reason_text("not_muted", user_id=user_id))
        muted.remove(user_id)
        if not muted:
            del self.mutes[agent_id]
        self.store.remove("mute", agent_id, user_id)
        self.trace(agent_id, "unmute", mutee_id=user_id)
        self.feeds_changed()
        return ActionResult(
            self.wording.result_text("unmute", name=self.names.get(user_id, "user"), user_id=user_id), user_id=user_id
        )

    # posts and shares

    @action
    def create_post(self, agent_id: int, content: Text) -> ActionResult:
        """Publish a post of your own.

        Args:
            content: The words of the post.
        """
        self.acting(agent_id)
        text = self.cleaned(content, "post")
        post_id = self.add_post(agent_id, ORIGINAL, text)
        self.trace(agent_id, "create_post", content=text, post_id=post_id)
        return ActionResult(
            self.wording.result_text("create_post", post_id=post_id, content=quoted(text)), post_id=post_id
        )

    @action(options={"post_id": "posts"})
    def reply(self, agent_id: int, post_id: PostId, content: Text) -> ActionResult:
        """Reply to a post or to another reply; everyone can read it.

        Args:
            post_id: Number of the post or reply that you answer.
            content: The words of your reply.
        """
        parent_id = self._shown_post(agent_id, post_id)
        text = self.cleaned(content, "reply")
        reply_id = self.add_post(agent_id, REPLY, text, parent_id)
        self.notify_author(parent_id, "reply", agent_id, reply_id, text)
        self.trace(agent_id, "reply", content=text, post_id=parent_id, new_post_id=reply_id)
        told = self.told(agent_id, parent_id)
        reported = self.wording.result_text("reply", post=told, content=quoted(text), reply_id=reply_id)
        return ActionResult(reported, post_id=reply_id, parent_id=parent_id)

    @action(options={"post_id": "posts"})
    def create_comment(self, agent_id: int, post_id: PostId, content: Text) -> ActionResult:
        """Write a comment under a post.

        Args:
            post_id: Number of the post.
            content: The words of your comment.
        """
        target = self._shown_post(agent_id, post_id)
        text = self.cleaned(content, "comment")
        comment_id = self.comments.append(target, agent_id, self.step, 0, 0) + 1
        self.store.add("comment", comment_id, target, agent_id, text, self.step, 0, 0)
        self._comments.setdefault(target, []).append(comment_id)
        self.look_changed(target)
        self.notify_author(target, "comment", agent_id, comment_id, text)
        self.trace(agent_id, "create_comment", content=text, comment_id=comment_id)
        told = self.told(agent_id, target)
        reported = self.wording.result_text("create_comment", post=told, content=quoted(text), comment_id=comment_id)
        return ActionResult(reported, comment_id=comment_id, parent_id=target)

    @action(options={"post_id": "posts"}, allowed={"post_id": "may_repost"})
    def repost(self, agent_id: int, post_id: PostId) -> ActionResult:
        """Pass a post on, as it is, to those who follow you.

        Args:
            post_id: Number of the post.
        """
        source_id = self._shown_post(agent_id, post_id)
        repost_id = self._pass_on(agent_id, post_id, source_id)
        self.count_on_post(source_id, "shares", 1)
        text = self.wording.result_text("repost", post=self.told(agent_id, source_id))
        return ActionResult(text, post_id=repost_id, source_id=source_id)

    def may_repost(self, agent_id: int, post_id: int) -> bool:
        """Check whether a user may repost a post it sees: one by others that it has not reposted yet."""
        source_id = self.source_id(post_id)
        return self._may_judge(agent_id, self.author_of(source_id)) and pair(agent_id, source_id) not in self._reposted

    def _may_judge(self, agent_id: int, author: int) -> bool:
        """Check whether a user may rate and repost what somebody wrote."""
        return author != agent_id or self.settings.self_rating

    def _pass_on(self, agent_id: int, post_id: int, source_id: int) -> int | None:
        """Publish a repost. Return its id.

        Args:
            agent_id: Mesa `unique_id` of the user who reposts.
            post_id: The post or repost that the user saw.
            source_id: The post with the original text.

        Raises:
            ToolError: If the text is the user's own, or it has already reposted it.
        """
        if not self._may_judge(agent_id, self.author_of(source_id)):
            raise ToolError(self.wording.reason_text("own_repost", source_id=source_id))
        if pair(agent_id, source_id) in self._reposted:
            raise ToolError(self.wording.reason_text("reposted", source_id=source_id))
        repost_id = self.add_post(agent_id, REPOST, "", post_id)
        self.notify_author(source_id, "repost", agent_id, repost_id)
        if post_id != source_id:
            self.inbox.add(self.author_of(post_id), Notice("repost", agent_id, self.step, post_id, repost_id))
        self._reposted.add(pair(agent_id, source_id))
        self.trace(agent_id, "repost", reposted_id=post_id, new_post_id=repost_id)
        return repost_id

    @action(options={"post_id": "posts"})
    def quote_post(self, agent_id: int, post_id: PostId, content: Text) -> ActionResult:
        """Pass a post on to those who follow you, with words of your own above it.

        Args:
            post_id: Number of the post.
            content: What you say about it.
        """
        source_id = self._shown_post(agent_id, post_id)
        text = self.cleaned(content, "quote")
        quote_id = self.add_post(agent_id, QUOTE, text, post_id)
        self.count_on_post(source_id, "shares", 1)
        self.notify_author(source_id, "quote", agent_id, quote_id, text)
        self.trace(agent_id, "quote_post", quoted_id=post_id, new_post_id=quote_id, quote_content=text)
        return ActionResult(
            self.wording.result_text(
                "quote_post", post=self.told(agent_id, source_id), content=quoted(text), quote_id=quote_id
            ),
            post_id=quote_id,
            source_id=source_id,
        )

    # votes and reports

    @action(options={"post_id": "posts"}, allowed={"post_id": "may_vote"})
    def vote(self, agent_id: int, post_id: PostId, value: Literal[1, -1] = 1) -> ActionResult:
        """Vote a post or reply up or down, once.

        Args:
            post_id: Number of the post or reply.
            value: 1 for up, -1 for down.
        """
        return self._vote(agent_id, post_id, value)

    def may_vote(self, agent_id: int, post_id: int) -> bool:
        """Check whether a user may vote on a post it sees."""
        return self.may_rate(agent_id, post_id)

    def may_rate(self, agent_id: int, post_id: int) -> bool:
        """Check whether a user may like or dislike a post it sees: one by others that it has not rated yet."""
        target = self.source_id(post_id)
        return self._may_judge(agent_id, self.author_of(target)) and target not in self.votes.of(agent_id)

    def may_rate_comment(self, agent_id: int, comment_id: int) -> bool:
        """Check whether a user may like or dislike a comment it sees: one by others that it has not rated yet."""
        author, _ = self._comment(comment_id)
        return self._may_judge(agent_id, author) and comment_id not in self.comment_votes.of(agent_id)

    def _vote(self, agent_id: int, post_id: int, value: float) -> ActionResult:
        vote = 1 if value > 0 else -1
        source_id = self._rate_post(agent_id, post_id, vote)
        direction = "up" if value > 0 else "down"
        text = self.wording.result_text("vote", post=self.told(agent_id, source_id), direction=direction)
        return ActionResult(text, source_id=source_id, vote=vote)

    @action(options={"post_id": "posts"}, allowed={"post_id": "may_rate"})
    def like_post(self, agent_id: int, post_id: PostId) -> ActionResult:
        """Like a post.

        Args:
            post_id: Number of the post.
        """
        source_id = self._rate_post(agent_id, post_id, 1)
        text = self.wording.result_text("like_post", post=self.told(agent_id, source_id))
        return ActionResult(text, source_id=source_id, vote=1)

    @action(options={"post_id": "liked_posts"})
    def unlike_post(self, agent_id: int, post_id: PostId) -> ActionResult:
        """Take back your like of a post.

        Args:
            post_id: Number of a post you like.
        """
        source_id = self._undo_post(agent_id, post_id, 1)
        text = self.wording.result_text("unlike_post", post=self.told(agent_id, source_id))
        return ActionResult(text, source_id=source_id, vote=0)

    @action(options={"post_id": "posts"}, allowed={"post_id": "may_rate"})
    def dislike_post(self, agent_id: int, post_id: PostId) -> ActionResult:
        """Dislike a post.

        Args:
            post_id: Number of the post.
        """
        source_id = self._rate_post(agent_id, post_id, -1)
        text = self.wording.result_text("dislike_post", post=self.told(agent_id, source_id))
        return ActionResult(text, source_id=source_id, vote=-1)

    @action(options={"post_id": "disliked_posts"})
    def undo_dislike_post(self, agent_id: int, post_id: PostId) -> ActionResult:
        """Take back your dislike of a post.

        Args:
            post_id: Number of a post you dislike.
        """
        source_id = self._undo_post(agent_id, post_id, -1)
        text = self.wording.result_text("undo_dislike_post", post=self.told(agent_id, source_id))
        return ActionResult(text, source_id=source_id, vote=0)

    @action(options={"comment_id": "comments"}, allowed={"comment_id": "may_rate_comment"})
    def like_comment(self, agent_id: int, comment_id: CommentId) -> ActionResult:
        """Like a comment.

        Args:
            comment_id: Number of the comment.
        """
        self._rate_comment(agent_id, comment_id, 1)
        text = self.wording.result_text("like_comment", comment=self.comment_told(agent_id, comment_id))
        return ActionResult(text, comment_id=comment_id, vote=1)

    @action(options={"comment_id": "liked_comments"})
    def unlike_comment(self, agent_id: int, comment_id: CommentId) -> ActionResult:
        """Take back your like of a comment.

        Args:
            comment_id: Number of a comment you like.
        """
        self._undo_comment(agent_id, comment_id, 1)
        text = self.wording.result_text("unlike_comment", comment=self.comment_told(agent_id, comment_id))
        return ActionResult(text, comment_id=comment_id, vote=0)

    @action(options={"comment_id": "comments"}, allowed={"comment_id": "may_rate_comment"})
    def dislike_comment(self, agent_id: int, comment_id: CommentId) -> ActionResult:
        """Dislike a comment.

        Args:
            comment_id: Number of the comment.
        """
        self._rate_comment(agent_id, comment_id, -1)
        text = self.wording.result_text("dislike_comment", comment=self.comment_told(agent_id, comment_id))
        return ActionResult(text, comment_id=comment_id, vote=-1)

    @action(options={"comment_id": "disliked_comments"})
    def undo_dislike_comment(self, agent_id: int, comment_id: CommentId) -> ActionResult:
        """Take back your dislike of a comment.

        Args:
            comment_id: Number of a comment you dislike.
        """
        self._undo_comment(agent_id, comment_id, -1)
        text = self.wording.result_text("undo_dislike_comment", comment=self.comment_told(agent_id, comment_id))
        return ActionResult(text, comment_id=comment_id, vote=0)

    @action(options={"post_id": "posts"}, allowed={"post_id": "may_report"})
    def report_post(self, agent_id: int, post_id: PostId, reason: Reason) -> ActionResult:
        """Report a post that breaks the rules; readers are warned of posts that were reported several times.

        Args:
            post_id: Number of the post.
            reason: What is wrong with it.
        """
        target = self._shown_post(agent_id, post_id)
        self._check_reported(agent_id, target)
        text = self.cleaned(reason, "reason", MAX_REASON)
        if pair(agent_id, target) in self._reported:
            raise ToolError(self.wording.reason_text("reported", target=target))
        self._reported.add(pair(agent_id, target))
        self.store.add("report", agent_id, target, text, self.step)
        self.trace(agent_id, "report_post", post_id=target, report_reason=text)
        self.count_on_post(target, "reports", 1)
        return ActionResult(self.wording.result_text("report_post", post=self.told(agent_id, target)), source_id=target)

    def may_report(self, agent_id: int, post_id: int) -> bool:
        """Check whether a user may report a post it sees: one by others that it has not reported yet."""
        target = self.source_id(post_id)
        return self._may_accuse(agent_id, target) and pair(agent_id, target) not in self._reported

    def _may_accuse(self, agent_id: int, post_id: int) -> bool:
        return self.author_of(post_id) != agent_id

    def _check_reported(self, agent_id: int, post_id: int) -> None:
        if not self._may_accuse(agent_id, post_id):
            raise ToolError(self.wording.reason_text("own_report", post_id=post_id))

    def _shown_post(self, agent_id: int, post_id: int) -> int:
        """Return the post whose content a post has, if the reader may see it.

        The reader's own actions, such as votes, can always be undone.

        Raises:
            ConfigError: If the agent has no account.
            ToolError: If the post does not exist, the agent muted its publisher or author, or it is hidden by reports.
        """
        self.acting(agent_id)
        source_id = self.source_id(post_id)
        if muted := self.mutes.get(agent_id):
            for author in (self.author_of(post_id), self.author_of(source_id)):
                if author in muted:
                    raise ToolError(self.wording.reason_text("muted_author", post_id=post_id, author=author))
        if self.settings.hide_reports and self.posts.get("reports", source_id - 1) >= self.max_reports:
            raise ToolError(self.wording.reason_text("hidden_post", post_id=post_id))
        return source_id

    def _check_free(self, kind: Literal["post", "comment"], agent_id: int, target: int, value: int) -> None:
        """Reject a user's second vote on the same post or comment."""
        earlier = (self.votes if kind == "post" else self.comment_votes).of(agent_id).get(target)
        if earlier is None:
            return
        if earlier == value:
            raise ToolError(self.wording.reason_text("voted_alike", verb=VERBS[value], kind=kind, target=target))
        undo = (UNDO_POST if kind == "post" else UNDO_COMMENT)[earlier]
        refusal = "voted_undoable" if undo in self.settings.actions else "voted_for_good"
        raise ToolError(self.wording.reason_text(refusal, verb=VERBS[earlier], kind=kind, target=target, undo=undo))

    def _rate_post(self, agent_id: int, post_id: int, value: int) -> int:
        target = self._shown_post(agent_id, post_id)
        if not self._may_judge(agent_id, self.author_of(target)):
            raise ToolError(self.wording.reason_text("own_post", target=target))
        self._check_free("post", agent_id, target, value)
        self.votes.cast(agent_id, target, value)
        self.store.add(VERBS[value], agent_id, target, self.step)
        self.count_on_post(target, f"{VERBS[value]}s", 1)
        self.trace(agent_id, f"{VERBS[value]}_post", post_id=target)
        if value > 0:
            self.notify_author(target, "like", agent_id)
        return target

    def _undo_post(self, agent_id: int, post_id: int, value: int) -> int:
        self.acting(agent_id)
        target = self.source_id(post_id)
        if self.votes.of(agent_id).get(target) != value:
            raise ToolError(self.wording.reason_text("not_voted", verb=VERBS[value], target=target))
        self.votes.withdraw(agent_id, target)
        self.store.remove(VERBS[value], agent_id, target)
        self.trace(agent_id, UNDO_POST[value], post_id=target)
        self.count_on_post(target, f"{VERBS[value]}s", -1)
        if value > 0:
            self.inbox.take_back(self.author_of(target), "like", agent_id, target)
        return target

    def _comment(self, comment_id: int) -> tuple[int, int]:
        """Return a comment's author and post."""
        if not 0 < comment_id <= len(self.comments):
            raise ToolError(self.wording.reason_text("no_comment", comment_id=comment_id))
        return self.comments.get("author", comment_id - 1), self.comments.get("post", comment_id - 1)

    def _rate_comment(self, agent_id: int, comment_id: int, value: int) -> None:
        author, post_id = self._comment(comment_id)
        self._shown_post(agent_id, post_id)
        if self._hides_comment(agent_id, author):
            raise ToolError(self.wording.reason_text("muted_commenter", comment_id=comment_id, author=author))
        if not self._may_judge(agent_id, author):
            raise ToolError(self.wording.reason_text("own_comment", comment_id=comment_id))
        self._check_free("comment", agent_id, comment_id, value)
        self.comment_votes.cast(agent_id, comment_id, value)
        self.store.add(f"comment_{VERBS[value]}", agent_id, comment_id, self.step)
        self.count_on_comment(comment_id, f"{VERBS[value]}s", 1)
        self.trace(agent_id, f"{VERBS[value]}_comment", comment_id=comment_id)
        if value > 0:
            self.inbox.add(author, Notice("comment_like", agent_id, self.step, post_id, comment_id))

    def _hides_comment(self, agent_id: int, author: int) -> bool:
        return author in self.mutes.get(agent_id, ())

    def _undo_comment(self, agent_id: int, comment_id: int, value: int) -> None:
        self.acting(agent_id)
        author, post_id = self._comment(comment_id)
        if self.comment_votes.of(agent_id).get(comment_id) != value:
            raise ToolError(self.wording.reason_text("not_voted_comment", verb=VERBS[value], comment_id=comment_id))
        self.comment_votes.withdraw(agent_id, comment_id)
        self.store.remove(f"comment_{VERBS[value]}", agent_id, comment_id)
        self.trace(agent_id, UNDO_COMMENT[value], comment_id=comment_id)
        self.count_on_comment(comment_id, f"{VERBS[value]}s", -1)
        if value > 0:
            self.inbox.take_back(author, "comment_like", agent_id, post_id, comment_id)
