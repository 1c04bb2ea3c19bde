"""The benchmark of worlds measures what it says, and says what it has not measured."""

import importlib
import json
import sys
from pathlib import Path

import pytest

from tests.processes import run

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


SUBJECTS = [f"world:{name}" for name in ("auction", "economy", "exchange", "macro", "market", "social")]
SUBJECTS += [f"model:{name}" for name in ("auction_arena", "econ_agent", "economy", "market", "stock_agent")]
"""Worlds, and models with their rule twins, whose steps are held to grow no faster than the number of inhabitants."""


@pytest.fixture(scope="module")
def points():
    command = [BENCHMARKS / "worlds.py", "--only", "world:market", "model:market", "--json"]
    done = run(*command, "--sizes", "3", "6", "1000000", "--seconds", "3")
    assert done.returncode == 0, done.err
    return json.loads(done.out)


@pytest.fixture
def breakdown(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("cpu_breakdown").CpuBreakdown(closed=("collector",))


def busy(loops: int = 20_000) -> int:
    return sum(range(loops))


class Place:
    def look(self) -> int:
        return busy()


def test_every_number_of_inhabitants_has_a_point(points) -> None:
    assert [point["agents"] for point in points] == [3, 6, 1_000_000] * 2


def test_small_ones_are_repeated_three_times(points) -> None:
    assert {len(point["steps_per_s"]) for point in points if point["agents"] < 10} == {3}


def test_what_takes_too_long_is_reported_and_not_run(points) -> None:
    assert {point["reason"] for point in points if point["agents"] == 1_000_000} == {"not run: would take > 3 s"}


def test_shares_of_a_model_add_up_to_all_of_its_time(points) -> None:
    breakdown = next(point["breakdown"] for point in points if point["kind"] == "model")
    assert set(breakdown) == {"engine", "twin", "world", "collector", "rest"}
    assert sum(breakdown.values()) == pytest.approx(1)


def calls_of(function) -> int:
    """Count the calls, Python's and C's, that a function makes."""
    n_calls = [0]

    def count(frame: object, event: str, argument: object) -> None:
        n_calls[0] += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return n_calls[0]


def work_of(kind: str, name: str, n: int) -> int:
    """Count the calls of a cycle, after one that is not fetch_counts."""
    scaling = importlib.import_module("scaling")
    subject = scaling.made(scaling.Plan(kind, name, (n,), 1.0, 3), n)
    subject.step()
    return calls_of(lambda: [subject.step() for _ in range(subject.cycle)])


@pytest.mark.parametrize("kind_and_name", SUBJECTS)
def test_work_grows_with_the_number_of_inhabitants_and_not_with_its_square(kind_and_name, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    kind, name = kind_and_name.split(":")
    few, many = work_of(kind, name, 35), work_of(kind, name, 105)
    assert many < 3 * 1.4 * few


def test_time_goes_to_the_innermost_part(breakdown) -> None:
    place = Place()
    breakdown.watch(place, lambda _: "world")
    breakdown.reset()
    breakdown.wrapped("engine", place.look)()
    assert breakdown.seconds["world"] > breakdown.seconds["engine"]


def test_a_closed_part_keeps_the_time_of_what_it_calls(breakdown) -> None:
    place = Place()
    breakdown.watch(place, lambda _: "world")
    breakdown.wrapped("collector", place.look)()
    assert set(breakdown.read()) == {"collector", "rest"}


def test_watching_one_object_leaves_its_class_alone(breakdown) -> None:
    before = dict(vars(Place))
    breakdown.watch(Place(), lambda _: "world")
    assert dict(vars(Place)) == before
