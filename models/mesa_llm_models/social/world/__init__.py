"""A social network: posts, replies, reposts, votes and follows, and feeds."""

from mesa_llm_models.social.world.accounts import Account
from mesa_llm_models.social.world.curves import SpreadCurves, read_curves
from mesa_llm_models.social.world.facts import (
    FeedItem,
    GroupView,
    MessageView,
    PostView,
    ProductView,
    ReplyView,
    SocialFacts,
)
from mesa_llm_models.social.world.measures import Cascade
from mesa_llm_models.social.world.oasis_database import write_oasis_database
from mesa_llm_models.social.world.personal import Embed, PersonalFeed
from mesa_llm_models.social.world.recommenders import (
    Feed,
    HotFeed,
    NewestFeed,
    PostIndex,
    RandomFeed,
    SimSwarmFeed,
    Viewer,
    XFeed,
)
from mesa_llm_models.social.world.settings import FEEDS, PRESETS, FeedName, PresetName, SocialSettings
from mesa_llm_models.social.world.state import Notice
from mesa_llm_models.social.world.world import SocialWorld

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
