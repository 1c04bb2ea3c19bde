"""Agent-based models whose agents think with a language model, on Mesa.

Importing this package loads nothing else: each public name is fetched from its module when it is first used. The names
are listed in `__init__.pyi`.
"""

from __future__ import annotations

import lazy_loader

__version__ = "1.5.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
