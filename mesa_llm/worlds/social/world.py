"""The social world: users, posts and follows, with the rules by which they meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from mesa_llm.errors import ConfigError
from mesa_llm.records import Event, Observation
from mesa_llm.text import quoted
from mesa_llm.tools import marked_methods
from mesa_llm.world import DoNothing, Draws
from mesa_llm.worlds.social.accounts import Accounts
from mesa_llm.worlds.social.feeds import REPOST
from mesa_llm.worlds.social.inbox import Notice
from mesa_llm.worlds.social.measures import Measures
from mesa_llm.worlds.social.posting import Posting
from mesa_llm.worlds.social.rating import Rating
from mesa_llm.worlds.social.reading import Reading
from mesa_llm.worlds.social.seen import SocialFacts
from mesa_llm.worlds.social.settings import PRESETS, SocialSettings
from mesa_llm.worlds.social.wording import (
    NAMED,
    NOTICE_CHARACTERS,
    grouped,
    news_lines,
    observation_text,
)

TAKES = {
    **dict.fromkeys(("reply", "create_comment", "repost", "quote_post", "vote", "report_post"), "post_id"),
    **dict.fromkeys(("like_post", "unlike_post", "dislike_post", "undo_dislike_post"), "post_id"),
    **dict.fromkeys(("like_comment", "unlike_comment", "dislike_comment", "undo_dislike_comment"), "comment_id"),
    **dict.fromkeys(("follow", "unfollow", "mute", "unmute"), "user_id"),
}
"""Action → the id that it takes."""

SHOW_MORE = frozenset(("search_posts", "search_user", "trend"))
"""Tools that show ids which no observation shows."""


def _key(action: str) -> str:
    """Name the option of an action: that of its argument, but for `follow`, which does not take all users."""
    return "follow.user_id" if action == "follow" else TAKES[action]


class SocialWorld(Posting, Rating, Accounts, Reading, Measures, DoNothing):
    """Posts, feeds and follows, for any number of users.

    Agents need an account (`sign_up`, `sign_up_many`) before they look or act; a user's id is its agent's
    `unique_id`. What an agent may do is named in `Observation.tools`: the actions of the settings,
    without those that need an id while none is shown.
    """

    def __init__(
        self,
        settings: SocialSettings | str = "simswarm",
        *,
        name: str = "social",
        rng: Draws | int | None = None,
        path: str | Path | None = None,
        **changes: Any,
    ) -> None:
        """Start without users and posts, in step 0.

        Args:
            settings: Parameters, or the name of a preset: `simswarm`, `x`, `reddit`.
            name: Name of the world, unique in a model.
            rng: Source of random draws, or a seed.
            path: SQLite file to write; None: in memory. The file of an earlier run is emptied.
            **changes: Parameters that differ from the settings, by name (see `SocialSettings`).

        Raises:
            ConfigError: If a preset, parameter or action is unknown, or the file holds something else.
        """
        chosen = chosen_settings(settings, changes)
        offered = marked_methods(type(self))
        for action in chosen.actions:
            if action not in offered:
                raise ConfigError(f"a social world has no action {action!r}; it has {', '.join(offered)}")
        super().__init__(chosen, name=name, rng=rng, path=path)

    def observe(self, agent: int) -> Observation:
        """Show a user its standing, its news and its feed; reads only.

        Raises:
            ConfigError: If the agent has no account.
        """
        facts = self.facts(agent)
        news = grouped(facts.notices)
        lines = news_lines(news, self.names, self.settings.notices_shown)
        ids, actions = self.ids(facts), self.settings.actions
        shows_more = not SHOW_MORE.isdisjoint(actions)  # what a search finds can be acted on after it
        return Observation(
            text=observation_text(facts, lines, self.text_of(facts.feed), self.names),
            tools=tuple(name for name in actions if shows_more or name not in TAKES or _key(name) in ids),
            options={_key(name): ids.get(_key(name), ()) for name in actions if name in TAKES} if shows_more else ids,
            max_actions=self.settings.max_actions,
            facts=facts,
        )

    def ids(self, facts: SocialFacts) -> dict[str, tuple[int, ...]]:
        """Return the ids that a user is shown, as options of the actions that take them.

        Args:
            facts: What the user sees.
        """
        shown = shown_ids(facts, grouped(facts.notices)[: self.settings.notices_shown])
        options = {_key(name): shown[TAKES[name]] for name in self.settings.actions if name in TAKES}
        if not self.is_original and "follow" in self.settings.actions:
            followed = set(self.ties(facts.user_id).followed.tolist())
            strangers = tuple(user_id for user_id in shown["user_id"] if user_id not in followed)
            options[_key("follow")] = strangers
        return {name: values for name, values in options.items() if values}

    def end_step(self) -> list[Event]:
        """Move the world's step on; report each post that went viral, once."""
        self.write_searches()
        self.next_step()
        engagement = self.posts["likes"] + self.posts["shares"]
        is_viral = (engagement >= self.settings.viral_threshold) & (self.posts["kind"] != REPOST)
        rows = np.flatnonzero(is_viral & (self.posts["viral"] == 0))
        self.posts["viral"][rows] = 1
        return [self._viral(row + 1, int(engagement[row])) for row in rows.tolist()]

    def _viral(self, post_id: int, score: int) -> Event:
        post = self.post_seen(post_id)
        said = quoted(post.content, NOTICE_CHARACTERS)
        return Event(
            source=self.name,
            kind="viral_post",
            facts={
                "post_id": post_id,
                "author_id": post.author_id,
                "author": post.author,
                "text": post.content,
                "score": score,
            },
            text=f"A post by {post.author} went viral with {score} likes and shares: {said}",
            time=self.step,
        )

    def close(self) -> None:
        """Let go of the database; the world cannot be used after."""
        self.store.close()


def chosen_settings(settings: SocialSettings | str, changes: dict[str, Any]) -> SocialSettings:
    """Give settings by name, with changes.

    Raises:
        ConfigError: If a preset or a parameter is unknown.
    """
    if isinstance(settings, str):
        if settings not in PRESETS:
            raise ConfigError(f"there is no preset {settings!r}; choose one of {', '.join(PRESETS)}")
        settings = PRESETS[settings]
    known = [field.name for field in fields(SocialSettings)]
    for name in changes:
        if name not in known:
            raise ConfigError(f"a social world has no parameter {name!r}; it has {', '.join(known)}")
    return replace(settings, **changes)


def shown_ids(facts: SocialFacts, news: Sequence[Sequence[Notice]]) -> dict[str, tuple[int, ...]]:
    """Collect the ids that a text shows, in order of appearance, by the arguments that take them."""
    posts: list[int] = []
    users: list[int] = [*facts.followed, *facts.muted]
    comments: list[int] = []
    for notice in (notice for group in news for notice in group[:NAMED]):
        users.append(notice.user_id)
        if notice.kind in ("reply", "quote"):
            posts.append(notice.new_id)
        elif notice.kind == "comment":
            comments.append(notice.new_id)
    for post in (item.post for item in facts.feed):
        posts += post.post_id, post.source_id
        users += post.author_id, post.source_author_id
        if post.quoted is not None:
            posts.append(post.quoted.post_id)
            users.append(post.quoted.author_id)
        for reply in post.replies:
            posts.append(reply.reply_id)
            users.append(reply.author_id)
        for comment in post.comments:
            comments.append(comment.reply_id)
            users.append(comment.author_id)
    return {
        "post_id": tuple(dict.fromkeys(posts)),
        "user_id": tuple(user_id for user_id in dict.fromkeys(users) if user_id != facts.user_id),
        "comment_id": tuple(dict.fromkeys(comments)),
    }
