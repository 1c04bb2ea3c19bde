"""Moved to `mesa_llm.experiments.runs.sweep`; this name works for one release."""

from mesa_llm._deprecated import moved_module

__getattr__ = moved_module(__name__)
