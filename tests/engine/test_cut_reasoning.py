"""A reasoning that the grammar of a local language model cuts is marked, and does not go into the next prompt."""

from __future__ import annotations

import pytest

from mesa_llm import AgentDesign, ScriptedLLM
from mesa_llm.engine.reading.reasoning import CUT_MARK, marked_if_cut
from mesa_llm.llm.replies import call
from mesa_llm.llm.schema.grammar import MAX_COUNTED
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel

CUT = ("I keep thinking of it and " * 100)[:MAX_COUNTED]
WHOLE = CUT[:-1] + "."


@pytest.mark.parametrize(("thought", "is_marked"), [(CUT, True), (WHOLE, False), (CUT[:-1], False), ("", False)])
def test_only_what_ends_in_mid_sentence_where_the_grammar_ends_it_is_marked(thought, is_marked) -> None:
    assert marked_if_cut(thought).endswith(CUT_MARK) is is_marked


def test_a_cut_reasoning_is_marked_in_the_decision_and_in_no_later_prompt() -> None:
    llm = ScriptedLLM(lambda request: call("keep", reasoning=CUT))
    model = WealthModel(n_agents=2, size=2, llm=llm, design=AgentDesign(reasoning="inline"), rng=1)
    model.run_for(2)
    texts = [text for text in model.runlog.decisions()["text"] if text]
    assert texts
    assert all(text.endswith(CUT_MARK) for text in texts)
    assert not model.runlog.calls()["prompt"].str.contains("thinking of it").any()
