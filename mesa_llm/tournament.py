"""Moved to `mesa_llm.experiments.tournament`; the old name works for one release."""

import warnings

from mesa_llm.experiments.tournament import *  # noqa: F403

warnings.warn("mesa_llm.tournament is now mesa_llm.experiments.tournament", DeprecationWarning, stacklevel=2)
