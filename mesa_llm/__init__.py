"""Agent-based models whose agents think with a language model, on Mesa.

Importing this package loads nothing else: each public name is fetched from its module when it is first used. The names
are listed in `__init__.pyi`.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

from mesa_llm._deprecated import deprecated_name

__version__ = "1.1.0"

_fetch, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Fetch a public name from its module."""
    return _fetch(name) if name in __all__ else deprecated_name(__name__, name)
