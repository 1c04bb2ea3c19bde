"""Decides how much of earlier prompts a model may keep in its cache, so that a reply never depends on it.

A prompt that begins as an earlier one did need not be read again up to where they differ. But llama.cpp multiplies a
few tokens at a time by other code than many, which rounds differently: with the model of 1.5 billion parameters, seven
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


def beginning(n_common: int, messages: Messages) -> list[dict[str, str]]:
    """Return the beginning of a prompt to which the cache is to be cut back; empty: nothing is worth keeping.

    Args:
        n_common: Number of characters that the cached prompt and the new one share.
        messages: Messages of the new prompt.
    """
    n_kept = min(n_common, len(flat(messages)) - MIN_FRESH) - MARGIN
    if n_kept < MIN_KEPT:
        return []
    cut: list[dict[str, str]] = []
    for message in messages:
        length = len(flat([message]))
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


def flat(messages: Messages) -> str:
    """Return the messages of a prompt as one text, by which prompts are compared."""
    return "".join(f"{message['role']}\n{message['content']}\0" for message in messages)


def n_common(one: str, other: str) -> int:
    """Return the number of characters with which both texts begin."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
