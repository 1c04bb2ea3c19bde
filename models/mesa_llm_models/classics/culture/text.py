"""What villagers read of their own habits, and of those of the neighbour they meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mesa_llm.text import counted
from mesa_llm_models.classics.people import Traits

HABITS: Mapping[str, tuple[str, ...]] = {
    "breakfast": ("porridge", "toast", "eggs", "cheese", "fruit", "soup", "rice", "pancakes", "yoghurt", "fish"),
    "music": ("fiddle", "flute", "drums", "accordion", "choir", "harp", "guitar", "bagpipes", "piano", "trumpet"),
    "hat": ("straw", "felt", "cap", "beret", "bonnet", "hood", "turban", "fez", "scarf", "bowler"),
    "game": ("chess", "dice", "cards", "dominoes", "darts", "skittles", "bowls", "draughts", "marbles", "football"),
    "drink": ("tea", "coffee", "cider", "beer", "milk", "wine", "cocoa", "water", "mead", "juice"),
}
"""Name of a feature → its traits."""

TRAITS: Traits = {
    "ways": {
        "fond": "You are fond of your ways.",
        "curious": "You like to try new things.",
        "sociable": "You like to have things in common with the people around you.",
    },
    "origin": {
        "native": "You were born in this village.",
        "newcomer": "You came to this village a year ago.",
        "returned": "You have come back to this village after years away.",
    },
}
"""What matters to villagers when they decide whether to take over a habit."""

KEPT = "You kept your habits."
"""What came of keeping."""

NOT_DIFFERENT = "in that habit your neighbour does not differ from you."
"""Why nothing can be taken over."""


def habit_name(feature: int) -> str:
    """Return the name of a feature.

    Args:
        feature: Its number, from 0; the first have names of their own.
    """
    return tuple(HABITS)[feature] if feature < len(HABITS) else f"custom {feature + 1}"


def trait_name(feature: int, trait: int) -> str:
    """Return the name of a trait of a feature.

    Args:
        feature: Number of the feature, from 0.
        trait: Number of the trait, from 0; the first have names of their own.
    """
    names = tuple(HABITS.values())[feature] if feature < len(HABITS) else ()
    return names[trait] if trait < len(names) else f"kind {trait + 1}"


def observation_text(own: Sequence[int], theirs: Sequence[int], name: str) -> str:
    """Write what a villager sees: its own habits beside those of a neighbour.

    Args:
        own: Its traits, one a feature.
        theirs: The neighbour's.
        name: How others speak of the neighbour.
    """
    n_shared, n = sum(map(int.__eq__, own, theirs)), len(own)
    nothing = ", so there is none that you could take over" if n_shared == n else ""
    lines = [f"You meet {name}, who lives next door. You share {n_shared} of {counted(n, 'habit')}{nothing}:"]
    for feature, (one, other) in enumerate(zip(own, theirs, strict=True)):
        habit, mine = habit_name(feature), trait_name(feature, one)
        both = f"{mine} for both of you" if one == other else f"yours is {mine}, theirs is {trait_name(feature, other)}"
        lines.append(f"- {habit}: {both}")
    return "\n".join(lines)


def taken_text(feature: int, trait: int, name: str) -> str:
    """Report what was taken over, and from whom."""
    return f"You took over a habit of {name}: your {habit_name(feature)} is now {trait_name(feature, trait)}."
