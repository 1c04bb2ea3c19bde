"""How a post spreads: its cascade, and its spread compared with other curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import numpy as np
import solara
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator
from mesa.visualization.utils import update_counter
from reacton import use_memo, use_state
from solara.core import component

from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.text import counted, one_line
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.picture import Picture
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.components.plots import Plot
from mesa_llm.viz.render.downloads import plot_downloads
from mesa_llm.viz.render.figures import enlarge
from mesa_llm.viz.render.network import ClickableSpot
from mesa_llm.viz.render.scenes import MAX_NAMES
from mesa_llm.viz.render.style import FEW, GREY, Figure, literal, picture_of, tidy
from mesa_llm.viz.social.reader import PickPost, post_to_show, social_world, still
from mesa_llm.worlds.social import SocialWorld, SpreadCurves, read_curves
from mesa_llm.worlds.social.measures import Share

MAX_SHARERS = 300
"""Maximum number of users drawn in a cascade; the first to join are drawn."""

ROOT_COLOUR = "#f97316"

COLOURS = ("#7c3aed", "#16a34a", "#0891b2", "#db2777", "#ca8a04", "#64748b", "#dc2626")
"""Colours of curves; the first is also that of users who passed a post on."""

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


def cascade_figure(world: SocialWorld, root_id: int) -> tuple[Figure, list[Node]]:
    """Draw who passed a post on, and who they got it from.

    Args:
        world: The world.
        root_id: The first post of the cascade.

    Returns:
        The figure, and the position of each user in it.
    """
    shares = world.measures.shares(root_id)
    post = world.post_view(root_id)
    world.names.load(share.user_id for share in shares[:MAX_SHARERS])
    nodes = tree_of(post.author_id, post.step, shares[:MAX_SHARERS])
    figure = Figure(figsize=(6.0, 4.6), layout="constrained")
    axes: Any = figure.subplots()
    lines = [((nodes[n.parent].x, nodes[n.parent].y), (n.x, n.y)) for n in nodes if n.parent >= 0]
    is_crowded = len(nodes) > MAX_NAMES
    width = 0.3 if is_crowded else 1.0
    axes.add_collection(LineCollection(lines, colors="#94a3b8", linewidths=width, alpha=0.8, zorder=1))
    passed_on = [0] * len(nodes)
    for node in nodes[1:]:
        passed_on[node.parent] += 1
    axes.scatter(
        [node.x for node in nodes],
        [node.y for node in nodes],
        s=[36 + 14 * min(count, 30) for count in passed_on],
        c=[ROOT_COLOUR, *[COLOURS[0]] * (len(nodes) - 1)],
        edgecolors="none" if is_crowded else "white",  # outlines of close neighbours would cover each other
        zorder=3,
    )
    _name_nodes(axes, nodes, world, passed_on)
    _frame_tree(axes, nodes, post.step, max(world.step - 1, post.step))
    depth = max((share.distance for share in shares), default=0)
    author = literal(one_line(post.author, 40))
    title = f"Post {root_id} by {author}: {counted(len(shares) + 1, 'user')}, {depth} deep"
    if len(shares) > MAX_SHARERS:
        title += f"\nShowing the first {MAX_SHARERS} of {len(shares):,} users who passed it on"
    axes.set_title(title, loc="left", fontsize=13, color=GREY)
    enlarge(figure)
    return figure, nodes


def _name_nodes(axes: Any, nodes: Sequence[Node], world: SocialWorld, passed_on: Sequence[int]) -> None:
    """Write names unless there are many: beside users who passed the post to nobody, above the others."""
    if len(nodes) > MAX_NAMES:
        return
    for node, count in zip(nodes, passed_on, strict=True):
        name = literal(one_line(world.names[node.user_id], 18))
        place = {"xytext": (0, 8), "ha": "center"} if count else {"xytext": (7, 0), "va": "center"}
        look = {"textcoords": "offset points", "fontsize": 9, "color": "#334155", "zorder": 5}
        axes.annotate(name, (node.x, node.y), **place, **look)


def _frame_tree(axes: Any, nodes: Sequence[Node], step: int, last_step: int) -> None:
    heights = [node.y for node in nodes]
    axes.set_xlim(step - 0.6, max(max(node.x for node in nodes), last_step) + 1.2)
    axes.set_ylim(max(heights) + 0.8, min(heights) - 0.8)
    axes.set_xticks(
        [tick for tick in MaxNLocator(integer=True).tick_values(step, last_step) if step <= tick <= last_step]
    )
    axes.set_yticks([])
    axes.set_xlabel("Step in which it was shared", color=GREY)
    tidy(axes)
    axes.grid(axis="x", color="#e2e8f0")


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
    page = use_page(model)
    moment = update_counter.get()
    world = social_world(model)

    def drawn(kind: str) -> tuple[bytes, list[ClickableSpot]]:
        with still(model):
            figure, nodes = cascade_figure(world, root_id)
            return picture_of(figure, kind), _spots(figure, nodes, world)

    png, spots = use_memo(lambda: drawn("png"), [model, moment, root_id])
    title = f"Cascade of post {root_id}"
    Picture(title, plot_downloads(model, title, lambda kind: drawn(kind)[0]), png, spots, page.inspect_agent)


def _spots(figure: Figure, nodes: Sequence[Node], world: SocialWorld) -> list[ClickableSpot]:
    axes = figure.axes[0]
    width, height = figure.get_size_inches() * figure.dpi
    spots: list[ClickableSpot] = []
    for node in nodes:
        left, up = axes.transData.transform((node.x, node.y))
        name = f"{node.user_id} · {world.names[node.user_id]}"
        spots.append(ClickableSpot(node.user_id, name, 100 * left / width, 100 * (1 - up / height)))
    return spots


def spread_figure(world: SocialWorld, root_id: int, curves: Mapping[str, SpreadCurves] | None = None) -> Figure:
    """Plot how far a post has spread: by step on its own, by minute beside other curves.

    Args:
        world: The world.
        root_id: The first post of the cascade.
        curves: Curves to compare with, by name; the first, a real one, determines the time axis.
    """
    cascade = world.measures.cascade(root_id)
    n_steps = max(len(cascade.steps) - 1, 1)  # the last step has only begun
    size, depth, breadth = cascade.size[:n_steps], cascade.depth[:n_steps], cascade.breadth[:n_steps]
    if curves:
        step_minutes = world.settings.step_minutes or 1.0
        every = {f"post {root_id}": SpreadCurves.of_steps(size, depth, breadth, step_minutes), **curves}
        by_measure = [
            {name: getattr(curve, field.name) for name, curve in every.items()} for field in fields(SpreadCurves)
        ]
    else:
        by_measure = [{f"post {root_id}": values} for values in (size, depth, breadth)]
    figure = Figure(figsize=(6.0, 5.6 + 0.3 * len(curves or ())), layout="constrained")
    plots: Any = figure.subplots(len(MEASURES), 1, sharex=True)
    for axes, title, lines in zip(plots, MEASURES, by_measure, strict=True):
        _draw_lines(axes, title, lines)
    unit = "Minutes" if curves else "Steps"
    plots[-1].set_xlabel(f"{unit} since publication", color=GREY)
    plots[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    settled = [_settled_at(curve) for curve in list((curves or {}).values())[:1]]
    plots[-1].set_xlim(0, max(1, len(by_measure[0][f"post {root_id}"]) - 1, *settled))
    if curves:
        figure.legend(*plots[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(f"Spread of post {root_id}", x=0.01, ha="left", fontsize=13, color=GREY)
    enlarge(figure)
    return figure


def _settled_at(curve: SpreadCurves) -> int:
    """Return the minute after which a curve hardly grows; the rest is not drawn."""
    return int(np.argmax(curve.scale >= 0.995 * curve.scale[-1]))


def _draw_lines(axes: Any, title: str, lines: Mapping[str, Sequence[float]]) -> None:
    """Plot one measure: the post itself first, then the real curve, then others as dashed lines."""
    for index, (name, values) in enumerate(lines.items()):
        look = {"lw": 2.4, "zorder": 3} if index == 0 else {"lw": 1.8, "ls": "-" if index == 1 else "--"}
        marker = "o" if len(values) <= FEW else ""
        axes.plot(range(len(values)), values, color=COLOURS[index % len(COLOURS)], marker=marker, label=name, **look)
    axes.set_title(title, loc="left", fontsize=12, color=GREY)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_ylim(0, max(1.15 * axes.dataLim.ymax, 1.2))
    tidy(axes)


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

    def draw(model: Any) -> Figure:
        beside = {**real, **(curves(model, root_id) if curves else {})}
        if real and baselines is not None:
            beside |= baselines(next(iter(real.values())))
        return spread_figure(social_world(model), root_id, beside)

    if root_id:
        Plot(model, draw, is_large=True).key(f"spread of {root_id} beside {' '.join(real)}")
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
