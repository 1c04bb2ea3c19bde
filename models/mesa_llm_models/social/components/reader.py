"""The feed of a user as that user sees it now, and the thread of a post."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import solara
from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.text import quoted
from mesa_llm.viz.components.autocomplete import Autocomplete, Suggestion
from mesa_llm.viz.components.markup import Clickable
from mesa_llm.viz.components.page_state import AGENTS_TAB, DATA_TAB, PageState, use_page
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.session.per_model import PerModel
from mesa_llm.viz.session.rw_lock import steady
from mesa_llm_models.social.world import SocialWorld
from mesa_llm_models.social.world.text import group_notices, news_lines

FEED_TAB, CASCADE_TAB = AGENTS_TAB, DATA_TAB
"""Tabs that open on clicks on users and posts."""

MAX_ENTRIES = 150
"""Maximum number of replies and comments shown in a thread."""

TITLE_CHARACTERS = 70
"""Maximum number of characters of a post in a list."""

_reading = PerModel("_social_reading", threading.RLock)


@contextmanager
def still(model: LLMModel) -> Generator[None]:
    """Hold a model still, for one thread at a time, because reading a social world fills its caches.

    Args:
        model: A model with a social world.
    """
    with steady(model), _reading.of(model):
        yield


def social_world(model: LLMModel) -> SocialWorld:
    """Return the social network of a model.

    Args:
        model: The model.

    Raises:
        ConfigError: If it has none.
    """
    world = next((world for world in model.worlds if isinstance(world, SocialWorld)), None)
    if world is None:
        raise ConfigError(f"{type(model).__name__} has no social world to show")
    return world


def follow_click(page: PageState, kind: str, number: int) -> None:
    """Open the target of a click in a post: a user, with its feed, a post's thread, or its cascade.

    Args:
        page: The state of the page.
        kind: `user`, `post` or `cascade`.
        number: Id of the user or post.
    """
    for name in ("user", "agent") if kind == "user" else ("post",):
        page.selected(name).set(number)
    page.tab.set(CASCADE_TAB if kind == "cascade" else FEED_TAB)


def post_option(world: SocialWorld, post_id: int) -> Suggestion:
    """Return the option for a post: its id, author and first words.

    Args:
        world: The world.
        post_id: The post.
    """
    post = world.post_view(post_id)
    return Suggestion(post_id, f"{post_id} · {post.author}: {quoted(post.content, TITLE_CHARACTERS)}")


@component
def PickPost(model: LLMModel, label: str, post_id: int) -> None:
    """Let a visitor pick a post by id or text; the posts with the largest reach are listed first.

    Args:
        model: The model.
        label: Label of the field.
        post_id: The selected post.
    """
    world, page = social_world(model), use_page(model)

    def find(query: str, size: int) -> Sequence[Suggestion]:
        with still(model):
            found = world.measures.find_posts(query, size)
            world.load_views(found)
            return [post_option(world, other_id) for other_id in found]

    with still(model):
        option = post_option(world, post_id)
    Autocomplete(label, option, find, page.selected("post").set)


def post_to_show(world: SocialWorld, post_id: int) -> int:
    """Return the post to show: the selected one, or else the one with the largest reach; 0 if there is none at all.

    Args:
        world: The world.
        post_id: Id of the selected post; 0 or an unknown id: none is selected.
    """
    if 0 < post_id <= len(world.posts):
        return post_id
    return next(iter(world.measures.find_posts("", 1)), 0)


@component
@llm_models_only
def FeedReader(model: LLMModel) -> None:
    """Show the feed of a user as that user sees it now.

    Args:
        model: A model with a social world.
    """
    update_counter.get()
    world = social_world(model)
    page = use_page(model)
    selected = page.selected("user")
    picked = selected.value
    with still(model):
        user_id = picked if world.is_user(picked) else next(iter(world.measures.find_users("", 1)), 0)
    if not user_id:
        solara.Info("No users yet.", dense=True)
        return

    def find(query: str, size: int) -> Sequence[Suggestion]:
        with still(model):
            found = world.measures.find_users(query, size)
            world.names.load(found)
            return [user_option(world, other_id) for other_id in found]

    with still(model):
        values = feed_values(world, user_id)
        option = user_option(world, user_id)
    Autocomplete("Feed of", option, find, selected.set)
    Clickable("feed.html", model, partial(follow_click, page), **values).key(f"feed of {user_id}")


def user_option(world: SocialWorld, user_id: int) -> Suggestion:
    """Return the option for a user: its id and name.

    Args:
        world: The world.
        user_id: The user.
    """
    return Suggestion(user_id, f"{user_id} · {world.names[user_id]}")


def feed_values(world: SocialWorld, user_id: int) -> dict[str, Any]:
    """Return a user's current feed as variables of the template `feed.html`.

    Args:
        world: The world.
        user_id: The user.
    """
    facts = world.facts(user_id)
    settings = world.settings
    return {
        "name": world.names[user_id],
        "followers": facts.followers,
        "followings": facts.followings,
        "news": [line.removeprefix("- ") for line in news_lines(group_notices(facts.notices), world.names, 20)],
        "items": facts.feed,
        "warn_reports": settings.warn_reports,
    }


@component
@llm_models_only
def ThreadReader(model: LLMModel) -> None:
    """Show a post with its replies and comments.

    Args:
        model: A model with a social world.
    """
    update_counter.get()
    world = social_world(model)
    page = use_page(model)
    opened = page.selected("post").value
    with still(model):
        post_id = post_to_show(world, opened)
        if not post_id:
            solara.Info("No posts yet.", dense=True)
            return
        root_id, entries, count = world.measures.thread(post_id, MAX_ENTRIES)
        values = {
            "post": world.post_view(root_id),
            "entries": entries,
            "more": count - len(entries),
            "open_id": opened,
            "warn_reports": world.settings.warn_reports,
        }
    PickPost(model, "Thread of post", post_id)
    Clickable("thread.html", model, partial(follow_click, page), **values).key(f"thread of {root_id}")
