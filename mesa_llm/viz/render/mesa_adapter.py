"""Read any Mesa model, including plain ones whose agents got minds by `Mind.enter`.

A plain model gets its engine when an agent first thinks, or by `connect`. Reading it here never connects it: the seed
of a run's requests depends on when its model is connected.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from mesa_llm.engine.engine import Engine
from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.runlog.log import RunLog


def runlog_of(model: Any) -> RunLog | None:
    """Return the run log of a Mesa model; None if no agent of a plain one has thought yet.

    Args:
        model: The model.
    """
    engine = Engine.of(model)
    return None if engine is None else engine.runlog


def has_decided(model: Any, agent_id: int) -> bool:
    """Check whether a run log holds a decision of an agent, which may have left its model.

    Args:
        model: The model.
        agent_id: Mesa `unique_id` of the agent.
    """
    runlog = runlog_of(model)
    with suppress(ConfigError):  # Reset may just have closed it
        return runlog is not None and next(runlog.rows("decisions", agent_id), None) is not None
    return False


def steps_over(model: Any) -> int:
    """Return the number of finished steps; of a plain model, an unfinished one is included.

    Args:
        model: The model.
    """
    return model.now - 1 if isinstance(model, LLMModel) else int(model.time)


def require_llm_model(model: object, name: str) -> None:
    """Raise unless a page can show a model.

    Args:
        model: A model, or a class of models.
        name: Name of the component or page.

    Raises:
        ConfigError: If it is a plain Mesa model.
    """
    kind = model if isinstance(model, type) else type(model)
    if not issubclass(kind, LLMModel):
        raise ConfigError(
            f"LLMPage needs an LLMModel, and {name} makes a plain Mesa model: show it with Mesa's SolaraViz and the "
            "components of mesa_llm.viz (docs/pages.md has an example), or make it an LLMModel"
        )
