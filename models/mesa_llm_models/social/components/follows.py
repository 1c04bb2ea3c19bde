"""The follow network, with users coloured by any measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import solara
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex
from mesa.visualization.utils import update_counter
from reacton import use_ref, use_state
from solara.core import component

from mesa_llm.charts.palette import GREY
from mesa_llm.charts.scenes import LegendEntry, SceneAgent, SpaceScene
from mesa_llm.engine.activation import llm_agents
from mesa_llm.model.model import LLMModel
from mesa_llm.text import tone
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.components.plots import Plot
from mesa_llm.viz.render.agents import option_label
from mesa_llm.viz.render.markup import label_of
from mesa_llm.viz.render.network import ACTIVE, IDLE, POINT, lay_out, scaled_positions
from mesa_llm_models.social.components.reader import social_world, still

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


def follow_scene(
    model: LLMModel, name: str, colouring: Colouring, positions: dict[int, Any] | None = None
) -> SpaceScene:
    """Return the current follow network as a scene: users sized by followers and coloured by value.

    Args:
        model: A model with a social world.
        name: Name of the colouring.
        colouring: The colouring.
        positions: User id → position; new users are added. None: all are laid out anew.
    """
    world = social_world(model)
    positions = {} if positions is None else positions
    agents, n_users = most_connected(model, MAX_USERS)
    ties = _among(world.measures.follow_edges(), list(agents))
    n_ties = world.measures.totals()["follows"]
    new = _among(world.measures.new_follows(), list(agents)).tolist() if n_ties <= MAX_COMPARED else []
    recent = {(follower, followee) for follower, followee in new}
    lay_out_users(list(agents), ties.tolist(), positions)
    at = scaled_positions({user_id: positions[user_id] for user_id in agents})
    drawn: dict[bool, list[tuple[float, float, float, float]]] = {False: [], True: []}
    for follower, followee in ties[:MAX_TIES].tolist():
        drawn[(follower, followee) in recent].append((*at[follower], *at[followee]))
    notes: list[str] = []
    if len(agents) < n_users:
        n_drawn = min(len(ties), MAX_TIES)
        notes.append(f"Shown: the {len(agents):,} most connected users, {n_drawn:,} follows.")
    if recent:
        notes.append("Green: new since the start of the run.")
    colours, legend = _colours(list(agents.values()), name, colouring)
    followers = [int(world.users.get("followers", user_id)) for user_id in agents]
    largest = max([12, *followers])
    users = [
        SceneAgent(
            agent=agent,
            x=at[user_id][0],
            y=at[user_id][1],
            radius=POINT * (45 + 420 * n_followers / largest) ** 0.5 / 2,
            colour=colour,
            edge=GREY,
            name=option_label(agent),
        )
        for (user_id, agent), n_followers, colour in zip(agents.items(), followers, colours, strict=True)
    ]
    return SpaceScene(
        title=f"Follow network: {n_users:,} users, {n_ties:,} follows",
        width=11,
        height=10,
        agents=users,
        ties=drawn[False],
        new_ties=drawn[True],
        legend=legend,
        has_names=True,
        note=" ".join(notes),
    )


def _colours(agents: Sequence[Any], name: str, colouring: Colouring) -> tuple[list[str], list[LegendEntry]]:
    """Return the colour of each user by its value, and what the colours stand for."""
    measured = [colouring.measure(agent) for agent in agents]
    values = np.array([float(value) if isinstance(value, Real) else np.nan for value in measured])
    known = np.isfinite(values)
    if name == ACTIVITY:
        entries = (("acted in the last step", ACTIVE), ("did not", IDLE))
        legend = [LegendEntry(text=text, colour=colour, shape="o") for text, colour in entries]
        return [ACTIVE if value else IDLE for value in values], legend
    low = colouring.low if colouring.low is not None else float(values[known].min()) if known.any() else 0.0
    high = colouring.high if colouring.high is not None else float(values[known].max()) if known.any() else 1.0
    scale = ScalarMappable(Normalize(low, high if high > low else low + 1), colouring.cmap)

    def colour_of(value: float) -> str:
        colour: Any = scale.to_rgba(np.array([value]))[0]
        return to_hex(colour)

    marks = dict.fromkeys([low, (low + high) / 2, high])
    legend = [
        LegendEntry(text=f"{name}: {mark:.3g}" if mark == low else f"{mark:.3g}", colour=colour_of(mark), shape="o")
        for mark in marks
    ]
    if not known.all():
        legend.append(LegendEntry(text="unknown", colour=UNKNOWN, shape="o"))
    return [colour_of(value) if is_known else UNKNOWN for value, is_known in zip(values, known, strict=True)], legend


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
    picked, pick = use_state("")
    cache = use_ref((model, dict[int, Any]()))
    if cache.current[0] is not model:
        cache.current = (model, {})
    positions = cache.current[1]
    update_counter.get()
    with still(model):
        colourings = colourings_of(model, own(model) if own else {})
    name = picked if picked in colourings else next(iter(colourings))

    def draw(model: LLMModel) -> SpaceScene:
        with still(model):
            return follow_scene(model, name, colourings[name], positions)

    solara.Select("Colour by", list(colourings), name, pick, dense=True)
    Plot(model, draw).key(f"coloured by {name}")
