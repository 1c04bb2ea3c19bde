"""Estimated cost of the first steps of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from mesa_llm.model.cost_estimate import Cost, CostEstimate, estimate_cost
from mesa_llm.text import counted
from mesa_llm.viz.render.markup import fault_text
from mesa_llm.viz.session.run_settings import WITHOUT_TEXT, ModelFactory, RunSettings, accepts


class CostEstimator:
    """Estimates costs in threads of its own, without sending any request.

    Attributes:
        estimate: The latest estimate; None: none yet.
        steps: Number of steps that are being estimated; 0: none.
        error: Why the estimate failed; empty if it did not.
        version: Counter that rises whenever one of these changes.
    """

    def __init__(self) -> None:
        """Start without an estimate."""
        self.estimate: CostEstimate | None = None
        self.steps = 0
        self.error = ""
        self.version = 0
        self._lock = threading.Lock()
        self._estimate: Callable[[int], CostEstimate] | None = None
        self._hide: Callable[[str], str] = str
        self._is_priced = True

    @property
    def is_wanted(self) -> bool:
        """Whether the run calls language models at all."""
        return self._estimate is not None

    @property
    def is_priced(self) -> bool:
        """Whether prices are known; those of a custom endpoint are not."""
        return self._is_priced

    def take(self, factory: ModelFactory, arguments: Mapping[str, Any], choice: RunSettings) -> None:
        """Switch to a new model; if a provider may charge for it, estimate its first step at once.

        Otherwise wait until asked, as loading the token counter takes a while.

        Args:
            factory: Factory of the model.
            arguments: Its arguments.
            choice: The visitor's settings.
        """
        with self._lock:
            self._hide = choice.hide
            self._is_priced = not choice.endpoint
            self.estimate, self.error, self.steps = None, "", 0
            is_wanted = (
                choice.llm_kind not in WITHOUT_TEXT and accepts(factory, "access") and accepts(factory, "design")
            )
            self._estimate = (lambda steps: estimate_cost(factory, steps, **arguments)) if is_wanted else None
            self.version += 1
        if choice.llm_kind == "other" and self._is_priced:
            self.estimate_steps(1)

    def estimate_steps(self, steps: int) -> None:
        """Estimate the cost of the first steps.

        Args:
            steps: Number of steps.
        """
        with self._lock:
            if self._estimate is None:
                return
            self.steps, self.error = steps, ""
            self.version += 1
            arguments = (self._estimate, steps, self._hide)
        threading.Thread(target=self._work, args=arguments, name="mesa-llm-preview", daemon=True).start()

    def _work(self, estimate_steps: Callable[[int], CostEstimate], steps: int, hide: Callable[[str], str]) -> None:
        estimate, error = None, ""
        try:
            estimate = estimate_steps(steps)
        except Exception as fault:  # noqa: BLE001 - a model is anybody's code; the page tells what it raised
            error = fault_text("Estimating the cost", fault, hide)
        with self._lock:
            if self._estimate is estimate_steps and self.steps == steps:
                self.estimate, self.error, self.steps = estimate, error, 0
                self.version += 1


def price_of(cost: Cost, *, is_priced: bool) -> str:
    """Describe a cost.

    Args:
        cost: The cost.
        is_priced: Whether prices are known.
    """
    if not is_priced or cost.dollars is None or cost.max_dollars is None:
        return "price unknown"
    if not cost.max_dollars:
        return "free of charge"
    low, high = (
        f"${dollars:,.4f}" if dollars < 0.1 else f"${dollars:,.2f}" for dollars in (cost.dollars, cost.max_dollars)
    )
    return f"about {low}" if low == high else f"{low} to {high}"


def summary(estimate: CostEstimate, *, is_priced: bool) -> str:
    """Summarise an estimate in one sentence.

    Args:
        estimate: The estimate.
        is_priced: Whether prices are known.
    """
    cost = estimate.total
    if not cost.requests:
        return f"{counted(estimate.steps, 'step')}: no language model is called."
    low, high = cost.prompt_tokens + cost.reply_tokens, cost.prompt_tokens + cost.max_reply_tokens
    tokens = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    price = price_of(cost, is_priced=is_priced)
    return f"{counted(estimate.steps, 'step')}: about {counted(cost.requests, 'request')}, {tokens} tokens, {price}."
