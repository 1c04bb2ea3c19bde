"""The run log: one SQLite file per run, used to resume, replay and analyse it."""

from mesa_llm.runlog.log import RunLog

__all__ = ["RunLog"]
