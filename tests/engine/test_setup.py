"""Slips in a model's set-up are found once: before anybody is asked, or in the first step."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import mesa
import pytest

from mesa_llm import ConfigError, LLMAgent, action
from mesa_llm.engine import setup
from mesa_llm.tools.toolbox import ToolBox
from tests.pot import Payer, PotModel


class Mute(LLMAgent):
    """Has no rule twin, and one action."""

    @action
    def give(self, coins: int) -> str:
        """Give coins."""
        return "done."


def test_agents_without_a_mind_or_a_twin_are_refused() -> None:
    model = PotModel(1, rng=1)
    with pytest.raises(ConfigError, match="Agent has no mind, and can be asked nothing"):
        setup.require_minds([mesa.Agent(model)])
    with pytest.raises(ConfigError, match="Mute has no rule twin"):
        setup.require_rules([Payer(model), Mute(model)], LLMAgent.rule)


def test_options_of_no_argument_are_named_with_those_there_are() -> None:
    tools = ToolBox.of(Mute(PotModel(0, rng=1)), 1).specs
    assert setup.options_warning(Mute, ["coins", "give.coins"], tools) == ""
    assert "options for coin, which none of its actions takes; arguments are coins" in setup.options_warning(
        Mute, ["coin"], tools
    )


def test_a_turn_after_the_first_steps_costs_no_check_of_the_setup() -> None:
    model = PotModel(3, rng=1, on_error="rule")
    model.run_for(2)
    called: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename == setup.__file__:
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        model.run_for(3)
    finally:
        sys.setprofile(None)
    assert called == []
