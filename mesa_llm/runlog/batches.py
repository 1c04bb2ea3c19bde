"""Batches of a run that a provider works on, written down so that a stopped run collects them when it is resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mesa_llm.errors import ConfigError
from mesa_llm.runlog.log import RunLog
from mesa_llm.text import counted

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
        self._open = _open_in(self._batches, runlog)
        self._unclaimed = set(self._open.values())

    def batch_of(self, key: str, base: str) -> str | None:
        """Return the last batch at an address that holds a request whose reply is not recorded.

        Args:
            key: Key of the request.
            base: Base URL, without secrets.
        """
        batch_id = self._open.get((base, key))
        self._unclaimed.discard(batch_id or "")
        return batch_id

    def require_claimed(self) -> None:
        """Check that the run has made requests of each batch of an earlier session; else it would pay for both.

        Raises:
            ConfigError: If it has not, and requests may not differ from those of the recording.
        """
        if self._runlog.may_differ or not self._unclaimed:
            return
        batch_id = next(batch["id"] for batch in self._batches if batch["id"] in self._unclaimed)
        requests = counted(list(self._open.values()).count(batch_id), "request")
        raise ConfigError(
            f"the run log names batch {batch_id} with {requests} that this run does not make: the prompt, the code or "
            "a version has changed. To send new requests from here on, give --ask-again (in Python ask_again=True)"
        )

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
    return frozenset(key for _, key in _open_in(batches_in(runlog.manifest), runlog))


def batches_in(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the batches of a manifest, which may be damaged: id, address (`at`), number of requests, and, until they
    are collected, the keys of these."""
    recorded = manifest.get(BATCHES)
    batches = cast("list[Any]", recorded) if isinstance(recorded, list) else []
    return [cast("dict[str, Any]", batch) for batch in batches if isinstance(batch, dict) and "id" in batch]


def _open_in(batches: Sequence[Mapping[str, Any]], runlog: RunLog) -> dict[tuple[str, str], str]:
    """Return address and key of each request without a recorded reply → the last batch that holds it."""
    found: dict[tuple[str, str], str] = {}
    for batch in batches:
        keys = batch.get("keys")
        found |= {(str(batch.get("at")), str(key)): str(batch["id"]) for key in keys} if isinstance(keys, list) else {}
    if not found:
        return {}
    recorded = runlog.recorded_keys()
    return {place: batch_id for place, batch_id in found.items() if place[1] not in recorded}
