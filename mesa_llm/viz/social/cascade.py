"""How a post spread: who had it from whom, step by step, and the curves of its spread beside others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import solara
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator
from mesa.visualization.utils import update_counter
from reacton import use_memo
from solara.core import component

from mesa_llm.model.model import LLMModel
from mesa_llm.text import counted, one_line
from mesa_llm.viz.download import Picture, Spot
from mesa_llm.viz.figures import FEW, GREY, Figure, Plot, enlarge, picture_of, plot_downloads, tidy
from mesa_llm.viz.gate import steady
from mesa_llm.viz.inspector import inspect_agent
from mesa_llm.viz.social.reader import PickPost, post_to_show, social_world
from mesa_llm.viz.space import MAX_NAMES
from mesa_llm.worlds.social import SocialWorld
from mesa_llm.worlds.social.measures import Share

MAX_SHARERS = 300
"""Maximum number of users of a cascade that are drawn, the first to join."""

ROOT_COLOUR, CURVE_COLOUR = "#f97316", "#7c3aed"
OTHER_COLOURS = ("#16a34a", "#0891b2", "#db2777", "#ca8a04", "#64748b", "#dc2626")
"""Colours of the curves that stand beside a cascade's own."""

MEASURES = {"size": "Users reached (scale)", "depth": "Depth", "breadth": "Max breadth"}
"""Curve → its title."""


class SpreadCurve(NamedTuple):
    """Spread of one post over time, from elsewhere: a real cascade, a baseline, another run."""

    minutes: Sequence[float]
    """Minutes since it was published."""

    size: Sequence[float] = ()
    """Users reached at each moment, the author included (OASIS: scale); empty: not known."""

    depth: Sequence[float] = ()
    """Largest distance of a user from the author at each moment; empty: not known."""

    breadth: Sequence[float] = ()
    """Largest number of users at one distance at each moment (OASIS: max breadth); empty: not known."""


Curves = Callable[[Any, int], Mapping[str, SpreadCurve]]
"""Returns the curves that stand beside those of a post: model and post id → curves by name."""


def root_of(world: SocialWorld, post_id: int) -> int:
    """Return the post that a cascade began with: of a repost or quote, what was passed on; else the post itself.

    Args:
        world: The world.
        post_id: The post.
    """
    is_share = world.post_view(post_id).kind in ("repost", "quote")
    return int(world.posts.get("root", post_id - 1)) if is_share else post_id


class Node(NamedTuple):
    """Place of a user in the drawing of a cascade."""

    user_id: int
    """The user."""

    x: float
    """Step in which it joined; a little more for each share before its own in the same step."""

    y: float
    """Height; that of a user who passed the post on lies in the middle of those who had it from it."""

    parent: int
    """Index of the user it had the post from; -1 of the author."""


def tree_of(author_id: int, step: int, shares: Sequence[Share]) -> list[Node]:
    """Lay a cascade out as a tree: steps from left to right, each user between those who had the post from it.

    Args:
        author_id: Author of the post.
        step: Step in which it was published.
        shares: Who joined, in order.

    Returns:
        The author, then the users in the order they joined.
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
    """Draw who passed a post on, and from whom they had it.

    Args:
        world: The world.
        root_id: The post that the cascade began with.

    Returns:
        The figure, and the place of each user that is drawn.
    """
    shares = world.shares(root_id)
    post = world.post_view(root_id)
    nodes = tree_of(post.author_id, post.step, shares[:MAX_SHARERS])
    figure = Figure(figsize=(6.0, 4.6), layout="constrained")
    axes: Any = figure.subplots()
    lines = [((nodes[n.parent].x, nodes[n.parent].y), (n.x, n.y)) for n in nodes if n.parent >= 0]
    axes.add_collection(LineCollection(lines, colors="#94a3b8", linewidths=1.0, alpha=0.8, zorder=1))
    passed_on = [0] * len(nodes)
    for node in nodes[1:]:
        passed_on[node.parent] += 1
    axes.scatter(
        [node.x for node in nodes],
        [node.y for node in nodes],
        s=[36 + 14 * min(count, 30) for count in passed_on],
        c=[ROOT_COLOUR, *[CURVE_COLOUR] * (len(nodes) - 1)],
        edgecolors="white",
        zorder=3,
    )
    _name_nodes(axes, nodes, world, passed_on)
    _frame_tree(axes, nodes, post.step, max(world.step - 1, post.step))
    depth = max((share.distance for share in shares), default=0)
    author = one_line(post.author, 40).replace("$", r"\$")
    title = f"Post {root_id} by {author}: {counted(len(shares) + 1, 'user')}, {depth} deep"
    if len(shares) > MAX_SHARERS:
        title += f"\nDrawn: the first {MAX_SHARERS} of {len(shares):,} who passed it on"
    axes.set_title(title, loc="left", fontsize=13, color=GREY)
    enlarge(figure)
    return figure, nodes


def _name_nodes(axes: Any, nodes: Sequence[Node], world: SocialWorld, passed_on: Sequence[int]) -> None:
    """Write names, if they are few: beside who has passed the post to nobody, above the others."""
    if len(nodes) > MAX_NAMES:
        return
    for node, count in zip(nodes, passed_on, strict=True):
        name = one_line(world.names[node.user_id], 18).replace("$", r"\$")  # no formula
        place = {"xytext": (0, 8), "ha": "center"} if count else {"xytext": (7, 0), "va": "center"}
        look = {"textcoords": "offset points", "fontsize": 9, "color": "#334155", "zorder": 5}
        axes.annotate(name, (node.x, node.y), **place, **look)


def _frame_tree(axes: Any, nodes: Sequence[Node], step: int, last_step: int) -> None:
    heights = [node.y for node in nodes]
    axes.set_xlim(step - 0.6, max(max(node.x for node in nodes), last_step) + 1.2)
    axes.set_ylim(max(heights) + 0.8, min(heights) - 0.8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_yticks([])
    axes.set_xlabel("Step in which it was passed on", color=GREY)
    tidy(axes)
    axes.grid(axis="x", color="#e2e8f0")


@component
def CascadeTree(model: LLMModel) -> None:
    """Show who passed a post on, and from whom they had it, step by step.

    Args:
        model: A model with a social world.
    """
    update_counter.get()
    root_id = root_to_show(model)
    if root_id:
        PickPost(model, "Cascade of post", root_id)
        _Tree(model, root_id)
    else:
        solara.Info("Nobody has posted yet.", dense=True)


def root_to_show(model: LLMModel) -> int:
    """Return where the cascade began of the post that is looked into; 0 without any post.

    Args:
        model: A model with a social world.
    """
    world = social_world(model)
    with steady(model):
        post_id = post_to_show(world)
        return root_of(world, post_id) if post_id else 0


@component
def _Tree(model: LLMModel, root_id: int) -> None:
    moment = update_counter.get()
    world = social_world(model)

    def drawn(kind: str) -> tuple[bytes, list[Spot]]:
        with steady(model):
            figure, nodes = cascade_figure(world, root_id)
            return picture_of(figure, kind), _spots(figure, nodes, world)

    png, spots = use_memo(lambda: drawn("png"), [model, moment, root_id])
    title = f"Cascade of post {root_id}"
    Picture(title, plot_downloads(model, title, lambda kind: drawn(kind)[0]), png, spots, inspect_agent)


def _spots(figure: Figure, nodes: Sequence[Node], world: SocialWorld) -> list[Spot]:
    axes = figure.axes[0]
    width, height = figure.get_size_inches() * figure.dpi
    spots: list[Spot] = []
    for node in nodes:
        left, up = axes.transData.transform((node.x, node.y))
        name = f"{node.user_id} · {world.names[node.user_id]}"
        spots.append(Spot(node.user_id, name, 100 * left / width, 100 * (1 - up / height)))
    return spots


def spread_figure(world: SocialWorld, root_id: int, curves: Mapping[str, SpreadCurve] | None = None) -> Figure:
    """Draw how far a post has spread at each step, beside other curves.

    Args:
        world: The world.
        root_id: The post that the cascade began with.
        curves: Curves to compare with, by name; with any, the axis is in minutes.
    """
    cascade = world.cascade(root_id)
    n_steps = max(len(cascade.steps) - 1, 1)  # the last one has only begun
    figure = Figure(figsize=(6.0, 5.6), layout="constrained")
    every: Any = figure.subplots(len(MEASURES), 1, sharex=True)
    minutes = world.settings.step_minutes if curves else 1.0
    across = [(step - cascade.steps[0]) * minutes for step in cascade.steps[:n_steps]]
    for axes, (measure, title) in zip(every, MEASURES.items(), strict=True):
        marker = "o" if len(across) <= FEW else ""
        label = f"post {root_id}"
        axes.plot(
            across,
            getattr(cascade, measure)[:n_steps],
            color=CURVE_COLOUR,
            lw=2.4,
            marker=marker,
            label=label,
            zorder=3,
        )
        for index, (name, curve) in enumerate((curves or {}).items()):
            if len(values := getattr(curve, measure)):
                colour = OTHER_COLOURS[index % len(OTHER_COLOURS)]
                axes.plot(curve.minutes, values, color=colour, lw=1.6, ls="-" if index == 0 else "--", label=name)
        axes.set_title(title, loc="left", fontsize=12, color=GREY)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.set_ylim(0, max(1.15 * axes.dataLim.ymax, 1.2))
        tidy(axes)
    every[-1].set_xlabel("Minutes since it was published" if curves else "Steps since it was published", color=GREY)
    every[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    every[-1].set_xlim(left=0, right=max(across[-1], 1) if not curves else None)
    if curves:
        every[0].legend(frameon=False, fontsize=9, loc="upper left", ncols=2)
    figure.suptitle(f"Spread of post {root_id}", x=0.01, ha="left", fontsize=13, color=GREY)
    enlarge(figure)
    return figure


def spread_curves(curves: Curves | None = None) -> Callable[[Any], Any]:
    """Make a component that shows how far the post has spread that is looked into, beside other curves.

    Args:
        curves: Returns the curves beside it; None: none.
    """

    def SpreadCurves(model: Any) -> Any:
        return _Curves(model, curves)

    return SpreadCurves


@component
def _Curves(model: LLMModel, curves: Curves | None) -> None:
    update_counter.get()
    root_id = root_to_show(model)

    def draw(model: Any) -> Figure:
        return spread_figure(social_world(model), root_id, curves(model, root_id) if curves else None)

    if root_id:
        Plot(model, draw, is_large=True).key(f"spread of {root_id}")
