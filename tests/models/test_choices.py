"""What an observation lists as the values of an argument is all that anybody needs, and no sum of money."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm import Decision, ScriptedLLM
from mesa_llm.llm.scripted import call
from mesa_llm.records import options_for
from mesa_llm.registry import find_models
from mesa_llm.testing import honest_reply
from mesa_llm.tools.tool import marked_methods
from mesa_llm_models.market.model import MarketModel
from mesa_llm_models.social.model import SocialModel
from mesa_llm_models.social.world import SocialWorld
from mesa_llm_models.three_worlds.model import ThreeWorldsModel

SUMS = {"amount", "shares", "price", "count", "quantity", "value"}

SETTINGS: list[tuple[Any, dict[str, Any]]] = [
    *((entry.load(), {}) for entry in find_models()),
    (SocialModel, {"preset": "x"}),
    (SocialModel, {"preset": "reddit"}),
    (SocialModel, {"n_agents": 8, "actions": marked_methods(SocialWorld), "products": ("kettle", "lamp")}),
    (MarketModel, {"rules": "original"}),
    (ThreeWorldsModel, {"visits": "together"}),
]


def play(playing: Any) -> None:
    """Play twelve steps, and check each decision against the options that its agent saw."""
    for _ in range(12):
        seen = playing.observations()
        decided = playing.decide(playing.due, list(seen.values()))  # an agent may be asked several things at once
        for sight, decision in zip(seen.values(), decided, strict=True):
            for action in decision.actions if isinstance(decision, Decision) else ():
                options = options_for(action.name, sight.options)
                assert all(value in (None, *options.get(name, (value,))) for name, value in action.arguments.items())
        playing.apply(dict(zip(seen, decided, strict=True)))


@pytest.mark.parametrize("llm", ["rule", "random"])
@pytest.mark.parametrize(("model", "changes"), SETTINGS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_all_that_is_decided_is_among_the_options(model: Any, changes: dict[str, Any], llm: str) -> None:
    play(model(rng=3, llm=llm, **changes))


@pytest.mark.parametrize(("model", "changes"), SETTINGS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_language_model_chooses_among_the_options_and_names_sums_freely(model: Any, changes: dict[str, Any]) -> None:
    names: set[str] = set()

    def note(request: Any) -> Any:
        names.update(name.rpartition(".")[2] for name in request.options)
        return honest_reply(request)

    play(model(rng=3, llm=ScriptedLLM(note), **changes))
    assert not names & SUMS


def test_a_user_can_act_on_what_a_search_found() -> None:
    def script(request: Any) -> Any:
        if request.messages[-1].role == "tool":
            return call("like_post", post_id=1)
        return call("search_posts", query="e")

    model = SocialModel(n_agents=6, preset="reddit", feed_size=0, rng=1, llm=ScriptedLLM(script))
    assert not any(agent.observe().options["post_id"] for agent in model.agents)
    model.step()
    assert set(model.runlog.actions()["action"]) == {"like_post"}


def test_in_several_worlds_an_option_holds_in_its_own_world_alone() -> None:
    model = ThreeWorldsModel(n_agents=4, visits="together", rng=1, llm="random")
    options = model.agents[1].observe().options
    bets, investments = (options_for(name, options)["amount"] for name in ("buy_shares", "invest"))
    assert bets != investments
    assert "value" not in options_for("vote", options)
    assert set(options_for("comment_on_market", options)["market_id"]) <= set(model.claims)
