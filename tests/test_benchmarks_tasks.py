"""The benchmark of tasks asks an endpoint whose replies fit, and holds each task to the plain engine."""

import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from mesa_llm.experiments.benchmarks import find_task

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def program(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return SimpleNamespace(**{name: importlib.import_module(name) for name in ("mock_server", "measurement", "tasks")})


@pytest.mark.parametrize("name", ["psychobench", "auction_arena"])
def test_no_decision_fails_at_the_endpoint(name, program) -> None:
    with program.mock_server.mock_server(program.mock_server.Behaviour(fits=True)) as base:
        measurement = program.measurement.Measurement("task", base=base, concurrency=64)
        tasks = program.tasks
        with tasks.access_of(measurement) as access, tasks.model_of(find_task(name).as_quick(), access) as model:
            model.step()
            assert (model.usage.failures, model.usage.calls > 0) == (0, True)


def test_a_task_is_held_to_the_plain_engine_of_its_width(program) -> None:
    def reading(us: float, **counts):
        return [{"cpu_s": us / 1e6 * 100, "decisions": 100, "requests": 100, "failures": 0, **counts}]

    costs = {1: 1000.0, 3: 800.0, 10: 500.0, 30: 400.0, 100: 300.0}
    readings = {program.tasks.plain(width): reading(us) for width, us in costs.items()}
    readings |= {"narrow": reading(1200.0, stages=80), "broad": reading(600.0, stages=1)}
    assert program.tasks.times_plain(readings, "narrow") == pytest.approx(1200 / 940)  # 1.25 at once
    assert program.tasks.times_plain(readings, "broad") == pytest.approx(2)
    verdicts = [threshold.verdict for threshold in program.tasks.thresholds(["narrow", "broad"], readings, {})]
    assert verdicts == ["met", "missed"]
