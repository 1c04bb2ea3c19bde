"""What every pattern promises: how its model is made, driven, stopped and gone on with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from mesa_llm import LLMModel, Reply, Request, ScriptedLLM, Stopped
from mesa_llm.testing import honest_reply

Script = Callable[[Request], Any]


def run_out(model: LLMModel, steps: int) -> None:
    """Run a model until it is done, or has made its steps."""
    model.run_until(steps)


@dataclass(frozen=True)
class Pattern:
    """A way of using this package that many systems of the field have in common."""

    kind: type[LLMModel]
    """The model."""

    labels: frozenset[str]
    """What its agents are asked, by the labels of their observations."""

    steps: int = 3
    """Steps that it runs, if it does not end earlier."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Its own parameters."""

    rng: int = 5
    """Its seed."""

    second: str = ""
    """Name of the parameter that takes a second language model; empty: none does."""

    drive: Callable[[Any, int], None] = run_out
    """Makes the steps."""

    def made(self, script: Script = honest_reply, delay_s: Any = 0.0, **options: Any) -> Any:
        """Make the model, with all its language models played by one script."""
        llms: dict[str, Any] = {"llm": ScriptedLLM(script, delay_s)}
        if self.second:
            llms[self.second] = ScriptedLLM(script, delay_s, name=f"the {self.second}")
        return self.kind(rng=self.rng, **{**self.parameters, **llms, **options})

    def run(self, model: Any) -> str:
        """Run the model, going on after every stop, and return its digest."""
        with closing(model):
            while True:
                try:
                    self.drive(model, self.steps)
                    return model.runlog.digest
                except Stopped:
                    continue

    def replayed(self, log: Any) -> Any:
        """Make the model again from the log alone."""
        llms = {"llm": "ScriptedLLM"} | ({self.second: f"the {self.second}"} if self.second else {})
        return self.kind(rng=self.rng, **{**self.parameters, **llms}, log=log, replay=True)


class Witness:
    """An honest script that counts what it is asked, and stops the model at one request."""

    def __init__(self, stop_at: int = 0) -> None:
        self.asked: Counter[str] = Counter()
        self.stop_at = stop_at
        self.model: Any = None

    def __call__(self, request: Request) -> Reply:
        self.asked[request.key] += 1
        if self.asked.total() == self.stop_at:
            self.model.stop()
        return honest_reply(request)
