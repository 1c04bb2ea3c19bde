"""The plots of a report can be read."""

from dataclasses import replace

from mesa_llm.charts import Chart, Panels
from mesa_llm.engine.access import Access
from mesa_llm.experiments.benchmarks.charts import scores_chart
from mesa_llm.experiments.benchmarks.report import report_of
from mesa_llm.experiments.benchmarks.runs import Candidate, PlannedRun, TaskRuns
from tests.experiments.benchmark.pots import POT

RANDOM = Candidate("random", "random")


def test_each_instrument_has_a_scale_of_its_own() -> None:
    names = ("Mood: joy", "Mood: gloom", "Sums: coins", "debt")
    task = replace(POT, score=lambda model: dict.fromkeys(names, 1.0))
    runs = TaskRuns([PlannedRun(task, RANDOM, seed) for seed in (1, 2)], access=Access(), folder=None).run()
    panels = scores_chart(report_of([task], [RANDOM], runs, {}).tasks[0])
    assert isinstance(panels, Panels)
    rows = {chart.title: chart.names for chart in panels.charts if isinstance(chart, Chart)}
    assert rows == {"Mood": ["joy", "gloom"], "Sums": ["coins"], "": ["debt"]}
