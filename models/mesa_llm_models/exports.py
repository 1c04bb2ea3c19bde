"""Export recorded runs in the formats of other programs: replay them from their logs, and write them to a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from mesa_llm import ConfigError, LLMModel, RunLog
from mesa_llm.model.recording import Recording

M = TypeVar("M", bound=LLMModel)


def rerun(kind: type[M], log: str | Path, lack: str) -> M:
    """Replay a recorded run from its log, without sending a request.

    Args:
        kind: Class of its model.
        log: The run log.
        lack: Message for a log of another model: what it lacks, and what to do; it ends with the option for the log.

    Raises:
        ConfigError: If it holds a run of another model.
    """
    source = RunLog(log, "read")
    name = str(source.manifest.get("model", ""))
    source.close()
    if not name.endswith(f":{kind.__name__}"):
        raise ConfigError(f"{log} holds no {lack} {log}")
    return cast("M", Recording.read(log).replayed())


def export(module: str, convert: Callable[[str], Any], arguments: Sequence[str]) -> int:
    """Write a recorded run as JSON, as the command of a module.

    Args:
        module: Name of the module.
        convert: Returns the converted run, from the path of a run log.
        arguments: The run log, and the file to write.

    Returns:
        Exit code: 0, or 2 on bad input.
    """

    def write(log: str, file: str) -> None:
        text = json.dumps(convert(log), ensure_ascii=False, indent=1)
        Path(file).write_text(text, encoding="utf-8")

    return export_by(module, write, arguments)


def export_by(module: str, write: Callable[[str, str], None], arguments: Sequence[str]) -> int:
    """Write a recorded run in another format, as the command of a module.

    Args:
        module: Name of the module.
        write: Writes the converted run, given the paths of a run log and of the file.
        arguments: The run log, and the file to write.

    Returns:
        Exit code: 0, or 2 on bad input.
    """
    if len(arguments) != 2:
        sys.stderr.write(f"python -m {module} LOG FILE\n")
        return 2
    try:
        write(*arguments)
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0
