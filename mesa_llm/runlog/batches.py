"""Batches of a run that a provider works on, written down so that a stopped run collects them when it is resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mesa_llm.runlog.log import RunLog

BATCHES = "batches"
"""Manifest key: the batches of a run, in the order in which they were created."""


class OpenBatches:
    """The batches in a run log whose replies are not recorded yet.

    Attributes:
        is_kept: Whether the log is a file.
    """

    def __init__(self, runlog: RunLog) -> None:
        """Read the batches of a run log.

        Args:
            runlog: The run log.
        """
        self.is_kept = runlog.path is not None
        self._runlog = runlog
        self._batches = batches_in(runlog.manifest)
        self._open = {
            (base, key): batch_id
            for batch_id, base, keys in map(_fields, self._batches)
            for key in keys  # a later batch holds what an earlier one has lost
        }

    def batch_of(self, key: str, base: str) -> str | None:
        """Return the last batch at an address that holds a request and is not collected yet.

        Args:
            key: Key of the request.
            base: Base URL, without secrets.
        """
        return self._open.get((base, key))

    def add(self, batch_id: str, base: str, keys: Sequence[str]) -> None:
        """Write down a batch that was created.

        Args:
            batch_id: Its id.
            base: Base URL at which it was created, without secrets.
            keys: Keys of its requests.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        self._batches.append({"id": batch_id, "at": base, "requests": len(keys), "keys": list(keys)})
        self._open.update({(base, key): batch_id for key in keys})
        self._runlog.note(BATCHES, self._batches)

    def collect(self, batch_ids: Sequence[str]) -> None:
        """Note that all replies of some batches are recorded; their requests need not be listed any more.

        Args:
            batch_ids: Ids of the batches.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        collected = frozenset(batch_ids)
        self._open = {place: batch_id for place, batch_id in self._open.items() if batch_id not in collected}
        self._batches = [
            {name: value for name, value in batch.items() if name != "keys" or batch["id"] not in collected}
            for batch in self._batches
        ]
        self._runlog.note(BATCHES, self._batches)


def keys_in_batches(runlog: RunLog) -> frozenset[str]:
    """Return the keys of requests in batches that are not collected yet; none if differing requests may be sent."""
    if runlog.path is None or runlog.mode != "record" or runlog.may_differ:
        return frozenset()
    return frozenset(key for batch in batches_in(runlog.manifest) for key in _fields(batch)[2])


def batches_in(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the batches of a manifest, which may be damaged: id, address (`at`), number of requests, and, until they
    are collected, the keys of these."""
    recorded = manifest.get(BATCHES)
    batches = cast("list[Any]", recorded) if isinstance(recorded, list) else []
    return [cast("dict[str, Any]", batch) for batch in batches if isinstance(batch, dict) and "id" in batch]


def _fields(batch: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    keys = batch.get("keys")
    return (
        str(batch["id"]),
        str(batch.get("at")),
        list(map(str, cast("list[Any]", keys))) if isinstance(keys, list) else [],
    )
