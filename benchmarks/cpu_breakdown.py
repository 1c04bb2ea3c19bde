"""CpuBreakdown of processor time by part of a run, timed on single objects without changing a class of the library."""

from __future__ import annotations

import inspect
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from typing import Any

REST = "rest"
"""Name of the part for all other time."""


class CpuBreakdown:
    """A stopwatch for several parts: processor time goes to the innermost part that runs.

    Each change of part reads the clock of the process once, which itself takes about a microsecond.
    """

    def __init__(self, closed: tuple[str, ...] = ()) -> None:
        """Start with all times at 0.

        Args:
            closed: Parts that include the time of everything they call.
        """
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._closed = closed
        self._part, self._since = REST, time.process_time()
        self._wrapped: dict[Any, Any] = {}
        self._kinds: dict[type, type] = {}

    def reset(self) -> None:
        """Set all times to 0."""
        self.seconds.clear()
        self._since = time.process_time()

    def read(self) -> dict[str, float]:
        """Return the share of each part, from 0 to 1."""
        self._turn_to(self._part)
        total = sum(self.seconds.values())
        return {part: seconds / total for part, seconds in self.seconds.items()} if total else {}

    def wrapped(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function or bound method that counts as a part; the same one for each call."""
        if function in self._wrapped:
            return self._wrapped[function]

        @wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            outer = self._part
            if outer == part or outer in self._closed:
                return function(*args, **kwargs)
            self._turn_to(part)
            try:
                return function(*args, **kwargs)
            finally:
                self._turn_to(outer)

        return self._wrapped.setdefault(function, watched)

    def watch_method(self, part: str, owner: Any, name: str) -> None:
        """Count one method of one object as a part."""
        setattr(owner, name, self.wrapped(part, getattr(owner, name)))

    def watch(self, owner: Any, part_of: Callable[[str], str | None]) -> None:
        """Count the public methods of one object as parts, by their names; it gets a class of its own.

        An own class, since tools are found in the class of a world, and not in the world.

        Args:
            owner: The object.
            part_of: Function from a method's name to its part; None: the part of the caller.
        """
        kind = type(owner)
        if kind in self._kinds.values():
            return
        if kind not in self._kinds:
            methods = {name: method for name, method in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}
            watched = {name: self.wrapped(part, method) for name, method in methods.items() if (part := part_of(name))}
            self._kinds[kind] = type(kind.__name__, (kind,), watched)
        owner.__class__ = self._kinds[kind]

    def _turn_to(self, part: str) -> None:
        now = time.process_time()
        self.seconds[self._part] += now - self._since
        self._part, self._since = part, now
