"""Parameters of Sotopia: meetings, turn order, prompts, and judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from mesa_llm import Label, LLMScenario, Slider, Structure
from mesa_llm.world import Rules
from mesa_llm_models.sotopia.scenes import Subset

Order = Literal["round-robin", "simultaneous", "random", "moderator"]
"""Turn order: one after the other, all at once, at random, or chosen by a moderator."""

Name = Annotated[str, Field(min_length=1)]
"""Name of a language model."""

Mode = Literal["agents", "script", "script by moves"]
"""Players: an agent for each person; one author who writes the whole scene; or one author, move by move."""


class SotopiaScenario(LLMScenario):
    """Parameters of Sotopia."""

    items: Annotated[str, Label("Scenes (own, original, or a folder)")] = "own"
    """Scenes: `own` for ours; `original` for Sotopia's, downloaded on first use (needs pooch); or a folder with its
    files.
    """

    subset: Annotated[Subset, Label("Which scenes")] = "all"
    """Situations: all, those of the hard subset, or those whose goals agree or conflict."""

    n_dyads: Annotated[int, Field(ge=1), Slider(1, 60, label="Meetings"), Structure(3, 12, dimension="population")] = 6
    """Maximum number of pairings played; each is one episode, or two where both seats are tested."""

    sampling: Literal["in turn", "random"] = "in turn"
    """`in turn`: one pairing for each situation, then a second one for each, …; `random`: drawn with replacement."""

    order: Annotated[
        Order, Label("Whose turn it is"), Structure("simultaneous", "random", dimension="interaction protocol")
    ] = "round-robin"
    """Turn order: one after the other, all at once, at random, or chosen by a moderator."""

    max_turns: Annotated[int, Field(ge=1), Slider(2, 30, label="Maximum number of turns")] = 20
    """Maximum number of turns in an episode; 21 in versions of Sotopia before August 2024."""

    max_stale: Annotated[int, Field(ge=0)] = 2
    """Maximum number of consecutive moves without action."""

    stale_counts: Literal["all", "in turn"] | None = None
    """Whose inaction counts towards `max_stale`: everybody's, or only that of persons in turn; None for the rules'
    choice.
    """

    judge: Annotated[Name | None, Label("Judged by")] = None
    """Language models that judge, separated by commas, or `rule`; None for judging by rule where no language model
    plays, else no judging.
    """

    judgements: Annotated[int, Field(ge=1, le=20)] = 1
    """Number of judgements per judge and episode."""

    judge_temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Sampling temperature of the judges."""

    judge_retries: Annotated[int, Field(ge=0, le=10)] = 1
    """Number of retries after an invalid judgement."""

    swap: Annotated[bool, Label("Judge twice, with the persons swapped")] = False
    """Whether each judgement is repeated with the persons in reverse order."""

    same_judge: bool = False
    """Whether a model under test may be its own judge."""

    dimensions: str = "standard"
    """Rated dimensions: `standard`, `banded` (with the meaning of score bands), or your own JSON file."""

    partner: Annotated[Name | None, Label("The other seat is played by")] = None
    """Language model for the other seat; None if the model under test plays all seats."""

    seats: Annotated[Literal["first", "second", "both"], Label("Seats of the model under test")] = "first"
    """Seat of the model under test with a partner; `both` for one in each of two episodes."""

    only_seats: dict[str, Literal[0, 1]] | None = None
    """Id of a situation → its only tested seat, as for parts of the hard subset; None for the choice in `seats`."""

    mode: Annotated[Mode, Label("Who writes the parts")] = "agents"
    """Players: an agent for each person, or one author who writes all parts, all at once or move by move."""

    shows: Annotated[Literal["history", "last turn"], Label("What persons read")] = "history"
    """`history`: everything, each time; `last turn`: everything once, then only what is new, so persons need a
    memory.
    """

    omniscient: bool = False
    """Whether everybody knows everything about everybody."""

    lite: bool = False
    """Whether portraits are hidden, even a person's own."""

    hidden_tags: Sequence[Literal["extra_info", "clarification_hint", "strategy_hint"]] = ()
    """Tags in texts and goals that are hidden from persons."""

    whispers: bool = False
    """Whether members can speak to one person alone, among three or more."""

    memory: str = "none"
    """Memory of the persons, besides their prompts."""

    temperature: Annotated[float, Field(ge=0, le=2), Slider(0, 2, 0.1)] = 0.7
    """Sampling temperature of the players."""

    rules: Rules = "corrected"
    """`original` for Sotopia's code of 2025-08-08, where inaction out of turn also counts."""
