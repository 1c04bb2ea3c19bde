"""Benchmark tasks: published settings of models, their scores, and how far these lie from published ones."""

from mesa_llm.experiments.benchmarks.task import (
    Baseline,
    Measure,
    PublishedError,
    Reference,
    Task,
    find_task,
    find_tasks,
    mean_absolute_error,
    mean_of,
    note_scoring,
    read_reference,
)

__all__ = [
    "Baseline",
    "Measure",
    "PublishedError",
    "Reference",
    "Task",
    "find_task",
    "find_tasks",
    "mean_absolute_error",
    "mean_of",
    "note_scoring",
    "read_reference",
]
