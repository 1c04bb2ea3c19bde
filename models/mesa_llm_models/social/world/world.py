"""The social world: users, posts and follows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import Event, LazyObservation, Observation
from mesa_llm.text import quoted
from mesa_llm.tools.tool import marked_methods, tool
from mesa_llm.world import RNG, DoNothing
from mesa_llm_models.social.world import text as wording
from mesa_llm_models.social.world.csr import FloatArray, IntArray
from mesa_llm_models.social.world.facts import FeedItem, SocialFacts
from mesa_llm_models.social.world.groups import SocialGroups
from mesa_llm_models.social.world.measures import SocialMeasures
from mesa_llm_models.social.world.options import ActionOptions
from mesa_llm_models.social.world.post_index import REPOST, PostIndex, first_allowed
from mesa_llm_models.social.world.recommenders import bars_muted
from mesa_llm_models.social.world.rules import SocialRules
from mesa_llm_models.social.world.rules_original import OriginalMeasures, OriginalSocialRules
from mesa_llm_models.social.world.settings import FEEDS, PRESETS, SocialSettings
from mesa_llm_models.social.world.state import UNPRINTABLE, Notice
from mesa_llm_models.social.world.text import NOTICE_CHARACTERS, group_notices
from mesa_llm_models.social.world.views import MAX_MESSAGES, SocialView

Query = Annotated[str, Field(min_length=1, max_length=200)]

BIO_CHARACTERS = 160
"""Maximum number of characters of a user's bio that a search shows."""

SEARCHED = {"search_posts": "posts", "search_user": "users"}
"""Action → what it searches, as recorded."""


class SocialWorld(SocialRules, SocialGroups, SocialView, DoNothing):
    """Posts, feeds and follows, for any number of users.

    Agents need an account (`sign_up`, `sign_up_many`) before they observe or act; a user's id is its agent's
    `unique_id`. `Observation.tools` names an agent's actions: those in the settings, except those that need an id when
    none is shown.
    """

    wording: ClassVar[Any] = wording
    """Module with the texts agents read. A subclass may set its own."""

    @property
    def unit(self) -> str:
        """Unit of time of all that users read and remember."""
        return self.settings.unit

    def __new__(
        cls,
        settings: SocialSettings | str = "simswarm",
        *,
        name: str = "social",
        rng: RNG | int | None = None,
        path: str | Path | None = None,
        **changes: Any,
    ) -> Self:
        """Create a world with the rules in its settings. The arguments are those of `__init__`."""
        preset = PRESETS.get(settings) if isinstance(settings, str) else settings
        rules = changes.get("rules", "corrected" if preset is None else preset.rules)
        kind: Any = _with_original_rules(cls) if rules == "original" else cls
        return super().__new__(kind)

    def __init__(
        self,
        settings: SocialSettings | str = "simswarm",
        *,
        name: str = "social",
        rng: RNG | int | None = None,
        path: str | Path | None = None,
        **changes: Any,
    ) -> None:
        """Create a world without users and posts, in step 0.

        Args:
            settings: Parameters, or the name of a preset, such as `simswarm`, `x`, `reddit` (see `PRESETS`).
            name: Name of the world, unique in a model.
            rng: Random generator, or a seed.
            path: SQLite file to write; None for memory. The file of an earlier run is emptied.
            **changes: Parameters that override the settings, by name (see `SocialSettings`).

        Raises:
            ConfigError: If a preset, parameter or action is unknown, or the file is not a social world's.
        """
        own_settings = settings_from(settings, changes)
        methods = marked_methods(type(self))
        for action in own_settings.actions:
            if action not in methods:
                raise ConfigError(f"a social world has no action {action!r}; it has {', '.join(methods)}")
        super().__init__(own_settings, name=name, rng=rng, path=path)
        self.measures = OriginalMeasures(self) if own_settings.rules == "original" else SocialMeasures(self)
        self._options = ActionOptions(type(self), own_settings.actions, follows_anybody=self.follows_anybody)
        self.recommended: dict[int, list[int]] = {}
        self._last_recommended: dict[int, list[int]] | None = None

    def expect(self, agent_ids: Sequence[int]) -> None:
        """Pick the feeds of users about to observe, together, and read their posts."""
        users = self.known_users(agent_ids)
        readers = self.readers(users)
        self._readers = dict(zip(users, readers, strict=True))
        for reader in readers:
            if reader.feed:
                self.trace_read(reader.user_id, "refresh", posts=reader.feed)
        self.load_views(chain.from_iterable([reader.feed for reader in readers]))
        self.names.load(notice.user_id for user_id in users for notice in self.inbox.of(user_id))

    def observe(self, agent_id: int) -> Observation:
        """Return a user's followers, notices and feed. Reads only.

        Raises:
            ConfigError: If the agent has no account.
        """
        reader = self.reader(agent_id)
        self.recommended[agent_id] = reader.feed
        facts, ids_of_posts = self._facts(reader)
        news = group_notices(facts.notices)
        options = self._options.of(facts, news[: self.settings.notices_shown], ids_of_posts, reader.followed_ids)
        return LazyObservation(
            text=partial(self._text, facts, news),
            tools=self._options.offered(options, has_groups=bool(facts.groups)),
            options=self._options.complete(options) if self._options.shows_more else options,
            max_actions=self.settings.max_actions,
            facts=facts,
        )

    def _text(self, facts: SocialFacts, news: Sequence[Sequence[Notice]]) -> str:
        """Write a user's observation, with its notices in groups."""
        wording, settings = self.wording, self.settings
        lines = wording.news_lines(news, self.names, settings.notices_shown)
        contents = self.posts_texts([post.post_id for post in facts.own_posts])
        own = [wording.own_post_line(post, contents[post.post_id], facts.step, settings) for post in facts.own_posts]
        feed = self.text_of(facts.feed, facts.step)
        return wording.observation_text(facts, lines, own, feed, self.names, settings)

    def text_of(self, items: Sequence[FeedItem], step: int | None = None) -> str:
        """Write posts as one user sees them.

        Args:
            items: The posts.
            step: Step of the observation; None for the current one.
        """
        step = self.step if step is None else step
        views = self._views if step == self.step else {}
        texts: list[str] = []
        for item in items:
            post = item.post
            if views.get(post.post_id) is not post:
                texts.append(self.wording.post_text(item, step, self.settings))
                continue
            by_view = self._texts.get(post.post_id)
            if by_view is None:
                by_view = self._texts[post.post_id] = {}
            key = item.is_followed, item.is_own, item.vote
            text = by_view.get(key)
            if text is None:
                text = by_view[key] = self.wording.post_text(item, step, self.settings)
            texts.append(text)
        return "\n".join(texts) or self.wording.result_text("no_feed")

    # tools: searches are written at the end of the step

    @tool(shows_more=True)
    def search_posts(self, agent_id: int, query: Query) -> str:
        """Search all posts for a word or phrase.

        Args:
            query: Text to look for in posts; upper and lower case count as the same.
        """
        text = self._noted(self.acting(agent_id), "search_posts", query)
        rows = np.array([key for key, *_ in self.store.find("post", text)], dtype=np.int64) - 1
        posts, muted = self.posts, self.viewer(agent_id).muted
        rows = rows[(posts["kind"][rows] != REPOST) & (posts["reports"][rows] < self.max_reports)]
        rows = rows[~np.isin(posts["author"][rows], muted)]
        score = posts["likes"][rows] - posts["dislikes"][rows] + posts["shares"][rows]
        rows = rows[np.lexsort((-rows, -score))][: self.settings.search_results]
        if not len(rows):
            return self.wording.result_text("no_post", query=quoted(query))
        return self.text_of(self.items(self.viewer(agent_id), (rows + 1).tolist()))

    @tool(shows_more=True)
    def search_user(self, agent_id: int, query: Query) -> str:
        """Search for users by name, handle or what they say about themselves.

        Args:
            query: Text to look for; upper and lower case count as the same.
        """
        text = self._noted(self.acting(agent_id), "search_user", query)
        muted = self.viewer(agent_id).muted_ids
        found = (row for row in self.store.find("user", text) if row[0] not in muted)
        lines: list[str] = []
        for user_id, name, _, bio in islice(found, self.settings.search_results):
            about = f": {quoted(bio, BIO_CHARACTERS)}" if bio else ""
            lines.append(f"- {name} (user {user_id}), {self.users.get('followers', user_id)} followers{about}")
        return "\n".join(lines) or self.wording.result_text("no_user", query=quoted(query))

    @tool(shows_more=True)
    def trend(self, agent_id: int) -> str:
        """Show what has been liked most lately."""
        oldest = self.step - self.settings.trend_days * 24 * 60 / max(self.settings.step_minutes, 1e-9)
        ranking = self.board.ranking("trend", trend_scores, oldest, newest_first=True)
        viewers = self.viewers([agent_id])
        size = np.array([self.settings.trend_posts])
        rows = first_allowed(ranking, viewers, size, bars_muted(self.board))[0]
        rows = rows[self.board.created[rows] >= oldest]
        if not len(rows):
            return self.wording.result_text("no_trend")
        post_ids = (rows + 1).tolist()
        self.trace_read(agent_id, "trend", posts=post_ids)
        return self.text_of(self.items(viewers[0], post_ids))

    @tool
    def refresh(self, agent_id: int) -> str:
        """Show your feed again."""
        feed = self.feed(agent_id)
        if feed:
            self.trace_read(agent_id, "refresh", posts=feed)
        return self.text_of(self.items(self.viewer(agent_id), feed))

    def pass_turn(self, agent_id: int) -> None:
        """Record that a user has done nothing."""
        if self.is_user(agent_id):  # agents of several worlds pass their turn in all of them at once
            self.trace(agent_id, "do_nothing")

    @tool
    def listen_from_group(self, agent_id: int) -> str:
        """Show the latest messages of the groups you are in."""
        groups = self.groups(self.acting(agent_id))
        if not groups:
            return self.wording.result_text("no_group")
        messages = [message for group in groups for message in self.messages(agent_id, group.group_id, MAX_MESSAGES)]
        messages.sort(key=lambda message: message.message_id)
        return self.wording.messages_text(groups, messages[-MAX_MESSAGES:])

    def _noted(self, agent_id: int, action: str, query: str) -> str:
        """Record a search, and return the text to search for."""
        text = UNPRINTABLE.sub("", query).strip()
        if not text:
            raise ToolError(self.wording.reason_text("empty_search"))
        self.searches.append((agent_id, SEARCHED[action], text))
        self.trace_read(agent_id, action, query=text)
        return text

    def write_searches(self) -> None:
        """Write the searches of the step, sorted by user, since their order of arrival may vary."""
        for search in sorted(self.searches, key=lambda search: search[0]):
            self.store.add("search", None, *search, self.step)
        self.searches.clear()

    def write_out(self) -> None:
        """Write everything that is not in the tables yet, including the feeds of the last step."""
        super().write_out()
        if self._last_recommended is not None:
            self.store.write("DELETE FROM rec")
            shown = self._last_recommended.items()
            self.store.insert("rec", ((user, post) for user, posts in shown for post in dict.fromkeys(posts)))
            self._last_recommended = None

    # the end of a step

    def end_step(self) -> list[Event]:
        """End the step. Report each post that went viral, once."""
        self.write_searches()
        self.write_reads()
        self._last_recommended, self.recommended = self.recommended, {}
        self.next_step()
        rows = np.array(sorted(self._rated), dtype=np.int64)
        self._rated.clear()
        engagement = self.posts["likes"][rows] + self.posts["shares"][rows]
        is_viral = (engagement >= self.settings.viral_threshold) & (self.posts["kind"][rows] != REPOST)
        is_viral &= self.posts["viral"][rows] == 0
        self.posts["viral"][rows[is_viral]] = 1
        viral = zip((rows[is_viral] + 1).tolist(), engagement[is_viral].tolist(), strict=True)
        return [self._viral(post_id, score) for post_id, score in viral]

    def _viral(self, post_id: int, score: int) -> Event:
        post = self.post_view(post_id)
        quotation = quoted(post.content, NOTICE_CHARACTERS)
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
            text=f"A post by {post.author} went viral with {score} likes and shares: {quotation}",
            time=self.step,
        )

    def tables(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return posts, comments and follows, for exports and reports."""
        posts = [
            {
                "post": row["post_id"],
                "agent": row["user_id"],
                "name": self.names[row["user_id"]],
                **{name: row[name] for name in ("kind", "parent_id", "step", "likes", "dislikes", "shares")},
                "text": row["content"],
            }
            for row in self.measures.posts_table()
        ]
        edges = {(int(a), int(b)) for a, b in self.measures.follow_edges()}
        follows = [{"follower": a, "followee": b, "is_mutual": (b, a) in edges} for a, b in sorted(edges)]
        return {"posts": posts, "comments": self.measures.comments_table(), "follows": follows}

    # from outside the run

    def publish(self, author: str, text: str) -> int:
        """Publish a post from an account, by name or number. An unknown name opens a new account.

        Returns:
            Id of the post.

        Raises:
            ToolError: If the post is empty or too long.
        """
        content = self.cleaned(text, "post")
        found = self.store.first("SELECT user_id FROM user WHERE name = ? ORDER BY user_id LIMIT 1", author)
        user_id = int(author) if author.isdecimal() else int(found[0]) if found is not None else 0
        if user_id not in self.names:
            user_id = max(len(self.users), 1)
            self.sign_up(user_id, author)
        self.create_post(user_id, content)
        return len(self.posts)

    meanings = MappingProxyType(
        {
            "feed": f"What users are shown: {', '.join(FEEDS)}.",
            "feed_size": "Maximum number of posts in a feed, 0 or more.",
            "viral_threshold": "Number of likes and shares at which a post is reported as viral, 1 or more.",
        }
    )
    """Variable that can be changed during a run → its meaning."""

    def changeable(self) -> Mapping[str, Any]:
        """Return the variables that can be changed during a run: name and size of the feed, and the viral threshold."""
        feed = self.settings.feed
        name = feed if isinstance(feed, str) else next((key for key, one in FEEDS.items() if one == feed), "own")
        settings = self.settings
        return {"feed": name, "feed_size": settings.feed_size, "viral_threshold": settings.viral_threshold}

    def change(self, variable: str, value: Any) -> None:
        """Change one of these variables.

        Raises:
            ToolError: If the variable is unknown, or the value is invalid.
        """
        kinds = {"feed": str, "feed_size": int, "viral_threshold": int}
        if variable not in kinds or type(value) is not kinds[variable]:
            feeds = ", ".join(FEEDS)
            raise ToolError(self.wording.reason_text("no_variable", variable=variable, value=value, feeds=feeds))
        try:
            settings = replace(self.settings, **{variable: value})
            settings.require_embed()
        except ConfigError as error:
            raise ToolError(str(error)) from None
        self.settings, self._feed = settings, settings.chosen_feed
        self.posts_changed()

    def __getattr__(self, name: str) -> Any:
        """Return a measure by its former name as a method of the world, with a warning."""
        if name.startswith("_") or not hasattr(SocialMeasures, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warnings.warn(f"world.{name} is now world.measures.{name}", DeprecationWarning, stacklevel=2)
        return getattr(self.measures, name)

    def close(self) -> None:
        """Close the database. The world cannot be used afterwards."""
        self.store.close()


@cache
def _with_original_rules(kind: type[Any]) -> type[Any]:
    """Return a class of social worlds with the rules of `rules_original` in place of its own."""
    if issubclass(kind, OriginalSocialRules):
        return kind
    return type(kind.__name__, (OriginalSocialRules, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def trend_scores(board: PostIndex, rows: IntArray, moment: float) -> FloatArray:
    """Score posts by their likes. Those from before the step `moment` come last."""
    return np.where(board.created[rows] >= moment, board.likes[rows], -np.inf)


def settings_from(settings: SocialSettings | str, changes: dict[str, Any]) -> SocialSettings:
    """Return settings by name, with changes.

    Raises:
        ConfigError: If a preset or a parameter is unknown, or another feed needs an embedding function.
    """
    if isinstance(settings, str):
        if settings not in PRESETS:
            raise ConfigError(f"there is no preset {settings!r}; choose one of {', '.join(PRESETS)}")
        settings = PRESETS[settings]
    names = [field.name for field in fields(SocialSettings)]
    for name in changes:
        if name not in names:
            raise ConfigError(f"a social world has no parameter {name!r}; it has {', '.join(names)}")
    settings = replace(settings, **changes)
    if "feed" in changes:
        settings.require_embed()
    return settings
