"""Ablations of a network of X users: recommender, embedder and activity hours removed or replaced.

The parts are those of OASIS (Yang et al. 2024, arXiv 2411.11581).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from statistics import fmean
from typing import Annotated, Any, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import Hidden, LLMOptions
from mesa_llm.llm.minilm import MODULE
from mesa_llm.population import ActivityForm
from mesa_llm_models.social.model import SocialModel, SocialScenario
from mesa_llm_models.social.population import PopulationName
from mesa_llm_models.social.world import FeedName, PresetName

COUNTS = (
    (0, 0, 0, 0, 0, 1, 4, 8, 6, 3, 2, 3, 4, 3, 2, 2, 2, 3, 3, 2, 1, 1, 0, 0),
    (0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 2, 1, 1, 2, 4, 6, 8, 9, 7, 4, 1),
    (5, 3, 2, 1, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5, 6, 8, 7),
    (1,) * 24,
)
"""Hourly posts of four kinds of people, with our own numbers: early risers, people with long evenings, night owls, and
people who post at any time.
"""

EVEN_SHARE = 0.307
"""Mean activity probability of these counts under the formula in OASIS's code."""


class AblationScenario(SocialScenario):
    """Parameters of a network of OASIS's X users."""

    n_agents: Annotated[int, Field(ge=2)] | None = 100
    """Number of users."""

    population: Annotated[PopulationName, Hidden()] = "oasis_x"
    """Source of the users: OASIS's distributions, with topics."""

    preset: Annotated[PresetName, Hidden()] = "x"
    """Actions of users."""

    feed: FeedName | None = "x_personal"
    """Name of the feed."""

    activity_form: Annotated[ActivityForm | None, Hidden()] = "code"
    """Formula from counts to activity probabilities."""

    activity_table: Annotated[str | tuple[tuple[float, ...], ...] | None, Hidden()] = COUNTS
    """Activity counts, 24 per row; each user gets one row."""

    active_share: Annotated[float, Field(ge=0, le=1), Hidden()] = EVEN_SHARE
    """Activity probability at any hour, if hours have no effect (`activity_form="reddit"`)."""

    step_minutes: Annotated[float, Field(gt=0), Hidden()] = 60.0
    """Simulated minutes per step."""

    start_hour: Annotated[float, Field(ge=0, le=24), Hidden()] = 0.0
    """Hour of the day at the start."""


class AblationModel(SocialModel):
    """X users with some topics each, for a day: what do they see, and how do they react?

    Attributes:
        fit: Share of posts by users the viewer does not follow, in the feeds of the last step, whose author shares a
            topic with the viewer; None without such posts.
    """

    scenario_class = AblationScenario
    scenario: AblationScenario

    def __init__(self, scenario: AblationScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Sign users up, connect them by topic, and publish their first posts."""
        super().__init__(scenario, **options)
        self.fit: float | None = None
        names = ("posts", "likes", "reposts", "active")
        reporters = {name: f"n_{name}" for name in names} | {"largest_cascade": "largest_cascade", "fit": "fit"}
        self.datacollector = DataCollector(reporters)
        self.datacollector.collect(self)

    def end_step(self) -> None:
        """Measure the fit between viewers and the posts of users they do not follow."""
        super().end_step()
        world, fits = self.world, list[bool]()
        for user_id, post_ids in world.recommended.items():
            own = set(self.population.topics(user_id - 1))
            strangers = {world.author_of(post_id) for post_id in post_ids} - world.viewer(user_id).followed_ids
            fits += [not own.isdisjoint(self.population.topics(author - 1)) for author in sorted(strangers)]
        self.fit = fmean(fits) if fits else None

    def results(self) -> dict[str, Any]:
        """Return the last measures, the mean of the fit, and the ratio of the busiest step to the mean."""
        measures = self.datacollector.model_vars
        fits = [fit for fit in measures["fit"] if fit is not None]
        active = [*measures["active"][1:]]
        peak = max(active) / fmean(active) if any(active) else None
        return super().results() | {"fit": fmean(fits) if fits else None, "busiest_over_mean": peak}


def embedder_arms() -> dict[str, Mapping[str, Any]]:
    """Return an arm for each other installed embedder."""
    return {"MiniLM": {"embedder": "minilm"}} if importlib.util.find_spec(MODULE) is not None else {}


ARMS: Mapping[str, Mapping[str, Any]] = {
    "whole": {},
    "no recommender": {"feed": "x_followed"},
    "random posts": {"feed": "random"},
    "interest alone": {"feed": "x_personal_code"},
    "popular posts": {"feed": "x"},
    **embedder_arms(),
    "no hours": {"activity_form": "reddit", "activity_table": None},
    "always active": {"activity_form": None, "activity_table": None},
}
"""Removed or replaced part → parameters of the arm."""

TOPIC_ARMS: Mapping[str, Mapping[str, Any]] = {
    **{part: ARMS[part] for part in ("whole", "no recommender", "random posts", "popular posts")},
    **embedder_arms(),
    "always active": {"look_minutes": 1.0, "look_sigma": 0.0},
}
"""Removed or replaced part → parameters of the spread of a topic's post, in which always active users all visit in the
first minute.
"""
