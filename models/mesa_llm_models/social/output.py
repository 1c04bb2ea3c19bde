"""A recorded network in the form of OASIS's database: `python -m mesa_llm_models.social.output LOG FILE`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from mesa_llm import ConfigError
from mesa_llm.model.recording import Recording
from mesa_llm_models.exports import export_by
from mesa_llm_models.social.model import SocialModel
from mesa_llm_models.social.world import write_oasis_database


def database_of_log(log: str | Path, path: str | Path) -> None:
    """Write a recorded network as OASIS's database; it is replayed from its log, without a request.

    Args:
        log: The run log, of the social model or one made of it, such as `oasis`.
        path: SQLite file; an earlier one of this kind is replaced.

    Raises:
        ConfigError: If the log cannot be read or holds no social network, or the file cannot be written.
    """
    model = Recording.read(log).replayed()
    try:
        if not isinstance(model, SocialModel):
            raise ConfigError(f"{log} holds no social network; run one with mesa-llm run social --log {log}")
        write_oasis_database(model.world, path)
    finally:
        model.close()


def main(arguments: Sequence[str]) -> int:
    """Write a recorded network as OASIS's database; see `mesa_llm_models.exports.export_by`."""
    return export_by("mesa_llm_models.social.output", database_of_log, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
