"""The follow network, with users coloured by any measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import solara
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from mesa.visualization.utils import update_counter
from reacton import use_memo, use_ref, use_state
from solara.core import component

from mesa_llm.engine.activation import llm_agents
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.picture import Picture
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.render.downloads import plot_downloads
from mesa_llm.viz.render.figures import enlarge
from mesa_llm.viz.render.markup import label_of
from mesa_llm.viz.render.network import ACTIVE, IDLE, ClickableSpot, lay_out, spots_on
from mesa_llm.viz.render.scenes import PlacedAgent, write_names
from mesa_llm.viz.render.style import GREY, Figure, picture_of
from mesa_llm.viz.social.reader import social_world, still
from mesa_llm.worlds.beliefs import tone

MAX_USERS = 300
"""Maximum number of users drawn; the most connected are drawn."""

MAX_TIES = 4_000
"""Maximum number of follows drawn."""

MAX_COMPARED = 1_000_000
"""Maximum number of follows for which new ones are highlighted."""

LATEST_TEXTS = 5
"""Number of a user's latest texts used to measure tone."""

UNKNOWN = "#cbd5e1"
"""Colour of a user without a value."""

TIE, NEW_TIE = "#94a3b8", "#16a34a"
"""Colours of follows that existed at the start, and of new ones."""

WIDTH, HEIGHT = 6.2, 6.2
"""Size of the drawing, in inches."""


class Colouring(NamedTuple):
    """A measure of users that determines their colour."""

    measure: Callable[[Any], float | None]
    """Measures an agent; returns None if unknown."""

    low: float | None = None
    """Lower end of the scale; None: the smallest value."""

    high: float | None = None
    """Upper end of the scale; None: the largest value."""

    cmap: str = "viridis"
    """Name of Matplotlib's colour map."""


def opinion(measure: Callable[[Any], float | None]) -> Colouring:
    """Return a colouring by a measure from -1 (red: against) to 1 (blue: in favour).

    Args:
        measure: Measures an agent.
    """
    return Colouring(measure, -1.0, 1.0, "RdYlBu")


@lru_cache(maxsize=50_000)
def _tone(text: str) -> float:
    return tone(text[:2000])


def tone_of_posts(agent: Any) -> float | None:
    """Measure the mean tone of a user's latest texts by VADER, from -1 to 1; None if there are none.

    Args:
        agent: A user of a model with a social world.
    """
    texts = social_world(agent.model).measures.posts_by(agent.unique_id, LATEST_TEXTS)
    return sum(map(_tone, texts)) / len(texts) if texts else None


def is_active(agent: Any) -> float:
    """Return 1 for an agent that acted in the last step, else 0."""
    outcomes = agent.model.last_outcomes.get(agent.unique_id, ())
    return float(any(outcome.action != "do_nothing" for outcome in outcomes))


TONE, ACTIVITY = "tone of the latest posts (VADER)", "who acted in the last step"
"""Colourings that every social model has."""


def colourings_of(model: LLMModel, own: Mapping[str, Colouring]) -> dict[str, Colouring]:
    """Return all colourings of users by name.

    Args:
        model: The model; the agent measures of its data collector are included.
        own: Colourings of the page, which come first.
    """
    reporters: Mapping[str, Any] = getattr(model.datacollector, "agent_reporters", {})
    collected = {label_of(name).lower(): Colouring(reporter) for name, reporter in reporters.items()}
    return {**own, TONE: opinion(tone_of_posts), ACTIVITY: Colouring(is_active), **collected}


def most_connected(model: LLMModel, size: int) -> tuple[dict[int, Any], int]:
    """Return the agents with the most followers and followees by id, and the total number of users.

    Args:
        model: A model with a social world.
        size: Maximum number of agents.
    """
    world = social_world(model)
    agents = {agent.unique_id: agent for agent in llm_agents(model) if world.is_user(agent.unique_id)}
    if len(agents) <= size:
        return agents, len(agents)
    numbers = np.array(list(agents))
    degrees = world.users["followers"][numbers] + world.users["followings"][numbers]
    chosen = np.sort(numbers[np.argsort(-degrees, kind="stable")[:size]]).tolist()
    return {number: agents[number] for number in chosen}, len(agents)


def _among(edges: Any, chosen: Sequence[int]) -> Any:
    return edges[np.isin(edges, chosen).all(axis=1)]


def follow_figure(
    model: LLMModel, name: str, colouring: Colouring, positions: dict[int, Any] | None = None
) -> tuple[Figure, list[PlacedAgent]]:
    """Draw the current follow network.

    Args:
        model: A model with a social world.
        name: Name of the colouring.
        colouring: The colouring.
        positions: User id → position; new users are added. None: all are laid out anew.

    Returns:
        The figure, and the position of each user in it.
    """
    world = social_world(model)
    positions = {} if positions is None else positions
    agents, n_users = most_connected(model, MAX_USERS)
    ties = _among(world.measures.follow_edges(), list(agents))
    n_ties = world.measures.totals()["follows"]
    new = _among(world.measures.new_follows(), list(agents)).tolist() if n_ties <= MAX_COMPARED else []
    recent = {(follower, followee) for follower, followee in new}
    lay_out_users(list(agents), ties.tolist(), positions)
    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    enlarge(figure)
    axes: Any = figure.subplots()
    axes.set_axis_off()
    _draw_ties(axes, [tuple(tie) for tie in ties[:MAX_TIES].tolist()], recent, positions)
    _draw_users(figure, axes, list(agents.values()), name, colouring, positions)
    places = [PlacedAgent(agent, *map(float, positions[number])) for number, agent in agents.items()]
    axes.margins(0.06)
    title = f"Follow network: {n_users:,} users, {n_ties:,} follows"
    if len(agents) < n_users:
        title += f"\nShowing the {len(agents):,} most connected users, {min(len(ties), MAX_TIES):,} follows"
    if recent:
        title += "\nGreen: new since the start of the run"
    axes.set_title(title, loc="left", color=GREY, fontsize=12)
    write_names(axes, places)
    return figure, places


def lay_out_users(users: Sequence[int], ties: Sequence[Sequence[int]], positions: dict[int, Any]) -> None:
    """Find positions for users that have none: all at once at first, later beside those they are tied to.

    Args:
        users: User ids.
        ties: Follows among them.
        positions: User id → position; entries are kept, and missing ones added.
    """
    newcomers = [user_id for user_id in users if user_id not in positions]
    if 2 * len(newcomers) > len(users):
        positions.clear()
        lay_out(users, ((first, second) for first, second in ties), positions)
        _draw_in(users, positions)
        return
    tied: dict[int, list[int]] = {user_id: [] for user_id in newcomers}
    for first, second in ties:
        for user_id, other in ((first, second), (second, first)):
            if user_id in tied and other in positions:
                tied[user_id].append(other)
    if not newcomers:
        return
    placed = np.array([positions[user_id] for user_id in users if user_id in positions])
    jitter = np.random.default_rng(len(positions)).uniform(-0.5, 0.5, (len(newcomers), 2)) * placed.std(axis=0)
    places = [
        np.mean([positions[other] for other in others], axis=0) if others else placed.mean(axis=0)
        for others in tied.values()
    ]
    positions |= dict(zip(tied, places + jitter, strict=True))


def _draw_in(users: Sequence[int], positions: dict[int, Any]) -> None:
    """Move outlying users closer to the others, who would otherwise be squeezed together."""
    if len(users) < 3:
        return
    places = np.array([positions[user_id] for user_id in users])
    offsets = places - np.median(places, axis=0)
    distances = np.hypot(*offsets.T)
    far = max(float(np.quantile(distances, 0.85)), 1e-9)
    times_far = np.maximum(distances / far, 1)
    factors = (1 + 0.4 * np.log(times_far)) / times_far
    positions |= dict(zip(users, offsets * factors[:, None], strict=True))


def _draw_ties(
    axes: Any, ties: Sequence[tuple[int, int]], recent: set[tuple[int, int]], positions: Mapping[int, Any]
) -> None:
    """Draw follows as lines, highlighting new ones."""
    alpha = 0.55 if len(ties) < 300 else 0.25
    for are_new, colour, order in ((False, TIE, 1), (True, NEW_TIE, 2)):
        lines = [(positions[a], positions[b]) for a, b in ties if ((a, b) in recent) is are_new]
        axes.add_collection(
            LineCollection(lines, colors=colour, alpha=alpha, linewidths=0.9 + 0.3 * are_new, zorder=order)
        )


def _draw_users(
    figure: Figure,
    axes: Any,
    agents: Sequence[Any],
    name: str,
    colouring: Colouring,
    positions: Mapping[int, Any],
) -> None:
    """Draw users as discs, sized by followers and coloured by value."""
    if not agents:
        return
    followers = np.array([social_world(agent.model).users.get("followers", agent.unique_id) for agent in agents])
    sizes = 45 + 420 * followers / max(int(followers.max()), 12)
    measured = [colouring.measure(agent) for agent in agents]
    values = np.array([float(value) if isinstance(value, Real) else np.nan for value in measured])
    known = np.isfinite(values)
    if name == ACTIVITY:
        colours: Any = [ACTIVE if value else IDLE for value in values]
        handles = [Line2D([], [], ls="", marker="o", color=c, label=t) for c, t in ((ACTIVE, "yes"), (IDLE, "no"))]
        figure.legend(
            handles=handles, title="Acted in the last step", frameon=False, ncols=2, loc="outside lower center"
        )
    else:
        low = colouring.low if colouring.low is not None else float(values[known].min()) if known.any() else 0.0
        high = colouring.high if colouring.high is not None else float(values[known].max()) if known.any() else 1.0
        scale = ScalarMappable(Normalize(low, high if high > low else low + 1), colouring.cmap)
        colours = [scale.to_rgba(value) if is_known else UNKNOWN for value, is_known in zip(values, known, strict=True)]
        bar = figure.colorbar(scale, ax=axes, location="bottom", shrink=0.7, pad=0.01, aspect=40)
        bar.set_label(name + (" (grey: unknown)" if not known.all() else ""), color=GREY)
        bar.outline.set_visible(False)
    places = np.array([positions[agent.unique_id] for agent in agents])
    axes.scatter(places[:, 0], places[:, 1], c=colours, s=sizes, edgecolors="#475569", linewidths=0.6, zorder=3)


def follow_network(colourings: Callable[[Any], Mapping[str, Colouring]] | None = None) -> Callable[[Any], Any]:
    """Return a component that draws the current follow network, and lets a visitor choose the colouring.

    Args:
        colourings: Returns further colourings of a model's users by name; the first is the default.
    """

    def FollowNetwork(model: LLMModel) -> Any:
        return _FollowNetwork(model, colourings)

    return llm_models_only(FollowNetwork, follow_network.__name__)


@component
def _FollowNetwork(model: LLMModel, own: Callable[[Any], Mapping[str, Colouring]] | None) -> None:
    page = use_page(model)
    moment = update_counter.get()
    picked, pick = use_state("")
    cache = use_ref((model, dict[int, Any]()))
    if cache.current[0] is not model:
        cache.current = (model, {})
    positions = cache.current[1]
    with still(model):
        colourings = colourings_of(model, own(model) if own else {})
    name = picked if picked in colourings else next(iter(colourings))

    def drawn(kind: str) -> tuple[bytes, list[ClickableSpot]]:
        with still(model):
            figure, places = follow_figure(model, name, colourings[name], positions)
            return picture_of(figure, kind), spots_on(figure.axes[0], places)

    png, spots = use_memo(lambda: drawn("png"), [model, moment, name])
    solara.Select("Colour by", list(colourings), name, pick, dense=True)
    Picture(
        "Follow network",
        plot_downloads(model, "follows", lambda kind: drawn(kind)[0]),
        png,
        spots,
        page.inspect_agent,
    )
