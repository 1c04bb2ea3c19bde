"""Draws the thumbnail of a model in the gallery: its network or its measures after a short rule-based run.

`python -m mesa_llm.viz.render.thumbnail NAME …` writes `picture.svg` into the folders of models.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from mesa_llm.charts.palette import COLOURS, PALE
from mesa_llm.charts.scenes import SceneAgent, SpaceScene, outline_text
from mesa_llm.model.model import LLMModel
from mesa_llm.registry import find_model
from mesa_llm.viz.render.figures import numbers_of

WIDTH, HEIGHT, EDGE = 360, 120, 12
"""Size of a thumbnail and its margin, in pixels."""

N_LINES = 3
"""Maximum number of measures drawn."""

STEPS = 24
"""Number of steps to run."""


def thumbnail(model: LLMModel) -> str:
    """Draw a model: its network, or else its most varied measures.

    Args:
        model: A model that has run for a while.

    Returns:
        An SVG file.
    """
    graph = getattr(getattr(model, "grid", None), "G", None)
    svg = _network(graph) if graph is not None and len(graph) else _lines(_moving(numbers_of(model)[0]))
    return svg_file(svg)


def scene_thumbnail(scene: SpaceScene) -> str:
    """Draw a scene: the middle of a grid, which is higher than a thumbnail, or all of a network.

    Args:
        scene: The scene.

    Returns:
        An SVG file.
    """
    across = WIDTH / scene.width
    down = across if scene.cells else HEIGHT / scene.height
    top = max(0.0, (scene.height * down - HEIGHT) / 2)
    n_rows = len(scene.cells) // scene.columns if scene.columns else 0
    fills: dict[str, list[str]] = {}
    for index, colour in enumerate(scene.fills[: n_rows * scene.columns]):
        row, column = divmod(index, scene.columns)
        if -across < row * down - top < HEIGHT:
            place = f"M{column * across:.1f} {row * down - top:.1f}h{across:.1f}v{down:.1f}h-{across:.1f}z"
            fills.setdefault(colour, []).append(place)
    ground = "".join(f'<path d="{"".join(places)}" fill="{colour}"/>' for colour, places in fills.items())
    lines = "".join(
        f"M{x * across:.1f} {y * down - top:.1f}L{to_x * across:.1f} {to_y * down - top:.1f}"
        for x, y, to_x, to_y in scene.ties
    )
    ties = f'<path d="{lines}" stroke="{PALE}" stroke-width="0.7" fill="none"/>' if lines else ""
    agents = "".join(
        _mark(each, each.x * across, each.y * down - top, each.radius * min(across, 2 * down))
        for each in scene.agents
        if -across < each.y * down - top < HEIGHT + across
    )
    return svg_file(ground + ties + agents)


def _mark(each: SceneAgent, x: float, y: float, radius: float) -> str:
    edge = f' stroke="{each.edge}" stroke-width="0.8"' if each.edge else ""
    outline = outline_text(each.shape)
    if not outline:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{each.colour}"{edge}/>'
    edge = edge.replace("0.8", f"{0.8 / max(radius, 0.1):.2f}")
    place = f"translate({x:.1f} {y:.1f}) scale({radius:.2f})"
    return f'<path d="{outline}" transform="{place}" fill="{each.colour}"{edge}/>'


def svg_file(svg: str) -> str:
    """Return an SVG file of the size of a thumbnail.

    Args:
        svg: Its contents.
    """
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#f1f5f9"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{ground}{svg}</svg>\n'


def placeholder(name: str) -> str:
    """Draw a placeholder for a model without a thumbnail: as many dots on a ring as its name has letters.

    Args:
        name: Name of the model.
    """
    count = max(len(name), 3)
    angles = np.linspace(0, 2 * np.pi, count, endpoint=False)
    dots = "".join(
        f'<circle cx="{WIDTH / 2 + 90 * np.cos(a):.0f}" cy="{HEIGHT / 2 + 40 * np.sin(a):.0f}" r="6" '
        f'fill="{COLOURS[index % N_LINES]}"/>'
        for index, a in enumerate(angles)
    )
    return svg_file(dots)


def _network(graph: Any) -> str:
    places = nx.spring_layout(graph, seed=0)
    spots = np.array([places[node] for node in graph])
    low, span = spots.min(axis=0), np.ptp(spots, axis=0).clip(1e-9)
    scaled = (spots - low) / span * (WIDTH - 2 * EDGE, HEIGHT - 2 * EDGE) + EDGE
    at = {node: f"{x:.0f} {y:.0f}" for node, (x, y) in zip(graph, scaled, strict=True)}
    ties = "".join(f"M{at[first]}L{at[second]}" for first, second in graph.edges())
    dots = "".join(
        f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{3 + min(graph.degree(node), 12) / 3:.1f}" fill="{COLOURS[0]}"/>'
        for node, (x, y) in zip(graph, scaled, strict=True)
    )
    return f'<path d="{ties}" stroke="{PALE}" stroke-width="0.7" fill="none"/>{dots}'


def _moving(numbers: dict[str, list[Any]]) -> list[np.ndarray]:
    """Return the measures with the most distinct values."""
    series = [np.array([np.nan if value is None else float(value) for value in each]) for each in numbers.values()]
    varying = [values for values in series if np.isfinite(values).sum() > 2 and np.nanmax(values) > np.nanmin(values)]
    return sorted(varying, key=lambda values: -len(np.unique(values)))[:N_LINES]


def _lines(measures: Sequence[np.ndarray]) -> str:
    lines: list[str] = []
    for colour, values in zip(COLOURS, measures, strict=False):
        scaled = (values - np.nanmin(values)) / np.ptp(values[np.isfinite(values)])
        xs = np.linspace(EDGE, WIDTH - EDGE, len(values))
        points = " ".join(
            f"{x:.0f},{HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * y:.0f}"
            for x, y in zip(xs, scaled, strict=True)
            if np.isfinite(y)
        )
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
    return "".join(lines)


def main() -> None:
    """Write the thumbnails of the models named on the command line."""
    for name in sys.argv[1:]:
        entry = find_model(name)
        model = entry.load()(rng=1)
        for _ in range(STEPS):
            model.step()
        Path(str(resources.files(entry.package))).joinpath("picture.svg").write_text(thumbnail(model), encoding="utf-8")
        model.close()


if __name__ == "__main__":
    main()
