"""States of a model after earlier prompts, so that each conversation is read on from where it was.

A state is saved before anything is written after its prompt, and so holds nothing that was read one token at a time;
see `prefix`. Whatever is kept, a reply is the same: only the time that it takes depends on it.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import shutil
import tempfile
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from mesa_llm.llm.local.prefix import MIN_FRESH, MIN_KEPT, Messages, beginning, flat, n_common

logger = logging.getLogger(__name__)

SHARED_MEMORY = Path("/dev/shm")
"""Folder of files in memory, where there is one."""

MIN_ROOM = 256 << 20
"""Minimum free space of that folder, in bytes; with less, states are kept in the folder of temporary files."""

ROOM_SHARE = 8
"""States may take an eighth of the free space of their folder."""

MAX_ROOM = 2 << 30
"""Maximum size of all states, in bytes."""

TIMEOUT_S = 60.0
"""Maximum number of seconds until a state is saved or restored."""


@dataclass(frozen=True, slots=True)
class State:
    """A state of the model after a prompt."""

    messages: Messages
    """The prompt."""

    text: str
    """The prompt as one text."""

    file: str
    """Name of the file that holds the state; empty: it is not saved."""

    n_bytes: int
    """Size of the file."""


class Conversations:
    """The states of one model."""

    def __init__(self, server: Any, folder: Path | None) -> None:
        """Start without states.

        Args:
            server: llama.cpp's server, with one slot.
            folder: The folder in which it saves states; None: none is saved.
        """
        self._server = server
        self._folder = folder
        self._states: OrderedDict[str, State] = OrderedDict()
        self._slot: State | None = None
        self._is_clean = False
        self._n_bytes = 0
        self._n_saved = 0

    def prepare(self, messages: Messages) -> bool:
        """Bring the cache to where a prompt can be read on; return whether it may be used."""
        text = flat(messages)
        candidates = [*self._states.values(), *([self._slot] if self._slot and not self._slot.file else [])]
        best, n_kept = None, 0
        for state in candidates:
            n = n_common(state.text, text)
            if n > n_kept or (n == n_kept and state is self._slot):
                best, n_kept = state, n
        if best is None or n_kept < MIN_KEPT:
            self._slot = None
            return False
        is_whole = n_kept >= len(best.text) - 1  # what was written after it may follow in the new prompt
        if (best is not self._slot or (is_whole and not self._is_clean)) and best.file and not self._restore(best):
            self._slot = None
            return False
        if best.file:
            self._states.move_to_end(best.text)
        self._slot, is_safe = None, bool(best.file) or not is_whole or self._is_clean
        if is_safe and len(text) - n_kept >= MIN_FRESH:
            return True
        cut = beginning(n_kept, messages)
        errors: list[Any] = []
        if cut:
            body = {"messages": cut, "max_tokens": 0, "stream": True, "cache_prompt": True}
            self._server.handle_chat_completions(body, lambda chunk: errors.append(chunk.get("error")))
        return bool(cut) and not any(errors)

    def hold(self, messages: Messages) -> None:
        """Save the state after a prompt that was just read, with nothing written after it."""
        text = flat(messages)
        file, n_bytes = "", 0
        if text in self._states:
            self._slot, self._is_clean = self._states[text], True
            self._states.move_to_end(text)
            return
        if self._folder is not None and len(text) >= MIN_KEPT:
            self._n_saved += 1
            file = f"state{self._n_saved}"
            saved = self._act("save", file)
            file, n_bytes = (file, int(saved.get("n_written", 0))) if saved else ("", 0)
        self._slot = state = State(messages, text, file, n_bytes)
        self._is_clean = True
        if file:
            self._states[text] = state
            self._n_bytes += n_bytes
            self._discard_oldest()

    def forget(self) -> None:
        """Forget all states."""
        self._slot = None
        for state in self._states.values():
            self._delete(state)
        self._states.clear()

    def soil(self) -> None:
        """Note that something has been written after the prompt."""
        self._is_clean = False

    def held(self, messages: Messages) -> bool:
        """Restore the state after a prompt exactly; return False if it is not kept."""
        text = flat(messages)
        if self._slot is not None and self._is_clean and self._slot.text == text:
            return True
        state = self._states.get(text)
        if state is None or not self._restore(state):
            return False
        self._states.move_to_end(text)
        self._slot, self._is_clean = state, True
        return True

    def _restore(self, state: State) -> bool:
        if self._act("restore", state.file):
            return True
        if self._states.pop(state.text, None) is not None:
            self._delete(state)
        return False

    def _discard_oldest(self) -> None:
        assert self._folder is not None
        with suppress(OSError):
            room = min(MAX_ROOM, (shutil.disk_usage(self._folder).free + self._n_bytes) // ROOM_SHARE)
            while self._n_bytes > room and len(self._states) > 1:
                _, state = self._states.popitem(last=False)
                self._delete(state)

    def _delete(self, state: State) -> None:
        self._n_bytes -= state.n_bytes
        if self._folder is not None:
            (self._folder / state.file).unlink(missing_ok=True)

    def _act(self, action: str, file: str) -> dict[str, Any]:
        """Have the server save or restore a state; return what it says of it, empty if it failed."""
        return posted(self._server, f"/slots/0?action={action}", {"filename": file})


def begins_replies(server: Any) -> bool:
    """Check whether a model's chat template lets a reply be begun for it, as nearly all do."""
    begun = [{"role": "user", "content": "Yes?"}, {"role": "assistant", "content": "It is"}]
    return str(posted(server, "/apply-template", {"messages": begun}).get("prompt", "")).endswith("It is")


def posted(server: Any, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send a body to llama.cpp's server in this process by HTTP; return its reply, empty if it failed."""
    address = urlsplit(str(server.listening_address))
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        reply = json.loads(response.read())
        if response.status == 200 and isinstance(reply, dict):
            return cast("dict[str, Any]", reply)
        logger.info("llama.cpp refused %s: %s", path, reply)
    except (OSError, http.client.HTTPException, ValueError) as error:
        logger.info("llama.cpp could not be asked for %s: %s", path, error)
    finally:
        connection.close()
    return {}


def states_folder() -> Path | None:
    """Make a folder for the states of a model of this process; None if there is no room.

    Folders of processes that were killed are deleted.
    """
    try:
        has_memory = SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free >= MIN_ROOM
        parent = SHARED_MEMORY if has_memory and os.access(SHARED_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
        _delete_left(parent)
        return Path(tempfile.mkdtemp(prefix=f"mesa-llm-states-{os.getpid()}-", dir=parent))
    except OSError:
        return None


def delete_states(folder: Path, process: int) -> None:
    """Delete the states of a model, unless this process is a fork of the one that made them."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _delete_left(parent: Path) -> None:
    if os.name != "posix":  # elsewhere, nothing tells harmlessly whether a process is alive
        return
    for folder in parent.glob("mesa-llm-states-*-*"):
        process = folder.name.split("-")[3]
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except (OSError, ValueError):
            continue
