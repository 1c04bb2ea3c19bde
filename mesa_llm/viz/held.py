"""Lets any component read a model safely, also Mesa's own, which know of no other thread.

A page is drawn by whichever thread comes first: the ticker, or the one of a click. What the click's thread draws, the
ticker does not hold still.
"""

from __future__ import annotations

from typing import Any

from reacton.core import ComponentFunction, Element
from solara.core import component

from mesa_llm.model import LLMModel
from mesa_llm.viz.gate import steady


def held(made: Any, model: LLMModel) -> None:
    """Place what a component made, so that its body runs only while the model stands still.

    Args:
        made: The element of a component; anything else places itself.
        model: What its body may read.
    """
    if isinstance(made, Element) and isinstance(made.component, ComponentFunction):
        _Held(made, model).key(f"{made.component.f.__module__}.{made.component.f.__qualname__}")


@component
def _Held(made: Any, model: LLMModel) -> Any:
    with steady(model):
        return made.component.f(*made.args, **made.kwargs)
