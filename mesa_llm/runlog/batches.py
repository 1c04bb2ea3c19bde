"""Batches of a run that a provider works on, written down so that a stopped run collects them when it is resumed."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mesa_llm.errors import ConfigError
from mesa_llm.records import BatchIntent, Usage
from mesa_llm.runlog.queries import BATCHES, batches_in, open_in
from mesa_llm.text import counted

if TYPE_CHECKING:
    from mesa_llm.runlog.log import RunLog


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
        self._open: dict[tuple[str, str], str] = {}  # address and key → id
        self._intents: dict[tuple[str, str], dict[str, Any]] = {}  # the same → batch whose id is not known
        for place, batch in open_in(self._batches, runlog).items():
            if "id" in batch:
                self._open[place] = batch["id"]
            else:
                self._intents[place] = batch
        self._unclaimed = {*self._open.values(), *(batch["mark"] for batch in self._intents.values())}

    @property
    def may_ask_again(self) -> bool:
        """Whether requests may be sent again that may have been billed."""
        return self._runlog.may_differ

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
        batch = next(batch for batch in self._batches if _name_of(batch) in self._unclaimed)
        raise ConfigError(
            f"the run log names batch {_name_of(batch)} with {counted(batch['requests'], 'request')} that this run "
            "does not make: the prompt, the code or a version has changed. To send new requests from here on, give "
            "--ask-again (in Python ask_again=True)"
        )

    def intent_of(self, key: str, base: str) -> BatchIntent | None:
        """Return the intent of the last batch at an address that holds a request, if its id is not known.

        Args:
            key: Key of the request.
            base: Base URL, without secrets.
        """
        batch = self._intents.get((base, key))
        if batch is None or self._runlog.may_differ:
            return None
        self._unclaimed.discard(batch["mark"])
        return self._intent(batch)

    def _intent(self, batch: Mapping[str, Any]) -> BatchIntent:
        known = frozenset(str(other["id"]) for other in self._batches if "id" in other)
        keys = frozenset(map(str, batch["keys"]))
        return BatchIntent(batch["mark"], int(batch["requests"]), float(batch["since"]), known, keys)

    def begin(self, mark: str, base: str, expected: Mapping[str, tuple[str, Usage]]) -> BatchIntent:
        """Write down a batch that is about to be created; it is on disk when this returns.

        Args:
            mark: What the batch is marked with.
            base: Base URL at which it is created, without secrets.
            expected: Key of each request → its model, and what it is taken to cost until its reply is there.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        taken: dict[str, Usage] = {}
        for model, usage in expected.values():
            taken[model] = taken.get(model, Usage()) + usage
        batch: dict[str, Any] = {
            "mark": mark,
            "at": base,
            "requests": len(expected),
            "since": clock.time(),
            "keys": list(expected),
        }
        batch["taken"] = {
            model: {"prompt_tokens": usage.prompt_tokens, "dollars": usage.dollars} for model, usage in taken.items()
        }
        self._batches.append(batch)
        self._note()
        return self._intent(batch)

    def _note(self) -> None:
        """Write down all batches, and wait until they are on the disk."""
        self._runlog.note(BATCHES, self._batches)
        self._runlog.sync()

    def add(self, mark: str, batch_id: str | None) -> None:
        """Write down the id of such a batch.

        Args:
            mark: What the batch is marked with.
            batch_id: Its id; None: it was not created.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        (batch,) = (batch for batch in self._batches if batch.get("mark") == mark)
        index = self._batches.index(batch)
        names = ("at", "requests", "keys", "taken")
        created = {"id": batch_id, **{name: batch[name] for name in names if name in batch}}
        self._batches[index : index + 1] = [] if batch_id is None else [created]
        self._intents = {place: other for place, other in self._intents.items() if other is not batch}
        if batch_id is not None:
            self._open.update({(batch["at"], key): batch_id for key in batch["keys"]})
        self._note()

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
            {name: batch[name] for name in batch if name not in ("keys", "taken") or batch.get("id") not in collected}
            for batch in self._batches
        ]
        self._runlog.note(BATCHES, self._batches)


def keys_in_batches(runlog: RunLog) -> frozenset[str]:
    """Return the keys of requests in batches that are not collected yet; none if differing requests may be sent."""
    if runlog.path is None or runlog.mode != "record" or runlog.may_differ:
        return frozenset()
    return frozenset(key for _, key in open_in(batches_in(runlog.manifest), runlog))


def _name_of(batch: Mapping[str, Any]) -> str:
    return str(batch.get("id", batch.get("mark")))
