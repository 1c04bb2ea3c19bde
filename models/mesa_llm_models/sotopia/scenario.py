"""Parameters of Sotopia: who meets where, whose turn it is, what they read, and who judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from mesa_llm import Label, LLMScenario, Slider
from mesa_llm.worlds import Rules
from mesa_llm_models.sotopia.scenes import Subset

Order = Literal["round-robin", "simultaneous", "random", "moderator"]
"""Whose turn it is: one after the other, all at once, at random, or chosen by a moderator."""

Name = Annotated[str, Field(min_length=1)]
"""Name of a language model."""

Mode = Literal["agents", "script", "script by moves"]
"""Who plays: an agent for each person; one author who writes the whole scene; or one author, move by move."""


class SotopiaScenario(LLMScenario):
    """Parameters of Sotopia."""

    items: Annotated[str, Label("Scenes (own, original, or a folder)")] = "own"
    """Who meets where: `own` for ours; `original` for Sotopia's, downloaded at first use (needs pooch); or a folder
    with its files."""

    subset: Annotated[Subset, Label("Which scenes")] = "all"
    """Which situations: all, those of the hard subset, or those whose goals agree or conflict."""

    n_dyads: Annotated[int, Field(ge=1), Slider(1, 60, label="Meetings")] = 6
    """Maximum number of pairings that are played; each is an episode, or two where both seats are tested."""

    sampling: Literal["in turn", "random"] = "in turn"
    """`in turn`: a pairing of each situation, then a second one of each, …; `random`: drawn with replacement."""

    order: Annotated[Order, Label("Whose turn it is")] = "round-robin"
    """Whose turn it is: one after the other, all at once, at random, or chosen by a moderator."""

    max_turns: Annotated[int, Field(ge=1), Slider(2, 30, label="Maximum number of turns")] = 20
    """Number of turns that ends an episode; 21 in versions of Sotopia before August 2024."""

    max_stale: Annotated[int, Field(ge=0)] = 2
    """Maximum number of moves in a row in which nobody does anything."""

    stale_counts: Literal["all", "in turn"] | None = None
    """Whose inaction counts towards `max_stale`: everybody's, or only of those whose turn it is; None: as the rules
    say."""

    judge: Annotated[Name | None, Label("Judged by")] = None
    """Language models that judge, separated by commas, or `rule`; None: by rule where no language model plays, else
    nobody judges."""

    judgements: Annotated[int, Field(ge=1, le=20)] = 1
    """Number of judgements of each judge on an episode."""

    judge_temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Sampling temperature of the judges."""

    judge_retries: Annotated[int, Field(ge=0, le=10)] = 1
    """Number of times a judge is asked again if its judgement cannot be used."""

    swap: Annotated[bool, Label("Judge twice, with the persons swapped")] = False
    """Whether each judgement is made a second time with the persons in the reverse order."""

    same_judge: bool = False
    """Whether a model under test may be its own judge."""

    dimensions: str = "standard"
    """What is rated: `standard`, `banded` (with what bands of scores mean), or a JSON file of your own."""

    partner: Annotated[Name | None, Label("The other seat is played by")] = None
    """What plays the other seat; None: the model under test plays all seats."""

    seats: Annotated[Literal["first", "second", "both"], Label("Seats of the model under test")] = "first"
    """Which seat the model under test plays where there is a partner; `both`: one in each of two episodes."""

    only_seats: dict[str, Literal[0, 1]] | None = None
    """Id of a situation → the one seat that is tested in it, as for parts of the hard subset; None: as `seats` says."""

    mode: Annotated[Mode, Label("Who writes the parts")] = "agents"
    """Who plays: an agent for each person, or one author who writes all parts, at once or move by move."""

    shows: Annotated[Literal["history", "last turn"], Label("What persons read")] = "history"
    """`history`: everything, each time; `last turn`: everything once, then only what came since, so that they need a
    memory."""

    omniscient: bool = False
    """Whether everybody knows everything about everybody."""

    lite: bool = False
    """Whether portraits are hidden, even a person's own."""

    hidden_tags: Sequence[Literal["extra_info", "clarification_hint", "strategy_hint"]] = ()
    """Tags of texts and goals that persons do not read."""

    whispers: bool = False
    """Whether one can speak to one person alone, where there are three or more."""

    memory: str = "none"
    """Memory of the persons, besides what they read."""

    temperature: Annotated[float, Field(ge=0, le=2), Slider(0, 2, 0.1)] = 0.7
    """Sampling temperature of the players."""

    rules: Rules = "corrected"
    """`original`: as Sotopia's code of 2025-08-08, where inaction also counts for those whose turn it is not."""
