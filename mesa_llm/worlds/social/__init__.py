"""A social network: posts, replies, reposts, votes and follows, and the feeds that show them."""

from mesa_llm.worlds.social.accounts import Account
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
from mesa_llm.worlds.social.recommenders import (
    FEEDS,
    Board,
    Feed,
    FeedName,
    HotFeed,
    NewestFeed,
    SimSwarmFeed,
    Viewer,
    XFeed,
)
from mesa_llm.worlds.social.settings import PRESETS, PresetName, SocialSettings
from mesa_llm.worlds.social.state import Notice
from mesa_llm.worlds.social.world import SocialWorld

__all__ = [
    "FEEDS",
    "PRESETS",
    "Account",
    "Board",
    "Cascade",
    "Feed",
    "FeedItem",
    "FeedName",
    "GroupView",
    "HotFeed",
    "MessageView",
    "NewestFeed",
    "Notice",
    "PostView",
    "PresetName",
    "ProductView",
    "ReplyView",
    "SimSwarmFeed",
    "SocialFacts",
    "SocialSettings",
    "SocialWorld",
    "Viewer",
    "XFeed",
]
