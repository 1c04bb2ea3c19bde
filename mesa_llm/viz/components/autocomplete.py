"""A field with autocompletion from the server, for any number of agents, posts and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from reacton import ipyvuetify as vuetify
from reacton import use_state
from reacton.ipyvue import use_event
from solara.core import component

MAX_OPTIONS = 50
"""Maximum number of options that are sent to the browser at once."""


class Suggestion(NamedTuple):
    """One suggestion."""

    value: int
    """Its id."""

    text: str
    """Text under which it is listed."""


Find = Callable[[str, int], Sequence[Suggestion]]
"""Returns the options that match a query, up to a maximum number; all match an empty query."""


@component
def Autocomplete(label: str, option: Suggestion | None, find: Find, on_pick: Callable[[int], None]) -> None:
    """Let a visitor pick one of many options by typing.

    Args:
        label: Label of the field.
        option: The selected option; None: none.
        find: Searches the options.
        on_pick: Called with the id of the newly selected option.
    """
    query, search = use_state("")
    wanted = "" if option is not None and query == option.text else query
    options = list(find(wanted, MAX_OPTIONS))
    if option is not None and option not in options:
        options.insert(0, option)  # the field shows only what its list contains
    field = vuetify.Autocomplete(
        label=label,
        items=[{"text": each.text, "value": each.value} for each in options],
        v_model=None if option is None else option.value,
        on_v_model=lambda value: on_pick(value) if type(value) is int else None,
        no_filter=True,
        outlined=True,
        dense=True,
        hide_details=True,
        placeholder="Type to search",
        class_="mesa-llm-pick",
    )

    def type_in(*event: Any) -> None:
        search(str(event[-1] or "")[:200])

    use_event(field, "update:search-input", type_in)


def options_in(texts: Iterable[tuple[int, str]], query: str, size: int) -> list[Suggestion]:
    """Search options: those that begin with the query come first.

    Args:
        texts: Id and text of each option.
        query: The typed text; empty: everything matches.
        size: Maximum number of options.
    """
    query = query.strip().casefold()
    first: list[Suggestion] = []
    second: list[Suggestion] = []
    for value, text in texts:
        folded = text.casefold()
        if folded.startswith(query):
            first.append(Suggestion(value, text))
            if len(first) == size:
                break
        elif query in folded and len(second) < size:
            second.append(Suggestion(value, text))
    return [*first, *second][:size]
