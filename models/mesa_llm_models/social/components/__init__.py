"""Components for models with a social world: feeds, threads, cascades and follow networks."""

from mesa_llm_models.social.components.cascade import CascadeTree, spread_curves
from mesa_llm_models.social.components.follows import Colouring, follow_network, opinion
from mesa_llm_models.social.components.reader import CASCADE_TAB, FEED_TAB, FeedReader, ThreadReader

__all__ = [
    "CASCADE_TAB",
    "FEED_TAB",
    "CascadeTree",
    "Colouring",
    "FeedReader",
    "ThreadReader",
    "follow_network",
    "opinion",
    "spread_curves",
]
