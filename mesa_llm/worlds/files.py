"""Files that worlds and studies read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.tables import read_text


def read_json(path: str | Path) -> Any:
    """Read a JSON file.

    Raises:
        ConfigError: If it cannot be opened, or is not JSON. The message names the file.
    """
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not a readable JSON file: {error}") from error
