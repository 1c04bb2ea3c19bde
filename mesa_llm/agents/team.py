"""Teams: agents that decide by asking their members."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mesa_llm.agents.agent import LLMAgent
from mesa_llm.agents.strategies import elected
from mesa_llm.errors import ConfigError
from mesa_llm.records import Decision, Failure, Observation
from mesa_llm.text import counted


class Team(LLMAgent):
    """An agent that does what most of its members would do.

    All members are asked at once, each with its own language model, persona and memories, on what the team sees and may
    do. Override `settle` to settle it otherwise, as by a leader's word. Members are agents of the same model; leave
    them out of the activation (`activation=lambda model: [list(model.agents_by_type[Firm])]`), unless they also act for
    themselves. Under `llm="rule"` the team asks its members' rule twins.

    Attributes:
        members: Those it asks, in order.
    """

    decides_without_llm = True

    def __init__(self, *args: Any, members: Iterable[Any] = (), **kwargs: Any) -> None:
        """Form a team.

        Args:
            *args: Passed to the next class.
            members: Those it asks, in order.
            **kwargs: Passed to the next class.
        """
        super().__init__(*args, **kwargs)
        self.members = list(members)

    async def decide(self, seen: Observation) -> Decision | Failure:
        """Ask all members, and settle what to do.

        Raises:
            ConfigError: If it has no members.
        """
        if not self.members:
            raise ConfigError(f"{self!r} has no members to ask; give members=[…]")
        opinions = await asyncio.gather(*(self.opinion_of(member, seen) for member in self.members))
        return self.settle(opinions, seen)

    def settle(self, opinions: Sequence[Decision | Failure], seen: Observation) -> Decision | Failure:
        """Settle what the team does: what most of its members want; a tie goes to the earliest.

        Args:
            opinions: What each member wants, in order.
            seen: What the team observes.
        """
        keys = tuple(key for opinion in opinions for key in opinion.keys)
        ballots = [opinion for opinion in opinions if isinstance(opinion, Decision)]
        if not ballots:
            return replace(opinions[0], keys=keys)
        winner, n_votes = elected(ballots, seen, self.toolbox(seen).specs)
        tally = f"({n_votes} of {counted(len(opinions), 'member')} decided so.)"
        return replace(winner, text="\n".join(filter(None, (winner.text, tally))), keys=keys)
