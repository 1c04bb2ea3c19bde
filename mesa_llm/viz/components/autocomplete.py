"""A list that is searched on the server, so that it may hold any number of agents, posts and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from reacton import ipyvuetify as vuetify
from reacton import use_state
from reacton.ipyvue import use_event
from solara.core import component

MAX_OPTIONS = 50
"""Maximum number of options that are sent to the browser at once."""


class Option(NamedTuple):
    """One thing to pick."""

    value: int
    """Its number."""

    text: str
    """Text that it is listed by."""


Find = Callable[[str, int], Sequence[Option]]
"""Returns the options that match a typed text, up to a maximum number; all match an empty text."""


@component
def Autocomplete(label: str, option: Option | None, find: Find, on_pick: Callable[[int], None]) -> None:
    """Let a visitor pick one of many options by searching them on the server.

    Args:
        label: Label of the field.
        option: The present choice; None: none.
        find: Searches the options.
        on_pick: Called with the number of the new choice.
    """
    query, search = use_state("")
    wanted = "" if option is not None and query == option.text else query
    options = list(find(wanted, MAX_OPTIONS))
    if option is not None and option not in options:
        options.insert(0, option)  # the list shows only what is in it
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


def options_in(texts: Iterable[tuple[int, str]], query: str, size: int) -> list[Option]:
    """Search options by number or text: those that begin with the query come first.

    Args:
        texts: Number and text of each option.
        query: The typed text; empty: everything matches.
        size: Maximum number of options.
    """
    query = query.strip().casefold()
    first: list[Option] = []
    second: list[Option] = []
    for value, text in texts:
        folded = text.casefold()
        if folded.startswith(query):
            first.append(Option(value, text))
            if len(first) == size:
                break
        elif query in folded and len(second) < size:
            second.append(Option(value, text))
    return [*first, *second][:size]
