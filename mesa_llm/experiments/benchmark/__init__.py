"""Benchmark tasks: published settings of models, their scores, and how far these lie from published ones."""

from mesa_llm.experiments.benchmark.task import (
    Measure,
    PublishedError,
    Reference,
    Task,
    find_task,
    find_tasks,
    mean_absolute_error,
    mean_of,
)

__all__ = [
    "Measure",
    "PublishedError",
    "Reference",
    "Task",
    "find_task",
    "find_tasks",
    "mean_absolute_error",
    "mean_of",
]
