"""Names of surrogates: in `llm=`, and in the log."""

from __future__ import annotations

PREFIX = "surrogate:"
"""Beginning of a model string that names the file of a surrogate."""

OTHERWISE = "?else="
"""Separates the file in a model string from the language model that is asked outside of what was fitted."""


def file_in(text: str) -> str:
    """Return the file that a model string names, if it names a surrogate; any other text as it is."""
    return text.removeprefix(PREFIX).partition(OTHERWISE)[0] if text.startswith(PREFIX) else text


def with_file(text: str, file: str) -> str:
    """Return a model string of a surrogate with another path of its file; for any other text, that path."""
    if not text.startswith(PREFIX):
        return file
    _, mark, otherwise = text.partition(OTHERWISE)
    return f"{PREFIX}{file}{mark}{otherwise}"


def is_surrogate(name: str) -> bool:
    """Check whether a name in a run log is that of a surrogate alone, which has asked no language model."""
    return name.startswith(PREFIX) and OTHERWISE not in name
