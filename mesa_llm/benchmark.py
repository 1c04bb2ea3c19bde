"""Moved to `mesa_llm.experiments.benchmark`; the old name works for one release."""

import warnings

from mesa_llm.experiments.benchmark import *  # noqa: F403

warnings.warn("mesa_llm.benchmark is now mesa_llm.experiments.benchmark", DeprecationWarning, stacklevel=2)
