"""SimSwarm's rules of a social world, with their defects: differences from `rules`, `views` and `measures`."""

from __future__ import annotations

from collections.abc import Sequence

from mesa_llm.errors import ToolError
from mesa_llm.records import ActionResult
from mesa_llm_models.social.world.csr import IntArray
from mesa_llm_models.social.world.measures import SocialMeasures
from mesa_llm_models.social.world.rules import VERBS, SocialRules
from mesa_llm_models.social.world.state import MAX_TEXT
from mesa_llm_models.social.world.views import SocialView

BARE_REPOSTS = "SELECT user_id, created_at, repost_id FROM bare_repost WHERE post_id = ?"
"""Reposts that are only counted."""


class OriginalSocialRules(SocialRules, SocialView):
    """Rules under which a repost is only counted, and nearly nothing is refused; see `SocialSettings.rules`."""

    follows_anybody = True

    def _check_followee(self, agent_id: int, user_id: int) -> None:
        """Allow users to follow themselves, and users that do not exist."""

    def _follow_again(self, user_id: int) -> ActionResult:
        return ActionResult(self.wording.result_text("still_follow", user_id=user_id), user_id=user_id, is_new=False)

    def _pass_on(self, agent_id: int, post_id: int, source_id: int) -> int | None:
        """Count an invisible repost of anything, without limit."""
        self.store.add("bare_repost", None, agent_id, source_id, self.step)
        self._join_cascade(source_id, agent_id, True)
        self.trace(agent_id, "repost", reposted_id=source_id)
        return None

    def _vote(self, agent_id: int, post_id: int, value: float) -> ActionResult:
        """Record the voter first, who stays recorded even if the value is invalid."""
        self.acting(agent_id)
        self.post_row(post_id)
        if post_id in self.votes.of(agent_id):
            raise ToolError(self.wording.reason_text("voted", post_id=post_id))
        self.votes.cast(agent_id, post_id, 0)
        self.store.add("void_vote", agent_id, post_id, self.step)
        vote = 1 if value > 0 else -1
        self.votes.cast(agent_id, post_id, vote)
        self.store.remove("void_vote", agent_id, post_id)
        self.store.add(VERBS[vote], agent_id, post_id, self.step)
        self.trace(agent_id, "vote", post_id=post_id, value=vote)
        self.count_on_post(post_id, f"{VERBS[vote]}s", 1)
        text = self.wording.result_text("original_vote", post=self.told(agent_id, post_id))
        return ActionResult(text, source_id=post_id, vote=vote)

    def may_vote(self, agent_id: int, post_id: int) -> bool:
        """Check whether a user has not voted on a post; on its own it may."""
        return post_id not in self.votes.of(agent_id)

    def may_repost(self, agent_id: int, post_id: int) -> bool:
        """Allow any repost."""
        return True

    def _may_accuse(self, agent_id: int, post_id: int) -> bool:
        """Allow users to report their own posts."""
        return True

    def _shown_post(self, agent_id: int, post_id: int) -> int:
        """Return the post whose content a post has, regardless of mutes and reports."""
        self.acting(agent_id)
        return self.source_id(post_id)

    def _hides_comment(self, agent_id: int, author: int) -> bool:
        return False

    def cleaned(self, content: str, name: str, max_characters: int = MAX_TEXT) -> str:
        """Return a text unchanged, even if empty."""
        return content

    def _shown_under(self, reply_id: int) -> int:
        """Return the post that shows a reply: the one it answers, even if that is a reply."""
        return self.posts.get("parent", reply_id - 1)

    def _best_first(self, rows: IntArray) -> IntArray:
        """Return replies in order of writing."""
        return rows


class OriginalMeasures(SocialMeasures):
    """Queries that also count invisible reposts."""

    def _passed_on(self, root_id: int, kinds: Sequence[str]) -> list[tuple[int, int, int, int]]:
        """Add the reposts that are only counted to the shares of a cascade."""
        shares = super()._passed_on(root_id, kinds)
        if "repost" in kinds:
            author = self.world.author_of(root_id)
            shares += [
                (user, author, step, number) for user, step, number in self.world.store.rows(BARE_REPOSTS, root_id)
            ]
        return sorted(shares, key=lambda share: (share[2], share[3]))
