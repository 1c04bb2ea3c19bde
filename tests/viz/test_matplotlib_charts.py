"""Charts read from Matplotlib figures."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from mesa_llm.charts.chart import Chart, ChartSeries
from mesa_llm.viz.render.matplotlib_charts import charts_in


def plot() -> tuple[Figure, Any]:
    """Make an empty plot."""
    figure = Figure()
    return figure, figure.subplots()


def test_lines_levels_and_bands_keep_their_numbers_names_and_units() -> None:
    figure, axes = plot()
    axes.plot([1, 2, 3], [0.1, None, 0.3], color="#ff0000", label="rate")
    axes.axhline(0.2, color="#00ff00", ls="--")
    axes.fill_between([1, 2, 3], [0, 0, 0], [0.2, 0.3, 0.4], alpha=0.2)
    axes.fill_between([1, 2, 3], [float("nan")] * 3, [float("nan")] * 3)
    axes.set(title=r"What \$5 buys", xlabel="month", ylim=(0, 1))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    (chart,) = charts_in(figure)
    band, rate, level = chart.series
    assert (chart.title, chart.x, chart.unit, chart.high) == ("What $5 buys", "month", "share", 1)
    assert (rate.name, rate.colour, rate.at) == ("rate", "#ff0000", [1, 2, 3])
    assert [point[1] for point in chart.data()["series"][1]["points"]] == [0.1, None, 0.3]
    assert (set(level.values), level.is_dashed) == ({0.2}, True)
    assert (band.low, band.high) == ([0, 0, 0], [0.2, 0.3, 0.4])


def test_named_bars_stand_in_their_order_from_the_top() -> None:
    figure, axes = plot()
    axes.barh(["last", "first"], [1, 2], color=["#111111", "#222222"])
    (chart,) = charts_in(figure)
    assert (chart.names, chart.is_horizontal) == (["first", "last"], True)
    assert dict(zip(chart.series[0].places, chart.series[0].values, strict=True)) == {1: 1, 0: 2}


def test_stacked_areas_are_drawn_as_they_stand() -> None:
    figure, axes = plot()
    axes.stackplot([0, 1], [1, 2], [3, 4], labels=["a", "b"])
    (chart,) = charts_in(figure)
    assert [(each.name, each.kind, each.low, each.high) for each in chart.series] == [
        ("a", "area", [0, 0], [1, 2]),
        ("b", "area", [1, 2], [4, 6]),
    ]


def test_what_a_chart_has_no_place_for_stays_a_picture() -> None:
    figure, axes = plot()
    axes.imshow([[1, 2], [3, 4]])
    assert charts_in(figure) == []
    assert charts_in(Figure(figsize=(2, 2))) == []
    polar = Figure()
    polar.add_subplot(projection="polar")
    assert charts_in(polar) == []


def test_a_chart_drawn_with_matplotlib_is_read_as_it_was() -> None:
    bars = ChartSeries(values=[3, 1], kind="bar", colour="#0072b2", name="coins")
    chart = Chart(title="Coins", series=[bars], names=["Ana", "Bo"], x="who", y="coins")
    (read,) = charts_in(chart.figure())
    assert (read.title, read.names, read.series[0].values, read.series[0].name) == (
        "Coins",
        ["Ana", "Bo"],
        [3, 1],
        "coins",
    )
