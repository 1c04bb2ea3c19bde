"""Options of a user's actions: the ids and names in its observation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import filterfalse
from typing import NamedTuple

from mesa_llm.errors import ConfigError
from mesa_llm.tools.tool import compile_tool
from mesa_llm_models.social.world.facts import FeedItem, ShownIds, SocialFacts
from mesa_llm_models.social.world.state import Notice
from mesa_llm_models.social.world.text import MAX_NAMED

Values = tuple[int | str, ...]

KINDS_OF_ID = frozenset({"posts", "users", "comments"})
"""Lists of everything of a kind in a text; a search may show more of it."""


class Shown(NamedTuple):
    """What one observation shows, for the options of actions."""

    facts: SocialFacts
    """The observation."""

    followed: Set[int]
    """Ids of all users the user follows."""

    ids: Mapping[str, tuple[int, ...]]
    """Name of a list → the ids in it, in order of appearance."""


LISTS: dict[str, Callable[[Shown], Values]] = {
    **{
        name: lambda shown, name=name: shown.ids[name]
        for name in (*sorted(KINDS_OF_ID), "liked_posts", "disliked_posts", "liked_comments", "disliked_comments")
    },
    "followed": lambda shown: tuple(filter(shown.followed.__contains__, shown.ids["users"])),
    "not_followed": lambda shown: tuple(filterfalse(shown.followed.__contains__, shown.ids["users"])),
    "muted": lambda shown: shown.facts.muted,
    "not_muted": lambda shown: tuple(filterfalse(shown.facts.muted.__contains__, shown.ids["users"])),
    "groups": lambda shown: tuple([group.group_id for group in shown.facts.groups]),
    "open_groups": lambda shown: tuple([group.group_id for group in shown.facts.open_groups]),
    "products": lambda shown: tuple([product.name for product in shown.facts.products]),
}
"""Name used in an action's declaration `@action(options={argument: name})` → its values in an observation."""


class ActionOptions:
    """The options of a world's actions, as declared by them.

    Attributes:
        shows_more: Whether a tool may show more posts, comments and users than observations.
    """

    def __init__(self, world: type, actions: Sequence[str], *, follows_anybody: bool = False) -> None:
        """Read the declarations of the actions.

        Args:
            world: The class with the actions.
            actions: Names of the tools and actions that users have.
            follows_anybody: Whether users may follow anyone they see, including repeatedly and themselves.

        Raises:
            ConfigError: If an action names an unknown list.
        """
        tools = {name: compile_tool(getattr(world, name), 2) for name in actions}
        self.shows_more = any(tool.shows_more for tool in tools.values())
        self._lists: dict[str, str] = {}
        self._keys: dict[str, str] = {}  # action → the name of the option it needs to be offered, if any
        for name, tool in tools.items():
            for argument, list_name in tool.options.items():
                if list_name not in LISTS:
                    known = ", ".join(LISTS)
                    raise ConfigError(f"{name}: options={{{argument!r}: {list_name!r}}}; there are the lists {known}")
                key = argument if list_name in KINDS_OF_ID else f"{name}.{argument}"
                self._lists[key] = "users" if follows_anybody and name == "follow" else list_name
                if not (self.shows_more and argument in ("post_id", "comment_id", "user_id")):
                    self._keys[name] = key
        self._actions = tuple(actions)
        self._offered: dict[tuple[tuple[str, ...], bool], tuple[str, ...]] = {}

    def of(
        self, facts: SocialFacts, news: Sequence[Sequence[Notice]], ids: Sequence[ShownIds], followed: Set[int]
    ) -> dict[str, Values]:
        """Return the options in an observation, without empty ones.

        Args:
            facts: The observation.
            news: Its displayed notices, in groups.
            ids: The ids in each post of its feed.
            followed: Ids of the users the user follows.
        """
        shown = Shown(facts, followed, shown_ids(facts, news, ids))
        options: dict[str, Values] = {}
        for key, name in self._lists.items():
            if values := LISTS[name](shown):
                options[key] = values
        return options

    def complete(self, options: Mapping[str, Values]) -> dict[str, Values]:
        """Return options with an empty list for each one without values."""
        return {key: options.get(key, ()) for key in self._lists}

    def offered(self, options: Mapping[str, Values], *, has_groups: bool) -> tuple[str, ...]:
        """Return the actions that can be applied.

        Args:
            options: The options with values.
            has_groups: Whether the user is in a group.
        """
        case = tuple(options), has_groups
        names = self._offered.get(case)
        if names is None:
            names = self._offered[case] = tuple(
                name
                for name in self._actions
                if (has_groups if name == "listen_from_group" else self._keys.get(name, "") in ("", *options))
            )
        return names


def shown_ids(
    facts: SocialFacts, news: Sequence[Sequence[Notice]], ids: Sequence[ShownIds]
) -> dict[str, tuple[int, ...]]:
    """Collect the ids in a text, in order of appearance, by the names of `LISTS`.

    Args:
        facts: A user's observation.
        news: Its displayed notices, in groups.
        ids: The ids in each post of its feed.
    """
    posts: list[int] = []
    users = [*facts.followed, *facts.muted]
    comments: list[int] = []
    for group in news:
        for notice in group[:MAX_NAMED]:
            users.append(notice.user_id)
            if notice.kind in ("reply", "quote"):
                posts.append(notice.new_id)
            elif notice.kind == "comment":
                comments.append(notice.new_id)
    for own_posts, own_users, own_comments in ids:
        posts += own_posts
        users += own_users
        comments += own_comments
    for group in facts.groups:
        users += [message.user_id for message in group.messages]
    others = dict.fromkeys(users)
    others.pop(facts.user_id, None)
    return {
        "posts": tuple(dict.fromkeys(posts)),
        "users": tuple(others),
        "comments": tuple(dict.fromkeys(comments)),
        **rated_ids(facts.feed),
    }


def rated_ids(feed: Iterable[FeedItem]) -> dict[str, tuple[int, ...]]:
    """Return the ids of posts and replies, and of comments, with the viewer's votes in a feed's text."""
    posts: dict[int, list[int]] = {1: [], -1: []}
    comments: dict[int, list[int]] = {1: [], -1: []}
    for item in feed:
        post = item.post
        if item.vote:
            posts[item.vote] += (post.post_id, post.source_id)
        for reply in post.replies:
            if reply.vote:
                posts[reply.vote].append(reply.reply_id)
        for comment in post.comments:
            if comment.vote:
                comments[comment.vote].append(comment.reply_id)
    lists = {
        "liked_posts": posts[1],
        "disliked_posts": posts[-1],
        "liked_comments": comments[1],
        "disliked_comments": comments[-1],
    }
    return {name: tuple(dict.fromkeys(ids)) if ids else () for name, ids in lists.items()}
