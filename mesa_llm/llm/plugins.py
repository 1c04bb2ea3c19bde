"""Language models of other packages: named by a string through the entry-point group `mesa_llm.providers`.

A package declares a function that takes the rest of the string and returns a transport:

    [project.entry-points."mesa_llm.providers"]
    acme = "acme_llm:open_model"

`llm="acme:large"` then calls `open_model("large")`. Only installed packages are looked at, never a name in a file.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.llm.protocol import LLM, require_llm

GROUP = "mesa_llm.providers"
"""The entry-point group."""


@lru_cache(maxsize=1)
def providers() -> dict[str, EntryPoint]:
    """Return the providers of installed packages by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def is_provided(text: str) -> bool:
    """Check whether a model string names a provider of an installed package."""
    name, colon, model = text.strip().partition(":")
    return bool(colon and model) and name.isidentifier() and name in providers()


def open_provided(text: str) -> LLM | None:
    """Open a language model of an installed package.

    Args:
        text: Model string.

    Returns:
        The transport; None for a string that names no such provider.

    Raises:
        ConfigError: If the provider cannot be loaded, or does not open the model.
    """
    if not is_provided(text):
        return None
    name, _, model = text.strip().partition(":")
    point = providers()[name]
    try:
        opened: Any = point.load()(model)
    except ConfigError:
        raise
    except Exception as error:  # it is somebody else's code
        raise ConfigError(f"the provider {name!r} ({point.value}) cannot open {model!r}: {error}") from error
    require_llm(opened)
    return opened
