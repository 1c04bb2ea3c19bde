"""Files that worlds and studies read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError


def read_json(path: str | Path) -> Any:
    """Read a JSON file.

    Raises:
        ConfigError: If it cannot be opened, or is not JSON; names the file.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be opened: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no readable JSON file: {error}") from error
