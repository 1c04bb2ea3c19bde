"""A social network: posts, replies, reposts, votes and follows, and the feeds that show them."""

from mesa_llm.worlds.social.accounts import Account
from mesa_llm.worlds.social.feeds import FEEDS, Board, Feed, HotFeed, NewestFeed, SimSwarmFeed, Viewer, XFeed
from mesa_llm.worlds.social.inbox import Notice
from mesa_llm.worlds.social.measures import Cascade
from mesa_llm.worlds.social.seen import FeedItem, PostSeen, ReplySeen, SocialFacts
from mesa_llm.worlds.social.settings import PRESETS, SocialSettings
from mesa_llm.worlds.social.world import SocialWorld

__all__ = [
    "FEEDS",
    "PRESETS",
    "Account",
    "Board",
    "Cascade",
    "Feed",
    "FeedItem",
    "HotFeed",
    "NewestFeed",
    "Notice",
    "PostSeen",
    "ReplySeen",
    "SimSwarmFeed",
    "SocialFacts",
    "SocialSettings",
    "SocialWorld",
    "Viewer",
    "XFeed",
]
