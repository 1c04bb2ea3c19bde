"""How the parts of the package import each other: few parts, short chains, no circles."""

from functools import cache

import grimp
import pytest


@pytest.fixture(scope="module")
def parts() -> dict[str, frozenset[str]]:
    """Name of each module or package directly under `mesa_llm` → those that it imports, also for their types alone."""
    graph = grimp.build_graph("mesa_llm", cache_dir=None)
    names = graph.find_children("mesa_llm")
    for name in names:
        if graph.find_children(name):
            graph.squash_module(name)
    return {name: frozenset(graph.find_modules_directly_imported_by(name)) & names - {name} for name in names}


def test_the_package_has_fewer_than_25_parts(parts) -> None:
    assert len(parts) < 25


def test_no_chain_of_imports_among_its_parts_is_longer_than_eight(parts) -> None:
    @cache
    def chain(name: str) -> tuple[str, ...]:
        return (name, *max(map(chain, sorted(parts[name])), key=len, default=()))

    longest = max(map(chain, sorted(parts)), key=len)
    assert len(longest) - 1 <= 8, longest
