"""A social network: posts, replies, reposts, votes and follows, and feeds."""

from typing import Any

from mesa_llm._deprecated import deprecated_name
from mesa_llm.worlds.social.accounts import Account
from mesa_llm.worlds.social.curves import SpreadCurves, read_curves
from mesa_llm.worlds.social.facts import (
    FeedItem,
    GroupView,
    MessageView,
    PostView,
    ProductView,
    ReplyView,
    SocialFacts,
)
from mesa_llm.worlds.social.measures import Cascade
from mesa_llm.worlds.social.oasis_database import write_oasis_database
from mesa_llm.worlds.social.personal import Embed, PersonalFeed
from mesa_llm.worlds.social.recommenders import (
    Feed,
    HotFeed,
    NewestFeed,
    PostIndex,
    RandomFeed,
    SimSwarmFeed,
    Viewer,
    XFeed,
)
from mesa_llm.worlds.social.settings import FEEDS, PRESETS, FeedName, PresetName, SocialSettings
from mesa_llm.worlds.social.state import Notice
from mesa_llm.worlds.social.world import SocialWorld

__all__ = [
    "FEEDS",
    "PRESETS",
    "Account",
    "Cascade",
    "Embed",
    "Feed",
    "FeedItem",
    "FeedName",
    "GroupView",
    "HotFeed",
    "MessageView",
    "NewestFeed",
    "Notice",
    "PersonalFeed",
    "PostIndex",
    "PostView",
    "PresetName",
    "ProductView",
    "RandomFeed",
    "ReplyView",
    "SimSwarmFeed",
    "SocialFacts",
    "SocialSettings",
    "SocialWorld",
    "SpreadCurves",
    "Viewer",
    "XFeed",
    "read_curves",
    "write_oasis_database",
]


def __getattr__(name: str) -> Any:
    """Return a name of this package by its old name."""
    return deprecated_name(__name__, name)
