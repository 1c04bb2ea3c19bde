"""Somebody who answers a questionnaire."""

from __future__ import annotations

from mesa_llm.agents.agent import LLMAgent
from mesa_llm.records import Decision, Failure, Observation, Outcome

UNREADABLE = frozenset({"Unparsed", "OffList", "Invalid", "BadReply"})
"""Kinds of failure in which a reply came, but no answer could be read in it."""


class Respondent(LLMAgent):
    """Somebody who answers the sheets of a `Questionnaire`, which is its model's `world`."""

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Hand in the answer; after a failure, report it, and the items of the sheet count as unanswered."""
        if isinstance(decision, Failure):
            is_unparsable, is_off_list = decision.kind in UNREADABLE, decision.kind == "OffList"
            self.model.world.fail(self.unique_id, decision.label, is_unparsable=is_unparsable, is_off_list=is_off_list)
        return super().act(decision, seen)
