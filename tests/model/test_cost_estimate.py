"""A estimate counts what a run would ask for, and neither asks nor records."""

import pytest

from mesa_llm import AgentDesign, ConfigError, HumanLLM
from mesa_llm.llm.tokens import price
from mesa_llm.model.cost_estimate import estimate_cost
from mesa_llm_models.sotopia.model import SotopiaModel
from tests.faulty_server import FaultyServer
from tests.pot import Payer, PotModel, QuizModel


def test_a_run_is_counted_by_purpose_and_priced() -> None:
    found = estimate_cost(PotModel, 3, n_agents=2, llm="gpt-4o-mini", rng=1, reply_tokens=50)
    assert (found.steps, found.decisions, found.total.requests) == (3, 6, 6)
    assert list(found.by_purpose) == ["decide"]
    assert found.total.max_dollars == pytest.approx(price("gpt-4o-mini", found.total.prompt_tokens, 6 * 50))
    assert found.to_json()["total"]["requests"] == 6


def test_a_batch_costs_half() -> None:
    alone, together = (
        estimate_cost(PotModel, 1, llm="gpt-4o-mini", rng=1, batch=batch).total for batch in (False, True)
    )
    assert alone.dollars
    assert alone.max_dollars
    assert together.dollars == pytest.approx(alone.dollars / 2)
    assert together.max_dollars == pytest.approx(alone.max_dollars / 2)


def test_a_model_without_batches_is_said() -> None:
    with pytest.raises(ConfigError, match="cannot be asked in batches"):
        estimate_cost(PotModel, 1, llm="gemini/gemini-2.5-flash", rng=1, batch=True)


def test_nothing_is_sent_and_no_log_is_made(tmp_path) -> None:
    with FaultyServer() as server:
        found = estimate_cost(
            PotModel, 1, llm="m", api_base=server.url, log=tmp_path / "run.sqlite", max_calls=1, rng=1
        )
        assert server.count == 0
    assert found.total.requests == 4
    assert (found.total.dollars, found.unpriced) == (None, (f"m@{server.url}",))
    assert not list(tmp_path.iterdir())


def test_rule_twins_chance_and_people_cost_nothing() -> None:
    llms = {1: "rule", 2: "random", 3: HumanLLM(), "*": "gpt-4o-mini"}
    assert estimate_cost(PotModel, 2, llm=llms, rng=1).total.requests == 2


@pytest.mark.parametrize(("decide", "requests"), [("vote:3", 12), ("plan", 8), ("react", 4)])
def test_strategies_are_counted(decide, requests) -> None:
    design = AgentDesign(decide=decide)
    assert estimate_cost(PotModel, 1, n_agents=4, llm="gpt-4o-mini", design=design, rng=1).total.requests == requests


def test_a_twin_that_does_nothing_is_counted_and_no_fault_of_the_run(monkeypatch, caplog) -> None:
    monkeypatch.setattr(Payer, "rule", lambda self, seen: None)
    assert estimate_cost(PotModel, 1, llm="gpt-4o-mini", rng=1).total.requests == 4
    assert not caplog.records


def test_typed_questions_are_counted_one_by_one() -> None:
    assert estimate_cost(QuizModel, 1, n_agents=2, llm="gpt-4o-mini", rng=1).total.requests == 10


def test_what_cannot_be_made_is_said() -> None:
    with pytest.raises(ConfigError, match="unknown options"):
        estimate_cost(PotModel, 1, llm="gpt-4o-mini", n_agent=2)


def test_judges_are_counted_under_their_purpose() -> None:
    found = estimate_cost(SotopiaModel, 30, llm="gpt-4o-mini", judge="gpt-4o", max_turns=2, n_dyads=1, rng=1)
    assert {"decide", "judge"} <= set(found.by_purpose)


@pytest.mark.parametrize("options", [{"llm": "nobody/knows"}, {"llm": "gpt-4o-mini", "judge": "nobody/knows"}])
def test_a_provider_that_nobody_knows_is_said_whoever_is_to_be_asked(options) -> None:
    with pytest.raises(ConfigError, match="no provider is known for llm='nobody/knows'"):
        estimate_cost(SotopiaModel, 30, max_turns=2, n_dyads=1, rng=1, **options)
