"""Place components safely: only for models that they support, and only while the model is held still."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import solara
from reacton.core import ComponentFunction, Element
from solara.core import component

from mesa_llm.model.model import LLMModel
from mesa_llm.viz.session.rw_lock import steady


def llm_models_only(show: Callable[[LLMModel], Any], name: str = "") -> Callable[[Any], Any]:
    """Wrap a component so that it shows a notice for plain Mesa models.

    Args:
        show: Body of the component, or a function that makes its element.
        name: Name for the notice; empty: the name of `show`.
    """

    @wraps(show)
    def show_or_warn(model: Any) -> Any:
        if isinstance(model, LLMModel):
            return show(model)
        return solara.Warning(
            f"{name or show.__name__} needs an LLMModel, and {type(model).__name__} is a plain Mesa model: make it an "
            "LLMModel (docs/writing_a_model.md), or leave this component out.",
            dense=True,
        )

    return show_or_warn


def place_steady(result: Any, model: Any) -> None:
    """Place the element of a component, including Mesa's own, so that its body runs while the model is held still.

    A page is drawn by whichever thread comes first: the one that refreshes it or that of a click, and the former does
    not hold the model still for the latter.

    Args:
        result: The element of a component; anything else places itself.
        model: The model that its body may read.
    """
    if isinstance(result, Element) and isinstance(result.component, ComponentFunction):
        _Steady(result, model).key(f"{result.component.f.__module__}.{result.component.f.__qualname__}")


@component
def _Steady(result: Any, model: Any) -> Any:
    with steady(model):
        return result.component.f(*result.args, **result.kwargs)
