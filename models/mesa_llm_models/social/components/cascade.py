"""How a post spreads: its cascade, and its spread compared with other curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import numpy as np
import solara
from mesa.visualization.utils import update_counter
from reacton import use_state
from solara.core import component

from mesa_llm.charts.chart import Chart, ChartSeries
from mesa_llm.charts.palette import COLOURS, GREY
from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.text import counted, one_line
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.components.plots import Plot
from mesa_llm_models.social.components.reader import PickPost, post_to_show, social_world, still
from mesa_llm_models.social.world import SocialWorld, SpreadCurves, read_curves
from mesa_llm_models.social.world.measures import Share

MAX_SHARERS = 300
"""Maximum number of users drawn in a cascade; the first to join are drawn."""

ROOT_COLOUR = COLOURS[1]
"""Colour of the author of a post; those who passed it on have the first of the palette."""

MEASURES = ("Users reached (scale)", "Depth", "Max breadth")
"""Titles of the three curves."""

Curves = Callable[[Any, int], Mapping[str, SpreadCurves]]
"""Returns curves to compare with, by name, for a model and a post id."""

Baselines = Callable[[SpreadCurves], Mapping[str, SpreadCurves]]
"""Returns the predictions of simple rules for a real curve, by name."""

MAX_FILES = 4
"""Maximum number of uploaded files that are plotted at once."""

T = TypeVar("T")

MAX_BYTES = 2_000_000
"""Maximum size of a file, in bytes."""


def root_of(world: SocialWorld, post_id: int) -> int:
    """Return the first post of a cascade: the original of a repost or quote, or else the post itself.

    Args:
        world: The world.
        post_id: The post.
    """
    is_share = world.post_view(post_id).kind in ("repost", "quote")
    return int(world.posts.get("root", post_id - 1)) if is_share else post_id


class Node(NamedTuple):
    """A user and its position in the drawing of a cascade."""

    user_id: int
    """The user."""

    x: float
    """Step in which the user joined, with a small offset for each earlier share in the same step."""

    y: float
    """Height; users who passed the post on are centred on those who got it from them."""

    parent: int
    """Index of the user who passed the post to this one; -1 for the author."""


def tree_of(author_id: int, step: int, shares: Sequence[Share]) -> list[Node]:
    """Lay out a cascade as a tree: steps from left to right, each user centred on those who got the post from them.

    Args:
        author_id: Author of the post.
        step: Step in which it was published.
        shares: The shares, in order.

    Returns:
        The author, then the users in the order in which they joined.
    """
    users = [author_id, *(share.user_id for share in shares)]
    index_of = {user_id: index for index, user_id in enumerate(users)}
    parents = [-1, *(index_of[share.from_id] for share in shares)]
    steps = [step, *(share.step for share in shares)]
    children: list[list[int]] = [[] for _ in users]
    for index, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(index)
    chains = [0] * len(users)
    for index, parent in enumerate(parents):
        if parent >= 0 and steps[parent] == steps[index]:
            chains[index] = chains[parent] + 1
    heights, n_leaves = [0.0] * len(users), 0
    order: list[int] = []
    waiting = [0]
    while waiting:
        order.append(index := waiting.pop())
        waiting += reversed(children[index])
        if not children[index]:
            heights[index] = n_leaves
            n_leaves += 1
    for index in reversed(order):
        if children[index]:
            heights[index] = (heights[children[index][0]] + heights[children[index][-1]]) / 2
    width = 0.8 / (max(chains) + 1)
    return [
        Node(user_id, steps[index] + width * chains[index], heights[index], parents[index])
        for index, user_id in enumerate(users)
    ]


def cascade_chart(world: SocialWorld, root_id: int) -> Chart:
    """Return who passed a post on, and who they got it from, by the step in which they did.

    Args:
        world: The world.
        root_id: The first post of the cascade.
    """
    shares = world.measures.shares(root_id)
    post = world.post_view(root_id)
    world.names.load(share.user_id for share in shares[:MAX_SHARERS])
    nodes = tree_of(post.author_id, post.step, shares[:MAX_SHARERS])
    at: list[float] = []
    heights: list[float | None] = []
    for node in nodes[1:]:  # a gap ends each line
        parent = nodes[node.parent]
        at += [parent.x, node.x, node.x]
        heights += [parent.y, node.y, None]
    users = ChartSeries(
        values=[node.y for node in nodes],
        at=[node.x for node in nodes],
        kind="point",
        colours=[ROOT_COLOUR, *[COLOURS[0]] * (len(nodes) - 1)],
        labels=[one_line(world.names[node.user_id], 40) for node in nodes],
        agents=[node.user_id for node in nodes],
    )
    depth = max((share.distance for share in shares), default=0)
    author = one_line(post.author, 40)
    title = f"Cascade of post {root_id} by {author}: {counted(len(shares) + 1, 'user')}, {depth} deep"
    is_cut = len(shares) > MAX_SHARERS
    note = f"Shown: the first {MAX_SHARERS} of {len(shares):,} users who passed it on." if is_cut else ""
    return Chart(
        title=title,
        series=[ChartSeries(values=heights, at=at, colour=GREY), users],
        x="Step in which it was shared",
        low=min(node.y for node in nodes) - 0.8,
        high=max(node.y for node in nodes) + 0.8,
        start=post.step - 0.4,
        end=max(max(node.x for node in nodes), float(max(world.step - 1, post.step))) + 0.8,
        has_values=False,
        note=note,
    )


@component
@llm_models_only
def CascadeTree(model: LLMModel) -> None:
    """Show who passed a post on, who they got it from, and when.

    Args:
        model: A model with a social world.
    """
    update_counter.get()
    root_id = root_to_show(model, use_page(model).selected("post").value)
    if root_id:
        PickPost(model, "Cascade of post", root_id)
        _Tree(model, root_id)
    else:
        solara.Info("No posts yet.", dense=True)


def root_to_show(model: LLMModel, post_id: int) -> int:
    """Return the first post of the selected post's cascade; 0 if there are no posts.

    Args:
        model: A model with a social world.
        post_id: Id of the selected post; 0 or an unknown id: none is selected.
    """
    world = social_world(model)
    with still(model):
        shown_id = post_to_show(world, post_id)
        return root_of(world, shown_id) if shown_id else 0


@component
def _Tree(model: LLMModel, root_id: int) -> None:
    def draw(model: LLMModel) -> Chart:
        with still(model):
            return cascade_chart(social_world(model), root_id)

    Plot(model, draw).key(f"cascade of {root_id}")


def spread_charts(
    world: SocialWorld, root_id: int, curves: Mapping[str, SpreadCurves] | None = None
) -> dict[str, Chart]:
    """Return how far a post has spread: by step on its own, by minute beside other curves.

    Args:
        world: The world.
        root_id: The first post of the cascade.
        curves: Curves to compare with, by name; the first, a real one, determines the time axis.

    Returns:
        Each of `MEASURES` → its chart.
    """
    cascade = world.measures.cascade(root_id)
    n_steps = max(len(cascade.steps) - 1, 1)  # the last step has only begun
    size, depth, breadth = cascade.size[:n_steps], cascade.depth[:n_steps], cascade.breadth[:n_steps]
    if curves:
        step_minutes = world.settings.step_minutes or 1.0
        every = {f"post {root_id}": SpreadCurves.of_steps(size, depth, breadth, step_minutes), **curves}
        by_measure: list[dict[str, Sequence[float]]] = [
            {name: getattr(curve, field.name) for name, curve in every.items()} for field in fields(SpreadCurves)
        ]
    else:
        by_measure = [{f"post {root_id}": values} for values in (size, depth, breadth)]
    settled = [_settled_at(curve) for curve in list((curves or {}).values())[:1]]
    end = max(1, len(by_measure[0][f"post {root_id}"]) - 1, *settled)
    x = f"{'Minutes' if curves else 'Steps'} since publication"
    return {
        measure: Chart(
            title=f"Spread of post {root_id}: {measure[0].lower()}{measure[1:]}",
            series=_spread_series(lines, end, is_named=bool(curves)),
            x=x,
            end=float(end),
        )
        for measure, lines in zip(MEASURES, by_measure, strict=True)
    }


def _spread_series(lines: Mapping[str, Sequence[float]], end: int, *, is_named: bool) -> list[ChartSeries]:
    """Return the curves of one measure: the post itself first, then the real curve, then others as dashed lines."""
    return [
        ChartSeries(
            name=name if is_named else "",
            values=list(map(float, values[: end + 1])),
            colour=COLOURS[index % len(COLOURS)],
            is_dashed=index > 1,
        )
        for index, (name, values) in enumerate(lines.items())
    ]


def _settled_at(curve: SpreadCurves) -> int:
    """Return the minute after which a curve hardly grows; the rest is not drawn."""
    return int(np.argmax(curve.scale >= 0.995 * curve.scale[-1]))


def spread_curves(curves: Curves | None = None, baselines: Baselines | None = None) -> Callable[[Any], Any]:
    """Return a component that compares the spread of the selected post with other curves.

    A visitor can upload real cascades in the format of OASIS (`…_real_propagation.json`).

    Args:
        curves: Returns curves that are always plotted; None: none.
        baselines: Returns the predictions of simple rules for the first uploaded curve; None: none.
    """

    def Spread(model: LLMModel) -> Any:
        return _Spread(model, curves, baselines)

    return llm_models_only(Spread, spread_curves.__name__)


@component
def _Spread(model: LLMModel, curves: Curves | None, baselines: Baselines | None) -> None:
    update_counter.get()
    real, keep = use_state(dict[str, SpreadCurves]())
    fault, set_fault = use_state("")
    root_id = root_to_show(model, use_page(model).selected("post").value)

    def take(name: str, text: str) -> None:
        try:
            curve = read_text(read_curves, name, text)
        except ConfigError as error:
            set_fault(str(error))
        else:
            set_fault("")
            keep(dict([*real.items(), (name.removesuffix(".json"), curve)][-MAX_FILES:]))

    def draw(model: Any, measure: str) -> Chart:
        beside = {**real, **(curves(model, root_id) if curves else {})}
        if real and baselines is not None:
            beside |= baselines(next(iter(real.values())))
        return spread_charts(social_world(model), root_id, beside)[measure]

    if root_id:
        for measure in MEASURES:
            Plot(model, partial(draw, measure=measure)).key(f"{measure} of {root_id} beside {' '.join(real)}")
    with solara.Row(gap="8px", style={"align-items": "center", "flex-wrap": "wrap"}):
        Upload("Upload a real cascade (OASIS JSON)", take, set_fault, ".json")
        if real:
            solara.Button("Remove", on_click=lambda: keep({}), text=True, small=True)
    if fault:
        solara.Error(fault, dense=True)


@solara.component_vue("upload.vue")
def _Upload(
    label: str = "", accept: str = "", max_bytes: int = MAX_BYTES, event_take: Callable[[Any], None] | None = None
) -> None:
    """Let a visitor choose a file; see `upload.vue`."""


@component
def Upload(label: str, on_file: Callable[[str, str], None], on_fault: Callable[[str], None], accept: str = "") -> None:
    """Let a visitor choose a text file on their own machine.

    Args:
        label: Label of the field.
        on_file: Called with its name and its text.
        on_fault: Called with a reason if the file is too large.
        accept: Accepted file name extensions, comma-separated; empty: all.
    """

    def take(file: Any) -> None:
        name, text = str(file.get("name"))[:200], file.get("text")
        if not isinstance(text, str) or file.get("size", 0) > MAX_BYTES or len(text) > MAX_BYTES:
            on_fault(f"{name} is larger than {MAX_BYTES:,} bytes; choose a smaller file.")
        else:
            on_file(name, text)

    _Upload(label=label, accept=accept, event_take=take)


def read_text(read: Callable[[Path], T], name: str, text: str) -> T:
    """Read an uploaded text with a function that reads files.

    Args:
        read: Reads a file.
        name: Name of the file on the visitor's machine.
        text: Its contents.

    Raises:
        ConfigError: As `read` does, with the name of the file on the visitor's machine.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, f"file{Path(name).suffix[:10]}")
        path.write_text(text, encoding="utf-8")
        try:
            return read(path)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(path), name)) from error
