"""The run log: one SQLite file per run, from which the run is resumed, replayed and read."""

from mesa_llm.runlog.log import RunLog

__all__ = ["RunLog"]
