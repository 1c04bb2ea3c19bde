"""The population of a social network: personas, follows and hours of activity."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mesa_llm import ConfigError
from mesa_llm.population import (
    DrawnPeople,
    Persona,
    Users,
    activity_table,
    from_distributions,
    read_activity,
    read_edges,
    read_users,
)
from mesa_llm.population.columns import InventedPeople, People, people_of
from mesa_llm.population.follows import preferential_edges, ranked_edges
from mesa_llm.text import counted

logger = logging.getLogger(__name__)

PopulationName = Literal["invented", "oasis_x", "oasis_reddit"]
"""Source of users not in a file."""

Hubs = Literal["none", "random", "extreme", "moderate"]
"""Who has the most followers: nobody, users drawn at random, or those of the most extreme or most moderate position."""

N_INVENTED = 20
"""Number of users without a number or file."""

MAX_CORE = 196
"""Maximum number of core users if not specified (OASIS has 196 real ones)."""


def check_people(scenario: Any) -> None:
    """Check that the parameters of the population are consistent.

    Raises:
        ConfigError: If there are two sources of users, the activity needs counts and there are none, or hubs are users
            of a position and there are no positions.
    """
    if scenario.hubs in ("extreme", "moderate") and not scenario.beliefs:
        raise ConfigError(f"hubs={scenario.hubs!r} goes by users' positions on the topic; set beliefs=true, too")
    if scenario.users is not None and scenario.population == "oasis_reddit":
        raise ConfigError(
            f"users={scenario.users!r} and population='oasis_reddit' both specify the users; give one of "
            "them, or population='oasis_x', which draws ordinary users around those in the file"
        )
    if scenario.users is not None and scenario.core_users is not None:
        raise ConfigError("core_users= is for drawn users; users in a file (users=) are already core users")
    needs_counts = scenario.activity_form in ("paper", "code")
    if needs_counts and scenario.activity_table is None and scenario.users is None:
        raise ConfigError(
            f"activity_form={scenario.activity_form!r} needs counts of activity; give activity_table=, a file "
            "with the column activity_level_frequency or 24 counts a row, or choose 'reddit' or 'core'"
        )


def n_core_of(scenario: Any, n: int) -> int:
    """Return the number of core users among `n`: the scenario's, or else a tenth, up to `MAX_CORE`.

    Raises:
        ConfigError: If there are more core users than users.
    """
    if scenario.core_users is not None and scenario.core_users > n:
        raise ConfigError(f"core_users={scenario.core_users} is more than the {n} users")
    return min(MAX_CORE, n // 10) if scenario.core_users is None else scenario.core_users


def draw_people(scenario: Any, rng: random.Random, n_users: int = N_INVENTED) -> tuple[People, Users]:
    """Return the population of a network, and the contents of its file; empty without a file.

    Args:
        scenario: Parameters of the network.
        rng: Random generator.
        n_users: Number of users without a number or file.

    Raises:
        ConfigError: If the file is invalid.
    """
    if scenario.users is not None:
        users = _read_users(scenario)
        core = users.personas[: scenario.n_agents]
        if scenario.population == "oasis_x":
            return from_distributions(scenario.n_agents or len(core), rng, "x", core=core), users
        return people_of(core), users
    people = _drawn_people(scenario, scenario.n_agents or n_users, rng)
    if scenario.edges is not None:
        people.edges = read_follows(scenario, len(people))
    return people, Users([])


def _drawn_people(scenario: Any, n: int, rng: random.Random) -> People:
    """Return people who are not in a file."""
    match scenario.population:
        case "oasis_x":
            return from_distributions(n, rng, "x", n_core_of(scenario, n))
        case "oasis_reddit":
            return from_distributions(n, rng, "reddit")
        case _:
            return InventedPeople(n, rng)


def _read_users(scenario: Any) -> Users:
    """Read the users file, with the follows in `edges`, and log what was skipped in both."""
    users = read_users(Path(scenario.users), skip=scenario.skip_broken)
    if users.refusals or users.dropped:
        first = [*users.refusals, *users.dropped][0]
        n_rows, n_items = counted(len(users.refusals), "row"), counted(len(users.dropped), "item")
        logger.warning(
            "%s: left out %s and %s that are invalid; first: %s", scenario.users, n_rows, n_items, first.reason
        )
    if scenario.edges is None:
        return users
    return replace(users, personas=with_follows(users.personas, read_follows(scenario, users)))


def with_follows(personas: Sequence[Persona], edges: npt.NDArray[np.integer[Any]]) -> list[Persona]:
    """Return personas with exactly the follows in pairs of (follower, followee)."""
    follows: list[list[int]] = [[] for _ in personas]
    for follower, followee in edges.tolist():
        follows[follower].append(followee)
    return [one.model_copy(update={"follows": tuple(own)}) for one, own in zip(personas, follows, strict=True)]


def listed(people: People) -> list[Persona]:
    """Return a population as personas with their follows."""
    return list(people) if people.edges is None else with_follows(list(people), people.edges)


def read_follows(scenario: Any, users: Users | int) -> npt.NDArray[np.int64]:
    """Read the follows file, and log what was skipped."""
    found = read_edges(scenario.edges, users, skip=scenario.skip_broken)
    if found.left_out:
        logger.warning("%s: left out %s", scenario.edges, found.left_out)
    return found.edges


def follow_edges(people: People, scenario: Any, rng: random.Random) -> npt.NDArray[np.int32]:
    """Return the follows: from a file, the population's own, of core users by topic, or of popular users by new ones.

    Args:
        people: The population.
        scenario: Parameters of the network.
        rng: Random generator.

    Returns:
        (follower, followee), as indices of the population, sorted, shape `(follows, 2)`.
    """
    n = len(people)
    if people.edges is not None:
        return np.asarray(people.edges, dtype=np.int32).reshape(-1, 2)
    if isinstance(people, DrawnPeople) and people.kind == "x":
        return people.follow_edges(scenario.follow_probability, rng=rng).astype(np.int32)
    if n < 2 or scenario.follows < 1 or scenario.edges is not None:
        return np.zeros((0, 2), dtype=np.int32)
    return preferential_edges(n, min(scenario.follows, n - 1), rng)


def shaped_edges(
    people: People, scenario: Any, positions: Mapping[int, float], run_seed: int
) -> npt.NDArray[np.int32] | None:
    """Return the follows that `homophily` and `hubs` ask for; None if neither is set.

    They are drawn apart from everything else, so that runs that differ in them alone have the same people, positions
    and first posts.

    Args:
        people: The population.
        scenario: Parameters of the network.
        positions: User, from 1 → its position on the topic; empty without beliefs.
        run_seed: Seed of the run.

    Returns:
        (follower, followee), as indices of the population, sorted, shape `(follows, 2)`.

    Raises:
        ConfigError: If the follows of the population are not drawn freely, but its own.
    """
    if scenario.homophily is None and scenario.hubs is None:
        return None
    n, rng = len(people), random.Random(f"{run_seed} follows")
    if (
        people.edges is not None
        or scenario.edges is not None
        or (isinstance(people, DrawnPeople) and people.kind == "x")
    ):
        raise ConfigError(
            "homophily= and hubs= are for follows that are drawn; this population has its own. Leave them out, or take "
            "users without follows"
        )
    order = list(range(n))
    if scenario.hubs == "random":
        rng.shuffle(order)
    elif scenario.hubs in ("extreme", "moderate"):
        order.sort(key=lambda index: abs(positions[index + 1]), reverse=scenario.hubs == "extreme")
    ranks = None if scenario.hubs == "none" else (np.argsort(order) + 1).tolist()
    each = min(scenario.follows, max(n - 1, 0))
    return ranked_edges(n, each, rng, ranks=ranks, camps=camps_of(people, positions), homophily=scenario.homophily)


def camps_of(people: People, positions: Mapping[int, float]) -> list[int]:
    """Return each user's camp: its side of the topic, or else its first interest."""
    if positions:
        return [int(positions[index + 1] > 0) for index in range(len(people))]
    interests = [(people.topics(index) or ("",))[0] for index in range(len(people))]
    numbers = {topic: number for number, topic in enumerate(dict.fromkeys(interests))}
    return [numbers[topic] for topic in interests]


def say_drawn(people: People, scenario: Any, n_follows: int, n_posts: int) -> None:
    """Log, in one line, what was drawn for people from a file, and how to provide it.

    Args:
        people: The population.
        scenario: Parameters of the network.
        n_follows: Number of follows at the start.
        n_posts: Number of invented first posts.
    """
    if scenario.users is None:
        return
    are_drawn = people.edges is None and not isinstance(people, DrawnPeople) and n_follows > 0
    follows = counted(n_follows, "follow was", "follows were")
    parts = [
        f"it has no follows: {follows} drawn (follows={scenario.follows} per new user); provide "
        "your own with edges=FILE, or set follows=0 for none"
        if are_drawn
        else "",
        f"it has no earlier posts (column previous_tweets): {counted(n_posts, 'first post was', 'first posts were')} "
        "invented; set first_posts=0 for none"
        if n_posts
        else "",
    ]
    if any(parts):
        logger.warning("%s: %s", scenario.users, "; ".join(filter(None, parts)))


def is_hourly(scenario: Any) -> bool:
    """Check whether users are active by the hour of the day."""
    return scenario.hourly or scenario.activity_form is not None or scenario.activity_table is not None


def set_hours(people: People, scenario: Any, users: Users, rng: random.Random) -> None:
    """Set each user's hourly activity probabilities, unless the scenario keeps the population's own.

    Args:
        people: The population.
        scenario: Parameters of the network.
        users: Contents of their file.
        rng: Random generator.

    Raises:
        ConfigError: If there are no counts, or the table does not have 24 counts per row.
    """
    form, table, n = scenario.activity_form, scenario.activity_table, len(people)
    if form is None and table is None:
        return
    counts = None if users.counts is None else users.counts[:n]
    if counts is not None and (unknown := np.flatnonzero(counts.min(axis=1, initial=0) < 0)).size < len(counts):
        known = np.setdiff1d(np.arange(len(counts)), unknown)
        counts[unknown] = counts[rng.choices(known.tolist(), k=len(unknown))]
    shares = {"share": scenario.active_share, "ordinary_share": scenario.ordinary_share}
    n_core = people.n_core if isinstance(people, DrawnPeople) else n_core_of(scenario, n)
    if counts is not None and 0 < len(counts) < n:  # users in the file have their own, others get a random row
        dealt = rng.choices(range(len(counts)), k=n - len(counts))
        counts = counts[[*range(len(counts)), *dealt]]
    try:
        if table is not None:
            counts = read_activity(table) if isinstance(table, str) else np.array(table)
        hours = activity_table(form or "paper", n, counts, n_core=n_core, rng=rng, **shares)
    except ValueError as error:
        raise ConfigError(f"{error}; give activity_table=, with 24 counts a row") from error
    for index, day in enumerate(hours.tolist()):
        people.hours[index] = day
