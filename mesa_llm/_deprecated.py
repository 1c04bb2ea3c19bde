"""Names of the last release, which warn for one release; and those in old run logs, which are read as the new ones."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

MODULES = {
    "models": "mesa_llm_models",
    "models.shachi.carry": "mesa_llm_models.shachi.memory_transfer",
    "mesa_llm.benchmark": "mesa_llm.experiments.benchmarks",
    "mesa_llm.engine.aliases": "mesa_llm.engine.reading.aliases",
    "mesa_llm.engine.answers": "mesa_llm.engine.reading.answers",
    "mesa_llm.engine.coercion": "mesa_llm.engine.reading.coercion",
    "mesa_llm.engine.parsing": "mesa_llm.engine.reading.parsing",
    "mesa_llm.engine.prose": "mesa_llm.engine.reading.prose",
    "mesa_llm.engine.reasoning": "mesa_llm.engine.reading.reasoning",
    "mesa_llm.engine.tool_calls": "mesa_llm.engine.reading.tool_calls",
    "mesa_llm.experiments.agreement": "mesa_llm.experiments.people.agreement",
    "mesa_llm.experiments.answers": "mesa_llm.experiments.people.answers",
    "mesa_llm.experiments.arms": "mesa_llm.experiments.runs.arms",
    "mesa_llm.experiments.audit": "mesa_llm.experiments.audits",
    "mesa_llm.experiments.benchmark": "mesa_llm.experiments.benchmarks",
    "mesa_llm.experiments.branch": "mesa_llm.experiments.runs.branch",
    "mesa_llm.experiments.distributions": "mesa_llm.experiments.people.distributions",
    "mesa_llm.experiments.posterior": "mesa_llm.experiments.calibration.posterior",
    "mesa_llm.experiments.prediction_powered": "mesa_llm.experiments.people.prediction_powered",
    "mesa_llm.experiments.recordings": "mesa_llm.experiments.runs.recordings",
    "mesa_llm.experiments.runner": "mesa_llm.experiments.runs.runner",
    "mesa_llm.experiments.sensitivity": "mesa_llm.experiments.calibration.sensitivity",
    "mesa_llm.experiments.study": "mesa_llm.experiments.runs.study",
    "mesa_llm.experiments.survey_comparison": "mesa_llm.experiments.people.survey",
    "mesa_llm.experiments.sweep": "mesa_llm.experiments.runs.sweep",
    "mesa_llm.experiments.target": "mesa_llm.experiments.calibration.target",
    "mesa_llm.llm.batches.waiting": "mesa_llm.llm.waiting",
    "mesa_llm.llm.openai.truncation": "mesa_llm.llm.openai.truncation_detector",
    "mesa_llm.llm.providers": "mesa_llm.llm.plugins",
    "mesa_llm.sweep": "mesa_llm.experiments.runs.sweep",
    "mesa_llm.tournament": "mesa_llm.experiments.tournament",
    "mesa_llm.viz.render.charts": "mesa_llm.charts.chart",
    "mesa_llm.viz.render.scenes": "mesa_llm.charts.scenes",
    "mesa_llm.viz.render.style": "mesa_llm.charts.style",
    "mesa_llm.viz.social": "mesa_llm_models.social.components",
    "mesa_llm.worlds.auction": "mesa_llm_models.auction_arena.world",
    "mesa_llm.worlds.beliefs": "mesa_llm_models.social.beliefs",
    "mesa_llm.worlds.economy": "mesa_llm_models.economy.world",
    "mesa_llm.worlds.exchange": "mesa_llm_models.stock_agent.world",
    "mesa_llm.worlds.macro": "mesa_llm_models.econ_agent.world",
    "mesa_llm.worlds.market": "mesa_llm_models.market.world",
    "mesa_llm.worlds.questionnaire": "mesa_llm.questionnaire",
    "mesa_llm.worlds.room": "mesa_llm_models.discussion.world",
    "mesa_llm.worlds.social": "mesa_llm_models.social.world",
    "mesa_llm.worlds.stances": "mesa_llm_models.social.stances",
}
"""Modules → where they are now, for run logs that name them; the modules inside a package move with it."""

NAMES = {
    "mesa_llm.experiments.study:Findings": "mesa_llm.experiments.runs.study:StudyFindings",
    "mesa_llm.experiments.study:cell_text": "mesa_llm.experiments.findings:cell_text",
    "mesa_llm.experiments.study:comparison_cells": "mesa_llm.experiments.findings:comparison_cells",
    "mesa_llm.experiments.study:estimate_cells": "mesa_llm.experiments.findings:estimate_cells",
    "mesa_llm.experiments.study:Value": "mesa_llm.experiments.findings:Value",
    "mesa_llm.experiments.sweep:LAST": "mesa_llm.experiments.runs.run:LAST",
    "mesa_llm.experiments.sweep:SweepJob": "mesa_llm.experiments.runs.run:Run",
}
"""Names in these modules → what they are now, where that is not the same name in the module that moved."""

FAILURES = {"Absent": "HumanTimeout", "ServerTrouble": "ServerError"}
"""Kinds of failure in run logs → what they are called now."""

_OBJECT = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_][\w.<>]*)")


def moved_module(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that has moved, which warns and fetches the name from where it is now.

    Args:
        module: Name that the module had.
    """

    def fetch(name: str) -> Any:
        if name.startswith("__"):  # what Python asks every module for
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        now, _, new = NAMES.get(f"{module}:{name}", f"{MODULES[module]}:{name}").partition(":")
        warnings.warn(f"{module} is now {now}", DeprecationWarning, stacklevel=2)
        return getattr(import_module(now), new)

    return fetch


def keep_moved_modules(package: str) -> None:
    """Keep the names of modules that have moved inside a package, without files that would hide names of the package.

    Args:
        package: Name of the package.
    """
    for old in MODULES:
        if old.startswith(f"{package}."):
            module = sys.modules.setdefault(old, ModuleType(old))
            vars(module)["__getattr__"] = moved_module(old)


def current_name(name: str) -> str:
    """Return the `module:name` under which an object that a run log names is found now."""
    match = _OBJECT.fullmatch(name)
    if match is None:
        return name
    module = match["module"]
    old = max((old for old in MODULES if module == old or module.startswith(f"{old}.")), key=len, default="")
    return f"{MODULES[old]}{module.removeprefix(old)}:{match['name']}" if old else name


def first_name(name: str) -> str:
    """Return the `module:name` that an object had first, by which files of earlier versions were named."""
    module, colon, qualname = name.partition(":")
    now = max((now for now in MODULES.values() if f"{module}.".startswith(f"{now}.")), key=len, default="")
    old = next((old for old, moved in MODULES.items() if moved == now), "")
    return f"{old}{module.removeprefix(now)}{colon}{qualname}" if now else name


def with_current_names(recorded: Any) -> Any:
    """Return a JSON value of a run log with the objects that it names under their present names."""
    match recorded:
        case str():
            return current_name(recorded)
        case list():
            return [with_current_names(item) for item in recorded]
        case dict():
            return {key: with_current_names(value) for key, value in recorded.items()}
        case _:
            return recorded
