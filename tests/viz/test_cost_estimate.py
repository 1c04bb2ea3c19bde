"""The cost of a run, as a page works it out before anything is paid."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mesa_llm.model.cost_estimate import Cost, CostEstimate
from mesa_llm.viz.session.cost_estimate import summary
from mesa_llm.viz.session.run_settings import RunSettings
from mesa_llm.viz.session.session import PageSession
from tests.browser.apps.village import Hamlet


def wait() -> None:
    """Wait until what is worked out stands; the first time, prices are imported."""
    for thread in threading.enumerate():
        if thread.name == "mesa-llm-preview":
            thread.join(120)


def worked_out(choice: RunSettings) -> PageSession:
    """Open a page, and wait until its preview stands."""
    session = PageSession(Hamlet, choice)
    wait()
    return session


def test_the_first_step_is_worked_out_at_once_and_more_on_demand() -> None:
    session = worked_out(RunSettings("other", model_id="openai/gpt-4o-mini", seed="1"))
    preview = session.cost_estimator
    assert preview.estimate is not None
    assert (preview.estimate.steps, preview.estimate.total.requests) == (1, 4)
    assert summary(preview.estimate, is_priced=preview.is_priced).startswith("1 step: about 4 requests, ")
    before = session.state
    preview.estimate_steps(10)
    wait()
    assert (preview.estimate.steps, preview.estimate.total.requests) == (10, 40)
    assert session.state != before
    assert session.runner is not None
    assert session.runner.model.usage.calls == 0
    session.close()


def test_cost_preview_is_absent_by_rule_and_unpriced_for_typed_endpoints() -> None:
    session = worked_out(RunSettings(seed="1"))
    assert not session.cost_estimator.is_wanted
    session.build(RunSettings("other", model_id="m", api_base="http://127.0.0.1:9/v1", seed="1"))
    session.cost_estimator.estimate_steps(1)
    wait()
    assert session.cost_estimator.estimate is not None
    assert summary(session.cost_estimator.estimate, is_priced=session.cost_estimator.is_priced).endswith(
        "price unknown."
    )
    session.close()


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (Cost(), "2 steps: no language model is called."),
        (Cost(3, 900, 100, 100), "2 steps: about 3 requests, 1,000 tokens, free of charge."),
        (
            Cost(1, 900, 100, 2100, 0.001, 2.5),
            "2 steps: about 1 request, 1,000 to 3,000 tokens, $0.0010 to $2.50.",
        ),
        (Cost(1, 9, 1, 1, None, None), "2 steps: about 1 request, 10 tokens, price unknown."),
    ],
)
def test_a_preview_reads_as_a_sentence(cost: Cost, text: str) -> None:
    purposes: dict[str, Any] = {"decide": cost}
    assert summary(CostEstimate(2, 6, purposes), is_priced=True) == text
