"""How the parts of the package import each other: few parts, short chains, no circles."""

import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter

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
    imports = {name: frozenset(graph.find_modules_directly_imported_by(name)) for name in names}
    before = {name for name in names if imports[name] == {"mesa_llm._deprecated"}} | {"mesa_llm._deprecated"}
    current = names - before  # without names of earlier releases
    return {name: imports[name] & current - {name} for name in current}


def test_the_package_has_fewer_than_27_parts(parts) -> None:
    assert len(parts) < 27


def test_no_chain_of_imports_among_its_parts_is_longer_than_ten(parts) -> None:
    @cache
    def chain(name: str) -> tuple[str, ...]:
        return (name, *max(map(chain, sorted(parts[name])), key=len, default=()))

    longest = max(map(chain, sorted(parts)), key=len)
    assert len(longest) - 1 <= 10, longest


def test_no_module_imports_itself_by_way_of_others_not_even_for_its_types() -> None:
    graph = grimp.build_graph("mesa_llm", "mesa_llm_models", cache_dir=None)
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()


RUN = """
import sys
import mesa
before = set(sys.modules)
sys.argv = "mesa-llm run boltzmann_wealth --llm rule --steps 3".split()
from mesa_llm.cli.app import app
app(standalone_mode=False)
print("loaded:", *sorted({".".join(name.split(".")[:2]) for name in set(sys.modules) - before}))
"""


def test_run_by_rule_imports_no_provider_page_or_analysis() -> None:
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = done.stdout.rpartition("loaded:")[2].split()
    heavy = {
        "altair",
        "jinja2",
        "litellm",
        "matplotlib",
        "openai",
        "scipy",
        "sklearn",
        "solara",
        "statsmodels",
        "xllamacpp",
    }
    assert heavy & {name.partition(".")[0] for name in names} == set()


WITHOUT = """
import importlib, pkgutil, sys
import mesa, mesa.visualization
from mesa.experimental.scenarios import Scenario
for gone in ("mesa.batchrunner", "mesa.discrete_space.property_layer", "mesa.experimental.devs", "mesa.space"):
    sys.modules[gone] = None
Scenario.__class_getitem__ = None
import concurrent.futures.process, os, platformdirs, signal, uvicorn, solara.server.starlette
for gone in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[gone] = None
for gone in ("fork", "geteuid", "getuid", "killpg", "register_at_fork", "sched_getaffinity", "setsid", "sysconf"):
    delattr(os, gone)
del signal.SIGHUP, signal.SIGKILL
import mesa_llm, mesa_llm_models
for package in (mesa_llm, mesa_llm_models):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""


def test_every_module_can_be_imported_without_what_mesa_4_or_windows_lacks() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
