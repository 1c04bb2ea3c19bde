"""Charts and drawings of spaces as data: the browser draws them on pages, and Matplotlib everywhere else.

The names are listed in `__init__.pyi`, and each is fetched from its module when it is first used. Only what draws a
picture loads Matplotlib.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
