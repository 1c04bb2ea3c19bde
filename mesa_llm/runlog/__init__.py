"""The run log: one SQLite file a run, from which it is resumed, replayed and read."""

from mesa_llm.runlog.log import RunLog

__all__ = ["RunLog"]
