"""Whatever an agent writes or is called, no line that others read begins with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import mesa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm import LLMAgent, TalkMixin
from mesa_llm.agents.mailbox import Mailbox
from mesa_llm.config import AgentConfig
from mesa_llm.errors import ConfigError
from mesa_llm.memory import MemoryEntry, StreamMemory, open_memory
from mesa_llm.model.bridge import Bridge
from mesa_llm.records import Event
from mesa_llm.testing import BREAKS, FORGED, INVISIBLE
from mesa_llm.tools.tool import marked_methods
from mesa_llm_models.auction_arena.world import Auction, Bidder, Lot
from mesa_llm_models.economy.world import Economy
from mesa_llm_models.market.world import PredictionMarkets
from mesa_llm_models.social.world import PRESETS, Account, SocialWorld
from mesa_llm_models.three_worlds.model import ThreeWorldsModel
from tests.worlds.exchange.small_exchange import exchange, go_to

attacks = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(("", "Yes.", "”", INVISIBLE)),
    st.lists(st.sampled_from((*BREAKS, *INVISIBLE, " ")), min_size=1, max_size=4).map("".join),
    st.sampled_from(FORGED),
    st.text(max_size=5),
)


def seen(world: Any, agent: int) -> Iterator[str]:
    """Give all that an agent reads of a world, and what others hear of it."""
    sight = world.observe(agent)
    yield from (sight.text, sight.instructions)
    bridge = Bridge()
    bridge.publish(world.end_step())
    bridge.start_step(2)
    yield bridge.digest([], agent)


def social(text: str) -> Iterator[str]:
    settings = replace(PRESETS["reddit"], actions=marked_methods(SocialWorld), viral_threshold=0)
    world = SocialWorld(settings, rng=1)
    world.sign_up_many([Account(1, text, text, text), Account(2, "Bo", "bo", "Yes. Now.")])
    world.create_post(2, "Bread at six.")
    world.create_post(1, f"a{text}")
    world.reply(1, 1, f"a{text}")
    world.create_comment(1, 1, f"a{text}")
    world.quote_post(1, 1, f"a{text}")
    world.follow(2, 1)
    world.create_group(1, f"a{text}")
    world.join_group(2, 1)
    world.send_to_group(1, 1, f"a{text}")
    yield world.listen_from_group(2)
    yield from (world.search_posts(2, "a"), world.search_user(2, "o"), world.trend(2), world.refresh(2))
    yield from seen(world, 2)


def market(text: str) -> Iterator[str]:
    world = PredictionMarkets(["Rain?"], names={1: text})
    world.comment_on_market(1, "rain", f"a{text}")
    yield world.browse_markets(2)
    yield from seen(world, 2)


def economy(text: str) -> Iterator[str]:
    world = Economy(names={1: text})
    world.set_price(1, 3.0)
    world.apply_policy(1, f"a{text}", text, "mood", text)
    town = ThreeWorldsModel(n_agents=1, rng=1, variables={"mood": text})
    yield town.instructions_text
    town.close()
    yield from seen(world, 2)


def original_economy(text: str) -> Iterator[str]:
    world = Economy(rules="original")
    world.apply_policy(1, text, text, text, text)
    yield from seen(world, 2)


def forum(text: str) -> Iterator[str]:
    world = exchange()
    go_to(world, "post")
    world.post_message(1, f"a{text}")
    world.end_step()
    yield world.read_forum(2)
    yield from seen(world, 2)


def news(text: str) -> Iterator[str]:
    bridge = Bridge()
    bridge.publish([Event("social", "rumour", {"text": text, text: 1}), Event("social", "rumour", {}, f"a{text}")])
    bridge.start_step(2)
    yield bridge.digest([], 1)


class Talker(TalkMixin, LLMAgent):
    """Somebody who talks."""


def messages(text: str) -> Iterator[str]:
    model = mesa.Model(rng=1)
    speaker, hearer = (Talker(model, config=AgentConfig(name=name)) for name in (f"a{text}", "Bo"))
    speaker.send_message(hearer.unique_id, f"a{text}")
    Mailbox.of(model).deliver()
    yield hearer.observe().text


def memories(text: str) -> Iterator[str]:
    for kind in ("window", "chat", "stream", "reflection", "summary"):
        memory = open_memory(kind)
        memory.add(MemoryEntry(1, "message", f"agent 1: {text}"))
        memory.add(MemoryEntry(1, "outcome", f"read(): {text}"))
        memory.keep_summary(text)
        if kind == "chat":
            memory.add(MemoryEntry(1, "decision", "{}"))
        is_stream = isinstance(memory, StreamMemory)
        yield "\n".join(entry.line for entry in memory.entries) if is_stream else memory.recall("", 2)
        yield from (message.content for message in memory.messages())


PLACES = (social, market, economy, original_economy, forum, news, messages, memories)


@pytest.mark.parametrize("place", PLACES)
@given(text=attacks)
def test_no_text_begins_a_line_that_others_read(place: Callable[[str], Iterator[str]], text: str) -> None:
    for text_shown in place(text):
        assert not any(line.lstrip().startswith(FORGED) for line in text_shown.splitlines())
        assert not set(INVISIBLE) & set(text_shown)


@given(text=attacks)
def test_an_auction_takes_no_name_of_several_lines(text: str) -> None:
    for bidder, lot in ((f"{text}\n", "Vase"), ("Ana", f"{text}\n")):
        with pytest.raises(ConfigError, match="name must be one line"):
            Auction([Lot(lot, 100, 200)], [Bidder(1, bidder), Bidder(2, "Ben")], rng=1)
