"""Decides how much of the last prompt a model may keep in its cache, so that a reply never depends on it.

A prompt that begins as the last one did need not be read again up to where they differ. But llama.cpp multiplies a few
tokens at a time by other code than many, which rounds differently: with the model of 1.5 billion parameters, seven
tokens after a cached prompt gave another reply than eight or more, which gave the reply of a prompt read whole. The
tokens of a reply are written one at a time, so they must not be kept either when they come back in the next prompt.
"""

from __future__ import annotations

from collections.abc import Sequence

MIN_FRESH = 160
"""Minimum number of characters of a prompt that are read again; about 30 tokens, several times what was needed."""

MARGIN = 24
"""Number of characters by which the cache is cut back further, as tokens may end elsewhere."""

MIN_KEPT = 200
"""Minimum number of characters that are worth a request to cut the cache back."""

Messages = Sequence[dict[str, str]]
"""Messages of a prompt, as they are sent."""


def is_kept_safely(last: Messages, messages: Messages) -> bool:
    """Check whether a prompt may be read from where it differs from the last one.

    Args:
        last: Messages of the last prompt; empty: there was none.
        messages: Messages of the prompt.
    """
    before, now = _flat(last), _flat(messages)
    n_common = _n_common(before, now)
    return not before or (n_common < len(before) and len(now) - n_common >= MIN_FRESH)


def beginning(last: Messages, messages: Messages) -> list[dict[str, str]]:
    """Return the beginning of a prompt to which the cache is to be cut back; empty: nothing is worth keeping.

    Args:
        last: Messages of the last prompt.
        messages: Messages of the prompt.
    """
    before, now = _flat(last), _flat(messages)
    n_kept = min(_n_common(before, now), len(now) - MIN_FRESH) - MARGIN
    if n_kept < MIN_KEPT:
        return []
    cut: list[dict[str, str]] = []
    for message in messages:
        length = len(_flat([message]))
        if n_kept < length:
            cut.append({**message, "content": message["content"][: max(0, n_kept - len(message["role"]) - 1)]})
            break
        cut.append(message)
        n_kept -= length
    while cut and cut[-1]["role"] == "assistant":  # it would be continued
        cut.pop()
        if cut:
            cut[-1] = {**cut[-1], "content": cut[-1]["content"][:-MARGIN]}
    return [*cut, {"role": "user", "content": ""}] if cut and cut[-1]["role"] == "system" else cut


def _flat(messages: Messages) -> str:
    return "".join(f"{message['role']}\n{message['content']}\0" for message in messages)


def _n_common(one: str, other: str) -> int:
    """Return the number of characters with which both texts begin."""
    differing = (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))
