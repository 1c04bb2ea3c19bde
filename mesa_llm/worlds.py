"""Old name of the worlds, each of which now stands beside its model."""

from mesa_llm._deprecated import keep_moved_modules

keep_moved_modules(__name__)
