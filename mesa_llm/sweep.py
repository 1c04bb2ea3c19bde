"""Moved to `mesa_llm.experiments.sweep`; the old name works for one release."""

import warnings

from mesa_llm.experiments.sweep import TABLE, Sweep, sweep

__all__ = ["TABLE", "Sweep", "sweep"]

warnings.warn("mesa_llm.sweep is now mesa_llm.experiments.sweep", DeprecationWarning, stacklevel=2)
